//! Records that are left out: on one rank the records that follow take their places, otherwise the rank's
//! nearest sound row does, as padding.

use super::*;
use tfseek::loader::{Mix, NextStep};
use tfseek::order::{Buckets, LastBatch, Order, Sample, State};
use tfseek::{Damage, ErrorKind, LoaderOptions};
use tfseek_testkit::shards;

const BATCH: u64 = 8;

/// Returns a shard of `n` records, of which those of `bad` lack the features of the schema.
fn shard(n: u64, bad: &[u64]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for i in 0..n {
        let other = ExampleBuilder::new().int64("other", [i as i64]).encode().unwrap();
        put_record(&mut bytes, &if bad.contains(&i) { other } else { payload(i) }).unwrap();
    }
    bytes
}

fn loader(ds: &Dataset, shuffle: &Shuffle, last: LastBatch) -> LoaderOptions {
    let options = ds.loader(&schema()).batch_size(BATCH).shuffle(shuffle.clone()).seed(3);
    options.last_batch(last).damage(Damage::Skip)
}

/// What a step must have: its samples, the records left out, and the position after it.
type Expected = (Vec<Sample>, Vec<u64>, u64);

fn sample(order: &Order, position: u64, padding: bool) -> Sample {
    Sample { record: order.get(position).unwrap(), epoch: order.epoch(), position, padding }
}

/// Returns the steps of an epoch from a position on, and the records left out after the last one, record by
/// record.
fn filled(order: &Order, from: u64, bad: &[u64], last: LastBatch) -> (Vec<Expected>, Vec<u64>) {
    let (mut steps, mut rows, mut skipped) = (Vec::new(), Vec::new(), Vec::new());
    for position in from..order.len() {
        let row = sample(order, position, false);
        if bad.contains(&row.record) {
            skipped.push(row.record);
            continue;
        }
        rows.push(row);
        if rows.len() as u64 == BATCH {
            steps.push((std::mem::take(&mut rows), std::mem::take(&mut skipped), position + 1));
        }
    }
    if rows.is_empty() || last == LastBatch::Drop {
        return (steps, skipped);
    }
    if last == LastBatch::Pad {
        let real = rows.len();
        let wrapped: Vec<Sample> =
            (0..BATCH - real as u64).map(|k| sample(order, k % order.len(), true)).collect();
        rows.extend(&wrapped);
        let sound = |row: &Sample| !bad.contains(&row.record);
        rows = (0..rows.len()).map(|row| nearest(&rows, row, sound).unwrap()).collect();
    }
    steps.push((rows, skipped, order.len()));
    (steps, Vec::new())
}

/// Returns a row, or if it is not sound the nearest one that is, as padding.
fn nearest(rows: &[Sample], row: usize, sound: impl Fn(&Sample) -> bool) -> Option<Sample> {
    let by_distance = (0..rows.len()).filter(|k| sound(&rows[*k])).min_by_key(|k| (k.abs_diff(row), *k));
    by_distance.map(|k| Sample { padding: rows[k].padding || k != row, ..rows[k] })
}

fn found(step: Step, state: &State) -> Expected {
    check(&step);
    (step.samples().collect(), step.skipped.iter().map(|(record, _)| *record).collect(), state.position)
}

/// Takes the steps of an epoch, and the records left out after the last one.
fn epoch(loader: &mut Loader) -> (Vec<Expected>, Vec<u64>) {
    let mut steps = Vec::new();
    loop {
        match loader.next_within(std::time::Duration::from_secs(600)) {
            NextStep::Ready(step) => {
                let step = step.unwrap();
                steps.push(found(step, &loader.state().unwrap()));
            }
            NextStep::EpochEnd(skipped) => return (steps, skipped.into_iter().map(|(id, _)| id).collect()),
            NextStep::Timeout => {}
        }
    }
}

/// Sets of bad records: single ones, stretches longer than a batch, at the start, at the end, all but a few.
fn bad_sets(n: u64) -> Vec<Vec<u64>> {
    vec![
        vec![5],
        vec![0, 1, 17, 18, 40],
        (10..31).collect(),
        (4..n).collect(),
        (0..n - 3).collect(),
        (0..n).filter(|i| i % 3 != 1).collect(),
    ]
}

