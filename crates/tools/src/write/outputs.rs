//! Paths of outputs: checks that are made before anything is written.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use tfseek::io::{Output, OutputKey};

/// The reason why a file must not be written.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum OutputConflict {
    /// The file exists and would be replaced.
    Exists {
        /// Path of the output.
        output: PathBuf,
    },
    /// The output is the same file as an input.
    IsInput {
        /// Path of the output.
        output: PathBuf,
        /// Path of the input.
        input: PathBuf,
    },
    /// Two outputs are the same file.
    Shared {
        /// Path of the second output.
        output: PathBuf,
        /// The inputs that both outputs are made from.
        inputs: [PathBuf; 2],
    },
}

impl fmt::Display for OutputConflict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OutputConflict::Exists { output } => write!(f, "{}: already exists", output.display()),
            OutputConflict::IsInput { output, input } if input == output => {
                write!(f, "{}: is an input, so it cannot be an output", output.display())
            }
            OutputConflict::IsInput { output, input } => {
                let (output, input) = (output.display(), input.display());
                write!(f, "{output}: is the same file as the input {input}, so it cannot be an output")
            }
            OutputConflict::Shared { output, inputs: [first, second] } => {
                let (first, second) = (first.display(), second.display());
                write!(f, "{first} and {second} would both be written to {}", output.display())
            }
        }
    }
}

impl std::error::Error for OutputConflict {}

/// Refuses to replace an existing file. Devices and FIFOs are written to and not replaced.
///
/// # Errors
/// [`OutputConflict::Exists`].
pub fn check_new(output: &Path) -> Result<(), OutputConflict> {
    if Output::replaces(output) {
        return Err(OutputConflict::Exists { output: output.into() });
    }
    Ok(())
}

/// Refuses outputs that are the same file, and outputs that are inputs, under any names and links. `outputs` are pairs of an output
/// and the input that it is made from.
///
/// # Errors
/// [`OutputConflict::IsInput`], [`OutputConflict::Shared`].
pub fn check_distinct<'a>(
    outputs: impl IntoIterator<Item = (&'a Path, &'a Path)>,
    inputs: impl IntoIterator<Item = &'a Path>,
) -> Result<(), OutputConflict> {
    // A path without a key is left out: opening it fails with an error that states the reason.
    let read: BTreeMap<_, _> =
        inputs.into_iter().filter_map(|input| Some((OutputKey::of(input).ok()?, input))).collect();
    let mut written: BTreeMap<_, &Path> = BTreeMap::new();
    for (output, source) in outputs {
        let Ok(key) = OutputKey::of(output) else { continue };
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
