//! The rules of docs/view.md about security. Each test fails without its rule.

use super::{PAYLOAD, Running, short};
use crate::options::ViewOptions;
use crate::server::Server;
use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::net::{IpAddr, Ipv4Addr};
use std::thread;
use std::time::Duration;

const CSP: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob: data:; media-src 'self' blob:; \
                   connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// Rule 1.
#[test]
fn only_this_machine_is_served_by_default() {
    let running = Running::start();
    assert_eq!(running.server.address().ip(), IpAddr::V4(Ipv4Addr::LOCALHOST));
    for host in ["0.0.0.0", "192.0.2.1", "::", "2001:db8::1"] {
        let options =
            ViewOptions { host: Some(host.parse().unwrap()), port: Some(0), ..ViewOptions::default() };
        let error = Server::bind(&options).err().expect(host);
        assert_eq!(error.kind(), ErrorKind::InvalidInput, "{host}");
        let message = error.to_string();
        assert!(message.contains(host) && message.contains("allow_host"), "{message}");
    }
}

/// Rule 1: elsewhere too, the token is needed and the host is checked.
#[test]
fn an_allowed_host_is_served_with_the_token() {
    let running = Running::with(|options| {
        options.host = Some(IpAddr::V4(Ipv4Addr::UNSPECIFIED));
        options.allow_host = vec!["gpu-1.example".to_owned()];
    });
    let url = running.server.url();
    assert!(url.starts_with(&format!("http://gpu-1.example:{}/?t=", running.port())), "{url}");
    let api = |host: &str, cookie: &str| {
        let head = format!("GET /api/dataset HTTP/1.1\r\nHost: {host}\r\n{cookie}\r\n\r\n");
        running.raw(&head).status
    };
    assert_eq!(api("gpu-1.example:80", &running.cookie()), 200);
    assert_eq!(api("gpu-1.example:80", "A: b"), 403);
    assert_eq!(api("gpu-2.example", &running.cookie()), 400);
    let named = ViewOptions { allow_host: vec!["a:80".into()], port: Some(0), ..ViewOptions::default() };
    assert_eq!(Server::bind(&named).err().unwrap().kind(), ErrorKind::InvalidInput);
}

