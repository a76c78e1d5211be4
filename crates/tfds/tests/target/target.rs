//! The fuzz targets of features and of records. `fuzz/` runs them under libFuzzer, and the test next to it
//! over their corpora.

#[path = "made.rs"]
mod made;
#[path = "nested.rs"]
mod nested;

use made::{Bytes, features, payload};
use tfseek_tfds::{DecodeOptions, Decoder, Features, LeafClass, RecordValue, TfdsError};

/// Tests features: the bytes are a `features.json`. It is refused with a message, or the features can be
/// compiled, or that is refused with a message. An empty record then has values or an error.
#[allow(unreachable_pub, reason = "the crate of the fuzz targets exports it")]
pub fn features_json(data: &[u8]) {
    let told = |e: TfdsError| assert!(!e.to_string().is_empty());
    match Features::parse(data) {
        Err(e) => told(e),
        Ok(features) => {
            // It prints, and each leaf has its path.
            for (path, leaf) in features.root.leaves() {
                assert!(!leaf.to_string().is_empty());
                assert!(path.is_empty() || features.root.get(&path).is_some());
            }
            for options in options() {
                match Decoder::new(&features, &options) {
                    Err(e) => told(e),
                    Ok(decoder) => check(&decoder, &[b"".as_slice(), b"\x0a\x00"]),
                }
            }
        }
    }
}

/// Tests records: the bytes are features, and payloads with edits.
#[allow(unreachable_pub, reason = "the crate of the fuzz targets exports it")]
pub fn features_record(data: &[u8]) {
    let mut bytes = Bytes(data);
    let tree = features(&mut bytes, 0);
    for options in options() {
        let Ok(decoder) = Decoder::new(&tree, &options) else { continue };
        let mut own = Bytes(bytes.0);
        let payloads: Vec<Vec<u8>> = (0..3).map(|_| payload(&decoder, &mut own)).collect();
        check(&decoder, &payloads.iter().map(Vec::as_slice).collect::<Vec<_>>());
    }
}

fn options() -> [DecodeOptions; 2] {
    let encoded = DecodeOptions { encoded: true, missing_none: true, ..DecodeOptions::default() };
    [DecodeOptions::default(), encoded]
}

/// Reads the records one by one and as a batch. A batch of the readable ones has the same values, and with
/// the others it is an error.
fn check(decoder: &Decoder, payloads: &[&[u8]]) {
    let mut kept = Vec::new();
    for payload in payloads {
        let value = decoder.record(payload).and_then(|record| {
            let value = record.value()?;
            touch(&value)?;
            Ok(record)
        });
        match value {
            Ok(record) => kept.push((record, *payload)),
            Err(e) => assert!(!e.to_string().is_empty() && e.location().row.is_none(), "{e}"),
        }
    }
    let Ok(parser) = decoder.parser() else { return };
    let rows: Vec<&[u8]> = kept.iter().map(|(_, payload)| *payload).collect();
    let batch = parser.parse(&rows).unwrap_or_else(|e| panic!("{e}"));
    let paths: Vec<String> = batch.columns().map(|(name, _)| name.to_owned()).collect();
    for number in 0.. {
        let Some((path, leaf)) = decoder.leaf(number) else { break };
        if matches!(leaf.class, LeafClass::Unknown(_)) {
            continue;
        }
        assert!(paths.iter().any(|known| known == path), "{path:?} {paths:?}");
        let column = batch.get(path).unwrap();
        for (row, (record, _)) in kept.iter().enumerate() {
            let value = record.get(path).unwrap();
            // A path of names with `/` may be that of another feature too.
            let Some(expected) = value.as_ref().and_then(nested::of_record) else { continue };
            assert_eq!(nested::of_row(column, leaf.dtype, row), expected, "{path:?} {leaf}");
        }
    }
    if kept.len() < payloads.len() {
        let e = parser.parse(payloads).unwrap_err();
        assert!(e.location().row.is_some(), "{e}");
    }
}

/// Decodes the values of all steps.
fn touch(value: &RecordValue) -> tfseek::Result<()> {
    match value {
        RecordValue::Dict(values) => values.iter().try_for_each(|(_, value)| touch(value)),
        RecordValue::List(values) => values.iter().try_for_each(touch),
        RecordValue::Steps(steps) => (0..steps.len()).try_for_each(|k| touch(&steps.get(k).unwrap()?)),
        _ => Ok(()),
    }
}
