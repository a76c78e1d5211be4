//! Inference: the features of records, and the strictest schema that takes them.

use super::{DType, FeatureSpec, Schema, SchemaBuilder};
use crate::error::{BYTES_OF_KEYS, DIFFERENT_KEYS, Error, ErrorKind, Result};
use crate::example::{Example, Feature, FeatureKind, FeatureList, MessageKind, SequenceExample};
use std::collections::BTreeMap;

/// Collects the features of records and proposes a schema. Memory grows with the number of different keys, which is limited, and
/// not with the number of records.
///
/// ```
/// use tfseek::example::MessageKind;
/// use tfseek::schema::{FeatureSpec, Inference};
/// use tfseek::{DType, ExampleBuilder};
/// let mut seen = Inference::new(MessageKind::Example)?;
/// for i in 0..10i64 {
///     seen.add(&ExampleBuilder::new().int64("label", [i]).int64("tokens", 0..i).encode()?)?;
/// }
/// let tokens = seen.findings().find(|found| found.name == "tokens").unwrap();
/// assert_eq!(tokens.counts, Some((0, 9)));
///
/// let schema = seen.schema()?;
/// assert_eq!(schema.features()["label"], FeatureSpec::fixed_len(&[], DType::Int64));
/// assert_eq!(schema.features()["tokens"], FeatureSpec::var_len(DType::Int64));
/// # Ok::<(), tfseek::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Inference {
    sequence: bool,
    records: u64,
    features: BTreeMap<String, Seen>,
    feature_lists: BTreeMap<String, Seen>,
    key_bytes: usize,
}

/// The features that were added under one key.
#[derive(Clone, Debug, Default)]
struct Seen {
    /// Records that have it.
    records: u64,
    /// Features of each kind: one of a record, or one of each step.
    kinds: BTreeMap<FeatureKind, u64>,
    /// Fewest and most values of a feature with a kind.
    counts: Option<(usize, usize)>,
    /// Steps without a kind.
    kindless: u64,
    /// Fewest and most steps.
    steps: Option<(usize, usize)>,
}

impl Seen {
    fn feature(&mut self, feature: Feature<'_>) {
        match feature.kind() {
            Some(kind) => {
                *self.kinds.entry(kind).or_default() += 1;
                widen(&mut self.counts, feature.len());
            }
            None => self.kindless += 1,
        }
    }
}

fn widen(range: &mut Option<(usize, usize)>, value: usize) {
    let (min, max) = range.unwrap_or((value, value));
    *range = Some((min.min(value), max.max(value)));
}

impl Inference {
    /// The limit of different keys. A file that has more uses keys as data, and no schema describes it.
    pub const MAX_KEYS: usize = 100_000;

    /// Bytes of all those keys.
    const MAX_KEY_BYTES: usize = 64 << 20;

    /// Starts an inference from records of this kind.
    ///
    /// # Errors
    /// [`ErrorKind::Spec`] if they are neither Examples nor SequenceExamples.
    pub fn new(kind: MessageKind) -> Result<Inference> {
        let sequence = match kind {
            MessageKind::Example => false,
            MessageKind::SequenceExample => true,
            MessageKind::Other => {
                let reason = "the records are neither Examples nor SequenceExamples";
                return Err(ErrorKind::Spec(reason.into()).into());
            }
        };
        let (features, feature_lists) = Default::default();
        Ok(Inference { sequence, records: 0, features, feature_lists, key_bytes: 0 })
    }

