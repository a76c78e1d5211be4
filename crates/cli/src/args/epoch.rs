//! What can be said of an order, and of a loader that runs through it.

use super::{Access, Limit, Paths};
use clap::{Args, ValueEnum};
use std::num::NonZeroU64;
use std::path::PathBuf;
use tfseek::loader::{LoaderVerify, Shuffle};
use tfseek::order::LastBatch;
use tfseek::{Filter, Verify};

/// What the numbers mean.
pub(crate) const AFTER_EPOCH: &str = "\
A step lasts from asking for a batch to having looked at every value in it; a stall is a batch that was waited for longer than 1 ms. \
The first batch, before which nothing can be made ahead, is told apart from both. `sum` adds up all values as numbers of 64 bits: \
it does not depend on the order, and those of the ranks, or of the parts of an epoch, add up to that of the whole.";

/// Which order, and whose share of it.
#[derive(Clone, Debug, Args)]
pub(crate) struct Share {
    #[command(flatten)]
    pub(crate) limit: Limit,
    #[command(flatten)]
    pub(crate) batch: BatchSize,
    /// How records are shuffled
    #[arg(long, visible_alias = "order", value_name = "HOW", default_value = "global")]
    pub(crate) shuffle: ShuffleChoice,
    /// Only the records that meet a condition, such as `label in 3, 5..9 and present(name)`
    #[arg(long, value_name = "EXPR")]
    pub(crate) filter: Option<Filter>,
    /// As many samples of each value of this feature, each value's records shuffled by themselves
    #[arg(long, value_name = "FEATURE", conflicts_with = "shuffle")]
    pub(crate) balance: Option<String>,
    /// Seed of the order
    #[arg(long, value_name = "S", default_value_t = 0, allow_negative_numbers = true, value_parser = super::seed)]
    pub(crate) seed: u64,
    /// The epoch
    #[arg(long, value_name = "E", default_value_t = 0)]
    pub(crate) epoch: u64,
    /// The rank, from 0
    #[arg(long, value_name = "R", default_value_t = 0)]
    pub(crate) rank: u64,
    /// How many ranks there are
    #[arg(long, value_name = "W", default_value = "1")]
    pub(crate) world_size: NonZeroU64,
    /// What becomes of the last batch where it is not full: short on one rank, padded on several, unless told otherwise
    #[arg(long, value_name = "HOW")]
    pub(crate) last_batch: Option<LastBatchChoice>,
    /// Go on where this state was saved: with its seed and epoch, step 0 at its position
    #[arg(long, value_name = "FILE", conflicts_with_all = ["seed", "epoch"])]
    pub(crate) resume: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, Args)]
#[group(required = true, multiple = false)]
pub(crate) struct BatchSize {
    /// Samples of one rank's batch
    #[arg(short, long, value_name = "N")]
    pub(crate) batch_size: Option<NonZeroU64>,
    /// Samples of a batch over all ranks; batches stay the same when the number of ranks changes
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
    FirstEpoch,
}

#[derive(Debug, Args)]
pub(crate) struct Epoch {
    #[command(flatten)]
    pub(crate) paths: Paths,
    #[command(flatten)]
    pub(crate) share: Share,
    /// Parse records by this schema, as `tfseek schema --json` prints one; without it they stay as they are
    #[arg(short, long, value_name = "FILE")]
    pub(crate) schema: Option<PathBuf>,
    /// Threads that make batches, 0: the loop makes them itself; one for each processor, unless told otherwise
    #[arg(long, value_name = "N", value_parser = super::threads)]
    pub(crate) threads: Option<usize>,
    /// The checksums that are looked at; `first-epoch` is payloads in epoch 0, and headers in the others
    #[arg(long, value_name = "WHAT", default_value = "payload")]
    pub(crate) verify: VerifyChoice,
    /// Leave out records that are damaged or do not go with the schema, and list them
    #[arg(long)]
    pub(crate) skip_errors: bool,
    /// Stop after so many steps
    #[arg(long, value_name = "N")]
    pub(crate) steps: Option<NonZeroU64>,
    /// Save where the run stands at its end, for --resume
    #[arg(long, value_name = "FILE")]
    pub(crate) state_out: Option<PathBuf>,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) access: Access,
}

#[derive(Debug, Args)]
pub(crate) struct Order {
    #[command(flatten)]
    pub(crate) paths: Paths,
    #[command(flatten)]
    pub(crate) share: Share,
    #[command(flatten)]
    pub(crate) question: Question,
    /// With --step: so many steps from there on
    #[arg(long, value_name = "N", default_value = "1", conflicts_with_all = ["record", "describe"])]
    pub(crate) steps: NonZeroU64,
    /// With --step: the records' numbers and nothing else, as `tfseek get` takes them
    #[arg(long, conflicts_with_all = ["json", "record", "describe"])]
    pub(crate) ids: bool,
    /// One JSON object a line; `index` is the record's number over all files, `record` the one in its file
    #[arg(long, conflicts_with = "describe")]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) access: Access,
}

/// What is asked of an order.
#[derive(Clone, Copy, Debug, Args)]
#[group(required = true, multiple = false)]
pub(crate) struct Question {
    /// The samples of this step, from 0
    #[arg(long, value_name = "K")]
    pub(crate) step: Option<u64>,
    /// The steps and ranks that have this record, numbered over all files as `tfseek get` does; padding is not looked at
    #[arg(long, value_name = "I")]
    pub(crate) record: Option<u64>,
    /// What the order is, and what it costs
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
    /// As it is typed.
    pub(crate) fn name(self) -> &'static str {
        match self {
            VerifyChoice::Header => "header",
            VerifyChoice::Payload => "payload",
            VerifyChoice::FirstEpoch => "first-epoch",
        }
    }
}
