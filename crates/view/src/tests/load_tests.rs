//! Many connections, slow ones, and the end of a server.

use super::{Client, PAYLOAD, Running, short};
use crate::options::ViewOptions;
use crate::server::Server;
use std::io::{ErrorKind, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

#[test]
fn slow_connections_do_not_keep_others_out() {
    // No head is given up, so the other client is answered beside them.
    let running = Running::with(|options| options.limits.head = Duration::from_secs(600));
    let stop = AtomicBool::new(false);
    let mut slow: Vec<_> = (0..64).map(|_| TcpStream::connect(running.server.address()).unwrap()).collect();
    thread::scope(|scope| {
        scope.spawn(|| {
            // Each sends a byte per second.
            let head = b"GET / HTTP/1.1\r\nHost: localhost\r\n";
            for byte in head {
                for stream in &mut slow {
                    let _ = stream.write_all(&[*byte]);
                }
                for _ in 0..20 {
                    if stop.load(Ordering::Relaxed) {
                        return;
                    }
                    thread::sleep(Duration::from_millis(50));
                }
            }
        });
        thread::sleep(Duration::from_millis(200));
        let mut client = running.connect();
        for _ in 0..3 {
            client.get("/app.css", &[]);
            assert_eq!(client.reply().status, 200);
        }
        running.wait_for_threads(64);
        stop.store(true, Ordering::Relaxed);
    });
}

#[test]
fn the_connection_that_is_idle_for_longest_is_closed_first() {
    let running = Running::with(|options| options.limits.connections = 3);
    let ready = |client: &mut Client| {
        client.get("/app.css", &[]);
        assert_eq!(client.reply().status, 200);
        // The server waits for the next request once it has written this one.
        thread::sleep(Duration::from_millis(50));
    };
    let mut head = running.connect();
    head.send("GET /app.css HTTP/1.1\r\n");
    let mut first = running.connect();
    let mut second = running.connect();
    ready(&mut first);
    ready(&mut second);
    ready(&mut first);
    // The second one has been idle for longer.
    let mut third = running.connect();
    ready(&mut third);
    assert!(second.is_closed());
    let mut fourth = running.connect();
    fourth.send("GET /app.css HTTP/1.1\r\n");
    assert!(first.is_closed());
    thread::sleep(Duration::from_millis(50));
    // Then the third, and then the head that began first.
    let mut fifth = running.connect();
    fifth.send("GET /app.css HTTP/1.1\r\n");
    assert!(third.is_closed());
    let mut sixth = running.connect();
    ready(&mut sixth);
    assert!(head.is_closed());
    for client in [&mut fourth, &mut fifth] {
        client.send("Host: localhost\r\n\r\n");
        assert_eq!(client.reply().status, 200);
    }
}

/// Clients that read nothing would keep all connections busy.
#[test]
fn clients_that_read_nothing_are_closed() {
    let running = Running::with(|options| {
        options.limits = short();
        options.limits.connections = 2;
    });
    let cookie = running.cookie();
    let deaf = || {
        let mut client = running.connect();
        client.get("/api/large", &[&cookie]);
        client
    };
    let mut clients = vec![deaf(), deaf()];
    thread::sleep(Duration::from_millis(100));
    // Another connection makes them end, and so does the time.
    assert_eq!(running.get("/api/dataset", &[&cookie]).status, 200);
    running.wait_for_threads(0);
    clients.push(deaf());
    thread::sleep(Duration::from_millis(100));
    running.wait_for_threads(0);
}

#[test]
fn many_requests_are_answered_in_order() {
    const EACH: usize = 1250;
    let running = Running::start();
    let cookie = running.cookie();
    thread::scope(|scope| {
        for thread in 0..8 {
            let running = &running;
            let cookie = &cookie;
            scope.spawn(move || {
                let mut client = running.connect();
                for batch in 0..EACH / 50 {
                    let requests: String = (0..50)
                        .map(|k| {
                            let n = batch * 50 + k;
                            let method = if n % 5 == 4 { "HEAD" } else { "GET" };
                            format!("{method} /api/dataset?n={thread}-{n} HTTP/1.1\r\nHost: localhost\r\n{cookie}\r\n\r\n")
                        })
                        .collect();
                    client.send(&requests);
                    for k in 0..50 {
                        let n = batch * 50 + k;
                        let expected = format!(r#"{{"name":"secret name","query":[["n","{thread}-{n}"]]}}"#);
                        let is_head = n % 5 == 4;
                        let reply = client.reply_to(is_head);
                        assert_eq!(reply.status, 200);
                        assert_eq!(reply.header("Content-Length"), Some(&*expected.len().to_string()));
                        assert_eq!(reply.text(), if is_head { "" } else { &expected });
                    }
                }
                assert_eq!(client.bytes, b"");
            });
        }
    });
}

#[test]
fn bytes_may_arrive_one_by_one() {
    let running = Running::start();
    let mut client = running.connect();
    client.stream.set_nodelay(true).unwrap();
    let head = "GET /app.css?a=b HTTP/1.1\r\nHost: localhost\r\n\r\n";
    for byte in format!("\r\n{head}{head}").bytes() {
        client.stream.write_all(&[byte]).unwrap();
    }
    assert_eq!((client.reply().status, client.reply().status), (200, 200));
}

#[test]
fn head_requests_have_no_body() {
    let running = Running::start();
    let cookie = running.cookie();
    let mut client = running.connect();
    for target in ["/", "/app.js", "/api/dataset", "/api/bytes", "/x", "/api/panic"] {
        client.get(target, &[&cookie]);
        let get = client.reply();
        client.send(&format!("HEAD {target} HTTP/1.1\r\nHost: localhost\r\n{cookie}\r\n\r\n"));
        let head = client.reply_to(true);
        assert_eq!(get.head, head.head, "{target}");
        assert_eq!(get.header("Content-Length"), Some(&*get.body.len().to_string()));
    }
    // The next response follows without a body.
    client.get("/x", &[]);
    assert_eq!(client.reply().status, 404);
}

#[test]
fn ranges_and_tags_are_answered() {
    let running = Running::start();
    let cookie = running.cookie();
    let mut client = running.connect();
    let mut get = |header: &str| {
        client.get("/api/bytes", &[&cookie, header]);
        client.reply()
    };
    let all = get("A: b");
    assert_eq!((all.status, &all.body[..]), (200, PAYLOAD));
    assert_eq!((all.header("ETag"), all.header("Accept-Ranges")), (Some("\"tag\""), Some("bytes")));
    let part = get("Range: bytes=1-3");
    assert_eq!((part.status, &part.body[..]), (206, &b"PNG"[..]));
    assert_eq!(part.header("Content-Range"), Some("bytes 1-3/18"));
    assert_eq!(get("Range: bytes=-2").body, b"89");
    let none = get("Range: bytes=18-");
    assert_eq!((none.status, none.header("Content-Range")), (416, Some("bytes */18")));
    assert_eq!(get("Range: bytes=0-0,2-2").body, PAYLOAD);
    let same = get("If-None-Match: \"x\", W/\"tag\"");
    assert_eq!((same.status, same.header("Content-Length"), same.body.len()), (304, None, 0));
    // The connection is still in step.
    assert_eq!(get("A: b").body, PAYLOAD);
}

#[test]
fn connections_end_as_the_client_asks() {
    let running = Running::start();
    let mut client = running.connect();
    client.get("/app.css", &["Connection: close"]);
    assert_eq!(client.reply().header("Connection"), Some("close"));
    assert!(client.is_closed());
    let mut old = running.connect();
    old.send("GET /app.css HTTP/1.0\r\nHost: localhost\r\n\r\n");
    assert_eq!(old.reply().header("Connection"), Some("close"));
    assert!(old.is_closed());
    let mut kept = running.connect();
    for _ in 0..2 {
        kept.send("GET /app.css HTTP/1.0\r\nHost: localhost\r\nConnection: keep-alive\r\n\r\n");
        assert_eq!(kept.reply().header("Connection"), Some("keep-alive"));
    }
    // A client that ends its output still gets its response.
    let mut half = running.connect();
    half.get("/app.css", &[]);
    half.stream.shutdown(std::net::Shutdown::Write).unwrap();
    assert_eq!(half.reply().status, 200);
}

#[test]
fn a_stop_ends_all_connections_and_threads() {
    let running = Running::start();
    let cookie = running.cookie();
    let mut idle: Vec<_> = (0..5).map(|_| running.connect()).collect();
    for client in &mut idle {
        client.get("/app.css", &[]);
        assert_eq!(client.reply().status, 200);
    }
    let mut head = running.connect();
    head.send("GET / HTTP");
    let mut deaf = running.connect();
    deaf.get("/api/large", &[&cookie]);
    let mut waiting = running.connect();
    waiting.get("/api/wait", &[&cookie]);
    thread::sleep(Duration::from_millis(100));
    #[cfg(target_os = "linux")]
    assert!(running.threads() >= 8, "{}", running.threads());
    let handle = running.handle.clone();
    let server = std::sync::Arc::clone(&running.server);
    handle.stop();
    let mut running = running;
    running.thread.take().unwrap().join().unwrap();
    #[cfg(target_os = "linux")]
    assert_eq!(running.threads(), 0);
    for client in idle.iter_mut().chain([&mut head]) {
        assert!(client.is_closed());
    }
    // Stopping again changes nothing, and a stopped server does not start again.
    handle.stop();
    server.serve(&(std::sync::Arc::new(super::Made) as std::sync::Arc<dyn crate::http::Answers>));
}

#[test]
fn a_server_that_was_never_used_stops() {
    drop(Running::start());
    let server = Server::bind(&ViewOptions { port: Some(0), ..ViewOptions::default() }).unwrap();
    server.handle().stop();
    server.serve(&(std::sync::Arc::new(super::Made) as std::sync::Arc<dyn crate::http::Answers>));
}

#[test]
fn a_port_that_is_taken_is_an_error_only_if_the_user_chose_it() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let error = Server::bind(&ViewOptions { port: Some(port), ..ViewOptions::default() }).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::AddrInUse);
    assert!(error.to_string().starts_with(&format!("cannot listen on 127.0.0.1:{port}: ")), "{error}");
    // Other programs may have some of these ports.
    let bind = || Server::bind(&ViewOptions::default()).unwrap();
    let servers: Vec<_> = (0..13).map(|_| bind()).collect();
    let ports: std::collections::BTreeSet<u16> =
        servers.iter().map(|server| server.address().port()).collect();
    assert_eq!(ports.len(), 13);
    assert!(ports.iter().any(|port| !(7717..=7727).contains(port)));
}

