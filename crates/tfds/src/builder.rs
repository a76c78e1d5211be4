//! `Builder`: a prepared data set in its folder, and the records of its splits.

use crate::check::{missing_shards, wrong_count};
use crate::error::{Result, TfdsErrorKind, refused_folder};
use crate::feature::Features;
use crate::folder::version_folder;
use crate::info::{DatasetInfo, SplitInfo, content};
use crate::json::quoted;
use crate::labels::missing_features;
use crate::set_folder::{EntryKind, MAX_BYTES, SetFolder};
use crate::splits::{Rounding, Spec, SplitRange, even_splits};
use std::collections::{HashMap, HashSet};
use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use tfseek::index::open_shards;
use tfseek::{Dataset, DatasetOptions, IndexMode, Warning};

/// Maximum number of shards of a split: as many as fit into a `dataset_info.json` with their lengths.
const MAX_SHARDS: u64 = MAX_BYTES / 2;

/// A function that opens shards with options.
pub type Opener = dyn Fn(&DatasetOptions, &[PathBuf]) -> tfseek::Result<Dataset> + Send + Sync;

/// Options of a [`Builder`].
#[derive(Clone, Default)]
pub struct BuilderOptions {
    /// Name of the configuration, for a folder of several.
    pub config: Option<String>,
    /// The version, for a folder of several. Default: the highest.
    pub version: Option<String>,
    /// Options for opening shards. With a [`store`](DatasetOptions::store) the folder may be a URL.
    pub dataset: DatasetOptions,
    /// Opens shards in place of [`DatasetOptions::open`], for example through maps. It gets the options
    /// `dataset`, with a store that knows the folder.
    pub opener: Option<Arc<Opener>>,
}

impl fmt::Debug for BuilderOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let BuilderOptions { config, version, dataset, opener: _ } = self;
        let mut s = f.debug_struct("BuilderOptions");
        s.field("config", config).field("version", version).field("dataset", dataset).finish()
    }
}

/// A data set that TensorFlow Datasets prepared: the folder of one version, with its splits.
///
/// Opening checks that all shards exist, and that those with an index have as many records as
/// `dataset_info.json` states. No shard is read. A split is opened when it is first selected. Missing indexes
/// are built then, and the records of its other shards are compared.
///
/// The folder may be a URL of the [`store`](DatasetOptions::store) in the options. It is listed once, and no
/// shard is asked for on its own. Indexes are then found, and records compared, when a split is opened. A
/// store without listings needs the folder of the version, whose shards are assumed to exist. A HEAD for each
/// shard would be made again when a split is opened.
///
/// ```no_run
/// use tfseek_tfds::{Builder, BuilderOptions};
///
/// let coco = Builder::open("tensorflow_datasets/coco", &BuilderOptions { config: Some("2017".into()), ..Default::default() })?;
/// let selection = coco.select("train[:80%]")?;
/// let record = selection.dataset.read(selection.record(7).unwrap(), &mut Vec::new())?.payload().len();
/// # Ok::<(), tfseek_tfds::TfdsError>(())
/// ```
#[derive(Debug)]
pub struct Builder {
    folder: SetFolder,
    info: DatasetInfo,
    features: Option<Features>,
    splits: Vec<Split>,
    options: BuilderOptions,
    warnings: Vec<String>,
    /// The datasets that were opened, by the numbers of their splits.
    opened: Mutex<HashMap<Vec<usize>, Dataset>>,
}

/// A split of a [`Builder`], with its shards.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Split {
    /// Name of the split, such as `train`.
    pub name: String,
    /// Paths of the shards, in the order of the records.
    pub shards: Vec<PathBuf>,
    /// Number of records of each shard. `None` if `dataset_info.json` does not have them.
    pub shard_lengths: Option<Vec<u64>>,
}

