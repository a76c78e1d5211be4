//! Sets of shards like `train-00003-of-00010.tfrecord`: parsing of their names, and detection of missing
//! shards.

use crate::error::{Error, PathsError, Result};
use crate::io::{Compression, folder, join, url_of};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// A resolved shard.
pub(super) struct FoundShard {
    pub(super) path: PathBuf,
    /// True if a folder, a wildcard or an `@` found it. False if the caller gave its full name.
    pub(super) searched: bool,
}

/// Maximum number of missing shards in an error, which contains the number of all.
const MAX_LISTED: usize = 1000;
/// Maximum number of other sets in an error.
const MAX_OTHERS: usize = 8;

/// The parsed name of one shard of a set: `<stem>-<index>-of-<total><suffix>`. Both numbers may have any
/// width.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ShardName<'a> {
    pub(super) stem: &'a str,
    pub(super) index: &'a str,
    pub(super) total: &'a str,
    pub(super) suffix: &'a str,
}

impl<'a> ShardName<'a> {
    pub(super) fn parse(name: &'a str) -> Option<ShardName<'a>> {
        // The last match is used, because a stem may itself have the form of a shard name.
        name.rmatch_indices("-of-").find_map(|(at, of)| {
            let left = name.get(..at)?;
            let right = name.get(at + of.len()..)?;
            let stem = left.trim_end_matches(|c: char| c.is_ascii_digit());
            let suffix = right.trim_start_matches(|c: char| c.is_ascii_digit());
            let index = left.strip_prefix(stem)?;
            let total = right.strip_suffix(suffix)?;
            let stem = stem.strip_suffix('-')?;
            (!index.is_empty() && !total.is_empty()).then_some(ShardName { stem, index, total, suffix })
        })
    }

    /// Returns index and total. `None` if one exceeds 64 bits, or the index is not below the total.
    pub(super) fn numbers(&self) -> Option<(u64, u64)> {
        let index = self.index.parse().ok()?;
        let total = self.total.parse().ok()?;
        (index < total).then_some((index, total))
    }
}

/// Returns true for the name of a shard of a set.
pub(crate) fn is_of_set(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    ShardName::parse(&name).is_some_and(|member| member.numbers().is_some())
}

/// Returns the set that a shard belongs to by its name: `data/train@4.tfrecord` for
/// `data/train-00001-of-00004.tfrecord`. `None` if it has no such name. [`resolve`](super::resolve) accepts
/// the result.
///
/// ```
/// use std::path::Path;
/// use tfseek::paths::set_of;
///
/// assert_eq!(set_of(Path::new("a/x-03-of-10.tfr")).as_deref(), Some(Path::new("a/x@10.tfr")));
/// assert_eq!(set_of(Path::new("a/x.tfr")), None);
/// ```
pub fn set_of(path: &Path) -> Option<PathBuf> {
    let member = ShardName::parse(path.file_name()?.to_str()?)?;
    let (_, total) = member.numbers()?;
    let name = format!("{}@{total}{}", member.stem, member.suffix);
    AtPattern::parse(&name).is_some().then(|| match url_of(path) {
        Some(_) => join(folder(path), name),
        None => path.with_file_name(name),
    })
}

/// Checks that no shard is missing from a set with at least one searched shard.
///
/// # Errors
/// [`PathsError::MissingShards`].
pub(super) fn check_complete(found: &[FoundShard]) -> Result<()> {
    #[derive(Default)]
    struct NumberedSet {
        total: u64,
        indices: Vec<u64>,
        width: usize,
        searched: bool,
    }
    let mut sets = BTreeMap::<_, NumberedSet>::new();
    for FoundShard { path, searched } in found {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let Some(member) = ShardName::parse(&name) else { continue };
        let Some((index, total)) = member.numbers() else { continue };
        let key = (path.parent(), [member.stem, member.total, member.suffix].map(String::from));
        let set = sets.entry(key).or_default();
        // The narrowest index shows the width of the padding: `-0-of-12` or `-00000-of-00012`.
        set.width =
            if set.indices.is_empty() { member.index.len() } else { set.width.min(member.index.len()) };
        set.total = total;
        set.indices.push(index);
        set.searched |= searched;
    }
    for ((dir, [stem, total_text, suffix]), mut set) in sets {
        set.indices.sort_unstable();
        set.indices.dedup();
        let missing_count = set.total - set.indices.len() as u64;
        if !set.searched || missing_count == 0 {
            continue;
        }
        let dir = dir.unwrap_or(Path::new(""));
        let width = set.width;
        let name = |index: &str| join(dir, format!("{stem}-{index}-of-{total_text}{suffix}"));
        let missing = gaps(&set.indices, set.total)
            .take(MAX_LISTED)
            .map(|i| name(&padded_to(width, i)))
            .collect::<Vec<PathBuf>>();
        let set_name = name("?").display().to_string().into();
        return Err(
            PathsError::MissingShards { set: set_name, total: set.total, missing, missing_count }.into()
        );
    }
    Ok(())
}

/// Checks that no data set is there twice among the shards that were searched for: in two compressions, or in
/// sets with two numbers of shards.
///
/// # Errors
/// [`PathsError::Twice`].
pub(super) fn check_once(found: &[FoundShard]) -> Result<()> {
    let mut forms = HashMap::new();
    let mut shards = HashMap::new();
    for FoundShard { path, .. } in found.iter().filter(|shard| shard.searched) {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let member = ShardName::parse(&name).and_then(|member| Some((member.numbers()?, member)));
        let numbers = member.as_ref().map(|(numbers, _)| *numbers);
        let (stem, suffix) = member.map_or((&*name, ""), |(_, member)| (member.stem, member.suffix));
        let (of_stem, stem) = Compression::of_name(stem);
        let (of_suffix, suffix) = Compression::of_name(suffix);
        let key = (path.parent(), stem.to_owned(), suffix.to_owned(), numbers.is_some());
        let form = (numbers.map(|(_, total)| total), of_stem, of_suffix);
        let (first_form, first) = *forms.entry(key.clone()).or_insert((form, path));
        let same = *shards.entry((key, numbers.map(|(index, _)| index))).or_insert(path);
        if first_form != form || same != path {
            let first = if first_form == form { same } else { first };
            let sets = [first, path].map(|path| set_of(path).unwrap_or_else(|| path.clone()));
            let is_told = sets.first() != sets.last();
            return Err(PathsError::Twice {
                found: if is_told { sets } else { [first, path].map(Clone::clone) },
            }
            .into());
        }
    }
    Ok(())
}

/// Formats a number with leading zeros up to this width, which may exceed the maximum width of `format!`.
pub(super) fn padded_to(width: usize, number: u64) -> String {
    let digits = number.to_string();
    let zeros = width.saturating_sub(digits.len());
    "0".repeat(zeros) + &digits
}

/// Returns the numbers below `total` that are not in the ascending `present`. Lazy, so a total of 2^60 takes
/// no memory.
fn gaps(present: &[u64], total: u64) -> impl Iterator<Item = u64> {
    let mut present = present.iter().copied().peekable();
    (0..total).filter(move |i| present.next_if_eq(i).is_none())
}

/// Returns the folder of this path. The empty path is the current folder.
pub(super) fn folder_at(path: &Path) -> &Path {
    if path.as_os_str().is_empty() { Path::new(".") } else { path }
}

/// A parsed pattern `<stem>@<total><suffix>`. The total may be `*`.
pub(super) struct AtPattern<'a> {
    stem: &'a str,
    total: &'a str,
    suffix: &'a str,
}

