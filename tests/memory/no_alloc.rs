//! No allocation between a payload and its decoded values, whatever its encoding, and none between payloads
//! and columns once a parser is warm.

use std::hint::black_box;
use tfseek::batch::{Batch, BatchParser, Row};
use tfseek::example::{Features, MessageKind};
use tfseek::io::Region;
use tfseek::schema::{DType, FeatureSpec, Partition, Schema, SplitsDType};
use tfseek::tensor::TensorDType;
use tfseek::{DatasetOptions, Example, Feature, Mapped, SequenceExample, Verify};
use tfseek_testkit::alloc;
use tfseek_testkit::rng::Rng;
use tfseek_testkit::{payloads, shaped};

/// Reads the values of a feature in every way.
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
        }
    }
}

fn look_up(example: Example<'_>, keys: &[String], ints: &mut [i64], floats: &mut [f32]) {
    for key in keys {
        let Some(feature) = example.get(key).unwrap() else { continue };
        read(feature, ints, floats);
        // Typed access for the matching kind only: the error for another kind is boxed.
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
            black_box(features.binary_search_by_key(&key, |&(other, _)| other)).unwrap();
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
        let example = Example::new(&payload);
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
        let sequence = SequenceExample::new(&payload);
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
                black_box((list.len(), list.get(1)));
                for step in list.iter() {
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

/// The whole read path: from `get(i)` on a mapped dataset of several shards to decoded values.
#[test]
fn mapped_records_decode_without_allocation() {
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
        let options = DatasetOptions::new().verify(verify);
        let in_memory =
            options.open_regions([0..200, 200..201, 201..500].map(shard).map(Region::new)).unwrap();
        let dir = tempfile::tempdir().unwrap();
        for (name, seeds) in [("a.tfr", 0..200), ("b.tfr", 200..201), ("c.tfr", 201..500)] {
            std::fs::write(dir.path().join(name), shard(seeds)).unwrap();
        }
        let options = options.index(tfseek::index::IndexOptions::new().index_dir(dir.path().join("index")));
        // SAFETY: the folder is private to this test.
        #[allow(unsafe_code)]
        let mapped = unsafe { options.open_mapped(dir.path()) }.unwrap();
        for set in [in_memory, mapped] {
            assert_eq!(set.len(), 500);
            let keys: Vec<_> = set.iter().map(|record| keys(record.unwrap().example())).collect();
            // Every shard has been accessed by now. The first access maps the file, which allocates.
            alloc::none(|| read_all(&set, &keys, &mut ints, &mut floats));
        }
    }
}

/// Orders fill a slice in place, whatever their kind.
#[test]
fn filters_accept_records_without_allocation() {
    const TEXT: &str = "label == 3 and any(scores) > 0.5 and (caption matches '^a.*s$' or caption contains 'dog') \
         and not width(image) > 3 and len(scores) < 10 and split(0.99) and record in 0..1000 or present(a1) or a2 == 1 or \
         a3 == 1 or a4 == 1 or a5 == 1 or a6 == 1";
    let filter: tfseek::Filter = TEXT.parse().unwrap();
    let mut records = filter.for_records();
    let payload = tfseek::ExampleBuilder::new()
        .int64("label", [3])
        .float("scores", [0.1, 0.2, 0.9])
        .bytes("caption", ["a dog and two cats"])
        .bytes("image", [b"no image"])
        .int64("a6", [7])
        .encode()
        .unwrap();
    // The first record fills the scratch memory of the pattern.
    assert!(records.accepts(0, &payload, MessageKind::Example).unwrap());
    alloc::none(|| {
        for number in 1..100 {
            assert!(records.accepts(number, &payload, MessageKind::Example).unwrap());
        }
    });
}

#[test]
fn orders_fill_without_allocation() {
    use tfseek::order::{Component, LastBatch, MixSpec, Order, RankShare, Spec, Subset, Weights};
    let odd = Spec::Global.filtered(Subset::from_fn(5000, |i| i % 2 == 1));
    let weights = Weights::new((0..5000).collect::<Vec<u32>>()).unwrap();
    let block = Spec::Block { block: 16, window: 4 };
    let components = [odd.clone(), block.clone(), Spec::Weighted(weights.clone()), Spec::Global];
    let mixture =
        Spec::Mix(MixSpec::new((1..).zip(components).map(|(q, spec)| Component::new(q, spec)).collect()));
    for spec in [Spec::Sequential, Spec::Global, odd, block, Spec::Weighted(weights), mixture] {
        let order = Order::new(&spec, 5000, 1, 2).unwrap();
        let share = RankShare::new(order.len(), 512, 1, 2, LastBatch::Pad).unwrap();
        let mut records = [0; 256];
        // The first use of a mixture makes the table of its cycle.
        order.fill(0, &mut records).unwrap();
        alloc::none(|| {
            for run in (0..share.steps()).flat_map(|k| share.step(k).unwrap()) {
                order.fill(run.start, &mut records[..run.len as usize]).unwrap();
                black_box((order.get(run.start).unwrap(), order.position_of(records[0]).unwrap()));
            }
        });
    }
}

/// An order of a billion records, its steps, its saved state and its resume allocate as much as those of a
/// thousand records.
#[test]
fn memory_of_orders_does_not_grow_with_the_records() {
    use tfseek::order::{Component, LastBatch, MixSpec, Order, RankShare, Spec, State};
    let fingerprint = "99aa06d3014798d86001c324468d497f";
    fn mixture(n: u64) -> Spec {
        let component = |weight, records| Component::new(weight, Spec::Global).over(records);
        Spec::Mix(MixSpec::new(vec![component(5, 0..n / 2), component(3, n / 2..n)]))
    }
    let run = |spec: &Spec, n: u64, at: u64| {
        let order = Order::new(spec, n, 1, 2).unwrap();
        let saved = State::new(&order, at, fingerprint).unwrap().to_json();
        let state = State::from_json(&saved).unwrap();
        let again = state.resume(spec, n, fingerprint).unwrap();
        let share = RankShare::new(n, 64, 3, 4, LastBatch::Pad).unwrap().starting_at(state.position).unwrap();
        let samples = again.samples(share.step(0).unwrap()).unwrap();
        assert_eq!(samples[0].record, order.get(at + 48).unwrap());
        assert!(order.rows_of(samples[0].record, &share).unwrap().iter().any(|row| row.row == 0));
    };
    for spec in [|_| Spec::Sequential, |_| Spec::Global, |_| Spec::Block { block: 16, window: 8 }, mixture]
        as [fn(u64) -> Spec; 4]
    {
        let held = |n: u64, at: u64| alloc::most_held(usize::MAX, || run(&spec(n), n, at)).1;
        let (few, many) = (held(1_000, 500), held(1_000_000_000, 500_000_000));
        // The JSON contains longer numbers; nothing else differs.
        assert!(many < 16_384 && many <= few + 512, "{many} bytes, and {few} for a thousand");
    }
}

/// The counter works; otherwise all tests above would always pass.
#[test]
fn allocations_are_counted() {
    let (text, asked) = alloc::during(|| "x".repeat(100));
    assert_eq!((text.len(), asked.times, asked.bytes), (100, 1, 100));
    assert!(std::panic::catch_unwind(|| alloc::none(|| vec![0u8; 3])).is_err());
}

/// Returns a schema with every kind of column for every type.
fn columns(sequence: bool) -> Schema {
    let mut builder = if sequence { Schema::sequence_example() } else { Schema::example() };
    for dtype in shaped::DTYPES {
        let ragged = |values: String, partitions: Vec<Partition>| FeatureSpec::Ragged {
            dtype,
            value_key: Some(values),
            partitions,
            row_splits_dtype: if dtype == DType::Int64 { SplitsDType::Int64 } else { SplitsDType::Int32 },
            validate: false,
        };
        let key = |what: &str| format!("{dtype} {what}");
        let partitions = || {
            let (outer, inner) = (Partition::RowSplits(key("splits")), Partition::RowLengths(key("lengths")));
            vec![outer, inner, Partition::UniformRowLength(2)]
        };
        builder = builder
            .feature(key("fixed"), FeatureSpec::fixed_len(&[2, 2], dtype))
            .feature(key("optional"), FeatureSpec::optional(dtype))
            .feature(key("varlen"), FeatureSpec::var_len(dtype))
            .feature(key("ragged"), ragged(key("ragged"), vec![]))
            .feature(key("partitions"), ragged(key("values"), partitions()))
            .feature(key("row ids"), ragged(key("more"), vec![Partition::ValueRowIds(key("ids"))]));
        if sequence {
            builder = builder
                .feature_list(key("steps"), FeatureSpec::fixed_len_sequence(&[2], dtype))
                .feature_list(key("varlen"), FeatureSpec::var_len(dtype))
                .feature_list(key("ragged"), ragged(key("ragged"), vec![]))
                .feature_list(key("partitions"), ragged(key("values"), partitions()));
        } else {
            let sparse = FeatureSpec::Sparse {
                index_keys: vec![key("i"), key("j")],
                value_key: key("entries"),
                dtype,
                size: vec![100, 3],
                already_sorted: false,
            };
            builder = builder
                .feature(key("sequence"), FeatureSpec::fixed_len_sequence(&[3], dtype))
                .feature(key("sparse"), sparse);
        }
    }
    for (dtype, first) in
        [(TensorDType::UInt8, Some(5)), (TensorDType::Float16, None), (TensorDType::Complex128, None)]
    {
        let shape = [first, Some(2)];
        builder = builder
            .feature(format!("raw {dtype}"), FeatureSpec::raw(&shape, dtype))
            .feature(format!("tensor {dtype}"), FeatureSpec::Tensor { dtype, shape: shape.to_vec() });
    }
    builder.build().unwrap()
}

/// Number of warm-up parses and number of counted parses per parser. A parser that cannot predict its records
/// learns again after 2, 8, 32 and 128 blocks, then after 512.
const WARM: usize = 200;
const COUNTED: usize = 48;

/// Parses the batches in turn and keeps the last `kept` results alive.
fn check_steady_state<R: Row>(parser: &BatchParser, batches: &[Vec<R>], kept: usize, what: &str) {
    let mut ring: std::collections::VecDeque<Batch> = std::collections::VecDeque::with_capacity(kept + 1);
    let mut parse = |k: usize| {
        if ring.len() > kept.saturating_sub(1) {
            ring.pop_front();
        }
        let batch = parser.parse(&batches[k % batches.len()]).unwrap();
        if kept > 0 {
            ring.push_back(batch);
        }
    };
    (0..WARM).for_each(&mut parse);
    for k in WARM..WARM + COUNTED {
        let ((), asked) = alloc::during(|| parse(k));
        assert_eq!((asked.times, asked.bytes), (0, 0), "{what}, {kept} kept, parse {k}");
    }
}

/// After a warm-up, batches reuse the buffers of earlier batches.
#[test]
fn warm_parsers_do_not_allocate() {
    for sequence in [false, true] {
        let schema = columns(sequence);
        for (odd, own_order) in [(0, false), (0, true), (20, true)] {
            let mut rng = Rng::new(7);
            let style = shaped::Style { odd, own_order, ..Default::default() };
            let payloads: Vec<Vec<Vec<u8>>> = [64, 10, 65, 130, 1]
                .map(|n| {
                    let payload = |_| loop {
                        let payload = shaped::payload(&mut rng, &schema, style);
                        // Unknown fields in map entries and too deeply nested groups may be refused.
                        if BatchParser::new(&schema).parse(&[&payload[..]]).is_ok() {
                            return payload;
                        }
                    };
                    (0..n).map(payload).collect()
                })
                .into();
            let regions: Vec<Vec<Region>> = payloads
                .iter()
                .map(|batch| {
                    let region = Region::new(batch.concat());
                    let mut at = 0;
                    let rows = batch.iter().map(|payload| {
                        at += payload.len();
                        region.slice(at - payload.len()..at).unwrap()
                    });
                    rows.collect()
                })
                .collect();
            let what = format!("sequence {sequence}, odd {odd}, random key order {own_order}");
            for kept in [0, 4] {
                let parser = BatchParser::new(&schema);
                check_steady_state(&parser, &regions, kept, &format!("{what}, spans"));
                let parser = BatchParser::new(&schema);
                check_steady_state(&parser, &payloads, kept, &format!("{what}, slices"));
                let parser = BatchParser::new(&schema).contiguous_bytes(true).presence(true);
                check_steady_state(&parser, &regions, kept, &format!("{what}, contiguous"));
            }
        }
    }
}
