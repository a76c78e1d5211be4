//! Sidecars and column files.

use super::script::Script;
use std::sync::OnceLock;
use tfseek::column::ColumnOptions;
use tfseek::column::{FeatureColumn, Value};
use tfseek::error::IndexError;
use tfseek::frame::{OVERHEAD, put_record};
use tfseek::index::{Index, Span};
use tfseek::io::Region;
use tfseek::{ErrorKind, ExampleBuilder, Mapped};

/// Tests sidecars. After a first byte 0 the rest is the sidecar. Otherwise it is a valid sidecar with some
/// bytes changed, sometimes with repaired checksums, as an attacker could write it.
pub fn index(data: &[u8]) {
    let Some((&mode, rest)) = data.split_first() else { return };
    if mode == 0 {
        return sidecar(rest);
    }
    let (file, spans) = &valid_sidecars()[usize::from(mode >> 1) % COUNTS.len()];
    let mut file = file.clone();
    let mut script = Script(rest);
    let edited = script.edit(&mut file);
    if mode & 1 == 1 {
        repair_checksums(&mut file);
    } else if edited.is_none_or(|single_byte| single_byte) {
        // At most one byte was changed, which a checksum detects: every record that is located has its
        // original span.
        if let Ok(index) = Index::from_sidecar(Region::new(file.clone())) {
            for (i, want) in spans.iter().enumerate() {
                if let Ok(span) = index.locate(i as u64) {
                    assert_eq!(span, *want, "record {i}");
                }
            }
            if edited.is_none() {
                index.verify().unwrap();
            }
        }
    }
    sidecar(&file);
}

/// Checks a sidecar with any content: it opens or is refused, and the located records are inside the stream
/// and in order.
fn sidecar(bytes: &[u8]) {
    let index = match Index::from_sidecar(Region::new(bytes.to_vec())) {
        Ok(index) => index,
        Err(e) => {
            assert!(matches!(e.kind(), ErrorKind::Index(IndexError::Refused { .. })), "{e}");
            return;
        }
    };
    // Each record has an entry of at least four bytes.
    assert!(index.len() <= bytes.len() as u64 / 4);
    let mut before = 0;
    let mut all = true;
    for i in 0..index.len() {
        match index.locate(i) {
            Ok(Span { offset, payload_len }) => {
                assert!(offset >= before);
                let end = offset.checked_add(payload_len).unwrap().checked_add(OVERHEAD as u64).unwrap();
                assert!(end <= index.stream_end());
                before = end;
            }
            Err(e) => {
                assert!(matches!(e.kind(), ErrorKind::Index(_)), "{e}");
                // An entry is checked against its neighbours, so after a bad entry the order cannot be
                // checked.
                (before, all) = (0, false);
            }
        }
    }
    let are_losses_known = index.gaps().all(|gap| gap.is_ok());
    let has_checkpoints = !matches!(index.checkpoint_spacing(), Ok(None));
    // Without records there is one entry, which only `verify` reads. It checks checkpoints, too.
    let is_more_checked = index.is_empty() || has_checkpoints;
    assert!(index.verify().is_ok() == (all && are_losses_known) || is_more_checked);
    for i in [index.len(), u64::MAX] {
        assert!(matches!(index.locate(i).unwrap_err().kind(), ErrorKind::OutOfRange { .. }));
    }
    let mut text = Vec::new();
    if tfseek::index::export_text(&index, 0..index.len(), &mut text).is_ok() && !index.has_gaps() {
        assert_eq!(text.iter().filter(|&&b| b == b'\n').count() as u64, index.len());
    }
    assert!(!format!("{index:?}").is_empty());
}

/// Numbers of records of the valid sidecars: few, about one block, and several blocks.
const COUNTS: [usize; 6] = [0, 1, 3, 1023, 1025, 2500];

fn valid_sidecars() -> &'static [(Vec<u8>, Vec<Span>)] {
    static SIDECARS: OnceLock<Vec<(Vec<u8>, Vec<Span>)>> = OnceLock::new();
    SIDECARS.get_or_init(|| COUNTS.map(valid_sidecar).into())
}

