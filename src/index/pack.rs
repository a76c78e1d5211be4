//! Packs: all sidecars of a dataset in one file, so that ten thousand shards open with one read.

use super::file::SidecarFile;
use super::layout::{self, ALIGN, ENTRY_LEN, HEADER_LEN, MAX_PREFIX, PackHeader, TORN, refused};
use super::left_out::long_blocks;
use super::lookup::Index;
use super::open::{Indexes, open_all, torn_tail};
use super::options::IndexOptions;
use super::packed::{Pack, PackBytes, PackEntry, check_name};
use super::progress::Work;
use super::sidecar::{self, Sidecar};
use super::store::{self, HIDDEN_DIR, NO_CHECKPOINTS, Save};
use crate::error::{Error, ErrorKind, IndexError, OptionsError, Result};
use crate::io::{AtomicFile, Compression, Source, folder, join, url_of};
use crate::warning::Warning;
use std::fmt;
use std::io::{self, Write};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

impl Pack {
    /// Returns the path and the number of records of each shard, in the order of the dataset.
    pub(crate) fn shards(&self) -> impl ExactSizeIterator<Item = (PathBuf, u64)> + '_ {
        self.entries.iter().map(|e| (self.shard(e), e.n_records))
    }

    /// Returns the compression of shard `s`, and the number of bytes of its record stream if it is
    /// compressed. Accesses no shard. An embedded sidecar that cannot be read counts as the sidecar of a
    /// plain shard; [`index`](Pack::index) returns its error.
    pub(crate) fn stream(&self, s: usize) -> (Compression, u64) {
        // A sidecar with checkpoints is longer than the one of a plain shard with narrow offsets. Nearly all
        // sidecars have that length, so opening a large pack reads few of them.
        let plain = |entry: &PackEntry| sidecar::plain_len(entry.n_records) == Some(entry.len);
        if self.entries.get(s).is_none_or(plain) {
            return (Compression::None, 0);
        }
        self.header(s).map_or((Compression::None, 0), |header| (header.compression(), header.stream_end))
    }

    /// Returns the longest distance of two checkpoints of shard `s` in decompressed bytes. Accesses no shard,
    /// and reads the checkpoints without their windows. `None` for a shard that is not compressed, and for an
    /// embedded sidecar that cannot be read; [`index`](Pack::index) returns its error.
    pub(crate) fn longest_segment(&self, s: usize) -> Option<u64> {
        if self.stream(s).0 == Compression::None {
            return None;
        }
        let entry = self.entries.get(s)?;
        match &self.source {
            PackBytes::File(file) => {
                let prefix = self.source.read(entry.offset, entry.len.min(MAX_PREFIX as u64)).ok()?;
                let from = SidecarFile::Pack { file: Arc::clone(file), at: entry.offset };
                Sidecar::longest_segment_in(&prefix, entry.len, &from)
            }
            source => Sidecar::from_bytes(source.part(entry.offset, entry.len).ok()?).ok()?.longest_segment(),
        }
    }

    /// Returns the index of shard `s`, after comparing it with `file`, the descriptor from which the shard
    /// will be read. `compression` comes from [`stream`](Pack::stream).
    ///
    /// # Errors
    /// [`ErrorKind::OutOfRange`]; [`IndexError::Refused`] for the embedded sidecar; [`IndexError::StalePack`]
    /// if the shard has changed; I/O errors.
    pub(crate) fn index(&self, s: usize, compression: Compression, file: &dyn Source) -> Result<Index> {
        let entry = self.entry(s)?;
        let sidecar = self.embedded(entry).map_err(|e| e.in_file(&self.path))?;
        let path = self.shard(entry);
        let is_other = sidecar.header.compression() != compression;
        let other = is_other.then_some("the index belongs to a shard with another compression");
        if let Some(why) = other.or_else(|| store::mismatch(&sidecar.header, &self.options)) {
            return Err(self.explain(IndexError::Stale { reason: why.into() }.into()).in_file(&path));
        }
        if sidecar.header.has(TORN) && !self.options.allows_torn() {
            return Err(torn_tail(&sidecar, &path, &self.options)?);
        }
        if !sidecar.allows_access() {
            return Err(refused(NO_CHECKPOINTS.into()).in_file(&self.path));
        }
        let index = Index::from(sidecar);
        index.check_file(file, false).map_err(|e| self.explain(e).in_file(&path))?;
        Ok(index)
    }

    /// Turns a stale index into a stale pack.
    fn explain(&self, e: Error) -> Error {
        let reason = match e.kind() {
            ErrorKind::Index(IndexError::Stale { reason }) => reason.clone(),
            _ => return e,
        };
        IndexError::StalePack { pack: self.path.as_path().into(), reason }.into()
    }
}

impl fmt::Debug for Pack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let records = self.header.n_records;
        write!(f, "Pack({}, {} shards, {records} records)", self.path.display(), self.len())
    }
}

