//! Tests of whole runs over files.

use super::*;
use crate::work::damage::{GapReason, scan};
use std::fs;
use tempfile::TempDir;
use tfseek::Compression;
use tfseek::frame::put_record;
use tfseek::writer::WriterOptions;
use tfseek_testkit::rng::Rng;

const MAX: u64 = 1 << 30;

fn gap_bytes(report: &SalvageReport) -> u64 {
    report.gaps.iter().map(|gap| gap.len).sum()
}

struct Folder(TempDir);

impl Folder {
    fn new() -> Folder {
        Folder(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.0.path().join(name)
    }

    /// Salvages these bytes, and returns the report, the records and the rest.
    fn run(&self, bytes: &[u8]) -> (SalvageReport, Vec<u8>, Vec<u8>) {
        let input = self.path("in");
        let out = self.path("out");
        let rest = self.path("rest");
        fs::write(&input, bytes).unwrap();
        let mut read = 0;
        let report = salvage(&input, &out, Some(&rest), Existing::Replace, MAX, &mut |n| read += n).unwrap();
        assert!(read >= bytes.len() as u64 || report.gaps.iter().any(|gap| gap.file.is_some()), "{read}");
        assert_eq!(fs::read(&input).unwrap(), bytes);
        assert_eq!(scan(&fs::File::open(&input).unwrap(), &input, MAX).unwrap(), report);
        let out = fs::read(out).unwrap();
        let rest = fs::read(rest).unwrap();
        assert_eq!((report.bytes, gap_bytes(&report)), (out.len() as u64, rest.len() as u64));
        (report, out, rest)
    }
}

fn payload(i: usize) -> Vec<u8> {
    (0..40 + i % 17).map(|k| (i * 31 + k * k) as u8).collect()
}

fn records(range: std::ops::Range<usize>) -> Vec<u8> {
    let mut file = Vec::new();
    range.for_each(|i| put_record(&mut file, &payload(i)).unwrap());
    file
}

fn member(folder: &Folder, range: std::ops::Range<usize>) -> Vec<u8> {
    let path = folder.path("member");
    let mut writer =
        WriterOptions { compression: Compression::Gzip, ..WriterOptions::default() }.create(&path).unwrap();
    range.for_each(|i| writer.write(&payload(i)).unwrap());
    writer.close().unwrap();
    fs::read(path).unwrap()
}

#[test]
fn records_are_copied_and_gaps_kept_apart() {
    let folder = Folder::new();
    let sound = records(0..100);
    let (report, out, rest) = folder.run(&sound);
    assert_eq!((report.records, report.gaps.len(), out == sound, rest.len()), (100, 0, true, 0));
    let before = records(0..7).len();
    let damaged = records(0..8).len();
    let mut bad = sound.clone();
    bad[before + 20] ^= 4;
    let torn = records(0..99).len() as u64;
    let (report, out, rest) = folder.run(&bad[..bad.len() - 1]);
    assert_eq!(out, [&sound[..before], &sound[damaged..torn as usize]].concat());
    assert_eq!(rest, [&bad[before..damaged], &bad[torn as usize..bad.len() - 1]].concat());
    let gap = &report.gaps[0];
    assert_eq!(
        (gap.offset, gap.len, gap.reason),
        (before as u64, (damaged - before) as u64, GapReason::PayloadCrc)
    );
    assert_eq!((gap.record, gap.next_record, &gap.file), (Some(7), Some(8), &None));
    let gap = &report.gaps[1];
    assert_eq!((gap.offset, gap.reason, gap.next_record), (torn, GapReason::Truncated, None));
    assert_eq!((report.records, report.gaps.len()), (98, 2));
    let mut bad = sound.clone();
    bad[before] ^= 4;
    let (report, _, _) = folder.run(&bad);
    let gap = &report.gaps[0];
    assert_eq!((report.records, gap.reason, gap.record), (99, GapReason::LengthCrc, Some(7)));
    assert_eq!(gap.next_record, None);
}

#[test]
fn a_file_without_records_produces_no_output() {
    let folder = Folder::new();
    let input = folder.path("in");
    let out = folder.path("out");
    let rest = folder.path("rest");
    for (bytes, found) in
        [(&b"{\"a\": [1, 2, 3]}\n"[..], "JSON"), (&[0; 100], "zeros"), (&[7; 100], "length crc32c")]
    {
        fs::write(&input, bytes).unwrap();
        let e =
            salvage(&input, &out, Some(&rest), Existing::Replace, MAX, &mut |_| ()).unwrap_err().to_string();
        assert!(e.contains(found) && e.contains("in: "), "{e}");
        assert_eq!(fs::read_dir(folder.0.path()).unwrap().count(), 1);
    }
    let (report, out, _) = folder.run(b"");
    assert_eq!((report, out.len()), (SalvageReport::default(), 0));
    salvage(&folder.path("none"), &folder.path("x"), None, Existing::Replace, MAX, &mut |_| ()).unwrap_err();
    assert!(!folder.path("x").exists());
}

#[test]
fn gzip_goes_on_at_the_next_member() {
    let folder = Folder::new();
    let a = member(&folder, 0..50);
    let b = member(&folder, 50..90);
    let c = member(&folder, 90..200);
    let whole = [&a[..], &b, &c].concat();
    let all = records(0..200);
    let (report, out, _) = folder.run(&whole);
    assert_eq!((report.records, report.gaps.len(), out == all), (200, 0, true));
    let ends = records(0..50);
    let starts = records(90..200);
    // A flipped bit in every ninth byte of the second member.
    let mut lost = 0;
    for at in (a.len()..a.len() + b.len()).step_by(9) {
        let mut bad = whole.clone();
        bad[at] ^= 1 << (at % 8);
        let (report, out, _) = folder.run(&bad);
        assert!(out.starts_with(&ends) && out.ends_with(&starts), "{at}");
        assert!(report.records >= 160, "{at}");
        // Each record at most once, in order.
        let mut from = 0;
        for record in tfseek::frame::frames(&out) {
            let (_, payload) = record.unwrap();
            from = (from..200).find(|&i| self::payload(i) == payload).unwrap() + 1;
        }
        lost += 200 - report.records;
        for gap in report.gaps.iter().filter(|gap| gap.reason == GapReason::Inflate) {
            assert_eq!(gap.file.as_ref().unwrap().end, (a.len() + b.len()) as u64, "{at}");
        }
    }
    assert!(lost > 0);
    // Truncations, and garbage at the end.
    for cut in (a.len()..whole.len()).step_by(37) {
        let (report, out, _) = folder.run(&whole[..cut]);
        assert!(all.starts_with(&out), "{cut}");
        assert!(report.gaps.iter().all(|gap| gap.file.as_ref().is_none_or(|file| file.end == cut as u64)));
        assert!(report.records >= if cut >= a.len() + b.len() { 90 } else { 50 });
    }
    let (report, out, _) = folder.run(&[&whole[..], b"garbage"].concat());
    assert_eq!((out == all, report.gaps.len(), report.gaps[0].reason), (true, 1, GapReason::Inflate));
}

#[test]
fn records_may_cross_members() {
    let folder = Folder::new();
    let raw = records(0..30);
    let pieces: Vec<Vec<u8>> = raw.chunks(100).map(gzip).collect();
    let (report, out, _) = folder.run(&pieces.concat());
    assert_eq!((report.records, out == raw), (30, true));
    let mut bad = pieces.clone();
    let last = bad[5].len() - 9;
    bad[5][last] ^= 0xff;
    bad[5][12] ^= 0xff;
    let (report, out, _) = folder.run(&bad.concat());
    assert!((25..30).contains(&report.records), "{report:?}");
    assert_eq!(report.gaps.len(), 1);
    assert!(tfseek::frame::frames(&out).all(|frame| frame.is_ok()));
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut out = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::new(6));
    out.write_all(bytes).unwrap();
    out.finish().unwrap()
}

