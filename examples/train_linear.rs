//! Trains a linear model over shuffled epochs, stops, and resumes from a checkpoint. The weights are those of
//! an uninterrupted run, bit for bit.
//!
//! ```console
//! $ cargo run --release --example train_linear
//! ```
//!
//! The checkpoint consists of the weights and of the loader's state, which is a line of JSON. The resumed run
//! has other numbers of threads and of ranks, which does not change the result. Its ranks run alternately in
//! one process.

use tfseek::index::IndexOptions;
use tfseek::loader::{Loader, Shuffle};
use tfseek::order::State;
use tfseek::writer::WriterOptions;
use tfseek::{DType, Dataset, DatasetOptions, ExampleBuilder, FeatureSpec, Schema};

const RECORDS: u64 = 20_000;
const DIM: usize = 8;
const BATCH: u64 = 64;
const EPOCHS: u64 = 3;
const SEED: u64 = 42;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let dir = tempfile::tempdir()?;
    write(&dir.path().join("train"))?;
    let options = DatasetOptions::new().index(IndexOptions::new().index_dir(dir.path().join("index")));
    let ds = options.open(dir.path().join("train-*.tfrecord"))?;

    // The uninterrupted run.
    let mut whole = Model::default();
    let mut loader = self::loader(&ds, 2, 0, 1)?;
    for epoch in 0..EPOCHS {
        for step in loader.by_ref() {
            whole.train(&[step?])?;
        }
        println!("epoch {epoch}: loss {:.6}", whole.loss(&ds)?);
    }

    // This run stops in the second epoch. The weights and the loader's state are kept.
    let mut model = Model::default();
    let mut loader = self::loader(&ds, 1, 0, 1)?;
    loader.by_ref().try_for_each(|step| model.train(&[step?]))?;
    loader.by_ref().take(100).try_for_each(|step| model.train(&[step?]))?;
    let saved = loader.state()?.to_json();
    drop(loader);
    println!("stopped: {saved}");

    // The run resumes with two ranks, whose shares of a step form one batch.
    let state = State::from_json(&saved)?;
    let mut ranks = [self::loader(&ds, 3, 0, 2)?, self::loader(&ds, 0, 1, 2)?];
    ranks.iter_mut().try_for_each(|rank| rank.seek(&state))?;
    for _ in state.epoch..EPOCHS {
        let [first, second] = &mut ranks;
        while let (Some(a), Some(b)) = (first.next(), second.next()) {
            model.train(&[a?, b?])?;
        }
    }
    println!("weights {:?}", whole.weights);
    let same = whole.bits() == model.bits();
    println!("stopped and resumed: {}", if same { "the same weights, bit for bit" } else { "OTHER WEIGHTS" });
    if same { Ok(()) } else { Err("the weights differ".into()) }
}

fn loader(ds: &Dataset, threads: usize, rank: u64, ranks: u64) -> tfseek::Result<Loader> {
    ds.loader(&schema()?)
        .global_batch_size(BATCH)
        .rank(rank, ranks)
        .last_batch(tfseek::order::LastBatch::Drop)
        .shuffle(Shuffle::Global)
        .seed(SEED)
        .threads(threads)
        .build()
}

fn schema() -> tfseek::Result<Schema> {
    Schema::example()
        .feature("x", FeatureSpec::fixed_len(&[DIM], DType::Float32))
        .feature("y", FeatureSpec::fixed_len(&[], DType::Float32))
        .build()
}

/// Writes points near a plane to two shards.
fn write(base: &std::path::Path) -> tfseek::Result<()> {
    let mut writer = WriterOptions::default().create_shards(base, ".tfrecord", 2)?;
    let mut noise = 1u64;
    let mut random = || {
        noise = noise.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (noise >> 40) as f32 / (1u64 << 24) as f32 - 0.5
    };
    for _ in 0..RECORDS {
        let x: [f32; DIM] = std::array::from_fn(|_| random());
        let y = x.iter().enumerate().map(|(k, x)| k as f32 * x).sum::<f32>() + 0.1 * random();
        writer.write(&ExampleBuilder::new().float("x", x).float("y", [y]).encode()?)?;
    }
    writer.close().map(drop)
}

/// The model y = w x, trained by gradient descent.
#[derive(Default)]
struct Model {
    weights: [f32; DIM],
}

impl Model {
    /// Makes one step of gradient descent on a global batch, given as the shares of its ranks.
    fn train(&mut self, shares: &[tfseek::loader::Step]) -> tfseek::Result<()> {
        let mut gradient = [0.0f32; DIM];
        for share in shares {
            let Some((x, y)) = columns(share)? else { continue };
            for (x, y) in x.chunks_exact(DIM).zip(y) {
                let error = self.predict(x) - y;
                gradient.iter_mut().zip(x).for_each(|(g, x)| *g += error * x);
            }
        }
        self.weights.iter_mut().zip(gradient).for_each(|(w, g)| *w -= 0.5 / BATCH as f32 * g);
        Ok(())
    }

    fn predict(&self, x: &[f32]) -> f32 {
        self.weights.iter().zip(x).map(|(w, x)| w * x).sum()
    }

    fn loss(&self, ds: &Dataset) -> tfseek::Result<f64> {
        let mut sum = 0.0;
        for step in ds.loader(&schema()?).batch_size(1000).build()? {
            let step = step?;
            let Some((x, y)) = columns(&step)? else { continue };
            sum +=
                x.chunks_exact(DIM).zip(y).map(|(x, y)| f64::from(self.predict(x) - y).powi(2)).sum::<f64>();
        }
        Ok(sum / RECORDS as f64)
    }

    fn bits(&self) -> [u32; DIM] {
        self.weights.map(f32::to_bits)
    }
}

/// Returns the columns of a step; `None` for a loader without a schema.
fn columns(step: &tfseek::loader::Step) -> tfseek::Result<Option<(&[f32], &[f32])>> {
    let Some(batch) = step.batch() else { return Ok(None) };
    Ok(Some((batch.float32("x")?, batch.float32("y")?)))
}
