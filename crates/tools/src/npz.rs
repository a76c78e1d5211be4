//! Batches as a NumPy archive: a zip file of arrays, without compression.
//!
//! An array is a member `NAME.npy`. It contains a magic number, a version, the length of the header in 2 bytes, the header, and the data.
//! The header is a Python dict in ASCII, padded with spaces to start the data at a multiple of 64. The data are little-endian and
//! row-major.

use std::fs::File;
use std::io::{self, BufWriter, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use tfseek::batch::{Batch, Column, RowSplits, Values};
use tfseek::io::Output;
use tfseek::{Error, Result};
use zip::ZipWriter;
use zip::write::SimpleFileOptions;

/// A writer of batches to a NumPy archive (`.npz`). The archive gets its name only when it is complete.
///
/// ```text
/// bK::NAME                                          a dense column of batch K
/// bK::NAME::values, ::present (bool)                an optional column
/// bK::NAME::indices, ::values, ::dense_shape        a sparse column
/// bK::NAME::values, ::row_splits0, ::row_splits1 .. a ragged column, row splits from outermost to innermost
/// bK::context::NAME, bK::sequence::NAME, bK::lengths::NAME     columns of SequenceExamples
/// X::data (uint8), X::offsets (int64), X::shape     an array X of byte strings: string j, in row-major order, is
///                                                   data[offsets[j]:offsets[j + 1]]
/// ```
///
/// NAME may contain any character, including `/`. An archive for a FIFO or a device is written to a temporary file and then copied,
/// because writing an archive seeks.
pub struct NpzWriter {
    zip: ZipWriter<ArchiveFile>,
    output: Output,
}

impl NpzWriter {
    /// Creates an archive. Until [`finish`](NpzWriter::finish), `path` does not exist or keeps its old content.
    ///
    /// # Errors
    /// I/O errors, with the path.
    pub fn create(path: &Path) -> Result<NpzWriter> {
        let create = || {
            let output = Output::create(path)?;
            let file = if output.is_whole() { output.file()?.try_clone()? } else { tempfile::tempfile()? };
            Ok(NpzWriter { zip: ZipWriter::new(ArchiveFile::new(file)), output })
        };
        create().map_err(|e: io::Error| Error::from(e).in_file(path))
    }

    /// Writes the columns of batch `k`. `is_sequence` is true if the batch was parsed from SequenceExamples.
    ///
    /// # Errors
    /// I/O errors, with the path.
    pub fn batch(&mut self, k: u64, batch: &Batch, is_sequence: bool) -> Result<()> {
        self.columns(k, batch, is_sequence).map_err(|e| Error::from(e).in_file(self.output.path()))
    }

    fn columns(&mut self, k: u64, batch: &Batch, sequence: bool) -> io::Result<()> {
        let part = if sequence { "context::" } else { "" };
        for (name, column) in batch.columns() {
            self.column(&format!("b{k}::{part}{name}"), column)?;
        }
        for (name, column) in batch.feature_lists() {
            self.column(&format!("b{k}::sequence::{name}"), column)?;
            if let Some(lengths) = batch.lengths(name) {
                self.integers(&format!("b{k}::lengths::{name}"), &[lengths.len()], lengths)?;
            }
        }
        Ok(())
    }

    fn column(&mut self, name: &str, column: &Column) -> io::Result<()> {
        match column {
            Column::Dense(dense) => self.values(name, &dense.shape, &dense.values),
            Column::Optional(optional) => {
                self.values(&format!("{name}::values"), &optional.shape, &optional.values)?;
                self.start(&format!("{name}::present"), "|b1", &optional.shape)?;
                self.zip.write_all(&optional.present)
            }
            Column::Sparse(sparse) => {
                let (n, rank) = (sparse.values.len(), sparse.dense_shape.len());
                self.integers(&format!("{name}::indices"), &[n, rank], &sparse.indices)?;
                self.values(&format!("{name}::values"), &[n], &sparse.values)?;
                // The dtype is int64, as in TensorFlow. A dimension fits into it.
                let shape: Vec<_> = sparse.dense_shape.iter().map(|&dim| dim as i64).collect();
                self.integers(&format!("{name}::dense_shape"), &[rank], &shape)
            }
            Column::Ragged(ragged) => {
                self.values(&format!("{name}::values"), &ragged.shape, &ragged.values)?;
                for (k, splits) in ragged.row_splits.iter().enumerate() {
                    let name = format!("{name}::row_splits{k}");
                    match splits {
                        RowSplits::Int64(splits) => self.integers(&name, &[splits.len()], splits)?,
                        RowSplits::Int32(splits) => {
                            let bytes = splits.iter().map(|split| split.to_le_bytes());
                            self.array(&name, "<i4", &[splits.len()], bytes)?;
                        }
                    }
                }
                Ok(())
            }
        }
    }

    fn values(&mut self, name: &str, shape: &[usize], values: &Values) -> io::Result<()> {
        match values {
            Values::Int64(values) => self.integers(name, shape, values),
            Values::Float32(values) => {
                self.array(name, "<f4", shape, values.iter().map(|value| value.to_bits().to_le_bytes()))
            }
            Values::Bytes(values) => {
                let (data, offsets) = values.to_contiguous();
                self.start(&format!("{name}::data"), "|u1", &[data.len()])?;
                self.zip.write_all(&data)?;
                self.integers(&format!("{name}::offsets"), &[offsets.len()], &offsets)?;
                let dims: Vec<_> = shape.iter().map(|&dim| dim as i64).collect();
                self.integers(&format!("{name}::shape"), &[dims.len()], &dims)
            }
        }
    }

    fn integers(&mut self, name: &str, shape: &[usize], values: &[i64]) -> io::Result<()> {
        self.array(name, "<i8", shape, values.iter().map(|value| value.to_le_bytes()))
    }

    fn array<const N: usize>(
        &mut self,
        name: &str,
        descr: &str,
        shape: &[usize],
        values: impl Iterator<Item = [u8; N]>,
    ) -> io::Result<()> {
        self.start(name, descr, shape)?;
        // Values are written in blocks, because the zip writer checksums and copies each write.
        let mut block = Vec::with_capacity(BLOCK + N);
        for value in values {
            block.extend_from_slice(&value);
            if block.len() >= BLOCK {
                self.zip.write_all(&block)?;
                block.clear();
            }
        }
        self.zip.write_all(&block)
    }

    fn start(&mut self, name: &str, descr: &str, shape: &[usize]) -> io::Result<()> {
        // The size of a member is not known in advance, so it may exceed 4 GiB. The zip64 fields take 20 bytes.
        let options =
            SimpleFileOptions::default().compression_method(zip::CompressionMethod::Stored).large_file(true);
        self.zip.start_file(format!("{name}.npy"), options)?;
        self.zip.write_all(&header(descr, shape))
    }

    /// Syncs the archive to disk, gives it its name, and returns its path.
    ///
    /// # Errors
    /// I/O errors, with the path.
    pub fn finish(self) -> Result<PathBuf> {
        let path = self.output.path().to_path_buf();
        let NpzWriter { zip, mut output } = self;
        let finish = || {
            let mut file = zip.finish()?.file.into_inner()?;
            if !output.is_whole() {
                file.rewind()?;
                io::copy(&mut file, &mut output)?;
            }
            output.commit()
        };
        finish().map_err(|e: io::Error| Error::from(e).in_file(&path))?;
        Ok(path)
    }
}

/// The file of an archive. After an error, further writes succeed and write nothing.
///
/// Dropping a `ZipWriter` finishes its archive. After an error, which has been returned, this would print further errors to standard
/// error, or panic on a position that does not fit.
struct ArchiveFile {
    file: BufWriter<File>,
    position: u64,
    /// The highest position so far.
    end: u64,
    failed: bool,
}

impl ArchiveFile {
    fn new(file: File) -> ArchiveFile {
        ArchiveFile { file: BufWriter::with_capacity(1 << 20, file), position: 0, end: 0, failed: false }
    }

    /// Records a failure, other than an interrupted call, and returns `result`.
    fn record<T>(&mut self, result: io::Result<T>) -> io::Result<T> {
        self.failed |= result.as_ref().is_err_and(|e| e.kind() != io::ErrorKind::Interrupted);
        result
    }
}

impl Write for ArchiveFile {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        if self.failed {
            return Ok(buf.len());
        }
        let result = self.file.write(buf);
        let written = self.record(result)?;
        self.position += written as u64;
        self.end = self.end.max(self.position);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.failed {
            return Ok(());
        }
        let result = self.file.flush();
        self.record(result)
    }
}

