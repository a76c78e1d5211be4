//! `tfseek order`: prints the records of a step, or the steps that contain a record. Both are computed, and
//! no record is read.
//!
//! ```text
//! epoch  step  position  record
//!     3     7       448     817  record 317 of b.tfrecord
//!     3     7       449      12  padding
//! ```
//!
//! Record numbers count over all files, as `get` takes them. The number in the file is printed if it differs.
//! In JSON the first is `index` and the second is `record`.

use crate::args::{AccessArgs, PathsArgs, ShareArgs};
use crate::console::{Console, DIM};
use crate::dataset;
use crate::exit::{Failure, Outcome};
use crate::text::{count, widths};
use clap::Args;
use serde_json::{Value, json};
use std::ops::Range;
use std::path::Path;
use tfseek::Dataset;
use tfseek::order::{Order, RankShare, Run, StepRow};

#[derive(Debug, Args)]
pub(crate) struct OrderArgs {
    #[command(flatten)]
    pub(crate) paths: PathsArgs,
    #[command(flatten)]
    pub(crate) share: ShareArgs,
    #[command(flatten)]
    pub(crate) query: QueryArgs,
    /// With --step: print only the record numbers, as `tfseek get` takes them
    #[arg(long, conflicts_with_all = ["json", "record", "describe"])]
    pub(crate) ids: bool,
    /// Print one JSON object per line; `index` is the record's number over all files, `record` its number in
    /// the file
    #[arg(long, conflicts_with = "describe")]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) access: AccessArgs,
}

/// Query to an order.
#[derive(Clone, Debug, Args)]
#[group(required = true, multiple = false)]
pub(crate) struct QueryArgs {
    /// Print the samples of this step, from 0, or of the steps of a range such as 3..8, without its end
    #[arg(long, value_name = "K", value_parser = step_range)]
    pub(crate) step: Option<Range<u64>>,
    /// Print the steps and ranks that contain this record, numbered over all files as for `tfseek get`;
    /// padding is ignored
    #[arg(long, value_name = "I")]
    pub(crate) record: Option<u64>,
    /// Describe the order and its cost
    #[arg(long)]
    pub(crate) describe: bool,
}

fn step_range(text: &str) -> Result<Range<u64>, String> {
    let number = |text: &str| text.parse::<u64>().map_err(|e| e.to_string());
    let range = match text.split_once("..") {
        Some((first, end)) => number(first)?..number(end)?,
        None => {
            let first = number(text)?;
            first..first.checked_add(1).ok_or("expected a smaller number")?
        }
    };
    if range.is_empty() { Err("expected a range with a step".into()) } else { Ok(range) }
}

/// Maximum number of samples that are looked up at once.
const CHUNK: u64 = 1024;

pub(crate) fn run(args: &OrderArgs, console: &mut Console) -> Outcome {
    let dataset = dataset::open(&args.paths, &args.access, args.share.read, console)?;
    let cursor = args.share.cursor(&dataset, console)?;
    let order = cursor.order();
    let share = cursor.share()?;
    if let Some(range) = &args.query.step {
        return steps(args, order, &share, range.clone(), &RecordLocations::of(&dataset), console);
    }
    if let Some(record) = args.query.record {
        return rows_of(args, order, &share, record, &RecordLocations::of(&dataset), console);
    }
    let batch = args.share.global_batch()?;
    let ranks = args.share.world_size.get();
    let each = match ranks {
        1 => String::new(),
        _ => format!(", {} for each of {ranks} ranks", batch / ranks),
    };
    let steps = count(share.steps(), "step");
    let samples = count(batch, "sample");
    console.print(format_args!("{}\n{steps} of {samples}{each}\n", order.describe(Some(batch))))
}

fn steps(
    args: &OrderArgs,
    order: &Order,
    share: &RankShare,
    range: Range<u64>,
    locations: &RecordLocations<'_>,
    console: &mut Console,
) -> Outcome {
    let first = range.start;
    if share.step(first).is_none() {
        return Err(Failure::usage(match share.steps() {
            0 => format!("no step {first}: there are none"),
            1 => format!("no step {first}: there is 1"),
            n => format!("no step {first}: there are {n}, and the last is {}", n - 1),
        }));
    }
    let end = range.end;
    let table = NumberTable::new(
        ["epoch", "step", "position", "record"],
        &[order.epoch(), end.min(share.steps().max(first + 1)) - 1, order.len(), order.records()],
    );
    if !args.json && !args.ids {
        table.head(console)?;
    }
    let chunks = |step| share.step(step).into_iter().flatten().flat_map(chunks);
    for (step, run) in
        range.take_while(|&k| share.step(k).is_some()).flat_map(|k| chunks(k).map(move |r| (k, r)))
    {
        for sample in order.samples([run])? {
            let epoch = sample.epoch;
            let position = sample.position;
            let record = sample.record;
            if args.ids {
                console.print(format_args!("{record}\n"))?;
            } else if args.json {
                let padding = sample.padding;
                let line = json!({"epoch": epoch, "step": step, "position": position, "padding": padding});
                console.print(format_args!("{}\n", locations.with_fields(record, line)?))?;
            } else {
                let (file, i) = locations.locate(record)?;
                let mut remark = String::new();
                if i != record {
                    remark = format!("  record {i} of {}", tfseek::error::printable(file));
                }
                if sample.padding {
                    remark += "  padding";
                }
                table.row([epoch, step, position, record], &remark, console)?;
            }
        }
    }
    Ok(())
}

