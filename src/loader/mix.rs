//! Mixes of several data sets.

use super::options::{LoaderOptions, Shuffle};
use super::sources::MixSources;
use crate::error::{Error, Result};
use crate::order::MixStop;

/// Several data sets under one order and one state, in fixed proportions.
///
/// Each cycle of P samples has exactly its weight of each source, where P is the sum of the weights. What a
/// source has given is always a prefix of its own order, so it repeats no record before it has given all of
/// them. Record numbers count over all sources, one after the other. A saved state may be loaded by a mix of
/// the same sources with other weights, and each source goes on where it was.
///
/// ```
/// # let dir = tempfile::tempdir()?;
/// # let write = |name: &str, n: i64| -> Result<_, Box<dyn std::error::Error>> {
/// #     let path = dir.path().join(name);
/// #     let mut writer = tfseek::Writer::create(&path)?;
/// #     for i in 0..n { writer.write(&tfseek::ExampleBuilder::new().int64("label", [i]).encode()?)?; }
/// #     writer.close()?;
/// #     Ok(tfseek::DatasetOptions::new().index(tfseek::IndexMode::Memory).open(&path)?)
/// # };
/// # let (web, books) = (write("web", 700)?, write("books", 100)?);
/// use tfseek::loader::{Mix, Shuffle};
/// use tfseek::{DType, FeatureSpec, Schema};
/// let schema = Schema::example().feature("label", FeatureSpec::fixed_len(&[], DType::Int64)).build()?;
/// // Seven of ten samples are of the web, and three are books.
/// let mix = Mix::new([(web.loader(&schema), 7), (books.loader(&schema), 3)]);
/// let mut loader = mix.loader()?.batch_size(20).shuffle(Shuffle::Global).seed(42).build()?;
/// let ids = loader.next().unwrap()?.ids.to_vec();
/// assert_eq!(ids.iter().filter(|id| **id < web.len()).count(), 14);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use]
#[derive(Clone)]
pub struct Mix {
    sources: Vec<(LoaderOptions, u64)>,
    whole_batches: bool,
    stop: MixStop,
}

impl Mix {
    /// Creates a mix of sources with weights: positive integers, whose sum is at most 2^20 unless all are 1.
    /// [`mixture_weights`](crate::order::mixture_weights) makes them of floating-point proportions.
    ///
    /// A source is made by [`Dataset::loader`](crate::Dataset::loader) or
    /// [`Dataset::record_loader`](crate::Dataset::record_loader), with its parser and its
    /// [selected](LoaderOptions::select) records. All other options are the mix's. A type of its own would
    /// repeat the options.
    pub fn new(sources: impl IntoIterator<Item = (LoaderOptions, u64)>) -> Mix {
        Mix { sources: sources.into_iter().collect(), whole_batches: false, stop: MixStop::default() }
    }

    /// Sets whether each global batch has samples of one source only. Sources may then have different
    /// columns. Default: false.
    pub fn whole_batches(self, whole_batches: bool) -> Mix {
        Mix { whole_batches, ..self }
    }

    /// Sets the end of an epoch. Default: never. The stream of samples goes on over epochs, whose ends are
    /// only marks where a run can stop.
    pub fn stop(self, stop: MixStop) -> Mix {
        Mix { stop, ..self }
    }

    /// Returns the options of a loader of this mix. With [`MixStop::Never`] its last batch is
    /// [continuous](crate::order::LastBatch::Continuous).
    ///
    /// # Errors
    /// [`ErrorKind::Spec`](crate::ErrorKind::Spec) with the first column that not all sources have with one
    /// shape and type, unless batches have one source. [`OrderError`](crate::error::OrderError) for no
    /// sources, and for a source with other options.
    pub fn loader(self) -> Result<LoaderOptions> {
        let sources = self.sources.into_iter().map(|(options, weight)| {
            options.into_source(weight).ok_or_else(|| {
                Error::order(
                    "expected sources with a parser and selected records, found one with other options",
                )
            })
        });
        let sources = sources.collect::<Result<Vec<_>>>()?;
        let skips = sources.iter().all(|source| source.dataset.damage() == crate::Damage::Skip);
        let (sources, dataset) = MixSources::new(sources, self.whole_batches, self.stop)?;
        let damage = if skips { crate::Damage::Skip } else { crate::Damage::Raise };
        Ok(LoaderOptions::of_mix(sources, dataset).damage(damage).shuffle(Shuffle::None))
    }
}
