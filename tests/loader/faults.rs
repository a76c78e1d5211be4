//! An error is returned at the step of its record, and no other record is lost.

use super::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tfseek::Damage;
use tfseek::error::Category;
use tfseek::{Error, LoaderOptions};

const N: u64 = 100;
const BAD: u64 = 41;

/// Returns the offset of the payload of record `i` in a shard of all records.
fn at(i: u64) -> usize {
    (0..i).map(|i| payload(i).len() + 16).sum::<usize>() + 12
}

fn one_shard() -> Vec<u8> {
    shards(&[N]).remove(0)
}

/// Flips a bit so that the record is still an Example and only its checksum is wrong.
fn flipped() -> Vec<u8> {
    let mut bytes = one_shard();
    let payload = payload(BAD);
    let x = payload.windows(4).position(|b| b == (BAD as f32).to_le_bytes()).unwrap();
    bytes[at(BAD) + x] ^= 1;
    bytes
}

/// Replaces a record by one whose `i` is a float.
fn of_another_kind() -> Vec<u8> {
    let mut bytes = Vec::new();
    for i in 0..N {
        let payload = match i {
            BAD => ExampleBuilder::new().float("i", [1.0f32]).encode().unwrap(),
            _ => payload(i),
        };
        put_record(&mut bytes, &payload).unwrap();
    }
    bytes
}

fn with_every_source(bytes: &[u8], mut check: impl FnMut(&dyn Fn() -> LoaderOptions)) {
    let dir = tempfile::tempdir().unwrap();
    let read = files(dir.path(), &[bytes.to_vec()]);
    let memory = open(vec![bytes.to_vec()]);
    for ds in [&memory, &read] {
        for threads in [0, 1, 2, 8] {
            check(&|| {
                ds.loader(&schema())
                    .batch_size(8)
                    .shuffle(tfseek::loader::Shuffle::Global)
                    .seed(6)
                    .threads(threads)
            });
        }
    }
}

fn record_of(e: &Error) -> Option<u64> {
    e.location().record
}

#[test]
fn an_error_is_returned_at_the_step_of_its_record() {
    let sound: Vec<Vec<u64>> = open(vec![one_shard()])
        .loader(&schema())
        .batch_size(8)
        .shuffle(tfseek::loader::Shuffle::Global)
        .seed(6)
        .build()
        .unwrap()
        .map(|step| step.unwrap().ids.to_vec())
        .collect();
    let k = sound.iter().position(|ids| ids.contains(&BAD)).unwrap();
    assert!(k > 0 && k + 1 < sound.len());
    for bytes in [flipped(), of_another_kind()] {
        with_every_source(&bytes, |options| {
            let mut loader = options().build().unwrap();
            let mut before = loader.state().unwrap().position;
            for (step, want) in sound.iter().enumerate() {
                let made = loader.next().unwrap();
                let position = loader.state().unwrap().position;
                if step == k {
                    let e = made.unwrap_err();
                    assert_eq!(record_of(&e), Some(BAD), "{e}");
                    assert_eq!(position, before, "an error without a batch does not advance the state");
                } else {
                    let made = made.unwrap();
                    check(&made);
                    assert_eq!(made.ids, *want);
                    before = position;
                }
            }
            assert!(loader.next().is_none());
        });
    }
}

#[test]
fn skipped_records_are_listed_and_their_positions_consumed() {
    for bytes in [flipped(), of_another_kind()] {
        with_every_source(&bytes, |options| {
            let loader = options().damage(Damage::Skip).build().unwrap();
            let order = loader.cursor().order().clone();
            let mut position = 0;
            let mut skipped = Vec::new();
            for step in loader {
                let step = step.unwrap();
                check(&step);
                for sample in step.samples() {
                    if order.get(position).unwrap() == BAD {
                        position += 1;
                    }
                    assert_eq!((sample.position, sample.padding), (position, false));
                    assert_eq!(order.get(position).unwrap(), sample.record);
                    position += 1;
                }
                for (record, e) in &step.skipped {
                    assert_eq!((*record, record_of(e)), (BAD, Some(BAD)));
                    assert!(!step.ids.contains(&BAD));
                    skipped.push(*record);
                }
            }
            assert_eq!(skipped, [BAD]);
        });
    }
}

#[test]
fn records_of_one_batch_are_skipped_for_different_reasons() {
    let mut bytes = of_another_kind();
    let flipped = BAD + 2;
    let len = |i| {
        if i == BAD {
            ExampleBuilder::new().float("i", [1.0f32]).encode().unwrap().len()
        } else {
            payload(i).len()
        }
    };
    let start = (0..flipped).map(|i| len(i) + 16).sum::<usize>() + 12;
    bytes[start + len(flipped)] ^= 1;
    with_every_source(&bytes, |options| {
        let steps = options().batch_size(N).damage(Damage::Skip).build().unwrap();
        let [step] = &steps.map(Result::unwrap).collect::<Vec<_>>()[..] else { panic!() };
        check(step);
        let mut skipped: Vec<_> = step.skipped.iter().map(|(record, e)| (*record, e.category())).collect();
        skipped.sort_unstable_by_key(|&(record, _)| record);
        assert_eq!(
            skipped,
            [(BAD, Some(Category::KindMismatch)), (flipped, Some(Category::ChecksumMismatch))]
        );
        let mut kept = step.ids.to_vec();
        kept.sort_unstable();
        assert_eq!(kept, (0..N).filter(|&i| i != BAD && i != flipped).collect::<Vec<_>>());
    });
}

