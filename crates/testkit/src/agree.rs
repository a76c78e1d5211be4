//! Properties that hold for any bytes: the views agree with the naive twins. Each function panics if they do
//! not.

use super::twin::{self, Frame, Key, Refused, Rules};
use std::collections::BTreeMap;
use tfseek::error::FeatureError;
use tfseek::frame;
use tfseek::{Error, ErrorKind, Example, Feature, FeatureList, List, Result, SequenceExample};

/// Keys that are looked up in addition to the keys of the message.
const EXTRA_KEYS: &[&str] = &["", "a", "no such key"];

/// Checks that `Example` agrees with the twin.
pub fn example(payload: &[u8]) {
    let (view, rules) = (Example::new(payload), Rules::default());
    let want = twin::example(payload, rules);
    features(view, payload, &want, rules);
    assert_eq!(ok(view.validate(), payload).is_some(), want.is_ok(), "validate");
    print(&view, payload);
}

/// Checks that `SequenceExample` agrees with the twin.
pub fn sequence(payload: &[u8]) {
    let (view, rules) = (SequenceExample::new(payload), Rules::default());
    let context = twin::example(payload, rules);
    let lists = twin::feature_lists(payload, rules);
    features(view.context(), payload, &context, rules);
    assert_eq!(
        ok(view.validate(), payload).is_some(),
        context.is_ok() && lists.is_ok() && twin::sequence(payload, rules).is_ok(),
        "validate"
    );

    let entries = collect(view.feature_lists(), payload);
    assert_eq!(entries.is_some(), lists.is_ok(), "feature_lists");
    if let (Some(entries), Ok(lists)) = (&entries, &lists) {
        assert_eq!(entries.len(), lists.entries.len());
        for ((key, view), (want_key, want)) in entries.iter().zip(&lists.entries) {
            assert_eq!(key.as_bytes(), want_key);
            feature_list(*view, want);
        }
    }
    for key in keys(&lists) {
        let want =
            lazy(&lists, &key, |only| twin::feature_lists(payload, Rules { only: Some(only), ..rules }));
        let found = ok(view.feature_list(&key), payload);
        assert_eq!(found.is_some(), want.is_ok(), "feature_list {key:?}");
        if let (Some(found), Ok(want)) = (found, want) {
            assert_eq!(found.is_some(), want.is_some(), "feature_list {key:?}");
            if let (Some(found), Some(want)) = (found, want) {
                feature_list(found, &want);
            }
        }
    }
    print(&view, payload);
}

fn features(
    view: Example<'_>,
    payload: &[u8],
    want: &twin::Result<twin::DecodedMap<twin::Feature>>,
    rules: Rules<'_>,
) {
    let entries = collect(view.entries(), payload);
    assert_eq!(entries.is_some(), want.is_ok(), "entries");
    if let (Some(entries), Ok(want)) = (&entries, want) {
        assert_eq!(entries.len(), want.entries.len());
        for ((key, view), (want_key, want)) in entries.iter().zip(&want.entries) {
            assert_eq!(key.as_bytes(), want_key);
            feature(*view, want);
        }
    }

    let all = ok(view.features(), payload);
    assert_eq!(all.is_some(), want.is_ok(), "features");
    if let (Some(all), Ok(want)) = (&all, want) {
        assert_eq!(all.len(), want.map.len());
        for (&(key, view), (want_key, want)) in all.iter().zip(&want.map) {
            assert_eq!(key.as_bytes(), want_key);
            feature(view, want);
        }
        for key in EXTRA_KEYS {
            assert_eq!(all.iter().any(|&(other, _)| other == *key), want.map.contains_key(key.as_bytes()));
        }
        print(all, payload);
    }

    for key in keys(want) {
        let want = lazy(want, &key, |only| twin::example(payload, Rules { only: Some(only), ..rules }));
        let found = ok(view.get(&key), payload);
        assert_eq!(found.is_some(), want.is_ok(), "get {key:?}");
        if let (Some(found), Ok(want)) = (found, want) {
            assert_eq!(found.is_some(), want.is_some(), "get {key:?}");
            if let (Some(found), Some(want)) = (found, &want) {
                feature(found, want);
            }
            typed(view, &key, want.as_ref());
        }
    }
}

/// Returns the expected result of a lookup of one key (R4). `decode_key` decodes only the values of that key.
///
/// For a well-formed payload the result is that of the whole payload. For a malformed payload R4 also allows
/// an error; tfseek returns exactly the result of `decode_key`.
fn lazy<V: Clone + PartialEq + std::fmt::Debug>(
    whole: &twin::Result<twin::DecodedMap<V>>,
    key: &str,
    decode_key: impl Fn(&[u8]) -> twin::Result<twin::DecodedMap<V>>,
) -> twin::Result<Option<V>> {
    let lazy = decode_key(key.as_bytes()).map(|field| field.map.get(key.as_bytes()).cloned());
    if let Ok(whole) = whole {
        // In the twin a lookup of one key agrees with the whole payload.
        assert_eq!(lazy, Ok(whole.map.get(key.as_bytes()).cloned()));
    }
    lazy
}

