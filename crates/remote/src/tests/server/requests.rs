//! Requests as they arrive.

use std::collections::BTreeMap;
use std::io::Read;
use std::net::TcpStream;
use std::ops::Range;

#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) method: String,
    /// Decoded.
    pub(crate) path: String,
    pub(crate) query: BTreeMap<String, String>,
    headers: BTreeMap<String, String>,
    pub(crate) body: Vec<u8>,
}

impl Request {
    /// Reads the next request of a connection. `None` at its end.
    pub(super) fn read(stream: &mut TcpStream, rest: &mut Vec<u8>) -> Option<Request> {
        let end = loop {
            if let Some(end) = rest.windows(4).position(|four| four == b"\r\n\r\n") {
                break end;
            }
            more(stream, rest)?;
        };
        let head = String::from_utf8(rest[..end].to_vec()).ok()?;
        let mut lines = head.split("\r\n");
        let mut words = lines.next()?.split(' ');
        let (method, target) = (words.next()?.to_owned(), words.next()?);
        let headers: BTreeMap<String, String> = lines
            .filter_map(|line| line.split_once(':'))
            .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
            .collect();
        let len: usize = headers.get("content-length").map_or(0, |len| len.parse().unwrap());
        while rest.len() < end + 4 + len {
            more(stream, rest)?;
        }
        let body = rest[end + 4..end + 4 + len].to_vec();
        let request = Request::new(&method, target, headers, body);
        rest.drain(..end + 4 + len);
        Some(request)
    }

    /// Returns a request. The names of headers are in lower case.
    pub(crate) fn new(
        method: &str,
        target: &str,
        headers: BTreeMap<String, String>,
        body: Vec<u8>,
    ) -> Request {
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let pairs = query.split('&').filter_map(|pair| pair.split_once('='));
        let query = pairs.map(|(key, value)| (decoded(key), decoded(&value.replace('+', "%20")))).collect();
        Request { method: method.to_owned(), path: decoded(path), query, headers, body }
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(String::as_str)
    }

    /// Returns the method, the path and the query.
    pub(crate) fn line(&self) -> String {
        let query: Vec<String> = self.query.iter().map(|(key, value)| format!("{key}={value}")).collect();
        format!("{} {}?{}", self.method, self.path, query.join("&"))
    }

    /// Returns `BUCKET/KEY`, with the parameter `f` of a query if there is one.
    pub(super) fn object(&self) -> String {
        let file = self.query.get("f").map_or_else(String::new, |file| format!("?f={file}"));
        format!("{}{file}", self.path.trim_start_matches('/'))
    }

    pub(crate) fn without(&self, header: &str) -> Request {
        let mut request = self.clone();
        request.headers.remove(header);
        request
    }

    pub(crate) fn with(&self, header: &str, value: &str) -> Request {
        let mut request = self.clone();
        request.headers.insert(header.to_owned(), value.to_owned());
        request
    }

    /// Returns the request for the first bytes of its range.
    pub(crate) fn shorter(&self, bytes: usize) -> Request {
        match self.range(usize::MAX) {
            Some(range) => {
                let end = range.end.min(range.start + bytes);
                self.with("range", &format!("bytes={}-{}", range.start, end - 1))
            }
            None => self.clone(),
        }
    }

    /// Returns the requested range of an object of `len` bytes.
    pub(super) fn range(&self, len: usize) -> Option<Range<usize>> {
        let (first, last) = self.header("range")?.strip_prefix("bytes=")?.split_once('-')?;
        let first: usize = first.parse().ok()?;
        Some(first..last.parse::<usize>().map_or(len, |last| (last + 1).min(len)))
    }
}

fn more(stream: &mut TcpStream, rest: &mut Vec<u8>) -> Option<()> {
    let mut buf = [0; 16 << 10];
    let n = stream.read(&mut buf).ok().filter(|n| *n > 0)?;
    rest.extend_from_slice(&buf[..n]);
    Some(())
}

fn decoded(text: &str) -> String {
    let (mut bytes, mut out) = (text.bytes(), Vec::new());
    while let Some(byte) = bytes.next() {
        let digits = |bytes: &mut std::str::Bytes<'_>| Some([bytes.next()?, bytes.next()?]);
        match byte {
            b'%' => {
                let digits = digits(&mut bytes).unwrap();
                out.push(u8::from_str_radix(std::str::from_utf8(&digits).unwrap(), 16).unwrap());
            }
            byte => out.push(byte),
        }
    }
    String::from_utf8(out).unwrap()
}
