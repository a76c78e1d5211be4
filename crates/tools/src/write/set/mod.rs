//! Sets of shards made of records that arrive one after the other, from any source.
//!
//! A [`SetWriter`] writes one file or a set. With a number of shards, the records keep their order: shard s
//! of N has the records from s * n / N to (s + 1) * n / N. If their number n is not known in advance, or
//! shards have a size, the records are first copied to a temporary file without a name in the folder of the
//! set. Its checksums are verified when the shards are cut.
//!
//! A reader of a table expects its order. Rotation would need no temporary file, and mix the rows.
//!
//! A [`DataSetWriter`] writes a data set of TensorFlow Datasets: a set for each split, in a folder with its
//! description.
//!
//! Several processes write a set with a [`TaskWriter`] for each task. [`commit`] makes one set of the files
//! of all tasks, and removes the files of attempts that do not count; [`abort`] removes all.

mod data_set;
#[cfg(test)]
mod data_set_tests;
mod shards;
mod spool;
mod tasks;
#[cfg(test)]
mod tests;
mod writer;

pub use data_set::DataSetWriter;
pub use tasks::{TaskAttempt, TaskFile, TaskOptions, TaskWriter, abort, check_job, commit};
pub use writer::{SetOptions, SetWriter};
