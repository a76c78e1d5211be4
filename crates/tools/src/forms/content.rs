//! Decoded records.

use std::collections::BTreeMap;
use tfseek::example::MessageKind;
use tfseek::{Example, Feature, FeatureList, Record, Result, SequenceExample};

/// A decoded record. Each key occurs once, and keys are sorted by their bytes.
#[derive(Debug)]
pub enum Content<'a> {
    /// The features of an Example.
    Example(BTreeMap<&'a str, Feature<'a>>),
    /// The context and the feature lists of a SequenceExample.
    Sequence(BTreeMap<&'a str, Feature<'a>>, BTreeMap<&'a str, FeatureList<'a>>),
    /// A payload of another type.
    Raw,
}

impl<'a> Content<'a> {
    /// Decodes a payload as a message of the given kind.
    ///
    /// # Errors
    /// The payload is malformed as a message of that kind, or [has more](MessageKind::check) than such a
    /// message. The error has no location.
    pub fn decode(payload: &'a [u8], kind: MessageKind) -> Result<Content<'a>> {
        let content = match kind {
            MessageKind::Example => Content::Example(map(Example::new(payload).entries())?),
            MessageKind::SequenceExample => {
                let sequence = SequenceExample::new(payload);
                Content::Sequence(map(sequence.context().entries())?, map(sequence.feature_lists())?)
            }
            MessageKind::Other => Content::Raw,
        };
        kind.check(payload).map(|()| content)
    }

    /// Decodes a record whose kind was specified by the user (`is_given`), or guessed. A record that is not
    /// of a guessed kind is returned as raw bytes.
    ///
    /// # Errors
    /// The payload is malformed as a message of a given kind;
    /// [`ErrorKind::OtherKind`](tfseek::ErrorKind::OtherKind) also for a guessed one, which is then wrong for
    /// all records. The error has the location of the record.
    pub fn of_record(record: Record<'a>, kind: MessageKind, is_given: bool) -> Result<Content<'a>> {
        match Content::decode(record.payload(), kind).map_err(|e| e.at(record.at())) {
            Err(e) if !is_given && e.is_data() => Ok(Content::Raw),
            decoded => decoded,
        }
    }
}

/// Collects the entries of a map. The last one of a key wins. Entry by entry, only small nodes use memory.
fn map<'a, V>(entries: impl Iterator<Item = Result<(&'a str, V)>>) -> Result<BTreeMap<&'a str, V>> {
    let mut map = BTreeMap::new();
    for entry in entries {
        let (key, value) = entry?;
        map.insert(key, value);
    }
    Ok(map)
}

/// Calls `f` with the bytes of each value of a feature: an int64 as 8 bytes, a float as 4 bytes, a byte
/// string as 8 bytes of length, then its bytes. All numbers are little-endian. Hashes of values are hashes of
/// these bytes.
pub(crate) fn for_each_value(feature: Feature<'_>, mut f: impl FnMut(&[u8])) {
    match feature {
        Feature::None => {}
        Feature::Int64(list) => list.iter().for_each(|v| f(&v.to_le_bytes())),
        Feature::Float(list) => list.iter().for_each(|v| f(&v.to_le_bytes())),
        Feature::Bytes(list) => list.iter().for_each(|v| {
            f(&(v.len() as u64).to_le_bytes());
            f(v);
        }),
    }
}
