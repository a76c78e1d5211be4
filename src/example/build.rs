//! Encoding: builders, and the bytes they write.
//!
//! ```text
//! Example          0a len Features                          absent if there is none
//! Features         0a len entry, for each key
//! entry            0a len key, 12 len Feature               both always, also when empty
//! Feature          nothing | 0a len BytesList | 12 len FloatList | 1a len Int64List
//! BytesList        0a len value, for each value
//! FloatList        0a len packed                            one chunk; nothing if there are no values
//! Int64List        0a len packed                            one chunk; nothing if there are no values
//! SequenceExample  0a len Features, 12 len FeatureLists
//! FeatureLists     0a len entry, for each key               entry: 0a len key, 12 len FeatureList
//! FeatureList      0a len Feature, for each step
//! ```
//!
//! These are the bytes of Python's `SerializeToString(deterministic=True)`. Lengths are computed first, from the
//! inside out and in `u64`, and compared with the limit of a message once: every length inside is below the whole's.

use super::owned::FeatureBuf;
use crate::error::{EncodeError, Error, ErrorKind, Result};
use crate::wire::MAX_LEN;
use quick_protobuf::Writer;
use quick_protobuf::sizeofs::sizeof_varint;
use std::borrow::Cow;
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::io;

// Field 1, 2 and 3, all length-delimited: `number << 3 | 2`.
const FIELD_1: u32 = 0x0a;
const FIELD_2: u32 = 0x12;
const FIELD_3: u32 = 0x1a;

/// In which order keys are written. Readers do not care; bytes and their hashes do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum KeyOrder {
    /// As Python's deterministic form: by unsigned bytes, but of two keys where one begins with the other the longer
    /// first. "aa", "ab", "a", "b", and "" last.
    #[default]
    Python,
    /// As the deterministic form of C++, Go and Java: by unsigned bytes. "", "a", "aa".
    Bytes,
    /// As they were given.
    Given,
}

impl KeyOrder {
    fn sort<V>(self, entries: &mut [(&str, V)]) {
        match self {
            KeyOrder::Python => entries.sort_unstable_by(|(a, _), (b, _)| python_cmp(a, b)),
            KeyOrder::Bytes => entries.sort_unstable_by_key(|&(key, _)| key),
            KeyOrder::Given => {}
        }
    }
}

/// As if each key ended with a byte above all others.
fn python_cmp(a: &str, b: &str) -> Ordering {
    let common = a.len().min(b.len());
    a.as_bytes()[..common].cmp(&b.as_bytes()[..common]).then(b.len().cmp(&a.len()))
}

mod sealed {
    pub trait Sealed {}
}

/// What goes into an int64 list: integers and `bool`, as in Python. A float does not, not even a whole one:
///
/// ```compile_fail,E0277
/// tfseek::example::ExampleBuilder::new().int64("label", [3.0]);
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not go into an int64 list",
    note = "integers of up to 64 bits and `bool` do; a float has to be converted first"
)]
pub trait ToInt64: sealed::Sealed {
    /// The value as an `i64`.
    ///
    /// # Errors
    /// [`EncodeError::Int64Range`] above 2^63 - 1.
    fn to_int64(self) -> Result<i64, EncodeError>;
}

/// What goes into a float list: `f32` as it is, `f64` rounded to the nearest `f32` (to infinity beyond its range),
/// integers and `bool` by way of `f64`. That is what Python's protobuf does, double rounding included.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not go into a float list",
    note = "`f32`, `f64`, integers of up to 64 bits and `bool` do"
)]
pub trait ToFloat: sealed::Sealed {
    /// The value as an `f32`.
    fn to_float(self) -> f32;
}

macro_rules! ints {
    ($($t:ty),*) => {$(
        impl sealed::Sealed for $t {}
        impl ToInt64 for $t {
            #[inline]
            fn to_int64(self) -> Result<i64, EncodeError> {
                // No type here goes below -2^63, so what does not fit is positive.
                i64::try_from(self).map_err(|_| EncodeError::Int64Range { value: self as u128 })
            }
        }
        impl ToFloat for $t {
            #[inline]
            fn to_float(self) -> f32 {
                self as f64 as f32
            }
        }
    )*};
}
ints!(i8, i16, i32, i64, isize, u8, u16, u32, u64, usize);

impl sealed::Sealed for bool {}
impl ToInt64 for bool {
    #[inline]
    fn to_int64(self) -> Result<i64, EncodeError> {
        Ok(self.into())
    }
}
impl ToFloat for bool {
    #[inline]
    fn to_float(self) -> f32 {
        self.into()
    }
}

