//! From a schema to the columns of its record batches.

use crate::error::{Error, Result};
use crate::options::{ByteStrings, Options, Tensors};
use crate::tensor;
use arrow_schema::{DataType, Field, FieldRef, Fields};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use tfseek::TensorDType;
use tfseek::schema::{DType, FeatureSpec, Partition, Schema, SplitsDType};

/// One column of a record batch.
#[derive(Clone, Debug)]
pub(crate) struct PlannedColumn {
    /// The column of the batch, in the feature lists or in the features.
    pub(crate) from: String,
    pub(crate) is_list: bool,
    pub(crate) form: Form,
    pub(crate) field: FieldRef,
}

/// The form of a column in the batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// Dense, of this number of dimensions, including the dimension of the rows.
    Dense(usize),
    Optional,
    /// Ragged, with this number of row splits.
    Ragged(usize),
    /// A `VarLen` column that is sparse in the batch: it shares its feature with a sparse column, so it
    /// cannot be ragged.
    VarLen,
    /// Padded steps with lengths, of this number of dimensions, including the dimensions of rows and steps.
    Steps(usize),
    /// Sparse, with this number of index features.
    Sparse(usize),
}

/// One dimension of a column, apart from the dimension of the rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Level {
    Fixed(usize),
    List,
    LargeList,
}

/// Groups of columns, in their order in a record batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Width {
    Scalars,
    Fixed,
    Lists,
    ByteStrings,
}

/// Returns the columns of the record batches of a schema, narrow ones first and then by name.
pub(crate) fn columns(schema: &Schema, options: &Options) -> Result<Vec<PlannedColumn>> {
    let features = names(schema.features(), &options.renamed, ("feature", "rename"))?;
    let lists = names(schema.feature_lists(), &options.renamed_lists, ("feature list", "rename_list"))?;
    let mut used = BTreeSet::new();
    for (part, name) in
        features.iter().map(|name| ("feature", name)).chain(lists.iter().map(|n| ("feature list", n)))
    {
        if !used.insert(*name) {
            let reason = format!("the {part} has the name of another column: `rename` one of them");
            return Err(Error::schema(name, reason));
        }
    }
    let text: BTreeSet<&str> = options.text.iter().map(String::as_str).collect();
    if let Some(unknown) = text.iter().find(|name| !used.contains(**name)) {
        return Err(Error::schema(unknown, "expected a column for `text`, found no such column"));
    }
    let shared = sparse_keys(schema);
    let mut columns = Vec::new();
    for (is_list, specs, names) in
        [(false, schema.features(), &features), (true, schema.feature_lists(), &lists)]
    {
        for ((from, spec), name) in specs.iter().zip(names) {
            let stays_sparse = !is_list && shared.contains(from.as_str());
            let (width, form, field) =
                column(name, spec, is_list, stays_sparse, text.contains(name), options)
                    .map_err(|error| error.column_named(name))?;
            let field = Arc::new(field);
            columns.push((width, PlannedColumn { from: from.clone(), is_list, form, field }));
        }
    }
    columns.sort_by(|(a, one), (b, other)| (a, one.field.name()).cmp(&(b, other.field.name())));
    Ok(columns.into_iter().map(|(_, column)| column).collect())
}

/// Returns the schema with which a batch is parsed for its conversion: lists are ragged, and neither sparse
/// nor padded.
pub(crate) fn parser_schema(schema: &Schema) -> tfseek::Result<Schema> {
    let shared = sparse_keys(schema);
    let mut builder = if schema.is_sequence() { Schema::sequence_example() } else { Schema::example() };
    for (name, spec) in schema.features() {
        let spec = match spec {
            FeatureSpec::VarLen { dtype } if !shared.contains(name.as_str()) => FeatureSpec::ragged(*dtype),
            FeatureSpec::FixedLenSequence { shape, dtype, .. } => FeatureSpec::Ragged {
                dtype: *dtype,
                value_key: None,
                partitions: shape.iter().map(|&len| Partition::UniformRowLength(len)).collect(),
                row_splits_dtype: SplitsDType::Int32,
                validate: false,
            },
            other => other.clone(),
        };
        builder = builder.feature(name, spec);
    }
    for (name, spec) in schema.feature_lists() {
        let spec = match spec {
            FeatureSpec::VarLen { dtype } => FeatureSpec::ragged(*dtype),
            other => other.clone(),
        };
        builder = builder.feature_list(name, spec);
    }
    builder.build()
}

