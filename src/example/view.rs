//! `Example<'a>`: features by name, decoded from the payload in place.

use super::feature::Feature;
use super::list::List;
use super::map::{MapEntries, VALUE_DEPTH, has_map};
use super::source::ValueMessage;
use crate::error::{At, Error, ErrorKind, FeatureError, Result};
use std::fmt;
use std::iter::FusedIterator;
use std::ops::Deref;
use tfseek_wire::{Fault, MAX_LEN};

/// A `tf.train.Example` that borrows its payload. It is `Copy`. Creating one is free, and each lookup walks
/// the payload.
///
/// A lookup validates the framing of every entry and the whole feature that is looked up. Other features are
/// skipped unread. [`validate`](Example::validate) checks everything. A lookup takes 6 to 10 ns per feature
/// of the record, plus the validation of the list that is found. Nothing is allocated.
///
/// ```
/// use tfseek::{Example, ExampleBuilder};
/// let payload = ExampleBuilder::new().int64("label", [7]).float("emb", [0.5f32, 1.5]).encode()?;
/// let example = Example::new(&payload);
/// assert_eq!(example.int64("label")?.first(), Some(7));
/// assert_eq!(example.float("emb")?.iter().sum::<f32>(), 2.0);
/// assert!(example.get("weight")?.is_none());
/// # Ok::<(), tfseek::Error>(())
/// ```
#[derive(Clone, Copy)]
pub struct Example<'a> {
    payload: &'a [u8],
    at: At<'a>,
}

impl<'a> Example<'a> {
    /// Creates a view of the Example in `payload`. O(1); reads nothing.
    #[inline]
    pub fn new(payload: &'a [u8]) -> Example<'a> {
        Example { payload, at: At::NOWHERE }
    }

    /// Sets the location that errors report.
    #[inline]
    #[must_use]
    pub(crate) fn at(self, at: At<'a>) -> Example<'a> {
        Example { at, ..self }
    }

    /// Returns the payload.
    #[inline]
    pub(crate) fn payload(self) -> &'a [u8] {
        self.payload
    }

    /// Returns the last feature named `key`. `None` if there is none; `Some(Feature::None)` if it has no
    /// kind.
    ///
    /// # Errors
    /// [`ErrorKind::Wire`] if the payload is malformed, as far as the lookup reads it;
    /// [`ErrorKind::TooLarge`] above 2^31 - 1 bytes.
    #[inline]
    pub fn get(self, key: &str) -> Result<Option<Feature<'a>>> {
        self.find(key.as_bytes()).map_err(|e| e.feature(key.as_bytes()))
    }

