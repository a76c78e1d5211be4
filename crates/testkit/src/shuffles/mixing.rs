//! How well the records of an epoch are mixed.

use super::{BATCH, RECORDS};

/// Of batches drawn at random: 1, some 226 of 1,000 classes, 1 and 1.
#[derive(Clone, Copy, Debug)]
pub struct Mixing {
    /// How much the classes' shares of a batch vary, over how much they vary in batches drawn at random. As in docs/order.md.
    pub deff: f64,
    /// Classes in a batch, on average.
    pub classes: f64,
    /// How often two records of a batch are in one batch again in the next epoch, over how often that happens by chance.
    pub met_again: f64,
    /// How far a record's position moves from one epoch to the next, over n / 3, the mean distance of two drawn positions.
    pub moved: f64,
}

/// Measures epochs that follow each other; what does not fill a batch is left out. Sums are whole numbers: the same everywhere.
pub fn measure(epochs: impl Iterator<Item = Vec<u64>>, class: impl Fn(u64) -> u64, classes: u64) -> Mixing {
    // Pairs of equal class, classes seen, pairs that met again, and distances.
    let (mut alike, mut seen, mut again, mut moved) = (0u64, 0u64, 0u64, 0u64);
    let (mut batches, mut compared) = (0u64, 0u64);
    let mut of_class = Tally::new(classes);
    let mut of_batch = Tally::new(RECORDS.div_ceil(BATCH));
    let mut before: Option<Vec<u32>> = None;
    for records in epochs {
        let mut places = vec![0u32; records.len()];
        (0..).zip(&records).for_each(|(place, record)| places[*record as usize] = place);
        for batch in records.chunks_exact(BATCH as usize) {
            batches += 1;
            let (pairs, distinct) = of_class.count(batch.iter().map(|record| class(*record)));
            alike += pairs;
            seen += distinct;
            if let Some(before) = &before {
                compared += 1;
                let met = batch.iter().map(|record| u64::from(before[*record as usize]) / BATCH);
                again += of_batch.count(met).0;
            }
        }
        if let Some(before) = &before {
            moved += places.iter().zip(before).map(|(a, b)| u64::from(a.abs_diff(*b))).sum::<u64>();
        }
        before = Some(places);
    }
    let (pairs, n) = ((BATCH * (BATCH - 1) / 2) as f64, RECORDS as f64);
    // Two draws are of one class with this probability. A batch's counts vary by how many more pairs of it are.
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

/// Counts the numbers of a batch: how many pairs are equal, and how many numbers are different.
struct Tally(Vec<u64>);

impl Tally {
    fn new(numbers: u64) -> Tally {
        Tally(vec![0; numbers as usize])
    }

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
