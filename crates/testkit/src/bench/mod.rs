//! Seeded data for the benches. Files are written once, below the build folder.

pub mod copy;
pub mod shapes;
pub mod sum;

use crate::rng::Rng;
pub use shapes::key;
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use tfseek::frame::put_record;
use tfseek::{ExampleBuilder, FeatureBuf};

/// Returns Criterion settings with which a bench takes one to two minutes.
#[cfg(feature = "criterion")]
pub fn short() -> criterion::Criterion {
    use std::time::Duration;
    criterion::Criterion::default()
        .sample_size(20)
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_millis(1500))
        .configure_from_args()
}

/// Returns a record length between `mean / 2` and `mean * 3 / 2`.
pub fn length(rng: &mut Rng, mean: u64) -> usize {
    (mean / 2 + rng.below_u64(mean + 1)) as usize
}

/// Returns records with a mean payload of `mean` bytes and a total length of at least `total` bytes.
pub fn records(total: usize, mean: u64) -> Vec<u8> {
    let (mut bytes, mut rng) = (Vec::with_capacity(total + 2 * mean as usize), Rng::new(mean));
    write_records(&mut bytes, total as u64, mean, &mut rng);
    bytes
}

fn write_records(w: &mut impl Write, total: u64, mean: u64, rng: &mut Rng) {
    let noise: Vec<u8> = (0..2 * mean).map(|_| rng.u64() as u8).collect();
    let mut done = 0;
    while done < total {
        let len = length(rng, mean);
        put_record(w, &noise[..len]).unwrap();
        done += 16 + len as u64;
    }
}

/// Returns the path of a file in the folder for bench data. `make` writes the file if it does not exist.
pub fn file(name: &str, make: impl FnOnce(&mut BufWriter<File>)) -> PathBuf {
    file_in(&folder(), name, make)
}

/// Returns the folder for bench data: `tmp/bench` in the build folder of the running bench.
///
/// # Panics
///
/// If the program is not in Cargo's build folder, at `PROFILE/deps/NAME`.
pub fn folder() -> PathBuf {
    let program = std::env::current_exe().unwrap();
    program.ancestors().nth(3).expect("a bench is in target/PROFILE/deps").join("tmp/bench")
}

/// Like [`file`], in another folder.
fn file_in(dir: &Path, name: &str, make: impl FnOnce(&mut BufWriter<File>)) -> PathBuf {
    fs::create_dir_all(dir).unwrap();
    let path = dir.join(name);
    if !path.exists() {
        let part = dir.join(format!("{name}.part"));
        // With large writes the page cache contains large folios, as for a file that was read from disk.
        let mut w = BufWriter::with_capacity(1 << 20, File::create(&part).unwrap());
        make(&mut w);
        w.into_inner().unwrap().sync_all().unwrap();
        fs::rename(part, &path).unwrap();
    }
    path
}

/// Returns the path of a shard with a mean payload of `mean` bytes and a total length of at least `total`
/// bytes.
pub fn shard(total: u64, mean: u64) -> PathBuf {
    shard_in(&folder(), total, mean)
}

/// Like [`shard`], in another folder, for data that does not fit on the disk of the build folder.
pub fn shard_in(dir: &Path, total: u64, mean: u64) -> PathBuf {
    let name = format!("{mean}-{total}.tfrecord");
    file_in(dir, &name, |w| write_records(w, total, mean, &mut Rng::new(mean)))
}

/// Returns an Example of `n` features: bytes, float and int64 alternately, with keys of 17 bytes and about 45
/// bytes per feature.
pub fn example(rng: &mut Rng, n: usize) -> Vec<u8> {
    let mut builder = ExampleBuilder::new();
    for k in 0..n {
        let feature = match k % 3 {
            0 => {
                let len = 12 + rng.below(8);
                FeatureBuf::Bytes(vec![(0..len).map(|_| rng.u64() as u8).collect()])
            }
            1 => FeatureBuf::Float((0..4).map(|_| rng.below(1000) as f32).collect()),
            _ => FeatureBuf::Int64((0..6).map(|_| rng.below(50_000) as i64).collect()),
        };
        builder = builder.feature(key(k), feature);
    }
    builder.encode().unwrap()
}
