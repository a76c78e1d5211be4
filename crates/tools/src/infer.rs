//! Schema inference: statistics of the features of records, and the strictest schema that accepts them.

use std::collections::BTreeMap;
use tfseek::example::{DType, Example, Feature, FeatureList, MessageKind, SequenceExample};
use tfseek::schema::{FeatureSpec, Schema, SchemaBuilder};
use tfseek::{Error, ErrorKind, Result};

/// An inference of a schema from records.
///
/// Memory grows with the number of different keys, which is limited, and not with the number of records.
///
/// ```
/// use tfseek::example::MessageKind;
/// use tfseek::{DType, ExampleBuilder, FeatureSpec};
/// use tfseek_tools::Inference;
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
    kind: MessageKind,
    records: u64,
    features: BTreeMap<String, KeyStats>,
    feature_lists: BTreeMap<String, KeyStats>,
    key_bytes: usize,
}

/// Statistics of the features with one key.
#[derive(Clone, Debug, Default)]
struct KeyStats {
    /// Number of records that have the key.
    records: u64,
    /// Number of features of each kind: one per record, or one per step.
    kinds: BTreeMap<DType, u64>,
    /// Minimum and maximum number of values of a feature with a kind.
    counts: Option<(usize, usize)>,
    /// Number of steps without a kind.
    kindless: u64,
    /// Minimum and maximum number of steps.
    steps: Option<(usize, usize)>,
}

impl KeyStats {
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
    /// Maximum number of different keys. A file with more keys uses them as data, so no schema describes it.
    pub const MAX_KEYS: usize = 100_000;

    /// Maximum number of bytes of all different keys.
    const MAX_KEY_BYTES: usize = 64 << 20;

    /// Starts an inference from records of the kind `kind`.
    ///
    /// # Errors
    /// [`ErrorKind::Spec`] if the records are neither Examples nor SequenceExamples.
    pub fn new(kind: MessageKind) -> Result<Inference> {
        if kind == MessageKind::Other {
            return Err(spec_error("the records are neither Examples nor SequenceExamples"));
        }
        let (features, feature_lists) = Default::default();
        Ok(Inference { kind, records: 0, features, feature_lists, key_bytes: 0 })
    }

    /// Adds one record.
    ///
    /// # Errors
    /// Errors of [`Example::validate`] or [`SequenceExample::validate`], and of [`MessageKind::check`]; the
    /// record is then not counted.
    ///
    /// [`ErrorKind::TooMany`] if there are too many different keys. The inference must not be used after this
    /// error.
    pub fn add(&mut self, payload: &[u8]) -> Result<()> {
        let features = Example::new(payload).features()?;
        let lists: BTreeMap<&str, FeatureList<'_>> = if self.is_sequence() {
            SequenceExample::new(payload).feature_lists().collect::<Result<_>>()?
        } else {
            BTreeMap::new()
        };
        self.kind.check(payload)?;
        self.records += 1;
        for &(key, feature) in features.iter() {
            self.update(key, false, |stats| {
                // A feature without a kind counts as absent, as in parsers.
                if feature.kind().is_some() {
                    stats.records += 1;
                    stats.feature(feature);
                }
            })?;
        }
        for (key, list) in lists {
            self.update(key, true, |stats| {
                stats.records += 1;
                widen(&mut stats.steps, list.iter().len());
                list.iter().for_each(|step| stats.feature(step));
            })?;
        }
        Ok(())
    }

    fn update(&mut self, key: &str, list: bool, add: impl FnOnce(&mut KeyStats)) -> Result<()> {
        let keys = self.features.len() + self.feature_lists.len();
        let map = if list { &mut self.feature_lists } else { &mut self.features };
        if let Some(stats) = map.get_mut(key) {
            add(stats);
            return Ok(());
        }
        self.key_bytes += key.len();
        if keys >= Inference::MAX_KEYS {
            return Err(too_many("different keys", keys + 1, Inference::MAX_KEYS));
        }
        if self.key_bytes > Inference::MAX_KEY_BYTES {
            return Err(too_many("bytes of different keys", self.key_bytes, Inference::MAX_KEY_BYTES));
        }
        add(map.entry(key.to_owned()).or_default());
        Ok(())
    }

    /// Returns true if the records are SequenceExamples.
    pub fn is_sequence(&self) -> bool {
        self.kind == MessageKind::SequenceExample
    }

    /// Returns the number of added records.
    pub fn records(&self) -> u64 {
        self.records
    }

    /// Returns a finding for each key: first the keys of the features, then the keys of the feature lists,
    /// both sorted by key.
    pub fn findings(&self) -> impl Iterator<Item = Finding<'_>> {
        let features =
            self.features.iter().map(|(name, stats)| Finding::new(name, stats, false, self.records));
        let lists = self.feature_lists.iter();
        features.chain(lists.map(|(name, stats)| Finding::new(name, stats, true, self.records)))
    }

    /// Returns the strictest schema that accepts all added records; see [`Finding::spec`].
    ///
    /// Features that never had a kind are left out.
    ///
    /// # Errors
    /// [`ErrorKind::Spec`] for the first [`conflict`](Finding::conflict), or if no records were added.
    pub fn schema(&self) -> Result<Schema> {
        match self.findings().find_map(|found| found.conflict()) {
            Some(conflict) => Err(conflict),
            None => self.schema_without_conflicts(),
        }
    }

    /// Returns the same schema, without the features that were found with several kinds.
    ///
    /// # Errors
    /// [`ErrorKind::Spec`] if no records were added.
    pub fn schema_without_conflicts(&self) -> Result<Schema> {
        if self.records == 0 {
            return Err(spec_error("expected at least one record to infer a schema from, found none"));
        }
        let builder = if self.is_sequence() { Schema::sequence_example() } else { Schema::example() };
        let add = |builder: SchemaBuilder, found: Finding<'_>| match found.spec() {
            Some(spec) if found.list => builder.feature_list(found.name, spec),
            Some(spec) => builder.feature(found.name, spec),
            None => builder,
        };
        self.findings().fold(builder, add).build()
    }
}

