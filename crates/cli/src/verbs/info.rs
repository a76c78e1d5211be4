//! `tfseek info`: prints a summary of each file.
//!
//! The records of a file are counted from its index. Without one, a plain file's records are counted by a
//! scan of the record headers, and the records of a compressed file or of standard input by reading it.
//! Several sets of shards are also summed separately. Features are the first record's. Payloads of other
//! types have the top-level fields of the first 16 records.

mod episodes;
mod one_file;

use crate::args::{InspectArgs, LimitArgs, PathsArgs, PayloadKind};
use crate::bytes::Key;
use crate::console::{BOLD, Console, DIM};
use crate::exit::{Failure, Outcome};
use crate::features;
use crate::output::shape;
use crate::progress;
use crate::records::{self, Records};
use crate::split::InputFile;
use crate::store::{self, ObjectCache};
use crate::text::{count, widths};
use crate::tfds::{self, Splits};
use crate::warnings;
use clap::Args;
use episodes::EpisodeSummary;
use one_file::of_one_file;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use tfseek::error::IndexError;
use tfseek::example::MessageKind;
use tfseek::index::{self, Index, IndexOptions};
use tfseek::paths::set_of;
use tfseek::{Compression, Damage, ErrorKind, Feature, FeatureList, Gap, IndexMode, Tail, Warning};
use tfseek_tfds::{FileSplit, FoundFeatures};
use tfseek_tools::fields::{FieldSummary, PayloadSummary, PayloadType};
use tfseek_tools::{Content, thousands};

#[derive(Debug, Args)]
pub(crate) struct InfoArgs {
    #[command(flatten)]
    pub(crate) paths: PathsArgs,
    #[command(flatten)]
    pub(crate) inspect: InspectArgs,
    /// Print one JSON object per file; `error` is the problem with the file, or null
    #[arg(long)]
    pub(crate) json: bool,
}

/// Maximum number of folders that a message names.
const MAX_FOLDERS: usize = 8;
/// Number of records that a summary of payloads of unknown type is made from, and of their bytes.
const MAX_PAYLOADS: u64 = 16;
const MAX_PAYLOAD_BYTES: usize = 1 << 20;

/// The summary of a file. `None` means unknown.
#[derive(Default)]
struct FileSummary {
    path: PathBuf,
    /// Bytes on disk; `None` for standard input and pipes.
    size: Option<u64>,
    compression: Option<Compression>,
    /// Kind of the records, if one could be read.
    kind: Option<MessageKind>,
    /// Detected format of a file that is not a TFRecord file.
    looks_like: Option<&'static str>,
    /// State and path of the index, for a regular file.
    index: Option<String>,
    /// Bytes of the index file.
    index_bytes: Option<u64>,
    /// The record stream of a compressed file with an index.
    inflated: Option<Inflated>,
    /// Number of records; in a damaged file, the number before the damage, or the number in an index with
    /// gaps.
    records: Option<u64>,
    /// The damaged ranges that the index leaves out.
    gaps: Option<Vec<Gap>>,
    /// What the index or the reading left out.
    warnings: Vec<Warning>,
    first: Option<RecordKeys>,
    /// The split of a `dataset_info.json` that the file belongs to.
    split: Option<FileSplit>,
    /// The first payloads that are neither Examples nor SequenceExamples.
    payloads: Option<PayloadSummary>,
    /// The steps of its episodes, as JSON.
    steps: Value,
    error: Option<String>,
}

/// The record stream of a compressed file, from its index.
struct Inflated {
    /// Bytes of all whole records.
    bytes: u64,
    /// Number of checkpoints, and the minimum number of bytes between two of them.
    checkpoints: (u64, u64),
}

/// Keys of the first record, each with a description of its value.
struct RecordKeys {
    context: Vec<(String, String)>,
    lists: Vec<(String, String)>,
}

