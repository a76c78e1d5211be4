//! Batches: schemas, parsing, and their errors.

mod batch_twin;
mod lowest_row;
mod optional;
mod parse_cases;
mod parse_errors;
mod predicted;
mod presence;
mod schema;
mod verified;
