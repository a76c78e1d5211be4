//! The files of a folder that state its features: `features.json`, and the names of labels.

use crate::error::{Result, TfdsError, refused_folder};
use crate::feature::{FeatureTree, Features, Labels, LeafClass};
use crate::grammar::refused;
use crate::set_folder::{SetFolder, with_store};
use std::path::Path;
use std::sync::Arc;
use tfseek::io::Store;

/// The name of the file with the features.
pub(crate) const FILE_NAME: &str = "features.json";

impl Features {
    /// Reads the `features.json` of a folder or of a URL in `store`, and the names of all labels. Also
    /// returns warnings about names that do not fit.
    ///
    /// # Errors
    /// [`TfdsErrorKind::Folder`](crate::TfdsErrorKind::Folder) if there is no such file, and the errors of
    /// [`Features::parse`].
    pub fn read(folder: &Path, store: Option<&Arc<dyn Store>>) -> Result<(Features, Vec<String>)> {
        let folder = SetFolder::new(folder, &with_store(store))?;
        Features::find(&folder)?.ok_or_else(|| missing_features(&folder))
    }

    /// Reads the features of a folder. `None` if it has no `features.json`.
    pub(crate) fn find(folder: &SetFolder) -> Result<Option<(Features, Vec<String>)>> {
        let Some(text) = read(folder, FILE_NAME)? else { return Ok(None) };
        let mut features = Features::parse(&text).map_err(|e| e.at(&folder.join(FILE_NAME)))?;
        let mut warnings = Vec::new();
        named(&mut features.root, folder, "", &mut warnings)?;
        Ok(Some((features, warnings)))
    }
}

/// Returns the error of a folder without features.
pub(crate) fn missing_features(folder: &SetFolder) -> TfdsError {
    let reason = format!("expected {FILE_NAME}, which TFDS writes since its version 4, found none");
    refused_folder(folder.path(), reason)
}

/// Reads a file. `None` if there is none.
fn read(folder: &SetFolder, name: &str) -> Result<Option<Vec<u8>>> {
    folder.read(name, |reason| refused("", reason))
}

/// Adds the names of the labels in a feature. The name of their file has the names of the dicts around them.
fn named(
    feature: &mut FeatureTree,
    folder: &SetFolder,
    name: &str,
    warnings: &mut Vec<String>,
) -> Result<()> {
    match feature {
        FeatureTree::Dict(features) => features.iter_mut().try_for_each(|(own, feature)| {
            let own = own.replace('/', ".");
            let name = if name.is_empty() { own } else { format!("{name}-{own}") };
            named(feature, folder, &name, warnings)
        }),
        FeatureTree::Sequence(sequence) => named(&mut sequence.feature, folder, name, warnings),
        FeatureTree::Leaf(leaf) => match &mut leaf.class {
            LeafClass::Label(labels) | LeafClass::Image(Some(labels)) => {
                labels_of(labels, folder, name, warnings)
            }
            _ => Ok(()),
        },
    }
}

fn labels_of(labels: &mut Labels, folder: &SetFolder, name: &str, warnings: &mut Vec<String>) -> Result<()> {
    // A name with a zero byte has no file.
    if labels.names.is_some() || name.contains('\0') {
        return Ok(());
    }
    let file = format!("{name}.labels.txt");
    let Some(text) = read(folder, &file)? else { return Ok(()) };
    let path = folder.join(file);
    let text =
        String::from_utf8(text).map_err(|_| refused("", "expected UTF-8, found other bytes").at(&path))?;
    let names: Arc<[Box<str>]> =
        text.lines().map(str::trim).filter(|line| !line.is_empty()).map(Box::from).collect();
    let classes = labels.classes.unwrap_or(names.len() as u64);
    if classes != names.len() as u64 {
        warnings.push(format!(
            "{}: expected the names of {classes} classes, found {}",
            tfseek::error::printable(&path),
            names.len()
        ));
    }
    (labels.classes, labels.names) = (Some(classes), Some(names));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Names are stripped, blank lines are dropped, and names of features are joined.
    #[test]
    fn labels_have_the_names_of_their_file() {
        let dir = tempfile::tempdir().unwrap();
        let label = |n: &str| {
            format!(
                r#"{{"pythonClassName": "tensorflow_datasets.core.features.class_label_feature.ClassLabel", "classLabel": {{"numClasses": "{n}"}}}}"#
            )
        };
        let dict = |features: &str| {
            format!(
                r#"{{"pythonClassName": "tensorflow_datasets.core.features.features_dict.FeaturesDict", "featuresDict": {{"features": {{{features}}}}}}}"#
            )
        };
        let inner = dict(&format!(r#""a/b": {}"#, label("2")));
        let text = dict(&format!(r#""objects": {inner}, "plain": {}, "few": {}"#, label("3"), label("2")));
        std::fs::write(dir.path().join("features.json"), text).unwrap();
        std::fs::write(dir.path().join("objects-a.b.labels.txt"), " cat \n\n  \nbig dog\n").unwrap();
        std::fs::write(dir.path().join("few.labels.txt"), "one\n").unwrap();
        let (features, warnings) = Features::read(dir.path(), None).unwrap();
        let labels = |path: &str| match features.root.get(path) {
            Some(FeatureTree::Leaf(leaf)) => leaf.labels().unwrap().clone(),
            _ => panic!(),
        };
        let names = labels("objects/a/b").names.unwrap();
        assert_eq!(names.iter().map(|name| &**name).collect::<Vec<_>>(), ["cat", "big dog"]);
        assert_eq!(["02", "2", "3"].map(|name| labels("plain").number(name)), [None, Some(2), None]);
        assert_eq!(warnings.len(), 1);
        assert!(
            warnings[0].ends_with("few.labels.txt: expected the names of 2 classes, found 1"),
            "{warnings:?}"
        );
    }
}
