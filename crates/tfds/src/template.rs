//! The names of a split's shards: templates such as `{DATASET}-{SPLIT}.{FILEFORMAT}-{SHARD_X_OF_Y}`.

use crate::json::quoted;
use std::path::{Component, Path, PathBuf};

/// The names that TensorFlow Datasets gives the shards of a split without a template.
pub(crate) const DEFAULT: &str = "{DATASET}-{SPLIT}.{FILEFORMAT}-{SHARD_X_OF_Y}";

/// The least number of digits in the numbers of shards.
const MIN_DIGITS: usize = 5;

/// Maximum number of bytes of a template, and of its text with the names of dataset and split: the longest
/// path of Linux.
const MAX_BYTES: usize = 4096;

/// A template of the paths of a split's shards, relative to the folder of the dataset.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Template(Vec<Piece>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Piece {
    Text(String),
    /// The number of the shard.
    Shard,
    /// The number of shards.
    Shards,
    /// `00003-of-00010`.
    ShardOfShards,
}

impl Template {
    /// Parses a template. `None` is the default one. The other arguments are the values of the variables that
    /// do not depend on the shard.
    ///
    /// # Errors
    /// The expected and the found text.
    pub(crate) fn parse(
        template: Option<&str>,
        dataset: &str,
        split: &str,
        format: &str,
    ) -> Result<Template, String> {
        let template = template.unwrap_or(DEFAULT);
        let too_long = || format!("expected a path of at most {MAX_BYTES} bytes, found more");
        if template.len() > MAX_BYTES {
            return Err(too_long());
        }
        let mut pieces = Vec::new();
        let mut text = String::new();
        let mut rest = template;
        while let Some((before, after)) = rest.split_once('{') {
            text.push_str(before);
            let Some((variable, after)) = after.split_once('}') else {
                return Err(format!("expected `}}` after `{{`, found the end of {}", quoted(template)));
            };
            rest = after;
            let piece = match variable {
                "DATASET" | "SPLIT" | "FILEFORMAT" => {
                    text.push_str(match variable {
                        "DATASET" => dataset,
                        "SPLIT" => split,
                        _ => format,
                    });
                    if text.len() > MAX_BYTES {
                        return Err(too_long());
                    }
                    continue;
                }
                "SHARD_INDEX" => Piece::Shard,
                "NUM_SHARDS" => Piece::Shards,
                "SHARD_X_OF_Y" => Piece::ShardOfShards,
                _ => {
                    let expected = "DATASET, SPLIT, FILEFORMAT, SHARD_INDEX, NUM_SHARDS or SHARD_X_OF_Y";
                    return Err(format!("expected the variable {expected}, found {}", quoted(variable)));
                }
            };
            pieces.extend((!text.is_empty()).then(|| Piece::Text(std::mem::take(&mut text))));
            pieces.push(piece);
        }
        text.push_str(rest);
        pieces.extend((!text.is_empty()).then_some(Piece::Text(text)));
        let template = Template(pieces);
        let path = template.path(0, 1);
        let below = |part: Component<'_>| matches!(part, Component::Normal(_) | Component::CurDir);
        if path.as_os_str().is_empty() || !path.components().all(below) {
            return Err(format!(
                "expected a path below the folder, found {}",
                quoted(&path.to_string_lossy())
            ));
        }
        Ok(template)
    }

    /// Returns the path of a shard of a split with this number of shards.
    pub(crate) fn path(&self, shard: u64, shards: u64) -> PathBuf {
        let width = shards.to_string().len().max(MIN_DIGITS);
        let mut path = String::new();
        for piece in &self.0 {
            match piece {
                Piece::Text(text) => path.push_str(text),
                Piece::Shard => path.push_str(&format!("{shard:0width$}")),
                Piece::Shards => path.push_str(&format!("{shards:0width$}")),
                Piece::ShardOfShards => path.push_str(&format!("{shard:0width$}-of-{shards:0width$}")),
            }
        }
        path.into()
    }

    /// Returns the number of the shard with a path of this form. Other numbers of the path may have any
    /// value.
    pub(crate) fn shard(&self, path: &str) -> Option<u64> {
        let mut rest = path;
        let mut shard = None;
        let mut number = |text: &mut &str, is_shard: bool| {
            let after = text.trim_start_matches(|c: char| c.is_ascii_digit());
            let digits = text.strip_suffix(after)?.parse::<u64>().ok()?;
            *text = after;
            if is_shard {
                shard = shard.or(Some(digits));
            }
            Some(())
        };
        for piece in &self.0 {
            match piece {
                Piece::Text(text) => rest = rest.strip_prefix(text.as_str())?,
                Piece::Shard => number(&mut rest, true)?,
                Piece::Shards => number(&mut rest, false)?,
                Piece::ShardOfShards => {
                    number(&mut rest, true)?;
                    rest = rest.strip_prefix("-of-")?;
                    number(&mut rest, false)?;
                }
            }
        }
        // Without a number the split has one file.
        rest.is_empty().then_some(shard.unwrap_or(0))
    }

    /// Returns true if each shard has a name of its own.
    pub(crate) fn is_numbered(&self) -> bool {
        self.0.iter().any(|piece| matches!(piece, Piece::Shard | Piece::ShardOfShards))
    }

    /// Returns true if the shards are in folders below the dataset's folder.
    pub(crate) fn has_folders(&self) -> bool {
        let parent = self.path(0, 1);
        parent.parent().is_some_and(|parent| parent != Path::new(""))
    }
}
