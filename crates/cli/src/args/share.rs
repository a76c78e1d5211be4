//! Arguments that define an order, and the share of a rank.

use super::{ReadArgs, WhereArgs};
use clap::{Args, ValueEnum};
use std::num::NonZeroU64;
use std::path::PathBuf;
use tfseek_tools::sizes;

/// Order of an epoch, and the share of one rank.
#[derive(Clone, Debug, Args)]
pub(crate) struct ShareArgs {
    #[command(flatten)]
    pub(crate) read: ReadArgs,
    #[command(flatten)]
    pub(crate) batch: BatchSizeArgs,
    /// Order of the records; `global`: shuffled over the whole dataset, `block`: shuffled in blocks of
    /// neighbouring records, `none`: as in the files
    #[arg(long, value_name = "MODE", default_value = "global")]
    pub(crate) shuffle: ShuffleChoice,
    /// With --shuffle block: size of a block, for example 4MB, of compressed files decompressed; the same on
    /// all ranks [default: 1 MiB]
    #[arg(long, value_name = "SIZE", value_parser = sizes::parse)]
    pub(crate) block_bytes: Option<u64>,
    #[command(flatten)]
    pub(crate) select: WhereArgs,
    /// Draw the same number of samples for each value of this feature; the records of each value are shuffled
    /// separately
    #[arg(long, value_name = "FEATURE")]
    pub(crate) balance: Option<String>,
    /// Random seed; the same seed gives the same records in the same order
    #[arg(long, value_name = "S", default_value_t = 0, allow_negative_numbers = true, value_parser = super::seed)]
    pub(crate) seed: u64,
    /// Epoch number, from 0
    #[arg(long, value_name = "E", default_value_t = 0)]
    pub(crate) epoch: u64,
    /// Rank, from 0
    #[arg(long, value_name = "R", default_value_t = 0)]
    pub(crate) rank: u64,
    /// Number of ranks
    #[arg(long, value_name = "W", default_value = "1", value_parser = super::positive::<NonZeroU64>)]
    pub(crate) world_size: NonZeroU64,
    /// Treatment of an incomplete last batch [default: short on one rank, pad on several]
    #[arg(long, value_name = "MODE")]
    pub(crate) last_batch: Option<LastBatchChoice>,
    /// Resume from this saved state: its seed and epoch are used, and step 0 starts at its position
    #[arg(long, value_name = "FILE", conflicts_with_all = ["seed", "epoch"])]
    pub(crate) resume: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, Args)]
#[group(required = true, multiple = false)]
pub(crate) struct BatchSizeArgs {
    /// Number of samples per batch of one rank
    #[arg(short, long, value_name = "N", value_parser = super::positive::<NonZeroU64>)]
    pub(crate) batch_size: Option<NonZeroU64>,
    /// Number of samples per batch over all ranks; the batches stay the same when the number of ranks changes
    #[arg(long, value_name = "N", value_parser = super::positive::<NonZeroU64>)]
    pub(crate) global_batch_size: Option<NonZeroU64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ShuffleChoice {
    Global,
    Block,
    None,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum LastBatchChoice {
    Drop,
    Pad,
    Short,
    Continuous,
}
