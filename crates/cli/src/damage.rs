//! Messages about damaged records, for the verbs that print records.

use crate::args::ReadArgs;
use crate::console::Console;
use crate::exit::{DATA, Failure, Outcome};
use crate::text::count;
use tfseek::{ErrorKind, Warning};

/// The way in which a verb reads records. It determines which records before a damaged one are known to be
/// sound.
#[derive(Clone, Copy)]
pub(crate) enum Reading {
    /// In file order, with all payloads verified.
    InOrder,
    /// By number. Only the framing of the other records has been read.
    ByNumber,
}

/// Adds to an error of damage which records are sound. Other failures are returned as they are.
pub(crate) fn explain(failure: Failure, reading: Reading) -> Failure {
    let Failure::Error(e) = failure else { return failure };
    let Some(sound) = e.location().record.filter(|_| e.kind().remedy().is_none()) else { return e.into() };
    let state = match e.kind() {
        ErrorKind::CorruptData { .. } | ErrorKind::CorruptLength { .. } => "the record is damaged",
        ErrorKind::Truncated { .. } => "the record is damaged: the file ends inside it",
        ErrorKind::Compression(_) => "the record is damaged, and the bytes after it cannot be inflated",
        _ => return e.into(),
    };
    let before = count(sound, "record");
    let before = match (sound, reading) {
        (0, _) => "it is the first record".to_owned(),
        (_, Reading::ByNumber) => format!("the framing of the {before} before it is sound"),
        (1, Reading::InOrder) => format!("the {before} before it is sound"),
        (_, Reading::InOrder) => format!("the {before} before it are sound"),
    };
    Failure::Noted(e, format!("{state}; {before}"))
}

/// The records whose payloads `--damage skip` left out. Damaged records are in the
/// [warnings](tfseek::Warning::DamageSkipped) of their files.
#[derive(Default)]
pub(crate) struct SkippedErrors {
    count: u64,
    first: Option<tfseek::Error>,
}

impl SkippedErrors {
    pub(crate) fn add(&mut self, e: tfseek::Error) {
        self.count += 1;
        self.first.get_or_insert(e);
    }

    /// Adds the failure of a record if such records are left out. Returns other failures.
    pub(crate) fn catch(&mut self, read: ReadArgs, outcome: Outcome) -> Outcome {
        match outcome {
            Err(Failure::Error(e)) if read.skips() && e.is_data() => {
                self.add(e);
                Ok(())
            }
            outcome => outcome,
        }
    }

    /// Adds another file's errors after these.
    pub(crate) fn append(&mut self, later: SkippedErrors) {
        self.count += later.count;
        self.first = self.first.take().or(later.first);
    }

    /// Returns an error with the number of records and the first of them, if any was skipped.
    pub(crate) fn report(&self, console: &mut Console) -> Outcome {
        let Some(first) = &self.first else { return Ok(()) };
        let message = Warning::payloads_skipped(first, self.count).to_string();
        console.report_and_continue(Err(Failure::Message(DATA, message)))
    }
}
