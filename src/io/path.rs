//! The files that paths of outputs lead to.

use super::system;
use super::url::{check_local, folder};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Maximum number of symbolic links to follow. The same as in Linux.
const MAX_LINKS: usize = 40;

/// The type of an output file, with its path.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum OutputTarget {
    /// A regular file, or a file that does not exist yet. The path is not a link.
    File(PathBuf),
    /// A device, a FIFO or a socket.
    Special(PathBuf),
    /// A descriptor of this process, by its path in `/proc`. E.g. `/dev/stdout` when it is redirected to a
    /// file.
    Descriptor(PathBuf),
}

impl OutputTarget {
    /// Follows the links at the end of `path`. The file that they point to need not exist.
    pub(crate) fn of(path: &Path) -> io::Result<OutputTarget> {
        let invalid = |what| io::Error::new(io::ErrorKind::InvalidInput, what);
        check_local(path)?;
        if path.file_name().is_none() {
            return Err(invalid("the path has no file name"));
        }
        match fs::metadata(path) {
            Ok(found) if found.is_dir() => return Err(io::ErrorKind::IsADirectory.into()),
            Ok(found) if !found.is_file() => return Ok(OutputTarget::Special(path.into())),
            Ok(_) => {}
            Err(e) if e.kind() == io::ErrorKind::NotFound => {}
            Err(e) => return Err(e),
        }
        let mut path = path.to_path_buf();
        for _ in 0..MAX_LINKS {
            match path.symlink_metadata() {
                Ok(found) if found.is_symlink() => {
                    // The link of a descriptor refers to the open file. The text of the link may name a
                    // different file or none.
                    if system::is_descriptor(folder(&path)) {
                        return Ok(OutputTarget::Descriptor(path));
                    }
                    path = path.with_file_name(fs::read_link(&path)?);
                }
                Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(e),
                _ if path.file_name().is_none() => return Err(invalid("the path has no file name")),
                _ => return Ok(OutputTarget::File(path)),
            }
        }
        Err(invalid("too many levels of symbolic links"))
    }
}
