//! Comparison of a shard with the one that a file about it was made from: by size and times, or by the
//! fingerprints that the file stores.

use super::layout::{GAPS, IndexHeader};
use crate::error::{Error, IndexError};
use crate::io::{Source, Stamp, read_exact_at};
use std::io;
use xxhash_rust::xxh3::{xxh3_64, xxh3_128};

/// Maximum number of bytes that a fingerprint covers.
const FINGERPRINT: u64 = 64 << 10;

pub(super) const SHORTER: &str = "the shard is shorter than its indexed part";
pub(super) const OTHER_CONTENT: &str = "the content of the shard has changed";

/// The result of comparing size and times of a shard with those in an index file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sameness {
    Same,
    /// Size or time differ.
    Changed,
    /// The size is equal, and nothing tells whether the bytes are. Fingerprints may.
    Unknown,
}

/// Compares size and times of a shard with those that an index file has, which was last written at
/// `saved_ns`.
///
/// An object without a time is unknown. So is a file that was changed after the index file was written: by a
/// program that restored size and time, or only in its name, its owner or its mode.
pub(crate) fn sameness(known: &IndexHeader, saved_ns: Option<i64>, now: &Stamp) -> Sameness {
    match now.modified_ns {
        _ if now.size != known.data_size => Sameness::Changed,
        None => Sameness::Unknown,
        Some(time) if time != known.mtime_ns => Sameness::Changed,
        // Two events within one clock tick have the same time.
        Some(_) => match (now.changed_ns, saved_ns) {
            (None, _) => Sameness::Same,
            (Some(changed), Some(saved)) if changed < saved => Sameness::Same,
            _ => Sameness::Unknown,
        },
    }
}

/// The result of comparing an index with its shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Staleness {
    /// Size and times tell that it is the same.
    Fresh,
    /// The bytes are the same as far as the fingerprints tell: after a copy, a `touch` or a download, or
    /// without a time.
    Moved,
    /// The shard has grown, or the bytes after its last whole record have changed, and the indexed part is
    /// unchanged.
    Grown,
    /// The shard has other content. The field is the reason.
    Stale(&'static str),
}

/// Compares an index with its shard, by the table in docs/index.md §2. `fingerprints` is called only if size
/// and times do not decide.
pub(crate) fn compare(
    known: &IndexHeader,
    sameness: Sameness,
    now: &Stamp,
    fingerprints: impl FnOnce() -> io::Result<(u64, u64)>,
) -> io::Result<Staleness> {
    if sameness == Sameness::Same {
        return Ok(Staleness::Fresh);
    }
    let same_size = now.size == known.data_size;
    // Then the fingerprints decide, and nothing tells that other bytes have changed.
    let is_unknown = sameness == Sameness::Unknown;
    if known.has(GAPS) && !is_unknown {
        return Ok(Staleness::Stale(
            "the shard has changed, and damaged records were skipped when it was indexed",
        ));
    }
    if now.size < known.indexed_end {
        return Ok(Staleness::Stale(SHORTER));
    }
    if fingerprints()? != (known.fp_head, known.fp_tail) {
        return Ok(Staleness::Stale(OTHER_CONTENT));
    }
    Ok(if same_size && (now.size == known.indexed_end || is_unknown) {
        Staleness::Moved
    } else if known.compression().format().is_some_and(|format| !format.has_members()) {
        Staleness::Stale("the size of the compressed shard has changed")
    } else {
        Staleness::Grown
    })
}

/// Returns the reason why the index of a shard that is [`Staleness::Grown`] does not cover all of it. After a
/// torn tail, a shard may have changed without having grown.
pub(crate) fn why_partial(known: &IndexHeader, now: &Stamp) -> &'static str {
    if now.size > known.data_size { "the shard has grown" } else { "the shard has changed" }
}

/// Returns true if two indexes describe the same records: their number, and the bytes that the fingerprints
/// cover.
pub(crate) fn same_records(a: &IndexHeader, b: &IndexHeader) -> bool {
    let identity = |h: &IndexHeader| (h.n_records, h.indexed_end, h.stream_end, h.fp_head, h.fp_tail);
    identity(a) == identity(b)
}

/// Returns the error of an index that no longer matches its shard.
#[cold]
pub(crate) fn stale(known: &IndexHeader, now: &Stamp, why: &str) -> Error {
    let text = |size: u64, mtime_ns: i64| match mtime_ns {
        i64::MIN => format!("{size} bytes"),
        time => format!("{size} bytes with time {time} ns"),
    };
    let expected = text(known.data_size, known.mtime_ns);
    let reason = format!("{why}: expected {expected}, found {}", text(now.size, now.mtime_ns()));
    IndexError::Stale { reason: reason.into() }.into()
}

