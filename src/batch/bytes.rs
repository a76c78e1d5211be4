//! Conversion of byte strings to values: spans of rows become spans of regions, or the bytes are copied.

use super::array::{ArrayPools, ArrayValues};
use super::column::{BytesColumn, BytesRepr, RegionSpan, Values};
use super::compile::{MapPlan, PlanSlot};
use super::pool::{Buf, BufMut, BufPool};
use super::row::Row;
use crate::io::Region;
use crate::schema::DType;
use std::collections::TryReserveError;

/// The memory of one slot's values while they are filled in.
pub(super) enum ValueMemory {
    Int64(BufMut<i64>),
    Float32(BufMut<f32>),
    /// Spans into the payloads of the batch. `region` is a row, or the number of rows plus the slot whose
    /// default it is. Padding and sparse order move them, and not bytes.
    Bytes(BufMut<RegionSpan>),
}

impl Default for ValueMemory {
    fn default() -> ValueMemory {
        ValueMemory::Int64(BufMut::default())
    }
}

/// The buffer pools of one slot, or of one column that does not use the memory of its slots.
#[derive(Default)]
pub(super) struct ValuePools {
    int64: BufPool<i64>,
    float32: BufPool<f32>,
    spans: BufPool<RegionSpan>,
    data: BufPool<u8>,
    offsets: BufPool<i64>,
    pub(super) arrays: ArrayPools,
}

impl ValuePools {
    /// Returns memory for values of this type.
    pub(super) fn memory(&mut self, dtype: DType) -> ValueMemory {
        match dtype {
            DType::Int64 => ValueMemory::Int64(self.int64.take()),
            DType::Float32 => ValueMemory::Float32(self.float32.take()),
            DType::Bytes => ValueMemory::Bytes(self.spans.take()),
        }
    }

    /// Shares the first `len` values. `strings` are the strings copied so far.
    ///
    /// # Errors
    /// There is not enough memory.
    pub(super) fn freeze<R: Row>(
        &mut self,
        memory: ValueMemory,
        strings: Option<CopiedStrings>,
        len: usize,
        bytes: &SpanBytes<'_, R>,
    ) -> Result<Values, TryReserveError> {
        Ok(match memory {
            ValueMemory::Int64(buf) => Values::Int64(self.int64.freeze(buf, len)),
            ValueMemory::Float32(buf) => Values::Float32(self.float32.freeze(buf, len)),
            ValueMemory::Bytes(mut buf) => Values::Bytes(match bytes.regions {
                Some(regions) => {
                    for span in buf.values.iter_mut().take(len) {
                        let row = regions.rows.get(span.region as usize).copied().unwrap_or_default();
                        span.start += row.start;
                        span.region = row.region;
                    }
                    let spans = self.spans.freeze(buf, len);
                    BytesColumn { repr: BytesRepr::Spans { spans, regions: regions.regions.clone() } }
                }
                None => {
                    let mut strings = strings.unwrap_or_else(|| self.strings());
                    let uncopied = buf.values.get(strings.len..len).unwrap_or_default();
                    strings.append(uncopied, |span| bytes.get(span))?;
                    self.spans.freeze(buf, 0);
                    self.share_strings(strings)?
                }
            }),
        })
    }

    /// Returns int64 values of an array as integers.
    ///
    /// # Errors
    /// There is not enough memory.
    pub(super) fn integers(&mut self, array: &ArrayValues) -> Result<Values, TryReserveError> {
        let from: &[i64] = array.as_slice().unwrap_or_default();
        let mut buf = self.int64.take();
        buf.grow(from.len(), from.len(), 0)?;
        for (to, value) in buf.values.iter_mut().zip(from) {
            *to = *value;
        }
        Ok(Values::Int64(self.int64.freeze(buf, from.len())))
    }

    /// Takes the spans of arrays back, which were read.
    pub(super) fn reuse(&mut self, memory: ValueMemory) {
        if let ValueMemory::Bytes(buf) = memory {
            self.spans.freeze(buf, 0);
        }
    }

    /// Returns memory for contiguous copies of strings.
    pub(super) fn strings(&mut self) -> CopiedStrings {
        CopiedStrings { data: self.data.take(), offsets: self.offsets.take(), len: 0, end: 0 }
    }

    fn share_strings(&mut self, mut strings: CopiedStrings) -> Result<BytesColumn, TryReserveError> {
        strings.append(&[], |_| &[])?;
        let CopiedStrings { data, offsets, len, end } = strings;
        Ok(BytesColumn::contiguous(self.data.freeze(data, end), self.offsets.freeze(offsets, len + 1)))
    }

