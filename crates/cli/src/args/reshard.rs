//! Arguments of `tfseek reshard`.

use super::{AccessArgs, PathsArgs, PayloadArgs};
use clap::{ArgGroup, Args};
use std::path::PathBuf;
use tfseek::Filter;
use tfseek_tools::sizes;

/// Explanation of the outputs of `tfseek reshard`.
pub(crate) const AFTER_RESHARD: &str = "\
SET is a file (small.tfrecord), a number of shards (out/train@128.tfrecord), or `@*` with --shard-size. The suffixes .gz and .zz (also .zlib) \
compress. Records keep their order, spread evenly over the shards, unless --shuffle or --sort-by is given. All files get their names when all \
are complete.";

#[derive(Debug, Args)]
#[command(group = ArgGroup::new("random").args(["shuffle", "split"]).multiple(true))]
pub(crate) struct ReshardArgs {
    #[command(flatten)]
    pub(crate) paths: PathsArgs,
    /// Output: a file, or a set of shards such as 'out/train@128.tfrecord'; `{split}` is the name of a part
    #[arg(short, long, value_name = "SET")]
    pub(crate) out: PathBuf,
    /// Only records that meet this condition, for example 'label in 3, 5..9 and present(name)'
    #[arg(long = "where", value_name = "EXPR")]
    pub(crate) condition: Option<Filter>,
    /// Size of a shard before compression, for example 200MB, instead of a number of shards
    #[arg(long, value_name = "SIZE", value_parser = sizes::parse)]
    pub(crate) shard_size: Option<u64>,
    /// Shuffle the records over the whole dataset: the global order of epoch 0
    #[arg(long, conflicts_with = "sort_by")]
    pub(crate) shuffle: bool,
    /// Random seed of --shuffle and --split
    #[arg(long, value_name = "S", requires = "random", default_value_t = 0, allow_negative_numbers = true, value_parser = super::seed)]
    pub(crate) seed: u64,
    /// Sort the records by this feature, which has at most one value per record; records without a value come last
    #[arg(long, value_name = "FEATURE")]
    pub(crate) sort_by: Option<String>,
    /// With --sort-by: descending
    #[arg(long, requires = "sort_by")]
    pub(crate) reverse: bool,
    /// Split the records into parts by a hash: `train=0.9,val=0.1`
    #[arg(long, value_name = "PARTS", value_delimiter = ',', value_parser = part)]
    pub(crate) split: Vec<(String, f64)>,
    /// With --split: records with equal values of this feature are in one part [default: the whole payload is hashed]
    #[arg(long, value_name = "FEATURE", requires = "split")]
    pub(crate) by: Option<String>,
    /// With --by: the part of the records without a value [default: such a record is an error]
    #[arg(long, value_name = "PART", requires = "by")]
    pub(crate) missing: Option<String>,
    /// Keep only the features of these names: `label,image/*` (`*` and `?` are wildcards; repeatable)
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(crate) keep: Vec<String>,
    /// Drop the features of these names
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(crate) drop: Vec<String>,
    /// Write gzip files in members of this size before compression, which can be decompressed separately
    #[arg(long, value_name = "SIZE", value_parser = sizes::parse)]
    pub(crate) members: Option<u64>,
    /// Also write an index of each shard, to `.tfseek/` next to it
    #[arg(long)]
    pub(crate) index: bool,
    /// Memory, for example 4GB; records in another order that take more than 60 % of it are copied twice [default: the limit of the
    /// system or of the control group]
    #[arg(long, value_name = "SIZE", value_parser = sizes::parse)]
    pub(crate) memory: Option<u64>,
    /// Replace existing files
    #[arg(long)]
    pub(crate) force: bool,
    /// Print the report as one JSON object
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) payload: PayloadArgs,
    #[command(flatten)]
    pub(crate) access: AccessArgs,
}

/// Parses a part of a split.
fn part(text: &str) -> Result<(String, f64), String> {
    let expected = || format!("expected NAME=FRACTION, for example train=0.9, found {text}");
    let (name, fraction) = text.split_once('=').ok_or_else(expected)?;
    Ok((name.to_owned(), fraction.parse().map_err(|_| expected())?))
}
