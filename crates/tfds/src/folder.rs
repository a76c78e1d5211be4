//! From the folder that a user gives to the folder of one version: `<name>[/<configuration>]/<x.y.z>/`.

use crate::error::{Result, TfdsError, TfdsErrorKind};
use crate::info::DatasetInfo;
use crate::json::quoted;
use std::fs;
use std::path::{Path, PathBuf};

/// Maximum number of names in a message.
const MAX_NAMED: usize = 20;

/// The marker in the name of a folder that TensorFlow Datasets is writing, or has left.
const INCOMPLETE: &str = ".incomplete";

/// The folder of one version of a data set, and which of its choices were made on the way to it.
pub(crate) struct VersionFolder {
    pub(crate) path: PathBuf,
    pub(crate) chose_config: bool,
    pub(crate) chose_version: bool,
}

/// Returns the folder of a version: `folder` itself, its highest version, or that of one of its configurations.
///
/// # Errors
/// [`TfdsErrorKind::Folder`] with what the folder has.
pub(crate) fn version_folder(
    folder: &Path,
    config: Option<&str>,
    version: Option<&str>,
) -> Result<VersionFolder> {
    let (mut found, mut chose_config) = (Listed::read(folder)?, false);
    if !found.is_prepared
        && let Some(config) = config
        && found.others.iter().any(|name| name == config)
    {
        found = Listed::read(&folder.join(config))?;
        chose_config = true;
    }
    if found.is_prepared {
        return Ok(VersionFolder { path: found.folder, chose_config, chose_version: false });
    }
    if found.versions.is_empty() {
        return Err(found.without_versions(config.filter(|_| !chose_config)));
    }
    let name = match version {
        None => found.versions.last().map(|(_, name)| name),
        Some(version) => {
            let known = found.versions.iter().map(|(_, name)| name).find(|name| *name == version);
            Some(known.ok_or_else(|| {
                let versions = names(found.versions.iter().rev().map(|(_, name)| name));
                found.fault(format!("expected version {}, found {versions}", quoted(version)))
            })?)
        }
    };
    let path = found.folder.join(name.map_or("", |name| name));
    let inside = Listed::read(&path)?;
    if !inside.is_prepared {
        let others =
            names(found.versions.iter().rev().map(|(_, name)| name).filter(|other| Some(*other) != name));
        let others = if others.is_empty() { others } else { format!("; other versions: {others}") };
        return Err(inside.fault(format!("{}{others}", inside.no_info())));
    }
    Ok(VersionFolder { path, chose_config, chose_version: version.is_some() })
}

/// Returns true if a folder belongs to a prepared data set: it is the folder of a version, of versions, or of configurations. Opens no file.
pub fn is_prepared(folder: &Path) -> bool {
    let leads_to_versions = |found: &Listed| {
        let inside = |(_, name): &([u64; 3], String)| Listed::read(&found.folder.join(name));
        found.is_prepared
            || !found.incomplete.is_empty()
            || found.versions.iter().any(|version| inside(version).is_ok_and(|inside| inside.is_prepared))
    };
    let Ok(found) = Listed::read(folder) else { return false };
    let configs = || found.others.iter().map(|name| Listed::read(&folder.join(name)));
    leads_to_versions(&found) || configs().any(|inside| inside.is_ok_and(|inside| leads_to_versions(&inside)))
}

/// The content of a folder.
struct Listed {
    folder: PathBuf,
    /// True if it is the folder of a version.
    is_prepared: bool,
    /// Folders of versions, the highest last.
    versions: Vec<([u64; 3], String)>,
    /// Folders of versions that were not completed.
    incomplete: Vec<String>,
    /// Other folders.
    others: Vec<String>,
    files: usize,
}

impl Listed {
    fn read(folder: &Path) -> Result<Listed> {
        let io = |e| TfdsError::from(TfdsErrorKind::Io(e)).at(folder);
        let mut listed = Listed {
            folder: folder.to_path_buf(),
            is_prepared: false,
            versions: Vec::new(),
            incomplete: Vec::new(),
            others: Vec::new(),
            files: 0,
        };
        if !fs::metadata(folder).map_err(io)?.is_dir() {
            return Err(listed.fault("expected the folder of a data set, found a file".to_owned()));
        }
        listed.is_prepared = folder.join(DatasetInfo::FILE_NAME).exists();
        if listed.is_prepared {
            return Ok(listed);
        }
        for entry in fs::read_dir(folder).map_err(io)? {
            let path = entry.map_err(io)?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            if !path.is_dir() {
                listed.files = listed.files.saturating_add(1);
            } else if let Some(version) = numbers(&name) {
                listed.versions.push((version, name));
            } else if name.contains(INCOMPLETE) {
                listed.incomplete.push(name);
            } else if !name.starts_with('.') {
                listed.others.push(name);
            }
        }
        listed.versions.sort();
        listed.incomplete.sort();
        listed.others.sort();
        Ok(listed)
    }

    fn fault(&self, reason: String) -> TfdsError {
        TfdsError::from(TfdsErrorKind::Folder { reason }).at(&self.folder)
    }

    /// Returns the error of a folder without versions. `config` is the configuration that it lacks.
    fn without_versions(&self, config: Option<&str>) -> TfdsError {
        let has_versions = |name: &&String| {
            let inside = Listed::read(&self.folder.join(name));
            inside.is_ok_and(|inside| inside.is_prepared || !inside.versions.is_empty())
        };
        let configs = names(self.others.iter().filter(has_versions));
        let reason = match config {
            Some(config) if configs.is_empty() => {
                format!(
                    "expected configuration {}, found no configuration; {}",
                    quoted(config),
                    self.no_info()
                )
            }
            Some(config) => format!("expected configuration {}, found {configs}", quoted(config)),
            None if configs.is_empty() => self.no_info(),
            None => format!("expected one data set, found several configurations: {configs}"),
        };
        self.fault(reason)
    }

    /// Says that the folder has no `dataset_info.json`, and what it has.
    fn no_info(&self) -> String {
        let mut has = Vec::new();
        if !self.incomplete.is_empty() {
            has.push(format!("{}, which is being written or was interrupted", names(self.incomplete.iter())));
        }
        if self.files > 0 {
            let files = if self.files == 1 { "1 file".to_owned() } else { format!("{} files", self.files) };
            has.push(files);
        }
        if !self.others.is_empty() {
            has.push(format!("the folders {}", names(self.others.iter())));
        }
        if has.is_empty() {
            has.push("an empty folder".to_owned());
        }
        let file = DatasetInfo::FILE_NAME;
        format!("expected {file}, or versions such as 1.0.0 with one, found {}", has.join(", and "))
    }
}

/// Returns the numbers of a version `x.y.z`.
fn numbers(name: &str) -> Option<[u64; 3]> {
    let number = |part: &str| part.bytes().all(|c| c.is_ascii_digit()).then(|| part.parse().ok()).flatten();
    let parts: Vec<u64> = name.split('.').map(number).collect::<Option<_>>()?;
    parts.try_into().ok()
}

/// Joins the first names.
fn names<'n>(mut all: impl Iterator<Item = &'n String>) -> String {
    let mut first: Vec<&str> = all.by_ref().take(MAX_NAMED).map(String::as_str).collect();
    if all.next().is_some() {
        first.push("..");
    }
    first.join(", ").escape_debug().to_string()
}
