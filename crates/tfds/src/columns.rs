//! The columns of a batch: stored values become the features' values, for all rows of a column at once.

use crate::array::{NumberPools, splits_of};
use crate::compile::{DecodePlan, Item, Leaf, Node};
use crate::error::wrong;
use crate::item;
use crate::parts::DecoderParts;
use crate::pixels::PictureWork;
use crate::record::uneven;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use tfseek::batch::{
    Batch, BytesColumn, Column, ColumnDecoder, DecodeContext, Dense, Optional, Ragged, RowSplits, Values,
};
use tfseek::{Error, ErrorKind};

/// The decoder of the columns of a plan.
pub(crate) struct Columns {
    parts: Arc<DecoderParts>,
    signature: String,
}

impl Columns {
    pub(crate) fn new(parts: &Arc<DecoderParts>) -> Columns {
        Columns { parts: Arc::clone(parts), signature: signature(&parts.plan) }
    }
}

impl fmt::Debug for Columns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Columns").field(&self.signature).finish()
    }
}

/// Returns what decides about the columns of a plan.
fn signature(plan: &DecodePlan) -> String {
    let leaf = |leaf: &Leaf| {
        let Leaf { path, feature, levels, item, image, .. } = leaf;
        let lengths: Vec<Option<u64>> = levels.iter().map(|level| level.length).collect();
        format!(
            "{path:?} {:?} {:?} {lengths:?} {item:?} {} {image:?}\n",
            feature.dtype, feature.shape, feature.optional
        )
    };
    let leaves: String = plan.leaves.iter().map(leaf).collect();
    format!("{} {leaves}", plan.missing_none)
}

/// The lowest refused row. `None` if no single row causes the error.
type Refused = (Option<usize>, Error);

/// Adds no row to an error.
fn of_all(e: Error) -> Refused {
    (None, e)
}

/// The rows of a column as splits: each partitions the elements of the next, the last the items' elements.
struct Arrangement {
    rows: usize,
    /// Lengths of the sequences of a dense column: none, or one.
    dense: Vec<usize>,
    splits: Vec<RowSplits>,
}

impl ColumnDecoder for Columns {
    fn decode(&self, batch: &mut Batch, context: &DecodeContext<'_>) -> tfseek::Result<Vec<(usize, Error)>> {
        if context.single {
            let reason = "expected a batch: single records of a data set are read by Decoder::record";
            return Err(Error::from(ErrorKind::Spec(reason.into())));
        }
        let DecoderParts { plan, pools, pictures, .. } = &*self.parts;
        let pictures = PictureWork {
            decoders: pictures,
            cancelled: Some(context.cancelled),
            row: 0,
            draw: context.draw,
        };
        let mut refused = Vec::new();
        let mut of_batch: Option<Error> = None;
        let mut refuse = |(row, e): Refused| match row {
            Some(row) => refused.push((row, e)),
            None => {
                of_batch.get_or_insert(e);
            }
        };
        // The geometries first, as long as the columns of pictures have their files.
        let is_geometry = |leaf: &&Leaf| matches!(leaf.item, Item::Geometry { .. });
        let geometries = plan.leaves.iter().filter(is_geometry);
        for leaf in geometries.chain(plan.leaves.iter().filter(|leaf| !is_geometry(leaf))) {
            let Some(column) = batch.get(leaf.source()).cloned() else { continue };
            let mut items = Vec::new();
            match decoded(leaf, column, batch, pools, pictures, &mut items) {
                Ok(column) => {
                    let column = with_presence(leaf, column, batch, plan);
                    batch.set(&leaf.path, column);
                }
                Err((row, e)) => refuse((row, e.feature(leaf.source().as_bytes()))),
            }
            items.into_iter().for_each(|(row, e)| refuse((Some(row), e.feature(leaf.source().as_bytes()))));
        }
        check_steps(plan, &plan.root, 0, batch, &mut refuse);
        match of_batch {
            // A column that is too large has no row, which is told if no row is refused.
            Some(e) if refused.is_empty() => Err(e),
            _ => Ok(refused),
        }
    }

    fn signature(&self) -> &str {
        &self.signature
    }
}

