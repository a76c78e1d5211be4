//! One feature's value for each record of one shard: [`FeatureColumn`].

#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects))]

use super::classes::ShardClasses;
use super::data::ColumnData;
use super::layout::{self, ColumnSections, SectionTable, ValueEncoding, section_name};
use crate::crc::crc32c;
use crate::error::{Error, ErrorKind, IndexError, Result};
use crate::example::DType;
use crate::filter::value::Value;
use crate::index::{
    HEADER_LEN, IndexHeader, MAX_PREFIX, OpenedFile, Refusal, Section, SidecarFile, read_section, refused,
    slice,
};
use crate::io::{Region, Reserved};
use std::fmt;
use std::io::Write;
use std::path::Path;
use std::sync::{Arc, Mutex, OnceLock};

/// One feature's value for each record of one shard: the content of a column file. It is cheap to clone and
/// thread-safe.
///
/// [`Dataset::column`](crate::Dataset::column) finds or builds the columns of all shards and joins them. This
/// type is one of them, for tools that read the files directly.
#[derive(Clone)]
pub struct FeatureColumn(Arc<ColumnFile>);

struct ColumnFile {
    header: IndexHeader,
    name: Box<str>,
    sections: SectionTable,
    source: ColumnSource,
    file: Option<Box<Path>>,
    data: OnceLock<ColumnData>,
    /// Accounts for the memory of a file that was read completely.
    _reserved: Option<Reserved>,
}

enum ColumnSource {
    Bytes(Region),
    /// Sections are read at their first use: from the descriptor while it is kept, and then from the reopened
    /// file, which must still have the header `head`.
    File {
        head: Box<[u8; HEADER_LEN]>,
        from: Mutex<SidecarFile>,
    },
}

impl FeatureColumn {
    /// Decodes a column file in memory. Makes the same checks as opening a file, except those for a
    /// particular shard and feature.
    ///
    /// # Errors
    /// [`IndexError::Refused`] if a check fails.
    pub fn from_bytes(bytes: Region) -> Result<FeatureColumn> {
        FeatureColumn::from_whole(bytes, None, None, None).map_err(refused)
    }

    /// Opens a file whose bytes are all in memory or mapped.
    fn from_whole(
        bytes: Region,
        file: Option<&Path>,
        feature: Option<&str>,
        reserved: Option<Reserved>,
    ) -> Result<FeatureColumn, Refusal> {
        bytes.populate(0..MAX_PREFIX).map_err(|e| e.to_string())?;
        let (header, sections) = layout::decode(&bytes, bytes.len() as u64)?;
        FeatureColumn::new(header, sections, ColumnSource::Bytes(bytes), file, feature, reserved)
    }

    /// Decodes an opened file with the path `file`, which must be a column of `feature`: of its values, or of
    /// the numbers of its values.
    pub(super) fn opened(
        opened: OpenedFile,
        file: &Path,
        feature: &str,
        counts: bool,
    ) -> Result<FeatureColumn, Refusal> {
        let file = Some(file);
        let feature = Some(feature);
        let column = match opened {
            OpenedFile::Whole(bytes, reserved) => FeatureColumn::from_whole(bytes, file, feature, reserved)?,
            OpenedFile::Start { bytes, len, from } => {
                let (header, sections) = layout::decode(&bytes, len)?;
                let head = Box::new(*bytes.first_chunk().ok_or("shorter than a header")?);
                let source = ColumnSource::File { head, from: Mutex::new(from) };
                FeatureColumn::new(header, sections, source, file, feature, None)?
            }
        };
        if column.has_counts() != counts {
            return Err("the column has values in place of their number, or the other way round".into());
        }
        Ok(column)
    }

    fn new(
        header: IndexHeader,
        sections: SectionTable,
        source: ColumnSource,
        file: Option<&Path>,
        feature: Option<&str>,
        reserved: Option<Reserved>,
    ) -> Result<FeatureColumn, Refusal> {
        // The length is compared before the name is read, because a forged file can have a name of any
        // length.
        if feature.is_some_and(|feature| feature.len() as u64 != sections.name.len) {
            return Err("the column belongs to another feature".into());
        }
        let file = file.map(Box::from);
        let name = Box::from("");
        let data = OnceLock::new();
        let mut inner = ColumnFile { header, name, sections, source, file, data, _reserved: reserved };
        let name = inner.section(&inner.sections.name).map_err(|e| e.to_string())?;
        let name = std::str::from_utf8(&name).map_err(|_| "the feature's name is not UTF-8")?;
        if feature.is_some_and(|feature| feature != name) {
            return Err("the column belongs to another feature".into());
        }
        inner.name = name.into();
        Ok(FeatureColumn(Arc::new(inner)))
    }

    /// Returns the header of the file, which identifies the records.
    pub(super) fn header(&self) -> &IndexHeader {
        &self.0.header
    }

    /// Returns the name of the feature.
    pub(super) fn feature(&self) -> &str {
        &self.0.name
    }

    /// Returns the number of records.
    pub fn len(&self) -> u64 {
        self.0.header.n_records
    }

    /// Returns true if there are no records.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the kind of the feature. A column without any value is stored as int64.
    pub fn kind(&self) -> DType {
        self.0.sections.encoding.kind()
    }

    /// Returns true for a column of the numbers of values.
    pub(super) fn has_counts(&self) -> bool {
        self.0.sections.encoding == ValueEncoding::Count
    }

    /// Returns true if the file lists the records of each class.
    pub(crate) fn has_classes(&self) -> bool {
        self.0.sections.classes.is_some()
    }

