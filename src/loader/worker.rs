//! From a plan to a step: read, verify, parse.

use super::plan::StepPlan;
use super::step::{ReadRow, Skipped, Step, StepContent, StepRecords};
use crate::batch::{BatchParser, BytePool, Row};
use crate::dataset::{Dataset, RecordLocation, prefetch};
use crate::error::{Error, Result};
use crate::io::{Announced, ReadAhead, Region};
use crate::policy::Verify;
use std::ops::Range;

/// The reaction to a record that is damaged, or does not match the schema.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorPolicy {
    /// The batch is an error, at its place in the order. Later batches stay valid.
    #[default]
    Raise,
    /// The batch is shorter by it, and lists it. Its position counts as delivered.
    Skip,
}

/// Makes batches. Shared by all workers.
pub(super) struct BatchWorker {
    pub(super) dataset: Dataset,
    pub(super) parser: Option<BatchParser>,
    pub(super) policy: ErrorPolicy,
    /// In the first epoch, and in those after it.
    pub(super) verify: [Verify; 2],
    pub(super) ahead: ReadAhead,
    pub(super) buffers: BytePool,
    /// Called with the numbers of the records of a batch before they are read.
    #[cfg(test)]
    pub(super) before_read: Option<BeforeRead>,
}

#[cfg(test)]
pub(super) type BeforeRead = std::sync::Arc<dyn Fn(&[u64]) + Send + Sync>;

/// The records of a batch that were read and parsed, by their places in the plan, and those that were left out.
#[derive(Default)]
struct GoodRows {
    places: Vec<u32>,
    skipped: Vec<Skipped>,
}

/// The errors of records that were not found, in the order of their places.
type Faults = std::vec::IntoIter<Error>;

/// Applies `f` to a record that was found, or returns the error of one that was not.
fn with<T>(
    at: &Option<RecordLocation>,
    faults: &mut Faults,
    f: impl FnOnce(&RecordLocation) -> Result<T>,
) -> Option<Result<T>> {
    match at {
        Some(at) => Some(f(at)),
        None => faults.next().map(Err),
    }
}

impl BatchWorker {
    /// Asks for the bytes of a batch that will be made later, if records are cold.
    pub(super) fn announce(&self, plan: &mut StepPlan) {
        plan.announced = prefetch::announce(self.dataset.set(), &self.ahead, &plan.located);
    }

    /// Takes that back: the batch will not be made.
    pub(super) fn forget(&self, plan: &StepPlan) {
        if plan.announced != Announced::Nothing {
            prefetch::forget(self.dataset.set(), &plan.located);
        }
    }

    /// Makes a step.
    pub(super) fn make(&self, mut plan: StepPlan) -> Result<Step> {
        let mut faults = std::mem::take(&mut plan.faults).into_iter();
        #[cfg(test)]
        if let Some(before_read) = &self.before_read {
            before_read(&plan.ids);
        }
        let verify = self.verify[usize::from(plan.runs.first().is_some_and(|&(epoch, _)| epoch > 0))];
        let mut good = GoodRows::default();
        let content = if self.dataset.set().lends() {
            let set = self.dataset.set();
            if prefetch::is_cold(set, &self.ahead, plan.announced, &plan.located) {
                plan.located.iter().flatten().try_for_each(|at| prefetch::fetch(set, at))?;
            }
            self.lent(&plan, &mut faults, verify, &mut good)?
        } else {
            self.read(&plan, &mut faults, verify, &mut good)?
        };
        let kept = good.places.iter().filter_map(|&place| plan.located.get(place as usize)?.as_ref());
        let payload_bytes = kept.map(RecordLocation::payload_len).sum();
        let StepPlan { runs, mut ids, .. } = plan;
        let kept = (good.places.len() < ids.len()).then(|| {
            let mut places = good.places.iter().peekable();
            let mut place = 0;
            ids.retain(|_| {
                place += 1;
                places.next_if(|&&kept| kept + 1 == place).is_some()
            });
            good.places
        });
        Ok(Step { content, runs, ids, kept, skipped: good.skipped, payload_bytes })
    }

    /// Raises an error, or lists its record.
    fn skip(&self, plan: &StepPlan, place: usize, error: Error, skipped: &mut Vec<Skipped>) -> Result<()> {
        let skips = self.policy == ErrorPolicy::Skip && error.is_data();
        if !skips {
            return Err(error);
        }
        skipped.push(Skipped { record: plan.ids[place], error });
        Ok(())
    }

    fn lent(
        &self,
        plan: &StepPlan,
        faults: &mut Faults,
        verify: Verify,
        good: &mut GoodRows,
    ) -> Result<StepContent> {
        let mut rows = Vec::with_capacity(plan.ids.len());
        for (place, at) in plan.located.iter().enumerate() {
            let Some(lent) = with(at, faults, |at| self.dataset.set().lend(at, verify)) else { continue };
            match lent {
                Ok(record) => {
                    rows.push(record);
                    good.places.push(place as u32);
                }
                Err(e) => self.skip(plan, place, e, &mut good.skipped)?,
            }
        }
        self.content(plan, rows, None, good)
    }

    fn read(
        &self,
        plan: &StepPlan,
        faults: &mut Faults,
        verify: Verify,
        good: &mut GoodRows,
    ) -> Result<StepContent> {
        let mut draft = self.buffers.take();
        let mut ranges = Vec::with_capacity(plan.ids.len());
        for (place, at) in plan.located.iter().enumerate() {
            let Some(read) = with(at, faults, |at| self.dataset.set().append(at, verify, &mut draft)) else {
                continue;
            };
            match read {
                Ok(range) => {
                    ranges.push(range);
                    good.places.push(place as u32);
                }
                Err(e) => self.skip(plan, place, e, &mut good.skipped)?,
            }
        }
        let buffer = self.buffers.lend(draft);
        let mut rows = Vec::with_capacity(ranges.len());
        for (range, &place) in ranges.iter().zip(&good.places) {
            let Some(at) = &plan.located[place as usize] else { continue };
            let payload = buffer.get(range.clone()).unwrap_or_default();
            rows.push(ReadRow { payload, at: self.dataset.set().place(at), buffer: (&buffer, range.start) });
        }
        self.content(plan, rows, Some((&buffer, ranges)), good)
    }

    /// Columns if there is a schema, and the records as they are if not.
    fn content<R: Row>(
        &self,
        plan: &StepPlan,
        rows: Vec<R>,
        read: Option<(&Region, Vec<Range<usize>>)>,
        good: &mut GoodRows,
    ) -> Result<StepContent> {
        let Some(parser) = &self.parser else {
            let located = good.places.iter().filter_map(|&place| plan.located[place as usize]);
            let read = read.map(|(buffer, ranges)| (buffer.clone(), ranges));
            let records = StepRecords::new(self.dataset.clone(), located.collect(), read);
            return Ok(StepContent::Records(records));
        };
        if self.policy == ErrorPolicy::Raise {
            return Ok(StepContent::Columns(parser.parse(&rows)?));
        }
        let mut refused = Vec::new();
        let batch = parser.parse_skipping(&rows, |row, error| {
            refused.push(good.places[row]);
            self.skip(plan, good.places[row] as usize, error, &mut good.skipped)
        })?;
        refused.sort_unstable();
        good.places.retain(|place| refused.binary_search(place).is_err());
        Ok(StepContent::Columns(batch))
    }
}
