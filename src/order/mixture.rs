//! Mixtures: the component at each position, with exact counts in every cycle.

#![expect(clippy::indexing_slicing, reason = "components are numbered from 0 to their count")]

use super::prp::{Permutation, SMALL};
use super::weighted::scale;
use crate::error::{Error, OrderError, Result};
use std::ops::RangeInclusive;
use std::sync::{Mutex, MutexGuard};

/// Stream of the cycle permutations, above the streams of all windows of a block order.
pub(super) const CYCLE_STREAM: u64 = 3 << 32;
/// Distance between the streams of adjacent components.
const COMPONENT_STREAMS: u64 = 1 << 40;
/// Maximum number of components: there are no streams for more.
const MAX_COMPONENTS: usize = (1 << 24) - 2;

/// Maximum sum of weights that are not all 1. It bounds the table of a cycle.
const MAX_SUM: u64 = 1 << 20;

/// Sum of the integer weights that represent floating-point proportions.
const PARTS: u64 = 4096;

/// Returns the number that is added to all streams of a component.
pub(super) fn stream(component: usize) -> u64 {
    (component as u64 + 1) * COMPONENT_STREAMS
}

/// Several sources mixed in integer proportions.
///
/// With the weights q and their sum P, each cycle of P positions contains exactly q\[c\] samples of component
/// c. Each cycle has a different order. The samples of a component are numbered 0, 1, 2, .. in the order of
/// their positions.
///
/// The number of a sample is the number of its component's positions before it, so a cycle needs a table of P
/// entries. The table of the cycle that was used last is kept. If all weights are 1, no table is needed, and
/// only short cycles have one. With the table, what a component has given is a prefix of its own order.
/// Samples that are permuted within a cycle need no table, but at a weight of 0.7 a source of 1,000 records
/// gives only 696 different ones among its first 1,000.
pub(super) struct Mixture {
    pub(super) weights: Vec<u64>,
    /// Sum of the weights up to and including each component.
    ends: Vec<u64>,
    seed: u64,
    /// Position at which cycle 0 begins. No position before it has a sample.
    pub(super) from: u64,
    /// Number of samples of each component before that position. Empty: 0 of each.
    given: Vec<u64>,
    /// The table of the cycle that was used last.
    table: Mutex<CycleTable>,
}

/// The component and the rank among its positions, for each position of a cycle.
#[derive(Default)]
struct CycleTable {
    cycle: Option<u64>,
    entries: Vec<(u32, u32)>,
    /// Number of positions of each component so far, while the table is made.
    counts: Vec<u32>,
}

/// One cycle of a mixture.
pub(super) struct Cycle<'a> {
    number: u64,
    samples: CycleSamples<'a>,
}

enum CycleSamples<'a> {
    /// All weights are 1, and there are many: the permutation of the components.
    Even(Permutation),
    /// The kept table.
    Kept(MutexGuard<'a, CycleTable>),
    /// A table of this caller, while another one uses the kept table. A forked child may find it locked
    /// forever.
    Own(CycleTable),
}

/// The positions of a component in one cycle, in ascending order. For [`Mixture::inverse`].
#[derive(Default)]
pub(super) struct ComponentPositions {
    cycle: Option<u64>,
    positions: Vec<u64>,
}

impl Mixture {
    /// Creates a mixture in these proportions.
    ///
    /// # Errors
    /// [`ErrorKind::Order`](crate::ErrorKind::Order) for no weights, a weight of 0, more than 2^24 - 2
    /// components, or weights that are not all 1 with a sum above 2^20.
    pub(super) fn new(weights: impl Into<Vec<u64>>, seed: u64) -> Result<Mixture> {
        let weights = weights.into();
        if weights.is_empty() || weights.len() > MAX_COMPONENTS {
            let reason =
                format!("expected 1 to {MAX_COMPONENTS} components in a mixture, found {}", weights.len());
            return Err(Error::order(reason));
        }
        let limit = if weights.iter().all(|weight| *weight == 1) { u64::MAX } else { MAX_SUM };
        let mut sum = 0u64;
        let mut ends = Vec::with_capacity(weights.len());
        for (index, weight) in weights.iter().enumerate() {
            if *weight == 0 {
                return Err(OrderError::Weight { index, reason: "is 0: leave the component out" }.into());
            }
            sum = sum
                .checked_add(*weight)
                .filter(|sum| *sum <= limit)
                .ok_or(OrderError::Weight { index, reason: "makes the sum exceed 2^20" })?;
            ends.push(sum);
        }
        Ok(Mixture { weights, ends, seed, from: 0, given: Vec::new(), table: Mutex::default() })
    }

