//! The steps of episodes in `tfseek info`.
//!
//! The numbers of steps come from the tables. Without tables the episodes are counted if that is cheap,
//! because a large set would be read.

use crate::args::LimitArgs;
use crate::bytes::Key;
use crate::console::{Console, DIM};
use crate::exit::Outcome;
use crate::records;
use crate::split::InputFile;
use crate::store;
use crate::text::count;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use tfseek::{Dataset, IndexMode};
use tfseek_rlds::EpisodeOptions;
use tfseek_tfds::{Episodes, Features, FoundFeatures, LeafClass};
use tfseek_tools::hints::word;
use tfseek_tools::thousands;

/// Episodes without tables are counted if all files together have at most this number of bytes. Counting
/// reads the heads of lists, or whole records if a list is stored in an unusual form.
const MAX_COUNTED: u64 = 1 << 30;

/// What is known of the steps of all files, for each feature with steps.
pub(super) struct EpisodeSummary {
    limit: LimitArgs,
    counts: bool,
    features: Vec<StepFeature>,
}

/// A feature with steps.
struct StepFeature {
    path: String,
    pictures: Vec<String>,
    files: Vec<FileSteps>,
}

/// The steps of a file.
#[derive(Default)]
struct FileSteps {
    shard: PathBuf,
    /// The file of tables, and its bytes.
    tables: Option<(PathBuf, u64)>,
    /// The reason why a file of tables is not used.
    stale: Option<&'static str>,
    /// The number of steps of each episode, ascending. `None` if they were not counted.
    lengths: Option<Vec<u64>>,
    /// The reason why they cannot be counted.
    error: Option<String>,
}

impl EpisodeSummary {
    /// Begins a summary of files. `bytes` is their size.
    pub(super) fn new(found: &FoundFeatures, bytes: u64, limit: LimitArgs) -> EpisodeSummary {
        let feature = |features: &Features, path: String| StepFeature {
            pictures: pictures(features, &path),
            path,
            files: Vec::new(),
        };
        let features = found.features.iter();
        let features = features
            .flat_map(|features| features.paths_of_steps().into_iter().map(|path| feature(features, path)));
        EpisodeSummary { limit, counts: bytes <= MAX_COUNTED, features: features.collect() }
    }

    /// Adds a file, and returns what is known of it as JSON: null for features without steps.
    pub(super) fn add(&mut self, input: &InputFile, found: &FoundFeatures) -> Value {
        let Some(features) = found.features.as_ref().filter(|_| records::is_regular(input)) else {
            return Value::Null;
        };
        let limit = self.limit;
        let counts = self.counts && !store::is_object(input);
        let mut all = serde_json::Map::new();
        for feature in &mut self.features {
            let mut file = FileSteps { shard: input.path().to_path_buf(), ..FileSteps::default() };
            if let Err(e) = file.read(input, features, &feature.path, limit, counts) {
                file.error = Some(e.to_string());
            }
            all.insert(feature.path.clone(), file.as_json(&feature.pictures));
            feature.files.push(file);
        }
        if all.is_empty() { Value::Null } else { all.into() }
    }

    /// Prints the steps of all files, and the state of their tables.
    pub(super) fn print(&self, indent: &str, console: &mut Console) -> Outcome {
        let dim = console.style(DIM);
        for feature in self.features.iter().filter(|feature| !feature.files.is_empty()) {
            console.print(format_args!("{indent}{dim}episodes{dim:#}  {}\n", Key(&feature.path)))?;
            let pictures: Vec<_> = feature.pictures.iter().map(|path| Key(path).to_string()).collect();
            let pictures = if pictures.is_empty() { "none".to_owned() } else { pictures.join(", ") };
            for (name, value) in [
                ("steps", feature.steps()),
                ("tables", feature.tables(self.features.len() > 1, console)),
                ("pictures", pictures),
            ] {
                console.print(format_args!("{indent}  {dim}{name:8}{dim:#}  {value}\n"))?;
            }
        }
        Ok(())
    }
}

/// Returns the paths of the pictures of a step, in it.
fn pictures(features: &Features, path: &str) -> Vec<String> {
    let Some(step) = features.root.get(path) else { return Vec::new() };
    let is_picture = |class: &LeafClass| matches!(class, LeafClass::Image(_) | LeafClass::Video);
    let leaves = step.leaves().into_iter().filter(|(_, leaf)| is_picture(&leaf.class));
    leaves.map(|(path, _)| path).collect()
}

