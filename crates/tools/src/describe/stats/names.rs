//! Names of features, and their prediction: most records have the same keys in the same order.

use crate::{memory, wildcards};
use std::collections::{HashMap, TryReserveError};
use std::io;

/// The largest number of features that are counted.
pub(crate) const MAX_FEATURES: usize = 20_000;
/// The longest name of a feature that is counted, in bytes.
const MAX_NAME: usize = 4_096;

/// The names of the features of a set of records, in the order in which they were found. A feature is known
/// by its place in this order.
#[derive(Clone, Default)]
pub(crate) struct FeatureNames {
    names: Vec<(Box<str>, bool)>,
    places: HashMap<Box<str>, u32>,
    /// The features of the last record in wire order.
    predicted: Vec<u32>,
    /// No further names are added.
    pub(crate) is_full: bool,
    /// There was not enough memory for a name.
    is_lost: bool,
}

/// Number of names whose memory is ensured at once, and memory of the statistics of one with few values.
const NAMES: usize = 1024;
const NAME_BYTES: usize = 1024;
/// The place of a feature that is not counted.
pub(crate) const NOT_COUNTED: u32 = u32::MAX;

impl FeatureNames {
    /// Returns the place of the feature with this key, which is number `k` in its record. Returns
    /// [`NOT_COUNTED`] if there is no room.
    #[inline]
    pub(crate) fn place(&mut self, k: usize, key: &str, patterns: &[String]) -> u32 {
        if let Some(&place) = self.predicted.get(k)
            && let Some((name, _)) = self.names.get(place as usize)
            && name.as_bytes() == key.as_bytes()
        {
            return place;
        }
        self.find(k, key, patterns)
    }

    #[inline(never)]
    fn find(&mut self, k: usize, key: &str, patterns: &[String]) -> u32 {
        let place = match self.places.get(key) {
            Some(&place) => place,
            None if self.is_full || self.names.len() >= MAX_FEATURES || key.len() > MAX_NAME => {
                return NOT_COUNTED;
            }
            None => self.add(key, patterns),
        };
        if self.predicted.len() <= k && k < MAX_FEATURES {
            // A name that is not predicted is searched.
            if self.predicted.try_reserve(k + 1 - self.predicted.len()).is_err() {
                return place;
            }
            self.predicted.resize(k + 1, 0);
        }
        if let Some(predicted) = self.predicted.get_mut(k) {
            *predicted = place;
        }
        place
    }

    /// Adds a name, and returns its place. Without memory it is not counted, and `is_lost` is set.
    pub(crate) fn add(&mut self, key: &str, patterns: &[String]) -> u32 {
        if self.reserve().is_err() {
            self.is_lost = true;
            return NOT_COUNTED;
        }
        let place = self.names.len() as u32;
        let selected = patterns.is_empty() || patterns.iter().any(|pattern| wildcards::matches(pattern, key));
        self.names.push((key.into(), selected));
        self.places.insert(key.into(), place);
        place
    }

    /// Adds the names of `other` if there is room, and returns their places.
    ///
    /// # Errors
    /// There was not enough memory.
    pub(crate) fn merge(&mut self, other: &FeatureNames, patterns: &[String]) -> tfseek::Result<Vec<u32>> {
        let places = other.iter().map(|name| self.merged(name, patterns)).collect();
        self.is_full |= other.is_full;
        self.check_memory()?;
        Ok(places)
    }

    /// Checks that no name was lost.
    ///
    /// # Errors
    /// There was not enough memory.
    pub(crate) fn check_memory(&self) -> tfseek::Result<()> {
        if self.is_lost { Err(io::Error::from(io::ErrorKind::OutOfMemory).into()) } else { Ok(()) }
    }

    /// Reserves memory for another name, and every [`NAMES`] names for their statistics, which are small
    /// allocations.
    fn reserve(&mut self) -> Result<(), TryReserveError> {
        if self.names.len().is_multiple_of(NAMES) {
            memory::ensure(NAMES * NAME_BYTES)?;
        }
        self.names.try_reserve(1)?;
        self.places.try_reserve(1)
    }

    /// Returns the place of a name of other statistics. It is added if there is room.
    pub(crate) fn merged(&mut self, key: &str, patterns: &[String]) -> u32 {
        match self.get(key) {
            Some(place) => place,
            None if self.is_full || self.names.len() >= MAX_FEATURES => NOT_COUNTED,
            None => self.add(key, patterns),
        }
    }

    /// Returns the place of a name.
    pub(crate) fn get(&self, key: &str) -> Option<u32> {
        self.places.get(key).copied()
    }

    /// Returns true if the feature is to be counted.
    #[inline]
    pub(crate) fn is_selected(&self, place: usize) -> bool {
        self.names.get(place).is_some_and(|(_, selected)| *selected)
    }

    /// Returns the number of names.
    pub(crate) fn len(&self) -> usize {
        self.names.len()
    }

    /// Returns the names in the order of their places.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &str> {
        self.names.iter().map(|(name, _)| &**name)
    }
}
