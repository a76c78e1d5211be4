//! Evaluation of a condition on records.

use super::condition::{FeatureTest, Node, Operand, Quantifier, Quantity, Test};
use super::expression::Filter;
use super::names::FirstNames;
use super::value::Value;
use crate::error::{Error, ErrorKind, Result};
use crate::example::{DType, Example, Feature, FeatureList, MessageKind, SequenceExample};
use crate::image::{image_format, image_size};

/// Number of features whose views are kept on the stack. Further features are searched for in each test.
const KEPT: usize = 8;

/// Number of records whose names are kept while a feature of the condition is missing.
const FIRST: usize = 16;

/// An evaluation of a [`Filter`] on records. It reads only the features that the condition names, and
/// allocates nothing per record, except among the first 16 records for as long as they lack one of these
/// features.
///
/// ```
/// use tfseek::example::MessageKind;
/// use tfseek::{ExampleBuilder, Filter};
/// let filter: Filter = "label == 3 and any(scores) > 0.5".parse()?;
/// let mut records = filter.for_records();
/// let payload = ExampleBuilder::new().int64("label", [3]).float("scores", [0.1, 0.9]).encode()?;
/// assert!(records.accepts(0, &payload, MessageKind::Example)?);
/// assert_eq!(records.unseen().count(), 0);
/// # Ok::<(), tfseek::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct RecordFilter {
    filter: Filter,
    /// True for each feature that occurred, and for each feature list after them.
    seen: Vec<bool>,
    names: FirstNames,
    /// Number of records that `names` are from.
    first: usize,
}

/// The named features of a record.
struct Found<'f, 'a> {
    filter: &'f Filter,
    example: Example<'a>,
    kept: [Option<Feature<'a>>; KEPT],
    /// True if `kept` has the features. Otherwise each test searches for its own, which is an error if the
    /// record does not decode.
    is_decoded: bool,
}

impl Filter {
    /// Returns an evaluation of the condition on records.
    pub fn for_records(&self) -> RecordFilter {
        RecordFilter {
            filter: self.clone(),
            seen: vec![false; self.features.len() + self.lists.len()],
            names: FirstNames::default(),
            first: 0,
        }
    }
}

impl RecordFilter {
    /// Returns the condition.
    pub fn filter(&self) -> &Filter {
        &self.filter
    }

    /// Returns true if a record meets the condition. `number` is its record number, and `kind` the kind of
    /// its message: in a SequenceExample a feature is one of the context.
    ///
    /// # Errors
    /// They have no path and record; [`Error::at`](crate::Error::at) adds them.
    /// [`ErrorKind::Filter`](crate::ErrorKind::Filter) if a feature has values of another kind than the
    /// condition compares with, or several values where one is compared, and the other tests do not decide
    /// the result; or if the condition names features and the payload is another message. Likewise the errors
    /// of [`Example::get`]: a payload that does not decode fails the tests of its features.
    pub fn accepts(&mut self, number: u64, payload: &[u8], kind: MessageKind) -> Result<bool> {
        let RecordFilter { filter, seen, names, first } = self;
        if let (MessageKind::Other, Some(test)) = (kind, filter.tests.first()) {
            let name = filter.name(test.feature()).escape_debug();
            let reason = format!("feature \"{name}\": expected an Example, found another message");
            return Err(filter.error(test.operand.at.0, reason));
        }
        let example = Example::new(payload);
        let mut found = Found { filter, example, kept: [None; KEPT], is_decoded: true };
        if !filter.tests.is_empty() {
            found.is_decoded = example.find_all(&filter.features, &mut found.kept).is_ok();
        }
        if found.is_decoded && !filter.tests.is_empty() {
            for (seen, k) in seen.iter_mut().zip(0..) {
                *seen = *seen || found.has(k);
            }
            if *first < FIRST && seen.contains(&false) {
                *first += 1;
                names.add(payload);
            }
        }
        found.holds(&filter.root, number, payload)
    }

    /// Returns the features of the condition that no record had so far, and the feature lists as `steps(NAME)`.
    pub fn unseen(&self) -> impl Iterator<Item = &str> {
        self.unseen_of(false).chain(self.unseen_of(true))
    }

    /// Returns the features, or the feature lists, that no record had so far.
    pub(crate) fn unseen_of(&self, lists: bool) -> impl Iterator<Item = &str> {
        let features = self.filter.features.len();
        let unseen = self.seen.iter().zip(0..).filter(move |(seen, k)| !**seen && (*k >= features) == lists);
        unseen.map(|(_, k)| self.filter.name(k))
    }

