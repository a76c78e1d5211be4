//! Runs the fuzz target of pictures over its corpus, and over generated inputs, on a stable compiler.
//!
//! `TFSEEK_WRITE_SEEDS=1` rewrites the seeds.

mod target;

use std::fs;
use std::path::{Path, PathBuf};
use target::image;
use tfseek_testkit::corpus;
use tfseek_testkit::rng::Rng;

/// Returns small pictures of all kinds, with their names.
fn pictures() -> Vec<(String, Vec<u8>)> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    let mut paths: Vec<PathBuf> = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).collect();
    // Each picture has a file of its pixels.
    paths.retain(|path| path.extension().is_some_and(|found| found != "want"));
    paths.retain(|path| path.with_extension("want").exists());
    paths.sort();
    let name = |path: &PathBuf| path.file_name().unwrap().to_str().unwrap().to_owned();
    paths
        .iter()
        .map(|path| (name(path), fs::read(path).unwrap()))
        .filter(|(_, file)| file.len() < 1500)
        .collect()
}

/// A fuzzer needs few of them: one for each kind of data.
fn seeds() -> Vec<Vec<u8>> {
    let kept = [
        "yuv420",
        "many-scans",
        "restart.",
        "cmyk.",
        "grey.",
        "three-scans.",
        "rgba16",
        "palette8",
        "grey4-i",
        "bmp24-down",
        "bmp32-m",
        "gif-parts",
        "gif-interlaced",
        "gif-black",
        "bmp8",
        "webp-lossy-alpha.",
        "webp-lossless-",
        "webp-palette",
        "webp-frames.",
    ];
    let pictures = pictures().into_iter().filter(|(name, _)| kept.iter().any(|kept| name.starts_with(kept)));
    pictures.enumerate().map(|(k, (_, file))| [&[(k * 37 % 256) as u8], &file[..]].concat()).collect()
}

#[test]
fn every_seed_passes() {
    corpus::replay("image", &corpus::numbered(seeds()), image);
}

#[test]
fn pictures_pass_with_every_spec_and_with_changes() {
    for (_, file) in pictures() {
        for choice in (0..=127).chain((129..=255).step_by(5)) {
            image(&[&[choice], &file[..]].concat());
        }
    }
    let pictures = pictures();
    for seed in 0..4_000 {
        let mut rng = Rng::new(seed);
        let mut data = [&[rng.u64() as u8], &pictures[rng.below(pictures.len())].1[..]].concat();
        for _ in 0..1 + rng.below(3) {
            let at = rng.below(data.len());
            data[at] = rng.u64() as u8;
        }
        image(&data);
    }
}
