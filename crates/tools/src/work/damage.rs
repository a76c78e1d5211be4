//! Damaged ranges of files, and the sound records around them.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use tfseek::error::{CompressionError, Remedy};
use tfseek::io::{SalvageItem, SalvageReader};
use tfseek::{Error, ErrorKind, Result, Warning};

/// The default maximum payload length in bytes, the longest message that protobuf parses.
pub const MAX_RECORD: u64 = (1 << 31) - 1;

/// The reason of a [`Gap`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum GapReason {
    /// The checksum of a length differs.
    LengthCrc,
    /// The checksum of a payload differs.
    PayloadCrc,
    /// The file ends inside a record.
    Truncated,
    /// A record is longer than the limit.
    TooLarge,
    /// The bytes of the file cannot be inflated.
    Inflate,
}

impl GapReason {
    /// Returns `length crc32c`, `payload crc32c`, `truncated`, `too large` or `inflate`.
    pub const fn name(self) -> &'static str {
        match self {
            GapReason::LengthCrc => "length crc32c",
            GapReason::PayloadCrc => "payload crc32c",
            GapReason::Truncated => "truncated",
            GapReason::TooLarge => "too large",
            GapReason::Inflate => "inflate",
        }
    }

    fn of(e: &Error) -> GapReason {
        match e.kind() {
            ErrorKind::CorruptData { .. } => GapReason::PayloadCrc,
            ErrorKind::Truncated { .. } => GapReason::Truncated,
            ErrorKind::RecordTooLarge { .. } => GapReason::TooLarge,
            _ => GapReason::LengthCrc,
        }
    }
}

/// A range of bytes without a sound record.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Gap {
    /// Offset of the first byte in the record stream: in the file, or in the bytes that could be inflated of
    /// a compressed file.
    pub offset: u64,
    /// Number of bytes in the record stream. 0 if only bytes that cannot be inflated are missing.
    pub len: u64,
    /// The reason at the first byte.
    pub reason: GapReason,
    /// Ordinal of the first damaged record. `None` if an unknown number of records before it is damaged.
    pub record: Option<u64>,
    /// Ordinal of the first sound record after the gap. `None` if there is none, or its ordinal is not known.
    pub next_record: Option<u64>,
    /// The bytes of a compressed file that could not be inflated. The first is where inflation ended, at the
    /// damage or after it.
    pub file: Option<std::ops::Range<u64>>,
}

/// The result of [`salvage`](crate::salvage::salvage).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SalvageReport {
    /// Number of sound records.
    pub records: u64,
    /// Bytes of these records, with their framing.
    pub bytes: u64,
    /// The damaged ranges, in order.
    pub gaps: Vec<Gap>,
}

/// Returns true for an error of damaged bytes: there may be sound records before them and after them.
/// Malformed records, failed system calls and another compression than the caller specified are other errors.
pub fn is_damage(e: &Error) -> bool {
    use ErrorKind::{Compression, CorruptData, CorruptLength, NotTfRecord, Truncated};
    match e.kind() {
        Compression(e) => !matches!(e, CompressionError::Mismatch { .. }),
        NotTfRecord { remedy: Remedy::LeaveOut, .. } => true,
        kind => matches!(kind, CorruptData { .. } | CorruptLength { .. } | Truncated { .. }),
    }
}

/// Returns the number of damaged ranges that warnings name, and of the bytes in them.
pub fn left_out(warnings: &[Warning]) -> (u64, u64) {
    warnings.iter().fold((0, 0), |(ranges, sum), warning| match warning {
        Warning::DamageSkipped { gaps, bytes, .. } => {
            (ranges + gaps.len() as u64, sum.saturating_add(*bytes))
        }
        _ => (ranges, sum),
    })
}

