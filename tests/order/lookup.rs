//! Lookups in an epoch: the samples of a step, and the steps of a record.

use crate::mixture::three_sources;
use crate::{all, refused};
use tfseek::ErrorKind;
use tfseek::error::OrderError;
use tfseek::order::*;

/// Returns every kind of order over 200 records, plain and in mixtures.
fn specs() -> Vec<Spec> {
    let block = Spec::Block { block: 7, window: 3 };
    let thirds = || Subset::from_fn(200, |i| i % 3 == 1);
    let weights = |n| Spec::Weighted(Weights::new((0..n).collect::<Vec<u32>>()).unwrap());
    vec![
        Spec::Sequential,
        Spec::Global,
        block.clone(),
        Spec::Global.filtered(thirds()),
        block.filtered(thirds()),
        weights(200),
        weights(67).filtered(thirds()),
        three_sources().0,
        // Cycles whose length does not divide the epoch, and one component much longer than another.
        Spec::Mix(MixSpec::new(vec![
            Component::new(1, weights(10)).over(190..200),
            Component::new(300, Spec::Global).over(0..9),
            Component::new(2, Spec::Global).over(5..100),
        ])),
        tfseek_testkit::order_twin::balanced([thirds(), Subset::from_fn(200, |i| i == 199)]),
    ]
}

fn share(order: &Order, rank: u64, last: LastBatch) -> RankShare {
    RankShare::new(order.len(), 12, rank, 3, last).unwrap()
}

#[test]
fn samples_of_a_step_are_the_records_at_its_positions() {
    for spec in specs() {
        for epoch in [0, 1, 5] {
            let order = Order::new(&spec, 200, 3, epoch).unwrap();
            let (now, next) = (all(&order), all(&order.at_epoch(epoch + 1).unwrap()));
            for last in [LastBatch::Drop, LastBatch::Pad, LastBatch::Short, LastBatch::Continuous] {
                let mut seen = Vec::new();
                for step in 0..share(&order, 0, last).steps() {
                    for rank in 0..3 {
                        let share = share(&order, rank, last);
                        let samples = order.samples(share.step(step).unwrap()).unwrap();
                        assert_eq!(
                            samples.len() as u64,
                            share.step(step).unwrap().map(|run| run.len).sum::<u64>()
                        );
                        seen.extend(samples);
                    }
                }
                for (t, sample) in seen.iter().enumerate() {
                    let (over, position) = (t / now.len(), t % now.len());
                    let (epoch, record) = match last {
                        LastBatch::Continuous if over == 1 => (epoch + 1, next[position]),
                        _ => (epoch, now[position]),
                    };
                    let padding = last == LastBatch::Pad && over > 0;
                    assert_eq!(*sample, Sample { epoch, position: position as u64, record, padding });
                }
                // More samples than one chunk of the lookup.
                let share = RankShare::new(order.len(), order.len(), 0, 1, last).unwrap();
                let samples = order.samples(share.step(0).unwrap()).unwrap();
                assert!(samples.iter().map(|sample| sample.record).eq(now.iter().copied()));
            }
        }
    }
}

#[test]
fn rows_of_finds_every_occurrence() {
    for spec in specs() {
        for epoch in [0, 1, 2, 77] {
            let order = Order::new(&spec, 200, 3, epoch).unwrap();
            let records = all(&order);
            for record in 0..200 {
                let at = |(t, r): (usize, &u64)| (*r == record).then_some(t as u64);
                let want: Vec<u64> = records.iter().enumerate().filter_map(at).collect();
                // With batches of one record, a step is a position.
                let ones = RankShare::new(order.len(), 1, 0, 1, LastBatch::Short).unwrap();
                let found: Vec<u64> =
                    order.rows_of(record, &ones).unwrap().iter().map(|row| row.step).collect();
                assert_eq!(found, want, "{spec:?}, epoch {epoch}: {record}");
                if let Some(position) = order.position_of(record).unwrap() {
                    assert_eq!(want, [position]);
                }
                // A share of fewer positions has no rows after them.
                let few = RankShare::new(9, 1, 0, 1, LastBatch::Continuous).unwrap();
                let found = order.rows_of(record, &few).unwrap();
                assert!(found.iter().map(|row| row.step).eq(want.into_iter().filter(|at| *at < 9)));
            }
        }
    }
}

#[test]
fn rows_of_is_the_inverse_of_samples() {
    for spec in specs() {
        let order = Order::new(&spec, 200, 3, 4).unwrap();
        for last in [LastBatch::Drop, LastBatch::Pad, LastBatch::Short, LastBatch::Continuous] {
            for start in [0, 5] {
                let shares: Vec<RankShare> =
                    (0..3).map(|rank| share(&order, rank, last).starting_at(start).unwrap()).collect();
                let mut want = vec![Vec::new(); 200];
                for step in 0..shares[0].steps() {
                    for (rank, share) in (0..).zip(&shares) {
                        let samples = order.samples(share.step(step).unwrap()).unwrap();
                        for (row, sample) in (0..).zip(samples) {
                            if sample.epoch == 4 && !sample.padding {
                                want[sample.record as usize].push(StepRow { step, rank, row });
                            }
                        }
                    }
                }
                for (record, want) in (0..).zip(want) {
                    // All ranks give the same answer.
                    assert_eq!(order.rows_of(record, &shares[record as usize % 3]).unwrap(), want);
                }
            }
        }
    }
}

#[test]
fn records_and_positions_out_of_range_are_errors() {
    for spec in specs() {
        let order = Order::new(&spec, 200, 3, 0).unwrap();
        let gone = |e: tfseek::Error| {
            matches!(e.into_kind(), ErrorKind::OutOfRange { what: "record", i: 200, len: 200 })
        };
        assert!(gone(order.position_of(200).unwrap_err()));
        assert!(gone(order.rows_of(200, &share(&order, 0, LastBatch::Pad)).unwrap_err()));
        // Runs that extend beyond the end.
        let len = order.len();
        for (start, count) in [(len - 1, 2), (len, 1), (0, u64::MAX)] {
            let run = Run { epoch: 0, start, len: count, padding: false };
            assert!(matches!(refused(order.samples([run]).unwrap_err()), OrderError::Position { .. }));
        }
        assert!(order.samples([]).unwrap().is_empty());
    }
    let last = Order::new(&Spec::Global, 200, 3, u64::MAX).unwrap();
    let run = Run { epoch: 1, start: 0, len: 1, padding: false };
    assert!(last.samples([run]).unwrap_err().to_string().contains("expected an epoch below 2^64"));
}

/// Lookups in a billion records, also in a mixture, do not search.
#[test]
fn lookups_in_a_billion_records() {
    let n = 1_000_000_000;
    let component = |weight, records| Component::new(weight, Spec::Global).over(records);
    for spec in [
        Spec::Global,
        Spec::Block { block: 256, window: 1024 },
        Spec::Mix(MixSpec::new(vec![component(900, 0..n / 2), component(3196, n / 2..n)])),
    ] {
        let order = Order::new(&spec, n, 42, 3).unwrap();
        for rank in 0..8 {
            let share = RankShare::new(n, 2048, rank, 8, LastBatch::Pad).unwrap();
            let share = share.starting_at(123_456_789).unwrap();
            let samples = order.samples(share.step(18_234).unwrap()).unwrap();
            assert_eq!((samples.len(), samples[0].position), (256, 123_456_789 + 18_234 * 2048 + rank * 256));
            let rows = order.rows_of(samples[17].record, &share).unwrap();
            assert!(rows.contains(&StepRow { step: 18_234, rank, row: 17 }));
        }
    }
}
