//! Folders of caches that no other user can write to.

use super::system;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// A folder of a cache in which only the user of the process and root can write, or that does not exist yet.
///
/// Files of a cache have checksums, which find damage and no forgery: who can write to the folder can change what is read.
///
/// ```
/// # #[cfg(unix)] {
/// use std::os::unix::fs::PermissionsExt;
/// use tfseek::io::OwnFolder;
/// # let dir = tempfile::tempdir()?;
/// std::fs::set_permissions(dir.path(), PermissionsExt::from_mode(0o777))?;
/// let e = OwnFolder::try_from(dir.path().to_path_buf()).unwrap_err();
/// assert!(e.to_string().starts_with("others may write to the folder"));
/// # }
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct OwnFolder(PathBuf);

/// Checks the folder, and follows links to it.
///
/// # Errors
/// [`io::ErrorKind::PermissionDenied`] for a folder of another user, or that others may write to.
impl TryFrom<PathBuf> for OwnFolder {
    type Error = io::Error;

    fn try_from(path: PathBuf) -> io::Result<OwnFolder> {
        match fs::metadata(&path).ok().and_then(|found| system::who_else_writes(&found)) {
            Some(reason) => Err(io::Error::new(io::ErrorKind::PermissionDenied, reason)),
            // What cannot be asked cannot be used. Its use has an error of its own.
            None => Ok(OwnFolder(path)),
        }
    }
}

impl AsRef<Path> for OwnFolder {
    fn as_ref(&self) -> &Path {
        &self.0
    }
}

impl From<OwnFolder> for PathBuf {
    fn from(folder: OwnFolder) -> PathBuf {
        folder.0
    }
}
