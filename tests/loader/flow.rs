//! Epochs, saved states, and refused options.

use super::*;
use tfseek::order::{LastBatch, State};
use tfseek::{ErrorKind, Loader};

fn loader(ds: &Dataset, threads: usize) -> Loader {
    ds.loader(&schema())
        .batch_size(10)
        .shuffle(tfseek::loader::Shuffle::Global)
        .seed(8)
        .threads(threads)
        .build()
        .unwrap()
}

fn ids(loader: &mut Loader, steps: usize) -> Vec<Vec<u64>> {
    loader.by_ref().take(steps).map(|step| step.unwrap().ids.to_vec()).collect()
}

#[test]
fn epochs_follow_each_other_and_differ() {
    let ds = memory(55);
    for threads in [0, 2] {
        let mut a = loader(&ds, threads);
        assert_eq!((a.cursor().epoch(), a.cursor().steps_left().unwrap()), (0, 6));
        let epochs: Vec<_> = (0..3).map(|_| ids(&mut a, usize::MAX)).collect();
        assert!(epochs.iter().all(|steps| steps.len() == 6));
        assert!(epochs[0] != epochs[1] && epochs[1] != epochs[2]);
        assert_eq!(a.cursor().epoch(), 3);
        // Restarted from the start of any epoch.
        for (epoch, want) in epochs.iter().enumerate() {
            let mut b = ds
                .loader(&schema())
                .batch_size(10)
                .shuffle(tfseek::loader::Shuffle::Global)
                .seed(8)
                .epoch(epoch as u64)
                .build()
                .unwrap();
            assert_eq!(ids(&mut b, usize::MAX), *want);
            a.set_epoch(epoch as u64).unwrap();
            assert_eq!(ids(&mut a, 2), want[..2]);
            // Also of the current epoch.
            a.set_epoch(epoch as u64).unwrap();
            assert_eq!(ids(&mut a, usize::MAX), *want);
        }
        // Without reaching the end of an epoch in between.
        let mut c = ds
            .loader(&schema())
            .batch_size(10)
            .shuffle(tfseek::loader::Shuffle::Global)
            .seed(8)
            .threads(threads)
            .repeat(true)
            .build()
            .unwrap();
        assert_eq!(ids(&mut c, 15), epochs.concat()[..15]);
    }
}

#[test]
fn leaving_an_epoch_after_its_last_step_yields_no_further_end() {
    let ds = memory(40);
    for threads in [0, 1] {
        for last in [LastBatch::Short, LastBatch::Drop, LastBatch::Pad, LastBatch::Continuous] {
            let made = || {
                let options = ds
                    .loader(&schema())
                    .batch_size(12)
                    .shuffle(tfseek::loader::Shuffle::Global)
                    .seed(3)
                    .threads(threads);
                options.last_batch(last).build().unwrap()
            };
            let (mut left, mut whole) = (made(), made());
            let steps = left.cursor().steps_left().unwrap() as usize;
            ids(&mut left, steps);
            left.set_epoch(1).unwrap();
            ids(&mut whole, usize::MAX);
            assert_eq!(ids(&mut left, usize::MAX), ids(&mut whole, usize::MAX), "{last:?}");
        }
    }
}

#[test]
fn a_state_counts_returned_batches_and_not_prefetched_ones() {
    let ds = memory(100);
    let mut a = loader(&ds, 4);
    for steps in 0..10 {
        let state = a.state().unwrap();
        assert_eq!((state.epoch, state.position), (0, steps * 10));
        a.next().unwrap().unwrap();
    }
    // The epoch is complete once all of its batches were returned.
    assert_eq!((a.state().unwrap().epoch, a.state().unwrap().position), (1, 0));
    assert_eq!((a.cursor().epoch(), a.cursor().steps_left().unwrap()), (0, 0));
    assert!(a.next().is_none());
    assert_eq!((a.state().unwrap().epoch, a.state().unwrap().position), (1, 0));
    assert_eq!((a.cursor().epoch(), a.cursor().steps_left().unwrap()), (1, 10));
}

