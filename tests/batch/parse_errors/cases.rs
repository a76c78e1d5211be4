//! Schemas with good and bad records, and the expected error of each bad record.

use tfseek::ExampleBuf;
use tfseek::error::Category;
use tfseek::example::{FeatureBuf, SequenceExampleBuf};
use tfseek::schema::{DType, FeatureSpec, Partition, Schema, SplitsDType};
use tfseek::tensor::{TensorDType, serialize_values};

/// A value in each payload that must not appear in any message.
pub(crate) const MARKER: &str = "PAYLOAD-MARKER";

pub(crate) type Features = Vec<(&'static str, FeatureBuf)>;

fn example(features: Features) -> Vec<u8> {
    let mut buf = ExampleBuf::default();
    buf.features.insert(format!("{MARKER}-key"), [MARKER].into());
    buf.features.extend(features.into_iter().map(|(key, feature)| (key.to_owned(), feature)));
    buf.encode().unwrap()
}

fn sequence(context: Features, lists: Vec<(&'static str, Vec<FeatureBuf>)>) -> Vec<u8> {
    let mut buf = SequenceExampleBuf::default();
    buf.context.insert(format!("{MARKER}-key"), [MARKER].into());
    buf.context.extend(context.into_iter().map(|(key, feature)| (key.to_owned(), feature)));
    buf.feature_lists.extend(lists.into_iter().map(|(key, steps)| (key.to_owned(), steps)));
    buf.encode().unwrap()
}

fn ragged(partition: Partition) -> FeatureSpec {
    FeatureSpec::Ragged {
        dtype: DType::Bytes,
        value_key: Some("values".into()),
        partitions: vec![partition],
        row_splits_dtype: SplitsDType::Int32,
        validate: false,
    }
}

fn sparse(size: &[u64]) -> FeatureSpec {
    FeatureSpec::Sparse {
        index_keys: ["i", "j"][..size.len()].iter().map(|&key| key.into()).collect(),
        value_key: "values".into(),
        dtype: DType::Bytes,
        size: size.to_vec(),
        already_sorted: false,
    }
}

fn strings(n: usize) -> FeatureBuf {
    FeatureBuf::Bytes(vec![MARKER.into(); n])
}

pub(crate) fn ints<const N: usize>(values: [i64; N]) -> FeatureBuf {
    values.into()
}

/// A schema with several columns around the one that fails.
fn schema(name: &str, spec: FeatureSpec) -> Schema {
    Schema::example()
        .feature("another", FeatureSpec::var_len(DType::Bytes))
        .feature(name, spec)
        .feature("zz", FeatureSpec::fixed_len(&[], DType::Int64))
        .build()
        .unwrap()
}

pub(crate) struct Case {
    pub(crate) schema: Schema,
    pub(crate) good: Vec<u8>,
    pub(crate) bad: Vec<u8>,
    pub(crate) category: Category,
    pub(crate) feature: Option<&'static str>,
    pub(crate) step: Option<usize>,
    pub(crate) message_parts: &'static [&'static str],
}

fn case(name: &'static str, spec: FeatureSpec, good: Features, bad: Features) -> Case {
    let around = |mut features: Features| {
        features.extend([("zz", ints([1])), ("another", strings(2))]);
        example(features)
    };
    Case {
        schema: schema(name, spec),
        good: around(good),
        bad: around(bad),
        category: Category::KindMismatch,
        feature: Some(name),
        step: None,
        message_parts: &[],
    }
}

impl Case {
    fn fails_with(self, category: Category, message_parts: &'static [&'static str]) -> Case {
        Case { category, message_parts, ..self }
    }

    fn with_feature(self, feature: &'static str) -> Case {
        Case { feature: Some(feature), ..self }
    }

    fn with_step(self, step: usize) -> Case {
        Case { step: Some(step), ..self }
    }
}

