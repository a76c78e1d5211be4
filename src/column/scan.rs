//! Columns built from records: any number of features in one scan of a shard.

use super::build::ColumnBuilder;
use super::feature::FeatureColumn;
use super::left_out::Undecoded;
use crate::dataset::Dataset;
use crate::error::{At, Result};
use crate::example::Feature;
use crate::frame::OVERHEAD;
use crate::index::{CHECKED, Index, IndexHeader, REPORT, Work};
use crate::io::{Region, Stamp};
use crate::policy::{Damage, Verify};
use crate::record::Record;

/// Calls `f` with each of the records `ids` of shard `s`, in that order, or with the error of reading it. Verifies payloads, regardless of the
/// dataset's options.
#[expect(clippy::indexing_slicing, reason = "shards are numbered from 0 to their count")]
pub(super) fn for_each_record(
    dataset: &Dataset,
    s: usize,
    ids: impl Iterator<Item = u64> + Clone,
    work: &Work,
    mut f: impl FnMut(u64, Result<Record<'_>>) -> Result<()>,
) -> Result<()> {
    let (start, shard) = (dataset.set().starts()[s], &dataset.files()[s]);
    let (mut numbers, mut seen) = (ids.clone(), 0);
    let mut each = |record: Result<Record<'_>>| {
        seen += record.as_ref().map_or(0, |record| record.payload().len() + OVERHEAD) as u64;
        if seen >= REPORT as u64 {
            work.report(std::mem::take(&mut seen))?;
        }
        numbers.next().map_or(Ok(()), |i| f(i, record))
    };
    if shard.can_borrow() {
        for k in ids.map(|i| shard.first() + (i - start)) {
            each(shard.locate(k).and_then(|span| shard.borrow(k, span, Verify::Payload)))?;
        }
    } else {
        dataset.set().read_runs(ids, Verify::Payload, &mut each)?;
    }
    work.report(seen)
}

/// The columns of several features during the scan of one shard. It takes all records in order.
pub(super) struct ColumnScan<'f> {
    features: Vec<(&'f str, ColumnBuilder)>,
    damage: Damage,
    undecoded: Option<Undecoded>,
}

impl<'f> ColumnScan<'f> {
    /// Creates the scan of the columns of `features`: of their values, or of the numbers of their values.
    pub(super) fn new(
        features: impl IntoIterator<Item = &'f str>,
        counts: bool,
        damage: Damage,
    ) -> ColumnScan<'f> {
        let builder = || if counts { ColumnBuilder::of_counts() } else { ColumnBuilder::default() };
        let features = features.into_iter().map(|f| (f, builder())).collect();
        ColumnScan { features, damage, undecoded: None }
    }

    /// Adds record `i` of `len`, an Example or the context of a SequenceExample. The whole payload must be valid. If a key occurs twice, the
    /// last entry counts. With [`Damage::Skip`] a record that cannot be read or is not valid has no values.
    pub(super) fn push(&mut self, i: u64, len: u64, record: Result<Record<'_>>) -> Result<()> {
        // Up to eight features need no allocation per record.
        let (mut few, mut many) = ([const { None::<Feature<'_>> }; 8], Vec::new());
        let last = match few.get_mut(..self.features.len()) {
            Some(few) => few,
            None => {
                many.resize(self.features.len(), None);
                &mut many[..]
            }
        };
        let at = match self.find(record, last) {
            Err(e) if self.damage == Damage::Skip && e.is_data() => {
                last.fill(None);
                Undecoded::add(&mut self.undecoded, i, len, e)?;
                At::NOWHERE
            }
            found => found?,
        };
        for ((feature, column), last) in self.features.iter_mut().zip(&*last) {
            column.push(*last).map_err(|e| e.at(at).feature(feature.as_bytes()))?;
        }
        Ok(())
    }

    /// Finds the features of a record, and returns its location.
    fn find<'r>(&self, record: Result<Record<'r>>, found: &mut [Option<Feature<'r>>]) -> Result<At<'r>> {
        let record = record?;
        for entry in record.example().entries() {
            let (key, feature) = entry?;
            for ((feature_name, _), found) in self.features.iter().zip(&mut *found) {
                if *feature_name == key {
                    *found = Some(feature);
                }
            }
        }
        Ok(record.at())
    }

    /// Returns the columns, in memory, and the records without values that do not decode, if there are any. With `classes`, columns have lists
    /// of their classes, except those of floats and counts.
    pub(super) fn finish(
        self,
        header: &IndexHeader,
        classes: bool,
    ) -> Result<(Vec<FeatureColumn>, Option<Undecoded>)> {
        let column = |(feature, builder): (&str, ColumnBuilder)| {
            let bytes = builder.finish()?.sections(feature).encode(header)?;
            let column = FeatureColumn::from_bytes(Region::from(bytes))?;
            if classes { column.with_classes() } else { Ok(column) }
        };
        Ok((self.features.into_iter().map(column).collect::<Result<_>>()?, self.undecoded))
    }
}

/// Returns the header of columns that can be saved. Size and time are those of the shard during the scan, and the rest of the
/// identity is that of the index in use. `None` if the two contradict each other.
pub(crate) fn header_for(index: &Index, stamp: Option<&Stamp>) -> Option<IndexHeader> {
    let known = *index.header();
    let header = IndexHeader {
        data_size: stamp?.size,
        mtime_ns: stamp?.mtime_ns(),
        flags: known.flags | CHECKED,
        ..known
    };
    header.check().is_ok().then_some(header)
}

/// Returns the header of columns that stay in memory.
pub(crate) fn header_in_memory(index: &Index) -> IndexHeader {
    IndexHeader { flags: index.header().flags | CHECKED, ..*index.header() }
}
