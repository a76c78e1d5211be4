//! `tfseek validate`: compares records with a schema, and names the anomalies and the first records that have
//! them.

use crate::args::{PathsArgs, PayloadArgs, ThreadsArgs};
use crate::bytes::Key;
use crate::console::{BOLD, Console, DIM};
use crate::damage::SkippedErrors;
use crate::exit::{DATA, Failure, Outcome};
use crate::progress::FileProgress;
use crate::split::InputFile;
use crate::text::count;
use crate::{progress, records, text};
use clap::Args;
use indicatif::ProgressBar;
use serde_json::json;
use std::cmp::Reverse;
use std::path::{Path, PathBuf};
use tfseek::example::MessageKind;
use tfseek_tools::tfx::{AnomalyKind, TfxSchema};
use tfseek_tools::validate::{Anomaly, ValidationReport, Validator};
use tfseek_tools::{in_order, thousands};

#[derive(Debug, Args)]
pub(crate) struct ValidateArgs {
    #[command(flatten)]
    pub(crate) paths: PathsArgs,
    /// Schema: JSON as `tfseek schema --json` prints it, or a schema.pbtxt of TFX
    #[arg(short, long, value_name = "FILE")]
    pub(crate) schema: PathBuf,
    /// Environment whose features are required, such as `serving` [default: all features]
    #[arg(long, value_name = "NAME")]
    pub(crate) environment: Option<String>,
    /// Earlier records to compare with, for drift and skew comparators; may be repeated
    #[arg(long, value_name = "PATH")]
    pub(crate) baseline: Vec<PathBuf>,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) payload: PayloadArgs,
    #[command(flatten)]
    pub(crate) threads: ThreadsArgs,
}

pub(crate) fn run(args: &ValidateArgs, console: &mut Console) -> Outcome {
    let schema = read_schema(&args.schema)?;
    let paths = records::resolve(&args.paths, args.payload.read, console)?;
    let mut skipped = SkippedErrors::default();
    let baseline = match args.baseline.as_slice() {
        [] => None,
        some => {
            let paths = PathsArgs { paths: some.to_vec(), allow_missing: args.paths.allow_missing };
            let paths = records::resolve(&paths, args.payload.read, console)?;
            Some(check(&schema, &paths, args, &mut skipped, console)?)
        }
    };
    let found = check(&schema, &paths, args, &mut skipped, console)?;
    let report = found.report(args.environment.as_deref(), baseline.as_ref());
    if args.json {
        json(&report, console)?
    } else {
        table(&report, console)?
    }
    if !report.anomalies.is_empty() {
        console.set_exit_code(DATA);
    }
    skipped.report(console)
}

/// Reads the rules of the schema in a file.
fn read_schema(path: &Path) -> Outcome<TfxSchema> {
    let text = text::read_file(path, "a schema")?;
    text.parse().map_err(|e| text::refused_schema(path, e))
}

/// Checks all files, several at the same time. Damage in one of them is an error.
fn check<'s>(
    schema: &'s TfxSchema,
    paths: &[InputFile],
    args: &ValidateArgs,
    skipped: &mut SkippedErrors,
    console: &Console,
) -> Outcome<Validator<'s>> {
    let bar = progress::bytes(console, "validating", progress::total_size(paths));
    let mut all = Validator::new(schema);
    let outcome = in_order(
        args.threads.threads,
        usize::MAX,
        paths,
        |path| file(path, schema, args.payload, &bar),
        |(checks, left_out)| {
            all.append(checks);
            skipped.append(left_out);
            Ok(())
        },
    );
    progress::end(&bar, outcome.is_ok());
    outcome.map(|()| all)
}

fn file<'s>(
    path: &InputFile,
    schema: &'s TfxSchema,
    payload: PayloadArgs,
    bar: &ProgressBar,
) -> Outcome<(Validator<'s>, SkippedErrors)> {
    let mut skipped = SkippedErrors::default();
    let mut stream = records::kinded(records::stream(path, payload.read)?, payload.kind);
    let mut progress = FileProgress::new(bar, path, stream.stream().compression());
    let mut checks = Validator::new(schema);
    let kind = stream.kind();
    while let Some(record) = stream.next()? {
        if kind == MessageKind::Other {
            let name = records::name(path);
            let text = "records are neither Examples nor SequenceExamples (--kind overrides this guess)";
            return Err(Failure::Message(DATA, format!("{}: {text}", name.display())));
        }
        let added = checks.add(record.payload(), kind).map_err(|e| e.at(record.at()));
        skipped.catch(payload.read, added.map_err(Into::into))?;
        progress.read_to(stream.stream().offset());
    }
    Ok((checks, skipped))
}

/// Number of records, and of features with one anomaly, that the table names.
const SHOWN: usize = 3;

