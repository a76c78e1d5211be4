//! One feature's value for each record of one shard: [`FeatureColumn`].

use super::classes::ShardClasses;
use super::data::ColumnData;
use super::layout::{self, ColumnSections, SectionTable, name_of};
use crate::crc::crc32c;
use crate::error::{Error, ErrorKind, IndexError, Result};
use crate::example::FeatureKind;
use crate::filter::value::Value;
use crate::index::{
    HEADER_LEN, Header, MAX_PREFIX, OpenedFile, Refusal, Section, read_section, refused, reopen, slice,
};
use crate::io::{KeptFile, Region, Reserved};
use std::fmt;
use std::io::Write;
use std::path::Path;
use std::sync::{Arc, Mutex, OnceLock};

/// One feature's value for each record of one shard: what a column file holds. Cheap to clone; any thread may ask.
///
/// [`Dataset::column`](crate::Dataset::column) finds or builds those of all shards and joins them; this is one of them, for
/// tools that look at the files themselves.
#[derive(Clone)]
pub struct FeatureColumn(Arc<ColumnFile>);

struct ColumnFile {
    header: Header,
    name: Box<str>,
    sections: SectionTable,
    source: ColumnSource,
    file: Option<Box<Path>>,
    data: OnceLock<ColumnData>,
    /// The memory of a file that was read in.
    _reserved: Option<Reserved>,
}

enum ColumnSource {
    Bytes(Region),
    /// SectionTable are read at their first use: from the descriptor while one is kept, else from a file that must still have this
    /// header.
    File {
        head: Box<[u8; HEADER_LEN]>,
        kept: Mutex<Option<Arc<KeptFile>>>,
    },
}

impl FeatureColumn {
    /// Reads a column file that is in memory. Checks what opening a file checks, except that it is of some shard and feature.
    ///
    /// # Errors
    /// [`IndexError::Refused`].
    pub fn from_bytes(bytes: Region) -> Result<FeatureColumn> {
        FeatureColumn::whole(bytes, None, None).map_err(refused)
    }

    /// A file of which all bytes are there.
    fn whole(bytes: Region, file: Option<&Path>, feature: Option<&str>) -> Result<FeatureColumn, Refusal> {
        bytes.populate(0..MAX_PREFIX).map_err(|e| e.to_string())?;
        let (header, sections) = layout::decode(&bytes, bytes.len() as u64)?;
        FeatureColumn::new(header, sections, ColumnSource::Bytes(bytes), file, feature)
    }

    /// A file that was opened at `file`; it must be of `feature`.
    pub(super) fn opened(held: OpenedFile, file: &Path, feature: &str) -> Result<FeatureColumn, Refusal> {
        match held {
            OpenedFile::Whole(bytes, reserved) => FeatureColumn::whole(bytes, Some(file), Some(feature))
                .map(|column| column.reserving(reserved)),
            OpenedFile::Start { bytes, len, head, file: kept } => {
                let (header, sections) = layout::decode(&bytes, len)?;
                let source = ColumnSource::File { head, kept: Mutex::new(kept.map(Arc::new)) };
                FeatureColumn::new(header, sections, source, Some(file), Some(feature))
            }
        }
    }

    fn new(
        header: Header,
        sections: SectionTable,
        source: ColumnSource,
        file: Option<&Path>,
        feature: Option<&str>,
    ) -> Result<FeatureColumn, Refusal> {
        // Before it is read: a name of another length is another, and as long as a forged file likes.
        if feature.is_some_and(|feature| feature.len() as u64 != sections.name.len) {
            return Err("the column is of another feature".into());
        }
        let file = file.map(Box::from);
        let (name, data) = (Box::from(""), OnceLock::new());
        let mut inner = ColumnFile { header, name, sections, source, file, data, _reserved: None };
        let name = inner.section(&inner.sections.name).map_err(|e| e.to_string())?;
        let name = std::str::from_utf8(&name).map_err(|_| "the feature's name is not UTF-8")?;
        if feature.is_some_and(|feature| feature != name) {
            return Err("the column is of another feature".into());
        }
        inner.name = name.into();
        Ok(FeatureColumn(Arc::new(inner)))
    }

    /// The same column, which alone holds the memory that was reserved for it.
    fn reserving(self, reserved: Option<Reserved>) -> FeatureColumn {
        match Arc::try_unwrap(self.0) {
            Ok(inner) => FeatureColumn(Arc::new(ColumnFile { _reserved: reserved, ..inner })),
            Err(shared) => FeatureColumn(shared),
        }
    }

    /// The header of the file, which says what records these are.
    pub(super) fn header(&self) -> &Header {
        &self.0.header
    }

    /// The feature.
    pub fn feature(&self) -> &str {
        &self.0.name
    }

    /// How many records there are.
    pub fn len(&self) -> u64 {
        self.0.header.n_records
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The kind of the feature. A column without any value is stored as one of int64.
    pub fn kind(&self) -> FeatureKind {
        self.0.sections.encoding.kind()
    }

    /// Whether the records of each class are listed in the file.
    pub fn has_classes(&self) -> bool {
        self.0.sections.classes.is_some()
    }

    /// The file that this was read from or saved to; `None` if it is in memory only.
    pub fn file(&self) -> Option<&Path> {
        self.0.file.as_deref()
    }

    /// The value of record `i`; `None` if it has none, or there is no such record.
    ///
    /// # Errors
    /// At the first use [`IndexError::CorruptSection`], and those of the system.
    pub fn get(&self, i: u64) -> Result<Option<Value<'_>>> {
        Ok(self.data()?.get(i))
    }

