//! Rows of tables as TFRecords.

use crate::error::ConvertError;
use crate::input::ImportTarget;
use crate::ipc_rows::IpcRows;
use crate::options::ImportOptions;
use crate::parquet_file::ParquetRows;
use crate::table::FEATURE_LISTS;
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

/// Writes the rows of a Parquet file.
pub(crate) fn import_parquet(
    path: &Path,
    target: &mut ImportTarget<'_>,
    options: &ImportOptions,
    progress: &dyn Fn(u64),
) -> Result<(), ConvertError> {
    let rows = ParquetRows::open(path)?;
    let size = std::fs::metadata(path).map_or(0, |meta| meta.len()) as f64;
    let mut encoder = RowEncoder::new(path, rows.schema(), options)?;
    rows.for_each(path, |batch, share| {
        encoder.write(batch, target)?;
        progress((size * share) as u64);
        Ok(())
    })
}

/// Writes the rows of an Arrow IPC file or stream.
pub(crate) fn import_ipc(
    path: &Path,
    target: &mut ImportTarget<'_>,
    options: &ImportOptions,
    progress: &dyn Fn(u64),
) -> Result<(), ConvertError> {
    let rows = IpcRows::open(path)?;
    let mut encoder = RowEncoder::new(path, rows.schema(), options)?;
    rows.for_each(path, |batch, bytes| {
        encoder.write(batch, target)?;
        progress(bytes);
        Ok(())
    })
}

/// An encoder of the rows of one file.
struct RowEncoder<'a> {
    path: &'a Path,
    encoder: Encoder,
    /// Number of rows that were encoded.
    rows: u64,
}

impl<'a> RowEncoder<'a> {
    fn new(
        path: &'a Path,
        schema: &ArrowSchema,
        options: &ImportOptions,
    ) -> Result<RowEncoder<'a>, ConvertError> {
        let failed = |e: tfseek_arrow::Error| ConvertError::data(path, e.to_string());
        let mut encoding = EncoderOptions::new();
        encoding.round_float64 = options.round_float64;
        if let Some(features) = &options.data_set {
            let encoder = Encoder::of_features(features, schema, &encoding).map_err(failed)?;
            return Ok(RowEncoder { path, encoder, rows: 0 });
        }
        let mut lists: Vec<String> = match schema.metadata().get(FEATURE_LISTS) {
            Some(names) => serde_json::from_str(names).map_err(|e| {
                ConvertError::data(
                    path,
                    format!("metadata {FEATURE_LISTS}: expected a list of names, found {e}"),
                )
            })?,
            None => Vec::new(),
        };
        for pattern in &options.feature_lists {
            let names = schema.fields().iter().map(|field| field.name());
            let found: Vec<_> = names.filter(|name| matches(pattern, name)).cloned().collect();
            if found.is_empty() {
                let reason =
                    format!("expected a column that matches {pattern} for a feature list, found none");
                return Err(ConvertError::Options(format!("{}: {reason}", path.display())));
            }
            lists.extend(found);
        }
        lists.sort();
        lists.dedup();
        let encoding = lists.into_iter().fold(encoding, EncoderOptions::feature_list);
        let encoder = Encoder::new(schema, &encoding).map_err(failed)?;
        Ok(RowEncoder { path, encoder, rows: 0 })
    }

    /// Writes the rows of a batch.
    fn write(&mut self, batch: &RecordBatch, target: &mut ImportTarget<'_>) -> Result<(), ConvertError> {
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
        Ok(())
    }
}
