//! Sets that several tasks write, each its own file.
//!
//! ```text
//! .tmp-JOB-TASK-ATTEMPT               a file of one attempt of a task, with five digits or more for a number
//! .tfseek/.tmp-JOB-TASK-ATTEMPT.tfri  its index
//! ```
//!
//! Paths of datasets never include these names, because they begin with a dot.

use crate::error::{OptionsReason, OutputConflict, ToolsError};
use crate::forms::digest;
use crate::write::outputs;
use crate::write::reshard::names::{OutPattern, SetNames};
use crate::write::reshard::sets::{self, index_compressed, written_size};
use crate::write::reshard::{ReshardSet, ShardCount, writer_options};
use crate::write::sync::sync_folder;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fs;
use std::io::{self, ErrorKind as IoErrorKind};
use std::path::{Path, PathBuf};
use tfseek::index::IndexOptions;
use tfseek::io::{Existing, HiddenFolder, Output};
use tfseek::paths::Replacement;
use tfseek::{Compression, Error, Writer};

/// Start of the names.
const TMP: &str = ".tmp-";
/// Folder of indexes, and the ending of their names (`docs/index.md`).
const INDEX_FOLDER: &str = ".tfseek";
const INDEX_ENDING: &str = ".tfri";

/// One attempt of a task of a job. A task that runs again, or twice at the same time, is another attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskAttempt {
    /// A name that no other job in the folder has: letters, digits, `_` and `.`.
    pub job: String,
    /// Number or name of the task, which decides about the order of the shards: numbers first.
    pub task: String,
    /// A name that no other attempt of the task has.
    pub attempt: String,
}

impl TaskAttempt {
    /// Returns the name of the attempt's file.
    ///
    /// # Errors
    /// [`ToolsError::Options`] for other characters.
    fn file_name(&self) -> Result<String, ToolsError> {
        let TaskAttempt { job, task, attempt } = self;
        for (what, name) in [("job", job), ("task", task), ("attempt", attempt)] {
            if !is_name(name) {
                return Err(ToolsError::Options(OptionsReason::AttemptName { what, found: name.clone() }));
            }
        }
        Ok(match task.parse::<u64>() {
            Ok(task) => format!("{TMP}{job}-{task:05}-{attempt}"),
            Err(_) => format!("{TMP}{job}-{task}-{attempt}"),
        })
    }

    /// Parses the name of an attempt's file.
    fn parse(name: &str) -> Option<TaskAttempt> {
        let (job, rest) = name.strip_prefix(TMP)?.split_once('-')?;
        let (task, attempt) = rest.split_once('-')?;
        let found = TaskAttempt { job: job.into(), task: task.into(), attempt: attempt.into() };
        (found.file_name().ok()? == name).then_some(found)
    }

    /// Returns the place of the task among all tasks.
    fn order(&self) -> (u64, String) {
        match self.task.parse() {
            Ok(number) => (number, String::new()),
            Err(_) => (u64::MAX, self.task.clone()),
        }
    }
}

fn is_name(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '.')
}

/// Options of a [`TaskWriter`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct TaskOptions {
    /// Compression of the file. Default: none.
    pub compression: Compression,
    /// Size of the members of a gzip file. Default: one member.
    pub members: Option<u64>,
    /// Write an index of the file. Default: true.
    pub index: bool,
}

impl Default for TaskOptions {
    fn default() -> TaskOptions {
        TaskOptions { compression: Compression::None, members: None, index: true }
    }
}

/// A file that one attempt of a task wrote. It counts if it is given to [`commit`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskFile {
    /// Name of the file in its folder.
    pub name: String,
    /// Number of records.
    pub records: u64,
    /// Size of the file in bytes.
    pub bytes: u64,
    /// SHA-256 of all payloads in lower-case hex. Each is hashed as 8 bytes of length, little-endian,
    /// followed by its bytes.
    pub digest: String,
}

/// A writer of the file of one attempt of a task. A writer that is dropped before it is closed leaves no
/// file.
pub struct TaskWriter {
    path: PathBuf,
    name: String,
    options: TaskOptions,
    writer: Writer,
    hash: Sha256,
}

impl TaskWriter {
    /// Creates a file in an existing folder.
    ///
    /// # Errors
    /// [`ToolsError::Options`] for names of other characters; I/O errors.
    pub fn create(
        folder: &Path,
        attempt: &TaskAttempt,
        options: &TaskOptions,
    ) -> Result<TaskWriter, ToolsError> {
        let name = attempt.file_name()?;
        let path = folder.join(&name);
        let writer =
            writer_options(options.compression, options.members, options.index, true).create(&path)?;
        Ok(TaskWriter { path, name, options: options.clone(), writer, hash: Sha256::new() })
    }

