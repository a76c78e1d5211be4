//! The inverse cosine transform, with the arithmetic of libjpeg's accurate one, so that pixels are equal.

#[cfg(any(test, not(target_arch = "x86_64")))]
mod portable;
#[cfg(target_arch = "x86_64")]
mod sse2;

#[cfg(not(target_arch = "x86_64"))]
use portable::samples;
#[cfg(target_arch = "x86_64")]
use sse2::samples;

/// Writes the 64 samples of a block of coefficients to the rows of a plane, `stride` apart, that begin with
/// `out`.
#[inline(always)]
pub(super) fn write_block(block: &[i16; 64], table: &[i16; 64], out: &mut [u8], stride: usize) {
    for (row, out) in samples(block, table).iter().zip(out.chunks_mut(stride)) {
        out[..8].copy_from_slice(row);
    }
}

/// Writes the samples of a block whose first coefficient is the only one.
#[inline(always)]
pub(super) fn write_flat(first: i16, table: &[i16; 64], out: &mut [u8], stride: usize) {
    let level = i32::from(first.wrapping_mul(table[0])) * 4;
    let level = (level.clamp(i16::MIN.into(), i16::MAX.into()) + 16) >> 5;
    let level = (level.clamp(-128, 127) + 128) as u8;
    for row in out.chunks_mut(stride).take(8) {
        row[..8].fill(level);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flat_block_is_that_of_the_transform() {
        for first in (i16::MIN..i16::MAX).step_by(3) {
            let mut block = [0; 64];
            block[0] = first;
            let mut a = [1; 64];
            let mut b = [2; 64];
            write_block(&block, &[1; 64], &mut a, 8);
            write_flat(first, &[1; 64], &mut b, 8);
            assert_eq!(a, b);
        }
    }

    /// Random coefficients: small ones, and any.
    fn blocks(wide: bool) -> impl Iterator<Item = [i16; 64]> {
        let mut state = 1_u32;
        (0..2000).map(move |_| {
            std::array::from_fn(|_| {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                let value = (state >> 16) as i16;
                if wide { value } else { value >> 10 }
            })
        })
    }

    #[test]
    fn vectors_agree_with_single_numbers() {
        for wide in [false, true] {
            let table: Vec<[i16; 64]> = blocks(wide).take(1).collect();
            for block in blocks(wide) {
                assert_eq!(samples(&block, &table[0]), portable::samples(&block, &table[0]));
            }
        }
    }

    /// The transform by its definition, in floating point.
    #[test]
    fn samples_are_near_those_of_the_definition() {
        for block in blocks(false).take(200) {
            let mut found = [0; 64];
            write_block(&block, &[1; 64], &mut found, 8);
            for y in 0..8_u8 {
                for x in 0..8_u8 {
                    let scale = |k: u8| if k == 0 { 0.5_f64.sqrt() } else { 1.0 };
                    let wave = |k: u8, at: u8| {
                        (f64::from(2 * at + 1) * f64::from(k) * std::f64::consts::PI / 16.0).cos()
                    };
                    let terms = (0..8_u8).flat_map(|v| (0..8_u8).map(move |u| (u, v)));
                    let sum: f64 = terms
                        .map(|(u, v)| {
                            let c = f64::from(block[usize::from(v * 8 + u)]);
                            scale(u) * scale(v) * c * wave(u, x) * wave(v, y)
                        })
                        .sum();
                    let exact = (sum / 4.0 + 128.0).clamp(0.0, 255.0);
                    assert!((exact - f64::from(found[usize::from(y * 8 + x)])).abs() < 0.6);
                }
            }
        }
    }
}
