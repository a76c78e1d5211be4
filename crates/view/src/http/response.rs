//! A response.

use super::Request;
use super::request::BadRequest;
use crate::media::{OCTET_STREAM, is_shown};
use std::any::Any;
use std::io::{self, Write};
use std::ops::Range;
use std::sync::Arc;

/// The largest body of a response in bytes. Longer byte strings are requested in ranges.
pub(crate) const MAX_BODY: u64 = 64 << 20;

/// Bodies up to this size are written together with their head.
const SMALL_BODY: usize = 64 << 10;

/// Headers of every response. They restrict what a browser does with any answer, whatever a dataset contains.
const SECURITY: &str = "Content-Security-Policy: default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob: data:; \
    media-src 'self' blob:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'\r\n\
    X-Content-Type-Options: nosniff\r\n\
    Referrer-Policy: no-referrer\r\n\
    Cross-Origin-Resource-Policy: same-origin\r\n";

/// Types of answers that a browser shows as text.
const TEXTS: [&str; 3] = ["application/json", "text/plain", "text/plain; charset=utf-8"];

/// A status, headers and a body. The server adds the headers that all responses have.
#[derive(Clone, Debug)]
pub(crate) struct Response {
    pub(crate) status: u16,
    pub(crate) content_type: &'static str,
    pub(crate) headers: Vec<(&'static str, String)>,
    pub(crate) body: Vec<u8>,
    /// The connection stays open after the body until the client ends it, and this is dropped then.
    pub(crate) held: Option<Arc<dyn Any + Send + Sync>>,
}

impl Response {
    /// Returns a response without an end, during which `held` is kept.
    pub(crate) fn endless(held: impl Any + Send + Sync) -> Response {
        Response { held: Some(Arc::new(held)), ..Response::new(200, "text/plain", "") }
    }

    /// Returns a JSON text.
    pub(crate) fn json(value: &impl serde::Serialize) -> Response {
        match serde_json::to_vec(value) {
            Ok(body) => Response::new(200, "application/json", body),
            Err(e) => Response::error(500, &e.to_string()),
        }
    }

    /// Returns a body of a type.
    pub(crate) fn new(status: u16, content_type: &'static str, body: impl Into<Vec<u8>>) -> Response {
        Response { status, content_type, headers: Vec::new(), body: body.into(), held: None }
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

    /// Returns the requested range of `bytes`, which never change while `etag` is the same. Only this range
    /// is copied, and at most [`MAX_BODY`] bytes. Types that are not shown in the page become downloads.
    pub(crate) fn bytes(request: &Request, content_type: &'static str, etag: &str, bytes: &[u8]) -> Response {
        let quoted = format!("\"{etag}\"");
        let len = bytes.len() as u64;
        let part = |range: &Range<u64>| {
            let end = range.end.min(range.start + MAX_BODY);
            (end, bytes.get(range.start as usize..end as usize).unwrap_or_default().to_vec())
        };
        // A range of another version of these bytes is not wanted.
        let same = request.if_range.as_ref().is_none_or(|tag| *tag == quoted);
        let response = match request.range(len).filter(|_| same) {
            _ if request.has(&quoted) => Response::new(304, content_type, ""),
            Some(None) => {
                Response::error(416, "no byte in this range").with("Content-Range", format!("bytes */{len}"))
            }
            Some(Some(range)) => {
                let (end, body) = part(&range);
                let content_range = format!("bytes {}-{}/{len}", range.start, end - 1);
                Response::new(206, content_type, body).with("Content-Range", content_range).restricted()
            }
            None if len > MAX_BODY => {
                Response::error(413, &format!("{len} bytes: request a range of at most {MAX_BODY}"))
            }
            None => Response::new(200, content_type, bytes).restricted(),
        };
        // Errors are not kept: the same address may have bytes later.
        if response.status >= 400 {
            return response.with("Accept-Ranges", "bytes");
        }
        // Browsers ask each time whether the bytes are the same: a later viewer on this port may show another
        // set.
        response
            .with("ETag", quoted)
            .with("Accept-Ranges", "bytes")
            .with("Cache-Control", "private, no-cache")
    }

    /// Turns bytes of a type that browsers could run, or of an unknown one, into a download.
    pub(crate) fn restricted(mut self) -> Response {
        if self.status == 304 || is_shown(self.content_type) || TEXTS.contains(&self.content_type) {
            return self;
        }
        self.content_type = OCTET_STREAM;
        let name = "Content-Disposition";
        self.headers.retain(|(header, _)| !header.eq_ignore_ascii_case(name));
        self.with(name, "attachment")
    }

    /// Writes the response. HEAD requests and status 304 have no body.
    pub(crate) fn write(&self, out: &mut impl Write, is_head: bool, keep_alive: bool) -> io::Result<()> {
        let mut message = self.head(keep_alive);
        let body = if is_head || self.status == 304 { &[][..] } else { &self.body };
        if body.len() <= SMALL_BODY {
            message.extend_from_slice(body);
            out.write_all(&message)
        } else {
            out.write_all(&message)?;
            out.write_all(body)
        }
    }

    fn head(&self, keep_alive: bool) -> Vec<u8> {
        let mut head = format!("HTTP/1.1 {} {}\r\n{SECURITY}", self.status, reason(self.status));
        let mut header = |name: &str, value: &str| {
            // A line break in a value would begin another header.
            let value: String = value.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
            head.extend([name, ": ", &value, "\r\n"]);
        };
        // A response with status 304 has the length of the body that the client kept.
        if self.status != 304 {
            header("Content-Type", self.content_type);
            if self.held.is_none() {
                header("Content-Length", &self.body.len().to_string());
            }
        }
        header("Connection", if keep_alive { "keep-alive" } else { "close" });
        if !self.headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("Cache-Control")) {
            header("Cache-Control", "no-store");
        }
        for (name, value) in &self.headers {
            header(name, value);
        }
        head.push_str("\r\n");
        head.into_bytes()
    }
}

impl From<BadRequest> for Response {
    fn from(bad: BadRequest) -> Response {
        let response = Response::error(bad.status, &bad.message);
        if bad.status == 405 { response.with("Allow", "GET, HEAD") } else { response }
    }
}

fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        206 => "Partial Content",
        303 => "See Other",
        304 => "Not Modified",
        400 => "Bad Request",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        408 => "Request Timeout",
        413 => "Content Too Large",
        416 => "Range Not Satisfiable",
        422 => "Unprocessable Content",
        431 => "Request Header Fields Too Large",
        500 => "Internal Server Error",
        505 => "HTTP Version Not Supported",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BYTES: &[u8] = b"0123456789";

