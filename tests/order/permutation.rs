//! PRP1: test vectors, completeness at every size, and the inverse.

use crate::{is_permutation, permuted};
use proptest::prelude::*;
use tfseek::order::{Order, Spec};
use tfseek_testkit::order_twin as twin;

#[test]
fn vectors_of_the_permutation() {
    let vectors: &[(u64, u64, u64, &[u64])] = &[
        (2, 0, 0, &[1, 0]),
        (5, 0, 0, &[1, 3, 2, 4, 0]),
        (10, 42, 0, &[9, 3, 0, 8, 1, 4]),
        (10, 42, 1, &[7, 5, 1, 4, 0, 3]),
        (1000, 42, 7, &[34, 319, 461, 155, 414, 241]),
        (1_000_000, 42, 0, &[402525, 858891, 117253, 614521, 190970, 472755]),
        (1_000_000_000, 42, 3, &[36767572, 823504073, 891576731, 944829155, 828632337, 410064434]),
        (1 << 40, 1, 1, &[886427382076, 99473678472, 621571256659, 860720952483]),
        ((1 << 63) + 12345, u64::MAX, 9, &[6722842154999434219, 7699357829054953352, 6471315543696089380]),
    ];
    for (n, seed, epoch, want) in vectors {
        let order = Order::new(&Spec::Global, *n, *seed, *epoch).unwrap();
        let mut filled = vec![0; want.len()];
        order.fill(0, &mut filled).unwrap();
        assert_eq!(filled, *want, "n = {n}");
        for (i, number) in want.iter().enumerate() {
            assert_eq!(order.get(i as u64).unwrap(), *number);
            assert_eq!(order.position_of(*number).unwrap(), Some(i as u64));
        }
    }
}

#[test]
fn permutations_are_complete_up_to_5000() {
    for n in 0..=5000 {
        let order = permuted(n, n / 7, n % 5);
        assert!(is_permutation(&order), "n = {n}");
    }
}

/// Sizes around powers of two, among them 4^k + 1, where other implementations have lost records.
fn around_powers(bits: std::ops::RangeInclusive<u32>) {
    for k in bits {
        for n in [(1u64 << k) - 1, 1 << k, (1 << k) + 1] {
            assert!(is_permutation(&permuted(n, 7, u64::from(k))), "n = {n}");
        }
    }
}

#[test]
fn permutations_are_complete_around_powers_of_two() {
    around_powers(0..=22);
}

#[test]
#[ignore = "slow: make test-slow"]
fn permutations_are_complete_around_larger_powers_of_two() {
    around_powers(23..=25);
}

#[test]
fn fill_agrees_with_get() {
    for n in [1, 2, 63, 64, 65, 100, 1000, 1025, 4097] {
        let (records, twin) = (permuted(n, 3, 4), twin::prp(n, 3, 4, 0));
        let order = Order::new(&Spec::Global, n, 3, 4).unwrap();
        for i in 0..n {
            let record = records[i as usize];
            assert_eq!((order.get(i).unwrap(), order.position_of(record).unwrap()), (record, Some(i)));
            assert_eq!(twin.get(i), record);
        }
        for (start, len) in [(0, 1), (n / 2, n - n / 2), (n - 1, 1), (n, 0)] {
            let mut part = vec![0; len as usize];
            order.fill(start, &mut part).unwrap();
            assert_eq!(part, records[start as usize..][..len as usize]);
        }
    }
}

/// Any size, with a uniform number of bits.
pub(crate) fn size() -> impl Strategy<Value = u64> {
    (1u32..=64, any::<u64>()).prop_map(|(bits, n)| (n >> (64 - bits)).max(1))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn get_and_inverse(n in size(), seed: u64, epoch: u64, i: u64) {
        let order = Order::new(&Spec::Global, n, seed, epoch).unwrap();
        let i = i % n;
        let record = order.get(i).unwrap();
        prop_assert!(record < n);
        prop_assert_eq!(order.position_of(record).unwrap(), Some(i));
        let at = order.position_of(i).unwrap().unwrap();
        prop_assert_eq!(order.get(at).unwrap(), i);
        prop_assert_eq!(twin::prp(n, seed, epoch, 0).get(i), record);
    }
}
