//! Validation of schemas.

use super::image::ImageSpec;
use super::spec::{FeatureSpec, Partition, SplitsDType};
use crate::error::{Error, Result};
use crate::example::{DType, FeatureBuf};
use crate::tensor::TensorDType;
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;

/// The message or map that a spec belongs to. It determines which specs are allowed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum SpecOwner {
    Example,
    Context,
    FeatureLists,
}

/// Validates the specs of a schema.
pub(super) fn specs(
    sequence: bool,
    features: &[(String, FeatureSpec)],
    feature_lists: &[(String, FeatureSpec)],
) -> Result<()> {
    if !sequence && let Some((name, _)) = feature_lists.first() {
        return Err(
            Error::spec("feature lists are for a schema of SequenceExamples").feature(name.as_bytes())
        );
    }
    check_specs(if sequence { SpecOwner::Context } else { SpecOwner::Example }, features)?;
    check_specs(SpecOwner::FeatureLists, feature_lists)?;
    // A decoder finds the column of a picture by its name.
    let is_twice = |(name, spec): &&(String, FeatureSpec)| {
        matches!(spec, FeatureSpec::Image(_)) && features.iter().any(|(feature, _)| feature == name)
    };
    match feature_lists.iter().find(is_twice) {
        Some((name, _)) => {
            Err(Error::spec("an image of a feature list cannot have the name of a feature of the context")
                .feature(name.as_bytes()))
        }
        None => Ok(()),
    }
}

fn check_specs(owner: SpecOwner, specs: &[(String, FeatureSpec)]) -> Result<()> {
    let mut names = BTreeSet::new();
    let mut roles = BTreeMap::new();
    for (name, spec) in specs {
        let result = if names.insert(name) {
            check_spec(owner, spec).and_then(|()| claim_roles(&mut roles, name, spec))
        } else {
            Err(Error::spec("the name is given twice"))
        };
        result.map_err(|e| e.feature(name.as_bytes()))?;
    }
    specs.iter().try_for_each(|(name, spec)| match spec.of_string() {
        FeatureSpec::Image(image) => check_crop_with(image, specs)
            .and_then(|()| check_geometry(name, image, specs))
            .map_err(|e| e.feature(name.as_bytes())),
        _ => Ok(()),
    })
}

/// Checks that the geometry of a picture has a name of its own.
fn check_geometry(name: &str, image: &ImageSpec, specs: &[(String, FeatureSpec)]) -> Result<()> {
    let Some(geometry) = &image.geometry else { return Ok(()) };
    let is_used = specs.iter().any(|(key, spec)| match spec.of_string() {
        FeatureSpec::Image(other) if key != name && other.geometry == image.geometry => true,
        _ => key == geometry,
    });
    if is_used {
        return Err(Error::spec(format!(
            "geometry: expected the name of no other column, found {geometry:?}"
        )));
    }
    Ok(())
}

/// Checks that a picture that is cut with another one has its crop and its probability of a mirror.
fn check_crop_with(image: &ImageSpec, specs: &[(String, FeatureSpec)]) -> Result<()> {
    let Some(name) = &image.crop_with else { return Ok(()) };
    let place = |spec: &ImageSpec| (spec.crop, spec.fraction, spec.scale, spec.ratio, spec.flip);
    let is_same = specs.iter().all(|(key, spec)| match spec.of_string() {
        FeatureSpec::Image(other) if key == name => place(other) == place(image),
        _ => true,
    });
    if is_same {
        return Ok(());
    }
    Err(Error::spec(format!("crop_with: expected the crop, fraction, scale, ratio and flip of {name:?}")))
}

/// Exclusive limit of shape sizes and row lengths. They fit into an `i64`, and their size in bytes fits into
/// a `u128`. Sizes of sparse columns are not multiplied, and may be up to 2^63 - 1, as in TensorFlow.
const LIMIT: u64 = 1 << 62;

fn is_below_limit(size: usize) -> bool {
    u64::try_from(size).is_ok_and(|size| size < LIMIT)
}

