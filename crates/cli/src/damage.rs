//! Messages about damaged records, for the verbs that print records.

use crate::console::Console;
use crate::exit::{DATA, Failure, Outcome, TOLERATE};
use crate::text::count;
use tfseek::ErrorKind;

/// The way in which a verb reads records. It determines which records before a damaged one are known to be sound.
#[derive(Clone, Copy)]
pub(crate) enum Reading {
    /// In file order, with all payloads verified.
    InOrder {
        /// `cat --skip-errors` can continue after a damaged payload.
        can_skip: bool,
    },
    /// By number. Only the framing of the other records has been read.
    ByNumber,
}

/// Adds to an error of damage which records are sound, and the option that continues. Other failures are returned as they are.
pub(crate) fn explain(failure: Failure, reading: Reading) -> Failure {
    let Failure::Error(e) = failure else { return failure };
    let Some(sound) = e.location().record else { return e.into() };
    let (state, can_skip) = match e.kind() {
        ErrorKind::CorruptData { .. } => (
            "the record is damaged",
            matches!(reading, Reading::ByNumber | Reading::InOrder { can_skip: true }),
        ),
        ErrorKind::CorruptLength { .. } => ("the record is damaged, and the next one cannot be found", false),
        ErrorKind::Truncated { .. } => ("the record is damaged: the file ends inside it", false),
        ErrorKind::Compression(_) => {
            ("the record is damaged, and the bytes after it cannot be inflated", false)
        }
        ErrorKind::Wire(_) => return Failure::Noted(e, SKIP.into()),
        _ => return e.into(),
    };
    let before = count(sound, "record");
    let before = match (sound, reading) {
        (0, _) => "it is the first record".to_owned(),
        (_, Reading::ByNumber) => format!("the framing of the {before} before it is sound"),
        (1, Reading::InOrder { .. }) => format!("the {before} before it is sound"),
        (_, Reading::InOrder { .. }) => format!("the {before} before it are sound"),
    };
    let note = match (can_skip, sound) {
        _ if matches!(e.kind(), ErrorKind::Truncated { .. }) => format!("{state}; {before}; {TOLERATE}"),
        (true, _) => format!("{state}; {before}; {SKIP}"),
        (false, 0) => format!("{state}; {before}"),
        (false, _) => format!("{state}; {before}; `tfseek head -n {sound}` prints only the part before it"),
    };
    Failure::Noted(e, note)
}

const SKIP: &str = "`tfseek cat --skip-errors` continues after it";

/// The records that `cat --skip-errors` skipped.
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

    /// Returns an error with the number of records and the first of them, if any was skipped.
    pub(crate) fn report(&self, console: &mut Console) -> Outcome {
        let Some(first) = &self.first else { return Ok(()) };
        let records = count(self.count, "record");
        let message = match self.count {
            1 => format!("{records} was skipped: {first}"),
            _ => format!("{records} were skipped; the first: {first}"),
        };
        console.report_and_continue(Err(Failure::Message(DATA, message)))
    }
}
