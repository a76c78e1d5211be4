//! What a run through an epoch came to, for people and as JSON.

use crate::args::Global;
use crate::bytes::Size;
use crate::console::{BOLD, Console, DIM};
use crate::epoch::Ran;
use crate::exit::Outcome;
use serde_json::{Value, json};
use std::time::Duration;

/// All there is to say.
pub(crate) struct Report<'a> {
    /// The order, in words.
    pub(crate) describe: String,
    pub(crate) epoch: u64,
    pub(crate) rank: u64,
    pub(crate) ranks: u64,
    pub(crate) verify: &'static str,
    /// Steps that were to be had.
    pub(crate) steps_of: u64,
    /// Objects of `kind`, `path` and `message`.
    pub(crate) warnings: Value,
    pub(crate) ran: &'a Ran,
}

impl Report<'_> {
    fn per_second(&self, what: u64) -> f64 {
        what as f64 / self.ran.time.as_secs_f64().max(1e-9)
    }

    pub(crate) fn json(&self) -> Value {
        let ran = self.ran;
        let seconds = |time: Option<Duration>| time.map(|time| time.as_secs_f64());
        let mut all = json!({
            "order": self.describe,
            "epoch": self.epoch,
            "rank": self.rank,
            "world_size": self.ranks,
            "verify": self.verify,
            "steps": ran.steps,
            "examples": ran.examples,
            "padding": self.ran.padding,
            "skipped": ran.skipped.count,
            "seconds": ran.time.as_secs_f64(),
            "examples_per_second": self.per_second(ran.examples),
            "payload_bytes": self.ran.payload,
            "gb_per_second": self.per_second(self.ran.payload) / 1e9,
            "first_batch_seconds": seconds(ran.first),
            "stalls": ran.stalls,
            "stall_seconds": ran.stalled.as_secs_f64(),
            "step_p50_seconds": seconds(ran.step_times.quantile(0.5)),
            "step_p99_seconds": seconds(ran.step_times.quantile(0.99)),
            "step_max_seconds": seconds(ran.step_times.max()),
            "sum": format!("{:016x}", ran.sum),
            "warnings": self.warnings,
        });
        // What the system does not tell is not there.
        let memory = ran.watch.memory;
        let told = [
            ("cpu_seconds", seconds(ran.cpu).map(Value::from)),
            ("peak_bytes", memory.resident.map(Value::from)),
            ("peak_anonymous_bytes", memory.anonymous.map(Value::from)),
            ("page_table_bytes", memory.page_tables.map(Value::from)),
        ];
        for (name, value) in told {
            if let (Some(value), Some(all)) = (value, all.as_object_mut()) {
                all.insert(name.to_owned(), value);
            }
        }
        all
    }
}

pub(crate) fn print(report: &Report<'_>, global: &Global, console: &mut Console) -> Outcome {
    let (bold, dim) = (console.style(BOLD), console.style(DIM));
    let ran = report.ran;
    let size = |bytes: u64| Size { bytes, exact: global.bytes };
    console.print(format_args!(
        "{bold}epoch {}, rank {} of {}{bold:#}{dim}, {}{dim:#}\n",
        report.epoch, report.rank, report.ranks, report.describe
    ))?;
    let mut rows = vec![
        ("steps", format!("{} of {}", ran.steps, report.steps_of)),
        ("examples", format!("{}, {:.0}/s", ran.examples, report.per_second(ran.examples))),
    ];
    if report.ran.padding > 0 {
        rows.push(("padding", format!("{} of them", report.ran.padding)));
    }
    if ran.skipped.count > 0 {
        rows.push(("skipped", ran.skipped.count.to_string()));
    }
    let speed = report.per_second(report.ran.payload) / 1e9;
    rows.push((
        "payload",
        format!("{}, {speed:.3} GB/s, verified: {}", size(report.ran.payload), report.verify),
    ));
    rows.push(("time", format!("{:.2?}", ran.time)));
    rows.extend(ran.cpu.map(|cpu| ("cpu", format!("{cpu:.2?}"))));
    rows.extend(ran.first.map(|first| ("first batch", format!("after {first:.2?}"))));
    let quantile = |share| ran.step_times.quantile(share);
    if let (Some(p50), Some(p99), Some(max)) = (quantile(0.5), quantile(0.99), ran.step_times.max()) {
        rows.push(("step", format!("p50 {p50:.2?}, p99 {p99:.2?}, max {max:.2?}")));
        let stalled = ran.stalled;
        let stalls = if ran.stalls == 0 { "0".to_owned() } else { format!("{}, {stalled:.2?}", ran.stalls) };
        rows.push(("stalls", stalls));
    }
    let memory = ran.watch.memory;
    if let (Some(peak), Some(own), Some(tables)) = (memory.resident, memory.anonymous, memory.page_tables) {
        let (peak, own, tables) = (size(peak), size(own), size(tables));
        rows.push(("memory", format!("peak {peak}, anonymous {own}, page tables {tables}")));
    }
    rows.push(("sum", format!("{:016x}", ran.sum)));
    for (name, value) in rows {
        console.print(format_args!("  {dim}{name:11}{dim:#}  {value}\n"))?;
    }
    Ok(())
}
