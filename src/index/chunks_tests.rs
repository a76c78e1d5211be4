//! Scans by several chains, compared with the scan by one.

use super::chunks::{ChunkPlan, PlannedScan, scan_chunks};
use super::progress::{ProgressCallback, REPORT, Work};
use super::scan::{ScanOutcome, ScanStart, scan_slice};
use super::table::TableBuilder;
use crate::error::{ErrorKind, Result};
use crate::frame::{Torn, put_header, put_record};
use proptest::collection::vec;
use proptest::prelude::*;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

const PLANS: [ChunkPlan; 4] = [
    ChunkPlan { chunk: 64, search: 64, chains: 1, turns: 1, threads: 1 },
    ChunkPlan { chunk: 100, search: 40, chains: 3, turns: 2, threads: 1 },
    ChunkPlan { chunk: 300, search: 300, chains: 8, turns: 1000, threads: 1 },
    ChunkPlan { chunk: 16, search: 16, chains: 5, turns: 3, threads: 1 },
];

/// Offsets, end and torn tail; or the error with its location.
type Outcome = Result<(Vec<u64>, u64, Option<Torn>), String>;

fn outcome(scan: Result<ScanOutcome>) -> Outcome {
    let scan = scan.map_err(|e| format!("{:?} {e}", e.location()))?;
    let n = scan.offsets.len();
    let table = scan.offsets.finish().unwrap();
    Ok(((0..n).map(|i| table.get(i).unwrap()).collect(), scan.end, scan.torn))
}

/// Runs a scan. Also returns the sum of the bytes that it reported.
fn counted(scan: impl FnOnce(&Work) -> Result<ScanOutcome>) -> (Outcome, u64) {
    let sum = Arc::new(AtomicU64::new(0));
    let callback = {
        let sum = Arc::clone(&sum);
        ProgressCallback::new(move |n| {
            assert!(n <= 2 * REPORT as u64);
            sum.fetch_add(n, Relaxed);
            ControlFlow::Continue(())
        })
    };
    let outcome = outcome(scan(&Work::new(Some(&callback))));
    (outcome, sum.load(Relaxed))
}

fn assert_same(one: &(Outcome, u64), several: &(Outcome, u64), context: impl Fn() -> String) {
    assert_eq!(one.0, several.0, "{}", context());
    if one.0.is_ok() {
        assert_eq!(one.1, several.1, "progress: {}", context());
    }
}

/// Compares all plans on these bytes.
fn compare(bytes: &[u8], plans: &[ChunkPlan]) {
    for payloads in [false, true] {
        let one = counted(|work| scan_slice(bytes, ScanStart::default(), payloads, work));
        for &plan in plans {
            let several =
                counted(|work| PlannedScan { bytes, payloads, plan, work }.run(ScanStart::default()));
            assert_same(&one, &several, || format!("{plan:?}, payloads {payloads}, {bytes:?}"));
        }
    }
}

fn shard(payloads: impl IntoIterator<Item = Vec<u8>>) -> Vec<u8> {
    let mut bytes = Vec::new();
    payloads.into_iter().for_each(|payload| put_record(&mut bytes, &payload).unwrap());
    bytes
}

/// Bytes that a search may take for records: headers of records that fit, that do not, and runs of short
/// lengths.
fn header_like() -> impl Strategy<Value = Vec<u8>> {
    let len = prop_oneof![0..40u64, Just(0), 0..1u64 << 33, any::<u64>()];
    let header = len.prop_map(|len| {
        let mut bytes = Vec::new();
        put_header(&mut bytes, len).unwrap();
        bytes
    });
    let bytes =
        prop_oneof![header, vec(0..3u8, 0..30), Just(vec![0; 25]), Just(vec![1, 0, 0, 0, 0, 0, 0, 0])];
    vec(bytes, 0..8).prop_map(|parts| parts.concat())
}

