//! Parsing by a schema gives TensorFlow's arrays, bit for bit, or an error of the right category: all cases that were
//! recorded (`tests/data/README.md`).

use serde_json::Value;
use tfseek::batch::{Batch, BatchParser, Column, Row, Values};
use tfseek::error::Category;
use tfseek::io::Region;
use tfseek::schema::Schema;
use tfseek::{Error, Mapped, Result};
use tfseek_testkit::agree_parse::Want;
use tfseek_testkit::arrays::Arrays;
use tfseek_testkit::hex::unhex;
use tfseek_testkit::oracle::{answer, schema};
use tfseek_testkit::twin_parse::Form;

/// How payloads are to be parsed.
#[derive(Clone, Copy, Debug, Default)]
struct How {
    single: bool,
    lenient_sparse_index: bool,
    /// Whether all payloads are well-formed throughout.
    valid: bool,
}

/// The arrays, or an error: the same from all row types and under all options that must not matter.
fn every_way(schema: &Schema, payloads: &[Vec<u8>], how: How, what: &str) -> Result<Arrays> {
    let file = payloads.concat();
    let all = Region::new(file);
    let mut at = 0;
    let regions: Vec<Region> = payloads
        .iter()
        .map(|payload| {
            at += payload.len();
            all.slice(at - payload.len()..at).unwrap()
        })
        .collect();
    let mut stream = Vec::new();
    for payload in payloads {
        tfseek::frame::put_record(&mut stream, payload).unwrap();
    }
    let set = Mapped::from_bytes(stream).unwrap();
    let records: Vec<_> = set.iter().map(Result::unwrap).collect();
    let slices: Vec<&[u8]> = payloads.iter().map(Vec::as_slice).collect();

    let mut results = vec![one_shot(schema, &slices, how)];
    results.extend(options(schema, &slices, how, false));
    results.extend(options(schema, payloads, how, false));
    results.extend(options(schema, &regions, how, true));
    results.extend(options(schema, &records, how, true));
    let first = results.swap_remove(0);
    for other in results {
        match (&first, &other) {
            (Ok(first), Ok(other)) => other.assert_eq(first, what),
            // Records are places too, so messages differ.
            (Err(a), Err(b)) => {
                assert_eq!(a.category(), b.category(), "{what}: {a} and {b}");
                assert_eq!(a.location().row, b.location().row, "{what}: {a} and {b}");
                assert_eq!(a.location().feature, b.location().feature, "{what}: {a} and {b}");
            }
            (a, b) => panic!("{what}: {a:?} and {b:?}"),
        }
    }
    first
}

fn one_shot(schema: &Schema, rows: &[&[u8]], how: How) -> Result<Arrays> {
    let parser = BatchParser::new(schema).lenient_sparse_index(how.lenient_sparse_index);
    let batch = parse(&parser, rows, how);
    batch.map(|batch| Arrays::from(&batch))
}

fn parse<R: Row>(parser: &BatchParser, rows: &[R], how: How) -> Result<Batch> {
    match how.single {
        true => parser.parse_single(&rows[0]),
        false => parser.parse(rows),
    }
}

fn options<R: Row>(schema: &Schema, rows: &[R], how: How, regions: bool) -> Vec<Result<Arrays>> {
    let mut results = Vec::new();
    for validate in [false, true] {
        for contiguous in [false, true] {
            if validate && !how.valid {
                continue;
            }
            let parser = BatchParser::new(schema)
                .validate_full(validate)
                .contiguous_bytes(contiguous)
                .lenient_sparse_index(how.lenient_sparse_index);
            // The second time it knows the order of keys, the third time it fills what it had before.
            for _ in 0..3 {
                let batch = parse(&parser, rows, how);
                if let Ok(batch) = &batch {
                    for (_, column) in batch.columns().chain(batch.feature_lists()) {
                        borrowed(column, regions && !contiguous && !rows.is_empty());
                    }
                }
                results.push(batch.map(|batch| Arrays::from(&batch)));
            }
        }
    }
    results
}

/// Byte strings lie in the records' memory if they can, and are told from each other in any case.
fn borrowed(column: &Column, want: bool) {
    let Values::Bytes(bytes) = column.values() else { return };
    if !bytes.is_empty() {
        assert_eq!(bytes.is_borrowed(), want);
    }
    let (data, offsets) = bytes.to_contiguous();
    assert_eq!((offsets.len(), offsets[0]), (bytes.len() + 1, 0));
    for (k, value) in bytes.iter().enumerate() {
        assert_eq!(bytes.get(k), Some(value));
        assert_eq!(&data[offsets[k] as usize..offsets[k + 1] as usize], value);
    }
    assert_eq!(bytes.get(bytes.len()), None);
}

/// The naive twin gives the same: this is what makes it a witness elsewhere.
fn twin(schema: &Schema, payloads: &[Vec<u8>], how: How, want: Option<&Arrays>, what: &str) {
    let form = Form { single: how.single, lenient_sparse_index: how.lenient_sparse_index };
    let twin = Want::new(schema, payloads, form, false);
    match (twin.arrays(), want) {
        (Some(twin), Some(want)) => twin.assert_eq(want, format!("{what}, the twin")),
        (None, None) => {}
        (twin, want) => panic!("{what}: the twin has {twin:?} instead of {want:?}"),
    }
}

