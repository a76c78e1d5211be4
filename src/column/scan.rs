//! Columns built from records: any number of features in one scan of a shard.

use super::build::ColumnBuilder;
use super::feature::FeatureColumn;
use super::left_out::Undecoded;
use crate::error::{At, Result};
use crate::example::Feature;
use crate::index::IndexHeader;
use crate::io::Region;
use crate::policy::Damage;
use crate::record::Record;

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

    /// Adds record `i` of `len`, an Example or the context of a SequenceExample. The whole payload must be
    /// valid. If a key occurs twice, the last entry counts. With [`Damage::Skip`] a record that cannot be
    /// read or is not valid has no values.
    pub(super) fn push(&mut self, i: u64, len: u64, record: Result<Record<'_>>) -> Result<()> {
        // Up to eight features need no allocation per record.
        let mut few = [const { None::<Feature<'_>> }; 8];
        let mut many = Vec::new();
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

    /// Returns the columns, in memory, and the records without values that do not decode, if there are any.
    /// With `classes`, columns have lists of their classes, except columns of floats and counts.
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
