//! Copies of prepared data sets: the folder of a version that TensorFlow Datasets reads again.
//!
//! The files are written to a folder `NEW.incompleteXXXXXX` next to the output. It is renamed when all are complete, `dataset_info.json` as the last. So
//! no reader sees a part of a copy, and of two runs that write the same folder one fails. A run that is killed leaves only that folder.

use super::names::{SPLIT, SetNames};
use super::options::{ReshardOptions, ReshardSet, ShardCount};
use super::sets::sync_folder;
use crate::error::{OptionsReason, OutputConflict, PathReason, ToolsError};
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use tempfile::TempDir;
use tfseek::frame::OVERHEAD;
use tfseek::paths::has_extension;
use tfseek::{Compression, Dataset, Error};
use tfseek_tfds::{CopiedSplit, CopySource, DatasetInfo};

/// Returns the prepared data set that an output is a copy of: if the only path is the folder of one, and the output has not the name of a TFRecord
/// file.
///
/// # Errors
/// [`ToolsError::Tfds`] for a data set that cannot be copied, for example if shards are missing.
pub fn prepared(paths: &[impl AsRef<Path>], out: &Path) -> Result<Option<CopySource>, ToolsError> {
    let [folder] = paths else { return Ok(None) };
    if names_files(out) {
        return Ok(None);
    }
    if !folder.as_ref().is_dir() {
        return Ok(None);
    }
    Ok(CopySource::open(folder.as_ref())?)
}

/// Returns true for the path of TFRecord files, or of a set of a form that only files have.
fn names_files(out: &Path) -> bool {
    let name = out.file_name().unwrap_or_default().to_string_lossy();
    let (stem, count) = name.rsplit_once('@').unwrap_or((&name, ""));
    let suffix = count.trim_start_matches(|c: char| c.is_ascii_digit() || c == '*');
    out.to_string_lossy().contains(SPLIT)
        || Compression::of_name(&name).0 != Compression::None
        || has_extension(stem)
        || (suffix.starts_with('.') && suffix.len() < count.len())
}

/// A copy of a prepared data set that is being written.
pub(super) struct PreparedCopy<'a> {
    source: &'a CopySource,
    /// The number or the size of the shards of each split. `None`: the numbers of the source.
    shards: Option<ShardCount>,
    out: PathBuf,
    /// The files that are copied as they are.
    files: Vec<PathBuf>,
    /// The folder of the files until all are complete.
    staging: TempDir,
    parents: Parents,
}

