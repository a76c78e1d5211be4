//! Runs the fuzz target of the parser of requests over its corpus, and over generated inputs, on a stable
//! compiler.
//!
//! `TFSEEK_WRITE_SEEDS=1` rewrites the seeds.

mod target;

use target::request;
use tfseek_testkit::corpus;
use tfseek_testkit::rng::Rng;

/// Seeds: a name, and the bytes of a connection.
const SEEDS: &[(&str, &[u8])] = &[
    ("absolute", b"GET http://localhost/api HTTP/1.1\r\nHost: localhost\r\n\r\n"),
    ("body", b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3\r\n\r\nabc"),
    ("body-chunked", b"GET / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"),
    ("body-none", b"GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n"),
    ("browser", b"GET /api/bytes/7?feature=image%2Fencoded&value=0 HTTP/1.1\r\nHost: 127.0.0.1:7717\r\nConnection: keep-alive\r\nAccept: image/avif,*/*;q=0.8\r\nSec-Fetch-Site: same-origin\r\nCookie: a=b; tfseek-7717=00ff\r\nRange: bytes=0-\r\nIf-Range: \"x\"\r\nIf-None-Match: W/\"y\", \"z\"\r\n\r\n"),
    ("control", b"GET /%00%0d%0a HTTP/1.1\r\nHost: localhost\r\n\r\n"),
    ("doubled", b"GET / HTTP/1.1\r\nHost: localhost\r\nHost: evil\r\n\r\n"),
    ("encoded", b"GET /a%20b+c/%C3%A9%25?where=a+%3D%3D+%22%2B%22&&b&=c&d=e=f HTTP/1.1\r\nHost: [::1]:1\r\n\r\n"),
    ("folded", b"GET / HTTP/1.1\r\nHost: localhost\r\n b\r\n\r\n"),
    ("head", b"HEAD / HTTP/1.0\r\nHost: LOCALHOST\r\nConnection: Keep-Alive, close\r\n\r\n"),
    ("line-feeds", b"\r\n\nGET / HTTP/1.1\nHost: 127.1.2.3\n\n"),
    ("pipelined", b"GET /a HTTP/1.1\r\nHost: a\r\n\r\nGET /b HTTP/1.1\r\nHost: b\r\n\r\n"),
    ("range-suffix", b"GET / HTTP/1.1\r\nHost: a\r\nRange: bytes=-18446744073709551616\r\n\r\n"),
    ("ranges", b"GET / HTTP/1.1\r\nHost: a\r\nRange: bytes=1-2,4-5\r\n\r\n"),
    ("raw-utf-8", b"GET /\xc3\xa9?\xe2\x82\xac HTTP/1.1\r\nHost: a\r\nCookie: \xff\r\n\r\n"),
    ("tls", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"),
    ("version", b"GET / HTTP/2.0\r\n\r\n"),
    ("webm", b"\x1a\x45\xdf\xa3\x8b\x42\x86\x81\x01\x42\x82\x84webm"),
    ("mp4", b"\0\0\0\x18ftypisom\0\0\0\0mp41avif"),
];

/// Parts of requests, for generated inputs.
const PARTS: &[&[u8]] = &[
    b"GET ",
    b"HEAD ",
    b"POST ",
    b"/",
    b"/api/",
    b"?",
    b"&",
    b"=",
    b"%",
    b"%41",
    b"%00",
    b"%c3%a9",
    b"%ff",
    b"+",
    b"#",
    b"a",
    b"..",
    b"\xc3\xa9",
    b"\xff",
    b" HTTP/1.1\r\n",
    b" HTTP/1.0\r\n",
    b" HTTP/1.1\n",
    b"\r\n",
    b"\n",
    b"\r",
    b"\0",
    b" ",
    b"Host: ",
    b"localhost",
    b"127.0.0.1",
    b"127.9",
    b"[::1]",
    b"[",
    b"]",
    b":",
    b"7717",
    b"Host: localhost\r\n",
    b"Range: bytes=",
    b"-",
    b"5",
    b"18446744073709551615",
    b",",
    b"Content-Length: 0\r\n",
    b"Content-Length: ",
    b"Transfer-Encoding: x\r\n",
    b"Cookie: ",
    b"\"",
    b"W/",
    b"If-None-Match: ",
    b"Connection: close\r\n",
    b"http://",
];

#[test]
fn every_seed_passes() {
    let seeds: Vec<_> = SEEDS.iter().map(|(name, seed)| ((*name).to_owned(), seed.to_vec())).collect();
    corpus::replay("request", &seeds, request);
    request(&[&b"GET / HTTP/1.1\r\nX: "[..], &vec![b'x'; 20_000]].concat());
    request(&[&b"GET / HTTP/1.1\r\n"[..], &b"X: y\r\n".repeat(200)].concat());
}

#[test]
fn generated_inputs_pass() {
    for seed in 0..20_000 {
        let mut rng = Rng::new(seed);
        let mut input = if rng.chance(200) { b"GET /".to_vec() } else { Vec::new() };
        for _ in 0..rng.below(30) {
            input.extend(rng.pick(PARTS));
        }
        if rng.chance(128) {
            input.extend(b" HTTP/1.1\r\nHost: localhost\r\n");
        }
        input.extend(b"\r\n\r\n");
        request(&input);
    }
    for seed in 0..SEEDS.len() * 200 {
        let mut rng = Rng::new(seed as u64);
        let mut input = SEEDS[seed / 200].1.to_vec();
        for _ in 0..1 + rng.below(4) {
            let at = rng.below(input.len());
            match rng.below(3) {
                0 => input[at] = rng.u64() as u8,
                1 => drop(input.remove(at)),
                _ => drop(input.splice(at..at, rng.pick(PARTS).iter().copied())),
            }
        }
        request(&input);
    }
}
