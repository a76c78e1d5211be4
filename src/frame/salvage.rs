//! A search for sound records in a damaged record stream. It does no I/O: the caller supplies the bytes.

use super::checks::{FirstRecord, HEADER_LEN, OVERHEAD, RecordHeader, first_record, needed_len, truncated};
use super::search::{find_header, sound_len};
use crate::error::{At, Error, ErrorKind};
use crate::policy::Verify;

/// A parser of a record stream that continues after damage.
///
/// [`step`](Salvage::step) takes all bytes that the caller has from the position on, and a flag that more may
/// follow. It moves the position when it returns [`SalvageStep::Record`] or [`SalvageStep::Damage`].
///
/// [`SalvageReader`](crate::io::SalvageReader) describes how it continues after damage. The time is linear in
/// the length of the stream, for any bytes. While the parser searches, sound headers can state payloads that
/// overlap. It computes the checksums of such payloads up to eight times the bytes of the stream so far, and
/// takes the others for damage. Only a file that was made for it reaches this limit. After
/// [`SalvageStep::Need`] the caller should supply half as many bytes again as before, if it can: each step
/// begins anew at the position.
#[derive(Clone, Debug)]
pub(crate) struct Salvage {
    max_payload: u64,
    offset: u64,
    record: Option<u64>,
    /// The start of the next record is not known.
    searches: bool,
    /// The bytes before the position are damaged.
    in_gap: bool,
    /// Bytes of the payloads whose checksums were computed in searches.
    searched: u64,
    /// Bytes of all payloads whose checksums were computed, also repeatedly.
    #[cfg(test)]
    pub(super) work: std::cell::Cell<u64>,
}

/// Maximum of `searched`, in multiples of the bytes of the stream up to the end of the payload.
pub(super) const SEARCH_LIMIT: u64 = 8;

/// Number of sound records that are not part of a payload if a torn record follows them.
const CHAIN: usize = 2;

/// The result of [`Salvage::step`].
#[derive(Debug)]
pub(crate) enum SalvageStep {
    /// At least this many bytes are needed at the position. The caller supplies them, or reports that no more
    /// follow.
    Need(u64),
    /// These bytes are a sound record, and the position has moved past them.
    Record(usize),
    /// These bytes are not part of a sound record, and the position has moved past them. Consecutive steps of
    /// damage are one gap.
    Damage {
        /// Number of bytes, at least 1.
        len: usize,
        /// The error at the start of a gap, with record and offset. `None` if the gap began before.
        error: Option<Error>,
    },
    /// The stream has ended.
    End,
}

/// The number of bytes that a decision needs.
struct Needed(u64);

impl Salvage {
    /// Creates a parser at the start of a stream. Payloads longer than `max_payload` bytes count as damage.
    pub(crate) fn new(max_payload: u64) -> Salvage {
        Salvage::resuming(max_payload, 0, Some(0))
    }

    /// Creates a parser at byte `offset` of a stream, at which record `record` begins.
    pub(crate) fn resuming(max_payload: u64, offset: u64, record: Option<u64>) -> Salvage {
        Salvage {
            max_payload,
            offset,
            record,
            searches: false,
            in_gap: false,
            searched: 0,
            #[cfg(test)]
            work: std::cell::Cell::new(0),
        }
    }

    /// Creates a parser at byte `offset` of a stream, inside a gap: it begins with a search.
    pub(crate) fn searching(max_payload: u64, offset: u64) -> Salvage {
        Salvage { searches: true, in_gap: true, ..Salvage::resuming(max_payload, offset, None) }
    }

    /// Begins a search at the position, inside a gap.
    pub(crate) fn restart(&mut self) {
        (self.record, self.searches, self.in_gap) = (None, true, true);
    }

    /// Returns the byte offset of the position.
    pub(crate) fn offset(&self) -> u64 {
        self.offset
    }

    /// Returns the ordinal of the next record. `None` if an unknown number of records was damaged before it.
    pub(crate) fn record(&self) -> Option<u64> {
        self.record
    }