    /// Writes a record.
    ///
    /// # Errors
    /// As [`Writer::write`].
    pub fn write(&mut self, payload: &[u8]) -> tfseek::Result<()> {
        self.hash.update((payload.len() as u64).to_le_bytes());
        self.hash.update(payload);
        self.writer.write(payload)
    }

    /// Completes the file and its index.
    ///
    /// # Errors
    /// I/O errors.
    pub fn close(mut self) -> Result<TaskFile, ToolsError> {
        self.writer.close()?;
        let TaskOptions { compression, index, .. } = self.options;
        let index = index.then(IndexOptions::new);
        index_compressed(std::slice::from_ref(&self.path), compression, index)?;
        Ok(TaskFile {
            name: self.name,
            records: self.writer.records_written(),
            bytes: written_size(&self.path)?,
            digest: digest::hex(&self.hash.finalize()),
        })
    }
}

/// Checks that there is no set with the name of `out`, which is a path of a set without a number of shards. A
/// job calls it before its tasks begin.
///
/// # Errors
/// [`ToolsError`].
pub fn check_job(out: &Path) -> Result<(), ToolsError> {
    let names = names_of(out, 1)?;
    match names.all().into_iter().next() {
        Some(output) => Err(OutputConflict::Exists(output).into()),
        None => Ok(()),
    }
}

fn names_of(out: &Path, count: u64) -> Result<SetNames, ToolsError> {
    Ok(OutPattern::parse(out, Some(ShardCount::Count(count)), false)?.set(None, Some(count)))
}

/// Makes the files of a job a set of shards `NAME-00000-of-N`, in the order of their tasks, and removes all
/// other files of the job.
///
/// `out` is the path of the set: `out/train.tfrecord` or `out/train@*.tfrecord`. Its folder is the files'
/// folder. Files without records are left out, unless there are no others; without any file an empty one is
/// written. The last shard gets its name last, so a set is refused until it is complete. `force` replaces
/// sets of that name, also of other numbers of shards. A commit that was interrupted can be repeated. A
/// commit compares names and sizes and reads no record, because frames have checksums. Engines decide about
/// the number of tasks, hence the files and sets of any number.
///
/// # Errors
/// [`ToolsError`]: two files of one task, a file that is missing or has another size, and existing outputs
/// without `force`. Files of the job remain then.
pub fn commit(
    out: &Path,
    job: &str,
    files: &[TaskFile],
    options: &TaskOptions,
    force: bool,
) -> Result<ReshardSet, ToolsError> {
    let mut files = counted(job, files)?;
    let names = names_of(out, files.len().max(1) as u64)?;
    let folder = names.folder().to_path_buf();
    if files.is_empty() {
        let attempt = TaskAttempt { job: job.into(), task: "0".into(), attempt: "empty".into() };
        files.push(TaskWriter::create(&folder, &attempt, options)?.close()?);
    }
    let shards: Vec<PathBuf> = names.paths().collect();
    let mut replacement = Replacement::lock(shards.first().map(PathBuf::as_path));
    let left = left_files(&folder, &files, &shards)?;
    let indexes = indexes_in(&folder);
    if !left.is_empty() {
        let is_left = |path: &PathBuf| left.iter().any(|(_, to)| *to == path);
        if force {
            let mut old = names.all();
            old.retain(|path| !names.has(path) || is_left(path));
            replacement.set_aside(&old)?;
            for path in &old {
                if indexes.is_some() {
                    let _ = fs::remove_file(folder.join(INDEX_FOLDER).join(index_name(path)));
                }
                // A shard that is aside may still have its name.
                if !names.has(path) && path.symlink_metadata().is_ok() {
                    fs::remove_file(path).map_err(|e| Error::from(e).in_file(path))?;
                }
            }
        } else {
            left.iter().try_for_each(|(_, to)| outputs::check_new(to))?;
            sets::check_other(&names)?;
        }
    }
    let sync = || sync_folder(&folder).map_err(|e| Error::from(e).in_file(&folder));
    for (from, to) in &left {
        // The last name makes the set whole, so the others must be on the disk before.
        if shards.last() == Some(*to) {
            sync()?;
        }
        // An index that is not there can be built later, and one that does not fit is not used.
        let _ = indexes.as_ref().map(|indexes| indexes.rename(&index_name(from), &index_name(to)));
        Output::rename(from, to, Existing::replace_if(force))
            .map_err(|e| Error::from(e).in_file(to.as_path()))?;
    }
    sync()?;
    if force {
        replacement.end(&shards)?;
    }
    abort(&folder, job)?;
    let total = |of: fn(&TaskFile) -> u64| files.iter().fold(0u64, |sum, file| sum.saturating_add(of(file)));
    Ok(ReshardSet {
        split: None,
        path: names.name(),
        shards,
        records: total(|file| file.records),
        bytes: total(|file| file.bytes),
        lengths: files.iter().map(|file| file.records).collect(),
    })
}

