//! Tests of the server over real connections, and what they share: a server in a thread, and a client that
//! sends bytes.

mod load_tests;
mod security_tests;

use crate::conversation::Limits;
use crate::http::{Answers, Request, Response};
use crate::options::ViewOptions;
use crate::server::{Server, ViewerHandle};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Answers of a dataset without files.
struct Made;

const PAYLOAD: &[u8] = b"\x89PNG\r\n\x1a\n0123456789";

impl Answers for Made {
    fn answer(&self, request: &Request) -> Response {
        match request.path.as_str() {
            "/api/dataset" => {
                Response::json(&serde_json::json!({"name": "secret name", "query": request.query}))
            }
            "/api/bytes" => Response::bytes(request, "image/png", "tag", PAYLOAD),
            "/api/svg" => Response::bytes(request, "image/svg+xml", "tag", b"<svg onload='alert(1)'/>"),
            "/api/html" => Response::new(200, "text/html", "<script>alert(1)</script>"),
            "/api/large" => Response::bytes(request, "image/png", "tag", &vec![7; 32 << 20]),
            "/api/wait" => {
                thread::sleep(Duration::from_millis(300));
                Response::new(200, "text/plain", "waited")
            }
            "/api/panic" => panic!("a panic of a test: it is expected in the output"),
            _ => Response::error(404, "no such answer"),
        }
    }
}

/// A server in a thread. It stops when it is dropped.
struct Running {
    server: Arc<Server>,
    handle: ViewerHandle,
    thread: Option<JoinHandle<()>>,
}

impl Running {
    fn start() -> Running {
        Running::with(|_| ())
    }

    fn with(change: impl FnOnce(&mut ViewOptions)) -> Running {
        let mut options = ViewOptions { port: Some(0), ..ViewOptions::default() };
        change(&mut options);
        let server = Arc::new(Server::bind(&options).unwrap());
        let handle = server.handle();
        let thread = {
            let server = Arc::clone(&server);
            thread::spawn(move || server.serve(&(Arc::new(Made) as Arc<dyn Answers>)))
        };
        Running { server, handle, thread: Some(thread) }
    }

    fn port(&self) -> u16 {
        self.server.address().port()
    }

    fn token(&self) -> String {
        self.server.url().split_once("?t=").unwrap().1.to_owned()
    }

    /// Returns the header with which the API answers.
    fn cookie(&self) -> String {
        format!("Cookie: tfseek-{}={}", self.port(), self.token())
    }

    fn connect(&self) -> Client {
        Client::new(TcpStream::connect(self.server.address()).unwrap())
    }

    /// Returns the response to a request with a valid host and these further headers.
    fn get(&self, target: &str, headers: &[&str]) -> Reply {
        let mut client = self.connect();
        client.get(target, headers);
        client.reply()
    }

    /// Returns the response to bytes.
    fn raw(&self, bytes: &str) -> Reply {
        let mut client = self.connect();
        client.send(bytes);
        client.reply()
    }

    /// Waits until at most `most` connections have a thread.
    fn wait_for_threads(&self, most: usize) {
        let start = Instant::now();
        while self.threads() > most {
            assert!(start.elapsed() < Duration::from_secs(600), "{} threads continue", self.threads());
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// Number of threads of this server's connections. It is 0 where the system does not list them.
    fn threads(&self) -> usize {
        let name = format!("tfseek-{}\n", self.port());
        let tasks = std::fs::read_dir("/proc/self/task").into_iter().flatten();
        // A thread may end between two calls.
        let names = tasks.filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("comm")).ok());
        names.filter(|other| *other == name).count()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.handle.stop();
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap();
        }
    }
}

/// Returns limits below a second.
fn short() -> Limits {
    Limits {
        head: Duration::from_millis(400),
        idle: Duration::from_millis(800),
        write: Duration::from_millis(400),
        linger: Duration::from_millis(100),
        ticket: Duration::from_millis(300),
        ..Limits::default()
    }
}

/// A connection to a server.
struct Client {
    stream: TcpStream,
    bytes: Vec<u8>,
}

/// A response, in parts.
#[derive(Debug)]
struct Reply {
    status: u16,
    head: String,
    body: Vec<u8>,
}

impl Client {
    fn new(stream: TcpStream) -> Client {
        stream.set_read_timeout(Some(Duration::from_secs(600))).unwrap();
        Client { stream, bytes: Vec::new() }
    }

    fn send(&mut self, bytes: &str) {
        self.stream.write_all(bytes.as_bytes()).unwrap();
    }

    fn get(&mut self, target: &str, headers: &[&str]) {
        let headers: String = headers.iter().map(|header| format!("{header}\r\n")).collect();
        self.send(&format!("GET {target} HTTP/1.1\r\nHost: localhost\r\n{headers}\r\n"));
    }

    fn reply(&mut self) -> Reply {
        self.reply_to(false)
    }

    /// Reads one response.
    fn reply_to(&mut self, is_head: bool) -> Reply {
        let end = loop {
            if let Some(at) = self.bytes.windows(4).position(|window| window == b"\r\n\r\n") {
                break at;
            }
            assert!(self.fill(), "the connection ended after {:?}", String::from_utf8_lossy(&self.bytes));
        };
        let head = String::from_utf8(self.bytes.drain(..end + 4).collect()).unwrap();
        let mut reply = Reply { status: head[9..12].parse().unwrap(), head, body: Vec::new() };
        let len = reply.header("Content-Length").map_or(0, |len| len.parse().unwrap());
        if !is_head {
            while self.bytes.len() < len {
                assert!(self.fill(), "the body ended after {} of {len} bytes", self.bytes.len());
            }
            reply.body = self.bytes.drain(..len).collect();
        }
        reply
    }

    /// Reads more bytes. Returns false at the end.
    fn fill(&mut self) -> bool {
        let mut chunk = vec![0; 64 << 10];
        let n = self.stream.read(&mut chunk).unwrap();
        self.bytes.extend_from_slice(&chunk[..n]);
        n > 0
    }

    /// Returns whether the server has closed the connection. Waits for it.
    fn is_closed(&mut self) -> bool {
        assert_eq!(self.bytes, b"");
        match self.stream.read(&mut [0]) {
            Ok(n) => n == 0,
            Err(e) => e.kind() == std::io::ErrorKind::ConnectionReset,
        }
    }
}

impl Reply {
    /// Returns the value of a header, which must not be doubled.
    fn header(&self, name: &str) -> Option<&str> {
        let lines = self.head.lines().skip(1).filter_map(|line| line.split_once(": "));
        let mut values = lines.filter(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value);
        let first = values.next();
        assert_eq!(values.next(), None, "{name}");
        first
    }

    fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }
}
