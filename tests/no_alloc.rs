//! Promise 1: from a payload to its values nothing is allocated, however oddly it is encoded.

#[path = "common/alloc.rs"]
mod alloc;
mod common;

use common::payloads;
use common::rng::Rng;
use std::hint::black_box;
use tfseek::example::Features;
use tfseek::io::Region;
use tfseek::{Example, Feature, Mapped, Options, SequenceExample, Verify};

/// Every way to the values of a feature.
fn read(feature: Feature<'_>, ints: &mut [i64], floats: &mut [f32]) {
    match feature {
        Feature::None => {}
        Feature::Int64(list) => {
            black_box((list.first(), list.get(1), list.iter().fold(0, i64::wrapping_add)));
            list.decode_into(&mut ints[..list.len()]).unwrap();
        }
        Feature::Float(list) => {
            black_box((list.first(), list.get(1), list.iter().sum::<f32>()));
            black_box((list.as_slice(), list.as_unaligned()));
            list.copy_to(&mut floats[..list.len()]).unwrap();
        }
        Feature::Bytes(list) => {
            black_box((list.first(), list.get(1), list.iter().map(<[u8]>::len).sum::<usize>()));
            let mut strings = [&b""[..]; 1024];
            list.copy_to(&mut strings[..list.len()]).unwrap();
        }
    }
}

fn look_up(example: Example<'_>, keys: &[String], ints: &mut [i64], floats: &mut [f32]) {
    for key in keys {
        let Some(feature) = example.get(key).unwrap() else { continue };
        read(feature, ints, floats);
        // The typed way; that of another kind would be an error, which is a box.
        match feature {
            Feature::None => {}
            Feature::Int64(_) => drop(black_box(example.int64(key).unwrap())),
            Feature::Float(_) => drop(black_box(example.float(key).unwrap())),
            Feature::Bytes(_) => drop(black_box(example.bytes(key).unwrap())),
        }
    }
    example.validate().unwrap();
    for entry in example.entries() {
        read(entry.unwrap().1, ints, floats);
    }
    if example.entries().count() <= Features::ON_STACK {
        let features = example.features().unwrap();
        for &(key, feature) in &features {
            black_box(features.get(key));
            read(feature, ints, floats);
        }
    }
}

fn keys(example: Example<'_>) -> Vec<String> {
    example.entries().map(|entry| entry.unwrap().0.to_owned()).chain(["no such key".to_owned()]).collect()
}

fn examples(make: fn(&mut Rng) -> Vec<u8>) {
    let (mut ints, mut floats) = (vec![0; 4096], vec![0.0; 4096]);
    let mut values = 0;
    for seed in 0..3_000 {
        let payload = make(&mut Rng::new(seed));
        let example = Example::new(&payload).with_lenient_map_entries(true);
        if example.validate().is_err() {
            continue;
        }
        let keys = keys(example);
        values += example.features().unwrap().iter().map(|(_, feature)| feature.len()).sum::<usize>();
        alloc::none(|| look_up(example, &keys, &mut ints, &mut floats));
    }
    assert!(values > 10_000);
}

#[test]
fn canonical_examples() {
    examples(payloads::canonical_example);
}

#[test]
fn odd_examples() {
    examples(payloads::odd_example);
}

fn sequences(make: fn(&mut Rng) -> Vec<u8>) {
    let (mut ints, mut floats) = (vec![0; 4096], vec![0.0; 4096]);
    let mut steps = 0;
    for seed in 0..3_000 {
        let payload = make(&mut Rng::new(seed));
        let sequence = SequenceExample::new(&payload).with_lenient_map_entries(true);
        if sequence.validate().is_err() {
            continue;
        }
        let context = keys(sequence.context());
        let lists: Vec<_> = sequence.feature_lists().map(|entry| entry.unwrap().0.to_owned()).collect();
        alloc::none(|| {
            sequence.validate().unwrap();
            look_up(sequence.context(), &context, &mut ints, &mut floats);
            for entry in sequence.feature_lists() {
                black_box(entry.unwrap());
            }
            for key in &lists {
                let list = sequence.feature_list(key).unwrap().unwrap();
                black_box((list.first(), list.get(1)));
                for step in list {
                    read(step, &mut ints, &mut floats);
                    steps += 1;
                }
            }
        });
    }
    assert!(steps > 1_000);
}

#[test]
fn canonical_sequences() {
    sequences(payloads::canonical_sequence);
}

#[test]
fn odd_sequences() {
    sequences(payloads::odd_sequence);
}

/// The whole way: from `get(i)` on a mapped dataset of several shards to decoded values.
#[test]
fn from_a_record_to_its_values() {
    let shard = |seeds: std::ops::Range<u64>| {
        let mut file = Vec::new();
        for seed in seeds {
            let payload = payloads::canonical_example(&mut Rng::new(seed));
            tfseek::frame::put_record(&mut file, &payload).unwrap();
        }
        file
    };
    let read_all = |set: &Mapped, keys: &[Vec<String>], ints: &mut [i64], floats: &mut [f32]| {
        for i in (0..set.len()).rev() {
            look_up(set.get(i).unwrap().example(), &keys[i as usize], ints, floats);
        }
        for (record, keys) in set.iter().zip(keys) {
            look_up(record.unwrap().example(), keys, ints, floats);
        }
    };
    let (mut ints, mut floats) = (vec![0; 4096], vec![0.0; 4096]);
    for verify in [Verify::Payload, Verify::Header] {
        let options = Options::new().verify(verify);
        let in_memory =
            options.open_regions([0..200, 200..201, 201..500].map(shard).map(Region::new)).unwrap();
        let dir = tempfile::tempdir().unwrap();
        for (name, seeds) in [("a.tfr", 0..200), ("b.tfr", 200..201), ("c.tfr", 201..500)] {
            std::fs::write(dir.path().join(name), shard(seeds)).unwrap();
        }
        let options = options.index_dir(dir.path().join("index"));
        // SAFETY: nobody else knows the folder.
        #[allow(unsafe_code)]
        let mapped = unsafe { options.open_mapped(dir.path()) }.unwrap();
        for set in [in_memory, mapped] {
            assert_eq!(set.len(), 500);
            let keys: Vec<_> = set.iter().map(|record| keys(record.unwrap().example())).collect();
            // Each shard has been touched by now: the first touch of a file maps it, which does allocate.
            alloc::none(|| read_all(&set, &keys, &mut ints, &mut floats));
        }
    }
}

/// The counter counts: else all of the above would hold of anything.
#[test]
fn the_counter_counts() {
    let (text, asked) = alloc::during(|| "x".repeat(100));
    assert_eq!((text.len(), asked.times, asked.bytes), (100, 1, 100));
    assert!(std::panic::catch_unwind(|| alloc::none(|| vec![0u8; 3])).is_err());
}
