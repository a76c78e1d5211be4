//! The operations of all stores.

use crate::address::{Address, Kind};
use crate::clients::{Told, client};
use crate::cloud::Cloud;
use crate::failure::{Cause, RequestFailure};
use crate::hub::Hub;
use crate::listing::BucketListing;
use crate::settings::Settings;
use crate::web::Web;
use reqwest::Client;
use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;
use tfseek::io::Stamp;

/// A bucket, a server or a repository.
pub(crate) enum Backend {
    Cloud(Cloud),
    Web(Web),
    Hub(Hub),
}

/// The backends of a store by the roots of their URLs, and the clients that they share. A client is made when
/// it is needed first.
#[derive(Default)]
pub(crate) struct Backends {
    by_root: HashMap<String, Arc<Backend>>,
    /// Follows no redirect.
    direct: Option<Client>,
    following: Option<Client>,
}

impl Backends {
    /// Returns the backend of an address. It is made if there is none.
    ///
    /// # Errors
    /// Errors of [`client`].
    pub(crate) fn get(
        &mut self,
        address: Address<'_>,
        settings: &Arc<Settings>,
    ) -> Result<Arc<Backend>, Told> {
        if let Some(backend) = self.by_root.get(address.root) {
            return Ok(backend.clone());
        }
        let (kept, redirects) = match address.kind {
            Kind::Web => (&mut self.following, 10),
            _ => (&mut self.direct, 0),
        };
        let client = match kept {
            Some(client) => client.clone(),
            None => kept.insert(client(settings, redirects)?).clone(),
        };
        let backend = Arc::new(Backend::new(address, settings.clone(), client));
        self.by_root.insert(address.root.to_owned(), backend.clone());
        Ok(backend)
    }
}

impl Backend {
    fn new(address: Address<'_>, settings: Arc<Settings>, client: Client) -> Backend {
        match address.kind {
            Kind::S3 | Kind::Google | Kind::Azure => Backend::Cloud(Cloud::new(address, settings, client)),
            Kind::Web => Backend::Web(Web::new(address, settings, client)),
            Kind::Hub => Backend::Hub(Hub::new(address, settings, client)),
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
