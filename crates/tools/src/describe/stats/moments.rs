//! Mean and variance, merged by the formula of T. Chan, G. Golub and R. LeVeque, "Updating formulae and a
//! pairwise algorithm for computing sample variances" (1979).

/// Number, mean and sum of squared deviations of values.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Moments {
    pub(crate) n: u64,
    pub(crate) mean: f64,
    pub(crate) squares: f64,
}

impl Moments {
    /// Returns the moments of a block of values with their numbers, in two passes.
    pub(crate) fn weighted(values: impl Iterator<Item = (f64, u64)> + Clone) -> Moments {
        let n: u64 = values.clone().map(|(_, count)| count).sum();
        if n == 0 {
            return Moments::default();
        }
        let mean = values.clone().map(|(value, count)| value * count as f64).sum::<f64>() / n as f64;
        let squares = values.map(|(value, count)| (value - mean) * (value - mean) * count as f64).sum();
        Moments { n, mean, squares }
    }

    /// Returns the moments of a block of values, which is not empty. Sums are kept in four parts, so that
    /// they can be added at the same time.
    pub(crate) fn of(values: &[f64]) -> Moments {
        let n = values.len() as f64;
        let mean = sum(values, |value| value) / n;
        Moments {
            n: values.len() as u64,
            mean,
            squares: sum(values, |value| (value - mean) * (value - mean)),
        }
    }

    /// Adds the values of `other`.
    pub(crate) fn merge(&mut self, other: &Moments) {
        if other.n == 0 {
            return;
        }
        let n = self.n + other.n;
        let part = other.n as f64 / n as f64;
        let delta = other.mean - self.mean;
        self.squares += other.squares + delta * delta * self.n as f64 * part;
        self.mean += delta * part;
        self.n = n;
    }

    /// Returns the mean, if there is a value.
    pub(crate) fn mean(&self) -> Option<f64> {
        (self.n > 0).then_some(self.mean)
    }

    /// Returns the standard deviation of the values as a whole population, if there is a value.
    pub(crate) fn std(&self) -> Option<f64> {
        (self.n > 0).then(|| (self.squares / self.n as f64).max(0.0).sqrt())
    }
}

fn sum(values: &[f64], of: impl Fn(f64) -> f64) -> f64 {
    let (blocks, rest) = values.as_chunks::<4>();
    let mut parts = [0.0; 4];
    for block in blocks {
        for (part, value) in parts.iter_mut().zip(block) {
            *part += of(*value);
        }
    }
    let [a, b, c, d] = parts;
    (a + b) + (c + d) + rest.iter().map(|value| of(*value)).sum::<f64>()
}

#[cfg(test)]
mod tests {
    use super::*;
    use tfseek_testkit::rng::Rng;

    #[test]
    fn moments_are_those_of_a_naive_twin() {
        for seed in 0..1000 {
            let mut rng = Rng::new(seed);
            let offset = rng.below(1 << 20) as f64;
            let n = 1 + rng.below(2000);
            let values: Vec<f64> = (0..n).map(|_| offset + rng.below(1000) as f64 / 7.0).collect();
            let mut merged = Moments::default();
            for block in values.chunks(1 + rng.below(256)) {
                let (block, weighted) =
                    (Moments::of(block), Moments::weighted(block.iter().map(|value| (*value, 1))));
                assert!((block.mean - weighted.mean).abs() < 1e-9 * offset.max(1.0) && block.n == weighted.n);
                merged.merge(&block);
            }
            let mean = values.iter().sum::<f64>() / n as f64;
            let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / n as f64;
            assert!((merged.mean().unwrap() - mean).abs() < 1e-9 * offset.max(1.0));
            assert!((merged.std().unwrap() - variance.sqrt()).abs() < 1e-7, "{merged:?} {variance}");
        }
        assert_eq!(Moments::default().mean(), None);
        assert_eq!(Moments::of(&[5.0]).std(), Some(0.0));
    }
}
