//! What a run ends with: messages on stderr, and one number for scripts.
//!
//! | code | meaning |
//! | --- | --- |
//! | 0 | all well; also when the reader of our output has gone away |
//! | 1 | a problem in the data: damage, a malformed record, missing shards |
//! | 2 | usage: something that cannot be done as asked |
//! | 3 | input and output |
//! | 4 | not a TFRecord file |
//! | 130 | interrupted: the signal is left to the system, and a shell reports a death by SIGINT so |
//!
//! An interrupt leaves the file that was being written under its temporary name (`.tmp-` and 16 hex digits), as any kill does.

use std::io;
use std::path::Path;
use tfseek::error::{IndexError, PathsError, Remedy};
use tfseek::{Error, ErrorKind};

/// A problem in the data.
pub(crate) const DATA: u8 = 1;
/// Something that cannot be done as asked.
pub(crate) const USAGE: u8 = 2;
/// Input and output.
pub(crate) const IO: u8 = 3;
/// Not a TFRecord file.
pub(crate) const NOT_TFRECORD: u8 = 4;

/// Why a verb stopped.
#[derive(Debug)]
pub(crate) enum Failure {
    /// An error of the library, which knows its place.
    Error(Error),
    /// Standard output cannot be written.
    Stdout(io::Error),
    /// A message of our own, and its code.
    Message(u8, String),
}

/// The result of a verb.
pub(crate) type Outcome<T = ()> = Result<T, Failure>;

impl Failure {
    pub(crate) fn usage(message: impl Into<String>) -> Failure {
        Failure::Message(USAGE, message.into())
    }

    /// An I/O error at a path the library does not know of.
    pub(crate) fn io(path: &Path, e: io::Error) -> Failure {
        Failure::Error(Error::from(e).in_file(path))
    }

    /// The exit code that says so.
    pub(crate) fn code(&self) -> u8 {
        match self {
            Failure::Error(e) => code_of(e),
            Failure::Stdout(_) => IO,
            Failure::Message(code, _) => *code,
        }
    }
}

/// An error of the library, and what can be done about it, in the words of the command.
pub(crate) fn message(e: &Error) -> String {
    let words = match e.kind().remedy() {
        Some(Remedy::AllowMissing) => "`--allow-missing` goes on without them".into(),
        Some(Remedy::BuildIndex) => "`tfseek index` builds one".into(),
        Some(Remedy::Build(build)) => format!("run `{}`", build.command()),
        Some(Remedy::Rebuild) => "`tfseek index --rebuild` reads it anew".into(),
        Some(Remedy::ReadWithoutMaps) => "`--io pread` reads without maps".into(),
        Some(Remedy::MaxRecord(len)) => format!("`--max-record {len}` reads it"),
        Some(Remedy::Unpack) => "`tfseek unpack` does".into(),
        _ => return e.to_string(),
    };
    format!("{e} ({words})")
}

/// The exit code for an error of the library.
pub(crate) fn code_of(e: &Error) -> u8 {
    match e.kind() {
        ErrorKind::Io(_) | ErrorKind::Paths(PathsError::NoMatch { .. } | PathsError::TooManyMaps { .. }) => {
            IO
        }
        ErrorKind::NotTfRecord { .. } => NOT_TFRECORD,
        ErrorKind::Paths(PathsError::BadPattern { .. } | PathsError::NotLocal { .. })
        | ErrorKind::Index(
            IndexError::BuildLimit { .. }
            | IndexError::NameClash { .. }
            | IndexError::Missing
            | IndexError::NoColumn { .. },
        )
        | ErrorKind::Filter(_)
        | ErrorKind::UnknownFeature { .. }
        | ErrorKind::Order(_)
        | ErrorKind::OutOfRange { .. }
        | ErrorKind::Compressed { .. }
        | ErrorKind::Unsupported(_) => USAGE,
        _ => DATA,
    }
}

impl From<Error> for Failure {
    fn from(e: Error) -> Failure {
        Failure::Error(e)
    }
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Failure::Error(e) => f.write_str(&message(e)),
            Failure::Stdout(e) => write!(f, "standard output: {e}"),
            Failure::Message(_, message) => f.write_str(message),
        }
    }
}
