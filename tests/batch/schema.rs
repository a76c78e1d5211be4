//! Schemas: JSON, inference from records, and generated code.

use tfseek::error::Category;
use tfseek::example::ExampleBuilder;
use tfseek::example::{KindGuess, MessageKind};
use tfseek::schema::{Crop, ImageSpec, Inference, Partition, Resize, SplitsDType, code};
use tfseek::{DType, FeatureBuf, FeatureSpec, Schema, SequenceExampleBuilder, TensorDType};
use tfseek_testkit::rng::Rng;

/// Returns a random schema that may use every option.
fn any_schema(rng: &mut Rng) -> Schema {
    let sequence = rng.chance(128);
    let mut builder = if sequence { Schema::sequence_example() } else { Schema::example() };
    for k in 0..rng.below(6) {
        let name = any_name(rng, k);
        let spec = any_spec(rng, sequence, false, &name);
        builder = builder.feature(name, spec);
    }
    for k in 0..if sequence { rng.below(4) } else { 0 } {
        let name = any_name(rng, k);
        let spec = any_spec(rng, sequence, true, &name);
        builder = builder.feature_list(name, spec);
    }
    builder.build().unwrap()
}

/// Returns unique names, some of which need escapes.
fn any_name(rng: &mut Rng, k: usize) -> String {
    format!(
        "{k}{}",
        rng.pick(&[
            "",
            "a",
            "\"quoted\"",
            "back\\slash",
            "line\nend\t\0\u{7f}",
            "größe",
            "\u{1f40e}",
            "\u{2028}"
        ])
    )
}

fn any_shape(rng: &mut Rng) -> Vec<usize> {
    (0..rng.below(4)).map(|_| 1 + rng.below(3)).collect()
}

fn any_values(rng: &mut Rng, dtype: DType, count: usize) -> FeatureBuf {
    match dtype {
        DType::Bytes => {
            let odd: [&[u8]; 6] = [b"", b"text", b"\xff\x00", "größe".as_bytes(), b"\"\\\n", b"\xed\xa0\x80"];
            FeatureBuf::Bytes((0..count).map(|_| rng.pick(&odd).to_vec()).collect())
        }
        DType::Float32 => FeatureBuf::Float(
            (0..count)
                .map(|_| match rng.below(3) {
                    0 => f32::from_bits(rng.u64() as u32),
                    1 => rng.pick(&[0.0, -0.0, 0.1, 1e30, f32::MAX, f32::INFINITY, 1e-45, 16777217.0]),
                    _ => rng.below(1000) as f32 / 8.0,
                })
                .collect(),
        ),
        DType::Int64 => FeatureBuf::Int64(
            (0..count).map(|_| rng.pick(&[0, -1, i64::MIN, i64::MAX, 1 << 53 | 1])).collect(),
        ),
    }
}

fn any_spec(rng: &mut Rng, sequence: bool, list: bool, name: &str) -> FeatureSpec {
    let dtype = rng.pick(&[DType::Bytes, DType::Float32, DType::Int64]);
    let shape = any_shape(rng);
    let default = rng.chance(128);
    match rng.below(8) {
        5 if !list => any_array(rng),
        6 if !list => FeatureSpec::Image(any_image(rng)),
        0 if !list => {
            let count = shape.iter().product();
            FeatureSpec::FixedLen { shape, dtype, default: default.then(|| any_values(rng, dtype, count)) }
        }
        1 if list || !sequence => FeatureSpec::FixedLenSequence {
            shape,
            dtype,
            allow_missing: !list || rng.chance(128),
            default: (!list && default).then(|| any_values(rng, dtype, 1)),
        },
        2 => FeatureSpec::Ragged {
            dtype,
            value_key: rng.chance(128).then(|| format!("values of {name}")),
            partitions: (0..rng.below(4))
                .map(|k| {
                    let key = format!("{name}/{k}");
                    match rng.below(6) {
                        0 => Partition::RowSplits(key),
                        1 => Partition::RowLengths(key),
                        2 => Partition::RowStarts(key),
                        3 => Partition::RowLimits(key),
                        4 => Partition::ValueRowIds(key),
                        _ => Partition::UniformRowLength(1 + rng.below(9)),
                    }
                })
                .collect(),
            row_splits_dtype: rng.pick(&[SplitsDType::Int32, SplitsDType::Int64]),
            validate: rng.chance(128),
        },
        3 if !sequence => {
            let rank = 1 + rng.below(3);
            FeatureSpec::Sparse {
                index_keys: (0..rank).map(|k| format!("{name}/index{k}")).collect(),
                value_key: format!("{name}/value"),
                dtype,
                size: (0..rank).map(|_| rng.pick(&[0, 7, 1 << 40, i64::MAX as u64])).collect(),
                already_sorted: rng.chance(128),
            }
        }
        4 if !list => FeatureSpec::Optional { dtype, default: default.then(|| any_values(rng, dtype, 1)) },
        _ => FeatureSpec::var_len(dtype),
    }
}

