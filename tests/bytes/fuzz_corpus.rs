//! Runs the fuzz targets over their corpora on a stable compiler.
//!
//! `TFSEEK_WRITE_SEEDS=1` rewrites the seeds, which changes nothing unless the generators changed. Findings
//! of a fuzzer are added to a corpus by hand, under a descriptive name.

use tfseek_testkit::agree_parse::Input;
use tfseek_testkit::rng::Rng;
use tfseek_testkit::roundtrip::roundtrip;
use tfseek_testkit::shaped::{self, Style};
use tfseek_testkit::{corpus, payloads, targets, tensors};

const STATES: &[&str] = &[
    r#"{"v":1,"order":{"algo":"prp1","kind":"global"},"seed":42,"epoch":3,"pos":640,"n":1000,"fp":"99aa06d3014798d86001c324468d497f"}"#,
    r#"{"v":1,"order":{"algo":"prp1","kind":"block","b":256,"W":1024},"seed":0,"epoch":0,"pos":0,"n":0,"fp":"00000000000000000000000000000000"}"#,
    r#"{"v":1,"order":{"algo":"prp1","kind":"weighted","weights":[1,0,3],"ids":"99aa06d3014798d86001c324468d497f"},"seed":18446744073709551615,"epoch":18446744073709551615,"pos":1,"n":3,"fp":"99aa06d3014798d86001c324468d497f"}"#,
    r#"{"v":1,"order":{"algo":"prp1","kind":"mixture","weights":"99aa06d3014798d86001c324468d497f","parts":"99aa06d3014798d86001c324468d497f"},"seed":1,"epoch":1,"pos":1,"n":1,"fp":"99aa06d3014798d86001c324468d497f"}"#,
];

const FILTERS: &[&str] = &[
    "i == 3 and f < -0.5 or not s in 'cat', \"dog\"",
    "i in 1, 2, 5..9, 10..=20, 30.., ..-4",
    "present(i) and absent ( 'a b' )",
    "f == 1e-7 or f != +nan or f >= -inf",
    r#"s == 'it\'s' or s < "\x41\n\t\\""#,
    "not not (not (i > 1))",
    "((((((((((i == 1))))))))))",
    "x/y.z:w-1 == 2",
    "in == 3 or all(steps('tb')) != s and len(steps(ti)) > len(li)",
    "i == ",
    "s == 'a",
    "f in 0.1..0.2, 1e3..",
    "any(li) > 3 and all(lf) in -1..1 or len(lb) != 2",
    r#"s contains 'a' and not any(lb) matches "^[cd]\w{2}$" or bytes(s) >= 3"#,
    "width(img) == 2 and height (img) < 11 or format(img) in 'png', 'gif'",
    "f is nan or any(lf) is not nan and record in 10..20, 90..",
    "split(0.25, seed=7) and not split(5e-1) or record != 3",
    "s matches '(a{99}){99}'",
    "split(0.5, seed = ",
];

/// A schema with all fields of an image, without the byte that selects its JSON form.
const IMAGE_SCHEMA: &[u8] = br#"{"features":{"i":{"type":"image","size":[4,6],"channels":3,"resize":"area","crop":"random_resized","crop_with":"j","scale":[0.25,1],"ratio":[0.5,2],"flip":0.5,"jitter":[["hue",0.1],["contrast",[0.75,1.25]]],"mean":[0.5,0.5,0.5],"std":[1,1,1],"dtype":"float16","layout":"chw","exif":true,"missing":7,"geometry":"g","scaled":true}}}"#;

