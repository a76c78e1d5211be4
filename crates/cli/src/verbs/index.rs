//! `tfseek index`: builds index files, which make random access to shards possible.

mod steps;

use crate::args::{self, PathsArgs, ReadArgs, ThreadsArgs, VerifyChoice};
use crate::bytes::Size;
use crate::console::Console;
use crate::exit::{DATA, Failure, Outcome};
use crate::split::SplitPath;
use crate::text::{self, count};
use crate::{outputs, progress, records, store, warnings};
use clap::{Args, ValueEnum};
use indicatif::ProgressBar;
use serde_json::{Map, Value, json};
use std::ffi::OsString;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tfseek::column::{ColumnOptions, DatasetColumn};
use tfseek::index::{self, Index, IndexOptions};
use tfseek::io::{Existing, Output};
use tfseek::{DType, DatasetOptions, ErrorKind, IndexMode, Warning};
use tfseek_tools::in_order;

#[derive(Debug, Args)]
pub(crate) struct IndexArgs {
    #[command(flatten)]
    pub(crate) paths: PathsArgs,
    /// Scan all shards again and replace existing index files
    #[arg(long)]
    pub(crate) rebuild: bool,
    /// Also verify payload checksums, which reads all bytes
    #[arg(long)]
    pub(crate) check: bool,
    /// Index format; `tfri`: tfseek's own, `dali`: the text format of DALI and tfrecord2idx (`SHARD.idx` next
    /// to the shard, or in --index-dir)
    #[arg(long, value_name = "FORMAT", default_value = "tfri")]
    pub(crate) format: IndexFormat,
    /// Also store the values of this feature, for filters and class balance: at most one value per record
    /// (repeatable)
    #[arg(long, value_name = "FEATURE", conflicts_with = "format")]
    pub(crate) column: Vec<String>,
    /// With --column: also list the records of each distinct value
    #[arg(long, requires = "column")]
    pub(crate) classes: bool,
    /// Also store the places of the steps in episodes, of data sets with a features.json (RLDS): tables for
    /// reads of single steps. FEATURE names the feature with the steps, if there are several
    #[arg(long, value_name = "FEATURE", num_args = 0..=1, require_equals = true, default_missing_value = "", conflicts_with = "format")]
    pub(crate) steps: Option<String>,
    /// Write one file for all shards: `.tfseek/NAME.tfrp` in their common folder, also beside objects. With
    /// --steps: also the tables of each shard to `.tfseek/` beside it
    #[arg(long, value_name = "NAME", conflicts_with_all = ["format", "index_dir"])]
    pub(crate) pack: Option<String>,
    /// Decompressed bytes between two checkpoints of a compressed file: fewer make random access faster and
    /// the index larger
    #[arg(long, value_name = "BYTES", default_value_t = 1 << 20, conflicts_with_all = ["format", "pack"])]
    pub(crate) checkpoint_every: u64,
    /// Folder for index files: searched first, and new index files are written to it
    #[arg(long, value_name = "DIR")]
    pub(crate) index_dir: Option<PathBuf>,
    /// Print the report as one JSON object
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) read: ReadArgs,
    /// With --damage skip: write the damaged bytes of each file to `DIR/FILE.rest`
    #[arg(long, value_name = "DIR")]
    pub(crate) rest: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) threads: ThreadsArgs,
}

impl IndexArgs {
    /// Returns the options of indexes, with the folder for damaged bytes.
    ///
    /// # Errors
    /// `--rest` without `--damage skip`, and `--verify none`.
    fn index(&self) -> Outcome<IndexOptions> {
        if self.read.verify == VerifyChoice::None {
            return Err(Failure::usage(
                "--verify none: expected checksums, because readers that verify would trust the index (other verbs read the records with it)",
            ));
        }
        match &self.rest {
            None => Ok(self.read.index()),
            Some(dir) if self.read.skips() => Ok(self.read.index().rest(dir)),
            Some(_) => Err(Failure::usage("--rest requires --damage skip")),
        }
    }

