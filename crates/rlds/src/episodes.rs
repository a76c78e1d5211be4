//! `Episodes`: the steps of a dataset whose records are episodes.

use crate::anchors::{episode_of, steps_of};
use crate::cache::TableCache;
use crate::keys::{EpisodeKeys, wrong};
use crate::pool::{EpisodePool, WholeEpisode};
use crate::table::EpisodeTable;
use std::fmt;
use std::sync::Arc;
use tfseek::Warning;
use tfseek::dataset::{Dataset, StoredRecord};
use tfseek::error::{ErrorKind, Result};
use tfseek::io::PerProcess;
use tfseek::policy::Verify;
use tfseek::tables::{RecordTables, TableOptions as EpisodeOptions};

/// The steps of a dataset whose records are episodes, numbered as one array. A clone increments a counter.
///
/// Each record has a table with the place of each step in its payload ([`EpisodeTable`]). The tables of a
/// shard are in a file, which is built like an index: at the first use, if that scans at most the limit of
/// the dataset's options. Otherwise the number of steps of each episode is read from the heads of its lists,
/// and its table is made at the first access to it.
///
/// ```
/// # let dir = tempfile::tempdir()?;
/// # let path = dir.path().join("train.tfrecord");
/// # let mut writer = tfseek::Writer::create(&path)?;
/// # for steps in [3, 2] {
/// #     let action: Vec<f32> = (0..steps * 2).map(|k| k as f32).collect();
/// #     writer.write(&tfseek::ExampleBuilder::new().float("steps/action", action).encode()?)?;
/// # }
/// # writer.close()?;
/// use tfseek_rlds::{EpisodeKey, EpisodeKeys, EpisodeValues, Episodes};
/// let ds = tfseek::DatasetOptions::new().index(tfseek::IndexMode::Memory).open(&path)?;
/// let action = EpisodeKey { name: "steps/action".into(), kind: tfseek::DType::Float32, values: EpisodeValues::Steps { width: 2 } };
/// let robot = Episodes::open(&ds, &EpisodeKeys::new([action])?, &Default::default())?;
/// assert_eq!((robot.steps(), robot.length(1)?, robot.locate(4)?), (5, 2, (1, 1)));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Episodes(pub(crate) Arc<EpisodesInner>);

pub(crate) struct EpisodesInner {
    dataset: Dataset,
    keys: EpisodeKeys,
    pub(crate) tables: RecordTables<EpisodeKeys>,
    /// Number of the first step of each episode, followed by the number of steps.
    pub(crate) starts: Arc<[u64]>,
    /// True if a shard is an object of a store.
    pub(crate) has_objects: bool,
    cache: PerProcess<TableCache>,
    pub(crate) pool: PerProcess<EpisodePool>,
    warnings: Vec<Warning>,
}

impl Episodes {
    /// Finds the steps of all records. Files of tables are found, extended and built by the rules for
    /// columns.
    ///
    /// # Errors
    /// The error of the first record that is damaged, is no message, or whose features have other numbers of
    /// steps. With [`Damage::Skip`](tfseek::Damage::Skip) such a record has no steps, with
    /// [`Warning::PayloadsSkipped`].
    ///
    /// [`ErrorKind::Cancelled`], and I/O errors.
    pub fn open(dataset: &Dataset, keys: &EpisodeKeys, options: &EpisodeOptions) -> Result<Episodes> {
        let (tables, warnings) = RecordTables::open(dataset, keys, options)?;
        let starts = starts(dataset, &tables)?;
        let is_url = |path: &str| path.split_once("://").is_some_and(|(scheme, _)| !scheme.contains('/'));
        let has_objects = dataset.store().is_some()
            && dataset.shards().any(|shard| shard.path.to_str().is_some_and(is_url));
        let dataset = dataset.clone();
        let keys = keys.clone();
        let (cache, pool) = Default::default();
        let inner = EpisodesInner { dataset, keys, tables, starts, has_objects, cache, pool, warnings };
        Ok(Episodes(Arc::new(inner)))
    }

    /// Returns the dataset of the episodes.
    pub fn dataset(&self) -> &Dataset {
        &self.0.dataset
    }

    /// Returns the features.
    pub fn keys(&self) -> &EpisodeKeys {
        &self.0.keys
    }

