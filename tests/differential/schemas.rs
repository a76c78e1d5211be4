//! Random schemas with all types of features, and with shared keys where TensorFlow permits them.

use tfseek::example::FeatureBuf;
use tfseek::schema::{DType, FeatureSpec, Partition, Schema, SplitsDType};
use tfseek_testkit::rng::Rng;

/// Keys that are difficult to sort and compare, followed by plain ones.
const KEYS: &[&str] =
    &["a", "b", "ab", "", "label", "image/encoded", "ids", "\u{e9}t\u{e9}", "\u{1f600}", "k 1", "k2", "k3"];

pub(crate) fn example(rng: &mut Rng) -> Schema {
    let mut maker = Maker { rng, keys: Vec::new(), sparse: Vec::new(), ragged: Vec::new() };
    maker.shuffle();
    let mut schema = Schema::example();
    for _ in 0..1 + maker.rng.below(4) {
        let (name, spec) = maker.column(&[0, 1, 2, 3, 3, 4]);
        schema = schema.feature(name, spec);
    }
    schema.build().unwrap()
}

pub(crate) fn sequence(rng: &mut Rng) -> Schema {
    let mut maker = Maker { rng, keys: Vec::new(), sparse: Vec::new(), ragged: Vec::new() };
    maker.shuffle();
    let mut schema = Schema::sequence_example();
    let context = maker.rng.below(3);
    for _ in 0..context {
        let (name, spec) = maker.column(&[0, 2, 3]);
        schema = schema.feature(name, spec);
    }
    // Keys of feature lists are independent of keys of the context.
    maker = Maker { rng: maker.rng, keys: Vec::new(), sparse: Vec::new(), ragged: Vec::new() };
    maker.shuffle();
    for _ in 0..maker.rng.below(3) + usize::from(context == 0) {
        let (name, mut spec) = maker.column(&[1, 2, 3]);
        if let FeatureSpec::FixedLenSequence { allow_missing, default, .. } = &mut spec {
            *default = None;
            *allow_missing = maker.rng.chance(180);
        }
        schema = schema.feature_list(name, spec);
    }
    schema.build().unwrap()
}

struct Maker<'r> {
    rng: &'r mut Rng,
    /// The unused keys.
    keys: Vec<String>,
    /// Keys of int64 values and indices already used by sparse features.
    sparse: Vec<String>,
    /// Keys already used by ragged columns without partitions.
    ragged: Vec<(String, DType, SplitsDType)>,
}

impl Maker<'_> {
    fn shuffle(&mut self) {
        let mut keys: Vec<String> = (0..20).map(|k| format!("key {k}")).collect();
        keys.extend(KEYS.iter().map(|&key| key.to_owned()));
        for k in (keys.len() - KEYS.len() + 1..keys.len()).rev() {
            let first = keys.len() - KEYS.len();
            keys.swap(k, first + self.rng.below(k - first + 1));
        }
        self.keys = keys;
    }

    fn key(&mut self) -> String {
        self.keys.pop().unwrap()
    }

    /// Returns a key that a spec may name. TensorFlow treats an empty key as absent.
    fn named(&mut self) -> String {
        loop {
            let key = self.key();
            if !key.is_empty() {
                return key;
            }
        }
    }

    fn dtype(&mut self) -> DType {
        self.rng.pick(&[DType::Int64, DType::Float32, DType::Bytes])
    }

    fn values(&mut self, dtype: DType, len: usize) -> FeatureBuf {
        match dtype {
            DType::Int64 => FeatureBuf::Int64((0..len).map(|_| self.rng.u64() as i64 >> 40).collect()),
            // Defaults that JSON and Python can represent: finite, with few digits.
            DType::Float32 => {
                FeatureBuf::Float((0..len).map(|_| self.rng.below(1000) as f32 / 8.0).collect())
            }
            DType::Bytes => FeatureBuf::Bytes((0..len).map(|_| self.rng.bytes(2)).collect()),
        }
    }

    fn column(&mut self, types: &[u8]) -> (String, FeatureSpec) {
        let dtype = self.dtype();
        match self.rng.pick(types) {
            0 => {
                let shape = self.rng.pick(&[&[][..], &[], &[1], &[2], &[3], &[2, 2], &[1, 3, 1], &[0]]);
                let mut spec = FeatureSpec::fixed_len(shape, dtype);
                let len = shape.iter().product();
                if len > 0 && self.rng.chance(128) {
                    spec = spec.with_default(self.values(dtype, len));
                }
                (self.key(), spec)
            }
            1 => {
                let shape = self.rng.pick(&[&[][..], &[], &[1], &[2], &[3, 2]]);
                let mut spec = FeatureSpec::fixed_len_sequence(shape, dtype);
                if self.rng.chance(128) {
                    spec = spec.with_default(self.values(dtype, 1));
                }
                (self.key(), spec)
            }
            2 => {
                if self.rng.chance(40)
                    && let Some(key) = self.sparse.pop()
                {
                    return (key, FeatureSpec::var_len(DType::Int64));
                }
                (self.key(), FeatureSpec::var_len(dtype))
            }
            3 => self.ragged(dtype),
            _ => self.sparse(dtype),
        }
    }

    fn ragged(&mut self, dtype: DType) -> (String, FeatureSpec) {
        let name = self.key();
        if self.rng.chance(40)
            && let Some((key, dtype, row_splits_dtype)) = self.ragged.pop()
        {
            // A second column over the values of another column.
            let (value_key, partitions) = (Some(key), Vec::new());
            return (
                name,
                FeatureSpec::Ragged { dtype, value_key, partitions, row_splits_dtype, validate: false },
            );
        }
        let value_key = if self.rng.chance(100) { Some(self.named()) } else { None };
        let row_splits_dtype = self.rng.pick(&[SplitsDType::Int32, SplitsDType::Int64]);
        let mut partitions = Vec::new();
        for _ in 0..self.rng.pick(&[0, 1, 1, 1, 2, 2, 3]) {
            partitions.push(match self.rng.below(6) {
                0 => Partition::RowSplits(self.named()),
                1 => Partition::RowLengths(self.named()),
                2 => Partition::RowStarts(self.named()),
                3 => Partition::RowLimits(self.named()),
                4 => Partition::ValueRowIds(self.named()),
                _ => Partition::UniformRowLength(1 + self.rng.below(3)),
            });
        }
        let own = value_key.clone().unwrap_or_else(|| name.clone());
        if !own.is_empty() {
            self.ragged.push((own, dtype, row_splits_dtype));
        }
        let validate = self.rng.chance(64);
        (name, FeatureSpec::Ragged { dtype, value_key, partitions, row_splits_dtype, validate })
    }

    fn sparse(&mut self, dtype: DType) -> (String, FeatureSpec) {
        let (name, value_key) = (self.key(), self.named());
        let mut index_keys = Vec::new();
        let mut size = Vec::new();
        for _ in 0..self.rng.pick(&[1, 1, 2, 3]) {
            let shared = if self.rng.chance(40) { self.sparse.pop() } else { None };
            index_keys.push(shared.unwrap_or_else(|| self.named()));
            size.push(self.rng.pick(&[1, 4, 10, 1 << 40]));
        }
        self.sparse.extend(index_keys.iter().cloned());
        let already_sorted = self.rng.chance(64);
        (name, FeatureSpec::Sparse { index_keys, value_key, dtype, size, already_sorted })
    }
}
