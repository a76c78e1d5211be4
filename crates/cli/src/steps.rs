//! The steps of episodes as records of their own.

use crate::console::Console;
use crate::exit::{Failure, Outcome, USAGE};
use crate::split::failure;
use crate::{progress, warnings};
use std::sync::Arc;
use tfseek::error::IndexError;
use tfseek::{Dataset, ErrorKind, Record};
use tfseek_rlds::{EpisodeOptions, EpisodeTable};
use tfseek_tfds::{EpisodeWindows, Episodes, Features, FoundFeatures};
use tfseek_tools::hints::index_command;

/// Returns the features of a step.
pub(crate) fn features(steps: &EpisodeWindows) -> FoundFeatures {
    let mut found = FoundFeatures::default();
    found.features = Some(Arc::new(steps.features().clone()));
    found
}

/// The steps of the episode that was read last. Records are read one after the other, and only these: no
/// index, no tables. Tables would need the whole file, also where two steps of an object are wanted.
pub(crate) struct EpisodeReader {
    splitter: EpisodeWindows,
    episode: Vec<u8>,
    table: Option<EpisodeTable>,
    /// The number of the next step in its episode, and among all steps that were read.
    next: u64,
    number: u64,
    /// Ordinal and offset of the episode's record.
    pub(crate) place: (u64, u64),
    step: Vec<u8>,
}

/// A step in the memory of its reader.
pub(crate) struct StepRead<'a> {
    pub(crate) payload: &'a [u8],
    /// The number of the step in its episode, and among all steps that were read.
    pub(crate) step: u64,
    pub(crate) number: u64,
}

impl EpisodeReader {
    pub(crate) fn new(splitter: EpisodeWindows) -> EpisodeReader {
        let episode = Vec::new();
        let step = Vec::new();
        EpisodeReader { splitter, episode, table: None, next: 0, number: 0, place: (0, 0), step }
    }

    /// Begins the episode of a record.
    ///
    /// # Errors
    /// The record is no message, or its features have other numbers of steps.
    pub(crate) fn begin(&mut self, record: Record<'_>) -> tfseek::Result<()> {
        let at = record.at();
        let payload = record.payload();
        self.table = None;
        let keys = self.splitter.windows().episodes().keys();
        let table = EpisodeTable::of(payload, keys).map_err(|e| e.at(at))?;
        self.episode.clear();
        self.episode.try_reserve(payload.len()).map_err(|e| tfseek::Error::from(e).at(at))?;
        self.episode.extend_from_slice(payload);
        self.place = (at.record.unwrap_or(0), at.offset.unwrap_or(0));
        (self.table, self.next) = (Some(table), 0);
        Ok(())
    }

    /// Returns true if the episode has no further step.
    pub(crate) fn is_at_end(&self) -> bool {
        self.table.as_ref().is_none_or(|table| self.next >= u64::from(table.steps()))
    }

    /// Makes the next step of the episode. `None` at its end.
    ///
    /// # Errors
    /// Values that are not divided among the steps as their lengths say. The episode ends then.
    pub(crate) fn next(&mut self) -> tfseek::Result<Option<StepRead<'_>>> {
        let Some(table) = self.table.as_ref().filter(|_| !self.is_at_end()) else { return Ok(None) };
        let step = self.next;
        let number = self.number;
        self.step.clear();
        let made = self.splitter.windows().append_of(&self.episode, table, (0, step), &mut self.step);
        if let Err(e) = made {
            self.table = None;
            return Err(e);
        }
        (self.next, self.number) = (step + 1, number + 1);
        Ok(Some(StepRead { payload: &self.step, step, number }))
    }
}

/// Finds the episodes of a dataset, and their steps, with progress and warnings. Missing tables are built as
/// missing indexes are.
pub(crate) fn open(
    dataset: &Dataset,
    features: &Features,
    feature: Option<&str>,
    console: &mut Console,
) -> Outcome<Episodes> {
    let bar = progress::bytes(console, "steps", None);
    let options =
        EpisodeOptions { progress: Some(Arc::new(progress::callback(&bar))), ..EpisodeOptions::default() };
    let episodes = Episodes::new(dataset, features, feature, &options);
    progress::end(&bar, episodes.is_ok());
    let episodes = episodes.map_err(|e| explained(failure(e)))?;
    warnings::print(episodes.steps().warnings(), console);
    Ok(episodes)
}

/// Adds the command that builds tables to the error of tables that are not built without a request.
fn explained(failure: Failure) -> Failure {
    match failure {
        Failure::Error(e) => match e.kind() {
            ErrorKind::Index(IndexError::BuildLimit { build, .. }) => {
                let command = index_command(build);
                Failure::Message(USAGE, format!("{e} (run `{command} --steps`)"))
            }
            _ => e.into(),
        },
        failure => failure,
    }
}
