//! Steps of episodes in a store: tables beside the objects, and what is read of them.

use super::*;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use tempfile::TempDir;
use tfseek::index::{IndexOptions, write_pack};
use tfseek::loader::Shuffle;
use tfseek::order::Spec;
use tfseek::{FeatureSpec, Schema, Warning};
use tfseek_testkit::bucket::{BucketStore, Manners};

const FOLDER: &str = "mem://bucket/robot/1.0.0";
/// Episodes of the two shards.
const LENS: [u64; 9] = [40, 0, 25, 1, 60, 33, 0, 12, 50];
const FIRST: usize = 4;

fn url(name: &str) -> String {
    format!("{FOLDER}/{name}")
}

/// Returns the payload of an episode: two cameras, whose pictures vary in size, and numbers.
fn payload(episode: u64) -> Vec<u8> {
    let steps = 0..LENS[episode as usize];
    let picture =
        |camera: u64, t: u64| vec![(episode * 7 + t * 2 + camera) as u8; 3000 + (t * 37 % 500) as usize];
    let camera = |camera| steps.clone().map(|t| picture(camera, t)).collect::<Vec<_>>();
    let numbers = |scale: f32| steps.clone().flat_map(|t| [t as f32 * scale; 7]).collect::<Vec<f32>>();
    let example = ExampleBuilder::new().bytes("steps/left", camera(0)).bytes("steps/right", camera(1));
    let example = example.float("steps/action", numbers(1.0)).float("steps/state", numbers(0.5));
    example.bytes("steps/text", steps.map(|_| b"put the cup away")).encode().unwrap()
}

fn shards() -> [Vec<u8>; 2] {
    let payloads: Vec<_> = (0..LENS.len() as u64).map(payload).collect();
    let (a, b) = payloads.split_at(FIRST);
    [framed(a), framed(b)]
}

fn keys() -> EpisodeKeys {
    let bytes = ["left", "right", "text"].map(|name| steps_key(&format!("steps/{name}"), DType::Bytes, 1));
    let floats = ["action", "state"].map(|name| steps_key(&format!("steps/{name}"), DType::Float32, 7));
    EpisodeKeys::new(bytes.into_iter().chain(floats)).unwrap()
}

/// A window of two frames of one camera, one of the other, and several actions.
fn windows(robot: &Episodes) -> Windows {
    let rows = robot.windows().rows("steps/left", "left", &[-1, 0], Default::default());
    let rows = rows.rows("steps/right", "right", &[0], Default::default());
    let rows = rows.rows("steps/action", "action", &[0, 1, 2, 3], Default::default());
    let rows = rows.rows("steps/state", "state", &[0], Default::default());
    rows.rows("steps/text", "text", &[0], Default::default()).numbers("_episode", "_step").build().unwrap()
}

fn schema() -> Schema {
    let bytes = |n| FeatureSpec::fixed_len(&[n], DType::Bytes);
    Schema::example()
        .feature("left", bytes(2))
        .feature("right", bytes(1))
        .feature("action", FeatureSpec::fixed_len(&[4, 7], DType::Float32))
        .feature("_episode", FeatureSpec::fixed_len(&[], DType::Int64))
        .build()
        .unwrap()
}

/// A bucket, and the cache of one user.
struct Case {
    bucket: BucketStore,
    cache: TempDir,
    local: TempDir,
}

impl Case {
    fn new(manners: Manners) -> Case {
        let case = Case {
            bucket: BucketStore::new(manners),
            cache: tempfile::tempdir().unwrap(),
            local: tempfile::tempdir().unwrap(),
        };
        for (k, shard) in shards().into_iter().enumerate() {
            case.bucket.set(&url(&format!("{k}.tfrecord")), shard.clone());
            write(case.local.path(), &format!("{k}.plain"), &shard);
        }
        case
    }

