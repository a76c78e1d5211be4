//! Mixes of several data sets: their batches, states and refusals.

use crate::{files, open, options, schema, shards};
use tfseek::batch::BatchParser;
use tfseek::frame::put_record;
use tfseek::io::Region;
use tfseek::loader::{Mix, Shuffle, Step};
use tfseek::order::{LastBatch, MixStop, Order, Subset};
use tfseek::schema::Partition;
use tfseek::tensor::TensorDType;
use tfseek::{
    DType, Damage, Dataset, ErrorKind, ExampleBuilder, FeatureSpec, Loader, LoaderOptions, Schema, Verify,
};

const SIZES: [u64; 3] = [70, 130, 41];

/// Three datasets: in memory, for positional reads, and in memory.
fn sources(dir: &std::path::Path) -> [Dataset; 3] {
    let [a, b, c] = SIZES;
    [open(shards(&[a / 2, a - a / 2])), files(dir, &shards(&[b])), open(shards(&[0, c]))]
}

fn mix(sources: &[Dataset], weights: [u64; 3]) -> Mix {
    Mix::new(sources.iter().map(|ds| ds.loader(&schema())).zip(weights))
}

fn values(step: &Step) -> Vec<i64> {
    step.batch().unwrap().int64("i").unwrap().to_vec()
}

/// The number of a record in its own dataset.
fn own(id: u64) -> i64 {
    let [a, b, _] = SIZES;
    (if id < a {
        id
    } else if id < a + b {
        id - a
    } else {
        id - a - b
    }) as i64
}

fn check(step: &Step) {
    assert_eq!(values(step), step.ids.iter().map(|id| own(*id)).collect::<Vec<_>>());
}

#[test]
fn a_mix_yields_its_order_for_every_kind_of_source_thread_and_rank() {
    let dir = tempfile::tempdir().unwrap();
    let sources = sources(dir.path());
    for shuffle in [Shuffle::None, Shuffle::Global, Shuffle::Block] {
        for (stop, whole) in [
            (MixStop::Never, false),
            (MixStop::First, false),
            (MixStop::All, false),
            (MixStop::Never, true),
            (MixStop::First, true),
        ] {
            let loader = |rank, ranks, threads| {
                let mix = mix(&sources, [5, 3, 2]).stop(stop).whole_batches(whole).loader().unwrap();
                let mix = mix.global_batch_size(12).rank(rank, ranks).threads(threads);
                mix.shuffle(shuffle.clone()).seed(7).build().unwrap()
            };
            let mut one = loader(0, 1, 0);
            let len = one.cursor().steps_left().unwrap();
            let order = one.cursor().order().clone();
            if stop == MixStop::Never {
                assert_eq!(
                    order.len(),
                    241_u64.div_ceil(if whole { 12 } else { 1 }) * if whole { 12 } else { 1 }
                );
            }
            let mut ranks: Vec<Loader> = (0..3).map(|rank| loader(rank, 3, 2)).collect();
            for epoch in 0..3 {
                let steps = one.cursor().steps_left().unwrap();
                assert!(steps == len || steps + 1 == len);
                for _ in 0..steps {
                    let step = one.next().unwrap().unwrap();
                    check(&step);
                    let records: Vec<u64> = step
                        .samples()
                        .map(|sample| order.at_epoch(sample.epoch).unwrap().get(sample.position).unwrap())
                        .collect();
                    assert_eq!(step.ids, records);
                    if whole {
                        let [a, b, _] = SIZES;
                        let source = |id: u64| u8::from(id >= a) + u8::from(id >= a + b);
                        assert!(step.ids.iter().all(|id| source(*id) == source(step.ids[0])));
                    }
                    let parts: Vec<Step> =
                        ranks.iter_mut().map(|rank| rank.next().unwrap().unwrap()).collect();
                    parts.iter().for_each(check);
                    let ids =
                        parts.iter().flat_map(|part| part.samples().filter(|s| !s.padding).map(|s| s.record));
                    assert_eq!(ids.collect::<Vec<_>>(), step.ids);
                    let states: Vec<String> =
                        ranks.iter().map(|rank| rank.state().unwrap().to_json()).collect();
                    assert!(states.iter().all(|state| *state == one.state().unwrap().to_json()));
                    assert!(states[0].len() < 1024);
                }
                assert!(
                    one.next().is_none() && ranks.iter_mut().all(|rank| rank.next().is_none()),
                    "{epoch}"
                );
            }
        }
    }
}

