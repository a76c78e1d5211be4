//! Decode and fill: what a program does that has a protobuf library and wants columns.
//!
//! A record is decoded to the structs of its schema, each feature is looked up by name, and its values are appended to the
//! column. The columns are kept from batch to batch, so that nobody pays for fresh memory.

pub mod prost;
pub mod quick;

/// One column: its key, how many values a record has, and the values so far.
pub struct Column {
    /// The feature's key.
    pub key: String,
    /// Values of each record.
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
    /// Byte strings, one after the other, and where each ends.
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

/// A record that cannot be put into the columns.
#[derive(Debug)]
pub enum Refused {
    /// The library refused it.
    Malformed,
    /// A feature is absent, of another kind or of another length.
    Feature,
}

/// A protobuf library.
pub trait Peer {
    /// Appends one record to the columns.
    ///
    /// # Errors
    /// [`Refused`].
    fn push(payload: &[u8], columns: &mut [Column]) -> Result<(), Refused>;

    /// A batch: the columns hold these records and no others.
    ///
    /// # Errors
    /// [`Refused`].
    fn fill<R: AsRef<[u8]>>(rows: &[R], columns: &mut [Column]) -> Result<(), Refused> {
        columns.iter_mut().for_each(|column| column.values.clear());
        rows.iter().try_for_each(|row| Self::push(row.as_ref(), columns))
    }
}

/// One string of a column.
fn put_string(value: &[u8], data: &mut Vec<u8>, ends: &mut Vec<usize>) {
    data.extend_from_slice(value);
    ends.push(data.len());
}

/// Only records that have what the schema asks for.
fn counted(found: usize, len: usize) -> Result<(), Refused> {
    if found == len { Ok(()) } else { Err(Refused::Feature) }
}
