//! Opening files for reading: regular files only, and only so many at once.

use std::fs::{File, Metadata, OpenOptions};
use std::io;
use std::ops::Deref;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

/// Opens a regular file for reading.
///
/// Never blocks: a FIFO without a writer, a socket and a device are refused, as is a folder.
///
/// # Errors
/// I/O errors; [`io::ErrorKind::IsADirectory`] and [`io::ErrorKind::Unsupported`] for what is no regular file.
pub(crate) fn open_regular(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        // POSIX open(2): with O_NONBLOCK, opening a FIFO for reading returns without delay. Regular files ignore the flag.
        options.custom_flags(libc::O_NONBLOCK);
    }
    let file = options.open(path)?;
    match not_regular(&file.metadata()?) {
        Some(e) => Err(e),
        None => Ok(file),
    }
}

/// Returns the error for a file that is not a regular one, `None` for one that is.
pub(crate) fn not_regular(meta: &Metadata) -> Option<io::Error> {
    if meta.is_file() {
        return None;
    }
    if meta.is_dir() {
        return Some(io::ErrorKind::IsADirectory.into());
    }
    Some(io::Error::new(io::ErrorKind::Unsupported, format!("{}, not a regular file", type_name(meta))))
}

#[cfg(unix)]
fn type_name(meta: &Metadata) -> &'static str {
    use std::os::unix::fs::FileTypeExt;
    match meta.file_type() {
        t if t.is_fifo() => "a FIFO",
        t if t.is_socket() => "a socket",
        t if t.is_char_device() || t.is_block_device() => "a device",
        _ => "a special file",
    }
}

#[cfg(not(unix))]
fn type_name(_: &Metadata) -> &'static str {
    "a special file"
}

/// Limits on what the files of one dataset may hold: descriptors of shards, descriptors of index files, and memory of index
/// files that are read in.
#[derive(Debug)]
pub(crate) struct Budget {
    shards: Arc<AtomicUsize>,
    indexes: Arc<AtomicUsize>,
    memory: AtomicU64,
}

impl Budget {
    /// Descriptors of each sort; a process has 1024 unless its limit was raised.
    const DESCRIPTORS: usize = 256;
    /// Bytes of index files that are read in.
    const MEMORY: u64 = 256 << 20;

    pub(crate) fn new() -> Budget {
        let descriptors = || Arc::new(AtomicUsize::new(Budget::DESCRIPTORS));
        Budget { shards: descriptors(), indexes: descriptors(), memory: AtomicU64::new(Budget::MEMORY) }
    }

    /// Keeps a shard's descriptor, or gives it back where the limit is reached.
    pub(crate) fn keep_shard(&self, file: File) -> Result<KeptFile, File> {
        KeptFile::new(file, &self.shards)
    }

    /// Keeps the descriptor of an index file, or gives it back where the limit is reached.
    pub(crate) fn keep_index(&self, file: File) -> Result<KeptFile, File> {
        KeptFile::new(file, &self.indexes)
    }

    /// Reserves memory for an index file that is read in. It is not given back.
    pub(crate) fn reserve(&self, bytes: u64) -> bool {
        self.memory.fetch_update(Relaxed, Relaxed, |left| left.checked_sub(bytes)).is_ok()
    }
}

/// A descriptor that counts against a [`Budget`] until it is dropped.
#[derive(Debug)]
pub(crate) struct KeptFile {
    file: File,
    left: Arc<AtomicUsize>,
}

impl KeptFile {
    fn new(file: File, left: &Arc<AtomicUsize>) -> Result<KeptFile, File> {
        match left.fetch_update(Relaxed, Relaxed, |n| n.checked_sub(1)) {
            Ok(_) => Ok(KeptFile { file, left: Arc::clone(left) }),
            Err(_) => Err(file),
        }
    }
}

impl Drop for KeptFile {
    fn drop(&mut self) {
        self.left.fetch_add(1, Relaxed);
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
    fn a_budget_gives_back_what_does_not_fit() {
        let budget = Budget::new();
        let open = || tempfile::tempfile().unwrap();
        let mut kept: Vec<_> = (0..Budget::DESCRIPTORS).map(|_| budget.keep_shard(open()).unwrap()).collect();
        assert!(budget.keep_shard(open()).is_err());
        assert!(budget.keep_index(open()).is_ok(), "index files have a limit of their own");
        kept.pop();
        assert!(budget.keep_shard(open()).is_ok());
        assert!(budget.reserve(Budget::MEMORY) && !budget.reserve(1) && budget.reserve(0));
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
            assert_eq!(e.to_string(), "a device, not a regular file");
        }
    }
}
