//! Arrays: numbers of one type that are appended, and values with a shape.

use std::ops::Range;
use tfseek::batch::{ArrayBits, ArrayValues, BytesColumn, RowSplits, SharedPool, Values};
use tfseek::{Result, TensorDType};

/// Numbers of one type, to which others are appended. Numbers of the types that lists have are of these, and
/// all others by their bits.
pub(crate) struct Numbers {
    dtype: TensorDType,
    pub(crate) bits: NumberBits,
}

pub(crate) enum NumberBits {
    Int64(Vec<i64>),
    Float32(Vec<f32>),
    Bits8(Vec<u8>),
    Bits16(Vec<u16>),
    Bits32(Vec<u32>),
    Bits64(Vec<u64>),
}

/// Pools of the memory of numbers.
#[derive(Default)]
pub(crate) struct NumberPools {
    int64: SharedPool<i64>,
    float32: SharedPool<f32>,
    bits8: SharedPool<u8>,
    bits16: SharedPool<u16>,
    bits32: SharedPool<u32>,
    bits64: SharedPool<u64>,
}

/// Returns the memory of an unused buffer, without its values.
fn cleared<T>(pool: &SharedPool<T>) -> Vec<T> {
    let mut memory = pool.take();
    memory.clear();
    memory
}

impl NumberPools {
    /// Returns memory for numbers of a type other than `String`.
    pub(crate) fn take(&self, dtype: TensorDType) -> Numbers {
        let bits = match (dtype, dtype.size()) {
            (TensorDType::Int64, _) => NumberBits::Int64(cleared(&self.int64)),
            (TensorDType::Float32, _) => NumberBits::Float32(cleared(&self.float32)),
            (TensorDType::Complex64, _) => NumberBits::Bits32(cleared(&self.bits32)),
            (_, Some(8 | 16)) => NumberBits::Bits64(cleared(&self.bits64)),
            (_, Some(4)) => NumberBits::Bits32(cleared(&self.bits32)),
            (_, Some(2)) => NumberBits::Bits16(cleared(&self.bits16)),
            _ => NumberBits::Bits8(cleared(&self.bits8)),
        };
        Numbers { dtype, bits }
    }

    /// Returns stored values in a range as values of a type. `None` if they are of that type already.
    pub(crate) fn cast(
        &self,
        dtype: TensorDType,
        stored: &Values,
        range: Range<usize>,
    ) -> Result<Option<Values>> {
        let mut numbers = match (stored, dtype) {
            (Values::Int64(_), TensorDType::Int64) | (Values::Float32(_), TensorDType::Float32) => {
                return Ok(None);
            }
            (Values::Int64(_) | Values::Float32(_), _) => self.take(dtype),
            (Values::Bytes(_) | Values::Array(_), _) => return Ok(None),
        };
        match stored {
            Values::Int64(values) => numbers.push_int64(values.get(range).unwrap_or_default())?,
            Values::Float32(values) => numbers.push_float32(values.get(range).unwrap_or_default())?,
            _ => {}
        }
        Ok(Some(self.freeze(numbers)))
    }

    /// Shares numbers as values of a column.
    pub(crate) fn freeze(&self, numbers: Numbers) -> Values {
        let bits = match numbers.bits {
            NumberBits::Int64(values) => return Values::Int64(self.int64.freeze(values)),
            NumberBits::Float32(values) => return Values::Float32(self.float32.freeze(values)),
            NumberBits::Bits8(values) => ArrayBits::Bits8(self.bits8.freeze(values)),
            NumberBits::Bits16(values) => ArrayBits::Bits16(self.bits16.freeze(values)),
            NumberBits::Bits32(values) => ArrayBits::Bits32(self.bits32.freeze(values)),
            NumberBits::Bits64(values) => ArrayBits::Bits64(self.bits64.freeze(values)),
        };
        Values::Array(ArrayValues::new(numbers.dtype, bits))
    }
}

impl Numbers {
    /// Returns the number of values.
    pub(crate) fn len(&self) -> usize {
        match &self.bits {
            NumberBits::Int64(values) => values.len(),
            NumberBits::Float32(values) => values.len(),
            NumberBits::Bits8(values) => values.len(),
            NumberBits::Bits16(values) => values.len(),
            NumberBits::Bits32(values) => values.len(),
            NumberBits::Bits64(values) => values.len(),
        }
    }

    /// Appends values of a range again.
    pub(crate) fn repeat(&mut self, range: Range<usize>) -> Result<()> {
        match &mut self.bits {
            NumberBits::Int64(values) => repeated(values, range),
            NumberBits::Float32(values) => repeated(values, range),
            NumberBits::Bits8(values) => repeated(values, range),
            NumberBits::Bits16(values) => repeated(values, range),
            NumberBits::Bits32(values) => repeated(values, range),
            NumberBits::Bits64(values) => repeated(values, range),
        }
    }