const PATTERNS: &[&str] = &[
    "",
    "a.tfrecord",
    "sub",
    "sub/",
    "empty",
    "other",
    "nothing",
    "a*.tfrecord",
    "a?.tfrecord",
    "a??tfrecord",
    "*",
    "*/*",
    "sub/*/train-*",
    "train-*",
    "train-0000[0-1]*",
    "train@3.tfrecord",
    "train@*.tfrecord",
    "val-*",
    "val@4.tfrecord",
    "val-{0,1,3}-of-4.tfrecord",
    "val-{0..3}-of-4.tfrecord",
    "mix@*",
    "mix@1",
    "mix@00002",
    "dup@2.tfr",
    "dup-*",
    "z.tfrecord@2.gz",
    "z.tfrecord@*.gz",
    "train-{00000..00002}-of-00003.tfrecord",
    "{a,b,c{1,2}}.tfrecord",
    "{a{1,01,2,10},a}.tfrecord",
    "{x}.tfrecord",
    "[y].tfr",
    "[w]/*",
    "{[w],sub}/*.tfr{,ecord}",
    "{1..9..4}",
    "{9..1..4}",
    "{00..18446744073709551616}",
    "**/*.tfr",
    "s p.record",
    "\u{e9}.tfrec",
    "x@2.bin",
    ".*",
    ".hidden.tfrecord",
    "a.tfrecord/b",
    "sub/../a.tfrecord",
    "./sub//c.tfrecord",
    "*@2.tfr",
    "{{{{{{{{{{{{{{{{{{a,b}}}}}}}}}}}}}}}}}}",
];

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
            // A torn compressed shard without the section of losses.
            .chain((target == "index").then(|| vec![0xb9, 0xd9, 0x78, 0x23, 5]))
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
        // Options, and a script. In `salvage` and `state` a mode 0 is followed by the text itself.
        "compressed" | "salvage" => (0..30u8)
            .map(|k| {
                let len = rng.below(150);
                let mode = if target == "compressed" { rng.u64() as u8 & !16 } else { k };
                [vec![mode], rng.bytes(len)].concat()
            })
            .collect(),
        "checkpoints" => (0..32u8)
            .map(|k| {
                let edits = (0..k % 5).flat_map(|_| {
                    let at = if rng.chance(200) { rng.below(700) } else { rng.below(6_000) } as u16;
                    [vec![rng.u64() as u8], at.to_le_bytes().to_vec(), rng.bytes(2)].concat()
                });
                [vec![k & 15], edits.collect()].concat()
            })
            .collect(),
        "predicted" => (0..32u8)
            .map(|k| {
                let len = rng.below(120);
                [vec![k * 8 + rng.below(4) as u8], rng.bytes(2 + len)].concat()
            })
            .collect(),
        "steps" => (0..64u8)
            .map(|k| {
                let edits = (0..k % 4).flat_map(|_| {
                    let at = if rng.chance(128) { rng.below(300) } else { rng.below(2_000) } as u16;
                    [vec![rng.u64() as u8], at.to_le_bytes().to_vec(), rng.bytes(2)].concat()
                });
                let edits: Vec<u8> = edits.collect();
                match k % 2 {
                    // The number of edits is before those of a payload.
                    0 => [vec![k], rng.bytes(2), vec![k % 4], edits].concat(),
                    _ => [vec![k << 3 | rng.pick(&[1, 3]), rng.u64() as u8], edits].concat(),
                }
            })
            // Values that are not divided as their lengths say, and sums that are not ascending.
            .chain([
                vec![155, 0, 0, 0, 16, 3, 137, 134, 119, 101, 155, 23, 0, 0, 255, 47],
                vec![50, 108, 98, 1, 195, 17, 115, 2, 105, 213, 156, 0, 135, 91],
                vec![4, 62, 159, 252, 2, 203, 4, 181, 1, 8],
            ])
            .collect(),
        "schema" => (0..40u16)
            .map(|k| match k % 2 {
                0 => {
                    let text = shaped::schema(rng, k % 4 == 2).to_json();
                    [&[0], text.split_whitespace().collect::<String>().as_bytes()].concat()
                }
                _ => [&[1 | k as u8 & 2], &k.to_le_bytes()[..], &rng.bytes(5)].concat(),
            })
            .filter(|seed| seed.len() < 700)
            .chain([[&[0], IMAGE_SCHEMA].concat()])
            .collect(),
        "state" => (1..40u8)
            .map(|k| {
                let len = rng.below(60);
                [vec![k], rng.bytes(len)].concat()
            })
            .chain(STATES.iter().map(|text| [&[0], text.as_bytes()].concat()))
            .collect(),
        "filter" => (0..30u8)
            .map(|_| {
                let len = rng.below(60);
                [vec![1], rng.bytes(len)].concat()
            })
            .chain(FILTERS.iter().map(|text| [&[0], text.as_bytes()].concat()))
            .collect(),
        "paths" => {
            PATTERNS.iter().enumerate().map(|(k, text)| [&[k as u8 % 2], text.as_bytes()].concat()).collect()
        }
        // Options, a schema, and a few payloads.
        "parse" => {
            let mut seed = |k: u16, options: u8| {
                let options = rng.u64() as u8 & 0x3e | options;
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
            };
            let short = |seed: &Vec<u8>| seed.len() < 1500;
            let mut seeds: Vec<_> = (0..80).map(|k| seed(k, (k % 2) as u8)).filter(short).take(60).collect();
            seeds.extend((80..120).map(|k| seed(k, Input::ARRAYS)).filter(short).take(20));
            seeds
        }
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
        corpus::replay(name, &corpus::numbered(seeds(name)), target);
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
        targets::salvage(&bytes);
        targets::schema(&bytes);
        targets::filter(&[vec![1], rng.bytes(len)].concat());
        if seed % 8 == 0 {
            targets::predicted(&bytes);
            targets::state(&bytes);
            targets::compressed(&bytes);
            targets::checkpoints(&bytes);
            targets::steps(&bytes);
        }
        let dtype = tensors::dtype(bytes[0]);
        targets::tensor(&[vec![bytes[0] & 15], tensors::mutated(&mut rng, dtype)].concat());
        for sequence in [false, true] {
            roundtrip(&payloads::mutated(&mut rng, sequence));
        }
    }
}
