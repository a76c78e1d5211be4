//! Buckets of S3, Google Cloud Storage and Azure.

use crate::address::{Address, Kind};
use crate::clients::{Connector, Told};
use crate::failure::{Answers, Cause, RequestFailure, Trace};
use crate::listing::{BucketListing, PAGE, Pages, changed, stamp};
use crate::pace::Repeats;
use crate::settings::{PATIENCE, Settings};
use futures_util::{StreamExt, future};
use http::{HeaderValue, StatusCode};
use object_store::aws::{AmazonS3, AmazonS3Builder, AmazonS3ConfigKey};
use object_store::azure::{AzureConfigKey, MicrosoftAzure, MicrosoftAzureBuilder};
use object_store::gcp::{GcpCredential, GoogleCloudStorage, GoogleCloudStorageBuilder, GoogleConfigKey};
use object_store::list::{PaginatedListOptions, PaginatedListStore};
use object_store::path::Path;
use object_store::{
    CredentialProvider, Extensions, GetOptions, GetResult, ObjectMeta, ObjectStore, PutOptions, PutPayload,
    RetryConfig, StaticCredentialProvider,
};
use std::cmp::Ordering;
use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::ops::Range;
use std::pin::Pin;
use std::str::FromStr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tfseek::io::Stamp;

/// How long a login without variables may take. It asks a metadata server, which most computers do not have.
const LOGIN: Duration = Duration::from_secs(3);

/// Options that object_store does not have.
const OWN_OPTIONS: [&str; 3] = ["user_project", "hf_endpoint", "hf_token"];

/// The login of a bucket, by its variables.
struct Logins {
    /// The beginning of the names of variables.
    prefix: &'static str,
    /// Options that mean that there is a login, or that there shall be none.
    keys: &'static [&'static str],
    /// The variables that a message names.
    named: &'static str,
    /// The other places of logins, and what a message says about them.
    otherwise: &'static str,
}

const S3: Logins = Logins {
    prefix: "AWS_",
    keys: &[
        "aws_access_key_id",
        "aws_secret_access_key",
        "aws_web_identity_token_file",
        "aws_container_credentials_relative_uri",
        "aws_container_credentials_full_uri",
        "aws_skip_signature",
    ],
    named: "AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_WEB_IDENTITY_TOKEN_FILE and AWS_CONTAINER_CREDENTIALS_*",
    otherwise: "the metadata server of EC2 gives none, and profiles in ~/.aws are not read",
};

const GOOGLE: Logins = Logins {
    prefix: "GOOGLE_",
    keys: &[
        "google_service_account",
        "google_service_account_key",
        "google_application_credentials",
        "google_bearer_token",
        "google_skip_signature",
    ],
    named: "GOOGLE_APPLICATION_CREDENTIALS, GOOGLE_SERVICE_ACCOUNT and GOOGLE_SERVICE_ACCOUNT_KEY",
    otherwise: "`gcloud auth application-default login` left no file, and the metadata server gives none",
};

const AZURE: Logins = Logins {
    prefix: "AZURE_",
    keys: &[
        "azure_storage_account_key",
        "azure_client_id",
        "azure_storage_sas_key",
        "azure_storage_token",
        "azure_use_azure_cli",
        "azure_storage_use_emulator",
        "azure_skip_signature",
    ],
    named: "AZURE_STORAGE_ACCOUNT_KEY, AZURE_STORAGE_SAS_TOKEN, AZURE_CLIENT_ID and AZURE_USE_AZURE_CLI",
    otherwise: "the metadata server of Azure gives none",
};

/// How requests are signed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Login {
    /// By variables or options.
    Given,
    Anonymous,
    /// By a file or a metadata server.
    Found,
    /// Not, because there is no login.
    None,
}

/// The same bucket behind both interfaces of object_store.
#[derive(Clone)]
struct OpenedBucket {
    objects: Arc<dyn ObjectStore>,
    lists: Arc<dyn PaginatedListStore>,
    login: Login,
}

/// A part of a listing.
#[derive(Default)]
struct Page {
    objects: Vec<(String, Stamp)>,
    folders: BTreeSet<String>,
    /// The token of the next page.
    next: Option<String>,
}

/// A listing of names that begin with a prefix.
struct Lister<'a> {
    opened: &'a OpenedBucket,
    settings: &'a Settings,
    trace: &'a Arc<Trace>,
    prefix: &'a str,
    deep: bool,
    /// The names of all pages.
    names: AtomicU64,
}

