//! Threads of a loader: delays change nothing, limits hold, a panic is an error, and a dropped loader leaves
//! no thread running.

use super::{NextStep, Step};
use crate::frame::put_record;
use crate::{DType, ExampleBuilder, FeatureSpec, Mapped, Schema};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

/// A pseudo-random generator for delays.
struct Lcg(u64);

impl Lcg {
    fn new(seed: u64) -> Lcg {
        Lcg(seed)
    }

    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % n
    }
}

/// Returns the payload of record `i`: its number, and a string whose length depends on it.
fn payload(i: u64) -> Vec<u8> {
    let text = format!("{i}").repeat((i % 7) as usize);
    ExampleBuilder::new().int64("i", [i as i64]).bytes("s", [text]).encode().unwrap()
}

fn memory(n: u64) -> Mapped {
    let mut bytes = Vec::new();
    (0..n).for_each(|i| put_record(&mut bytes, &payload(i)).unwrap());
    Mapped::from_bytes(bytes).unwrap()
}

fn schema() -> Schema {
    Schema::example()
        .feature("i", FeatureSpec::fixed_len(&[], DType::Int64))
        .feature("s", FeatureSpec::var_len(DType::Bytes))
        .build()
        .unwrap()
}

/// Asserts that a step has the values of its records.
fn check(step: &Step) {
    let batch = step.batch().unwrap();
    assert_eq!(batch.rows(), step.ids.len());
    let i = batch.int64("i").unwrap();
    assert!(i.iter().map(|&i| i as u64).eq(step.ids.iter().copied()));
    let s = batch.bytes("s").unwrap();
    assert!(s.iter().zip(i).all(|(s, i)| s == i.to_string().repeat((i % 7) as usize).as_bytes()));
}

#[test]
fn a_step_has_its_number_and_the_seeds_of_its_rows() {
    let ds = memory(100);
    let options = ds.dataset().loader(&schema()).global_batch_size(8).seed(7).epoch(2);
    let options = options.shuffle(super::Shuffle::Global).last_batch(crate::order::LastBatch::Pad);
    for (worker, workers) in [(0, 1), (0, 2), (1, 2)] {
        for rank in 0..2 {
            let mut loader = options.clone().rank(rank, 2).worker(worker, workers).build().unwrap();
            let steps: Vec<Step> = loader.by_ref().map(Result::unwrap).collect();
            let numbers: Vec<u64> = steps.iter().map(|step| step.step).collect();
            assert_eq!(numbers, (worker..13).step_by(workers as usize).collect::<Vec<_>>());
            for step in &steps {
                assert_eq!(step.epoch, 2);
                let seeds: Vec<u64> = step.augmentation_seeds().collect();
                let of = |position| crate::order::augmentation_seed(7, 2, position);
                // The last batch has four positions, and four that repeat the first ones.
                let start = if (step.step, rank) == (12, 1) { 0 } else { step.step * 8 + rank * 4 };
                assert_eq!(seeds, (start..start + 4).map(of).collect::<Vec<_>>());
            }
            assert!(loader.times().parse > Duration::ZERO && loader.threads() > 0);
        }
    }
    // A resumed run goes on with the same numbers.
    let mut loader = options.clone().build().unwrap();
    loader.by_ref().take(5).for_each(drop);
    let mut again = options.clone().threads(0).build().unwrap();
    again.seek(&loader.state().unwrap()).unwrap();
    let mut step = again.next().unwrap().unwrap();
    let seeds: Vec<u64> = step.augmentation_seeds().collect();
    step.release();
    assert_eq!((step.step, step.batch().is_none(), step.ids.len()), (5, true, 8));
    assert!(step.augmentation_seeds().eq(seeds));
}

#[test]
fn delays_change_nothing() {
    let ds = memory(400);
    let ids = |threads: usize, seed: Option<u64>| {
        let mut options = ds
            .dataset()
            .loader(&schema())
            .batch_size(8)
            .shuffle(crate::loader::Shuffle::Global)
            .seed(6)
            .threads(threads);
        if let Some(seed) = seed {
            let rng = Mutex::new(Lcg::new(seed));
            options = options.before_read(move |_| {
                let mut rng = rng.lock().unwrap();
                let micros = rng.below(4) * rng.below(800);
                drop(rng);
                std::thread::sleep(Duration::from_micros(micros as u64));
            });
        }
        let steps = options.build().unwrap().map(|step| {
            let step = step.unwrap();
            check(&step);
            step.ids.to_vec()
        });
        steps.collect::<Vec<_>>()
    };
    let want = ids(0, None);
    for seed in 0..12 {
        assert_eq!(ids([2, 3, 8][seed as usize % 3], Some(seed)), want);
    }
}

