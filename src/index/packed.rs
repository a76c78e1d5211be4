//! The content of a pack: the sidecars of many shards in one file.

#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects))]

use super::file::{LARGEST, READ_IN, SMALL, SidecarFile, slice};
use super::layout::{
    self, ENTRY_LEN, HEADER_LEN, IndexHeader, MAX_PREFIX, PackHeader, Refusal, refused, u64_at,
};
use super::options::IndexOptions;
use super::sidecar::{Sidecar, decode};
use super::store::HIDDEN_DIR;
use crate::error::{ErrorKind, Result};
use crate::io::{
    Map, Region, Stamp, folder, is_foreign_separator, join, open_regular, path_from_bytes, read_exact_at,
    url_of,
};
use crate::memory::zeroed;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

/// The indexes of a dataset, read from one `.tfrp` file.
///
/// Opening reads the header, the shard table and the names, but no metadata of shards. Record numbers are
/// fixed from then on. So a shard that is missing or has changed at its first access is an error, and its
/// index is never rebuilt.
pub(crate) struct Pack {
    pub(super) path: PathBuf,
    base: PathBuf,
    pub(super) header: PackHeader,
    pub(super) entries: Vec<PackEntry>,
    /// The numbers of the entries, sorted by their paths. Made for the first search.
    by_path: OnceLock<Vec<usize>>,
    pub(super) source: PackBytes,
    /// Time at which the pack was last written, if it is known.
    saved_ns: Option<i64>,
    pub(super) options: IndexOptions,
}

pub(super) struct PackEntry {
    pub(super) offset: u64,
    pub(super) len: u64,
    pub(super) n_records: u64,
    pub(super) path: PathBuf,
}

pub(super) enum PackBytes {
    Bytes(Region),
    File(Arc<File>),
}

