//! What a schema is refused for.

use super::spec::{DType, FeatureSpec, Partition, SplitsDType};
use crate::error::{Error, ErrorKind, Result};
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

/// Where a spec stands: it decides which ones make sense.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Example,
    Context,
    FeatureLists,
}

/// Checks the specs of a schema.
pub(super) fn specs(
    sequence: bool,
    features: &[(String, FeatureSpec)],
    feature_lists: &[(String, FeatureSpec)],
) -> Result<()> {
    if !sequence && let Some((name, _)) = feature_lists.first() {
        return Err(refused("feature lists are for a schema of SequenceExamples").feature(name.as_bytes()));
    }
    part(if sequence { Part::Context } else { Part::Example }, features)?;
    part(Part::FeatureLists, feature_lists)
}

fn part(part: Part, specs: &[(String, FeatureSpec)]) -> Result<()> {
    let mut names = BTreeSet::new();
    let mut roles = BTreeMap::new();
    for (name, spec) in specs {
        let checked = match names.insert(name) {
            true => spec_of(part, spec).and_then(|()| claim(&mut roles, name, spec)),
            false => Err(refused("the name is given twice")),
        };
        checked.map_err(|e| e.feature(name.as_bytes()))?;
    }
    Ok(())
}

#[cold]
fn refused(reason: impl Into<Box<str>>) -> Error {
    ErrorKind::Spec(reason.into()).into()
}

/// Shapes and row lengths are below this. What they are multiplied with (bytes of a value, a sign) then leaves 64 bits to spare.
const LIMIT: u64 = 1 << 62;

fn is_below_limit(size: usize) -> bool {
    u64::try_from(size).is_ok_and(|size| size < LIMIT)
}

/// Number of elements of a shape.
pub(crate) fn elements(shape: &[usize]) -> Result<usize> {
    if let Some(dim) = shape.iter().find(|&&dim| !is_below_limit(dim)) {
        return Err(refused(format!("shape: expected dimensions below 2^62, found {dim}")));
    }
    let product = shape.iter().try_fold(1usize, |product, &dim| product.checked_mul(dim));
    let product = product.filter(|&product| is_below_limit(product));
    product.ok_or_else(|| refused(format!("the shape {shape:?} has too many elements")))
}

fn spec_of(part: Part, spec: &FeatureSpec) -> Result<()> {
    match spec {
        FeatureSpec::FixedLen { shape, dtype, default } => {
            if part == Part::FeatureLists {
                return Err(refused(
                    "a feature list has any number of steps: fixed_sequence instead of fixed",
                ));
            }
            let elements = elements(shape)?;
            let Some(default) = default else { return Ok(()) };
            of_kind(default.kind().map(DType::from), *dtype)?;
            match default.len() {
                0 => Err(refused("a default without values cannot stand for an absent feature")),
                len if len == elements => Ok(()),
                len => Err(refused(format!(
                    "the shape {shape:?} needs a default of {elements} values (one is not repeated), it has {len}"
                ))),
            }
        }
        FeatureSpec::VarLen { .. } => Ok(()),
        FeatureSpec::FixedLenSequence { shape, dtype, allow_missing, default } => {
            if elements(shape)? == 0 {
                return Err(refused(format!(
                    "blocks of the shape {shape:?} have no values, so none can be counted"
                )));
            }
            match part {
                Part::Context => return Err(refused("a context takes no fixed_sequence")),
                Part::Example if !allow_missing => {
                    return Err(refused(
                        "a fixed_sequence needs allow_missing, for an absent feature is one of no blocks",
                    ));
                }
                Part::FeatureLists if default.is_some() => {
                    return Err(refused("a feature list takes no default"));
                }
                _ => {}
            }
            let Some(default) = default else { return Ok(()) };
            of_kind(default.kind().map(DType::from), *dtype)?;
            match default.len() {
                1 => Ok(()),
                len => {
                    Err(refused(format!("a fixed_sequence is padded with one value, the default has {len}")))
                }
            }
        }
        FeatureSpec::Ragged { value_key, partitions, .. } => {
            if value_key.as_deref() == Some("") {
                return Err(refused("value_key is empty"));
            }
            partitions.iter().try_for_each(|partition| match partition {
                Partition::UniformRowLength(0) => Err(refused("rows of the uniform length 0 hold no values")),
                Partition::UniformRowLength(length) if !is_below_limit(*length) => {
                    Err(refused(format!("uniform_row_length: expected a length below 2^62, found {length}")))
                }
                _ => Ok(()),
            })
        }
        FeatureSpec::Sparse { index_keys, value_key, size, .. } => {
            if part != Part::Example {
                return Err(refused("a SequenceExample takes no sparse feature"));
            }
            if index_keys.is_empty() || index_keys.iter().any(String::is_empty) || value_key.is_empty() {
                return Err(refused("a sparse feature needs index_key and value_key"));
            }
            if index_keys.len() != size.len() {
                let (keys, sizes) = (index_keys.len(), size.len());
                return Err(refused(format!("{keys} index keys, but {sizes} sizes")));
            }
            match size.iter().find(|&&size| i64::try_from(size).is_err()) {
                Some(size) => Err(refused(format!("the size {size} does not fit into an int64"))),
                None => Ok(()),
            }
        }
    }
}

fn of_kind(found: Option<DType>, dtype: DType) -> Result<()> {
    match found {
        Some(found) if found == dtype => Ok(()),
        found => Err(refused(format!(
            "a {dtype} feature has a default of {}",
            found.map_or("no kind", DType::name)
        ))),
    }
}

/// What a feature of a record is read as. TensorFlow gives each key one role.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Role {
    Dense,
    Sparse(DType),
    Ragged(DType, SplitsDType),
}

fn claim<'a>(roles: &mut BTreeMap<&'a str, Role>, name: &'a str, spec: &'a FeatureSpec) -> Result<()> {
    let mut one = |key: &'a str, role: Role| match roles.entry(key) {
        Entry::Vacant(free) => {
            free.insert(role);
            Ok(())
        }
        // Sparse features may share keys, and so may ragged ones, as long as they agree on the type.
        Entry::Occupied(taken) if *taken.get() == role && role != Role::Dense => Ok(()),
        Entry::Occupied(taken) => Err(refused(format!(
            "the feature \"{}\" is wanted as {:?} and as {role:?}",
            key.escape_debug(),
            taken.get()
        ))),
    };
    match spec {
        FeatureSpec::FixedLen { .. } | FeatureSpec::FixedLenSequence { .. } => one(name, Role::Dense),
        FeatureSpec::VarLen { dtype } => one(name, Role::Sparse(*dtype)),
        FeatureSpec::Ragged { dtype, value_key, partitions, row_splits_dtype, .. } => {
            one(value_key.as_deref().unwrap_or(name), Role::Ragged(*dtype, *row_splits_dtype))?;
            let mut keys = partitions.iter().filter_map(Partition::key);
            keys.try_for_each(|key| one(key, Role::Ragged(DType::Int64, *row_splits_dtype)))
        }
        FeatureSpec::Sparse { index_keys, value_key, dtype, .. } => {
            one(value_key, Role::Sparse(*dtype))?;
            index_keys.iter().try_for_each(|key| one(key, Role::Sparse(DType::Int64)))
        }
    }
}