/// Batches in flight and their payload bytes, now and at the maximum.
#[derive(Default)]
struct InFlight {
    batches: AtomicUsize,
    bytes: AtomicU64,
    max_batches: AtomicUsize,
    max_bytes: AtomicU64,
}

fn sizes(ids: &[u64]) -> u64 {
    ids.iter().map(|&i| payload(i).len() as u64).sum()
}

#[test]
fn batches_and_bytes_in_flight_stay_within_their_limits() {
    let ds = memory(600);
    for (threads, batches, memory) in
        [(1, 1, u64::MAX), (2, 3, u64::MAX), (8, 4, u64::MAX), (8, 64, 2500), (4, 64, 1)]
    {
        let seen = Arc::new(InFlight::default());
        let hook = Arc::clone(&seen);
        let rng = Mutex::new(Lcg::new(7));
        let options = ds
            .dataset()
            .loader(&schema())
            .batch_size(8)
            .shuffle(crate::loader::Shuffle::Global)
            .seed(6)
            .threads(threads);
        let options = options.batches_ahead(batches).memory(memory).before_read(move |ids| {
            let now = hook.batches.fetch_add(1, SeqCst) + 1;
            hook.max_batches.fetch_max(now, SeqCst);
            let now = hook.bytes.fetch_add(sizes(ids), SeqCst) + sizes(ids);
            hook.max_bytes.fetch_max(now, SeqCst);
            std::thread::sleep(Duration::from_micros(rng.lock().unwrap().below(200) as u64));
        });
        let mut loader = options.build().unwrap();
        let mut largest = 0;
        let mut steps = 0;
        while let Some(step) = loader.next() {
            let step = step.unwrap();
            let in_flight = loader.bytes_in_flight();
            seen.batches.fetch_sub(1, SeqCst);
            seen.bytes.fetch_sub(sizes(&step.ids), SeqCst);
            largest = largest.max(sizes(&step.ids));
            assert!(in_flight <= memory.max(largest * 2), "{in_flight}");
            steps += 1;
        }
        assert_eq!(steps, 75);
        // The batch that the consumer holds has left the loader. Another one may have started before this
        // test counted that.
        assert!(seen.max_batches.load(SeqCst) <= batches + 1);
        assert!(seen.max_bytes.load(SeqCst) <= memory.max(largest).saturating_add(largest));
        assert_eq!((seen.batches.load(SeqCst), seen.bytes.load(SeqCst)), (0, 0));
    }
}

/// Back-pressure: if the consumer takes no batch, the workers stop at the largest number of batches allowed.
/// They go on before half of them are taken.
#[test]
fn a_slow_consumer_stops_the_workers() {
    let ds = memory(1000);
    let (started, batches) = mpsc::channel();
    let options = ds.dataset().record_loader().batch_size(10).threads(4).batches_ahead(6);
    let options = options.before_read(move |ids| started.send(ids[0]).unwrap());
    let mut loader = options.build().unwrap();
    let mut first = Vec::new();
    for taken in 1..=9 {
        loader.next().unwrap().unwrap();
        while first.len() < taken + 4 {
            first.push(batches.recv_timeout(Duration::from_secs(600)).unwrap());
        }
        while let Ok(more) = batches.recv_timeout(Duration::from_millis(50)) {
            first.push(more);
        }
        assert!(first.len() <= taken + 6, "{first:?} after {taken}");
    }
    first.sort_unstable();
    assert!(first.iter().copied().eq((0..first.len() as u64).map(|k| k * 10)));
}

/// Without a number of threads, the loader starts more while its consumer waits. Their number does not change
/// the batches, and is kept for the next epoch.
#[test]
fn threads_are_added_while_the_consumer_waits() {
    let ds = memory(400);
    let options = ds.dataset().loader(&schema()).batch_size(4).shuffle(super::Shuffle::Global).seed(6);
    let slow = options.clone().before_read(|_| std::thread::sleep(Duration::from_millis(3)));
    let mut loader = slow.build().unwrap();
    assert_eq!(loader.threads(), 1);
    let chosen: Vec<_> = loader.by_ref().map(|step| step.unwrap().ids).collect();
    let fixed: Vec<_> = options.threads(1).build().unwrap().map(|step| step.unwrap().ids).collect();
    assert_eq!(chosen, fixed);
    let most = crate::threads(None).unwrap();
    assert!(most == 1 || loader.threads() > 1);
    let before = loader.threads();
    loader.next().unwrap().unwrap();
    assert!(loader.threads() >= before);
}

