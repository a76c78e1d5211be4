//! The damage that an index leaves out: a warning per shard, and the damaged bytes in files.

use super::layout::{GAPS, TORN};
use super::lookup::Index;
use super::losses::Losses;
use super::options::IndexOptions;
use super::progress::Work;
use super::store::named_with;
use crate::error::{Error, Result};
use crate::io::{
    Existing, Output, SalvageItem, SalvageReader, check_local, folder, open_regular, read_exact_at,
};
use crate::policy::Tail;
use crate::warning::Warning;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use tfseek_wire::MAX_LEN;

/// File name extension of a file with damaged bytes.
const REST: &str = ".rest";
/// Maximum number of decompressed bytes between two checkpoints that are decompressed and kept as a whole.
pub(crate) const LONG_SEGMENT: u64 = 16 << 20;
/// Bytes per read.
const BUFFER: u64 = 256 << 10;

/// Returns a warning about the bytes that the index of a shard leaves out, and writes them if they are damage
/// and `options` have a folder for them. `None` if nothing is left out. An index that leaves out more than
/// the options allow is refused before.
///
/// # Errors
/// Errors of reading the index; I/O errors.
pub(crate) fn report(
    path: &Path,
    index: &Index,
    options: &IndexOptions,
    work: &Work,
) -> Result<Option<Warning>> {
    let warning = warning(path, index, options)?;
    if let (Some(Warning::DamageSkipped { .. }), Some(dir)) = (&warning, &options.rest) {
        write_rest(path, index, options, &named_with(dir, path, REST), work)?;
    }
    Ok(warning)
}

/// Returns the warning of [`report`].
///
/// # Errors
/// Errors of reading the index.
pub(crate) fn warning(path: &Path, index: &Index, options: &IndexOptions) -> Result<Option<Warning>> {
    let header = index.header();
    if !header.has(GAPS) && !header.has(TORN) {
        return Ok(None);
    }
    // Without other damage a torn tail is what the caller tolerates, or else damage that it skips.
    if !header.has(GAPS) && options.tail == Tail::Tolerate {
        return torn_tail(path, index).map(Some);
    }
    let gaps = index.gaps().collect::<Result<_>>()?;
    Ok(Some(Warning::damage_skipped(path, gaps, index.len())))
}

/// Returns the warning about a torn tail that is tolerated.
///
/// # Errors
/// Errors of reading the index.
fn torn_tail(path: &Path, index: &Index) -> Result<Warning> {
    let path = path.into();
    let records = index.len();
    Ok(match index.compression().format() {
        None => {
            let offset = index.indexed_end();
            let bytes = index.data_size() - offset;
            Warning::TornTail { path, records, offset, bytes, inflated_bytes: 0 }
        }
        Some(_) => {
            let Losses { inflated, bytes, .. } = index.0.losses()?;
            let offset = index.data_size() - bytes;
            Warning::TornTail { path, records, offset, bytes, inflated_bytes: inflated }
        }
    })
}

/// Returns a warning about compressed shards where access to a record may decompress far more than the
/// record. `segments`: the shards, and the longest distance of two checkpoints of compressed ones.
pub(crate) fn long_blocks(segments: impl Iterator<Item = (PathBuf, Option<u64>)>) -> Option<Warning> {
    let mut found = segments.filter_map(|(path, longest)| {
        let bytes = longest.filter(|bytes| *bytes > LONG_SEGMENT)?;
        Some((path, bytes))
    });
    let (path, first) = found.next()?;
    let (shards, bytes) = found.fold((1, first), |(n, most), (_, bytes)| (n + 1, most.max(bytes)));
    Some(Warning::LongBlocks { path, shards, bytes })
}

/// A file of damaged bytes.
enum RestFile {
    New(Output),
    /// An earlier call wrote it. The bytes are compared, and the file is kept.
    Written(File),
}

impl RestFile {
    fn open(target: &Path) -> io::Result<RestFile> {
        // A link is not followed: it may have been put here to be written through.
        match target.symlink_metadata() {
            Ok(found) if found.is_file() => Ok(RestFile::Written(open_regular(target)?)),
            Ok(_) => Err(RestFile::other()),
            Err(_) => Output::open(target, Existing::Keep).map(RestFile::New),
        }
    }

    fn other() -> io::Error {
        let text = "another file has the name of the damaged bytes, and is not replaced";
        io::Error::new(io::ErrorKind::AlreadyExists, text)
    }

    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        let file = match self {
            RestFile::New(output) => return output.write_all(bytes),
            RestFile::Written(file) => file,
        };
        let mut found = [0; 4096];
        for piece in bytes.chunks(found.len()) {
            let Some(found) = found.get_mut(..piece.len()) else { continue };
            match file.read_exact(found) {
                Ok(()) if found == piece => {}
                Err(e) if e.kind() != io::ErrorKind::UnexpectedEof => return Err(e),
                _ => return Err(RestFile::other()),
            }
        }
        Ok(())
    }

    fn end(self) -> io::Result<()> {
        match self {
            RestFile::New(output) => output.commit(),
            RestFile::Written(mut file) => match file.read(&mut [0])? {
                0 => Ok(()),
                _ => Err(RestFile::other()),
            },
        }
    }
}

/// Writes the damaged bytes of a shard to `target`.
fn write_rest(path: &Path, index: &Index, options: &IndexOptions, target: &Path, work: &Work) -> Result<()> {
    let opened = options.storage.open(path)?;
    let file = opened.source();
    index.check_file(file, true)?;
    let to_target = |e: io::Error| Error::from(e).in_file(target);
    check_local(target)?;
    fs::create_dir_all(folder(target)).map_err(to_target)?;
    let mut out = RestFile::open(target).map_err(to_target)?;
    let mut put = |bytes: &[u8]| out.put(bytes).map_err(to_target);
    match index.compression().format() {
        None => {
            let mut buf = Vec::new();
            for gap in index.gaps() {
                let mut gap = gap?;
                while gap.bytes() > 0 {
                    work.report(0)?;
                    let len = gap.bytes().min(BUFFER);
                    buf.resize(len as usize, 0);
                    read_exact_at(file, &mut buf, gap.start)?;
                    put(&buf)?;
                    gap.start += len;
                }
            }
        }
        // The index does not contain the length of the stream, so the file is searched again.
        Some(format) => {
            let size = index.data_size();
            let mut reader = SalvageReader::inflated(file, size, format, u64::MAX, MAX_LEN);
            while let Some(item) = reader.next()? {
                if let SalvageItem::Damage { bytes, .. } = item {
                    put(bytes)?;
                }
                work.report(0)?;
            }
        }
    }
    out.end().map_err(to_target)
}
