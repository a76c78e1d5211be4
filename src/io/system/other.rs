//! Windows, and systems that have none of these calls.

use memmap2::Mmap;
use std::ffi::OsString;
use std::fs::{self, File, Metadata, OpenOptions};
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};

pub(crate) fn open_at_once(_: &mut OpenOptions) {}

/// Returns the type of a file that is neither regular nor a folder.
pub(crate) fn file_type_name(_: &Metadata) -> &'static str {
    "a special file"
}

/// Returns `None`: `std` has no inode numbers here.
pub(crate) fn device_and_number(_: &Metadata) -> Option<[u64; 2]> {
    None
}

/// Returns the end of time: `std` has no such time here, so a file may have been changed at any time.
pub(crate) fn change_time(_: &Metadata) -> i64 {
    i64::MAX
}

/// Returns `None`: `std` has no owners here.
pub(crate) fn who_else_writes(_: &Metadata) -> Option<String> {
    None
}

pub(crate) fn create_own_folder(path: &Path) -> io::Result<()> {
    std::fs::create_dir_all(path)
}

pub(crate) fn may_keep(_: &File) -> bool {
    true
}

/// Reads at a position.
#[cfg(windows)]
pub(crate) fn read_at(file: &File, buf: &mut [u8], offset: u64) -> io::Result<usize> {
    // It also moves the cursor, which is not used.
    std::os::windows::fs::FileExt::seek_read(file, buf, offset)
}

/// Reads at a position.
#[cfg(not(windows))]
pub(crate) fn read_at(_: &File, _: &mut [u8], _: u64) -> io::Result<usize> {
    Err(io::ErrorKind::Unsupported.into())
}

pub(crate) fn will_need(_: &File, _: Range<u64>) {}

pub(crate) fn map_will_need(_: &Mmap, _: usize, _: usize) {}

/// Returns `None`: there is no such call.
pub(crate) fn populate_map(_: &Mmap, _: usize, _: usize) -> Option<io::Result<()>> {
    None
}

/// Converts bytes to a path. `None` if they are not UTF-8.
pub(crate) fn path_from_bytes(bytes: &[u8]) -> Option<PathBuf> {
    std::str::from_utf8(bytes).ok().map(PathBuf::from)
}

pub(crate) fn is_descriptor(_: &Path) -> bool {
    false
}

pub(crate) fn keep_mode(_: &File, _: &Path) -> io::Result<()> {
    Ok(())
}

/// Returns an error: there is no such rename in `std`.
pub(crate) fn rename_to_new(_: &Path, _: &Path) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Does nothing: folders cannot be opened.
pub(crate) fn sync_folder(_: &Path) -> io::Result<()> {
    Ok(())
}

pub(crate) fn create_nameless(_: &Path) -> io::Result<File> {
    Err(io::ErrorKind::Unsupported.into())
}

pub(crate) fn link_nameless(_: &File, _: &Path) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// A folder. Names stand for its entries, and absolute paths for files elsewhere. Links are looked for before
/// each call.
#[derive(Debug)]
pub(crate) struct OpenFolder(PathBuf);

impl OpenFolder {
    /// Opens a folder that is no link.
    pub(crate) fn open(path: &Path) -> io::Result<OpenFolder> {
        if path.symlink_metadata()?.is_dir() {
            return Ok(OpenFolder(path.into()));
        }
        Err(io::ErrorKind::NotADirectory.into())
    }

    /// Opens an entry for reading, and to `write` also for writing. A link is refused.
    pub(crate) fn file(&self, name: &str, write: bool) -> io::Result<File> {
        let path = self.0.join(name);
        if path.symlink_metadata()?.is_symlink() {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        OpenOptions::new().read(true).write(write).open(path)
    }

    /// Creates a file of a new name.
    pub(crate) fn new_file(&self, name: &str) -> io::Result<File> {
        OpenOptions::new().read(true).write(true).create_new(true).open(self.0.join(name))
    }

    /// Returns true for a regular file. `None` if there is no such entry.
    pub(crate) fn is_own_file(&self, name: impl AsRef<Path>) -> io::Result<Option<bool>> {
        match self.0.join(name).symlink_metadata() {
            Ok(found) => Ok(Some(found.is_file())),
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(e) => Err(e),
        }
    }

    pub(crate) fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(self.0.join(from), self.0.join(to))
    }

    /// Gives a file a second name.
    pub(crate) fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::hard_link(self.0.join(from), self.0.join(to))
    }

    pub(crate) fn remove(&self, name: &Path) -> io::Result<()> {
        fs::remove_file(self.0.join(name))
    }

    pub(crate) fn names(&self) -> io::Result<Vec<OsString>> {
        fs::read_dir(&self.0)?.map(|entry| Ok(entry?.file_name())).collect()
    }

    /// Does nothing: folders cannot be synced.
    pub(crate) fn sync(&self) -> io::Result<()> {
        Ok(())
    }
}
