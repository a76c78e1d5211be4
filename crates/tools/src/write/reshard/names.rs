//! Names of the files of a set of shards.

use super::options::ShardCount;
use crate::error::{PathReason, ToolsError};
use crate::write::outputs;
use std::path::{Path, PathBuf};
use tfseek::Compression;
use tfseek::paths::set_of;

/// The place of the name of a split in a pattern.
pub(super) const SPLIT: &str = "{split}";

/// The path of an output, as given: a file, or a set of shards with `@`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OutPattern {
    folder: String,
    stem: String,
    suffix: String,
    /// `None`: one file with the name of the stem and the suffix.
    pub(crate) shards: Option<ShardCount>,
}

impl OutPattern {
    /// Parses the path of an output and the number of its shards, which the path or the option has.
    pub(crate) fn parse(
        out: &Path,
        shards: Option<ShardCount>,
        has_splits: bool,
    ) -> Result<OutPattern, ToolsError> {
        outputs::check_local(out)?;
        let refused = |reason| ToolsError::Path { path: out.to_path_buf(), reason };
        let text = out.to_str().ok_or_else(|| refused(PathReason::NotUtf8))?;
        let name = out.file_name().and_then(|name| name.to_str());
        let named = name.and_then(|name| Some((text.strip_suffix(name)?, name)));
        let (folder, name) = named.ok_or_else(|| refused(PathReason::Folder))?;
        if text.contains(SPLIT) != has_splits {
            return Err(refused(if has_splits { PathReason::NoSplit } else { PathReason::Split }));
        }
        let (stem, suffix, named) = match at_pattern(name) {
            Some((stem, count, suffix)) => (stem, suffix, Some(count)),
            None if shards.is_some() => {
                let (stem, suffix) = split_extension(name);
                (stem, suffix, None)
            }
            None => (name, "", None),
        };
        let named = match named {
            Some("*") if shards.is_none() => return Err(refused(PathReason::NoShardCount)),
            None | Some("*") => None,
            Some(count) => {
                let count = count.parse().ok().filter(|&count| count > 0);
                Some(count.ok_or_else(|| refused(PathReason::ShardCount))?)
            }
        };
        let shards = match (named, shards) {
            (Some(count), Some(other)) if other != ShardCount::Count(count) => {
                return Err(refused(PathReason::OtherShardCount(count)));
            }
            (Some(count), _) => Some(ShardCount::Count(count)),
            (None, Some(ShardCount::Count(0) | ShardCount::Size(0))) => {
                return Err(refused(PathReason::NoShards));
            }
            (None, shards) => shards,
        };
        let [folder, stem, suffix] = [folder, stem, suffix].map(String::from);
        Ok(OutPattern { folder, stem, suffix, shards })
    }

    /// Returns the pattern of a set without a suffix, such as `x-train.tfrecord-00000-of-00001`. The path of
    /// its folder ends in `/`.
    pub(crate) fn of_stem(folder: &str, stem: &str, shards: ShardCount) -> OutPattern {
        OutPattern {
            folder: folder.to_owned(),
            stem: stem.to_owned(),
            suffix: String::new(),
            shards: Some(shards),
        }
    }

    /// Returns the compression that the suffix states.
    pub(crate) fn compression(&self) -> Compression {
        let name = if self.suffix.is_empty() { &self.stem } else { &self.suffix };
        Compression::of_name(name).0
    }

    /// Returns the names of the files of a split. `count` is the number of its shards, if they are a set.
    pub(crate) fn set(&self, split: Option<&str>, count: Option<u64>) -> SetNames {
        let split = split.unwrap_or(SPLIT);
        let [folder, stem, suffix] =
            [&self.folder, &self.stem, &self.suffix].map(|text| text.replace(SPLIT, split));
        let form = match count {
            Some(count) => NameForm::Numbered { stem, suffix, count },
            None => NameForm::File(format!("{stem}{suffix}")),
        };
        SetNames { folder: folder.into(), form }
    }
}