    fn index(&self) -> IndexOptions {
        IndexOptions::new().default_dirs(None, Some(self.cache.path().into())).store(self.bucket.store())
    }

    fn open(&self, index: IndexOptions) -> Dataset {
        DatasetOptions::new().index(index).open(url("*.tfrecord")).unwrap()
    }

    fn robot(&self, options: &EpisodeOptions) -> Episodes {
        Episodes::open(&self.open(self.index()), &keys(), options).unwrap()
    }

    /// Writes the tables and a pack beside the objects, and forgets the cache of who did it.
    fn built(manners: Manners) -> Case {
        let mut case = Case::new(manners);
        case.robot(&beside());
        write_pack("all", &[0, 1].map(|k| url(&format!("{k}.tfrecord")).into()), &case.index()).unwrap();
        case.cache = tempfile::tempdir().unwrap();
        case
    }

    /// Returns the same windows over files.
    fn files(&self) -> Windows {
        windows(&find(&files(self.local.path()).open(self.local.path().join("*.plain")).unwrap(), &keys()))
    }

    /// Returns the requests and the bytes that `f` reads from objects, and its result.
    fn counted<T>(&self, f: impl FnOnce() -> T) -> (u64, u64, T) {
        let count =
            || [&self.bucket.requests().ranges, &self.bucket.requests().bytes].map(|n| n.load(Relaxed));
        let before = count();
        let result = f();
        let [ranges, bytes] = count();
        (ranges - before[0], bytes - before[1], result)
    }
}

fn beside() -> EpisodeOptions {
    EpisodeOptions { beside: true, beside_objects: true, ..EpisodeOptions::default() }
}

fn memory() -> EpisodeOptions {
    EpisodeOptions { memory: true, ..EpisodeOptions::default() }
}

/// Compares all windows, and returns the number of their bytes.
fn compare(found: &Windows, expected: &Windows, ids: impl Iterator<Item = u64>) -> u64 {
    assert_eq!(found.dataset().len(), expected.dataset().len());
    let (mut a, mut b, mut bytes) = (Vec::new(), Vec::new(), 0);
    for i in ids {
        let payload = found.dataset().read(i, &mut a).unwrap().payload();
        assert!(payload == expected.dataset().read(i, &mut b).unwrap().payload(), "window {i}");
        bytes += payload.len() as u64;
    }
    bytes
}

#[test]
fn tables_beside_objects_serve_all_readers() {
    let case = Case::built(Manners::BUCKET);
    let mut names: Vec<_> = case.bucket.urls().into_iter().filter(|name| name.contains(".tfseek")).collect();
    names.sort();
    assert_eq!(
        names,
        ["0.tfrecord.tfrs", "1.tfrecord.tfrs", "all.tfrp"].map(|name| url(&format!(".tfseek/{name}")))
    );
    // Without a cache: neither the index nor a table reads the objects.
    let (_, bytes, robot) = case.counted(|| case.robot(&EpisodeOptions::default()));
    assert_eq!((bytes, robot.dataset().len(), robot.steps()), (0, 9, LENS.iter().sum()));
    assert!(robot.warnings().is_empty() && case.cache.path().read_dir().unwrap().next().is_none());
    let (of_store, of_files) = (windows(&robot), case.files());
    let n = of_store.dataset().len();
    let (ranges, bytes, own) = case.counted(|| compare(&of_store, &of_files, (0..n).map(|k| k * 89 % n)));
    assert!(bytes <= own * 3 / 2 && ranges <= 4 * n, "{bytes} of {own} in {ranges}");
    // Those that are there are not written again.
    let time = |case: &Case| case.bucket.requests().bytes.load(Relaxed);
    let before = (time(&case), case.bucket.get(&names[0]));
    case.robot(&beside());
    assert_eq!((time(&case), case.bucket.get(&names[0])), before);
}

