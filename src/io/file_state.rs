//! The state of an object: size, modification time and version, and of a file device and inode number.

use super::system;
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
    pub(crate) fn known(found: &Metadata) -> Option<FileId> {
        system::device_and_number(found).map(|[device, number]| FileId { device, number })
    }
}

/// The size, modification time and version of an object, as far as they are known. Equal stamps with a time
/// or a version mean the same content.
///
/// An object without a time is compared by its bytes each time that an index is used for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stamp {
    /// Number of bytes.
    pub size: u64,
    /// Modification time in nanoseconds since 1970.
    pub modified_ns: Option<i64>,
    /// The name that a store gives to this content of the object, e.g. an ETag. Another content has another
    /// one.
    pub version: Option<Box<str>>,
    /// Identity of a file. Two files that were written within one clock tick may have the same time, but not
    /// the same id.
    pub(crate) id: Option<FileId>,
    /// Time of the last change of a file, of its metadata too. Unlike the others, no program can restore it.
    /// `None` for an object.
    pub(crate) changed_ns: Option<i64>,
}

impl Stamp {
    /// Returns the stamp of an object of which only the size is known.
    pub fn new(size: u64) -> Stamp {
        Stamp { size, modified_ns: None, version: None, id: None, changed_ns: None }
    }

    /// Returns the stamp of the file with these metadata.
    pub(crate) fn of(meta: &Metadata) -> io::Result<Stamp> {
        let time = meta.modified()?;
        // An i64 of nanoseconds since 1970 reaches to 2262. Later and earlier times saturate.
        let modified_ns = match time.duration_since(UNIX_EPOCH) {
            Ok(after) => i64::try_from(after.as_nanos()).unwrap_or(i64::MAX),
            Err(e) => i64::try_from(e.duration().as_nanos()).map_or(i64::MIN, |ns| -ns),
        };
        let changed_ns = Some(system::change_time(meta));
        Ok(Stamp {
            modified_ns: Some(modified_ns),
            id: FileId::known(meta),
            changed_ns,
            ..Stamp::new(meta.len())
        })
    }

    /// Returns the time as an index file stores it: an unknown one is the least number.
    pub(crate) fn mtime_ns(&self) -> i64 {
        self.modified_ns.unwrap_or(i64::MIN)
    }

    /// Returns true if a time or a version tells this content from another one of the same size.
    pub(crate) fn is_known(&self) -> bool {
        self.modified_ns.is_some() || self.version.is_some()
    }

    /// Returns true if size, time and version are equal. On some file systems a file gets another id while it
    /// is the same.
    pub(crate) fn is_like(&self, other: &Stamp) -> bool {
        let of = |stamp: &Stamp| (stamp.size, stamp.modified_ns);
        of(self) == of(other) && self.version == other.version
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
            Stamp::of(&file.metadata().unwrap()).unwrap()
        };
        let one = state("one", b"1");
        let other = state("other", b"2");
        let longer = state("longer", b"33");
        let again = state("one", b"1");
        assert!(one.is_like(&again) && again.changed_ns >= one.changed_ns);
        assert_eq!(one, Stamp { changed_ns: one.changed_ns, ..again });
        assert!(one.is_like(&other) && one.is_known() && !Stamp::new(1).is_known());
        assert!(!one.is_like(&longer));
        if cfg!(unix) {
            assert_ne!(one, other);
            assert_eq!(FileId::of(&dir.path().join("one")).unwrap(), one.id);
        }
    }
}
