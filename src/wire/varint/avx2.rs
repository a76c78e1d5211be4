//! Packed varints by blocks of 64 bytes, with the vector instructions of AVX2 and the bit instructions beside them.
//!
//! Two `movemask` tell of 64 bytes which of them end a value. From there on no branch and no load waits for a value's
//! length: the starts and ends of the values are the set bits of one word.
//!
//! Measured (`benches/varint.rs`): four to seven times the safe twin, [`decode_slow`](super::slow::decode_slow), and
//! 1.6 times where all values have one byte. For counting, 1.6 to 8 times
//! [`count_slow`](super::slow::count_slow). Reads and writes go through slices and arrays alone; what is unsafe is to
//! run these instructions at all.

#![allow(unsafe_code)]

use super::slow::{MAX_VARINT, decode_slow};
use std::arch::x86_64::*;

/// Bytes that are looked at together, and the most values they hold.
const BLOCK: usize = 64;
/// A block, and what the loads of a value that starts in it may touch.
const WINDOW: usize = BLOCK + 16;

/// The seven bits of each byte that a value of up to eight bytes has in its first word, by its length.
static LOW: [u64; 16] = payload_bits(0);
/// The same of its second word.
static HIGH: [u64; 16] = payload_bits(8);

const fn payload_bits(from: usize) -> [u64; 16] {
    let mut table = [0; 16];
    let mut len = 1;
    while len <= MAX_VARINT {
        let mut byte = from;
        while byte < len && byte < from + 8 {
            table[len] |= 0x7f << (8 * (byte - from));
            byte += 1;
        }
        len += 1;
    }
    table
}

/// Which bytes make up the two values that start a word, as four bytes each, by the word's mask of ends: a control of
/// `pshufb`, which writes 0 where the control's high bit is set. Two values of up to four bytes, so 2 KiB. A table of
/// twelve bits and four values has 64 KiB, and each step of it waits for the one before: a tenth faster on ids of two to
/// three bytes, a quarter slower on ids of one to two.
static PAIRS: [u64; 256] = {
    let mut table = [0; 256];
    let mut ends = 0;
    while ends < 256 {
        let (mut at, mut value) = (0, 0);
        while value < 2 {
            let (mut k, mut ended) = (0, false);
            while k < 4 {
                let source = if ended || at >= 8 { 0x80 } else { at as u64 };
                table[ends] |= source << (8 * (4 * value + k));
                if !ended && at < 8 {
                    ended = ends >> at & 1 == 1;
                    at += 1;
                }
                k += 1;
            }
            value += 1;
        }
        ends += 1;
    }
    table
};

/// Proof that this processor has the instructions below: only `detect` makes one.
#[derive(Clone, Copy)]
pub(super) struct Masked {
    /// Whether `pext` is an instruction, and not a program of some 250 cycles.
    pext: bool,
}

impl Masked {
    #[inline]
    pub(super) fn detect() -> Option<Masked> {
        let all = is_x86_feature_detected!("avx2")
            && is_x86_feature_detected!("bmi1")
            && is_x86_feature_detected!("bmi2")
            && is_x86_feature_detected!("lzcnt")
            && is_x86_feature_detected!("popcnt");
        // AMD's Zen 1 and 2, and Hygon's, have `pext` in microcode. AMD's processors are those with SSE4a, and Zen 3 is
        // the first of them with VAES. Where a hypervisor hides VAES, no more is lost than some speed.
        let slow_pext = || is_x86_feature_detected!("sse4a") && !is_x86_feature_detected!("vaes");
        all.then(|| Masked { pext: !slow_pext() })
    }

    /// For the tests: the way of the processors with a slow `pext`.
    #[cfg(test)]
    pub(super) fn without_pext(self) -> Masked {
        Masked { pext: false }
    }

    /// As [`decode`](super::decode).
    #[inline]
    pub(super) fn decode(self, chunk: &[u8], out: &mut [i64]) -> usize {
        // SAFETY: the only demand of `decode` is that the processor has its target features. `self` exists, so `detect`
        // has found all of them.
        unsafe { if self.pext { decode::<true>(chunk, out) } else { decode::<false>(chunk, out) } }
    }

    /// The number of values, or `None` if any is longer than ten bytes or cut off.
    #[inline]
    pub(super) fn count(self, chunk: &[u8]) -> Option<usize> {
        // SAFETY: as in `decode`.
        unsafe { count(chunk) }
    }
}

