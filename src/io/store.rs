//! Places that have objects, addressed by URLs.

use super::url::object_key;
use super::{Region, Source, Stamp, Traffic};
use crate::error::Result;
use std::fmt;
use std::sync::Arc;

/// A place that has objects, such as a bucket. Its implementations are in other crates; files are read
/// without one.
///
/// An object has a URL, `scheme://..`, and its names have the separator `/`. tfseek passes URLs as the user
/// or a [listing](Store::list) gave them, and shows them without their query and user.
///
/// ```
/// use std::sync::Arc;
/// use tfseek::error::{Error, Result};
/// use tfseek::io::{Listing, Object, Region, Source, Stamp, Store};
///
/// /// One object in memory.
/// #[derive(Debug)]
/// struct One(Region);
///
/// impl Store for One {
///     fn list(&self, prefix: &str, _deep: bool) -> Result<Listing> {
///         let object = Object { url: "one://a.tfrecord".into(), stamp: self.0.stamp()? };
///         let found = object.url.starts_with(prefix);
///         Ok(Listing { objects: found.then_some(object).into_iter().collect(), ..Listing::default() })
///     }
///
///     fn open(&self, _object: &Object) -> Result<Arc<dyn Source>> {
///         Ok(Arc::new(self.0.clone()))
///     }
///
///     fn small(&self, _url: &str, _limit: u64) -> Result<Option<(Region, Stamp)>> {
///         Ok(None)
///     }
///
///     fn put(&self, _url: &str, _bytes: &[u8]) -> Result<()> {
///         Err(Error::from(std::io::Error::from(std::io::ErrorKind::Unsupported)))
///     }
/// }
///
/// let mut shard = Vec::new();
/// tfseek::frame::put_record(&mut shard, b"one")?;
/// let options = tfseek::DatasetOptions::new().index(tfseek::IndexMode::Memory).store(Arc::new(One(shard.into())));
/// assert_eq!(options.open("one://a.tfrecord")?.read(0, &mut Vec::new())?.payload(), b"one");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait Store: fmt::Debug + Send + Sync {
    /// Returns the objects whose URLs begin with `prefix`, sorted by URL. If not `deep`, only those without a
    /// `/` after the prefix, and the folders that the others are in. A prefix without objects has an empty
    /// listing.
    ///
    /// # Errors
    /// [`io::ErrorKind::Unsupported`](std::io::ErrorKind::Unsupported) if the store has no listings and
    /// `prefix` is not the URL of an object; I/O errors.
    fn list(&self, prefix: &str, deep: bool) -> Result<Listing>;

    /// Opens an object of the version in its stamp. Should need no request, because many shards are opened.
    ///
    /// # Errors
    /// I/O errors.
    fn open(&self, object: &Object) -> Result<Arc<dyn Source>>;

    /// Reads a whole object, such as an index file. `None` if there is none.
    ///
    /// # Errors
    /// An object of more than `limit` bytes ([`ErrorKind::TooLarge`](crate::ErrorKind::TooLarge)); I/O
    /// errors.
    fn small(&self, url: &str, limit: u64) -> Result<Option<(Region, Stamp)>>;

    /// Writes a whole object, or nothing. An object of this name is replaced.
    ///
    /// # Errors
    /// [`io::ErrorKind::Unsupported`](std::io::ErrorKind::Unsupported) if the store is for reading only:
    /// index files are then kept in the user's cache; I/O errors.
    fn put(&self, url: &str, bytes: &[u8]) -> Result<()>;

    /// Returns what selects an object besides its URL, such as the address of a server that a variable names.
    /// It has no secret. Empty if the URL is all.
    fn place(&self, url: &str) -> String {
        let _ = url;
        String::new()
    }

    /// Returns what identifies an object: two objects have two keys. It is a hash of the URL, but for
    /// signatures and passwords, and of its [`place`](Store::place). Caches and index files that are not
    /// beside the object are named by it.
    fn key(&self, url: &str) -> Box<str> {
        object_key(url, &self.place(url))
    }

    /// Returns what was read so far in this process. `None` if the store does not count it.
    fn traffic(&self) -> Option<Traffic> {
        None
    }
}

/// An object of a [`Store`], as it was listed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Object {
    /// The URL.
    pub url: Box<str>,
    /// Size, and time or version, if the store has them.
    pub stamp: Stamp,
}

/// The result of [`Store::list`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Listing {
    /// The objects.
    pub objects: Vec<Object>,
    /// The URLs of folders, which end in `/`.
    pub folders: Vec<Box<str>>,
}
