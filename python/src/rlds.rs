//! The native part of `tfseek.rlds`: steps of episodes, and windows over them.

use crate::dataset::PyDataset;
use crate::error::Result;
use crate::ids::Ids;
use crate::memory::ArrayData;
use crate::options::{Choice, ConditionText};
use crate::shared::{OpenArguments, SharedDataset, is_remote};
use crate::tfds::{PyPictures, TfdsDecoder, TfdsFeatures};
use crate::wait::{self, Progress, Unit};
use crate::warning::PyWarning;
use ::numpy::PyReadonlyArray2;
use pyo3::prelude::*;
use std::path::PathBuf;
use std::sync::Arc;
use tfseek::example::MessageKind;
use tfseek_rlds::{EpisodeOptions, Pad, Windows};
use tfseek_tfds::{
    EpisodeWindows, Episodes, Offsets, StatisticsOptions, StatisticsStyle, StepStatistics, WindowOptions,
};

/// One offset, or several.
#[derive(FromPyObject)]
pub(crate) enum PyOffsets {
    One(i64),
    Many(Vec<i64>),
}

/// Ranges of steps: episode, first step, and the one after the last.
type PyAnchors = Vec<(u64, u64, u64)>;

/// The records of windows, their features and decoder, and their locations.
type WindowParts = (PyDataset, Py<TfdsFeatures>, TfdsDecoder, WindowsCore);

/// The native part of `tfseek.rlds.Episodes`.
#[pyclass(frozen, module = "tfseek._tfseek")]
pub(crate) struct EpisodesCore {
    episodes: Episodes,
    arguments: OpenArguments,
    folder: PathBuf,
}

#[pymethods]
impl EpisodesCore {
    /// Finds the steps of records.
    #[new]
    #[pyo3(signature = (records, features, steps, memory, progress=None))]
    fn new(
        py: Python<'_>,
        records: &Bound<'_, PyDataset>,
        features: &Bound<'_, TfdsFeatures>,
        steps: Option<String>,
        memory: bool,
        progress: Option<&Bound<'_, PyAny>>,
    ) -> Result<EpisodesCore> {
        let records = records.get();
        let features = features.get();
        let progress = Progress::new(py, progress, "steps", Unit::Bytes)?;
        let shared = Arc::clone(&records.shared);
        let ids = records.view_ids();
        let tree = Arc::clone(&features.features);
        let episodes = wait::run(py, progress, records.shared.is_remote, move |call| {
            let dataset = match &ids {
                Some(ids) => shared.dataset.ranges(&ids.ranges())?,
                None => shared.dataset.clone(),
            };
            call.expect(dataset.known_bytes());
            let options = EpisodeOptions {
                memory,
                progress: Some(Arc::new(call.callback())),
                ..EpisodeOptions::default()
            };
            Ok(Episodes::new(&dataset, &tree, steps.as_deref(), &options)?)
        })?;
        let arguments = records.shared.arguments.clone_ref(py);
        Ok(EpisodesCore { episodes, arguments, folder: features.folder.clone() })
    }

    fn __len__(&self) -> usize {
        usize::try_from(self.episodes.steps().dataset().len()).unwrap_or(usize::MAX)
    }

    /// Number of steps of all episodes.
    #[getter]
    fn steps(&self) -> u64 {
        self.episodes.steps().steps()
    }

    /// Path of the feature whose items are steps.
    #[getter]
    fn path(&self) -> &str {
        self.episodes.path()
    }

