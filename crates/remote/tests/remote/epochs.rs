//! Epochs of a loader: the batches of files, and how many requests and bytes they take.

use super::*;
use server::Counts;
use std::collections::BTreeMap;
use tfseek::loader::{LoaderOptions, Mix, Shuffle};
use tfseek::order::{LastBatch, Spec, State, Subset};

/// Three shards with 12,000 records of 1,000 to 1,400 bytes, which are 14 MB and 14 blocks of 1 MiB.
pub(crate) struct Blocks {
    pub(crate) case: Case,
    pub(crate) files: Dataset,
    pub(crate) bytes: u64,
}

const N: u64 = 12_000;
/// A block has 1/12 of a shard.
const BLOCK: u64 = 1000;
pub(crate) const ORDERS: [Shuffle; 4] = [
    Shuffle::None,
    Shuffle::Global,
    Shuffle::Order(Spec::Block { block: BLOCK, window: 3 }),
    // Blocks do not end where shards do.
    Shuffle::Order(Spec::Block { block: 777, window: 2 }),
];

impl Blocks {
    pub(crate) fn new() -> Blocks {
        let case = Case::new("s3");
        let (mut regions, mut bytes) = (Vec::new(), 0);
        for k in 0..3u64 {
            let mut shard = Vec::new();
            for i in k * 4000..(k + 1) * 4000 {
                let mut payload = vec![i as u8; 1000 + i as usize % 400];
                payload[..8].copy_from_slice(&i.to_le_bytes());
                put_record(&mut shard, &payload).unwrap();
            }
            bytes += shard.len() as u64;
            case.set(&format!("set-{k}.tfrecord"), shard.clone());
            regions.push(tfseek::io::Region::from(shard));
        }
        let files = DatasetOptions::new().index(tfseek::IndexMode::Memory).open_regions(regions).unwrap();
        Blocks { case, files: files.dataset().clone(), bytes }
    }

    /// Opens the objects, whose index is here, in a new store.
    pub(crate) fn open(&self, change: impl FnOnce(&mut RemoteOptions)) -> Dataset {
        let mut options = self.case.remote();
        change(&mut options);
        let store = Arc::new(RemoteStore::new(options));
        self.case.with(store).open(self.case.url("set-*")).unwrap()
    }
}

/// Returns the record numbers of each batch, after comparing the payloads with them.
pub(crate) fn read(options: LoaderOptions) -> Vec<Vec<u64>> {
    let loader = options.build().unwrap();
    loader.map(|step| checked(&step.unwrap())).collect()
}

pub(crate) fn checked(step: &tfseek::loader::Step) -> Vec<u64> {
    for (record, &id) in step.records().unwrap().zip(step.ids.iter()) {
        let payload = record.unwrap().payload().to_vec();
        assert_eq!(u64::from_le_bytes(payload[..8].try_into().unwrap()), id % N);
        assert_eq!(payload.len() as u64, 1000 + id % N % 400);
    }
    step.ids.to_vec()
}

pub(crate) fn loader(ds: &Dataset, shuffle: &Shuffle) -> LoaderOptions {
    ds.record_loader().batch_size(64).shuffle(shuffle.clone()).seed(7)
}

#[test]
fn a_block_order_reads_each_block_once() {
    let blocks = Blocks::new();
    let ds = blocks.open(|_| ());
    for shuffle in [&ORDERS[2], &ORDERS[3], &Shuffle::Block, &Shuffle::None] {
        for threads in [0, 1, 3] {
            blocks.case.server.counts();
            let found = read(loader(&ds, shuffle).threads(threads));
            let counts = blocks.case.server.counts();
            assert_eq!(found, read(loader(&blocks.files, shuffle)), "{shuffle:?}");
            let pieces = match shuffle {
                Shuffle::Order(Spec::Block { block, .. }) => N.div_ceil(*block) + 3,
                _ => blocks.bytes.div_ceil(1 << 20) + 3,
            };
            assert!(counts.gets * 10 <= pieces * 11, "{shuffle:?} {threads}: {counts:?}, {pieces} pieces");
            assert!(counts.bytes <= blocks.bytes + 100_000, "{shuffle:?} {threads}: {counts:?}");
        }
    }
}

#[test]
fn two_windows_are_in_memory_and_no_more() {
    let blocks = Blocks::new();
    // The index is here, so that no scan counts.
    blocks.open(|_| ());
    for (shuffle, block, window) in [(&ORDERS[2], BLOCK, 3 * BLOCK), (&ORDERS[3], 777, 2 * 777)] {
        for ranks in [1, 3] {
            let ds = blocks.open(|_| ());
            read(loader(&ds, shuffle).rank(0, ranks).global_batch_size(66).threads(2));
            let held = ds.traffic().unwrap().held;
            // The blocks of planned batches are always requested: those of 1,024 records of the rank, and
            // those that threads read. A slow thread may keep one of the first, and a block is requested
            // while there is room for a part of it.
            let windows = ((1100 * ranks).div_ceil(window) + 1).max(2);
            let most = windows * window * blocks.bytes / N + 2 * block * 1500;
            assert!(held <= most && held >= most / 4, "{shuffle:?} {ranks}: {held}, {most}");
        }
    }
}

