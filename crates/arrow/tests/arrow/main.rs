//! Record batches are equal to the bit to the arrays that TensorFlow, and a naive twin of the parser, have for the same records.

mod cells;
mod columns;
mod errors;
mod memory;
mod same_values;
mod saved_columns;
mod scan;
