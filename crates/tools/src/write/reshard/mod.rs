//! Datasets written again: in other shards, shuffled, sorted, divided into splits, or with fewer features.
//!
//! [`reshard`] copies records as they are; both checksums of each are verified. The result depends on the
//! records and the options, not on the number of threads or the memory.
//!
//! **Order.** Records keep their order, or are in the global order of epoch 0 of a seed
//! ([`Order`](tfseek::Order)), or are sorted by a feature. Each split has the order of a dataset of its
//! records alone. Shard s of N has the positions from s * n / N to (s + 1) * n / N, rounded down.
//!
//! **Memory.** Records that keep their order are copied in one pass. Records in another order are gathered by
//! number if their bytes fit into 60 % of the memory. Otherwise they are copied to at most 512 temporary
//! files by position, and each of these is ordered in memory.
//!
//! **Files.** All files of all sets are complete before the first gets its name. A run that is killed while
//! they get their names leaves sets with missing shards, which [`paths::resolve`](tfseek::paths::resolve)
//! refuses, and complete ones. Finished files in a hidden folder would need no descriptors, but an interrupt
//! would leave gigabytes there. So all files stay open, and the process raises its limit.
//!
//! **Prepared data sets.** A copy of a data set of TensorFlow Datasets ([`prepared`](prepared())) is one,
//! too. Its folder gets its name when all its files are complete.

mod buckets;
mod gather;
pub(crate) mod limits;
mod members;
pub(crate) mod names;
pub(crate) mod new_folder;
mod options;
mod plan;
mod prepared;
#[cfg(test)]
mod prepared_tests;
mod rewrite;
pub(crate) mod sets;
mod split_order;
mod splits;
#[cfg(test)]
mod tests;

use crate::error::{OptionsReason, ToolsError};
use crate::write::WriteProgress;
pub use limits::memory_limit;
pub use options::{
    OrderOptions, ReshardOptions, ReshardReport, ReshardSet, ReshardWay, ShardCount, SplitOptions,
};
pub use prepared::prepared;

use crate::write::unpack::is_compressed;
use gather::Gather;
use members::Members;
use plan::Plan;
use rewrite::Rewrite;
use splits::Splitter;
use std::path::PathBuf;
use tfseek::example::{KindGuess, MessageKind};
use tfseek::index::IndexOptions;
use tfseek::io::Existing;
use tfseek::writer::WriterOptions;
use tfseek::{Compression, Dataset, Result, ShardedWriter, Writer};

/// Writes the records of a dataset again.
///
/// ```
/// # let dir = tempfile::tempdir()?;
/// # let path = dir.path().join("data.tfrecord");
/// # let mut writer = tfseek::Writer::create(&path)?;
/// # for i in 0..10 { writer.write(&tfseek::ExampleBuilder::new().int64("label", [i]).encode()?)?; }
/// # writer.close()?;
/// # let ds = tfseek::DatasetOptions::new().index(tfseek::IndexMode::Memory).open(&path)?;
/// use tfseek_tools::WriteProgress;
/// use tfseek_tools::reshard::{OrderOptions, ReshardOptions, reshard};
/// let mut options = ReshardOptions::new(dir.path().join("shuffled@4.tfrecord"));
/// options.order = OrderOptions::Shuffled;
/// let report = reshard(&ds, &options, &WriteProgress::default())?;
/// assert_eq!((report.sets[0].records, report.sets[0].shards.len()), (10, 4));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// [`ToolsError`].
pub fn reshard(
    ds: &Dataset,
    options: &ReshardOptions,
    progress: &WriteProgress,
) -> Result<ReshardReport, ToolsError> {
    let threads = tfseek::threads(options.threads)?;
    let mut plan = Plan::new(options)?;
    let inputs: Vec<PathBuf> = ds.shards().map(|shard| shard.path.to_path_buf()).collect();
    let kind = kind_of(ds, options)?;
    let rewrite = Rewrite::new(&options.keep, &options.drop, kind)?;
    let splitter =
        options.split.as_ref().map(|split| Splitter::new(split, options.seed, kind)).transpose()?;
    let compression = plan.compression(options);
    if options.members.is_some() && compression != Compression::Gzip {
        return Err(ToolsError::Options(OptionsReason::Members(compression)));
    }
    let writer = writer_options(compression, options.members, options.index, options.force);
    plan.check_outputs(&inputs, options.force)?;
    let total = total_bytes(ds)?;
    let memory = options.memory.unwrap_or_else(limits::memory_limit);
    let way = way(options, &inputs, fits(total, memory));
    let sized = rewrite.as_ref().filter(|_| plan.was_sized());
    let scans = splitter.is_some() || sized.is_some();
    let passes = 1 + u64::from(scans) + u64::from(way != ReshardWay::Direct);
    (progress.expect)(total.saturating_mul(passes));
    let ends = plan.prepared().map(|copy| copy.ends(ds)).transpose()?;
    let scanned = splits::scan(ds, options.records.as_ref(), splitter.as_ref(), sized, threads, progress)?;
    let members = match ends {
        Some(ends) => Members::ranges(options.records.as_ref(), ends),
        None => Members::new(options.records.as_ref(), scanned.splits),
    };
    let sequences =
        split_order::split_orders(ds, &options.order, options.seed, &members, plan.splits(), progress)?;
    plan.cut(ds, sequences, &scanned.lens, way)?;
    if plan.was_sized() {
        plan.check_outputs(&inputs, options.force)?;
    }
    let whole = options.records.is_none();
    let known = (whole && rewrite.is_none() && compression == Compression::None).then_some(total);
    let mut folders = sets::Folders::default();
    let names = plan.sets.iter().map(|set| &set.names);
    match plan.prepared() {
        Some(copy) => copy.create_folders(names)?,
        None => folders.create(names)?,
    }
    let temporary = (whole && way == ReshardWay::Files).then(|| buckets::size(total, ds.len(), memory));
    plan.check_space(known, temporary)?;
    let gather = Gather { ds, plan: &plan, rewrite: rewrite.as_ref(), writer: &writer, progress };
    let writers = match way {
        ReshardWay::Direct => gather.direct(threads)?,
        ReshardWay::Memory => buckets::write(&gather, &members, total, None)?,
        ReshardWay::Files => buckets::write(&gather, &members, total, Some(memory))?,
    };
    if let Some(rewrite) = rewrite.as_ref().filter(|_| plan.records() > 0) {
        rewrite.check_patterns()?;
    }
    let sets = publish(&plan, writers, folders, compression, options)?;
    Ok(ReshardReport { sets, left_out: ds.len() - plan.records(), way })
}

