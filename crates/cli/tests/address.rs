//! Addresses of object stores, and local files whose names look like them. A binary of its own, because it is
//! compiled without the feature `remote`, too.

mod common;
mod every_verb;

use common::*;
use every_verb::*;
#[cfg(unix)]
use std::fs;

/// Without the feature, addresses of object stores are refused and not treated as file names.
#[test]
#[cfg(not(feature = "remote"))]
fn addresses_are_refused() {
    let dir = folder();
    for address in ["gs://bucket/train-*", "s3://bucket/x.tfrecord", "https://example.org/x.tfrecord"] {
        all_verbs(&dir, address, (2, 2, &[]));
        let scheme = address.split(':').next().unwrap();
        dir.run(&["cat", address]).fails(2, &[address, "expected a local path", &format!("{scheme}://")]);
    }
    dir.run(&["cat", "file:///x.tfrecord"]).fails(2, &["remove the file://"]);
}

#[cfg(unix)]
#[test]
fn a_file_whose_name_looks_like_an_address() {
    let dir = folder();
    dir.run(&["cat", "gs:/x.tfrecord"]).fails(2, &["expected a local path"]);
    fs::create_dir(dir.path("gs:")).unwrap();
    dir.shard("gs:/x.tfrecord", labels(0..1));
    for name in ["./gs:/x.tfrecord", "./gs://x.tfrecord", "./gs:/*.tfrecord", "gs:/x.tfrecord"] {
        assert_eq!(dir.run(&["cat", name]).code, 0, "{name}");
    }
    if !cfg!(feature = "remote") {
        dir.run(&["cat", "gs://x.tfrecord"]).fails(2, &["expected a local path"]);
    }
}
