//! quick-protobuf: borrowing structs, decoded like the code that `pb-rs` generates for `example.proto`.
//!
//! There is one difference, in favour of quick-protobuf: `pb-rs` generates float lists as `&[f32]` at any
//! address, which is undefined behaviour for unaligned data. Here a float list is a borrowed slice of
//! four-byte arrays.

use crate::{Column, Peer, Refused, Values, counted, put_string};
use quick_protobuf::{BytesReader, MessageRead, Result};
use std::borrow::Cow;
use std::collections::HashMap;

#[derive(Debug, Default, Clone)]
struct BytesList<'a> {
    value: Vec<Cow<'a, [u8]>>,
}

impl<'a> MessageRead<'a> for BytesList<'a> {
    fn from_reader(r: &mut BytesReader, bytes: &'a [u8]) -> Result<Self> {
        let mut msg = Self::default();
        while !r.is_eof() {
            match r.next_tag(bytes)? {
                10 => msg.value.push(Cow::Borrowed(r.read_bytes(bytes)?)),
                tag => r.read_unknown(bytes, tag)?,
            }
        }
        Ok(msg)
    }
}

#[derive(Debug, Default, Clone)]
struct FloatList<'a> {
    value: Cow<'a, [[u8; 4]]>,
}

impl<'a> MessageRead<'a> for FloatList<'a> {
    fn from_reader(r: &mut BytesReader, bytes: &'a [u8]) -> Result<Self> {
        let mut msg = Self::default();
        while !r.is_eof() {
            match r.next_tag(bytes)? {
                10 => msg.value = Cow::Borrowed(r.read_packed_fixed(bytes)?),
                tag => r.read_unknown(bytes, tag)?,
            }
        }
        Ok(msg)
    }
}

#[derive(Debug, Default, Clone)]
struct Int64List {
    value: Vec<i64>,
}

impl<'a> MessageRead<'a> for Int64List {
    fn from_reader(r: &mut BytesReader, bytes: &'a [u8]) -> Result<Self> {
        let mut msg = Self::default();
        while !r.is_eof() {
            match r.next_tag(bytes)? {
                10 => msg.value = r.read_packed(bytes, |r, bytes| r.read_int64(bytes))?,
                tag => r.read_unknown(bytes, tag)?,
            }
        }
        Ok(msg)
    }
}

#[derive(Debug, Default, Clone)]
enum Kind<'a> {
    Bytes(BytesList<'a>),
    Float(FloatList<'a>),
    Int64(Int64List),
    #[default]
    None,
}

#[derive(Debug, Default, Clone)]
struct Feature<'a> {
    kind: Kind<'a>,
}

impl<'a> MessageRead<'a> for Feature<'a> {
    fn from_reader(r: &mut BytesReader, bytes: &'a [u8]) -> Result<Self> {
        let mut msg = Self::default();
        while !r.is_eof() {
            match r.next_tag(bytes)? {
                10 => msg.kind = Kind::Bytes(r.read_message(bytes)?),
                18 => msg.kind = Kind::Float(r.read_message(bytes)?),
                26 => msg.kind = Kind::Int64(r.read_message(bytes)?),
                tag => r.read_unknown(bytes, tag)?,
            }
        }
        Ok(msg)
    }
}

#[derive(Debug, Default, Clone)]
struct Features<'a> {
    feature: HashMap<Cow<'a, str>, Feature<'a>>,
}

impl<'a> MessageRead<'a> for Features<'a> {
    fn from_reader(r: &mut BytesReader, bytes: &'a [u8]) -> Result<Self> {
        let mut msg = Self::default();
        while !r.is_eof() {
            match r.next_tag(bytes)? {
                10 => {
                    let key = |r: &mut BytesReader, bytes: &'a [u8]| r.read_string(bytes).map(Cow::Borrowed);
                    let (key, value) = r.read_map(bytes, key, |r, bytes| r.read_message(bytes))?;
                    msg.feature.insert(key, value);
                }
                tag => r.read_unknown(bytes, tag)?,
            }
        }
        Ok(msg)
    }
}

#[derive(Debug, Default, Clone)]
struct Example<'a> {
    features: Option<Features<'a>>,
}

impl<'a> MessageRead<'a> for Example<'a> {
    fn from_reader(r: &mut BytesReader, bytes: &'a [u8]) -> Result<Self> {
        let mut msg = Self::default();
        while !r.is_eof() {
            match r.next_tag(bytes)? {
                10 => msg.features = Some(r.read_message(bytes)?),
                tag => r.read_unknown(bytes, tag)?,
            }
        }
        Ok(msg)
    }
}

/// quick-protobuf.
pub struct Quick;

impl Peer for Quick {
    fn push(payload: &[u8], columns: &mut [Column]) -> std::result::Result<(), Refused> {
        // `deserialize_from_slice` expects a length prefix.
        let mut reader = BytesReader::from_bytes(payload);
        let example = Example::from_reader(&mut reader, payload).map_err(|_| Refused::Malformed)?;
        let features = example.features.ok_or(Refused::Feature)?.feature;
        for column in columns {
            let kind = features.get(column.key.as_str()).map_or(&Kind::None, |feature| &feature.kind);
            match (&mut column.values, kind) {
                (Values::Int64(values), Kind::Int64(list)) => {
                    counted(list.value.len(), column.len)?;
                    values.extend_from_slice(&list.value);
                }
                (Values::Float(values), Kind::Float(list)) => {
                    counted(list.value.len(), column.len)?;
                    values.extend(list.value.iter().map(|&bytes| f32::from_le_bytes(bytes)));
                }
                (Values::Bytes(data, ends), Kind::Bytes(list)) => {
                    counted(list.value.len(), column.len)?;
                    list.value.iter().for_each(|value| put_string(value, data, ends));
                }
                _ => return Err(Refused::Feature),
            }
        }
        Ok(())
    }
}