    /// Returns the options of datasets whose shards have an index.
    fn indexed(&self, threads: Option<usize>) -> Outcome<DatasetOptions> {
        let mut index = self.index()?.auto_limit(u64::MAX).threads(threads);
        if let Some(dir) = &self.index_dir {
            index = index.index_dir(dir);
        }
        Ok(self.read.dataset(index).allow_missing(true))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum IndexFormat {
    Tfri,
    Dali,
}

pub(crate) fn run(args: &IndexArgs, console: &mut Console) -> Outcome {
    let report = build(args, console)?;
    if args.json {
        console.print(format_args!("{}\n", Value::from(report)))?;
    }
    Ok(())
}

/// The report of `--json`.
type IndexReport = Map<String, Value>;

fn build(args: &IndexArgs, console: &mut Console) -> Outcome<IndexReport> {
    let paths = match &args.steps {
        Some(_) => steps::shards(&args.paths, args.read, console)?,
        None => {
            SplitPath::refuse(&args.paths.paths)?;
            records::resolve_files(&args.paths.paths, args.paths.allow_missing, console)?
        }
    };
    check_objects(&paths, args)?;
    let feature = args::named_feature(args.steps.as_deref());
    let sets = args.steps.as_ref().map(|_| steps::sets(&paths, feature, console)).transpose()?;
    let bytes = progress::total_size(&paths);
    let bar = progress::bytes(console, "indexing", bytes);
    let mut options = args.index()?.check_payloads(args.check).threads(args.threads.threads);
    options = options.checkpoint_every(args.checkpoint_every).progress(progress::callback(&bar));
    if args.rebuild {
        options = options.mode(IndexMode::Rebuild);
    }
    if args.format == IndexFormat::Dali {
        let files = dali(&paths, args, &options, &bar, console)?;
        return Ok(IndexReport::from_iter([("files".to_owned(), files)]));
    }
    if let Some(dir) = &args.index_dir {
        options = options.index_dir(dir);
    }
    let mut report = IndexReport::new();
    let start = Instant::now();
    let fresh = fresh(&paths, args, &options)?;
    if let (Some(sets), Some(_)) = (&sets, &args.pack) {
        // The pack comes last: readers of a pack then have the tables.
        let all = index::open_shards(&paths, &options.clone().auto_limit(u64::MAX));
        progress::end(&bar, all.is_ok());
        warnings::print(&all.map_err(|e| elsewhere(e.into(), &paths, args))?.warnings, console);
        let tables = steps::build(sets, &paths, args, console)?;
        report.extend(tables.report());
        if tables.failed > 0 {
            return Ok(report);
        }
        options = options.mode(IndexMode::Auto);
    }
    let built = indexes(&paths, args, &options, &fresh, &bar, console)?;
    let time = start.elapsed();
    report.extend(built.report(bytes, time));
    if !args.json {
        console.note(built.summary(console.size(bytes), time));
    }
    if !args.column.is_empty() {
        // The indexes are in the pack and not next to the shards.
        let sources = built.pack.as_ref().map_or(&*built.indexed, std::slice::from_ref);
        let columns = columns(sources, args, console)?;
        report.extend(columns.map(|columns| ("columns".to_owned(), Value::from(columns))));
    }
    if let (Some(sets), None) = (&sets, &args.pack) {
        report.extend(steps::build(sets, &built.indexed, args, console)?.report());
    }
    Ok(report)
}

/// The index files that were built.
struct BuiltIndexes {
    /// The file with all indexes.
    pack: Option<PathBuf>,
    /// The shards with an index of their own.
    indexed: Vec<PathBuf>,
    shards: usize,
    failed: usize,
    fresh: usize,
    records: u64,
}

impl BuiltIndexes {
    fn built(&self) -> usize {
        self.shards - self.failed - self.fresh
    }

    fn report(&self, bytes: u64, time: Duration) -> [(String, Value); 8] {
        [
            ("shards".to_owned(), json!(self.shards)),
            ("failed".to_owned(), json!(self.failed)),
            ("records".to_owned(), json!(self.records)),
            ("bytes".to_owned(), json!(bytes)),
            ("built".to_owned(), json!(self.built())),
            ("fresh".to_owned(), json!(self.fresh)),
            ("seconds".to_owned(), json!(time.as_secs_f64())),
            ("pack".to_owned(), json!(self.pack.as_ref().map(|path| path.to_string_lossy()))),
        ]
    }

    fn summary(&self, size: Size, time: Duration) -> String {
        let mut shards = count(self.shards as u64, "shard");
        if self.failed > 0 {
            shards = format!("{} of {shards}", self.shards - self.failed);
        }
        let records = count(self.records, "record");
        let time = text::duration(time);
        let built = match self.built() {
            1 => "1 index".to_owned(),
            n => format!("{n} indexes"),
        };
        let fresh = self.fresh;
        let into = self.pack.as_ref().map_or(String::new(), |path| format!(" -> {}", path.display()));
        format!("{shards}, {records}, {size} in {time}; {built} built, {fresh} fresh{into}")
    }
}

/// Builds the index of each shard, or the pack of all. `fresh` is true for shards that have an index.
fn indexes(
    paths: &[PathBuf],
    args: &IndexArgs,
    options: &IndexOptions,
    fresh: &[bool],
    bar: &ProgressBar,
    console: &mut Console,
) -> Outcome<BuiltIndexes> {
    let done = match &args.pack {
        Some(name) => {
            index::write_pack(name, paths, options).map(|(path, opened)| (Some(path), vec![Ok(opened)]))
        }
        None => index::build_beside(paths, options).map(|each| (None, each)),
    };
    progress::end(bar, done.is_ok());
    let (pack, shards) = done.map_err(|e| elsewhere(e.into(), paths, args))?;
    let mut built = BuiltIndexes {
        pack,
        indexed: Vec::new(),
        shards: paths.len(),
        failed: 0,
        fresh: fresh.iter().filter(|&&fresh| fresh).count(),
        records: 0,
    };
    for (k, shard) in shards.into_iter().enumerate() {
        match shard {
            Ok(opened) => {
                warnings::print(&opened.warnings, console);
                built.indexed.extend(paths.get(k).cloned());
                built.records += opened.indexes.iter().map(Index::len).sum::<u64>();
            }
            // The other shards were still indexed.
            Err(e) => {
                built.failed += 1;
                built.fresh -= usize::from(fresh.get(k) == Some(&true));
                console.report_and_continue(Err(elsewhere(e.into(), paths, args)))?;
            }
        }
    }
    Ok(built)
}

/// Refuses options that would write beside objects, apart from a pack in a bucket.
fn check_objects(paths: &[PathBuf], args: &IndexArgs) -> Outcome {
    let Some(url) = paths.iter().find(|path| store::is_object(path)) else { return Ok(()) };
    let refused = |message| Err(Failure::usage(format!("{}: {message}", url.display())));
    if args.format == IndexFormat::Dali && args.index_dir.is_none() {
        return refused("--format dali requires --index-dir: nothing is written beside objects");
    }
    if args.pack.is_some() && store::is_read_only(url) {
        return refused("nothing can be written there: expected no --pack, which writes beside the objects");
    }
    Ok(())
}

/// Returns for each shard whether it has a fresh index, so that it is not scanned.
fn fresh(paths: &[PathBuf], args: &IndexArgs, options: &IndexOptions) -> Outcome<Vec<bool>> {
    if args.rebuild {
        return Ok(vec![false; paths.len()]);
    }
    let required = options.clone().mode(IndexMode::Require).threads(1);
    let mut all = Vec::new();
    in_order(
        args.threads.threads,
        usize::MAX,
        paths,
        |path| Ok(index::open_shards(std::slice::from_ref(path), &required).is_ok()),
        |fresh| {
            all.push(fresh);
            Outcome::Ok(())
        },
    )?;
    Ok(all)
}

/// Adds the option that selects another folder to the error of an index file that cannot be written.
fn elsewhere(failure: Failure, shards: &[PathBuf], args: &IndexArgs) -> Failure {
    let hint = match args.pack {
        None => "`--index-dir DIR` writes index files to another folder",
        Some(_) => "`--index-dir DIR` instead of `--pack` writes index files to another folder",
    };
    let is_of_index = |e: &tfseek::Error| {
        let path = e.location().path.as_ref();
        matches!(e.kind(), ErrorKind::Io(_))
            && path.is_some_and(|path| shards.iter().all(|shard| **shard != **path))
    };
    match failure {
        Failure::Error(e) if args.index_dir.is_none() && is_of_index(&e) => Failure::Noted(e, hint.into()),
        failure => failure,
    }
}

/// The values of a feature in all shards.
struct FeatureTotals<'a> {
    feature: &'a str,
    kind: Option<DType>,
    /// The number of records that have the feature, and of all records.
    count: u64,
    len: u64,
    files: Vec<PathBuf>,
}

impl FeatureTotals<'_> {
    /// Adds the column of a shard, and reports a kind that differs from earlier shards.
    fn add(&mut self, column: &DatasetColumn, source: &Path, console: &mut Console) {
        self.files.extend(column.shards().iter().filter_map(|shard| shard.file().map(Path::to_path_buf)));
        match (self.kind, column.kind) {
            (Some(kind), Some(other)) if kind != other => {
                let path = source.display();
                let feature = self.feature;
                let kind = kind.list_name();
                let other = other.list_name();
                let message =
                    format!("{path}: {feature:?} is of kind {other}, in earlier shards of kind {kind}");
                console.report(&Failure::Message(DATA, message));
            }
            (before, here) => self.kind = before.or(here),
        }
        self.count += column.count();
        self.len += column.len();
    }
}

