//! Steps and ranks: global batches do not depend on the number of ranks, and no sample is lost.

use tfseek::error::OrderError;
use tfseek::order::{LastBatch, RankShare, Run, Spec, State, StepRow};
use tfseek::{ErrorKind, Order};

use LastBatch::{Continuous, Drop, Pad, Short};

const POLICIES: [LastBatch; 4] = [Drop, Pad, Short, Continuous];

/// (epoch, position, padding)
type Sample = (u64, u64, bool);

fn samples(runs: impl IntoIterator<Item = Run>) -> Vec<Sample> {
    let one = |run: Run| (0..run.len).map(move |i| (run.epoch, run.start + i, run.padding));
    runs.into_iter().flat_map(one).collect()
}

fn share(n: u64, batch: u64, rank: u64, ranks: u64, last: LastBatch) -> RankShare {
    RankShare::new(n, batch, rank, ranks, last).unwrap()
}

fn count(share: &RankShare, k: u64) -> u64 {
    share.step(k).unwrap().map(|run| run.len).sum()
}

/// Locates a position: in a sequential order of `n` records, the record with this number.
fn locate(share: &RankShare, n: u64, position: u64) -> Option<StepRow> {
    let order = Order::new(&Spec::Sequential, n, 0, 0).unwrap();
    if position < n { order.rows_of(position, share).unwrap().pop() } else { None }
}

/// Returns the samples of all ranks in step k, one rank after another.
fn concatenated(n: u64, batch: u64, ranks: u64, last: LastBatch, start: u64, k: u64) -> Vec<Sample> {
    (0..ranks)
        .flat_map(|r| samples(share(n, batch, r, ranks, last).starting_at(start).unwrap().step(k).unwrap()))
        .collect()
}

/// Returns the samples of a step according to the text of docs/order.md.
fn expected_samples(n: u64, batch: u64, last: LastBatch, start: u64, k: u64) -> Vec<Sample> {
    let one = |p: u64| match last {
        Drop => (0, p, false),
        Pad => (0, p % n, p >= n),
        Short => (0, p, false),
        Continuous => (p / n, p % n, false),
    };
    let begin = start + k * batch;
    let end = if last == Short { n.min(begin + batch) } else { begin + batch };
    (begin..end).map(one).collect()
}

#[test]
fn every_policy_at_every_remainder() {
    let batch = 12;
    for n in [0, 1, 5, 11, 12, 13, 35, 36, 37, 100] {
        for last in POLICIES {
            for start in 0..=n {
                let whole = share(n, batch, 0, 1, last).starting_at(start).unwrap();
                let left = n - start;
                let steps = if last == Drop { left / batch } else { left.div_ceil(batch) };
                assert_eq!(whole.steps(), steps, "{last:?} {n} {start}");
                for ranks in [1, 2, 3, 4, 6, 12] {
                    let shares: Vec<RankShare> = (0..ranks)
                        .map(|r| share(n, batch, r, ranks, last).starting_at(start).unwrap())
                        .collect();
                    assert!(shares.iter().all(|share| share.steps() == steps));
                    for k in 0..steps {
                        let want = expected_samples(n, batch, last, start, k);
                        assert_eq!(concatenated(n, batch, ranks, last, start, k), want);
                        assert_eq!(samples(whole.step(k).unwrap()), want);
                        let sizes: Vec<u64> = shares.iter().map(|s| count(s, k)).collect();
                        match last {
                            // Sizes differ by at most one.
                            Short => assert!(sizes.iter().max().unwrap() - sizes.iter().min().unwrap() <= 1),
                            _ => assert!(sizes.iter().all(|size| *size == batch / ranks)),
                        }
                    }
                    for share in &shares {
                        let all: u64 = (0..steps).map(|k| count(share, k)).sum();
                        assert_eq!(share.samples(), all);
                        // All ranks have the same number of samples, except with short batches.
                        assert!(last == Short || all == shares[0].samples());
                    }
                }
                // Every position is delivered once, except dropped ones.
                let mut seen = vec![0; n as usize];
                let delivered = (0..steps).flat_map(|k| samples(whole.step(k).unwrap()));
                delivered.filter(|s| s.0 == 0 && !s.2).for_each(|s| seen[s.1 as usize] += 1);
                let want = |p: u64| u32::from(p >= start && (last != Drop || p < start + steps * batch));
                assert!((0..n).all(|p| seen[p as usize] == want(p)), "{last:?} {n} {start}");
                match last {
                    Continuous if n > 0 => {
                        assert_eq!(
                            samples(whole.step(1000).unwrap()),
                            expected_samples(n, batch, last, start, 1000)
                        );
                    }
                    _ => assert!(whole.step(steps).is_none() && whole.after(steps).is_none()),
                }
            }
        }
    }
}

#[test]
fn locate_is_the_inverse_of_step() {
    let batch = 12;
    for last in POLICIES {
        for n in [1, 11, 12, 13, 47, 48, 49] {
            for ranks in [1, 2, 3, 4, 6, 12] {
                for start in [0, 1, n / 2, n] {
                    let shares: Vec<RankShare> = (0..ranks)
                        .map(|r| share(n, batch, r, ranks, last).starting_at(start).unwrap())
                        .collect();
                    let mut rows = vec![None; n as usize];
                    for (rank, share) in shares.iter().enumerate() {
                        for step in 0..share.steps() {
                            for (row, sample) in samples(share.step(step).unwrap()).iter().enumerate() {
                                if sample.0 == 0 && !sample.2 {
                                    rows[sample.1 as usize] =
                                        Some(StepRow { step, rank: rank as u64, row: row as u64 });
                                }
                            }
                        }
                    }
                    for (position, row) in rows.iter().enumerate() {
                        assert_eq!(
                            locate(&shares[0], n, position as u64),
                            *row,
                            "{last:?} n {n} R {ranks} p0 {start}: {position}"
                        );
                    }
                    // Positions beyond the end have no record and no step.
                    assert!(Order::new(&Spec::Sequential, n, 0, 0).unwrap().rows_of(n, &shares[0]).is_err());
                }
            }
        }
    }
}

