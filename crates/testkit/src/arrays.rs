//! Columns in a form that does not depend on the parser. Two columns are equal if their types, shapes and
//! bits are equal.

use std::collections::BTreeMap;
use std::fmt;
use tfseek::batch::{ArrayBits, Batch, Column, RowSplits, Values};
use tfseek::schema::DType;
use tfseek::tensor::TensorDType;

/// Values of one type. Floats are stored as bits.
#[derive(Clone, PartialEq, Eq)]
pub enum Data {
    Int64(Vec<i64>),
    Int32(Vec<i32>),
    Float32(Vec<u32>),
    Bytes(Vec<Vec<u8>>),
    /// Elements of arrays, each as its little-endian bytes.
    Array(TensorDType, Vec<Vec<u8>>),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Array {
    pub shape: Vec<u64>,
    pub data: Data,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Neutral {
    Dense(Array),
    /// Values, and the presence of each.
    Optional {
        values: Array,
        present: Vec<bool>,
    },
    Sparse {
        indices: Array,
        values: Array,
        dense_shape: Array,
    },
    Ragged {
        values: Array,
        row_splits: Vec<Array>,
    },
}

/// All columns of a parse. `features` are the outputs of TensorFlow for Examples, and the context for
/// SequenceExamples.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Arrays {
    pub features: BTreeMap<String, Neutral>,
    pub feature_lists: BTreeMap<String, Neutral>,
    /// Number of steps per row, for dense feature lists in a batch.
    pub lengths: BTreeMap<String, Vec<i64>>,
}

impl Data {
    pub fn empty(dtype: DType) -> Data {
        match dtype {
            DType::Int64 => Data::Int64(Vec::new()),
            DType::Float32 => Data::Float32(Vec::new()),
            DType::Bytes => Data::Bytes(Vec::new()),
        }
    }

    pub fn len(&self) -> usize {
        match self {
            Data::Int64(v) => v.len(),
            Data::Int32(v) => v.len(),
            Data::Float32(v) => v.len(),
            Data::Bytes(v) | Data::Array(_, v) => v.len(),
        }
    }

    /// Adds values of the same type.
    pub fn append(&mut self, other: &Data) {
        match (self, other) {
            (Data::Int64(all), Data::Int64(more)) => all.extend(more),
            (Data::Int32(all), Data::Int32(more)) => all.extend(more),
            (Data::Float32(all), Data::Float32(more)) => all.extend(more),
            (Data::Bytes(all), Data::Bytes(more)) => all.extend_from_slice(more),
            (Data::Array(dtype, all), Data::Array(other, more)) if dtype == other => {
                all.extend_from_slice(more)
            }
            (all, more) => panic!("{more:?} appended to {all:?}"),
        }
    }

    /// Returns value `k` as data of one value.
    pub fn one(&self, k: usize) -> Data {
        match self {
            Data::Int64(v) => Data::Int64(vec![v[k]]),
            Data::Int32(v) => Data::Int32(vec![v[k]]),
            Data::Float32(v) => Data::Float32(vec![v[k]]),
            Data::Bytes(v) => Data::Bytes(vec![v[k].clone()]),
            Data::Array(dtype, v) => Data::Array(*dtype, vec![v[k].clone()]),
        }
    }

    fn dtype(&self) -> String {
        match self {
            Data::Int64(_) => "int64".into(),
            Data::Int32(_) => "int32".into(),
            Data::Float32(_) => "float32".into(),
            Data::Bytes(_) => "string".into(),
            Data::Array(dtype, _) => format!("array of {dtype}"),
        }
    }
}

/// Prints the type and the first values.
impl fmt::Debug for Data {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SHOWN: usize = 40;
        write!(f, "{} ", self.dtype())?;
        match self {
            Data::Int64(v) => f.debug_list().entries(v.iter().take(SHOWN)).finish()?,
            Data::Int32(v) => f.debug_list().entries(v.iter().take(SHOWN)).finish()?,
            Data::Float32(v) => {
                f.debug_list().entries(v.iter().take(SHOWN).map(|bits| format!("{bits:08x}"))).finish()?;
            }
            Data::Bytes(v) | Data::Array(_, v) => {
                let shown = v.iter().take(SHOWN).map(|value| value.escape_ascii().to_string());
                f.debug_list().entries(shown).finish()?;
            }
        }
        if self.len() > SHOWN { write!(f, " and more, {} in all", self.len()) } else { Ok(()) }
    }
}

impl Array {
    pub fn new(shape: impl IntoIterator<Item = u64>, data: Data) -> Array {
        let shape: Vec<u64> = shape.into_iter().collect();
        let array = Array { shape, data };
        assert_eq!(array.shape.iter().product::<u64>(), array.data.len() as u64, "{array:?}");
        array
    }

