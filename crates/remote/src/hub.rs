//! Repositories of data sets on the Hugging Face hub.

use crate::address::Address;
use crate::failure::{Answers, Cause, RequestFailure};
use crate::listing::{BucketListing, PAGE, Pages, stamp};
use crate::settings::Settings;
use crate::web::{Attempts, NoRange, Wanted, refused};
use http::header::{AUTHORIZATION, LINK, LOCATION};
use http::{HeaderMap, StatusCode};
use reqwest::{Client, RequestBuilder, Response, Url};
use std::collections::{BTreeSet, HashMap};
use std::ops::Range;
use std::path::Path;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, PoisonError};
use tfseek::io::Stamp;

/// The largest file that the hub sends whole instead of a range.
const WHOLE: u64 = 16 << 20;
/// The number of redirects on the hub itself, e.g. of a repository that was renamed.
const MOVES: usize = 5;

/// A repository at one revision.
pub(crate) struct Hub {
    settings: Arc<Settings>,
    client: Client,
    pub(crate) answers: Arc<Answers>,
    /// `OWNER/NAME`.
    id: String,
    revision: String,
    /// The commit of the revision, once it was asked for.
    commit: tokio::sync::OnceCell<String>,
    /// The address of the bytes of each object, by version and path. It expires and is secret.
    resolved: Mutex<HashMap<String, Arc<tokio::sync::Mutex<Option<Url>>>>>,
}

impl Hub {
    pub(crate) fn new(address: Address<'_>, settings: Arc<Settings>, client: Client) -> Hub {
        let name = address.bucket().strip_prefix("datasets/").unwrap_or_default();
        let (id, revision) = name.split_once('@').unwrap_or((name, "main"));
        let revision = revision.replace("%2F", "/").replace("%2f", "/");
        let (commit, resolved, answers) = Default::default();
        Hub { settings, client, id: id.to_owned(), revision, commit, resolved, answers }
    }

    fn endpoint(&self) -> &str {
        endpoint(&self.settings)
    }

    /// Returns the token of variables or of the file of a login.
    fn token(&self) -> Option<String> {
        let given = self.settings.first(&["hf_token", "token"], &["HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"]);
        if let Some(token) = given {
            return Some(token.trim().to_owned());
        }
        let variable = |name| self.settings.variable(name).map(Path::new);
        let file = variable("HF_TOKEN_PATH")
            .map(Path::to_owned)
            .or_else(|| Some(variable("HF_HOME")?.join("token")))
            .or_else(|| Some(variable("XDG_CACHE_HOME")?.join("huggingface/token")))
            .or_else(|| {
                Some(variable("HOME").or(variable("USERPROFILE"))?.join(".cache/huggingface/token"))
            })?;
        let token = std::fs::read_to_string(file).ok()?.trim().to_owned();
        (!token.is_empty()).then_some(token)
    }

    /// Returns a request to the hub. Only these have the token.
    fn get(&self, url: &Url) -> RequestBuilder {
        let request = self.client.get(url.clone());
        match self.token().filter(|_| self.is_here(url)) {
            Some(token) => request.header(AUTHORIZATION, format!("Bearer {token}")),
            None => request,
        }
    }

    fn is_here(&self, url: &Url) -> bool {
        Url::parse(self.endpoint()).is_ok_and(|hub| hub.origin() == url.origin())
    }

    fn url(&self, path: &str) -> Result<Url, RequestFailure> {
        let invalid = |_| RequestFailure::new(Cause::Invalid, "the address of the hub is invalid");
        Url::parse(&format!("{}{path}", self.endpoint())).map_err(invalid)
    }

