//! docs/shuffling.md: its tables equal the measurements and agree with theory, and its snippets are part of
//! this file and run.

use crate::deff;
use std::sync::LazyLock;
use tfseek::loader::{Mix, Shuffle};
use tfseek::order::{Buckets, Component, LastBatch, MixSpec, RankShare, Spec, State, augmentation_seed};
use tfseek::{Batch, DType, Dataset, DatasetOptions, ExampleBuilder, FeatureSpec, IndexMode, Order, Schema};
use tfseek_testkit::shuffles::*;

/// The measurements, made once.
static MEASURED: LazyLock<Vec<(Way, Mixing)>> =
    LazyLock::new(|| ways().into_iter().map(|way| (way.clone(), way.mixing())).collect());

const PAGE: &str = include_str!("../../docs/shuffling.md");

type Result<T = (), E = Box<dyn std::error::Error>> = std::result::Result<T, E>;

#[test]
fn the_tables_equal_the_measurements() {
    let rows = MEASURED.iter().map(|(way, mixing)| quality(way, mixing));
    for (head, rows) in [
        (QUALITY, rows.collect::<Vec<_>>()),
        (PRICE, MEASURED.iter().filter_map(|(way, _)| price(way)).collect()),
    ] {
        let table = format!("{head}\n{}\n\n", rows.join("\n"));
        assert!(PAGE.contains(&table), "not in docs/shuffling.md:\n{table}");
    }

    // The measurements support the statements of the page.
    let of = |way: &Way| MEASURED.iter().find(|(other, _)| other == way).unwrap().1;
    let (global, block) = (of(&Way::Order(Spec::Global)), of(&Way::Order(block())));
    let drawn = of(&Way::Buffer(RECORDS as usize));
    assert!((global.deff - drawn.deff).abs() < 0.01 && (global.classes - drawn.classes).abs() < 0.5);
    assert!((global.met_again - 1.0).abs() < 0.02 && (global.moved - 1.0).abs() < 0.01);
    for size in [1_000, 10_000, 20_480, 100_000] {
        let (plain, mixed) = (of(&Way::Buffer(size)), of(&Way::Interleaved(size)));
        assert!(plain.deff > mixed.deff && mixed.deff > 1.5 * block.deff && block.deff > global.deff);
        assert!(plain.classes < mixed.classes && mixed.classes < block.classes);
        assert!(plain.met_again > mixed.met_again && plain.moved < 0.3);
    }
}

/// Returns the probability that two records of a batch have the same class, in the middle of an epoch. A
/// record stays in a buffer of K records for an exponentially distributed time with a mean of K outputs. Two
/// records of a batch are therefore at source positions with a distance d of density e^(-d/K)/K. `turns`
/// classes of L records each are interleaved there.
fn same_class_probability(size: usize, turns: u64) -> f64 {
    let a = (turns * RECORDS / CLASSES) as f64 / size as f64;
    (1.0 - (1.0 - (-a).exp()) / a) / turns as f64
}

#[test]
fn design_effects_agree_with_theory() {
    let chance = 1.0 / CLASSES as f64;
    for (way, mixing) in MEASURED.iter() {
        let (want, tolerance) = match way {
            Way::Buffer(size) if *size as u64 == RECORDS => (1.0, 0.01),
            Way::Buffer(size) => (
                1.0 + (BATCH - 1) as f64 * (same_class_probability(*size, 1) - chance) / (1.0 - chance),
                0.05,
            ),
            Way::Interleaved(size) => {
                let alike = same_class_probability(*size, AT_ONCE as u64);
                (1.0 + (BATCH - 1) as f64 * (alike - chance) / (1.0 - chance), 0.05)
            }
            // All records of a block are equivalent: each has W b - 1 others in its window, of which b - 1
            // are of its block.
            Way::Order(Spec::Block { block, window }) => {
                assert!(mixing.deff < deff(1.0, BATCH, *window));
                (1.0 + ((BATCH - 1) * (block - 1)) as f64 / (window * block - 1) as f64, 0.01)
            }
            Way::Order(Spec::Global) => (deff(0.0, BATCH, 1), 0.01),
            Way::Order(_) => continue,
        };
        let found = mixing.deff;
        println!("{}: deff {found:.3}, by theory {want:.3}", way.name());
        assert!((found / want - 1.0).abs() < tolerance, "{}: {found} and {want}", way.name());
    }
}