    /// Appends integers of a list: cut to the width of the type, and bools by whether they are 0. They are
    /// for a type of integers or bools.
    pub(crate) fn push_int64(&mut self, values: &[i64]) -> Result<()> {
        let is_bool = self.dtype == TensorDType::Bool;
        match &mut self.bits {
            NumberBits::Int64(to) => copied(to, values, |value| value),
            NumberBits::Bits8(to) if is_bool => copied(to, values, |value| u8::from(value != 0)),
            NumberBits::Bits8(to) => copied(to, values, |value| value as u8),
            NumberBits::Bits16(to) => copied(to, values, |value| value as u16),
            NumberBits::Bits32(to) => copied(to, values, |value| value as u32),
            NumberBits::Bits64(to) => copied(to, values, |value| value as u64),
            NumberBits::Float32(_) => Ok(()),
        }
    }

    /// Appends floats of a list: rounded to even, or widened. They are for a type of floats.
    pub(crate) fn push_float32(&mut self, values: &[f32]) -> Result<()> {
        match (&mut self.bits, self.dtype) {
            (NumberBits::Float32(to), _) => copied(to, values, |value| value),
            (NumberBits::Bits16(to), TensorDType::BFloat16) => {
                copied(to, values, |value| half::bf16::from_f32(value).to_bits())
            }
            (NumberBits::Bits16(to), _) => copied(to, values, |value| half::f16::from_f32(value).to_bits()),
            (NumberBits::Bits64(to), _) => copied(to, values, |value| f64::from(value).to_bits()),
            _ => Ok(()),
        }
    }

    /// Appends numbers by their bytes, lowest first, a whole number of them. A byte of a bool that is not 0
    /// becomes 1.
    pub(crate) fn push_bytes(&mut self, bytes: &[u8]) -> Result<()> {
        let is_bool = self.dtype == TensorDType::Bool;
        match &mut self.bits {
            NumberBits::Bits8(to) if is_bool => copied(to, bytes, |byte| u8::from(byte != 0)),
            NumberBits::Bits8(to) => copied(to, bytes, |byte| byte),
            NumberBits::Bits16(to) => chunks(to, bytes, u16::from_le_bytes),
            NumberBits::Bits32(to) => chunks(to, bytes, u32::from_le_bytes),
            NumberBits::Bits64(to) => chunks(to, bytes, u64::from_le_bytes),
            NumberBits::Int64(to) => chunks(to, bytes, i64::from_le_bytes),
            NumberBits::Float32(to) => chunks(to, bytes, f32::from_le_bytes),
        }
    }
}

/// Appends values.
fn copied<T: Copy, U>(to: &mut Vec<U>, values: &[T], of: impl Fn(T) -> U) -> Result<()> {
    to.try_reserve(values.len())?;
    to.extend(values.iter().map(|value| of(*value)));
    Ok(())
}

/// Appends values of a range, which is within them, again.
fn repeated<T: Copy>(values: &mut Vec<T>, range: Range<usize>) -> Result<()> {
    values.try_reserve(range.len())?;
    values.extend_from_within(range);
    Ok(())
}

/// Appends numbers of `N` bytes.
fn chunks<const N: usize, U>(to: &mut Vec<U>, bytes: &[u8], of: impl Fn([u8; N]) -> U) -> Result<()> {
    copied(to, bytes.as_chunks::<N>().0, of)
}

/// Returns 64-bit row splits, which all specs of this crate request.
pub(crate) fn splits_of(splits: &RowSplits) -> &[i64] {
    match splits {
        RowSplits::Int64(splits) => splits,
        RowSplits::Int32(_) => &[],
    }
}

/// Values with a shape. A clone shares them.
#[derive(Clone, Debug)]
pub struct Array {
    pub(crate) values: Values,
    /// Number of the first value in `values`.
    pub(crate) start: usize,
    pub(crate) shape: Vec<usize>,
    pub(crate) dtype: TensorDType,
}

impl Array {
    /// Creates an array of all values.
    pub(crate) fn new(values: Values, shape: Vec<usize>, dtype: TensorDType) -> Array {
        Array { values, start: 0, shape, dtype }
    }

    /// Returns the type of the values.
    pub fn dtype(&self) -> TensorDType {
        self.dtype
    }

    /// Returns the shape. `[]`: a scalar.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// Returns the number of values.
    #[allow(clippy::len_without_is_empty, reason = "no caller needs it")]
    pub fn len(&self) -> usize {
        self.shape.iter().product()
    }

    /// Returns the memory of the values, and the number of the first one in it. Arrays of steps share their
    /// memory.
    pub fn values(&self) -> (&Values, usize) {
        (&self.values, self.start)
    }

    /// Returns the byte strings. Empty for numbers.
    pub fn strings(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        let column: Option<&BytesColumn> = match &self.values {
            Values::Bytes(strings) => Some(strings),
            _ => None,
        };
        let len = if column.is_some() { self.len() } else { 0 };
        (0..len).map(move |k| column.and_then(|all| all.get(self.start + k)).unwrap_or_default())
    }
}