impl FileSteps {
    fn read(
        &mut self,
        input: &InputFile,
        features: &Features,
        feature: &str,
        limit: LimitArgs,
        counts: bool,
    ) -> Result<(), tfseek_tfds::TfdsError> {
        let open = |mode| limit.dataset(limit.index().mode(mode).threads(1)).open(input.path());
        // Tables are not searched without an index, with which they are built.
        let dataset: Dataset = match open(IndexMode::Require) {
            Ok(dataset) => dataset,
            Err(_) if counts => open(IndexMode::Memory)?,
            Err(_) => return Ok(()),
        };
        for found in Episodes::files(&dataset, features, Some(feature))? {
            self.stale = found.as_ref().err().copied().flatten();
            self.tables = found.ok().map(|file| {
                let bytes = store::size(&file).unwrap_or(0);
                (file, bytes)
            });
        }
        if self.tables.is_none() && !counts {
            return Ok(());
        }
        let episodes = Episodes::new(&dataset, features, Some(feature), &EpisodeOptions::default())?;
        let first = input.first();
        let all = dataset.len();
        let end = input.records().map_or(all, |len| all.min(first + len));
        let mut lengths = Vec::new();
        for episode in first..end {
            lengths.push(episodes.steps().length(episode)?);
        }
        lengths.sort_unstable();
        self.lengths = Some(lengths);
        Ok(())
    }

    fn as_json(&self, pictures: &[String]) -> Value {
        let state = match (&self.tables, self.stale) {
            (Some(_), _) => "built",
            (None, Some(_)) => "stale",
            (None, None) => "missing",
        };
        let lengths = self.lengths.as_deref();
        let range = lengths.and_then(range_of);
        json!({
            "tables": state,
            "tables_file": self.tables.as_ref().map(|(file, _)| file.to_string_lossy()),
            "tables_bytes": self.tables.as_ref().map(|(_, bytes)| bytes),
            "stale": self.stale,
            // Null if they are not counted.
            "episodes": lengths.map(<[u64]>::len),
            "steps": lengths.map(|lengths| lengths.iter().sum::<u64>()),
            "shortest": range.map(|[shortest, ..]| shortest),
            "median": range.map(|[_, median, _]| median),
            "longest": range.map(|[.., longest]| longest),
            "pictures": pictures,
            "error": self.error,
        })
    }
}

/// Returns the first number, the median and the last of ascending numbers. Of an even number of them the
/// lower median.
fn range_of(lengths: &[u64]) -> Option<[u64; 3]> {
    let first = lengths.first()?;
    let median = lengths.get((lengths.len() - 1) / 2)?;
    Some([*first, *median, *lengths.last()?])
}

impl StepFeature {
    /// Returns the number of steps, and the lengths of episodes.
    fn steps(&self) -> String {
        if let Some(error) = self.files.iter().find_map(|file| file.error.as_ref()) {
            return format!("not counted: {error}");
        }
        let mut all: Vec<u64> = Vec::new();
        for file in &self.files {
            let Some(lengths) = &file.lengths else {
                let files = self.files.iter().filter(|file| file.lengths.is_none()).count() as u64;
                return format!("not counted: {} without tables", count(files, "file"));
            };
            all.extend(lengths);
        }
        all.sort_unstable();
        let episodes = count(all.len() as u64, "episode");
        let steps = thousands(all.iter().sum::<u64>());
        match range_of(&all) {
            Some([shortest, median, longest]) => {
                let [shortest, median, longest] = [shortest, median, longest].map(thousands);
                format!("{steps} in {episodes}: shortest {shortest}, median {median}, longest {longest}")
            }
            None => format!("{steps} in {episodes}"),
        }
    }

    /// Returns the state of the tables. `named`: the command that builds them names the feature.
    fn tables(&self, named: bool, console: &Console) -> String {
        let built = self.files.iter().filter_map(|file| file.tables.as_ref());
        let (n, bytes) = built.fold((0u64, 0u64), |(n, sum), (_, bytes)| (n + 1, sum + bytes));
        let all = self.files.len() as u64;
        let size = console.size(bytes);
        if n == all {
            return format!("{}, {size}", count(n, "file"));
        }
        let missing: Vec<_> = self.files.iter().filter(|file| file.tables.is_none()).collect();
        let read = console.size(missing.iter().filter_map(|file| store::size(&file.shard)).sum());
        let stale: Vec<_> = missing.iter().filter_map(|file| file.stale).collect();
        let stale = match (stale.len() as u64, stale.first()) {
            (n, Some(reason)) => format!(", {n} stale: {reason}"),
            _ => String::new(),
        };
        let have = if n == 0 { "none".to_owned() } else { format!("{n} of {}, {size}", count(all, "file")) };
        let folder = self.files.first().and_then(|file| file.shard.parent()).unwrap_or(Path::new(""));
        let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
        let folder = word(&folder.to_string_lossy());
        let name = if named { format!("={}", word(&self.path)) } else { String::new() };
        format!("{have}{stale}; `tfseek index --steps{name} {folder}` builds them, which reads {read}")
    }
}
