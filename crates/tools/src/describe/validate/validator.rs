//! The checks of records, one after the other.

use super::feature::FeatureChecks;
use super::tally::Tally;
use crate::describe::tfx::{FeatureRule, GroupRule, TfxSchema};
use crate::memory::push;
use std::collections::{BTreeMap, HashMap};
use tfseek::example::MessageKind;
use tfseek::{Example, Feature, FeatureList, Result, SequenceExample};

/// The checks of the records of one file, or of several files one after the other.
///
/// Memory is bounded by the features of the schema, the names of new features, and a million distinct values
/// of each feature whose values are counted.
///
/// ```
/// use tfseek::ExampleBuilder;
/// use tfseek::example::MessageKind;
/// use tfseek_tools::tfx::TfxSchema;
/// use tfseek_tools::validate::Validator;
///
/// let schema = TfxSchema::parse(br#"feature { name: "label" type: INT int_domain { min: 0 max: 9 } }"#)?;
/// let mut checks = Validator::new(&schema);
/// for label in [3, 12, 4] {
///     let payload = ExampleBuilder::new().int64("label", [label]).encode()?;
///     checks.add(&payload, MessageKind::Example)?;
/// }
/// let report = checks.report(None, None);
/// assert_eq!(report.anomalies[0].kind.name(), "INT_TYPE_BIG_INT");
/// assert_eq!(report.anomalies[0].first, [1]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Validator<'s> {
    pub(super) schema: &'s TfxSchema,
    /// Number of a rule, and the rule, by its feature's name: rules for features, then for feature lists.
    features: HashMap<&'s str, (usize, &'s FeatureRule)>,
    lists: HashMap<&'s str, (usize, &'s FeatureRule)>,
    /// By the number of the rule.
    pub(super) checks: Vec<FeatureChecks>,
    /// Missing values, missing others and different lengths of each group of the schema.
    pub(super) groups: Vec<[Tally; 3]>,
    /// Features that the schema does not have. True: a feature list.
    pub(super) new: BTreeMap<(String, bool), Tally>,
    /// Records with more new features than [`MAX_NEW`].
    pub(super) more_new: Tally,
    pub(super) records: u64,
}

/// Maximum number of new features that are reported one by one.
const MAX_NEW: usize = 10_000;

impl<'s> Validator<'s> {
    /// Returns checks of no records.
    pub fn new(schema: &'s TfxSchema) -> Validator<'s> {
        let ids = |rules: &'s BTreeMap<String, FeatureRule>, first: usize| {
            rules.iter().zip(first..).map(|((name, rule), k)| (name.as_str(), (k, rule))).collect()
        };
        Validator {
            schema,
            features: ids(&schema.features, 0),
            lists: ids(&schema.lists, schema.features.len()),
            checks: vec![FeatureChecks::default(); schema.features.len() + schema.lists.len()],
            groups: vec![Default::default(); schema.groups.len()],
            new: BTreeMap::new(),
            more_new: Tally::default(),
            records: 0,
        }
    }

    /// Adds the next record.
    ///
    /// # Errors
    /// The payload is malformed, or `kind` is [`MessageKind::Other`]. The checks are then as before. The
    /// error has no location.
    pub fn add(&mut self, payload: &[u8], kind: MessageKind) -> Result<()> {
        let mut lists = Vec::new();
        let context = match kind {
            MessageKind::Example => Example::new(payload),
            MessageKind::SequenceExample => {
                let sequence = SequenceExample::new(payload);
                lists = entries(sequence.feature_lists())?;
                sequence.context()
            }
            _ => return Err(tfseek::ErrorKind::Spec("records without features".into()).into()),
        };
        let features = entries(context.entries())?;
        kind.check(payload)?;
        // A feature without a kind is missing, as TensorFlow sees it.
        self.add_all(false, &features, |feature| feature.kind().is_some(), FeatureChecks::add);
        let has_kind = |list: FeatureList<'_>| list.iter().any(|step| step.kind().is_some());
        self.add_all(true, &lists, has_kind, FeatureChecks::add_list);
        if !self.schema.groups.is_empty() {
            self.add_groups(&features);
        }
        self.records += 1;
        Ok(())
    }

    /// Returns the rules for features, or for feature lists.
    fn rules(&self, list: bool) -> &HashMap<&'s str, (usize, &'s FeatureRule)> {
        if list { &self.lists } else { &self.features }
    }

    /// Adds the features or the feature lists of a record. Those that it lacks are counted when they are met
    /// again, so the time does not depend on the schema.
    fn add_all<V: Copy>(
        &mut self,
        list: bool,
        found: &[(&str, V)],
        has_kind: impl Fn(V) -> bool,
        add: impl Fn(&mut FeatureChecks, u64, V, &FeatureRule),
    ) {
        let record = self.records;
        // Of entries with one key, the last one counts.
        for &(name, value) in found.iter().rev() {
            if let Some((k, rule)) = self.rules(list).get(name).copied()
                && let Some(checks) = self.checks.get_mut(k)
                && !rule.ignored
                && !checks.has_counted(record)
            {
                add(checks, record, value, rule);
            }
        }
        for &(name, value) in found {
            if has_kind(value) && !self.rules(list).contains_key(name) {
                self.add_new(name, list);
            }
        }
    }

    /// Compares the numbers of values of the features of each group.
    fn add_groups(&mut self, found: &[(&str, Feature<'_>)]) {
        let record = self.records;
        let last: HashMap<&str, Feature<'_>> = found.iter().copied().collect();
        let len = |name: &String| {
            let feature = last.get(name.as_str())?;
            feature.kind().map(|_| feature.len())
        };
        for (group, [no_value, no_other, lengths]) in self.schema.groups.iter().zip(&mut self.groups) {
            let value = len(&group.values);
            for other in group.others.iter().map(len) {
                match (value, other) {
                    (None, Some(_)) => no_value.record(record),
                    (Some(_), None) => no_other.record(record),
                    (Some(a), Some(b)) if a != b => lengths.add(record, || format!("{a} and {b} values")),
                    _ => {}
                }
            }
        }
    }

    fn add_new(&mut self, name: &str, list: bool) {
        let has = |group: &GroupRule| group.values == name || group.others.iter().any(|other| other == name);
        if list || !self.schema.groups.iter().any(has) {
            let record = self.records;
            self.tally_of_new((name.to_owned(), list)).record(record);
        }
    }

    /// Returns the tally of a new feature. Beyond the limit they have one together.
    fn tally_of_new(&mut self, key: (String, bool)) -> &mut Tally {
        if self.new.len() < MAX_NEW || self.new.contains_key(&key) {
            self.new.entry(key).or_default()
        } else {
            &mut self.more_new
        }
    }

    /// Adds the checks of later records. Their numbers continue this validator's record numbers.
    pub fn append(&mut self, later: Validator<'s>) {
        let before = self.records;
        let records = later.records;
        for (all, later) in self.checks.iter_mut().zip(later.checks) {
            all.append(later, before, records);
        }
        for (all, later) in self.groups.iter_mut().zip(later.groups) {
            all.iter_mut().zip(later).for_each(|(all, later)| all.append(later, before));
        }
        for (key, tally) in later.new {
            self.tally_of_new(key).append(tally, before);
        }
        self.more_new.append(later.more_new, before);
        self.records += later.records;
    }
}

/// Collects the entries of a map.
fn entries<T>(entries: impl Iterator<Item = Result<T>>) -> Result<Vec<T>> {
    let mut all = Vec::new();
    for entry in entries {
        push(&mut all, entry?)?;
    }
    Ok(all)
}
