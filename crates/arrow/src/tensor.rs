//! The extension type `arrow.fixed_shape_tensor`: lists of one length that have the shape of a tensor.

use crate::error::{Error, Result};
use arrow_schema::{DataType, Field};
use serde_json::Value;
use std::collections::HashMap;

const NAME: (&str, &str) = ("ARROW:extension:name", "arrow.fixed_shape_tensor");
const PARAMETERS: &str = "ARROW:extension:metadata";

/// Returns the metadata of a field of tensors of this shape.
pub(crate) fn metadata(shape: &[usize]) -> HashMap<String, String> {
    let parameters = format!("{{\"shape\":{shape:?}}}");
    HashMap::from([(NAME.0.to_owned(), NAME.1.to_owned()), (PARAMETERS.to_owned(), parameters)])
}

/// Returns the shape of a column of tensors, or `None` for a column of another type.
///
/// # Errors
/// If the shape does not have as many values as each list, or the values are not in the order of the
/// dimensions.
pub(crate) fn tensor_shape(field: &Field) -> Result<Option<Vec<usize>>> {
    if field.metadata().get(NAME.0).map(String::as_str) != Some(NAME.1) {
        return Ok(None);
    }
    let parameters = field.metadata().get(PARAMETERS).map_or("", String::as_str);
    let refused = |expected: &str| {
        let found = format!("expected {expected}, found {parameters} for {}", field.data_type());
        Error::schema(field.name(), found)
    };
    let json: Value = serde_json::from_str(parameters).map_err(|_| refused("the parameters of a tensor"))?;
    let numbers = |name: &str| {
        let number = |value: &Value| value.as_u64().and_then(|number| usize::try_from(number).ok());
        json.get(name)?.as_array()?.iter().map(number).collect::<Option<Vec<_>>>()
    };
    let in_order = |dims: Vec<usize>| dims.iter().copied().eq(0..dims.len());
    if !json.get("permutation").is_none_or(Value::is_null) && !numbers("permutation").is_some_and(in_order) {
        return Err(refused("a tensor in the order of its dimensions"));
    }
    let shape = numbers("shape").ok_or_else(|| refused("the shape of a tensor"))?;
    let count = shape.iter().try_fold(1usize, |product, &len| product.checked_mul(len));
    match field.data_type() {
        DataType::FixedSizeList(_, len) if count.is_some() && count == usize::try_from(*len).ok() => {
            Ok(Some(shape))
        }
        _ => Err(refused("a list of as many values as the shape has")),
    }
}
