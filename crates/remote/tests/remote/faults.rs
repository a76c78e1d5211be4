//! Faults of servers and connections.

use super::server::{Fault, Stored};
use super::*;
use std::io;
use tfseek::error::IndexError;
use tfseek::io::{Source, Store};
use tfseek::stream::StreamOptions;
use tfseek::{Damage, ErrorKind, IndexMode, Stream};

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
        // A body without a length. object_store refuses these.
        if matches!(case.scheme, "http" | "hf") {
            let ds = indexed(&case, case.store());
            case.server.fail(DATA, Fault::NoEnd, 2);
            assert_eq!(labels(&ds), (0..100).collect::<Vec<_>>(), "{}", case.scheme);
        }
        // Listings, too.
        for fault in [Fault::Status(503), Fault::Reset(40)] {
            case.server.fail("GET", fault, 2);
            assert_eq!(case.open_all(case.store()).unwrap().len(), 100, "{}", case.scheme);
            case.server.clear_faults();
        }
        // And small objects, also of servers that may send no version.
        let (url, object) = (case.url("notes.json"), case.object("notes.json"));
        case.set("notes.json", vec![b'x'; 300]);
        if matches!(case.scheme, "s3" | "http") {
            let unversioned = Stored { tag: String::new(), ..case.server.get(&object).unwrap() };
            case.server.set_alike(&object, vec![b'x'; 300], &unversioned);
        }
        case.server.fail("notes.json", Fault::Reset(40), 2);
        assert_eq!(case.store().small(&url, 1000).unwrap().unwrap().0.len(), 300, "{}", case.scheme);
    }
}

