//! Records that are made when they are read, of records that are stored.

use crate::error::{At, ErrorKind, Result};
use crate::io::Traffic;
use crate::policy::Verify;
use crate::warning::Warning;
use std::fmt;

/// A sequence of records that are made when they are read. They have no file and no index.
///
/// A dataset of them has one shard. Loaders, mixes and readers treat it like one that is read with positional
/// reads.
pub trait DerivedRecords: fmt::Debug + Send + Sync {
    /// Returns what they are, in the plural, for errors.
    fn noun(&self) -> &'static str;

    /// Returns the number of records.
    fn count(&self) -> u64;

    /// Returns the estimated number of bytes of a record, for limits.
    fn mean_bytes(&self) -> u64;

    /// Returns the location of the record that record `i` is made of, for errors.
    fn location(&self, i: u64) -> At<'_>;

    /// Makes record `i` and appends its payload to `buf`.
    ///
    /// # Errors
    /// Errors of reading. `buf` may then have any bytes after those that it had.
    fn append(&self, i: u64, verify: Verify, buf: &mut Vec<u8>) -> Result<()>;

    /// Announces the bytes that these records are made of, or takes the announcement back.
    fn announce(&self, ids: &[u64], wanted: bool);

    /// Returns true if the bytes of an object of a store may have to be waited for.
    fn has_objects(&self) -> bool;

    /// Returns what the store of the objects has read so far.
    fn traffic(&self) -> Option<Traffic>;

    /// Returns the warning about an order of scattered records over them. `None` if it costs no more than
    /// others.
    fn scattered(&self) -> Option<Warning>;

    /// Returns the bytes whose digest is the fingerprint of the records.
    ///
    /// # Errors
    /// Errors of the fingerprint of a dataset.
    fn identity(&self) -> Result<Vec<u8>>;
}

/// Returns the error of derived records where files are needed.
#[cold]
pub(super) fn without_files<T>(records: Option<&dyn DerivedRecords>) -> Result<T> {
    let found = records.map_or("others", |records| records.noun());
    let reason = format!("expected records of files, found {found}, which have no index and no columns");
    Err(ErrorKind::Spec(reason.into()).into())
}
