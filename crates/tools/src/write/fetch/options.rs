//! The options of a fetch, and its results.

use crate::error::ToolsError;
use crate::work::damage::MAX_RECORD;
use std::path::PathBuf;
use std::sync::Arc;
use tfseek::Filter;
use tfseek::io::Store;

/// Options of a fetch.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct FetchOptions {
    /// The store of the objects.
    pub store: Arc<dyn Store>,
    /// A URL, a pattern of URLs, or the URL of a folder.
    pub url: String,
    /// The folder to write to. It is new, empty, or the folder of an earlier run of the same fetch.
    pub folder: PathBuf,
    /// A split of a data set of TensorFlow Datasets, whose folder is the URL. All of it by default.
    pub split: Option<String>,
    /// The condition that the records meet. All records by default.
    pub filter: Option<Filter>,
    /// True to take shards as they are that are damaged in the store too.
    pub keep_damaged: bool,
    /// Maximum payload length in bytes.
    pub max_record: u64,
}

impl FetchOptions {
    /// Returns the options of a whole copy.
    pub fn new(store: Arc<dyn Store>, url: impl Into<String>, folder: impl Into<PathBuf>) -> FetchOptions {
        let url = url.into();
        let folder = folder.into();
        let split = None;
        let filter = None;
        let keep_damaged = false;
        FetchOptions { store, url, folder, split, filter, keep_damaged, max_record: MAX_RECORD }
    }
}

/// The work that a fetch has left.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct FetchEstimate {
    /// Number of files.
    pub files: u64,
    /// Number of files that are not complete.
    pub files_left: u64,
    /// Bytes of all files. Of files of which the first records are wanted an estimate.
    pub bytes: u64,
    /// Bytes of the pieces that are not here.
    pub bytes_left: u64,
    /// Number of these pieces, each of which is one request.
    pub requests: u64,
}

/// The result of a fetch.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct FetchReport {
    /// Number of files in the folder that belong to the fetch.
    pub files: u64,
    /// Number of records that were copied, in this run and earlier ones.
    pub records: u64,
    /// Bytes of the files.
    pub bytes: u64,
    /// Bytes that were requested in this run.
    pub fetched: u64,
    /// Number of requests for pieces in this run.
    pub requests: u64,
    /// Bytes of pieces that earlier runs had fetched.
    pub found: u64,
    /// The damage of files that are not complete because of it.
    pub damaged: Vec<ToolsError>,
    /// The damage of files that were taken as they are.
    pub kept: Vec<ToolsError>,
    /// The names of files that began again, because their objects were replaced.
    pub begun_again: Vec<String>,
    /// The files of an earlier run whose objects are no longer there. They were left as they are.
    pub left: Vec<String>,
    /// The features of the condition that no record has.
    pub unseen: Vec<String>,
}
