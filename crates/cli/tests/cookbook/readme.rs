//! The Rust of README.md.

use crate::Result;

/// Runs the block of the page.
#[allow(unsafe_code, reason = "the page shows memory maps")]
pub(crate) fn run() -> Result {
    let mut rows = 0;
    let mut train = |batch: &tfseek::Batch| rows += batch.rows();

    use tfseek::{Dataset, Mapped, Schema, Shuffle};

    let ds = Dataset::open("data/observations-*.tfrecord")?; // safe: positional reads
    let mut buf = Vec::new();
    let label = ds.read(1234, &mut buf)?.example().int64("feature1")?.first();

    // SAFETY: these shards are written once.
    let mapped = unsafe { Mapped::open("data/observations-*.tfrecord") }?; // memory maps: no copy, no allocation
    let values = mapped.get(1234)?.example().float("feature3")?;

    let schema = Schema::from_json(&std::fs::read_to_string("schema.json")?)?; // made by `tfseek schema --json`
    let mut loader = ds.loader(&schema).batch_size(256).order(Shuffle::Global).seed(42).build()?;
    for step in loader.by_ref() {
        train(step?.batch().unwrap());
    }
    let saved = loader.state()?.to_json();

    assert_eq!((label, values.len(), rows), (Some(2), 1, 10_000));
    assert!(saved.starts_with('{'));
    Ok(())
}
