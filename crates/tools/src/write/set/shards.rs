//! The files of a set, written one after the other.

use crate::error::ToolsError;
use crate::write::reshard::ReshardSet;
use crate::write::reshard::names::SetNames;
use crate::write::reshard::sets::written_size;
use std::path::PathBuf;
use tfseek::writer::WriterOptions;
use tfseek::{ShardedWriter, Writer};

/// The files of a set. All get their names when all are complete.
pub(super) struct Shards {
    names: SetNames,
    writer: WriterOptions,
    done: Vec<Writer>,
    open: Option<Writer>,
    records: u64,
}

impl Shards {
    pub(super) fn new(names: SetNames, writer: WriterOptions) -> Shards {
        Shards { names, writer, done: Vec::new(), open: None, records: 0 }
    }

    /// Writes a record to a shard. Numbers of shards ascend.
    pub(super) fn write(&mut self, shard: u64, payload: &[u8]) -> tfseek::Result<()> {
        self.records += 1;
        self.at(shard)?.write(payload)
    }

    /// Returns the writer of a shard. The shards before it are finished.
    fn at(&mut self, shard: u64) -> tfseek::Result<&mut Writer> {
        while self.open.is_none() || (self.done.len() as u64) < shard {
            self.end()?;
            self.open = Some(self.writer.create(self.names.path(self.done.len() as u64))?);
        }
        self.open.as_mut().ok_or_else(|| tfseek::ErrorKind::Cancelled.into())
    }

    fn end(&mut self) -> tfseek::Result<()> {
        if let Some(mut writer) = self.open.take() {
            writer.finish()?;
            self.done.push(writer);
        }
        Ok(())
    }

    /// Gives all files their names. Returns the set, and the number of records of each file.
    pub(super) fn close(mut self) -> Result<(ReshardSet, Vec<u64>), ToolsError> {
        let count = self.names.len();
        self.at(count - 1)?;
        self.end()?;
        let Shards { names, done, records, .. } = self;
        let lengths = done.iter().map(Writer::records_written).collect();
        // The files are looked at by their names while the locks live.
        let _locks = ShardedWriter::new(done).close()?;
        let shards: Vec<PathBuf> = (0..count).map(|shard| names.path(shard)).collect();
        let bytes = shards.iter().map(|path| written_size(path)).sum::<tfseek::Result<u64>>()?;
        Ok((ReshardSet { split: None, path: names.name(), shards, records, bytes }, lengths))
    }
}