    /// Returns the warnings from finding and building tables.
    pub fn warnings(&self) -> &[Warning] {
        &self.0.warnings
    }

    /// Returns the number of steps of all episodes.
    pub fn steps(&self) -> u64 {
        self.0.starts.last().map_or(0, |steps| *steps)
    }

    /// Returns the number of the first step of each episode, followed by the number of all steps.
    pub fn starts(&self) -> &[u64] {
        &self.0.starts
    }

    /// Returns the number of steps of an episode.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfRange`].
    pub fn length(&self, episode: u64) -> Result<u64> {
        steps_of(&self.0.starts, episode).map(|steps| steps.end - steps.start)
    }

    /// Returns the episode and the step in it of step `number`. O(log n).
    ///
    /// # Errors
    /// [`ErrorKind::OutOfRange`].
    pub fn locate(&self, number: u64) -> Result<(u64, u64)> {
        episode_of(&self.0.starts, number)
            .ok_or_else(|| ErrorKind::OutOfRange { what: "step", i: number.into(), len: self.steps() }.into())
    }

    /// Returns the number of a step of an episode: the inverse of [`locate`](Episodes::locate).
    ///
    /// # Errors
    /// [`ErrorKind::OutOfRange`].
    pub fn number(&self, episode: u64, step: u64) -> Result<u64> {
        let steps = steps_of(&self.0.starts, episode)?;
        let len = steps.end - steps.start;
        if step >= len {
            return Err(ErrorKind::OutOfRange { what: "step", i: step.into(), len }.into());
        }
        Ok(steps.start + step)
    }

    /// Returns the table of an episode: from the cache, from its file, or made of its record.
    pub(crate) fn table(&self, episode: u64, at: &StoredRecord<'_>) -> Result<Arc<EpisodeTable>> {
        if let Some(table) = self.known_table(episode, at) {
            return Ok(table);
        }
        if self.0.has_objects {
            return Ok(Arc::clone(&self.read_once(episode, at)?.table));
        }
        let mut buf = Vec::new();
        let record = at.read(Verify::Payload, &mut buf)?;
        let table = self.made_of(episode, at, record.payload())?;
        self.0.cache.own().put(episode, Arc::clone(&table));
        Ok(table)
    }

    /// Makes the table of an episode of its payload.
    fn made_of(&self, episode: u64, at: &StoredRecord<'_>, payload: &[u8]) -> Result<Arc<EpisodeTable>> {
        let table = EpisodeTable::of(payload, &self.0.keys).map_err(|e| e.at(at.at))?;
        let expected = self.length(episode)?;
        let found = u64::from(table.steps());
        if expected != found {
            let reason = format!(
                "expected an episode of {expected} steps, found {found}: the shard has changed, or its features have other numbers of steps"
            );
            return Err(wrong(reason).at(at.at));
        }
        Ok(Arc::new(table))
    }

    /// Returns an episode of a store whose record is in memory, or is read now because there is no table of
    /// it. `None`: its parts are to be read.
    pub(crate) fn whole(&self, episode: u64, at: &StoredRecord<'_>) -> Result<Option<Arc<WholeEpisode>>> {
        if !self.0.has_objects {
            return Ok(None);
        }
        // The table comes first: once there is one of an episode that was read, the episode is in memory.
        let table = self.known_table(episode, at);
        if let Some(here) = self.0.pool.own().get(episode) {
            return Ok(Some(here));
        }
        if table.is_some() {
            return Ok(None);
        }
        self.read_once(episode, at).map(Some)
    }

    /// Returns an episode of a store in memory, which one thread reads, and keeps its table.
    fn read_once(&self, episode: u64, at: &StoredRecord<'_>) -> Result<Arc<WholeEpisode>> {
        let whole = self.0.pool.own().get_or_read(episode, || {
            let mut buf = Vec::new();
            let payload = at.read(Verify::Payload, &mut buf)?.payload().to_vec();
            let table = self.made_of(episode, at, &payload)?;
            Ok(WholeEpisode { payload, table })
        })?;
        self.0.cache.own().put(episode, Arc::clone(&whole.table));
        Ok(whole)
    }

