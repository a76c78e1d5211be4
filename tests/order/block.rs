//! The block order: a permutation of any shape, two windows in memory, and the quality that it says.

use crate::permutation::size;
use crate::{all, is_permutation, refused};
use proptest::prelude::*;
use tfseek::error::OrderError;
use tfseek::order::*;
use tfseek_testkit::order_twin as twin;

#[test]
fn blocks_over_a_grid_of_shapes() {
    let shapes = [
        // n, b, W: less than a block, one block, one window, W = 1, b = 1, all full, a short one.
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
            let block = BlockOrder::new(n, b, w, 5, epoch).unwrap();
            let order = all(&Order::new(&Spec::Block { block: b, window: w }, n, 5, epoch).unwrap());
            assert_eq!(order, twin::block_order(n, b, w, 5, epoch, 0), "{n} {b} {w}");
            assert!(is_permutation(&order));
            for (t, record) in order.iter().enumerate() {
                assert_eq!((block.get(t as u64), block.inverse(*record)), (*record, t as u64), "{n} {b} {w}");
            }
            // Each window holds the records of its blocks and no other.
            assert_eq!((block.start(0), block.start(block.windows())), (0, n));
            for j in 0..block.windows() {
                let mut blocks: Vec<u64> = block.blocks(j).collect();
                assert!(blocks.len() as u64 <= w);
                let span = &order[block.start(j) as usize..block.start(j + 1) as usize];
                assert!(span.iter().all(|record| blocks.contains(&(record / b))));
                let records: u64 = blocks.iter().map(|k| b.min(n - k * b)).sum();
                assert_eq!(records, span.len() as u64);
                blocks.dedup();
                assert!((block.start(j)..block.start(j + 1)).all(|t| block.window_of(t) == j));
            }
        }
    }
    let nothing = BlockOrder::new(0, 4, 4, 0, 0).unwrap();
    assert_eq!((nothing.len(), nothing.windows(), nothing.start(0)), (0, 0, 0));
}

/// The short block in every slot of every window: seeds until all were seen.
#[test]
fn the_last_block_in_every_slot() {
    let (n, b, w) = (12 * 8 - 5, 8, 4);
    let mut seen = [false; 12];
    for seed in 0.. {
        let block = BlockOrder::new(n, b, w, seed, 0).unwrap();
        let places: Vec<u64> = (0..3).flat_map(|j| block.blocks(j).collect::<Vec<_>>()).collect();
        let slot = places.iter().position(|k| *k == 11).unwrap();
        if !std::mem::replace(&mut seen[slot], true) {
            let order: Vec<u64> = (0..n).map(|t| block.get(t)).collect();
            assert_eq!(order, twin::block_order(n, b, w, seed, 0, 0), "slot {slot}");
        }
        if seen == [true; 12] {
            return;
        }
    }
}

/// Whatever batch is read: its blocks are those of two windows at most, so that these are all that memory holds.
#[test]
fn two_windows_are_enough() {
    let (n, b, w) = (10_007, 32, 8);
    let block = BlockOrder::new(n, b, w, 1, 2).unwrap();
    let order: Vec<u64> = (0..n).map(|t| block.get(t)).collect();
    for (start, batch) in (0..n).step_by(61).flat_map(|start| [1, 64, 200].map(|batch| (start, batch))) {
        let end = n.min(start + batch);
        let mut blocks: Vec<u64> = order[start as usize..end as usize].iter().map(|r| r / b).collect();
        blocks.sort();
        blocks.dedup();
        let windows = block.window_of(start)..=block.window_of(end - 1);
        assert!(windows.clone().count() <= 2);
        let held: Vec<u64> = windows.flat_map(|j| block.blocks(j).collect::<Vec<_>>()).collect();
        assert!(held.len() as u64 <= 2 * w && blocks.iter().all(|k| held.contains(k)));
    }
}