/// Returns the number of bytes of the records with their framing.
fn total_bytes(ds: &Dataset) -> Result<u64> {
    if let Some(bytes) = ds.known_bytes() {
        return Ok(bytes);
    }
    let mut shards = 0..ds.shards().count();
    shards.try_fold(0u64, |sum, s| Ok(sum.saturating_add(ds.index(s)?.stream_end())))
}

/// Returns how records are copied, which fit into the memory or not.
fn way(options: &ReshardOptions, inputs: &[PathBuf], fits: bool) -> ReshardWay {
    match options.order {
        OrderOptions::Stored => ReshardWay::Direct,
        _ if !fits => ReshardWay::Files,
        // A record of a compressed file takes the inflation of half a MiB before it.
        _ if inputs.iter().any(|path| is_compressed(path)) => ReshardWay::Memory,
        _ => ReshardWay::Direct,
    }
}

/// Gives the files their names, and builds the indexes of compressed ones.
fn publish(
    plan: &Plan<'_>,
    writers: Vec<Writer>,
    mut folders: sets::Folders,
    compression: Compression,
    options: &ReshardOptions,
) -> Result<Vec<ReshardSet>, ToolsError> {
    // The files are looked at by their names while the locks live.
    let _locks = ShardedWriter::new(writers).close()?;
    folders.keep();
    let mut sets = plan.report()?;
    if let Some(copy) = plan.prepared() {
        copy.publish(&mut sets)?;
    }
    let shards: Vec<PathBuf> = sets.iter().flat_map(|set| set.shards.clone()).collect();
    let index = options.index.then(|| IndexOptions::new().threads(options.threads));
    sets::index_compressed(&shards, compression, index)?;
    Ok(sets)
}

/// Returns true if this number of bytes fits into 60 % of the memory. Larger files should be read without
/// maps, whose pages count as memory of the process.
pub fn fits(bytes: u64, memory: u64) -> bool {
    bytes <= memory / 5 * 3
}

/// Returns the options of an output file, without an index if it is compressed: that has checkpoints, which a
/// writer does not know.
pub(super) fn writer_options(
    compression: Compression,
    members: Option<u64>,
    index: bool,
    force: bool,
) -> WriterOptions {
    let index = (index && compression == Compression::None).then(IndexOptions::new);
    let existing = Existing::replace_if(force);
    WriterOptions { compression, members, existing, index, ..WriterOptions::default() }
}

/// Returns the kind of the records, which is guessed from the first ones if it matters and is not given.
fn kind_of(ds: &Dataset, options: &ReshardOptions) -> Result<MessageKind> {
    if let Some(kind) = options.kind {
        return Ok(kind);
    }
    if options.keep.is_empty() && options.drop.is_empty() && options.split.is_none() {
        return Ok(MessageKind::Other);
    }
    let mut guess = KindGuess::default();
    let mut buf = Vec::new();
    for i in 0..ds.len() {
        guess.add(ds.read(i, &mut buf)?.payload());
        if guess.is_complete() {
            break;
        }
    }
    Ok(guess.kind())
}
