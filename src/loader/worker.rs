//! From a plan to a step: read, verify, parse.

#![expect(clippy::indexing_slicing, reason = "`kept` has the index of each row in the plan")]

use super::blocks_ahead::BlocksAhead;
use super::left_out::LeftRecord;
use super::plan::{BatchTickets, StepPlan};
use super::sources::MixSources;
use super::step::{BorrowedRow, ReadRow, Step, StepContent, StepRecords};
use super::times::{LoaderTimes, WorkerClock};
use crate::batch::{Batch, BatchParser, BytePool, Row};
use crate::dataset::{Dataset, OrderBlocks, RecordLocation, prefetch};
use crate::error::{Error, ErrorKind, Result};
use crate::io::{ReadAhead, Region, Requested};
use crate::memory::grow;
use crate::order::{Position, augmentation_seed};
use crate::policy::{Damage, Verify};
use crate::warning::Warning;
use std::cell::OnceCell;
use std::ops::Range;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};

/// Maximum number of bytes of a new buffer that are accessed before records are read into it.
const NEW_BYTES: u64 = 4 << 20;
/// Number of steps before and after one without a sound row that are searched for one.
const NEIGHBOURS: i64 = 64;

/// Makes batches. Shared by all workers.
pub(super) struct BatchWorker {
    pub(super) dataset: Dataset,
    pub(super) parser: Option<BatchParser>,
    /// The sources of a mix. `dataset` has their records.
    pub(super) mix: Option<MixSources>,
    pub(super) damage: Damage,
    /// Batches are filled from the records that follow those left out. Otherwise the rows of these are
    /// padding.
    pub(super) fills: bool,
    /// The records that were left out of batches that must be planned anew.
    pub(super) left_out: Mutex<Vec<LeftRecord>>,
    /// The checksums to verify: in the first epoch, and in later epochs.
    pub(super) verify: [Verify; 2],
    /// The blocks of a block order, of each source of a mix. Empty for other orders.
    pub(super) blocks: Vec<Option<OrderBlocks>>,
    pub(super) ahead: ReadAhead,
    /// The blocks of objects that are requested whole. `None`: records are requested.
    pub(super) object_blocks: Option<ObjectBlocks>,
    pub(super) buffers: BytePool,
    pub(super) clock: WorkerClock,
    /// Set while the threads end. Their batches are not needed.
    pub(super) cancelled: Arc<AtomicBool>,
    /// Called with the record numbers of a batch before the records are read.
    #[cfg(test)]
    pub(super) before_read: Option<BeforeRead>,
}

/// The blocks of objects that are requested whole, ahead of the batches of the running epoch.
pub(super) struct ObjectBlocks {
    /// The blocks of each source of a mix, or of the data set.
    blocks: Vec<Option<OrderBlocks>>,
    /// Maximum number of their bytes that were not read.
    room: u64,
    ahead: Mutex<Option<BlocksAhead>>,
}

impl ObjectBlocks {
    pub(super) fn new(blocks: Vec<Option<OrderBlocks>>, room: u64) -> ObjectBlocks {
        ObjectBlocks { blocks, room, ahead: Mutex::default() }
    }
}

#[cfg(test)]
pub(super) type BeforeRead = std::sync::Arc<dyn Fn(&[u64]) + Send + Sync>;

/// The records of a batch that were read and parsed, by their index in the plan, and the skipped ones.
#[derive(Default)]
struct BatchOutcome {
    kept: Vec<u32>,
    /// The records that were skipped, by the same index.
    skipped: Vec<(u32, Error)>,
    /// Warnings about the names of the first batch.
    warnings: Vec<Warning>,
}

/// The errors of records without a location, in the order of the plan.
type Faults = std::vec::IntoIter<Error>;

/// Applies `f` to the location of a record. If it has none, returns its error.
fn if_located<'a, T>(
    at: &'a Option<RecordLocation>,
    faults: &mut Faults,
    f: impl FnOnce(&'a RecordLocation) -> Result<T>,
) -> Option<Result<T>> {
    match at {
        Some(at) => Some(f(at)),
        None => faults.next().map(Err),
    }
}

impl BatchWorker {
    /// Begins an epoch with these batches.
    pub(super) fn begin(&self, tickets: &BatchTickets) {
        if let Some(object_blocks) = &self.object_blocks {
            self.set_blocks_ahead(Some(BlocksAhead::new(tickets.clone(), object_blocks.room)));
        }
    }