impl Pack {
    /// Opens a pack. `options` determine whether it may be mapped, and which of its indexes are suitable.
    ///
    /// # Errors
    /// [`IndexError::Refused`](crate::error::IndexError::Refused); I/O errors.
    pub(crate) fn open(path: &Path, options: &IndexOptions) -> Result<Pack> {
        let open = || -> Result<Pack> {
            if url_of(path).is_some() {
                let verified = |bytes| Pack::verified(path, bytes, options);
                let in_store = options.storage.small(path, LARGEST, verified)?;
                return in_store.ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))?;
            }
            let (source, stamp) = PackBytes::open(path, options)?;
            let pack = Pack::decode(path, source, stamp.size, options)?;
            Ok(Pack { saved_ns: stamp.modified_ns, ..pack })
        };
        open().map_err(|e| e.in_file(path))
    }

    /// Decodes the bytes of a pack, and verifies all checksums.
    fn verified(path: &Path, bytes: Region, options: &IndexOptions) -> Result<Pack> {
        let len = bytes.len() as u64;
        let pack = Pack::decode(path, PackBytes::Bytes(bytes), len, options)?;
        for entry in &pack.entries {
            pack.embedded(entry)?.verify()?;
        }
        Ok(pack)
    }

    /// Decodes the header and the tables of a pack.
    fn decode(path: &Path, source: PackBytes, file_len: u64, options: &IndexOptions) -> Result<Pack> {
        let head = source.read(0, file_len.min(HEADER_LEN as u64))?;
        let (header, tables_len) = layout::decode_pack(&head, file_len).map_err(refused)?;
        let tables = source.read(HEADER_LEN as u64, tables_len)?;
        layout::check_pack_tables(&head, &tables).map_err(refused)?;
        Ok(Pack {
            path: path.into(),
            base: base_folder(path),
            header,
            entries: decode_entries(&header, &tables, file_len).map_err(refused)?,
            by_path: OnceLock::new(),
            source,
            saved_ns: None,
            options: options.clone(),
        })
    }

    /// Returns the number of shards.
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns the path of the shard of an entry.
    pub(super) fn shard(&self, entry: &PackEntry) -> PathBuf {
        join(&self.base, &entry.path)
    }

    /// Returns the sidecar of the shard at `path`. `None` if the pack does not have it.
    ///
    /// # Errors
    /// Errors of [`embedded`](Pack::embedded).
    pub(super) fn sidecar_of(&self, path: &Path) -> Result<Option<Sidecar>> {
        let Ok(name) = path.strip_prefix(&self.base) else { return Ok(None) };
        let path_of = |s: &usize| self.entries.get(*s).map(|entry| entry.path.as_os_str());
        let by_path = self.by_path.get_or_init(|| {
            let mut all: Vec<_> = (0..self.len()).collect();
            all.sort_by_key(path_of);
            all
        });
        let at = by_path.partition_point(|s| path_of(s) < Some(name.as_os_str()));
        let entry = by_path.get(at).and_then(|s| self.entries.get(*s)).filter(|entry| entry.path == name);
        entry.map(|entry| self.embedded(entry).map_err(|e| e.in_file(&self.path))).transpose()
    }

    /// Returns the header of the embedded sidecar of shard `s`. Accesses no shard.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfRange`]; [`IndexError::Refused`](crate::error::IndexError::Refused); I/O errors.
    pub(crate) fn header(&self, s: usize) -> Result<IndexHeader> {
        let entry = self.entry(s)?;
        let prefix = self.source.part(entry.offset, entry.len.min(MAX_PREFIX as u64));
        let header = prefix.and_then(|prefix| Ok(decode(&prefix, entry.len).map_err(refused)?.0));
        header.map_err(|e| e.in_file(&self.path))
    }

    pub(super) fn entry(&self, s: usize) -> Result<&PackEntry> {
        let out = || ErrorKind::OutOfRange { what: "shard", i: s as i128, len: self.len() as u64 };
        Ok(self.entries.get(s).ok_or_else(out)?)
    }

    /// Returns the sidecar of an entry.
    ///
    /// # Errors
    /// [`IndexError::Refused`](crate::error::IndexError::Refused); I/O errors.
    pub(super) fn embedded(&self, entry: &PackEntry) -> Result<Sidecar> {
        let mut sidecar = match &self.source {
            PackBytes::File(file) if entry.len > SMALL => {
                let prefix = self.source.read(entry.offset, MAX_PREFIX as u64)?;
                let from = SidecarFile::Pack { file: Arc::clone(file), at: entry.offset };
                Sidecar::lazy(&prefix, entry.len, from).map_err(refused)?
            }
            source => Sidecar::from_bytes(source.part(entry.offset, entry.len)?).map_err(refused)?,
        };
        sidecar.file = Some(self.path.clone().into());
        sidecar.saved_ns = self.saved_ns;
        if sidecar.header.n_records != entry.n_records {
            let found = sidecar.header.n_records;
            let declared = entry.n_records;
            return Err(refused(format!(
                "an embedded sidecar has {found} records, the shard table declares {declared}"
            )));
        }
        Ok(sidecar)
    }
}

impl PackBytes {
    /// Opens the file of a pack. Also returns its size and time.
    fn open(path: &Path, options: &IndexOptions) -> Result<(PackBytes, Stamp)> {
        let file = open_regular(path)?;
        let stamp = Stamp::of(&file.metadata()?)?;
        let len = stamp.size;
        let source = match options.may_map {
            Some(promise) if len > READ_IN => PackBytes::Bytes(Map::open(&file, promise)?.into()),
            _ if len > READ_IN => PackBytes::File(Arc::new(file)),
            _ => {
                let mut bytes = zeroed(len)?;
                read_exact_at(&file, &mut bytes, 0)?;
                PackBytes::Bytes(Region::from(bytes))
            }
        };
        Ok((source, stamp))
    }

    /// Reads `len` bytes. The caller has checked that they are inside the file.
    pub(super) fn read(&self, at: u64, len: u64) -> Result<Region> {
        let part = self.part(at, len)?;
        part.populate(0..part.as_ref().len())?;
        Ok(part)
    }

