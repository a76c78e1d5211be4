//! `tfseek stats --steps`: statistics of numbers over the steps of episodes, as robot policies normalize
//! with.

use super::StatsArgs;
use crate::args::{self, AccessArgs, IoMode};
use crate::bytes::Key;
use crate::console::{BOLD, Console, DIM};
use crate::exit::{Failure, Outcome};
use crate::split::failure;
use crate::text::count;
use crate::{dataset, features, progress, steps};
use clap::ValueEnum;
use std::sync::Arc;
use tfseek_tfds::{Episodes, FoundFeatures, StatisticsOptions, StatisticsStyle, StepStatistics};

/// The form of the JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum JsonStyle {
    /// With `q01` and `q99`, and with zeros as `proprio` if there is none
    Openvla,
    /// With `p01` and `p99`
    Octo,
}

pub(super) fn run(args: &StatsArgs, console: &mut Console) -> Outcome {
    let access = AccessArgs { io: IoMode::Map, index_dir: None, threads: args.threads };
    let records = dataset::open(&args.paths, &access, args.payload.read, console)?;
    let found = features::find(records.shards().map(|shard| shard.path), console);
    let feature = args::named_feature(args.steps.as_deref());
    let first = records.shards().next().map(|shard| shard.path);
    let of_records = features::of_episodes(&found, first, feature)?;
    let episodes = steps::open(&records, &of_records, feature, console)?;
    let all = episodes.numbers();
    let named: Vec<(&str, &str)> = if args.features.is_empty() {
        all.iter().map(|key| (&**key, &**key)).collect()
    } else {
        args.features.iter().map(|text| key_and_name(text)).collect()
    };
    if named.is_empty() {
        return Err(Failure::usage("--steps: no feature of a step has numbers of a known shape"));
    }
    let stats = computed(&episodes, &found, &named, args, console)?;
    if args.json {
        let style = match args.style {
            JsonStyle::Openvla => StatisticsStyle::OpenVla,
            JsonStyle::Octo => StatisticsStyle::Octo,
        };
        console.print(format_args!("{}\n", stats.to_json(style, &named)))
    } else {
        print(&stats, &named, console)
    }
}

/// Parses `FEATURE` or `NAME=FEATURE`.
fn key_and_name(text: &str) -> (&str, &str) {
    text.split_once('=').map_or((text, text), |(name, key)| (key, name))
}

fn computed(
    episodes: &Episodes,
    found: &FoundFeatures,
    named: &[(&str, &str)],
    args: &StatsArgs,
    console: &Console,
) -> Outcome<StepStatistics> {
    let anchors = match &args.condition {
        None => None,
        Some(condition) => {
            let selected = episodes.select(&found.filter(condition)?).map_err(failure)?;
            let range = |episode: u64| Ok((episode, 0..episodes.steps().length(episode)?));
            Some(selected.into_iter().map(range).collect::<tfseek::Result<Vec<_>>>()?)
        }
    };
    let bar = progress::steps(console, "reading", None);
    let options = StatisticsOptions {
        anchors,
        threads: args.threads.threads,
        progress: Some(Arc::new(progress::callback(&bar))),
        ..StatisticsOptions::default()
    };
    let keys: Vec<&str> = named.iter().map(|(key, _)| *key).collect();
    let stats = episodes.statistics(&keys, &options);
    progress::end(&bar, stats.is_ok());
    stats.map_err(failure)
}

/// Prints a line for each dimension of each feature.
fn print(stats: &StepStatistics, named: &[(&str, &str)], console: &mut Console) -> Outcome {
    let bold = console.style(BOLD);
    let dim = console.style(DIM);
    let episodes = count(stats.trajectories, "episode");
    let steps = count(stats.transitions, "step");
    console.print(format_args!("{episodes}, {steps}\n"))?;
    for ((_, found), (_, name)) in stats.keys.iter().zip(named) {
        let labels =
            ["mean", "std", "min", "q01", "q99", "max"].map(|label| format!(" {label:>12}")).concat();
        console.print(format_args!("\n{bold}{}{bold:#}\n{dim}  dim{labels}{dim:#}\n", Key(name)))?;
        let columns = [&found.mean, &found.std, &found.min, &found.q01, &found.q99, &found.max];
        for k in 0..found.mean.len() {
            let values = columns.map(|column| column.get(k).copied().unwrap_or(f64::NAN));
            let values = values.map(|value| format!(" {:>12}", number(value))).concat();
            console.print(format_args!("{dim}{k:>5}{dim:#}{values}\n"))?;
        }
    }
    Ok(())
}

/// Returns a number with six significant digits.
fn number(value: f64) -> String {
    let size = value.abs();
    match size {
        0.0 => "0".to_owned(),
        _ if !(1e-4..1e9).contains(&size) => format!("{value:.5e}"),
        _ => {
            let digits = 5 - (size.log10().floor() as i32).clamp(-4, 5);
            format!("{value:.*}", digits.max(0) as usize)
        }
    }
}
