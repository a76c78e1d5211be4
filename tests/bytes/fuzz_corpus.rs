//! Runs the fuzz targets over their corpora on a stable compiler.
//!
//! `TFSEEK_WRITE_SEEDS=1` rewrites the seeds, which changes nothing unless the generators changed. Findings of a fuzzer are added
//! to a corpus by hand, under a descriptive name.

use std::fs;
use std::path::{Path, PathBuf};
use tfseek_testkit::agree_parse::Input;
use tfseek_testkit::rng::Rng;
use tfseek_testkit::roundtrip::roundtrip;
use tfseek_testkit::shaped::{self, Style};
use tfseek_testkit::{payloads, targets, tensors};

fn corpus(target: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus").join(target)
}

/// Returns a few small inputs of each sort.
fn seeds(target: &str) -> Vec<Vec<u8>> {
    let mut rng = Rng::new(1);
    let rng = &mut rng;
    match target {
        "frames" => (0..20u8)
            .map(|k| {
                let len = rng.below(120);
                [vec![k % 16], rng.bytes(len)].concat()
            })
            .collect(),
        // The first byte selects the initial input. The edits follow.
        "index" | "column" => (1..40u8)
            .map(|k| {
                let edits = rng.below(4);
                let mut seed = vec![k];
                for _ in 0..edits {
                    // Most edits are at the fields.
                    let (fields, all) = if target == "index" { (200, 20_000) } else { (700, 900) };
                    let at = if rng.chance(200) { rng.below(fields) } else { rng.below(all) } as u16;
                    seed.push(rng.u64() as u8);
                    seed.extend(at.to_le_bytes());
                    seed.extend(rng.bytes(2));
                }
                seed
            })
            .collect(),
        "tensor" => (0..48u8)
            .map(|k| {
                let message = match k {
                    0..16 => tensors::canonical(rng, tensors::dtype(k)),
                    16..32 => tensors::odd(rng, tensors::dtype(k)),
                    _ => tensors::mutated(rng, tensors::dtype(k)),
                };
                [vec![k % 16], message].concat()
            })
            .chain((48..64u8).map(|k| [vec![k], vec![k % 2; 40]].concat()))
            .collect(),
        // Options, a schema, and a few payloads.
        "parse" => (0..80u16)
            .map(|k| {
                let options = rng.u64() as u8 & 0x3e | (k % 2) as u8;
                let mut input = Input { options, seed: k, payloads: Vec::new() };
                let schema = input.schema();
                let style = Style {
                    odd: rng.pick(&[0, 0, 20]),
                    spoilt: rng.pick(&[0, 60]),
                    damaged: rng.pick(&[0, 60]),
                    own_order: rng.chance(128),
                };
                let rows = if options & Input::SINGLE != 0 { 1 } else { rng.below(6) };
                input.payloads = (0..rows).map(|_| shaped::payload(rng, &schema, style)).collect();
                input.to_bytes()
            })
            .filter(|seed| seed.len() < 1500)
            .take(60)
            .collect(),
        _ => (0..40)
            .map(|k| match (k % 3, target == "sequence" || (target == "roundtrip" && k % 2 == 0)) {
                (0, false) => payloads::canonical_example(rng),
                (0, true) => payloads::canonical_sequence(rng),
                (1, false) => payloads::odd_example(rng),
                (1, true) => payloads::odd_sequence(rng),
                (_, sequence) => payloads::mutated(rng, sequence),
            })
            .filter(|seed| seed.len() < 1500)
            .collect(),
    }
}

#[test]
fn every_seed_passes() {
    for &(name, target) in targets::TARGETS {
        let dir = corpus(name);
        if std::env::var_os("TFSEEK_WRITE_SEEDS").is_some() {
            fs::create_dir_all(&dir).unwrap();
            for (k, seed) in seeds(name).iter().enumerate() {
                fs::write(dir.join(format!("seed-{k:02}")), seed).unwrap();
            }
        }
        // Packages lack the corpus folder; use the generated seeds there.
        let mut files: Vec<_> = fs::read_dir(&dir)
            .map(|files| files.map(|file| file.unwrap().path()).collect())
            .unwrap_or_default();
        files.sort();
        let kept = files.iter().map(|file| (file.display().to_string(), fs::read(file).unwrap()));
        let made = seeds(name).into_iter().enumerate().map(|(k, seed)| (format!("{name}: seed {k}"), seed));
        for (what, seed) in kept.chain(made) {
            let ran = std::panic::catch_unwind(|| target(&seed));
            assert!(ran.is_ok(), "{what}");
        }
        target(b"");
    }
}

/// Runs the same targets on many more inputs than the corpora contain.
#[test]
fn generated_inputs_pass() {
    for seed in 0..3_000 {
        let mut rng = Rng::new(seed);
        let len = rng.below(60);
        let bytes = [vec![rng.u64() as u8], rng.bytes(len)].concat();
        targets::frames(&bytes);
        targets::index(&bytes);
        targets::column(&bytes);
        targets::tensor(&bytes);
        let dtype = tensors::dtype(bytes[0]);
        targets::tensor(&[vec![bytes[0] & 15], tensors::mutated(&mut rng, dtype)].concat());
        for sequence in [false, true] {
            roundtrip(&payloads::mutated(&mut rng, sequence));
        }
    }
}
