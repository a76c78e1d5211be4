//! Five shapes of Examples as they are met in training data, and the schema that a user would write for each.

use crate::rng::Rng;
use tfseek::schema::{DType, FeatureSpec, Schema};
use tfseek::{ExampleBuilder, FeatureBuf, KeyOrder};

/// Rows of a batch, here and at the peers.
pub const BATCH: usize = 256;

/// Where a record has its keys.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// In the same order in every record.
    Same,
    /// In an order of its own in every record, as a writer with a salted hash map leaves them.
    Own,
}

impl Order {
    pub const ALL: [Order; 2] = [Order::Same, Order::Own];

    pub fn name(self) -> &'static str {
        match self {
            Order::Same => "same",
            Order::Own => "own",
        }
    }
}

/// How the values of a feature are drawn.
#[derive(Clone, Copy)]
pub enum Draw {
    /// Integers below a power of ten that is drawn first: one to three bytes each.
    Small,
    /// Integers below this number.
    Below(u64),
    /// Floats between -1 and 1.
    Unit,
    /// One of five animals.
    Word,
    /// Letters, between so many and so many.
    Letters(u64, u64),
    /// Bytes of any value, between so many and so many.
    Noise(u64, u64),
}

/// A feature that every record has, with a fixed number of values.
pub struct Feature {
    pub key: String,
    /// `None` is a scalar.
    pub len: Option<usize>,
    draw: Draw,
}

impl Feature {
    fn new(key: impl Into<String>, len: Option<usize>, draw: Draw) -> Feature {
        Feature { key: key.into(), len, draw }
    }

    pub fn dtype(&self) -> DType {
        match self.draw {
            Draw::Small | Draw::Below(_) => DType::Int64,
            Draw::Unit => DType::Float32,
            Draw::Word | Draw::Letters(..) | Draw::Noise(..) => DType::Bytes,
        }
    }

    fn values(&self, rng: &mut Rng) -> FeatureBuf {
        let n = self.len.unwrap_or(1);
        let bytes = |rng: &mut Rng, (from, to), byte: fn(u64) -> u8| {
            let len = from + rng.below_u64(to - from + 1);
            FeatureBuf::Bytes(vec![(0..len).map(|_| byte(rng.u64() >> 32)).collect()])
        };
        match self.draw {
            Draw::Small => FeatureBuf::Int64(
                (0..n).map(|_| rng.u64() % 10u64.pow(1 + rng.below(6) as u32)).map(|v| v as i64).collect(),
            ),
            Draw::Below(limit) => FeatureBuf::Int64((0..n).map(|_| rng.below_u64(limit) as i64).collect()),
            Draw::Unit => {
                let unit = |bits: u64| (bits >> 40) as f32 / (1 << 23) as f32 - 1.0;
                FeatureBuf::Float((0..n).map(|_| unit(rng.u64())).collect())
            }
            Draw::Word => {
                let words = ["cat", "dog", "chicken", "horse", "goat"];
                FeatureBuf::Bytes(vec![words[rng.below(5)].into()])
            }
            Draw::Letters(from, to) => bytes(rng, (from, to), |bits| b'a' + (bits % 26) as u8),
            Draw::Noise(from, to) => bytes(rng, (from, to), |bits| bits as u8),
        }
    }
}

/// A kind of data set.
pub struct Shape {
    pub name: &'static str,
    /// Sorted by key, as the columns of a schema are.
    pub features: Vec<Feature>,
    /// Records of a run: some tens of megabytes, so that no level-2 cache holds them, and whole batches.
    pub records: usize,
}

impl Shape {
    /// All five.
    pub fn all() -> Vec<Shape> {
        let one = |key: &str, draw| Feature::new(key, None, draw);
        vec![
            // The features of TensorFlow's TFRecord tutorial.
            Shape {
                name: "tutorial",
                features: vec![
                    one("feature0", Draw::Below(2)),
                    one("feature1", Draw::Below(5)),
                    one("feature2", Draw::Word),
                    one("feature3", Draw::Unit),
                ],
                records: 128 * BATCH,
            },
            // A table: keys of 17 bytes, most values scalar.
            Shape {
                name: "wide",
                features: (0..200)
                    .map(|k| {
                        let (len, draw) = match (k % 20, k % 3) {
                            (7, _) => (Some(8), Draw::Unit),
                            (17, _) => (Some(4), Draw::Below(50_000)),
                            (_, 0) => (None, Draw::Small),
                            (_, 1) => (None, Draw::Unit),
                            _ => (None, Draw::Letters(6, 12)),
                        };
                        Feature::new(key(k), len, draw)
                    })
                    .collect(),
                records: 16 * BATCH,
            },
            // A text as ids of a vocabulary: varints of one to three bytes.
            Shape {
                name: "tokens",
                features: vec![
                    one("label", Draw::Below(1000)),
                    Feature::new("tokens", Some(512), Draw::Below(50_000)),
                ],
                records: 32 * BATCH,
            },
            Shape {
                name: "embedding",
                features: vec![
                    Feature::new("embedding", Some(1024), Draw::Unit),
                    one("id", Draw::Letters(16, 16)),
                ],
                records: 16 * BATCH,
            },
            Shape {
                name: "image",
                features: vec![
                    one("image/encoded", Draw::Noise(80_000, 120_000)),
                    one("image/height", Draw::Below(600)),
                    one("image/label", Draw::Below(1000)),
                    one("image/width", Draw::Below(600)),
                ],
                records: 2 * BATCH,
            },
        ]
    }

    pub fn named(name: &str) -> Option<Shape> {
        Shape::all().into_iter().find(|shape| shape.name == name)
    }

    /// The schema of all its features.
    pub fn schema(&self) -> Schema {
        let schema = self.features.iter().fold(Schema::example(), |schema, f| {
            let shape: Vec<usize> = f.len.into_iter().collect();
            schema.feature(&f.key, FeatureSpec::fixed_len(&shape, f.dtype()))
        });
        schema.build().expect("the shapes are sound")
    }

    /// Records of it; the same values in either order.
    pub fn payloads(&self, order: Order, records: usize) -> Vec<Vec<u8>> {
        let mut rng = Rng::new(self.features.len() as u64);
        let mut shuffle = Rng::new(1);
        let mut places: Vec<usize> = (0..self.features.len()).collect();
        let record = |_| {
            let mut values: Vec<_> = self.features.iter().map(|f| Some(f.values(&mut rng))).collect();
            if order == Order::Own {
                for k in (1..places.len()).rev() {
                    places.swap(k, shuffle.below(k + 1));
                }
            }
            let mut builder = ExampleBuilder::new();
            builder = builder.key_order(KeyOrder::Given);
            for &place in &places {
                builder = builder
                    .feature(self.features[place].key.as_str(), values[place].take().unwrap_or_default());
            }
            builder.encode().expect("far below the limit")
        };
        (0..records).map(record).collect()
    }
}

/// The key of feature `k`: 17 bytes.
pub fn key(k: usize) -> String {
    format!("feature/key/{k:05}")
}
