//! `tfseek parse`: parses records into arrays by a schema.
//!
//! Batches continue across files. If a record cannot be parsed, the batches printed before it remain. An
//! archive gets its name only when it is complete. It is made of one batch of all records, which are in
//! memory, unless `--batches` keeps batches apart.

use crate::args::{self, GlobalArgs, PathsArgs, ReadArgs};
use crate::console::Console;
use crate::damage::SkippedErrors;
use crate::exit::{Failure, Outcome};
use crate::output::arrays;
use crate::progress::FileProgress;
use crate::records;
use crate::split::InputFile;
use crate::verbs::validate;
use crate::{kept, outputs, progress, text};
use clap::Args;
use indicatif::ProgressBar;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tfseek::batch::{Batch, BatchParser, Row};
use tfseek::frame::OVERHEAD;
use tfseek::io::Existing;
use tfseek::{At, Compression, FeatureSpec, Schema};
use tfseek_tools::NpzWriter;
use tfseek_tools::tfx::TfxSchema;

#[derive(Debug, Args)]
pub(crate) struct ParseArgs {
    #[command(flatten)]
    pub(crate) paths: PathsArgs,
    #[command(flatten)]
    pub(crate) read: ReadArgs,
    /// Schema file, as `tfseek schema --json` prints it (Python's `spec` is its dict), or a schema.pbtxt of
    /// TFX
    #[arg(short, long, value_name = "FILE")]
    pub(crate) schema: PathBuf,
    /// Number of records per batch; the last batch may have fewer. With --out it has no effect, except with
    /// --batches
    #[arg(short, long, value_name = "N", default_value = "128", value_parser = args::positive::<NonZeroUsize>)]
    pub(crate) batch_size: NonZeroUsize,
    /// Parse each record separately, without the batch dimension
    #[arg(long, conflicts_with = "batch_size")]
    pub(crate) single: bool,
    /// Number of records to skip first, over all files
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) skip: u64,
    /// Number of records to parse, over all files [default: all]
    #[arg(short, value_name = "N")]
    pub(crate) n: Option<u64>,
    /// Write a NumPy archive instead of JSON lines to standard output, with one array per feature over all
    /// records
    #[arg(short, long, value_name = "OUT.npz")]
    pub(crate) out: Option<PathBuf>,
    /// With --out: write the arrays of each batch (`b0::NAME`, `b1::NAME`, ..) or, with --single, of each
    /// record
    #[arg(long, requires = "out")]
    pub(crate) batches: bool,
    /// Replace existing files
    #[arg(long, requires = "out")]
    pub(crate) force: bool,
}

pub(crate) fn run(args: &ParseArgs, global: &GlobalArgs, console: &mut Console) -> Outcome {
    let paths = records::resolve(&args.paths, args.read, console)?;
    let schema = schema(&args.schema)?;
    let mut output = match &args.out {
        Some(out) => {
            if args.single && !args.batches {
                return Err(Failure::usage(
                    "--single with --out: expected --batches, because arrays over all records have a batch dimension",
                ));
            }
            let inputs = paths.iter().map(InputFile::path).chain([args.schema.as_path()]);
            outputs::check_distinct([(out.as_path(), out.as_path())], inputs)?;
            outputs::check_replace(out, args.force)?;
            let existing = Existing::replace_if(args.force);
            if args.batches {
                BatchOutput::Batches(Box::new(NpzWriter::create(out, existing)?))
            } else {
                BatchOutput::Joined(Box::new(NpzWriter::create(out, existing)?))
            }
        }
        None => BatchOutput::Stdout(console),
    };
    let bar = progress::bytes(global, "parsing", progress::total_size(&paths));
    let mut skipped = SkippedErrors::default();
    let parsed = parse_all(args, (&paths, &schema), &mut output, &mut skipped, &bar);
    bar.finish_and_clear();
    let (records, batches) = parsed?;
    let records = text::count(records, "record");
    match output {
        BatchOutput::Stdout(_) => {}
        BatchOutput::Batches(npz) => {
            let out = npz.finish()?;
            let batches = if batches == 1 { "1 batch".to_owned() } else { format!("{batches} batches") };
            console.note(format_args!("{}: {records} in {batches}", out.display()));
        }
        BatchOutput::Joined(npz) => console.note(format_args!("{}: {records}", npz.finish()?.display())),
    }
    skipped.report(console)
}

