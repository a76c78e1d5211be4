//! The file that a path names, behind its links.

use std::fs::{self, File, Metadata};
use std::io;
use std::path::{Path, PathBuf};

/// Links in a row, as Linux allows them.
const MAX_LINKS: usize = 40;

/// The kind of file behind an output's path.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// A regular file, or none yet, under this path, which is no link.
    File(PathBuf),
    /// A device, a FIFO or a socket.
    Special(PathBuf),
    /// A descriptor of this process by its name in `/proc`, such as `/dev/stdout` when it is redirected to a file.
    Descriptor(PathBuf),
}

/// Follows the links at the end of `path`; what they name need not exist.
pub(super) fn of(path: &Path) -> io::Result<Place> {
    let invalid = |what| io::Error::new(io::ErrorKind::InvalidInput, what);
    if path.file_name().is_none() {
        return Err(invalid("the target has no file name"));
    }
    match fs::metadata(path) {
        Ok(found) if found.is_dir() => return Err(io::ErrorKind::IsADirectory.into()),
        Ok(found) if !found.is_file() => return Ok(Place::Special(path.into())),
        Ok(_) => {}
        Err(e) if e.kind() == io::ErrorKind::NotFound => {}
        Err(e) => return Err(e),
    }
    let mut path = path.to_path_buf();
    for _ in 0..MAX_LINKS {
        match path.symlink_metadata() {
            Ok(found) if found.is_symlink() => {
                // The link of a descriptor is the file itself. Its text may name no file, or another one by now.
                if names_a_descriptor(&path) {
                    return Ok(Place::Descriptor(path));
                }
                path = path.with_file_name(fs::read_link(&path)?);
            }
            Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(e),
            _ if path.file_name().is_none() => return Err(invalid("the target has no file name")),
            _ => return Ok(Place::File(path)),
        }
    }
    Err(invalid("too many links in a row"))
}

fn names_a_descriptor(path: &Path) -> bool {
    cfg!(target_os = "linux")
        && folder(path).canonicalize().is_ok_and(|dir| dir.starts_with("/proc") && dir.ends_with("fd"))
}

/// The folder that a path lies in, as the path was given: a link is not followed.
pub(crate) fn folder(path: &Path) -> &Path {
    match path.parent() {
        Some(dir) if !dir.as_os_str().is_empty() => dir,
        _ => Path::new("."),
    }
}

/// A file's identity, whatever names and links lead to it: its device and its number there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FileId {
    device: u64,
    number: u64,
}

impl FileId {
    /// Returns the identity of the file that `path` names; `None` on systems where `std` has no numbers of files.
    ///
    /// # Errors
    /// Those of the system, among them a file that is not there.
    pub fn of(path: &Path) -> io::Result<Option<FileId>> {
        fs::metadata(path).map(|found| FileId::known(&found))
    }

    /// Returns the identity of an open file.
    ///
    /// # Errors
    /// Those of the system.
    pub fn of_file(file: &File) -> io::Result<Option<FileId>> {
        file.metadata().map(|found| FileId::known(&found))
    }

    /// Returns the identity of the file that these metadata are of.
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
