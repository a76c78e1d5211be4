//! The report of `tfseek epoch`, as text and as JSON.

use crate::bytes::Size;
use crate::console::{BOLD, Console, DIM};
use crate::epoch::RunStats;
use crate::exit::Outcome;
use crate::text::{count, duration};
use serde_json::{Value, json};
use std::time::Duration;
use tfseek::io::Traffic;
use tfseek::order::LastBatch;

/// The contents of the report.
pub(crate) struct EpochReport<'a> {
    /// Description of the order with its design effect.
    pub(crate) describe: String,
    /// Description of the order without it.
    pub(crate) summary: String,
    /// Print the design effect as well.
    pub(crate) full: bool,
    pub(crate) records: u64,
    pub(crate) shards: u64,
    /// Samples per batch over all ranks.
    pub(crate) global_batch: u64,
    /// Samples from the start of the run to the end of the epoch, over all ranks, without padding.
    pub(crate) samples: u64,
    /// Samples of this rank among them, with padding.
    pub(crate) rank_samples: u64,
    pub(crate) last_batch: LastBatch,
    /// Length of a saved state.
    pub(crate) state_bytes: u64,
    pub(crate) epoch: u64,
    pub(crate) rank: u64,
    pub(crate) ranks: u64,
    pub(crate) verify: String,
    /// Number of steps from the start of the run to the end of the epoch.
    pub(crate) steps_of: u64,
    /// Number of threads that made batches at the end. 0: the main thread.
    pub(crate) threads: usize,
    /// Warnings: objects with `kind`, `path` and `message`.
    pub(crate) warnings: Value,
    pub(crate) stats: &'a RunStats,
    /// The requests for objects. `None` for files.
    pub(crate) traffic: Option<Traffic>,
}

impl EpochReport<'_> {
    /// Describes the last batch of an epoch that has one.
    fn last_batch(&self) -> Option<String> {
        let rest = self.samples % self.global_batch.max(1);
        let all = if self.ranks == 1 { "" } else { " on all ranks" };
        let samples = |n| format!("{}{all}", count(n, "sample"));
        if self.samples == 0 || rest == 0 && self.last_batch != LastBatch::Continuous {
            return (self.samples > 0).then(|| "full".to_owned());
        }
        Some(match self.last_batch {
            LastBatch::Drop => format!("{} dropped", samples(rest)),
            LastBatch::Pad => format!("padded with {}", samples(self.global_batch - rest)),
            LastBatch::Short => format!("short, {}", samples(rest)),
            LastBatch::Continuous => "continues with the next epoch".to_owned(),
        })
    }

    fn per_second(&self, count: u64) -> f64 {
        count as f64 / self.stats.time.as_secs_f64().max(1e-9)
    }

    pub(crate) fn json(&self) -> Value {
        let stats = self.stats;
        let seconds = |time: Option<Duration>| time.map(|time| time.as_secs_f64());
        let mut all = json!({
            "order": self.describe,
            "records": self.records,
            "shards": self.shards,
            "global_batch_size": self.global_batch,
            "rank_samples": self.rank_samples,
            "state_bytes": self.state_bytes,
            "epoch": self.epoch,
            "rank": self.rank,
            "world_size": self.ranks,
            "verify": self.verify,
            "threads": self.threads,
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
            ("traffic", self.traffic.as_ref().map(traffic_json)),
        ];
        for (name, value) in optional {
            if let (Some(value), Some(all)) = (value, all.as_object_mut()) {
                all.insert(name.to_owned(), value);
            }
        }
        all
    }

    /// Returns the lines about the epoch as it was planned.
    fn plan_rows(&self, size: impl Fn(u64) -> Size) -> ReportRows {
        let ranks = self.ranks;
        let records = count(self.records, "record");
        let shards = count(self.shards, "shard");
        let batch = self.global_batch;
        let each =
            if ranks == 1 { String::new() } else { format!(", {} on each rank", batch / ranks.max(1)) };
        let mut rows = vec![
            ("dataset", format!("{records} in {shards}")),
            ("steps", format!("{} of {}", self.stats.steps, self.steps_of)),
            ("batch size", format!("{batch}{each}")),
        ];
        if ranks > 1 {
            rows.push(("this rank", format!("{} of {}", self.rank_samples, count(self.samples, "sample"))));
        }
        rows.extend(self.last_batch().map(|text| ("last batch", text)));
        rows.push(("saved state", size(self.state_bytes).to_string()));
        rows
    }

    /// Returns the lines about the run.
    fn run_rows(&self, size: impl Fn(u64) -> Size) -> ReportRows {
        let stats = self.stats;
        let mut rows =
            vec![("examples", format!("{}, {:.0}/s", stats.examples, self.per_second(stats.examples)))];
        if stats.padding > 0 {
            rows.push(("padding", format!("{} of them", stats.padding)));
        }
        if stats.skipped.count > 0 {
            rows.push(("skipped", stats.skipped.count.to_string()));
        }
        let speed = self.per_second(stats.payload) / 1e9;
        let payload = size(stats.payload);
        rows.push(("payload", format!("{payload}, {speed:.3} GB/s, verified: {}", self.verify)));
        rows.push(("time", duration(stats.time)));
        rows.push(("threads", self.threads.to_string()));
        rows.extend(stats.cpu.map(|cpu| ("cpu", duration(cpu))));
        rows.extend(stats.first.map(|first| ("first batch", format!("after {}", duration(first)))));
        let quantile = |share| stats.step_times.quantile(share);
        if let (Some(p50), Some(p99), Some(max)) = (quantile(0.5), quantile(0.99), stats.step_times.max()) {
            let [p50, p99, max, stalled] = [p50, p99, max, stats.stalled].map(duration);
            rows.push(("step", format!("p50 {p50}, p99 {p99}, max {max}")));
            let n = stats.stalls;
            rows.push(("stalls", if n == 0 { "0".to_owned() } else { format!("{n}, {stalled}") }));
        }
        rows
    }
}