#[test]
fn a_state_of_another_dataset_or_order_is_refused_without_effect() {
    let (ds, other) = (memory(100), memory(101));
    let mut a = loader(&ds, 2);
    let start = ids(&mut a, 3);
    let state = a.state().unwrap();
    let mut same_size = loader(&open(shards(&[100])), 1);
    let refused = |result: tfseek::Result<()>| match result.unwrap_err().kind() {
        ErrorKind::Order(e) => e.to_string(),
        e => panic!("{e:?}"),
    };
    // Other records, the same number of records in other shards, and another kind of order.
    refused(loader(&other, 1).seek(&state));
    refused(same_size.seek(&state));
    let mut sequential = ds.loader(&schema()).batch_size(10).build().unwrap();
    refused(sequential.seek(&state));
    let json = state.to_json().replace("prp1", "prp2");
    assert!(State::from_json(&json).and_then(|state| a.seek(&state)).is_err());
    // The refused calls had no effect.
    assert_eq!(ids(&mut same_size, 3), start);
    assert_eq!(sequential.next().unwrap().unwrap().ids, (0..10).collect::<Vec<u64>>());
    let mut b = loader(&ds, 0);
    b.seek(&state).unwrap();
    assert_eq!(ids(&mut a, usize::MAX), ids(&mut b, usize::MAX));
}

#[test]
fn invalid_options_are_refused_when_the_loader_is_built() {
    let ds = memory(10);
    let base = || ds.loader(&schema());
    for options in [
        base(),
        base().batch_size(0),
        base().batch_size(4).rank(2, 2),
        base().batch_size(4).rank(0, 0),
        base().batch_size(4).worker(2, 2),
        base().batch_size(4).worker(0, 0),
        base().batch_size(4).worker(0, 2).last_batch(LastBatch::Continuous),
        base().global_batch_size(10).rank(0, 3),
        base().batch_size(u64::MAX).rank(0, 3),
        base().batch_size(1).shuffle(Shuffle::Order(Spec::Block { block: 0, window: 1 })),
    ] {
        let e = options.build().unwrap_err();
        assert!(matches!(e.kind(), ErrorKind::Order(_) | ErrorKind::Options(_)), "{e}");
    }
}

#[test]
fn an_empty_dataset_has_epochs_without_steps() {
    let ds = open(vec![Vec::new()]);
    for threads in [0, 2] {
        for last in [LastBatch::Drop, LastBatch::Pad, LastBatch::Short, LastBatch::Continuous] {
            for repeat in [false, true] {
                let options = ds.loader(&schema()).batch_size(4).seed(1).threads(threads);
                let options = options.shuffle(tfseek::loader::Shuffle::Global);
                let mut loader = options.last_batch(last).repeat(repeat).build().unwrap();
                assert!(loader.next().is_none() && loader.next().is_none(), "{threads} {last:?} {repeat}");
            }
        }
        // Fewer records than a batch, which are dropped.
        let few = memory(3);
        let options = few.loader(&schema()).batch_size(4).threads(threads).last_batch(LastBatch::Drop);
        let mut loader = options.build().unwrap();
        assert!(loader.next().is_none() && loader.next().is_none());
    }
}

/// Block and window sizes depend on the batch size, but a resume uses those of the saved state.
#[test]
fn a_block_order_resumes_with_another_batch_size() {
    let bytes = vec![0u8; 300 << 10];
    let mut shard = Vec::new();
    (0..60).for_each(|_| put_record(&mut shard, &bytes).unwrap());
    let ds = open(vec![shard]);
    let loader = |batch| {
        let options = ds.record_loader().batch_size(batch).shuffle(Shuffle::Block).seed(4).threads(2);
        options.build().unwrap()
    };
    let want: Vec<u64> = ids(&mut loader(2), usize::MAX).concat();
    for stop in [1, 5, 29] {
        for batch in [1, 2, 7, 64] {
            let mut first = loader(2);
            let mut all = ids(&mut first, stop).concat();
            let mut second = loader(batch);
            second.seek(&first.state().unwrap()).unwrap();
            all.extend(ids(&mut second, usize::MAX).concat());
            assert_eq!(all, want, "{stop} {batch}");
        }
    }
}