pub(crate) fn run(args: &InfoArgs, console: &mut Console) -> Outcome {
    args.paths.paths.iter().for_each(|path| mention_folders(path, console));
    let mut splits = Splits::new(&args.paths, console);
    let paths = records::resolve_each(&args.paths, args.inspect.payload().read, console)?;
    let bytes = |path: &Result<InputFile, _>| {
        path.as_ref().map_or(0, |path| progress::total_size(std::slice::from_ref(path)))
    };
    let total: u64 = paths.iter().map(bytes).sum();
    let bar = progress::bytes(console, "reading", total);
    let features = features::find(paths.iter().flatten().map(InputFile::path), console);
    let mut episodes = EpisodeSummary::new(&features, total, args.inspect.limit);
    let single = paths.len() == 1;
    let mut rows = Vec::new();
    let cache = paths.iter().flatten().find_map(|path| store::cache(path.path()));
    for path in paths {
        let read = bytes(&path);
        let (summary, outcome) = match path {
            Ok(path) => {
                let (mut summary, outcome) = summarize(&path, args.inspect);
                let records = summary.records.filter(|_| outcome.is_ok());
                if outcome.is_ok() {
                    summary.steps = episodes.add(&path, &features);
                }
                match path.records() {
                    // A part of a shard has other numbers of records.
                    Some(n) => summary.records = records.map(|_| n),
                    None => summary.split = bar.suspend(|| splits.add(&path, records, console)),
                }
                (Some(summary), outcome)
            }
            // For a single path that resolves to no file, only the error is printed.
            Err((_, failure)) if single && !args.json => (None, Err(failure)),
            Err((path, failure)) => (Some(FileSummary::failed(&path, &failure)), Err(failure)),
        };
        let shown = summary.as_ref().map_or(Vec::new(), |s| s.warnings.clone());
        let difference = summary.as_ref().and_then(|s| s.split.as_ref()?.difference.clone());
        if let Some(summary) = summary {
            if args.json {
                console.print(format_args!("{}\n", as_json(&summary, &features, cache.as_ref())))?;
            } else if single {
                print_block(&summary, console)?;
                print_set("  ", &features, &episodes, cache.as_ref(), console)?;
            } else {
                rows.push(summary);
            }
        }
        bar.suspend(|| {
            difference.into_iter().for_each(|text| console.note(format_args!("tfseek: {text}")));
            warnings::print(&shown, console);
            console.report_and_continue(outcome)
        })?;
        bar.inc(read);
    }
    progress::end(&bar, true);
    splits.missing().iter().for_each(|text| console.note(format_args!("tfseek: {text}")));
    if rows.is_empty() {
        return Ok(());
    }
    print_table(&rows, console)?;
    splits.print_table(console)?;
    print_set("", &features, &episodes, cache.as_ref(), console)
}

/// Prints what the files have in common: their features, episodes, and the cache of objects on disk.
fn print_set(
    indent: &str,
    features: &FoundFeatures,
    episodes: &EpisodeSummary,
    cache: Option<&ObjectCache>,
    console: &mut Console,
) -> Outcome {
    tfds::print_features(features, indent, console)?;
    episodes.print(indent, console)?;
    let Some((folder, pieces, bytes, limit)) = cache else { return Ok(()) };
    let [bytes, limit] = [*bytes, *limit].map(|bytes| console.size(bytes));
    let dim = console.style(DIM);
    let pieces = count(*pieces, "piece");
    console.print(format_args!(
        "{indent}{dim}cache{dim:#}         {}: {bytes} of {limit} in {pieces}\n",
        folder.display()
    ))
}

/// Prints a message that names the folders in a folder, which do not belong to its dataset.
fn mention_folders(path: &Path, console: &mut Console) {
    let mut names: Vec<_> = store::folders_in(path)
        .iter()
        .map(|name| tfseek::error::printable(name).to_string())
        .filter(|name| !name.starts_with('.'))
        .collect();
    names.sort();
    let n = names.len() as u64;
    let more = if names.len() > MAX_FOLDERS { ", .." } else { "" };
    names.truncate(MAX_FOLDERS);
    if n > 0 {
        let path = tfseek::error::printable(path);
        let names = names.join(", ");
        console.note(format_args!("tfseek: {path}: {} in it left out: {names}{more}", count(n, "folder")));
    }
}

