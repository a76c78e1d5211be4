//! A record: nested values, each decoded when it is asked for.

use crate::array::{Array, splits_of};
use crate::compile::{Item, Leaf, Node, SequenceLevel};
use crate::error::wrong;
use crate::item;
use crate::parts::DecoderParts;
use crate::pixels::PictureWork;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;
use tfseek::batch::{Batch, BytesColumn, Column, Row, Values};
use tfseek::error::At;
use tfseek::order::{augmentation_seed, named_draw};
use tfseek::{Error, Example, FeatureBuf, Result, TensorDType};

/// A record of a data set. A clone shares its memory.
///
/// Values are decoded when they are asked for, and others cost nothing.
#[derive(Clone)]
pub struct Record(Arc<RecordParts>);

struct RecordParts {
    parts: Arc<DecoderParts>,
    batch: Batch,
    /// Stored values of features of unknown classes, by the number of their leaf.
    unknown: Vec<(usize, FeatureBuf)>,
    at: (Option<PathBuf>, Option<u64>, Option<u64>),
    /// The seed of all that is random in the record.
    seed: u64,
}

/// A value of a record.
#[derive(Clone)]
#[non_exhaustive]
pub enum RecordValue {
    /// Values by name.
    Dict(Vec<(Box<str>, RecordValue)>),
    /// A scalar or an array. Strings are byte strings.
    Array(Array),
    /// Rows of different lengths.
    Ragged {
        /// The items of all rows. The first dimension is their number.
        values: Array,
        /// Row splits, outermost first.
        row_splits: Vec<Vec<i64>>,
    },
    /// Arrays of different shapes.
    List(Vec<RecordValue>),
    /// The steps of an episode.
    Steps(Steps),
    /// The missing value of an optional feature.
    None,
}

/// The steps of an episode. Each is decoded when it is asked for.
#[derive(Clone)]
pub struct Steps {
    record: Record,
    /// The names of the dicts, and the numbers of the steps, that lead to the steps.
    node: Arc<Node>,
    path: Box<str>,
    depth: usize,
    /// Number of the first step, in the columns of the record.
    first: usize,
    len: usize,
}

/// The place of a value in the columns: the element `index` of the sequences at `depth`. Depth 0 has one
/// element, the record.
#[derive(Clone, Copy)]
struct ElementAt {
    depth: usize,
    index: usize,
}

/// The parser's error about its only row, without the number of that row.
fn without_row(e: Error, at: At<'_>) -> Error {
    let feature = e.location().feature.clone();
    let e = Error::from(e.into_kind()).at(at);
    match feature {
        Some(feature) => e.feature(feature.as_bytes()),
        None => e,
    }
}

impl Record {
    /// Reads a record.
    pub(crate) fn read<R: Row>(parts: &Arc<DecoderParts>, row: &R) -> Result<Record> {
        let batch = parts.records.parse(std::slice::from_ref(&row)).map_err(|e| without_row(e, row.at()))?;
        let mut unknown = Vec::new();
        for (number, leaf) in parts.plan.leaves.iter().enumerate() {
            if matches!(leaf.item, Item::Unknown) {
                let found = Example::new(row.payload()).get(&leaf.path);
                let feature = found.map_err(|e| e.at(row.at()).feature(leaf.path.as_bytes()))?;
                unknown.push((number, feature.map_or(Ok(FeatureBuf::None), FeatureBuf::try_from)?));
            }
        }
        let at = row.at();
        let at = (at.path.map(PathBuf::from), at.record, at.offset);
        let seed = row.augmentation_seed().unwrap_or_else(|| augmentation_seed(0, 0, 0));
        Ok(Record(Arc::new(RecordParts { parts: Arc::clone(parts), batch, unknown, at, seed })))
    }

    /// Returns all values.
    ///
    /// # Errors
    /// The first value that cannot be decoded.
    pub fn value(&self) -> Result<RecordValue> {
        self.node(&self.0.parts.plan.root, ElementAt { depth: 0, index: 0 })
    }

    /// Returns the value of a feature, such as `objects/bbox`. `None` if no selected feature has this path.
    /// Features of steps are in the steps.
    ///
    /// # Errors
    /// The value cannot be decoded.
    pub fn get(&self, path: &str) -> Result<Option<RecordValue>> {
        let node = self.0.parts.plan.root.get(path);
        node.map(|node| self.node(node, ElementAt { depth: 0, index: 0 })).transpose()
    }