/// Writes a pack like the command `tfseek index --pack NAME PATHS`. Indexes the shards, without the limit on
/// bytes to scan, and writes `.tfseek/NAME.tfrp` in their deepest common folder. Sidecars are written of
/// objects only, to the user's cache. Returns the path of the pack and the indexes.
///
/// # Errors
/// Errors of [`open_shards`](super::open_shards); a name that is not a file name; shards without a common
/// folder; a shard that changed while it was scanned; a failed write of the pack.
pub fn write_pack(name: &str, paths: &[PathBuf], options: &IndexOptions) -> Result<(PathBuf, Indexes)> {
    let checked = if name.contains(['/', '\\']) {
        Err("found a slash or a backslash")
    } else {
        check_name(name.as_bytes())
    };
    checked.map_err(|reason| OptionsError::Name { what: "pack", name: name.into(), reason })?;
    let options = &options.budgeted();
    let paths = options.storage.names(paths)?;
    let (base, names) = common_folder(&paths)?;
    let shards: Vec<_> = paths.iter().map(PathBuf::as_path).collect();
    let work = Work::new(options.progress.as_ref());
    // A scan of objects may take long, and the pack may not be written.
    let (options, save) = if paths.iter().any(|path| url_of(path).is_some()) {
        (&options.clone().auto_limit(u64::MAX), Save::BestEffort)
    } else {
        (options, Save::Never)
    };
    let mut opened = work.end(open_all(&shards, options, save, &work))?;
    opened
        .warnings
        .extend(long_blocks(paths.iter().cloned().zip(opened.indexes.iter().map(Index::longest_segment))));
    let changed = opened.warnings.iter().find(|warning| matches!(warning, Warning::ShardChanged { .. }));
    if let Some(path) = changed.and_then(Warning::path) {
        let reason = "it changed while it was scanned".into();
        return Err(Error::from(IndexError::Stale { reason }).in_file(path));
    }
    let target = join(&join(&base, HIDDEN_DIR), format!("{name}.tfrp"));
    let bytes = |w: &mut dyn Write| write(w, &names, &opened.indexes);
    let written = store::write(&target, options, bytes, AtomicFile::commit);
    written.map_err(|e| e.in_file(&target))?;
    Ok((target, opened))
}

#[expect(clippy::indexing_slicing, reason = "`to` is `from` rounded up to a multiple of ALIGN")]
fn write(file: &mut dyn Write, names: &[Vec<u8>], indexes: &[Index]) -> Result<()> {
    let names_len: usize = names.iter().map(Vec::len).sum();
    let mut end = (HEADER_LEN + ENTRY_LEN * names.len() + names_len) as u64;
    let mut tables = Vec::new();
    let mut name_end = 0;
    let mut n_records = 0;
    let mut offsets = Vec::new();
    for (name, index) in names.iter().zip(indexes) {
        let offset = end.next_multiple_of(ALIGN);
        let len = index.0.file_len()?;
        offsets.push((end, offset));
        end = offset + len;
        name_end += name.len() as u64;
        n_records += index.len();
        for field in [offset, len, index.len(), name_end] {
            tables.extend(field.to_le_bytes());
        }
    }
    names.iter().for_each(|name| tables.extend(name));
    let header = PackHeader {
        n_records,
        shard_count: names.len() as u64,
        names_len: names_len as u64,
        fingerprint: super::identity::dataset_hash(indexes.iter().map(|i| &i.0.header)),
    };
    let mut w = io::BufWriter::new(file);
    w.write_all(&layout::encode_pack(&header, &tables, end))?;
    w.write_all(&tables)?;
    for (index, (from, to)) in indexes.iter().zip(offsets) {
        w.write_all(&[0; ALIGN as usize][..(to - from) as usize])?;
        index.write_to(&mut w)?;
    }
    w.flush()?;
    Ok(())
}

/// Returns the deepest folder that contains all paths, and the paths relative to it, with `/` as the
/// separator.
fn common_folder(paths: &[PathBuf]) -> Result<(PathBuf, Vec<Vec<u8>>)> {
    let absolute = paths.iter().map(|path| absolute_path(path).map_err(|e| Error::from(e).in_file(path)));
    let absolute: Vec<PathBuf> = absolute.collect::<Result<_>>()?;
    let Some(first) = absolute.first() else {
        return Err(OptionsError::NoShards.into());
    };
    let mut base = folder(first).to_path_buf();
    for path in &absolute {
        while !path.starts_with(&base) {
            let above = folder(&base).to_path_buf();
            let leaves_store = url_of(&above).is_some_and(|url| url.ends_with("://"));
            if leaves_store || above == base || above.as_os_str().is_empty() || above == Path::new(".") {
                return Err(OptionsError::NoCommonFolder.into());
            }
            base = above;
        }
    }
    let name = |path: &PathBuf| -> Result<Vec<u8>> {
        let rest = path.strip_prefix(&base).unwrap_or(path);
        let parts: Vec<&[u8]> = rest.components().map(|c| c.as_os_str().as_encoded_bytes()).collect();
        let name = parts.join(&b'/');
        check_name(&name).map_err(|reason| {
            let name = String::from_utf8_lossy(&name).into();
            Error::from(OptionsError::Name { what: "shard of a pack", name, reason }).in_file(path)
        })?;
        Ok(name)
    };
    let names = absolute.iter().map(name).collect::<Result<_>>()?;
    Ok((base, names))
}

/// Returns an absolute path without `..`. Links are followed only if the path contains `..`.
fn absolute_path(path: &Path) -> io::Result<PathBuf> {
    if url_of(path).is_some() {
        return Ok(path.into());
    }
    // On Windows it has no `..`, because the system itself resolves them by name.
    let absolute = std::path::absolute(path)?;
    if !absolute.components().any(|c| c == Component::ParentDir) {
        return Ok(absolute);
    }
    let folder = folder(path).canonicalize()?;
    match path.file_name() {
        Some(name) => Ok(folder.join(name)),
        None => path.canonicalize(),
    }
}
