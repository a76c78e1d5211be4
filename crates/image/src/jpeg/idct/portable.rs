//! The transform without vector instructions, which the compiler may find itself.

use super::pair::BlockPair;

/// Eight numbers, for eight columns or rows.
type Lanes = [i32; 8];

/// Defines a function on each number. Loops are inlined in any case, unlike closures.
macro_rules! each {
    ($name:ident($($arg:ident: $type:ty),+), $i:ident => $value:expr) => {
        #[inline(always)]
        fn $name($($arg: $type),+) -> Lanes {
            let mut out = [0; 8];
            for $i in 0..8 {
                out[$i] = $value;
            }
            out
        }
    };
}

each!(add(a: Lanes, b: Lanes), i => a[i].wrapping_add(b[i]));
each!(sub(a: Lanes, b: Lanes), i => a[i].wrapping_sub(b[i]));
each!(times(a: Lanes, by: i32), i => a[i].wrapping_mul(by));
// Sums of 16 bits, as vectors have them.
each!(add_short(a: Lanes, b: Lanes), i => i32::from((a[i] as i16).wrapping_add(b[i] as i16)));
each!(sub_short(a: Lanes, b: Lanes), i => i32::from((a[i] as i16).wrapping_sub(b[i] as i16)));
each!(round(a: Lanes, bits: u32), i => {
    (a[i].wrapping_add(1 << (bits - 1)) >> bits).clamp(i16::MIN.into(), i16::MAX.into())
});
each!(dequantize(block: &[i16], table: &[i16]), i => i32::from(block[i].wrapping_mul(table[i])));

/// One dimension of the transform. Drops `bits` bits of the results.
#[inline(always)]
fn transform(row: [Lanes; 8], bits: u32) -> [Lanes; 8] {
    let z = times(add(row[2], row[6]), 4433);
    let t2 = add(z, times(row[6], -15137));
    let t3 = add(z, times(row[2], 6270));
    let t0 = times(add_short(row[0], row[4]), 1 << 13);
    let t1 = times(sub_short(row[0], row[4]), 1 << 13);
    let even = [add(t0, t3), add(t1, t2), sub(t1, t2), sub(t0, t3)];

    let z3 = add_short(row[7], row[3]);
    let z4 = add_short(row[5], row[1]);
    let z5 = times(add(z3, z4), 9633);
    let z1 = times(add(row[7], row[1]), -7373);
    let z2 = times(add(row[5], row[3]), -20995);
    let z3 = add(times(z3, -16069), z5);
    let z4 = add(times(z4, -3196), z5);
    let odd = [
        add(times(row[1], 12299), add(z1, z4)),
        add(times(row[3], 25172), add(z2, z3)),
        add(times(row[5], 16819), add(z2, z4)),
        add(times(row[7], 2446), add(z1, z3)),
    ];
    let mut out = [[0; 8]; 8];
    for k in 0..4 {
        out[k] = round(add(even[k], odd[k]), bits);
        out[7 - k] = round(sub(even[k], odd[k]), bits);
    }
    out
}

#[inline(always)]
fn transpose(rows: [Lanes; 8]) -> [Lanes; 8] {
    let mut out = [[0; 8]; 8];
    for i in 0..8 {
        for j in 0..8 {
            out[i][j] = rows[j][i];
        }
    }
    out
}

/// Returns the rows of samples of two blocks.
#[inline(always)]
pub(super) fn samples_of_pair(pair: &BlockPair<'_>) -> [[u8; 16]; 8] {
    let left = samples(pair.left, pair.table);
    let right = samples(pair.right, pair.table);
    let mut out = [[0; 16]; 8];
    for ((out, left), right) in out.iter_mut().zip(left).zip(right) {
        out[..8].copy_from_slice(&left);
        out[8..].copy_from_slice(&right);
    }
    out
}

/// Returns the rows of samples of a block of coefficients.
#[inline(always)]
pub(super) fn samples(block: &[i16; 64], table: &[i16; 64]) -> [[u8; 8]; 8] {
    let mut rows = [[0; 8]; 8];
    for (v, row) in rows.iter_mut().enumerate() {
        *row = dequantize(&block[v * 8..v * 8 + 8], &table[v * 8..v * 8 + 8]);
    }
    let rows = transpose(transform(transpose(transform(rows, 11)), 18));
    let mut out = [[0; 8]; 8];
    for (row, out) in rows.iter().zip(&mut out) {
        for (sample, out) in row.iter().zip(out) {
            *out = (sample.clamp(&-128, &127) + 128) as u8;
        }
    }
    out
}
