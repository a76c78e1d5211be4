//! Names of shards: paths, or URLs of objects in a store. They have one type, `Path`, and no path arithmetic
//! is done on URLs: on some systems it would change their separators.

use crate::error::{PathsError, Result};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// Returns the scheme of an address (RFC 3986, 3.1), and the number of slashes after its colon, at most 2. A
/// single letter is a Windows drive and not a scheme.
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

/// Returns true if a URL can be an object's: it is not the address of a local file.
pub(super) fn may_be_object(url: &str) -> bool {
    scheme(url).is_some_and(|(scheme, _)| !scheme.eq_ignore_ascii_case("file"))
}

/// Checks that a path is not the address of a store or a server. The file system is asked later: a mistyped
/// folder would decide the error. `file://` is refused too, because its escapes and hosts are another syntax.
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

/// Returns a URL and its query, if it has one. In a URL of the web each question mark begins one. Elsewhere
/// it is a question mark, a key and `=`, and other question marks belong to a pattern.
pub(crate) fn split_query(url: &str) -> (&str, Option<&str>) {
    let is_web = |scheme: &str| scheme.eq_ignore_ascii_case("http") || scheme.eq_ignore_ascii_case("https");
    if scheme(url).is_some_and(|(scheme, _)| is_web(scheme)) {
        return url.split_once('?').map_or((url, None), |(url, query)| (url, Some(query)));
    }
    let is_query = |query: &str| {
        let is_key = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '%');
        query.split_once('=').is_some_and(|(key, _)| !key.is_empty() && key.chars().all(is_key))
    };
    let mut marks = url.match_indices('?').filter_map(|(at, _)| Some((url.get(..at)?, url.get(at + 1..)?)));
    marks.find(|(_, query)| is_query(query)).map_or((url, None), |(url, query)| (url, Some(query)))
}

/// Returns a URL without its query, and without its user if that has a password or the URL is one of the web:
/// they may be secret. Other addresses have names there, such as `abfs://container@account`. Messages about
/// objects of a [`Store`](super::Store) show this form.
pub fn bare_url(url: &str) -> String {
    let (url, _) = split_query(url);
    let Some((scheme, rest)) = url.split_once("://") else { return url.to_owned() };
    let login = hidden_login(scheme, rest);
    let shown = login.and_then(|login| rest.strip_prefix(login)?.strip_prefix('@')).unwrap_or(rest);
    format!("{scheme}://{shown}")
}

/// Parameters of a query that only sign it, and the names that have to be in the query too: some mean
/// something else by themselves.
const SIGNATURES: [(&[&str], &[&str]); 3] = [
    (
        &[],
        &[
            "X-Amz-Algorithm",
            "X-Amz-Credential",
            "X-Amz-Date",
            "X-Amz-Expires",
            "X-Amz-SignedHeaders",
            "X-Amz-Security-Token",
            "X-Amz-Signature",
            "X-Goog-Algorithm",
            "X-Goog-Credential",
            "X-Goog-Date",
            "X-Goog-Expires",
            "X-Goog-SignedHeaders",
            "X-Goog-Signature",
            "AWSAccessKeyId",
            "GoogleAccessId",
            "Key-Pair-Id",
            "Signature",
            "X-Signature",
            "sig",
        ],
    ),
    (&["Signature"], &["Expires", "Policy"]),
    (
        &["sv", "sig"],
        &[
            "sv", "ss", "srt", "sr", "st", "se", "sp", "sip", "spr", "si", "sdd", "skoid", "sktid", "skt",
            "ske", "sks", "skv", "saoid", "suoid", "scid",
        ],
    ),
];

/// Schemes of stores that have no queries: a question mark is a part of a name there.
const WITHOUT_QUERIES: [&str; 9] = ["s3", "s3a", "gs", "az", "azure", "abfs", "abfss", "adl", "hf"];

/// Returns what a query has besides the parameters that sign it.
fn selecting_query<'u>(url: &'u str, query: &'u str) -> String {
    let is_signed = scheme(url).is_none_or(|(scheme, _)| !WITHOUT_QUERIES.contains(&scheme));
    let name_of = |parameter: &'u str| parameter.split_once('=').map_or(parameter, |(name, _)| name);
    let has = |mark: &&str| query.split('&').any(|parameter| name_of(parameter) == *mark);
    let signs = |parameter: &&'u str| {
        let is_of = |(marks, names): &(&[&str], &[&str])| {
            names.contains(&name_of(parameter)) && marks.iter().all(has)
        };
        is_signed && SIGNATURES.iter().any(is_of)
    };
    query.split('&').filter(|parameter| !signs(parameter)).collect::<Vec<_>>().join("&")
}

