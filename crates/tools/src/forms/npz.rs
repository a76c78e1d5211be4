//! Batches as a NumPy archive.

use super::archive::{Archive, BOOL, BYTES, FLOAT32, INT32, INT64};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use tfseek::batch::{ArrayBits, Batch, Column, RowSplits, Values};
use tfseek::io::Existing;
use tfseek::{Error, Result, TensorDType};

/// A writer of batches to a NumPy archive (`.npz`). The archive gets its name only when it is complete.
///
/// ```text
/// NAME                                          a dense column
/// NAME::values, ::present (bool)                an optional column
/// NAME::indices, ::values, ::dense_shape        a sparse column
/// NAME::values, ::row_splits0, ::row_splits1 .. a ragged column, row splits from outermost to innermost
/// context::NAME, sequence::NAME, lengths::NAME  columns of SequenceExamples
/// X::data (uint8), X::offsets (int64), X::shape an array X of byte strings: string j, in row-major order, is
///                                               data[offsets[j]:offsets[j + 1]]
/// ```
///
/// In an archive of several batches the names of batch K begin with `bK::`. NAME may contain any character,
/// including `/`. An archive for a FIFO or a device is written to a temporary file and then copied, because
/// writing an archive seeks.
pub struct NpzWriter {
    archive: Archive,
}

impl NpzWriter {
    /// Creates an archive. Until [`finish`](NpzWriter::finish), `path` does not exist or keeps its old
    /// content.
    ///
    /// # Errors
    /// I/O errors, with the path.
    pub fn create(path: &Path, existing: Existing) -> Result<NpzWriter> {
        Ok(NpzWriter { archive: Archive::create(path, existing)? })
    }

    /// Writes the columns of batch `k`, or of the only batch if `k` is `None`. `is_sequence` is true if the
    /// batch was parsed from SequenceExamples.
    ///
    /// # Errors
    /// I/O errors, with the path.
    pub fn batch(&mut self, k: Option<u64>, batch: &Batch, is_sequence: bool) -> Result<()> {
        let prefix = k.map_or(String::new(), |k| format!("b{k}::"));
        self.columns(&prefix, batch, is_sequence).map_err(|e| Error::from(e).in_file(self.archive.path()))
    }

    fn columns(&mut self, prefix: &str, batch: &Batch, sequence: bool) -> io::Result<()> {
        let part = if sequence { "context::" } else { "" };
        for (name, column) in batch.columns() {
            self.column(&format!("{prefix}{part}{name}"), column)?;
        }
        for (name, column) in batch.feature_lists() {
            self.column(&format!("{prefix}sequence::{name}"), column)?;
            if let Some(lengths) = batch.lengths(name) {
                self.archive.integers(&format!("{prefix}lengths::{name}"), &[lengths.len()], lengths)?;
            }
        }
        Ok(())
    }

    fn column(&mut self, name: &str, column: &Column) -> io::Result<()> {
        match column {
            Column::Dense(dense) => self.values(name, &dense.shape, &dense.values),
            Column::Optional(optional) => {
                self.values(&format!("{name}::values"), &optional.shape, &optional.values)?;
                self.archive.start(&format!("{name}::present"), BOOL, &optional.shape)?;
                self.archive.write_all(&optional.present)
            }
            Column::Sparse(sparse) => {
                let n = sparse.values.len();
                let rank = sparse.dense_shape.len();
                self.archive.integers(&format!("{name}::indices"), &[n, rank], &sparse.indices)?;
                self.values(&format!("{name}::values"), &[n], &sparse.values)?;
                // The dtype is int64, as in TensorFlow. A dimension fits into it.
                let shape: Vec<_> = sparse.dense_shape.iter().map(|&dim| dim as i64).collect();
                self.archive.integers(&format!("{name}::dense_shape"), &[rank], &shape)
            }
            Column::Ragged(ragged) => {
                self.values(&format!("{name}::values"), &ragged.shape, &ragged.values)?;
                for (k, splits) in ragged.row_splits.iter().enumerate() {
                    let name = format!("{name}::row_splits{k}");
                    match splits {
                        RowSplits::Int64(splits) => self.archive.integers(&name, &[splits.len()], splits)?,
                        RowSplits::Int32(splits) => {
                            let bytes = splits.iter().map(|split| split.to_le_bytes());
                            self.archive.array(&name, INT32, &[splits.len()], bytes)?;
                        }
                    }
                }
                Ok(())
            }
        }
    }

    fn values(&mut self, name: &str, shape: &[usize], values: &Values) -> io::Result<()> {
        match values {
            Values::Int64(values) => self.archive.integers(name, shape, values),
            Values::Float32(values) => self.archive.array(
                name,
                FLOAT32,
                shape,
                values.iter().map(|value| value.to_bits().to_le_bytes()),
            ),
            Values::Bytes(values) => {
                let (data, offsets) = values.to_contiguous()?;
                self.archive.start(&format!("{name}::data"), BYTES, &[data.len()])?;
                self.archive.write_all(&data)?;
                self.archive.integers(&format!("{name}::offsets"), &[offsets.len()], &offsets)?;
                let dims: Vec<_> = shape.iter().map(|&dim| dim as i64).collect();
                self.archive.integers(&format!("{name}::shape"), &[dims.len()], &dims)
            }
            Values::Array(values) => {
                let descr = descr(values.dtype());
                match values.bits() {
                    ArrayBits::Bits8(bits) => {
                        self.archive.start(name, descr, shape)?;
                        self.archive.write_all(bits)
                    }
                    ArrayBits::Bits16(bits) => {
                        self.archive.array(name, descr, shape, bits.iter().map(|bits| bits.to_le_bytes()))
                    }
                    ArrayBits::Bits32(bits) => {
                        self.archive.array(name, descr, shape, bits.iter().map(|bits| bits.to_le_bytes()))
                    }
                    ArrayBits::Bits64(bits) => {
                        self.archive.array(name, descr, shape, bits.iter().map(|bits| bits.to_le_bytes()))
                    }
                }
            }
        }
    }

