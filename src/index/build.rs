//! Scanning one shard into an index.

use super::checkpoints::CheckpointTable;
use super::chunks::scan_chunks;
use super::identity::{announce_fingerprints, fingerprints};
use super::layout::{self, CHECKED, GAPS, IndexHeader, TORN};
use super::lookup::Index;
use super::losses::Losses;
use super::options::IndexOptions;
use super::progress::Work;
use super::salvage::{LossyScan, salvage_file, salvage_inflated};
use super::scan::{
    FileReader, SPARSE, SPARSE_OBJECT, ScanOutcome, ScanStart, scan_file, scan_stream, verified,
};
use super::sidecar::{Sidecar, SidecarTables};
use super::table::TableBuilder;
use crate::error::{At, Error, ErrorKind, IndexError, Result};
use crate::frame::Torn;
use crate::io::inflate::{CheckpointScan, Checkpoints};
use crate::io::{
    CompressedFormat, Compression, Map, OpenedShard, ReadRange, Region, Sequential, Source, Stamp,
    is_corrupt, open_regular, sniff, threads,
};
use crate::policy::{Damage, Verify};
use std::ops::Deref;
use std::path::Path;
use std::sync::Arc;

/// Scans a shard from its beginning, or from the end of the part that `old` covers. The scan of a map uses up
/// to `threads` threads. A compressed file is scanned by one: the start of its next member is known only when
/// the one before was decompressed.
pub(super) fn scan(
    shard: &Path,
    expected: &Stamp,
    old: Option<&Sidecar>,
    options: &IndexOptions,
    threads: usize,
    work: &Work,
) -> Result<Sidecar> {
    work.report(0)?;
    match options.storage.open(shard)? {
        OpenedShard::File(file) => {
            let map = |promise| Ok(Region::from(Map::open(&file, promise)?));
            let scan = ShardScan { file: &file, sparse: SPARSE, options, threads, work };
            scan.run(old, expected, || options.may_map.map(map).transpose())
        }
        OpenedShard::Object(source) => {
            let run = || {
                // What is announced twice is kept after the scan has read it.
                announce_fingerprints(&*source, source.len());
                let file = &Sequential::scan(Arc::clone(&source), options.storage.scans());
                let scan = ShardScan { file, sparse: SPARSE_OBJECT, options, threads, work };
                scan.run(old, expected, || Ok(source.whole().cloned()))
            };
            let found = run();
            let is_suspect = match &found {
                Err(e) => is_corrupt(e),
                // The reader of sound records asks for the bytes of a plain object again by itself.
                Ok(Sidecar { header, .. }) => header.has(GAPS) && header.compression() != Compression::None,
            };
            if is_suspect && source.distrust(&(0..source.len())) { run() } else { found }
        }
    }
}

/// The scan of an open shard.
struct ShardScan<'a, S> {
    file: &'a S,
    /// Mean record length from which only headers are read.
    sparse: u64,
    options: &'a IndexOptions,
    threads: usize,
    work: &'a Work,
}

