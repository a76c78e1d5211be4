//! Policies that are options in several modules: use of index files, torn tails, damage, verification of
//! checksums.

/// The use of index files: which are read and written, and which shards may be scanned.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IndexMode {
    /// Use existing index files. Extend or build missing ones, if that scans at most
    /// [`auto_limit`](crate::index::IndexOptions::auto_limit) bytes.
    #[default]
    Auto,
    /// Use existing index files. A missing, stale or refused index is an error. Nothing is scanned or
    /// written.
    Require,
    /// Scan all shards, without a limit. No index file is read or written.
    Memory,
    /// Scan all shards, without a limit, and write index files as `Auto` does. No index file is read.
    Rebuild,
}

/// The treatment of bytes after the last complete record of a shard (a torn tail).
///
/// The tail of a compressed shard is also torn if the trailer of its last member or stream is cut or missing,
/// or if other bytes follow. Deflate data that are cut or corrupt, and wrong checksums, are errors in any
/// case. A trailer has no records, but inside deflate data the number of missing ones is unknown.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Tail {
    /// They are an error: the file was truncated, or is still being written.
    #[default]
    Strict,
    /// They are left out, as in TensorFlow, with the warning [`Warning::TornTail`](crate::Warning::TornTail).
    Tolerate,
}

/// The treatment of damaged records when a shard is indexed.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Damage {
    /// The first damaged record is an error, and the shard cannot be opened.
    #[default]
    Raise,
    /// Damaged records are left out, with a warning per shard. All payloads are verified when a shard is
    /// indexed. A torn tail is damage, so it is left out as with [`Tail::Tolerate`]. A shard without any
    /// sound record stays an error. Columns and selections leave out records that do not decode
    /// ([`Warning::PayloadsSkipped`](crate::Warning::PayloadsSkipped)).
    Skip,
}

/// The checksums that are verified on each access.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Verify {
    /// Header and payload, as in TensorFlow. Takes about 10 ns for 90 bytes and 8 us for 100 KB.
    #[default]
    Payload,
    /// Only the 12-byte header. A stale offset is then an error and never returns wrong bytes.
    Header,
    /// Nothing, for the files of writers that compute checksums wrongly: the lengths in the headers alone
    /// lead from record to record.
    ///
    /// Damage is not noticed, unless lengths do not end with the file, so [`Damage::Skip`] is refused.
    /// Indexes are kept in memory: each open scans the shards, no index file is read, and none is written
    /// that a reader could take for a verified one. [`IndexMode::Require`] and [`IndexMode::Rebuild`] are
    /// refused.
    None,
}