#[test]
fn a_copy_of_a_bucket_keeps_its_tables_and_a_replaced_object_does_not() {
    let case = Case::built(Manners::BUCKET);
    let copy = Case { bucket: BucketStore::new(Manners::BUCKET), ..Case::new(Manners::BUCKET) };
    for name in case.bucket.urls().into_iter().rev() {
        copy.bucket.set(&name, case.bucket.get(&name).unwrap());
    }
    let (_, bytes, robot) = copy.counted(|| copy.robot(&EpisodeOptions::default()));
    // The fingerprints: the first and the last 64 KiB of each object.
    assert!(bytes <= 4 << 16, "{bytes}");
    assert!(robot.warnings().is_empty());
    let (of_store, of_files) = (windows(&robot), copy.files());
    compare(&of_store, &of_files, 0..of_store.dataset().len());
    // Another shard of the same length.
    let mut payloads: Vec<_> = (0..FIRST as u64).map(payload).collect();
    payloads.reverse();
    copy.bucket.set(&url("0.tfrecord"), framed(&payloads));
    let robot = copy.robot(&EpisodeOptions::default());
    let lengths: Vec<u64> = (0..4).map(|e| robot.length(e).unwrap()).collect();
    assert_eq!(lengths, LENS[..4].iter().rev().copied().collect::<Vec<_>>());
    let actions = robot.windows().rows("steps/action", "action", &[0], Default::default()).build().unwrap();
    let mut buf = Vec::new();
    let last = actions.dataset().read(robot.number(1, 24).unwrap(), &mut buf).unwrap();
    assert!(last.example().float("action").unwrap().iter().eq([24.0; 7]));
}

#[test]
fn a_damaged_file_beside_objects_never_gives_other_bytes() {
    let case = Case::built(Manners::BUCKET);
    let name = url(".tfseek/0.tfrecord.tfrs");
    let good = case.bucket.get(&name).unwrap();
    let expected = case.files();
    let rng = &mut Rng::new(8);
    let mut refused = 0;
    for k in 0..120 {
        let mut bad = good.clone();
        match k % 6 {
            0 => bad.truncate(rng.below(good.len())),
            1 => bad.extend([0; 9]),
            _ => bad[rng.below(good.len())] ^= 1 << rng.below(8),
        }
        case.bucket.set(&name, bad);
        let case = Case {
            bucket: case.bucket.clone(),
            cache: tempfile::tempdir().unwrap(),
            local: tempfile::tempdir().unwrap(),
        };
        let robot = case.robot(&EpisodeOptions::default());
        let found = robot.warnings().iter().any(
            |warning| matches!(warning, Warning::FileRefused { path, .. } if path.to_str() == Some(&*name)),
        );
        refused += u64::from(found);
        compare(&windows(&robot), &expected, (0..20).map(|k| k * 11 % expected.dataset().len()));
    }
    assert!(refused > 30, "{refused}");
}