/// The bytes of a block that end no value.
#[inline]
#[target_feature(enable = "avx2")]
fn continuations(block: &[u8; BLOCK]) -> u64 {
    let [low, high]: [__m256i; 2] = bytemuck::cast(*block);
    u64::from(_mm256_movemask_epi8(low) as u32) | u64::from(_mm256_movemask_epi8(high) as u32) << 32
}

#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
fn decode<const PEXT: bool>(chunk: &[u8], out: &mut [i64]) -> usize {
    let (mut rest, mut done) = (chunk, 0);
    // The blocks that are whole, with room for as many values as they could hold. Three values or more follow each, and
    // overwrite what it leaves behind its last.
    while rest.len() >= BLOCK + 3 * MAX_VARINT
        && let Some(window) = rest.first_chunk::<WINDOW>()
        && let Some(to) = out[done..].first_chunk_mut::<BLOCK>()
    {
        let ends = !continuations(block_of(window));
        if !block::<PEXT>(window, ends, to) {
            return done + decode_slow(rest, &mut out[done..]);
        }
        done += ends.count_ones() as usize;
        rest = &rest[BLOCK - ends.leading_zeros() as usize..];
    }
    // The others, by way of copies that have the size.
    let mut to = [0; BLOCK];
    while !rest.is_empty() && done < out.len() {
        let mut copy = [0; WINDOW];
        let window = rest.first_chunk::<WINDOW>().unwrap_or_else(|| {
            copy[..rest.len()].copy_from_slice(rest);
            &copy
        });
        let behind = if rest.len() < BLOCK { u64::MAX << rest.len() } else { 0 };
        let ends = !continuations(block_of(window)) & !behind;
        if !block::<PEXT>(window, ends, &mut to) {
            return done + decode_slow(rest, &mut out[done..]);
        }
        let values = &to[..ends.count_ones() as usize];
        let to = &mut out[done..];
        let n = values.len().min(to.len());
        to[..n].copy_from_slice(&values[..n]);
        done += n;
        rest = &rest[BLOCK - ends.leading_zeros() as usize..];
    }
    done
}

/// Decodes the values that end in a block. False, with nothing said of `out`, if none does or one is too long: bytes that
/// have changed since they were counted.
#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
fn block<const PEXT: bool>(window: &[u8; WINDOW], ends: u64, out: &mut [i64; BLOCK]) -> bool {
    if ends == u64::MAX {
        for (to, &byte) in out.iter_mut().zip(window) {
            *to = i64::from(byte);
        }
        return true;
    }
    // Bit i of `runs_n`: bytes i to i + n - 1 end no value. What follows the last end is the next block's.
    let Some(shift) = 63u32.checked_sub(ends.leading_zeros()) else { return false };
    let runs_1 = !ends & !(u64::MAX << shift);
    let runs_2 = runs_1 & runs_1 >> 1;
    let runs_4 = runs_2 & runs_2 >> 2;
    if runs_4 == 0 {
        short(window, ends, out);
        return true;
    }
    let runs_8 = runs_4 & runs_4 >> 4;
    if runs_8 == 0 {
        long::<PEXT, false>(window, ends, out);
        return true;
    }
    if runs_8 & runs_2 >> 8 != 0 {
        return false;
    }
    long::<PEXT, true>(window, ends, out);
    true
}

/// The first block of a window, which is longer: the compiler sees that there is one.
#[inline]
fn block_of(window: &[u8; WINDOW]) -> &[u8; BLOCK] {
    window.first_chunk().unwrap_or(&[0; BLOCK])
}

/// Eight bytes of a window. All callers stay below its end by a remainder, so the compiler leaves the other branch out.
#[inline]
fn eight(window: &[u8; WINDOW], at: usize) -> u64 {
    window.get(at..).and_then(|rest| rest.first_chunk()).map_or(0, |bytes| u64::from_le_bytes(*bytes))
}

/// The word at a byte of the block.
#[inline]
fn word(window: &[u8; WINDOW], at: u32) -> u64 {
    // No start is 64 or more but that behind a block's last value.
    let at = at as usize % BLOCK;
    eight(window, at)
}

