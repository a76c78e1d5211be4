//! URLs of objects: the kind of store, the bucket, and the name in it.

use crate::failure::{Cause, RequestFailure};

/// The kind of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    S3,
    Google,
    Azure,
    Web,
    Hub,
}

/// The schemes of URLs, and their stores.
const SCHEMES: [(&str, Kind); 11] = [
    ("s3", Kind::S3),
    ("s3a", Kind::S3),
    ("gs", Kind::Google),
    ("az", Kind::Azure),
    ("azure", Kind::Azure),
    ("abfs", Kind::Azure),
    ("abfss", Kind::Azure),
    ("adl", Kind::Azure),
    ("http", Kind::Web),
    ("https", Kind::Web),
    ("hf", Kind::Hub),
];

/// A URL in its parts: `root`, `/`, `key`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Address<'u> {
    pub(crate) kind: Kind,
    /// The scheme and the bucket, container, server or repository.
    pub(crate) root: &'u str,
    /// The name in it. Of a server the path and the query.
    pub(crate) key: &'u str,
}

/// Returns true if the URL is the URL of a store in this crate.
pub(crate) fn is_known(url: &str) -> bool {
    url.split_once("://").is_some_and(|(scheme, _)| kind_of(scheme).is_some())
}

fn kind_of(scheme: &str) -> Option<Kind> {
    SCHEMES.iter().find(|(name, _)| *name == scheme).map(|(_, kind)| *kind)
}

impl<'u> Address<'u> {
    /// Splits a URL.
    ///
    /// # Errors
    /// An unknown scheme, or a URL without a bucket.
    pub(crate) fn of(url: &'u str) -> Result<Address<'u>, RequestFailure> {
        let invalid = |text: &str| RequestFailure::new(Cause::Invalid, text);
        let (scheme, rest) = url.split_once("://").ok_or_else(|| invalid("this is no URL"))?;
        let kind = kind_of(scheme).ok_or_else(|| {
            let all: Vec<&str> = SCHEMES.iter().map(|(name, _)| *name).collect();
            RequestFailure::new(
                Cause::Unsupported,
                format!("unknown scheme, expected one of {}", all.join(", ")),
            )
        })?;
        let segments = if kind == Kind::Hub { repository_segments(rest)? } else { 1 };
        let len = rest.match_indices('/').nth(segments - 1).map_or(rest.len(), |(at, _)| at);
        let (bucket, key) = rest.split_at_checked(len).unwrap_or((rest, ""));
        if bucket.is_empty() || kind != Kind::Hub && bucket.ends_with('@') {
            return Err(invalid("the URL has no bucket"));
        }
        if matches!(kind, Kind::S3 | Kind::Google) && bucket.contains('@') || bucket.contains(['?', '#']) {
            return Err(invalid("the name of the bucket has a character that is not allowed"));
        }
        let (root, _) = url.split_at_checked(url.len() - key.len()).unwrap_or((url, ""));
        Ok(Address { kind, root, key: key.strip_prefix('/').unwrap_or(key) })
    }

    /// Returns the part of the root after the scheme.
    pub(crate) fn bucket(&self) -> &'u str {
        self.root.split_once("://").map_or(self.root, |(_, bucket)| bucket)
    }
}

/// Returns the number of segments of a repository of the hub, with its revision: `datasets/OWNER/NAME@REV`,
/// where REV may be `refs/pr/N`.
fn repository_segments(rest: &str) -> Result<usize, RequestFailure> {
    let mut segments = rest.split('/');
    let folder = segments.next();
    let owner = segments.next();
    let name = segments.next();
    match (folder, owner, name) {
        (Some("datasets"), Some(owner), Some(name))
            if !owner.is_empty() && !owner.contains('@') && !name.is_empty() && !name.starts_with('@') =>
        {
            let is_ref = name.ends_with("@refs") && segments.next().is_some() && segments.next().is_some();
            Ok(if is_ref { 5 } else { 3 })
        }
        _ => Err(RequestFailure::new(Cause::Invalid, "expected hf://datasets/OWNER/NAME[@REVISION]/PATH")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_split() {
        for (url, kind, root, key) in [
            ("s3://b/x/y", Kind::S3, "s3://b", "x/y"),
            ("s3a://b", Kind::S3, "s3a://b", ""),
            ("gs://b/", Kind::Google, "gs://b", ""),
            ("az://c/x?y=1", Kind::Azure, "az://c", "x?y=1"),
            ("abfss://c@a.dfs.core.windows.net/x", Kind::Azure, "abfss://c@a.dfs.core.windows.net", "x"),
            ("https://u:p@h:1/a/b?c=/d", Kind::Web, "https://u:p@h:1", "a/b?c=/d"),
            ("hf://datasets/o/n/a/b", Kind::Hub, "hf://datasets/o/n", "a/b"),
            ("hf://datasets/o/n@v1/a", Kind::Hub, "hf://datasets/o/n@v1", "a"),
            ("hf://datasets/o/n@refs/pr/2/a/b", Kind::Hub, "hf://datasets/o/n@refs/pr/2", "a/b"),
            ("hf://datasets/o/n", Kind::Hub, "hf://datasets/o/n", ""),
        ] {
            assert_eq!(Address::of(url).unwrap(), Address { kind, root, key }, "{url}");
            assert!(is_known(url));
        }
        for url in [
            "x",
            "ftp://b/x",
            "s3:///x",
            "S3://b/x",
            "hf://o/n/x",
            "hf://datasets/o",
            "s3://k:s@b/x",
            "https://h?x=1",
            "gs://é@",
        ] {
            let failure = Address::of(url).unwrap_err();
            assert!(!failure.text.contains("k:s"), "{}", failure.text);
        }
        assert!(!is_known("file://x") && !is_known("C:/x"));
    }
}
