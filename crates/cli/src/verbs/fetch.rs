//! `tfseek fetch`: copies shards from a bucket, a web server or the hub to a folder.

use crate::console::Console;
use crate::exit::{self, DATA, Failure, IO, Outcome};
use crate::outputs;
use crate::progress;
use crate::split::{self, SplitPath};
use crate::store;
use crate::text::count;
use clap::Args;
use serde_json::json;
use std::path::{Path, PathBuf};
use tfseek::error::IndexError;
use tfseek::{ErrorKind, Filter};
use tfseek_tools::fetch::{FetchEstimate, FetchOptions, FetchPlan, FetchReport};
use tfseek_tools::sizes;
use tfseek_tools::{FetchReason, ToolsError};

/// The rate that `--dry-run` assumes, in bytes a second: a link of 1 Gb/s.
const RATE: u64 = 125_000_000;

/// Explanation of `tfseek fetch`.
pub(crate) const AFTER_FETCH: &str = "\
Shards arrive in pieces of 8 MiB, and each record is checked. After a kill, or without a network, the same command goes on; pieces that are here are not \
requested again. With --where, or a part of a split, the folder gets a new set of the records that are selected.

Exit status: 1 if a shard is damaged in the store too (the others are fetched), 2 if the folder has other files, 3 for the network, the disk, \
and another fetch into the folder.";

#[derive(Debug, Args)]
pub(crate) struct FetchArgs {
    /// A URL, a quoted pattern of URLs ('gs://bucket/train-*'), a folder of shards, or a data set of
    /// TensorFlow Datasets, also a split of it ('gs://bucket/mnist/3.0.1[train[:5%]]')
    #[arg(value_name = "URL")]
    pub(crate) url: String,
    /// Folder to write to: a new or an empty one, or that of an earlier run
    #[arg(value_name = "DIR")]
    pub(crate) folder: PathBuf,
    /// Only records that meet this condition, for example 'label in 3, 5..9 and present(name)'; whole shards
    /// are read
    #[arg(long = "where", value_name = "EXPR")]
    pub(crate) condition: Option<Filter>,
    /// Take shards as they are that are damaged in the store too
    #[arg(long)]
    pub(crate) keep_damaged: bool,
    /// Print what would be fetched: files, bytes, requests; no shard is read
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Print the report as one JSON object
    #[arg(long)]
    pub(crate) json: bool,
    /// Maximum payload length of a record, for example 4GiB [default: 2147483647]
    #[arg(long, value_name = "SIZE", value_parser = sizes::parse)]
    pub(crate) max_record: Option<u64>,
}

pub(crate) fn run(args: &FetchArgs, console: &mut Console) -> Outcome {
    let store = store::store().filter(|_| store::is_object(args.url.as_ref()));
    let store = store.ok_or_else(|| {
        Failure::usage(format!("expected a URL such as gs://bucket/train-*, found `{}`", args.url))
    })?;
    outputs::check_name(&args.folder)?;
    let split = SplitPath::parse(Path::new(&args.url));
    let folder = split.and_then(|split| split.folder.to_str());
    let mut options = FetchOptions::new(store, folder.unwrap_or(&args.url), &args.folder);
    options.split = split.map(|split| split.spec.to_owned());
    options.filter.clone_from(&args.condition);
    options.keep_damaged = args.keep_damaged;
    options.max_record = args.max_record.unwrap_or(options.max_record);
    let plan = FetchPlan::new(&options).map_err(failure)?;
    if args.dry_run {
        return print_estimate(plan.estimate().map_err(failure)?, args, console);
    }
    let bar = progress::bytes(console, "fetching", 1);
    let report = plan.run(&progress::of_writing(&bar));
    progress::end(&bar, report.is_ok());
    print(&report.map_err(failure)?, args, console)
}

fn print_estimate(estimate: FetchEstimate, args: &FetchArgs, console: &mut Console) -> Outcome {
    let FetchEstimate { files, files_left, bytes, bytes_left, requests, .. } = estimate;
    let seconds = bytes_left.div_ceil(RATE);
    if args.json {
        let value = json!({
            "files": files, "files_left": files_left, "bytes": bytes, "bytes_left": bytes_left, "requests": requests,
            "seconds": seconds,
        });
        return console.print(format_args!("{value}\n"));
    }
    console.print(format_args!(
        "{}, {}; to fetch: {}, {} in {}, about {} at 1 Gb/s\n",
        count(files, "file"),
        console.size(bytes),
        count(files_left, "file"),
        console.size(bytes_left),
        count(requests, "request"),
        count(seconds, "second"),
    ))
}

fn print(report: &FetchReport, args: &FetchArgs, console: &mut Console) -> Outcome {
    for name in &report.begun_again {
        console.note(format_args!("{name}: began again, because the object was replaced"));
    }
    for name in &report.left {
        console.note(format_args!("tfseek: {name}: fetched before, and no longer in the store"));
    }
    for feature in &report.unseen {
        console.note(format_args!("tfseek: no record has the feature {feature:?} of the condition"));
    }
    for damage in &report.kept {
        console.note(format_args!("tfseek: taken as it is: {damage}"));
    }
    if args.json {
        let texts = |all: &[ToolsError]| all.iter().map(ToString::to_string).collect::<Vec<_>>();
        let value = json!({
            "files": report.files, "records": report.records, "bytes": report.bytes, "fetched_bytes": report.fetched,
            "requests": report.requests, "found_bytes": report.found, "begun_again": report.begun_again,
            "left": report.left, "damaged": texts(&report.damaged), "kept": texts(&report.kept),
        });
        console.print(format_args!("{value}\n"))?;
    } else {
        console.note(format_args!(
            "{}: {}, {}, {} ({} fetched in {}, {} were here)",
            args.folder.display(),
            count(report.files, "file"),
            count(report.records, "record"),
            console.size(report.bytes),
            console.size(report.fetched),
            count(report.requests, "request"),
            console.size(report.found),
        ));
    }
    for damage in &report.damaged {
        console.report(&Failure::Message(
            DATA,
            format!("{damage} (not complete; --keep-damaged takes it as it is)"),
        ));
    }
    Ok(())
}

fn failure(e: ToolsError) -> Failure {
    match e {
        // A second replacement is no damage of the data.
        ToolsError::Error(e) if matches!(e.kind(), ErrorKind::Index(IndexError::Stale { .. })) => {
            Failure::Message(IO, exit::message(&e))
        }
        ToolsError::Error(e) => e.into(),
        ToolsError::Tfds(e) => split::failure(e),
        ToolsError::Fetch(FetchReason::Busy { .. }) | ToolsError::Space { .. } => {
            Failure::Message(IO, e.to_string())
        }
        ToolsError::Fetch(_) => Failure::usage(e.to_string()),
        e => Failure::Message(DATA, e.to_string()),
    }
}
