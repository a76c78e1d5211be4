//! Compressed shards: access in any order returns the records of a sequential read.

use std::fs;
use std::path::{Path, PathBuf};
use tfseek::column::ColumnOptions;
use tfseek::error::{CompressionError, IndexError};
use tfseek::frame::put_record;
use tfseek::index::IndexOptions;
use tfseek::order::Spec;
use tfseek::schema::FeatureSpec;
use tfseek::writer::WriterOptions;
use tfseek::{
    Compression, DType, Dataset, DatasetOptions, ErrorKind, ExampleBuilder, Filter, IndexMode, Schema,
    Shuffle, Warning,
};
use tfseek_testkit::rng::Rng;
use tfseek_testkit::shards::trust;

const SPACINGS: [u64; 3] = [4 << 10, 64 << 10, 1 << 20];

/// Returns an Example with a label, and bytes that are partly random.
fn payload(i: usize) -> Vec<u8> {
    let mut rng = Rng::new(i as u64);
    let noise: Vec<u8> = (0..rng.below(700)).map(|_| rng.below(256) as u8).collect();
    let text = format!("record {i} ").repeat(rng.below(40));
    ExampleBuilder::new()
        .int64("label", [i as i64 % 7])
        .bytes("text", [text.as_bytes(), &noise])
        .encode()
        .unwrap()
}

fn framed(range: std::ops::Range<usize>) -> Vec<u8> {
    let mut stream = Vec::new();
    range.for_each(|i| put_record(&mut stream, &payload(i)).unwrap());
    stream
}

/// Compresses bytes, as members of at most `member` bytes for gzip.
fn compress(stream: &[u8], compression: Compression, level: u32, member: usize) -> Vec<u8> {
    use std::io::Write;
    let level = flate2::Compression::new(level);
    match compression {
        Compression::Gzip => stream
            .chunks(member)
            .flat_map(|part| {
                let mut encoder = flate2::write::GzEncoder::new(Vec::new(), level);
                encoder.write_all(part).unwrap();
                encoder.finish().unwrap()
            })
            .collect(),
        Compression::Zlib => {
            let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), level);
            encoder.write_all(stream).unwrap();
            encoder.finish().unwrap()
        }
        _ => stream.to_vec(),
    }
}

fn options(dir: &Path, spacing: u64) -> DatasetOptions {
    let index =
        IndexOptions::new().index_dir(dir.join("index")).default_dirs(None, None).checkpoint_every(spacing);
    DatasetOptions::new().index(index)
}

/// Writes a set of plain, gzip and zlib shards, and returns their paths and their number of records.
fn write_set(dir: &Path) -> (Vec<PathBuf>, usize) {
    let shards: [(&str, Compression, u32, usize); 7] = [
        ("a-plain", Compression::None, 0, 0),
        ("b-gzip", Compression::Gzip, 6, usize::MAX),
        ("c-stored", Compression::Gzip, 0, usize::MAX),
        ("d-fast", Compression::Gzip, 1, usize::MAX),
        ("e-members", Compression::Gzip, 6, 100_003),
        ("f-bgzf", Compression::Gzip, 6, 5000),
        ("g-zlib", Compression::Zlib, 9, usize::MAX),
    ];
    let paths = shards.iter().enumerate().map(|(s, &(name, compression, level, member))| {
        let path = dir.join(format!("{name}.tfrecord"));
        fs::write(&path, compress(&framed(s * 400..(s + 1) * 400), compression, level, member)).unwrap();
        path
    });
    (paths.collect(), shards.len() * 400)
}

fn check_all(ds: &Dataset, n: usize) {
    assert_eq!(ds.len(), n as u64);
    let mut buf = Vec::new();
    let mut rng = Rng::new(7);
    for _ in 0..400 {
        let i = rng.below(n);
        assert_eq!(ds.read(i as u64, &mut buf).unwrap().payload(), payload(i), "record {i}");
    }
    let mut i = 0;
    ds.read_many(&(0..n as u64).collect::<Vec<_>>(), |record| {
        assert_eq!(record.payload(), payload(i), "record {i}");
        i += 1;
        Ok(())
    })
    .unwrap();
    assert_eq!(i, n);
}

