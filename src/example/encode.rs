//! Encoding of messages.
//!
//! ```text
//! Example          0a len Features                          absent if the message has no `features`
//! Features         0a len entry, per key
//! entry            0a len key, 12 len Feature               always both, even if empty
//! Feature          nothing | 0a len BytesList | 12 len FloatList | 1a len Int64List
//! BytesList        0a len value, per value
//! FloatList        0a len packed                            one chunk; nothing if there are no values
//! Int64List        0a len packed                            one chunk; nothing if there are no values
//! SequenceExample  0a len Features, 12 len FeatureLists
//! FeatureLists     0a len entry, per key                    entry: 0a len key, 12 len FeatureList
//! FeatureList      0a len Feature, per step
//! ```
//!
//! These are the bytes of Python's `SerializeToString(deterministic=True)`. Lengths are computed first, from
//! the inside out, in `u64`. The length of the whole message is compared with the limit once, since every
//! length inside is smaller.

#![expect(clippy::arithmetic_side_effects, reason = "lengths of values in memory")]

use super::feature_buf::FeatureBuf;
use super::feature_slice::FeatureSlice;
use crate::error::{Error, ErrorKind, Result};
use crate::memory::room;
use quick_protobuf::Writer;
use quick_protobuf::sizeofs::sizeof_varint;
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::io;
use tfseek_wire::{MAX_LEN, field_len};

// Tags of fields 1, 2 and 3, all length-delimited: `number << 3 | 2`.
const FIELD_1: u32 = 0x0a;
const FIELD_2: u32 = 0x12;
const FIELD_3: u32 = 0x1a;

/// Sorts entries by their keys, in the order in which messages are written: the deterministic order of
/// Python's protobuf. It is by unsigned bytes, but if one key is a prefix of another, the longer key comes
/// first: "aa", "ab", "a", "b", "".
pub fn sort_keys<V>(entries: &mut [(&str, V)]) {
    entries.sort_unstable_by(|(a, _), (b, _)| python_cmp(a, b));
}

/// Compares keys as if each ended with a byte above all others.
fn python_cmp(a: &str, b: &str) -> Ordering {
    let common = a.len().min(b.len());
    a.as_bytes().get(..common).cmp(&b.as_bytes().get(..common)).then(b.len().cmp(&a.len()))
}

/// Returns the entries of a map in the order in which they are written.
///
/// # Errors
/// There is not enough memory.
pub(super) fn entries<V>(map: &BTreeMap<String, V>) -> Result<Vec<(&str, &V)>> {
    let mut entries = room(map.len())?;
    entries.extend(map.iter().map(|(key, value)| (key.as_str(), value)));
    sort_keys(&mut entries);
    Ok(entries)
}

type Entries<'a, V> = [(&'a str, V)];
type WriteResult = quick_protobuf::Result<()>;

/// Appends an Example. The field `features` is written if there are features, or if `has` is set.
pub(super) fn put_example<V: EncodedValue>(
    features: &Entries<'_, V>,
    has: bool,
    out: &mut Vec<u8>,
) -> Result<()> {
    let map = (has || !features.is_empty()).then(|| map_len(features));
    put_message(map.map_or(0, field_len), out, |w| put_map(w, FIELD_1, map, features))
}

/// Appends a SequenceExample. The flags have the meaning of `has` in [`put_example`].
pub(super) fn put_sequence<V: EncodedValue, L: EncodedValue>(
    context: &Entries<'_, V>,
    has_context: bool,
    lists: &Entries<'_, L>,
    has_lists: bool,
    out: &mut Vec<u8>,
) -> Result<()> {
    let first = (has_context || !context.is_empty()).then(|| map_len(context));
    let second = (has_lists || !lists.is_empty()).then(|| map_len(lists));
    let len = first.map_or(0, field_len) + second.map_or(0, field_len);
    put_message(len, out, |w| {
        put_map(w, FIELD_1, first, context)?;
        put_map(w, FIELD_2, second, lists)
    })
}

/// Appends a message of `len` bytes. Allocates at most once, and only after the length is checked.
///
/// # Errors
/// The message is too long, or there is not enough memory.
fn put_message(
    len: u64,
    out: &mut Vec<u8>,
    put: impl FnOnce(&mut Writer<&mut Vec<u8>>) -> WriteResult,
) -> Result<()> {
    if len > MAX_LEN {
        return Err(ErrorKind::TooLarge { len: len.into(), limit: MAX_LEN }.into());
    }
    let start = out.len();
    out.try_reserve(len as usize)?;
    // Writing to a vector never fails, but the encoder's type allows errors.
    put(&mut Writer::new(out)).map_err(|e| Error::from(io::Error::other(e)))?;
    debug_assert_eq!((out.len() - start) as u64, len, "the computed length is wrong");
    Ok(())
}

