//! Batches: schemas, parsing, and their errors.

mod arrays;
mod batch_twin;
mod lowest_row;
mod optional;
mod parse_cases;
mod parse_errors;
mod predicted;
mod presence;
mod schema;
mod verified;
