//! Compressed shards: access by record number, and sidecars with hostile checkpoints.

use super::deflated::{FileEnd, deflated, inflated};
use super::index_files::repair_checksums;
use super::script::{Scratch, Script};
use crate::rng::Rng;
use std::fs;
use std::io::Cursor;
use std::path::{Path, PathBuf};
use tfseek::crc::masked;
use tfseek::frame::{HEADER_LEN, OVERHEAD, put_record};
use tfseek::index::{Index, IndexOptions, build_beside};
use tfseek::io::Region;
use tfseek::stream::StreamOptions;
use tfseek::{Compression, Dataset, DatasetOptions, ErrorKind, IndexMode, Tail};

/// Tests compressed shards: reads by record number and a sequential read return the records that a naive
/// decoder finds.
///
/// The first byte has the options. The rest is the file, or a script for the records, the blocks and members
/// in which they are compressed, and edits.
pub fn compressed(data: &[u8]) {
    let Some((&mode, rest)) = data.split_first() else { return };
    let options = Options {
        spacing: [1, 60, 700, 1 << 20][usize::from(mode & 3)],
        payloads: mode & 4 != 0,
        tail: if mode & 8 != 0 { Tail::Tolerate } else { Tail::Strict },
    };
    let mut script = Script(rest);
    if mode & 16 != 0 {
        return options.check(rest);
    }
    let stream = record_stream(&mut script, mode >> 5);
    let zlib = script.u8() % 4 == 3;
    let mut file = deflated(&stream, zlib, &mut script);
    assert_eq!(
        inflated(&file, if zlib { Compression::Zlib } else { Compression::Gzip }),
        (stream, FileEnd::Sound)
    );
    options.check(&file);
    if script.edit(&mut file).is_some() {
        options.check(&file);
    }
}

/// Makes records of repeated pieces of the script, so that a few bytes of it make several blocks.
fn record_stream(script: &mut Script<'_>, records: u8) -> Vec<u8> {
    let mut stream = Vec::new();
    for _ in 0..records {
        let (len, times) = (usize::from(script.u8() % 64), 1 + usize::from(script.u8() % 16));
        put_record(&mut stream, &script.take(len).repeat(times)).unwrap();
    }
    stream
}

/// Options of the readers.
struct Options {
    spacing: u64,
    payloads: bool,
    tail: Tail,
}

impl Options {
    fn check(&self, file: &[u8]) {
        let stream = StreamOptions { tail: self.tail, ..StreamOptions::default() }
            .read(Cursor::new(file.to_vec()), "memory");
        let mut stream = stream.unwrap();
        let (bytes, file_end) = match stream.compression() {
            Compression::None => (file.to_vec(), FileEnd::Sound),
            format => inflated(file, format),
        };
        let found = FramedRecords::of(&bytes);
        let tolerates = self.tail == Tail::Tolerate;
        let whole = (file_end == FileEnd::Sound || file_end == FileEnd::Torn && tolerates)
            && (found.fault.is_none() || found.fault == Some(Fault::Torn) && tolerates);

        let mut streamed = Vec::new();
        let end = loop {
            match stream.next() {
                Ok(Some(record)) => streamed.push(record.payload().to_vec()),
                Ok(None) => break Ok(()),
                Err(e) => break Err(e),
            }
        };
        let before_damage: Vec<_> = found.payloads.iter().map_while(|p| p.clone().ok()).collect();
        let all = before_damage.len() == found.payloads.len();
        if file_end != FileEnd::Damaged {
            assert_eq!(streamed, before_damage);
        } else {
            // Decoders return different numbers of bytes before damage.
            assert!(streamed.iter().zip(&before_damage).all(|(a, b)| a == b));
        }
        assert_eq!(end.is_ok(), whole && all, "{end:?}, {file_end:?}, {:?}", found.fault);
        let torn = end.is_ok() && (file_end == FileEnd::Torn || found.fault == Some(Fault::Torn));
        assert_eq!(stream.warnings().iter().any(|warning| warning.kind() == "torn_tail"), torn);

        let (folder, index) =
            (Scratch::new(), IndexOptions::new().default_dirs(None, None).mode(IndexMode::Memory));
        let path = folder.write("shard", file);
        let index = index.checkpoint_every(self.spacing).check_payloads(self.payloads).tail(self.tail);
        let opened = DatasetOptions::new().index(index).open(&path);
        assert_eq!(opened.is_ok(), whole && (all || !self.payloads), "{opened:?}, {:?}", found.fault);
        match opened {
            Ok(dataset) => {
                check_reads(&dataset, &found.payloads);
                check_sidecar(dataset.index(0).unwrap(), bytes.len());
            }
            Err(e) => assert!(!matches!(e.kind(), ErrorKind::Io(_)) && e.location().path.is_some(), "{e}"),
        }
    }
}