/// The records that a split specification selects.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct SplitSelection {
    /// The splits that the specification names, each once.
    pub dataset: Dataset,
    /// Record numbers in the dataset, in order. Ranges may overlap, as in `train+train[:10]`. A range may end
    /// before it begins; it is then empty.
    pub ranges: Vec<Range<u64>>,
}

impl SplitSelection {
    /// Returns the number of selected records. It is at most 2^64 - 1, even if ranges overlap to more.
    #[allow(clippy::len_without_is_empty, reason = "no caller needs it")]
    pub fn len(&self) -> u64 {
        self.ranges.iter().map(length).fold(0, u64::saturating_add)
    }

    /// Returns the number in the dataset of selected record `i`. `None` if there are not as many.
    pub fn record(&self, mut i: u64) -> Option<u64> {
        for range in &self.ranges {
            let len = length(range);
            if i < len {
                return Some(range.start + i);
            }
            i -= len;
        }
        None
    }
}

/// Returns the number of records of a range, which may end before it begins.
fn length(range: &Range<u64>) -> u64 {
    range.end.saturating_sub(range.start)
}

impl Builder {
    /// Opens the folder of a version, a folder of versions, or one of configurations.
    ///
    /// # Errors
    /// - [`TfdsErrorKind::Folder`] for a folder without a data set or with several, and for missing shards
    /// - [`TfdsErrorKind::Info`] for a `dataset_info.json` with another content, a format other than
    ///   TFRecord, and for shards with an index of another number of records
    /// - Errors of [`Features::read`]
    /// - I/O errors
    pub fn open(folder: impl AsRef<Path>, options: &BuilderOptions) -> Result<Builder> {
        let mut builder = Builder::open_records(folder, options)?;
        let (features, warnings) = builder.read_features()?;
        builder.features = Some(features);
        builder.warnings.extend(warnings);
        Ok(builder)
    }

    /// Reads the features of the folder: [`Features::read`].
    ///
    /// # Errors
    /// Errors of [`Features::read`].
    pub fn read_features(&self) -> Result<(Features, Vec<String>)> {
        Features::find(&self.folder)?.ok_or_else(|| missing_features(&self.folder))
    }

    /// Opens a data set like [`open`](Builder::open), without its features. Its records are as in plain
    /// datasets.
    ///
    /// # Errors
    /// Errors of [`open`](Builder::open), except errors of the features.
    pub fn open_records(folder: impl AsRef<Path>, options: &BuilderOptions) -> Result<Builder> {
        let config = options.config.as_deref();
        let version = options.version.as_deref();
        let found = version_folder(SetFolder::new(folder.as_ref(), &options.dataset)?, config, version)?;
        let folder = found.folder;
        let info_path = folder.join(DatasetInfo::FILE_NAME);
        let info = DatasetInfo::read(&folder)?;
        let missing = || {
            let hint = if folder.is_listed() {
                ""
            } else {
                " (a store without listings needs the folder of a version)"
            };
            content("", format!("expected a file, found none{hint}"))
        };
        let info = info.ok_or_else(|| missing().at(&info_path))?;
        check_choice("configName", config.filter(|_| !found.chose_config), info.config.as_deref())
            .and_then(|()| {
                check_choice("version", version.filter(|_| !found.chose_version), info.version.as_deref())
            })
            .and_then(|()| check_info(&info))
            .map_err(|e| e.at(&info_path))?;
        let mut warnings = Vec::new();
        if info.has_nested_keys {
            let path = tfseek::error::printable(&info_path);
            warnings.push(format!("{path}: supervisedKeys are nested, and are left out"));
        }
        let splits = info.splits.iter().enumerate().map(|(k, split)| Split::find(&folder, k, split));
        let splits = splits.collect::<Result<Vec<Split>>>().map_err(|e| e.at(&info_path))?;
        let options = options.clone();
        let builder =
            Builder { folder, info, features: None, splits, options, warnings, opened: Mutex::default() };
        builder.check_indexed()?;
        Ok(builder)
    }

