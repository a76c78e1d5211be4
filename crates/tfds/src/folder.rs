//! From the folder that a user gives to the folder of one version: `<name>[/<configuration>]/<x.y.z>/`.

use crate::error::{Result, TfdsError, refused_folder};
use crate::info::DatasetInfo;
use crate::json::quoted;
use crate::set_folder::{EntryKind, SetFolder, with_store};
use std::path::Path;
use std::sync::Arc;
use tfseek::io::Store;

/// Maximum number of names in a message.
const MAX_NAMED: usize = 20;

/// The marker in the name of a folder that TensorFlow Datasets is writing, or has left.
const INCOMPLETE: &str = ".incomplete";

/// The folder of one version of a data set, and which of its choices were made on the way to it.
pub(crate) struct VersionFolder {
    pub(crate) folder: SetFolder,
    pub(crate) chose_config: bool,
    pub(crate) chose_version: bool,
}

/// Returns the folder of a version: `folder` itself, its highest version, or the highest version of one of
/// its configurations. In a store without listings it is `folder` itself.
///
/// # Errors
/// [`TfdsErrorKind::Folder`](crate::TfdsErrorKind::Folder) with what the folder has.
pub(crate) fn version_folder(
    folder: SetFolder,
    config: Option<&str>,
    version: Option<&str>,
) -> Result<VersionFolder> {
    let mut found = Listed::read(folder)?;
    let mut chose_config = false;
    if !found.is_prepared
        && let Some(config) = config
        && found.others.iter().any(|name| name == config)
    {
        found = Listed::read(found.folder.below(config))?;
        chose_config = true;
    }
    if found.is_prepared {
        return Ok(VersionFolder { folder: found.folder, chose_config, chose_version: false });
    }
    if found.versions.is_empty() {
        return Err(found.without_versions(config.filter(|_| !chose_config)));
    }
    let name = match version {
        None => found.versions.last().map(|(_, name)| name),
        Some(version) => {
            let mut all = found.versions.iter().rev();
            let known = all.find(|(numbers, name)| name == version || is_among(numbers, version));
            let (_, name) = known.ok_or_else(|| {
                let versions = names(found.versions.iter().rev().map(|(_, name)| name));
                found.fault(format!("expected version {}, found {versions}", quoted(version)))
            })?;
            Some(name)
        }
    };
    let inside = Listed::read(found.folder.below(name.map_or("", |name| name)))?;
    if !inside.is_prepared {
        let others =
            names(found.versions.iter().rev().map(|(_, name)| name).filter(|other| Some(*other) != name));
        let others = if others.is_empty() { others } else { format!("; other versions: {others}") };
        return Err(inside.fault(format!("{}{others}", inside.no_info())));
    }
    Ok(VersionFolder { folder: inside.folder, chose_config, chose_version: version.is_some() })
}

/// Returns true for a version that a pattern such as `1.*.*` means.
fn is_among(version: &[u64; 3], pattern: &str) -> bool {
    let parts: Vec<&str> = pattern.split('.').collect();
    let is_part = |(number, part): (&u64, &&str)| *part == "*" || part.parse() == Ok(*number);
    parts.len() == version.len() && parts.contains(&"*") && version.iter().zip(&parts).all(is_part)
}

/// Returns true if a folder belongs to a prepared data set: it is the folder of a version, of versions, or of
/// configurations. Opens no file. A URL is one of `store`, and is assumed to belong to a data set if the
/// store has no listings.
pub fn is_prepared(folder: &Path, store: Option<&Arc<dyn Store>>) -> bool {
    let leads_to_versions = |found: &Listed| {
        let inside = |(_, name): &([u64; 3], String)| Listed::read(found.folder.below(name));
        found.is_prepared
            || !found.incomplete.is_empty()
            || found.versions.iter().any(|version| inside(version).is_ok_and(|inside| inside.is_prepared))
    };
    let Ok(found) = SetFolder::new(folder, &with_store(store)).and_then(Listed::read) else { return false };
    let configs = || found.possible_configs().map(|name| Listed::read(found.folder.below(name)));
    leads_to_versions(&found) || configs().any(|inside| inside.is_ok_and(|inside| leads_to_versions(&inside)))
}

/// The content of a folder.
struct Listed {
    folder: SetFolder,
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
    fn read(folder: SetFolder) -> Result<Listed> {
        let mut listed = Listed {
            folder,
            is_prepared: false,
            versions: Vec::new(),
            incomplete: Vec::new(),
            others: Vec::new(),
            files: 0,
        };
        listed.folder.check_folder()?;
        listed.is_prepared = listed.folder.find(DatasetInfo::FILE_NAME)?.is_some();
        if listed.is_prepared {
            return Ok(listed);
        }
        for entry in listed.folder.entries()?.into_iter().flatten() {
            let name = entry.name.to_string_lossy().into_owned();
            if !matches!(entry.kind, EntryKind::Folder) {
                listed.files += 1;
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
        refused_folder(self.folder.path(), reason)
    }

    /// Returns the names of folders that may be configurations. In a store each costs a request, so they are
    /// the first ones.
    fn possible_configs(&self) -> impl Iterator<Item = &String> {
        self.others.iter().take(if self.folder.is_remote() { MAX_NAMED } else { usize::MAX })
    }

    /// Returns the error of a folder without versions. `config` is the configuration that it lacks.
    fn without_versions(&self, config: Option<&str>) -> TfdsError {
        let has_versions = |name: &&String| {
            let inside = Listed::read(self.folder.below(name));
            inside.is_ok_and(|inside| inside.is_prepared || !inside.versions.is_empty())
        };
        let configs = names(self.possible_configs().filter(has_versions));
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