/// A value of a map entry that can be encoded.
pub(super) trait EncodedValue {
    fn body_len(&self) -> u64;
    fn put_body(&self, w: &mut Writer<&mut Vec<u8>>) -> WriteResult;
}

fn map_len<V: EncodedValue>(entries: &Entries<'_, V>) -> u64 {
    entries.iter().map(|(key, value)| field_len(entry_len(key, value.body_len()))).sum()
}

fn entry_len(key: &str, value_len: u64) -> u64 {
    field_len(key.len() as u64) + field_len(value_len)
}

fn put_map<V: EncodedValue>(
    w: &mut Writer<&mut Vec<u8>>,
    tag: u32,
    len: Option<u64>,
    entries: &Entries<'_, V>,
) -> WriteResult {
    let Some(len) = len else { return Ok(()) };
    w.write_tag(tag)?;
    w.write_varint(len)?;
    for (key, value) in entries {
        let value_len = value.body_len();
        w.write_tag(FIELD_1)?;
        w.write_varint(entry_len(key, value_len))?;
        w.write_with_tag(FIELD_1, |w| w.write_string(key))?;
        w.write_tag(FIELD_2)?;
        w.write_varint(value_len)?;
        value.put_body(w)?;
    }
    Ok(())
}

impl<V: EncodedValue + ?Sized> EncodedValue for &V {
    fn body_len(&self) -> u64 {
        (**self).body_len()
    }

    fn put_body(&self, w: &mut Writer<&mut Vec<u8>>) -> WriteResult {
        (**self).put_body(w)
    }
}

/// Returns the tag of a feature's list, the length of the list, and the length of its packed chunk, which is
/// 0 for byte strings.
fn list_lengths<B: AsRef<[u8]>>(feature: FeatureSlice<'_, B>) -> Option<(u32, u64, u64)> {
    let of_chunk = |tag, chunk| Some((tag, if chunk == 0 { 0 } else { field_len(chunk) }, chunk));
    match feature {
        FeatureSlice::None => None,
        FeatureSlice::Bytes(v) => {
            Some((FIELD_1, v.iter().map(|v| field_len(v.as_ref().len() as u64)).sum(), 0))
        }
        FeatureSlice::Float(v) => of_chunk(FIELD_2, size_of_val(v) as u64),
        FeatureSlice::Int64(v) => of_chunk(FIELD_3, v.iter().map(|&v| sizeof_varint(v as u64) as u64).sum()),
    }
}

impl<B: AsRef<[u8]>> EncodedValue for FeatureSlice<'_, B> {
    fn body_len(&self) -> u64 {
        list_lengths(*self).map_or(0, |(_, list_len, _)| field_len(list_len))
    }

    fn put_body(&self, w: &mut Writer<&mut Vec<u8>>) -> WriteResult {
        let Some((tag, list_len, chunk_len)) = list_lengths(*self) else { return Ok(()) };
        w.write_tag(tag)?;
        w.write_varint(list_len)?;
        if chunk_len > 0 {
            w.write_tag(FIELD_1)?;
            if let (FeatureSlice::Float(v), true) = (self, cfg!(target_endian = "little")) {
                // The chunk is the values as they are in memory.
                return w.write_bytes(bytemuck::cast_slice(v));
            }
            w.write_varint(chunk_len)?;
        }
        match self {
            FeatureSlice::None => Ok(()),
            FeatureSlice::Bytes(v) => {
                v.iter().try_for_each(|v| w.write_with_tag(FIELD_1, |w| w.write_bytes(v.as_ref())))
            }
            FeatureSlice::Float(v) => v.iter().try_for_each(|&v| w.write_float(v)),
            FeatureSlice::Int64(v) => v.iter().try_for_each(|&v| w.write_int64(v)),
        }
    }
}

impl EncodedValue for FeatureBuf {
    fn body_len(&self) -> u64 {
        self.slices().body_len()
    }

    fn put_body(&self, w: &mut Writer<&mut Vec<u8>>) -> WriteResult {
        self.slices().put_body(w)
    }
}

/// The steps of a feature list.
impl<V: EncodedValue> EncodedValue for [V] {
    fn body_len(&self) -> u64 {
        self.iter().map(|step| field_len(step.body_len())).sum()
    }

    fn put_body(&self, w: &mut Writer<&mut Vec<u8>>) -> WriteResult {
        for step in self {
            w.write_tag(FIELD_1)?;
            w.write_varint(step.body_len())?;
            step.put_body(w)?;
        }
        Ok(())
    }
}

impl EncodedValue for Vec<FeatureBuf> {
    fn body_len(&self) -> u64 {
        self.as_slice().body_len()
    }

    fn put_body(&self, w: &mut Writer<&mut Vec<u8>>) -> WriteResult {
        self.as_slice().put_body(w)
    }
}