impl Lister<'_> {
    /// Requests the page of a token, or the first one after a name.
    async fn page(&self, after: Option<&str>, token: Option<String>) -> object_store::Result<Page> {
        let options = PaginatedListOptions {
            offset: after.map(str::to_owned),
            delimiter: (!self.deep).then_some("/".into()),
            page_token: token,
            extensions: traced(self.trace),
            ..PaginatedListOptions::default()
        };
        let prefix = (!self.prefix.is_empty()).then_some(self.prefix);
        let mut repeats = Repeats::new(self.settings);
        let listed = loop {
            match self.opened.lists.list_paginated(prefix, options.clone()).await {
                Err(_) if self.trace.asks_again(&mut repeats).await => {}
                listed => break listed?,
            }
        };
        let object = |object: ObjectMeta| {
            let stamp = stamp(object.size, Some(object.last_modified), object.e_tag);
            (object.location.as_ref().to_owned(), stamp)
        };
        let folder = |path: Path| format!("{}/", path.as_ref());
        Ok(Page {
            objects: listed.result.objects.into_iter().map(object).collect(),
            folders: listed.result.common_prefixes.into_iter().map(folder).collect(),
            next: listed.page_token,
        })
    }

    /// Requests page after page, from a token or after a name, to the name `until`.
    async fn chain(
        &self,
        after: Option<&str>,
        mut next: Option<String>,
        until: Option<&str>,
    ) -> object_store::Result<Page> {
        let mut all = Page::default();
        let mut pages = Pages::new(&self.names);
        loop {
            let page = self.page(after, next).await?;
            pages.add(page.objects.len() + page.folders.len(), page.next.as_deref()).map_err(|text| {
                object_store::Error::Generic { store: "", source: Box::new(Told(text.into())) }
            })?;
            let past = |name: &str| until.is_some_and(|until| name > until);
            let ends = page.objects.iter().any(|(name, _)| past(name))
                || page.folders.iter().any(|folder| past(folder));
            all.objects.extend(page.objects.into_iter().filter(|(name, _)| !past(name)));
            // A folder may begin before `until`, and the next chain may not see it.
            all.folders.extend(page.folders);
            next = page.next;
            if ends || next.is_none() {
                return Ok(all);
            }
        }
    }
}

/// The most chains of a listing.
const CHAINS: u64 = 16;

/// Returns names that cut a listing after its first page, which has `page` names and ends with `last`. Names
/// such as `train-00999-of-100000` tell what follows them. Any cuts are correct: others only make chains of
/// different lengths. Names of a pack could cut it too, but numbers make any opening faster, and `Store`
/// needs no method for them.
fn cuts(last: &str, page: usize) -> Vec<String> {
    let cuts = || {
        let (before, after) = last.rsplit_once("-of-")?;
        let start = before.trim_end_matches(|c: char| c.is_ascii_digit()).len();
        let (text, number) = before.split_at_checked(start)?;
        let end = after.find(|c: char| !c.is_ascii_digit()).unwrap_or(after.len());
        let shards: u64 = after.get(..end)?.parse().ok()?;
        let width = number.len();
        let number = number.parse::<u64>().ok()?;
        let left = shards.checked_sub(number)?;
        let chains = left.checked_div(page as u64)?.min(CHAINS);
        let cut = |k: u64| {
            let at = u128::from(left) * u128::from(k) / u128::from(chains);
            format!("{text}{:0width$}", u128::from(number) + at)
        };
        let cuts: Vec<String> = (1..chains).map(cut).collect();
        Some(cuts.into_iter().filter(|cut| cut.as_str() > last).collect::<Vec<_>>())
    };
    let mut cuts = cuts().unwrap_or_default();
    cuts.sort_unstable();
    cuts.dedup();
    cuts
}

/// A bucket or container.
pub(crate) struct Cloud {
    kind: Kind,
    root: String,
    bucket: String,
    settings: Arc<Settings>,
    client: reqwest::Client,
    pub(crate) answers: Arc<Answers>,
    /// Set for a bucket that may be read and not listed. It refuses what does not exist.
    unlisted: AtomicBool,
    opened: Mutex<Option<OpenedBucket>>,
    /// The versions that a server sent first, by name and listed version in quotes, of objects whose listed
    /// version is another.
    sent: Mutex<HashMap<String, Box<str>>>,
    /// The region of a bucket of S3 that its answers named.
    region: Mutex<Option<String>>,
    /// Held while a login is looked for.
    login: tokio::sync::Mutex<()>,
}

impl Cloud {
    pub(crate) fn new(address: Address<'_>, settings: Arc<Settings>, client: reqwest::Client) -> Cloud {
        Cloud {
            kind: address.kind,
            root: address.root.to_owned(),
            bucket: address.bucket().to_owned(),
            settings,
            client,
            answers: Arc::default(),
            unlisted: AtomicBool::new(false),
            sent: Mutex::default(),
            opened: Mutex::default(),
            region: Mutex::default(),
            login: tokio::sync::Mutex::default(),
        }
    }