pub(crate) fn example_cases() -> Vec<Case> {
    use Category::*;
    let fixed = || FeatureSpec::fixed_len(&[2], DType::Int64);
    let good = || vec![("x", ints([1, 2]))];
    let floats = || FeatureBuf::from([1.0f32, 2.0]);
    let mut cases = vec![
        case("x", fixed(), good(), vec![("x", strings(2))])
            .fails_with(KindMismatch, &["expected int64", "found bytes"]),
        case("x", fixed(), good(), vec![("x", floats())])
            .fails_with(KindMismatch, &["expected int64", "found float"]),
        case("x", fixed(), good(), vec![("x", ints([1, 2, 3]))])
            .fails_with(CountMismatch, &["expected 2 values", "found 3"]),
        case("x", fixed(), good(), vec![("x", ints([]))])
            .fails_with(CountMismatch, &["expected 2 values", "found 0"]),
        case("x", fixed(), good(), vec![]).fails_with(MissingFeature, &["expected int64", "no such feature"]),
        case("label", fixed(), vec![("label", ints([1, 2]))], vec![("lable", ints([1, 2]))]).fails_with(
            MissingFeature,
            &["no such feature; other records have it: a default, or an optional feature"],
        ),
        case("x", fixed(), good(), vec![("x", FeatureBuf::None)])
            .fails_with(MissingFeature, &["expected int64", "it is there without a kind"]),
        case("x", FeatureSpec::optional(DType::Int64), vec![("x", ints([1]))], good())
            .fails_with(CountMismatch, &["expected at most 1 value", "found 2"]),
        case("x", FeatureSpec::optional(DType::Int64).with_default([7]), vec![], good())
            .fails_with(CountMismatch, &["expected at most 1 value", "found 2"]),
        case("x", FeatureSpec::optional(DType::Float32), vec![], vec![("x", strings(0))])
            .fails_with(KindMismatch, &["expected float", "found bytes"]),
        case("x", FeatureSpec::var_len(DType::Int64), good(), vec![("x", strings(1))])
            .fails_with(KindMismatch, &["expected int64", "found bytes"]),
        case("x", FeatureSpec::ragged(DType::Float32), vec![], good())
            .fails_with(KindMismatch, &["expected float", "found int64"]),
        case("x", FeatureSpec::fixed_len_sequence(&[2, 3], DType::Int64), vec![], good())
            .fails_with(CountMismatch, &["expected a multiple of 6 values", "found 2"]),
        case("x", FeatureSpec::fixed_len_sequence(&[2], DType::Int64), good(), vec![("x", floats())])
            .fails_with(KindMismatch, &["expected int64", "found float"]),
    ];
    // Columns of several features.
    let column = |spec, index: Features, bad: Features| {
        let with_values = |mut features: Features| {
            if !features.iter().any(|(key, _)| *key == "values") {
                features.push(("values", strings(3)));
            }
            features
        };
        case("column", spec, with_values(index), with_values(bad))
    };
    let p = || String::from("p");
    let partitions: Vec<(Partition, FeatureBuf, Vec<FeatureBuf>)> = vec![
        (
            Partition::RowSplits(p()),
            ints([0, 1, 3]),
            vec![ints([1, 3]), ints([0, 2, 1, 3]), ints([0, 2]), ints([0, 4]), ints([0, -1, 3])],
        ),
        (
            Partition::RowLengths(p()),
            ints([1, 2]),
            vec![ints([1, 1]), ints([2, 2]), ints([4, -1]), ints([i64::MAX, i64::MAX]), ints([])],
        ),
        (Partition::RowStarts(p()), ints([0, 1]), vec![ints([1]), ints([0, 4]), ints([0, 2, 1]), ints([])]),
        (
            Partition::RowLimits(p()),
            ints([1, 3]),
            vec![ints([1, 2]), ints([3, 2, 3]), ints([4]), ints([-1, 3])],
        ),
        (
            Partition::ValueRowIds(p()),
            ints([0, 0, 1]),
            vec![ints([0, 1]), ints([0, 1, 0]), ints([-1, 0, 1]), ints([0, 0, 1, 1])],
        ),
    ];
    for (partition, good, bads) in partitions {
        for bad in bads {
            let name: &[&str] = match &partition {
                Partition::RowSplits(_) => &["row_splits must", "expected ", "found "],
                Partition::RowLengths(_) => &["row_lengths must", "expected ", "found "],
                Partition::RowStarts(_) => &["row_starts", "expected ", "found "],
                Partition::RowLimits(_) => &["row_limits must", "expected ", "found "],
                _ => &["value_rowids must", "expected ", "found "],
            };
            cases.push(
                column(ragged(partition.clone()), vec![("p", good.clone())], vec![("p", bad)])
                    .fails_with(BadPartition, name),
            );
        }
        cases.push(
            column(ragged(partition), vec![("p", good)], vec![("p", strings(1))])
                .fails_with(KindMismatch, &["expected int64", "found bytes"])
                .with_feature("p"),
        );
    }
    cases.push(
        column(ragged(Partition::UniformRowLength(3)), vec![], vec![("values", strings(4))])
            .fails_with(BadPartition, &["uniform_row_length must", "expected 3", "found 4"]),
    );
    let sparse_good = || vec![("i", ints([3, 0, 1])), ("j", ints([1, 1, 1]))];
    let sparse_bad = |i, j| vec![("i", i), ("j", j)];
    let pairs = [
        (sparse_bad(ints([3, 0]), ints([1, 1, 1])), &["expected 3 indices", "found 2"][..]),
        (sparse_bad(ints([3, 0, 1]), ints([])), &["expected 3 indices", "found 0"][..]),
        (sparse_bad(ints([3, 4, 1]), ints([1, 1, 1])), &["below 4", "found 4"][..]),
        (sparse_bad(ints([3, 0, 1]), ints([1, 1, -1])), &["below 2", "found -1"][..]),
    ];
    for (bad, message_parts) in pairs {
        cases.push(column(sparse(&[4, 2]), sparse_good(), bad).fails_with(BadSparseIndex, message_parts));
    }
    cases.push(
        column(sparse(&[4, 2]), sparse_good(), sparse_bad(ints([1, 1, 1]), strings(3)))
            .fails_with(KindMismatch, &["expected int64", "found bytes"])
            .with_feature("j"),
    );
    cases.push(
        column(sparse(&[4, 2]), sparse_good(), vec![("values", ints([1]))])
            .fails_with(KindMismatch, &["expected bytes", "found int64"])
            .with_feature("values"),
    );
    // More rows than any memory could hold.
    cases.push(
        column(
            ragged(Partition::ValueRowIds(p())),
            vec![("p", ints([0, 0, 1]))],
            vec![("p", ints([0, 0, 1 << 40]))],
        )
        .fails_with(TooLarge, &["expected at most", "bytes, found"]),
    );
    cases.extend(array_cases());
    // A truncated payload, and a truncated value inside intact enclosing messages.
    let cut = case("x", fixed(), good(), good());
    let bad = cut.bad[..cut.bad.len() - 3].to_vec();
    cases.push(
        Case { bad, feature: None, ..cut }
            .fails_with(MalformedProto, &["malformed message at payload byte", "length"]),
    );
    let inside = case("x", FeatureSpec::var_len(DType::Int64), vec![("x", ints([5, 300]))], vec![]);
    let mut bad = inside.good.clone();
    let at = bad.windows(3).position(|bytes| bytes == [5, 0xac, 0x02]).unwrap();
    bad[at + 2] = 0x82;
    cases.push(
        Case { bad, ..inside }.fails_with(MalformedProto, &["malformed message at payload byte", "varint"]),
    );
    cases
}

