//! `tfseek schema`: prints the features of records, or a schema that parses them.

use crate::args::{PathsArgs, PayloadArgs, ReadArgs};
use crate::bytes::Key;
use crate::console::{BOLD, Console, DIM};
use crate::damage::SkippedErrors;
use crate::exit::{DATA, Failure, Outcome};
use crate::progress::FileProgress;
use crate::records::{self, Records};
use crate::split::InputFile;
use crate::{features, progress, text};
use clap::Args;
use std::path::Path;
use tfseek::FeatureSpec;
use tfseek::example::MessageKind;
use tfseek::frame::OVERHEAD;
use tfseek_tools::warnings::kindless;
use tfseek_tools::{Finding, Inference, schema_code};

#[derive(Debug, Args)]
pub(crate) struct SchemaArgs {
    #[command(flatten)]
    pub(crate) paths: PathsArgs,
    /// Number of records to read: the first records of each file, spread over the files
    #[arg(short, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) n: u64,
    /// Read all records
    #[arg(long, conflicts_with = "n")]
    pub(crate) all: bool,
    /// Print the schema as JSON, for `tfseek parse --schema`
    #[arg(long, group = "form")]
    pub(crate) json: bool,
    /// Print the schema as Python code for TensorFlow
    #[arg(long, group = "form")]
    pub(crate) tf: bool,
    /// Print the schema as schema.pbtxt, for TensorFlow Data Validation and `tfseek validate`
    #[arg(long, group = "form")]
    pub(crate) tfdv: bool,
    #[command(flatten)]
    pub(crate) payload: PayloadArgs,
}

pub(crate) fn run(args: &SchemaArgs, console: &mut Console) -> Outcome {
    let paths = records::resolve(&args.paths, args.payload.read, console)?;
    let kind = args.payload.kind.specified().unwrap_or(MessageKind::Example);
    if kind == MessageKind::Other {
        return Err(Failure::usage("--kind: expected records with features, found bytes"));
    }
    let mut seen = Inference::new(kind)?;
    let mut observed = observe(&paths, args, &mut seen, None, console)?;
    // SequenceExamples follow Examples, so all files are read again as SequenceExamples. An Example then
    // reads as a context.
    if let Some((read, _)) = observed.sequences {
        if let Some(pipe) = paths.iter().take(read).find(|path| !records::is_regular(path)) {
            return Err(Failure::usage(format!(
                "{}: cannot be read again as SequenceExamples, which later files contain: specify --kind sequence-example",
                pipe.display()
            )));
        }
        seen = Inference::new(MessageKind::SequenceExample)?;
        observed = observe(&paths, args, &mut seen, observed.sequences, console)?;
    }
    let Observed { skipped, failed, .. } = observed;
    skipped.report(console)?;
    if failed && seen.records() == 0 {
        // The failure has been reported, and there are no records to infer from.
        return Ok(());
    }
    if seen.records() == 0 {
        return Err(no_records(&paths));
    }
    let schema = seen.schema_without_conflicts()?;
    for conflict in seen.findings().filter_map(|found| found.conflict()) {
        console.note(format_args!("tfseek: left out: {conflict}"));
    }
    if let Some((message, _)) = kindless(&seen) {
        console.note(format_args!("tfseek: {message}"));
    }
    if schema.features().is_empty() && schema.feature_lists().is_empty() {
        let kind = if seen.is_sequence() { MessageKind::SequenceExample } else { MessageKind::Example };
        let records = text::count(seen.records(), "record");
        console.note(format_args!(
            "tfseek: the schema is empty: no feature of a single kind in {records}, read as {}",
            kind.name()
        ));
    }
    if features::find(paths.iter().map(InputFile::path), console).features.is_some() {
        console.note("tfseek: a schema has no names of labels and no shapes of pictures; `tfseek info` prints the features.json, which has them");
    }
    if args.json {
        console.print(schema.to_json())
    } else if args.tf {
        console.print(schema_code::python(&schema))
    } else if args.tfdv {
        console.print(tfseek_tools::tfx::write(&seen))
    } else {
        table(&seen, console)
    }
}

/// Returns the error of files without records.
fn no_records(paths: &[InputFile]) -> Failure {
    let name = paths.first().map(|path| records::name(path).display().to_string()).unwrap_or_default();
    let more = match paths.len() {
        0 | 1 => String::new(),
        n => format!(" and {}", text::count(n as u64 - 1, "more file")),
    };
    let message = format!("{name}{more}: expected at least one record to infer a schema from, found none");
    Failure::Message(DATA, message)
}

/// The result of [`observe`].
#[derive(Default)]
struct Observed {
    skipped: SkippedErrors,
    /// A failure was reported.
    failed: bool,
    /// The file with SequenceExamples that ended it, because Examples were expected.
    sequences: Option<OpenFile>,
}

/// The position of a file among the paths, and its records. The file stays open because standard input and
/// pipes cannot be opened again.
type OpenFile = (usize, Records);

