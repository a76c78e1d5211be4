//! A cursor over one message.

use crate::error::WireError;
use crate::fault::Fault;
use crate::varint::{self, MAX_VARINT};

/// Most levels of messages and groups below the payload (W4).
const MAX_DEPTH: u8 = 100;
/// Bytes of the longest tag or length (W2, W3).
const MAX_SHORT: usize = 5;
/// The largest length of a field, and of a whole payload (W3, W13).
pub const MAX_LEN: u64 = i32::MAX as u64;

/// Returns true if two keys are equal. Keys of 8 to 32 bytes take two overlapping loads and no call.
#[inline(always)]
pub fn keys_equal(a: &[u8], b: &[u8]) -> bool {
    fn ends<const N: usize>(key: &[u8]) -> Option<([u8; N], [u8; N])> {
        Some((*key.first_chunk()?, *key.last_chunk()?))
    }
    a.len() == b.len()
        && match a.len() {
            8..=16 => ends::<8>(a) == ends::<8>(b),
            17..=32 => ends::<16>(a) == ends::<16>(b),
            _ => keys_equal_slow(a, b),
        }
}

#[inline(never)]
fn keys_equal_slow(a: &[u8], b: &[u8]) -> bool {
    a == b
}

/// Counts the floats of a packed chunk. The offset of a fault is relative to the chunk.
#[inline]
pub fn count_floats(chunk: &[u8]) -> Result<usize, Fault> {
    if !chunk.len().is_multiple_of(4) {
        return Err(Fault::new(WireError::PackedFloatLength, 0));
    }
    Ok(chunk.len() / 4)
}

/// Counts the doubles of a packed chunk. The offset of a fault is relative to the chunk.
#[inline]
pub fn count_doubles(chunk: &[u8]) -> Result<usize, Fault> {
    if !chunk.len().is_multiple_of(8) {
        return Err(Fault::new(WireError::PackedDoubleLength, 0));
    }
    Ok(chunk.len() / 8)
}

/// The value of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WireValue<'a> {
    /// Wire type 0.
    Varint(u64),
    /// Wire type 1, little-endian.
    Fixed64([u8; 8]),
    /// Wire type 2: bytes after their length.
    Len(&'a [u8]),
    /// A group, whose content was skipped.
    Group,
    /// Wire type 5, little-endian.
    Fixed32([u8; 4]),
}

/// A cursor over the bytes of one message. A [`Fault`] is the first violation of the wire format.
#[derive(Clone, Copy, Debug)]
pub struct WireReader<'a> {
    rest: &'a [u8],
    /// Offset of the message's end in the payload. It does not change while `rest` shrinks, so reading need
    /// not update a position.
    end: u32,
    /// Levels below the payload.
    depth: u8,
}

