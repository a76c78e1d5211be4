//! Features of a schema that none of the first records has, and records that are other messages.

use super::compile::{MapField, MapPlan, Need, PlanSlot};
use super::parser::BatchParser;
use super::row::Row;
use super::slots::RowError;
use crate::error::{Error, Result};
use crate::example::{KindGuess, MapEntries, MessageKind, SequenceExample};
use crate::filter::nearest;
use crate::warning::Warning;
use std::collections::BTreeSet;
use std::iter;
use std::sync::atomic::Ordering::Relaxed;
use tfseek_wire::WireReader;

/// Maximum number of rows whose names are compared, and of their different names.
const MAX_ROWS: usize = 1000;
const MAX_KEYS: usize = 4096;

impl BatchParser {
    /// Returns a warning for each feature of the schema that none of these rows has, if one of them has a
    /// feature of a similar name that the schema does not read, or has it on another side: among the feature
    /// lists, or in the context. Otherwise, if it has a default or is read as a list of values. An optional
    /// feature may be absent from all, but a misspelt one always is.
    ///
    /// Only the first call that is given rows compares names, and only of the first 1,000 rows. It ends at
    /// the row with which all names were seen, the first one in most data. The
    /// [decoder](BatchParser::decoder) of a parser knows the names if it has a
    /// [signature](super::ColumnDecoder::signature), so that nothing is compared.
    ///
    /// Readers call it before they parse the rows: protobuf decodes many other messages as Examples without
    /// features.
    ///
    /// ```
    /// use tfseek::{BatchParser, DType, ExampleBuilder, FeatureSpec, Schema};
    /// let schema = Schema::example().feature("lable", FeatureSpec::optional(DType::Int64)).build()?;
    /// let parser = BatchParser::new(&schema);
    /// let rows = [ExampleBuilder::new().int64("label", [3]).encode()?];
    /// let warnings = parser.unknown_names(&rows)?;
    /// assert!(warnings[0].to_string().ends_with(r#"the nearest name is "label""#));
    /// assert!(parser.unknown_names(&rows)?.is_empty());
    ///
    /// let e = parser.clone().unknown_names(&[b"\x08\x01"]).unwrap_err();
    /// assert_eq!(e.to_string(), "invalid schema: the records are neither Examples nor SequenceExamples");
    /// # Ok::<(), tfseek::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Spec`](crate::ErrorKind::Spec) if the first rows are other messages, and none has a
    /// feature of the schema.
    pub fn unknown_names<R: Row>(&self, rows: &[R]) -> Result<Vec<Warning>> {
        let compared = &self.names_compared;
        if rows.is_empty() || compared.load(Relaxed) || compared.swap(true, Relaxed) {
            return Ok(Vec::new());
        }
        let rows = rows.get(..MAX_ROWS).unwrap_or(rows);
        if let Some(other) = self.other_message(rows) {
            // The next rows are compared.
            compared.store(false, Relaxed);
            return Err(Error::spec(MessageKind::NO_FEATURES).at(other.at()));
        }
        if !self.signature().is_empty() {
            return Ok(Vec::new());
        }
        let mut warnings = unknown(&self.plan.features, rows, MapField::Features);
        if self.is_sequence() {
            warnings.extend(unknown(&self.plan.lists, rows, MapField::FeatureLists));
        }
        Ok(warnings)
    }

    /// Checks that the schema names all features of the rows.
    pub(super) fn check_known<R: Row>(&self, rows: &[R]) -> Result<(), RowError> {
        for (row, record) in rows.iter().enumerate() {
            for map in [MapField::Features, MapField::FeatureLists] {
                let part = self.part(map);
                let unknown = find_key(record.payload(), map, |key| slot_of(part, key).is_none());
                if let Some(key) = unknown {
                    let reason = "expected a spec of each feature of the record, found none";
                    return Err(RowError { row, error: Error::spec(reason).feature(key) });
                }
            }
        }
        Ok(())
    }

