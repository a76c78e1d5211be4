//! Orders of all kinds: test vectors, refused specs, out-of-range positions, and descriptions.

use crate::mixture::{sample, sources, three_sources};
use crate::{all, refused};
use tfseek::ErrorKind;
use tfseek::error::OrderError;
use tfseek::order::*;

#[test]
fn vectors_of_the_other_orders() {
    let block = Order::new(&Spec::Block { block: 16, window: 4 }, 1003, 9, 0).unwrap();
    let first: Vec<u64> = (0..8).map(|t| block.get(t).unwrap()).collect();
    assert_eq!(first, [322, 653, 335, 647, 334, 189, 640, 366]);

    let mixture = sources(&[5, 2, 1], 1);
    let first: Vec<(usize, u64)> = (0..8).map(|t| sample(&mixture, t)).collect();
    assert_eq!(first, [(0, 0), (0, 1), (0, 2), (1, 0), (2, 0), (1, 1), (0, 3), (0, 4)]);

    // Draws 5 to 11 are in `src/order/weighted.rs`.
    let draws = Order::new(&Spec::Weighted(Weights::new([5, 2, 1, 0, 8]).unwrap()), 5, 1, 0).unwrap();
    assert_eq!(all(&draws), [0, 4, 0, 4, 0]);

    assert_eq!(augmentation_seed(42, 7, 1000), 0xc6f9408767b7785b);
}

#[test]
fn invalid_specs_are_refused() {
    let ids = |ids: &[u64]| Subset::from_ids(ids).unwrap();
    let mixture = || Spec::Mix(MixSpec::new(vec![Component::new(1, Spec::Global)]));
    let component = |component| Spec::Mix(MixSpec::new(vec![component]));
    for (spec, why) in [
        (Spec::Global.filtered(ids(&[10])), "expected a filter of records below 10, found record 10"),
        (Spec::Weighted(Weights::new([1, 2]).unwrap()), "expected 10 weights, one per record, found 2"),
        (mixture().filtered(ids(&[1])), "no mixture"),
        (Spec::Global.filtered(ids(&[1])).filtered(ids(&[0])), "no second filter"),
        (Spec::Block { block: 0, window: 1 }, "block and window sizes of at least 1, found 0 and 1"),
        (Spec::Mix(MixSpec::new(vec![])), "components in a mixture, found 0"),
        (component(Component::new(0, Spec::Global)), "weight 0 is 0"),
        (
            component(Component::new(1, mixture())),
            "component 0: a filter or a component must have a plain order",
        ),
        (
            component(Component::new(1, Spec::Global).over(0..11)),
            "expected records within 0..10, found 0..11",
        ),
        (component(Component::new(1, Spec::Global).over(3..3)), "no records"),
        (
            Spec::Mix(MixSpec::new(vec![
                Component::new(1 << 20, Spec::Global),
                Component::new(1, Spec::Global),
            ])),
            "weight 1 makes the sum exceed 2^20",
        ),
        (component(Component::new(u64::MAX, Spec::Global)), "weight 0 makes the sum exceed 2^20"),
        (
            Spec::Mix(MixSpec::new(vec![Component::new(1, Spec::Global)]).batches(0)),
            "a batch size of at least 1",
        ),
    ] {
        let e = Order::new(&spec, 10, 0, 0).unwrap_err();
        assert!(e.to_string().contains(why), "{e}");
        assert!(!e.to_string().contains("invalid order: invalid order"), "{e}");
    }
    let far = Order::new(&mixture(), 10, 0, u64::MAX / 10).unwrap_err();
    assert!(far.to_string().contains("positions below 2^64"), "{far}");
}

#[test]
fn positions_out_of_range_are_errors() {
    for spec in [Spec::Sequential, Spec::Global, Spec::Block { block: 3, window: 2 }] {
        let order = Order::new(&spec, 10, 0, 0).unwrap();
        let gone = |position| OrderError::Position { position, len: 10 };
        assert_eq!(refused(order.get(10).unwrap_err()), gone(10));
        assert_eq!(refused(order.fill(8, &mut [0; 3]).unwrap_err()), gone(10));
        assert_eq!(refused(order.fill(u64::MAX, &mut [0; 3]).unwrap_err()), gone(u64::MAX));
        assert!(order.fill(10, &mut []).is_ok());
        assert!(matches!(
            order.position_of(10).unwrap_err().into_kind(),
            ErrorKind::OutOfRange { what: "record", i: 10, len: 10 }
        ));
        let nothing = Order::new(&spec, 0, 0, 0).unwrap();
        assert!(nothing.is_empty() && nothing.get(0).is_err() && nothing.fill(0, &mut []).is_ok());
        assert!(!nothing.describe(Some(256)).is_empty());
    }
    let order = Order::new(&Spec::Sequential, 10, 1, 2).unwrap();
    assert_eq!((order.get(7).unwrap(), order.position_of(7).unwrap()), (7, Some(7)));
}

/// The longest epoch has 2^64 - 1 positions, so a range that goes on behind its last one overflows.
#[test]
fn the_last_position_of_the_longest_epoch() {
    let n = u64::MAX;
    let mix = |order| Spec::Mix(MixSpec::new(vec![Component::new(1, order)]));
    for spec in [
        Spec::Sequential,
        Spec::Global,
        Spec::Block { block: 1 << 40, window: 1 << 10 },
        mix(Spec::Sequential),
        mix(Spec::Global),
    ] {
        let order = Order::new(&spec, n, 7, 0).unwrap();
        let [before, last] = [n - 2, n - 1].map(|position| order.get(position).unwrap());
        let mut two = [0; 2];
        order.fill(n - 2, &mut two).unwrap();
        assert_eq!(two, [before, last]);
        assert!(before < n && last < n);

        let share = RankShare::new(n, 8, 0, 1, LastBatch::Short).unwrap();
        let step = share.steps() - 1;
        let samples = order.samples(share.step(step).unwrap()).unwrap();
        assert_eq!((samples.len(), samples[6].position, samples[6].record), (7, n - 1, last));
        assert_eq!(order.rows_of(last, &share).unwrap(), [StepRow { step, rank: 0, row: 6 }]);
    }
}

#[test]
fn orders_describe_themselves() {
    let (spec, n) = three_sources();
    let text = Order::new(&spec, n, 0, 0).unwrap().describe(Some(32));
    for part in [
        "175 positions in a mixture of 4 components, cycles of 9",
        "0: 5 per cycle from 100 records in global order",
        "1: 2 per cycle from 57 records in block order: 15 blocks of 4, 5 windows of 3 blocks, at most 24 records",
        "2: 1 per cycle from 15 records of a filter in global order",
        "3: 1 per cycle from 3 records in sequential order",
    ] {
        assert!(text.contains(part), "{text}");
    }
    let one = Order::new(&Spec::Block { block: 4, window: 64 }, 100, 0, 0).unwrap().describe(Some(32));
    assert!(one.contains("25 blocks of 4 in one window (`global` shuffles equally well"), "{one}");
}
