//! Buckets of records of like length, compared with lists that are made as docs/order.md says.

use crate::{is_permutation, refused};
use tfseek::error::OrderError;
use tfseek::order::*;
use tfseek_testkit::order_twin as twin;
use tfseek_testkit::rng::Rng;

use LastBatch::{Continuous, Drop, Pad, Short};

const FP: &str = "99aa06d3014798d86001c324468d497f";
const POLICIES: [LastBatch; 3] = [Drop, Pad, Short];

/// A run of buckets: what an order is made of.
#[derive(Clone)]
struct Case {
    lengths: Vec<u64>,
    boundaries: Vec<u64>,
    sizes: Vec<u64>,
    shuffle: bool,
    last: LastBatch,
    seed: u64,
    /// The records of the rows, of `n`. `None`: all.
    subset: Option<Vec<u64>>,
    n: u64,
}

impl Case {
    fn buckets(&self) -> Buckets {
        let buckets = Buckets::new(self.lengths.iter().copied(), self.boundaries.clone()).unwrap();
        buckets.batch_sizes(self.sizes.clone()).shuffle(self.shuffle).last_batch(self.last)
    }

    fn spec(&self) -> Spec {
        match &self.subset {
            None => Spec::Buckets(self.buckets()),
            Some(ids) => Spec::Buckets(self.buckets()).filtered(Subset::from_ids(ids.clone()).unwrap()),
        }
    }

    fn order(&self, epoch: u64) -> Order {
        Order::new(&self.spec(), self.n, self.seed, epoch).unwrap()
    }

    fn bucket(&self, length: u64) -> usize {
        self.boundaries.iter().filter(|boundary| **boundary < length).count()
    }

    /// The global batches of an epoch in the order of its steps: (record, position, padding) of each row.
    fn batches(&self, epoch: u64) -> Vec<Vec<(u64, u64, bool)>> {
        let permuted = |n: u64, stream: u64| -> Vec<u64> {
            if self.shuffle { twin::prp(n, self.seed, epoch, stream).all() } else { (0..n).collect() }
        };
        let (mut batches, mut first) = (Vec::new(), 0);
        for (k, &size) in self.sizes.iter().enumerate() {
            let rows: Vec<usize> =
                (0..self.lengths.len()).filter(|row| self.bucket(self.lengths[*row]) == k).collect();
            let n = rows.len() as u64;
            let record = |row: usize| self.subset.as_ref().map_or(row as u64, |ids| ids[row]);
            let order = permuted(n, 4 * (1 << 32) + k as u64);
            let order: Vec<u64> = order.iter().map(|i| record(rows[*i as usize])).collect();
            let sample = |p: u64| (order[(p % n) as usize], first + p % n, p >= n);
            for begin in (0..n).step_by(size as usize) {
                let end = match self.last {
                    Drop if begin + size > n => break,
                    Short => n.min(begin + size),
                    _ => begin + size,
                };
                batches.push((begin..end).map(sample).collect::<Vec<_>>());
            }
            first += n;
        }
        permuted(batches.len() as u64, 5 * (1 << 32)).iter().map(|b| batches[*b as usize].clone()).collect()
    }
}

/// Draws a run whose sizes are multiples of `ranks`.
fn draw(rng: &mut Rng, ranks: u64) -> Case {
    // Most buckets have several batches.
    let rows = 1 + rng.below_u64(60 * ranks.max(7));
    let mut boundaries: Vec<u64> = (0..rng.below(5)).map(|_| rng.below_u64(50)).collect();
    boundaries.sort_unstable();
    boundaries.dedup();
    let n = rows + rng.below_u64(100);
    let subset = (n > rows).then(|| {
        let mut ids: Vec<u64> = (0..n).collect();
        while ids.len() as u64 > rows {
            ids.remove(rng.below(ids.len()));
        }
        ids
    });
    Case {
        lengths: (0..rows).map(|_| rng.below_u64(60)).collect(),
        sizes: (0..=boundaries.len()).map(|_| ranks * (1 + rng.below_u64(9))).collect(),
        boundaries,
        shuffle: rng.below(4) > 0,
        last: POLICIES[rng.below(3)],
        seed: rng.u64(),
        subset,
        n,
    }
}

