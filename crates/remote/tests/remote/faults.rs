//! Faults of servers and connections.

use super::server::Fault;
use super::*;
use std::io;
use tfseek::io::Store;
use tfseek::{ErrorKind, Stream};

/// Opens a set whose index is known, so that only records are read.
fn indexed(case: &Case, store: Arc<RemoteStore>) -> Dataset {
    case.open_all(case.store()).unwrap();
    case.open_all(store).unwrap()
}

/// The path of the first shard in requests for its bytes.
const DATA: &str = "data/train-00000";

#[test]
fn what_passes_is_not_noticed() {
    for case in Case::all() {
        for fault in [
            Fault::Status(503),
            Fault::Status(500),
            Fault::Status(429),
            Fault::Reset(0),
            Fault::Reset(40),
            Fault::Stall(Duration::from_secs(1)),
        ] {
            let ds = indexed(&case, case.store());
            case.server.fail(DATA, fault.clone(), 2);
            assert_eq!(labels(&ds), (0..100).collect::<Vec<_>>(), "{} {fault:?}", case.scheme);
            assert_eq!(case.server.faults_left(), 0);
        }
        // Listings, too.
        case.server.fail("GET", Fault::Status(503), 2);
        assert_eq!(case.open_all(case.store()).unwrap().len(), 100);
    }
}

#[test]
fn what_lasts_is_an_error_with_the_last_answer() {
    for case in Case::all() {
        let mut options = case.remote();
        options.retries = 1;
        for (fault, expected) in [
            (Fault::Status(503), "503 Service Unavailable"),
            (Fault::Status(429), "429 Too Many Requests"),
            (Fault::Stall(Duration::from_millis(600)), "no answer in time"),
            (Fault::Reset(0), "broke"),
        ] {
            let ds = indexed(&case, Arc::new(RemoteStore::new(options.clone())));
            case.server.fail(DATA, fault.clone(), 1000);
            let e = ds.read(3, &mut Vec::new()).unwrap_err();
            let text = e.to_string();
            assert!(text.starts_with(&case.url(NAMES[0])) && text.contains(expected), "{fault:?}: {text}");
            assert!(text.contains("after 2 attempts"), "{text}");
            assert!(!e.is_data());
            assert_no_secret(&text);
            // The next read asks again.
            case.server.clear_faults();
            assert_eq!(label(&ds, 3, &mut Vec::new()).unwrap(), 3);
        }
    }
}

#[test]
fn servers_that_ignore_ranges_are_an_error() {
    for case in Case::all() {
        for fault in [Fault::Whole, Fault::OtherRange, Fault::Short(1)] {
            let ds = indexed(&case, case.store());
            label(&ds, 3, &mut Vec::new()).unwrap();
            case.server.fail(DATA, fault.clone(), 1000);
            let e = ds.read(3, &mut Vec::new()).unwrap_err();
            let text = e.to_string();
            assert!(text.contains("the server ignores ranges"), "{} {fault:?}: {text}", case.scheme);
            assert!(text.starts_with(&case.url(NAMES[0])) && !e.is_data(), "{text}");
            assert_no_secret(&text);
            case.server.clear_faults();
        }
    }
}

#[test]
fn a_flipped_bit_on_the_way_is_damage_once() {
    for case in Case::all() {
        let ds = indexed(&case, case.store());
        // The hub compares the bytes of a shard with its index first, and says where they are.
        label(&ds, 3, &mut Vec::new()).unwrap();
        case.server.fail(DATA, Fault::Flip(20), 1);
        let e = ds.read(3, &mut Vec::new()).unwrap_err();
        assert!(e.is_data() && e.to_string().contains("record 3 at byte"), "{e}");
        assert_eq!(label(&ds, 3, &mut Vec::new()).unwrap(), 3);
    }
}