    fn request(headers: &str) -> Request {
        let head = format!("GET / HTTP/1.1\r\n{headers}\r\n\r\n");
        Request::parse(head.as_bytes()).unwrap().unwrap().request
    }

    fn written(response: &Response, is_head: bool) -> String {
        let mut out = Vec::new();
        response.write(&mut out, is_head, true).unwrap();
        String::from_utf8(out).unwrap()
    }

    fn answer(headers: &str) -> (u16, String, Option<String>) {
        let response = Response::bytes(&request(headers), "image/png", "tag", BYTES);
        let range = response.headers.iter().find(|(name, _)| *name == "Content-Range");
        (response.status, String::from_utf8(response.body.clone()).unwrap(), range.map(|(_, v)| v.clone()))
    }

    #[test]
    fn ranges_are_parts_of_the_bytes() {
        for (headers, status, body, content_range) in [
            ("A: b", 200, "0123456789", None),
            ("Range: bytes=2-4", 206, "234", Some("bytes 2-4/10")),
            ("Range: bytes=2-", 206, "23456789", Some("bytes 2-9/10")),
            ("Range: bytes=-2", 206, "89", Some("bytes 8-9/10")),
            ("Range: bytes=0-99", 206, "0123456789", Some("bytes 0-9/10")),
            ("Range: bytes=4-2", 200, "0123456789", None),
            ("Range: bytes=0-1,3-4", 200, "0123456789", None),
            // `If-Range`: a strong tag, a weak one, another one, a date.
            ("Range: bytes=2-4\r\nIf-Range: \"tag\"", 206, "234", Some("bytes 2-4/10")),
            ("Range: bytes=2-4\r\nIf-Range: W/\"tag\"", 200, "0123456789", None),
            ("Range: bytes=2-4\r\nIf-Range: \"other\"", 200, "0123456789", None),
            ("Range: bytes=2-4\r\nIf-Range: Sat, 29 Oct 1994 19:43:31 GMT", 200, "0123456789", None),
            ("If-None-Match: \"tag\"", 304, "", None),
            ("If-None-Match: W/\"tag\", \"x\"", 304, "", None),
            ("If-None-Match: *", 304, "", None),
            ("If-None-Match: \"x\"", 200, "0123456789", None),
            ("If-None-Match: \"tag\"\r\nRange: bytes=99-", 304, "", None),
        ] {
            let expected = (status, body.to_owned(), content_range.map(str::to_owned));
            assert_eq!(answer(headers), expected, "{headers}");
        }
        for range in ["10-", "10-11", "-0", "99999999999999999999-"] {
            let (status, body, content_range) = answer(&format!("Range: bytes={range}"));
            assert_eq!((status, content_range.as_deref()), (416, Some("bytes */10")), "{range}");
            assert!(body.contains("no byte in this range"));
        }
    }