    fn node(&self, node: &Node, place: ElementAt) -> Result<RecordValue> {
        match node {
            Node::Dict(nodes) => {
                let value = |(name, node): &(Box<str>, Node)| Ok((name.clone(), self.node(node, place)?));
                nodes.iter().map(value).collect::<Result<_>>().map(RecordValue::Dict)
            }
            Node::Leaf(number) => {
                let Some(leaf) = self.0.parts.plan.leaves.get(*number) else { return Ok(RecordValue::None) };
                self.leaf(*number, leaf, place).map_err(|e| self.locate(e, leaf.source()))
            }
            Node::Steps(path, node) => self.steps(path, node, place).map_err(|e| self.locate(e, path)),
        }
    }

    fn locate(&self, e: Error, feature: &str) -> Error {
        let (path, record, offset) = &self.0.at;
        let mut at = At::NOWHERE;
        (at.path, at.record, at.offset) = (path.as_deref(), *record, *offset);
        e.feature(feature.as_bytes()).at(at)
    }

    /// Returns the steps of an episode, whose number all leaves agree about.
    fn steps(&self, path: &str, node: &Node, place: ElementAt) -> Result<RecordValue> {
        let mut found: Option<(Range<usize>, &Leaf)> = None;
        for leaf in node.leaves().into_iter().filter_map(|number| self.0.parts.plan.leaves.get(number)) {
            let Some(steps) = self.steps_of(leaf, place)? else { continue };
            match &found {
                Some((known, other)) if known.len() != steps.len() => {
                    return Err(uneven((&other.path, known.len()), (&leaf.path, steps.len())));
                }
                Some(_) => {}
                None => found = Some((steps, leaf)),
            }
            if let (Some(level), Some((steps, _))) = (leaf.levels.get(place.depth), &found) {
                level.check(steps.len())?;
            }
        }
        let steps = found.map_or(0..0, |(steps, _)| steps);
        Ok(RecordValue::Steps(Steps {
            record: self.clone(),
            node: Arc::new(node.clone()),
            path: path.into(),
            depth: place.depth + 1,
            first: steps.start,
            len: steps.len(),
        }))
    }

    /// Returns the steps that a leaf has at a place. `None` if it does not tell: its items have no values.
    fn steps_of(&self, leaf: &Leaf, place: ElementAt) -> Result<Option<Range<usize>>> {
        if !leaf.counts_items() {
            return Ok(None);
        }
        let Some(Column::Ragged(column)) = self.0.batch.get(leaf.source()) else { return Ok(None) };
        let splits = column.row_splits.get(place.depth).map(splits_of);
        let ends = splits.and_then(|splits| splits.get(place.index..)?.first_chunk());
        Ok(ends.map(|[from, to]| range(*from, *to)))
    }

    fn leaf(&self, number: usize, leaf: &Leaf, place: ElementAt) -> Result<RecordValue> {
        if matches!(leaf.item, Item::Unknown) {
            let stored = self.0.unknown.iter().find(|(known, _)| *known == number);
            return Ok(stored.map_or(RecordValue::None, |(_, values)| unknown(values)));
        }
        if self.0.parts.plan.missing_none && leaf.may_be_none() {
            let present = self.0.batch.presence(leaf.source()).and_then(|present| present.first().copied());
            if present == Some(0) {
                return Ok(RecordValue::None);
            }
        }
        let Some(column) = self.0.batch.get(leaf.source()) else { return Ok(RecordValue::None) };
        let (items, splits) = items_at(leaf, column, place)?;
        let (_, sequences) = leaf.levels.split_at(place.depth);
        if leaf.is_decoded() {
            return self.decoded(leaf, column, items, sequences, splits);
        }
        let (per_item, shape) = if leaf.levels.is_empty() && leaf.ragged {
            // The items are the open dimension's.
            let shape = leaf.shape().iter().map(|size| size.unwrap_or(items.len())).collect();
            let values = column.values().len();
            if leaf.values_of_item() == 0 && values > 0 {
                return Err(wrong(format!("expected no values of {}, found {values}", leaf.feature)));
            }
            (values, shape)
        } else {
            (leaf.values_of_item(), leaf.shape().iter().copied().flatten().collect::<Vec<_>>())
        };
        let items = if leaf.levels.is_empty() { 0..1 } else { items };
        let stored = column.values();
        let start = items.start * per_item;
        let range = start..start + items.len() * per_item;
        let (values, start) = match self.0.parts.pools.cast(leaf.feature.dtype, stored, range)? {
            Some(values) => (values, 0),
            None => (stored.clone(), start),
        };
        let array = |shape| Array { values, start, shape, dtype: leaf.feature.dtype };
        Ok(arranged(array, sequences, items.len(), shape, splits))
    }

