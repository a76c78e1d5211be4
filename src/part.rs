//! Parts of a dataset: [`Part`], byte ranges of whole records that another process can read without an index.

#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects))]

use crate::error::{Error, PartError, Result};
use crate::frame::OVERHEAD;
use crate::index::{IndexHeader, check_start, compression_flags, fingerprints};
use crate::io::{
    Compression, Object, ReadRange, Source, Stamp, Storage, Store, bare_url, portable_url, sniff, url_of,
};
use crate::policy::Tail;
use serde_json::{Map, Value};
use std::ops::Range;
use std::path::{Path, PathBuf, absolute};
use std::str::FromStr;
use std::sync::Arc;

/// Version of the JSON form.
const VERSION: u64 = 1;
/// Largest number in a part: sizes of files are below 2^63.
const MAX: u64 = i64::MAX as u64;
/// The value of the field `tail`, which a part has only if a torn tail is no error.
const TOLERATE: &str = "tolerate";
/// The value of the field `verify`, which a part has only if no checksum is verified.
const UNVERIFIED: &str = "none";
/// Maximum number of characters of a refused value in an error.
const SHOWN: usize = 60;

/// A range of whole records in one shard of a dataset. It knows its shard, so that it can be read in another
/// process, or on another machine that has the file under the same path.
///
/// [`Dataset::shares`](crate::Dataset::shares) divides a dataset into parts, and
/// [`StreamOptions::part`](crate::stream::StreamOptions::part) reads one. In between, a part is less than 300
/// bytes of JSON, if its path is not long.
///
/// ```
/// use tfseek::{Dataset, DatasetOptions, IndexMode, Part, stream::StreamOptions};
/// # let dir = tempfile::tempdir()?;
/// # let path = dir.path().join("train.tfrecord");
/// # let mut writer = tfseek::Writer::create(&path)?;
/// # for i in 0..10u8 { writer.write(&[i])?; }
/// # writer.close()?;
/// let ds = DatasetOptions::new().index(IndexMode::Memory).open(&path)?;
/// let plan: Vec<Vec<String>> =
///     ds.shares(2)?.iter().map(|share| share.iter().map(Part::to_json).collect()).collect();
/// assert_eq!(plan.len(), 2);
///
/// // In a worker:
/// let part = Part::from_json(&plan[1][0])?;
/// let mut stream = StreamOptions::default().part(&part)?;
/// assert_eq!((part.first, part.records), (5, Some(5)));
/// assert_eq!(stream.next()?.unwrap().payload(), [5]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
/// A part with changed fields is checked by its reader, as the JSON of a part is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Part {
    /// The absolute path of the shard, or its URL without its user and without the parameters of its query
    /// that sign it.
    pub shard: Box<str>,
    /// The compression of the shard.
    pub compression: Compression,
    /// The size of the shard in bytes.
    pub size: u64,
    /// The modification time of the shard, in nanoseconds since 1970. -2^63 if it is unknown.
    pub mtime_ns: i64,
    /// End of the bytes that the fingerprints cover. Less than the size after a torn tail.
    end: u64,
    /// The XXH3-64 of the first and of the last 64 KiB of the indexed bytes of the shard.
    pub fingerprints: [u64; 2],
    /// The bytes of the file. They are all bytes of a compressed shard, and whole records of another.
    pub bytes: Range<u64>,
    /// The ordinal of the first record in its shard.
    pub ordinal: u64,
    /// The number of the first record in the dataset.
    pub first: u64,
    /// The number of records. `None` for a shard without an index.
    pub records: Option<u64>,
    /// The treatment of a torn tail of the shard: the dataset's treatment, which a reader of the part applies
    /// too.
    pub tail: Tail,
    /// No checksum is verified: the dataset was opened with [`Verify::None`](crate::Verify::None), and so is
    /// the part.
    pub(crate) unverified: bool,
    /// The version of an object of a store that has versions.
    version: Option<Box<str>>,
}

