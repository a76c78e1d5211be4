//! The reader of `dataset_info.json`, and the names of a split's shards.

use crate::error::ToolsError;
use serde_json::{Map, Value};
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// Maximum size of the file in bytes. A split of a hundred thousand shards takes 2 MiB.
pub const MAX_BYTES: u64 = 8 << 20;

/// The names that TensorFlow Datasets gives the shards of a split if its file has no template.
const DEFAULT_TEMPLATE: &str = "{DATASET}-{SPLIT}.{FILEFORMAT}-{SHARD_X_OF_Y}";

/// The least number of digits in the numbers of shards.
const MIN_DIGITS: usize = 5;

/// The content of a `dataset_info.json`, as far as it concerns shards.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DatasetInfo {
    /// Name of the dataset, such as `mnist`.
    pub name: String,
    /// Version of the dataset. `None` if the file has none.
    pub version: Option<String>,
    /// Python module of the dataset's builder. `None` if the file has none.
    pub module: Option<String>,
    /// Format of the shards: `tfrecord`, `array_record`, `riegeli` ..
    pub file_format: String,
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
    template: Vec<TemplatePiece>,
}

/// A piece of the names of a split's shards.
#[derive(Clone, Debug, PartialEq, Eq)]
enum TemplatePiece {
    Text(String),
    /// The number of the shard.
    Shard,
    /// The number of shards.
    Shards,
    /// `00003-of-00010`.
    ShardOfShards,
}

fn content(field: impl Into<String>, reason: impl Into<String>) -> ToolsError {
    ToolsError::Info { field: field.into(), reason: reason.into() }
}

impl DatasetInfo {
    /// The name of the file.
    pub const FILE_NAME: &str = "dataset_info.json";

    /// Reads the file of a folder. `None` if the folder has none.
    ///
    /// # Errors
    /// [`ToolsError`].
    pub(super) fn read(folder: &Path) -> Result<Option<DatasetInfo>, ToolsError> {
        let path = folder.join(DatasetInfo::FILE_NAME);
        // Opening a pipe would wait for its writer.
        match std::fs::metadata(&path) {
            Ok(metadata) if metadata.is_file() => {}
            Ok(_) => return Err(content("", "expected a regular file, found another one")),
            Err(e) if matches!(e.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
                return Ok(None);
            }
            Err(e) => return Err(ToolsError::Io(e)),
        }
        let mut text = Vec::new();
        let file = File::open(path).map_err(ToolsError::Io)?;
        file.take(MAX_BYTES + 1).read_to_end(&mut text).map_err(ToolsError::Io)?;
        if text.len() as u64 > MAX_BYTES {
            return Err(content("", format!("expected at most {MAX_BYTES} bytes, found more")));
        }
        DatasetInfo::parse(&text).map(Some)
    }

    /// Parses the content of the file. Unknown fields are ignored.
    ///
    /// # Errors
    /// [`ToolsError::Info`].
    pub fn parse(text: &[u8]) -> Result<DatasetInfo, ToolsError> {
        let value: Value =
            serde_json::from_slice(text).map_err(|e| content("", format!("expected JSON, found: {e}")))?;
        let Value::Object(fields) = &value else {
            return Err(content("", format!("expected an object, found {}", found(&value))));
        };
        let name = required(fields, "name", "")?;
        let file_format = text_field(fields, "fileFormat", "")?.unwrap_or_else(|| "tfrecord".to_owned());
        let list = match fields.get("splits") {
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
        let (version, module) = (text_field(fields, "version", "")?, text_field(fields, "moduleName", "")?);
        Ok(DatasetInfo { name, version, module, file_format, splits })
    }

    /// Returns true if the shards are TFRecord files.
    pub(super) fn is_tfrecord(&self) -> bool {
        self.file_format.eq_ignore_ascii_case("tfrecord")
    }

    /// Returns the name of the dataset with its version: `mnist 3.0.1`.
    pub fn title(&self) -> String {
        let version = self.version.as_deref().unwrap_or_default();
        format!("{} {version}", self.name.escape_debug()).trim_end().to_owned()
    }
}

impl SplitInfo {
    fn parse(fields: &Map<String, Value>, at: &str, dataset: &str, format: &str) -> Result<Self, ToolsError> {
        let name = required(fields, "name", at)?;
        let shard_lengths = match fields.get("shardLengths") {
            None | Some(Value::Null) => None,
            Some(Value::Array(list)) => {
                let number =
                    |(i, length): (usize, &Value)| integer(length, || format!("{at}shardLengths[{i}]"));
                Some(list.iter().enumerate().map(number).collect::<Result<_, _>>()?)
            }
            Some(other) => {
                return Err(content(
                    format!("{at}shardLengths"),
                    format!("expected a list, found {}", found(other)),
                ));
            }
        };
        let num_bytes = match fields.get("numBytes") {
            None | Some(Value::Null) => None,
            Some(bytes) => Some(integer(bytes, || format!("{at}numBytes"))?),
        };
        let mut template = None;
        for key in ["filepathTemplate", "filenameTemplate"] {
            if template.is_none() {
                let text = text_field(fields, key, at)?.filter(|text| !text.is_empty());
                template = text.map(|text| (format!("{at}{key}"), text));
            }
        }
        let (field, template) = template.unwrap_or_else(|| (String::new(), DEFAULT_TEMPLATE.to_owned()));
        let template =
            pieces(&field, &template, &[("DATASET", dataset), ("SPLIT", &name), ("FILEFORMAT", format)])?;
        Ok(SplitInfo { name, shard_lengths, num_bytes, template })
    }

