//! Copies of a prepared data set: its files, and a `dataset_info.json` for other shards.

use crate::builder::Split;
use crate::check::wrong_count;
use crate::error::{Result, TfdsError, TfdsErrorKind};
use crate::info::{DatasetInfo, content};
use crate::json::{field_name, set_field};
use crate::metadata::{SetMetadata, WrittenSplit, json_text};
use crate::set_folder::{SetFolder, with_store};
use crate::splits::{Rounding, Spec};
use serde_json::Value;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tfseek::io::Store;
use tfseek::{Damage, Dataset};

/// A prepared data set in the folder of its version, of which a copy with other shards is made.
#[derive(Clone, Debug)]
pub struct CopySource {
    metadata: SetMetadata,
    splits: Vec<Split>,
}

impl CopySource {
    /// Opens a folder, or the folder of a URL in `store`. `None` if it has no `dataset_info.json`.
    ///
    /// # Errors
    /// - [`TfdsErrorKind::Info`] for a `dataset_info.json` with another content, and for another format than
    ///   TFRecord
    /// - [`TfdsErrorKind::Folder`] for missing shards
    /// - I/O errors
    pub fn open(folder: &Path, store: Option<&Arc<dyn Store>>) -> Result<Option<CopySource>> {
        let folder = SetFolder::new(folder, &with_store(store))?;
        // In a store the shards are found by one listing, which also tells whether there is a file to read.
        if folder.is_remote() {
            folder.find(DatasetInfo::FILE_NAME)?;
        }
        let Some(metadata) = SetMetadata::open(folder)? else { return Ok(None) };
        let located = |e: TfdsError| e.at(&metadata.info_path());
        let splits = metadata.info.splits.iter().enumerate();
        let splits = splits.map(|(k, split)| Split::find(&metadata.folder, k, split));
        let splits = splits.collect::<Result<Vec<Split>>>().map_err(located)?;
        if splits.iter().all(|split| split.shards.is_empty()) {
            return Err(located(content("splits", "expected at least one shard, found none")));
        }
        Ok(Some(CopySource { metadata, splits }))
    }

    /// Returns the files other than the shards.
    pub fn metadata(&self) -> &SetMetadata {
        &self.metadata
    }

    /// Returns the splits.
    pub fn splits(&self) -> &[Split] {
        &self.splits
    }

    /// Returns the paths of all shards, split by split.
    pub fn shards(&self) -> Vec<PathBuf> {
        self.splits.iter().flat_map(|split| &split.shards).cloned().collect()
    }

    /// Returns the paths of `count` shards of a split, relative to the folder of a copy. `None` if its names
    /// have no number of a shard, and there are several.
    pub fn shard_paths(&self, split: usize, count: u64) -> Option<Vec<PathBuf>> {
        let split = self.metadata.info.splits.get(split)?;
        let is_named = count <= 1 || split.template.is_numbered();
        is_named.then(|| (0..count).map(|shard| split.shard_path(shard, count)).collect())
    }

    /// Compares the dataset of all shards with `dataset_info.json`. Returns the number of records up to the
    /// end of each split.
    ///
    /// # Errors
    /// [`TfdsErrorKind::Info`] for a shard with another number of records. If damage is skipped, it may have
    /// fewer.
    pub fn ends(&self, ds: &Dataset) -> Result<Vec<u64>> {
        let mut shards = ds.shards();
        let mut end = 0u64;
        let mut ends = Vec::new();
        for split in &self.splits {
            for shard in 0..split.shards.len() {
                let Some(found) = shards.next() else {
                    let reason = format!("expected all shards, found {}", ds.shards().count());
                    return Err(TfdsErrorKind::Options { reason }.into());
                };
                let expected = split.shard_lengths.as_ref().and_then(|lengths| lengths.get(shard));
                if let Some(&expected) = expected
                    && found.len != expected
                    && !(ds.damage() == Damage::Skip && found.len < expected)
                {
                    let text = wrong_count(expected, found.len, shard as u64, &split.name);
                    let info = self.metadata.info_path();
                    let reason = format!("{text}, by {}", tfseek::error::printable(&info));
                    return Err(content("", reason).at(found.path));
                }
                end += found.len;
            }
            ends.push(end);
        }
        Ok(ends)
    }

    /// Returns the records that a specification such as `train[:80%]+test` selects, as numbers of splits and
    /// of records in them. No shard is opened: the numbers of records come from `dataset_info.json`.
    ///
    /// # Errors
    /// [`TfdsErrorKind::Split`]. [`TfdsErrorKind::Info`] for a part of a split without numbers of records.
    pub fn select(&self, spec: &str) -> Result<Vec<(usize, Range<u64>)>> {
        let spec = Spec::parse(spec, self.splits.iter().map(|split| split.name.as_str()))?;
        for k in spec.splits() {
            if let Some(split) = self.splits.get(k).filter(|split| split.shard_lengths.is_none()) {
                let reason =
                    format!("expected numbers of records for a part of split {}, found none", split.name);
                let e = content(format!("splits[{k}].shardLengths"), reason);
                return Err(e.at(&self.metadata.info_path()));
            }
        }
        let lengths = |k: usize| self.splits.get(k).and_then(|split| split.shard_lengths.as_deref());
        spec.ranges(|k| lengths(k).unwrap_or_default(), Rounding::Closest)
    }

