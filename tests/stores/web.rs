//! A server of files: it has no listings, knows objects by their whole names, and is for reading only.

use super::*;
use std::io;
use tfseek::error::Error;
use tfseek::index::write_pack;
use tfseek::io::{Listing, Object, Region, Source, Stamp, Store};

#[derive(Debug)]
struct Web(Arc<dyn Store>);

impl Store for Web {
    fn list(&self, prefix: &str, _: bool) -> Result<Listing> {
        let mut found = self.0.list(prefix, false)?.objects;
        found.retain(|object| *object.url == *prefix);
        if found.is_empty() && (prefix.ends_with('/') || !prefix.ends_with(".tfrecord")) {
            return Err(Error::from(io::Error::from(io::ErrorKind::Unsupported)));
        }
        Ok(Listing { objects: found, folders: Vec::new() })
    }

    fn open(&self, object: &Object) -> Result<Arc<dyn Source>> {
        self.0.open(object)
    }

    fn small(&self, url: &str, limit: u64) -> Result<Option<(Region, Stamp)>> {
        self.0.small(url, limit)
    }

    fn put(&self, _: &str, _: &[u8]) -> Result<()> {
        Err(Error::from(io::Error::from(io::ErrorKind::Unsupported)))
    }
}

#[test]
fn names_and_packs_need_no_listing() {
    let case = Case::new(Manners::BUCKET);
    let names: Vec<String> = (0..20).map(|i| url(&format!("many-{i}.tfrecord"))).collect();
    for (name, i) in names.iter().zip(0..) {
        case.bucket.set(name, shard(i..i + 1));
    }
    let web = || case.options().store(Arc::new(Web(case.bucket.store())));
    // One name after the other, and each index beside its shard is asked for.
    let ds = web().open(&names).unwrap();
    assert_eq!((labels(&ds), case.cached()), ((0..20).collect(), 20));
    assert_eq!(case.bucket.requests().smalls.load(Relaxed), 20);
    let e = web().open(url("none.tfrecord")).unwrap_err().to_string();
    assert!(e.starts_with(&url("none.tfrecord: no such object")), "{e}");
    for pattern in ["many-*", "many@*.tfrecord", ""] {
        let e = web().open(url(pattern)).unwrap_err();
        assert!(
            matches!(e.kind(), ErrorKind::Io(e) if e.kind() == io::ErrorKind::Unsupported),
            "{pattern}: {e}"
        );
        let text = e.to_string();
        assert!(text.starts_with(ROOT) && text.ends_with("the store has no listings"), "{text}");
    }
    // Braces and sets of a given size name their shards.
    case.bucket.set(&url("set-00000-of-00002.tfrecord"), shard(20..21));
    case.bucket.set(&url("set-00001-of-00002.tfrecord"), shard(21..22));
    let found = web().open([url("many-{0..19}.tfrecord"), url("set@2.tfrecord")]).unwrap();
    assert_eq!(labels(&found), (0..22).collect::<Vec<_>>());
    for (pattern, missing) in
        [("many-{19..20}.tfrecord", "many-20.tfrecord"), ("set@3.tfrecord", "set@3.tfrecord")]
    {
        let text = web().open(url(pattern)).unwrap_err().to_string();
        assert!(text.contains(missing) && !text.contains("listings"), "{text}");
    }
    let paths: Vec<_> = names.iter().map(Into::into).collect();
    write_pack("many", &paths, &case.index_options()).unwrap();
    let ds = web().open(url(".tfseek/many.tfrp")).unwrap();
    assert_eq!(labels(&ds), (0..20).collect::<Vec<_>>());
}