    /// Returns the number of records. `None` if it is unknown or exceeds 64 bits.
    pub fn records(&self) -> Option<u64> {
        self.shard_lengths.as_ref()?.iter().try_fold(0u64, |sum, &n| sum.checked_add(n))
    }

    /// Returns the number of shards. `None` if it is unknown.
    pub fn shards(&self) -> Option<u64> {
        self.shard_lengths.as_ref().map(|lengths| lengths.len() as u64)
    }

    /// Returns the path of a shard, relative to the folder of the file, for a split of `shards` shards.
    pub fn shard_path(&self, shard: u64, shards: u64) -> PathBuf {
        let width = shards.to_string().len().max(MIN_DIGITS);
        let mut path = String::new();
        for piece in &self.template {
            match piece {
                TemplatePiece::Text(text) => path.push_str(text),
                TemplatePiece::Shard => path.push_str(&format!("{shard:0width$}")),
                TemplatePiece::Shards => path.push_str(&format!("{shards:0width$}")),
                TemplatePiece::ShardOfShards => {
                    path.push_str(&format!("{shard:0width$}-of-{shards:0width$}"))
                }
            }
        }
        path.into()
    }

    /// Returns the number of a shard whose path, relative to the folder of the file, has the form of the split's shards. Its other numbers may
    /// be any.
    pub(super) fn shard_number(&self, path: &str) -> Option<u64> {
        let (mut rest, mut shard) = (path, None);
        let mut number = |text: &mut &str, is_shard: bool| {
            let after = text.trim_start_matches(|c: char| c.is_ascii_digit());
            let digits = text.strip_suffix(after)?.parse::<u64>().ok()?;
            *text = after;
            if is_shard {
                shard = shard.or(Some(digits));
            }
            Some(())
        };
        for piece in &self.template {
            match piece {
                TemplatePiece::Text(text) => rest = rest.strip_prefix(text.as_str())?,
                TemplatePiece::Shard => number(&mut rest, true)?,
                TemplatePiece::Shards => number(&mut rest, false)?,
                TemplatePiece::ShardOfShards => {
                    number(&mut rest, true)?;
                    rest = rest.strip_prefix("-of-")?;
                    number(&mut rest, false)?;
                }
            }
        }
        // Without a number the split has one file.
        rest.is_empty().then_some(shard.unwrap_or(0))
    }

    /// Returns true if the shards are in folders below that of the file.
    pub(super) fn has_folders(&self) -> bool {
        self.template.iter().any(|piece| matches!(piece, TemplatePiece::Text(text) if text.contains('/')))
    }
}

/// Divides a template into its pieces. `values` are the variables that do not depend on the shard.
fn pieces(field: &str, template: &str, values: &[(&str, &str)]) -> Result<Vec<TemplatePiece>, ToolsError> {
    let mut found = Vec::new();
    let mut text = String::new();
    let mut rest = template;
    while let Some((before, after)) = rest.split_once('{') {
        text.push_str(before);
        let Some((variable, after)) = after.split_once('}') else {
            let reason = format!("expected `}}` after `{{`, found the end of {}", quoted(template));
            return Err(content(field, reason));
        };
        rest = after;
        if let Some((_, value)) = values.iter().find(|(name, _)| *name == variable) {
            text.push_str(value);
            continue;
        }
        let piece = match variable {
            "SHARD_INDEX" => TemplatePiece::Shard,
            "NUM_SHARDS" => TemplatePiece::Shards,
            "SHARD_X_OF_Y" => TemplatePiece::ShardOfShards,
            _ => {
                let expected = "DATASET, SPLIT, FILEFORMAT, SHARD_INDEX, NUM_SHARDS or SHARD_X_OF_Y";
                return Err(content(
                    field,
                    format!("expected the variable {expected}, found {}", quoted(variable)),
                ));
            }
        };
        found.extend((!text.is_empty()).then(|| TemplatePiece::Text(std::mem::take(&mut text))));
        found.push(piece);
    }
    text.push_str(rest);
    found.extend((!text.is_empty()).then_some(TemplatePiece::Text(text)));
    Ok(found)
}

fn required(fields: &Map<String, Value>, key: &str, at: &str) -> Result<String, ToolsError> {
    let missing = || content(format!("{at}{key}"), "expected a string, found nothing");
    text_field(fields, key, at)?.filter(|name| !name.is_empty()).ok_or_else(missing)
}

fn text_field(fields: &Map<String, Value>, key: &str, at: &str) -> Result<Option<String>, ToolsError> {
    match fields.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(other) => {
            Err(content(format!("{at}{key}"), format!("expected a string, found {}", found(other))))
        }
    }
}

/// Reads a 64-bit integer, which the JSON of protobuf messages has as a string.
fn integer(value: &Value, field: impl FnOnce() -> String) -> Result<u64, ToolsError> {
    let number = match value {
        Value::String(text) if text.bytes().all(|c| c.is_ascii_digit()) => text.parse().ok(),
        _ => value.as_u64(),
    };
    number.ok_or_else(|| {
        content(field(), format!("expected an integer from 0 to 2^64 - 1, found {}", found(value)))
    })
}

/// Describes a value for messages.
fn found(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(value) => value.to_string(),
        Value::Number(number) => number.to_string(),
        Value::String(text) => quoted(text),
        Value::Array(_) => "a list".to_owned(),
        Value::Object(_) => "an object".to_owned(),
    }
}

/// Returns the first characters of a text in quotes.
fn quoted(text: &str) -> String {
    let short: String = text.chars().take(40).collect();
    let more = if short.len() < text.len() { " .." } else { "" };
    format!("{short:?}{more}")
}