    /// Returns true once no further record adds to the answer of [`check_names`](RecordFilter::check_names):
    /// all features of the condition occurred, or sixteen records were read.
    pub fn knows_names(&self) -> bool {
        self.first >= FIRST || !self.seen.contains(&false)
    }

    /// Refuses a feature of the condition that no record had so far, if one of the first records has a
    /// feature with a similar name. If these are `all` records, because a reader has read them before its
    /// answer begins, it refuses every feature that none had. On the right of a comparison it refuses each:
    /// such a name is probably a string without quotes.
    ///
    /// Other readers call it before they return a record, or at the end.
    ///
    /// # Errors
    /// [`ErrorKind::Filter`](crate::ErrorKind::Filter), which names the nearest feature;
    /// [`ErrorKind::UnknownFeature`](crate::ErrorKind::UnknownFeature) if none is near.
    pub fn check_names(&self, all: bool) -> Result<()> {
        self.filter.check_names(self.unseen_of(false), self.unseen_of(true), &self.names)?;
        let records = if all { "no record" } else { "none of the first records" };
        if let Some(e) = self.unseen_of(false).find_map(|name| self.filter.unknown_other(name, records)) {
            return Err(e);
        }
        if let Some(list) = self.unseen_of(true).next().filter(|_| all) {
            return Err(self.filter.unknown_list(list, records, &self.names));
        }
        let Some(name) = self.unseen().next().filter(|_| all) else { return Ok(()) };
        let unknown = ErrorKind::UnknownFeature { nearest: None, list: false, keys: self.names.some() };
        Err(Error::from(unknown).feature(name.as_bytes()))
    }

    /// Adds the features that `other` has seen, an evaluation of the same condition on other records.
    pub fn merge(&mut self, other: &RecordFilter) {
        for (seen, other) in self.seen.iter_mut().zip(&other.seen) {
            *seen |= other;
        }
        self.names.merge(&other.names);
        self.first += other.first;
    }
}

impl<'a> Found<'_, 'a> {
    /// Returns true if the record has a feature or a feature list, and it can be read.
    fn has(&self, k: usize) -> bool {
        if k < self.filter.features.len() {
            self.feature(k).is_ok_and(|feature| feature.is_some())
        } else {
            self.list(k).is_ok_and(|list| list.is_some())
        }
    }

