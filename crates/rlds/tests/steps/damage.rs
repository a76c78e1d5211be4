//! Changed bytes of shards and of files of tables: the right values or an error, never the bytes of another
//! step.

use super::*;
use std::collections::BTreeMap;
use std::fs::File;
use std::path::PathBuf;
use tfseek::error::Remedy;
use tfseek::{Damage, Warning};
use tfseek_testkit::episodes::{WindowPart, lists, repair, section};

/// The lists of windows by the episodes and steps of their anchors.
type Want = BTreeMap<(u64, u64), BTreeMap<String, List>>;

struct Case {
    dir: tempfile::TempDir,
    path: PathBuf,
    keys: Vec<EpisodeKey>,
    payloads: Vec<Vec<u8>>,
    spec: WindowSpec,
}

/// Returns a shard of three episodes with lists of each form.
fn case() -> Case {
    let dir = tempfile::tempdir().unwrap();
    let mut keys = vec![
        steps_key("float", DType::Float32, 2),
        steps_key("byte", DType::Int64, 1),
        steps_key("long", DType::Int64, 1),
        steps_key("equal", DType::Bytes, 1),
        steps_key("text", DType::Bytes, 1),
        steps_key("constant", DType::Bytes, 1),
    ];
    keys.push(EpisodeKey { name: "path".into(), kind: DType::Bytes, values: EpisodeValues::Episode });
    let divided = EpisodeValues::Divided { lengths: vec!["byte".into()], width: 1 };
    keys.push(EpisodeKey { name: "inner".into(), kind: DType::Float32, values: divided });
    let payload = |(e, steps): (usize, usize)| {
        let each = |f: &dyn Fn(usize) -> Vec<u8>| (0..steps).map(f).collect::<Vec<_>>();
        let items: usize = (0..steps).map(|t| t % 3).sum();
        ExampleBuilder::new()
            .float("float", (0..2 * steps).map(|k| (e * 100 + k) as f32).collect::<Vec<_>>())
            .int64("byte", (0..steps).map(|t| (t % 3) as i64).collect::<Vec<_>>())
            .int64("long", (0..steps).map(|t| (e * 100_000 + t * 1000) as i64 - 7).collect::<Vec<_>>())
            .bytes("equal", each(&|t| vec![t as u8, e as u8]))
            .bytes("text", each(&|t| vec![b'a' + t as u8; t % 4]))
            .bytes("constant", each(&|_| b"pick it up".to_vec()))
            .bytes("path", [format!("episode {e}")])
            .float("inner", (0..items).map(|k| k as f32 + 0.5).collect::<Vec<_>>())
            .encode()
            .unwrap()
    };
    let payloads: Vec<_> = [4, 1, 6].into_iter().enumerate().map(payload).collect();
    let path = write(dir.path(), "x", &framed(&payloads));
    let parts = keys.iter().map(|key| {
        let name = key.name.to_string();
        let part = match key.values {
            EpisodeValues::Episode => WindowPart::Episode { key: name.clone() },
            _ => WindowPart::Rows { key: name.clone(), offsets: vec![-1, 0], pad: Default::default() },
        };
        (name, part)
    });
    let spec = WindowSpec { parts: parts.collect(), pad: Default::default(), anchors: None };
    Case { dir, path, keys, payloads, spec }
}

impl Case {
    fn options(&self) -> DatasetOptions {
        files(self.dir.path())
    }

    /// Options that neither scan nor save.
    fn reading(&self) -> DatasetOptions {
        let index = options().index_dir(self.dir.path().join("i")).mode(IndexMode::Require);
        DatasetOptions::new().index(index)
    }

    fn open(&self, options: &DatasetOptions) -> tfseek::Result<Windows> {
        let keys = episodes::checked(&self.keys);
        let robot = Episodes::open(&options.open(&self.path)?, &keys, &EpisodeOptions::default())?;
        self.spec.builder(&robot).build()
    }

    fn file(&self) -> PathBuf {
        self.dir.path().join("i/x.tfrs")
    }

    fn want(&self) -> Want {
        self.want_of(&self.payloads)
    }

