//! `tf.train.Example` and `tf.train.SequenceExample`: borrowed views, owned messages and builders.
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
//! Messages are decoded as protobuf's `FromString` decodes them (`docs/format.md`): the last entry of a key
//! wins, the last member of a oneof wins, messages merge, and numbers may be packed or not. There is one
//! exception: a map entry with an unknown field is rejected, because decoders disagree on its meaning.
//!
//! A list is validated and counted in one pass when it is looked up. After that its length is O(1) and its
//! iteration cannot fail. Nothing is allocated.

#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects))]

mod build;
mod encode;
mod entry_form;
mod feature;
mod feature_buf;
mod feature_slice;
mod guess;
mod kind;
mod list;
mod map;
mod owned;
mod put;
mod sequence;
mod source;
mod values;
mod view;

pub use build::{ExampleBuilder, SequenceExampleBuilder};
pub use encode::sort_keys;
pub use feature::Feature;
pub use feature_buf::FeatureBuf;
pub use feature_slice::FeatureSlice;
pub use guess::{KindGuess, MessageKind};
pub use kind::DType;
pub use list::{List, ListIter};
pub use owned::{ExampleBuf, SequenceExampleBuf};
pub use put::{put_example, put_sequence_example};
pub use sequence::{FeatureList, SequenceExample};
pub use values::{IntoBytes, ToNumber};
pub use view::{Example, Features};

// Used by `batch`.
pub(crate) use entry_form::{EntryForm, EntryValue, Taken, content_offset, entry_head, long_entry};
pub(crate) use feature::{packed, string};
pub(crate) use map::{MapEntries, MapEntry, VALUE_DEPTH};
pub(crate) use source::ValueMessage;
