//! The fuzz targets. Each takes any bytes and panics if a property does not hold.
//!
//! `fuzz/` runs them under libFuzzer. `tests/bytes/fuzz_corpus.rs` runs them over their corpora on a stable
//! compiler.

mod compressed;
mod deflated;
mod filter;
mod filter_twin;
mod framing;
mod index_files;
mod paths;
mod predicted;
mod salvage;
mod schema;
mod script;
mod state;
mod steps;
mod tensor;

pub use compressed::{checkpoints, compressed};
pub use filter::filter;
pub use framing::frames;
pub use index_files::{column, index};
pub use paths::paths;
pub use predicted::predicted;
pub use salvage::salvage;
pub use schema::schema;
pub use state::state;
pub use steps::steps;
pub use tensor::tensor;

use crate::{agree, agree_parse, roundtrip};

pub type Target = fn(&[u8]);

/// The targets with their names, which are also the names of their corpora.
pub const TARGETS: &[(&str, Target)] = &[
    ("frames", frames),
    ("example", agree::example),
    ("sequence", agree::sequence),
    ("index", index),
    ("column", column),
    ("roundtrip", roundtrip::roundtrip),
    ("tensor", tensor),
    ("parse", agree_parse::parse),
    ("predicted", predicted),
    ("compressed", compressed),
    ("checkpoints", checkpoints),
    ("salvage", salvage),
    ("schema", schema),
    ("state", state),
    ("filter", filter),
    ("paths", paths),
    ("steps", steps),
];