/// Payloads of noise, of bytes that look like headers, and of TFRecords, whose payloads may be such again.
fn payload() -> impl Strategy<Value = Vec<u8>> {
    let leaf = prop_oneof![3 => vec(any::<u8>(), 0..90), 1 => header_like(), 1 => vec(any::<u8>(), 200..900)];
    leaf.prop_recursive(3, 40, 8, |inner| {
        (vec(inner, 0..8), vec(any::<u8>(), 0..20), any::<bool>()).prop_map(|(payloads, rest, torn)| {
            let mut bytes = shard(payloads);
            let cut = bytes.len() / 7 * 6;
            if torn {
                bytes.truncate(cut)
            } else {
                bytes.extend(rest)
            }
            bytes
        })
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 2 } else { 300 }))]

    #[test]
    fn any_records_and_any_damage(
        payloads in vec(payload(), 0..40),
        tail in prop_oneof![3 => Just(Vec::new()), 1 => vec(any::<u8>(), 0..30), 1 => header_like()],
        cut in any::<prop::sample::Index>(),
        flip in any::<Option<(prop::sample::Index, u8)>>(),
        chunk in 16..2000_usize,
        search in 16..500_usize,
        chains in 1..9_usize,
        turns in 1..20_usize,
    ) {
        let mut bytes = shard(payloads);
        bytes.extend(tail);
        let plan = ChunkPlan { chunk, search, chains, turns, threads: 1 };
        compare(&bytes, &[plan]);
        compare(&bytes[..cut.index(bytes.len() + 1)], &[plan]);
        if let Some((at, bits)) = flip && !bytes.is_empty() {
            let at = at.index(bytes.len());
            bytes[at] ^= bits;
            compare(&bytes, &[plan]);
        }
    }
}

/// Records of several kinds in a few hundred bytes, with two TFRecords inside of each other.
fn small() -> Vec<u8> {
    let inner = shard([vec![1; 3], vec![2; 20], Vec::new(), vec![3; 30]]);
    let nested = shard([inner.clone(), vec![4; 5], inner]);
    shard([vec![5; 17], Vec::new(), vec![6; 60], nested, vec![0; 70], vec![7; 9], vec![8; 33], vec![9; 2]])
}

#[test]
fn every_truncation() {
    let bytes = small();
    (0..=bytes.len()).for_each(|cut| compare(&bytes[..cut], &PLANS));
}

#[test]
#[cfg_attr(miri, ignore = "too slow under Miri")]
fn every_flipped_bit() {
    let bytes = small();
    for bit in 0..bytes.len() * 8 {
        let mut bad = bytes.clone();
        bad[bit / 8] ^= 1 << (bit % 8);
        compare(&bad, &PLANS);
    }
}

#[test]
fn several_threads() {
    let sizes = (0..4000).map(|i: usize| vec![i as u8; i * i % 97]);
    let nested = shard((0..50).map(|i| vec![i; 11]));
    let mut bytes = shard(sizes.chain([nested.clone()]).chain((0..500).map(|i| vec![i as u8; 20])));
    bytes.extend(shard([nested]));
    let plan = ChunkPlan { chunk: 1500, search: 300, chains: 4, turns: 7, threads: 4 };
    compare(&bytes, &[plan]);
    // A torn tail, and damage near the start, in the middle and near the end.
    compare(&bytes[..bytes.len() - 3], &[plan]);
    for at in [0, 8, bytes.len() / 2, bytes.len() - 600, bytes.len() - 2] {
        let mut bad = bytes.clone();
        bad[at] ^= 0x10;
        compare(&bad, &[plan]);
    }
}

#[test]
fn records_that_are_longer_than_chunks() {
    let long = |i: usize| vec![i as u8; if i % 40 == 39 { 9000 } else { 10 }];
    compare(&shard((0..400).map(long)), &PLANS);
    // So many that the scan continues with one chain.
    compare(&shard((0..60).map(|i| vec![i; 3000])), &PLANS);
    // A payload of zeros, and one of short lengths without their checksums.
    compare(&shard([vec![0; 5000], [1, 0, 0, 0, 0, 0, 0, 0].repeat(700), vec![5; 9]]), &PLANS);
}

