//! Steps of episodes, windows over them, and files of tables.

mod bytes;
mod damage;
mod files;
mod format;
mod loader;
mod stores;
mod twin;

use std::fs;
use std::io::Write;
use std::path::Path;
use tfseek::io::Region;
use tfseek::{DType, Dataset, DatasetOptions, ExampleBuilder, IndexMode, Verify};
use tfseek_rlds::{EpisodeKey, EpisodeKeys, EpisodeOptions, EpisodeValues, Episodes, Windows};
use tfseek_testkit::episodes::{self, Decoded, List, WindowSpec, decode, framed, steps_key};
use tfseek_testkit::rng::Rng;
use tfseek_testkit::shards::{options, write};

/// Options that keep files about shards in `DIR/i` only.
fn files(dir: &Path) -> DatasetOptions {
    DatasetOptions::new().index(options().index_dir(dir.join("i")))
}

fn in_memory() -> DatasetOptions {
    DatasetOptions::new().index(options().mode(IndexMode::Memory))
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn find(ds: &Dataset, keys: &EpisodeKeys) -> Episodes {
    Episodes::open(ds, keys, &EpisodeOptions::default()).unwrap()
}

fn decoded(payloads: &[Vec<u8>], keys: &[EpisodeKey]) -> Vec<Decoded> {
    payloads.iter().map(|payload| decode(payload, keys).unwrap()).collect()
}