impl Seek for ArchiveFile {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        if self.failed {
            return Ok(self.end);
        }
        let result = self.file.seek(to);
        self.position = self.record(result)?;
        Ok(self.position)
    }
}

/// Size of a write in bytes.
const BLOCK: usize = 1 << 16;

/// Returns the header of an array: all bytes before its data.
fn header(descr: &str, shape: &[usize]) -> Vec<u8> {
    /// Magic number and version 1.0. The 2 bytes of the length follow.
    const START: &[u8] = b"\x93NUMPY\x01\x00";
    const ALIGN: usize = 64;
    // A Python tuple of one element ends with a comma.
    let dims = match shape {
        [one] => format!("{one},"),
        dims => dims.iter().map(usize::to_string).collect::<Vec<_>>().join(", "),
    };
    let mut dict = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': ({dims}), }}");
    let start = START.len() + 2;
    let end = (start + dict.len() + 1).next_multiple_of(ALIGN);
    let spaces = end - start - dict.len() - 1;
    dict.push_str(&" ".repeat(spaces));
    dict.push('\n');
    // NumPy allows at most 64 dimensions, whose header is shorter than 2^16 bytes.
    let len = u16::try_from(dict.len()).unwrap_or(u16::MAX);
    [START, &len.to_le_bytes(), dict.as_bytes()].concat()
}

