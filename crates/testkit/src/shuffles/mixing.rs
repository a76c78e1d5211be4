//! Measures of the quality of a shuffle.

use super::{BATCH, RECORDS};

/// Quality of a shuffle. Batches drawn at random have the values 1, about 226 (of 1,000 classes), 1 and 1.
#[derive(Clone, Copy, Debug)]
pub struct Mixing {
    /// Variance of the class shares of a batch, relative to that of batches drawn at random, as in
    /// docs/order.md.
    pub deff: f64,
    /// Mean number of classes in a batch.
    pub classes: f64,
    /// Frequency with which two records of a batch share a batch in the next epoch, relative to that by
    /// chance.
    pub met_again: f64,
    /// Mean distance between the positions of a record in two successive epochs, relative to n / 3, the mean
    /// distance of two random positions.
    pub moved: f64,
}

/// Measures successive epochs. An incomplete last batch is left out. Sums are integers, so the result is the
/// same on every machine.
pub fn measure(epochs: impl Iterator<Item = Vec<u64>>, class: impl Fn(u64) -> u64, classes: u64) -> Mixing {
    // Pairs of equal class, numbers of classes, pairs that share a batch again, and distances.
    let (mut alike, mut seen, mut again, mut moved) = (0u64, 0u64, 0u64, 0u64);
    let (mut batches, mut compared) = (0u64, 0u64);
    let mut class_pairs = PairCounter::new(classes);
    let mut batch_pairs = PairCounter::new(RECORDS.div_ceil(BATCH));
    let mut before: Option<Vec<u32>> = None;
    for records in epochs {
        let mut positions = vec![0u32; records.len()];
        (0..).zip(&records).for_each(|(position, record)| positions[*record as usize] = position);
        for batch in records.chunks_exact(BATCH as usize) {
            batches += 1;
            let (pairs, distinct) = class_pairs.count(batch.iter().map(|record| class(*record)));
            alike += pairs;
            seen += distinct;
            if let Some(before) = &before {
                compared += 1;
                let batches_before = batch.iter().map(|record| u64::from(before[*record as usize]) / BATCH);
                again += batch_pairs.count(batches_before).0;
            }
        }
        if let Some(before) = &before {
            moved += positions.iter().zip(before).map(|(a, b)| u64::from(a.abs_diff(*b))).sum::<u64>();
        }
        before = Some(positions);
    }
    let (pairs, n) = ((BATCH * (BATCH - 1) / 2) as f64, RECORDS as f64);
    // The probability that two random records have the same class. The excess of such pairs in a batch gives
    // the variance.
    let chance = 1.0 / classes as f64;
    let alike = alike as f64 / (pairs * batches as f64);
    let epochs_compared = compared / (RECORDS / BATCH);
    Mixing {
        deff: 1.0 + (BATCH - 1) as f64 * (alike - chance) / (1.0 - chance),
        classes: seen as f64 / batches as f64,
        met_again: again as f64 / (pairs * compared as f64) / ((BATCH - 1) as f64 / (n - 1.0)),
        moved: moved as f64 / (n * epochs_compared as f64) / (n / 3.0),
    }
}

/// A counter of equal pairs and of distinct numbers among the numbers of a batch.
struct PairCounter(Vec<u64>);

impl PairCounter {
    fn new(numbers: u64) -> PairCounter {
        PairCounter(vec![0; numbers as usize])
    }

    /// Returns the number of equal pairs and the number of distinct numbers.
    fn count(&mut self, numbers: impl Iterator<Item = u64> + Clone) -> (u64, u64) {
        let (mut pairs, mut distinct) = (0, 0);
        for number in numbers.clone() {
            let count = &mut self.0[number as usize];
            pairs += *count;
            distinct += u64::from(*count == 0);
            *count += 1;
        }
        numbers.for_each(|number| self.0[number as usize] = 0);
        (pairs, distinct)
    }
}