/// Examples with a feature of each kind, under keys with a prefix.
fn every_kind(prefix: &str, records: std::ops::Range<u64>) -> Dataset {
    let mut bytes = Vec::new();
    for i in records {
        let key = |name: &str| format!("{prefix}{name}");
        let mut example = ExampleBuilder::new()
            .int64(key("i"), [i as i64])
            .float(key("x"), [i as f32, 0.5])
            .bytes(key("s"), [format!("s{i}"), "t".repeat((i % 4) as usize)])
            .int64(key("v"), (0..(i % 5) as i64).collect::<Vec<_>>())
            .bytes(key("w"), (0..i % 3).map(|k| format!("{i}-{k}")).collect::<Vec<_>>())
            .float(key("r"), (0..i % 4 * 2).map(|k| k as f32).collect::<Vec<_>>())
            .int64(key("at"), (0..i % 3).map(|k| (2 * k) as i64).collect::<Vec<_>>())
            .float(key("sv"), (0..i % 3).map(|k| (i + k) as f32).collect::<Vec<_>>())
            .int64(key("p"), (0..(i % 6) as i64).collect::<Vec<_>>())
            .bytes(key("a"), [vec![i as u8; 4]])
            .bytes(key("z"), [vec![i as u8; 16 * (i % 3) as usize]])
            .bytes(key("q"), (0..i % 2).map(|k| format!("q{k}")).collect::<Vec<_>>());
        if !i.is_multiple_of(3) {
            example = example.int64(key("o"), [i as i64 * 10]).int64(key("d"), [3]);
        }
        put_record(&mut bytes, &example.encode().unwrap()).unwrap();
    }
    open(vec![bytes])
}

/// The schema of [`every_kind`]. `value`: a default that no record of the first dataset needs in the second.
fn kinds(prefix: &str, defaults: [i64; 2]) -> Schema {
    let key = |name: &str| format!("{prefix}{name}");
    let ragged = FeatureSpec::Ragged {
        dtype: DType::Float32,
        value_key: None,
        partitions: vec![Partition::UniformRowLength(2)],
        row_splits_dtype: Default::default(),
        validate: false,
    };
    let sparse = FeatureSpec::Sparse {
        index_keys: vec![key("at")],
        value_key: key("sv"),
        dtype: DType::Float32,
        size: vec![10],
        already_sorted: false,
    };
    let padded =
        |dtype| FeatureSpec::FixedLenSequence { shape: vec![], dtype, allow_missing: true, default: None };
    let array = |dtype, size| FeatureSpec::raw(&[size], dtype);
    Schema::example()
        .feature(key("i"), FeatureSpec::fixed_len(&[], DType::Int64))
        .feature(key("x"), FeatureSpec::fixed_len(&[2], DType::Float32))
        .feature(key("s"), FeatureSpec::fixed_len(&[2], DType::Bytes))
        .feature(key("v"), FeatureSpec::var_len(DType::Int64))
        .feature(key("w"), FeatureSpec::ragged(DType::Bytes))
        .feature(key("r"), ragged)
        .feature(key("sp"), sparse)
        .feature(key("p"), padded(DType::Int64).with_default([defaults[0]]))
        .feature(key("q"), padded(DType::Bytes).with_default(["pad"]))
        .feature(key("a"), array(TensorDType::UInt16, Some(2)))
        .feature(key("z"), array(TensorDType::Complex64, None))
        .feature(key("o"), FeatureSpec::optional(DType::Int64))
        .feature(key("d"), FeatureSpec::fixed_len(&[], DType::Int64).with_default([defaults[1]]))
        .build()
        .unwrap()
}

fn names(prefix: &'static str, schema: &Schema) -> Vec<(String, String)> {
    schema.features().keys().map(|key| (key.clone(), key.strip_prefix(prefix).unwrap().to_owned())).collect()
}

