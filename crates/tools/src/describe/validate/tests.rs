//! A set with known anomalies: each is named once, with its records, and nothing else.

use super::Validator;
use crate::describe::tfx::TfxSchema;
use tfseek::example::MessageKind;
use tfseek::schema::ImageSpec;
use tfseek::{ExampleBuilder, FeatureSpec, Schema};

const SCHEMA: &str = include_str!("../../../tests/schema.pbtxt");

/// Changes a record.
type Edit = fn(ExampleBuilder) -> ExampleBuilder;

/// Returns a record without anomalies, and without the feature `without`.
fn healthy(i: u64, without: &str) -> ExampleBuilder {
    type Add = fn(ExampleBuilder, u64) -> ExampleBuilder;
    let features: [(&str, Add); 20] = [
        ("age", |b, i| b.int64("age", [(i % 100) as i64])),
        ("score", |b, i| b.float("score", [i as f32 / 100.0])),
        ("pay", |b, i| b.bytes("pay", [if i % 2 == 0 { "Cash" } else { "Card" }])),
        ("soft", |b, _| b.bytes("soft", ["a"])),
        ("flag", |b, i| b.int64("flag", [(i % 2) as i64])),
        ("yes", |b, _| b.bytes("yes", ["y"])),
        ("ratio", |b, _| b.float("ratio", [1.0])),
        ("tags", |b, _| b.bytes("tags", ["x", "y"])),
        ("box", |b, _| b.float("box", [0.0; 4])),
        ("rare", |b, _| b.int64("rare", [1])),
        ("label", |b, _| b.int64("label", [1])),
        ("id", |b, i| b.bytes("id", [format!("{i}")])),
        ("word", |b, _| b.bytes("word", ["w"])),
        ("image", |b, _| b.bytes("image", [&b"\xff\xd8\xff\xe0\0\x10JFIF\0\x01"[..]])),
        ("number", |b, _| b.bytes("number", ["7"])),
        ("real", |b, _| b.bytes("real", ["0.5"])),
        ("ix", |b, _| b.int64("ix", [1, 2])),
        ("val", |b, _| b.float("val", [1.0, 2.0])),
        ("w", |b, _| b.int64("w", [1])),
        ("ww", |b, _| b.float("ww", [1.0])),
    ];
    let kept = features.into_iter().filter(|(name, _)| *name != without);
    kept.fold(ExampleBuilder::new(), |record, (_, add)| add(record, i))
}

/// The number of a record, its other feature, its anomaly.
const PLANTED: &[(u64, &str, Edit, &str, &str)] = &[
    (3, "age", |b| b.int64("age", [-1]), "age", "INT_TYPE_SMALL_INT"),
    (4, "age", |b| b.int64("age", [121]), "age", "INT_TYPE_BIG_INT"),
    (5, "age", |b| b.float("age", [3.0]), "age", "UNEXPECTED_DATA_TYPE"),
    (6, "score", |b| b.float("score", [f32::NAN]), "score", "FLOAT_TYPE_HAS_NAN"),
    (7, "score", |b| b.float("score", [f32::INFINITY]), "score", "FLOAT_TYPE_HAS_INF"),
    (8, "score", |b| b.float("score", [-0.5]), "score", "FLOAT_TYPE_SMALL_FLOAT"),
    (9, "score", |b| b.float("score", [1.5]), "score", "FLOAT_TYPE_BIG_FLOAT"),
    (10, "pay", |b| b.bytes("pay", ["Prcard"]), "pay", "ENUM_TYPE_UNEXPECTED_STRING_VALUES"),
    (11, "pay", |b| b.bytes("pay", [&b"\xff"[..]]), "pay", "ENUM_TYPE_INVALID_UTF8"),
    (12, "flag", |b| b.int64("flag", [2]), "flag", "BOOL_TYPE_BIG_INT"),
    (13, "flag", |b| b.int64("flag", [-2]), "flag", "BOOL_TYPE_SMALL_INT"),
    (14, "yes", |b| b.bytes("yes", ["maybe"]), "yes", "BOOL_TYPE_UNEXPECTED_STRING"),
    (15, "ratio", |b| b.float("ratio", [0.5]), "ratio", "BOOL_TYPE_UNEXPECTED_FLOAT"),
    (16, "tags", |b| b.bytes("tags", [] as [&str; 0]), "tags", "FEATURE_TYPE_LOW_NUMBER_VALUES"),
    (17, "tags", |b| b.bytes("tags", ["a", "b", "c", "d"]), "tags", "FEATURE_TYPE_HIGH_NUMBER_VALUES"),
    (18, "box", |b| b.float("box", [0.0; 3]), "box", "INVALID_FEATURE_SHAPE"),
    (19, "unknown", |b| b.int64("unknown", [1]), "unknown", "SCHEMA_NEW_COLUMN"),
    (20, "image", |b| b.bytes("image", [&b"GIF89a"[..], b"text"]), "image", "LOW_SUPPORTED_IMAGE_FRACTION"),
    (
        21,
        "image",
        |b| b.bytes("image", [&b"\xff\xd8\xff\xe0\0\x10JFIF\0\x01345678901234"[..]]),
        "image",
        "MAX_IMAGE_BYTE_SIZE_EXCEEDED",
    ),
    (22, "number", |b| b.bytes("number", ["seven"]), "number", "INT_TYPE_NOT_INT_STRING"),
    (23, "real", |b| b.bytes("real", ["x"]), "real", "FLOAT_TYPE_STRING_NOT_FLOAT"),
    (24, "ix", |b| b.int64("ix", [1]), "sparse", "SPARSE_FEATURE_LENGTH_MISMATCH"),
    (25, "ix", |b| b.feature("ix", tfseek::FeatureBuf::default()), "sparse", "SPARSE_FEATURE_MISSING_INDEX"),
    (
        26,
        "val",
        |b| b.feature("val", tfseek::FeatureBuf::default()),
        "sparse",
        "SPARSE_FEATURE_MISSING_VALUE",
    ),
    (27, "ww", |b| b.float("ww", [1.0, 2.0]), "weighted", "WEIGHTED_FEATURE_LENGTH_MISMATCH"),
    (28, "soft", |b| b.bytes("soft", ["z"]), "", ""),
];

