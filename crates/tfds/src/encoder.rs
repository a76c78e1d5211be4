//! `Encoder`: nested values as records, stored as TensorFlow Datasets stores them.

use crate::compile::{DecodeOptions, DecodePlan, Item, Leaf};
use crate::error::{Result, TfdsErrorKind, wrong};
use crate::feature::{Features, LeafClass, StoredNames};
use std::collections::HashMap;
use std::io::Write;
use tfseek::{Error, ExampleBuilder, FeatureBuf, TensorDType};

/// An encoder of nested values, compiled from features once. It makes the records that a
/// [`Decoder`](crate::Decoder) of the features reads.
///
/// The values of a record are set leaf by leaf, as the lists that they are in and their scalars. Pictures and
/// videos are the bytes of their files.
///
/// ```
/// use tfseek_tfds::{Encoder, Features, Scalars};
/// # let text = br#"{"pythonClassName": "tensorflow_datasets.core.features.features_dict.FeaturesDict", "featuresDict": {"features": {
/// #   "x": {"pythonClassName": "tensorflow_datasets.core.features.tensor_feature.Tensor", "tensor": {"shape": {"dimensions": ["2"]}, "dtype": "uint8"}}}}}"#;
/// # let features = Features::parse(text)?;
///
/// let mut encoder = Encoder::new(&features)?; // "x" is a Tensor of 2 x uint8
/// let x = encoder.number("x").unwrap();
/// encoder.set(x, &[vec![2]], Scalars::Integers(&mut [7, 255].into_iter()))?;
/// let record = encoder.finish()?;
/// assert!(encoder.set(x, &[vec![2]], Scalars::Integers(&mut [7, 256].into_iter())).is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Encoder {
    plan: DecodePlan,
    /// The numbers of the classes of each label by their names. Empty for labels without a file of names, and
    /// for other leaves.
    classes: Vec<Classes>,
    features: Vec<(String, FeatureBuf)>,
    /// The leaves of the record that have a value, or none that is not an error.
    seen: Vec<bool>,
}

/// The numbers of classes by their names.
type Classes = HashMap<Box<str>, i64>;

/// The scalars of a value, row-major. Numbers are converted one by one, so that none but the stored ones take
/// memory.
pub enum Scalars<'a> {
    /// Integers, and bools as 0 and 1. Numbers of a label's classes too.
    Integers(&'a mut dyn ExactSizeIterator<Item = i128>),
    /// Floats.
    Floats(&'a mut dyn ExactSizeIterator<Item = f64>),
    /// Floats that are rounded to the type of the feature. Those that would become infinite are errors.
    Rounded(&'a mut dyn ExactSizeIterator<Item = f64>),
    /// Byte strings, files of pictures, and names of a label's classes.
    Strings(&'a [&'a [u8]]),
}

impl Scalars<'_> {
    fn len(&self) -> usize {
        match self {
            Scalars::Integers(values) => values.len(),
            Scalars::Floats(values) | Scalars::Rounded(values) => values.len(),
            Scalars::Strings(values) => values.len(),
        }
    }

    fn name(&self) -> &'static str {
        match self {
            Scalars::Integers(_) => "integers",
            Scalars::Floats(_) | Scalars::Rounded(_) => "floats",
            Scalars::Strings(_) => "byte strings",
        }
    }
}

impl Encoder {
    /// Compiles features.
    ///
    /// # Errors
    /// The errors of [`Decoder::new`](crate::Decoder::new), and [`TfdsErrorKind::Options`] for a feature of
    /// an unknown class.
    pub fn new(features: &Features) -> Result<Encoder> {
        let options = DecodeOptions { encoded: true, ..DecodeOptions::default() };
        let plan = DecodePlan::new(features, &options)?;
        if let Some(leaf) = plan.leaves.iter().find(|leaf| matches!(leaf.item, Item::Unknown)) {
            let reason = format!("feature {:?} is of an unknown class, which cannot be written", leaf.path);
            return Err(TfdsErrorKind::Options { reason }.into());
        }
        let seen = vec![false; plan.leaves.len()];
        let classes = plan.leaves.iter().map(classes_of).collect();
        Ok(Encoder { plan, classes, features: Vec::new(), seen })
    }

