//! Mixtures: the component at each position, with exact counts in every cycle.

#![expect(clippy::indexing_slicing, reason = "components are numbered from 0 to their count")]

use super::prp::Permutation;
use super::weighted::scale;
use crate::error::{OrderError, Result};
use std::ops::RangeInclusive;

/// Stream of the cycle permutations, above the streams of all windows of a block order.
const CYCLE_STREAM: u64 = 3 << 32;
/// Distance between the streams of adjacent components.
const COMPONENT_STREAMS: u64 = 1 << 40;
/// Maximum number of components: there are no streams for more.
const MAX_COMPONENTS: usize = (1 << 24) - 2;

/// Sum of the integer weights that represent floating-point proportions.
const PARTS: u64 = 4096;

/// Returns the number that is added to all streams of a component.
pub(super) fn stream(component: usize) -> u64 {
    (component as u64 + 1) * COMPONENT_STREAMS
}

/// Several sources mixed in integer proportions.
///
/// With the weights q and their sum P, each cycle of P positions contains exactly q\[c\] samples of component c. Each cycle has a
/// different order. The samples of a component are numbered 0, 1, 2, .. in the order of their positions. The position is the only
/// state, and any position can be computed directly.
///
/// A position costs one lookup in a [`Permutation`] of P numbers, which is slow for a small P: 300 ns at 100, 10 us at 2. Weights with
/// a common factor mix in the same proportions over longer, cheaper cycles.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Mixture {
    weights: Vec<u64>,
    /// Sum of the weights up to and including each component.
    ends: Vec<u64>,
    seed: u64,
}

/// The permutation of one cycle.
pub(super) struct Cycle {
    number: u64,
    order: Permutation,
}

impl Mixture {
    /// Creates a mixture in these proportions.
    ///
    /// # Errors
    /// [`ErrorKind::Order`](crate::ErrorKind::Order) for no weights, a weight of 0, a sum beyond u64, or more than 2^24 - 2
    /// components.
    pub(super) fn new(weights: impl Into<Vec<u64>>, seed: u64) -> Result<Mixture> {
        let weights = weights.into();
        if weights.is_empty() || weights.len() > MAX_COMPONENTS {
            let reason =
                format!("expected 1 to {MAX_COMPONENTS} components in a mixture, found {}", weights.len());
            return Err(OrderError::Refused { reason: reason.into() }.into());
        }
        let mut sum = 0u64;
        let mut ends = Vec::with_capacity(weights.len());
        for (index, weight) in weights.iter().enumerate() {
            if *weight == 0 {
                return Err(OrderError::Weight { index, reason: "is 0: leave the component out" }.into());
            }
            sum = sum
                .checked_add(*weight)
                .ok_or(OrderError::Weight { index, reason: "makes the sum exceed 2^64 - 1" })?;
            ends.push(sum);
        }
        Ok(Mixture { weights, ends, seed })
    }

    /// Returns the weights.
    pub(super) fn weights(&self) -> &[u64] {
        &self.weights
    }

    /// Returns the length of a cycle: the sum of the weights.
    pub(super) fn cycle_len(&self) -> u64 {
        self.ends.last().copied().unwrap_or_default()
    }

    /// Returns the component at position `t`, and the number of its sample. Positions have no upper limit.
    pub(super) fn get(&self, t: u64) -> (usize, u64) {
        self.get_in(&self.cycle(t), t)
    }

    /// Returns the position of a component's sample, or `None` if the component does not exist or the position is beyond u64.
    pub(super) fn inverse(&self, component: usize, index: u64) -> Option<u64> {
        let weight = *self.weights.get(component)?;
        let cycle = index / weight;
        let inside = self.ends[component] - weight + index % weight;
        let inside = self.permuted(cycle).inverse(inside);
        cycle.checked_mul(self.cycle_len())?.checked_add(inside)
    }

    /// Returns the samples of a component in all cycles that contain a position of `first..=last`.
    pub(super) fn samples(&self, component: usize, first: u64, last: u64) -> RangeInclusive<u64> {
        let (weight, cycle) = (self.weights[component], self.cycle_len());
        // The products are at most `first` and `last`, but the last cycle may end beyond u64.
        first / cycle * weight..=(last / cycle * weight).saturating_add(weight - 1)
    }