#[test]
fn any_order_of_access_returns_the_records() {
    let dir = tempfile::tempdir().unwrap();
    let (paths, n) = write_set(dir.path());
    for spacing in SPACINGS {
        let dir = tempfile::tempdir().unwrap();
        let options = options(dir.path(), spacing);
        check_all(&options.open(&paths).unwrap(), n);
        // The saved indexes serve without a scan.
        let required = options.clone().index(
            IndexOptions::new()
                .index_dir(dir.path().join("index"))
                .default_dirs(None, None)
                .mode(IndexMode::Require),
        );
        check_all(&required.open(&paths).unwrap(), n);
        // Maps serve for the shard that is not compressed.
        // SAFETY: nothing writes to the shards or the indexes.
        #[allow(unsafe_code)]
        let mixed = unsafe { required.open_with_maps(&paths) }.unwrap();
        assert!(tfseek::Mapped::from_dataset(&mixed).is_none());
        check_all(&mixed, n);
        assert_eq!(mixed.fingerprint().unwrap(), required.open(&paths).unwrap().fingerprint().unwrap());
    }
}

#[test]
fn indexes_do_not_depend_on_how_they_are_made() {
    let dir = tempfile::tempdir().unwrap();
    let (paths, _) = write_set(dir.path());
    let index = |name: &str, threads| {
        let target = dir.path().join(name);
        let options = IndexOptions::new().index_dir(&target).default_dirs(None, None).threads(threads);
        tfseek::index::build_beside(&paths, &options)
            .unwrap()
            .into_iter()
            .for_each(|built| drop(built.unwrap()));
        let mut files: Vec<_> = fs::read_dir(&target).unwrap().map(|entry| entry.unwrap().path()).collect();
        files.sort();
        files.iter().map(|path| fs::read(path).unwrap()).collect::<Vec<_>>()
    };
    let (one, four) = (index("one", 1), index("four", 4));
    assert_eq!(one.len(), paths.len());
    assert!(one == four);
    for bytes in one {
        tfseek::Index::from_sidecar(bytes.into()).unwrap().verify().unwrap();
    }
}

#[test]
fn columns_filters_and_loaders_work_on_compressed_shards() {
    let dir = tempfile::tempdir().unwrap();
    let (paths, n) = write_set(dir.path());
    let ds = options(dir.path(), 16 << 10).open(&paths).unwrap();
    let column = ds.column("label", &ColumnOptions::default()).unwrap();
    assert_eq!(column.count(), n as u64);
    let (selected, _) =
        ds.select(&"label == 3".parse::<Filter>().unwrap(), &ColumnOptions::default()).unwrap();
    assert_eq!(selected.len(), (0..n).filter(|i| i % 7 == 3).count() as u64);

    let schema =
        Schema::example().feature("label", FeatureSpec::fixed_len(&[], DType::Int64)).build().unwrap();
    for shuffle in [Shuffle::None, Shuffle::Global, Shuffle::Block] {
        for threads in [1, 4] {
            let loader = ds
                .loader(&schema)
                .batch_size(64)
                .shuffle(shuffle.clone())
                .seed(1)
                .threads(threads)
                .build()
                .unwrap();
            assert!(loader.warnings().is_empty(), "the segments fit into the cache");
            let mut seen = vec![false; n];
            for step in loader {
                let step = step.unwrap();
                for (&id, &label) in step.ids.iter().zip(step.batch().unwrap().int64("label").unwrap()) {
                    assert_eq!(label, id as i64 % 7);
                    assert!(!std::mem::replace(&mut seen[id as usize], true));
                }
            }
            assert!(seen.iter().all(|&seen| seen));
        }
    }
}

#[test]
fn threads_share_segments() {
    let dir = tempfile::tempdir().unwrap();
    let (paths, n) = write_set(dir.path());
    let ds = options(dir.path(), 64 << 10).open(&paths).unwrap();
    std::thread::scope(|scope| {
        for t in 0..8u64 {
            let ds = &ds;
            scope.spawn(move || {
                let (mut rng, mut buf) = (Rng::new(t / 2), Vec::new());
                for _ in 0..300 {
                    let i = rng.below(n);
                    assert_eq!(ds.read(i as u64, &mut buf).unwrap().payload(), payload(i));
                }
            });
        }
    });
}

