//! `tfseek tail`: prints the last records of each file.
//!
//! The file is read in order and the last records are kept, so no index is needed, and compressed files and
//! standard input work. If a plain file has an index, only its end is read.

use super::follow::{self, FollowArgs};
use super::head;
use crate::args::{self, HeadCount, PathsArgs, PrintArgs, TailCount, WhereArgs};
use crate::condition::{Condition, RecordOutput};
use crate::console::Console;
use crate::damage::{self, Reading};
use crate::dataset::Numbered;
use crate::exit::{Failure, Outcome};
use crate::features;
use crate::output::{NumberedRecord, Printer};
use crate::records::{self, KeptRecord, RecordNumbers, Records, STDIN};
use crate::split::{InputFile, SplitPath};
use crate::warnings;
use clap::Args;
use std::collections::VecDeque;
use std::path::{Path, PathBuf};
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

pub(crate) fn run(args: &TailArgs, console: &mut Console) -> Outcome {
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
        return follow::run(&follow, console);
    }
    let paths = records::resolve(&args.paths, args.print.payload.read, console)?;
    let features = features::find(paths.iter().map(InputFile::path), console);
    let printer = Printer::new(&args.print)?.for_files(paths.len() > 1, &features);
    let mut numbers = RecordNumbers::new(args.print.payload.read);
    let condition = Condition::new(&args.select, paths.len(), &features)?;
    let mut output = RecordOutput::new(condition, printer, args.print.payload.read, console);
    for (k, path) in paths.iter().enumerate() {
        output.printer.file(output.console, &records::name(path), k == 0)?;
        let outcome = file(path, args, &mut numbers, &mut output);
        output.console.report_and_continue(outcome)?;
    }
    output.finish()
}

fn file(
    path: &InputFile,
    args: &TailArgs,
    numbers: &mut RecordNumbers,
    output: &mut RecordOutput<'_>,
) -> Outcome {
    let read = args.print.payload.read;
    let before = numbers.begin(path);
    let index = |i: u64| before.and_then(|before| before.checked_add(i));
    // No index is built for a few records. If the index cannot be used, reading the file reports the problem,
    // if there is one.
    let indexed = read.dataset(IndexOptions::new().mode(IndexMode::Require).threads(1));
    // With a condition, the records before the requested ones must be read to count them.
    if path.path() != Path::new(STDIN)
        && path.part.is_none()
        && (output.condition.is_all() || matches!(args.n, TailCount::Last(_)))
        && let Ok(dataset) = indexed.open([path.path()])
    {
        warnings::print(dataset.warnings(), output.console);
        numbers.end(Some(dataset.len()));
        let mut numbered = Numbered::new(dataset, args.print.payload.kind);
        let printed = if let (TailCount::Last(n), false) = (args.n, output.condition.is_all()) {
            last_matching(n, &mut numbered, index, output)
        } else {
            let len = numbered.dataset.len();
            let first = match args.n {
                TailCount::Last(n) => len.saturating_sub(n),
                TailCount::After(n) => n.min(len),
            };
            (first..len)
                .try_for_each(|i| output.print(NumberedRecord { index: index(i), ..numbered.get(i)? }))
        };
        return printed.map_err(|e| damage::explain(e, Reading::ByNumber));
    }
    let mut records = Records::open(path, args.print.payload)?.numbered(before);
    match args.n {
        TailCount::Last(n) => {
            let (last, end) = keep_last(n, &mut records, output)?;
            numbers.end(records.reader.total());
            let name = records::name(path);
            for record in &last {
                output.print(record.numbered(&name)).map_err(|e| damage::explain(e, Reading::InOrder))?;
            }
            end
        }
        TailCount::After(skip) => {
            let rest = (skip, HeadCount::First(u64::MAX));
            let printed = head::file(&mut records, rest, output);
            numbers.end(records.reader.total());
            printed.map_err(|e| damage::explain(e, Reading::InOrder))
        }
    }
}

/// Reads a file to its end or an error, which is returned beside the last `n` records before it.
fn keep_last(
    n: u64,
    records: &mut Records,
    output: &mut RecordOutput<'_>,
) -> Outcome<(VecDeque<KeptRecord>, Outcome)> {
    let failed = |e| Err(damage::explain(e, Reading::InOrder));
    output.condition.compare_names(records)?;
    let mut last: VecDeque<KeptRecord> = VecDeque::new();
    let mut spare = KeptRecord::default();
    loop {
        let item = match records.next() {
            Ok(Some(item)) => item,
            Ok(None) => return Ok((last, Ok(()))),
            Err(e) => return Ok((last, failed(e.into()))),
        };
        match output.accepts(&item) {
            Ok(true) => spare.set(item)?,
            Ok(false) => continue,
            Err(e) => return Ok((last, failed(e))),
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
    output: &mut RecordOutput<'_>,
) -> Outcome {
    output.condition.compare_numbered(numbered)?;
    let mut found = VecDeque::new();
    for i in (0..numbered.dataset.len()).rev() {
        if found.len() as u64 >= n {
            break;
        }
        if output.accepts(&NumberedRecord { index: index(i), ..numbered.get(i)? })? {
            found.push_front(i);
        }
    }
    for i in found {
        output.print(NumberedRecord { index: index(i), ..numbered.get(i)? })?;
    }
    Ok(())
}
