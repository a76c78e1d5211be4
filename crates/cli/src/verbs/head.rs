//! `tfseek head`: prints the first records of each file. `cat` uses the same loop.

use crate::args::{self, GlobalArgs, HeadCount, PrintArgs};
use crate::console::Console;
use crate::exit::Outcome;
use crate::output::Printer;
use crate::records::{self, KeptRecord, RecordNumbers, Records};
use std::collections::VecDeque;
use std::path::{Path, PathBuf};

pub(crate) fn run(args: &args::HeadArgs, global: &GlobalArgs, console: &mut Console) -> Outcome {
    let paths = records::resolve(&args.paths)?;
    print(&paths, args.skip, args.n, &args.print, global, console)
}

/// Skips the first `skip` records of each file and prints the next `n`. After an error, which is reported, the next file follows.
pub(crate) fn print(
    paths: &[PathBuf],
    skip: u64,
    n: HeadCount,
    print: &PrintArgs,
    global: &GlobalArgs,
    console: &mut Console,
) -> Outcome {
    let printer = Printer::new(print, global)?.many_files(paths.len() > 1);
    let mut numbers = RecordNumbers::new();
    for (k, path) in paths.iter().enumerate() {
        printer.file(console, &records::name(path), k == 0)?;
        let before = numbers.begin(path);
        let outcome = file(path, before, (skip, n), print, &mut numbers, &printer, console);
        console.report_and_continue(outcome)?;
    }
    printer.finish(console);
    Ok(())
}

/// Prints `n` records of a file after the first `skip`. `before` is the number of records in the preceding files, if it is known.
pub(super) fn file(
    path: &Path,
    before: Option<u64>,
    (skip, n): (u64, HeadCount),
    print: &PrintArgs,
    numbers: &mut RecordNumbers,
    printer: &Printer,
    console: &mut Console,
) -> Outcome {
    let (n, hold) = match n {
        HeadCount::First(0) => return Ok(()),
        HeadCount::First(n) => (n, 0),
        HeadCount::AllBut(hold) => (u64::MAX, hold),
    };
    let mut records = Records::open(path, print.payload)?.numbered(before);
    // The last records that were read. Each is printed when `hold` records after it have been read.
    let mut held: VecDeque<KeptRecord> = VecDeque::new();
    let mut spare = KeptRecord::default();
    let mut seen = 0;
    while let Some(item) = records.next()? {
        seen += 1;
        if seen <= skip {
            continue;
        }
        if hold == 0 {
            printer.record(console, item)?;
        } else {
            spare.set(item);
            held.push_back(std::mem::take(&mut spare));
            if held.len() as u64 > hold
                && let Some(first) = held.pop_front()
            {
                printer.record(console, first.numbered(&records::name(path)))?;
                spare = first;
            }
        }
        // No further record is read, because damage after the last requested record is not an error.
        if seen - skip >= n {
            break;
        }
    }
    numbers.end(records.total());
    Ok(())
}
