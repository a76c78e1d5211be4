//! Records from JSON: one object per record, which [`JsonRecords`] reads and encodes.
//!
//! ```text
//! {"label": 1, "score": 0.5, "text": "abc", "ids": [1, 2], "raw": {"base64": "/w=="}}     plain: the features
//! {"index": 0, "record": 0, "features": {"label": [1], "unset": null}}                      what `tfseek cat -f json` prints
//! {"features": {"feature": {"label": {"int64List": {"value": ["1"]}}}}}                     protobuf's JSON mapping
//! ```
//!
//! The first two forms contain no kinds, so a schema is needed ([`FeatureKinds`]), or a first reading that
//! observes the kinds of the values ([`ObservedKinds`]). The third form is exact, and needs none. A value
//! that does not have the kind of its feature, an unknown feature and a key that is given twice are errors
//! with line, column and byte.
//!
//! The text is read once, in pieces: only the record that is being read is in memory, and its text has a
//! maximum length.

mod forms;
mod kinds;
mod observed;
mod source;
mod value;
mod values;

#[cfg(test)]
mod tests;

pub use forms::{JsonForm, JsonRecords};
pub use kinds::FeatureKinds;
pub use observed::ObservedKinds;
