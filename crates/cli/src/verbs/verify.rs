//! `tfseek verify`: verifies all checksums of all files, several files in parallel, and lists the damaged
//! ranges. The episodes of a data set with steps are checked, too.

use crate::args::{InspectArgs, PathsArgs, PayloadKind, ThreadsArgs};
use crate::console::Console;
use crate::exit::{DATA, Failure, Outcome};
use crate::records::{self, RecordNumbers, STDIN};
use crate::split::{self, InputFile};
use crate::text::count;
use crate::tfds::{self, Splits};
use crate::{features, progress, verbs::salvage, warnings};
use clap::Args;
use indicatif::ProgressBar;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tfseek::Error;
use tfseek_tfds::FileSplit;
use tfseek_tools::{FaultKind, RecordChecks, RecordFaults, Verification, VerifyOptions, in_order};

/// Number of faults of a kind and a feature that are named. Others are counted.
const MAX_NAMED: u64 = 10;

#[derive(Debug, Args)]
pub(crate) struct VerifyArgs {
    #[command(flatten)]
    pub(crate) paths: PathsArgs,
    /// Also decode the payloads, as the message type of --kind, and their pictures
    #[arg(long)]
    pub(crate) decode: bool,
    #[command(flatten)]
    pub(crate) inspect: InspectArgs,
    /// Print one JSON object per file; `index` and `record` are the numbers of the faulty record, over all
    /// files and in the file, `gaps` are the damaged ranges, and `faults` those of episodes
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) threads: ThreadsArgs,
}

pub(crate) fn run(args: &VerifyArgs, console: &mut Console) -> Outcome {
    let mut splits = Splits::new(&args.paths, console);
    let (paths, lacking) = records::resolve_there(&args.paths, args.inspect.payload().read, console)?;
    let bar = progress::bytes(console, "verifying", progress::total_size(&paths));
    let features = features::find(paths.iter().map(InputFile::path), console);
    let checks = RecordChecks::new(features.features.as_deref(), args.decode).map_err(split::failure)?;
    let checks = checks.map(Arc::new);
    let mut faults = FaultReport {
        has_steps: checks.as_ref().is_some_and(|checks| checks.has_steps()),
        ..FaultReport::default()
    };
    let mut sound = 0;
    let mut records = 0;
    let mut bytes = 0;
    let mut numbers = RecordNumbers::new(args.inspect.payload().read);
    let done = |path: &InputFile, found: Verification| {
        records += found.records;
        bytes += found.payload_bytes;
        sound += usize::from(found.is_sound());
        let before = numbers.begin(path);
        let counted = found.damage.is_none().then_some(found.records);
        numbers.end(counted);
        bar.suspend(|| {
            // A part of a shard has other numbers of records.
            let split = path.part.is_none().then(|| splits.add(path, counted, console)).flatten();
            report(path, found, before, split.as_ref(), &mut faults, args, console)
        })
    };
    let outcome = verify(&paths, args, checks.as_ref(), &bar, done);
    progress::end(&bar, outcome.is_ok());
    outcome?;
    faults.print_more(console);
    splits.missing().into_iter().for_each(|text| console.report(&Failure::Message(DATA, text)));
    lacking.into_iter().for_each(|e| console.report(&Failure::Error(e)));
    if args.json {
        return Ok(());
    }
    let size = console.size(bytes);
    let result = if args.decode { "sound, decoded" } else { "sound" };
    let files = count(paths.len() as u64, "file");
    let records = count(records, "record");
    console.print(format_args!("{sound} of {files} {result}: {records}, {size} of payload\n"))?;
    let number = count(faults.faults, "fault");
    if faults.has_steps {
        let steps = count(faults.steps, "step");
        let notes = count(faults.notes, "note");
        console.print(format_args!("{steps} of episodes: {number}, {notes}\n"))?;
    } else if faults.faults > 0 {
        console.print(format_args!("pictures: {number}\n"))?;
    }
    splits.print_agreement(console)
}

/// Verifies files, or standard input.
fn verify(
    paths: &[InputFile],
    args: &VerifyArgs,
    checks: Option<&Arc<RecordChecks>>,
    bar: &ProgressBar,
    mut done: impl FnMut(&InputFile, Verification) -> Outcome,
) -> Outcome {
    // Without decoding the kind does not matter. `Raw` avoids buffering records for a guess.
    let kind = if args.decode { args.inspect.kind } else { PayloadKind::Raw };
    let limit = args.inspect.limit;
    let is_stream = |path: &InputFile| path.path() == Path::new(STDIN) || path.part.is_some();
    if paths.iter().any(is_stream) {
        let each = |path: &InputFile| -> Outcome<_> {
            Ok(match records::stream(path, limit.into()) {
                Ok(stream) => {
                    let stream = records::kinded(stream, kind);
                    tfseek_tools::verify(stream, checks.map(|checks| &**checks), |_| ())
                }
                Err(e) => e.into(),
            })
        };
        let mut all = paths.iter();
        let done = |found| all.next().map_or(Ok(()), |path| done(path, found));
        return in_order(args.threads.threads, usize::MAX, paths, each, done);
    }
    let mut options = VerifyOptions::default();
    options.threads = args.threads.threads;
    options.kind = kind.specified();
    options.stream = limit.stream();
    options.max_record = limit.max_record();
    options.checks = checks.cloned();
    let files: Vec<PathBuf> = paths.iter().map(|path| path.path().to_path_buf()).collect();
    options.run(&files, progress::callback(bar), |path, found| done(&path.to_path_buf().into(), found))
}

