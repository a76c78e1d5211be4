//! Decode and fill: the work of a program that uses a protobuf library and needs columns.
//!
//! Each record is decoded to the structs of its schema, each feature is looked up by name, and its values are
//! appended to the column. Columns are reused for all batches, so no library pays for fresh memory.

pub mod prost;
pub mod quick;

/// A column: key, number of values per record, and values.
pub struct Column {
    /// The feature's key.
    pub key: String,
    /// Number of values per record.
    pub len: usize,
    /// The values.
    pub values: Values,
}

/// The values of a column.
pub enum Values {
    /// Integers.
    Int64(Vec<i64>),
    /// Floats.
    Float(Vec<f32>),
    /// Byte strings, concatenated, and the end of each.
    Bytes(Vec<u8>, Vec<usize>),
}

impl Values {
    fn clear(&mut self) {
        match self {
            Values::Int64(values) => values.clear(),
            Values::Float(values) => values.clear(),
            Values::Bytes(data, ends) => {
                data.clear();
                ends.clear();
            }
        }
    }
}

/// Reason why a record cannot be appended to the columns.
#[derive(Debug)]
pub enum Refused {
    /// The library refused the record.
    Malformed,
    /// A feature is absent, of another kind, or of another length.
    Feature,
}

/// A protobuf library.
pub trait Peer {
    /// Appends one record to the columns.
    ///
    /// # Errors
    /// The library refuses the record, or a feature does not fit: [`Refused`].
    fn push(payload: &[u8], columns: &mut [Column]) -> Result<(), Refused>;

    /// Replaces the contents of the columns by these records.
    ///
    /// # Errors
    /// A record cannot be appended: [`Refused`].
    fn fill<R: AsRef<[u8]>>(rows: &[R], columns: &mut [Column]) -> Result<(), Refused> {
        columns.iter_mut().for_each(|column| column.values.clear());
        rows.iter().try_for_each(|row| Self::push(row.as_ref(), columns))
    }
}

/// Appends one string to a column.
fn put_string(value: &[u8], data: &mut Vec<u8>, ends: &mut Vec<usize>) {
    data.extend_from_slice(value);
    ends.push(data.len());
}

/// Checks the number of values.
fn counted(found: usize, len: usize) -> Result<(), Refused> {
    if found == len { Ok(()) } else { Err(Refused::Feature) }
}