/// A record longer than a segment, and one deflate block longer than the cache allows.
#[test]
fn long_records_and_blocks() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("long.tfrecord.gz");
    let zeros = vec![0; 40 << 20];
    let noise: Vec<u8> = {
        let mut rng = Rng::new(1);
        (0..3 << 20).map(|_| rng.below(256) as u8).collect()
    };
    let mut stream = Vec::new();
    for payload in [&b"first"[..], &noise, &zeros, b"last"] {
        put_record(&mut stream, payload).unwrap();
    }
    fs::write(&path, compress(&stream, Compression::Gzip, 9, usize::MAX)).unwrap();
    let ds = options(dir.path(), 64 << 10).open(&path).unwrap();
    let mut buf = Vec::new();
    for _ in 0..2 {
        for (i, want) in [&b"first"[..], &noise, &zeros, b"last"].into_iter().enumerate().rev() {
            assert!(ds.read(i as u64, &mut buf).unwrap().payload() == want, "record {i}");
        }
    }
    let small = options(dir.path(), 64 << 10).max_record(1 << 20).open(&path).unwrap();
    assert!(matches!(small.read(1, &mut buf).unwrap_err().kind(), ErrorKind::RecordTooLarge { .. }));
    assert_eq!(small.read(3, &mut buf).unwrap().payload(), b"last");
}

/// Blocks extend over checkpoints and shards, and some are longer than the cache keeps in one piece.
#[test]
fn block_orders_return_each_record_once() {
    let dir = tempfile::tempdir().unwrap();
    let (paths, n) = write_set(dir.path());
    for spacing in SPACINGS {
        let ds = options(dir.path(), spacing).open(&paths).unwrap();
        for (block, window, threads) in [(1, 1, 0), (7, 3, 1), (190, 2, 3), (401, 64, 2), (1 << 40, 1, 1)] {
            let order = Shuffle::Order(Spec::Block { block, window });
            let mut loader =
                ds.record_loader().batch_size(64).shuffle(order).threads(threads).build().unwrap();
            let mut seen = vec![false; n];
            for step in loader.by_ref().map(Result::unwrap) {
                for (&id, record) in step.ids.iter().zip(step.records().unwrap()) {
                    assert!(record.unwrap().payload() == payload(id as usize), "record {id}");
                    assert!(!std::mem::replace(&mut seen[id as usize], true), "record {id}");
                }
            }
            assert!(seen.into_iter().all(|seen| seen), "block {block}, window {window}");
        }
    }
}

#[test]
fn a_global_order_over_more_than_the_cache_is_warned_of() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("zeros.tfrecord.gz");
    let mut writer = WriterOptions { compression: Compression::Gzip, level: 1, ..WriterOptions::default() }
        .create(&path)
        .unwrap();
    let payload = vec![0; 1 << 20];
    (0..140).for_each(|_| writer.write(&payload).unwrap());
    writer.close().unwrap();
    let ds = options(dir.path(), 1 << 20).open(&path).unwrap();
    let warnings =
        |shuffle| ds.record_loader().batch_size(4).shuffle(shuffle).build().unwrap().warnings().to_vec();
    assert!(
        matches!(warnings(Shuffle::Global)[..], [Warning::ScatteredInflation { inflated_bytes }] if inflated_bytes == 140 * ((1 << 20) + 16))
    );
    assert!(warnings(Shuffle::None).is_empty() && warnings(Shuffle::Block).is_empty());
    // The sizes that a check of memory uses are those of decompressed records.
    assert_eq!(ds.known_bytes(), Some(140 * ((1 << 20) + 16)));
    // A window is kept whole, whatever its size.
    let order = Shuffle::Order(Spec::Block { block: 140, window: 1 });
    assert!(warnings(order).is_empty());
    // More segments than the cache holds.
    let mut buf = Vec::new();
    for i in (0..140).chain((0..140).rev()) {
        assert!(ds.read(i, &mut buf).unwrap().payload() == payload);
    }
}