#[test]
fn the_snippets_equal_this_file() {
    let lines = |text: &'static str| text.lines().map(str::trim).collect::<Vec<_>>();
    let here = lines(include_str!("shuffling.rs"));
    let snippets: Vec<&str> =
        PAGE.split("```rust\n").skip(1).map(|rest| rest.split("```").next().unwrap()).collect();
    assert!(snippets.len() >= 8);
    for snippet in snippets {
        let snippet_lines = lines(snippet);
        assert!(here.windows(snippet_lines.len()).any(|some| some == snippet_lines), "not run:\n{snippet}");
    }
}

/// Writes 1,000 records of ten classes.
fn data() -> Result<(tempfile::TempDir, Dataset, Schema)> {
    let dir = tempfile::tempdir()?;
    let path = dir.path().join("train.tfrecord");
    let mut writer = tfseek::Writer::create(&path)?;
    for i in 0..1000 {
        writer.write(&ExampleBuilder::new().int64("label", [i / 100]).encode()?)?;
    }
    writer.close()?;
    let ds = DatasetOptions::new().index(IndexMode::Memory).open(&path)?;
    let schema = Schema::example().feature("label", FeatureSpec::fixed_len(&[], DType::Int64)).build()?;
    Ok((dir, ds, schema))
}

fn labels(batch: &Batch) -> &[i64] {
    batch.int64("label").unwrap()
}

