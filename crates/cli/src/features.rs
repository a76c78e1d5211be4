//! The features of the files that a verb reads, by a `features.json` of TensorFlow Datasets.

use crate::args::StepsArgs;
use crate::console::Console;
use crate::exit::{Failure, Outcome};
use crate::records::STDIN;
use crate::split::{self, InputFile};
use crate::{steps, store};
use std::path::Path;
use std::sync::Arc;
use tfseek_tfds::{EpisodeWindows, Episodes, Features, FoundFeatures};

/// Finds the features of a verb's files, and prints warnings about them.
pub(crate) fn find<'p>(paths: impl IntoIterator<Item = &'p Path>, console: &mut Console) -> FoundFeatures {
    let paths: Vec<_> = paths.into_iter().collect();
    // Standard input has no folder.
    if paths.contains(&Path::new(STDIN)) {
        return FoundFeatures::default();
    }
    let found = FoundFeatures::of_files(paths, store::store().as_ref());
    found.warnings.iter().for_each(|warning| console.note(format_args!("tfseek: {warning}")));
    found
}

/// Returns the features of files whose records are episodes. An error names the folder of `first`, the first
/// file. `feature` is the one with the steps, if a user named it.
///
/// # Errors
/// There are no features, they have no steps, or the user should name another feature.
pub(crate) fn of_episodes(
    found: &FoundFeatures,
    first: Option<&Path>,
    feature: Option<&str>,
) -> Outcome<Arc<Features>> {
    let place = tfseek::error::printable(first.and_then(Path::parent).unwrap_or(Path::new("")));
    let refused = |what: &str, found: &str| {
        Err(Failure::usage(format!("--steps: {place}: expected {what}, found {found}")))
    };
    const EPISODES: &str = "the folder of a data set of episodes";
    let Some(features) = &found.features else {
        return refused(EPISODES, "TFRecord files without a features.json");
    };
    let paths = features.paths_of_steps();
    let names = || paths.iter().map(|path| format!("{path:?}")).collect::<Vec<_>>().join(", ");
    match feature {
        _ if paths.is_empty() => refused(EPISODES, "a features.json without a Dataset feature"),
        None if paths.len() > 1 => refused("`--steps=FEATURE`, as several features have steps", &names()),
        Some(name) if !paths.iter().any(|path| path == name) => {
            refused(&format!("a feature with steps ({})", names()), &format!("{name:?}"))
        }
        _ => Ok(Arc::clone(features)),
    }
}

/// Returns the maker of steps, if a user requests steps, and the features of what is printed. `found` are the
/// records' features.
pub(crate) fn splitter(
    args: &StepsArgs,
    found: FoundFeatures,
    paths: &[InputFile],
) -> Outcome<(Option<EpisodeWindows>, FoundFeatures)> {
    if !args.is_set() {
        return Ok((None, found));
    }
    let features = of_episodes(&found, paths.first().map(InputFile::path), args.feature())?;
    let none = Episodes::without_records(&features, args.feature()).map_err(split::failure)?;
    let splitter = none.step_records().map_err(split::failure)?;
    let found = steps::features(&splitter);
    Ok((Some(splitter), found))
}
