//! Compiled schemas: the features to locate in a record, and the columns to assemble from them.

use crate::error::{Error, Result};
use crate::example::FeatureBuf;
use crate::io::Region;
use crate::schema::{DType, FeatureSpec, ImageSpec, Partition, Schema, SplitsDType, array_sizes};
use crate::tensor::TensorDType;
use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// A compiled schema.
#[derive(Clone, Debug)]
pub(super) struct BatchPlan {
    pub(super) schema: Schema,
    pub(super) features: MapPlan,
    pub(super) lists: MapPlan,
    /// The names and specs of the columns of pictures.
    pub(super) pictures: Vec<(Box<str>, ImageSpec)>,
}

/// The features of an Example or a context, or the feature lists.
#[derive(Clone, Debug)]
pub(super) struct MapPlan {
    /// Sorted by key.
    pub(super) slots: Vec<PlanSlot>,
    /// Sorted by name.
    pub(super) columns: Vec<ColumnPlan>,
}

/// A map field of the message, with its number.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum MapField {
    Features = 1,
    FeatureLists = 2,
}

/// A feature to locate. Columns of the same feature share it.
#[derive(Clone, Debug)]
pub(super) struct PlanSlot {
    pub(super) key: Box<str>,
    pub(super) dtype: DType,
    pub(super) need: Need,
    /// Concatenated byte strings of its default or its padding.
    pub(super) fallback: Option<Region>,
    /// Set if its byte strings are arrays.
    pub(super) array: Option<ArrayPlan>,
}

impl PlanSlot {
    /// Returns true if the values of its columns are byte strings.
    pub(super) fn has_strings(&self) -> bool {
        self.dtype == DType::Bytes && self.array.is_none()
    }
}

/// The array that a byte string contains.
#[derive(Clone, Debug)]
pub(super) struct ArrayPlan {
    pub(super) dtype: TensorDType,
    pub(super) encoding: ArrayEncoding,
    /// True if a row can have any number of byte strings.
    pub(super) several: bool,
    /// True if the first dimension is any number of items.
    pub(super) open: bool,
    /// Sizes of the other dimensions.
    pub(super) sizes: Vec<usize>,
    /// Number of elements of the array, or of an item.
    pub(super) elements: usize,
}

#[derive(Clone, Debug)]
pub(super) enum ArrayEncoding {
    /// The bytes of the elements. Those of a fixed length are cut or padded.
    Raw { little_endian: bool, fixed_length: bool },
    /// A `TensorProto`.
    Tensor,
    /// A string of a vocabulary, with the number of each. Others have the number `unknown`.
    Label { numbers: Arc<HashMap<Box<[u8]>, i64>>, unknown: Option<i64> },
}

impl ArrayPlan {
    pub(super) fn is_label(&self) -> bool {
        matches!(self.encoding, ArrayEncoding::Label { .. })
    }

    fn new(spec: &FeatureSpec, lists: bool) -> Option<ArrayPlan> {
        let several = lists || matches!(spec, FeatureSpec::Several(_));
        let (dtype, shape, encoding) = match spec.of_string() {
            FeatureSpec::Raw { dtype, shape, little_endian, fixed_length } => {
                let (little_endian, fixed_length) = (*little_endian, *fixed_length);
                (*dtype, &**shape, ArrayEncoding::Raw { little_endian, fixed_length })
            }
            FeatureSpec::Tensor { dtype, shape } => (*dtype, &**shape, ArrayEncoding::Tensor),
            FeatureSpec::Label { vocabulary, unknown } => {
                let numbers = Arc::new(vocabulary.iter().cloned().zip(0..).collect());
                (TensorDType::Int64, &[][..], ArrayEncoding::Label { numbers, unknown: *unknown })
            }
            _ => return None,
        };
        let (open, sizes) = array_sizes(shape);
        let sizes: Vec<usize> = sizes.iter().copied().flatten().collect();
        let elements = sizes.iter().product();
        Some(ArrayPlan { dtype, encoding, several, open, sizes, elements })
    }
}

/// The allowed number of values of a feature, and the result for an absent feature.
#[derive(Clone, Debug)]
pub(super) enum Need {
    /// `count` values, or the default.
    Fixed { count: usize, default: Option<FeatureBuf> },
    /// One value or none. A missing value becomes the default, or zero.
    Optional { default: FeatureBuf },
    /// Any number of blocks of `block_len` values. A step of a feature list is one block.
    Blocks { block_len: usize, required: bool },
    /// Any number of values.
    Any,
}

/// A column to assemble.
#[derive(Clone, Debug)]
pub(super) struct ColumnPlan {
    pub(super) name: Box<str>,
    /// Its name in the schema.
    pub(super) key: Box<str>,
    pub(super) form: ColumnForm,
}

