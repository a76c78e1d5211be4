//! `tfseek get`: records by number.

use crate::args::{self, Global, Paths};
use crate::console::Console;
use crate::dataset::Numbered;
use crate::exit::{Failure, Outcome};
use crate::output::Printer;
use std::ops::Range;
use std::path::PathBuf;
use tfseek::ErrorKind;

pub(crate) fn run(args: &args::Get, global: &Global, console: &mut Console) -> Outcome {
    // Paths first, numbers last: the last word that is no number is a path, and so are all before it.
    let picks: Vec<Option<Pick>> = args.words.iter().map(|w| w.to_str().and_then(Pick::parse)).collect();
    let numbers = picks.iter().rev().take_while(|pick| pick.is_some()).count();
    let (paths, _) = args.words.split_at_checked(args.words.len() - numbers).unwrap_or_default();
    if paths.is_empty() {
        return Err(Failure::usage("only numbers, and no path; a file whose name is a number is `./7`"));
    }
    let picks: Vec<Pick> = picks.into_iter().skip(paths.len()).flatten().collect();
    if picks.is_empty() {
        return Err(Failure::usage("which records? `7`, `-1` for the last, `10..20`, `10..`, `..10`"));
    }
    let paths = paths.iter().map(PathBuf::from).collect();
    let paths = Paths { paths, allow_missing: args.allow_missing };
    let mut records = Numbered::open(&paths, &args.access, args.print.kind, global, console)?;
    let len = records.dataset.len();
    let many = records.dataset.shards().len() > 1;
    let printer = Printer::new(args.print.format, args.print.full, global, many);
    for pick in picks {
        for i in pick.range(len)? {
            printer.record(console, records.get(i)?)?;
        }
    }
    Ok(())
}

/// A number or a range of them, negative ones from the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pick {
    One(i64),
    Range(Option<i64>, Option<i64>),
}

impl Pick {
    fn parse(word: &str) -> Option<Pick> {
        let end = |text: &str| match text {
            "" => Some(None),
            number => number.parse().ok().map(Some),
        };
        match word.split_once("..") {
            None => word.parse().ok().map(Pick::One),
            // Two dots alone are the folder above.
            Some(("", "")) => None,
            Some((from, to)) => Some(Pick::Range(end(from)?, end(to)?)),
        }
    }

    fn range(self, len: u64) -> tfseek::Result<Range<u64>> {
        let from_end = |i: i64| if i < 0 { len.checked_sub(i.unsigned_abs()) } else { Some(i as u64) };
        let outside =
            |i: i64| -> tfseek::Error { ErrorKind::OutOfRange { what: "record", i: i.into(), len }.into() };
        match self {
            Pick::One(i) => {
                let i = from_end(i).filter(|&i| i < len).ok_or_else(|| outside(i))?;
                Ok(i..i + 1)
            }
            Pick::Range(from, to) => {
                let end = |i: i64| from_end(i).filter(|&i| i <= len).ok_or_else(|| outside(i));
                Ok(from.map_or(Ok(0), end)?..to.map_or(Ok(len), end)?)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Pick;

    #[test]
    fn numbers_and_ranges() {
        let range = |word, len| Pick::parse(word).map(|p| p.range(len).ok());
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
