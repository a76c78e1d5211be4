//! `EpisodeStep`: the values of one step, each read when it is asked for.

use crate::encode::count_strings;
use crate::episodes::Episodes;
use crate::payload::PayloadParts;
use crate::rows::{StepRows, integers};
use crate::table::EpisodeTable;
use std::borrow::Cow;
use std::sync::Arc;
use tfseek::dataset::StoredRecord;
use tfseek::error::{Error, FeatureError, Result};
use tfseek::example::DType;
use tfseek_wire::WireReader;

impl Episodes {
    /// Returns a step of an episode. Its values are read, and verified, when they are asked for.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfRange`](tfseek::ErrorKind::OutOfRange), and errors of reading the table of the
    /// episode.
    pub fn step(&self, episode: u64, step: u64) -> Result<EpisodeStep<'_>> {
        self.number(episode, step)?;
        let at = self.dataset().stored(episode)?;
        let table = self.table(episode, &at)?;
        Ok(EpisodeStep { episodes: self, at, table, step: step as u32 })
    }
}

/// A step of an episode. Its values are read and verified when they are asked for: the row of a list, and no
/// other bytes of the record.
#[derive(Clone, Debug)]
pub struct EpisodeStep<'e> {
    episodes: &'e Episodes,
    at: StoredRecord<'e>,
    table: Arc<EpisodeTable>,
    step: u32,
}

impl<'e> EpisodeStep<'e> {
    /// Returns the number of the step in its episode.
    pub fn step(&self) -> u32 {
        self.step
    }

    /// Returns the row of a feature as it is stored.
    fn row(&self, name: &str, kind: DType) -> Result<Cow<'e, [u8]>> {
        let keys = self.episodes.keys();
        let unknown = || Error::from(FeatureError::Missing { expected: kind.list_name() });
        let located = |e: Error| e.at(self.at.at).feature(name.as_bytes());
        let number = keys.find(name.as_bytes()).ok_or_else(|| located(unknown()))?;
        let found = keys.all().get(number).map_or(kind, |key| key.kind);
        if found != kind {
            let expected = kind.list_name();
            let found = found.list_name();
            return Err(located(FeatureError::WrongKind { expected, found }.into()));
        }
        let mut parts = PayloadParts::default();
        let mut record = Vec::new();
        let mut rows = StepRows::new(keys, &self.table);
        rows.need(&mut parts, number, [self.step]);
        let has_objects = self.episodes.0.has_objects;
        let borrowed = self.at.payload()?;
        let view = parts.load(&self.at, keys, has_objects, self.at.verify, &mut record)?;
        if let (Some(row), Some(payload)) = (self.table.row(number, self.step), borrowed) {
            let bytes = payload.get(row.start as usize..row.end as usize);
            return Ok(Cow::Borrowed(bytes.unwrap_or_default()));
        }
        rows.prepare(view, number).map_err(located)?;
        match rows.row(view, number, self.step) {
            Some(bytes) => Ok(Cow::Owned(bytes.to_vec())),
            None => Err(located(unknown())),
        }
    }

    /// Returns the byte string of a feature. It borrows from the map of a mapped dataset.
    ///
    /// # Errors
    /// [`ErrorKind::Feature`](tfseek::ErrorKind::Feature) if the record does not have the feature, or has
    /// another kind or number of values; [`ErrorKind::Value`](tfseek::ErrorKind::Value) for bytes with another
    /// checksum; errors of reading.
    pub fn bytes(&self, name: &str) -> Result<Cow<'e, [u8]>> {
        let row = self.row(name, DType::Bytes)?;
        let one = |row: &[u8]| {
            let mut reader = WireReader::new(row);
            let value = reader.take_field(0x0a)?;
            reader.is_empty().then(|| row.len() - value.len())
        };
        let Some(from) = one(&row) else {
            let found = count_strings(&row);
            let e = Error::from(FeatureError::Count { expected: 1, found }).feature(name.as_bytes());
            return Err(e.at(self.at.at));
        };
        Ok(match row {
            Cow::Borrowed(row) => Cow::Borrowed(row.split_at(from).1),
            Cow::Owned(mut row) => {
                row.drain(..from);
                Cow::Owned(row)
            }
        })
    }

    /// Returns the floats of a feature.
    ///
    /// # Errors
    /// As [`bytes`](EpisodeStep::bytes), for any number of values.
    pub fn floats(&self, name: &str) -> Result<Vec<f32>> {
        let row = self.row(name, DType::Float32)?;
        Ok(row.as_chunks::<4>().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect())
    }

    /// Returns the integers of a feature.
    ///
    /// # Errors
    /// As [`floats`](EpisodeStep::floats).
    pub fn int64s(&self, name: &str) -> Result<Vec<i64>> {
        integers(&self.row(name, DType::Int64)?)
    }
}
