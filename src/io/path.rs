//! Paths: the folder they lie in, their bytes, and what is behind their links.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Links in a row, as Linux allows them.
const MAX_LINKS: usize = 40;

/// The kind of file behind an output's path.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum OutputTarget {
    /// A regular file, or none yet, under this path, which is no link.
    File(PathBuf),
    /// A device, a FIFO or a socket.
    Special(PathBuf),
    /// A descriptor of this process by its name in `/proc`, such as `/dev/stdout` when it is redirected to a file.
    Descriptor(PathBuf),
}

impl OutputTarget {
    /// Follows the links at the end of `path`; what they name need not exist.
    pub(super) fn of(path: &Path) -> io::Result<OutputTarget> {
        let invalid = |what| io::Error::new(io::ErrorKind::InvalidInput, what);
        if path.file_name().is_none() {
            return Err(invalid("the target has no file name"));
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
                    // The link of a descriptor is the file itself. Its text may name no file, or another one by now.
                    if names_a_descriptor(&path) {
                        return Ok(OutputTarget::Descriptor(path));
                    }
                    path = path.with_file_name(fs::read_link(&path)?);
                }
                Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(e),
                _ if path.file_name().is_none() => return Err(invalid("the target has no file name")),
                _ => return Ok(OutputTarget::File(path)),
            }
        }
        Err(invalid("too many links in a row"))
    }
}

fn names_a_descriptor(path: &Path) -> bool {
    cfg!(target_os = "linux")
        && folder(path).canonicalize().is_ok_and(|dir| dir.starts_with("/proc") && dir.ends_with("fd"))
}

/// Returns the folder that a path lies in, as the path was given: a link is not followed.
pub(crate) fn folder(path: &Path) -> &Path {
    match path.parent() {
        Some(dir) if !dir.as_os_str().is_empty() => dir,
        _ => Path::new("."),
    }
}

/// Returns the path that these bytes name: any on Unix, UTF-8 elsewhere.
pub(crate) fn path_from_bytes(bytes: &[u8]) -> Option<PathBuf> {
    #[cfg(unix)]
    {
        use std::os::unix::ffi::OsStrExt;
        Some(PathBuf::from(std::ffi::OsStr::from_bytes(bytes)))
    }
    #[cfg(not(unix))]
    {
        std::str::from_utf8(bytes).ok().map(PathBuf::from)
    }
}
