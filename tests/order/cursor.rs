//! The position of a run over iterations, epochs and saved states.

use super::refused;
use tfseek::error::OrderError;
use tfseek::order::{Cursor, LastBatch, Order, RankShare, Spec, State};

const FINGERPRINT: &str = "99aa06d3014798d86001c324468d497f";

/// A cursor over 10 records in batches of 4.
fn cursor(epoch: u64, last: LastBatch) -> Cursor {
    let order = Order::new(&Spec::Global, 10, 7, epoch).unwrap();
    let share = RankShare::new(10, 4, 0, 1, last).unwrap();
    Cursor::new(order, share).unwrap()
}

/// Begins an iteration, delivers some steps, and returns the epoch, the position and the number of steps left
/// before them.
fn iterate(cursor: &mut Cursor, steps: u64) -> (u64, u64, u64) {
    cursor.begin().unwrap();
    let start = (cursor.epoch(), cursor.position(), cursor.steps_left().unwrap());
    assert!(cursor.is_fresh());
    cursor.enter().unwrap();
    assert!(!cursor.is_fresh());
    cursor.advance(steps).unwrap();
    start
}

fn saved(state: &State) -> (u64, u64) {
    (state.epoch, state.position)
}

#[test]
fn share_and_order_have_the_same_positions() {
    let order = Order::new(&Spec::Global, 10, 7, 0).unwrap();
    let share = RankShare::new(11, 4, 0, 1, LastBatch::Short).unwrap();
    let e = refused(Cursor::new(order, share).unwrap_err());
    assert!(
        matches!(&e, OrderError::Refused { reason } if reason.contains("10 positions, found 11")),
        "{e:?}"
    );
}

#[test]
fn an_epoch_left_early_begins_again() {
    let mut cursor = cursor(3, LastBatch::Short);
    for steps in [0, 1, 2] {
        assert_eq!(iterate(&mut cursor, steps), (3, 0, 3));
        assert_eq!((cursor.position(), cursor.steps_left().unwrap()), (4 * steps, 3 - steps));
        assert_eq!(saved(&cursor.state(FINGERPRINT).unwrap()), (3, 4 * steps));
    }
    assert_eq!(iterate(&mut cursor, 3), (3, 0, 3));
    // The epoch ends with its iteration.
    assert_eq!((cursor.epoch(), cursor.steps_left().unwrap()), (3, 0));
    assert_eq!(iterate(&mut cursor, 3), (4, 0, 3));
    assert_eq!(cursor.order().epoch(), 4);
}

#[test]
fn steps_after_the_end_are_an_error() {
    for (last, steps) in [(LastBatch::Short, 3), (LastBatch::Pad, 3), (LastBatch::Drop, 2)] {
        let mut cursor = cursor(0, last);
        assert_eq!(iterate(&mut cursor, 0), (0, 0, steps));
        let e = refused(cursor.advance(steps + 1).unwrap_err());
        assert!(
            matches!(&e, OrderError::Refused { reason } if reason.contains("follow position 0")),
            "{e:?}"
        );
        assert_eq!(cursor.position(), 0);
        cursor.advance(steps).unwrap();
        // A dropped last batch does not belong to the next epoch.
        assert_eq!(saved(&cursor.state(FINGERPRINT).unwrap()), (1, 0));
        assert_eq!(saved(&cursor.state_in_epoch(FINGERPRINT).unwrap()), (0, 10));
        cursor.state("not a fingerprint").unwrap_err();
    }
}

#[test]
fn continuous_batches_cross_the_end_of_an_epoch() {
    let mut cursor = cursor(0, LastBatch::Continuous);
    assert_eq!(iterate(&mut cursor, 3), (0, 0, 3));
    // The third batch has two records of the next epoch.
    for state in [cursor.state(FINGERPRINT), cursor.state_in_epoch(FINGERPRINT)] {
        assert_eq!(saved(&state.unwrap()), (1, 2));
    }
    assert_eq!(iterate(&mut cursor, 1), (1, 2, 2));
    assert_eq!(iterate(&mut cursor, 0), (1, 2, 2));
    cursor.set_epoch(1).unwrap();
    assert_eq!(cursor.position(), 0);
}

