//! A NumPy archive (`.npz`): a zip file of arrays, without compression.
//!
//! An array is a member `NAME.npy`. It contains a magic number, a version, the length of the header in 2
//! bytes, the header, and the data. The header is a Python dict in ASCII, padded with spaces to start the
//! data at a multiple of 64. The data are little-endian and row-major.

use std::fs::File;
use std::io::{self, BufWriter, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use tfseek::io::{Existing, Output};
use tfseek::{Error, Result};
use zip::ZipWriter;
use zip::write::SimpleFileOptions;

/// An archive that is being written, as a writer of the data of its last array. It gets its name only when it
/// is complete.
///
/// An archive for a FIFO or a device is written to a temporary file and then copied, because writing an
/// archive seeks.
pub(crate) struct Archive {
    zip: ZipWriter<ArchiveFile>,
    output: Output,
    path: PathBuf,
}

impl Archive {
    /// Creates an archive. Until [`finish`](Archive::finish), `path` does not exist or keeps its old content.
    pub(crate) fn create(path: &Path, existing: Existing) -> Result<Archive> {
        let create = || {
            let output = Output::open(path, existing)?;
            let file = if output.is_whole() { output.file()?.try_clone()? } else { tempfile::tempfile()? };
            Ok(Archive { zip: ZipWriter::new(ArchiveFile::new(file)), output, path: path.into() })
        };
        create().map_err(|e: io::Error| Error::from(e).in_file(path))
    }

    /// Returns the path of the archive.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Writes an array of integers.
    pub(crate) fn integers(&mut self, name: &str, shape: &[usize], values: &[i64]) -> io::Result<()> {
        self.array(name, INT64, shape, values.iter().map(|value| value.to_le_bytes()))
    }

    /// Writes an array.
    pub(crate) fn array<const N: usize>(
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

    /// Starts an array. Its data are written next.
    pub(crate) fn start(&mut self, name: &str, descr: &str, shape: &[usize]) -> io::Result<()> {
        // The size of a member is not known in advance, so it may exceed 4 GiB. The zip64 fields take 20
        // bytes.
        let options =
            SimpleFileOptions::default().compression_method(zip::CompressionMethod::Stored).large_file(true);
        self.zip.start_file(format!("{name}.npy"), options)?;
        self.zip.write_all(&header(descr, shape))
    }

    /// Syncs the archive to disk, gives it its name, and returns its path.
    pub(crate) fn finish(self) -> Result<PathBuf> {
        let Archive { zip, mut output, path } = self;
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

impl Write for Archive {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        self.zip.write(buf)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.zip.flush()
    }
}

/// NumPy's name of 64-bit integers.
pub(crate) const INT64: &str = "<i8";
/// NumPy's name of 32-bit integers.
pub(crate) const INT32: &str = "<i4";
/// NumPy's name of 32-bit floats.
pub(crate) const FLOAT32: &str = "<f4";
/// NumPy's name of booleans, of one byte each.
pub(crate) const BOOL: &str = "|b1";
/// NumPy's name of bytes.
pub(crate) const BYTES: &str = "|u1";

/// The file of an archive. After an error, further writes succeed and write nothing.
///
/// Dropping a `ZipWriter` finishes its archive. After an error, which has been returned, this would print
/// further errors to standard error, or panic on a position that does not fit.
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
pub(crate) fn header(descr: &str, shape: &[usize]) -> Vec<u8> {
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
    use super::header;

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
