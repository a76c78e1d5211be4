//! Memory that was filled becomes values that can be lent.

use super::column::{BytesColumn, Repr, Span, Values};
use super::compile::Part;
use super::decode::{Filled, Memory};
use super::pool::{Buf, Draft, Ring};
use super::row::Row;
use crate::io::Region;
use crate::schema::DType;

/// The memory of one slot, or of one column that needs its own.
#[derive(Default)]
pub(super) struct Rings {
    int64: Ring<i64>,
    float32: Ring<f32>,
    spans: Ring<Span>,
    data: Ring<u8>,
    offsets: Ring<i64>,
}

impl Rings {
    /// Memory for values of this type.
    pub(super) fn memory(&mut self, dtype: DType) -> Memory {
        match dtype {
            DType::Int64 => Memory::Int64(self.int64.draft()),
            DType::Float32 => Memory::Float32(self.float32.draft()),
            DType::Bytes => Memory::Bytes(self.spans.draft()),
        }
    }

    /// Lends the first `len` values.
    pub(super) fn seal<R: Row>(
        &mut self,
        memory: Memory,
        strings: Option<Strings>,
        len: usize,
        owners: &Owners<'_, R>,
    ) -> Values {
        match memory {
            Memory::Int64(draft) => Values::Int64(self.int64.lend(draft, len)),
            Memory::Float32(draft) => Values::Float32(self.float32.lend(draft, len)),
            Memory::Bytes(mut draft) => Values::Bytes(match owners.origins {
                Some(origins) => {
                    for span in draft.memory.iter_mut().take(len) {
                        let origin = origins.of.get(span.region as usize).copied().unwrap_or_default();
                        span.start += origin.base;
                        span.region = origin.region;
                    }
                    let spans = self.spans.lend(draft, len);
                    BytesColumn { repr: Repr::Spans { spans, regions: origins.regions.clone() } }
                }
                None => {
                    let mut strings = strings.unwrap_or_else(|| self.strings());
                    let rest = draft.memory.get(strings.len..len).unwrap_or_default();
                    strings.append(rest, |span| owners.bytes(span));
                    self.spans.lend(draft, 0);
                    self.lend(strings)
                }
            }),
        }
    }

    /// Memory for strings that are copied one behind the other.
    pub(super) fn strings(&mut self) -> Strings {
        Strings { data: self.data.draft(), offsets: self.offsets.draft(), len: 0, end: 0 }
    }

    fn lend(&mut self, mut strings: Strings) -> BytesColumn {
        strings.append(&[], |_| &[]);
        let Strings { data, offsets, len, end } = strings;
        BytesColumn::contiguous(self.data.lend(data, end), self.offsets.lend(offsets, len + 1))
    }

    /// The values in another order: value `order[k]` becomes value `k`.
    pub(super) fn permute(&mut self, values: &Values, order: &[u32]) -> Values {
        fn gather<T: Copy>(
            mut draft: Draft<T>,
            ring: &mut Ring<T>,
            from: &[T],
            order: &[u32],
            blank: T,
        ) -> Buf<T> {
            draft.grow(order.len(), order.len(), blank);
            for (to, &k) in draft.memory.iter_mut().zip(order) {
                *to = from[k as usize];
            }
            ring.lend(draft, order.len())
        }
        match values {
            Values::Int64(from) => Values::Int64(gather(self.int64.draft(), &mut self.int64, from, order, 0)),
            Values::Float32(from) => {
                Values::Float32(gather(self.float32.draft(), &mut self.float32, from, order, 0.0))
            }
            Values::Bytes(from) => Values::Bytes(match &from.repr {
                Repr::Spans { spans, regions } => {
                    let spans = gather(self.spans.draft(), &mut self.spans, spans, order, Span::default());
                    BytesColumn { repr: Repr::Spans { spans, regions: regions.clone() } }
                }
                Repr::Contiguous { .. } => {
                    let mut spans = self.spans.draft();
                    spans.grow(order.len(), order.len(), Span::default());
                    for (to, &k) in spans.memory.iter_mut().zip(order) {
                        let len = from.get(k as usize).unwrap_or_default().len() as u32;
                        *to = Span { start: k as usize, len, region: 0 };
                    }
                    let mut strings = self.strings();
                    strings.append(&spans.memory[..order.len()], |span| {
                        from.get(span.start).unwrap_or_default()
                    });
                    self.spans.lend(spans, 0);
                    self.lend(strings)
                }
            }),
        }
    }
}

/// Strings that were copied one behind the other.
#[derive(Default)]
pub(super) struct Strings {
    data: Draft<u8>,
    offsets: Draft<i64>,
    /// How many, and the bytes of all.
    len: usize,
    end: usize,
}