/// The records of a part: bytes of the file, ordinal in the shard, number in the dataset, number of records.
#[derive(Clone, Debug)]
pub(crate) struct PartRecords {
    pub(crate) bytes: Range<u64>,
    pub(crate) ordinal: u64,
    pub(crate) first: u64,
    pub(crate) records: Option<u64>,
}

impl Part {
    /// Returns a part of the shard at `path` with this index, which was opened with this policy. `object`: an
    /// object of a store as it was listed. Its index may have another time.
    pub(crate) fn new(
        path: &Path,
        known: &IndexHeader,
        of: PartRecords,
        tail: Tail,
        object: Option<Object>,
    ) -> Result<Part> {
        let shard = match &object {
            Some(object) => portable_url(&object.url).into(),
            None => absolute(path)?,
        };
        let object = object.map(|object| object.stamp);
        let part = Part {
            shard: shard.to_str().ok_or(PartError::NotUtf8)?.into(),
            compression: known.compression(),
            size: known.data_size,
            mtime_ns: object.as_ref().map_or(known.mtime_ns, Stamp::mtime_ns),
            end: known.indexed_end,
            fingerprints: [known.fp_head, known.fp_tail],
            bytes: of.bytes,
            ordinal: of.ordinal,
            first: of.first,
            records: of.records,
            tail,
            unverified: false,
            version: object.and_then(|object| object.version),
        };
        part.check()?;
        Ok(part)
    }

    /// Returns a whole shard as one part, without an index. The number of its records is unknown. `name` is
    /// the path of a file, or the URL of an object in `store`. `first` is the number of its first record in
    /// the dataset, as the caller counts.
    ///
    /// # Errors
    /// I/O errors; [`PathsError::NotLocal`](crate::error::PathsError::NotLocal) for a URL without a store;
    /// [`PartError::NotUtf8`].
    pub fn of_shard(name: impl AsRef<Path>, first: u64, store: Option<Arc<dyn Store>>) -> Result<Part> {
        let name = name.as_ref();
        let storage = store.map_or_else(Storage::default, Storage::with_store);
        let open = || {
            let opened = storage.open(name)?;
            let file = opened.source();
            let object = storage.known_object(name)?;
            let stamp = object.as_ref().map_or_else(|| file.stamp(), |object| Ok(object.stamp.clone()))?;
            let size = stamp.size;
            let mtime_ns = stamp.mtime_ns();
            let (fp_head, fp_tail) = fingerprints(file, size)?;
            let known = IndexHeader {
                data_size: size,
                indexed_end: size,
                mtime_ns,
                fp_head,
                fp_tail,
                ..IndexHeader::default()
            };
            let of = PartRecords { bytes: 0..size, ordinal: 0, first, records: None };
            let first_bytes = sniff::first_bytes(ReadRange { file, at: 0, end: size })?;
            let compression = sniff::compression(&first_bytes);
            Ok(Part { compression, ..Part::new(name, &known, of, Tail::Strict, object)? })
        };
        open().map_err(|e: Error| match url_of(name) {
            Some(url) => e.in_file(Path::new(&bare_url(url))),
            None => e.in_file(name),
        })
    }

    /// Returns the part as JSON, one object without line breaks.
    pub fn to_json(&self) -> String {
        let [head, tail] = self.fingerprints;
        let fields = [
            ("v", VERSION.into()),
            ("shard", Value::from(&*self.shard)),
            ("compression", self.compression.name().into()),
            ("size", self.size.into()),
            ("mtime", self.mtime_ns.into()),
            ("end", self.end.into()),
            ("fp", format!("{head:016x}{tail:016x}").into()),
            ("from", self.bytes.start.into()),
            ("to", self.bytes.end.into()),
            ("ordinal", self.ordinal.into()),
            ("first", self.first.into()),
            ("records", self.records.into()),
        ];
        let tail = (self.tail == Tail::Tolerate).then(|| ("tail", TOLERATE.into()));
        let verify = self.unverified.then(|| ("verify", UNVERIFIED.into()));
        let version = self.version.as_deref().map(|version| ("version", version.into()));
        let fields = fields
            .into_iter()
            .chain(tail)
            .chain(verify)
            .chain(version)
            .map(|(name, value)| (name.to_owned(), value));
        Value::Object(fields.collect()).to_string()
    }