    /// Returns the path or the URL of the version's folder.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Returns the name of the data set.
    pub fn name(&self) -> &str {
        &self.info.name
    }

    /// Returns the version. `None` if `dataset_info.json` has none.
    pub fn version(&self) -> Option<&str> {
        self.info.version.as_deref()
    }

    /// Returns the name of the configuration. `None` if the data set has none.
    pub fn config(&self) -> Option<&str> {
        self.info.config.as_deref()
    }

    /// Returns the splits, in the order of the file.
    pub fn splits(&self) -> &[Split] {
        &self.splits
    }

    /// Returns the features of the records. `None` after [`open_records`](Builder::open_records).
    pub fn features(&self) -> Option<&Features> {
        self.features.as_ref()
    }

    /// Returns the features that a model takes and predicts, as a rule an input and a target.
    pub fn supervised_keys(&self) -> Option<&[String]> {
        self.info.supervised_keys.as_deref()
    }

    /// Returns what a user should know of the folder.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// Returns the records that a specification such as `train[:80%]+test` selects. `docs/tfds.md` has the
    /// grammar.
    ///
    /// # Errors
    /// - [`TfdsErrorKind::Split`]
    /// - [`TfdsErrorKind::Info`] for a shard with another number of records than `dataset_info.json` states
    /// - [`TfdsErrorKind::Error`], the errors of [`Dataset::open`]
    pub fn select(&self, spec: &str) -> Result<SplitSelection> {
        self.select_rounded(spec, Rounding::Closest)
    }

    /// Returns the selected records, like [`select`](Builder::select), with another rounding of percents.
    ///
    /// # Errors
    /// Errors of [`select`](Builder::select).
    pub fn select_rounded(&self, spec: &str, rounding: Rounding) -> Result<SplitSelection> {
        let (opened, ranges) = self.resolve(spec, rounding)?;
        Ok(opened.selection(&ranges))
    }

    /// Divides the selected records into `parts` parts of equal size, each part of the specification by
    /// itself. The first ones get one record more each if there is a remainder, which `drop_remainder` leaves
    /// out.
    ///
    /// # Errors
    /// Errors of [`select`](Builder::select). [`TfdsErrorKind::Options`] for no parts, and for more than
    /// 2^20.
    pub fn even_splits(&self, spec: &str, parts: u64, drop_remainder: bool) -> Result<Vec<SplitSelection>> {
        let (opened, ranges) = self.resolve(spec, Rounding::Closest)?;
        let parts = even_splits(&ranges, parts, drop_remainder)?;
        Ok(parts.iter().map(|ranges| opened.selection(ranges)).collect())
    }

    fn resolve(&self, spec: &str, rounding: Rounding) -> Result<(OpenedSplits, Vec<SplitRange>)> {
        let spec = Spec::parse(spec, self.splits.iter().map(|split| split.name.as_str()))?;
        let opened = OpenedSplits::new(self, spec.splits())?;
        let ranges = spec.ranges(|split| opened.lengths(split), rounding)?;
        Ok((opened, ranges))
    }

    /// Returns the records of splits, one after the other.
    fn dataset(&self, splits: Vec<usize>) -> Result<Dataset> {
        let opened = || self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(dataset) = opened().get(&splits) {
            return Ok(dataset.clone());
        }
        let shards = splits.iter().filter_map(|split| self.splits.get(*split));
        let paths: Vec<PathBuf> = shards.flat_map(|split| &split.shards).cloned().collect();
        let dataset = match &self.options.opener {
            _ if paths.is_empty() => self.options.dataset.open_regions([])?.dataset().clone(),
            opener => self.folder.open(&self.options.dataset, |options| match opener {
                Some(opener) => opener(options, &paths),
                None => options.open(&paths),
            })?,
        };
        let mut entries = dataset.shards();
        for split in splits.iter().filter_map(|split| self.splits.get(*split)) {
            let found = entries.by_ref().take(split.shards.len()).map(|entry| entry.len);
            self.check_counts(split, 0, found, dataset.warnings())?;
        }
        drop(entries);
        Ok(opened().entry(splits).or_insert(dataset).clone())
    }

