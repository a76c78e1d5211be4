//! Files that verbs write: what may be replaced, and what is refused before anything is written.

use crate::exit::{Failure, Outcome};
use std::collections::BTreeMap;
use std::path::Path;
use tfseek::io::{Output, OutputKey};

/// Refuses to replace a file, unless `force` says so. Devices and FIFOs are written into, which replaces nothing.
pub(crate) fn may_replace(path: &Path, force: bool) -> Outcome {
    match Output::replaces(path) && !force {
        true => Err(Failure::usage(format!("{}: is there already (--force replaces it)", path.display()))),
        false => Ok(()),
    }
}

/// Refuses outputs that are one and the same file, and outputs that are inputs, by whatever names and links. An output comes with
/// the input that it is made of.
pub(crate) fn keep_apart<'a>(
    outputs: impl IntoIterator<Item = (&'a Path, &'a Path)>,
    inputs: impl IntoIterator<Item = &'a Path>,
) -> Outcome {
    // A path whose key cannot be found fails when it is opened, and says why.
    let read: BTreeMap<_, _> =
        inputs.into_iter().filter_map(|input| Some((OutputKey::of(input).ok()?, input))).collect();
    let mut written = BTreeMap::new();
    for (output, of) in outputs {
        let Ok(key) = OutputKey::of(output) else { continue };
        let name = output.display();
        if let Some(&input) = read.get(&key) {
            return Err(Failure::usage(match input == output {
                true => format!("{name}: is read, so it cannot be written"),
                false => {
                    format!("{name}: is the file {}, which is read, so it cannot be written", input.display())
                }
            }));
        }
        if let Some(before) = written.insert(key, of) {
            let (before, of) = (before.display(), of.display());
            return Err(Failure::usage(format!("{before} and {of} would both be written to {name}")));
        }
    }
    Ok(())
}
