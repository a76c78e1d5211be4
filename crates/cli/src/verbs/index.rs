//! `tfseek index`: builds index files, which make random access to shards possible.

mod steps;

use crate::args::{self, GlobalArgs, PathsArgs, ReadArgs, ThreadsArgs, VerifyChoice};
use crate::bytes::Size;
use crate::console::Console;
use crate::exit::{DATA, Failure, Outcome};
use crate::split::SplitPath;
use crate::text::{self, count};
use crate::{features, outputs, progress, records, store, warnings};
use clap::{Args, ValueEnum};
use indicatif::ProgressBar;
use serde_json::{Map, Value, json};
use std::ffi::OsString;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;
use tfseek::column::{ColumnOptions, DatasetColumn};
use tfseek::index::{self, Index, IndexOptions};
use tfseek::io::{Existing, Output};
use tfseek::order::Subset;
use tfseek::{DType, ErrorKind, Filter, IndexMode, Warning};
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
    /// With --format dali: only records that meet this condition, for example 'label in 3, 5..9 and
    /// present(name)'
    #[arg(long = "where", value_name = "EXPR", value_parser = args::filter, requires = "format", conflicts_with = "pack")]
    pub(crate) condition: Option<Filter>,
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
        if self.read.verify() == VerifyChoice::None {
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
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum IndexFormat {
    Tfri,
    Dali,
}

pub(crate) fn run(args: &IndexArgs, global: &GlobalArgs, console: &mut Console) -> Outcome {
    let mut report = IndexReport::new();
    build(args, global, console, &mut report)?;
    if args.json {
        console.print(format_args!("{}\n", Value::from(report)))?;
    }
    Ok(())
}

/// The report of `--json`.
type IndexReport = Map<String, Value>;

fn build(args: &IndexArgs, global: &GlobalArgs, console: &mut Console, report: &mut IndexReport) -> Outcome {
    if args.condition.is_some() && args.format != IndexFormat::Dali {
        return Err(Failure::usage(
            "--where requires --format dali: an index of tfseek contains all records",
        ));
    }
    let paths = match &args.steps {
        Some(_) => steps::shards(&args.paths, args.read, console)?,
        None => {
            SplitPath::refuse(&args.paths.paths)?;
            records::resolve_files(&args.paths.paths, args.paths.allow_missing, console)?
        }
    };
    check_objects(&paths, args)?;
    let sets = match &args.steps {
        Some(feature) => Some(steps::sets(&paths, args::named_feature(Some(feature)), console)?),
        None => None,
    };
    let bytes = progress::total_size(&paths);
    let bar = progress::bytes(global, "indexing", bytes);
    let mut options = args.index()?.check_payloads(args.check).threads(args.threads.threads);
    options = options.checkpoint_every(args.checkpoint_every).progress(progress::callback(&bar));
    if args.rebuild {
        options = options.mode(IndexMode::Rebuild);
    }
    if let (Some(dir), IndexFormat::Tfri) = (&args.index_dir, args.format) {
        options = options.index_dir(dir);
    }
    let start = Instant::now();
    let mut fresh = match args.format {
        IndexFormat::Tfri => fresh(&paths, args, &options)?,
        IndexFormat::Dali => Vec::new(),
    };
    if let (Some(sets), Some(_)) = (&sets, &args.pack) {
        // The pack comes last: readers of a pack then have the tables.
        let all = index::open_shards(&paths, &options.clone().auto_limit(u64::MAX));
        bar.finish_and_clear();
        warnings::print(&all.map_err(|e| elsewhere(e.into(), &paths, args))?.warnings, console);
        if steps::build(sets, &paths, args, global, console, report)? > 0 {
            return Ok(());
        }
        options = options.mode(IndexMode::Auto);
    }
    let done = match (&args.pack, args.format) {
        (Some(name), _) => {
            index::write_pack(name, &paths, &options).map(|(path, opened)| (Some(path), vec![Ok(opened)]))
        }
        (None, IndexFormat::Tfri) => index::build_beside(&paths, &options).map(|each| (None, each)),
        (None, IndexFormat::Dali) => return dali(&paths, args, &options, &bar, console, report),
    };
    bar.finish_and_clear();
    let (pack, built) = done.map_err(|e| elsewhere(e.into(), &paths, args))?;
    let mut records = 0;
    let mut failed = 0;
    let mut indexed = Vec::new();
    for (k, shard) in built.into_iter().enumerate() {
        match shard {
            Ok(opened) => {
                warnings::print(&opened.warnings, console);
                indexed.extend(paths.get(k).cloned());
                records += opened.indexes.iter().map(Index::len).sum::<u64>();
            }
            // The other shards were still indexed.
            Err(e) => {
                failed += 1;
                if let Some(fresh) = fresh.get_mut(k) {
                    *fresh = false;
                }
                console.report_and_continue(Err(elsewhere(e.into(), &paths, args)))?;
            }
        }
    }
    let shards = count(paths.len() as u64, "shard");
    let shards = if failed == 0 { shards } else { format!("{} of {shards}", paths.len() - failed) };
    let size = Size { bytes, exact: global.bytes };
    let into = pack.as_ref().map_or(String::new(), |path| format!(" -> {}", path.display()));
    let fresh = fresh.iter().filter(|&&fresh| fresh).count();
    let n_built = paths.len() - failed - fresh;
    let time = start.elapsed();
    report.extend([
        ("shards".to_owned(), json!(paths.len())),
        ("failed".to_owned(), json!(failed)),
        ("records".to_owned(), json!(records)),
        ("bytes".to_owned(), json!(bytes)),
        ("built".to_owned(), json!(n_built)),
        ("fresh".to_owned(), json!(fresh)),
        ("seconds".to_owned(), json!(time.as_secs_f64())),
        ("pack".to_owned(), json!(pack.as_ref().map(|path| path.to_string_lossy()))),
    ]);
    let built = if n_built == 1 { "1 index".to_owned() } else { format!("{n_built} indexes") };
    let records = count(records, "record");
    let time = text::duration(time);
    if !args.json {
        console
            .note(format_args!("{shards}, {records}, {size} in {time}; {built} built, {fresh} fresh{into}"));
    }
    if !args.column.is_empty() {
        // The indexes are in the pack and not next to the shards.
        let sources = pack.as_ref().map_or(&*indexed, std::slice::from_ref);
        columns(sources, args, global, console, report)?;
    }
    match sets.filter(|_| args.pack.is_none()) {
        Some(sets) => steps::build(&sets, &indexed, args, global, console, report).map(drop),
        None => Ok(()),
    }
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
    match failure {
        Failure::Error(e)
            if args.index_dir.is_none()
                && matches!(e.kind(), ErrorKind::Io(_))
                && e.location()
                    .path
                    .as_ref()
                    .is_some_and(|path| shards.iter().all(|shard| **shard != **path)) =>
        {
            Failure::Noted(e, hint.into())
        }
        failure => failure,
    }
}

/// Builds the columns of indexed shards, or of a pack. All columns of a shard are built in one scan.
fn columns(
    sources: &[PathBuf],
    args: &IndexArgs,
    global: &GlobalArgs,
    console: &mut Console,
    report: &mut IndexReport,
) -> Outcome {
    let bar = progress::bytes(global, "columns", progress::total_size(sources));
    let mut index = args.index()?.auto_limit(u64::MAX);
    if sources.len() > 1 {
        index = index.threads(1);
    }
    if let Some(dir) = &args.index_dir {
        index = index.index_dir(dir);
    }
    let options = args.read.dataset(index).allow_missing(true);
    let options = options.progress(progress::callback(&bar));
    let features: Vec<&str> = args.column.iter().map(String::as_str).collect();
    // A shard may lack a feature that other shards have. Features that no shard has are found below.
    let column_options = ColumnOptions {
        classes: args.classes,
        rebuild: args.rebuild,
        unknown: true,
        beside: true,
        ..ColumnOptions::default()
    };
    let mut written = Vec::new();
    let mut files = vec![Vec::new(); features.len()];
    // The kind of each feature, the number of records that have it, and the number of all records.
    let mut found: Vec<(Option<DType>, u64, u64)> = vec![(None, 0, 0); features.len()];
    let build = |source: &PathBuf| options.open(source)?.columns(&features, &column_options);
    let done = in_order(
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
            for (files, column) in files.iter_mut().zip(&columns) {
                files.extend(column.shards().iter().filter_map(|shard| shard.file().map(Path::to_path_buf)));
            }
            for ((kind, count, len), column) in found.iter_mut().zip(&columns) {
                match (*kind, column.kind) {
                    (Some(kind), Some(other)) if kind != other => {
                        let path = source.display();
                        let feature = &column.feature;
                        let kind = kind.list_name();
                        let other = other.list_name();
                        let message = format!(
                            "{path}: {feature:?} is of kind {other}, in earlier shards of kind {kind}"
                        );
                        console.report(&Failure::Message(DATA, message));
                    }
                    (before, here) => *kind = before.or(here),
                }
                *count += column.count();
                *len += column.len();
            }
            Ok(())
        },
    );
    bar.finish_and_clear();
    done?;
    if written.is_empty() {
        return Ok(());
    }
    let mut columns = Vec::new();
    for ((feature, (kind, count, len)), files) in features.iter().zip(found).zip(files) {
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
    report.insert("columns".into(), columns.into());
    Ok(())
}

/// Writes the text format of DALI: `SHARD.idx`, with one line per record.
fn dali(
    paths: &[PathBuf],
    args: &IndexArgs,
    options: &IndexOptions,
    bar: &ProgressBar,
    console: &mut Console,
    report: &mut IndexReport,
) -> Outcome {
    // The user requested the index, so the limit on automatic scans does not apply.
    let options = options.clone().threads(1).auto_limit(u64::MAX);
    let options = if args.rebuild { options.mode(IndexMode::Memory) } else { options };
    let features = features::find(paths.iter().map(PathBuf::as_path), console);
    let filter = args.condition.as_ref().map(|filter| features.filter(filter)).transpose()?;
    let filter = filter.as_ref();
    if paths.len() > 1 && filter.is_some_and(Filter::uses_numbers) {
        let message = "--where: record numbers count over all shards, and each shard has its own text index: \
             expected one shard, or a condition without `record`";
        return Err(Failure::usage(message));
    }
    if filter.is_some() {
        // Building a column scans the shards a second time.
        bar.inc_length(bar.length().unwrap_or(0));
    }
    let targets: Vec<_> = paths.iter().map(|path| target(path, args.index_dir.as_deref())).collect();
    let outputs = targets.iter().zip(paths).map(|(target, path)| (target.as_path(), path.as_path()));
    outputs::check_distinct(outputs, paths.iter().map(PathBuf::as_path))?;
    if let Some(dir) = &args.index_dir {
        std::fs::create_dir_all(dir).map_err(|e| Failure::io(dir, e))?;
    }
    let count = AtomicU64::new(0);
    let mut written = Vec::new();
    let export = |path: &PathBuf, target: &PathBuf| -> Outcome<Vec<Warning>> {
        let opened = index::open_shards(std::slice::from_ref(path), &options)?;
        let selected = filter.as_ref().map(|filter| select(path, filter, args, bar)).transpose()?;
        let (selected, mut warnings) = selected.map_or((None, Vec::new()), |(records, w)| (Some(records), w));
        warnings.extend(opened.warnings);
        count.fetch_add(selected.as_ref().map_or(0, Subset::len), Ordering::Relaxed);
        opened.indexes.iter().try_for_each(|index| write(index, selected.as_ref(), target))?;
        Ok(warnings)
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
    bar.finish_and_clear();
    done?;
    if let Some(filter) = filter
        && count.into_inner() == 0
    {
        check_features(paths, &written, filter, args)?;
    }
    report.insert("files".into(), written.iter().map(|target| json!(target.to_string_lossy())).collect());
    written.iter().filter(|_| !args.json).try_for_each(|target| {
        let target = console.listed(target);
        console.print(format_args!("{target}\n"))
    })
}

/// Returns an error for a filter on a feature that no record of any shard has, and removes the files written
/// with that filter.
fn check_features(paths: &[PathBuf], written: &[&PathBuf], filter: &Filter, args: &IndexArgs) -> Outcome {
    let index = args.index()?.auto_limit(u64::MAX);
    let options = args.read.dataset(index).allow_missing(true);
    // The errors of failed shards have been reported.
    let Ok(dataset) = options.open(paths) else { return Ok(()) };
    match dataset.select(filter, &ColumnOptions::default()) {
        Err(e) if matches!(e.kind(), ErrorKind::UnknownFeature { .. }) => {
            for target in written.iter().filter(|target| target.is_file()) {
                std::fs::remove_file(target).map_err(|e| Failure::io(target, e))?;
            }
            Err(e.into())
        }
        _ => Ok(()),
    }
}

fn target(shard: &Path, dir: Option<&Path>) -> PathBuf {
    let mut name = OsString::from(shard.file_name().unwrap_or_default());
    name.push(".idx");
    match dir {
        None => shard.with_file_name(name),
        Some(dir) => dir.join(name),
    }
}

/// Returns the records of one shard that meet a filter.
fn select(
    path: &Path,
    filter: &Filter,
    args: &IndexArgs,
    bar: &ProgressBar,
) -> Outcome<(Subset, Vec<Warning>)> {
    let mode = if args.rebuild { IndexMode::Memory } else { IndexMode::Auto };
    let index = args.index()?.mode(mode).auto_limit(u64::MAX).threads(1);
    let options = args.read.dataset(index).allow_missing(true);
    // A shard may lack a feature that other shards have. `check_features` finds features that no shard has.
    let columns = ColumnOptions {
        unknown: true,
        progress: Some(Arc::new(progress::callback(bar))),
        ..ColumnOptions::default()
    };
    // The error names the shard, because the kinds of features may differ between shards.
    let (dataset, in_shard) = (options.open(path)?, |e: tfseek::Error| e.in_file(path));
    dataset.select(filter, &columns).map_err(|e| in_shard(e).into())
}

fn write(index: &Index, selected: Option<&Subset>, target: &Path) -> Outcome {
    let io = |e| Failure::io(target, e);
    let mut file = BufWriter::new(Output::open(target, Existing::Replace).map_err(io)?);
    let written = match selected {
        Some(selected) => index::export_text(index, selected.iter(), &mut file),
        None => index::export_text(index, 0..index.len(), &mut file),
    };
    written.map_err(|e| if matches!(e.kind(), ErrorKind::Io(_)) { e.in_file(target) } else { e })?;
    file.flush().map_err(io)?;
    file.into_inner().map_err(|e| io(e.into_error()))?.commit().map_err(io)
}
