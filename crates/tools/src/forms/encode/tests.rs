use super::{FeatureKinds, JsonForm, JsonRecords, ObservedKinds};
use std::io::{self, Read};
use tfseek::{Example, ExampleBuilder, FeatureBuf, Schema, SequenceExampleBuilder};
use tfseek_testkit::rng::Rng;

const SCHEMA: &str = r#"{"features": {
    "i": {"type": "varlen", "dtype": "int64"},
    "f": {"type": "fixed", "dtype": "float32", "shape": [2]},
    "b": {"type": "optional", "dtype": "string"},
    "r": {"type": "ragged", "dtype": "float32", "value_key": "rv", "partitions": [{"kind": "row_splits", "key": "rs"}]},
    "s": {"type": "sparse", "dtype": "string", "index_key": "si", "value_key": "sv", "size": 9}
}}"#;
const SEQUENCE: &str = r#"{"context": {"id": {"type": "varlen", "dtype": "int64"}, "both": {"type": "varlen", "dtype": "int64"}},
    "sequence": {"frames": {"type": "varlen", "dtype": "float32"}, "both": {"type": "varlen", "dtype": "int64"}}}"#;

/// Returns three bytes at a time, so that tokens lie in several buffers, and is interrupted before them.
struct Trickle<'a>(&'a [u8], usize);

impl Read for Trickle<'_> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        self.1 += 1;
        if self.1 % 2 == 1 {
            return Err(io::ErrorKind::Interrupted.into());
        }
        let n = self.0.len().min(3);
        (&mut self.0).take(n as u64).read(buf)
    }
}

fn read(text: &[u8], schema: Option<&str>, form: JsonForm) -> Result<Vec<Vec<u8>>, String> {
    read_bounded(text, schema, form, 1 << 20)
}

fn read_bounded(text: &[u8], schema: Option<&str>, form: JsonForm, max: u64) -> Result<Vec<Vec<u8>>, String> {
    let at_once = read_all(text, text.len(), schema, form, max);
    let in_pieces = read_all(Trickle(text, 0), text.len(), schema, form, max);
    assert_eq!(at_once, in_pieces);
    at_once
}

fn read_all(
    text: impl Read,
    len: usize,
    schema: Option<&str>,
    form: JsonForm,
    max: u64,
) -> Result<Vec<Vec<u8>>, String> {
    let kinds = schema.map(|schema| FeatureKinds::of(&Schema::from_json(schema).unwrap()));
    let mut reader = JsonRecords::new(text, kinds, form, max);
    let mut payloads = Vec::new();
    let mut payload = Vec::new();
    while reader.next(&mut payload).map_err(|e| e.to_string())? {
        payloads.push(payload.clone());
    }
    assert_eq!(reader.offset(), len as u64);
    Ok(payloads)
}

fn one(text: &str, schema: Option<&str>, form: JsonForm) -> Vec<u8> {
    let mut payloads = read(text.as_bytes(), schema, form).unwrap();
    assert_eq!(payloads.len(), 1, "{text}");
    payloads.remove(0)
}

