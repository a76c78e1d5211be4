//! `tfseek reshard`: writes a dataset again, in other shards or another order.

use crate::args::{self, AccessArgs, IoMode, PathsArgs, PayloadArgs};
use crate::console::Console;
use crate::damage::SkippedErrors;
use crate::exit::{DATA, Failure, IO, Outcome};
use crate::split::SplitPath;
use crate::text::count;
use crate::{dataset, outputs, progress, records, store};
use clap::{ArgGroup, Args};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tfseek::Filter;
use tfseek_tools::reshard::{
    self, OrderOptions, ReshardOptions, ReshardReport, ReshardSet, ShardCount, SplitOptions,
};
use tfseek_tools::{OutputConflict, ToolsError, sizes};

/// Explanation of the outputs of `tfseek reshard`.
pub(crate) const AFTER_RESHARD: &str = "\
SET is a file (small.tfrecord), a number of shards (out/train@128.tfrecord), or `@*` with --shard-size. The suffixes .gz and .zz (also .zlib) \
compress. Records keep their order, spread evenly over the shards, unless --shuffle or --sort-by is given. All files get their names when all \
are complete. Of the folder of a data set of TensorFlow Datasets, a new folder (new/mnist/3.0.1, or new/mnist/3.0.1@8 with 8 shards of each split) becomes one, too.";

