//! `tfseek stats`: statistics of records and features, in one pass.

mod steps;

use super::reshard::failure;
use crate::args::{self, AccessArgs, IoMode, PathsArgs, PayloadArgs, ThreadsArgs};
use crate::bytes::Key;
use crate::console::{BOLD, Console, DIM};
use crate::exit::{DATA, Failure, Outcome};
use crate::records::{self, STDIN};
use crate::split::InputFile;
use crate::{condition, dataset, features, outputs, progress, text};
use clap::Args;
use std::path::{Path, PathBuf};
use tfseek::Filter;
use tfseek::frame::put_record;
use tfseek::io::Existing;
use tfseek_tools::ToolsError;
use tfseek_tools::stats::{Statistics, StatsOptions, TableStyle};

#[derive(Debug, Args)]
pub(crate) struct StatsArgs {
    #[command(flatten)]
    pub(crate) paths: PathsArgs,
    #[command(flatten)]
    pub(crate) payload: PayloadArgs,
    /// Only records that meet this condition, for example 'label in 3, 5..9'; `tfseek help grep` has the
    /// grammar
    // A sample of the matches would need a first pass; `tfseek.stats(ds.filter(..), sample=N)` makes it.
    #[arg(long = "where", value_name = "EXPR", value_parser = args::filter, conflicts_with_all = ["sample", "merge"])]
    pub(crate) condition: Option<Filter>,
    /// Only the features of these names: `label,image/*` (`*` and `?` are wildcards; repeatable). With
    /// --steps: features of a step, and `NAME=FEATURE` gives one another name:
    /// `action,proprio=observation/state`
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(crate) features: Vec<String>,
    /// Also print the statistics of each slice: the records with one value of this feature, which has at most
    /// 1000 values
    #[arg(long, value_name = "FEATURE")]
    pub(crate) by: Option<String>,
    /// Read only N records, drawn at random over all files, which are read by number
    #[arg(long, value_name = "N", conflicts_with = "merge")]
    pub(crate) sample: Option<u64>,
    /// Random seed of the sample
    #[arg(long, value_name = "S", default_value_t = 0, allow_negative_numbers = true, value_parser = args::seed)]
    pub(crate) seed: u64,
    /// Limit on the memory of the statistics: bytes, or `256MB`. Beyond it values are not counted exactly any
    /// more
    #[arg(long, value_name = "BYTES", value_parser = tfseek_tools::sizes::parse)]
    pub(crate) memory: Option<u64>,
    /// Print the statistics as one JSON object
    #[arg(long)]
    pub(crate) json: bool,
    /// Print exact statistics over all steps of episodes, of data sets with a features.json (RLDS): mean,
    /// deviation, range and the first and last percentile of each dimension. FEATURE names the feature with
    /// the steps, if there are several
    #[arg(long, value_name = "FEATURE", num_args = 0..=1, require_equals = true, default_missing_value = "",
        conflicts_with_all = ["sample", "seed", "by", "memory", "save", "merge", "tfdv", "force"])]
    steps: Option<String>,
    /// The form of --json with --steps, which policies read
    #[arg(long, value_name = "STYLE", default_value = "openvla", requires_all = ["steps", "json"])]
    style: steps::JsonStyle,
    /// Save the statistics in a file, for --merge
    #[arg(long, value_name = "FILE")]
    pub(crate) save: Option<PathBuf>,
    /// Read statistics that --save wrote, and merge them: PATHS are their files
    #[arg(long, conflicts_with_all = ["features", "by"])]
    pub(crate) merge: bool,
    /// Write the statistics for TensorFlow Data Validation, TFX and Facets: a `DatasetFeatureStatisticsList`,
    /// in one record if the name ends in .tfrecord
    #[arg(long, value_name = "FILE")]
    pub(crate) tfdv: Option<PathBuf>,
    /// Replace existing files
    #[arg(long)]
    pub(crate) force: bool,
    #[command(flatten)]
    pub(crate) threads: ThreadsArgs,
}

pub(crate) fn run(args: &StatsArgs, console: &mut Console) -> Outcome {
    if args.steps.is_some() {
        return steps::run(args, console);
    }
    let paths = if args.merge {
        args.paths.paths.iter().cloned().map(InputFile::from).collect()
    } else {
        records::resolve(&args.paths, args.payload.read, console)?
    };
    let written: Vec<&Path> = [&args.save, &args.tfdv].into_iter().flatten().map(PathBuf::as_path).collect();
    let inputs = paths.iter().map(InputFile::path).filter(|path| *path != Path::new(STDIN));
    outputs::check_distinct(written.iter().map(|path| (*path, *path)), inputs)?;
    written.iter().try_for_each(|path| outputs::check_replace(path, args.force))?;
    // A folder that does not exist is an error before all records are read.
    let create = |path: &Option<PathBuf>| {
        let path = path.as_deref();
        path.map(|path| outputs::create(path, Existing::replace_if(args.force))).transpose()
    };
    let saved = create(&args.save)?;
    let tfdv = create(&args.tfdv)?;
    let stats = if args.merge { merged(&paths)? } else { computed(&paths, args, console)? };
    if let Some(by) = &args.by {
        check_feature(&stats, by).map_err(|message| Failure::usage(format!("--by: {message}")))?;
    }
    if let (Some(path), Some(output)) = (&args.save, saved) {
        outputs::write(path, output, stats.save().as_bytes())?;
    }
    if let (Some(path), Some(output)) = (&args.tfdv, tfdv) {
        let mut message = stats.tfdv();
        if path.extension().is_some_and(|extension| extension == "tfrecord") {
            let payload = std::mem::take(&mut message);
            put_record(&mut message, &payload).map_err(|e| Failure::io(path, e))?;
        }
        outputs::write(path, output, &message)?;
    }
    if args.json {
        console.print(format_args!("{}\n", stats.report()))?;
    } else {
        let bold = console.style(BOLD);
        let dim = console.style(DIM);
        let mut style = TableStyle::default();
        style.width = console.width();
        style.heading = [bold.to_string(), format!("{bold:#}")];
        style.label = [dim.to_string(), format!("{dim:#}")];
        console.print(stats.table(&style))?;
    }
    notes(&stats, args, console);
    let Some(first) = &stats.first_skipped else { return Ok(()) };
    let skipped = text::count(stats.skipped, "record");
    Err(Failure::Message(DATA, format!("{skipped} left out; the first: {first}")))
}