impl<S: Source> ShardScan<'_, S> {
    /// Scans the shard. `old` was compared with it when its stamp was `expected`. `whole` returns all its
    /// bytes if they are mapped or in memory.
    fn run(
        self,
        old: Option<&Sidecar>,
        expected: &Stamp,
        whole: impl FnOnce() -> Result<Option<Region>>,
    ) -> Result<Sidecar> {
        let ShardScan { file, options, work, .. } = self;
        let stamp = file.stamp()?;
        let first = sniff::first_bytes(ReadRange { file, at: 0, end: stamp.size })?;
        let compression = sniff::compression(&first);
        // If the shard has changed since the comparison, or if a table of `old` is corrupt, the scan starts
        // at the beginning.
        let salvages_stream = options.damage == Damage::Skip && compression != Compression::None;
        let old = old.filter(|old| {
            stamp.is_like(expected) && old.header.compression() == compression && !salvages_stream
        });
        let resumed = old.and_then(|old| Some((old, resume(old, work).ok()?)));
        let checked =
            options.checks_payloads() && resumed.as_ref().is_none_or(|(old, _)| old.header.has(CHECKED));
        let old = resumed.as_ref().map(|(old, _)| *old);
        let (start, known) = resumed.map_or_else(Default::default, |(old, (start, points))| {
            (start, points.map(|points| (points, old.header.data_size)))
        });
        let state = (stamp.size, stamp.mtime_ns());
        let (scan, checkpoints, fps) = match compression.format() {
            None => {
                let (scan, fps) = self.plain(stamp.size, start, old, whole)?;
                (scan, None, fps)
            }
            Some(format) => {
                let (scan, checkpoints) = self.compressed(format, stamp.size, start, known)?;
                let checkpoints = CheckpointTable::build(checkpoints, options.checkpoint_every)?;
                (scan, Some(checkpoints), fingerprints(file, stamp.size)?)
            }
        };
        let sidecar = assemble(scan, checkpoints, compression, state, fps, checked)?;
        Ok(Sidecar { shard: Some(stamp), ..sidecar })
    }

    /// Returns the checksums that are verified.
    fn verify(&self) -> Verify {
        if self.options.unverified { Verify::None } else { verified(self.options.checks_payloads()) }
    }

    /// Scans the first `size` bytes of a plain shard. `old` has the records before the start. Also returns
    /// the fingerprints.
    fn plain<B: Deref<Target = [u8]>>(
        &self,
        size: u64,
        start: ScanStart,
        old: Option<&Sidecar>,
        whole: impl FnOnce() -> Result<Option<B>>,
    ) -> Result<(LossyScan, (u64, u64))> {
        let ShardScan { file, sparse, options, threads, work } = *self;
        if options.damage == Damage::Skip {
            let salvaged = salvage_file(file, size, start, old, work)?;
            let fps = fingerprints(file, salvaged.outcome.end)?;
            return Ok((salvaged, fps));
        }
        if !options.unverified
            && let Some(all) = whole()?
        {
            let bytes = usize::try_from(size).ok().and_then(|size| all.get(..size)).unwrap_or(&all);
            let scan = scan_chunks(bytes, start, options.checks_payloads(), threads, work)?;
            let fps = fingerprints(bytes, scan.end)?;
            return Ok((scan.into(), fps));
        }
        let scan = scan_file(file, size, start, self.verify(), sparse, work)?;
        let fps = fingerprints(file, scan.end)?;
        Ok((scan.into(), fps))
    }

    /// Scans the first `size` bytes of a compressed shard. `known` has the checkpoints before the start, and
    /// the number of bytes of the file before it. Also returns all checkpoints.
    fn compressed(
        &self,
        format: CompressedFormat,
        size: u64,
        start: ScanStart,
        known: Option<(Checkpoints, u64)>,
    ) -> Result<(LossyScan, Checkpoints)> {
        let ShardScan { file, options, work, .. } = *self;
        let spacing = options.checkpoint_every;
        if options.damage == Damage::Skip {
            return salvage_inflated(file, size, format, spacing, work);
        }
        let bytes = |pos| FileReader::new(file, pos..size, work);
        let inflated = match known {
            Some((points, at)) => CheckpointScan::after(bytes(at), format, spacing, points, at, start.at),
            None => CheckpointScan::new(bytes(0), format, spacing),
        };
        let mut inflated = inflated.tolerant(options.allows_torn());
        let mut outcome = scan_stream(&mut inflated, start, self.verify(), false, work)?;
        let torn = outcome.torn.map_or(0, |torn| torn.have);
        if let Some(left) = inflated.left_out() {
            let have = torn + left;
            outcome.torn = Some(Torn { need: have + 1, have });
        }
        let bytes = inflated.left_out().unwrap_or(0);
        let losses = Losses { inflated: torn, bytes, ranges: Vec::new() };
        Ok((LossyScan { outcome, lengths: None, losses }, inflated.into_checkpoints()))
    }
}

/// Returns the start of a scan that resumes where `old` ends, and the checkpoints of a compressed shard.
fn resume(old: &Sidecar, work: &Work) -> Result<(ScanStart, Option<Checkpoints>)> {
    let mut offsets = TableBuilder::offsets();
    for i in 0..old.header.n_records {
        if i % (1 << 20) == 0 {
            work.report(0)?;
        }
        offsets.push(old.offset(i)?);
    }
    // The last entry is the offset of the first new record. Reading it verifies its block.
    old.offset(old.header.n_records)?;
    Ok((ScanStart { offsets, at: old.header.stream_end }, old.known_checkpoints()?))
}

