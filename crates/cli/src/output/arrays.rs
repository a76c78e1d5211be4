//! Batches as lines of JSON, exact to the bit.
//!
//! ```text
//! {"status":"ok","outputs":{NAME:O,..}}                                    Examples
//! {"status":"ok","context":{NAME:O,..},"sequence":{..},"lengths":{..}}     SequenceExamples; a single record has no lengths
//!
//! O  {"kind":"dense","dtype":D,"shape":[..],"data":[..]}
//!    {"kind":"optional","values":A,"present":A}                            a missing value is 0 or ""
//!    {"kind":"sparse","indices":A,"values":A,"dense_shape":A}
//!    {"kind":"ragged","values":A,"row_splits":[A,..]}                      row splits from outermost to innermost
//! A  {"dtype":D,"shape":[..],"data":[..]}
//! ```
//!
//! `data` is flat and row-major. Integers are exact and must be read as 64-bit integers, not as doubles. A
//! float is the 8 hex digits of its bits (`"3f800000"` is 1.0). A byte string is the hex of its bytes. A
//! number of an array is the hex digits of its bits, and a complex number is two.

use std::fmt::{self, Display, Formatter};
use std::io::{self, Write};
use tfseek::batch::{ArrayBits, Batch, Column, RowSplits, Values};

pub(crate) fn print(out: &mut impl Write, batch: &Batch, sequence: bool, single: bool) -> io::Result<()> {
    out.write_all(b"{\"status\":\"ok\"")?;
    let first = if sequence { "context" } else { "outputs" };
    part(out, first, batch.columns(), column)?;
    if sequence {
        part(out, "sequence", batch.feature_lists(), column)?;
        if !single {
            let lengths = batch.feature_lists().filter_map(|(name, _)| Some((name, batch.lengths(name)?)));
            part(out, "lengths", lengths, |out, lengths| {
                write!(out, "{{\"kind\":\"dense\",{}}}", int64(&[lengths.len()], lengths))
            })?;
        }
    }
    out.write_all(b"}\n")
}

fn part<'a, W: Write, T>(
    out: &mut W,
    name: &str,
    columns: impl Iterator<Item = (&'a str, T)>,
    write_column: impl Fn(&mut W, T) -> io::Result<()>,
) -> io::Result<()> {
    write!(out, ",\"{name}\":{{")?;
    for (k, (name, column)) in columns.enumerate() {
        if k > 0 {
            out.write_all(b",")?;
        }
        serde_json::to_writer(&mut *out, name).map_err(io::Error::from)?;
        out.write_all(b":")?;
        write_column(out, column)?;
    }
    out.write_all(b"}")
}

fn column(out: &mut impl Write, column: &Column) -> io::Result<()> {
    match column {
        Column::Dense(dense) => {
            write!(out, "{{\"kind\":\"dense\",{}}}", ArrayJson(&dense.shape, &dense.values))
        }
        Column::Optional(optional) => {
            let mut present = Vec::new();
            present.try_reserve_exact(optional.present.len())?;
            present.extend(optional.present.iter().map(|&present| present != 0));
            write!(
                out,
                "{{\"kind\":\"optional\",\"values\":{{{}}},\"present\":{{{}}}}}",
                ArrayJson(&optional.shape, &optional.values),
                PlainJson("bool", &optional.shape, &present)
            )
        }
        Column::Sparse(sparse) => {
            let rank = sparse.dense_shape.len();
            write!(
                out,
                "{{\"kind\":\"sparse\",\"indices\":{{{}}},\"values\":{{{}}},\"dense_shape\":{{{}}}}}",
                int64(&[sparse.values.len(), rank], &sparse.indices),
                ArrayJson(&[sparse.values.len()], &sparse.values),
                int64(&[rank], &sparse.dense_shape)
            )
        }
        Column::Ragged(ragged) => {
            write!(
                out,
                "{{\"kind\":\"ragged\",\"values\":{{{}}},\"row_splits\":[",
                ArrayJson(&ragged.shape, &ragged.values)
            )?;
            for (k, splits) in ragged.row_splits.iter().enumerate() {
                let comma = if k == 0 { "" } else { "," };
                match splits {
                    RowSplits::Int32(splits) => {
                        write!(out, "{comma}{{{}}}", PlainJson("int32", &[splits.len()], splits))?;
                    }
                    RowSplits::Int64(splits) => {
                        write!(out, "{comma}{{{}}}", int64(&[splits.len()], splits))?;
                    }
                }
            }
            out.write_all(b"]}")
        }
    }
}

/// The three members of an array: dtype, shape and data.
struct ArrayJson<'a>(&'a [usize], &'a Values);

impl Display for ArrayJson<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let ArrayJson(shape, values) = *self;
        match values {
            Values::Int64(values) => return int64(shape, values).fmt(f),
            Values::Float32(values) => {
                head(f, "float32", shape)?;
                list(f, values.iter(), |f, value| write!(f, "\"{:08x}\"", value.to_bits()))?;
            }
            Values::Bytes(values) => {
                head(f, "string", shape)?;
                list(f, values.iter(), |f, value| {
                    f.write_str("\"")?;
                    value.iter().try_for_each(|byte| write!(f, "{byte:02x}"))?;
                    f.write_str("\"")
                })?;
            }
            Values::Array(values) => {
                head(f, &values.dtype().to_string(), shape)?;
                match values.bits() {
                    ArrayBits::Bits8(bits) => list(f, bits.iter(), |f, n| write!(f, "\"{n:02x}\""))?,
                    ArrayBits::Bits16(bits) => list(f, bits.iter(), |f, n| write!(f, "\"{n:04x}\""))?,
                    ArrayBits::Bits32(bits) => list(f, bits.iter(), |f, n| write!(f, "\"{n:08x}\""))?,
                    ArrayBits::Bits64(bits) => list(f, bits.iter(), |f, n| write!(f, "\"{n:016x}\""))?,
                }
            }
        }
        f.write_str("]")
    }
}

/// The three members of an array of integers or of booleans.
struct PlainJson<'a, T>(&'static str, &'a [usize], &'a [T]);

fn int64<'a, T>(shape: &'a [usize], values: &'a [T]) -> PlainJson<'a, T> {
    PlainJson("int64", shape, values)
}

impl<T: Display> Display for PlainJson<'_, T> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let PlainJson(dtype, shape, values) = *self;
        head(f, dtype, shape)?;
        list(f, values, |f, value| value.fmt(f))?;
        f.write_str("]")
    }
}

fn head(f: &mut Formatter<'_>, dtype: &str, shape: &[usize]) -> fmt::Result {
    write!(f, "\"dtype\":\"{dtype}\",\"shape\":[")?;
    list(f, shape, |f, dim| dim.fmt(f))?;
    f.write_str("],\"data\":[")
}

/// Writes values between commas.
fn list<T>(
    f: &mut Formatter<'_>,
    values: impl IntoIterator<Item = T>,
    write: impl Fn(&mut Formatter<'_>, T) -> fmt::Result,
) -> fmt::Result {
    for (k, value) in values.into_iter().enumerate() {
        if k > 0 {
            f.write_str(",")?;
        }
        write(f, value)?;
    }
    Ok(())
}
