//! Searches on one core: records per second of conditions on small records, and bytes per second of texts in
//! large ones, beside the system's `grep -c -F -a` on the same file.
//!
//! `cargo bench -p tfseek-tools --bench grep`. The file cache must be warm, so each search runs once before
//! the rounds. `TFSEEK_ROUNDS` sets the number of rounds, by default 5. All ways run in turn in each round,
//! and the table has the medians.

use std::io::BufWriter;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;
use tfseek::example::MessageKind;
use tfseek::frame::put_record;
use tfseek::{ExampleBuilder, Stream};
use tfseek_testkit::bench;
use tfseek_testkit::rng::Rng;
use tfseek_tools::KindedStream;
use tfseek_tools::grep::{Grep, GrepOptions};
use tfseek_tools::units::NumberedStream;

const SMALL: u64 = 2_000_000;
const LARGE: u64 = 20_000;
const NAMES: [&str; 5] = ["cat", "dog", "chicken", "horse", "goat"];

/// Records like those of TensorFlow's tutorial.
fn small(file: &mut BufWriter<std::fs::File>) {
    let mut rng = Rng::new(1);
    for _ in 0..SMALL {
        let record = ExampleBuilder::new()
            .int64("feature0", [rng.below(2) as i64])
            .int64("feature1", [rng.below(5) as i64])
            .bytes("feature2", [NAMES[rng.below(5)]])
            .float("feature3", [rng.below(1000) as f32 / 500.0 - 1.0]);
        put_record(file, &record.encode().unwrap()).unwrap();
    }
}

/// Records of 40 kB of noise, one of a hundred with a text in it.
fn large(file: &mut BufWriter<std::fs::File>) {
    let mut rng = Rng::new(2);
    let noise: Vec<u8> = (0..1 << 20).map(|_| rng.u64() as u8).collect();
    for i in 0..LARGE {
        let from = rng.below(noise.len() - 40_000);
        let mut image = noise[from..from + 40_000].to_vec();
        if i % 100 == 0 {
            image[20_000..20_006].copy_from_slice(b"needle");
        }
        let record = ExampleBuilder::new().int64("label", [i as i64]).bytes("image/encoded", [image]);
        put_record(file, &record.encode().unwrap()).unwrap();
    }
}

fn matches(grep: &Grep, path: &Path) -> u64 {
    let open = |_: usize, _: Option<u64>| {
        Ok(NumberedStream {
            stream: KindedStream::new(Stream::open(path)?, Some(MessageKind::Example)),
            before: Some(0),
        })
    };
    let mut found = 0;
    let done: tfseek::Result<_> = grep.run(1, open, |unit| {
        found += unit.result.matches.len() as u64;
        unit.error.map_or(Ok(()), Err)
    });
    done.unwrap();
    found
}

fn system(path: &Path) -> u64 {
    let out = Command::new("grep").args(["-c", "-F", "-a", "needle"]).arg(path).env("LC_ALL", "C").output();
    out.ok().and_then(|out| String::from_utf8(out.stdout).ok()?.trim().parse().ok()).unwrap_or(0)
}

/// A way to search: its name, the file, and the search.
type Way<'a> = (&'a str, &'a Path, Box<dyn Fn() -> u64 + 'a>);

fn main() {
    if std::env::args().any(|arg| arg == "--test") {
        return;
    }
    let rounds = std::env::var("TFSEEK_ROUNDS").ok().and_then(|text| text.parse().ok()).unwrap_or(5);
    let (a, b): (PathBuf, PathBuf) =
        (bench::file("grep-small.tfrecord", small), bench::file("grep-large.tfrecord", large));
    let options = GrepOptions { threads: Some(1), ..GrepOptions::default() };
    let filter = |text: &str| Grep::filter(&text.parse().unwrap(), options);
    let (one, two) = (filter("feature1 == 3"), filter("feature2 == 'goat' and feature3 > 0.5"));
    let (any, part) =
        (filter("any(feature1) in 1..3 or len(feature2) > 1"), filter("feature2 matches '^(c|d)'"));
    let (text, needle) = (Grep::text(b"goat", options), Grep::text(b"needle", options));
    let ways: [Way<'_>; 7] = [
        ("feature1 == 3", &a, Box::new(|| matches(&one, &a))),
        ("two features", &a, Box::new(|| matches(&two, &a))),
        ("any and len", &a, Box::new(|| matches(&any, &a))),
        ("a pattern", &a, Box::new(|| matches(&part, &a))),
        ("-F, small records", &a, Box::new(|| matches(&text, &a))),
        ("-F, large records", &b, Box::new(|| matches(&needle, &b))),
        ("grep -c -F -a", &b, Box::new(|| system(&b))),
    ];
    let mut times = vec![Vec::new(); ways.len()];
    for round in 0..=rounds {
        for (times, (_, _, run)) in times.iter_mut().zip(&ways) {
            let start = Instant::now();
            assert!(run() > 0);
            if round > 0 {
                times.push(start.elapsed().as_secs_f64());
            }
        }
    }
    println!("{:20} {:>12} {:>8}", "search", "records/s", "GB/s");
    for ((name, path, _), mut times) in ways.iter().zip(times) {
        times.sort_by(f64::total_cmp);
        let time = times[times.len() / 2];
        let records = if *path == a { SMALL } else { LARGE } as f64;
        let bytes = std::fs::metadata(path).unwrap().len() as f64;
        println!("{name:20} {:>10.2} M {:>8.2}", records / time / 1e6, bytes / time / 1e9);
    }
}
