//! The scan of a damaged shard: its sound records, which need not be adjacent.

use super::losses::{Losses, NotInflatedRange};
use super::progress::{REPORT, Work};
use super::scan::{ScanOutcome, ScanStart};
use super::sidecar::Sidecar;
use super::table::{Table, TableBuilder};
use crate::error::{At, Error, ErrorKind, Result};
use crate::frame::{OVERHEAD, Salvage, Torn};
use crate::io::inflate::Checkpoints;
use crate::io::{CompressedFormat, SalvageItem, SalvageReader, Source};
use tfseek_wire::MAX_LEN;

/// The result of a scan that may leave out bytes.
pub(super) struct LossyScan {
    pub(super) outcome: ScanOutcome,
    /// The payload lengths, if there is damage other than a torn tail.
    pub(super) lengths: Option<Table>,
    /// What is left out of a compressed shard besides the gaps between records.
    pub(super) losses: Losses,
}

impl From<ScanOutcome> for LossyScan {
    fn from(outcome: ScanOutcome) -> LossyScan {
        LossyScan { outcome, lengths: None, losses: Losses::default() }
    }
}

/// Scans the first `size` bytes of a plain file. All payloads are verified. `old` has the records before the
/// start.
///
/// # Errors
/// The first damage, if there is no sound record and more than a torn tail; I/O errors; errors of `work`.
pub(super) fn salvage_file(
    file: &dyn Source,
    size: u64,
    start: ScanStart,
    old: Option<&Sidecar>,
    work: &Work,
) -> Result<LossyScan> {
    let mut lengths = TableBuilder::lengths();
    if let Some(old) = old {
        for i in 0..start.offsets.len() {
            lengths.push(old.span(i)?.payload_len);
        }
    }
    let parser = Salvage::resuming(MAX_LEN, start.at, Some(start.offsets.len()));
    salvage(&mut SalvageReader::plain(file, size, parser), start, lengths, work)
}

/// Scans the first `size` bytes of a compressed file as [`salvage_file`] does. Also returns the checkpoints.
///
/// # Errors
/// Errors of [`salvage_file`].
pub(super) fn salvage_inflated(
    file: &dyn Source,
    size: u64,
    format: CompressedFormat,
    spacing: u64,
    work: &Work,
) -> Result<(LossyScan, Checkpoints)> {
    let mut reader = SalvageReader::inflated(file, size, format, spacing, MAX_LEN);
    let scan = salvage(&mut reader, ScanStart::default(), TableBuilder::lengths(), work)?;
    Ok((scan, reader.into_checkpoints().unwrap_or_default()))
}

fn salvage(
    reader: &mut SalvageReader<'_>,
    start: ScanStart,
    mut lengths: TableBuilder,
    work: &Work,
) -> Result<LossyScan> {
    let ScanStart { mut offsets, at } = start;
    let mut end = at;
    let mut gaps = false;
    let mut reported = at;
    // The error at the start of the damage at the end, and the number of its bytes.
    let mut tail = None;
    let mut left = 0;
    let mut losses = Losses::default();
    while let Some(item) = reader.next()? {
        match item {
            SalvageItem::Record { offset, bytes, .. } => {
                gaps |= offset != end;
                offsets.push(offset);
                lengths.push((bytes.len() - OVERHEAD) as u64);
                end = offset + bytes.len() as u64;
                (tail, left) = (None, 0);
            }
            SalvageItem::Damage { bytes, error, .. } => {
                left += bytes.len() as u64;
                tail = tail.or(error);
            }
            SalvageItem::NotInflated { offset, record, error, file } => {
                gaps = true;
                let range = NotInflatedRange { records: offsets.len(), start: file.start, end: file.end };
                losses.ranges.push(range);
                tail = tail.or(Some(error.at(At { path: None, record, offset: Some(offset) })));
            }
        }
        let read = reader.file_offset();
        // A search in a compressed file goes back.
        if read >= reported + REPORT as u64 {
            work.report(read - reported)?;
            reported = read;
        }
    }
    work.report(reader.file_offset().saturating_sub(reported))?;
    let torn = match tail.as_ref().map(Error::kind) {
        // Nothing but the end of the last record is missing.
        Some(&ErrorKind::Truncated { need, .. }) if !gaps => Some(Torn { need, have: left }),
        _ => None,
    };
    let damaged = tail.is_some();
    if let Some(e) = tail.filter(|_| torn.is_none()) {
        if offsets.len() == 0 {
            return Err(e);
        }
        gaps = true;
    }
    // The end of a compressed stream is known to this process only.
    let torn = torn.or(damaged.then_some(Torn { need: left + 1, have: left }));
    losses.inflated = left;
    let lengths = gaps.then(|| lengths.finish()).transpose()?;
    Ok(LossyScan { outcome: ScanOutcome { offsets, end, torn }, lengths, losses })
}