/// Reads the schema in a file: JSON, which begins with a brace, or a schema of TFX.
pub(super) fn schema(path: &Path) -> Outcome<Schema> {
    let text = text::read_file(path, "a schema")?;
    let is_tfx = text.contains("feature {") && !text.trim_start().starts_with('{');
    let parsed = if is_tfx { columns(&validate::of_tfx(path, &text)?) } else { Schema::from_json(&text) };
    text::parsed(path, parsed)
}

/// Returns columns for the features of TFX that have a type. A shape has one dimension for all its values,
/// and none for one.
fn columns(rules: &TfxSchema) -> tfseek::Result<Schema> {
    let mut schema = if rules.lists.is_empty() { Schema::example() } else { Schema::sequence_example() };
    for (name, rule) in &rules.features {
        let Some(kind) = rule.kind else { continue };
        let fixed = rule.fixed.filter(|_| rule.min_fraction >= 1.0).and_then(|n| usize::try_from(n).ok());
        let spec = match (fixed, rule.counts) {
            (Some(1), _) => FeatureSpec::fixed_len(&[], kind),
            (Some(n), _) => FeatureSpec::fixed_len(&[n], kind),
            (None, Some((_, Some(1)))) => FeatureSpec::optional(kind),
            (None, _) => FeatureSpec::var_len(kind),
        };
        schema = schema.feature(name, spec);
    }
    for (name, rule) in &rules.lists {
        schema = match rule.kind {
            Some(kind) => schema.feature_list(name, FeatureSpec::var_len(kind)),
            None => schema,
        };
    }
    schema.build()
}

/// Destination of the parsed batches.
enum BatchOutput<'a> {
    Stdout(&'a mut Console),
    /// An archive with the arrays of each batch.
    Batches(Box<NpzWriter>),
    /// An archive with the arrays of one batch of all records.
    Joined(Box<NpzWriter>),
}

impl BatchOutput<'_> {
    fn write(&mut self, k: u64, batch: &Batch, args: &ParseArgs, sequence: bool) -> Outcome {
        match self {
            BatchOutput::Stdout(console) => {
                arrays::print(console.out(), batch, sequence, args.single).map_err(Failure::Stdout)?;
                console.end_record()
            }
            BatchOutput::Batches(npz) => Ok(npz.batch(Some(k), batch, sequence)?),
            BatchOutput::Joined(npz) => Ok(npz.batch(None, batch, sequence)?),
        }
    }
}

/// Maximum memory of the records of one archive. Its arrays take about as much again. Nothing joins batches,
/// and a larger archive would be loaded into memory anyway.
const MAX_JOINED: u64 = 1 << 30;

/// A record of the next batch.
struct PendingRow {
    payload: Vec<u8>,
    path: Arc<Path>,
    i: u64,
    offset: u64,
}

impl PendingRow {
    /// Returns the memory of the row in bytes.
    fn memory(&self) -> u64 {
        (self.payload.len() + size_of::<PendingRow>()) as u64
    }
}

impl Row for PendingRow {
    fn payload(&self) -> &[u8] {
        &self.payload
    }

    fn at(&self) -> At<'_> {
        At::new(&self.path, self.i, self.offset)
    }
}

/// Refuses an archive of records with more than `limit` bytes.
fn check_joined(memory: u64, limit: u64) -> Outcome {
    if memory <= limit {
        return Ok(());
    }
    Err(Failure::usage(format!(
        "--out: expected records that take at most {limit} bytes of memory, found more (`tfseek convert` writes tables of any size, \
         and --batches writes the arrays of each batch)"
    )))
}

/// Moves the rows that cannot be parsed to the end, counts them, and returns the number of the others.
fn leave_out(parser: &BatchParser, rows: &mut [PendingRow], skipped: &mut SkippedErrors) -> Outcome<usize> {
    let mut kept = 0;
    for k in 0..rows.len() {
        let Some(row) = rows.get(k) else { break };
        match parser.parse(std::slice::from_ref(row)) {
            Ok(_) => {
                rows.swap(kept, k);
                kept += 1;
            }
            Err(e) if e.is_data() => skipped.add(e),
            Err(e) => return Err(e.into()),
        }
    }
    Ok(kept)
}

