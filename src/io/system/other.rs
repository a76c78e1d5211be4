//! Windows, and systems that have none of these calls.

use memmap2::Mmap;
use std::fs::{File, Metadata, OpenOptions};
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
