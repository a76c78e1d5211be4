//! Sets of files that appear when all are complete.

use super::error::ReshardError;
use super::plan::Plan;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use tfseek::io::Output;
use tfseek::{Error, ShardedWriter, Writer};

/// Folders that were created for the outputs. They are removed if no output gets its name.
#[derive(Default)]
pub(super) struct Folders(Vec<PathBuf>);

impl Folders {
    /// Creates the folders of the outputs. The folder of a folder must exist.
    pub(super) fn create(&mut self, plan: &Plan) -> Result<(), ReshardError> {
        for set in &plan.sets {
            let folder = set.names.folder();
            match fs::create_dir(folder) {
                Ok(()) => self.0.push(folder.into()),
                Err(_) if folder.is_dir() => {}
                Err(e) => return Err(Error::from(e).in_file(folder).into()),
            }
        }
        Ok(())
    }

    /// Keeps the folders.
    pub(super) fn keep(&mut self) {
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

/// Gives all files their names and writes their indexes. `writers` are finished, and in the order of the plan's shards.
///
/// Each set of several shards lacks its last shard until all others are new, so it is never a mixture of an old and a new set. An old last
/// shard is removed first.
pub(super) fn close(plan: &Plan, writers: Vec<Writer>) -> Result<(), ReshardError> {
    let many = writers.len() > 1;
    let (mut ordered, mut last) = (Vec::new(), Vec::new());
    for ((s, k), writer) in plan.shards().into_iter().zip(writers) {
        let Some(set) = plan.sets.get(s) else { continue };
        let shard = k as u64;
        if shard + 1 < set.names.len() {
            ordered.push(writer);
            continue;
        }
        let path = set.names.path(shard);
        if many && Output::replaces(&path) {
            remove(&path).map_err(|e| Error::from(e).in_file(&path))?;
        }
        last.push(writer);
    }
    ordered.append(&mut last);
    Ok(ShardedWriter::new(ordered).close()?)
}

/// Removes an old output, durably. Of a link the target is removed, as an output replaces the target.
fn remove(path: &Path) -> io::Result<()> {
    let target = path.canonicalize()?;
    fs::remove_file(&target)?;
    match target.parent() {
        Some(folder) if cfg!(unix) => match File::open(folder)?.sync_all() {
            // The file system does not sync folders.
            Err(e) if e.kind() == io::ErrorKind::InvalidInput => Ok(()),
            done => done,
        },
        _ => Ok(()),
    }
}
