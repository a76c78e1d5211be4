//! `tfseek tail`: prints the last records of each file.
//!
//! The file is read in order and the last records are kept, so no index is needed, and compressed files and standard input work. If a
//! plain file has an index, only its end is read.

use super::head;
use crate::args::{self, GlobalArgs, HeadCount, TailCount};
use crate::console::Console;
use crate::damage::{self, Reading};
use crate::dataset::Numbered;
use crate::exit::Outcome;
use crate::output::{NumberedRecord, Printer};
use crate::records::{self, KeptRecord, RecordNumbers, Records, STDIN};
use std::collections::VecDeque;
use std::path::Path;
use tfseek::IndexMode;
use tfseek::index::IndexOptions;

pub(crate) fn run(args: &args::TailArgs, global: &GlobalArgs, console: &mut Console) -> Outcome {
    if args.follow {
        return super::follow::run(args, global, console);
    }
    let paths = records::resolve(&args.paths, console)?;
    let printer = Printer::new(&args.print, global)?.many_files(paths.len() > 1);
    let mut numbers = RecordNumbers::new();
    for (k, path) in paths.iter().enumerate() {
        printer.file(console, &records::name(path), k == 0)?;
        let outcome = file(path, args, &mut numbers, &printer, console);
        console.report_and_continue(outcome)?;
    }
    printer.finish(console);
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
    let indexed = args.print.payload.limit.dataset(IndexOptions::new().mode(IndexMode::Require).jobs(1));
    if path != Path::new(STDIN)
        && let Ok(dataset) = indexed.open([path])
    {
        let len = dataset.len();
        let first = match args.n {
            TailCount::Last(n) => len.saturating_sub(n),
            TailCount::After(n) => n.min(len),
        };
        let mut numbered = Numbered::new(dataset, args.print.payload.kind);
        numbers.end(Some(len));
        let printed = (first..len).try_for_each(|i| {
            printer.record(console, NumberedRecord { index: index(i), ..numbered.get(i)? })
        });
        return printed.map_err(|e| damage::explain(e, Reading::ByNumber));
    }
    let mut records = Records::open(path, args.print.payload)?.numbered(before);
    let n = match args.n {
        TailCount::Last(n) => n,
        TailCount::After(skip) => {
            let rest = (skip, HeadCount::First(u64::MAX));
            let printed = head::file(&mut records, rest, None, printer, console);
            numbers.end(records.total());
            return printed;
        }
    };
    let reading = Reading::InOrder { can_skip: records.can_skip() };
    let mut last: VecDeque<KeptRecord> = VecDeque::new();
    let mut spare = KeptRecord::default();
    let end = loop {
        let item = match records.next() {
            Ok(Some(item)) => item,
            Ok(None) => break Ok(()),
            // The last records before the damage are printed.
            Err(e) => break Err(damage::explain(e.into(), reading)),
        };
        spare.set(item);
        last.push_back(std::mem::take(&mut spare));
        if last.len() as u64 > n {
            spare = last.pop_front().unwrap_or_default();
        }
    };
    numbers.end(records.total());
    let name = records::name(path);
    for record in &last {
        printer.record(console, record.numbered(&name)).map_err(|e| damage::explain(e, reading))?;
    }
    end
}