fn any_image(rng: &mut Rng) -> ImageSpec {
    let crop = rng.pick(&[None, Some(Crop::Center), Some(Crop::RandomResized)]);
    let resize = rng.pick(&[None, Some(Resize::Bilinear), Some(Resize::Area)]);
    let size = [1 + rng.below(500) as u32, 1 + rng.below(500) as u32];
    ImageSpec {
        size: (crop.is_some() || rng.chance(128)).then_some(size),
        channels: rng.pick(&[1, 3, 4]),
        resize: if crop == Some(Crop::RandomResized) { Some(Resize::Area) } else { resize },
        crop,
        crop_with: rng.chance(128).then(|| any_name(rng, 0)),
        dtype: rng.pick(&[TensorDType::UInt8, TensorDType::UInt16]),
    }
}

fn any_array(rng: &mut Rng) -> FeatureSpec {
    let open = rng.chance(64);
    let sizes = any_shape(rng).into_iter().map(Some);
    let shape: Vec<_> = open.then_some(None).into_iter().chain(sizes).collect();
    let dtype =
        rng.pick(&[TensorDType::Bool, TensorDType::UInt8, TensorDType::BFloat16, TensorDType::Complex128]);
    match rng.below(2) {
        0 => FeatureSpec::Tensor { dtype, shape },
        _ => FeatureSpec::Raw { dtype, shape, little_endian: rng.pick(&[true, false]) },
    }
}

#[test]
fn json_round_trips() {
    for seed in 0..5_000 {
        let schema = any_schema(&mut Rng::new(seed));
        let json = schema.to_json();
        let again = Schema::from_json(&json).unwrap_or_else(|e| panic!("seed {seed}: {e}\n{json}"));
        assert_eq!(again, schema, "seed {seed}: {json}");
        assert_eq!(again.to_json(), json, "seed {seed}");
    }
}

/// The exact printed form.
#[test]
fn json_is_pretty_printed() {
    let image = ImageSpec { size: Some([4, 6]), crop: Some(Crop::Center), ..ImageSpec::default() };
    let schema = Schema::example()
        .feature("b", FeatureSpec::fixed_len(&[2, 1], DType::Float32).with_default([0.1f32, f32::NAN]))
        .feature("a", FeatureSpec::fixed_len(&[], DType::Bytes).with_default(vec![vec![0xff]]))
        .feature("c", FeatureSpec::sparse(&["i"], "v", DType::Int64, &[10]))
        .feature("d", FeatureSpec::fixed_len_sequence(&[], DType::Bytes).with_default(["-"]))
        .feature("e", FeatureSpec::optional(DType::Int64))
        .feature("f", FeatureSpec::optional(DType::Float32).with_default([0.5f32]))
        .feature("g", FeatureSpec::raw(&[Some(2), Some(3)], TensorDType::UInt16))
        .feature("h", FeatureSpec::tensor(&[None, Some(3)], TensorDType::BFloat16))
        .feature("j", FeatureSpec::Image(image))
        .build()
        .unwrap();
    let json = r#"{
  "features": {
    "a": {"default": {"hex": "ff"}, "dtype": "string", "shape": [], "type": "fixed"},
    "b": {"default": [[0.1], [{"f32": "7fc00000"}]], "dtype": "float32", "shape": [2, 1], "type": "fixed"},
    "c": {"already_sorted": false, "dtype": "int64", "index_key": "i", "size": 10, "type": "sparse", "value_key": "v"},
    "d": {"allow_missing": true, "default": "-", "dtype": "string", "shape": [], "type": "fixed_sequence"},
    "e": {"dtype": "int64", "type": "optional"},
    "f": {"default": 0.5, "dtype": "float32", "type": "optional"},
    "g": {"byte_order": "little", "dtype": "uint16", "shape": [2, 3], "type": "raw"},
    "h": {"dtype": "bfloat16", "shape": [null, 3], "type": "tensor"},
    "j": {"channels": 3, "crop": "center", "crop_with": null, "dtype": "uint8", "resize": "bilinear", "size": [4, 6], "type": "image"}
  }
}
"#;
    assert_eq!(schema.to_json(), json);
    let empty = Schema::sequence_example().build().unwrap();
    assert_eq!(empty.to_json(), "{\n  \"context\": {},\n  \"sequence\": {}\n}\n");
}

/// Parses one feature `x` of an Example schema.
fn parse_one_spec(spec: &str) -> tfseek::Result<FeatureSpec> {
    let schema = Schema::from_json(&format!("{{\"features\": {{\"x\": {spec}}}}}"))?;
    Ok(schema.features()["x"].clone())
}