    /// Returns the numbers of columns of `rows` rows side by side, row after row. All columns have one type, and
    /// are no strings.
    ///
    /// # Errors
    /// There is not enough memory.
    pub(super) fn stack<'a>(
        &mut self,
        columns: impl ExactSizeIterator<Item = &'a Values> + Clone,
        rows: usize,
    ) -> Result<Values, TryReserveError> {
        fn stacked<'a, T: Copy + Default + 'a>(
            pool: &mut BufPool<T>,
            columns: impl ExactSizeIterator<Item = &'a [T]>,
            rows: usize,
        ) -> Result<Buf<T>, TryReserveError> {
            let width = columns.len();
            let len = rows.saturating_mul(width);
            let mut buf = pool.take();
            buf.grow(len, len, T::default())?;
            for (k, from) in columns.enumerate() {
                let to = buf.values.iter_mut().take(len).skip(k).step_by(width);
                to.zip(from).for_each(|(to, value)| *to = *value);
            }
            Ok(pool.freeze(buf, len))
        }
        Ok(match columns.clone().next().and_then(Values::int64) {
            Some(_) => {
                let columns = columns.map(|values| values.int64().unwrap_or_default());
                Values::Int64(stacked(&mut self.int64, columns, rows)?)
            }
            None => {
                let columns = columns.map(|values| values.float32().unwrap_or_default());
                Values::Float32(stacked(&mut self.float32, columns, rows)?)
            }
        })
    }

    /// Returns the values in another order: value `order[k]` becomes value `k`.
    ///
    /// # Errors
    /// There is not enough memory.
    pub(super) fn permute(&mut self, values: &Values, order: &[u32]) -> Result<Values, TryReserveError> {
        #[expect(clippy::indexing_slicing, reason = "each number in `order` is below the number of values")]
        fn gather<T: Copy + Default>(
            pool: &mut BufPool<T>,
            from: &[T],
            order: &[u32],
        ) -> Result<Buf<T>, TryReserveError> {
            let mut buf = pool.take();
            buf.grow(order.len(), order.len(), T::default())?;
            for (to, &k) in buf.values.iter_mut().zip(order) {
                *to = from[k as usize];
            }
            Ok(pool.freeze(buf, order.len()))
        }
        Ok(match values {
            Values::Int64(from) => Values::Int64(gather(&mut self.int64, from, order)?),
            Values::Float32(from) => Values::Float32(gather(&mut self.float32, from, order)?),
            // Only sparse columns have another order, and their values are values of lists.
            Values::Array(values) => Values::Array(values.clone()),
            Values::Bytes(from) => Values::Bytes(match &from.repr {
                BytesRepr::Spans { spans, regions } => {
                    let spans = gather(&mut self.spans, spans, order)?;
                    BytesColumn { repr: BytesRepr::Spans { spans, regions: regions.clone() } }
                }
                BytesRepr::Contiguous { .. } => {
                    let mut spans = self.spans.take();
                    spans.grow(order.len(), order.len(), RegionSpan::default())?;
                    for (to, &k) in spans.values.iter_mut().zip(order) {
                        let len = from.get(k as usize).unwrap_or_default().len() as u32;
                        *to = RegionSpan { start: k as usize, len, region: 0 };
                    }
                    let mut strings = self.strings();
                    let ordered = spans.values.get(..order.len()).unwrap_or_default();
                    strings.append(ordered, |span| from.get(span.start).unwrap_or_default())?;
                    self.spans.freeze(spans, 0);
                    self.share_strings(strings)?
                }
            }),
        })
    }
}

/// Contiguous copies of strings.
#[derive(Default)]
pub(super) struct CopiedStrings {
    data: BufMut<u8>,
    offsets: BufMut<i64>,
    /// Number of strings.
    pub(super) len: usize,
    /// Number of bytes of all strings.
    end: usize,
}

impl CopiedStrings {
    /// Appends copies of the strings at `spans`.
    ///
    /// # Errors
    /// There is not enough memory.
    #[inline]
    #[expect(clippy::indexing_slicing, reason = "`grow` makes room for all offsets")]
    pub(super) fn append<'a>(
        &mut self,
        spans: &[RegionSpan],
        bytes: impl Fn(RegionSpan) -> &'a [u8],
    ) -> Result<(), TryReserveError> {
        let CopiedStrings { data, offsets, len, end } = self;
        let total: u64 = spans.iter().map(|span| u64::from(span.len)).sum();
        // A saturated size cannot be allocated.
        let total = usize::try_from(total).unwrap_or(usize::MAX);
        data.grow(end.saturating_add(total), usize::MAX, 0)?;
        offsets.grow(*len + spans.len() + 1, usize::MAX, 0)?;
        offsets.values[*len] = *end as i64;
        for (span, offset) in spans.iter().zip(&mut offsets.values[*len + 1..]) {
            let value = bytes(*span);
            if let Some(to) = data.values.get_mut(*end..*end + value.len()) {
                copy(value, to);
                *end += value.len();
            }
            *offset = *end as i64;
        }
        *len += spans.len();
        Ok(())
    }
}

/// Copies between slices of equal length. Short strings, which are the most common, are copied as two
/// overlapping chunks, without a call to `memcpy`.
#[inline]
fn copy(from: &[u8], to: &mut [u8]) {
    fn ends<const N: usize>(from: &[u8], to: &mut [u8]) {
        if let (Some(first), Some(last)) = (from.first_chunk::<N>(), from.last_chunk::<N>()) {
            to.first_chunk_mut().into_iter().for_each(|to| *to = *first);
            to.last_chunk_mut().into_iter().for_each(|to| *to = *last);
        }
    }
    match from.len() {
        4..8 => ends::<4>(from, to),
        8..=16 => ends::<8>(from, to),
        17..=32 => ends::<16>(from, to),
        _ => to.copy_from_slice(from),
    }
}

