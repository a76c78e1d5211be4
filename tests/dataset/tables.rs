//! Tables of records in a format of the test.

use std::path::Path;
use tfseek::error::Result;
use tfseek::io::Region;
use tfseek::tables::{RecordTables, TableFormat, TableOptions};
use tfseek::{DatasetOptions, IndexMode, Mapped, Warning};

/// A format that also reads behind the end of each payload. The number of a record is the number of bytes that
/// it got.
#[derive(Clone, Debug)]
struct ReadsBeyond;

impl TableFormat for ReadsBeyond {
    type Table = Vec<u8>;

    const REFUSALS: [&'static str; 3] = ["invalid", "of other records", "changed"];

    fn keys(&self) -> Vec<u8> {
        Vec::new()
    }

    fn make(&self, payload: &[u8]) -> Result<Vec<u8>> {
        Ok(payload.to_vec())
    }

    fn read(&self, table: Region, _: u64) -> Option<Vec<u8>> {
        Some(table.to_vec())
    }

    fn number(table: &Vec<u8>) -> u32 {
        table.len() as u32
    }

    fn number_of(
        &self,
        payload_len: u64,
        mut read: impl FnMut(u64, &mut [u8]) -> Result<usize>,
    ) -> Result<Option<u32>> {
        let mut bytes = [0; 8];
        let mut found = 0;
        for at in [payload_len - 1, payload_len, payload_len + 1, 1 << 40] {
            found += read(at, &mut bytes)?;
        }
        Ok(Some(found as u32))
    }

    fn not_built(shard: &Path, _: u64) -> Warning {
        Warning::Derived { kind: "not_built", path: shard.into(), message: "".into() }
    }

    fn compressed(shard: &Path) -> Warning {
        Warning::Derived { kind: "compressed", path: shard.into(), message: "".into() }
    }
}

#[test]
fn a_format_that_reads_beyond_a_payload_gets_no_bytes() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.tfrecord");
    let mut writer = tfseek::Writer::create(&path).unwrap();
    for payload in [&b"one"[..], b"another"] {
        writer.write(payload).unwrap();
    }
    writer.close().unwrap();
    let read = DatasetOptions::new().index(IndexMode::Memory).open(&path).unwrap();
    let mapped = Mapped::from_bytes(std::fs::read(&path).unwrap()).unwrap();
    let options = TableOptions { memory: true, ..TableOptions::default() };
    for dataset in [&read, mapped.dataset()] {
        let (tables, _) = RecordTables::open(dataset, &ReadsBeyond, &options).unwrap();
        assert_eq!([0, 1].map(|i| tables.number(0, i).ok()), [Some(1); 2], "{dataset:?}");
    }
}
