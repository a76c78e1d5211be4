//! Answers, and the times in them.

use super::Stored;
use super::link::Link;
use std::io::Write;
use std::net::TcpStream;

#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(&'static str, String)>,
    pub(crate) body: Vec<u8>,
    /// The length that an answer to HEAD tells.
    pub(crate) head_len: Option<usize>,
}

pub(crate) fn answer(status: u16, body: impl Into<Vec<u8>>) -> Answer {
    Answer { status, headers: Vec::new(), body: body.into(), head_len: None }
}

pub(crate) fn error(status: u16, code: &str) -> Answer {
    // Messages of services repeat parts of the request.
    answer(
        status,
        format!("<?xml version=\"1.0\"?><Error><Code>{code}</Code><Message>secret message</Message></Error>"),
    )
}

impl Answer {
    pub(crate) fn with(mut self, name: &'static str, value: impl Into<String>) -> Answer {
        self.headers.push((name, value.into()));
        self
    }

    fn head(&self, len: &str) -> String {
        let mut head = format!("HTTP/1.1 {} Scripted\r\n{len}\r\n", self.status);
        // A version that is not known is not told.
        for (name, value) in self.headers.iter().filter(|(_, value)| !value.is_empty()) {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        head.push_str("\r\n");
        head
    }

    /// Sends the answer in chunks, without the last one. Returns the number of bytes of the body.
    pub(super) fn send_without_end(&self, stream: &mut TcpStream) -> Option<u64> {
        let head = self.head("Transfer-Encoding: chunked");
        stream.write_all(format!("{head}{:x}\r\n", self.body.len()).as_bytes()).ok()?;
        stream.write_all(&self.body).ok()?;
        stream.write_all(b"\r\n").ok()?;
        Some(self.body.len() as u64)
    }

    /// Sends the answer, or its head and `end` bytes. Returns the number of bytes of the body, or `None` if
    /// the client is gone.
    pub(super) fn send(
        &self,
        stream: &mut TcpStream,
        link: &Link,
        head_only: bool,
        end: Option<usize>,
    ) -> Option<u64> {
        let len = self.head_len.filter(|_| head_only).unwrap_or(self.body.len());
        let head = self.head(&format!("Content-Length: {len}"));
        let body = match (head_only, end) {
            (true, _) => &[],
            (false, Some(end)) => &self.body[..end.min(self.body.len())],
            (false, None) => &self.body[..],
        };
        stream.write_all(head.as_bytes()).ok()?;
        link.send(stream, body)?;
        Some(body.len() as u64)
    }
}

/// Returns the time of an object in nanoseconds.
pub(crate) fn time_ns(stored: &Stored) -> i64 {
    stored.time as i64 * 1_000_000_000
}

/// Year, month, day and time of seconds since 1970.
fn civil(time: u64) -> (u64, usize, u64, String) {
    let (mut days, seconds) = (time / 86_400, time % 86_400);
    let leap = |year: u64| year.is_multiple_of(4) && !year.is_multiple_of(100) || year.is_multiple_of(400);
    let mut year = 1970;
    while days >= 365 + u64::from(leap(year)) {
        days -= 365 + u64::from(leap(year));
        year += 1;
    }
    let february = 28 + u64::from(leap(year));
    let mut month = 0;
    for len in [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31] {
        if days < len {
            break;
        }
        days -= len;
        month += 1;
    }
    (year, month, days + 1, format!("{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60))
}

/// A time as in headers.
pub(crate) fn http_time(time: u64) -> String {
    let names = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let days = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
    let (year, month, day, clock) = civil(time);
    format!("{}, {day:02} {} {year} {clock} GMT", days[(time / 86_400 % 7) as usize], names[month])
}

/// A time as in listings of S3.
pub(crate) fn iso_time(time: u64) -> String {
    let (year, month, day, clock) = civil(time);
    format!("{year}-{:02}-{day:02}T{clock}.000Z", month + 1)
}