#[test]
fn blocks_that_begin_far_from_a_checkpoint_are_warned_of() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("noise.tfrecord.gz");
    let mut writer = WriterOptions { compression: Compression::Gzip, level: 6, ..WriterOptions::default() }
        .create(&path)
        .unwrap();
    let payload = Rng::new(5).bytes(1 << 20);
    (0..140).for_each(|_| writer.write(&payload).unwrap());
    writer.close().unwrap();
    let ds = options(dir.path(), 1 << 20).open(&path).unwrap();
    let blocks = |bytes| ds.record_loader().batch_size(4).shuffle(Shuffle::Block).block_bytes(bytes).build();
    let found = blocks(1 << 20).unwrap().warnings().to_vec();
    // Decompression begins at the checkpoint before a block, on average half of their distance, which is 1
    // MiB and a little more.
    let [Warning::BlockStarts { block_bytes: 1_048_592, start_bytes, enough_bytes: 4_194_304 }] = found[..]
    else {
        panic!("{found:?}")
    };
    assert!((524_288..600_000).contains(&start_bytes), "{start_bytes}");
    let text = found[0].to_string();
    assert!(
        text.contains("in blocks of 1048592 decompressed bytes") && text.contains("blocks of 4194304 bytes")
    );
    assert_eq!(ds.record_loader().batch_size(4).shuffle(Shuffle::Block).build().unwrap().warnings(), found);
    assert_eq!(blocks(2 << 20).unwrap().warnings().len(), 1);
    // The named size is enough, although whole records do not fill it.
    assert!(blocks(4 << 20).unwrap().warnings().is_empty());
    // A single window is decompressed whole.
    let order = |block, window| Shuffle::Order(Spec::Block { block, window });
    let warned = |order| ds.record_loader().batch_size(4).shuffle(order).build().unwrap().warnings().len();
    assert_eq!([warned(order(1, 140)), warned(order(1, 139)), warned(order(4, 10))], [0, 1, 0]);
    // Sets that the cache holds are decompressed once.
    let first = 0..100;
    let few = ds.ranges(std::slice::from_ref(&first)).unwrap();
    assert!(few.record_loader().batch_size(4).shuffle(Shuffle::Block).build().unwrap().warnings().is_empty());
}

#[test]
fn files_that_cannot_be_read_to_their_end_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.tfrecord.gz");
    let whole = compress(&framed(0..100), Compression::Gzip, 6, 20_000);
    let open = || options(dir.path(), 4 << 10).open(&path);
    for (bytes, kind) in [
        (&whole[..whole.len() - 5], "cut"),
        (&whole[..whole.len() / 2], "cut"),
        (&[&whole[..], b"garbage"].concat(), "corrupt"),
    ] {
        fs::write(&path, bytes).unwrap();
        let e = open().unwrap_err();
        assert_eq!(e.location().path.as_deref(), Some(&*path));
        let found = match e.kind() {
            ErrorKind::Compression(CompressionError::Cut { .. }) => "cut",
            ErrorKind::Compression(CompressionError::Corrupt { .. }) => "corrupt",
            _ => panic!("{e}"),
        };
        assert_eq!(found, kind, "{e}");
    }
    let zlib = compress(&framed(0..100), Compression::Zlib, 6, 0);
    fs::write(&path, [&zlib[..], &zlib].concat()).unwrap();
    let e = open().unwrap_err();
    assert!(matches!(e.kind(), ErrorKind::Compression(CompressionError::TrailingData { .. })), "{e}");
    // A torn tail of the record stream.
    let stream = framed(0..100);
    fs::write(&path, compress(&stream[..stream.len() - 7], Compression::Gzip, 6, usize::MAX)).unwrap();
    assert!(matches!(open().unwrap_err().kind(), ErrorKind::Truncated { .. }));
    let tolerant = IndexOptions::new().mode(IndexMode::Memory).tail(tfseek::Tail::Tolerate);
    let ds = DatasetOptions::new().index(tolerant).open(&path).unwrap();
    assert_eq!(ds.len(), 99);
    assert_eq!(ds.read(98, &mut Vec::new()).unwrap().payload(), payload(98));
    // No bytes at all, and a stream without records.
    for bytes in [Vec::new(), compress(b"", Compression::Gzip, 6, 1), compress(b"", Compression::Zlib, 6, 0)]
    {
        fs::write(&path, bytes).unwrap();
        assert_eq!(open().unwrap().len(), 0);
    }
}

