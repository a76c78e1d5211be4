//! Random arrays of all types that are encoded.

use arrow_array::types::{
    ArrowPrimitiveType, Float16Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type,
    UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{
    Array, ArrayRef, BinaryArray, BinaryViewArray, BooleanArray, DictionaryArray, FixedSizeBinaryArray,
    FixedSizeListArray, LargeBinaryArray, LargeListArray, LargeListViewArray, LargeStringArray, ListArray,
    ListViewArray, NullArray, OffsetSizeTrait, PrimitiveArray, StringArray, StringViewArray,
};
use arrow_buffer::{NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow_schema::Field;
use std::sync::Arc;
use tfseek_testkit::rng::Rng;

/// Probabilities of arrays, in 256ths.
#[derive(Clone, Copy)]
pub(super) struct Odds {
    /// Of an array with nulls, where a null is an absent feature.
    pub(super) nulls: u8,
    /// Of an array with nulls in lists, and of numbers that are changed by their casts.
    pub(super) bad: u8,
}

fn nulls(rng: &mut Rng, len: usize, odds: u8) -> Option<NullBuffer> {
    rng.chance(odds).then(|| NullBuffer::from_iter((0..len).map(|_| !rng.chance(60))))
}

fn primitive<T: ArrowPrimitiveType>(
    rng: &mut Rng,
    len: usize,
    nulls: Option<NullBuffer>,
    value: impl Fn(&mut Rng) -> T::Native,
) -> ArrayRef {
    let values: ScalarBuffer<T::Native> = (0..len).map(|_| value(rng)).collect();
    Arc::new(PrimitiveArray::<T>::new(values, nulls))
}

/// Returns values of a type that is not nested.
pub(super) fn leaves(rng: &mut Rng, len: usize, odds: Odds, null_odds: u8) -> ArrayRef {
    let nulls = nulls(rng, len, null_odds);
    let bad = if rng.chance(odds.bad) { 30 } else { 0 };
    let short = |rng: &mut Rng| {
        let len = if rng.chance(40) { rng.below(40) } else { rng.below(13) };
        rng.bytes(len)
    };
    let text = |rng: &mut Rng| -> String {
        (0..rng.below(20)).map(|_| rng.pick(&['a', 'é', '\0', '字'])).collect()
    };
    let float = |rng: &mut Rng| f32::from_bits(rng.u64() as u32);
    match rng.below(21) {
        0 => primitive::<Int8Type>(rng, len, nulls, |rng| rng.u64() as i8),
        1 => primitive::<Int16Type>(rng, len, nulls, |rng| rng.u64() as i16),
        2 => primitive::<Int32Type>(rng, len, nulls, |rng| rng.u64() as i32),
        3 | 4 => primitive::<Int64Type>(rng, len, nulls, |rng| rng.u64() as i64),
        5 => primitive::<UInt8Type>(rng, len, nulls, |rng| rng.u64() as u8),
        6 => primitive::<UInt16Type>(rng, len, nulls, |rng| rng.u64() as u16),
        7 => primitive::<UInt32Type>(rng, len, nulls, |rng| rng.u64() as u32),
        8 => primitive::<UInt64Type>(rng, len, nulls, |rng| {
            if rng.chance(bad) { rng.u64() | 1 << 63 } else { rng.u64() >> 1 }
        }),
        9 => primitive::<Float16Type>(rng, len, nulls, |rng| {
            <Float16Type as ArrowPrimitiveType>::Native::from_bits(rng.u64() as u16)
        }),
        10 => primitive::<Float32Type>(rng, len, nulls, float),
        11 | 12 => primitive::<Float64Type>(rng, len, nulls, |rng| {
            if rng.chance(bad) { rng.pick(&[0.1, 1e300, -1e-60]) } else { float(rng).into() }
        }),
        13 => Arc::new(BooleanArray::new((0..len).map(|_| rng.chance(128)).collect(), nulls)),
        14 => Arc::new(BinaryArray::from_iter_values((0..len).map(|_| short(rng)))),
        15 => Arc::new(LargeBinaryArray::from_iter((0..len).map(|k| valid(&nulls, k).then(|| short(rng))))),
        16 => Arc::new(BinaryViewArray::from_iter((0..len).map(|k| valid(&nulls, k).then(|| short(rng))))),
        17 => {
            let size = rng.below(4) as i32;
            let values = rng.bytes(len * size as usize);
            Arc::new(FixedSizeBinaryArray::try_new_with_len(size, values.into(), nulls, len).unwrap())
        }
        18 => Arc::new(StringArray::from_iter((0..len).map(|k| valid(&nulls, k).then(|| text(rng))))),
        19 => Arc::new(StringViewArray::from_iter((0..len).map(|k| valid(&nulls, k).then(|| text(rng))))),
        _ if rng.chance(20) => Arc::new(NullArray::new(len)),
        _ if rng.chance(80) => {
            Arc::new(LargeStringArray::from_iter((0..len).map(|k| valid(&nulls, k).then(|| text(rng)))))
        }
        _ => dictionary(rng, len, nulls, odds, null_odds),
    }
}

fn valid(nulls: &Option<NullBuffer>, k: usize) -> bool {
    nulls.as_ref().is_none_or(|nulls| nulls.is_valid(k))
}

fn dictionary(rng: &mut Rng, len: usize, nulls: Option<NullBuffer>, odds: Odds, null_odds: u8) -> ArrayRef {
    let all_null = nulls.as_ref().is_some_and(|nulls| nulls.null_count() == len);
    let count = if all_null || len == 0 { rng.below(3) } else { 1 + rng.below(10) };
    let values = loop {
        let values = leaves(rng, count, odds, null_odds);
        if values.as_any().downcast_ref::<DictionaryArray<Int8Type>>().is_none()
            && values.as_any().downcast_ref::<DictionaryArray<UInt32Type>>().is_none()
        {
            break values;
        }
    };
    if rng.chance(128) {
        let keys: ScalarBuffer<i8> = (0..len).map(|_| rng.below(count.max(1)) as i8).collect();
        Arc::new(DictionaryArray::<Int8Type>::new(PrimitiveArray::new(keys, nulls), values))
    } else {
        let keys: ScalarBuffer<u32> = (0..len).map(|_| rng.below(count.max(1)) as u32).collect();
        Arc::new(DictionaryArray::<UInt32Type>::new(PrimitiveArray::new(keys, nulls), values))
    }
}

fn item(array: &ArrayRef) -> Arc<Field> {
    Arc::new(Field::new("item", array.data_type().clone(), true))
}

/// Returns an array of lists of one of five types. `items` makes the items.
pub(super) fn lists(
    rng: &mut Rng,
    len: usize,
    nulls: Option<NullBuffer>,
    items: &mut dyn FnMut(&mut Rng, usize) -> ArrayRef,
) -> ArrayRef {
    match rng.below(4) {
        0 => offset_lists::<i32>(rng, len, nulls, items, &|field, offsets, items, nulls| {
            Arc::new(ListArray::new(field, offsets, items, nulls))
        }),
        1 => offset_lists::<i64>(rng, len, nulls, items, &|field, offsets, items, nulls| {
            Arc::new(LargeListArray::new(field, offsets, items, nulls))
        }),
        large => {
            // Lists that overlap, in any order.
            let count = rng.below(40);
            let items = items(rng, count);
            let ranges: Vec<(usize, usize)> = (0..len)
                .map(|_| {
                    let start = rng.below(count + 1);
                    (start, rng.below((count - start).min(4) + 1))
                })
                .collect();
            let (starts, sizes) =
                (ranges.iter().map(|(start, _)| *start), ranges.iter().map(|(_, len)| *len));
            if large == 2 {
                let (starts, sizes) = (starts.map(|n| n as i32).collect(), sizes.map(|n| n as i32).collect());
                Arc::new(ListViewArray::new(item(&items), starts, sizes, items, nulls))
            } else {
                let (starts, sizes) = (starts.map(|n| n as i64).collect(), sizes.map(|n| n as i64).collect());
                Arc::new(LargeListViewArray::new(item(&items), starts, sizes, items, nulls))
            }
        }
    }
}

type MakeLists<'a, T> = &'a dyn Fn(Arc<Field>, OffsetBuffer<T>, ArrayRef, Option<NullBuffer>) -> ArrayRef;

fn offset_lists<T: OffsetSizeTrait>(
    rng: &mut Rng,
    len: usize,
    nulls: Option<NullBuffer>,
    items: &mut dyn FnMut(&mut Rng, usize) -> ArrayRef,
    make: MakeLists<'_, T>,
) -> ArrayRef {
    // The first list need not begin at the first item, and null lists may have items.
    let mut end = rng.below(3);
    let mut offsets = vec![T::usize_as(end)];
    for _ in 0..len {
        end += rng.pick(&[0, 0, 1, 2, 3, 7]);
        offsets.push(T::usize_as(end));
    }
    let unused = rng.below(3);
    let items = items(rng, end + unused);
    make(item(&items), OffsetBuffer::new(offsets.into()), items, nulls)
}

pub(super) fn fixed(
    rng: &mut Rng,
    len: usize,
    nulls: Option<NullBuffer>,
    items: &mut dyn FnMut(&mut Rng, usize) -> ArrayRef,
) -> ArrayRef {
    let size = rng.below(4);
    let items = items(rng, len * size);
    let field = item(&items);
    Arc::new(FixedSizeListArray::try_new_with_length(field, size as i32, items, nulls, len).unwrap())
}

/// Returns the values of a feature: single ones, or lists of any type.
pub(super) fn features(rng: &mut Rng, len: usize, odds: Odds) -> ArrayRef {
    let absent = nulls(rng, len, odds.nulls);
    // A null below a list is an error.
    let mut inner = |rng: &mut Rng, len: usize| leaves(rng, len, odds, odds.bad);
    match rng.below(6) {
        0 | 1 => leaves(rng, len, odds, odds.nulls),
        2 => lists(rng, len, absent, &mut inner),
        3 => fixed(rng, len, absent, &mut inner),
        4 => lists(rng, len, absent, &mut |rng, len| {
            let nulls = nulls(rng, len, odds.bad);
            fixed(rng, len, nulls, &mut inner)
        }),
        _ => fixed(rng, len, absent, &mut |rng, len| {
            let nulls = nulls(rng, len, odds.bad);
            fixed(rng, len, nulls, &mut inner)
        }),
    }
}

/// Returns feature lists: lists of the values of steps.
pub(super) fn feature_lists(rng: &mut Rng, len: usize, odds: Odds) -> ArrayRef {
    let absent = nulls(rng, len, odds.nulls);
    let mut steps = |rng: &mut Rng, len: usize| features(rng, len, odds);
    if rng.chance(60) { fixed(rng, len, absent, &mut steps) } else { lists(rng, len, absent, &mut steps) }
}