/// Refuses rows whose features of steps have other numbers of steps.
fn check_steps(
    plan: &DecodePlan,
    node: &Node,
    depth: usize,
    batch: &Batch,
    refuse: &mut impl FnMut(Refused),
) {
    let (path, steps) = match node {
        Node::Leaf(_) => return,
        Node::Dict(nodes) => {
            return nodes.iter().for_each(|(_, node)| check_steps(plan, node, depth, batch, refuse));
        }
        Node::Steps(path, steps) => (path, steps),
    };
    let leaves = steps.leaves().into_iter().filter_map(|number| plan.leaves.get(number));
    let mut counted =
        leaves.filter(|leaf| leaf.counts_items()).filter_map(|leaf| match batch.get(&leaf.path) {
            // Steps of a stated number were checked.
            Some(Column::Ragged(ragged)) => Some((leaf, ragged.row_splits.get(..=depth)?)),
            _ => None,
        });
    if let Some((one, known)) = counted.next() {
        for (other, splits) in counted {
            let (Some(known_ends), Some(ends)) = (known.last().map(splits_of), splits.last().map(splits_of))
            else {
                continue;
            };
            let other_end = known_ends.iter().zip(ends).position(|(a, b)| a != b);
            if let Some(element) = other_end.and_then(|end| end.checked_sub(1)) {
                let count = |ends: &[i64]| match ends.get(element..) {
                    Some([from, to, ..]) => (to - from) as usize,
                    _ => 0,
                };
                let e = uneven((&one.path, count(known_ends)), (&other.path, count(ends)));
                refuse((Some(row_of(known, depth, element)), e.feature(path.as_bytes())));
            }
        }
    }
    check_steps(plan, steps, depth + 1, batch, refuse);
}

/// Returns the column with the presence of an optional feature, if missing values are none.
fn with_presence(leaf: &Leaf, column: Column, batch: &Batch, plan: &DecodePlan) -> Column {
    if !(plan.missing_none && leaf.may_be_none()) {
        return column;
    }
    match (column, batch.presence(leaf.source())) {
        (Column::Dense(Dense { values, shape, .. }), Some(present)) => {
            let per_row: usize = shape.iter().skip(1).product();
            let present = match per_row {
                1 => present.clone(),
                per_row => {
                    let each = present.iter().flat_map(|one| std::iter::repeat_n(*one, per_row));
                    each.collect::<Vec<u8>>().into()
                }
            };
            Optional { values, present, shape }.into()
        }
        (column, _) => column,
    }
}

/// Returns the decoded column of a leaf, unless items are refused, whose rows are added to `refused`.
fn decoded(
    leaf: &Leaf,
    column: Column,
    batch: &Batch,
    pools: &NumberPools,
    pictures: PictureWork<'_>,
    refused: &mut Vec<(usize, Error)>,
) -> Result<Column, Refused> {
    if leaf.is_decoded() {
        return items(leaf, &column, batch, pools, pictures, refused);
    }
    let stored = column.values();
    let cast = pools.cast(leaf.feature.dtype, stored, 0..stored.len()).map_err(of_all)?;
    let values = cast.unwrap_or_else(|| stored.clone());
    let ragged = match column {
        Column::Dense(dense) => return Ok(Dense::new(values, dense.shape).into()),
        Column::Ragged(ragged) => ragged,
        column => return Ok(column),
    };
    let mut splits = ragged.row_splits;
    if leaf.values_of_item() == 0 && !values.is_empty() {
        let first = splits.first().map(splits_of);
        let row = first.and_then(|first| first.windows(2).position(|ends| ends.first() != ends.last()));
        return Err((row, wrong(format!("expected no values of {}, found some", leaf.feature))));
    }
    let mut shape = Vec::new();
    if leaf.levels.is_empty() {
        let mut sizes = leaf.shape().iter();
        // The open dimension ends the sizes before it.
        let before: Vec<usize> = sizes.by_ref().map_while(|size| *size).collect();
        splits = with_outer(&before, splits).map_err(of_all)?;
        shape.extend(sizes.copied().flatten());
    } else {
        shape.extend(leaf.shape().iter().copied().flatten());
        check_lengths(leaf, &splits)?;
    }
    let count = splits.last().and_then(|splits| splits_of(splits).last()).map_or(0, |end| *end as usize);
    let count = if leaf.values_of_item() == 0 { 0 } else { count };
    Ok(arranged(leaf, values, splits, &shape, count))
}

/// Returns the row splits of arrays with `before` in front of their open dimension. `splits` has the sizes of
/// that dimension, one for each row.
fn with_outer(before: &[usize], splits: Vec<RowSplits>) -> tfseek::Result<Vec<RowSplits>> {
    let Some(open) = splits.first().filter(|_| !before.is_empty()).map(splits_of) else { return Ok(splits) };
    let mut found = Vec::new();
    let mut rows = open.len() - 1;
    for &size in before {
        let inner = check_splits(rows as u128 * size as u128)?;
        found.push(uniform(rows, size)?);
        rows = inner;
    }
    let per_row: usize = before.iter().product();
    let mut all = Vec::new();
    all.try_reserve(rows + 1)?;
    all.push(0i64);
    let mut end = 0i64;
    for ends in open.windows(2) {
        let [from, to] = ends else { continue };
        for _ in 0..per_row {
            end += to - from;
            all.push(end);
        }
    }
    found.push(RowSplits::Int64(all.into()));
    Ok(found)
}

