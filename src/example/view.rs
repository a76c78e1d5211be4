//! `Example<'a>`: features by name, from the bytes as they are.

use super::feature::Feature;
use super::list::{BytesList, FloatList, Int64List};
use super::map::{EntryRules, MapEntries, VALUE_DEPTH, has_map};
use super::source::ValueMessage;
use crate::error::{At, Error, ErrorKind, FeatureError, Result};
use crate::wire::{Fault, MAX_LEN};
use std::fmt;
use std::iter::FusedIterator;
use std::ops::Deref;

/// A `tf.train.Example` that borrows its payload. `Copy`; making one is free, each look-up walks the payload.
///
/// A look-up checks the framing of every entry and all of the feature it was asked for; other features are
/// skipped unread. [`validate`](Example::validate) checks everything. Cost of a look-up: 6 to 10 ns for each
/// feature in the record, and the check of the list that is found. Nothing is allocated.
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
    lenient: bool,
}

impl<'a> Example<'a> {
    /// The Example in these bytes. O(1), and looks at none of them.
    #[inline]
    pub fn new(payload: &'a [u8]) -> Example<'a> {
        Example { payload, at: At::NOWHERE, lenient: false }
    }

    /// The same, with a place for its errors to name.
    #[inline]
    #[must_use]
    pub fn at(self, at: At<'a>) -> Example<'a> {
        Example { at, ..self }
    }

    /// The same, taking map entries that hold an unknown field (the field is ignored, as C++ protobuf does).
    /// By default they are refused: Python's protobuf drops the whole entry, TensorFlow's parser the whole record.
    #[inline]
    #[must_use]
    pub fn with_lenient_map_entries(self, lenient: bool) -> Example<'a> {
        Example { lenient, ..self }
    }

    /// The bytes.
    #[inline]
    pub(super) fn payload(self) -> &'a [u8] {
        self.payload
    }

    /// The feature `key`: the last of that name. `None` if there is none; `Some(Feature::None)` if it is there
    /// without a kind.
    ///
    /// # Errors
    /// [`ErrorKind::Wire`] where the payload is malformed, as far as the look-up reads it; [`ErrorKind::TooLarge`] above
    /// 2^31 - 1 bytes.
    #[inline]
    pub fn get(self, key: &str) -> Result<Option<Feature<'a>>> {
        self.find(key.as_bytes()).map_err(|e| e.feature(key.as_bytes()))
    }

    /// The integers of feature `key`.
    ///
    /// # Errors
    /// Those of [`get`](Example::get), and [`ErrorKind::Feature`] if it is absent, without a kind, or of another kind.
    #[inline]
    pub fn int64(self, key: &str) -> Result<Int64List<'a>> {
        let found = self.get(key)?.ok_or(FeatureError::Missing { expected: "int64" });
        found.and_then(Feature::int64).map_err(|e| self.feature_error(e, key))
    }

    /// The floats of feature `key`.
    ///
    /// # Errors
    /// As [`int64`](Example::int64).
    #[inline]
    pub fn float(self, key: &str) -> Result<FloatList<'a>> {
        let found = self.get(key)?.ok_or(FeatureError::Missing { expected: "float" });
        found.and_then(Feature::float).map_err(|e| self.feature_error(e, key))
    }

    /// The byte strings of feature `key`.
    ///
    /// # Errors
    /// As [`int64`](Example::int64).
    #[inline]
    pub fn bytes(self, key: &str) -> Result<BytesList<'a>> {
        let found = self.get(key)?.ok_or(FeatureError::Missing { expected: "bytes" });
        found.and_then(Feature::bytes).map_err(|e| self.feature_error(e, key))
    }

    /// All entries in wire order, duplicates seen; each is checked whole. No allocation. Ends after an error.
    #[inline]
    pub fn entries(self) -> impl FusedIterator<Item = Result<(&'a str, Feature<'a>)>> + Clone + fmt::Debug {
        ExampleEntries { example: Some(self), state: None }
    }

    /// All features, each key once (the last entry wins), sorted by the keys' bytes. On the stack up to
    /// [`Features::ON_STACK`] entries, one vector above.
    ///
    /// # Errors
    /// All that [`validate`](Example::validate) finds.
    pub fn features(self) -> Result<Features<'a>> {
        Features::collect(self.entries())
    }

    /// Whether the message `features` is there at all, if only an empty one: `0a 00` and no bytes at all are both an Example
    /// without features. False where the payload cannot be read that far.
    pub fn has_features(self) -> bool {
        has_map(self.payload, 1)
    }

    /// Checks all that protobuf's own decoder would: the whole payload, keys as UTF-8, every list.
    ///
    /// # Errors
    /// [`ErrorKind::Wire`] with the place of the first fault, [`ErrorKind::TooLarge`].
    pub fn validate(self) -> Result<()> {
        self.entries().try_for_each(|entry| entry.map(drop))
    }

    fn find(self, key: &[u8]) -> Result<Option<Feature<'a>>> {
        let mut entries = self.open(1, false)?;
        let check = |value| Feature::check(value, VALUE_DEPTH).map_err(|fault| self.fault(fault));
        let mut found = None;
        // To the end: the last entry of a key is the one that counts.
        loop {
            while let Some((other, value)) = entries.next_fast() {
                if other == key {
                    found = Some(check(ValueMessage::one(value, entries.start_of(value)))?);
                }
            }
            match entries.next() {
                Ok(Some(entry)) if entry.key == key => found = Some(check(entry.value)?),
                Ok(Some(_)) => {}
                Ok(None) => return Ok(found),
                Err(fault) => return Err(self.fault(fault)),
            }
        }
    }

    /// The entries of a map field of the payload: 1 for features or context, 2 for feature lists.
    #[inline(always)]
    pub(super) fn open(self, field: u32, utf8: bool) -> Result<MapEntries<'a>> {
        if self.payload.len() as u64 > MAX_LEN {
            return Err(self.too_large());
        }
        Ok(MapEntries::new(self.payload, field, EntryRules { lenient: self.lenient, utf8 }))
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