#[test]
fn batches_of_one_rank_are_filled_from_the_records_that_follow() {
    let n = 67;
    let dir = tempfile::tempdir().unwrap();
    for bad in bad_sets(n) {
        let bytes = shard(n, &bad);
        let (memory, read) = (open(vec![bytes.clone()]), files(dir.path(), &[bytes]));
        for shuffle in [Shuffle::None, Shuffle::Global, Shuffle::Order(Spec::Block { block: 4, window: 3 })] {
            for last in [LastBatch::Short, LastBatch::Drop, LastBatch::Pad] {
                for (ds, threads) in [(&memory, 0), (&memory, 1), (&read, 2), (&memory, 8)] {
                    let options = loader(ds, &shuffle, last).threads(threads);
                    let mut loader = options.clone().build().unwrap();
                    for number in 0..2 {
                        let order = loader.cursor().order().at_epoch(number).unwrap();
                        let (mut want, skipped) = filled(&order, 0, &bad, last);
                        if want.is_empty() {
                            // `Drop` leaves out the few sound ones.
                            assert!(loader.next().unwrap().is_err());
                            assert!(loader.next().is_none());
                            continue;
                        }
                        // At the end of an epoch the state is the start of the next one.
                        let at_end = want.last_mut().unwrap();
                        let share = loader.cursor().share().unwrap().starting_at(at_end.2).unwrap();
                        at_end.2 = if share.steps() == 0 { 0 } else { at_end.2 };
                        let (steps, at_end) = epoch(&mut loader);
                        assert_eq!(steps, want, "{bad:?} {shuffle:?} {last:?} {threads}");
                        // `Drop` does not read the records of the last batch if they are known to be too few.
                        assert!(at_end == skipped || last == LastBatch::Drop && at_end.len() < skipped.len());
                    }
                }
            }
        }
    }
}

/// With continuous batches and with `repeat`, the records of the next epoch follow.
#[test]
fn endless_runs_go_on_after_records_that_are_left_out() {
    let (n, bad) = (20, [0, 7, 18, 19]);
    let ds = open(vec![shard(n, &bad)]);
    for last in [LastBatch::Continuous, LastBatch::Short] {
        for threads in [0, 3] {
            let options = loader(&ds, &Shuffle::None, last).repeat(true).threads(threads);
            let steps: Vec<Step> = options.build().unwrap().take(10).map(Result::unwrap).collect();
            let good: Vec<u64> = (0..n).filter(|i| !bad.contains(i)).collect();
            let ids: Vec<u64> = steps.iter().flat_map(|step| step.ids.clone()).collect();
            assert!(ids.iter().eq(good.iter().cycle().take(ids.len())));
            assert!(steps.iter().all(|step| step.ids.len() as u64 == BATCH));
            let skipped = steps.iter().map(|step| step.skipped.len()).sum::<usize>();
            assert!((18..=20).contains(&skipped), "{skipped}");
            // Without `repeat` each epoch ends, also if its last batch left out a record.
            let mut run =
                loader(&ds, &Shuffle::None, LastBatch::Continuous).threads(threads).build().unwrap();
            let mut epoch = || run.by_ref().flat_map(|step| step.unwrap().ids.to_vec()).collect::<Vec<u64>>();
            let epochs = [epoch(), epoch(), epoch()];
            assert!(epochs.iter().all(|ids| ids.len() as u64 <= n + BATCH), "{epochs:?}");
            assert!(epochs.concat().iter().eq(good.iter().cycle().take(epochs.concat().len())), "{epochs:?}");
            assert_eq!(run.cursor().epoch(), 3);
        }
    }
}