fn valid_sidecar(records: usize) -> (Vec<u8>, Vec<Span>) {
    let (mut file, mut spans, mut sidecar) = (Vec::new(), Vec::new(), Vec::new());
    for i in 0..records {
        let payload_len = i * 7 % 30;
        spans.push(Span { offset: file.len() as u64, payload_len: payload_len as u64 });
        put_record(&mut file, &vec![0; payload_len]).unwrap();
    }
    let set = Mapped::from_bytes(file).unwrap();
    set.dataset().index(0).unwrap().write_to(&mut sidecar).unwrap();
    (sidecar, spans)
}

/// Tests column files, as [`index`] tests sidecars.
pub fn column(data: &[u8]) {
    let Some((&mode, rest)) = data.split_first() else { return };
    if mode == 0 {
        return column_file(rest);
    }
    let valid = &valid_columns()[usize::from(mode >> 1) % valid_columns().len()];
    let mut file = valid.clone();
    let mut script = Script(rest);
    let edited = script.edit(&mut file);
    if mode & 1 == 1 {
        repair_checksums(&mut file);
    } else if edited.is_none_or(|single_byte| single_byte) {
        // At most one byte was changed, which a checksum detects: a column that verifies has the original
        // values.
        let read = |file: &[u8]| FeatureColumn::from_bytes(Region::new(file.to_vec()));
        if let Ok(column) = read(&file)
            && column.verify().is_ok()
        {
            let original = read(valid).unwrap();
            assert!((0..=original.len()).all(|i| column.get(i).unwrap() == original.get(i).unwrap()));
        } else {
            assert!(edited.is_some());
        }
    }
    column_file(&file);
}

/// Checks a column file with any content: it opens or is refused. A column that verifies is unchanged after
/// it is written.
fn column_file(bytes: &[u8]) {
    let column = match FeatureColumn::from_bytes(Region::new(bytes.to_vec())) {
        Ok(column) => column,
        Err(e) => return assert!(matches!(e.kind(), ErrorKind::Index(_)), "{e}"),
    };
    assert!(column.len() <= bytes.len() as u64);
    let verified = column.verify().is_ok();
    for i in 0..column.len() {
        match column.get(i) {
            Ok(value) => assert!(value.is_none_or(|value| value.kind() == column.kind())),
            Err(e) => assert!(!verified && matches!(e.kind(), ErrorKind::Index(_)), "{e}"),
        }
    }
    if verified {
        assert_eq!((column.get(column.len()).unwrap(), column.get(u64::MAX).unwrap()), (None, None));
        let mut again = Vec::new();
        column.write_to(&mut again).unwrap();
        assert_eq!(again, bytes);
    }
    assert!(!format!("{column:?}").is_empty());
}

/// Returns valid column files of each kind, with lists of classes if the kind has them.
fn valid_columns() -> &'static [Vec<u8>] {
    static COLUMNS: OnceLock<Vec<Vec<u8>>> = OnceLock::new();
    COLUMNS.get_or_init(|| {
        let value = |kind: usize, i: usize| match kind {
            0 => Value::Int(i as i64 % 5 - 2),
            1 => Value::Float(i as f32 / 4.0),
            _ => Value::Bytes([&b"cat"[..], b"", b"\xff", b"dog"][i % 4]),
        };
        let cases = [(0, 3), (0, 70), (1, 9), (2, 3), (2, 70), (3, 20), (0, 0)];
        cases
            .map(|(kind, n)| valid_column((0..n).map(|i| (kind < 3 && i % 3 != 1).then(|| value(kind, i)))))
            .into()
    })
}