/// More than 1 MiB of tables: neither opening nor a window reads the whole file.
#[test]
fn a_large_file_beside_objects_is_read_in_parts() {
    let keys = episodes::checked(&[steps_key("n", DType::Int64, 1), steps_key("s", DType::Bytes, 1)]);
    let payload = |e: usize| {
        let numbers: Vec<i64> = (0..300).map(|t| (e * 1000 + t) as i64).collect();
        let texts: Vec<_> = (0..300usize).map(|t| vec![(e + t) as u8; (e + t) % 4]).collect();
        ExampleBuilder::new().int64("n", numbers).bytes("s", texts).encode().unwrap()
    };
    let mut case = Case::new(Manners::BUCKET);
    case.bucket.set(&url("0.tfrecord"), framed(&(0..600).map(payload).collect::<Vec<_>>()));
    case.bucket.remove(&url("1.tfrecord"));
    let open = |case: &Case, options: &EpisodeOptions| {
        Episodes::open(&case.open(case.index()), &keys, options).unwrap()
    };
    open(&case, &beside());
    write_pack("all", &[url("0.tfrecord").into()], &case.index()).unwrap();
    case.cache = tempfile::tempdir().unwrap();
    let file = case.bucket.get(&url(".tfseek/0.tfrecord.tfrs")).unwrap();
    assert!(file.len() > 1 << 20);
    let (ranges, bytes, robot) = case.counted(|| open(&case, &EpisodeOptions::default()));
    assert!(ranges == 1 && bytes == 64 << 10, "{bytes} in {ranges}");
    let windows = robot.windows().rows("s", "s", &[0, 1], Default::default()).build().unwrap();
    let mut buf = Vec::new();
    let (_, bytes, ()) = case.counted(|| {
        for i in (0..windows.dataset().len()).step_by(7919) {
            let (e, t) = windows.locate(i).unwrap();
            let found = windows.dataset().read(i, &mut buf).unwrap();
            let texts = found.example().bytes("s").unwrap();
            let last = (t as usize + 1).min(299);
            let text = |t: usize| vec![(e as usize + t) as u8; (e as usize + t) % 4];
            assert!(texts.iter().eq([t as usize, last].map(text)), "{e} {t}");
        }
    });
    // The tables of 23 episodes.
    assert!(bytes < 23 * 4000, "{bytes}");
    // A file that was replaced or deleted is not used any more.
    case.bucket.set(&url(".tfseek/0.tfrecord.tfrs"), vec![7; file.len()]);
    let found = windows.dataset().read(300 * 77 + 5, &mut buf).unwrap();
    assert_eq!(found.example().bytes("s").unwrap().first(), Some(&vec![82; 82 % 4][..]));
}

#[test]
fn without_tables_a_block_order_reads_each_episode_once() {
    for manners in Manners::ALL {
        let case = Case::new(manners);
        let ds = case.open(case.index());
        let (requests, heads, robot) = case.counted(|| Episodes::open(&ds, &keys(), &memory()).unwrap());
        let total: usize = shards().iter().map(Vec::len).sum();
        assert!(
            heads <= total as u64 / 2 && requests <= 5 * LENS.len() as u64,
            "{heads} bytes of heads in {requests}"
        );
        let expected = case.files();
        let episodes = LENS.iter().filter(|len| **len > 0).count() as u64;
        for (threads, shuffle) in [
            (0, Shuffle::Block),
            (2, Shuffle::Block),
            (2, Shuffle::Order(Spec::Block { block: 30, window: 2 })),
            (0, Shuffle::None),
            (3, Shuffle::Global),
        ] {
            let robot = case.robot(&memory());
            let found = windows(&robot);
            let load = |windows: &Windows| {
                let loader =
                    windows.dataset().loader(&schema()).batch_size(8).shuffle(shuffle.clone()).seed(5);
                let loader = loader.threads(threads).build().unwrap();
                let warned = loader.warnings().iter().any(|w| w.kind() == "scattered_episodes");
                let all: Vec<_> = loader
                    .map(|step| {
                        let step = step.unwrap();
                        let batch = step.batch().unwrap();
                        let bytes =
                            |name| batch.bytes(name).unwrap().iter().map(<[u8]>::to_vec).collect::<Vec<_>>();
                        (
                            step.ids.to_vec(),
                            bytes("left"),
                            bytes("right"),
                            batch.float32("action").unwrap().to_vec(),
                        )
                    })
                    .collect();
                (all, warned)
            };
            let (requests, bytes, (all, warned)) = case.counted(|| load(&found));
            assert_eq!(warned, shuffle == Shuffle::Global);
            // The first episode is read when the windows are made.
            assert!(requests < episodes && bytes <= total as u64, "{requests} {bytes} {shuffle:?}");
            let (expected, _) = load(&expected);
            assert!(all == expected, "{shuffle:?}");
        }
        assert!(robot.warnings().is_empty());
    }
}

