//! `tfseek epoch`: reads an epoch like a training loop, and reports its costs.

use super::parse;
use crate::args::{self, AccessArgs, PathsArgs, ShareArgs};
use crate::console::Console;
use crate::dataset;
use crate::epoch::RunStats;
use crate::exit::Outcome;
use crate::output::epoch::{self, EpochReport};
use crate::{outputs, progress, warnings};
use clap::Args;
use std::num::NonZeroU64;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tfseek::io::Existing;
use tfseek::loader::{Loader, LoaderOptions};
use tfseek::{BatchParser, Damage, Dataset, FeatureSpec, Schema};
use tfseek_image::DecoderPool;

/// The help for `-j`, whose default differs from other verbs' default.
pub(crate) const THREADS: &str = "Number of threads; 0: the main thread does all work [default: as many as the loop needs, \
    at most one per processor]";

/// Explanation of the numbers that `tfseek epoch` prints.
pub(crate) const AFTER_EPOCH: &str = "\
A step lasts from the request for a batch until every value in the batch has been read. A stall is a batch that the loop waited \
for longer than 1 ms. The first batch is reported separately and counts as neither, because no batch can be prepared before it. \
`threads` is their number at the end. \
Of objects it also prints the requests, their latencies, the pieces from the cache on disk, and what the threads waited for bytes. \
`sum` is the sum of all values as 64-bit numbers. It does not depend on the order: the sums of the ranks, or of the parts of an \
epoch, add up to the sum of the epoch.";

#[derive(Debug, Args)]
pub(crate) struct EpochArgs {
    #[command(flatten)]
    pub(crate) paths: PathsArgs,
    #[command(flatten)]
    pub(crate) share: ShareArgs,
    /// Schema file, as `tfseek schema --json` prints it (Python's `spec`); without one the records are not
    /// parsed
    #[arg(short, long, value_name = "FILE")]
    pub(crate) schema: Option<PathBuf>,
    /// Number of steps to run [default: all steps of the epoch]
    #[arg(long, value_name = "N", value_parser = args::positive::<NonZeroU64>)]
    pub(crate) steps: Option<NonZeroU64>,
    /// Save the state at the end of the run to this file, for --resume
    #[arg(long, value_name = "FILE")]
    pub(crate) state_out: Option<PathBuf>,
    /// Also print the design effect of the order: how much less a batch says about the data than records
    /// drawn at random
    #[arg(long)]
    pub(crate) describe: bool,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) access: AccessArgs,
}

pub(crate) fn run(args: &EpochArgs, console: &mut Console) -> Outcome {
    let schema = args.schema.as_deref().map(parse::schema).transpose()?;
    let dataset = dataset::open(&args.paths, &args.access, args.share.read, console)?;
    if let Some(out) = args.state_out.as_deref() {
        // The state of `--resume` may be replaced, because it has been read before the new one is written.
        let shards = dataset.shards().map(|shard| shard.path);
        outputs::check_distinct([(out, out)], shards.chain(args.schema.as_deref()))?;
        console.leave_stdout_to(out);
    }
    let options = loader_options(args, &dataset, schema.as_ref());
    let mut loader = args.share.loader(&dataset, options, console)?;
    warnings::print(loader.warnings(), console);
    let start = loader.cursor().clone();
    let steps = start.steps_left()?;
    let batch = args.share.global_batch()?;
    let order = start.order();
    let rank_samples = start.share()?.samples();
    let state_bytes = loader.state()?.to_json().len() as u64;
    let max_steps = args.steps.map(NonZeroU64::get);
    let bar = progress::steps(console, "epoch", Some(max_steps.map_or(steps, |most| steps.min(most))));
    let mut stats = RunStats::default();
    let outcome = stats.run(&mut loader, max_steps, &bar);
    progress::end(&bar, outcome.is_ok());
    warnings::print(loader.warnings(), console);
    stats.skipped.print(console);
    // After an error, the state is the position after the last batch that was returned.
    if let Some(path) = &args.state_out
        && let Err(failure) = save(&loader, path)
    {
        console.report(&failure);
    }
    outcome?;
    let report = EpochReport {
        describe: order.describe(Some(batch)),
        summary: order.describe(None),
        full: args.describe,
        records: dataset.len(),
        shards: dataset.shards().len() as u64,
        global_batch: batch,
        samples: order.len().saturating_sub(start.position()),
        rank_samples,
        last_batch: args.share.last_batch(),
        state_bytes,
        epoch: start.epoch(),
        rank: args.share.rank,
        ranks: args.share.world_size.get(),
        verify: args::value_name(args.share.read.verify),
        steps_of: steps,
        threads: loader.threads(),
        warnings: warnings::printed_json(),
        stats: &stats,
        traffic: loader.traffic(),
    };
    if args.json {
        console.print(format_args!("{}\n", report.json()))
    } else {
        epoch::print(&report, console)
    }
}

/// Returns the options of a loader that parses records by a schema, or only reads them.
fn loader_options(args: &EpochArgs, dataset: &Dataset, schema: Option<&Schema>) -> LoaderOptions {
    let options = match schema {
        Some(schema) => {
            let mut specs = schema.features().values().chain(schema.feature_lists().values());
            let has_pictures = specs.any(|spec| matches!(spec.of_string(), FeatureSpec::Image(_)));
            let parser = BatchParser::new(schema);
            let decoding = |parser: BatchParser| parser.decoder(Arc::new(DecoderPool::default()));
            dataset.loader(schema).parser(if has_pictures { decoding(parser) } else { parser })
        }
        None => dataset.record_loader(),
    };
    let (first_epoch, later) = args.share.read.verify.of_epochs();
    let options = options.verify(first_epoch, later).threads(args.access.threads.threads);
    if args.share.read.skips() { options.damage(Damage::Skip) } else { options }
}

fn save(loader: &Loader, path: &Path) -> Outcome {
    let state = loader.state()?.to_json();
    let output = outputs::create(path, Existing::Replace)?;
    outputs::write(path, output, format!("{state}\n").as_bytes())
}