fn severity(anomaly: &Anomaly) -> &'static str {
    if anomaly.kind.is_warning() { "warning" } else { "error" }
}

/// Returns the anomalies with errors first, columns that no record has before the others, then by the number
/// of records. Anomalies of several features that are alike otherwise are one group.
fn groups(report: &ValidationReport) -> Vec<Vec<&Anomaly>> {
    let mut sorted: Vec<_> = report.anomalies.iter().collect();
    let is_missing = |a: &Anomaly| a.kind == AnomalyKind::SchemaMissingColumn;
    let place = |a: &Anomaly| (a.kind.is_warning(), !is_missing(a), a.records == 0, Reverse(a.records));
    sorted.sort_by(|a, b| {
        let rest = |a: &Anomaly| (a.kind, a.text.clone(), a.first.clone(), a.examples.clone());
        place(a).cmp(&place(b)).then_with(|| rest(a).cmp(&rest(b)))
    });
    let alike = |a: &&Anomaly, b: &&Anomaly| {
        (a.kind, &a.text, a.records, &a.first, &a.examples)
            == (b.kind, &b.text, b.records, &b.first, &b.examples)
    };
    sorted.chunk_by(alike).map(<[_]>::to_vec).collect()
}

fn table(report: &ValidationReport, console: &mut Console) -> Outcome {
    let bold = console.style(BOLD);
    let dim = console.style(DIM);
    let name = |anomaly: &Anomaly| match &anomaly.feature {
        Some(feature) => Key(feature).to_string(),
        None => "(all records)".to_owned(),
    };
    let names = |group: &[&Anomaly]| {
        let mut names: Vec<_> = group.iter().take(SHOWN).map(|anomaly| name(anomaly)).collect();
        match group.len().saturating_sub(SHOWN) {
            0 => {}
            more => names.push(format!("{} more", thousands(more as u64))),
        }
        names.join(", ")
    };
    let groups: Vec<_> = groups(report).into_iter().map(|group| (names(&group), group)).collect();
    let width = groups.iter().map(|(names, _)| names.chars().count()).max().unwrap_or(0).min(40);
    let kinds =
        groups.iter().filter_map(|(_, group)| Some(severity(group.first()?).len())).max().unwrap_or(0);
    for (names, group) in &groups {
        let Some(anomaly) = group.first() else { continue };
        let mut line = format!(
            "  {:kinds$}  {names:width$}  {bold}{}{bold:#}  {}",
            severity(anomaly),
            anomaly.kind.name(),
            anomaly.text
        );
        if anomaly.records > 0 {
            let first: Vec<_> = anomaly.first.iter().take(SHOWN).map(u64::to_string).collect();
            let more = if anomaly.records > SHOWN as u64 { " .." } else { "" };
            line += &format!("; {}: {}{more}", count(anomaly.records, "record"), first.join(", "));
        }
        if !anomaly.examples.is_empty() {
            line += &format!("   {dim}{}{dim:#}", anomaly.examples.join(", "));
        }
        console.print(format_args!("{line}\n"))?;
    }
    let found = match report.anomalies.len() {
        0 => "no anomaly".to_owned(),
        1 => "1 anomaly".to_owned(),
        n => format!("{} anomalies", thousands(n as u64)),
    };
    // The features of a constraint follow each other.
    let unchecked: Vec<_> = report.unchecked.iter().collect();
    let unchecked: Vec<_> = unchecked
        .chunk_by(|(a, _), (b, _)| a == b)
        .filter_map(|group| {
            let (what, _) = group.first()?;
            let features = group.iter().filter_map(|(_, feature)| feature.as_ref());
            let features: Vec<_> = features.map(|feature| Key(feature).to_string()).collect();
            Some(if features.is_empty() { what.clone() } else { format!("{what} ({})", features.join(", ")) })
        })
        .collect();
    let unchecked =
        if unchecked.is_empty() { String::new() } else { format!("; not checked: {}", unchecked.join(", ")) };
    console.print(format_args!("{found} in {}{unchecked}\n", count(report.records, "record")))
}

fn json(report: &ValidationReport, console: &mut Console) -> Outcome {
    let anomalies: Vec<_> = report
        .anomalies
        .iter()
        .map(|anomaly| {
            json!({
                "anomaly": anomaly.kind.name(),
                "severity": severity(anomaly),
                "feature": anomaly.feature,
                "feature_list": anomaly.list,
                "text": anomaly.text,
                "values": anomaly.values,
                "records": anomaly.records,
                "first": anomaly.first,
                "examples": anomaly.examples,
            })
        })
        .collect();
    let unchecked: Vec<_> = report
        .unchecked
        .iter()
        .map(|(what, feature)| json!({ "constraint": what, "feature": feature }))
        .collect();
    let line = json!({ "records": report.records, "anomalies": anomalies, "unchecked": unchecked });
    console.print(format_args!("{line}\n"))
}