    /// Compares the numbers of records of the shards from `first` with the numbers in `dataset_info.json`. A
    /// shard may have fewer if a warning says that some are left out.
    fn check_counts(
        &self,
        split: &Split,
        first: usize,
        found: impl Iterator<Item = u64>,
        warnings: &[Warning],
    ) -> Result<()> {
        let Some(lengths) = &split.shard_lengths else { return Ok(()) };
        let shards = split.shards.iter().zip(lengths).enumerate().skip(first);
        for ((shard, (path, &expected)), found) in shards.zip(found) {
            let left_out = || warnings.iter().any(|warning| warning.path() == Some(path));
            if found != expected && !(found < expected && left_out()) {
                let info = self.folder.join(DatasetInfo::FILE_NAME);
                let text = wrong_count(expected, found, shard as u64, &split.name);
                return Err(content("", format!("{text}, by {}", tfseek::error::printable(&info))).at(path));
            }
        }
        Ok(())
    }

    /// Compares the records of the shards that have an index. Nothing is scanned. In a store each index is a
    /// request, so they are compared when their split is opened.
    fn check_indexed(&self) -> Result<()> {
        if self.folder.is_remote() {
            return Ok(());
        }
        let options = self.options.dataset.index_options().clone().mode(IndexMode::Require);
        for split in &self.splits {
            let check = |first: usize, paths: &[PathBuf]| -> Result<bool> {
                let Ok(found) = open_shards(paths, &options) else { return Ok(false) };
                let lengths = found.indexes.iter().map(|index| index.len());
                self.check_counts(split, first, lengths, &found.warnings)?;
                Ok(true)
            };
            if split.shard_lengths.is_some() && !check(0, &split.shards)? {
                // Some shards have no index, or none that is up to date.
                for (shard, path) in split.shards.iter().enumerate() {
                    check(shard, std::slice::from_ref(path))?;
                }
            }
        }
        Ok(())
    }
}

/// The dataset of some splits, with the numbers of records of their shards.
struct OpenedSplits {
    dataset: Dataset,
    /// For each split its number, its first record in the dataset, and the lengths of its shards.
    splits: HashMap<usize, (u64, Vec<u64>)>,
}

impl OpenedSplits {
    fn new(builder: &Builder, numbers: Vec<usize>) -> Result<OpenedSplits> {
        let dataset = builder.dataset(numbers.clone())?;
        let mut splits = HashMap::new();
        let mut start = 0u64;
        let mut entries = dataset.shards();
        for number in numbers {
            let shards = builder.splits.get(number).map_or(0, |split| split.shards.len());
            let lengths: Vec<u64> = entries.by_ref().take(shards).map(|entry| entry.len).collect();
            let records: u64 = lengths.iter().sum();
            splits.insert(number, (start, lengths));
            start += records;
        }
        drop(entries);
        Ok(OpenedSplits { dataset, splits })
    }

    fn lengths(&self, split: usize) -> &[u64] {
        self.splits.get(&split).map_or(&[], |(_, lengths)| lengths)
    }

    fn selection(&self, ranges: &[SplitRange]) -> SplitSelection {
        let range = |(split, records): &SplitRange| {
            let start = self.splits.get(split).map_or(0, |(start, _)| *start);
            start + records.start..start + records.end
        };
        SplitSelection { dataset: self.dataset.clone(), ranges: ranges.iter().map(range).collect() }
    }
}

impl Split {
    /// Returns the number of records. `None` if `dataset_info.json` does not have it, or it exceeds 64 bits.
    pub fn records(&self) -> Option<u64> {
        self.shard_lengths.as_ref()?.iter().try_fold(0u64, |sum, &n| sum.checked_add(n))
    }

