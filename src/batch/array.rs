//! Values of arrays: pooled memory by the width of their numbers.

use super::pool::{Buf, BufMut, BufPool};
use crate::error::{Result, TensorError};
use crate::tensor::{Element, TensorDType};
use std::collections::TryReserveError;

/// The values of a column of arrays, in the machine's byte order. A clone shares them.
#[derive(Clone, Debug)]
pub struct ArrayValues {
    dtype: TensorDType,
    bits: ArrayBits,
}

/// The bits of numbers, by their width. A complex number is two of half its size, real and imaginary, and a
/// bool is 0 or 1.
#[derive(Clone, Debug)]
pub enum ArrayBits {
    /// `int8`, `uint8` and `bool`.
    Bits8(Buf<u8>),
    /// `int16`, `uint16`, `float16` and `bfloat16`.
    Bits16(Buf<u16>),
    /// `int32`, `uint32`, `float32` and `complex64`.
    Bits32(Buf<u32>),
    /// `int64`, `uint64`, `float64` and `complex128`.
    Bits64(Buf<u64>),
}

/// Returns the numbers of an element: two of a complex number.
pub(super) fn numbers_of(dtype: TensorDType) -> usize {
    match dtype {
        TensorDType::Complex64 | TensorDType::Complex128 => 2,
        _ => 1,
    }
}

impl ArrayValues {
    /// Creates values of a dtype from the bits of their numbers.
    ///
    /// # Panics
    /// If the numbers of the dtype have another width.
    pub fn new(dtype: TensorDType, bits: ArrayBits) -> ArrayValues {
        assert_eq!(dtype.size(), Some(bits.width() * numbers_of(dtype)), "width of {dtype}");
        ArrayValues { dtype, bits }
    }

    /// Returns the type of the values.
    pub fn dtype(&self) -> TensorDType {
        self.dtype
    }

    /// Returns the bits of the values, for types that Rust does not have, such as `float16`.
    pub fn bits(&self) -> &ArrayBits {
        &self.bits
    }

    /// Returns the number of values. A complex number is one.
    pub fn len(&self) -> usize {
        self.bits.as_bytes().len() / (self.bits.width() * numbers_of(self.dtype))
    }

    /// Returns true if there are no values.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the values as a slice.
    ///
    /// # Errors
    /// [`TensorError::DType`] if they have another type.
    pub fn as_slice<T: Element>(&self) -> Result<&[T]> {
        let refused = TensorError::DType { expected: T::DTYPE.name(), found: self.dtype.name() };
        let values = (self.dtype == T::DTYPE).then(|| T::native(self.bits.as_bytes())).flatten();
        Ok(values.ok_or(refused)?)
    }
}

impl ArrayBits {
    /// Returns the bytes of a number.
    fn width(&self) -> usize {
        match self {
            ArrayBits::Bits8(_) => 1,
            ArrayBits::Bits16(_) => 2,
            ArrayBits::Bits32(_) => 4,
            ArrayBits::Bits64(_) => 8,
        }
    }

    /// Returns the numbers as bytes in the machine's order.
    fn as_bytes(&self) -> &[u8] {
        match self {
            ArrayBits::Bits8(values) => values,
            ArrayBits::Bits16(values) => bytemuck::cast_slice(values),
            ArrayBits::Bits32(values) => bytemuck::cast_slice(values),
            ArrayBits::Bits64(values) => bytemuck::cast_slice(values),
        }
    }
}

/// Memory of values that are appended.
pub(super) struct ArrayMemory {
    dtype: TensorDType,
    bits: BitsMemory,
    /// Number of numbers in the memory.
    used: usize,
}

enum BitsMemory {
    Bits8(BufMut<u8>),
    Bits16(BufMut<u16>),
    Bits32(BufMut<u32>),
    Bits64(BufMut<u64>),
}

impl ArrayMemory {
    /// Returns the bytes of all values.
    pub(super) fn bytes(&self) -> u64 {
        let width = self.dtype.size().unwrap_or(1) / numbers_of(self.dtype);
        self.used as u64 * width as u64
    }