/// Makes the sidecar of a shard from the outcome of a scan.
fn assemble(
    scan: LossyScan,
    checkpoints: Option<CheckpointTable>,
    compression: Compression,
    (data_size, mtime_ns): (u64, i64),
    (fp_head, fp_tail): (u64, u64),
    checked: bool,
) -> Result<Sidecar> {
    let LossyScan { outcome: ScanOutcome { mut offsets, end, torn }, lengths, losses } = scan;
    let flag = |on: bool, flag: u32| if on { flag } else { 0 };
    let plain = compression == Compression::None;
    let torn_flag = flag(torn.is_some() || plain && end < data_size, TORN);
    let header = IndexHeader {
        n_records: offsets.len(),
        data_size,
        indexed_end: if plain { end } else { data_size },
        mtime_ns,
        fp_head,
        fp_tail,
        stream_end: end,
        flags: layout::compression_flags(compression)
            | torn_flag
            | flag(lengths.is_some(), GAPS)
            | flag(checked, CHECKED),
    };
    offsets.push(end);
    let offsets = offsets.finish()?;
    let losses = header.needs_losses().then(|| losses.encode());
    Ok(Sidecar::new(header, SidecarTables { offsets, lengths, checkpoints, losses }, torn))
}

/// Scans a shard in memory into an index. The index is not saved.
pub(crate) fn index_bytes(bytes: &[u8], options: &IndexOptions, work: &Work) -> Result<Index> {
    let hint = |e: Error| {
        let e = sniff::explain(e, bytes.get(..sniff::SNIFF_LEN).unwrap_or(bytes));
        if options.damage == Damage::Skip { sniff::without_records(e) } else { e }
    };
    let size = bytes.len() as u64;
    let threads = if options.damage == Damage::Skip { 1 } else { threads::threads(options.threads)? };
    let scan = ShardScan { file: &bytes, sparse: u64::MAX, options, threads, work };
    let found = scan.plain(size, ScanStart::default(), None, || Ok(Some(bytes)));
    let (scan, fps) = found.map_err(hint)?;
    let sidecar = assemble(scan, None, Compression::None, (size, 0), fps, options.checks_payloads())?;
    match sidecar.torn {
        Some(Torn { need, have }) if !options.allows_torn() => {
            let at = At {
                path: None,
                record: Some(sidecar.header.n_records),
                offset: Some(sidecar.header.stream_end),
            };
            Err(hint(Error::from(ErrorKind::Truncated { need, have }).at(at)))
        }
        _ => Ok(sidecar.into()),
    }
}

/// Builds the index of a shard from the offsets of its writer. Nothing is scanned. `end` is
/// the end of the last record in the record stream.
pub(crate) fn from_offsets(
    path: &Path,
    compression: Compression,
    offsets: TableBuilder,
    end: u64,
) -> Result<Sidecar> {
    let file = open_regular(path)?;
    let stamp = Stamp::of(&file.metadata()?)?;
    if compression == Compression::None && end != stamp.size {
        return Err(IndexError::Stale {
            reason: format!("expected records that end at byte {end}, found a file of {} bytes", stamp.size)
                .into(),
        }
        .into());
    }
    let fps = fingerprints(&file, stamp.size)?;
    let scan = ScanOutcome { offsets, end, torn: None }.into();
    let sidecar = assemble(scan, None, compression, (stamp.size, stamp.mtime_ns()), fps, true)?;
    Ok(Sidecar { shard: Some(stamp), ..sidecar })
}

#[cfg(test)]
mod tests {
    use super::super::lookup::Index;
    use super::super::open::{open_all, sidecar_for_written};
    use super::super::scan::scan_slice;
    use super::super::store;
    use super::super::store::Save;
    use super::*;
    use crate::error::ErrorKind;
    use crate::frame::put_record;
    use crate::policy::{IndexMode, Tail};
    use flate2::{Compression as Level, write::GzEncoder, write::ZlibEncoder};
    use std::io::Write;

    fn records(n: usize) -> Vec<u8> {
        let mut bytes = Vec::new();
        (0..n).for_each(|i| put_record(&mut bytes, &vec![i as u8; i % 50]).unwrap());
        bytes
    }

    fn pack(stream: &[u8], compression: Compression) -> Vec<u8> {
        if compression == Compression::Zlib {
            let mut w = ZlibEncoder::new(Vec::new(), Level::fast());
            w.write_all(stream).unwrap();
            return w.finish().unwrap();
        }
        // Two members, split inside a record.
        let (a, b) = stream.split_at(stream.len() / 2 + 3);
        let member = |part: &[u8]| {
            let mut w = GzEncoder::new(Vec::new(), Level::fast());
            w.write_all(part).unwrap();
            w.finish().unwrap()
        };
        [member(a), member(b)].concat()
    }

    fn open(path: &Path, options: &IndexOptions) -> Result<Index> {
        let work = Work::new(None);
        Ok(open_all(&[path], options, Save::BestEffort, &work)?.indexes.remove(0))
    }

