//! The Rust of docs/cookbook.md: one function per recipe.

use crate::Result;
use tfseek::{DType, Dataset, ExampleBuilder, FeatureSpec, Schema, Shuffle};

/// Runs the recipes in the order of the page.
pub(crate) fn run() -> Result {
    let ds = Dataset::open("data/observations-*.tfrecord")?;
    look_at_a_file(&ds)?;
    read_records_by_number(&ds)?;
    select_records_by_a_filter(&ds)?;
    write_tfrecord_files()?;
    train_in_shuffled_epochs(&ds)?;
    Ok(())
}

fn look_at_a_file(ds: &Dataset) -> Result {
    let mut buf = Vec::new();
    for (name, feature) in ds.read(0, &mut buf)?.example().features()?.iter() {
        println!("{name}: {feature:?}");
    }
    assert_eq!(ds.len(), 10_000);
    Ok(())
}

fn read_records_by_number(ds: &Dataset) -> Result {
    let mut buf = Vec::new();
    let record = ds.read(1234, &mut buf)?;
    assert_eq!(record.example().bytes("feature2")?.first(), Some(&b"chicken"[..]));
    let mut classes = Vec::new();
    ds.read_many(&[900, 3, 640], |record| {
        classes.extend(record.example().int64("feature1")?.iter());
        Ok(())
    })?;
    assert_eq!(classes, [0, 2, 0]);
    Ok(())
}

fn select_records_by_a_filter(ds: &Dataset) -> Result {
    let (goats, _) = ds.select(&r#"feature2 == "goat" and feature0 == 1"#.parse()?, &Default::default())?;
    assert_eq!(goats.len(), 960);
    assert_eq!(goats.iter().take(5).collect::<Vec<_>>(), [7, 11, 32, 42, 46]);
    Ok(())
}

fn write_tfrecord_files() -> Result {
    let mut writer = tfseek::writer::WriterOptions::default().create_shards("posts", ".tfrecord", 2)?;
    for i in 0..100 {
        let example = ExampleBuilder::new().int64("label", [i % 2]).int64("tokens", 0..i % 4);
        writer.write(&example.bytes("image", [[i as u8; 12]]).encode()?)?;
    }
    writer.close()?;
    Ok(())
}

fn train_in_shuffled_epochs(ds: &Dataset) -> Result {
    let label = FeatureSpec::fixed_len(&[], DType::Int64);
    let schema = Schema::example().feature("feature1", label).build()?;
    let mut loader = ds.loader(&schema).batch_size(256).shuffle(Shuffle::Global).seed(42).build()?;
    for _epoch in 0..2 {
        for step in loader.by_ref() {
            let step = step?;
            let labels = step.batch().unwrap().int64("feature1")?;
            assert!(labels.len() <= 256);
        }
    }
    Ok(())
}
