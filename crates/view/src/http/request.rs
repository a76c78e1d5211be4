//! The head of a request.

use std::ops::Range;

/// The largest head of a request in bytes.
const MAX_HEAD: usize = 16 << 10;

/// The largest number of headers.
const MAX_HEADERS: usize = 100;

/// A request that can be answered: GET or HEAD of a path.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Request {
    /// The path, percent-decoded. It begins with `/` and has no control characters.
    pub(crate) path: String,
    /// The parameters of the query, percent-decoded, in order.
    pub(crate) query: Vec<(String, String)>,
    /// The response has no body.
    pub(crate) is_head: bool,
    /// `Range: bytes=..`.
    pub(crate) range: Option<String>,
    /// `If-None-Match`.
    pub(crate) if_none_match: Option<String>,
    /// `Accept-Encoding` has gzip.
    pub(crate) takes_gzip: bool,
    /// `If-Range`: the range counts only if this is the entity tag.
    pub(crate) if_range: Option<String>,
}

/// A parsed head: the request, and the headers that decide about it.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Parsed {
    pub(crate) request: Request,
    /// `Host`.
    pub(crate) host: Option<String>,
    /// `Cookie`. Other servers on this machine set cookies too, in any encoding, so bytes that are not UTF-8
    /// are replaced.
    pub(crate) cookie: Option<String>,
    /// `Sec-Fetch-Site`.
    pub(crate) fetch_site: Option<String>,
    /// The connection stays open after the response.
    pub(crate) keep_alive: bool,
    /// Bytes of the head.
    pub(crate) len: usize,
}

/// A head that is not answered. The connection ends with the response, because the position of the next head
/// is unknown.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct BadRequest {
    pub(crate) status: u16,
    pub(crate) message: String,
}

fn bad(status: u16, message: impl Into<String>) -> BadRequest {
    BadRequest { status, message: message.into() }
}

impl Request {
    /// Parses the head at the start of `bytes`, and returns `None` if its end has not arrived. The result
    /// does not depend on what follows the head.
    pub(crate) fn parse(bytes: &[u8]) -> Result<Option<Parsed>, BadRequest> {
        let within = bytes.get(..MAX_HEAD).unwrap_or(bytes);
        let mut headers = [httparse::EMPTY_HEADER; MAX_HEADERS];
        let mut head = httparse::Request::new(&mut headers);
        let len = match head.parse(within) {
            Ok(httparse::Status::Complete(len)) => len,
            Ok(httparse::Status::Partial) if within.len() < MAX_HEAD => return Ok(None),
            Ok(httparse::Status::Partial) => {
                return Err(bad(431, "the head of the request has more than 16 kB"));
            }
            Err(httparse::Error::TooManyHeaders) => {
                return Err(bad(431, "the request has more than 100 headers"));
            }
            Err(httparse::Error::Version) => return Err(bad(505, "expected HTTP/1.0 or HTTP/1.1")),
            Err(_) => return Err(bad(400, "this is no HTTP request")),
        };
        let is_head = match head.method {
            Some("GET") => false,
            Some("HEAD") => true,
            _ => return Err(bad(405, "expected GET or HEAD")),
        };
        let headers = Headers(head.headers);
        // A body would be read as the next request.
        if headers.one("Transfer-Encoding")?.is_some() {
            return Err(bad(400, "expected no body, found Transfer-Encoding"));
        }
        if headers.one("Content-Length")?.is_some_and(|len| len != b"0") {
            return Err(bad(400, "expected no body, found Content-Length"));
        }
        let (path, query) = target(head.path.unwrap_or_default())?;
        let connection = headers.all("Connection").flat_map(|value| value.split(|b| *b == b','));
        let mut close = false;
        let mut keep = false;
        for option in connection.map(<[u8]>::trim_ascii) {
            close |= option.eq_ignore_ascii_case(b"close");
            keep |= option.eq_ignore_ascii_case(b"keep-alive");
        }
        let request = Request {
            path,
            query,
            is_head,
            range: headers.text("Range")?,
            if_none_match: headers.list("If-None-Match")?,
            takes_gzip: headers.list("Accept-Encoding")?.is_some_and(|list| takes_gzip(&list)),
            if_range: headers.text("If-Range")?,
        };
        Ok(Some(Parsed {
            request,
            host: headers.text("Host")?,
            cookie: headers.one("Cookie")?.map(|value| String::from_utf8_lossy(value).into_owned()),
            fetch_site: headers.text("Sec-Fetch-Site")?,
            keep_alive: !close && (keep || head.version == Some(1)),
            len,
        }))
    }

