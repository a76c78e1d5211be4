//! The features of files that were given without a word about TensorFlow Datasets.

use crate::error::Result;
use crate::feature::{
    Encoding, FeatureTree, Features, Labels, LeafClass, LeafFeature, SequenceFeature, StoredNames, joined,
};
use crate::info::DatasetInfo;
use crate::labels::FILE_NAME;
use crate::set_folder::{EntryKind, SetFolder, is_denied, with_store};
use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tfseek::io::Store;
use tfseek::{DatasetOptions, Filter};

/// The features of some files, if all of them have the same.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct FoundFeatures {
    /// The features. `None` if a file has no `features.json`, or two files have different ones.
    pub features: Option<Arc<Features>>,
    /// Warnings about a `features.json` that cannot be read, and about names that do not fit.
    pub warnings: Vec<String>,
}

/// A leaf, as records store it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct StoredFeature<'a> {
    /// The name of its values in a record, such as `objects/bbox`, or `objects/ids/ragged_flat_values` in
    /// nested sequences.
    pub name: String,
    /// The path of the feature.
    pub path: String,
    /// The feature of an item.
    pub leaf: &'a LeafFeature,
    /// The sequences around it, outermost first.
    pub sequences: Vec<&'a SequenceFeature>,
}

impl FoundFeatures {
    /// Finds the `features.json` of files: in the folder of each file, or in the folder above it if the
    /// `dataset_info.json` there names shards in folders. Each is read once. Nothing is an error, because the
    /// files can be read without features. URLs are in `store`.
    pub fn of_files<'p>(
        paths: impl IntoIterator<Item = &'p Path>,
        store: Option<&Arc<dyn Store>>,
    ) -> FoundFeatures {
        let mut found = FoundFeatures::default();
        let mut folders: Vec<&Path> = Vec::new();
        for folder in paths.into_iter().filter_map(Path::parent) {
            if folders.last() != Some(&folder) {
                folders.push(folder);
            }
        }
        folders.sort_unstable();
        folders.dedup();
        let options = with_store(store);
        let mut last = None;
        for folder in folders {
            let features = match features_of(folder, &options, &mut last) {
                Ok(OfFolder::Same) => continue,
                Ok(OfFolder::New(features, warnings)) => {
                    found.warnings.extend(warnings);
                    features
                }
                Ok(OfFolder::Unknown) => return found.unknown(),
                Err(e) => {
                    found.warnings.push(format!("features are not used: {e}"));
                    return found.unknown();
                }
            };
            if found.features.as_ref().is_some_and(|known| **known != features) {
                return found.unknown();
            }
            found.features = Some(Arc::new(features));
        }
        found
    }

    fn unknown(self) -> FoundFeatures {
        FoundFeatures { features: None, ..self }
    }

    /// Returns the names of classes, by the names under which records store the numbers.
    pub fn label_names(&self) -> BTreeMap<String, Arc<[Box<str>]>> {
        let labels = self.features.iter().flat_map(|features| features.labels());
        labels.filter_map(|(stored, labels)| Some((stored, labels.names.clone()?))).collect()
    }

    /// Returns a condition that knows the names of classes: [`Features::filter`]. Without features it is the
    /// same.
    ///
    /// # Errors
    /// Errors of [`Features::filter`].
    pub fn filter(&self, filter: &Filter) -> tfseek::Result<Filter> {
        self.features.as_ref().map_or_else(|| Ok(filter.clone()), |features| features.filter(filter))
    }
}

impl Features {
    /// Returns a condition on records that compares class labels with the names of their classes too:
    /// `label == "horse"`. Labels without a file of names have none.
    ///
    /// # Errors
    /// [`ErrorKind::Filter`](tfseek::ErrorKind::Filter) for the name of no class.
    pub fn filter(&self, filter: &Filter) -> tfseek::Result<Filter> {
        let mut filter = filter.clone();
        for (stored, Labels { names, .. }) in self.labels() {
            if let Some(names) = names.as_ref().filter(|_| filter.features().contains(&stored.as_str())) {
                filter = filter.with_names(&stored, names.iter().map(|name| &**name).zip(0..))?;
            }
        }
        Ok(filter)
    }

    /// Returns the leaves as records store them, in the order of the file.
    pub fn stored(&self) -> Vec<StoredFeature<'_>> {
        self.root.stored()
    }

    fn labels(&self) -> Vec<(String, &Labels)> {
        let stored = self.stored().into_iter();
        stored.filter_map(|stored| Some((stored.name, stored.leaf.labels()?))).collect()
    }
}

impl FeatureTree {
    /// Returns the leaves below the feature with their paths, in the order of the file.
    pub fn leaves(&self) -> Vec<(String, &LeafFeature)> {
        self.stored().into_iter().map(|stored| (stored.path, stored.leaf)).collect()
    }

