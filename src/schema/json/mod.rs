//! The JSON form of schemas.
//!
//! ```text
//! {"features": {NAME: F, ..}}                            a schema of Examples
//! {"context": {NAME: F, ..}, "sequence": {NAME: F, ..}}  a schema of SequenceExamples; either part may be omitted
//!
//! F  {"type": "fixed", "dtype": D, "shape": [..], "default": X?}
//!    {"type": "optional", "dtype": D, "default": X?}
//!    {"type": "varlen", "dtype": D}
//!    {"type": "fixed_sequence", "dtype": D, "shape": [..], "allow_missing": false?, "default": X?}
//!    {"type": "ragged", "dtype": D, "value_key": null?, "partitions": []?, "row_splits_dtype": "int32"?,
//!     "validate": false?}
//!    {"type": "sparse", "dtype": D, "index_key": K or [K..], "value_key": K, "size": n or [n..],
//!     "already_sorted": false?}
//!    {"type": "raw", "dtype": A, "shape": [null?, ..], "byte_order": "little"?}
//!    {"type": "tensor", "dtype": A, "shape": [null?, ..]}
//!    {"type": "image", "size": [h, w]?, "channels": 3?, "resize": "bilinear"? or "area" or null, "crop": null? or "center" or "random_resized",
//!     "crop_with": null?, "dtype": "uint8"? or "uint16", "float32", "float16", "bfloat16", "fraction": 1.0?,
//!     "scale": [0.08, 1.0]?, "ratio": [0.75, 1.333..]?, "flip": 0.0?, "jitter": [[NAME, J], ..]?, "mean": [..]?, "std": [..]?,
//!     "layout": "hwc"? or "chw", "exif": false?, "missing": null? or 0 to 255, "geometry": null? or NAME, "scaled": false?}
//! D  "float32" | "int64" | "string" (or "bytes")
//! A  "bool" | "int8" | .. "uint64" | "float16" | "bfloat16" | "float32" | "float64" | "complex64" | "complex128"
//! P  an element of `partitions`:
//!    {"kind": "row_splits" | "row_lengths" | "row_starts" | "row_limits" | "value_rowids", "key": K}
//!    {"kind": "uniform_row_length", "length": n}
//! J  [low, high], or a number a: [max(0, 1 - a), 1 + a], of "hue" [-a, a]
//! X  a number, a string, {"hex": "c3a9"} for bytes, {"f32": "7fc00000"} for the bits of a float; or a list of these,
//!    flat or nested like `shape`
//! ```
//!
//! Fields with a `?` may be omitted. Their value is then the one shown, which is TensorFlow's default.
//! `"default": null` means no default. An unknown field is an error, because it may be a misspelt one.

#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects))]

mod fields;
mod image;
mod print;
mod value;

use super::spec::byte_order_name;
use super::{DType, FeatureSpec, Partition, Schema, SchemaBuilder, SplitsDType};
use crate::error::{Error, ErrorKind, Result};
use crate::example::FeatureBuf;
use fields::{JsonFields, array_dtype, boolean, expected, integer, list, one_of, one_or_list, text};
use image::{IMAGE_FIELDS, image};
use std::collections::BTreeMap;
use value::Json;