/// Returns the keys that sparse columns use. A feature cannot be sparse in one column and ragged in another.
fn sparse_keys(schema: &Schema) -> BTreeSet<&str> {
    let mut keys = BTreeSet::new();
    for spec in schema.features().values() {
        if let FeatureSpec::Sparse { index_keys, value_key, .. } = spec {
            keys.extend(index_keys.iter().map(String::as_str));
            keys.insert(value_key);
        }
    }
    keys
}

/// Returns the names of the columns of a part of the schema, in the order of their specs.
fn names<'a>(
    specs: &'a BTreeMap<String, FeatureSpec>,
    renamed: &'a [(String, String)],
    (part, option): (&str, &str),
) -> Result<Vec<&'a str>> {
    let mut new = HashMap::new();
    for (from, to) in renamed {
        if !specs.contains_key(from) {
            return Err(Error::schema(
                from,
                format!("expected a {part} for `{option}`, found no such {part}"),
            ));
        }
        if new.insert(from.as_str(), to.as_str()).is_some() {
            return Err(Error::schema(from, format!("expected one new name of the {part}, found several")));
        }
    }
    Ok(specs.keys().map(|name| new.get(name.as_str()).copied().unwrap_or(name)).collect())
}

/// The values of a column: their type, and the dimensions around them.
struct ColumnLayout {
    dtype: DType,
    form: Form,
    levels: Vec<Level>,
    /// The shape of an Arrow tensor.
    tensor: Option<Vec<usize>>,
    /// The type of the elements of arrays in byte strings.
    array: Option<DataType>,
}

impl ColumnLayout {
    fn new(dtype: DType, form: Form, levels: Vec<Level>) -> ColumnLayout {
        ColumnLayout { dtype, form, levels, tensor: None, array: None }
    }

    /// Returns the layout of values of one shape, which may be an Arrow tensor if they are numbers.
    fn dense(dtype: DType, shape: &[usize], numbers: bool, options: &Options) -> ColumnLayout {
        let form = Form::Dense(shape.len() + 1);
        if options.tensors != Tensors::Extension || shape.is_empty() || !numbers {
            return ColumnLayout::new(dtype, form, fixed(shape));
        }
        let count = shape.iter().try_fold(1usize, |product, &len| product.checked_mul(len));
        let levels = vec![Level::Fixed(count.unwrap_or(usize::MAX))];
        ColumnLayout { tensor: Some(shape.to_vec()), ..ColumnLayout::new(dtype, form, levels) }
    }

    /// Returns the layout of arrays in byte strings.
    fn array(shape: &[Option<usize>], leaf: DataType, options: &Options) -> ColumnLayout {
        let sizes: Vec<usize> = shape.iter().copied().flatten().collect();
        let layout = match shape.first() {
            Some(None) => {
                let levels = [vec![Level::LargeList], fixed(&sizes)].concat();
                ColumnLayout::new(DType::Bytes, Form::Ragged(1), levels)
            }
            // A tensor has numbers.
            _ => ColumnLayout::dense(DType::Bytes, &sizes, leaf != DataType::Boolean, options),
        };
        ColumnLayout { array: Some(leaf), ..layout }
    }