    #[test]
    fn an_empty_value_is_an_empty_body() {
        let empty = |headers: &str| Response::bytes(&request(headers), "image/png", "tag", b"").status;
        assert_eq!(empty("A: b"), 200);
        assert_eq!(empty("Range: bytes=-1"), 200);
        assert_eq!(empty("Range: bytes=0-"), 416);
    }

    #[test]
    fn other_types_are_downloads() {
        for shown in ["image/png", "image/avif", "audio/wav", "video/webm"] {
            let text = written(&Response::bytes(&request("A: b"), shown, "t", BYTES), false);
            assert!(text.contains(&format!("\r\nContent-Type: {shown}\r\n")), "{text}");
            assert!(!text.contains("Disposition"), "{text}");
        }
        for other in [
            "image/svg+xml",
            "text/html",
            "application/pdf",
            "application/xhtml+xml",
            "application/octet-stream",
        ] {
            for headers in ["A: b", "Range: bytes=0-3"] {
                let text = written(&Response::bytes(&request(headers), other, "t", BYTES), false);
                assert!(text.contains("\r\nContent-Type: application/octet-stream\r\n"), "{text}");
                assert!(text.contains("\r\nContent-Disposition: attachment\r\n"), "{text}");
            }
            let text = written(&Response::new(200, other, "<script>").restricted(), false);
            assert!(text.contains("\r\nContent-Type: application/octet-stream\r\n"), "{text}");
            assert!(text.contains("\r\nContent-Disposition: attachment\r\n"), "{text}");
        }
        assert_eq!(Response::error(404, "x").restricted().content_type, "application/json");
        assert_eq!(Response::new(200, "text/plain", "x").restricted().content_type, "text/plain");
        let inline = Response::new(200, "text/html", "x").with("content-disposition", "inline").restricted();
        assert_eq!(inline.headers, [("Content-Disposition", "attachment".to_owned())]);
    }

    #[test]
    fn a_response_is_written() {
        let response = Response::new(200, "text/plain", "body").with("X-A", "b");
        let text = written(&response, false);
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        assert_eq!(body, "body");
        let lines: Vec<_> = head.lines().collect();
        assert_eq!(lines[0], "HTTP/1.1 200 OK");
        assert_eq!(
            &lines[5..],
            [
                "Content-Type: text/plain",
                "Content-Length: 4",
                "Connection: keep-alive",
                "Cache-Control: no-store",
                "X-A: b"
            ]
        );
        assert_eq!(written(&response, true), format!("{head}\r\n\r\n"), "HEAD");
        let cached = written(&Response::new(200, "text/plain", "x").with("cache-control", "no-cache"), false);
        assert!(!cached.contains("no-store"), "{cached}");
        let kept = written(&Response::bytes(&request("If-None-Match: *"), "image/png", "t", BYTES), false);
        assert!(kept.starts_with("HTTP/1.1 304 Not Modified\r\n") && kept.ends_with("\r\n\r\n"), "{kept}");
        assert!(!kept.contains("Content-Length") && kept.contains("ETag: \"t\""), "{kept}");
    }

    #[test]
    fn a_value_cannot_add_a_header() {
        let text =
            written(&Response::new(200, "text/plain", "").with("X-A", "b\r\nSet-Cookie: c=d\0"), false);
        assert!(text.contains("\r\nX-A: b  Set-Cookie: c=d \r\n"), "{text}");
    }

    #[test]
    fn errors_of_values_are_not_kept() {
        let large = vec![0; MAX_BODY as usize + 1];
        let response = Response::bytes(&request("A: b"), "image/png", "t", &large);
        assert_eq!(response.status, 413);
        assert!(written(&response, false).contains("Cache-Control: no-store"));
        let part = Response::bytes(&request("Range: bytes=0-"), "video/mp4", "t", &large);
        assert_eq!((part.status, part.body.len() as u64), (206, MAX_BODY));
        assert!(
            part.headers.contains(&("Content-Range", format!("bytes 0-{}/{}", MAX_BODY - 1, large.len())))
        );
        let rest = Response::bytes(&request(&format!("Range: bytes={MAX_BODY}-")), "video/mp4", "t", &large);
        assert_eq!((rest.status, rest.body.len()), (206, 1));
        let refused: Response = BadRequest { status: 405, message: "m".into() }.into();
        assert!(written(&refused, false).contains("\r\nAllow: GET, HEAD\r\n"));
    }
}
