//! `TableFormat`: how a table is made of a record, and read from a file.

use crate::error::Result;
use crate::io::Region;
use crate::warning::Warning;
use std::fmt;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

/// A format of tables of records, with the words of its messages.
pub trait TableFormat: Clone + fmt::Debug + Send + Sync {
    /// The table of a record, whose bytes are stored.
    type Table: AsRef<[u8]>;

    /// The reasons why a file is not used: it is invalid, its tables belong to other records or have other
    /// keys, or the shard has changed since they were built.
    const REFUSALS: [&'static str; 3];

    /// Returns the bytes that tell what tables have. A file with other ones is not used.
    fn keys(&self) -> Vec<u8>;

    /// Makes the table of a payload.
    ///
    /// # Errors
    /// Errors of a payload that has no table.
    fn make(&self, payload: &[u8]) -> Result<Self::Table>;

    /// Reads a stored table of a payload with this number of bytes. `None` if it is invalid.
    fn read(&self, table: Region, payload_len: u64) -> Option<Self::Table>;

    /// Returns the number that a table has, for example of the items in its record.
    fn number(table: &Self::Table) -> u32;

    /// Returns the number of a record without its table, from parts of its payload. `None` if only the table
    /// tells. `read` copies bytes of the payload from an offset on, and returns their number.
    ///
    /// # Errors
    /// Errors of `read`.
    fn number_of(
        &self,
        payload_len: u64,
        read: impl FnMut(u64, &mut [u8]) -> Result<usize>,
    ) -> Result<Option<u32>>;

    /// Returns the warning that files are not built, because that scans this number of bytes.
    fn not_built(shard: &Path, bytes: u64) -> Warning;

    /// Returns the warning about a compressed shard, which has no file of tables.
    fn compressed(shard: &Path) -> Warning;
}

/// Options of [`RecordTables::open`](super::RecordTables::open).
#[derive(Clone, Default)]
pub struct TableOptions {
    /// Makes tables in memory only, at the first access to a record, and reads and writes no file. Default:
    /// false. Opening then reads the heads of all records.
    pub memory: bool,
    /// Builds all files of tables again. Default: false.
    pub rebuild: bool,
    /// Writes the files to `.tfseek/` next to the shards, or to the folder for index files if one is
    /// configured. Default: false. The scan then has no limit, and a file that cannot be written is an error,
    /// as the command `tfseek index` has it.
    pub beside: bool,
    /// With `beside`: also writes the files of objects to `.tfseek/` beside them, for all readers. By default
    /// the files of objects are written to the user's cache. Default: false.
    pub beside_objects: bool,
    /// A progress callback in place of [`DatasetOptions::progress`](crate::DatasetOptions::progress), with
    /// its rules.
    pub progress: Option<Arc<dyn Fn(u64) -> ControlFlow<()> + Send + Sync>>,
}

impl fmt::Debug for TableOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let TableOptions { memory, rebuild, beside, beside_objects, progress: _ } = self;
        let mut s = f.debug_struct("TableOptions");
        s.field("memory", memory).field("rebuild", rebuild).field("beside", beside);
        s.field("beside_objects", beside_objects).finish_non_exhaustive()
    }
}
