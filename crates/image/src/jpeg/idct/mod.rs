//! The inverse cosine transform, with the arithmetic of libjpeg's accurate one, so that pixels are equal.

#![allow(unsafe_code)]

#[cfg(target_arch = "x86_64")]
mod avx2;
mod pair;
mod portable;
mod reduced;

pub(super) use pair::{BlockPair, write_rows};

/// Writes the samples of two blocks to the rows that begin with `out`, `stride` apart. `size` is the number of a
/// block's samples in a row and in a column: 8, or reduced to 4 or 2.
#[inline(always)]
pub(super) fn write_samples(pair: &BlockPair<'_>, size: usize, out: &mut [u8], stride: usize) {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx2") {
        // SAFETY: the function requires only that the processor has AVX2, which was detected.
        return unsafe { avx2::write_samples(pair, size, out, stride) };
    }
    match size {
        8 => write_rows(&portable::samples_of_pair(pair), out, stride),
        4 => write_rows(&reduced::four(pair), out, stride),
        _ => write_rows(&reduced::two(pair), out, stride),
    }
}

/// Returns the sample of a block whose first coefficient is the only one.
#[inline(always)]
pub(super) fn flat(first: i16, table: &[i16; 64]) -> u8 {
    let level = i32::from(first.wrapping_mul(table[0])) * 4;
    let level = (level.clamp(i16::MIN.into(), i16::MAX.into()) + 16) >> 5;
    (level.clamp(-128, 127) + 128) as u8
}

/// Returns the mean of a block's samples. Far outside of their range it has its last ten bits, as in libjpeg.
#[inline(always)]
pub(super) fn mean(first: i16, table: &[i16; 64]) -> u8 {
    let level = (i32::from(first) * i32::from(table[0]) + 4) >> 3;
    let level = ((level + 512) & 1023) - 512;
    (level.clamp(-128, 127) + 128) as u8
}

#[cfg(test)]
mod tests {
    use super::portable::samples;
    use super::*;

    #[test]
    fn a_flat_block_is_that_of_the_transform() {
        for first in (i16::MIN..i16::MAX).step_by(if cfg!(miri) { 4001 } else { 3 }) {
            let mut block = [0; 64];
            block[0] = first;
            let want = flat(first, &[1; 64]);
            assert_eq!(samples(&block, &[1; 64], false), [[want; 8]; 8]);
            let pair = BlockPair { left: &block, right: &block, table: &[1; 64], small: false };
            assert_eq!(reduced::four(&pair), [[want; 8]; 4]);
            assert_eq!(reduced::two(&pair), [[want; 4]; 2]);
            if (-4096..4092).contains(&first) {
                assert_eq!(mean(first, &[1; 64]), want);
            }
        }
    }

    /// Random coefficients: small ones, and any.
    fn blocks(wide: bool) -> impl Iterator<Item = [i16; 64]> {
        let mut state = 1_u32;
        (0..if cfg!(miri) { 5 } else { 2000 }).map(move |_| {
            std::array::from_fn(|_| {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                let value = (state >> 16) as i16;
                if wide { value } else { value >> 10 }
            })
        })
    }

    #[test]
    fn vectors_agree_with_single_numbers() {
        for (wide, small) in [(false, false), (false, true), (true, false), (true, true)] {
            let mut all: Vec<[i16; 64]> = blocks(wide).collect();
            let table = all[0];
            for (k, c) in all.iter_mut().flat_map(|block| block.iter_mut().enumerate()) {
                if small && (k / 8 > 3 || k % 8 > 3) {
                    *c = 0;
                }
            }
            for two in all.windows(2) {
                let pair = BlockPair { left: &two[0], right: &two[1], table: &table, small };
                let want = portable::samples_of_pair(&pair);
                assert_eq!(want[0][8..], samples(&two[1], &table, false)[0]);
                let mut found = [0; 128];
                write_samples(&pair, 8, &mut found, 16);
                assert_eq!(found.as_chunks().0, want);
                write_samples(&pair, 4, &mut found, 8);
                assert_eq!(found.as_chunks().0[..4], reduced::four(&pair));
                write_samples(&pair, 2, &mut found, 4);
                assert_eq!(found.as_chunks().0[..2], reduced::two(&pair));
            }
        }
    }

    /// The transform by its definition, in floating point.
    fn exact(block: &[i16; 64], x: u8, y: u8) -> f64 {
        let scale = |k: u8| if k == 0 { 0.5_f64.sqrt() } else { 1.0 };
        let wave = |k: u8, at: u8| (f64::from(2 * at + 1) * f64::from(k) * std::f64::consts::PI / 16.0).cos();
        let terms = (0..8_u8).flat_map(|v| (0..8_u8).map(move |u| (u, v)));
        let sum: f64 = terms
            .map(|(u, v)| {
                let c = f64::from(block[usize::from(v * 8 + u)]);
                scale(u) * scale(v) * c * wave(u, x) * wave(v, y)
            })
            .sum();
        sum / 4.0 + 128.0
    }

    #[test]
    fn samples_are_near_those_of_the_definition() {
        for block in blocks(false).take(200) {
            let found = samples(&block, &[1; 64], false).concat();
            for y in 0..8_u8 {
                for x in 0..8_u8 {
                    let exact = exact(&block, x, y).clamp(0.0, 255.0);
                    assert!((exact - f64::from(found[usize::from(y * 8 + x)])).abs() < 0.6);
                }
            }
        }
    }

    #[test]
    fn reduced_samples_are_near_the_means_of_the_definition() {
        for block in blocks(false).take(200) {
            let pair = BlockPair { left: &[0; 64], right: &block, table: &[1; 64], small: false };
            let four = reduced::four(&pair).map(|row| row[4..].to_vec());
            let two = reduced::two(&pair).map(|row| row[2..].to_vec());
            let one = [vec![mean(block[0], &[1; 64])]];
            for (size, found) in [(4_u8, four.concat()), (2, two.concat()), (1, one.concat())] {
                let n = 8 / size;
                for (k, found) in (0..size * size).zip(found) {
                    let [left, top] = [k % size * n, k / size * n];
                    let of = (top..top + n).flat_map(|y| (left..left + n).map(move |x| (x, y)));
                    let sum: f64 = of.map(|(x, y)| exact(&block, x, y)).sum();
                    let exact = (sum / f64::from(n * n)).clamp(0.0, 255.0);
                    assert!((exact - f64::from(found)).abs() < 0.6, "{size}: {found}, {exact}");
                }
            }
        }
    }
}
