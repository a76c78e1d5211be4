//! Records that are made when they are read, as windows over the steps of episodes are.

use crate::error::{At, ErrorKind, Result};
use crate::io::Traffic;
use crate::policy::Verify;
use std::fmt;
use std::path::Path;

/// A sequence of records that are made when they are read. They have no file and no index.
///
/// A dataset of them has one shard. Loaders, mixes and readers treat it like one that is read with positional
/// reads.
pub(crate) trait DerivedRecords: fmt::Debug + Send + Sync {
    /// Returns the number of records.
    fn len(&self) -> u64;

    /// Returns the estimated number of bytes of a record, for limits.
    fn mean_bytes(&self) -> u64;

    /// Returns the location of the record that record `i` is made of, for errors.
    fn location(&self, i: u64) -> At<'_>;

    /// Makes record `i` and appends its payload to `buf`.
    ///
    /// # Errors
    /// Errors of reading. `buf` may then have any bytes after those that it had.
    fn append(&self, i: u64, verify: Verify, buf: &mut Vec<u8>) -> Result<()>;

    /// Announces the bytes that these records are made of.
    fn want(&self, ids: &[u64]);

    /// Takes the announcement back.
    fn forget(&self, ids: &[u64]);

    /// Returns true if the bytes of an object of a store may have to be waited for.
    fn has_objects(&self) -> bool;

    /// Returns what the store of the objects has read so far.
    fn traffic(&self) -> Option<Traffic>;

    /// Returns the path of an object whose records are read whole, because it has no table of their parts.
    /// `None` if there is no such object.
    fn without_tables(&self) -> Option<&Path>;

    /// Returns an identifier of the records, 32 hex digits.
    ///
    /// # Errors
    /// Errors of the fingerprint of a dataset.
    fn fingerprint(&self) -> Result<String>;
}

/// Returns the error of derived records where files are needed.
#[cold]
pub(super) fn without_files<T>() -> Result<T> {
    let reason = "expected records of files, found windows over steps, which have no index and no columns";
    Err(ErrorKind::Spec(reason.into()).into())
}
