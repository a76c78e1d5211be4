//! Record batches of prepared data sets, compared with the values of their records.
//!
//! The folder with the data sets is named by `TFSEEK_TFDS_CASES`: `sets/NAME/..`, and `golden/NAME.json`.
//! Without it nothing is compared.

use crate::nested::Nested;
use arrow_array::RecordBatch;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tfseek::{Dataset, DatasetOptions, IndexMode};
use tfseek_arrow::{ByteStrings, ClassLabels, Converter, Encoder, EncoderOptions, Options, Scan, Tensors};
use tfseek_tfds::{DatasetInfo, DecodeOptions, Decoder, Features};

#[derive(Default)]
struct Compared {
    sets: usize,
    records: usize,
    values: usize,
    /// Records that were encoded of rows.
    encoded: usize,
    /// Records that neither a decoder nor a converter reads.
    refused: usize,
    /// Data sets and records that only a converter refuses, and why.
    others: BTreeMap<String, usize>,
    differences: Vec<String>,
}

#[test]
fn record_batches_have_the_values_of_records() {
    let Ok(root) = std::env::var("TFSEEK_TFDS_CASES") else {
        tfseek_testkit::skipped("TFSEEK_TFDS_CASES");
        return;
    };
    let root = PathBuf::from(root);
    let mut goldens: Vec<PathBuf> =
        fs::read_dir(root.join("golden")).unwrap().map(|entry| entry.unwrap().path()).collect();
    goldens.retain(|path| path.extension().is_some_and(|ext| ext == "json"));
    goldens.sort();
    let mut plain = Options::new().bytes(ByteStrings::Copy).tensors(Tensors::Extension);
    (plain.text_features, plain.labels) = (false, ClassLabels::Numbers);
    for (what, options) in [("default", Options::new()), ("plain", plain)] {
        let mut compared = Compared::default();
        for path in &goldens {
            let golden: serde_json::Value = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
            let folder = root.join(golden["dir"].as_str().unwrap());
            compare(path.file_stem().unwrap().to_str().unwrap(), &folder, &options, &mut compared);
        }
        let Compared { sets, records, values, encoded, refused, others, differences } = compared;
        eprintln!(
            "{what}: {sets} sets, {records} records, {values} values; {encoded} encoded; {refused} refused records; {others:#?}"
        );
        assert!(differences.is_empty(), "{:#?}", &differences[..differences.len().min(40)]);
        assert!(records > 0);
    }
}