/// `drop` joins all threads, so no thread holds anything of the loader's afterwards.
#[test]
fn drop_joins_the_threads() {
    let ds = memory(2000);
    for taken in [0, 1, 7, 60] {
        for threads in [0, 1, 4] {
            let alive = Arc::new(());
            let rng = Mutex::new(Lcg::new(taken as u64));
            let held = Arc::clone(&alive);
            let options = ds
                .dataset()
                .loader(&schema())
                .batch_size(8)
                .shuffle(crate::loader::Shuffle::Global)
                .seed(6)
                .threads(threads);
            let options = options.before_read(move |_| {
                let _held = &held;
                std::thread::sleep(Duration::from_micros(rng.lock().unwrap().below(300) as u64));
            });
            let mut loader = options.build().unwrap();
            assert_eq!(loader.by_ref().take(taken).count(), taken);
            // In a thread, so that the test can time out.
            let (done, finished) = mpsc::channel();
            std::thread::spawn(move || {
                drop(loader);
                let _ = done.send(());
            });
            finished.recv_timeout(Duration::from_secs(600)).expect("drop joins its threads");
            assert_eq!(Arc::strong_count(&alive), 1, "a thread is left");
        }
    }
}

/// `next_within` reports a timeout, and a later call returns the step.
#[test]
fn waiting_for_a_step_can_time_out() {
    let ds = memory(30);
    let (go, wait) = mpsc::channel::<()>();
    let wait = Mutex::new(wait);
    let options = ds.dataset().record_loader().batch_size(10).threads(1);
    let mut loader = options.before_read(move |_| wait.lock().unwrap().recv().unwrap()).build().unwrap();
    for first in [0, 10, 20] {
        assert!(matches!(loader.next_within(Duration::from_millis(5)), NextStep::Timeout));
        go.send(()).unwrap();
        let step = loop {
            match loader.next_within(Duration::from_secs(600)) {
                NextStep::Ready(step) => break step.unwrap(),
                NextStep::Timeout => {}
                NextStep::EpochEnd(_) => panic!("three steps"),
            }
        };
        assert_eq!(step.ids[0], first);
    }
    assert!(matches!(loader.next_within(Duration::from_secs(600)), NextStep::EpochEnd(_)));
}

/// A thread that panics does not leave the consumer waiting.
#[test]
fn a_panic_is_an_error_of_its_batch() {
    let ds = memory(100);
    for threads in [0, 1, 3] {
        let options = ds.dataset().loader(&schema()).batch_size(10).threads(threads);
        let loader = options.before_read(|ids| assert!(!ids.contains(&45), "not this one")).build().unwrap();
        let results: Vec<_> = loader.map(|step| step.map(|step| step.ids[0])).collect();
        assert_eq!(results.len(), 10);
        for (k, result) in results.iter().enumerate() {
            match result {
                Ok(first) => assert_eq!(*first, k as u64 * 10),
                Err(e) => assert!(k == 4 && e.to_string().contains("not this one"), "{k} {e}"),
            }
        }
    }
}

/// A forked child has no threads of the parent. It makes the same loader again and moves it to the parent's
/// position.
#[test]
fn a_clone_of_the_options_makes_the_same_loader() {
    use crate::order::{Component, MixSpec, Spec, Subset};
    let ds = memory(100);
    let ids = |loader: &mut super::Loader, n: usize| {
        loader.by_ref().take(n).map(|step| step.unwrap().ids.to_vec()).collect::<Vec<_>>()
    };
    let class = |c| Component::new(1, Spec::Global.filtered(Subset::from_fn(100, |i| i % 2 == c)));
    let mix = |components| Spec::Mix(MixSpec::new(components));
    for spec in [Spec::Global, mix(vec![Component::new(1, Spec::Global)]), mix(vec![class(0), class(1)])] {
        let shuffle = crate::loader::Shuffle::Order(spec);
        let options = ds.dataset().loader(&schema()).batch_size(8).shuffle(shuffle).seed(6).threads(2);
        let mut first = options.clone().build().unwrap();
        let seen = ids(&mut first, 5);
        let mut second = options.build().unwrap();
        second.go_to(first.cursor()).unwrap();
        let rest = ids(&mut first, usize::MAX);
        assert_eq!(ids(&mut second, usize::MAX), rest);
        assert_eq!(seen.len() + rest.len(), 13);
    }
}

