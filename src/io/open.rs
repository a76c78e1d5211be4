//! Opening regular files for reading, with a limit on open descriptors.

use super::system;
use std::fs::{File, Metadata, OpenOptions};
use std::io;
use std::ops::Deref;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Opens a regular file for reading.
///
/// Never blocks. FIFOs, sockets, devices and folders are refused. To open a pipe blocks until there is a
/// writer, and its size of 0 would look like a dataset without records.
///
/// # Errors
/// I/O errors; [`io::ErrorKind::IsADirectory`] for a folder, [`io::ErrorKind::Unsupported`] for other files
/// that are not regular.
pub(crate) fn open_regular(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true);
    system::open_at_once(&mut options);
    let file = match options.open(path) {
        // A write lease (fcntl(2), F_SETLEASE) on a regular file. Without the flag, `open` waits until the
        // lease is released.
        Err(e) if e.kind() == io::ErrorKind::WouldBlock && std::fs::metadata(path)?.is_file() => {
            File::open(path)?
        }
        // Windows refuses to open a folder.
        Err(e) if e.kind() == io::ErrorKind::PermissionDenied && path.is_dir() => {
            return Err(io::ErrorKind::IsADirectory.into());
        }
        opened => opened?,
    };
    check_regular(&file.metadata()?)?;
    Ok(file)
}

/// Checks that the metadata belong to a regular file.
///
/// # Errors
/// [`io::ErrorKind::IsADirectory`]; [`io::ErrorKind::Unsupported`] with the type of the file in the message.
pub(crate) fn check_regular(meta: &Metadata) -> io::Result<()> {
    if meta.is_file() {
        return Ok(());
    }
    if meta.is_dir() {
        return Err(io::ErrorKind::IsADirectory.into());
    }
    Err(io::Error::new(
        io::ErrorKind::Unsupported,
        format!("expected a regular file, found {}", system::file_type_name(meta)),
    ))
}

/// The limits of one dataset: descriptors of shards, descriptors of index files, and memory of index files
/// that were read.
#[derive(Debug)]
pub(crate) struct Budget {
    shards: Arc<AtomicU64>,
    indexes: Arc<AtomicU64>,
    memory: Arc<AtomicU64>,
}

impl Budget {
    /// Limit of open shards. The usual limit of a process is 1024 descriptors. A shard beyond it is opened
    /// for each read, so that 10,000 shards do not exhaust the process.
    const SHARDS: u64 = 256;
    /// Limit of open index files that are not read yet.
    const INDEXES: u64 = 128;
    /// Limit of the memory of index files that were read, in bytes.
    const MEMORY: u64 = 256 << 20;

    pub(crate) fn new() -> Budget {
        let limit = |most| Arc::new(AtomicU64::new(most));
        let [shards, indexes, memory] = [Budget::SHARDS, Budget::INDEXES, Budget::MEMORY].map(limit);
        Budget { shards, indexes, memory }
    }

    /// Keeps a shard's descriptor open, or returns the file if the limit is reached.
    pub(crate) fn keep_shard(&self, file: File) -> Result<KeptFile, File> {
        KeptFile::new(file, &self.shards)
    }

    /// Keeps the descriptor of an index file open, or returns the file if the limit is reached.
    pub(crate) fn keep_index(&self, file: File) -> Result<KeptFile, File> {
        KeptFile::new(file, &self.indexes)
    }

    /// Reserves memory for reading an index file. `None` if it would exceed the limit.
    pub(crate) fn reserve(&self, bytes: u64) -> Option<Reserved> {
        Reserved::of(&self.memory, bytes)
    }
}

/// A part of a limit of a [`Budget`], until it is dropped.
#[derive(Debug)]
pub(crate) struct Reserved {
    left: Arc<AtomicU64>,
    amount: u64,
}

impl Reserved {
    fn of(left: &Arc<AtomicU64>, amount: u64) -> Option<Reserved> {
        left.fetch_update(Relaxed, Relaxed, |left| left.checked_sub(amount)).ok()?;
        Some(Reserved { left: Arc::clone(left), amount })
    }
}

impl Drop for Reserved {
    fn drop(&mut self) {
        self.left.fetch_add(self.amount, Relaxed);
    }
}

/// An open file that counts against a [`Budget`] until it is dropped.
#[derive(Debug)]
pub(crate) struct KeptFile {
    file: File,
    _reserved: Reserved,
}

impl KeptFile {
    fn new(file: File, left: &Arc<AtomicU64>) -> Result<KeptFile, File> {
        // Other datasets and the rest of the process need descriptors too.
        let reserved = if system::may_keep(&file) { Reserved::of(left, 1) } else { None };
        match reserved {
            Some(reserved) => Ok(KeptFile { file, _reserved: reserved }),
            None => Err(file),
        }
    }
}

impl Deref for KeptFile {
    type Target = File;

    fn deref(&self) -> &File {
        &self.file
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_refuses_above_its_limits() {
        let budget = Budget::new();
        let open = || tempfile::tempfile().unwrap();
        let mut kept: Vec<_> = (0..Budget::SHARDS).map(|_| budget.keep_shard(open()).unwrap()).collect();
        assert!(budget.keep_shard(open()).is_err());
        assert!(budget.keep_index(open()).is_ok(), "index files have a separate limit");
        kept.pop();
        assert!(budget.keep_shard(open()).is_ok());
        let all = budget.reserve(Budget::MEMORY);
        assert!(all.is_some() && budget.reserve(1).is_none() && budget.reserve(0).is_some());
        drop(all);
        assert!(budget.reserve(1).is_some());
    }

    #[test]
    fn only_regular_files_are_opened() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(open_regular(dir.path()).unwrap_err().kind(), io::ErrorKind::IsADirectory);
        assert_eq!(open_regular(&dir.path().join("none")).unwrap_err().kind(), io::ErrorKind::NotFound);
        std::fs::write(dir.path().join("a"), b"a").unwrap();
        assert!(open_regular(&dir.path().join("a")).is_ok());
        #[cfg(unix)]
        {
            let e = open_regular(Path::new("/dev/null")).unwrap_err();
            assert_eq!(e.to_string(), "expected a regular file, found a device");
        }
    }
}
