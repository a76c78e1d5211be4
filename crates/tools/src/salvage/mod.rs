//! Sound records of damaged files.

mod input;
#[cfg(test)]
mod tests;

use input::{CountedRead, Input};
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use tfseek::frame::{Salvage, SalvageStep};
use tfseek::io::Output;
use tfseek::{Compression, Error, ErrorKind, Result};

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
    /// Offset of the first byte in the record stream: in the file, or in the bytes that could be inflated of a compressed file.
    pub offset: u64,
    /// Number of bytes in the record stream. 0 if only bytes that cannot be inflated are missing.
    pub len: u64,
    /// The reason at the first byte.
    pub reason: GapReason,
    /// Ordinal of the first damaged record. `None` if an unknown number of records before it is damaged.
    pub record: Option<u64>,
    /// Ordinal of the first sound record after the gap. `None` if there is none, or its ordinal is not known.
    pub next_record: Option<u64>,
    /// The bytes of a compressed file that could not be inflated. The first is the start of the damaged member, or where its inflation ended.
    pub file: Option<std::ops::Range<u64>>,
}

/// The result of [`salvage`] and [`scan`].
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

impl SalvageReport {
    /// Returns the number of bytes in the gaps.
    pub fn gap_bytes(&self) -> u64 {
        self.gaps.iter().map(|gap| gap.len).sum()
    }
}

/// Copies the sound records of a file to `output`, in order and as they are, and the bytes between them to `rest`. The files get their
/// names when they are complete. The file is only read.
///
/// Both checksums of a record must be correct. The search after damage is that of [`Salvage`]. Of a gzip file the records after damage are
/// those from the next member on. Memory holds the two largest records at most.
///
/// `progress` is called with the number of bytes of the file that were read since the last call.
///
/// # Errors
/// I/O errors; `ErrorKind::NotTfRecord` or the first error of the file if it contains no sound record. No file is written then.
pub fn salvage(
    input: &Path,
    output: &Path,
    rest: Option<&Path>,
    max_record: u64,
    progress: &mut dyn FnMut(u64),
) -> Result<SalvageReport> {
    let create = |path: &Path| Output::create(path).map_err(|e| Error::from(e).in_file(path));
    let mut out = BufWriter::with_capacity(BUFFER, create(output)?);
    let mut left =
        rest.map(|path| create(path).map(|file| BufWriter::with_capacity(BUFFER, file))).transpose()?;
    let mut sink = io::sink();
    let rest_writer: &mut dyn Write = left.as_mut().map_or(&mut sink, |left| left);
    let sinks = [NamedSink(&mut out, output), NamedSink(rest_writer, rest.unwrap_or(output))];
    let mut run = Run::new(sinks, max_record, progress);
    run.file(input)?;
    let Run { report, first, .. } = run;
    if let Some(e) = first.filter(|_| report.records == 0) {
        // The stream's error names the format of a file that is not a TFRecord file.
        tfseek::Stream::open(input)?.next()?;
        return Err(e.in_file(input));
    }
    for file in [Some(out), left].into_iter().flatten() {
        let path = file.get_ref().path().to_path_buf();
        let done = file.into_inner().map_err(io::IntoInnerError::into_error).and_then(Output::commit);
        done.map_err(|e| Error::from(e).in_file(&path))?;
    }
    Ok(report)
}

/// Finds the sound records and the damaged ranges of a file, as [`salvage`] does, and writes nothing.
///
/// # Errors
/// I/O errors.
pub fn scan(input: &Path, max_record: u64, progress: &mut dyn FnMut(u64)) -> Result<SalvageReport> {
    let (mut out, mut rest) = (io::sink(), io::sink());
    let sinks = [NamedSink(&mut out, input), NamedSink(&mut rest, input)];
    let mut run = Run::new(sinks, max_record, progress);
    run.file(input)?;
    Ok(run.report)
}

/// Minimum size of a buffer in bytes.
const BUFFER: usize = 256 << 10;

/// A writer and the path of its file.
struct NamedSink<'a>(&'a mut dyn Write, &'a Path);

impl NamedSink<'_> {
    fn write(&mut self, bytes: Option<&[u8]>) -> Result<()> {
        self.0.write_all(bytes.unwrap_or_default()).map_err(|e| Error::from(e).in_file(self.1))
    }
}

/// A run over one file.
struct Run<'a> {
    out: NamedSink<'a>,
    rest: NamedSink<'a>,
    max_record: u64,
    progress: &'a mut dyn FnMut(u64),
    report: SalvageReport,
    /// The gap before the position is open.
    in_gap: bool,
    /// The error at the start of the first gap.
    first: Option<Error>,
}

impl<'a> Run<'a> {
    fn new([out, rest]: [NamedSink<'a>; 2], max_record: u64, progress: &'a mut dyn FnMut(u64)) -> Run<'a> {
        Run { out, rest, max_record, progress, report: SalvageReport::default(), in_gap: false, first: None }
    }