fn checked<'s>(schema: &'s TfxSchema, records: impl Iterator<Item = u64>) -> Validator<'s> {
    let mut checks = Validator::new(schema);
    for i in records {
        let planted = PLANTED.iter().find(|(at, ..)| *at == i);
        let mut record = healthy(i, planted.map_or("", |(_, key, ..)| key));
        if i == 2 {
            record = record.feature("kindless", tfseek::FeatureBuf::default());
        }
        if let Some((_, _, edit, ..)) = planted {
            record = edit(record);
        }
        checks.add(&record.encode().unwrap(), MessageKind::Example).unwrap();
    }
    checks
}

#[test]
fn each_anomaly_is_named_once_with_its_records() {
    let schema = TfxSchema::parse(SCHEMA.as_bytes()).unwrap();
    assert_eq!(schema.faults, []);
    let report = checked(&schema, 0..100).report(Some("training"), None);
    let mut want: Vec<_> = PLANTED
        .iter()
        .filter(|(.., name)| !name.is_empty())
        .map(|&(at, _, _, feature, name)| (feature.to_owned(), name, vec![at]))
        .collect();
    for (feature, name) in [
        ("", "DATASET_LOW_NUM_EXAMPLES"),
        ("gone", "SCHEMA_MISSING_COLUMN"),
        ("kindless", "FEATURE_TYPE_NOT_PRESENT"),
    ] {
        want.push((feature.to_owned(), name, vec![]));
    }
    want.sort();
    let found: Vec<_> = report
        .anomalies
        .iter()
        .map(|a| (a.feature.clone().unwrap_or_default(), a.kind.name(), a.first.clone()))
        .collect();
    assert_eq!(found, want);
    let pay =
        report.anomalies.iter().find(|a| a.kind.name() == "ENUM_TYPE_UNEXPECTED_STRING_VALUES").unwrap();
    assert_eq!(
        (pay.text.as_str(), pay.examples.as_slice()),
        ("1 value outside the domain, of 100", &["\"Prcard\"".to_owned()][..])
    );
    let unchecked: Vec<_> =
        report.unchecked.iter().map(|(what, feature)| (what.as_str(), feature.as_deref())).collect();
    assert_eq!(
        unchecked,
        [("comparator without baseline", Some("nested")), ("natural_language_domain", Some("text"))]
    );
}

/// Records in parts give the same report as all records in one.
#[test]
fn parts_give_the_same_report() {
    let schema = TfxSchema::parse(SCHEMA.as_bytes()).unwrap();
    let all = checked(&schema, 0..100).report(None, None);
    for cut in [0, 1, 11, 25, 99, 100] {
        let mut parts = checked(&schema, 0..cut);
        parts.append(checked(&schema, cut..100));
        assert_eq!(parts.report(None, None), all, "{cut}");
    }
}