    /// Returns the failure that an answer stands for.
    fn failure(&self, status: StatusCode, headers: &HeaderMap) -> RequestFailure {
        let code = headers.get("x-error-code").and_then(|code| code.to_str().ok()).unwrap_or_default();
        let login = match self.token() {
            Some(_) => "the token was sent",
            None => "no token: HF_TOKEN, HUGGING_FACE_HUB_TOKEN and the file of `hf auth login` are not set",
        };
        let text = match code {
            "RepoNotFound" => format!("no such repository, or it is private; {login}"),
            "GatedRepo" => format!("access must be granted on the page of the repository; {login}"),
            "RevisionNotFound" => "no such revision".to_owned(),
            "EntryNotFound" => "no such file".to_owned(),
            _ if matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) => login.to_owned(),
            _ => String::new(),
        };
        let failure = refused(status, &text);
        // A repository that is not shown may exist.
        let denied = matches!(code, "RepoNotFound" | "GatedRepo");
        RequestFailure { cause: if denied { Cause::Denied } else { failure.cause }, ..failure }
    }

    /// Sends a request to the hub, and again where the hub has moved to.
    async fn send(
        &self,
        attempts: &mut Attempts,
        mut url: Url,
        range: Option<&str>,
    ) -> Result<(Response, Url), RequestFailure> {
        for _ in 0..MOVES {
            let with_range = |request: RequestBuilder| match range {
                Some(range) => request.header(http::header::RANGE, range),
                None => request,
            };
            let answer = attempts.send(|| with_range(self.get(&url))).await?;
            if !answer.status().is_redirection() {
                return Ok((answer, url));
            }
            let location = answer.headers().get(LOCATION).and_then(|location| location.to_str().ok());
            let next = location.and_then(|location| url.join(location).ok());
            let next = next.ok_or_else(|| RequestFailure::new(Cause::Other, "a redirect leads nowhere"))?;
            if !self.is_here(&next) {
                return Ok((answer, next));
            }
            url = next;
        }
        Err(RequestFailure::new(Cause::Other, "too many redirects"))
    }

    /// Returns the commit of the revision.
    async fn commit(&self) -> Result<&str, RequestFailure> {
        let commit = self.commit.get_or_try_init(|| async {
            let revision = escape(&self.revision, false);
            let url = self.url(&format!("/api/datasets/{}/revision/{revision}", self.id))?;
            let mut attempts = Attempts::new(&self.settings, &self.answers);
            let body = loop {
                let (answer, _) = self.send(&mut attempts, url.clone(), None).await?;
                if !answer.status().is_success() {
                    return Err(self.failure(answer.status(), answer.headers()));
                }
                if let Some(body) = attempts.whole(answer, PAGE).await? {
                    break body;
                }
            };
            let json: serde_json::Value = serde_json::from_slice(&body).map_err(|_| unexpected())?;
            let sha = json.get("sha").and_then(|sha| sha.as_str()).ok_or_else(unexpected)?;
            let is_sha = !sha.is_empty() && sha.chars().all(|c| c.is_ascii_alphanumeric());
            if is_sha { Ok(sha.to_owned()) } else { Err(unexpected()) }
        });
        commit.await.map(String::as_str)
    }

    pub(crate) async fn list(&self, prefix: &str, deep: bool) -> Result<BucketListing, RequestFailure> {
        let commit = self.commit().await?;
        let folder = prefix.rsplit_once('/').map_or("", |(folder, _)| folder);
        let mut path = format!("/api/datasets/{}/tree/{commit}", self.id);
        if !folder.is_empty() {
            path = format!("{path}/{}", escape(folder, false));
        }
        let mut next = Some(self.url(&format!("{path}?recursive={deep}&expand=false"))?);
        let mut objects = Vec::new();
        let mut folders = BTreeSet::new();
        let names = AtomicU64::new(0);
        let mut pages = Pages::new(&names);
        let mut attempts = Attempts::new(&self.settings, &self.answers);
        while let Some(url) = next {
            let (answer, _) = self.send(&mut attempts, url.clone(), None).await?;
            let code = answer.headers().get("x-error-code").map(|code| code.as_bytes());
            if answer.status() == StatusCode::NOT_FOUND && code == Some(b"EntryNotFound") {
                return Ok(BucketListing::default());
            }
            if !answer.status().is_success() {
                return Err(self.failure(answer.status(), answer.headers()));
            }
            let after = self.next_page(&url, answer.headers())?;
            let Some(body) = attempts.whole(answer, PAGE).await? else {
                next = Some(url);
                continue;
            };
            next = after;
            attempts = Attempts::new(&self.settings, &self.answers);
            let entries: Vec<serde_json::Value> = serde_json::from_slice(&body).map_err(|_| unexpected())?;
            pages
                .add(entries.len(), next.as_ref().map(Url::as_str))
                .map_err(|text| RequestFailure::new(Cause::Other, text))?;
            for entry in &entries {
                let text = |key: &str| entry.get(key).and_then(|value| value.as_str());
                let name = text("path").ok_or_else(unexpected)?;
                if !name.starts_with(prefix) {
                    continue;
                }
                match text("type") {
                    Some("file") => {
                        let lfs = entry.get("lfs").filter(|lfs| lfs.is_object());
                        let size = lfs.unwrap_or(entry).get("size").and_then(|size| size.as_u64());
                        let oid = lfs.unwrap_or(entry).get("oid").and_then(|oid| oid.as_str());
                        let (size, oid) = size.zip(oid).ok_or_else(unexpected)?;
                        objects.push((name.to_owned(), stamp(size, None, Some(format!("{commit}:{oid}")))));
                    }
                    Some("directory") if !deep => _ = folders.insert(format!("{name}/")),
                    _ => {}
                }
            }
        }
        objects.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
        objects.dedup_by(|(a, _), (b, _)| a == b);
        Ok(BucketListing { objects, folders: folders.into_iter().collect() })
    }

    /// Returns the page of a listing after the one of this URL, if there is one.
    fn next_page(&self, url: &Url, headers: &HeaderMap) -> Result<Option<Url>, RequestFailure> {
        let link = headers.get(LINK).and_then(|link| link.to_str().ok());
        let Some(page) = link.and_then(next_page) else { return Ok(None) };
        let page = url.join(page).map_err(|_| unexpected())?;
        // A page elsewhere would get no token, and may be a trap.
        if !self.is_here(&page) {
            let text = "the listing goes on at another server than the hub";
            return Err(RequestFailure::new(Cause::Other, text));
        }
        Ok(Some(page))
    }

    /// Asks the hub for the address of an object's bytes, which may be on the hub itself.
    async fn resolve(&self, key: &str, expected: &Stamp) -> Result<Url, RequestFailure> {
        let commit = expected.version.as_deref().and_then(|version| version.split_once(':'));
        let (commit, oid) = match commit {
            Some((commit, oid)) => (commit, Some(oid)),
            None => (self.commit().await?, None),
        };
        let url = self.url(&format!("/datasets/{}/resolve/{commit}/{}", self.id, escape(key, true)))?;
        let mut attempts = Attempts::new(&self.settings, &self.answers);
        let (answer, at) = self.send(&mut attempts, url, Some("bytes=0-0")).await?;
        let status = answer.status();
        if !status.is_success() && !status.is_redirection() {
            return Err(self.failure(status, answer.headers()));
        }
        let header = |name: &str| answer.headers().get(name).and_then(|value| value.to_str().ok());
        let tag = header("x-linked-etag").map(|tag| tag.trim_start_matches("W/").trim_matches('"'));
        if oid.zip(tag).is_some_and(|(oid, tag)| oid != tag) {
            return Err(RequestFailure::stale("the hub names another version"));
        }
        let size = header("x-linked-size").and_then(|size| size.parse::<u64>().ok());
        if oid.is_some() && size.is_some_and(|size| size != expected.size) {
            return Err(RequestFailure::stale("the hub names another size"));
        }
        Ok(at)
    }

    /// Returns the address of an object's bytes. The hub is asked once, and again if the address is the one
    /// that was refused.
    async fn place(&self, key: &str, expected: &Stamp, refused: Option<&Url>) -> Result<Url, RequestFailure> {
        let cell = {
            let mut all = self.resolved.lock().unwrap_or_else(PoisonError::into_inner);
            // Parts of other processes may be of another commit.
            let version = expected.version.as_deref().unwrap_or_default();
            all.entry(format!("{version}/{key}")).or_default().clone()
        };
        let mut known = cell.lock().await;
        if let Some(url) = &*known
            && refused != Some(url)
        {
            return Ok(url.clone());
        }
        let url = self.resolve(key, expected).await?;
        *known = Some(url.clone());
        Ok(url)
    }

    pub(crate) async fn read(
        &self,
        key: &str,
        range: Range<u64>,
        expected: &Stamp,
    ) -> Result<Vec<u8>, RequestFailure> {
        let mut expired = None;
        loop {
            let url = self.place(key, expected, expired.as_ref()).await?;
            let wanted = Wanted {
                range: range.clone(),
                request: &|| self.get(&url),
                check: &|_, size| {
                    if size == expected.size {
                        Ok(())
                    } else {
                        Err(RequestFailure::stale("the hub sends another size"))
                    }
                },
            };
            let answer = match Attempts::new(&self.settings, &self.answers).range(&wanted).await {
                Ok(bytes) => return Ok(bytes),
                // Files that are in no large storage may be sent whole.
                Err(NoRange::Failed(failure))
                    if failure.cause == Cause::NoRanges && self.is_here(&url) && expected.size <= WHOLE =>
                {
                    return self.part_of_whole(&url, range, expected).await.map_err(|_| failure);
                }
                Err(NoRange::Failed(failure)) => return Err(failure),
                Err(NoRange::Status(answer)) => answer,
            };
            let status = answer.status();
            let denied =
                matches!(status, StatusCode::FORBIDDEN | StatusCode::UNAUTHORIZED | StatusCode::BAD_REQUEST);
            if denied && expired.is_none() {
                expired = Some(url);
                continue;
            }
            return Err(if self.is_here(&url) {
                self.failure(status, answer.headers())
            } else {
                refused(status, "of the address that the hub gave")
            });
        }
    }

    /// Reads a range of a file that is sent whole.
    async fn part_of_whole(
        &self,
        url: &Url,
        range: Range<u64>,
        expected: &Stamp,
    ) -> Result<Vec<u8>, RequestFailure> {
        let mut attempts = Attempts::new(&self.settings, &self.answers);
        let bytes = loop {
            let answer = attempts.send(|| self.get(url)).await?;
            if answer.status() != StatusCode::OK {
                return Err(self.failure(answer.status(), answer.headers()));
            }
            if let Some(bytes) = attempts.whole(answer, WHOLE).await? {
                break bytes;
            }
        };
        let at = |at: u64| usize::try_from(at).unwrap_or(usize::MAX);
        let part = bytes.get(at(range.start)..at(range.end)).filter(|_| bytes.len() as u64 == expected.size);
        part.map(<[u8]>::to_vec).ok_or_else(|| RequestFailure::stale("the hub sends another size"))
    }

    pub(crate) async fn small(
        &self,
        key: &str,
        limit: u64,
    ) -> Result<Option<(Vec<u8>, Stamp)>, RequestFailure> {
        let commit = self.commit().await?;
        let mut url = self.url(&format!("/datasets/{}/resolve/{commit}/{}", self.id, escape(key, true)))?;
        let mut attempts = Attempts::new(&self.settings, &self.answers);
        let mut moves = 0;
        loop {
            let (answer, at) = self.send(&mut attempts, url.clone(), None).await?;
            // The address that the hub gave gets no token.
            if answer.status().is_redirection() && moves < 1 {
                moves += 1;
                url = at;
                continue;
            }
            if answer.status().is_redirection() {
                return Err(RequestFailure::new(Cause::Other, "too many redirects"));
            }
            if answer.status() == StatusCode::NOT_FOUND {
                let failure = self.failure(answer.status(), answer.headers());
                return if failure.cause == Cause::Missing { Ok(None) } else { Err(failure) };
            }
            if !answer.status().is_success() {
                return Err(self.failure(answer.status(), answer.headers()));
            }
            if let Some(len) = answer.content_length().filter(|len| *len > limit) {
                return Err(RequestFailure::too_large(len, limit));
            }
            let Some(bytes) = attempts.whole(answer, limit).await? else { continue };
            let stamp = stamp(bytes.len() as u64, None, Some(commit.to_owned()));
            return Ok(Some((bytes, stamp)));
        }
    }
}