#[test]
fn whole_shards() {
    // Several MiB, so that the scan makes its own plan, for records of all lengths that it plans for.
    let records = |total: usize, len: usize| {
        shard((0..total / (len + 16)).map(|i| vec![i as u8; len / 2 + i * 7919 % (len + 1)]))
    };
    for (total, len) in [(6 << 20, 40), (5 << 20, 1500), (30 << 20, 9000), (1 << 20, 90), (3 << 20, 40_000)] {
        let mut bytes = records(total, len);
        for torn in [false, true] {
            for payloads in [false, true] {
                let one = counted(|work| scan_slice(&bytes, ScanStart::default(), payloads, work));
                for threads in [1, 3] {
                    let scan =
                        |work: &Work| scan_chunks(&bytes, ScanStart::default(), payloads, threads, work);
                    assert_same(&one, &counted(scan), || format!("{len} bytes, {threads} threads"));
                }
            }
            let end = bytes.len() - if torn { 0 } else { 5 };
            bytes.truncate(end);
        }
    }
}

#[test]
fn a_scan_that_resumes_inside_of_a_shard() {
    let bytes = small();
    let whole = scan_slice(&bytes, ScanStart::default(), false, &Work::new(None)).unwrap();
    let offsets = outcome(Ok(whole)).unwrap().0;
    for known in 0..offsets.len() {
        let start = || {
            let mut table = TableBuilder::offsets();
            offsets[..known].iter().for_each(|&offset| table.push(offset));
            ScanStart { offsets: table, at: offsets[known] }
        };
        for plan in PLANS {
            let work = &Work::new(None);
            let scan = PlannedScan { bytes: &bytes, payloads: true, plan, work };
            assert_eq!(outcome(scan.run(start())).unwrap().0, offsets);
        }
    }
}

#[test]
fn a_cancelled_scan() {
    let bytes = shard((0..3000).map(|i| vec![i as u8; 50]));
    for threads in [1, 3] {
        for calls in [0, 1, 5, 20] {
            let left = AtomicU64::new(calls);
            let callback = ProgressCallback::new(move |_| match left.fetch_sub(1, Relaxed) {
                0 => ControlFlow::Break(()),
                _ => ControlFlow::Continue(()),
            });
            let work = Work::new(Some(&callback));
            let plan = ChunkPlan { chunk: 4000, search: 300, chains: 2, turns: 10, threads };
            let scan = PlannedScan { bytes: &bytes, payloads: false, plan, work: &work };
            let scan = scan.run(ScanStart::default());
            assert!(
                matches!(work.end(scan).unwrap_err().kind(), ErrorKind::Cancelled),
                "after {calls} calls"
            );
        }
    }
}

#[test]
fn plans() {
    let plan = |mib: usize, mean, payloads| ChunkPlan::new(mib << 20, mean, payloads, 4);
    // Little work is done by one thread, and large records by one chain.
    assert_eq!(plan(8, 90, false).unwrap().threads, 1);
    assert_eq!(plan(256, 90, false).unwrap().threads, 4);
    assert_eq!(plan(512, 4096, false).unwrap().threads, 1);
    assert!(plan(1 << 10, 100 << 10, false).is_none());
    assert_eq!(plan(1 << 10, 100 << 10, true).unwrap().threads, 4);
    assert!(ChunkPlan::new(1 << 30, 4096, true, 1).is_none() && plan(4, 90, true).is_none());
    for mean in [0, 1, 90, 4096, 16 << 10, usize::MAX / 4, usize::MAX] {
        for payloads in [false, true] {
            if let Some(plan) = ChunkPlan::new(usize::MAX, mean, payloads, 4) {
                assert!(plan.chunk <= 1 << 30 && plan.turns > 0 && plan.chains > 0);
            }
        }
    }
}
