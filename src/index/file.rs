//! Opening index and column files. A file is read into memory, mapped, or kept open until a section is
//! needed.

use super::layout::{HEADER_LEN, MAX_PREFIX, Refusal, Section};
use super::options::IndexOptions;
use crate::error::{Error, IndexError, Result};
use crate::io::{KeptFile, Map, Region, Reserved, Source, Stamp, open_regular, read_exact_at, url_of};
use crate::memory::zeroed;
use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::Arc;

/// Maximum size of an index file that is always read into memory. Linux limits a process to 65,530 maps by
/// default.
pub(crate) const SMALL: u64 = 64 << 10;
/// Maximum size of an index file that is read into memory while the [`Budget`](crate::io::Budget) allows. A
/// file in memory may then be deleted or truncated on disk. Without the limits 10,000 shards would take
/// gigabytes in every process, whereas processes share maps.
pub(crate) const READ_IN: u64 = 1 << 20;

/// Maximum size of an index file of a store that is read into memory.
pub(crate) const LARGEST: u64 = 1 << 30;

/// Bytes of a large index file of a store that are read first. They mostly have all sections before the
/// tables.
const OBJECT_START: u64 = 64 << 10;

/// An open index or column file.
pub(crate) enum OpenedFile {
    /// The whole file, in memory or mapped.
    Whole(Region, Option<Reserved>),
    /// The header and the section table, of a file of `len` bytes. Sections are read on first use.
    Start { bytes: Vec<u8>, len: u64, from: SidecarFile },
}

/// The file of a sidecar that is read in parts, when they are needed.
#[derive(Clone, Debug)]
pub(crate) enum SidecarFile {
    /// An index file that is kept open. It may be deleted or replaced in the meantime.
    Kept(Arc<KeptFile>),
    /// The path of an index file, which is reopened each time, because thousands of shards cannot keep a
    /// descriptor each. Its header must still be `head`.
    Path { path: Box<Path>, head: Box<[u8; HEADER_LEN]> },
    /// A pack, which keeps one descriptor for all shards, and the offset of the sidecar in it.
    Pack { file: Arc<File>, at: u64 },
    /// A large index file of a store, in one version.
    Object(Arc<dyn Source>),
}

impl OpenedFile {
    /// Reads the start of a large file of a store.
    fn start_of(source: Arc<dyn Source>) -> Result<OpenedFile, String> {
        let mut bytes = zeroed(OBJECT_START).map_err(|e| e.to_string())?;
        read_exact_at(&*source, &mut bytes, 0).map_err(|e| e.to_string())?;
        Ok(OpenedFile::Start { bytes, len: source.len(), from: SidecarFile::Object(source) })
    }
}

impl SidecarFile {
    /// Calls `read` with the open file and the offset of the sidecar in it.
    ///
    /// # Errors
    /// Errors of [`reopen`] and of `read`.
    pub(crate) fn read<T>(&self, read: impl FnOnce(&dyn Source, u64) -> Result<T>) -> Result<T> {
        match self {
            SidecarFile::Kept(file) => read(&***file, 0),
            SidecarFile::Path { path, head } => read(&reopen(path, head)?, 0),
            SidecarFile::Pack { file, at } => read(&**file, *at),
            SidecarFile::Object(source) => read(&**source, 0),
        }
    }
}

/// Opens and decodes the index or column file at `path`, which may be a URL. Also returns when it was last
/// written, if that is known. Returns `None` if there is no file. One of a store is read once more if
/// `decode` fails.
pub(crate) fn open_file<T>(
    path: &Path,
    options: &IndexOptions,
    decode: impl Fn(OpenedFile) -> Result<T, Refusal>,
) -> Result<Option<(T, Option<i64>)>, Refusal> {
    if url_of(path).is_some() {
        let text = |e: Error| e.kind().to_string();
        if !options.storage.may_have_index_file(path).map_err(text)? {
            return Ok(None);
        }
        let decode = |bytes| decode(OpenedFile::Whole(bytes, None));
        let found = options.storage.small(path, LARGEST, decode).map_err(text)?;
        return Ok(found.transpose()?.map(|decoded| (decoded, None)));
    }
    let file = match open_regular(path) {
        Ok(file) => file,
        Err(e) if matches!(e.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            return Ok(None);
        }
        Err(e) => return Err(e.to_string()),
    };
    let io = |e: io::Error| e.to_string();
    let Stamp { size: len, modified_ns: saved_ns, .. } =
        file.metadata().and_then(|meta| Stamp::of(&meta)).map_err(io)?;
    let decoded = decode(open_local(path, file, len, options)?)?;
    Ok(Some((decoded, saved_ns)))
}