/// Builds the columns of indexed shards, or of a pack, and returns their report, unless all shards failed.
fn columns(sources: &[PathBuf], args: &IndexArgs, console: &mut Console) -> Outcome<Option<Vec<Value>>> {
    let bar = progress::bytes(console, "columns", progress::total_size(sources));
    let threads = (sources.len() > 1).then_some(1);
    let options = args.indexed(threads)?.progress(progress::callback(&bar));
    let built = shard_columns(sources, args, &options, console);
    progress::end(&bar, built.is_ok());
    let (written, totals) = built?;
    if written.is_empty() {
        return Ok(None);
    }
    let mut columns = Vec::new();
    for FeatureTotals { feature, kind, count, len, files } in totals {
        // A column without values in all shards is an error, and its files are removed. If a shard failed, it
        // may have the feature.
        if count == 0
            && written.len() == sources.len()
            && let Err(e) = options.open(&written)?.column(feature, &ColumnOptions::default())
            && matches!(e.kind(), ErrorKind::UnknownFeature { .. })
        {
            for file in files {
                std::fs::remove_file(&file).map_err(|e| Failure::io(&file, e))?;
            }
            console.report_and_continue(Err(e.into()))?;
            continue;
        }
        let kind = kind.map(DType::list_name);
        columns.push(json!({"feature": feature, "kind": kind, "values": count, "records": len}));
        if !args.json {
            let kind = kind.unwrap_or("no");
            let records = text::count(len, "record");
            console.note(format_args!("column {feature}: {kind} values in {count} of {records}"));
        }
    }
    Ok(Some(columns))
}

