//! The transform without vector instructions, which the compiler finds in its loops.
//!
//! Products are of numbers of 16 bits, which vectors multiply in one instruction. So a factor may be a sum of
//! the definition's factors.

use super::pair::BlockPair;

/// Returns `a * x + b * y`.
#[inline(always)]
pub(super) fn times(a: i16, b: i16, x: i16, y: i16) -> i32 {
    (i32::from(a) * i32::from(x)).wrapping_add(i32::from(b) * i32::from(y))
}

/// Drops `bits` bits of a number, which is rounded.
#[inline(always)]
pub(super) fn round(a: i32, bits: u32) -> i16 {
    (a.wrapping_add(1 << (bits - 1)) >> bits).clamp(i16::MIN.into(), i16::MAX.into()) as i16
}

/// One dimension of the transform, of the first `N` columns. Drops `bits` bits of the results.
#[inline(always)]
fn transform<const N: usize>(rows: &[[i16; 8]; 8], bits: u32) -> [[i16; 8]; 8] {
    let mut out = [[0; 8]; 8];
    for i in 0..N {
        let [r0, r1, r2, r3, r4, r5, r6, r7] =
            [rows[0][i], rows[1][i], rows[2][i], rows[3][i], rows[4][i], rows[5][i], rows[6][i], rows[7][i]];
        let t3 = times(r2, r6, 4433 + 6270, 4433);
        let t2 = times(r2, r6, 4433, 4433 - 15137);
        let t0 = i32::from(r0.wrapping_add(r4)) << 13;
        let t1 = i32::from(r0.wrapping_sub(r4)) << 13;
        let even = [t0.wrapping_add(t3), t1.wrapping_add(t2), t1.wrapping_sub(t2), t0.wrapping_sub(t3)];
        let a = r7.wrapping_add(r3);
        let b = r5.wrapping_add(r1);
        let z3 = times(a, b, 9633 - 16069, 9633);
        let z4 = times(a, b, 9633, 9633 - 3196);
        let odd = [
            times(r7, r1, -7373, 12299 - 7373).wrapping_add(z4),
            times(r5, r3, -20995, 25172 - 20995).wrapping_add(z3),
            times(r5, r3, 16819 - 20995, -20995).wrapping_add(z4),
            times(r7, r1, 2446 - 7373, -7373).wrapping_add(z3),
        ];
        out[0][i] = round(even[0].wrapping_add(odd[0]), bits);
        out[1][i] = round(even[1].wrapping_add(odd[1]), bits);
        out[2][i] = round(even[2].wrapping_add(odd[2]), bits);
        out[3][i] = round(even[3].wrapping_add(odd[3]), bits);
        out[4][i] = round(even[3].wrapping_sub(odd[3]), bits);
        out[5][i] = round(even[2].wrapping_sub(odd[2]), bits);
        out[6][i] = round(even[1].wrapping_sub(odd[1]), bits);
        out[7][i] = round(even[0].wrapping_sub(odd[0]), bits);
    }
    out
}

#[inline(always)]
fn transpose(rows: &[[i16; 8]; 8]) -> [[i16; 8]; 8] {
    let mut out = [[0; 8]; 8];
    for (i, out) in out.iter_mut().enumerate() {
        *out =
            [rows[0][i], rows[1][i], rows[2][i], rows[3][i], rows[4][i], rows[5][i], rows[6][i], rows[7][i]];
    }
    out
}

/// Returns the rows of samples of two blocks.
#[inline(always)]
pub(super) fn samples_of_pair(pair: &BlockPair<'_>) -> [[u8; 16]; 8] {
    let left = samples(pair.left, pair.table, pair.small);
    let right = samples(pair.right, pair.table, pair.small);
    let mut out = [[0; 16]; 8];
    for ((out, left), right) in out.iter_mut().zip(left).zip(right) {
        out[..8].copy_from_slice(&left);
        out[8..].copy_from_slice(&right);
    }
    out
}

/// Returns the rows of samples of a block of coefficients. `small`: the last four columns are 0.
pub(super) fn samples(block: &[i16; 64], table: &[i16; 64], small: bool) -> [[u8; 8]; 8] {
    let mut rows = [[0; 8]; 8];
    for (v, row) in rows.iter_mut().enumerate() {
        for (i, value) in row.iter_mut().enumerate() {
            *value = block[v * 8 + i].wrapping_mul(table[v * 8 + i]);
        }
    }
    let columns = if small { transform::<4>(&rows, 11) } else { transform::<8>(&rows, 11) };
    let rows = transpose(&transform::<8>(&transpose(&columns), 18));
    let mut out = [[0; 8]; 8];
    for (row, out) in rows.iter().zip(&mut out) {
        for (sample, out) in row.iter().zip(out) {
            *out = (sample.clamp(&-128, &127) + 128) as u8;
        }
    }
    out
}