/// Damage after the index was built: an error, or the right record.
#[test]
fn damage_after_a_fresh_index_is_never_a_wrong_record() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.tfrecord.gz");
    let whole = compress(&framed(0..120), Compression::Gzip, 6, usize::MAX);
    fs::write(&path, &whole).unwrap();
    let mtime = fs::metadata(&path).unwrap().modified().unwrap();
    let options = options(dir.path(), 4 << 10);
    options.open(&path).unwrap();
    trust(&dir.path().join("index"));
    let (mut rng, mut errors, mut sound) = (Rng::new(3), 0, 0);
    for _ in 0..150 {
        let mut damaged = whole.clone();
        let bit = rng.below(whole.len() * 8);
        damaged[bit / 8] ^= 1 << (bit % 8);
        fs::write(&path, damaged).unwrap();
        fs::File::options().write(true).open(&path).unwrap().set_modified(mtime).unwrap();
        let Ok(ds) = options.open(&path) else { continue };
        let mut buf = Vec::new();
        for i in 0..120 {
            match ds.read(i, &mut buf) {
                Ok(record) => {
                    assert_eq!(record.payload(), payload(i as usize), "bit {bit}, record {i}");
                    sound += 1;
                }
                Err(e) => {
                    assert!(
                        e.is_data() || matches!(e.kind(), ErrorKind::Index(_)),
                        "bit {bit}, record {i}: {e}"
                    );
                    assert_eq!((e.location().path.as_deref(), e.location().record), (Some(&*path), Some(i)));
                    errors += 1;
                }
            }
        }
    }
    assert!(errors > 200 && sound > 1000, "{errors} errors, {sound} sound records");
    // A shard that shrank.
    fs::write(&path, &whole[..whole.len() / 2]).unwrap();
    fs::File::options().write(true).open(&path).unwrap().set_modified(mtime).unwrap();
    assert!(matches!(
        options.open(&path).unwrap_err().kind(),
        ErrorKind::Compression(_) | ErrorKind::Index(_)
    ));
}

/// Each bit of a sidecar with checkpoints: a refused or rebuilt index, an error, or the right records.
#[test]
fn flipped_bits_of_checkpoints_are_found() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.tfrecord.gz");
    fs::write(&path, compress(&framed(0..60), Compression::Gzip, 6, usize::MAX)).unwrap();
    let options = options(dir.path(), 8 << 10);
    options.open(&path).unwrap();
    let sidecar = dir.path().join("index").join("x.tfrecord.gz.tfri");
    let whole = fs::read(&sidecar).unwrap();
    assert!(whole.len() > 16 << 10, "{} bytes", whole.len());
    let require = IndexOptions::new()
        .index_dir(dir.path().join("index"))
        .default_dirs(None, None)
        .mode(IndexMode::Require);
    let require = DatasetOptions::new().index(require);
    let ids: Vec<u64> = (0..60).collect();
    let (mut rng, mut errors) = (Rng::new(1), 0);
    let bits = (0..600 * 8).step_by(5).chain((0..300).map(|_| rng.below(whole.len() * 8)));
    for bit in bits.collect::<Vec<_>>() {
        let mut damaged = whole.clone();
        damaged[bit / 8] ^= 1 << (bit % 8);
        fs::write(&sidecar, &damaged).unwrap();
        let Ok(ds) = require.open(&path) else {
            errors += 1;
            continue;
        };
        let mut i = 0;
        let read = ds.read_many(&ids, |record| {
            assert_eq!(record.payload(), payload(i), "bit {bit}");
            i += 1;
            Ok(())
        });
        if let Err(e) = read {
            assert!(
                matches!(
                    e.kind(),
                    ErrorKind::Index(IndexError::CorruptBlock { .. } | IndexError::Stale { .. })
                ),
                "bit {bit}: {e}"
            );
            errors += 1;
        }
    }
    assert!(errors > 500, "{errors}");
}

/// A sidecar without checkpoints, as a writer makes it, is replaced.
#[test]
fn an_index_without_checkpoints_is_not_used() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.tfrecord.gz");
    let index_dir = dir.path().join("index");
    let mut writer = WriterOptions {
        compression: Compression::Gzip,
        index: Some(IndexOptions::new().index_dir(&index_dir)),
        ..WriterOptions::default()
    }
    .create(&path)
    .unwrap();
    (0..200).for_each(|i| writer.write(&payload(i)).unwrap());
    writer.close().unwrap();
    let ds = options(dir.path(), 4 << 10).open(&path).unwrap();
    check_all(&ds, 200);
}