impl<'a> AtPattern<'a> {
    pub(super) fn parse(name: &'a str) -> Option<AtPattern<'a>> {
        let (stem, rest) = name.rsplit_once('@')?;
        let suffix = match rest.strip_prefix('*') {
            Some(suffix) => suffix,
            None => rest.trim_start_matches(|c: char| c.is_ascii_digit()),
        };
        let total = rest.strip_suffix(suffix)?;
        let ends_well = suffix.is_empty() || suffix.starts_with('.');
        (!stem.is_empty() && !total.is_empty() && ends_well).then_some(AtPattern { stem, total, suffix })
    }

    /// Returns true for the name of a shard of a set of this name, whatever the number of its shards.
    pub(super) fn names(&self, member: &ShardName<'_>) -> bool {
        (member.stem, member.suffix) == (self.stem, self.suffix)
    }

    /// Returns the names of the set's shards, if the pattern has their number and they are at most this many.
    pub(super) fn members(&self, most: usize) -> Option<impl Iterator<Item = String>> {
        let AtPattern { stem, suffix, .. } = *self;
        let total = self.total.parse().ok().filter(|total| *total <= most)?;
        Some((0..total).map(move |k| format!("{stem}-{k:05}-of-{total:05}{suffix}")))
    }

    /// Returns the set's shards in `dir`. Lists the folder instead of counting up to the total, which may be
    /// any number. No shard is an error unless gaps are allowed.
    pub(super) fn resolve(&self, dir: &Path, allow_missing: bool) -> Result<Vec<FoundShard>> {
        let listed = folder_at(dir);
        let in_dir = |e| Error::from(e).in_file(listed);
        let entries = match fs::read_dir(listed) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => None,
            entries => Some(entries.map_err(in_dir)?),
        };
        let names = entries.into_iter().flatten().map(|entry| Ok(entry.map_err(in_dir)?.file_name()));
        self.select(dir, names, allow_missing)
    }

