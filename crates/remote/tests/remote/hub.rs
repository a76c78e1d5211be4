//! The Hugging Face hub.

use super::*;
use std::io;
use tfseek::io::Store;

#[test]
fn an_object_is_resolved_once_and_again_when_its_address_expires() {
    let case = Case::new("hf");
    let ds = case.open_all(case.store()).unwrap();
    labels(&ds);
    let counts = case.server.counts();
    assert_eq!(counts.resolves, 2, "{counts:?}");
    assert!(counts.gets >= 100);
    case.server.expire_signatures();
    assert_eq!(labels(&ds), (0..100).collect::<Vec<_>>());
    assert_eq!(case.server.counts().resolves, 2);
    // An address that is refused at once is an error, and no loop.
    case.server.fail("/signed/", server::Fault::Status(403), 1000);
    let text = ds.read(0, &mut Vec::new()).unwrap_err().to_string();
    assert!(text.contains("403 Forbidden (of the address that the hub gave)"), "{text}");
    assert_no_secret(&text);
    assert_eq!(case.server.counts().resolves, 1);
}

#[test]
fn revisions_and_missing_things_have_names() {
    let case = Case::new("hf");
    let open = |url: &str| case.with(case.store()).open(url);
    for root in
        ["owner/name", "owner/name@main", "owner/name@v1", "owner/name@refs/pr/2", "owner/name@refs%2Fpr%2F2"]
    {
        let ds = open(&format!("hf://datasets/{root}/data/train-*")).unwrap();
        assert_eq!(ds.len(), 100);
        assert!(ds.shards().all(|shard| shard.path.to_str().unwrap().contains(root)));
    }
    for (url, expected) in [
        ("hf://datasets/owner/name@v2/data/train-*", "no such revision"),
        ("hf://datasets/owner/other/data/train-*", "no such repository, or it is private"),
        ("hf://datasets/owner/name/data/x.tfrecord", "no such object"),
        ("hf://datasets/owner", "expected hf://datasets/OWNER/NAME"),
        ("hf://owner/name/x", "expected hf://datasets/OWNER/NAME"),
    ] {
        let text = open(url).unwrap_err().to_string();
        assert!(text.starts_with(url.split('*').next().unwrap()) && text.contains(expected), "{text}");
    }
    let e = case.store().put(&case.url("x"), b"").unwrap_err();
    assert_eq!(io_kind(&e), io::ErrorKind::Unsupported, "{e}");
}

#[test]
fn small_files_are_sent_whole() {
    let case = Case::new("hf");
    case.set("small.tfrecord", shard(0..1));
    assert!(shard(0..1).len() < 100);
    assert_eq!(labels(&case.open("small.tfrecord").unwrap()), [0]);
    let object = case.store().list(&case.url("small"), false).unwrap().objects.remove(0);
    assert!(object.stamp.version.unwrap().contains(':'));
}

#[test]
fn a_file_of_another_content_is_stale() {
    let case = Case::new("hf");
    let ds = case.open_all(case.store()).unwrap();
    case.set(NAMES[1], shard(500..540));
    let text = ds.read(70, &mut Vec::new()).unwrap_err().to_string();
    assert!(text.starts_with(&case.url(NAMES[1])) && text.contains("the object was replaced"), "{text}");
}