impl Schema {
    /// Reads a schema from its JSON form. Omitted fields have TensorFlow's defaults.
    ///
    /// ```
    /// use tfseek::{DType, FeatureSpec, Schema};
    /// let schema = Schema::from_json(
    ///     r#"{"features": {
    ///         "label":  {"type": "fixed", "dtype": "int64", "shape": []},
    ///         "tokens": {"type": "varlen", "dtype": "int64"},
    ///         "weight": {"type": "fixed", "dtype": "float32", "shape": [2], "default": [0.5, {"f32": "7fc00000"}]}
    ///     }}"#,
    /// )?;
    /// assert_eq!(schema.features()["tokens"], FeatureSpec::var_len(DType::Int64));
    /// assert_eq!(Schema::from_json(&schema.to_json())?, schema);
    ///
    /// let misspelt = r#"{"features": {"label": {"type": "fixed", "dtype": "int64", "shpae": []}}}"#;
    /// let refused = Schema::from_json(misspelt).unwrap_err().to_string();
    /// assert!(refused.contains("\"label\"") && refused.contains("shpae"), "{refused}");
    /// # Ok::<(), tfseek::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Spec`] if the text is not JSON or not of this form, with the column and the field. Also
    /// all errors of [`SchemaBuilder::build`].
    pub fn from_json(text: &str) -> Result<Schema> {
        let json: Json = serde_json::from_str(text).map_err(|e| Error::spec(format!("not JSON: {e}")))?;
        let Json::Object(mut parts) = json else {
            return Err(Error::spec(format!("expected an object of features, found {json}")));
        };
        let (example, context, lists) =
            (parts.remove("features"), parts.remove("context"), parts.remove("sequence"));
        if let Some(other) = parts.keys().next() {
            return Err(Error::spec(format!(
                "expected \"features\", or \"context\" and \"sequence\", found {other:?}"
            )));
        }
        if example.is_some() && (context.is_some() || lists.is_some()) {
            return Err(Error::spec("expected \"features\", or \"context\" and \"sequence\", found both"));
        }
        let builder = match (example, context, lists) {
            (Some(features), ..) => part("features", features, Schema::example(), SchemaBuilder::feature)?,
            (None, None, None) => {
                return Err(Error::spec(
                    "expected \"features\", or \"context\" and \"sequence\", found none of them",
                ));
            }
            (None, context, lists) => {
                let empty = || Json::Object(BTreeMap::new());
                let context = context.unwrap_or_else(empty);
                let builder = part("context", context, Schema::sequence_example(), SchemaBuilder::feature)?;
                part("sequence", lists.unwrap_or_else(empty), builder, SchemaBuilder::feature_list)?
            }
        };
        builder.build()
    }

    /// Returns the JSON form, with one column per line and all names sorted.
    ///
    /// Equal schemas have equal JSON forms. [`from_json`](Schema::from_json) restores an equal schema,
    /// including the bits of its defaults.
    pub fn to_json(&self) -> String {
        print::schema(self)
    }
}

fn part(
    name: &str,
    json: Json,
    builder: SchemaBuilder,
    add: fn(SchemaBuilder, String, FeatureSpec) -> SchemaBuilder,
) -> Result<SchemaBuilder> {
    let Json::Object(specs) = json else {
        return Err(Error::spec(format!("{name}: expected an object of feature specs, found {json}")));
    };
    specs.into_iter().try_fold(builder, |builder, (key, json)| match feature(json) {
        Ok(spec) => Ok(add(builder, key, spec)),
        Err(e) => Err(e.feature(key.as_bytes())),
    })
}

fn feature(json: Json) -> Result<FeatureSpec> {
    let Json::Object(fields) = json else {
        return Err(Error::spec(format!("expected an object with a \"type\", found {json}")));
    };
    let mut fields = JsonFields(fields);
    let kind = fields.required("type", text)?;
    // Unknown fields are reported before missing ones, because a misspelt field is both.
    fields.check_known(&kind, field_names(&kind)?)?;
    Ok(match kind.as_str() {
        "fixed" => {
            let dtype = fields.required("dtype", dtype)?;
            let shape = fields.required("shape", shape)?;
            let default = fields.optional("default", |json| values(json, dtype, &shape))?;
            FeatureSpec::FixedLen { shape, dtype, default }
        }
        "optional" => {
            let dtype = fields.required("dtype", dtype)?;
            let default = fields.optional("default", |json| values(json, dtype, &[]))?;
            FeatureSpec::Optional { dtype, default }
        }
        "varlen" => FeatureSpec::VarLen { dtype: fields.required("dtype", dtype)? },
        "fixed_sequence" => {
            let dtype = fields.required("dtype", dtype)?;
            FeatureSpec::FixedLenSequence {
                shape: fields.required("shape", shape)?,
                dtype,
                allow_missing: fields.optional("allow_missing", boolean)?.unwrap_or(false),
                // The padding is a single value for every block shape.
                default: fields.optional("default", |json| values(json, dtype, &[]))?,
            }
        }
        "ragged" => FeatureSpec::Ragged {
            dtype: fields.required("dtype", dtype)?,
            value_key: fields.optional("value_key", text)?,
            partitions: fields.optional("partitions", |json| list(json, partition))?.unwrap_or_default(),
            row_splits_dtype: fields.optional("row_splits_dtype", splits_dtype)?.unwrap_or_default(),
            validate: fields.optional("validate", boolean)?.unwrap_or(false),
        },
        "raw" => FeatureSpec::Raw {
            dtype: fields.required("dtype", array_dtype)?,
            shape: fields.required("shape", array_shape)?,
            little_endian: fields.optional("byte_order", little_endian)?.unwrap_or(true),
            fixed_length: fields.optional("fixed_length", boolean)?.unwrap_or(false),
        },
        "tensor" => FeatureSpec::Tensor {
            dtype: fields.required("dtype", array_dtype)?,
            shape: fields.required("shape", array_shape)?,
        },
        "image" => FeatureSpec::Image(image(&mut fields)?),
        "label" => FeatureSpec::Label {
            vocabulary: fields
                .required("vocabulary", |json| list(json, |word| bytes(word).map(Vec::into_boxed_slice)))?
                .into(),
            unknown: fields.optional("unknown", integer)?,
        },
        "stack" => {
            let dtype = fields.required("dtype", dtype)?;
            let default = fields.optional("default", |json| values(json, dtype, &[]))?;
            FeatureSpec::Stack { keys: fields.required("keys", |json| list(json, text))?, dtype, default }
        }
        "several" => FeatureSpec::Several(Box::new(feature(fields.required("of", Ok)?)?)),
        _ => FeatureSpec::Sparse {
            index_keys: fields.required("index_key", |json| one_or_list(json, text))?,
            value_key: fields.required("value_key", text)?,
            dtype: fields.required("dtype", dtype)?,
            size: fields.required("size", |json| one_or_list(json, integer))?,
            already_sorted: fields.optional("already_sorted", boolean)?.unwrap_or(false),
        },
    })
}

