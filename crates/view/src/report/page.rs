//! The page of a report.

use super::html::Html;
use super::{samples, tables};
use crate::api::inferred_schema;
use crate::assets::shared_style;
use crate::declared;
use crate::options::ViewOptions;
use crate::roles::SeenFeatures;
use crate::set::{ViewSet, bytes_of};
use crate::viewer::ViewError;
use serde_json::Value;
use std::ops::ControlFlow;
use tfseek::example::MessageKind;
use tfseek::{Damage, Filter};
use tfseek_tools::grep::{Grep, GrepOptions};
use tfseek_tools::sample::Random;
use tfseek_tools::sizes;
use tfseek_tools::stats::{Statistics, StatsOptions, StatsProgress};
use tfseek_tools::words::count;

/// Number of records in a report.
const SAMPLES: u64 = 60;
/// Seed of their choice.
const SEED: u64 = 0;
/// Maximum number of matches from which records are drawn.
const MAX_MATCHES: usize = 1_000_000;

/// The start of the page. Browsers that read it run no scripts and send no requests.
const HEAD: &str = include_str!("head.html");
const STYLE: &str = include_str!("report.css");

/// Returns a report of the records of a set that meet a condition, as one HTML page: statistics, schema, and
/// 60 records. All records are read. `report` is as for [`StatsOptions::run_dataset`].
///
/// The page has no scripts and requests nothing. Images of up to 256 kB are embedded, 8 MB in all. Other
/// images are named.
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
    let condition =
        condition.map(|filter| set.features.filter(filter)).transpose().map_err(|e| failed(&e))?;
    let condition = condition.as_ref();
    let stats = StatsOptions {
        filter: condition.cloned(),
        threads: Some(threads),
        damage: Damage::Skip,
        kind: set.kind,
        ..StatsOptions::default()
    };
    let mut stats = stats.run_dataset(&set.dataset, None, None, report).map_err(|e| failed(&e))?;
    stats.value_names = set.features.label_names();
    let json = tables::json(&stats);
    let drawn = draw(&set, condition, threads).map_err(|e| failed(&e))?;

    let mut page = Html::default();
    page.markup(HEAD);
    page.element("title", &set.name);
    let (shared, features) = shared_style();
    page.nested("style", |page| [shared, features, STYLE].into_iter().for_each(|rules| page.markup(rules)));
    page.markup("</head><body><main>");
    page.nested("header class=\"column\"", |page| header(page, &set, condition, &stats));
    let roles = declared::roles(&set, &SeenFeatures::of(&set), &options.roles);
    let roles = Value::Object(roles.map_err(ViewError::role)?);
    let section = |page: &mut Html, title: &str, content: &dyn Fn(&mut Html)| {
        page.nested("section class=\"panel\"", |page| {
            page.element("h2", title);
            content(page);
        });
    };
    section(&mut page, "Features", &|page| tables::features(page, &json));
    section(&mut page, "Schema", &|page| tables::schema(page, &inferred_schema(&set).unwrap_or_default()));
    section(&mut page, "Records", &|page| {
        if drawn.is_empty() {
            return page.element("p", "There are no records.");
        }
        page.element(
            "p class=\"muted\"",
            format_args!("{} records drawn at random, seed {SEED}.", drawn.len()),
        );
        samples::grid(page, &set, &roles, &drawn);
    });
    page.markup("</main></body></html>\n");
    Ok(page.finish())
}

/// Writes the name and the size of a set, and which of its records are counted.
fn header(page: &mut Html, set: &ViewSet, condition: Option<&Filter>, stats: &Statistics) {
    let dataset = &set.dataset;
    let kind = match set.kind_of(0) {
        MessageKind::Other => "record",
        kind => kind.name(),
    };
    let shards = count(dataset.shards().len() as u64, "shard");
    let records = count(dataset.len(), kind);
    let bytes = dataset.shards().enumerate().map(|(s, shard)| bytes_of(dataset, s, shard.path)).sum();
    let bytes = sizes::text(bytes);
    let version = env!("CARGO_PKG_VERSION");
    page.element("h1", &set.name);
    page.element("p class=\"muted\"", format_args!("{records} · {shards} · {bytes} · tfseek {version}"));
    if let Some(filter) = condition {
        page.nested("p class=\"note\"", |page| {
            page.text("Statistics and records are those that meet: ");
            page.element("code", filter);
            page.text(format_args!(" ({})", count(stats.records(), "record")));
        });
    }
    let note = "p class=\"note warning\"";
    let (ranges, damaged) = set.damage();
    if ranges > 0 {
        let ranges = count(ranges, "damaged range");
        page.element(note, format_args!("{} in {ranges} are left out.", count(damaged, "byte")));
    }
    if let Some(first) = &stats.first_skipped {
        let skipped = count(stats.skipped, "record");
        page.element(note, format_args!("Left out: {skipped}. The first: {first}"));
    }
}

/// Returns the numbers of random records, of all or of those that meet a condition.
fn draw(set: &ViewSet, condition: Option<&Filter>, threads: usize) -> tfseek::Result<Vec<u64>> {
    let mut random = Random::new(SEED);
    let Some(filter) = condition else {
        return Ok(random.draw(SAMPLES, set.dataset.len()).collect());
    };
    let matches = matches(set, filter, threads)?;
    let drawn = random.draw(SAMPLES, matches.len() as u64);
    Ok(drawn.filter_map(|k| matches.get(usize::try_from(k).ok()?).copied()).collect())
}

/// Returns the numbers of the first matches of a condition.
fn matches(set: &ViewSet, filter: &Filter, threads: usize) -> tfseek::Result<Vec<u64>> {
    let options = GrepOptions { damage: Damage::Skip, threads: Some(threads), ..GrepOptions::default() };
    let mut numbers = Vec::new();
    Grep::filter(filter, options).run_dataset(&set.dataset, &|s| set.kind_of(s), &mut |unit| {
        let left = MAX_MATCHES - numbers.len();
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
            report(set, condition.as_ref(), &ViewOptions::default(), &|_| Ok(())).unwrap()
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
                && page.contains("200 Examples · 1 shard · ")
                && page.contains("FixedLenFeature")
        );
        assert_eq!(run(Some("label == 3 and record < 100")).matches("<figure>").count(), 10);
        assert!(run(Some("label == 77")).contains("There are no records."));
    }

    #[test]
    fn an_empty_set_has_a_report() {
        let dir = tempfile::tempdir().unwrap();
        let page = report(written(dir.path(), []), None, &ViewOptions::default(), &|_| Ok(())).unwrap();
        assert!(page.contains("There are no records."));
    }
}