#[test]
fn verification_may_be_limited_to_the_first_epoch() {
    with_every_source(&flipped(), |options| {
        let errors = |first_epoch, later| {
            let mut loader = options().verify(first_epoch, later).build().unwrap();
            [0, 1].map(|_| loader.by_ref().filter(Result::is_err).count())
        };
        assert_eq!(errors(Verify::Payload, Verify::Header), [1, 0]);
        assert_eq!(errors(Verify::Payload, Verify::Payload), [1, 1]);
        assert_eq!(errors(Verify::Header, Verify::Header), [0, 0]);
    });
}

/// If a file is truncated while it is read, the lost records are errors, each in its batch.
#[test]
fn a_file_that_shrinks_is_an_error_in_each_of_its_batches() {
    let dir = tempfile::tempdir().unwrap();
    let bytes = one_shard();
    let ds = files(dir.path(), std::slice::from_ref(&bytes));
    let mut loader = ds.loader(&schema()).batch_size(10).threads(0).build().unwrap();
    assert!(loader.next().unwrap().is_ok());
    std::fs::OpenOptions::new()
        .write(true)
        .open(dir.path().join("0.tfrecord"))
        .unwrap()
        .set_len(at(45) as u64)
        .unwrap();
    let results: Vec<bool> = loader.by_ref().map(|step| step.is_ok()).collect();
    assert_eq!(results, [[true; 3].as_slice(), &[false; 6]].concat());
}

/// Shards of a pack are opened at their first access. A shard that is missing by then is an I/O error in each
/// of its batches, and is not skipped.
#[test]
fn a_missing_shard_is_an_error_in_each_of_its_batches() {
    let dir = tempfile::tempdir().unwrap();
    drop(files(dir.path(), &shards(&[10, 20, 10])));
    let paths: Vec<_> = (0..3).map(|k| dir.path().join(format!("{k}.tfrecord"))).collect();
    let (pack, _) = tfseek::index::write_pack("x", &paths, &Default::default()).unwrap();
    let ds = DatasetOptions::new().open(&pack).unwrap();
    std::fs::remove_file(&paths[1]).unwrap();
    for policy in [Damage::Raise, Damage::Skip] {
        for threads in [0, 2] {
            let options = ds.loader(&schema()).batch_size(5).threads(threads).damage(policy);
            let steps: Vec<_> = options.build().unwrap().collect();
            assert_eq!(steps.len(), 8);
            for (k, step) in steps.iter().enumerate() {
                match step {
                    Ok(step) => assert!(!(2..6).contains(&k) && step.ids.len() == 5),
                    Err(e) => {
                        assert!(
                            (2..6).contains(&k) && matches!(e.kind(), tfseek::ErrorKind::Io(_)),
                            "{k} {e}"
                        );
                        assert!(e.to_string().contains("1.tfrecord"), "{e}");
                    }
                }
            }
        }
    }
}

/// Bytes that change once `changed` is set, like a file that is written to while it is mapped.
struct Changing {
    before: Vec<u8>,
    after: Vec<u8>,
    changed: Arc<AtomicBool>,
}

impl AsRef<[u8]> for Changing {
    fn as_ref(&self) -> &[u8] {
        if self.changed.load(Ordering::Relaxed) { &self.after } else { &self.before }
    }
}

#[test]
fn a_step_keeps_all_records_if_bytes_change_after_verification() {
    let (before, changed) = (one_shard(), Arc::new(AtomicBool::new(false)));
    let mut after = before.clone();
    // The header of a record whose checksum was already verified.
    after[at(BAD) - 12] ^= 1;
    let bytes = Changing { before, after, changed: Arc::clone(&changed) };
    let ds = options().open_regions([Region::new(bytes)]).unwrap();
    let steps: Vec<Step> =
        ds.dataset().record_loader().batch_size(10).threads(0).build().unwrap().map(Result::unwrap).collect();
    changed.store(true, Ordering::Relaxed);
    for step in &steps {
        let payloads: Vec<_> =
            step.records().unwrap().map(|record| record.unwrap().payload().to_vec()).collect();
        assert_eq!(payloads, step.ids.iter().map(|&i| payload(i)).collect::<Vec<_>>());
        assert_eq!(payloads.len(), step.ids.len());
        assert!(step.records().unwrap().all(|record| record.is_ok_and(|record| record.region().is_some())));
    }
}