impl sealed::Sealed for f32 {}
impl ToFloat for f32 {
    #[inline]
    fn to_float(self) -> f32 {
        self
    }
}
impl sealed::Sealed for f64 {}
impl ToFloat for f64 {
    #[inline]
    fn to_float(self) -> f32 {
        self as f32
    }
}

/// What is a value of a bytes list: strings and bytes, owned or not. What is owned is moved and not copied.
///
/// A list is a list: one image is `[image]`, and not its bytes one by one.
///
/// ```compile_fail,E0277
/// tfseek::example::ExampleBuilder::new().bytes("image", vec![0xffu8, 0xd8]);
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a value of a bytes list",
    note = "strings and bytes are: one value is given as a list of one, `[value]`"
)]
pub trait IntoBytes: sealed::Sealed {
    /// The value's bytes.
    fn into_bytes(self) -> Vec<u8>;
}

macro_rules! into_bytes {
    ($([$($n:ident)?] $t:ty: $f:expr),* $(,)?) => {$(
        impl $(<const $n: usize>)? sealed::Sealed for $t {}
        impl $(<const $n: usize>)? IntoBytes for $t {
            #[inline]
            fn into_bytes(self) -> Vec<u8> {
                $f(self)
            }
        }
    )*};
}
into_bytes! {
    [] Vec<u8>: |v| v,
    [] Box<[u8]>: Vec::from,
    [] String: String::into_bytes,
    [] Cow<'_, [u8]>: Cow::into_owned,
    [] Cow<'_, str>: |s: Cow<'_, str>| s.into_owned().into_bytes(),
    [] &[u8]: <[u8]>::to_vec,
    [] &str: |s: &str| s.as_bytes().to_vec(),
    [N] [u8; N]: Vec::from,
}

// Iterating over `&values` gives references.
impl<T: sealed::Sealed> sealed::Sealed for &T {}
impl<T: ToInt64 + Copy> ToInt64 for &T {
    #[inline]
    fn to_int64(self) -> Result<i64, EncodeError> {
        (*self).to_int64()
    }
}
impl<T: ToFloat + Copy> ToFloat for &T {
    #[inline]
    fn to_float(self) -> f32 {
        (*self).to_float()
    }
}
impl<T: IntoBytes + Clone> IntoBytes for &T {
    #[inline]
    fn into_bytes(self) -> Vec<u8> {
        self.clone().into_bytes()
    }
}

/// A map that remembers in which order its keys came.
#[derive(Clone, Debug)]
struct Given<V>(BTreeMap<String, (usize, V)>);

impl<V> Default for Given<V> {
    fn default() -> Given<V> {
        Given(BTreeMap::new())
    }
}

impl<V> Given<V> {
    /// The first value of a key stays, a second one is refused.
    fn insert(&mut self, key: String, value: V) -> Result<(), Refused> {
        let n = self.0.len();
        match self.0.entry(key) {
            Entry::Vacant(entry) => {
                entry.insert((n, value));
                Ok(())
            }
            Entry::Occupied(entry) => Err((entry.key().clone(), EncodeError::DuplicateKey)),
        }
    }

    fn entries(&self, order: KeyOrder) -> Vec<(&str, &V)> {
        let mut given =
            self.0.iter().map(|(key, (n, value))| (key.as_str(), (*n, value))).collect::<Vec<_>>();
        match order {
            KeyOrder::Given => given.sort_unstable_by_key(|&(_, (n, _))| n),
            sorted => sorted.sort(&mut given),
        }
        given.into_iter().map(|(key, (_, value))| (key, value)).collect()
    }
}

/// A key, and why its value was refused.
type Refused = (String, EncodeError);

fn check(refused: &Option<Refused>) -> Result<()> {
    match refused {
        Some((key, e)) => Err(Error::from(e.clone()).feature(key.as_bytes())),
        None => Ok(()),
    }
}

/// Builds an Example.
///
/// A call that is refused (a key that was there, an integer beyond int64) is remembered, and the first of them is
/// what [`encode`](ExampleBuilder::encode) returns: a chain needs one `?`.
///
/// ```
/// use tfseek::example::ExampleBuilder;
/// let embedding = vec![0.5f32; 128];
/// let payload = ExampleBuilder::new()
///     .bytes("image", [std::fs::read("Cargo.toml")?])
///     .float("embedding", &embedding)
///     .int64("label", [3])
///     .encode()?;
///
/// let e = ExampleBuilder::new().int64("id", [1]).int64("id", [2]).encode().unwrap_err();
/// assert_eq!(e.to_string(), "feature \"id\": the key was given twice");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// Without any feature it writes `0a 00`, as Python's `Example(features=Features(feature={}))`.
#[derive(Clone, Debug, Default)]
pub struct ExampleBuilder {
    features: Given<FeatureBuf>,
    order: KeyOrder,
    refused: Option<Refused>,
}

