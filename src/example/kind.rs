//! The kinds of features.

use std::fmt;

/// The kind of a feature's list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum FeatureKind {
    /// Byte strings.
    Bytes,
    /// 32-bit floats.
    Float,
    /// 64-bit signed integers.
    Int64,
}

impl FeatureKind {
    /// Returns `bytes`, `float` or `int64`.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            FeatureKind::Bytes => "bytes",
            FeatureKind::Float => "float",
            FeatureKind::Int64 => "int64",
        }
    }

    /// Returns the tag of the kind's list in a feature.
    #[inline]
    pub(crate) const fn tag(self) -> u8 {
        match self {
            FeatureKind::Bytes => 0x0a,
            FeatureKind::Float => 0x12,
            FeatureKind::Int64 => 0x1a,
        }
    }

    #[inline]
    pub(super) fn of_field(number: u32) -> Option<FeatureKind> {
        match number {
            1 => Some(FeatureKind::Bytes),
            2 => Some(FeatureKind::Float),
            3 => Some(FeatureKind::Int64),
            _ => None,
        }
    }
}

impl fmt::Display for FeatureKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
