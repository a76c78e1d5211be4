//! `Episodes`: the steps of a data set whose records are episodes (RLDS).

use crate::compile::{DecodeOptions, DecodePlan, Item, Leaf};
use crate::error::{Result, refused_option};
use crate::feature::{FeatureTree, Features, LeafFeature, SequenceFeature, StoredNames, joined};
use crate::found::StoredFeature;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use tfseek::schema::DType;
use tfseek::tables::RecordTables;
use tfseek::{Dataset, DatasetOptions, Result as CoreResult};
use tfseek_rlds::{EpisodeKey, EpisodeKeys, EpisodeOptions, EpisodeValues};

/// The steps of a data set whose records are episodes: those with a `Dataset` feature. A clone increments a
/// counter.
///
/// ```no_run
/// use tfseek_tfds::{Builder, Episodes, Offsets};
///
/// let droid = Builder::open("droid/1.0.1", &Default::default())?;
/// let train = droid.select("train")?.dataset;
/// let robot = Episodes::new(&train, droid.features().unwrap(), None, &Default::default())?;
/// let windows = robot.windows([("action", Offsets::Many((0..16).collect()))], &Default::default())?;
/// let (episode, step) = windows.windows().locate(123_456)?;
/// let record = windows.windows().dataset().read(123_456, &mut Vec::new())?.payload().len();
/// # Ok::<(), tfseek_tfds::TfdsError>(())
/// ```
#[derive(Clone)]
pub struct Episodes {
    steps: tfseek_rlds::Episodes,
    pub(crate) parts: Arc<EpisodeParts>,
}

/// The features of episodes.
pub(crate) struct EpisodeParts {
    /// Path of the feature whose items are steps.
    pub(crate) path: Box<str>,
    /// The feature of a step.
    pub(crate) step: FeatureTree,
    pub(crate) leaves: Vec<EpisodeLeaf>,
}

/// A value of steps or of an episode.
#[derive(Clone, Debug)]
pub(crate) struct EpisodeLeaf {
    /// Path in the record. The path of a value of steps begins with the path of the steps.
    pub(crate) path: String,
    pub(crate) feature: LeafFeature,
    pub(crate) of_steps: bool,
    /// The stated numbers of items of the sequences around it, without the steps.
    pub(crate) inner: Vec<Option<u64>>,
    pub(crate) item: Item,
    pub(crate) columns: Vec<StoredColumn>,
}

/// A stored column of a leaf.
#[derive(Clone, Debug)]
pub(crate) struct StoredColumn {
    pub(crate) name: String,
    pub(crate) kind: DType,
    /// Number of values of an item.
    pub(crate) width: usize,
    /// Number of sequences around it, with the sequence of the steps.
    pub(crate) levels: usize,
}

impl StoredColumn {
    /// Returns the columns of a leaf.
    fn all(leaf: &Leaf) -> Vec<StoredColumn> {
        let levels = leaf.levels.len();
        let column = |name: String, kind, width| StoredColumn { name, kind, width, levels };
        match &leaf.item {
            Item::Unknown => Vec::new(),
            Item::Shaped { shape, .. } => vec![
                column(shape.to_string(), DType::Int64, leaf.shape().len()),
                column(StoredNames::value_of(&leaf.path), DType::Bytes, 1),
            ],
            Item::List => vec![column(leaf.path.to_string(), leaf.stored(), leaf.values_of_item())],
            _ => vec![column(leaf.path.to_string(), leaf.stored(), 1)],
        }
    }

    fn names(&self) -> StoredNames<'_> {
        StoredNames::new(&self.name, self.levels)
    }

    /// Returns the name of the feature with the values.
    pub(crate) fn values(&self) -> String {
        self.names().values()
    }

    /// Returns the names of the features with the numbers of items, from outside.
    pub(crate) fn lengths(&self) -> Vec<String> {
        (1..self.levels).map(|level| self.names().row_lengths(level - 1)).collect()
    }

    /// Returns the features that records have.
    fn keys(&self, of_steps: bool) -> Vec<EpisodeKey> {
        let lengths = self.lengths();
        let width = u32::try_from(self.width).unwrap_or(u32::MAX);
        let lists = lengths.iter().map(|name| (name.clone(), DType::Int64, 1));
        let lists = lists.chain([(self.values(), self.kind, width)]);
        let key = |(level, (name, kind, width)): (usize, (String, DType, u32))| {
            // The numbers of items of the sequences around the list.
            let (outer, _) = lengths.split_at(level);
            let values = match outer {
                _ if !of_steps => EpisodeValues::Episode,
                [] => EpisodeValues::Steps { width },
                _ => {
                    let lengths = outer.iter().map(|name| (**name).into()).collect();
                    EpisodeValues::Divided { lengths, width }
                }
            };
            EpisodeKey { name: name.into(), kind, values }
        };
        lists.enumerate().map(key).collect()
    }
}

/// Collects the paths of features whose items are steps, and these features.
fn sequences<'a>(tree: &'a FeatureTree, path: &str, found: &mut Vec<(String, &'a SequenceFeature)>) {
    match tree {
        FeatureTree::Dict(features) => {
            features.iter().for_each(|(name, feature)| sequences(feature, &joined(path, name), found));
        }
        FeatureTree::Sequence(sequence) if sequence.steps => found.push((path.to_owned(), sequence)),
        _ => {}
    }
}

