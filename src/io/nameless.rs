//! Files that have no name while they are written (Linux).

use super::atomic::{AtomicFile, NameNotSynced, already_exists};
use super::existing::Existing;
use super::process::Process;
use super::system::{self, keep_mode};
use super::url::folder;
use std::fs::File;
use std::io::{self, Seek};
use std::path::{Path, PathBuf};

/// A file without a name in the folder of its target. [`commit`](NamelessFile::commit) gives it the name of
/// the target.
///
/// If the process is killed before that, nothing remains of the file, so no signal handler is needed. It
/// belongs to the process that created it, like an [`AtomicFile`].
#[derive(Debug)]
pub(super) struct NamelessFile {
    file: File,
    target: PathBuf,
    existing: Existing,
    process: Process,
}

impl NamelessFile {
    /// Creates a file. `None` if the system or the file system has no files without a name, or on any error.
    pub(super) fn create(target: &Path, existing: Existing) -> Option<NamelessFile> {
        let file = system::create_nameless(folder(target)).ok()?;
        Some(NamelessFile { file, target: target.into(), existing, process: Process::this() })
    }

    /// Returns the open file.
    ///
    /// # Errors
    /// [`EncodeError::Forked`](crate::error::EncodeError::Forked) in a forked child.
    pub(super) fn file(&self) -> io::Result<&File> {
        self.process.check()?;
        Ok(&self.file)
    }

    /// Gives the file the mode of the file that it replaces.
    pub(super) fn keep_mode(&self) -> io::Result<()> {
        match self.existing {
            Existing::Replace => keep_mode(self.file()?, &self.target),
            Existing::Keep => Ok(()),
        }
    }

    /// Syncs the bytes to the disk, then gives the file its name. An existing target is replaced by a rename,
    /// if it may be.
    ///
    /// # Errors
    /// I/O errors, and an existing target that is to be kept; the target is then unchanged. The exception is
    /// [`NameNotSynced`], after which the target is the new file.
    pub(super) fn commit(self) -> io::Result<()> {
        self.process.check()?;
        self.file.sync_all()?;
        match system::link_nameless(&self.file, &self.target) {
            Ok(()) => return NameNotSynced::check(&self.target),
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists && self.existing == Existing::Keep => {
                return Err(already_exists());
            }
            // The target exists, or the file cannot be linked.
            Err(_) => {}
        }
        match AtomicFile::link(&self.file, &self.target, self.existing, system::link_nameless) {
            Some(named) => named.commit_synced(),
            None => self.copy()?.commit(),
        }
    }

    /// Copies the file to one with a temporary name.
    fn copy(mut self) -> io::Result<AtomicFile> {
        let mut named = AtomicFile::create_at(self.target, self.existing)?;
        self.file.rewind()?;
        io::copy(&mut self.file, &mut named)?;
        Ok(named)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::io::Write;

    fn names(dir: &Path) -> Vec<String> {
        fs::read_dir(dir).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect()
    }

    #[test]
    fn the_target_has_the_old_or_the_new_content() {
        let dir = tempfile::tempdir().unwrap();
        let target = dir.path().join("a");
        // The second time the target exists.
        for text in ["one", "two"] {
            let before = fs::read(&target).ok();
            let Some(mut f) = NamelessFile::create(&target, Existing::Replace) else { return };
            f.file.write_all(text.as_bytes()).unwrap();
            assert_eq!(
                (names(dir.path()).len(), fs::read(&target).ok()),
                (usize::from(before.is_some()), before)
            );
            f.commit().unwrap();
            assert_eq!(fs::read_to_string(&target).unwrap(), text);
            assert_eq!(names(dir.path()), ["a"]);
            drop(NamelessFile::create(&target, Existing::Replace).unwrap());
            assert_eq!(names(dir.path()), ["a"]);
        }
    }

    /// The form for file systems that cannot link the file.
    #[test]
    fn a_file_that_cannot_be_linked_is_copied() {
        let dir = tempfile::tempdir().unwrap();
        let target = dir.path().join("a");
        let Some(mut f) = NamelessFile::create(&target, Existing::Replace) else { return };
        f.file.write_all(b"one").unwrap();
        f.copy().unwrap().commit().unwrap();
        assert_eq!(fs::read(&target).unwrap(), b"one");
        assert_eq!(names(dir.path()), ["a"]);
        let refused = |_: &File, _: &Path| -> io::Result<()> { Err(io::ErrorKind::PermissionDenied.into()) };
        assert!(
            AtomicFile::link(&File::open(&target).unwrap(), &target, Existing::Replace, refused).is_none()
        );
    }

    #[test]
    fn a_failed_commit_leaves_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let target = dir.path().join("a");
        let Some(f) = NamelessFile::create(&target, Existing::Replace) else { return };
        fs::create_dir(&target).unwrap();
        assert!(f.commit().is_err());
        assert_eq!(names(dir.path()), ["a"]);
        assert!(NamelessFile::create(&dir.path().join("none/a"), Existing::Keep).is_none());
    }

    #[test]
    fn a_file_that_was_made_meanwhile_is_kept() {
        let dir = tempfile::tempdir().unwrap();
        let target = dir.path().join("a");
        for copies in [false, true] {
            let _ = fs::remove_file(&target);
            let Some(mut f) = NamelessFile::create(&target, Existing::Keep) else { return };
            f.file.write_all(b"mine").unwrap();
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
    fn in_another_process_calls_fail() {
        let dir = tempfile::tempdir().unwrap();
        let Some(mut f) = NamelessFile::create(&dir.path().join("a"), Existing::Replace) else { return };
        f.process = Process::other();
        assert!(f.file().is_err() && f.commit().is_err());
        assert!(names(dir.path()).is_empty());
    }
}
