//! Records in a temporary file, until their number is known.

use crate::error::ToolsError;
use crate::write::Tally;
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Seek, Write};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use tfseek::frame::{OVERHEAD, put_record};
use tfseek::stream::StreamOptions;
use tfseek::{Compression, Error};

const BUFFER: usize = 1 << 20;

/// A temporary file without a name, with the frames of records.
pub(super) struct Spool {
    folder: PathBuf,
    file: BufWriter<File>,
    pub(super) records: u64,
    /// Bytes of all frames.
    pub(super) bytes: u64,
}

impl Spool {
    pub(super) fn new(folder: &Path) -> tfseek::Result<Spool> {
        let file = tempfile::tempfile_in(folder).map_err(|e| in_folder(e, folder))?;
        let file = BufWriter::with_capacity(BUFFER, file);
        Ok(Spool { folder: folder.into(), file, records: 0, bytes: 0 })
    }

    pub(super) fn write(&mut self, payload: &[u8]) -> tfseek::Result<()> {
        put_record(&mut self.file, payload).map_err(|e| in_folder(e, &self.folder))?;
        self.records += 1;
        self.bytes += (payload.len() + OVERHEAD) as u64;
        Ok(())
    }

    /// Calls `f` with the number, the offset and the payload of each record. `advance` is called with the
    /// bytes read, and may end the work.
    pub(super) fn read(
        mut self,
        advance: &dyn Fn(u64) -> ControlFlow<()>,
        mut f: impl FnMut(u64, u64, &[u8]) -> tfseek::Result<()>,
    ) -> Result<(), ToolsError> {
        let folder = self.folder;
        self.file.flush().map_err(|e| in_folder(e, &folder))?;
        let mut file = self.file.into_inner().map_err(|e| in_folder(e.into_error(), &folder))?;
        file.rewind().map_err(|e| in_folder(e, &folder))?;
        let name = folder.join("a temporary file");
        let options = StreamOptions {
            compression: Some(Compression::None),
            max_record: u64::MAX,
            ..StreamOptions::default()
        };
        let mut stream = options.read(BufReader::with_capacity(BUFFER, file), name)?;
        let mut record = 0u64;
        let mut offset = 0u64;
        let mut tally = Tally::new(advance);
        while let Some(found) = stream.next()? {
            let payload = found.payload();
            f(record, offset, payload)?;
            record += 1;
            offset += (payload.len() + OVERHEAD) as u64;
            tally.record(payload.len())?;
        }
        if record != self.records {
            let text = format!("expected the {} records that were written, found {record}", self.records);
            return Err(in_folder(io::Error::new(io::ErrorKind::InvalidData, text), &folder).into());
        }
        let _ = tally.end();
        Ok(())
    }
}

/// Returns the error of a temporary file, which has no name of its own.
fn in_folder(e: io::Error, folder: &Path) -> Error {
    Error::from(io::Error::new(e.kind(), format!("a temporary file: {e}"))).in_file(folder)
}
