//! Folders of this library's own files, beside the users' files.

use super::system::OpenFolder;
use std::borrow::Cow;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

/// Start of the names of these folders.
const PREFIX: &str = ".tfseek";

/// An open folder of our own files, such as `.tfseek`, in a folder that others may write to as well.
///
/// Neither the folder nor an entry of it is reached through a link: somebody else may have put one there, to
/// a file or folder of the user. What has the name of one of our files and is none, is removed or does not
/// count.
#[derive(Debug)]
pub struct HiddenFolder {
    path: PathBuf,
    folder: OpenFolder,
}

impl HiddenFolder {
    /// Opens a folder. `None` if there is none, unless this `creates` it. The folder around it must exist
    /// then.
    ///
    /// # Errors
    /// A link to a folder; I/O errors.
    pub fn open(path: &Path, creates: bool) -> io::Result<Option<HiddenFolder>> {
        loop {
            HiddenFolder::check(path)?;
            match OpenFolder::open(path) {
                Ok(folder) => return Ok(Some(HiddenFolder { path: path.into(), folder })),
                Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(e),
                Err(_) if !creates => return Ok(None),
                // Another process may create it as well, and remove it at once.
                Err(_) => match fs::create_dir(path) {
                    Err(e) if e.kind() != io::ErrorKind::AlreadyExists => return Err(e),
                    _ => {}
                },
            }
        }
    }

