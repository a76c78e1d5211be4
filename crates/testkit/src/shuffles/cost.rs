//! What a shuffle costs, in records.

use super::{BATCH, RECORDS, Way};
use std::collections::BTreeSet;
use tfseek::order::Spec;
use tfseek::order::State;

/// Records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cost {
    /// Held beside the batches that are being made.
    pub held: u64,
    /// Read when the first batch of an epoch is there.
    pub first: u64,
    /// Read when the next batch is there, of a run that goes on in the middle of an epoch.
    pub resumed: u64,
}

/// The step at which a run is stopped.
const STOP: u64 = RECORDS / BATCH / 2;

/// What a way costs. How a buffer is fed does not change it, so it is asked once.
pub fn cost(way: &Way) -> Option<Cost> {
    match way {
        Way::Interleaved(_) | Way::Order(Spec::Sequential) => None,
        Way::Buffer(size) => {
            // A buffer's content comes of all that went through it, so a run that goes on has to read that again.
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
            // All that a checkpoint has.
            let fingerprint = "0".repeat(32);
            let saved = State::new(&order, STOP * BATCH, &fingerprint).unwrap().to_json();
            let state = State::from_json(&saved).unwrap();
            let order = state.resume(spec, RECORDS, &fingerprint).unwrap();
            let mut next = vec![0; BATCH as usize];
            order.fill(state.position(), &mut next).unwrap();
            assert!(whole.ends_with(&next), "not the batch of the run that was not stopped");
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
