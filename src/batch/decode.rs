//! Values out of the places that were found: one slot after the other, each over the rows of a tile.

use super::bytes::Strings;
use super::column::Span;
use super::compile::{Default, Need, Slot};
use super::locate::{Found, Table};
use super::pool::Draft;
use super::row::Row;
use crate::error::{Error, FeatureError};
use crate::example::{
    Feature, FeatureKind, FeatureList, FloatList, Int64List, Source, VALUE_DEPTH, packed, string,
};
use crate::schema::DType;
use crate::wire::{Fault, Value, count_floats, count_varints, decode_varints, few_varints, one_varint};

/// The values of one slot, over all rows so far.
#[derive(Default)]
pub(super) struct Filled {
    pub(super) memory: Memory,
    /// Values in the memory.
    pub(super) used: usize,
    /// Strings among them that were copied already.
    pub(super) strings: Option<Strings>,
    /// Values of each row, or of each step of each row. Not kept where all have the same number.
    pub(super) counts: Vec<u32>,
    /// Steps of each row of a feature list.
    pub(super) steps: Vec<u32>,
}

pub(super) enum Memory {
    Int64(Draft<i64>),
    Float32(Draft<f32>),
    /// Spans into the payloads of the batch: `region` is the row, or the number of rows and behind it the number of a slot
    /// whose default it is.
    Bytes(Draft<Span>),
}

impl std::default::Default for Memory {
    fn default() -> Memory {
        Memory::Int64(Draft::default())
    }
}

/// Why a row cannot be taken.
#[derive(Clone, Copy, Debug)]
pub(super) enum Fail {
    Wire(Fault),
    Feature(FeatureError),
}

impl Fail {
    /// The error for those who know the row and the slot.
    #[cold]
    pub(super) fn error(self, payload: &[u8], key: &str) -> Error {
        match self {
            Fail::Wire(fault) => Error::from(fault.in_payload(payload)),
            Fail::Feature(e) => Error::from(e),
        }
        .feature(key.as_bytes())
    }
}

impl From<Fault> for Fail {
    #[cold]
    fn from(fault: Fault) -> Fail {
        Fail::Wire(fault)
    }
}

impl From<FeatureError> for Fail {
    #[cold]
    fn from(e: FeatureError) -> Fail {
        Fail::Feature(e)
    }
}

/// The first row of a tile that cannot be taken, counted from the tile's start, its step if it is one of a list, and why.
pub(super) struct Bad {
    pub(super) row: usize,
    pub(super) step: Option<usize>,
    pub(super) fail: Fail,
}

/// Rows of a batch that are filled together.
pub(super) struct Tile<'a, R> {
    /// The rows before the first bad one.
    pub(super) rows: &'a [R],
    /// The number of the first row, and of all rows of the batch.
    pub(super) first: usize,
    pub(super) total: usize,
    pub(super) table: &'a Table,
    /// In a context, a feature without a kind is there, with no values; elsewhere it is absent.
    pub(super) context: bool,
}

/// A type of values: how a list of it is found, counted and decoded.
trait Item: Copy {
    const KIND: FeatureKind;
    type List<'a>: Copy;