    /// Adds one record.
    ///
    /// # Errors
    /// All that [`Example::validate`] or [`SequenceExample::validate`] finds; the record is then not counted. And
    /// [`ErrorKind::TooMany`] for too many different keys, which is the end.
    pub fn add(&mut self, payload: &[u8]) -> Result<()> {
        let features = Example::new(payload).features()?;
        let lists: BTreeMap<&str, FeatureList<'_>> = match self.sequence {
            true => SequenceExample::new(payload).feature_lists().collect::<Result<_>>()?,
            false => BTreeMap::new(),
        };
        self.records += 1;
        // Absent is what parsers take for absent: without a kind is not there.
        for &(key, feature) in features.iter().filter(|(_, feature)| feature.kind().is_some()) {
            self.note(key, false, |seen| {
                seen.records += 1;
                seen.feature(feature);
            })?;
        }
        for (key, list) in lists {
            self.note(key, true, |seen| {
                seen.records += 1;
                widen(&mut seen.steps, list.iter().len());
                list.iter().for_each(|step| seen.feature(step));
            })?;
        }
        Ok(())
    }

    fn note(&mut self, key: &str, list: bool, add: impl FnOnce(&mut Seen)) -> Result<()> {
        let keys = self.features.len() + self.feature_lists.len();
        let map = if list { &mut self.feature_lists } else { &mut self.features };
        if let Some(seen) = map.get_mut(key) {
            add(seen);
            return Ok(());
        }
        self.key_bytes = self.key_bytes.saturating_add(key.len());
        // Where keys are data, no schema describes the records.
        if keys >= Inference::MAX_KEYS {
            return Err(too_many(DIFFERENT_KEYS, keys + 1, Inference::MAX_KEYS));
        }
        if self.key_bytes > Inference::MAX_KEY_BYTES {
            return Err(too_many(BYTES_OF_KEYS, self.key_bytes, Inference::MAX_KEY_BYTES));
        }
        add(map.entry(key.to_owned()).or_default());
        Ok(())
    }

    /// Returns true if it takes SequenceExamples.
    pub fn is_sequence(&self) -> bool {
        self.sequence
    }

    /// Returns the number of records that were added.
    pub fn records(&self) -> u64 {
        self.records
    }

    /// Returns a finding for each key: those of an Example or of a context sorted by key, then those of the feature lists.
    pub fn findings(&self) -> impl Iterator<Item = Finding<'_>> {
        let features = self.features.iter().map(|(name, seen)| Finding::new(name, seen, false, self.records));
        let lists = self.feature_lists.iter();
        features.chain(lists.map(|(name, seen)| Finding::new(name, seen, true, self.records)))
    }

    /// Returns the schema that takes all records that were added, and is as strict as that allows: see [`Finding::spec`].
    /// Features that never had a kind are left out.
    ///
    /// # Errors
    /// [`ErrorKind::Spec`] for the first [`conflict`](Finding::conflict), and where there were no records.
    pub fn schema(&self) -> Result<Schema> {
        match self.findings().find_map(|found| found.conflict()) {
            Some(conflict) => Err(conflict),
            None => self.schema_without_conflicts(),
        }
    }

    /// Returns the same schema without the features that were found with several kinds.
    ///
    /// # Errors
    /// [`ErrorKind::Spec`] where there were no records.
    pub fn schema_without_conflicts(&self) -> Result<Schema> {
        if self.records == 0 {
            return Err(ErrorKind::Spec("no records to infer a schema from".into()).into());
        }
        let builder = if self.sequence { Schema::sequence_example() } else { Schema::example() };
        let put = |builder: SchemaBuilder, found: Finding<'_>| match found.spec() {
            Some(spec) if found.list => builder.feature_list(found.name, spec),
            Some(spec) => builder.feature(found.name, spec),
            None => builder,
        };
        self.findings().fold(builder, put).build()
    }
}

#[cold]
fn too_many(what: &'static str, found: usize, limit: usize) -> Error {
    ErrorKind::TooMany { what, found: found as u128, limit: limit as u64 }.into()
}

/// The findings of an [`Inference`] under one key.
#[non_exhaustive]
#[derive(Clone, Copy, Debug)]
pub struct Finding<'a> {
    /// The key.
    pub name: &'a str,
    /// True for a feature list.
    pub list: bool,
    /// The kinds, and the number of features (of steps, in a feature list) that have each. Empty for lists without steps.
    pub kinds: &'a BTreeMap<FeatureKind, u64>,
    /// The number of records that have it. A feature without a kind counts as absent.
    pub present: u64,
    /// The number of records that were added.
    pub records: u64,
    /// The fewest and the most values of a feature, or of a step.
    pub counts: Option<(usize, usize)>,
    /// The fewest and the most steps of a feature list.
    pub steps: Option<(usize, usize)>,
    kindless: u64,
}

impl<'a> Finding<'a> {
    fn new(name: &'a str, seen: &'a Seen, list: bool, records: u64) -> Finding<'a> {
        let Seen { records: present, kinds, counts, kindless, steps } = seen;
        Finding {
            name,
            list,
            kinds,
            present: *present,
            records,
            counts: *counts,
            steps: *steps,
            kindless: *kindless,
        }
    }

    /// Returns the strictest spec that takes all that was found:
    ///
    /// * `FixedLen`, if every record has the feature with the same number of values and at least one; a single value is a
    ///   scalar;
    /// * `FixedLenSequence` for a feature list all of whose steps have the same number of values; it allows the list to be missing
    ///   if a record lacked it;
    /// * `VarLen` otherwise.
    ///
    /// `None` without a kind, and with several.
    pub fn spec(&self) -> Option<FeatureSpec> {
        let mut kinds = self.kinds.keys();
        let (Some(kind), None) = (kinds.next(), kinds.next()) else { return None };
        let dtype = DType::from(*kind);
        let shape = match self.counts {
            Some((1, 1)) => vec![],
            Some((count, most)) if count == most && count > 0 => vec![count],
            _ => return Some(FeatureSpec::VarLen { dtype }),
        };
        let always = self.present == self.records;
        Some(match self.list {
            true if self.kindless == 0 => {
                FeatureSpec::FixedLenSequence { shape, dtype, allow_missing: !always, default: None }
            }
            false if always => FeatureSpec::FixedLen { shape, dtype, default: None },
            _ => FeatureSpec::VarLen { dtype },
        })
    }

    /// Returns the reason why no spec takes it, if it was found with several kinds.
    pub fn conflict(&self) -> Option<Error> {
        if self.kinds.len() < 2 {
            return None;
        }
        let what = if self.list { "steps" } else { "records" };
        let kinds: Vec<_> =
            self.kinds.iter().map(|(kind, count)| format!("{kind} in {count} {what}")).collect();
        let reason = format!("found {}: one column has one kind", kinds.join(" and "));
        Some(Error::from(ErrorKind::Spec(reason.into())).feature(self.name.as_bytes()))
    }
}
