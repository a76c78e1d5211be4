//! Seeded data for the benches. It lies under the build folder, and is made once.
#![allow(dead_code, reason = "each bench uses its part")]

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use tfseek::frame::put_record;

/// SplitMix64 (Steele, Lea, Flood 2014): small, and the same on every machine.
pub(crate) struct Rng(pub(crate) u64);

impl Rng {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub(crate) fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }
}

/// A record's length: `mean`, give or take a half.
pub(crate) fn length(rng: &mut Rng, mean: u64) -> usize {
    (mean / 2 + rng.below(mean + 1)) as usize
}

/// Records of `mean` bytes until `total` are reached.
pub(crate) fn records(total: usize, mean: u64) -> Vec<u8> {
    let (mut bytes, mut rng) = (Vec::with_capacity(total + 2 * mean as usize), Rng(mean));
    write_records(&mut bytes, total as u64, mean, &mut rng);
    bytes
}

fn write_records(w: &mut impl Write, total: u64, mean: u64, rng: &mut Rng) {
    let noise: Vec<u8> = (0..2 * mean).map(|_| rng.next() as u8).collect();
    let mut done = 0;
    while done < total {
        let len = length(rng, mean);
        put_record(w, &noise[..len]).unwrap();
        done += 16 + len as u64;
    }
}

/// A file of this name in the build folder, made by `make` unless it is there.
pub(crate) fn file(name: &str, make: impl FnOnce(&mut BufWriter<File>)) -> PathBuf {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join("bench");
    fs::create_dir_all(&dir).unwrap();
    let path = dir.join(name);
    if !path.exists() {
        let part = dir.join(format!("{name}.part"));
        // Large writes: the page cache then holds large folios, as it does for a file that was read in.
        let mut w = BufWriter::with_capacity(1 << 20, File::create(&part).unwrap());
        make(&mut w);
        w.into_inner().unwrap().sync_all().unwrap();
        fs::rename(part, &path).unwrap();
    }
    path
}

/// A shard of records of `mean` bytes.
pub(crate) fn shard(total: u64, mean: u64) -> PathBuf {
    file(&format!("{mean}-{total}.tfrecord"), |w| write_records(w, total, mean, &mut Rng(mean)))
}
