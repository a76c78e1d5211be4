//! The fuzz target of the parser of requests. `fuzz/` runs it under libFuzzer, and the test next to it over
//! its corpus.

use tfseek_view::fuzzing::{Head, parse, payload_type};

/// The largest head that is parsed.
const MAX_HEAD: usize = 16 << 10;

/// Tests the parser of requests with the bytes of a connection.
///
/// The result does not depend on how the bytes arrive. A path has no control characters. A path and a query
/// that are encoded again are parsed as the same. A host of this machine is one in its spelling, and a range
/// is within the body. No markup has a type that is shown.
#[allow(unreachable_pub, reason = "the crate of the fuzz targets exports it")]
pub fn request(data: &[u8]) {
    let whole = parse(data);
    // All prefixes of a short input, some of a long one.
    for len in (0..data.len()).step_by(1 + data.len() / 256) {
        let part = parse(&data[..len]);
        assert!(part == Ok(None) || part == whole, "{len}: {part:?}, {whole:?}");
    }
    let shown = payload_type(data);
    assert!(shown.is_none() || !data.starts_with(b"<"), "{shown:?}");
    let head = match &whole {
        Ok(None) => return assert!(data.len() < MAX_HEAD),
        Err(status) => return assert!([400, 405, 431, 505].contains(status), "{status}"),
        Ok(Some(head)) => head,
    };
    assert!(head.len <= data.len().min(MAX_HEAD));
    assert_eq!(parse(&data[..head.len - 1]), Ok(None));
    assert_eq!(parse(&data[..head.len]), whole);
    assert!(head.path.starts_with('/') && !head.path.contains(char::is_control), "{:?}", head.path);
    if let Some(Some(range)) = &head.range {
        assert!(range.start < range.end && range.end <= 1_000, "{range:?}");
    }
    if head.is_local {
        check_host(head.host.as_deref().unwrap());
    }
    check_encoded(head);
}

fn check_encoded(head: &Head) {
    let mut encoded = encode(&head.path, b"/-._~");
    for (k, (key, value)) in head.query.iter().enumerate() {
        let sign = if k == 0 { "?" } else { "&" };
        encoded.extend([sign, &encode(key, b"-._~"), "=", &encode(value, b"-._~")]);
    }
    let method = if head.is_head { "HEAD" } else { "GET" };
    let text = format!("{method} {encoded} HTTP/1.1\r\nHost: localhost:7717\r\n\r\n");
    // Three letters may stand for a byte.
    if text.len() > MAX_HEAD {
        return;
    }
    let Ok(Some(again)) = parse(text.as_bytes()) else { panic!("{text:?}") };
    assert_eq!((&again.path, &again.query, again.is_head), (&head.path, &head.query, head.is_head), "{text}");
    assert!(again.is_local && again.len == text.len());
}

fn encode(text: &str, plain: &[u8]) -> String {
    let one = |byte: u8| {
        if byte.is_ascii_alphanumeric() || plain.contains(&byte) {
            char::from(byte).to_string()
        } else {
            format!("%{byte:02X}")
        }
    };
    text.bytes().map(one).collect()
}

/// Checks the letters of a host, because a name of another host has at least one other letter.
fn check_host(host: &str) {
    let host = host.to_ascii_lowercase();
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.parse::<u16>().is_ok() && !name.ends_with(':') => name,
        _ => &host,
    };
    let only = |letters: &str| name.chars().all(|c| letters.contains(c));
    let address = name.starts_with("127.") && only("0123456789.");
    let loopback = name.starts_with('[') && name.ends_with("1]") && only("[]01:.");
    assert!(name == "localhost" || address || loopback, "{host}");
}
