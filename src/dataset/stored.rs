//! `StoredRecord`: a record of a dataset whose payload is read in parts.

use super::dataset::Dataset;
use super::shards::{RecordLocation, ShardSet};
use crate::error::{At, Error, ErrorKind, Result};
use crate::frame::{HEADER_LEN, check_header};
use crate::policy::Verify;
use crate::record::Record;
use std::ops::Range;

/// A record of a dataset that was located and not read, so that parts of its payload can be.
#[derive(Clone, Copy, Debug)]
pub struct StoredRecord<'d> {
    /// Its location, for errors.
    pub at: At<'d>,
    /// Number of bytes of the payload.
    pub payload_len: u64,
    /// The checksums that the dataset verifies.
    pub verify: Verify,
    set: &'d ShardSet,
    place: RecordLocation,
}

impl Dataset {
    /// Locates record `i`. Nothing is read but the index.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfRange`], and a damaged index.
    pub fn stored(&self, i: u64) -> Result<StoredRecord<'_>> {
        let set = self.set();
        let place = set.locate(i)?;
        let payload_len = place.payload_len();
        Ok(StoredRecord { at: set.location(&place), payload_len, verify: set.verify(), set, place })
    }
}

impl<'d> StoredRecord<'d> {
    /// Returns the shard, and the record's ordinal in it.
    pub(crate) fn place(&self) -> (usize, u64) {
        (self.place.shard as usize, self.place.i)
    }

    /// Returns the payload of a mapped record, or of one in memory, without verification of its checksum.
    /// `None` if it has to be read.
    ///
    /// # Errors
    /// A header that is not the index's.
    pub fn payload(&self) -> Result<Option<&'d [u8]>> {
        let file = self.set.file_of(&self.place);
        if !file.can_borrow() {
            return Ok(None);
        }
        file.borrow(self.place.i, self.place.span, Verify::Header).map(|record| Some(record.payload()))
    }

    /// Returns the whole record, with these checksums verified. It borrows from the shard, or is read into
    /// `buf`.
    ///
    /// # Errors
    /// Errors of [`Dataset::read`].
    pub fn read<'b>(&self, verify: Verify, buf: &'b mut Vec<u8>) -> Result<Record<'b>>
    where
        'd: 'b,
    {
        self.set.read_verified(&self.place, verify, buf)
    }

    /// Reads parts of the payload, and appends them to `buf` one after the other. Their bytes are verified by
    /// the caller: `wrong` returns a part whose bytes are not right. A store is then asked for all parts once
    /// more, because a bit may have changed on its way. A part may end before it begins; it is then empty.
    ///
    /// With [`Verify::Header`] the header of a record in a file is compared with the index.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfRange`] for a part that ends after the payload; errors of reading.
    pub fn read_parts(
        &self,
        parts: &[Range<u32>],
        verify: Verify,
        wrong: impl Fn(&[u8]) -> Option<Range<u32>>,
        buf: &mut Vec<u8>,
    ) -> Result<()> {
        let RecordLocation { i, span, .. } = self.place;
        let file = self.set.file_of(&self.place);
        file.check_len(i, span)?;
        let parts = parts.iter().filter(|part| !part.is_empty());
        if let Some(part) = parts.clone().find(|part| u64::from(part.end) > span.payload_len) {
            let last = part.end - 1;
            let kind = ErrorKind::OutOfRange { what: "payload byte", i: last.into(), len: span.payload_len };
            return Err(Error::from(kind).at(self.at));
        }
        let append = |range, buf: &mut Vec<u8>| file.append(range, buf).map_err(|e| e.at(self.at));
        // Without their checksums, the header tells whether the bytes are the record's. The bytes of an
        // object do not change.
        if verify == Verify::Header && !self.set.has_objects() {
            let mut header = Vec::new();
            append(span.offset..span.offset + HEADER_LEN as u64, &mut header)?;
            // Without an error all bytes were appended.
            let header = header.first_chunk().copied().unwrap_or_default();
            check_header(&header, span.payload_len).map_err(|e| e.at(self.at))?;
        }
        let start = buf.len();
        let read = |buf: &mut Vec<u8>| parts.clone().try_for_each(|part| append(self.stored_part(part), buf));
        read(buf)?;
        if self.set.has_objects()
            && let Some(part) = wrong(buf.get(start..).unwrap_or_default())
            && file.source().is_ok_and(|source| source.distrust(&self.stored_part(&part)))
        {
            buf.truncate(start);
            read(buf)?;
        }
        Ok(())
    }

    /// Announces that parts of the payload will be read, or all of it, or takes the announcement back.
    pub fn announce(&self, parts: Option<&[Range<u32>]>, wanted: bool) {
        let file = self.set.file_of(&self.place);
        // A read will tell of a failure.
        let Ok(source) = file.source() else { return };
        let ranges: Vec<Range<u64>> = match parts {
            Some(parts) => parts.iter().map(|part| self.stored_part(part)).collect(),
            None => file.range(self.place.span).into_iter().collect(),
        };
        if wanted { source.want(&ranges) } else { source.forget(&ranges) }
    }

    /// Returns the byte range in the shard of a part of the payload.
    fn stored_part(&self, part: &Range<u32>) -> Range<u64> {
        // An index may have any offset; the read refuses a range beyond the file.
        let start = self.place.span.offset.saturating_add(HEADER_LEN as u64);
        start.saturating_add(part.start.into())..start.saturating_add(part.end.into())
    }
}