#[test]
fn zlib_keeps_the_records_before_damage() {
    let folder = Folder::new();
    let raw = records(0..300);
    let mut out = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::new(6));
    out.write_all(&raw).unwrap();
    let packed = out.finish().unwrap();
    let (report, out, _) = folder.run(&packed);
    assert_eq!((report.records, report.gaps.len(), out == raw), (300, 0, true));
    let (report, out, _) = folder.run(&packed[..packed.len() * 3 / 4]);
    assert!(report.records > 100 && raw.starts_with(&out) && report.gaps.len() == 1, "{report:?}");
    assert_eq!(report.gaps[0].reason, GapReason::Inflate);
}

/// Salvages copies of a file with flipped bits. Exactly the untouched records must come out.
fn flips(copies: usize, mean: usize) {
    let folder = Folder::new();
    let mut rng = Rng::new(5);
    let mut file = Vec::new();
    let mut starts = Vec::new();
    for i in 0..200 {
        starts.push(file.len());
        let payload: Vec<u8> = (0..mean + i).map(|_| rng.u64() as u8).collect();
        put_record(&mut file, &payload).unwrap();
    }
    starts.push(file.len());
    for n in [1, 20] {
        for _ in 0..copies {
            let mut bad = file.clone();
            let mut touched = [false; 200];
            for _ in 0..n {
                let bit = (rng.u64() % (8 * file.len() as u64)) as usize;
                let hit = starts.partition_point(|&start| start <= bit / 8) - 1;
                if !std::mem::replace(&mut touched[hit], true) {
                    bad[bit / 8] ^= 1 << (bit % 8);
                }
            }
            let mut want: Vec<u8> = Vec::new();
            (0..200).filter(|&i| !touched[i]).for_each(|i| want.extend(&file[starts[i]..starts[i + 1]]));
            fs::write(folder.path("in"), &bad).unwrap();
            let report =
                salvage(&folder.path("in"), &folder.path("out"), None, Existing::Replace, MAX, &mut |_| ())
                    .unwrap();
            assert!(fs::read(folder.path("out")).unwrap() == want);
            assert_eq!(gap_bytes(&report) + report.bytes, bad.len() as u64);
        }
    }
}

#[test]
fn flipped_bits_cost_the_records_they_are_in() {
    flips(20, 2000);
}

#[test]
#[ignore = "6 GB are read and written: `make test-slow`"]
fn flipped_bits_in_large_records() {
    flips(50, 100 << 10);
}