fn renamed(ds: &Dataset, prefix: &'static str, schema: &Schema, contiguous: bool) -> LoaderOptions {
    let names = names(prefix, schema);
    let parser = BatchParser::new(schema).contiguous_bytes(contiguous);
    ds.loader(schema).parser(parser.rename(names.iter().map(|(key, name)| (&**key, &**name))).unwrap())
}

#[test]
fn rows_of_different_schemas_are_those_of_equal_ones() {
    let plain = kinds("", [-1, 5]);
    let other = kinds("other/", [-1, 5]);
    let (a, b) = (every_kind("", 0..60), every_kind("", 100..137));
    let b_renamed = every_kind("other/", 100..137);
    for contiguous in [false, true] {
        let built = |mix: Mix| {
            let mix = mix.loader().unwrap().batch_size(11).shuffle(Shuffle::Global).seed(3);
            mix.threads(2).build().unwrap()
        };
        let mut equal = built(Mix::new([
            (renamed(&a, "", &plain, contiguous), 2),
            (renamed(&b, "", &plain, contiguous), 1),
        ]));
        let mut different = built(Mix::new([
            (renamed(&a, "", &plain, contiguous), 2),
            (renamed(&b_renamed, "other/", &other, contiguous), 1),
        ]));
        for _ in 0..40 {
            // Ends of epochs come at the same steps.
            match (equal.next(), different.next()) {
                (Some(one), Some(two)) => {
                    let (one, two) = (one.unwrap(), two.unwrap());
                    assert_eq!(one.ids, two.ids);
                    assert_eq!(format!("{:?}", one.batch().unwrap()), format!("{:?}", two.batch().unwrap()));
                    assert_eq!(two.batch().unwrap().bytes("s").unwrap().is_borrowed(), !contiguous);
                }
                (one, two) => assert!(one.is_none() && two.is_none()),
            }
        }
    }
    // Defaults are those of the source of a row.
    let thirteen = kinds("other/", [-1, 13]);
    let mix =
        Mix::new([(renamed(&a, "", &plain, false), 2), (renamed(&b_renamed, "other/", &thirteen, false), 1)]);
    let mut loader = mix.loader().unwrap().batch_size(24).build().unwrap();
    let step = loader.next().unwrap().unwrap();
    let defaults = step.batch().unwrap().int64("d").unwrap().to_vec();
    for (id, d) in step.ids.iter().zip(defaults) {
        let (i, default) = if *id < 60 { (*id, 5) } else { (id - 60 + 100, 13) };
        assert_eq!(d, if i.is_multiple_of(3) { default } else { 3 });
    }
}

#[test]
fn whole_batches_may_have_other_columns() {
    let (a, b) = (every_kind("", 0..60), every_kind("b/", 0..30));
    let mix = Mix::new([(a.loader(&kinds("", [0, 0])), 2), (b.loader(&kinds("b/", [0, 0])), 1)]);
    let mut loader = mix.whole_batches(true).loader().unwrap().batch_size(8).seed(1).build().unwrap();
    assert_eq!(loader.cursor().steps_left().unwrap(), 90_u64.div_ceil(8));
    let mut counts = [0, 0];
    for _ in 0..9 {
        let step = loader.next().unwrap().unwrap();
        let source = usize::from(step.ids[0] >= 60);
        let name = ["i", "b/i"][source];
        let numbers = step.batch().unwrap().int64(name).unwrap().to_vec();
        assert_eq!(numbers, step.ids.iter().map(|id| (id - 60 * source as u64) as i64).collect::<Vec<_>>());
        counts[source] += 1;
    }
    assert_eq!(counts, [6, 3]);
}

#[test]
fn unparsed_and_selected_records_are_mixed() {
    let dir = tempfile::tempdir().unwrap();
    let [a, b, _] = sources(dir.path());
    let odd = Subset::from_fn(130, |i| i % 2 == 1);
    let mix = Mix::new([(a.record_loader(), 1), (b.record_loader().select(odd), 1)]);
    let mut loader = mix.loader().unwrap().batch_size(10).build().unwrap();
    assert_eq!(loader.cursor().order().len(), 70 + 65);
    let step = loader.next().unwrap().unwrap();
    for (record, id) in step.records().unwrap().zip(&step.ids) {
        assert!(*id < 70 || (id - 70) % 2 == 1);
        let example = record.unwrap().example().int64("i").unwrap().first();
        assert_eq!(example, Some(own(*id)));
    }
    assert_eq!(loader.state().unwrap().to_json().matches("\"n\":200").count(), 1);
}