    /// Returns a feature list, also of a payload that was opened as an Example: the kind may be a guess.
    fn list(&self, k: usize) -> Result<Option<FeatureList<'a>>> {
        SequenceExample::new(self.example.payload()).feature_list(self.filter.key(k))
    }

    fn feature(&self, k: usize) -> Result<Option<Feature<'a>>> {
        match self.kept.get(k) {
            Some(kept) if self.is_decoded => Ok(*kept),
            _ => {
                let mut found = [None];
                self.example.find_all(self.filter.features.get(k..=k).unwrap_or_default(), &mut found)?;
                let [feature] = found;
                Ok(feature)
            }
        }
    }

    /// Returns true if the feature of a test meets it.
    ///
    /// # Errors
    /// [`ErrorKind::Filter`](crate::ErrorKind::Filter) for values of another kind, and for several values
    /// where one is tested.
    fn meets(&self, test: &FeatureTest) -> Result<bool> {
        let operand = &test.operand;
        if operand.in_steps {
            return self.steps_meet(test);
        }
        let feature = self.feature(operand.feature)?.unwrap_or(Feature::None);
        match &test.test {
            Test::Present => return Ok(!feature.is_empty()),
            Test::Absent => return Ok(feature.is_empty()),
            _ => {}
        }
        if let (Some(kind), 1..) = (feature.kind(), feature.len())
            && operand.quantity != Quantity::Len
        {
            let one =
                if test.quantifier == Quantifier::Only { self.one(operand, feature.len()) } else { Ok(()) };
            let named = |e: Error| e.feature(self.filter.name(operand.feature).as_bytes());
            self.filter.check(test, kind).map_err(named).and(one)?;
        } else if operand.quantity != Quantity::Len {
            return Ok(false);
        }
        let Test::With(op, other) = &test.test else {
            return Ok(test.holds(feature, |value| test.test.meets(value)));
        };
        let Some(value) = self.value(other)? else { return Ok(false) };
        let kind = operand.quantity.kind().or(feature.kind()).unwrap_or(value.kind());
        if (kind == DType::Bytes) != (value.kind() == DType::Bytes) {
            return Err(self.filter.unlike((operand, kind), (other, value.kind())));
        }
        Ok(test.holds(feature, |found| op.holds(found.compare(value))))
    }

    /// Returns true if the steps of the feature list of a test meet it.
    ///
    /// # Errors
    /// As of [`meets`](Found::meets).
    fn steps_meet(&self, test: &FeatureTest) -> Result<bool> {
        let operand = &test.operand;
        let list = self.list(operand.feature)?;
        let len = list.map_or(0, FeatureList::len);
        let steps = || list.into_iter().flat_map(FeatureList::iter).filter(|step| !step.is_empty());
        let counts = operand.quantity == Quantity::Len;
        match &test.test {
            Test::Present => return Ok(len > 0),
            Test::Absent => return Ok(len == 0),
            _ if counts => {}
            _ if steps().next().is_none() => return Ok(false),
            _ => {
                let named = |e: Error| e.feature(self.filter.key(operand.feature).as_bytes());
                let mut kinds = steps().filter_map(Feature::kind);
                kinds.try_for_each(|kind| self.filter.check(test, kind).map_err(named))?;
                if test.quantifier == Quantifier::Only {
                    self.one(operand, steps().map(Feature::len).sum())?;
                }
            }
        }
        let holds = |meets: &dyn Fn(Value<'_>) -> bool| match test.quantifier {
            _ if counts => meets(number(len)),
            Quantifier::All => steps().all(|step| test.holds(step, meets)),
            Quantifier::Only | Quantifier::Any => steps().any(|step| test.holds(step, meets)),
        };
        let Test::With(op, other) = &test.test else { return Ok(holds(&|value| test.test.meets(value))) };
        let Some(value) = self.value(other)? else { return Ok(false) };
        let own = operand.quantity.kind();
        let kinds = own.into_iter().chain(steps().filter_map(Feature::kind).filter(|_| own.is_none()));
        for kind in kinds {
            if (kind == DType::Bytes) != (value.kind() == DType::Bytes) {
                return Err(self.filter.unlike((operand, kind), (other, value.kind())));
            }
        }
        Ok(holds(&|found| op.holds(found.compare(value))))
    }

    /// Returns the value of an operand. `None` without one.
    fn value(&self, operand: &Operand) -> Result<Option<Value<'a>>> {
        if operand.in_steps {
            let list = self.list(operand.feature)?;
            if operand.quantity == Quantity::Len {
                return Ok(Some(number(list.map_or(0, FeatureList::len))));
            }
            let steps = || list.into_iter().flat_map(FeatureList::iter).filter(|step| !step.is_empty());
            let Some(step) = steps().next() else { return Ok(None) };
            return self.value_of(operand, step, steps().map(Feature::len).sum());
        }
        let feature = self.feature(operand.feature)?.unwrap_or(Feature::None);
        if operand.quantity == Quantity::Len {
            return Ok(Some(number(feature.len())));
        }
        self.value_of(operand, feature, feature.len())
    }

    /// Returns the only value of a feature, or of the only step with a value. `len` is the number of values.
    fn value_of(&self, operand: &Operand, feature: Feature<'a>, len: usize) -> Result<Option<Value<'a>>> {
        let Some(kind) = feature.kind().filter(|_| !feature.is_empty()) else { return Ok(None) };
        let named = |e: Error| e.feature(self.filter.key(operand.feature).as_bytes());
        self.filter.check_function(operand, kind).map_err(named)?;
        self.one(operand, len)?;
        let value = match feature {
            Feature::None => None,
            Feature::Int64(list) => list.iter().next().map(Value::Int),
            Feature::Float(list) => list.iter().next().map(Value::Float),
            Feature::Bytes(list) => list.iter().next().map(Value::Bytes),
        };
        Ok(value.and_then(|value| operand.quantity.of(value)))
    }

    /// Refuses several values where one is tested.
    fn one(&self, operand: &Operand, len: usize) -> Result<()> {
        match len {
            2.. => {
                Err(self.filter.several(operand, len).feature(self.filter.key(operand.feature).as_bytes()))
            }
            _ => Ok(()),
        }
    }

    /// Evaluates a node. A test that fails is the result of the record only if the other tests leave it
    /// undecided, whatever their order: columns and records then decide alike, and a record that columns
    /// decide need not be read.
    fn holds(&self, node: &Node, number: u64, payload: &[u8]) -> Result<bool> {
        match node {
            Node::And(nodes) => self.decide(nodes, false, number, payload),
            Node::Or(nodes) => self.decide(nodes, true, number, payload),
            Node::Not(node) => Ok(!self.holds(node, number, payload)?),
            Node::Feature(k) => self.filter.test(*k).map_or(Ok(false), |test| self.meets(test)),
            Node::Number(test) => Ok(number_meets(test, number)),
            Node::Split(split) => Ok(split.holds(payload)),
        }
    }

    /// Returns `decisive` if one of the nodes has this result, whether or not others fail. Otherwise the
    /// first error, or the opposite.
    fn decide(&self, nodes: &[Node], decisive: bool, number: u64, payload: &[u8]) -> Result<bool> {
        let mut failed = None;
        for node in nodes {
            match self.holds(node, number, payload) {
                Ok(found) if found == decisive => return Ok(decisive),
                Ok(_) => {}
                Err(e) => failed = failed.or(Some(e)),
            }
        }
        failed.map_or(Ok(!decisive), Err)
    }
}

