//! Splits of prepared data sets as paths: `DIR[train[:5%]]`.

use crate::exit::{DATA, Failure, Outcome};
use crate::store;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tfseek::dataset::ShardEntry;
use tfseek::{Dataset, DatasetOptions, Part};
use tfseek_tfds::{Builder, BuilderOptions, Opener, TfdsError, TfdsErrorKind, is_prepared};

/// A split of a data set, as a user specified it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SplitPath<'a> {
    /// The folder of the data set.
    pub(crate) folder: &'a Path,
    /// The specification of the records.
    pub(crate) spec: &'a str,
}

/// A file, or the records of one that a split selects.
#[derive(Clone, Debug)]
pub(crate) struct InputFile {
    path: PathBuf,
    /// The part of the file that is read. `None` for all of it.
    pub(crate) part: Option<Part>,
    /// The shard, if it was found by a pack.
    pub(crate) packed: Option<PackedShard>,
}

/// A shard of a pack.
#[derive(Clone, Debug)]
pub(crate) struct PackedShard {
    dataset: Dataset,
    /// The path of the pack.
    pub(crate) pack: Arc<Path>,
    records: Range<u64>,
}

impl<'a> SplitPath<'a> {
    /// Returns the split that a path means: it ends in `]`, does not exist, and a data set was prepared in
    /// the folder before the first `[`. A URL is not looked for among the objects.
    pub(crate) fn parse(path: &'a Path) -> Option<SplitPath<'a>> {
        let (folder, rest) = at_bracket(path.to_str()?)?;
        let folder = Path::new(folder);
        let spec = rest.strip_suffix(']')?;
        (!path.exists() && is_prepared(folder, store::store().as_ref())).then_some(SplitPath { folder, spec })
    }

    /// Returns the split among the paths of a verb. `None` if there is none.
    ///
    /// # Errors
    /// There are other paths beside it.
    pub(crate) fn among(paths: &'a [PathBuf]) -> Outcome<Option<SplitPath<'a>>> {
        let Some((path, split)) = paths.iter().find_map(|path| Some((path, SplitPath::parse(path)?))) else {
            return Ok(None);
        };
        if paths.len() > 1 {
            let path = tfseek::error::printable(path);
            return Err(Failure::usage(format!(
                "`{path}` (a split) cannot be combined with other paths; several splits are `{0}[train+test]`",
                tfseek::error::printable(split.folder)
            )));
        }
        Ok(Some(split))
    }

    /// Refuses splits, for the verbs that work on files.
    pub(crate) fn refuse(paths: &[PathBuf]) -> Outcome {
        let Some(path) = paths.iter().find(|path| SplitPath::parse(path).is_some()) else { return Ok(()) };
        let path = tfseek::error::printable(path);
        Err(Failure::usage(format!("expected files, found `{path}` (a split)")))
    }

    /// Opens the selected records as one dataset. `opener` opens shards, with `options`.
    pub(crate) fn open(self, options: DatasetOptions, opener: Option<Arc<Opener>>) -> Outcome<Dataset> {
        let selection = self.builder(options, opener)?.select(self.spec).map_err(failure)?;
        Ok(selection.dataset.ranges(&selection.ranges)?)
    }

    /// Returns the files of the selected records, in order. The records of a file that are not selected are
    /// not read.
    pub(crate) fn inputs(self, options: DatasetOptions) -> Outcome<Vec<InputFile>> {
        let selection = self.builder(options, None)?.select(self.spec).map_err(failure)?;
        let some = selection.dataset.ranges(&selection.ranges)?;
        let whole = |path: &Path| selection.dataset.shards().find(|shard| shard.path == path);
        let mut inputs = Vec::new();
        for shard in some.shards() {
            let mut input = InputFile::from(shard.path.to_path_buf());
            if whole(shard.path).is_none_or(|whole| whole.len != shard.len) {
                let records = shard.start..shard.start + shard.len;
                let shares = some.ranges(std::slice::from_ref(&records))?.shares(1)?;
                input.part = shares.into_iter().flatten().next();
            }
            inputs.push(input);
        }
        Ok(inputs)
    }

    /// Returns the shards of all splits of the data set.
    pub(crate) fn shards(self) -> Outcome<Vec<PathBuf>> {
        let builder = self.builder(DatasetOptions::new(), None)?;
        Ok(builder.splits().iter().flat_map(|split| split.shards.iter().cloned()).collect())
    }

    /// Returns the folder of the version of the data set.
    #[cfg(feature = "tables")]
    pub(crate) fn version_folder(self) -> Outcome<PathBuf> {
        let options = DatasetOptions::new();
        let options = store::store().into_iter().fold(options, DatasetOptions::store);
        Ok(self.builder(options, None)?.folder().to_path_buf())
    }

    fn builder(self, dataset: DatasetOptions, opener: Option<Arc<Opener>>) -> Outcome<Builder> {
        let options = BuilderOptions { dataset, opener, ..BuilderOptions::default() };
        Builder::open_records(self.folder, &options).map_err(failure)
    }
}

/// Returns the texts before and after the first `[`. An IPv6 address in a URL does not count.
fn at_bracket(path: &str) -> Option<(&str, &str)> {
    let name = path.split_once("://").and_then(|(_, rest)| Some(rest.split_once('/')?.1));
    let (_, spec) = name.unwrap_or(path).split_once('[')?;
    Some((path.strip_suffix(spec)?.strip_suffix('[')?, spec))
}

impl InputFile {
    /// Returns the ordinal of the first record that is read.
    pub(crate) fn first(&self) -> u64 {
        self.part.as_ref().map_or(0, |part| part.ordinal)
    }

    /// Returns the number of records, if it is a part's.
    pub(crate) fn records(&self) -> Option<u64> {
        self.part.as_ref()?.records
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the shards of a pack, in its order.
    pub(crate) fn of_pack(path: &Path, options: &DatasetOptions) -> tfseek::Result<Vec<InputFile>> {
        let dataset = options.open(path)?;
        let pack: Arc<Path> = path.into();
        let input = |shard: ShardEntry<'_>| {
            let dataset = dataset.clone();
            let pack = Arc::clone(&pack);
            let records = shard.start..shard.start + shard.len;
            let packed = Some(PackedShard { dataset, pack, records });
            InputFile { path: shard.path.into(), part: None, packed }
        };
        Ok(dataset.shards().map(input).collect())
    }
}

impl PackedShard {
    /// Compares the shard with its index in the pack, and returns the number of its records.
    pub(crate) fn check(&self) -> tfseek::Result<u64> {
        // The first access to a shard compares it.
        if let Some(last) = self.records.end.checked_sub(1).filter(|last| self.records.contains(last)) {
            self.dataset.read(last, &mut Vec::new())?;
        }
        Ok(self.records.end - self.records.start)
    }
}

impl From<PathBuf> for InputFile {
    fn from(path: PathBuf) -> InputFile {
        InputFile { path, part: None, packed: None }
    }
}

impl AsRef<Path> for InputFile {
    fn as_ref(&self) -> &Path {
        &self.path
    }
}

impl std::ops::Deref for InputFile {
    type Target = Path;

    fn deref(&self) -> &Path {
        &self.path
    }
}

pub(crate) fn failure(e: TfdsError) -> Failure {
    let text = e.to_string();
    match e.into_kind() {
        TfdsErrorKind::Error(e) => e.into(),
        TfdsErrorKind::Split { .. } | TfdsErrorKind::Options { .. } => Failure::usage(text),
        _ => Failure::Message(DATA, text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_have_brackets() {
        assert_eq!(
            at_bracket("http://[::1]:80/mnist[train[:5]]"),
            Some(("http://[::1]:80/mnist", "train[:5]]"))
        );
        assert_eq!(at_bracket("s3://b/mnist[train]"), Some(("s3://b/mnist", "train]")));
        assert_eq!(at_bracket("mnist[train]"), Some(("mnist", "train]")));
        assert_eq!((at_bracket("http://[::1]:80/mnist"), at_bracket("mnist")), (None, None));
    }
}
