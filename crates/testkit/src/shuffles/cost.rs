//! The cost of a shuffle, in records.

use super::{BATCH, RECORDS, Way};
use std::collections::BTreeSet;
use tfseek::order::Spec;
use tfseek::order::State;

/// The cost of a shuffle, in records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cost {
    /// Records in memory, in addition to the batches in flight.
    pub held: u64,
    /// Records read before the first batch of an epoch is complete.
    pub first: u64,
    /// Records read before the next batch is complete, in a run that resumes in the middle of an epoch.
    pub resumed: u64,
}

/// The step at which a run is stopped.
const STOP: u64 = RECORDS / BATCH / 2;

/// Returns the cost of a way. `None` for an interleaved buffer, which costs the same as a buffer filled in
/// file order, and for the sequential order, which costs nothing.
pub fn cost(way: &Way) -> Option<Cost> {
    match way {
        Way::Interleaved(_) | Way::Order(Spec::Sequential) => None,
        Way::Buffer(size) => {
            // The content of a buffer depends on all records that passed through it, so a resumed run reads
            // them again.
            let read = |outputs: u64| {
                let mut buffer = way.buffer(1);
                assert_eq!(buffer.by_ref().take(outputs as usize).count() as u64, outputs);
                buffer.read
            };
            Some(Cost { held: *size as u64, first: read(BATCH), resumed: read((STOP + 1) * BATCH) })
        }
        Way::Order(spec) => {
            let order = way.order(1);
            let mut whole = vec![0; ((STOP + 1) * BATCH) as usize];
            order.fill(0, &mut whole).unwrap();
            // The saved state is all that a checkpoint contains.
            let fingerprint = "0".repeat(32);
            let saved = State::new(&order, STOP * BATCH, &fingerprint).unwrap().to_json();
            let state = State::from_json(&saved).unwrap();
            let order = state.resume(spec, RECORDS, &fingerprint).unwrap();
            let mut next = vec![0; BATCH as usize];
            order.fill(state.position, &mut next).unwrap();
            assert!(whole.ends_with(&next), "the resumed run has another batch than the uninterrupted run");
            let (block, held) = match *spec {
                Spec::Block { block, window } => (block, 2 * block * window),
                _ => (1, 0),
            };
            let read = |batch: &[u64]| {
                let blocks: BTreeSet<u64> = batch.iter().map(|record| record / block).collect();
                blocks.iter().map(|k| block.min(RECORDS - k * block)).sum()
            };
            Some(Cost { held, first: read(&whole[..BATCH as usize]), resumed: read(&next) })
        }
    }
}
