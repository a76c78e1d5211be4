//! The bodies of the fuzz targets. Each takes any bytes and panics where something does not hold; `fuzz/` runs them
//! under libFuzzer, `tests/bytes/fuzz_corpus.rs` over the seeds on a stable compiler.

use super::{agree, agree_parse, roundtrip::roundtrip, tensor_twin, tensors};
use std::sync::OnceLock;
use tfseek::column::ColumnOptions;
use tfseek::column::{FeatureColumn, Value};
use tfseek::error::IndexError;
use tfseek::frame::{OVERHEAD, put_record};
use tfseek::index::{Index, Span};
use tfseek::io::Region;
use tfseek::tensor::{TensorDType, parse_tensor, serialize_strings, serialize_tensor};
use tfseek::{ErrorKind, ExampleBuilder, Mapped};

pub type Target = fn(&[u8]);

/// A target by its name, which is also that of its corpus.
pub const TARGETS: &[(&str, Target)] = &[
    ("frames", frames),
    ("example", agree::example),
    ("sequence", agree::sequence),
    ("index", index),
    ("column", column),
    ("roundtrip", roundtrip),
    ("tensor", tensor),
    ("parse", agree_parse::parse),
];

/// Record streams. No fuzzer guesses a crc, so only the first byte 0 gives the rest as it is; else the rest is cut into
/// payloads and edits, and the stream is made of them.
pub fn frames(data: &[u8]) {
    let Some((&mode, rest)) = data.split_first() else { return agree::frames(data) };
    if mode == 0 {
        return agree::frames(rest);
    }
    let mut script = Script(rest);
    let mut file = Vec::new();
    for _ in 0..mode % 8 {
        let len = script.u16() % 600;
        let payload = script.take(len);
        put_record(&mut file, payload).unwrap();
    }
    agree::frames(&file);
    if mode >= 8 {
        script.edit(&mut file);
        agree::frames(&file);
    }
}

/// Tensors: the first byte says the dtype that is asked for, and what the rest is. A message, with or without the dtype's
/// own field before it (so that most get past it); or the values of a tensor that is written and read.
pub fn tensor(data: &[u8]) {
    let Some((&mode, rest)) = data.split_first() else { return };
    let dtype = TensorDType::ALL[usize::from(mode) % TensorDType::ALL.len()];
    match mode >> 4 & 3 {
        0 => tensor_twin::agree(rest, dtype),
        1 | 2 => tensor_twin::agree(&[&tensors::dtype_field(dtype), rest].concat(), dtype),
        _ => {
            let bytes = match dtype.size() {
                Some(size) => {
                    // A bool is refused where it is neither 0 nor 1, and nothing else is.
                    let whole = &rest[..rest.len() / size * size];
                    match serialize_tensor(dtype, &[(whole.len() / size) as u64], whole) {
                        Ok(bytes) => bytes,
                        Err(_) => return assert!(dtype == TensorDType::Bool && whole.iter().any(|&b| b > 1)),
                    }
                }
                None => {
                    let strings = rest.split(|&b| b == 0).collect::<Vec<_>>();
                    serialize_strings(&[1, strings.len() as u64], &strings).unwrap()
                }
            };
            assert!(tensor_twin::borrows(&parse_tensor(&bytes, dtype).unwrap(), &bytes));
            tensor_twin::agree(&bytes, dtype);
        }
    }
}

/// Sidecars. As they are (first byte 0), or true ones of so many records with some bytes changed, and for some of those
/// the checksums put right again: what a hostile hand could write.
pub fn index(data: &[u8]) {
    let Some((&mode, rest)) = data.split_first() else { return };
    if mode == 0 {
        return sidecar(rest);
    }
    let (file, spans) = &bases()[usize::from(mode >> 1) % COUNTS.len()];
    let mut file = file.clone();
    let mut script = Script(rest);
    let edited = script.edit(&mut file);
    if mode & 1 == 1 {
        put_right(&mut file);
    } else if edited.is_none_or(|byte| byte) {
        // One byte at most was changed, so a checksum knows: what is located is what was.
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

/// Whatever a sidecar says, it opens or is refused, and what it locates lies inside and in order.
fn sidecar(bytes: &[u8]) {
    let index = match Index::from_sidecar(Region::new(bytes.to_vec())) {
        Ok(index) => index,
        Err(e) => {
            assert!(matches!(e.kind(), ErrorKind::Index(IndexError::Refused { .. })), "{e}");
            return;
        }
    };
    // Each record has at least an entry of four bytes.
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
                // Entries are held against their neighbours, so order is lost where one is bad.
                (before, all) = (0, false);
            }
        }
    }
    // Without records there is one entry that only `verify` looks at.
    assert!(index.verify().is_ok() == all || index.is_empty());
    for i in [index.len(), u64::MAX] {
        assert!(matches!(index.locate(i).unwrap_err().kind(), ErrorKind::OutOfRange { .. }));
    }
    let mut text = Vec::new();
    if tfseek::index::export_text(&index, 0..index.len(), &mut text).is_ok() && !index.has_gaps() {
        assert_eq!(text.iter().filter(|&&b| b == b'\n').count() as u64, index.len());
    }
    assert!(!format!("{index:?}").is_empty());
}

/// Records in the true sidecars: around the size of a block, and several blocks.
const COUNTS: [usize; 6] = [0, 1, 3, 1023, 1025, 2500];

