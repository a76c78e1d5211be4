//! Seeded random numbers, for `sample` and `demo`.

use std::collections::HashMap;

/// The generator SplitMix64. Its numbers are the same on every machine, and not cryptographically secure.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Random {
        Random(seed)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Returns a number below `n`, which must not be 0. It is the high half of a 128-bit product, whose bias is negligible for the
    /// `n` in use.
    pub(crate) fn below(&mut self, n: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(n)) >> 64) as u64
    }

    /// Returns a number in [0, 1).
    pub(crate) fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Returns a number from the standard normal distribution, by the Box-Muller transform.
    pub(crate) fn normal(&mut self) -> f64 {
        let radius = (-2.0 * (1.0 - self.unit()).ln()).sqrt();
        radius * (std::f64::consts::TAU * self.unit()).cos()
    }

    /// Returns `min(k, n)` distinct numbers below `n`, in random order. This is a Fisher-Yates shuffle that stores only the positions
    /// that were swapped.
    pub(crate) fn draw(&mut self, k: u64, n: u64) -> impl Iterator<Item = u64> {
        let mut moved = HashMap::new();
        (0..k.min(n)).map(move |at| {
            let from = at + self.below(n - at);
            let here = moved.get(&at).copied().unwrap_or(at);
            moved.insert(from, here).unwrap_or(from)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::Random;

    #[test]
    fn draws_are_distinct() {
        for (k, n) in [(0, 0), (5, 0), (1, 1), (3, 10), (10, 10), (99, 10)] {
            let mut drawn: Vec<u64> = Random::new(7).draw(k, n).collect();
            assert_eq!(drawn.len() as u64, k.min(n));
            drawn.sort_unstable();
            drawn.dedup();
            assert_eq!(drawn.len() as u64, k.min(n));
            assert!(drawn.iter().all(|&i| i < n));
        }
    }

    #[test]
    fn numbers_of_the_reference_implementation() {
        // The seed is 1234567.
        let mut random = Random::new(1_234_567);
        assert_eq!(random.next(), 6_457_827_717_110_365_317);
        assert_eq!(random.next(), 3_203_168_211_198_807_973);
    }
}
