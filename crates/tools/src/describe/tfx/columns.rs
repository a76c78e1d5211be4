//! The columns of a schema of TFX: the specs that TensorFlow Transform makes of it.
//!
//! Source of the rules: `schema_as_feature_spec` of `tensorflow_transform/tf_metadata/schema_utils.py` and
//! `tfx_bsl/tfxio/tensor_representation_util.py`.

use super::reader::FieldReader;
use super::schema::{SEQUENCE, TfxSchema};
use super::text::{self, TextField, TextValue};
use crate::error::ToolsError;
use std::collections::{BTreeMap, BTreeSet};
use std::str::FromStr;
use tfseek::example::DType;
use tfseek::schema::SplitsDType;
use tfseek::{FeatureSpec, Schema};

/// Reads a schema in the JSON form, which begins with a brace, or in TFX's text format (`schema.pbtxt`).
///
/// # Errors
/// The errors of [`Schema::from_json`], without a path. In the text format a syntax error, a feature without
/// a type, and all that TensorFlow Transform refuses to make a spec of, with line and column.
pub fn read_columns(text: &str) -> Result<Schema, ToolsError> {
    if is_json(text) { Ok(Schema::from_json(text)?) } else { columns(text.as_bytes()) }
}

/// Reads the rules of a schema in the JSON form, which begins with a brace, or in TFX's text format. It
/// has the errors of [`Schema::from_json`] and [`TfxSchema::parse`].
impl FromStr for TfxSchema {
    type Err = ToolsError;

    fn from_str(text: &str) -> Result<TfxSchema, ToolsError> {
        if is_json(text) {
            Ok(TfxSchema::from(&Schema::from_json(text)?))
        } else {
            TfxSchema::parse(text.as_bytes())
        }
    }
}

fn is_json(text: &str) -> bool {
    text.trim_start().starts_with('{')
}

/// A feature of the records.
pub(super) struct StoredFeature<'m> {
    pub(super) field: &'m TextField,
    kind: Option<DType>,
    /// It is deprecated, or in a stage such as `PLANNED`.
    left_out: bool,
    min_fraction: f64,
    shape: Option<&'m TextField>,
    int_domain: Option<&'m TextField>,
}

pub(super) type StoredFeatures<'m> = BTreeMap<String, StoredFeature<'m>>;

/// The columns of Examples or a context, or of feature lists, by name.
pub(super) type Specs = BTreeMap<String, FeatureSpec>;

fn columns(text: &[u8]) -> Result<Schema, ToolsError> {
    // It refuses unknown fields, and two features of one name.
    TfxSchema::parse(text)?;
    let message = text::parse(text)?;
    let reader = FieldReader { text };
    let mut features = BTreeMap::new();
    let mut steps = None;
    let mut group = None;
    let mut is_ragged = false;
    for field in &message {
        match &*field.name {
            "feature" if reader.is_struct(field)? => {
                reader.steps(field, steps.get_or_insert_with(BTreeMap::new))?;
            }
            "feature" => drop(reader.add_stored(field, &mut features)?),
            "represent_variable_length_as_ragged" => is_ragged = reader.bool(field)?,
            "tensor_representation_group" => group = reader.default_group(field)?.or(group),
            _ => {}
        }
    }
    if features.is_empty() && steps.is_none() {
        let at = TextField { name: "".into(), value: TextValue::Message(Vec::new()), at: text.len() };
        return Err(reader.error(&at, "expected a schema with a feature, found none".into()));
    }
    let mut schema = if steps.is_some() { Schema::sequence_example() } else { Schema::example() };
    let (mut specs, mut lists, mut used) = (Specs::new(), Specs::new(), BTreeSet::new());
    let has_group = group.is_some();
    for (name, field) in group.unwrap_or_default() {
        reader.represented(name, field, (&features, steps.as_ref()), (&mut specs, &mut lists), &mut used)?;
    }
    // TensorFlow Transform gives a SequenceExample the columns of the group, and no others.
    if !(has_group && steps.is_some()) {
        reader.infer(&message, &features, is_ragged, &used, &mut specs)?;
        for (name, step) in steps.iter().flatten().filter(|(_, step)| !step.left_out) {
            lists.insert(name.clone(), ragged(name, reader.kind_of(name, step)?));
        }
    }
    for (name, spec) in specs {
        schema = schema.feature(name, spec);
    }
    for (name, spec) in lists {
        schema = schema.feature_list(name, spec);
    }
    Ok(schema.build()?)
}

