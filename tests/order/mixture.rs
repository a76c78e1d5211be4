//! Mixtures: exact counts in each cycle, each component a permutation in each of its epochs, and balanced
//! classes.

use crate::{all, refused};
use tfseek::error::OrderError;
use tfseek::order::*;
use tfseek_testkit::order_twin as twin;
use tfseek_testkit::rng::Rng;

/// Number of records of each source of [`sources`].
const SOURCE: u64 = 1 << 40;

/// Mixes sequential sources of 2^40 records each, so that a record number encodes its component and sample.
pub(crate) fn sources(weights: &[u64], seed: u64) -> Order {
    Order::new(&Spec::Mix(MixSpec::new(components(weights))), weights.len() as u64 * SOURCE, seed, 0).unwrap()
}

/// The components of [`sources`].
pub(crate) fn components(weights: &[u64]) -> Vec<Component> {
    let source = |(c, weight): (u64, &u64)| {
        Component::new(*weight, Spec::Sequential).over(c * SOURCE..(c + 1) * SOURCE)
    };
    (0..).zip(weights).map(source).collect()
}

/// Returns the component at position `t` and the number of its sample.
pub(crate) fn sample(mixture: &Order, t: u64) -> (usize, u64) {
    let record = mixture.get(t).unwrap();
    ((record / SOURCE) as usize, record % SOURCE)
}

#[test]
fn mixtures_against_their_table() {
    for weights in [vec![5, 2, 1], vec![1], vec![1, 1], vec![100, 1, 1], (1..60).collect()] {
        let cycle: u64 = weights.iter().sum();
        let mixture = sources(&weights, 1);
        let whole = RankShare::new(mixture.len(), 1, 0, 1, LastBatch::Short).unwrap();
        let table = twin::mixture(&weights, 1, 3);
        // Access to any position returns the same record as the sequential pass.
        let seeks: Vec<(usize, u64)> = (0..3 * cycle).rev().map(|t| sample(&mixture, t)).collect();
        assert!(seeks.into_iter().rev().eq(table.iter().copied()));
        assert_eq!(sample(&mixture, 3 * cycle), sample(&mixture, 3 * cycle));
        for (t, (c, i)) in table.iter().enumerate() {
            let rows = mixture.rows_of(*c as u64 * SOURCE + i, &whole).unwrap();
            assert_eq!(rows.first().map(|row| row.step), Some(t as u64));
        }
        for cycle in table.chunks(cycle as usize) {
            for (c, weight) in weights.iter().enumerate() {
                assert_eq!(cycle.iter().filter(|got| got.0 == c).count() as u64, *weight);
            }
        }
    }
}

pub(crate) fn three_sources() -> (Spec, u64) {
    let spec = Spec::Mix(MixSpec::new(vec![
        Component::new(5, Spec::Global).over(0..100),
        Component::new(2, Spec::Block { block: 4, window: 3 }).over(100..157),
        Component::new(1, Spec::Global.filtered(Subset::from_fn(43, |i| i % 3 == 0))).over(157..200),
        Component::new(1, Spec::Sequential).over(10..13),
    ]));
    (spec, 200)
}

#[test]
fn each_component_is_a_permutation_in_each_of_its_epochs() {
    let (spec, n) = three_sources();
    let order = Order::new(&spec, n, 9, 0).unwrap();
    let len = order.len();
    assert_eq!(len, 100 + 57 + 15 + 3);
    // Several epochs form one run of positions.
    let records: Vec<u64> = (0..9).flat_map(|epoch| all(&order.at_epoch(epoch).unwrap())).collect();
    let mixture = sources(&[5, 2, 1, 1], 9);
    let mut of = vec![Vec::new(); 4];
    for (t, record) in records.iter().enumerate() {
        let (c, i) = sample(&mixture, t as u64);
        assert_eq!(of[c].len() as u64, i);
        of[c].push(*record);
        let epoch = order.at_epoch(t as u64 / len).unwrap();
        assert_eq!(epoch.get(t as u64 % len).unwrap(), *record);
    }
    let block = |epoch| twin::block_order(57, 4, 3, 9, epoch, 2 << 40);
    type Source = (u64, Box<dyn Fn(u64) -> Vec<u64>>);
    let sources: [Source; 4] = [
        (100, Box::new(|epoch| twin::prp(100, 9, epoch, 1 << 40).all())),
        (57, Box::new(move |epoch| block(epoch).into_iter().map(|r| r + 100).collect())),
        (
            15,
            Box::new(|epoch| {
                twin::prp(15, 9, epoch, 3 << 40).all().into_iter().map(|k| 157 + 3 * k).collect()
            }),
        ),
        (3, Box::new(|_| vec![10, 11, 12])),
    ];
    for (got, (len, want)) in of.iter().zip(sources) {
        let mut passes = 0;
        for (epoch, pass) in got.chunks_exact(len as usize).enumerate() {
            assert_eq!(pass, want(epoch as u64));
            passes += 1;
        }
        assert!(passes >= 5, "{passes} passes of {len}");
    }
}

