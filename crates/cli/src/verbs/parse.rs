//! `tfseek parse`: parses records into arrays by a schema.
//!
//! Batches continue across files. If a record cannot be parsed, the batches printed before it remain.

use crate::args::{self, PathsArgs, ReadArgs};
use crate::console::Console;
use crate::damage::SkippedErrors;
use crate::exit::{Failure, Outcome};
use crate::output::arrays;
use crate::progress::FileProgress;
use crate::records;
use crate::split::InputFile;
use crate::{kept, progress, text};
use clap::Args;
use indicatif::ProgressBar;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tfseek::batch::{BatchParser, Row};
use tfseek::frame::OVERHEAD;
use tfseek::{At, Error, Record, Schema};
use tfseek_tools::tfx;

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
    /// Number of records per batch; the last batch may have fewer
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
}

pub(crate) fn run(args: &ParseArgs, console: &mut Console) -> Outcome {
    let paths = records::resolve(&args.paths, args.read, console)?;
    let schema = schema(&args.schema)?;
    let bar = progress::bytes(console, "parsing", progress::total_size(&paths));
    let mut batches = Batches {
        args,
        parser: BatchParser::new(&schema),
        is_sequence: schema.is_sequence(),
        rows: Vec::new(),
        pending: 0,
        skipped: SkippedErrors::default(),
    };
    let parsed = batches.parse_all(&paths, &bar, console);
    progress::end(&bar, parsed.is_ok());
    parsed?;
    batches.skipped.report(console)
}

/// Reads the columns of the schema in a file.
pub(super) fn schema(path: &Path) -> Outcome<Schema> {
    let text = text::read_file(path, "a schema")?;
    tfx::read_columns(&text).map_err(|e| text::refused_schema(path, e))
}

/// A record of the next batch.
struct PendingRow {
    payload: Vec<u8>,
    path: Arc<Path>,
    i: u64,
    offset: u64,
}

impl Row for PendingRow {
    fn payload(&self) -> &[u8] {
        &self.payload
    }

    fn at(&self) -> At<'_> {
        At::new(&self.path, self.i, self.offset)
    }
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

/// The records of the next batch, and the errors of those that were left out.
struct Batches<'a> {
    args: &'a ParseArgs,
    parser: BatchParser,
    is_sequence: bool,
    /// The first `pending` rows belong to the next batch. The others keep their memory for later batches.
    rows: Vec<PendingRow>,
    pending: usize,
    skipped: SkippedErrors,
}

impl Batches<'_> {
    /// Parses the records of the files and prints the batches.
    fn parse_all(&mut self, paths: &[InputFile], bar: &ProgressBar, console: &mut Console) -> Outcome {
        let args = self.args;
        let size = if args.single { 1 } else { args.batch_size.get() };
        let max_records = args.n.unwrap_or(u64::MAX);
        let mut seen = 0u64;
        let mut taken = 0u64;
        for path in paths {
            if taken >= max_records {
                break;
            }
            let mut stream = records::stream(path, args.read)?;
            let mut progress = FileProgress::new(bar, path, stream.compression());
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
                self.add(&record, &name)?;
                taken += 1;
                if self.pending == size {
                    taken -= self.flush(false, console)?;
                }
            }
        }
        if self.pending > 0 {
            self.flush(true, console)?;
        }
        Ok(())
    }

    /// Copies a record to the next batch.
    fn add(&mut self, record: &Record<'_>, path: &Arc<Path>) -> tfseek::Result<()> {
        let at = record.at();
        if self.pending == self.rows.len() {
            self.rows.try_reserve(1).map_err(|e| Error::from(e).at(at))?;
            self.rows.push(PendingRow { payload: Vec::new(), path: path.clone(), i: 0, offset: 0 });
        }
        if let Some(row) = self.rows.get_mut(self.pending) {
            row.payload.clear();
            row.payload.try_reserve(record.payload().len()).map_err(|e| Error::from(e).at(at))?;
            row.payload.extend_from_slice(record.payload());
            row.path = path.clone();
            row.i = at.record.unwrap_or(0);
            row.offset = at.offset.unwrap_or(0);
        }
        self.pending += 1;
        Ok(())
    }

    /// Prints the pending rows as a batch. Rows that cannot be parsed are left out, and the others are kept
    /// for the next batch, unless this is the last. Returns the number of rows that were left out.
    fn flush(&mut self, is_last: bool, console: &mut Console) -> Outcome<u64> {
        let args = self.args;
        let all = self.pending;
        loop {
            let (rows, _) = self.rows.split_at_mut(self.pending);
            if !args.single {
                self.parser.unknown_names(rows)?.iter().for_each(kept::of_stream);
            }
            let parsed = match &*rows {
                [row] if args.single => self.parser.parse_single(row),
                rows => self.parser.parse(rows),
            };
            match parsed {
                Err(e) if args.read.skips() && e.is_data() => {
                    let kept = leave_out(&self.parser, rows, &mut self.skipped)?;
                    if kept == self.pending {
                        return Err(e.into());
                    }
                    self.pending = kept;
                    if kept == 0 || !is_last {
                        return Ok((all - kept) as u64);
                    }
                }
                parsed => {
                    arrays::print(console.out(), &parsed?, self.is_sequence, args.single)
                        .map_err(Failure::Stdout)?;
                    console.end_record()?;
                    let left_out = all - self.pending;
                    self.pending = 0;
                    return Ok(left_out as u64);
                }
            }
        }
    }
}