    fn list<'a>(feature: Feature<'a>) -> Result<Self::List<'a>, FeatureError>;
    fn len(list: Self::List<'_>) -> usize;
    /// Copies all values of a list of as many values as `to` has room for.
    fn take(list: Self::List<'_>, row: &RowOf<'_>, to: &mut [Self]);
    /// Something to fill memory with.
    const BLANK: Self;

    /// The value, if the message is a list of one in the shape that every encoder writes.
    fn one(message: &[u8], row: &RowOf<'_>) -> Option<Self>;

    /// If the message is a list in that shape: fills `to` with its values, if it has as many.
    /// `None` leaves it to the general way, which also finds out what is wrong.
    fn fixed(message: &[u8], row: &RowOf<'_>, to: &mut [Self]) -> Option<()>;

    /// If the message is a list in that shape: puts its values behind the first `used`, and says how many.
    fn append(message: &[u8], row: &RowOf<'_>, draft: &mut Draft<Self>, used: usize) -> Option<usize>;

    /// Whether so many values can be in so many bytes of a message: memory is made for no others.
    fn fits(count: usize, bytes: usize) -> bool;
}

/// A row and its number.
struct RowOf<'a> {
    number: usize,
    payload: &'a [u8],
}

/// Lists so short are decoded one value after the other.
const SHORT: usize = 16;

impl Item for i64 {
    const KIND: FeatureKind = FeatureKind::Int64;
    const BLANK: i64 = 0;
    type List<'a> = Int64List<'a>;

    fn list<'a>(feature: Feature<'a>) -> Result<Int64List<'a>, FeatureError> {
        feature.int64()
    }

    fn len(list: Int64List<'_>) -> usize {
        list.len()
    }

    fn take(list: Int64List<'_>, _: &RowOf<'_>, to: &mut [i64]) {
        // The lengths agree; values that have changed since they were counted end the list early.
        let _ = list.decode_into(to);
    }

    #[inline]
    fn one(message: &[u8], row: &RowOf<'_>) -> Option<i64> {
        one_varint(packed(message, FeatureKind::Int64)?, row.payload).map(|value| value as i64)
    }

    #[inline]
    fn fixed(message: &[u8], row: &RowOf<'_>, to: &mut [i64]) -> Option<()> {
        let chunk = packed(message, FeatureKind::Int64)?;
        if to.len() > SHORT {
            let count = count_varints(chunk).ok()?;
            return (count == to.len() && decode_varints(chunk, to) == count).then_some(());
        }
        few_varints(chunk, row.payload, to)
    }

    #[inline]
    fn append(message: &[u8], _: &RowOf<'_>, draft: &mut Draft<i64>, used: usize) -> Option<usize> {
        let chunk = packed(message, FeatureKind::Int64)?;
        let count = count_varints(chunk).ok()?;
        draft.grow(used + count, usize::MAX, 0);
        let to = draft.memory.get_mut(used..used + count)?;
        (decode_varints(chunk, to) == count).then_some(count)
    }

    #[inline]
    fn fits(count: usize, bytes: usize) -> bool {
        count <= bytes
    }
}

impl Item for f32 {
    const KIND: FeatureKind = FeatureKind::Float;
    const BLANK: f32 = 0.0;
    type List<'a> = FloatList<'a>;

    fn list<'a>(feature: Feature<'a>) -> Result<FloatList<'a>, FeatureError> {
        feature.float()
    }

    fn len(list: FloatList<'_>) -> usize {
        list.len()
    }

    fn take(list: FloatList<'_>, _: &RowOf<'_>, to: &mut [f32]) {
        let _ = list.copy_to(to);
    }

    #[inline]
    fn one(message: &[u8], _: &RowOf<'_>) -> Option<f32> {
        let value = packed(message, FeatureKind::Float)?;
        Some(f32::from_le_bytes(value.try_into().ok()?))
    }

    #[inline]
    fn fixed(message: &[u8], _: &RowOf<'_>, to: &mut [f32]) -> Option<()> {
        let chunk = packed(message, FeatureKind::Float)?;
        copy_floats(chunk, to)
    }

    #[inline]
    fn append(message: &[u8], _: &RowOf<'_>, draft: &mut Draft<f32>, used: usize) -> Option<usize> {
        let chunk = packed(message, FeatureKind::Float)?;
        let count = count_floats(chunk).ok()?;
        draft.grow(used + count, usize::MAX, 0.0);
        copy_floats(chunk, draft.memory.get_mut(used..used + count)?)?;
        Some(count)
    }

    #[inline]
    fn fits(count: usize, bytes: usize) -> bool {
        count <= bytes / 4
    }
}