/// Returns the number of elements of a shape.
fn elements(shape: &[usize]) -> Result<usize> {
    if let Some(dim) = shape.iter().find(|&&dim| !is_below_limit(dim)) {
        return Err(Error::spec(format!("shape: expected dimensions below 2^62, found {dim}")));
    }
    let product = shape.iter().try_fold(1usize, |product, &dim| product.checked_mul(dim));
    let product = product.filter(|&product| is_below_limit(product));
    product.ok_or_else(|| Error::spec(format!("shape: expected fewer than 2^62 elements, found {shape:?}")))
}

fn check_spec(owner: SpecOwner, spec: &FeatureSpec) -> Result<()> {
    if let Some(reason) = refused_by(owner, spec) {
        return Err(Error::spec(reason));
    }
    match spec {
        FeatureSpec::FixedLen { shape, dtype, default } => {
            let elements = elements(shape)?;
            let Some(default) = default else { return Ok(()) };
            check_default_kind(default.kind(), *dtype)?;
            match default.len() {
                0 => Err(Error::spec("a default without values cannot replace an absent feature")),
                len if len == elements => Ok(()),
                len => Err(Error::spec(format!(
                    "default: expected {elements} values for the shape {shape:?}, found {len} (a single value is not repeated)"
                ))),
            }
        }
        FeatureSpec::Optional { dtype, default } => {
            check_single_default(default.as_ref(), *dtype, " for an optional")
        }
        FeatureSpec::VarLen { .. } => Ok(()),
        FeatureSpec::Stack { keys, dtype, default } => {
            if keys.is_empty() {
                return Err(Error::spec("keys: expected at least one feature, found none"));
            }
            if *dtype == DType::Bytes {
                return Err(Error::spec("dtype: expected int64 or float32 for a stack, found string"));
            }
            check_single_default(default.as_ref(), *dtype, " for each feature of a stack")
        }
        FeatureSpec::Image(image) => image.check(),
        FeatureSpec::Label { vocabulary, .. } => check_vocabulary(vocabulary),
        FeatureSpec::Several(of) => check_several(owner, of),
        FeatureSpec::FixedLenSequence { shape, dtype, allow_missing, default } => {
            if elements(shape)? == 0 {
                return Err(Error::spec(format!(
                    "a block of shape {shape:?} has no values, so blocks cannot be counted"
                )));
            }
            match owner {
                SpecOwner::Context => Err(Error::spec("a context cannot have a fixed_sequence")),
                SpecOwner::Example if !allow_missing => Err(Error::spec(
                    "a fixed_sequence needs allow_missing, because an absent feature has no blocks",
                )),
                SpecOwner::FeatureLists if default.is_some() => {
                    Err(Error::spec("a feature list cannot have a default"))
                }
                _ => check_single_default(default.as_ref(), *dtype, ", the padding of a fixed_sequence"),
            }
        }
        FeatureSpec::Ragged { value_key, partitions, .. } => check_ragged(value_key.as_deref(), partitions),
        FeatureSpec::Sparse { index_keys, value_key, size, .. } => check_sparse(index_keys, value_key, size),
        FeatureSpec::Raw { shape, fixed_length: true, .. } if array_sizes(shape).0 => {
            Err(Error::spec("fixed_length: expected a shape without an open dimension"))
        }
        FeatureSpec::Raw { dtype, shape, .. } | FeatureSpec::Tensor { dtype, shape } => {
            check_array(*dtype, shape)
        }
    }
}

/// Returns why a message or map cannot have such a spec.
fn refused_by(owner: SpecOwner, spec: &FeatureSpec) -> Option<String> {
    let name = spec.name();
    match spec {
        FeatureSpec::Sparse { .. } if owner != SpecOwner::Example => {
            Some("a SequenceExample cannot have a sparse feature".into())
        }
        FeatureSpec::Several(of) if owner == SpecOwner::FeatureLists => Some(format!(
            "each step of a feature list has one byte string: expected {}, found several",
            of.name()
        )),
        _ if owner != SpecOwner::FeatureLists => None,
        FeatureSpec::FixedLen { .. } | FeatureSpec::Optional { .. } | FeatureSpec::Stack { .. } => Some(
            format!("a feature list can have any number of steps: expected fixed_sequence, found {name}"),
        ),
        spec => check_repeated(spec),
    }
}

