//! Outputs that are one file.

use crate::error::ConvertError;
use std::io::{self, BufWriter};
use std::path::Path;
use tfseek::io::{Existing, Output};

const BUFFER: usize = 256 << 10;

/// An output, and the numbers of its records and bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Written {
    pub(crate) records: u64,
    /// 0 for a device or a FIFO.
    pub(crate) bytes: u64,
}

/// Creates an output with a buffer.
pub(crate) fn buffered(path: &Path, force: bool) -> Result<BufWriter<Output>, ConvertError> {
    let output = Output::open(path, Existing::replace_if(force)).map_err(|e| ConvertError::io(path, e))?;
    Ok(BufWriter::with_capacity(BUFFER, output))
}

/// Writes the buffer, and gives the output its name.
pub(crate) fn commit_buffered(
    path: &Path,
    output: BufWriter<Output>,
    records: u64,
) -> Result<Written, ConvertError> {
    let output = output.into_inner().map_err(|e| ConvertError::io(path, e.into_error()))?;
    commit(path, output, records)
}

/// Gives an output its name.
pub(crate) fn commit(path: &Path, output: Output, records: u64) -> Result<Written, ConvertError> {
    let committed = || -> io::Result<u64> {
        let meta = output.file()?.metadata()?;
        let bytes = if meta.is_file() { meta.len() } else { 0 };
        output.commit()?;
        Ok(bytes)
    };
    let bytes = committed().map_err(|e| ConvertError::io(path, e))?;
    Ok(Written { records, bytes })
}