impl FileSummary {
    fn new(path: &Path) -> FileSummary {
        FileSummary {
            path: records::name(path),
            size: store::size(path).filter(|_| records::is_regular(path)),
            ..FileSummary::default()
        }
    }

    /// Adds the state of the file's index. One with a torn tail, or with gaps, is used if there is no other.
    /// Returns the index if it is fresh, and the error of a torn tail that is not tolerated. The index then
    /// has the records before it.
    fn add_index(
        &mut self,
        path: &Path,
        limit: LimitArgs,
    ) -> tfseek::Result<(Option<Index>, Option<tfseek::Error>)> {
        let options = limit.index().mode(IndexMode::Require).threads(1);
        let open = |options: &IndexOptions| index::open_shards(&[path.to_path_buf()], options);
        let mut torn = None;
        let opened = open(&options).or_else(|e| {
            if let Ok(opened) = open(&options.clone().tail(Tail::Tolerate)) {
                torn = Some(e);
                return Ok(opened);
            }
            let with_gaps = |opened: &index::Indexes| opened.indexes.iter().all(Index::has_gaps);
            open(&options.damage(Damage::Skip)).ok().filter(with_gaps).ok_or(e)
        });
        let mut opened = match opened {
            Ok(opened) => opened,
            Err(e) => {
                self.index = Some(match e.kind() {
                    ErrorKind::Index(IndexError::Missing) => "none".to_owned(),
                    ErrorKind::Index(why) => why.to_string(),
                    _ => return Err(e),
                });
                return Ok((None, None));
            }
        };
        let Some(index) = opened.indexes.pop() else { return Ok((None, None)) };
        let file = index.file().map_or(String::new(), |file| format!(" {}", tfseek::error::printable(file)));
        self.index = Some(format!("fresh{file}"));
        let told = ["damage_skipped", "torn_tail"];
        // An end that is not tolerated is an error.
        let is_told = |warning: &Warning| told.contains(&warning.kind()) && torn.is_none();
        self.warnings.extend(opened.warnings.into_iter().filter(is_told));
        self.index_bytes = index.file().and_then(store::size);
        let checkpoints = index.checkpoint_spacing()?;
        self.inflated = checkpoints.map(|checkpoints| Inflated { bytes: index.stream_end(), checkpoints });
        if index.has_gaps() {
            self.gaps = Some(index.gaps().collect::<tfseek::Result<_>>()?);
        }
        Ok((Some(index), torn))
    }

    /// Returns the type of payloads that are neither Examples nor SequenceExamples.
    fn payload_type(&self) -> Option<PayloadType> {
        self.payloads.as_ref().and_then(PayloadSummary::payload_type)
    }

    fn failed(path: &Path, failure: &Failure) -> FileSummary {
        let error = match failure {
            Failure::Error(e) => Some(e),
            _ => None,
        };
        let looks_like = error.and_then(|e| match e.kind() {
            ErrorKind::NotTfRecord { looks_like, .. } => Some(*looks_like),
            _ => None,
        });
        FileSummary { looks_like, error: Some(failure.to_string()), ..FileSummary::new(path) }
    }
}

/// Returns the summary of a file, and the error that ended the reading. The records and the index are read
/// from the path one after the other: a summary of two files is dropped.
fn summarize(path: &InputFile, inspect: InspectArgs) -> (FileSummary, Outcome) {
    of_one_file(path, || summarize_once(path, inspect)).unwrap_or_else(|| {
        let replaced = std::io::Error::other("the file is replaced again and again while it is read");
        let failure = Failure::io(path, replaced);
        (FileSummary::failed(path, &failure), Err(failure))
    })
}

