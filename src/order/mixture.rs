//! Which component comes at which position: exact counts in every cycle.

use super::prp::Permutation;
use super::weighted::scale;
use crate::error::{OrderError, Result};
use std::ops::RangeInclusive;

/// Stream of the cycles, above all windows of a block order.
const CYCLES: u64 = 3 << 32;
/// Components are this far apart in streams, and so many of them have streams.
const COMPONENT: u64 = 1 << 40;
const MAX_COMPONENTS: usize = (1 << 24) - 2;

/// What floats are made parts of.
const PARTS: u64 = 4096;

/// The stream that all streams of a component are moved by.
pub(super) fn stream(component: usize) -> u64 {
    (component as u64 + 1) * COMPONENT
}

/// Several sources mixed in integer proportions.
///
/// With the weights q and their sum P, each cycle of P positions holds exactly q\[c\] samples of component c, in an order of its
/// own. The samples of a component are numbered 0, 1, 2, .. as they come. So there is no drawing and no state but the position,
/// and any position can be asked for.
///
/// A position costs one number of a [`Permutation`] of P, so a small P is dear: 300 ns at 100, 10 us at 2. Weights with a common
/// factor mix in the same proportions over longer, cheaper cycles.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Mixture {
    weights: Vec<u64>,
    /// Sum of the weights up to and with this one.
    ends: Vec<u64>,
    seed: u64,
}

/// One cycle, ready to be looked into.
pub(super) struct Cycle {
    number: u64,
    order: Permutation,
}

impl Mixture {
    /// A mixture in these proportions.
    ///
    /// # Errors
    /// [`ErrorKind::Order`](crate::ErrorKind::Order): no weights, a weight of 0, a sum beyond u64, or more than 2^24 - 2
    /// components.
    pub(super) fn new(weights: impl Into<Vec<u64>>, seed: u64) -> Result<Mixture> {
        let weights = weights.into();
        if weights.is_empty() || weights.len() > MAX_COMPONENTS {
            let reason =
                format!("a mixture has 1 to {MAX_COMPONENTS} components, this one has {}", weights.len());
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

    /// The weights.
    pub(super) fn weights(&self) -> &[u64] {
        &self.weights
    }

    /// Their sum: the length of a cycle.
    pub(super) fn cycle_len(&self) -> u64 {
        self.ends.last().copied().unwrap_or_default()
    }

    /// Which component comes at position `t`, and which of its samples. There is no last position.
    pub(super) fn get(&self, t: u64) -> (usize, u64) {
        self.get_in(&self.cycle(t), t)
    }

    /// The position of a component's sample; `None` where there is no such component, or the position is beyond u64.
    pub(super) fn inverse(&self, component: usize, index: u64) -> Option<u64> {
        let weight = *self.weights.get(component)?;
        let cycle = index / weight;
        let inside = self.ends[component] - weight + index % weight;
        let inside = self.permuted(cycle).inverse(inside);
        cycle.checked_mul(self.cycle_len())?.checked_add(inside)
    }

    /// The samples of a component in the cycles that the positions `first..=last` touch.
    pub(super) fn samples(&self, component: usize, first: u64, last: u64) -> RangeInclusive<u64> {
        let (weight, cycle) = (self.weights[component], self.cycle_len());
        // At most `first` and `last`; but the last cycle may end beyond u64.
        first / cycle * weight..=(last / cycle * weight).saturating_add(weight - 1)
    }

    /// The cycle of a position.
    pub(super) fn cycle(&self, t: u64) -> Cycle {
        let number = t / self.cycle_len();
        Cycle { number, order: self.permuted(number) }
    }

    /// [`get`](Mixture::get), with a cycle at hand, which is replaced where it is another.
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
        // At most t: a component has no more samples than there were positions.
        (component, cycle.number * weight + (u - (self.ends[component] - weight)))
    }

    fn permuted(&self, cycle: u64) -> Permutation {
        Permutation::new(self.cycle_len(), self.seed, cycle, CYCLES)
    }
}

/// Integer weights for proportions in floating point: 4096 parts by largest remainder, each component at least one.
///
/// The floats become integers first, as those of [`Weights`](super::Weights) do, so that all else is exact. A component whose
/// part would be below 1 gets 1; the others share what is left: each its whole parts, and of those that remain one more for the
/// largest fractions, of equal ones for the component that comes first.
///
/// ```
/// assert_eq!(tfseek::order::mixture_weights(&[0.7, 0.2999, 0.0001])?, [2867, 1228, 1]);
/// # Ok::<(), tfseek::Error>(())
/// ```
///
/// # Errors
/// [`ErrorKind::Order`](crate::ErrorKind::Order): a weight that is 0, negative, infinite or no number; none, or more than 4096.
pub fn mixture_weights(proportions: &[f64]) -> Result<Vec<u64>> {
    let scaled = scale(proportions)?;
    if scaled.is_empty() || scaled.len() as u64 > PARTS {
        let reason = format!("proportions in floats are for 1 to {PARTS} components, not {}", scaled.len());
        return Err(OrderError::Refused { reason: reason.into() }.into());
    }
    if let Some(index) = scaled.iter().position(|x| *x == 0) {
        return Err(OrderError::Weight { index, reason: "is 0: leave the component out" }.into());
    }
    let mut weights = vec![0; scaled.len()];
    let (parts, shared) = loop {
        // What those without a weight yet share, and the sum of their proportions.
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
    // Stable: of equal fractions the first component stays first.
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
        fn mixtures_there_and_back(weights in prop::collection::vec(1u64..1000, 1..40), seed: u64, t in 0..u64::MAX / 2) {
            let mixture = Mixture::new(weights, seed).unwrap();
            let (c, index) = mixture.get(t);
            prop_assert_eq!(mixture.inverse(c, index), Some(t));
        }
    }
}
