//! The open dataset that views share: payloads, the kind of the records, and the arguments of `tfseek.open`.

use crate::error::{Result, raised};
use crate::example::PyExample;
use crate::headroom;
use crate::options::KindOption;
use crate::payload::{self, RecordPayload, RecordRef};
use crate::remote;
use crate::sequence::PySequenceExample;
use crate::wait::{self, TimeSlice};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use tfseek::column::DatasetColumn;
use tfseek::example::MessageKind;
use tfseek::io::Region;
use tfseek::{ErrorKind, Mapped, Record, SequenceExample, Warning};

/// The arguments of `open`, kept for `pickle` and `repr`.
pub(crate) struct OpenArguments {
    pub(crate) paths: Vec<PathBuf>,
    /// All but `storage_options`, and the protocol in place of a filesystem.
    arguments: Py<PyDict>,
    /// Names of the storage options.
    pub(crate) storage: Vec<String>,
    pub(crate) kind: KindOption,
    /// A function and its arguments that make the records again, if they are not the records of files.
    pub(crate) recipe: Option<Py<PyAny>>,
}

impl OpenArguments {
    pub(crate) fn new(
        paths: Vec<PathBuf>,
        arguments: Py<PyDict>,
        storage: Vec<String>,
        kind: KindOption,
    ) -> OpenArguments {
        OpenArguments { paths, arguments, storage, kind, recipe: None }
    }

    /// Returns the arguments of records that are made of the records of files.
    pub(crate) fn made_by(self, recipe: Py<PyAny>, kind: KindOption) -> OpenArguments {
        OpenArguments { recipe: Some(recipe), kind, ..self }
    }

    /// Returns the protocol of the argument `filesystem`.
    pub(crate) fn protocol(&self, py: Python<'_>) -> PyResult<Option<String>> {
        self.arguments.bind(py).get_item("filesystem")?.map_or(Ok(None), |protocol| protocol.extract())
    }

    pub(crate) fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        self.arguments.bind(py).copy()
    }

    pub(crate) fn clone_ref(&self, py: Python<'_>) -> OpenArguments {
        let paths = self.paths.clone();
        let storage = self.storage.clone();
        let recipe = self.recipe.as_ref().map(|recipe| recipe.clone_ref(py));
        OpenArguments {
            recipe,
            ..OpenArguments::new(paths, self.arguments.clone_ref(py), storage, self.kind)
        }
    }

    /// Returns the paths as the caller gave them, without the secrets of URLs.
    pub(crate) fn names(&self) -> String {
        let names: Vec<_> = self.paths.iter().map(|path| format!("{:?}", remote::shown(path))).collect();
        match names.as_slice() {
            [name] => name.clone(),
            names => format!("[{}]", names.join(", ")),
        }
    }
}

/// Number of payload bytes that are requested from a store in one step.
const REQUESTED_BYTES: u64 = 16 << 20;

/// Returns true if a shard is an object of a store.
pub(crate) fn is_remote(dataset: &tfseek::Dataset) -> bool {
    remote::has_url(dataset.shards().map(|shard| shard.path))
}

/// A dataset shared by its views.
pub(crate) struct SharedDataset {
    pub(crate) dataset: tfseek::Dataset,
    /// Columns requested when the dataset was opened.
    pub(crate) columns: Arc<[DatasetColumn]>,
    pub(crate) mapped: Option<Mapped>,
    pub(crate) arguments: OpenArguments,
    /// True if records may have to be requested from a store.
    pub(crate) is_remote: bool,
    kind: OnceLock<MessageKind>,
}

impl SharedDataset {
    pub(crate) fn new(
        dataset: tfseek::Dataset,
        columns: Vec<DatasetColumn>,
        arguments: OpenArguments,
    ) -> SharedDataset {
        let kind = arguments.kind.map_or_else(OnceLock::new, OnceLock::from);
        SharedDataset {
            mapped: Mapped::from_dataset(&dataset),
            is_remote: is_remote(&dataset),
            dataset,
            columns: columns.into(),
            arguments,
            kind,
        }
    }

    /// Returns the warnings from opening the dataset, and from loading its columns, which share theirs.
    pub(crate) fn warnings(&self) -> Vec<Warning> {
        let of_columns = self.columns.first().map_or(&[][..], |column| &column.warnings);
        [self.dataset.warnings(), of_columns].concat()
    }

    /// Returns the kind of the records, guessed from the first ones. A damaged record ends the guess without
    /// an error.
    pub(crate) fn kind(&self) -> MessageKind {
        // The cell is not locked during the guess, which a signal may leave to another thread.
        self.kind.get().copied().unwrap_or_else(|| {
            let guess = tfseek_tools::guess_kind(&self.dataset, 0..self.dataset.len());
            *self.kind.get_or_init(|| guess)
        })
    }

    /// Does the same as [`kind`](SharedDataset::kind), without the GIL.
    pub(crate) fn detached_kind(self: &Arc<Self>, py: Python<'_>) -> Result<MessageKind> {
        if let Some(known) = self.kind.get() {
            return Ok(*known);
        }
        let shared = Arc::clone(self);
        wait::detached(py, self.is_remote, move || Ok(shared.kind()))
    }

