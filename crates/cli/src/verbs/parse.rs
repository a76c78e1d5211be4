//! `tfseek parse`: records to arrays, as a schema says.
//!
//! Batches go over the files as if they were one. What was printed before a record that cannot be parsed stays; a file
//! of arrays appears when it is whole.

use crate::args::{self, Global};
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

pub(crate) fn run(args: &args::Parse, global: &Global, console: &mut Console) -> Outcome {
    let paths = records::resolve(&args.paths)?;
    let schema = schema(&args.schema)?;
    let mut sink = match &args.out {
        Some(out) => {
            let inputs = paths.iter().chain([&args.schema]).map(PathBuf::as_path);
            outputs::keep_apart([(out.as_path(), out.as_path())], inputs)?;
            outputs::may_replace(out, args.force)?;
            Sink::Npz(Box::new(NpzWriter::create(out)?))
        }
        None => Sink::Stdout(console),
    };
    let bar = progress::over(global, "parsing", progress::bytes_of(&paths));
    let outcome = batches(args, &paths, &schema, &mut sink, &bar);
    bar.finish_and_clear();
    match (outcome?, sink) {
        (_, Sink::Stdout(_)) => Ok(()),
        ((records, batches), Sink::Npz(npz)) => {
            let out = npz.finish()?;
            console.note(format_args!("{}: {records} records in {batches} batches", out.display()));
            Ok(())
        }
    }
}

/// The schema in a file.
pub(super) fn schema(path: &Path) -> Outcome<Schema> {
    text::parsed(path, "a schema", Schema::from_json)
}

/// Where batches go.
enum Sink<'a> {
    Stdout(&'a mut Console),
    Npz(Box<NpzWriter>),
}

impl Sink<'_> {
    fn put(&mut self, k: u64, batch: &Batch, sequence: bool, single: bool) -> Outcome {
        match self {
            Sink::Npz(npz) => Ok(npz.batch(k, batch, sequence)?),
            Sink::Stdout(console) => {
                arrays::print(console.out(), batch, sequence, single).map_err(Failure::Stdout)?;
                console.settle()
            }
        }
    }
}

/// A record that waits for its batch to be full.
#[derive(Default)]
struct Waiting {
    payload: Vec<u8>,
    path: PathBuf,
    i: u64,
    offset: u64,
}

impl Row for Waiting {
    fn payload(&self) -> &[u8] {
        &self.payload
    }

    fn at(&self) -> At<'_> {
        At::new(&self.path, self.i, self.offset)
    }
}

/// Parses all; gives how many records and batches there were.
fn batches(
    args: &args::Parse,
    paths: &[PathBuf],
    schema: &Schema,
    sink: &mut Sink<'_>,
    bar: &ProgressBar,
) -> Outcome<(u64, u64)> {
    let parser = BatchParser::new(schema);
    let size = if args.single { 1 } else { args.batch_size.get() };
    // The memory of a batch's rows is that of the next one's.
    let mut rows: Vec<Waiting> = Vec::new();
    let mut waiting = 0;
    let (mut seen, mut taken, mut done) = (0u64, 0u64, 0u64);
    let most = args.n.unwrap_or(u64::MAX);
    let mut flush = |rows: &[Waiting]| -> Outcome {
        let batch = match (args.single, rows) {
            (_, []) => return Ok(()),
            (true, [row]) => parser.parse_single(row)?,
            _ => parser.parse(rows)?,
        };
        sink.put(done, &batch, schema.is_sequence(), args.single)?;
        done += 1;
        Ok(())
    };
    for path in paths {
        if taken >= most {
            break;
        }
        let mut stream = records::stream(path, args.limit)?;
        while taken < most
            && let Some(record) = stream.next()?
        {
            seen += 1;
            if seen <= args.skip {
                continue;
            }
            if waiting == rows.len() {
                rows.push(Waiting::default());
            }
            if let Some(row) = rows.get_mut(waiting) {
                let at = record.at();
                row.payload.clear();
                row.payload.extend_from_slice(record.payload());
                row.path = records::name(path);
                (row.i, row.offset) = (at.record.unwrap_or(0), at.offset.unwrap_or(0));
            }
            waiting += 1;
            taken += 1;
            if waiting == size {
                flush(&rows)?;
                waiting = 0;
            }
        }
        bar.inc(progress::bytes_of(std::slice::from_ref(path)));
    }
    flush(rows.get(..waiting).unwrap_or_default())?;
    Ok((taken, done))
}