fn bases() -> &'static [(Vec<u8>, Vec<Span>)] {
    static BASES: OnceLock<Vec<(Vec<u8>, Vec<Span>)>> = OnceLock::new();
    BASES.get_or_init(|| COUNTS.map(base).into())
}

fn base(records: usize) -> (Vec<u8>, Vec<Span>) {
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

/// Column files: as [`index`] does with sidecars.
pub fn column(data: &[u8]) {
    let Some((&mode, rest)) = data.split_first() else { return };
    if mode == 0 {
        return column_file(rest);
    }
    let base = &columns()[usize::from(mode >> 1) % columns().len()];
    let mut file = base.clone();
    let mut script = Script(rest);
    let edited = script.edit(&mut file);
    if mode & 1 == 1 {
        put_right(&mut file);
    } else if edited.is_none_or(|byte| byte) {
        // One byte at most was changed, so a checksum knows: what is there is what was.
        let read = |file: &[u8]| FeatureColumn::from_bytes(Region::new(file.to_vec()));
        if let Ok(column) = read(&file)
            && column.verify().is_ok()
        {
            let true_one = read(base).unwrap();
            assert!((0..=true_one.len()).all(|i| column.get(i).unwrap() == true_one.get(i).unwrap()));
        } else {
            assert!(edited.is_some());
        }
    }
    column_file(&file);
}

/// Whatever a column file says, it opens or is refused; what is sound says the same when it is written and read again.
fn column_file(bytes: &[u8]) {
    let column = match FeatureColumn::from_bytes(Region::new(bytes.to_vec())) {
        Ok(column) => column,
        Err(e) => return assert!(matches!(e.kind(), ErrorKind::Index(_)), "{e}"),
    };
    assert!(column.len() <= bytes.len() as u64);
    let sound = column.verify().is_ok();
    for i in 0..column.len() {
        match column.get(i) {
            Ok(value) => assert!(value.is_none_or(|value| value.kind() == column.kind())),
            Err(e) => assert!(!sound && matches!(e.kind(), ErrorKind::Index(_)), "{e}"),
        }
    }
    if sound {
        assert_eq!((column.get(column.len()).unwrap(), column.get(u64::MAX).unwrap()), (None, None));
        let mut again = Vec::new();
        column.write_to(&mut again).unwrap();
        assert_eq!(again, bytes);
    }
    assert!(!format!("{column:?}").is_empty());
}

/// True ones: each kind, with the lists of classes where there are such.
fn columns() -> &'static [Vec<u8>] {
    static COLUMNS: OnceLock<Vec<Vec<u8>>> = OnceLock::new();
    COLUMNS.get_or_init(|| {
        let value = |kind: usize, i: usize| match kind {
            0 => Value::Int(i as i64 % 5 - 2),
            1 => Value::Float(i as f32 / 4.0),
            _ => Value::Bytes([&b"cat"[..], b"", b"\xff", b"dog"][i % 4]),
        };
        let cases = [(0, 3), (0, 70), (1, 9), (2, 3), (2, 70), (3, 20), (0, 0)];
        cases
            .map(|(kind, n)| true_column((0..n).map(|i| (kind < 3 && i % 3 != 1).then(|| value(kind, i)))))
            .into()
    })
}

fn true_column(values: impl Iterator<Item = Option<Value<'static>>>) -> Vec<u8> {
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
    let columns = Mapped::from_bytes(file)
        .unwrap()
        .dataset()
        .columns(&["x"], &ColumnOptions::new().classes(true).unknown(true).beside(true));
    let mut bytes = Vec::new();
    columns.unwrap()[0].shards()[0].write_to(&mut bytes).unwrap();
    bytes
}

/// Makes every checksum of a sidecar or a column file true, as far as its fields still say where they are: those of blocks, of the
/// section table, of the header.
fn put_right(file: &mut [u8]) {
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

/// Bytes read as numbers and edits; zeros when they are used up.
struct Script<'a>(&'a [u8]);

impl<'a> Script<'a> {
    fn take(&mut self, len: usize) -> &'a [u8] {
        let (taken, rest) = self.0.split_at(len.min(self.0.len()));
        self.0 = rest;
        taken
    }

    fn u8(&mut self) -> u8 {
        self.take(1).first().copied().unwrap_or(0)
    }

    fn u16(&mut self) -> usize {
        usize::from(u16::from_le_bytes([self.u8(), self.u8()]))
    }

    /// Edits of five bytes each, as many as there are. `None`: nothing has changed; `Some(true)`: one byte at most.
    fn edit(&mut self, file: &mut Vec<u8>) -> Option<bool> {
        let mut edited = None;
        while !self.0.is_empty() {
            let (op, at, value) = (self.u8(), self.u16(), self.take(2));
            let at = at % (file.len() + 1);
            match op % 6 {
                0 if at < file.len() => file[at] ^= 1 << (op >> 5),
                1 if at < file.len() => file[at] = value.first().copied().unwrap_or(0),
                2 => drop(file.splice(at..(at + value.len()).min(file.len()), value.iter().copied())),
                3 => file.truncate(at),
                4 => file.insert(at, value.first().copied().unwrap_or(0)),
                5 if at < file.len() => drop(file.remove(at)),
                _ => continue,
            }
            edited = Some(edited.is_none() && op % 6 < 2);
        }
        edited
    }
}