/// Copies a chunk of as many floats as `to` has room for.
#[inline]
fn copy_floats(chunk: &[u8], to: &mut [f32]) -> Option<()> {
    if cfg!(target_endian = "little") {
        let to: &mut [u8] = bytemuck::cast_slice_mut(to);
        if to.len() != chunk.len() {
            return None;
        }
        to.copy_from_slice(chunk);
        return Some(());
    }
    let (values, rest) = chunk.as_chunks();
    if values.len() != to.len() || !rest.is_empty() {
        return None;
    }
    for (to, value) in to.iter_mut().zip(values) {
        *to = f32::from_le_bytes(*value);
    }
    Some(())
}

impl Span {
    #[inline]
    fn new(value: &[u8], row: &RowOf<'_>) -> Span {
        let start = match value.is_empty() {
            // It may be nowhere.
            true => 0,
            false => value.as_ptr().addr().wrapping_sub(row.payload.as_ptr().addr()),
        };
        Span { start, len: value.len() as u32, region: row.number as u32 }
    }
}

impl Item for Span {
    const KIND: FeatureKind = FeatureKind::Bytes;
    const BLANK: Span = Span { start: 0, len: 0, region: 0 };
    type List<'a> = crate::example::BytesList<'a>;

    fn list<'a>(feature: Feature<'a>) -> Result<Self::List<'a>, FeatureError> {
        feature.bytes()
    }

    fn len(list: Self::List<'_>) -> usize {
        list.len()
    }

    fn take(list: Self::List<'_>, row: &RowOf<'_>, to: &mut [Span]) {
        for (to, value) in to.iter_mut().zip(list) {
            *to = Span::new(value, row);
        }
    }

    #[inline]
    fn one(message: &[u8], row: &RowOf<'_>) -> Option<Span> {
        Some(Span::new(string(message)?, row))
    }

    #[inline]
    fn fixed(_: &[u8], _: &RowOf<'_>, _: &mut [Span]) -> Option<()> {
        None
    }

    #[inline]
    fn append(message: &[u8], row: &RowOf<'_>, draft: &mut Draft<Span>, used: usize) -> Option<usize> {
        let value = string(message)?;
        draft.grow(used + 1, usize::MAX, Span::BLANK);
        *draft.memory.get_mut(used)? = Span::new(value, row);
        Some(1)
    }

    #[inline]
    fn fits(count: usize, bytes: usize) -> bool {
        count <= bytes / 2
    }
}

impl Filled {
    /// Nothing filled yet, into this memory.
    pub(super) fn start(&mut self, memory: Memory) {
        self.memory = memory;
        self.used = 0;
        self.strings = None;
        self.counts.clear();
        self.steps.clear();
    }

    /// Fills in the features of a tile. Where a row is bad, the rows before it are there, and more may be.
    #[inline]
    pub(super) fn features<R: Row>(&mut self, at: usize, slot: &Slot, tile: &Tile<'_, R>) -> Result<(), Bad> {
        let Filled { memory, used, counts, .. } = self;
        macro_rules! by_need {
            ($draft:expr, $default:expr) => {
                match &slot.need {
                    Need::Fixed { count, .. } => {
                        *used = (tile.first + tile.rows.len()).saturating_mul(*count);
                        fixed($draft, at, *count, slot, $default, tile)
                    }
                    Need::Blocks { of, .. } => any($draft, used, counts, at, *of, tile),
                    Need::Any => any($draft, used, counts, at, 1, tile),
                }
            };
        }
        let default = match &slot.need {
            Need::Fixed { default, .. } => default.as_ref(),
            _ => None,
        };
        match memory {
            Memory::Int64(draft) => by_need!(draft, |to: &mut [i64]| {
                if let Some(Default::Int64(values)) = default {
                    to.copy_from_slice(values);
                }
            }),
            Memory::Float32(draft) => by_need!(draft, |to: &mut [f32]| {
                if let Some(Default::Float32(values)) = default {
                    to.copy_from_slice(values);
                }
            }),
            Memory::Bytes(draft) => by_need!(draft, |to: &mut [Span]| {
                if let Some(Default::Bytes(ends)) = default {
                    default_spans(ends, tile.total + at, to);
                }
            }),
        }
    }