/// Runs are stopped after every step and resumed with other numbers of ranks and other batch sizes.
#[test]
fn runs_resume_with_other_ranks_and_batches() {
    let (n, batch) = (1003, 24);
    let fingerprint = "99aa06d3014798d86001c324468d497f";
    let spec = Spec::Block { block: 16, window: 4 };
    let order = Order::new(&spec, n, 9, 5).unwrap();
    let records = |order: &Order, runs: Vec<Sample>| -> Vec<u64> {
        runs.iter().filter(|s| !s.2).map(|s| order.get(s.1).unwrap()).collect()
    };
    let whole: Vec<u64> = (0..n).map(|t| order.get(t).unwrap()).collect();
    for last in [Pad, Short] {
        for (ranks, other) in [(1, 12), (2, 3), (3, 4), (4, 6), (6, 1), (12, 2)] {
            for other_batch in [batch, 36, 12] {
                let first = share(n, batch, 0, ranks, last);
                let mut seen = Vec::new();
                for k in 0..first.steps() {
                    seen.extend(records(&order, concatenated(n, batch, ranks, last, 0, k)));
                    let (epochs, position) = first.after(k).unwrap();
                    assert_eq!((epochs, position), (0, n.min((k + 1) * batch)));
                    let saved = State::new(&order, position, fingerprint).unwrap().to_json();

                    let state = State::from_json(&saved).unwrap();
                    let again = state.resume(&spec, n, fingerprint).unwrap();
                    let rest = share(n, other_batch, 0, other, last).starting_at(state.position).unwrap();
                    let mut union = seen.clone();
                    for k in 0..rest.steps() {
                        let runs = concatenated(n, other_batch, other, last, state.position, k);
                        union.extend(records(&again, runs));
                    }
                    assert_eq!(union, whole, "{last:?} {ranks} -> {other}, stopped after step {k}");
                }
            }
        }
    }
}

/// Continuous batches cross the ends of epochs, and can be stopped anywhere.
#[test]
fn continuous_runs_cross_epochs() {
    for (n, batch) in [(10, 4), (3, 12), (12, 12), (1, 2)] {
        let whole: Vec<(u64, u64)> = (0..40 * batch).map(|t| (t / n, t % n)).collect();
        let mut got = Vec::new();
        let (mut epoch, mut position, mut cuts) = (0, 0, [1, 3, 2].into_iter().cycle());
        while got.len() < whole.len() {
            let shares: Vec<RankShare> =
                (0..2).map(|r| share(n, batch, r, 2, Continuous).starting_at(position).unwrap()).collect();
            let steps = cuts.next().unwrap();
            for k in 0..steps {
                for share in &shares {
                    got.extend(samples(share.step(k).unwrap()).iter().map(|s| (epoch + s.0, s.1)));
                }
            }
            let (epochs, at) = shares[0].after(steps - 1).unwrap();
            (epoch, position) = (epoch + epochs, at);
        }
        assert_eq!(got[..whole.len()], whole, "{n} {batch}");
    }
}

#[test]
fn invalid_shares_are_refused() {
    let refused = |n, batch, rank, ranks| match RankShare::new(n, batch, rank, ranks, Pad) {
        Err(e) => match e.into_kind() {
            ErrorKind::Order(e) => e,
            other => panic!("{other:?}"),
        },
        Ok(share) => panic!("{share:?}"),
    };
    assert_eq!(refused(10, 4, 2, 2), OrderError::Rank { rank: 2, ranks: 2 });
    assert_eq!(refused(10, 4, 0, 0), OrderError::Rank { rank: 0, ranks: 0 });
    assert_eq!(refused(10, 0, 0, 1), OrderError::Batch { batch: 0, ranks: 1 });
    assert_eq!(refused(10, 4, 0, 3), OrderError::Batch { batch: 4, ranks: 3 });
    let e = share(10, 4, 0, 2, Pad).starting_at(11).unwrap_err();
    assert_eq!(e.to_string(), "no position 11: there are 10");
}

/// Extreme numbers give a result or an error, and no overflow.
#[test]
fn shares_with_extreme_numbers() {
    for last in POLICIES {
        for (n, batch, ranks) in
            [(u64::MAX, u64::MAX, 1), (u64::MAX, 1 << 63, 1 << 63), (u64::MAX, 6, 3), (1, u64::MAX, u64::MAX)]
        {
            for start in [0, n / 2, n - 1, n] {
                let share = share(n, batch, ranks - 1, ranks, last).starting_at(start).unwrap();
                let steps = share.steps();
                for k in [0, 1, steps.saturating_sub(1), steps, u64::MAX] {
                    let runs = share.step(k).map(|runs| runs.take(3).collect::<Vec<_>>());
                    assert!(last == Continuous || runs.is_some() == (k < steps));
                    assert!(
                        runs.into_iter().flatten().all(|run| run.len > 0 && run.start + (run.len - 1) < n)
                    );
                    share.after(k);
                }
                share.samples();
                for position in [0, start, n / 2, n - 1] {
                    let row = locate(&share, n, position);
                    assert!(row.is_none_or(|row| row.step < steps && row.rank < ranks));
                }
            }
        }
    }
}