const _: () = assert!(size_of::<WireReader<'static>>() == 3 * size_of::<usize>() || size_of::<usize>() < 8);

impl<'a> WireReader<'a> {
    /// Creates a reader of a payload, or of bytes whose offsets are not used. The caller must reject payloads
    /// longer than [`MAX_LEN`] first, since their offsets do not fit.
    #[inline]
    pub fn new(payload: &'a [u8]) -> WireReader<'a> {
        WireReader::at(payload, 0, 0)
    }

    /// Creates a reader of a message that starts at byte `start` of the payload, `depth` levels below it.
    #[inline]
    pub fn at(message: &'a [u8], start: usize, depth: u8) -> WireReader<'a> {
        WireReader { rest: message, end: start.wrapping_add(message.len()) as u32, depth }
    }

    /// Returns true at the end of the message.
    #[inline]
    pub fn is_empty(self) -> bool {
        self.rest.is_empty()
    }

    /// Returns the bytes that are left.
    #[inline]
    pub fn rest(self) -> &'a [u8] {
        self.rest
    }

    /// Skips to `rest`, a suffix of the bytes that are left.
    #[inline(always)]
    pub fn skip_to(&mut self, rest: &'a [u8]) {
        debug_assert!(self.rest.as_ptr_range().end == rest.as_ptr_range().end, "expected a suffix");
        self.rest = rest;
    }

    /// Returns the offset of the next byte in the payload.
    #[inline]
    pub fn position(self) -> usize {
        self.end.wrapping_sub(self.rest.len() as u32) as usize
    }

    /// Returns the offset in the payload of the bytes that were read last.
    #[inline]
    pub fn start_of(self, last: &[u8]) -> usize {
        self.position().wrapping_sub(last.len())
    }

    /// Creates a reader of the message that was the last field read.
    #[inline]
    #[expect(
        clippy::arithmetic_side_effects,
        reason = "messages are nested only as deep as their schema, at most 5 levels below the payload"
    )]
    pub fn nested(self, last: &'a [u8]) -> WireReader<'a> {
        WireReader { rest: last, end: self.position() as u32, depth: self.depth + 1 }
    }

    #[cold]
    fn fault(self, kind: WireError) -> Fault {
        Fault::new(kind, self.position())
    }

    /// Returns a fault at an earlier rest. Only the rest is kept for it: a copy of the whole reader would wait
    /// until its parts, which are written one by one, are in memory.
    #[cold]
    fn fault_at(self, rest: &'a [u8], kind: WireError) -> Fault {
        WireReader { rest, ..self }.fault(kind)
    }

    /// Consumes a tag of one byte, if it comes next. Returns true if it did.
    #[inline]
    pub fn take_tag(&mut self, tag: u8) -> bool {
        match self.rest {
            [first, rest @ ..] if *first == tag => {
                self.rest = rest;
                true
            }
            _ => false,
        }
    }

    /// Returns the bytes of the next field, if it has this tag and is complete. Otherwise nothing is
    /// consumed, and the caller gets the field or the fault from [`next`](WireReader::next). The result is an
    /// `Option` and not a `Result`: a slice in two registers costs the innermost loops a third as much as an
    /// error in memory.
    #[inline(always)]
    pub fn take_field(&mut self, tag: u8) -> Option<&'a [u8]> {
        let (len, body) = match self.rest {
            [first, len @ 0..0x80, body @ ..] if *first == tag => (usize::from(*len), body),
            [first, low, high @ 0..0x80, body @ ..] if *first == tag => {
                (usize::from(low & 0x7f) | usize::from(*high) << 7, body)
            }
            [first, ..] if *first == tag => return self.take_field_slow(),
            _ => return None,
        };
        let (bytes, rest) = body.split_at_checked(len)?;
        self.rest = rest;
        Some(bytes)
    }

    /// Returns the bytes of fields 1 and 2 of the next field, if that is a message of field number 1 that
    /// consists of these two, and all three lengths are one byte. Otherwise nothing is consumed.
    #[inline(always)]
    pub fn take_short_pair(&mut self) -> Option<(&'a [u8], &'a [u8])> {
        let (head, body) = self.rest.split_first_chunk()?;
        let [_, len, _, first_len] = *head;
        // `0a len 0a len`, compared as one word.
        if u32::from_le_bytes(*head) & 0x80ff_80ff != 0x000a_000a {
            return None;
        }
        let (pair, rest) = body.split_at_checked(usize::from(len).checked_sub(2)?)?;
        let (first, second) = pair.split_at_checked(usize::from(first_len))?;
        let (&[tag, second_len], second) = second.split_first_chunk()?;
        if tag != 0x12 || usize::from(second_len) != second.len() {
            return None;
        }
        self.rest = rest;
        Some((first, second))
    }

    #[inline(never)]
    fn take_field_slow(&mut self) -> Option<&'a [u8]> {
        let mut after = WireReader { rest: self.rest.get(1..)?, ..*self };
        let bytes = after.len_delimited().ok()?;
        *self = after;
        Some(bytes)
    }

    /// Returns the next field of the message, or `None` at its end. Skips the content of groups.
    #[inline(always)]
    #[expect(
        clippy::should_implement_trait,
        reason = "it returns faults, and is called for one field at a time"
    )]
    pub fn next(&mut self) -> Result<Option<(u32, WireValue<'a>)>, Fault> {
        if self.rest.is_empty() {
            return Ok(None);
        }
        let before = self.rest;
        let (number, wire_type) = self.tag()?;
        match wire_type {
            4 => Err(self.fault_at(before, WireError::GroupEnd)),
            _ => Ok(Some((number, self.value(number, wire_type)?))),
        }
    }

    #[inline]
    fn value(&mut self, number: u32, wire_type: u8) -> Result<WireValue<'a>, Fault> {
        match wire_type {
            0 => self.varint().map(WireValue::Varint),
            1 => self.fixed::<8>().map(WireValue::Fixed64),
            2 => self.len_delimited().map(WireValue::Len),
            3 => self.skip_group(number).map(|()| WireValue::Group),
            5 => self.fixed::<4>().map(WireValue::Fixed32),
            _ => Err(self.fault(WireError::WireType)),
        }
    }

    /// Reads a tag: the field number (1 to 2^29 - 1) and the wire type.
    #[inline]
    fn tag(&mut self) -> Result<(u32, u8), Fault> {
        let before = self.rest;
        let tag = self.short(WireError::BadTag)?;
        let Ok(tag) = u32::try_from(tag) else { return Err(self.fault_at(before, WireError::BadTag)) };
        match tag >> 3 {
            0 => Err(self.fault_at(before, WireError::FieldZero)),
            number => Ok((number, (tag & 7) as u8)),
        }
    }

    /// Reads a varint of at most five bytes.
    #[inline]
    #[expect(clippy::arithmetic_side_effects, reason = "`self.rest` is a suffix of `before`")]
    fn short(&mut self, too_long: WireError) -> Result<u64, Fault> {
        let before = self.rest;
        let value = self.varint()?;
        if before.len() - self.rest.len() > MAX_SHORT {
            return Err(self.fault_at(before, too_long));
        }
        Ok(value)
    }

    /// Reads a varint of at most ten bytes. Bits beyond 64 in the tenth byte are dropped.
    #[inline]
    pub fn varint(&mut self) -> Result<u64, Fault> {
        match *self.rest {
            [a, ref rest @ ..] if a < 0x80 => {
                self.rest = rest;
                Ok(u64::from(a))
            }
            [a, b, ref rest @ ..] if b < 0x80 => {
                self.rest = rest;
                Ok(u64::from(a & 0x7f) | u64::from(b) << 7)
            }
            _ => self.varint_slow(),
        }
    }

    fn varint_slow(&mut self) -> Result<u64, Fault> {
        let Some((value, rest)) = varint::first::<MAX_VARINT>(self.rest) else {
            let cut = self.rest.len() < MAX_VARINT;
            return Err(self.fault(if cut { WireError::CutVarint } else { WireError::LongVarint }));
        };
        self.rest = rest;
        Ok(value)
    }

    #[inline]
    fn fixed<const N: usize>(&mut self) -> Result<[u8; N], Fault> {
        let Some((&value, rest)) = self.rest.split_first_chunk::<N>() else {
            return Err(self.fault(WireError::CutFixed));
        };
        self.rest = rest;
        Ok(value)
    }

    /// Reads a length, and returns that many bytes.
    #[inline]
    pub fn len_delimited(&mut self) -> Result<&'a [u8], Fault> {
        let before = self.rest;
        let len = self.short(WireError::BadLength)?;
        if len > MAX_LEN {
            return Err(self.fault_at(before, WireError::BadLength));
        }
        let Some((bytes, rest)) = self.rest.split_at_checked(len as usize) else {
            return Err(self.fault_at(before, WireError::LengthBeyondMessage));
        };
        self.rest = rest;
        Ok(bytes)
    }

    /// Skips a group and its content, after its start tag was read.
    #[cold]
    fn skip_group(&mut self, number: u32) -> Result<(), Fault> {
        if self.depth >= MAX_DEPTH {
            return Err(self.fault(WireError::TooDeep));
        }
        self.depth = self.depth.saturating_add(1);
        loop {
            if self.rest.is_empty() {
                return Err(self.fault(WireError::GroupOpen));
            }
            let before = *self;
            match self.tag()? {
                (end, 4) if end == number => break,
                (_, 4) => return Err(before.fault(WireError::GroupEnd)),
                (inner, wire_type) => self.value(inner, wire_type).map(drop)?,
            }
        }
        self.depth = self.depth.saturating_sub(1);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(message: &[u8]) -> Result<Vec<(u32, WireValue<'_>)>, WireError> {
        let mut reader = WireReader::new(message);
        let mut fields = Vec::new();
        loop {
            match reader.next() {
                Ok(Some(field)) => fields.push(field),
                Ok(None) => return Ok(fields),
                Err(fault) => return Err(fault.kind),
            }
        }
    }

    #[test]
    fn fields_of_every_wire_type() {
        let message = [
            0x08, 0x96, 0x01, // 1: varint 150
            0x11, 1, 2, 3, 4, 5, 6, 7, 8, // 2: eight bytes
            0x1a, 0x02, b'h', b'i', // 3: length-delimited
            0x23, 0x08, 0x01, 0x24, // 4: a group with a field
            0x2d, 1, 2, 3, 4, // 5: four bytes
        ];
        let want = [
            (1, WireValue::Varint(150)),
            (2, WireValue::Fixed64([1, 2, 3, 4, 5, 6, 7, 8])),
            (3, WireValue::Len(b"hi")),
            (4, WireValue::Group),
            (5, WireValue::Fixed32([1, 2, 3, 4])),
        ];
        assert_eq!(all(&message).unwrap(), want);
    }

    #[test]
    fn malformed_messages() {
        use WireError::*;
        let long = [vec![0x08], vec![0xff; 10], vec![0x01]].concat();
        for (message, want) in [
            (&[0x08][..], CutVarint),
            (&[0x08, 0x80], CutVarint),
            (&long, LongVarint),
            (&[0x00, 0x00], FieldZero),
            (&[0x0e], WireType),
            (&[0x0f], WireType),
            (&[0x8a, 0x80, 0x80, 0x80, 0x80, 0x00, 0x00], BadTag),
            (&[0xfa, 0xff, 0xff, 0xff, 0x1f, 0x00], BadTag),
            (&[0x0a, 0x01], LengthBeyondMessage),
            (&[0x0a, 0x80, 0x80, 0x80, 0x80, 0x80, 0x00], BadLength),
            (&[0x0a, 0xff, 0xff, 0xff, 0xff, 0x0f], BadLength),
            (&[0x09, 1, 2, 3], CutFixed),
            (&[0x0d, 1], CutFixed),
            (&[0x0c], GroupEnd),
            (&[0x0b, 0x14], GroupEnd),
            (&[0x0b], GroupOpen),
        ] {
            assert_eq!(all(message), Err(want), "{message:02x?}");
        }
    }

    #[test]
    fn keys_are_compared_in_all_bytes() {
        for len in 0..70 {
            let key: Vec<u8> = (0..len).collect();
            assert!(keys_equal(&key, &key.clone()));
            assert!(!keys_equal(&key, &[&key[..], b"x"].concat()));
            for at in 0..key.len() {
                let mut other = key.clone();
                other[at] ^= 0x10;
                assert!(!keys_equal(&key, &other), "byte {at} of {len}");
            }
        }
    }

    #[test]
    fn varints_at_their_limits() {
        for (bytes, want) in [
            (&[0x08, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01][..], u64::MAX),
            // Bits beyond 64 in the tenth byte are dropped.
            (&[0x08, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f], u64::MAX),
            (&[0x08, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x7e], 0),
            (&[0x88, 0x00, 0x81, 0x80, 0x00], 1),
        ] {
            assert_eq!(all(bytes).unwrap(), [(1, WireValue::Varint(want))]);
        }
    }

    #[test]
    fn groups_nest_at_most_100_levels() {
        let groups = |n: usize| [vec![0x0b; n], vec![0x0c; n]].concat();
        assert_eq!(all(&groups(100)).unwrap(), [(1, WireValue::Group)]);
        assert_eq!(all(&groups(101)), Err(WireError::TooDeep));
        assert_eq!(all(&groups(1_000_000)), Err(WireError::TooDeep));
    }

    #[test]
    fn faults_have_offsets() {
        let message = [0x08, 0x01, 0x0a, 0x05, 0x00];
        let mut reader = WireReader::new(&message);
        reader.next().unwrap();
        assert_eq!(reader.next().unwrap_err().offset, 3);
    }

    #[test]
    fn positions_are_offsets_in_the_payload() {
        // Field 1 has two bytes. Field 2 is a message: its field 1 has one byte, and then the message ends
        // inside a field.
        let payload = [0x0a, 0x02, b'h', b'i', 0x12, 0x05, 0x0a, 0x01, b'x', 0x0a, 0x07];
        let mut reader = WireReader::new(&payload);
        let Ok(Some((1, WireValue::Len(first)))) = reader.next() else { panic!() };
        assert_eq!((reader.start_of(first), reader.position()), (2, 4));
        let Ok(Some((2, WireValue::Len(message)))) = reader.next() else { panic!() };
        let mut nested = reader.nested(message);
        assert_eq!((nested.position(), nested.depth), (6, 1));
        let Ok(Some((1, WireValue::Len(inner)))) = nested.next() else { panic!() };
        assert_eq!(nested.start_of(inner), 8);
        assert_eq!(nested.next().unwrap_err().offset, 10);
        assert_eq!(Fault::new(WireError::BadTag, 3).offset_by(4).offset, 7);
    }
}