    fn want_of(&self, payloads: &[Vec<u8>]) -> Want {
        let all = self.spec.windows(&self.keys, &decoded(payloads, &self.keys)).into_iter();
        all.map(|(e, t, lists)| ((e, t), lists.unwrap())).collect()
    }

    /// Compares each window with its right values. Returns the errors.
    #[track_caller]
    fn right_or_errors(&self, windows: &Windows, want: &Want) -> Vec<tfseek::Error> {
        let mut buf = Vec::new();
        let mut errors = Vec::new();
        // A file of an attacker can claim any number of steps.
        for i in 0..windows.dataset().len().min(100) {
            match windows.dataset().read(i, &mut buf) {
                Ok(record) => {
                    assert_eq!(Some(&lists(record.payload())), want.get(&windows.locate(i).unwrap()));
                }
                Err(e) => errors.push(e),
            }
        }
        errors
    }
}

fn put(path: &Path, at: u64, bytes: &[u8]) {
    use std::io::{Seek, SeekFrom};
    let mut file = File::options().write(true).open(path).unwrap();
    file.seek(SeekFrom::Start(at)).unwrap();
    file.write_all(bytes).unwrap();
}

#[test]
fn each_flipped_bit_of_a_shard_gives_right_values_or_an_error_with_its_place() {
    let case = case();
    let want = case.want();
    let bytes = fs::read(&case.path).unwrap();
    let windows = case.open(&case.options()).unwrap();
    assert!(case.right_or_errors(&windows, &want).is_empty());
    let mut all = 0;
    for (at, byte) in bytes.iter().enumerate() {
        for bit in 0..8 {
            put(&case.path, at as u64, &[byte ^ 1 << bit]);
            for e in case.right_or_errors(&windows, &want) {
                let place = e.location();
                assert_eq!(place.path.as_deref(), Some(&*case.path));
                assert!(place.record.is_some() && place.feature.is_some(), "{e}");
                assert!(e.is_data() && e.to_string().contains(": step"), "{e}");
                all += 1;
            }
        }
        put(&case.path, at as u64, &[*byte]);
    }
    assert!(all > 1000, "{all} errors");
    assert!(case.right_or_errors(&windows, &want).is_empty());
}

#[test]
fn a_shard_that_is_overwritten_or_cut_while_it_is_open_is_an_error() {
    for verify in [Verify::Payload, Verify::Header] {
        let mut case = case();
        // Any bytes are floats.
        case.spec.parts.retain(|name, _| verify == Verify::Payload || name == "float");
        let want = case.want();
        let bytes = fs::read(&case.path).unwrap();
        let windows = case.open(&case.options().verify(verify)).unwrap();
        assert!(case.right_or_errors(&windows, &want).is_empty());
        // The same episodes in another order: lists are at other offsets.
        let mut other = case.payloads.clone();
        other.rotate_left(1);
        put(&case.path, 0, &framed(&other));
        let errors = case.right_or_errors(&windows, &want);
        assert_eq!(errors.len() as u64, windows.dataset().len(), "{verify:?}");
        assert!(errors.iter().all(|e| e.location().path.as_deref() == Some(&*case.path)));
        put(&case.path, 0, &bytes);
        let len = case.payloads[0].len() as u64 + 16;
        for cut in [0, 5, len / 2, len, len + 40] {
            File::options().write(true).open(&case.path).unwrap().set_len(cut).unwrap();
            let errors = case.right_or_errors(&windows, &want);
            assert!(!errors.is_empty() && errors.iter().all(|e| e.location().path.is_some()), "{errors:?}");
            fs::write(&case.path, &bytes).unwrap();
        }
        // A new file of the same name is not read: the open one is.
        let new = write(case.dir.path(), "new", &framed(&other));
        fs::rename(new, &case.path).unwrap();
        assert!(case.right_or_errors(&windows, &want).is_empty());
        // A dataset that is opened now has the new episodes, and tables for them.
        let now = case.open(&case.options().verify(verify)).unwrap();
        assert!(case.right_or_errors(&now, &case.want_of(&other)).is_empty());
    }
}

