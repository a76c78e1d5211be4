//! Start of an iteration and end of an epoch: `docs/shuffling.md`, "Epochs and iterators".

use super::*;
use tfseek::ErrorKind;
use tfseek::order::{LastBatch, MixSpec, State};

const LAST: [LastBatch; 4] = [LastBatch::Short, LastBatch::Drop, LastBatch::Pad, LastBatch::Continuous];

fn build(ds: &Dataset, threads: usize, last: LastBatch, repeat: bool) -> Loader {
    let options =
        ds.loader(&schema()).batch_size(12).shuffle(tfseek::loader::Shuffle::Global).seed(3).threads(threads);
    options.last_batch(last).repeat(repeat).build().unwrap()
}

fn ids(loader: &mut Loader, steps: usize) -> Vec<Vec<u64>> {
    loader.by_ref().take(steps).map(|step| step.unwrap().ids.to_vec()).collect()
}

/// A dataset fingerprint.
const FP: &str = "99aa06d3014798d86001c324468d497f";

fn reset(loader: &mut Loader) {
    let mut cursor = loader.cursor().clone();
    cursor.reset().unwrap();
    loader.go_to(&cursor).unwrap();
}

fn epoch_and_position(loader: &Loader) -> (u64, u64) {
    let state = loader.state().unwrap();
    (state.epoch, state.position)
}

#[test]
fn setting_the_current_epoch_restarts_it() {
    let ds = memory(40);
    for threads in [0, 2] {
        let want = ids(&mut build(&ds, threads, LastBatch::Short, false), usize::MAX);
        for steps in 0..=want.len() {
            let mut a = build(&ds, threads, LastBatch::Short, false);
            assert_eq!(ids(&mut a, steps), want[..steps]);
            a.set_epoch(0).unwrap();
            assert_eq!(
                (epoch_and_position(&a), a.cursor().epoch(), a.cursor().steps_left().unwrap()),
                ((0, 0), 0, 4)
            );
            assert_eq!(ids(&mut a, usize::MAX), want, "after {steps} steps");
        }
    }
}

#[test]
fn an_iteration_restarts_an_unfinished_epoch_and_follows_a_finished_one() {
    let ds = memory(40);
    for threads in [0, 2] {
        for last in LAST {
            let mut whole = build(&ds, threads, last, false);
            let epochs: Vec<_> = (0..3).map(|_| ids(&mut whole, usize::MAX)).collect();
            let mut a = build(&ds, threads, last, false);
            for want in &epochs {
                for peeked in 0..want.len() {
                    a.begin().unwrap();
                    assert_eq!(ids(&mut a, peeked), want[..peeked], "{last:?}");
                }
                // Repeated calls before the next batch have no effect.
                (0..3).for_each(|_| a.begin().unwrap());
                let mut begins = a.cursor().clone();
                begins.begin().unwrap();
                assert_eq!(begins.state(FP).unwrap().position, epoch_and_position(&a).1);
                assert_eq!(begins.epoch(), epoch_and_position(&a).0);
                assert_eq!(ids(&mut a, usize::MAX), *want, "{last:?}");
            }
            // All batches were returned but not the end of the epoch: the next iteration begins the next
            // epoch.
            let mut a = build(&ds, threads, last, false);
            for want in &epochs {
                a.begin().unwrap();
                assert_eq!(ids(&mut a, want.len()), *want, "{last:?}");
            }
        }
    }
}

#[test]
fn a_state_is_resumed_once() {
    let ds = memory(40);
    let want = ids(&mut build(&ds, 1, LastBatch::Short, false), usize::MAX);
    let mut a = build(&ds, 1, LastBatch::Short, false);
    ids(&mut a, 2);
    let state = a.state().unwrap();
    let mut b = build(&ds, 2, LastBatch::Short, false);
    b.seek(&state).unwrap();
    // The state is in epoch 0: a loop that sets each epoch continues at the saved position.
    b.set_epoch(0).unwrap();
    b.begin().unwrap();
    assert_eq!((epoch_and_position(&b), b.state().unwrap()), ((0, 24), state.clone()));
    assert_eq!(ids(&mut b, 1), want[2..3]);
    // The next iteration restarts the epoch.
    b.begin().unwrap();
    assert_eq!(ids(&mut b, usize::MAX), want);
    b.seek(&state).unwrap();
    reset(&mut b);
    assert_eq!(ids(&mut b, usize::MAX), want);
    b.seek(&state).unwrap();
    b.set_epoch(1).unwrap();
    assert_eq!((b.cursor().epoch(), epoch_and_position(&b)), (1, (1, 0)));
}

