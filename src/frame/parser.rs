//! A push parser of the record framing. It does no I/O: the caller supplies the bytes.

use super::checks::{
    FOOTER_LEN, FirstRecord, HEADER_LEN, OVERHEAD, RecordHeader, check_footer, first_record, needed_len,
};
use crate::crc::crc32c_append;
use crate::error::{At, ErrorKind, Result};
use crate::policy::Verify;

/// Bytes of a record above the limit that must be present before the record is rejected. A stream that ends
/// within them is truncated, whatever length its last header states.
const MIN_PRESENT: u64 = 256 << 10;

/// A parser of the framing at a position of a record stream.
///
/// [`step`](Parser::step) takes all bytes that the caller has from the position on, and a flag that more may
/// follow. It moves the position only when it returns [`Event::Record`] or [`Event::Consumed`]. Otherwise the
/// caller passes the same bytes again, together with those that follow.
///
/// A parser of *whole* records requires all bytes of each record, so that the caller can borrow its payload.
/// A *scanning* parser requires only the bytes that it checks: it takes payloads in pieces of any size if
/// their crcs are checked, and skips them otherwise.
#[derive(Clone, Debug)]
pub(crate) struct Parser {
    /// True for a scanning parser.
    scans: bool,
    verify: Verify,
    max_payload: u64,
    records: u64,
    offset: u64,
    /// The record whose payload is being taken in pieces.
    partial: Option<PartialPayload>,
}

#[derive(Clone, Copy, Debug)]
struct PartialPayload {
    header: RecordHeader,
    /// Number of payload bytes so far. Never more than the header's `payload_len`.
    taken: u64,
    /// CRC32C of the payload bytes so far.
    crc: u32,
}

/// The result of a parser's step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// At least this many bytes are needed at the position. The caller supplies them, or reports that no more
    /// follow.
    Need(u64),
    /// A record ends after this many bytes, and the position has moved past them. From a parser of whole
    /// records, the bytes are the record.
    Record(usize),
    /// This many bytes were consumed, and the record continues after them. Only from a scanning parser.
    Consumed(usize),
    /// The record has this many bytes, and the parser needs none of them: the caller moves past them and
    /// calls [`Parser::skipped`]. Only from a scanning parser.
    Skip(u64),
    /// The stream ended after a record.
    End,
    /// The stream ended inside a record.
    Torn(Torn),
}

/// A record whose end is missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Torn {
    /// Bytes that the record needs, as far as known: at least a header.
    pub(crate) need: u64,
    /// Bytes that are present.
    pub(crate) have: u64,
}

impl Parser {
    /// Creates a parser of whole records with payloads of at most `max_payload` bytes, with these checksums.
    pub(crate) fn whole(verify: Verify, max_payload: u64) -> Parser {
        Parser { scans: false, verify, max_payload, records: 0, offset: 0, partial: None }
    }

    /// Creates a parser of whole records that starts after `records` records, at byte `offset`.
    pub(crate) fn whole_from(verify: Verify, max_payload: u64, records: u64, offset: u64) -> Parser {
        Parser { records, offset, ..Parser::whole(verify, max_payload) }
    }

    /// Creates a scanning parser that starts after `records` records, at byte `offset`.
    pub(crate) fn scanning(verify: Verify, records: u64, offset: u64) -> Parser {
        Parser { scans: true, verify, max_payload: u64::MAX, records, offset, partial: None }
    }

    /// Returns the number of records so far, which is the ordinal of the next one.
    #[inline]
    pub(crate) fn records(&self) -> u64 {
        self.records
    }

    /// Returns the byte offset of the next record, or of the unfinished one.
    #[inline]
    pub(crate) fn offset(&self) -> u64 {
        self.offset
    }

