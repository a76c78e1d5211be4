//! `tfseek get`: prints records by number.

use crate::args::{self, AccessArgs, PathsArgs, PrintArgs, StepsArgs, WhereArgs};
use crate::condition::{Condition, RecordOutput};
use crate::console::Console;
use crate::damage::{self, Reading};
use crate::dataset::{self, Numbered};
use crate::exit::{Failure, Outcome, code_of};
use crate::features;
use crate::output::Printer;
use crate::store;
use crate::text;
use clap::Args;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};
use tfseek::ErrorKind;

#[derive(Debug, Args)]
pub(crate) struct GetArgs {
    /// Files, folders, patterns or sets, then record numbers: `7`, `-1` for the last, `3,7`, `10:20` or
    /// `10..20` (20 excluded), `10:`, `:10`
    #[arg(required = true, value_name = "PATHS.. RECORDS", allow_negative_numbers = true)]
    pub(crate) words: Vec<OsString>,
    /// Continue if shards of a set are missing
    #[arg(long)]
    pub(crate) allow_missing: bool,
    #[command(flatten)]
    pub(crate) print: PrintArgs,
    #[command(flatten)]
    pub(crate) select: WhereArgs,
    #[command(flatten)]
    pub(crate) steps: StepsArgs,
    #[command(flatten)]
    pub(crate) access: AccessArgs,
}

pub(crate) fn run(args: &GetArgs, console: &mut Console) -> Outcome {
    print(args, console).map_err(|e| damage::explain(e, Reading::ByNumber))
}

fn print(args: &GetArgs, console: &mut Console) -> Outcome {
    let words: Vec<OsString> = args.words.iter().map(args::unmarked).collect();
    // Paths precede numbers. The last word that is not a number is a path, and so are all words before it.
    let numbers: Vec<_> = words.iter().map(|word| word.to_str().and_then(RecordRange::parse_list)).collect();
    let count = numbers.iter().rev().take_while(|ranges| ranges.is_some()).count();
    let (paths, texts) = words.split_at(words.len() - count);
    let Some(last) = paths.last() else {
        return Err(Failure::usage(
            "expected a path before the record numbers; a file whose name is a number is `./7`",
        ));
    };
    check_paths(paths, &numbers)?;
    if texts.is_empty() {
        return Err(Failure::usage(format!(
            "expected record numbers after the paths: {NUMBERS}; found `{}`",
            last.display()
        )));
    }
    let printer = Printer::new(&args.print)?;
    let lists = numbers.into_iter().skip(paths.len()).flatten();
    let paths = paths.iter().map(PathBuf::from).collect();
    let paths = PathsArgs { paths, allow_missing: args.allow_missing };
    let payload = args.print.payload_of(&args.select);
    let dataset = dataset::open(&paths, &args.access, payload.read, console)?;
    let mut records = Numbered::new(dataset, payload.kind);
    let shards = records.dataset.shards().len();
    let mut features = features::find(records.dataset.shards().map(|shard| shard.path), console);
    if args.steps.is_set() {
        let first = records.dataset.shards().next().map(|shard| shard.path);
        let of_records = features::of_episodes(&features, first, args.steps.feature())?;
        (records, features) = records.into_steps(&of_records, args.steps.feature(), console)?;
    }
    let len = records.dataset.len();
    let what = if args.steps.is_set() { "step" } else { "record" };
    let mut ranges = Vec::new();
    for (word, list) in texts.iter().zip(lists) {
        for range in list {
            let found = range.resolve(what, len).map_err(|e| outside(word, range, e))?;
            if found.is_empty() {
                let word = word.display();
                let all = text::count(len, what);
                console.note(format_args!("tfseek: `{word}`: the range {range} of {all} is empty"));
            }
            ranges.push(found);
        }
    }
    let printer = printer.for_files(shards > 1, &features);
    let condition = Condition::new(&args.select, shards, &features)?;
    let mut output = RecordOutput::new(condition, printer, args.print.payload.read, console);
    output.condition.compare_numbered(&mut records)?;
    for i in ranges.into_iter().flatten() {
        let item = records.get(i)?;
        if output.accepts(&item)? {
            output.print(item)?;
        }
    }
    output.finish()
}

const NUMBERS: &str = "`7`, `-1` for the last, `3,7`, `10:20`, `10:`, `:10`";

