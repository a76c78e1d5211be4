//! Short reads and writes, calls interrupted by signals, and a disk that is full after a number of bytes.

use crate::cases::*;
use crate::support::*;

fn all_cases() -> impl Iterator<Item = &'static Case> {
    WRITERS.iter().chain(READERS)
}

/// Runs a case with a variable of the library.
#[track_caller]
fn run(shim: &Shim, prepared: &Prepared<'_>, name: &str, value: usize) -> Seen {
    prepared.restore();
    let variables = [(name, value.to_string())];
    let ran = shim.run(&prepared.dir, &prepared.args(), &variables);
    prepared.check(&ran, &format!("{name} {value}"))
}

#[test]
fn short_and_interrupted_calls_have_no_effect() {
    let Some(shim) = Shim::new("transfers") else { return };
    let faults = [("SHORT", 1), ("SHORT", 7), ("SHORT", 4096), ("INTERRUPT", 1)];
    let mut runs = 0;
    for case in all_cases() {
        let prepared = case.prepare();
        for (fault, value) in faults {
            let seen = run(&shim, &prepared, &format!("TFSEEK_{fault}"), value);
            assert_eq!(seen, Seen::Success, "{} {fault} {value}", prepared.args().join(" "));
            runs += 1;
        }
    }
    println!("{runs} runs with short or interrupted calls");
}

/// Runs each verb with a disk that is full after 0, `step`, 2 `step`, .. bytes, until the disk is large
/// enough.
fn check_full_disks(name: &str, step: usize) {
    let Some(shim) = Shim::new(name) else { return };
    let mut seen = [0; 2];
    for case in all_cases() {
        let prepared = case.prepare();
        let mut bytes = 0;
        loop {
            let result = run(&shim, &prepared, "TFSEEK_DISK", bytes);
            seen[usize::from(result == Seen::Error)] += 1;
            if bytes > prepared.written() {
                assert_eq!(result, Seen::Success, "{} with {bytes} bytes", prepared.args().join(" "));
                break;
            }
            bytes += step;
        }
    }
    println!("full disks: {seen:?} succeeded and errors");
}

#[test]
fn a_full_disk_is_an_error_and_leaves_no_file() {
    check_full_disks("disk", 1500);
}

#[test]
#[ignore = "thousands of runs: `make test-slow`"]
fn full_disks_of_many_sizes() {
    check_full_disks("disks", 53);
}