#[test]
fn replaced_objects_are_stale() {
    for case in Case::all().filter(|case| case.scheme != "hf") {
        let ds = indexed(&case, case.store());
        let other = shard(500..560);
        case.server.fail(DATA, Fault::Replace(other), 1);
        for _ in 0..2 {
            let e = ds.read(3, &mut Vec::new()).unwrap_err();
            let text = e.to_string();
            assert!(
                matches!(e.kind(), ErrorKind::Index(_)) && text.contains("the object was replaced"),
                "{text}"
            );
            assert!(text.starts_with(&case.url(NAMES[0])), "{text}");
        }
        // Opened again, it is the new one.
        assert_eq!(label(&case.open(NAMES[0]).unwrap(), 3, &mut Vec::new()).unwrap(), 503);
    }
}

/// s3rver 3.7 ignores `If-Match`.
#[test]
fn replaced_objects_are_stale_where_no_condition_is_read() {
    for case in Case::all().filter(|case| case.scheme != "hf") {
        let ds = indexed(&case, case.store());
        let other = case.server.get(&case.object(NAMES[0])).unwrap().bytes.to_vec();
        case.server.fail(DATA, Fault::ReplaceUnseen(other), 1);
        let e = ds.read(3, &mut Vec::new()).unwrap_err();
        let text = e.to_string();
        assert!(matches!(e.kind(), ErrorKind::Index(_)), "{} {text}", case.scheme);
        assert!(text.contains("the object was replaced: its version is another"), "{} {text}", case.scheme);
        assert_eq!(case.server.faults_left(), 0);
    }
}

/// gcp-storage-emulator has no listings in XML, and says so with 501.
#[test]
fn requests_that_a_server_does_not_know_are_not_repeated() {
    for case in Case::all() {
        case.server.fail("", Fault::Status(501), 1000);
        case.server.counts();
        let text = case.store().small(&case.url(NAMES[0]), 1 << 20).unwrap_err().to_string();
        assert!(text.contains("501 Not Implemented") && !text.contains("attempts"), "{text}");
        assert_eq!(case.server.counts().requests, 1, "{}", case.scheme);
    }
}

#[test]
fn refused_requests_are_not_repeated() {
    for case in Case::all() {
        let store = case.store();
        let ds = indexed(&case, store.clone());
        case.server.counts();
        case.server.fail(DATA, Fault::Status(404), 1000);
        let e = ds.read(3, &mut Vec::new()).unwrap_err();
        assert_eq!(io_kind(&e), io::ErrorKind::NotFound, "{} {e}", case.scheme);
        // The hub is asked where the bytes are.
        assert!(case.server.counts().requests <= 2);
        assert_no_secret(&e.to_string());
        case.server.clear_faults();
        case.server.fail("", Fault::Status(403), 1000);
        let e = store.list(&case.url(NAMES[0]), false).unwrap_err().to_string();
        assert!(e.contains("403 Forbidden"), "{e}");
    }
}

#[test]
fn without_a_network_the_error_says_so() {
    for case in Case::all() {
        let mut options = case.remote();
        // A first connection is not tried so often.
        options.retries = 100;
        let address = case.server.address;
        let (cache, url, scheme) = (case.cache.path().to_owned(), case.url(NAMES[0]), case.scheme);
        drop(case);
        let store = Arc::new(RemoteStore::new(options));
        // The server ends with its next connection.
        let _ = std::net::TcpStream::connect(address);
        let index = IndexOptions::new().default_dirs(None, Some(cache));
        let e = DatasetOptions::new().index(index).store(store).open(url.as_str()).unwrap_err().to_string();
        assert!(e.starts_with(&url) && (e.contains("no connection") || e.contains("broke")), "{scheme}: {e}");
    }
}

#[test]
fn a_stalled_request_ends_with_its_store() {
    let case = Case::new("s3");
    let ds = indexed(&case, case.store());
    case.server.fail(DATA, Fault::Stall(Duration::from_secs(5)), 1000);
    let start = std::time::Instant::now();
    let loader = ds.record_loader().batch_size(10).threads(2).build().unwrap();
    std::thread::sleep(Duration::from_millis(50));
    // Announced bytes are on their way, and a drop waits for none of them.
    drop(ds);
    drop(loader);
    assert!(start.elapsed() < Duration::from_secs(3), "{:?}", start.elapsed());
}