/// Splits the positions of a step into chunks, which bounds the memory for a large batch.
fn chunks(run: Run) -> impl Iterator<Item = Run> {
    (0..run.len.div_ceil(CHUNK)).map(move |k| {
        let done = k * CHUNK;
        Run { start: run.start + done, len: (run.len - done).min(CHUNK), ..run }
    })
}

fn rows_of(
    args: &OrderArgs,
    order: &Order,
    share: &RankShare,
    record: u64,
    locations: &RecordLocations<'_>,
    console: &mut Console,
) -> Outcome {
    let rows = order.rows_of(record, share)?;
    if rows.is_empty() {
        console.note(format_args!(
            "tfseek: record {record} is in no step of epoch {} from the start position",
            order.epoch()
        ));
    }
    let max = |f: fn(&StepRow) -> u64| rows.iter().map(f).max().unwrap_or(0);
    let max_values = [order.epoch(), max(|row| row.step), max(|row| row.rank), max(|row| row.row)];
    let table = NumberTable::new(["epoch", "step", "rank", "row"], &max_values);
    if !args.json && !rows.is_empty() {
        table.head(console)?;
    }
    for StepRow { step, rank, row, .. } in rows {
        let epoch = order.epoch();
        if args.json {
            let line = json!({"epoch": epoch, "step": step, "rank": rank, "row": row});
            console.print(format_args!("{}\n", locations.with_fields(record, line)?))?;
        } else {
            table.row([epoch, step, rank, row], "", console)?;
        }
    }
    Ok(())
}

/// Maps record numbers over all files to a file and a number in it.
struct RecordLocations<'a> {
    dataset: &'a Dataset,
    paths: Vec<&'a Path>,
}

impl RecordLocations<'_> {
    fn of(dataset: &Dataset) -> RecordLocations<'_> {
        RecordLocations { dataset, paths: dataset.shards().map(|shard| shard.path).collect() }
    }

    /// Returns the file of record `i`, and the record's number in it.
    fn locate(&self, i: u64) -> tfseek::Result<(&Path, u64)> {
        let (s, record) = self.dataset.shard_of(i)?;
        Ok((self.paths.get(s).copied().unwrap_or(Path::new("")), record))
    }

    /// Adds the fields that identify record `index` to a line of JSON.
    fn with_fields(&self, index: u64, mut line: Value) -> tfseek::Result<Value> {
        let (file, record) = self.locate(index)?;
        if let Some(line) = line.as_object_mut() {
            line.insert("index".into(), index.into());
            line.insert("record".into(), record.into());
            if self.paths.len() > 1 {
                line.insert("file".into(), file.to_string_lossy().into());
            }
        }
        Ok(line)
    }
}

/// A table of four columns of numbers. The column widths are fixed before the first row is printed.
struct NumberTable {
    names: [&'static str; 4],
    widths: [usize; 4],
}

impl NumberTable {
    fn new(names: [&'static str; 4], max_values: &[u64; 4]) -> NumberTable {
        let digits = |n: u64| n.checked_ilog10().map_or(1, |log| log as usize + 1);
        NumberTable { names, widths: widths([names.map(str::len), max_values.map(digits)]) }
    }

    fn head(&self, console: &mut Console) -> Outcome {
        let dim = console.style(DIM);
        let ([a, b, c, d], [e, f, g, h]) = (self.widths, self.names);
        console.print(format_args!("{dim}{e:>a$}  {f:>b$}  {g:>c$}  {h:>d$}{dim:#}\n"))
    }

    fn row(&self, row: [u64; 4], remark: &str, console: &mut Console) -> Outcome {
        let ([a, b, c, d], [e, f, g, h]) = (self.widths, row);
        let dim = console.style(DIM);
        console.print(format_args!("{e:>a$}  {f:>b$}  {g:>c$}  {h:>d$}{dim}{remark}{dim:#}\n"))
    }
}
