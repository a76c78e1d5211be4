//! The place of each row's values in the leaves of a column.

use crate::error::{Error, ErrorKind, Result};
use crate::memory::collected;
use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, OffsetSizeTrait};
use arrow_buffer::NullBuffer;
use arrow_schema::DataType;
use std::ops::Range;

/// A column of a record batch without its lists.
pub(super) struct Located {
    /// The steps of each row, for a feature list.
    steps: Option<Level>,
    /// The values of each row, or of each step.
    features: Level,
    /// The values of all rows.
    pub(super) leaves: ArrayRef,
}

/// The items of each list of an array. A single value is a list of one item.
struct Level {
    /// The absent lists.
    nulls: Option<NullBuffer>,
    items: Items,
    len: usize,
}

enum Items {
    /// This number in each list, one list after the other.
    Fixed(usize),
    Ranges(Vec<Range<usize>>),
}

impl Located {
    /// Locates the values of a column.
    ///
    /// # Errors
    /// [`ErrorKind::Value`] for a null inside a list.
    pub(super) fn new(column: &ArrayRef, is_list: bool) -> Result<Located> {
        let steps = if is_list { Level::of_lists(column)? } else { None };
        let (steps, items) = steps.unzip();
        let column = items.unwrap_or_else(|| ArrayRef::clone(column));
        let Some((features, leaves)) = Level::of_lists(&column)? else {
            let features = Level { nulls: column.logical_nulls(), items: Items::Fixed(1), len: column.len() };
            return Ok(Located { steps, features, leaves: column });
        };
        let mut located = Located { steps, features, leaves };
        located.check_nulls()?;
        while let DataType::FixedSizeList(_, size) = *located.leaves.data_type() {
            let size = usize::try_from(size).unwrap_or_default();
            located.leaves = ArrayRef::clone(located.leaves.as_fixed_size_list().values());
            located.features.scale(size)?;
            located.check_nulls()?;
        }
        Ok(located)
    }

    /// Returns the leaves of a feature. `None` if it is absent.
    pub(super) fn feature(&self, row: usize) -> Option<Range<usize>> {
        self.features.get(row)
    }

    /// Returns the number of features of all rows, which are steps in a feature list.
    pub(super) fn features(&self) -> usize {
        self.features.len
    }

    /// Returns the steps of a row. `None` if the feature list is absent.
    pub(super) fn steps(&self, row: usize) -> Option<Range<usize>> {
        self.steps.as_ref().and_then(|steps| steps.get(row))
    }

    /// Calls `f` with each row and the leaves of each of its features.
    pub(super) fn each(&self, f: &mut dyn FnMut(usize, Range<usize>) -> Result<()>) -> Result<()> {
        let rows = self.steps.as_ref().map_or(self.features.len, |steps| steps.len);
        for row in 0..rows {
            let features = match &self.steps {
                None => Some(row..row + 1),
                Some(steps) => steps.get(row),
            };
            let mut leaves = features.into_iter().flatten().filter_map(|feature| self.feature(feature));
            leaves.try_for_each(|leaves| f(row, leaves))?;
        }
        Ok(())
    }

    /// Checks that no list of a row has a null.
    fn check_nulls(&self) -> Result<()> {
        let Some(nulls) = self.leaves.logical_nulls().filter(|nulls| nulls.null_count() > 0) else {
            return Ok(());
        };
        self.each(&mut |row, mut leaves| {
            if leaves.any(|leaf| nulls.is_null(leaf)) {
                Err(Error::value(row, "expected values in the list, found null"))
            } else {
                Ok(())
            }
        })
    }
}

impl Level {
    /// Returns the lists of an array and their items. `None` if the array is not of lists.
    fn of_lists(array: &ArrayRef) -> Result<Option<(Level, ArrayRef)>> {
        let (ranges, items) = match array.data_type() {
            DataType::List(_) => offsets::<i32>(array)?,
            DataType::LargeList(_) => offsets::<i64>(array)?,
            DataType::ListView(_) => views::<i32>(array)?,
            DataType::LargeListView(_) => views::<i64>(array)?,
            DataType::FixedSizeList(_, size) => {
                let items = Items::Fixed(usize::try_from(*size).unwrap_or_default());
                let level = Level { nulls: array.nulls().cloned(), items, len: array.len() };
                return Ok(Some((level, ArrayRef::clone(array.as_fixed_size_list().values()))));
            }
            _ => return Ok(None),
        };
        Ok(Some(Level::of_ranges(array.nulls().cloned(), ranges, items)?))
    }

    /// Returns the lists of these ranges, and only the items that belong to one of them: a slice of an array
    /// keeps all its items.
    fn of_ranges(
        nulls: Option<NullBuffer>,
        mut ranges: Vec<Range<usize>>,
        items: &ArrayRef,
    ) -> Result<(Level, ArrayRef)> {
        let mut start = usize::MAX;
        let mut end = 0;
        for (row, range) in ranges.iter_mut().enumerate() {
            if nulls.as_ref().is_some_and(|nulls| nulls.is_null(row)) || range.start >= range.end {
                *range = 0..0;
                continue;
            }
            if range.end > items.len() {
                return Err(Error::batch("expected lists of the array's items, found other offsets"));
            }
            (start, end) = (start.min(range.start), end.max(range.end));
        }
        let start = start.min(end);
        for range in ranges.iter_mut().filter(|range| range.start < range.end) {
            *range = range.start - start..range.end - start;
        }
        let items = items.slice(start, end - start);
        let len = ranges.len();
        Ok((Level { nulls, items: Items::Ranges(ranges), len }, items))
    }

    /// Replaces each item by this number of items.
    fn scale(&mut self, size: usize) -> Result<()> {
        let scaled = |count: usize| count.checked_mul(size).ok_or(ErrorKind::TooLarge { len: usize::MAX });
        match &mut self.items {
            Items::Fixed(count) => *count = scaled(*count)?,
            Items::Ranges(ranges) => {
                for range in ranges {
                    *range = scaled(range.start)?..scaled(range.end)?;
                }
            }
        }
        Ok(())
    }

    fn get(&self, k: usize) -> Option<Range<usize>> {
        if self.nulls.as_ref().is_some_and(|nulls| nulls.is_null(k)) {
            return None;
        }
        match &self.items {
            Items::Fixed(count) => {
                let start = k * *count;
                Some(start..start + *count)
            }
            Items::Ranges(ranges) => ranges.get(k).cloned(),
        }
    }
}

fn offsets<T: OffsetSizeTrait>(array: &ArrayRef) -> Result<(Vec<Range<usize>>, &ArrayRef)> {
    let lists = array.as_list::<T>();
    let starts = lists.value_offsets();
    let ranges = starts.iter().zip(starts.iter().skip(1));
    let ranges = ranges.map(|(start, end)| start.as_usize()..end.as_usize());
    Ok((collected(lists.len(), ranges)?, lists.values()))
}

fn views<T: OffsetSizeTrait>(array: &ArrayRef) -> Result<(Vec<Range<usize>>, &ArrayRef)> {
    let lists = array.as_list_view::<T>();
    let ranges = lists.value_offsets().iter().zip(lists.value_sizes()).map(|(start, len)| {
        let start = start.as_usize();
        start..start.saturating_add(len.as_usize())
    });
    Ok((collected(lists.len(), ranges)?, lists.values()))
}
