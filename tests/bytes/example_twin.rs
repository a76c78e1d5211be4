//! The views agree with a naive decoder, value by value, on valid, odd and damaged payloads, and accept the
//! same payloads. `TFSEEK_CASES` sets the number of payloads; the default is 200,000.

use tfseek::{Example, Feature};
use tfseek_testkit::rng::Rng;
use tfseek_testkit::twin::Rules;
use tfseek_testkit::{agree, payloads, twin};

fn cases() -> u64 {
    std::env::var("TFSEEK_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(200_000)
}

/// Runs `check` and prints the payload if it panics.
fn named(seed: u64, payload: &[u8], check: fn(&[u8])) {
    let checked = std::panic::catch_unwind(|| check(payload));
    assert!(
        checked.is_ok(),
        "seed {seed}: {}",
        payload.iter().map(|b| format!("{b:02x}")).collect::<String>()
    );
}

/// Runs half of the cases. Each kind has its own test, so that the two halves run in parallel.
fn run(sequence: bool) {
    let check = if sequence { agree::sequence } else { agree::example };
    let (mut accepted, mut lenient) = (0, 0);
    let cases = cases() / 2;
    for seed in 0..cases {
        let payload = payloads::mutated(&mut Rng::new(seed << 1 | u64::from(sequence)), sequence);
        named(seed, &payload, check);
        let takes = |lenient| twin::sequence(&payload, Rules { lenient, only: None }).is_ok();
        accepted += u64::from(takes(false));
        lenient += u64::from(takes(true) && !takes(false));
    }
    // The test is meaningful only if both outcomes are common.
    assert!(accepted > cases / 5 && accepted < cases / 5 * 4, "{accepted} of {cases} accepted");
    assert!(lenient > cases / 1000, "{lenient} of {cases} depend on the rule for map entries");
}

#[test]
fn mutated_examples() {
    run(false);
}

#[test]
fn mutated_sequences() {
    run(true);
}

/// Payloads that the generator calls well-formed are accepted, except map entries with unknown fields.
#[test]
fn odd_payloads_are_well_formed() {
    for seed in 0..5_000 {
        let mut rng = Rng::new(seed);
        let lenient = Rules { lenient: true, only: None };
        for odd in [payloads::odd_example(&mut rng), payloads::odd_sequence(&mut rng)] {
            // An unknown group at the nesting limit may exceed it.
            if twin::sequence(&odd, lenient).is_err() {
                assert!(odd.iter().filter(|&&b| b & 7 == 3).count() > 90, "seed {seed}");
            }
        }
        for canonical in [payloads::canonical_example(&mut rng), payloads::canonical_sequence(&mut rng)] {
            twin::sequence(&canonical, Rules::default()).unwrap();
            agree::sequence(&canonical);
        }
    }
}

/// A float list of a canonical payload is always one chunk, and a slice if it is aligned and in the order of
/// bytes of this machine.
#[test]
fn canonical_float_lists_are_slices() {
    let (mut aligned, mut unaligned) = (0, 0);
    for seed in 0..2_000 {
        let payload = payloads::canonical_example(&mut Rng::new(seed));
        for (key, feature) in &Example::new(&payload).features().unwrap() {
            let Feature::Float(list) = feature else { continue };
            let bytes = list.as_unaligned().unwrap().as_flattened();
            let is_aligned = bytes.as_ptr().addr() % align_of::<f32>() == 0;
            let is_slice = bytes.is_empty() || is_aligned && cfg!(target_endian = "little");
            assert_eq!(list.as_slice().is_some(), is_slice, "seed {seed}, {key}");
            *if is_aligned { &mut aligned } else { &mut unaligned } += 1;
        }
    }
    assert!(aligned > 100 && unaligned > 100);
}

/// Rule W13. The memory is never touched, so this costs address space only, of which 32-bit systems have
/// less.
#[test]
#[cfg(target_pointer_width = "64")]
fn payloads_above_2_gib_are_refused_without_reading_them() {
    let payload = vec![0; 1 << 31];
    let example = Example::new(&payload);
    for result in [example.get("a").map(drop), example.validate(), example.features().map(drop)] {
        assert!(matches!(
            result.unwrap_err().kind(),
            tfseek::ErrorKind::TooLarge { len: 0x8000_0000, limit: 0x7fff_ffff }
        ));
    }
}
