//! Columns built from records: any number of features in one scan of a shard.

use super::build::ColumnBuilder;
use super::feature::FeatureColumn;
use crate::error::Result;
use crate::example::Feature;
use crate::index::{CHECKED, Index, IndexHeader, Stamp};
use crate::io::Region;
use crate::record::Record;

/// The columns of several features during the scan of one shard. It takes all records in order.
pub(crate) struct ColumnScan<'f> {
    features: Vec<(&'f str, ColumnBuilder)>,
}

impl<'f> ColumnScan<'f> {
    pub(crate) fn new(features: impl IntoIterator<Item = &'f str>) -> ColumnScan<'f> {
        ColumnScan { features: features.into_iter().map(|f| (f, ColumnBuilder::default())).collect() }
    }

    /// Adds the next record, an Example or the context of a SequenceExample. The whole payload must be valid. If a key occurs twice,
    /// the last entry counts.
    pub(crate) fn push(&mut self, record: Record<'_>) -> Result<()> {
        // Up to eight features need no allocation per record.
        let (mut few, mut many) = ([const { None::<Feature<'_>> }; 8], Vec::new());
        let last = match few.get_mut(..self.features.len()) {
            Some(few) => few,
            None => {
                many.resize(self.features.len(), None);
                &mut many[..]
            }
        };
        for entry in record.example().entries() {
            let (key, feature) = entry?;
            for ((feature_name, _), last) in self.features.iter().zip(&mut *last) {
                if *feature_name == key {
                    *last = Some(feature);
                }
            }
        }
        for ((feature, column), last) in self.features.iter_mut().zip(&*last) {
            column.push(*last).map_err(|e| e.at(record.at()).feature(feature.as_bytes()))?;
        }
        Ok(())
    }

    /// Returns the columns, in memory. With `classes`, they have lists of their classes, except columns of floats.
    pub(crate) fn finish(self, header: &IndexHeader, classes: bool) -> Result<Vec<FeatureColumn>> {
        let column = |(feature, builder): (&str, ColumnBuilder)| {
            let bytes = builder.finish()?.sections(feature).encode(header)?;
            let column = FeatureColumn::from_bytes(Region::from(bytes))?;
            if classes { column.with_classes() } else { Ok(column) }
        };
        self.features.into_iter().map(column).collect()
    }
}

/// Returns the header of columns that can be saved. Size and time are those of the shard during the scan, and the rest of the
/// identity is that of the index in use. `None` if the two contradict each other.
pub(crate) fn header_for(index: &Index, stamp: Option<Stamp>) -> Option<IndexHeader> {
    let known = *index.header();
    let header = IndexHeader {
        data_size: stamp?.size,
        mtime_ns: stamp?.mtime_ns,
        flags: known.flags | CHECKED,
        ..known
    };
    header.check().is_ok().then_some(header)
}

/// Returns the header of columns that stay in memory.
pub(crate) fn header_in_memory(index: &Index) -> IndexHeader {
    IndexHeader { flags: index.header().flags | CHECKED, ..*index.header() }
}