#[test]
fn wire_cases() {
    let mut followed = std::collections::BTreeMap::new();
    for line in include_str!("../data/wire_cases.jsonl").lines() {
        let row: Value = serde_json::from_str(line).unwrap();
        let schema = schema(&row).unwrap();
        let payloads = [unhex(row["payload"].as_str().unwrap())];
        let valid = row["from_string"]["status"] == "ok" && row["follow"] != "refuse";
        let follow = row["follow"].as_str().unwrap();
        *followed.entry(follow.to_owned()).or_insert(0) += 1;
        for single in [true, false] {
            let what = format!("{} {}, single: {single}", row["id"], row["name"]);
            let how = How { single, valid, ..How::default() };
            let found = every_way(&schema, &payloads, how, &what);
            let tf = answer(&row[if single { "parse_single" } else { "parse_batch" }]);
            match (follow, single) {
                ("tf", _) => same(&found, tf.as_ref(), &what),
                ("proto", true) => same(&found, answer(&row["parse_canonical"]).as_ref(), &what),
                // TensorFlow was asked for the canonical payload alone.
                ("proto", false) => {
                    assert_eq!(found.is_ok(), row["parse_canonical"]["status"] == "ok", "{what}");
                    let canonical = [unhex(row["canonical"].as_str().unwrap())];
                    same(&found, every_way(&schema, &canonical, how, &what).ok().as_ref(), &what);
                }
                ("error" | "refuse", _) => drop(found.as_ref().expect_err(&what)),
                ("either", _) => {
                    if found.is_ok() {
                        same(&found, tf.as_ref(), &what);
                    }
                }
                other => panic!("{other:?}"),
            }
            if follow != "either" {
                twin(&schema, &payloads, how, found.as_ref().ok(), &what);
            }
            if !valid {
                let parser = BatchParser::new(&schema).validate_full(true);
                let e = parse(&parser, &payloads, how).expect_err(&what);
                assert_eq!(e.category(), Some(Category::MalformedProto), "{what}: {e}");
            }
        }
    }
    let followed: Vec<_> = followed.into_iter().collect();
    let want = [("either", 2), ("error", 30), ("proto", 40), ("refuse", 2), ("tf", 56)];
    assert_eq!(followed, want.map(|(follow, rows)| (follow.to_owned(), rows)));
}

fn same(found: &Result<Arrays>, want: Option<&Arrays>, what: &str) {
    match (found, want) {
        (Ok(found), Some(want)) => found.assert_eq(want, what),
        (Err(e), None) => assert!(e.is_data() && e.category().is_some(), "{what}: {e}"),
        (found, want) => panic!("{what}: {found:?} instead of {want:?}"),
    }
}

/// What kind of error each case is, and in which row. All others are none.
const ERRORS: &[(&str, Category, usize)] = &[
    ("sp004", Category::MissingFeature, 1),
    ("sp005", Category::KindMismatch, 1),
    ("sp006", Category::CountMismatch, 1),
    // An empty list is not an absent one.
    ("sp007", Category::CountMismatch, 0),
    ("sp011", Category::CountMismatch, 0),
    ("sp012", Category::MissingFeature, 0),
    ("sp015", Category::KindMismatch, 0),
    ("sp021", Category::KindMismatch, 0),
    ("sp026", Category::CountMismatch, 0),
    ("sp038", Category::BadSparseIndex, 0),
    ("sp040", Category::MissingFeature, 0),
    ("sp044", Category::CountMismatch, 0),
    ("sp045", Category::KindMismatch, 0),
    ("sp048", Category::MissingFeature, 0),
    // A context's feature without a kind has no values.
    ("sp049", Category::CountMismatch, 0),
    ("sp050", Category::CountMismatch, 0),
    ("sp051", Category::MalformedProto, 1),
];

/// The one case in which TensorFlow is believed only on request.
const INDEX_OUT_OF_RANGE: &str = "sp037";

#[test]
fn parse_cases() {
    let (mut values, mut errors) = (0, 0);
    for line in include_str!("../data/parse_cases.jsonl").lines() {
        let case: Value = serde_json::from_str(line).unwrap();
        let id = case["id"].as_str().unwrap();
        let what = format!("{id} {}", case["name"]);
        let schema = schema(&case).unwrap();
        let payloads: Vec<_> =
            case["payloads"].as_array().unwrap().iter().map(|hex| unhex(hex.as_str().unwrap())).collect();
        let listed = ERRORS.iter().find(|(other, ..)| *other == id);
        let how = How { single: case["mode"] == "single", valid: id != "sp051", ..How::default() };
        let want = answer(&case["expect"]);
        assert_eq!(want.is_none(), listed.is_some(), "{what}");

        let mut found = every_way(&schema, &payloads, how, &what);
        if id == INDEX_OUT_OF_RANGE {
            error(&found.unwrap_err(), Category::BadSparseIndex, 0, how, &what);
            let how = How { lenient_sparse_index: true, ..how };
            found = every_way(&schema, &payloads, how, &what);
            twin(&schema, &payloads, how, want.as_ref(), &what);
        } else {
            twin(&schema, &payloads, how, want.as_ref(), &what);
        }
        same(&found, want.as_ref(), &what);
        match listed {
            Some(&(_, category, row)) => {
                error(&found.unwrap_err(), category, row, how, &what);
                errors += 1;
            }
            None => values += 1,
        }
    }
    assert_eq!((values, errors), (35, 17));
}

fn error(e: &Error, category: Category, row: usize, how: How, what: &str) {
    assert_eq!(e.category(), Some(category), "{what}: {e}");
    match how.single {
        true => assert!(matches!(e.location().row, None | Some(0)), "{what}: {e}"),
        false => assert_eq!(e.location().row, Some(row), "{what}: {e}"),
    }
}