#[test]
fn mixtures_seek_and_fill_alike() {
    let (spec, n) = three_sources();
    let order = Order::new(&spec, n, 9, 4).unwrap();
    let records = all(&order);
    for start in 0..records.len() {
        let mut part = vec![0; (records.len() - start).min(33)];
        order.fill(start as u64, &mut part).unwrap();
        assert_eq!(part, records[start..][..part.len()]);
        assert_eq!(order.get(start as u64).unwrap(), records[start]);
    }
    assert_eq!(order.position_of(5).unwrap(), None);
    // More components than the number whose keys are cached.
    let many = (0..40).map(|c| Component::new(c % 3 + 1, Spec::Global).over(5 * c..5 * c + 5)).collect();
    let order = Order::new(&Spec::Mix(MixSpec::new(many)), n, 9, 4).unwrap();
    let records = all(&order);
    assert!((0..n).all(|t| order.get(t).unwrap() == records[t as usize]));
}

#[test]
fn classes_are_balanced() {
    let mut rng = Rng::new(1);
    let labels: Vec<usize> = (0..3000).map(|_| [0, 0, 0, 0, 0, 0, 1, 1, 2, 3][rng.below(10)]).collect();
    let class = |c| Subset::from_fn(3000, |i| labels[i as usize] == c);
    let order = Order::new(&tfseek_testkit::order_twin::balanced((0..4).map(class)), 3000, 5, 0).unwrap();
    assert_eq!(order.len(), 3000);
    let records = all(&order);
    for four in records.chunks_exact(4) {
        let mut seen: Vec<usize> = four.iter().map(|r| labels[*r as usize]).collect();
        seen.sort();
        assert_eq!(seen, [0, 1, 2, 3]);
    }
    // No record of a class is repeated before all of its records were seen.
    for c in 0..4 {
        let of: Vec<u64> = records.iter().copied().filter(|r| labels[*r as usize] == c).collect();
        let size = labels.iter().filter(|label| **label == c).count();
        for pass in of.chunks(size) {
            let mut pass = pass.to_vec();
            pass.sort();
            assert!(pass.windows(2).all(|pair| pair[0] < pair[1]));
        }
    }
    let empty = tfseek_testkit::order_twin::balanced([class(0), class(7)]);
    let e = Order::new(&empty, 3000, 5, 0).unwrap_err();
    assert_eq!(e.to_string(), "invalid order: component 1: no records");
}

#[test]
fn proportions_become_weights() {
    for (proportions, want) in [
        (vec![1.0], vec![4096]),
        (vec![0.5, 0.5], vec![2048, 2048]),
        (vec![1.0, 1.0, 1.0], vec![1366, 1365, 1365]),
        (vec![0.5, 0.3, 0.2], vec![2048, 1229, 819]),
        (vec![1.0, 3.0, 4.0], vec![512, 1536, 2048]),
        (vec![1e-300, 1.0, f64::MAX / 4.0, f64::MAX], vec![1, 1, 819, 3275]),
    ] {
        assert_eq!(mixture_weights(&proportions).unwrap(), want, "{proportions:?}");
    }
    let mut rng = Rng::new(4);
    for _ in 0..300 {
        let proportions: Vec<f64> = (0..1 + rng.below(80))
            .map(|_| ((rng.below(1000) + 1) as f64).powi(rng.below(5) as i32))
            .collect();
        let weights = mixture_weights(&proportions).unwrap();
        assert_eq!(weights.iter().sum::<u64>(), 4096);
        assert!(weights.iter().all(|w| *w > 0));
    }
    assert_eq!(mixture_weights(&[1.0; 4096]).unwrap(), [1; 4096]);
    for (bad, index) in
        [(vec![1.0, 0.0], 1), (vec![f64::NAN], 0), (vec![1.0, -1.0], 1), (vec![f64::INFINITY], 0)]
    {
        assert!(
            matches!(refused(mixture_weights(&bad).unwrap_err()), OrderError::Weight { index: i, .. } if i == index)
        );
    }
    assert!(mixture_weights(&[]).is_err() && mixture_weights(&[1.0; 4097]).is_err());
}
