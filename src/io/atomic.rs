//! Files that appear whole or not at all.

use super::file_state::FileId;
use super::open::check_regular;
#[cfg(unix)]
use super::path::folder;
use super::process::Process;
use std::collections::hash_map::RandomState;
use std::ffi::OsString;
use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::hash::{BuildHasher, Hasher};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// The start of a temporary name; 16 random hex digits follow. Hidden, so that no `glob("train-*")` meets it.
pub(crate) const TMP_PREFIX: &str = ".tmp-";

/// A file that is written under a temporary name beside its target and renamed onto it by
/// [`commit`](AtomicFile::commit): a reader sees the old file or the whole new one.
///
/// A link is replaced, and the file that it names stays: a link in a shared folder cannot lead an index
/// elsewhere. Folders, devices, FIFOs and sockets are refused. [`Output`](super::Output) is for paths that a user names: it follows
/// links and writes into devices.
///
/// A kill leaves at most the temporary file; dropping without a commit removes it. The file belongs to the process that created
/// it: in a forked child every call is an error, and dropping it leaves the temporary file to the parent.
#[derive(Debug)]
pub(crate) struct AtomicFile {
    file: Option<File>,
    tmp: PathBuf,
    /// The path that is renamed to.
    target: PathBuf,
    process: Process,
}

impl AtomicFile {
    /// Opens a new temporary file in the folder of `target`.
    ///
    /// # Errors
    /// I/O errors, among them a folder that is missing or read-only; a target that is a folder, a device, a FIFO or a
    /// socket.
    pub(crate) fn create(target: impl AsRef<Path>) -> io::Result<AtomicFile> {
        let target = target.as_ref();
        if target.file_name().is_none() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "the target has no file name"));
        }
        match target.symlink_metadata() {
            Ok(found) if found.is_symlink() => {}
            Ok(found) => check_regular(&found)?,
            Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(e),
            Err(_) => {}
        }
        AtomicFile::beside(target.into())
    }

    /// Opens a new temporary file beside `target`, which is no link that is to be followed.
    pub(super) fn beside(target: PathBuf) -> io::Result<AtomicFile> {
        loop {
            let mut name = OsString::from(TMP_PREFIX);
            name.push(format!("{:016x}", RandomState::new().build_hasher().finish()));
            let tmp = target.with_file_name(name);
            match OpenOptions::new().write(true).create_new(true).open(&tmp) {
                Ok(file) => {
                    let process = Process::this();
                    return Ok(AtomicFile { file: Some(file), tmp, target, process });
                }
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
                Err(e) => return Err(e),
            }
        }
    }

    /// Returns the file that is being written.
    ///
    /// # Errors
    /// In a forked child.
    pub(crate) fn file(&self) -> io::Result<&File> {
        self.process.check()?;
        self.file.as_ref().ok_or_else(committed)
    }

    /// Brings the bytes to the disk, then gives the file its name.
    ///
    /// # Errors
    /// I/O errors; the target is then as it was. [`NameNotSynced`] is the exception: then the whole file has its name.
    pub(crate) fn commit(mut self) -> io::Result<()> {
        self.process.check()?;
        let file = self.file.take().ok_or_else(committed)?;
        let renamed = file.sync_all().and_then(|()| rename(&self.tmp, &self.target, &file));
        if renamed.is_err() {
            let _ = fs::remove_file(&self.tmp);
            return renamed;
        }
        drop(file);
        sync_folder(&self.target).map_err(|e| io::Error::new(e.kind(), NameNotSynced(e)))
    }
}

fn committed() -> io::Error {
    io::Error::other("the file was committed")
}

impl Write for AtomicFile {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        self.file()?.write(buf)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file()?.flush()
    }
}

impl Drop for AtomicFile {
    fn drop(&mut self) {
        if self.file.take().is_some() && self.process.is_this() {
            let _ = fs::remove_file(&self.tmp);
        }
    }
}

/// The error of a file that is whole and has its name, while its folder could not be synced: a power failure may take the name
/// away again. Comes inside an [`io::Error`].
#[derive(Debug)]
pub struct NameNotSynced(io::Error);

impl NameNotSynced {
    /// Returns true if `e` is such an error.
    pub fn is(e: &io::Error) -> bool {
        e.get_ref().is_some_and(|inner| inner.is::<NameNotSynced>())
    }
}

impl fmt::Display for NameNotSynced {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "the new file is there, whole and under its name, but its folder cannot be synced, so a power failure may undo \
             that: {}",
            self.0
        )
    }
}

impl std::error::Error for NameNotSynced {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.0)
    }
}

/// Gives `file`, whose name is `from`, the name `to`.
///
/// A network file system may answer a rename that succeeded with "not found", when its reply was lost and the call repeated:
/// then `to` names `file` itself. On systems without file numbers in `std` such an answer is an error.
fn rename(from: &Path, to: &Path, file: &File) -> io::Result<()> {
    loop {
        match fs::rename(from, to) {
            // A signal on a network file system. If the first call has succeeded, the second one finds nothing.
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) if e.kind() == io::ErrorKind::NotFound => {
                let id = |found: io::Result<Option<FileId>>| found.ok().flatten();
                return match (id(FileId::of_file(file)), id(FileId::of(to))) {
                    (Some(written), Some(there)) if written == there => Ok(()),
                    _ if from.symlink_metadata().is_err() => Err(io::Error::new(
                        io::ErrorKind::NotFound,
                        format!("the temporary file {} is gone: it was not renamed", from.display()),
                    )),
                    _ => Err(e),
                };
            }
            done => return done,
        }
    }
}