fn keys<V>(field: &twin::Result<twin::DecodedMap<V>>) -> Vec<String> {
    // The number of keys is limited, because each lookup reads the payload twice.
    let present = field.iter().flat_map(|field| field.map.keys()).take(12);
    let mut keys: Vec<_> = present.map(|key| String::from_utf8(key.clone()).unwrap()).collect();
    keys.extend(EXTRA_KEYS.iter().map(|&key| key.to_owned()));
    keys
}

fn typed(view: Example<'_>, key: &str, want: Option<&twin::Feature>) {
    let expect = |expected: &'static str| match want {
        None => Some(FeatureError::Missing { expected }),
        Some(twin::Feature::None) => Some(FeatureError::NoKind { expected }),
        Some(feature) => match kind(feature) {
            found if found == expected => None,
            found => Some(FeatureError::WrongKind { expected, found }),
        },
    };
    fn error<T>(result: Result<T>, key: &str) -> Option<FeatureError> {
        let e = result.err()?;
        assert_eq!(e.location().feature.as_deref(), Some(&*key.escape_debug().to_string()));
        match e.kind() {
            ErrorKind::Feature(e) => Some(*e),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(error(view.int64(key), key), expect("int64"));
    assert_eq!(error(view.float(key), key), expect("float"));
    assert_eq!(error(view.bytes(key), key), expect("bytes"));
}

fn kind(feature: &twin::Feature) -> &'static str {
    match feature {
        twin::Feature::None => "none",
        twin::Feature::Bytes(_) => "bytes",
        twin::Feature::Float(_) => "float",
        twin::Feature::Int64(_) => "int64",
    }
}

/// Checks that printing does not panic. Only every eighth payload is printed, because printing costs as much
/// as all other checks.
fn print(view: &dyn std::fmt::Debug, payload: &[u8]) {
    if payload.len().is_multiple_of(8) {
        assert!(!format!("{view:?}").is_empty());
    }
}

/// Returns all entries, or `None` after an error, which must be the last item.
fn collect<T>(mut entries: impl Iterator<Item = Result<T>>, payload: &[u8]) -> Option<Vec<T>> {
    let mut all = Vec::new();
    while let Some(entry) = entries.next() {
        match ok(entry, payload) {
            Some(entry) => all.push(entry),
            None => {
                assert!(entries.next().is_none(), "an item after an error");
                return None;
            }
        }
    }
    assert!(entries.next().is_none());
    Some(all)
}

/// Returns the value, or `None` for an error that a malformed payload may cause. Other errors panic.
fn ok<T>(result: Result<T>, payload: &[u8]) -> Option<T> {
    match result {
        Ok(value) => Some(value),
        Err(e) => {
            wire_error(&e, payload);
            None
        }
    }
}

fn wire_error(e: &Error, payload: &[u8]) {
    assert!(e.is_data() && !matches!(e.kind(), tfseek::ErrorKind::Io(_)));
    match e.kind() {
        ErrorKind::Wire { offset, .. } => assert!(*offset <= payload.len(), "{e}"),
        other => panic!("{other:?}"),
    }
    assert!(!e.to_string().is_empty());
}

pub fn feature(view: Feature<'_>, want: &twin::Feature) {
    match (view, want) {
        (Feature::None, twin::Feature::None) => assert_eq!((view.len(), view.kind()), (0, None)),
        (Feature::Int64(list), twin::Feature::Int64(want)) => int64(list, want),
        (Feature::Float(list), twin::Feature::Float(want)) => float(list, want),
        (Feature::Bytes(list), twin::Feature::Bytes(want)) => bytes(list, want),
        _ => panic!("{view:?} and {want:?}"),
    }
    if let Some(found) = view.kind() {
        assert_eq!(found.list_name(), kind(want));
    }
}

fn feature_list(view: FeatureList<'_>, want: &[twin::Feature]) {
    assert_eq!((view.len(), view.is_empty()), (want.len(), want.is_empty()));
    let mut steps = view.iter();
    for (k, step) in want.iter().enumerate() {
        assert_eq!(steps.len(), want.len() - k);
        feature(steps.next().unwrap(), step);
    }
    assert!(steps.next().is_none() && steps.next().is_none());
    for k in sample_indices(want.len()) {
        match (view.get(k), want.get(k)) {
            (Some(step), Some(want)) => feature(step, want),
            (None, None) => {}
            (step, want) => panic!("{step:?} and {want:?}"),
        }
    }
}

/// Returns a sample of indices, also beyond the end. Not all indices are used, because `get` is linear for
/// some lists.
fn sample_indices(len: usize) -> impl Iterator<Item = usize> {
    let far = [len / 2, len.saturating_sub(2), len.saturating_sub(1), len, len + 1, usize::MAX];
    (0..len.min(20)).chain(far)
}

/// Checks iteration to the end and beyond, and the exact size hint at each step.
fn iter<T: PartialEq + std::fmt::Debug>(mut view: impl ExactSizeIterator<Item = T>, want: &[T]) {
    for (k, want_value) in want.iter().enumerate() {
        assert_eq!(view.size_hint(), (want.len() - k, Some(want.len() - k)));
        assert_eq!(view.next().as_ref(), Some(want_value));
    }
    assert_eq!(view.size_hint(), (0, Some(0)));
    assert!(view.next().is_none() && view.next().is_none());
}

