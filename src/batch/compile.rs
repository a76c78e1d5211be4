//! Compiled schemas: the features to locate in a record, and the columns to assemble from them.

use crate::error::{Error, ErrorKind, Result};
use crate::example::FeatureBuf;
use crate::io::Region;
use crate::schema::{DType, FeatureSpec, ImageSpec, Partition, Schema, SplitsDType, array_sizes};
use crate::tensor::TensorDType;
use std::collections::BTreeMap;

/// A compiled schema.
#[derive(Clone, Debug)]
pub(super) struct BatchPlan {
    pub(super) schema: Schema,
    pub(super) sequence: bool,
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

/// A map field of the message.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum MapField {
    Features,
    FeatureLists,
}

/// A feature to locate. Columns of the same feature share it.
#[derive(Clone, Debug)]
pub(super) struct PlanSlot {
    pub(super) key: Box<str>,
    pub(super) dtype: DType,
    pub(super) need: Need,
    /// Concatenated byte strings of its default or its padding.
    pub(super) fallback: Option<Region>,
    /// Set if its only byte string is an array.
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
    /// True if the first dimension is any number of items.
    pub(super) open: bool,
    /// Sizes of the other dimensions.
    pub(super) sizes: Vec<usize>,
    /// Number of elements of the array, or of an item.
    pub(super) elements: usize,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum ArrayEncoding {
    /// The bytes of the elements.
    Raw { little_endian: bool },
    /// A `TensorProto`.
    Tensor,
}

impl ArrayPlan {
    fn new(spec: &FeatureSpec) -> Option<ArrayPlan> {
        let (dtype, shape, encoding) = match spec {
            FeatureSpec::Raw { dtype, shape, little_endian } => {
                (dtype, shape, ArrayEncoding::Raw { little_endian: *little_endian })
            }
            FeatureSpec::Tensor { dtype, shape } => (dtype, shape, ArrayEncoding::Tensor),
            _ => return None,
        };
        let (open, sizes) = array_sizes(shape);
        let sizes: Vec<usize> = sizes.iter().copied().flatten().collect();
        let elements = sizes.iter().product();
        Some(ArrayPlan { dtype: *dtype, encoding, open, sizes, elements })
    }
}

/// The allowed number of values of a feature, and the result for an absent feature.
#[derive(Clone, Debug)]
pub(super) enum Need {
    /// `count` values, or the default.
    Fixed { count: usize, default: Option<DefaultValues> },
    /// One value or none. A missing value becomes the default, or zero.
    Optional { default: DefaultValues },
    /// Any number of blocks of `block_len` values. A step of a feature list is one block.
    Blocks { block_len: usize, required: bool },
    /// Any number of values.
    Any,
}

/// Values of a slot in records that do not have the feature.
#[derive(Clone, Debug)]
pub(super) enum DefaultValues {
    Int64(Vec<i64>),
    Float32(Vec<f32>),
    /// End of each string in the fallback of the slot.
    Bytes(Vec<usize>),
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
        fill: DefaultValues,
    },
    VarLen {
        slot: usize,
    },
    Ragged {
        slot: usize,
        partitions: Vec<PartitionPlan>,
        splits: SplitsDType,
    },
    Sparse {
        values: usize,
        indices: Vec<usize>,
        size: Vec<u64>,
        already_sorted: bool,
    },
}

/// A partition, with its key resolved to a slot.
#[derive(Clone, Copy, Debug)]
pub(super) enum PartitionPlan {
    RowSplits(usize),
    RowLengths(usize),
    RowStarts(usize),
    RowLimits(usize),
    ValueRowIds(usize),
    Uniform(usize),
}

impl DefaultValues {
    fn new(values: &FeatureBuf) -> DefaultValues {
        match values {
            FeatureBuf::Int64(values) => DefaultValues::Int64(values.clone()),
            FeatureBuf::Float(values) => DefaultValues::Float32(values.clone()),
            FeatureBuf::Bytes(values) => {
                let ends = values.iter().scan(0, |end, value| {
                    *end += value.len();
                    Some(*end)
                });
                DefaultValues::Bytes(ends.collect())
            }
            FeatureBuf::None => DefaultValues::Int64(Vec::new()),
        }
    }