/// Prints which numbers are not exact or complete, and which patterns match no feature.
fn notes(stats: &Statistics, args: &StatsArgs, console: &mut Console) {
    let limited = stats.limited();
    if let Some(first) = limited.first() {
        let more = match limited.len() {
            1 => String::new(),
            n => format!(" and {} more", n - 1),
        };
        console.note(format_args!(
            "tfseek: values of {}{more} are not counted exactly, because the memory was not enough (--memory)",
            Key(first)
        ));
    }
    if stats.not_counted() > 0 {
        let entries = text::count(stats.not_counted(), "value list");
        console.note(format_args!(
            "tfseek: {entries} left out, because the records have too many different features"
        ));
    }
    stats.unseen.iter().for_each(|feature| condition::unseen(feature, console));
    for name in args.features.iter().filter(|name| !name.contains(['*', '?'])) {
        if let Err(message) = check_feature(stats, name) {
            console.note(format_args!("tfseek: --features: {message}"));
        }
    }
}

/// Checks that a record has a feature. The error is a message with the nearest name.
fn check_feature(stats: &Statistics, name: &str) -> Result<(), String> {
    let missing = |near| format!("no record has the feature {}{}", Key(name), text::nearest(near));
    stats.check_feature(name).map_err(missing)
}

fn computed(paths: &[InputFile], args: &StatsArgs, console: &mut Console) -> Outcome<Statistics> {
    let read = args.payload.read;
    let features = features::find(paths.iter().map(InputFile::path), console);
    let mut options = StatsOptions {
        features: args.features.clone(),
        by: args.by.clone(),
        filter: args.condition.as_ref().map(|filter| features.filter(filter)).transpose()?,
        kind: args.payload.kind.specified(),
        threads: args.threads.threads,
        damage: read.damage(),
        ..StatsOptions::default()
    };
    options.memory = args.memory.unwrap_or(options.memory);
    let named = |mut stats: Statistics| {
        stats.value_names = features.label_names();
        stats
    };
    // Beyond the first file, only an index has the record numbers.
    let numbered = paths.len() > 1 && args.condition.as_ref().is_some_and(Filter::uses_numbers);
    if args.sample.is_some() || numbered {
        let option = if numbered { "--where with record numbers" } else { "--sample" };
        if let Some(pipe) = paths.iter().find(|path| !records::is_regular(path)) {
            let name = records::name(pipe);
            return Err(Failure::usage(format!("{option}: expected files, found {}", name.display())));
        }
        let shards = records::resolved(&args.paths, paths)?;
        let access = AccessArgs { io: IoMode::Map, index_dir: None, threads: args.threads };
        let dataset = dataset::open(&shards, &access, read, console)?;
        let sample = args.sample.map(|n| (n, args.seed));
        let records = args.sample.map_or(dataset.len(), |n| n.min(dataset.len()));
        let bar = progress::records(console, "reading", records);
        let report = |records| {
            bar.inc(records);
            Ok(())
        };
        let stats = options.run_dataset(&dataset, None, sample, &report);
        progress::end(&bar, stats.is_ok());
        return stats.map_err(failure).map(named);
    }
    let bar = progress::bytes(console, "reading", progress::total_size(paths));
    let open = |input: &InputFile| {
        let path = input.path();
        if path == Path::new(STDIN) || input.part.is_some() {
            return records::stream(input, read);
        }
        read.stream().open_with(path, progress::callback(&bar))
    };
    let stats = options.run(paths, &open);
    progress::end(&bar, stats.is_ok());
    stats.map_err(failure).map(named)
}

/// Maximum size of a file of saved statistics in bytes.
const MAX_SAVED: u64 = 1 << 30;

/// Reads saved statistics and merges them in this order.
fn merged(paths: &[InputFile]) -> Outcome<Statistics> {
    let mut merged: Option<Statistics> = None;
    for path in paths {
        let text = text::read_object(path, "saved statistics", MAX_SAVED)?;
        let in_file = |e: ToolsError| Failure::usage(format!("{}: {e}", path.display()));
        let stats = Statistics::from_saved(&text).map_err(in_file)?;
        match &mut merged {
            Some(merged) => merged.merge(&stats).map_err(in_file)?,
            None => merged = Some(stats),
        }
    }
    merged.ok_or_else(|| Failure::usage("--merge: expected files, found none"))
}