    /// Returns the integers of feature `key`.
    ///
    /// # Errors
    /// The errors of [`get`](Example::get), and [`ErrorKind::Feature`] if the feature is absent, has no kind,
    /// or has another kind.
    #[inline]
    pub fn int64(self, key: &str) -> Result<List<'a, i64>> {
        let found = self.get(key)?.ok_or(FeatureError::Missing { expected: "int64" });
        found.and_then(Feature::int64).map_err(|e| self.feature_error(e, key))
    }

    /// Returns the floats of feature `key`.
    ///
    /// # Errors
    /// As [`int64`](Example::int64).
    #[inline]
    pub fn float(self, key: &str) -> Result<List<'a, f32>> {
        let found = self.get(key)?.ok_or(FeatureError::Missing { expected: "float" });
        found.and_then(Feature::float).map_err(|e| self.feature_error(e, key))
    }

    /// Returns the byte strings of feature `key`.
    ///
    /// # Errors
    /// As [`int64`](Example::int64).
    #[inline]
    pub fn bytes(self, key: &str) -> Result<List<'a, &'a [u8]>> {
        let found = self.get(key)?.ok_or(FeatureError::Missing { expected: "bytes" });
        found.and_then(Feature::bytes).map_err(|e| self.feature_error(e, key))
    }

    /// Returns an iterator over all entries in wire order, duplicates included. Each entry is fully
    /// validated. Nothing is allocated. The iterator ends after an error.
    #[inline]
    pub fn entries(self) -> impl FusedIterator<Item = Result<(&'a str, Feature<'a>)>> + Clone + fmt::Debug {
        ExampleEntries { example: Some(self), state: None }
    }

    /// Returns all features, each key once (the last entry wins), sorted by the keys' bytes. Up to
    /// [`Features::ON_STACK`] entries are kept on the stack, and more in one vector. Real files change the
    /// order of their keys between records, and sorted features can be compared.
    ///
    /// # Errors
    /// The errors of [`validate`](Example::validate).
    pub fn features(self) -> Result<Features<'a>> {
        Features::collect(self.entries())
    }

    /// Returns true if the message `features` is present, even if it is empty. An Example without features is
    /// either `0a 00` or no bytes at all. Returns false if the payload is malformed before that message.
    pub fn has_features(self) -> bool {
        has_map(self.payload, 1)
    }

    /// Validates everything that protobuf's own decoder validates: the whole payload, keys as UTF-8, and
    /// every list.
    ///
    /// # Errors
    /// [`ErrorKind::Wire`] with the offset of the first fault, [`ErrorKind::TooLarge`].
    pub fn validate(self) -> Result<()> {
        self.entries().try_for_each(|entry| entry.map(drop))
    }

    fn find(self, key: &[u8]) -> Result<Option<Feature<'a>>> {
        let mut found = None;
        self.walk(|other, value| {
            if other == key {
                found = Some(self.check(value)?);
            }
            Ok(())
        })?;
        Ok(found)
    }

    /// Finds several features in one walk: for each of `keys`, in order, the one that [`get`](Example::get)
    /// returns. Keys beyond the length of `found` are left out.
    pub(crate) fn find_all(self, keys: &[Box<str>], found: &mut [Option<Feature<'a>>]) -> Result<()> {
        self.walk(|other, value| {
            for (key, found) in keys.iter().zip(&mut *found) {
                if other == key.as_bytes() {
                    *found = Some(self.check(value).map_err(|e| e.feature(other))?);
                }
            }
            Ok(())
        })
    }

    /// Calls `f` with the key and the value of each entry. All entries are read, since the last entry of a
    /// key wins.
    #[inline(always)]
    fn walk(self, mut f: impl FnMut(&[u8], ValueMessage<'a>) -> Result<()>) -> Result<()> {
        let mut entries = self.open(1, false)?;
        loop {
            while let Some((key, value)) = entries.next_fast() {
                f(key, ValueMessage::one(value, entries.start_of(value)))?;
            }
            match entries.next() {
                Ok(Some(entry)) => f(entry.key, entry.value)?,
                Ok(None) => return Ok(()),
                Err(fault) => return Err(self.fault(fault)),
            }
        }
    }

    #[inline(always)]
    fn check(self, value: ValueMessage<'a>) -> Result<Feature<'a>> {
        Feature::check(value, VALUE_DEPTH).map_err(|fault| self.fault(fault))
    }

    /// Returns the entries of a map field of the payload: 1 for features or context, 2 for feature lists.
    #[inline(always)]
    pub(super) fn open(self, field: u32, utf8: bool) -> Result<MapEntries<'a>> {
        if self.payload.len() as u64 > MAX_LEN {
            return Err(self.too_large());
        }
        Ok(MapEntries::new(self.payload, field, utf8))
    }

    #[cold]
    fn too_large(self) -> Error {
        Error::new(ErrorKind::TooLarge { len: self.payload.len() as u128, limit: MAX_LEN }).at(self.at)
    }

    #[cold]
    pub(super) fn fault(self, fault: Fault) -> Error {
        Error::from(fault).at(self.at)
    }

    #[cold]
    fn feature_error(self, e: FeatureError, key: &str) -> Error {
        Error::from(e).at(self.at).feature(key.as_bytes())
    }
}

impl fmt::Debug for Example<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Example ")?;
        debug_entries(f, self.entries())
    }
}

/// Formats the entries up to the first error, and the error.
pub(super) fn debug_entries<'a, V: fmt::Debug>(
    f: &mut fmt::Formatter<'_>,
    entries: impl Iterator<Item = Result<(&'a str, V)>>,
) -> fmt::Result {
    let mut map = f.debug_map();
    for entry in entries {
        match entry {
            Ok((key, value)) => map.entry(&key, &value),
            Err(e) => map.entry(&"<error>", &format_args!("{e}")),
        };
    }
    map.finish()
}

/// An iterator over the entries of an [`Example`] in wire order, duplicates included.
#[derive(Clone, Copy)]
struct ExampleEntries<'a> {
    /// The example. `None` after the last entry or an error.
    example: Option<Example<'a>>,
    state: Option<MapEntries<'a>>,
}