    /// Returns the set's shards among the names in `dir`.
    pub(super) fn select(
        &self,
        dir: &Path,
        names: impl Iterator<Item = Result<OsString>>,
        allow_missing: bool,
    ) -> Result<Vec<FoundShard>> {
        let set = |total: &str, suffix: &str| join(dir, format!("{}@{total}{suffix}", self.stem));
        let pattern = || set(self.total, self.suffix).display().to_string().into();
        let bad = |reason: String| {
            Error::from(PathsError::BadPattern { pattern: pattern(), reason: reason.into() })
        };
        if self.stem.contains(['*', '?', '[']) || self.suffix.contains(['*', '?', '[']) {
            return Err(bad("wildcards cannot be combined with `@`".into()));
        }
        let given_total = match self.total {
            "*" => None,
            total => match total.parse() {
                Ok(0) => return Err(bad("expected at least one shard, found 0".into())),
                Ok(total) => Some(total),
                Err(_) => return Err(bad("the number of shards does not fit into 64 bits".into())),
            },
        };
        let mut found = Vec::new();
        let mut totals = BTreeSet::<String>::new();
        let mut indices = Vec::new();
        // Sets of the same name with another number of shards or another suffix.
        let mut others = BTreeSet::new();
        for name in names {
            let name = name?;
            // The pattern is UTF-8, so a name that is not UTF-8 cannot belong to its set.
            let Some(member) = name.to_str().and_then(ShardName::parse) else { continue };
            let Some((index, total)) = member.numbers() else { continue };
            if !self.names(&member) || given_total.is_some_and(|given| given != total) {
                if member.stem == self.stem {
                    others.insert(set(&total.to_string(), member.suffix));
                    if others.len() > MAX_OTHERS {
                        others.pop_last();
                    }
                }
                continue;
            }
            totals.insert(member.total.into());
            indices.push(index);
            found.push(FoundShard { path: join(dir, &name), searched: true });
        }
        // A set that was rewritten with another number of shards next to the old one. Using both would
        // duplicate each record.
        if totals.len() > 1 {
            let totals = Vec::from_iter(totals).join("` and `-of-");
            return Err(bad(format!("expected one set, found `-of-{totals}`")));
        }
        indices.sort_unstable();
        if let Some((twice, _)) = indices.iter().zip(indices.iter().skip(1)).find(|(a, b)| a == b) {
            return Err(bad(format!("shard {twice} exists twice")));
        }
        if found.is_empty() && !allow_missing {
            return Err(if others.is_empty() {
                PathsError::NoMatch { pattern: pattern() }
            } else {
                PathsError::OtherSets { pattern: pattern(), found: others.into_iter().collect() }
            }
            .into());
        }
        Ok(found)
    }
}