/// The names of the files of a set of shards, or of one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SetNames {
    pub(crate) folder: PathBuf,
    form: NameForm,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum NameForm {
    File(String),
    Numbered {
        stem: String,
        suffix: String,
        count: u64,
    },
    /// Paths relative to the folder, which may be in folders below it.
    Listed(Vec<PathBuf>),
}

impl SetNames {
    /// Returns the names of files in a folder of their own.
    pub(crate) fn listed(folder: &Path, paths: Vec<PathBuf>) -> SetNames {
        SetNames { folder: folder.into(), form: NameForm::Listed(paths) }
    }

    /// Returns the number of files.
    pub(crate) fn len(&self) -> u64 {
        match &self.form {
            NameForm::File(_) => 1,
            NameForm::Numbered { count, .. } => *count,
            NameForm::Listed(paths) => paths.len() as u64,
        }
    }

    /// Returns the path of a shard.
    pub(crate) fn path(&self, shard: u64) -> PathBuf {
        match &self.form {
            NameForm::File(name) => self.folder.join(name),
            NameForm::Numbered { stem, suffix, count } => {
                self.folder.join(format!("{stem}-{shard:05}-of-{count:05}{suffix}"))
            }
            NameForm::Listed(paths) => {
                let path = usize::try_from(shard).ok().and_then(|shard| paths.get(shard));
                path.map_or_else(PathBuf::new, |path| self.folder.join(path))
            }
        }
    }

    /// Returns the paths of all shards.
    pub(crate) fn paths(&self) -> impl Iterator<Item = PathBuf> {
        (0..self.len()).map(|shard| self.path(shard))
    }

    /// Returns the path of the set: `train@4.tfrecord`, or the path of the file. The folder, if the names
    /// have another form.
    pub(crate) fn name(&self) -> PathBuf {
        match &self.form {
            NameForm::File(_) => self.path(0),
            NameForm::Numbered { stem, suffix, count } => self.folder.join(format!("{stem}@{count}{suffix}")),
            NameForm::Listed(paths) => match paths.as_slice() {
                [] => self.folder.clone(),
                [one] => set_of(&self.folder.join(one)).unwrap_or_else(|| self.folder.join(one)),
                [first, ..] => set_of(&self.folder.join(first)).unwrap_or_else(|| self.folder.clone()),
            },
        }
    }

    /// Returns the folder, which is `.` for a name alone.
    pub(crate) fn folder(&self) -> &Path {
        if self.folder.as_os_str().is_empty() { Path::new(".") } else { &self.folder }
    }

    /// Returns a file of another set with this name in the folder: one of another number of shards, or with
    /// other digits.
    pub(crate) fn other_set(&self) -> Option<PathBuf> {
        self.all().into_iter().find(|path| !self.has(path))
    }

    /// Returns all shards in the folder that have this name, of any number of shards.
    pub(crate) fn all(&self) -> Vec<PathBuf> {
        let NameForm::Numbered { stem, suffix, .. } = &self.form else { return Vec::new() };
        let is_named = |path: &PathBuf| {
            let set = set_of(path)?;
            let (other, _, ending) = at_pattern(set.file_name()?.to_str()?)?;
            Some((other, ending) == (stem, suffix))
        };
        let Ok(entries) = std::fs::read_dir(self.folder()) else { return Vec::new() };
        let mut found: Vec<PathBuf> =
            entries.filter_map(|entry| Some(self.folder.join(entry.ok()?.file_name()))).collect();
        found.retain(|path| is_named(path).unwrap_or(false));
        found.sort();
        found
    }

    /// Returns true for the path of a shard of this set.
    pub(crate) fn has(&self, path: &Path) -> bool {
        self.paths().any(|own| own == path)
    }
}

/// Splits `stem@count.suffix`, where the count may be `*`.
fn at_pattern(name: &str) -> Option<(&str, &str, &str)> {
    let (stem, rest) = name.rsplit_once('@')?;
    let suffix = match rest.strip_prefix('*') {
        Some(suffix) => suffix,
        None => rest.trim_start_matches(|c: char| c.is_ascii_digit()),
    };
    let count = rest.strip_suffix(suffix)?;
    let ends_well = suffix.is_empty() || suffix.starts_with('.');
    (!stem.is_empty() && !count.is_empty() && ends_well).then_some((stem, count, suffix))
}

