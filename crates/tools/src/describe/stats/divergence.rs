//! The Jensen-Shannon divergence of two distributions, and the one that chance makes.

/// Returns the divergence of two distributions, given as numbers of values in the same parts. `None` if one
/// has no values.
pub(crate) fn divergence(parts: &[(f64, f64)]) -> Option<f64> {
    let total = parts.iter().fold((0.0, 0.0), |(a, b), (n, m)| (a + n, b + m));
    if total.0 <= 0.0 || total.1 <= 0.0 {
        return None;
    }
    let term = |p: f64, middle: f64| if p > 0.0 { p * (p / middle).log2() } else { 0.0 };
    let one = |&(n, m): &(f64, f64)| {
        let p = n / total.0;
        let q = m / total.1;
        let middle = (p + q) / 2.0;
        (term(p, middle) + term(q, middle)) / 2.0
    };
    Some(parts.iter().map(one).sum::<f64>().clamp(0.0, 1.0))
}

/// Returns the divergence that two draws of one distribution stay below in 19 of 20 cases. `parts` is the
/// number of parts that have values, and `n` and `m` are the numbers of independent values.
///
/// For many values the divergence times 8 ln 2 / (1/n + 1/m) has the chi-squared distribution, here in the
/// approximation of E. Wilson and M. Hilferty (1931).
pub(crate) fn of_chance(parts: usize, n: u64, m: u64) -> f64 {
    if parts <= 1 || n == 0 || m == 0 {
        return 0.0;
    }
    let freedom = (parts - 1) as f64;
    let spread = 2.0 / (9.0 * freedom);
    let chi = freedom * (1.0 - spread + 1.645 * spread.sqrt()).powi(3);
    (chi * (1.0 / n as f64 + 1.0 / m as f64) / (8.0 * std::f64::consts::LN_2)).min(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tfseek_testkit::rng::Rng;

    /// About one in twenty of a thousand pairs of draws is above the bound.
    #[test]
    fn chance_stays_below_its_bound() {
        for (parts, n, m) in [(2, 500, 800), (17, 2_000, 2_000), (24, 400, 3_000)] {
            let mut above = 0;
            for seed in 0..1000 {
                let mut rng = Rng::new(seed);
                let mut shares = vec![(0.0, 0.0); parts];
                (0..n).for_each(|_| shares[rng.below(parts)].0 += 1.0);
                (0..m).for_each(|_| shares[rng.below(parts)].1 += 1.0);
                above += usize::from(divergence(&shares).unwrap() > of_chance(parts, n as u64, m as u64));
            }
            assert!((20..=90).contains(&above), "{parts} parts: {above} of 1000");
        }
        assert_eq!((of_chance(1, 5, 5), of_chance(5, 0, 5), of_chance(100, 1, 1)), (0.0, 0.0, 1.0));
    }
}