#[test]
fn a_cut_or_changed_file_of_tables_gives_right_values_or_an_error() {
    let case = case();
    let want = case.want();
    case.open(&case.options()).unwrap();
    let good = fs::read(case.file()).unwrap();
    let check = |bytes: &[u8], options: &DatasetOptions| {
        fs::write(case.file(), bytes).unwrap();
        match case.open(options) {
            Ok(windows) => case.right_or_errors(&windows, &want).len(),
            Err(e) => {
                let is_index = matches!(e.kind(), tfseek::ErrorKind::Index(_));
                assert!((e.is_data() || is_index) && e.location().path.is_some(), "{e:?}");
                1
            }
        }
    };
    let reading = case.reading();
    assert_eq!(case.open(&reading).unwrap().dataset().len(), want.len() as u64);
    for len in 0..good.len() {
        assert_eq!(check(&good[..len], &reading), 0, "{len}");
    }
    for at in 0..good.len() {
        for bit in 0..8 {
            let mut bad = good.clone();
            bad[at] ^= 1 << bit;
            assert_eq!(check(&bad, &reading), 0, "byte {at}, bit {bit}");
        }
    }
    // A file that is refused is built again.
    let rng = &mut Rng::new(1);
    for _ in 0..200 {
        let mut bad = good.clone();
        for _ in 0..1 + rng.below(4) {
            let at = rng.below(bad.len());
            match rng.below(3) {
                0 => bad[at] = rng.u64() as u8,
                1 => bad.truncate(at + 1),
                _ => bad.insert(at, rng.u64() as u8),
            }
        }
        assert_eq!(check(&bad, &case.options()), 0);
    }
    // As an attacker could write it.
    let mut errors = 0;
    for _ in 0..2000 {
        let mut bad = good.clone();
        let at = rng.below(bad.len());
        match rng.below(3) {
            0 => bad[at] ^= 1 << rng.below(8),
            1 => bad[at] = rng.pick(&[0, 1, 0x7f, 0xff]),
            _ => bad[at..].iter_mut().take(4).for_each(|byte| *byte = rng.u64() as u8),
        }
        repair(&mut bad);
        errors += check(&bad, &reading);
    }
    assert!(errors > 0);
    fs::write(case.file(), &good).unwrap();
    assert_eq!(check(&good, &reading), 0);
}

fn u32_at(bytes: &[u8], at: usize) -> Option<usize> {
    Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?) as usize)
}

/// The planner of a loader opens tables too.
#[test]
fn a_loader_does_not_use_a_table_of_another_number_of_steps() {
    let case = case();
    let want = case.want();
    case.open(&case.options()).unwrap();
    let mut bytes = fs::read(case.file()).unwrap();
    let (first, _) = section(&bytes, 33).unwrap();
    // The last step of the first episode is one more, and the second episode has none.
    assert_eq!(bytes[first + 20..first + 28], [4, 0, 0, 0, 5, 0, 0, 0]);
    bytes[first + 20] = 5;
    repair(&mut bytes).unwrap();
    fs::write(case.file(), &bytes).unwrap();
    for threads in [0, 1, 3] {
        let windows = case.open(&case.reading()).unwrap();
        let loader = windows.dataset().record_loader().batch_size(1).shuffle(tfseek::Shuffle::None);
        let (mut right, mut errors) = (0, 0);
        for (i, step) in loader.threads(threads).build().unwrap().enumerate() {
            let at = windows.locate(i as u64).unwrap();
            match step {
                Ok(step) => {
                    let record = step.records().unwrap().next().unwrap().unwrap();
                    assert_eq!(Some(&lists(record.payload())), want.get(&at));
                    right += 1;
                }
                Err(e) => {
                    assert!(e.to_string().contains("expected an episode of 5 steps, found 4"), "{e}");
                    assert!(at.0 == 0);
                    errors += 1;
                }
            }
        }
        assert_eq!((right, errors), (6, 5), "{threads}");
    }
}

/// The remedy is to delete the file that the error names, so it is not the shard.
#[test]
fn sums_that_are_not_ascending_name_the_file_of_tables() {
    let case = case();
    case.open(&case.options()).unwrap();
    let mut bytes = fs::read(case.file()).unwrap();
    let (first, _) = section(&bytes, 33).unwrap();
    bytes[first + 20] = 6;
    repair(&mut bytes).unwrap();
    fs::write(case.file(), &bytes).unwrap();
    let e = case.open(&case.reading()).unwrap_err();
    assert!(e.to_string().contains("x.tfrs: section NUMBERS: the sums are not ascending"), "{e}");
    assert_eq!(e.location().path.as_deref(), Some(&*case.file()));
    assert_eq!(e.kind().remedy(), Some(Remedy::Delete(&case.file())));
}

