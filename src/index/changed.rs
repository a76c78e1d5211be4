//! A shard whose head or tail differs from the indexed bytes: is it damaged, or another one?

use super::identity::{OTHER_CONTENT, SHORTER, fingerprints_beside, stale};
use super::layout::{GAPS, IndexHeader};
use super::progress::Work;
use super::scan::{FileReader, SPARSE, ScanStart, scan_file, scan_stream};
use crate::error::{Error, Result};
use crate::io::inflate::CheckpointScan;
use crate::io::{Source, Stamp};
use crate::policy::Verify;

/// Checks that the indexed bytes are still at the start of a shard, which may have grown. Always compares the
/// fingerprints.
///
/// # Errors
/// [`IndexError::Stale`](crate::error::IndexError::Stale), or the damage of the shard; I/O errors.
pub(crate) fn check_start(known: &IndexHeader, file: &dyn Source) -> Result<()> {
    let now = file.stamp()?;
    if now.size < known.indexed_end {
        return Err(stale(known, &now, SHORTER));
    }
    if fingerprints_beside(file, known)? != (known.fp_head, known.fp_tail) {
        return Err(changed(known, &now, file, OTHER_CONTENT));
    }
    Ok(())
}

/// Returns the error of a shard that has the indexed size and another head or tail.
///
/// It is the first damage, with record and offset, if all indexed bytes are read and some are damaged. A
/// shard of sound records was replaced: it is stale. So bits that flip are called damage wherever they are,
/// and a rebuilt index is not recommended for them.
#[cold]
pub(super) fn changed(known: &IndexHeader, now: &Stamp, file: &dyn Source, why: &str) -> Error {
    // With gaps the first damage is one that the caller accepted.
    let may_be_damaged = now.size == known.data_size && !known.has(GAPS);
    match may_be_damaged.then(|| verify(known, file)) {
        Some(Err(e)) if e.is_data() => e,
        _ => stale(known, now, why),
    }
}

/// Verifies all indexed records of a shard, without its index.
fn verify(known: &IndexHeader, file: &dyn Source) -> Result<()> {
    let work = Work::new(None);
    let start = ScanStart::default();
    match known.compression().format() {
        None => scan_file(file, known.indexed_end, start, Verify::Payload, SPARSE, &work).map(drop),
        Some(format) => {
            let bytes = FileReader::new(file, 0..known.data_size, &work);
            let mut inflated = CheckpointScan::new(bytes, format, u64::MAX).tolerant(true);
            scan_stream(&mut inflated, start, Verify::Payload, false, &work).map(drop)
        }
    }
}