    /// Returns the default padding and the value of missing ones: 0, 0.0 or `""`.
    fn zero(dtype: DType) -> DefaultValues {
        DefaultValues::new(&match dtype {
            DType::Int64 => FeatureBuf::Int64(vec![0]),
            DType::Float32 => FeatureBuf::Float(vec![0.0]),
            DType::Bytes => FeatureBuf::Bytes(vec![Vec::new()]),
        })
    }
}

impl BatchPlan {
    pub(super) fn new(schema: &Schema) -> BatchPlan {
        let features = MapPlan::new(schema.features());
        BatchPlan {
            schema: schema.clone(),
            sequence: schema.is_sequence(),
            pictures: pictures(schema, &features.columns),
            features,
            lists: MapPlan::new(schema.feature_lists()),
        }
    }
}

/// Returns the names and specs of the columns of pictures.
fn pictures(schema: &Schema, columns: &[ColumnPlan]) -> Vec<(Box<str>, ImageSpec)> {
    let spec = |column: &ColumnPlan| match schema.features().get(&*column.key)? {
        FeatureSpec::Image(image) => Some((column.name.clone(), image.clone())),
        _ => None,
    };
    columns.iter().filter_map(spec).collect()
}

impl BatchPlan {
    /// Returns the plan with other names of columns of features, from those in the schema.
    ///
    /// # Errors
    /// [`ErrorKind::Spec`] for a name that is not in the schema, and for two columns of one name.
    pub(super) fn renamed<'a>(
        &self,
        names: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Result<BatchPlan> {
        let mut plan = self.clone();
        let columns = &mut plan.features.columns;
        for (key, name) in names {
            let column = columns.iter_mut().find(|column| &*column.key == key);
            column.ok_or_else(|| spec_error(key, "is renamed and is not in the schema"))?.name = name.into();
        }
        // A picture has the name of its column, also where its crop is drawn.
        plan.pictures = pictures(&plan.schema, columns);
        columns.sort_by(|a, b| a.name.cmp(&b.name));
        let mut adjacent = columns.iter().zip(columns.iter().skip(1));
        if let Some((twice, _)) = adjacent.find(|(a, b)| a.name == b.name) {
            return Err(spec_error(&twice.name, "is the name of two columns"));
        }
        Ok(plan)
    }
}

#[cold]
fn spec_error(key: &str, reason: &str) -> Error {
    Error::from(ErrorKind::Spec(reason.into())).feature(key.as_bytes())
}

impl MapPlan {
    /// Returns the names of the columns in the schema, in the order of the columns.
    pub(super) fn keys(&self) -> Vec<&str> {
        self.columns.iter().map(|column| &*column.key).collect()
    }