/// Builds a SequenceExample: [`int64`](Self::int64), [`float`](Self::float) and so on give features of its context,
/// [`int64_list`](Self::int64_list), [`float_list`](Self::float_list) and so on its feature lists, one item a step.
///
/// Refused calls are remembered as by [`ExampleBuilder`]. A context or feature lists without any key are not written.
///
/// ```
/// use tfseek::example::SequenceExampleBuilder;
/// let payload = SequenceExampleBuilder::new()
///     .bytes("speaker", ["anna"])
///     .int64_list("tokens", [vec![1, 2, 3], vec![], vec![4]])
///     .encode()?;
/// # Ok::<(), tfseek::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct SequenceExampleBuilder {
    context: Given<FeatureBuf>,
    lists: Given<Vec<FeatureBuf>>,
    order: KeyOrder,
    refused: Option<Refused>,
}

macro_rules! features {
    ($builder:ident, $features:ident, $whose:literal) => {
        impl $builder {
            /// An empty one.
            pub fn new() -> $builder {
                $builder::default()
            }

            /// The order in which keys are written.
            pub fn key_order(&mut self, order: KeyOrder) -> &mut $builder {
                self.order = order;
                self
            }

            #[doc = concat!("An int64 feature", $whose, ". An integer above 2^63 - 1 is refused.")]
            pub fn int64(
                &mut self,
                key: impl Into<String>,
                values: impl IntoIterator<Item: ToInt64>,
            ) -> &mut $builder {
                match FeatureBuf::int64(values) {
                    Ok(feature) => self.feature(key, feature),
                    Err(e) => self.refuse(Err((key.into(), e))),
                }
            }

            #[doc = concat!("A float feature", $whose, ".")]
            pub fn float(
                &mut self,
                key: impl Into<String>,
                values: impl IntoIterator<Item: ToFloat>,
            ) -> &mut $builder {
                self.feature(key, FeatureBuf::float(values))
            }

            #[doc = concat!("A bytes feature", $whose, ".")]
            pub fn bytes(
                &mut self,
                key: impl Into<String>,
                values: impl IntoIterator<Item: IntoBytes>,
            ) -> &mut $builder {
                self.feature(key, FeatureBuf::bytes(values))
            }

            #[doc = concat!("A feature without a kind", $whose, ".")]
            pub fn none(&mut self, key: impl Into<String>) -> &mut $builder {
                self.feature(key, FeatureBuf::None)
            }

            #[doc = concat!("A feature", $whose, ", of any kind. A key that is there already is refused.")]
            pub fn feature(&mut self, key: impl Into<String>, feature: FeatureBuf) -> &mut $builder {
                let inserted = self.$features.insert(key.into(), feature);
                self.refuse(inserted)
            }

            fn refuse(&mut self, inserted: Result<(), Refused>) -> &mut $builder {
                if let Err(refused) = inserted {
                    self.refused.get_or_insert(refused);
                }
                self
            }

            /// The message's bytes. The builder stays as it is.
            ///
            /// # Errors
            /// The first call that was refused, as [`ErrorKind::Encode`] with the key as its feature;
            /// [`ErrorKind::TooLarge`] above 2^31 - 1 bytes.
            pub fn encode(&self) -> Result<Vec<u8>> {
                let mut out = Vec::new();
                self.encode_into(&mut out)?;
                Ok(out)
            }
        }
    };
}
features!(ExampleBuilder, features, "");
features!(SequenceExampleBuilder, context, " of the context");

impl ExampleBuilder {
    /// Appends the message's bytes to `out`; after an error `out` is as it was.
    ///
    /// # Errors
    /// As [`encode`](ExampleBuilder::encode).
    pub fn encode_into(&self, out: &mut Vec<u8>) -> Result<()> {
        check(&self.refused)?;
        put_example(&self.features.entries(self.order), true, out)
    }

    /// Takes all features and the remembered error out; the key order stays.
    pub fn clear(&mut self) -> &mut ExampleBuilder {
        *self = ExampleBuilder { order: self.order, ..Default::default() };
        self
    }
}