/// Splits a name before its extension, which may be followed by the suffix of a compressed file.
fn split_extension(name: &str) -> (&str, &str) {
    let (_, plain) = Compression::of_name(name);
    let stem = match plain.rsplit_once('.') {
        Some((stem, _)) if !stem.is_empty() => stem,
        _ if !plain.is_empty() => plain,
        _ => name,
    };
    name.split_at(stem.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(out: &str, shards: Option<ShardCount>) -> Result<OutPattern, String> {
        OutPattern::parse(Path::new(out), shards, out.contains(SPLIT)).map_err(|e| e.to_string())
    }

    #[test]
    fn names_of_files() {
        use ShardCount::{Count, Size};
        for (out, shards, first, set) in [
            ("a/train@3.tfrecord", None, "a/train-00000-of-00003.tfrecord", "a/train@3.tfrecord"),
            ("train.tfrecord@3", None, "train.tfrecord-00000-of-00003", "train.tfrecord@3"),
            (
                "train@*.tfrecord.gz",
                Some(Count(3)),
                "train-00000-of-00003.tfrecord.gz",
                "train@3.tfrecord.gz",
            ),
            ("train.tfrecord.gz", Some(Size(9)), "train-00000-of-00003.tfrecord.gz", "train@3.tfrecord.gz"),
            ("train", Some(Count(3)), "train-00000-of-00003", "train@3"),
            (".x", Some(Count(3)), ".x-00000-of-00003", ".x@3"),
            ("a@b.tfrecord", None, "a@b.tfrecord", "a@b.tfrecord"),
            ("{split}/x-{split}@3", None, "val/x-val-00000-of-00003", "val/x-val@3"),
        ] {
            let pattern = parse(out, shards).unwrap();
            let names = pattern.set(Some("val"), pattern.shards.map(|_| 3));
            assert_eq!(names.path(0), Path::new(first));
            assert_eq!(names.name(), Path::new(set));
        }
        for (out, compression) in [
            ("a.gz", Compression::Gzip),
            ("a@2.zz", Compression::Zlib),
            ("a.gz@2", Compression::Gzip),
            ("a", Compression::None),
        ] {
            assert_eq!(parse(out, None).unwrap().compression(), compression, "{out}");
        }
    }

    #[test]
    fn other_paths_are_refused() {
        use ShardCount::{Count, Size};
        for (out, shards, words) in [
            ("a@0.tfrecord", None, "from 1 to 2^64 - 1"),
            ("a@99999999999999999999", None, "from 1 to 2^64 - 1"),
            ("a@*.tfrecord", None, "a number of shards or their size"),
            ("a@4.tfrecord", Some(Count(5)), "has a number of shards, 4"),
            ("a@4.tfrecord", Some(Size(5)), "has a number of shards, 4"),
            ("a.tfrecord", Some(Size(0)), "found 0"),
            ("a/", None, "found a folder"),
            ("..", None, "found a folder"),
        ] {
            let e = parse(out, shards).unwrap_err();
            assert!(e.contains(words) && e.starts_with(out), "{out}: {e}");
        }
        assert!(OutPattern::parse(Path::new("a"), None, true).is_err());
        assert!(OutPattern::parse(Path::new("{split}"), None, false).is_err());
    }

    #[test]
    fn other_sets_of_the_name_are_found() {
        let dir = tempfile::tempdir().unwrap();
        let out = dir.path().join("a@2.tfr");
        let names = OutPattern::parse(&out, None, false).unwrap().set(None, Some(2));
        let put = |name: &str| std::fs::write(dir.path().join(name), "").unwrap();
        for name in ["a-00001-of-00002.tfr", "b-00000-of-00003.tfr", "a-00000-of-00003.tfrecord", "a.tfr"] {
            put(name);
        }
        assert_eq!(names.other_set(), None);
        put("a-00002-of-00003.tfr");
        assert_eq!(names.other_set(), Some(dir.path().join("a-00002-of-00003.tfr")));
        put("a-0-of-2.tfr");
        assert_eq!(names.other_set(), Some(dir.path().join("a-0-of-2.tfr")));
    }
}