#[test]
fn batches_are_those_of_files_for_every_rank_and_after_every_resume() {
    let blocks = Blocks::new();
    let ds = blocks.open(|_| ());
    for shuffle in &ORDERS {
        for ranks in [1, 2, 5] {
            for rank in 0..ranks {
                let of = |ds: &Dataset| {
                    let options = loader(ds, shuffle).global_batch_size(500).rank(rank, ranks).threads(2);
                    options.last_batch(LastBatch::Short)
                };
                assert_eq!(read(of(&ds)), read(of(&blocks.files)), "{shuffle:?} {rank} of {ranks}");
            }
        }
        // A resume after each batch.
        let options = |ds: &Dataset| loader(ds, shuffle).batch_size(1500).repeat(true).threads(1);
        let expected: Vec<_> =
            options(&blocks.files).build().unwrap().take(20).map(|step| checked(&step.unwrap())).collect();
        let mut running = options(&ds).build().unwrap();
        for k in 0..16 {
            let mut resumed = options(&ds).build().unwrap();
            resumed.seek(&State::from_json(&running.state().unwrap().to_json()).unwrap()).unwrap();
            for later in 0..2 {
                assert_eq!(
                    checked(&resumed.next().unwrap().unwrap()),
                    expected[k + later],
                    "{shuffle:?} {k}"
                );
            }
            drop(resumed);
            assert_eq!(checked(&running.next().unwrap().unwrap()), expected[k]);
        }
    }
}

#[test]
fn mixes_and_filters_are_those_of_files() {
    let blocks = Blocks::new();
    let ds = blocks.open(|_| ());
    let subset = Subset::from_fn(N, |i| i % 3 == 0);
    for shuffle in [Shuffle::None, Shuffle::Global, Shuffle::Block] {
        let of = |ds: &Dataset| {
            let mix = Mix::new([(ds.record_loader(), 3), (ds.record_loader().select(subset.clone()), 1)]);
            let options = mix.loader().unwrap().batch_size(64).shuffle(shuffle.clone()).seed(7).threads(2);
            let steps = options.build().unwrap().take(300);
            steps.map(|step| checked(&step.unwrap())).collect::<Vec<_>>()
        };
        assert_eq!(of(&ds), of(&blocks.files), "{shuffle:?}");
    }
    for shuffle in &ORDERS {
        let of = |ds: &Dataset| read(loader(ds, shuffle).select(subset.clone()).threads(2));
        assert_eq!(of(&ds), of(&blocks.files), "{shuffle:?}");
    }
}

#[test]
fn small_records_in_a_global_order_are_warned_of() {
    let case = Case::new("s3");
    for (record, count, warned) in [(1000, 20_000, true), (1000, 1000, false), (300_000, 60, false)] {
        let mut bytes = Vec::new();
        (0..count).for_each(|_| put_record(&mut bytes, &vec![7; record]).unwrap());
        case.set("some.tfrecord", bytes);
        let ds = case.open("some.tfrecord").unwrap();
        let loader = |shuffle| ds.record_loader().batch_size(10).shuffle(shuffle).build().unwrap();
        let kinds: Vec<_> = loader(Shuffle::Global).warnings().iter().map(tfseek::Warning::kind).collect();
        assert_eq!(kinds == ["scattered_requests"], warned, "{kinds:?}");
        assert!(loader(Shuffle::Block).warnings().is_empty());
    }
}

#[test]
fn what_was_requested_for_an_epoch_that_is_left_is_dropped() {
    let blocks = Blocks::new();
    let ds = blocks.open(|_| ());
    for shuffle in &ORDERS {
        let mut loader = loader(&ds, shuffle).threads(2).build().unwrap();
        for _ in 0..20 {
            assert!(loader.next().unwrap().is_ok());
            loader.begin().unwrap();
        }
        drop(loader);
    }
    // All is in order afterwards.
    let mut idle = 0;
    while idle < 40 {
        // A request may be on its way to the server.
        idle = if blocks.case.server.running() > 0 { 0 } else { idle + 1 };
        std::thread::sleep(Duration::from_millis(5));
    }
    blocks.case.server.counts();
    read(loader(&ds, &ORDERS[2]));
    let Counts { gets, bytes, .. } = blocks.case.server.counts();
    assert!(gets <= 17 && bytes <= blocks.bytes + 100_000, "{gets} {bytes}");
    let mut seen = BTreeMap::<u64, u64>::new();
    read(loader(&ds, &ORDERS[3])).concat().iter().for_each(|id| *seen.entry(*id).or_default() += 1);
    assert!(seen.len() as u64 == N && seen.values().all(|n| *n == 1));
}