impl SequenceExampleBuilder {
    /// A feature list of int64 steps. An integer above 2^63 - 1 is refused.
    pub fn int64_list(
        &mut self,
        key: impl Into<String>,
        steps: impl IntoIterator<Item: IntoIterator<Item: ToInt64>>,
    ) -> &mut SequenceExampleBuilder {
        match steps.into_iter().map(FeatureBuf::int64).collect::<Result<Vec<_>, _>>() {
            Ok(steps) => self.feature_list(key, steps),
            Err(e) => self.refuse(Err((key.into(), e))),
        }
    }

    /// A feature list of float steps.
    pub fn float_list(
        &mut self,
        key: impl Into<String>,
        steps: impl IntoIterator<Item: IntoIterator<Item: ToFloat>>,
    ) -> &mut SequenceExampleBuilder {
        self.feature_list(key, steps.into_iter().map(FeatureBuf::float))
    }

    /// A feature list of bytes steps.
    pub fn bytes_list(
        &mut self,
        key: impl Into<String>,
        steps: impl IntoIterator<Item: IntoIterator<Item: IntoBytes>>,
    ) -> &mut SequenceExampleBuilder {
        self.feature_list(key, steps.into_iter().map(FeatureBuf::bytes))
    }

    /// A feature list, one feature a step; possibly of no steps. A key that is there already is refused; one that the
    /// context has is not there.
    pub fn feature_list(
        &mut self,
        key: impl Into<String>,
        steps: impl IntoIterator<Item = FeatureBuf>,
    ) -> &mut SequenceExampleBuilder {
        let inserted = self.lists.insert(key.into(), steps.into_iter().collect());
        self.refuse(inserted)
    }

    /// Appends the message's bytes to `out`; after an error `out` is as it was.
    ///
    /// # Errors
    /// As [`encode`](SequenceExampleBuilder::encode).
    pub fn encode_into(&self, out: &mut Vec<u8>) -> Result<()> {
        check(&self.refused)?;
        put_sequence(&self.context.entries(self.order), false, &self.lists.entries(self.order), false, out)
    }

    /// Takes context, feature lists and the remembered error out; the key order stays.
    pub fn clear(&mut self) -> &mut SequenceExampleBuilder {
        *self = SequenceExampleBuilder { order: self.order, ..Default::default() };
        self
    }
}

/// The entries of a map in this order.
pub(super) fn entries<V>(map: &BTreeMap<String, V>, order: KeyOrder) -> Vec<(&str, &V)> {
    let mut entries = map.iter().map(|(key, value)| (key.as_str(), value)).collect::<Vec<_>>();
    order.sort(&mut entries);
    entries
}

type Entries<'a, V> = [(&'a str, &'a V)];
type Put = quick_protobuf::Result<()>;

/// Appends an Example. Its features are written if there are some, or if it `has` the field though they are none.
pub(super) fn put_example(features: &Entries<'_, FeatureBuf>, has: bool, out: &mut Vec<u8>) -> Result<()> {
    let map = (has || !features.is_empty()).then(|| map_len(features));
    put_message(map.map_or(0, field_len), out, |w| put_map(w, FIELD_1, map, features))
}

/// Appends a SequenceExample; the flags are as `has` of [`put_example`].
pub(super) fn put_sequence(
    context: &Entries<'_, FeatureBuf>,
    has_context: bool,
    lists: &Entries<'_, Vec<FeatureBuf>>,
    has_lists: bool,
    out: &mut Vec<u8>,
) -> Result<()> {
    let first = (has_context || !context.is_empty()).then(|| map_len(context));
    let second = (has_lists || !lists.is_empty()).then(|| map_len(lists));
    put_message(first.map_or(0, field_len) + second.map_or(0, field_len), out, |w| {
        put_map(w, FIELD_1, first, context)?;
        put_map(w, FIELD_2, second, lists)
    })
}

/// One allocation at most, and none before the length is known to be good.
fn put_message(
    len: u64,
    out: &mut Vec<u8>,
    put: impl FnOnce(&mut Writer<&mut Vec<u8>>) -> Put,
) -> Result<()> {
    if len > MAX_LEN {
        return Err(ErrorKind::TooLarge { len: len.into(), limit: MAX_LEN }.into());
    }
    let start = out.len();
    out.reserve(len as usize);
    // A vector never fails to be written to; the encoder's type says it could.
    put(&mut Writer::new(out)).map_err(|e| Error::from(io::Error::other(e)))?;
    debug_assert_eq!((out.len() - start) as u64, len, "lengths were computed wrong");
    Ok(())
}