/// Returns the fields that a type of features has.
fn field_names(kind: &str) -> Result<&'static [&'static str]> {
    let names: &'static [&'static str] = match kind {
        "fixed" => &["dtype", "shape", "default"],
        "optional" => &["dtype", "default"],
        "varlen" => &["dtype"],
        "fixed_sequence" => &["dtype", "shape", "allow_missing", "default"],
        "ragged" => &["dtype", "value_key", "partitions", "row_splits_dtype", "validate"],
        "sparse" => &["dtype", "index_key", "value_key", "size", "already_sorted"],
        "raw" => &["dtype", "shape", "byte_order", "fixed_length"],
        "tensor" => &["dtype", "shape"],
        "image" => &IMAGE_FIELDS,
        "label" => &["vocabulary", "unknown"],
        "several" => &["of"],
        "stack" => &["dtype", "keys", "default"],
        other => {
            return Err(Error::spec(format!(
                "type: expected fixed, optional, varlen, fixed_sequence, ragged, sparse, raw, tensor, image, label, stack or several, found {other:?}"
            )));
        }
    };
    Ok(names)
}

fn shape(json: Json) -> Result<Vec<usize>, String> {
    list(json, integer)
}

fn array_shape(json: Json) -> Result<Vec<Option<usize>>, String> {
    list(json, |size| match size {
        Json::Null => Ok(None),
        size => integer(size).map(Some),
    })
}

fn little_endian(json: Json) -> Result<bool, String> {
    one_of(json, [true, false], byte_order_name)
}

fn dtype(json: Json) -> Result<DType, String> {
    match text(json)?.as_str() {
        "float32" => Ok(DType::Float32),
        "int64" => Ok(DType::Int64),
        "string" | "bytes" => Ok(DType::Bytes),
        other => Err(format!("expected float32, int64 or string, found {other:?}")),
    }
}

fn splits_dtype(json: Json) -> Result<SplitsDType, String> {
    one_of(json, [SplitsDType::Int32, SplitsDType::Int64], SplitsDType::name)
}

