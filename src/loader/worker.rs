//! From a plan to a step: read, verify, parse.

use super::advise::Advice;
use super::plan::Plan;
use super::step::{Content, ReadRow, Records, Skipped, Step};
use crate::batch::{BatchParser, BytePool, Row};
use crate::dataset::{Dataset, Located};
use crate::error::{Error, Result};
use crate::io::Region;
use crate::policy::Verify;
use std::ops::Range;

/// What happens at a record that is damaged, or does not go with the schema.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ErrorPolicy {
    /// The batch is an error, at its place in the order. Later batches stay valid.
    #[default]
    Raise,
    /// The batch is shorter by it, and lists it. Its position counts as delivered.
    Skip,
}

/// What workers share.
pub(super) struct Workshop {
    pub(super) dataset: Dataset,
    pub(super) parser: Option<BatchParser>,
    pub(super) policy: ErrorPolicy,
    /// In the first epoch, and in those after it.
    pub(super) verify: [Verify; 2],
    pub(super) advice: Advice,
    pub(super) buffers: BytePool,
    /// For tests: called before a batch is read.
    pub(super) hook: Option<Hook>,
}

/// Called with the numbers of the records of a batch before they are read.
pub(super) type Hook = Box<dyn Fn(&[u64]) + Send + Sync>;

/// The records of a batch that are sound, by their places in the plan.
#[derive(Default)]
struct Sound {
    places: Vec<u32>,
    skipped: Vec<Skipped>,
}

/// Why records were not found, those of later places behind.
type Faults = std::vec::IntoIter<Error>;

/// What can be done with a record, or why it was not found.
fn with<T>(
    at: &Option<Located>,
    faults: &mut Faults,
    f: impl FnOnce(&Located) -> Result<T>,
) -> Option<Result<T>> {
    match at {
        Some(at) => Some(f(at)),
        None => faults.next().map(Err),
    }
}

impl Workshop {
    /// Makes a step.
    pub(super) fn make(&self, mut plan: Plan) -> Result<Step> {
        let mut faults = std::mem::take(&mut plan.faults).into_iter();
        if let Some(hook) = &self.hook {
            hook(&plan.ids);
        }
        let verify = self.verify[usize::from(plan.runs.first().is_some_and(|&(epoch, _)| epoch > 0))];
        let mut sound = Sound::default();
        let content = if self.dataset.lends() {
            self.advice.at_hand(&self.dataset, &plan)?;
            self.lent(&plan, &mut faults, verify, &mut sound)?
        } else {
            self.read(&plan, &mut faults, verify, &mut sound)?
        };
        let kept = sound.places.iter().filter_map(|&place| plan.located.get(place as usize)?.as_ref());
        let payload_bytes = kept.map(Located::payload_len).sum();
        let Plan { runs, mut ids, .. } = plan;
        let kept = (sound.places.len() < ids.len()).then(|| {
            let mut places = sound.places.iter().peekable();
            let mut place = 0;
            ids.retain(|_| {
                place += 1;
                places.next_if(|&&kept| kept + 1 == place).is_some()
            });
            sound.places
        });
        Ok(Step { content, runs, ids, kept, skipped: sound.skipped, payload_bytes })
    }

    /// Raises an error, or lists its record.
    fn bad(&self, plan: &Plan, place: usize, error: Error, sound: &mut Sound) -> Result<()> {
        let skips = self.policy == ErrorPolicy::Skip && error.is_data();
        if !skips {
            return Err(error);
        }
        sound.skipped.push(Skipped { record: plan.ids[place], error });
        Ok(())
    }

    fn lent(&self, plan: &Plan, faults: &mut Faults, verify: Verify, sound: &mut Sound) -> Result<Content> {
        let mut rows = Vec::with_capacity(plan.ids.len());
        for (place, at) in plan.located.iter().enumerate() {
            let Some(lent) = with(at, faults, |at| self.dataset.lend_as(at, verify)) else { continue };
            match lent {
                Ok(record) => {
                    rows.push(record);
                    sound.places.push(place as u32);
                }
                Err(e) => self.bad(plan, place, e, sound)?,
            }
        }
        self.content(plan, rows, None, sound)
    }

    fn read(&self, plan: &Plan, faults: &mut Faults, verify: Verify, sound: &mut Sound) -> Result<Content> {
        let mut draft = self.buffers.draft();
        let mut ranges = Vec::with_capacity(plan.ids.len());
        for (place, at) in plan.located.iter().enumerate() {
            let Some(read) = with(at, faults, |at| self.dataset.append(at, verify, &mut draft)) else {
                continue;
            };
            match read {
                Ok(range) => {
                    ranges.push(range);
                    sound.places.push(place as u32);
                }
                Err(e) => self.bad(plan, place, e, sound)?,
            }
        }
        let buffer = self.buffers.lend(draft);
        let mut rows = Vec::with_capacity(ranges.len());
        for (range, &place) in ranges.iter().zip(&sound.places) {
            let Some(at) = &plan.located[place as usize] else { continue };
            let payload = buffer.get(range.clone()).unwrap_or_default();
            rows.push(ReadRow { payload, at: self.dataset.place(at), buffer: &buffer });
        }
        self.content(plan, rows, Some((&buffer, ranges)), sound)
    }

    /// Columns if there is a schema, and the records as they are if not.
    fn content<R: Row>(
        &self,
        plan: &Plan,
        mut rows: Vec<R>,
        read: Option<(&Region, Vec<Range<usize>>)>,
        sound: &mut Sound,
    ) -> Result<Content> {
        let Some(parser) = &self.parser else {
            let located = sound.places.iter().filter_map(|&place| plan.located[place as usize]);
            let read = read.map(|(buffer, ranges)| (buffer.clone(), ranges));
            let records = Records::new(self.dataset.clone(), located.collect(), read);
            return Ok(Content::Records(records));
        };
        loop {
            match parser.parse(&rows) {
                Ok(batch) => return Ok(Content::Columns(batch)),
                // Without the row that is bad; then the next one may be found.
                Err(e) => match e.place().row {
                    Some(row) if row < rows.len() => {
                        self.bad(plan, sound.places[row] as usize, e, sound)?;
                        rows.remove(row);
                        sound.places.remove(row);
                    }
                    _ => return Err(e),
                },
            }
        }
    }
}
