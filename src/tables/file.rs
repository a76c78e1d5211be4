//! `TableFile`: the tables of all records of one shard.

use super::format::TableFormat;
use super::layout::{self, KEYS, NUMBERS, PLACES, TABLES, TableSections};
use crate::crc::crc32c;
use crate::error::Result;
use crate::index::{
    IndexHeader, MAX_PREFIX, OpenedFile, Refusal, Section, SidecarFile, Table, TableBuilder, TableEnds,
    read_section, sections_in_start, slice,
};
use crate::io::{Region, Reserved, read_exact_at};
use crate::memory::{room, zeroed};
use std::io::Write;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

/// Maximum bytes of a table that is read from a file. A larger one is made of its record.
const MAX_TABLE: u64 = 1 << 30;

/// The tables of all records of a shard: the content of a file, or of one that is about to be written. A
/// clone shares them.
#[derive(Clone, Debug)]
pub(super) struct TableFile<F>(Arc<ShardContent<F>>);

#[derive(Debug)]
struct ShardContent<F> {
    header: IndexHeader,
    format: F,
    numbers: Table,
    places: Table,
    tables: TableBytes,
    file: Option<Box<Path>>,
    /// Accounts for the memory of a file that was read completely.
    _reserved: Option<Reserved>,
}

/// The bytes of all tables.
#[derive(Debug)]
enum TableBytes {
    Here(Region),
    /// They are read one by one.
    File {
        from: SidecarFile,
        at: u64,
        len: u64,
    },
}

impl<F: TableFormat> TableFile<F> {
    /// Decodes an opened file with the path `file`. `None` for a file with other keys.
    pub(super) fn opened(
        opened: OpenedFile,
        file: &Path,
        format: &F,
    ) -> Result<(IndexHeader, Option<TableFile<F>>), Refusal> {
        let (prefix, len) = match &opened {
            OpenedFile::Whole(bytes, _) => {
                bytes.populate(0..MAX_PREFIX.min(bytes.len())).map_err(|e| e.to_string())?;
                (&**bytes, bytes.len() as u64)
            }
            OpenedFile::Start { bytes, len, .. } => (&**bytes, *len),
        };
        let (header, sections) = layout::decode(prefix, len)?;
        let TableSections { keys, numbers, places, tables } = &sections;
        let first = [keys, numbers, places];
        let (parts, tables, reserved) = match opened {
            OpenedFile::Whole(bytes, reserved) => {
                let part = |section: &Section| {
                    slice(&bytes, section).ok_or_else(|| "the file ends inside a section".to_owned())
                };
                let parts = [part(keys)?, part(numbers)?, part(places)?];
                for part in &parts {
                    part.populate(0..part.len()).map_err(|e| e.to_string())?;
                }
                (parts, TableBytes::Here(part(tables)?), reserved)
            }
            OpenedFile::Start { bytes, from, .. } => {
                let read = |section: &Section| {
                    from.read(|file, at| read_section(file, at, section)).map_err(|e| e.to_string())
                };
                let parts = match &from {
                    SidecarFile::Object(source) => sections_in_start(&bytes, &**source, first)?,
                    _ => [read(keys)?, read(numbers)?, read(places)?],
                };
                (parts, TableBytes::File { from, at: tables.offset, len: tables.len }, None)
            }
        };
        let [stored, numbers, places] = parts;
        if crc32c(&stored) != sections.keys.crc {
            return Err("section KEYS: crc32c mismatch".into());
        }
        if *stored != *format.keys() {
            return Ok((header, None));
        }
        let m = header.n_records.checked_add(1).ok_or("more than 2^64 records")?;
        let table = |section: &Section, bytes: &Region, last| {
            let ends = TableEnds { first: Some(0), last };
            Table::open(bytes, m, section.param, ends)
                .ok_or_else(|| format!("section {} has a wrong length", section.kind))
        };
        let places = table(&sections.places, &places, Some(sections.tables.len))?;
        let numbers = table(&sections.numbers, &numbers, None)?;
        for table in [&places, &numbers] {
            table.verify_all().map_err(|bad| bad.reason.to_owned())?;
        }
        let format = format.clone();
        let file = Some(file.into());
        let found = ShardContent { header, format, numbers, places, tables, file, _reserved: reserved };
        Ok((header, Some(TableFile(Arc::new(found)))))
    }

    /// Returns the number of records.
    pub(super) fn len(&self) -> u64 {
        self.0.header.n_records
    }

    /// Returns the file. `None` for tables in memory.
    pub(super) fn file(&self) -> Option<&Path> {
        self.0.file.as_deref()
    }

    /// Returns the number of a record. `None` if the sums are not ascending.
    pub(super) fn number(&self, i: u64) -> Option<u64> {
        let (before, with) = self.0.numbers.pair(i).ok()?;
        with.checked_sub(before).filter(|number| *number <= u32::MAX.into())
    }

    /// Returns the table of a record. `None` if the file has no valid one.
    pub(super) fn table(&self, i: u64, payload_len: u64) -> Option<F::Table> {
        let (from, to) = self.0.places.pair(i).ok().filter(|(from, to)| from <= to)?;
        let read = || self.read_table(from..to, payload_len);
        read().or_else(|| self.distrust(from..to).then(read)?)
    }

