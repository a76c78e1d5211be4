//! Seeds, and the text forms of orders and of their parts.

use tfseek::order::{Component, MixSpec, Order, Spec, Subset, Weights, seed_of};

#[test]
fn seeds_are_64_bits_with_or_without_a_sign() {
    for (number, seed) in [(0, 0), (-1, u64::MAX), (i64::MIN.into(), 1 << 63), (u64::MAX.into(), u64::MAX)] {
        assert_eq!(seed_of(number).unwrap(), seed);
    }
    for number in [i128::from(i64::MIN) - 1, i128::from(u64::MAX) + 1, i128::MIN] {
        let e = seed_of(number).unwrap_err().to_string();
        assert!(e.contains(&format!("found {number}")), "{e}");
    }
}

#[test]
fn summaries_name_the_kind_and_no_batch() {
    let weights = Weights::new([1, 2, 3]).unwrap();
    let summary = |spec: Spec, n| Order::new(&spec, n, 0, 0).unwrap().describe(None);
    assert_eq!(summary(Spec::Sequential, 1), "1 record in sequential order");
    assert_eq!(summary(Spec::Weighted(weights), 3), "3 records drawn by weight, with replacement");
    let odd = Subset::from_fn(10, |i| i % 2 == 1);
    assert_eq!(summary(Spec::Global.filtered(odd), 10), "5 records of a filter in global order");
    let mixture = Spec::Mix(MixSpec::new((0..20).map(|_| Component::new(1, Spec::Global)).collect()));
    let text = summary(mixture, 5);
    let listed = Spec::Mix(MixSpec::new((0..16).map(|_| Component::new(1, Spec::Global)).collect()));
    assert!(!summary(listed, 5).contains("more"));
    assert!(text.starts_with("100 positions in a mixture of 20 components, cycles of 20\n"), "{text}");
    assert!(text.contains("\n  and ") && !text.contains("deff"), "{text}");
}

/// Debug forms are short, whatever the number of records.
#[test]
fn debug_forms_are_short() {
    let order = Order::new(&Spec::Global, 1_000_000, 42, 3).unwrap();
    assert_eq!(format!("{order:?}"), "Order { spec: Global, records: 1000000, seed: 42, epoch: 3, .. }");
    let subset = Subset::from_fn(100_000, |i| i < 50_000);
    assert_eq!(format!("{subset:?}"), "Subset { len: 50000, end: 50000, .. }");
    let weights = Weights::new(vec![1; 1000]).unwrap();
    assert_eq!(format!("{weights:?}"), "Weights { len: 1000, .. }");
    assert!(weights == weights.clone() && weights == Weights::new(vec![1; 1000]).unwrap());
    assert!(weights != Weights::new(vec![2; 1000]).unwrap());
}