/// Returns true if a record number meets a comparison.
pub(crate) fn number_meets(test: &Test, number: u64) -> bool {
    // No dataset has more than 2^63 records: each takes 16 bytes.
    test.meets(Value::Int(i64::try_from(number).unwrap_or(i64::MAX)))
}

impl FeatureTest {
    /// Returns true if a feature has values that meet a condition. Its kind and its number of values were
    /// checked.
    fn holds(&self, feature: Feature<'_>, meets: impl Fn(Value<'_>) -> bool) -> bool {
        let quantity = self.operand.quantity;
        let meets = |value| quantity.of(value).is_some_and(&meets);
        match feature {
            _ if quantity == Quantity::Len => meets(number(feature.len())),
            Feature::None => false,
            Feature::Int64(list) => self.quantified(list.iter(), |v| meets(Value::Int(v))),
            Feature::Float(list) => self.quantified(list.iter(), |v| meets(Value::Float(v))),
            Feature::Bytes(list) => self.quantified(list.iter(), |v| meets(Value::Bytes(v))),
        }
    }

    fn quantified<T>(&self, mut values: impl Iterator<Item = T>, mut meets: impl FnMut(T) -> bool) -> bool {
        match self.quantifier {
            Quantifier::All => values.next().is_some_and(&mut meets) && values.all(meets),
            Quantifier::Only | Quantifier::Any => values.any(meets),
        }
    }
}

impl Quantity {
    /// Returns a property of a value, of a byte string except for the value itself. `None` if it has none.
    fn of(self, value: Value<'_>) -> Option<Value<'_>> {
        match (self, value) {
            (Quantity::Value | Quantity::Len, value) => Some(value),
            (Quantity::Bytes, Value::Bytes(bytes)) => Some(number(bytes.len())),
            (_, Value::Bytes(bytes)) => image_property(bytes, self),
            _ => None,
        }
    }
}

/// Returns a number of things as a value.
fn number(n: usize) -> Value<'static> {
    Value::Int(i64::try_from(n).unwrap_or(i64::MAX))
}

