//! A schema, compiled: the features to look for in a record, and the columns to make of them.

use crate::example::FeatureBuf;
use crate::io::Region;
use crate::schema::{DType, FeatureSpec, Partition, Schema, SplitsDType, elements};
use std::collections::BTreeMap;

/// What a parser does.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) sequence: bool,
    pub(super) features: Part,
    pub(super) lists: Part,
}

/// The features of an Example or a context, or the feature lists.
#[derive(Debug)]
pub(super) struct Part {
    /// Sorted by key.
    pub(super) slots: Vec<Slot>,
    /// Sorted by name.
    pub(super) columns: Vec<Planned>,
}

/// A feature to look for. Columns that want the same share it.
#[derive(Debug)]
pub(super) struct Slot {
    pub(super) key: Box<str>,
    pub(super) dtype: DType,
    pub(super) need: Need,
    /// The byte strings of its default or its padding.
    pub(super) fallback: Option<Region>,
}

/// How many values a feature may have, and what it is when it is absent.
#[derive(Debug)]
pub(super) enum Need {
    /// So many, or the default.
    Fixed { count: usize, default: Option<Default> },
    /// Any number of blocks of so many. A step of a feature list is one block.
    Blocks { of: usize, required: bool },
    /// Any number.
    Any,
}

/// Values for where a record has none.
#[derive(Debug)]
pub(super) enum Default {
    Int64(Vec<i64>),
    Float32(Vec<f32>),
    /// Where each of the strings of the slot's fallback ends.
    Bytes(Vec<usize>),
}

/// A column and the slots it is made of.
#[derive(Debug)]
pub(super) struct Planned {
    pub(super) name: Box<str>,
    pub(super) make: Make,
}

#[derive(Debug)]
pub(super) enum Make {
    Dense {
        slot: usize,
        shape: Vec<usize>,
    },
    /// `fill` is one value.
    Padded {
        slot: usize,
        shape: Vec<usize>,
        of: usize,
        fill: Default,
    },
    VarLen {
        slot: usize,
    },
    Ragged {
        slot: usize,
        partitions: Vec<Division>,
        splits: SplitsDType,
    },
    Sparse {
        values: usize,
        indices: Vec<usize>,
        size: Vec<u64>,
        already_sorted: bool,
    },
}

/// A partition, its key found.
#[derive(Clone, Copy, Debug)]
pub(super) enum Division {
    RowSplits(usize),
    RowLengths(usize),
    RowStarts(usize),
    RowLimits(usize),
    ValueRowIds(usize),
    Uniform(usize),
}

impl Default {
    fn new(values: &FeatureBuf) -> Default {
        match values {
            FeatureBuf::Int64(values) => Default::Int64(values.clone()),
            FeatureBuf::Float(values) => Default::Float32(values.clone()),
            FeatureBuf::Bytes(values) => {
                let ends = values.iter().scan(0, |end, value| {
                    *end += value.len();
                    Some(*end)
                });
                Default::Bytes(ends.collect())
            }
            FeatureBuf::None => Default::Int64(Vec::new()),
        }
    }

    /// TensorFlow's padding: 0, 0.0 or `""`.
    fn zero(dtype: DType) -> Default {
        Default::new(&match dtype {
            DType::Int64 => FeatureBuf::Int64(vec![0]),
            DType::Float32 => FeatureBuf::Float(vec![0.0]),
            DType::Bytes => FeatureBuf::Bytes(vec![Vec::new()]),
        })
    }
}

impl Plan {
    pub(super) fn new(schema: &Schema) -> Plan {
        Plan {
            sequence: schema.is_sequence(),
            features: Part::new(schema.features()),
            lists: Part::new(schema.feature_lists()),
        }
    }
}

