//! Faults in records: what checksums do not tell.

use std::collections::BTreeMap;
use tfseek::{At, Error, ErrorKind};

/// Number of faults of a kind and a feature that are kept of each file. Others are counted. A wrong
/// conversion has the same fault in millions of steps.
pub(super) const MAX_KEPT: usize = 10;

/// A kind of fault in a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum FaultKind {
    /// Its features have other numbers of steps.
    Steps,
    /// `is_first` is set for another step than the first, or `is_last` for another one than the last.
    Flag,
    /// `is_first` is not set for the first step, or `is_last` not for the last one. The episode may have been
    /// cut.
    MissingFlag,
    /// A picture cannot be decoded, or its file is not whole.
    Picture,
    /// A picture has another size than `features.json` states.
    PictureSize,
    /// A value is not a number. Some data sets mark missing values so.
    NotANumber,
    /// All steps have the same action. The robot may have rested.
    ConstantAction,
}

impl FaultKind {
    /// Returns true if data that is as it should be may have it. As faults, notes would fail most published
    /// data sets, and scripts would stop looking.
    pub fn is_note(self) -> bool {
        use FaultKind::{ConstantAction, MissingFlag, NotANumber};
        matches!(self, MissingFlag | NotANumber | ConstantAction)
    }

    /// Returns the name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            FaultKind::Steps => "steps",
            FaultKind::Flag => "flag",
            FaultKind::MissingFlag => "missing_flag",
            FaultKind::Picture => "picture",
            FaultKind::PictureSize => "picture_size",
            FaultKind::NotANumber => "not_a_number",
            FaultKind::ConstantAction => "constant_action",
        }
    }
}

/// A fault, with the path of the file, the record and the feature in the error.
#[derive(Debug)]
#[non_exhaustive]
pub struct RecordFault {
    /// The kind.
    pub kind: FaultKind,
    /// The number of the step in its episode. `None` if it concerns all steps, or no episode.
    pub step: Option<u64>,
    /// The message, with the place.
    pub error: Error,
}

/// The faults of the records of a file.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct RecordFaults {
    /// Number of steps of episodes that were checked.
    pub steps: u64,
    /// The first faults of each kind and feature, in the order of the file.
    pub faults: Vec<RecordFault>,
    /// Number of all faults of each kind and feature.
    pub counts: BTreeMap<(FaultKind, String), u64>,
}

impl RecordFaults {
    /// Returns the number of faults. `notes`: of those that sound data may have, or else of the others.
    pub fn count(&self, notes: bool) -> u64 {
        self.counts.iter().filter(|((kind, _), _)| kind.is_note() == notes).map(|(_, count)| count).sum()
    }

    pub(super) fn add(&mut self, kind: FaultKind, step: Option<u64>, at: At<'_>, error: Error) {
        let key = error.location().feature.as_deref().unwrap_or_default().to_owned();
        let count = self.counts.entry((kind, key)).or_default();
        *count += 1;
        if *count <= MAX_KEPT as u64 {
            self.faults.push(RecordFault { kind, step, error: error.at(at) });
        }
    }
}

/// Returns the error of a value of a feature.
pub(super) fn wrong(reason: String, key: &str) -> Error {
    Error::from(ErrorKind::Value { reason: reason.into() }).feature(key.as_bytes())
}