    fn logins(&self) -> &'static Logins {
        match self.kind {
            Kind::S3 => &S3,
            Kind::Google => &GOOGLE,
            _ => &AZURE,
        }
    }

    /// Lists names that begin with `prefix`. Of a bucket that may not be listed the one object of this name.
    pub(crate) async fn list(&self, prefix: &str, deep: bool) -> Result<BucketListing, RequestFailure> {
        let failure = match self.list_all(prefix, deep).await {
            Err(failure) if failure.cause == Cause::Denied && !deep => failure,
            result => return result,
        };
        let Ok(path) = &path(prefix) else { return Err(failure) };
        if prefix.is_empty() || prefix.ends_with('/') {
            return Err(failure);
        }
        let head = self.call(u64::MAX, |opened, trace| async move {
            let options = GetOptions { head: true, extensions: traced(&trace), ..GetOptions::default() };
            opened.objects.get_opts(path, options).await.map(|answer| answer.meta)
        });
        let Ok(meta) = head.await else { return Err(failure) };
        self.unlisted.store(true, Relaxed);
        let stamp = stamp(meta.size, Some(meta.last_modified), meta.e_tag);
        Ok(BucketListing { objects: vec![(prefix.to_owned(), stamp)], folders: Vec::new() })
    }

    /// Lists all names that begin with `prefix`.
    async fn list_all(&self, prefix: &str, deep: bool) -> Result<BucketListing, RequestFailure> {
        let asked = match self.kind {
            // object_store leaves out the object whose name is the prefix.
            Kind::Azure if !prefix.ends_with('/') => {
                let mut shorter = prefix.chars();
                shorter.next_back();
                shorter.as_str()
            }
            _ => prefix,
        };
        // Azure's names after a name are those from it on, and not all servers have them.
        let chained = matches!(self.kind, Kind::S3 | Kind::Google);
        self.call(PAGE, |opened, trace| async move {
            let names = AtomicU64::new(0);
            let settings = &self.settings;
            let lister = Lister { opened: &opened, settings, trace: &trace, prefix: asked, deep, names };
            let mut all = lister.page(None, None).await?;
            if let Some(next) = all.next.take() {
                let last = all.objects.last().filter(|_| chained);
                let cuts = last.map_or_else(Vec::new, |(last, _)| cuts(last, all.objects.len()));
                let first = std::iter::once((None, Some(next)));
                let begins = first.chain(cuts.iter().map(|cut| (Some(cut.as_str()), None)));
                let ends = cuts.iter().map(|cut| Some(cut.as_str())).chain(std::iter::once(None));
                let chains = begins.zip(ends).map(|((after, next), until)| lister.chain(after, next, until));
                for chain in future::try_join_all(chains).await? {
                    all.objects.extend(chain.objects);
                    all.folders.extend(chain.folders);
                }
            }
            let Page { objects: mut found, mut folders, .. } = all;
            found.retain(|(name, _)| name.starts_with(prefix));
            folders.retain(|folder| folder.starts_with(prefix));
            found.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
            found.dedup_by(|(a, _), (b, _)| a == b);
            // An empty object `a/` stands for a folder.
            let names: Vec<String> = found.iter().map(|(name, _)| name.clone()).collect();
            let is_folder = |name: &str| {
                let inside = format!("{name}/");
                let next = names.partition_point(|other| *other < inside);
                names.get(next).is_some_and(|other| other.starts_with(&inside))
            };
            found.retain(|(name, stamp)| stamp.size > 0 || !is_folder(name));
            Ok(BucketListing { objects: found, folders: folders.into_iter().collect() })
        })
        .await
        .map_err(|(failure, _)| failure)
    }

    /// Reads a range of an object of the version in `expected`. The rest of an answer that ends early is
    /// asked for again.
    pub(crate) async fn read(
        &self,
        key: &str,
        range: Range<u64>,
        expected: &Stamp,
    ) -> Result<Vec<u8>, RequestFailure> {
        let path = &path(key)?;
        let len = range.end - range.start;
        let mut bytes = self.read_start(path, range.clone(), expected).await?;
        let mut left = self.settings.retries;
        while (bytes.len() as u64) < len {
            let Some(fewer) = left.checked_sub(1) else {
                let text = format!("the answer ended early: asked for {len} bytes, got {}", bytes.len());
                return Err(RequestFailure::new(Cause::Other, text));
            };
            left = fewer;
            let rest = range.start + bytes.len() as u64..range.end;
            bytes.append(&mut self.read_start(path, rest, expected).await?);
        }
        Ok(bytes)
    }

    /// Returns the failure of an object that was replaced, from a server that ignores `If-Match`. Some
    /// servers list other versions than they send: at an equal time, the version has to be the first
    /// answer's.
    fn unlike(&self, key: &str, expected: &Stamp, now: &Stamp) -> Option<RequestFailure> {
        let (then, version) = expected.version.as_deref().zip(now.version.as_deref())?;
        if quoted(then) == quoted(version) {
            return None;
        }
        let mut timed = expected.clone();
        timed.version = None;
        let mut sent = self.sent.lock().unwrap_or_else(PoisonError::into_inner);
        let first = sent.entry(format!("{key}{}", quoted(then))).or_insert_with(|| version.into());
        let is_other = changed(&timed, now).is_some() || **first != *version;
        is_other.then(|| RequestFailure::stale("its version is another"))
    }

    /// Reads a range, or its first bytes if the server sends fewer.
    async fn read_start(
        &self,
        path: &Path,
        range: Range<u64>,
        expected: &Stamp,
    ) -> Result<Vec<u8>, RequestFailure> {
        let len = usize::try_from(range.end - range.start).unwrap_or(usize::MAX);
        let result = self.call(u64::MAX, |opened, trace| {
            let range = range.clone();
            async move {
                let options = GetOptions {
                    range: Some(range.into()),
                    if_match: expected.version.as_deref().map(quoted),
                    extensions: traced(&trace),
                    ..GetOptions::default()
                };
                let mut repeats = Repeats::new(&self.settings);
                loop {
                    let answer = opened.objects.get_opts(path, options.clone()).await?;
                    let now =
                        stamp(answer.meta.size, Some(answer.meta.last_modified), answer.meta.e_tag.clone());
                    let unlike = || self.unlike(path.as_ref(), expected, &now);
                    if let Some(failure) = changed(expected, &now).or_else(unlike) {
                        return Ok(Err(failure));
                    }
                    let bytes = match body(answer, len).await {
                        Ok(Ok(bytes)) => bytes,
                        Ok(Err(failure)) => return Ok(Err(failure)),
                        Err(_) if trace.asks_again(&mut repeats).await => continue,
                        Err(e) => return Err(e),
                    };
                    if bytes.len() > len {
                        return Ok(Err(RequestFailure::no_ranges("the answer is too long")));
                    }
                    return Ok(Ok(bytes));
                }
            }
        });
        match result.await {
            Ok(result) => result,
            Err((failure, status)) => Err(match status {
                Some(StatusCode::RANGE_NOT_SATISFIABLE) => RequestFailure::stale("it is shorter"),
                Some(StatusCode::OK) => RequestFailure::no_ranges("it sent the whole object"),
                Some(StatusCode::PARTIAL_CONTENT) => RequestFailure::no_ranges(&failure.text),
                _ => failure,
            }),
        }
    }

    /// Reads a whole object. `None` if there is none.
    pub(crate) async fn small(
        &self,
        key: &str,
        limit: u64,
    ) -> Result<Option<(Vec<u8>, Stamp)>, RequestFailure> {
        let path = &path(key)?;
        let result = self.call(u64::MAX, |opened, trace| async move {
            let options = GetOptions { extensions: traced(&trace), ..GetOptions::default() };
            let mut repeats = Repeats::new(&self.settings);
            loop {
                let answer = opened.objects.get_opts(path, options.clone()).await?;
                let len = answer.meta.size;
                if len > limit {
                    return Ok(Err(RequestFailure::too_large(len, limit)));
                }
                let meta = stamp(len, Some(answer.meta.last_modified), answer.meta.e_tag.clone());
                let bytes = match body(answer, usize::try_from(len).unwrap_or(usize::MAX)).await {
                    Ok(Ok(bytes)) => bytes,
                    Ok(Err(failure)) => return Ok(Err(failure)),
                    Err(_) if trace.asks_again(&mut repeats).await => continue,
                    Err(e) => return Err(e),
                };
                let other = |text: &str| Ok(Err(RequestFailure::new(Cause::Other, text)));
                match (bytes.len() as u64).cmp(&len) {
                    Ordering::Greater => return other("the answer is longer than the object"),
                    Ordering::Less => return other("the answer is shorter than the object"),
                    Ordering::Equal => {}
                }
                return Ok(Ok((bytes, meta)));
            }
        });
        match result.await {
            Ok(result) => result.map(Some),
            Err((failure, _)) if failure.cause == Cause::Missing => Ok(None),
            Err((failure, _)) if failure.cause == Cause::Denied && self.unlisted.load(Relaxed) => Ok(None),
            Err((failure, _)) => Err(failure),
        }
    }

    /// Writes a whole object.
    pub(crate) async fn put(&self, key: &str, bytes: Vec<u8>) -> Result<(), RequestFailure> {
        let path = &path(key)?;
        let payload = PutPayload::from(bytes);
        let result = self.call(u64::MAX, |opened, trace| {
            let payload = payload.clone();
            async move {
                let options = PutOptions { extensions: traced(&trace), ..PutOptions::default() };
                opened.objects.put_opts(path, payload, options).await.map(|_| ())
            }
        });
        result.await.map_err(|(failure, _)| failure)
    }

    /// Makes a request, again with a login if the server wants one, and again in another region if the bucket
    /// is there.
    ///
    /// An answer may have at most `limit` bytes.
    async fn call<T, F>(
        &self,
        limit: u64,
        request: impl Fn(OpenedBucket, Arc<Trace>) -> F,
    ) -> Result<T, (RequestFailure, Option<StatusCode>)>
    where
        F: Future<Output = object_store::Result<T>>,
    {
        let mut moved = false;
        loop {
            let opened = self.opened().map_err(|failure| (failure, None))?;
            let trace = Arc::new(Trace::new(limit));
            let e = match request(opened.clone(), trace.clone()).await {
                Ok(done) => return Ok(done),
                Err(e) => e,
            };
            let seen = trace.seen();
            if let Some(region) = &seen.region
                && !moved
                && self.moves_to(region)
            {
                moved = true;
                continue;
            }
            let denied = matches!(seen.status, Some(StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN));
            if denied && opened.login == Login::Anonymous {
                self.log_in().await;
                if self.opened().is_ok_and(|opened| opened.login == Login::Found) {
                    continue;
                }
            }
            let failure = failure(e, &trace);
            let failure = if denied { failure.noted(&self.note()) } else { failure };
            return Err((failure, seen.status));
        }
    }

    fn opened(&self) -> Result<OpenedBucket, RequestFailure> {
        let mut opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(opened) = &*opened {
            return Ok(opened.clone());
        }
        let login = if self.is_given() { Login::Given } else { Login::Anonymous };
        Ok(opened.insert(self.open(login)?.0).clone())
    }

    /// Returns true if variables or options have a login.
    fn is_given(&self) -> bool {
        !self.given().is_empty() || self.kind == Kind::Google && self.emulator().is_some()
    }

    /// Returns the names of the variables and options that have a login.
    fn given(&self) -> BTreeSet<String> {
        let Logins { prefix, keys, .. } = self.logins();
        let is_key = |name: &String| {
            let same = |key: &&str| canonical(self.kind, name) == canonical(self.kind, key);
            canonical(self.kind, name).is_some() && keys.iter().any(same)
        };
        self.settings.all(prefix).map(|(name, _)| name).filter(is_key).collect()
    }

    /// Returns the address of an emulator of Google, which is used without a login.
    fn emulator(&self) -> Option<String> {
        let host = self.settings.variable("STORAGE_EMULATOR_HOST")?;
        Some(if host.contains("://") { host.to_owned() } else { format!("http://{host}") })
    }

    /// Returns a note for a message: where a login was looked for.
    fn note(&self) -> String {
        let Logins { named, otherwise, .. } = self.logins();
        match self.opened().map(|opened| opened.login) {
            Ok(Login::Given) => {
                let names: Vec<String> = self.given().into_iter().collect();
                format!("logged in by variables or storage options: {}", names.join(", "))
            }
            Ok(Login::Found) => "logged in by a file or the metadata server".to_owned(),
            _ => format!("no login: {named} are not set, {otherwise}"),
        }
    }

    /// Looks for a login once. If there is none, requests stay anonymous.
    async fn log_in(&self) {
        let _one = self.login.lock().await;
        if self.opened().is_ok_and(|opened| opened.login != Login::Anonymous) {
            return;
        }
        let found = match self.open(Login::Found) {
            Ok((opened, credential)) => {
                tokio::time::timeout(LOGIN, credential).await.unwrap_or(false).then_some(opened)
            }
            Err(_) => None,
        };
        let mut opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        *opened = match found {
            Some(found) => Some(found),
            None => opened.clone().map(|opened| OpenedBucket { login: Login::None, ..opened }),
        };
    }

    /// Returns true if the bucket is in another region, and uses that.
    fn moves_to(&self, region: &str) -> bool {
        let chosen = |key: AmazonS3ConfigKey| {
            let mut settings = self.settings.all(S3.prefix);
            settings.find(|(name, _)| canonical(Kind::S3, name).as_deref() == Some(key.as_ref()))
        };
        let has_endpoint = [AmazonS3ConfigKey::Endpoint, AmazonS3ConfigKey::S3Endpoint]
            .into_iter()
            .any(|endpoint| chosen(endpoint).is_some());
        let is_region =
            (1..32).contains(&region.len()) && region.chars().all(|c| c.is_ascii_alphanumeric() || c == '-');
        if self.kind != Kind::S3 || has_endpoint || !is_region {
            return false;
        }
        let mut known = self.region.lock().unwrap_or_else(PoisonError::into_inner);
        let given = chosen(AmazonS3ConfigKey::Region).or_else(|| chosen(AmazonS3ConfigKey::DefaultRegion));
        let used = known.as_deref().or(given.map(|(_, region)| region)).unwrap_or("us-east-1");
        if used == region {
            return false;
        }
        *known = Some(region.to_owned());
        drop(known);
        let mut opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        let login = opened.as_ref().map_or(Login::Anonymous, |opened| opened.login);
        if let Ok((moved, _)) = self.open(if login == Login::None { Login::Anonymous } else { login }) {
            *opened = Some(OpenedBucket { login, ..moved });
        }
        true
    }

    /// Opens the bucket, without a request, and returns a future that is true if it has a login.
    fn open(&self, login: Login) -> Result<(OpenedBucket, LoginCheck), RequestFailure> {
        let (objects, lists, has_login) = match self.kind {
            Kind::S3 => self.open_s3(login)?,
            Kind::Google => self.open_google(login)?,
            _ => self.open_azure(login)?,
        };
        Ok((OpenedBucket { objects, lists, login }, has_login))
    }

    fn open_s3(&self, login: Login) -> Result<OpenedStore, RequestFailure> {
        let builder = AmazonS3Builder::new();
        let mut builder = configured(&self.settings, S3.prefix, builder, AmazonS3Builder::with_config);
        if let Some(region) = &*self.region.lock().unwrap_or_else(PoisonError::into_inner) {
            builder = builder.with_region(region);
        }
        let http = builder
            .get_config_value(&AmazonS3ConfigKey::S3Endpoint)
            .or_else(|| builder.get_config_value(&AmazonS3ConfigKey::Endpoint));
        check_http(http.as_deref(), &self.settings, "AWS_ALLOW_HTTP")?;
        if login == Login::Anonymous {
            builder = builder.with_skip_signature(true);
        }
        let builder = builder.with_retry(self.retry()).with_http_connector(self.connector(None));
        opened_store(builder.with_bucket_name(&self.bucket).build(), AmazonS3::credentials, "S3")
    }

    fn open_google(&self, login: Login) -> Result<OpenedStore, RequestFailure> {
        let builder = GoogleCloudStorageBuilder::new();
        let with = GoogleCloudStorageBuilder::with_config;
        let mut builder = configured(&self.settings, GOOGLE.prefix, builder, with);
        let base = match (builder.get_config_value(&GoogleConfigKey::BaseUrl), self.emulator()) {
            (Some(base), _) | (None, Some(base)) => base,
            (None, None) => "https://storage.googleapis.com".to_owned(),
        };
        builder = builder.with_base_url(base.trim_end_matches('/'));
        let project = self.settings.first(&["user_project"], &["GOOGLE_CLOUD_QUOTA_PROJECT"]);
        let project = project.and_then(|project| HeaderValue::from_str(project).ok());
        let host = reqwest::Url::parse(&base).ok().and_then(|url| url.host_str().map(str::to_owned));
        // Without this, building reads a file and writing asks for a token.
        let emulated = self.emulator().is_some() && login == Login::Given;
        let skipped = builder.get_config_value(&GoogleConfigKey::SkipSignature);
        if login == Login::Anonymous || emulated || skipped.is_some_and(|skipped| is_true(&skipped)) {
            let none = GcpCredential { bearer: String::new() };
            builder = builder
                .with_skip_signature(true)
                .with_credentials(Arc::new(StaticCredentialProvider::new(none)));
        }
        let connector = self.connector(host.zip(project));
        let builder = builder.with_retry(self.retry()).with_http_connector(connector);
        let built = builder.with_bucket_name(&self.bucket).build();
        opened_store(built, GoogleCloudStorage::credentials, "Google")
    }

    fn open_azure(&self, login: Login) -> Result<OpenedStore, RequestFailure> {
        let builder = MicrosoftAzureBuilder::new();
        let with = MicrosoftAzureBuilder::with_config;
        let mut builder = configured(&self.settings, AZURE.prefix, builder, with);
        let endpoint = builder.get_config_value(&AzureConfigKey::Endpoint);
        check_http(endpoint.as_deref(), &self.settings, "AZURE_ALLOW_HTTP")?;
        if login == Login::Anonymous {
            builder = builder.with_skip_signature(true);
        }
        let named = builder.get_config_value(&AzureConfigKey::AccountName).is_some();
        let emulator = builder.get_config_value(&AzureConfigKey::UseEmulator).as_deref() == Some("true");
        if !named && !emulator && !self.bucket.contains('@') {
            let text = "the URL has no storage account: set AZURE_STORAGE_ACCOUNT_NAME, or give abfss://CONTAINER@ACCOUNT.dfs.core.windows.net/PATH";
            return Err(RequestFailure::new(Cause::Invalid, text));
        }
        let builder = builder.with_retry(self.retry()).with_http_connector(self.connector(None));
        opened_store(builder.with_url(&self.root).build(), MicrosoftAzure::credentials, "Azure")
    }

    fn retry(&self) -> RetryConfig {
        let retries = self.settings.retries;
        #[cfg_attr(not(test), expect(unused_mut, reason = "only tests have other pauses"))]
        let mut config =
            RetryConfig { max_retries: retries, retry_timeout: PATIENCE, ..RetryConfig::default() };
        // Pauses are drawn at random from between these two.
        #[cfg(test)]
        if crate::simulated::here().is_some() {
            config.backoff.init_backoff = config.backoff.max_backoff / 8;
            config.backoff.max_backoff = config.backoff.init_backoff;
        }
        config
    }

    /// Returns the connector of a host whose requests a project pays, or of all hosts.
    fn connector(&self, payer: Option<(String, HeaderValue)>) -> Connector {
        let client = self.client.clone();
        Connector { client, payer, answers: self.answers.clone(), settings: self.settings.clone() }
    }
}

