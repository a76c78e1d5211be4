//! The number of rows of the batches of a dataset.

use tfseek::Dataset;

/// Largest number of rows in a batch.
pub(super) const MAX_ROWS: usize = 8192;
/// Number of rows of a batch where no records are read.
pub(super) const ROWS_OF_COLUMNS: usize = 64 << 10;
/// Bytes of records that a batch has on average.
pub(super) const BATCH_BYTES: u64 = 32 << 20;
/// Bytes of records above which batches are made smaller.
const LARGE_BATCH: u64 = 2 * BATCH_BYTES;
/// Number of rows below which batches are not made smaller for the sake of a few large records.
const FEW_ROWS: usize = 64;
/// Number of rows where the sizes of shards are not known.
const ROWS_OF_UNKNOWN: usize = 1024;
/// Limits of the search for large batches. Beyond them the search takes longer than it is worth.
const MAX_SHARDS: usize = 1024;
const MAX_BATCHES: u64 = 1 << 20;

/// Returns the number of rows of a batch: as many as have about 32 MiB of records. If large records stand
/// together, there are fewer.
pub(super) fn batch_rows(dataset: &Dataset) -> usize {
    let Some(bytes) = dataset.known_bytes() else { return ROWS_OF_UNKNOWN };
    let fitting = (u128::from(BATCH_BYTES) * u128::from(dataset.len())).checked_div(bytes.into());
    let mut rows = fitting.map_or(MAX_ROWS, |rows| rows.clamp(1, MAX_ROWS as u128) as usize);
    while rows > FEW_ROWS && largest_batch(dataset, rows).is_some_and(|bytes| bytes > LARGE_BATCH) {
        rows = (rows / 2).max(FEW_ROWS);
    }
    rows
}

/// Returns the number of records to read together in any order: few if they are large, so that a batch is not
/// much larger than it should be.
pub(super) fn together(dataset: &Dataset) -> usize {
    (batch_rows(dataset) / 8).max(1)
}

/// Returns the bytes of the largest batch of this number of rows. `None` if that takes long to find, or if a
/// record has no location, or one before earlier records, which its reader reports.
fn largest_batch(dataset: &Dataset, rows: usize) -> Option<u64> {
    let shards = dataset.shards();
    let step = u64::try_from(rows).ok().filter(|&rows| rows > 0)?;
    if shards.len() > MAX_SHARDS || dataset.len() / step > MAX_BATCHES {
        return None;
    }
    let mut largest = 0u64;
    let mut batch = 0u64;
    let mut first = 0u64;
    for (number, shard) in shards.enumerate().filter(|(_, shard)| shard.len > 0) {
        let index = dataset.index(number).ok()?;
        let end = shard.start.checked_add(shard.len)?;
        let mut from = index.locate(shard.first).ok()?.offset;
        // The borders of batches in this shard.
        let mut border = first.checked_add(step)?;
        while border < end {
            let to = index.locate(shard.first.checked_add(border.checked_sub(shard.start)?)?).ok()?.offset;
            // Distant offsets of an index file need not ascend.
            largest = largest.max(batch.saturating_add(to.checked_sub(from)?));
            (batch, from, first) = (0, to, border);
            border = border.checked_add(step)?;
        }
        let last = index.locate(shard.first.checked_add(shard.len.checked_sub(1)?)?).ok()?;
        batch = batch.saturating_add((last.offset + last.payload_len).checked_sub(from)?);
    }
    Some(largest.max(batch))
}
