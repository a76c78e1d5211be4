//! A feature whose values are slices of the caller.

/// A feature to be encoded, with values that the caller has as slices. [`put_example`](super::put_example)
/// writes it without a copy of its own.
#[derive(Debug)]
pub enum FeatureSlice<'a, B = &'a [u8]> {
    /// No kind. TensorFlow's parsers treat it as an absent feature.
    None,
    /// A bytes list.
    Bytes(&'a [B]),
    /// A float list.
    Float(&'a [f32]),
    /// An int64 list.
    Int64(&'a [i64]),
}

// Derived, both would require them of the strings.
impl<B> Clone for FeatureSlice<'_, B> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<B> Copy for FeatureSlice<'_, B> {}
