//! The end of a run: error messages and exit codes.
//!
//! | code | meaning |
//! | --- | --- |
//! | 0 | success, also if the reader of standard output closed its pipe |
//! | 1 | a problem in the data: damage, a malformed record, missing shards; `grep`: no match |
//! | 2 | a usage error: the request cannot be carried out |
//! | 3 | an I/O error |
//! | 4 | not a TFRecord file |
//! | 130 | interrupted: SIGINT keeps its default action, and shells report a death by SIGINT as 130 |
//!
//! After an interrupt, as after any kill, nearly always nothing remains of an output that was being written
//! on Linux. On other systems, on file systems without files that have no name, and for a moment while it
//! replaces a file, it has a temporary name (`.tmp-` and 16 hex digits), which then remains. No thread polls
//! for interrupts. Run from Python, the command restores the default action.

use crate::store;
use std::io;
use std::path::Path;
use tfseek::error::{IndexError, PathsError, Remedy};
use tfseek::{Error, ErrorKind};
use tfseek_tools::damage::is_damage;
use tfseek_tools::hints;

/// The exit code for a problem in the data.
pub(crate) const DATA: u8 = 1;
/// The exit code for a usage error.
pub(crate) const USAGE: u8 = 2;
/// The exit code for an I/O error.
pub(crate) const IO: u8 = 3;
/// The exit code for a file that is not a TFRecord file.
pub(crate) const NOT_TFRECORD: u8 = 4;

/// The hint for a file that ends inside a record.
pub(crate) const TOLERATE: &str = "`--tail tolerate` reads the part before it";

/// The reason why a verb failed.
#[derive(Debug)]
pub(crate) enum Failure {
    /// An error of the library, with its location.
    Error(Error),
    /// An error of the library, with a note for the user.
    Noted(Error, String),
    /// An error of writing to standard output.
    Stdout(io::Error),
    /// A message of the command, with its exit code.
    Message(u8, String),
}

/// The result of a verb.
pub(crate) type Outcome<T = ()> = Result<T, Failure>;

impl Failure {
    pub(crate) fn usage(message: impl Into<String>) -> Failure {
        Failure::Message(USAGE, message.into())
    }

    /// Returns an I/O error with its path.
    pub(crate) fn io(path: &Path, e: io::Error) -> Failure {
        Failure::Error(Error::from(e).in_file(path))
    }

    /// Returns the exit code.
    pub(crate) fn code(&self) -> u8 {
        match self {
            Failure::Error(e) | Failure::Noted(e, _) => code_of(e),
            Failure::Stdout(_) => IO,
            Failure::Message(code, _) => *code,
        }
    }

    /// Returns true if a condition is invalid for all files.
    pub(crate) fn is_of_condition(&self) -> bool {
        matches!(self, Failure::Error(e) if matches!(e.kind(), ErrorKind::Filter(_)) && e.location().path.is_none())
    }

    /// Returns the message, with the ways to the other records if a record is damaged. `can_skip` is false if
    /// the verb has no `--damage`, or has it already.
    pub(crate) fn explained(&self, can_skip: bool) -> String {
        let (Failure::Error(e) | Failure::Noted(e, _)) = self else { return self.to_string() };
        if e.kind().remedy() == Some(Remedy::Unverified) {
            return message(e);
        }
        let hint = match (e.kind(), can_skip) {
            (ErrorKind::Truncated { .. }, _) => TOLERATE,
            (ErrorKind::Wire { .. }, true) => "`--damage skip` leaves it out",
            (_, true) if is_damage(e) => {
                "`--damage skip` leaves it out, `tfseek salvage` copies the sound records"
            }
            (_, false) if is_damage(e) => "`tfseek salvage` copies the sound records",
            _ => return self.to_string(),
        };
        match self {
            Failure::Noted(e, note) => format!("{e} ({note}; {hint})"),
            _ => format!("{e} ({hint})"),
        }
    }
}

/// The verbs that read objects.
const READERS: &str = "all verbs that read, except salvage and `tail -F`, take";

/// Returns the message of an error, with its remedy in terms of the command.
pub(crate) fn message(e: &Error) -> String {
    let hint = match e.kind().remedy() {
        Some(Remedy::AllowMissing) => "`--allow-missing` continues without them".into(),
        Some(Remedy::BuildIndex) => "`tfseek index` builds one".into(),
        Some(Remedy::Build(build)) => format!("run `{}`", hints::index_command(build)),
        Some(Remedy::WritePack(pack)) => {
            let name = pack.file_stem().unwrap_or_default().display();
            format!("run `tfseek index --pack {name}` on its shards again")
        }
        Some(Remedy::Rebuild) => "`tfseek index --rebuild` builds it again".into(),
        Some(Remedy::ReadWithoutMaps) => "`--io pread` reads without maps".into(),
        Some(Remedy::MaxRecord(len)) => format!("`--max-record {len}` reads it"),
        Some(Remedy::Unverified) => "`--verify none` reads it without checksums".into(),
        Some(Remedy::LeaveOut) => "`--damage skip` leaves them out".into(),
        Some(Remedy::Unpack) => "`tfseek unpack` makes an uncompressed file of it".into(),
        Some(Remedy::FewerRecords) => {
            "if keys are data, no schema describes the records; infer from fewer records with `-n`, or write the schema \
             by hand"
                .into()
        }
        Some(Remedy::SequenceExamples) => "`--kind sequence-example` reads it".into(),
        Some(Remedy::Convert) => "convert it, or read it with a tool for that format".into(),
        Some(remedy) => match hints::common_hint(&remedy) {
            Some(hint) => hint,
            None => return e.to_string(),
        },
        None => match hints::address_hint(e, READERS, store::IS_OBJECT).or_else(|| version_hint(e)) {
            Some(hint) => hint,
            None => return format!("{e}{}", hints::excerpt(e)),
        },
    };
    format!("{e} ({hint})")
}

fn version_hint(e: &Error) -> Option<String> {
    let all = hints::word(&format!("{}[all]", hints::folder_of_versions(e)?.to_str()?));
    Some(format!("a data set was prepared in the folder: {all} is its newest version"))
}

/// Returns the exit code for an error of the library.
pub(crate) fn code_of(e: &Error) -> u8 {
    match e.kind() {
        ErrorKind::Io(_)
        | ErrorKind::Paths(
            PathsError::NoMatch { .. } | PathsError::OtherSets { .. } | PathsError::TooManyMaps { .. },
        ) => IO,
        ErrorKind::NotTfRecord { .. } => NOT_TFRECORD,
        ErrorKind::Paths(
            PathsError::BadPattern { .. } | PathsError::Twice { .. } | PathsError::NotLocal { .. },
        )
        | ErrorKind::Index(
            IndexError::BuildLimit { .. }
            | IndexError::NameClash { .. }
            | IndexError::Missing
            | IndexError::NotRegular { .. }
            | IndexError::NoColumn { .. },
        )
        | ErrorKind::Filter(_)
        | ErrorKind::UnknownFeature { .. }
        | ErrorKind::Order(_)
        | ErrorKind::OutOfRange { .. }
        | ErrorKind::Compressed { .. }
        | ErrorKind::TooMany { .. }
        | ErrorKind::Panicked { .. }
        | ErrorKind::Options(_) => USAGE,
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
            Failure::Noted(e, note) => write!(f, "{e} ({note})"),
            Failure::Stdout(e) => write!(f, "standard output: {e}"),
            Failure::Message(_, message) => f.write_str(message),
        }
    }
}