fn wrong_len(result: Result<()>, list: usize, buf: usize) {
    match result.unwrap_err().kind() {
        ErrorKind::WrongLen { expected, found } => assert_eq!((*expected, *found), (list, buf)),
        other => panic!("{other:?}"),
    }
}

fn int64(list: List<'_, i64>, want: &[i64]) {
    assert_eq!((list.len(), list.is_empty()), (want.len(), want.is_empty()));
    iter(list.iter(), want);
    iter(list.into_iter(), want);
    assert_eq!((list.first(), list.iter().collect::<Vec<_>>().as_slice()), (want.first().copied(), want));
    for k in sample_indices(want.len()) {
        assert_eq!(list.get(k), want.get(k).copied());
    }
    let mut buf = vec![-7; want.len()];
    list.decode_into(&mut buf).unwrap();
    assert_eq!(buf, want);
    buf.push(0);
    wrong_len(list.decode_into(&mut buf), want.len(), want.len() + 1);
}

fn float(list: List<'_, f32>, want: &[u32]) {
    assert_eq!((list.len(), list.is_empty()), (want.len(), want.is_empty()));
    let bits = |values: &[f32]| values.iter().map(|v| v.to_bits()).collect::<Vec<_>>();
    iter(list.iter().map(f32::to_bits), want);
    iter(list.into_iter().map(f32::to_bits), want);
    assert_eq!(list.first().map(f32::to_bits), want.first().copied());
    assert_eq!(bits(&list.iter().collect::<Vec<_>>()), want);
    for k in sample_indices(want.len()) {
        assert_eq!(list.get(k).map(f32::to_bits), want.get(k).copied());
    }
    if let Some(slice) = list.as_slice() {
        assert_eq!(bits(slice), want);
    }
    match list.as_unaligned() {
        Some(view) => assert_eq!(view.iter().map(|&v| u32::from_le_bytes(v)).collect::<Vec<_>>(), want),
        None => assert!(list.as_slice().is_none() || want.is_empty()),
    }
    let mut buf = vec![-7.0; want.len()];
    list.copy_to(&mut buf).unwrap();
    assert_eq!(bits(&buf), want);
    buf.push(0.0);
    wrong_len(list.copy_to(&mut buf), want.len(), want.len() + 1);
}

fn bytes<'a>(list: List<'a, &'a [u8]>, want: &[Vec<u8>]) {
    assert_eq!((list.len(), list.is_empty()), (want.len(), want.is_empty()));
    let slices: Vec<&[u8]> = want.iter().map(Vec::as_slice).collect();
    iter(list.iter(), &slices);
    iter(list.into_iter(), &slices);
    assert_eq!(list.first(), slices.first().copied());
    assert_eq!(list.iter().collect::<Vec<_>>(), slices);
    for k in sample_indices(want.len()) {
        assert_eq!(list.get(k), slices.get(k).copied());
    }
}

/// Checks that the records of a slice agree with the twin and cover the slice without gaps.
///
/// The first record starts at 0, and each other record at the end of its predecessor. Without damage, the
/// last record ends at the end of the slice.
pub fn frames(file: &[u8]) {
    let want = twin::frames(file);
    let mut frames = frame::frames(file);
    let mut offset = 0;
    for (i, want) in want.iter().enumerate() {
        match (frames.next().unwrap(), want) {
            (Ok(found), Frame::Record(payload)) => {
                assert_eq!(found, (offset, payload.as_slice()));
                let (_, again) = frame::frames(&file[offset as usize..]).next().unwrap().unwrap();
                assert_eq!(again, payload);
                offset += (payload.len() + frame::OVERHEAD) as u64;
            }
            (Err(e), _) => {
                let found = match e.kind() {
                    ErrorKind::Truncated { need, have } => {
                        assert!(need > have);
                        assert_eq!(*have, file.len() as u64 - offset);
                        Frame::Truncated
                    }
                    ErrorKind::CorruptLength { .. } => Frame::CorruptLength,
                    ErrorKind::CorruptData { .. } => Frame::CorruptData,
                    other => panic!("{other:?}"),
                };
                assert_eq!(found, *want);
                assert_eq!((e.location().record, e.location().offset), (Some(i as u64), Some(offset)));
                assert!(e.is_data());
            }
            (frame, want) => panic!("{frame:?} and {want:?}"),
        }
    }
    assert!(frames.next().is_none() && frames.next().is_none());
    if !matches!(want.last(), Some(Frame::Truncated | Frame::CorruptLength | Frame::CorruptData)) {
        assert_eq!(offset, file.len() as u64);
    }
}

/// Returns the features of an Example according to the twin.
pub fn meaning(payload: &[u8]) -> std::result::Result<BTreeMap<Key, twin::Feature>, Refused> {
    twin::example(payload, Rules::default()).map(|field| field.map)
}