    /// Appends the values with these bytes in this order, a whole number of them, and returns their number.
    /// There will be at most `max` values.
    ///
    /// # Errors
    /// There is not enough memory.
    pub(super) fn append(
        &mut self,
        bytes: &[u8],
        little_endian: bool,
        max: usize,
    ) -> Result<usize, TryReserveError> {
        let numbers = numbers_of(self.dtype);
        let max = max.saturating_mul(numbers);
        let native = little_endian == cfg!(target_endian = "little");
        let is_bool = self.dtype == TensorDType::Bool;
        let used = &mut self.used;
        let appended = match &mut self.bits {
            BitsMemory::Bits8(memory) => {
                append(memory, used, max, bytes, !is_bool, |byte| u8::from(byte != 0))
            }
            BitsMemory::Bits16(memory) => append(memory, used, max, bytes, native, u16::swap_bytes),
            BitsMemory::Bits32(memory) => append(memory, used, max, bytes, native, u32::swap_bytes),
            BitsMemory::Bits64(memory) => append(memory, used, max, bytes, native, u64::swap_bytes),
        };
        Ok(appended? / numbers)
    }
}

/// Appends the numbers with these bytes, changed unless they are wanted as they are. The copy of these has
/// the speed of memory; a change takes a fifth more of the time of a loader (`loader/arrays` in the benches).
/// Returns how many there are.
#[inline]
#[expect(clippy::indexing_slicing, reason = "`grow` makes room up to `end`")]
fn append<T: bytemuck::Pod>(
    memory: &mut BufMut<T>,
    used: &mut usize,
    max: usize,
    bytes: &[u8],
    as_is: bool,
    change: impl Fn(T) -> T,
) -> Result<usize, TryReserveError> {
    let count = bytes.len() / size_of::<T>();
    let end = *used + count;
    memory.grow(end, max.max(end), T::zeroed())?;
    let to = &mut memory.values[*used..end];
    if as_is && size_of_val(to) == bytes.len() {
        bytemuck::cast_slice_mut(to).copy_from_slice(bytes);
    } else {
        for (to, from) in to.iter_mut().zip(bytes.chunks_exact(size_of::<T>())) {
            *to = change(bytemuck::pod_read_unaligned(from));
        }
    }
    *used = end;
    Ok(count)
}

/// The pools of the memory of arrays.
#[derive(Default)]
pub(super) struct ArrayPools {
    bits8: BufPool<u8>,
    bits16: BufPool<u16>,
    bits32: BufPool<u32>,
    bits64: BufPool<u64>,
}

impl ArrayPools {
    /// Returns memory for values of this dtype, which are not strings.
    pub(super) fn take(&mut self, dtype: TensorDType) -> ArrayMemory {
        let bits = match dtype.size().map(|size| size / numbers_of(dtype)) {
            Some(8) => BitsMemory::Bits64(self.bits64.take()),
            Some(4) => BitsMemory::Bits32(self.bits32.take()),
            Some(2) => BitsMemory::Bits16(self.bits16.take()),
            _ => BitsMemory::Bits8(self.bits8.take()),
        };
        ArrayMemory { dtype, bits, used: 0 }
    }

    /// Shares the values.
    pub(super) fn freeze(&mut self, memory: ArrayMemory) -> ArrayValues {
        let ArrayMemory { dtype, bits, used } = memory;
        let bits = match bits {
            BitsMemory::Bits8(memory) => ArrayBits::Bits8(self.bits8.freeze(memory, used)),
            BitsMemory::Bits16(memory) => ArrayBits::Bits16(self.bits16.freeze(memory, used)),
            BitsMemory::Bits32(memory) => ArrayBits::Bits32(self.bits32.freeze(memory, used)),
            BitsMemory::Bits64(memory) => ArrayBits::Bits64(self.bits64.freeze(memory, used)),
        };
        ArrayValues::new(dtype, bits)
    }
}