    /// Returns the cycle that contains a position.
    pub(super) fn cycle(&self, t: u64) -> Cycle {
        let number = t / self.cycle_len();
        Cycle { number, order: self.permuted(number) }
    }

    /// Does the same as [`get`](Mixture::get), with a cached cycle. It replaces `cycle` if `t` is in another one.
    pub(super) fn get_by(&self, cycle: &mut Cycle, t: u64) -> (usize, u64) {
        if t / self.cycle_len() != cycle.number {
            *cycle = self.cycle(t);
        }
        self.get_in(cycle, t)
    }

    fn get_in(&self, cycle: &Cycle, t: u64) -> (usize, u64) {
        let u = cycle.order.get(t % self.cycle_len());
        let component = self.ends.partition_point(|end| *end <= u);
        let weight = self.weights[component];
        // This is at most t: a component has at most as many samples as there are positions up to t.
        (component, cycle.number * weight + (u - (self.ends[component] - weight)))
    }

    fn permuted(&self, cycle: u64) -> Permutation {
        Permutation::new(self.cycle_len(), self.seed, cycle, CYCLE_STREAM)
    }
}

/// Converts floating-point proportions to integer weights with the sum 4096, by the largest remainder method. Each weight is at
/// least 1.
///
/// The proportions are first scaled to integers below 2^32, so all further steps are exact. A component whose share of the 4096
/// parts is below 1 gets 1. The remaining parts are divided among the other components. Each gets the integer part of its share.
/// Parts left over go one each to the components with the largest fractions. On a tie the first component gets the part.
///
/// ```
/// assert_eq!(tfseek::order::mixture_weights(&[0.7, 0.2999, 0.0001])?, [2867, 1228, 1]);
/// # Ok::<(), tfseek::Error>(())
/// ```
///
/// # Errors
/// [`ErrorKind::Order`](crate::ErrorKind::Order) for a proportion that is 0, negative, infinite or NaN, for no proportions, and for
/// more than 4096 of them.
pub fn mixture_weights(proportions: &[f64]) -> Result<Vec<u64>> {
    let scaled = scale(proportions)?;
    if scaled.is_empty() || scaled.len() as u64 > PARTS {
        let reason = format!("expected 1 to {PARTS} floating-point proportions, found {}", scaled.len());
        return Err(OrderError::Refused { reason: reason.into() }.into());
    }
    if let Some(index) = scaled.iter().position(|x| *x == 0) {
        return Err(OrderError::Weight { index, reason: "is 0: leave the component out" }.into());
    }
    let mut weights = vec![0; scaled.len()];
    let (parts, shared) = loop {
        // The parts left for components without a weight, and the sum of their proportions.
        let parts = PARTS - weights.iter().sum::<u64>();
        let open = || weights.iter().zip(&scaled).filter(|(w, _)| **w == 0).map(|(_, x)| u64::from(*x));
        let shared: u64 = open().sum();
        if open().all(|x| x * parts >= shared) {
            break (parts, shared);
        }
        let sparse = |(w, x): (&u64, &u32)| *w == 0 && u64::from(*x) * parts < shared;
        let sparse: Vec<bool> = weights.iter().zip(&scaled).map(sparse).collect();
        for (weight, _) in weights.iter_mut().zip(sparse).filter(|(_, sparse)| *sparse) {
            *weight = 1;
        }
    };
    let open: Vec<usize> = (0..scaled.len()).filter(|c| weights[*c] == 0).collect();
    let mut left = parts;
    for &c in &open {
        weights[c] = u64::from(scaled[c]) * parts / shared;
        left -= weights[c];
    }
    let mut by_fraction = open;
    // The sort is stable: on a tie the first component stays first.
    by_fraction.sort_by_key(|c| std::cmp::Reverse(u64::from(scaled[*c]) * parts % shared));
    for &c in by_fraction.iter().take(left as usize) {
        weights[c] += 1;
    }
    Ok(weights)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig { cases: 3000, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn mixture_inverse_inverts_get(weights in prop::collection::vec(1u64..1000, 1..40), seed: u64, t in 0..u64::MAX / 2) {
            let mixture = Mixture::new(weights, seed).unwrap();
            let (c, index) = mixture.get(t);
            prop_assert_eq!(mixture.inverse(c, index), Some(t));
        }
    }
}