    /// Returns the number of the leaf at a path, such as `objects/bbox`.
    pub fn number(&self, path: &str) -> Option<usize> {
        self.plan.leaves.iter().position(|leaf| *leaf.path == *path)
    }

    /// Sets the value of a leaf in the current record. `lengths` has the lengths of its lists, outermost
    /// first: of one list, of its items, and so on, for the sequences around the leaf and then for the
    /// dimensions of its shape. Inner ones of stated sizes may be left out: the last lists then have all of
    /// their scalars.
    ///
    /// # Errors
    /// The value has another type or shape than the feature, or a number that its type or its classes do not
    /// have. The record is then without it.
    pub fn set(&mut self, number: usize, lengths: &[Vec<usize>], scalars: Scalars<'_>) -> tfseek::Result<()> {
        let (Some(leaf), Some(classes)) = (self.plan.leaves.get(number), self.classes.get(number)) else {
            return Ok(());
        };
        let stored = stored(leaf, classes, lengths, scalars).map_err(|e| e.feature(leaf.path.as_bytes()))?;
        self.features.extend(stored);
        if let Some(seen) = self.seen.get_mut(number) {
            *seen = true;
        }
        Ok(())
    }

    /// Encodes the current record and begins the next one.
    ///
    /// # Errors
    /// A feature without a value that is neither optional nor has any size, and a record of more than 2^31 -
    /// 1 bytes.
    pub fn finish(&mut self) -> tfseek::Result<Vec<u8>> {
        let features = std::mem::take(&mut self.features);
        let mut missing = None;
        for (leaf, seen) in self.plan.leaves.iter().zip(&mut self.seen) {
            let is_needed = !leaf.feature.optional && !leaf.ragged;
            if !std::mem::take(seen) && is_needed {
                missing.get_or_insert(&leaf.path);
            }
        }
        if let Some(path) = missing {
            return Err(wrong("expected a value, found none").feature(path.as_bytes()));
        }
        let builder = features
            .into_iter()
            .fold(ExampleBuilder::new(), |builder, (name, values)| builder.feature(&name, values));
        builder.encode()
    }
}

/// Returns the numbers of the classes of a label. The first of two classes with one name counts.
fn classes_of(leaf: &Leaf) -> Classes {
    let names = leaf.feature.labels().and_then(|labels| labels.names.as_ref());
    let mut classes = Classes::new();
    for (name, number) in names.into_iter().flat_map(|names| names.iter()).zip(0..) {
        classes.entry(name.clone()).or_insert(number);
    }
    classes
}

/// Returns the features that store a value.
fn stored(
    leaf: &Leaf,
    classes: &Classes,
    lengths: &[Vec<usize>],
    scalars: Scalars<'_>,
) -> tfseek::Result<Vec<(String, FeatureBuf)>> {
    let sequences = leaf.levels.len();
    let lengths = expanded(leaf, lengths, scalars.len())?;
    let (outer, inner) = lengths.split_at(sequences);
    for (level, lengths) in leaf.levels.iter().zip(outer) {
        lengths.iter().try_for_each(|found| level.check(*found))?;
    }
    let items = outer.last().map_or(Some(1), |lengths| sum(lengths)).ok_or_else(|| {
        wrong(format!("expected {}, found lists of more than {} items", leaf.feature, usize::MAX))
    })?;
    let shapes = ItemShapes::new(leaf, inner, items)?;
    let total = match shapes.rank {
        0 => items,
        _ => shapes.values().fold(0usize, usize::saturating_add),
    };
    if total != scalars.len() {
        return Err(wrong(format!("expected {total} values of {}, found {}", leaf.feature, scalars.len())));
    }
    let path = &*leaf.path;
    let mut found = Vec::new();
    let mut add = |name: &str, values: FeatureBuf| {
        let names = StoredNames::new(name, sequences);
        found.push((names.values(), values));
        for (k, lengths) in outer.iter().skip(1).enumerate() {
            let lengths: Vec<i64> = lengths.iter().map(|n| *n as i64).collect();
            found.push((names.row_lengths(k), lengths.into()));
        }
    };
    match &leaf.item {
        Item::List => add(path, list(leaf, classes, scalars)?),
        Item::Packed { zlib } => add(path, FeatureBuf::Bytes(packed(leaf, *zlib, &shapes, scalars)?)),
        Item::Shaped { zlib, shape } => {
            let sizes = collected(shapes.sizes.iter().map(|size| Ok(*size as i64)))?;
            add(shape, FeatureBuf::Int64(sizes));
            add(&StoredNames::value_of(path), FeatureBuf::Bytes(packed(leaf, *zlib, &shapes, scalars)?));
        }
        Item::Picture | Item::Geometry { .. } | Item::Unknown => {}
    }
    Ok(found)
}

