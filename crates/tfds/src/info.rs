//! The reader of `dataset_info.json`, and the names of a split's shards.

use crate::error::{Result, TfdsError, TfdsErrorKind};
use crate::json::{field, found, unsigned};
use crate::set_folder::SetFolder;
use crate::template::Template;
use serde_json::{Map, Value};
use std::path::PathBuf;

/// The content of a `dataset_info.json`, as far as it concerns the folder, the shards and the roles of
/// features.
///
/// ```
/// use tfseek_tfds::DatasetInfo;
///
/// let text = br#"{"name": "mnist", "splits": [{"name": "test", "shardLengths": ["6000", "4000"]}]}"#;
/// let info = DatasetInfo::parse(text)?;
/// assert_eq!(info.splits[0].records(), Some(10_000));
/// assert_eq!(info.splits[0].shard_path(1, 2).to_str(), Some("mnist-test.tfrecord-00001-of-00002"));
/// # Ok::<(), tfseek_tfds::TfdsError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DatasetInfo {
    /// Name of the dataset, such as `mnist`.
    pub name: String,
    /// Version of the dataset. `None` if the file has none.
    pub version: Option<String>,
    /// Name of the configuration. `None` if the dataset has none.
    pub config: Option<String>,
    /// Python module of the dataset's builder. `None` if the file has none.
    pub module: Option<String>,
    /// Format of the shards: `tfrecord`, `array_record`, `riegeli` ..
    pub file_format: String,
    /// The features that a model takes and predicts, as a rule an input and a target. `None` if the file has
    /// none, or nested ones.
    pub supervised_keys: Option<Vec<String>>,
    /// True if the file has `supervisedKeys` in dicts or nested tuples.
    pub(crate) has_nested_keys: bool,
    /// The splits, in the order of the file.
    pub splits: Vec<SplitInfo>,
}

/// A split of a [`DatasetInfo`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SplitInfo {
    /// Name of the split, such as `train`.
    pub name: String,
    /// Number of records of each shard. `None` if the file does not have them.
    pub shard_lengths: Option<Vec<u64>>,
    /// Bytes of the split, as its writer counted them.
    pub num_bytes: Option<u64>,
    /// Number of shards, in files of old versions without `shardLengths`.
    num_shards: Option<u64>,
    /// The template of the shards' paths.
    pub(crate) template: Template,
}

pub(crate) fn content(field: impl Into<String>, reason: impl Into<String>) -> TfdsError {
    TfdsErrorKind::Info { field: field.into(), reason: reason.into() }.into()
}

impl DatasetInfo {
    /// The name of the file.
    pub const FILE_NAME: &str = "dataset_info.json";

    /// Reads the file of a folder. `None` if the folder has none.
    pub(crate) fn read(folder: &SetFolder) -> Result<Option<DatasetInfo>> {
        let text = folder.read(DatasetInfo::FILE_NAME, |reason| content("", reason))?;
        let info = text.map(|text| DatasetInfo::parse(&text)).transpose();
        info.map_err(|e| e.at(&folder.join(DatasetInfo::FILE_NAME)))
    }

    /// Parses the content of the file. Unknown fields are ignored.
    ///
    /// # Errors
    /// [`TfdsErrorKind::Info`].
    pub fn parse(text: &[u8]) -> Result<DatasetInfo> {
        let value: Value =
            serde_json::from_slice(text).map_err(|e| content("", format!("expected JSON, found: {e}")))?;
        let Value::Object(fields) = &value else {
            return Err(content("", format!("expected an object, found {}", found(&value))));
        };
        let name = required(fields, "name", "")?;
        let file_format = text_field(fields, "fileFormat", "")?.unwrap_or_else(|| "tfrecord".to_owned());
        let list = match field(fields, "splits") {
            Some(Value::Array(list)) => list.as_slice(),
            Some(other) => return Err(content("splits", format!("expected a list, found {}", found(other)))),
            None => &[],
        };
        let mut splits = Vec::new();
        for (i, split) in list.iter().enumerate() {
            let at = format!("splits[{i}]");
            let Value::Object(split) = split else {
                return Err(content(at, format!("expected an object, found {}", found(split))));
            };
            splits.push(SplitInfo::parse(split, &format!("{at}."), &name, &file_format)?);
        }
        let text = |name| Ok::<_, TfdsError>(text_field(fields, name, "")?.filter(|text| !text.is_empty()));
        let version = text("version")?;
        let config = text("configName")?;
        let module = text("moduleName")?;
        let (supervised_keys, has_nested_keys) = supervised_keys(fields)?;
        Ok(DatasetInfo {
            name,
            version,
            config,
            module,
            file_format,
            supervised_keys,
            has_nested_keys,
            splits,
        })
    }

