//! Folders of caches that no other user can write to.

use super::system;
use std::fs;
use std::io;
use std::path::Path;

/// Checks that only the user of the process and root can write in a folder of a cache, or that it does not
/// exist yet. Follows links to it.
///
/// Files of a cache have checksums, which find damage and no forgery: who can write to the folder can change
/// what is read.
///
/// ```
/// # #[cfg(unix)] {
/// use std::os::unix::fs::PermissionsExt;
/// use tfseek::io::check_own_folder;
/// # let dir = tempfile::tempdir()?;
/// std::fs::set_permissions(dir.path(), PermissionsExt::from_mode(0o777))?;
/// let e = check_own_folder(dir.path()).unwrap_err();
/// assert!(e.to_string().starts_with("others may write to the folder"));
/// # }
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// # Errors
/// [`io::ErrorKind::PermissionDenied`] for a folder of another user, or that others may write to.
pub fn check_own_folder(path: &Path) -> io::Result<()> {
    match fs::metadata(path).ok().and_then(|found| system::who_else_writes(&found)) {
        Some(reason) => Err(io::Error::new(io::ErrorKind::PermissionDenied, reason)),
        // What cannot be asked cannot be used. Its use has an error of its own.
        None => Ok(()),
    }
}