    /// Returns the leaves below the feature as records store them.
    fn stored(&self) -> Vec<StoredFeature<'_>> {
        let mut found = Vec::new();
        walk(self, "", &[], &mut found);
        found
    }
}

/// Prints the leaf in its sequences: `Sequence(ClassLabel(3))`, `Dataset(Sequence(Tensor(float32, [2]), 4))`.
impl fmt::Display for StoredFeature<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for sequence in &self.sequences {
            f.write_str(if sequence.steps { "Dataset(" } else { "Sequence(" })?;
        }
        self.leaf.fmt(f)?;
        for sequence in self.sequences.iter().rev() {
            match sequence.length {
                Some(length) => write!(f, ", {length})")?,
                None => f.write_str(")")?,
            }
        }
        Ok(())
    }
}

/// Adds the leaves below a feature in these sequences.
fn walk<'a>(
    feature: &'a FeatureTree,
    path: &str,
    sequences: &[&'a SequenceFeature],
    found: &mut Vec<StoredFeature<'a>>,
) {
    match feature {
        FeatureTree::Dict(features) => {
            features.iter().for_each(|(name, feature)| walk(feature, &joined(path, name), sequences, found));
        }
        FeatureTree::Sequence(sequence) => {
            walk(&sequence.feature, path, &[sequences, &[&**sequence]].concat(), found);
        }
        FeatureTree::Leaf(leaf) => {
            let open = leaf.shape.iter().filter(|size| size.is_none()).count();
            let is_shaped = leaf.encoding != Encoding::None && open > 1;
            let base = if is_shaped { StoredNames::value_of(path) } else { path.to_owned() };
            let levels = sequences.len() + usize::from(leaf.class == LeafClass::Video);
            let name = StoredNames::new(&base, levels).values();
            let sequences = sequences.to_vec();
            found.push(StoredFeature { name, path: path.to_owned(), leaf, sequences });
        }
    }
}

/// The features of a folder's files.
enum OfFolder {
    Unknown,
    /// Those that were read last.
    Same,
    New(Features, Vec<String>),
}

/// Returns the features of a folder's files. `last` is the folder of those that were read last.
fn features_of(folder: &Path, options: &DatasetOptions, last: &mut Option<PathBuf>) -> Result<OfFolder> {
    let own = SetFolder::new(folder, options)?;
    if let Some((features, warnings)) = features_in(&own)? {
        *last = Some(own.path().to_path_buf());
        return Ok(OfFolder::New(features, warnings));
    }
    // The folder above belongs to the files only if its shards are in folders.
    let above = folder.parent().filter(|above| *above != folder);
    let above = above.and_then(|above| SetFolder::new(above, options).ok());
    let has_folders = |info: DatasetInfo| info.splits.iter().any(|split| split.template.has_folders());
    let Some(above) = above.filter(|above| DatasetInfo::read(above).ok().flatten().is_some_and(has_folders))
    else {
        return Ok(OfFolder::Unknown);
    };
    if last.as_deref() == Some(above.path()) {
        return Ok(OfFolder::Same);
    }
    let features = features_in(&above)?;
    *last = Some(above.path().to_path_buf());
    Ok(features.map_or(OfFolder::Unknown, |(features, warnings)| OfFolder::New(features, warnings)))
}

