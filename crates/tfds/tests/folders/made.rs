//! Small data sets in temporary folders.

use std::fs;
use std::path::{Path, PathBuf};
use tempfile::TempDir;
use tfseek::index::IndexOptions;
use tfseek::{DatasetOptions, Writer};
use tfseek_tfds::{Builder, BuilderOptions, SplitSelection, TfdsError};

/// A split: its name and the numbers of records of its shards.
pub(crate) type Lengths<'a> = (&'a str, &'a [u64]);

/// A temporary folder of data sets, and one of their indexes.
pub(crate) struct Made {
    pub(crate) dir: TempDir,
    indexes: TempDir,
}

impl Made {
    pub(crate) fn new() -> Made {
        Made { dir: tempfile::tempdir().unwrap(), indexes: tempfile::tempdir().unwrap() }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Writes the data set `tiny` to a folder.
    pub(crate) fn write(&self, folder: &str, fields: &str, splits: &[Lengths<'_>]) -> PathBuf {
        let folder = self.path(folder);
        write_shards(&folder, splits);
        fs::write(folder.join("dataset_info.json"), info(fields, splits)).unwrap();
        fs::write(folder.join("features.json"), FEATURES).unwrap();
        folder
    }

    /// Returns options with an empty folder of indexes.
    pub(crate) fn options(&self) -> BuilderOptions {
        let index = IndexOptions::new().default_dirs(Some(self.indexes.path().to_path_buf()), None);
        BuilderOptions { dataset: DatasetOptions::new().index(index), ..BuilderOptions::default() }
    }

    pub(crate) fn open(&self, folder: &str) -> Result<Builder, TfdsError> {
        Builder::open(self.path(folder), &self.options())
    }

    /// Returns the message of the error of opening a folder, without the path of the temporary folder.
    pub(crate) fn refused(&self, folder: &str, options: &BuilderOptions) -> String {
        let e = Builder::open(self.path(folder), options).unwrap_err().to_string();
        e.replace(&format!("{}/", self.dir.path().display()), "").replace('\\', "/")
    }
}

/// A `features.json` with one feature.
pub(crate) const FEATURES: &str = r#"{"type": "tensorflow_datasets.core.features.features_dict.FeaturesDict", "content": {
    "x": {"type": "tensorflow_datasets.core.features.tensor_feature.Tensor", "content": {"shape": [], "dtype": "int64", "encoding": "none"}}}}"#;

/// Returns a `dataset_info.json` with more fields, such as `"version": "1.0.0",`.
pub(crate) fn info(fields: &str, splits: &[Lengths<'_>]) -> String {
    let split = |(name, lengths): &Lengths<'_>| {
        let lengths: Vec<String> = lengths.iter().map(|n| format!("\"{n}\"")).collect();
        format!(r#"{{"name": "{name}", "shardLengths": [{}]}}"#, lengths.join(", "))
    };
    let splits: Vec<String> = splits.iter().map(split).collect();
    format!(r#"{{"name": "tiny", {fields} "splits": [{}]}}"#, splits.join(", "))
}

pub(crate) fn shard(name: &str, shard: usize, shards: usize) -> String {
    format!("tiny-{name}.tfrecord-{shard:05}-of-{shards:05}")
}

/// Writes the shards of splits. A record's payload is `split number`.
pub(crate) fn write_shards(folder: &Path, splits: &[Lengths<'_>]) {
    fs::create_dir_all(folder).unwrap();
    for (name, lengths) in splits {
        let mut next = 0;
        for (k, n) in lengths.iter().enumerate() {
            let mut writer = Writer::create(folder.join(shard(name, k, lengths.len()))).unwrap();
            for _ in 0..*n {
                writer.write(format!("{name} {next}").as_bytes()).unwrap();
                next += 1;
            }
            writer.close().unwrap();
        }
    }
}

/// Returns the payloads that a specification selects.
pub(crate) fn selected(builder: &Builder, spec: &str) -> Result<Vec<String>, TfdsError> {
    Ok(read(&builder.select(spec)?)?)
}

/// Returns the payloads of a selection.
pub(crate) fn payloads(selection: &SplitSelection) -> Vec<String> {
    read(selection).unwrap()
}

fn read(selection: &SplitSelection) -> tfseek::Result<Vec<String>> {
    let mut buf = Vec::new();
    let mut read = |i| {
        let record = selection.dataset.read(selection.record(i).unwrap(), &mut buf)?;
        Ok(String::from_utf8(record.payload().to_vec()).unwrap())
    };
    let all = (0..selection.len()).map(&mut read).collect::<tfseek::Result<Vec<String>>>()?;
    assert_eq!(selection.record(selection.len()), None);
    Ok(all)
}