    /// Returns the first row if the rows are other messages: none of those that a guess reads is an Example,
    /// nor has a feature of the schema, and one is a message. Rows that are none may be damaged Examples.
    fn other_message<'r, R: Row>(&self, rows: &'r [R]) -> Option<&'r R> {
        let mut guess = KindGuess::default();
        let mut is_message = false;
        for row in rows {
            let payload = row.payload();
            guess.add(payload);
            let mut alone = KindGuess::default();
            alone.add(payload);
            let has = |map| find_key(payload, map, |key| slot_of(self.part(map), key).is_some()).is_some();
            let is_known = || has(MapField::Features) || has(MapField::FeatureLists);
            // A damaged record is reported where it is parsed.
            if alone.kind() != MessageKind::Other || is_known() || row.verify().is_err() {
                return None;
            }
            is_message |= is_well_formed(payload);
            if guess.is_complete() {
                break;
            }
        }
        rows.first().filter(|_| is_message)
    }
}

/// Returns the first key of a map of the payload that is the one looked for, before the first malformed
/// entry.
fn find_key(payload: &[u8], map: MapField, is_it: impl Fn(&[u8]) -> bool) -> Option<&[u8]> {
    let mut entries = MapEntries::new(payload, map as u32, false);
    while let Ok(Some(entry)) = entries.next() {
        if is_it(entry.key) {
            return Some(entry.key);
        }
    }
    None
}

/// Returns the slot of a key.
fn slot_of<'p>(part: &'p MapPlan, key: &[u8]) -> Option<&'p PlanSlot> {
    let at = part.slots.binary_search_by(|slot| slot.key.as_bytes().cmp(key)).ok()?;
    part.slots.get(at)
}

/// Returns true if a payload is a protobuf message of some type.
fn is_well_formed(payload: &[u8]) -> bool {
    let mut reader = WireReader::new(payload);
    iter::from_fn(|| reader.next().transpose()).all(|field| field.is_ok())
}

impl MapField {
    /// Returns the keys of a record. The features of an Example are where the context of a SequenceExample
    /// is.
    pub(super) fn keys(self, payload: &[u8]) -> Vec<&str> {
        let record = SequenceExample::new(payload);
        match self {
            MapField::Features => {
                let entries = record.context().entries().map_while(Result::ok);
                entries.map(|(key, _)| key).take(MAX_KEYS).collect()
            }
            MapField::FeatureLists => {
                let lists = record.feature_lists().map_while(Result::ok);
                lists.map(|(key, _)| key).take(MAX_KEYS).collect()
            }
        }
    }

    /// Returns the other side of a record, and what is said of a name there.
    pub(super) fn other_side(self) -> (MapField, &'static str) {
        match self {
            MapField::Features => (MapField::FeatureLists, "it is a feature list"),
            MapField::FeatureLists => (MapField::Features, "it is a feature of the context"),
        }
    }
}

