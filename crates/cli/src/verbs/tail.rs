//! `tfseek tail`: prints the last records of each file.
//!
//! The file is read in order and the last records are kept, so no index is needed, and compressed files and standard input work. If a
//! plain file has an index, only its end is read.

use crate::args::{self, GlobalArgs};
use crate::console::Console;
use crate::dataset::Numbered;
use crate::exit::Outcome;
use crate::output::{NumberedRecord, Printer};
use crate::records::{self, RecordNumbers, Records, STDIN};
use std::collections::VecDeque;
use std::path::Path;
use tfseek::index::IndexOptions;
use tfseek::{At, DatasetOptions, IndexMode, Record};

pub(crate) fn run(args: &args::TailArgs, global: &GlobalArgs, console: &mut Console) -> Outcome {
    let paths = records::resolve(&args.paths)?;
    let printer = Printer::new(args.print.format, args.print.full, global, paths.len() > 1);
    let mut numbers = RecordNumbers::new();
    for (k, path) in paths.iter().enumerate() {
        printer.file(console, &records::name(path), k == 0)?;
        let outcome = file(path, args, &mut numbers, &printer, console);
        console.report_and_continue(outcome)?;
    }
    Ok(())
}

fn file(
    path: &Path,
    args: &args::TailArgs,
    numbers: &mut RecordNumbers,
    printer: &Printer,
    console: &mut Console,
) -> Outcome {
    let before = numbers.begin(path);
    let index = |i: u64| before.and_then(|before| before.checked_add(i));
    // No index is built for a few records. If the index cannot be used, reading the file reports the problem, if there is one.
    let required = IndexOptions::new().mode(IndexMode::Require).jobs(1);
    let indexed = args.print.payload.limit.dataset(DatasetOptions::new()).index(required);
    if path != Path::new(STDIN)
        && let Ok(dataset) = indexed.open([path])
    {
        let len = dataset.len();
        let mut numbered = Numbered::new(dataset, args.print.payload.kind);
        numbers.end(Some(len));
        return (len.saturating_sub(args.n)..len).try_for_each(|i| {
            printer.record(console, NumberedRecord { index: index(i), ..numbered.get(i)? })
        });
    }
    let mut records = Records::open(path, args.print.payload)?;
    let mut last: VecDeque<(Vec<u8>, u64, u64)> = VecDeque::new();
    let mut spare = Vec::new();
    let end = loop {
        let item = match records.next() {
            Ok(Some(item)) => item,
            Ok(None) => break Ok(()),
            // The last records before the damage are printed.
            Err(e) => break Err(e.into()),
        };
        spare.clear();
        spare.extend_from_slice(item.record.payload());
        let at = item.record.at();
        last.push_back((std::mem::take(&mut spare), at.record.unwrap_or(0), at.offset.unwrap_or(0)));
        if last.len() as u64 > args.n {
            spare = last.pop_front().map(|(payload, ..)| payload).unwrap_or_default();
        }
    };
    numbers.end(records.total());
    let (kind, strict) = (records.kind, records.strict);
    let name = records::name(path);
    for (payload, i, offset) in &last {
        let record = Record::new(payload, At::new(&name, *i, *offset));
        printer.record(console, NumberedRecord { record, index: index(*i), kind, strict })?;
    }
    end
}
