//! Output files, FIFOs and devices that a user specifies.

use super::AtomicFile;
use super::atomic::rename_new;
use super::existing::Existing;
use super::file_state::FileId;
use super::path::OutputTarget;
use super::process::Process;
use super::url::folder;
use std::ffi::OsString;
use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::hash::Hash;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// An output file. It is created atomically if its type allows it.
///
/// | file at the path | behaviour |
/// | --- | --- |
/// | none, or a regular file | written without a name or under a temporary one; created or replaced by [`commit`](Output::commit) |
/// | symbolic link | the same for the target of the link; the link is kept |
/// | FIFO, device, socket | written directly, never replaced |
/// | `/dev/stdout`, `/dev/fd/3` | written directly; appended to if redirected to a file |
///
/// On Linux and a file system that supports it, a file that is being written has no name, so nothing remains
/// of it if the process is killed. The exception is a kill in `commit`, after the file got a temporary name
/// and before it replaces an existing file. Elsewhere its temporary name remains.
///
/// A file that replaces another keeps its mode, and on Unix its owner and group where the process may set
/// them.
///
/// The file belongs to the process that created it: in a forked child every call returns an error.
#[derive(Debug)]
pub struct Output {
    sink: OutputSink,
    process: Process,
}

#[derive(Debug)]
enum OutputSink {
    Atomic(AtomicFile),
    Direct(File),
}

impl Output {
    /// Opens `path` by the rules above. Opening a FIFO blocks until it has a reader.
    ///
    /// # Errors
    /// I/O errors; a path that is a folder; an existing file that is to be kept.
    pub fn open(path: impl AsRef<Path>, existing: Existing) -> io::Result<Output> {
        let path = path.as_ref();
        if existing == Existing::Keep && Output::replaces(path) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        let sink = match OutputTarget::of(path)? {
            OutputTarget::File(resolved) => match AtomicFile::create_nameless(&resolved, existing) {
                Some(file) => OutputSink::Atomic(file),
                None => OutputSink::Atomic(AtomicFile::create_at(resolved, existing)?),
            },
            OutputTarget::Special(path) => OutputSink::Direct(OpenOptions::new().write(true).open(path)?),
            OutputTarget::Descriptor(path) => OutputSink::Direct(OpenOptions::new().append(true).open(path)?),
        };
        Ok(Output { sink, process: Process::this() })
    }

    /// Creates or truncates the file at `path` and writes it in place, without a temporary file.
    ///
    /// # Errors
    /// I/O errors.
    pub(crate) fn in_place(path: impl AsRef<Path>) -> io::Result<Output> {
        File::create(path).map(Output::direct)
    }

    /// Writes directly to an open file.
    pub(crate) fn direct(file: File) -> Output {
        Output { sink: OutputSink::Direct(file), process: Process::this() }
    }

    /// Gives a complete file another name in its folder.
    ///
    /// # Errors
    /// I/O errors; an existing file that is to be kept.
    pub fn rename(from: &Path, to: &Path, existing: Existing) -> io::Result<()> {
        match existing {
            Existing::Replace => fs::rename(from, to),
            Existing::Keep => rename_new(from, to),
        }
    }

    /// Returns true if [`open`](Output::open) and [`commit`](Output::commit) would replace an existing file.
    pub fn replaces(path: impl AsRef<Path>) -> bool {
        let path = path.as_ref();
        fs::metadata(path).is_ok_and(|found| found.is_file())
            && !matches!(OutputTarget::of(path), Ok(OutputTarget::Special(_) | OutputTarget::Descriptor(_)))
    }

    /// Returns true if the file is created atomically, i.e. gets its name when it is complete.
    pub fn is_whole(&self) -> bool {
        !matches!(self.sink, OutputSink::Direct(_))
    }

    /// Returns the identity of the file at `path`, which need not exist: device and inode number if it
    /// exists, otherwise folder and name. Two paths have the same key if an output would write both to the
    /// same file.
    ///
    /// # Errors
    /// I/O errors.
    pub fn key(path: &Path) -> io::Result<impl Clone + fmt::Debug + Ord + Hash + use<>> {
        if let Ok(Some(id)) = FileId::of(path) {
            return Ok(OutputIdentity::Existing(id));
        }
        let path = match OutputTarget::of(path)? {
            OutputTarget::File(path) | OutputTarget::Special(path) | OutputTarget::Descriptor(path) => path,
        };
        let folder = folder(&path);
        let folder = folder.canonicalize().or_else(|_| std::path::absolute(folder))?;
        Ok(OutputIdentity::Named(folder, path.file_name().unwrap_or_default().into()))
    }

    /// Returns the open file.
    ///
    /// # Errors
    /// [`EncodeError::Forked`](crate::error::EncodeError::Forked) in a forked child.
    pub fn file(&self) -> io::Result<&File> {
        self.process.check()?;
        match &self.sink {
            OutputSink::Atomic(file) => file.file(),
            OutputSink::Direct(file) => Ok(file),
        }
    }

