//! Sets of files that appear when all are complete.

use super::limits;
use super::names::SetNames;
use super::options::ReshardSet;
use crate::error::{OutputConflict, ToolsError};
use crate::write::outputs;
use crate::write::sync::sync_name;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use tfseek::index::{IndexOptions, build_beside};
use tfseek::{Compression, Error};

/// Number of open files that reading a dataset may take.
const READERS: u64 = 512;
/// Number of open files without which nothing can be read.
const FEWEST: u64 = 16;

/// Checks that the files of sets may be opened together and written.
pub(crate) fn check(names: &[SetNames], inputs: &[PathBuf], force: bool) -> Result<(), ToolsError> {
    check_count(names.iter().fold(0, |sum, names| sum.saturating_add(names.len())))?;
    let outputs: Vec<PathBuf> = names.iter().flat_map(SetNames::paths).collect();
    let pairs = outputs.iter().map(|output| (output.as_path(), output.as_path()));
    outputs::check_distinct(pairs, inputs.iter().map(PathBuf::as_path))?;
    if !force {
        outputs.iter().try_for_each(|output| outputs::check_new(output))?;
    }
    names.iter().try_for_each(check_other)
}

/// Checks that there is no other set with this name.
pub(crate) fn check_other(names: &SetNames) -> Result<(), ToolsError> {
    match names.other_set() {
        Some(other) => Err(OutputConflict::OtherSet(other).into()),
        None => Ok(()),
    }
}

/// Checks that all files can be open at the same time: they get their names together.
pub(crate) fn check_count(files: u64) -> Result<(), ToolsError> {
    let open = limits::open_files(files.saturating_add(READERS));
    let limit = open.saturating_sub(FEWEST);
    if files <= limit { Ok(()) } else { Err(ToolsError::OpenFiles { limit, open, found: files }) }
}

/// Returns the size of a file that has its name.
pub(crate) fn written_size(path: &Path) -> tfseek::Result<u64> {
    fs::metadata(path).map(|found| found.len()).map_err(|e| {
        let text = format!("the file is complete and renamed, but its size cannot be read: {e}");
        Error::from(io::Error::new(e.kind(), text)).in_file(path)
    })
}

/// Returns a set whose files have their names. `lengths` has the number of records of each.
pub(crate) fn written(
    names: &SetNames,
    split: Option<String>,
    lengths: Vec<u64>,
) -> tfseek::Result<ReshardSet> {
    let shards: Vec<PathBuf> = names.paths().collect();
    let bytes = shards.iter().map(|path| written_size(path)).sum::<tfseek::Result<u64>>()?;
    let records = lengths.iter().sum();
    Ok(ReshardSet { split, path: names.name(), shards, records, bytes, lengths })
}

/// Writes the indexes of compressed files.
pub(crate) fn index_compressed(
    shards: &[PathBuf],
    compression: Compression,
    options: Option<IndexOptions>,
) -> tfseek::Result<()> {
    match options {
        Some(options) if compression != Compression::None => {
            build_beside(shards, &options)?.into_iter().try_for_each(|built| built.map(drop))
        }
        _ => Ok(()),
    }
}

/// Folders that were created for the outputs, the outer ones first. They are removed if no output gets its
/// name.
#[derive(Default)]
pub(crate) struct Folders(pub(crate) Vec<PathBuf>);

impl Folders {
    /// Creates the folders of the outputs. The folder of a folder must exist.
    pub(crate) fn create<'n>(
        &mut self,
        sets: impl IntoIterator<Item = &'n SetNames>,
    ) -> Result<(), ToolsError> {
        for folder in sets.into_iter().map(SetNames::folder) {
            match fs::create_dir(folder) {
                Ok(()) => {
                    self.0.push(folder.into());
                    sync_name(folder).map_err(|e| Error::from(e).in_file(folder))?;
                }
                Err(_) if folder.is_dir() => {}
                Err(e) => return Err(Error::from(e).in_file(folder).into()),
            }
        }
        Ok(())
    }

    /// Keeps the folders.
    pub(crate) fn keep(&mut self) {
        self.0.clear();
    }
}

impl Drop for Folders {
    fn drop(&mut self) {
        for folder in self.0.iter().rev() {
            // Fails if there is a file in it.
            let _ = fs::remove_dir(folder);
        }
    }
}
