//! Resolution of URLs: the objects of a store, in as few listings as possible.

use super::folder::{is_io, shards_by_name};
use super::pattern::{MAX_NAMES, MissingWords, at_pattern, expand, is_pattern, searched};
use super::set::FoundShard;
use super::walk::{NamePattern, has_wildcard, is_of_folders};
use crate::error::{Error, PathsError, Result};
use crate::io::{Listing, Storage, Store, bare_url, split_query, threads, two_of_one_name};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::io;
use std::iter::once;
use std::path::{Path, PathBuf};

/// Number of names of objects in one folder that are found by one listing.
const MANY: usize = 16;

/// Number of requests at a time to a store without listings.
const REQUESTS: usize = 32;

/// Lists the objects that are given by their names together, if there are many in a folder. No request is
/// then made for one of them. With `each`, a store without listings is asked for each name.
///
/// # Errors
/// Errors of [`Store::list`].
pub(crate) fn list_many(storage: &Storage, given: &[PathBuf], each: bool) -> Result<()> {
    let mut folders = BTreeMap::<&str, Vec<&str>>::new();
    for path in given {
        if let Ok(Some((_, url))) = storage.object_of(path)
            && !is_pattern(path)
            && let (url, None) = split_query(url)
            && let Some((folder, _)) = url.rsplit_once('/')
        {
            folders.entry(folder).or_default().push(url);
        }
    }
    for urls in folders.into_values().filter(|urls| urls.len() >= MANY) {
        if let Some(first) = urls.first()
            && let Some((store, _)) = storage.object_of(Path::new(first))?
        {
            match storage.list(store, common_start(&urls), false) {
                Err(e) if !may_have_no_listings(&e) => return Err(e),
                Err(_) if each => _ = list_each(storage, store, &urls)?,
                _ => {}
            }
        }
    }
    Ok(())
}

/// Returns true for the errors of a listing in a store without listings. A web server may refuse to tell
/// whether there is an object of this name.
fn may_have_no_listings(e: &Error) -> bool {
    is_io(e, io::ErrorKind::Unsupported) || is_io(e, io::ErrorKind::PermissionDenied)
}

/// Returns the objects of these names, from a store without listings.
fn list_each(storage: &Storage, store: &dyn Store, urls: &[&str]) -> Result<Listing> {
    let list = |k: usize| {
        let Some(url) = urls.get(k) else { return Ok(Listing::default()) };
        match storage.list(store, url, false) {
            // There is no such object.
            Err(e) if is_io(&e, io::ErrorKind::Unsupported) => Ok(Listing::default()),
            found => found,
        }
    };
    let found = threads::each(Some(REQUESTS), urls.len(), true, list)?;
    let objects = found.into_iter().flat_map(|listing| listing.objects).collect();
    Ok(Listing { objects, folders: Vec::new() })
}

/// Returns the names that these words stand for. `None` if only a listing tells them.
fn all_names<'w>(words: &[&'w str]) -> Option<Vec<Cow<'w, str>>> {
    let mut names = Vec::new();
    for word in words {
        if has_wildcard(word) {
            return None;
        }
        match at_pattern(Path::new(word)) {
            Some(at) => {
                let folder = word.rsplit_once('/').map_or("", |(folder, _)| folder);
                let members = at.members(MAX_NAMES.checked_sub(names.len())?)?;
                names.extend(members.map(|name| Cow::Owned(format!("{folder}/{name}"))));
            }
            None => names.push(Cow::Borrowed(*word)),
        }
    }
    Some(names)
}

/// Returns the objects that a URL or a pattern matches, by the same rules as for paths.
pub(super) fn resolve(
    storage: &Storage,
    store: &dyn Store,
    url: &str,
    allow_missing: bool,
) -> Result<Vec<FoundShard>> {
    let name = bare_url(url);
    match storage.listed_url(&name) {
        Some(listed) if *listed == *url => {
            return Ok(vec![FoundShard { path: name.into(), searched: false }]);
        }
        Some(_) => return Err(two_of_one_name(&name)),
        None => {}
    }
    // A URL with a query is the URL of one object.
    if split_query(url).1.is_some() || !is_pattern(Path::new(url)) {
        let listing = storage.list(store, url, false)?;
        if listing.objects.iter().any(|object| *object.url == *url || *object.url == *name) {
            return Ok(vec![FoundShard { path: name.into(), searched: false }]);
        }
        let folder = format!("{}/", url.trim_end_matches('/'));
        if url.ends_with('/') && listing != Listing::default() {
            return in_folder(&folder, &listing);
        }
        if listing.folders.iter().any(|found| **found == *folder) {
            return in_folder(&folder, &storage.list(store, &folder, false)?);
        }
        let missing = io::Error::new(io::ErrorKind::NotFound, "no such object");
        return Err(Error::from(missing).in_file(Path::new(&name)));
    }
    matching(storage, store, url, allow_missing)
}