#[test]
fn omitted_fields_have_tensorflows_defaults() {
    assert_eq!(
        parse_one_spec(r#"{"type": "ragged", "dtype": "bytes"}"#).unwrap(),
        FeatureSpec::ragged(DType::Bytes)
    );
    assert_eq!(
        parse_one_spec(r#"{"type": "sparse", "dtype": "int64", "index_key": ["i", "j"], "value_key": "v", "size": [2, 3]}"#).unwrap(),
        FeatureSpec::sparse(&["i", "j"], "v", DType::Int64, &[2, 3])
    );
    assert_eq!(
        parse_one_spec(r#"{"type": "fixed", "dtype": "int64", "shape": [2], "default": null}"#).unwrap(),
        FeatureSpec::fixed_len(&[2], DType::Int64)
    );
    assert_eq!(
        parse_one_spec(r#"{"type": "optional", "dtype": "int64"}"#).unwrap(),
        FeatureSpec::optional(DType::Int64)
    );
    // An omitted part has no features.
    let schema = Schema::from_json(r#"{"sequence": {"f": {"type": "varlen", "dtype": "int64"}}}"#).unwrap();
    assert!(schema.is_sequence() && schema.features().is_empty() && schema.feature_lists().len() == 1);
}

#[test]
fn defaults() {
    let fixed = |shape: &str, dtype: &str, default: &str| {
        parse_one_spec(&format!(
            r#"{{"type": "fixed", "dtype": "{dtype}", "shape": {shape}, "default": {default}}}"#
        ))
    };
    let of = |shape: &[usize], dtype, values: FeatureBuf| {
        FeatureSpec::fixed_len(shape, dtype).with_default(values)
    };
    assert_eq!(fixed("[]", "int64", "-7").unwrap(), of(&[], DType::Int64, [-7].into()));
    assert_eq!(fixed("[1]", "int64", "[7]").unwrap(), of(&[1], DType::Int64, [7].into()));
    // Defaults may be flat or nested like the shape.
    for list in ["[1, 2, 3, 4, 5, 6]", "[[1, 2], [3, 4], [5, 6]]"] {
        assert_eq!(
            fixed("[3, 2]", "int64", list).unwrap(),
            of(&[3, 2], DType::Int64, [1, 2, 3, 4, 5, 6].into())
        );
    }
    let floats = [1.0, 0.1, f32::from_bits(0x7fc0_0001)];
    assert_eq!(
        fixed("[3]", "float32", r#"[1, 0.1, {"f32": "7FC00001"}]"#).unwrap(),
        of(&[3], DType::Float32, floats.into())
    );
    assert_eq!(
        fixed("[2]", "string", r#"["\u00fc", {"hex": "00fF"}]"#).unwrap(),
        of(&[2], DType::Bytes, vec!["ü".into(), vec![0, 0xff]].into())
    );
    for (shape, dtype, default, words) in [
        (
            "[3, 2]",
            "int64",
            "[[1, 2, 3], [4, 5, 6]]",
            "default: expected a list of 3 for the shape [3, 2], found a list of 2",
        ),
        (
            "[3, 2]",
            "int64",
            "[[1, 2], [3, 4], 5]",
            "default: expected a list of 2 for the shape [3, 2], found 5",
        ),
        ("[1]", "int64", "[[1]]", "default: lists are nested deeper than the shape [1]"),
        ("[3, 2]", "int64", "[1, 2]", "default: expected 6 values for the shape [3, 2], found 2"),
        ("[2]", "int64", "1", "default: expected 2 values for the shape [2], found 1"),
        ("[]", "int64", "1.0", "default: expected an integer, found 1.0"),
        ("[]", "int64", "true", "default: expected an integer, found true"),
        ("[]", "int64", "9223372036854775808", "default: 9223372036854775808 is out of range"),
        ("[]", "float32", "1e39", "default: 1e39 does not fit into a float32"),
        ("[]", "float32", "\"nan\"", "default: expected a number or {\"f32\": ..}, found \"nan\""),
        ("[]", "float32", r#"{"f32": "+7c00000"}"#, "default: expected the 8 hex digits"),
        ("[]", "float32", r#"{"f32": "7fc00000", "hex": ""}"#, "default: expected a number or"),
        ("[]", "string", "3", "default: expected a string or {\"hex\": ..}, found 3"),
        ("[]", "string", r#"{"hex": "abc"}"#, "default: expected hex digits in pairs, found \"abc\""),
        ("[]", "string", r#"{"hex": "zz"}"#, "default: expected hex digits in pairs"),
    ] {
        refused(fixed(shape, dtype, default), words);
    }
}

#[track_caller]
fn refused<T: std::fmt::Debug>(found: tfseek::Result<T>, words: &str) {
    let e = found.expect_err(words);
    assert_eq!(e.category(), Some(Category::BadSpec));
    assert_eq!(e.location().feature.as_deref(), Some("x"), "{e}");
    assert!(e.to_string().contains(words), "no {words:?} in {e}");
}

#[test]
fn each_field_is_validated() {
    for (spec, words) in [
        ("7", "expected an object with a \"type\", found 7"),
        ("{}", "type is missing"),
        (r#"{"type": 1}"#, "type: expected a string, found 1"),
        (r#"{"type": "dense"}"#, "found \"dense\""),
        (r#"{"type": "varlen"}"#, "dtype is missing"),
        (
            r#"{"type": "varlen", "dtype": "int32"}"#,
            "dtype: expected float32, int64 or string, found \"int32\"",
        ),
        (r#"{"type": "varlen", "dtype": "int64", "shape": []}"#, "varlen has no field \"shape\""),
        (r#"{"type": "fixed", "dtype": "int64", "shpae": []}"#, "fixed has no field \"shpae\""),
        (r#"{"type": "optional"}"#, "dtype is missing"),
        (r#"{"type": "optional", "dtype": "int64", "shape": []}"#, "optional has no field \"shape\""),
        (
            r#"{"type": "optional", "dtype": "int64", "default": [1, 2]}"#,
            "default: expected one value for an optional, found 2",
        ),
        (
            r#"{"type": "optional", "dtype": "int64", "default": []}"#,
            "default: expected one value for an optional, found 0",
        ),
        (r#"{"type": "optional", "dtype": "int64", "default": "a"}"#, "default: expected an integer"),
        (r#"{"type": "fixed", "dtype": "int64"}"#, "shape is missing"),
        (r#"{"type": "fixed", "dtype": "int64", "shape": 3}"#, "shape: expected a list, found 3"),
        (r#"{"type": "fixed", "dtype": "int64", "shape": [-1]}"#, "shape: -1 is out of range"),
        (r#"{"type": "fixed", "dtype": "int64", "shape": [null]}"#, "shape: expected an integer, found null"),
        (
            r#"{"type": "fixed", "dtype": "int64", "shape": [2147483648, 2147483648]}"#,
            "shape: expected fewer than 2^62 elements, found [",
        ),
        (r#"{"type": "fixed_sequence", "dtype": "int64", "shape": []}"#, "allow_missing"),
        (r#"{"type": "fixed_sequence", "dtype": "int64", "shape": [], "allow_missing": 1}"#, "found 1"),
        (
            r#"{"type": "fixed_sequence", "dtype": "int64", "shape": [2], "allow_missing": true, "default": [0, 0]}"#,
            "default: expected one value, the padding of a fixed_sequence, found 2",
        ),
        (r#"{"type": "ragged", "dtype": "int64", "value_key": 1}"#, "value_key: expected a string, found 1"),
        (r#"{"type": "ragged", "dtype": "int64", "partitions": {}}"#, "partitions: expected a list"),
        (r#"{"type": "ragged", "dtype": "int64", "partitions": ["a"]}"#, "partitions: expected objects"),
        (r#"{"type": "ragged", "dtype": "int64", "partitions": [{"kind": "rows", "key": "k"}]}"#, "\"rows\""),
        (
            r#"{"type": "ragged", "dtype": "int64", "partitions": [{"kind": "row_splits"}]}"#,
            "partitions: key is missing",
        ),
        (
            r#"{"type": "ragged", "dtype": "int64", "partitions": [{"kind": "row_splits", "key": "k", "length": 1}]}"#,
            "partitions: row_splits has no field \"length\"",
        ),
        (
            r#"{"type": "ragged", "dtype": "int64", "partitions": [{"kind": "uniform_row_length", "length": 0.5}]}"#,
            "partitions: length: expected an integer, found 0.5",
        ),
        (
            r#"{"type": "ragged", "dtype": "int64", "row_splits_dtype": "int16"}"#,
            "row_splits_dtype: expected int32",
        ),
        (r#"{"type": "ragged", "dtype": "int64", "validate": "yes"}"#, "validate: expected true or false"),
        (r#"{"type": "sparse", "dtype": "int64", "value_key": "v", "size": 1}"#, "index_key is missing"),
        (
            r#"{"type": "sparse", "dtype": "int64", "value_key": "v", "index_key": ["i"], "size": [1, 2]}"#,
            "found 1 index keys and 2 sizes",
        ),
        (
            r#"{"type": "sparse", "dtype": "int64", "value_key": "v", "index_key": "i", "size": 1e3}"#,
            "size: expected an integer, found 1000.0",
        ),
        (
            r#"{"type": "raw", "dtype": "string", "shape": []}"#,
            "dtype: expected bool or a type of numbers, such as uint8 or float32, found \"string\"",
        ),
        (r#"{"type": "tensor", "dtype": "int4", "shape": []}"#, "found \"int4\""),
        (r#"{"type": "raw", "dtype": "int8"}"#, "shape is missing"),
        (r#"{"type": "raw", "dtype": "int8", "shape": ["a"]}"#, "shape: expected an integer, found \"a\""),
        (r#"{"type": "raw", "dtype": "int8", "shape": [2, null]}"#, "as the first only"),
        (
            r#"{"type": "raw", "dtype": "int8", "shape": [], "byte_order": "network"}"#,
            "byte_order: expected little or big, found \"network\"",
        ),
        (
            r#"{"type": "tensor", "dtype": "int8", "shape": [], "byte_order": "big"}"#,
            "tensor has no field \"byte_order\"",
        ),
        (r#"{"type": "image", "size": [4]}"#, "size: expected height and width, found [4]"),
        (r#"{"type": "image", "size": [0, 4]}"#, "size: expected 1 to 100000000 pixels, found 0 x 4"),
        (r#"{"type": "image", "channels": 2}"#, "channels: expected 1, 3 or 4, found 2"),
        (r#"{"type": "image", "resize": "cubic"}"#, "resize: expected bilinear or area, found \"cubic\""),
        (r#"{"type": "image", "crop": "left"}"#, "crop: expected center or random_resized, found \"left\""),
        (r#"{"type": "image", "crop": "center"}"#, "crop: a crop requires a size"),
        (
            r#"{"type": "image", "size": [4, 4], "crop": "random_resized", "resize": null}"#,
            "crop: random_resized requires a resize",
        ),
        (r#"{"type": "image", "dtype": "int8"}"#, "dtype: expected uint8 or uint16, found int8"),
        (r#"{"type": "image", "crop_with": ""}"#, "crop_with: expected a name, found an empty string"),
    ] {
        refused(parse_one_spec(spec), words);
    }
}

/// On 32-bit systems a dimension cannot be that long.
#[test]
#[cfg(target_pointer_width = "64")]
fn shapes_and_row_lengths_are_below_2_to_62() {
    let most = (1u64 << 62) - 1;
    for kind in ["fixed", "fixed_sequence"] {
        let of_shape = |shape: &str| {
            let missing = if kind == "fixed_sequence" { r#", "allow_missing": true"# } else { "" };
            parse_one_spec(&format!(r#"{{"type": "{kind}", "dtype": "int64", "shape": {shape}{missing}}}"#))
        };
        of_shape(&format!("[{most}]")).unwrap();
        for (shape, words) in [
            ("[4611686018427387904]", "shape: expected dimensions below 2^62, found 4611686018427387904"),
            ("[4611686018427387904, 0]", "shape: expected dimensions below 2^62"),
            ("[18446744073709551615]", "shape: expected dimensions below 2^62"),
            ("[2147483648, 2147483648]", "shape: expected fewer than 2^62 elements, found ["),
        ] {
            refused(of_shape(shape), words);
        }
    }
    let of_length = |length: u64| {
        let partitions = format!(r#"[{{"kind": "uniform_row_length", "length": {length}}}]"#);
        parse_one_spec(&format!(r#"{{"type": "ragged", "dtype": "int64", "partitions": {partitions}}}"#))
    };
    of_length(most).unwrap();
    refused(
        of_length(most + 1),
        "uniform_row_length: expected a length below 2^62, found 4611686018427387904",
    );
    // Sparse sizes may use the full range of their type, as in TensorFlow.
    let of_size = |size: u64| {
        let size = format!(r#""index_key": "i", "value_key": "v", "size": {size}"#);
        parse_one_spec(&format!(r#"{{"type": "sparse", "dtype": "int64", {size}}}"#))
    };
    of_size(i64::MAX as u64).unwrap();
    refused(of_size(1 << 63), "does not fit into an int64");
}

#[test]
fn top_level_object_is_validated() {
    let f = r#"{"type": "varlen", "dtype": "int64"}"#;
    for (json, words) in [
        (String::new(), "not JSON"),
        ("{".to_owned(), "line 1 column 1"),
        ("[]".to_owned(), "found a list"),
        ("{}".to_owned(), "found none of them"),
        (format!("{{\"label\": {f}}}"), "found \"label\""),
        (format!("{{\"features\": {{}}, \"x\": {f}}}"), "found \"x\""),
        ("{\"features\": {}, \"context\": {}}".to_owned(), "found both"),
        ("{\"features\": 1}".to_owned(), "features: expected an object of feature specs, found 1"),
        ("{\"context\": null}".to_owned(), "context: expected an object"),
        (format!("{{\"features\": {{\"x\": {f}, \"x\": {f}}}}}"), "\"x\" is given twice"),
        ("[".repeat(100_000), "recursion limit"),
    ] {
        let e = Schema::from_json(&json).expect_err(&json);
        assert_eq!(e.category(), Some(Category::BadSpec));
        assert!(e.to_string().contains(words), "no {words:?} in {e}");
    }
}

/// Detects the record kind and infers a schema.
fn infer(payloads: &[impl AsRef<[u8]>]) -> tfseek::Result<Schema> {
    let mut guess = KindGuess::default();
    payloads.iter().for_each(|payload| guess.add(payload.as_ref()));
    let mut seen = Inference::new(guess.kind())?;
    payloads.iter().try_for_each(|payload| seen.add(payload.as_ref()))?;
    seen.schema()
}

fn inferred(payloads: &[Vec<u8>]) -> Schema {
    infer(payloads).unwrap()
}

#[test]
fn features_of_equal_length_are_inferred_as_fixed() {
    let rows: Vec<_> = (0..20i64)
        .map(|i| {
            let mut row = ExampleBuilder::new();
            row = row
                .int64("label", [i])
                .float("emb", [0.5f32; 3])
                .bytes("words", (0..i).map(|_| "w"))
                .int64("at most one", (0..i % 2).map(|_| 7))
                .int64("empty", [0i64; 0])
                .feature("never", tfseek::FeatureBuf::None);
            row = match i {
                7 => row.feature("sometimes", tfseek::FeatureBuf::None),
                _ => row.int64("sometimes", [1]),
            };
            row.encode().unwrap()
        })
        .collect();
    let schema = inferred(&rows);
    let want = Schema::example()
        .feature("label", FeatureSpec::fixed_len(&[], DType::Int64))
        .feature("emb", FeatureSpec::fixed_len(&[3], DType::Float32))
        .feature("words", FeatureSpec::var_len(DType::Bytes))
        .feature("at most one", FeatureSpec::optional(DType::Int64))
        .feature("empty", FeatureSpec::var_len(DType::Int64))
        .feature("sometimes", FeatureSpec::optional(DType::Int64))
        .build()
        .unwrap();
    assert_eq!(schema, want);

    let mut seen = Inference::new(MessageKind::Example).unwrap();
    rows.iter().for_each(|row| seen.add(row).unwrap());
    let found = seen.findings().find(|found| found.name == "sometimes").unwrap();
    assert_eq!((found.present, found.records, found.counts), (19, 20, Some((1, 1))));
    let never = seen.findings().find(|found| found.name == "never").unwrap();
    assert!(
        never.kinds.is_empty() && (never.present, never.spec()) == (0, None) && never.conflict().is_none()
    );
    assert!(seen.findings().all(|found| found.steps.is_none() && !found.list));
}

/// TensorFlow has no optional features, so the code has the closest spec and a comment.
#[test]
fn optional_features_in_generated_code() {
    let schema = Schema::example()
        .feature("a", FeatureSpec::optional(DType::Bytes))
        .feature("b", FeatureSpec::optional(DType::Int64).with_default([7]))
        .build()
        .unwrap();
    let python = "import tensorflow as tf

feature_description = {
    'a': tf.io.VarLenFeature(tf.string),  # optional; tf.io accepts several values
    'b': tf.io.FixedLenFeature([], tf.int64, default_value=7),  # optional; tf.io refuses an empty list
}
";
    assert_eq!(code::python(&schema), python);
}

#[test]
fn feature_lists_are_not_optional() {
    let schema = Schema::sequence_example().feature("x", FeatureSpec::optional(DType::Int64));
    schema.clone().build().unwrap();
    let list = schema.feature_list("x", FeatureSpec::optional(DType::Int64)).build();
    refused(list, "expected fixed_sequence, found optional");
}

#[test]
fn an_optional_default_has_one_value_of_the_dtype() {
    let of = |values: FeatureBuf| {
        let spec = FeatureSpec::optional(DType::Int64).with_default(values);
        Schema::example().feature("x", spec).build()
    };
    of([7].into()).unwrap();
    refused(of([7, 8].into()), "default: expected one value for an optional, found 2");
    refused(of(FeatureBuf::Int64(vec![])), "default: expected one value for an optional, found 0");
    refused(of([1.0f32].into()), "default: expected values of kind int64, found float32");
    refused(of(FeatureBuf::None), "default: expected values of kind int64, found no kind");
    // The key of an optional feature belongs to one column.
    let twice = Schema::example()
        .feature("v", FeatureSpec::sparse(&["i"], "x", DType::Int64, &[3]))
        .feature("x", FeatureSpec::optional(DType::Int64));
    refused(twice.build(), "the feature \"x\" is used as sparse int64 and as dense");
}

/// The last entry of a key counts; earlier ones are ignored.
#[test]
fn duplicate_keys_count_as_one_feature() {
    let two = [
        ExampleBuilder::new().float("a", [1.0f32, 2.0]).encode().unwrap(),
        ExampleBuilder::new().int64("a", [1]).encode().unwrap(),
    ]
    .concat();
    assert_eq!(inferred(&[two]).features()["a"], FeatureSpec::fixed_len(&[], DType::Int64));
}

#[test]
fn feature_lists() {
    let frames = |steps: usize| vec![FeatureBuf::Float(vec![0.0, 1.0]); steps];
    let rows: Vec<_> = (0..10usize)
        .map(|i| {
            let mut row = SequenceExampleBuilder::new();
            row = row
                .int64("id", [i as i64])
                .float("weight", (0..i % 2).map(|_| 0.5f32))
                .feature_list("frames", frames(i))
                .feature_list("words", (0..i).map(|k| FeatureBuf::Bytes(vec![b"w".to_vec(); k])))
                .feature_list("gaps", [FeatureBuf::Int64(vec![1]), FeatureBuf::None])
                .feature_list("no steps", []);
            if i != 3 {
                row = row.feature_list("sometimes", frames(1));
            }
            row.encode().unwrap()
        })
        .collect();
    let want = Schema::sequence_example()
        .feature("id", FeatureSpec::fixed_len(&[], DType::Int64))
        .feature("weight", FeatureSpec::optional(DType::Float32))
        .feature_list(
            "frames",
            FeatureSpec::FixedLenSequence {
                shape: vec![2],
                dtype: DType::Float32,
                allow_missing: false,
                default: None,
            },
        )
        .feature_list("words", FeatureSpec::var_len(DType::Bytes))
        .feature_list("gaps", FeatureSpec::var_len(DType::Int64))
        .feature_list("sometimes", FeatureSpec::fixed_len_sequence(&[2], DType::Float32))
        .build()
        .unwrap();
    assert_eq!(inferred(&rows), want);
    let mut seen = Inference::new(MessageKind::SequenceExample).unwrap();
    rows.iter().for_each(|row| seen.add(row).unwrap());
    let frames = seen.findings().find(|found| found.list && found.name == "frames").unwrap();
    assert_eq!((frames.steps, frames.counts, frames.present), (Some((0, 9)), Some((2, 2)), 10));
}

#[test]
fn features_of_several_kinds_are_refused() {
    let mut rows = vec![ExampleBuilder::new().int64("x", [1]).int64("y", [1]).encode().unwrap(); 3];
    rows.push(ExampleBuilder::new().float("x", [1.0f32]).int64("y", [1]).encode().unwrap());
    refused(infer(&rows), "float in 1 records and int64 in 3 records");
    let mut seen = Inference::new(MessageKind::Example).unwrap();
    rows.iter().for_each(|row| seen.add(row).unwrap());
    let conflicts = seen.findings().filter(|found| found.conflict().is_some());
    assert_eq!(conflicts.map(|found| found.name).collect::<Vec<_>>(), ["x"]);
    assert_eq!(seen.schema_without_conflicts().unwrap().features().keys().collect::<Vec<_>>(), ["y"]);
}

#[test]
fn inference_without_records_is_refused() {
    let none: [Vec<u8>; 0] = [];
    assert_eq!(infer(&none).unwrap_err().category(), Some(Category::BadSpec));
    assert_eq!(infer(&[b"plain text"]).unwrap_err().category(), Some(Category::BadSpec));
    // A record that does not decode is not counted.
    let mut seen = Inference::new(MessageKind::Example).unwrap();
    assert_eq!(seen.add(b"\x0a\x05\x0a\x03").unwrap_err().category(), Some(Category::MalformedProto));
    assert_eq!(seen.records(), 0);
}

#[test]
fn too_many_different_keys_are_refused() {
    let mut seen = Inference::new(MessageKind::Example).unwrap();
    for block in 0..10 {
        let mut row = ExampleBuilder::new();
        for k in 0..10_000 {
            row = row.int64(format!("{block}/{k}"), [1]);
        }
        seen.add(&row.encode().unwrap()).unwrap();
    }
    let one_more = ExampleBuilder::new().int64("one more", [1]).encode().unwrap();
    let e = seen.add(&one_more).unwrap_err();
    assert_eq!(e.to_string(), "expected at most 100000 different keys, found 100001");
    assert_eq!(e.kind().remedy(), Some(tfseek::error::Remedy::FewerRecords));
}

/// The schema inferred from any records survives a JSON round trip.
#[test]
fn schemas_inferred_from_any_records_round_trip() {
    for seed in 0..500 {
        let rng = &mut Rng::new(seed);
        let sequence = rng.chance(128);
        let kind = if sequence { MessageKind::SequenceExample } else { MessageKind::Example };
        let mut seen = Inference::new(kind).unwrap();
        for _ in 0..rng.below(10) {
            let row = if sequence {
                tfseek_testkit::payloads::odd_sequence(rng)
            } else {
                tfseek_testkit::payloads::odd_example(rng)
            };
            let _ = seen.add(&row);
        }
        if seen.records() > 0 {
            let schema = seen.schema_without_conflicts().unwrap();
            assert_eq!(Schema::from_json(&schema.to_json()).unwrap(), schema);
        }
    }
}

/// Schemas that use every spec type and set every field to a value other than its default.
fn everything() -> [Schema; 2] {
    let ragged = |value_key: Option<&str>, partitions: Vec<Partition>| FeatureSpec::Ragged {
        dtype: DType::Float32,
        value_key: value_key.map(Into::into),
        partitions,
        row_splits_dtype: SplitsDType::Int64,
        validate: true,
    };
    let all_partitions = vec![
        Partition::RowSplits("p/splits".into()),
        Partition::RowLengths("p/lengths".into()),
        Partition::RowStarts("p/starts".into()),
        Partition::RowLimits("p/limits".into()),
        Partition::ValueRowIds("p/'rowids'".into()),
        Partition::UniformRowLength(2),
    ];
    let floats = [0.1, -0.0, 1e-45, f32::INFINITY, f32::NAN, f32::from_bits(0xffc0_0001)];
    let bytes = vec![b"text".to_vec(), b"it's".to_vec(), b"'\"\\\n\x00\xff".to_vec(), "größe".into()];
    let sorted = FeatureSpec::Sparse {
        index_keys: vec!["s/row".into(), "s/column".into()],
        value_key: "s/value".into(),
        dtype: DType::Float32,
        size: vec![3, 1 << 40],
        already_sorted: true,
    };
    let example = Schema::example()
        .feature("label", FeatureSpec::fixed_len(&[], DType::Int64))
        .feature("ints", FeatureSpec::fixed_len(&[2, 1], DType::Int64).with_default([i64::MIN, i64::MAX]))
        .feature("floats", FeatureSpec::fixed_len(&[3, 2], DType::Float32).with_default(floats))
        .feature("bytes", FeatureSpec::fixed_len(&[4], DType::Bytes).with_default(bytes))
        .feature("words", FeatureSpec::var_len(DType::Bytes))
        .feature("blocks", FeatureSpec::fixed_len_sequence(&[2], DType::Int64).with_default([-1]))
        .feature("ragged", FeatureSpec::ragged(DType::Bytes))
        .feature("divided", ragged(Some("p/values"), all_partitions))
        .feature("flat", ragged(None, vec![]))
        .feature("sparse", FeatureSpec::sparse(&["i"], "v", DType::Int64, &[10]))
        .feature("sorted", sorted)
        .feature("it's \"größe\"\n\u{7f}\u{301}\u{1f40e}\\", FeatureSpec::var_len(DType::Int64))
        .feature("", FeatureSpec::var_len(DType::Float32));
    let steps = |shape: &[usize], allow_missing| FeatureSpec::FixedLenSequence {
        shape: shape.to_vec(),
        dtype: DType::Float32,
        allow_missing,
        default: None,
    };
    let sequence = Schema::sequence_example()
        .feature("id", FeatureSpec::fixed_len(&[], DType::Int64))
        .feature_list("frames", steps(&[2, 3], false))
        .feature_list("sometimes", steps(&[], true))
        .feature_list("words", FeatureSpec::var_len(DType::Bytes));
    [example.build().unwrap(), sequence.build().unwrap()]
}

/// The expected output. TensorFlow ran this text; its specs were equal to [`everything`].
#[test]
fn generated_python_is_as_expected() {
    let [example, sequence] = everything();
    assert_eq!(code::python(&example), include_str!("../data/schema_example.py"));
    assert_eq!(code::python(&sequence), include_str!("../data/schema_sequence.py"));
}

/// TensorFlow reads the strings, and a comment has the function that decodes them.
#[test]
fn generated_python_of_arrays() {
    let raw =
        FeatureSpec::Raw { dtype: TensorDType::Int16, shape: vec![None, Some(3)], little_endian: false };
    let schema = Schema::example()
        .feature("a", raw)
        .feature("b", FeatureSpec::raw(&[Some(28), Some(28)], TensorDType::UInt8))
        .feature("c", FeatureSpec::tensor(&[], TensorDType::BFloat16))
        .build()
        .unwrap();
    let lines = [
        "    'a': tf.io.FixedLenFeature([], tf.string),  # tf.io.decode_raw(.., tf.int16, little_endian=False), then tf.reshape(.., [-1, 3])",
        "    'b': tf.io.FixedLenFeature([], tf.string),  # tf.io.decode_raw(.., tf.uint8), then tf.reshape(.., [28, 28])",
        "    'c': tf.io.FixedLenFeature([], tf.string),  # tf.io.parse_tensor(.., tf.bfloat16)",
    ];
    let found = code::python(&schema);
    assert_eq!(found.lines().skip(3).take(3).collect::<Vec<_>>(), lines, "{found}");
}