/// The records of a stream; an error is a payload with a wrong checksum.
struct FramedRecords {
    payloads: Vec<Result<Vec<u8>, ()>>,
    fault: Option<Fault>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    Torn,
    Header,
}

impl FramedRecords {
    fn of(stream: &[u8]) -> FramedRecords {
        let (mut payloads, mut rest) = (Vec::new(), stream);
        let fault = loop {
            if rest.is_empty() {
                break None;
            }
            let Some((header, after)) = rest.split_first_chunk::<HEADER_LEN>() else {
                break Some(Fault::Torn);
            };
            let len = u64::from_le_bytes(*header.first_chunk().unwrap());
            if masked(&len.to_le_bytes()) != u32::from_le_bytes(*header.last_chunk().unwrap()) {
                break Some(Fault::Header);
            }
            let len = usize::try_from(len).unwrap_or(usize::MAX);
            let footer = after.get(len..).and_then(|footer| footer.split_first_chunk());
            let Some((crc, next)) = footer else { break Some(Fault::Torn) };
            let payload = &after[..len];
            payloads.push(if masked(payload) == u32::from_le_bytes(*crc) {
                Ok(payload.to_vec())
            } else {
                Err(())
            });
            rest = next;
        };
        FramedRecords { payloads, fault }
    }
}

/// Reads all records one by one, then together, each time in another order.
fn check_reads(dataset: &Dataset, payloads: &[Result<Vec<u8>, ()>]) {
    let n = payloads.len() as u64;
    assert_eq!(dataset.len(), n);
    let mut buf = Vec::new();
    let mut rng = Rng::new(n);
    for _ in 0..2 * n {
        let i = rng.below_u64(n);
        match (dataset.read(i, &mut buf), &payloads[i as usize]) {
            (Ok(record), Ok(payload)) => assert_eq!(record.payload(), payload, "record {i}"),
            (Err(e), Err(())) => assert!(matches!(e.kind(), ErrorKind::CorruptData { .. }), "{e}"),
            (found, _) => panic!("record {i}: {found:?}"),
        }
    }
    let mut ids: Vec<u64> = (0..2 * n).map(|_| rng.below_u64(n)).collect();
    ids.retain(|&i| payloads[i as usize].is_ok());
    let mut wanted = ids.iter();
    let read = dataset.read_many(&ids, |record| {
        let i = *wanted.next().unwrap();
        assert_eq!(Ok(record.payload()), payloads[i as usize].as_deref().map_err(|_| ()), "record {i}");
        Ok(())
    });
    read.unwrap();
    assert!(wanted.next().is_none());
}

/// Checks that a sidecar with checkpoints can be written and opened.
fn check_sidecar(index: &Index, stream_len: usize) {
    let mut sidecar = Vec::new();
    index.write_to(&mut sidecar).unwrap();
    // Each checkpoint has an entry, and a window of at most the bytes before it.
    assert!(sidecar.len() < 1024 + 64 * (index.len() as usize + 1) + stream_len * (stream_len + 64));
    let again = Index::from_sidecar(Region::new(sidecar)).unwrap();
    again.verify().unwrap();
    assert_eq!(again.len(), index.len());
    for i in 0..index.len() {
        let (span, other) = (index.locate(i).unwrap(), again.locate(i).unwrap());
        assert_eq!(span, other);
        assert!(span.offset + span.payload_len + OVERHEAD as u64 <= stream_len as u64);
    }
}