/// Returns why there cannot be any number of byte strings of this spec.
fn check_repeated(spec: &FeatureSpec) -> Option<String> {
    let name = spec.name();
    match spec {
        FeatureSpec::Raw { shape, .. } | FeatureSpec::Tensor { shape, .. } if array_sizes(shape).0 => {
            Some(format!("a column of several {name} cannot have an open dimension in each"))
        }
        FeatureSpec::Image(image) if image.size.is_none() => {
            Some("a column of several images needs a size".into())
        }
        FeatureSpec::Image(image) if image.geometry.is_some() => {
            Some("geometry: a column of several images has none".into())
        }
        _ => None,
    }
}

/// Validates what several byte strings are.
fn check_several(owner: SpecOwner, of: &FeatureSpec) -> Result<()> {
    if !of.is_of_string() {
        let found = of.name();
        return Err(Error::spec(format!("several: expected raw, tensor, image or label, found {found}")));
    }
    check_repeated(of).map_or(Ok(()), |reason| Err(Error::spec(reason)))?;
    check_spec(owner, of)
}

/// Validates a vocabulary.
fn check_vocabulary(vocabulary: &[Box<[u8]>]) -> Result<()> {
    if vocabulary.is_empty() {
        return Err(Error::spec("vocabulary: expected at least one string, found none"));
    }
    let mut numbers = HashMap::with_capacity(vocabulary.len());
    for (number, word) in vocabulary.iter().enumerate() {
        if let Some(first) = numbers.insert(word, number) {
            let word = word.escape_ascii();
            return Err(Error::spec(format!(
                "vocabulary: expected each string once, found \"{word}\" as {first} and as {number}"
            )));
        }
    }
    Ok(())
}

/// Validates a default of one value. `purpose` ends the message about another number of values.
fn check_single_default(default: Option<&FeatureBuf>, dtype: DType, purpose: &str) -> Result<()> {
    let Some(default) = default else { return Ok(()) };
    check_default_kind(default.kind(), dtype)?;
    match default.len() {
        1 => Ok(()),
        len => Err(Error::spec(format!("default: expected one value{purpose}, found {len}"))),
    }
}

fn check_ragged(value_key: Option<&str>, partitions: &[Partition]) -> Result<()> {
    if value_key == Some("") {
        return Err(Error::spec("value_key: expected a name, found an empty string"));
    }
    partitions.iter().try_for_each(|partition| match partition {
        Partition::UniformRowLength(0) => {
            Err(Error::spec("uniform_row_length: expected a length of at least 1, found 0"))
        }
        Partition::UniformRowLength(length) if !is_below_limit(*length) => {
            Err(Error::spec(format!("uniform_row_length: expected a length below 2^62, found {length}")))
        }
        _ => Ok(()),
    })
}

fn check_sparse(index_keys: &[String], value_key: &str, size: &[u64]) -> Result<()> {
    if index_keys.is_empty() || index_keys.iter().any(String::is_empty) || value_key.is_empty() {
        return Err(Error::spec("a sparse feature needs index_key and value_key"));
    }
    if index_keys.len() != size.len() {
        let keys = index_keys.len();
        let sizes = size.len();
        return Err(Error::spec(format!(
            "expected one size per index key, found {keys} index keys and {sizes} sizes"
        )));
    }
    match size.iter().find(|&&size| i64::try_from(size).is_err()) {
        Some(size) => Err(Error::spec(format!("the size {size} does not fit into an int64"))),
        None => Ok(()),
    }
}