impl<'a> ExampleEntries<'a> {
    #[inline(always)]
    fn step(&mut self, example: Example<'a>) -> Result<Option<(&'a str, Feature<'a>)>> {
        let state = match &mut self.state {
            Some(state) => state,
            none => none.insert(example.open(1, true)?),
        };
        let Some((key, value)) = state.next_text().map_err(|fault| example.fault(fault))? else {
            return Ok(None);
        };
        if let Some(feature) = Feature::usual(value) {
            return Ok(Some((key, feature)));
        }
        match Feature::check_slow(value, VALUE_DEPTH) {
            Ok(feature) => Ok(Some((key, feature))),
            Err(fault) => Err(example.fault(fault).feature(key.as_bytes())),
        }
    }
}

impl<'a> Iterator for ExampleEntries<'a> {
    type Item = Result<(&'a str, Feature<'a>)>;

    #[inline(always)]
    fn next(&mut self) -> Option<Self::Item> {
        let step = self.step(self.example?).transpose();
        if !matches!(step, Some(Ok(_))) {
            self.example = None;
        }
        step
    }
}

impl FusedIterator for ExampleEntries<'_> {}

impl fmt::Debug for ExampleEntries<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        debug_entries(f, *self)
    }
}

/// The features of an [`Example`] as a slice of pairs: each key once, sorted by the keys' bytes.
#[derive(Clone)]
pub struct Features<'a> {
    small: [(&'a str, Feature<'a>); Features::ON_STACK],
    len: usize,
    large: Option<Vec<(&'a str, Feature<'a>)>>,
}

impl<'a> Features<'a> {
    /// Largest number of entries that needs no allocation.
    pub const ON_STACK: usize = 64;

    fn collect(entries: impl Iterator<Item = Result<(&'a str, Feature<'a>)>>) -> Result<Features<'a>> {
        let none = ("", Feature::None);
        let mut all = Features { small: [none; Features::ON_STACK], len: 0, large: None };
        for entry in entries {
            all.push(entry?);
        }
        all.sort_and_dedup();
        Ok(all)
    }

    fn push(&mut self, entry: (&'a str, Feature<'a>)) {
        match (&mut self.large, self.small.get_mut(self.len)) {
            (Some(large), _) => large.push(entry),
            (None, Some(slot)) => {
                *slot = entry;
                self.len = self.len.saturating_add(1);
            }
            (None, None) => {
                let mut large = self.small.to_vec();
                large.push(entry);
                self.large = Some(large);
            }
        }
    }

    /// Sorts by key and keeps the last entry of each key.
    #[expect(
        clippy::indexing_slicing,
        clippy::arithmetic_side_effects,
        reason = "`k` is below `entries.len()`, `k + 1` is compared with it first, and `kept` is at most `k`"
    )]
    fn sort_and_dedup(&mut self) {
        let entries = match &mut self.large {
            Some(large) => large.as_mut_slice(),
            None => self.small.get_mut(..self.len).unwrap_or_default(),
        };
        sort_stable(entries);
        let mut kept = 0;
        for k in 0..entries.len() {
            if k + 1 == entries.len() || entries[k + 1].0 != entries[k].0 {
                entries[kept] = entries[k];
                kept += 1;
            }
        }
        match &mut self.large {
            Some(large) => large.truncate(kept),
            None => self.len = kept,
        }
    }
}

/// Sorts by key, stably. Up to [`Features::ON_STACK`] entries are sorted without an allocation, by insertion:
/// in most records the entries are already sorted, or nearly so.
#[expect(
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    reason = "`k` is below `entries.len()`, and a partition point of the first `k` entries is at most `k`"
)]
fn sort_stable(entries: &mut [(&str, Feature<'_>)]) {
    if entries.len() > Features::ON_STACK {
        return entries.sort_by_key(|&(key, _)| key);
    }
    for k in 1..entries.len() {
        let entry = entries[k];
        let to = entries[..k].partition_point(|&(key, _)| key <= entry.0);
        entries.copy_within(to..k, to + 1);
        entries[to] = entry;
    }
}

impl<'a> Deref for Features<'a> {
    type Target = [(&'a str, Feature<'a>)];

    fn deref(&self) -> &[(&'a str, Feature<'a>)] {
        match &self.large {
            Some(large) => large,
            None => self.small.get(..self.len).unwrap_or_default(),
        }
    }
}

impl<'a> AsRef<[(&'a str, Feature<'a>)]> for Features<'a> {
    fn as_ref(&self) -> &[(&'a str, Feature<'a>)] {
        self
    }
}

impl<'s, 'a> IntoIterator for &'s Features<'a> {
    type Item = &'s (&'a str, Feature<'a>);
    type IntoIter = std::slice::Iter<'s, (&'a str, Feature<'a>)>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl fmt::Debug for Features<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter().map(|(key, feature)| (key, feature))).finish()
    }
}