fn rows(order: &Order, share: &RankShare, step: u64) -> Vec<(u64, u64, bool)> {
    let samples = order.samples(share.step(step).unwrap()).unwrap();
    samples.iter().map(|sample| (sample.record, sample.position, sample.padding)).collect()
}

#[test]
fn all_ranks_have_parts_of_the_same_batches() {
    let mut rng = Rng::new(7);
    for round in 0..40 {
        let case = draw(&mut rng, 64);
        for epoch in [0, 3] {
            let want = case.batches(epoch);
            let Ok(order) = Order::new(&case.spec(), case.n, case.seed, epoch) else {
                assert!(want.is_empty(), "{round}");
                continue;
            };
            assert_eq!(order.len(), case.lengths.len() as u64);
            let mut all = vec![0; order.len() as usize];
            order.fill(0, &mut all).unwrap();
            assert!((0..order.len()).all(|t| order.get(t).unwrap() == all[t as usize]));
            assert!((0..order.len()).all(|t| order.position_of(all[t as usize]).unwrap() == Some(t)));
            if case.subset.is_none() {
                assert!(is_permutation(&all));
            }
            for ranks in [1, 2, 4, 8, 64] {
                let shares: Vec<RankShare> =
                    (0..ranks).map(|rank| order.bucket_share(rank, ranks).unwrap()).collect();
                let mut samples = vec![0; ranks as usize];
                for (step, want) in (0..).zip(&want) {
                    let parts: Vec<_> = shares.iter().map(|share| rows(&order, share, step)).collect();
                    for (rank, part) in parts.iter().enumerate() {
                        samples[rank] += part.len() as u64;
                        if case.last != Short {
                            assert_eq!(part.len() as u64, want.len() as u64 / ranks);
                        }
                    }
                    assert_eq!(parts.concat(), *want, "round {round}, {ranks} ranks, step {step}");
                }
                for (share, samples) in shares.iter().zip(samples) {
                    assert_eq!((share.steps(), share.samples()), (want.len() as u64, samples));
                    assert!(share.step(share.steps()).is_none() && share.after(share.steps()).is_none());
                }
            }
            // Each row is in one batch, except those of dropped batches.
            let mut seen = vec![0; case.n as usize];
            want.iter().flatten().filter(|row| !row.2).for_each(|row| seen[row.0 as usize] += 1);
            assert!(seen.iter().all(|count| *count <= 1));
            if case.last != Drop {
                assert_eq!(seen.iter().sum::<u64>(), case.lengths.len() as u64);
            }
        }
    }
}

#[test]
fn the_rows_of_a_record_are_where_it_is() {
    let mut rng = Rng::new(8);
    for _ in 0..60 {
        let case = draw(&mut rng, 4);
        if case.batches(2).is_empty() {
            continue;
        }
        let order = case.order(2);
        for (start, ranks) in [(0, 1), (0, 2), (0, 4), (order.bucket_share(0, 4).unwrap().steps() / 2, 4)] {
            // The share of another epoch gives the rows of this one.
            let share =
                |order: &Order, rank| order.bucket_share(rank, ranks).unwrap().starting_at(start).unwrap();
            let asked = share(&case.order(0), 0);
            let mut want = vec![Vec::new(); case.n as usize];
            for rank in 0..ranks {
                let share = share(&order, rank);
                for step in 0..share.steps() {
                    for (row, sample) in (0..).zip(rows(&order, &share, step)) {
                        if !sample.2 {
                            want[sample.0 as usize].push((step, rank, row));
                        }
                    }
                }
            }
            for (record, want) in (0..).zip(want) {
                let found = order.rows_of(record, &asked).unwrap();
                let found: Vec<_> = found.iter().map(|at| (at.step, at.rank, at.row)).collect();
                assert_eq!(found, want);
            }
        }
    }
}