/// Maximum number of row splits of a column. Empty arrays may have any number of rows.
const MAX_SPLITS: usize = 1 << 29;

/// Returns the number of rows of a column, unless they have too many row splits.
fn check_splits(rows: u128) -> tfseek::Result<usize> {
    if rows > MAX_SPLITS as u128 {
        let limit = MAX_SPLITS as u64 * 8;
        return Err(ErrorKind::TooLarge { len: rows * 8, limit }.into());
    }
    Ok(rows as usize)
}

/// Returns the row splits of rows of one length.
fn uniform(rows: usize, len: usize) -> tfseek::Result<RowSplits> {
    check_splits(rows as u128)?;
    let mut splits = Vec::new();
    splits.try_reserve(rows + 1)?;
    // The column has these elements, or their number was checked.
    splits.extend((0..=rows).map(|row| (row * len) as i64));
    Ok(RowSplits::Int64(splits.into()))
}

/// Checks the sequences that have a stated number of items.
fn check_lengths(leaf: &Leaf, splits: &[RowSplits]) -> Result<(), Refused> {
    let mut lowest: Option<(usize, Error)> = None;
    for (k, (level, ends)) in leaf.levels.iter().zip(splits).enumerate() {
        let check = |pair: &[i64]| match pair {
            [from, to] => level.check((to - from) as usize),
            _ => Ok(()),
        };
        let mut pairs = splits_of(ends).windows(2).enumerate();
        if let Some((element, e)) = pairs.find_map(|(element, pair)| Some((element, check(pair).err()?))) {
            let row = row_of(splits, k, element);
            if lowest.as_ref().is_none_or(|(known, _)| row < *known) {
                lowest = Some((row, e));
            }
        }
    }
    lowest.map_or(Ok(()), |(row, e)| Err((Some(row), e)))
}

/// Returns the row of an element that `splits[level]` partitions.
fn row_of(splits: &[RowSplits], level: usize, element: usize) -> usize {
    splits.iter().take(level).rev().fold(element, |element, splits| {
        // The row is the last one that starts at or before the element.
        splits_of(splits).partition_point(|start| *start <= element as i64) - 1
    })
}

/// Returns a column of `count` items. Sequences with a stated number of items are dimensions, if all
/// sequences in them are.
fn arranged(
    leaf: &Leaf,
    values: Values,
    mut splits: Vec<RowSplits>,
    shape: &[usize],
    count: usize,
) -> Column {
    let lengths: Vec<usize> = leaf
        .levels
        .iter()
        .rev()
        .map_while(|level| level.length.and_then(|n| usize::try_from(n).ok()))
        .collect();
    let of_levels = lengths.len().min(splits.len());
    if !leaf.levels.is_empty() && leaf.shape().iter().all(Option::is_some) && of_levels > 0 {
        let kept = splits.len() - of_levels;
        let outer = splits.get(kept).map_or(0, |splits| splits_of(splits).len() - 1);
        splits.truncate(kept);
        let dims: Vec<usize> = lengths.into_iter().take(of_levels).rev().collect();
        return column(values, splits, [&[outer], &*dims, shape].concat());
    }
    column(values, splits, [&[count], shape].concat())
}

fn column(values: Values, splits: Vec<RowSplits>, shape: Vec<usize>) -> Column {
    if splits.is_empty() {
        return Dense::new(values, shape).into();
    }
    Ragged::new(values, shape, splits).into()
}