    /// Returns the text of a `dataset_info.json` for other shards, one entry per split in the order of the
    /// source. A split that is `None` is left out. All other fields are the source's, except for the
    /// statistics of a split whose number of records differs.
    pub fn info_text(&self, splits: &[Option<WrittenSplit>]) -> String {
        let mut fields = self.metadata.fields.clone();
        let mut entries =
            field_name(&fields, "splits").and_then(|name| fields.get_mut(&name)?.as_array_mut());
        let objects = entries.iter_mut().flat_map(|entries| entries.iter_mut());
        let objects = objects.filter_map(Value::as_object_mut);
        for ((entry, copied), info) in objects.zip(splits).zip(&self.metadata.info.splits) {
            let Some(copied) = copied else { continue };
            let lengths = copied.shard_lengths.iter().map(|n| Value::String(n.to_string()));
            set_field(entry, "shardLengths", lengths.collect());
            set_field(entry, "numBytes", Value::String(copied.num_bytes.to_string()));
            let shards = copied.shard_lengths.len();
            if let Some(name) = field_name(entry, "numShards") {
                entry.insert(name, Value::String(shards.to_string()));
            }
            let records = copied.shard_lengths.iter().try_fold(0u64, |sum, &n| sum.checked_add(n));
            if records != info.records()
                && let Some(name) = field_name(entry, "statistics")
            {
                entry.remove(&name);
            }
        }
        if let Some(entries) = &mut entries {
            let mut kept = splits.iter().map(Option::is_some);
            entries.retain(|_| kept.next().unwrap_or(true));
        }
        json_text(fields)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn folder(info: &str, files: &[&str]) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("dataset_info.json"), info).unwrap();
        for file in files {
            let path = dir.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        }
        dir
    }

    /// Fields keep their names, in either case of letters, and all others their values.
    #[test]
    fn other_fields_are_kept() {
        let info = r#"{"name": "x", "unknown": [1.5, {"a": null}, "\u00e9"], "splits": [
            {"name": "a", "shard_lengths": ["2"], "num_shards": 1, "statistics": {"n": "1"}, "filepathTemplate": "{SPLIT}-{SHARD_INDEX}"},
            {"name": "b", "shardLengths": [3], "statistics": {"n": "2"}}]}"#;
        let dir = folder(info, &["a-00000", "x-b.tfrecord-00000-of-00001"]);
        let source = CopySource::open(dir.path(), None).unwrap().unwrap();
        let copied = |lengths: &[u64]| {
            let name = String::new();
            let shard_lengths = lengths.to_vec();
            Some(WrittenSplit { name, shard_lengths, num_bytes: 7 })
        };
        let text = source.info_text(&[copied(&[1, 0]), copied(&[1, 2])]);
        let found: Value = serde_json::from_str(&text).unwrap();
        let expected = serde_json::from_str::<Value>(
            r#"{"name": "x", "unknown": [1.5, {"a": null}, "é"], "splits": [
            {"name": "a", "shard_lengths": ["1", "0"], "num_shards": "2", "numBytes": "7", "filepathTemplate": "{SPLIT}-{SHARD_INDEX}"},
            {"name": "b", "shardLengths": ["1", "2"], "numBytes": "7", "statistics": {"n": "2"}}]}"#,
        );
        assert_eq!(found, expected.unwrap(), "{text}");
        let written = DatasetInfo::parse(text.as_bytes()).unwrap();
        assert_eq!(written.splits[1].shard_lengths.as_deref(), Some(&[1, 2][..]));
        let only = DatasetInfo::parse(source.info_text(&[None, copied(&[3])]).as_bytes()).unwrap();
        assert_eq!((only.splits.len(), only.splits[0].name.as_str()), (1, "b"));
        let selected = |spec: &str| source.select(spec).unwrap();
        assert_eq!(selected("b[1:]+a+b[:50%]"), [(1, 1..3), (0, 0..2), (1, 0..2)]);
        assert!(source.select("c").unwrap_err().to_string().contains("c"));
    }

    #[test]
    fn shards_and_hidden_files_are_no_other_files() {
        let info = r#"{"name": "x", "splits": [{"name": "a", "shardLengths": ["2"], "filepathTemplate": "{SPLIT}/{SHARD_X_OF_Y}"}]}"#;
        let files =
            ["a/00000-of-00001", "a/00000-of-00002", "a/LICENSE", "features.json", ".tfseek/x", "extra/y"];
        let dir = folder(info, &files);
        let source = CopySource::open(dir.path(), None).unwrap().unwrap();
        let found = source.metadata().other_files().unwrap();
        assert_eq!(found, ["a/LICENSE", "extra/y", "features.json"].map(|name| (PathBuf::from(name), 0)));
        assert_eq!(source.shards(), [dir.path().join("a/00000-of-00001")]);
    }

    #[test]
    #[cfg_attr(miri, ignore = "too slow under Miri")]
    fn what_cannot_be_copied_is_refused() {
        let split = |rest: &str| format!(r#"{{"name": "x", "splits": [{{"name": "a", {rest}}}]}}"#);
        for (info, words) in [
            (split(r#""shardLengths": ["1", "2", "3"]"#), "2 of 3 shards of split a are missing: "),
            (
                split(&format!(r#""shardLengths": [1{}]"#, ", 1".repeat(1_999_999))),
                "at least 1000 of 2000000 shards of split a are missing: ",
            ),
            (split(r#""shardLengths": ["1", "2"], "filepathTemplate": "{SPLIT}""#), "names of 2 shards"),
            (r#"{"name": "x", "fileFormat": "array_record"}"#.to_owned(), "array_record"),
            ("[]".to_owned(), "expected an object"),
            (split(r#""shardLengths": []"#), "splits: expected at least one shard, found none"),
        ] {
            let dir = folder(&info, &["x-a.tfrecord-00000-of-00003", "a"]);
            let e = CopySource::open(dir.path(), None).unwrap_err().to_string();
            assert!(e.contains(words), "{e}");
        }
        assert!(CopySource::open(tempfile::tempdir().unwrap().path(), None).unwrap().is_none());
    }
}