    /// Ends an epoch, also one that is left early.
    pub(super) fn end(&self) {
        self.set_blocks_ahead(None);
    }

    fn set_blocks_ahead(&self, ahead: Option<BlocksAhead>) {
        let Some(object_blocks) = &self.object_blocks else { return };
        let mut locked = object_blocks.ahead.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(before) = std::mem::replace(&mut *locked, ahead) {
            before.end(self.dataset.set());
        }
    }

    /// Calls `f` with the blocks of objects that are requested ahead, if they are, and returns true.
    fn with_blocks_ahead(
        &self,
        f: impl FnOnce(&mut BlocksAhead, &dyn Fn(u64) -> Option<OrderBlocks>),
    ) -> bool {
        let Some(object_blocks) = &self.object_blocks else { return false };
        let mut locked = object_blocks.ahead.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(ahead) = &mut *locked else { return false };
        f(ahead, &|record| self.blocks_in(&object_blocks.blocks, record));
        true
    }

    /// Requests the records of a batch that will be made later, if records are cold.
    pub(super) fn request_ahead(&self, plan: &mut StepPlan) {
        let set = self.dataset.set();
        plan.requested = if self.with_blocks_ahead(|ahead, blocks_of| ahead.plan(set, blocks_of)) {
            let others = prefetch::outside_objects(set, &plan.located);
            prefetch::request_ahead(set, &self.ahead, &others)
        } else {
            prefetch::request_ahead(set, &self.ahead, &plan.located)
        };
    }

    /// Takes the request back because the batch will not be made.
    pub(super) fn forget(&self, plan: &StepPlan) {
        let set = self.dataset.set();
        if plan.requested == Requested::Nothing {
            return;
        }
        if self.with_blocks_ahead(|ahead, blocks_of| ahead.made(set, &plan.ids, blocks_of)) {
            prefetch::forget(set, &prefetch::outside_objects(set, &plan.located));
        } else {
            prefetch::forget(set, &plan.located);
        }
    }

    /// Returns true if the records of later batches have to be requested ahead.
    pub(super) fn looks_ahead(&self) -> bool {
        !self.dataset.set().can_borrow() || self.ahead.announces()
    }

    /// Makes a step. Calls `cold` before it waits for mapped records that are not in memory. `None`: records
    /// were left out, and the batch must be planned anew without them.
    pub(super) fn make(&self, mut plan: StepPlan, cold: impl FnOnce()) -> Result<Option<Step>> {
        let mut outcome = BatchOutcome::default();
        let content = self.read(&mut plan, cold, &mut outcome);
        let set = self.dataset.set();
        self.with_blocks_ahead(|ahead, blocks_of| ahead.made(set, &plan.ids, blocks_of));
        if let Err(e) = &content
            && matches!(e.kind(), ErrorKind::Cancelled)
        {
            prefetch::forget(set, &plan.located);
        }
        let mut content = content?;
        outcome.skipped.sort_by_key(|(index, _)| *index);
        // Padding repeats a record whose loss another step tells.
        let real = plan.real_rows();
        outcome.skipped.retain(|(index, _)| u64::from(*index) < real);
        if self.fills && !outcome.skipped.is_empty() {
            self.leave_out(&plan, outcome.skipped);
            return Ok(None);
        }
        let skipped: Vec<(u64, Error)> =
            outcome.skipped.into_iter().map(|(index, e)| (plan.ids[index as usize], e)).collect();
        if outcome.kept.is_empty() && !plan.ids.is_empty() {
            (plan, content) = self.repeat_neighbour(plan, skipped.first().map(|(_, error)| error))?;
            outcome.kept = (0..plan.ids.len() as u32).collect();
        }
        let kept = outcome.kept.iter().filter_map(|&index| plan.located.get(index as usize)?.as_ref());
        // Derived records have estimates of any size.
        let payload_bytes = kept.map(RecordLocation::payload_len).fold(0, u64::saturating_add);
        let is_whole = outcome.kept.iter().zip(0..).all(|(index, row)| *index == row);
        let kept = (!is_whole).then_some(outcome.kept.as_slice());
        let repeated = kept.map(|kept| kept.iter().map(|&index| plan.ids[index as usize]).collect());
        let StepPlan { seed, at: (epoch, step), runs, ids, lengths, .. } = plan;
        Ok(Some(Step {
            content,
            epoch,
            step,
            seed,
            runs,
            ids: repeated.unwrap_or(ids),
            kept: (!is_whole).then_some(outcome.kept),
            skipped,
            warnings: outcome.warnings,
            payload_bytes,
            lengths,
        }))
    }

