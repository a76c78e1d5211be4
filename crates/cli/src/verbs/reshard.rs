//! `tfseek reshard`: writes a dataset again, in other shards or another order.

use crate::args::{self, GlobalArgs, IoMode, ReshardArgs};
use crate::bytes::Size;
use crate::console::Console;
use crate::damage::SkippedErrors;
use crate::exit::{DATA, Failure, IO, Outcome};
use crate::text::count;
use crate::{dataset, outputs, progress, records};
use serde_json::{Value, json};
use std::path::Path;
use std::sync::Arc;
use tfseek_tools::reshard::{
    self, OrderOptions, ReshardOptions, ReshardProgress, ReshardReport, ShardCount, SplitOptions,
};
use tfseek_tools::{OutputConflict, ToolsError};

pub(crate) fn run(args: &ReshardArgs, global: &GlobalArgs, console: &mut Console) -> Outcome {
    if args.paths.paths.iter().any(|path| path == Path::new(records::STDIN)) {
        return Err(Failure::usage(
            "expected files, found `-` (standard input): the number of records must be known",
        ));
    }
    outputs::check_name(&args.out)?;
    let mut access = args.access.clone();
    let resolved = tfseek::paths::resolve(&args.paths.paths, args.paths.allow_missing)?;
    let memory = args.memory.unwrap_or_else(reshard::memory_limit);
    // The pages of a map count as memory of the process.
    if !reshard::fits(progress::total_size(&resolved), memory) {
        access.io = IoMode::Pread;
    }
    let dataset = dataset::open(&args.paths, &access, args.payload.read, global, console)?;
    let mut options = options(args);
    let which = (args.condition.as_ref(), options.decodes());
    let mut skipped = SkippedErrors::default();
    options.records = dataset::subset(&dataset, which, args.payload, &mut skipped, global, console)?;
    let bar = progress::bytes(global, "resharding", 1);
    let (expected, advanced) = (bar.clone(), progress::callback(&bar));
    let callbacks = ReshardProgress {
        expect: Arc::new(move |bytes| expected.set_length(bytes)),
        advance: Arc::new(advanced),
    };
    let report = reshard::reshard(&dataset, &options, &callbacks);
    bar.finish_and_clear();
    let report = report.map_err(failure)?;
    print(&report, args, global, console)?;
    skipped.report(console)?;
    if args.condition.is_some() && report.records() == 0 {
        return Err(Failure::Message(
            DATA,
            "no record meets the condition; the files have no records".into(),
        ));
    }
    Ok(())
}

fn options(args: &args::ReshardArgs) -> ReshardOptions {
    let mut options = ReshardOptions::new(&args.out);
    options.shards = args.shard_size.map(ShardCount::Size);
    options.order = match &args.sort_by {
        Some(feature) => OrderOptions::Sorted { feature: feature.clone(), reverse: args.reverse },
        None if args.shuffle => OrderOptions::Shuffled,
        None => OrderOptions::Stored,
    };
    options.seed = args.seed;
    options.split = (!args.split.is_empty()).then(|| SplitOptions {
        parts: args.split.clone(),
        by: args.by.clone(),
        missing: args.missing.clone(),
    });
    options.keep.clone_from(&args.keep);
    options.drop.clone_from(&args.drop);
    options.kind = args.payload.kind.specified();
    options.members = args.members;
    options.index = args.index;
    options.memory = args.memory;
    options.jobs = args.access.jobs.jobs;
    options.force = args.force;
    options
}

fn failure(e: ToolsError) -> Failure {
    match e {
        ToolsError::Error(e) => e.into(),
        ToolsError::Conflict(e @ OutputConflict::Exists { .. }) => {
            Failure::usage(format!("{e} (--force replaces it)"))
        }
        ToolsError::NoValue { .. } => {
            Failure::Message(DATA, format!("{e} (--missing PART puts such records into a part)"))
        }
        ToolsError::Space { .. } => Failure::Message(IO, e.to_string()),
        e => Failure::usage(e.to_string()),
    }
}

fn print(
    report: &ReshardReport,
    args: &args::ReshardArgs,
    global: &GlobalArgs,
    console: &mut Console,
) -> Outcome {
    if args.json {
        let path = |path: &Path| path.to_string_lossy().into_owned();
        let sets: Vec<Value> = report
            .sets
            .iter()
            .map(|set| {
                json!({
                    "split": set.split,
                    "path": path(&set.path),
                    "shards": set.shards.iter().map(|shard| path(shard)).collect::<Vec<_>>(),
                    "records": set.records,
                    "bytes": set.bytes,
                })
            })
            .collect();
        let line = json!({"records": report.records(), "left_out": report.left_out, "way": report.way.name(), "sets": sets});
        return console.print(format_args!("{line}\n"));
    }
    for set in &report.sets {
        let size = Size { bytes: set.bytes, exact: global.bytes };
        let (records, shards) = (count(set.records, "record"), count(set.shards.len() as u64, "shard"));
        console
            .print(format_args!("{}: {records}, {shards}, {size}\n", tfseek::error::printable(&set.path)))?;
    }
    Ok(())
}
