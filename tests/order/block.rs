//! The block order: a permutation for every shape, with the quality that `describe` reports.

use crate::permutation::size;
use crate::{all, deff, is_permutation, refused};
use proptest::prelude::*;
use tfseek::error::OrderError;
use tfseek::order::*;
use tfseek_testkit::order_twin as twin;

fn block_order(n: u64, block: u64, window: u64, seed: u64, epoch: u64) -> tfseek::Result<Order> {
    Order::new(&Spec::Block { block, window }, n, seed, epoch)
}

#[test]
fn blocks_over_a_grid_of_shapes() {
    let shapes = [
        // n, b, W: less than a block, one block, one window, W = 1, b = 1, all blocks full, a short last
        // block.
        (1, 1, 1),
        (5, 16, 4),
        (16, 16, 1),
        (17, 16, 1),
        (100, 7, 1),
        (100, 1, 7),
        (100, 10, 3),
        (101, 10, 3),
        (1003, 16, 4),
        (1003, 16, 1000),
        (4096, 64, 8),
        (4097, 64, 8),
        (5000, 13, 11),
    ];
    for (n, b, w) in shapes {
        for epoch in 0..3 {
            let block = block_order(n, b, w, 5, epoch).unwrap();
            let order = all(&block);
            assert_eq!(order, twin::block_order(n, b, w, 5, epoch, 0), "{n} {b} {w}");
            assert!(is_permutation(&order));
            for (t, record) in order.iter().enumerate() {
                let there = (block.get(t as u64).unwrap(), block.position_of(*record).unwrap());
                assert_eq!(there, (*record, Some(t as u64)), "{n} {b} {w}");
            }
        }
    }
}

/// The short block in every slot of every window: tries seeds until all slots were seen.
#[test]
fn the_last_block_in_every_slot() {
    let (n, b, w) = (12 * 8 - 5, 8, 4);
    let mut seen = [false; 12];
    for seed in 0.. {
        // Blocks are permuted in stream 1.
        let slot = twin::prp(12, seed, 0, 1).all().iter().position(|block| *block == 11).unwrap();
        if !std::mem::replace(&mut seen[slot], true) {
            let order = block_order(n, b, w, seed, 0).unwrap();
            let order: Vec<u64> = (0..n).map(|t| order.get(t).unwrap()).collect();
            assert_eq!(order, twin::block_order(n, b, w, seed, 0, 0), "slot {slot}");
        }
        if seen == [true; 12] {
            return;
        }
    }
}

/// Measures, on data sorted by class, the variance of a batch's mean relative to that of a random batch.
fn measured_deff(spec: &Spec, n: u64, batch: u64, epochs: u64) -> f64 {
    let classes = 64;
    let value = |record: u64| (record * classes / n) as f64;
    let mean = (classes - 1) as f64 / 2.0;
    let variance = ((classes * classes - 1) as f64) / 12.0;
    let (mut sum, mut count) = (0.0, 0.0);
    for epoch in 0..epochs {
        for records in all(&Order::new(spec, n, 11, epoch).unwrap()).chunks_exact(batch as usize) {
            let got = records.iter().map(|r| value(*r)).sum::<f64>() / batch as f64;
            sum += (got - mean).powi(2);
            count += 1.0;
        }
    }
    sum / count / (variance / batch as f64)
}

#[test]
fn measured_deff_agrees_with_describe() {
    let (n, block, batch) = (1 << 17, 64, 64);
    for (window, at_least) in [(16, 0.9), (64, 0.85), (256, 0.7)] {
        let spec = Spec::Block { block, window };
        let (measured, formula) = (measured_deff(&spec, n, batch, 8), deff(1.0, batch, window));
        println!("W = {window}: deff {measured:.3} measured, {formula:.3} by formula");
        assert!(measured < 1.1 * formula && measured > at_least * formula, "{window}: {measured} {formula}");
        let text = Order::new(&spec, n, 0, 0).unwrap().describe(Some(batch));
        assert!(text.contains(&format!("deff(rho=1) = {formula:.2} for batches of 64")), "{text}");
    }
    let global = measured_deff(&Spec::Global, n, batch, 8);
    println!("global: deff {global:.3} measured");
    assert!((0.9..1.1).contains(&global), "{global}");
}

#[test]
fn limits_of_blocks() {
    for (block, window) in [(0, 1), (1, 0)] {
        assert!(matches!(
            refused(block_order(10, block, window, 0, 0).unwrap_err()),
            OrderError::Refused { .. }
        ));
    }
    // 2^32 windows are accepted; one more is not.
    assert!(block_order(1 << 34, 2, 2, 0, 0).is_ok());
    let e = block_order((1 << 34) + 1, 2, 2, 0, 0).unwrap_err();
    assert_eq!(refused(e), OrderError::Windows { found: (1 << 32) + 1, limit: 1 << 32 });
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn block_positions_and_records_are_inverse(n in size(), b in size(), w in size(), seed: u64, epoch: u64, t: u64) {
        match block_order(n, b, w, seed, epoch) {
            Ok(order) => {
                let t = t % n;
                let record = order.get(t).unwrap();
                prop_assert!(record < n);
                prop_assert_eq!(order.position_of(record).unwrap(), Some(t));
                let mut filled = [0];
                order.fill(t, &mut filled).unwrap();
                prop_assert_eq!(filled[0], record);
            }
            Err(e) => {
                prop_assert!(n.div_ceil(b).div_ceil(w) > 1 << 32);
                let refused = matches!(refused(e), OrderError::Windows { limit: 0x1_0000_0000, .. });
                prop_assert!(refused);
            }
        }
    }
}