/// Writes one gzip file of small records, and opens it with segments of 16 KiB. `width` segments must be
/// decompressed at the same time before any of them continues, or ten seconds pass. The result is the largest
/// number at the same time, which is updated.
fn inflating(dir: &std::path::Path, width: usize) -> (crate::Dataset, Arc<AtomicUsize>) {
    let path = dir.join("x.gz");
    let options = crate::writer::WriterOptions {
        compression: crate::Compression::Gzip,
        members: Some(16 << 10),
        ..Default::default()
    };
    let mut writer = options.create(&path).unwrap();
    (0..20_000).for_each(|i| writer.write(&payload(i)).unwrap());
    writer.close().unwrap();
    let index = crate::index::IndexOptions::from(crate::IndexMode::Memory).checkpoint_every(16 << 10);
    let mut options = crate::DatasetOptions::new().index(index);
    options.segments = Arc::default();
    let ds = options.open(&path).unwrap();
    let most = Arc::new(AtomicUsize::new(0));
    let inside = (Mutex::new(0), std::sync::Condvar::new());
    let seen = Arc::clone(&most);
    let before = move |_| {
        let (count, changed) = &inside;
        let mut count = count.lock().unwrap();
        *count += 1;
        seen.fetch_max(*count, SeqCst);
        changed.notify_all();
        let waits = |_: &mut usize| seen.load(SeqCst) < width;
        let (mut count, _) = changed.wait_timeout_while(count, Duration::from_secs(600), waits).unwrap();
        *count -= 1;
    };
    let cache = ds.files()[0].segment_cache().unwrap();
    assert!(cache.before_inflate.0.set(Box::new(before)).is_ok());
    (ds, most)
}

/// A batch is a small part of a segment. The threads that wait for a segment decompress the next ones.
#[test]
fn segments_of_one_file_are_decompressed_at_the_same_time() {
    let dir = tempfile::tempdir().unwrap();
    let (ds, most) = inflating(dir.path(), 3);
    let loader = ds.loader(&schema()).batch_size(8).threads(4).build().unwrap();
    let mut n = 0;
    for step in loader {
        let step = step.unwrap();
        check(&step);
        assert!(step.ids.iter().copied().eq(n..n + step.ids.len() as u64));
        n += step.ids.len() as u64;
    }
    assert_eq!(n, 20_000);
    assert!(most.load(SeqCst) >= 3, "{} at the same time", most.load(SeqCst));
}

#[test]
fn threads_that_read_parts_of_one_file_decompress_at_the_same_time() {
    let dir = tempfile::tempdir().unwrap();
    let (ds, most) = inflating(dir.path(), 4);
    std::thread::scope(|scope| {
        for t in 0..4 {
            let ds = &ds;
            scope.spawn(move || {
                let ids: Vec<u64> = (t * 5000..t * 5000 + 5000).collect();
                let mut next = t * 5000;
                ds.read_many(&ids, |record| {
                    assert_eq!(record.payload(), payload(next));
                    next += 1;
                    Ok(())
                })
            });
        }
    });
    assert_eq!(most.load(SeqCst), 4);
}

/// Repetition belongs to a loader, not to the position of another one.
#[test]
fn a_loader_that_repeats_goes_on_repeating() {
    let ds = memory(20);
    let options = ds.dataset().record_loader().batch_size(8).threads(0);
    let mut once = options.clone().build().unwrap();
    let mut repeats = options.repeat(true).build().unwrap();
    // A cursor that goes to the next epoch before a step was requested stays there when it is left early.
    let mut ahead = repeats.cursor().clone();
    ahead.advance(1).unwrap();
    ahead.advance(2).unwrap();
    for _ in 0..2 {
        ahead.begin().unwrap();
        assert_eq!((ahead.epoch(), ahead.position()), (1, 0));
        ahead.enter().unwrap();
        ahead.advance(1).unwrap();
    }
    once.next().unwrap().unwrap();
    repeats.go_to(once.cursor()).unwrap();
    assert_eq!(repeats.by_ref().take(10).map(Result::unwrap).count(), 10);
    once.go_to(repeats.cursor()).unwrap();
    assert!(once.by_ref().take(10).map(Result::unwrap).count() < 4);
}