    /// Returns the file that the column was read from or saved to. `None` if the column is only in memory.
    pub fn file(&self) -> Option<&Path> {
        self.0.file.as_deref()
    }

    /// Returns the value of record `i`. `None` if the record has no value or does not exist.
    ///
    /// # Errors
    /// [`IndexError::CorruptSection`] and I/O errors, at the first use.
    pub fn get(&self, i: u64) -> Result<Option<Value<'_>>> {
        Ok(self.data()?.get(i))
    }

    /// Verifies and validates all sections now.
    ///
    /// # Errors
    /// [`IndexError::CorruptSection`] and I/O errors.
    pub fn verify(&self) -> Result<()> {
        self.data()?;
        if self.has_classes() {
            self.classes()?;
        }
        Ok(())
    }

    /// Writes the column file. Its bytes depend only on the shard, the shard's modification time and the
    /// options.
    ///
    /// # Errors
    /// Errors of `w`. A large file may be read only now; then also the errors of
    /// [`verify`](FeatureColumn::verify).
    pub fn write_to(&self, w: &mut impl Write) -> Result<()> {
        match &self.0.source {
            ColumnSource::Bytes(bytes) => Ok(w.write_all(bytes)?),
            ColumnSource::File { .. } => Ok(w.write_all(&self.encode(self.has_classes())?)?),
        }
    }

    /// Returns all values. Loads and validates them at the first call.
    pub(crate) fn data(&self) -> Result<&ColumnData> {
        match self.0.data.get() {
            Some(data) => Ok(data),
            None => self.0.load(),
        }
    }

    /// Returns all values if they are loaded.
    #[inline]
    pub(crate) fn loaded(&self) -> Option<&ColumnData> {
        self.0.data.get()
    }

    /// Returns the records of each class, from the file's lists if it has them. Not for floats.
    pub(crate) fn classes(&self) -> Result<ShardClasses> {
        let data = self.data()?;
        match &self.0.sections.classes {
            None => Ok(ShardClasses::from_values(data)),
            Some(section) => {
                // The lists can be computed from the values, so a file that is gone by now is no error.
                let bytes = match self.0.section(section) {
                    Err(e) if matches!(e.kind(), ErrorKind::Index(IndexError::Stale { .. })) => {
                        return Ok(ShardClasses::from_values(data));
                    }
                    bytes => bytes?,
                };
                ShardClasses::decode(&bytes, section.param, data)
                    .map_err(|why| self.0.corrupt(section.kind, why))
            }
        }
    }

    /// Returns the value of a class of [`classes`](FeatureColumn::classes).
    pub(crate) fn value_of(&self, class: i64) -> Option<Value<'_>> {
        self.loaded()?.value_of(class)
    }

    /// Returns the column with the lists of its classes. If it had none, the new column is in memory. Columns
    /// of floats and counts have no such lists.
    pub(crate) fn with_classes(&self) -> Result<FeatureColumn> {
        if self.has_classes() || self.has_counts() || self.kind() == DType::Float32 {
            return Ok(self.clone());
        }
        FeatureColumn::from_bytes(Region::from(self.encode(true)?))
    }

    /// Returns the column as the content of `file`, to which it was saved.
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
        let sections = ColumnSections { encoding, name: &self.0.name, values, present, dict, classes };
        Ok(sections.encode(&self.0.header)?)
    }
}

impl ColumnFile {
    #[cold]
    fn load(&self) -> Result<&ColumnData> {
        let SectionTable { encoding, values, present, dict, .. } = &self.sections;
        let dictionary = dict.as_ref().map(|dict| self.section(dict)).transpose()?;
        let n = self.header.n_records;
        let values = self.section(values)?;
        let present = self.section(present)?;
        let data = ColumnData::new(*encoding, n, values, present, dictionary)
            .map_err(|(section, why)| self.corrupt(section, why))?;
        let data = self.data.get_or_init(|| data);
        if let (ColumnSource::File { head, from }, Some(path)) = (&self.source, &self.file) {
            let released = SidecarFile::Path { path: path.clone(), head: head.clone() };
            *from.lock().unwrap_or_else(|e| e.into_inner()) = released;
        }
        Ok(data)
    }

    /// Returns the bytes of a section, and verifies its crc.
    fn section(&self, section: &Section) -> Result<Region> {
        let bytes = match (&self.source, &self.file) {
            (ColumnSource::Bytes(bytes), _) => {
                let bytes =
                    slice(bytes, section).ok_or_else(|| refused("the file ends inside a section".into()))?;
                bytes.populate(0..bytes.len())?;
                bytes
            }
            (ColumnSource::File { from, .. }, Some(file)) => {
                let from = from.lock().unwrap_or_else(|e| e.into_inner()).clone();
                let read = from.read(|file, at| read_section(file, at, section));
                read.map_err(|e| e.in_file(file))?
            }
            (ColumnSource::File { .. }, None) => {
                return Err(refused("the path of the column file is unknown".into()));
            }
        };
        if crc32c(&bytes) != section.crc {
            return Err(self.corrupt(section.kind, "crc32c mismatch"));
        }
        Ok(bytes)
    }

    #[cold]
    fn corrupt(&self, section: u32, reason: &'static str) -> Error {
        let file = self.file.clone().unwrap_or_else(|| Path::new("(column in memory)").into());
        IndexError::CorruptSection { file, section: section_name(section), reason }.into()
    }
}

impl fmt::Debug for FeatureColumn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let classes = if self.has_classes() { ", classes" } else { "" };
        let kind = self.kind().list_name();
        write!(f, "FeatureColumn({:?}, {kind}, {} records{classes})", self.0.name, self.len())
    }
}
