//! `tfseek parse`: parses records into arrays by a schema.
//!
//! Batches continue across files. If a record cannot be parsed, the batches printed before it remain. An archive gets its name only
//! when it is complete.

use crate::args::{self, GlobalArgs};
use crate::console::Console;
use crate::exit::{Failure, Outcome};
use crate::output::arrays;
use crate::records;
use crate::{outputs, progress, text};
use indicatif::ProgressBar;
use std::path::{Path, PathBuf};
use tfseek::batch::{Batch, BatchParser, Row};
use tfseek::{At, Schema};
use tfseek_tools::NpzWriter;

pub(crate) fn run(args: &args::ParseArgs, global: &GlobalArgs, console: &mut Console) -> Outcome {
    let paths = records::resolve(&args.paths, console)?;
    let schema = schema(&args.schema)?;
    let mut output = match &args.out {
        Some(out) => {
            let inputs = paths.iter().chain([&args.schema]).map(PathBuf::as_path);
            outputs::check_distinct([(out.as_path(), out.as_path())], inputs)?;
            outputs::check_replace(out, args.force)?;
            BatchOutput::Npz(Box::new(NpzWriter::create(out)?))
        }
        None => BatchOutput::Stdout(console),
    };
    let bar = progress::bytes(global, "parsing", progress::total_size(&paths));
    let outcome = parse_all(args, &paths, &schema, &mut output, &bar);
    bar.finish_and_clear();
    match (outcome?, output) {
        (_, BatchOutput::Stdout(_)) => Ok(()),
        ((records, batches), BatchOutput::Npz(npz)) => {
            let out = npz.finish()?;
            let batches = if batches == 1 { "1 batch".to_owned() } else { format!("{batches} batches") };
            let records = text::count(records, "record");
            console.note(format_args!("{}: {records} in {batches}", out.display()));
            Ok(())
        }
    }
}

/// Reads the schema in a file.
pub(super) fn schema(path: &Path) -> Outcome<Schema> {
    text::parse_file(path, "a schema", Schema::from_json)
}

/// Destination of the parsed batches.
enum BatchOutput<'a> {
    Stdout(&'a mut Console),
    Npz(Box<NpzWriter>),
}

impl BatchOutput<'_> {
    fn write(&mut self, k: u64, batch: &Batch, sequence: bool, single: bool) -> Outcome {
        match self {
            BatchOutput::Npz(npz) => Ok(npz.batch(k, batch, sequence)?),
            BatchOutput::Stdout(console) => {
                arrays::print(console.out(), batch, sequence, single).map_err(Failure::Stdout)?;
                console.end_record()
            }
        }
    }
}

/// A record of the next batch.
#[derive(Default)]
struct PendingRow {
    payload: Vec<u8>,
    path: PathBuf,
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

/// Parses the records and writes the batches. Returns the number of records and of batches.
fn parse_all(
    args: &args::ParseArgs,
    paths: &[PathBuf],
    schema: &Schema,
    output: &mut BatchOutput<'_>,
    bar: &ProgressBar,
) -> Outcome<(u64, u64)> {
    let parser = BatchParser::new(schema);
    let size = if args.single { 1 } else { args.batch_size.get() };
    // The first `pending` rows belong to the next batch. The others keep their memory for later batches.
    let mut rows: Vec<PendingRow> = Vec::new();
    let mut pending = 0;
    let (mut seen, mut taken, mut done) = (0u64, 0u64, 0u64);
    let max_records = args.n.unwrap_or(u64::MAX);
    let mut flush = |rows: &[PendingRow]| -> Outcome {
        let batch = match (args.single, rows) {
            (_, []) => return Ok(()),
            (true, [row]) => parser.parse_single(row)?,
            _ => parser.parse(rows)?,
        };
        output.write(done, &batch, schema.is_sequence(), args.single)?;
        done += 1;
        Ok(())
    };
    for path in paths {
        if taken >= max_records {
            break;
        }
        let mut stream = records::stream(path, args.limit)?;
        while taken < max_records
            && let Some(record) = stream.next()?
        {
            seen += 1;
            if seen <= args.skip {
                continue;
            }
            if pending == rows.len() {
                rows.push(PendingRow::default());
            }
            if let Some(row) = rows.get_mut(pending) {
                let at = record.at();
                row.payload.clear();
                row.payload.extend_from_slice(record.payload());
                row.path = records::name(path);
                (row.i, row.offset) = (at.record.unwrap_or(0), at.offset.unwrap_or(0));
            }
            pending += 1;
            taken += 1;
            if pending == size {
                flush(&rows)?;
                pending = 0;
            }
        }
        bar.inc(progress::total_size(std::slice::from_ref(path)));
    }
    flush(rows.get(..pending).unwrap_or_default())?;
    Ok((taken, done))
}