/// Reports the result for a file, and how it differs from its split. `before` is the number of records in the
/// preceding files, if it is known.
fn report(
    path: &Path,
    found: Verification,
    before: Option<u64>,
    split: Option<&FileSplit>,
    report: &mut FaultReport,
    args: &VerifyArgs,
    console: &mut Console,
) -> Outcome {
    let name = records::name(path);
    let difference = split.and_then(|split| split.difference.clone());
    if args.json {
        let faults = found.faults.iter().flat_map(|found| &found.faults);
        let fault = faults.filter(|fault| !fault.kind.is_note()).map(|fault| &fault.error).next();
        let error = found.damage.as_ref().or(found.first_malformed.as_ref()).or(fault);
        let location = error.map(Error::location);
        let record = location.and_then(|location| location.record);
        let line = json!({
            "file": name.to_string_lossy(),
            "ok": found.is_sound() && difference.is_none(),
            "records": found.records,
            "payload_bytes": found.payload_bytes,
            "malformed": found.malformed,
            "warnings": warnings::as_json(&found.warnings),
            "error": error.map(Error::to_string).or_else(|| difference.clone()),
            // By the dataset_info.json of TensorFlow Datasets.
            "split": tfds::as_json(split),
            // The faulty record: its number over all files, its number in this file, and its byte offset.
            "index": before.zip(record).and_then(|(before, i)| before.checked_add(i)),
            "record": record,
            "offset": location.and_then(|location| location.offset),
            "gaps": salvage::gaps(&found.gaps),
            // By their lengths alone, if the writer computed checksums in another way.
            "unverified": found.unverified,
            // Null for files that are no episodes, and if records were not checked.
            "steps": found.faults.as_ref().filter(|_| report.has_steps).map(|found| found.steps),
            "faults": found.faults.as_ref().map(faults_json),
        });
        console.print(format_args!("{line}\n"))?;
    }
    if let Some(text) = difference {
        console.report(&Failure::Message(DATA, text));
    }
    if let Some(e) = found.first_malformed {
        console.report(&Failure::Error(e));
        if found.malformed > 1 {
            let more = found.malformed - 1;
            let text = if more == 1 { "record does" } else { "records do" };
            console.note(format_args!("{}: {more} more {text} not decode", name.display()));
        }
    }
    if let Some(found) = found.faults {
        report.add(found, console);
    }
    warnings::print(&found.warnings, console);
    if let Some(e) = found.damage {
        console.report(&Failure::Error(e));
    }
    if let Some(records) = found.unverified {
        let records = count(records, "record");
        console.note(format_args!("{}: {records} by their lengths alone", name.display()));
    }
    if args.json { Ok(()) } else { salvage::print(path, &found.gaps, console) }
}

/// The faults of the records in all files: their numbers, the faults of each kind and feature that were
/// named, and the ones that were not.
#[derive(Default)]
struct FaultReport {
    has_steps: bool,
    steps: u64,
    faults: u64,
    notes: u64,
    named: BTreeMap<(FaultKind, String), u64>,
    more: BTreeMap<(FaultKind, String), u64>,
}

impl FaultReport {
    /// Adds a file's faults, and names the first ones of each kind and feature.
    fn add(&mut self, found: RecordFaults, console: &mut Console) {
        self.steps += found.steps;
        self.notes += found.count(true);
        self.faults += found.count(false);
        for (group, count) in found.counts {
            *self.more.entry(group).or_default() += count;
        }
        for fault in found.faults {
            let key = fault.error.location().feature.as_deref().unwrap_or_default().to_owned();
            let named = self.named.entry((fault.kind, key)).or_default();
            if *named == MAX_NAMED {
                continue;
            }
            *named += 1;
            if fault.kind.is_note() {
                console.note(format_args!("tfseek: note: {}", fault.error));
            } else {
                console.report(&Failure::Error(fault.error));
            }
        }
    }

    /// Prints how many faults were not named.
    fn print_more(&self, console: &mut Console) {
        for ((kind, key), count) in &self.more {
            let named = self.named.get(&(*kind, key.clone())).copied().unwrap_or(0);
            let more = count.saturating_sub(named);
            if more > 0 {
                console
                    .note(format_args!("tfseek: feature {key:?}: {more} more of the kind {}", kind.name()));
            }
        }
    }
}

/// Returns the faults of records as JSON.
fn faults_json(found: &RecordFaults) -> Value {
    let faults = found.faults.iter().map(|fault| {
        let location = fault.error.location();
        json!({
            "kind": fault.kind.name(),
            "note": fault.kind.is_note(),
            "record": location.record,
            "step": fault.step,
            "feature": location.feature,
            "message": fault.error.to_string(),
        })
    });
    faults.collect()
}
