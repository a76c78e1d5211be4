//! A folder that appears when all its files are complete.
//!
//! The files are written to a folder `NEW.incompleteXXXXXX` next to it, which is then renamed. So no reader
//! sees a part of them, and of two runs that write the same folder one fails. A run that is killed leaves
//! only that folder.

use super::options::{ReshardSet, ShardCount};
use super::sets::Folders;
use crate::error::{OptionsReason, OutputConflict, PathReason, ToolsError};
use crate::write::outputs;
use crate::write::sync::{sync_folder, sync_name};
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use tempfile::TempDir;
use tfseek::frame::OVERHEAD;
use tfseek::{Compression, Error};
use tfseek_tfds::{DatasetInfo, SetMetadata, WrittenSplit};

/// A folder of a data set of TensorFlow Datasets that is being written.
pub(crate) struct NewFolder {
    out: PathBuf,
    /// The other files of the data set, relative to its folder.
    files: Vec<PathBuf>,
    /// The folder of the files until all are complete.
    staging: TempDir,
    /// The folders that were created around it. They are removed if it does not get its name.
    _parents: Folders,
}

impl NewFolder {
    /// Creates the folder of the files. The other files of the data set are listed.
    ///
    /// # Errors
    /// [`ToolsError`] for a path that exists, unless it is an empty folder, and for one in the folder of the
    /// data set.
    pub(crate) fn create(out: PathBuf, metadata: &SetMetadata) -> Result<NewFolder, ToolsError> {
        check_new(&out)?;
        let parent = match out.parent() {
            Some(parent) if parent != Path::new("") => parent,
            _ => Path::new("."),
        };
        let parents = Folders(missing(parent));
        create_folder(parent)?;
        let canonical = |path: &Path| path.canonicalize().map_err(|e| Error::from(e).in_file(path));
        if canonical(parent)?.starts_with(canonical(metadata.folder())?) {
            let output = out;
            let input = metadata.folder().into();
            return Err(OutputConflict::Inside { output, input }.into());
        }
        let files = metadata.other_files()?.into_iter().map(|(file, _)| file).collect();
        let mut name = out.file_name().unwrap_or_default().to_owned();
        name.push(".incomplete");
        let mut builder = tempfile::Builder::new();
        builder.prefix(&name);
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            // The system subtracts its mask's permissions, as for any new folder.
            builder.permissions(fs::Permissions::from_mode(0o777));
        }
        let staging = builder.tempdir_in(parent).map_err(|e| Error::from(e).in_file(parent))?;
        Ok(NewFolder { out, files, staging, _parents: parents })
    }

    /// Returns the folder of the files until all are complete.
    pub(crate) fn path(&self) -> &Path {
        self.staging.path()
    }

    /// Copies the other files of the data set, writes `dataset_info.json`, and gives the folder its name.
    /// The paths of the sets become those in the folder.
    pub(crate) fn publish(
        &self,
        metadata: &SetMetadata,
        sets: &mut [ReshardSet],
        info_text: impl FnOnce(&[WrittenSplit]) -> String,
    ) -> Result<(), ToolsError> {
        let staging = self.path();
        let written = |set: &ReshardSet| WrittenSplit {
            name: set.split.clone().unwrap_or_default(),
            shard_lengths: set.lengths.clone(),
            num_bytes: set.bytes.saturating_sub(set.records * OVERHEAD as u64),
        };
        let splits: Vec<WrittenSplit> = sets.iter().map(written).collect();
        let info_text = info_text(&splits);
        let mut folders: BTreeSet<PathBuf> = BTreeSet::from([staging.into()]);
        for file in &self.files {
            let from = metadata.folder().join(file);
            let to = staging.join(file);
            if let Some(folder) = to.parent() {
                create_folder(folder)?;
                folders.extend(folder.ancestors().take_while(|path| *path != staging).map(PathBuf::from));
            }
            copy(&from, &to)?;
        }
        let info = staging.join(DatasetInfo::FILE_NAME);
        let written = File::create_new(&info).and_then(|mut file| {
            file.write_all(info_text.as_bytes())?;
            file.sync_all()
        });
        written.map_err(|e| Error::from(e).in_file(&info))?;
        for folder in &folders {
            sync_folder(folder).map_err(|e| Error::from(e).in_file(folder))?;
        }
        // An empty folder is replaced, which only some systems do in one call.
        let _ = fs::remove_dir(&self.out);
        if let Err(e) = fs::rename(staging, &self.out) {
            check_new(&self.out)?;
            return Err(Error::from(e).in_file(&self.out).into());
        }
        sync_name(&self.out).map_err(|e| Error::from(e).in_file(&self.out))?;
        for set in sets {
            set.path = self.renamed(&set.path);
            set.shards.iter_mut().for_each(|path| *path = self.renamed(path));
        }
        Ok(())
    }

    /// Returns the path that a path of a file has when all are complete.
    fn renamed(&self, path: &Path) -> PathBuf {
        match path.strip_prefix(self.path()) {
            Ok(below) if below == Path::new("") => self.out.clone(),
            Ok(below) => self.out.join(below),
            Err(_) => path.to_path_buf(),
        }
    }
}

