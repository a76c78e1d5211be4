//! The sources of a loader: one dataset, or a `tfseek.Mix` of several.

use crate::dataset::PyDataset;
use crate::error::{BindingError, Result, of_class};
use crate::ids::Ids;
use crate::options::Choice;
use crate::schema::{PySchema, decoding, open_pictures};
use crate::shared::is_remote;
use crate::tfds::TfdsDecoder;
use crate::tfds_batch::Nesting;
use pyo3::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use tfseek::LoaderOptions;
use tfseek::loader::Mix;
use tfseek::order::MixStop;
use tfseek_tfds::Decoder;

/// Record size in bytes below which a second copy is cheap.
const SMALL: u64 = 16 << 10;

/// The form that the records of a source are parsed to.
#[derive(Clone)]
pub(crate) enum SourceSpec {
    Schema(tfseek::Schema),
    /// The features of a data set of `tfseek.tfds`.
    Features(Decoder),
}

impl<'a, 'py> FromPyObject<'a, 'py> for SourceSpec {
    type Error = PyErr;

    fn extract(from: Borrowed<'a, 'py, PyAny>) -> PyResult<SourceSpec> {
        match from.cast::<TfdsDecoder>() {
            Ok(decoder) => Ok(SourceSpec::Features(decoder.get().decoder.clone())),
            Err(_) => Ok(SourceSpec::Schema(from.cast::<PySchema>()?.get().schema().clone())),
        }
    }
}

/// One dataset or view with its schema.
struct LoaderSource {
    dataset: tfseek::Dataset,
    ids: Option<Ids>,
    spec: Option<SourceSpec>,
    weight: u64,
    rename: BTreeMap<String, String>,
}

/// All sources of a loader.
pub(crate) struct LoaderSources {
    sources: Vec<LoaderSource>,
    /// Of a mix: whether a batch has one source, and the end of an epoch.
    mix: Option<(bool, MixStop)>,
}

/// A source of a mix in Python: dataset, schema, weight, and names of columns by key.
type PySource<'py> = (Bound<'py, PyDataset>, Option<SourceSpec>, u64, BTreeMap<String, String>);

impl LoaderSource {
    fn new(dataset: &PyDataset, spec: Option<SourceSpec>, weight: u64) -> LoaderSource {
        LoaderSource {
            dataset: dataset.shared.dataset.clone(),
            ids: dataset.view_ids(),
            spec,
            weight,
            rename: BTreeMap::new(),
        }
    }

    fn schema(&self) -> Option<&tfseek::Schema> {
        match &self.spec {
            Some(SourceSpec::Schema(schema)) => Some(schema),
            _ => None,
        }
    }

    /// Returns the options of a loader of this source.
    fn options(&self, contiguous: bool) -> Result<LoaderOptions> {
        let options = match &self.spec {
            Some(SourceSpec::Features(decoder)) => {
                let parser = decoder.parser()?;
                self.dataset.loader(decoder.schema()).parser(parser.contiguous_bytes(contiguous))
            }
            Some(SourceSpec::Schema(schema)) => {
                let names = self.rename.iter().map(|(key, name)| (&**key, &**name));
                let parser = decoding(schema).contiguous_bytes(contiguous).rename(names)?;
                self.dataset.loader(schema).parser(parser)
            }
            None => self.dataset.record_loader(),
        };
        match &self.ids {
            Some(ids) => Ok(options.select(ids.subset()?)),
            None => Ok(options),
        }
    }
}

