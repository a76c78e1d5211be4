//! Opening index and column files. A file is read into memory, mapped, or kept open until a section is needed.

use super::layout::{HEADER_LEN, MAX_PREFIX, Section};
use super::options::IndexOptions;
use crate::error::{IndexError, Result};
use crate::io::{KeptFile, Map, Region, Reserved, open_regular, read_exact_at, size, url_of};
use crate::memory::zeroed;
use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::Arc;

/// Maximum size of an index file that is always read into memory. Linux limits a process to 65,530 maps by default.
pub(crate) const SMALL: u64 = 64 << 10;
/// Maximum size of an index file that is read into memory while the [`Budget`](crate::io::Budget) allows. A file in memory may
/// then be deleted or truncated on disk.
pub(crate) const READ_IN: u64 = 1 << 20;

/// Maximum size of an index file of a store, which is always read into memory.
pub(crate) const LARGEST: u64 = 1 << 30;

/// An open index or column file.
pub(crate) enum OpenedFile {
    /// The whole file, in memory or mapped.
    Whole(Region, Option<Reserved>),
    /// The header and the section table. Sections are read on first use: from `file`, if the budget had a descriptor for it.
    Start { bytes: Vec<u8>, len: u64, head: Box<[u8; HEADER_LEN]>, file: Option<KeptFile> },
}

/// The file of a sidecar that is read in parts, when they are needed.
#[derive(Clone, Debug)]
pub(crate) enum SidecarFile {
    /// An index file that is kept open. It may be deleted or replaced in the meantime.
    Kept(Arc<KeptFile>),
    /// The path of an index file, which is reopened each time, because thousands of shards cannot keep a descriptor each. Its header must still be
    /// `head`.
    Path { path: Box<Path>, head: Box<[u8; HEADER_LEN]> },
    /// A pack, which keeps one descriptor for all shards, and the offset of the sidecar in it.
    Pack { file: Arc<File>, at: u64 },
}

impl SidecarFile {
    /// Calls `read` with the open file and the offset of the sidecar in it.
    ///
    /// # Errors
    /// Errors of [`reopen`] and of `read`.
    pub(crate) fn read<T>(&self, read: impl FnOnce(&File, u64) -> Result<T>) -> Result<T> {
        match self {
            SidecarFile::Kept(file) => read(file, 0),
            SidecarFile::Path { path, head } => read(&reopen(path, head)?, 0),
            SidecarFile::Pack { file, at } => read(file, *at),
        }
    }
}

/// Opens the index or column file at `path`, which may be a URL. Returns `None` if there is no file.
pub(crate) fn open_file(path: &Path, options: &IndexOptions) -> Result<Option<OpenedFile>, String> {
    if url_of(path).is_some() {
        let found = options.storage.index_file(path, LARGEST).map_err(|e| e.kind().to_string())?;
        return Ok(found.map(|bytes| OpenedFile::Whole(bytes, None)));
    }
    let file = match open_regular(path) {
        Ok(file) => file,
        Err(e) if matches!(e.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            return Ok(None);
        }
        Err(e) => return Err(e.to_string()),
    };
    let io = |e: io::Error| e.to_string();
    let len = size(&file).map_err(io)?;
    let budget = options.budget();
    let reserved = (SMALL < len && len <= READ_IN).then(|| budget.reserve(len)).flatten();
    let read_in = len <= SMALL || reserved.is_some();
    if !read_in && let Some(promise) = options.may_map {
        let map = Map::open(&file, promise).map_err(io)?;
        return Ok(Some(OpenedFile::Whole(map.into(), None)));
    }
    let mut bytes = zeroed(if read_in { len } else { MAX_PREFIX as u64 }).map_err(|e| io(e.into()))?;
    read_exact_at(&file, &mut bytes, 0).map_err(io)?;
    if read_in {
        return Ok(Some(OpenedFile::Whole(Region::from(bytes), reserved)));
    }
    let head = Box::new(*bytes.first_chunk().ok_or("shorter than a header")?);
    Ok(Some(OpenedFile::Start { bytes, len, head, file: budget.keep_index(file).ok() }))
}

/// Reopens an index file to read its sections. Its header must still be `head`.
///
/// # Errors
/// [`IndexError::Stale`] if the file was deleted or replaced. I/O errors.
pub(crate) fn reopen(path: &Path, head: &[u8; HEADER_LEN]) -> Result<File> {
    let stale = |what: &str| {
        let reason = format!("the index file was {what} before it was read: open the dataset again").into();
        IndexError::Stale { reason }
    };
    let file = match open_regular(path) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Err(stale("deleted").into()),
        opened => opened?,
    };
    let mut now = [0; HEADER_LEN];
    match read_exact_at(&file, &mut now, 0) {
        Ok(()) if now == *head => Ok(file),
        Err(e) if e.kind() != io::ErrorKind::UnexpectedEof => Err(e.into()),
        _ => Err(stale("replaced").into()),
    }
}

/// Returns a section of a file in memory, or `None` if it is outside the file.
pub(crate) fn slice(bytes: &Region, s: &Section) -> Option<Region> {
    let start = usize::try_from(s.offset).ok()?;
    bytes.slice(start..start.checked_add(usize::try_from(s.len).ok()?)?)
}

/// Reads a section of the file that begins at byte `at`. The caller has checked that the section is inside the file.
pub(crate) fn read_section(file: &File, at: u64, s: &Section) -> Result<Region> {
    let mut bytes = zeroed(s.len)?;
    read_exact_at(file, &mut bytes, at.saturating_add(s.offset))?;
    Ok(Region::from(bytes))
}
