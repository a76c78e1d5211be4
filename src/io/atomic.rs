//! Files that appear whole or not at all.

use std::collections::hash_map::RandomState;
use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::hash::{BuildHasher, Hasher};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// The start of a temporary name; 16 random hex digits follow. Hidden, so that no `glob("train-*")` meets it.
pub const TMP_PREFIX: &str = ".tmp-";

/// A file that is written under a temporary name beside its target and renamed onto it by
/// [`commit`](AtomicFile::commit): a reader sees the old file or the whole new one.
///
/// A kill leaves at most the temporary file; dropping without a commit removes it.
#[derive(Debug)]
pub struct AtomicFile {
    file: Option<File>,
    tmp: PathBuf,
    target: PathBuf,
}

impl AtomicFile {
    /// Opens a new temporary file in the folder of `target`.
    ///
    /// # Errors
    /// Those of the system, among them a folder that is missing or read-only.
    pub fn create(target: impl AsRef<Path>) -> io::Result<AtomicFile> {
        let target = target.as_ref().to_path_buf();
        if target.file_name().is_none() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "the target has no file name"));
        }
        loop {
            let mut name = OsString::from(TMP_PREFIX);
            name.push(format!("{:016x}", RandomState::new().build_hasher().finish()));
            let tmp = target.with_file_name(name);
            match OpenOptions::new().write(true).create_new(true).open(&tmp) {
                Ok(file) => return Ok(AtomicFile { file: Some(file), tmp, target }),
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
                Err(e) => return Err(e),
            }
        }
    }

    /// The file that is being written.
    pub fn file(&self) -> io::Result<&File> {
        self.file.as_ref().ok_or_else(|| io::Error::other("the file was committed"))
    }

    /// Where it will be.
    pub fn target(&self) -> &Path {
        &self.target
    }

    /// Brings the bytes to the disk, then gives the file its name.
    ///
    /// # Errors
    /// Those of the system; the target is then as it was.
    pub fn commit(mut self) -> io::Result<()> {
        let Some(file) = self.file.take() else { return Err(io::Error::other("the file was committed")) };
        let written = file.sync_all().and_then(|()| {
            let len = file.metadata()?.len();
            drop(file);
            rename(&self.tmp, &self.target, len)
        });
        if written.is_err() {
            let _ = fs::remove_file(&self.tmp);
            return written;
        }
        sync_folder(&self.target)
    }
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
        if self.file.take().is_some() {
            let _ = fs::remove_file(&self.tmp);
        }
    }
}

/// A network file system may answer a rename that succeeded with "not found", when its reply was lost and the
/// call repeated: then the target is there, as long as what was written.
fn rename(from: &Path, to: &Path, len: u64) -> io::Result<()> {
    match fs::rename(from, to) {
        Err(e) if e.kind() == io::ErrorKind::NotFound && fs::metadata(to).is_ok_and(|m| m.len() == len) => {
            Ok(())
        }
        done => done,
    }
}

/// A rename is only on the disk when its folder is.
fn sync_folder(file: &Path) -> io::Result<()> {
    #[cfg(unix)]
    {
        let folder = match file.parent() {
            Some(p) if !p.as_os_str().is_empty() => p,
            _ => Path::new("."),
        };
        File::open(folder)?.sync_all()
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
        let f = AtomicFile::create(&target).unwrap();
        assert!(f.commit().is_err());
        assert_eq!(names(dir.path()), ["folder"]);
    }
}