/// Returns a column of items that are made of one byte string each. If some are refused, it is the stored one.
fn items(
    leaf: &Leaf,
    stored: &Column,
    batch: &Batch,
    pools: &NumberPools,
    pictures: PictureWork<'_>,
    refused: &mut Vec<(usize, Error)>,
) -> Result<Column, Refused> {
    let Values::Bytes(strings) = stored.values() else { return Ok(stored.clone()) };
    let arrangement = Arrangement::new(stored, batch.rows());
    check_lengths(leaf, &arrangement.splits)?;
    let shapes = stored_shapes(leaf, batch, &arrangement, strings)?;
    let rank = leaf.shape().len();
    let mut numbers = pools.take(leaf.feature.dtype);
    let last_open = leaf.shape().iter().rposition(Option::is_none);
    let mut found: Vec<Vec<usize>> = Vec::new();
    let has_frames = matches!(leaf.item, Item::Picture) && !leaf.levels.is_empty();
    let firsts =
        if has_frames { pictures.first_alike(leaf, strings, |k| arrangement.row(k)) } else { Vec::new() };
    // The values and the shapes of the frames.
    let mut frames: Vec<Option<(Range<usize>, Vec<usize>)>> = Vec::new();
    for (k, string) in strings.iter().enumerate() {
        if pictures.is_cancelled() {
            return Err(of_all(ErrorKind::Cancelled.into()));
        }
        let shape = shapes.map(|all| {
            let start = k * rank;
            all.get(start..start + rank).unwrap_or_default()
        });
        let pictures =
            if leaf.draws() { PictureWork { row: arrangement.row(k), ..pictures } } else { pictures };
        let start = numbers.len();
        let decoded = match firsts.get(k).and_then(|first| frames.get(*first)?.clone()) {
            Some((range, shape)) => numbers.repeat(range).map(|()| shape),
            None => item::decode(leaf, string, shape, pictures, &mut numbers),
        };
        if has_frames {
            let shape = decoded.as_ref().ok();
            frames.push(shape.map(|shape| (start..numbers.len(), shape.clone())));
        }
        let shape = match decoded {
            Ok(shape) => shape,
            Err(e) => {
                refused.push((arrangement.row(k), e));
                continue;
            }
        };
        if last_open.is_some() {
            found.try_reserve(1).map_err(|e| of_all(e.into()))?;
            found.push(shape);
        }
    }
    if !refused.is_empty() {
        return Ok(stored.clone());
    }
    let values = pools.freeze(numbers);
    let Arrangement { rows, dense, mut splits } = arrangement;
    let Some(last_open) = last_open else {
        let shape: Vec<usize> = leaf.shape().iter().copied().flatten().collect();
        if splits.is_empty() {
            return Ok(Dense::new(values, [&[rows], &*dense, &*shape].concat()).into());
        }
        return Ok(arranged(leaf, values, splits, &shape, strings.len()));
    };
    for size in dense {
        splits.push(uniform(rows, size).map_err(of_all)?);
    }
    // The rows of each dimension up to the last open one.
    for k in 0..=last_open {
        let rows_of = |shape: &Vec<usize>| shape.iter().take(k).fold(1usize, |all, n| all.saturating_mul(*n));
        let rows = found.iter().map(rows_of).fold(0usize, usize::saturating_add);
        check_splits(rows as u128).map_err(of_all)?;
        let mut ends = vec![0i64];
        let mut end = 0i64;
        for shape in &found {
            let size = shape.get(k).copied().unwrap_or(0);
            for _ in 0..shape.iter().take(k).product::<usize>() {
                end = end.saturating_add(size as i64);
                ends.try_reserve(1).map_err(|e| of_all(e.into()))?;
                ends.push(end);
            }
        }
        splits.push(RowSplits::Int64(ends.into()));
    }
    let count = splits.last().and_then(|splits| splits_of(splits).last()).map_or(0, |end| *end as usize);
    let after = leaf.shape().iter().skip(last_open + 1).copied().flatten();
    let shape: Vec<usize> = std::iter::once(count).chain(after).collect();
    Ok(column(values, splits, shape))
}

/// Returns the shapes that are stored beside the items, one after the other.
fn stored_shapes<'a>(
    leaf: &Leaf,
    batch: &'a Batch,
    arrangement: &Arrangement,
    strings: &BytesColumn,
) -> Result<Option<&'a [i64]>, Refused> {
    let Item::Shaped { shape, .. } = &leaf.item else { return Ok(None) };
    let all = batch.int64(shape).map_err(of_all)?;
    let rank = leaf.shape().len();
    let Some(Column::Ragged(ragged)) = batch.get(shape) else { return Ok(Some(all)) };
    // Both columns have as many items in each sequence.
    let other: Vec<&[i64]> = ragged.row_splits.iter().map(splits_of).collect();
    for (k, (splits, other)) in arrangement.splits.iter().zip(other).enumerate() {
        if let Some(element) = splits_of(splits).iter().zip(other).position(|(a, b)| a != b) {
            // All row splits begin with 0, so the first that differ end an element.
            let row = row_of(&arrangement.splits, k, element - 1);
            return Err((Some(row), wrong("expected a shape for each array, found another number")));
        }
    }
    if all.len() != strings.len() * rank {
        return Err(of_all(wrong("expected a shape for each array, found another number")));
    }
    Ok(Some(all))
}

impl Arrangement {
    fn new(column: &Column, rows: usize) -> Arrangement {
        let (dense, splits) = match column {
            Column::Ragged(ragged) => (Vec::new(), ragged.row_splits.clone()),
            Column::Dense(dense) => (dense.shape.iter().skip(1).copied().collect(), Vec::new()),
            _ => (Vec::new(), Vec::new()),
        };
        Arrangement { rows, dense, splits }
    }

    /// Returns the row of an item.
    fn row(&self, item: usize) -> usize {
        if self.splits.is_empty() {
            item / self.dense.iter().product::<usize>().max(1)
        } else {
            row_of(&self.splits, self.splits.len(), item)
        }
    }
}
