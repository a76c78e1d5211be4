//! Seeded random numbers, for `sample` and `demo`.

use tfseek_tools::sample;

/// A generator of random numbers, the same on every machine.
pub(crate) struct Random(sample::Random);

impl Random {
    pub(crate) fn new(seed: u64) -> Random {
        Random(sample::Random::new(seed))
    }

    /// Returns a number below `n`, which must not be 0.
    pub(crate) fn below(&mut self, n: u64) -> u64 {
        self.0.below(n)
    }

    /// Returns a number in [0, 1).
    pub(crate) fn unit(&mut self) -> f64 {
        (self.0.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Returns a number from the standard normal distribution, by the Box-Muller transform.
    pub(crate) fn normal(&mut self) -> f64 {
        let radius = (-2.0 * (1.0 - self.unit()).ln()).sqrt();
        radius * (std::f64::consts::TAU * self.unit()).cos()
    }

    /// Returns `min(k, n)` distinct numbers below `n`, in random order.
    pub(crate) fn draw(&mut self, k: u64, n: u64) -> impl Iterator<Item = u64> {
        self.0.draw(k, n)
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
}