    /// Parses the bytes from the position on. With `more` false, the stream ends with them.
    pub(crate) fn step(&mut self, bytes: &[u8], more: bool) -> SalvageStep {
        if self.searches {
            return self.search(bytes, 0, more, None);
        }
        let (error, end) = match self.first(bytes) {
            Ok(FirstRecord::Whole(payload)) => return self.found(payload),
            Ok(FirstRecord::Partial(header)) if more => return SalvageStep::Need(needed_len(header)),
            Ok(FirstRecord::Partial(_)) if bytes.is_empty() => return SalvageStep::End,
            Ok(FirstRecord::Partial(header)) => {
                (truncated(needed_len(header), bytes.len() as u64), header.map(RecordHeader::record_len))
            }
            Ok(FirstRecord::TooLong(header)) => {
                let len = header.payload_len;
                let max_record = self.max_payload;
                (ErrorKind::RecordTooLarge { len, max_record }.into(), None)
            }
            Err(e) => (e, sound_len(bytes).map(|len| len as u64)),
        };
        let error = Some(error);
        let Some(end) = end else { return self.search(bytes, 1, more, error) };
        // A decision that needs more bytes is made again, with the same result.
        let searched = self.searched;
        match self.after(bytes, end, more) {
            Err(Needed(need)) => {
                self.searched = searched;
                SalvageStep::Need(need)
            }
            Ok(After::Record(len)) => self.skip(len, error),
            Ok(After::Inside(len)) => {
                let step = self.damage(len, error);
                self.searches = false;
                step
            }
            Ok(After::Unknown(len)) => self.damage(len, error),
        }
    }

    /// Decides where to continue after a damaged record with a sound header that ends at `end`.
    #[expect(clippy::arithmetic_side_effects, reason = "a record has a footer, and offsets are in `bytes`")]
    fn after(&mut self, bytes: &[u8], end: u64, more: bool) -> Result<After, Needed> {
        let len = usize::try_from(end).map_or(bytes.len(), |end| end.min(bytes.len()));
        if len as u64 == end && header_follows(bytes, len, more)? {
            return Ok(After::Record(len));
        }
        // Bytes of the record may be missing, so that other records begin before its end. A chain of sound
        // records is not part of the payload if it passes over the end, ends with the stream before it, or is
        // followed by a record that is torn as well. The records of chains before that one are then real too.
        let payload_end = end - super::FOOTER_LEN as u64;
        let mut from = HEADER_LEN;
        let mut first = None;
        while let Some(start) = find_header(bytes, from, len, self.max_payload) {
            let mut at = start;
            let mut sound = 0;
            let is_torn = loop {
                match self.check(bytes, at, more)? {
                    Checked::Sound(next) => (at, sound) = (next, sound + 1),
                    // A damaged payload between two sound headers.
                    Checked::Damaged(next)
                        if sound > 0 && next <= bytes.len() && header_follows(bytes, next, more)? =>
                    {
                        at = next;
                    }
                    Checked::Damaged(_) => break true,
                    // The end of the stream may be a torn header.
                    Checked::NoHeader => break bytes.len() - at < HEADER_LEN,
                }
                if at as u64 > payload_end {
                    return Ok(After::Inside(first.unwrap_or(start)));
                }
            };
            if sound > 0 {
                let first = *first.get_or_insert(start);
                if at == bytes.len() || is_torn && sound >= CHAIN {
                    return Ok(After::Inside(first));
                }
            }
            from = at.max(start + 1);
        }
        Ok(After::Unknown(len))
    }