/// Returns true if the first dimension is open, and the other dimensions.
pub(crate) fn array_sizes(shape: &[Option<usize>]) -> (bool, &[Option<usize>]) {
    match shape {
        [None, sizes @ ..] => (true, sizes),
        sizes => (false, sizes),
    }
}

/// Validates the type and the shape of the arrays in byte strings.
fn check_array(dtype: TensorDType, shape: &[Option<usize>]) -> Result<()> {
    if dtype.size().is_none() {
        return Err(Error::spec("dtype: expected numbers or bools, found string"));
    }
    let (any, sizes) = array_sizes(shape);
    let sizes: Option<Vec<usize>> = sizes.iter().copied().collect();
    let Some(sizes) = sizes else {
        return Err(Error::spec("shape: expected an open dimension as the first only, found another"));
    };
    if elements(&sizes)? == 0 && any {
        return Err(Error::spec(format!(
            "an item of shape {sizes:?} has no values, so items cannot be counted"
        )));
    }
    Ok(())
}

fn check_default_kind(found: Option<DType>, dtype: DType) -> Result<()> {
    match found {
        Some(found) if found == dtype => Ok(()),
        found => {
            let found = found.map_or("no kind", DType::name);
            Err(Error::spec(format!("default: expected values of kind {dtype}, found {found}")))
        }
    }
}

/// The role of a key, which determines how its feature is read. TensorFlow allows one role per key.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    Dense,
    Sparse(DType),
    Ragged(DType, SplitsDType),
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Role::Dense => f.write_str("dense"),
            Role::Sparse(dtype) => write!(f, "sparse {dtype}"),
            Role::Ragged(dtype, splits) => write!(f, "ragged {dtype} with {} row splits", splits.name()),
        }
    }
}

/// Records the roles of the keys of a spec. Returns an error if a key has another role already.
fn claim_roles<'a>(roles: &mut BTreeMap<&'a str, Role>, name: &'a str, spec: &'a FeatureSpec) -> Result<()> {
    let mut claim = |key: &'a str, role: Role| match roles.entry(key) {
        Entry::Vacant(free) => {
            free.insert(role);
            Ok(())
        }
        // Sparse columns may share keys, and so may ragged columns, if their types are equal.
        Entry::Occupied(taken) if *taken.get() == role && role != Role::Dense => Ok(()),
        Entry::Occupied(taken) if *taken.get() == role => {
            Err(Error::spec(format!("the feature \"{}\" is read twice", key.escape_debug())))
        }
        Entry::Occupied(taken) => Err(Error::spec(format!(
            "the feature \"{}\" is used as {} and as {role}",
            key.escape_debug(),
            taken.get()
        ))),
    };
    match spec {
        FeatureSpec::FixedLen { .. }
        | FeatureSpec::Optional { .. }
        | FeatureSpec::FixedLenSequence { .. }
        | FeatureSpec::Raw { .. }
        | FeatureSpec::Tensor { .. }
        | FeatureSpec::Image(_)
        | FeatureSpec::Label { .. }
        | FeatureSpec::Several(_) => claim(name, Role::Dense),
        FeatureSpec::Stack { keys, .. } => keys.iter().try_for_each(|key| claim(key, Role::Dense)),
        FeatureSpec::VarLen { dtype } => claim(name, Role::Sparse(*dtype)),
        FeatureSpec::Ragged { dtype, value_key, partitions, row_splits_dtype, .. } => {
            claim(value_key.as_deref().unwrap_or(name), Role::Ragged(*dtype, *row_splits_dtype))?;
            let mut keys = partitions.iter().filter_map(Partition::key);
            keys.try_for_each(|key| claim(key, Role::Ragged(DType::Int64, *row_splits_dtype)))
        }
        FeatureSpec::Sparse { index_keys, value_key, dtype, .. } => {
            claim(value_key, Role::Sparse(*dtype))?;
            index_keys.iter().try_for_each(|key| claim(key, Role::Sparse(DType::Int64)))
        }
    }
}
