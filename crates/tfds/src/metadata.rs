//! The files of a prepared data set other than its shards, and `dataset_info.json` for shards that were
//! written.

use crate::builder::check_info;
use crate::error::{Result, TfdsError, TfdsErrorKind, refused_folder};
use crate::folder::version_folder;
use crate::info::{DatasetInfo, content};
use crate::json::set_field;
use crate::set_folder::{EntryKind, FolderEntry, SetFolder, with_store};
use crate::splits::is_split_name;
use crate::template::{DEFAULT, Template};
use serde_json::{Map, Value, json};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tfseek::io::Store;

/// Maximum number of folders around a file.
const MAX_DEPTH: usize = 16;

/// The format of shards that are written.
const FORMAT: &str = "tfrecord";

/// The files of a prepared data set other than its shards: `dataset_info.json`, `features.json`, names of
/// labels, and others. The shards may be missing.
#[derive(Clone, Debug)]
pub struct SetMetadata {
    pub(crate) folder: SetFolder,
    pub(crate) info: DatasetInfo,
    /// The content of `dataset_info.json`.
    pub(crate) fields: Map<String, Value>,
}

/// A split that was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrittenSplit {
    /// Name of the split.
    pub name: String,
    /// Number of records of each shard.
    pub shard_lengths: Vec<u64>,
    /// Bytes of all payloads.
    pub num_bytes: u64,
}

impl SetMetadata {
    /// Opens the folder of a version, or of versions, as [`Builder::open`](crate::Builder::open) does. A URL
    /// is one of `store`.
    ///
    /// # Errors
    /// - [`TfdsErrorKind::Folder`] for a folder without a data set or with several
    /// - [`TfdsErrorKind::Info`] for a `dataset_info.json` with another content, and for another format than
    ///   TFRecord
    /// - I/O errors
    pub fn find(folder: &Path, store: Option<&Arc<dyn Store>>) -> Result<SetMetadata> {
        let found = version_folder(SetFolder::new(folder, &with_store(store))?, None, None)?.folder;
        let at = found.path().to_path_buf();
        SetMetadata::open(found)?
            .ok_or_else(|| refused_folder(&at, format!("expected {}, found none", DatasetInfo::FILE_NAME)))
    }

    /// Opens the folder of a version. `None` if it has no `dataset_info.json`.
    pub(crate) fn open(folder: SetFolder) -> Result<Option<SetMetadata>> {
        let path = folder.join(DatasetInfo::FILE_NAME);
        let located = |e: TfdsError| e.at(&path);
        let text = folder.read(DatasetInfo::FILE_NAME, |reason| content("", reason))?;
        let Some(text) = text else { return Ok(None) };
        let info = DatasetInfo::parse(&text).map_err(located)?;
        check_info(&info).map_err(located)?;
        let fields = match serde_json::from_slice(&text) {
            Ok(Value::Object(fields)) => fields,
            _ => Map::new(),
        };
        Ok(Some(SetMetadata { folder, info, fields }))
    }

