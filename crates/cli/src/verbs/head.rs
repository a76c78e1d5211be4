//! `tfseek head`, and the loop that `cat` shares.

use crate::args::{self, Global, Print};
use crate::console::Console;
use crate::exit::Outcome;
use crate::output::Printer;
use crate::records::{self, Numbers, Records};
use std::path::{Path, PathBuf};

pub(crate) fn run(args: &args::Head, global: &Global, console: &mut Console) -> Outcome {
    let paths = records::resolve(&args.paths)?;
    print(&paths, args.skip, args.n, &args.print, global, console)
}

/// Prints `n` records of each file after the first `skip`. What can be read is printed; then the error is reported, and
/// the next file has its turn.
pub(crate) fn print(
    paths: &[PathBuf],
    skip: u64,
    n: u64,
    print: &Print,
    global: &Global,
    console: &mut Console,
) -> Outcome {
    let printer = Printer::new(print.format, print.full, global, paths.len() > 1);
    let mut numbers = Numbers::new();
    for (k, path) in paths.iter().enumerate() {
        printer.file(console, &records::name(path), k == 0)?;
        let outcome = file(path, skip, n, print, &mut numbers, &printer, console);
        console.go_on(outcome)?;
    }
    Ok(())
}

fn file(
    path: &Path,
    skip: u64,
    n: u64,
    print: &Print,
    numbers: &mut Numbers,
    printer: &Printer,
    console: &mut Console,
) -> Outcome {
    if n == 0 {
        return Ok(());
    }
    let before = numbers.begin(path);
    let mut records = Records::open(path, print.kind)?.numbered(before);
    let mut seen = 0;
    while let Some(item) = records.next()? {
        seen += 1;
        if seen <= skip {
            continue;
        }
        printer.record(console, item)?;
        // Not one record further: damage behind the last one that was asked for is none of our business.
        if seen - skip >= n {
            break;
        }
    }
    numbers.end(records.total());
    Ok(())
}