/// The number of steps sizes memory, so it is compared with the bytes of the lists.
#[test]
fn a_table_that_claims_billions_of_steps_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let keys = [steps_key("long", DType::Int64, 1)];
    let payload = ExampleBuilder::new().int64("long", [1000i64, 2000, 3000]).encode().unwrap();
    let path = write(dir.path(), "x", &framed(&[payload]));
    let checked = episodes::checked(&keys);
    find(&files(dir.path()).open(&path).unwrap(), &checked);
    let file = dir.path().join("i/x.tfrs");
    let mut bytes = fs::read(&file).unwrap();
    let (tables, len) = section(&bytes, 35).unwrap();
    assert_eq!((len, u32_at(&bytes, tables + 4)), (8 + 12 + 4, Some(3)));
    let (first, _) = section(&bytes, 33).unwrap();
    for at in [tables + 4, first + 20] {
        assert_eq!(u32_at(&bytes, at), Some(3));
        bytes[at..at + 4].copy_from_slice(&u32::MAX.to_le_bytes());
    }
    repair(&mut bytes).unwrap();
    fs::write(&file, &bytes).unwrap();
    let robot = find(&files(dir.path()).open(&path).unwrap(), &checked);
    assert_eq!(robot.steps(), u64::from(u32::MAX), "the file is found");
    let e = robot.windows().rows("long", "long", &[0], Default::default()).build().unwrap();
    let e = e.dataset().read(5, &mut Vec::new()).unwrap_err();
    assert!(e.to_string().contains("expected an episode of 4294967295 steps, found 3"), "{e}");
    assert_eq!((e.location().path.as_deref(), e.location().record), (Some(&*path), Some(0)));
}

#[test]
fn features_of_other_numbers_of_steps_are_an_error_with_both() {
    let case = case();
    let bad = ExampleBuilder::new().float("float", [1f32; 10]).int64("byte", [1i64; 4]).encode().unwrap();
    let payloads = [&case.payloads[..1], &[bad], &case.payloads[1..]].concat();
    fs::write(&case.path, framed(&payloads)).unwrap();
    let e = case.open(&case.options()).unwrap_err();
    let text = e.to_string();
    assert!(text.contains("found 4 of \"byte\" and 5 of \"float\""), "{text}");
    assert_eq!((e.location().path.as_deref(), e.location().record), (Some(&*case.path), Some(1)));
    assert!(!case.file().exists());
    let skip = options().index_dir(case.dir.path().join("i")).damage(Damage::Skip);
    let keys = episodes::checked(&case.keys);
    let ds = DatasetOptions::new().index(skip.clone()).open(&case.path).unwrap();
    for _ in 0..2 {
        let robot = find(&ds, &keys);
        let lens: Vec<u64> = (0..4).map(|e| robot.length(e).unwrap()).collect();
        assert_eq!(lens, [4, 0, 1, 6]);
        let [Warning::PayloadsSkipped { skipped: 1, path, first }] = robot.warnings() else {
            panic!("{:?}", robot.warnings())
        };
        assert!(*path == case.path && first.contains("found 4 of"), "{first}");
        assert!(!case.file().exists(), "a file would hide the damage");
        let windows = case.spec.builder(&robot).build().unwrap();
        let moved = |((e, t), mut lists): ((u64, u64), BTreeMap<String, List>)| {
            let e = e + u64::from(e > 0);
            lists.insert("_episode".to_owned(), List::Ints(vec![e as i64]));
            ((e, t), lists)
        };
        let want = case.want().into_iter().map(moved).collect();
        assert!(case.right_or_errors(&windows, &want).is_empty());
    }
    // A file on request is for all readers.
    let beside = EpisodeOptions { beside: true, ..EpisodeOptions::default() };
    assert!(Episodes::open(&ds, &keys, &beside).is_err());
}
