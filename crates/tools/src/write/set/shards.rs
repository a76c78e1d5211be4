//! The files of a set, written one after the other.

use crate::error::ToolsError;
use crate::write::reshard::ReshardSet;
use crate::write::reshard::names::SetNames;
use crate::write::reshard::sets::written;
use tfseek::writer::WriterOptions;
use tfseek::{ShardedWriter, Writer};

/// The files of a set. All get their names when all are complete.
pub(super) struct Shards {
    names: SetNames,
    writer: WriterOptions,
    done: Vec<Writer>,
    open: Option<Writer>,
}

impl Shards {
    pub(super) fn new(names: SetNames, writer: WriterOptions) -> Shards {
        Shards { names, writer, done: Vec::new(), open: None }
    }

    /// Writes a record to a shard. Numbers of shards ascend.
    pub(super) fn write(&mut self, shard: u64, payload: &[u8]) -> tfseek::Result<()> {
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

    /// Gives all files their names.
    pub(super) fn close(mut self) -> Result<ReshardSet, ToolsError> {
        self.at(self.names.len() - 1)?;
        self.end()?;
        let lengths = self.done.iter().map(Writer::records_written).collect();
        // The files are looked at by their names while the locks live.
        let _locks = ShardedWriter::new(self.done).close()?;
        Ok(written(&self.names, None, lengths)?)
    }
}
