//! `tfseek verify`: verifies all checksums of all files, several files in parallel, and lists the damaged ranges.

use crate::args::{GlobalArgs, InspectArgs, PathsArgs, PayloadKind, ThreadsArgs};
use crate::bytes::Size;
use crate::console::Console;
use crate::exit::{DATA, Failure, Outcome};
use crate::progress::FileProgress;
use crate::records::{self, RecordNumbers};
use crate::text::count;
use crate::tfds::{self, Splits};
use crate::{progress, threads, verbs::salvage, warnings};
use clap::Args;
use indicatif::ProgressBar;
use serde_json::json;
use std::fs::File;
use std::path::Path;
use tfseek::{Compression, Error};
use tfseek_tools::Verification;
use tfseek_tools::damage::Gap;
use tfseek_tools::tfds::FileSplit;

#[derive(Debug, Args)]
pub(crate) struct VerifyArgs {
    #[command(flatten)]
    pub(crate) paths: PathsArgs,
    /// Also decode the payloads, as the message type of --kind
    #[arg(long)]
    pub(crate) decode: bool,
    #[command(flatten)]
    pub(crate) inspect: InspectArgs,
    /// Print one JSON object per file; `index` and `record` are the numbers of the faulty record, over all files and in the
    /// file, and `gaps` are the damaged ranges
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) threads: ThreadsArgs,
}

pub(crate) fn run(args: &VerifyArgs, global: &GlobalArgs, console: &mut Console) -> Outcome {
    let mut splits = Splits::new(&args.paths, console);
    let paths = records::resolve(&args.paths, console)?;
    let bar = progress::bytes(global, "verifying", progress::total_size(&paths));
    let (mut sound, mut records, mut bytes) = (0, 0, 0);
    let mut numbers = RecordNumbers::new(args.inspect.payload().read);
    let outcome = threads::in_order(
        &paths,
        args.threads.count(),
        |path| file(path, args, &bar),
        |path, (found, gaps)| {
            records += found.records;
            bytes += found.payload_bytes;
            sound += usize::from(found.is_sound());
            let before = numbers.begin(path);
            let counted = found.damage.is_none().then_some(found.records);
            numbers.end(counted);
            bar.suspend(|| {
                let split = splits.add(path, counted, console);
                report(path, (found, &gaps), before, split.as_ref(), args, console)
            })
        },
    );
    bar.finish_and_clear();
    outcome?;
    splits.missing().into_iter().for_each(|text| console.report(&Failure::Message(DATA, text)));
    if args.json {
        return Ok(());
    }
    let size = Size { bytes, exact: global.bytes };
    let result = if args.decode { "sound, decoded" } else { "sound" };
    let (files, records) = (count(paths.len() as u64, "file"), count(records, "record"));
    console.print(format_args!("{sound} of {files} {result}: {records}, {size} of payload\n"))?;
    splits.print_agreement(console)
}

/// Verifies a file. If it is damaged, the sound records after the damage are searched to list its damaged ranges.
fn file(path: &Path, args: &VerifyArgs, bar: &ProgressBar) -> (Verification, Vec<Gap>) {
    // A pipe cannot be read again.
    let file = if records::is_regular(path) { File::open(path).ok() } else { None };
    let mut found = verify(path, file.as_ref(), args, bar);
    let max_record = args.inspect.limit.max_record();
    let gaps = file.map_or(Vec::new(), |file| found.count_behind_damage(&file, path, max_record));
    (found, gaps)
}

fn verify(path: &Path, file: Option<&File>, args: &VerifyArgs, bar: &ProgressBar) -> Verification {
    // Without decoding the kind does not matter. `Raw` avoids buffering records for a guess.
    let kind = if args.decode { args.inspect.kind } else { PayloadKind::Raw };
    let opened = match file.and_then(|file| file.try_clone().ok()) {
        Some(file) => args.inspect.limit.stream().read(file, path),
        None => records::stream(path, args.inspect.limit.into()),
    };
    let stream = match opened {
        Ok(stream) => records::kinded(stream, kind),
        Err(e) => return e.into(),
    };
    let is_plain = stream.stream().compression() == Compression::None;
    let mut progress = FileProgress::new(bar, path, is_plain);
    let found = tfseek_tools::verify(stream, |read| progress.read_to(read));
    progress.finish();
    found
}

/// Reports the result for a file, and how it differs from its split. `before` is the number of records in the preceding files, if it is known.
fn report(
    path: &Path,
    (found, gaps): (Verification, &[Gap]),
    before: Option<u64>,
    split: Option<&FileSplit>,
    args: &VerifyArgs,
    console: &mut Console,
) -> Outcome {
    let difference = split.and_then(|split| split.difference.clone());
    if args.json {
        let error = found.damage.as_ref().or(found.first_malformed.as_ref());
        let location = error.map(Error::location);
        let record = location.and_then(|location| location.record);
        let line = json!({
            "file": records::name(path).to_string_lossy(),
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
            "gaps": salvage::gaps(gaps),
        });
        console.print(format_args!("{line}\n"))?;
    }
    if let Some(text) = difference {
        console.report(&Failure::Message(DATA, text));
    }
    if let Some(e) = found.first_malformed {
        console.report(&Failure::Error(e));
        if found.malformed > 1 {
            let (name, more) = (records::name(path), found.malformed - 1);
            let text = if more == 1 { "record does" } else { "records do" };
            console.note(format_args!("{}: {more} more {text} not decode", name.display()));
        }
    }
    warnings::print(&found.warnings, console);
    if let Some(e) = found.damage {
        console.report(&Failure::Error(e));
    }
    if args.json { Ok(()) } else { salvage::print(path, gaps, console) }
}
