//! Policies that options of several areas share: which index files are used, what is accepted and what is verified.

/// Which index files are read and written, and what may be scanned.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IndexMode {
    /// Search; extend or build what is missing, while that leaves at most
    /// [`auto_limit`](crate::index::IndexOptions::auto_limit) bytes to scan.
    #[default]
    Auto,
    /// Search; an index that is missing, stale or refused is an error. Nothing is scanned or written.
    Require,
    /// No index file is read or written; scan, without the limit.
    Memory,
    /// No index file is read; scan, without the limit; write as `Auto` does.
    Rebuild,
}

/// The meaning of bytes after the last whole record.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tail {
    /// An error: the file was cut, or is still being written.
    #[default]
    Strict,
    /// The end of the shard, as in TensorFlow; [`Index::torn_tail_bytes`](crate::index::Index::torn_tail_bytes) says how many.
    Tolerate,
}

/// Which checksums are verified on each access.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Verify {
    /// Header and payload, as TensorFlow does: about 10 ns for 90 bytes, 8 us for 100 KB.
    #[default]
    Payload,
    /// The 12-byte header only: an offset that is out of date is an error, never garbage.
    Header,
}
