//! A push parser of the record framing: it does no I/O, the caller brings bytes from wherever they come.

use super::checks::{FOOTER_LEN, Front, HEADER_LEN, Header, OVERHEAD, check_footer, front, need};
use crate::crc::crc32c_append;
use crate::error::{At, ErrorKind, Result};

/// Bytes of a record above the limit that must have arrived before it is refused: a stream that ends within them is truncated,
/// whatever its last header claims.
const ARRIVED: u64 = 256 << 10;

/// A parser of the framing, at a position of a record stream. It is told what stands there, and says what that is.
///
/// [`step`](Parser::step) takes the bytes from the position on, as many as the caller has, and whether more may follow. Until it
/// returns [`Event::Record`] or [`Event::Taken`] the position stays where it is, so that the caller brings the same bytes again with
/// those that follow.
///
/// A parser of *whole* records asks for all bytes of each, so that the caller can lend its payload. One that *passes* records asks for
/// no more than it checks: payloads go by in pieces of any size if their crcs are checked, and are not asked for at all if not.
#[derive(Clone, Debug)]
pub(crate) struct Parser {
    passes: bool,
    check: bool,
    max_payload: u64,
    records: u64,
    offset: u64,
    /// The record whose payload goes by in pieces.
    pieces: Option<Pieces>,
}

#[derive(Clone, Copy, Debug)]
struct Pieces {
    header: Header,
    /// Payload bytes so far, and their crc.
    taken: u64,
    crc: u32,
}

/// The answer to the bytes at a parser's position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// At least this many bytes have to stand at the position. The caller brings them, or says that no more follow.
    Need(u64),
    /// A record ends after this many bytes, and with them the position moves on. A whole record is just these bytes.
    Record(usize),
    /// This many bytes were taken; the record goes on behind them. Only where records are passed.
    Taken(usize),
    /// The record has this many bytes, of which no more are looked at: the caller moves on and calls [`Parser::skipped`]. Only
    /// where records are passed.
    Skip(u64),
    /// The stream has ended behind a record.
    End,
    /// The stream has ended inside a record.
    Torn(Torn),
}

/// A record of which only the start is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Torn {
    /// Bytes the record needs, as far as it says; at least a header.
    pub(crate) need: u64,
    /// Bytes there are.
    pub(crate) have: u64,
}

impl Parser {
    /// A parser of whole records with payloads of at most `max_payload` bytes, which are checked if `check` says so.
    pub(crate) fn whole(check: bool, max_payload: u64) -> Parser {
        Parser { passes: false, check, max_payload, records: 0, offset: 0, pieces: None }
    }

    /// A parser that passes records, behind `records` of them which end at byte `offset`.
    pub(crate) fn passing(check: bool, records: u64, offset: u64) -> Parser {
        Parser { passes: true, check, max_payload: u64::MAX, records, offset, pieces: None }
    }

    /// Number of records so far: the ordinal of the next one.
    #[inline]
    pub(crate) fn records(&self) -> u64 {
        self.records
    }

    /// Byte offset of the next record, or of the one that goes on.
    #[inline]
    pub(crate) fn offset(&self) -> u64 {
        self.offset
    }

    /// The place of the next record, for errors.
    pub(crate) fn at(&self) -> At<'static> {
        At { path: None, record: Some(self.records), offset: Some(self.offset) }
    }

    /// Looks at the bytes from the position on. With `more` false they are all there are.
    ///
    /// # Errors
    /// [`ErrorKind::CorruptLength`], [`ErrorKind::CorruptData`] and [`ErrorKind::RecordTooLarge`], without a place. The position stays
    /// at the record.
    #[inline(always)]
    pub(crate) fn step(&mut self, bytes: &[u8], more: bool) -> Result<Event> {
        if self.pieces.is_some() {
            return self.piece(bytes, more);
        }
        match front(bytes, self.check, self.max_payload)? {
            Front::Whole(payload) => {
                let taken = payload.len() + OVERHEAD;
                self.passed(taken as u64);
                Ok(Event::Record(taken))
            }
            Front::Part(header) => Ok(self.part(header, bytes, more)),
            Front::TooLong(header) => self.too_long(header, bytes, more),
        }
    }

    /// Moves on by the bytes of a record that was to be skipped; fewer are a torn tail.
    #[inline]
    pub(crate) fn skipped(&mut self, need: u64, have: u64) -> Option<Torn> {
        if have < need {
            return Some(Torn { need, have });
        }
        self.passed(need);
        None
    }

    /// Moves on by records that the caller has checked.
    #[inline]
    pub(crate) fn hopped(&mut self, records: u64, bytes: u64) {
        self.records += records;
        self.offset += bytes;
    }

    /// Returns true behind a piece of a record whose end is yet to come.
    #[inline]
    pub(crate) fn is_inside(&self) -> bool {
        self.pieces.is_some()
    }

    #[inline]
    fn passed(&mut self, record_len: u64) {
        self.records += 1;
        // Bytes that were there, so a u64 holds their number.
        self.offset += record_len;
    }

    #[inline]
    fn part(&mut self, header: Option<Header>, bytes: &[u8], more: bool) -> Event {
        let (need, have) = (need(header), bytes.len() as u64);
        match header {
            _ if !more && bytes.is_empty() => Event::End,
            _ if !more => Event::Torn(Torn { need, have }),
            Some(_) if self.passes && !self.check => Event::Skip(need),
            Some(header) if self.passes => {
                let payload = bytes.get(HEADER_LEN..).unwrap_or_default();
                let mut pieces = Pieces { header, taken: 0, crc: 0 };
                let taken = pieces.take(payload);
                self.pieces = Some(pieces);
                Event::Taken(HEADER_LEN + taken)
            }
            _ => Event::Need(need),
        }
    }

    #[cold]
    fn too_long(&self, header: Header, bytes: &[u8], more: bool) -> Result<Event> {
        let (need, have) = (header.record_len(), bytes.len() as u64);
        let near = need.min(ARRIVED);
        if have >= near {
            let len = header.payload_len;
            return Err(ErrorKind::RecordTooLarge { len, max_record: self.max_payload }.into());
        }
        Ok(if more { Event::Need(near) } else { Event::Torn(Torn { need, have }) })
    }

    /// The next piece of a payload, or the footer behind it.
    fn piece(&mut self, bytes: &[u8], more: bool) -> Result<Event> {
        let Some(pieces) = &mut self.pieces else { return Ok(Event::Taken(0)) };
        let need = pieces.header.record_len();
        let (wanted, footer) = match pieces.header.payload_len - pieces.taken {
            0 => (FOOTER_LEN as u64, bytes.first_chunk()),
            _ => (1, None),
        };
        if let Some(&footer) = footer {
            check_footer(pieces.crc, footer)?;
            self.pieces = None;
            self.passed(need);
            return Ok(Event::Record(FOOTER_LEN));
        }
        if (bytes.len() as u64) < wanted {
            let have = HEADER_LEN as u64 + pieces.taken + bytes.len() as u64;
            return Ok(if more { Event::Need(wanted) } else { Event::Torn(Torn { need, have }) });
        }
        Ok(Event::Taken(pieces.take(bytes)))
    }
}

