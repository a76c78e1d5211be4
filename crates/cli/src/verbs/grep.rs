//! `tfseek grep`: prints the records that meet a condition, or that contain a text.
//!
//! Files are read in order, so pipes and compressed files can be searched and no index is needed. Several
//! threads work on units of records; what is printed does not depend on their number.

use crate::args::{PathsArgs, PayloadKind, PrintArgs, RecordFormat, ThreadsArgs};
use crate::condition;
use crate::console::Console;
use crate::damage::SkippedErrors;
use crate::exit::{DATA, Failure, Outcome};
use crate::features;
use crate::output::{NumberedRecord, Printer};
use crate::progress::{self, FileProgress};
use crate::records::{self, RecordNumbers, Records};
use crate::split::InputFile;
use clap::Args;
use indicatif::ProgressBar;
use serde_json::json;
use std::path::{Path, PathBuf};
use tfseek::example::MessageKind;
use tfseek::{ErrorKind, Record};
use tfseek_tools::grep::{Grep, GrepOptions, GrepUnit};
use tfseek_tools::units::{MergedUnit, UnitSource};

/// The grammar of conditions, after the help of `tfseek grep`.
pub(crate) const AFTER_GREP: &str = "\
Conditions:
  label == 3, !=, <, <=, >, >=     the value compares so with a number or a string
  width > height                   it compares so with the value of another feature
  label in 1, 2, 5..9              it is in the list; 5..=9 includes the end, 5.. and ..9 are open
  name contains \"at\"              the string is part of it
  name matches \"^c.t$\"            the regular expression matches a part of it
  x is nan, x is not nan           the float is NaN, or is not
  any(x) > 3, all(x) in 0..10      one value of a list meets the test, or every one
  any(steps(x)) > 3                one in the steps of a feature list; len(steps(x)) is their number
  len(x), bytes(x)                 the number of values, the length of a byte string
  width(x), height(x), format(x)   of an encoded picture, from its header
  present(x), absent(x)            there is a value, or none
  record in 10..20                 the record number
  split(0.1, seed=7)               a tenth of the records, by the hash of the payload
  not A, A and B, A or B, ( )      as in logic; `not` binds tightest, `or` loosest

A name is in quotes if it has other characters than letters, digits and _ / . - :, or is one of the words and, or, not, in and record.";

#[derive(Debug, Args)]
pub(crate) struct GrepArgs {
    /// Condition, for example 'label == 7 and len(objects) > 20', or a text with -F
    #[arg(value_name = "EXPR")]
    pub(crate) expr: String,
    #[command(flatten)]
    pub(crate) paths: PathsArgs,
    /// EXPR is a text: find records with a value of a bytes feature, also in feature lists, that contains it
    #[arg(short = 'F', long)]
    pub(crate) literal: bool,
    /// Find the records that do not match
    #[arg(short = 'v', long)]
    pub(crate) invert: bool,
    /// Print the number of matching records only
    #[arg(short, long, group = "what")]
    pub(crate) count: bool,
    /// Print the paths of files with a matching record only
    #[arg(short = 'l', long, group = "what")]
    pub(crate) shards: bool,
    /// Print the numbers of matching records only, one per line, as `get` takes them
    #[arg(long, group = "what")]
    pub(crate) ids: bool,
    /// With `-f raw`: print the number of a record before it (`7:`), and a line end after it; `human` and
    /// `json` have the number anyway
    #[arg(short, long)]
    pub(crate) number: bool,
    /// Stop after this number of matches, over all files
    #[arg(short = 'm', long, value_name = "N")]
    pub(crate) limit: Option<u64>,
    /// With --count: print one JSON object per file, with the numbers of its records, matches and skipped
    /// records. `-f json` prints the records as JSON
    #[arg(long, requires = "count")]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) print: PrintArgs,
    #[command(flatten)]
    pub(crate) threads: ThreadsArgs,
}

pub(crate) fn run(args: &GrepArgs, console: &mut Console) -> Outcome {
    let printer = Printer::new(&args.print)?;
    if args.number && matches!(args.print.format, RecordFormat::Tfrecord | RecordFormat::ProtoJson) {
        return Err(Failure::usage("-n: expected the format human, json or raw"));
    }
    let prints = !(args.count || args.shards || args.ids);
    let options = GrepOptions {
        invert: args.invert,
        payloads: prints,
        first: args.shards,
        check_names: true,
        damage: args.print.payload.read.damage(),
        threads: args.threads.threads,
    };
    let filter = if args.literal { None } else { Some(args.expr.parse()?) };
    let paths = records::resolve(&args.paths, args.print.payload.read, console)?;
    let features = features::find(paths.iter().map(InputFile::path), console);
    let grep = match &filter {
        Some(filter) => Grep::filter(&features.filter(filter)?, options),
        None => Grep::text(args.expr.as_bytes(), options),
    };
    let bar = progress::bytes(console, "searching", progress::total_size(&paths));
    let mut report = GrepReport {
        args,
        paths: &paths,
        printer: printer.for_files(paths.len() > 1, &features),
        console,
        skipped: SkippedErrors::default(),
        found: 0,
        file: FileCounts::default(),
    };
    let mut numbers = RecordNumbers::new(args.print.payload.read);
    let open = |s: usize, total: Option<u64>| {
        if s > 0 {
            numbers.end(total);
        }
        let Some(path) = paths.get(s) else { return Err(ErrorKind::Cancelled.into()) };
        let before = numbers.begin(path);
        let records = Records::open(path, args.print.payload)?.numbered(before);
        let progress = FileProgress::new(&bar, path, records.reader.stream().compression());
        Ok(GrepSource { records, progress, one_file: paths.len() == 1 })
    };
    let searched = if args.limit == Some(0) {
        Ok(None)
    } else {
        grep.run(paths.len(), open, |unit| report.unit(unit, &bar)).map(Some)
    };
    progress::end(&bar, searched.is_ok());
    let is_full = args.limit.is_some_and(|limit| report.found >= limit);
    let totals = match searched {
        Ok(totals) => totals,
        // The requested number of matches was found.
        Err(Failure::Error(e)) if is_full && matches!(e.kind(), ErrorKind::Cancelled) => None,
        Err(e) => return Err(e),
    };
    report.finish(totals.map_or_else(Vec::new, |totals| totals.unseen))
}

