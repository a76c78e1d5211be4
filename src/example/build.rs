//! Builders of Examples and SequenceExamples.

use super::encode;
use super::feature_buf::FeatureBuf;
use super::owned::SequenceExampleBuf;
use super::values::{IntoBytes, ToNumber};
#[cfg(test)]
use crate::error::ErrorKind;
use crate::error::{EncodeError, Error, Result};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

/// A key, and the reason why its value was rejected.
type Rejected = (String, EncodeError);

/// Inserts a value. A second value of the same key is rejected.
fn insert<V>(map: &mut BTreeMap<String, V>, key: String, value: V) -> Result<(), Rejected> {
    match map.entry(key) {
        Entry::Vacant(entry) => {
            entry.insert(value);
            Ok(())
        }
        Entry::Occupied(entry) => Err((entry.key().clone(), EncodeError::DuplicateKey)),
    }
}

fn check(rejected: &Option<Rejected>) -> Result<()> {
    match rejected {
        Some((key, e)) => Err(Error::from(e.clone()).feature(key.as_bytes())),
        None => Ok(()),
    }
}

/// Builds an Example.
///
/// A call may be rejected, for a duplicate key, an integer beyond int64 or a float beyond `f32`.
/// [`encode`](ExampleBuilder::encode) returns the error of the first rejected call, so a chain of calls needs
/// only one `?`.
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
/// assert_eq!(e.to_string(), "feature \"id\": the key is given twice");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// A builder without features writes `0a 00`, like Python's `Example(features=Features(feature={}))`.
#[derive(Clone, Debug, Default)]
pub struct ExampleBuilder {
    features: BTreeMap<String, FeatureBuf>,
    rejected: Option<Rejected>,
}

/// Builds a SequenceExample. [`feature_list`](Self::feature_list) adds a feature list. The other methods, for
/// example [`int64`](Self::int64), add features of the context.
///
/// Rejected calls are handled as in [`ExampleBuilder`]. A context without keys is not written, and neither
/// are empty feature lists.
///
/// ```
/// use tfseek::example::{FeatureBuf, SequenceExampleBuilder};
/// let payload = SequenceExampleBuilder::new()
///     .bytes("speaker", ["anna"])
///     .feature_list("tokens", [vec![1i64, 2, 3], vec![], vec![4]].map(FeatureBuf::from))
///     .encode()?;
/// # Ok::<(), tfseek::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct SequenceExampleBuilder {
    message: SequenceExampleBuf,
    rejected: Option<Rejected>,
}

macro_rules! features {
    ($builder:ident, $($features:ident).+, $whose:literal) => {
        impl $builder {
            /// Creates an empty builder.
            pub fn new() -> $builder {
                $builder::default()
            }

            #[doc = concat!("Adds an int64 feature", $whose, ". An integer above 2^63 - 1 is rejected.")]
            #[must_use]
            pub fn int64(self, key: impl Into<String>, values: impl IntoIterator<Item: ToNumber<i64>>) -> $builder {
                match FeatureBuf::int64(values) {
                    Ok(feature) => self.feature(key, feature),
                    Err(e) => self.note_rejection(Err((key.into(), e))),
                }
            }

            #[doc = concat!("Adds a float feature", $whose, ". A finite number that an `f32` does not reach is rejected.")]
            #[must_use]
            pub fn float(self, key: impl Into<String>, values: impl IntoIterator<Item: ToNumber<f32>>) -> $builder {
                match FeatureBuf::float(values) {
                    Ok(feature) => self.feature(key, feature),
                    Err(e) => self.note_rejection(Err((key.into(), e))),
                }
            }

            #[doc = concat!("Adds a bytes feature", $whose, ".")]
            #[must_use]
            pub fn bytes(
                self,
                key: impl Into<String>,
                values: impl IntoIterator<Item: IntoBytes>,
            ) -> $builder {
                self.feature(key, FeatureBuf::bytes(values))
            }

            #[doc = concat!("Adds a feature of any kind", $whose, ". A duplicate key is rejected.")]
            #[must_use]
            pub fn feature(mut self, key: impl Into<String>, feature: FeatureBuf) -> $builder {
                let inserted = insert(&mut self.$($features).+, key.into(), feature);
                self.note_rejection(inserted)
            }

            fn note_rejection(mut self, inserted: Result<(), Rejected>) -> $builder {
                if let Err(rejected) = inserted {
                    self.rejected.get_or_insert(rejected);
                }
                self
            }
        }
    };
}
features!(ExampleBuilder, features, "");
features!(SequenceExampleBuilder, message.context, " to the context");

