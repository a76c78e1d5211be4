//! The splits that a `dataset_info.json` of TensorFlow Datasets states, and how files differ from them.

use crate::args::PathsArgs;
use crate::bytes::Key;
use crate::console::{BOLD, Console, DIM};
use crate::exit::Outcome;
use crate::records;
use crate::text::count;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use tfseek_tfds::{CheckedInfo, FileSplit, SplitCheck};

/// The comparison of a verb's files with the `dataset_info.json` of their folders.
pub(crate) struct Splits {
    check: SplitCheck,
    /// Folders that were given as such. Their splits should be complete.
    folders: Vec<PathBuf>,
}

impl Splits {
    /// Begins a comparison, and prints warnings about the folders among the paths.
    pub(crate) fn new(paths: &PathsArgs, console: &mut Console) -> Splits {
        let mut folders: Vec<_> = paths.paths.iter().filter(|path| path.is_dir()).cloned().collect();
        let mut check = SplitCheck::default();
        folders.iter().for_each(|folder| check.add_folder(folder));
        if paths.allow_missing {
            folders.clear();
        }
        let mut splits = Splits { check, folders };
        splits.warn(console);
        splits
    }

    /// Adds a file with its number of records, if they could be counted. Returns the split that it belongs to by its name.
    pub(crate) fn add(
        &mut self,
        path: &Path,
        records: Option<u64>,
        console: &mut Console,
    ) -> Option<FileSplit> {
        let found = records::is_regular(path).then(|| self.check.add(path, records));
        self.warn(console);
        found.flatten()
    }

    /// Returns the shards that are missing in the folders, one message per split.
    pub(crate) fn missing(&self) -> Vec<String> {
        let missing = self.folders.iter().flat_map(|folder| self.check.missing(folder));
        missing.map(|text| format!("{text} (`--allow-missing` continues without them)")).collect()
    }

    fn warn(&mut self, console: &mut Console) {
        for warning in std::mem::take(&mut self.check.warnings) {
            console.note(format_args!("tfseek: {warning}"));
        }
    }

    /// Prints the splits of each dataset with the records and shards that were found.
    pub(crate) fn print_table(&self, console: &mut Console) -> Outcome {
        let (bold, dim) = (console.style(BOLD), console.style(DIM));
        for checked in &self.check.infos {
            let (title, path) = (checked.info.title(), checked.path());
            console.print(format_args!(
                "{bold}{title}{bold:#}  {dim}{}{dim:#}\n",
                tfseek::error::printable(&path)
            ))?;
            let mut rows = vec![["records", "expected", "shards", "split"].map(str::to_owned)];
            for (split, found) in checked.info.splits.iter().zip(&checked.splits) {
                let number = |n: Option<u64>| n.map_or("-".to_owned(), |n| n.to_string());
                let shards = split.shards().map_or(String::new(), |n| format!(" of {n}"));
                rows.push([
                    number(found.records),
                    number(split.records()),
                    format!("{}{shards}", found.shards),
                    Key(&split.name).to_string(),
                ]);
            }
            let width =
                |k: usize| rows.iter().filter_map(|row| row.get(k)).map(String::len).max().unwrap_or(0);
            let (a, b, c) = (width(0), width(1), width(2));
            for (k, [records, expected, shards, split]) in rows.iter().enumerate() {
                let style = if k == 0 { dim } else { anstyle::Style::new() };
                let row = format!("{records:>a$}  {expected:>b$}  {shards:>c$}  {split}");
                console.print(format_args!("  {style}{row}{style:#}\n"))?;
            }
            if checked.other_files > 0 {
                let files = count(checked.other_files, "file");
                console.print(format_args!("  {dim}{files} in no split{dim:#}\n"))?;
            }
        }
        Ok(())
    }

    /// Prints one line for each dataset without a difference.
    pub(crate) fn print_agreement(&self, console: &mut Console) -> Outcome {
        for checked in self.check.infos.iter().filter(|checked| agrees(checked)) {
            let all = checked.info.splits.iter().zip(&checked.splits).filter(|(_, found)| found.shards > 0);
            let counts: Vec<_> = all
                .map(|(split, found)| format!("{} {}", Key(&split.name), found.records.unwrap_or(0)))
                .collect();
            let (path, counts) = (checked.path(), counts.join(", "));
            console.print(format_args!("records as in {}: {counts}\n", tfseek::error::printable(&path)))?;
        }
        Ok(())
    }
}

/// Returns true if all records of the files of a dataset were compared, and none differs.
fn agrees(checked: &CheckedInfo) -> bool {
    let mut all = checked.info.splits.iter().zip(&checked.splits).filter(|(_, found)| found.shards > 0);
    checked.differences == 0
        && checked.splits.iter().any(|found| found.shards > 0)
        && all.all(|(split, found)| split.shard_lengths.is_some() && found.records.is_some())
}

/// Returns the split of a file as text.
pub(crate) fn text(split: &FileSplit) -> String {
    let of = split.shards.map_or(String::new(), |n| format!(" of {n}"));
    let shard = split.shard.map_or("not one of its shards".to_owned(), |shard| format!("shard {shard}{of}"));
    format!("{}, {shard}, {}", Key(&split.split), split.dataset)
}

/// Returns the split of a file, its number in it, and the number of records that it should have, as JSON.
pub(crate) fn as_json(split: Option<&FileSplit>) -> Value {
    split.map_or(Value::Null, |split| {
        json!({
            "dataset": split.dataset,
            "name": split.split,
            "shard": split.shard,
            "shards": split.shards,
            "records": split.records,
        })
    })
}
