//! The entropy-coded data of a scan, as bytes without markers.

use super::bits::Bits;
use super::header::next_marker;
use crate::error::PictureFault;
use crate::memory::grow;

/// Bytes for which memory is taken at a time, because much else may follow the data in a file.
const PIECE: usize = 64 << 10;

/// The entropy-coded data of a scan, cut at restart markers. In a file a zero is stuffed behind each byte of
/// ones, so that it is no marker. Here it is not, so that bits are read without looking for it.
#[derive(Default)]
pub(super) struct EntropyData {
    /// The bytes of all parts, one after the other. What follows them is from earlier scans.
    bytes: Vec<u8>,
    /// Where each part ends.
    ends: Vec<usize>,
    /// The marker behind the last part.
    marker: Option<u8>,
}

impl EntropyData {
    /// Reads the data at `at`, up to a marker that is not the expected restart marker, or to the end of the
    /// last of `parts` parts. Returns the marker's position.
    pub(super) fn read(&mut self, file: &[u8], at: usize, parts: usize) -> Result<usize, PictureFault> {
        let rest = file.get(at..).ok_or(PictureFault::Truncated)?;
        self.ends.clear();
        let mut from = 0;
        let mut to = 0;
        loop {
            let piece = &rest[from..rest.len().min(from + PIECE)];
            // Words of eight bytes are written, and only some bytes of the last one count.
            let most = to + piece.len() + 8;
            if self.bytes.len() < most {
                grow(&mut self.bytes, most.max(2 * to).min(rest.len() + 8), 0)?;
            }
            let run = copy_run(piece, &mut self.bytes[to..]);
            from += run;
            to += run;
            if run == PIECE {
                continue;
            }
            match rest.get(from + 1) {
                Some(0) => {
                    self.bytes[to] = 0xff;
                    from += 2;
                    to += 1;
                }
                Some(_) if self.ends.len() + 1 < parts => {
                    let mut behind = from;
                    let number = (self.ends.len() % 8) as u8;
                    if next_marker(rest, &mut behind) != Ok(0xd0 + number) {
                        break;
                    }
                    self.ends.try_reserve(1)?;
                    self.ends.push(to);
                    from = behind;
                }
                _ => break,
            }
        }
        self.ends.try_reserve(1)?;
        self.ends.push(to);
        self.marker = next_marker(rest, &mut from.clone()).ok();
        Ok(at + from)
    }

    /// Returns the bits of a part. If there are fewer parts, the marker behind them is the wrong one.
    pub(super) fn part(&self, number: usize) -> Result<Bits<'_>, PictureFault> {
        let Some(&end) = self.ends.get(number) else {
            return Err(match self.marker {
                None | Some(0xd9) => PictureFault::Truncated,
                Some(_) => PictureFault::Corrupt("order of restart markers"),
            });
        };
        let start = if number == 0 { 0 } else { self.ends[number - 1] };
        Ok(Bits::new(&self.bytes, start, end))
    }
}

/// Copies the bytes before the first byte of ones, and returns their number. `to` is at least eight bytes
/// longer than they are.
#[inline]
fn copy_run(from: &[u8], to: &mut [u8]) -> usize {
    let mut n = 0;
    while let Some(word) = from[n..].first_chunk::<8>() {
        to[n..n + 8].copy_from_slice(word);
        let ones = bytes_of_ones(u64::from_le_bytes(*word));
        if ones != 0 {
            return n + ones.trailing_zeros() as usize / 8;
        }
        n += 8;
    }
    for &byte in from[n..].iter().take_while(|byte| **byte != 0xff) {
        to[n] = byte;
        n += 1;
    }
    n
}

