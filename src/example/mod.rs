//! `tf.train.Example` and `tf.train.SequenceExample`: views that borrow, messages that own their features, builders.
//!
//! ```text
//! Example          features = 1: Features
//! SequenceExample  context  = 1: Features, feature_lists = 2: FeatureLists
//! Features         feature  = 1: map<string, Feature>       entry: key = 1, value = 2
//! FeatureLists     feature_list = 1: map<string, FeatureList>
//! FeatureList      feature  = 1: repeated Feature
//! Feature          oneof kind { bytes_list = 1, float_list = 2, int64_list = 3 }
//! BytesList.value = 1: bytes    FloatList.value = 1: float, packed    Int64List.value = 1: int64, packed
//! ```
//!
//! The meaning is protobuf's own, as `FromString` gives it (`docs/format.md`): the last entry of a key
//! wins, the last member of a oneof wins, messages merge, numbers may be packed or not. One departure: a map
//! entry with an unknown field is refused, for decoders do not agree on what it means
//! ([`Example::with_lenient_map_entries`] takes it).
//!
//! A list is checked when it is looked up: one pass that also counts. After that its length is O(1), its
//! iteration cannot fail, and nothing was allocated.

mod build;
mod encode;
mod feature;
mod feature_buf;
mod guess;
mod kind;
mod list;
mod map;
mod owned;
mod sequence;
mod source;
mod values;
mod view;

pub use build::{ExampleBuilder, SequenceExampleBuilder};
pub use encode::KeyOrder;
pub use feature::Feature;
pub use feature_buf::FeatureBuf;
pub use guess::{KindGuess, MessageKind};
pub use kind::FeatureKind;
pub use list::{BytesIter, BytesList, FloatIter, FloatList, Int64Iter, Int64List};
pub use owned::{ExampleBuf, SequenceExampleBuf};
pub use sequence::{FeatureList, SequenceExample};
pub use values::{IntoBytes, ToFloat, ToInt64};
pub use view::{Example, Features};

// For parsing batches.
pub(crate) use feature::{packed, string};
pub(crate) use map::{EntryRules, MapEntries, MapEntry, VALUE_DEPTH, entry_head};
pub(crate) use source::ValueMessage;