/// Returns the sum of lengths. `None` if it exceeds a `usize`.
fn sum(lengths: &[usize]) -> Option<usize> {
    lengths.iter().try_fold(0usize, |sum, length| sum.checked_add(*length))
}

/// Returns the lengths of all lists. The last given ones may be of lists that have the scalars of several
/// sequences and dimensions of stated sizes.
fn expanded(leaf: &Leaf, lengths: &[Vec<usize>], scalars: usize) -> tfseek::Result<Vec<Vec<usize>>> {
    let sequences = leaf.levels.iter().map(|level| level.length.and_then(|n| usize::try_from(n).ok()));
    let sizes: Vec<Option<usize>> = sequences.chain(leaf.shape().iter().copied()).collect();
    let refused = |found: String| wrong(format!("expected {}, found {found}", leaf.feature));
    if lengths.len() == sizes.len() {
        return Ok(lengths.to_vec());
    }
    let known =
        sizes.get(lengths.len()..).and_then(|inner| inner.iter().copied().collect::<Option<Vec<usize>>>());
    let (Some(inner), Some((last, outer))) = (known, lengths.split_last()) else {
        return Err(refused(format!("values in {} lists", lengths.len())));
    };
    let of_each = inner.iter().fold(1usize, |all, n| all.saturating_mul(*n));
    let items = |found: &usize| match of_each {
        1.. if found.is_multiple_of(of_each) => Ok(found / of_each),
        _ => Err(refused(format!("a list of {found} values"))),
    };
    let mut all = outer.to_vec();
    let mut own: Vec<usize> = last.iter().map(items).collect::<tfseek::Result<_>>()?;
    if sum(last) != Some(scalars) {
        return Err(refused(format!("{scalars} values in lists of other lengths")));
    }
    for size in inner {
        // There are at most as many lists as scalars.
        let count = own.iter().sum();
        let next = collected(std::iter::repeat_n(size, count).map(Ok))?;
        all.push(std::mem::replace(&mut own, next));
    }
    all.push(own);
    Ok(all)
}

/// The shapes of the items of a value.
struct ItemShapes {
    items: usize,
    rank: usize,
    /// The sizes of one item after the other.
    sizes: Vec<usize>,
}

impl ItemShapes {
    /// Finds the shape of each item, from the lengths of the lists of its dimensions.
    fn new(leaf: &Leaf, inner: &[Vec<usize>], items: usize) -> tfseek::Result<ItemShapes> {
        let rank = inner.len().min(leaf.shape().len());
        let mut sizes = Vec::new();
        sizes.try_reserve_exact(items.saturating_mul(rank))?;
        // The lists at each depth, one item after the other.
        let mut lists: Vec<std::slice::Iter<'_, usize>> =
            inner.iter().map(|lengths| lengths.iter()).collect();
        // Items of no dimensions have none.
        let each = if rank == 0 { 0 } else { items };
        let refused = |found: String| wrong(format!("expected {}, found {found}", leaf.feature));
        for _ in 0..each {
            let mut count = 1usize;
            for (lists, size) in lists.iter_mut().zip(leaf.shape()) {
                let mut lengths = lists.by_ref().take(count);
                // Without a list, the size is the schema's.
                let first = lengths.next().copied().unwrap_or(size.unwrap_or(0));
                if lengths.any(|other| *other != first) {
                    return Err(refused("lists of different lengths".to_owned()));
                }
                if size.is_some_and(|size| size != first) {
                    return Err(refused(format!("a list of {first} items")));
                }
                count = count.saturating_mul(first);
                sizes.push(first);
            }
        }
        Ok(ItemShapes { items, rank, sizes })
    }