    /// Returns the mixture with its cycle 0 at position `from`, up to which the components have given these
    /// numbers of samples.
    ///
    /// # Errors
    /// [`OrderError::State`] unless the sum of the numbers, one for each component, is `from`.
    pub(super) fn starting_at(mut self, from: u64, given: Vec<u64>) -> Result<Mixture> {
        let sum = given.iter().try_fold(0u64, |sum, count| sum.checked_add(*count));
        if sum != Some(from) {
            let expected = format!("{} numbers with the sum {from}", self.weights.len());
            return Err(Error::state("given", expected, format!("{given:?}")));
        }
        (self.from, self.given) = (from, given);
        Ok(self)
    }

    /// Returns the length of a cycle: the sum of the weights.
    pub(super) fn cycle_len(&self) -> u64 {
        self.ends[self.ends.len() - 1]
    }

    /// Returns the number of samples of each component before position `t`, which is not before the first
    /// cycle.
    pub(super) fn given_before(&self, t: u64) -> Vec<u64> {
        let (number, rest) = self.split(t);
        let mut counts: Vec<u64> =
            (0..self.weights.len()).map(|c| self.given(c) + number * self.weights[c]).collect();
        let mut cycle = self.cycle(t);
        for position in t - rest..t {
            counts[self.get_by(&mut cycle, position).0] += 1;
        }
        counts
    }

    /// Returns the position of a component's sample. `None` if the component does not exist, the sample is
    /// before the first cycle, or the position is beyond u64. `own` keeps the positions of the component in
    /// one cycle for the next call.
    pub(super) fn inverse(&self, component: usize, index: u64, own: &mut ComponentPositions) -> Option<u64> {
        let weight = *self.weights.get(component)?;
        let index = index.checked_sub(self.given(component))?;
        let cycle = index / weight;
        if own.cycle != Some(cycle) {
            let order = self.permuted(cycle);
            own.positions.clear();
            own.positions
                .extend((self.ends[component] - weight..self.ends[component]).map(|u| order.inverse(u)));
            own.positions.sort_unstable();
            own.cycle = Some(cycle);
        }
        let inside = *own.positions.get((index % weight) as usize)?;
        cycle.checked_mul(self.cycle_len())?.checked_add(inside)?.checked_add(self.from)
    }

    /// Returns the samples of a component in all cycles that contain a position of `first..=last`, which are
    /// not before the first cycle.
    pub(super) fn samples(&self, component: usize, first: u64, last: u64) -> RangeInclusive<u64> {
        let weight = self.weights[component];
        let given = self.given(component);
        let [first, last] = [first, last].map(|t| self.split(t).0 * weight + given);
        // The products are at most `first` and `last`, but the last cycle may end beyond u64.
        first..=last.saturating_add(weight - 1)
    }

