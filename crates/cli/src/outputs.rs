//! Checks on output paths, made before anything is written.

use crate::exit::{Failure, Outcome};
use std::collections::BTreeMap;
use std::path::Path;
use tfseek::io::{Output, OutputKey};

/// Refuses to replace an existing file, unless `force` is set. Devices and FIFOs are written to and not replaced.
pub(crate) fn check_replace(path: &Path, force: bool) -> Outcome {
    if Output::replaces(path) && !force {
        return Err(Failure::usage(format!("{}: already exists (--force replaces it)", path.display())));
    }
    Ok(())
}

/// Refuses outputs that are the same file, and outputs that are inputs, under any names and links. `outputs` are pairs of an output
/// and the input that it is made from.
pub(crate) fn check_distinct<'a>(
    outputs: impl IntoIterator<Item = (&'a Path, &'a Path)>,
    inputs: impl IntoIterator<Item = &'a Path>,
) -> Outcome {
    // A path without a key is left out: opening it fails with an error that states the reason.
    let read: BTreeMap<_, _> =
        inputs.into_iter().filter_map(|input| Some((OutputKey::of(input).ok()?, input))).collect();
    let mut written = BTreeMap::new();
    for (output, source) in outputs {
        let Ok(key) = OutputKey::of(output) else { continue };
        let name = output.display();
        if let Some(&input) = read.get(&key) {
            return Err(Failure::usage(if input == output {
                format!("{name}: is an input, so it cannot be an output")
            } else {
                format!(
                    "{name}: is the same file as the input {}, so it cannot be an output",
                    input.display()
                )
            }));
        }
        if let Some(first) = written.insert(key, source) {
            let (first, second) = (first.display(), source.display());
            return Err(Failure::usage(format!("{first} and {second} would both be written to {name}")));
        }
    }
    Ok(())
}
