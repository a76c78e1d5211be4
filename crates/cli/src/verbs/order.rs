//! `tfseek order`: which records a step has, and which steps have a record. Arithmetic; no record is read.
//!
//! ```text
//! epoch  step  position  record
//!     3     7       448     817  record 317 of b.tfrecord
//!     3     7       449      12  padding
//! ```
//!
//! Numbers of records are those over all files, which `get` takes; the number in the file is shown where it differs. As JSON the first
//! is `index`, the second `record`.

use crate::args::{self, Global};
use crate::console::{Console, DIM};
use crate::dataset::{self, Places};
use crate::exit::{Failure, Outcome};
use serde_json::{Value, json};
use tfseek::order::{Order, RankShare, Run};

/// Samples that are looked up before they are printed.
const CHUNK: u64 = 1024;

pub(crate) fn run(args: &args::Order, global: &Global, console: &mut Console) -> Outcome {
    let dataset = dataset::open(&args.paths, &args.access, args.share.limit, global, console)?;
    let cursor = args.share.cursor(&dataset, global)?;
    let (order, share) = (cursor.order(), cursor.share()?);
    if let Some(first) = args.question.step {
        return steps(args, order, &share, first, &Places::of(&dataset), console);
    }
    if let Some(record) = args.question.record {
        return rows_of(args, order, &share, record, &Places::of(&dataset), console);
    }
    let (batch, ranks) = (args.share.global_batch()?, args.share.world_size.get());
    let each = match ranks {
        1 => String::new(),
        _ => format!(", {} for each of {ranks} ranks", batch / ranks),
    };
    let steps = share.steps();
    console.print(format_args!("{}\n{steps} steps of {batch} samples{each}\n", order.describe(batch)))
}

fn steps(
    args: &args::Order,
    order: &Order,
    share: &RankShare,
    first: u64,
    places: &Places<'_>,
    console: &mut Console,
) -> Outcome {
    if share.step(first).is_none() {
        return Err(Failure::usage(match share.steps() {
            0 => format!("no step {first}: there are none"),
            n => format!("no step {first}: there are {n}, and the last is {}", n - 1),
        }));
    }
    let end = first.saturating_add(args.steps.get());
    let table = Table::new(
        ["epoch", "step", "position", "record"],
        &[
            order.epoch(),
            end.min(share.steps().max(first.saturating_add(1))) - 1,
            order.len(),
            order.records(),
        ],
    );
    if !args.json && !args.ids {
        table.head(console)?;
    }
    let parts = |step| share.step(step).into_iter().flatten().flat_map(parts);
    for (step, run) in
        (first..end).take_while(|&k| share.step(k).is_some()).flat_map(|k| parts(k).map(move |r| (k, r)))
    {
        for sample in order.samples([run])? {
            let (epoch, position, record) = (sample.epoch, sample.position, sample.record);
            if args.ids {
                console.print(format_args!("{record}\n"))?;
            } else if args.json {
                let padding = sample.padding;
                let line = json!({"epoch": epoch, "step": step, "position": position, "padding": padding});
                console.print(format_args!("{}\n", places.with(record, line)?))?;
            } else {
                let (file, i) = places.place(record)?;
                let mut remark = String::new();
                if i != record {
                    remark = format!("  record {i} of {}", file.display());
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

/// A step's positions in pieces, however large its batch.
fn parts(run: Run) -> impl Iterator<Item = Run> {
    (0..run.len.div_ceil(CHUNK)).map(move |k| {
        let done = k * CHUNK;
        Run { start: run.start + done, len: (run.len - done).min(CHUNK), ..run }
    })
}

fn rows_of(
    args: &args::Order,
    order: &Order,
    share: &RankShare,
    record: u64,
    places: &Places<'_>,
    console: &mut Console,
) -> Outcome {
    let rows = order.rows_of(record, share)?;
    if rows.is_empty() {
        console.note(format_args!(
            "tfseek: record {record} is in no step of epoch {} from here on",
            order.epoch()
        ));
    }
    let most = |f: fn(&tfseek::order::StepRow) -> u64| rows.iter().map(f).max().unwrap_or(0);
    let widest = [order.epoch(), most(|s| s.step), most(|s| s.rank), most(|s| s.row)];
    let table = Table::new(["epoch", "step", "rank", "place"], &widest);
    if !args.json && !rows.is_empty() {
        table.head(console)?;
    }
    for row in rows {
        let (epoch, step, rank, place) = (order.epoch(), row.step, row.rank, row.row);
        if args.json {
            let line = json!({"epoch": epoch, "step": step, "rank": rank, "place": place});
            console.print(format_args!("{}\n", places.with(record, line)?))?;
        } else {
            table.row([epoch, step, rank, place], "", console)?;
        }
    }
    Ok(())
}

impl Places<'_> {
    /// Adds the fields that identify record `index` to a line of JSON.
    fn with(&self, index: u64, mut line: Value) -> tfseek::Result<Value> {
        let (file, record) = self.place(index)?;
        if let Some(line) = line.as_object_mut() {
            line.insert("index".into(), index.into());
            line.insert("record".into(), record.into());
            if self.many() {
                line.insert("file".into(), file.to_string_lossy().into());
            }
        }
        Ok(line)
    }
}

/// Four columns of numbers, whose widths are known before the first row is printed.
struct Table {
    names: [&'static str; 4],
    widths: [usize; 4],
}

impl Table {
    fn new(names: [&'static str; 4], most: &[u64; 4]) -> Table {
        let digits = |n: u64| n.checked_ilog10().map_or(1, |log| log as usize + 1);
        let mut widths = names.map(str::len);
        for (width, &most) in widths.iter_mut().zip(most) {
            *width = (*width).max(digits(most));
        }
        Table { names, widths }
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