/// Parses the records and writes the batches. Returns the number of records and of batches.
fn parse_all(
    args: &ParseArgs,
    (paths, schema): (&[InputFile], &Schema),
    output: &mut BatchOutput<'_>,
    skipped: &mut SkippedErrors,
    bar: &ProgressBar,
) -> Outcome<(u64, u64)> {
    let parser = BatchParser::new(schema);
    let is_joined = matches!(output, BatchOutput::Joined(_));
    let size = if is_joined {
        usize::MAX
    } else if args.single {
        1
    } else {
        args.batch_size.get()
    };
    // The first `pending` rows belong to the next batch. The others keep their memory for later batches.
    let mut rows: Vec<PendingRow> = Vec::new();
    let mut pending = 0;
    let mut seen = 0u64;
    let mut taken = 0u64;
    let mut done = 0u64;
    let max_records = args.n.unwrap_or(u64::MAX);
    let mut memory = 0;
    // Writes the batch of the rows. Rows that cannot be parsed are left out, and the others are kept for the
    // next batch, unless this is the last. Returns the numbers of both.
    let mut flush = |rows: &mut [PendingRow], is_last: bool| -> Outcome<(usize, u64)> {
        let all = rows.len();
        let mut kept = all;
        loop {
            let (rows, _) = rows.split_at_mut(kept);
            if !args.single {
                parser.unknown_names(rows)?.iter().for_each(kept::of_stream);
            }
            let parsed = match &*rows {
                [row] if args.single => parser.parse_single(row),
                rows => parser.parse(rows),
            };
            match parsed {
                Err(e) if args.read.skips() && e.is_data() => {
                    kept = leave_out(&parser, rows, skipped)?;
                    if kept == rows.len() {
                        return Err(e.into());
                    }
                    if kept == 0 || !is_last {
                        return Ok((kept, (all - kept) as u64));
                    }
                }
                parsed => {
                    output.write(done, &parsed?, args, schema.is_sequence())?;
                    done += 1;
                    return Ok((0, (all - kept) as u64));
                }
            }
        }
    };
    for path in paths {
        if taken >= max_records {
            break;
        }
        let mut stream = records::stream(path, args.read)?;
        let is_plain = stream.compression() == Compression::None;
        let mut progress = FileProgress::new(bar, path, is_plain);
        let name: Arc<Path> = records::name(path).into();
        while taken < max_records
            && let Some(record) = stream.next()?
        {
            seen += 1;
            let end = record.payload().len() as u64 + OVERHEAD as u64;
            progress.read_to(record.at().offset.unwrap_or(0) + end);
            if seen <= args.skip {
                continue;
            }
            if pending == rows.len() {
                rows.try_reserve(1).map_err(|e| tfseek::Error::from(e).at(record.at()))?;
                rows.push(PendingRow { payload: Vec::new(), path: name.clone(), i: 0, offset: 0 });
            }
            if let Some(row) = rows.get_mut(pending) {
                let at = record.at();
                row.payload.clear();
                row.payload.try_reserve(record.payload().len()).map_err(|e| tfseek::Error::from(e).at(at))?;
                row.payload.extend_from_slice(record.payload());
                row.path = name.clone();
                (row.i, row.offset) = (at.record.unwrap_or(0), at.offset.unwrap_or(0));
                memory += row.memory();
            }
            if is_joined {
                check_joined(memory, MAX_JOINED)?;
            }
            pending += 1;
            taken += 1;
            if pending == size {
                let left_out;
                (pending, left_out) = flush(&mut rows, false)?;
                taken -= left_out;
            }
        }
        progress.finish();
    }
    if pending > 0 {
        taken -= flush(rows.split_at_mut(pending).0, true)?.1;
    }
    // Without records, joined arrays are an empty batch's arrays.
    if is_joined && taken == 0 {
        flush(&mut [], true)?;
    }
    Ok((taken, done))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_records_of_one_archive_have_a_limit() {
        let row = PendingRow { payload: vec![0; 100], path: Path::new("a").into(), i: 0, offset: 0 };
        assert!(row.memory() > 100);
        assert!(check_joined(row.memory(), row.memory()).is_ok());
        let Err(failure) = check_joined(row.memory() + 1, row.memory()) else { panic!() };
        assert_eq!(failure.code(), 2);
        assert!(failure.to_string().contains("`tfseek convert`"), "{failure}");
    }
}
