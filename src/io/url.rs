//! Names of shards: paths, or URLs of objects in a store. They have one type, `Path`, and no path arithmetic is done on URLs: on some
//! systems it would change their separators.

use crate::error::{PathsError, Result};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// Returns the scheme of an address (RFC 3986, 3.1), and the number of slashes after its colon, at most 2. A single letter is a Windows
/// drive and not a scheme.
fn scheme(path: &str) -> Option<(&str, usize)> {
    let (scheme, rest) = path.split_once(":/")?;
    let is_scheme = scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.'))
        && scheme.len() > 1;
    is_scheme.then_some((scheme, if rest.starts_with('/') { 2 } else { 1 }))
}

/// Returns the URL of an object, `scheme://..`. `None` for a path.
pub(crate) fn url_of(name: &Path) -> Option<&str> {
    name.to_str().filter(|name| scheme(name).is_some_and(|(_, slashes)| slashes == 2))
}

/// Returns true if a URL can be that of an object: it is not the address of a local file.
pub(super) fn may_be_object(url: &str) -> bool {
    scheme(url).is_some_and(|(scheme, _)| !scheme.eq_ignore_ascii_case("file"))
}

/// Checks that a path is not the address of a store or a server.
///
/// # Errors
/// [`PathsError::NotLocal`].
pub(crate) fn check_local(path: &Path) -> Result<()> {
    let Some((scheme, slashes)) = path.to_str().and_then(scheme) else { return Ok(()) };
    // With one slash, as `pathlib.Path` formats an address, it may be a path in a folder of that name.
    if slashes < 2 && Path::new(&format!("{scheme}:")).exists() {
        return Ok(());
    }
    let address = bare_url(&path.to_string_lossy()).into();
    Err(PathsError::NotLocal { address, scheme: scheme.into() }.into())
}

/// Returns a URL and its query, if it has one: a question mark, a key and `=`. Others are those of a pattern.
pub(crate) fn split_query(url: &str) -> (&str, Option<&str>) {
    let is_query = |query: &str| {
        let is_key = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '%');
        query.split_once('=').is_some_and(|(key, _)| !key.is_empty() && key.chars().all(is_key))
    };
    let mut marks = url.match_indices('?').filter_map(|(at, _)| Some((url.get(..at)?, url.get(at + 1..)?)));
    marks.find(|(_, query)| is_query(query)).map_or((url, None), |(url, query)| (url, Some(query)))
}

/// Returns a URL without its query, and without its user if that has a password or the URL is one of the web: they may be secret. Other
/// addresses have names there, such as `abfs://container@account`. Messages about objects of a [`Store`](super::Store) show this form.
pub fn bare_url(url: &str) -> String {
    let (url, _) = split_query(url);
    let Some((scheme, rest)) = url.split_once("://") else { return url.to_owned() };
    let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let without_user =
        host.rsplit_once('@').filter(|(user, _)| user.contains(':') || scheme.starts_with("http"));
    let host = without_user.map_or(host, |(_, host)| host);
    format!("{scheme}://{host}{path}")
}

/// Returns the folder of a path or URL. Links are not followed.
pub(crate) fn folder(name: &Path) -> &Path {
    if let Some(url) = url_of(name) {
        let folder = url.rsplit_once('/').map_or(url, |(folder, _)| folder);
        // An object may be in no folder and no bucket: `memory://x` is in `memory://`.
        let root = url.split_once("://").map_or("", |(scheme, _)| url.get(..scheme.len() + 3).unwrap_or(url));
        return Path::new(if folder.len() < root.len() { root } else { folder });
    }
    match name.parent() {
        Some(dir) if !dir.as_os_str().is_empty() => dir,
        _ => Path::new("."),
    }
}

/// Returns the name of an entry of a folder, whose name is a path or URL.
pub(crate) fn join(folder: &Path, entry: impl AsRef<OsStr>) -> PathBuf {
    let entry = entry.as_ref();
    match url_of(folder) {
        Some(url) if url.ends_with("://") => format!("{url}{}", entry.to_string_lossy()).into(),
        Some(url) => format!("{}/{}", url.trim_end_matches('/'), entry.to_string_lossy()).into(),
        None => folder.join(entry),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_keep_no_secrets() {
        for (url, shown) in [
            ("s3://b/x.tfrecord", "s3://b/x.tfrecord"),
            ("https://user:pw@host:80/a@2/x?sig=1&b=/?c=2", "https://host:80/a@2/x"),
            ("https://token@host?sig=1", "https://host"),
            ("s3://key:word@b/x", "s3://b/x"),
            ("abfs://container@account/x", "abfs://container@account/x"),
            ("s3://b/x-?/y=1/a?", "s3://b/x-?/y=1/a?"),
            ("s3://b/x-??.tfrecord?X-Sig=a", "s3://b/x-??.tfrecord"),
            ("a/b?c", "a/b?c"),
        ] {
            assert_eq!(bare_url(url), shown);
        }
    }

    #[test]
    fn folders_and_entries_of_urls() {
        let url = Path::new("gs://b/dir/x.tfrecord");
        assert_eq!(folder(url), Path::new("gs://b/dir"));
        assert_eq!(join(folder(url), "y"), Path::new("gs://b/dir/y"));
        assert_eq!(join(Path::new("gs://b/"), "y"), Path::new("gs://b/y"));
        assert_eq!(folder(Path::new("memory://x")), Path::new("memory://"));
        assert_eq!(join(folder(Path::new("memory://x")), "y"), Path::new("memory://y"));
        assert_eq!((folder(Path::new("x")), folder(Path::new("a/x"))), (Path::new("."), Path::new("a")));
        assert_eq!(join(Path::new("a"), "x"), Path::new("a").join("x"));
        for path in ["a/x", "C:/x", "gs:/b/x", "./gs://b"] {
            assert_eq!(url_of(Path::new(path)), None);
        }
        assert_eq!(url_of(url), url.to_str());
    }
}