    /// Parses a part from JSON. The shard is not opened.
    ///
    /// # Errors
    /// [`PartError::Invalid`], if the text is not a part, has other fields or lacks one, or if its numbers
    /// contradict each other.
    pub fn from_json(text: &str) -> Result<Part> {
        let json = serde_json::from_str(text).map_err(|e| invalid("json", "a part", e))?;
        let Value::Object(mut fields) = json else { return Err(invalid("json", "an object", json)) };
        let version = number(&mut fields, "v")?;
        if version != VERSION {
            return Err(invalid("v", VERSION, version));
        }
        let shard = match take(&mut fields, "shard")? {
            Value::String(shard) if !shard.is_empty() => shard.into(),
            other => return Err(invalid("shard", "a path", other)),
        };
        let compression = match take(&mut fields, "compression")? {
            Value::String(name) if Compression::from_str(&name).is_ok_and(|found| found.name() == name) => {
                name.parse()?
            }
            other => return Err(invalid("compression", "none, gzip or zlib", other)),
        };
        let time = take(&mut fields, "mtime")?;
        let mtime_ns =
            time.as_i64().ok_or_else(|| invalid("mtime", "nanoseconds from -2^63 to 2^63 - 1", &time))?;
        let fp = take(&mut fields, "fp")?;
        let fingerprints = digits(&fp).ok_or_else(|| invalid("fp", "32 hex digits", &fp))?;
        let records = match fields.get("records") {
            Some(Value::Null) => take(&mut fields, "records").map(|_| None)?,
            _ => Some(number(&mut fields, "records")?),
        };
        let tail = if takes_word(&mut fields, "tail", TOLERATE)? { Tail::Tolerate } else { Tail::Strict };
        let unverified = takes_word(&mut fields, "verify", UNVERIFIED)?;
        let version = match fields.remove("version") {
            None => None,
            Some(Value::String(version)) => Some(version.into()),
            Some(other) => return Err(invalid("version", "a text", other)),
        };
        let part = Part {
            shard,
            compression,
            size: number(&mut fields, "size")?,
            mtime_ns,
            end: number(&mut fields, "end")?,
            fingerprints,
            bytes: number(&mut fields, "from")?..number(&mut fields, "to")?,
            ordinal: number(&mut fields, "ordinal")?,
            first: number(&mut fields, "first")?,
            records,
            tail,
            unverified,
            version,
        };
        if let Some(other) = fields.keys().next() {
            return Err(invalid("json", "no other fields", other));
        }
        part.check()?;
        Ok(part)
    }

    /// Checks that the numbers do not contradict each other.
    pub(crate) fn check(&self) -> Result<()> {
        const RECORD: u64 = OVERHEAD as u64;
        let Part { size, end, bytes: Range { start: from, end: to }, ordinal, first, .. } = *self;
        let records = self.records.unwrap_or(0);
        for (name, number) in [("size", size), ("ordinal", ordinal), ("first", first), ("records", records)] {
            check_max(name, number)?;
        }
        let plain = self.compression == Compression::None;
        let len = to.checked_sub(from);
        let is_empty = self.records == Some(0);
        let rules = [
            (
                end <= size && (plain || end == size),
                "end",
                "at most the size, and the size of a compressed shard",
                end,
            ),
            (
                to <= end && (plain || to == end),
                "to",
                "at most the end, and the end of a compressed shard",
                to,
            ),
            (len.is_some() && (plain || from == 0), "from", "at most to, and 0 in a compressed shard", from),
            // A compressed file has a lower bound for its bytes, but none for its records.
            (
                !plain || ordinal <= from / RECORD,
                "ordinal",
                "at most as many records as fit before from",
                ordinal,
            ),
            (plain || ordinal == 0, "ordinal", "0 in a compressed shard", ordinal),
            ((from == 0) == (ordinal == 0), "ordinal", "0 at byte 0, and only there", ordinal),
            (
                !plain || len.is_some_and(|len| records <= len / RECORD),
                "records",
                "at most as many as fit between from and to",
                records,
            ),
            (!is_empty || !plain || len == Some(0), "records", "at least 1", 0),
            (
                first.checked_add(records).is_some_and(|end| end <= MAX),
                "records",
                "numbers below 2^63",
                records,
            ),
        ];
        for (holds, field, expected, found) in rules {
            if !holds {
                return Err(invalid(field, expected, found));
            }
        }
        Ok(())
    }

