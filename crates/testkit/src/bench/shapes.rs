//! Five shapes of Examples that are typical of training data, each with the schema that a user would write.

use crate::rng::Rng;
use tfseek::FeatureBuf;
use tfseek::example::{FeatureSlice, put_example};
use tfseek::schema::{DType, FeatureSpec, Schema};

/// Number of rows per batch, also in the benches of other libraries.
pub const BATCH: usize = 256;

/// The order of the keys in the records.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// The same order in every record.
    Same,
    /// A different order in every record, as from a writer with a salted hash map.
    Own,
    /// The orders of two writers in turn.
    Two,
}

impl Order {
    pub const ALL: [Order; 3] = [Order::Same, Order::Own, Order::Two];

    pub fn name(self) -> &'static str {
        match self {
            Order::Same => "same",
            Order::Own => "own",
            Order::Two => "two",
        }
    }
}

/// The random distribution of the values of a feature.
#[derive(Clone, Copy)]
pub enum Draw {
    /// Integers below a random power of ten, of one to three bytes.
    Small,
    /// Integers below this number.
    Below(u64),
    /// Floats between -1 and 1.
    Unit,
    /// One of five words.
    Word,
    /// Letters, with a length in this range (inclusive).
    Letters(u64, u64),
    /// Random bytes, with a length in this range (inclusive).
    Noise(u64, u64),
}

/// A feature that every record has, with a fixed number of values.
pub struct ShapeFeature {
    pub key: String,
    /// Number of values; `None` for a scalar.
    pub len: Option<usize>,
    draw: Draw,
}

impl ShapeFeature {
    fn new(key: impl Into<String>, len: Option<usize>, draw: Draw) -> ShapeFeature {
        ShapeFeature { key: key.into(), len, draw }
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

/// A shape of Examples.
pub struct Shape {
    pub name: &'static str,
    /// Features, sorted by key like the columns of a schema.
    pub features: Vec<ShapeFeature>,
    /// Number of records of a run. They fill whole batches and take some tens of megabytes, more than a
    /// level-2 cache holds.
    pub records: usize,
}

impl Shape {
    /// Returns all five shapes.
    pub fn all() -> Vec<Shape> {
        let scalar = |key: &str, draw| ShapeFeature::new(key, None, draw);
        vec![
            // The features of TensorFlow's TFRecord tutorial.
            Shape {
                name: "tutorial",
                features: vec![
                    scalar("feature0", Draw::Below(2)),
                    scalar("feature1", Draw::Below(5)),
                    scalar("feature2", Draw::Word),
                    scalar("feature3", Draw::Unit),
                ],
                records: 128 * BATCH,
            },
            // A table: keys of 17 bytes and mostly scalar values.
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
                        ShapeFeature::new(key(k), len, draw)
                    })
                    .collect(),
                records: 16 * BATCH,
            },
            // A text as token ids: varints of one to three bytes.
            Shape {
                name: "tokens",
                features: vec![
                    scalar("label", Draw::Below(1000)),
                    ShapeFeature::new("tokens", Some(512), Draw::Below(50_000)),
                ],
                records: 32 * BATCH,
            },
            Shape {
                name: "embedding",
                features: vec![
                    ShapeFeature::new("embedding", Some(1024), Draw::Unit),
                    scalar("id", Draw::Letters(16, 16)),
                ],
                records: 16 * BATCH,
            },
            Shape {
                name: "image",
                features: vec![
                    scalar("image/encoded", Draw::Noise(80_000, 120_000)),
                    scalar("image/height", Draw::Below(600)),
                    scalar("image/label", Draw::Below(1000)),
                    scalar("image/width", Draw::Below(600)),
                ],
                records: 2 * BATCH,
            },
        ]
    }

    pub fn named(name: &str) -> Option<Shape> {
        Shape::all().into_iter().find(|shape| shape.name == name)
    }

    /// Returns the schema of all features.
    pub fn schema(&self) -> Schema {
        let schema = self.features.iter().fold(Schema::example(), |schema, f| {
            let shape: Vec<usize> = f.len.into_iter().collect();
            schema.feature(&f.key, FeatureSpec::fixed_len(&shape, f.dtype()))
        });
        schema.build().expect("the shapes are sound")
    }

    /// Returns payloads of this shape. The values are the same for all orders of keys.
    pub fn payloads(&self, order: Order, records: usize) -> Vec<Vec<u8>> {
        let mut rng = Rng::new(self.features.len() as u64);
        let mut shuffle = Rng::new(1);
        let mut key_order: Vec<usize> = (0..self.features.len()).collect();
        let record = |_| {
            let values: Vec<FeatureBuf> = self.features.iter().map(|f| f.values(&mut rng)).collect();
            match order {
                Order::Same => {}
                Order::Own => {
                    for k in (1..key_order.len()).rev() {
                        key_order.swap(k, shuffle.below(k + 1));
                    }
                }
                Order::Two => key_order.reverse(),
            }
            let features: Vec<_> =
                key_order.iter().map(|&k| (self.features[k].key.as_str(), &values[k])).collect();
            in_order(&features)
        };
        (0..records).map(record).collect()
    }
}

/// Returns an Example with these features, in this order.
fn in_order(features: &[(&str, &FeatureBuf)]) -> Vec<u8> {
    let strings: Vec<Vec<&[u8]>> = features
        .iter()
        .map(|(_, feature)| match feature {
            FeatureBuf::Bytes(values) => values.iter().map(Vec::as_slice).collect(),
            _ => Vec::new(),
        })
        .collect();
    let slices: Vec<(&str, FeatureSlice<'_>)> = features
        .iter()
        .zip(&strings)
        .map(|((key, feature), strings)| {
            let slice = match feature {
                FeatureBuf::None => FeatureSlice::None,
                FeatureBuf::Bytes(_) => FeatureSlice::Bytes(strings),
                FeatureBuf::Float(values) => FeatureSlice::Float(values),
                FeatureBuf::Int64(values) => FeatureSlice::Int64(values),
            };
            (*key, slice)
        })
        .collect();
    let mut payload = Vec::new();
    put_example(&slices, &mut payload).expect("far below the limit");
    payload
}

/// Returns the key of feature `k`, which has 17 bytes.
pub fn key(k: usize) -> String {
    format!("feature/key/{k:05}")
}