#[test]
fn streams_read_ahead() {
    for case in Case::all() {
        let store = case.store();
        let options = tfseek::stream::StreamOptions { store: Some(store), ..Default::default() };
        let mut stream: Stream = options.open(case.url(NAMES[0])).unwrap();
        let mut n = 0;
        while let Some(record) = stream.next().unwrap() {
            assert_eq!(record.example().int64("label").unwrap().first(), Some(n));
            n += 1;
        }
        assert_eq!(n, 60);
    }
}

#[test]
fn a_slow_piece_is_asked_for_once_more() {
    for scheme in ["s3", "http"] {
        let case = Case::new(scheme);
        let mut options = case.remote();
        options.read_timeout = Duration::from_secs(60);
        let store = Arc::new(RemoteStore::new(options));
        let ds = indexed(&case, store);
        let mut buf = Vec::new();
        // Their times are known, and few are much slower.
        for i in 0..200 {
            assert_eq!(label(&ds, i % 60, &mut buf).unwrap(), (i % 60) as i64);
        }
        case.server.counts();
        case.server.fail(DATA, Fault::Stall(Duration::from_secs(40)), 1);
        assert_eq!(label(&ds, 3, &mut buf).unwrap(), 3);
        assert_eq!(case.server.faults_left(), 0);
        // The stalled request is under way, and the other was answered.
        let counts = case.server.counts();
        assert_eq!((counts.requests, counts.gets, case.server.running()), (2, 1, 1), "{scheme}: {counts:?}");
    }
}

#[test]
fn refusals_make_requests_fewer() {
    let case = Case::new("s3");
    let mut bytes = Vec::new();
    for _ in 0..2000 {
        put_record(&mut bytes, &[7; 10_000]).unwrap();
    }
    let len = bytes.len() as u64;
    case.set("large.tfrecord", bytes);
    let source = |store: Arc<RemoteStore>| {
        let object = store.list(&case.url("large.tfrecord"), false).unwrap().objects.remove(0);
        store.open(&object).unwrap()
    };
    let ranges: Vec<_> = (0..100).map(|k| k * 200_000..k * 200_000 + 100).collect();
    assert!(ranges.last().unwrap().end < len);
    let most = |refusals: usize| {
        let source = source(case.store());
        case.server.latency(Duration::from_millis(20));
        case.server.fail("large", Fault::Status(503), refusals);
        case.server.most_at_once();
        source.want(&ranges);
        for range in &ranges {
            source.fetch(range.clone(), &mut Vec::new()).unwrap();
        }
        case.server.most_at_once()
    };
    // Small requests are soon made more than 32 at a time, but not after refusals.
    assert!(most(0) > 48);
    assert!(most(8) <= 40);
}

/// The process that reads may open few files, and so have few connections. The server is in another one.
#[cfg(unix)]
#[test]
#[allow(unsafe_code)]
fn few_descriptors_are_enough() {
    use super::epochs::{Blocks, ORDERS, loader, read};
    const SERVER: &str = "TFSEEK_TEST_SERVER";
    const INDEXES: &str = "TFSEEK_TEST_INDEXES";
    let Ok(url) = std::env::var(SERVER) else {
        let blocks = Blocks::new();
        blocks.open(|_| ());
        blocks.case.server.latency(Duration::from_millis(5));
        let mut reading = std::process::Command::new(std::env::current_exe().unwrap());
        reading.args(["--exact", "faults::few_descriptors_are_enough", "--nocapture"]);
        let reading = reading.env(SERVER, blocks.case.server.url()).env(INDEXES, blocks.case.cache.path());
        let output = reading.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let most = blocks.case.server.most_at_once();
        assert!((16..64).contains(&most), "{most}");
        return;
    };
    let limit = libc::rlimit { rlim_cur: 64, rlim_max: 64 };
    // SAFETY: `limit` is read.
    assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit) }, 0);
    let mut options = options_of(&url);
    (options.retries, options.read_timeout) = (10, Duration::from_secs(10));
    let index = IndexOptions::new().default_dirs(None, Some(std::env::var_os(INDEXES).unwrap().into()));
    let options = DatasetOptions::new().index(index).store(Arc::new(RemoteStore::new(options)));
    let ds = options.open("s3://bucket/data/set-*").unwrap();
    assert_eq!(read(loader(&ds, &ORDERS[1])).concat().len(), 12_000);
}
