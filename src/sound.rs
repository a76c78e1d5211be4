//! The sound records of a file in file order, and a warning about the bytes between them.

use crate::error::{At, Error, ErrorKind, Result};
use crate::frame::OVERHEAD;
use crate::io::{SalvageItem, SalvageReader};
use crate::policy::Tail;
use crate::warning::{Gap, Warning};
use std::path::{Path, PathBuf};

/// A reader of the sound records of a file. They are the records of an index with
/// [`Damage::Skip`](crate::Damage::Skip), and have the same numbers.
pub(crate) struct SoundRecords {
    reader: SalvageReader<'static>,
    /// Number of sound records so far.
    pub(crate) records: u64,
    /// Offset in the record stream after the last sound record.
    pub(crate) end: u64,
    gaps: Vec<Gap>,
    /// The damaged bytes of the record stream after the last sound record.
    open: Option<Gap>,
    /// Bytes of a compressed file after the last sound record that cannot be inflated.
    not_inflated: Vec<Gap>,
    /// The error at the start of the open gap.
    error: Option<Error>,
    path: PathBuf,
    /// Receives the warning, also if the file is not read to its end.
    report: Option<fn(&Warning)>,
}

/// The place of a sound record.
pub(crate) struct SoundRecord {
    /// Number among the sound records.
    pub(crate) record: u64,
    /// Offset in the record stream.
    pub(crate) offset: u64,
    /// Bytes of the payload.
    pub(crate) len: usize,
}

impl SoundRecords {
    /// Creates a reader. `report` receives the [warning](SoundRecords::warning), or one about the bytes
    /// between the records that were read if the file is not read to its end.
    pub(crate) fn new(
        reader: SalvageReader<'static>,
        path: &Path,
        report: Option<fn(&Warning)>,
    ) -> SoundRecords {
        let gaps = Vec::new();
        let not_inflated = Vec::new();
        let path = path.to_path_buf();
        SoundRecords { reader, records: 0, end: 0, gaps, open: None, not_inflated, error: None, path, report }
    }

    /// Returns the place of the next record, and `None` at the end. The record is in the memory of the
    /// [reader](SoundRecords::payload).
    ///
    /// # Errors
    /// I/O errors; errors of inflating a file that cannot be read again.
    pub(crate) fn next(&mut self) -> Result<Option<SoundRecord>> {
        let records = self.records;
        loop {
            match self.reader.next()? {
                None => return Ok(None),
                Some(SalvageItem::Record { offset, bytes, .. }) => {
                    self.end = offset + bytes.len() as u64;
                    let len = bytes.len() - OVERHEAD;
                    self.close_gap();
                    self.records = records + 1;
                    return Ok(Some(SoundRecord { record: records, offset, len }));
                }
                Some(SalvageItem::Damage { offset, bytes, error, .. }) => {
                    let end = offset + bytes.len() as u64;
                    let gap = Gap { start: offset, end, records, compressed: false };
                    self.open.get_or_insert(gap).end = end;
                    self.error = self.error.take().or(error);
                }
                Some(SalvageItem::NotInflated { offset, record, error, file }) => {
                    self.not_inflated.push(Gap {
                        start: file.start,
                        end: file.end,
                        records,
                        compressed: true,
                    });
                    let at = At { path: None, record, offset: Some(offset) };
                    self.error = self.error.take().or_else(|| Some(error.at(at)));
                }
            }
        }
    }

    /// Returns the payload of the record that [`next`](SoundRecords::next) has just returned.
    pub(crate) fn payload(&self, record: &SoundRecord) -> &[u8] {
        let bytes = self.reader.last(record.len + OVERHEAD);
        bytes.get(crate::frame::HEADER_LEN..).and_then(|rest| rest.get(..record.len)).unwrap_or_default()
    }

    fn close_gap(&mut self) {
        self.gaps.extend(self.open.take());
        self.gaps.append(&mut self.not_inflated);
        self.error = None;
    }

    /// Returns the number of bytes after the last record, if they are a torn tail of a plain stream and
    /// nothing else was left out.
    fn torn_tail(&self) -> Option<u64> {
        let left = self.open.as_ref()?.bytes();
        let is_all = self.gaps.is_empty() && self.not_inflated.is_empty();
        match self.error.as_ref()?.kind() {
            &ErrorKind::Truncated { have, .. } if is_all && have == left => Some(left),
            _ => None,
        }
    }

    /// Returns the warning about everything that was left out, at the end of the file. `None` for a sound
    /// file.
    ///
    /// # Errors
    /// The first damage, if there is no sound record and more than a torn tail.
    pub(crate) fn warning(&mut self, tail: Tail) -> Result<Option<Warning>> {
        let warning = self.found(tail)?;
        if let (Some(report), Some(warning)) = (self.report, &warning) {
            report(warning);
        }
        Ok(warning)
    }

    fn found(&mut self, tail: Tail) -> Result<Option<Warning>> {
        let records = self.records;
        let torn = self.torn_tail();
        if let (Some(bytes), Tail::Tolerate) = (torn, tail) {
            let path = self.path.clone();
            let offset = self.end;
            return Ok(Some(Warning::TornTail { path, records, offset, bytes, inflated_bytes: 0 }));
        }
        if records == 0
            && torn.is_none()
            && let Some(e) = self.error.take()
        {
            return Err(e);
        }
        self.close_gap();
        let gaps = std::mem::take(&mut self.gaps);
        Ok((!gaps.is_empty()).then(|| Warning::damage_skipped(&self.path, gaps, records)))
    }
}

impl Drop for SoundRecords {
    fn drop(&mut self) {
        let gaps = std::mem::take(&mut self.gaps);
        if let (Some(report), false) = (self.report, gaps.is_empty()) {
            report(&Warning::damage_skipped(&self.path, gaps, self.records));
        }
    }
}
