//! From an Arrow schema to the schema that reads its columns.

use crate::error::{Error, Result};
use crate::options::{ByteStrings, Options, Tensors};
use crate::tensor::tensor_shape;
use arrow_schema::{DataType, Field, Schema as ArrowSchema};
use tfseek::schema::{DType, FeatureSpec, Schema};

/// Returns the schema and the options whose record batches have the columns of an Arrow schema, as far as
/// they can be read.
///
/// | Arrow type | Spec |
/// | --- | --- |
/// | a value | `FixedLen` of shape `[]`; nullable: `Optional` |
/// | `FixedSizeList`s | `FixedLen` |
/// | `arrow.fixed_shape_tensor` | `FixedLen`, with [`Tensors::Extension`] |
/// | `List` of values | `VarLen` |
/// | `List` of `FixedSizeList`s | `FixedLenSequence` |
///
/// Values are `Int64`, `Float32`, binary types and, for columns of text, string types. If one of them is not
/// a view, all byte strings are copied ([`ByteStrings::Copy`]), or those in lists if it is in a list
/// ([`ByteStrings::Auto`]). Columns are ordered as in all record batches of this crate.
///
/// # Errors
/// [`ErrorKind::Schema`](crate::ErrorKind::Schema) for a column of another type, and for two columns of one
/// name.
///
/// ```
/// use arrow_schema::{DataType, Field};
/// use tfseek_arrow::{Converter, spec_of};
/// let weights = DataType::new_list(DataType::Float32, false);
/// let arrow = arrow_schema::Schema::new(vec![
///     Field::new("label", DataType::Int64, true),
///     Field::new("weights", weights, true),
///     Field::new("name", DataType::Utf8View, false),
/// ]);
/// let (schema, options) = spec_of(&arrow)?;
/// assert_eq!(**Converter::new(&schema, &options)?.schema(), arrow);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn spec_of(arrow: &ArrowSchema) -> Result<(Schema, Options)> {
    let mut builder = Schema::example();
    let mut options = Options::new();
    for field in arrow.fields() {
        let spec = column(field).map_err(|error| error.column_named(field.name()))?;
        if let Some(leaf) = &spec.text_or_bytes {
            if leaf.is_string() {
                options = options.text(field.name());
            }
            let is_view = matches!(leaf, DataType::BinaryView | DataType::Utf8View);
            if !is_view && options.bytes != ByteStrings::Copy {
                let is_scalar = leaf == field.data_type();
                options = options.bytes(if is_scalar { ByteStrings::Copy } else { ByteStrings::Auto });
            }
        }
        if spec.is_tensor {
            options = options.tensors(Tensors::Extension);
        }
        builder = builder.feature(field.name(), spec.spec);
    }
    Ok((builder.build().map_err(Error::no_schema)?, options))
}

/// The spec of a column.
struct ColumnSpec {
    spec: FeatureSpec,
    /// The type of its byte strings.
    text_or_bytes: Option<DataType>,
    is_tensor: bool,
}

fn column(field: &Field) -> Result<ColumnSpec> {
    let tensor = tensor_shape(field)?;
    let is_tensor = tensor.is_some();
    let (outer, is_list) = match field.data_type() {
        DataType::List(item) | DataType::LargeList(item) => (item.data_type(), true),
        other => (other, false),
    };
    let mut shape = Vec::new();
    let mut leaf = outer;
    while let DataType::FixedSizeList(item, len) = leaf {
        shape.push(usize::try_from(*len).map_err(|_| refused(field))?);
        leaf = item.data_type();
    }
    let dtype = match leaf {
        DataType::Int64 => DType::Int64,
        DataType::Float32 => DType::Float32,
        DataType::FixedSizeBinary(_) => return Err(refused(field)),
        leaf if leaf.is_string() || leaf.is_binary() => DType::Bytes,
        _ => return Err(refused(field)),
    };
    let spec = match (is_list, shape.as_slice()) {
        (true, []) => FeatureSpec::var_len(dtype),
        (true, shape) => FeatureSpec::fixed_len_sequence(shape, dtype),
        (false, []) if field.is_nullable() => FeatureSpec::optional(dtype),
        (false, shape) => FeatureSpec::fixed_len(tensor.as_deref().unwrap_or(shape), dtype),
    };
    Ok(ColumnSpec { spec, text_or_bytes: (dtype == DType::Bytes).then(|| leaf.clone()), is_tensor })
}

fn refused(field: &Field) -> Error {
    Error::schema(
        field.name(),
        format!(
            "expected int64, float32, byte strings or text, or fixed-size lists or lists of them, found {}",
            field.data_type()
        ),
    )
}