/// Tests sidecars of compressed shards: a changed sidecar gives an error or the right record.
///
/// The first byte selects a valid shard, and the rest edits its sidecar. Checksums may be repaired, as an
/// attacker could. A record then may be another one of the shard, since its checksums hold, and never other
/// bytes.
pub fn checkpoints(data: &[u8]) {
    thread_local! {
        static SHARDS: Vec<ValidShard> = (0..4).map(ValidShard::new).collect();
    }
    let Some((&mode, rest)) = data.split_first() else { return };
    SHARDS.with(|shards| shards[usize::from(mode >> 1 & 3)].check(mode, rest));
}

/// A compressed shard with its sidecar.
struct ValidShard {
    _folder: Scratch,
    path: PathBuf,
    sidecar_path: PathBuf,
    sidecar: Vec<u8>,
    payloads: Vec<Vec<u8>>,
}

impl ValidShard {
    fn new(seed: u64) -> ValidShard {
        let (mut rng, folder) = (Rng::new(seed), Scratch::new());
        let payloads: Vec<_> = (0..12)
            .map(|_| {
                let len = rng.below(40);
                rng.bytes(len).repeat(1 + rng.below(6))
            })
            .collect();
        let mut stream = Vec::new();
        payloads.iter().for_each(|payload| put_record(&mut stream, payload).unwrap());
        let blocks = rng.bytes(120);
        let path = folder.write("shard", &deflated(&stream, seed == 3, &mut Script(&blocks)));
        let options =
            IndexOptions::new().default_dirs(None, None).checkpoint_every([1, 100, 300, 100][seed as usize]);
        build_beside(std::slice::from_ref(&path), &options).unwrap().remove(0).unwrap();
        let files = fs::read_dir(path.with_file_name(".tfseek")).unwrap();
        let sidecar_path = files.map(|file| file.unwrap().path()).next().unwrap();
        let sidecar = fs::read(&sidecar_path).unwrap();
        ValidShard { _folder: folder, path, sidecar_path, sidecar, payloads }
    }

    fn check(&self, mode: u8, edits: &[u8]) {
        let (mut sidecar, repair) = (self.sidecar.clone(), mode & 1 == 1);
        let edited = if mode & 8 != 0 {
            sidecar.truncate(128);
            sidecar.extend(edits);
            Some(false)
        } else {
            Script(edits).edit(&mut sidecar)
        };
        if repair {
            repair_checksums(&mut sidecar);
        }
        let exact = !repair && edited != Some(false);
        fs::write(&self.sidecar_path, &sidecar).unwrap();
        let Ok(dataset) = open_required(&self.path) else { return assert!(edited.is_some()) };
        let (n, mut buf) = (dataset.len().min(64), Vec::new());
        assert!(!exact || n == self.payloads.len() as u64);
        let is_right = |i: u64, payload: &[u8]| {
            if exact {
                self.payloads[i as usize] == payload
            } else {
                self.payloads.iter().any(|other| other == payload)
            }
        };
        for i in (0..n).rev() {
            match dataset.read(i, &mut buf) {
                Ok(record) => assert!(is_right(i, record.payload()), "record {i}"),
                Err(e) => assert!(edited.is_some() && e.location().record.is_some(), "{e}"),
            }
        }
        let (ids, mut next): (Vec<u64>, _) = ((0..n).collect(), 0);
        let read = dataset.read_many(&ids, |record| {
            assert!(is_right(next, record.payload()), "record {next}");
            next += 1;
            Ok(())
        });
        assert!(read.is_err() || next == n);
    }
}

fn open_required(path: &Path) -> tfseek::Result<Dataset> {
    let index = IndexOptions::new().default_dirs(None, None).mode(IndexMode::Require);
    DatasetOptions::new().index(index).open(path)
}