/// Counts of the current file.
#[derive(Default)]
struct FileCounts {
    shard: usize,
    records: u64,
    matches: u64,
    skipped: u64,
}

/// The output of a search.
struct GrepReport<'a> {
    args: &'a GrepArgs,
    paths: &'a [InputFile],
    printer: Printer,
    console: &'a mut Console,
    skipped: SkippedErrors,
    found: u64,
    file: FileCounts,
}

impl GrepReport<'_> {
    fn unit(&mut self, unit: MergedUnit<GrepUnit>, bar: &ProgressBar) -> Outcome {
        if unit.shard != self.file.shard {
            self.end_file()?;
            self.file.shard = unit.shard;
        }
        let name = self.paths.get(unit.shard).map(|path| records::name(path)).unwrap_or_default();
        let matches = unit.result.matches.as_slice();
        let left = self.args.limit.map_or(u64::MAX, |limit| limit - self.found);
        let taken = usize::try_from(left).map_or(matches, |left| matches.get(..left).unwrap_or(matches));
        self.found += taken.len() as u64;
        self.file.records += unit.records;
        self.file.matches += taken.len() as u64;
        self.file.skipped += unit.skipped.len() as u64;
        if !taken.is_empty() && !self.args.count {
            bar.suspend(|| taken.iter().try_for_each(|found| self.found(&unit.result, found, &name)))?;
        }
        unit.skipped.into_iter().for_each(|e| self.skipped.add(e));
        if self.args.limit.is_some_and(|limit| self.found >= limit) {
            return Err(tfseek::Error::from(ErrorKind::Cancelled).into());
        }
        match unit.error {
            None => Ok(()),
            // The condition does not fit the records.
            Some(e) if matches!(e.kind(), ErrorKind::Filter(_)) => Err(e.into()),
            Some(e) => bar.suspend(|| self.console.report_and_continue(Err(e.into()))),
        }
    }

    /// Prints a match.
    fn found(&mut self, unit: &GrepUnit, found: &tfseek_tools::grep::GrepMatch, name: &Path) -> Outcome {
        let record = unit.record(found, name);
        if self.args.shards {
            let name = self.console.listed(name);
            self.console.print(format_args!("{name}\n"))?;
            return self.console.end_record();
        }
        let index = found.number;
        if self.args.ids {
            let Some(index) = index else { return Err(unknown_number(name)) };
            self.console.print(format_args!("{index}\n"))?;
            return self.console.end_record();
        }
        let numbered = self.args.number && self.args.print.format == RecordFormat::Raw;
        if numbered {
            let Some(index) = index else { return Err(unknown_number(name)) };
            self.console.print(format_args!("{index}:"))?;
        }
        let strict = self.args.print.payload.kind != PayloadKind::Auto;
        // `get` does not take standard input, so its records have no number there.
        let index = index.filter(|_| !self.paths.iter().any(|path| path.path() == Path::new(records::STDIN)));
        self.printer
            .record(self.console, NumberedRecord { record, index, kind: found.kind, strict, step: None })?;
        if numbered {
            self.console.print("\n")?;
        }
        Ok(())
    }

    /// Prints the counts of the current file, with `--json`.
    fn end_file(&mut self) -> Outcome {
        let FileCounts { shard, records, matches, skipped } = std::mem::take(&mut self.file);
        if !self.args.json {
            return Ok(());
        }
        let name = self.paths.get(shard).map(|path| records::name(path)).unwrap_or_default();
        let line = json!({
            "file": name.to_string_lossy(), "records": records, "matches": matches, "skipped": skipped,
        });
        self.console.print(format_args!("{line}\n"))
    }

    fn finish(mut self, unseen: Vec<String>) -> Outcome {
        self.end_file()?;
        if self.args.count && !self.args.json {
            self.console.print(format_args!("{}\n", self.found))?;
        }
        unseen.iter().for_each(|feature| condition::unseen(feature, self.console));
        self.printer.finish(self.console);
        self.skipped.report(self.console)?;
        if self.found == 0 {
            self.console.set_exit_code(DATA);
        }
        Ok(())
    }
}

fn unknown_number(name: &Path) -> Failure {
    Failure::usage(format!(
        "{}: the number of records in the files before it is not known (run `tfseek index` on them)",
        name.display()
    ))
}

/// The records of a file, and their progress.
struct GrepSource<'a> {
    records: Records,
    progress: FileProgress<'a>,
    /// There is one file, so the number of a record in it is its number over all files.
    one_file: bool,
}

impl UnitSource for GrepSource<'_> {
    fn next(&mut self) -> tfseek::Result<Option<(Record<'_>, Option<u64>)>> {
        let Some(NumberedRecord { record, index, .. }) = self.records.next()? else { return Ok(None) };
        let at = record.at();
        if let Some(offset) = at.offset {
            self.progress.read_to(offset);
        }
        Ok(Some((record, index.or(at.record.filter(|_| self.one_file)))))
    }

    fn kind(&self) -> MessageKind {
        self.records.kind
    }

    fn name(&self) -> PathBuf {
        self.records.reader.stream().name().to_path_buf()
    }

    fn total(&self) -> Option<u64> {
        self.records.reader.total()
    }
}
