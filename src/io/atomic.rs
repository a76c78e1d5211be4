//! Files that appear whole or not at all.

use super::existing::Existing;
use super::file_state::FileId;
use super::hidden::HiddenFolder;
use super::open::check_regular;
use super::process::Process;
use super::system::{self, keep_mode, sync_folder};
use super::url::folder;
use std::collections::hash_map::RandomState;
use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::hash::{BuildHasher, Hasher};
use std::io::{self, Seek, Write};
use std::path::{Path, PathBuf};

/// Prefix of a temporary name, followed by 16 random hex digits. The name is hidden, so `glob("train-*")`
/// does not match it.
pub(crate) const TMP_PREFIX: &str = ".tmp-";

/// A file that gets the name of its target by [`commit`](AtomicFile::commit). Until then it has a temporary
/// name next to the target, or, on Linux, no name. Readers see the old file or the complete new one.
///
/// A symbolic link is replaced and its target is left unchanged, so a link in a shared folder cannot redirect
/// an index. A link in place of a hidden folder, folders, devices, FIFOs and sockets are refused.
/// [`Output`](super::Output) is for paths that a user specifies: it follows links and writes into devices.
///
/// If the process is killed, at most the temporary file remains. Of a file without a name nothing does, so no
/// signal handler is needed. Dropping without a commit removes the temporary file. The file belongs to the
/// process that created it: in a forked child every call returns an error, and a drop does not remove the
/// parent's temporary file.
#[derive(Debug)]
pub(crate) struct AtomicFile {
    file: File,
    /// The temporary name. `None` for a file without a name, and once it is renamed.
    tmp: Option<PathBuf>,
    /// Path after the commit.
    target: PathBuf,
    existing: Existing,
    process: Process,
}

impl AtomicFile {
    /// Creates a temporary file in the folder of `target`.
    ///
    /// # Errors
    /// I/O errors, e.g. for a missing or read-only folder; a target that is a folder, a device, a FIFO or a
    /// socket.
    pub(crate) fn create(target: impl AsRef<Path>) -> io::Result<AtomicFile> {
        let target = target.as_ref();
        if target.file_name().is_none() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "the path has no file name"));
        }
        match target.symlink_metadata() {
            Ok(found) if found.is_symlink() => {}
            Ok(found) => check_regular(&found)?,
            Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(e),
            Err(_) => {}
        }
        HiddenFolder::check(folder(target))?;
        AtomicFile::create_at(target.into(), Existing::Replace)
    }

    /// Creates a temporary file next to `target`. If `target` is a link, it is not followed.
    pub(super) fn create_at(target: PathBuf, existing: Existing) -> io::Result<AtomicFile> {
        let create = |tmp: &Path| OpenOptions::new().write(true).create_new(true).open(tmp);
        let (tmp, file) = under_new_name(&target, create)?;
        let process = Process::this();
        let created = AtomicFile { file, tmp: Some(tmp), target, existing, process };
        created.keep_mode()?;
        Ok(created)
    }

    /// Creates a file without a name in the folder of `target`. `None` if the system or the file system has
    /// no such files, or on any error.
    pub(super) fn create_nameless(target: &Path, existing: Existing) -> Option<AtomicFile> {
        let file = system::create_nameless(folder(target)).ok()?;
        Some(AtomicFile { file, tmp: None, target: target.into(), existing, process: Process::this() })
    }

    /// Returns the open file.
    ///
    /// # Errors
    /// [`EncodeError::Forked`](crate::error::EncodeError::Forked) in a forked child.
    pub(crate) fn file(&self) -> io::Result<&File> {
        self.process.check()?;
        Ok(&self.file)
    }

    /// Syncs the bytes to the disk, then gives the file the name of its target.
    ///
    /// # Errors
    /// I/O errors, and an existing target that is to be kept; the target is then unchanged. The exception is
    /// [`NameNotSynced`], after which the target is the new file.
    pub(crate) fn commit(mut self) -> io::Result<()> {
        self.file()?.sync_all()?;
        if self.tmp.is_none() {
            match system::link_nameless(&self.file, &self.target) {
                Ok(()) => return NameNotSynced::check(&self.target),
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists && self.existing == Existing::Keep => {
                    return Err(already_exists());
                }
                // The target exists, or the file cannot be linked.
                Err(_) => {}
            }
            match under_new_name(&self.target, |tmp| system::link_nameless(&self.file, tmp)) {
                Ok((tmp, ())) => self.tmp = Some(tmp),
                Err(_) => return self.copy()?.commit(),
            }
        }
        let target = self.target.clone();
        self.commit_unsynced()?;
        NameNotSynced::check(&target)
    }

    /// Renames the file to its target, and does not wait for the disk. After a power failure it may be
    /// shorter or not there, so it must tell itself whether it is whole.
    pub(crate) fn commit_unsynced(mut self) -> io::Result<()> {
        self.process.check()?;
        self.keep_mode()?;
        let Some(tmp) = self.tmp.take() else { return Err(io::Error::other("the file has no name yet")) };
        let renamed = match self.existing {
            Existing::Replace => rename(&tmp, &self.target, &self.file),
            Existing::Keep => rename_new(&tmp, &self.target),
        };
        if renamed.is_err() {
            let _ = fs::remove_file(&tmp);
        }
        renamed
    }

    /// Copies a file without a name to one with a temporary name.
    fn copy(&mut self) -> io::Result<AtomicFile> {
        let mut named = AtomicFile::create_at(self.target.clone(), self.existing)?;
        self.file.rewind()?;
        io::copy(&mut self.file, &mut named)?;
        Ok(named)
    }

    /// Gives the file the mode of the file that it replaces.
    pub(super) fn keep_mode(&self) -> io::Result<()> {
        match self.existing {
            Existing::Replace => keep_mode(self.file()?, &self.target),
            Existing::Keep => Ok(()),
        }
    }
}

