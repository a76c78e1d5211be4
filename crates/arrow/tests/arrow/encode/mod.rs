//! Record batches as records.

mod arrays;
mod errors;
mod inverse;
mod twin;
