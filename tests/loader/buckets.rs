//! Batches of records of like length: the same for all ranks, threads and workers, and after a stop at any
//! step.

use super::*;
use tfseek::order::{Buckets, LastBatch, Sample, State};

const N: u64 = 103;
const LAST: [LastBatch; 3] = [LastBatch::Drop, LastBatch::Pad, LastBatch::Short];

/// The length of a record: that of its string.
fn length(i: u64) -> u64 {
    (i.to_string().len() as u64) * (i % 7)
}

fn buckets() -> Buckets {
    Buckets::new((0..N).map(length), [3, 8]).unwrap().batch_sizes([12, 8, 4])
}

/// Builds the loader of a rank, or of one of its workers.
fn loader(ds: &Dataset, last: LastBatch, rank: (u64, u64), worker: (u64, u64), threads: usize) -> Loader {
    let options = ds.loader(&schema()).buckets(buckets()).shuffle(Shuffle::Global).seed(5).last_batch(last);
    options.rank(rank.0, rank.1).worker(worker.0, worker.1).threads(threads).build().unwrap()
}

fn samples(step: Step) -> Vec<Sample> {
    check(&step);
    step.samples().collect()
}

/// The global batches of an epoch of each loader, from its position on.
fn run(loaders: &mut [Loader]) -> Vec<Vec<Sample>> {
    let mut batches = Vec::new();
    loop {
        let steps: Vec<_> = loaders.iter_mut().map(|loader| loader.next().transpose().unwrap()).collect();
        if steps[0].is_none() {
            assert!(steps.iter().all(Option::is_none));
            return batches;
        }
        let steps: Vec<Step> = steps.into_iter().flatten().collect();
        let longest = steps[0].lengths.map(|lengths| lengths.longest);
        assert!(steps.iter().all(|step| step.lengths.map(|lengths| lengths.longest) == longest));
        let batch: Vec<Sample> = steps.into_iter().flat_map(samples).collect();
        assert_eq!(batch.iter().map(|sample| length(sample.record)).max(), longest);
        batches.push(batch);
    }
}

fn bucket(sample: &Sample) -> usize {
    [3, 8].iter().filter(|boundary| **boundary < length(sample.record)).count()
}

#[test]
fn ranks_threads_and_stops_do_not_change_the_batches() {
    let ds = memory(N);
    for last in LAST {
        let all = |ranks, threads| -> Vec<Loader> {
            (0..ranks).map(|rank| loader(&ds, last, (rank, ranks), (0, 1), threads)).collect()
        };
        let mut one = all(1, 0);
        let want = run(&mut one);
        let next = run(&mut one);
        assert_ne!(want, next);
        for batch in &want {
            assert!(batch.iter().all(|sample| bucket(sample) == bucket(&batch[0])));
        }
        let mut seen: Vec<u64> = want.iter().flatten().filter(|s| !s.padding).map(|s| s.record).collect();
        seen.sort_unstable();
        seen.dedup();
        let rows = want.iter().flatten().filter(|sample| !sample.padding).count();
        assert!(seen.len() == rows && (last == LastBatch::Drop || rows as u64 == N));
        for (ranks, threads) in [(1, 2), (2, 0), (4, 1), (4, 3)] {
            let mut loaders = all(ranks, threads);
            assert_eq!(run(&mut loaders), want, "{last:?}, {ranks} ranks");
            assert_eq!(run(&mut loaders), next, "{last:?}, {ranks} ranks");
        }
        let mut whole = loader(&ds, last, (0, 1), (0, 1), 2);
        for stop in 0..want.len() {
            let state = State::from_json(&whole.state().unwrap().to_json()).unwrap();
            assert_eq!(state.position, stop as u64);
            let mut resumed = all(2, stop % 3);
            resumed.iter_mut().for_each(|loader| loader.seek(&state).unwrap());
            assert_eq!(run(&mut resumed), want[stop..], "{last:?}, {stop}");
            assert_eq!(run(&mut resumed), next);
            assert_eq!(samples(whole.next().unwrap().unwrap()), want[stop]);
        }
        let end = whole.state().unwrap();
        assert_eq!((end.epoch, end.position), (1, 0));
        assert!(whole.next().is_none());
        // A repeating loader goes on with the order of the next epoch.
        let options =
            ds.loader(&schema()).buckets(buckets()).shuffle(Shuffle::Global).seed(5).last_batch(last);
        let repeating = options.repeat(true).build().unwrap();
        let both: Vec<_> =
            repeating.take(want.len() + next.len()).map(|step| samples(step.unwrap())).collect();
        assert_eq!(both, [want, next].concat());
    }
}

