//! Splits of the records by a hash: a record stays in its split when others are added.

use crate::error::{Error, Result};
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// Number of decimals of a fraction, at most.
const DECIMALS: usize = 27;
/// The fractions from 0 to 1 that are accepted.
pub(crate) const FRACTION: &str = "a fraction with at most 27 decimals, of which 1e-27 is the smallest";
/// The fraction 1.
const ONE: u128 = 10u128.pow(DECIMALS as u32);

/// Splits of a dataset in given proportions. The hash of a record decides about its split.
///
/// A split is an interval of the hashes. With the cumulative fractions `c`, hash `h` is in split `k` if
/// `c[k] <= h / 2^64 < c[k + 1]`. Fractions are decimal numbers: the shortest ones that are read as the given
/// floats, so 0.7, 0.2 and 0.1 sum to exactly 1. The comparison is exact.
///
/// ```
/// use tfseek::order::Split;
/// let split = Split::new(&[0.2, 0.8])?;
/// let hash = Split::hash(b"abc", 7);
/// assert_eq!(hash, 0x48ff_56f5_69e3_9912); // 0.285 * 2^64
/// assert_eq!(split.number(hash), Some(1));
/// assert_eq!(Split::new(&[0.5])?.number(1 << 63), None);
/// # Ok::<(), tfseek::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Split {
    /// End of the hashes of each split, up to 2^64.
    ends: Vec<u128>,
}

impl Split {
    /// Creates splits of these fractions.
    ///
    /// # Errors
    /// [`OrderError::Refused`](crate::error::OrderError::Refused) for a number outside 0 to 1 or with more than
    /// 27 decimals, and for a sum above 1.
    pub fn new(fractions: &[f64]) -> Result<Split> {
        let mut sum = 0;
        let ends = fractions.iter().map(|&fraction| {
            let found = || {
                let expected =
                    if (0.0..=1.0).contains(&fraction) { FRACTION } else { "a fraction from 0 to 1" };
                let tiny = fraction.abs() < 1e-6 && fraction != 0.0;
                if tiny {
                    format!("expected {expected}, found {fraction:e}")
                } else {
                    format!("expected {expected}, found {fraction}")
                }
            };
            sum += decimal(fraction).ok_or_else(|| Error::order(found()))?;
            if sum > ONE {
                let found = format!("expected fractions with a sum of at most 1, found {}", text(sum));
                return Err(Error::order(found));
            }
            Ok(scaled(sum))
        });
        Ok(Split { ends: ends.collect::<Result<_>>()? })
    }

    /// Returns the number of the split of a hash. `None` if the fractions sum to less than 1, and the hash is
    /// in the rest.
    pub fn number(&self, hash: u64) -> Option<usize> {
        let number = self.ends.partition_point(|&end| end <= u128::from(hash));
        (number < self.ends.len()).then_some(number)
    }

    /// Returns true if the fractions sum to 1, so that every hash is in a split.
    pub fn is_complete(&self) -> bool {
        self.ends.last() == Some(&(1 << 64))
    }

    /// Returns the XXH3-64 of `bytes` with a seed.
    pub fn hash(bytes: &[u8], seed: u64) -> u64 {
        xxh3_64_with_seed(bytes, seed)
    }
}

/// Returns a fraction from 0 to 1 as a multiple of 1 / `ONE`.
fn decimal(fraction: f64) -> Option<u128> {
    // Floats are printed without exponents, and `-0` is not 0.
    let text = fraction.abs().to_string();
    let (whole, decimals) = text.split_once('.').unwrap_or((&text, ""));
    if !(0.0..=1.0).contains(&fraction) || decimals.len() > DECIMALS {
        return None;
    }
    format!("{whole}{decimals:0<DECIMALS$}").parse().ok()
}

/// Returns a multiple of 1 / `ONE` as a decimal number.
fn text(number: u128) -> String {
    let text = format!("{}.{:0DECIMALS$}", number / ONE, number % ONE);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Returns the least integer that is not below `2^64 * number / ONE`. `number` is at most `ONE`.
fn scaled(number: u128) -> u128 {
    // Two steps of 32 bits, because the whole product has up to 154 bits.
    let high = (number << 32) / ONE;
    let rest = (number << 32) % ONE;
    (high << 32) + (rest << 32).div_ceil(ONE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_are_exact() {
        let ends = |fractions: &[f64]| Split::new(fractions).unwrap().ends;
        assert_eq!(ends(&[0.5, 0.25, 0.25]), [1 << 63, 3 << 62, 1 << 64]);
        // 2^64 / 10 = 1844674407370955161.6
        assert_eq!(ends(&[0.1]), [1_844_674_407_370_955_162]);
        assert_eq!(ends(&[0.7, 0.2, 0.1])[2], 1 << 64);
        assert_eq!(ends(&[1e-27, 0.0]), [1, 1]);
        assert_eq!(ends(&[-0.0, 1.0]), [0, 1 << 64]);
        assert_eq!(ends(&[]), [0; 0]);
        for (fractions, complete) in [(&[0.1, 0.2, 0.7][..], true), (&[0.1, 0.2], false), (&[], false)] {
            assert_eq!(Split::new(fractions).unwrap().is_complete(), complete, "{fractions:?}");
        }
    }

    #[test]
    fn splits_are_half_open() {
        let split = Split::new(&[0.5, 0.0, 0.25]).unwrap();
        for (hash, number) in
            [(0, Some(0)), ((1 << 63) - 1, Some(0)), (1 << 63, Some(2)), (3 << 62, None), (u64::MAX, None)]
        {
            assert_eq!(split.number(hash), number, "{hash}");
        }
        assert_eq!(Split::new(&[1.0]).unwrap().number(u64::MAX), Some(0));
    }

    /// The tenth of the hashes, compared in exact arithmetic.
    #[test]
    fn a_fraction_is_a_comparison() {
        let split = Split::new(&[0.1]).unwrap();
        let border = split.ends[0] as u64;
        for hash in (border - 3..border + 3).chain([0, u64::MAX]) {
            assert_eq!(split.number(hash).is_some(), u128::from(hash) * 10 < 1 << 64, "{hash}");
        }
    }

    #[test]
    fn other_fractions_are_refused() {
        for (fractions, words) in [
            (&[f64::NAN][..], "from 0 to 1, found NaN"),
            (&[1e-30], "a fraction with at most 27 decimals, of which 1e-27 is the smallest, found 1e-30"),
            (&[-0.5], "found -0.5"),
            (&[1.5], "found 1.5"),
            (&[f64::INFINITY], "found inf"),
            (&[1e-28], "found 1e-28"),
            (&[0.9, 0.2], "expected fractions with a sum of at most 1, found 1.1"),
        ] {
            let e = Split::new(fractions).unwrap_err();
            assert!(e.to_string().contains(words), "{e}");
        }
    }
}