    /// Returns the location of the next record, for errors.
    pub(crate) fn at(&self) -> At<'static> {
        At { path: None, record: Some(self.records), offset: Some(self.offset) }
    }

    /// Parses the bytes from the position on. With `more` false, the stream ends with them.
    ///
    /// # Errors
    /// [`ErrorKind::CorruptLength`], [`ErrorKind::CorruptData`] and [`ErrorKind::RecordTooLarge`], without a
    /// location. The position stays at the record.
    #[inline(always)]
    pub(crate) fn step(&mut self, bytes: &[u8], more: bool) -> Result<Event> {
        if self.partial.is_some() {
            return self.next_piece(bytes, more);
        }
        match first_record(bytes, self.verify, self.max_payload)? {
            FirstRecord::Whole(payload) => {
                #[expect(clippy::arithmetic_side_effects, reason = "the record is in `bytes`")]
                let len = payload.len() + OVERHEAD;
                self.advance(1, len as u64);
                Ok(Event::Record(len))
            }
            FirstRecord::Partial(header) => Ok(self.partial_record(header, bytes, more)),
            FirstRecord::TooLong(header) => self.too_long(header, bytes, more),
        }
    }

    /// Moves past a record that the caller skipped. If fewer bytes were present than needed, returns the torn
    /// tail instead.
    #[inline]
    pub(crate) fn skipped(&mut self, need: u64, have: u64) -> Option<Torn> {
        if have < need {
            return Some(Torn { need, have });
        }
        self.advance(1, need);
        None
    }

    /// Moves past records that the caller has checked.
    #[inline]
    #[expect(clippy::arithmetic_side_effects, reason = "the bytes of a stream, whose length fits a u64")]
    pub(crate) fn advance(&mut self, records: u64, bytes: u64) {
        self.records += records;
        self.offset += bytes;
    }

    /// Returns true if a part of a record was consumed, and its end was not.
    #[inline]
    pub(crate) fn is_inside(&self) -> bool {
        self.partial.is_some()
    }

    #[inline]
    fn partial_record(&mut self, header: Option<RecordHeader>, bytes: &[u8], more: bool) -> Event {
        let need = needed_len(header);
        let have = bytes.len() as u64;
        match header {
            _ if !more && bytes.is_empty() => Event::End,
            _ if !more => Event::Torn(Torn { need, have }),
            Some(_) if self.scans && self.verify != Verify::Payload => Event::Skip(need),
            Some(header) if self.scans => {
                let payload = bytes.get(HEADER_LEN..).unwrap_or_default();
                let mut partial = PartialPayload { header, taken: 0, crc: 0 };
                let taken = partial.take(payload);
                self.partial = Some(partial);
                #[expect(clippy::arithmetic_side_effects, reason = "the header and `taken` are in `bytes`")]
                let consumed = HEADER_LEN + taken;
                Event::Consumed(consumed)
            }
            _ => Event::Need(need),
        }
    }

    #[cold]
    fn too_long(&self, header: RecordHeader, bytes: &[u8], more: bool) -> Result<Event> {
        let need = header.record_len();
        let have = bytes.len() as u64;
        let required = need.min(MIN_PRESENT);
        if have >= required {
            let len = header.payload_len;
            return Err(ErrorKind::RecordTooLarge { len, max_record: self.max_payload }.into());
        }
        Ok(if more { Event::Need(required) } else { Event::Torn(Torn { need, have }) })
    }

    /// Takes the next piece of a payload, or the footer after it.
    #[expect(clippy::arithmetic_side_effects, reason = "the bytes so far, and those that are present")]
    fn next_piece(&mut self, bytes: &[u8], more: bool) -> Result<Event> {
        let Some(partial) = &mut self.partial else { return Ok(Event::Consumed(0)) };
        let need = partial.header.record_len();
        let is_taken = partial.left() == 0;
        if is_taken && let Some(&footer) = bytes.first_chunk() {
            check_footer(partial.crc, footer)?;
            self.partial = None;
            self.advance(1, need);
            return Ok(Event::Record(FOOTER_LEN));
        }
        let wanted = if is_taken { FOOTER_LEN as u64 } else { 1 };
        if (bytes.len() as u64) < wanted {
            let have = HEADER_LEN as u64 + partial.taken + bytes.len() as u64;
            return Ok(if more { Event::Need(wanted) } else { Event::Torn(Torn { need, have }) });
        }
        Ok(Event::Consumed(partial.take(bytes)))
    }
}

#[expect(clippy::arithmetic_side_effects, reason = "`taken` is at most the header's `payload_len`")]
impl PartialPayload {
    /// Returns the number of payload bytes that are still to come.
    fn left(&self) -> u64 {
        self.header.payload_len - self.taken
    }