    /// Returns the path or the URL of the folder.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn info_path(&self) -> PathBuf {
        self.folder.join(DatasetInfo::FILE_NAME)
    }

    /// Returns the start of the names of the shards that are written for a split: `mnist-train.tfrecord`.
    /// `-00000-of-00001` follows.
    ///
    /// # Errors
    /// [`TfdsErrorKind::Split`] for a name that no split can have, or whose files would lie in another
    /// folder.
    pub fn shard_stem(&self, split: &str) -> Result<String> {
        let refused = |reason: String| {
            TfdsError::from(TfdsErrorKind::Split { spec: split.chars().take(200).collect(), reason })
        };
        if !is_split_name(split) || split == "all" {
            let expected = "expected a name of letters, digits, `_` and `-`, other than `all`";
            return Err(refused(expected.to_owned()));
        }
        let template = Template::parse(None, &self.info.name, split, FORMAT).map_err(refused)?;
        if template.has_folders() {
            return Err(refused(format!("expected files in the folder, found {:?}", template.path(0, 1))));
        }
        Ok(format!("{}-{split}.{FORMAT}", self.info.name))
    }

    /// Returns the text of a `dataset_info.json` for other splits, with names of shards by
    /// [`shard_stem`](SetMetadata::shard_stem). All other fields are this data set's.
    pub fn info_text(&self, splits: &[WrittenSplit]) -> String {
        let mut fields = self.fields.clone();
        let texts = |lengths: &[u64]| lengths.iter().map(u64::to_string).collect::<Vec<_>>();
        let entry = |split: &WrittenSplit| {
            json!({
                "filepathTemplate": DEFAULT,
                "name": split.name,
                "numBytes": split.num_bytes.to_string(),
                "shardLengths": texts(&split.shard_lengths),
            })
        };
        set_field(&mut fields, "splits", splits.iter().map(entry).collect());
        set_field(&mut fields, "fileFormat", FORMAT.into());
        json_text(fields)
    }

    /// Returns the other files of the folder and of the folders in it, relative to it, with their sizes in
    /// bytes: features, names of labels, and all that are neither hidden nor shards. A link counts as a file
    /// if it leads to one in the folder.
    ///
    /// # Errors
    /// I/O errors. [`TfdsErrorKind::Folder`] for what is neither a file nor a folder, for other links, and
    /// for a URL in a store without listings.
    pub fn other_files(&self) -> Result<Vec<(PathBuf, u64)>> {
        let mut found = Vec::new();
        self.add_files(Path::new(""), 0, &mut found)?;
        found.sort();
        Ok(found)
    }

    fn add_files(&self, below: &Path, depth: usize, found: &mut Vec<(PathBuf, u64)>) -> Result<()> {
        let folder = self.folder.below(below);
        let entries = folder.entries()?.ok_or_else(|| {
            let reason = "expected a store with listings of folders, found one without";
            refused_folder(folder.path(), reason)
        })?;
        for FolderEntry { name, kind } in entries {
            if name.as_encoded_bytes().starts_with(b".") {
                continue;
            }
            let path = below.join(name);
            if path == Path::new(DatasetInfo::FILE_NAME) || self.is_shard(&path) {
                continue;
            }
            let whole = self.folder.join(&path);
            let refused = |reason: &str| refused_folder(&whole, reason);
            // Somebody else may have made the links: what they lead to elsewhere is not theirs to hand on.
            // Links to folders may lead around in a circle, or name one file a billion times.
            if !self.folder.is_remote() && whole.symlink_metadata().is_ok_and(|found| found.is_symlink()) {
                let is_inside =
                    || Some(whole.canonicalize().ok()?.starts_with(self.folder().canonicalize().ok()?));
                if !matches!(kind, EntryKind::File(_)) || is_inside() != Some(true) {
                    return Err(refused(
                        "expected a file of the data set, found a link that leads elsewhere or to a folder: remove it, or put what it \
                         leads to in its place",
                    ));
                }
            }
            match kind {
                EntryKind::File(size) => found.push((path, size)),
                EntryKind::Folder if depth >= MAX_DEPTH => {
                    return Err(refused("expected fewer folders around files"));
                }
                EntryKind::Folder => self.add_files(&path, depth + 1, found)?,
                EntryKind::Failed(e) => return Err(TfdsError::from(TfdsErrorKind::Io(e)).at(&whole)),
                EntryKind::Other | EntryKind::Unlisted => {
                    return Err(refused("expected a file or a folder, found another one"));
                }
            }
        }
        Ok(())
    }

    /// Returns true for the path of a shard of any split, also of another number of shards.
    fn is_shard(&self, path: &Path) -> bool {
        let name = path.to_str();
        name.is_some_and(|name| self.info.splits.iter().any(|split| split.template.shard(name).is_some()))
    }
}

