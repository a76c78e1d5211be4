//! Counters of numbers by their leading bits.
//!
//! A number belongs to one of 65,536 counters, by its leading bits: of a float the sign, the exponent and 7
//! bits of the mantissa, of an integer the sign, the power of two and the 7 bits below it. Counters are kept
//! in pages of 256, which are made when they are touched. Adding a value increments one counter, and merging
//! adds counters. A value differs from the middle of its counter by at most 1/256 of itself, except floats
//! below 2^-126, and integers between -256 and 256 have a counter each.

const PAGE: usize = 256;

/// A counter for each of 65,536 keys, in pages that are made when they are touched.
#[derive(Clone, Debug, Default)]
pub(crate) struct KeyCounters {
    pages: Vec<Option<Box<[u64; PAGE]>>>,
    /// Number of pages that were made.
    made: usize,
}

impl KeyCounters {
    /// Adds `n` to the counter of a key.
    #[inline]
    pub(crate) fn add(&mut self, key: u16, n: u64) {
        let [low, page] = key.to_le_bytes();
        if let Some(Some(counters)) = self.pages.get_mut(usize::from(page))
            && let Some(counter) = counters.get_mut(usize::from(low))
        {
            *counter = counter.wrapping_add(n);
        } else {
            self.add_to_new_page(key, n);
        }
    }

    #[cold]
    fn add_to_new_page(&mut self, key: u16, n: u64) {
        let [low, page] = key.to_le_bytes().map(usize::from);
        if self.pages.len() <= page {
            self.pages.resize_with(page + 1, || None);
        }
        self.made += 1;
        if let Some(place) = self.pages.get_mut(page)
            && let Some(counter) = place.insert(Box::new([0; PAGE])).get_mut(low)
        {
            *counter = n;
        }
    }

    /// Returns the counter of a key.
    pub(crate) fn get(&self, key: u16) -> u64 {
        let [low, page] = key.to_le_bytes().map(usize::from);
        self.pages.get(page).and_then(Option::as_ref).and_then(|page| page.get(low)).copied().unwrap_or(0)
    }

    /// Adds the counters of `other`.
    pub(crate) fn merge(&mut self, other: &KeyCounters) {
        other.iter().for_each(|(key, n)| self.add(key, n));
    }

    /// Returns the keys with their counters, in the order of the keys, without zeros.
    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = (u16, u64)> {
        self.pages.iter().enumerate().flat_map(|(page, counters)| {
            let counters = counters.iter().flat_map(|counters| counters.iter().enumerate());
            counters.filter(|(_, n)| **n > 0).map(move |(low, n)| ((page * PAGE + low) as u16, *n))
        })
    }

    /// Returns the number of bytes in memory.
    pub(crate) fn bytes(&self) -> u64 {
        ((self.made * PAGE + self.pages.len()) * size_of::<u64>()) as u64
    }
}

/// The sign in a key.
const NEGATIVE: u16 = 0x8000;

/// Returns the key of an integer.
#[inline]
pub(crate) fn int_key(value: i64) -> u16 {
    let magnitude = value.unsigned_abs();
    let key = match magnitude.checked_ilog2() {
        // 128 counters for each power of two. The first 128 numbers are their own keys.
        Some(power @ 7..) => (power as u16 - 6) * 128 + (magnitude >> (power - 7)) as u16 - 128,
        _ => magnitude as u16,
    };
    if value < 0 { key | NEGATIVE } else { key }
}

/// Returns the key of a finite float. Both zeros have one key.
#[inline]
pub(crate) fn float_key(value: f32) -> u16 {
    if value == 0.0 { 0 } else { (value.to_bits() >> 16) as u16 }
}

/// A number of values between two bounds, which are included.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Cell<T = f64> {
    pub(crate) low: T,
    pub(crate) high: T,
    pub(crate) count: u64,
}

impl<T: Copy> Cell<T> {
    /// Returns the cell of a single value.
    pub(crate) fn of(value: T, count: u64) -> Cell<T> {
        Cell { low: value, high: value, count }
    }
}

impl Cell {
    /// Returns the middle of the bounds.
    pub(crate) fn middle(&self) -> f64 {
        self.low + (self.high - self.low) / 2.0
    }
}

impl Cell<i64> {
    /// Returns the cell with floats as its bounds, rounded beyond 2^53.
    pub(crate) fn rounded(&self) -> Cell {
        Cell { low: self.low as f64, high: self.high as f64, count: self.count }
    }
}

/// Returns the cell of a key of integers.
pub(crate) fn int_cell((key, count): (u16, u64)) -> Cell<i64> {
    let index = i128::from(key & !NEGATIVE);
    let (low, high) = match index / 128 {
        0 | 1 => (index, index),
        row => {
            let shift = (row - 1).min(56);
            let low = (index % 128 + 128) << shift;
            (low, low + ((1 << shift) - 1))
        }
    };
    let (low, high) = if key & NEGATIVE == 0 { (low, high) } else { (-high, -low) };
    let [low, high] = [low, high].map(|x| x.clamp(i64::MIN.into(), i64::MAX.into()) as i64);
    Cell { low, high, count }
}

