//! Statistics as a part of another page, such as a notebook.

use super::html::Html;
use super::tables;
use crate::assets::{shared_style, token};
use serde_json::Value;
use tfseek_tools::{sizes, thousands};

/// Number of features in a notebook.
const FEATURES: usize = 100;

/// Returns the JSON of statistics as HTML for a notebook, with the histograms, the type and the numbers of
/// the page. Its styles apply to itself only, and it has no scripts. `None` for other text.
///
/// The text may be the JSON of [`Statistics::json`](tfseek_tools::stats::Statistics::json) or what
/// [`save`](tfseek_tools::stats::Statistics::save) returned.
pub fn stats_html(json: &str) -> Option<String> {
    let stats: Value = serde_json::from_str(json).ok()?;
    let mut shown = serde_json::Map::new();
    let mut more = 0;
    for name in ["features", "feature_lists", "fields"] {
        let mut list = stats.get(name)?.as_array()?.clone();
        more += list.len().saturating_sub(FEATURES);
        list.truncate(FEATURES);
        shown.insert(name.to_owned(), list.into());
    }
    let mut page = Html::default();
    let (parts, features) = shared_style();
    // Nested rules hold inside the element. The element takes the place of the page's root.
    let rules = [parts, features].map(|rules| rules.replace(":root", "&"));
    page.markup("<div class=\"tfseek\"><style>.tfseek{");
    rules.iter().for_each(|rules| page.markup(rules));
    page.markup("& { background: var(--surface); color: var(--text); font: var(--t3)/1.45 var(--sans); padding: 8px 12px; max-width: 1100px; } .histogram svg { height: 57px; }");
    page.markup("}</style>");
    let count = |pointer: &str| tables::at(&stats, pointer).as_u64().unwrap_or(0);
    let kinds: Vec<_> =
        [("example", "Example"), ("sequence_example", "SequenceExample"), ("bytes", "other record")]
            .into_iter()
            .map(|(kind, word)| (count(&format!("/kinds/{kind}")), word))
            .filter(|(n, _)| *n > 0)
            .collect();
    let things = |(n, word): (u64, &str)| format!("{} {word}{}", thousands(n), if n == 1 { "" } else { "s" });
    let kinds = if kinds.is_empty() { vec![(0, "record")] } else { kinds };
    let kinds: Vec<_> = kinds.into_iter().map(things).collect();
    let size = sizes::text(count("/payload_bytes"));
    page.nested("p", |page| {
        page.element("strong", kinds.join(", "));
        page.text(format_args!(" · {} · {size}", things((count("/shards"), "shard"))));
    });
    tables::features(&mut page, &shown.into());
    if more > 0 {
        page.element("p class=\"muted\"", format_args!(".. and {} more features", thousands(more as u64)));
    }
    page.markup("</div>");
    Some(page.finish())
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
        for json in [stats.json(), stats.save()] {
            let html = stats_html(&json).unwrap();
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
        }
        assert_eq!((stats_html("[]"), stats_html("x")), (None, None));
        assert!(font().starts_with("system-ui,") && font().ends_with("sans-serif"));
    }
}
