//! Parts, streams and refresh.

use super::*;
use tfseek::error::PathsError;
use tfseek::stream::StreamOptions;
use tfseek::{Compression, Damage, Part, Stream};

fn labels_of(mut stream: Stream) -> Result<Vec<i64>> {
    let mut labels = Vec::new();
    while let Some(record) = stream.next()? {
        labels.push(record.example().int64("label")?.first().unwrap());
    }
    Ok(labels)
}

#[test]
fn parts_are_read_in_another_process_without_a_listing() {
    for case in Case::all() {
        case.bucket.set(&url("more.tfrecord.gz"), gzip(&shard(100..150)));
        let ds = case.open("*.tfrecord*").unwrap();
        let plan: Vec<String> = ds.shares(4).unwrap().iter().flatten().map(Part::to_json).collect();
        assert!(plan.len() >= 4);
        // The other process has the plan and a store with its own login.
        let before = case.bucket.requests().lists.load(Relaxed);
        let options = StreamOptions { store: Some(case.bucket.store()), ..StreamOptions::default() };
        let mut all: Vec<i64> = Vec::new();
        for json in &plan {
            let part = Part::from_json(json).unwrap();
            assert_eq!(part.to_json(), *json);
            assert!(part.shard.starts_with(ROOT), "{json}");
            assert_eq!(json.contains("\"version\""), case.bucket.manners().versions, "{json}");
            all.extend(labels_of(options.part(&part).unwrap()).unwrap());
        }
        all.sort_unstable();
        assert_eq!(all, (0..150).collect::<Vec<_>>());
        assert_eq!(case.bucket.requests().lists.load(Relaxed), before);
        let part = Part::from_json(&plan[0]).unwrap();
        let e = StreamOptions::default().part(&part).map(drop).unwrap_err();
        assert!(matches!(e.kind(), ErrorKind::Paths(PathsError::NotLocal { .. })), "{e}");
        // A part of an object that was replaced.
        for at in case.bucket.urls().into_iter().filter(|at| at.contains(".tfrecord")) {
            case.bucket.set(&at, shard(7..30));
        }
        for json in &plan {
            let part = Part::from_json(json).unwrap();
            let e = options.part(&part).map(drop).unwrap_err();
            assert!(is_stale(&e) && e.to_string().starts_with(&*part.shard), "{e}");
        }
    }
}

/// The indexes in a pack may have other times than the objects: those of files that were copied.
#[test]
fn parts_of_a_pack_have_the_versions_of_their_objects() {
    for case in Case::all().filter(|case| case.bucket.manners().writable) {
        let dir = tempfile::tempdir().unwrap();
        let names = ["train-00000-of-00002.tfrecord", "train-00001-of-00002.tfrecord"];
        let paths = names.map(|name| dir.path().join(name));
        for (name, path) in names.iter().zip(&paths) {
            std::fs::write(path, case.bucket.get(&url(name)).unwrap()).unwrap();
        }
        let local = IndexOptions::new().default_dirs(None, None);
        let (pack, _) = tfseek::index::write_pack("train", &paths, &local).unwrap();
        case.bucket.set(&url(".tfseek/train.tfrp"), std::fs::read(pack).unwrap());
        let ds = case.open(".tfseek/train.tfrp").unwrap();
        assert_eq!(labels(&ds), (0..100).collect::<Vec<_>>());
        let ds = case.open(".tfseek/train.tfrp").unwrap();
        let options = StreamOptions { store: Some(case.bucket.store()), ..StreamOptions::default() };
        let all = ds.shares(3).unwrap().into_iter().flatten();
        let all: Vec<i64> = all.flat_map(|part| labels_of(options.part(&part).unwrap()).unwrap()).collect();
        assert_eq!(all, (0..100).collect::<Vec<_>>());
    }
}

#[test]
fn a_part_has_no_secrets_and_other_versions_are_refused() {
    let case = Case::new(Manners::BUCKET);
    case.bucket.set("mem://user:word@bucket/x.tfrecord?sig=1", shard(0..30));
    let ds = case.options().open("mem://user:word@bucket/x.tfrecord?sig=1").unwrap();
    let json = ds.shares(1).unwrap()[0][0].to_json();
    assert!(
        json.contains("\"mem://bucket/x.tfrecord\"") && !json.contains("sig") && !json.contains("word"),
        "{json}"
    );
    for (field, other) in [("\"version\":\"", "\"version\":7,\"x\":\""), ("\"version\"", "\"versions\"")] {
        assert!(json.contains(field));
        assert!(Part::from_json(&json.replacen(field, other, 1)).is_err());
    }
}

#[test]
fn a_part_keeps_what_selects_its_object() {
    let case = Case::new(Manners::BUCKET);
    for (query, first) in [("f=a", 0), ("f=b", 100)] {
        case.bucket.set(&url(&format!("get?{query}")), shard(first..first + 30));
        case.bucket.set(&url(&format!("get?{query}&sig=1")), shard(first..first + 30));
    }
    let options = StreamOptions { store: Some(case.bucket.store()), ..StreamOptions::default() };
    for (query, first) in [("f=a", 0), ("f=b", 100)] {
        let ds = case.options().open(url(&format!("get?{query}"))).unwrap();
        let parts = ds.shares(2).unwrap().concat();
        let all = parts.iter().map(|part| {
            assert_eq!(*part.shard, *url(&format!("get?{query}")));
            let stream = options.part(&Part::from_json(&part.to_json()).unwrap()).unwrap();
            assert_eq!(stream.name(), Path::new(&url("get")));
            labels_of(stream).unwrap()
        });
        assert_eq!(all.collect::<Vec<_>>().concat(), (first..first + 30).collect::<Vec<_>>());
        let signed = url(&format!("get?{query}&sig=1"));
        let part = Part::of_shard(signed, 0, Some(case.bucket.store())).unwrap();
        assert_eq!(*part.shard, *url(&format!("get?{query}")));
        let other = Part::from_json(&part.to_json().replace(query, "f=none")).unwrap();
        let e = options.part(&other).map(drop).unwrap_err().to_string();
        assert!(e.starts_with(&url("get: ")) && !e.contains("none"), "{e}");
    }
}

