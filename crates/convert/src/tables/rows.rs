//! Rows of tables as TFRecords.

use super::ipc_rows::IpcRows;
use super::parquet_file::ParquetRows;
use super::table::FEATURE_LISTS;
use crate::error::ConvertError;
use crate::format::FileFormat;
use crate::input::Import;
use arrow_array::RecordBatch;
use arrow_schema::Schema as ArrowSchema;
use std::path::Path;
use tfseek_arrow::{Encoder, EncoderOptions, ErrorKind};
use tfseek_tools::wildcards::matches;

/// Returns the number of rows of Parquet files, as they state it.
pub(crate) fn count_parquet<'p>(mut paths: impl Iterator<Item = &'p Path>) -> Result<u64, ConvertError> {
    let rows = |path: &Path| ParquetRows::open(path)?.len(path);
    paths.try_fold(0u64, |sum, path| Ok(sum.saturating_add(rows(path)?)))
}

/// Writes the rows of a Parquet file, or of an Arrow IPC file or stream.
pub(crate) fn import(path: &Path, from: FileFormat, import: &mut Import<'_>) -> Result<(), ConvertError> {
    if from == FileFormat::Parquet {
        let rows = ParquetRows::open(path)?;
        let mut encoder = RowEncoder::new(path, rows.schema(), import)?;
        rows.for_each(path, |batch, bytes| encoder.write(batch, bytes))
    } else {
        let rows = IpcRows::open(path)?;
        let mut encoder = RowEncoder::new(path, rows.schema(), import)?;
        rows.for_each(path, |batch, bytes| encoder.write(batch, bytes))
    }
}

/// An encoder of the rows of one file.
struct RowEncoder<'a, 'i> {
    path: &'a Path,
    import: &'a mut Import<'i>,
    encoder: Encoder,
    /// Number of rows that were encoded.
    rows: u64,
}

impl<'a, 'i> RowEncoder<'a, 'i> {
    fn new(
        path: &'a Path,
        schema: &ArrowSchema,
        import: &'a mut Import<'i>,
    ) -> Result<RowEncoder<'a, 'i>, ConvertError> {
        let failed = |e: tfseek_arrow::Error| ConvertError::data(path, e.to_string());
        let options = import.options;
        let mut encoding = EncoderOptions::new();
        encoding.round_float64 = options.round_float64;
        if let Some(features) = &options.data_set {
            let encoder = Encoder::of_features(features, schema, &encoding).map_err(failed)?;
            return Ok(RowEncoder { path, import, encoder, rows: 0 });
        }
        let mut lists: Vec<String> = match schema.metadata().get(FEATURE_LISTS) {
            Some(names) => serde_json::from_str(names).map_err(|e| {
                let reason = format!("metadata {FEATURE_LISTS}: expected a list of names, found {e}");
                ConvertError::data(path, reason)
            })?,
            None => Vec::new(),
        };
        for pattern in &options.feature_lists {
            let names = schema.fields().iter().map(|field| field.name());
            let found: Vec<_> = names.filter(|name| matches(pattern, name)).cloned().collect();
            if found.is_empty() {
                let reason =
                    format!("expected a column that matches {pattern} for a feature list, found none");
                return Err(ConvertError::refused(path, reason));
            }
            lists.extend(found);
        }
        lists.sort();
        lists.dedup();
        let encoding = lists.into_iter().fold(encoding, EncoderOptions::feature_list);
        let encoder = Encoder::new(schema, &encoding).map_err(failed)?;
        Ok(RowEncoder { path, import, encoder, rows: 0 })
    }

    /// Writes the rows of a batch, for which this number of bytes was read.
    fn write(&mut self, batch: &RecordBatch, bytes: u64) -> Result<(), ConvertError> {
        let target = &mut self.import.target;
        let mut failed = None;
        let encoded = self.encoder.encode(batch, |payload| {
            target.write(payload).map_err(|e| {
                failed = Some(e);
                std::io::Error::other("not written").into()
            })
        });
        if let Some(e) = failed {
            return Err(e);
        }
        let before = self.rows;
        encoded.map_err(|e| {
            let path = self.path.to_path_buf();
            let reason = format!("rows from {before}: {e}");
            match e.kind {
                ErrorKind::Inexact(_) => ConvertError::Inexact { path, reason },
                _ => ConvertError::Data { path, reason },
            }
        })?;
        self.rows = before + batch.num_rows() as u64;
        (self.import.progress)(bytes);
        Ok(())
    }
}