/// A length-delimited field whose tag is one byte.
fn field_len(body: u64) -> u64 {
    1 + sizeof_varint(body) as u64 + body
}

/// What is the value of a map's entry.
trait Value {
    fn body_len(&self) -> u64;
    fn put_body(&self, w: &mut Writer<&mut Vec<u8>>) -> Put;
}

fn map_len<V: Value>(entries: &Entries<'_, V>) -> u64 {
    entries.iter().map(|(key, value)| field_len(entry_len(key, value.body_len()))).sum()
}

fn entry_len(key: &str, value_len: u64) -> u64 {
    field_len(key.len() as u64) + field_len(value_len)
}

fn put_map<V: Value>(
    w: &mut Writer<&mut Vec<u8>>,
    tag: u32,
    len: Option<u64>,
    entries: &Entries<'_, V>,
) -> Put {
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

impl FeatureBuf {
    /// The member's tag, the length of its list, and the length of the one chunk in it, which bytes do not have.
    fn member(&self) -> Option<(u32, u64, u64)> {
        let of_chunk = |tag, chunk| Some((tag, if chunk == 0 { 0 } else { field_len(chunk) }, chunk));
        match self {
            FeatureBuf::None => None,
            FeatureBuf::Bytes(v) => Some((FIELD_1, v.iter().map(|v| field_len(v.len() as u64)).sum(), 0)),
            FeatureBuf::Float(v) => of_chunk(FIELD_2, v.len() as u64 * 4),
            FeatureBuf::Int64(v) => {
                of_chunk(FIELD_3, v.iter().map(|&v| sizeof_varint(v as u64) as u64).sum())
            }
        }
    }
}

impl Value for FeatureBuf {
    fn body_len(&self) -> u64 {
        self.member().map_or(0, |(_, list_len, _)| field_len(list_len))
    }

    fn put_body(&self, w: &mut Writer<&mut Vec<u8>>) -> Put {
        let Some((tag, list_len, chunk_len)) = self.member() else { return Ok(()) };
        w.write_tag(tag)?;
        w.write_varint(list_len)?;
        if chunk_len > 0 {
            w.write_tag(FIELD_1)?;
            if let (FeatureBuf::Float(v), true) = (self, cfg!(target_endian = "little")) {
                // The values as they lie in memory are the chunk.
                return w.write_bytes(bytemuck::cast_slice(v));
            }
            w.write_varint(chunk_len)?;
        }
        match self {
            FeatureBuf::None => Ok(()),
            FeatureBuf::Bytes(v) => {
                v.iter().try_for_each(|v| w.write_with_tag(FIELD_1, |w| w.write_bytes(v)))
            }
            FeatureBuf::Float(v) => v.iter().try_for_each(|&v| w.write_float(v)),
            FeatureBuf::Int64(v) => v.iter().try_for_each(|&v| w.write_int64(v)),
        }
    }
}

impl Value for Vec<FeatureBuf> {
    fn body_len(&self) -> u64 {
        self.iter().map(|step| field_len(step.body_len())).sum()
    }

    fn put_body(&self, w: &mut Writer<&mut Vec<u8>>) -> Put {
        for step in self {
            w.write_tag(FIELD_1)?;
            w.write_varint(step.body_len())?;
            step.put_body(w)?;
        }
        Ok(())
    }
}

#[cfg(test)]
#[allow(clippy::needless_borrows_for_generic_args)] // References are among the types under test.
mod tests {
    use super::super::{ExampleBuf, SequenceExampleBuf};
    use super::*;
    use proptest::prelude::*;

    /// The bytes of a hex text; spaces and what follows a `#` are for the reader.
    fn hex(text: &str) -> Vec<u8> {
        let digits =
            text.lines().flat_map(|l| l.split('#').next().unwrap().chars()).filter(|c| !c.is_whitespace());
        let digits = digits.map(|c| c.to_digit(16).unwrap() as u8).collect::<Vec<_>>();
        digits.chunks_exact(2).map(|d| d[0] << 4 | d[1]).collect()
    }

    fn builder() -> ExampleBuilder {
        ExampleBuilder::new()
    }

    #[test]
    fn an_example_byte_by_byte() {
        let want = "
            0a 49           # Example.features, 73 bytes
            0a 13           #   entry, 19
            0a 03 656d62    #     key emb
            12 0c           #     value, 12
            12 0a           #       float_list, 10
            0a 08           #         packed, 8
            0000803f        #           1.0
            0100c0ff        #           a negative NaN with a payload
            0a 10           #   entry, 16
            0a 03 696d67    #     key img
            12 09           #     value, 9
            0a 07           #       bytes_list, 7
            0a 03 ffd8ff    #         value, 3
            0a 00           #         value, empty
            0a 1a           #   entry, 26
            0a 05 6c6162656c #    key label
            12 11           #     value, 17
            1a 0f           #       int64_list, 15
            0a 0d           #         packed, 13
            03              #           3
            ac02            #           300
            ffffffffffffffffff01 #      -1
            0a 04           #   entry, 4
            0a 00           #     key, empty
            12 00           #     value without kind
        ";
        let got = builder()
            .none("")
            .int64("label", [3, 300, -1])
            .bytes("img", [b"\xff\xd8\xff".as_slice(), b""])
            .float("emb", [1.0, f32::from_bits(0xffc0_0001)])
            .encode()
            .unwrap();
        assert_eq!(got, hex(want));
    }

    #[test]
    fn empty_ones_of_each_kind() {
        let none: [&[u8]; 0] = [];
        let one = |b: &mut ExampleBuilder| b.encode().unwrap();
        assert_eq!(one(builder().none("a")), hex("0a07 0a05 0a0161 1200"));
        assert_eq!(one(builder().bytes("a", none)), hex("0a09 0a07 0a0161 1202 0a00"));
        assert_eq!(one(builder().float("a", [0f32; 0])), hex("0a09 0a07 0a0161 1202 1200"));
        assert_eq!(one(builder().int64("a", [0i64; 0])), hex("0a09 0a07 0a0161 1202 1a00"));
        assert_eq!(one(builder().int64("", [3])), hex("0a0b 0a09 0a00 1205 1a03 0a0103"));
    }

    #[test]
    fn messages_without_anything() {
        assert_eq!(builder().encode().unwrap(), hex("0a00"));
        assert_eq!(ExampleBuf::default().encode().unwrap(), hex(""));
        assert_eq!(ExampleBuf { has_features: true, ..Default::default() }.encode().unwrap(), hex("0a00"));
        assert_eq!(SequenceExampleBuilder::new().encode().unwrap(), hex(""));
        let both = SequenceExampleBuf { has_context: true, has_feature_lists: true, ..Default::default() };
        assert_eq!(both.encode().unwrap(), hex("0a00 1200"));
    }

    #[test]
    fn a_sequence_byte_by_byte() {
        let steps = || [FeatureBuf::Int64(vec![1, 2]), FeatureBuf::Int64(vec![]), FeatureBuf::None];
        let got = SequenceExampleBuilder::new()
            .int64("n", [1])
            .feature_list("t", steps())
            .feature_list("u", [])
            .encode()
            .unwrap();
        let want = "
            0a 0c           # context, 12 bytes
            0a 0a           #   entry, 10
            0a 01 6e        #     key n
            12 05           #     value, 5
            1a 03 0a 01 01  #       int64_list, packed, 1
            12 1c           # feature_lists, 28
            0a 13           #   entry, 19
            0a 01 74        #     key t
            12 0e           #     FeatureList, 14
            0a 06           #       step, 6
            1a 04 0a 02 01 02 #       int64_list, packed, 1 2
            0a 02           #       step, 2
            1a 00           #         int64_list, empty
            0a 00           #       step without kind
            0a 05           #   entry, 5
            0a 01 75        #     key u
            12 00           #     FeatureList of no steps
        ";
        assert_eq!(got, hex(want));
        let mut buf = SequenceExampleBuf::default();
        buf.context.insert("n".into(), FeatureBuf::Int64(vec![1]));
        buf.feature_lists.insert("t".into(), steps().into());
        buf.feature_lists.insert("u".into(), vec![]);
        assert_eq!(buf.encode().unwrap(), got);
    }

    #[test]
    fn orders_of_keys() {
        let given = ["b", "", "aa", "é", "a", "ab", "z"];
        let keys = |order| {
            let mut b = builder();
            given.iter().fold(&mut b, |b, key| b.none(*key)).key_order(order);
            let got = b.encode().unwrap();
            // 0a len, then entries 0a len 0a len KEY 12 00.
            let mut rest = &got[2..];
            let mut keys = Vec::new();
            while let [0x0a, _, 0x0a, len, tail @ ..] = rest {
                let (key, tail) = tail.split_at(usize::from(*len));
                keys.push(std::str::from_utf8(key).unwrap().to_string());
                rest = &tail[2..];
            }
            keys
        };
        assert_eq!(keys(KeyOrder::Python), ["aa", "ab", "a", "b", "z", "é", ""]);
        assert_eq!(keys(KeyOrder::Bytes), ["", "a", "aa", "ab", "b", "z", "é"]);
        assert_eq!(keys(KeyOrder::Given), given);
        assert_eq!(keys(KeyOrder::default()), keys(KeyOrder::Python));
    }

    #[test]
    fn what_goes_into_an_int64_list() {
        let ints = |f: Result<FeatureBuf, EncodeError>| match f.unwrap() {
            FeatureBuf::Int64(v) => v,
            other => panic!("{other:?}"),
        };
        assert_eq!(ints(FeatureBuf::int64([true, false])), [1, 0]);
        assert_eq!(ints(FeatureBuf::int64([i8::MIN, -1])), [-128, -1]);
        assert_eq!(ints(FeatureBuf::int64(&[u32::MAX])), [4_294_967_295]);
        assert_eq!(ints(FeatureBuf::int64(vec![1usize << 40])), [1 << 40]);
        assert_eq!(ints(FeatureBuf::int64([i64::MIN, i64::MAX])), [i64::MIN, i64::MAX]);
        assert_eq!(ints(FeatureBuf::int64([i64::MAX as u64])), [i64::MAX]);
        let e = FeatureBuf::int64([0, u64::MAX]).unwrap_err();
        assert_eq!(e, EncodeError::Int64Range { value: u64::MAX.into() });
        assert_eq!(FeatureBuf::int64([1u64 << 63]).unwrap_err(), EncodeError::Int64Range { value: 1 << 63 });
    }

    #[test]
    fn what_goes_into_a_float_list() {
        assert_eq!(FeatureBuf::float([0.1f64]), FeatureBuf::Float(vec![0.1]));
        assert_eq!(
            FeatureBuf::float([1e39, -1e39, 1e-50]),
            FeatureBuf::Float(vec![f32::INFINITY, f32::NEG_INFINITY, 0.0])
        );
        assert_eq!(FeatureBuf::float([true, false]), FeatureBuf::Float(vec![1.0, 0.0]));
        assert_eq!(FeatureBuf::float(&vec![u64::MAX]), FeatureBuf::Float(vec![18_446_744_073_709_551_615.0]));
        // By way of f64: 2^60 + 2^36 is half way between two f32 and one more is above it, but f64 rounds that off.
        let x = (1i64 << 60) + (1 << 36) + 1;
        assert_eq!(FeatureBuf::float([x]), FeatureBuf::Float(vec![(1i64 << 60) as f32]));
        assert_ne!(x as f32, (1i64 << 60) as f32);
    }

    #[test]
    fn what_goes_into_a_bytes_list() {
        let want = FeatureBuf::Bytes(vec![b"ab".to_vec()]);
        assert_eq!(FeatureBuf::bytes(["ab"]), want);
        assert_eq!(FeatureBuf::bytes(&["ab"]), want);
        assert_eq!(FeatureBuf::bytes(["ab".to_string()]), want);
        assert_eq!(FeatureBuf::bytes(&vec!["ab".to_string()]), want);
        assert_eq!(FeatureBuf::bytes([b"ab"]), want);
        assert_eq!(FeatureBuf::bytes([*b"ab"]), want);
        assert_eq!(FeatureBuf::bytes([b"ab".as_slice()]), want);
        assert_eq!(FeatureBuf::bytes([vec![b'a', b'b']]), want);
        assert_eq!(FeatureBuf::bytes(&vec![vec![b'a', b'b']]), want);
        assert_eq!(FeatureBuf::bytes([Cow::Borrowed("ab")]), want);
        assert_eq!(FeatureBuf::bytes([Cow::Borrowed(b"ab".as_slice())]), want);
        assert_eq!(FeatureBuf::bytes([Box::<[u8]>::from(*b"ab")]), want);
        assert_eq!(FeatureBuf::bytes(Some("ab")), want);
    }

    #[test]
    fn the_first_refusal_is_the_error() {
        let mut b = builder();
        b.int64("a", [1]).int64("a", [2]).int64("b", [u64::MAX]);
        for _ in 0..2 {
            let e = b.encode().unwrap_err();
            assert!(matches!(e.kind(), ErrorKind::Encode(EncodeError::DuplicateKey)));
            assert_eq!(e.place().feature.as_deref(), Some("a"));
        }
        let e = b.clear().int64("b\n", [u64::MAX]).int64("b\n", [2]).encode().unwrap_err();
        assert_eq!(e.to_string(), r#"feature "b\n": 18446744073709551615 does not fit into an int64"#);
        assert_eq!(b.clear().encode().unwrap(), hex("0a00"));

        let mut out = b"kept".to_vec();
        let mut b = SequenceExampleBuilder::new();
        b.int64("k", [1]).int64_list("k", [[1], [2]]);
        b.encode_into(&mut out).unwrap();
        assert_eq!(out.len(), 4 + b.encode().unwrap().len());
        let before = out.clone();
        let e = b.float_list("k", [[1.0]]).encode_into(&mut out).unwrap_err();
        assert!(matches!(e.kind(), ErrorKind::Encode(EncodeError::DuplicateKey)));
        assert_eq!(out, before);
    }

    #[test]
    fn a_message_that_is_too_long() {
        // Zeroed memory that nobody touches: only its length is asked for.
        let big = || FeatureBuf::Float(vec![0.0; 1 << 29]);
        let mut out = Vec::new();
        let e = builder().feature("a", big()).encode_into(&mut out).unwrap_err();
        let limit = MAX_LEN;
        // Entry, key, value, list and packed: five bytes of length each but the key's.
        assert!(
            matches!(e.kind(), ErrorKind::TooLarge { len, limit: l } if *len == (1 << 31) + 5 * 6 + 3 && *l == limit),
            "{e}"
        );
        let e = SequenceExampleBuilder::new().feature_list("a", [big()]).encode_into(&mut out).unwrap_err();
        assert!(matches!(e.kind(), ErrorKind::TooLarge { .. }));
        assert_eq!(out.capacity(), 0);
    }

    #[test]
    fn equality_is_that_of_bits() {
        let float = |bits: u32| FeatureBuf::Float(vec![f32::from_bits(bits)]);
        assert_eq!(float(0x7fc0_0001), float(0x7fc0_0001));
        assert_ne!(float(0x7fc0_0001), float(0x7fc0_0000));
        assert_ne!(float(0), float(1 << 31));
        assert_ne!(FeatureBuf::Float(vec![]), FeatureBuf::Int64(vec![]));
        assert_ne!(FeatureBuf::None, FeatureBuf::Bytes(vec![]));
        assert_ne!(FeatureBuf::Float(vec![1.0]), FeatureBuf::Float(vec![1.0, 1.0]));
    }

    fn feature() -> impl Strategy<Value = FeatureBuf> {
        prop_oneof![
            Just(FeatureBuf::None),
            prop::collection::vec(prop::collection::vec(any::<u8>(), 0..200), 0..4)
                .prop_map(FeatureBuf::Bytes),
            prop::collection::vec(any::<u32>().prop_map(f32::from_bits), 0..40).prop_map(FeatureBuf::Float),
            prop::collection::vec(any::<i64>(), 0..40).prop_map(FeatureBuf::Int64),
        ]
    }

    proptest! {
        /// Lengths, too: `put_message` compares them with what was written.
        #[test]
        fn builder_and_map_agree(
            features in prop::collection::btree_map("[ab\\x00é]{0,3}", feature(), 0..8),
            lists in prop::collection::btree_map("[ab]{0,3}", prop::collection::vec(feature(), 0..4), 0..8),
        ) {
            let example = ExampleBuf { features: features.clone(), has_features: true };
            let mut b = builder();
            features.iter().fold(&mut b, |b, (key, f)| b.feature(key, f.clone()));
            prop_assert_eq!(b.encode().unwrap(), example.encode().unwrap());
            // A map's own order is that of bytes.
            let by_bytes = example.encode_in(KeyOrder::Bytes).unwrap();
            prop_assert_eq!(&b.key_order(KeyOrder::Given).encode().unwrap(), &by_bytes);
            prop_assert_eq!(&example.encode_in(KeyOrder::Given).unwrap(), &by_bytes);
            prop_assert_eq!(by_bytes.len(), example.encode().unwrap().len());

            let sequence = SequenceExampleBuf { context: features, feature_lists: lists, ..Default::default() };
            let mut b = SequenceExampleBuilder::new();
            sequence.context.iter().fold(&mut b, |b, (key, f)| b.feature(key, f.clone()));
            sequence.feature_lists.iter().fold(&mut b, |b, (key, steps)| b.feature_list(key, steps.clone()));
            prop_assert_eq!(b.encode().unwrap(), sequence.encode().unwrap());
        }
    }
}
