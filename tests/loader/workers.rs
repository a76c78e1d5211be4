//! Worker processes that return the batches of a rank in turn.

use super::*;
use tfseek::order::{LastBatch, Sample, State};

const LAST: [LastBatch; 3] = [LastBatch::Drop, LastBatch::Pad, LastBatch::Short];

/// Builds the loader of a rank, or of one of its workers.
fn loader(ds: &Dataset, (order, last): (&Shuffle, LastBatch), rank: u64, worker: (u64, u64)) -> Loader {
    let options = ds.loader(&schema()).global_batch_size(8).rank(rank, 2).worker(worker.0, worker.1);
    options.shuffle(order.clone()).seed(5).last_batch(last).threads(rank as usize).build().unwrap()
}

fn samples(step: Step) -> Vec<Sample> {
    check(&step);
    step.samples().collect()
}

/// Takes the rest of the epoch from each worker in turn, starting with `first`. Workers without steps are
/// passed over.
fn in_turn(workers: &mut [Loader], first: usize) -> Vec<Vec<Sample>> {
    let mut batches = Vec::new();
    let mut over = vec![false; workers.len()];
    for k in (0..workers.len()).cycle().skip(first) {
        if over.iter().all(|&over| over) {
            break;
        }
        if !over[k] {
            match workers[k].next() {
                Some(step) => batches.push(samples(step.unwrap())),
                None => over[k] = true,
            }
        }
    }
    batches
}

#[test]
fn workers_in_turn_equal_one_loader_after_a_stop_at_any_step() {
    for n in [103, 96, 5, 0] {
        let ds = memory(n);
        for order in &orders(n)[..if n < 90 { 2 } else { 6 }] {
            for last in LAST {
                let one = |rank| loader(&ds, (order, last), rank, (0, 1));
                for (rank, workers) in [(0, 1), (1, 2), (0, 3), (0, 5)] {
                    let mut whole = one(rank);
                    let want: Vec<_> = whole.by_ref().map(|step| samples(step.unwrap())).collect();
                    let next: Vec<_> = whole.map(|step| samples(step.unwrap())).collect();
                    let all = || -> Vec<Loader> {
                        (0..workers).map(|k| loader(&ds, (order, last), rank, (k, workers))).collect()
                    };
                    assert_eq!(
                        all().iter().map(|loader| loader.cursor().steps_left().unwrap()).sum::<u64>(),
                        want.len() as u64
                    );
                    for stop in 0..want.len() {
                        let mut before = all();
                        for (k, want) in want[..stop].iter().enumerate() {
                            let step = before[k % workers as usize].next().unwrap().unwrap();
                            assert_eq!(samples(step), *want);
                        }
                        let mut after = all();
                        for (before, after) in before.iter().zip(&mut after) {
                            let json = before.state().unwrap().to_json();
                            after.seek(&State::from_json(&json).unwrap()).unwrap();
                        }
                        let turn = stop % workers as usize;
                        assert_eq!(in_turn(&mut after, turn), want[stop..], "{order:?} {last:?} {workers}");
                        assert_eq!(in_turn(&mut after, 0), next, "and the next epoch");
                    }
                }
            }
        }
    }
}

#[test]
fn workers_have_equal_states_at_the_end_of_a_round() {
    let ds = memory(100);
    let order = (&Shuffle::Global, LastBatch::Pad);
    let mut one = loader(&ds, order, 0, (0, 1));
    let mut three: Vec<_> = (0..3).map(|k| loader(&ds, order, 0, (k, 3))).collect();
    for _ in 0..4 {
        one.by_ref().take(3).for_each(|step| assert!(step.is_ok()));
        for worker in &mut three {
            assert!(worker.next().unwrap().is_ok());
            assert_eq!(worker.state().unwrap().to_json(), one.state().unwrap().to_json());
        }
    }
}

#[test]
fn workers_repeat_epochs_indefinitely() {
    let ds = memory(40);
    for workers in [1, 2, 4] {
        let mut counts = vec![0; 40];
        for worker in 0..workers {
            let options = ds
                .loader(&schema())
                .batch_size(8)
                .shuffle(Shuffle::Global)
                .seed(1)
                .worker(worker, workers)
                .repeat(true);
            let steps = [0, 1, 2, 3, 4].into_iter().filter(|step| step % workers == worker).count();
            for step in options.build().unwrap().take(3 * steps) {
                step.unwrap().ids.iter().for_each(|&id| counts[id as usize] += 1);
            }
        }
        assert!(counts.iter().all(|&count| count == 3), "three epochs, {workers} workers: {counts:?}");
    }
    let far = ds
        .loader(&schema())
        .batch_size(8)
        .shuffle(Shuffle::Global)
        .seed(1)
        .worker(u64::MAX - 1, u64::MAX)
        .repeat(true);
    assert!(far.build().unwrap().next().is_none(), "the worker has no steps");
}
