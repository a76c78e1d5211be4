//! Compares the library with an implementation in another language.

use crate::mixture::{components, sample, sources};
use std::io::Write;
use std::process::{Command, Stdio};
use tfseek::order::*;
use tfseek_testkit::rng::Rng;

const FP: &str = "99aa06d3014798d86001c324468d497f";

/// Returns a mixture whose weights change at a position, and the numbers of samples before it.
fn changed(weights: &[u64], other: &[u64], seed: u64, from: u64) -> (Order, Vec<u64>) {
    let mut given = vec![0; weights.len()];
    let before = sources(weights, seed);
    (0..from).for_each(|t| given[sample(&before, t).0] += 1);
    let mix = |weights: &[u64]| Spec::Mix(MixSpec::new(components(weights)));
    let order = Order::new(&mix(weights), before.records(), seed, 0).unwrap();
    let state = State::new(&order, from, FP).unwrap();
    (state.resume(&mix(other), before.records(), FP).unwrap(), given)
}

/// The Python implementation follows docs/order.md and not the Rust code.
#[test]
fn the_python_twin_agrees() {
    let mut rng = Rng::new(77);
    let (mut commands, mut want) = (String::new(), Vec::new());
    let mut case = |command: String, numbers: Vec<u64>| {
        commands += &format!("{command}\n");
        want.push(numbers.iter().map(u64::to_string).collect::<Vec<_>>().join(" "));
    };
    for _ in 0..200 {
        let n = (rng.u64() >> rng.below(63)).max(4);
        let (seed, epoch) = (rng.u64() >> rng.below(64), rng.u64() >> rng.below(64));
        let start = rng.u64() % (n - 3);
        let (mut prp, mut blocks) = ([0; 3], [0; 3]);
        Order::new(&Spec::Global, n, seed, epoch).unwrap().fill(start, &mut prp).unwrap();
        case(format!("prp {n} {seed} {epoch} 0 {start}"), prp.to_vec());
        let (b, w) = (1 + n / (1 + rng.u64() % 5000), 1 + rng.u64() % 9);
        let spec = Spec::Block { block: b, window: w };
        Order::new(&spec, n, seed, epoch).unwrap().fill(start, &mut blocks).unwrap();
        case(format!("block {n} {b} {w} {seed} {epoch} {start}"), blocks.to_vec());
        case(format!("augment {seed} {epoch} {start}"), vec![augmentation_seed(seed, epoch, start)]);
        let weights: Vec<u64> = (0..1 + rng.below(9)).map(|_| rng.u64() % 20 + 1).collect();
        let list = weights.iter().map(u64::to_string).collect::<Vec<_>>().join(",");
        let (mixture, at) = (sources(&weights, seed), start % (1 << 40));
        let samples = (at..at + 3).map(|t| sample(&mixture, t)).flat_map(|(c, i)| [c as u64, i]).collect();
        case(format!("mixture {list} {seed} {at}"), samples);
        // Other weights from some position on.
        let (from, other) = (rng.u64() % 500, weights.iter().map(|w| w + 1).collect::<Vec<_>>());
        let (changed, given) = changed(&weights, &other, seed, from);
        let samples = (0..3).map(|k| sample(&changed, from + at % 500 + k)).flat_map(|(c, i)| [c as u64, i]);
        let words =
            |numbers: &[u64], by: &str| numbers.iter().map(u64::to_string).collect::<Vec<_>>().join(by);
        let (list, given) = (words(&other, ","), words(&given, " "));
        case(format!("changed {list} {seed} {from} {given} {}", from + at % 500), samples.collect());
        // An epoch of a weighted order has one draw per weight; the command draws three.
        let list: Vec<u32> = weights.iter().map(|w| *w as u32).chain([1, 1]).collect();
        let (n, weights) = (list.len() as u64, Weights::new(list.clone()).unwrap());
        let list = list.iter().map(u32::to_string).collect::<Vec<_>>().join(",");
        let (at, mut draws) = (start % (n - 2), [0; 3]);
        Order::new(&Spec::Weighted(weights), n, seed, epoch).unwrap().fill(at, &mut draws).unwrap();
        case(format!("draw {list} {seed} {epoch} {at}"), draws.to_vec());
    }
    let twin = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/order/twin.py");
    let python = Command::new("python3").arg(twin).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
    let Ok(mut python) = python else {
        tfseek_testkit::skipped("python3");
        return;
    };
    // Writes in a thread while the output is read, so that no pipe fills up and blocks both sides.
    let (mut stdin, input) = (python.stdin.take().unwrap(), commands.clone());
    let writer = std::thread::spawn(move || stdin.write_all(input.as_bytes()));
    let out = python.wait_with_output().unwrap();
    writer.join().unwrap().unwrap();
    assert!(out.status.success());
    let lines = String::from_utf8(out.stdout).unwrap();
    assert_eq!(lines.lines().count(), want.len());
    for ((got, want), command) in lines.lines().zip(&want).zip(commands.lines()) {
        assert_eq!(got, want, "{command}");
    }
}