#[derive(Clone, Debug)]
pub(super) enum ColumnForm {
    Dense {
        slot: usize,
        shape: Vec<usize>,
    },
    Optional {
        slot: usize,
    },
    Padded {
        slot: usize,
        shape: Vec<usize>,
        block_len: usize,
        /// Padding; a single value.
        fill: FeatureBuf,
    },
    VarLen {
        slot: usize,
    },
    Ragged(RaggedPlan),
    Sparse(SparsePlan),
    /// The numbers of these slots, side by side. There is at least one.
    Stack {
        slots: Vec<usize>,
    },
    /// The geometry of the picture in this slot. A decoder makes it.
    Geometry {
        slot: usize,
    },
}

/// The slots of a ragged column.
#[derive(Clone, Debug)]
pub(super) struct RaggedPlan {
    pub(super) slot: usize,
    /// Partitions, outermost first, each with the slot of the feature that describes it.
    pub(super) partitions: Vec<(Partition, Option<usize>)>,
    pub(super) splits: SplitsDType,
    /// Set if the items of a row are its byte strings, each an array of this shape.
    pub(super) strings: Option<Vec<usize>>,
}

/// The slots of a sparse column.
#[derive(Clone, Debug)]
pub(super) struct SparsePlan {
    pub(super) values: usize,
    /// Slot of the indices of each dimension.
    pub(super) indices: Vec<usize>,
    /// Size of each dimension.
    pub(super) size: Vec<u64>,
    /// True if the spec states that the entries of each row are sorted by index.
    pub(super) already_sorted: bool,
}

/// Returns the default padding and the value of missing ones: 0, 0.0 or `""`.
fn zero(dtype: DType) -> FeatureBuf {
    match dtype {
        DType::Int64 => FeatureBuf::Int64(vec![0]),
        DType::Float32 => FeatureBuf::Float(vec![0.0]),
        DType::Bytes => FeatureBuf::Bytes(vec![Vec::new()]),
    }
}

impl BatchPlan {
    pub(super) fn new(schema: &Schema) -> BatchPlan {
        let features = MapPlan::new(schema.features(), false);
        BatchPlan {
            schema: schema.clone(),
            pictures: pictures(schema, &features.columns),
            features,
            lists: MapPlan::new(schema.feature_lists(), true),
        }
    }

    /// Returns the plan with other names of columns of features, from those in the schema.
    ///
    /// # Errors
    /// [`ErrorKind::Spec`](crate::ErrorKind::Spec) for a name that is not in the schema, and for two columns
    /// of one name.
    pub(super) fn renamed<'a>(
        &self,
        names: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Result<BatchPlan> {
        let mut plan = self.clone();
        let columns = &mut plan.features.columns;
        for (key, name) in names {
            // The spec of a picture names its geometry.
            let is_named = |column: &&mut ColumnPlan| {
                &*column.key == key && !matches!(column.form, ColumnForm::Geometry { .. })
            };
            let column = columns.iter_mut().find(is_named);
            let missing = || Error::spec("is renamed and is not in the schema").feature(key.as_bytes());
            column.ok_or_else(missing)?.name = name.into();
        }
        // A picture has the name of its column, also where its crop is drawn.
        plan.pictures = pictures(&plan.schema, columns);
        columns.sort_by(|a, b| a.name.cmp(&b.name));
        let mut adjacent = columns.iter().zip(columns.iter().skip(1));
        if let Some((twice, _)) = adjacent.find(|(a, b)| a.name == b.name) {
            return Err(Error::spec("is the name of two columns").feature(twice.name.as_bytes()));
        }
        Ok(plan)
    }

    /// Returns the spec of a column of features, with the names of columns. `None` for a geometry.
    pub(super) fn spec(&self, column: &ColumnPlan) -> Option<Cow<'_, FeatureSpec>> {
        let spec = self.schema.features().get(&*column.key)?;
        let picture = self.pictures.iter().find(|(name, _)| *name == column.name);
        let Some((_, image)) = picture else { return Some(Cow::Borrowed(spec)) };
        let image = FeatureSpec::Image(image.clone());
        Some(Cow::Owned(match spec {
            FeatureSpec::Several(_) => FeatureSpec::Several(Box::new(image)),
            _ => image,
        }))
    }
}

