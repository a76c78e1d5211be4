//! `ds.get_many`: records by number, in groups.
//!
//! A group is fetched and verified without the GIL, and then converted or copied while its bytes are in the
//! processor's cache.

use crate::error::{BindingError, Result};
use crate::headroom::{self, Headroom};
use crate::hooks;
use crate::ids::{self, Ids};
use crate::memory::ArrayData;
use crate::shared::{SharedDataset, borrowed_payload};
use crate::wait::{self, Progress, TimeSlice, Unit};
use ::numpy::{PyArray1, PyArrayMethods};
use pyo3::prelude::*;
use std::sync::Arc;
use tfseek::example::MessageKind;
use tfseek::io::Region;
use tfseek::{ErrorKind, Mapped, Record};

/// Maximum number of records of a group.
const GROUP_RECORDS: usize = 256;
/// Number of payload bytes after which no further record is added to a group: a part of the L2 cache.
const GROUP_BYTES: usize = 128 << 10;
/// Maximum number of records of a group from a store.
const REMOTE_RECORDS: usize = 1 << 16;

/// Returns the records with these numbers in a view as a list. `Dataset.get_many` has the documentation.
pub(crate) fn list<'py>(
    py: Python<'py>,
    shared: &Arc<SharedDataset>,
    view: &Ids,
    numbers: &Bound<'py, PyAny>,
    progress: Option<&Bound<'py, PyAny>>,
) -> Result<Bound<'py, PyAny>> {
    let ids = ids::numbers(py, view, numbers)?;
    let kind = shared.detached_kind(py)?;
    let mut items = headroom::room(ids.len())?;
    let mut headroom = Headroom::default();
    let mut add = |first: usize, group: &[Payload<'_>]| {
        for (payload, &i) in group.iter().zip(ids.iter().skip(first)) {
            headroom.take(payload.bytes().len())?;
            items.push(match kind {
                MessageKind::Other => headroom::bytes(py, payload.bytes())?.into_any(),
                _ => shared.item(py, i, payload.region()?)?,
            });
        }
        Ok(())
    };
    each(py, shared, &ids, progress, &mut add)?;
    Ok(headroom::list(py, items)?.into_any())
}

/// Copies the payloads of these records to `out`, one after the other, and returns their offsets.
pub(crate) fn into<'py>(
    py: Python<'py>,
    shared: &Arc<SharedDataset>,
    view: &Ids,
    numbers: &Bound<'py, PyAny>,
    out: &Bound<'py, PyAny>,
    progress: Option<&Bound<'py, PyAny>>,
) -> Result<Bound<'py, PyAny>> {
    let ids = ids::numbers(py, view, numbers)?;
    let out = hooks::byte_buffer(py)?.call1((out,))?;
    let refused = |found: String| {
        BindingError::type_error(format!(
            "out: expected a writable buffer of bytes, such as a uint8 array or a bytearray, found {found}"
        ))
    };
    let array = out.cast::<PyArray1<u8>>().map_err(|e| refused(e.to_string()))?;
    let mut offsets = headroom::room(ids.len() + 1)?;
    let mut end = 0usize;
    offsets.push(0);
    let mut full = None;
    let mut add = |_: usize, group: &[Payload<'_>]| {
        // Borrowed for one group only: a signal handler may use the buffer between two of them.
        let mut array = array.try_readwrite().map_err(|e| refused(e.to_string()))?;
        let bytes = array.as_slice_mut().map_err(|e| refused(e.to_string()))?;
        let size = bytes.len();
        for payload in group.iter().map(Payload::bytes) {
            let to = bytes.get_mut(end..).and_then(|left| left.get_mut(..payload.len()));
            let Some(to) = to else {
                full = Some(size);
                return Err(ErrorKind::Cancelled.into());
            };
            to.copy_from_slice(payload);
            end += payload.len();
            offsets.push(end as i64);
        }
        Ok(())
    };
    let copied = each(py, shared, &ids, progress, &mut add);
    if let Some(size) = full {
        return Err(too_small(py, shared, &ids, size));
    }
    copied?;
    Ok(ArrayData::Int64(offsets.into()).flat(py)?)
}

