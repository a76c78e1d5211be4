//! Arguments that define an order, and a loader over it.

use super::{AccessArgs, PathsArgs, ReadArgs};
use clap::{Args, ValueEnum};
use std::num::NonZeroU64;
use std::path::PathBuf;
use tfseek::loader::{LoaderVerify, Shuffle};
use tfseek::order::LastBatch;
use tfseek::{Filter, Verify};

/// Explanation of the numbers that `tfseek epoch` prints.
pub(crate) const AFTER_EPOCH: &str = "\
A step lasts from the request for a batch until every value in the batch has been read. A stall is a batch that the loop waited \
for longer than 1 ms. The first batch is reported separately and counts as neither, because no batch can be prepared before it. \
`sum` is the sum of all values as 64-bit numbers. It does not depend on the order: the sums of the ranks, or of the parts of an \
epoch, add up to the sum of the epoch.";

/// Order of an epoch, and the share of one rank.
#[derive(Clone, Debug, Args)]
pub(crate) struct ShareArgs {
    #[command(flatten)]
    pub(crate) read: ReadArgs,
    #[command(flatten)]
    pub(crate) batch: BatchSizeArgs,
    /// Order of the records; `global`: shuffled over the whole dataset, `block`: shuffled in blocks of neighbouring records,
    /// `none`: as in the files
    #[arg(long, visible_alias = "order", value_name = "MODE", default_value = "global")]
    pub(crate) shuffle: ShuffleChoice,
    /// Only records that meet this condition, for example 'label in 3, 5..9 and present(name)'
    #[arg(long, value_name = "EXPR", value_parser = super::filter)]
    pub(crate) filter: Option<Filter>,
    /// Draw the same number of samples for each value of this feature; the records of each value are shuffled separately
    #[arg(long, value_name = "FEATURE", conflicts_with = "shuffle")]
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
    #[arg(long, value_name = "W", default_value = "1")]
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
    #[arg(short, long, value_name = "N")]
    pub(crate) batch_size: Option<NonZeroU64>,
    /// Number of samples per batch over all ranks; the batches stay the same when the number of ranks changes
    #[arg(long, value_name = "N")]
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

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum VerifyChoice {
    Header,
    Payload,
    #[value(alias = "first_epoch")]
    FirstEpoch,
}

#[derive(Debug, Args)]
pub(crate) struct EpochArgs {
    #[command(flatten)]
    pub(crate) paths: PathsArgs,
    #[command(flatten)]
    pub(crate) share: ShareArgs,
    /// Schema file, as `tfseek schema --json` prints it; without one the records are not parsed
    #[arg(short, long, value_name = "FILE")]
    pub(crate) schema: Option<PathBuf>,
    /// Number of threads that prepare batches; 0: the loop prepares them itself [default: one per processor]
    #[arg(long, value_name = "N", value_parser = super::threads)]
    pub(crate) threads: Option<usize>,
    /// Checksums to verify; `first-epoch`: payloads in epoch 0, headers in later epochs
    #[arg(long, value_name = "MODE", default_value = "payload")]
    pub(crate) verify: VerifyChoice,
    /// Number of steps to run [default: all steps of the epoch]
    #[arg(long, value_name = "N")]
    pub(crate) steps: Option<NonZeroU64>,
    /// Save the state at the end of the run to this file, for --resume
    #[arg(long, value_name = "FILE")]
    pub(crate) state_out: Option<PathBuf>,
    /// Also print the design effect of the order: how much less a batch says about the data than records drawn at random
    #[arg(long)]
    pub(crate) describe: bool,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) access: AccessArgs,
}

#[derive(Debug, Args)]
pub(crate) struct OrderArgs {
    #[command(flatten)]
    pub(crate) paths: PathsArgs,
    #[command(flatten)]
    pub(crate) share: ShareArgs,
    #[command(flatten)]
    pub(crate) query: QueryArgs,
    /// With --step: number of steps to print
    #[arg(long, value_name = "N", default_value = "1", conflicts_with_all = ["record", "describe"])]
    pub(crate) steps: NonZeroU64,
    /// With --step: print only the record numbers, as `tfseek get` takes them
    #[arg(long, conflicts_with_all = ["json", "record", "describe"])]
    pub(crate) ids: bool,
    /// Print one JSON object per line; `index` is the record's number over all files, `record` its number in the file
    #[arg(long, conflicts_with = "describe")]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) access: AccessArgs,
}

/// Query to an order.
#[derive(Clone, Copy, Debug, Args)]
#[group(required = true, multiple = false)]
pub(crate) struct QueryArgs {
    /// Print the samples of this step, from 0
    #[arg(long, value_name = "K")]
    pub(crate) step: Option<u64>,
    /// Print the steps and ranks that contain this record, numbered over all files as for `tfseek get`; padding is ignored
    #[arg(long, value_name = "I")]
    pub(crate) record: Option<u64>,
    /// Describe the order and its cost
    #[arg(long)]
    pub(crate) describe: bool,
}

impl From<ShuffleChoice> for Shuffle {
    fn from(choice: ShuffleChoice) -> Shuffle {
        match choice {
            ShuffleChoice::Global => Shuffle::Global,
            ShuffleChoice::Block => Shuffle::Block,
            ShuffleChoice::None => Shuffle::None,
        }
    }
}

impl From<LastBatchChoice> for LastBatch {
    fn from(choice: LastBatchChoice) -> LastBatch {
        match choice {
            LastBatchChoice::Drop => LastBatch::Drop,
            LastBatchChoice::Pad => LastBatch::Pad,
            LastBatchChoice::Short => LastBatch::Short,
            LastBatchChoice::Continuous => LastBatch::Continuous,
        }
    }
}

impl From<VerifyChoice> for LoaderVerify {
    fn from(choice: VerifyChoice) -> LoaderVerify {
        match choice {
            VerifyChoice::Header => LoaderVerify::Always(Verify::Header),
            VerifyChoice::Payload => LoaderVerify::Always(Verify::Payload),
            VerifyChoice::FirstEpoch => LoaderVerify::FirstEpoch,
        }
    }
}

impl VerifyChoice {
    /// Returns the name on the command line.
    pub(crate) fn name(self) -> &'static str {
        match self {
            VerifyChoice::Header => "header",
            VerifyChoice::Payload => "payload",
            VerifyChoice::FirstEpoch => "first-epoch",
        }
    }
}