    /// Returns the number of values of each item.
    fn values(&self) -> impl Iterator<Item = usize> {
        (0..self.items).map(|item| {
            let shape = self.sizes.iter().skip(item * self.rank).take(self.rank);
            shape.fold(1usize, |all, n| all.saturating_mul(*n))
        })
    }
}

/// Collects values, as many as a record has.
fn collected<T>(values: impl ExactSizeIterator<Item = tfseek::Result<T>>) -> tfseek::Result<Vec<T>> {
    let mut all = Vec::new();
    all.try_reserve_exact(values.len())?;
    for value in values {
        all.push(value?);
    }
    Ok(all)
}

/// Returns scalars as the values of a list.
fn list(leaf: &Leaf, classes: &Classes, scalars: Scalars<'_>) -> tfseek::Result<FeatureBuf> {
    use TensorDType as T;
    let dtype = leaf.feature.dtype;
    let found = scalars.name();
    let refused = || wrong(format!("expected {}, found {found}", leaf.feature));
    match (dtype, scalars) {
        (T::String, Scalars::Strings(strings)) => {
            let copied = |string: &&[u8]| collected(string.iter().map(|byte| Ok(*byte)));
            Ok(FeatureBuf::Bytes(collected(strings.iter().map(copied))?))
        }
        (T::String, _) => Err(refused()),
        (T::Float16 | T::BFloat16 | T::Float32 | T::Float64, scalars) => {
            let round = matches!(scalars, Scalars::Rounded(_));
            let exact = |value: f64| {
                let kept = match dtype {
                    T::Float16 => half::f16::from_f64(value).to_f32(),
                    T::BFloat16 => half::bf16::from_f64(value).to_f32(),
                    _ => value as f32,
                };
                let reason = || format!("expected a {dtype} that float32 has exactly, found {value}");
                if is_kept(f64::from(kept), value, round) { Ok(kept) } else { Err(wrong(reason())) }
            };
            let floats = match scalars {
                Scalars::Floats(values) | Scalars::Rounded(values) => collected(values.map(exact)),
                Scalars::Integers(values) => collected(values.map(|value| exact(value as f64))),
                Scalars::Strings(_) => Err(refused()),
            };
            Ok(FeatureBuf::Float(floats?))
        }
        (_, Scalars::Integers(values)) => {
            let classes_of_label = leaf.feature.labels().and_then(|labels| labels.classes);
            let number = |value: i128| match classes_of_label {
                // -1 is no class.
                Some(n) if !(-1..i128::from(n)).contains(&value) => {
                    Err(wrong(format!("expected a class of {}, found {value}", leaf.feature)))
                }
                _ => integer(dtype, value),
            };
            Ok(FeatureBuf::Int64(collected(values.map(number))?))
        }
        (_, Scalars::Strings(names)) => {
            let LeafClass::Label(labels) = &leaf.feature.class else { return Err(refused()) };
            let number = |name: &&[u8]| {
                let name_of = std::str::from_utf8(name).ok();
                // Without a file of names, a name is a number.
                let number = name_of.and_then(|name| match labels.names {
                    Some(_) => classes.get(name).copied(),
                    None => labels.number(name),
                });
                number.ok_or_else(|| wrong(format!("expected the name of a class, found {}", quoted(name))))
            };
            Ok(FeatureBuf::Int64(collected(names.iter().map(number))?))
        }
        (_, Scalars::Floats(_) | Scalars::Rounded(_)) => Err(refused()),
    }
}

fn quoted(name: &[u8]) -> String {
    format!("\"{}\"", name.get(..40).unwrap_or(name).escape_ascii())
}