    /// Finds the shards of split `k`, all of which must exist.
    pub(crate) fn find(folder: &SetFolder, k: usize, info: &SplitInfo) -> Result<Split> {
        let n = match info.shards() {
            Some(n) => n,
            None => count_shards(folder, k, info)?,
        };
        if n > MAX_SHARDS {
            let reason = format!("expected at most {MAX_SHARDS} shards, found {n}");
            return Err(content(format!("splits[{k}].numShards"), reason));
        }
        if n > 1 && !info.template.is_numbered() {
            let field = format!("splits[{k}].filepathTemplate");
            let reason = format!("expected the number of a shard in the names of {n} shards, found none");
            return Err(content(field, reason));
        }
        if let Some(missing) = missing_shards(folder, info, 0..n, n)? {
            return Err(TfdsErrorKind::Folder { reason: missing }.into());
        }
        let mut shards = Vec::new();
        for shard in (0..n).map(|shard| info.shard_path(shard, n)) {
            let path = folder.join(&shard);
            if let Some(EntryKind::Folder) = folder.find(&shard)? {
                return Err(refused_folder(&path, "expected a shard, found a folder"));
            }
            shards.push(path);
        }
        Ok(Split { name: info.name.clone(), shards, shard_lengths: info.shard_lengths.clone() })
    }
}

/// Returns the number of shards of a split whose number is not in the file.
fn count_shards(folder: &SetFolder, k: usize, info: &SplitInfo) -> Result<u64> {
    let template = &info.template;
    if !template.is_numbered() {
        return Ok(1);
    }
    let first = template.path(0, 1);
    let parent = first.parent().unwrap_or(Path::new(""));
    if template.path(1, 2).parent() != Some(parent) {
        let reason = "expected numbers of records for shards in several folders, found none";
        return Err(content(format!("splits[{k}].shardLengths"), reason));
    }
    let Some(entries) = folder.below(parent).entries()? else {
        let reason = "expected numbers of records in a store without listings, found none";
        return Err(content(format!("splits[{k}].shardLengths"), reason));
    };
    let is_shard =
        |name: &Path| parent.join(name).to_str().is_some_and(|path| template.shard(path).is_some());
    let shards = entries.iter().filter(|entry| is_shard(Path::new(&entry.name))).count() as u64;
    if shards == 0 && info.num_bytes.is_some_and(|bytes| bytes > 0) {
        let name = first.display().to_string().escape_debug().to_string();
        let reason = format!("expected shards of split {} such as {name}, found none", quoted(&info.name));
        return Err(TfdsErrorKind::Folder { reason }.into());
    }
    Ok(shards)
}

/// Checks what concerns all splits.
pub(crate) fn check_info(info: &DatasetInfo) -> Result<()> {
    if !info.is_tfrecord() {
        let reason = format!("expected the format tfrecord, found {}", quoted(&info.file_format));
        return Err(content("fileFormat", reason));
    }
    let mut names = HashSet::new();
    for (k, split) in info.splits.iter().enumerate() {
        if !names.insert(split.name.as_str()) {
            let reason = format!("expected another name than those before, found {}", quoted(&split.name));
            return Err(content(format!("splits[{k}].name"), reason));
        }
        if split.shard_lengths.is_some() && split.records().is_none() {
            let reason = "expected fewer than 2^64 records, found more";
            return Err(content(format!("splits[{k}].shardLengths"), reason));
        }
    }
    Ok(())
}

/// Checks a choice of the caller that the path of the folder has made.
fn check_choice(field: &str, wanted: Option<&str>, found: Option<&str>) -> Result<()> {
    match wanted {
        Some(wanted) if found != Some(wanted) => {
            let found = found.map_or("none".to_owned(), quoted);
            Err(content(field, format!("expected {}, found {found}", quoted(wanted))))
        }
        _ => Ok(()),
    }
}
