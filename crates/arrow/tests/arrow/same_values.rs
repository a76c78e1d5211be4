//! Values of record batches, for the recorded cases of TensorFlow and for random schemas and records.

use crate::cells::{Cell, check_padded, of_arrow, of_column};
use arrow_array::{Array, RecordBatch};
use serde_json::Value;
use tfseek::Result;
use tfseek::batch::{Batch, BatchParser};
use tfseek::error::Category;
use tfseek::io::Region;
use tfseek::schema::Schema;
use tfseek_arrow::{ByteStrings, Converter, Options, Tensors, schema_of};
use tfseek_testkit::agree_parse::Want;
use tfseek_testkit::arrays::Arrays;
use tfseek_testkit::hex::unhex;
use tfseek_testkit::oracle::{answer, schema};
use tfseek_testkit::presence::{has_feature, has_list};
use tfseek_testkit::rng::Rng;
use tfseek_testkit::shaped::{self, Style};
use tfseek_testkit::twin_parse::Form;

/// Options for any schema. Feature lists get names of their own.
fn options(schema: &Schema, bytes: ByteStrings, tensors: Tensors) -> Options {
    let lists = schema.feature_lists().keys();
    lists.fold(Options::new().bytes(bytes).tensors(tensors), |options, name| {
        options.rename_list(name, format!("list {name}"))
    })
}

/// Checks a record batch against arrays of the schema, or of the parser's schema.
///
/// `payloads` are given if the parser records presence: rows without the feature of a nullable list are then
/// null.
fn check(
    found: &RecordBatch,
    arrays: &Arrays,
    schema: &Schema,
    rows: usize,
    payloads: Option<&[Vec<u8>]>,
    what: &str,
) -> usize {
    let mut checked = 0;
    for (is_list, specs, columns) in
        [(false, schema.features(), &arrays.features), (true, schema.feature_lists(), &arrays.feature_lists)]
    {
        assert!(specs.keys().eq(columns.keys()), "{what}");
        for ((name, spec), column) in specs.iter().zip(columns.values()) {
            let arrow_name = if is_list { format!("list {name}") } else { name.clone() };
            let array = &found[&*arrow_name];
            let field = found.schema().field_with_name(&arrow_name).unwrap().clone();
            let is_tensor = !field.metadata().is_empty();
            let cells: Vec<Cell> = (0..array.len()).map(|row| of_arrow(array, row)).collect();
            let lengths = arrays.lengths.get(name).filter(|_| is_list);
            let want = of_column(column, spec, lengths, is_list, rows);
            let has = if is_list { has_list } else { has_feature };
            let is_present = |payload: &[u8]| has(schema, name, payload);
            let payloads = payloads.filter(|_| field.is_nullable());
            match want.map(|cells| with_nulls(cells, payloads, is_present)) {
                // A tensor has one list.
                Some(want) if is_tensor => {
                    assert_eq!(cells, want.into_iter().map(flat).collect::<Vec<_>>(), "{what}: {name}");
                }
                Some(want) => assert_eq!(cells, want, "{what}: {name}"),
                None if is_list => continue,
                None => check_padded(column, spec, &cells),
            }
            checked += 1;
        }
    }
    checked
}

/// Makes empty lists of absent features null.
fn with_nulls(
    cells: Vec<Cell>,
    payloads: Option<&[Vec<u8>]>,
    is_present: impl Fn(&[u8]) -> bool,
) -> Vec<Cell> {
    let Some(payloads) = payloads else { return cells };
    let rows = cells.into_iter().zip(payloads);
    let cells = rows.map(|(cell, payload)| match cell {
        Cell::List(items) if items.is_empty() && !is_present(payload) => Cell::Null,
        cell => cell,
    });
    cells.collect()
}

/// Joins nested lists into one.
fn flat(cell: Cell) -> Cell {
    fn leaves(cell: Cell, out: &mut Vec<Cell>) {
        match cell {
            Cell::List(cells) => cells.into_iter().for_each(|cell| leaves(cell, out)),
            other => out.push(other),
        }
    }
    let mut out = Vec::new();
    leaves(cell, &mut out);
    Cell::List(out)
}

/// Parses payloads as rows with or without regions.
fn parse(parser: &BatchParser, payloads: &[Vec<u8>], regions: bool) -> Result<Batch> {
    if regions {
        parser.parse(&payloads.iter().map(|payload| Region::new(payload.clone())).collect::<Vec<_>>())
    } else {
        parser.parse(payloads)
    }
}