fn compare(name: &str, folder: &Path, options: &Options, compared: &mut Compared) {
    let mut decode =
        DecodeOptions { encoded: true, missing_none: true, batch_steps: true, ..Default::default() };
    let Ok(info) = fs::read(folder.join("dataset_info.json")) else { return };
    let Ok(info) = DatasetInfo::parse(&info) else { return };
    let Ok((features, _)) = Features::read(folder, None) else { return };
    let features = Arc::new(features);
    if Decoder::new(&features, &decode).is_err() {
        return;
    }
    // All features but those that a converter refuses.
    let converter = loop {
        match Converter::of_features(&features, &decode, options) {
            Ok(converter) => break converter,
            Err(e) => {
                let leaves = features.root.leaves().into_iter().map(|(path, _)| path);
                let mut select = decode.select.unwrap_or_else(|| leaves.collect());
                let count = select.len();
                select.retain(|path| Some(path.as_str()) != e.column.as_deref());
                assert_ne!(select.len(), count, "{name}: {e}");
                decode.select = Some(select);
                compared.others.insert(format!("{name}: {e}"), 1);
            }
        }
    };
    let decoder = Decoder::new(&features, &decode).unwrap();
    compared.sets += 1;
    let parser = converter.parser();
    for split in &info.splits {
        let Some(n) = split.shards() else { continue };
        let shards: Vec<PathBuf> = (0..n).map(|k| folder.join(split.shard_path(k, n))).collect();
        let Ok(ds) = DatasetOptions::new().index(IndexMode::Memory).open(&shards) else { continue };
        let (mut good, mut expected) = (Vec::new(), Vec::new());
        let mut buf = Vec::new();
        for number in 0..ds.len() {
            let at = format!("{name} {}[{number}]", split.name);
            let row = ds.read(number, &mut buf).unwrap();
            let value = decoder.record(&row).and_then(|record| Nested::of_record(&record.value()?));
            let batch = parser.parse(std::slice::from_ref(&row)).map_err(tfseek_arrow::Error::from);
            let found = batch.and_then(|batch| converter.record_batch(&batch));
            match (value, found) {
                (Ok(value), Ok(batch)) => {
                    compared.differences.extend(differs(&value, &batch, 0).map(|e| at + &e));
                    good.push(number);
                    expected.push(value);
                }
                (Err(_), Err(_)) => compared.refused += 1,
                (Err(e), Ok(_)) => compared.differences.push(format!("{at}: expected an error: {e}")),
                (Ok(_), Err(e)) => *compared.others.entry(format!("{name}: {e}")).or_default() += 1,
            }
        }
        compared.records += good.len();
        compared.values += expected.iter().map(Nested::count).sum::<usize>();
        let scan = |rows| Scan::with_converter(&ds, &converter).records(good.clone()).batch_rows(rows);
        let mut scans = vec![scan(3), scan(1000)];
        if good.len() as u64 == ds.len() {
            scans.push(Scan::of_parts(ds.shares(1).unwrap().remove(0), &converter));
        }
        for scan in scans {
            let batches: Vec<RecordBatch> = scan.reader().unwrap().map(Result::unwrap).collect();
            let rows = batches.iter().flat_map(|batch| (0..batch.num_rows()).map(move |row| (batch, row)));
            let mut count = 0;
            for ((batch, row), value) in rows.zip(&expected) {
                batch.columns().iter().for_each(|array| array.to_data().validate_full().unwrap());
                let at = format!("{name} {} scanned[{count}]", split.name);
                compared.differences.extend(differs(value, batch, row).map(|e| at + &e));
                count += 1;
            }
            if count != good.len() {
                compared.differences.push(format!(
                    "{name} {}: {count} rows, expected {}",
                    split.name,
                    good.len()
                ));
            }
        }
        check_errors(name, &ds, &converter, good.len(), compared);
        if decode.select.is_none() {
            check_records(name, &scan(7), &features, &decoder, &expected, compared);
        }
    }
}

/// Records that are encoded of the rows of a scan have the same values.
fn check_records(
    name: &str,
    scan: &Scan,
    features: &Features,
    decoder: &Decoder,
    expected: &[Nested],
    compared: &mut Compared,
) {
    let mut encoder = Encoder::of_features(features, scan.schema(), &EncoderOptions::default()).unwrap();
    let mut found = Vec::new();
    for batch in scan.reader().unwrap() {
        let encoded = encoder.encode(&batch.unwrap(), |payload| {
            let record = decoder.record(&payload)?;
            found.push(Nested::of_record(&record.value()?)?);
            Ok(())
        });
        if let Err(e) = encoded {
            compared.differences.push(format!("{name}, encoded: {e}"));
            return;
        }
    }
    compared.encoded += found.len();
    assert_eq!(found.len(), expected.len());
    for (number, (found, expected)) in found.iter().zip(expected).enumerate() {
        compared
            .differences
            .extend(expected.difference(found).map(|e| format!("{name}, encoded [{number}]{e}")));
    }
}

fn differs(value: &Nested, batch: &RecordBatch, row: usize) -> Option<String> {
    value.difference(&Nested::of_row(batch, row))
}

/// A scan of all records fails if one is refused.
fn check_errors(name: &str, ds: &Dataset, converter: &Converter, good: usize, compared: &mut Compared) {
    if good as u64 != ds.len()
        && Scan::with_converter(ds, converter).reader().unwrap().all(|batch| batch.is_ok())
    {
        compared.differences.push(format!("{name}: expected a scan with an error"));
    }
}