    /// Refuses a link in place of one of our folders. Other folders may be links.
    pub(crate) fn check(path: &Path) -> io::Result<()> {
        let is_ours =
            path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(PREFIX.as_bytes()));
        if is_ours && path.symlink_metadata().is_ok_and(|found| found.is_symlink()) {
            return Err(io::Error::new(
                io::ErrorKind::NotADirectory,
                "expected a folder, found a link, which is not followed: remove it, or put a folder in its place",
            ));
        }
        Ok(())
    }

    /// Opens a file for reading. `None` if there is no regular one. If this `creates` it, it is open for
    /// writing too, and what else has its name is removed.
    ///
    /// # Errors
    /// I/O errors.
    pub fn file(&self, name: &str, creates: bool) -> io::Result<Option<File>> {
        if creates {
            return self.created(name).map(Some);
        }
        match self.folder.file(name, false) {
            Ok(file) => Ok(file.metadata()?.is_file().then_some(file)),
            // A file that may not be read is not taken for one that is not there.
            Err(e) if self.folder.is_own_file(name)? == Some(true) => Err(e),
            Err(_) => Ok(None),
        }
    }

    fn created(&self, name: &str) -> io::Result<File> {
        loop {
            // A file that has another name too is written under that one as well. The other name may belong
            // to a file of the user, or to a backup.
            match self.folder.is_own_file(name)? {
                Some(true) => return self.folder.file(name, true),
                Some(false) => self.remove(name)?,
                None => match self.folder.new_file(name) {
                    Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
                    created => return created,
                },
            }
        }
    }

    /// Renames a file. A path of one name leads to an entry of this folder, another one to a file elsewhere,
    /// which is replaced itself if it is a link.
    ///
    /// # Errors
    /// I/O errors.
    pub fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let from = at(from)?;
        let to = at(to)?;
        let mut interrupted = false;
        loop {
            match self.folder.rename(&from, &to) {
                // A call that a signal interrupted on a network file system may have succeeded.
                Err(e) if e.kind() == io::ErrorKind::Interrupted => interrupted = true,
                Err(e)
                    if interrupted
                        && e.kind() == io::ErrorKind::NotFound
                        && self.folder.is_own_file(&to)?.is_some() =>
                {
                    return Ok(());
                }
                renamed => return renamed,
            }
        }
    }

    /// Removes an entry, if there is one. Of a link, the link.
    ///
    /// # Errors
    /// I/O errors.
    pub(crate) fn remove(&self, name: impl AsRef<Path>) -> io::Result<()> {
        match self.folder.remove(name.as_ref()) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(()),
            done => done,
        }
    }

    /// Gives a file elsewhere a second name, in this folder.
    pub(crate) fn link(&self, from: &Path, name: &Path) -> io::Result<()> {
        self.folder.link(&at(from)?, name)
    }

    /// Returns true if there is an entry of this name.
    pub(crate) fn has(&self, name: &Path) -> io::Result<bool> {
        Ok(self.folder.is_own_file(name)?.is_some())
    }

    /// Returns the names of all entries.
    pub(crate) fn names(&self) -> io::Result<Vec<OsString>> {
        self.folder.names()
    }

    pub(crate) fn sync(&self) -> io::Result<()> {
        self.folder.sync()
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

/// Returns the path of a call: a name, or an absolute path.
fn at(path: &Path) -> io::Result<Cow<'_, Path>> {
    match path.parent() {
        Some(folder) if folder.as_os_str().is_empty() => Ok(path.into()),
        _ => Ok(std::path::absolute(path)?.into()),
    }
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::os::unix::fs::symlink;

    /// A folder, a file of the user, and a link to it under the name `name` in the folder.
    fn planted(name: &str) -> (tempfile::TempDir, HiddenFolder, PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let victim = dir.path().join("victim");
        fs::write(&victim, "precious").unwrap();
        let folder = HiddenFolder::open(&dir.path().join(".tfseek-test"), true).unwrap().unwrap();
        symlink(&victim, folder.path().join(name)).unwrap();
        (dir, folder, victim)
    }

    #[test]
    fn a_link_in_place_of_the_folder_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        assert!(HiddenFolder::open(&at(".tfseek"), false).unwrap().is_none());
        fs::create_dir(at("elsewhere")).unwrap();
        for target in ["elsewhere", "nowhere"] {
            symlink(target, at(".tfseek")).unwrap();
            for creates in [false, true] {
                let e = HiddenFolder::open(&at(".tfseek"), creates).unwrap_err().to_string();
                assert!(e.contains("found a link, which is not followed: remove it"), "{e}");
            }
            fs::remove_file(at(".tfseek")).unwrap();
        }
        fs::write(at(".tfseek"), "").unwrap();
        assert!(HiddenFolder::open(&at(".tfseek"), true).is_err());
    }

    fn text(folder: &HiddenFolder, name: &str) -> Option<String> {
        let mut text = String::new();
        folder.file(name, false).unwrap()?.read_to_string(&mut text).unwrap();
        Some(text)
    }

    fn write(folder: &HiddenFolder, name: &str) {
        folder.file(name, true).unwrap().unwrap().write_all(b"mine").unwrap();
    }

    #[test]
    fn files_are_not_reached_through_links() {
        let (dir, folder, victim) = planted("x");
        assert_eq!(text(&folder, "x"), None);
        write(&folder, "x");
        assert_eq!(text(&folder, "x").unwrap(), "mine");
        // A second name of the user's file.
        fs::hard_link(&victim, folder.path().join("hard")).unwrap();
        write(&folder, "hard");
        symlink(&victim, folder.path().join("gone")).unwrap();
        folder.remove("gone").unwrap();
        folder.remove("gone").unwrap();
        symlink(&victim, dir.path().join("out")).unwrap();
        folder.rename(Path::new("x"), &dir.path().join("out")).unwrap();
        assert_eq!(fs::read_to_string(dir.path().join("out")).unwrap(), "mine");
        assert_eq!(fs::read_to_string(&victim).unwrap(), "precious");
        assert_eq!(folder.names().unwrap(), ["hard"]);
    }

    /// The folder that was opened stays the same one, whatever gets its name.
    #[test]
    fn an_open_folder_is_not_exchanged_for_another() {
        let (dir, folder, victim) = planted("x");
        fs::rename(folder.path(), dir.path().join("moved")).unwrap();
        fs::create_dir(dir.path().join("theirs")).unwrap();
        symlink("theirs", folder.path()).unwrap();
        write(&folder, "y");
        folder.rename(&victim, Path::new("z")).unwrap();
        assert_eq!(fs::read_dir(dir.path().join("theirs")).unwrap().count(), 0);
        assert_eq!(fs::read_dir(dir.path().join("moved")).unwrap().count(), 3);
    }

    #[test]
    fn what_is_no_file_is_none() {
        let dir = tempfile::tempdir().unwrap();
        let folder = HiddenFolder::open(&dir.path().join(".tfseek"), true).unwrap().unwrap();
        let fifo = folder.path().join("fifo");
        assert!(std::process::Command::new("mkfifo").arg(&fifo).status().unwrap().success());
        assert_eq!(text(&folder, "fifo"), None);
        write(&folder, "fifo");
        assert_eq!(text(&folder, "fifo").unwrap(), "mine");
        fs::create_dir(folder.path().join("folder")).unwrap();
        assert_eq!(text(&folder, "folder"), None);
        assert!(folder.file("folder", true).is_err());
    }
}
