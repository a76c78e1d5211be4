//! Dicts with the keys of the columns, and repeated strings, that a parser or a loader keeps for its next
//! batches.

use crate::repeated::StringCache;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};
use std::sync::{Mutex, MutexGuard, TryLockError};

/// Maximum number of forms of a dict. The sources of a mix may have different columns.
const MAX: usize = 16;

/// The columns of a dict, by their names.
pub(crate) struct DictForm {
    names: Vec<Box<str>>,
    /// A dict of all keys, with `None` for each. A copy has its size from the start.
    keys: Py<PyDict>,
    /// The key and the strings of each column.
    pub(crate) columns: Vec<(Py<PyString>, StringCache)>,
}

impl DictForm {
    fn new<'a>(py: Python<'_>, names: impl Iterator<Item = &'a str>) -> PyResult<DictForm> {
        let names: Vec<Box<str>> = names.map(Box::from).collect();
        let keys = PyDict::new(py);
        let mut columns = Vec::with_capacity(names.len());
        for name in &names {
            let key = PyString::intern(py, name);
            keys.set_item(&key, py.None())?;
            columns.push((key.unbind(), StringCache::default()));
        }
        Ok(DictForm { names, keys: keys.unbind(), columns })
    }

    fn has<'a>(&self, names: impl ExactSizeIterator<Item = &'a str>) -> bool {
        names.len() == self.names.len() && names.zip(&self.names).all(|(name, known)| *name == **known)
    }

    /// Returns a new dict of all keys, with `None` for each.
    pub(crate) fn dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        self.keys.bind(py).copy()
    }
}

/// The forms of a dict.
#[derive(Default)]
pub(crate) struct DictForms(Vec<DictForm>);

impl DictForms {
    /// Returns the form with these names.
    #[expect(clippy::indexing_slicing, reason = "the position is that of a form")]
    pub(crate) fn of<'a, N: ExactSizeIterator<Item = &'a str>>(
        &mut self,
        py: Python<'_>,
        names: impl Fn() -> N,
    ) -> PyResult<&mut DictForm> {
        let position = match self.0.iter().position(|form| form.has(names())) {
            Some(position) => position,
            None => {
                let form = DictForm::new(py, names())?;
                self.0.truncate(MAX - 1);
                self.0.push(form);
                self.0.len() - 1
            }
        };
        Ok(&mut self.0[position])
    }
}

/// The forms of batches: of features, and of feature lists.
#[derive(Default)]
pub(crate) struct BatchForms {
    pub(crate) features: DictForms,
    pub(crate) lists: DictForms,
}

/// The forms of a parser or a loader.
///
/// Only one call uses them at a time, and no call waits for them: one that finds them in use, in another
/// thread or in a finalizer that runs meanwhile, works without. So does every call of a child that was forked
/// while another thread used them.
#[derive(Default)]
pub(crate) struct SharedForms(Mutex<BatchForms>);

impl SharedForms {
    /// Returns the forms, or `None` if they are in use.
    pub(crate) fn take(&self) -> Option<MutexGuard<'_, BatchForms>> {
        match self.0.try_lock() {
            Ok(forms) => Some(forms),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }
}