#[test]
fn the_plain_form() {
    let example = || ExampleBuilder::new();
    let table = [
        (
            r#"{"i": 1, "f": 0.5, "b": "abc"}"#,
            example().int64("i", [1]).float("f", [0.5f32]).bytes("b", ["abc"]),
        ),
        (
            r#"{"i": [], "f": [1, -2.5e1, "NaN"], "b": null}"#,
            example().int64("i", [0i64; 0]).float("f", [1.0, -25.0, f32::NAN]),
        ),
        (
            r#" { "i" : [ -9223372036854775808 , 9223372036854775807, -0 ] } "#,
            example().int64("i", [i64::MIN, i64::MAX, 0]),
        ),
        (
            r#"{"b": [{"base64": "/w=="}, {"base64": "_w"}, "\u00e9\ud83d\ude00\n\/"]}"#,
            example().bytes("b", [&b"\xff"[..], b"\xff", "é😀\n/".as_bytes()]),
        ),
        (
            r#"{"f": ["Infinity", "-Infinity", -0.0, 1e-45, 16777217]}"#,
            example().float("f", [f32::INFINITY, f32::NEG_INFINITY, -0.0, 1e-45, 16_777_216.0]),
        ),
        (
            r#"{"rv": [1.5], "rs": [0, 1], "si": 3, "sv": "x"}"#,
            example().float("rv", [1.5f32]).int64("rs", [0, 1]).int64("si", [3]).bytes("sv", ["x"]),
        ),
        (r#"{"i": null}"#, example()),
    ];
    for (text, want) in table {
        for form in [JsonForm::Auto, JsonForm::Plain] {
            assert_eq!(one(text, Some(SCHEMA), form), want.encode().unwrap(), "{text}");
        }
    }
    // An empty object is an empty payload.
    assert_eq!(one("{}", Some(SCHEMA), JsonForm::Auto), b"");
    let want = SequenceExampleBuilder::new()
        .int64("id", [7])
        .feature_list(
            "frames",
            [FeatureBuf::Float(vec![0.5]), FeatureBuf::None, FeatureBuf::Float(vec![1.0, 2.0])],
        )
        .encode()
        .unwrap();
    assert_eq!(one(r#"{"frames": [0.5, null, [1, 2]], "id": 7}"#, Some(SEQUENCE), JsonForm::Auto), want);
    assert_eq!(one(r#"{"frames": null, "id": null}"#, Some(SEQUENCE), JsonForm::Auto), b"");
}

#[test]
fn the_form_of_cat() {
    let table: &[(&str, Vec<u8>)] = &[
        (
            r#"{"index":7,"record":2,"features":{"i":[1],"b":["a",{"base64":"/w=="}],"unset":null,"f":null}}"#,
            ExampleBuilder::new()
                .int64("i", [1])
                .bytes("b", [&b"a"[..], b"\xff"])
                .feature("unset", FeatureBuf::None)
                .feature("f", FeatureBuf::None)
                .encode()
                .unwrap(),
        ),
        (r#"{"file":"a","index":null,"record":2,"payload":{"base64":"/w=="}}"#, b"\xff".to_vec()),
        (r#"{"index":0,"record":2,"payload":"text"}"#, b"text".to_vec()),
        (r#"{"features":{}}"#, vec![10, 0]),
    ];
    for (text, want) in table {
        for form in [JsonForm::Auto, JsonForm::Json] {
            assert_eq!(one(text, Some(SCHEMA), form), *want, "{text}");
        }
    }
    let text = r#"{"index":7,"record":2,"context":{"id":[5]},"feature_lists":{"frames":[[0.5],null,[]],"other":[null],"none":[]}}"#;
    let want = SequenceExampleBuilder::new()
        .int64("id", [5])
        .feature_list("other", [FeatureBuf::None])
        .feature_list("none", [])
        .feature_list("frames", [FeatureBuf::Float(vec![0.5]), FeatureBuf::None, FeatureBuf::Float(vec![])])
        .encode()
        .unwrap();
    assert_eq!(one(text, Some(SEQUENCE), JsonForm::Auto), want);
    // Payloads need no schema.
    assert_eq!(one(r#"{"payload": "x"}"#, None, JsonForm::Auto), b"x");
}

#[test]
fn the_form_of_protobuf() {
    let text = r#"{
      "features": {"feature": {
        "i": {"int64List": {"value": ["1", -2]}},
        "f": {"float_list": {"value": [0.5, "NaN", "1.5"]}},
        "b": {"bytesList": {"value": ["/w==", ""]}},
        "none": {}, "empty": {"int64List": {}}
      }}
    }
    {"features": {}} {} "/w==""#;
    let want = ExampleBuilder::new()
        .int64("i", [1, -2])
        .float("f", [0.5, f32::NAN, 1.5])
        .bytes("b", [&b"\xff"[..], b""])
        .feature("none", FeatureBuf::None)
        .int64("empty", [0i64; 0])
        .encode()
        .unwrap();
    for form in [JsonForm::Auto, JsonForm::ProtoJson] {
        let payloads = read(text.as_bytes(), None, form).unwrap();
        assert_eq!(payloads, [want.clone(), vec![10, 0], vec![], vec![0xff]]);
    }
    let text = r#"{"context": {"feature": {"id": {"int64List": {"value": ["5"]}}}},
        "featureLists": {"featureList": {"frames": {"feature": [{"floatList": {"value": [0.5]}}, {}]}, "none": {}}}}"#;
    let want = SequenceExampleBuilder::new()
        .int64("id", [5])
        .feature_list("frames", [FeatureBuf::Float(vec![0.5]), FeatureBuf::None])
        .feature_list("none", [])
        .encode()
        .unwrap();
    assert_eq!(one(text, None, JsonForm::Auto), want);
}

/// The first key decides, and a feature of the schema comes first.
#[test]
fn features_with_the_names_of_other_keys() {
    let schema = r#"{"features": {"features": {"type": "varlen", "dtype": "int64"}, "feature": {"type": "varlen", "dtype": "int64"}}}"#;
    let plain = ExampleBuilder::new().int64("features", [3]).encode().unwrap();
    let inner = ExampleBuilder::new().int64("feature", [3]).encode().unwrap();
    assert_eq!(one(r#"{"features": 3}"#, Some(schema), JsonForm::Auto), plain);
    assert_eq!(one(r#"{"features": {"feature": [3]}}"#, Some(schema), JsonForm::Json), inner);
    assert_eq!(one(r#"{"index": 0, "features": {"feature": [3]}}"#, Some(schema), JsonForm::Auto), inner);
    // A feature named `index`, in records with numbers and without.
    let schema = r#"{"features": {"index": {"type": "varlen", "dtype": "string"}, "record": {"type": "varlen", "dtype": "int64"}}}"#;
    let both = ExampleBuilder::new().bytes("index", ["x"]).int64("record", [2]).encode().unwrap();
    for text in [
        r#"{"index": "x", "record": 2}"#,
        r#"{"record": 2, "index": ["x"]}"#,
        r#"{"index": 0, "record": 0, "features": {"index": ["x"], "record": [2]}}"#,
        r#"{"file": "f", "index": 0, "record": 0, "features": {"index": ["x"], "record": [2]}}"#,
    ] {
        assert_eq!(one(text, Some(schema), JsonForm::Auto), both, "{text}");
    }
    let only = ExampleBuilder::new().int64("record", [2]).encode().unwrap();
    assert_eq!(one(r#"{"index": null, "record": 2}"#, Some(schema), JsonForm::Auto), only);
    for (text, want) in [
        (
            r#"{"index": 1, "record": 2}"#,
            "column 11 (byte 10): feature \"index\": expected a string or {\"base64\": ..}, found 1",
        ),
        (r#"{"record": 1, "record": 2}"#, "column 15 (byte 14): the key \"record\" is given twice"),
        (
            r#"{"index": true, "features": {}}"#,
            "column 11 (byte 10): index: expected a number or a path, found true",
        ),
    ] {
        let e = read(text.as_bytes(), Some(schema), JsonForm::Auto).unwrap_err();
        assert_eq!(without_form(&e), format!("line 1, {want}"));
    }
    let schema = r#"{"features": {"feature": {"type": "varlen", "dtype": "int64"}}}"#;
    let text = r#"{"features": {"feature": {"feature": {"int64List": {"value": [3]}}}}}"#;
    assert_eq!(one(text, Some(schema), JsonForm::ProtoJson), inner);
}

#[test]
fn bools_are_integers() {
    let text = b"{\"i\": true}{\"i\": [false, 3]}";
    let want =
        [[1].as_slice(), &[0, 3]].map(|values| ExampleBuilder::new().int64("i", values).encode().unwrap());
    assert_eq!(read(text, Some(SCHEMA), JsonForm::Auto).unwrap(), want);
}

/// Returns a message without the remark about another form.
fn without_form(message: &str) -> &str {
    message.trim_end_matches("; in the form `plain` (`-f plain`) each key is a feature")
}

#[test]
#[cfg_attr(miri, ignore = "too slow under Miri")]
fn errors_have_their_place() {
    let auto = |text: &str| read(text.as_bytes(), Some(SCHEMA), JsonForm::Auto).unwrap_err();
    let table = [
        // Values of another kind.
        (r#"{"i": 1.0}"#, "line 1, column 7 (byte 6): feature \"i\": expected an int64, found 1.0"),
        (
            r#"{"f": [1, true]}"#,
            "line 1, column 11 (byte 10): feature \"f\": expected a float, \"NaN\", \"Infinity\" or \"-Infinity\", found true",
        ),
        (r#"{"i": "1"}"#, "line 1, column 7 (byte 6): feature \"i\": expected an int64, found \"1\""),
        (r#"{"i": [[1]]}"#, "line 1, column 8 (byte 7): feature \"i\": expected an int64, found a list"),
        (r#"{"i": [null]}"#, "line 1, column 8 (byte 7): feature \"i\": expected an int64, found null"),
        (
            r#"{"f": "nan"}"#,
            "line 1, column 7 (byte 6): feature \"f\": expected a float, \"NaN\", \"Infinity\" or \"-Infinity\", found \"nan\"",
        ),
        (
            r#"{"b": 1}"#,
            "line 1, column 7 (byte 6): feature \"b\": expected a string or {\"base64\": ..}, found 1",
        ),
        (
            r#"{"b": {"base64": "!"}}"#,
            "line 1, column 18 (byte 17): feature \"b\": expected base64, found \"!\"",
        ),
        (
            r#"{"b": {"hex": "!"}}"#,
            "line 1, column 8 (byte 7): feature \"b\": expected a value, a list of values or {\"base64\": ..}, because features are not nested, found the key \"hex\"",
        ),
        // Numbers beyond their range.
        (
            r#"{"i": 9223372036854775808}"#,
            "line 1, column 7 (byte 6): feature \"i\": expected an int64 from -2^63 to 2^63 - 1, found 9223372036854775808",
        ),
        (
            r#"{"f": [3.5e38]}"#,
            "line 1, column 8 (byte 7): feature \"f\": expected a float from -3.4028235e38 to 3.4028235e38, found 3.5e38",
        ),
        // Keys.
        (r#"{"i": 1, "i": 2}"#, "line 1, column 10 (byte 9): the key \"i\" is given twice"),
        (r#"{"i": null, "i": 2}"#, "line 1, column 13 (byte 12): the key \"i\" is given twice"),
        (r#"{"x": 1}"#, "line 1, column 2 (byte 1): feature \"x\": expected a feature of the schema"),
        (r#"{"r": 1}"#, "line 1, column 2 (byte 1): feature \"r\": expected a feature of the schema"),
        (
            r#"{"i": 1, "features": {}}"#,
            "line 1, column 10 (byte 9): feature \"features\": expected a feature of the schema",
        ),
        (
            r#"{"features": {"x": []}}"#,
            "line 1, column 15 (byte 14): feature \"x\": expected a feature of the schema",
        ),
        (r#"{"features": {"i": [], "i": []}}"#, "line 1, column 24 (byte 23): the key \"i\" is given twice"),
        (r#"{"index": 0, "index": 1}"#, "line 1, column 14 (byte 13): the key \"index\" is given twice"),
        (
            r#"{"index": 0, "other": 1}"#,
            "line 1, column 14 (byte 13): expected \"features\", or \"context\" and \"feature_lists\", found the key \"other\"",
        ),
        (
            r#"{"index": 0}"#,
            "line 1, column 2 (byte 1): expected \"features\", or \"context\" and \"feature_lists\", or \"payload\", found none of them",
        ),
        (
            r#"{"features": {}, "payload": ""}"#,
            "line 1, column 2 (byte 1): expected \"features\", or \"context\" and \"feature_lists\", or \"payload\", found several of them",
        ),
        (
            r#"{"index": [0]}"#,
            "line 1, column 11 (byte 10): index: expected a number or a path, found a list",
        ),
        (
            r#"{"features": {"feature": {"i": {"int32List": {}}}}}"#,
            "line 1, column 33 (byte 32): feature \"i\": expected \"bytesList\", \"floatList\" or \"int64List\", found the key \"int32List\"",
        ),
        (
            r#"{"features": {"feature": {"b": {"bytesList": {"value": [1]}}}}}"#,
            "line 1, column 57 (byte 56): feature \"b\": expected a string in base64, found 1",
        ),
        (
            r#"{"features": {"feature": {"i": {"int64List": {}, "floatList": {}}}}}"#,
            "line 1, column 50 (byte 49): feature \"i\": expected one key, found another one, \"floatList\"",
        ),
        (
            r#"{"feature_lists": {}, "featureLists": {}}"#,
            "line 1, column 2 (byte 1): expected \"feature_lists\" once, found both of its spellings",
        ),
        // A key is compared without its escapes.
        (r#"{"i": 1, "\u0069": 2}"#, "line 1, column 10 (byte 9): the key \"i\" is given twice"),
        // A value that is no record.
        ("{\"i\": 1} 17 {", "line 1, column 10 (byte 9): expected an object, found 17"),
        ("-1.5e3\u{e9}", "line 1, column 1 (byte 0): expected an object, found -1.5e3"),
        ("null", "line 1, column 1 (byte 0): expected an object, found null"),
        // A list of records is refused at its start, also one that never ends.
        ("[{\"i\": 1},", "line 1, column 1 (byte 0): expected an object, found a list"),
        // JSON.
        ("{\"i\": 1}\n[1]", "line 2, column 1 (byte 9): expected an object, found a list"),
        (
            "{\"i\": 1}\n\n {\"i\": 01}",
            "line 3, column 9 (byte 18): expected JSON, found `1` (invalid number)",
        ),
        ("{\"i\": 1\n{\"i\": 1}", "line 2, column 1 (byte 8): expected `,` or `}`, found `{`"),
        ("{\"i\": 1,}", "line 1, column 9 (byte 8): expected JSON, found `}` (key must be a string)"),
        ("{\"i\" 1}", "line 1, column 6 (byte 5): expected `:`, found `1`"),
        ("{\"i\": [1,]}", "line 1, column 10 (byte 9): expected value, found `]`"),
        ("{\"i\": [1 2]}", "line 1, column 10 (byte 9): expected `,` or `]`, found `2`"),
        ("{\"i\": nul}", "line 1, column 10 (byte 9): expected ident, found `}`"),
        (
            "{\"i\": 1",
            "line 1, column 8 (byte 7): expected JSON, found the end of the text (EOF while parsing an object)",
        ),
        (
            "{\"b\": \"x\ny\"}",
            "line 1, column 9 (byte 8): expected JSON, found the end of the line (control character (\\u0000-\\u001F) found while parsing a string)",
        ),
        ("{\"b\": \"\\x\"}", "line 1, column 9 (byte 8): expected JSON, found `x` (invalid escape)"),
        (
            "{\"b\": \"\\ud800\"}",
            "line 1, column 7 (byte 6): feature \"b\": expected characters, found half of a surrogate pair",
        ),
        ("{\"b\": \"\\u12g4\"}", "line 1, column 13 (byte 12): expected JSON, found `4` (invalid escape)"),
    ];
    for (text, want) in table {
        assert_eq!(without_form(&auto(text)), want, "{text}");
    }
    // Nesting needs no stack.
    let deep = format!("{{\"i\": {}", "[".repeat(1 << 19));
    assert!(auto(&deep).ends_with("found the end of the text (EOF while parsing a list)"));
    let deep = format!("{{\"i\": [{}{}]}}", "[".repeat(1 << 18), "]".repeat(1 << 18));
    assert_eq!(auto(&deep), "line 1, column 8 (byte 7): feature \"i\": expected an int64, found a list");
    assert_eq!(
        read(b"{\"b\": \"\xff\"}", Some(SCHEMA), JsonForm::Auto).unwrap_err(),
        "line 1, column 8 (byte 7): expected a string in UTF-8, found byte 0xff (write other bytes as {\"base64\": ..})"
    );
    assert!(read(b"\x1f\x8b", Some(SCHEMA), JsonForm::Auto).unwrap_err().contains("found byte 0x1f"));
    for text in
        [r#"{"feature_lists": {"x": [null, [1]]}}"#, r#"{"context": {}, "feature_lists": {"x": null}}"#]
    {
        let e = read(text.as_bytes(), Some(SEQUENCE), JsonForm::Auto).unwrap_err();
        assert!(without_form(&e).ends_with("feature \"x\": expected a feature of the schema"), "{e}");
    }
    let both = read(br#"{"both": 1}"#, Some(SEQUENCE), JsonForm::Auto).unwrap_err();
    assert!(both.contains("\"both\"") && both.contains("feature_lists"), "{both}");
    for text in [r#"{"a": 1}"#, r#"{"features": {"a": [1]}}"#, r#"{"index": 0, "features": {"a": []}}"#] {
        let e = read(text.as_bytes(), None, JsonForm::Auto).unwrap_err();
        assert!(e.contains("feature \"a\": expected a schema"), "{e}");
    }
    let e = read(b"\"text\"", Some(SCHEMA), JsonForm::Json).unwrap_err();
    assert_eq!(e, "line 1, column 1 (byte 0): expected an object, found \"text\"");
    let e = read(br#"{"features": {"i": [1]}}"#, Some(SCHEMA), JsonForm::ProtoJson).unwrap_err();
    assert_eq!(e, "line 1, column 15 (byte 14): expected \"feature\" once, found the key \"i\"");
}

/// Every text that is cut off is an error, or ends after a record.
#[test]
#[cfg_attr(miri, ignore = "too slow under Miri")]
fn every_truncation() {
    let text =
        r#"{"i": [1, 2], "b": "a\u00e9\n", "f": [1.5e3, "NaN"]} {"features": {"b": [{"base64": "/w=="}]}}"#;
    let whole = read(text.as_bytes(), Some(SCHEMA), JsonForm::Auto).unwrap();
    assert_eq!(whole.len(), 2);
    let first = text.find("} {").unwrap() + 1;
    for end in 0..text.len() {
        let cut = read(&text.as_bytes()[..end], Some(SCHEMA), JsonForm::Auto);
        match end {
            0 => assert_eq!(cut, Ok(vec![])),
            end if end == first || end == first + 1 => assert_eq!(cut, Ok(whole[..1].to_vec())),
            _ => assert!(cut.is_err(), "{end}"),
        }
    }
}

#[test]
fn the_length_of_a_record_is_bounded() {
    let record = r#"{"b": "abcdefghij"}"#;
    // Space between records does not count.
    let text = format!("{record}\n{}{record}", " ".repeat(100));
    let max = record.len() as u64;
    assert_eq!(read_bounded(text.as_bytes(), Some(SCHEMA), JsonForm::Auto, max).unwrap().len(), 2);
    let e = read_bounded(text.as_bytes(), Some(SCHEMA), JsonForm::Auto, max - 1).unwrap_err();
    assert!(e.ends_with("expected a record of at most 18 bytes of JSON, found a longer one"), "{e}");
    let endless = format!("{{\"b\": \"{}", "x".repeat(1000));
    let e = read_bounded(endless.as_bytes(), Some(SCHEMA), JsonForm::Auto, 100).unwrap_err();
    assert!(e.contains("at most 100 bytes"), "{e}");
}

/// Strings and numbers equal serde_json's, and only texts it reads are accepted. Floats are rounded once.
#[test]
#[cfg_attr(miri, ignore = "too slow under Miri")]
fn strings_and_numbers_are_those_of_serde_json() {
    let mut rng = Rng::new(7);
    let mut strings = 0;
    let mut numbers = 0;
    for _ in 0..30_000 {
        let piece = |rng: &mut Rng| {
            rng.pick(&[
                "a",
                "é",
                "\\n",
                "\\u0041",
                "\\ud83d\\ude00",
                "\\ud83d",
                "\\",
                "\"",
                "\u{1}",
                "/",
                "\\/",
                "\\u00",
                "😀",
                "\\b\\f\\r\\t",
            ])
        };
        let n = rng.below(4);
        let string = format!("\"{}\"", (0..n).map(|_| piece(&mut rng)).collect::<String>());
        let ours = read(format!("{{\"b\": {string}}}").as_bytes(), Some(SCHEMA), JsonForm::Auto);
        let theirs = serde_json::from_str::<String>(&string);
        assert_eq!(ours.is_ok(), theirs.is_ok(), "{string}: {ours:?}, {theirs:?}");
        if let (Ok(ours), Ok(theirs)) = (ours, theirs) {
            assert_eq!(ours, [ExampleBuilder::new().bytes("b", [theirs]).encode().unwrap()], "{string}");
            strings += 1;
        }
        let n = 1 + rng.below(6);
        let number: String =
            (0..n).map(|_| rng.pick(&["0", "1", "9", "25", ".", "e", "E", "-", "+", "0.1"])).collect();
        let ours = read(format!("{{\"f\": {number}}}").as_bytes(), Some(SCHEMA), JsonForm::Auto);
        match serde_json::from_str::<f64>(&number) {
            Ok(_) => {
                let value: f32 = number.parse().unwrap();
                let want = ExampleBuilder::new().float("f", [value]).encode().unwrap();
                assert!(ours == Ok(vec![want]) || value.is_infinite() && ours.is_err(), "{number}: {ours:?}");
                numbers += 1;
            }
            // It refuses numbers that it cannot represent.
            Err(_) => assert!(ours.is_err(), "{number}: {ours:?}"),
        }
    }
    assert!(strings > 1000 && numbers > 1000, "{strings} {numbers}");
}

/// Records of all lengths around the buffer's length, some of which lie in it as a whole. Errors have the
/// same place.
#[test]
#[cfg_attr(miri, ignore = "too slow under Miri")]
fn records_on_the_border_of_the_buffer() {
    let text: String = (0..40).map(|k| format!("{{\"b\": \"{}\"}}\n", "é".repeat(k * 100))).collect();
    let payloads = read(text.as_bytes(), Some(SCHEMA), JsonForm::Auto).unwrap();
    assert!(text.len() > 2 * (64 << 10) && payloads.len() == 40);
    for (k, payload) in payloads.iter().enumerate() {
        let want = ExampleBuilder::new().bytes("b", ["é".repeat(k * 100)]).encode().unwrap();
        assert_eq!(*payload, want);
    }
    let e = read((text.clone() + "{\"i\":\n1.5}").as_bytes(), Some(SCHEMA), JsonForm::Auto).unwrap_err();
    let want =
        format!("line 42, column 1 (byte {}): feature \"i\": expected an int64, found 1.5", text.len() + 6);
    assert_eq!(e, want);
}

/// Texts with small changes: no panic, and only JSON is accepted.
#[test]
#[cfg_attr(miri, ignore = "too slow under Miri")]
fn changed_texts_are_records_or_errors() {
    const TEXTS: &[&str] = &[
        r#"{"i": [1, 2], "b": ["x", {"base64": "/w=="}], "f": -1.5e3}"#,
        r#"{"index":7,"record":2,"features":{"i":[1],"b":["a"],"unset":null}}"#,
        r#"{"features": {"feature": {"i": {"int64List": {"value": ["1", -2]}}, "b": {"bytesList": {"value": ["/w=="]}}}}}"#,
        r#"{"payload": {"base64": "/w=="}} "/w==" {}"#,
    ];
    let mut rng = Rng::new(3);
    let mut accepted = 0;
    for k in 0..40_000 {
        let mut text = TEXTS[k % TEXTS.len()].as_bytes().to_vec();
        for _ in 0..1 + rng.below(3) {
            match rng.below(3) {
                0 => tfseek_testkit::payloads::mutate(&mut rng, &mut text),
                1 => {
                    let at = rng.below(text.len() + 1);
                    text.insert(at, rng.pick(b"{}[],:\"\\ 1n-"));
                }
                _ if !text.is_empty() => drop(text.remove(rng.below(text.len()))),
                _ => {}
            }
        }
        if let Ok(payloads) = read(&text, Some(SCHEMA), JsonForm::Auto) {
            let values = serde_json::Deserializer::from_slice(&text).into_iter::<serde_json::Value>();
            let values: Result<Vec<_>, _> = values.collect();
            assert_eq!(values.unwrap().len(), payloads.len(), "{}", String::from_utf8_lossy(&text));
            for payload in payloads {
                drop(Example::new(&payload).validate());
            }
            accepted += 1;
        }
    }
    assert!(accepted > 1000, "{accepted}");
}

/// Both alphabets, with and without padding, as protobuf reads them. Bits that belong to no byte are not
/// dropped.
#[test]
fn base64_is_that_of_protobuf() {
    for (text, want) in [
        ("", &b""[..]),
        ("Zg==", b"f"),
        ("Zg=", b"f"),
        ("Zg", b"f"),
        ("Zm8=", b"fo"),
        ("Zm8", b"fo"),
        ("Zm9v", b"foo"),
        ("-_+/", b"\xfb\xff\xbf"),
        ("_w", b"\xff"),
    ] {
        let json = format!(r#"{{"b": {{"base64": "{text}"}}}}"#);
        let want = ExampleBuilder::new().bytes("b", [want]).encode().unwrap();
        assert_eq!(one(&json, Some(SCHEMA), JsonForm::Auto), want, "{text}");
    }
    for text in ["Z", "Z===", "=", "Zg===", "Zg==Zg==", "Z=g=", "Zm9*", "Zg\\n==", "Zm9v ", "Zh=="] {
        let json = format!(r#"{{"b": {{"base64": "{text}"}}}}"#);
        let e = read(json.as_bytes(), Some(SCHEMA), JsonForm::Auto).unwrap_err();
        assert!(e.contains("column 18 (byte 17): feature \"b\": expected base64, found"), "{text}: {e}");
    }
}

/// Returns the payloads of records whose kinds are their values' kinds.
fn observed(text: &str, form: JsonForm) -> Result<Vec<Vec<u8>>, String> {
    let mut seen = ObservedKinds::default();
    let mut reader = JsonRecords::new(text.as_bytes(), None, form, 1 << 20);
    while reader.observe(&mut seen).map_err(|e| e.to_string())? {}
    let kinds = seen.kinds().map_err(|e| e.to_string())?;
    let mut reader = JsonRecords::new(text.as_bytes(), Some(kinds), form, 1 << 20);
    let mut payloads = Vec::new();
    let mut payload = Vec::new();
    while reader.next(&mut payload).map_err(|e| e.to_string())? {
        payloads.push(payload.clone());
    }
    Ok(payloads)
}

#[test]
fn values_show_their_kinds() {
    let example = |b: ExampleBuilder| b.encode().unwrap();
    let text = "{\"i\": 1, \"f\": \"NaN\", \"b\": \"NaN\", \"e\": []}\n{\"f\": [1.0, 2e3], \"b\": {\"base64\": \"_w\"}, \"e\": 7, \"n\": null}\n";
    let want = vec![
        example(
            ExampleBuilder::new()
                .int64("i", [1])
                .float("f", [f32::NAN])
                .bytes("b", ["NaN"])
                .int64("e", [0i64; 0]),
        ),
        example(ExampleBuilder::new().float("f", [1.0f32, 2000.0]).bytes("b", [b"\xff"]).int64("e", [7])),
    ];
    assert_eq!(observed(text, JsonForm::Auto).unwrap(), want);

    // The form of `-f json`, with a feature that has no kind in any record.
    let text =
        r#"{"index": 0, "features": {"n": null, "i": [1]}} {"index": 1, "features": {"i": [], "n": null}}"#;
    let want = vec![
        example(ExampleBuilder::new().feature("n", FeatureBuf::None).int64("i", [1])),
        example(ExampleBuilder::new().feature("n", FeatureBuf::None).int64("i", [0i64; 0])),
    ];
    assert_eq!(observed(text, JsonForm::Auto).unwrap(), want);

    let sequence = SequenceExampleBuilder::new()
        .feature("id", FeatureBuf::Int64(vec![5]))
        .feature_list("frames", [FeatureBuf::Float(vec![0.5]), FeatureBuf::Float(vec![])]);
    let want = vec![sequence.encode().unwrap()];
    for text in [
        r#"{"context": {"id": [5]}, "feature_lists": {"frames": [[0.5], []]}}"#,
        r#"{"id": 5, "frames": [[0.5], []]}"#,
    ] {
        assert_eq!(observed(text, JsonForm::Auto).unwrap(), want, "{text}");
    }
    // A feature list without steps is an empty list in the plain form.
    let text = "{\"frames\": []}\n{\"frames\": [[1]]}";
    assert_eq!(observed(text, JsonForm::Auto).unwrap().len(), 2);

    // The form of protobuf shows no kinds, because it names them.
    let text = r#"{"features": {"feature": {"a": {"int64List": {"value": ["1"]}}}}}"#;
    let want = vec![example(ExampleBuilder::new().int64("a", [1]))];
    assert_eq!(observed(text, JsonForm::Auto).unwrap(), want);
    assert_eq!(observed(text, JsonForm::ProtoJson).unwrap(), want);
}

#[test]
fn a_feature_of_two_kinds_is_an_error_with_both_lines() {
    for (text, want) in [
        (
            "{\"a\": 1}\n{\"a\": [2, 2.5]}",
            "line 2, column 11 (byte 19): feature \"a\": expected int64, as in line 1, or a schema, found 2.5",
        ),
        (
            "{\"a\": \"x\"}\n\n{\"a\": 2}",
            "line 3, column 7 (byte 18): feature \"a\": expected string, as in line 1, or a schema, found 2",
        ),
        (
            "{\"a\": \"NaN\"}\n{\"a\": 2}",
            "line 2, column 7 (byte 19): feature \"a\": expected a float or a string, as in line 1, or a schema, found 2",
        ),
        (
            "{\"a\": null}\n{\"a\": []}",
            "line 2, column 1 (byte 12): feature \"a\": expected a value that shows the kind, or a schema, found only empty lists",
        ),
        (
            "{\"a\": true}\n{\"a\": 0.5}",
            "line 2, column 7 (byte 18): feature \"a\": expected int64, as in line 1, or a schema, found 0.5",
        ),
        (
            "{\"context\": \"some text\"}",
            "line 1, column 13 (byte 12): expected an object, found \"some text\"; in the form `plain` (`-f plain`) each key is a feature",
        ),
        ("[1]", "line 1, column 1 (byte 0): expected an object, found a list"),
        (
            "{\"a\": [[1], 2.5]}",
            "line 1, column 13 (byte 12): feature \"a\": expected int64, as in line 1, or a schema, found 2.5",
        ),
    ] {
        assert_eq!(observed(text, JsonForm::Auto).unwrap_err(), want, "{text}");
    }
}