    /// Returns a one-dimensional array of integers.
    pub fn int64(values: Vec<i64>) -> Array {
        Array::new([values.len() as u64], Data::Int64(values))
    }
}

impl From<&Values> for Data {
    fn from(values: &Values) -> Data {
        match values {
            Values::Int64(v) => Data::Int64(v.to_vec()),
            Values::Float32(v) => Data::Float32(v.iter().map(|v| v.to_bits()).collect()),
            Values::Bytes(v) => Data::Bytes(v.iter().map(<[u8]>::to_vec).collect()),
            Values::Array(v) => {
                let bytes: Vec<u8> = match v.bits() {
                    ArrayBits::Bits8(bits) => bits.to_vec(),
                    ArrayBits::Bits16(bits) => bits.iter().flat_map(|bits| bits.to_le_bytes()).collect(),
                    ArrayBits::Bits32(bits) => bits.iter().flat_map(|bits| bits.to_le_bytes()).collect(),
                    ArrayBits::Bits64(bits) => bits.iter().flat_map(|bits| bits.to_le_bytes()).collect(),
                };
                let elements = bytes.chunks(v.dtype().size().unwrap()).map(<[u8]>::to_vec).collect();
                Data::Array(v.dtype(), elements)
            }
        }
    }
}

impl From<&Column> for Neutral {
    fn from(column: &Column) -> Neutral {
        let dims = |shape: &[usize]| shape.iter().map(|&dim| dim as u64).collect::<Vec<_>>();
        match column {
            Column::Dense(of) => Neutral::Dense(Array::new(dims(&of.shape), (&of.values).into())),
            Column::Optional(of) => {
                assert!(of.present.iter().all(|&present| present <= 1), "{of:?}");
                assert_eq!(of.present.len(), of.values.len());
                Neutral::Optional {
                    values: Array::new(dims(&of.shape), (&of.values).into()),
                    present: of.present.iter().map(|&present| present == 1).collect(),
                }
            }
            Column::Sparse(of) => Neutral::Sparse {
                indices: Array::new(
                    [of.values.len() as u64, of.dense_shape.len() as u64],
                    Data::Int64(of.indices.to_vec()),
                ),
                values: Array::new([of.values.len() as u64], (&of.values).into()),
                dense_shape: Array::int64(of.dense_shape.iter().map(|&dim| dim as i64).collect()),
            },
            Column::Ragged(of) => Neutral::Ragged {
                values: Array::new(dims(&of.shape), (&of.values).into()),
                row_splits: of
                    .row_splits
                    .iter()
                    .map(|splits| match splits {
                        RowSplits::Int32(v) => Array::new([v.len() as u64], Data::Int32(v.to_vec())),
                        RowSplits::Int64(v) => Array::int64(v.to_vec()),
                    })
                    .collect(),
            },
        }
    }
}

impl From<&Batch> for Arrays {
    fn from(batch: &Batch) -> Arrays {
        fn all<'a>(columns: impl Iterator<Item = (&'a str, &'a Column)>) -> BTreeMap<String, Neutral> {
            let named: Vec<_> = columns.map(|(name, column)| (name.to_owned(), column.into())).collect();
            assert!(named.is_sorted_by(|a, b| a.0 < b.0), "columns are sorted by name");
            named.into_iter().collect()
        }
        for (name, column) in batch.columns() {
            assert!(std::ptr::eq(batch.get(name).unwrap(), column));
        }
        let lengths = batch.feature_lists().filter_map(|(name, column)| {
            assert!(std::ptr::eq(batch.feature_list(name).unwrap(), column));
            Some((name.to_owned(), batch.lengths(name)?.to_vec()))
        });
        Arrays {
            features: all(batch.columns()),
            lengths: lengths.collect(),
            feature_lists: all(batch.feature_lists()),
        }
    }
}

impl Arrays {
    /// Describes the differences, per column. The text is empty if the arrays are equal.
    pub fn difference(&self, want: &Arrays) -> String {
        fn compare<V: PartialEq + fmt::Debug>(
            out: &mut String,
            part: &str,
            found: &BTreeMap<String, V>,
            want: &BTreeMap<String, V>,
        ) {
            let names: std::collections::BTreeSet<_> = found.keys().chain(want.keys()).collect();
            for name in names {
                let (found, want) = (found.get(name), want.get(name));
                if found != want {
                    *out += &format!("{part} {name:?}:\n  found {found:?}\n  want  {want:?}\n");
                }
            }
        }
        let mut out = String::new();
        compare(&mut out, "feature", &self.features, &want.features);
        compare(&mut out, "feature list", &self.feature_lists, &want.feature_lists);
        compare(&mut out, "lengths of", &self.lengths, &want.lengths);
        out
    }

    #[track_caller]
    pub fn assert_eq(&self, want: &Arrays, what: impl fmt::Display) {
        let difference = self.difference(want);
        assert!(difference.is_empty(), "{what}\n{difference}");
    }
}
