//! Schemas as JSON.

use super::script::Script;
use crate::rng::Rng;
use crate::shaped;
use serde_json::Value;
use std::collections::BTreeSet;
use tfseek::batch::BatchParser;
use tfseek::schema::{FeatureSpec, Schema};
use tfseek::{Error, ErrorKind};

/// Tests schemas as JSON. After an even first byte the rest is the text. Otherwise the rest selects a schema
/// and edits its text.
///
/// A text that is accepted is printed, and parsed to the same schema.
pub fn schema(data: &[u8]) {
    let Some((&mode, rest)) = data.split_first() else { return };
    if mode & 1 == 0 {
        return check(rest);
    }
    let mut script = Script(rest);
    let schema = shaped::schema(&mut Rng::new(script.u16() as u64), mode & 2 != 0);
    let mut text = schema.to_json().into_bytes();
    check(&text);
    let again = Schema::from_json(std::str::from_utf8(&text).unwrap()).unwrap();
    assert_eq!(again.to_json(), schema.to_json());
    script.edit(&mut text);
    check(&text);
}

fn check(text: &[u8]) {
    let Ok(text) = std::str::from_utf8(text) else { return };
    let schema = match Schema::from_json(text) {
        Ok(schema) => schema,
        Err(e) => return assert!(matches!(e.kind(), ErrorKind::Spec(_)), "{e:?}"),
    };
    let printed = schema.to_json();
    let again = Schema::from_json(&printed).unwrap();
    // Schemas with a default NaN are not equal.
    assert_eq!(again.to_json(), printed);
    assert!(again == schema || printed.contains("f32"), "{schema:?}");

    let json: Value = serde_json::from_str(text).unwrap();
    let names = |part: &str| json[part].as_object().into_iter().flatten().map(|(name, _)| name.clone());
    let features: BTreeSet<String> = names("features").chain(names("context")).collect();
    assert!(schema.features().keys().eq(&features));
    assert!(schema.feature_lists().keys().eq(&names("sequence").collect::<BTreeSet<_>>()));
    assert_eq!(schema.is_sequence(), json.get("features").is_none());

    let parser = BatchParser::new(&schema).limit(1 << 20);
    let mut specs = schema.features().values().chain(schema.feature_lists().values());
    let pictures = specs.any(|spec| matches!(spec.of_string(), FeatureSpec::Image(_)));
    for rows in [&[][..], &[Vec::new()]] {
        match parser.parse(rows) {
            // A parser without a decoder refuses them.
            Err(e) if pictures => assert!(matches!(e.kind(), ErrorKind::Spec(_)), "{e:?}"),
            Ok(_) if pictures => panic!("pictures are not decoded"),
            Ok(batch) => assert_eq!(batch.rows(), rows.len()),
            Err(e) => assert!(expected(&e), "{e:?}"),
        }
    }
}

/// Returns true for the error of an empty record, or of a batch that is too large.
fn expected(e: &Error) -> bool {
    e.category().is_some()
}
