//! The fuzz target `dataset_info`.

use std::collections::BTreeSet;
use std::ops::Range;
use std::path::Component;
use tfseek_tfds::{DatasetInfo, Rounding, SplitInfo, TfdsError};

/// Number of shards of which paths are compared.
const PATHS: u64 = 20;

/// Reads a `dataset_info.json`, which a line with split specifications follows. Paths of shards differ and
/// are below the folder. A specification selects records of its splits or is refused with a short message,
/// and a split divided by a percent has all records.
#[allow(unreachable_pub, reason = "the crate of the fuzz targets exports it")]
pub fn dataset_info(bytes: &[u8]) {
    let (text, specs) = match bytes.iter().rposition(|byte| *byte == b'\n') {
        Some(at) => (&bytes[..at], String::from_utf8_lossy(&bytes[at + 1..])),
        None => (bytes, "".into()),
    };
    let info = match DatasetInfo::parse(text) {
        Ok(info) => info,
        Err(e) => return refused(&e),
    };
    let _ = info.title();
    info.splits.iter().for_each(paths);
    for spec in specs.split(';').take(20) {
        for rounding in [Rounding::Closest, Rounding::Pct1DropRemainder] {
            match info.select(spec, rounding) {
                Ok(ranges) => ranges.iter().for_each(|range| inside(&info, range)),
                Err(e) => refused(&e),
            }
        }
    }
    if let Ok(all) = info.select("all", Rounding::Closest) {
        assert_eq!(all.len(), info.splits.len());
        all.iter().for_each(|range| assert_eq!(Some(len(&range.1)), info.splits[range.0].records()));
    }
    for (number, split) in info.splits.iter().enumerate().take(20) {
        divided(&info, number, split);
    }
}

/// A message is short, however long the file is.
fn refused(e: &TfdsError) {
    let message = e.to_string();
    assert!(!message.is_empty() && message.len() < 10_000, "{message}");
}

fn paths(split: &SplitInfo) {
    let shards = split.shards().unwrap_or(3);
    let all: Vec<_> = (0..shards.min(PATHS)).map(|shard| split.shard_path(shard, shards)).collect();
    for path in &all {
        assert!(path.as_os_str().len() <= 1 << 19 && !path.as_os_str().is_empty());
        assert!(path.components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir)));
    }
    // Either all have the same name, or each has its own.
    let names = all.iter().collect::<BTreeSet<_>>().len();
    assert!(names == all.len() || names == 1, "{all:?}");
}

fn len(range: &Range<u64>) -> u64 {
    range.end - range.start
}

fn inside(info: &DatasetInfo, (split, range): &(usize, Range<u64>)) {
    assert!(
        range.start <= range.end && Some(range.end) <= info.splits[*split].records(),
        "{split} {range:?}"
    );
}

/// The records before and after a percent are all records.
fn divided(info: &DatasetInfo, number: usize, split: &SplitInfo) {
    let Some(n) = split.records() else { return };
    // A name with other characters cannot be selected, and the first of two equal names is.
    let is_first = info.splits.iter().position(|other| other.name == split.name) == Some(number);
    let is_name = split.name.chars().all(|c| c.is_alphanumeric() || c == '_' || c == '-');
    if !is_first || !is_name || split.name == "all" {
        return;
    }
    for percent in [0, 1, 33, 50, 99, 100] {
        let part = |sel: &str| {
            let spec = format!("{}[{sel}]", split.name);
            let found = info.select(&spec, Rounding::Closest).unwrap();
            assert!(found.len() == 1 && found[0].0 == number);
            found[0].1.clone()
        };
        let (before, after) = (part(&format!(":{percent}%")), part(&format!("{percent}%:")));
        assert_eq!((before.start, before.end, after.end), (0, after.start, n));
    }
}
