//! Prediction of whole records: skeletons that are learned from the rows of a block, and used while most rows
//! fit.

use super::compile::PlanSlot;
use super::fit::{Fit, GROUP, GroupPlaces};
use super::sample::{SampleEntry, add_sample, entries_of};
use super::skeleton::Skeleton;
use super::span::SpanTable;
use tfseek_wire::VectorWork;

/// Maximum number of skeletons: records of two writers may be shuffled together.
const MAX_SKELETONS: usize = 2;
/// Maximum number of samples among which the skeletons are found.
const MAX_SAMPLES: usize = 4;
/// Rows of a block that is learned from, at least.
const MIN_ROWS: usize = 16;
/// A skeleton is kept if at least one of this number of rows has it.
const RARE: usize = 4;
/// Smallest and largest number of blocks in which nothing is learned after an attempt, and the growth of this
/// number with each attempt. So a parser of records that have little in common soon allocates nothing.
const MIN_REST: u32 = 2;
const MAX_REST: u32 = 1 << 24;
const REST_GROWTH: u32 = 4;

/// The skeletons of one parser, and how well they fit.
#[derive(Default)]
pub(super) struct RecordPredictor {
    samples: Vec<RecordSample>,
    skeletons: Vec<Skeleton>,
    places: GroupPlaces,
    /// Number of rows of the current block that were compared, and of those that fitted.
    compared: usize,
    fitted: usize,
    /// Number of blocks until the next that may be learned from, and of the rest after that.
    rest: u32,
    next_rest: u32,
}

/// Records with the same entries.
struct RecordSample {
    entries: Vec<SampleEntry>,
    /// Number of rows of the last block that was learned from.
    rows: usize,
}

impl RecordPredictor {
    /// Returns true if there is a skeleton.
    #[inline]
    pub(super) fn is_ready(&self) -> bool {
        !self.skeletons.is_empty()
    }

    /// Locates the values of the first `rows` payloads of a group, of which the first is `first` in the
    /// table. Returns one bit for each row that fits. All values of the other rows are absent.
    pub(super) fn locate(
        &mut self,
        mut payloads: [&[u8]; GROUP],
        rows: usize,
        first: usize,
        table: &mut SpanTable,
    ) -> u8 {
        let all = u8::MAX.wrapping_shr((GROUP - rows) as u32);
        let mut fitted = 0u8;
        for skeleton in &self.skeletons {
            let fit =
                Fit { skeleton, payloads: &payloads, places: &mut self.places, table: &mut *table, first };
            let fits = fit.run_vectors();
            fitted |= fits;
            if fitted == all {
                break;
            }
            for (row, payload) in payloads.iter_mut().enumerate() {
                if fits & 1u8.wrapping_shl(row as u32) != 0 {
                    *payload = &[];
                }
            }
        }
        self.compared += rows;
        self.fitted += fitted.count_ones() as usize;
        fitted
    }

