//! Linux, macOS and other systems of the Unix family.

use memmap2::{Advice, Mmap};
use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags};
use rustix::io::retry_on_intr;
use std::ffi::{OsStr, OsString};
use std::fs::{DirBuilder, File, Metadata, OpenOptions};
use std::io;
use std::ops::Range;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{DirBuilderExt, FileExt, FileTypeExt, MetadataExt, OpenOptionsExt, fchown};
use std::path::{Path, PathBuf};

/// Makes `open` return at once for a FIFO.
pub(crate) fn open_at_once(options: &mut OpenOptions) {
    // POSIX open(2): with O_NONBLOCK, opening a FIFO for reading returns without delay. Regular files ignore
    // the flag.
    options.custom_flags(OFlags::NONBLOCK.bits().cast_signed());
}

/// Returns the type of a file that is neither regular nor a folder, e.g. `a FIFO`.
pub(crate) fn file_type_name(meta: &Metadata) -> &'static str {
    match meta.file_type() {
        t if t.is_fifo() => "a FIFO",
        t if t.is_socket() => "a socket",
        t if t.is_char_device() || t.is_block_device() => "a device",
        _ => "a special file",
    }
}

/// Returns the device and the inode number of a file.
#[expect(clippy::unnecessary_wraps, reason = "other systems have none")]
pub(crate) fn device_and_number(found: &Metadata) -> Option<[u64; 2]> {
    Some([found.dev(), found.ino()])
}

/// Returns the time of the last change of a file's content or metadata, in nanoseconds since 1970. Programs
/// can restore the modification time, but not this one.
pub(crate) fn change_time(found: &Metadata) -> i64 {
    found.ctime().saturating_mul(1_000_000_000).saturating_add(found.ctime_nsec())
}

/// Returns who else may change what is in a folder, and the remedy. `None` if only the user of the process
/// and root can.
pub(crate) fn who_else_writes(found: &Metadata) -> Option<String> {
    let user = rustix::process::geteuid().as_raw();
    let owner = found.uid();
    if owner != user && owner != 0 {
        return Some(format!(
            "the folder belongs to user {owner}, who may change what is read from it: expected one of user {user} or of \
             root"
        ));
    }
    // Where each user has a group, it has the user's number and no other member.
    let others = if found.gid() == owner { 0o002 } else { 0o022 };
    let mode = found.mode() & 0o7777;
    (mode & others != 0).then(|| {
        format!("others may write to the folder, and so change what is read from it: its mode is {mode:o}, try chmod go-w")
    })
}

/// Creates a folder, and those that it is in, which only the user can write to, whatever the umask.
pub(crate) fn create_own_folder(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o755).create(path)
}

/// Returns false if most of the descriptors that the process may have are taken. The system gives the lowest
/// free number.
pub(crate) fn may_keep(file: &File) -> bool {
    use rustix::process::{Resource, getrlimit};
    let number = u64::try_from(file.as_raw_fd()).unwrap_or(0);
    getrlimit(Resource::Nofile).current.is_none_or(|limit| number < limit / 2)
}

/// Reads at a position. No cursor is used.
pub(crate) fn read_at(file: &File, buf: &mut [u8], offset: u64) -> io::Result<usize> {
    file.read_at(buf, offset)
}

/// Advises the system to start reading these bytes, and returns immediately. A refusal is not an error.
pub(crate) fn will_need(file: &File, range: Range<u64>) {
    #[cfg(target_os = "linux")]
    if let Some(len) = std::num::NonZeroU64::new(range.end.saturating_sub(range.start)) {
        let _ = rustix::fs::fadvise(file, range.start, Some(len), rustix::fs::Advice::WillNeed);
    }
    #[cfg(not(target_os = "linux"))]
    let _ = (file, range);
}

/// Does the same for `len` bytes of a map.
pub(crate) fn map_will_need(map: &Mmap, start: usize, len: usize) {
    let _ = map.advise_range(Advice::WillNeed, start, len);
}

/// Makes bytes of a map resident. `None` without such a call.
pub(crate) fn populate_map(map: &Mmap, start: usize, len: usize) -> Option<io::Result<()>> {
    #[cfg(target_os = "linux")]
    match map.advise_range(Advice::PopulateRead, start, len) {
        // EINVAL: a kernel before 5.14.
        Err(e) if e.kind() == io::ErrorKind::InvalidInput => None,
        done => Some(done),
    }
    #[cfg(not(target_os = "linux"))]
    {
        let _ = (map, start, len);
        None
    }
}

/// Converts bytes to a path.
#[expect(clippy::unnecessary_wraps, reason = "on other systems paths are Unicode")]
pub(crate) fn path_from_bytes(bytes: &[u8]) -> Option<PathBuf> {
    Some(PathBuf::from(OsStr::from_bytes(bytes)))
}

/// Returns true for a name in a folder of descriptors, which is `folder`.
pub(crate) fn is_descriptor(folder: &Path) -> bool {
    cfg!(target_os = "linux")
        && folder.canonicalize().is_ok_and(|dir| dir.starts_with("/proc") && dir.ends_with("fd"))
}

/// Gives `file` the mode of the file at `target`, and its owner and group where the process may set them.
/// Does nothing if there is none.
pub(crate) fn keep_mode(file: &File, target: &Path) -> io::Result<()> {
    let Ok(old) = target.symlink_metadata() else { return Ok(()) };
    if !old.is_file() {
        return Ok(());
    }
    let new = file.metadata()?;
    if (old.uid(), old.gid()) != (new.uid(), new.gid()) {
        // Only root may set the owner. A process may set a group that it belongs to.
        let _ =
            fchown(file, Some(old.uid()), Some(old.gid())).or_else(|_| fchown(file, None, Some(old.gid())));
    }
    // A change of the owner may clear bits of the mode.
    if file.metadata()?.mode() != old.mode() { file.set_permissions(old.permissions()) } else { Ok(()) }
}

