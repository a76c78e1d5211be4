//! Two blocks that are transformed together, and their samples.

/// Two neighbouring blocks of coefficients, row by row.
pub(crate) struct BlockPair<'a> {
    pub(crate) left: &'a [i16; 64],
    pub(crate) right: &'a [i16; 64],
    /// The quantization table.
    pub(crate) table: &'a [i16; 64],
    /// True if only coefficients in the first four rows and columns may differ from 0.
    pub(crate) small: bool,
}

/// Writes rows of samples.
#[inline(always)]
pub(crate) fn write_rows<const PAIR: usize>(rows: &[[u8; PAIR]], out: &mut [u8], stride: usize) {
    for (row, out) in rows.iter().zip(out.chunks_mut(stride)) {
        out[..PAIR].copy_from_slice(row);
    }
}
