//! The tables of episodes as [tables of records](TableFormat), and the words of messages about them.

use crate::keys::EpisodeKeys;
use crate::lengths::steps_by_heads;
use crate::rows::StepRows;
use crate::table::EpisodeTable;
use std::path::Path;
use tfseek::Warning;
use tfseek::error::{Result, printable};
use tfseek::io::Region;
use tfseek::tables::TableFormat;

impl TableFormat for EpisodeKeys {
    type Table = EpisodeTable;

    const REFUSALS: [&'static str; 3] = [
        "the file of step tables is invalid",
        "the step tables belong to other records or features",
        "the shard's size or modification time has changed since the step tables were built",
    ];

    fn keys(&self) -> Vec<u8> {
        self.encode()
    }

    fn make(&self, payload: &[u8]) -> Result<EpisodeTable> {
        let table = EpisodeTable::of(payload, self)?;
        StepRows::check(payload, self, &table)?;
        Ok(table)
    }

    fn read(&self, table: Region, payload_len: u64) -> Option<EpisodeTable> {
        EpisodeTable::read(table, self, payload_len).ok()
    }

    fn number(table: &EpisodeTable) -> u32 {
        table.steps()
    }

    fn number_of(
        &self,
        payload_len: u64,
        read: impl FnMut(u64, &mut [u8]) -> Result<usize>,
    ) -> Result<Option<u32>> {
        steps_by_heads(self, payload_len, read)
    }

    fn not_built(shard: &Path, bytes: u64) -> Warning {
        let (rate, text) = match folder_of_url(shard) {
            Some(_) => (100_000_000, "100 MB/s"),
            None => (1_000_000_000, "1 GB/s"),
        };
        let seconds = (bytes / rate).max(1);
        let s = if seconds == 1 { "" } else { "s" };
        let command = command(shard);
        let message = format!(
            "the tables of steps are not built, because that scans {bytes} bytes: each episode is read whole at its first use; `{command}` \
             scans them once, which takes about {seconds} second{s} at {text}"
        );
        Warning::Derived { kind: "steps_not_indexed", path: shard.into(), message: message.into() }
    }

    fn compressed(shard: &Path) -> Warning {
        let message = "a compressed shard has no file of step tables, so all episodes are decompressed to count their steps; \
                       `tfseek unpack` makes files that need none";
        Warning::Derived { kind: "compressed_steps", path: shard.into(), message: message.into() }
    }
}

/// Returns the warning about a global order over the steps of objects that have no tables.
pub(crate) fn scattered(object: &Path) -> Warning {
    let command = command(object);
    let message = format!(
        "a global order over the steps of objects without step tables: the first use of each episode reads it whole; `{command}` writes the \
         tables once for all readers, and a block order reads near steps together"
    );
    Warning::Derived { kind: "scattered_episodes", path: object.into(), message: message.into() }
}

/// Returns the folder of an object. `None` for a path.
fn folder_of_url(name: &Path) -> Option<&str> {
    let (folder, _) = name.to_str()?.rsplit_once('/')?;
    folder.contains("://").then_some(folder)
}

/// Returns the command that builds the tables: of an object, the tables of its folder.
fn command(shard: &Path) -> String {
    match folder_of_url(shard) {
        Some(folder) => format!("tfseek index --steps {} --pack NAME", printable(folder)),
        None => "tfseek index --steps".to_owned(),
    }
}