/// Returns a word with a bit in the first byte of ones, from the lowest byte on, and maybe in bytes behind
/// it. It is 0 if there is none.
///
/// A byte of ones is a zero of the complement. Subtracting 1 from each byte sets the highest bit of a zero,
/// and of bytes above 128, which have it set before. Borrows change only bytes behind the first zero.
#[inline(always)]
fn bytes_of_ones(word: u64) -> u64 {
    (!word).wrapping_sub(0x0101_0101_0101_0101) & word & 0x8080_8080_8080_8080
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the bytes of each part.
    fn parts(data: &EntropyData) -> Vec<Vec<u8>> {
        let bytes_of = |number: usize| {
            let mut bits = data.part(number).unwrap();
            let mut bytes = Vec::new();
            loop {
                bits.fill();
                let byte = bits.take(8);
                if bits.is_overrun() {
                    return bytes;
                }
                bytes.push(byte as u8);
            }
        };
        (0..data.ends.len()).map(bytes_of).collect()
    }

    #[test]
    fn stuffed_bytes_are_removed_and_markers_end_the_data() {
        for tail in [&b""[..], b"\xff\xd9", b"\xff", b"\xff\xff\xd9"] {
            let mut file = vec![1, 2, 0xff, 0, 3, 4, 5, 6, 7, 8, 9, 10, 0xff, 0, 0xff, 0];
            let end = file.len();
            file.extend_from_slice(tail);
            let mut data = EntropyData::default();
            assert_eq!(data.read(&file, 1, 1), Ok(end));
            assert_eq!(parts(&data), [[2, 255, 3, 4, 5, 6, 7, 8, 9, 10, 255, 255]]);
        }
    }

    /// Each length of a run before a byte of ones, beside a loop over bytes.
    #[test]
    fn runs_end_before_the_first_byte_of_ones() {
        for n in 0..40 {
            for fill in [0, 0x7f, 0x80, 0xfe] {
                let mut from = vec![fill; 40];
                from[n] = 0xff;
                let mut to = vec![1; 48];
                assert_eq!(copy_run(&from, &mut to), n);
                assert_eq!(to[..n], from[..n]);
            }
        }
    }

    /// Data around the end of a piece, with and without bytes of ones there, before much else.
    #[test]
    #[cfg_attr(miri, ignore = "too slow under Miri")]
    fn memory_is_taken_for_the_data_alone() {
        for len in [PIECE - 1, PIECE, PIECE + 1, 2 * PIECE, 3 * PIECE + 7] {
            for ones in [None, Some(PIECE - 1), Some(PIECE)] {
                let ones = ones.filter(|at| *at < len);
                let wanted: Vec<u8> = (0..len).map(|i| if ones == Some(i) { 0xff } else { 7 }).collect();
                let mut file = wanted.clone();
                if let Some(at) = ones {
                    file.insert(at + 1, 0);
                }
                let end = file.len();
                file.extend_from_slice(b"\xff\xd9");
                file.resize(end + 100 * PIECE, 7);
                let mut data = EntropyData::default();
                assert_eq!(data.read(&file, 0, 1), Ok(end));
                assert!(parts(&data) == [wanted] && data.bytes.len() < 8 * PIECE, "{len} {ones:?}");
            }
        }
    }

    #[test]
    fn restart_markers_are_counted() {
        let file = b"a\xff\xd0b\xff\xff\xd1\xff\0\xff\xd3c\xff\xd9";
        let mut data = EntropyData::default();
        assert_eq!(data.read(file, 0, 1), Ok(1));
        assert_eq!(parts(&data), [b"a"]);
        assert_eq!(data.read(file, 0, 2), Ok(4));
        assert_eq!(parts(&data), [b"a", b"b"]);
        assert_eq!(data.read(file, 0, 9), Ok(9));
        assert_eq!(parts(&data), [b"a", b"b", b"\xff"]);
        assert_eq!(data.part(3).err(), Some(PictureFault::Corrupt("order of restart markers")));
        assert_eq!(data.read(&file[..9], 0, 9), Ok(9));
        assert_eq!(data.part(3).err(), Some(PictureFault::Truncated));
    }
}