#[cfg(test)]
mod tests {
    use super::{NpzWriter, header};
    use std::fs::File;
    use std::io::Read;
    use tfseek::ExampleBuilder;
    use tfseek::batch::BatchParser;
    use tfseek::schema::{DType, FeatureSpec, Schema};

    #[test]
    fn an_archive_gets_its_name_when_it_is_complete() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.npz");
        let schema =
            Schema::example().feature("a", FeatureSpec::fixed_len(&[], DType::Int64)).build().unwrap();
        let payload = ExampleBuilder::new().int64("a", [7]).encode().unwrap();
        let batch = BatchParser::new(&schema).parse(&[payload.as_slice(), &payload]).unwrap();
        let mut npz = NpzWriter::create(&path).unwrap();
        npz.batch(0, &batch, false).unwrap();
        assert!(!path.exists());
        assert_eq!(npz.finish().unwrap(), path);
        let mut zip = zip::ZipArchive::new(File::open(&path).unwrap()).unwrap();
        let mut bytes = Vec::new();
        zip.by_name("b0::a.npy").unwrap().read_to_end(&mut bytes).unwrap();
        assert_eq!(bytes, [header("<i8", &[2]), 7i64.to_le_bytes().repeat(2)].concat());

        let e = NpzWriter::create(&dir.path().join("none/x.npz")).err().unwrap();
        assert!(matches!(e.kind(), tfseek::ErrorKind::Io(_)) && e.location().path.is_some(), "{e}");
    }

    #[test]
    fn headers_are_those_of_numpy() {
        // The header that `np.save` writes.
        let mut scalar =
            b"\x93NUMPY\x01\x00v\x00{'descr': '<i8', 'fortran_order': False, 'shape': (), }".to_vec();
        scalar.resize(127, b' ');
        scalar.push(b'\n');
        assert_eq!(header("<i8", &[]), scalar);
        assert!(
            header("<f4", &[3]).starts_with(
                b"\x93NUMPY\x01\x00v\x00{'descr': '<f4', 'fortran_order': False, 'shape': (3,), }"
            )
        );
        assert!(header("|u1", &[3, 2]).starts_with(
            b"\x93NUMPY\x01\x00v\x00{'descr': '|u1', 'fortran_order': False, 'shape': (3, 2), }"
        ));
        for rank in 0..40 {
            assert_eq!(header("<i8", &vec![1_000_000; rank]).len() % 64, 0);
        }
    }
}