#[test]
fn presence_depends_on_the_environment() {
    let schema = TfxSchema::parse(
        br#"feature { name: "label" type: INT presence { min_fraction: 1 } not_in_environment: "serving" }
            feature { name: "half" type: INT presence { min_fraction: 0.5 min_count: 3 } in_environment: "other" }
            default_environment: "training" default_environment: "serving""#,
    )
    .unwrap();
    let mut checks = Validator::new(&schema);
    for i in 0..10 {
        let record = ExampleBuilder::new();
        let record = if i < 2 { record.int64("half", [1]) } else { record };
        let record = if i != 4 { record.int64("label", [1]) } else { record };
        checks.add(&record.encode().unwrap(), MessageKind::Example).unwrap();
    }
    let names = |environment| -> Vec<_> {
        let report = checks.report(environment, None);
        report.anomalies.into_iter().map(|a| (a.feature.unwrap(), a.kind.name(), a.first)).collect()
    };
    let label = ("label".to_owned(), "FEATURE_TYPE_LOW_FRACTION_PRESENT", vec![4]);
    let absent: Vec<u64> = (2..10).collect();
    let half = ("half".to_owned(), "FEATURE_TYPE_LOW_FRACTION_PRESENT", absent);
    let few = ("half".to_owned(), "FEATURE_TYPE_LOW_NUMBER_PRESENT", vec![]);
    assert_eq!(names(Some("training")), [half.clone(), few.clone(), label.clone()]);
    assert_eq!(names(Some("serving")), [half.clone(), few.clone()]);
    assert_eq!(names(Some("other")), [half.clone(), few.clone()]);
    assert_eq!(names(None), [half, few, label]);
}

#[test]
fn baselines() {
    let schema = TfxSchema::parse(
        br#"feature { name: "c" type: BYTES drift_comparator { infinity_norm { threshold: 0.1 } } }
            feature { name: "n" type: INT skew_comparator { infinity_norm { threshold: 0.9 } } }
            feature { name: "new" type: INT drift_comparator { infinity_norm { threshold: 0.9 } } }
            feature { name: "js" type: FLOAT drift_comparator { jensen_shannon_divergence { threshold: 0.1 } } }
            dataset_constraints { num_examples_drift_comparator { min_fraction_threshold: 0.5 max_fraction_threshold: 1.5 } }"#,
    )
    .unwrap();
    let of = |text: &str, new: bool| {
        let mut checks = Validator::new(&schema);
        for c in text.chars() {
            let record = ExampleBuilder::new().bytes("c", [c.to_string()]).int64("n", [c as i64]);
            let record = if new { record.int64("new", [1]) } else { record };
            checks.add(&record.encode().unwrap(), MessageKind::Example).unwrap();
        }
        checks
    };
    let report = of("aaaaaaabbb", true).report(None, Some(&of("aaaaabbbbb", false)));
    let found: Vec<_> = report.anomalies.iter().map(|a| (a.kind.name(), a.text.as_str())).collect();
    assert_eq!(
        found,
        [
            (
                "COMPARATOR_L_INFTY_HIGH",
                "expected a distance of at most 0.1 from the baseline, found 0.200000 at \"a\""
            ),
            ("COMPARATOR_CONTROL_DATA_MISSING", "the baseline does not have the feature"),
        ]
    );
    assert_eq!(report.unchecked.len(), 0);
    let few = of("aabb", true).report(None, Some(&of("aaaaabbbbb", true)));
    assert_eq!(few.anomalies[0].kind.name(), "COMPARATOR_LOW_NUM_EXAMPLES");
    assert_eq!(of("a", true).report(None, None).unchecked.len(), 5);
}

#[test]
fn divergences() {
    let schema = TfxSchema::parse(
        br#"feature { name: "f" type: FLOAT drift_comparator { jensen_shannon_divergence { threshold: 0.1 } } }
            feature { name: "n" type: INT skew_comparator { jensen_shannon_divergence { threshold: 0.5 } } drift_comparator { jensen_shannon_divergence { threshold: 0.1 } infinity_norm { threshold: 1 } } }
            feature { name: "s" type: BYTES drift_comparator { jensen_shannon_divergence { threshold: 0.3 } } }
            feature { name: "t" type: BYTES drift_comparator { jensen_shannon_divergence { threshold: 0.32 } } }
            feature { name: "u" drift_comparator { jensen_shannon_divergence { threshold: 0 } } }"#,
    )
    .unwrap();
    let of = |values: &[i64]| {
        let mut checks = Validator::new(&schema);
        for &value in values {
            let text = value.to_string();
            let float = value as f32 / 2.0;
            let record = ExampleBuilder::new().float("f", [float, f32::NAN]).int64("n", [value]);
            let record = record.bytes("s", [&text]).bytes("t", [&text]).int64("u", [1]);
            checks.add(&record.encode().unwrap(), MessageKind::Example).unwrap();
        }
        checks
    };
    let same = of(&[1, 2, 3]).report(None, Some(&of(&[3, 1, 2])));
    assert_eq!(same.anomalies, []);
    let unchecked = [
        ("jensen_shannon_divergence".to_owned(), Some("u".to_owned())),
        ("type".to_owned(), Some("u".to_owned())),
    ];
    assert_eq!(same.unchecked.into_iter().collect::<Vec<_>>(), unchecked);
    let found = of(&[1, 1, 1, 1]).report(None, Some(&of(&[1, 9, 9, 1]))).anomalies;
    let expected = |most: f64, found: &str| {
        format!("expected a Jensen-Shannon divergence of at most {most} from the baseline, found {found}")
    };
    let name = "COMPARATOR_JENSEN_SHANNON_DIVERGENCE_HIGH";
    let found: Vec<_> = found.into_iter().map(|a| (a.feature.unwrap(), a.kind.name(), a.text)).collect();
    assert_eq!(
        found,
        [
            // Half of the values are NaN on both sides.
            ("f".to_owned(), name, expected(0.1, "0.155639")),
            ("n".to_owned(), name, expected(0.1, "0.311278")),
            ("s".to_owned(), name, expected(0.3, "0.311278")),
        ]
    );
}

