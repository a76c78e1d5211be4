//! Batches: schemas, parsing, and the errors of both.

mod batch_twin;
mod lowest_row;
mod parse_cases;
mod parse_errors;
mod schema;