/// Calls `make` with temporary names next to `target` until one is new. Returns the name and the result.
fn under_new_name<T>(target: &Path, make: impl Fn(&Path) -> io::Result<T>) -> io::Result<(PathBuf, T)> {
    loop {
        let tmp = target.with_file_name(temporary_name());
        match make(&tmp) {
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
            made => return Ok((tmp, made?)),
        }
    }
}

/// Returns the error of an output whose name was given to another file meanwhile.
fn already_exists() -> io::Error {
    io::Error::new(
        io::ErrorKind::AlreadyExists,
        "the file was made meanwhile by another writer, and is not replaced",
    )
}

/// Returns a random temporary name.
fn temporary_name() -> String {
    format!("{TMP_PREFIX}{:016x}", RandomState::new().build_hasher().finish())
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
        if let Some(tmp) = &self.tmp
            && self.process.is_this()
        {
            let _ = fs::remove_file(tmp);
        }
    }
}

/// The error of a file that is complete and renamed, but whose folder could not be synced. A power failure
/// may undo the rename. It is the inner error of an [`io::Error`].
#[derive(Debug)]
pub(crate) struct NameNotSynced(io::Error);

impl NameNotSynced {
    /// Syncs the folder of a file that was renamed to `target`. This is the error if it fails.
    pub(super) fn check(target: &Path) -> io::Result<()> {
        sync_folder(folder(target)).map_err(|e| io::Error::new(e.kind(), NameNotSynced(e)))
    }

    /// Returns true if `e` contains a `NameNotSynced`.
    pub(crate) fn is(e: &io::Error) -> bool {
        e.get_ref().is_some_and(|inner| inner.is::<NameNotSynced>())
    }
}

impl fmt::Display for NameNotSynced {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "the file is complete and renamed, but its folder cannot be synced, so a power failure may undo the rename: {}",
            self.0
        )
    }
}

impl std::error::Error for NameNotSynced {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.0)
    }
}

