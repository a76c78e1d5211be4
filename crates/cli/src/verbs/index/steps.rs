//! `tfseek index --steps`: the tables of the steps of episodes.

use super::{IndexArgs, IndexReport, elsewhere};
use crate::args::{self, GlobalArgs, PathsArgs, ReadArgs};
use crate::bytes::Size;
use crate::console::Console;
use crate::exit::Outcome;
use crate::split::{SplitPath, failure};
use crate::text::count;
use crate::{features, progress, records, store, warnings};
use serde_json::json;
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

/// Builds the tables of shards that have an index: beside the shards, and of objects in the user's cache or,
/// with a pack, beside them. Returns the number of shards that failed.
pub(super) fn build(
    sets: &[StepSet],
    indexed: &[PathBuf],
    args: &IndexArgs,
    global: &GlobalArgs,
    console: &mut Console,
    report: &mut IndexReport,
) -> Outcome<usize> {
    let bytes = progress::total_size(indexed);
    let bar = progress::bytes(global, "steps", bytes);
    let mut index = args.index()?.auto_limit(u64::MAX).threads(1);
    if let Some(dir) = &args.index_dir {
        index = index.index_dir(dir);
    }
    let options = args.read.dataset(index).allow_missing(true).progress(progress::callback(&bar));
    let feature = args::named_feature(args.steps.as_deref());
    let rebuild = args.rebuild;
    let beside_objects = args.pack.is_some();
    let building = EpisodeOptions { beside: true, beside_objects, rebuild, ..EpisodeOptions::default() };
    let jobs = sets.iter().flat_map(|set| set.shards.iter().map(move |shard| (&*set.features, shard)));
    let indexed_shards: HashSet<&PathBuf> = indexed.iter().collect();
    let jobs: Vec<_> = jobs.filter(|(_, shard)| indexed_shards.contains(shard)).collect();
    let mut episodes = 0;
    let mut steps = 0;
    let mut files = 0;
    let mut fresh = 0;
    let mut size = 0;
    let tried = jobs.len();
    let mut failed = 0;
    let done = in_order(
        args.threads.threads,
        usize::MAX,
        &jobs,
        |(features, shard)| Ok(tables(shard, features, feature, &options, &building)),
        |built: Outcome<BuiltTables>| {
            let built = match built {
                Ok(built) => built,
                Err(failure) => {
                    failed += 1;
                    return console.report_and_continue(Err(elsewhere(failure, indexed, args)));
                }
            };
            warnings::print(&built.warnings, console);
            episodes += built.episodes;
            steps += built.steps;
            for (now, before) in built.files.iter().zip(&built.before) {
                let Ok(file) = now else { continue };
                files += 1;
                fresh += u64::from(!args.rebuild && before.as_ref() == Ok(file));
                size += store::size(file).unwrap_or(0);
            }
            Ok(())
        },
    );
    bar.finish_and_clear();
    done?;
    if tried == failed {
        return Ok(failed);
    }
    let json = json!({
        "episodes": episodes, "steps": steps, "built": files - fresh, "fresh": fresh, "bytes": size, "failed": failed,
    });
    report.insert("steps".into(), json);
    if args.json {
        return Ok(failed);
    }
    let episodes = count(episodes, "episode");
    let steps = count(steps, "step");
    let share = 100.0 * size as f64 / bytes.max(1) as f64;
    let size = Size { bytes: size, exact: global.bytes };
    let built = count(files - fresh, "file");
    console.note(format_args!(
        "steps: {episodes}, {steps}; {built} of tables built, {fresh} fresh; {size}, {share:.3} % of the data"
    ));
    Ok(failed)
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
    let episodes = found.steps().len();
    let steps = found.steps().steps();
    let warnings = found.steps().warnings().to_vec();
    Ok(BuiltTables { episodes, steps, files: find()?, before, warnings })
}