    /// Returns `len` bytes like [`read`](PackBytes::read), but does not make mapped bytes resident.
    pub(super) fn part(&self, at: u64, len: u64) -> Result<Region> {
        match self {
            PackBytes::Bytes(all) => {
                let section = layout::Section { kind: 0, mandatory: true, param: 0, offset: at, len, crc: 0 };
                slice(all, &section).ok_or_else(|| io::Error::from(io::ErrorKind::UnexpectedEof).into())
            }
            PackBytes::File(file) => {
                let mut bytes = zeroed(len)?;
                read_exact_at(&**file, &mut bytes, at)?;
                Ok(Region::from(bytes))
            }
        }
    }
}

/// Decodes the shard table and the names of a pack.
fn decode_entries(header: &PackHeader, tables: &[u8], file_len: u64) -> Result<Vec<PackEntry>, Refusal> {
    let (table, names) = usize::try_from(header.shard_count)
        .ok()
        .and_then(|shards| tables.split_at_checked(shards.checked_mul(ENTRY_LEN)?))
        .ok_or("the shard table is truncated")?;
    let table = table.as_chunks::<ENTRY_LEN>().0;
    let mut entries = Vec::with_capacity(table.len());
    #[expect(clippy::arithmetic_side_effects, reason = "`decode_pack` found the tables in the file")]
    let mut end = (HEADER_LEN + tables.len()) as u64;
    let mut name_start = 0;
    let mut n_records = 0u64;
    for (s, entry) in table.iter().enumerate() {
        let offset = u64_at(entry, 0);
        let len = u64_at(entry, 8);
        let n = u64_at(entry, 16);
        let name_end = usize::try_from(u64_at(entry, 24)).unwrap_or(usize::MAX);
        let name = names.get(name_start..name_end).ok_or_else(|| format!("name {s} is out of bounds"))?;
        name_start = name_end;
        if layout::align(end) != Some(offset) {
            return Err(format!("sidecar {s} has a wrong offset, {offset}"));
        }
        end = offset.checked_add(len).ok_or("a sidecar's end overflows")?;
        n_records = n_records.checked_add(n).ok_or("the number of records overflows")?;
        check_name(name).map_err(|why| format!("name {s}, \"{}\": {why}", name.escape_ascii()))?;
        let path = path_from_bytes(name).ok_or_else(|| format!("name {s} is not UTF-8"))?;
        entries.push(PackEntry { offset, len, n_records: n, path });
    }
    if name_start != names.len() {
        return Err("the shard table does not cover all names".into());
    }
    if end != file_len {
        return Err(format!("expected the last sidecar to end at byte {file_len}, found byte {end}"));
    }
    let declared = header.n_records;
    if n_records != declared {
        return Err(format!("the shards have {n_records} records, the header declares {declared}"));
    }
    Ok(entries)
}

/// Checks that a name is a relative path that stays inside the base folder.
pub(super) fn check_name(name: &[u8]) -> Result<(), &'static str> {
    if name.contains(&0) {
        return Err("found a NUL byte");
    }
    // Windows treats these as separators and drive letters; other systems as ordinary bytes.
    if name.iter().any(|b| is_foreign_separator(*b)) {
        return Err("found a backslash or a colon");
    }
    if name.split(|&b| b == b'/').any(|part| matches!(part, b"" | b"." | b"..")) {
        return Err("found an absolute path, or a part that is empty, `.` or `..`");
    }
    Ok(())
}

/// Returns the folder to which the names in a pack are relative: the parent of `.tfseek/` for a pack in such
/// a folder, otherwise the pack's own folder.
fn base_folder(pack: &Path) -> PathBuf {
    let own = folder(pack);
    if url_of(own).is_some() {
        return if own.file_name().is_some_and(|name| name == HIDDEN_DIR) { folder(own) } else { own }.into();
    }
    match own.file_name() {
        Some(name) if name == HIDDEN_DIR => folder(own).to_path_buf(),
        // The path is `x.tfrp`, and the current folder is `.tfseek/`.
        None if own == Path::new(".") => match std::env::current_dir() {
            Ok(dir) if dir.ends_with(HIDDEN_DIR) => PathBuf::from(".."),
            _ => own.to_path_buf(),
        },
        _ => own.to_path_buf(),
    }
}