    /// Returns the payload of record `i`, as part of the map or read into new memory.
    pub(crate) fn payload(&self, i: u64) -> tfseek::Result<Region> {
        match &self.mapped {
            Some(mapped) => borrowed_payload(mapped.get(i)?),
            None => {
                let mut buf = Vec::new();
                let record = self.dataset.read(i, &mut buf)?;
                // Some shards of a set with compressed ones are mapped. Their records are not in the buffer.
                if record.region().is_some() {
                    return borrowed_payload(record);
                }
                let payload = record.payload();
                let start = payload.as_ptr().addr();
                let len = payload.len();
                let start = start.saturating_sub(buf.as_ptr().addr());
                let region = Region::from(buf);
                let part = region.slice(start..start + len);
                part.ok_or_else(|| std::io::Error::other("expected the record in its buffer").into())
            }
        }
    }

    /// Adds the payloads of these records to `found`, with prefetch, until the time slice is over. Adds at
    /// least one. Of a store, adds payloads of about [`REQUESTED_BYTES`] in all.
    ///
    /// # Errors
    /// The error of the first record that fails. The records before it are in `found`.
    pub(crate) fn payloads(
        &self,
        ids: &[u64],
        slice: &mut TimeSlice,
        found: &mut Vec<Region>,
    ) -> tfseek::Result<()> {
        let ids = if self.is_remote { self.requested(ids) } else { ids };
        let mut add = |payload: Region| {
            let over = !self.is_remote && slice.is_over(TimeSlice::RECORD + payload.len() as u64);
            found.push(payload);
            // Ends the iteration. It is not an error of this function.
            if over { Err(ErrorKind::Cancelled.into()) } else { Ok(()) }
        };
        let done = match &self.mapped {
            Some(mapped) => mapped.get_many(ids).try_for_each(|record| add(borrowed_payload(record?)?)),
            None => self.dataset.read_many(ids, |record| add(payload::copied(record.payload())?)),
        };
        match done {
            Err(e) if matches!(e.kind(), ErrorKind::Cancelled) => Ok(()),
            done => done,
        }
    }

    /// Returns the length of a record's payload from the index.
    pub(crate) fn payload_len(&self, i: u64) -> tfseek::Result<u64> {
        let (shard, record) = self.dataset.shard_of(i)?;
        Ok(self.dataset.index(shard)?.locate(record)?.payload_len)
    }

    /// Returns the first of these records, as many as are requested together.
    fn requested<'a>(&self, ids: &'a [u64]) -> &'a [u64] {
        let mut left = REQUESTED_BYTES;
        // A record that cannot be located is an error when it is read.
        let fits = |i: &&u64| {
            let has_room = left > 0;
            left = left.saturating_sub(self.payload_len(**i).unwrap_or(0));
            has_room
        };
        let count = ids.iter().take_while(fits).count();
        ids.get(..count).unwrap_or(ids)
    }

    /// Returns a record as a Python object.
    pub(crate) fn item<'py>(&self, py: Python<'py>, i: u64, payload: Region) -> PyResult<Bound<'py, PyAny>> {
        let kind = self.kind();
        // Bytes do not share their dataset with other threads.
        if kind == MessageKind::Other {
            return Ok(headroom::bytes(py, &payload)?.into_any());
        }
        item(py, kind, self.located(i, payload))
    }

    /// Returns the payload of record `i` with its source.
    pub(crate) fn located(&self, i: u64, bytes: Region) -> RecordPayload {
        RecordPayload { bytes, record: Some(RecordRef::Dataset { dataset: self.dataset.clone(), i }) }
    }
}

/// Refuses an Example with feature lists.
pub(crate) fn check(py: Python<'_>, kind: MessageKind, found: &RecordPayload) -> PyResult<()> {
    // A guess from the first records, or a mistake of the caller.
    if kind == MessageKind::Example
        && SequenceExample::new(&found.bytes).has_feature_lists()
        && let Err(e) = kind.check(&found.bytes)
    {
        return Err(raised(py, &found.locate(e)));
    }
    Ok(())
}

/// Returns a record of a kind as a Python object, after [`check`].
pub(crate) fn item(py: Python<'_>, kind: MessageKind, found: RecordPayload) -> PyResult<Bound<'_, PyAny>> {
    check(py, kind, &found)?;
    Ok(match kind {
        MessageKind::Example => Bound::new(py, PyExample(found))?.into_any(),
        MessageKind::SequenceExample => Bound::new(py, PySequenceExample(found))?.into_any(),
        MessageKind::Other => headroom::bytes(py, &found.bytes)?.into_any(),
    })
}

/// Returns the payload of a borrowed record as a part of the region that contains it.
pub(crate) fn borrowed_payload(record: Record<'_>) -> tfseek::Result<Region> {
    let payload = record.payload();
    let part =
        record.region().and_then(|(region, start)| region.slice(start..start.checked_add(payload.len())?));
    part.map_or_else(|| payload::copied(payload), Ok)
}
