//! `tfseek tail`: prints the last records of each file.
//!
//! The file is read in order and the last records are kept, so no index is needed, and compressed files and
//! standard input work. If a plain file has an index, only its end is read.

use super::follow::{self, FollowArgs};
use super::head;
use crate::args::{self, GlobalArgs, HeadCount, PathsArgs, PrintArgs, ReadArgs, TailCount, WhereArgs};
use crate::condition::Condition;
use crate::console::Console;
use crate::damage::{self, Reading, SkippedErrors};
use crate::dataset::Numbered;
use crate::exit::{Failure, Outcome};
use crate::features;
use crate::output::{NumberedRecord, Printer};
use crate::records::{self, KeptRecord, RecordNumbers, Records, STDIN};
use crate::split::{InputFile, SplitPath};
use crate::warnings;
use clap::Args;
use std::collections::VecDeque;
use std::path::Path;
use std::path::PathBuf;
use tfseek::IndexMode;
use tfseek::index::IndexOptions;

#[derive(Debug, Args)]
pub(crate) struct TailArgs {
    #[command(flatten)]
    pub(crate) paths: PathsArgs,
    /// Number of records to print, per file; `+N`: from the Nth record on. `-5` is short for `-n 5`
    #[arg(short, value_name = "N", default_value = "10", allow_hyphen_values = true, value_parser = args::tail_count)]
    pub(crate) n: TailCount,
    /// Print new records until interrupted, as the last file is written, and then those of later files of the
    /// pattern. N counts in the last file; `+N`: in the first file, whose later records and files are all
    /// printed
    #[arg(short = 'F', long)]
    pub(crate) follow: bool,
    /// With --follow: save the position here once per second, and continue at the saved position
    #[arg(long, value_name = "FILE", requires = "follow")]
    pub(crate) state: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) print: PrintArgs,
    #[command(flatten)]
    pub(crate) select: WhereArgs,
}

pub(crate) fn run(args: &TailArgs, global: &GlobalArgs, console: &mut Console) -> Outcome {
    if args.follow {
        // The state of `--state` counts all records, not those that meet a condition.
        if args.select.condition.is_some() {
            return Err(Failure::usage("--where and --follow cannot be combined"));
        }
        if args.print.payload.read.skips() {
            let why = "the record after a damaged length is known only when the file is complete";
            return Err(Failure::usage(format!("--damage skip and --follow cannot be combined: {why}")));
        }
        let paths = &args.paths.paths;
        SplitPath::refuse(paths)?;
        let follow = FollowArgs { paths, n: args.n, state: args.state.as_deref(), print: &args.print };
        return follow::run(&follow, global, console);
    }
    let paths = records::resolve(&args.paths, args.print.payload.read, console)?;
    let features = features::find(paths.iter().map(InputFile::path), console);
    let printer = Printer::new(&args.print, global)?.many_files(paths.len() > 1).labels(&features);
    let mut numbers = RecordNumbers::new(args.print.payload.read);
    let mut condition = Condition::new(&args.select, paths.len(), &features)?;
    let mut skipped = SkippedErrors::default();
    for (k, path) in paths.iter().enumerate() {
        printer.file(console, &records::name(path), k == 0)?;
        let outcome = file(path, args, &mut numbers, (&mut condition, &mut skipped), &printer, console);
        console.report_and_continue(outcome)?;
    }
    condition.finish(console);
    printer.finish(console);
    skipped.report(console)
}