    fn of(
        name: &str,
        spec: &FeatureSpec,
        is_list: bool,
        stays_sparse: bool,
        options: &Options,
    ) -> Result<ColumnLayout> {
        let (dtype, form, levels) = match spec {
            FeatureSpec::FixedLen { shape, dtype, .. } => {
                return Ok(ColumnLayout::dense(*dtype, shape, *dtype != DType::Bytes, options));
            }
            FeatureSpec::Stack { keys, dtype, .. } => {
                return Ok(ColumnLayout::dense(*dtype, &[keys.len()], true, options));
            }
            FeatureSpec::Several(of) => return ColumnLayout::of(name, of, true, stays_sparse, options),
            FeatureSpec::Raw { dtype, shape, .. } | FeatureSpec::Tensor { dtype, shape } => {
                let leaf = array_type(*dtype).ok_or_else(|| no_type(name, *dtype))?;
                // The arrays of a record, of any number, have one more dimension.
                let any = is_list.then_some(None);
                let shape: Vec<_> = any.into_iter().chain(shape.iter().copied()).collect();
                return Ok(ColumnLayout::array(&shape, leaf, options));
            }
            FeatureSpec::Label { .. } if is_list => (DType::Int64, Form::Ragged(1), vec![Level::LargeList]),
            FeatureSpec::Label { .. } => (DType::Int64, Form::Dense(1), Vec::new()),
            FeatureSpec::Image(_) => {
                return Err(Error::schema(
                    name,
                    "expected the bytes of a picture's file in a table, found an image",
                ));
            }
            FeatureSpec::Optional { dtype, default: Some(_) } => (*dtype, Form::Dense(1), Vec::new()),
            FeatureSpec::Optional { dtype, default: None } => (*dtype, Form::Optional, Vec::new()),
            FeatureSpec::VarLen { dtype } if is_list => (*dtype, Form::Ragged(2), vec![Level::List; 2]),
            FeatureSpec::VarLen { dtype } if stays_sparse => (*dtype, Form::VarLen, vec![Level::List]),
            FeatureSpec::VarLen { dtype } => (*dtype, Form::Ragged(1), vec![Level::List]),
            FeatureSpec::FixedLenSequence { shape, dtype, .. } => {
                let form = if is_list { Form::Steps(shape.len() + 2) } else { Form::Ragged(1) };
                (*dtype, form, [vec![Level::List], fixed(shape)].concat())
            }
            FeatureSpec::Ragged { dtype, partitions, row_splits_dtype, .. } => {
                let list = match row_splits_dtype {
                    SplitsDType::Int32 => Level::List,
                    SplitsDType::Int64 => Level::LargeList,
                };
                let mut levels = vec![list; if is_list { 2 } else { 1 }];
                levels.extend(partitions.iter().map(|partition| match partition {
                    Partition::UniformRowLength(len) => Level::Fixed(*len),
                    _ => list,
                }));
                // Uniform partitions have row splits unless all partitions in them are uniform.
                let inner = levels.iter().rev().take_while(|level| matches!(level, Level::Fixed(_))).count();
                (*dtype, Form::Ragged(levels.len() - inner), levels)
            }
            FeatureSpec::Sparse { dtype, index_keys, .. } => {
                (*dtype, Form::Sparse(index_keys.len()), vec![Level::List])
            }
        };
        Ok(ColumnLayout::new(dtype, form, levels))
    }
}

fn fixed(shape: &[usize]) -> Vec<Level> {
    shape.iter().map(|&len| Level::Fixed(len)).collect()
}

