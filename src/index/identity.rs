//! How an index knows its shard: size, time and two fingerprints, and what is done when they differ.

use super::layout::{GAPS, Header};
use crate::error::{Error, IndexError};
pub(crate) use crate::io::Stamp;
use crate::io::{Compression, ReadAt};
use std::io;
use xxhash_rust::xxh3::{xxh3_64, xxh3_128};

/// Bytes under a fingerprint, at most.
const FINGERPRINT: u64 = 64 << 10;

/// What an index that was found is good for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It is of this very file.
    Accept,
    /// It is of the same bytes with another time: a copy, a touch, a sync from a store.
    Moved,
    /// The file has grown: what was known still holds.
    Extend,
    /// It is of something else.
    Rebuild(&'static str),
}

/// The table of docs/index.md §2, row by row. `fingerprints` is asked only when size or time differ.
pub(crate) fn judge(
    known: &Header,
    now: Stamp,
    fingerprints: impl FnOnce(u64) -> io::Result<(u64, u64)>,
) -> io::Result<Verdict> {
    if now.size == known.data_size && now.mtime_ns == known.mtime_ns {
        return Ok(Verdict::Accept);
    }
    if known.has(GAPS) {
        return Ok(Verdict::Rebuild("the shard has changed, and damage was skipped when it was indexed"));
    }
    if now.size < known.indexed_end {
        return Ok(Verdict::Rebuild("the shard is shorter than its index"));
    }
    if fingerprints(known.indexed_end)? != (known.fp_head, known.fp_tail) {
        return Ok(Verdict::Rebuild("the shard's bytes are others"));
    }
    Ok(if now.size == known.data_size && now.size == known.indexed_end {
        Verdict::Moved
    } else if known.compression() == Compression::None {
        Verdict::Extend
    } else {
        Verdict::Rebuild("the compressed shard has another size")
    })
}

/// The error of an index that is not its shard's any more.
#[cold]
pub(crate) fn stale(known: &Header, now: Stamp, why: &str) -> Error {
    let reason = format!(
        "{why}: {} bytes of time {} ns were indexed, {} bytes of time {} ns are there",
        known.data_size, known.mtime_ns, now.size, now.mtime_ns
    );
    IndexError::Stale { reason: reason.into() }.into()
}

/// XXH3-64 of the first and of the last 64 KiB before `indexed_end`.
pub(crate) fn fingerprints(file: &(impl ReadAt + ?Sized), indexed_end: u64) -> io::Result<(u64, u64)> {
    let len = indexed_end.min(FINGERPRINT);
    let mut buf = vec![0; len as usize];
    file.read_exact_at(&mut buf, 0)?;
    let head = xxh3_64(&buf);
    if indexed_end > len {
        file.read_exact_at(&mut buf, indexed_end - len)?;
    }
    Ok((head, xxh3_64(&buf)))
}

/// XXH3-128 as 32 hex digits.
pub(crate) fn hex128(bytes: &[u8]) -> String {
    format!("{:032x}", xxh3_128(bytes))
}

/// The dataset's fingerprint over its shards' headers, in their order. Neither paths nor times are in it, so a copy has
/// the same.
pub(crate) fn of_dataset<'a>(shards: impl Iterator<Item = &'a Header>) -> [u8; 16] {
    let mut bytes = Vec::new();
    for h in shards {
        for field in [h.n_records, h.indexed_end, h.fp_head, h.fp_tail] {
            bytes.extend(field.to_le_bytes());
        }
    }
    // The order of the hex digits.
    xxh3_128(&bytes).to_be_bytes()
}

#[cfg(test)]
mod tests {
    use super::super::layout::{GZIP, TORN};
    use super::*;

    #[test]
    fn of_nothing() {
        assert_eq!(fingerprints([].as_slice(), 0).unwrap(), (0x2d06_8005_38d3_94c2, 0x2d06_8005_38d3_94c2));
        assert_eq!(of_dataset([].into_iter()), 0x99aa_06d3_0147_98d8_6001_c324_468d_497fu128.to_be_bytes());
        assert_eq!(hex128(b""), "99aa06d3014798d86001c324468d497f");
    }

    #[test]
    fn head_and_tail() {
        let bytes: Vec<u8> = (0..200_000u32).map(|i| (i / 7) as u8).collect();
        let want = (xxh3_64(&bytes[..65536]), xxh3_64(&bytes[150_000 - 65536..150_000]));
        assert_eq!(fingerprints(bytes.as_slice(), 150_000).unwrap(), want);
    }

    #[test]
    fn the_table() {
        let plain = Header {
            data_size: 100,
            indexed_end: 100,
            mtime_ns: 5,
            fp_head: 1,
            fp_tail: 2,
            ..Header::default()
        };
        let torn = Header { indexed_end: 90, flags: TORN, ..plain };
        let gaps = Header { flags: GAPS, ..plain };
        let gzip = Header { flags: GZIP, ..plain };
        let now = |h: &Header, size, mtime_ns, fp| judge(h, Stamp { size, mtime_ns }, |_| Ok(fp)).unwrap();
        let same = (1, 2);
        assert_eq!(
            judge(&plain, Stamp { size: 100, mtime_ns: 5 }, |_| panic!("read")).unwrap(),
            Verdict::Accept
        );
        assert_eq!(now(&torn, 100, 5, (0, 0)), Verdict::Accept);
        assert!(matches!(now(&gaps, 100, 6, same), Verdict::Rebuild(_)));
        assert!(matches!(now(&plain, 100, 6, (1, 3)), Verdict::Rebuild(_)));
        assert!(matches!(now(&plain, 99, 5, same), Verdict::Rebuild(_)));
        assert_eq!(now(&plain, 100, 6, same), Verdict::Moved);
        assert_eq!(now(&gzip, 100, 6, same), Verdict::Moved);
        assert_eq!(now(&plain, 101, 6, same), Verdict::Extend);
        assert_eq!(now(&plain, 101, 5, same), Verdict::Extend);
        assert_eq!(now(&torn, 100, 6, same), Verdict::Extend);
        assert_eq!(now(&torn, 95, 6, same), Verdict::Extend);
        assert!(matches!(now(&gzip, 101, 6, same), Verdict::Rebuild(_)));
    }
}
