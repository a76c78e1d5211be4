//! Steps of episodes like those of DROID: three cameras, states, actions and a text.
//!
//! `steps/window` reads random windows (a picture of each camera, 16 actions, a state, a text), verified and
//! not decoded, beside a record that is read whole and searched for the same values. `steps/table` makes the
//! table of an episode, and `steps/count` counts its steps from the heads of its lists.

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use std::hint::black_box;
use tfseek::index::IndexOptions;
use tfseek::{DType, DatasetOptions, Example, ExampleBuilder, IndexMode, Writer};
use tfseek_rlds::{EpisodeKey, EpisodeKeys, EpisodeTable, EpisodeValues, Episodes};
use tfseek_testkit::episodes::steps_key;
use tfseek_testkit::rng::Rng;

const EPISODES: usize = 8;
const CAMERAS: [&str; 3] = ["steps/observation/left", "steps/observation/right", "steps/observation/wrist"];

/// Returns an episode, and its number of steps.
fn episode(rng: &mut Rng) -> (Vec<u8>, usize) {
    let steps = 150 + rng.below(230);
    let floats = |n: usize| -> Vec<f32> { (0..steps * n).map(|k| k as f32 / 7.0).collect() };
    let mut example = ExampleBuilder::new()
        .float("steps/action", floats(8))
        .float("steps/observation/state", floats(8))
        .float("steps/reward", floats(1))
        .int64("steps/is_first", (0..steps).map(|t| i64::from(t == 0)))
        .int64("steps/is_last", (0..steps).map(|t| i64::from(t + 1 == steps)))
        .bytes("steps/language_instruction", vec!["put the marker in the cup"; steps])
        .bytes("episode_metadata/file_path", ["/data/success/1"]);
    for camera in CAMERAS {
        let pictures = (0..steps).map(|_| {
            let len = 20_000 + rng.below(5_000);
            rng.bytes(len)
        });
        example = example.bytes(camera, pictures.collect::<Vec<_>>());
    }
    (example.encode().unwrap(), steps)
}

fn keys() -> EpisodeKeys {
    let mut all = vec![
        steps_key("steps/action", DType::Float32, 8),
        steps_key("steps/observation/state", DType::Float32, 8),
        steps_key("steps/reward", DType::Float32, 1),
        steps_key("steps/is_first", DType::Int64, 1),
        steps_key("steps/is_last", DType::Int64, 1),
        steps_key("steps/language_instruction", DType::Bytes, 1),
        EpisodeKey {
            values: EpisodeValues::Episode,
            ..steps_key("episode_metadata/file_path", DType::Bytes, 1)
        },
    ];
    all.extend(CAMERAS.map(|camera| steps_key(camera, DType::Bytes, 1)));
    EpisodeKeys::new(all).unwrap()
}

fn steps(c: &mut Criterion) {
    let dir = tempfile::tempdir().unwrap();
    let (path, tables) = (dir.path().join("train.tfrecord"), dir.path().join("tables"));
    let mut rng = Rng::new(1);
    let mut writer = Writer::create(&path).unwrap();
    let payloads: Vec<(Vec<u8>, usize)> = (0..EPISODES).map(|_| episode(&mut rng)).collect();
    payloads.iter().for_each(|(payload, _)| writer.write(payload).unwrap());
    writer.close().unwrap();
    let keys = keys();
    let options = DatasetOptions::new().index(IndexOptions::new().default_dirs(None, Some(tables)));
    // Bytes in memory are read like a map.
    let memory = DatasetOptions::new().index(IndexMode::Memory);
    let region = std::fs::read(&path).unwrap().into();
    let ways = [
        ("map", memory.open_regions([region]).unwrap().dataset().clone()),
        ("pread", options.open(&path).unwrap()),
    ];
    let mut group = c.benchmark_group("steps/window");
    for (way, dataset) in &ways {
        let robot = Episodes::open(dataset, &keys, &Default::default()).unwrap();
        let mut windows = robot.windows();
        for camera in CAMERAS {
            windows = windows.rows(camera, camera, &[0], Default::default());
        }
        let chunk: Vec<i64> = (0..16).collect();
        let windows = windows
            .rows("steps/action", "action", &chunk, Default::default())
            .rows("steps/observation/state", "state", &[0], Default::default())
            .rows("steps/language_instruction", "text", &[0], Default::default())
            .build()
            .unwrap();
        let (ds, n) = (windows.dataset(), windows.dataset().len());
        let mut buf = Vec::new();
        for i in (0..n).step_by(97) {
            let (e, t) = windows.locate(i).unwrap();
            let record = ds.read(i, &mut buf).unwrap();
            let whole = Example::new(&payloads[e as usize].0);
            let camera = whole.bytes(CAMERAS[1]).unwrap().iter().nth(t as usize);
            assert_eq!(record.example().bytes(CAMERAS[1]).unwrap().first(), camera);
            let actions: Vec<f32> = record.example().float("action").unwrap().iter().collect();
            let first = whole.float("steps/action").unwrap().iter().nth(t as usize * 8);
            assert_eq!((actions.len(), actions.first().copied()), (128, first));
        }
        let bytes = ds.read(n / 2, &mut buf).unwrap().payload().len();
        group.throughput(Throughput::Bytes(bytes as u64));
        let mut rng = Rng::new(2);
        group.bench_function(format!("table/{way}"), |b| {
            b.iter_batched(
                || rng.below_u64(n),
                |i| black_box(ds.read(i, &mut buf).unwrap().payload().len()),
                BatchSize::SmallInput,
            );
        });
        let mut rng = Rng::new(2);
        group.bench_function(format!("whole_record/{way}"), |b| {
            b.iter_batched(
                || rng.below_u64(n),
                |i| {
                    let (e, t) = windows.locate(i).unwrap();
                    let record = dataset.read(e, &mut buf).unwrap();
                    let of = |camera| {
                        record.example().bytes(camera).unwrap().iter().nth(t as usize).unwrap().len()
                    };
                    black_box(CAMERAS.map(of))
                },
                BatchSize::SmallInput,
            );
        });
    }
    group.finish();
    let (payload, expected) = &payloads[0];
    let table = EpisodeTable::of(payload, &keys).unwrap();
    assert_eq!(table.steps() as usize, *expected);
    let mut group = c.benchmark_group("steps/table");
    group.throughput(Throughput::Bytes(payload.len() as u64));
    group.bench_function("of_payload", |b| {
        b.iter(|| black_box(EpisodeTable::of(payload, &keys).unwrap().steps()))
    });
    group.finish();
    let mut group = c.benchmark_group("steps/count");
    group.throughput(Throughput::Elements(EPISODES as u64));
    let (_, dataset) = &ways[0];
    group.bench_function("heads", |b| {
        b.iter(|| black_box(Episodes::open(dataset, &keys, &Default::default()).unwrap().steps()));
    });
    group.finish();
}

criterion_group!(benches, steps);
criterion_main!(benches);
