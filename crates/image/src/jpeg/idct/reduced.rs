//! The inverse cosine transform to four or two samples in each dimension, without vector instructions. They are
//! the means of two or four neighbours, in libjpeg's arithmetic, so that pixels are equal.

use super::pair::BlockPair;
use super::portable::{round, times};

/// Returns the rows of samples of two blocks, with four samples of each.
#[inline(always)]
pub(super) fn four(pair: &BlockPair<'_>) -> [[u8; 8]; 4] {
    rows_of_pair(pair, 14, sums_of_four)
}

/// Returns the rows of samples of two blocks, with two samples of each.
#[inline(always)]
pub(super) fn two(pair: &BlockPair<'_>) -> [[u8; 4]; 2] {
    rows_of_pair(pair, 15, sums_of_two)
}

/// Returns four sums of the coefficients of a row or column, from the lowest on, with 14 bits below 1. The mean
/// of two samples has nothing of the fifth coefficient.
#[inline(always)]
fn sums_of_four([r0, r1, r2, r3, _, r5, r6, r7]: [i16; 8]) -> [i32; 4] {
    let mean = i32::from(r0) << 14;
    let even = times(r2, r6, 15137, -6270);
    let outer = times(r7, r5, -4176, -4926).wrapping_add(times(r3, r1, 7373, 20995));
    let inner = times(r7, r5, -1730, 11893).wrapping_add(times(r3, r1, -17799, 8697));
    let near = mean.wrapping_add(even);
    let far = mean.wrapping_sub(even);
    [near.wrapping_add(outer), far.wrapping_add(inner), far.wrapping_sub(inner), near.wrapping_sub(outer)]
}

/// Returns two sums of the coefficients of a row or column, with 15 bits below 1. The mean of four samples has
/// the first of the even coefficients only.
#[inline(always)]
fn sums_of_two([r0, r1, _, r3, _, r5, _, r7]: [i16; 8]) -> [i32; 2] {
    let mean = i32::from(r0) << 15;
    let odd = times(r7, r5, -5906, 6967).wrapping_add(times(r3, r1, -10426, 29692));
    [mean.wrapping_add(odd), mean.wrapping_sub(odd)]
}

/// Returns the rows of samples of two blocks, by sums with `bits` bits below 1.
#[inline(always)]
fn rows_of_pair<const N: usize, const PAIR: usize>(
    pair: &BlockPair<'_>,
    bits: u32,
    sums: impl Fn([i16; 8]) -> [i32; N],
) -> [[u8; PAIR]; N] {
    let mut out = [[0; PAIR]; N];
    for (block, at) in [(pair.left, 0), (pair.right, N)] {
        let mut values = [0; 64];
        for ((value, &coefficient), &step) in values.iter_mut().zip(block).zip(pair.table) {
            *value = coefficient.wrapping_mul(step);
        }
        let mut rows = [[0; 8]; N];
        for i in 0..8 {
            let v = &values[i..];
            let column = sums([v[0], v[8], v[16], v[24], v[32], v[40], v[48], v[56]]);
            for (row, sum) in rows.iter_mut().zip(column) {
                // Two more bits for the second dimension.
                row[i] = round(sum, bits - 2);
            }
        }
        for (row, out) in rows.into_iter().zip(&mut out) {
            for (sum, out) in sums(row).into_iter().zip(&mut out[at..]) {
                // These two, and three of the definition.
                *out = (round(sum, bits + 5).clamp(-128, 127) + 128) as u8;
            }
        }
    }
    out
}