impl Part {
    /// The schema was checked when it was built: keys have one role each, shapes have a size.
    fn new(specs: &BTreeMap<String, FeatureSpec>) -> Part {
        let mut wanted: BTreeMap<&str, (DType, Need)> = BTreeMap::new();
        let mut fallbacks: BTreeMap<&str, Region> = BTreeMap::new();
        for (name, spec) in specs {
            if let FeatureSpec::FixedLen { default: Some(FeatureBuf::Bytes(values)), .. }
            | FeatureSpec::FixedLenSequence { default: Some(FeatureBuf::Bytes(values)), .. } = spec
            {
                fallbacks.insert(name, values.concat().into());
            }
            match spec {
                FeatureSpec::FixedLen { shape, dtype, default } => {
                    let default = default.as_ref().map(Default::new);
                    let count = elements(shape).unwrap_or(usize::MAX);
                    wanted.insert(name, (*dtype, Need::Fixed { count, default }));
                }
                FeatureSpec::FixedLenSequence { shape, dtype, allow_missing, .. } => {
                    let of = elements(shape).unwrap_or(usize::MAX);
                    wanted.insert(name, (*dtype, Need::Blocks { of, required: !allow_missing }));
                }
                FeatureSpec::VarLen { dtype } => {
                    wanted.insert(name, (*dtype, Need::Any));
                }
                FeatureSpec::Ragged { dtype, value_key, partitions, .. } => {
                    wanted.insert(value_key.as_deref().unwrap_or(name), (*dtype, Need::Any));
                    let keys = partitions.iter().filter_map(Partition::key);
                    wanted.extend(keys.map(|key| (key, (DType::Int64, Need::Any))));
                }
                FeatureSpec::Sparse { index_keys, value_key, dtype, .. } => {
                    wanted.insert(value_key, (*dtype, Need::Any));
                    wanted.extend(index_keys.iter().map(|key| (&**key, (DType::Int64, Need::Any))));
                }
            }
        }
        let slots = wanted.into_iter().map(|(key, (dtype, need))| Slot {
            key: key.into(),
            dtype,
            need,
            fallback: fallbacks.remove(key),
        });
        let slots: Vec<Slot> = slots.collect();
        let columns = specs.iter().map(|(name, spec)| Planned {
            name: name.as_str().into(),
            make: Make::new(name, spec, |key| slots.partition_point(|slot| &*slot.key < key)),
        });
        Part { columns: columns.collect(), slots }
    }

    /// The column of this name.
    pub(super) fn column(&self, name: &str) -> Option<usize> {
        self.columns.binary_search_by(|column| (*column.name).cmp(name)).ok()
    }
}

impl Make {
    fn new(name: &str, spec: &FeatureSpec, slot: impl Fn(&str) -> usize) -> Make {
        match spec {
            FeatureSpec::FixedLen { shape, .. } => Make::Dense { slot: slot(name), shape: shape.clone() },
            FeatureSpec::FixedLenSequence { shape, dtype, default, .. } => Make::Padded {
                slot: slot(name),
                shape: shape.clone(),
                of: elements(shape).unwrap_or(usize::MAX),
                fill: default.as_ref().map_or_else(|| Default::zero(*dtype), Default::new),
            },
            FeatureSpec::VarLen { .. } => Make::VarLen { slot: slot(name) },
            FeatureSpec::Ragged { value_key, partitions, row_splits_dtype, .. } => Make::Ragged {
                slot: slot(value_key.as_deref().unwrap_or(name)),
                partitions: partitions.iter().map(|partition| Division::new(partition, &slot)).collect(),
                splits: *row_splits_dtype,
            },
            FeatureSpec::Sparse { index_keys, value_key, size, already_sorted, .. } => Make::Sparse {
                values: slot(value_key),
                indices: index_keys.iter().map(|key| slot(key)).collect(),
                size: size.clone(),
                already_sorted: *already_sorted,
            },
        }
    }
}

impl Division {
    /// The slot of the feature that describes it.
    pub(super) fn key(self) -> Option<usize> {
        match self {
            Division::RowSplits(key)
            | Division::RowLengths(key)
            | Division::RowStarts(key)
            | Division::RowLimits(key)
            | Division::ValueRowIds(key) => Some(key),
            Division::Uniform(_) => None,
        }
    }

    fn new(partition: &Partition, slot: impl Fn(&str) -> usize) -> Division {
        match partition {
            Partition::RowSplits(key) => Division::RowSplits(slot(key)),
            Partition::RowLengths(key) => Division::RowLengths(slot(key)),
            Partition::RowStarts(key) => Division::RowStarts(slot(key)),
            Partition::RowLimits(key) => Division::RowLimits(slot(key)),
            Partition::ValueRowIds(key) => Division::ValueRowIds(slot(key)),
            Partition::UniformRowLength(len) => Division::Uniform(*len),
        }
    }
}