#[test]
fn an_epoch_without_a_sound_record_is_an_error() {
    let ds = open(vec![shard(40, &(0..40).collect::<Vec<_>>())]);
    for (last, repeat) in [(LastBatch::Short, false), (LastBatch::Continuous, true), (LastBatch::Pad, true)] {
        for threads in [0, 2] {
            let options = loader(&ds, &Shuffle::Global, last).repeat(repeat).threads(threads);
            let e = options.build().unwrap().next().unwrap().unwrap_err().to_string();
            assert!(e.contains("no batch has a sound row") && e.contains("\"i\""), "{e}");
        }
    }
    let e = loader(&ds, &Shuffle::Global, LastBatch::Pad).rank(0, 2).build().unwrap().next().unwrap();
    assert!(e.unwrap_err().to_string().contains("has no sound row"));
}

/// Returns what the steps of a rank must have: nominal positions, with the nearest sound row in the place of
/// a bad one. `None` if the rank has no sound row.
fn padded(
    ds: &Dataset,
    shuffle: &Shuffle,
    (rank, ranks): (u64, u64),
    bad: &[u64],
) -> Option<Vec<Vec<Sample>>> {
    let sound = open(vec![shard(ds.len(), &[])]);
    let options = loader(&sound, shuffle, LastBatch::Pad).rank(rank, ranks);
    let steps: Vec<Vec<Sample>> =
        options.build().unwrap().map(|step| step.unwrap().samples().collect()).collect();
    let is_sound = |row: &Sample| !bad.contains(&row.record);
    let of_step = |(k, rows): (usize, &Vec<Sample>)| {
        let own = (0..rows.len()).map(|row| nearest(rows, row, is_sound)).collect::<Option<Vec<_>>>();
        own.or_else(|| {
            let other = |distance: usize| {
                let before = k.checked_sub(distance).and_then(|k| steps[k].iter().rfind(|row| is_sound(row)));
                before.or_else(|| steps.get(k + distance)?.iter().find(|row| is_sound(row)))
            };
            let row = *(1..steps.len()).find_map(other)?;
            Some(vec![Sample { padding: true, ..row }; rows.len()])
        })
    };
    steps.iter().enumerate().map(of_step).collect()
}

#[test]
fn several_ranks_keep_their_steps_and_pad_rows_that_are_left_out() {
    let n = 67;
    let dir = tempfile::tempdir().unwrap();
    for bad in bad_sets(n) {
        let bytes = shard(n, &bad);
        let (memory, read) = (open(vec![bytes.clone()]), files(dir.path(), &[bytes]));
        for shuffle in [Shuffle::None, Shuffle::Global] {
            for (rank, ranks) in [(0, 2), (1, 2), (2, 3)] {
                let want = padded(&memory, &shuffle, (rank, ranks), &bad);
                for (ds, threads) in [(&memory, 0), (&memory, 2), (&read, 1)] {
                    let options = loader(ds, &shuffle, LastBatch::Pad).rank(rank, ranks).threads(threads);
                    let mut loader = options.build().unwrap();
                    let Some(want) = &want else {
                        let e = loader.next().unwrap().unwrap_err();
                        assert!(e.to_string().contains("has no sound row"), "{e}");
                        continue;
                    };
                    for (k, want) in want.iter().enumerate() {
                        let step = loader.next().unwrap().unwrap();
                        let position = loader.state().unwrap().position;
                        let end = (k as u64 + 1) * BATCH * ranks;
                        assert_eq!(position, if end < n { end } else { 0 });
                        assert_eq!(found(step, &loader.state().unwrap()).0, *want, "{bad:?} {rank}/{ranks}");
                    }
                    assert!(loader.next().is_none());
                }
            }
        }
    }
}

