//! The page of a report.

use super::html::Html;
use super::{samples, tables};
use crate::set::ViewSet;
use crate::viewer::{ViewError, ViewOptions};
use serde_json::Value;
use std::ops::ControlFlow;
use tfseek::{Damage, Filter};
use tfseek_tools::grep::{Grep, GrepOptions};
use tfseek_tools::sample::Random;
use tfseek_tools::stats::{StatsOptions, StatsProgress};
use tfseek_tools::thousands;

/// Number of records in a report.
const SAMPLES: u64 = 60;
/// Seed of their choice.
const SEED: u64 = 0;
/// Maximum number of matches from which records are drawn.
const MAX_MATCHES: usize = 1_000_000;

/// The start of the page. Browsers that read it run no scripts and send no requests.
const HEAD: &str = include_str!("head.html");
const STYLE: &str = include_str!("report.css");

/// Returns a report of the records of a set that meet a condition, as one HTML page: statistics, schema, and 60 records. All records are read. `report`
/// is as for [`StatsOptions::run_dataset`].
///
/// The page has no scripts and requests nothing. Images of up to 256 kB are embedded, 8 MB in all. Other images are named.
///
/// # Errors
/// The statistics fail, or the options have a role that does not exist.
pub fn report(
    set: ViewSet,
    condition: Option<&Filter>,
    options: &ViewOptions,
    report: &dyn StatsProgress,
) -> Result<String, ViewError> {
    let failed = |e: &dyn std::fmt::Display| ViewError::Data(e.to_string());
    let threads = options.thread_count();
    let dataset = set.dataset().clone();
    let condition =
        condition.map(|filter| set.features().filter(filter)).transpose().map_err(|e| failed(&e))?;
    let condition = condition.as_ref();
    let stats = StatsOptions {
        filter: condition.cloned(),
        threads: Some(threads),
        damage: Damage::Skip,
        kind: set.specified_kind(),
        ..StatsOptions::default()
    };
    let mut stats = stats.run_dataset(&dataset, None, None, report).map_err(|e| failed(&e))?;
    stats.value_names = set.features().label_names();
    let json: Value = serde_json::from_str(&stats.json()).map_err(|e| failed(&e))?;
    let matches =
        condition.map(|filter| matches(&set, filter, threads)).transpose().map_err(|e| failed(&e))?;
    let drawn: Vec<u64> = match &matches {
        Some(matches) => Random::new(SEED)
            .draw(SAMPLES, matches.len() as u64)
            .filter_map(|k| matches.get(usize::try_from(k).ok()?).copied())
            .collect(),
        None => Random::new(SEED).draw(SAMPLES, dataset.len()).collect(),
    };
    let name = set.name().to_owned();
    let (ranges, damaged) = set.damage();
    let api = options.api(vec![set])?;

    let mut page = Html::default();
    page.markup(HEAD);
    page.element("title", &name);
    page.nested("style", |page| page.markup(STYLE));
    page.markup("</head><body>");
    page.element("h1", &name);
    let shards = match dataset.shards().len() {
        1 => "1 shard".to_owned(),
        n => format!("{} shards", thousands(n as u64)),
    };
    page.element(
        "p class=\"dim\"",
        format_args!(
            "{} records in {shards}, tfseek {}",
            thousands(dataset.len()),
            env!("CARGO_PKG_VERSION")
        ),
    );
    if let Some(filter) = condition {
        page.element(
            "p",
            format_args!(
                "Statistics and records are those that meet: {filter} ({} records)",
                thousands(stats.records())
            ),
        );
    }
    if ranges > 0 {
        page.element(
            "p",
            format_args!("{} bytes in {ranges} damaged ranges are left out.", thousands(damaged)),
        );
    }
    if let Some(first) = &stats.first_skipped {
        page.element(
            "p",
            format_args!("{} records are left out. The first: {first}", thousands(stats.skipped)),
        );
    }
    page.element("h2", "Features");
    tables::features(&mut page, &json);
    page.element("h2", "Schema");
    tables::schema(&mut page, &api.schema());
    page.element("h2", "Records");
    if drawn.is_empty() {
        page.element("p", "There are no records.");
    } else {
        page.element(
            "p class=\"dim\"",
            format_args!("{} records drawn at random, seed {SEED}.", drawn.len()),
        );
        samples::grid(&mut page, &api, &drawn);
    }
    page.markup("</body></html>\n");
    Ok(page.finish())
}

/// Returns the numbers of the first matches of a condition.
fn matches(set: &ViewSet, filter: &Filter, threads: usize) -> tfseek::Result<Vec<u64>> {
    let options = GrepOptions { damage: Damage::Skip, threads: Some(threads), ..GrepOptions::default() };
    let mut numbers = Vec::new();
    Grep::filter(filter, options).run_dataset(set.dataset(), &|s| set.kind_of(s), &mut |unit| {
        let left = MAX_MATCHES.saturating_sub(numbers.len());
        numbers.extend(unit.result.matches.iter().filter_map(|found| found.number).take(left));
        if numbers.len() < MAX_MATCHES { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    })?;
    Ok(numbers)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tfseek::{Dataset, ExampleBuilder, Writer};

    const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\x01\x40\0\0\0\xf0\x08\x02\0\0\0";

    fn written(dir: &std::path::Path, payloads: impl IntoIterator<Item = Vec<u8>>) -> ViewSet {
        let path = dir.join("a.tfrecord");
        let mut writer = Writer::create(&path).unwrap();
        payloads.into_iter().for_each(|payload| writer.write(&payload).unwrap());
        writer.close().unwrap();
        ViewSet::new(Dataset::open(&path).unwrap(), "<images>").unwrap()
    }

    #[test]
    fn a_report_has_statistics_schema_and_samples_and_runs_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let hostile = "<script>alert(1)</script><img src=x onerror=alert(1)>";
        let payload = |i: i64| {
            ExampleBuilder::new()
                .bytes("image/encoded", [PNG])
                .float("image/object/bbox/xmin", [0.25])
                .float("image/object/bbox/xmax", [0.5])
                .float("image/object/bbox/ymin", [0.25])
                .float("image/object/bbox/ymax", [f32::NAN])
                .int64("label", [i % 10])
                .bytes(hostile, [hostile.as_bytes()])
                .encode()
                .unwrap()
        };
        let run = |condition: Option<&str>| {
            let set = written(dir.path(), (0..200).map(payload));
            let condition: Option<Filter> = condition.map(|text| text.parse().unwrap());
            report(set, condition.as_ref(), &ViewOptions::new(), &|_| Ok(())).unwrap()
        };
        let page = run(None);
        assert_eq!(page.matches("<figure>").count(), 60);
        assert_eq!(page.matches("data:image/png;base64,").count(), 60);
        assert!(
            !page.contains("<script")
                && !page.contains("<img src=x")
                && !page.contains("http://")
                && !page.contains("https://")
        );
        assert!(
            page.contains("&lt;images&gt;")
                && page.contains("200 records in 1 shard,")
                && page.contains("FixedLenFeature")
        );
        assert_eq!(run(Some("label == 3 and record < 100")).matches("<figure>").count(), 10);
        assert!(run(Some("label == 77")).contains("There are no records."));
    }

    #[test]
    fn an_empty_set_has_a_report() {
        let dir = tempfile::tempdir().unwrap();
        let page = report(written(dir.path(), []), None, &ViewOptions::new(), &|_| Ok(())).unwrap();
        assert!(page.contains("There are no records."));
    }
}