/// Returns the error for a buffer of `found` bytes that the records do not fit into.
#[cold]
fn too_small(py: Python<'_>, shared: &Arc<SharedDataset>, ids: &[u64], found: usize) -> BindingError {
    let add = |sum: u64, &i: &u64| Ok(sum.saturating_add(shared.payload_len(i)?));
    match py.detach(|| ids.iter().try_fold(0u64, add)) {
        Err(e) => BindingError::Tfseek(e),
        Ok(sum) => BindingError::value_error(format!(
            "out: expected at least {sum} bytes for these {} records, found {found}",
            ids.len()
        )),
    }
}

/// A payload that is borrowed from a map, or was read into memory.
enum Payload<'a> {
    Borrowed(Record<'a>),
    Read(Region),
}

impl Payload<'_> {
    fn bytes(&self) -> &[u8] {
        match self {
            Payload::Borrowed(record) => record.payload(),
            Payload::Read(region) => region,
        }
    }

    fn region(&self) -> tfseek::Result<Region> {
        match self {
            Payload::Borrowed(record) => borrowed_payload(*record),
            Payload::Read(region) => Ok(region.clone()),
        }
    }
}

/// Receives the payloads of a group, and the position of the first one in the list of numbers.
type Receiver<'f> = &'f mut dyn FnMut(usize, &[Payload<'_>]) -> Result<()>;

/// Calls `f` with the payloads of these records, in their order. Checks for signals periodically.
fn each<'py>(
    py: Python<'py>,
    shared: &Arc<SharedDataset>,
    ids: &[u64],
    progress: Option<&Bound<'py, PyAny>>,
    f: Receiver<'_>,
) -> Result<()> {
    let progress = Progress::new(py, progress, "reading", Unit::Records)?;
    wait::shown(progress, |progress| {
        let total = Some(ids.len() as u64);
        let report = |done: u64| Progress::report(progress, done, total);
        report(0)?;
        match &shared.mapped {
            Some(mapped) => each_borrowed(py, mapped, ids, &report, f)?,
            None => each_read(py, shared, ids, &report, f)?,
        }
        Ok(report(ids.len() as u64)?)
    })
}

fn each_borrowed(
    py: Python<'_>,
    mapped: &Mapped,
    ids: &[u64],
    report: &dyn Fn(u64) -> PyResult<()>,
    f: Receiver<'_>,
) -> Result<()> {
    let mut records = mapped.get_many(ids);
    let mut group = Vec::with_capacity(ids.len().min(GROUP_RECORDS));
    let mut slice = TimeSlice::new();
    let mut done = 0;
    while done < ids.len() {
        let over = py.detach(|| fill(&mut records, &mut group, &mut slice))?;
        f(done, &group)?;
        done += group.len();
        group.clear();
        if over {
            slice = TimeSlice::new();
            py.check_signals()?;
            report(done as u64)?;
        }
    }
    Ok(())
}

/// Fetches and verifies the records of the next group, at least one. Returns true if the time slice is over.
fn fill<'a>(
    records: &mut impl Iterator<Item = tfseek::Result<Record<'a>>>,
    group: &mut Vec<Payload<'a>>,
    slice: &mut TimeSlice,
) -> tfseek::Result<bool> {
    let mut bytes = 0;
    while bytes < GROUP_BYTES && group.len() < GROUP_RECORDS {
        let Some(record) = records.next().transpose()? else { break };
        group.push(Payload::Borrowed(record));
        bytes += record.payload().len();
        if slice.is_over(TimeSlice::RECORD + record.payload().len() as u64) {
            return Ok(true);
        }
    }
    Ok(false)
}

fn each_read(
    py: Python<'_>,
    shared: &Arc<SharedDataset>,
    ids: &[u64],
    report: &dyn Fn(u64) -> PyResult<()>,
    f: Receiver<'_>,
) -> Result<()> {
    let mut done = 0;
    while done < ids.len() {
        let (_, left) = ids.split_at(done);
        let read = |shared: &SharedDataset, ids: &[u64]| {
            let mut found = Vec::new();
            shared.payloads(ids, &mut TimeSlice::new(), &mut found)?;
            Ok::<_, tfseek::Error>(found.into_iter().map(Payload::Read).collect::<Vec<_>>())
        };
        let group = if shared.is_remote {
            let shared = Arc::clone(shared);
            let left: Vec<u64> = left.iter().take(REMOTE_RECORDS).copied().collect();
            wait::detached(py, true, move || read(&shared, &left))?
        } else {
            py.detach(|| read(shared, left))?
        };
        f(done, &group)?;
        done += group.len();
        py.check_signals()?;
        report(done as u64)?;
    }
    Ok(())
}
