//! `tfseek head`: prints the first records of each file. `cat` uses the same loop.

use crate::args::{self, GlobalArgs, HeadCount, PathsArgs, PrintArgs, ReadArgs, StepsArgs, WhereArgs};
use crate::condition::Condition;
use crate::console::Console;
use crate::damage::{self, Reading, SkippedErrors};
use crate::exit::Outcome;
use crate::features;
use crate::output::Printer;
use crate::records::{self, KeptRecord, RecordNumbers, Records};
use crate::split::InputFile;
use clap::Args;
use std::collections::VecDeque;

#[derive(Debug, Args)]
pub(crate) struct HeadArgs {
    #[command(flatten)]
    pub(crate) paths: PathsArgs,
    /// Number of records to print, per file; `-N`: all but the last N. `-5` is short for `-n 5`
    #[arg(short, value_name = "N", default_value = "10", allow_hyphen_values = true, value_parser = args::head_count)]
    pub(crate) n: HeadCount,
    /// Number of records to skip first, per file
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) skip: u64,
    #[command(flatten)]
    pub(crate) print: PrintArgs,
    #[command(flatten)]
    pub(crate) select: WhereArgs,
    #[command(flatten)]
    pub(crate) steps: StepsArgs,
}

pub(crate) fn run(args: &HeadArgs, global: &GlobalArgs, console: &mut Console) -> Outcome {
    let paths = records::resolve(&args.paths, args.print.payload.read, console)?;
    print(&paths, (args.skip, args.n), (&args.print, &args.select, &args.steps), global, console)
}

/// Skips the first `skip` records of each file that meet the condition, and prints the next `n`. After an
/// error, which is reported, the next file follows.
pub(crate) fn print(
    paths: &[InputFile],
    (skip, n): (u64, HeadCount),
    (print, select, steps): (&PrintArgs, &WhereArgs, &StepsArgs),
    global: &GlobalArgs,
    console: &mut Console,
) -> Outcome {
    let features = features::find(paths.iter().map(InputFile::path), console);
    let (splitter, features) = features::splitter(steps, features, paths)?;
    let mut condition = Condition::new(select, paths.len(), &features)?;
    let printer = Printer::new(print, global)?.many_files(paths.len() > 1).labels(&features);
    let mut numbers = RecordNumbers::new(print.payload.read);
    let mut skipped = SkippedErrors::default();
    for (k, path) in paths.iter().enumerate() {
        printer.file(console, &records::name(path), k == 0)?;
        if n == HeadCount::First(0) {
            continue;
        }
        let before = numbers.begin(path);
        let outcome = match Records::open_steps(path, print.payload, splitter.as_ref()) {
            Ok(records) => {
                let mut records = records.numbered(before);
                let read = (print.payload.read, &mut skipped);
                let outcome = file(&mut records, (skip, n), &mut condition, read, &printer, console);
                numbers.end(records.total());
                outcome
            }
            Err(e) => Err(e.into()),
        };
        console.report_and_continue(outcome)?;
    }
    condition.finish(console);
    printer.finish(console);
    skipped.report(console)
}

/// Prints `n` records of a file that meet the condition, after the first `skip` of them.
pub(super) fn file(
    records: &mut Records,
    (skip, n): (u64, HeadCount),
    condition: &mut Condition,
    read: (ReadArgs, &mut SkippedErrors),
    printer: &Printer,
    console: &mut Console,
) -> Outcome {
    print_records(records, (skip, n), condition, read, printer, console)
        .map_err(|e| damage::explain(e, Reading::InOrder))
}

fn print_records(
    records: &mut Records,
    (skip, n): (u64, HeadCount),
    condition: &mut Condition,
    (read, skipped): (ReadArgs, &mut SkippedErrors),
    printer: &Printer,
    console: &mut Console,
) -> Outcome {
    let (n, hold) = match n {
        HeadCount::First(n) => (n, 0),
        HeadCount::AllBut(hold) => (u64::MAX, hold),
    };
    condition.compare_names(records)?;
    let name = records.name();
    // The last records that were read. Each is printed when `hold` records after it have been read.
    let mut held: VecDeque<KeptRecord> = VecDeque::new();
    let mut spare = KeptRecord::default();
    let mut seen: u64 = 0;
    // No further record is read after the last requested one, because damage after it is not an error.
    while seen.saturating_sub(skip) < n {
        let item = match records.next() {
            Ok(Some(item)) => item,
            Ok(None) => break,
            Err(e) => {
                if !records.goes_on() {
                    return Err(e.into());
                }
                skipped.catch(read, Err(e.into()))?;
                continue;
            }
        };
        let outcome = match condition.accepts(&item) {
            Ok(true) => Ok(item),
            Ok(false) => continue,
            Err(e) => Err(e),
        };
        let outcome = match outcome {
            Ok(_) if seen < skip => Ok(()),
            Ok(item) if hold == 0 => printer.record(console, item),
            Ok(item) => {
                spare.set(item)?;
                held.push_back(std::mem::take(&mut spare));
                if held.len() as u64 > hold
                    && let Some(first) = held.pop_front()
                {
                    printer.record(console, first.numbered(&name))?;
                    spare = first;
                }
                Ok(())
            }
            Err(e) => Err(e),
        };
        seen += 1;
        if seen > skip {
            skipped.catch(read, outcome)?;
        } else {
            SkippedErrors::default().catch(read, outcome)?;
        }
    }
    Ok(())
}