#[test]
fn a_run_resumes_after_every_step_with_other_ranks_and_sizes() {
    let mut rng = Rng::new(9);
    for _ in 0..25 {
        let case = draw(&mut rng, 8);
        if case.batches(0).is_empty() {
            continue;
        }
        let order = case.order(0);
        let mut cursor = Cursor::new(order.clone(), order.bucket_share(1, 2).unwrap()).unwrap();
        // A run with other batch sizes takes those of the state.
        let sizes: Vec<u64> = case.sizes.iter().map(|size| size * 3).collect();
        let other = Case { sizes, last: if case.last == Pad { Short } else { case.last }, ..case.clone() };
        let resumes = case.last != Drop || !other.batches(0).is_empty();
        for epoch in 0..2 {
            cursor.begin().unwrap();
            cursor.enter().unwrap();
            let want = case.batches(epoch);
            for step in 0..want.len() {
                let state = cursor.state(FP).unwrap();
                assert_eq!((state.epoch, state.position), (epoch, step as u64));
                let state = State::from_json(&state.to_json()).unwrap();
                if resumes {
                    let order = other.order(5);
                    let shares = (0..4).map(|rank| order.bucket_share(rank, 4).unwrap());
                    let got = shares.flat_map(|share| {
                        let mut again = Cursor::new(order.clone(), share).unwrap();
                        again.seek(&state, FP).unwrap();
                        assert_eq!(again.steps_left().unwrap(), (want.len() - step) as u64);
                        rows(again.order(), &again.share().unwrap(), 0)
                    });
                    let records = |rows: &[(u64, u64, bool)]| -> Vec<(u64, u64)> {
                        rows.iter().filter(|row| !row.2).map(|row| (row.0, row.1)).collect()
                    };
                    assert_eq!(records(&got.collect::<Vec<_>>()), records(&want[step]));
                }
                cursor.advance(1).unwrap();
            }
            let end = cursor.state(FP).unwrap();
            assert_eq!((end.epoch, end.position), (epoch + 1, 0));
            assert_eq!(cursor.state_in_epoch(FP).unwrap().position, want.len() as u64);
        }
    }
}

/// Three of four rows have up to 10 values, in batches of 8. Others have batches of 4.
fn small() -> Case {
    Case {
        lengths: (0..40).map(|i| if i % 4 == 0 { 11 + i } else { i % 11 }).collect(),
        boundaries: vec![10],
        sizes: vec![8, 4],
        shuffle: true,
        last: Short,
        seed: 42,
        subset: None,
        n: 40,
    }
}

#[test]
fn the_state_has_sizes_and_a_digest_of_the_buckets() {
    let case = small();
    let order = case.order(3);
    let words: Vec<u8> = (0..40u64).flat_map(|i| u64::from(i % 4 == 0).to_le_bytes()).collect();
    let digest = xxhash_rust::xxh3::xxh3_128(&words);
    assert_eq!(
        State::new(&order, 2, FP).unwrap().to_json(),
        format!(
            "{{\"epoch\":3,\"fp\":\"{FP}\",\"n\":40,\"order\":{{\"algo\":\"prp1\",\"boundaries\":[10],\"drop\":false,\
             \"kind\":\"buckets\",\"lengths\":\"{digest:032x}\",\"shuffle\":true,\"sizes\":[8,4]}},\"pos\":2,\"seed\":42,\"v\":1}}"
        )
    );
    // The order of another state, with a filter.
    let ids = Case { subset: Some((0..40).map(|i| 2 * i).collect()), n: 80, ..case };
    assert!(State::new(&ids.order(0), 0, FP).unwrap().to_json().contains("\"ids\":\""));
    assert!(State::new(&order, 8, FP).is_err());
}