/// Returns the XXH3-64 of the first 64 KiB of a file, and of the 64 KiB that end at `indexed_end`.
pub(crate) fn fingerprints<S: Source + ?Sized>(file: &S, indexed_end: u64) -> io::Result<(u64, u64)> {
    let (len, tail) = announce_fingerprints(file, indexed_end);
    let mut buf = vec![0; len as usize];
    read_exact_at(file, &mut buf, 0)?;
    let head = xxh3_64(&buf);
    if tail > 0 {
        read_exact_at(file, &mut buf, tail)?;
    }
    Ok((head, xxh3_64(&buf)))
}

/// Returns the fingerprints of a shard, to be compared with those in an index. If they differ, the bytes are
/// read once more where a bit may have changed on its way.
pub(crate) fn fingerprints_beside<S: Source + ?Sized>(
    file: &S,
    known: &IndexHeader,
) -> io::Result<(u64, u64)> {
    let end = known.indexed_end;
    let len = end.min(FINGERPRINT);
    loop {
        let found = fingerprints(file, end)?;
        let is_same = found == (known.fp_head, known.fp_tail);
        if is_same || ![0..len, end - len..end].map(|range| file.distrust(&range)).contains(&true) {
            return Ok(found);
        }
    }
}

/// Announces the bytes of the [`fingerprints`]. Returns their number, and the offset of the second range, or
/// 0 if there is one.
pub(crate) fn announce_fingerprints<S: Source + ?Sized>(file: &S, indexed_end: u64) -> (u64, u64) {
    let len = indexed_end.min(FINGERPRINT);
    let tail = indexed_end - len;
    // All announced bytes must be read, because a store keeps them until then.
    let both = [0..len, tail..indexed_end];
    file.want(if tail > 0 { &both[..] } else { &both[..1] });
    (len, tail)
}

/// Returns the XXH3-128 of `bytes` as 32 hex digits.
pub(crate) fn hex128(bytes: &[u8]) -> String {
    format!("{:032x}", xxh3_128(bytes))
}

/// Returns the fingerprint of a dataset: a hash over the headers of its shards, in order. It covers no paths
/// and no times, so a copy has the same fingerprint.
pub(crate) fn dataset_hash<'a>(shards: impl Iterator<Item = &'a IndexHeader>) -> [u8; 16] {
    let mut bytes = Vec::new();
    for h in shards {
        for field in [h.n_records, h.indexed_end, h.fp_head, h.fp_tail] {
            bytes.extend(field.to_le_bytes());
        }
    }
    // Big-endian is the order of the hex digits.
    xxh3_128(&bytes).to_be_bytes()
}

#[cfg(test)]
mod tests {
    use super::super::layout::{GZIP, TORN, ZLIB};
    use super::*;
    use crate::io::flipped::Flipped;

    fn at(size: u64, mtime_ns: i64) -> Stamp {
        Stamp { modified_ns: Some(mtime_ns), ..Stamp::new(size) }
    }

    #[test]
    fn without_a_time_fingerprints_decide() {
        let base = IndexHeader {
            data_size: 100,
            indexed_end: 100,
            fp_head: 1,
            fp_tail: 2,
            ..IndexHeader::default()
        };
        for mtime_ns in [i64::MIN, 5] {
            for (indexed_end, flags) in [(100, 0), (90, TORN), (90, GAPS | TORN)] {
                let known = IndexHeader { mtime_ns, indexed_end, flags, ..base };
                let now = |size, fp| {
                    let now = Stamp::new(size);
                    compare(&known, sameness(&known, Some(9), &now), &now, || Ok(fp)).unwrap()
                };
                assert_eq!(now(100, (1, 2)), Staleness::Moved);
                assert!(matches!(now(100, (1, 3)), Staleness::Stale(_)));
                assert_ne!(now(101, (1, 2)), Staleness::Moved);
            }
        }
    }

    #[test]
    fn a_file_that_changed_after_its_index_is_unknown() {
        let known = IndexHeader { data_size: 100, mtime_ns: 5, flags: GAPS, ..IndexHeader::default() };
        let file = Stamp { changed_ns: Some(7), ..at(100, 5) };
        let sameness = |saved, now: &Stamp| super::sameness(&known, saved, now);
        assert_eq!([Some(8), Some(7), Some(6), None].map(|saved| sameness(saved, &file)), {
            use Sameness::{Same, Unknown};
            [Same, Unknown, Unknown, Unknown]
        });
        assert_eq!(sameness(Some(8), &Stamp { size: 99, ..file.clone() }), Sameness::Changed);
        assert_eq!(sameness(Some(8), &Stamp { modified_ns: Some(6), ..file.clone() }), Sameness::Changed);
        assert_eq!(sameness(None, &at(100, 5)), Sameness::Same);
        let decided = |fp| compare(&known, Sameness::Unknown, &file, || Ok(fp)).unwrap();
        assert_eq!((decided((0, 0)), decided((0, 1))), (Staleness::Moved, Staleness::Stale(OTHER_CONTENT)));
    }