    /// Returns items that are made of one byte string each.
    fn decoded(
        &self,
        leaf: &Leaf,
        column: &Column,
        items: Range<usize>,
        sequences: &[SequenceLevel],
        splits: Vec<Vec<i64>>,
    ) -> Result<RecordValue> {
        let Values::Bytes(strings) = column.values() else { return Ok(RecordValue::None) };
        let stored = match &leaf.item {
            Item::Shaped { shape, .. } => Some((self.0.batch.int64(shape)?, leaf.shape().len())),
            _ => None,
        };
        let pools = &self.0.parts.pools;
        let draw = |_, name: &str| named_draw(self.0.seed, name);
        let pictures = PictureWork { decoders: &self.0.parts.pictures, cancelled: None, row: 0, draw: &draw };
        let mut numbers = pools.take(leaf.feature.dtype);
        let mut shapes = Vec::new();
        shapes.try_reserve(items.len())?;
        for item in items.clone() {
            let string = strings.get(item).unwrap_or_default();
            let shape = match stored {
                Some((all, rank)) => {
                    let start = item * rank;
                    let shape = all.get(start..start + rank);
                    Some(shape.ok_or_else(|| wrong("expected a shape for each array, found fewer"))?)
                }
                None => None,
            };
            shapes.push(item::decode(leaf, string, shape, pictures, &mut numbers)?);
        }
        if let Some((all, rank)) = stored
            && column.values().len() * rank != all.len()
        {
            let found = all.len() / rank;
            return Err(wrong(format!("expected {} shapes, found {found}", column.values().len())));
        }
        let values = pools.freeze(numbers);
        let first = shapes.first();
        if shapes.iter().all(|shape| Some(shape) == first) {
            let empty = || leaf.shape().iter().map(|size| size.unwrap_or(0)).collect();
            let shape = first.cloned().unwrap_or_else(empty);
            let array = |shape| Array { values, start: 0, shape, dtype: leaf.feature.dtype };
            return Ok(arranged(array, sequences, items.len(), shape, splits));
        }
        let mut start = 0;
        let mut arrays = Vec::with_capacity(shapes.len());
        for shape in shapes {
            let array = Array { values: values.clone(), start, shape, dtype: leaf.feature.dtype };
            start += array.len();
            arrays.push(RecordValue::Array(array));
        }
        // Lists of lists, from the innermost.
        for splits in splits.iter().rev() {
            let mut all = arrays.into_iter();
            let rows = splits.windows(2).map(|ends| match ends {
                [from, to] => all.by_ref().take(range(*from, *to).len()).collect(),
                _ => Vec::new(),
            });
            arrays = rows.map(RecordValue::List).collect();
        }
        Ok(RecordValue::List(arrays))
    }
}

/// Returns the error about two features with other numbers of steps.
pub(crate) fn uneven(one: (&str, usize), other: (&str, usize)) -> Error {
    let ((one, steps), (other, found)) = (one, other);
    wrong(format!(
        "expected features of one number of steps, found {steps} of {one:?} and {found} of {other:?}"
    ))
}