impl LoaderSources {
    /// Takes a dataset and its schema, or `(sources, whole_batches, stop)` of a mix.
    pub(crate) fn new(from: &Bound<'_, PyAny>, spec: Option<SourceSpec>) -> PyResult<LoaderSources> {
        if let Ok(dataset) = from.cast::<PyDataset>() {
            return Ok(LoaderSources { sources: vec![LoaderSource::new(dataset.get(), spec, 1)], mix: None });
        }
        let (sources, whole_batches, Choice(stop)) =
            from.extract::<(Vec<PySource<'_>>, bool, Choice<MixStop>)>()?;
        let sources = sources.into_iter().map(|(dataset, spec, weight, rename)| LoaderSource {
            rename,
            ..LoaderSource::new(dataset.get(), spec, weight)
        });
        Ok(LoaderSources { sources: sources.collect(), mix: Some((whole_batches, stop)) })
    }

    /// Returns true if a source has objects of a store.
    pub(crate) fn is_remote(&self) -> bool {
        self.sources.iter().any(|source| is_remote(&source.dataset))
    }

    /// Returns true if the batches are of SequenceExamples.
    pub(crate) fn is_sequence(&self) -> bool {
        self.sources.iter().filter_map(LoaderSource::schema).any(tfseek::Schema::is_sequence)
    }

    /// Returns the names of the columns of pictures without a common size.
    pub(crate) fn pictures_of_any_size(&self) -> BTreeSet<String> {
        let each = self.sources.iter().filter_map(|source| Some((source, source.schema()?)));
        let names = each.flat_map(|(source, schema)| {
            open_pictures(schema).map(|key| source.rename.get(key).unwrap_or(key).clone())
        });
        names.collect()
    }

    /// Returns the dicts around the columns of data sets of `tfseek.tfds`. `None` if there are none.
    ///
    /// # Errors
    /// `SpecError` if two of them have a column in different dicts.
    pub(crate) fn nesting(&self, py: Python<'_>) -> Result<Option<Nesting>> {
        let mut nesting = None;
        for source in &self.sources {
            let Some(SourceSpec::Features(decoder)) = &source.spec else { continue };
            if let Some(path) = nesting.get_or_insert_with(Nesting::default).add(decoder) {
                let message =
                    format!("feature {path:?}: expected the same dicts and sizes in all sources of a mix");
                return Err(BindingError::Python(of_class(py, "SpecError", &message, |_| Ok(()))));
            }
        }
        Ok(nesting)
    }

    /// Returns true if records are small enough that the parsing threads should copy byte strings together,
    /// while the records are in the CPU cache. Otherwise the thread that creates Python objects reads them
    /// from the records.
    pub(crate) fn has_small_records(&self) -> bool {
        let mut sources = self.sources.iter().map(|source| &source.dataset);
        let bytes = sources.try_fold(0u64, |sum, dataset| sum.checked_add(dataset.known_bytes()?));
        let records: u64 = self.sources.iter().map(|source| source.dataset.len()).sum();
        bytes.is_some_and(|bytes| bytes / records.max(1) < SMALL)
    }

    /// Returns the number of the first record of each source.
    pub(crate) fn starts(&self) -> impl Iterator<Item = u64> {
        self.sources.iter().scan(0u64, |start, source| {
            let this = *start;
            *start += source.dataset.len();
            Some(this)
        })
    }

    /// Returns the dataset, and the record numbers of a view, if it is not a mix.
    pub(crate) fn single(&self) -> Option<(tfseek::Dataset, Option<Ids>)> {
        match (&*self.sources, &self.mix) {
            ([one], None) => Some((one.dataset.clone(), one.ids.clone())),
            _ => None,
        }
    }

    /// Returns the options of the loader. Views of many records take long.
    pub(crate) fn options(&self, contiguous: bool) -> Result<LoaderOptions> {
        let each = self.sources.iter().map(|source| Ok((source.options(contiguous)?, source.weight)));
        let mut each = each.collect::<Result<Vec<_>>>()?;
        match (self.mix, each.pop()) {
            (None, Some((options, _))) => Ok(options),
            (mix, last) => {
                let (whole_batches, stop) = mix.unwrap_or((false, MixStop::Never));
                let mix = Mix::new(each.into_iter().chain(last)).stop(stop);
                Ok(mix.whole_batches(whole_batches).loader()?)
            }
        }
    }
}