/// Reads a file as far as possible. Returns its summary, and the error that ended the reading.
fn summarize_once(path: &InputFile, inspect: InspectArgs) -> (FileSummary, Outcome) {
    let mut summary = FileSummary::new(path);
    let read = Records::open(path, inspect.payload()).and_then(|mut records| {
        summary.compression = Some(records.reader.stream().compression());
        summary.records = Some(0);
        let counted = count_records(path, inspect.limit, &mut records, &mut summary);
        for warning in records.reader.stream().warnings() {
            if !summary.warnings.contains(warning) {
                summary.warnings.push(warning.clone());
            }
        }
        counted
    });
    let Err(e) = read else { return (summary, Ok(())) };
    let failure = Failure::Error(e);
    let failed = FileSummary::failed(path, &failure);
    // In a file of another format the number of records is unknown, not 0.
    let summary = match failed.looks_like {
        Some(_) => failed,
        None => FileSummary { error: failed.error, ..summary },
    };
    (summary, Err(failure))
}

fn count_records(
    path: &InputFile,
    limit: LimitArgs,
    records: &mut Records,
    summary: &mut FileSummary,
) -> tfseek::Result<()> {
    let plain = summary.compression == Some(Compression::None);
    let regular = records::is_regular(path);
    let kind = Some(records.kind);
    let Some(first) = records.next()? else {
        if regular && let (_, Some(e)) = summary.add_index(path, limit)? {
            return Err(e);
        }
        return Ok(());
    };
    (summary.kind, summary.records) = (kind, Some(1));
    let is_other = first.kind == MessageKind::Other;
    summary.first = Some(RecordKeys::of(&first.content()?));
    let mut seen = PayloadSummary::default();
    seen.add(first.record.payload());
    let read = if is_other { read_first(records, &mut seen) } else { Ok(()) };
    let n = seen.records();
    summary.records = Some(n);
    summary.payloads = is_other.then_some(seen);
    if let Some(packed) = &path.packed {
        // Those that were read so far are not its records.
        summary.records = None;
        summary.records = Some(packed.check()?);
        summary.index = Some(format!("fresh {}", tfseek::error::printable(&*packed.pack)));
        return Ok(());
    }
    if regular {
        let (known, torn) = summary.add_index(path, limit)?;
        let index = match known {
            None if plain => {
                // The scan of a damaged file fails without a count. Reading the file counts the records
                // before the damage.
                let scan = limit.index().mode(IndexMode::Memory).threads(1);
                let scanned = index::open_shards(&[path.to_path_buf()], &scan).ok();
                scanned.and_then(|mut scanned| {
                    summary.warnings.extend(scanned.warnings);
                    scanned.indexes.pop()
                })
            }
            known => known,
        };
        if let Some(index) = index {
            summary.records = Some(index.len());
            return torn.map_or(Ok(()), Err);
        }
    }
    read.and_then(|()| read_all(n, records, summary))
}

/// Reads more of the first records for a summary of their payloads.
fn read_first(records: &mut Records, seen: &mut PayloadSummary) -> tfseek::Result<()> {
    let mut bytes: usize = 0;
    while seen.records() < MAX_PAYLOADS && bytes < MAX_PAYLOAD_BYTES {
        let Some(item) = records.next()? else { break };
        seen.add(item.record.payload());
        bytes += item.record.payload().len();
    }
    Ok(())
}

/// Reads and counts the records after the first `count`.
fn read_all(mut count: u64, records: &mut Records, summary: &mut FileSummary) -> tfseek::Result<()> {
    summary.records = Some(count);
    while records.next()?.is_some() {
        count += 1;
        summary.records = Some(count);
    }
    Ok(())
}

/// Returns the bytes in gaps.
fn gap_bytes(gaps: &[Gap]) -> u64 {
    gaps.iter().map(Gap::bytes).sum()
}

