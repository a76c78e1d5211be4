//! `tfseek.view`: the viewer of the command `tfseek view`, in a thread of this process.

use crate::dataset::PyDataset;
use crate::error::{BindingError, Result};
use crate::headroom;
use crate::wait::{self, locked};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use tfseek::{Filter, Schema};
use tfseek_image::DecoderPool;
use tfseek_view::{CommandWords, ViewError, ViewOptions, ViewSet, Viewer, ViewerHandle};

/// A viewer that runs. `tfseek.View` wraps it.
#[pyclass(frozen, module = "tfseek")]
pub(crate) struct ViewCore {
    /// Link to the page, with the token.
    #[pyo3(get)]
    url: String,
    /// Link that is valid once and for a minute.
    #[pyo3(get)]
    one_time_url: String,
    /// Port that the viewer listens on.
    #[pyo3(get)]
    port: u16,
    handle: ViewerHandle,
    thread: Mutex<Option<JoinHandle<()>>>,
    pid: u32,
}

#[pymethods]
impl ViewCore {
    /// Ends the viewer and its threads. A forked child has none.
    fn close(&self, py: Python<'_>) {
        if self.pid != std::process::id() {
            return;
        }
        py.detach(|| {
            self.handle.stop();
            let thread = locked(&self.thread).take();
            // A panic of the thread has been printed.
            let _ = thread.map(JoinHandle::join);
        });
    }
}

/// Returns the font of the viewer's page.
#[pyfunction]
pub(crate) fn page_font() -> &'static str {
    tfseek_view::font()
}

/// Returns a size in bytes as text.
#[pyfunction]
pub(crate) fn size_text(bytes: u64) -> String {
    tfseek_tools::sizes::text(bytes)
}

/// Returns a number as text, with four digits or more.
#[pyfunction]
pub(crate) fn brief(value: f64) -> String {
    tfseek_tools::brief(value)
}

/// Returns the type of an image that browsers show, and its bytes, which a text in base64 may hold. `None`
/// for other bytes, and for an image of more than `limit` bytes.
#[pyfunction]
pub(crate) fn shown_image<'py>(
    py: Python<'py>,
    value: &[u8],
    limit: usize,
) -> PyResult<Option<(&'static str, Bound<'py, PyBytes>)>> {
    let found = tfseek_view::shown_image(value.get(..limit.saturating_mul(2)).unwrap_or(value));
    let found = found.filter(|(_, image)| image.len() <= limit);
    found.map(|(name, image)| Ok((name, headroom::bytes(py, &image)?))).transpose()
}

/// A set: a dataset, its title, and the words of the command that open it.
type NamedSet<'py> = (PyRef<'py, PyDataset>, String, String);

/// Starts a viewer of one or two sets. `tfseek.view` calls it.
#[pyfunction]
pub(crate) fn view(
    py: Python<'_>,
    sets: Vec<NamedSet<'_>>,
    condition: Option<&str>,
    roles: Option<&str>,
    port: Option<u16>,
    threads: Option<usize>,
    schema: Option<&str>,
) -> Result<ViewCore> {
    let mut given = Vec::new();
    let mut requests = false;
    for (ds, name, paths) in sets {
        let len = ds.shared.dataset.len();
        if !ds.ids.is_all(len) {
            let found = ds.ids.len();
            let message = format!(
                "expected a dataset with all of its {len} records, found {found} of them: use where="
            );
            return Err(BindingError::Text(message));
        }
        let words = CommandWords { paths, ..CommandWords::default() };
        let kind = ds.shared.arguments.kind;
        requests |= ds.shared.is_remote;
        given.push((ds.shared.dataset.clone(), name, kind, words));
    }
    // A set reads the features of its folder.
    let views = wait::detached(py, requests, move || {
        let set = |(dataset, name, kind, words)| Ok(ViewSet::new(dataset, name)?.kind(kind).words(words));
        given.into_iter().map(set).collect::<tfseek::Result<Vec<_>>>()
    })?;
    let condition = condition.map(str::parse::<Filter>).transpose()?;
    let failed = |e: ViewError| BindingError::Text(e.to_string());
    let mut options = ViewOptions::default();
    options.condition = condition;
    options.threads = threads;
    options.port = port;
    let schema = schema.map(Schema::from_json).transpose()?;
    options.fed = schema.map(|schema| (schema, Arc::new(DecoderPool::default()) as _));
    if let Some(json) = roles {
        options = options.roles(json).map_err(failed)?;
    }
    // It reads the first records.
    let bound = wait::detached(py, requests, move || Ok(Viewer::bind(views, &options)))?;
    let viewer = bound.map_err(failed)?;
    let url = viewer.url();
    let port = viewer.address().port();
    let handle = viewer.handle();
    let one_time_url = viewer.one_time_url().unwrap_or_else(|_| url.clone());
    let thread = thread::Builder::new().name("tfseek-view".into()).spawn(move || viewer.serve());
    let thread = Mutex::new(Some(thread.map_err(|e| BindingError::Text(e.to_string()))?));
    Ok(ViewCore { url, one_time_url, port, handle, thread, pid: std::process::id() })
}
