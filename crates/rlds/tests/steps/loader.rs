//! Windows through loaders: each exactly once an epoch, in every order and on every number of ranks.

use super::*;
use std::collections::BTreeMap;
use tfseek::loader::{Mix, Shuffle};
use tfseek::order::LastBatch;
use tfseek::{FeatureSpec, Mapped, Schema};

/// Returns the payload of an episode: the number of each step, and a picture whose size varies.
fn payload(episode: u64, steps: u64) -> Vec<u8> {
    let numbers = (0..steps).map(|t| (episode * 1000 + t) as f32);
    let pictures = (0..steps).map(|t| vec![(episode + t) as u8; 20 + (t as usize * 7) % 60]);
    let example = ExampleBuilder::new().float("steps/x", numbers.collect::<Vec<_>>());
    example.bytes("steps/picture", pictures.collect::<Vec<_>>()).encode().unwrap()
}

fn keys() -> EpisodeKeys {
    EpisodeKeys::new([steps_key("steps/x", DType::Float32, 1), steps_key("steps/picture", DType::Bytes, 1)])
        .unwrap()
}

fn schema() -> Schema {
    Schema::example()
        .feature("x", FeatureSpec::fixed_len(&[3], DType::Float32))
        .feature("picture", FeatureSpec::fixed_len(&[], DType::Bytes))
        .feature("_episode", FeatureSpec::fixed_len(&[], DType::Int64))
        .feature("_step", FeatureSpec::fixed_len(&[], DType::Int64))
        .build()
        .unwrap()
}

fn windows(ds: &Dataset) -> Windows {
    let robot = find(ds, &keys());
    let builder = robot.windows().rows("steps/x", "x", &[-1, 0, 4], Default::default());
    let builder = builder.rows("steps/picture", "picture", &[0], Default::default());
    builder.numbers("_episode", "_step").build().unwrap()
}

const LENS: [u64; 7] = [5, 0, 12, 1, 30, 0, 9];
const N: u64 = 57;

/// Two shards of episodes with these lengths, for positional reads and with maps.
fn both(dir: &Path, lens: &[u64]) -> [Windows; 2] {
    let payloads: Vec<_> = lens.iter().enumerate().map(|(e, len)| payload(e as u64, *len)).collect();
    let (a, b) = payloads.split_at(3);
    write(dir, "0.plain", &framed(a));
    write(dir, "1.plain", &framed(b));
    let regions = [framed(a), framed(b)].map(Region::from);
    let read = files(dir).open(dir.join("*.plain")).unwrap();
    [windows(&read), windows(in_memory().open_regions(regions).unwrap().dataset())]
}

/// Checks the values of a step of a loader, and returns the numbers of its windows.
fn check(windows: &Windows, step: &tfseek::loader::Step) -> Vec<u64> {
    let batch = step.batch().unwrap();
    let (x, picture) = (batch.float32("x").unwrap(), batch.bytes("picture").unwrap());
    let (e, t) = (batch.int64("_episode").unwrap(), batch.int64("_step").unwrap());
    for (k, id) in step.ids.iter().enumerate() {
        let (episode, step) = windows.locate(*id).unwrap();
        assert_eq!((e[k] as u64, t[k] as u64), (episode, step));
        let last = windows.episodes().length(episode).unwrap() - 1;
        let want = [step.saturating_sub(1), step, (step + 4).min(last)].map(|s| (episode * 1000 + s) as f32);
        assert_eq!(x[3 * k..3 * k + 3], want);
        assert_eq!(picture.get(k).unwrap(), vec![(episode + step) as u8; 20 + (step as usize * 7) % 60]);
    }
    step.ids.to_vec()
}

fn orders() -> [Shuffle; 3] {
    [Shuffle::None, Shuffle::Global, Shuffle::Block]
}

#[test]
fn each_window_comes_once_an_epoch_on_any_number_of_ranks() {
    let dir = tempfile::tempdir().unwrap();
    for windows in both(dir.path(), &LENS) {
        assert_eq!(windows.dataset().len(), N);
        for ranks in 1..=64 {
            for shuffle in orders() {
                let mut all = Vec::new();
                for rank in 0..ranks {
                    let loader = windows.dataset().loader(&schema()).batch_size(4).shuffle(shuffle.clone());
                    let loader = loader
                        .seed(9)
                        .last_batch(LastBatch::Short)
                        .rank(rank, ranks)
                        .threads(rank as usize % 3)
                        .build()
                        .unwrap();
                    loader.for_each(|step| all.extend(check(&windows, &step.unwrap())));
                }
                all.sort_unstable();
                assert_eq!(all, (0..N).collect::<Vec<_>>(), "{ranks} {shuffle:?}");
            }
        }
    }
}