    /// Returns the cycle that contains a position.
    pub(super) fn cycle(&self, t: u64) -> Cycle<'_> {
        let number = self.split(t).0;
        // A table of few positions takes less time than one of them.
        if self.cycle_len() == self.weights.len() as u64 && self.cycle_len() > SMALL as u64 {
            return Cycle { number, samples: CycleSamples::Even(self.permuted(number)) };
        }
        let samples = match self.table.try_lock() {
            Ok(table) => CycleSamples::Kept(table),
            Err(_) => CycleSamples::Own(CycleTable::default()),
        };
        let mut cycle = Cycle { number, samples };
        self.make(&mut cycle);
        cycle
    }

    /// Returns the component at position `t`, and the number of its sample. Replaces `cycle` if `t` is in
    /// another one.
    pub(super) fn get_by(&self, cycle: &mut Cycle<'_>, t: u64) -> (usize, u64) {
        let (number, inside) = self.split(t);
        if number != cycle.number {
            cycle.number = number;
            self.make(cycle);
        }
        let (component, rank) = match &cycle.samples {
            CycleSamples::Even(order) => (order.get(inside) as usize, 0),
            CycleSamples::Kept(table) => table.get(inside),
            CycleSamples::Own(table) => table.get(inside),
        };
        // This is at most t: a component has at most as many samples as there are positions up to t.
        (component, self.given(component) + number * self.weights[component] + rank)
    }

    /// Makes the permutation or the table of a cycle.
    fn make(&self, cycle: &mut Cycle<'_>) {
        let number = cycle.number;
        match &mut cycle.samples {
            CycleSamples::Even(order) => *order = self.permuted(number),
            CycleSamples::Kept(table) => table.make(self, number),
            CycleSamples::Own(table) => table.make(self, number),
        }
    }

    /// Returns the cycle of a position, which is not before the first cycle, and the position in it.
    fn split(&self, t: u64) -> (u64, u64) {
        let ahead = t - self.from;
        (ahead / self.cycle_len(), ahead % self.cycle_len())
    }

    fn given(&self, component: usize) -> u64 {
        self.given.get(component).copied().unwrap_or(0)
    }

    fn permuted(&self, cycle: u64) -> Permutation {
        Permutation::new(self.cycle_len(), self.seed, cycle, CYCLE_STREAM)
    }
}

impl CycleTable {
    fn make(&mut self, mixture: &Mixture, cycle: u64) {
        if self.cycle == Some(cycle) {
            return;
        }
        let order = mixture.permuted(cycle);
        // A table that is left in the middle is not taken for a complete one.
        self.cycle = None;
        self.entries.clear();
        self.counts.clear();
        self.counts.resize(mixture.weights.len(), 0);
        let mut numbers = [0; SMALL];
        let len = mixture.cycle_len();
        self.entries.reserve_exact(len as usize);
        for start in (0..len).step_by(SMALL) {
            let numbers = &mut numbers[..(len - start).min(SMALL as u64) as usize];
            if len <= SMALL as u64 {
                order.fill_small(numbers);
            } else {
                order.fill(start, numbers);
            }
            for u in numbers {
                let component = mixture.ends.partition_point(|end| *end <= *u);
                self.entries.push((component as u32, self.counts[component]));
                self.counts[component] += 1;
            }
        }
        self.cycle = Some(cycle);
    }

    fn get(&self, inside: u64) -> (usize, u64) {
        let (component, rank) = self.entries[inside as usize];
        (component as usize, u64::from(rank))
    }
}

/// Converts floating-point proportions to integer weights with the sum 4096, by the largest remainder method.
/// Each weight is at least 1.
///
/// The proportions are first scaled to integers below 2^32, so all further steps are exact. A component whose
/// share of the 4096 parts is below 1 gets 1. The remaining parts are divided among the other components.
/// Each gets the integer part of its share. Parts left over go one each to the components with the largest
/// fractions. On a tie the first component gets the part.
///
/// ```
/// assert_eq!(tfseek::order::mixture_weights(&[0.7, 0.2999, 0.0001])?, [2867, 1228, 1]);
/// # Ok::<(), tfseek::Error>(())
/// ```
///
/// # Errors
/// [`ErrorKind::Order`](crate::ErrorKind::Order) for a proportion that is 0, negative, infinite or NaN, for
/// no proportions, and for more than 4096 of them.
pub fn mixture_weights(proportions: &[f64]) -> Result<Vec<u64>> {
    let scaled = scale(proportions)?;
    if scaled.is_empty() || scaled.len() as u64 > PARTS {
        let reason = format!("expected 1 to {PARTS} floating-point proportions, found {}", scaled.len());
        return Err(Error::order(reason));
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
        #![proptest_config(ProptestConfig { cases: 1000, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn mixture_inverse_inverts_get(
            weights in prop::collection::vec(1u64..300, 1..12), seed: u64, t in 0..u64::MAX / 2, from in 0u64..1000,
        ) {
            let given = weights.iter().enumerate().map(|(c, _)| if c == 0 { from } else { 0 }).collect();
            let mixture = Mixture::new(weights, seed).unwrap().starting_at(from, given).unwrap();
            let t = t + from;
            let (c, index) = mixture.get_by(&mut mixture.cycle(t), t);
            prop_assert_eq!(mixture.inverse(c, index, &mut ComponentPositions::default()), Some(t));
        }
    }
}
