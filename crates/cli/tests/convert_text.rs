//! `convert` of JSON lines and of payloads that follow their length, and `cat --bare`: there and back for
//! records of all kinds, errors, paths.

use crate::common::*;
use std::collections::BTreeMap;
use std::fs;
use tfseek::example::{ExampleBuf, MessageKind, SequenceExampleBuf};
use tfseek::{Example, FeatureBuf, SequenceExample, Stream};
use tfseek_testkit::payloads;
use tfseek_testkit::rng::Rng;

/// Returns the payloads of a file.
fn payloads_of(dir: &Folder, name: &str) -> Vec<Vec<u8>> {
    let mut stream = Stream::open(dir.path(name)).unwrap();
    let mut payloads = Vec::new();
    while let Some(record) = stream.next().unwrap() {
        payloads.push(record.payload().to_vec());
    }
    payloads
}

/// Writes what `cat` prints to a file.
fn cat_to(dir: &Folder, args: &[&str], name: &str) {
    let output = dir.command(&[&["cat"], args].concat()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    fs::write(dir.path(name), output.stdout).unwrap();
}

#[test]
fn records_of_every_kind_there_and_back() {
    let dir = Folder::new();
    dir.shard("examples", [rich(), label(3), vec![]]);
    dir.shard("sequences", [sequence(), sequence()]);
    dir.shard("others", [&b"\xff\x00"[..], b"text", b""]);
    for (name, kind) in [("examples", "example"), ("sequences", "sequence-example")] {
        let args = ["schema", "--all", "--json", "--kind", kind, name];
        fs::write(dir.path("schema"), dir.run(&args).out).unwrap();
        cat_to(&dir, &["--kind", kind, "-f", "json", name], "r.jsonl");
        for out in ["o.tfrecord", "o.tfrecord.gz", "o.tfrecord.zz"] {
            convert(&dir, &["r.jsonl", "--schema", "schema", out]);
            same_digests(&dir, kind, [name, out]);
            let info = dir.run(&["info", "--json", out]).out;
            let compression =
                [("gz", "gzip"), ("zz", "zlib")].into_iter().find(|(suffix, _)| out.ends_with(suffix));
            assert!(
                info.contains(&format!("\"compression\":\"{}\"", compression.map_or("none", |(_, c)| c)))
            );
        }
        // From standard input, to a file and to standard output.
        let json = fs::read(dir.path("r.jsonl")).unwrap();
        let ran =
            dir.run_on(&json, &["convert", "-q", "--schema", "schema", "-f", "json", "-", "p.tfrecord"]);
        assert_eq!(ran.code, 0, "{}", ran.err);
        let want = fs::read(dir.path("o.tfrecord")).unwrap();
        assert_eq!(fs::read(dir.path("p.tfrecord")).unwrap(), want);
        fs::remove_file(dir.path("p.tfrecord")).unwrap();
        let output = dir.command(&["convert", "--schema", "schema", "r.jsonl", "-"]).output().unwrap();
        assert_eq!((output.status.code(), output.stdout), (Some(0), want));
        cat_to(&dir, &["--kind", kind, "-f", "proto-json", name], "r.jsonl");
        convert(&dir, &["r.jsonl", "o.tfrecord"]);
        same_digests(&dir, kind, [name, "o.tfrecord"]);
    }
    for format in ["json", "proto-json"] {
        cat_to(&dir, &["-f", format, "others", "--kind", "bytes"], "r.jsonl");
        convert(&dir, &["r.jsonl", "o.tfrecord", "-f", format]);
        assert_eq!(payloads_of(&dir, "o.tfrecord"), payloads_of(&dir, "others"));
    }
}

/// The kinds of the features of records, which must not differ.
#[derive(Default)]
struct Kinds(BTreeMap<String, &'static str>);

impl Kinds {
    /// Adds features, unless the kind of one of them is another one, or a NaN has bits that JSON does not
    /// hold.
    fn accept(&mut self, features: &[(&String, &FeatureBuf)]) -> bool {
        let all = features.iter().all(|(name, feature)| {
            let dtype = match feature {
                FeatureBuf::None => return true,
                FeatureBuf::Bytes(_) => "string",
                FeatureBuf::Int64(_) => "int64",
                FeatureBuf::Float(values) => {
                    let is_exact = |v: &f32| !v.is_nan() || v.to_bits() == f32::NAN.to_bits();
                    if !values.iter().all(is_exact) {
                        return false;
                    }
                    "float32"
                }
            };
            self.0.get(*name).is_none_or(|known| *known == dtype)
        });
        if all {
            for (name, feature) in features {
                match feature {
                    FeatureBuf::None => {}
                    FeatureBuf::Bytes(_) => drop(self.0.insert((*name).clone(), "string")),
                    FeatureBuf::Int64(_) => drop(self.0.insert((*name).clone(), "int64")),
                    FeatureBuf::Float(_) => drop(self.0.insert((*name).clone(), "float32")),
                }
            }
        }
        all
    }

    fn json(&self) -> serde_json::Value {
        let spec = |dtype: &str| serde_json::json!({"type": "varlen", "dtype": dtype});
        self.0
            .iter()
            .map(|(name, dtype)| (name.clone(), spec(dtype)))
            .collect::<serde_json::Map<_, _>>()
            .into()
    }
}

/// Generated messages in usual and unusual encodings: both JSON forms give back equal records.
#[test]
fn generated_records_there_and_back() {
    let dir = Folder::new();
    let mut rng = Rng::new(5);
    let (mut context, mut lists) = (Kinds::default(), Kinds::default());
    let (mut examples, mut sequences) = (Vec::new(), Vec::new());
    while examples.len() < 400 {
        let payload = match rng.below(2) {
            0 => payloads::canonical_example(&mut rng),
            _ => payloads::odd_example(&mut rng),
        };
        let Ok(message) = ExampleBuf::try_from(Example::new(&payload)) else { continue };
        // Fields that the message does not have are refused.
        if MessageKind::Example.check(&payload).is_err() {
            continue;
        }
        if context.accept(&message.features.iter().collect::<Vec<_>>()) {
            examples.push(payload);
        }
    }
    fs::write(dir.path("examples.json"), serde_json::json!({"features": context.json()}).to_string())
        .unwrap();
    while sequences.len() < 400 {
        let payload = match rng.below(2) {
            0 => payloads::canonical_sequence(&mut rng),
            _ => payloads::odd_sequence(&mut rng),
        };
        let Ok(message) = SequenceExampleBuf::try_from(SequenceExample::new(&payload)) else { continue };
        if MessageKind::SequenceExample.check(&payload).is_err() {
            continue;
        }
        let steps: Vec<_> = message
            .feature_lists
            .iter()
            .flat_map(|(name, steps)| steps.iter().map(move |s| (name, s)))
            .collect();
        // A list without steps has no kind.
        let known = |lists: &Kinds| message.feature_lists.keys().all(|name| lists.0.contains_key(name));
        let fits = context.accept(&message.context.iter().collect::<Vec<_>>());
        if fits && steps.iter().all(|step| lists.accept(&[*step])) && known(&lists) {
            sequences.push(payload);
        }
    }
    let schema = serde_json::json!({"context": context.json(), "sequence": lists.json()});
    fs::write(dir.path("sequences.json"), schema.to_string()).unwrap();
    dir.shard("examples", examples);
    dir.shard("sequences", sequences);
    for (name, kind) in [("examples", "example"), ("sequences", "sequence-example")] {
        cat_to(&dir, &["--kind", kind, "-f", "json", name], "r.jsonl");
        convert(&dir, &["r.jsonl", "-s", &format!("{name}.json"), "o.tfrecord"]);
        same_digests(&dir, kind, [name, "o.tfrecord"]);
        cat_to(&dir, &["--kind", kind, "-f", "proto-json", name], "r.jsonl");
        convert(&dir, &["r.jsonl", "o.tfrecord"]);
        same_digests(&dir, kind, [name, "o.tfrecord"]);
    }
}

#[test]
fn the_plain_form_and_its_errors() {
    let dir = Folder::new();
    fs::write(
        dir.path("s"),
        r#"{"features": {"label": {"type": "fixed", "dtype": "int64", "shape": []}, "text": {"type": "varlen", "dtype": "string"}}}"#,
    )
    .unwrap();
    fs::write(dir.path("in.jsonl"), "{\"label\": 1, \"text\": \"abc\"}\n{\"label\": 2}\n").unwrap();
    let ran = dir.run(&["convert", "in.jsonl", "--schema", "s", "o.tfrecord"]);
    assert_eq!((ran.code, ran.out.as_str(), ran.err.as_str()), (0, "", "o.tfrecord: 2 records, 85 bytes\n"));
    let ran = dir.run(&["cat", "-f", "json", "o.tfrecord"]);
    ran.prints(
        "{\"index\":0,\"record\":0,\"features\":{\"label\":[1],\"text\":[\"abc\"]}}\n{\"index\":1,\"record\":1,\"features\":{\"label\":[2]}}\n",
    );
    let lines = fs::read(dir.path("in.jsonl")).unwrap();
    let convert = |args: &[&str]| dir.run_on(&lines, &[&["convert"], args].concat());
    convert(&["in.jsonl", "-s", "s", "o.tfrecord"]).fails(2, &["o.tfrecord: already exists", "--force"]);
    convert(&["-", "-s", "s", "o.tfrecord"]).fails(2, &["o.tfrecord: already exists", "--force"]);
    fs::rename(dir.path("s"), dir.path("s.tfrecord")).unwrap();
    convert(&["in.jsonl", "-s", "s.tfrecord", "s.tfrecord", "--force"])
        .fails(2, &["s.tfrecord: is an input"]);
    convert(&["-", "-s", "s.tfrecord", "s.tfrecord", "--force"]).fails(2, &["s.tfrecord: is an input"]);
    fs::rename(dir.path("s.tfrecord"), dir.path("s")).unwrap();
    convert(&["-", "-"])
        .fails(1, &["<stdin>: line 1, column 2 (byte 1): feature \"label\": expected a schema"]);
    convert(&["-", "-f", "plain", "-"])
        .fails(2, &["<stdin>: expected a schema, or a file, which is read twice"]);
    convert(&["-", "in.jsonl", "-"]).fails(2, &["expected one input with `-`"]);
    convert(&["o.tfrecord", "-"]).fails(2, &["`-` (standard output)"]);
    convert(&["o.tfrecord", "o.jsonl", "-f", "plain"]).fails(2, &["--format plain"]);
    convert(&["in.jsonl", "--bare", "-s", "s", "p.tfrecord"]).fails(2, &["--bare", "--schema"]);
    convert(&["missing.jsonl", "-s", "s", "p.tfrecord"]).fails(3, &["missing.jsonl"]);
    convert(&["in.jsonl", "-s", "in.jsonl", "p.tfrecord"]).fails(2, &["in.jsonl"]);
    convert(&["-", "-s", "s", "p.csv"]).fails(2, &["p.csv: CSV is no format of convert"]);
    // No file is left by an error; on standard output the records before it are.
    let text = b"{\"label\": 1}\n{\"label\": \"x\"}\n";
    let ran = dir.run_on(text, &["convert", "-s", "s", "-", "p.tfrecord"]);
    ran.fails(
        1,
        &["<stdin>: line 2, column 11 (byte 23): feature \"label\": expected an int64, found \"x\""],
    );
    assert!(!dir.path("p.tfrecord").exists());
    fs::write(dir.path("bad.jsonl"), text).unwrap();
    let output = dir.command(&["convert", "bad.jsonl", "-s", "s", "-"]).output().unwrap();
    let mut first = Vec::new();
    tfseek::frame::put_record(&mut first, &label(1)).unwrap();
    assert_eq!((output.status.code(), output.stdout), (Some(1), first));
    let ran = dir.run_on(text, &["convert", "-s", "s", "--max-record", "11", "-", "-"]);
    ran.fails(1, &["line 1, column 12 (byte 11): expected a record of at most 11 bytes of JSON"]);
    // No records are no error.
    let ran = dir.run_on(b" \n", &["convert", "-s", "s", "-", "p.tfrecord"]);
    assert_eq!((ran.code, fs::read(dir.path("p.tfrecord")).unwrap().len()), (0, 0));
}

#[test]
fn payloads_after_their_lengths() {
    let dir = Folder::new();
    let payloads = [vec![], label(3), vec![7; 127], vec![8; 128], vec![9; 20_000]];
    dir.shard("a", &payloads);
    dir.shard("b.gz", &payloads[..2]);
    cat_to(&dir, &["--bare", "a", "b.gz"], "bare");
    // The lengths, by hand.
    let mut want = vec![0, payloads[1].len() as u8];
    want.extend(&payloads[1]);
    want.extend(
        [&[127][..], &payloads[2], &[0x80, 1], &payloads[3], &[0xa0, 0x9c, 1], &payloads[4], &[0]].concat(),
    );
    want.push(payloads[1].len() as u8);
    want.extend(&payloads[1]);
    let bytes = fs::read(dir.path("bare")).unwrap();
    assert_eq!(bytes, want);
    convert(&dir, &["--bare", "bare", "o.tfrecord.gz"]);
    assert_eq!(payloads_of(&dir, "o.tfrecord.gz"), [&payloads[..], &payloads[..2]].concat());
    dir.shard("c", labels(0..9));
    cat_to(&dir, &["--bare", "--where", "label == 3", "c"], "bare");
    assert_eq!(fs::read(dir.path("bare")).unwrap()[1..], payloads[1]);
    dir.run(&["cat", "--bare", "-f", "raw", "a"]).fails(2, &["--bare", "--format"]);
    dir.run(&["cat", "--bare", "--features", "x", "a"]).fails(2, &["--bare", "--features"]);
    dir.run(&["cat", "-f", "bare", "a"]).fails(2, &["bare"]);
    // Damage.
    let ran = dir.run_on(&bytes[..3], &["convert", "--bare", "-", "p.tfrecord"]);
    ran.fails(1, &["<stdin>: record 1 at byte 1: expected 18 bytes of payload, found 1"]);
    let ran = dir.run_on(&[0, 0xff], &["convert", "--bare", "-", "p.tfrecord"]);
    ran.fails(1, &["<stdin>: record 1 at byte 1: expected a length that ends"]);
    let ran = dir.run_on(&[0xff; 20], &["convert", "--bare", "-", "p.tfrecord"]);
    ran.fails(1, &["<stdin>: record 0 at byte 0: expected a length of at most 10 bytes"]);
    let ran = dir.run_on(&bytes, &["convert", "--bare", "-", "p.tfrecord", "--max-record", "127"]);
    ran.fails(
        1,
        &[
            "record 3 at byte 148: expected a payload of at most 127 bytes, found a length of 128",
            "a limit of 128 bytes reads it",
        ],
    );
    // A length of almost 2 GiB takes no memory before the bytes arrive.
    let ran = dir.run_on(b"\xff\xff\xff\xff\x07abc", &["convert", "--bare", "-", "p.tfrecord"]);
    ran.fails(1, &["expected 2147483647 bytes of payload, found 3"]);
    assert!(!dir.path("p.tfrecord").exists());
}