/// Runs itself again in a process with few descriptors.
#[cfg(target_os = "linux")]
#[test]
fn missing_descriptors_are_waited_out() {
    const NAME: &str = "tests::load_tests::missing_descriptors_are_waited_out";
    if std::env::var_os("TFSEEK_FEW_DESCRIPTORS").is_none() {
        let script = "ulimit -n 40 && exec \"$0\" --exact \"$1\" --nocapture";
        let mut command = std::process::Command::new("sh");
        command.args(["-c", script]).arg(std::env::current_exe().unwrap()).arg(NAME);
        let output = command.env("TFSEEK_FEW_DESCRIPTORS", "1").output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && text.contains("1 passed"), "{text}{output:?}");
        return;
    }
    let running = Running::start();
    let mut files: Vec<std::fs::File> = Vec::new();
    while let Ok(file) = std::fs::File::open("/dev/null") {
        files.push(file);
    }
    // The first client has a descriptor for each side. Each later one has its own only, so an idle connection
    // has to make room. On Linux, a waiting `accept` may have reserved a descriptor, so this may begin with
    // the third one.
    files.pop();
    let mut clients = Vec::new();
    for _ in 0..5 {
        files.pop();
        let mut client = running.connect();
        client.get("/app.css", &[]);
        assert_eq!(client.reply().status, 200);
        clients.push(client);
    }
    assert!(clients[0].is_closed());
}
