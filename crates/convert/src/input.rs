//! Inputs of an import, and the target of its records.

use crate::error::ConvertError;
use crate::format::FileFormat;
use crate::options::ImportOptions;
use std::fs::File;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use tfseek::frame::put_record;
use tfseek_tools::set::SetWriter;

/// An input of [`import`](crate::import).
pub enum ImportInput {
    /// A file.
    File(PathBuf),
    /// Bytes that are read once, such as standard input. Their format is the one that the options state, or
    /// else JSON lines.
    Stream {
        /// Name in messages.
        name: PathBuf,
        /// The bytes.
        bytes: Box<dyn Read>,
    },
}

impl From<PathBuf> for ImportInput {
    fn from(path: PathBuf) -> ImportInput {
        ImportInput::File(path)
    }
}

impl From<&PathBuf> for ImportInput {
    fn from(path: &PathBuf) -> ImportInput {
        ImportInput::File(path.clone())
    }
}

impl ImportInput {
    /// Returns the path of a file, or the name of a stream.
    pub(crate) fn path(&self) -> &Path {
        match self {
            ImportInput::File(path) | ImportInput::Stream { name: path, .. } => path,
        }
    }

    /// Returns true if the input can be read a second time.
    pub(crate) fn can_be_read_again(&self) -> bool {
        matches!(self, ImportInput::File(path) if path.is_file())
    }

    /// Opens the input.
    pub(crate) fn open(self) -> Result<Box<dyn Read>, ConvertError> {
        match self {
            ImportInput::File(path) => match File::open(&path) {
                Ok(file) => Ok(Box::new(file)),
                Err(e) => Err(ConvertError::io(&path, e)),
            },
            ImportInput::Stream { bytes, .. } => Ok(bytes),
        }
    }
}

/// Returns the format of all inputs.
pub(crate) fn format(inputs: &[ImportInput], options: &ImportOptions) -> Result<FileFormat, ConvertError> {
    let mut from = options.format;
    for input in inputs {
        let path = input.path();
        let found = match (options.format, input) {
            (Some(given), _) => given,
            (None, ImportInput::Stream { .. }) => FileFormat::JsonLines,
            (None, ImportInput::File(_)) => match FileFormat::of(path) {
                Some(found) if !matches!(found, FileFormat::TfRecord(_)) => found,
                _ => {
                    let reason = "expected a file of another format than TFRecord";
                    return Err(ConvertError::refused(path, reason));
                }
            },
        };
        let expected = *from.get_or_insert(found);
        if found != expected {
            let reason = format!("expected the format of the other inputs, {expected}, found {found}");
            return Err(ConvertError::refused(path, reason));
        }
    }
    from.ok_or_else(|| ConvertError::Options("expected at least one input, found none".into()))
}

/// An import: the target of its records, its options and its progress.
pub(crate) struct Import<'a> {
    pub(crate) target: ImportTarget<'a>,
    pub(crate) options: &'a ImportOptions,
    /// It is called with numbers of bytes of the inputs.
    pub(crate) progress: &'a dyn Fn(u64),
}

/// The target of the records of an import.
pub(crate) enum ImportTarget<'a> {
    /// A file or a set of shards.
    Set(&'a mut SetWriter),
    /// An uncompressed TFRecord stream.
    Stream(&'a mut dyn Write),
}

impl ImportTarget<'_> {
    /// Writes a record.
    pub(crate) fn write(&mut self, payload: &[u8]) -> Result<(), ConvertError> {
        match self {
            ImportTarget::Set(writer) => Ok(writer.write(payload)?),
            ImportTarget::Stream(out) => put_record(out, payload).map_err(ConvertError::Sink),
        }
    }
}