/// Returns a property of an image. `None` if the bytes are no image. That is no error: one damaged image must
/// not end a search.
fn image_property(bytes: &[u8], quantity: Quantity) -> Option<Value<'static>> {
    let format = image_format(bytes)?;
    if quantity == Quantity::Format {
        return Some(Value::Bytes(format.as_bytes()));
    }
    let (width, height) = image_size(bytes)?;
    let pixels = if quantity == Quantity::Width { width } else { height };
    Some(Value::Int(i64::try_from(pixels).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example::{FeatureBuf, SequenceExampleBuilder};

    /// Returns whether a record meets a condition, or the reason of an error.
    fn met(text: &str, payload: &[u8]) -> Result<bool, String> {
        let filter: Filter = text.parse().map_err(|e: Error| e.to_string())?;
        let accepted = filter.for_records().accepts(0, payload, MessageKind::SequenceExample);
        accepted.map_err(|e| e.to_string())
    }

    fn record() -> Vec<u8> {
        let ints = |values: &[i64]| FeatureBuf::Int64(values.to_vec());
        SequenceExampleBuilder::new()
            .int64("x", [2])
            .int64("one", [7])
            .feature_list("x", [ints(&[1, 5]), FeatureBuf::None, ints(&[9])])
            .feature_list("one", [ints(&[]), ints(&[7])])
            .feature_list(
                "a b",
                [FeatureBuf::Bytes(vec![b"cat".to_vec()]), FeatureBuf::Bytes(vec![b"it".to_vec()])],
            )
            .feature_list("mixed", [ints(&[1]), FeatureBuf::Float(vec![0.5])])
            .feature_list("no steps", [])
            .encode()
            .unwrap()
    }

    #[test]
    fn conditions_on_feature_lists() {
        let record = record();
        for (text, expected) in [
            // The number of steps, not of values.
            ("len(steps(x)) == 3", true),
            ("len(steps(nowhere)) == 0 and absent(steps(nowhere))", true),
            ("present(steps(x)) and present(steps(one))", true),
            ("absent(steps('no steps')) and len(steps('no steps')) == 0", true),
            // A value of any step, and the values of all steps.
            ("any(steps(x)) == 5 and any(steps(x)) == 9 and not any(steps(x)) == 2", true),
            ("all(steps(x)) > 0 and all(steps(x)) in 1, 5, 9", true),
            ("all(steps(x)) > 1", false),
            ("all(steps('no steps')) > 1 or any(steps(nowhere)) == 1", false),
            // The only value of all steps.
            ("steps(one) == 7 and steps(one) != 8", true),
            ("any(steps('a b')) == 'cat' and all(steps('a b')) matches 't$'", true),
            ("all(bytes(steps(\"a b\"))) > 1 and any(bytes(steps(\"a b\"))) > 2", true),
            ("all(bytes(steps(\"a b\"))) > 2", false),
            ("any(steps(mixed)) == 1", true),
            // The name alone is the feature of the context.
            ("x == 2 and len(x) == 1 and not any(x) == 5", true),
            ("any(steps(x)) > x and not all(steps(x)) > x", true),
            ("one == steps(one) and len(steps(x)) > len(steps(one))", true),
            ("x == len(steps(one)) and any(steps(x)) < steps(one)", true),
        ] {
            assert_eq!(met(text, &record), Ok(expected), "{text}");
        }
    }

    #[test]
    fn refused_conditions_on_feature_lists() {
        let record = record();
        for (text, reason) in [
            ("steps(x) == 5", "at byte 6: feature \"steps(x)\" has 3 values: expected one; `any(..)`"),
            ("x < steps(x)", "at byte 10: feature \"steps(x)\" has 3 values"),
            ("any(steps(x)) == 'a'", "has values of int64: expected a 64-bit integer, found \"a\""),
            ("any(steps(mixed)) in 1..=1", ""),
            ("any(steps(mixed)) is nan", "has values of int64: expected a 64-bit integer, found nan"),
            ("all(width(steps(x))) > 3", "expected values of bytes, found width(..)"),
            ("any(steps('a b')) > x", "\"steps(a b)\" is a string, and \"x\" is a number"),
            ("len(steps(x)) == 'a'", "len(steps(x)) is a number: expected a 64-bit integer"),
            ("steps(steps(x)) == 1", "expected `)`"),
            ("steps(and) == 1", "the word `and` is reserved"),
            ("any(steps(x) == 1", "expected `)`"),
        ] {
            match met(text, &record) {
                Ok(found) => assert!(reason.is_empty() && found, "{text}: {found}"),
                Err(e) => assert!(!reason.is_empty() && e.contains(reason), "{text}: {e}"),
            }
        }
        // A feature may be named as the function.
        let filter: Filter = "steps == 1 and any(steps(b)) > a and steps(b) != 3".parse().unwrap();
        assert_eq!(filter.features(), ["a", "steps"]);
        assert_eq!(filter.lists().collect::<Vec<_>>(), ["steps(b)"]);
        assert_eq!(filter.column_features(), ["steps"]);
        // A list that is damaged is an error of its tests, whatever the others say.
        let damaged = b"\x0a\x00\x12\x07\x0a\x05\x0a\x01x\x12\x0f";
        assert!(met("any(steps(x)) == 1", damaged).is_err() && met("x == 2", damaged) == Ok(false));
    }

    #[test]
    fn names_of_feature_lists() {
        let checked = |text: &str, all| {
            let mut records = text.parse::<Filter>().unwrap().for_records();
            let _ = records.accepts(0, &record(), MessageKind::SequenceExample);
            let unseen = records.unseen().collect::<Vec<_>>().join(" ");
            (unseen, records.check_names(all).err().map_or(String::new(), |e| e.to_string()))
        };
        assert_eq!(checked("any(steps(x)) == 1", true), Default::default());
        assert_eq!(checked("any(steps(elsewhere)) == 1", false), ("steps(elsewhere)".into(), String::new()));
        for (text, all, reason) in [
            (
                "present(steps(elsewhere))",
                true,
                "no record has a feature list \"elsewhere\"; the first records have \"a b\"",
            ),
            (
                "present(steps(miked))",
                false,
                "none of the first records has a feature list \"miked\"; the nearest name is \"mixed\"",
            ),
            ("present(mixed)", false, "it is a feature list, whose steps `any(steps(mixed))` tests"),
        ] {
            let (_, e) = checked(text, all);
            assert!(e.contains(reason), "{text}: {e}");
        }
    }
}