#[test]
fn an_object_is_a_part_without_an_index() {
    for case in Case::all() {
        let options = StreamOptions { store: Some(case.bucket.store()), ..StreamOptions::default() };
        case.bucket.set(&url("train-00001-of-00002.tfrecord"), gzip(&shard(60..100)));
        for (name, first, compression) in [
            ("train-00000-of-00002.tfrecord", 0, Compression::None),
            ("train-00001-of-00002.tfrecord", 60, Compression::Gzip),
        ] {
            let part = Part::of_shard(url(name), first, Some(case.bucket.store())).unwrap();
            assert_eq!((&*part.shard, part.first, part.records), (&*url(name), first, None));
            assert_eq!(part.compression, compression);
            let part = Part::from_json(&part.to_json()).unwrap();
            let labels = labels_of(options.part(&part).unwrap()).unwrap();
            assert!(labels.into_iter().eq(first as i64..if first == 0 { 60 } else { 100 }));
            case.bucket.set(&url(name), shard(7..30));
            assert!(is_stale(&options.part(&part).map(drop).unwrap_err()));
        }
        let e = Part::of_shard(url("none.tfrecord"), 0, Some(case.bucket.store())).unwrap_err();
        assert!(!e.is_data() && e.to_string().starts_with(&url("none.tfrecord")), "{e}");
        let e = Part::of_shard(url("none.tfrecord"), 0, None).unwrap_err();
        assert!(matches!(e.kind(), ErrorKind::Paths(PathsError::NotLocal { .. })), "{e}");
    }
    // Names in a part, and in errors, have neither query nor user.
    let case = Case::new(Manners::BUCKET);
    let secret = "mem://user:word@bucket/x.tfrecord?sig=1";
    let e = Part::of_shard(secret, 0, Some(case.bucket.store())).unwrap_err();
    assert!(e.to_string().starts_with("mem://bucket/x.tfrecord: "), "{e}");
    case.bucket.set(secret, shard(0..30));
    let part = Part::of_shard(secret, 5, Some(case.bucket.store())).unwrap();
    assert_eq!((&*part.shard, part.first), ("mem://bucket/x.tfrecord", 5));
}

#[test]
fn streams_read_objects_in_order() {
    for case in Case::all() {
        let options = StreamOptions { store: Some(case.bucket.store()), ..StreamOptions::default() };
        let name = url("train-00001-of-00002.tfrecord");
        let stream = options.open(&name).unwrap();
        assert_eq!(stream.name(), Path::new(&name));
        assert_eq!(labels_of(stream).unwrap(), (60..100).collect::<Vec<_>>());
        assert!(case.bucket.requests().wanted.load(Relaxed) > 0);
        case.bucket.set(&name, gzip(&shard(0..500)));
        assert_eq!(labels_of(options.open(&name).unwrap()).unwrap(), (0..500).collect::<Vec<_>>());
        let e = options.open(url("none.tfrecord")).map(drop).unwrap_err();
        assert!(e.to_string().starts_with(&url("none.tfrecord")), "{e}");
        let e = Stream::open(&name).map(drop).unwrap_err();
        assert!(matches!(e.kind(), ErrorKind::Paths(PathsError::NotLocal { .. })), "{e}");

        let mut damaged = shard(0..60);
        damaged[1000] ^= 1;
        case.bucket.set(&name, damaged);
        let e = labels_of(options.open(&name).unwrap()).unwrap_err();
        assert!(e.is_data() && e.to_string().starts_with(&name), "{e}");
        let sound = labels_of(StreamOptions { damage: Damage::Skip, ..options.clone() }.open(&name).unwrap())
            .unwrap();
        assert!(sound.len() < 60 && sound.len() > 50);
        let skipped = case.options().index(case.index_options().damage(Damage::Skip)).open(&name).unwrap();
        assert_eq!(labels(&skipped), sound);
    }
}

#[test]
fn an_object_that_is_replaced_under_a_stream_is_an_error() {
    for case in Case::all() {
        let name = url("long.tfrecord");
        case.bucket.set(&name, shard(0..20_000));
        let mut stream = StreamOptions { store: Some(case.bucket.store()), ..StreamOptions::default() }
            .open(&name)
            .unwrap();
        stream.next().unwrap().unwrap();
        case.bucket.set(&name, shard(1..20_001));
        let e = labels_of(stream).unwrap_err();
        assert!(is_stale(&e) && e.to_string().starts_with(&name), "{e}");
    }
}

#[test]
fn refresh_lists_again() {
    for case in Case::all() {
        for k in [0, 1] {
            case.bucket.remove(&url(&format!("train-0000{k}-of-00002.tfrecord")));
            case.bucket.set(&url(&format!("log-{k}.tfrecord")), shard(k * 10..k * 10 + 10));
        }
        let ds = case.open("log-*").unwrap();
        case.bucket.set(&url("log-2.tfrecord"), shard(20..30));
        case.bucket.set(&url("log-1.tfrecord"), shard(10..20));
        let grown = ds.refresh().unwrap();
        assert_eq!((ds.len(), labels(&grown)), (20, (0..30).collect()));
        case.bucket.set(&url("log-0a.tfrecord"), shard(0..1));
        assert!(matches!(grown.refresh().unwrap_err().kind(), ErrorKind::Renumbered { .. }));
    }
}