/// Returns the shards of a folder, without subfolders.
fn in_folder(folder: &str, listing: &Listing) -> Result<Vec<FoundShard>> {
    let names = listing.objects.iter().filter_map(|object| object.url.strip_prefix(folder));
    let shards = shards_by_name(names.filter(|name| !name.contains('/')));
    let found: Vec<_> = shards
        .into_iter()
        .map(|name| FoundShard { path: bare_url(&format!("{folder}{name}")).into(), searched: true })
        .collect();
    if found.is_empty() {
        Err(PathsError::NoMatch { pattern: format!("{}*.tfrecord", bare_url(folder)).into() }.into())
    } else {
        Ok(found)
    }
}

/// Returns the part of a name that is no pattern.
fn literal(word: &str) -> &str {
    let end = word.find(['*', '?', '[']).unwrap_or(word.len());
    let at = at_pattern(Path::new(word)).and_then(|_| word.rfind('@'));
    word.get(..at.unwrap_or(end).min(end)).unwrap_or(word)
}

/// Returns the longest text with which all of these begin.
fn common_start<'w>(words: &[&'w str]) -> &'w str {
    let Some((first, others)) = words.split_first() else { return "" };
    let common = |other: &&str| first.chars().zip(other.chars()).take_while(|(a, b)| a == b).count();
    let chars = others.iter().map(common).min();
    let end = chars.and_then(|chars| first.char_indices().nth(chars)).map_or(first.len(), |(at, _)| at);
    first.get(..end).unwrap_or(first)
}

/// Returns the objects of a folder that these words of a pattern may match.
fn list_for(storage: &Storage, store: &dyn Store, words: &[&str]) -> Result<Listing> {
    let literals: Vec<&str> = words.iter().map(|word| literal(word)).collect();
    let prefix = common_start(&literals);
    let is_deep =
        |word: &&str| is_of_folders(word) || word.strip_prefix(prefix).is_some_and(|rest| rest.contains('/'));
    match storage.list(store, prefix, words.iter().any(is_deep)) {
        Err(e) if may_have_no_listings(&e) => {
            let Some(names) = all_names(words) else { return Err(e) };
            let names: Vec<&str> = names.iter().map(|name| &**name).collect();
            list_each(storage, store, &names)
        }
        listing => listing,
    }
}

/// Returns the objects that a pattern matches.
fn matching(storage: &Storage, store: &dyn Store, url: &str, allow_missing: bool) -> Result<Vec<FoundShard>> {
    let pattern = || bare_url(url).into_boxed_str();
    let bad = |reason: Box<str>| Error::from(PathsError::BadPattern { pattern: pattern(), reason });
    let words = expand(url, 0).map_err(|reason| bad(reason.into()))?;
    // The names of one folder need one listing.
    let mut folders = BTreeMap::<&str, Vec<&str>>::new();
    for word in &words {
        let literal = literal(word);
        folders.entry(literal.rsplit_once('/').map_or(literal, |(folder, _)| folder)).or_default().push(word);
    }
    let mut all = Vec::new();
    let mut missing = MissingWords::default();
    for words in folders.values() {
        let listing = list_for(storage, store, words)?;
        let names: BTreeSet<&str> = listing.objects.iter().map(|object| &*object.url).collect();
        // The name of an object may look like a URL with a query.
        let given = |url: &str, searched| {
            let name = bare_url(url);
            if storage.listed_url(&name).is_none_or(|listed| *listed == *url) {
                Ok(FoundShard { path: name.into(), searched })
            } else {
                Err(two_of_one_name(&name))
            }
        };
        if names.contains(url) {
            return Ok(vec![given(url, false)?]);
        }
        for word in words {
            if names.contains(word) {
                all.push(given(word, false)?);
            } else if let Some(at) = at_pattern(Path::new(word)) {
                let folder = word.rsplit_once('/').map_or("", |(folder, _)| folder);
                if has_wildcard(folder) {
                    return Err(bad("wildcards cannot be combined with `@`".into()));
                }
                let entries = names.iter().filter_map(|name| name.strip_prefix(folder)?.strip_prefix('/'));
                let entries = entries.filter(|name| !name.contains('/')).map(|name| Ok(OsString::from(name)));
                all.append(&mut at.select(Path::new(&bare_url(folder)), entries, allow_missing)?);
            } else if has_wildcard(word) {
                let segments = Segments::new(word).map_err(|reason| bad(reason.into()))?;
                let found: Vec<&str> = if is_of_folders(word) {
                    let is_in = |name: &&str| name.rsplit_once('/').is_some_and(|at| segments.matches(at.0));
                    shards_by_name(names.iter().copied().filter(is_in))
                } else {
                    names.iter().copied().filter(|name| segments.matches(name)).collect()
                };
                let found = found.iter().map(|name| given(name, true)).collect::<Result<_>>()?;
                all.append(&mut searched(Path::new(word), found, allow_missing)?);
            } else {
                missing.add(bare_url(word).into());
            }
        }
    }
    missing.check(&all, &pattern(), words.len(), allow_missing)?;
    Ok(all)
}

