//! Schemas, and their JSON.

use tfseek::error::Category;
use tfseek::schema::{Crop, ImageSpec, Partition, Resize, SplitsDType};
use tfseek::{DType, FeatureBuf, FeatureSpec, Schema, TensorDType};
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
        6 if !list => FeatureSpec::Image(any_image(rng, name)),
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

fn any_image(rng: &mut Rng, name: &str) -> ImageSpec {
    let crop = rng.pick(&[None, Some(Crop::Center), Some(Crop::RandomResized)]);
    let resize = rng.pick(&[None, Some(Resize::Bilinear), Some(Resize::Area)]);
    let size = [1 + rng.below(500) as u32, 1 + rng.below(500) as u32];
    let size = (crop.is_some() || rng.chance(128)).then_some(size);
    let resize = if crop == Some(Crop::RandomResized) { Some(Resize::Area) } else { resize };
    let channels = rng.pick(&[1, 3, 4]);
    let dtype = rng.pick(&[TensorDType::UInt8, TensorDType::UInt16, TensorDType::Float16]);
    let part = |rng: &mut Rng| (1 + (rng.u64() >> 11)) as f64 / 2_f64.powi(53);
    let is_random = crop == Some(Crop::RandomResized) && rng.chance(128);
    let range = |rng: &mut Rng| {
        let low = part(rng);
        [low, low + (1.0 - low) * part(rng)]
    };
    let mut spec = ImageSpec {
        size,
        channels,
        resize,
        crop,
        // No feature has such a name.
        crop_with: rng.chance(128).then(|| any_name(rng, 0) + "~"),
        dtype,
        channels_first: size.is_some() && rng.chance(128),
        exif: rng.chance(128),
        missing: (size.is_some() && rng.chance(128)).then(|| rng.u64() as u8),
        geometry: rng.chance(128).then(|| format!("{name}~")),
        scaled: rng.chance(128),
        ..ImageSpec::default()
    };
    if is_random {
        spec.scale = range(rng);
        spec.ratio = range(rng).map(|side| side * 3.0);
    }
    if crop == Some(Crop::Center) && resize.is_some() {
        spec.fraction = part(rng);
    }
    if rng.chance(128) {
        spec.flip = part(rng);
    }
    if dtype != TensorDType::UInt16 && rng.chance(128) {
        let mut names = vec!["contrast", "brightness", "saturation", "hue"];
        names.truncate(if channels == 1 { 2 } else { 4 });
        names.rotate_left(rng.below(2));
        spec.jitter =
            names.into_iter().map(|name| (name.to_owned(), range(rng).map(|end| end / 2.0))).collect();
    }
    if dtype == TensorDType::Float16 && rng.chance(128) {
        let numbers = |rng: &mut Rng| (0..channels).map(|_| part(rng)).collect();
        spec.normalize = Some([numbers(rng), numbers(rng)]);
    }
    spec
}

