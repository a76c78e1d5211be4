//! From an Arrow schema to features: checks of types and names before anything is encoded.

use super::options::EncoderOptions;
use crate::error::{Error, Result};
use crate::tensor::tensor_shape;
use arrow_schema::{DataType, Field, Schema as ArrowSchema};
use std::collections::{HashMap, HashSet};
use tfseek::example::sort_keys;

/// A column that is encoded.
#[derive(Clone, Debug)]
pub(super) struct EncodedColumn {
    /// Name of the feature.
    pub(super) feature: String,
    /// Number of the column in a record batch.
    pub(super) number: usize,
    pub(super) is_list: bool,
}

/// Returns the columns in the order of their features in a record.
pub(super) fn columns(schema: &ArrowSchema, options: &EncoderOptions) -> Result<Vec<EncodedColumn>> {
    let known: HashSet<&str> = schema.fields().iter().map(|field| field.name().as_str()).collect();
    let expected = |column: &str, option: &str| {
        if known.contains(column) {
            Ok(())
        } else {
            Err(Error::schema(column, format!("expected a column for `{option}`, found no such column")))
        }
    };
    options.feature_lists.iter().try_for_each(|column| expected(column, "feature_list"))?;
    options.renamed.iter().try_for_each(|(column, _)| expected(column, "rename"))?;
    let renamed: HashMap<&str, &str> =
        options.renamed.iter().map(|(column, feature)| (column.as_str(), feature.as_str())).collect();
    let mut used = HashSet::new();
    let mut columns = Vec::with_capacity(schema.fields().len());
    for (number, field) in schema.fields().iter().enumerate() {
        let name = field.name().as_str();
        let is_list = options.feature_lists.iter().any(|column| column == name);
        let feature = renamed.get(name).copied().unwrap_or(name);
        check(field, is_list).map_err(|error| error.column_named(name))?;
        if !used.insert((is_list, feature)) {
            let reason = "expected one column for each feature, found two with this name";
            return Err(Error::schema(feature, reason));
        }
        columns.push((feature, EncodedColumn { feature: feature.to_owned(), number, is_list }));
    }
    sort_keys(&mut columns);
    Ok(columns.into_iter().map(|(_, column)| column).collect())
}

/// Returns the type of the items of a list. `None` for another type.
fn item(data_type: &DataType) -> Option<&Field> {
    match data_type {
        DataType::List(item)
        | DataType::LargeList(item)
        | DataType::ListView(item)
        | DataType::LargeListView(item)
        | DataType::FixedSizeList(item, _) => Some(item),
        _ => None,
    }
}

fn check(field: &Field, is_list: bool) -> Result<()> {
    let data_type = field.data_type();
    tensor_shape(field)?;
    match item(data_type) {
        _ if !is_list => check_feature(data_type, data_type, false),
        Some(step) => check_feature(data_type, step.data_type(), false),
        None => {
            let expected = "a list with an item for each step of the feature list";
            Err(Error::no_schema(format_args!("expected {expected}, found {data_type}")))
        }
    }
}

/// Checks the type of the values of a feature, in a column of the type `column`.
fn check_feature(column: &DataType, data_type: &DataType, in_list: bool) -> Result<()> {
    match (item(data_type), data_type) {
        (Some(item), DataType::FixedSizeList(..)) => check_feature(column, item.data_type(), true),
        (Some(item), _) if !in_list => check_feature(column, item.data_type(), true),
        (Some(_), _) => Err(Error::no_schema(format_args!(
            "expected at most one list of variable length, and no list around it, found {column}: only a feature list has two"
        ))),
        (None, DataType::Dictionary(_, values)) if is_value(values) => Ok(()),
        (None, data_type) if is_value(data_type) => Ok(()),
        _ => {
            let hint = match data_type {
                DataType::Struct(_) | DataType::Map(..) => ": make a column of each of its fields",
                _ => ": cast it",
            };
            let expected = "numbers, booleans, text or byte strings, or lists or dictionaries of them";
            Err(Error::no_schema(format_args!("expected {expected}, found {column}{hint}")))
        }
    }
}

/// Returns true for the types of single values.
fn is_value(data_type: &DataType) -> bool {
    data_type.is_integer()
        || data_type.is_floating()
        || data_type.is_string()
        || data_type.is_binary()
        || matches!(data_type, DataType::Null | DataType::Boolean)
}