#[test]
fn bad_records_are_errors_in_their_batch_or_are_skipped() {
    for other_schema in [false, true] {
        let (a, b) = (every_kind("", 0..40), every_kind("b/", 0..40));
        // Record 7 of the second source has no label.
        let mut bytes = Vec::new();
        for i in 0..40 {
            let name = if i == 7 {
                "none"
            } else if other_schema {
                "b/i"
            } else {
                "i"
            };
            put_record(&mut bytes, &ExampleBuilder::new().int64(name, [i]).encode().unwrap()).unwrap();
        }
        let bad = open(vec![bytes]);
        let label = |key: &str| {
            Schema::example().feature(key, FeatureSpec::fixed_len(&[], DType::Int64)).build().unwrap()
        };
        let second = if other_schema {
            let parser = BatchParser::new(&label("b/i")).rename([("b/i", "i")]).unwrap();
            bad.loader(&label("b/i")).parser(parser)
        } else {
            bad.loader(&label("i"))
        };
        let mix = Mix::new([(a.loader(&label("i")), 1), (second, 1)]).loader().unwrap().batch_size(20);
        let mut raising = mix.clone().threads(2).build().unwrap();
        let e = raising.next().unwrap().unwrap_err();
        assert!(e.to_string().contains("i\""), "{e}");
        let row = e.location().row.unwrap();
        let mut skipping = mix.damage(Damage::Skip).threads(2).build().unwrap();
        let step = skipping.next().unwrap().unwrap();
        assert_eq!(step.ids.len(), 20);
        assert_eq!(step.skipped.iter().map(|(id, _)| *id).collect::<Vec<_>>(), [47]);
        let order: Order = skipping.cursor().order().clone();
        assert_eq!(order.get(row as u64).unwrap(), 47);
        let numbers: Vec<i64> = step.ids.iter().map(|id| (id % 40) as i64).collect();
        assert_eq!(step.batch().unwrap().int64("i").unwrap(), numbers);
        assert!(step.samples().all(|sample| sample.record != 47));
        assert_eq!(step.samples().map(|sample| sample.padding).position(|padding| padding), Some(row));
        assert_eq!(raising.next().unwrap().unwrap().ids, skipping.next().unwrap().unwrap().ids);
        drop(b);
    }
}