/// Returns the text of a file of an object.
pub(crate) fn json_text(fields: Map<String, Value>) -> String {
    format!("{:#}\n", Value::Object(fields))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn metadata(info: &str) -> (tempfile::TempDir, SetMetadata) {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("dataset_info.json"), info).unwrap();
        let found = SetMetadata::find(dir.path(), None).unwrap();
        (dir, found)
    }

    /// The splits are only those that were written, with the default names. Other fields are kept.
    #[test]
    fn written_splits_replace_those_of_the_source() {
        let info = r#"{"name": "x", "file_format": "TFRECORD", "description": "d", "splits": [
            {"name": "a", "shardLengths": ["2"], "statistics": {"n": "1"}, "filepathTemplate": "{SPLIT}-{SHARD_INDEX}"}]}"#;
        let (_dir, found) = metadata(info);
        let split = WrittenSplit { name: "b".to_owned(), shard_lengths: vec![u64::MAX, 0], num_bytes: 7 };
        let text = found.info_text(std::slice::from_ref(&split));
        let expected = json!({"name": "x", "file_format": "tfrecord", "description": "d", "splits": [
            {"filepathTemplate": DEFAULT, "name": "b", "numBytes": "7", "shardLengths": ["18446744073709551615", "0"]}]});
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), expected);
        let written = DatasetInfo::parse(text.as_bytes()).unwrap();
        assert_eq!(written.splits[0].shard_lengths.as_deref(), Some(&split.shard_lengths[..]));
        let stem = found.shard_stem("b").unwrap();
        assert_eq!(written.splits[0].shard_path(1, 2), Path::new(&format!("{stem}-00001-of-00002")));
    }

    #[test]
    #[cfg(unix)]
    fn links_that_lead_elsewhere_are_not_files_of_the_data_set() {
        use std::os::unix::fs::symlink;
        let (dir, found) = metadata(r#"{"name": "x"}"#);
        let home = tempfile::tempdir().unwrap();
        fs::write(home.path().join("id_rsa"), "secret").unwrap();
        fs::create_dir(dir.path().join("docs")).unwrap();
        fs::write(dir.path().join("docs/LICENSE"), "MIT").unwrap();
        symlink("docs/LICENSE", dir.path().join("LICENSE")).unwrap();
        let names = |files: Vec<(PathBuf, u64)>| files.into_iter().map(|file| file.0).collect::<Vec<_>>();
        let all = ["LICENSE", "docs/LICENSE"].map(PathBuf::from);
        assert_eq!(names(found.other_files().unwrap()), all);
        let secret = home.path().join("id_rsa");
        for (name, target) in [
            ("NOTES", &*secret),
            ("docs/NOTES", &*secret),
            ("up", Path::new("../..")),
            ("home", home.path()),
            ("self", Path::new(".")),
            ("docs/around", Path::new("../docs")),
            ("dangling", Path::new("nothing")),
        ] {
            symlink(target, dir.path().join(name)).unwrap();
            let e = found.other_files().unwrap_err().to_string();
            assert!(
                e.contains(name) && e.contains("a link that leads elsewhere or to a folder: remove it"),
                "{e}"
            );
            fs::remove_file(dir.path().join(name)).unwrap();
        }
        assert_eq!(names(found.other_files().unwrap()), all);
    }

    #[test]
    fn names_that_no_split_has() {
        let (_dir, found) = metadata(r#"{"name": "x"}"#);
        for name in ["", "a b", "all", "a/b", "a[1]", "..", &"a".repeat(5000)] {
            assert!(
                matches!(found.shard_stem(name).unwrap_err().kind(), TfdsErrorKind::Split { .. }),
                "{name}"
            );
        }
        let (_dir, found) = metadata(r#"{"name": "x/y"}"#);
        let e = found.shard_stem("train").unwrap_err().to_string();
        assert!(e.contains("expected files in the folder, found \"x/y-train"), "{e}");
    }

    #[test]
    fn folders_without_a_data_set() {
        let dir = tempfile::tempdir().unwrap();
        let e = SetMetadata::find(dir.path(), None).unwrap_err();
        assert!(matches!(e.kind(), TfdsErrorKind::Folder { .. }), "{e}");
    }
}