    /// Ends a block. Skeletons are learned from its rows if there are none, or if they do not fit many rows.
    pub(super) fn end_block<'p>(
        &mut self,
        payloads: impl ExactSizeIterator<Item = &'p [u8]> + Clone,
        slots: &[PlanSlot],
    ) {
        let compared = std::mem::take(&mut self.compared);
        let fitted = std::mem::take(&mut self.fitted);
        let missed = compared - fitted;
        // Rows that do not fit cost the comparison as well.
        if missed * 8 > compared * 3 {
            self.skeletons.clear();
        }
        let enough = self.is_ready() && missed * 16 <= compared;
        if self.rest > 0 {
            self.rest -= 1;
        } else if !enough && payloads.len() >= MIN_ROWS {
            self.learn(payloads, slots);
            self.next_rest = (self.next_rest * REST_GROWTH).clamp(MIN_REST, MAX_REST);
            self.rest = self.next_rest;
        } else if enough {
            self.next_rest = self.next_rest.saturating_sub(1);
        }
    }

    #[cold]
    fn learn<'p>(&mut self, payloads: impl ExactSizeIterator<Item = &'p [u8]> + Clone, slots: &[PlanSlot]) {
        let rows = payloads.len();
        self.samples.iter_mut().for_each(|sample| sample.rows = 0);
        let add = |samples: &mut Vec<RecordSample>, payload: &[u8]| {
            let sample = samples
                .iter_mut()
                .find_map(|sample| add_sample(&mut sample.entries, payload).then_some(&mut sample.rows));
            sample.map(|rows| *rows += 1).is_some()
        };
        let is_common = |sample: &RecordSample| sample.rows * RARE >= rows;
        // First, the writers that are known.
        let known = payloads.clone().filter(|payload| add(&mut self.samples, payload)).count();
        self.samples.retain(is_common);
        if known * RARE < rows * (RARE - 1) {
            let mut found: Vec<RecordSample> = Vec::new();
            for (row, payload) in payloads.enumerate() {
                let is_new = !add(&mut self.samples, payload) && !add(&mut found, payload);
                if is_new && found.len() < MAX_SAMPLES {
                    found.extend(entries_of(payload, slots).map(|entries| RecordSample { entries, rows: 1 }));
                }
                if row == MIN_ROWS && found.iter().chain(&self.samples).all(|sample| sample.rows < RARE) {
                    // The first rows have nothing in common.
                    break;
                }
            }
            found.retain(is_common);
            self.samples.append(&mut found);
        }
        self.samples.sort_by_key(|sample| std::cmp::Reverse(sample.rows));
        self.samples.truncate(MAX_SKELETONS);
        self.skeletons = self.samples.iter().filter_map(|sample| Skeleton::new(&sample.entries)).collect();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::compile::BatchPlan;
    use crate::example::{ExampleBuilder, FeatureSlice, put_example};
    use crate::schema::{DType, FeatureSpec, Schema};

    fn record(k: i64, reversed: bool) -> Vec<u8> {
        let text = "text".repeat(k as usize % 5);
        let mut features: [(&str, FeatureSlice<'_>); 5] = [
            ("a constant key", FeatureSlice::Int64(&[7])),
            ("float", FeatureSlice::Float(&[k as f32])),
            ("int", FeatureSlice::Int64(&[k * k * k])),
            ("list", FeatureSlice::Int64(&[1, k, 300])),
            ("text", FeatureSlice::Bytes(&[text.as_bytes()])),
        ];
        if reversed {
            features.reverse();
        }
        let mut payload = Vec::new();
        put_example(&features, &mut payload).unwrap();
        payload
    }

    fn slots() -> Vec<PlanSlot> {
        let schema = Schema::example()
            .feature("float", FeatureSpec::fixed_len(&[], DType::Float32))
            .feature("int", FeatureSpec::fixed_len(&[], DType::Int64))
            .feature("list", FeatureSpec::ragged(DType::Int64))
            .feature("text", FeatureSpec::fixed_len(&[], DType::Bytes));
        BatchPlan::new(&schema.build().unwrap()).features.slots
    }

    fn group(rows: &[Vec<u8>]) -> [&[u8]; GROUP] {
        std::array::from_fn(|row| rows.get(row).map_or(&[][..], |row| row))
    }

    fn learned(rows: &[Vec<u8>], slots: &[PlanSlot]) -> RecordPredictor {
        let mut records = RecordPredictor::default();
        records.end_block(rows.iter().map(|row| &**row), slots);
        records
    }

    #[test]
    fn records_of_one_writer_and_of_two_fit() {
        let slots = slots();
        for two in [false, true] {
            let rows: Vec<_> = (0..64).map(|k| record(k, two && k % 3 == 0)).collect();
            let mut records = learned(&rows, &slots);
            assert_eq!(records.skeletons.len(), 1 + usize::from(two));
            let mut table = SpanTable::default();
            table.reset(64, slots.len());
            for (number, rows) in rows.chunks(GROUP).enumerate() {
                assert_eq!(records.locate(group(rows), rows.len(), number * GROUP, &mut table), u8::MAX);
            }
            records.end_block(rows.iter().map(|row| &**row), &slots);
            assert!(records.is_ready());
            assert!((0..slots.len()).all(|slot| table.slot(slot).iter().all(|span| span.is_present())));
        }
    }

    /// The table has the same values whether the processor has vectors or not.
    #[test]
    fn the_form_without_vectors_agrees() {
        let slots = slots();
        let rows: Vec<_> = (0..64).map(|k| record(k, k % 2 == 0)).collect();
        let records = learned(&rows, &slots);
        for chunk in rows.chunks(5) {
            let payloads = group(chunk);
            let run = |vectors: bool, skeleton: &Skeleton| {
                let mut table = SpanTable::default();
                let mut places = GroupPlaces::default();
                table.reset(GROUP, slots.len());
                let fit =
                    Fit { skeleton, payloads: &payloads, places: &mut places, table: &mut table, first: 0 };
                let fits = if vectors { fit.run_vectors() } else { fit.run() };
                (fits, (0..slots.len()).flat_map(|slot| table.slot(slot).to_vec()).collect::<Vec<_>>())
            };
            for skeleton in &records.skeletons {
                assert!(run(true, skeleton) == run(false, skeleton));
            }
        }
    }

    #[test]
    fn learning_rests_while_records_have_nothing_in_common() {
        let slots = slots();
        let keys = |k: usize| (0..6).map(move |j| format!("key {j} of {k}"));
        let rows: Vec<_> = (0..64)
            .map(|k| keys(k).fold(ExampleBuilder::new(), |b, key| b.int64(&key, [1])).encode().unwrap())
            .collect();
        let mut records = RecordPredictor::default();
        let mut learned = 0;
        for _ in 0..3000 {
            learned += u32::from(records.rest == 0);
            records.end_block(rows.iter().map(|row| &**row), &slots);
        }
        assert!(!records.is_ready());
        assert!(learned < 8, "learned {learned} times");
    }
}