/// Brings the name of `file` to the disk: a rename is there only when its folder is.
fn sync_folder(file: &Path) -> io::Result<()> {
    #[cfg(unix)]
    {
        match File::open(folder(file))?.sync_all() {
            // fsync(2): the file system does not sync folders.
            Err(e) if e.kind() == io::ErrorKind::InvalidInput => Ok(()),
            done => done,
        }
    }
    #[cfg(not(unix))]
    {
        let _ = file;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(dir: &Path) -> Vec<String> {
        fs::read_dir(dir).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect()
    }

    #[test]
    fn whole_or_not_at_all() {
        let dir = tempfile::tempdir().unwrap();
        let target = dir.path().join("a");
        let mut f = AtomicFile::create(&target).unwrap();
        f.write_all(b"one").unwrap();
        assert!(names(dir.path())[0].starts_with(TMP_PREFIX));
        f.commit().unwrap();
        assert_eq!(fs::read(&target).unwrap(), b"one");

        let mut f = AtomicFile::create(&target).unwrap();
        f.write_all(b"two").unwrap();
        drop(f);
        assert_eq!(fs::read(&target).unwrap(), b"one");
        assert_eq!(names(dir.path()), ["a"]);
    }

    #[test]
    fn a_failed_rename_leaves_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let target = dir.path().join("folder");
        fs::create_dir(&target).unwrap();
        assert!(AtomicFile::create(&target).is_err());
        let f = AtomicFile::create(dir.path().join("a")).unwrap();
        fs::create_dir(dir.path().join("a")).unwrap();
        assert!(f.commit().is_err());
        let mut names = names(dir.path());
        names.sort();
        assert_eq!(names, ["a", "folder"]);
    }

    #[test]
    #[cfg(unix)]
    fn a_link_is_replaced_and_a_socket_is_not() {
        let dir = tempfile::tempdir().unwrap();
        let (link, file) = (dir.path().join("link"), dir.path().join("file"));
        fs::write(&file, "file").unwrap();
        std::os::unix::fs::symlink("file", &link).unwrap();
        AtomicFile::create(&link).unwrap().commit().unwrap();
        assert!(link.symlink_metadata().unwrap().is_file());
        assert_eq!(fs::read(&file).unwrap(), b"file");

        let socket = dir.path().join("socket");
        let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
        assert!(AtomicFile::create(&socket).is_err());
    }

    #[test]
    fn a_lost_temporary_file_is_an_error_whatever_is_under_the_name() {
        let dir = tempfile::tempdir().unwrap();
        let target = dir.path().join("a");
        fs::write(&target, "old").unwrap();
        let mut f = AtomicFile::create(&target).unwrap();
        f.write_all(b"new").unwrap();
        fs::remove_file(&f.tmp).unwrap();
        let e = f.commit().unwrap_err();
        assert!(e.to_string().contains("is gone"), "{e}");
        assert_eq!(fs::read(&target).unwrap(), b"old");

        let mut f = AtomicFile::create(dir.path().join("b")).unwrap();
        f.write_all(b"new").unwrap();
        fs::remove_file(&f.tmp).unwrap();
        f.commit().unwrap_err();
        assert_eq!(names(dir.path()), ["a"]);
    }

    /// As after a reply of a network file system that was lost.
    #[test]
    #[cfg(unix)]
    fn a_rename_that_succeeded_and_says_that_nothing_was_found_is_one() {
        let dir = tempfile::tempdir().unwrap();
        let target = dir.path().join("a");
        let mut f = AtomicFile::create(&target).unwrap();
        f.write_all(b"new").unwrap();
        fs::rename(&f.tmp, &target).unwrap();
        f.commit().unwrap();
        assert_eq!(fs::read(&target).unwrap(), b"new");
        assert_eq!(names(dir.path()), ["a"]);
    }

    #[test]
    fn in_another_process_it_is_an_error_and_removes_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let target = dir.path().join("a");
        for commits in [false, true] {
            let mut f = AtomicFile::create(&target).unwrap();
            f.write_all(b"parent").unwrap();
            let tmp = f.tmp.clone();
            f.process = Process::other();
            assert!(f.write(b"child").is_err() && f.flush().is_err() && f.file().is_err());
            match commits {
                true => drop(f.commit().unwrap_err()),
                false => drop(f),
            }
            assert_eq!(fs::read(&tmp).unwrap(), b"parent");
            assert!(!target.exists());
        }
    }

    #[test]
    #[cfg(unix)]
    fn a_name_that_could_not_be_synced_is_there() {
        let e = sync_folder(Path::new("/nowhere/at/all")).unwrap_err();
        let e = io::Error::new(e.kind(), NameNotSynced(e));
        assert!(NameNotSynced::is(&e) && e.to_string().contains("is there"), "{e}");
        assert!(!NameNotSynced::is(&io::Error::other("x")));
    }
}