/// Arrays in byte strings: of other lengths, types and shapes.
fn array_cases() -> Vec<Case> {
    use Category::*;
    let string = |bytes: Vec<u8>| vec![("x", FeatureBuf::Bytes(vec![bytes]))];
    let tensor = |values: &[i32], shape: &[u64]| string(serialize_values(shape, values).unwrap());
    let fixed = || FeatureSpec::raw(&[Some(2), Some(3)], TensorDType::UInt16);
    let open = || FeatureSpec::raw(&[None, Some(3)], TensorDType::UInt16);
    let of = || FeatureSpec::Tensor { dtype: TensorDType::Int32, shape: vec![Some(2), Some(2)] };
    let rows = || FeatureSpec::Tensor { dtype: TensorDType::Int32, shape: vec![None, Some(2)] };
    let good = || tensor(&[1, 2, 3, 4], &[2, 2]);
    let mut cut = serialize_values(&[2, 2], &[1, 2, 3, 4]).unwrap();
    cut.pop();
    // Two elements, and a content of three.
    let mut content = serialize_values(&[3], &[1, 2, 3]).unwrap();
    let at = content.windows(2).rposition(|bytes| bytes == [8, 3]).unwrap();
    content[at + 1] = 2;
    let two = || FeatureSpec::Tensor { dtype: TensorDType::Int32, shape: vec![Some(2)] };
    // A shape without values, which TensorFlow reads as zeros.
    let empty = vec![8, 3, 18, 4, 18, 2, 8, 2];
    let cases: Vec<(FeatureSpec, Features, Features, Category, &'static [&'static str])> = vec![
        (
            fixed(),
            string(vec![0; 12]),
            string(vec![0; 11]),
            CountMismatch,
            &["expected 12 bytes", "found 11"],
        ),
        (fixed(), string(vec![0; 12]), string(vec![]), CountMismatch, &["expected 12 bytes", "found 0"]),
        (
            open(),
            string(vec![0; 6]),
            string(vec![0; 15]),
            CountMismatch,
            &["multiple of 6 bytes", "found 15"],
        ),
        (fixed(), string(vec![0; 12]), vec![], MissingFeature, &["expected string", "no such feature"]),
        (fixed(), string(vec![0; 12]), vec![("x", strings(2))], CountMismatch, &["1 value", "found 2"]),
        (fixed(), string(vec![0; 12]), vec![("x", ints([1]))], KindMismatch, &["expected bytes", "int64"]),
        (
            of(),
            good(),
            tensor(&[1; 4], &[4]),
            CountMismatch,
            &["expected a tensor of 2 dimensions", "found 1"],
        ),
        (of(), good(), tensor(&[1; 6], &[2, 3]), CountMismatch, &["size 2 in dimension 1", "found 3"]),
        (rows(), good(), tensor(&[1; 6], &[2, 3]), CountMismatch, &["size 2 in dimension 1", "found 3"]),
        (
            of(),
            good(),
            string(serialize_values(&[2, 2], &[1u32; 4]).unwrap()),
            KindMismatch,
            &["expected a tensor of int32", "found uint32"],
        ),
        (of(), good(), string(cut), MalformedProto, &["malformed message at payload byte", "length"]),
        (two(), tensor(&[1, 2], &[2]), string(content), CountMismatch, &["expected 8 bytes", "found 12"]),
        (two(), tensor(&[1, 2], &[2]), string(empty), CountMismatch, &["expected 2 values", "found 0"]),
    ];
    let made = cases.into_iter().map(|(spec, good, bad, category, message_parts)| {
        case("x", spec, good, bad).fails_with(category, message_parts)
    });
    made.collect()
}

