//! Columns out of records: any number of features in one scan of a shard.

use super::build::ColumnBuilder;
use super::feature::FeatureColumn;
use crate::error::{Error, Result};
use crate::example::Feature;
use crate::index::{CHECKED, Header, Index, Stamp};
use crate::io::Region;
use crate::record::Record;

/// The columns of some features, while the records of one shard go by in their order.
pub(crate) struct ColumnScan<'f> {
    features: Vec<(&'f str, ColumnBuilder)>,
}

impl<'f> ColumnScan<'f> {
    pub(crate) fn new(features: impl IntoIterator<Item = &'f str>) -> ColumnScan<'f> {
        ColumnScan { features: features.into_iter().map(|f| (f, ColumnBuilder::default())).collect() }
    }

    /// Takes the next record, an Example or a SequenceExample with its context. The whole payload must be sound, as for a
    /// parser of it; of a key that comes twice the last entry counts.
    pub(crate) fn record(&mut self, record: Record<'_>) -> Result<()> {
        // On the stack for as many as anybody asks for at once.
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
            for ((wanted, _), last) in self.features.iter().zip(&mut *last) {
                if *wanted == key {
                    *last = Some(feature);
                }
            }
        }
        for ((feature, column), last) in self.features.iter_mut().zip(&*last) {
            column.push(*last).map_err(|e| Error::new(e).at(record.at()).feature(feature.as_bytes()))?;
        }
        Ok(())
    }

    /// The columns, with the lists of their classes if asked for (floats have none), in memory.
    pub(crate) fn finish(self, header: &Header, classes: bool) -> Result<Vec<FeatureColumn>> {
        let column = |(feature, builder): (&str, ColumnBuilder)| {
            let bytes = builder.finish().parts(feature).encode(header);
            let column = FeatureColumn::from_bytes(Region::from(bytes))?;
            if classes { column.with_classes() } else { Ok(column) }
        };
        self.features.into_iter().map(column).collect()
    }
}

/// The header of the columns of a shard whose size and time were `stamp` while it was scanned: the rest of the identity is
/// that of the index in use. `None` where the two do not go together, so that nothing can be saved.
pub(crate) fn header_for(index: &Index, stamp: Option<Stamp>) -> Option<Header> {
    let known = *index.header();
    let header =
        Header { data_size: stamp?.size, mtime_ns: stamp?.mtime_ns, flags: known.flags | CHECKED, ..known };
    header.check().is_ok().then_some(header)
}

/// The header of columns that stay in memory.
pub(crate) fn header_in_memory(index: &Index) -> Header {
    Header { flags: index.header().flags | CHECKED, ..*index.header() }
}
