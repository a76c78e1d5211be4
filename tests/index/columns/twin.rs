//! An independent writer of column files, after section 6 of the format page: from values directly to bytes.

use std::collections::{BTreeMap, BTreeSet};
use tfseek::crc::crc32c;

/// The value of a record. All values of a column are of one kind.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Scalar {
    Int(i64),
    Float(f32),
    Str(Vec<u8>),
}

/// Writes the column file of a shard. `sidecar` is an index of the same shard; header bytes 24 to 84 are
/// copied from it.
pub(crate) fn column_file(name: &str, values: &[Option<Scalar>], classes: bool, sidecar: &[u8]) -> Vec<u8> {
    let strings: BTreeSet<&[u8]> = values
        .iter()
        .flatten()
        .filter_map(|v| if let Scalar::Str(s) = v { Some(&**s) } else { None })
        .collect();
    let code = |s: &Vec<u8>| strings.iter().position(|other| other == s).unwrap() as u64;
    let (param, width) = match values.iter().flatten().next() {
        None | Some(Scalar::Int(_)) => (0u16, 8),
        Some(Scalar::Float(_)) => (1, 4),
        Some(Scalar::Str(_)) if strings.len() <= 1 << 8 => (2, 1),
        Some(Scalar::Str(_)) if strings.len() <= 1 << 16 => (3, 2),
        Some(Scalar::Str(_)) => (4, 4),
    };
    let raw = |value: &Scalar| match value {
        Scalar::Int(v) => *v as u64,
        Scalar::Float(v) => v.to_bits().into(),
        Scalar::Str(s) => code(s),
    };
    let (mut stored, mut present) = (Vec::new(), vec![0u8; values.len().div_ceil(8)]);
    let mut lists: BTreeMap<i64, Vec<u32>> = BTreeMap::new();
    for (i, value) in values.iter().enumerate() {
        let bits = value.as_ref().map_or(0, raw);
        stored.extend(&bits.to_le_bytes()[..width]);
        if value.is_some() {
            present[i / 8] |= 1 << (i % 8);
            lists.entry(bits as i64).or_default().push(i as u32);
        }
    }
    let mut sections: Vec<(u32, u16, u16, Vec<u8>)> =
        vec![(16, 1, 0, name.into()), (17, 1, param, stored), (18, 1, 0, present)];
    if param >= 2 {
        let mut dict = (strings.len() as u64).to_le_bytes().to_vec();
        let mut end = 0;
        for s in &strings {
            end += s.len() as u64;
            dict.extend(end.to_le_bytes());
        }
        strings.iter().for_each(|s| dict.extend(*s));
        sections.push((19, 1, 0, dict));
    }
    if classes && param != 1 {
        let mut bytes = (lists.len() as u64).to_le_bytes().to_vec();
        let mut end = 0;
        for list in lists.values() {
            end += list.len() as u64;
            bytes.extend(end.to_le_bytes());
        }
        lists.keys().for_each(|class| bytes.extend(class.to_le_bytes()));
        lists.values().flatten().for_each(|i| bytes.extend(i.to_le_bytes()));
        sections.push((20, 0, 4, bytes));
    }
    let mut file = vec![0; 128 + 32 * sections.len()];
    for (k, (kind, flags, param, bytes)) in sections.iter().enumerate() {
        file.resize(file.len().next_multiple_of(64), 0);
        let (entry, offset) = (128 + 32 * k, file.len() as u64);
        file[entry..entry + 4].copy_from_slice(&kind.to_le_bytes());
        file[entry + 4..entry + 6].copy_from_slice(&flags.to_le_bytes());
        file[entry + 6..entry + 8].copy_from_slice(&param.to_le_bytes());
        file[entry + 8..entry + 16].copy_from_slice(&offset.to_le_bytes());
        file[entry + 16..entry + 24].copy_from_slice(&(bytes.len() as u64).to_le_bytes());
        file[entry + 24..entry + 28].copy_from_slice(&crc32c(bytes).to_le_bytes());
        file.extend(bytes);
    }
    let len = file.len() as u64;
    file[24..84].copy_from_slice(&sidecar[24..84]);
    file[80] |= 1 << 4;
    file[..8].copy_from_slice(b"\x89TFRC\r\n\x1a");
    file[8] = 1;
    file[12] = sections.len() as u8;
    file[16..24].copy_from_slice(&len.to_le_bytes());
    put_checksums(&mut file);
    file
}

/// Recomputes the checksums of the header, of the section table, and of sections that are inside the file.
pub(crate) fn put_checksums(file: &mut [u8]) {
    let Some(count) = file.get(12).map(|c| usize::from(*c)) else { return };
    let Some(table) = file.get(128..128 + 32 * count).map(<[u8]>::to_vec) else { return };
    for (k, entry) in table.chunks(32).enumerate() {
        let field = |at: usize| u64::from_le_bytes(entry[at..at + 8].try_into().unwrap()) as usize;
        let end = field(8).checked_add(field(16));
        if let Some(bytes) = end.and_then(|end| file.get(field(8)..end)) {
            let crc = crc32c(bytes).to_le_bytes();
            file[128 + 32 * k + 24..128 + 32 * k + 28].copy_from_slice(&crc);
        }
    }
    let crc = crc32c(&file[128..128 + 32 * count]);
    file[120..124].copy_from_slice(&crc.to_le_bytes());
    let crc = crc32c(&file[..124]);
    file[124..128].copy_from_slice(&crc.to_le_bytes());
}