    /// Announces the tables of these episodes that have to be read.
    pub(crate) fn want_tables(&self, episodes: &[u64]) {
        let cache = self.0.cache.own();
        self.0.tables.want(episodes.iter().copied().filter(|episode| cache.get(*episode).is_none()));
    }

    /// Returns the table of an episode if it needs no record: from the cache, or from its file, if that has a
    /// valid one.
    pub(crate) fn known_table(&self, episode: u64, at: &StoredRecord<'_>) -> Option<Arc<EpisodeTable>> {
        if let Some(table) = self.0.cache.own().get(episode) {
            return Some(table);
        }
        let table = self.0.tables.table(at)?;
        // A table of another number of steps would give values of other steps.
        if self.length(episode).ok()? != u64::from(table.steps()) {
            return None;
        }
        let table = Arc::new(table);
        self.0.cache.own().put(episode, Arc::clone(&table));
        Some(table)
    }
}

/// Returns the number of the first step of each record of the dataset, followed by the number of all steps.
fn starts(dataset: &Dataset, tables: &RecordTables<EpisodeKeys>) -> Result<Arc<[u64]>> {
    let mut starts = Vec::new();
    starts.try_reserve_exact(usize::try_from(dataset.len()).unwrap_or(usize::MAX).saturating_add(1))?;
    starts.push(0);
    let mut all = 0u64;
    for (s, shard) in dataset.shards().enumerate() {
        for i in shard.first..shard.first + shard.len {
            all += tables.number(s, i)?;
            starts.push(all);
        }
    }
    Ok(starts.into())
}

impl fmt::Debug for Episodes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Episodes({} episodes, {} steps)", self.dataset().len(), self.steps())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{EpisodeKey, EpisodeValues};
    use std::fs;
    use tfseek::crc::crc32c;
    use tfseek::dataset::DatasetOptions;
    use tfseek::example::{DType, ExampleBuilder};
    use tfseek::index::IndexOptions;

    /// A planner opens tables before any value is read. One with other steps than its file says would give
    /// values of other steps.
    #[test]
    #[cfg_attr(miri, ignore = "Miri opens no file with O_NONBLOCK")]
    fn a_table_of_another_number_of_steps_is_not_used_for_a_plan() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x");
        let mut shard = Vec::new();
        for steps in [3, 2] {
            let payload = ExampleBuilder::new().float("a", vec![1.0; steps]).encode().unwrap();
            tfseek::frame::put_record(&mut shard, &payload).unwrap();
        }
        fs::write(&path, shard).unwrap();
        let values = EpisodeValues::Steps { width: 1 };
        let keys = EpisodeKeys::new([EpisodeKey { name: "a".into(), kind: DType::Float32, values }]).unwrap();
        let index = IndexOptions::new().default_dirs(None, None).index_dir(dir.path());
        let open = || {
            let ds = DatasetOptions::new().index(index.clone()).open(&path).unwrap();
            Episodes::open(&ds, &keys, &EpisodeOptions::default()).unwrap()
        };
        let known = |robot: &Episodes, e: u64| {
            robot.known_table(e, &robot.dataset().stored(e).unwrap()).map(|table| table.steps())
        };
        open();
        assert_eq!((known(&open(), 0), known(&open(), 1)), (Some(3), Some(2)));
        // Section NUMBERS is the second one, with one block.
        let file = dir.path().join("x.tfrs");
        let mut bytes = fs::read(&file).unwrap();
        let at = u64::from_le_bytes(bytes[168..176].try_into().unwrap()) as usize;
        assert_eq!(bytes[at + 16..at + 28], [0, 0, 0, 0, 3, 0, 0, 0, 5, 0, 0, 0]);
        bytes[at + 20] = 4;
        let crc = crc32c(&[&bytes[at..at + 8], &bytes[at + 16..at + 28]].concat());
        bytes[at + 8..at + 12].copy_from_slice(&crc.to_le_bytes());
        fs::write(&file, bytes).unwrap();
        let robot = open();
        assert_eq!((robot.length(0).unwrap(), robot.length(1).unwrap()), (4, 1));
        assert_eq!((known(&robot, 0), known(&robot, 1)), (None, None));
        let e = robot.table(0, &robot.dataset().stored(0).unwrap()).unwrap_err().to_string();
        assert!(e.contains("expected an episode of 4 steps, found 3"), "{e}");
    }
}