#[cold]
fn spec_error(reason: impl Into<Box<str>>) -> Error {
    ErrorKind::Spec(reason.into()).into()
}

#[cold]
fn too_many(what: &'static str, found: usize, limit: usize) -> Error {
    ErrorKind::TooMany { what, found: found as u128, limit: limit as u64 }.into()
}

/// The result of an [`Inference`] for one key.
#[non_exhaustive]
#[derive(Clone, Copy, Debug)]
pub struct Finding<'a> {
    /// Key of the feature or feature list.
    pub name: &'a str,
    /// True for a feature list.
    pub list: bool,
    /// Number of features of each kind; in a feature list, number of steps of each kind. Empty if none has a
    /// kind.
    pub kinds: &'a BTreeMap<DType, u64>,
    /// Number of records that have the key. A feature without a kind counts as absent.
    pub present: u64,
    /// Number of added records.
    pub records: u64,
    /// Minimum and maximum number of values of a feature, or of a step.
    pub counts: Option<(usize, usize)>,
    /// Minimum and maximum number of steps of a feature list.
    pub steps: Option<(usize, usize)>,
    kindless: u64,
}

impl<'a> Finding<'a> {
    fn new(name: &'a str, stats: &'a KeyStats, list: bool, records: u64) -> Finding<'a> {
        let &KeyStats { records: present, ref kinds, counts, kindless, steps } = stats;
        Finding { name, list, kinds, present, records, counts, steps, kindless }
    }

    /// Returns the strictest spec that accepts the feature in all added records:
    ///
    /// * `FixedLen` if every record has the feature with the same number of values, which is at least 1. One
    ///   value is a scalar.
    /// * `Optional` if every record has at most one value, and some have none.
    /// * `FixedLenSequence` for a feature list if all steps have the same number of values, which is at least
    ///   1. `allow_missing` is set if a record does not have the list.
    /// * `VarLen` otherwise.
    ///
    /// Returns `None` if no kind or several kinds were found.
    pub fn spec(&self) -> Option<FeatureSpec> {
        let mut kinds = self.kinds.keys();
        let (Some(kind), None) = (kinds.next(), kinds.next()) else { return None };
        let dtype = *kind;
        let always = self.present == self.records;
        let shape = match self.counts {
            Some((min, 1)) if !self.list && (min == 0 || !always) => {
                return Some(FeatureSpec::Optional { dtype, default: None });
            }
            Some((1, 1)) => vec![],
            Some((count, most)) if count == most && count > 0 => vec![count],
            _ => return Some(FeatureSpec::VarLen { dtype }),
        };
        Some(if self.list && self.kindless == 0 {
            FeatureSpec::FixedLenSequence { shape, dtype, allow_missing: !always, default: None }
        } else if !self.list && always {
            FeatureSpec::FixedLen { shape, dtype, default: None }
        } else {
            FeatureSpec::VarLen { dtype }
        })
    }

    /// Returns the error of a feature that was found with several kinds, for which no spec exists.
    pub fn conflict(&self) -> Option<Error> {
        if self.kinds.len() < 2 {
            return None;
        }
        let unit = if self.list { "steps" } else { "records" };
        let kinds: Vec<_> = self
            .kinds
            .iter()
            .map(|(kind, count)| format!("{} in {count} {unit}", kind.list_name()))
            .collect();
        let reason = format!("expected one kind, found {}", kinds.join(" and "));
        Some(spec_error(reason).feature(self.name.as_bytes()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tfseek::error::Category;
    use tfseek::example::KindGuess;
    use tfseek::{ExampleBuilder, FeatureBuf, SequenceExampleBuilder};
    use tfseek_testkit::rng::Rng;

    /// Detects the record kind and infers a schema.
    fn infer(payloads: &[impl AsRef<[u8]>]) -> tfseek::Result<Schema> {
        let mut guess = KindGuess::default();
        payloads.iter().for_each(|payload| guess.add(payload.as_ref()));
        let mut seen = Inference::new(guess.kind())?;
        payloads.iter().try_for_each(|payload| seen.add(payload.as_ref()))?;
        seen.schema()
    }

    fn inferred(payloads: &[Vec<u8>]) -> Schema {
        infer(payloads).unwrap()
    }

    #[test]
    fn features_of_equal_length_are_inferred_as_fixed() {
        let rows: Vec<_> = (0..20i64)
            .map(|i| {
                let mut row = ExampleBuilder::new();
                row = row
                    .int64("label", [i])
                    .float("emb", [0.5f32; 3])
                    .bytes("words", (0..i).map(|_| "w"))
                    .int64("at most one", (0..i % 2).map(|_| 7))
                    .int64("empty", [0i64; 0])
                    .feature("never", FeatureBuf::None);
                row = match i {
                    7 => row.feature("sometimes", FeatureBuf::None),
                    _ => row.int64("sometimes", [1]),
                };
                row.encode().unwrap()
            })
            .collect();
        let schema = inferred(&rows);
        let want = Schema::example()
            .feature("label", FeatureSpec::fixed_len(&[], DType::Int64))
            .feature("emb", FeatureSpec::fixed_len(&[3], DType::Float32))
            .feature("words", FeatureSpec::var_len(DType::Bytes))
            .feature("at most one", FeatureSpec::optional(DType::Int64))
            .feature("empty", FeatureSpec::var_len(DType::Int64))
            .feature("sometimes", FeatureSpec::optional(DType::Int64))
            .build()
            .unwrap();
        assert_eq!(schema, want);

        let mut seen = Inference::new(MessageKind::Example).unwrap();
        rows.iter().for_each(|row| seen.add(row).unwrap());
        let found = seen.findings().find(|found| found.name == "sometimes").unwrap();
        assert_eq!((found.present, found.records, found.counts), (19, 20, Some((1, 1))));
        let never = seen.findings().find(|found| found.name == "never").unwrap();
        assert!(
            never.kinds.is_empty()
                && (never.present, never.spec()) == (0, None)
                && never.conflict().is_none()
        );
        assert!(seen.findings().all(|found| found.steps.is_none() && !found.list));
    }

    /// The last entry of a key counts; earlier ones are ignored.
    #[test]
    fn duplicate_keys_count_as_one_feature() {
        let two = [
            ExampleBuilder::new().float("a", [1.0f32, 2.0]).encode().unwrap(),
            ExampleBuilder::new().int64("a", [1]).encode().unwrap(),
        ]
        .concat();
        assert_eq!(inferred(&[two]).features()["a"], FeatureSpec::fixed_len(&[], DType::Int64));
    }

    #[test]
    fn feature_lists() {
        let frames = |steps: usize| vec![FeatureBuf::Float(vec![0.0, 1.0]); steps];
        let rows: Vec<_> = (0..10usize)
            .map(|i| {
                let mut row = SequenceExampleBuilder::new();
                row = row
                    .int64("id", [i as i64])
                    .float("weight", (0..i % 2).map(|_| 0.5f32))
                    .feature_list("frames", frames(i))
                    .feature_list("words", (0..i).map(|k| FeatureBuf::Bytes(vec![b"w".to_vec(); k])))
                    .feature_list("gaps", [FeatureBuf::Int64(vec![1]), FeatureBuf::None])
                    .feature_list("no steps", []);
                if i != 3 {
                    row = row.feature_list("sometimes", frames(1));
                }
                row.encode().unwrap()
            })
            .collect();
        let want = Schema::sequence_example()
            .feature("id", FeatureSpec::fixed_len(&[], DType::Int64))
            .feature("weight", FeatureSpec::optional(DType::Float32))
            .feature_list(
                "frames",
                FeatureSpec::FixedLenSequence {
                    shape: vec![2],
                    dtype: DType::Float32,
                    allow_missing: false,
                    default: None,
                },
            )
            .feature_list("words", FeatureSpec::var_len(DType::Bytes))
            .feature_list("gaps", FeatureSpec::var_len(DType::Int64))
            .feature_list("sometimes", FeatureSpec::fixed_len_sequence(&[2], DType::Float32))
            .build()
            .unwrap();
        assert_eq!(inferred(&rows), want);
        let mut seen = Inference::new(MessageKind::SequenceExample).unwrap();
        rows.iter().for_each(|row| seen.add(row).unwrap());
        let frames = seen.findings().find(|found| found.list && found.name == "frames").unwrap();
        assert_eq!((frames.steps, frames.counts, frames.present), (Some((0, 9)), Some((2, 2)), 10));
    }

    #[test]
    fn features_of_several_kinds_are_refused() {
        let mut rows = vec![ExampleBuilder::new().int64("x", [1]).int64("y", [1]).encode().unwrap(); 3];
        rows.push(ExampleBuilder::new().float("x", [1.0f32]).int64("y", [1]).encode().unwrap());
        let e = infer(&rows).unwrap_err().to_string();
        assert!(e.contains("float in 1 records and int64 in 3 records"), "{e}");
        let mut seen = Inference::new(MessageKind::Example).unwrap();
        rows.iter().for_each(|row| seen.add(row).unwrap());
        let conflicts = seen.findings().filter(|found| found.conflict().is_some());
        assert_eq!(conflicts.map(|found| found.name).collect::<Vec<_>>(), ["x"]);
        assert_eq!(seen.schema_without_conflicts().unwrap().features().keys().collect::<Vec<_>>(), ["y"]);
    }

    #[test]
    fn inference_without_records_is_refused() {
        let none: [Vec<u8>; 0] = [];
        assert_eq!(infer(&none).unwrap_err().category(), Some(Category::BadSpec));
        assert_eq!(infer(&[b"plain text"]).unwrap_err().category(), Some(Category::BadSpec));
        // A record that does not decode is not counted.
        let mut seen = Inference::new(MessageKind::Example).unwrap();
        assert_eq!(seen.add(b"\x0a\x05\x0a\x03").unwrap_err().category(), Some(Category::MalformedProto));
        assert_eq!(seen.records(), 0);
    }

    #[test]
    fn too_many_different_keys_are_refused() {
        let mut seen = Inference::new(MessageKind::Example).unwrap();
        for block in 0..10 {
            let mut row = ExampleBuilder::new();
            for k in 0..10_000 {
                row = row.int64(format!("{block}/{k}"), [1]);
            }
            seen.add(&row.encode().unwrap()).unwrap();
        }
        let one_more = ExampleBuilder::new().int64("one more", [1]).encode().unwrap();
        let e = seen.add(&one_more).unwrap_err();
        assert_eq!(e.to_string(), "expected at most 100000 different keys, found 100001");
        assert_eq!(e.kind().remedy(), Some(tfseek::error::Remedy::FewerRecords));
    }

    /// The schema inferred from any records survives a JSON round trip.
    #[test]
    fn schemas_inferred_from_any_records_round_trip() {
        for seed in 0..500 {
            let rng = &mut Rng::new(seed);
            let sequence = rng.chance(128);
            let kind = if sequence { MessageKind::SequenceExample } else { MessageKind::Example };
            let mut seen = Inference::new(kind).unwrap();
            for _ in 0..rng.below(10) {
                let row = if sequence {
                    tfseek_testkit::payloads::odd_sequence(rng)
                } else {
                    tfseek_testkit::payloads::odd_example(rng)
                };
                let _ = seen.add(&row);
            }
            if seen.records() > 0 {
                let schema = seen.schema_without_conflicts().unwrap();
                assert_eq!(Schema::from_json(&schema.to_json()).unwrap(), schema);
            }
        }
    }
}