#[test]
fn workers_in_turn_equal_one_loader() {
    let ds = memory(N);
    for last in LAST {
        let one = loader(&ds, last, (1, 4), (0, 1), 0);
        let want: Vec<_> = one.map(|step| samples(step.unwrap())).collect();
        for workers in [2, 3, 5] {
            let mut all: Vec<Loader> =
                (0..workers).map(|k| loader(&ds, last, (1, 4), (k, workers), 1)).collect();
            let steps: u64 = all.iter().map(|loader| loader.cursor().steps_left().unwrap()).sum();
            assert_eq!(steps, want.len() as u64);
            for (k, want) in want.iter().enumerate() {
                let worker = &mut all[k % workers as usize];
                assert_eq!(samples(worker.next().unwrap().unwrap()), *want);
                let round = (k as u64 / workers + 1) * workers;
                let state = worker.state().unwrap();
                assert_eq!((state.epoch, state.position), (0, round.min(steps)));
            }
        }
    }
}

#[test]
fn selected_records_have_the_lengths_in_their_order() {
    let ds = memory(N);
    let odd = Subset::from_fn(N, |i| i % 2 == 1);
    let lengths: Vec<u64> = odd.iter().map(length).collect();
    let rows = lengths.len();
    let buckets = || Buckets::new(lengths.clone(), [3, 8]).unwrap().tokens_per_batch(64, 2);
    let options = || ds.loader(&schema()).buckets(buckets()).shuffle(Shuffle::Global).select(odd.clone());
    let loaders = (0..2).map(|rank| options().rank(rank, 2).last_batch(LastBatch::Short).build().unwrap());
    let batches = run(&mut loaders.collect::<Vec<_>>());
    assert_eq!(batches.concat().len(), rows);
    for batch in batches {
        assert!(batch.iter().all(|sample| sample.record % 2 == 1 && bucket(sample) == bucket(&batch[0])));
        let longest = batch.iter().map(|sample| length(sample.record)).max().unwrap();
        assert!(batch.len() as u64 * longest <= 64);
    }
    let e = options().select(Subset::from_fn(N, |i| i < 10)).build().unwrap_err().to_string();
    assert!(e.contains("expected 10 lengths, one per record, found 51"), "{e}");
}

/// Limits of threads follow the batch sizes of the loader, and those of a state may be larger.
#[test]
fn a_state_with_larger_batches_resumes() {
    let ds = memory(N);
    let large = buckets().batch_sizes([3000, 5000, 7000]);
    let options = |buckets| ds.loader(&schema()).buckets(buckets).last_batch(LastBatch::Pad).threads(2);
    let mut whole = options(large).build().unwrap();
    let first = samples(whole.next().unwrap().unwrap());
    assert_eq!((first.len(), first.iter().filter(|sample| sample.padding).count() > 2900), (3000, true));
    let mut resumed = options(buckets()).build().unwrap();
    resumed.seek(&whole.state().unwrap()).unwrap();
    let rest: Vec<_> = resumed.map(|step| samples(step.unwrap())).collect();
    assert_eq!(rest, whole.map(|step| samples(step.unwrap())).collect::<Vec<_>>());
    assert_eq!(rest.iter().map(Vec::len).collect::<Vec<_>>(), [5000, 7000]);
}

#[test]
fn batches_have_the_lengths_of_their_rows() {
    let ds = memory(N);
    for rank in 0..2 {
        for step in loader(&ds, LastBatch::Pad, (rank, 2), (0, 1), 2) {
            let step = step.unwrap();
            let lengths = step.lengths.unwrap();
            assert_eq!(lengths.rows, step.ids.len() as u64);
            assert_eq!(lengths.sum, step.ids.iter().map(|&id| length(id)).sum::<u64>());
        }
    }
    let mut plain = ds.loader(&schema()).batch_size(10).build().unwrap();
    assert_eq!(plain.next().unwrap().unwrap().lengths, None);
    let zeros = Buckets::new(vec![0; N as usize], []).unwrap().batch_sizes([50]);
    let mut empty = ds.loader(&schema()).buckets(zeros).build().unwrap();
    assert_eq!(empty.next().unwrap().unwrap().lengths.unwrap().longest, 0);
}

#[test]
fn options_that_buckets_do_not_have_are_refused() {
    let ds = memory(N);
    let options = || ds.loader(&schema()).buckets(buckets());
    let column = ds.column("i", &Default::default()).unwrap();
    let other = Shuffle::Order(Spec::Sequential);
    for (options, why) in [
        (options().batch_size(8), "buckets have batch sizes of their own"),
        (options().global_batch_size(8), "buckets have batch sizes of their own"),
        (options().shuffle(Shuffle::Block), "buckets have no block order"),
        (options().shuffle(other), "buckets have an order of their own"),
        (options().balance(&column).unwrap(), "buckets do not balance classes"),
        (options().last_batch(LastBatch::Continuous), "batches of buckets are not continuous"),
        (options().rank(0, 3), "a multiple of 3 ranks, found 8"),
        (options().rank(4, 4), "rank"),
        (ds.loader(&schema()).buckets(buckets().batch_sizes([4, 4, 1 << 25])), "at most 16777216 samples"),
        (ds.loader(&schema()).buckets(Buckets::new([], []).unwrap()), "expected 103 lengths"),
    ] {
        let e = options.build().unwrap_err().to_string();
        assert!(e.contains(why), "{why}: {e}");
    }
    let text = options().build().unwrap().describe();
    assert!(text.starts_with("103 records in 3 buckets, in stored order, "), "{text}");
}