/// A pattern of a URL: one part for each name between slashes.
struct Segments<'w>(Vec<Segment<'w>>);

enum Segment<'w> {
    Literal(&'w str),
    Pattern(NamePattern),
    /// `**`: any number of folders that are not hidden.
    Folders,
}

impl<'w> Segments<'w> {
    fn new(word: &'w str) -> Result<Segments<'w>, &'static str> {
        let segment = |name: &'w str| {
            Ok(match name {
                "**" => Segment::Folders,
                name if has_wildcard(name) => Segment::Pattern(NamePattern::new(name)?),
                name => Segment::Literal(name),
            })
        };
        word.split('/').map(segment).collect::<Result<_, _>>().map(Segments)
    }

    fn matches(&self, url: &str) -> bool {
        let names: Vec<&str> = url.split('/').collect();
        // For each number of names: do the segments so far match them?
        let mut reached = vec![true];
        reached.resize(names.len() + 1, false);
        for segment in &self.0 {
            reached = match segment {
                Segment::Folders => {
                    let mut on = false;
                    for (here, before) in reached.iter_mut().zip(once(&"").chain(&names)) {
                        on = *here || on && !before.starts_with('.');
                        *here = on;
                    }
                    reached
                }
                segment => {
                    let fits = |name: &str| match segment {
                        Segment::Literal(literal) => name == *literal,
                        Segment::Pattern(pattern) => pattern.matches(name),
                        Segment::Folders => false,
                    };
                    let next = reached.iter().zip(&names).map(|(here, name)| *here && fits(name));
                    once(false).chain(next).collect()
                }
            };
        }
        reached.last() == Some(&true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_match_names() {
        let matches = |pattern: &str, url: &str| Segments::new(pattern).unwrap().matches(url);
        assert!(matches("s3://b/x-*", "s3://b/x-1") && !matches("s3://b/x-*", "s3://b/x-1/y"));
        assert!(matches("s3://b/**/x*", "s3://b/x1") && matches("s3://b/**/x*", "s3://b/c/d/x1"));
        assert!(!matches("s3://b/**/x*", "s3://b/.c/x1") && !matches("s3://b/*", "s3://b/.x"));
        // `**` at the end matches folders.
        assert!(matches("s3://b/**", "s3://b/x") && matches("s3://b/[xy]?/a", "s3://b/y1/a"));
        let many = format!("s3://b/{}x", "**/".repeat(20));
        assert!(!matches(&many, &format!("s3://b/{}y", "c/".repeat(300))));
    }

    #[test]
    fn prefixes_of_listings() {
        assert_eq!(literal("s3://b/train-*"), "s3://b/train-");
        assert_eq!(literal("s3://b/train@4.tfrecord"), "s3://b/train");
        assert_eq!(literal("s3://b/train@*"), "s3://b/train");
        assert_eq!(literal("s3://b/x"), "s3://b/x");
        assert_eq!(common_start(&["s3://b/xé1", "s3://b/xé2", "s3://b/xé"]), "s3://b/xé");
        assert_eq!((common_start(&["ab"]), common_start(&[]), common_start(&["a", "b"])), ("ab", "", ""));
    }
}
