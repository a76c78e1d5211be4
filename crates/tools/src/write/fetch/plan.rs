//! The objects of a fetch, and the records of them that are wanted.

use super::data_set::DataSet;
use super::journal::FetchRequest;
use super::options::FetchOptions;
use super::wanted::{NotedStore, WantedFile, WantedPart, check_name, no_object};
use crate::error::{FetchReason, ToolsError};
use std::path::Path;
use std::sync::Arc;
use tfseek::error::ErrorKind;
use tfseek::io::{Object, Store, bare_url};
use tfseek::{Error, Filter, Result};

/// The objects of a fetch.
#[derive(Debug)]
pub(super) struct Wanted {
    pub(super) request: FetchRequest,
    pub(super) files: Vec<WantedFile>,
    /// The data set that they are, if they are one.
    pub(super) data_set: Option<DataSet>,
    /// The condition, which knows the names of classes.
    pub(super) filter: Option<Filter>,
}

impl Wanted {
    /// Lists the objects. No object is read.
    pub(super) fn list(options: &FetchOptions) -> Result<Wanted, ToolsError> {
        let url = bare_url(&options.url);
        let is_all = url == options.url && options.store.place(&url).is_empty();
        let key = (!is_all).then(|| options.store.key(&options.url).into());
        let request = FetchRequest {
            url,
            key,
            split: options.split.clone(),
            filter: options.filter.as_ref().map(ToString::to_string),
        };
        if options.filter.as_ref().is_some_and(Filter::uses_numbers) {
            return Err(FetchReason::NumbersInCondition.into());
        }
        let store = Arc::new(NotedStore::new(options.store.clone()));
        let split = options.split.as_deref();
        let filter = options.filter.clone();
        if let Some((data_set, files)) = DataSet::find(&store, &options.url, split, filter.is_some())? {
            let filter = filter.map(|filter| data_set.filter(&store, &filter)).transpose()?;
            return Ok(Wanted { request, files, data_set: Some(data_set), filter });
        }
        let (paths, _) = tfseek::paths::resolve_in_store(Some(store.clone()), &*options.url, false)?;
        let urls: Vec<&str> = paths.iter().filter_map(|path| path.to_str()).collect();
        let folder = common_folder(&urls);
        let mut files = Vec::new();
        for url in urls {
            let name = url.get(folder..).unwrap_or(url);
            check_name(url, name)?;
            let object = store.noted(url).ok_or_else(|| {
                Error::from(std::io::Error::from(std::io::ErrorKind::NotFound)).in_file(Path::new(url))
            })?;
            let part = match options.filter {
                Some(_) => WantedPart::Records(None),
                None => WantedPart::Shard,
            };
            files.push(WantedFile { name: name.to_owned(), object, part, records: None });
        }
        Ok(Wanted { request, files, data_set: None, filter })
    }
}

/// Returns the length of the folder, with its slash, that all URLs are in.
fn common_folder(urls: &[&str]) -> usize {
    let Some((first, others)) = urls.split_first() else { return 0 };
    let folder = |len| first.bytes().take(len).rposition(|byte| byte == b'/').map_or(0, |at| at + 1);
    others.iter().fold(folder(first.len()), |len, other| {
        // The URLs may begin to differ inside a character.
        folder(first.bytes().zip(other.bytes()).take(len).take_while(|(a, b)| a == b).count())
    })
}

/// Lists one object again, because it was replaced.
pub(super) fn listed_again(store: &dyn Store, object: &Object) -> Result<Object> {
    let listing = store.list(&object.url, false)?;
    let name = bare_url(&object.url);
    let found = listing.objects.into_iter().find(|found| bare_url(&found.url) == name);
    found.ok_or_else(|| no_object(&name))
}

/// Returns true for the error of an object that was replaced.
pub(super) fn is_stale(e: &Error) -> bool {
    matches!(e.kind(), ErrorKind::Index(tfseek::error::IndexError::Stale { .. }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_below_the_common_folder() {
        let len = |urls: &[&str]| common_folder(urls);
        assert_eq!(len(&["s3://b/x/y"]), "s3://b/x/".len());
        assert_eq!(len(&["s3://b/x/ab1", "s3://b/x/ab2"]), "s3://b/x/".len());
        assert_eq!(len(&["s3://b/x/a", "s3://b/xy/a"]), "s3://b/".len());
        assert_eq!(len(&["s3://b/x/\u{e9}1", "s3://b/x/\u{e8}1"]), "s3://b/x/".len());
        assert_eq!(len(&[]), 0);
    }
}