#[test]
fn states_of_other_buckets_are_refused() {
    let case = small();
    let state = State::new(&case.order(0), 3, FP).unwrap();
    let field = |case: &Case| match refused(state.resume(&case.spec(), case.n, FP).unwrap_err()) {
        OrderError::OtherState { field, .. } => field,
        other => panic!("{other}"),
    };
    assert_eq!(field(&Case { boundaries: vec![11], ..case.clone() }), "boundaries");
    assert_eq!(field(&Case { boundaries: vec![], sizes: vec![8], ..case.clone() }), "boundaries");
    assert_eq!(field(&Case { last: Drop, ..case.clone() }), "drop");
    assert_eq!(field(&Case { shuffle: false, ..case.clone() }), "shuffle");
    assert_eq!(field(&Case { subset: Some((0..40).collect()), ..case.clone() }), "ids");
    let mut lengths = case.lengths.clone();
    lengths[7] = 11;
    assert_eq!(field(&Case { lengths, ..case.clone() }), "lengths");
    let refusal = refused(state.resume(&Spec::Global, 40, FP).unwrap_err());
    assert!(matches!(refusal, OrderError::OtherState { field: "kind", .. }), "{refusal}");

    // Other lengths of the same buckets are the same order, and so is another treatment that drops nothing.
    let lengths = case.lengths.iter().map(|length| length + 100 * (length / 11)).collect();
    let same = Case { lengths, last: Pad, sizes: vec![80, 40], ..case.clone() };
    let order = state.resume(&same.spec(), 40, FP).unwrap();
    assert_eq!(order.bucket_share(0, 4).unwrap().steps(), 7);
    // 3 ranks do not divide the sizes of the state.
    let threes = Case { sizes: vec![6, 3], ..case.clone() }.order(0);
    let mut cursor = Cursor::new(threes.clone(), threes.bucket_share(0, 3).unwrap()).unwrap();
    let before = cursor.state(FP).unwrap();
    assert_eq!(refused(cursor.seek(&state, FP).unwrap_err()), OrderError::Batch { batch: 8, ranks: 3 });
    assert_eq!(cursor.state(FP).unwrap(), before);

    let json = state.to_json();
    for (from, to) in [
        ("\"sizes\":[8,4]", "\"sizes\":[8,0]"),
        ("\"sizes\":[8,4]", "\"sizes\":[8]"),
        ("\"sizes\":[8,4]", "\"sizes\":8"),
        ("\"boundaries\":[10]", "\"boundaries\":[10,10]"),
        ("\"boundaries\":[10]", "\"boundaries\":[-1]"),
        ("\"drop\":false", "\"drop\":0"),
        ("\"drop\":false,", ""),
        ("\"drop\":false", "\"drop\":false,\"b\":1"),
        ("\"lengths\":\"", "\"lengths\":\"0"),
    ] {
        let e = State::from_json(&json.replace(from, to)).unwrap_err();
        assert!(matches!(refused(e), OrderError::State { .. }), "{to}");
    }
    // A forged size allocates nothing.
    let huge = State::from_json(&json.replace("[8,4]", "[18446744073709551615,4]")).unwrap();
    let huge = huge.resume(&case.spec(), 40, FP).unwrap();
    assert!(huge.bucket_share(0, 1).unwrap_err().to_string().contains("at most 16777216 samples"));
    let end = State::from_json(&json.replace("\"pos\":3", "\"pos\":9")).unwrap();
    assert_eq!(
        refused(end.resume(&case.spec(), 40, FP).unwrap_err()),
        OrderError::Position { position: 9, len: 7 }
    );
}