impl Pieces {
    /// Takes as much of the payload as stands at the start of `bytes`.
    fn take(&mut self, bytes: &[u8]) -> usize {
        let left = self.header.payload_len - self.taken;
        let here = usize::try_from(left).map_or(bytes.len(), |left| left.min(bytes.len()));
        let piece = bytes.get(..here).unwrap_or_default();
        self.crc = crc32c_append(self.crc, piece);
        self.taken += here as u64;
        here
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Result;
    use crate::frame::checks::put_header;
    use crate::frame::{Frames, put_record};

    /// Offsets of the records, and how the bytes end; or the damaged record's ordinal and offset, and the message.
    type Outcome = std::result::Result<(Vec<u64>, Event), (Option<u64>, Option<u64>, String)>;

    fn outcome(walk: Result<(Vec<u64>, Event)>) -> Outcome {
        walk.map_err(|e| (e.location().record, e.location().offset, e.kind().to_string()))
    }

    /// Drives a parser by bytes that arrive `chunk` at a time.
    fn driven(mut parser: Parser, file: &[u8], chunk: usize) -> Outcome {
        let (mut offsets, mut start, mut end) = (Vec::new(), 0, 0);
        let mut walk = || loop {
            let at = parser.offset();
            match parser.step(&file[start..end], end < file.len()).map_err(|e| e.at(parser.at()))? {
                Event::Need(n) => {
                    assert!(n > (end - start) as u64, "it has these bytes");
                    assert!(end < file.len(), "it was told that no more follow");
                    end = (end + chunk).min(file.len());
                }
                Event::Record(n) => {
                    start += n;
                    offsets.push(at);
                }
                Event::Taken(n) => {
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
        outcome(walk())
    }

    /// The twin: the iterator over a slice.
    fn slice(file: &[u8]) -> Outcome {
        let mut offsets = Vec::new();
        for frame in Frames::new(file) {
            match frame {
                Ok(frame) => offsets.push(frame.offset),
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

    fn all_agree(file: &[u8]) {
        let want = slice(file);
        for chunk in [1, 5, 13, 1000] {
            assert_eq!(driven(Parser::whole(true, u64::MAX), file, chunk), want);
            assert_eq!(driven(Parser::passing(true, 0, 0), file, chunk), want);
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
    fn whole_and_in_pieces_every_truncation_and_every_flipped_bit_is_what_the_slice_says() {
        let file = file();
        for cut in 0..=file.len() {
            all_agree(&file[..cut]);
            let want = slice(&file[..cut]);
            assert_eq!(driven(Parser::passing(false, 0, 0), &file[..cut], 5), want);
        }
        for bit in 0..file.len() * 8 {
            let mut bad = file.clone();
            bad[bit / 8] ^= 1 << (bit % 8);
            all_agree(&bad);
        }
    }

    #[test]
    fn lengths_that_no_file_has_are_torn() {
        for len in [1u64 << 40, (1 << 63) - 4, u64::MAX - 15, u64::MAX] {
            let mut bad = file();
            put_header(&mut bad, len).unwrap();
            all_agree(&bad);
            let want = slice(&bad);
            assert_eq!(driven(Parser::passing(false, 0, 0), &bad, 7), want);
        }
    }

    #[test]
    fn a_record_above_the_limit_is_refused_once_it_may_be_there() {
        let mut file = Vec::new();
        put_record(&mut file, &[1; 9]).unwrap();
        put_record(&mut file, &[2; 300]).unwrap();
        let refused = driven(Parser::whole(true, 299), &file, 10).unwrap_err();
        assert_eq!((refused.0, refused.1), (Some(1), Some(25)));
        assert!(refused.2.contains("300"), "{}", refused.2);
        let torn = Event::Torn(Torn { need: 316, have: 315 });
        assert_eq!(driven(Parser::whole(true, 299), &file[..file.len() - 1], 10), Ok((vec![0], torn)));
    }

    #[test]
    fn a_payload_is_checked_only_where_asked() {
        let mut bad = file();
        let at = bad.len() - 6;
        bad[at] ^= 1;
        let offsets = vec![0, 16, 33, 51];
        assert_eq!(driven(Parser::whole(false, u64::MAX), &bad, 3), Ok((offsets, Event::End)));
        assert!(driven(Parser::whole(true, u64::MAX), &bad, 3).is_err());
    }
}
