//! Encoding of messages into a buffer of the caller, which can be reused.

use super::encode;
use super::feature_slice::FeatureSlice;
use crate::error::Result;

/// Appends an Example with these features, in this order. Keys must differ: of equal keys readers take the
/// last one.
///
/// It allocates only if the buffer has to grow. [`ExampleBuilder`](super::ExampleBuilder) is easier to use,
/// and writes the same bytes if the features are sorted by [`sort_keys`](super::sort_keys).
///
/// ```
/// use tfseek::example::{ExampleBuilder, FeatureSlice, put_example};
/// let mut payload = Vec::new();
/// for label in 0..3 {
///     payload.clear();
///     let features = [("emb", FeatureSlice::Float(&[0.5, 1.0])), ("label", FeatureSlice::Int64(&[label]))];
///     put_example(&features, &mut payload)?;
///     assert_eq!(payload, ExampleBuilder::new().int64("label", [label]).float("emb", [0.5, 1.0]).encode()?);
/// }
/// # Ok::<(), tfseek::Error>(())
/// ```
///
/// # Errors
/// [`ErrorKind::TooLarge`](crate::ErrorKind::TooLarge) above 2^31 - 1 bytes. Nothing is appended then.
pub fn put_example(features: &[(&str, FeatureSlice<'_>)], out: &mut Vec<u8>) -> Result<()> {
    encode::put_example(features, true, out)
}

/// Appends a SequenceExample with this context and these feature lists, in their orders. A feature list has
/// one feature per step.
///
/// A context without features is not written, and neither are empty feature lists, as by
/// [`SequenceExampleBuilder`](super::SequenceExampleBuilder).
///
/// # Errors
/// As [`put_example`].
pub fn put_sequence_example(
    context: &[(&str, FeatureSlice<'_>)],
    lists: &[(&str, &[FeatureSlice<'_>])],
    out: &mut Vec<u8>,
) -> Result<()> {
    encode::put_sequence(context, false, lists, false, out)
}

#[cfg(test)]
mod tests {
    use super::super::{ExampleBuilder, FeatureBuf, SequenceExampleBuilder, sort_keys};
    use super::*;
    use crate::ErrorKind;

    const STEPS: [FeatureSlice<'_>; 3] =
        [FeatureSlice::Int64(&[1, -2]), FeatureSlice::Int64(&[]), FeatureSlice::None];

    fn features() -> Vec<(&'static str, FeatureSlice<'static>)> {
        vec![
            ("f", FeatureSlice::Float(&[1.5, -0.0])),
            ("", FeatureSlice::None),
            ("bb", FeatureSlice::Bytes(&[b"x", b""])),
            ("b", FeatureSlice::Bytes(&[])),
            ("i", FeatureSlice::Int64(&[i64::MIN, 300])),
        ]
    }

    #[test]
    fn the_bytes_are_those_of_the_builders() {
        let mut features = features();
        sort_keys(&mut features);
        let mut out = b"kept".to_vec();
        put_example(&features, &mut out).unwrap();
        let none: [&[u8]; 0] = [];
        let want = ExampleBuilder::new()
            .float("f", [1.5f32, -0.0])
            .feature("", FeatureBuf::None)
            .bytes("bb", ["x", ""])
            .bytes("b", none)
            .int64("i", [i64::MIN, 300]);
        assert_eq!(out, [b"kept", want.encode().unwrap().as_slice()].concat());

        out.clear();
        put_sequence_example(&[("n", STEPS[0])], &[("t", &STEPS), ("u", &[])], &mut out).unwrap();
        let steps = [FeatureBuf::Int64(vec![1, -2]), FeatureBuf::Int64(vec![]), FeatureBuf::None];
        let want = SequenceExampleBuilder::new().int64("n", [1, -2]);
        assert_eq!(out, want.feature_list("t", steps).feature_list("u", []).encode().unwrap());
        out.clear();
        put_sequence_example(&[], &[], &mut out).unwrap();
        assert_eq!(out, b"");
        put_example(&[], &mut out).unwrap();
        assert_eq!(out, b"\x0a\0");
    }

    #[test]
    fn a_message_above_the_limit_is_refused() {
        let value = vec![0; 1 << 20];
        let values = vec![value.as_slice(); 2048];
        let mut out = b"kept".to_vec();
        let e = put_example(&[("a", FeatureSlice::Bytes(&values))], &mut out).unwrap_err();
        assert!(matches!(e.kind(), ErrorKind::TooLarge { .. }), "{e}");
        assert_eq!(out, b"kept");
    }
}
