//! `tfseek get`: prints records by number.

use crate::args::{self, GlobalArgs, PathsArgs};
use crate::console::Console;
use crate::dataset::Numbered;
use crate::exit::{Failure, Outcome};
use crate::output::Printer;
use std::ops::Range;
use std::path::PathBuf;
use tfseek::ErrorKind;

pub(crate) fn run(args: &args::GetArgs, global: &GlobalArgs, console: &mut Console) -> Outcome {
    // Paths precede numbers. The last word that is not a number is a path, and so are all words before it.
    let words: Vec<_> = args.words.iter().map(|word| word.to_str().and_then(RecordRange::parse)).collect();
    let numbers = words.iter().rev().take_while(|range| range.is_some()).count();
    let (paths, _) = args.words.split_at_checked(args.words.len() - numbers).unwrap_or_default();
    if paths.is_empty() {
        return Err(Failure::usage(
            "expected a path before the record numbers; a file whose name is a number is `./7`",
        ));
    }
    let ranges: Vec<RecordRange> = words.into_iter().skip(paths.len()).flatten().collect();
    if ranges.is_empty() {
        return Err(Failure::usage(
            "expected record numbers after the paths: `7`, `-1` for the last, `10..20`, `10..`, `..10`",
        ));
    }
    let paths = paths.iter().map(PathBuf::from).collect();
    let paths = PathsArgs { paths, allow_missing: args.allow_missing };
    let mut records = Numbered::open(&paths, &args.access, args.print.payload, global, console)?;
    let len = records.dataset.len();
    let many_files = records.dataset.shards().len() > 1;
    let printer = Printer::new(args.print.format, args.print.full, global, many_files);
    for range in ranges {
        for i in range.resolve(len)? {
            printer.record(console, records.get(i)?)?;
        }
    }
    Ok(())
}

/// A record number or a range of record numbers. Negative numbers count from the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RecordRange {
    Single(i64),
    Range(Option<i64>, Option<i64>),
}

impl RecordRange {
    fn parse(word: &str) -> Option<RecordRange> {
        let end = |text: &str| match text {
            "" => Some(None),
            number => number.parse().ok().map(Some),
        };
        match word.split_once("..") {
            None => word.parse().ok().map(RecordRange::Single),
            // `..` is the parent folder.
            Some(("", "")) => None,
            Some((from, to)) => Some(RecordRange::Range(end(from)?, end(to)?)),
        }
    }

    fn resolve(self, len: u64) -> tfseek::Result<Range<u64>> {
        let from_end = |i: i64| if i < 0 { len.checked_sub(i.unsigned_abs()) } else { Some(i as u64) };
        let outside =
            |i: i64| -> tfseek::Error { ErrorKind::OutOfRange { what: "record", i: i.into(), len }.into() };
        match self {
            RecordRange::Single(i) => {
                let i = from_end(i).filter(|&i| i < len).ok_or_else(|| outside(i))?;
                Ok(i..i + 1)
            }
            RecordRange::Range(from, to) => {
                let end = |i: i64| from_end(i).filter(|&i| i <= len).ok_or_else(|| outside(i));
                Ok(from.map_or(Ok(0), end)?..to.map_or(Ok(len), end)?)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::RecordRange;

    #[test]
    fn numbers_and_ranges() {
        let range = |word, len| RecordRange::parse(word).map(|range| range.resolve(len).ok());
        assert_eq!(range("7", 10), Some(Some(7..8)));
        assert_eq!(range("-1", 10), Some(Some(9..10)));
        assert_eq!(range("3..5", 10), Some(Some(3..5)));
        assert_eq!(range("..5", 10), Some(Some(0..5)));
        assert_eq!(range("-3..", 10), Some(Some(7..10)));
        assert_eq!(range("10..", 10), Some(Some(10..10)));
        for outside in ["10", "-11", "3..11", "-11..", "9223372036854775807"] {
            assert_eq!(range(outside, 10), Some(None), "{outside}");
        }
        for path in ["..", "a", "1..b", "x..", "../7", "7.tfrecord"] {
            assert_eq!(range(path, 10), None, "{path}");
        }
    }
}
