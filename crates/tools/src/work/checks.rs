//! Checks of records: of the steps of episodes, and of pictures.

use super::episodes::StepChecks;
use super::faults::{FaultKind, RecordFaults};
use super::pictures::{PictureChecker, PictureChecks, PixelMemory};
use tfseek::example::MessageKind;
use tfseek::{Record, Result};
use tfseek_tfds::{Features, TfdsError};

/// Checks of records, made of the features of a data set if they are known. Threads share it.
#[derive(Debug)]
pub struct RecordChecks {
    sets: Vec<StepChecks>,
    /// Set if pictures are decoded, and not only the headers of steps' pictures.
    pictures: Option<PictureChecks>,
}

impl RecordChecks {
    /// Makes the checks. `None` if there is nothing to check: no feature with steps, and no pictures to
    /// decode.
    ///
    /// With `decode` all pictures are decoded: those that the features declare, and of other features those
    /// with values that begin like pictures of a format that is decoded. If at least half of the values of such a feature are pictures,
    /// the others are faults.
    ///
    /// Otherwise only the headers of the pictures of steps are read. Pixels take some twenty times as long as
    /// all other checks.
    ///
    /// # Errors
    /// Features that are not read.
    pub fn new(features: Option<&Features>, decode: bool) -> Result<Option<RecordChecks>, TfdsError> {
        let mut sets = Vec::new();
        if let Some(features) = features {
            for path in features.paths_of_steps() {
                sets.push(StepChecks::new(features, &path)?);
            }
        }
        let pictures = decode.then(|| PictureChecks::new(features));
        Ok((!sets.is_empty() || decode).then_some(RecordChecks { sets, pictures }))
    }

    /// Returns true if records are episodes.
    pub fn has_steps(&self) -> bool {
        !self.sets.is_empty()
    }

    /// Begins the checks of a file.
    pub(super) fn begin(&self) -> RecordChecker<'_> {
        RecordChecker {
            checks: self,
            step: Vec::new(),
            pixels: PixelMemory::default(),
            pictures: self.pictures.as_ref().map(PictureChecker::new),
            faults: RecordFaults::default(),
        }
    }
}

/// The checks of the records of one file.
pub(super) struct RecordChecker<'c> {
    checks: &'c RecordChecks,
    step: Vec<u8>,
    pixels: PixelMemory,
    pictures: Option<PictureChecker<'c>>,
    faults: RecordFaults,
}

impl RecordChecker<'_> {
    /// Checks a record of this kind.
    ///
    /// # Errors
    /// Errors that are no faults of the record, such as a lack of memory.
    pub(super) fn check(&mut self, record: Record<'_>, kind: MessageKind) -> Result<()> {
        let RecordChecker { checks, step, pixels, pictures, faults } = self;
        let decode = pictures.is_some();
        for set in &checks.sets {
            match set.check(record, decode, step, pixels, faults) {
                Err(e) if e.is_data() => faults.add(FaultKind::Steps, None, record.at(), e),
                checked => checked.map_err(|e| e.at(record.at()))?,
            }
        }
        if let Some(pictures) = pictures {
            pictures.check(record, kind, pixels, faults).map_err(|e| e.at(record.at()))?;
        }
        Ok(())
    }

    /// Returns what was found.
    pub(super) fn finish(self) -> RecordFaults {
        let mut faults = self.faults;
        if let Some(pictures) = self.pictures {
            pictures.finish(&mut faults);
        }
        faults
    }
}
