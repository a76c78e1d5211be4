//! A response.

use super::Request;
use std::ops::Range;

/// The largest body of a response in bytes. Longer byte strings are requested in ranges.
pub(crate) const MAX_BODY: u64 = 64 << 20;

/// A status, headers and a body. The server adds the headers that all responses have.
#[derive(Clone, Debug)]
pub(crate) struct Response {
    pub(crate) status: u16,
    pub(crate) content_type: &'static str,
    pub(crate) headers: Vec<(&'static str, String)>,
    pub(crate) body: Vec<u8>,
}

impl Response {
    /// Returns a JSON text.
    pub(crate) fn json(value: &impl serde::Serialize) -> Response {
        match serde_json::to_vec(value) {
            Ok(body) => Response::new(200, "application/json", body),
            Err(e) => Response::error(500, &e.to_string()),
        }
    }

    /// Returns a body of a type.
    pub(crate) fn new(status: u16, content_type: &'static str, body: impl Into<Vec<u8>>) -> Response {
        Response { status, content_type, headers: Vec::new(), body: body.into() }
    }

    /// Returns an error with a message as `{"error": ..}`.
    pub(crate) fn error(status: u16, message: &str) -> Response {
        let body = serde_json::json!({ "error": message }).to_string();
        Response::new(status, "application/json", body)
    }

    /// Adds a header.
    pub(crate) fn with(mut self, name: &'static str, value: impl Into<String>) -> Response {
        self.headers.push((name, value.into()));
        self
    }

    /// Returns the requested range of `bytes`, which never change while `etag` is the same. Only this range is copied, and at most
    /// [`MAX_BODY`] bytes.
    pub(crate) fn bytes(request: &Request, content_type: &'static str, etag: &str, bytes: &[u8]) -> Response {
        let quoted = format!("\"{etag}\"");
        if request.if_none_match.as_deref() == Some(&quoted) {
            return Response::new(304, content_type, "").with("ETag", quoted);
        }
        let len = bytes.len() as u64;
        let part = |range: &Range<u64>| {
            let end = range.end.min(range.start.saturating_add(MAX_BODY));
            (end, bytes.get(range.start as usize..end as usize).unwrap_or_default().to_vec())
        };
        let response = match request.range(len) {
            Some(None) => {
                Response::error(416, "no byte in this range").with("Content-Range", format!("bytes */{len}"))
            }
            Some(Some(range)) => {
                let (end, body) = part(&range);
                let content_range = format!("bytes {}-{}/{len}", range.start, end - 1);
                Response::new(206, content_type, body).with("Content-Range", content_range)
            }
            None if len > MAX_BODY => {
                Response::error(413, &format!("{len} bytes: request a range of at most {MAX_BODY}"))
            }
            None => Response::new(200, content_type, bytes),
        };
        response
            .with("ETag", quoted)
            .with("Accept-Ranges", "bytes")
            .with("Cache-Control", "private, max-age=3600")
    }
}