#[test]
fn above_the_limit_steps_of_objects_are_counted_with_the_command() {
    let case = Case::new(Manners::BUCKET);
    drop(case.open(case.index()));
    let robot =
        Episodes::open(&case.open(case.index().auto_limit(1)), &keys(), &EpisodeOptions::default()).unwrap();
    let [warning @ Warning::Derived { kind: "steps_not_indexed", .. }] = robot.warnings() else {
        panic!("{:?}", robot.warnings())
    };
    let text = warning.to_string();
    assert!(text.contains(&format!("`tfseek index --steps {FOLDER} --pack NAME`")), "{text}");
    let (of_store, of_files) = (windows(&robot), case.files());
    compare(&of_store, &of_files, 0..of_store.dataset().len());
}

#[test]
fn threads_share_an_episode_and_an_error_is_not_kept() {
    let case = Case::new(Manners::BUCKET);
    drop(case.open(case.index()));
    let found = Arc::new(windows(&case.robot(&memory())));
    let expected = Arc::new(case.files());
    let (requests, ..) = case.counted(|| {
        std::thread::scope(|scope| {
            for k in 0..6 {
                let (found, expected) = (&found, &expected);
                let n = found.dataset().len();
                scope.spawn(move || compare(found, expected, (0..n).map(|i| (i + k * 31) % n)));
            }
        });
    });
    assert_eq!(requests, LENS.iter().filter(|len| **len > 0).count() as u64 - 1);
    // A missing object is an error each time, until it is there again.
    let found = windows(&case.robot(&memory()));
    let (name, last) = (url("1.tfrecord"), found.dataset().len() - 1);
    let shard = case.bucket.get(&name).unwrap();
    case.bucket.remove(&name);
    for _ in 0..2 {
        let e = found.dataset().read(last, &mut Vec::new()).unwrap_err();
        assert!(e.to_string().contains("1.tfrecord"), "{e}");
    }
    case.bucket.set(&name, shard);
    let e = found.dataset().read(last, &mut Vec::new()).unwrap_err();
    assert!(e.to_string().contains("replaced"), "{e}");
}

/// Without a time and a version, a constant list in a table would answer for an object in which only later
/// rows are others.
#[test]
fn tables_do_not_answer_for_a_replaced_object_without_an_identity() {
    let case = Case::new(Manners { times: false, versions: false, ..Manners::BUCKET });
    let shard = |last: &[u8]| {
        let rows = (0..60).map(|t| if t == 30 { last.to_vec() } else { b"put the cup away".to_vec() });
        let example = ExampleBuilder::new().bytes("steps/text", rows.collect::<Vec<_>>());
        let pad = |n: usize| {
            ExampleBuilder::new().bytes("steps/text", vec![vec![7u8; 1 << 14]; n]).encode().unwrap()
        };
        framed(&[pad(5), example.encode().unwrap(), pad(5)])
    };
    let keys = EpisodeKeys::new([steps_key("steps/text", DType::Bytes, 1)]).unwrap();
    let name = url("x.tfrecord");
    for last in [b"put the cup away", b"put the cup down"] {
        case.bucket.set(&name, shard(last));
        let ds = DatasetOptions::new().index(case.index()).open(&name).unwrap();
        let robot = Episodes::open(&ds, &keys, &EpisodeOptions::default()).unwrap();
        let texts = robot.windows().rows("steps/text", "text", &[0], Default::default()).build().unwrap();
        let mut buf = Vec::new();
        let found = texts.dataset().read(robot.number(1, 30).unwrap(), &mut buf).unwrap();
        assert_eq!(found.example().bytes("text").unwrap().first(), Some(&last[..]));
        let kinds: Vec<_> = robot.warnings().iter().map(Warning::kind).collect();
        assert_eq!(kinds, ["not_saved"]);
        let e = Episodes::open(&ds, &keys, &beside()).unwrap_err();
        assert!(e.to_string().contains("no time and no version"), "{e}");
    }
}
