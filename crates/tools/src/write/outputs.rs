//! Paths of outputs: checks that are made before anything is written.

use crate::error::OutputConflict;
use std::collections::BTreeMap;
use std::path::Path;
use tfseek::io::{Output, bare_url};

/// Refuses URLs: outputs are local files.
///
/// # Errors
/// [`OutputConflict::Url`].
pub fn check_local(output: &Path) -> Result<(), OutputConflict> {
    match output.to_str().filter(|output| output.contains("://")) {
        Some(url) if !output.exists() => Err(OutputConflict::Url(bare_url(url))),
        _ => Ok(()),
    }
}

/// Refuses to replace an existing file. Devices and FIFOs are written to and not replaced.
///
/// # Errors
/// [`OutputConflict::Exists`].
pub fn check_new(output: &Path) -> Result<(), OutputConflict> {
    if Output::replaces(output) {
        return Err(OutputConflict::Exists(output.into()));
    }
    Ok(())
}

/// Refuses outputs that are the same file, and outputs that are inputs, under any names and links. `outputs`
/// are pairs of an output and the input that it is made from.
///
/// # Errors
/// [`OutputConflict::IsInput`], [`OutputConflict::Shared`].
pub fn check_distinct<'a>(
    outputs: impl IntoIterator<Item = (&'a Path, &'a Path)>,
    inputs: impl IntoIterator<Item = &'a Path>,
) -> Result<(), OutputConflict> {
    // A path without a key is left out: opening it fails with an error that states the reason.
    let read: BTreeMap<_, _> =
        inputs.into_iter().filter_map(|input| Some((Output::key(input).ok()?, input))).collect();
    let mut written: BTreeMap<_, &Path> = BTreeMap::new();
    for (output, source) in outputs {
        let Ok(key) = Output::key(output) else { continue };
        if let Some(&input) = read.get(&key) {
            return Err(OutputConflict::IsInput { output: output.into(), input: input.into() });
        }
        if let Some(first) = written.insert(key, source) {
            return Err(OutputConflict::Shared {
                output: output.into(),
                inputs: [first.into(), source.into()],
            });
        }
    }
    Ok(())
}