    /// Compiles specs that were validated when the schema was built: each key has one role, and the size of
    /// each shape fits.
    fn new(specs: &BTreeMap<String, FeatureSpec>) -> MapPlan {
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
                    let default = default.as_ref().map(DefaultValues::new);
                    let count = shape.iter().product();
                    needs.insert(name, (*dtype, Need::Fixed { count, default }));
                }
                FeatureSpec::Optional { dtype, default } => {
                    let default =
                        default.as_ref().map_or_else(|| DefaultValues::zero(*dtype), DefaultValues::new);
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
                FeatureSpec::Raw { .. } | FeatureSpec::Tensor { .. } | FeatureSpec::Image(_) => {
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
            // The key of an array is the name of its only column.
            array: specs.get(key).and_then(ArrayPlan::new),
        });
        let slots: Vec<PlanSlot> = slots.collect();
        let columns = specs.iter().map(|(name, spec)| ColumnPlan {
            name: name.as_str().into(),
            key: name.as_str().into(),
            form: ColumnForm::new(name, spec, |key| slots.partition_point(|slot| &*slot.key < key)),
        });
        MapPlan { columns: columns.collect(), slots }
    }

    /// Returns the index of the column `name`.
    pub(super) fn column(&self, name: &str) -> Option<usize> {
        self.columns.binary_search_by(|column| (*column.name).cmp(name)).ok()
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
            | ColumnForm::Ragged { slot, .. }
            | ColumnForm::Sparse { values: slot, .. } => slot,
        }
    }

    fn new(name: &str, spec: &FeatureSpec, slot: impl Fn(&str) -> usize) -> ColumnForm {
        match spec {
            FeatureSpec::FixedLen { shape, .. } => {
                ColumnForm::Dense { slot: slot(name), shape: shape.clone() }
            }
            FeatureSpec::Optional { default: None, .. } => ColumnForm::Optional { slot: slot(name) },
            FeatureSpec::Optional { .. } => ColumnForm::Dense { slot: slot(name), shape: Vec::new() },
            FeatureSpec::FixedLenSequence { shape, dtype, default, .. } => ColumnForm::Padded {
                slot: slot(name),
                shape: shape.clone(),
                block_len: shape.iter().product(),
                fill: default.as_ref().map_or_else(|| DefaultValues::zero(*dtype), DefaultValues::new),
            },
            FeatureSpec::Image(_) => ColumnForm::Dense { slot: slot(name), shape: Vec::new() },
            FeatureSpec::VarLen { .. } => ColumnForm::VarLen { slot: slot(name) },
            FeatureSpec::Ragged { value_key, partitions, row_splits_dtype, .. } => ColumnForm::Ragged {
                slot: slot(value_key.as_deref().unwrap_or(name)),
                partitions: partitions.iter().map(|partition| PartitionPlan::new(partition, &slot)).collect(),
                splits: *row_splits_dtype,
            },
            FeatureSpec::Raw { shape, .. } | FeatureSpec::Tensor { shape, .. } => {
                let (open, sizes) = array_sizes(shape);
                let sizes = sizes.iter().copied().flatten();
                if open {
                    // The items of a row are its values, in rows of the other dimensions.
                    let partitions = sizes.map(PartitionPlan::Uniform).collect();
                    ColumnForm::Ragged { slot: slot(name), partitions, splits: SplitsDType::Int64 }
                } else {
                    ColumnForm::Dense { slot: slot(name), shape: sizes.collect() }
                }
            }
            FeatureSpec::Sparse { index_keys, value_key, size, already_sorted, .. } => ColumnForm::Sparse {
                values: slot(value_key),
                indices: index_keys.iter().map(|key| slot(key)).collect(),
                size: size.clone(),
                already_sorted: *already_sorted,
            },
        }
    }
}

impl PartitionPlan {
    /// Returns the slot of the feature that describes the partition.
    pub(super) fn key(self) -> Option<usize> {
        match self {
            PartitionPlan::RowSplits(key)
            | PartitionPlan::RowLengths(key)
            | PartitionPlan::RowStarts(key)
            | PartitionPlan::RowLimits(key)
            | PartitionPlan::ValueRowIds(key) => Some(key),
            PartitionPlan::Uniform(_) => None,
        }
    }

    fn new(partition: &Partition, slot: impl Fn(&str) -> usize) -> PartitionPlan {
        match partition {
            Partition::RowSplits(key) => PartitionPlan::RowSplits(slot(key)),
            Partition::RowLengths(key) => PartitionPlan::RowLengths(slot(key)),
            Partition::RowStarts(key) => PartitionPlan::RowStarts(slot(key)),
            Partition::RowLimits(key) => PartitionPlan::RowLimits(slot(key)),
            Partition::ValueRowIds(key) => PartitionPlan::ValueRowIds(slot(key)),
            Partition::UniformRowLength(len) => PartitionPlan::Uniform(*len),
        }
    }
}
