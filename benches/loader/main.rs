//! The loader beside plain loops over the same order.
//!
//! Without more it times warm epochs. `TFSEEK_ROUNDS=15` runs the same ones in turn, so many times, and prints the best and the
//! median of each: for ratios, on a machine that has moods. `TFSEEK_COLD=DIR` times the first touch of files that it makes in
//! that folder (8 GiB, to be deleted by hand), as root on Linux: the page cache is dropped before each run.
#![allow(unsafe_code)]

mod cold;
mod turns;
mod warm;

use tfseek_testkit::bench;

fn main() {
    let rounds = std::env::var("TFSEEK_ROUNDS").ok().and_then(|rounds| rounds.parse().ok());
    match std::env::var_os("TFSEEK_COLD") {
        Some(dir) => cold::run(dir.as_ref(), rounds.unwrap_or(3)),
        None => match rounds {
            Some(rounds) => warm::in_turn(rounds),
            None => {
                let mut criterion = bench::short();
                warm::bench(&mut criterion);
                criterion.final_summary();
            }
        },
    }
}