pub(crate) fn sequence_cases() -> Vec<Case> {
    use Category::*;
    let schema = Schema::sequence_example()
        .feature("n", FeatureSpec::fixed_len(&[], DType::Int64))
        .feature_list(
            "dense",
            FeatureSpec::FixedLenSequence {
                shape: vec![2],
                dtype: DType::Int64,
                allow_missing: false,
                default: None,
            },
        )
        .feature_list("strings", FeatureSpec::var_len(DType::Bytes))
        .feature_list("column", ragged(Partition::RowLengths("p".into())))
        .build()
        .unwrap();
    let n = || vec![("n", ints([1]))];
    let lists = || {
        vec![
            ("dense", vec![ints([1, 2]), ints([3, 4]), ints([5, 6])]),
            ("strings", vec![strings(1), strings(2)]),
            ("values", vec![strings(2), strings(1)]),
            ("p", vec![ints([2]), ints([1, 0])]),
        ]
    };
    let with = |key: &'static str, steps: Option<Vec<FeatureBuf>>| {
        let mut lists = lists();
        lists.retain(|(other, _)| *other != key);
        lists.extend(steps.map(|steps| (key, steps)));
        sequence(n(), lists)
    };
    let case = |bad: Vec<u8>, feature| Case {
        schema: schema.clone(),
        good: sequence(n(), lists()),
        bad,
        category: KindMismatch,
        feature: Some(feature),
        step: None,
        message_parts: &[],
    };
    vec![
        case(sequence(vec![], lists()), "n")
            .fails_with(MissingFeature, &["expected int64", "no such feature"]),
        case(sequence(vec![("n", strings(1))], lists()), "n")
            .fails_with(KindMismatch, &["expected int64", "found bytes"]),
        case(sequence(vec![("n", FeatureBuf::None)], lists()), "n")
            .fails_with(CountMismatch, &["expected 1 value", "found 0"]),
        case(with("dense", None), "dense").fails_with(MissingFeature, &["expected int64", "no such feature"]),
        case(with("dense", Some(vec![ints([1, 2]), ints([1])])), "dense")
            .fails_with(CountMismatch, &["expected 2 values", "found 1"])
            .with_step(1),
        case(with("dense", Some(vec![ints([1, 2]), ints([1, 2]), strings(2)])), "dense")
            .fails_with(KindMismatch, &["expected int64", "found bytes"])
            .with_step(2),
        case(with("strings", Some(vec![strings(1), ints([1])])), "strings")
            .fails_with(KindMismatch, &["expected bytes", "found int64"])
            .with_step(1),
        case(with("p", Some(vec![ints([2]), ints([2, 0])])), "column")
            .fails_with(BadPartition, &["row_lengths must", "expected 1", "found 2"])
            .with_step(1),
        case(with("p", Some(vec![ints([2])])), "column")
            .fails_with(BadPartition, &["same number of steps", "expected 2", "found 1"]),
        case(with("p", Some(vec![strings(2), ints([1])])), "p")
            .fails_with(KindMismatch, &["expected int64", "found bytes"])
            .with_step(0),
    ]
}
