//! Datasets for the verbs that access records by number.

use crate::args::{AccessArgs, IoMode, PathsArgs, PayloadArgs, PayloadKind, ReadArgs};
use crate::console::Console;
use crate::damage::SkippedErrors;
use crate::exit::{Failure, Outcome};
use crate::features;
use crate::output::{NumberedRecord, StepNumber};
use crate::progress;
use crate::split::{self, SplitPath};
use crate::steps;
use crate::store;
use crate::warnings;
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use tfseek::column::{ColumnOptions, DatasetColumn};
use tfseek::example::MessageKind;
use tfseek::order::Subset;
use tfseek::{Dataset, DatasetOptions, Filter};
use tfseek_tfds::{EpisodeWindows, Features, FoundFeatures};

/// A dataset, and the message kinds of the shards that were accessed.
pub(crate) struct Numbered {
    pub(crate) dataset: Dataset,
    choice: PayloadKind,
    kinds: HashMap<usize, MessageKind>,
    buf: Vec<u8>,
    /// Set if the records are the steps of episodes.
    steps: Option<EpisodeWindows>,
}

impl Numbered {
    pub(crate) fn new(dataset: Dataset, choice: PayloadKind) -> Numbered {
        Numbered { dataset, choice, kinds: HashMap::new(), buf: Vec::new(), steps: None }
    }

    /// Returns the steps of the records, as records of their own, and their features. `features` are the
    /// records' features.
    pub(crate) fn into_steps(
        self,
        features: &Features,
        feature: Option<&str>,
        console: &mut Console,
    ) -> Outcome<(Numbered, FoundFeatures)> {
        let episodes = steps::open(&self.dataset, features, feature, console)?;
        let steps = episodes.step_records().map_err(split::failure)?;
        let dataset = steps.windows().dataset().clone();
        let features = steps::features(&steps);
        let numbered = Numbered::new(dataset, PayloadKind::Example);
        Ok((Numbered { steps: Some(steps), ..numbered }, features))
    }

    /// Reads record `i`, counted over all shards.
    pub(crate) fn get(&mut self, i: u64) -> tfseek::Result<NumberedRecord<'_>> {
        let kind = match self.choice.specified() {
            Some(kind) => kind,
            None => self.guess(i)?,
        };
        let step = self.steps.as_ref().map(|steps| steps.windows().locate(i)).transpose()?;
        let step = step.map(|(episode, step)| StepNumber { episode: Some(episode), step });
        let record = self.dataset.read(i, &mut self.buf)?;
        Ok(NumberedRecord { record, index: Some(i), kind, strict: self.choice != PayloadKind::Auto, step })
    }

    /// Guesses the kind of the shard that contains record `i` from the shard's first records. Damage there
    /// ends the guess and is not an error, because those records were not requested.
    fn guess(&mut self, i: u64) -> tfseek::Result<MessageKind> {
        let (s, _) = self.dataset.shard_of(i)?;
        if let Some(&kind) = self.kinds.get(&s) {
            return Ok(kind);
        }
        let range = self.dataset.shards().nth(s).map_or(0..0, |shard| shard.start..shard.start + shard.len);
        let kind = tfseek_tools::guess_kind(&self.dataset, range);
        self.kinds.insert(s, kind);
        Ok(kind)
    }
}

/// Opens the dataset that the arguments specify. Missing indexes are built, with a progress bar.
pub(crate) fn open(
    paths: &PathsArgs,
    access: &AccessArgs,
    read: ReadArgs,
    console: &mut Console,
) -> Outcome<Dataset> {
    let split = SplitPath::among(&paths.paths)?;
    let bar = match split {
        Some(_) => progress::bytes(console, "indexing", None),
        None => {
            let (resolved, _) =
                tfseek::paths::resolve_in_store(store::store(), &paths.paths, paths.allow_missing)?;
            progress::bytes(console, "indexing", progress::total_size(&resolved))
        }
    };
    let mut index = read.index().threads(access.threads.threads);
    if let Some(dir) = &access.index_dir {
        index = index.index_dir(dir);
    }
    let options = read.dataset(index).allow_missing(paths.allow_missing).progress(progress::callback(&bar));
    let opened = match split {
        Some(split) => {
            let io = access.io;
            let open = move |options: &DatasetOptions, paths: &[PathBuf]| open_with(options, io, paths);
            split.open(options, Some(Arc::new(open)))
        }
        None => open_with(&options, access.io, &paths.paths).map_err(Failure::from),
    };
    progress::end(&bar, opened.is_ok());
    let dataset = opened?;
    warnings::print(dataset.warnings(), console);
    Ok(dataset)
}

