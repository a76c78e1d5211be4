//! The message `TensorRepresentation`: columns that a schema of TFX states.

use super::columns::{Specs, StoredFeature, StoredFeatures};
use super::reader::FieldReader;
use super::schema::SEQUENCE;
use super::text::TextField;
use crate::error::ToolsError;
use std::collections::BTreeSet;
use tfseek::FeatureSpec;
use tfseek::example::{DType, FeatureBuf};
use tfseek::schema::{Partition, SplitsDType};

/// Maximum number of values of a default, which are copies of one value.
const MAX_DEFAULT: usize = 1 << 20;

/// The features that a representation can name: of Examples or a context, and of feature lists.
type Stored<'a, 'm> = (&'a StoredFeatures<'m>, Option<&'a StoredFeatures<'m>>);

/// The key and the value of an entry of a map. Protobuf writes a map as messages with these fields.
type MapEntry<'m> = (String, Option<&'m TextField>);

impl FieldReader<'_> {
    /// Returns the representations of a group, if it is the one without a name, which TFX uses.
    pub(super) fn default_group<'m>(
        &self,
        field: &'m TextField,
    ) -> Result<Option<Vec<(String, &'m TextField)>>, ToolsError> {
        let (key, value) = self.entry(field)?;
        if !key.is_empty() {
            return Ok(None);
        }
        let mut all = Vec::new();
        for field in value.map_or(Ok(&[][..]), |value| self.message(value))? {
            if &*field.name != "tensor_representation" {
                return Err(self.unknown(field, "TensorRepresentationGroup"));
            }
            let (name, value) = self.entry(field)?;
            all.push((name, value.unwrap_or(field)));
        }
        Ok(Some(all))
    }

    fn entry<'m>(&self, field: &'m TextField) -> Result<MapEntry<'m>, ToolsError> {
        let (mut key, mut value) = (String::new(), None);
        for field in self.message(field)? {
            match &*field.name {
                "key" => key = self.string(field)?,
                "value" => value = Some(field),
                _ => return Err(self.unknown(field, "a map")),
            }
        }
        Ok((key, value))
    }

    /// Adds the column of a representation to `specs` or to `lists`, and the names of its features to `used`.
    pub(super) fn represented(
        &self,
        name: String,
        field: &TextField,
        stored: Stored<'_, '_>,
        (specs, lists): (&mut Specs, &mut Specs),
        used: &mut BTreeSet<String>,
    ) -> Result<(), ToolsError> {
        let [kind] = self.message(field)? else {
            return Err(self.refused(&name, field, "expected one kind of tensor"));
        };
        let (spec, is_list) = match &*kind.name {
            "dense_tensor" => (self.dense(&name, kind, stored)?, false),
            "varlen_sparse_tensor" => (self.var_len(&name, kind, stored)?, false),
            "sparse_tensor" => (self.sparse_tensor(&name, kind, stored)?, false),
            "ragged_tensor" => self.ragged_tensor(&name, kind, stored)?,
            _ => return Err(self.unknown(kind, "TensorRepresentation")),
        };
        if !is_list {
            used.extend(sources(&name, &spec));
        }
        let all = if is_list { lists } else { specs };
        if all.insert(name.clone(), spec).is_some() {
            return Err(self.refused(&name, field, "expected one representation, found two"));
        }
        Ok(())
    }

    /// Returns the type of a feature that a representation names.
    fn kind_in(
        &self,
        name: &str,
        field: &TextField,
        features: &StoredFeatures<'_>,
        key: &str,
    ) -> Result<DType, ToolsError> {
        let found = features.get(key);
        let reason = || format!("expected a feature of the schema, found \"{}\"", key.escape_default());
        let feature: &StoredFeature<'_> = found.ok_or_else(|| self.refused(name, field, &reason()))?;
        self.kind_of(key, feature)
    }

    /// Returns the type of a column that is read from the feature of its own name.
    fn own_kind(
        &self,
        name: &str,
        field: &TextField,
        column: Option<&TextField>,
        stored: Stored<'_, '_>,
    ) -> Result<DType, ToolsError> {
        let key = column.map_or(Ok(String::new()), |column| self.string(column))?;
        if key != name {
            let found = key.escape_default();
            let reason = format!("expected a column_name that is the name of the tensor, found \"{found}\"");
            return Err(self.refused(name, field, &reason));
        }
        self.kind_in(name, field, stored.0, &key)
    }

    fn dense(
        &self,
        name: &str,
        field: &TextField,
        stored: Stored<'_, '_>,
    ) -> Result<FeatureSpec, ToolsError> {
        let (mut column, mut shape, mut default) = (None, Vec::new(), None);
        for part in self.message(field)? {
            match &*part.name {
                "column_name" => column = Some(part),
                "shape" => shape = self.sizes(name, part)?,
                "default_value" => default = Some(part),
                _ => return Err(self.unknown(part, "DenseTensor")),
            }
        }
        let kind = self.own_kind(name, field, column, stored)?;
        let spec = FeatureSpec::fixed_len(&shape, kind);
        let Some(default) = default else { return Ok(spec) };
        let count = shape.iter().try_fold(1usize, |all, &size| all.checked_mul(size));
        let Some(count) = count.filter(|&count| count <= MAX_DEFAULT) else {
            let reason = format!("expected at most {MAX_DEFAULT} values with a default");
            return Err(self.refused(name, field, &reason));
        };
        let found = match self.message(default)? {
            [value] => match (&*value.name, kind) {
                ("int_value", DType::Int64) => Some(FeatureBuf::from(vec![self.int(value)?; count])),
                ("float_value", DType::Float32) => Some(vec![self.float(value)? as f32; count].into()),
                ("bytes_value", DType::Bytes) => Some(vec![self.bytes(value)?; count].into()),
                _ => None,
            },
            _ => None,
        };
        let found =
            found.ok_or_else(|| self.refused(name, default, "expected a default of the feature's type"));
        Ok(spec.with_default(found?))
    }

    fn var_len(
        &self,
        name: &str,
        field: &TextField,
        stored: Stored<'_, '_>,
    ) -> Result<FeatureSpec, ToolsError> {
        let mut column = None;
        for part in self.message(field)? {
            match &*part.name {
                "column_name" => column = Some(part),
                _ => return Err(self.unknown(part, "VarLenSparseTensor")),
            }
        }
        Ok(FeatureSpec::var_len(self.own_kind(name, field, column, stored)?))
    }

    fn sparse_tensor(
        &self,
        name: &str,
        field: &TextField,
        stored: Stored<'_, '_>,
    ) -> Result<FeatureSpec, ToolsError> {
        let (mut size, mut index_keys, mut value_key) = (Vec::new(), Vec::new(), String::new());
        let mut already_sorted = false;
        for part in self.message(field)? {
            match &*part.name {
                "dense_shape" => size = self.sizes(name, part)?.into_iter().map(|n| n as u64).collect(),
                "index_column_names" => index_keys.push(self.string(part)?),
                "value_column_name" => value_key = self.string(part)?,
                "already_sorted" => already_sorted = self.bool(part)?,
                _ => return Err(self.unknown(part, "SparseTensor")),
            }
        }
        let dtype = self.kind_in(name, field, stored.0, &value_key)?;
        Ok(FeatureSpec::Sparse { index_keys, value_key, dtype, size, already_sorted })
    }

    /// Returns a ragged column, and whether it is one of feature lists.
    fn ragged_tensor(
        &self,
        name: &str,
        field: &TextField,
        stored: Stored<'_, '_>,
    ) -> Result<(FeatureSpec, bool), ToolsError> {
        let (mut path, mut partitions) = (Vec::new(), Vec::new());
        let mut row_splits_dtype = SplitsDType::Int64;
        for part in self.message(field)? {
            match &*part.name {
                "feature_path" => path = self.path(part)?,
                "partition" => partitions.push(self.partition(name, part)?),
                "row_partition_dtype" => {
                    row_splits_dtype = match self.word(part, "a type of row splits")? {
                        "INT32" | "2" => SplitsDType::Int32,
                        "INT64" | "UNSPECIFIED" | "1" | "0" => SplitsDType::Int64,
                        _ => return Err(self.expected(part, "INT32 or INT64")),
                    };
                }
                _ => return Err(self.unknown(part, "RaggedTensor")),
            }
        }
        let (features, key) = match (path.as_slice(), stored.1) {
            ([key], _) => (stored.0, key),
            ([list, key], Some(steps)) if list == SEQUENCE => (steps, key),
            _ => return Err(self.refused(name, field, "expected a feature_path of the schema")),
        };
        let dtype = self.kind_in(name, field, features, key)?;
        let value_key = Some(key.clone());
        let spec = FeatureSpec::Ragged { dtype, value_key, partitions, row_splits_dtype, validate: false };
        Ok((spec, path.len() > 1))
    }

    fn partition(&self, name: &str, field: &TextField) -> Result<Partition, ToolsError> {
        match self.message(field)? {
            [part] if &*part.name == "row_length" => Ok(Partition::RowLengths(self.string(part)?)),
            [part] if &*part.name == "uniform_row_length" => {
                let length = usize::try_from(self.count(part)?);
                Ok(Partition::UniformRowLength(length.map_err(|_| self.expected(part, "a length"))?))
            }
            _ => Err(self.refused(name, field, "expected row_length or uniform_row_length")),
        }
    }
}

/// Returns the keys of the features that a column is made of.
fn sources(name: &str, spec: &FeatureSpec) -> Vec<String> {
    match spec {
        FeatureSpec::Sparse { index_keys, value_key, .. } => {
            index_keys.iter().chain([value_key]).cloned().collect()
        }
        FeatureSpec::Ragged { value_key, partitions, .. } => {
            let partitions = partitions.iter().filter_map(Partition::key).map(str::to_owned);
            value_key.iter().cloned().chain(partitions).collect()
        }
        _ => vec![name.to_owned()],
    }
}
