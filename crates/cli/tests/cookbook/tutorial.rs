//! The Rust of docs/tutorial.md, and a model for it: the one that the page has in Python.

use crate::Result;
use tfseek::order::{State, Subset};
use tfseek::{DType, Dataset, FeatureSpec, Schema, Shuffle};

const CLASSES: usize = 5;

/// A softmax regression on the letter counts of words.
#[derive(Default)]
struct Model {
    weights: [[f64; CLASSES]; 26],
}

impl Model {
    /// Makes one step of gradient descent. Returns the loss before it.
    fn train<'w>(&mut self, words: impl Iterator<Item = &'w [u8]>, classes: &[i64]) -> f64 {
        let mut gradient = [[0.0; CLASSES]; 26];
        let mut loss = 0.0;
        for (word, &class) in words.zip(classes) {
            let mut scores = [0.0; CLASSES];
            for letter in word {
                let weights = self.weights[usize::from(letter - b'a')];
                scores.iter_mut().zip(weights).for_each(|(score, weight)| *score += weight);
            }
            let total: f64 = scores.iter().map(|score| score.exp()).sum();
            let mut found = scores.map(|score| score.exp() / total);
            loss -= found[class as usize].ln();
            found[class as usize] -= 1.0;
            for letter in word {
                let gradient = &mut gradient[usize::from(letter - b'a')];
                gradient.iter_mut().zip(found).for_each(|(sum, error)| *sum += error);
            }
        }
        let rows = classes.len() as f64;
        let weights = self.weights.iter_mut().flatten();
        weights.zip(gradient.iter().flatten()).for_each(|(weight, sum)| *weight -= 0.1 * sum / rows);
        loss / rows
    }
}

/// Runs the blocks of the page.
pub(crate) fn run() -> Result {
    let ds = Dataset::open("data/observations-*.tfrecord")?;
    let schema = Schema::example()
        .feature("feature1", FeatureSpec::fixed_len(&[], DType::Int64))
        .feature("feature2", FeatureSpec::fixed_len(&[], DType::Bytes))
        .build()?;
    let train = Subset::from_fn(ds.len(), |record| record % 10 != 0);
    let options = ds.loader(&schema).batch_size(256).shuffle(Shuffle::Global).seed(42).select(train);

    let mut model = Model::default();
    let mut loader = options.build()?;
    for epoch in 0..3 {
        let mut losses = Vec::new();
        for step in loader.by_ref() {
            let step = step?;
            let batch = step.batch().unwrap();
            let classes = batch.int64("feature1")?;
            let words = batch.bytes("feature2")?;
            losses.push(model.train(words.iter(), classes));
        }
        let steps = losses.len();
        println!("epoch {epoch}: {steps} steps, loss {:.3} to {:.3}", losses[0], losses[steps - 1]);
    }

    loader.next().unwrap()?;
    let before = loader.state()?;

    let saved = loader.state()?.to_json();
    loader.seek(&State::from_json(&saved)?)?;

    assert_eq!(loader.state()?.to_json(), before.to_json());
    assert_eq!((before.epoch, before.position), (3, 256));
    Ok(())
}