/// Builds the columns of each shard in one scan of it. Returns the shards without an error, and the totals of
/// their features.
fn shard_columns<'a>(
    sources: &[PathBuf],
    args: &'a IndexArgs,
    options: &DatasetOptions,
    console: &mut Console,
) -> Outcome<(Vec<PathBuf>, Vec<FeatureTotals<'a>>)> {
    let features: Vec<&str> = args.column.iter().map(String::as_str).collect();
    // A shard may lack a feature that other shards have. Features that no shard has are found at the end.
    let column_options = ColumnOptions {
        classes: args.classes,
        rebuild: args.rebuild,
        unknown: true,
        beside: true,
        ..ColumnOptions::default()
    };
    let mut written = Vec::new();
    let mut totals: Vec<_> = features
        .iter()
        .map(|&feature| FeatureTotals { feature, kind: None, count: 0, len: 0, files: Vec::new() })
        .collect();
    let build = |source: &PathBuf| options.open(source)?.columns(&features, &column_options);
    in_order(
        args.threads.threads,
        usize::MAX,
        sources,
        |source| Ok((source, build(source))),
        |(source, built): (&PathBuf, tfseek::Result<Vec<DatasetColumn>>)| {
            let columns = match built {
                Ok(columns) => columns,
                Err(e) => return console.report_and_continue(Err(elsewhere(e.into(), sources, args))),
            };
            warnings::print_of_columns(&columns, console);
            written.push(source.clone());
            totals.iter_mut().zip(&columns).for_each(|(totals, column)| totals.add(column, source, console));
            Ok(())
        },
    )?;
    Ok((written, totals))
}