#[test]
fn tokens_determine_sizes() {
    let sizes = |lengths: &[u64], tokens, ranks| {
        let buckets = Buckets::new(lengths.iter().copied(), [0, 16, 100]).unwrap();
        let n = lengths.len() as u64;
        let spec = Spec::Buckets(buckets.tokens_per_batch(tokens, ranks));
        let state = State::new(&Order::new(&spec, n, 0, 0).unwrap(), 0, FP).unwrap().to_json();
        let list = state.split("\"sizes\":[").nth(1).unwrap().split(']').next().unwrap();
        list.split(',').map(|size| size.parse().unwrap()).collect::<Vec<u64>>()
    };
    // The rows of bucket 0 are empty, and count as one value.
    assert_eq!(sizes(&[5, 101, 230], 1000, 1), [1000, 62, 10, 4]);
    assert_eq!(sizes(&[5, 101, 230], 1000, 4), [1000, 60, 8, 4]);
    assert_eq!(sizes(&[5, 101, 230], 1000, 64), [960, 64, 64, 64]);
    assert_eq!(sizes(&[5], 1000, 8), [1000, 56, 8, 8]);
    assert_eq!(sizes(&[5, 1 << 31], 1000, 1), [1000, 62, 10, 1]);
    assert_eq!(sizes(&[5], 0, 2), [2, 2, 2, 2]);
}

#[test]
fn invalid_buckets_are_refused() {
    let why = |lengths: &[u64], boundaries: &[u64], sizes: &[u64], last| {
        let buckets = Buckets::new(lengths.iter().copied(), boundaries)
            .map(|buckets| Spec::Buckets(buckets.batch_sizes(sizes).last_batch(last)));
        let order = buckets.and_then(|spec| Order::new(&spec, 3, 0, 0)?.bucket_share(0, 2));
        order.unwrap_err().to_string()
    };
    for (lengths, boundaries, sizes, last, want) in [
        (
            &[1, 2, 3][..],
            &[4, 4][..],
            &[2, 2, 2][..],
            Short,
            "expected ascending boundaries, found 4 after 4",
        ),
        (&[1, 2, 1 << 32], &[4], &[2, 2], Short, "expected lengths below 2^32, found 4294967296 as length 2"),
        (&[1, 2], &[4], &[2, 2], Short, "expected 3 lengths, one per record, found 2"),
        (&[1, 2, 3], &[4], &[2], Short, "expected 2 batch sizes, one for each bucket, found 1"),
        (&[1, 2, 3], &[4], &[2, 0], Short, "expected batch sizes above 0, found 0"),
        (&[1, 2, 3], &[4], &[2, 2], Continuous, "batches of buckets are not continuous"),
        (&[1, 2, 3], &[2], &[4, 4], Drop, "there is no batch: no bucket has the rows of one"),
        (&[1, 2, 3], &[4], &[2, 3], Short, "2 ranks"),
        (
            &[1, 2, 3],
            &[4],
            &[2, 1 << 26],
            Short,
            "at most 16777216 samples per batch and rank, found 33554432",
        ),
    ] {
        let found = why(lengths, boundaries, sizes, last);
        assert!(found.contains(want), "{found}");
    }
    let many: Vec<u64> = (0..1000).collect();
    let found = why(&[1, 2, 3], &many, &vec![2; 1001], Short);
    assert!(found.contains("at most 3500 characters in a saved state, found 5892"), "{found}");
    let none = Spec::Buckets(Buckets::new([], [4]).unwrap().batch_sizes([2, 2]));
    let e = Order::new(&none, 0, 0, 0).unwrap_err().to_string();
    assert!(e.contains("there is no batch: there are no rows"), "{e}");

    let case = small();
    let component = Spec::Mix(MixSpec::new(vec![Component::new(1, case.spec())]));
    let e = Order::new(&component, 40, 0, 0).unwrap_err().to_string();
    assert!(e.contains("component 0: a component must have a plain order: no buckets"), "{e}");
    let order = case.order(0);
    assert!(Cursor::new(order.clone(), RankShare::new(7, 1, 0, 1, Short).unwrap()).is_err());
    assert!(Order::new(&Spec::Global, 40, 0, 0).unwrap().bucket_share(0, 1).is_err());
    assert_eq!(refused(order.bucket_share(2, 2).unwrap_err()), OrderError::Rank { rank: 2, ranks: 2 });
    assert_eq!(
        order.describe(Some(8)),
        "40 records in 2 buckets, shuffled, 7 batches\n  up to 10: 30 records in batches of 8\n  above 10: 10 records in batches of 4"
    );
}
