//! The loader compared with plain loops over the same order, and arrays in byte strings compared with float
//! lists.
//!
//! By default, it times warm epochs. `TFSEEK_ROUNDS=15` runs all ways in turn for 15 rounds and prints the
//! best and the median time of each: for ratios, if timings vary between runs. `TFSEEK_COLD=DIR` times the
//! first access to files that it creates in this folder (8 GiB, to be deleted by hand). It requires root on
//! Linux, because the page cache is dropped before each run.
#![allow(unsafe_code)]

mod arrays;
mod cold;
mod turns;
mod warm;

use tfseek_testkit::bench;

fn main() {
    let rounds = std::env::var("TFSEEK_ROUNDS").ok().and_then(|rounds| rounds.parse().ok());
    match std::env::var_os("TFSEEK_COLD") {
        Some(dir) => cold::run(dir.as_ref(), rounds.unwrap_or(3)),
        None => match rounds {
            Some(rounds) => {
                warm::in_turn(rounds);
                arrays::in_turn(rounds);
            }
            None => {
                let mut criterion = bench::short();
                warm::bench(&mut criterion);
                arrays::bench(&mut criterion);
                criterion.final_summary();
            }
        },
    }
}