    /// Fills in the feature lists of a tile, as [`features`](Filled::features) does.
    pub(super) fn lists<R: Row>(&mut self, at: usize, slot: &Slot, tile: &Tile<'_, R>) -> Result<(), Bad> {
        let Filled { memory, used, counts, steps, .. } = self;
        match memory {
            Memory::Int64(draft) => lists(draft, used, counts, steps, at, slot, tile),
            Memory::Float32(draft) => lists(draft, used, counts, steps, at, slot, tile),
            Memory::Bytes(draft) => lists(draft, used, counts, steps, at, slot, tile),
        }
    }
}

/// The spans of a default: of the strings that end there, in region `region`.
pub(super) fn default_spans(ends: &[usize], region: usize, to: &mut [Span]) {
    let mut start = 0;
    for (to, &end) in to.iter_mut().zip(ends) {
        *to = Span { start, len: (end - start) as u32, region: region as u32 };
        start = end;
    }
}

/// A fixed number of values in each row, so that their places are known.
#[inline]
fn fixed<T: Item, R: Row>(
    draft: &mut Draft<T>,
    at: usize,
    count: usize,
    slot: &Slot,
    default: impl Fn(&mut [T]),
    tile: &Tile<'_, R>,
) -> Result<(), Bad> {
    let most = tile.total.saturating_mul(count);
    if count == 1 {
        draft.grow(tile.first + tile.rows.len(), most, T::BLANK);
    }
    for (k, row) in tile.rows.iter().enumerate() {
        let found = tile.table.get(k, at);
        let row = RowOf { number: tile.first + k, payload: row.payload() };
        if let Some(message) = found.one(row.payload) {
            if count == 1 {
                if let Some(value) = T::one(message, &row)
                    && let Some(to) = draft.memory.get_mut(row.number)
                {
                    *to = value;
                    continue;
                }
            } else if T::fits(count, message.len()) {
                let to = place(draft, &row, count, most);
                if T::fixed(message, &row, to).is_some() {
                    continue;
                }
            }
        }
        fixed_general(draft, found, &row, count, slot, &default, tile).map_err(|fail| Bad {
            row: k,
            step: None,
            fail,
        })?;
    }
    Ok(())
}

/// Where the values of a row go. They are either in its bytes or in the default, so the product is one of sizes that there are.
#[inline]
fn place<'d, T: Item>(draft: &'d mut Draft<T>, row: &RowOf<'_>, count: usize, most: usize) -> &'d mut [T] {
    let start = row.number.saturating_mul(count);
    draft.grow(start + count, most, T::BLANK);
    &mut draft.memory[start..start + count]
}

/// One row, in any encoding, or absent.
#[inline(never)]
fn fixed_general<T: Item, R: Row>(
    draft: &mut Draft<T>,
    found: Found,
    row: &RowOf<'_>,
    count: usize,
    slot: &Slot,
    default: impl Fn(&mut [T]),
    tile: &Tile<'_, R>,
) -> Result<(), Fail> {
    let has_default = matches!(slot.need, Need::Fixed { default: Some(_), .. });
    let most = tile.total.saturating_mul(count);
    match general::<T>(found, row.payload)? {
        Some(list) if T::len(list) == count => T::take(list, row, place(draft, row, count, most)),
        Some(list) => return Err(FeatureError::Count { expected: count, found: T::len(list) }.into()),
        // Without a kind, but there: a context takes it for a list of no values.
        None if tile.context && found.source(row.payload).is_some() => {
            if count > 0 {
                return Err(FeatureError::Count { expected: count, found: 0 }.into());
            }
        }
        None if has_default => default(place(draft, row, count, most)),
        None => return Err(FeatureError::Missing { expected: DType::from(T::KIND).name() }.into()),
    }
    Ok(())
}