fn traffic_json(traffic: &Traffic) -> Value {
    let [p50, p90, p99] = traffic.latency.map(|time| time.as_secs_f64());
    json!({
        "requests": traffic.requests,
        "bytes": traffic.bytes,
        "repeated": traffic.repeated,
        "cached": traffic.cached,
        "cached_bytes": traffic.cached_bytes,
        "held_bytes": traffic.held,
        "waits": traffic.waits,
        "wait_seconds": traffic.waited.as_secs_f64(),
        "latency_p50_seconds": p50,
        "latency_p90_seconds": p90,
        "latency_p99_seconds": p99,
    })
}

pub(crate) fn print(report: &EpochReport<'_>, console: &mut Console) -> Outcome {
    let bold = console.style(BOLD);
    let dim = console.style(DIM);
    console.print(format_args!(
        "{bold}epoch {}, rank {} of {}{bold:#}{dim}, {}{dim:#}\n",
        report.epoch, report.rank, report.ranks, report.summary
    ))?;
    let exact = console.global.bytes;
    let size = |bytes: u64| Size { bytes, exact };
    let mut rows = report.plan_rows(size);
    rows.extend(report.run_rows(size));
    rows.extend(report.traffic.iter().flat_map(|traffic| traffic_rows(traffic, size)));
    let memory = report.stats.memory.peak;
    if let (Some(peak), Some(anonymous), Some(tables)) =
        (memory.resident, memory.anonymous, memory.page_tables)
    {
        let [peak, anonymous, tables] = [peak, anonymous, tables].map(size);
        rows.push(("memory", format!("peak {peak}, anonymous {anonymous}, page tables {tables}")));
    }
    rows.push(("sum", format!("{:016x}", report.stats.sum)));
    if report.full {
        rows.push(("order", report.describe.clone()));
    }
    for (name, value) in rows {
        console.print(format_args!("  {dim}{name:11}{dim:#}  {value}\n"))?;
    }
    Ok(())
}

/// The lines of the report: a name, and a value.
type ReportRows = Vec<(&'static str, String)>;

/// Returns the lines about the requests for objects.
fn traffic_rows(traffic: &Traffic, size: impl Fn(u64) -> Size) -> ReportRows {
    let requests = count(traffic.requests, "request");
    let bytes = size(traffic.bytes);
    let repeated = match traffic.repeated {
        0 => String::new(),
        n => format!(", {n} repeated"),
    };
    let mut rows = vec![("requests", format!("{requests}, {bytes}{repeated}"))];
    if traffic.requests > 0 {
        let [p50, p90, p99] = traffic.latency.map(duration);
        rows.push(("latency", format!("p50 {p50}, p90 {p90}, p99 {p99}")));
    }
    if traffic.cached > 0 {
        let pieces = count(traffic.cached, "piece");
        rows.push(("cache", format!("{pieces}, {}", size(traffic.cached_bytes))));
    }
    rows.push(("waits", format!("{}, {}", traffic.waits, duration(traffic.waited))));
    rows.push(("held", size(traffic.held).to_string()));
    rows
}