#[test]
fn mixes_that_cannot_be_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let sources = sources(dir.path());
    let [a, b, c] = &sources;
    let why = |e: tfseek::Error| e.to_string();
    let spec = |mix: Mix| {
        let e = mix.loader().unwrap_err();
        assert!(matches!(e.kind(), ErrorKind::Spec(_)), "{e}");
        why(e)
    };
    let one = |spec| Schema::example().feature("i", spec).build().unwrap();
    let two = one(FeatureSpec::fixed_len(&[], DType::Int64));
    let e = spec(Mix::new([(a.loader(&schema()), 1), (b.loader(&two), 1)]));
    assert_eq!(e, "feature \"s\": invalid schema: source 1 of the mix: is not in all sources of the mix");
    for (other, words) in [
        (FeatureSpec::fixed_len(&[], DType::Float32), "the type float32, and int64 in"),
        (FeatureSpec::fixed_len(&[1], DType::Int64), "the shape [1], and [] in"),
        (FeatureSpec::ragged(DType::Int64), "the form ragged, and fixed in"),
        (FeatureSpec::optional(DType::Int64), "the form optional, and fixed in"),
    ] {
        let e = spec(Mix::new([(a.loader(&two), 1), (b.loader(&one(other)), 1)]));
        assert!(e.contains("feature \"i\"") && e.contains(words) && e.ends_with("the first source"), "{e}");
    }
    let e = spec(Mix::new([(a.loader(&two), 1), (b.record_loader(), 1)]));
    assert!(e.contains("a schema for all sources or for none"), "{e}");
    let lists =
        Schema::sequence_example().feature("i", FeatureSpec::fixed_len(&[], DType::Int64)).build().unwrap();
    let mixed = Mix::new([(a.loader(&two), 1), (b.loader(&lists), 1)]).whole_batches(true);
    assert!(spec(mixed).contains("Examples and SequenceExamples"));
    assert!(why(Mix::new([]).loader().unwrap_err()).contains("found none"));
    let batched = Mix::new([(a.loader(&two).batch_size(3), 1)]);
    assert!(why(batched.loader().unwrap_err()).contains("other options"));

    let built = |options: LoaderOptions| why(options.batch_size(4).build().unwrap_err());
    let three = || mix(&sources, [5, 3, 2]).loader().unwrap();
    assert!(built(three().last_batch(LastBatch::Pad)).contains("continuous last batch"));
    assert!(built(three().select(Subset::from_fn(10, |_| true))).contains("in the sources of a mix"));
    assert!(built(three().worker(0, 2)).contains("expected one worker"));
    let order = tfseek::order::Spec::Sequential;
    assert!(built(three().shuffle(Shuffle::Order(order))).contains("global or a block shuffle"));
    assert!(built(mix(&sources, [0, 3, 2]).loader().unwrap()).contains("weight 0 is 0"));
    assert!(built(mix(&sources, [1 << 20, 1, 1]).loader().unwrap()).contains("2^20"));
    assert!(
        built(mix(&[a.clone(), open(vec![vec![]]), c.clone()], [1, 1, 1]).loader().unwrap())
            .contains("no records")
    );

    // States of other sources, units, ends and batches.
    let state = three().batch_size(4).build().unwrap().state().unwrap();
    let e = |mix: Mix, batch| {
        let mut loader = mix.loader().unwrap().batch_size(batch).build().unwrap();
        why(loader.seek(&state).unwrap_err())
    };
    let swapped = [b.clone(), a.clone(), c.clone()];
    assert!(e(mix(&swapped, [5, 3, 2]), 4).contains("another dataset"));
    assert!(e(mix(&sources, [5, 3, 2]).stop(MixStop::All), 4).contains("stop"));
    assert!(e(mix(&sources, [5, 3, 2]).whole_batches(true), 4).contains("unit"));
    let mut six = mix(&sources, [5, 3, 2]).loader().unwrap().batch_size(6).build().unwrap();
    six.seek(&state).unwrap();
}

/// The rows of records in the first epoch, and rename errors.
#[test]
fn records_are_found_and_names_are_checked() {
    let dir = tempfile::tempdir().unwrap();
    let sources = sources(dir.path());
    let mut loader =
        mix(&sources, [5, 3, 2]).loader().unwrap().batch_size(10).shuffle(Shuffle::Global).build().unwrap();
    assert!(loader.describe().contains("241 positions in a mixture of 3 components, cycles of 10"));
    let (order, share) = (loader.cursor().order().clone(), loader.cursor().share().unwrap());
    for step in 0..10 {
        let ids = loader.next().unwrap().unwrap().ids.to_vec();
        for (row, id) in ids.iter().enumerate() {
            let rows = order.rows_of(*id, &share).unwrap();
            assert!(rows.iter().any(|at| (at.step, at.row) == (step, row as u64)));
        }
    }
    let parser = || BatchParser::new(&schema());
    assert!(parser().rename([("y", "z")]).unwrap_err().to_string().contains("not in the schema"));
    assert!(parser().rename([("i", "x")]).unwrap_err().to_string().contains("two columns"));
    assert!(parser().rename([("i", "x"), ("x", "i")]).is_ok());
    // A mapped source and one that reads header checksums only.
    let headers =
        options().verify(Verify::Header).open_regions(shards(&[5]).into_iter().map(Region::from)).unwrap();
    let mix = Mix::new([(headers.dataset().record_loader(), 1), (sources[1].record_loader(), 1)]);
    assert_eq!(mix.loader().unwrap().batch_size(4).build().unwrap().next().unwrap().unwrap().ids.len(), 4);
}