#[test]
fn a_run_goes_on_after_each_batch_and_only_with_the_same_anchors() {
    let dir = tempfile::tempdir().unwrap();
    let [read, memory] = both(dir.path(), &LENS);
    for shuffle in orders() {
        let loader = |windows: &Windows, threads| {
            let loader = windows.dataset().loader(&schema()).batch_size(5).shuffle(shuffle.clone());
            loader.seed(3).threads(threads).build().unwrap()
        };
        let whole: Vec<Vec<u64>> = loader(&read, 0).map(|step| check(&read, &step.unwrap())).collect();
        let mut first = loader(&read, 2);
        for k in 0..whole.len() {
            let mut resumed = loader(&read, 2);
            resumed.seek(&first.state().unwrap()).unwrap();
            let rest: Vec<_> = resumed.map(|step| check(&read, &step.unwrap())).collect();
            assert_eq!(rest, whole[k..], "{shuffle:?} {k}");
            first.next().unwrap().unwrap();
        }
        let state = loader(&read, 0).state().unwrap();
        // Other offsets are the same windows. Other anchors are not, and neither are records.
        let robot = read.episodes();
        let rows = |offsets: &[i64]| robot.windows().rows("steps/x", "x", offsets, Default::default());
        let seek = |ds: &Dataset| {
            ds.record_loader().batch_size(5).shuffle(shuffle.clone()).seed(3).build().unwrap().seek(&state)
        };
        seek(rows(&[7]).build().unwrap().dataset()).unwrap();
        let other =
            rows(&[7]).anchors([(0, 0..5), (2, 0..12), (3, 0..1), (4, 0..30), (6, 0..8)]).build().unwrap();
        assert_eq!(other.dataset().len(), N - 1);
        assert!(seek(other.dataset()).is_err() && seek(robot.dataset()).is_err());
        let shifted = rows(&[7]).anchors([(0, 0..5), (2, 0..12), (3, 0..1), (4, 0..30), (6, 0..9)]);
        assert_eq!(shifted.build().unwrap().dataset().len(), N);
    }
    assert_eq!(read.dataset().fingerprint().unwrap().len(), 32);
    assert_eq!(memory.dataset().fingerprint().unwrap(), memory.dataset().fingerprint().unwrap());
}

#[test]
fn two_robots_are_mixed_by_their_windows() {
    let dir = tempfile::tempdir().unwrap();
    let [a, b] = both(dir.path(), &LENS);
    let mix = || Mix::new([&a, &b].map(|w| w.dataset().loader(&schema())).into_iter().zip([3, 1]));
    let mut seen = BTreeMap::new();
    let mut ids = Vec::new();
    for rank in 0..3 {
        let loader = mix().loader().unwrap().batch_size(6).shuffle(Shuffle::Global).seed(1).rank(rank, 3);
        for step in loader.build().unwrap() {
            let step = step.unwrap();
            let batch = step.batch().unwrap();
            let (e, t) = (batch.int64("_episode").unwrap(), batch.int64("_step").unwrap());
            let x = batch.float32("x").unwrap();
            for (k, id) in step.ids.iter().enumerate() {
                let (source, own) = if *id < N { (&a, *id) } else { (&b, *id - N) };
                assert_eq!(source.locate(own).unwrap(), (e[k] as u64, t[k] as u64));
                assert_eq!(x[3 * k + 1], (e[k] * 1000 + t[k]) as f32);
                *seen.entry(*id < N).or_insert(0u64) += 1;
                ids.push(*id);
            }
        }
    }
    let (of_a, of_b) = (seen[&true], seen[&false]);
    assert!(of_a.abs_diff(3 * of_b) <= 3, "{seen:?}");
    ids.sort_unstable();
    ids.dedup();
    assert!(
        ids.iter().filter(|id| **id < N).count() as u64 == N.min(of_a),
        "no window twice before all came"
    );
}

#[test]
fn windows_are_a_dataset_of_records_without_files() {
    let dir = tempfile::tempdir().unwrap();
    for windows in both(dir.path(), &LENS) {
        let ds = windows.dataset();
        let all: Vec<Vec<u8>> =
            (0..N).map(|i| ds.read(i, &mut Vec::new()).unwrap().payload().to_vec()).collect();
        let mut found = Vec::new();
        let ids: Vec<u64> = (0..N).rev().collect();
        ds.read_many(&ids, |record| {
            found.push(record.payload().to_vec());
            Ok(())
        })
        .unwrap();
        assert!(found.iter().rev().eq(&all));
        let some = ds.ranges(&[50..N, 3..9]).unwrap();
        assert_eq!(some.len(), N - 50 + 6);
        let mut buf = Vec::new();
        for (i, want) in (50..N).chain(3..9).enumerate() {
            assert_eq!(some.read(i as u64, &mut buf).unwrap().payload(), all[want as usize]);
        }
        assert_ne!(some.fingerprint().unwrap(), ds.fingerprint().unwrap());
        let loader = some.record_loader().batch_size(4).shuffle(Shuffle::Global).seed(2).build().unwrap();
        let mut seen: Vec<Vec<u8>> = Vec::new();
        for step in loader {
            step.unwrap().records().unwrap().for_each(|record| seen.push(record.unwrap().payload().to_vec()));
        }
        let mut want: Vec<_> = all[50..].iter().chain(&all[3..9]).cloned().collect();
        seen.sort();
        want.sort();
        assert_eq!(seen, want);
        // What needs files is refused.
        let words = "found windows over steps";
        for e in [ds.column("x", &Default::default()).err().unwrap(), ds.index(0).err().unwrap()] {
            assert!(e.to_string().contains(words), "{e}");
        }
        assert_eq!(ds.refresh().unwrap().len(), N);
        let filter: tfseek::Filter = "_step == 0".parse().unwrap();
        match ds.select(&filter, &Default::default()) {
            Ok((selected, _)) => assert_eq!(selected.len(), 5),
            Err(e) => assert!(e.to_string().contains(words), "{e}"),
        }
        assert!(ds.shares(2).is_err());
        assert!(Mapped::from_dataset(ds).is_none());
        assert!(ds.read(N, &mut buf).is_err());
    }
}