/// Reads the body of an answer that should have `len` bytes. It ends after the first chunk beyond them.
async fn body(answer: GetResult, len: usize) -> object_store::Result<Result<Vec<u8>, RequestFailure>> {
    let mut bytes = Vec::new();
    if bytes.try_reserve_exact(len).is_err() {
        return Ok(Err(RequestFailure::new(Cause::Other, "there is not enough memory")));
    }
    let mut stream = answer.into_stream();
    while bytes.len() <= len
        && let Some(chunk) = stream.next().await.transpose()?
    {
        bytes.extend_from_slice(&chunk);
    }
    Ok(Ok(bytes))
}

/// A future that is true if there is a login.
type LoginCheck = Pin<Box<dyn Future<Output = bool> + Send>>;

/// A bucket behind both interfaces of object_store, and whether it has a login.
type OpenedStore = (Arc<dyn ObjectStore>, Arc<dyn PaginatedListStore>, LoginCheck);

/// Returns the bucket that a builder made.
///
/// # Errors
/// The settings are invalid. Errors of builders repeat values, so the text has only the service, `what`.
fn opened_store<S: ObjectStore + PaginatedListStore, C: fmt::Debug + Send + Sync + 'static>(
    built: object_store::Result<S>,
    credentials: impl Fn(&S) -> &Arc<dyn CredentialProvider<Credential = C>>,
    what: &str,
) -> Result<OpenedStore, RequestFailure> {
    let invalid = |_| RequestFailure::new(Cause::Invalid, format!("the settings of {what} are invalid"));
    let store = Arc::new(built.map_err(invalid)?);
    let provider = credentials(&store).clone();
    let has_login = Box::pin(async move { provider.get_credential().await.is_ok() });
    Ok((store.clone(), store, has_login))
}