    /// Notes the records that were left out of a batch.
    fn leave_out(&self, plan: &StepPlan, skipped: Vec<(u32, Error)>) {
        let positions: Vec<Position> = plan.positions().collect();
        let found = skipped.into_iter().map(|(index, error)| {
            let index = index as usize;
            LeftRecord { at: positions[index], record: plan.ids[index], error }
        });
        self.left_out.lock().unwrap_or_else(PoisonError::into_inner).extend(found);
    }

    /// Returns the records that were left out of batches since the last call.
    pub(super) fn take_left_out(&self) -> Vec<LeftRecord> {
        std::mem::take(&mut self.left_out.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Returns the content of a step without a sound row: the nearest sound row of the rank's other steps of
    /// the epoch in each of its rows, and the plan of these.
    fn repeat_neighbour(&self, plan: StepPlan, first: Option<&Error>) -> Result<(StepPlan, StepContent)> {
        for ahead in (1..=NEIGHBOURS).flat_map(|distance| [-distance, distance]) {
            let Some(mut other) = plan.neighbour(ahead, &self.dataset)? else { continue };
            let same_source = |mix: &MixSources| mix.have_like_columns(&plan.ids, &other.ids);
            if !self.mix.as_ref().is_none_or(same_source) {
                continue;
            }
            let mut outcome = BatchOutcome::default();
            self.read(&mut other, || (), &mut outcome)?;
            outcome.skipped.sort_by_key(|(index, _)| *index);
            let is_sound =
                |row: &u32| outcome.skipped.binary_search_by_key(row, |(index, _)| *index).is_err();
            let mut rows = 0..other.ids.len() as u32;
            let row = if ahead < 0 { rows.rfind(is_sound) } else { rows.find(is_sound) };
            if let Some(mut repeating) = row.and_then(|row| plan.repeating(&other, row as usize)) {
                let content = self.read(&mut repeating, || (), &mut BatchOutcome::default())?;
                return Ok((repeating, content));
            }
        }
        let reason = format!(
            "step {} of epoch {} has no sound row, and neither have the {NEIGHBOURS} steps of this rank before and after it: {}",
            plan.at.1,
            plan.at.0,
            first.map_or_else(String::new, Error::to_string)
        );
        Err(Error::order(reason))
    }

    /// Reads and parses the records of a batch.
    fn read(
        &self,
        plan: &mut StepPlan,
        cold: impl FnOnce(),
        outcome: &mut BatchOutcome,
    ) -> Result<StepContent> {
        let mut faults = std::mem::take(&mut plan.faults).into_iter();
        #[cfg(test)]
        if let Some(before_read) = &self.before_read {
            before_read(&plan.ids);
        }
        let verify = self.verify[usize::from(plan.runs.first().is_some_and(|&(epoch, _)| epoch > 0))];
        if !self.dataset.set().can_borrow() {
            return self.read_records(plan, &mut faults, verify, outcome);
        }
        let set = self.dataset.set();
        if prefetch::is_cold(set, &self.ahead, plan.requested, &plan.located) {
            cold();
            let mut located = plan.located.iter().flatten();
            self.clock.read.add(|| located.try_for_each(|at| prefetch::fetch(set, at)))?;
        }
        self.clock.parse.add(|| self.borrow_records(plan, &mut faults, verify, outcome))
    }

    /// Adds a record to the skipped ones, or returns its error if damage is not skipped, or for another kind
    /// of error.
    fn skip(&self, index: u32, error: Error, skipped: &mut Vec<(u32, Error)>) -> Result<()> {
        let skips = self.damage == Damage::Skip && error.is_data();
        if !skips {
            return Err(error);
        }
        skipped.push((index, error));
        Ok(())
    }

    /// Returns the blocks of a record's source, from the blocks of all sources.
    fn blocks_in(&self, blocks: &[Option<OrderBlocks>], record: u64) -> Option<OrderBlocks> {
        match &self.mix {
            None => blocks.first().copied().flatten(),
            Some(mix) => mix.blocks_of(blocks, record),
        }
    }

    /// Returns how long the threads have worked.
    pub(super) fn times(&self) -> LoaderTimes {
        self.clock.times()
    }

    /// Returns the fingerprint for saved states.
    pub(super) fn fingerprint(&self) -> Result<String> {
        self.mix.as_ref().map_or_else(|| self.dataset.fingerprint(), MixSources::fingerprint)
    }

    /// Makes the content from records that are borrowed from maps. The parser verifies payloads shortly
    /// before it reads them.
    fn borrow_records(
        &self,
        plan: &StepPlan,
        faults: &mut Faults,
        verify: Verify,
        outcome: &mut BatchOutcome,
    ) -> Result<StepContent> {
        let mut rows = Vec::with_capacity(plan.ids.len());
        for (index, at) in plan.located.iter().enumerate() {
            let borrow = |at| BorrowedRow::new(self.dataset.set(), at, verify, self.parser.is_some());
            let Some(borrowed) = if_located(at, faults, borrow) else { continue };
            match borrowed {
                Ok(row) => {
                    rows.push(row);
                    outcome.kept.push(index as u32);
                }
                Err(e) => self.skip(index as u32, e, &mut outcome.skipped)?,
            }
        }
        BorrowedRow::link(&mut rows);
        self.content(plan, rows, None, outcome)
    }

    /// Makes the content from records that are read into a pooled buffer.
    fn read_records(
        &self,
        plan: &StepPlan,
        faults: &mut Faults,
        verify: Verify,
        outcome: &mut BatchOutcome,
    ) -> Result<StepContent> {
        let mut buffer = self.buffers.take();
        if buffer.capacity() == 0 {
            // The first reads are timed, to find cold records. Page faults of new memory must not count.
            grow(&mut buffer, plan.cost.bytes.min(NEW_BYTES) as usize)?;
        }
        buffer.clear();
        let mut ranges = Vec::with_capacity(plan.ids.len());
        let set = self.dataset.set();
        let read_part = |part: Range<usize>| {
            for index in part {
                let Some(at) = plan.located.get(index) else { continue };
                let blocks = self.blocks_in(&self.blocks, plan.ids[index]);
                let read = |at: &_| set.append(at, blocks, verify, &mut buffer);
                let Some(read) = if_located(at, faults, read) else { continue };
                match read {
                    Ok(range) => {
                        ranges.push(range);
                        outcome.kept.push(index as u32);
                    }
                    Err(e) => self.skip(index as u32, e, &mut outcome.skipped)?,
                }
            }
            Ok(())
        };
        let ahead = &self.ahead;
        let requested = plan.requested;
        self.clock.read.add(|| prefetch::read_all(set, ahead, requested, &plan.located, read_part))?;
        let buffer = self.buffers.region(buffer);
        let mut rows = Vec::with_capacity(ranges.len());
        for (range, &index) in ranges.iter().zip(&outcome.kept) {
            let Some(at) = &plan.located[index as usize] else { continue };
            let payload = &buffer[range.clone()];
            rows.push(ReadRow {
                payload,
                at: self.dataset.set().location(at),
                buffer: (&buffer, range.start),
            });
        }
        self.clock.parse.add(|| self.content(plan, rows, Some((&buffer, ranges)), outcome))
    }

    /// Parses the rows into columns. Without a schema, returns the records unparsed.
    fn content<R: Row>(
        &self,
        plan: &StepPlan,
        rows: Vec<R>,
        read: Option<(&Region, Vec<Range<usize>>)>,
        outcome: &mut BatchOutcome,
    ) -> Result<StepContent> {
        let Some(own) = &self.parser else {
            let sound = self.pad(plan, &mut outcome.kept);
            let located = outcome.kept.iter().filter_map(|&index| plan.located[index as usize]);
            let read = read.map(|(buffer, ranges)| {
                let ranges = match sound {
                    Some(sound) => sound.into_iter().map(|row| ranges[row].clone()).collect(),
                    None => ranges,
                };
                (buffer.clone(), ranges)
            });
            let records = StepRecords { dataset: self.dataset.clone(), located: located.collect(), read };
            return Ok(StepContent::Records(records));
        };
        let mut rows: Vec<&R> = rows.iter().collect();
        let mut is_padded = false;
        loop {
            let (mut batch, refused) = self.parse(plan, own, &rows, outcome)?;
            leave_out(&refused, &mut rows);
            leave_out(&refused, &mut outcome.kept);
            let undecoded = self.decode(plan, own, &mut batch, &outcome.kept)?;
            if undecoded.is_empty() {
                // Padding may be refused because the batch becomes too large.
                let sound = if is_padded { None } else { self.pad(plan, &mut outcome.kept) };
                let Some(sound) = sound else { return Ok(StepContent::Columns(batch)) };
                rows = sound.into_iter().map(|row| rows[row]).collect();
                is_padded = true;
                continue;
            }
            // The others are parsed again.
            let mut refused = Vec::with_capacity(undecoded.len());
            for (row, error) in undecoded {
                refused.push(row);
                let error = error.at(rows[row].at()).row(row);
                self.skip(outcome.kept[row], error, &mut outcome.skipped)?;
            }
            leave_out(&refused, &mut rows);
            leave_out(&refused, &mut outcome.kept);
        }
    }

    /// Decodes the columns of a batch of these rows of the plan. Returns the refused rows.
    fn decode(
        &self,
        plan: &StepPlan,
        own: &BatchParser,
        batch: &mut Batch,
        kept: &[u32],
    ) -> Result<Vec<(usize, Error)>> {
        // Rows of several sources have decoders of one signature.
        let parser = self.mix.as_ref().and_then(|mix| mix.parser_of(&plan.ids)).unwrap_or(own);
        if !parser.has_decoder() {
            return Ok(Vec::new());
        }
        let positions: OnceCell<Vec<Position>> = OnceCell::new();
        let seed = |row: usize| {
            let at = positions.get_or_init(|| plan.positions().collect())[kept[row] as usize];
            augmentation_seed(plan.seed, at.epoch, at.position)
        };
        self.clock.decode.add(|| parser.decode_columns(batch, seed, false))
    }

    /// Pads a batch that lacks rows: repeats the nearest sound row in the place of each. Returns the number
    /// of each row among the sound ones. `None` if no row is missing or none is sound, and for a batch that
    /// is planned anew.
    fn pad(&self, plan: &StepPlan, kept: &mut Vec<u32>) -> Option<Vec<usize>> {
        let rows = plan.ids.len() as u32;
        let real = plan.real_rows();
        let lacks_real = || (kept.partition_point(|&index| u64::from(index) < real) as u64) < real;
        if kept.len() as u32 == rows || kept.is_empty() || (self.fills && lacks_real()) {
            return None;
        }
        let nearest = |row: u32| {
            let after = kept.partition_point(|&index| index < row).min(kept.len() - 1);
            let before = after.saturating_sub(1);
            if kept[before].abs_diff(row) <= kept[after].abs_diff(row) { before } else { after }
        };
        let padded: Vec<usize> = (0..rows).map(nearest).collect();
        *kept = padded.iter().map(|&row| kept[row]).collect();
        Some(padded)
    }

    /// Parses the rows into columns, rows of a mix with the parsers of their sources. Returns the rows that
    /// were left out, in ascending order.
    fn parse<R: Row>(
        &self,
        plan: &StepPlan,
        own: &BatchParser,
        rows: &[R],
        BatchOutcome { kept, skipped, warnings }: &mut BatchOutcome,
    ) -> Result<(Batch, Vec<usize>)> {
        // The parser for all rows. Otherwise the rows need the parsers of their sources.
        let parser = self.mix.as_ref().map_or(Some(own), |mix| mix.parser_of(&plan.ids));
        let id_of = |row: usize| plan.ids[kept[row] as usize];
        let mut refused = Vec::new();
        if plan.begins
            && let Some(parser) = parser
        {
            warnings.extend(parser.unknown_names(rows)?);
        }
        let names = plan.begins.then_some(warnings);
        if self.damage == Damage::Raise {
            let batch = match (parser, &self.mix) {
                (None, Some(mix)) => mix.parse(rows, id_of, None::<fn(usize, Error) -> Result<()>>, names)?,
                (parser, _) => parser.unwrap_or(own).parse(rows)?,
            };
            return Ok((batch, refused));
        }
        let skip = |row: usize, error| {
            refused.push(row);
            self.skip(kept[row], error, skipped)
        };
        let batch = match (parser, &self.mix) {
            (None, Some(mix)) => mix.parse(rows, id_of, Some(skip), names)?,
            (parser, _) => parser.unwrap_or(own).parse_skipping(rows, skip)?,
        };
        refused.sort_unstable();
        Ok((batch, refused))
    }
}

/// Leaves out of a list the rows with these numbers, which ascend.
fn leave_out<T>(refused: &[usize], list: &mut Vec<T>) {
    let mut row = 0..;
    list.retain(|_| row.next().is_none_or(|row| refused.binary_search(&row).is_err()));
}