impl Strings {
    fn append<'a>(&mut self, spans: &[Span], bytes: impl Fn(Span) -> &'a [u8]) {
        let Strings { data, offsets, len, end } = self;
        let total: usize = spans.iter().map(|span| span.len as usize).sum();
        data.grow(*end + total, usize::MAX, 0);
        offsets.grow(*len + spans.len() + 1, usize::MAX, 0);
        offsets.memory[*len] = *end as i64;
        for (span, offset) in spans.iter().zip(&mut offsets.memory[*len + 1..]) {
            let value = bytes(*span);
            if let Some(to) = data.memory.get_mut(*end..*end + value.len()) {
                copy(value, to);
                *end += value.len();
            }
            *offset = *end as i64;
        }
        *len += spans.len();
    }
}

/// A copy between slices of one length. Most strings are short: two pieces that overlap, and no call.
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

/// Where the bytes of spans are while a batch is made.
pub(super) struct Owners<'a, R> {
    pub(super) rows: &'a [R],
    pub(super) part: &'a Part,
    /// Set if the batch is to refer to the memory of its rows.
    pub(super) origins: Option<&'a Origins>,
}

impl<'a, R: Row> Owners<'a, R> {
    fn bytes(&self, span: Span) -> &'a [u8] {
        let bytes = match self.rows.get(span.region as usize) {
            Some(row) => row.payload(),
            None => {
                let slot = self.part.slots.get((span.region as usize).saturating_sub(self.rows.len()));
                slot.and_then(|slot| slot.fallback.as_deref()).unwrap_or_default()
            }
        };
        bytes.get(span.start..span.start + span.len as usize).unwrap_or_default()
    }
}

impl Part {
    fn has_bytes(&self) -> bool {
        self.slots.iter().any(|slot| slot.dtype == DType::Bytes)
    }
}

/// Which region each row lies in, and from where on; behind the rows the defaults of the slots.
#[derive(Default)]
pub(super) struct Origins {
    of: Vec<Origin>,
    regions: Buf<Region>,
}

#[derive(Clone, Copy, Default)]
struct Origin {
    base: usize,
    region: u32,
}

/// Regions that were met last, by where they are: rows of a shuffled batch come from a few shards in turn.
const RECENT: usize = 16;

impl Origins {
    /// Finds the region of each row; false if one has none, or if nobody wants bytes.
    pub(super) fn find<R: Row>(&mut self, rows: &[R], part: &Part, ring: &mut Ring<Region>) -> bool {
        self.release();
        if rows.is_empty() || !part.has_bytes() {
            return false;
        }
        let mut regions = ring.draft();
        regions.memory.clear();
        let mut recent = [(0, 0); RECENT];
        for row in rows {
            let Some(region) = row.region() else { break };
            let payload = row.payload();
            let base = payload.as_ptr().addr().wrapping_sub(region.as_ptr().addr());
            // The payload must be the region's own bytes; an empty one may be anywhere.
            if base > region.len() || region.len() - base < payload.len() {
                match payload.is_empty() {
                    true => {}
                    false => break,
                }
            }
            let addr = std::ptr::from_ref(region).addr();
            let (known, id) = &mut recent[addr / 8 % RECENT];
            if *known != addr {
                (*known, *id) = (addr, regions.memory.len() as u32);
                regions.memory.push(region.clone());
            }
            self.of.push(Origin { base, region: *id });
        }
        let found = self.of.len() == rows.len();
        if found {
            for slot in &part.slots {
                let id = match &slot.fallback {
                    Some(region) => {
                        regions.memory.push(region.clone());
                        regions.memory.len() - 1
                    }
                    None => 0,
                };
                self.of.push(Origin { base: 0, region: id as u32 });
            }
        } else {
            regions.memory.clear();
        }
        let len = regions.memory.len();
        self.regions = ring.lend(regions, len);
        found
    }

    /// Lets go of the regions.
    pub(super) fn release(&mut self) {
        self.of.clear();
        self.regions = Buf::default();
    }
}

impl Filled {
    /// Copies the strings that were filled in since the last call, while they are still in the cache.
    pub(super) fn copy_strings<R: Row>(&mut self, rings: &mut Rings, owners: &Owners<'_, R>) {
        let Memory::Bytes(spans) = &self.memory else { return };
        let strings = self.strings.get_or_insert_with(|| rings.strings());
        let new = spans.memory.get(strings.len..self.used).unwrap_or_default();
        strings.append(new, |span| owners.bytes(span));
    }

    /// Lends what was filled in: `len` values.
    pub(super) fn seal<R: Row>(&mut self, rings: &mut Rings, len: usize, owners: &Owners<'_, R>) -> Values {
        let strings = self.strings.take();
        rings.seal(std::mem::take(&mut self.memory), strings, len, owners)
    }
}