/// Reads the features of a folder. `None` if it has none.
fn features_in(folder: &SetFolder) -> Result<Option<(Features, Vec<String>)>> {
    if !folder.is_remote() && !matches!(folder.find(FILE_NAME)?, Some(EntryKind::File(_))) {
        return Ok(None);
    }
    match Features::find(folder) {
        Err(e) if is_denied(&e) => Ok(None),
        found => found,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compile::DecodeOptions;
    use crate::decoder::Decoder;

    const FEATURES: &str = r#"{"type": "tensorflow_datasets.core.features.features_dict.FeaturesDict", "content": {
        "label": {"type": "tensorflow_datasets.core.features.class_label_feature.ClassLabel", "content": {"num_classes": 2}},
        "objects": {"type": "tensorflow_datasets.core.features.sequence_feature.Sequence", "content": {"length": null, "feature":
            {"type": "tensorflow_datasets.core.features.sequence_feature.Sequence", "content": {"length": 3, "feature":
                {"type": "tensorflow_datasets.core.features.class_label_feature.ClassLabel", "content": {"num_classes": 3}}}}}},
        "video": {"type": "tensorflow_datasets.core.features.sequence_feature.Sequence", "content": {"length": null, "feature":
            {"type": "tensorflow_datasets.core.features.video_feature.Video", "content": {"shape": [null, 4, 4, 3]}}}},
        "depth": {"type": "tensorflow_datasets.core.features.tensor_feature.Tensor",
            "content": {"shape": [null, null], "dtype": "float32", "encoding": "zlib"}},
        "depths": {"type": "tensorflow_datasets.core.features.sequence_feature.Sequence", "content": {"length": null, "feature":
            {"type": "tensorflow_datasets.core.features.sequence_feature.Sequence", "content": {"length": null, "feature":
                {"type": "tensorflow_datasets.core.features.tensor_feature.Tensor",
                    "content": {"shape": [null, null], "dtype": "float32", "encoding": "bytes"}}}}}}
    }}"#;

    fn folder(at: &Path, features: &str, labels: &str) {
        std::fs::create_dir_all(at).unwrap();
        std::fs::write(at.join("features.json"), features).unwrap();
        std::fs::write(at.join("label.labels.txt"), labels).unwrap();
    }

    fn found(files: &[PathBuf]) -> FoundFeatures {
        FoundFeatures::of_files(files.iter().map(PathBuf::as_path), None)
    }

    /// A decoder reads the columns with these names.
    #[test]
    fn stored_names_are_those_of_the_decoder() {
        let features = Features::parse(FEATURES.as_bytes()).unwrap();
        let stored: Vec<_> = features.stored().into_iter().map(|stored| stored.name).collect();
        let expected = [
            "label",
            "objects/ragged_flat_values",
            "video/ragged_flat_values",
            "depth/value",
            "depths/value/ragged_flat_values",
        ];
        assert_eq!(
            stored.iter().collect::<std::collections::BTreeSet<_>>(),
            expected.map(str::to_owned).iter().collect()
        );
        let shown =
            features.stored().iter().map(|stored| format!("{} {stored}", stored.path)).collect::<Vec<_>>();
        let shown_objects = "objects Sequence(Sequence(ClassLabel(3), 3))".to_owned();
        assert!(shown.contains(&shown_objects), "{shown:?}");
        let options = DecodeOptions { encoded: true, ..DecodeOptions::default() };
        let decoder = Decoder::new(&features, &options).unwrap();
        let schema = decoder.schema().to_json();
        for name in stored {
            assert!(schema.contains(&format!("{name:?}")), "{name}: {schema}");
        }
    }

    #[test]
    fn features_are_those_of_all_files() {
        let dir = tempfile::tempdir().unwrap();
        let at = |path: &str| dir.path().join(path);
        folder(&at("a"), FEATURES, "cat\ndog\n");
        folder(&at("same"), FEATURES, "cat\ndog\n");
        folder(&at("other"), FEATURES, "dog\ncat\n");
        folder(&at("bad"), "{", "");
        std::fs::create_dir_all(at("plain")).unwrap();
        let files = |names: &[&str]| names.iter().map(|name| at(name).join("x.tfrecord")).collect::<Vec<_>>();
        let all = found(&files(&["a", "a", "same"]));
        assert_eq!((all.features.is_some(), all.warnings.len()), (true, 0));
        assert_eq!(all.label_names().keys().collect::<Vec<_>>(), ["label"]);
        let filter = all.filter(&"label != 'dog'".parse().unwrap()).unwrap();
        assert_eq!(filter, "label != 1".parse().unwrap());
        assert!(
            all.filter(&"label == 'horse'".parse().unwrap())
                .unwrap_err()
                .to_string()
                .contains("\"cat\", \"dog\"")
        );
        for names in [&["a", "other"][..], &["a", "plain"], &["plain"], &[]] {
            let none = found(&files(names));
            assert_eq!((none.features.is_none(), none.warnings.len()), (true, 0), "{names:?}");
            assert_eq!(none.filter(&filter).unwrap(), filter);
        }
        let bad = found(&files(&["bad"]));
        assert!(bad.features.is_none() && bad.warnings[0].contains("features.json"), "{bad:?}");
    }

    /// A folder below the features' folder belongs to them if shards are in folders.
    #[test]
    fn features_may_be_above_the_shards() {
        let dir = tempfile::tempdir().unwrap();
        folder(dir.path(), FEATURES, "cat\ndog\n");
        let shards = dir.path().join("train");
        std::fs::create_dir(&shards).unwrap();
        let file = [shards.join("0.tfrecord")];
        assert!(found(&file).features.is_none());
        let info = |template: &str| {
            let text = format!(
                r#"{{"name": "x", "splits": [{{"name": "train", "filepathTemplate": "{template}"}}]}}"#
            );
            std::fs::write(dir.path().join("dataset_info.json"), text).unwrap();
            found(&file).features.is_some()
        };
        assert!(!info("{SPLIT}-{SHARD_INDEX}.tfrecord") && info("{SPLIT}/{SHARD_INDEX}.tfrecord"));
    }
}