/// Returns an integer as it is stored: a uint64 by its bits.
fn integer(dtype: TensorDType, value: i128) -> tfseek::Result<i64> {
    use TensorDType as T;
    let range = match dtype {
        T::Bool => 0..=1,
        T::Int8 => i8::MIN.into()..=i8::MAX.into(),
        T::Int16 => i16::MIN.into()..=i16::MAX.into(),
        T::Int32 => i32::MIN.into()..=i32::MAX.into(),
        T::UInt8 => 0..=u8::MAX.into(),
        T::UInt16 => 0..=u16::MAX.into(),
        T::UInt32 => 0..=u32::MAX.into(),
        T::UInt64 => 0..=u64::MAX.into(),
        _ => i64::MIN.into()..=i64::MAX.into(),
    };
    if range.contains(&value) {
        // All but the large ones of uint64 fit, and those keep their bits.
        Ok(value as i64)
    } else {
        Err(wrong(format!("expected a number of {dtype}, found {value}")))
    }
}

/// Returns a byte string for each item.
fn packed(
    leaf: &Leaf,
    zlib: bool,
    shapes: &ItemShapes,
    mut scalars: Scalars<'_>,
) -> tfseek::Result<Vec<Vec<u8>>> {
    let dtype = leaf.feature.dtype;
    let round = matches!(scalars, Scalars::Rounded(_));
    let mut strings = Vec::new();
    strings.try_reserve_exact(shapes.items)?;
    for count in shapes.values() {
        let bytes = match &mut scalars {
            Scalars::Integers(values) => {
                bytes(dtype, count, values.by_ref().map(|value| (value, value as f64)), false)?
            }
            Scalars::Floats(_) | Scalars::Rounded(_) if !is_float(dtype) && count > 0 => {
                return Err(wrong(format!("expected {}, found floats", leaf.feature)));
            }
            Scalars::Floats(values) | Scalars::Rounded(values) => {
                bytes(dtype, count, values.by_ref().map(|value| (0, value)), round)?
            }
            Scalars::Strings(_) => {
                return Err(wrong(format!("expected {}, found byte strings", leaf.feature)));
            }
        };
        strings.push(if zlib { deflated(&bytes)? } else { bytes });
    }
    Ok(strings)
}

fn is_float(dtype: TensorDType) -> bool {
    use TensorDType as T;
    matches!(dtype, T::Float16 | T::BFloat16 | T::Float32 | T::Float64)
}

/// Returns true if a number may be stored as the one that its type has in its place: the same one or, with
/// `round`, any but infinity.
fn is_kept(stored: f64, value: f64, round: bool) -> bool {
    stored == value || value.is_nan() || round && stored.is_finite()
}

/// Returns the next `count` numbers as bytes, lowest first. Each is given as an integer and as a float.
fn bytes(
    dtype: TensorDType,
    count: usize,
    values: impl Iterator<Item = (i128, f64)>,
    round: bool,
) -> tfseek::Result<Vec<u8>> {
    use TensorDType as T;
    let mut bytes = Vec::new();
    let size = dtype.size().unwrap_or(8);
    bytes.try_reserve_exact(count.saturating_mul(size))?;
    for (value, float) in values.take(count) {
        let exact = |kept: f64| -> tfseek::Result<()> {
            if is_kept(kept, float, round) {
                return Ok(());
            }
            Err(wrong(format!("expected a number of {dtype}, found {float}")))
        };
        match dtype {
            T::Float64 => bytes.extend_from_slice(&float.to_le_bytes()),
            T::Float32 => {
                exact(f64::from(float as f32))?;
                bytes.extend_from_slice(&(float as f32).to_le_bytes());
            }
            T::Float16 => {
                let half = half::f16::from_f64(float);
                exact(half.to_f64())?;
                bytes.extend_from_slice(&half.to_le_bytes());
            }
            T::BFloat16 => {
                let half = half::bf16::from_f64(float);
                exact(half.to_f64())?;
                bytes.extend_from_slice(&half.to_le_bytes());
            }
            T::Complex64 | T::Complex128 | T::String => {
                return Err(wrong(format!("values of {dtype} cannot be written")));
            }
            _ => {
                let number = integer(dtype, value)?.to_le_bytes();
                bytes.extend(number.iter().take(size));
            }
        }
    }
    Ok(bytes)
}