#[test]
fn a_state_of_an_epochs_end_has_no_steps_left() {
    let ds = memory(40);
    for last in LAST {
        let mut whole = build(&ds, 1, last, false);
        let epochs: Vec<_> = (0..2).map(|_| ids(&mut whole, usize::MAX)).collect();
        let mut a = build(&ds, 1, last, false);
        ids(&mut a, epochs[0].len());
        let state = State::from_json(&a.state().unwrap().to_json()).unwrap();
        let mut b = build(&ds, 0, last, false);
        b.seek(&state).unwrap();
        assert_eq!((state.epoch, b.cursor().epoch()), (1, 1));
        b.set_epoch(1).unwrap();
        assert_eq!(ids(&mut b, usize::MAX), epochs[1], "{last:?}");
        // The end of the epoch itself, as workers and torch's samplers save it.
        b.seek(
            &State::new(&a.cursor().order().at_epoch(0).unwrap(), 40, &ds.fingerprint().unwrap()).unwrap(),
        )
        .unwrap();
        b.set_epoch(0).unwrap();
        assert_eq!(ids(&mut b, usize::MAX), Vec::<Vec<u64>>::new());
        b.set_epoch(1).unwrap();
        reset(&mut b);
        assert_eq!(b.next().unwrap().unwrap().samples().next().map(|sample| sample.position), Some(0));
    }
}

#[test]
fn continuous_epochs_restart_at_the_epoch_of_the_iteration() {
    let ds = memory(40);
    for threads in [0, 2] {
        for last in LAST {
            let mut whole = build(&ds, threads, last, false);
            let epochs: Vec<_> = (0..2).map(|_| ids(&mut whole, usize::MAX)).collect();
            let mut a = build(&ds, threads, last, true);
            let steps = epochs[0].len();
            assert_eq!(ids(&mut a, 1), epochs[0][..1]);
            a.begin().unwrap();
            assert_eq!(ids(&mut a, steps), epochs[0], "{last:?}");
            a.begin().unwrap();
            assert_eq!(ids(&mut a, 2), epochs[1][..2], "{last:?}");
            assert_eq!(a.cursor().epoch(), 1);
            a.begin().unwrap();
            assert_eq!(ids(&mut a, 2), epochs[1][..2], "{last:?}");
            a.set_epoch(0).unwrap();
            assert_eq!(ids(&mut a, steps + 2), [&epochs[0][..], &epochs[1][..2]].concat(), "{last:?}");
        }
    }
}

#[test]
fn a_loader_continues_at_the_cursor_of_another() {
    let ds = memory(40);
    for last in LAST {
        for steps in 0..5 {
            let mut a = build(&ds, 2, last, false);
            ids(&mut a, steps);
            let copy = || {
                let mut b = build(&ds, 0, last, false);
                b.go_to(a.cursor()).unwrap();
                b
            };
            let (mut continued, mut begins) = (copy(), copy());
            assert_eq!(
                (epoch_and_position(&continued), continued.cursor().epoch()),
                (epoch_and_position(&a), a.cursor().epoch())
            );
            begins.begin().unwrap();
            assert_eq!(ids(&mut continued, usize::MAX), ids(&mut a, usize::MAX), "{last:?}");
            let mut c = build(&ds, 0, last, false);
            ids(&mut c, steps);
            c.begin().unwrap();
            assert_eq!(ids(&mut begins, usize::MAX), ids(&mut c, usize::MAX), "{last:?}");
        }
    }
    assert!(
        build(&ds, 0, LastBatch::Pad, false)
            .go_to(build(&memory(41), 0, LastBatch::Pad, false).cursor())
            .is_err()
    );
}

/// Epochs are 64-bit numbers and do not wrap around to 0 after the last one.
#[test]
fn no_epoch_follows_the_last() {
    let ds = memory(40);
    let refused = |made: Option<tfseek::Result<Step>>| match made.unwrap().unwrap_err().into_kind() {
        ErrorKind::Order(e) => assert!(e.to_string().contains("2^64"), "{e}"),
        other => panic!("{other:?}"),
    };
    for threads in [0, 2] {
        for last in LAST {
            for repeat in [false, true] {
                let options = ds.loader(&schema()).batch_size(12).seed(3).threads(threads);
                let options = options.shuffle(tfseek::loader::Shuffle::Global);
                let mut a = options.epoch(u64::MAX).last_batch(last).repeat(repeat).build().unwrap();
                let steps = a.cursor().steps_left().unwrap() as usize;
                let whole = if last == LastBatch::Continuous { steps - 1 } else { steps };
                let seen = ids(&mut a, whole);
                assert_eq!(seen.len(), whole);
                if last == LastBatch::Continuous || repeat {
                    refused(a.next());
                }
                assert!(a.next().is_none(), "{last:?} {repeat}");
                if last != LastBatch::Continuous {
                    assert_eq!(epoch_and_position(&a), (u64::MAX, 40));
                    assert!(a.begin().is_err());
                    refused(a.next());
                    assert!(a.next().is_none());
                }
                reset(&mut a);
                assert_eq!(ids(&mut a, whole), seen);
            }
        }
    }
    // A mixture ends where its positions end.
    let component = |records| tfseek::order::Component::new(1, Spec::Global).over(records);
    let spec = Spec::Mix(MixSpec::new(vec![component(0..20), component(20..40)]));
    let end = u64::MAX / 40 - 1;
    let options = ds.loader(&schema()).batch_size(40).shuffle(Shuffle::Order(spec)).epoch(end);
    let mut a = options.repeat(true).build().unwrap();
    assert_eq!(ids(&mut a, 1).len(), 1);
    assert_eq!(epoch_and_position(&a), (end, 40));
    refused(a.next());
    assert!(a.next().is_none());
}