/// Gives a builder the settings of its names. Settings of other names are left out.
fn configured<B, K: FromStr>(
    settings: &Settings,
    prefix: &str,
    builder: B,
    with: impl Fn(B, K, String) -> B,
) -> B {
    let known = |(name, value): (String, &str)| Some((name.parse().ok()?, value.to_owned()));
    let all = settings.all(prefix).filter_map(known);
    all.fold(builder, |builder, (key, value)| with(builder, key, value))
}

/// Checks that an address without TLS is allowed.
fn check_http(endpoint: Option<&str>, settings: &Settings, variable: &str) -> Result<(), RequestFailure> {
    let allowed = settings.first(&["allow_http", &variable.to_ascii_lowercase()], &[variable]);
    match endpoint {
        Some(endpoint) if endpoint.starts_with("http://") && !allowed.is_some_and(is_true) => {
            let text = format!("the endpoint begins with http://, which needs {variable}=true");
            Err(RequestFailure::new(Cause::Invalid, text))
        }
        _ => Ok(()),
    }
}

/// Returns true for a value that object_store takes for true.
fn is_true(value: &str) -> bool {
    matches!(value.to_ascii_lowercase().as_str(), "1" | "true" | "on" | "yes" | "y")
}

/// Returns true for the name of an option of one of the stores.
pub(crate) fn is_option(name: &str) -> bool {
    OWN_OPTIONS.contains(&name)
        || [Kind::S3, Kind::Google, Kind::Azure].into_iter().any(|kind| canonical(kind, name).is_some())
}