/// Returns the items of a leaf at a place, and the row splits of the sequences in it, except the outermost
/// one.
fn items_at(leaf: &Leaf, column: &Column, place: ElementAt) -> Result<(Range<usize>, Vec<Vec<i64>>)> {
    let Column::Ragged(ragged) = column else {
        let items = leaf.levels.first().and_then(|level| level.length).unwrap_or(1);
        return Ok((0..items as usize, Vec::new()));
    };
    let mut items = place.index..place.index + 1;
    let mut inner = Vec::new();
    for (k, splits) in ragged.row_splits.iter().enumerate().skip(place.depth) {
        let splits = splits_of(splits);
        let Some(ends) = splits.get(items.start..=items.end) else { continue };
        let (Some(&from), Some(&to)) = (ends.first(), ends.last()) else { continue };
        if let Some(level) = leaf.levels.get(k) {
            for pair in ends.windows(2) {
                if let [from, to] = pair {
                    level.check(range(*from, *to).len())?;
                }
            }
        }
        if k > place.depth {
            inner.push(ends.iter().map(|end| end - from).collect());
        }
        items = range(from, to);
    }
    if leaf.values_of_item() == 0 && matches!(leaf.item, Item::List) && !leaf.levels.is_empty() {
        let values = column.values().len();
        if values > 0 {
            return Err(wrong(format!("expected no values of {}, found {values}", leaf.feature)));
        }
        items = 0..0;
    }
    Ok((items, inner))
}

/// Returns an array, or a ragged value if a sequence in another one has any number of items.
fn arranged(
    array: impl FnOnce(Vec<usize>) -> Array,
    sequences: &[SequenceLevel],
    items: usize,
    shape: Vec<usize>,
    splits: Vec<Vec<i64>>,
) -> RecordValue {
    let Some(inner) = sequences.get(1..) else { return RecordValue::Array(array(shape)) };
    let with = |lengths: &[usize]| [lengths, &*shape].concat();
    let lengths: Option<Vec<usize>> =
        inner.iter().map(|level| level.length.and_then(|n| usize::try_from(n).ok())).collect();
    match lengths {
        Some(lengths) => {
            let of_splits = || splits.first().map_or(0, |splits| splits.len() - 1);
            let outer = if inner.is_empty() { items } else { of_splits() };
            RecordValue::Array(array(with(&[&[outer], &*lengths].concat())))
        }
        None => RecordValue::Ragged { values: array(with(&[items])), row_splits: splits },
    }
}

fn range(from: i64, to: i64) -> Range<usize> {
    from as usize..to as usize
}

/// Returns stored values as an array of one dimension.
fn unknown(values: &FeatureBuf) -> RecordValue {
    let (values, dtype) = match values {
        FeatureBuf::None => return RecordValue::None,
        FeatureBuf::Int64(values) => (Values::Int64(values.clone().into()), TensorDType::Int64),
        FeatureBuf::Float(values) => (Values::Float32(values.clone().into()), TensorDType::Float32),
        FeatureBuf::Bytes(values) => {
            (Values::Bytes(values.iter().collect::<BytesColumn>()), TensorDType::String)
        }
    };
    let len = values.len();
    RecordValue::Array(Array::new(values, vec![len], dtype))
}

impl Node {
    /// Returns the node at a path of dicts.
    fn get(&self, path: &str) -> Option<&Node> {
        let Node::Dict(nodes) = self else { return None };
        nodes.iter().find_map(|(name, node)| {
            let rest = path.strip_prefix(&**name)?;
            if rest.is_empty() { Some(node) } else { node.get(rest.strip_prefix('/')?) }
        })
    }

    /// Returns the numbers of all leaves.
    pub(crate) fn leaves(&self) -> Vec<usize> {
        match self {
            Node::Dict(nodes) => nodes.iter().flat_map(|(_, node)| node.leaves()).collect(),
            Node::Steps(_, node) => node.leaves(),
            Node::Leaf(number) => vec![*number],
        }
    }
}

impl Steps {
    /// Returns the number of steps.
    #[allow(clippy::len_without_is_empty, reason = "no caller needs it")]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns the values of step `i`. `None` if there are fewer steps.
    ///
    /// # Errors
    /// The first value that cannot be decoded.
    pub fn get(&self, i: usize) -> Option<Result<RecordValue>> {
        (i < self.len)
            .then(|| self.record.node(&self.node, ElementAt { depth: self.depth, index: self.first + i }))
    }

    /// Returns the path of the feature.
    pub fn path(&self) -> &str {
        &self.path
    }
}

const _: () = {
    const fn send_sync_static<T: Send + Sync + 'static>() {}
    send_sync_static::<Record>();
};
