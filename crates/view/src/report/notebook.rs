//! Statistics as a part of another page, such as a notebook.

use super::html::Html;
use super::tables;
use crate::assets::{shared_style, token};
use serde_json::Value;
use tfseek_tools::stats::Statistics;
use tfseek_tools::words::count;
use tfseek_tools::{sizes, thousands};

/// Number of features in a notebook.
const FEATURES: usize = 100;

/// Returns statistics as HTML for a notebook, with the histograms, the type and the numbers of the page. Its
/// styles apply to itself only, and it has no scripts.
pub fn stats_html(stats: &Statistics) -> String {
    let mut stats = tables::json(stats);
    let mut more = 0;
    for name in ["features", "feature_lists", "fields"] {
        if let Some(list) = stats.get_mut(name).and_then(Value::as_array_mut) {
            more += list.len().saturating_sub(FEATURES);
            list.truncate(FEATURES);
        }
    }
    let mut page = Html::default();
    let (parts, features) = shared_style();
    // Nested rules hold inside the element. The element takes the place of the page's root.
    let rules = [parts, features].map(|rules| rules.replace(":root", "&"));
    page.markup("<div class=\"tfseek\"><style>.tfseek{");
    rules.iter().for_each(|rules| page.markup(rules));
    page.markup("& { background: var(--surface); color: var(--text); font: var(--t3)/1.45 var(--sans); padding: 8px 12px; max-width: 1100px; } .histogram svg { height: 57px; }");
    page.markup("}</style>");
    let number = |pointer: &str| tables::at(&stats, pointer).as_u64().unwrap_or(0);
    let kinds: Vec<_> =
        [("example", "Example"), ("sequence_example", "SequenceExample"), ("bytes", "other record")]
            .into_iter()
            .map(|(kind, word)| (number(&format!("/kinds/{kind}")), word))
            .filter(|(n, _)| *n > 0)
            .map(|(n, word)| count(n, word))
            .collect();
    let kinds = if kinds.is_empty() { count(0, "record") } else { kinds.join(", ") };
    let size = sizes::text(number("/payload_bytes"));
    page.nested("p", |page| {
        page.element("strong", kinds);
        page.text(format_args!(" · {} · {size}", count(number("/shards"), "shard")));
    });
    tables::features(&mut page, &stats);
    if more > 0 {
        page.element("p class=\"muted\"", format_args!(".. and {} more features", thousands(more as u64)));
    }
    page.markup("</div>");
    page.finish()
}

/// Returns the family of the page's text, as a value of CSS.
pub fn font() -> &'static str {
    token("sans")
}

#[cfg(test)]
mod tests {
    use super::*;
    use tfseek::{ExampleBuilder, Writer};
    use tfseek_tools::stats::StatsOptions;

    #[test]
    fn statistics_are_a_part_of_a_page() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.tfrecord");
        let mut writer = Writer::create(&path).unwrap();
        for i in 0..2000 {
            let example = ExampleBuilder::new()
                .int64("<b>", [i % 40])
                .bytes("text", [if i % 3 == 0 { "<i>" } else { "b" }]);
            writer.write(&example.encode().unwrap()).unwrap();
        }
        writer.close().unwrap();
        let dataset = tfseek::Dataset::open(&path).unwrap();
        let stats = StatsOptions::default().run_dataset(&dataset, None, None, &|_| Ok(())).unwrap();
        let html = stats_html(&stats);
        assert!(html.contains("<strong>2,000 Examples</strong> · 1 shard · "), "{html}");
        assert!(
            html.contains("&lt;b&gt;: 0 to 1") || html.contains("<title>0 to 1: 100, 5.0 %</title>"),
            "{html}"
        );
        assert!(html.contains("&lt;i&gt;") && !html.contains("<b>") && !html.contains("<script"));
        assert!(
            html.contains(".tfseek{") && !html.contains(":root") && html.len() < 30_000,
            "{}",
            html.len()
        );
        assert!(font().starts_with("system-ui,") && font().ends_with("sans-serif"));
    }
}