/// Returns the last value of a setting, by any of its names: options precede variables.
pub(crate) fn setting<'s>(settings: &'s Settings, kind: Kind, key: &str) -> Option<&'s str> {
    let prefix = match kind {
        Kind::S3 => S3.prefix,
        Kind::Google => GOOGLE.prefix,
        _ => AZURE.prefix,
    };
    let all = settings.all(prefix).filter(|(name, _)| canonical(kind, name).as_deref() == Some(key));
    all.last().map(|(_, value)| value)
}

/// Returns the one name of an option that has several.
fn canonical(kind: Kind, name: &str) -> Option<String> {
    match kind {
        Kind::S3 => name.parse::<AmazonS3ConfigKey>().ok().map(|key| key.as_ref().to_owned()),
        Kind::Google => name.parse::<GoogleConfigKey>().ok().map(|key| key.as_ref().to_owned()),
        _ => name.parse::<AzureConfigKey>().ok().map(|key| key.as_ref().to_owned()),
    }
}

fn path(key: &str) -> Result<Path, RequestFailure> {
    let invalid = |_| {
        RequestFailure::new(Cause::Invalid, "the name has an empty part, `.`, `..` or a control character")
    };
    Path::parse(key).map_err(invalid)
}

fn traced(trace: &Arc<Trace>) -> Extensions {
    let mut extensions = Extensions::new();
    extensions.insert(trace.clone());
    extensions
}

