#![cfg_attr(docsrs, feature(doc_cfg))]
//! TFRecord files in object stores, for [`tfseek`]: a [`RemoteStore`] for
//! [`DatasetOptions::store`](tfseek::DatasetOptions::store).
//!
//! | Store | URLs | Settings, as variables |
//! | --- | --- | --- |
//! | S3 | `s3://BUCKET/KEY`, `s3a://` | `AWS_*`, also `AWS_ENDPOINT_URL_S3` and `AWS_ENDPOINT_URL` |
//! | Google Cloud Storage | `gs://BUCKET/KEY` | `GOOGLE_*`, `STORAGE_EMULATOR_HOST`; `GOOGLE_CLOUD_QUOTA_PROJECT` pays |
//! | Azure | `az://CONTAINER/KEY`, `abfss://CONTAINER@ACCOUNT.dfs.core.windows.net/KEY` | `AZURE_*`, `AZURE_STORAGE_ACCOUNT_NAME` |
//! | Web server with ranges | `https://HOST/PATH`, also with a signature as query | |
//! | Hugging Face hub | `hf://datasets/OWNER/NAME[@REVISION]/PATH` | `HF_TOKEN`, `HF_ENDPOINT`, `HF_HOME` |
//!
//! [`RemoteOptions::storage_options`] have the same names in lower case, and precede variables.
//!
//! * Public buckets need no login. Where variables have a login, it is used at once. Else the first request
//!   is anonymous. If it is refused, the file of `gcloud auth application-default login` or the metadata
//!   server of the cloud is asked, once for each bucket. Profiles in `~/.aws` are not read. Most public data
//!   needs no login, and an expired one would be refused.
//! * The version in the listing goes with every request. An object that was replaced is
//!   [`Stale`](tfseek::error::IndexError::Stale).
//! * Requests that fail for a while are repeated: 5xx, 429, connections that break, also in a body. The error
//!   has the last answer and the number of attempts. It has no credential, and not the query or user of a
//!   URL.
//! * Announced ranges are merged to pieces of at most 8 MiB, fetched in the order of their need, and kept
//!   until they are read.
//! * 8 requests are made at a time, and more as long as this makes reading faster. 429 and 503 halve their
//!   number. A piece that a thread waits for and that takes twice as long as 99 of the last 100 is requested
//!   once more.
//! * With [`RemoteOptions::cache_dir`], pieces are also kept on disk, up to a limit. All processes of the
//!   machine share them.
//! * A store reads variables when it is made, and asks once for a login, a region and the commit of a
//!   revision. A new store asks again.
//! * Servers that ignore ranges are an error. Web servers have no listings.
// No input causes a panic.
#![cfg_attr(not(test), deny(clippy::unwrap_used, clippy::expect_used, clippy::panic))]
#![cfg_attr(not(test), deny(clippy::indexing_slicing, clippy::string_slice))]

mod address;
mod backend;
mod clients;
mod cloud;
mod copies;
mod disk;
mod doubts;
mod failure;
mod hub;
mod in_flight;
mod listing;
mod pace;
mod pieces;
mod place;
mod ready;
mod runtime;
mod settings;
#[cfg(test)]
mod simulated;
mod slow;
mod store;
#[cfg(test)]
mod tests;
mod wanted;
mod web;

pub use settings::RemoteOptions;
pub use store::{CacheContent, RemoteStore};