    /// Returns the name of the shard for messages: a path, or a URL without its query.
    pub(crate) fn name(&self) -> PathBuf {
        url_of(Path::new(&*self.shard))
            .map_or_else(|| PathBuf::from(&*self.shard), |url| bare_url(url).into())
    }

    /// Returns the stamp of the shard when the part was made.
    pub(crate) fn stamp(&self) -> Stamp {
        let modified_ns = Some(self.mtime_ns).filter(|time| *time != i64::MIN);
        Stamp { modified_ns, version: self.version.clone(), ..Stamp::new(self.size) }
    }

    /// Checks that the file has the bytes that were indexed, which more bytes may follow.
    ///
    /// The fingerprints are compared even if size and time are equal: the inode of another machine says
    /// nothing.
    pub(crate) fn check_file(&self, file: &dyn Source) -> Result<()> {
        let known = IndexHeader {
            data_size: self.size,
            mtime_ns: self.mtime_ns,
            indexed_end: self.end,
            fp_head: self.fingerprints[0],
            fp_tail: self.fingerprints[1],
            flags: compression_flags(self.compression),
            ..IndexHeader::default()
        };
        check_start(&known, file)
    }
}

fn take(fields: &mut Map<String, Value>, name: &str) -> Result<Value> {
    fields.remove(name).ok_or_else(|| invalid("json", format!("a field {name}"), "none"))
}

/// Takes a field that a part may lack. If it has it, its value is this word.
fn takes_word(fields: &mut Map<String, Value>, name: &str, word: &str) -> Result<bool> {
    match fields.remove(name) {
        None => Ok(false),
        Some(Value::String(found)) if found == word => Ok(true),
        Some(other) => Err(invalid(name, word, other)),
    }
}

fn number(fields: &mut Map<String, Value>, name: &str) -> Result<u64> {
    let value = take(fields, name)?;
    let number = value.as_u64().ok_or_else(|| invalid(name, "a number from 0 to 2^63 - 1", &value))?;
    check_max(name, number)?;
    Ok(number)
}

fn check_max(name: &str, number: u64) -> Result<()> {
    if number > MAX { Err(invalid(name, "a number from 0 to 2^63 - 1", number)) } else { Ok(()) }
}

/// Parses two fingerprints from 32 hex digits.
fn digits(value: &Value) -> Option<[u64; 2]> {
    let is_digit = |b: u8| b.is_ascii_digit() || (b'a'..=b'f').contains(&b);
    let text = value.as_str().filter(|text| text.len() == 32 && text.bytes().all(is_digit))?;
    let both = u128::from_str_radix(text, 16).ok()?;
    Some([(both >> 64) as u64, both as u64])
}

#[cold]
fn invalid(field: &str, expected: impl ToString, found: impl ToString) -> Error {
    let found = found.to_string();
    let mut shown: String = found.chars().take(SHOWN).collect();
    if shown.len() < found.len() {
        shown.push_str("..");
    }
    PartError::Invalid { field: field.into(), expected: expected.to_string().into(), found: shown.into() }
        .into()
}
