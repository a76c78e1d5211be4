//! Domains and shapes of features.

use super::reader::FieldReader;
use super::schema::ValueDomain;
use super::text::TextField;
use crate::error::ToolsError;
use std::collections::{BTreeSet, HashMap};
use tfseek::example::DType;

/// The domains of a schema by name.
pub(super) type Domains = HashMap<String, ValueDomain>;

impl FieldReader<'_> {
    /// Reads a domain. Returns its name and its values.
    pub(super) fn domain(&self, field: &TextField) -> Result<(String, ValueDomain), ToolsError> {
        let mut name = String::new();
        let mut strings = BTreeSet::new();
        let mut ints = (i64::MIN, i64::MAX);
        let mut floats = (f32::NEG_INFINITY, f32::INFINITY);
        let mut no_nan = false;
        let mut no_inf = false;
        let kind = &*field.name;
        for field in self.message(field)? {
            match (kind, &*field.name) {
                (_, "name") => name = self.string(field)?,
                ("string_domain", "value") => {
                    strings.insert(self.bytes(field)?);
                }
                (_, "is_categorical") => {
                    self.word(field, "a word")?;
                }
                ("int_domain", "min") => ints.0 = self.int(field)?,
                ("int_domain", "max") => ints.1 = self.int(field)?,
                ("float_domain", "min") => floats.0 = self.float(field)? as f32,
                ("float_domain", "max") => floats.1 = self.float(field)? as f32,
                ("float_domain", "disallow_nan") => no_nan = self.bool(field)?,
                ("float_domain", "disallow_inf") => no_inf = self.bool(field)?,
                ("float_domain", "is_embedding" | "embedding_dim" | "embedding_type") => {}
                _ => return Err(self.unknown(field, kind)),
            }
        }
        let domain = match kind {
            "string_domain" => ValueDomain::Strings(strings),
            "int_domain" => ValueDomain::Ints(ints.0, ints.1),
            _ => ValueDomain::Floats { min: floats.0, max: floats.1, no_nan, no_inf },
        };
        Ok((name, domain))
    }

    pub(super) fn bools(&self, field: &TextField) -> Result<ValueDomain, ToolsError> {
        let mut yes = Vec::new();
        let mut no = Vec::new();
        for field in self.message(field)? {
            match &*field.name {
                "name" => {}
                "true_value" => yes = self.bytes(field)?,
                "false_value" => no = self.bytes(field)?,
                _ => return Err(self.unknown(field, "BoolDomain")),
            }
        }
        Ok(ValueDomain::Bools(yes, no))
    }

    pub(super) fn images(&self, field: &TextField) -> Result<ValueDomain, ToolsError> {
        let mut fraction = 0.0;
        let mut most = None;
        for field in self.message(field)? {
            match &*field.name {
                "minimum_supported_image_fraction" => fraction = self.float(field)?,
                "max_image_byte_size" => most = Some(self.count(field)?),
                _ => return Err(self.unknown(field, "ImageDomain")),
            }
        }
        Ok(ValueDomain::Images(fraction, most))
    }

    /// Returns the number of values of a shape, or `None` if a dimension has no size.
    pub(super) fn shape(&self, field: &TextField) -> Result<Option<u64>, ToolsError> {
        let mut sizes = self.dims(field)?.into_iter();
        Ok(sizes.try_fold(1, |product: u64, size| product.checked_mul(size?)))
    }

    /// Returns the sizes of the dimensions of a shape. `None` without a size, or with a negative one.
    pub(super) fn dims(&self, field: &TextField) -> Result<Vec<Option<u64>>, ToolsError> {
        let mut sizes = Vec::new();
        for dim in self.message(field)? {
            if &*dim.name != "dim" {
                return Err(self.unknown(dim, "FixedShape"));
            }
            let mut size = None;
            for field in self.message(dim)? {
                match &*field.name {
                    "size" => size = u64::try_from(self.int(field)?).ok(),
                    "name" => {}
                    _ => return Err(self.unknown(field, "Dim")),
                }
            }
            sizes.push(size);
        }
        Ok(sizes)
    }
}

/// Returns true if values of this kind can be in the domain.
pub(super) fn fits(domain: &ValueDomain, kind: Option<DType>) -> bool {
    match (domain, kind) {
        (ValueDomain::Any | ValueDomain::Bools(..), _) | (_, None) => true,
        (ValueDomain::Ints(..), Some(kind)) => kind != DType::Float32,
        (ValueDomain::Floats { .. }, Some(kind)) => kind != DType::Int64,
        (ValueDomain::Strings(_) | ValueDomain::Images(..), Some(kind)) => kind == DType::Bytes,
    }
}
