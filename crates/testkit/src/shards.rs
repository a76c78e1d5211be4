//! Small shards, and options that use only the folder of a test.

use std::fs::{self, File};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, SystemTime};
use tfseek::frame::put_record;
use tfseek::index::{Index, IndexOptions, Indexes, build_beside, open_shards};

pub fn records(payloads: &[&[u8]]) -> Vec<u8> {
    let mut file = Vec::new();
    payloads.iter().for_each(|p| put_record(&mut file, p).unwrap());
    file
}

/// Returns a file of `n` records with payloads of `len` bytes.
pub fn equal(n: usize, len: usize) -> Vec<u8> {
    let mut file = Vec::new();
    (0..n).for_each(|i| put_record(&mut file, &vec![i as u8; len]).unwrap());
    file
}

pub fn write(dir: &Path, name: &str, bytes: &[u8]) -> PathBuf {
    let path = dir.join(name);
    fs::write(&path, bytes).unwrap();
    path
}

pub fn set_mtime(path: &Path, ns: u64) {
    let time = SystemTime::UNIX_EPOCH + Duration::from_nanos(ns);
    File::options().write(true).open(path).unwrap().set_modified(time).unwrap();
}

/// Makes the files of an index folder newer than all changes of the shards, so that size and time tell that a
/// shard is the same.
pub fn trust(folder: &Path) {
    let later = SystemTime::now() + Duration::from_secs(3600);
    for file in fs::read_dir(folder).unwrap() {
        File::options().write(true).open(file.unwrap().path()).unwrap().set_modified(later).unwrap();
    }
}

/// Returns options without default folders, so only the folders that a test specifies are used.
pub fn options() -> IndexOptions {
    IndexOptions::new().default_dirs(None, None)
}

pub fn open(path: &Path, options: &IndexOptions) -> tfseek::Result<Indexes> {
    open_shards(&[path.to_path_buf()], options)
}

/// Builds the indexes next to the shards. Returns them, or the first error.
pub fn built_beside(paths: &[PathBuf], options: &IndexOptions) -> tfseek::Result<Indexes> {
    build_beside(paths, options)?.into_iter().collect()
}

/// Opens a shard. Returns its index and the number of bytes that were scanned for it.
pub fn scanned(path: &Path, options: &IndexOptions) -> (Index, u64) {
    let bytes = Arc::new(AtomicU64::new(0));
    let count = Arc::clone(&bytes);
    let options = options.clone().progress(move |n| {
        count.fetch_add(n, Relaxed);
        ControlFlow::Continue(())
    });
    let mut opened = open(path, &options).unwrap();
    (opened.indexes.remove(0), bytes.load(Relaxed))
}

pub fn spans(index: &Index) -> Vec<(u64, u64)> {
    (0..index.len()).map(|i| index.locate(i).map(|s| (s.offset, s.payload_len)).unwrap()).collect()
}

pub fn sidecar(index: &Index) -> Vec<u8> {
    let mut bytes = Vec::new();
    index.write_to(&mut bytes).unwrap();
    bytes
}

/// Returns true if the index is of a scan that verified payloads: flag *checked* in `docs/index.md`.
pub fn is_checked(index: &Index) -> bool {
    sidecar(index)[80] & 1 << 4 != 0
}

/// Returns the number of bytes after the last whole record, in the file and in the stream that it contains.
pub fn torn_bytes(index: &Index) -> u64 {
    let gaps = index.gaps().map(Result::unwrap);
    gaps.filter(|gap| gap.records == index.len()).map(|gap| gap.bytes()).sum()
}

pub fn names(dir: &Path) -> Vec<String> {
    let Ok(entries) = fs::read_dir(dir) else { return Vec::new() };
    let mut names: Vec<_> = entries.map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}