    /// Checks every section now, and all that is in it.
    ///
    /// # Errors
    /// [`IndexError::CorruptSection`]; those of the system.
    pub fn verify(&self) -> Result<()> {
        self.data()?;
        if self.has_classes() {
            self.classes()?;
        }
        Ok(())
    }

    /// Writes the file: a pure function of the shard, its time and the options.
    ///
    /// # Errors
    /// Those of `w`, and of a large file that is read only now.
    pub fn write_to(&self, w: &mut impl Write) -> Result<()> {
        match &self.0.source {
            ColumnSource::Bytes(bytes) => Ok(w.write_all(bytes)?),
            ColumnSource::File { .. } => Ok(w.write_all(&self.encode(self.has_classes())?)?),
        }
    }

    /// All values, read in and checked if they were not.
    pub(crate) fn data(&self) -> Result<&ColumnData> {
        match self.0.data.get() {
            Some(data) => Ok(data),
            None => self.0.load(),
        }
    }

    /// All values, if they were read in.
    #[inline]
    pub(crate) fn loaded(&self) -> Option<&ColumnData> {
        self.0.data.get()
    }

    /// The records of each class, from the file's lists if it has them. Not for floats.
    pub(crate) fn classes(&self) -> Result<ShardClasses> {
        let data = self.data()?;
        match &self.0.sections.classes {
            None => Ok(ShardClasses::of(data)),
            Some(section) => {
                // The lists say what the values say: a file that went away meanwhile is not missed.
                let bytes = match self.0.section(section) {
                    Err(e) if matches!(e.kind(), ErrorKind::Index(IndexError::Stale { .. })) => {
                        return Ok(ShardClasses::of(data));
                    }
                    bytes => bytes?,
                };
                ShardClasses::decode(&bytes, section.param, data).map_err(|why| self.0.corrupt(section, why))
            }
        }
    }

    /// The value that a class of [`classes`](FeatureColumn::classes) stands for.
    pub(crate) fn value_of(&self, class: i64) -> Option<Value<'_>> {
        self.loaded()?.value_of(class)
    }

    /// The same column with the lists of its classes, in memory if it had none. Floats have none.
    pub(crate) fn with_classes(&self) -> Result<FeatureColumn> {
        match self.has_classes() || self.kind() == FeatureKind::Float {
            true => Ok(self.clone()),
            false => FeatureColumn::from_bytes(Region::from(self.encode(true)?)),
        }
    }

    /// The same column, kept in a file.
    pub(super) fn in_file(&self, file: &Path) -> FeatureColumn {
        let ColumnFile { header, name, sections, source, .. } = &*self.0;
        match source {
            ColumnSource::Bytes(bytes) => FeatureColumn(Arc::new(ColumnFile {
                header: *header,
                name: name.clone(),
                sections: *sections,
                source: ColumnSource::Bytes(bytes.clone()),
                file: Some(file.into()),
                data: OnceLock::new(),
                _reserved: None,
            })),
            ColumnSource::File { .. } => self.clone(),
        }
    }

    fn encode(&self, classes: bool) -> Result<Vec<u8>> {
        let (values, present, dict) = self.data()?.sections();
        let lists = if classes { Some(self.classes()?.encode(self.len())) } else { None };
        let classes = lists.as_ref().map(|(width, bytes)| (*width, &**bytes));
        let encoding = self.0.sections.encoding;
        Ok(ColumnSections { encoding, name: &self.0.name, values, present, dict, classes }
            .encode(&self.0.header))
    }
}

impl ColumnFile {
    #[cold]
    fn load(&self) -> Result<&ColumnData> {
        let SectionTable { encoding, values, present, dict, .. } = &self.sections;
        let dictionary = dict.as_ref().map(|dict| self.section(dict)).transpose()?;
        let (n, at) = (self.header.n_records, dict.as_ref().unwrap_or(values));
        let data = ColumnData::new(*encoding, n, self.section(values)?, self.section(present)?, dictionary)
            .map_err(|why| self.corrupt(at, why))?;
        let data = self.data.get_or_init(|| data);
        if let ColumnSource::File { kept, .. } = &self.source {
            *kept.lock().unwrap_or_else(|e| e.into_inner()) = None;
        }
        Ok(data)
    }

    /// The bytes of a section, whose crc holds.
    fn section(&self, section: &Section) -> Result<Region> {
        let bytes = match (&self.source, &self.file) {
            (ColumnSource::Bytes(bytes), _) => {
                let bytes =
                    slice(bytes, section).ok_or_else(|| refused("the sections are cut off".into()))?;
                bytes.populate(0..bytes.len())?;
                bytes
            }
            (ColumnSource::File { head, kept }, Some(file)) => {
                let kept = kept.lock().unwrap_or_else(|e| e.into_inner()).clone();
                let read = match kept {
                    Some(kept) => read_section(&kept, 0, section),
                    None => reopen(file, head).and_then(|opened| read_section(&opened, 0, section)),
                };
                read.map_err(|e| e.in_file(file))?
            }
            (ColumnSource::File { .. }, None) => return Err(refused("a column without its file".into())),
        };
        if crc32c(&bytes) != section.crc {
            return Err(self.corrupt(section, "its crc does not hold"));
        }
        Ok(bytes)
    }

    #[cold]
    fn corrupt(&self, section: &Section, reason: &'static str) -> Error {
        let file = self.file.clone().unwrap_or_else(|| Path::new("(column in memory)").into());
        IndexError::CorruptSection { file, section: name_of(section.kind), reason }.into()
    }
}

impl fmt::Debug for FeatureColumn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FeatureColumn({:?}, {}, {} records)", self.0.name, self.kind(), self.len())
    }
}