/// Renames a file to a name that must be new.
///
/// # Errors
/// [`io::ErrorKind::AlreadyExists`]; others where the system or the file system has no such rename.
pub(crate) fn rename_to_new(from: &Path, to: &Path) -> io::Result<()> {
    #[cfg(target_os = "linux")]
    {
        use rustix::fs::{RenameFlags, renameat_with};
        Ok(renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE)?)
    }
    #[cfg(not(target_os = "linux"))]
    {
        let _ = (from, to);
        Err(io::ErrorKind::Unsupported.into())
    }
}

/// Syncs a folder. A rename in it is durable only after this.
pub(crate) fn sync_folder(folder: &Path) -> io::Result<()> {
    match File::open(folder)?.sync_all() {
        // fsync(2): the file system does not sync folders.
        Err(e) if e.kind() == io::ErrorKind::InvalidInput => Ok(()),
        done => done,
    }
}

/// Creates a file without a name.
pub(crate) fn create_nameless(folder: &Path) -> io::Result<File> {
    #[cfg(all(target_os = "linux", not(miri)))]
    {
        let tmpfile = OFlags::TMPFILE.bits().cast_signed();
        OpenOptions::new().read(true).write(true).custom_flags(tmpfile).open(folder)
    }
    #[cfg(not(all(target_os = "linux", not(miri))))]
    {
        let _ = folder;
        Err(io::ErrorKind::Unsupported.into())
    }
}

/// Gives a file without a name the name `path`, which must be new.
pub(crate) fn link_nameless(file: &File, path: &Path) -> io::Result<()> {
    #[cfg(all(target_os = "linux", not(miri)))]
    {
        // open(2), O_TMPFILE: without a capability, the file is linked through its entry in /proc.
        let from = format!("/proc/self/fd/{}", file.as_raw_fd());
        Ok(rustix::fs::linkat(CWD, from, CWD, path, AtFlags::SYMLINK_FOLLOW)?)
    }
    #[cfg(not(all(target_os = "linux", not(miri))))]
    {
        let _ = (file, path);
        Err(io::ErrorKind::Unsupported.into())
    }
}

/// An open folder. Names stand for its entries, and absolute paths for files elsewhere.
#[derive(Debug)]
pub(crate) struct OpenFolder(OwnedFd);

impl OpenFolder {
    /// Opens a folder that is no link.
    pub(crate) fn open(path: &Path) -> io::Result<OpenFolder> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Ok(OpenFolder(retry_on_intr(|| rustix::fs::open(path, flags, Mode::empty()))?))
    }

    /// Opens an entry for reading, and to `write` also for writing. A link is refused, and no open waits.
    pub(crate) fn file(&self, name: &str, write: bool) -> io::Result<File> {
        let access = if write { OFlags::RDWR } else { OFlags::RDONLY };
        self.open_with(name, access | OFlags::NONBLOCK)
    }

    /// Creates a file of a new name.
    pub(crate) fn new_file(&self, name: &str) -> io::Result<File> {
        self.open_with(name, OFlags::RDWR | OFlags::CREATE | OFlags::EXCL)
    }

    fn open_with(&self, name: &str, flags: OFlags) -> io::Result<File> {
        let mode = Mode::from_raw_mode(0o666);
        let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Ok(retry_on_intr(|| rustix::fs::openat(&self.0, name, flags, mode))?.into())
    }

    /// Returns true for a regular file without another name. `None` if there is no such entry.
    pub(crate) fn is_own_file(&self, name: impl AsRef<Path>) -> io::Result<Option<bool>> {
        match retry_on_intr(|| rustix::fs::statat(&self.0, name.as_ref(), AtFlags::SYMLINK_NOFOLLOW)) {
            Ok(found) => Ok(Some(FileType::from_raw_mode(found.st_mode).is_file() && found.st_nlink == 1)),
            Err(rustix::io::Errno::NOENT) => Ok(None),
            Err(e) => Err(e.into()),
        }
    }

    pub(crate) fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        Ok(rustix::fs::renameat(&self.0, from, &self.0, to)?)
    }

    /// Gives a file a second name. A link is not followed.
    pub(crate) fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        Ok(rustix::fs::linkat(&self.0, from, &self.0, to, AtFlags::empty())?)
    }

    pub(crate) fn remove(&self, name: &Path) -> io::Result<()> {
        Ok(rustix::fs::unlinkat(&self.0, name, AtFlags::empty())?)
    }

    pub(crate) fn names(&self) -> io::Result<Vec<OsString>> {
        let mut names = Vec::new();
        for entry in rustix::fs::Dir::read_from(&self.0)? {
            let name = entry?.file_name().to_bytes().to_vec();
            if name != b"." && name != b".." {
                names.push(OsString::from_vec(name));
            }
        }
        Ok(names)
    }

    /// Syncs the folder, by the rules of [`sync_folder`].
    pub(crate) fn sync(&self) -> io::Result<()> {
        match retry_on_intr(|| rustix::fs::fsync(&self.0)) {
            Err(rustix::io::Errno::INVAL) => Ok(()),
            done => Ok(done?),
        }
    }
}
