//! Shared code of the tests, benches and fuzz targets of tfseek.
//!
//! It has seeded random numbers, generators of messages in unusual encodings, naive reference implementations
//! ("twins"), properties that compare views with twins, a counting allocator, and data for benches.

#![allow(missing_docs, reason = "not published; read with the tests that use it")]
#![allow(clippy::len_without_is_empty, reason = "no caller needs it")]

pub mod agree;
pub mod agree_parse;
pub mod alike;
pub mod alloc;
pub mod arrays;
pub mod bench;
pub mod bucket;
pub mod corpus;
pub mod episodes;
pub mod formats;
pub mod hex;
pub mod labelled;
pub mod mirror;
pub mod oracle;
pub mod order_twin;
pub mod payloads;
pub mod presence;
pub mod rng;
pub mod roundtrip;
pub mod run_order;
pub mod shaped;
pub mod shards;
pub mod shuffles;
pub mod spelled;
pub mod targets;
pub mod tensor_twin;
pub mod tensors;
pub mod twin;
pub mod twin_parse;
pub mod worlds;

use std::io::Write;

/// Says that a test, or a part of it, is skipped because it needs something. `make test` counts these lines,
/// from the file that `TFSEEK_SKIPPED` names. The harness does not capture what is written to the handle.
pub fn skipped(needs: &str) {
    let line = format!("skipped: needs {needs}\n");
    let _ = std::io::stderr().write_all(line.as_bytes());
    if let Some(path) = std::env::var_os("TFSEEK_SKIPPED") {
        let file = std::fs::File::options().create(true).append(true).open(path);
        file.and_then(|mut file| file.write_all(line.as_bytes())).expect("a file for the skipped tests");
    }
}

/// Returns the name of `test` in the module `module_path!()` for the test harness. A test uses it to run
/// itself in a new process.
pub fn test_name(module_path: &str, test: &str) -> String {
    match module_path.split_once("::") {
        Some((_, module)) => format!("{module}::{test}"),
        None => test.to_owned(),
    }
}
