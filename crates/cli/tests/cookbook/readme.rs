//! The Rust of README.md.

use crate::Result;

/// Runs the block of the page.
pub(crate) fn run() -> Result {
    let mut rows = 0;
    let mut train = |batch: &tfseek::Batch| rows += batch.rows();

    use tfseek::{Dataset, Schema, Shuffle};

    let ds = Dataset::open("data/observations-*.tfrecord")?;
    let label = ds.read(1234, &mut Vec::new())?.example().int64("feature1")?.first();
    let schema = Schema::from_json(&std::fs::read_to_string("schema.json")?)?; // made by `tfseek schema --json`
    let loader = ds.loader(&schema).batch_size(256).shuffle(Shuffle::Global).seed(42).build()?;
    for step in loader {
        train(step?.batch().unwrap());
    }

    assert_eq!((label, rows), (Some(2), 10_000));
    Ok(())
}
