//! The operations of all stores.

use crate::address::{Address, Kind};
use crate::cloud::Cloud;
use crate::failure::{Cause, RequestFailure};
use crate::hub::Hub;
use crate::listing::BucketListing;
use crate::settings::Settings;
use crate::web::Web;
use std::ops::Range;
use std::sync::Arc;
use tfseek::io::Stamp;

/// A bucket, a server or a repository.
pub(crate) enum Backend {
    Cloud(Cloud),
    Web(Web),
    Hub(Hub),
}

/// The clients of a store.
#[derive(Clone)]
pub(crate) struct Clients {
    /// Follows no redirect.
    pub(crate) direct: reqwest::Client,
    pub(crate) following: reqwest::Client,
}

impl Backend {
    pub(crate) fn new(address: Address<'_>, settings: &Arc<Settings>, clients: &Clients) -> Backend {
        let settings = settings.clone();
        match address.kind {
            Kind::S3 | Kind::Google | Kind::Azure => {
                Backend::Cloud(Cloud::new(address, settings, clients.direct.clone()))
            }
            Kind::Web => Backend::Web(Web::new(address, settings, clients.following.clone())),
            Kind::Hub => Backend::Hub(Hub::new(address, settings, clients.direct.clone())),
        }
    }

    /// Returns the number of requests that the server has refused for a while.
    pub(crate) fn refusals(&self) -> u64 {
        let answers = match self {
            Backend::Cloud(cloud) => &cloud.answers,
            Backend::Web(web) => &web.answers,
            Backend::Hub(hub) => &hub.answers,
        };
        answers.refusals()
    }

    /// Lists names that begin with `prefix`, sorted.
    pub(crate) async fn list(&self, prefix: &str, deep: bool) -> Result<BucketListing, RequestFailure> {
        match self {
            Backend::Cloud(cloud) => cloud.list(prefix, deep).await,
            Backend::Web(web) => web.list(prefix).await,
            Backend::Hub(hub) => hub.list(prefix, deep).await,
        }
    }

    /// Reads a range of an object of the version in `expected`.
    pub(crate) async fn read(
        &self,
        key: &str,
        range: Range<u64>,
        expected: &Stamp,
    ) -> Result<Vec<u8>, RequestFailure> {
        match self {
            Backend::Cloud(cloud) => cloud.read(key, range, expected).await,
            Backend::Web(web) => web.read(key, range, expected).await,
            Backend::Hub(hub) => hub.read(key, range, expected).await,
        }
    }

    /// Reads a whole object. `None` if there is none.
    pub(crate) async fn small(
        &self,
        key: &str,
        limit: u64,
    ) -> Result<Option<(Vec<u8>, Stamp)>, RequestFailure> {
        match self {
            Backend::Cloud(cloud) => cloud.small(key, limit).await,
            Backend::Web(web) => web.small(key, limit).await,
            Backend::Hub(hub) => hub.small(key, limit).await,
        }
    }

    /// Writes a whole object.
    pub(crate) async fn put(&self, key: &str, bytes: Vec<u8>) -> Result<(), RequestFailure> {
        match self {
            Backend::Cloud(cloud) => cloud.put(key, bytes).await,
            Backend::Web(_) | Backend::Hub(_) => {
                Err(RequestFailure::new(Cause::Unsupported, "the store is for reading only"))
            }
        }
    }
}
