//! Data sets over a server that speaks the protocols of the stores.

#![allow(clippy::single_range_in_vec_init, reason = "ranges are what is tested")]

mod cache;
mod epochs;
mod faults;
#[cfg(unix)]
mod forks;
mod hub;
mod listings;
mod logins;
mod read;
#[path = "../../src/tests/server/mod.rs"]
mod server;
mod tfds;
mod web;

use server::Server;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;
use tfseek::frame::put_record;
use tfseek::index::IndexOptions;
use tfseek::{Dataset, DatasetOptions, Result};
use tfseek_remote::{RemoteOptions, RemoteStore};
use tfseek_testkit::labelled::{labels, shard};

/// The protocols, by the schemes of their URLs.
const SCHEMES: [&str; 5] = ["s3", "gs", "az", "http", "hf"];

/// A server with a set of two shards of 60 and 40 records, and a cache for its indexes.
struct Case {
    server: Server,
    cache: TempDir,
    scheme: &'static str,
}

const NAMES: [&str; 2] = ["train-00000-of-00002.tfrecord", "train-00001-of-00002.tfrecord"];

impl Case {
    fn new(scheme: &'static str) -> Case {
        let case = Case { server: Server::start(), cache: tempfile::tempdir().unwrap(), scheme };
        case.set(NAMES[0], shard(0..60));
        case.set(NAMES[1], shard(60..100));
        case
    }

    fn all() -> impl Iterator<Item = Case> {
        SCHEMES.into_iter().map(Case::new)
    }

    /// Returns the name of an object in the server.
    fn object(&self, name: &str) -> String {
        format!("{}/data/{name}", if self.scheme == "hf" { "hub" } else { "bucket" })
    }

    fn set(&self, name: &str, bytes: Vec<u8>) {
        self.server.set(&self.object(name), bytes);
    }

    fn url(&self, name: &str) -> String {
        match self.scheme {
            "hf" => format!("hf://datasets/owner/name/data/{name}"),
            "http" => format!("{}/bucket/data/{name}", self.server.url()),
            scheme => format!("{scheme}://bucket/data/{name}"),
        }
    }

    /// Returns options for this server, without the variables of the process.
    fn remote(&self) -> RemoteOptions {
        options_of(&self.server.url())
    }

    fn store(&self) -> Arc<RemoteStore> {
        Arc::new(RemoteStore::new(self.remote()))
    }

    fn index(&self) -> IndexOptions {
        IndexOptions::new().default_dirs(None, Some(self.cache.path().into()))
    }

    fn with(&self, store: Arc<RemoteStore>) -> DatasetOptions {
        DatasetOptions::new().index(self.index()).store(store)
    }

    fn open(&self, name: &str) -> Result<Dataset> {
        self.with(self.store()).open(self.url(name))
    }

    /// Opens both shards. A web server has no patterns.
    fn open_all(&self, store: Arc<RemoteStore>) -> Result<Dataset> {
        match self.scheme {
            "http" => self.with(store).open(NAMES.map(|name| self.url(name))),
            _ => self.with(store).open(self.url("train-*")),
        }
    }
}

/// Returns options for the server at this URL, without the variables of the process.
fn options_of(url: &str) -> RemoteOptions {
    let mut options = RemoteOptions::default();
    let variables = [
        ("AWS_ENDPOINT_URL", url),
        ("AWS_ALLOW_HTTP", "true"),
        // No server is there.
        ("AWS_METADATA_ENDPOINT", "http://127.0.0.1:1"),
        ("GOOGLE_BASE_URL", url),
        ("AZURE_STORAGE_ENDPOINT", url),
        ("AZURE_STORAGE_ACCOUNT_NAME", "account"),
        ("AZURE_ALLOW_HTTP", "true"),
        ("HF_ENDPOINT", url),
    ];
    options.variables = Some(variables.map(|(name, value)| (name.to_owned(), value.to_owned())).into());
    // A busy machine answers late.
    options.read_timeout = Duration::from_secs(60);
    options.retries = 3;
    options
}

fn label(ds: &Dataset, i: u64, buf: &mut Vec<u8>) -> Result<i64> {
    Ok(ds.read(i, buf)?.example().int64("label")?.first().unwrap())
}

/// Returns the files of a folder by name, with their content.
fn contents(dir: &Path) -> Vec<Vec<u8>> {
    let files = std::fs::read_dir(dir).unwrap();
    let mut files: Vec<Vec<u8>> = files.map(|file| std::fs::read(file.unwrap().path()).unwrap()).collect();
    files.sort();
    files
}

fn io_kind(e: &tfseek::Error) -> std::io::ErrorKind {
    let tfseek::ErrorKind::Io(io) = e.kind() else { panic!("{e}") };
    io.kind()
}

/// Checks that a text has none of the secrets of the tests.
fn assert_no_secret(text: &str) {
    for secret in [server::SECRET, server::TOKEN, server::KEY, "secret message", "Signature", "?", "pw@"] {
        assert!(!text.contains(secret), "{text}");
    }
}