/// Checks the paths for misspelt record numbers. `numbers` has the record numbers of each word, if it has
/// that form. A word that resembles a number is never a path by accident.
fn check_paths(paths: &[OsString], numbers: &[Option<Vec<RecordRange>>]) -> Outcome {
    let mut after_number = false;
    for (word, ranges) in paths.iter().zip(numbers).skip(1) {
        let exists = Path::new(word).exists() || store::is_object(Path::new(word));
        let number_like = word.to_str().is_some_and(|text| {
            text.starts_with(|c: char| c.is_ascii_digit() || "-:".contains(c))
                && !text.contains(['*', '?', '[', '{', '@'])
        });
        if ranges.is_none() && !exists && (after_number || number_like) {
            let word = word.display();
            return Err(Failure::usage(format!(
                "expected record numbers or an existing path, found `{word}`: {NUMBERS}"
            )));
        }
        after_number |= ranges.is_some() && !exists;
    }
    Ok(())
}

/// Returns the error of a record number beyond the dataset. It names the word, unless the word is the record
/// number.
fn outside(word: &OsStr, range: RecordRange, e: tfseek::Error) -> Failure {
    match range {
        RecordRange::Single(i) if word == i.to_string().as_str() => e.into(),
        _ => Failure::Message(code_of(&e), format!("`{}`: {e}", word.display())),
    }
}

/// A record number or a range of record numbers. Negative numbers count from the end. A range ends where the
/// records do, as in NumPy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RecordRange {
    Single(i64),
    Range(Option<i64>, Option<i64>),
}

impl RecordRange {
    /// Parses a word: record numbers and ranges between commas.
    fn parse_list(word: &str) -> Option<Vec<RecordRange>> {
        word.split(',').map(RecordRange::parse).collect()
    }

    fn parse(word: &str) -> Option<RecordRange> {
        let end = |text: &str| match text {
            "" => Some(None),
            number => number.parse().ok().map(Some),
        };
        match word.split_once("..").or_else(|| word.split_once(':')) {
            None => word.parse().ok().map(RecordRange::Single),
            // `..` is the parent folder.
            Some(("", "")) if word == ".." => None,
            Some((from, to)) => Some(RecordRange::Range(end(from)?, end(to)?)),
        }
    }

    fn resolve(self, what: &'static str, len: u64) -> tfseek::Result<Range<u64>> {
        let from_end = |i: i64| if i < 0 { len.checked_sub(i.unsigned_abs()) } else { Some(i as u64) };
        match self {
            RecordRange::Single(i) => {
                let found = from_end(i).filter(|&i| i < len);
                let i = found.ok_or(ErrorKind::OutOfRange { what, i: i.into(), len })?;
                Ok(i..i + 1)
            }
            RecordRange::Range(from, to) => {
                let end = |i: i64| from_end(i).unwrap_or(0).min(len);
                Ok(from.map_or(0, end)..to.map_or(len, end))
            }
        }
    }
}

impl fmt::Display for RecordRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RecordRange::Single(i) => i.fmt(f),
            RecordRange::Range(from, to) => {
                let end = |end: &Option<i64>| end.map_or_else(String::new, |i| i.to_string());
                write!(f, "{}:{}", end(from), end(to))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::RecordRange;

    #[test]
    fn numbers_and_ranges() {
        let range = |word, len| RecordRange::parse(word).map(|range| range.resolve("record", len).ok());
        assert_eq!(range("7", 10), Some(Some(7..8)));
        assert_eq!(range("-1", 10), Some(Some(9..10)));
        assert_eq!(range("3..5", 10), Some(Some(3..5)));
        assert_eq!(range("..5", 10), Some(Some(0..5)));
        assert_eq!(range("-3..", 10), Some(Some(7..10)));
        assert_eq!(range("10..", 10), Some(Some(10..10)));
        assert_eq!(range("3:5", 10), Some(Some(3..5)));
        assert_eq!(range(":5", 10), Some(Some(0..5)));
        assert_eq!(range("-3:-1", 10), Some(Some(7..9)));
        assert_eq!(range(":", 10), Some(Some(0..10)));
        let list = RecordRange::parse_list("3,-1,0:2").map(|list| list.len());
        assert_eq!(list, Some(3));
        for path in ["", "3,", ",3", "3,a", "1:2:3", "1:2..3"] {
            assert_eq!(RecordRange::parse_list(path), None, "{path}");
        }
        for outside in ["10", "-11", "9223372036854775807"] {
            assert_eq!(range(outside, 10), Some(None), "{outside}");
        }
        for (clipped, want) in [
            ("8:100", 8..10),
            ("-11..", 0..10),
            ("-100:-9", 0..1),
            ("3..9223372036854775807", 3..10),
            ("20:30", 10..10),
            ("-20:-15", 0..0),
        ] {
            assert_eq!(range(clipped, 10), Some(Some(want)), "{clipped}");
        }
        assert!(range("5:2", 10).flatten().is_some_and(|range| range.is_empty()));
        for path in ["..", "a", "1..b", "x..", "../7", "7.tfrecord"] {
            assert_eq!(range(path, 10), None, "{path}");
        }
    }
}
