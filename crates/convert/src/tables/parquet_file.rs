//! Parquet files.

use super::guard::guarded;
use super::table::Table;
use crate::error::ConvertError;
use crate::out::{self, Written};
use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReaderBuilder,
};
use parquet::basic::{Compression, Type};
use parquet::file::metadata::RowGroupMetaData;
use parquet::file::properties::WriterProperties;
use std::fs::File;
use std::path::Path;
use tfseek::io::{Existing, Output};
use tfseek_tools::memory::ensure;

/// Encoded bytes after which a row group ends. A group is in memory until then. A million rows of images
/// would not fit into it.
const ROW_GROUP: usize = 64 << 20;
/// Bytes of values that are read at once.
const BATCH_BYTES: u64 = 32 << 20;
/// Memory that Parquet's writer and reader take for a batch, in multiples of its bytes. They do not return an
/// error without memory, so it is requested before they are called.
const WRITER_MEMORY: usize = 4;
const READER_MEMORY: u64 = 2;
/// Largest number of rows that are read at once.
const BATCH_ROWS: u64 = 8192;

/// Writes a table as a Parquet file, and returns the numbers of its rows and bytes.
pub(super) fn write(
    table: &mut Table<'_>,
    (out, force): (&Path, bool),
    row_group: Option<usize>,
) -> Result<Written, ConvertError> {
    let failed = |e| ConvertError::parquet(out, e);
    let properties = WriterProperties::builder()
        .set_created_by(format!("tfseek {}", env!("CARGO_PKG_VERSION")))
        .set_compression(Compression::SNAPPY)
        .set_max_row_group_row_count(None)
        .set_max_row_group_bytes(Some(row_group.unwrap_or(ROW_GROUP).max(1)))
        .build();
    let mut output = Output::open(out, Existing::replace_if(force)).map_err(|e| ConvertError::io(out, e))?;
    let schema = SchemaRef::clone(&table.schema);
    let mut writer = ArrowWriter::try_new(&mut output, schema, Some(properties)).map_err(failed)?;
    let rows = table.for_each(|batch| {
        ensure(batch.get_array_memory_size().saturating_mul(WRITER_MEMORY))?;
        writer.write(batch).map_err(failed)
    })?;
    // `into_inner` would turn an I/O error into a text.
    writer.close().map_err(failed)?;
    out::commit(out, output, rows)
}

/// The rows of a Parquet file.
pub(super) struct ParquetRows {
    file: File,
    metadata: ArrowReaderMetadata,
}

impl ParquetRows {
    pub(super) fn open(path: &Path) -> Result<ParquetRows, ConvertError> {
        let file = File::open(path).map_err(|e| ConvertError::io(path, e))?;
        let metadata = guarded(path, || ArrowReaderMetadata::load(&file, ArrowReaderOptions::new()))?;
        let metadata = metadata.map_err(|e| ConvertError::parquet(path, e))?;
        Ok(ParquetRows { file, metadata })
    }

    pub(super) fn schema(&self) -> &SchemaRef {
        self.metadata.schema()
    }

    /// Returns the number of rows that the file states.
    pub(super) fn len(&self, path: &Path) -> Result<u64, ConvertError> {
        let rows = self.metadata.metadata().file_metadata().num_rows();
        u64::try_from(rows)
            .map_err(|_| ConvertError::data(path, format!("expected a number of rows, found {rows}")))
    }

    /// Calls a function with the rows, and with their share of the file's bytes.
    pub(super) fn for_each(
        &self,
        path: &Path,
        mut f: impl FnMut(&RecordBatch, u64) -> Result<(), ConvertError>,
    ) -> Result<(), ConvertError> {
        let failed = |e| ConvertError::parquet(path, e);
        let size = self.file.metadata().map_or(0, |meta| meta.len()) as f64;
        let expected = self.len(path)?;
        let total = expected.max(1) as f64;
        let mut read = 0u64;
        for (number, group) in self.metadata.metadata().row_groups().iter().enumerate() {
            let file = self.file.try_clone().map_err(|e| ConvertError::io(path, e))?;
            let builder = ParquetRecordBatchReaderBuilder::new_with_metadata(file, self.metadata.clone());
            let row = row_bytes(group);
            let rows = (BATCH_BYTES / row.max(1)).clamp(1, BATCH_ROWS);
            let memory = row.saturating_mul(rows).saturating_mul(READER_MEMORY);
            let memory = ensure(usize::try_from(memory).unwrap_or(usize::MAX));
            memory.map_err(|e| ConvertError::io(path, e.into()))?;
            let builder = builder.with_row_groups(vec![number]).with_batch_size(rows as usize);
            let mut reader = guarded(path, || builder.build())?.map_err(failed)?;
            let stated = u64::try_from(group.num_rows()).unwrap_or_default();
            let before = read;
            while let Some(batch) = guarded(path, || reader.next())? {
                let batch = batch.map_err(|e| ConvertError::arrow(path, e))?;
                let rows = batch.num_rows() as u64;
                f(&batch, (size * (rows as f64 / total)) as u64)?;
                read += rows;
            }
            if let Some(left) = stated.checked_sub(read - before).filter(|left| *left > 0) {
                let reason = format!("row group {number}: expected {left} more rows, found its end");
                return Err(ConvertError::data(path, reason));
            }
        }
        if expected != read {
            return Err(ConvertError::data(path, format!("expected {expected} rows, found {read}")));
        }
        Ok(())
    }
}

/// Returns the mean of the bytes of a row in memory.
fn row_bytes(group: &RowGroupMetaData) -> u64 {
    // Values of a dictionary, and equal ones in a row, are stored once.
    let values = group.columns().iter().map(|column| {
        let width = match column.column_descr().physical_type() {
            Type::BOOLEAN => 1,
            Type::INT32 | Type::FLOAT | Type::BYTE_ARRAY => 4,
            Type::INT64 | Type::DOUBLE => 8,
            Type::INT96 => 12,
            Type::FIXED_LEN_BYTE_ARRAY => i64::from(column.column_descr().type_length()),
        };
        let texts = column.unencoded_byte_array_data_bytes().unwrap_or_default();
        column.num_values().saturating_mul(width).saturating_add(texts)
    });
    let bytes = values.fold(0, i64::saturating_add).max(group.total_byte_size());
    let bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
    bytes / u64::try_from(group.num_rows()).unwrap_or_default().max(1)
}
