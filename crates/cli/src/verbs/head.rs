//! `tfseek head`: prints the first records of each file. `cat` uses the same loop.

use crate::args::{self, GlobalArgs, PrintArgs};
use crate::console::Console;
use crate::exit::Outcome;
use crate::output::Printer;
use crate::records::{self, RecordNumbers, Records};
use std::path::{Path, PathBuf};

pub(crate) fn run(args: &args::HeadArgs, global: &GlobalArgs, console: &mut Console) -> Outcome {
    let paths = records::resolve(&args.paths)?;
    print(&paths, args.skip, args.n, &args.print, global, console)
}

/// Skips the first `skip` records of each file and prints the next `n`. After an error, which is reported, the next file follows.
pub(crate) fn print(
    paths: &[PathBuf],
    skip: u64,
    n: u64,
    print: &PrintArgs,
    global: &GlobalArgs,
    console: &mut Console,
) -> Outcome {
    let printer = Printer::new(print.format, print.full, global, paths.len() > 1);
    let mut numbers = RecordNumbers::new();
    for (k, path) in paths.iter().enumerate() {
        printer.file(console, &records::name(path), k == 0)?;
        let outcome = file(path, skip, n, print, &mut numbers, &printer, console);
        console.report_and_continue(outcome)?;
    }
    Ok(())
}

fn file(
    path: &Path,
    skip: u64,
    n: u64,
    print: &PrintArgs,
    numbers: &mut RecordNumbers,
    printer: &Printer,
    console: &mut Console,
) -> Outcome {
    if n == 0 {
        return Ok(());
    }
    let before = numbers.begin(path);
    let mut records = Records::open(path, print.payload)?.numbered(before);
    let mut seen = 0;
    while let Some(item) = records.next()? {
        seen += 1;
        if seen <= skip {
            continue;
        }
        printer.record(console, item)?;
        // No further record is read, because damage after the last requested record is not an error.
        if seen - skip >= n {
            break;
        }
    }
    numbers.end(records.total());
    Ok(())
}