/// Azure lists versions without quotes.
fn quoted(version: &str) -> String {
    if version.starts_with('"') { version.to_owned() } else { format!("\"{version}\"") }
}

/// Returns the failure of a request, whose answers are in the trace. Texts of object_store may have the URL,
/// where there was an answer that is no success.
fn failure(e: object_store::Error, trace: &Trace) -> RequestFailure {
    use object_store::Error;
    let seen = trace.seen();
    let cause = match &e {
        Error::NotFound { .. } => Cause::Missing,
        Error::Precondition { .. } => return RequestFailure::stale("its version is another"),
        Error::PermissionDenied { .. } | Error::Unauthenticated { .. } => Cause::Denied,
        _ => match seen.status {
            Some(StatusCode::NOT_FOUND) => Cause::Missing,
            Some(StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) => Cause::Denied,
            // The rest of a body that broke was asked for.
            Some(StatusCode::PRECONDITION_FAILED) => {
                return RequestFailure::stale("its version is another");
            }
            _ => Cause::Other,
        },
    };
    let text = match (&e, seen.status) {
        (Error::InvalidPath { .. }, _) => "a name in the bucket has an empty part, `.` or `..`".to_owned(),
        (Error::Generic { source, .. }, Some(status)) if status.is_success() => source.to_string(),
        (_, None) if seen.attempts == 0 => "the login failed, or the request could not be made".to_owned(),
        _ => seen.text(),
    };
    RequestFailure::new(cause, text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::RemoteOptions;

    fn bucket(variables: &[(&str, &str)]) -> Cloud {
        let pair = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        let variables = Some(variables.iter().map(pair).collect());
        let settings = Arc::new(Settings::new(RemoteOptions { variables, ..RemoteOptions::default() }));
        let client = crate::clients::client(&settings, 0).unwrap();
        Cloud::new(Address::of("s3://bucket/x").unwrap(), settings, client)
    }

    /// A server may list another version than it sends. It has to send the same one each time.
    #[test]
    fn a_version_that_is_not_the_listed_one_stays_that_of_the_first_answer() {
        let cloud = bucket(&[]);
        let of =
            |tag: &str, time| stamp(1, chrono::DateTime::from_timestamp(time, 0), Some(format!("\"{tag}\"")));
        let listed = of("listed", 1_700_000_000);
        let then = 1_700_000_000;
        for (key, tag, time, is_stale) in [
            ("a", "listed", then, false),
            ("a", "sent", then, false),
            ("a", "other", then, true),
            ("a", "sent", then, false),
            ("b", "other", then, false),
            ("b", "other", then + 1, true),
        ] {
            assert_eq!(cloud.unlike(key, &listed, &of(tag, time)).is_some(), is_stale, "{key} {tag} {time}");
        }
    }

    #[test]
    fn a_bucket_in_another_region_is_followed_once() {
        let cloud = bucket(&[]);
        cloud.opened().unwrap();
        // Answers name the region also where it is the right one.
        assert!(!cloud.moves_to("us-east-1"));
        assert!(cloud.moves_to("eu-west-1") && !cloud.moves_to("eu-west-1"));
        assert_eq!(cloud.region.lock().unwrap().as_deref(), Some("eu-west-1"));
        assert!(cloud.opened().unwrap().login == Login::Anonymous);
        assert!(!bucket(&[("AWS_REGION", "eu-west-1")]).moves_to("eu-west-1"));
        assert!(bucket(&[("AWS_DEFAULT_REGION", "eu-west-1")]).moves_to("eu-west-2"));
        for region in ["https://host", "", "a.b"] {
            assert!(!bucket(&[]).moves_to(region), "{region}");
        }
        // Another server has no such regions.
        assert!(!bucket(&[("AWS_ENDPOINT_URL", "https://host")]).moves_to("eu-west-1"));
    }

    #[test]
    fn all_names_of_a_login_count() {
        for name in ["AWS_ACCESS_KEY_ID", "AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_SKIP_SIGNATURE"] {
            assert!(bucket(&[(name, "x")]).is_given(), "{name}");
        }
        for name in ["AWS_REGION", "AWS_ENDPOINT_URL", "AWS_SESSION_TOKEN", "GOOGLE_SERVICE_ACCOUNT"] {
            assert!(!bucket(&[(name, "x")]).is_given(), "{name}");
        }
    }
}