impl ExampleBuilder {
    /// Encodes the message. The builder is not changed.
    ///
    /// # Errors
    /// [`ErrorKind::Encode`](crate::ErrorKind::Encode) for the first rejected call, with its key as the
    /// feature; [`ErrorKind::TooLarge`](crate::ErrorKind::TooLarge) above 2^31 - 1 bytes.
    pub fn encode(&self) -> Result<Vec<u8>> {
        check(&self.rejected)?;
        let mut out = Vec::new();
        encode::put_example(&encode::entries(&self.features)?, true, &mut out)?;
        Ok(out)
    }
}

impl SequenceExampleBuilder {
    /// Adds a feature list with one feature per step. It may have no steps. A duplicate key is rejected, but
    /// the context may have a feature with the same key.
    #[must_use]
    pub fn feature_list(
        mut self,
        key: impl Into<String>,
        steps: impl IntoIterator<Item = FeatureBuf>,
    ) -> SequenceExampleBuilder {
        let inserted = insert(&mut self.message.feature_lists, key.into(), steps.into_iter().collect());
        self.note_rejection(inserted)
    }

    /// Encodes the message. The builder is not changed.
    ///
    /// # Errors
    /// As [`ExampleBuilder::encode`].
    pub fn encode(&self) -> Result<Vec<u8>> {
        check(&self.rejected)?;
        self.message.encode()
    }
}

#[cfg(test)]
#[allow(clippy::needless_borrows_for_generic_args)] // References are among the types under test.
mod tests {
    use super::super::ExampleBuf;
    use super::*;
    use proptest::prelude::*;
    use std::borrow::Cow;

