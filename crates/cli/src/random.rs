//! SplitMix64: small, seeded, the same everywhere. For drawing records and making observations, and nothing secret.

use std::collections::HashMap;

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

    /// A number below `n`, which is not 0. The high half of a product: for no `n` in use is its bias to be seen.
    pub(crate) fn below(&mut self, n: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(n)) >> 64) as u64
    }

    /// A number from [0, 1).
    pub(crate) fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// A number of the normal distribution, by Box and Muller.
    pub(crate) fn normal(&mut self) -> f64 {
        let radius = (-2.0 * (1.0 - self.unit()).ln()).sqrt();
        radius * (std::f64::consts::TAU * self.unit()).cos()
    }

    /// `k` different numbers below `n`, in random order; all of them if `k` is larger. Fisher and Yates' shuffle, of which only
    /// the places that were touched are kept.
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
    fn draws_each_once() {
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
    fn the_published_sequence() {
        // From the reference implementation, seed 1234567.
        let mut random = Random::new(1_234_567);
        assert_eq!(random.next(), 6_457_827_717_110_365_317);
        assert_eq!(random.next(), 3_203_168_211_198_807_973);
    }
}
