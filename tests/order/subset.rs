//! Filters, and weighted draws.

use crate::{all, permuted, refused};
use tfseek::error::OrderError;
use tfseek::order::*;
use tfseek_testkit::order_twin as twin;
use tfseek_testkit::rng::Rng;

#[test]
fn filters_in_both_forms() {
    let mut rng = Rng::new(2);
    for (n, chance) in [(0, 1), (1, 255), (1000, 3), (1025, 128), (70_000, 1), (70_000, 200), (300_000, 128)]
    {
        let keep: Vec<bool> = (0..n).map(|_| rng.chance(chance)).collect();
        let ids: Vec<u64> = (0..n as u64).filter(|i| keep[*i as usize]).collect();
        let bits = Subset::from_fn(n as u64, |i| keep[i as usize]);
        let list = Subset::from_ids(ids.clone()).unwrap();
        assert_eq!(bits.iter().last(), ids.last().copied());
        assert_eq!((bits.select(bits.len()), list.select(u64::MAX)), (None, None));
        assert_eq!(bits, list);
        assert!(bits.iter().eq(ids.iter().copied()) && list.iter().eq(ids.iter().copied()));
        assert_eq!((bits.iter().count(), list.iter().count()), (ids.len(), ids.len()));
        let mut k = 0;
        for i in (0..n as u64).filter(|i| n < 2000 || i % 7 == 0) {
            k = ids.partition_point(|id| *id < i).max(k);
            let want = keep[i as usize].then_some(k as u64);
            assert_eq!((bits.rank(i), list.rank(i)), (want, want));
        }
        assert_eq!((bits.rank(n as u64), list.rank(u64::MAX)), (None, None));
        // The order of the selected records is the permutation of their number.
        let order = Order::new(&Spec::Global.filtered(bits), n as u64, 3, 1).unwrap();
        let want = permuted(ids.len() as u64, 3, 1);
        let got = all(&order);
        assert!(got.iter().eq(want.iter().map(|k| &ids[*k as usize])));
        for (t, record) in got.iter().enumerate().take(1000) {
            assert_eq!(order.position_of(*record).unwrap(), Some(t as u64));
        }
    }
    // Record numbers that are far apart are stored as a list.
    let wide = Subset::from_ids([0, 1 << 40, u64::MAX - 1]).unwrap();
    assert_eq!(
        (wide.iter().nth(2), wide.rank(1 << 40), wide.rank(1 << 39)),
        (Some(u64::MAX - 1), Some(1), None)
    );
    for bad in [vec![1, 1], vec![2, 1], vec![u64::MAX]] {
        assert!(matches!(refused(Subset::from_ids(bad).unwrap_err()), OrderError::Refused { .. }));
    }
}

#[test]
fn draws_follow_the_weights() {
    let mut rng = Rng::new(3);
    for n in [1, 2, 5, 17, 100] {
        let mut weights: Vec<u32> = (0..n).map(|_| (rng.u64() as u32) >> rng.below(32)).collect();
        weights[n / 2] = 7;
        if n > 4 {
            weights[1] = 0;
        }
        let order =
            Order::new(&Spec::Weighted(Weights::new(weights.clone()).unwrap()), n as u64, 6, 2).unwrap();
        for epoch in 0..200 {
            let draws = all(&order.at_epoch(epoch).unwrap());
            assert!((0..).zip(draws).all(|(t, record)| record == twin::draw(&weights, 6, epoch, 0, t)));
        }
        let total = 200_000 / n * n;
        let mut counts = vec![0u32; n];
        for epoch in 0..total as u64 / n as u64 {
            all(&order.at_epoch(epoch).unwrap()).iter().for_each(|record| counts[*record as usize] += 1);
        }
        let sum: f64 = weights.iter().map(|w| f64::from(*w)).sum();
        for (weight, count) in weights.iter().zip(counts) {
            let p = f64::from(*weight) / sum;
            let (mean, sigma) = (p * total as f64, (p * (1.0 - p) * total as f64).sqrt());
            assert!((f64::from(count) - mean).abs() <= 5.0 * sigma + 3.0 * f64::from(u8::from(p > 0.0)));
        }
        assert!((0..).zip(all(&order)).all(|(t, record)| order.get(t).unwrap() == record));
    }
    assert!(Weights::new([0, 0]).is_err() && Weights::new([]).is_err());
    let mut large = vec![u32::MAX; 1000];
    large[0] = 0;
    let order = Order::new(&Spec::Weighted(Weights::new(large).unwrap()), 1000, 0, 0).unwrap();
    assert!((0..10).all(|epoch| all(&order.at_epoch(epoch).unwrap()).iter().all(|record| *record != 0)));
}