#[derive(Debug, Args)]
#[command(group = ArgGroup::new("random").args(["shuffle", "split"]).multiple(true))]
pub(crate) struct ReshardArgs {
    #[command(flatten)]
    pub(crate) paths: PathsArgs,
    /// Output: a file, or a set of shards such as 'out/train@128.tfrecord'; `{split}` is the name of a split
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
    #[arg(long, value_name = "S", requires = "random", default_value_t = 0, allow_negative_numbers = true, value_parser = args::seed)]
    pub(crate) seed: u64,
    /// Sort the records by this feature, which has at most one value per record; records without a value come
    /// last
    #[arg(long, value_name = "FEATURE")]
    pub(crate) sort_by: Option<String>,
    /// With --sort-by: descending
    #[arg(long, requires = "sort_by")]
    pub(crate) reverse: bool,
    /// Divide the records into splits by a hash: `train=0.9,val=0.1`
    #[arg(long, value_name = "SPLITS", value_delimiter = ',', value_parser = split)]
    pub(crate) split: Vec<(String, f64)>,
    /// With --split: records with equal values of this feature are in one split
    /// [default: the whole payload is hashed]
    #[arg(long, value_name = "FEATURE", requires = "split")]
    pub(crate) split_by: Option<String>,
    /// With --split-by: the split of the records without a value [default: such a record is an error]
    #[arg(long, value_name = "SPLIT", requires = "split_by")]
    pub(crate) missing: Option<String>,
    /// Only the features of these names: `label,image/*` (`*` and `?` are wildcards; repeatable)
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(crate) features: Vec<String>,
    /// Drop the features of these names
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(crate) drop: Vec<String>,
    /// Write gzip files in members of this size before compression, which can be decompressed separately
    #[arg(long, value_name = "SIZE", value_parser = sizes::parse)]
    pub(crate) members: Option<u64>,
    /// Memory, for example 4GB; records in another order that take more than 60 % of it are copied twice
    /// [default: the limit of the system or of the control group]
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

/// Parses a split.
fn split(text: &str) -> Result<(String, f64), String> {
    let expected = || format!("expected NAME=FRACTION, for example train=0.9, found {text}");
    let (name, fraction) = text.split_once('=').ok_or_else(expected)?;
    Ok((name.to_owned(), fraction.parse().map_err(|_| expected())?))
}

pub(crate) fn run(args: &ReshardArgs, console: &mut Console) -> Outcome {
    if args.paths.paths.iter().any(|path| path == Path::new(records::STDIN)) {
        return Err(Failure::usage(
            "expected files, found `-` (standard input): the number of records must be known",
        ));
    }
    SplitPath::refuse(&args.paths.paths)?;
    outputs::check_name(&args.out)?;
    let mut access = args.access.clone();
    let mut paths = args.paths.clone();
    let prepared = reshard::prepared(&paths.paths, &args.out).map_err(failure)?;
    if let Some(source) = &prepared {
        paths = PathsArgs { paths: source.shards(), allow_missing: false };
    }
    let (resolved, _) = tfseek::paths::resolve_in_store(store::store(), &paths.paths, paths.allow_missing)?;
    let memory = args.memory.unwrap_or_else(reshard::memory_limit);
    // The pages of a map count as memory of the process.
    if !reshard::fits(progress::total_size(&resolved), memory) {
        access.io = IoMode::Pread;
    }
    let dataset = dataset::open(&paths, &access, args.payload.read, console)?;
    let mut options = options(args);
    options.prepared = prepared.map(Arc::new);
    let which = (args.condition.as_ref(), options.decodes());
    let mut skipped = SkippedErrors::default();
    options.records = dataset::subset(&dataset, which, args.payload, &mut skipped, console)?;
    let bar = progress::bytes(console, "resharding", 1);
    let report = reshard::reshard(&dataset, &options, &progress::of_writing(&bar));
    progress::end(&bar, report.is_ok());
    let report = report.map_err(failure)?;
    print(&report, args, console)?;
    skipped.report(console)?;
    if args.condition.is_some() && records_in(&report.sets) == 0 {
        return Err(Failure::Message(
            DATA,
            "no record meets the condition; the files have no records".into(),
        ));
    }
    Ok(())
}

fn options(args: &ReshardArgs) -> ReshardOptions {
    let mut options = ReshardOptions::new(&args.out);
    options.shards = args.shard_size.map(ShardCount::Size);
    options.order = match &args.sort_by {
        Some(feature) => OrderOptions::Sorted { feature: feature.clone(), reverse: args.reverse },
        None if args.shuffle => OrderOptions::Shuffled,
        None => OrderOptions::Stored,
    };
    options.seed = args.seed;
    options.split = (!args.split.is_empty()).then(|| SplitOptions {
        splits: args.split.clone(),
        by: args.split_by.clone(),
        missing: args.missing.clone(),
    });
    options.keep.clone_from(&args.features);
    options.drop.clone_from(&args.drop);
    options.kind = args.payload.kind.specified();
    options.members = args.members;
    options.memory = args.memory;
    options.threads = args.access.threads.threads;
    options.force = args.force;
    options
}

pub(super) fn failure(e: ToolsError) -> Failure {
    match e {
        ToolsError::Error(e) => e.into(),
        ToolsError::Conflict(e @ OutputConflict::Exists { .. }) => {
            Failure::usage(format!("{e} (--force replaces it)"))
        }
        ToolsError::NoValue { .. } => {
            Failure::Message(DATA, format!("{e} (--missing SPLIT puts such records into a split)"))
        }
        e @ ToolsError::Tfds(_) => Failure::Message(DATA, e.to_string()),
        ToolsError::Space { .. } => Failure::Message(IO, e.to_string()),
        e => Failure::usage(e.to_string()),
    }
}

fn records_in(sets: &[ReshardSet]) -> u64 {
    sets.iter().map(|set| set.records).sum()
}

fn print(report: &ReshardReport, args: &ReshardArgs, console: &mut Console) -> Outcome {
    if args.json {
        let sets: Vec<Value> = report.sets.iter().map(set_json).collect();
        let line = json!({"records": records_in(&report.sets), "left_out": report.left_out, "way": report.way.name(), "sets": sets});
        return console.print(format_args!("{line}\n"));
    }
    print_lines(&report.sets, console)
}

/// Prints the sets of a data set.
#[cfg(feature = "tables")]
pub(super) fn print_sets(sets: &[ReshardSet], json: bool, console: &mut Console) -> Outcome {
    if !json {
        return print_lines(sets, console);
    }
    let line = json!({"records": records_in(sets), "sets": sets.iter().map(set_json).collect::<Vec<_>>()});
    console.print(format_args!("{line}\n"))
}

fn set_json(set: &ReshardSet) -> Value {
    let path = |path: &Path| path.to_string_lossy().into_owned();
    json!({
        "split": set.split,
        "path": path(&set.path),
        "shards": set.shards.iter().map(|shard| path(shard)).collect::<Vec<_>>(),
        "records": set.records,
        "bytes": set.bytes,
    })
}

fn print_lines(sets: &[ReshardSet], console: &mut Console) -> Outcome {
    for set in sets {
        let size = console.size(set.bytes);
        let records = count(set.records, "record");
        let shards = count(set.shards.len() as u64, "shard");
        console.summary(format_args!(
            "{}: {records}, {shards}, {size}\n",
            tfseek::error::printable(&set.path)
        ))?;
    }
    Ok(())
}