#[test]
fn an_epoch_and_a_resume() -> Result {
    let (_dir, ds, schema) = data()?;
    let mut seen = Vec::new();
    let mut train = |batch: &Batch| seen.extend_from_slice(labels(batch));

    let mut loader = ds.loader(&schema).batch_size(256).shuffle(Shuffle::Global).seed(42).build()?;
    for epoch in 0..3 {
        for step in loader.by_ref() {
            train(step?.batch().unwrap());
        }
        println!("epoch {epoch} is over");
    }

    assert_eq!(seen.len(), 3000);
    loader.next().unwrap()?;

    let saved = loader.state()?.to_json(); // save it in the checkpoint with the model weights

    assert!(saved.len() < 1024 && saved.contains(r#""algo":"prp1""#));
    let next = loader.next().unwrap()?.ids.to_vec();

    let mut loader = ds.loader(&schema).batch_size(256).shuffle(Shuffle::Global).seed(42).build()?;
    loader.seek(&State::from_json(&saved)?)?;

    assert_eq!(loader.next().unwrap()?.ids, next);

    // The same state resumes with another number of ranks.
    let mut found = Vec::new();
    for ranks in [4, 8] {
        found.clear();
        for rank in 0..ranks {
            let mut loader = ds
                .loader(&schema)
                .global_batch_size(256)
                .rank(rank, ranks) // 5 of 8 before, 3 of 4 now
                .shuffle(Shuffle::Global)
                .seed(42)
                .build()?;
            loader.seek(&State::from_json(&saved)?)?;

            found.extend_from_slice(&loader.next().unwrap()?.ids);
        }
        assert_eq!(found, next, "{ranks}");
    }
    Ok(())
}

#[test]
fn the_end_of_an_epoch() -> Result {
    let (_dir, ds, schema) = data()?;
    let (rank, ranks) = (3, 4);
    let mut counted = 0;
    let mut count = |_: &Batch, real: &[bool]| counted += real.iter().filter(|real| **real).count();

    let options =
        ds.loader(&schema).global_batch_size(256).rank(rank, ranks).shuffle(Shuffle::Global).seed(42);
    for step in options.last_batch(LastBatch::Pad).build()? {
        let step = step?;
        let real: Vec<bool> = step.samples().map(|sample| !sample.padding).collect();
        count(step.batch().unwrap(), &real);
    }

    // 1,000 are 3 steps of 256 and 232: the last rank has 40 of the last one's.
    assert_eq!(counted, 3 * 64 + 40);
    Ok(())
}

#[test]
fn some_of_the_records() -> Result {
    let (_dir, ds, schema) = data()?;

    let some = ds.select(&"label in 3, 5..7".parse()?, &Default::default())?.0;
    let loader = ds.loader(&schema).batch_size(100).shuffle(Shuffle::Global).seed(42).select(some).build()?;

    let mut found = Vec::new();
    for step in loader {
        found.extend_from_slice(labels(step?.batch().unwrap()));
    }
    assert!(found.len() == 300 && found.iter().all(|label| [3, 5, 6].contains(label)));

    let label = ds.column("label", &Default::default())?;
    let loader = ds.loader(&schema).batch_size(20).seed(42).balance(&label)?.build()?;

    for step in loader.take(10) {
        let step = step?;
        let labels = labels(step.batch().unwrap());
        assert!((0..10).all(|class| labels.iter().filter(|label| **label == class).count() == 2));
    }

    let web = 900;

    let spec = Spec::Mix(MixSpec::new(vec![
        Component::new(3, Spec::Global).over(0..web), // three samples of four
        Component::new(1, Spec::Global).over(web..ds.len()),
    ]));
    let loader = ds.loader(&schema).batch_size(256).shuffle(Shuffle::Order(spec)).seed(42).build()?;

    for step in loader.take(3) {
        assert_eq!(step?.ids.iter().filter(|id| **id < web).count(), 192);
    }
    Ok(())
}

#[test]
fn records_of_like_length() -> Result {
    let (_dir, ds, schema) = data()?;
    let (mut seen, ranks) = (0, 4);
    for rank in 0..ranks {
        let lengths = (0..ds.len()).map(|i| i % 100);

        let buckets = Buckets::new(lengths, [16, 32, 64])?.tokens_per_batch(8192, ranks); // or .batch_sizes([512, 256, 128, 64])
        let loader = ds
            .loader(&schema)
            .buckets(buckets)
            .shuffle(Shuffle::Global)
            .seed(42)
            .rank(rank, ranks)
            .build()?;

        for step in loader {
            let step = step?;
            assert!(ranks * step.ids.len() as u64 * step.lengths.unwrap().longest <= 8192);
            seen += step.samples().filter(|sample| !sample.padding).count();
        }
    }
    assert_eq!(seen, 1000);
    Ok(())
}

#[test]
fn several_data_sets() -> Result {
    let (_dir, web, schema) = data()?;
    let (_other, books, _) = data()?;

    let mix = Mix::new([(web.loader(&schema), 7), (books.loader(&schema), 3)]);
    let loader = mix.loader()?.batch_size(200).shuffle(Shuffle::Global).seed(42).build()?;

    for step in loader.take(3) {
        assert_eq!(step?.ids.iter().filter(|id| **id < web.len()).count(), 140);
    }
    Ok(())
}

#[test]
fn seeds_of_samples() -> Result {
    let (_dir, ds, schema) = data()?;
    let mut loader = ds.loader(&schema).batch_size(256).shuffle(Shuffle::Global).seed(42).build()?;
    let step = loader.next().unwrap()?;
    let mut seeds = Vec::new();
    let mut augment = |_: &Batch, row: usize, seed: u64| seeds.push((row, seed));

    for (row, sample) in step.samples().enumerate() {
        let seed = augmentation_seed(42, sample.epoch, sample.position);
        augment(step.batch().unwrap(), row, seed);
    }

    assert_eq!(seeds[9], (9, augmentation_seed(42, 0, 9)));
    Ok(())
}

#[test]
fn a_block_order_says_what_it_costs() -> Result {
    let (_dir, ds, schema) = data()?;

    let loader = ds.loader(&schema).batch_size(256).shuffle(Shuffle::Block).seed(42).build()?;
    println!("{}", loader.describe());
    loader.warnings().iter().for_each(|warning| eprintln!("{warning}"));

    // A single window would hold all records, so the order is global.
    assert!(loader.describe().contains("global") && loader.warnings().is_empty());
    let described = Order::new(&block(), RECORDS, 42, 0)?.describe(Some(BATCH));
    assert!(PAGE.contains(&described), "{described}");
    Ok(())
}

#[test]
fn a_batch_reproduced() -> Result {
    let ds_len = 100_000_000;

    let order = Order::new(&Spec::Global, ds_len, 42, 3)?; // epoch 3 of a run with seed 42
    let share = RankShare::new(order.len(), 256, 5, 8, LastBatch::Pad)?;
    let samples = order.samples(share.step(18_234).unwrap())?; // the samples of rank 5 of 8 in step 18,234
    let rows = order.rows_of(123_456, &share)?; // the steps, ranks and rows of record 123,456

    assert_eq!((samples.len(), rows.len()), (32, 1));
    assert_eq!(samples[0].position, 18_234 * 256 + 5 * 32);
    Ok(())
}