/// Converts payloads in all ways. Returns false if they are refused.
fn converts(schema: &Schema, payloads: &[Vec<u8>], arrays: &[&Arrays], form: Form, what: &str) -> bool {
    let mut good = true;
    for (bytes, tensors) in [
        (ByteStrings::View, Tensors::Lists),
        (ByteStrings::Auto, Tensors::Lists),
        (ByteStrings::Copy, Tensors::Extension),
        (ByteStrings::Copy, Tensors::Lists),
    ] {
        let options = options(schema, bytes, tensors);
        let converter = Converter::new(schema, &options).unwrap();
        assert_eq!(schema_of(schema, &options).unwrap(), **converter.schema());
        let parsers = [
            (converter.parser(), true),
            (BatchParser::new(converter.parser_schema()), false),
            (BatchParser::new(converter.parser_schema()).contiguous_bytes(true).presence(true), true),
        ];
        for (parser, presence) in parsers {
            let present = Some(payloads).filter(|_| presence);
            for regions in [false, true] {
                let original = parse(&BatchParser::new(schema), payloads, regions);
                let batch = match (parse(&parser, payloads, regions), original) {
                    (Ok(batch), Ok(_)) => batch,
                    (Err(a), Err(b)) => {
                        assert_eq!(a.location().row, b.location().row, "{what}: {a} and {b}");
                        good = false;
                        continue;
                    }
                    (Err(e), Ok(_)) | (Ok(_), Err(e)) if e.category() == Some(Category::TooLarge) => continue,
                    (a, b) => panic!("{what}: {a:?} and {b:?}"),
                };
                let found = converter.record_batch(&batch).unwrap_or_else(|e| panic!("{what}: {e}"));
                assert_eq!(found.num_rows(), payloads.len(), "{what}");
                for array in found.columns() {
                    array.to_data().validate_full().unwrap_or_else(|e| panic!("{what}: {e}"));
                }
                for arrays in arrays {
                    check(&found, arrays, schema, payloads.len(), present, what);
                }
                let Some(twin) = Want::new(converter.parser_schema(), payloads, form).arrays().cloned()
                else {
                    continue;
                };
                let columns = check(&found, &twin, converter.parser_schema(), payloads.len(), present, what);
                assert_eq!(columns, found.num_columns(), "{what}");
            }
        }
    }
    good
}

#[test]
fn parse_cases() {
    let (mut good, mut refused) = (0, 0);
    for line in include_str!("../../../../tests/data/parse_cases.jsonl").lines() {
        let case: Value = serde_json::from_str(line).unwrap();
        let what = format!("{} {}", case["id"], case["name"]);
        let schema = schema(&case).unwrap();
        let payloads: Vec<_> =
            case["payloads"].as_array().unwrap().iter().map(|hex| unhex(hex.as_str().unwrap())).collect();
        // TensorFlow accepts a sparse index that is out of range.
        let agrees = case["mode"] != "single" && case["id"] != "sp037";
        let form = Form { single: false };
        let recorded = answer(&case["expect"]).filter(|_| agrees);
        let twin = Want::new(&schema, &payloads, form).arrays().cloned();
        let arrays: Vec<&Arrays> = recorded.iter().chain(&twin).collect();
        assert!(recorded.is_none() || twin.is_some(), "{what}");
        if converts(&schema, &payloads, &arrays, form, &what) {
            assert!(twin.is_some(), "{what}");
            good += 1;
        } else {
            assert!(twin.is_none(), "{what}");
            refused += 1;
        }
    }
    assert_eq!((good, refused), (34, 18));
}

fn random(schema: fn(&mut Rng) -> Schema) {
    let (mut good, mut refused) = (0, 0);
    for seed in 0..400 {
        let mut rng = Rng::new(seed);
        let schema = schema(&mut rng);
        let rows = rng.pick(&[0, 1, 2, 3, 5, 17, 63, 64, 65]);
        let style = Style {
            odd: rng.pick(&[0, 0, 20]),
            own_order: rng.chance(100),
            spoilt: rng.pick(&[0, 0, 0, 3]),
            damaged: 0,
        };
        let payloads: Vec<Vec<u8>> = (0..rows).map(|_| shaped::payload(&mut rng, &schema, style)).collect();
        let form = Form { single: false };
        let what = format!("seed {seed}: {schema:?}");
        let twin = Want::new(&schema, &payloads, form).arrays().cloned();
        let arrays: Vec<&Arrays> = twin.iter().collect();
        if converts(&schema, &payloads, &arrays, form, &what) {
            good += 1;
        } else {
            refused += 1;
        }
    }
    println!("{good} batches, {refused} refused");
    assert!(good > refused && refused > 10, "{good} {refused}");
}

#[test]
fn random_examples() {
    random(|rng| shaped::schema(rng, false));
}

#[test]
fn random_sequence_examples() {
    random(|rng| shaped::schema(rng, true));
}

#[test]
fn random_arrays_in_byte_strings() {
    random(|rng| {
        loop {
            let schema = shaped::schema_of_arrays(rng);
            // Arrow does not have all types.
            if schema_of(&schema, &Options::new()).is_ok() {
                return schema;
            }
        }
    });
}