#[test]
fn a_saved_position_is_kept_until_an_iteration_enters_it() {
    let mut first = cursor(0, LastBatch::Short);
    iterate(&mut first, 2);
    let state = first.state(FINGERPRINT).unwrap();
    let mut cursor = cursor(5, LastBatch::Short);
    cursor.seek(&state, FINGERPRINT).unwrap();
    for _ in 0..2 {
        cursor.begin().unwrap();
        cursor.set_epoch(0).unwrap();
        assert_eq!((cursor.epoch(), cursor.position(), cursor.is_fresh()), (0, 8, true));
    }
    assert_eq!(cursor.share().unwrap().steps(), 1);
    assert_eq!(iterate(&mut cursor, 0), (0, 8, 1));
    // Left early, so its epoch begins again from the start.
    assert_eq!(iterate(&mut cursor, 1), (0, 0, 3));
    cursor.seek(&state, FINGERPRINT).unwrap();
    cursor.reset().unwrap();
    assert_eq!(iterate(&mut cursor, 1), (0, 0, 3));
    cursor.set_epoch(9).unwrap();
    assert_eq!(iterate(&mut cursor, 1), (9, 0, 3));
    // A refused state does not move the cursor.
    cursor.seek(&state, "00000000000000000000000000000000").unwrap_err();
    assert_eq!((cursor.epoch(), cursor.position()), (9, 4));
}

#[test]
fn a_saved_end_of_an_epoch_is_an_empty_iteration_unless_it_is_skipped() {
    let mut first = cursor(0, LastBatch::Short);
    iterate(&mut first, 1);
    let inside = first.state_in_epoch(FINGERPRINT).unwrap();
    iterate(&mut first, 3);
    let end = first.state_in_epoch(FINGERPRINT).unwrap();
    assert_eq!(saved(&end), (0, 10));
    for skip in [false, true] {
        let mut cursor = cursor(0, LastBatch::Short).skip_ends(skip);
        cursor.seek(&end, FINGERPRINT).unwrap();
        assert_eq!(iterate(&mut cursor, 0), if skip { (1, 0, 3) } else { (0, 10, 0) });
        assert_eq!(iterate(&mut cursor, 0), (1, 0, 3));
        // An epoch that was set is not skipped.
        cursor.seek(&end, FINGERPRINT).unwrap();
        cursor.set_epoch(0).unwrap();
        assert_eq!(iterate(&mut cursor, 0), (0, 10, 0));
        // Before the end nothing is skipped.
        cursor.seek(&inside, FINGERPRINT).unwrap();
        assert_eq!(iterate(&mut cursor, 0), (0, 4, 2));
    }
}

#[test]
fn no_epoch_follows_the_last_one() {
    let mut cursor = cursor(u64::MAX, LastBatch::Short);
    assert_eq!(iterate(&mut cursor, 3), (u64::MAX, 0, 3));
    assert_eq!(saved(&cursor.state(FINGERPRINT).unwrap()), (u64::MAX, 10));
    let e = refused(cursor.begin().unwrap_err());
    assert!(matches!(&e, OrderError::Refused { reason } if reason.contains("an epoch below 2^64")), "{e:?}");
    cursor.reset().unwrap();
    assert_eq!(iterate(&mut cursor, 3), (u64::MAX, 0, 3));
}

#[test]
fn an_epoch_without_records_has_no_steps() {
    let order = Order::new(&Spec::Sequential, 0, 0, 0).unwrap();
    let share = RankShare::new(0, 4, 0, 1, LastBatch::Continuous).unwrap();
    let mut cursor = Cursor::new(order, share).unwrap();
    assert_eq!(iterate(&mut cursor, 0), (0, 0, 0));
    assert!(cursor.advance(1).is_err());
    assert_eq!(saved(&cursor.state(FINGERPRINT).unwrap()), (0, 0));
}
