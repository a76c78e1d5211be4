//! `tfseek head`: prints the first records of each file. `cat` uses the same loop.

use crate::args::{self, HeadCount, PathsArgs, PrintArgs, StepsArgs, WhereArgs};
use crate::condition::{Condition, RecordOutput};
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

pub(crate) fn run(args: &HeadArgs, console: &mut Console) -> Outcome {
    let paths = records::resolve(&args.paths, args.print.payload.read, console)?;
    print(&paths, (args.skip, args.n), (&args.print, &args.select, &args.steps), console)
}

/// Skips the first `skip` records of each file that meet the condition, and prints the next `n`. After an
/// error, which is reported, the next file follows.
pub(crate) fn print(
    paths: &[InputFile],
    (skip, n): (u64, HeadCount),
    (print, select, steps): (&PrintArgs, &WhereArgs, &StepsArgs),
    console: &mut Console,
) -> Outcome {
    let features = features::find(paths.iter().map(InputFile::path), console);
    let (splitter, features) = features::splitter(steps, features, paths)?;
    let condition = Condition::new(select, paths.len(), &features)?;
    let printer = Printer::new(print)?.for_files(paths.len() > 1, &features);
    let mut output = RecordOutput::new(condition, printer, print.payload.read, console);
    let mut numbers = RecordNumbers::new(print.payload.read);
    for (k, path) in paths.iter().enumerate() {
        output.printer.file(output.console, &records::name(path), k == 0)?;
        if n == HeadCount::First(0) {
            continue;
        }
        let before = numbers.begin(path);
        let outcome = match Records::open_steps(path, print.payload, splitter.as_ref()) {
            Ok(records) => {
                let mut records = records.numbered(before);
                let outcome = file(&mut records, (skip, n), &mut output);
                numbers.end(records.reader.total());
                outcome.map_err(|e| damage::explain(e, Reading::InOrder))
            }
            Err(e) => Err(e.into()),
        };
        output.console.report_and_continue(outcome)?;
    }
    output.finish()
}

/// Prints `n` records of a file that meet the condition, after the first `skip` of them.
pub(super) fn file(
    records: &mut Records,
    (skip, n): (u64, HeadCount),
    output: &mut RecordOutput<'_>,
) -> Outcome {
    let (n, hold) = match n {
        HeadCount::First(n) => (n, 0),
        HeadCount::AllBut(hold) => (u64::MAX, hold),
    };
    output.condition.compare_names(records)?;
    let name = records.reader.stream().name().to_path_buf();
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
                if !records.goes_on {
                    return Err(e.into());
                }
                output.skipped.catch(output.read, Err(e.into()))?;
                continue;
            }
        };
        let outcome = match output.condition.accepts(&item) {
            Ok(false) => continue,
            Ok(true) if seen < skip => Ok(()),
            Ok(true) if hold == 0 => output.printer.record(output.console, item),
            Ok(true) => {
                spare.set(item)?;
                held.push_back(std::mem::take(&mut spare));
                if held.len() as u64 > hold
                    && let Some(first) = held.pop_front()
                {
                    output.printer.record(output.console, first.numbered(&name))?;
                    spare = first;
                }
                Ok(())
            }
            Err(e) => Err(e),
        };
        seen += 1;
        if seen > skip {
            output.skipped.catch(output.read, outcome)?;
        } else {
            SkippedErrors::default().catch(output.read, outcome)?;
        }
    }
    Ok(())
}