    /// Drops what is kept of tables in a store, whose bits may have flipped on their way. Returns true if the
    /// next read asks the store once more.
    fn distrust(&self, range: Range<u64>) -> bool {
        match &self.0.tables {
            TableBytes::File { from: SidecarFile::Object(source), at, .. } => {
                source.distrust(&(at.saturating_add(range.start)..at.saturating_add(range.end)))
            }
            _ => false,
        }
    }

    fn read_table(&self, Range { start: from, end: to }: Range<u64>, payload_len: u64) -> Option<F::Table> {
        let len = to.checked_sub(from).filter(|len| *len <= MAX_TABLE)?;
        let bytes = match &self.0.tables {
            TableBytes::Here(all) => {
                let range = usize::try_from(from).ok()?..usize::try_from(to).ok()?;
                let bytes = all.slice(range)?;
                bytes.populate(0..bytes.len()).ok()?;
                bytes
            }
            TableBytes::File { from: file, at, len: all } => {
                let start = at.checked_add(from).filter(|_| to <= *all)?;
                let read = file.read(|file, first| {
                    let mut bytes = zeroed(len)?;
                    read_exact_at(file, &mut bytes, first + start)?;
                    Ok(bytes)
                });
                Region::from(read.ok()?)
            }
        };
        self.0.format.read(bytes, payload_len)
    }

    /// Announces that the tables of records will be read, one after the other.
    pub(super) fn want(&self, records: &[u64]) {
        let places = records.iter().filter_map(|i| self.0.places.pair(*i).ok());
        match &self.0.tables {
            TableBytes::Here(all) => {
                for (from, to) in places {
                    if let (Ok(from), Ok(to)) = (usize::try_from(from), usize::try_from(to)) {
                        all.will_need(from..to);
                    }
                }
            }
            TableBytes::File { from: SidecarFile::Object(source), at, len } => {
                let inside = places.filter(|(from, to)| from < to && to <= len);
                let ranges = inside.map(|(from, to)| at + from..at + to);
                source.want(&ranges.collect::<Vec<_>>());
            }
            TableBytes::File { .. } => {}
        }
    }

    /// Writes the file.
    pub(super) fn write_to(&self, w: &mut dyn Write) -> Result<()> {
        let ShardContent { header, format, numbers, places, tables, .. } = &*self.0;
        let keys = format.keys();
        let len = match tables {
            TableBytes::Here(bytes) => bytes.len() as u64,
            TableBytes::File { len, .. } => *len,
        };
        let (head, sections) = layout::encode(
            header,
            [
                (KEYS, 0, keys.len() as u64, crc32c(&keys)),
                (NUMBERS, numbers.param(), numbers.section_len(), 0),
                (PLACES, places.param(), places.section_len(), 0),
                (TABLES, 0, len, 0),
            ],
        );
        let mut at = head.len() as u64;
        w.write_all(&head)?;
        for section in &sections {
            w.write_all(&vec![0; (section.offset - at) as usize])?;
            at = section.offset + section.len;
            match section.kind {
                KEYS => w.write_all(&keys)?,
                NUMBERS => numbers.parts().into_iter().try_for_each(|part| w.write_all(part))?,
                PLACES => places.parts().into_iter().try_for_each(|part| w.write_all(part))?,
                _ => self.write_tables(w)?,
            }
        }
        Ok(())
    }

    fn write_tables(&self, w: &mut dyn Write) -> Result<()> {
        const PART: u64 = 4 << 20;
        match &self.0.tables {
            TableBytes::Here(bytes) => Ok(w.write_all(bytes)?),
            TableBytes::File { from, at, len } => from.read(|file, first| {
                let mut done = 0u64;
                while done < *len {
                    let mut bytes = zeroed(PART.min(len - done))?;
                    read_exact_at(file, &mut bytes, first + at + done)?;
                    w.write_all(&bytes)?;
                    done += bytes.len() as u64;
                }
                Ok(())
            }),
        }
    }
}

/// A builder of the tables of a shard, record after record.
pub(super) struct TableFileBuilder {
    numbers: TableBuilder,
    places: TableBuilder,
    tables: Vec<u8>,
    sum: u64,
}

impl TableFileBuilder {
    pub(super) fn new() -> TableFileBuilder {
        let numbers = TableBuilder::offsets();
        TableFileBuilder { numbers, places: TableBuilder::offsets(), tables: Vec::new(), sum: 0 }
    }

    /// Adds the table of the next record. `None`: it has none, and its number is 0.
    pub(super) fn push<F: TableFormat>(&mut self, table: Option<&F::Table>) -> Result<()> {
        self.end();
        if let Some(table) = table {
            self.tables.try_reserve(table.as_ref().len())?;
            self.tables.extend(table.as_ref());
            self.sum += u64::from(F::number(table));
        }
        Ok(())
    }

    /// Adds where the tables end so far.
    fn end(&mut self) {
        self.numbers.push(self.sum);
        self.places.push(self.tables.len() as u64);
    }

    /// Returns the tables, in memory.
    pub(super) fn finish<F: TableFormat>(mut self, format: &F, header: IndexHeader) -> Result<TableFile<F>> {
        self.end();
        let mut tables = room(self.tables.len())?;
        tables.append(&mut self.tables);
        Ok(TableFile(Arc::new(ShardContent {
            header,
            format: format.clone(),
            numbers: self.numbers.finish()?,
            places: self.places.finish()?,
            tables: TableBytes::Here(Region::from(tables)),
            file: None,
            _reserved: None,
        })))
    }
}
