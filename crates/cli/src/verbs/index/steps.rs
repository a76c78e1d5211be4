//! `tfseek index --steps`: the tables of the steps of episodes.

use super::{IndexArgs, elsewhere};
use crate::args::{self, PathsArgs, ReadArgs};
use crate::console::Console;
use crate::exit::Outcome;
use crate::split::{SplitPath, failure};
use crate::text::count;
use crate::{features, progress, records, store, warnings};
use serde_json::{Value, json};
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tfseek::{DatasetOptions, Warning};
use tfseek_rlds::EpisodeOptions;
use tfseek_tfds::{Episodes, Features};
use tfseek_tools::in_order;

/// The shards in one folder, and their features.
pub(super) struct StepSet {
    features: Arc<Features>,
    shards: Vec<PathBuf>,
}

/// What was built of a shard.
struct BuiltTables {
    episodes: u64,
    steps: u64,
    /// The files that are in use now, and those that were before.
    files: Vec<Result<PathBuf, Option<&'static str>>>,
    before: Vec<Result<PathBuf, Option<&'static str>>>,
    warnings: Vec<Warning>,
}

/// Returns the files of the paths, or the shards of a split.
pub(super) fn shards(paths: &PathsArgs, read: ReadArgs, console: &mut Console) -> Outcome<Vec<PathBuf>> {
    match SplitPath::among(&paths.paths)? {
        Some(split) => {
            let inputs = split.inputs(read.dataset(read.index()))?;
            Ok(inputs.iter().map(|input| input.path().to_path_buf()).collect())
        }
        None => Ok(records::resolve_files(&paths.paths, paths.allow_missing, console)?),
    }
}

/// Finds the features of shards, folder by folder.
///
/// # Errors
/// A folder without features, or whose features have no steps, or several.
pub(super) fn sets(
    shards: &[PathBuf],
    feature: Option<&str>,
    console: &mut Console,
) -> Outcome<Vec<StepSet>> {
    let mut folders: Vec<(&Path, Vec<PathBuf>)> = Vec::new();
    for shard in shards {
        let folder = shard.parent().unwrap_or(Path::new(""));
        match folders.iter_mut().find(|(known, _)| *known == folder) {
            Some((_, shards)) => shards.push(shard.clone()),
            None => folders.push((folder, vec![shard.clone()])),
        }
    }
    let mut sets = Vec::new();
    for (_, shards) in folders {
        let found = features::find(shards.iter().map(PathBuf::as_path), console);
        sets.push(StepSet {
            features: features::of_episodes(&found, shards.first().map(PathBuf::as_path), feature)?,
            shards,
        });
    }
    Ok(sets)
}

/// The tables of all shards.
#[derive(Default)]
pub(super) struct StepTables {
    episodes: u64,
    steps: u64,
    /// The files in use, the ones that were there before, and their bytes.
    files: u64,
    fresh: u64,
    bytes: u64,
    tried: usize,
    pub(super) failed: usize,
}

impl StepTables {
    fn add(&mut self, built: &BuiltTables, rebuild: bool) {
        self.episodes += built.episodes;
        self.steps += built.steps;
        for (now, before) in built.files.iter().zip(&built.before) {
            let Ok(file) = now else { continue };
            self.files += 1;
            self.fresh += u64::from(!rebuild && before.as_ref() == Ok(file));
            self.bytes += store::size(file).unwrap_or(0);
        }
    }

    /// Returns the part of the report, unless all shards failed.
    pub(super) fn report(&self) -> Option<(String, Value)> {
        let report = || {
            json!({
                "episodes": self.episodes, "steps": self.steps, "built": self.files - self.fresh,
                "fresh": self.fresh, "bytes": self.bytes, "failed": self.failed,
            })
        };
        (self.tried > self.failed).then(|| ("steps".to_owned(), report()))
    }

    /// Prints a line about the tables of shards with `data` bytes.
    fn note(&self, data: u64, console: &mut Console) {
        let episodes = count(self.episodes, "episode");
        let steps = count(self.steps, "step");
        let built = count(self.files - self.fresh, "file");
        let fresh = self.fresh;
        let share = 100.0 * self.bytes as f64 / data.max(1) as f64;
        let size = console.size(self.bytes);
        console.note(format_args!(
            "steps: {episodes}, {steps}; {built} of tables built, {fresh} fresh; {size}, {share:.3} % of the data"
        ));
    }
}

/// Builds the tables of shards that have an index: beside the shards, and of objects in the user's cache or,
/// with a pack, beside them.
pub(super) fn build(
    sets: &[StepSet],
    indexed: &[PathBuf],
    args: &IndexArgs,
    console: &mut Console,
) -> Outcome<StepTables> {
    let bytes = progress::total_size(indexed);
    let bar = progress::bytes(console, "steps", bytes);
    let options = args.indexed(Some(1))?.progress(progress::callback(&bar));
    let feature = args::named_feature(args.steps.as_deref());
    let rebuild = args.rebuild;
    let beside_objects = args.pack.is_some();
    let building = EpisodeOptions { beside: true, beside_objects, rebuild, ..EpisodeOptions::default() };
    let jobs = sets.iter().flat_map(|set| set.shards.iter().map(move |shard| (&*set.features, shard)));
    let indexed_shards: HashSet<&PathBuf> = indexed.iter().collect();
    let jobs: Vec<_> = jobs.filter(|(_, shard)| indexed_shards.contains(shard)).collect();
    let mut all = StepTables { tried: jobs.len(), ..StepTables::default() };
    let done = in_order(
        args.threads.threads,
        usize::MAX,
        &jobs,
        |(features, shard)| Ok(tables(shard, features, feature, &options, &building)),
        |built: Outcome<BuiltTables>| match built {
            Ok(built) => {
                warnings::print(&built.warnings, console);
                all.add(&built, rebuild);
                Ok(())
            }
            Err(failure) => {
                all.failed += 1;
                console.report_and_continue(Err(elsewhere(failure, indexed, args)))
            }
        },
    );
    progress::end(&bar, done.is_ok());
    done?;
    if all.tried > all.failed && !args.json {
        all.note(bytes, console);
    }
    Ok(all)
}

fn tables(
    shard: &Path,
    features: &Features,
    feature: Option<&str>,
    options: &DatasetOptions,
    building: &EpisodeOptions,
) -> Outcome<BuiltTables> {
    let dataset = options.open(shard)?;
    let find = || Episodes::files(&dataset, features, feature).map_err(failure);
    let before = find()?;
    let found = Episodes::new(&dataset, features, feature, building).map_err(failure)?;
    let episodes = dataset.len();
    let steps = found.steps().steps();
    let warnings = found.steps().warnings().to_vec();
    Ok(BuiltTables { episodes, steps, files: find()?, before, warnings })
}
