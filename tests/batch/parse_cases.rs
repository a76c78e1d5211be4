//! Parsing with a schema gives TensorFlow's arrays bit for bit, or an error of the right category, for all
//! recorded cases (`tests/data/README.md`).

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

/// Parse options of a case.
#[derive(Clone, Copy, Debug, Default)]
struct ParseMode {
    single: bool,
}

/// Returns the arrays or the error, which must be the same for all row types and all options without an
/// effect on values.
fn parse_all_ways(schema: &Schema, payloads: &[Vec<u8>], mode: ParseMode, what: &str) -> Result<Arrays> {
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

    let mut results = vec![one_shot(schema, &slices, mode)];
    results.extend(options(schema, &slices, mode, false));
    results.extend(options(schema, payloads, mode, false));
    results.extend(options(schema, &regions, mode, true));
    results.extend(options(schema, &records, mode, true));
    let first = results.swap_remove(0);
    for other in results {
        match (&first, &other) {
            (Ok(first), Ok(other)) => other.assert_eq(first, what),
            // Messages differ, because rows that are records add a location.
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

fn one_shot(schema: &Schema, rows: &[&[u8]], mode: ParseMode) -> Result<Arrays> {
    let parser = BatchParser::new(schema);
    let batch = parse(&parser, rows, mode);
    batch.map(|batch| Arrays::from(&batch))
}

fn parse<R: Row>(parser: &BatchParser, rows: &[R], mode: ParseMode) -> Result<Batch> {
    if mode.single { parser.parse_single(&rows[0]) } else { parser.parse(rows) }
}

fn options<R: Row>(schema: &Schema, rows: &[R], mode: ParseMode, regions: bool) -> Vec<Result<Arrays>> {
    let mut results = Vec::new();
    for contiguous in [false, true] {
        let parser = BatchParser::new(schema).contiguous_bytes(contiguous);
        // The second parse knows the key order. The third parse reuses buffers.
        for _ in 0..3 {
            let batch = parse(&parser, rows, mode);
            if let Ok(batch) = &batch {
                for (_, column) in batch.columns().chain(batch.feature_lists()) {
                    check_borrowed(column, regions && !contiguous && !rows.is_empty());
                }
            }
            results.push(batch.map(|batch| Arrays::from(&batch)));
        }
    }
    results
}

/// Checks that byte strings borrow from the records where they can, and that `Values::Bytes` reports this
/// correctly.
fn check_borrowed(column: &Column, want: bool) {
    let Values::Bytes(bytes) = column.values() else { return };
    if !bytes.is_empty() {
        assert_eq!(bytes.is_borrowed(), want);
    }
    let (data, offsets) = bytes.to_contiguous().unwrap();
    assert_eq!((offsets.len(), offsets[0]), (bytes.len() + 1, 0));
    for (k, value) in bytes.iter().enumerate() {
        assert_eq!(bytes.get(k), Some(value));
        assert_eq!(&data[offsets[k] as usize..offsets[k + 1] as usize], value);
    }
    assert_eq!(bytes.get(bytes.len()), None);
    assert!(
        bytes.regions().len() == bytes.len()
            && bytes.regions().map(|region| region.to_vec()).eq(bytes.iter())
    );
    let spans: Vec<_> = bytes.iter().map(<[u8]>::as_ptr).collect();
    // Regions of borrowed strings are the same memory.
    assert!(!want || bytes.regions().map(|region| region.as_ptr()).eq(spans));
}

/// Checks that the naive twin gives the same arrays. Other tests use the twin as the reference.
fn check_twin(schema: &Schema, payloads: &[Vec<u8>], mode: ParseMode, want: Option<&Arrays>, what: &str) {
    let form = Form { single: mode.single };
    let twin = Want::new(schema, payloads, form);
    match (twin.arrays(), want) {
        (Some(twin), Some(want)) => twin.assert_eq(want, format!("{what}, the twin")),
        (None, None) => {}
        (twin, want) => panic!("{what}: expected {want:?} from the twin, found {twin:?}"),
    }
}

#[test]
fn wire_cases() {
    let mut followed = std::collections::BTreeMap::new();
    for line in include_str!("../data/wire_cases.jsonl").lines() {
        let row: Value = serde_json::from_str(line).unwrap();
        let schema = schema(&row).unwrap();
        let payloads = [unhex(row["payload"].as_str().unwrap())];
        let follow = row["follow"].as_str().unwrap();
        *followed.entry(follow.to_owned()).or_insert(0) += 1;
        for single in [true, false] {
            let what = format!("{} {}, single: {single}", row["id"], row["name"]);
            let mode = ParseMode { single };
            let found = parse_all_ways(&schema, &payloads, mode, &what);
            let tf = answer(&row[if single { "parse_single" } else { "parse_batch" }]);
            match (follow, single) {
                ("tf", _) => same(&found, tf.as_ref(), &what),
                ("proto", true) => same(&found, answer(&row["parse_canonical"]).as_ref(), &what),
                // Only the answer for the canonical payload is known.
                ("proto", false) => {
                    assert_eq!(found.is_ok(), row["parse_canonical"]["status"] == "ok", "{what}");
                    let canonical = [unhex(row["canonical"].as_str().unwrap())];
                    same(&found, parse_all_ways(&schema, &canonical, mode, &what).ok().as_ref(), &what);
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
                check_twin(&schema, &payloads, mode, found.as_ref().ok(), &what);
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

/// The error category and the row of each failing case. All other cases succeed.
const ERRORS: &[(&str, Category, usize)] = &[
    ("sp004", Category::MissingFeature, 1),
    ("sp005", Category::KindMismatch, 1),
    ("sp006", Category::CountMismatch, 1),
    // An empty list differs from an absent one.
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
    // A context feature without a kind has no values.
    ("sp049", Category::CountMismatch, 0),
    ("sp050", Category::CountMismatch, 0),
    ("sp051", Category::MalformedProto, 1),
];

/// The one case in which TensorFlow returns arrays and tfseek an error.
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
        let mode = ParseMode { single: case["mode"] == "single" };
        let want = answer(&case["expect"]);
        assert_eq!(want.is_none(), listed.is_some(), "{what}");

        let found = parse_all_ways(&schema, &payloads, mode, &what);
        if id == INDEX_OUT_OF_RANGE {
            error(&found.unwrap_err(), Category::BadSparseIndex, 0, mode, &what);
            check_twin(&schema, &payloads, mode, None, &what);
            errors += 1;
            continue;
        }
        check_twin(&schema, &payloads, mode, want.as_ref(), &what);
        same(&found, want.as_ref(), &what);
        match listed {
            Some(&(_, category, row)) => {
                error(&found.unwrap_err(), category, row, mode, &what);
                errors += 1;
            }
            None => values += 1,
        }
    }
    assert_eq!((values, errors), (34, 18));
}

fn error(e: &Error, category: Category, row: usize, mode: ParseMode, what: &str) {
    assert_eq!(e.category(), Some(category), "{what}: {e}");
    if mode.single {
        assert!(matches!(e.location().row, None | Some(0)), "{what}: {e}");
    } else {
        assert_eq!(e.location().row, Some(row), "{what}: {e}");
    }
}