    /// Returns the first parameter of a name.
    pub(crate) fn query(&self, name: &str) -> Option<&str> {
        self.query.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// Returns the requested range of a body of `len` bytes. `None`: the whole body, also for several ranges
    /// and for ranges that mean nothing. `Some(None)`: no byte of it.
    pub(crate) fn range(&self, len: u64) -> Option<Option<Range<u64>>> {
        // Only GET has ranges.
        let range = self.range.as_deref().filter(|_| !self.is_head)?;
        let (unit, range) = range.split_once('=')?;
        if !unit.eq_ignore_ascii_case("bytes") {
            return None;
        }
        let (from, to) = range.trim().split_once('-')?;
        let range = match (from, to) {
            ("", suffix) => match position(suffix)? {
                0 => return Some(None),
                _ if len == 0 => return None,
                suffix => len.saturating_sub(suffix)..len,
            },
            (from, "") => position(from)?..len,
            (from, to) => {
                let from = position(from)?;
                let to = position(to)?;
                if to < from {
                    return None;
                }
                from..to.saturating_add(1).min(len)
            }
        };
        Some(Some(range).filter(|range| range.start < range.end))
    }

    /// Returns whether the client has the body with this quoted entity tag. Weak tags are equal to strong
    /// ones here.
    pub(crate) fn has(&self, etag: &str) -> bool {
        let Some(mut rest) = self.if_none_match.as_deref().map(str::trim) else { return false };
        if rest == "*" {
            return true;
        }
        loop {
            rest = rest.trim_start_matches([',', ' ', '\t']);
            let tag = rest.strip_prefix("W/").unwrap_or(rest);
            let Some((opaque, after)) = tag.strip_prefix('"').and_then(|tag| tag.split_once('"')) else {
                return false;
            };
            if etag.strip_prefix('"').and_then(|etag| etag.strip_suffix('"')) == Some(opaque) {
                return true;
            }
            rest = after;
        }
    }
}

/// Parses a number of a range. Large numbers are cut, because bodies are shorter.
fn position(digits: &str) -> Option<u64> {
    let is_number = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
    is_number.then(|| digits.parse().unwrap_or(u64::MAX))
}

/// The headers of a request.
struct Headers<'h>(&'h [httparse::Header<'h>]);

impl<'h> Headers<'h> {
    fn all(&self, name: &'static str) -> impl Iterator<Item = &'h [u8]> {
        let same = move |header: &&httparse::Header<'_>| header.name.eq_ignore_ascii_case(name);
        self.0.iter().filter(same).map(|header| header.value.trim_ascii())
    }

    /// Returns the only header of a name. Two of them are an error: programs between the browser and this one
    /// may have checked the other.
    fn one(&self, name: &'static str) -> Result<Option<&'h [u8]>, BadRequest> {
        let mut all = self.all(name);
        match (all.next(), all.next()) {
            (_, Some(_)) => Err(bad(400, format!("expected one header {name}, found several"))),
            (first, None) => Ok(first),
        }
    }

    fn text(&self, name: &'static str) -> Result<Option<String>, BadRequest> {
        self.one(name)?.map(|value| utf8(name, value)).transpose()
    }

    /// Joins the headers of a name. Lists may be written as several headers.
    fn list(&self, name: &'static str) -> Result<Option<String>, BadRequest> {
        let values: Vec<String> = self.all(name).map(|value| utf8(name, value)).collect::<Result<_, _>>()?;
        Ok((!values.is_empty()).then(|| values.join(", ")))
    }
}

fn utf8(name: &str, value: &[u8]) -> Result<String, BadRequest> {
    let text = std::str::from_utf8(value);
    Ok(text.map_err(|_| bad(400, format!("expected UTF-8 in header {name}")))?.to_owned())
}

/// Splits a request target into its path and the parameters of its query.
fn target(target: &str) -> Result<(String, Vec<(String, String)>), BadRequest> {
    // Targets with a scheme are for proxies. Their host could differ from the header that is checked.
    if !target.starts_with('/') || target.contains('#') {
        return Err(bad(400, "expected a path that begins with /"));
    }
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let path = decode(path, false)?;
    if path.contains(char::is_control) {
        return Err(bad(400, "the path has a control character"));
    }
    let parameters = query.split('&').filter(|parameter| !parameter.is_empty());
    let decoded = parameters.map(|parameter| {
        let (key, value) = parameter.split_once('=').unwrap_or((parameter, ""));
        Ok((decode(key, true)?, decode(value, true)?))
    });
    Ok((path, decoded.collect::<Result<_, BadRequest>>()?))
}

/// Decodes percent signs, and in a query `+` as a space.
fn decode(text: &str, is_query: bool) -> Result<String, BadRequest> {
    let mut decoded = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        let mut digit = || Some(char::from(bytes.next()?).to_digit(16)? as u8);
        decoded.push(match byte {
            b'%' => {
                let pair = digit().and_then(|high| Some(high << 4 | digit()?));
                pair.ok_or_else(|| bad(400, "expected two hex digits after %"))?
            }
            b'+' if is_query => b' ',
            byte => byte,
        });
    }
    String::from_utf8(decoded).map_err(|_| bad(400, "the address is not UTF-8"))
}

/// Returns whether a list of codings has gzip with a weight other than 0.
fn takes_gzip(list: &str) -> bool {
    list.split(',').any(|item| {
        let (name, weight) = item.split_once(';').unwrap_or((item, ""));
        let weight = weight.trim().strip_prefix("q=").map(|text| text.trim().parse::<f32>());
        name.trim().eq_ignore_ascii_case("gzip") && !matches!(weight, Some(Ok(0.0) | Err(_)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(head: &str) -> Result<Parsed, u16> {
        parse_bytes(head.as_bytes())
    }

    fn parse_bytes(head: &[u8]) -> Result<Parsed, u16> {
        Request::parse(head).map(|parsed| parsed.expect("the head is complete")).map_err(|bad| bad.status)
    }

    fn get(target: &str) -> Result<Request, u16> {
        parse(&format!("GET {target} HTTP/1.1\r\nHost: a\r\n\r\n")).map(|parsed| parsed.request)
    }

    fn with(headers: &str) -> Result<Parsed, u16> {
        parse(&format!("GET / HTTP/1.1\r\n{headers}\r\n\r\n"))
    }

    #[test]
    fn gzip_is_taken_unless_its_weight_is_zero() {
        for list in ["gzip", "deflate, gzip, br", "br;q=1, GZIP; q=0.5"] {
            assert!(takes_gzip(list), "{list}");
        }
        for list in ["", "br", "gzip;q=0", "gzip; q=0.0, br", "gzip;q=x", "xgzip"] {
            assert!(!takes_gzip(list), "{list}");
        }
    }

    #[test]
    fn a_request_of_a_browser_is_parsed() {
        let head = "GET /api/records?from=9000000&n=60&set=1 HTTP/1.1\r\nHost: 127.0.0.1:7717\r\nConnection: keep-alive\r\n\
                    Accept: */*\r\nSec-Fetch-Site: same-origin\r\nCookie: a=b; tfseek-7717=00ff\r\nRange: bytes=0-\r\n\
                    If-Range: \"x\"\r\nIf-None-Match: \"y\"\r\n\r\n";
        let parsed = parse(&format!("{head}GET /next HTTP/1.1\r\n")).unwrap();
        assert_eq!(parsed.len, head.len());
        assert_eq!(parsed.host.as_deref(), Some("127.0.0.1:7717"));
        assert_eq!(parsed.cookie.as_deref(), Some("a=b; tfseek-7717=00ff"));
        assert_eq!(parsed.fetch_site.as_deref(), Some("same-origin"));
        assert!(parsed.keep_alive);
        let request = parsed.request;
        assert_eq!(request.path, "/api/records");
        assert_eq!(request.query("from"), Some("9000000"));
        assert_eq!(request.query("set"), Some("1"));
        assert_eq!(request.query("to"), None);
        assert!(!request.is_head);
        assert_eq!(request.range.as_deref(), Some("bytes=0-"));
        assert_eq!(request.if_range.as_deref(), Some("\"x\""));
        assert_eq!(request.if_none_match.as_deref(), Some("\"y\""));
    }

    #[test]
    fn only_get_and_head_are_answered() {
        assert!(parse("HEAD / HTTP/1.1\r\nHost: a\r\n\r\n").unwrap().request.is_head);
        for method in ["POST", "PUT", "DELETE", "OPTIONS", "CONNECT", "TRACE", "PATCH", "get", "PROPFIND"] {
            assert_eq!(parse(&format!("{method} / HTTP/1.1\r\nHost: a\r\n\r\n")), Err(405), "{method}");
        }
    }

    #[test]
    fn versions_and_connection_headers_decide_about_the_connection() {
        for (version, connection, expected) in [
            ("1.1", "", true),
            ("1.1", "Connection: keep-alive\r\n", true),
            ("1.1", "Connection: close\r\n", false),
            ("1.1", "Connection: Upgrade, CLOSE\r\n", false),
            ("1.1", "Connection: keep-alive\r\nConnection: close\r\n", false),
            ("1.0", "", false),
            ("1.0", "Connection: Keep-Alive\r\n", true),
            ("1.0", "Connection: keep-alive, close\r\n", false),
        ] {
            let parsed = parse(&format!("GET / HTTP/{version}\r\nHost: a\r\n{connection}\r\n")).unwrap();
            assert_eq!(parsed.keep_alive, expected, "{version} {connection}");
        }
        assert_eq!(parse("GET / HTTP/2.0\r\n\r\n"), Err(505));
        assert_eq!(parse("PRI * HTTP/2.0\r\n\r\n"), Err(505));
        assert_eq!(parse("GET /\r\n\r\n"), Err(400));
    }

    #[test]
    fn targets_are_paths() {
        for target in ["http://a/", "HTTP://evil/api/dataset", "*", "a:80", "api", "?t=1", "/a#b", "/?a#b"] {
            assert_eq!(get(target), Err(400), "{target}");
        }
        assert_eq!(get("//evil/x").unwrap().path, "//evil/x");
        assert_eq!(get("/../../etc/passwd").unwrap().path, "/../../etc/passwd");
    }

    #[test]
    fn percent_signs_are_decoded() {
        for (target, path) in [
            ("/a%20b", "/a b"),
            ("/a+b", "/a+b"),
            ("/%C3%A9%E2%82%ac", "/\u{e9}\u{20ac}"),
            ("/%25%2F%2f", "/%//"),
            ("/a?b", "/a"),
            ("/%3Fa", "/?a"),
        ] {
            assert_eq!(get(target).unwrap().path, path, "{target}");
        }
        let query = |target: &str| get(target).map(|request| request.query);
        let pairs = |pairs: &[(&str, &str)]| {
            Ok(pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect())
        };
        assert_eq!(query("/?where=a+%3D%3D+%22%2B%22"), pairs(&[("where", "a == \"+\"")]));
        assert_eq!(query("/?a=1&a=2&&b&=c&d=e=f&g=%26%3d"), {
            pairs(&[("a", "1"), ("a", "2"), ("b", ""), ("", "c"), ("d", "e=f"), ("g", "&=")])
        });
        assert_eq!(query("/?"), pairs(&[]));
        assert_eq!(query("/?a=b?c"), pairs(&[("a", "b?c")]));
        assert_eq!(query("/?a=%00%0a"), pairs(&[("a", "\0\n")]), "names of features have any character");
        for target in
            ["/%", "/%4", "/%4g", "/%+1", "/%%41", "/?a=%", "/?%zz=1", "/%ff", "/%C3", "/?a=%ED%A0%80"]
        {
            assert_eq!(get(target), Err(400), "{target}");
        }
        for target in ["/%00", "/a%0d%0ab", "/%7f", "/%c2%80"] {
            assert_eq!(get(target), Err(400), "{target}");
        }
        assert_eq!(parse_bytes(b"GET /\xff HTTP/1.1\r\nHost: a\r\n\r\n"), Err(400));
        assert_eq!(
            parse_bytes("GET /\u{e9} HTTP/1.1\r\nHost: a\r\n\r\n".as_bytes()).unwrap().request.path,
            "/\u{e9}"
        );
    }

    #[test]
    fn bodies_are_refused() {
        assert!(with("Host: a\r\nContent-Length: 0").is_ok());
        for header in [
            "Content-Length: 5",
            "Content-Length: 00",
            "Content-Length: +0",
            "Content-Length: 0, 0",
            "Content-Length: 0\r\nContent-Length: 0",
            "Content-Length:",
            "content-length: 0\r\nContent-LENGTH: 5",
            "Transfer-Encoding: chunked",
            "Transfer-Encoding: identity",
            "Transfer-Encoding:",
            "Content-Length: 0\r\nTransfer-Encoding: chunked",
        ] {
            assert_eq!(with(header), Err(400), "{header}");
        }
    }

    #[test]
    fn doubled_headers_are_refused() {
        for name in ["Host", "Cookie", "Sec-Fetch-Site", "Range", "If-Range", "host", "COOKIE"] {
            assert!(with(&format!("{name}: a")).is_ok());
            assert_eq!(with(&format!("{name}: a\r\n{name}: a")), Err(400), "{name}");
            assert_eq!(with(&format!("{name}: a\r\nX: y\r\n{}: b", name.to_uppercase())), Err(400), "{name}");
        }
        let parsed = with("If-None-Match: \"a\"\r\nIf-None-Match: \"b\"").unwrap();
        assert_eq!(parsed.request.if_none_match.as_deref(), Some("\"a\", \"b\""));
        assert_eq!(with("Accept: a\r\nAccept: b").unwrap().host, None);
    }

    #[test]
    fn headers_that_are_not_text_are_refused() {
        for (head, status) in [
            (&b"GET / HTTP/1.1\r\nHost: \xff\r\n\r\n"[..], 400),
            (b"GET / HTTP/1.1\r\nHost : a\r\n\r\n", 400),
            (b"GET / HTTP/1.1\r\nHost: a\r\n b\r\n\r\n", 400),
            (b"GET / HTTP/1.1\r\nHost: a\0\r\n\r\n", 400),
            (b"GET / HTTP/1.1\r\nHo\x00st: a\r\n\r\n", 400),
            (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 400),
        ] {
            assert_eq!(parse_bytes(head), Err(status), "{}", head.escape_ascii());
        }
        let parsed = parse_bytes(b"GET / HTTP/1.1\r\nCookie: a=\xff; b=c\r\n\r\n").unwrap();
        assert_eq!(parsed.cookie.as_deref(), Some("a=\u{fffd}; b=c"));
    }

    #[test]
    fn heads_have_limits() {
        let head = |len: usize| {
            let start = "GET / HTTP/1.1\r\nHost: a\r\nX: ";
            format!("{start}{}\r\n\r\n", "x".repeat(len - start.len() - 4))
        };
        assert_eq!(parse(&head(MAX_HEAD)).unwrap().len, MAX_HEAD);
        assert_eq!(parse(&head(MAX_HEAD + 1)), Err(431));
        assert_eq!(parse(&head(MAX_HEAD * 3)), Err(431));
        assert_eq!(Request::parse(&head(MAX_HEAD).as_bytes()[..MAX_HEAD - 1]), Ok(None));
        assert_eq!(parse(&"\r\n".repeat(MAX_HEAD / 2)), Err(431));
        let many = |count: usize| with(&vec!["X: y"; count].join("\r\n"));
        assert!(many(MAX_HEADERS).is_ok());
        assert_eq!(many(MAX_HEADERS + 1), Err(431));
        // Bytes after the head do not count.
        assert!(parse(&format!("{}{}", head(MAX_HEAD), "x".repeat(MAX_HEAD))).is_ok());
    }

    #[test]
    fn every_prefix_is_incomplete() {
        let head = b"GET /a?b=c HTTP/1.1\r\nHost: localhost:7717\r\nCookie: a=b\r\nRange: bytes=0-\r\n\r\n";
        for len in 0..head.len() {
            assert_eq!(Request::parse(&head[..len]), Ok(None), "{len}");
        }
        assert!(Request::parse(head).unwrap().is_some());
    }

    #[test]
    fn ranges_are_resolved() {
        let range = |range: &str, len: u64| {
            Request { range: Some(range.to_owned()), ..Request::default() }.range(len)
        };
        let max = u64::MAX;
        for (text, len, expected) in [
            ("bytes=0-", 10, Some(Some(0..10))),
            ("bytes=0-0", 10, Some(Some(0..1))),
            ("bytes=3-5", 10, Some(Some(3..6))),
            ("Bytes= 3-5 ", 10, Some(Some(3..6))),
            ("bytes=9-99", 10, Some(Some(9..10))),
            ("bytes=10-", 10, Some(None)),
            ("bytes=10-12", 10, Some(None)),
            ("bytes=-3", 10, Some(Some(7..10))),
            ("bytes=-30", 10, Some(Some(0..10))),
            ("bytes=-0", 10, Some(None)),
            ("bytes=0-", 0, Some(None)),
            ("bytes=-5", 0, None),
            // Ranges that are not valid count as absent.
            ("bytes=5-3", 10, None),
            ("bytes=", 10, None),
            ("bytes=-", 10, None),
            ("bytes=a-", 10, None),
            ("bytes=+1-3", 10, None),
            ("bytes=1-+3", 10, None),
            ("bytes=--3", 10, None),
            ("bytes=1 - 3", 10, None),
            ("bytes=0-1,3-4", 10, None),
            ("items=0-1", 10, None),
            ("bytes 0-1", 10, None),
            ("", 10, None),
            // Numbers beyond 64 bits.
            ("bytes=99999999999999999999-", 10, Some(None)),
            ("bytes=0-99999999999999999999", 10, Some(Some(0..10))),
            ("bytes=-99999999999999999999", 10, Some(Some(0..10))),
            ("bytes=0-18446744073709551615", max, Some(Some(0..max))),
            ("bytes=18446744073709551614-18446744073709551615", max, Some(Some(max - 1..max))),
        ] {
            assert_eq!(range(text, len), expected, "{text} of {len}");
        }
        let head = Request { range: Some("bytes=0-1".into()), is_head: true, ..Request::default() };
        assert_eq!(head.range(10), None);
    }

    #[test]
    fn entity_tags_are_compared() {
        let has =
            |list: &str| Request { if_none_match: Some(list.to_owned()), ..Request::default() }.has("\"ab\"");
        for list in [
            "\"ab\"",
            "*",
            " * ",
            "W/\"ab\"",
            "\"x\", \"ab\"",
            "\"x\",W/\"y\" ,\t\"ab\"",
            ", \"ab\"",
            "\"a,b\", \"ab\"",
        ] {
            assert!(has(list), "{list}");
        }
        for list in
            ["", "ab", "\"AB\"", "\"abc\"", "\"ab", "w/\"ab\"", "*, \"x\"", "\"x\" W/", "\"x,\"ab\"\"", "W/"]
        {
            assert!(!has(list), "{list}");
        }
        assert!(!Request::default().has("\"ab\""));
    }
}
