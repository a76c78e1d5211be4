//! A store of the objects of a filesystem of fsspec.

use crate::calls::{CallAnswer, CallQueue, CallTable, Calls, SingleCall};
use crate::ranges::{CallFailure, FailureCause, RangeAnswer};
use crate::wait::locked;
use pyo3::prelude::*;
use std::collections::HashSet;
use std::fmt;
use std::io;
use std::ops::Range;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use tfseek::error::{Error, ErrorKind, IndexError, Result};
use tfseek::io::{Fetched, Listing, Object, PerProcess, Region, Source, Stamp, Store, bare_url};

/// The objects of a filesystem. It writes nothing.
///
/// Calls are made by threads of Python, which begin with the first call in a process. A forked process makes
/// a new filesystem.
pub(crate) struct FilesystemStore(Arc<SharedFilesystem>);

struct SharedFilesystem {
    /// A `tfseek._fsspec.Filesystem`.
    filesystem: Py<PyAny>,
    /// The options that select its objects.
    place: String,
    /// The most parts of one call.
    parts: usize,
    calls: PerProcess<ProcessCalls>,
    /// Number of objects that were opened.
    opened: AtomicU64,
}

/// The calls of one process. They end when they are dropped.
#[derive(Default)]
struct ProcessCalls(Mutex<Option<Arc<Calls>>>);

impl Drop for ProcessCalls {
    fn drop(&mut self) {
        if let Some(calls) = self.0.get_mut().unwrap_or_else(PoisonError::into_inner).take() {
            calls.end(CallFailure::other("the dataset was dropped"));
        }
    }
}

impl SharedFilesystem {
    /// Returns the calls of this process. Its threads begin if they did not before.
    fn calls(&self) -> Arc<Calls> {
        let mut calls = locked(&self.calls.own().0);
        calls.get_or_insert_with(|| Arc::new(Calls::new(self.parts))).clone()
    }

    /// Returns the calls of this process, whose threads are there. No lock is held while the GIL is taken.
    fn started(&self) -> Arc<Calls> {
        let calls = self.calls();
        if calls.start() {
            let queue = CallQueue(calls.clone());
            let start = |py: Python<'_>| self.filesystem.bind(py).call_method1("start", (queue,)).map(drop);
            let failed = |text: String| calls.end(CallFailure::other(text));
            match Python::try_attach(start) {
                Some(Ok(())) => {}
                Some(Err(e)) => failed(format!("the threads of the filesystem did not start: {e}")),
                None => failed("the interpreter ends".into()),
            }
        }
        calls
    }
}

impl FilesystemStore {
    /// Makes a store of a `tfseek._fsspec.Filesystem`. Nothing is called.
    pub(crate) fn new(filesystem: Py<PyAny>, place: String, parts: usize) -> FilesystemStore {
        FilesystemStore(Arc::new(SharedFilesystem {
            filesystem,
            place,
            parts: parts.max(1),
            calls: PerProcess::default(),
            opened: AtomicU64::new(0),
        }))
    }
}

impl fmt::Debug for FilesystemStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FilesystemStore").finish_non_exhaustive()
    }
}

impl CallFailure {
    /// Returns the error, which has no path.
    fn error(&self) -> Error {
        let kind = match self.cause {
            FailureCause::Cancelled => return ErrorKind::Cancelled.into(),
            FailureCause::Stale => return IndexError::Stale { reason: (&*self.text).into() }.into(),
            FailureCause::Missing => io::ErrorKind::NotFound,
            FailureCause::Denied => io::ErrorKind::PermissionDenied,
            FailureCause::Unsupported => io::ErrorKind::Unsupported,
            FailureCause::Other => io::ErrorKind::Other,
        };
        io::Error::new(kind, &*self.text).into()
    }
}

impl Store for FilesystemStore {
    fn list(&self, prefix: &str, deep: bool) -> Result<Listing> {
        let call = SingleCall::List { prefix: prefix.into(), deep };
        match self.0.started().call(call) {
            Ok(CallAnswer::Listed(listing)) => Ok(listing),
            Ok(CallAnswer::Failed(failure)) | Err(failure) => Err(failure.error()),
            Ok(CallAnswer::Small(_)) => Err(other_answer()),
        }
    }