/// A list in any encoding; `None` for one that is absent or has no kind.
#[inline(never)]
fn general<T: Item>(found: Found, payload: &[u8]) -> Result<Option<T::List<'_>>, Fail> {
    let Some(source) = found.source(payload) else { return Ok(None) };
    match Feature::check(source, VALUE_DEPTH)? {
        Feature::None => Ok(None),
        feature => Ok(Some(T::list(feature)?)),
    }
}

/// Puts the values of one message behind the others. No values if there is no kind.
#[inline]
fn append<T: Item>(
    draft: &mut Draft<T>,
    used: &mut usize,
    source: Source<'_>,
    depth: u8,
    row: &RowOf<'_>,
) -> Result<usize, Fail> {
    if let Source::One(message) = source
        && let Some(count) = T::append(message, row, draft, *used)
    {
        *used += count;
        return Ok(count);
    }
    append_general(draft, used, source, depth, row)
}

#[inline(never)]
fn append_general<T: Item>(
    draft: &mut Draft<T>,
    used: &mut usize,
    source: Source<'_>,
    depth: u8,
    row: &RowOf<'_>,
) -> Result<usize, Fail> {
    let list = match Feature::check(source, depth)? {
        Feature::None => return Ok(0),
        feature => T::list(feature)?,
    };
    let count = T::len(list);
    draft.grow(*used + count, usize::MAX, T::BLANK);
    T::take(list, row, &mut draft.memory[*used..*used + count]);
    *used += count;
    Ok(count)
}

/// Any number of values in each row, in blocks of `of`.
#[inline]
fn any<T: Item, R: Row>(
    draft: &mut Draft<T>,
    used: &mut usize,
    counts: &mut Vec<u32>,
    at: usize,
    of: usize,
    tile: &Tile<'_, R>,
) -> Result<(), Bad> {
    for (k, row) in tile.rows.iter().enumerate() {
        let row = RowOf { number: tile.first + k, payload: row.payload() };
        let bad = |fail| Bad { row: k, step: None, fail };
        let count = match tile.table.get(k, at).source(row.payload) {
            None => 0,
            Some(source) => append(draft, used, source, VALUE_DEPTH, &row).map_err(bad)?,
        };
        if of > 1 && !count.is_multiple_of(of) {
            return Err(bad(FeatureError::Blocks { of, found: count }.into()));
        }
        counts.push(count as u32);
    }
    Ok(())
}

/// The steps of each row.
fn lists<T: Item, R: Row>(
    draft: &mut Draft<T>,
    used: &mut usize,
    counts: &mut Vec<u32>,
    steps: &mut Vec<u32>,
    at: usize,
    slot: &Slot,
    tile: &Tile<'_, R>,
) -> Result<(), Bad> {
    for (k, row) in tile.rows.iter().enumerate() {
        let row = RowOf { number: tile.first + k, payload: row.payload() };
        let (exactly, required) = match slot.need {
            Need::Blocks { of, required } => (Some(of), required),
            _ => (None, false),
        };
        let Some(source) = tile.table.get(k, at).source(row.payload) else {
            if required {
                let fail = FeatureError::Missing { expected: slot.dtype.name() }.into();
                return Err(Bad { row: k, step: None, fail });
            }
            steps.push(0);
            continue;
        };
        let mut step = 0;
        for mut list in source.messages(VALUE_DEPTH) {
            while let Some(field) = list.next().map_err(|e| Bad { row: k, step: None, fail: e.into() })? {
                let (1, Value::Len(message)) = field else { continue };
                let bad = |fail| Bad { row: k, step: Some(step), fail };
                let count =
                    append(draft, used, Source::One(message), FeatureList::STEP_DEPTH, &row).map_err(bad)?;
                if let Some(expected) = exactly.filter(|&expected| expected != count) {
                    return Err(bad(FeatureError::Count { expected, found: count }.into()));
                }
                counts.push(count as u32);
                step += 1;
            }
        }
        steps.push(step as u32);
    }
    Ok(())
}