    /// Takes the payload bytes at the start of `bytes`. Returns their number.
    fn take(&mut self, bytes: &[u8]) -> usize {
        let len = usize::try_from(self.left()).map_or(bytes.len(), |left| left.min(bytes.len()));
        let piece = bytes.split_at(len).0;
        self.crc = crc32c_append(self.crc, piece);
        self.taken += len as u64;
        len
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Result;
    use crate::frame::checks::put_header;
    use crate::frame::{frames, put_record};

    /// The offsets of the records and the last event, or the ordinal and offset of the damaged record and the
    /// message.
    type Outcome = std::result::Result<(Vec<u64>, Event), (Option<u64>, Option<u64>, String)>;

    fn outcome(result: Result<(Vec<u64>, Event)>) -> Outcome {
        result.map_err(|e| (e.location().record, e.location().offset, e.kind().to_string()))
    }

    /// Drives a parser with bytes that arrive `chunk` at a time.
    fn run(mut parser: Parser, file: &[u8], chunk: usize) -> Outcome {
        let mut offsets = Vec::new();
        let mut start = 0;
        let mut end = 0;
        let mut parse = || loop {
            let at = parser.offset();
            match parser.step(&file[start..end], end < file.len()).map_err(|e| e.at(parser.at()))? {
                Event::Need(n) => {
                    assert!(n > (end - start) as u64, "the parser already has these bytes");
                    assert!(end < file.len(), "the parser was told that no more bytes follow");
                    end = (end + chunk).min(file.len());
                }
                Event::Record(n) => {
                    start += n;
                    offsets.push(at);
                }
                Event::Consumed(n) => {
                    assert!(n > 0);
                    start += n;
                }
                Event::Skip(n) => {
                    let have = ((file.len() - start) as u64).min(n);
                    start += have as usize;
                    end = end.max(start);
                    match parser.skipped(n, have) {
                        None => offsets.push(at),
                        Some(torn) => return Ok((std::mem::take(&mut offsets), Event::Torn(torn))),
                    }
                }
                last => return Ok((std::mem::take(&mut offsets), last)),
            }
        };
        outcome(parse())
    }

    /// The safe twin: the iterator over a slice.
    fn run_slice(file: &[u8]) -> Outcome {
        let mut offsets = Vec::new();
        for frame in frames(file) {
            match frame {
                Ok((offset, _)) => offsets.push(offset),
                Err(e) => {
                    return match *e.kind() {
                        ErrorKind::Truncated { need, have } => {
                            Ok((offsets, Event::Torn(Torn { need, have })))
                        }
                        _ => outcome(Err(e)),
                    };
                }
            }
        }
        Ok((offsets, Event::End))
    }

    fn check_agreement(file: &[u8]) {
        let want = run_slice(file);
        for chunk in [1, 5, 13, 1000] {
            assert_eq!(run(Parser::whole(Verify::Payload, u64::MAX), file, chunk), want);
            assert_eq!(run(Parser::scanning(Verify::Payload, 0, 0), file, chunk), want);
        }
    }

    fn file() -> Vec<u8> {
        let mut file = Vec::new();
        for len in [0usize, 1, 2, 40] {
            put_record(&mut file, &vec![7; len]).unwrap();
        }
        file
    }

    #[test]
    #[cfg_attr(miri, ignore = "too slow under Miri")]
    fn truncations_and_flipped_bits_agree_with_the_slice_iterator() {
        let file = file();
        for cut in 0..=file.len() {
            check_agreement(&file[..cut]);
            let want = run_slice(&file[..cut]);
            assert_eq!(run(Parser::scanning(Verify::Header, 0, 0), &file[..cut], 5), want);
        }
        for bit in 0..file.len() * 8 {
            let mut bad = file.clone();
            bad[bit / 8] ^= 1 << (bit % 8);
            check_agreement(&bad);
        }
    }

    #[test]
    fn huge_lengths_are_torn() {
        for len in [1u64 << 40, (1 << 63) - 4, u64::MAX - 15, u64::MAX] {
            let mut bad = file();
            put_header(&mut bad, len).unwrap();
            check_agreement(&bad);
            let want = run_slice(&bad);
            assert_eq!(run(Parser::scanning(Verify::Header, 0, 0), &bad, 7), want);
        }
    }

    #[test]
    fn a_record_above_the_limit_is_rejected_unless_the_stream_is_short() {
        let mut file = Vec::new();
        put_record(&mut file, &[1; 9]).unwrap();
        put_record(&mut file, &[2; 300]).unwrap();
        let refused = run(Parser::whole(Verify::Payload, 299), &file, 10).unwrap_err();
        assert_eq!((refused.0, refused.1), (Some(1), Some(25)));
        assert!(refused.2.contains("300"), "{}", refused.2);
        let torn = Event::Torn(Torn { need: 316, have: 315 });
        assert_eq!(
            run(Parser::whole(Verify::Payload, 299), &file[..file.len() - 1], 10),
            Ok((vec![0], torn))
        );
    }

    #[test]
    fn payloads_are_checked_only_on_request() {
        let mut bad = file();
        let at = bad.len() - 6;
        bad[at] ^= 1;
        let offsets = vec![0, 16, 33, 51];
        assert_eq!(run(Parser::whole(Verify::Header, u64::MAX), &bad, 3), Ok((offsets, Event::End)));
        assert!(run(Parser::whole(Verify::Payload, u64::MAX), &bad, 3).is_err());
    }
}