/// Values of up to four bytes, four at a time. What is written behind the last is of no meaning.
#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
fn short(window: &[u8; WINDOW], ends: u64, out: &mut [i64; BLOCK]) {
    let (mut left, mut start) = (ends, 0);
    for to in out.as_chunks_mut::<4>().0 {
        if left == 0 {
            break;
        }
        let (a, first) = (word(window, start), PAIRS[usize::from(ends.wrapping_shr(start) as u8)]);
        left = _blsr_u64(left);
        start = left.trailing_zeros() + 1;
        left = _blsr_u64(left);
        let (b, second) = (word(window, start), PAIRS[usize::from(ends.wrapping_shr(start) as u8)]);
        left = _blsr_u64(left);
        start = left.trailing_zeros() + 1;
        left = _blsr_u64(left);

        let bytes = _mm_and_si128(_mm_set_epi64x(b as i64, a as i64), _mm_set1_epi8(0x7f));
        let which = _mm_or_si128(_mm_set_epi64x(second as i64, first as i64), _mm_set_epi64x(EIGHTS, 0));
        let bytes = _mm_shuffle_epi8(bytes, which);
        // Two and two bytes, then two and two pairs: b0 + 2^7 b1, and that + 2^14 of the next.
        let pairs = _mm_maddubs_epi16(_mm_set1_epi16(0x8001_u16 as i16), bytes);
        let values = _mm_madd_epi16(pairs, _mm_set1_epi32(0x4000_0001));
        *to = bytemuck::cast(_mm256_cvtepu32_epi64(values));
    }
}

/// The second half of the register.
const EIGHTS: i64 = 0x0808_0808_0808_0808;

/// Values of up to eight or, if `TEN`, ten bytes. What is written behind the last is of no meaning.
#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
fn long<const PEXT: bool, const TEN: bool>(window: &[u8; WINDOW], ends: u64, out: &mut [i64; BLOCK]) {
    let (mut left, mut start) = (ends, 0);
    for to in out.as_chunks_mut::<2>().0 {
        if left == 0 {
            break;
        }
        for to in to {
            let next = left.trailing_zeros() + 1;
            left = _blsr_u64(left);
            let len = next.wrapping_sub(start) as usize % 16;
            let mut value = gather::<PEXT>(word(window, start), LOW[len]);
            if TEN {
                let at = start as usize % BLOCK + 8;
                let high = eight(window, at);
                value |= gather::<PEXT>(high, HIGH[len]) << 56;
            }
            *to = value as i64;
            start = next;
        }
    }
}

/// The bits of `word` under a mask of seven bits a byte, side by side.
#[inline]
#[target_feature(enable = "bmi2")]
fn gather<const PEXT: bool>(word: u64, mask: u64) -> u64 {
    if PEXT {
        return _pext_u64(word, mask);
    }
    let x = word & mask;
    let x = (x & 0x7f00_7f00_7f00_7f00) >> 1 | x & 0x007f_007f_007f_007f;
    let x = (x & 0x3fff_0000_3fff_0000) >> 2 | x & 0x0000_3fff_0000_3fff;
    (x & 0x0fff_ffff_0000_0000) >> 4 | x & 0x0fff_ffff
}

#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
fn count(chunk: &[u8]) -> Option<usize> {
    let (blocks, tail) = chunk.as_chunks::<BLOCK>();
    let (mut count, mut too_long, mut before) = (0, 0, Runs::default());
    let mut add = |block: &[u8; BLOCK]| {
        let open = continuations(block);
        too_long |= before.ten_at(open);
        open.count_zeros() as usize
    };
    for block in blocks {
        count += add(block);
    }
    if !tail.is_empty() {
        let mut copy = [0; BLOCK];
        copy[..tail.len()].copy_from_slice(tail);
        count += add(&copy) - (BLOCK - tail.len());
    }
    let whole = chunk.last().is_none_or(|&byte| byte < 0x80);
    (whole && too_long == 0).then_some(count)
}

/// What the next block must know of this one: bit i says that a run of one, two or four continuations ends at byte i.
#[derive(Default)]
struct Runs(u64, u64, u64);

impl Runs {
    /// Where runs of ten end.
    #[inline]
    fn ten_at(&mut self, one: u64) -> u64 {
        let two = one & (one << 1 | self.0 >> 63);
        let four = two & (two << 2 | self.1 >> 62);
        let eight = four & (four << 4 | self.2 >> 60);
        let ten = eight & (two << 8 | self.1 >> 56);
        *self = Runs(one, two, four);
        ten
    }
}
