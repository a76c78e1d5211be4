//! Mutated sidecars: no panic, no large allocation, no span outside the stream.

use tfseek::crc::crc32c;
use tfseek::index::Index;
use tfseek::io::Region;
use tfseek_testkit::alloc;
use tfseek_testkit::rng::Rng;

fn table(values: &[u64], wide: bool, relative: bool) -> Vec<u8> {
    let (mut blocks, mut rels) = (Vec::new(), Vec::new());
    for block in values.chunks(1024) {
        let base = if relative && !wide { block[0] } else { 0 };
        let mut rel = Vec::new();
        for v in block {
            let d = (v - base).to_le_bytes();
            rel.extend(&d[..if wide { 8 } else { 4 }]);
        }
        let mut all = base.to_le_bytes().to_vec();
        all.extend(&rel);
        blocks.extend(base.to_le_bytes());
        blocks.extend(crc32c(&all).to_le_bytes());
        blocks.extend([0; 4]);
        rels.extend(rel);
    }
    blocks.extend(rels);
    blocks
}

/// An independent writer, after the format page.
fn sidecar(offsets: &[u64], lengths: Option<&[u64]>, wide: bool) -> Vec<u8> {
    let end = *offsets.last().unwrap();
    let param: u16 = if wide { 8 } else { 4 };
    let mut sections = vec![(1u32, param, table(offsets, wide, true))];
    sections.extend(lengths.map(|l| (2, 4, table(l, false, false))));
    let mut file = vec![0; 128 + 32 * sections.len()];
    for (k, (kind, param, bytes)) in sections.iter().enumerate() {
        file.resize(file.len().next_multiple_of(64), 0);
        let entry = 128 + 32 * k;
        file[entry..entry + 4].copy_from_slice(&kind.to_le_bytes());
        file[entry + 4] = 1;
        file[entry + 6] = *param as u8;
        let offset = file.len() as u64;
        file[entry + 8..entry + 16].copy_from_slice(&offset.to_le_bytes());
        file[entry + 16..entry + 24].copy_from_slice(&(bytes.len() as u64).to_le_bytes());
        file.extend(bytes);
    }
    let len = file.len() as u64;
    file[..8].copy_from_slice(b"\x89TFRI\r\n\x1a");
    file[8] = 1;
    file[12] = sections.len() as u8;
    let fields = [(16, len), (24, offsets.len() as u64 - 1), (32, end), (40, end), (72, end)];
    for (at, v) in fields {
        file[at..at + 8].copy_from_slice(&v.to_le_bytes());
    }
    file[80] = if lengths.is_some() { 8 } else { 0 };
    put_checksums(&mut file);
    file
}

/// Recomputes the checksums of the header and the section table.
fn put_checksums(file: &mut [u8]) {
    let Some(count) = file.get(12).map(|c| usize::from(*c)) else { return };
    if let Some(crc) = file.get(128..128 + 32 * count).map(crc32c) {
        file[120..124].copy_from_slice(&crc.to_le_bytes());
        let crc = crc32c(&file[..124]);
        file[124..128].copy_from_slice(&crc.to_le_bytes());
    }
}

/// Recomputes the checksum of the first of the blocks, which hold `m` values in total.
fn put_block_checksum(file: &mut [u8], at: usize, m: usize, param: usize) {
    let blocks = m.div_ceil(1024);
    let rel = at + 16 * blocks;
    let mut all = file[at..at + 8].to_vec();
    all.extend(&file[rel..rel + m.min(1024) * param]);
    let crc = crc32c(&all).to_le_bytes();
    file[at + 8..at + 12].copy_from_slice(&crc);
}

fn open_and_read(file: Vec<u8>) -> bool {
    let end = |i: &Index| i.stream_end();
    let Ok(index) = Index::from_sidecar(Region::new(file)) else { return false };
    let n = index.len();
    for i in [0, 1, n / 2, n.saturating_sub(1), n, 1023, 1024, u64::MAX] {
        if let Ok(span) = index.locate(i) {
            assert!(i < n);
            let last = span.payload_len.checked_add(16).and_then(|l| l.checked_add(span.offset));
            assert!(last.is_some_and(|l| l <= end(&index)), "{span:?}");
        }
    }
    true
}

#[test]
fn mutated_sidecars() {
    let even: Vec<u64> = (0..=1500).map(|i| i * 20).collect();
    let seeds: [(Vec<u8>, usize, usize); 4] = [
        (sidecar(&[0, 16, 33, 51], None, false), 4, 4),
        (sidecar(&even, None, false), 1501, 4),
        (sidecar(&[0, 16, 1 << 33, 1 << 34], None, true), 4, 8),
        (sidecar(&[0, 40, 60, 99], Some(&[3, 4, 5]), false), 4, 4),
    ];
    for (seed, ..) in &seeds {
        assert!(open_and_read(seed.clone()));
        Index::from_sidecar(Region::new(seed.clone())).unwrap().verify().unwrap();
    }
    let count = if cfg!(debug_assertions) { 100_000 } else { 1_000_000 };
    let count: u64 =
        std::env::var("TFSEEK_TEST_MUTATIONS").ok().and_then(|n| n.parse().ok()).unwrap_or(count);
    let mut rng = Rng::new(1);
    let mut most = 0;
    let mut opened = 0u64;
    for k in 0..count {
        let (seed, m, param) = &seeds[k as usize % seeds.len()];
        let mut file = seed.clone();
        for _ in 0..=rng.u64() % 3 {
            let word = rng.u64();
            // Half of the changes hit the header and the section table, where most fields are.
            let range = if word & 1 == 0 { file.len().min(224) } else { file.len() };
            let at = (word >> 8) as usize % range.max(1);
            let edge = [0, 1, u64::MAX, 1 << 31, 1 << 63, 0xffff_ffff, 51, 1024][(word >> 1) as usize & 7];
            match (word >> 4) & 7 {
                0 => file.truncate(at),
                1..=3 if at + 8 <= file.len() => file[at..at + 8].copy_from_slice(&edge.to_le_bytes()),
                4 if at + 4 <= file.len() => file[at..at + 4].copy_from_slice(&(edge as u32).to_le_bytes()),
                _ if at < file.len() => file[at] ^= 1 << (word >> 61),
                _ => {}
            }
        }
        // Most files get correct checksums; otherwise all would be refused at the same line.
        if k % 8 != 0 {
            let offsets = seed[136] as usize;
            if file.len() == seed.len() {
                put_block_checksum(&mut file, offsets, *m, *param);
            }
            put_checksums(&mut file);
        }
        let (is_open, request) = alloc::longest(|| open_and_read(file));
        opened += u64::from(is_open);
        most = most.max(request);
    }
    assert!(opened > count / 20, "{opened} of {count} files were opened");
    // The largest necessary allocation is about the size of a seed.
    let longest = seeds.iter().map(|(s, ..)| s.len()).max().unwrap();
    assert!(most <= 2 * longest, "{most} bytes");
}