fn file(
    path: &InputFile,
    args: &TailArgs,
    numbers: &mut RecordNumbers,
    (condition, skipped): (&mut Condition, &mut SkippedErrors),
    printer: &Printer,
    console: &mut Console,
) -> Outcome {
    let read = args.print.payload.read;
    let before = numbers.begin(path);
    let index = |i: u64| before.and_then(|before| before.checked_add(i));
    // No index is built for a few records. If the index cannot be used, reading the file reports the problem,
    // if there is one.
    let indexed = read.dataset(IndexOptions::new().mode(IndexMode::Require).threads(1));
    // With a condition, the records before the requested ones must be read to count them.
    if path.path() != Path::new(STDIN)
        && path.part().is_none()
        && (condition.is_all() || matches!(args.n, TailCount::Last(_)))
        && let Ok(dataset) = indexed.open([path.path()])
    {
        warnings::print(dataset.warnings(), console);
        numbers.end(Some(dataset.len()));
        let mut numbered = Numbered::new(dataset, args.print.payload.kind);
        let printed = if let (TailCount::Last(n), false) = (args.n, condition.is_all()) {
            last_matching(n, &mut numbered, index, (condition, read, skipped), printer, console)
        } else {
            let len = numbered.dataset.len();
            let first = match args.n {
                TailCount::Last(n) => len.saturating_sub(n),
                TailCount::After(n) => n.min(len),
            };
            (first..len).try_for_each(|i| {
                let item = NumberedRecord { index: index(i), ..numbered.get(i)? };
                skipped.catch(read, printer.record(console, item))
            })
        };
        return printed.map_err(|e| damage::explain(e, Reading::ByNumber));
    }
    let mut records = Records::open(path, args.print.payload)?.numbered(before);
    match args.n {
        TailCount::Last(n) => {
            let (last, end) = keep_last(n, &mut records, (condition, read, &mut *skipped))?;
            numbers.end(records.total());
            let name = records::name(path);
            for record in &last {
                let printed = printer.record(console, record.numbered(&name));
                skipped.catch(read, printed).map_err(|e| damage::explain(e, Reading::InOrder))?;
            }
            end
        }
        TailCount::After(skip) => {
            let rest = (skip, HeadCount::First(u64::MAX));
            let printed = head::file(&mut records, rest, condition, (read, skipped), printer, console);
            numbers.end(records.total());
            printed
        }
    }
}

/// Reads a file to its end or an error, which is returned beside the last `n` records before it.
fn keep_last(
    n: u64,
    records: &mut Records,
    (condition, read, skipped): (&mut Condition, ReadArgs, &mut SkippedErrors),
) -> Outcome<(VecDeque<KeptRecord>, Outcome)> {
    let failed = |e| Err(damage::explain(e, Reading::InOrder));
    condition.compare_names(records)?;
    let mut last: VecDeque<KeptRecord> = VecDeque::new();
    let mut spare = KeptRecord::default();
    loop {
        let item = match records.next() {
            Ok(Some(item)) => item,
            Ok(None) => return Ok((last, Ok(()))),
            Err(e) => return Ok((last, failed(e.into()))),
        };
        match condition.accepts(&item) {
            Ok(true) => spare.set(item)?,
            Ok(false) => continue,
            Err(e) => match skipped.catch(read, Err(e)) {
                Ok(()) => continue,
                Err(e) => return Ok((last, failed(e))),
            },
        }
        last.push_back(std::mem::take(&mut spare));
        if last.len() as u64 > n {
            spare = last.pop_front().unwrap_or_default();
        }
    }
}

/// Prints the last `n` records of an indexed file that meet a condition. They are searched from the end.
fn last_matching(
    n: u64,
    numbered: &mut Numbered,
    index: impl Fn(u64) -> Option<u64>,
    (condition, read, skipped): (&mut Condition, ReadArgs, &mut SkippedErrors),
    printer: &Printer,
    console: &mut Console,
) -> Outcome {
    condition.compare_numbered(numbered)?;
    let mut found = VecDeque::new();
    for i in (0..numbered.dataset.len()).rev() {
        if found.len() as u64 >= n {
            break;
        }
        let accepted = condition.accepts(&NumberedRecord { index: index(i), ..numbered.get(i)? });
        let added = accepted.map(|accepted| {
            if accepted {
                found.push_front(i)
            }
        });
        skipped.catch(read, added)?;
    }
    for i in found {
        let item = NumberedRecord { index: index(i), ..numbered.get(i)? };
        skipped.catch(read, printer.record(console, item))?;
    }
    Ok(())
}
