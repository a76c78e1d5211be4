//! `tfseek schema`: what features records have, and a schema that takes them.

use crate::args::{self, Global};
use crate::bytes::Key;
use crate::console::{BOLD, Console, DIM};
use crate::exit::{DATA, Failure, Outcome};
use crate::progress;
use crate::records::{self, Records};
use std::path::{Path, PathBuf};
use tfseek::FeatureSpec;
use tfseek::example::MessageKind;
use tfseek::schema::{Finding, Inference, code};

pub(crate) fn run(args: &args::Schema, global: &Global, console: &mut Console) -> Outcome {
    let paths = records::resolve(&args.paths)?;
    let mut held = None;
    let Look { seen, failed } = match args.kind.kind.named() {
        Some(MessageKind::Other) => return Err(Failure::usage("raw payloads have no features")),
        Some(kind) => look(&paths, args, kind, &mut held, global, console)?,
        None => match look(&paths, args, MessageKind::Example, &mut held, global, console) {
            // What began as Examples turned out otherwise. Read as SequenceExamples, Examples are their contexts.
            Err(Stop::Lists) => {
                let read = held.as_ref().map_or(0, |(k, _)| *k);
                if let Some(pipe) = paths.iter().take(read).find(|path| !records::is_regular(path)) {
                    return Err(Failure::usage(format!(
                        "{}: cannot be read again as SequenceExamples, which the next files hold: name --kind sequence",
                        pipe.display()
                    )));
                }
                look(&paths, args, MessageKind::SequenceExample, &mut held, global, console)?
            }
            other => other?,
        },
    };
    if failed && seen.records() == 0 {
        // That there is nothing to infer from has been said.
        return Ok(());
    }
    let schema = seen.schema_without_conflicts()?;
    for conflict in seen.findings().filter_map(|found| found.conflict()) {
        console.note(format_args!("tfseek: left out: {conflict}"));
    }
    if args.json {
        console.print(schema.to_json())
    } else if args.tf {
        console.print(code::python(&schema))
    } else if args.rust {
        console.print(code::rust(&schema))
    } else {
        table(&seen, console)
    }
}

/// What was seen, and whether a failure was reported meanwhile.
struct Look {
    seen: Inference,
    failed: bool,
}

/// A file that was opened and turned out to hold SequenceExamples, and its place among the files: standard input and pipes cannot
/// be opened again.
type Held = (usize, Records);

/// Why a look ended early.
enum Stop {
    /// SequenceExamples among what was taken for Examples.
    Lists,
    Failed(Failure),
}

impl From<Failure> for Stop {
    fn from(failure: Failure) -> Stop {
        Stop::Failed(failure)
    }
}

impl From<Stop> for Failure {
    fn from(stop: Stop) -> Failure {
        match stop {
            Stop::Lists => Failure::Message(DATA, "Examples and SequenceExamples are mixed".into()),
            Stop::Failed(failure) => failure,
        }
    }
}

/// Takes note of the first records of each file. A file that is damaged is reported, and counts as far as it was read.
fn look(
    paths: &[PathBuf],
    args: &args::Schema,
    kind: MessageKind,
    held: &mut Option<Held>,
    global: &Global,
    console: &mut Console,
) -> Result<Look, Stop> {
    let mut seen = Inference::new(kind).map_err(Failure::from)?;
    let mut failed = false;
    let bar = progress::over(global, "reading", if args.all { progress::bytes_of(paths) } else { 0 });
    for (k, path) in paths.iter().enumerate() {
        // Short files leave their share to the next ones.
        let until = match args.all {
            true => u64::MAX,
            false => share(args.sample, k + 1, paths.len()),
        };
        if seen.records() >= until {
            continue;
        }
        let outcome = match held.take_if(|(of, _)| *of == k) {
            Some((_, records)) => Ok(records),
            None => Records::open(path, args.kind).map_err(Failure::from),
        };
        let outcome = match outcome {
            Ok(records) if records.kind == MessageKind::SequenceExample && !seen.is_sequence() => {
                *held = Some((k, records));
                return Err(Stop::Lists);
            }
            Ok(records) => file(path, until, records, &mut seen),
            Err(failure) => Err(failure),
        };
        failed |= outcome.is_err();
        bar.suspend(|| console.go_on(outcome))?;
        bar.inc(progress::bytes_of(std::slice::from_ref(path)));
    }
    bar.finish_and_clear();
    Ok(Look { seen, failed })
}

/// How many of `n` records the first `k` of `files` files give.
fn share(n: u64, k: usize, files: usize) -> u64 {
    let share = u128::from(n) * k as u128 / files as u128;
    u64::try_from(share).unwrap_or(n)
}

fn file(path: &Path, until: u64, mut records: Records, seen: &mut Inference) -> Outcome {
    if records.kind == MessageKind::Other {
        let name = records::name(path);
        let message = format!(
            "{}: records are neither Examples nor SequenceExamples (--kind says otherwise)",
            name.display()
        );
        return Err(Failure::Message(DATA, message));
    }
    while seen.records() < until {
        let Some(item) = records.next()? else { break };
        let at = item.record.at();
        seen.add(item.record.payload()).map_err(|e| e.at(at))?;
    }
    Ok(())
}

fn table(seen: &Inference, console: &mut Console) -> Outcome {
    let kind = if seen.is_sequence() { MessageKind::SequenceExample } else { MessageKind::Example };
    let (bold, dim) = (console.style(BOLD), console.style(DIM));
    let records = if seen.records() == 1 { "record" } else { "records" };
    console.print(format_args!("{bold}{}{bold:#}, {} {records} seen\n", kind.name(), seen.records()))?;
    let (lists, features): (Vec<_>, Vec<_>) = seen.findings().partition(|found| found.list);
    if !features.is_empty() {
        let rows: Vec<_> = features.iter().map(row).collect();
        let title = if seen.is_sequence() { "context" } else { "feature" };
        print([title, "kind", "values", "in", "schema"], &rows, dim, console)?;
    }
    if !lists.is_empty() {
        let rows: Vec<_> = lists.iter().map(row).collect();
        print(["feature list", "kind", "steps x values", "in", "schema"], &rows, dim, console)?;
    }
    Ok(())
}

/// Name, kinds, counts, presence, proposal.
fn row(found: &Finding<'_>) -> [String; 5] {
    let kinds: Vec<_> = found.kinds.keys().map(ToString::to_string).collect();
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
        FeatureSpec::FixedLen { shape, .. } => format!("{name} {shape:?}"),
        FeatureSpec::FixedLenSequence { shape, allow_missing: true, .. } => {
            format!("{name} {shape:?}, may be missing")
        }
        FeatureSpec::FixedLenSequence { shape, .. } => format!("{name} {shape:?}"),
        _ => name.to_owned(),
    }
}

fn print(titles: [&str; 5], rows: &[[String; 5]], dim: anstyle::Style, console: &mut Console) -> Outcome {
    let [name, kind, values, present, spec] = titles;
    let (mut a, mut b, mut c, mut d) = (name.len(), kind.len(), values.len(), present.len());
    for [name, kind, values, present, _] in rows {
        a = a.max(Key(name).width().min(40));
        (b, c, d) = (b.max(kind.len()), c.max(values.len()), d.max(present.len()));
    }
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