impl<'a> PreparedCopy<'a> {
    /// Checks the options, and creates the folder of the files.
    pub(super) fn new(
        source: &'a CopySource,
        options: &ReshardOptions,
    ) -> Result<PreparedCopy<'a>, ToolsError> {
        let refused = |what, reason| Err(ToolsError::Options(OptionsReason::Prepared { what, reason }));
        if options.split.is_some() {
            return refused("split", "which has splits of its own");
        }
        if !options.keep.is_empty() || !options.drop.is_empty() {
            return refused("features to keep or to drop", "because its features.json describes all");
        }
        if options.compression.is_some_and(|found| found != Compression::None) || options.members.is_some() {
            return refused("compression", "because TensorFlow Datasets reads plain files");
        }
        if options.force {
            return refused("force", "which is never replaced: remove it before");
        }
        let (out, shards) = target(&options.out, options.shards)?;
        check_new(&out)?;
        let parent = match out.parent() {
            Some(parent) if parent != Path::new("") => parent,
            _ => Path::new("."),
        };
        let parents = Parents::create(parent)?;
        let canonical = |path: &Path| path.canonicalize().map_err(|e| Error::from(e).in_file(path));
        if canonical(parent)?.starts_with(canonical(source.folder())?) {
            let (output, input) = (out, source.folder().into());
            return Err(OutputConflict::Inside { output, input }.into());
        }
        let files = source.other_files()?;
        let mut name = out.file_name().unwrap_or_default().to_owned();
        name.push(".incomplete");
        let mut builder = tempfile::Builder::new();
        builder.prefix(&name);
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            // The system subtracts those of its mask, as for any new folder.
            builder.permissions(fs::Permissions::from_mode(0o777));
        }
        let staging = builder.tempdir_in(parent).map_err(|e| Error::from(e).in_file(parent))?;
        Ok(PreparedCopy { source, shards, out, files, staging, parents })
    }

    /// Returns the number of records up to the end of each split.
    pub(super) fn ends(&self, ds: &Dataset) -> Result<Vec<u64>, ToolsError> {
        Ok(self.source.ends(ds)?)
    }

    /// Returns the number or the size of the shards of a split. A split without shards gets none.
    pub(super) fn shards(&self, split: usize) -> ShardCount {
        let own = self.source.splits().get(split).map_or(0, |split| split.shards.len() as u64);
        match self.shards {
            Some(shards) if own > 0 => shards,
            _ => ShardCount::Count(own),
        }
    }

    /// Returns the names of the files of a split.
    pub(super) fn names(&self, split: usize, count: u64) -> Result<SetNames, ToolsError> {
        let paths = self.source.shard_paths(split, count).ok_or_else(|| {
            let split = self.source.splits().get(split).map_or_else(String::new, |split| split.name.clone());
            ToolsError::Options(OptionsReason::PreparedShards { split, found: count })
        })?;
        Ok(SetNames::listed(self.staging.path(), paths))
    }

    /// Creates the folders of all files.
    pub(super) fn create_folders<'n>(
        &self,
        sets: impl IntoIterator<Item = &'n SetNames>,
    ) -> Result<(), ToolsError> {
        let shards = sets.into_iter().flat_map(|names| (0..names.len()).map(|shard| names.path(shard)));
        let folders: BTreeSet<PathBuf> = shards.filter_map(|path| Some(path.parent()?.into())).collect();
        folders.iter().try_for_each(|folder| create_folder(folder))
    }

    /// Copies the other files, writes `dataset_info.json` with the lengths of each split's shards, and gives the folder its name. The reported paths become
    /// those in it.
    pub(super) fn publish(
        &self,
        lengths: Vec<Vec<u64>>,
        reported: &mut [ReshardSet],
    ) -> Result<(), ToolsError> {
        let staging = self.staging.path();
        let mut folders: BTreeSet<PathBuf> = BTreeSet::from([staging.into()]);
        for file in &self.files {
            let (from, to) = (self.source.folder().join(file), staging.join(file));
            if let Some(folder) = to.parent() {
                create_folder(folder)?;
                folders.extend(folder.ancestors().take_while(|path| *path != staging).map(PathBuf::from));
            }
            copy(&from, &to)?;
        }
        let copied = |(shard_lengths, report): (Vec<u64>, &ReshardSet)| CopiedSplit {
            shard_lengths,
            num_bytes: report.bytes.saturating_sub(report.records.saturating_mul(OVERHEAD as u64)),
        };
        let splits: Vec<CopiedSplit> = lengths.into_iter().zip(&*reported).map(copied).collect();
        let info = staging.join(DatasetInfo::FILE_NAME);
        let text = self.source.info_text(&splits);
        let written = File::create_new(&info).and_then(|mut file| {
            file.write_all(text.as_bytes())?;
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
        self.parents.sync().map_err(|e| Error::from(e).in_file(&self.out))?;
        let renamed = |path: &mut PathBuf| {
            if let Ok(below) = path.strip_prefix(staging) {
                *path = if below == Path::new("") { self.out.clone() } else { self.out.join(below) };
            }
        };
        for report in reported {
            renamed(&mut report.path);
            report.shards.iter_mut().for_each(renamed);
        }
        Ok(())
    }
}

/// Returns the folder of an output, and the number or size of the shards, which the path or the option has.
fn target(out: &Path, shards: Option<ShardCount>) -> Result<(PathBuf, Option<ShardCount>), ToolsError> {
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
                    Err(refused(PathReason::OtherShardCount { found: count }))
                }
                _ => Ok((out.with_file_name(stem), Some(ShardCount::Count(count)))),
            }
        }
        // Without the separator at its end, which a link would be followed for.
        _ => Ok((out.with_file_name(name), shards)),
    }
}

/// Refuses an output that exists, unless it is an empty folder.
fn check_new(out: &Path) -> Result<(), ToolsError> {
    let is_new = match fs::symlink_metadata(out) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => true,
        Err(e) => return Err(Error::from(e).in_file(out).into()),
        Ok(found) => found.is_dir() && fs::read_dir(out).is_ok_and(|mut entries| entries.next().is_none()),
    };
    if is_new { Ok(()) } else { Err(OutputConflict::Folder { output: out.into() }.into()) }
}

fn create_folder(folder: &Path) -> Result<(), ToolsError> {
    fs::create_dir_all(folder).map_err(|e| Error::from(e).in_file(folder).into())
}

/// Copies a file, durably.
fn copy(from: &Path, to: &Path) -> Result<(), ToolsError> {
    let in_file = |path: &Path, e| ToolsError::from(Error::from(e).in_file(path));
    let mut source = File::open(from).map_err(|e| in_file(from, e))?;
    let mut target = File::create_new(to).map_err(|e| in_file(to, e))?;
    io::copy(&mut source, &mut target).map_err(|e| in_file(to, e))?;
    target.sync_all().map_err(|e| in_file(to, e))
}

/// Folders around the output that were created for it. They are removed if they are empty at the end.
struct Parents {
    folder: PathBuf,
    created: Vec<PathBuf>,
}

impl Parents {
    fn create(folder: &Path) -> Result<Parents, ToolsError> {
        let missing = folder.ancestors().take_while(|path| *path != Path::new("") && !path.exists());
        let created = missing.map(PathBuf::from).collect();
        let parents = Parents { folder: folder.into(), created };
        create_folder(folder)?;
        Ok(parents)
    }

    /// Syncs the folder of the output, and those around it that are new.
    fn sync(&self) -> io::Result<()> {
        sync_folder(&self.folder)?;
        self.created
            .iter()
            .filter_map(|path| path.parent())
            .try_for_each(|path| sync_folder(if path == Path::new("") { Path::new(".") } else { path }))
    }
}

impl Drop for Parents {
    fn drop(&mut self) {
        for folder in &self.created {
            // Fails if there is a file in it.
            let _ = fs::remove_dir(folder);
        }
    }
}
