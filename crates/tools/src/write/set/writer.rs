//! `SetWriter`: a file or a set of shards from records in order.

use super::shards::Shards;
use super::spool::Spool;
use crate::error::ToolsError;
use crate::write::reshard::names::OutPattern;
use crate::write::reshard::sets::{self, Folders};
use crate::write::reshard::{ReshardSet, ShardCount, writer_options};
use std::ops::ControlFlow;
use std::path::PathBuf;
use tfseek::Compression;
use tfseek::index::IndexOptions;
use tfseek::writer::WriterOptions;

/// Options of a [`SetWriter`].
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct SetOptions {
    /// Path of the output: a file (`small.tfrecord`), or a set of shards (`out/train@8.tfrecord`).
    pub out: PathBuf,
    /// Number or size of the shards, for a path without a number. Such a path is `train@*.tfrecord` or
    /// `train.tfrecord`.
    pub shards: Option<ShardCount>,
    /// Number of records, if it is known. A number of shards then needs no temporary file.
    pub records: Option<u64>,
    /// Compression of the files. Default: by the suffix of the path (`.gz`, `.zz` and others).
    pub compression: Option<Compression>,
    /// Size of the members of gzip files ([`WriterOptions::members`]). Default: one member.
    pub members: Option<u64>,
    /// Write an index of each file. Default: false.
    pub index: bool,
    /// Replace existing files. Default: false.
    pub force: bool,
}

impl SetOptions {
    /// Returns the default options for an output.
    pub fn new(out: impl Into<PathBuf>) -> SetOptions {
        SetOptions { out: out.into(), ..SetOptions::default() }
    }
}

/// A writer of a file or a set of shards, whose records keep their order. No file has its name before
/// [`close`](SetWriter::close).
///
/// ```
/// # let dir = tempfile::tempdir()?;
/// use tfseek_tools::reshard::ShardCount;
/// use tfseek_tools::set::{SetOptions, SetWriter};
/// let mut options = SetOptions::new(dir.path().join("train.tfrecord"));
/// options.shards = Some(ShardCount::Count(3));
/// let mut writer = SetWriter::new(&options)?;
/// for k in 0..10u8 {
///     writer.write(&[k])?;
/// }
/// let set = writer.close(&|_| std::ops::ControlFlow::Continue(()))?;
/// assert_eq!((set.records, set.path), (10, dir.path().join("train@3.tfrecord")));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct SetWriter {
    pattern: OutPattern,
    options: SetOptions,
    compression: Compression,
    writer: WriterOptions,
    folders: Folders,
    records: u64,
    state: WriterState,
}

enum WriterState {
    /// The shard of each record is known.
    Cut {
        shards: Box<Shards>,
        count: u64,
    },
    Spooled(Spool),
}

impl SetWriter {
    /// Creates a writer. Existing outputs are refused here.
    ///
    /// # Errors
    /// [`ToolsError`].
    pub fn new(options: &SetOptions) -> Result<SetWriter, ToolsError> {
        SetWriter::of_pattern(OutPattern::parse(&options.out, options.shards, false)?, options)
    }

    /// Creates a writer of files with other names than `out` and `shards` state.
    pub(super) fn of_pattern(pattern: OutPattern, options: &SetOptions) -> Result<SetWriter, ToolsError> {
        let compression = options.compression.unwrap_or_else(|| pattern.compression());
        let writer = writer_options(compression, options.members, options.index, options.force);
        let count = match pattern.shards {
            None => Some(None),
            Some(ShardCount::Count(count)) => Some(Some(count)),
            Some(ShardCount::Size(_)) => None,
        };
        if let Some(count) = count {
            sets::check(&[pattern.set(None, count)], &[], options.force)?;
        }
        let names = pattern.set(None, count.flatten());
        let mut folders = Folders::default();
        folders.create([&names])?;
        let state = match count {
            Some(count) if count.is_none_or(|count| count == 1) || options.records.is_some() => {
                WriterState::Cut {
                    shards: Box::new(Shards::new(names, writer.clone())),
                    count: count.unwrap_or(1),
                }
            }
            _ => WriterState::Spooled(Spool::new(names.folder())?),
        };
        let options = options.clone();
        Ok(SetWriter { pattern, options, compression, writer, folders, records: 0, state })
    }

    /// Writes a record.
    ///
    /// # Errors
    /// I/O errors, which end the set.
    pub fn write(&mut self, payload: &[u8]) -> tfseek::Result<()> {
        let record = self.records;
        self.records = record + 1;
        match &mut self.state {
            WriterState::Spooled(spool) => spool.write(payload),
            WriterState::Cut { shards, count } => {
                // A record beyond the stated number is an error at the end.
                let shard = shard_of(record, self.options.records.unwrap_or(0), *count);
                shards.write(shard, payload)
            }
        }
    }

    /// Completes the files and gives them their names. `advance` is called with numbers of bytes copied, and
    /// may end the work.
    ///
    /// # Errors
    /// [`ToolsError`]; no file has its name then, unless the error comes from a rename or an index.
    pub fn close(self, advance: &dyn Fn(u64) -> ControlFlow<()>) -> Result<ReshardSet, ToolsError> {
        let SetWriter { pattern, options, compression, writer, mut folders, records, state } = self;
        let shards = match state {
            WriterState::Cut { shards, .. } => {
                if let Some(expected) = options.records.filter(|&expected| expected != records) {
                    return Err(ToolsError::Records { expected, found: records });
                }
                shards
            }
            WriterState::Spooled(spool) => {
                let bytes = spool.bytes;
                let (by_size, count) = match pattern.shards {
                    Some(ShardCount::Size(size)) => {
                        (true, bytes.div_ceil(size.max(1)).clamp(1, records.max(1)))
                    }
                    Some(ShardCount::Count(count)) => (false, count),
                    None => (false, 1),
                };
                let names = pattern.set(None, Some(count));
                sets::check(std::slice::from_ref(&names), &[], options.force)?;
                let mut shards = Box::new(Shards::new(names, writer));
                spool.read(advance, |record, offset, payload| {
                    let shard = if by_size {
                        // A shard has the records that begin in its part of the bytes.
                        part_of(offset, bytes, count)
                    } else {
                        shard_of(record, records, count)
                    };
                    shards.write(shard, payload)
                })?;
                shards
            }
        };
        let set = shards.close()?;
        folders.keep();
        sets::index_compressed(&set.shards, compression, options.index.then(IndexOptions::new))?;
        Ok(set)
    }
}

/// Returns the one of `count` equal parts of `total` that contains a position.
fn part_of(position: u64, total: u64, count: u64) -> u64 {
    let part = u128::from(position) * u128::from(count) / u128::from(total.max(1));
    part.min((count - 1).into()) as u64
}

/// Returns the shard of a record: shard s has the records from s * n / N to (s + 1) * n / N, rounded down.
fn shard_of(record: u64, records: u64, count: u64) -> u64 {
    // The largest s with s * n / N <= record, rounded down, so s * n < (record + 1) * N.
    let end = (u128::from(record) + 1) * u128::from(count);
    let shard = (end - 1) / u128::from(records.max(1));
    shard.min((count - 1).into()) as u64
}