fn deflated(bytes: &[u8]) -> tfseek::Result<Vec<u8>> {
    // Blocks that cannot be compressed are stored, with five bytes for each of at least 16 KiB.
    let most = bytes.len() + bytes.len() / 2048 + 64;
    let mut out = Vec::new();
    out.try_reserve_exact(most)?;
    let mut encoder = flate2::write::ZlibEncoder::new(out, flate2::Compression::default());
    let mut out = encoder.write_all(bytes).and_then(|()| encoder.finish()).map_err(Error::from)?;
    out.shrink_to_fit();
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::array::Array;
    use crate::decoder::Decoder;
    use crate::record::RecordValue;
    use tfseek::batch::Values;
    use tfseek::tensor::Element;

    const P: &str = "tensorflow_datasets.core.features.";

    fn tensor(dtype: &str, dimensions: &str, encoding: &str) -> String {
        format!(
            r#"{{"pythonClassName": "{P}tensor_feature.Tensor", "tensor": {{"shape": {{"dimensions": {dimensions}}}, "dtype": "{dtype}", "encoding": "{encoding}"}}}}"#
        )
    }

    fn sequence(feature: &str, length: &str) -> String {
        format!(
            r#"{{"pythonClassName": "{P}sequence_feature.Sequence", "sequence": {{"length": "{length}", "feature": {feature}}}}}"#
        )
    }

    fn features(feature: &str) -> Features {
        let text = format!(
            r#"{{"pythonClassName": "{P}features_dict.FeaturesDict", "featuresDict": {{"features": {{"x": {feature}}}}}}}"#
        );
        Features::parse(text.as_bytes()).unwrap()
    }

    /// Returns the decoded value of an encoded one.
    fn round(feature: &str, lengths: &[Vec<usize>], scalars: Scalars<'_>) -> tfseek::Result<RecordValue> {
        let features = features(feature);
        let mut encoder = Encoder::new(&features).unwrap();
        encoder.set(0, lengths, scalars)?;
        let record = encoder.finish()?;
        let decoder = Decoder::new(&features, &DecodeOptions::default()).unwrap();
        Ok(decoder.record(&record)?.get("x")?.unwrap())
    }

    fn shape(value: &RecordValue) -> &[usize] {
        let RecordValue::Array(array) = value else { panic!("no array") };
        array.shape()
    }

    fn numbers<T: Element>(array: &Array) -> &[T] {
        let (Values::Array(numbers), 0) = array.values() else { panic!("no numbers") };
        numbers.as_slice().unwrap()
    }

    #[test]
    #[cfg_attr(miri, ignore = "zlib-rs frees memory that an argument borrows")]
    fn values_are_stored_as_they_are_read() {
        let integers: Vec<i128> = (0..6).collect();
        for encoding in ["none", "bytes", "zlib"] {
            let value = round(
                &tensor("uint8", r#"["2", "3"]"#, encoding),
                &[vec![2], vec![3, 3]],
                Scalars::Integers(&mut integers.iter().copied()),
            );
            let RecordValue::Array(array) = value.unwrap() else { panic!("no array") };
            assert_eq!((array.shape(), numbers::<u8>(&array)), (&[2, 3][..], &[0, 1, 2, 3, 4, 5][..]));
        }
        // One list of all values, an open dimension, and several of them.
        let flat = round(
            &tensor("int32", r#"["2", "3"]"#, "none"),
            &[vec![6]],
            Scalars::Integers(&mut integers.iter().copied()),
        )
        .unwrap();
        assert_eq!(shape(&flat), [2, 3]);
        let open = round(
            &tensor("int32", r#"["2", "-1"]"#, "none"),
            &[vec![2], vec![3, 3]],
            Scalars::Integers(&mut integers.iter().copied()),
        )
        .unwrap();
        assert_eq!(shape(&open), [2, 3]);
        let shaped = round(
            &tensor("int32", r#"["-1", "-1"]"#, "zlib"),
            &[vec![3], vec![2; 3]],
            Scalars::Integers(&mut integers.iter().copied()),
        )
        .unwrap();
        assert_eq!(shape(&shaped), [3, 2]);
        let nested = sequence(&sequence(&tensor("int32", "[]", "none"), "-1"), "-1");
        let RecordValue::Ragged { values, row_splits } =
            round(&nested, &[vec![3], vec![2, 0, 4]], Scalars::Integers(&mut integers.iter().copied()))
                .unwrap()
        else {
            panic!("not ragged")
        };
        assert_eq!((values.shape(), row_splits), (&[6][..], vec![vec![0, 2, 2, 6]]));
        let large = round(
            &tensor("uint64", "[]", "none"),
            &[],
            Scalars::Integers(&mut [u64::MAX.into()].into_iter()),
        )
        .unwrap();
        let RecordValue::Array(large) = large else { panic!("no array") };
        assert_eq!(numbers::<u64>(&large), [u64::MAX]);
    }

    #[test]
    fn other_values_are_refused() {
        let one = [1i128];
        let text = [b"x".as_slice()];
        for (feature, lengths, scalars, words) in [
            (
                tensor("uint8", "[]", "none"),
                vec![],
                Scalars::Integers(&mut [256].into_iter()),
                "expected a number of uint8, found 256",
            ),
            (
                tensor("bool", "[]", "bytes"),
                vec![],
                Scalars::Integers(&mut [2].into_iter()),
                "expected a number of bool, found 2",
            ),
            (
                tensor("float32", "[]", "none"),
                vec![],
                Scalars::Floats(&mut [0.1].into_iter()),
                "float32 has exactly, found 0.1",
            ),
            (
                tensor("float16", "[]", "zlib"),
                vec![],
                Scalars::Floats(&mut [0.1].into_iter()),
                "expected a number of float16, found 0.1",
            ),
            (
                tensor("int32", r#"["2"]"#, "none"),
                vec![vec![1]],
                Scalars::Integers(&mut one.into_iter()),
                "found a list of 1 items",
            ),
            (
                tensor("int32", r#"["2"]"#, "none"),
                vec![],
                Scalars::Integers(&mut one.into_iter()),
                "found values in 0 lists",
            ),
            (tensor("int32", "[]", "none"), vec![], Scalars::Strings(&text), "found byte strings"),
            (
                tensor("string", "[]", "none"),
                vec![],
                Scalars::Integers(&mut one.into_iter()),
                "found integers",
            ),
            (
                sequence(&tensor("int32", "[]", "none"), "2"),
                vec![vec![1]],
                Scalars::Integers(&mut one.into_iter()),
                "expected a sequence of 2 items, found 1",
            ),
            (
                tensor("int32", r#"["-1", "-1"]"#, "bytes"),
                vec![vec![2], vec![1, 2]],
                Scalars::Integers(&mut [1, 2, 3].into_iter()),
                "lists of different lengths",
            ),
            (
                sequence(&tensor("int32", "[]", "none"), "-1"),
                vec![vec![usize::MAX]],
                Scalars::Integers(&mut one.into_iter()),
                "values of",
            ),
            (
                sequence(&tensor("int32", "[]", "none"), "-1"),
                vec![vec![usize::MAX, 1]],
                Scalars::Integers(&mut one.into_iter()),
                "found lists of more than",
            ),
            (
                tensor("int32", r#"["2", "3"]"#, "none"),
                vec![vec![usize::MAX - 3]],
                Scalars::Integers(&mut [0, 1, 2, 3, 4, 5].into_iter()),
                "6 values in lists of other lengths",
            ),
            (
                tensor("int64", r#"["-1"]"#, "bytes"),
                vec![vec![usize::MAX]],
                Scalars::Integers(&mut std::iter::repeat_n(1, usize::MAX)),
                "not enough memory",
            ),
        ] {
            let Err(e) = round(&feature, &lengths, scalars) else { panic!("{words}") };
            assert!(e.to_string().contains(words) && e.location().feature.as_deref() == Some("x"), "{e}");
        }
        let e = Encoder::new(&features(&tensor("int32", "[]", "none"))).unwrap().finish().unwrap_err();
        assert_eq!(e.to_string(), "feature \"x\": expected a value, found none");
    }
}