/// Rule 2.
#[test]
fn data_need_the_token() {
    let running = Running::start();
    let port = running.port();
    let token = running.token();
    assert_eq!(token.len(), 32);
    assert!(token.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b)));
    let other = Running::start().token();
    let cookies = [
        "A: b".to_owned(),
        "Cookie: ".to_owned(),
        format!("Cookie: tfseek-{port}="),
        format!("Cookie: tfseek-{port}"),
        format!("Cookie: tfseek-{port}={other}"),
        format!("Cookie: tfseek-{port}={}", &token[..31]),
        format!("Cookie: tfseek-{port}={token}0"),
        format!("Cookie: tfseek-{port}=\"{token}\""),
        format!("Cookie: tfseek-{}={token}", port ^ 1),
        format!("Cookie: tfseek={token}"),
        format!("Cookie: xtfseek-{port}={token}"),
        format!("Cookie: tfseek-{port}0={token}"),
        format!("Authorization: Bearer {token}"),
    ];
    for cookie in &cookies {
        for target in [
            "/api/dataset",
            "/api/unknown",
            "/api",
            "/api/",
            "/%61pi/dataset",
            &format!("/api/dataset?t={token}"),
        ] {
            let reply = running.get(target, &[cookie]);
            assert_eq!(reply.status, 403, "{target} {cookie}");
            assert!(!reply.text().contains("secret") && !reply.text().contains(&token), "{}", reply.text());
            assert_eq!(reply.header("Set-Cookie"), None);
        }
    }
    let cookie = format!("Cookie: a=b; tfseek-{port}={other};tfseek-{port}={token}; c=\"d\"");
    let reply = running.get("/api/dataset?a=b", &[&cookie]);
    assert_eq!((reply.status, reply.text()), (200, r#"{"name":"secret name","query":[["a","b"]]}"#));
    // The page and its files contain no data.
    for target in ["/", "/app.js", "/app.css", "/index.html"] {
        let reply = running.get(target, &[]);
        assert_eq!(reply.status, 200, "{target}");
        assert!(!reply.text().contains("secret name") && !reply.text().contains(&token), "{target}");
    }
}

/// Rule 2: the link sets the cookie, and the address of the page has no token.
#[test]
fn the_link_becomes_a_cookie() {
    let running = Running::start();
    let port = running.port();
    let token = running.token();
    assert_eq!(running.server.url(), format!("http://127.0.0.1:{port}/?t={token}"));
    // A link in a chat is a navigation from another site.
    let reply = running.get(&format!("/?t={token}"), &["Sec-Fetch-Site: cross-site"]);
    assert_eq!((reply.status, reply.header("Location")), (303, Some("/")));
    let cookie = format!("tfseek-{port}={token}; HttpOnly; SameSite=Strict; Path=/");
    assert_eq!(reply.header("Set-Cookie"), Some(&*cookie));
    assert_eq!(reply.header("Cache-Control"), Some("no-store"));
    let pair = cookie.split(';').next().unwrap();
    assert_eq!(running.get("/api/dataset", &[&format!("Cookie: {pair}")]).status, 200);
    // Other links show the page, which asks for the token.
    for target in
        ["/?t=", "/?t=00", &format!("/?t={}", token.to_uppercase().replace(char::is_numeric, "x")), "/?u=1"]
    {
        let reply = running.get(target, &[]);
        assert_eq!((reply.status, reply.header("Set-Cookie")), (200, None), "{target}");
    }
    for target in [format!("/app.js?t={token}"), format!("/api/dataset?t={token}"), format!("/x?t={token}")] {
        assert_eq!(running.get(&target, &[]).header("Set-Cookie"), None, "{target}");
    }
}

/// Rule 2: a ticket serves once, and for a limited time.
#[test]
fn a_ticket_is_valid_once_and_for_a_limited_time() {
    let running = Running::with(|options| options.limits = short());
    let target = || {
        let url = running.server.ticket_url().unwrap();
        assert!(!url.contains(&running.token()), "{url}");
        format!("/{}", url.splitn(4, '/').last().unwrap())
    };
    let ticket = target();
    let mut client = running.connect();
    client.send(&format!("HEAD {ticket} HTTP/1.1\r\nHost: localhost\r\n\r\n"));
    assert_eq!(client.reply_to(true).status, 200, "a preview uses nothing up");
    let reply = running.get(&ticket, &[]);
    assert_eq!(reply.status, 303);
    assert!(reply.header("Set-Cookie").unwrap().contains(&running.token()));
    let again = running.get(&ticket, &[]);
    assert_eq!((again.status, again.header("Set-Cookie")), (200, None));
    let late = target();
    thread::sleep(Duration::from_millis(400));
    assert_eq!(running.get(&late, &[]).status, 200);
    // A ticket is no token.
    let value = target().split_once("?t=").unwrap().1.to_owned();
    assert_eq!(
        running.get("/api/dataset", &[&format!("Cookie: tfseek-{}={value}", running.port())]).status,
        403
    );
}

/// Rule 2: servers do not accept the tokens of others.
#[test]
fn two_servers_have_different_cookies_and_tokens() {
    let a = Running::start();
    let b = Running::start();
    assert_ne!(a.token(), b.token());
    assert_ne!(a.port(), b.port());
    let both = format!("{}; {}", a.cookie(), &b.cookie()["Cookie: ".len()..]);
    for (server, other) in [(&a, &b), (&b, &a)] {
        assert_eq!(server.get("/api/dataset", &[&server.cookie()]).status, 200);
        assert_eq!(server.get("/api/dataset", &[&other.cookie()]).status, 403);
        assert_eq!(server.get("/api/dataset", &[&both]).status, 200);
        let crossed = format!("Cookie: tfseek-{}={}", server.port(), other.token());
        assert_eq!(server.get("/api/dataset", &[&crossed]).status, 403);
        assert_eq!(server.get(&format!("/?t={}", other.token()), &[]).status, 200);
    }
}

/// Rule 3.
#[test]
fn the_host_is_this_machine() {
    let running = Running::start();
    let cookie = running.cookie();
    let status = |target: &str, hosts: &str| {
        running.raw(&format!("GET {target} HTTP/1.1\r\n{hosts}{cookie}\r\n\r\n")).status
    };
    for target in ["/", "/app.js", "/api/dataset"] {
        for host in ["localhost", "localhost:1", "127.0.0.1:65535", "127.3.2.1", "[::1]:7717", "LOCALHOST"] {
            assert_eq!(status(target, &format!("Host: {host}\r\n")), 200, "{target} {host}");
        }
        for host in [
            "evil.example",
            "evil.example:7717",
            "localhost.evil.example",
            "127.0.0.1.nip.io",
            "10.0.0.1",
            "0.0.0.0",
            "",
        ] {
            assert_eq!(status(target, &format!("Host: {host}\r\n")), 400, "{target} {host}");
        }
        assert_eq!(status(target, ""), 400, "{target}: no host");
        assert_eq!(status(target, "Host: localhost\r\nHost: localhost\r\n"), 400, "{target}: two hosts");
        assert_eq!(status(target, "Host: localhost\r\nHost: evil.example\r\n"), 400, "{target}: two hosts");
    }
    // A link with the right token too, since it would set a cookie for the other name.
    let link = format!("/?t={}", running.token());
    assert_eq!((status(&link, "Host: evil.example\r\n"), status(&link, "Host: localhost\r\n")), (400, 303));
    // The other place for a host.
    assert_eq!(status("http://evil.example/api/dataset", "Host: localhost\r\n"), 400);
    assert_eq!(running.raw(&format!("GET /api/dataset HTTP/1.0\r\n{cookie}\r\n\r\n")).status, 400);
}

/// Rule 4.
#[test]
fn other_sites_get_no_data() {
    let running = Running::start();
    let cookie = running.cookie();
    for site in ["cross-site", "same-site", "Cross-Site", "unknown", ""] {
        let reply = running.get("/api/dataset", &[&cookie, &format!("Sec-Fetch-Site: {site}")]);
        assert_eq!(reply.status, 403, "{site}");
        assert!(!reply.text().contains("secret"));
        assert_eq!(running.get("/", &[&format!("Sec-Fetch-Site: {site}")]).status, 200, "{site}");
    }
    for site in ["same-origin", "none"] {
        assert_eq!(
            running.get("/api/dataset", &[&cookie, &format!("Sec-Fetch-Site: {site}")]).status,
            200,
            "{site}"
        );
    }
    let doubled = ["Sec-Fetch-Site: same-origin", "Sec-Fetch-Site: cross-site", &cookie];
    assert_eq!(running.get("/api/dataset", &doubled).status, 400);
    for target in ["/", "/app.js", "/api/dataset", "/api/bytes", "/x"] {
        let reply = running.get(target, &[&cookie, "Origin: http://evil.example"]);
        assert!(!reply.head.to_lowercase().contains("access-control"), "{}", reply.head);
    }
}

/// Rule 5: every response, also an error, has the headers.
#[test]
fn every_response_restricts_the_browser() {
    let running = Running::with(|options| options.limits = short());
    let cookie = running.cookie();
    let cookie = cookie.as_str();
    let mut replies = vec![
        running.get(&format!("/?t={}", running.token()), &[]),
        running.get("/api/bytes", &[cookie, "Range: bytes=0-1"]),
        running.get("/api/bytes", &[cookie, "Range: bytes=99-"]),
        running.get("/api/bytes", &[cookie, "If-None-Match: *"]),
        running.get("/api/dataset", &[]),
        running.raw("GET / HTTP/1.1\r\n\r\n"),
        running.raw("nonsense\r\n\r\n"),
        running.raw("POST / HTTP/1.1\r\nHost: localhost\r\n\r\n"),
        running.raw(&format!("GET / HTTP/1.1\r\nX: {}", "x".repeat(16 << 10))),
        running.raw("GET / HTTP/9\r\n\r\n"),
        running.raw("GET / HTTP/1.1\r\n"),
    ];
    for target in
        ["/", "/app.js", "/x", "/api/dataset", "/api/bytes", "/api/svg", "/api/html", "/api/panic", "/api/x"]
    {
        replies.push(running.get(target, &[cookie]));
    }
    for reply in &replies {
        assert_eq!(reply.header("Content-Security-Policy"), Some(CSP), "{}", reply.head);
        assert_eq!(reply.header("X-Content-Type-Options"), Some("nosniff"), "{}", reply.head);
        assert_eq!(reply.header("Referrer-Policy"), Some("no-referrer"), "{}", reply.head);
        assert_eq!(reply.header("Cross-Origin-Resource-Policy"), Some("same-origin"), "{}", reply.head);
        assert!(reply.header("Cache-Control").is_some(), "{}", reply.head);
    }
    let statuses: BTreeSet<u16> = replies.iter().map(|reply| reply.status).collect();
    let all = [200, 206, 303, 304, 400, 403, 404, 405, 408, 416, 431, 500, 505];
    assert_eq!(statuses, BTreeSet::from(all));
    assert_eq!(running.get("/api/dataset", &[cookie]).header("Cache-Control"), Some("no-store"));
}

/// Rule 6.
#[test]
fn other_payloads_are_downloads() {
    let running = Running::start();
    let cookie = running.cookie();
    let shown = running.get("/api/bytes", &[&cookie]);
    assert_eq!((shown.header("Content-Type"), &shown.body[..]), (Some("image/png"), PAYLOAD));
    assert_eq!(shown.header("Content-Disposition"), None);
    for target in ["/api/svg", "/api/html"] {
        let reply = running.get(target, &[&cookie]);
        assert_eq!(reply.status, 200);
        assert_eq!(reply.header("Content-Type"), Some("application/octet-stream"), "{target}");
        assert_eq!(reply.header("Content-Disposition"), Some("attachment"), "{target}");
    }
}

/// Rule 8: an address names a file of the page or an answer, never a file of this machine.
#[test]
fn no_address_is_a_path() {
    let running = Running::start();
    let cookie = running.cookie();
    for target in [
        "/etc/passwd",
        "//etc/passwd",
        "/../../../../../../etc/passwd",
        "/%2e%2e/%2e%2e/%2e%2e/etc/passwd",
        "/..%2f..%2f..%2fetc%2fpasswd",
        "/assets/app.js",
        "/Cargo.toml",
        "/src/lib.rs",
        "/app.js/../../Cargo.toml",
        "/api/../Cargo.toml",
        "/file:///etc/passwd",
    ] {
        let reply = running.get(target, &[&cookie]);
        assert_eq!(reply.status, 404, "{target}");
        assert!(!reply.text().contains("root:") && !reply.text().contains("[package]"), "{target}");
    }
    for target in ["/app.js%00.html", "/%0d%0aSet-Cookie:%20a=b", "/%ff", "/%"] {
        assert_eq!(running.get(target, &[&cookie]).status, 400, "{target}");
    }
}

/// Rule 8: a request has no body, so what follows its head is never taken for another request.
#[test]
fn bodies_are_refused_and_end_the_connection() {
    let running = Running::start();
    let hidden = format!("GET /api/dataset HTTP/1.1\r\nHost: localhost\r\n{}\r\n\r\n", running.cookie());
    for headers in [
        format!("Content-Length: {}", hidden.len()),
        "Transfer-Encoding: chunked".to_owned(),
        "Content-Length: 0\r\nTransfer-Encoding: chunked".to_owned(),
        "Content-Length: 0\r\nContent-Length: 9".to_owned(),
    ] {
        let mut client = running.connect();
        client.send(&format!("GET / HTTP/1.1\r\nHost: localhost\r\n{headers}\r\n\r\n{hidden}"));
        let reply = client.reply();
        assert_eq!((reply.status, reply.header("Connection")), (400, Some("close")), "{headers}");
        assert!(client.is_closed(), "{headers}");
    }
    let mut client = running.connect();
    client.send(&format!("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3\r\n\r\nabc{hidden}"));
    let reply = client.reply();
    assert_eq!((reply.status, reply.header("Allow")), (405, Some("GET, HEAD")));
    assert!(client.is_closed());
}

/// A connection that is closed with unread bytes is reset, and the client may lose the response.
#[test]
fn a_refused_request_is_read_before_the_end() {
    let running = Running::start();
    let mut client = running.connect();
    let body = "x".repeat(100_000);
    client.send(&format!("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000\r\n\r\n{body}"));
    assert_eq!(client.reply().status, 405);
    assert_eq!(std::io::Read::read(&mut client.stream, &mut [0]).unwrap(), 0);
}

/// Rule 8: the head of a request is limited, in bytes and in time.
#[test]
fn heads_are_limited() {
    let running = Running::with(|options| options.limits = short());
    assert_eq!(running.raw(&format!("GET / HTTP/1.1\r\nX: {}", "x".repeat(20 << 10))).status, 431);
    assert_eq!(running.raw(&format!("GET /{}", "x".repeat(20 << 10))).status, 431);
    let fits = format!("GET / HTTP/1.1\r\nHost: localhost\r\nX: {}\r\n\r\n", "x".repeat(16_000));
    assert_eq!(running.raw(&fits).status, 200);
    // One byte at a time, each well within the limit of the whole head.
    let mut client = running.connect();
    let head = "GET / HTTP/1.1\r\nHost: localhost\r\nCookie: ".bytes().chain(std::iter::repeat(b'x'));
    let mut sent = 0;
    for byte in head.take(2000) {
        sent += 1;
        thread::sleep(Duration::from_millis(20));
        if std::io::Write::write_all(&mut client.stream, &[byte]).is_err() {
            break;
        }
        client.stream.set_nonblocking(true).unwrap();
        let has_reply = client.stream.peek(&mut [0]).is_ok();
        client.stream.set_nonblocking(false).unwrap();
        if has_reply {
            break;
        }
    }
    assert!(sent < 1000, "the head continues");
    assert_eq!(client.reply().status, 408);
    assert!(client.is_closed());
    // Nothing at all is closed without a response, before and after a request.
    assert!(running.connect().is_closed());
    let mut client = running.connect();
    client.get("/app.css", &[]);
    assert_eq!(client.reply().status, 200);
    assert!(client.is_closed());
}

/// Rule 8: a panic in an answer is a response, and the next request is answered, on the same connection too.
#[test]
fn a_panic_is_an_error_of_one_answer() {
    let running = Running::start();
    let cookie = running.cookie();
    let mut client = running.connect();
    for _ in 0..3 {
        client.get("/api/panic", &[&cookie]);
        let reply = client.reply();
        assert_eq!(reply.status, 500);
        assert!(reply.text().contains("error"), "{}", reply.text());
        client.get("/api/dataset", &[&cookie]);
        assert_eq!(client.reply().status, 200);
    }
    assert_eq!(running.get("/api/dataset", &[&cookie]).status, 200);
}
