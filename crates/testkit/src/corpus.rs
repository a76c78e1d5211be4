//! The corpora of the fuzz targets, in ordinary tests.

use std::panic::{RefUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::{env, fs};

/// Returns the folder of a target's corpus. Packages lack it.
pub fn folder(target: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(target)
}

/// Returns seeds with the names `seed-00`, `seed-01`, ..
pub fn numbered(seeds: impl IntoIterator<Item = Vec<u8>>) -> Vec<(String, Vec<u8>)> {
    seeds.into_iter().enumerate().map(|(k, seed)| (format!("seed-{k:02}"), seed)).collect()
}

/// Runs a target on all files of its corpus, on its seeds with their names, and on no bytes.
/// `TFSEEK_WRITE_SEEDS=1` writes the seeds first.
pub fn replay(name: &str, seeds: &[(String, Vec<u8>)], target: impl Fn(&[u8]) + RefUnwindSafe) {
    let dir = folder(name);
    if env::var_os("TFSEEK_WRITE_SEEDS").is_some() {
        fs::create_dir_all(&dir).unwrap();
        for (name, seed) in seeds {
            fs::write(dir.join(name), seed).unwrap();
        }
    }
    let files = fs::read_dir(&dir).into_iter().flatten().map(|file| file.unwrap().path());
    let mut files: Vec<PathBuf> = files.collect();
    files.sort();
    let kept = files.iter().map(|file| (file.display().to_string(), fs::read(file).unwrap()));
    let made = seeds.iter().map(|(seed, bytes)| (format!("{name}: {seed}"), bytes.clone()));
    for (what, seed) in kept.chain(made) {
        assert!(catch_unwind(|| target(&seed)).is_ok(), "{what}");
    }
    target(b"");
}