/// Returns the files that a verb by number reads. For a split, these are the files of all splits.
pub(crate) fn files(paths: &[PathBuf], allow_missing: bool) -> Outcome<Vec<PathBuf>> {
    match SplitPath::among(paths)? {
        Some(split) => split.shards(),
        None => Ok(tfseek::paths::resolve_in_store(store::store(), paths, allow_missing)?.0),
    }
}

/// Returns the records that meet a filter. Missing columns are built and records are read with a progress
/// bar.
pub(crate) fn select(dataset: &Dataset, filter: &Filter, console: &mut Console) -> Outcome<Subset> {
    let filter = &named(dataset, filter, console)?;
    let (selected, found) = with_column_bar(dataset, console, |columns| dataset.select(filter, columns))?;
    warnings::print(&found, console);
    Ok(selected)
}

/// Returns the records to read: those that meet a condition, and with `--damage skip` those that decode, if
/// `decode` is true. The others are added to `skipped`. `None` for all records.
pub(crate) fn subset(
    dataset: &Dataset,
    (filter, decode): (Option<&Filter>, bool),
    payload: PayloadArgs,
    skipped: &mut SkippedErrors,
    console: &mut Console,
) -> Outcome<Option<Subset>> {
    match filter {
        _ if payload.read.skips() && (decode || filter.is_some()) => {
            let kind = payload.kind.specified();
            let filter = filter.map(|filter| named(dataset, filter, console)).transpose()?;
            let found =
                tfseek_tools::decodable(dataset, kind, decode, filter.as_ref(), None, |e| skipped.add(e));
            Ok(Some(found?))
        }
        Some(filter) => Ok(Some(select(dataset, filter, console)?)),
        None => Ok(None),
    }
}

/// Returns a condition that knows the names of the dataset's labels.
fn named(dataset: &Dataset, filter: &Filter, console: &mut Console) -> Outcome<Filter> {
    let features = features::find(dataset.shards().map(|shard| shard.path), console);
    Ok(features.filter(filter)?)
}

/// Returns the column of a feature. Missing column files are built, with a progress bar.
pub(crate) fn column(dataset: &Dataset, feature: &str, console: &mut Console) -> Outcome<DatasetColumn> {
    let column = with_column_bar(dataset, console, |columns| dataset.column(feature, columns))?;
    warnings::print_of_columns(std::slice::from_ref(&column), console);
    Ok(column)
}

fn with_column_bar<T>(
    dataset: &Dataset,
    console: &Console,
    build: impl FnOnce(&ColumnOptions) -> tfseek::Result<T>,
) -> tfseek::Result<T> {
    let bar = progress::bytes(console, "columns", dataset.known_bytes());
    let built = build(&ColumnOptions {
        progress: Some(Arc::new(progress::callback(&bar))),
        ..ColumnOptions::default()
    });
    progress::end(&bar, built.is_ok());
    built
}

#[allow(unsafe_code)]
fn open_with(options: &DatasetOptions, io: IoMode, paths: &[PathBuf]) -> tfseek::Result<Dataset> {
    match io {
        IoMode::Pread => options.open(paths),
        // SAFETY: `open_with_maps` requires that no process overwrites or truncates the files while they are
        // mapped. The user who runs the command guarantees this: the help of `--io` and the docs of `run`
        // state the requirement, and `--io pread` reads without maps.
        IoMode::Map => unsafe { options.open_with_maps(paths) },
    }
}
