//! The splits that a `dataset_info.json` of TensorFlow Datasets states, and how files differ from them.

use crate::args::PathsArgs;
use crate::bytes::Key;
use crate::console::{BOLD, Console, DIM};
use crate::exit::Outcome;
use crate::records;
use crate::store;
use crate::text::{count, widths};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use tfseek_tfds::{FileSplit, FoundFeatures, LeafClass, SplitCheck, StoredFeature};

/// Number of names of a label's classes that are printed.
const FIRST_NAMES: usize = 5;

/// The comparison of a verb's files with the `dataset_info.json` of their folders.
pub(crate) struct Splits {
    check: SplitCheck,
    /// Folders that were given as such. Their splits should be complete.
    folders: Vec<PathBuf>,
}

impl Splits {
    /// Begins a comparison, and prints warnings about the folders among the paths.
    pub(crate) fn new(paths: &PathsArgs, console: &mut Console) -> Splits {
        let mut folders: Vec<_> = paths.paths.iter().filter(|path| store::is_folder(path)).cloned().collect();
        let mut check = SplitCheck::new(store::store());
        folders.iter().for_each(|folder| check.add_folder(folder));
        if paths.allow_missing {
            folders.clear();
        }
        let mut splits = Splits { check, folders };
        splits.warn(console);
        splits
    }

    /// Adds a file with its number of records, if they could be counted. Returns the split that it belongs to
    /// by its name.
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
        let bold = console.style(BOLD);
        let dim = console.style(DIM);
        for checked in &self.check.infos {
            let title = checked.info.title();
            let path = checked.path();
            let config = checked.info.config.as_deref();
            let config = config.map_or(String::new(), |config| format!("config {}, ", Key(config)));
            console.print(format_args!(
                "{bold}{title}{bold:#}  {dim}{config}{}{dim:#}\n",
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
            let [a, b, c, _] = widths(rows.iter().map(|row| row.each_ref().map(String::len)));
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

    /// Prints one line for each dataset of whose files all records were compared, and none differs.
    pub(crate) fn print_agreement(&self, console: &mut Console) -> Outcome {
        for checked in &self.check.infos {
            let all = checked.info.splits.iter().zip(&checked.splits);
            let all: Vec<_> = all.filter(|(_, found)| found.shards > 0).collect();
            let is_compared =
                all.iter().all(|(split, found)| split.shard_lengths.is_some() && found.records.is_some());
            if all.is_empty() || !is_compared || checked.differences > 0 {
                continue;
            }
            let counts: Vec<_> = all
                .iter()
                .map(|(split, found)| format!("{} {}", Key(&split.name), found.records.unwrap_or(0)))
                .collect();
            let path = checked.path();
            let counts = counts.join(", ");
            console.print(format_args!("records as in {}: {counts}\n", tfseek::error::printable(&path)))?;
        }
        Ok(())
    }
}

/// Prints the features of a `features.json`, one per line.
pub(crate) fn print_features(found: &FoundFeatures, indent: &str, console: &mut Console) -> Outcome {
    const MAX_WIDTH: usize = 40;
    let Some(features) = &found.features else { return Ok(()) };
    let dim = console.style(DIM);
    let rows: Vec<_> =
        features.stored().iter().map(|one| (one.path.clone(), one.to_string(), note(one))).collect();
    let paths = rows.iter().map(|(path, ..)| Key(path).width().min(MAX_WIDTH)).max().unwrap_or(0);
    let shapes = rows.iter().map(|(_, shape, _)| shape.chars().count().min(MAX_WIDTH)).max().unwrap_or(0);
    console.print(format_args!("{indent}{dim}features{dim:#}\n"))?;
    for (path, shape, note) in rows {
        let pad = paths.saturating_sub(Key(&path).width());
        let row = format!("{indent}  {}{:pad$}  {dim}{shape:shapes$}  {note}", Key(&path), "");
        console.print(format_args!("{}{dim:#}\n", row.trim_end()))?;
    }
    Ok(())
}

/// Returns what the type of a feature does not tell: the first names of its classes, the order of its sides,
/// its sample rate.
fn note(stored: &StoredFeature<'_>) -> String {
    match &stored.leaf.class {
        LeafClass::Label(labels) | LeafClass::Image(Some(labels)) => {
            let names = labels.names.as_deref().unwrap_or_default();
            let mut first: Vec<_> =
                names.iter().take(FIRST_NAMES).map(|name| Key(name).to_string()).collect();
            first.extend((names.len() > FIRST_NAMES).then(|| "..".to_owned()));
            first.join(", ")
        }
        LeafClass::Box(order) => order.escape_debug().to_string(),
        LeafClass::Audio { sample_rate, .. } if *sample_rate > 0 => format!("{sample_rate} Hz"),
        _ => String::new(),
    }
}

/// Returns the features of a `features.json` as an object, by their paths.
pub(crate) fn features_json(found: &FoundFeatures) -> Value {
    let Some(features) = &found.features else { return Value::Null };
    let stored = features.stored().into_iter();
    let entry = |stored: StoredFeature<'_>| {
        let leaf = stored.leaf;
        let labels = match &leaf.class {
            LeafClass::Label(labels) | LeafClass::Image(Some(labels)) => Some(labels),
            _ => None,
        };
        let names = labels.and_then(|labels| labels.names.as_deref());
        let value = json!({
            "key": stored.name,
            "class": leaf.class.name(),
            "dtype": leaf.dtype.to_string(),
            "shape": leaf.shape,
            "encoding": leaf.encoding.to_string(),
            "optional": leaf.optional,
            // From the outermost. Null for any length.
            "sequences": stored.sequences.iter().map(|sequence| sequence.length).collect::<Vec<_>>(),
            "steps": stored.sequences.iter().any(|sequence| sequence.steps),
            "classes": labels.and_then(|labels| labels.classes),
            "first_names": names.map(|names| names.iter().take(FIRST_NAMES).collect::<Vec<_>>()),
        });
        (stored.path, value)
    };
    Value::Object(stored.map(entry).collect())
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