    fn file(&mut self, path: &Path) -> Result<()> {
        let in_file = |e: Error| e.in_file(path);
        let open = || File::open(path).map_err(Error::from).map_err(in_file);
        // The stream reads the first bytes to detect the compression.
        let compression = tfseek::Stream::open(path)?.compression();
        let mut salvage = Salvage::new(self.max_record);
        if compression == Compression::None {
            let mut file = open()?;
            return self.records(&mut file, &mut salvage).map_err(in_file);
        }
        let mut input = Input::new(open()?, compression, 0).map_err(Error::from).map_err(in_file)?;
        loop {
            self.records(&mut input, &mut salvage).map_err(in_file)?;
            let Some(damaged) = input.failed.take() else { return Ok(()) };
            let next = input.next_member(|input| holds_record(input, self.max_record));
            let next = next.map_err(Error::from).map_err(in_file)?;
            let offset = salvage.offset();
            if !self.in_gap {
                let reason = GapReason::Inflate;
                self.report.gaps.push(Gap {
                    offset,
                    len: 0,
                    reason,
                    record: salvage.record(),
                    next_record: None,
                    file: None,
                });
                self.in_gap = true;
                self.first.get_or_insert(damaged.error);
            }
            if let Some(gap) = self.report.gaps.last_mut() {
                gap.reason = GapReason::Inflate;
                gap.file = Some(damaged.at..next.unwrap_or_else(|| input.size()));
            }
            if next.is_none() {
                return Ok(());
            }
            salvage = Salvage::searching(self.max_record, offset);
        }
    }

    /// Reads one sequence of records to its end.
    fn records(&mut self, reader: &mut dyn CountedRead, salvage: &mut Salvage) -> Result<()> {
        let mut window = Window::default();
        loop {
            let (offset, record) = (salvage.offset(), salvage.record());
            let bytes = window.bytes();
            match salvage.step(bytes, window.more) {
                SalvageStep::End => return Ok(()),
                SalvageStep::Need(need) => {
                    let need = usize::try_from(need).unwrap_or(usize::MAX);
                    window.fill(need, reader, self.progress)?;
                }
                SalvageStep::Record(len) => {
                    self.out.write(bytes.get(..len))?;
                    self.report.records += 1;
                    self.report.bytes += len as u64;
                    if self.in_gap {
                        self.in_gap = false;
                        if let Some(gap) = self.report.gaps.last_mut() {
                            gap.next_record = record;
                        }
                    }
                    window.start += len;
                }
                SalvageStep::Damage { len, error } => {
                    self.rest.write(bytes.get(..len))?;
                    if !self.in_gap {
                        self.in_gap = true;
                        let reason = error.as_ref().map_or(GapReason::LengthCrc, GapReason::of);
                        let gap = Gap { offset, len: 0, reason, record, next_record: None, file: None };
                        self.report.gaps.push(gap);
                        if self.first.is_none() {
                            self.first = error;
                        }
                    }
                    if let Some(gap) = self.report.gaps.last_mut() {
                        gap.len += len as u64;
                    }
                    window.start += len;
                }
            }
        }
    }
}

/// Returns true if a search finds a sound record in the inflated bytes.
fn holds_record(input: &mut Input, max_record: u64) -> Result<bool> {
    let (mut window, mut salvage) = (Window::default(), Salvage::searching(max_record, 0));
    loop {
        match salvage.step(window.bytes(), window.more) {
            SalvageStep::Record(_) => return Ok(true),
            SalvageStep::End => return Ok(false),
            SalvageStep::Damage { len, .. } => window.start += len,
            SalvageStep::Need(need) => {
                window.fill(usize::try_from(need).unwrap_or(usize::MAX), input, &mut |_| ())?;
            }
        }
    }
}

/// The bytes of a record stream from a position on.
struct Window {
    /// `buf[start..end]` are the bytes.
    buf: Vec<u8>,
    start: usize,
    end: usize,
    /// True until the end of the reader.
    more: bool,
}

impl Default for Window {
    fn default() -> Window {
        Window { buf: Vec::new(), start: 0, end: 0, more: true }
    }
}

impl Window {
    fn bytes(&self) -> &[u8] {
        self.buf.get(self.start..self.end).unwrap_or_default()
    }

    /// Reads until `need` bytes are present or the reader ends. The buffer grows with the bytes that arrive, not with `need`.
    fn fill(
        &mut self,
        need: usize,
        reader: &mut dyn CountedRead,
        progress: &mut dyn FnMut(u64),
    ) -> Result<()> {
        while self.end - self.start < need && self.more {
            if self.end == self.buf.len() {
                let have = self.end - self.start;
                self.buf.copy_within(self.start..self.end, 0);
                (self.start, self.end) = (0, have);
                let len = (2 * have).clamp(BUFFER, need.max(BUFFER));
                if len > self.buf.len() {
                    let out_of_memory = |_| Error::from(io::Error::from(io::ErrorKind::OutOfMemory));
                    self.buf.try_reserve_exact(len - self.buf.len()).map_err(out_of_memory)?;
                    self.buf.resize(len, 0);
                }
            }
            match reader.read(self.buf.get_mut(self.end..).unwrap_or_default()) {
                Ok(0) => self.more = false,
                Ok(n) => {
                    self.end += n;
                    progress(reader.taken(n as u64));
                }
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e.into()),
            }
        }
        Ok(())
    }
}