    /// Parses the record at the start of `bytes`.
    fn first<'a>(&self, bytes: &'a [u8]) -> crate::error::Result<FirstRecord<'a>> {
        let first = first_record(bytes, Verify::Payload, self.max_payload);
        #[cfg(test)]
        if matches!(&first, Ok(FirstRecord::Whole(_)) | Err(_)) {
            let len = sound_len(bytes).unwrap_or_default() as u64;
            self.work.set(self.work.get().saturating_add(len));
        }
        first
    }

    /// Checks the record at `at`.
    fn check(&mut self, bytes: &[u8], at: usize, more: bool) -> Result<Checked, Needed> {
        let rest = bytes.get(at..).unwrap_or_default();
        // The end of a chain: without a header, the record is not known to be damaged. The header is whole if
        // more bytes follow, because a chain begins in a record after which another header's bytes are here.
        let Some(len) = sound_len(rest) else { return Ok(Checked::NoHeader) };
        if len as u64 > self.max_payload.saturating_add(OVERHEAD as u64) {
            return Ok(Checked::NoHeader);
        }
        let end = at.saturating_add(len);
        // The limit depends only on the stream, not on the pieces in which it arrives.
        let searched = self.searched.saturating_add(len as u64);
        if searched > SEARCH_LIMIT.saturating_mul(self.offset.saturating_add(end as u64)) {
            return Ok(Checked::NoHeader);
        }
        if end > bytes.len() {
            return if more { Err(Needed(end as u64)) } else { Ok(Checked::Damaged(end)) };
        }
        self.searched = searched;
        Ok(match self.first(rest) {
            Ok(FirstRecord::Whole(_)) => Checked::Sound(end),
            _ => Checked::Damaged(end),
        })
    }

    /// Searches for a sound record from byte `from` on.
    fn search(&mut self, bytes: &[u8], from: usize, more: bool, error: Option<Error>) -> SalvageStep {
        // Bytes before `passed` are not searched again.
        let mut at = from;
        let mut passed = from;
        let found = loop {
            let Some(start) = find_header(bytes, at, bytes.len(), self.max_payload) else { break None };
            let searched = self.searched;
            let end = match self.check(bytes, start, more) {
                Ok(Checked::Sound(_)) => break Some((start, None)),
                Ok(Checked::Damaged(end)) => Some(end),
                Ok(Checked::NoHeader) => None,
                Err(need) => break Some((start, Some(need))),
            };
            // A damaged payload between two sound headers.
            match end.filter(|&end| end <= bytes.len()).map(|end| (end, header_follows(bytes, end, more))) {
                Some((_, Err(need))) => {
                    self.searched = searched;
                    break Some((start, Some(need)));
                }
                Some((end, Ok(true))) => (at, passed) = (end, end),
                _ => at = start.saturating_add(1),
            }
        };
        match found {
            Some((0, Some(Needed(need)))) => SalvageStep::Need(need),
            Some((start, Some(_))) => self.damage(start, error),
            Some((start, None)) => {
                let step = (start > 0).then(|| self.damage(start, error));
                self.searches = false;
                step.unwrap_or_else(|| self.step(bytes, more))
            }
            None if more => match bytes.len().saturating_sub(HEADER_LEN - 1).max(passed) {
                0 => SalvageStep::Need(HEADER_LEN as u64),
                len => self.damage(len, error),
            },
            None if bytes.is_empty() => SalvageStep::End,
            None => self.damage(bytes.len(), error),
        }
    }

    #[expect(clippy::arithmetic_side_effects, reason = "the record is in memory")]
    fn found(&mut self, payload: &[u8]) -> SalvageStep {
        let len = payload.len() + OVERHEAD;
        self.offset += len as u64;
        self.record = self.record.and_then(|i| i.checked_add(1));
        self.in_gap = false;
        SalvageStep::Record(len)
    }

    /// Moves past one damaged record.
    fn skip(&mut self, len: usize, error: Option<Error>) -> SalvageStep {
        let next = self.record.and_then(|i| i.checked_add(1));
        let step = self.damage(len, error);
        (self.record, self.searches) = (next, false);
        step
    }

    /// Moves past damaged bytes. A search begins after them.
    fn damage(&mut self, len: usize, error: Option<Error>) -> SalvageStep {
        let at = At { path: None, record: self.record, offset: Some(self.offset) };
        let error = if self.in_gap { None } else { error.map(|e| e.at(at)) };
        self.offset = self.offset.saturating_add(len as u64);
        (self.record, self.searches, self.in_gap) = (None, true, true);
        SalvageStep::Damage { len, error }
    }
}

/// The record at an offset of a search.
enum Checked {
    /// A sound record with this end.
    Sound(usize),
    /// A record with a sound header, whose payload is damaged or missing, and the end that the header states.
    Damaged(usize),
    /// No sound header, or one that is not considered: its payload is too long, or its checksum would exceed
    /// [`SEARCH_LIMIT`].
    NoHeader,
}

/// The way to continue after a damaged record with a sound header.
enum After {
    /// The record has this many bytes, and the next one follows.
    Record(usize),
    /// A record begins after this many bytes, before the end that the header states.
    Inside(usize),
    /// No record is known to begin in these bytes, nor after them.
    Unknown(usize),
}

/// Returns true if a sound header, or the end of the stream, is at `at`.
fn header_follows(bytes: &[u8], at: usize, more: bool) -> Result<bool, Needed> {
    let rest = bytes.get(at..).unwrap_or_default();
    if rest.len() < HEADER_LEN {
        let need = at.saturating_add(HEADER_LEN) as u64;
        return if more { Err(Needed(need)) } else { Ok(rest.is_empty()) };
    }
    Ok(sound_len(rest).is_some())
}