impl RecordKeys {
    fn of(content: &Content<'_>) -> RecordKeys {
        let (context, lists) = match content {
            Content::Example(features) => (shapes(features), Vec::new()),
            Content::Sequence(context, lists) => (shapes(context), list_shapes(lists)),
            Content::Raw => (Vec::new(), Vec::new()),
        };
        RecordKeys { context, lists }
    }
}

fn shapes(map: &BTreeMap<&str, Feature<'_>>) -> Vec<(String, String)> {
    map.iter().map(|(key, f)| ((*key).to_owned(), shape(*f))).collect()
}

fn list_shapes(map: &BTreeMap<&str, FeatureList<'_>>) -> Vec<(String, String)> {
    let list_shape = |list: &FeatureList<'_>| match list.iter().next() {
        Some(step) => format!("{} x {}", list.iter().len(), shape(step)),
        None => "0 steps".to_owned(),
    };
    map.iter().map(|(key, list)| ((*key).to_owned(), list_shape(list))).collect()
}

fn kind_name(summary: &FileSummary) -> &'static str {
    summary.kind.map_or("unknown", MessageKind::name)
}

fn print_block(summary: &FileSummary, console: &mut Console) -> Outcome {
    let bold = console.style(BOLD);
    let dim = console.style(DIM);
    console.print(format_args!("{bold}{}{bold:#}\n", tfseek::error::printable(&summary.path)))?;
    let size_of = |bytes| console.size(bytes).to_string();
    let size = summary.size.map(size_of);
    let inflated = summary.inflated.as_ref();
    let index_size = summary.index_bytes.zip(summary.size).map(|(index, file)| {
        format!("{}, {:.2} % of the file", size_of(index), 100.0 * index as f64 / file.max(1) as f64)
    });
    let checkpoints = inflated.map(|inflated| {
        let (n, spacing) = inflated.checkpoints;
        format!("{}, at least {} apart", thousands(n), size_of(spacing))
    });
    let rows = [
        ("looks like", summary.looks_like.map(|format| format!("{format}, not a TFRecord file"))),
        ("records", summary.records.map(thousands)),
        ("size", size),
        ("compression", summary.compression.map(|compression| compression.name().to_owned())),
        ("inflated", inflated.map(|bytes| size_of(bytes.bytes))),
        ("index", summary.index.clone()),
        ("index size", inflated.and(index_size)),
        ("checkpoints", checkpoints),
        (
            "damage",
            summary.gaps.as_ref().map(|gaps| {
                let ranges = count(gaps.len() as u64, "range");
                let bytes = count(gap_bytes(gaps), "byte");
                format!("{ranges}, {bytes}, left out of the index")
            }),
        ),
        ("kind", summary.records.map(|_| kind_name(summary).to_owned())),
        ("split", summary.split.as_ref().map(tfds::text)),
        ("payloads", summary.payload_type().map(|of| of.description().to_owned())),
    ];
    for (name, value) in rows {
        if let Some(value) = value {
            console.print(format_args!("  {dim}{name:11}{dim:#}  {value}\n"))?;
        }
    }
    print_keys(summary, "  ", console)?;
    print_fields(summary, "  ", console)
}

/// Prints the top-level fields of the first payloads that are messages of another type.
fn print_fields(summary: &FileSummary, indent: &str, console: &mut Console) -> Outcome {
    let Some(seen) = &summary.payloads else { return Ok(()) };
    let dim = console.style(DIM);
    let label = |number: u32, name: Option<&str>| match name {
        Some(name) => format!("{number} {name}"),
        None => number.to_string(),
    };
    let rows = seen.fields().map(|(number, name, field)| (label(number, name), types(field), field));
    let rows: Vec<_> = rows.collect();
    let [labels, shapes] = widths(rows.iter().map(|(label, types, _)| [label.len(), types.len()]));
    let records = seen.records();
    for (k, (label, types, field)) in rows.iter().enumerate() {
        if k == 0 {
            let title = match records {
                1 => "first record".to_owned(),
                n => format!("first {n} records"),
            };
            console.print(format_args!("{indent}{dim}{title}{dim:#}\n"))?;
        }
        let present = match field.records {
            all if all == records => "all".to_owned(),
            some => format!("{some} of {records}"),
        };
        let values = match field.values {
            (_, 1) => String::new(),
            (min, max) if min == max => format!(", {min} values"),
            (min, max) => format!(", {min}..{max} values"),
        };
        console.print(format_args!(
            "{indent}  {label:labels$}  {dim}{types:shapes$}  in {present}{values}{dim:#}\n"
        ))?;
    }
    Ok(())
}