/// Returns the paths of the files that have no names of shards yet, and these names.
fn left_files<'s>(
    folder: &Path,
    files: &[TaskFile],
    shards: &'s [PathBuf],
) -> Result<Vec<(PathBuf, &'s PathBuf)>, ToolsError> {
    let mut left = Vec::new();
    for (file, to) in files.iter().zip(shards) {
        let from = folder.join(&file.name);
        match (size(&from)?, size(to)?) {
            (Some(found), _) if found == file.bytes => left.push((from, to)),
            // A commit that was interrupted has renamed it.
            (None, Some(found)) if found == file.bytes => {}
            (found, _) => {
                let found = found.map_or("none".to_owned(), |found| format!("one of {found} bytes"));
                let expected = format!("expected a file of {} bytes", file.bytes);
                let text = format!("{:?}: {expected}, found {found}", file.name);
                return Err(ToolsError::Task(text.into()));
            }
        }
    }
    Ok(left)
}

/// Returns the files that become shards, in the order of their tasks.
fn counted(job: &str, files: &[TaskFile]) -> Result<Vec<TaskFile>, ToolsError> {
    let mut by_task: BTreeMap<_, &TaskFile> = BTreeMap::new();
    for file in files {
        let name = &file.name;
        let Some(attempt) = TaskAttempt::parse(name).filter(|attempt| attempt.job == job) else {
            let text = format!("{name:?}: expected the name of a file of the job {job:?}");
            return Err(ToolsError::Task(text.into()));
        };
        if let Some(other) = by_task.insert(attempt.order(), file) {
            let task = attempt.task;
            let text = format!("expected one file of the task {task}, found {:?} and {name:?}", other.name);
            return Err(ToolsError::Task(text.into()));
        }
    }
    let some = by_task.values().any(|file| file.records > 0);
    let kept = by_task.into_values().filter(|file| file.records > 0 || !some).cloned();
    Ok(kept.take(if some { usize::MAX } else { 1 }).collect())
}

/// Removes all files of a job from a folder.
///
/// # Errors
/// I/O errors.
pub fn abort(folder: &Path, job: &str) -> Result<(), ToolsError> {
    let of_job = |name: &str| TaskAttempt::parse(name).is_some_and(|attempt| attempt.job == job);
    let is_index = |name: &str| name.strip_suffix(INDEX_ENDING).is_some_and(of_job);
    remove_files(folder, &of_job)?;
    match indexes_in(folder) {
        Some(_) => remove_files(&folder.join(INDEX_FOLDER), &is_index),
        None => Ok(()),
    }
}

/// Returns the folder of the indexes of a folder. `None` if there is none, and for a link, in which no task
/// wrote an index.
fn indexes_in(folder: &Path) -> Option<HiddenFolder> {
    HiddenFolder::open(&folder.join(INDEX_FOLDER), false).ok().flatten()
}

/// Removes the files of a folder with these names. A folder that does not exist has none.
fn remove_files(folder: &Path, is_one: &dyn Fn(&str) -> bool) -> Result<(), ToolsError> {
    let in_folder = |e: io::Error, path: &Path| ToolsError::from(Error::from(e).in_file(path));
    let entries = match fs::read_dir(folder) {
        Err(e) if e.kind() == IoErrorKind::NotFound => return Ok(()),
        entries => entries.map_err(|e| in_folder(e, folder))?,
    };
    for entry in entries {
        let entry = entry.map_err(|e| in_folder(e, folder))?;
        if entry.file_name().to_str().is_some_and(is_one) {
            match fs::remove_file(entry.path()) {
                // Removed by another process.
                Err(e) if e.kind() == IoErrorKind::NotFound => {}
                removed => removed.map_err(|e| in_folder(e, &entry.path()))?,
            }
        }
    }
    Ok(())
}

/// Returns the size of a file. `None` if there is none.
fn size(path: &Path) -> Result<Option<u64>, ToolsError> {
    match fs::metadata(path) {
        Ok(found) => Ok(Some(found.len())),
        Err(e) if e.kind() == IoErrorKind::NotFound => Ok(None),
        Err(e) => Err(Error::from(e).in_file(path).into()),
    }
}

/// Returns the name of the index of a file.
fn index_name(path: &Path) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(INDEX_ENDING);
    name.into()
}