#[test]
fn schemas_of_tfseek() {
    let int = tfseek::DType::Int64;
    let picture = ImageSpec { size: Some([8, 8]), missing: Some(0), ..ImageSpec::default() };
    let schema = Schema::example()
        .feature("a", FeatureSpec::fixed_len(&[2], int))
        .feature("b", FeatureSpec::optional(int))
        .feature("c", FeatureSpec::var_len(int))
        .feature("d", FeatureSpec::Image(picture))
        .build()
        .unwrap();
    let rules = TfxSchema::from(&schema);
    let mut checks = Validator::new(&rules);
    let records = [
        ExampleBuilder::new().int64("a", [1, 2]).int64("b", [1]).int64("c", [0i64; 0]),
        ExampleBuilder::new().int64("a", [1]).int64("b", [1, 2]).float("c", [1.0]).bytes("d", [b""; 2]),
        ExampleBuilder::new(),
    ];
    for record in records {
        checks.add(&record.encode().unwrap(), MessageKind::Example).unwrap();
    }
    let found: Vec<_> =
        checks.report(None, None).anomalies.into_iter().map(|a| (a.kind.name(), a.first)).collect();
    let want = [
        ("FEATURE_TYPE_LOW_FRACTION_PRESENT", vec![2]),
        ("INVALID_FEATURE_SHAPE", vec![1]),
        ("FEATURE_TYPE_HIGH_NUMBER_VALUES", vec![1]),
        ("UNEXPECTED_DATA_TYPE", vec![1]),
        ("FEATURE_TYPE_HIGH_NUMBER_VALUES", vec![1]),
    ];
    assert_eq!(found, want);
}

#[test]
fn faults_of_a_schema() {
    let schema = TfxSchema::parse(
        br#"feature { name: "a" type: INT presence { min_fraction: 2 } value_count { min: 3 max: 2 } }
            feature { name: "b" type: FLOAT int_domain { min: 1 } }
            feature { name: "c" type: BYTES domain: "none" }
            feature { name: "d" type: INT distribution_constraints { min_domain_mass: 0.5 } }
            feature { type: INT }
            feature { name: "s" type: INT } sparse_feature { name: "s" }"#,
    )
    .unwrap();
    let names: Vec<_> =
        schema.faults.iter().map(|(fault, feature)| (fault.0.name(), feature.as_str())).collect();
    let want = [
        ("INVALID_SCHEMA_SPECIFICATION", "a"),
        ("INVALID_SCHEMA_SPECIFICATION", "a"),
        ("DOMAIN_INVALID_FOR_TYPE", "b"),
        ("INVALID_DOMAIN_SPECIFICATION", "c"),
        ("INVALID_SCHEMA_SPECIFICATION", "d"),
        ("FEATURE_MISSING_NAME", ""),
        ("SPARSE_FEATURE_NAME_COLLISION", "s"),
    ];
    assert_eq!(names, want);
    let error = |text: &str| TfxSchema::parse(text.as_bytes()).unwrap_err().to_string();
    assert_eq!(error("feature {\n nam: 'x' }"), "line 2, column 2: expected a field of Feature, found `nam`");
    assert_eq!(
        error("feature { type: WORD }"),
        "line 1, column 11: `type`: expected BYTES, INT, FLOAT or STRUCT, found `WORD`"
    );
    assert!(
        error("feature { name: 'a' } feature { name: 'a' }")
            .contains("expected one feature named \"a\", found two")
    );
}