/// Resolves spans to bytes while a batch is assembled.
pub(super) struct SpanBytes<'a, R> {
    pub(super) rows: &'a [R],
    pub(super) part: &'a MapPlan,
    /// Set if the batch borrows the memory of its rows.
    pub(super) regions: Option<&'a RowRegions>,
}

impl<'a, R: Row> SpanBytes<'a, R> {
    /// Returns the bytes of a span.
    #[inline]
    pub(super) fn get(&self, span: RegionSpan) -> &'a [u8] {
        let bytes = match self.rows.get(span.region as usize) {
            Some(row) => row.payload(),
            None => {
                let slot = self.part.slots.get(span.region as usize - self.rows.len());
                slot.and_then(|slot| slot.fallback.as_deref()).unwrap_or_default()
            }
        };
        bytes.get(span.start..span.start + span.len as usize).unwrap_or_default()
    }
}

/// The region of each row, followed by the regions of the default values of the slots.
#[derive(Default)]
pub(super) struct RowRegions {
    rows: Vec<RowRegion>,
    regions: Buf<Region>,
}

/// The region of one row.
#[derive(Clone, Copy, Default)]
struct RowRegion {
    /// Offset of the payload in the region.
    start: usize,
    region: u32,
}

/// Size of the cache of recent regions. The rows of a shuffled batch come from a few shards at a time.
const RECENT_REGIONS: usize = 16;

impl RowRegions {
    /// Finds the region of each row. Returns false if a row has none, or if no slot has byte strings.
    pub(super) fn find<R: Row>(&mut self, rows: &[R], part: &MapPlan, pool: &mut BufPool<Region>) -> bool {
        self.release();
        if rows.is_empty() || !part.slots.iter().any(PlanSlot::has_strings) {
            return false;
        }
        let mut regions = pool.take();
        regions.values.clear();
        let mut recent = [(0, 0); RECENT_REGIONS];
        for row in rows {
            let Some((region, start)) = row.region() else { break };
            // The payload must be a slice of the region itself. An empty payload may have any address, but
            // no offset beyond the region.
            let payload = row.payload();
            let in_region = region.get(start..).and_then(|bytes| bytes.get(..payload.len()));
            if in_region.is_none_or(|bytes| !payload.is_empty() && !std::ptr::eq(bytes, payload)) {
                break;
            }
            // The address only identifies the region; it is never dereferenced.
            let addr = std::ptr::from_ref(region).addr();
            #[expect(clippy::indexing_slicing, reason = "the remainder is below the length of the array")]
            let (cached_addr, id) = &mut recent[addr / 8 % RECENT_REGIONS];
            if *cached_addr != addr {
                (*cached_addr, *id) = (addr, regions.values.len() as u32);
                regions.values.push(region.clone());
            }
            self.rows.push(RowRegion { start, region: *id });
        }
        let found = self.rows.len() == rows.len();
        if found {
            for slot in &part.slots {
                let region = if slot.fallback.is_some() { regions.values.len() as u32 } else { 0 };
                regions.values.extend(slot.fallback.clone());
                self.rows.push(RowRegion { start: 0, region });
            }
        } else {
            regions.values.clear();
        }
        let len = regions.values.len();
        self.regions = pool.freeze(regions, len);
        found
    }

    /// Releases the regions.
    pub(super) fn release(&mut self) {
        self.rows.clear();
        self.regions = Buf::default();
    }
}

#[cfg(test)]
mod tests {
    use crate::batch::{BatchParser, Row};
    use crate::example::ExampleBuilder;
    use crate::io::Region;
    use crate::schema::{DType, FeatureSpec, Schema};

    /// A payload of `len` bytes, and where it says to be.
    struct PlacedRow {
        region: Region,
        start: usize,
        len: usize,
    }

    impl Row for PlacedRow {
        fn payload(&self) -> &[u8] {
            self.region.get(self.start..self.start + self.len).unwrap_or_default()
        }

        fn region(&self) -> Option<(&Region, usize)> {
            Some((&self.region, self.start))
        }
    }

    #[test]
    fn an_empty_payload_beyond_its_region_is_not_borrowed() {
        let spec = FeatureSpec::fixed_len_sequence(&[], DType::Bytes);
        let schema = Schema::example().feature("x", spec).build().unwrap();
        let payload = ExampleBuilder::new().bytes("x", [b"ab"]).encode().unwrap();
        let len = payload.len();
        let rows = [
            PlacedRow { region: Vec::<u8>::new().into(), start: 7, len: 0 },
            PlacedRow { region: payload.into(), start: 0, len },
        ];
        let batch = BatchParser::new(&schema).parse(&rows).unwrap();
        let strings = batch.bytes("x").unwrap();
        let got = [strings.get(0), strings.get(1)];
        assert_eq!(got, [Some(&b""[..]), Some(&b"ab"[..])]);
        assert_eq!(strings.iter().map(Some).collect::<Vec<_>>(), got);
    }
}
