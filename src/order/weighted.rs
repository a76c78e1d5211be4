//! Weighted draws with replacement, from Vose's alias table in integers.

#![expect(clippy::indexing_slicing, reason = "records are numbered from 0 to the number of weights")]

use super::digest::digest;
use super::prp::{absorb, mulhi, nth};
use crate::error::{Error, OrderError, Result};
use std::fmt;
use std::sync::Arc;

const TAG: u64 = u64::from_be_bytes(*b"TFRDALI1");

/// The largest weight. Floating-point weights are scaled so that their maximum becomes this weight.
const MAX: u32 = u32::MAX;

/// One weight per record, for draws with replacement.
///
/// Each record is drawn with a probability proportional to its weight. Records of weight 0 are never drawn. A
/// draw is a function of its number and takes constant time. The table for it is built once and takes 12
/// bytes per record.
///
/// ```
/// use tfseek::order::{Order, Spec, Weights};
/// let weights = Weights::new([5, 2, 1, 0, 8])?;
/// let order = Order::new(&Spec::Weighted(weights), 5, 1, 0)?;
/// let mut draws = [0; 5];
/// order.fill(0, &mut draws)?;
/// assert_eq!(draws, [0, 4, 0, 4, 0]);
/// # Ok::<(), tfseek::Error>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Weights(Arc<AliasTable>);

#[derive(PartialEq, Eq)]
struct AliasTable {
    weights: Vec<u32>,
    threshold: Vec<u64>,
    alias: Vec<u32>,
    digest: u128,
}

impl Weights {
    /// Builds the table of these weights, in O(n) time.
    ///
    /// # Errors
    /// [`OrderError::Refused`] if there are no weights, all weights are 0, or there are 2^32 or more.
    pub fn new(weights: impl Into<Vec<u32>>) -> Result<Weights> {
        let weights = weights.into();
        if weights.len() as u64 > u64::from(u32::MAX) {
            return Err(Error::order(format!("expected at most 2^32 - 1 weights, found {}", weights.len())));
        }
        if weights.iter().all(|w| *w == 0) {
            return Err(Error::order("expected a weight above 0, found none"));
        }
        let (threshold, alias) = vose(&weights);
        let digest = digest(weights.iter().map(|w| u64::from(*w)));
        Ok(Weights(Arc::new(AliasTable { weights, threshold, alias, digest })))
    }

    /// Returns the number of weights, at least one.
    #[allow(clippy::len_without_is_empty, reason = "there is at least one")]
    pub(super) fn len(&self) -> u64 {
        self.0.weights.len() as u64
    }

    /// Returns the weights.
    pub(super) fn as_slice(&self) -> &[u32] {
        &self.0.weights
    }

    /// Returns the start value of the draws of an epoch.
    pub(super) fn start(&self, seed: u64, epoch: u64, stream: u64) -> u64 {
        absorb([TAG, seed, epoch, stream, self.len()])
    }

    /// Returns the record of draw `t`, for the start value of an epoch.
    pub(super) fn draw(&self, start: u64, t: u64) -> u64 {
        let t = t.wrapping_mul(2);
        let j = mulhi(nth(start, t.wrapping_add(1)), self.len());
        let table = &*self.0;
        // j is below n, which is below 2^32, so the casts lose nothing.
        if nth(start, t.wrapping_add(2)) < table.threshold[j as usize] {
            j
        } else {
            u64::from(table.alias[j as usize])
        }
    }

    /// Returns the XXH3-128 of the weights, which represents them in a state.
    pub(super) fn digest(&self) -> u128 {
        self.0.digest
    }
}

impl TryFrom<&[f64]> for Weights {
    type Error = Error;

    /// Builds the table of weights in proportion to `values`, by section 6 of `docs/order.md`: the largest becomes
    /// 2^32 - 1, and those above 0 are at least 1.
    ///
    /// # Errors
    /// Those of [`new`](Weights::new); [`OrderError::Weight`] for a value that is negative or not finite.
    fn try_from(values: &[f64]) -> Result<Weights> {
        Weights::new(scale(values)?)
    }
}

/// Builds Vose's alias table (1991): of 2^64 draws of index j, `threshold[j]` yield j and the rest yield
/// `alias[j]`. Integer arithmetic is exact except for the last bit of a threshold, and gives the same table
/// on every machine.
fn vose(weights: &[u32]) -> (Vec<u64>, Vec<u32>) {
    let n = weights.len() as u64;
    // The sum and the products are below 2^64, because n and the weights are below 2^32.
    let sum: u64 = weights.iter().map(|w| u64::from(*w)).sum();
    let mut p: Vec<u64> = weights.iter().map(|w| n * u64::from(*w)).collect();
    let mut threshold = vec![u64::MAX; weights.len()];
    let mut alias: Vec<u32> = (0..weights.len() as u32).collect();
    let (mut small, mut large): (Vec<u32>, Vec<u32>) = alias.iter().partition(|i| p[**i as usize] < sum);
    while !small.is_empty()
        && let Some(g) = large.pop()
        && let Some(s) = small.pop()
    {
        let s = s as usize;
        let to = g as usize;
        // p[s] is below sum, so the quotient is below 2^64.
        threshold[s] = ((u128::from(p[s]) << 64) / u128::from(sum)) as u64;
        alias[s] = g;
        p[to] -= sum - p[s];
        if p[to] < sum { small.push(g) } else { large.push(g) }
    }
    (threshold, alias)
}

/// Scales floats to integers in proportion. The largest becomes [`MAX`], 0 stays 0, and other values are at
/// least 1.
pub(super) fn scale(weights: &[f64]) -> Result<Vec<u32>> {
    if let Some(index) = weights.iter().position(|x| !(x.is_finite() && *x >= 0.0)) {
        return Err(OrderError::Weight { index, reason: "is negative, infinite or not a number" }.into());
    }
    let max = weights.iter().copied().fold(0.0, f64::max);
    // The division comes first, so nothing becomes infinite. The quotient is at most 1, so the cast only
    // drops the fraction.
    let one = |x: f64| if x > 0.0 { ((x / max * f64::from(MAX)) as u32).max(1) } else { 0 };
    Ok(weights.iter().map(|x| one(*x)).collect())
}

impl fmt::Debug for Weights {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Weights").field("len", &self.len()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A draw depends only on its number, even far beyond the length of an epoch.
    #[test]
    fn draws_beyond_the_epoch() {
        let weights = Weights::new([5, 2, 1, 0, 8]).unwrap();
        let start = weights.start(1, 0, 0);
        let first: Vec<u64> = (0..12).map(|t| weights.draw(start, t)).collect();
        assert_eq!(first, [0, 4, 0, 4, 0, 4, 0, 0, 0, 0, 2, 4]);
        let far: Vec<u64> = (1 << 62..(1 << 62) + 8).map(|t| weights.draw(start, t)).collect();
        assert_eq!(far, [0, 1, 4, 4, 1, 4, 4, 4]);
    }
}