/// The rest of a body that broke is another version's. It is told as every replaced object.
#[test]
fn an_object_that_is_replaced_while_its_body_breaks_is_stale() {
    for case in Case::all().filter(|case| case.scheme != "hf") {
        let ds = indexed(&case, case.store());
        case.server.fail(DATA, Fault::Reset(40), 1);
        case.server.fail(DATA, Fault::Replace(shard(200..260)), 1);
        let e = ds.read(3, &mut Vec::new()).unwrap_err();
        let is_stale = matches!(e.kind(), tfseek::ErrorKind::Index(IndexError::Stale { .. }));
        assert!(is_stale, "{}: {e}", case.scheme);
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
        for fault in [Fault::Whole, Fault::OtherRange] {
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
fn a_flipped_bit_on_the_way_is_damage_if_it_flips_twice() {
    for case in Case::all() {
        let ds = indexed(&case, case.store());
        // The hub compares the bytes of a shard with its index first, and says where they are.
        label(&ds, 3, &mut Vec::new()).unwrap();
        case.server.fail(DATA, Fault::Flip(20), 1);
        assert_eq!(label(&ds, 3, &mut Vec::new()).unwrap(), 3);
        assert_eq!(case.server.faults_left(), 0);
        case.server.fail(DATA, Fault::Flip(20), 2);
        let e = ds.read(3, &mut Vec::new()).unwrap_err();
        assert!(e.is_data() && e.to_string().contains("record 3 at byte"), "{e}");
        assert_eq!(case.server.faults_left(), 0);
        assert_eq!(label(&ds, 3, &mut Vec::new()).unwrap(), 3);
    }
}

/// Scans, streams, parts and columns read a flipped bit once more too, and nothing is left out.
#[test]
fn a_flipped_bit_is_read_again_by_every_reader() {
    for case in Case::all() {
        let name = case.url(NAMES[0]);
        for damage in [Damage::Raise, Damage::Skip] {
            let index = IndexOptions::new().mode(IndexMode::Memory).check_payloads(true).damage(damage);
            let options = || DatasetOptions::new().index(index.clone()).store(case.store());
            case.server.fail(DATA, Fault::Flip(700), 1);
            let ds = options().open(&name).unwrap();
            assert_eq!(
                (ds.len(), ds.warnings().len(), case.server.faults_left()),
                (60, 0, 0),
                "{}",
                case.scheme
            );
            let of_stream = |mut stream: tfseek::Stream| {
                let mut labels = Vec::new();
                while let Some(record) = stream.next().unwrap() {
                    labels.push(record.example().int64("label").unwrap().first().unwrap());
                }
                labels
            };
            let stream = || StreamOptions { damage, store: Some(case.store()), ..StreamOptions::default() };
            case.server.fail(DATA, Fault::Flip(700), 1);
            assert_eq!(
                of_stream(stream().open(&name).unwrap()),
                (0..60).collect::<Vec<_>>(),
                "{}",
                case.scheme
            );
            assert_eq!(case.server.faults_left(), 0);
            let part = ds.shares(1).unwrap().remove(0).remove(0);
            let opened = stream().part(&part).unwrap();
            assert_eq!(of_stream(opened), (0..60).collect::<Vec<_>>());
        }
        let ds = indexed(&case, case.store());
        label(&ds, 3, &mut Vec::new()).unwrap();
        case.server.fail(DATA, Fault::Flip(20), 1);
        let found = ds.select(&"label >= 30".parse().unwrap(), &Default::default()).unwrap();
        assert_eq!(found.0.len(), 70);
        assert_eq!(case.server.faults_left(), 0);
    }
}

/// Wherever a bit of an index file or a pack flips, the file is read once more.
#[test]
fn a_flipped_bit_in_an_index_file_is_read_again() {
    let case = Case::new("s3");
    let names = ["a.tfrecord", "b.tfrecord"];
    names.into_iter().zip(0..).for_each(|(name, k)| case.set(name, shard(k..k + 1)));
    let paths = names.map(|name| case.url(name).into());
    let built = tfseek::index::write_pack("all", &paths, &case.index().store(case.store())).unwrap().1;
    for (name, index) in names.iter().zip(&built.indexes) {
        let mut bytes = Vec::new();
        index.write_to(&mut bytes).unwrap();
        case.set(&format!(".tfseek/{name}.tfri"), bytes);
    }
    let store = case.store();
    let open = |name: &str| {
        let index = IndexOptions::new().mode(IndexMode::Require).default_dirs(None, None);
        DatasetOptions::new().index(index).store(store.clone()).open(case.url(name)).unwrap()
    };
    for (opened, file) in
        [("a.tfrecord", ".tfseek/a.tfrecord.tfri"), (".tfseek/all.tfrp", ".tfseek/all.tfrp")]
    {
        let object = case.object(file);
        for at in 0..case.server.get(&object).unwrap().bytes.len() {
            case.server.fail(&object, Fault::Flip(at), 1);
            let ds = open(opened);
            let last = ds.len() - 1;
            assert_eq!(label(&ds, last, &mut Vec::new()).unwrap(), last as i64, "{file}, byte {at}");
            assert_eq!((ds.warnings().len(), case.server.faults_left()), (0, 0), "{file}, byte {at}");
        }
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

/// Opens the first shard in a store that soon gives an answer up. It makes no request.
fn impatient(case: &Case, retries: usize) -> Arc<dyn Source> {
    let object = case.store().list(&case.url(NAMES[0]), false).unwrap().objects.remove(0);
    let mut options = case.remote();
    (options.retries, options.read_timeout) = (retries, Duration::from_millis(50));
    RemoteStore::new(options).open(&object).unwrap()
}

#[test]
fn an_answer_that_never_ends_is_an_error() {
    for case in Case::all() {
        let stored = case.server.get(&case.object(NAMES[0])).unwrap();
        let time = server::http_time(stored.time);
        let len = stored.bytes.len();
        let head = format!(
            "HTTP/1.1 206 X\r\nContent-Range: bytes 0-{}/{len}\r\nContent-Length: {len}\r\nETag: {}\r\nLast-Modified: {time}\r\n\r\n",
            len - 1,
            stored.tag
        );
        let hint = "HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n".to_owned();
        let pause = Duration::from_millis(5);
        for (fault, retries, expected) in [
            (Fault::Hold, 1, "no answer in time, after 2 attempts"),
            (Fault::Endless(hint.clone(), hint, pause), 1, "no answer in time, after 2 attempts"),
            (Fault::Endless(head, "x".to_owned(), pause), 0, "the answer is too slow"),
        ] {
            let source = impatient(&case, retries);
            case.server.fail(DATA, fault.clone(), 1000);
            let e = source.fetch(0..len as u64, &mut Vec::new()).unwrap_err();
            let text = e.to_string();
            // On a busy machine the next byte of a drip may be late, too.
            let late = retries == 0 && text.contains("no answer in time");
            assert!(text.contains(expected) || late, "{} {fault:?}: {text}", case.scheme);
            assert_no_secret(&text);
            case.server.clear_faults();
        }
    }
}

#[test]
fn what_would_fail_again_is_an_error_at_once() {
    let two_lengths = "HTTP/1.1 206 X\r\nContent-Length: 5\r\nContent-Length: 7\r\n\r\nabcde";
    let endless = format!("HTTP/1.1 206 X\r\nX: {}", "y".repeat(1 << 20)).leak();
    for case in Case::all() {
        let ds = indexed(&case, case.store());
        let url = case.server.url();
        let target = format!("{url}/bucket/data/{}", NAMES[0]);
        let redirect = |to: String| Fault::Answer(302, Vec::new(), ("Location", to));
        let mut faults = vec![
            (Fault::Raw(two_lengths), "the answer is invalid"),
            (Fault::Raw("220 ftp.example.com ready\r\n\r\n"), "the answer is invalid"),
            (Fault::Raw(endless), "the answer is invalid"),
        ];
        if matches!(case.scheme, "http" | "hf") {
            let head = "HTTP/1.1 206 X\r\nContent-Encoding: gzip\r\nContent-Length: 5\r\n\r\nabcde";
            faults.push((Fault::Raw(head), "the server ignores ranges: it compresses its answer"));
        }
        if case.scheme == "http" {
            faults.push((redirect(target), "too many redirects"));
            faults.push((redirect("file:///etc/passwd".to_owned()), "302 Found"));
        }
        for (fault, expected) in faults {
            case.server.fail(DATA, fault.clone(), 1000);
            case.server.counts();
            let text = ds.read(3, &mut Vec::new()).unwrap_err().to_string();
            let requests = case.server.counts().requests;
            assert!(
                text.contains(expected) && !text.contains("attempts"),
                "{} {fault:?}: {text}",
                case.scheme
            );
            assert!(requests <= 11, "{} {fault:?}: {requests} requests", case.scheme);
            case.server.clear_faults();
        }
        assert_eq!(label(&ds, 3, &mut Vec::new()).unwrap(), 3);
    }
}

#[test]
fn the_rest_of_a_short_answer_is_asked_for() {
    for case in Case::all() {
        let ds = indexed(&case, case.store());
        label(&ds, 3, &mut Vec::new()).unwrap();
        let mut faults = vec![Fault::Short(1), Fault::Short(7)];
        if matches!(case.scheme, "http" | "hf") {
            faults.push(Fault::Part(5));
        }
        for fault in faults {
            case.server.fail(DATA, fault, 2);
            assert_eq!(label(&ds, 3, &mut Vec::new()).unwrap(), 3);
            assert_eq!(case.server.faults_left(), 0);
        }
        case.server.fail(DATA, Fault::Short(1), 1000);
        let text = ds.read(3, &mut Vec::new()).unwrap_err().to_string();
        assert!(text.contains("the answer ended early: asked for"), "{}: {text}", case.scheme);
        case.server.clear_faults();
    }
}

#[test]
fn a_loader_that_is_dropped_waits_for_no_request() {
    use tfseek::Shuffle;
    use tfseek::loader::NextStep;
    for case in Case::all() {
        let ds = indexed(&case, case.store());
        label(&ds, 3, &mut Vec::new()).unwrap();
        for (threads, shuffle) in
            [(0, Shuffle::None), (1, Shuffle::Block), (4, Shuffle::Global), (0, Shuffle::Block)]
        {
            case.server.fail(DATA, Fault::Hold, 1000);
            let options = ds.record_loader().batch_size(100).shuffle(shuffle).seed(1).threads(threads);
            let mut loader = options.build().unwrap();
            let wait_for_requests = |loader: &mut tfseek::Loader| loop {
                match loader.next_within(Duration::from_millis(1)) {
                    NextStep::Timeout if case.server.running() > 0 => return,
                    NextStep::Timeout => {}
                    other => panic!("{threads}: {other:?}"),
                }
            };
            wait_for_requests(&mut loader);
            // An iteration that begins again asks again.
            case.server.clear_faults();
            loader.begin().unwrap();
            assert_eq!(loader.next().unwrap().unwrap().ids.len(), 100, "{} {threads}", case.scheme);
            loader.begin().unwrap();
            case.server.fail(DATA, Fault::Hold, 1000);
            wait_for_requests(&mut loader);
            drop(loader);
            // The requests have ended, although the server answered none.
            case.server.wait_for_running(0);
            case.server.clear_faults();
            assert_eq!(labels(&ds), (0..100).collect::<Vec<_>>());
        }
    }
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
        if refusals == 0 {
            // After the first answers the client may make more requests at a time.
            case.server.gather(32, 49);
        }
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
        assert!((2..64).contains(&most), "{most}");
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

/// A process without descriptors. Reads the URL of a server, and then uses all descriptors up.
#[cfg(unix)]
#[test]
#[allow(unsafe_code)]
fn a_lack_of_descriptors_is_told_at_once() {
    const SERVER: &str = "TFSEEK_TEST_SERVER";
    let Ok(url) = std::env::var(SERVER) else {
        let case = Case::new("s3");
        // No connection stays open.
        case.server.fail("x.tfrecord", Fault::Reset(usize::MAX), 1000);
        let mut reading = std::process::Command::new(std::env::current_exe().unwrap());
        reading.args(["--exact", "faults::a_lack_of_descriptors_is_told_at_once", "--nocapture"]);
        let output = reading.env(SERVER, case.server.url()).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        return;
    };
    let mut options = options_of(&url);
    options.retries = 0;
    let once = RemoteStore::new(options.clone());
    options.retries = 1000;
    let store = RemoteStore::new(options);
    for store in [&once, &store] {
        assert!(store.small("s3://bucket/data/x.tfrecord", 100).unwrap().is_none());
    }
    let limit = libc::rlimit { rlim_cur: 64, rlim_max: 64 };
    // SAFETY: `limit` is read.
    assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit) }, 0);
    let mut all = Vec::new();
    // The descriptor of an earlier connection may be free only later, and is then used up, too.
    let mut refused = |store: &RemoteStore, url: &str| loop {
        all.extend(std::iter::from_fn(|| std::fs::File::open("/dev/null").ok()));
        if let Err(error) = store.small(url, 100) {
            return error.to_string();
        }
    };
    // Without a connection, and without a client.
    for url in ["s3://bucket/data/x.tfrecord".to_owned(), format!("{url}/bucket/data/x.tfrecord")] {
        let text = refused(&once, &url);
        assert!(text.contains("too many open files"), "{text}");
        let text = refused(&store, &url);
        assert!(text.contains("too many open files") && !text.contains("attempts"), "{text}");
    }
    drop(all);
}