    /// Returns true if the shards are TFRecord files.
    pub(crate) fn is_tfrecord(&self) -> bool {
        self.file_format.eq_ignore_ascii_case("tfrecord")
    }

    /// Returns the name of the dataset with its version: `mnist 3.0.1`.
    pub fn title(&self) -> String {
        let version = self.version.as_deref().unwrap_or_default();
        format!("{} {version}", self.name.escape_debug()).trim_end().to_owned()
    }
}

impl SplitInfo {
    fn parse(fields: &Map<String, Value>, at: &str, dataset: &str, format: &str) -> Result<SplitInfo> {
        let name = required(fields, "name", at)?;
        let shard_lengths = match field(fields, "shardLengths") {
            None => None,
            Some(Value::Array(list)) => {
                let number =
                    |(i, length): (usize, &Value)| integer(length, || format!("{at}shardLengths[{i}]"));
                Some(list.iter().enumerate().map(number).collect::<Result<_>>()?)
            }
            Some(other) => {
                return Err(content(
                    format!("{at}shardLengths"),
                    format!("expected a list, found {}", found(other)),
                ));
            }
        };
        let number = |name: &str| {
            field(fields, name).map(|value| integer(value, || format!("{at}{name}"))).transpose()
        };
        let num_bytes = number("numBytes")?;
        let num_shards = number("numShards")?;
        let mut template = None;
        for key in ["filepathTemplate", "filenameTemplate"] {
            if template.is_none() {
                let text = text_field(fields, key, at)?.filter(|text| !text.is_empty());
                template = text.map(|text| (format!("{at}{key}"), text));
            }
        }
        let (key, text) = template.unzip();
        let template = Template::parse(text.as_deref(), dataset, &name, format);
        let template = template.map_err(|reason| content(key.unwrap_or_default(), reason))?;
        Ok(SplitInfo { name, shard_lengths, num_bytes, num_shards, template })
    }

    /// Returns the number of records. `None` if it is unknown or exceeds 64 bits.
    pub fn records(&self) -> Option<u64> {
        self.shard_lengths.as_ref()?.iter().try_fold(0u64, |sum, &n| sum.checked_add(n))
    }

    /// Returns the number of shards. `None` if it is unknown.
    pub fn shards(&self) -> Option<u64> {
        self.shard_lengths.as_ref().map(|lengths| lengths.len() as u64).or(self.num_shards)
    }

    /// Returns the path of a shard, relative to the folder of the file, for a split of `shards` shards.
    pub fn shard_path(&self, shard: u64, shards: u64) -> PathBuf {
        self.template.path(shard, shards)
    }
}

/// Returns the supervised keys, and true if they are nested.
fn supervised_keys(fields: &Map<String, Value>) -> Result<(Option<Vec<String>>, bool)> {
    const AT: &str = "supervisedKeys.";
    let keys = match field(fields, "supervisedKeys") {
        None => return Ok((None, false)),
        Some(Value::Object(keys)) => keys,
        Some(other) => {
            return Err(content("supervisedKeys", format!("expected an object, found {}", found(other))));
        }
    };
    if let Some(tuple) = field(keys, "tuple") {
        let items = tuple.as_object().map(|tuple| field(tuple, "items"));
        let items = match items {
            Some(Some(Value::Array(items))) => items.as_slice(),
            Some(None) => &[],
            _ => {
                let reason = format!("expected an object with a list of items, found {}", found(tuple));
                return Err(content(format!("{AT}tuple"), reason));
            }
        };
        let mut names = Vec::new();
        for (i, item) in items.iter().enumerate() {
            let at = format!("{AT}tuple.items[{i}]");
            let Value::Object(item) = item else {
                return Err(content(at, format!("expected an object, found {}", found(item))));
            };
            match text_field(item, "featureKey", &format!("{at}."))? {
                Some(name) => names.push(name),
                None => return Ok((None, true)),
            }
        }
        return Ok((Some(names), false));
    }
    let input = text_field(keys, "input", AT)?;
    let output = text_field(keys, "output", AT)?;
    Ok((input.zip(output).map(|(input, output)| vec![input, output]), false))
}

fn required(fields: &Map<String, Value>, key: &str, at: &str) -> Result<String> {
    let missing = || content(format!("{at}{key}"), "expected a string, found nothing");
    text_field(fields, key, at)?.filter(|name| !name.is_empty()).ok_or_else(missing)
}

fn text_field(fields: &Map<String, Value>, key: &str, at: &str) -> Result<Option<String>> {
    match field(fields, key) {
        None => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(other) => {
            Err(content(format!("{at}{key}"), format!("expected a string, found {}", found(other))))
        }
    }
}

fn integer(value: &Value, field: impl FnOnce() -> String) -> Result<u64> {
    let reason = || format!("expected an integer from 0 to 2^64 - 1, found {}", found(value));
    unsigned(value).ok_or_else(|| content(field(), reason()))
}