    #[test]
    fn fingerprints_of_no_bytes() {
        assert_eq!(fingerprints([].as_slice(), 0).unwrap(), (0x2d06_8005_38d3_94c2, 0x2d06_8005_38d3_94c2));
        assert_eq!(dataset_hash([].into_iter()), 0x99aa_06d3_0147_98d8_6001_c324_468d_497fu128.to_be_bytes());
        assert_eq!(hex128(b""), "99aa06d3014798d86001c324468d497f");
    }

    #[test]
    fn head_and_tail() {
        let bytes: Vec<u8> = (0..200_000u32).map(|i| (i / 7) as u8).collect();
        let want = (xxh3_64(&bytes[..65536]), xxh3_64(&bytes[150_000 - 65536..150_000]));
        assert_eq!(fingerprints(bytes.as_slice(), 150_000).unwrap(), want);
    }

    #[test]
    fn bits_that_were_flipped_on_their_way_make_no_other_shard() {
        let bytes: Vec<u8> = (0..200_000u32).map(|i| (i / 7) as u8).collect();
        let (fp_head, fp_tail) = fingerprints(bytes.as_slice(), 150_000).unwrap();
        let known = IndexHeader { indexed_end: 150_000, fp_head, fp_tail, ..IndexHeader::default() };
        for wrong in [0, 1, 65_534, 149_998, 149_999] {
            let file = Flipped::new(bytes.clone(), wrong);
            assert_eq!(fingerprints_beside(&file, &known).unwrap(), (fp_head, fp_tail), "{wrong}");
            // Bytes that stay wrong are those of another shard.
            let mut other = bytes.clone();
            other[wrong] ^= 16;
            assert_ne!(fingerprints_beside(&Flipped::new(other, 2), &known).unwrap(), (fp_head, fp_tail));
        }
    }

    #[test]
    fn each_row_of_the_staleness_table() {
        let plain = IndexHeader {
            data_size: 100,
            indexed_end: 100,
            mtime_ns: 5,
            fp_head: 1,
            fp_tail: 2,
            ..IndexHeader::default()
        };
        let torn = IndexHeader { indexed_end: 90, flags: TORN, ..plain };
        let gaps = IndexHeader { flags: GAPS, ..plain };
        let gzip = IndexHeader { flags: GZIP, ..plain };
        let zlib = IndexHeader { flags: ZLIB, ..plain };
        let now = |h: &IndexHeader, size, mtime_ns, fp| {
            let now = at(size, mtime_ns);
            compare(h, sameness(h, None, &now), &now, || Ok(fp)).unwrap()
        };
        let same = (1, 2);
        let equal = sameness(&plain, None, &at(100, 5));
        assert_eq!(compare(&plain, equal, &at(100, 5), || panic!("read")).unwrap(), Staleness::Fresh);
        assert_eq!(now(&torn, 100, 5, (0, 0)), Staleness::Fresh);
        assert!(matches!(now(&gaps, 100, 6, same), Staleness::Stale(_)));
        assert!(matches!(now(&plain, 100, 6, (1, 3)), Staleness::Stale(_)));
        assert!(matches!(now(&plain, 99, 5, same), Staleness::Stale(_)));
        assert_eq!(now(&plain, 100, 6, same), Staleness::Moved);
        assert_eq!(now(&gzip, 100, 6, same), Staleness::Moved);
        assert_eq!(now(&plain, 101, 6, same), Staleness::Grown);
        assert_eq!(now(&plain, 101, 5, same), Staleness::Grown);
        assert_eq!(now(&torn, 100, 6, same), Staleness::Grown);
        assert_eq!(now(&torn, 95, 6, same), Staleness::Grown);
        assert_eq!(now(&gzip, 101, 6, same), Staleness::Grown);
        assert!(matches!(now(&gzip, 101, 6, (1, 3)), Staleness::Stale(_)));
        assert!(matches!(now(&gzip, 99, 6, same), Staleness::Stale(_)));
        assert_eq!(now(&zlib, 100, 6, same), Staleness::Moved);
        assert!(matches!(now(&zlib, 101, 6, same), Staleness::Stale(_)));
        let why = |h, size| why_partial(h, &at(size, 6));
        assert_eq!((why(&plain, 101), why(&torn, 101)), ("the shard has grown", "the shard has grown"));
        assert_eq!((why(&torn, 100), why(&torn, 95)), ("the shard has changed", "the shard has changed"));
    }
}