    /// Syncs the archive to disk, gives it its name, and returns its path.
    ///
    /// # Errors
    /// I/O errors, with the path.
    pub fn finish(self) -> Result<PathBuf> {
        self.archive.finish()
    }
}

/// Returns NumPy's name of a type. NumPy has no `bfloat16`, so its elements are two bytes without a type.
fn descr(dtype: TensorDType) -> &'static str {
    match dtype {
        TensorDType::Bool => BOOL,
        TensorDType::Int8 => "|i1",
        TensorDType::Int16 => "<i2",
        TensorDType::Int32 => INT32,
        TensorDType::Int64 => INT64,
        TensorDType::UInt8 => BYTES,
        TensorDType::UInt16 => "<u2",
        TensorDType::UInt32 => "<u4",
        TensorDType::UInt64 => "<u8",
        TensorDType::Float16 => "<f2",
        TensorDType::Float32 => FLOAT32,
        TensorDType::Float64 => "<f8",
        TensorDType::Complex64 => "<c8",
        TensorDType::Complex128 => "<c16",
        _ => "|V2",
    }
}

#[cfg(test)]
mod tests {
    use super::NpzWriter;
    use crate::forms::archive::header;
    use std::fs::File;
    use std::io::Read;
    use tfseek::batch::BatchParser;
    use tfseek::io::Existing;
    use tfseek::schema::{DType, FeatureSpec, Schema};
    use tfseek::{ExampleBuilder, TensorDType};

    #[test]
    fn an_archive_gets_its_name_when_it_is_complete() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.npz");
        let schema =
            Schema::example().feature("a", FeatureSpec::fixed_len(&[], DType::Int64)).build().unwrap();
        let payload = ExampleBuilder::new().int64("a", [7]).encode().unwrap();
        let batch = BatchParser::new(&schema).parse(&[payload.as_slice(), &payload]).unwrap();
        let mut npz = NpzWriter::create(&path, Existing::Replace).unwrap();
        npz.batch(Some(0), &batch, false).unwrap();
        assert!(!path.exists());
        assert_eq!(npz.finish().unwrap(), path);
        let mut zip = zip::ZipArchive::new(File::open(&path).unwrap()).unwrap();
        let mut bytes = Vec::new();
        zip.by_name("b0::a.npy").unwrap().read_to_end(&mut bytes).unwrap();
        assert_eq!(bytes, [header("<i8", &[2]), 7i64.to_le_bytes().repeat(2)].concat());

        let e = NpzWriter::create(&dir.path().join("none/x.npz"), Existing::Keep).err().unwrap();
        assert!(matches!(e.kind(), tfseek::ErrorKind::Io(_)) && e.location().path.is_some(), "{e}");
    }

    /// The members of arrays in byte strings have NumPy's names of their types, and little-endian numbers.
    #[test]
    fn arrays_in_byte_strings_keep_their_types() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.npz");
        let dtypes = TensorDType::ALL.iter().filter(|dtype| dtype.size().is_some());
        let mut schema = Schema::example();
        let mut row = ExampleBuilder::new();
        for dtype in dtypes.clone() {
            schema = schema.feature(dtype.to_string(), FeatureSpec::raw(&[Some(2)], *dtype));
            let bytes: Vec<u8> = (0..2 * dtype.size().unwrap() as u8).map(|byte| byte % 2).collect();
            row = row.bytes(dtype.to_string(), [bytes]);
        }
        let batch = BatchParser::new(&schema.build().unwrap()).parse(&[row.encode().unwrap()]).unwrap();
        let mut npz = NpzWriter::create(&path, Existing::Replace).unwrap();
        npz.batch(None, &batch, false).unwrap();
        let mut zip = zip::ZipArchive::new(File::open(npz.finish().unwrap()).unwrap()).unwrap();
        let names = [
            "<f4", "<f8", "<i4", "|u1", "<i2", "|i1", "<c8", "<i8", "|b1", "|V2", "<u2", "<c16", "<f2",
            "<u4", "<u8",
        ];
        assert_eq!(dtypes.clone().count(), names.len());
        for (dtype, name) in dtypes.zip(names) {
            let mut bytes = Vec::new();
            zip.by_name(&format!("{dtype}.npy")).unwrap().read_to_end(&mut bytes).unwrap();
            let values: Vec<u8> = (0..2 * dtype.size().unwrap() as u8).map(|byte| byte % 2).collect();
            assert_eq!(bytes, [header(name, &[1, 2]), values].concat(), "{dtype}");
        }
    }
}