fn column(
    name: &str,
    spec: &FeatureSpec,
    is_list: bool,
    stays_sparse: bool,
    text: bool,
    options: &Options,
) -> Result<(Width, Form, Field)> {
    let layout = ColumnLayout::of(name, spec, is_list, stays_sparse, options)?;
    let ColumnLayout { dtype, form, levels, tensor, array } = layout;
    if text && (dtype != DType::Bytes || array.is_some()) {
        let found = array.map_or(dtype.to_string(), |array| format!("arrays of {array}"));
        return Err(Error::schema(name, format!("expected byte strings for `text`, found {found}")));
    }
    let width = if dtype == DType::Bytes && array.is_none() {
        Width::ByteStrings
    } else if levels.is_empty() {
        Width::Scalars
    } else if levels.iter().all(|level| matches!(level, Level::Fixed(_))) {
        Width::Fixed
    } else {
        Width::Lists
    };
    let leaf = match dtype {
        _ if let Some(array) = array => array,
        DType::Int64 => DataType::Int64,
        DType::Float32 => DataType::Float32,
        DType::Bytes => string_type(options.bytes, text, !levels.is_empty()),
    };
    let mut data_type = nested(&levels, leaf)?;
    if let Form::Sparse(rank) = form {
        let indices = nested(&[Level::List, Level::Fixed(rank)], DataType::Int64)?;
        data_type = DataType::Struct(Fields::from(vec![
            Field::new("indices", indices, false),
            Field::new("values", data_type, false),
        ]));
    }
    let nullable = match spec {
        FeatureSpec::Optional { default, .. } => default.is_none(),
        FeatureSpec::VarLen { .. } | FeatureSpec::Ragged { .. } => true,
        _ => false,
    };
    let mut field = Field::new(name, data_type, nullable);
    if let Some(shape) = tensor {
        field.set_metadata(tensor::metadata(&shape));
    }
    Ok((width, form, field))
}

/// Returns the type of byte strings or text.
pub(crate) fn string_type(bytes: ByteStrings, text: bool, in_list: bool) -> DataType {
    let is_view = bytes == ByteStrings::View || (bytes == ByteStrings::Auto && !in_list);
    match (is_view, text) {
        (true, false) => DataType::BinaryView,
        (true, true) => DataType::Utf8View,
        (false, false) => DataType::Binary,
        (false, true) => DataType::Utf8,
    }
}

/// Returns true if the values of a column are byte strings that are not text. The values of a struct are its
/// last field.
pub(crate) fn has_byte_strings(data_type: &DataType) -> bool {
    match data_type {
        DataType::List(item) | DataType::LargeList(item) | DataType::FixedSizeList(item, _) => {
            has_byte_strings(item.data_type())
        }
        DataType::Struct(fields) => fields.last().is_some_and(|field| has_byte_strings(field.data_type())),
        other => matches!(other, DataType::Binary | DataType::BinaryView),
    }
}

/// Returns the error about a type that Arrow does not have.
pub(crate) fn no_type(name: &str, dtype: TensorDType) -> Error {
    Error::schema(name, format!("expected a type that Arrow has, found arrays of {dtype}"))
}

/// Returns the type of the elements of arrays, unless Arrow has none.
pub(crate) fn array_type(dtype: TensorDType) -> Option<DataType> {
    Some(match dtype {
        TensorDType::Bool => DataType::Boolean,
        TensorDType::Int8 => DataType::Int8,
        TensorDType::Int16 => DataType::Int16,
        TensorDType::Int32 => DataType::Int32,
        TensorDType::Int64 => DataType::Int64,
        TensorDType::UInt8 => DataType::UInt8,
        TensorDType::UInt16 => DataType::UInt16,
        TensorDType::UInt32 => DataType::UInt32,
        TensorDType::UInt64 => DataType::UInt64,
        TensorDType::Float16 => DataType::Float16,
        TensorDType::Float32 => DataType::Float32,
        TensorDType::Float64 => DataType::Float64,
        _ => return None,
    })
}

/// Returns the type of nested lists, of which the first is the outermost. Labels in them may be missing.
pub(crate) fn nested(levels: &[Level], leaf: DataType) -> Result<DataType> {
    levels.iter().rev().try_fold(leaf, |inner, level| {
        let nullable = matches!(inner, DataType::Dictionary(..));
        let item = Arc::new(Field::new("item", inner, nullable));
        Ok(match *level {
            Level::Fixed(len) => {
                DataType::FixedSizeList(item, i32::try_from(len).map_err(|_| too_long(len))?)
            }
            Level::List => DataType::List(item),
            Level::LargeList => DataType::LargeList(item),
        })
    })
}

fn too_long(len: usize) -> Error {
    let expected = "expected at most 2147483647 values in a dimension, as Arrow has them";
    Error::no_schema(format_args!("{expected}, found {len}"))
}