/// Returns the warnings about the names of one map field.
fn unknown<R: Row>(part: &MapPlan, rows: &[R], map: MapField) -> Vec<Warning> {
    let mut unseen: BTreeSet<&str> = part.slots.iter().map(|slot| &*slot.key).collect();
    let mut others: BTreeSet<&str> = BTreeSet::new();
    for row in rows {
        if unseen.is_empty() {
            return Vec::new();
        }
        for key in map.keys(row.payload()) {
            unseen.remove(key);
            if slot_of(part, key.as_bytes()).is_none() && others.len() < MAX_KEYS {
                others.insert(key);
            }
        }
    }
    let (other_side, place) = map.other_side();
    let mut elsewhere: BTreeSet<&str> = BTreeSet::new();
    for row in rows {
        elsewhere.extend(other_side.keys(row.payload()).into_iter().filter(|key| unseen.contains(key)));
    }
    let warning = |feature: &str| {
        if elsewhere.contains(feature) {
            return Some(Warning::AbsentFeature { feature: feature.into(), place: Some(place) });
        }
        if let Some(near) = nearest(feature, others.iter().copied()) {
            return Some(Warning::UnknownFeature { feature: feature.into(), nearest: near.into() });
        }
        let need = slot_of(part, feature.as_bytes()).map(|slot| &slot.need);
        // An optional feature says that it may be absent.
        let is_filled = match need? {
            Need::Fixed { default, .. } => default.is_some(),
            Need::Optional { .. } => false,
            Need::Blocks { .. } | Need::Any => true,
        };
        is_filled.then(|| Warning::AbsentFeature { feature: feature.into(), place: None })
    };
    unseen.into_iter().filter_map(warning).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example::FeatureBuf;
    use crate::{DType, ExampleBuilder, FeatureSpec, Schema, SequenceExampleBuilder};

    fn messages(parser: &BatchParser, rows: &[Vec<u8>]) -> Vec<String> {
        parser.parse(rows).unwrap();
        parser.unknown_names(rows).unwrap().iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_misspelt_optional_feature_is_named_once() {
        let schema = Schema::example()
            .feature("compny", FeatureSpec::optional(DType::Bytes))
            .feature("tip", FeatureSpec::var_len(DType::Float32))
            .feature("far", FeatureSpec::ragged(DType::Int64))
            .feature("fare", FeatureSpec::optional(DType::Float32))
            .feature("unlike", FeatureSpec::optional(DType::Float32))
            .build()
            .unwrap();
        let row = |name: &str| {
            ExampleBuilder::new()
                .float("fare", [1.0])
                .float("tips", [2.0])
                .bytes(name, ["x"])
                .encode()
                .unwrap()
        };
        let parser = BatchParser::new(&schema);
        assert_eq!(messages(&parser, &[]), Vec::<String>::new());
        let rows = vec![row("other"), row("company")];
        let expected = [
            "none of the first records has a feature \"compny\"; the nearest name is \"company\"",
            "none of the first records has a feature \"far\": its values are the default, or none",
            "none of the first records has a feature \"tip\"; the nearest name is \"tips\"",
        ];
        assert_eq!(messages(&parser, &rows), expected, "`far` is near to `fare`, which is read too");
        assert_eq!(messages(&parser, &rows), Vec::<String>::new());
        assert_eq!(messages(&parser.clone(), &rows), expected);
        // A later row has it.
        let rows = vec![row("company"), row("compny")];
        assert_eq!(messages(&BatchParser::new(&schema), &rows)[..], expected[1..]);
        let mut rows = vec![row("company"); MAX_ROWS];
        rows.push(row("compny"));
        assert_eq!(messages(&BatchParser::new(&schema), &rows), expected);
    }

    #[test]
    fn names_of_sequence_examples() {
        let schema = Schema::sequence_example()
            .feature("Id", FeatureSpec::optional(DType::Int64))
            .feature_list("frame", FeatureSpec::var_len(DType::Float32))
            .feature_list("id", FeatureSpec::var_len(DType::Int64))
            .build()
            .unwrap();
        let frames = vec![FeatureBuf::Float(vec![0.5])];
        let row =
            SequenceExampleBuilder::new().int64("id", [1]).feature_list("frames", frames).encode().unwrap();
        let expected = [
            "none of the first records has a feature \"Id\"; the nearest name is \"id\"",
            "none of the first records has a feature \"frame\"; the nearest name is \"frames\"",
            "none of the first records has a feature \"id\" there: it is a feature of the context",
        ];
        assert_eq!(messages(&BatchParser::new(&schema), std::slice::from_ref(&row)), expected);
        let schema = Schema::example()
            .feature("frames", FeatureSpec::var_len(DType::Float32))
            .feature("none", FeatureSpec::Optional { dtype: DType::Int64, default: None })
            .feature(
                "zero",
                FeatureSpec::FixedLen { shape: vec![], dtype: DType::Int64, default: Some([0i64].into()) },
            )
            .build()
            .unwrap();
        let expected = [
            "none of the first records has a feature \"frames\" there: it is a feature list",
            "none of the first records has a feature \"zero\": its values are the default, or none",
        ];
        assert_eq!(messages(&BatchParser::new(&schema), &[row]), expected);
    }

    #[test]
    fn other_messages_are_refused() {
        let schema = Schema::example().feature("x", FeatureSpec::var_len(DType::Int64)).build().unwrap();
        let refused = |rows: &[&[u8]]| BatchParser::new(&schema).unknown_names(rows).is_err();
        let x = ExampleBuilder::new().int64("x", [1]).encode().unwrap();
        let other: &[u8] = b"\x0a\x04text\x10\x07";
        assert!(refused(&[other]) && refused(&[other, other]) && refused(&[b"\x0a\x7f", other]));
        // An Example among them, or one with more fields; no features; malformed Examples.
        let more = [&x, other].concat();
        for rows in [&[other, &x][..], &[&more], &[b""], &[b"\x0a\x00"], &[b"\x0a\x7f", &x[..4]], &[]] {
            assert!(!refused(rows), "{rows:?}");
        }
        // After an error the next rows are compared.
        let parser = BatchParser::new(&schema);
        assert!(parser.unknown_names(&[other]).is_err() && parser.unknown_names(&[other]).is_err());
        assert!(parser.unknown_names(&[&x]).unwrap().is_empty() && parser.unknown_names(&[other]).is_ok());
    }
}