/// Returns a URL without its user, and without the parameters that sign it: other processes read the object
/// by it, with a login of their own.
pub(crate) fn portable_url(url: &str) -> String {
    let (path, query) = split_query(url);
    let query = query.map(|query| selecting_query(path, query)).filter(|query| !query.is_empty());
    let bare = bare_url(path);
    match query {
        Some(query) => format!("{bare}?{query}"),
        None => bare,
    }
}

/// Returns the user of a URL who is not [shown](bare_url), and may see other objects than another user.
/// Passwords are no part of it.
fn hidden_user(url: &str) -> &str {
    let user = split_query(url).0.split_once("://").and_then(|(scheme, rest)| hidden_login(scheme, rest));
    user.map_or("", |login| login.split_once(':').map_or(login, |(user, _)| user))
}

/// Returns the user and the password, of a URL after its scheme, that are not shown.
fn hidden_login<'u>(scheme: &str, rest: &'u str) -> Option<&'u str> {
    let host = rest.split_once('/').map_or(rest, |(host, _)| host);
    let (login, _) = host.rsplit_once('@')?;
    (login.contains(':') || scheme.starts_with("http")).then_some(login)
}

/// Returns true if the form of a URL that is shown selects the same object.
pub(super) fn is_selected_by_name(url: &str) -> bool {
    portable_url(url) == bare_url(url) && hidden_user(url).is_empty()
}

/// Returns what identifies an object: the hash of all that selects it, which is the URL without the
/// parameters that sign it, its user, and its [place](super::Store::place). All names of files about an
/// object are made of it.
pub(super) fn object_key(url: &str, place: &str) -> Box<str> {
    // Quotes keep the parts apart.
    let all = format!("{:?}", (portable_url(url), hidden_user(url), place));
    format!("{:032x}", xxhash_rust::xxh3::xxh3_128(all.as_bytes())).into()
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
            ("https://host/get?download&sig=1", "https://host/get"),
            ("HTTP://host/get?f[]=a&sig=1", "HTTP://host/get"),
            ("http://host/get?", "http://host/get"),
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
    fn keys_have_what_selects_an_object() {
        let key = |url: &str| object_key(url, "");
        let apart = [
            "http://h/get",
            "http://h/get?f=a",
            "http://h/get?f=b",
            "http://h/get?f",
            "http://h/get?f[]=a",
            "http://h/get?f=a&versionId=2",
            "http://bob@h/get?f=a",
            "http://h/get?f=a%22,%20%22bob",
            "http://h:8080/get?f=a",
            "https://h/get?f=a",
            "http://h/get?token=t",
            "http://h/get?sv=1",
            "http://h/get?Expires=1",
            "s3://b/get",
            "s3://b/get?f=a",
            "s3://b/get?X-Amz-Signature=1",
            "abfs://c@one/get",
            "abfs://c@two/get",
        ];
        for (k, url) in apart.iter().enumerate() {
            let same = apart.iter().filter(|other| key(other) == key(url));
            assert_eq!(same.collect::<Vec<_>>(), [&apart[k]]);
        }
        assert_ne!(object_key("s3://b/get", "http://one"), object_key("s3://b/get", "http://two"));
        for (url, same) in [
            ("http://h/get?f=a&X-Amz-Date=1&X-Amz-Signature=2", "http://h/get?X-Amz-Signature=3&f=a"),
            ("http://h/get?AWSAccessKeyId=1&Signature=2&Expires=3", "http://h/get"),
            ("http://h/get?f=a&sv=1&sr=b&sig=2", "http://h/get?f=a"),
            ("sftp://h/get?f=a&X-Signature=1", "sftp://h/get?f=a"),
            ("http://bob:one@h/get", "http://bob:two@h/get"),
            ("http://bob@h/get", "http://bob:two@h/get"),
        ] {
            assert_eq!(key(url), key(same));
        }
        assert_eq!(portable_url("http://u:p@h/get?f=a&X-Goog-Signature=1&g=b"), "http://h/get?f=a&g=b");
        assert_eq!(portable_url("http://h/get?X-Goog-Signature=1"), "http://h/get");
        assert!(
            is_selected_by_name("http://h/get?X-Goog-Signature=1") && !is_selected_by_name("http://u@h/get")
        );
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
