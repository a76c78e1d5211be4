//! `tfseek tail`: the last records of each file. It reads in order and keeps the last few, so it needs no index, and works on
//! compressed files and standard input; where a plain file has an index, only the end is read.

use crate::args::{self, Global};
use crate::console::Console;
use crate::dataset::Numbered;
use crate::exit::Outcome;
use crate::output::{Item, Printer};
use crate::records::{self, Numbers, Records, STDIN};
use std::collections::VecDeque;
use std::path::Path;
use tfseek::index::IndexOptions;
use tfseek::{At, DatasetOptions, IndexMode, Record};

pub(crate) fn run(args: &args::Tail, global: &Global, console: &mut Console) -> Outcome {
    let paths = records::resolve(&args.paths)?;
    let printer = Printer::new(args.print.format, args.print.full, global, paths.len() > 1);
    let mut numbers = Numbers::new();
    for (k, path) in paths.iter().enumerate() {
        printer.file(console, &records::name(path), k == 0)?;
        let outcome = file(path, args, &mut numbers, &printer, console);
        console.go_on(outcome)?;
    }
    Ok(())
}

fn file(
    path: &Path,
    args: &args::Tail,
    numbers: &mut Numbers,
    printer: &Printer,
    console: &mut Console,
) -> Outcome {
    let before = numbers.begin(path);
    let index = |i: u64| before.and_then(|before| before.checked_add(i));
    // Nothing is built for a few records, and what stands against the index is for the reading to say.
    let required = IndexOptions::new().mode(IndexMode::Require).jobs(1);
    let indexed = args.print.kind.limit.dataset(DatasetOptions::new()).index(required);
    if path != Path::new(STDIN)
        && let Ok(dataset) = indexed.open([path])
    {
        let len = dataset.len();
        let mut numbered = Numbered::new(dataset, args.print.kind.kind);
        numbers.end(Some(len));
        return (len.saturating_sub(args.n)..len)
            .try_for_each(|i| printer.record(console, Item { index: index(i), ..numbered.get(i)? }));
    }
    let mut records = Records::open(path, args.print.kind)?;
    let mut last: VecDeque<(Vec<u8>, u64, u64)> = VecDeque::new();
    let mut spare = Vec::new();
    let end = loop {
        let item = match records.next() {
            Ok(Some(item)) => item,
            Ok(None) => break Ok(()),
            // The records before the damage are the last there are.
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
        printer.record(console, Item { record, index: index(*i), kind, strict })?;
    }
    end
}
