//! Shards that are read by number, and what kind their records are.

use crate::args::{Access, Door, Global, KindArg, KindChoice, Limit, Paths};
use crate::console::Console;
use crate::exit::Outcome;
use crate::output::Item;
use crate::progress;
use crate::warnings;
use indicatif::ProgressBar;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use tfseek::column::{ColumnOptions, DatasetColumn};
use tfseek::example::{KindGuess, MessageKind};
use tfseek::index::IndexOptions;
use tfseek::{Dataset, DatasetOptions, Filter, Selection};

/// A dataset, and the kinds of its shards as far as they were looked at.
pub(crate) struct Numbered {
    pub(crate) dataset: Dataset,
    choice: KindChoice,
    kinds: HashMap<usize, MessageKind>,
    buf: Vec<u8>,
}

impl Numbered {
    /// Opens what the user named.
    pub(crate) fn open(
        paths: &Paths,
        access: &Access,
        payloads: KindArg,
        global: &Global,
        console: &mut Console,
    ) -> Outcome<Numbered> {
        let dataset = open(paths, access, payloads.limit, global, console)?;
        Ok(Numbered::new(dataset, payloads.kind))
    }

    pub(crate) fn new(dataset: Dataset, choice: KindChoice) -> Numbered {
        Numbered { dataset, choice, kinds: HashMap::new(), buf: Vec::new() }
    }

    /// Record `i`, counted over all shards.
    pub(crate) fn get(&mut self, i: u64) -> tfseek::Result<Item<'_>> {
        let kind = match self.choice.named() {
            Some(kind) => kind,
            None => self.guess(i)?,
        };
        let record = self.dataset.read(i, &mut self.buf)?;
        Ok(Item { record, index: Some(i), kind, strict: self.choice != KindChoice::Auto })
    }

    /// The kind of the shard that holds record `i`, from the shard's first records. Damage there is not what was asked for.
    fn guess(&mut self, i: u64) -> tfseek::Result<MessageKind> {
        let (s, _) = self.dataset.shard_of(i)?;
        if let Some(&kind) = self.kinds.get(&s) {
            return Ok(kind);
        }
        let range = self.dataset.shards().nth(s).map_or(0..0, |shard| shard.start..shard.start + shard.len);
        let mut guess = KindGuess::default();
        for i in range {
            let Ok(record) = self.dataset.read(i, &mut self.buf) else { break };
            guess.add(record.payload());
            if guess.is_complete() {
                break;
            }
        }
        let kind = guess.kind();
        self.kinds.insert(s, kind);
        Ok(kind)
    }
}

/// Maps record numbers over all files to a file and a number in it.
pub(crate) struct Places<'a> {
    dataset: &'a Dataset,
    paths: Vec<&'a Path>,
}

impl Places<'_> {
    pub(crate) fn of(dataset: &Dataset) -> Places<'_> {
        Places { dataset, paths: dataset.shards().map(|shard| shard.path).collect() }
    }

    /// Returns true if there are several files.
    pub(crate) fn many(&self) -> bool {
        self.paths.len() > 1
    }

    /// Returns the file of record `i`, and its number there.
    pub(crate) fn place(&self, i: u64) -> tfseek::Result<(&Path, u64)> {
        let (s, record) = self.dataset.shard_of(i)?;
        Ok((self.paths.get(s).copied().unwrap_or(Path::new("")), record))
    }
}

/// Opens what the user named. Indexes that are missing are built, with a bar if that takes long.
pub(crate) fn open(
    paths: &Paths,
    access: &Access,
    limit: Limit,
    global: &Global,
    console: &mut Console,
) -> Outcome<Dataset> {
    let paths = tfseek::paths::resolve(&paths.paths, paths.allow_missing)?;
    let bar = progress::over(global, "indexing", progress::bytes_of(&paths));
    let mut index = IndexOptions::new().jobs(access.jobs);
    if let Some(dir) = &access.index_dir {
        index = index.index_dir(dir);
    }
    let options =
        limit.dataset(DatasetOptions::new()).allow_missing(true).index(index).progress(progress::moves(&bar));
    let opened = through(&options, access.io, &paths);
    bar.finish_and_clear();
    let dataset = opened?;
    warnings::print(dataset.warnings(), console);
    Ok(dataset)
}

/// The records that meet a filter. Columns that are missing are built, with a bar if that takes long.
pub(crate) fn select(dataset: &Dataset, filter: &Filter, global: &Global) -> Outcome<Selection> {
    Ok(building(dataset, global, |columns| dataset.select(filter, columns))?)
}

/// The column of a feature, likewise.
pub(crate) fn column(dataset: &Dataset, feature: &str, global: &Global) -> Outcome<DatasetColumn> {
    Ok(building(dataset, global, |columns| dataset.column(feature, columns))?)
}

fn building<T>(
    dataset: &Dataset,
    global: &Global,
    build: impl FnOnce(&ColumnOptions) -> tfseek::Result<T>,
) -> tfseek::Result<T> {
    let bar: ProgressBar = match dataset.known_bytes() {
        Some(bytes) => progress::over(global, "columns", bytes),
        None => progress::counting(global, "columns"),
    };
    let built = build(&ColumnOptions::new().progress(progress::moves(&bar)));
    bar.finish_and_clear();
    built
}

#[allow(unsafe_code)]
fn through(options: &DatasetOptions, door: Door, paths: &[PathBuf]) -> tfseek::Result<Dataset> {
    match door {
        Door::Pread => options.open(paths),
        // SAFETY: whoever runs the command promises that nobody writes to or truncates the files meanwhile; its help and
        // the docs of `run` say so, and `--io pread` is the way without the promise.
        Door::Map => Ok(unsafe { options.open_mapped(paths) }?.dataset().clone()),
    }
}
