//! The damage that an index leaves out: a warning per shard, and the damaged bytes in files.

#![cfg_attr(not(test), deny(clippy::indexing_slicing, clippy::string_slice, clippy::arithmetic_side_effects))]

use super::layout::{GAPS, TORN};
use super::lookup::Index;
use super::options::IndexOptions;
use super::progress::Work;
use super::store::named_with;
use crate::error::{Error, Result};
use crate::io::{Compression, Output, ReadAt, SalvagePart, SalvageReader, folder, open_regular};
use crate::policy::Damage;
use crate::warning::Warning;
use crate::wire::MAX_LEN;
use std::fs;
use std::io::{self, Write};
use std::path::Path;

/// File name extension of a file with damaged bytes.
const REST: &str = ".rest";
/// Bytes per read.
const BUFFER: u64 = 256 << 10;

/// Returns a warning about the damage that the index of a shard leaves out, and writes the damaged bytes if `options` have a folder for
/// them. `None` if there is no damage, or if damage is an error.
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
    if let (Some(_), Some(dir)) = (&warning, &options.rest) {
        write_rest(path, index, &named_with(dir, path, REST), work)?;
    }
    Ok(warning)
}

/// Returns the warning of [`report`].
///
/// # Errors
/// Errors of reading the index.
pub(crate) fn warning(path: &Path, index: &Index, options: &IndexOptions) -> Result<Option<Warning>> {
    let header = index.header();
    if options.damage == Damage::Raise || !(header.has(GAPS) || header.has(TORN)) {
        return Ok(None);
    }
    let (mut gaps, mut bytes, mut first) = (0u64, 0u64, None);
    for gap in index.gaps_after() {
        let (gap, before) = gap?;
        gaps = gaps.saturating_add(1);
        bytes = bytes.saturating_add(gap.end.saturating_sub(gap.start));
        first.get_or_insert((gap.start, before));
    }
    // Damage at the end of a compressed shard has an unknown length.
    let (offset, records) = first.unwrap_or((index.stream_end(), index.len()));
    Ok(Some(Warning::DamageSkipped { path: path.into(), gaps, bytes, offset, records }))
}

/// Writes the damaged bytes of a shard to `target`.
fn write_rest(path: &Path, index: &Index, target: &Path, work: &Work) -> Result<()> {
    let file = open_regular(path)?;
    index.check_file(&file, true)?;
    let to_target = |e: io::Error| Error::from(e).in_file(target);
    fs::create_dir_all(folder(target)).map_err(to_target)?;
    let mut out = Output::create(target).map_err(to_target)?;
    let mut put = |bytes: &[u8]| out.write_all(bytes).map_err(to_target);
    match index.compression() {
        Compression::None => {
            let mut buf = Vec::new();
            for gap in index.gaps() {
                let mut gap = gap?;
                while !gap.is_empty() {
                    work.report(0)?;
                    let len = gap.end.saturating_sub(gap.start).min(BUFFER);
                    buf.resize(usize::try_from(len).unwrap_or_default(), 0);
                    file.read_exact_at(&mut buf, gap.start)?;
                    put(&buf)?;
                    gap.start = gap.start.saturating_add(len);
                }
            }
        }
        // The index does not contain the length of the stream, so the file is searched again.
        compression => {
            let size = index.data_size();
            let mut reader = SalvageReader::inflated(&file, size, compression, u64::MAX, MAX_LEN);
            while let Some(part) = reader.next()? {
                if let SalvagePart::Damage { bytes, .. } = part {
                    put(bytes)?;
                }
                work.report(0)?;
            }
        }
    }
    out.commit().map_err(to_target)
}