/// Returns the names and specs of the columns of pictures, with feature lists at the end. A crop is drawn
/// with the name of a column.
fn pictures(schema: &Schema, columns: &[ColumnPlan]) -> Vec<(Box<str>, ImageSpec)> {
    let name = |key: String| match columns.iter().find(|column| *column.key == *key) {
        Some(column) => column.name.to_string(),
        None => key,
    };
    let spec = |column: &ColumnPlan| match schema.features().get(&*column.key)?.of_string() {
        FeatureSpec::Image(image) => {
            let crop_with = image.crop_with.clone().map(name);
            Some((column.name.clone(), ImageSpec { crop_with, ..image.clone() }))
        }
        _ => None,
    };
    let of_list = |(name, spec): (&String, &FeatureSpec)| match spec {
        FeatureSpec::Image(image) => Some((name.as_str().into(), image.clone())),
        _ => None,
    };
    let of_lists = schema.feature_lists().iter().filter_map(of_list);
    columns.iter().filter_map(spec).chain(of_lists).collect()
}

impl MapPlan {
    /// Compiles specs that were validated when the schema was built: each key has one role, and the size of
    /// each shape fits.
    fn new(specs: &BTreeMap<String, FeatureSpec>, lists: bool) -> MapPlan {
        let mut needs: BTreeMap<&str, (DType, Need)> = BTreeMap::new();
        let mut fallbacks: BTreeMap<&str, Region> = BTreeMap::new();
        for (name, spec) in specs {
            if let FeatureSpec::FixedLen { default: Some(FeatureBuf::Bytes(values)), .. }
            | FeatureSpec::Optional { default: Some(FeatureBuf::Bytes(values)), .. }
            | FeatureSpec::FixedLenSequence { default: Some(FeatureBuf::Bytes(values)), .. } = spec
            {
                fallbacks.insert(name, values.concat().into());
            }
            match spec {
                FeatureSpec::FixedLen { shape, dtype, default } => {
                    let count = shape.iter().product();
                    needs.insert(name, (*dtype, Need::Fixed { count, default: default.clone() }));
                }
                FeatureSpec::Optional { dtype, default } => {
                    let default = default.clone().unwrap_or_else(|| zero(*dtype));
                    needs.insert(name, (*dtype, Need::Optional { default }));
                }
                FeatureSpec::FixedLenSequence { shape, dtype, allow_missing, .. } => {
                    let block_len = shape.iter().product();
                    needs.insert(name, (*dtype, Need::Blocks { block_len, required: !allow_missing }));
                }
                FeatureSpec::VarLen { dtype } => {
                    needs.insert(name, (*dtype, Need::Any));
                }
                FeatureSpec::Ragged { dtype, value_key, partitions, .. } => {
                    needs.insert(value_key.as_deref().unwrap_or(name), (*dtype, Need::Any));
                    let keys = partitions.iter().filter_map(Partition::key);
                    needs.extend(keys.map(|key| (key, (DType::Int64, Need::Any))));
                }
                FeatureSpec::Stack { keys, dtype, default } => {
                    let need = Need::Fixed { count: 1, default: default.clone() };
                    needs.extend(keys.iter().map(|key| (&**key, (*dtype, need.clone()))));
                }
                FeatureSpec::Several(_) => {
                    needs.insert(name, (DType::Bytes, Need::Any));
                }
                of if lists && of.is_of_string() => {
                    needs.insert(name, (DType::Bytes, Need::Blocks { block_len: 1, required: false }));
                }
                FeatureSpec::Image(ImageSpec { missing: Some(_), .. }) => {
                    let default = zero(DType::Bytes);
                    needs.insert(name, (DType::Bytes, Need::Optional { default }));
                }
                FeatureSpec::Raw { .. }
                | FeatureSpec::Tensor { .. }
                | FeatureSpec::Image(_)
                | FeatureSpec::Label { .. } => {
                    needs.insert(name, (DType::Bytes, Need::Fixed { count: 1, default: None }));
                }
                FeatureSpec::Sparse { index_keys, value_key, dtype, .. } => {
                    needs.insert(value_key, (*dtype, Need::Any));
                    needs.extend(index_keys.iter().map(|key| (&**key, (DType::Int64, Need::Any))));
                }
            }
        }
        let slots = needs.into_iter().map(|(key, (dtype, need))| PlanSlot {
            key: key.into(),
            dtype,
            need,
            fallback: fallbacks.remove(key),
            // The key of an array is the name of its only column. A stack reads other keys than its name.
            array: specs.get(key).and_then(|spec| ArrayPlan::new(spec, lists)),
        });
        let slots: Vec<PlanSlot> = slots.collect();
        let slot = |key: &str| slots.partition_point(|slot| &*slot.key < key);
        MapPlan { columns: ColumnPlan::all(specs, slot, lists), slots }
    }

    /// Returns the index of the column `name`.
    pub(super) fn column(&self, name: &str) -> Option<usize> {
        self.columns.binary_search_by(|column| (*column.name).cmp(name)).ok()
    }
}

