//! `tfseek salvage`: copies the sound records of a damaged file.
//!
//! The input is only read. A new file gets its name when it is complete.

use crate::console::Console;
use crate::exit::{DATA, Failure, Outcome};
use crate::split::SplitPath;
use crate::text::count;
use crate::{outputs, progress, records};
use clap::Args;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use tfseek::error::printable;
use tfseek::io::Existing;
use tfseek_tools::damage::{Gap, MAX_RECORD};
use tfseek_tools::salvage;
use tfseek_tools::sizes;

#[derive(Debug, Args)]
pub(crate) struct SalvageArgs {
    /// Damaged file, which is only read: plain, gzip or zlib
    #[arg(value_name = "IN")]
    pub(crate) input: PathBuf,
    /// New file for the sound records, uncompressed
    #[arg(value_name = "OUT")]
    pub(crate) output: PathBuf,
    /// Also write the bytes of the damaged ranges to this file; those of a compressed file are inflated
    #[arg(long, value_name = "FILE")]
    pub(crate) rest: Option<PathBuf>,
    /// Maximum payload length of a record, for example 4GiB; a longer record counts as damage
    /// [default: 2147483647]
    #[arg(long, value_name = "SIZE", value_parser = sizes::parse)]
    pub(crate) max_record: Option<u64>,
    /// Print the report as one JSON object
    #[arg(long)]
    pub(crate) json: bool,
    /// Replace existing files
    #[arg(long)]
    pub(crate) force: bool,
}

pub(crate) fn run(args: &SalvageArgs, console: &mut Console) -> Outcome {
    let input = args.input.as_path();
    let targets = [Some(args.output.as_path()), args.rest.as_deref()];
    let targets: Vec<_> = targets.into_iter().flatten().map(|target| (target, input)).collect();
    SplitPath::refuse(std::slice::from_ref(&args.input))?;
    check_regular(input)?;
    outputs::check_distinct(targets.iter().copied(), [input])?;
    for (target, _) in &targets {
        outputs::check_replace(target, args.force)?;
        console.leave_stdout_to(target);
    }
    let bar = progress::bytes(console, "salvaging", progress::total_size(std::slice::from_ref(&args.input)));
    let limit = args.max_record.unwrap_or(MAX_RECORD);
    let existing = Existing::replace_if(args.force);
    let report = salvage::salvage(input, &args.output, args.rest.as_deref(), existing, limit, &mut |read| {
        bar.inc(read)
    });
    progress::end(&bar, report.is_ok());
    let report = report?;
    let gap_bytes: u64 = report.gaps.iter().map(|gap| gap.len).sum();
    if args.json {
        let line = json!({
            "file": input.to_string_lossy(),
            "records": report.records,
            "bytes": report.bytes,
            "gap_bytes": gap_bytes,
            "gaps": gaps(&report.gaps),
        });
        console.print(format_args!("{line}\n"))?;
    } else {
        print(input, &report.gaps, console)?;
        let size = console.size(report.bytes);
        console.summary(format_args!(
            "{}: {}, {size}\n",
            printable(&args.output),
            count(report.records, "record")
        ))?;
    }
    if report.gaps.is_empty() {
        return Ok(());
    }
    let gaps = count(report.gaps.len() as u64, "damaged range");
    let bytes = count(gap_bytes, "byte");
    let in_file = report.gaps.iter().filter_map(|gap| gap.file.as_ref()).map(|file| file.end - file.start);
    let more = match in_file.sum::<u64>() {
        0 => String::new(),
        bytes => format!("; {} of the file not inflated", count(bytes, "byte")),
    };
    Err(Failure::Message(DATA, format!("{}: {gaps}, {bytes} left out{more}", input.display())))
}

/// Refuses standard input, pipes and devices: a damaged file is read more than once.
pub(super) fn check_regular(input: &Path) -> Outcome {
    let name = records::name(input);
    let expected =
        |found| Failure::usage(format!("{}: expected a regular file, found {found}", name.display()));
    if input == Path::new(records::STDIN) {
        return Err(expected("standard input"));
    }
    if !input.exists() {
        // The error of a path that cannot be opened names a URL as one.
        tfseek::Stream::open(input)?;
    }
    let found = std::fs::metadata(input).map_err(|e| Failure::io(input, e))?;
    if found.is_file() {
        return Ok(());
    }
    Err(expected(if found.is_dir() { "a folder" } else { "a pipe or a device" }))
}

/// Prints the damaged ranges of a file.
pub(crate) fn print(path: &Path, gaps: &[Gap], console: &mut Console) -> Outcome {
    for gap in gaps {
        let end = gap.offset + gap.len;
        let name = records::name(path);
        let size = count(gap.len, "byte");
        let reason = gap.reason.name();
        let file = gap.file.as_ref().map_or_else(String::new, |file| {
            format!("; bytes {}..{} of the file not inflated", file.start, file.end)
        });
        let next = gap.next_record.map_or_else(String::new, |next| format!("; record {next} follows"));
        console.print(format_args!(
            "{}: damaged: bytes {}..{end} ({size}): {reason}{file}{next}\n",
            printable(&name),
            gap.offset
        ))?;
    }
    Ok(())
}

/// Returns the damaged ranges as JSON.
pub(crate) fn gaps(gaps: &[Gap]) -> Vec<Value> {
    let gap = |gap: &Gap| {
        json!({
            "offset": gap.offset,
            "bytes": gap.len,
            "reason": gap.reason.name(),
            "record": gap.record,
            "next_record": gap.next_record,
            "file_bytes": gap.file.as_ref().map(|file| [file.start, file.end]),
        })
    };
    gaps.iter().map(gap).collect()
}