/// Returns the folder of an output, and the number or size of the shards of each split, which the path or the
/// option has. It is the folder of the version, and no name and version are added: `--out` always names what
/// is written.
pub(crate) fn folder_of(
    out: &Path,
    shards: Option<ShardCount>,
) -> Result<(PathBuf, Option<ShardCount>), ToolsError> {
    let refused = |reason| ToolsError::Path { path: out.to_path_buf(), reason };
    let name = out.file_name().ok_or_else(|| refused(PathReason::Folder))?;
    let name = name.to_str().ok_or_else(|| refused(PathReason::NotUtf8))?;
    if let Some(ShardCount::Count(0) | ShardCount::Size(0)) = shards {
        return Err(refused(PathReason::NoShards));
    }
    match name.rsplit_once('@') {
        Some((stem, "*")) if !stem.is_empty() => {
            let shards = shards.ok_or_else(|| refused(PathReason::NoShardCount))?;
            Ok((out.with_file_name(stem), Some(shards)))
        }
        Some((stem, count)) if !stem.is_empty() && count.bytes().all(|c| c.is_ascii_digit()) => {
            let count = count.parse().ok().filter(|&count| count > 0);
            let count = count.ok_or_else(|| refused(PathReason::ShardCount))?;
            match shards {
                Some(shards) if shards != ShardCount::Count(count) => {
                    Err(refused(PathReason::OtherShardCount(count)))
                }
                _ => Ok((out.with_file_name(stem), Some(ShardCount::Count(count)))),
            }
        }
        // Without the separator at its end, which a link would be followed for.
        _ => Ok((out.with_file_name(name), shards)),
    }
}

/// Refuses options that the files of a data set cannot have.
pub(crate) fn check_plain(
    compression: Option<Compression>,
    members: Option<u64>,
    force: bool,
) -> Result<(), ToolsError> {
    let refused = |what, reason| Err(ToolsError::Options(OptionsReason::Prepared { what, reason }));
    if compression.is_some_and(|found| found != Compression::None) || members.is_some() {
        return refused("compression", "because TensorFlow Datasets reads plain files");
    }
    // To remove a folder with all that is in it is the decision of the user.
    if force {
        return refused("force", "which is never replaced: remove it before");
    }
    Ok(())
}

/// Refuses an output that exists, unless it is an empty folder.
fn check_new(out: &Path) -> Result<(), ToolsError> {
    let is_new = match fs::symlink_metadata(out) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => true,
        Err(e) => return Err(Error::from(e).in_file(out).into()),
        Ok(found) => found.is_dir() && fs::read_dir(out).is_ok_and(|mut entries| entries.next().is_none()),
    };
    if is_new { Ok(()) } else { Err(OutputConflict::Folder(out.into()).into()) }
}

/// Creates a folder and those around it. A folder that is new has its name durably.
pub(crate) fn create_folder(folder: &Path) -> Result<(), ToolsError> {
    outputs::check_local(folder)?;
    let missing = missing(folder);
    let created =
        fs::create_dir_all(folder).and_then(|()| missing.iter().try_for_each(|path| sync_name(path)));
    created.map_err(|e| Error::from(e).in_file(folder).into())
}

/// Copies a file, durably.
fn copy(from: &Path, to: &Path) -> Result<(), ToolsError> {
    let in_file = |path: &Path, e| ToolsError::from(Error::from(e).in_file(path));
    let mut source = File::open(from).map_err(|e| in_file(from, e))?;
    let mut target = File::create_new(to).map_err(|e| in_file(to, e))?;
    io::copy(&mut source, &mut target).map_err(|e| in_file(to, e))?;
    target.sync_all().map_err(|e| in_file(to, e))
}

/// Returns the folders that do not exist, the outer ones first.
fn missing(folder: &Path) -> Vec<PathBuf> {
    let missing = folder.ancestors().take_while(|path| *path != Path::new("") && !path.exists());
    let mut missing: Vec<PathBuf> = missing.map(PathBuf::from).collect();
    missing.reverse();
    missing
}