    #[test]
    #[cfg_attr(miri, ignore = "Miri opens no file with O_NONBLOCK")]
    fn compressed_shards() {
        let stream = records(3000);
        for compression in [Compression::Gzip, Compression::Zlib] {
            let dir = tempfile::tempdir().unwrap();
            let path = dir.path().join("x");
            let packed = pack(&stream, compression);
            std::fs::write(&path, &packed).unwrap();
            let options = IndexOptions::new()
                .default_dirs(None, None)
                .index_dir(dir.path().join("i"))
                .check_payloads(true);
            let work = Work::new(None);
            let plain =
                scan_slice(&stream, ScanStart::default(), false, &work).unwrap().offsets.finish().unwrap();
            for mode in [IndexMode::Auto, IndexMode::Require] {
                let index = open(&path, &options.clone().mode(mode)).unwrap();
                assert_eq!((index.len(), index.stream_end()), (3000, stream.len() as u64));
                assert_eq!(
                    (index.data_size(), index.indexed_end()),
                    (packed.len() as u64, packed.len() as u64)
                );
                assert_eq!(index.compression(), compression);
                assert!((0..3000).all(|i| index.locate(i).unwrap().offset == plain.get(i).unwrap()));
                let header = index.header();
                let found = (header.fp_head, header.fp_tail);
                assert_eq!(found, fingerprints(packed.as_slice(), packed.len() as u64).unwrap());
            }
            // A torn tail.
            std::fs::write(&path, pack(&stream[..stream.len() - 5], compression)).unwrap();
            let e = open(&path, &options).unwrap_err();
            assert!(matches!(e.kind(), ErrorKind::Truncated { .. }), "{e}");
            let e = open(&path, &options).unwrap_err();
            assert!(matches!(e.kind(), ErrorKind::Index(IndexError::TornTail)) && e.is_data(), "{e}");
            let index = open(&path, &options.clone().tail(Tail::Tolerate)).unwrap();
            let torn: u64 = index.gaps().map(|gap| gap.unwrap().bytes()).sum();
            assert_eq!((index.len(), torn), (2999, 60));
            // Corrupt compressed bytes.
            let mut bad = packed.clone();
            bad[packed.len() / 3] ^= 0x55;
            std::fs::write(&path, bad).unwrap();
            assert_eq!(open(&path, &options).unwrap_err().location().path.as_deref(), Some(&*path));
            // An empty stream.
            std::fs::write(&path, pack(b"", Compression::Zlib)).unwrap();
            let empty = open(&path, &options).unwrap();
            assert_eq!((empty.len(), empty.stream_end()), (0, 0));
            assert!(open(&path, &options.clone().mode(IndexMode::Require)).is_ok());
        }
    }

    #[test]
    #[cfg(unix)] // Elsewhere an open file may keep its name.
    #[cfg_attr(miri, ignore = "Miri opens no file with O_NONBLOCK")]
    fn a_replaced_shard_is_not_the_indexed_one() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x");
        std::fs::write(&path, records(3000)).unwrap();
        let options = IndexOptions::new().default_dirs(None, None).mode(IndexMode::Memory);
        let index = open(&path, &options).unwrap();
        let indexed = std::fs::File::open(&path).unwrap();
        std::fs::write(dir.path().join("new"), records(500)).unwrap();
        std::fs::rename(dir.path().join("new"), &path).unwrap();
        index.check_file(&indexed, false).unwrap();
        let e = index.check_file(&std::fs::File::open(&path).unwrap(), false).unwrap_err();
        assert!(matches!(e.kind(), ErrorKind::Index(IndexError::Stale { .. })), "{e}");
    }

    #[test]
    #[cfg_attr(miri, ignore = "Miri opens no file with O_NONBLOCK")]
    fn a_writer_saves_the_same_index_as_a_checked_scan() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x");
        let bytes = records(2500);
        std::fs::write(&path, &bytes).unwrap();
        let work = Work::new(None);
        let offsets = scan_slice(&bytes, ScanStart::default(), false, &work).unwrap().offsets;
        let options = IndexOptions::new().default_dirs(None, None);
        let end = bytes.len() as u64;
        let written = sidecar_for_written(&path, Compression::None, offsets, end, &options).unwrap();
        assert_eq!(written.file(), Some(&*store::hidden_sidecar(&path)));
        let scanned = open(&path, &options.check_payloads(true).mode(IndexMode::Memory)).unwrap();
        let mut want = Vec::new();
        scanned.write_to(&mut want).unwrap();
        assert_eq!(std::fs::read(store::hidden_sidecar(&path)).unwrap(), want);
        let e =
            sidecar_for_written(&path, Compression::None, TableBuilder::offsets(), 0, &IndexOptions::new());
        assert!(e.is_err(), "the offsets belong to another file");
    }
}