    /// Syncs a regular file to the disk. Does nothing for other files.
    ///
    /// # Errors
    /// I/O errors; [`EncodeError::Forked`](crate::error::EncodeError::Forked) in a forked child.
    pub(crate) fn sync(&self) -> io::Result<()> {
        let file = self.file()?;
        if file.metadata()?.is_file() { file.sync_all() } else { Ok(()) }
    }

    /// Gives an atomic file the mode of the file that it replaces. [`commit`](Output::commit) does so as
    /// well, but finds no file whose name was taken from it before.
    ///
    /// # Errors
    /// I/O errors; [`EncodeError::Forked`](crate::error::EncodeError::Forked) in a forked child.
    pub(crate) fn keep_mode(&self) -> io::Result<()> {
        match &self.sink {
            OutputSink::Atomic(file) => file.keep_mode(),
            OutputSink::Direct(_) => Ok(()),
        }
    }

    /// Syncs an atomic file to the disk and renames it to its path. Does nothing for other files.
    ///
    /// # Errors
    /// I/O errors; the target is then unchanged. The exception is a folder that cannot be synced, after which
    /// the target is the new file. A file that was made meanwhile and is to be kept.
    /// [`EncodeError::Forked`](crate::error::EncodeError::Forked) in a forked child.
    pub fn commit(self) -> io::Result<()> {
        match self.sink {
            OutputSink::Atomic(file) => file.commit(),
            OutputSink::Direct(_) => self.process.check(),
        }
    }
}

impl Write for Output {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        self.file()?.write(buf)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file()?.flush()
    }
}

/// The identity of an output file.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum OutputIdentity {
    Existing(FileId),
    Named(PathBuf, OsString),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commit_replaces_the_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a");
        assert!(!Output::replaces(&path));
        for text in ["one", "two"] {
            let mut out = Output::open(&path, Existing::Replace).unwrap();
            assert!(out.is_whole());
            out.write_all(text.as_bytes()).unwrap();
            out.sync().unwrap();
            assert_ne!(fs::read_to_string(&path).ok().as_deref(), Some(text));
            out.commit().unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), text);
            assert!(Output::replaces(&path));
        }
        assert!(Output::open(dir.path(), Existing::Replace).is_err() && !Output::replaces(dir.path()));
    }

    #[test]
    #[cfg(unix)]
    fn a_link_is_kept_and_its_target_is_replaced() {
        use std::os::unix::fs::symlink;
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        fs::create_dir(at("there")).unwrap();
        fs::write(at("there/file"), "old").unwrap();
        symlink("there/file", at("link")).unwrap();
        symlink("link", at("second")).unwrap();
        symlink("there/none", at("dangling")).unwrap();
        symlink("loop", at("loop")).unwrap();
        for (link, file) in [("link", "there/file"), ("second", "there/file"), ("dangling", "there/none")] {
            let mut out = Output::open(at(link), Existing::Replace).unwrap();
            out.write_all(link.as_bytes()).unwrap();
            out.commit().unwrap();
            assert_eq!(fs::read_to_string(at(file)).unwrap(), link);
            assert!(at(link).symlink_metadata().unwrap().is_symlink());
        }
        assert!(Output::open(at("loop"), Existing::Replace).is_err());
        assert_eq!(fs::read_dir(at("there")).unwrap().count(), 2);
        let key = |name: &str| Output::key(&at(name)).unwrap();
        assert_eq!(key("link"), key("there/../there/file"));
        symlink("new", at("to_new")).unwrap();
        assert_eq!(key("to_new"), key("there/../new"));
        assert_ne!(key("new"), key("newer"));
    }

    #[test]
    #[cfg(unix)]
    fn a_device_is_written_directly() {
        let before = FileId::of(Path::new("/dev/null")).unwrap();
        let mut out = Output::open("/dev/null", Existing::Replace).unwrap();
        assert!(!out.is_whole() && !Output::replaces("/dev/null"));
        out.write_all(b"nothing").unwrap();
        out.sync().unwrap();
        out.commit().unwrap();
        assert_eq!(FileId::of(Path::new("/dev/null")).unwrap(), before);
        assert!(AtomicFile::create("/dev/null").is_err());
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_descriptor_is_appended_to() {
        use std::os::fd::AsRawFd;
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(b"before ").unwrap();
        let path = format!("/proc/self/fd/{}", file.as_raw_fd());
        assert!(!Output::replaces(&path));
        let mut out = Output::open(&path, Existing::Replace).unwrap();
        out.write_all(b"after").unwrap();
        out.commit().unwrap();
        let mut text = String::new();
        io::Seek::rewind(&mut file).unwrap();
        io::Read::read_to_string(&mut file, &mut text).unwrap();
        assert_eq!(text, "before after");
    }

    #[test]
    fn in_another_process_every_call_is_an_error() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a");
        for in_place in [false, true] {
            let out = if in_place { Output::in_place(&path) } else { Output::open(&path, Existing::Replace) };
            let mut out = out.unwrap();
            out.process = Process::other();
            assert!(out.write(b"x").is_err() && out.flush().is_err() && out.sync().is_err());
            assert!(out.is_whole() || out.commit().is_err());
        }
        assert_eq!(fs::metadata(&path).unwrap().len(), 0);
    }
}