/// Reads or maps an index file of `len` bytes, or its start.
fn open_local(path: &Path, file: File, len: u64, options: &IndexOptions) -> Result<OpenedFile, String> {
    let io = |e: io::Error| e.to_string();
    let budget = options.budget();
    let reserved = (SMALL < len && len <= READ_IN).then(|| budget.reserve(len)).flatten();
    let read_in = len <= SMALL || reserved.is_some();
    if !read_in && let Some(promise) = options.may_map {
        let map = Map::open(&file, promise).map_err(io)?;
        return Ok(OpenedFile::Whole(map.into(), None));
    }
    let mut bytes = zeroed(if read_in { len } else { MAX_PREFIX as u64 }).map_err(|e| io(e.into()))?;
    read_exact_at(&file, &mut bytes, 0).map_err(io)?;
    if read_in {
        return Ok(OpenedFile::Whole(Region::from(bytes), reserved));
    }
    let head = Box::new(*bytes.first_chunk().ok_or("shorter than a header")?);
    let from = match budget.keep_index(file) {
        Ok(kept) => SidecarFile::Kept(Arc::new(kept)),
        Err(_) => SidecarFile::Path { path: path.into(), head },
    };
    Ok(OpenedFile::Start { bytes, len, from })
}

/// Opens and decodes an index file like [`open_file`]. Of a large one in a store, only the start is read:
/// more than [`READ_IN`] bytes.
pub(crate) fn open_in_parts<T>(
    path: &Path,
    options: &IndexOptions,
    decode: impl Fn(OpenedFile) -> Result<T, Refusal>,
) -> Result<Option<T>, Refusal> {
    let listed = match url_of(path) {
        Some(_) => options.storage.listed_index_file(path).map_err(|e| e.kind().to_string())?,
        None => None,
    };
    let Some(source) = listed.filter(|source| source.len() > READ_IN) else {
        return Ok(open_file(path, options, decode)?.map(|(decoded, _)| decoded));
    };
    match decode(OpenedFile::start_of(source.clone())?) {
        Err(_) if source.distrust(&(0..source.len())) => decode(OpenedFile::start_of(source)?).map(Some),
        decoded => decoded.map(Some),
    }
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

/// Reads a section of the file that begins at byte `at`. The caller has checked that the section is inside
/// the file.
pub(crate) fn read_section(file: &dyn Source, at: u64, s: &Section) -> Result<Region> {
    let mut bytes = zeroed(s.len)?;
    read_exact_at(file, &mut bytes, at + s.offset)?;
    Ok(Region::from(bytes))
}

/// Returns the sections before the tables of a large file of a store: from its start, or by one read of those
/// that are not in it.
pub(crate) fn sections_in_start(
    start: &[u8],
    source: &dyn Source,
    sections: [&Section; 3],
) -> Result<[Region; 3], String> {
    let ends = sections.map(|section| section.offset + section.len);
    let end = ends.into_iter().fold(0, u64::max);
    let mut all = start.to_vec();
    if let Some(more) = end.checked_sub(all.len() as u64).filter(|more| *more > 0) {
        if end > LARGEST {
            return Err(format!("expected at most {LARGEST} bytes before the tables, found {end}"));
        }
        let mut rest = zeroed(more).map_err(|e| e.to_string())?;
        read_exact_at(source, &mut rest, all.len() as u64).map_err(|e| e.to_string())?;
        all.append(&mut rest);
    }
    let all = Region::from(all);
    let part = |section| slice(&all, section).ok_or_else(|| "the file ends inside a section".to_owned());
    let [first, second, third] = sections;
    Ok([part(first)?, part(second)?, part(third)?])
}
