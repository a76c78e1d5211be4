//! Features of a schema that no record of the first batch has, although they have one of a similar name.

use super::compile::{MapField, MapPlan};
use super::parser::BatchParser;
use super::row::Row;
use crate::example::SequenceExample;
use crate::filter::nearest;
use crate::warning::Warning;
use std::collections::BTreeSet;

/// Maximum number of rows whose names are compared, and of their different names.
const MAX_ROWS: usize = 1000;
const MAX_KEYS: usize = 4096;

impl BatchParser {
    /// Returns a warning for each feature of the schema that none of these rows has, if one of them has a feature of a similar name that the
    /// schema does not read. An optional feature may be absent from all, but a misspelt one always is.
    ///
    /// Only the first call that is given rows compares names, and only of the first 1,000 rows. It ends at the row with which all names were
    /// seen, the first one in most data. The [decoder](BatchParser::decoder) of a parser knows the names, so that nothing is compared.
    ///
    /// ```
    /// use tfseek::{BatchParser, DType, ExampleBuilder, FeatureSpec, Schema};
    /// let schema = Schema::example().feature("lable", FeatureSpec::optional(DType::Int64)).build()?;
    /// let parser = BatchParser::new(&schema);
    /// let rows = [ExampleBuilder::new().int64("label", [3]).encode()?];
    /// let batch = parser.parse(&rows)?;
    /// let warnings = parser.unknown_names(&rows);
    /// assert!(warnings[0].to_string().ends_with(r#"the nearest name is "label""#));
    /// assert!(parser.unknown_names(&rows).is_empty());
    /// # Ok::<(), tfseek::Error>(())
    /// ```
    pub fn unknown_names<R: Row>(&self, rows: &[R]) -> Vec<Warning> {
        if rows.is_empty() || self.has_decoder() || !self.begins_names() {
            return Vec::new();
        }
        let rows = rows.get(..MAX_ROWS).unwrap_or(rows);
        let plan = self.plan();
        let mut warnings = unknown(&plan.features, rows, MapField::Features);
        if plan.sequence {
            warnings.extend(unknown(&plan.lists, rows, MapField::FeatureLists));
        }
        warnings
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
        // The features of an Example are where the context of a SequenceExample is.
        let record = SequenceExample::new(row.payload());
        let mut see = |key| {
            unseen.remove(key);
            let is_read = part.slots.binary_search_by(|slot| (*slot.key).cmp(key)).is_ok();
            if !is_read && others.len() < MAX_KEYS {
                others.insert(key);
            }
        };
        match map {
            MapField::Features => {
                record.context().entries().map_while(Result::ok).for_each(|(key, _)| see(key));
            }
            MapField::FeatureLists => {
                record.feature_lists().map_while(Result::ok).for_each(|(key, _)| see(key));
            }
        }
    }
    let warning = |feature: &str| {
        let near = nearest(feature, others.iter().copied())?;
        Some(Warning::UnknownFeature { feature: feature.into(), nearest: near.into() })
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
        parser.unknown_names(rows).iter().map(ToString::to_string).collect()
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
        ];
        assert_eq!(messages(&BatchParser::new(&schema), &[row]), expected, "`id` is no feature list");
    }
}