/// Returns true if a feature is, or is in, the one at `path`.
fn is_below(leaf: &str, path: &str) -> bool {
    leaf.strip_prefix(path).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

impl Features {
    /// Returns the paths of the features whose items are steps: one, usually `steps`, for a data set of
    /// episodes, and none for others.
    pub fn paths_of_steps(&self) -> Vec<String> {
        let mut found = Vec::new();
        sequences(&self.root, "", &mut found);
        found.into_iter().map(|(path, _)| path).collect()
    }
}

impl EpisodeParts {
    /// Finds the steps among features: the only `Dataset` feature, or the one at `path`.
    pub(crate) fn new(features: &Features, path: Option<&str>) -> Result<EpisodeParts> {
        let mut found = Vec::new();
        sequences(&features.root, "", &mut found);
        let names = || found.iter().map(|(path, _)| format!("{path:?}")).collect::<Vec<_>>().join(", ");
        let chosen = match (path, &*found) {
            (_, []) => {
                return Err(refused_option("expected a data set of episodes, found no Dataset feature"));
            }
            (None, [one]) => one,
            (None, _) => {
                return Err(refused_option(format!(
                    "expected the name of the feature with the steps: {}",
                    names()
                )));
            }
            (Some(path), _) => found.iter().find(|(known, _)| known == path).ok_or_else(|| {
                refused_option(format!("expected a Dataset feature ({}), found {path:?}", names()))
            })?,
        };
        let options = DecodeOptions { encoded: true, batch_steps: true, ..DecodeOptions::default() };
        let plan = DecodePlan::new(features, &options)?;
        let leaf = |stored: StoredFeature<'_>| {
            let StoredFeature { path, leaf, sequences, .. } = stored;
            let compiled = plan.leaves.iter().find(|compiled| *compiled.path == *path)?;
            let of_steps = is_below(&path, &chosen.0);
            let lengths = sequences.iter().map(|sequence| sequence.length);
            let inner = lengths.skip(usize::from(of_steps)).collect();
            let feature = leaf.clone();
            let item = compiled.item.clone();
            let columns = StoredColumn::all(compiled);
            Some(EpisodeLeaf { path, feature, of_steps, inner, item, columns })
        };
        let leaves = features.stored().into_iter().filter_map(leaf).collect();
        Ok(EpisodeParts { path: (*chosen.0).into(), step: chosen.1.feature.clone(), leaves })
    }

    /// Returns the stored features of episodes.
    fn keys(&self) -> CoreResult<EpisodeKeys> {
        let keys = |leaf: &EpisodeLeaf| {
            leaf.columns.iter().flat_map(|column| column.keys(leaf.of_steps)).collect::<Vec<_>>()
        };
        EpisodeKeys::new(self.leaves.iter().flat_map(keys))
    }

    /// Returns the name of a leaf: of steps, its path in a step.
    pub(crate) fn name<'l>(&self, leaf: &'l EpisodeLeaf) -> &'l str {
        match leaf.path.strip_prefix(&*self.path) {
            Some(rest) if leaf.of_steps => rest.strip_prefix('/').unwrap_or(rest),
            _ => &leaf.path,
        }
    }

    /// Returns the leaf of a name: of steps, without or with their path, or of episodes.
    pub(crate) fn leaf(&self, name: &str) -> Option<&EpisodeLeaf> {
        let of_steps = joined(&self.path, name);
        let is =
            |path: &str, steps| self.leaves.iter().find(|leaf| leaf.path == path && leaf.of_steps == steps);
        is(&of_steps, true).or_else(|| is(name, true)).or_else(|| is(name, false))
    }
}

impl Episodes {
    /// Finds the steps of a dataset with these features. `steps` is the path of the feature whose items are
    /// steps, if there are several.
    ///
    /// # Errors
    /// [`TfdsErrorKind::Options`](crate::TfdsErrorKind::Options) for features without steps, and
    /// [`TfdsErrorKind::Error`](crate::TfdsErrorKind::Error), the errors of [`tfseek_rlds::Episodes::open`].
    pub fn new(
        dataset: &Dataset,
        features: &Features,
        steps: Option<&str>,
        options: &EpisodeOptions,
    ) -> Result<Episodes> {
        let parts = Arc::new(EpisodeParts::new(features, steps)?);
        let steps = tfseek_rlds::Episodes::open(dataset, &parts.keys()?, options)?;
        Ok(Episodes { steps, parts })
    }

    /// Returns the steps of no records: for [`Windows::append_of`](tfseek_rlds::Windows::append_of), which
    /// makes windows of records that are read elsewhere.
    ///
    /// # Errors
    /// [`TfdsErrorKind::Options`](crate::TfdsErrorKind::Options) for features without steps.
    pub fn without_records(features: &Features, steps: Option<&str>) -> Result<Episodes> {
        let none = DatasetOptions::new().open_regions([])?;
        Episodes::new(none.dataset(), features, steps, &EpisodeOptions::default())
    }

    /// Searches for the files with the tables of a dataset's shards: [`RecordTables::files`].
    ///
    /// # Errors
    /// [`TfdsErrorKind::Options`](crate::TfdsErrorKind::Options) for features without steps, and errors of
    /// reading the index of a shard.
    pub fn files(
        dataset: &Dataset,
        features: &Features,
        steps: Option<&str>,
    ) -> Result<Vec<CoreResult<PathBuf, Option<&'static str>>>> {
        Ok(RecordTables::files(dataset, &EpisodeParts::new(features, steps)?.keys()?)?)
    }

    /// Returns the steps as one array, and the episodes.
    pub fn steps(&self) -> &tfseek_rlds::Episodes {
        &self.steps
    }

    /// Returns the path of the feature whose items are steps, usually `steps`.
    pub fn path(&self) -> &str {
        &self.parts.path
    }
}

impl fmt::Debug for Episodes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.steps.fmt(f)
    }
}