/// A map of what could be read, and the error at which reading ended.
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

/// The entries of an [`Example`] in wire order, duplicates seen.
#[derive(Clone, Copy)]
struct ExampleEntries<'a> {
    /// `None` once the walk has ended.
    example: Option<Example<'a>>,
    state: Option<MapEntries<'a>>,
}

impl<'a> ExampleEntries<'a> {
    fn step(&mut self, example: Example<'a>) -> Result<Option<(&'a str, Feature<'a>)>> {
        let state = match &mut self.state {
            Some(state) => state,
            none => none.insert(example.open(1, true)?),
        };
        let Some((key, value)) = state.next_text().map_err(|fault| example.fault(fault))? else {
            return Ok(None);
        };
        match Feature::check(value, VALUE_DEPTH) {
            Ok(feature) => Ok(Some((key, feature))),
            Err(fault) => Err(example.fault(fault).feature(key.as_bytes())),
        }
    }
}

impl<'a> Iterator for ExampleEntries<'a> {
    type Item = Result<(&'a str, Feature<'a>)>;

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

/// The features of an [`Example`]: each key once, sorted by the keys' bytes. A slice of pairs.
#[derive(Clone)]
pub struct Features<'a> {
    small: [(&'a str, Feature<'a>); Features::ON_STACK],
    len: usize,
    large: Option<Vec<(&'a str, Feature<'a>)>>,
}

impl<'a> Features<'a> {
    /// Entries up to which nothing is allocated.
    pub const ON_STACK: usize = 64;

    fn collect(entries: impl Iterator<Item = Result<(&'a str, Feature<'a>)>>) -> Result<Features<'a>> {
        let none = ("", Feature::None);
        let mut all = Features { small: [none; Features::ON_STACK], len: 0, large: None };
        for entry in entries {
            all.push(entry?);
        }
        all.settle();
        Ok(all)
    }

    fn push(&mut self, entry: (&'a str, Feature<'a>)) {
        match (&mut self.large, self.small.get_mut(self.len)) {
            (Some(large), _) => large.push(entry),
            (None, Some(place)) => {
                *place = entry;
                self.len += 1;
            }
            (None, None) => {
                let mut large = self.small.to_vec();
                large.push(entry);
                self.large = Some(large);
            }
        }
    }

    /// Sorts by key and keeps the last entry of each.
    fn settle(&mut self) {
        let entries = match &mut self.large {
            Some(large) => large.as_mut_slice(),
            None => &mut self.small[..self.len],
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

/// A stable sort that does not allocate for what fits on the stack: most records come sorted, or nearly.
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
            None => &self.small[..self.len],
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