/// Workers do not know of each other's losses either, and neither do unparsed records differ.
#[test]
fn workers_and_unparsed_records_are_padded_too() {
    let (n, bad) = (40, [3, 4, 5, 20]);
    let mut bytes = shard(n, &[]);
    for i in bad {
        let start: usize = (0..i).map(|i| payload(i).len() + 16).sum();
        bytes[start + 12] ^= 1;
    }
    let dir = tempfile::tempdir().unwrap();
    for ds in [open(vec![bytes.clone()]), files(dir.path(), &[bytes.clone()])] {
        let options = ds.record_loader().batch_size(BATCH).damage(Damage::Skip);
        let whole: Vec<Step> = options.clone().build().unwrap().map(Result::unwrap).collect();
        assert_eq!(whole.iter().map(|step| step.ids.len()).collect::<Vec<_>>(), [8, 8, 8, 8, 4]);
        for worker in 0..2 {
            let steps = options.clone().worker(worker, 2).build().unwrap();
            for step in steps.map(Result::unwrap) {
                let records = step.records().unwrap().map(|record| record.unwrap().payload().to_vec());
                assert!(records.eq(step.ids.iter().map(|i| payload(*i))));
                assert_eq!(step.ids.len() as u64, BATCH);
                let padding = step.samples().filter(|sample| sample.padding).count();
                assert_eq!(padding, step.skipped.len());
            }
        }
    }
}

#[test]
fn buckets_and_mixes_are_padded_on_one_rank() {
    let (n, bad) = (64, [3, 4, 5, 20, 21, 22, 23, 24, 25, 26, 27, 28]);
    let ds = open(vec![shard(n, &bad)]);
    let buckets = Buckets::new((0..n).map(|i| i % 7), [2, 4]).unwrap().batch_sizes([4, 4, 4]);
    let bucketed = ds.loader(&schema()).buckets(buckets).shuffle(Shuffle::Global).damage(Damage::Skip);
    let other = open(vec![shard(n, &[])]);
    for whole in [false, true] {
        let mix = Mix::new([(ds.loader(&schema()), 1), (other.loader(&schema()), 1)]).whole_batches(whole);
        let mixed = mix.loader().unwrap().batch_size(4).damage(Damage::Skip);
        for options in [bucketed.clone(), mixed] {
            let sound = options.clone().build().unwrap().cursor().steps_left().unwrap();
            let mut seen = Vec::new();
            for step in options.threads(2).build().unwrap().take(sound as usize) {
                let step = step.unwrap();
                let padding = step.samples().filter(|sample| sample.padding).count();
                assert!(padding >= step.skipped.len());
                let i = step.batch().unwrap().int64("i").unwrap();
                assert!(i.iter().zip(&step.ids).all(|(i, id)| *i as u64 == id % n));
                if let Some(lengths) = step.lengths {
                    assert!(step.ids.iter().all(|id| id % 7 <= lengths.longest));
                }
                seen.extend(step.skipped.iter().map(|(id, _)| *id));
            }
            seen.sort_unstable();
            assert_eq!(seen, bad);
        }
    }
}

/// A damaged index is an error, and no damage of the records that it leads to.
#[test]
fn a_damaged_index_leaves_nothing_out() {
    let dir = tempfile::tempdir().unwrap();
    let path = shards::write(dir.path(), "x", &shards::equal(24, 40));
    let folder = dir.path().join("i");
    let options = |mode| {
        let index = shards::options().index_dir(&folder).damage(Damage::Skip).mode(mode);
        DatasetOptions::new().index(index)
    };
    options(IndexMode::Auto).open(&path).unwrap();
    let file = std::fs::read_dir(&folder).unwrap().next().unwrap().unwrap().path();
    let whole = std::fs::read(&file).unwrap();
    let (mut sound, mut refused) = (0, 0);
    for bit in (0..whole.len() * 8).step_by(5) {
        let mut damaged = whole.clone();
        damaged[bit / 8] ^= 1 << (bit % 8);
        std::fs::write(&file, damaged).unwrap();
        let Ok(ds) = options(IndexMode::Require).open(&path) else { continue };
        let loader = ds.record_loader().batch_size(5).damage(Damage::Skip).threads(0).build().unwrap();
        let rows: tfseek::Result<usize> = loader.map(|step| Ok(step?.ids.len())).sum();
        match rows {
            Ok(rows) => {
                assert_eq!(rows, 24, "bit {bit}");
                sound += 1;
            }
            Err(e) => {
                assert!(matches!(e.kind(), ErrorKind::Index(_)) && !e.is_data(), "bit {bit}: {e}");
                refused += 1;
            }
        }
    }
    assert!(sound > 0 && refused > 10, "{sound} {refused}");
}