fn partition(json: Json) -> Result<Partition, String> {
    let Json::Object(fields) = json else { return expected("objects with a \"kind\"", &json) };
    let mut fields = JsonFields(fields);
    // Keeps only the reason, because the caller adds the field `partitions`.
    let reason = |e: Error| match e.into_kind() {
        ErrorKind::Spec(reason) => reason.into_string(),
        other => other.to_string(),
    };
    let kind = fields.required("kind", text).map_err(reason)?;
    let keyed = match kind.as_str() {
        "row_splits" => Partition::RowSplits,
        "row_lengths" => Partition::RowLengths,
        "row_starts" => Partition::RowStarts,
        "row_limits" => Partition::RowLimits,
        "value_rowids" => Partition::ValueRowIds,
        "uniform_row_length" => {
            fields.check_known(&kind, &["length"]).map_err(reason)?;
            return fields.required("length", integer).map(Partition::UniformRowLength).map_err(reason);
        }
        other => {
            return Err(format!(
                "kind: expected row_splits, row_lengths, row_starts, row_limits, value_rowids or uniform_row_length, found {other:?}"
            ));
        }
    };
    fields.check_known(&kind, &["key"]).map_err(reason)?;
    fields.required("key", text).map(keyed).map_err(reason)
}

/// Reads the values of a default: a single value, a flat list, or lists nested like `shape`.
fn values(json: Json, dtype: DType, shape: &[usize]) -> Result<FeatureBuf, String> {
    let mut flat = Vec::new();
    match json {
        Json::List(values) if values.iter().any(|value| matches!(value, Json::List(_))) => {
            flatten(Json::List(values), shape, shape, &mut flat)?;
        }
        Json::List(values) => flat = values,
        value => flat.push(value),
    }
    let flat = flat.into_iter();
    Ok(match dtype {
        DType::Int64 => FeatureBuf::Int64(flat.map(integer).collect::<Result<_, _>>()?),
        DType::Float32 => FeatureBuf::Float(flat.map(float).collect::<Result<_, _>>()?),
        DType::Bytes => FeatureBuf::Bytes(flat.map(bytes).collect::<Result<_, _>>()?),
    })
}

fn flatten(json: Json, dims: &[usize], shape: &[usize], flat: &mut Vec<Json>) -> Result<(), String> {
    match (dims.split_first(), json) {
        (Some((&dim, inner)), Json::List(values)) if values.len() == dim => {
            values.into_iter().try_for_each(|value| flatten(value, inner, shape, flat))
        }
        (Some((dim, _)), Json::List(values)) => {
            Err(format!("expected a list of {dim} for the shape {shape:?}, found a list of {}", values.len()))
        }
        (Some((dim, _)), found) => {
            Err(format!("expected a list of {dim} for the shape {shape:?}, found {found}"))
        }
        (None, Json::List(_)) => Err(format!("lists are nested deeper than the shape {shape:?}")),
        (None, value) => {
            flat.push(value);
            Ok(())
        }
    }
}

fn float(json: Json) -> Result<f32, String> {
    let double = match json {
        Json::Integer(value) => value as f64,
        Json::Float(value) => value,
        Json::Object(_) => {
            return match encoded_text(&json, "f32") {
                // `from_str_radix` accepts a sign, so the digits are checked here.
                Some(hex) if hex.len() == 8 && hex.bytes().all(|c| c.is_ascii_hexdigit()) => {
                    u32::from_str_radix(hex, 16).map(f32::from_bits).map_err(|e| e.to_string())
                }
                Some(hex) => Err(format!("expected the 8 hex digits of a float's bits, found {hex:?}")),
                None => expected("a number or {\"f32\": ..}", &json),
            };
        }
        other => return expected("a number or {\"f32\": ..}", &other),
    };
    match double as f32 {
        value if value.is_finite() => Ok(value),
        _ => Err(format!("{double:?} does not fit into a float32")),
    }
}

fn bytes(json: Json) -> Result<Vec<u8>, String> {
    match json {
        Json::Text(text) => Ok(text.into_bytes()),
        other => match encoded_text(&other, "hex") {
            Some(hex) => unhex(hex).ok_or_else(|| format!("expected hex digits in pairs, found {hex:?}")),
            None => expected("a string or {\"hex\": ..}", &other),
        },
    }
}

/// Returns the text of an object `{name: text}`.
fn encoded_text<'a>(json: &'a Json, name: &str) -> Option<&'a str> {
    match json {
        Json::Object(fields) if fields.len() == 1 => match fields.get(name) {
            Some(Json::Text(text)) => Some(text),
            _ => None,
        },
        _ => None,
    }
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    let digit = |c: u8| char::from(c).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    match rest {
        [] => pairs.iter().map(|&[high, low]| Some(digit(high)? << 4 | digit(low)?)).collect(),
        _ => None,
    }
}