impl ColumnPlan {
    /// Returns the columns of specs and of geometries, sorted by name.
    fn all(
        specs: &BTreeMap<String, FeatureSpec>,
        slot: impl Fn(&str) -> usize,
        lists: bool,
    ) -> Vec<ColumnPlan> {
        let column = |name: &str, form| ColumnPlan { name: name.into(), key: name.into(), form };
        let mut columns = Vec::with_capacity(specs.len());
        for (name, spec) in specs {
            columns.push(column(name, ColumnForm::new(name, spec, &slot, lists)));
            if let FeatureSpec::Image(ImageSpec { geometry: Some(geometry), .. }) = spec {
                columns.push(column(geometry, ColumnForm::Geometry { slot: slot(name) }));
            }
        }
        columns.sort_by(|a, b| a.name.cmp(&b.name));
        columns
    }
}

impl ColumnForm {
    /// Returns the slot of the values.
    pub(super) fn values(&self) -> usize {
        match *self {
            ColumnForm::Dense { slot, .. }
            | ColumnForm::Optional { slot }
            | ColumnForm::Padded { slot, .. }
            | ColumnForm::VarLen { slot }
            | ColumnForm::Geometry { slot }
            | ColumnForm::Ragged(RaggedPlan { slot, .. })
            | ColumnForm::Sparse(SparsePlan { values: slot, .. }) => slot,
            ColumnForm::Stack { ref slots } => slots.first().copied().unwrap_or(0),
        }
    }

    fn new(name: &str, spec: &FeatureSpec, slot: impl Fn(&str) -> usize, lists: bool) -> ColumnForm {
        let several = |of: &FeatureSpec| {
            let shape = match of {
                FeatureSpec::Raw { shape, .. } | FeatureSpec::Tensor { shape, .. } => {
                    shape.iter().copied().flatten().collect()
                }
                _ => Vec::new(),
            };
            let splits = SplitsDType::Int64;
            let slot = slot(name);
            ColumnForm::Ragged(RaggedPlan { slot, partitions: Vec::new(), splits, strings: Some(shape) })
        };
        match spec {
            FeatureSpec::Several(of) => several(of),
            FeatureSpec::Stack { keys, .. } => {
                ColumnForm::Stack { slots: keys.iter().map(|key| slot(key)).collect() }
            }
            of if lists && of.is_of_string() => several(of),
            FeatureSpec::FixedLen { shape, .. } => {
                ColumnForm::Dense { slot: slot(name), shape: shape.clone() }
            }
            FeatureSpec::Optional { default: None, .. } => ColumnForm::Optional { slot: slot(name) },
            FeatureSpec::Optional { .. } => ColumnForm::Dense { slot: slot(name), shape: Vec::new() },
            FeatureSpec::FixedLenSequence { shape, dtype, default, .. } => ColumnForm::Padded {
                slot: slot(name),
                shape: shape.clone(),
                block_len: shape.iter().product(),
                fill: default.clone().unwrap_or_else(|| zero(*dtype)),
            },
            FeatureSpec::Image(_) | FeatureSpec::Label { .. } => {
                ColumnForm::Dense { slot: slot(name), shape: Vec::new() }
            }
            FeatureSpec::VarLen { .. } => ColumnForm::VarLen { slot: slot(name) },
            FeatureSpec::Ragged { value_key, partitions, row_splits_dtype, .. } => {
                let with_slot = |partition: &Partition| (partition.clone(), partition.key().map(&slot));
                ColumnForm::Ragged(RaggedPlan {
                    slot: slot(value_key.as_deref().unwrap_or(name)),
                    partitions: partitions.iter().map(with_slot).collect(),
                    splits: *row_splits_dtype,
                    strings: None,
                })
            }
            FeatureSpec::Raw { shape, .. } | FeatureSpec::Tensor { shape, .. } => {
                let (open, sizes) = array_sizes(shape);
                let sizes = sizes.iter().copied().flatten();
                if open {
                    // The items of a row are its values, in rows of the other dimensions.
                    let partitions = sizes.map(|len| (Partition::UniformRowLength(len), None)).collect();
                    let splits = SplitsDType::Int64;
                    ColumnForm::Ragged(RaggedPlan { slot: slot(name), partitions, splits, strings: None })
                } else {
                    ColumnForm::Dense { slot: slot(name), shape: sizes.collect() }
                }
            }
            FeatureSpec::Sparse { index_keys, value_key, size, already_sorted, .. } => {
                ColumnForm::Sparse(SparsePlan {
                    values: slot(value_key),
                    indices: index_keys.iter().map(|key| slot(key)).collect(),
                    size: size.clone(),
                    already_sorted: *already_sorted,
                })
            }
        }
    }
}