/// Returns the cell of a key of floats.
pub(crate) fn float_cell((key, count): (u16, u64)) -> Cell {
    let bits = u32::from(key & !NEGATIVE) << 16;
    let low = f32::from_bits(bits).into();
    let high = f32::from_bits(bits | 0xffff).into();
    if key & NEGATIVE == 0 { Cell { low, high, count } } else { Cell { low: -high, high: -low, count } }
}

/// Returns the cells of counters in the order of the values.
pub(crate) fn cells<T>(counters: &KeyCounters, cell: fn((u16, u64)) -> Cell<T>) -> Vec<Cell<T>> {
    let negative = counters.iter().rev().filter(|(key, _)| key & NEGATIVE != 0);
    negative.chain(counters.iter().filter(|(key, _)| key & NEGATIVE == 0)).map(cell).collect()
}

/// Returns the cell that contains the value of this rank, which counts from 1. Cells are in the order of
/// their values.
pub(crate) fn at_rank<T>(cells: &[Cell<T>], rank: u64) -> Option<&Cell<T>> {
    let mut before = 0u64;
    let found = cells.iter().find(|cell| {
        before += cell.count;
        before >= rank
    });
    found.or(cells.last())
}

#[cfg(test)]
mod tests {
    use super::*;
    use tfseek_testkit::rng::Rng;

    /// Returns the distance of a value from the middle of its cell, as a part of the value.
    fn error(value: f64, cell: Cell) -> f64 {
        assert!(cell.low <= value && value <= cell.high, "{value} {cell:?}");
        if value == cell.middle() { 0.0 } else { ((value - cell.middle()) / value).abs() }
    }

    #[test]
    fn integers_are_in_their_cells() {
        let mut rng = Rng::new(1);
        let mut all: Vec<i64> = (-70_000..70_000).chain([i64::MIN, i64::MAX, i64::MIN + 1]).collect();
        all.extend((0..100_000).map(|_| rng.u64() as i64 >> rng.below(64)));
        for value in all {
            let cell = int_cell((int_key(value), 1));
            assert!(cell.low <= value && value <= cell.high, "{value} {cell:?}");
            let cell = cell.rounded();
            let error = error(value as f64, cell);
            assert!(error <= 1.0 / 256.0 && (value.abs_diff(0) >= 256 || error == 0.0), "{value} {cell:?}");
        }
    }

    #[test]
    fn floats_are_in_their_cells() {
        let mut rng = Rng::new(2);
        for _ in 0..200_000 {
            let value = f32::from_bits(rng.u64() as u32);
            if value.is_finite() {
                let error = error(value.into(), float_cell((float_key(value), 1)));
                assert!(error <= 1.0 / 256.0 || value.abs() < f32::MIN_POSITIVE, "{value}");
            }
        }
        assert_eq!(float_cell((float_key(-0.0), 1)).low, 0.0);
    }

    /// Cells are disjoint, and in the order of the values.
    #[test]
    fn cells_are_in_order() {
        let mut counters = KeyCounters::default();
        (0..7296).chain(0x8001..=0x8000 + 7296).for_each(|key| counters.add(key, 1));
        let ints = cells(&counters, int_cell);
        assert!(ints.windows(2).all(|pair| pair[0].high < pair[1].low), "{ints:?}");
        let mut counters = KeyCounters::default();
        (0..0x7f80).chain(0x8000..0xff80).for_each(|key| counters.add(key, 1));
        let floats = cells(&counters, float_cell);
        assert!(floats.windows(2).all(|pair| pair[0].high <= pair[1].low));
    }

    /// Quantiles differ from the sorted values' quantiles by at most 1/256, for 1,000 seeds, and do not
    /// depend on how values are merged.
    #[test]
    fn quantiles_are_within_the_bound() {
        for seed in 0..1000 {
            let mut rng = Rng::new(seed);
            let scale = rng.below(60);
            let mut values: Vec<i64> = (0..1 + rng.below(300)).map(|_| rng.u64() as i64 >> scale).collect();
            let (mut whole, mut left, mut right) =
                (KeyCounters::default(), KeyCounters::default(), KeyCounters::default());
            for (k, value) in values.iter().enumerate() {
                whole.add(int_key(*value), 1);
                if k % 3 == 0 { &mut left } else { &mut right }.add(int_key(*value), 1);
            }
            left.merge(&right);
            assert!(left.iter().eq(whole.iter()));
            values.sort_unstable();
            let cells = cells(&whole, int_cell);
            for (rank, value) in (1..).zip(&values) {
                let found = at_rank(&cells, rank).unwrap().rounded().middle();
                assert!((found - *value as f64).abs() <= (*value as f64).abs() / 256.0, "{found} {value}");
            }
        }
    }
}