/// Writes the text format of DALI: `SHARD.idx`, with one line per record. Returns the written files.
fn dali(
    paths: &[PathBuf],
    args: &IndexArgs,
    options: &IndexOptions,
    bar: &ProgressBar,
    console: &mut Console,
) -> Outcome<Value> {
    // The user requested the index, so the limit on automatic scans does not apply.
    let options = options.clone().threads(1).auto_limit(u64::MAX);
    let options = if args.rebuild { options.mode(IndexMode::Memory) } else { options };
    let targets: Vec<_> = paths.iter().map(|path| target(path, args.index_dir.as_deref())).collect();
    let outputs = targets.iter().zip(paths).map(|(target, path)| (target.as_path(), path.as_path()));
    outputs::check_distinct(outputs, paths.iter().map(PathBuf::as_path))?;
    if let Some(dir) = &args.index_dir {
        std::fs::create_dir_all(dir).map_err(|e| Failure::io(dir, e))?;
    }
    let mut written = Vec::new();
    let export = |path: &PathBuf, target: &PathBuf| -> Outcome<Vec<Warning>> {
        let opened = index::open_shards(std::slice::from_ref(path), &options)?;
        opened.indexes.iter().try_for_each(|index| write(index, target))?;
        Ok(opened.warnings)
    };
    let done = in_order(
        args.threads.threads,
        usize::MAX,
        paths.iter().zip(&targets),
        |(path, target)| Ok(export(path, target).map(|warnings| (target, warnings))),
        |exported: Outcome<(&PathBuf, Vec<Warning>)>| match exported {
            Ok((target, warnings)) => {
                warnings::print(&warnings, console);
                written.push(target);
                Ok(())
            }
            Err(failure) => console.report_and_continue(Err(elsewhere(failure, paths, args))),
        },
    );
    progress::end(bar, done.is_ok());
    done?;
    if !args.json {
        for target in &written {
            let target = console.listed(target);
            console.print(format_args!("{target}\n"))?;
        }
    }
    Ok(written.iter().map(|target| json!(target.to_string_lossy())).collect())
}

fn target(shard: &Path, dir: Option<&Path>) -> PathBuf {
    let mut name = OsString::from(shard.file_name().unwrap_or_default());
    name.push(".idx");
    match dir {
        None => shard.with_file_name(name),
        Some(dir) => dir.join(name),
    }
}

fn write(index: &Index, target: &Path) -> Outcome {
    let io = |e| Failure::io(target, e);
    let mut file = BufWriter::new(Output::open(target, Existing::Replace).map_err(io)?);
    index::export_text(index, 0..index.len(), &mut file)
        .map_err(|e| if matches!(e.kind(), ErrorKind::Io(_)) { e.in_file(target) } else { e })?;
    file.flush().map_err(io)?;
    file.into_inner().map_err(|e| io(e.into_error()))?.commit().map_err(io)
}
