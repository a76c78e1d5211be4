//! Views and owned forms: names, Debug forms, and features without a kind.

use tfseek::example::{KindGuess, MessageKind};
use tfseek::{At, Example, ExampleBuilder, FeatureBuf, Record, SequenceExample, SequenceExampleBuilder};

#[test]
fn guessed_kinds_have_names() {
    let example = ExampleBuilder::new().int64("x", [1]).encode().unwrap();
    let sequence =
        SequenceExampleBuilder::new().feature_list("x", [FeatureBuf::from(vec![1.5f32])]).encode().unwrap();
    // A field of the message, a map entry and a feature that no Example has.
    let fields: [&[u8]; 3] =
        [b"\x1a\x00", b"\x0a\x05\x0a\x03\x1a\x01x", b"\x0a\x09\x0a\x07\x0a\x01x\x12\x02\x22\x00"];
    let others = fields.map(|payload| (payload.to_vec(), MessageKind::Other, "other"));
    let known = [
        (example, MessageKind::Example, "Example"),
        (sequence, MessageKind::SequenceExample, "SequenceExample"),
    ];
    for (payload, kind, name) in known.into_iter().chain(others) {
        let mut guess = KindGuess::default();
        guess.add(&payload);
        assert_eq!((guess.kind(), guess.kind().name()), (kind, name), "{payload:?}");
    }
}

#[test]
fn debug_forms_show_entries_and_their_errors() {
    let payload = ExampleBuilder::new().int64("a", [1, 2]).bytes("b", [b"\xff"]).encode().unwrap();
    let text = format!("{:?}", Example::new(&payload));
    assert!(text.contains("\"a\"") && text.contains('2'), "{text}");
    let sequence = SequenceExampleBuilder::new()
        .int64("id", [7])
        .feature_list("steps", [FeatureBuf::from(vec![1i64]), FeatureBuf::None])
        .encode()
        .unwrap();
    let text = format!("{:?}", SequenceExample::new(&sequence));
    assert!(text.contains("\"steps\""), "{text}");
    // The iterators show what is left of them.
    let mut entries = Example::new(&payload).entries();
    assert!(format!("{entries:?}").contains("\"a\""), "{entries:?}");
    entries.next().unwrap().unwrap();
    let rest = format!("{entries:?}");
    assert!(!rest.contains("\"a\"") && rest.contains("\"b\""), "{rest}");
    let lists = SequenceExample::new(&sequence).feature_lists();
    assert!(format!("{lists:?}").contains("\"steps\""), "{lists:?}");
    let broken = format!("{:?}", Example::new(&payload[..payload.len() - 1]));
    assert!(!broken.is_empty());
    let features = Example::new(&payload).features().unwrap();
    assert_eq!(features.as_ref().len(), 2);
}

#[test]
fn errors_of_a_sequence_have_its_place() {
    let sequence = SequenceExampleBuilder::new().int64("id", [7]).encode().unwrap();
    let at = At::new("x.tfrecord".as_ref(), 5, 90);
    let e = Record::new(&sequence, at).sequence_example().context().float("id").unwrap_err();
    assert_eq!(
        (e.location().record, e.location().path.as_deref()),
        (Some(5), Some("x.tfrecord".as_ref())),
        "{e}"
    );
}

#[test]
fn a_feature_without_a_kind_is_encoded_without_a_list() {
    let payload = ExampleBuilder::new().feature("none", FeatureBuf::None).encode().unwrap();
    let feature = Example::new(&payload).get("none").unwrap().unwrap();
    assert_eq!(feature.kind(), None);
}