fn valid_column(values: impl Iterator<Item = Option<Value<'static>>>) -> Vec<u8> {
    let mut file = Vec::new();
    for value in values {
        let mut builder = ExampleBuilder::new();
        match value {
            None => {}
            Some(Value::Int(v)) => builder = builder.int64("x", [v]),
            Some(Value::Float(v)) => builder = builder.float("x", [v]),
            Some(Value::Bytes(v)) => builder = builder.bytes("x", [v]),
        }
        put_record(&mut file, &builder.encode().unwrap()).unwrap();
    }
    let columns = Mapped::from_bytes(file).unwrap().dataset().columns(
        &["x"],
        &ColumnOptions { classes: true, unknown: true, beside: true, ..ColumnOptions::default() },
    );
    let mut bytes = Vec::new();
    columns.unwrap()[0].shards()[0].write_to(&mut bytes).unwrap();
    bytes
}

/// Recomputes the checksums of a sidecar or a column file that its fields still locate: of blocks, of the
/// section table and of the header.
pub(super) fn repair_checksums(file: &mut [u8]) {
    let u64_at = |file: &[u8], at: usize| Some(u64::from_le_bytes(file.get(at..at + 8)?.try_into().ok()?));
    let u32_at = |file: &[u8], at: usize| Some(u32::from_le_bytes(file.get(at..at + 4)?.try_into().ok()?));
    let Some(sections) = u32_at(file, 12) else { return };
    let table_end = 128 + 32 * (sections as usize).min(64);
    for section in (128..table_end).step_by(32) {
        let Some((kind, offset, len)) =
            (|| Some((u32_at(file, section)?, u64_at(file, section + 8)?, u64_at(file, section + 16)?)))()
        else {
            return;
        };
        let Some(width) = u32_at(file, section + 4).map(|word| (word >> 16) as usize) else { return };
        let Some(n) = u64_at(file, 24) else { return };
        let m = n.saturating_add(u64::from(kind == 1));
        let (Ok(start), Ok(len)) = (usize::try_from(offset), usize::try_from(len)) else { continue };
        if start > file.len() || len > file.len() - start {
            continue;
        }
        if kind >= 16 {
            let crc = tfseek::crc::crc32c(&file[start..start + len]);
            if let Some(stored) = file.get_mut(section + 24..section + 28) {
                stored.copy_from_slice(&crc.to_le_bytes());
            }
            continue;
        }
        if kind == 3 {
            repair_checkpoints(&mut file[start..start + len]);
            continue;
        }
        if m > len as u64 || !matches!(kind, 1 | 2) {
            continue;
        }
        let blocks = m.div_ceil(1024) as usize;
        for block in 0..blocks {
            let entry = start + 16 * block;
            let first = start + 16 * blocks + 1024 * width * block;
            let last = (first + 1024 * width).min(start + len);
            let (Some(base), Some(rel)) = (file.get(entry..entry + 8), file.get(first..last)) else {
                continue;
            };
            let crc = tfseek::crc::crc32c(&[base, rel].concat());
            if let Some(stored) = file.get_mut(entry + 8..entry + 12) {
                stored.copy_from_slice(&crc.to_le_bytes());
            }
        }
    }
    if let Some(table) = file.get(128..table_end) {
        let crc = tfseek::crc::crc32c(table);
        file[120..124].copy_from_slice(&crc.to_le_bytes());
    }
    if file.len() >= 128 {
        let crc = tfseek::crc::crc32c(&file[..124]);
        file[124..128].copy_from_slice(&crc.to_le_bytes());
    }
}

/// Recomputes the checksums of the checkpoints whose windows are inside the section.
fn repair_checkpoints(section: &mut [u8]) {
    let Some(count) = section.first_chunk().map(|count| u64::from_le_bytes(*count)) else { return };
    for entry in (16..section.len()).step_by(32).take(usize::try_from(count).unwrap_or(usize::MAX)) {
        let Some(fields) = section.get(entry..entry + 32) else { return };
        let at = u64::from_le_bytes(fields[16..24].try_into().unwrap());
        let len = u32::from_le_bytes(fields[24..28].try_into().unwrap()) as usize;
        let window = usize::try_from(at).ok().and_then(|at| section.get(at..at.checked_add(len)?));
        let Some(window) = window else { continue };
        let crc = tfseek::crc::crc32c(&[&fields[..28], window].concat());
        section[entry + 28..entry + 32].copy_from_slice(&crc.to_le_bytes());
    }
}
