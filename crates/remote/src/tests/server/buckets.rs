//! S3, the XML interface of Google Cloud Storage, Azure, and a web server.

use super::answers::{Answer, answer, error, http_time, iso_time};
use super::{KEY, Request, SECRET, Shared, State, Stored};
use std::collections::BTreeSet;

impl Shared {
    pub(super) fn bucket(&self, request: &Request) -> Answer {
        let name = request.object();
        let bucket = name.split('/').next().unwrap_or_default().to_owned();
        let mut state = self.state();
        if state.private.contains(&bucket) && !is_allowed(request) {
            return error(403, "AccessDenied");
        }
        let lists = ["list-type", "comp"].iter().any(|key| request.query.contains_key(*key));
        match request.method.as_str() {
            "PUT" => {
                state.counts.puts += 1;
                let stored = state.set(&name, request.body.clone());
                answer(200, "").with("ETag", stored.tag).with("Last-Modified", http_time(stored.time))
            }
            "GET" if lists && state.no_lists => error(403, "AccessDenied"),
            "GET" if lists => {
                state.counts.lists += 1;
                list(&state, &bucket, request)
            }
            "GET" | "HEAD" => {
                if request.method == "HEAD" {
                    state.counts.heads += 1;
                    if state.no_head {
                        return error(403, "AccessDenied");
                    }
                } else {
                    state.counts.gets += 1;
                }
                match state.objects.get(&name) {
                    Some(stored) => object(request, stored),
                    None if state.no_lists => error(403, "AccessDenied"),
                    None => error(404, "NoSuchKey"),
                }
            }
            _ => error(405, "MethodNotAllowed"),
        }
    }
}

fn is_allowed(request: &Request) -> bool {
    let login = request.header("authorization").unwrap_or_default();
    login.starts_with(&format!("AWS4-HMAC-SHA256 Credential={KEY}/")) || login == format!("Bearer {SECRET}")
}

/// Sends an object or a range of it.
pub(super) fn object(request: &Request, stored: &Stored) -> Answer {
    if request.header("if-match").is_some_and(|tag| tag != stored.tag) {
        return error(412, "PreconditionFailed");
    }
    let len = stored.bytes.len();
    let described = |answer: Answer| {
        answer
            .with("ETag", stored.tag.clone())
            .with("Last-Modified", http_time(stored.time))
            .with("Accept-Ranges", "bytes")
            .with("x-goog-generation", "1")
    };
    match request.range(len) {
        Some(range) if range.start >= len => error(416, "InvalidRange"),
        Some(range) => {
            let text = format!("bytes {}-{}/{len}", range.start, range.end - 1);
            described(answer(206, &stored.bytes[range])).with("Content-Range", text)
        }
        None => Answer { head_len: Some(len), ..described(answer(200, &stored.bytes[..])) },
    }
}

fn list(state: &State, bucket: &str, request: &Request) -> Answer {
    let azure = request.query.contains_key("comp");
    let text = |key: &str| request.query.get(key).map_or("", String::as_str);
    let (prefix, delimiter) = (text("prefix"), text("delimiter"));
    // Tokens are the last names of pages.
    let after =
        ["continuation-token", "marker", "start-after"].map(text).into_iter().max().unwrap_or_default();
    let page = text("max-keys").parse().unwrap_or(state.page).min(state.page);
    let (mut objects, mut folders, mut last, mut more) = (String::new(), BTreeSet::new(), "", false);
    let mut found = 0;
    let own = format!("{bucket}/");
    let start = prefix.max(after);
    for (name, stored) in state.objects.range(format!("{own}{start}")..) {
        let Some(key) = name.strip_prefix(&own) else { break };
        if !key.starts_with(prefix) && key > prefix {
            break;
        }
        let Some(rest) = key.strip_prefix(prefix).filter(|_| key > after) else { continue };
        let folder = rest.find('/').filter(|_| delimiter == "/").map(|at| &key[..=prefix.len() + at]);
        if folder.is_some_and(|folder| after.starts_with(folder) || folders.contains(folder)) {
            last = key;
            continue;
        }
        if found == page {
            more = true;
            break;
        }
        (found, last) = (found + 1, key);
        let (len, tag) = (stored.bytes.len(), &stored.tag);
        let key = escaped(key);
        match folder {
            Some(folder) => _ = folders.insert(folder.to_owned()),
            None if azure => objects.push_str(&format!(
                "<Blob><Name>{key}</Name><Properties><Last-Modified>{}</Last-Modified><Etag>{tag}</Etag>\
                 <Content-Length>{len}</Content-Length><Content-Type>x</Content-Type></Properties></Blob>",
                http_time(stored.time)
            )),
            None => objects.push_str(&format!(
                "<Contents><Key>{key}</Key><LastModified>{}</LastModified><ETag>{}</ETag><Size>{len}</Size></Contents>",
                iso_time(stored.time),
                escaped(tag)
            )),
        }
    }
    let next = if more { last } else { "" };
    let body = if azure {
        let folders: String = folders
            .iter()
            .map(|folder| format!("<BlobPrefix><Name>{}</Name></BlobPrefix>", escaped(folder)))
            .collect();
        format!(
            "<EnumerationResults><Blobs>{objects}{folders}</Blobs><NextMarker>{next}</NextMarker></EnumerationResults>"
        )
    } else {
        let folders: String = folders
            .iter()
            .map(|folder| format!("<CommonPrefixes><Prefix>{}</Prefix></CommonPrefixes>", escaped(folder)))
            .collect();
        let token = if more {
            format!("<NextContinuationToken>{}</NextContinuationToken>", escaped(next))
        } else {
            String::new()
        };
        format!(
            "<ListBucketResult><IsTruncated>{more}</IsTruncated>{objects}{folders}{token}</ListBucketResult>"
        )
    };
    answer(200, body)
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('"', "&quot;")
}

/// The metadata server of EC2.
pub(super) fn metadata(request: &Request) -> Answer {
    match request.path.as_str() {
        "/latest/api/token" => answer(200, "session"),
        "/latest/meta-data/iam/security-credentials/" => answer(200, "role"),
        _ => answer(
            200,
            format!(
                "{{\"AccessKeyId\":\"{KEY}\",\"SecretAccessKey\":\"{SECRET}\",\"Token\":\"t\",\"Expiration\":\"2999-01-01T00:00:00Z\"}}"
            ),
        ),
    }
}