/// Class-sorted data: the variance of a batch's mean, over that of a batch drawn at random.
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
fn deff_is_what_describe_says_or_less() {
    let (n, block, batch) = (1 << 17, 64, 64);
    for (window, at_least) in [(16, 0.9), (64, 0.85), (256, 0.7)] {
        let spec = Spec::Block { block, window };
        let (measured, formula) = (measured_deff(&spec, n, batch, 8), deff(1.0, batch, window));
        println!("W = {window}: deff {measured:.3} measured, {formula:.3} by formula");
        assert!(measured < 1.1 * formula && measured > at_least * formula, "{window}: {measured} {formula}");
        let text = Order::new(&spec, n, 0, 0).unwrap().describe(batch);
        assert!(text.contains(&format!("deff(rho=1) = {formula:.2} for batches of 64")), "{text}");
    }
    let global = measured_deff(&Spec::Global, n, batch, 8);
    println!("global: deff {global:.3} measured");
    assert!((0.9..1.1).contains(&global), "{global}");
}

#[test]
fn defaults_and_limits_of_blocks() {
    // 1,281,167 records in 144 GB: about 112 KB each.
    let (n, stored) = (1_281_167, 144_000_000_000);
    assert_eq!(Spec::block_for(n, stored, 256), Spec::Block { block: 9, window: 1024 });
    assert_eq!((default_window(1), default_window(u64::MAX)), (64, u64::MAX));
    assert_eq!((default_block(10, 0), default_block(10, u64::MAX), default_block(0, 0)), (10 << 20, 1, 1));
    assert_eq!(block_of(4 << 20, n, stored), 37);

    let window = 9 * 1024 * stored / n;
    assert!(check_memory(n, stored, 9, 1024, 3 * window).is_ok());
    match refused(check_memory(n, stored, 9, 1024, window).unwrap_err()) {
        OrderError::Memory { need, budget, largest_window } => {
            assert_eq!((need / window, budget, largest_window), (2, window, 511));
            assert!(check_memory(n, stored, 9, largest_window, window).is_ok());
            assert!(check_memory(n, stored, 9, largest_window + 1, window).is_err());
        }
        other => panic!("{other:?}"),
    }
    let tiny = check_memory(n, stored, 9, 1024, 10).unwrap_err();
    assert!(tiny.to_string().contains("make blocks smaller"), "{tiny}");
    // What is larger than everything holds everything, and no more.
    assert!(check_memory(10, 1000, u64::MAX, u64::MAX, 1000).is_ok());
    assert!(check_memory(u64::MAX, u64::MAX, u64::MAX, u64::MAX, 1000).is_err());
    assert!(check_memory(0, 0, 1, 1, 0).is_ok());

    for (block, window) in [(0, 1), (1, 0)] {
        assert!(matches!(
            refused(BlockOrder::new(10, block, window, 0, 0).unwrap_err()),
            OrderError::Refused { .. }
        ));
    }
    // 2^32 windows are fine, one more is not.
    assert!(BlockOrder::new(1 << 34, 2, 2, 0, 0).is_ok());
    let e = BlockOrder::new((1 << 34) + 1, 2, 2, 0, 0).unwrap_err();
    assert_eq!(refused(e), OrderError::Windows { found: (1 << 32) + 1, limit: 1 << 32 });
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn blocks_there_and_back(n in size(), b in size(), w in size(), seed: u64, epoch: u64, t: u64) {
        match BlockOrder::new(n, b, w, seed, epoch) {
            Ok(order) => {
                let t = t % n;
                let record = order.get(t);
                prop_assert!(record < n);
                prop_assert_eq!(order.inverse(record), t);
                let mut filled = [0];
                order.fill(t, &mut filled);
                prop_assert_eq!(filled[0], record);
                let j = order.window_of(t);
                prop_assert!(order.start(j) <= t && t < order.start(j + 1));
            }
            Err(e) => {
                prop_assert!(n.div_ceil(b).div_ceil(w) > 1 << 32);
                let refused = matches!(refused(e), OrderError::Windows { limit: 0x1_0000_0000, .. });
                prop_assert!(refused);
            }
        }
    }
}