/// Finds the sound records and the damaged ranges of an open file, whose errors have the path `name`. It is
/// read at offsets. Both checksums of a sound record are correct. [`SalvageReader`] defines the search after
/// damage, also in compressed files.
///
/// # Errors
/// I/O errors.
pub(crate) fn scan(file: &File, name: &Path, max_record: u64) -> Result<SalvageReport> {
    let mut out = io::sink();
    let mut rest = io::sink();
    let sinks = [NamedSink(&mut out, name), NamedSink(&mut rest, name)];
    Ok(copy(file, name, sinks, max_record, &mut |_| ())?.0)
}

/// Copies the sound records of a file to the first sink, and the bytes between them to the second. Returns
/// the report, and the error at the start of the first gap.
///
/// # Errors
/// I/O errors.
pub(crate) fn copy(
    file: &File,
    name: &Path,
    [mut out, mut rest]: [NamedSink<'_>; 2],
    max_record: u64,
    progress: &mut dyn FnMut(u64),
) -> Result<(SalvageReport, Option<Error>)> {
    let in_file = |e: Error| e.in_file(name);
    let mut reader = SalvageReader::new(file, max_record).map_err(in_file)?;
    let mut found = FoundRecords::default();
    let mut read = 0;
    while let Some(item) = reader.next().map_err(in_file)? {
        match item {
            SalvageItem::Record { record, bytes, .. } => {
                out.write(bytes)?;
                found.report.records += 1;
                found.report.bytes += bytes.len() as u64;
                if std::mem::take(&mut found.in_gap)
                    && let Some(gap) = found.report.gaps.last_mut()
                {
                    gap.next_record = record;
                }
            }
            SalvageItem::Damage { offset, record, bytes, error } => {
                rest.write(bytes)?;
                let reason = error.as_ref().map_or(GapReason::LengthCrc, GapReason::of);
                found.gap((offset, record), reason, error, |gap| gap.len += bytes.len() as u64);
            }
            SalvageItem::NotInflated { offset, record, file, error } => {
                found.gap((offset, record), GapReason::Inflate, Some(error), |gap| {
                    let start = gap.file.as_ref().map_or(file.start, |before| before.start);
                    (gap.reason, gap.file) = (GapReason::Inflate, Some(start..file.end));
                });
            }
            _ => {}
        }
        let now = reader.file_offset();
        progress(now.saturating_sub(read));
        read = read.max(now);
    }
    progress(reader.file_offset().saturating_sub(read));
    Ok((found.report, found.first))
}

/// Opens a file that is read once.
pub(crate) fn open(path: &Path) -> Result<File> {
    match File::open(path) {
        Ok(file) if file.metadata().is_ok_and(|found| !found.is_dir()) => Ok(file),
        // The error of a path that cannot be read is the stream's error.
        opened => Err(match (tfseek::Stream::open(path), opened) {
            (Err(e), _) => e,
            (Ok(_), Err(e)) => Error::from(e).in_file(path),
            (Ok(_), Ok(_)) => Error::from(io::Error::from(io::ErrorKind::IsADirectory)).in_file(path),
        }),
    }
}

/// A writer and the path of its file.
pub(crate) struct NamedSink<'a>(pub(crate) &'a mut dyn Write, pub(crate) &'a Path);

impl NamedSink<'_> {
    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.0.write_all(bytes).map_err(|e| Error::from(e).in_file(self.1))
    }
}

/// The records and the gaps up to a position of a file.
#[derive(Default)]
struct FoundRecords {
    report: SalvageReport,
    /// The gap before the position is open.
    in_gap: bool,
    /// The error at the start of the first gap.
    first: Option<Error>,
}

impl FoundRecords {
    /// Adds to the gap at the position, which begins here unless it is open.
    fn gap(
        &mut self,
        (offset, record): (u64, Option<u64>),
        reason: GapReason,
        error: Option<Error>,
        add: impl FnOnce(&mut Gap),
    ) {
        if !std::mem::replace(&mut self.in_gap, true) {
            if self.first.is_none() {
                self.first = error;
            }
            self.report.gaps.push(Gap { offset, len: 0, reason, record, next_record: None, file: None });
        }
        if let Some(gap) = self.report.gaps.last_mut() {
            add(gap);
        }
    }
}