/// Collects the features of the first records of each file. A damaged file is reported, and the records
/// before the damage count. `open_file` is a file that was opened before.
fn observe(
    paths: &[InputFile],
    args: &SchemaArgs,
    seen: &mut Inference,
    mut open_file: Option<OpenFile>,
    console: &mut Console,
) -> Outcome<Observed> {
    let mut observed = Observed::default();
    let bar = progress::bytes(console, "reading", if args.all { progress::total_size(paths) } else { 0 });
    for (k, path) in paths.iter().enumerate() {
        // Records that a short file lacks are read from later files.
        let until = if args.all { u64::MAX } else { share(args.n, k + 1, paths.len()) };
        if seen.records() >= until {
            continue;
        }
        let outcome = match open_file.take_if(|(position, _)| *position == k) {
            Some((_, records)) => Ok(records),
            None => Records::open(path, args.payload).map_err(Failure::from),
        };
        let outcome = match outcome {
            Ok(records) if records.kind == MessageKind::SequenceExample && !seen.is_sequence() => {
                observed.sequences = Some((k, records));
                break;
            }
            Ok(records) => {
                let mut progress = FileProgress::new(&bar, path, records.reader.stream().compression());
                let skipped = (args.payload.read, &mut observed.skipped);
                file(path, until, records, seen, skipped, &mut progress)
            }
            Err(failure) => Err(failure),
        };
        observed.failed |= outcome.is_err();
        bar.suspend(|| console.report_and_continue(outcome))?;
    }
    progress::end(&bar, true);
    Ok(observed)
}

/// Returns the share of `n` records for the first `k` of `files` files.
fn share(n: u64, k: usize, files: usize) -> u64 {
    let share = u128::from(n) * k as u128 / files as u128;
    u64::try_from(share).unwrap_or(n)
}

fn file(
    path: &Path,
    until: u64,
    mut records: Records,
    seen: &mut Inference,
    (read, skipped): (ReadArgs, &mut SkippedErrors),
    progress: &mut FileProgress<'_>,
) -> Outcome {
    if records.kind == MessageKind::Other {
        let name = records::name(path);
        let message = format!(
            "{}: records are neither Examples nor SequenceExamples (--kind overrides this guess)",
            name.display()
        );
        return Err(Failure::Message(DATA, message));
    }
    while seen.records() < until {
        let Some(item) = records.next()? else { break };
        let at = item.record.at();
        let end = item.record.payload().len() as u64 + OVERHEAD as u64;
        progress.read_to(at.offset.unwrap_or(0) + end);
        let added = seen.add(item.record.payload()).map_err(|e| e.at(at).into());
        skipped.catch(read, added)?;
    }
    Ok(())
}

fn table(seen: &Inference, console: &mut Console) -> Outcome {
    let kind = if seen.is_sequence() { MessageKind::SequenceExample } else { MessageKind::Example };
    let bold = console.style(BOLD);
    let dim = console.style(DIM);
    let records = text::count(seen.records(), "record");
    console.print(format_args!("{bold}{}{bold:#}, {records} seen\n", kind.name()))?;
    let (lists, features): (Vec<_>, Vec<_>) = seen.findings().partition(|found| found.list);
    if !features.is_empty() {
        let rows: Vec<_> = features.iter().map(row).collect();
        let title = if seen.is_sequence() { "context" } else { "feature" };
        print_rows([title, "kind", "values", "in", "schema"], &rows, dim, console)?;
    }
    if !lists.is_empty() {
        let rows: Vec<_> = lists.iter().map(row).collect();
        print_rows(["feature list", "kind", "steps x values", "in", "schema"], &rows, dim, console)?;
    }
    Ok(())
}

/// Returns the cells of a row: name, kinds, counts, presence, proposed spec.
fn row(found: &Finding<'_>) -> [String; 5] {
    let kinds: Vec<_> = found.kinds.keys().map(|kind| kind.list_name()).collect();
    let kinds = if kinds.is_empty() { "none".to_owned() } else { kinds.join(", ") };
    let values = found.counts.map_or("-".to_owned(), range);
    let values = match found.steps {
        Some(steps) => format!("{} x {values}", range(steps)),
        None => values,
    };
    let present = match found.present {
        all if all == found.records => "all".to_owned(),
        some => format!("{some} of {}", found.records),
    };
    let spec = match found.spec() {
        Some(spec) => describe(&spec),
        None => "left out".to_owned(),
    };
    [found.name.to_owned(), kinds, values, present, spec]
}

fn range((min, max): (usize, usize)) -> String {
    if min == max { min.to_string() } else { format!("{min}..{max}") }
}

fn describe(spec: &FeatureSpec) -> String {
    let name = spec.name();
    match spec {
        FeatureSpec::FixedLenSequence { shape, allow_missing: true, .. } => {
            format!("{name} {shape:?}, may be missing")
        }
        FeatureSpec::FixedLen { shape, .. } | FeatureSpec::FixedLenSequence { shape, .. } => {
            format!("{name} {shape:?}")
        }
        _ => name.to_owned(),
    }
}

fn print_rows(
    titles: [&str; 5],
    rows: &[[String; 5]],
    dim: anstyle::Style,
    console: &mut Console,
) -> Outcome {
    let cells = rows.iter().map(|[name, kind, values, present, _]| {
        [Key(name).width().min(40), kind.len(), values.len(), present.len()]
    });
    let [name, kind, values, present, spec] = titles;
    let [a, b, c, d] = text::widths(cells.chain([[name, kind, values, present].map(str::len)]));
    console.print(format_args!("  {dim}{name:a$}  {kind:b$}  {values:c$}  {present:d$}  {spec}{dim:#}\n"))?;
    for [name, kind, values, present, spec] in rows {
        let key = Key(name);
        let pad = a.saturating_sub(key.width());
        console.print(format_args!("  {key}{:pad$}  {kind:b$}  {values:c$}  {present:d$}  {spec}\n", ""))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::share;

    #[test]
    fn shares_add_up() {
        assert_eq!((1..=3).map(|k| share(1000, k, 3)).collect::<Vec<_>>(), [333, 666, 1000]);
        assert_eq!((1..=5).map(|k| share(2, k, 5)).collect::<Vec<_>>(), [0, 0, 1, 1, 2]);
        assert_eq!(share(u64::MAX, 7, 7), u64::MAX);
    }
}
