//! File identity: device and inode number, and size and modification time.

use std::fs::{self, File, Metadata};
use std::io;
use std::path::Path;
use std::time::UNIX_EPOCH;

/// The identity of a file, the same for all its names and links: device and inode number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct FileId {
    device: u64,
    number: u64,
}

impl FileId {
    /// Returns the identity of the file at `path`. `None` on systems where `std` has no inode numbers.
    ///
    /// # Errors
    /// I/O errors, e.g. for a missing file.
    pub(crate) fn of(path: &Path) -> io::Result<Option<FileId>> {
        fs::metadata(path).map(|found| FileId::known(&found))
    }

    /// Returns the identity of an open file.
    ///
    /// # Errors
    /// I/O errors.
    pub(crate) fn of_file(file: &File) -> io::Result<Option<FileId>> {
        file.metadata().map(|found| FileId::known(&found))
    }

    /// Returns the identity of the file with these metadata.
    #[cfg(unix)]
    pub(crate) fn known(found: &Metadata) -> Option<FileId> {
        use std::os::unix::fs::MetadataExt;
        Some(FileId { device: found.dev(), number: found.ino() })
    }

    /// Returns `None`.
    #[cfg(not(unix))]
    pub(crate) fn known(_: &Metadata) -> Option<FileId> {
        None
    }
}

/// The size and modification time of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stamp {
    pub(crate) size: u64,
    pub(crate) mtime_ns: i64,
}

impl Stamp {
    pub(crate) fn of(meta: &Metadata) -> io::Result<Stamp> {
        let time = meta.modified()?;
        // An i64 of nanoseconds since 1970 reaches to 2262. Later and earlier times saturate.
        let mtime_ns = match time.duration_since(UNIX_EPOCH) {
            Ok(after) => i64::try_from(after.as_nanos()).unwrap_or(i64::MAX),
            Err(e) => i64::try_from(e.duration().as_nanos()).map_or(i64::MIN, |ns| -ns),
        };
        Ok(Stamp { size: meta.len(), mtime_ns })
    }
}

/// The stamp and the identity of a file. Equal states mean the same file with the same content, as far as the system reports it:
/// two files that were written within one clock tick may have equal stamps, but not equal ids.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FileState {
    pub(crate) stamp: Stamp,
    /// `None` on systems where `std` has no inode numbers.
    pub(crate) id: Option<FileId>,
}

impl FileState {
    /// Returns the state of an open file.
    ///
    /// # Errors
    /// I/O errors.
    pub(crate) fn of(file: &File) -> io::Result<FileState> {
        let meta = file.metadata()?;
        Ok(FileState { stamp: Stamp::of(&meta)?, id: FileId::known(&meta) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_of_files_with_equal_stamps_differ() {
        let dir = tempfile::tempdir().unwrap();
        let time = UNIX_EPOCH + std::time::Duration::from_nanos(1_600_000_000_000_000_000);
        let state = |name: &str, bytes: &[u8]| {
            fs::write(dir.path().join(name), bytes).unwrap();
            let file = File::options().write(true).open(dir.path().join(name)).unwrap();
            file.set_modified(time).unwrap();
            FileState::of(&file).unwrap()
        };
        let (one, other, longer) = (state("one", b"1"), state("other", b"2"), state("longer", b"33"));
        assert_eq!(one, state("one", b"1"));
        assert_eq!(one.stamp, other.stamp);
        assert_eq!(one.stamp.mtime_ns, 1_600_000_000_000_000_000);
        assert_ne!(one.stamp, longer.stamp);
        if cfg!(unix) {
            assert_ne!(one, other);
            assert_eq!(FileId::of(&dir.path().join("one")).unwrap(), one.id);
        }
    }
}