    fn open(&self, object: &Object) -> Result<Arc<dyn Source>> {
        Ok(Arc::new(FilesystemObject {
            id: self.0.opened.fetch_add(1, Relaxed),
            shared: self.0.clone(),
            name: bare_url(&object.url).into(),
            object: Arc::new(object.clone()),
            distrusted: Mutex::default(),
        }))
    }

    fn small(&self, url: &str, limit: u64) -> Result<Option<(Region, Stamp)>> {
        let here = |e: Error| e.in_file(Path::new(&bare_url(url)));
        match self.0.started().call(SingleCall::Small { url: url.into(), limit }) {
            Ok(CallAnswer::Small(Some((_, stamp)))) if stamp.size > limit => {
                Err(here(ErrorKind::TooLarge { len: stamp.size.into(), limit }.into()))
            }
            Ok(CallAnswer::Small(found)) => Ok(found),
            Ok(CallAnswer::Failed(failure)) | Err(failure) => Err(here(failure.error())),
            Ok(CallAnswer::Listed(_)) => Err(other_answer()),
        }
    }

    fn put(&self, _: &str, _: &[u8]) -> Result<()> {
        Err(io::Error::from(io::ErrorKind::Unsupported).into())
    }

    fn place(&self, _: &str) -> String {
        self.0.place.clone()
    }
}

#[cold]
fn other_answer() -> Error {
    io::Error::other("expected the answer to another call of the filesystem").into()
}

/// An object of one version. Announced ranges are kept until they are read.
struct FilesystemObject {
    shared: Arc<SharedFilesystem>,
    id: u64,
    name: Box<str>,
    object: Arc<Object>,
    /// The ranges that failed a checksum and were asked for again.
    distrusted: Mutex<HashSet<Range<u64>>>,
}

impl fmt::Debug for FilesystemObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("FilesystemObject").field(&self.name).finish()
    }
}

impl FilesystemObject {
    /// Returns the calls of this process, which know this object.
    fn calls(&self) -> Arc<Calls> {
        let calls = self.shared.started();
        calls.add(self.id, &self.object);
        calls
    }

    fn part(&self, range: &Range<u64>, buf: &mut Vec<u8>) -> Result<Fetched> {
        let calls = self.calls();
        calls.change(|ranges| ranges.begin(self.id, range));
        let take = |state: &mut CallTable| match state.ranges.take(self.id, range) {
            RangeAnswer::Wait => None,
            RangeAnswer::Here(parts) => Some(Ok(parts)),
            RangeAnswer::Failed(failure) => Some(Err(failure)),
        };
        let answer = calls.wait(take, |state| state.ranges.give_up(self.id, range));
        let parts = answer.and_then(|answer| answer).map_err(|failure| failure.error())?;
        Fetched::from_parts(&parts, buf)
    }
}

impl Source for FilesystemObject {
    fn name(&self) -> &str {
        &self.name
    }

    fn len(&self) -> u64 {
        self.object.stamp.size
    }

    fn stamp(&self) -> Result<Stamp> {
        Ok(self.object.stamp.clone())
    }

    fn want(&self, ranges: &[Range<u64>]) {
        self.calls().change(|table| table.want(self.id, ranges, self.len()));
    }

    fn fetch(&self, range: Range<u64>, buf: &mut Vec<u8>) -> Result<Fetched> {
        let here = |e: Error| e.in_file(Path::new(&*self.name));
        let need = range.end.saturating_sub(range.start);
        if range.end > self.len() {
            let have = self.len().saturating_sub(range.start);
            return Err(here(ErrorKind::Truncated { need, have }.into()));
        }
        if need == 0 {
            return Ok(Fetched::Appended);
        }
        self.part(&range, buf).map_err(here)
    }

    fn forget(&self, ranges: &[Range<u64>]) {
        self.calls().change(|table| table.forget(self.id, ranges));
    }

    fn distrust(&self, range: &Range<u64>) -> bool {
        // A forked child may have a copy of the lock that is held for ever.
        let is_new = self.distrusted.try_lock().is_ok_and(|mut known| known.insert(range.clone()));
        if is_new {
            self.calls().change(|table| table.drop_here(self.id, range));
        }
        is_new
    }
}

impl Drop for FilesystemObject {
    fn drop(&mut self) {
        self.shared.calls().remove(self.id);
    }
}