/// The address of the hub itself.
pub(crate) const HUB: &str = "https://huggingface.co";

/// Returns the address of the hub, or of the server that a setting names.
pub(crate) fn endpoint(settings: &Settings) -> &str {
    settings.first(&["hf_endpoint", "endpoint"], &["HF_ENDPOINT"]).unwrap_or(HUB).trim_end_matches('/')
}

fn unexpected() -> RequestFailure {
    RequestFailure::new(Cause::Other, "the hub sent an answer that is not understood")
}

/// Escapes a path for a URL, with or without its slashes.
fn escape(path: &str, slashes: bool) -> String {
    let mut escaped = String::with_capacity(path.len());
    for byte in path.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => escaped.push(byte.into()),
            b'/' if slashes => escaped.push('/'),
            byte => escaped.push_str(&format!("%{byte:02X}")),
        }
    }
    escaped
}

/// Returns the URL in `<URL>; rel="next"`.
fn next_page(link: &str) -> Option<&str> {
    let parts = link.split(',').find(|part| part.contains("rel=\"next\""))?;
    parts.split_once('<')?.1.split_once('>').map(|(url, _)| url)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_and_links() {
        assert_eq!(escape("a b/ü.tfrecord", true), "a%20b/%C3%BC.tfrecord");
        assert_eq!(escape("refs/pr/2", false), "refs%2Fpr%2F2");
        assert_eq!(next_page("<https://h/x?cursor=1>; rel=\"next\""), Some("https://h/x?cursor=1"));
        assert_eq!(next_page("<https://h/x>; rel=\"prev\""), None);
    }
}