/// Returns the types of a field's values.
fn types(field: &FieldSummary) -> String {
    field.types.iter().map(|value_type| value_type.name()).collect::<Vec<_>>().join(", ")
}

/// Prints the keys of the first record. Later records may have other keys.
fn print_keys(summary: &FileSummary, indent: &str, console: &mut Console) -> Outcome {
    let Some(first) = &summary.first else { return Ok(()) };
    let dim = console.style(DIM);
    for (title, rows) in [("first record", &first.context), ("its feature lists", &first.lists)] {
        if rows.is_empty() {
            continue;
        }
        let width = rows.iter().map(|(key, _)| Key(key).width().min(40)).max().unwrap_or(0);
        console.print(format_args!("{indent}{dim}{title}{dim:#}\n"))?;
        for (key, shape) in rows {
            let pad = width.saturating_sub(Key(key).width());
            console.print(format_args!("{indent}  {}{:pad$}  {dim}{shape}{dim:#}\n", Key(key), ""))?;
        }
    }
    Ok(())
}

fn print_table(all: &[FileSummary], console: &mut Console) -> Outcome {
    let size = |bytes: Option<u64>| bytes.map_or(String::new(), |bytes| console.size(bytes).to_string());
    // The state of an index, without its path.
    let state = |f: &FileSummary| match f.index.as_deref() {
        Some(state) => state.split_once([' ', ':']).map_or(state, |(first, _)| first).to_owned(),
        None => "-".to_owned(),
    };
    let mut rows = vec![["records", "size", "compression", "index", "kind", "file"].map(str::to_owned)];
    for f in all {
        let file = tfseek::error::printable(&f.path).to_string();
        let records = f.records.map_or("-".to_owned(), thousands);
        let compression = f.compression.map_or("-", Compression::name).to_owned();
        let kind = match f.looks_like {
            Some(format) => format!("{format}, not TFRecord"),
            None => match f.payload_type() {
                Some(of) => format!("{}: {}", kind_name(f), of.name()),
                None => kind_name(f).to_owned(),
            },
        };
        rows.push([records, size(f.size), compression, state(f), kind, file]);
    }
    let sum = |files: &[&FileSummary], name: String| {
        let records: u64 = files.iter().filter_map(|f| f.records).sum();
        let bytes = files.iter().map(|f| f.size.unwrap_or(0)).sum();
        [thousands(records), size(Some(bytes)), String::new(), String::new(), String::new(), name]
    };
    let sets = sets(all);
    // A single set is the total.
    if sets.len() > 1 {
        rows.extend(sets.iter().filter_map(|(set, files)| {
            let set = tfseek::error::printable(set.as_ref()?);
            let n = count(files.len() as u64, "file");
            Some(sum(files, format!("{set} ({n})")))
        }));
    }
    rows.push(sum(&all.iter().collect::<Vec<_>>(), count(all.len() as u64, "file")));
    let [a, b, c, d, e, _] = widths(rows.iter().map(|row| row.each_ref().map(String::len)));
    let last = rows.len() - 1;
    for (k, [records, size, compression, index, kind, file]) in rows.iter().enumerate() {
        let style = console.style(if k == 0 {
            DIM
        } else if k == last {
            BOLD
        } else {
            anstyle::Style::new()
        });
        let row = format!("{records:>a$}  {size:>b$}  {compression:c$}  {index:d$}  {kind:e$}  {file}");
        console.print(format_args!("{style}{row}{style:#}\n"))?;
    }
    Ok(())
}

