//! Random samples of records, with seeds that give the same sample on every machine.

use std::collections::HashMap;

/// The generator SplitMix64. It is not cryptographically secure.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// Creates a generator.
    pub fn new(seed: u64) -> Random {
        Random(seed)
    }

    /// Returns the next number.
    #[allow(
        clippy::should_implement_trait,
        reason = "the numbers do not end, so an iterator would add nothing"
    )]
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Returns a number below `n`, which must not be 0. It is the high half of a 128-bit product, whose bias
    /// is negligible for numbers of records.
    pub fn below(&mut self, n: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(n)) >> 64) as u64
    }

    /// Returns `min(k, n)` distinct numbers below `n`, in random order. This is a Fisher-Yates shuffle that
    /// stores only the positions that were swapped.
    pub fn draw(&mut self, k: u64, n: u64) -> impl Iterator<Item = u64> {
        let mut moved = HashMap::new();
        (0..k.min(n)).map(move |at| {
            let from = at + self.below(n - at);
            let here = moved.get(&at).copied().unwrap_or(at);
            moved.insert(from, here).unwrap_or(from)
        })
    }
}

/// A sample without replacement from a sequence of unknown length, drawn in one pass (algorithm R). Holds at
/// most `n` items.
///
/// ```
/// use tfseek_tools::sample::Reservoir;
///
/// let mut sample = Reservoir::new(3, 1);
/// for i in 0..100 {
///     sample.offer(|slot| *slot = i);
/// }
/// assert_eq!(sample.into_items().count(), 3);
/// ```
#[derive(Clone, Debug)]
pub struct Reservoir<T> {
    n: usize,
    /// Number of items so far.
    seen: u64,
    random: Random,
    kept: Vec<(u64, T)>,
}

impl<T: Default> Reservoir<T> {
    /// Creates an empty sample of at most `n` items.
    pub fn new(n: usize, seed: u64) -> Reservoir<T> {
        Reservoir { n, seen: 0, random: Random::new(seed), kept: Vec::new() }
    }

    /// Offers the next item. `set` writes it into the slot of the sample that it takes, and is called only if
    /// the item is kept.
    pub fn offer<R>(&mut self, set: impl FnOnce(&mut T) -> R) -> Option<R> {
        let position = self.seen;
        self.seen += 1;
        if self.kept.len() < self.n {
            let mut item = T::default();
            let set = set(&mut item);
            self.kept.push((position, item));
            return Some(set);
        }
        let slot = usize::try_from(self.random.below(self.seen)).ok()?;
        let (at, item) = self.kept.get_mut(slot)?;
        *at = position;
        Some(set(item))
    }

    /// Returns the sample in the order of the sequence.
    pub fn into_items(mut self) -> impl Iterator<Item = T> {
        self.kept.sort_unstable_by_key(|(position, _)| *position);
        self.kept.into_iter().map(|(_, item)| item)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_the_reference_implementation() {
        let mut random = Random::new(1_234_567);
        assert_eq!(random.next(), 6_457_827_717_110_365_317);
        assert_eq!(random.next(), 3_203_168_211_198_807_973);
    }

    #[test]
    fn each_item_is_equally_likely() {
        let draw = |n, seed, len: u64| {
            let mut sample = Reservoir::new(n, seed);
            for i in 0..len {
                sample.offer(|slot| *slot = i);
            }
            sample.into_items().collect::<Vec<_>>()
        };
        assert_eq!((draw(0, 1, 5), draw(5, 1, 0), draw(5, 1, 3)), (vec![], vec![], vec![0, 1, 2]));
        let mut counts = [0; 20];
        for seed in 0..2000 {
            let drawn = draw(5, seed, 20);
            assert!(drawn.len() == 5 && drawn.is_sorted());
            drawn.iter().for_each(|&i| counts[i as usize] += 1);
        }
        assert!(counts.iter().all(|count| (400..600).contains(count)), "{counts:?}");
    }
}