/// A ragged column as TFX infers it, with row splits of 64 bits.
fn ragged(name: &str, dtype: DType) -> FeatureSpec {
    let (value_key, row_splits_dtype) = (Some(name.to_owned()), SplitsDType::Int64);
    FeatureSpec::Ragged { dtype, value_key, partitions: Vec::new(), row_splits_dtype, validate: false }
}

impl FieldReader<'_> {
    fn is_struct(&self, field: &TextField) -> Result<bool, ToolsError> {
        let mut found = false;
        for field in self.message(field)?.iter().filter(|field| &*field.name == "type") {
            found = matches!(self.word(field, "a type")?, "STRUCT" | "4");
        }
        Ok(found)
    }

    /// Reads what a column of a feature depends on, and adds it.
    fn add_stored<'m>(&self, field: &'m TextField, all: &mut StoredFeatures<'m>) -> Result<(), ToolsError> {
        let (left_out, min_fraction) = (false, 0.0);
        let (kind, shape, int_domain) = (None, None, None);
        let mut feature = StoredFeature { field, kind, left_out, min_fraction, shape, int_domain };
        let mut name = None;
        for field in self.message(field)? {
            match &*field.name {
                "name" => name = Some(self.string(field)?),
                "type" => feature.kind = self.kind(field)?,
                "deprecated" => feature.left_out |= self.bool(field)?,
                "lifecycle_stage" => feature.left_out |= self.is_left_out(field)?,
                "presence" => {
                    for part in self.message(field)?.iter().filter(|part| &*part.name == "min_fraction") {
                        feature.min_fraction = self.float(part)?;
                    }
                }
                "shape" => feature.shape = Some(field),
                "int_domain" => feature.int_domain = Some(field),
                _ => {}
            }
        }
        let name = name.ok_or_else(|| self.error(field, "feature: expected a name, found none".into()))?;
        all.insert(name, feature);
        Ok(())
    }

    /// Returns true for the stages in which TFX makes no column of a feature.
    fn is_left_out(&self, field: &TextField) -> Result<bool, ToolsError> {
        Ok(self.is_ignored(field)? || matches!(self.word(field, "a stage")?, "VALIDATION_DERIVED" | "9"))
    }

    /// Reads the features of the feature lists of a SequenceExample, which are in one feature of type STRUCT.
    fn steps<'m>(&self, field: &'m TextField, all: &mut StoredFeatures<'m>) -> Result<(), ToolsError> {
        let message = self.message(field)?;
        let mut left_out = false;
        let mut name = String::new();
        for field in message {
            match &*field.name {
                "name" => name = self.string(field)?,
                "deprecated" => left_out |= self.bool(field)?,
                "lifecycle_stage" => left_out |= self.is_left_out(field)?,
                _ => {}
            }
        }
        if name != SEQUENCE {
            let found = name.escape_default();
            let reason = format!("expected the name \"{SEQUENCE}\" of a STRUCT, found \"{found}\"");
            return Err(self.error(field, reason));
        }
        let mut found = BTreeMap::new();
        for domain in message.iter().filter(|field| &*field.name == "struct_domain") {
            for field in self.message(domain)? {
                if &*field.name != "feature" || self.is_struct(field)? {
                    let reason = format!(
                        "expected plain features in \"{SEQUENCE}\", found a sparse feature or a STRUCT"
                    );
                    return Err(self.error(field, reason));
                }
                self.add_stored(field, &mut found)?;
            }
        }
        found.values_mut().for_each(|step| step.left_out |= left_out);
        all.append(&mut found);
        Ok(())
    }

    /// Returns the type of the values of a feature.
    pub(super) fn kind_of(&self, name: &str, feature: &StoredFeature<'_>) -> Result<DType, ToolsError> {
        feature.kind.ok_or_else(|| self.refused(name, feature.field, "expected a type, found none"))
    }

    /// Returns the error of a feature or a column.
    pub(super) fn refused(&self, name: &str, field: &TextField, reason: &str) -> ToolsError {
        self.error(field, format!("\"{}\": {reason}", name.escape_default()))
    }

    /// Adds the columns of features that no representation uses.
    fn infer(
        &self,
        message: &[TextField],
        features: &StoredFeatures<'_>,
        is_ragged: bool,
        used: &BTreeSet<String>,
        specs: &mut Specs,
    ) -> Result<(), ToolsError> {
        let mut rest: BTreeMap<&str, &StoredFeature<'_>> =
            features.iter().map(|(name, feature)| (&**name, feature)).collect();
        let mut inferred = Specs::new();
        for field in message.iter().filter(|field| &*field.name == "sparse_feature") {
            if let Some((name, spec)) = self.sparse(field, features, &mut rest, used)? {
                inferred.insert(name, spec);
            }
        }
        for (name, feature) in rest.into_iter().filter(|(_, feature)| !feature.left_out) {
            let fixed = feature.shape.map(|shape| self.shape_of(name, feature, shape)).transpose()?;
            if used.contains(name) {
                continue;
            }
            let kind = self.kind_of(name, feature)?;
            let spec = match fixed {
                Some(shape) => FeatureSpec::fixed_len(&shape, kind),
                None if is_ragged => ragged(name, kind),
                None => FeatureSpec::var_len(kind),
            };
            inferred.insert(name.to_owned(), spec);
        }
        for (name, spec) in inferred {
            specs.entry(name).or_insert(spec);
        }
        Ok(())
    }

    fn shape_of(
        &self,
        name: &str,
        feature: &StoredFeature<'_>,
        shape: &TextField,
    ) -> Result<Vec<usize>, ToolsError> {
        if feature.min_fraction != 1.0 {
            let reason =
                "expected presence.min_fraction 1 of a feature with a shape; value_count is for others";
            return Err(self.refused(name, feature.field, reason));
        }
        self.sizes(name, shape)
    }

    /// Returns the sizes of a shape whose dimensions all have one.
    pub(super) fn sizes(&self, name: &str, shape: &TextField) -> Result<Vec<usize>, ToolsError> {
        let sizes =
            self.dims(shape)?.into_iter().map(|size| size.and_then(|size| usize::try_from(size).ok()));
        let sizes: Option<_> = sizes.collect();
        sizes.ok_or_else(|| self.refused(name, shape, "expected a size of 0 or more for each dimension"))
    }

    /// Reads a sparse feature. `rest` loses the features of its indices and of its values. Returns `None`
    /// for one that is left out, or that a representation uses.
    fn sparse(
        &self,
        field: &TextField,
        features: &StoredFeatures<'_>,
        rest: &mut BTreeMap<&str, &StoredFeature<'_>>,
        used: &BTreeSet<String>,
    ) -> Result<Option<(String, FeatureSpec)>, ToolsError> {
        let mut already_sorted = false;
        let mut left_out = false;
        for field in self.message(field)? {
            match &*field.name {
                "deprecated" => left_out |= self.bool(field)?,
                "lifecycle_stage" => left_out |= self.is_left_out(field)?,
                "is_sorted" => already_sorted = self.bool(field)?,
                _ => {}
            }
        }
        let Some(group) = self.group(field)?.filter(|_| !left_out) else { return Ok(None) };
        let (name, index_keys, value_key) = (group.name, group.others, group.values);
        let mut size = Vec::new();
        for key in index_keys.iter().chain([&value_key]) {
            if rest.remove(&**key).is_none() {
                let key = key.escape_default();
                let reason =
                    format!("expected a feature \"{key}\" of the schema that no other sparse feature has");
                return Err(self.refused(&name, field, &reason));
            }
        }
        for feature in index_keys.iter().filter_map(|key| features.get(key)) {
            size.push(self.index_size(&name, feature)?);
        }
        if used.contains(&name) {
            return Ok(None);
        }
        let Some(value) = features.get(&value_key) else { return Ok(None) };
        let dtype = self.kind_of(&value_key, value)?;
        Ok(Some((name, FeatureSpec::Sparse { index_keys, value_key, dtype, size, already_sorted })))
    }

    /// Returns the size of the dimension of an index feature: its largest value, plus one.
    fn index_size(&self, name: &str, feature: &StoredFeature<'_>) -> Result<u64, ToolsError> {
        let (mut min, mut max) = (None, None);
        for field in feature.int_domain.map_or(Ok(&[][..]), |domain| self.message(domain))? {
            match &*field.name {
                "min" => min = Some(self.int(field)?),
                "max" => max = Some(self.int(field)?),
                _ => {}
            }
        }
        let size = max.filter(|_| min == Some(0)).and_then(|max| u64::try_from(max).ok());
        let size = size.and_then(|max| max.checked_add(1));
        let reason = "expected an index feature with int_domain { min: 0 max: N }, which is its size";
        size.ok_or_else(|| self.refused(name, feature.field, reason))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compares the columns of a text with a schema in JSON, in which `'` stands for `"`.
    fn check(text: &str, expected: &str) {
        let found = read_columns(text).unwrap_or_else(|e| panic!("{text}: {e}"));
        assert_eq!(found.to_json(), read_columns(&expected.replace('\'', "\"")).unwrap().to_json(), "{text}");
    }

    fn feature(rest: &str) -> String {
        format!("feature {{ {rest} }} ")
    }

    const GROUP: &str = "tensor_representation_group { key: \"\" value { ";
    const VARLEN: &str = "{'type': 'varlen', 'dtype': 'int64'}";

    #[test]
    fn columns_of_examples() {
        let always = "presence { min_fraction: 1 }";
        for (text, expected) in [
            (format!("type: INT {always} shape {{}}"), "'type': 'fixed', 'dtype': 'int64', 'shape': []"),
            (
                format!("type: FLOAT {always} shape {{ dim {{ size: 2 }} dim {{ size: 3 }} }}"),
                "'type': 'fixed', 'dtype': 'float32', 'shape': [2, 3]",
            ),
            // A number of values makes no shape.
            ("type: BYTES value_count { min: 1 max: 1 }".into(), "'type': 'varlen', 'dtype': 'string'"),
            (format!("type: INT {always} lifecycle_stage: BETA"), "'type': 'varlen', 'dtype': 'int64'"),
        ] {
            check(
                &feature(&format!("name: 'a' {text}")),
                &format!("{{'features': {{'a': {{{expected}}}}}}}"),
            );
        }
        let a = feature("name: 'a' type: INT");
        for stage in ["deprecated: true", "lifecycle_stage: PLANNED", "lifecycle_stage: VALIDATION_DERIVED"] {
            let b = feature(&format!("name: 'b' {stage} shape {{}}"));
            check(&(a.clone() + &b), &format!("{{'features': {{'a': {VARLEN}}}}}"));
        }
        check(
            &(a + "represent_variable_length_as_ragged: true"),
            "{'features': {'a': {'type': 'ragged', 'dtype': 'int64', 'value_key': 'a', 'row_splits_dtype': 'int64'}}}",
        );
    }

    #[test]
    fn sparse_features() {
        let parts =
            feature("name: 'i' type: INT int_domain { min: 0 max: 9 }") + &feature("name: 'v' type: INT");
        let sparse = "sparse_feature { name: 's' index_feature { name: 'i' } value_feature { name: 'v' } ";
        for (more, sorted) in [("", false), ("is_sorted: true", true)] {
            let expected = format!(
                "{{'features': {{'s': {{'type': 'sparse', 'index_key': 'i', 'value_key': 'v', 'dtype': 'int64', \
                 'size': 10, 'already_sorted': {sorted}}}}}}}"
            );
            check(&format!("{parts}{sparse}{more} }}"), &expected);
        }
        // Without it, its parts are features as others.
        let expected = format!("{{'features': {{'i': {VARLEN}, 'v': {VARLEN}}}}}");
        check(&format!("{parts}{sparse} deprecated: true }}"), &expected);
    }

    #[test]
    fn representations() {
        let abc = ["a", "b", "c"].map(|name| feature(&format!("name: '{name}' type: INT"))).concat();
        let group = |name: &str, kind: &str| {
            format!("{abc}{GROUP} tensor_representation {{ key: '{name}' value {{ {kind} }} }} }} }}")
        };
        let dense =
            "dense_tensor { column_name: 'a' shape { dim { size: 2 } } default_value { int_value: -1 } }";
        let fixed = "{'type': 'fixed', 'dtype': 'int64', 'shape': [2], 'default': [-1, -1]}";
        check(&group("a", dense), &format!("{{'features': {{'a': {fixed}, 'b': {VARLEN}, 'c': {VARLEN}}}}}"));
        let ragged = "ragged_tensor { feature_path { step: 'a' } partition { uniform_row_length: 2 } \
            partition { row_length: 'b' } row_partition_dtype: INT32 }";
        let partitions = "[{'kind': 'uniform_row_length', 'length': 2}, {'kind': 'row_lengths', 'key': 'b'}]";
        let column =
            format!("'type': 'ragged', 'dtype': 'int64', 'value_key': 'a', 'partitions': {partitions}");
        check(&group("r", ragged), &format!("{{'features': {{'c': {VARLEN}, 'r': {{{column}}}}}}}"));
        let sparse = "sparse_tensor { index_column_names: ['a', 'b'] value_column_name: 'c' \
            dense_shape { dim { size: 4 } dim { size: 5 } } already_sorted: true }";
        let column =
            "'type': 'sparse', 'index_key': ['a', 'b'], 'value_key': 'c', 'dtype': 'int64', 'size': [4, 5]";
        check(&group("s", sparse), &format!("{{'features': {{'s': {{{column}, 'already_sorted': true}}}}}}"));
        // TFX reads the group without a name.
        let other = group("a", dense).replace("key: \"\"", "key: 'other'");
        check(&other, &format!("{{'features': {{'a': {VARLEN}, 'b': {VARLEN}, 'c': {VARLEN}}}}}"));
    }

    #[test]
    fn columns_of_sequence_examples() {
        let nested = feature("name: 't' type: INT") + &feature("name: 'old' deprecated: true");
        let text = feature("name: 'id' type: INT")
            + &feature(&format!("name: '##SEQUENCE##' type: STRUCT struct_domain {{ {nested} }}"));
        let ragged = "{'type': 'ragged', 'dtype': 'int64', 'value_key': 't', 'row_splits_dtype': 'int64'}";
        check(&text, &format!("{{'context': {{'id': {VARLEN}}}, 'sequence': {{'t': {ragged}}}}}"));
        // With a group, its columns are all.
        let path = "feature_path { step: '##SEQUENCE##' step: 't' }";
        let text =
            text + GROUP + "tensor_representation { key: 'x' value { ragged_tensor { " + path + " } } } } }";
        check(&text, &format!("{{'sequence': {{'x': {ragged}}}}}"));
    }

    #[test]
    fn refused() {
        let group = |kind: &str| {
            feature("name: 'a' type: INT")
                + GROUP
                + "tensor_representation { key: 'x' value {\n "
                + kind
                + " } } } }"
        };
        let sparse = "sparse_feature { name: 's' index_feature { name: 'i' } value_feature { name: 'v' } }";
        let nested =
            |part: &str| feature(&format!("name: '##SEQUENCE##' type: STRUCT struct_domain {{\n {part} }}"));
        for (text, expected) in [
            ("\n".to_owned(), "line 2, column 1: expected a schema with a feature, found none"),
            (feature("name: 'a'"), "line 1, column 1: \"a\": expected a type, found none"),
            (
                feature("name: 'a' type: INT\n shape {}"),
                "\"a\": expected presence.min_fraction 1 of a feature with a shape",
            ),
            (
                feature("name: 'a' type: INT presence { min_fraction: 1 }\n shape { dim {} }"),
                "line 2, column 2: \"a\": expected a size of 0 or more",
            ),
            (feature("name: 'v' type: INT") + sparse, "\"s\": expected a feature \"i\" of the schema"),
            (
                feature("name: 'v' type: INT")
                    + &feature("name: 'i' type: INT int_domain { max: 3 }")
                    + sparse,
                "\"s\": expected an index feature with int_domain { min: 0 max: N }",
            ),
            (
                feature("name: 'x' type: STRUCT"),
                "expected the name \"##SEQUENCE##\" of a STRUCT, found \"x\"",
            ),
            (nested("sparse_feature {}"), "line 2, column 2: expected plain features in \"##SEQUENCE##\""),
            (nested("feature { name: 'a' type: STRUCT }"), "line 2, column 2: expected plain features"),
            (group(""), "\"x\": expected one kind of tensor"),
            (
                group("dense_tensor { column_name: 'a' }"),
                "\"x\": expected a column_name that is the name of the tensor",
            ),
            (
                group("varlen_sparse_tensor { column_name: 'x' }"),
                "\"x\": expected a feature of the schema, found \"x\"",
            ),
            (
                group("ragged_tensor { feature_path { step: 'b' } }"),
                "\"x\": expected a feature of the schema, found \"b\"",
            ),
            (group("ragged_tensor { feature_path {} }"), "\"x\": expected a feature_path of the schema"),
            (
                group("ragged_tensor { feature_path { step: 'a' } partition {} }"),
                "\"x\": expected row_length or",
            ),
            (group("other {}"), "line 2, column 2: expected a field of TensorRepresentation, found `other`"),
            (
                group("dense_tensor { column_name: 'x' default_value { float_value: 1 } }")
                    + &feature("name: 'x' type: INT"),
                "\"x\": expected a default of the feature's type",
            ),
        ] {
            let e = read_columns(&text).expect_err(&text).to_string();
            assert!(e.contains(expected), "{text}: {e}");
        }
    }
}
