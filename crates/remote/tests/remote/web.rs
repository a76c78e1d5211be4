//! Web servers.

use super::*;
use std::io;
use tfseek::io::Store;

#[test]
fn signed_urls_work_and_are_not_shown() {
    let case = Case::new("http");
    case.server.refuse_heads();
    let url = format!("{}?X-Signature=secret", case.url(NAMES[0])).replace("//", "//user:pw@");
    let ds = case.with(case.store()).open(url.as_str()).unwrap();
    assert_eq!(labels(&ds), (0..60).collect::<Vec<_>>());
    assert!(!format!("{ds:?}").contains("secret") && !format!("{ds:?}").contains("pw@"));
    let log = case.server.log();
    let requests = log.iter().filter(|line| line.starts_with("GET /bucket/data/train"));
    assert!(requests.clone().count() > 60);
    assert!(
        requests.clone().all(|line| line.contains("X-Signature=secret") && line.contains("Basic ")),
        "{log:#?}"
    );
    case.server.remove(&case.object(NAMES[0]));
    let text = ds.read(0, &mut Vec::new()).unwrap_err().to_string();
    assert!(text.starts_with(&case.url(NAMES[0])) && text.contains("404 Not Found"), "{text}");
    assert_no_secret(&text);
}

#[test]
fn a_web_server_has_no_listings() {
    let case = Case::new("http");
    for name in ["", "train-*", "train@*.tfrecord", "train@2000000.tfrecord", "tr*@2.tfrecord"] {
        let e = case.open(name).unwrap_err();
        assert_eq!(io_kind(&e), io::ErrorKind::Unsupported, "{e}");
        assert!(e.to_string().contains("a web server has no listings"), "{e}");
    }
    case.server.counts();
    assert!(case.store().list(&case.url(""), true).is_err());
    assert_eq!(case.server.counts().requests, 0);
    let e = case.store().put(&case.url("x"), b"").unwrap_err();
    assert_eq!(io_kind(&e), io::ErrorKind::Unsupported, "{e}");
}

#[test]
fn braces_sets_and_long_lists_name_objects_without_listings() {
    for (scheme, refused) in [("http", false), ("http", true), ("s3", true)] {
        let case = Case::new(scheme);
        for k in 0..20 {
            case.set(&format!("many-{k:02}.tfrecord"), shard(k..k + 1));
        }
        if refused {
            // Objects that are not there are then 403, not 404: also the common start of the names.
            case.server.refuse_lists();
        }
        // The common start of the names is looked for first.
        case.server.gather(3, 10);
        let all: Vec<_> = (0..20).map(|k| case.url(&format!("many-{k:02}.tfrecord"))).collect();
        case.server.most_at_once();
        assert_eq!(labels(&case.with(case.store()).open(&all[..]).unwrap()), (0..20).collect::<Vec<_>>());
        assert!(case.server.most_at_once() >= 10);
        let name = "{train-0000{0..1}-of-00002,many-{03..05}}.tfrecord";
        assert_eq!(
            labels(&case.open(name).unwrap()),
            [3, 4, 5].into_iter().chain(0..100).collect::<Vec<_>>()
        );
        assert_eq!(labels(&case.open("train@2.tfrecord").unwrap()), (0..100).collect::<Vec<_>>());
        let e = case.open("train@3.tfrecord").unwrap_err().to_string();
        assert!(e.contains(if refused { "403 Forbidden" } else { "train@3.tfrecord" }), "{e}");
        let e = case.open("many-{19..20}.tfrecord").unwrap_err().to_string();
        let expected = if refused { "403 Forbidden" } else { "many-20.tfrecord" };
        assert!(e.contains(expected), "{e}");
        let e = case.open("more-{1,2}.tfrecord").unwrap_err().to_string();
        assert!(e.contains(if refused { "403 Forbidden" } else { "more-{1,2}.tfrecord" }), "{e}");
    }
}

#[test]
fn unknown_schemes_are_told() {
    let case = Case::new("s3");
    for (url, expected) in [
        ("ftp://host/x.tfrecord", "unknown scheme, expected one of s3, s3a, gs"),
        ("s3://key:word@bucket/x.tfrecord", "a character that is not allowed"),
        ("s3:///x.tfrecord", "no bucket"),
        ("s3://bucket/a//x.tfrecord", "no such object"),
    ] {
        let text = case.with(case.store()).open(url).unwrap_err().to_string();
        assert!(text.contains(expected) && !text.contains("word"), "{text}");
    }
}
