//! The report of `tfseek epoch`, as text and as JSON.

use crate::args::GlobalArgs;
use crate::bytes::Size;
use crate::console::{BOLD, Console, DIM};
use crate::epoch::RunStats;
use crate::exit::Outcome;
use serde_json::{Value, json};
use std::time::Duration;

/// The contents of the report.
pub(crate) struct EpochReport<'a> {
    /// Description of the order.
    pub(crate) describe: String,
    pub(crate) epoch: u64,
    pub(crate) rank: u64,
    pub(crate) ranks: u64,
    pub(crate) verify: &'static str,
    /// Number of steps from the start of the run to the end of the epoch.
    pub(crate) steps_of: u64,
    /// Warnings: objects with `kind`, `path` and `message`.
    pub(crate) warnings: Value,
    pub(crate) stats: &'a RunStats,
}

impl EpochReport<'_> {
    fn per_second(&self, count: u64) -> f64 {
        count as f64 / self.stats.time.as_secs_f64().max(1e-9)
    }

    pub(crate) fn json(&self) -> Value {
        let stats = self.stats;
        let seconds = |time: Option<Duration>| time.map(|time| time.as_secs_f64());
        let mut all = json!({
            "order": self.describe,
            "epoch": self.epoch,
            "rank": self.rank,
            "world_size": self.ranks,
            "verify": self.verify,
            "steps": stats.steps,
            "examples": stats.examples,
            "padding": stats.padding,
            "skipped": stats.skipped.count,
            "seconds": stats.time.as_secs_f64(),
            "examples_per_second": self.per_second(stats.examples),
            "payload_bytes": stats.payload,
            "gb_per_second": self.per_second(stats.payload) / 1e9,
            "first_batch_seconds": seconds(stats.first),
            "stalls": stats.stalls,
            "stall_seconds": stats.stalled.as_secs_f64(),
            "step_p50_seconds": seconds(stats.step_times.quantile(0.5)),
            "step_p99_seconds": seconds(stats.step_times.quantile(0.99)),
            "step_max_seconds": seconds(stats.step_times.max()),
            "sum": format!("{:016x}", stats.sum),
            "warnings": self.warnings,
        });
        // Measurements that the system does not provide are omitted.
        let memory = stats.memory.peak;
        let optional = [
            ("cpu_seconds", seconds(stats.cpu).map(Value::from)),
            ("peak_bytes", memory.resident.map(Value::from)),
            ("peak_anonymous_bytes", memory.anonymous.map(Value::from)),
            ("page_table_bytes", memory.page_tables.map(Value::from)),
        ];
        for (name, value) in optional {
            if let (Some(value), Some(all)) = (value, all.as_object_mut()) {
                all.insert(name.to_owned(), value);
            }
        }
        all
    }
}

pub(crate) fn print(report: &EpochReport<'_>, global: &GlobalArgs, console: &mut Console) -> Outcome {
    let (bold, dim) = (console.style(BOLD), console.style(DIM));
    let stats = report.stats;
    let size = |bytes: u64| Size { bytes, exact: global.bytes };
    console.print(format_args!(
        "{bold}epoch {}, rank {} of {}{bold:#}{dim}, {}{dim:#}\n",
        report.epoch, report.rank, report.ranks, report.describe
    ))?;
    let mut rows = vec![
        ("steps", format!("{} of {}", stats.steps, report.steps_of)),
        ("examples", format!("{}, {:.0}/s", stats.examples, report.per_second(stats.examples))),
    ];
    if stats.padding > 0 {
        rows.push(("padding", format!("{} of them", stats.padding)));
    }
    if stats.skipped.count > 0 {
        rows.push(("skipped", stats.skipped.count.to_string()));
    }
    let speed = report.per_second(stats.payload) / 1e9;
    rows.push(("payload", format!("{}, {speed:.3} GB/s, verified: {}", size(stats.payload), report.verify)));
    rows.push(("time", format!("{:.2?}", stats.time)));
    rows.extend(stats.cpu.map(|cpu| ("cpu", format!("{cpu:.2?}"))));
    rows.extend(stats.first.map(|first| ("first batch", format!("after {first:.2?}"))));
    let quantile = |share| stats.step_times.quantile(share);
    if let (Some(p50), Some(p99), Some(max)) = (quantile(0.5), quantile(0.99), stats.step_times.max()) {
        rows.push(("step", format!("p50 {p50:.2?}, p99 {p99:.2?}, max {max:.2?}")));
        let stalled = stats.stalled;
        let stalls =
            if stats.stalls == 0 { "0".to_owned() } else { format!("{}, {stalled:.2?}", stats.stalls) };
        rows.push(("stalls", stalls));
    }
    let memory = stats.memory.peak;
    if let (Some(peak), Some(anonymous), Some(tables)) =
        (memory.resident, memory.anonymous, memory.page_tables)
    {
        let (peak, anonymous, tables) = (size(peak), size(anonymous), size(tables));
        rows.push(("memory", format!("peak {peak}, anonymous {anonymous}, page tables {tables}")));
    }
    rows.push(("sum", format!("{:016x}", stats.sum)));
    for (name, value) in rows {
        console.print(format_args!("  {dim}{name:11}{dim:#}  {value}\n"))?;
    }
    Ok(())
}