    /// Parses a hex text. Spaces are ignored, and a `#` starts a comment.
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
            .feature("", FeatureBuf::None)
            .int64("label", [3, 300, -1])
            .bytes("img", [b"\xff\xd8\xff".as_slice(), b""])
            .float("emb", [1.0, f32::from_bits(0xffc0_0001)])
            .encode()
            .unwrap();
        assert_eq!(got, hex(want));
    }

    #[test]
    fn empty_lists_of_each_kind() {
        let none: [&[u8]; 0] = [];
        let encode = |b: ExampleBuilder| b.encode().unwrap();
        assert_eq!(encode(builder().feature("a", FeatureBuf::None)), hex("0a07 0a05 0a0161 1200"));
        assert_eq!(encode(builder().bytes("a", none)), hex("0a09 0a07 0a0161 1202 0a00"));
        assert_eq!(encode(builder().float("a", [0f32; 0])), hex("0a09 0a07 0a0161 1202 1200"));
        assert_eq!(encode(builder().int64("a", [0i64; 0])), hex("0a09 0a07 0a0161 1202 1a00"));
        assert_eq!(encode(builder().int64("", [3])), hex("0a0b 0a09 0a00 1205 1a03 0a0103"));
    }

    #[test]
    fn empty_messages() {
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
    fn keys_are_sorted() {
        let given = ["b", "", "aa", "é", "a", "ab", "z"];
        let b = given.iter().fold(builder(), |b, key| b.feature(*key, FeatureBuf::None));
        let got = b.encode().unwrap();
        // 0a len, then entries 0a len 0a len KEY 12 00.
        let mut rest = &got[2..];
        let mut keys = Vec::new();
        while let [0x0a, _, 0x0a, len, tail @ ..] = rest {
            let (key, tail) = tail.split_at(usize::from(*len));
            keys.push(std::str::from_utf8(key).unwrap());
            rest = &tail[2..];
        }
        assert_eq!(keys, ["aa", "ab", "a", "b", "z", "é", ""]);
    }

    #[test]
    fn int64_conversions() {
        let ints = |f: Result<FeatureBuf, EncodeError>| match f.unwrap() {
            FeatureBuf::Int64(v) => v,
            other => panic!("{other:?}"),
        };
        assert_eq!(ints(FeatureBuf::int64([true, false])), [1, 0]);
        assert_eq!(ints(FeatureBuf::int64([i8::MIN, -1])), [-128, -1]);
        assert_eq!(ints(FeatureBuf::int64(&[u32::MAX])), [4_294_967_295]);
        assert_eq!(ints(FeatureBuf::int64(vec![1usize << 30])), [1 << 30]);
        assert_eq!(ints(FeatureBuf::int64([i64::MIN, i64::MAX])), [i64::MIN, i64::MAX]);
        assert_eq!(ints(FeatureBuf::int64([i64::MAX as u64])), [i64::MAX]);
        let e = FeatureBuf::int64([0, u64::MAX]).unwrap_err();
        assert_eq!(e, EncodeError::Int64Range { value: u64::MAX.into() });
        assert_eq!(FeatureBuf::int64([1u64 << 63]).unwrap_err(), EncodeError::Int64Range { value: 1 << 63 });
    }

    #[test]
    fn float_conversions() {
        let floats = |f: Result<FeatureBuf, EncodeError>| match f.unwrap() {
            FeatureBuf::Float(v) => v,
            other => panic!("{other:?}"),
        };
        assert_eq!(floats(FeatureBuf::float([0.1f64, 1e-50])), [0.1, 0.0]);
        let infinite = [f64::INFINITY, f64::NEG_INFINITY];
        assert_eq!(floats(FeatureBuf::float(infinite)), [f32::INFINITY, f32::NEG_INFINITY]);
        // The largest number that is rounded down to a float.
        let largest = f64::from(f32::MAX) + 2f64.powi(102);
        assert_eq!(floats(FeatureBuf::float([largest])), [f32::MAX]);
        for value in [1e39, -1e39, largest + 2f64.powi(102)] {
            let e = builder().float("x", [0.5, value]).encode().unwrap_err();
            assert_eq!(e.to_string(), format!("feature \"x\": {value:e} does not fit into a float32"));
        }
        assert_eq!(floats(FeatureBuf::float([true, false])), [1.0, 0.0]);
        assert_eq!(floats(FeatureBuf::float(&vec![u64::MAX])), [18_446_744_073_709_551_615.0]);
        // Converted through f64. 2^60 + 2^36 is halfway between two f32, and x is above it by 1, which f64
        // rounds off.
        let x = (1i64 << 60) + (1 << 36) + 1;
        assert_eq!(floats(FeatureBuf::float([x])), [(1i64 << 60) as f32]);
        assert_ne!(x as f32, (1i64 << 60) as f32);
    }

    #[test]
    fn bytes_conversions() {
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
    fn the_first_rejected_call_is_the_error() {
        let mut b = builder();
        b = b.int64("a", [1]).int64("a", [2]).int64("b", [u64::MAX]);
        for _ in 0..2 {
            let e = b.encode().unwrap_err();
            assert!(matches!(e.kind(), ErrorKind::Encode(EncodeError::DuplicateKey)));
            assert_eq!(e.location().feature.as_deref(), Some("a"));
        }
        let e = builder().int64("b\n", [u64::MAX]).int64("b\n", [2]).encode().unwrap_err();
        assert_eq!(e.to_string(), r#"feature "b\n": 18446744073709551615 does not fit into an int64"#);

        let mut b = SequenceExampleBuilder::new();
        b = b.int64("k", [1]).feature_list("k", [[1], [2]].map(FeatureBuf::from));
        assert!(!b.encode().unwrap().is_empty());
        let e = b.feature_list("k", [FeatureBuf::Float(vec![1.0])]).encode().unwrap_err();
        assert!(matches!(e.kind(), ErrorKind::Encode(EncodeError::DuplicateKey)));
    }

    #[test]
    #[cfg(target_pointer_width = "64")]
    fn messages_above_the_limit_are_rejected() {
        // Zeroed memory that is never touched: only its length is read.
        let big = || FeatureBuf::Float(vec![0.0; 1 << 29]);
        let e = builder().feature("a", big()).encode().unwrap_err();
        let limit = tfseek_wire::MAX_LEN;
        // Features, entry, value, list and chunk have lengths of five bytes. The key takes three bytes.
        assert!(
            matches!(e.kind(), ErrorKind::TooLarge { len, limit: l } if *len == (1 << 31) + 5 * 6 + 3 && *l == limit),
            "{e}"
        );
        let e = SequenceExampleBuilder::new().feature_list("a", [big()]).encode().unwrap_err();
        assert!(matches!(e.kind(), ErrorKind::TooLarge { .. }));
        let mut out = b"kept".to_vec();
        let features = [("a", &big())];
        assert!(encode::put_example(&features, true, &mut out).is_err());
        assert_eq!(out, b"kept");
    }

    #[test]
    fn features_are_equal_if_their_bits_are() {
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
        /// This also checks the lengths: `put_message` compares them with the bytes that were written.
        #[test]
        #[cfg_attr(miri, ignore = "too slow under Miri")]
        fn builder_and_map_agree(
            features in prop::collection::btree_map("[ab\\x00é]{0,3}", feature(), 0..8),
            lists in prop::collection::btree_map("[ab]{0,3}", prop::collection::vec(feature(), 0..4), 0..8),
        ) {
            let example = ExampleBuf { features: features.clone(), has_features: true };
            let b = features.iter().fold(builder(), |b, (key, f)| b.feature(key, f.clone()));
            prop_assert_eq!(b.encode().unwrap(), example.encode().unwrap());

            let sequence = SequenceExampleBuf { context: features, feature_lists: lists, ..Default::default() };
            let b = SequenceExampleBuilder::new();
            let b = sequence.context.iter().fold(b, |b, (key, f)| b.feature(key, f.clone()));
            let lists = sequence.feature_lists.iter();
            let b = lists.fold(b, |b, (key, steps)| b.feature_list(key, steps.clone()));
            prop_assert_eq!(b.encode().unwrap(), sequence.encode().unwrap());
        }
    }
}