fn any_array(rng: &mut Rng) -> FeatureSpec {
    let open = rng.chance(64);
    let sizes = any_shape(rng).into_iter().map(Some);
    let shape: Vec<_> = open.then_some(None).into_iter().chain(sizes).collect();
    let dtype =
        rng.pick(&[TensorDType::Bool, TensorDType::UInt8, TensorDType::BFloat16, TensorDType::Complex128]);
    let words = (0..1 + rng.below(3)).map(|k| if k == 1 { vec![0xff] } else { vec![b'a'; k] });
    match rng.below(5) {
        0 => FeatureSpec::Tensor { dtype, shape },
        3 => FeatureSpec::Stack {
            keys: (0..1 + rng.below(3)).map(|_| format!("key {}", rng.u64())).collect(),
            dtype: DType::Float32,
            default: rng.chance(128).then(|| vec![0.5f32].into()),
        },
        1 => FeatureSpec::Label {
            vocabulary: words.map(Vec::into_boxed_slice).collect(),
            unknown: rng.chance(128).then(|| rng.u64() as i64),
        },
        2 if !open => FeatureSpec::Several(Box::new(FeatureSpec::Tensor { dtype, shape })),
        _ => FeatureSpec::Raw {
            dtype,
            shape,
            little_endian: rng.pick(&[true, false]),
            fixed_length: !open && rng.chance(64),
        },
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
    let part = ImageSpec { channels: 1, fraction: 0.875, resize: Some(Resize::Area), ..image.clone() };
    let factors = [("hue", [-0.1, 0.1]), ("contrast", [0.75, 1.25]), ("brightness", [0.0, 2.5])];
    let tensor = ImageSpec {
        crop: Some(Crop::RandomResized),
        scale: [0.25, 1.0],
        ratio: [1.0, 2.0],
        flip: 0.5,
        jitter: factors.map(|(name, factors)| (name.to_owned(), factors)).into(),
        normalize: Some([vec![0.485, 0.456, 0.406], vec![0.229, 0.224, 0.225]]),
        dtype: TensorDType::Float32,
        channels_first: true,
        exif: true,
        missing: Some(0),
        geometry: Some("part of \"k\"".into()),
        scaled: true,
        ..image.clone()
    };
    let vocabulary = ["caf\u{e9}".as_bytes(), b"\xff"].map(Box::from).into();
    let label = FeatureSpec::Label { vocabulary, unknown: Some(-1) };
    let schema = Schema::example()
        .feature("b", FeatureSpec::fixed_len(&[2, 1], DType::Float32).with_default([0.1f32, f32::NAN]))
        .feature("a", FeatureSpec::fixed_len(&[], DType::Bytes).with_default(vec![vec![0xff]]))
        .feature("c", FeatureSpec::sparse(&["i"], "v", DType::Int64, &[10]))
        .feature("d", FeatureSpec::fixed_len_sequence(&[], DType::Bytes).with_default(["-"]))
        .feature("e", FeatureSpec::optional(DType::Int64))
        .feature("f", FeatureSpec::optional(DType::Float32).with_default([0.5f32]))
        .feature("g", FeatureSpec::raw(&[Some(2), Some(3)], TensorDType::UInt16))
        .feature("h", FeatureSpec::Tensor { dtype: TensorDType::BFloat16, shape: vec![None, Some(3)] })
        .feature("ii", FeatureSpec::Several(Box::new(label)))
        .feature("l", FeatureSpec::Image(part))
        .feature("k", FeatureSpec::Image(tensor))
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
    "ii": {"of": {"type": "label", "unknown": -1, "vocabulary": ["café", {"hex": "ff"}]}, "type": "several"},
    "j": {"channels": 3, "crop": "center", "crop_with": null, "dtype": "uint8", "resize": "bilinear", "size": [4, 6], "type": "image"},
    "k": {"channels": 3, "crop": "random_resized", "crop_with": null, "dtype": "float32", "exif": true, "flip": 0.5, "geometry": "part of \"k\"", "jitter": [["hue", [-0.1, 0.1]], ["contrast", [0.75, 1.25]], ["brightness", [0.0, 2.5]]], "layout": "chw", "mean": [0.485, 0.456, 0.406], "missing": 0, "ratio": [1.0, 2.0], "resize": "bilinear", "scale": [0.25, 1.0], "scaled": true, "size": [4, 6], "std": [0.229, 0.224, 0.225], "type": "image"},
    "l": {"channels": 1, "crop": "center", "crop_with": null, "dtype": "uint8", "fraction": 0.875, "resize": "area", "size": [4, 6], "type": "image"}
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
fn a_geometry_has_a_name_of_its_own() {
    let image = |name: &str| {
        let spec = ImageSpec { geometry: Some(name.into()), ..ImageSpec::default() };
        FeatureSpec::Image(spec)
    };
    let build = |other: &str, spec: FeatureSpec| {
        Schema::example().feature("x", image("part")).feature(other, spec).build()
    };
    let taken = "geometry: expected the name of no other column, found \"part\"";
    refused(build("part", FeatureSpec::optional(DType::Int64)), taken);
    refused(build("part", image("other")), taken);
    refused(build("y", image("part")), taken);
    build("y", image("other")).unwrap();
    // A key of records is no column.
    build("y", FeatureSpec::sparse(&["part"], "v", DType::Int64, &[10])).unwrap();
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
    ] {
        refused(parse_one_spec(spec), words);
    }
    for (fields, words) in [
        (r#""size": [4, 6], "missing": 256"#, "missing: expected an integer of 0 to 255, found 256"),
        (r#""size": [4, 6], "missing": -1"#, "missing: expected an integer of 0 to 255, found -1"),
        (r#""size": [4, 6], "missing": 0.5"#, "missing: expected an integer of 0 to 255, found 0.5"),
        (r#""missing": 0"#, "missing: a value in place of a picture requires a size"),
        (r#""geometry": 7"#, "geometry: expected a string, found 7"),
        (r#""geometry": """#, "geometry: expected a name, found an empty string"),
        (r#""geometry": "x""#, "geometry: expected the name of no other column, found \"x\""),
        (r#""size": [4]"#, "size: expected height and width, found [4]"),
        (r#""size": [0, 4]"#, "size: expected 1 to 100000000 pixels, found 0 x 4"),
        (r#""channels": 2"#, "channels: expected 1, 3 or 4, found 2"),
        (r#""resize": "cubic""#, "resize: expected bilinear or area, found \"cubic\""),
        (r#""crop": "left""#, "crop: expected center or random_resized, found \"left\""),
        (r#""crop": "center""#, "crop: a crop requires a size"),
        (
            r#""size": [4, 4], "crop": "random_resized", "resize": null"#,
            "crop: random_resized requires a resize",
        ),
        (r#""dtype": "int8""#, "dtype: expected uint8, uint16, float32, float16 or bfloat16, found int8"),
        (r#""fraction": 1.5"#, "fraction: expected a number above 0, at most 1, found 1.5"),
        (r#""size": [4, 4], "fraction": 0.5"#, "fraction: expected the crop \"center\" and a resize"),
        (
            r#""size": [4, 4], "crop": "random_resized", "scale": [0, 1]"#,
            "scale: expected two ascending numbers above 0, at most 1, found 0.0 and 1.0",
        ),
        (
            r#""size": [4, 4], "crop": "random_resized", "ratio": [2, 1]"#,
            "ratio: expected two ascending numbers above 0, found 2.0 and 1.0",
        ),
        (r#""size": [4, 4], "scale": [0.5, 1]"#, "scale and ratio: expected the crop \"random_resized\""),
        (r#""scale": [1]"#, "scale: expected two numbers, found 1"),
        (r#""flip": -0.1"#, "flip: expected a probability of 0 to 1, found -0.1"),
        (r#""flip": true"#, "flip: expected a number, found true"),
        (
            r#""jitter": [["gamma", 0.1]]"#,
            "jitter: expected brightness, contrast, saturation or hue, found \"gamma\"",
        ),
        (r#""jitter": {"hue": 0.1}"#, "jitter: expected a list, found an object"),
        (r#""jitter": [["hue"]]"#, "jitter: expected a name and numbers"),
        (r#""jitter": [["contrast", -0.5]]"#, "jitter: contrast: expected at least 0, found -0.5"),
        (
            r#""jitter": [["hue", 0.6]]"#,
            "jitter: hue: expected two ascending numbers of -0.5 to 0.5, found -0.6 and 0.6",
        ),
        (
            r#""jitter": [["contrast", [1, 1e9]]]"#,
            "jitter: contrast: expected two ascending numbers of 0.0 to 1000000.0, found 1.0 and 1000000000.0",
        ),
        (r#""jitter": [["contrast", 0.1], ["contrast", 0.2]]"#, "jitter: contrast is there twice"),
        (
            r#""channels": 1, "jitter": [["saturation", 0.1]]"#,
            "jitter: saturation needs colours, found 1 channel",
        ),
        (
            r#""dtype": "uint16", "jitter": [["contrast", 0.1]]"#,
            "jitter: expected uint8 or floats, found uint16",
        ),
        (r#""mean": [0.5, 0.5, 0.5]"#, "mean and std: expected both or none, found one"),
        (r#""mean": [0, 0, 0], "std": [1, 1, 1]"#, "mean and std: expected floats, found uint8"),
        (
            r#""dtype": "float32", "mean": [0, 0], "std": [1, 1, 1]"#,
            "mean: expected a number for each of 3 channels, found 2",
        ),
        (
            r#""dtype": "float32", "mean": [0, 0, 0], "std": [1, 0, 1]"#,
            "mean and std: expected numbers whose quotients are finite as float32, found 0.0 and 0.0",
        ),
        (r#""jitter": [["contrast", [1, 2, 3]]]"#, "jitter: contrast: expected two numbers, found 3"),
        (r#""layout": "nchw""#, "layout: expected hwc or chw, found \"nchw\""),
        (r#""layout": "chw""#, "layout: chw requires a size"),
        (r#""crop_with": """#, "crop_with: expected a name, found an empty string"),
    ] {
        refused(parse_one_spec(&format!(r#"{{"type": "image", {fields}}}"#)), words);
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