/// Renames `file` from `from` to `to`.
///
/// A network file system may report "not found" for a rename that succeeded, if the reply was lost and the
/// call was repeated. In that case `to` is `file` itself. On systems where `std` has no inode numbers, this
/// report is an error.
fn rename(from: &Path, to: &Path, file: &File) -> io::Result<()> {
    loop {
        match fs::rename(from, to) {
            // Caused by a signal on a network file system. If the first call succeeded, the second one
            // returns `NotFound`.
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) if e.kind() == io::ErrorKind::NotFound => {
                let id = |found: io::Result<Option<FileId>>| found.ok().flatten();
                return match (id(FileId::of_file(file)), id(FileId::of(to))) {
                    (Some(written), Some(there)) if written == there => Ok(()),
                    _ if from.symlink_metadata().is_err() => Err(io::Error::new(
                        io::ErrorKind::NotFound,
                        format!(
                            "the temporary file {} does not exist any more, so it was not renamed",
                            from.display()
                        ),
                    )),
                    _ => Err(e),
                };
            }
            done => return done,
        }
    }
}

/// Renames a file to a name that must be new.
///
/// Without such a rename in the system or the file system, the file gets the name as a second one. Only where
/// neither works, a file that is made between the check and the rename is replaced.
pub(super) fn rename_new(from: &Path, to: &Path) -> io::Result<()> {
    let is_taken = |e: &io::Error| e.kind() == io::ErrorKind::AlreadyExists;
    match system::rename_to_new(from, to) {
        Ok(()) => return Ok(()),
        Err(e) if is_taken(&e) => return Err(already_exists()),
        Err(_) => {}
    }
    match fs::hard_link(from, to) {
        Ok(()) => {
            // The file is complete. Without this, it has its temporary name as well.
            let _ = fs::remove_file(from);
            Ok(())
        }
        Err(e) if is_taken(&e) => Err(already_exists()),
        Err(_) if to.symlink_metadata().is_ok() => Err(already_exists()),
        Err(_) => fs::rename(from, to),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(dir: &Path) -> Vec<String> {
        fs::read_dir(dir).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect()
    }

    #[test]
    fn the_target_has_the_old_or_the_new_content() {
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
    fn a_failed_rename_leaves_no_temporary_file() {
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
        let link = dir.path().join("link");
        let file = dir.path().join("file");
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
    #[cfg(unix)] // Elsewhere an open file may keep its name.
    fn a_lost_temporary_file_is_an_error() {
        let dir = tempfile::tempdir().unwrap();
        let target = dir.path().join("a");
        fs::write(&target, "old").unwrap();
        let mut f = AtomicFile::create(&target).unwrap();
        f.write_all(b"new").unwrap();
        fs::remove_file(f.tmp.as_ref().unwrap()).unwrap();
        let e = f.commit().unwrap_err();
        assert!(e.to_string().contains("does not exist any more"), "{e}");
        assert_eq!(fs::read(&target).unwrap(), b"old");

        let mut f = AtomicFile::create(dir.path().join("b")).unwrap();
        f.write_all(b"new").unwrap();
        fs::remove_file(f.tmp.as_ref().unwrap()).unwrap();
        f.commit().unwrap_err();
        assert_eq!(names(dir.path()), ["a"]);
    }

    /// Simulates a network file system whose reply to the first rename was lost.
    #[test]
    #[cfg(unix)]
    fn a_rename_that_succeeded_but_reports_not_found_is_a_success() {
        let dir = tempfile::tempdir().unwrap();
        let target = dir.path().join("a");
        let mut f = AtomicFile::create(&target).unwrap();
        f.write_all(b"new").unwrap();
        fs::rename(f.tmp.as_ref().unwrap(), &target).unwrap();
        f.commit().unwrap();
        assert_eq!(fs::read(&target).unwrap(), b"new");
        assert_eq!(names(dir.path()), ["a"]);
    }

    #[test]
    fn in_another_process_calls_fail_and_nothing_is_removed() {
        let dir = tempfile::tempdir().unwrap();
        let target = dir.path().join("a");
        for commits in [false, true] {
            let mut f = AtomicFile::create(&target).unwrap();
            f.write_all(b"parent").unwrap();
            let tmp = f.tmp.clone().unwrap();
            f.process = Process::other();
            assert!(f.write(b"child").is_err() && f.flush().is_err() && f.file().is_err());
            if commits {
                f.commit().unwrap_err();
            } else {
                drop(f);
            }
            assert_eq!(fs::read(&tmp).unwrap(), b"parent");
            assert!(!target.exists());
        }
    }

    #[test]
    #[cfg(unix)]
    fn a_failed_folder_sync_is_name_not_synced() {
        let e = sync_folder(Path::new("/nowhere/at/all")).unwrap_err();
        let e = io::Error::new(e.kind(), NameNotSynced(e));
        assert!(NameNotSynced::is(&e) && e.to_string().contains("may undo the rename"), "{e}");
        assert!(!NameNotSynced::is(&io::Error::other("x")));
    }

    #[test]
    fn a_nameless_file_leaves_the_old_or_the_new_content() {
        let dir = tempfile::tempdir().unwrap();
        let target = dir.path().join("a");
        // The second time the target exists.
        for text in ["one", "two"] {
            let before = fs::read(&target).ok();
            let Some(mut f) = AtomicFile::create_nameless(&target, Existing::Replace) else { return };
            f.write_all(text.as_bytes()).unwrap();
            assert_eq!(
                (names(dir.path()).len(), fs::read(&target).ok()),
                (usize::from(before.is_some()), before)
            );
            f.commit().unwrap();
            assert_eq!(fs::read_to_string(&target).unwrap(), text);
            assert_eq!(names(dir.path()), ["a"]);
            drop(AtomicFile::create_nameless(&target, Existing::Replace).unwrap());
            assert_eq!(names(dir.path()), ["a"]);
        }
    }

    /// The form for file systems that cannot link the file.
    #[test]
    fn a_file_that_cannot_be_linked_is_copied() {
        let dir = tempfile::tempdir().unwrap();
        let target = dir.path().join("a");
        let Some(mut f) = AtomicFile::create_nameless(&target, Existing::Replace) else { return };
        f.write_all(b"one").unwrap();
        f.copy().unwrap().commit().unwrap();
        assert_eq!(fs::read(&target).unwrap(), b"one");
        assert_eq!(names(dir.path()), ["a"]);
        let refused = |_: &Path| -> io::Result<()> { Err(io::ErrorKind::PermissionDenied.into()) };
        assert!(under_new_name(&target, refused).is_err());
    }

    #[test]
    fn a_failed_commit_of_a_nameless_file_leaves_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let target = dir.path().join("a");
        let Some(f) = AtomicFile::create_nameless(&target, Existing::Replace) else { return };
        fs::create_dir(&target).unwrap();
        assert!(f.commit().is_err());
        assert_eq!(names(dir.path()), ["a"]);
        assert!(AtomicFile::create_nameless(&dir.path().join("none/a"), Existing::Keep).is_none());
    }

    #[test]
    fn a_file_that_was_made_meanwhile_is_kept() {
        let dir = tempfile::tempdir().unwrap();
        let target = dir.path().join("a");
        for copies in [false, true] {
            let _ = fs::remove_file(&target);
            let Some(mut f) = AtomicFile::create_nameless(&target, Existing::Keep) else { return };
            f.write_all(b"mine").unwrap();
            fs::write(&target, "theirs").unwrap();
            let done = if copies { f.copy().unwrap().commit() } else { f.commit() };
            assert_eq!(done.unwrap_err().kind(), io::ErrorKind::AlreadyExists);
            assert_eq!(
                (fs::read_to_string(&target).unwrap(), names(dir.path())),
                ("theirs".into(), vec!["a".into()])
            );
        }
    }

    #[test]
    fn in_another_process_calls_of_a_nameless_file_fail() {
        let dir = tempfile::tempdir().unwrap();
        let target = dir.path().join("a");
        let Some(mut f) = AtomicFile::create_nameless(&target, Existing::Replace) else { return };
        f.process = Process::other();
        assert!(f.file().is_err() && f.commit().is_err());
        assert!(names(dir.path()).is_empty());
    }
}