    /// Number of steps of each episode, as int64.
    #[getter]
    fn lengths<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let starts = self.episodes.steps().starts().windows(2);
        let lengths: Vec<i64> = starts
            .map(|ends| match ends {
                [from, to] => (to - from).cast_signed(),
                _ => 0,
            })
            .collect();
        ArrayData::Int64(lengths.into()).flat(py)
    }

    #[getter]
    fn warnings(&self) -> Vec<PyWarning> {
        self.episodes.steps().warnings().iter().map(PyWarning::of).collect()
    }

    fn locate(&self, number: u64) -> Result<(u64, u64)> {
        Ok(self.episodes.steps().locate(number)?)
    }

    fn number(&self, episode: u64, step: u64) -> Result<u64> {
        Ok(self.episodes.steps().number(episode, step)?)
    }

    /// Returns windows. A key is its path, its name in the window, and offsets. `recipe` is a function and
    /// its arguments that make them again.
    #[allow(clippy::too_many_arguments, reason = "the arguments of `Episodes.windows`")]
    fn windows(
        &self,
        py: Python<'_>,
        keys: Vec<(String, String, PyOffsets)>,
        pad: Choice<Pad>,
        anchors: Option<PyAnchors>,
        pictures: PyPictures,
        recipe: Py<PyAny>,
    ) -> Result<WindowParts> {
        let names = keys.iter().map(|(key, name, _)| (key.clone(), name.clone())).collect();
        let keys = keys.into_iter().map(|(key, _, offsets)| match offsets {
            PyOffsets::One(offset) => (key, Offsets::One(offset)),
            PyOffsets::Many(offsets) => (key, Offsets::Many(offsets)),
        });
        let anchors = anchors.map(ranges_of);
        let PyPictures { encoded, pictures } = pictures;
        let options = WindowOptions { pad: pad.0, anchors, encoded, pictures, names };
        let keys = keys.collect::<Vec<_>>();
        let made = py.detach(|| self.episodes.windows(keys, &options))?;
        self.parts(py, made, recipe)
    }

    /// Returns the episodes with steps that satisfy a condition, as int64.
    #[pyo3(signature = (features, condition, progress=None))]
    fn select<'py>(
        &self,
        py: Python<'py>,
        features: &Bound<'py, TfdsFeatures>,
        condition: ConditionText,
        progress: Option<&Bound<'py, PyAny>>,
    ) -> Result<Bound<'py, PyAny>> {
        let condition = features.get().features.filter(&condition.0.parse()?)?;
        let progress = Progress::new(py, progress, "columns", Unit::Bytes)?;
        let episodes = self.episodes.clone();
        let requests = is_remote(episodes.steps().dataset());
        let found = wait::run(py, progress, requests, move |_| Ok(episodes.select(&condition)?))?;
        let found: Vec<i64> = found.into_iter().map(u64::cast_signed).collect();
        Ok(ArrayData::Int64(found.into()).flat(py)?)
    }

    /// Returns statistics of values over the steps of ranges, or over all.
    #[pyo3(signature = (keys, anchors, skip_nan, progress=None))]
    fn statistics(
        &self,
        py: Python<'_>,
        keys: Vec<String>,
        anchors: Option<PyAnchors>,
        skip_nan: bool,
        progress: Option<&Bound<'_, PyAny>>,
    ) -> Result<StatisticsCore> {
        let progress = Progress::new(py, progress, "statistics", Unit::Records)?;
        let episodes = self.episodes.clone();
        let anchors = anchors.map(ranges_of);
        let requests = is_remote(episodes.steps().dataset());
        let found = wait::run(py, progress, requests, move |call| {
            let options = StatisticsOptions {
                anchors,
                skip_nan,
                progress: Some(Arc::new(call.callback())),
                ..StatisticsOptions::default()
            };
            let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
            Ok(episodes.statistics(&keys, &options)?)
        })?;
        Ok(StatisticsCore(found))
    }

    /// Returns each step as a record. `recipe` is a function and its arguments that make them again.
    fn step_records(&self, py: Python<'_>, recipe: Py<PyAny>) -> Result<WindowParts> {
        let made = py.detach(|| self.episodes.step_records())?;
        self.parts(py, made, recipe)
    }
}

fn ranges_of(anchors: PyAnchors) -> Vec<(u64, std::ops::Range<u64>)> {
    anchors.into_iter().map(|(episode, from, to)| (episode, from..to)).collect()
}

/// Returns the statistics of arrays of two dimensions, in double precision.
#[pyfunction]
pub(crate) fn array_statistics(
    py: Python<'_>,
    arrays: Vec<(String, PyReadonlyArray2<'_, f64>)>,
    skip_nan: bool,
) -> Result<StatisticsCore> {
    let arrays: Vec<_> = arrays
        .iter()
        .map(|(name, array)| {
            let array = array.as_array();
            (name.as_str(), array.iter().copied().collect::<Vec<f64>>(), array.ncols())
        })
        .collect();
    Ok(StatisticsCore(py.detach(|| StepStatistics::of_arrays(arrays, skip_nan))?))
}

/// Statistics of values over steps.
#[pyclass(frozen, module = "tfseek._tfseek")]
pub(crate) struct StatisticsCore(StepStatistics);

#[pymethods]
impl StatisticsCore {
    /// Number of steps.
    #[getter]
    fn transitions(&self) -> u64 {
        self.0.transitions
    }

    /// Number of episodes that have one of the steps.
    #[getter]
    fn trajectories(&self) -> u64 {
        self.0.trajectories
    }

    /// The statistics of each value: mean, std, max, min, q01, q99.
    fn values(&self) -> Vec<(String, [Vec<f64>; 6])> {
        let each = self.0.keys.iter().map(|(key, found)| {
            let found = found.clone();
            (key.clone(), [found.mean, found.std, found.max, found.min, found.q01, found.q99])
        });
        each.collect()
    }

    /// Returns the JSON of Octo or OpenVLA. `names` gives values other names.
    fn to_json(&self, style: Choice<StatisticsStyle>, names: Vec<(String, String)>) -> String {
        let names: Vec<(&str, &str)> = names.iter().map(|(from, to)| (&**from, &**to)).collect();
        self.0.to_json(style.0, &names).to_string()
    }
}

impl EpisodesCore {
    fn parts(&self, py: Python<'_>, made: EpisodeWindows, recipe: Py<PyAny>) -> Result<WindowParts> {
        let dataset = made.windows().dataset().clone();
        let arguments =
            self.arguments.clone_ref(py).made_by(recipe.clone_ref(py), Some(MessageKind::Example));
        let len = dataset.len();
        let shared = SharedDataset::new(dataset, Vec::new(), arguments);
        let records = PyDataset::selected(shared, Ids::all(len));
        let features = TfdsFeatures::made_by(self.folder.clone(), made.features().clone(), recipe);
        let features = Py::new(py, features)?;
        let decoder = TfdsDecoder::compiled(features.bind(py).clone(), made.decode().clone())?;
        Ok((records, features, decoder, WindowsCore(made.windows().clone())))
    }
}

/// The locations of windows.
#[pyclass(frozen, module = "tfseek._tfseek")]
pub(crate) struct WindowsCore(Windows);

#[pymethods]
impl WindowsCore {
    /// Returns the episode and the step of the window at a Python index of a view.
    fn locate(&self, records: &Bound<'_, PyDataset>, k: i64) -> Result<(u64, u64)> {
        Ok(self.0.locate(records.get().ids.at_signed(k)?)?)
    }
}