/// Groups files by the sets that their names belong to. Files without such a name are one group.
fn sets(all: &[FileSummary]) -> Vec<(Option<PathBuf>, Vec<&FileSummary>)> {
    let mut sets: Vec<(Option<PathBuf>, Vec<&FileSummary>)> = Vec::new();
    let mut places = HashMap::new();
    for file in all {
        let set = set_of(&file.path);
        let place = *places.entry(set.clone()).or_insert(sets.len());
        if place == sets.len() {
            sets.push((set, Vec::new()));
        }
        if let Some((_, files)) = sets.get_mut(place) {
            files.push(file);
        }
    }
    sets
}

fn as_json(summary: &FileSummary, features: &FoundFeatures, cache: Option<&ObjectCache>) -> Value {
    let object = |rows: &[(String, String)]| -> Value {
        rows.iter()
            .map(|(key, shape)| (key.clone(), Value::from(shape.as_str())))
            .collect::<serde_json::Map<_, _>>()
            .into()
    };
    json!({
        "file": summary.path.to_string_lossy(),
        // The set that the file's name belongs to.
        "set": set_of(&summary.path).map(|set| set.to_string_lossy().into_owned()),
        "records": summary.records,
        "size": summary.size,
        "compression": summary.compression.map(Compression::name),
        // In the JSON of other verbs `index` is the number of a record.
        "index_file": summary.index,
        "index_bytes": summary.index_bytes,
        // Of a compressed file with an index.
        "inflated": summary.inflated.as_ref().map(|inflated| inflated.bytes),
        "checkpoints": summary.inflated.as_ref().map(|inflated| inflated.checkpoints.0),
        "checkpoint_spacing": summary.inflated.as_ref().map(|inflated| inflated.checkpoints.1),
        // Null without an index with gaps.
        "gaps": summary.gaps.as_ref().map(|gaps| gaps.iter().map(warnings::gap).collect::<Value>()),
        "gap_bytes": summary.gaps.as_deref().map(gap_bytes),
        "warnings": warnings::as_json(&summary.warnings),
        "kind": summary.kind.map(PayloadKind::word),
        "looks_like": summary.looks_like,
        // By the dataset_info.json of TensorFlow Datasets.
        "split": tfds::as_json(summary.split.as_ref()),
        // By its features.json.
        "features": tfds::features_json(features),
        // By its features.json, for each feature with steps. Null for records that are no episodes.
        "steps": summary.steps,
        // Of objects, on disk. Null without one.
        "cache": cache.map(|(folder, pieces, bytes, limit)| json!({
            "folder": folder.to_string_lossy(),
            "pieces": pieces,
            "bytes": bytes,
            "limit": limit,
        })),
        // Of payloads that are neither Examples nor SequenceExamples.
        "payloads": summary.payload_type().map(PayloadType::name),
        "fields": summary.payloads.as_ref().map(fields_json),
        "fields_records": summary.payloads.as_ref().map(PayloadSummary::records),
        "first": summary.first.as_ref().map(|keys| object(&keys.context)),
        "first_lists": summary.first.as_ref().filter(|keys| !keys.lists.is_empty()).map(|keys| object(&keys.lists)),
        "error": summary.error,
    })
}

/// Returns the top-level fields of payloads as JSON.
fn fields_json(seen: &PayloadSummary) -> Value {
    let field = |(number, name, field): (u32, Option<&str>, &FieldSummary)| {
        let wire: BTreeSet<_> = field.types.iter().map(|value_type| value_type.wire_type()).collect();
        let types: Vec<_> = field.types.iter().map(|value_type| value_type.name()).collect();
        let (min, max) = field.values;
        json!({
            "number": number,
            "name": name,
            "wire_types": wire,
            "types": types,
            "records": field.records,
            "values": [min, max],
        })
    };
    seen.fields().map(field).collect()
}
