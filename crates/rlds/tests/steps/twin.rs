//! Windows agree with those of whole records that views decode, over every kind of dataset.

use super::*;
use tfseek_testkit::episodes::WindowPart;

/// Opens shards with maps.
fn mapped(options: &DatasetOptions, pattern: &Path) -> Dataset {
    // SAFETY: the files of a test are not written to while they are open.
    #[allow(unsafe_code)]
    unsafe { options.open_mapped(pattern) }.unwrap().dataset().clone()
}

/// Returns windows of one step with all of its values, and the values of its episode.
fn single_steps(keys: &[EpisodeKey]) -> WindowSpec {
    let part = |key: &EpisodeKey| {
        let key_name = key.name.to_string();
        let part = match key.values {
            EpisodeValues::Episode => WindowPart::Episode { key: key_name },
            _ => WindowPart::Rows { key: key_name, offsets: vec![0], pad: Default::default() },
        };
        (key.name.to_string(), part)
    };
    WindowSpec { parts: keys.iter().map(part).collect(), pad: Default::default(), anchors: None }
}

#[test]
fn windows_are_those_of_whole_records() {
    for seed in 0..24 {
        let rng = &mut Rng::new(seed);
        let keys = episodes::keys(rng);
        let checked = episodes::checked(&keys);
        let sizes = [rng.below(6), rng.below(3), 1 + rng.below(6)];
        let shards: Vec<Vec<Vec<u8>>> = sizes.iter().map(|n| episodes::payloads(rng, &keys, *n)).collect();
        let decoded = decoded(&shards.concat(), &keys);
        let dir = tempfile::tempdir().unwrap();
        for (s, payloads) in shards.iter().enumerate() {
            write(dir.path(), &format!("{s}.plain"), &framed(payloads));
            write(dir.path(), &format!("{s}.gz"), &gzip(&framed(payloads)));
        }
        let (plain, gz) = (dir.path().join("*.plain"), dir.path().join("*.gz"));
        let with_files = files(dir.path());
        let header = with_files.clone().verify(Verify::Header);
        let regions = shards.iter().map(|payloads| Region::from(framed(payloads)));
        let all = [
            in_memory().open_regions(regions).unwrap().dataset().clone(),
            in_memory().open(&plain).unwrap(),
            in_memory().verify(Verify::Header).open(&plain).unwrap(),
            mapped(&in_memory(), &plain),
            with_files.open(&plain).unwrap(),
            // These find files.
            with_files.open(&plain).unwrap(),
            header.open(&plain).unwrap(),
            mapped(&with_files, &plain),
            mapped(&header, &plain),
            with_files.open(&gz).unwrap(),
            in_memory().open(&gz).unwrap(),
        ];
        let n = decoded.len() as u64;
        let mut specs: Vec<WindowSpec> = (0..3).map(|_| WindowSpec::random(rng, &keys, n)).collect();
        specs.push(single_steps(&keys));
        for (k, ds) in all.iter().enumerate() {
            let robot = find(ds, &checked);
            assert_eq!(robot.dataset().len(), n);
            let lens: Vec<u64> = (0..n).map(|e| robot.length(e).unwrap()).collect();
            assert!(lens.iter().copied().eq(decoded.iter().map(|episode| episode.steps as u64)), "{k}");
            for spec in &specs {
                episodes::check(spec, &keys, &robot, &decoded);
            }
            let mut number = 0;
            for (e, len) in lens.iter().enumerate() {
                for t in 0..*len {
                    assert_eq!(robot.locate(number).unwrap(), (e as u64, t));
                    assert_eq!(robot.number(e as u64, t).unwrap(), number);
                    number += 1;
                }
            }
            assert!(robot.steps() == number && robot.locate(number).is_err() && robot.length(n).is_err());
        }
        let found = fs::read_dir(dir.path().join("i")).unwrap();
        let tables = found.filter(|file| file.as_ref().unwrap().path().extension() == Some("tfrs".as_ref()));
        assert_eq!(tables.count(), 3, "one for each plain shard");
        // Some of the records, some of them twice.
        let ranges = [n / 2..n, 0..n / 2 + 1];
        let some: Vec<Decoded> =
            ranges.iter().flat_map(|r| decoded[r.start as usize..r.end as usize].to_vec()).collect();
        let spec = WindowSpec::random(rng, &keys, some.len() as u64);
        for ds in &all {
            let robot = find(&ds.ranges(&ranges).unwrap(), &checked);
            episodes::check(&spec, &keys, &robot, &some);
        }
    }
}

/// The last entry of a key counts, also if it has no kind: the record then does not have the feature.
#[test]
fn the_last_entry_of_a_key_counts() {
    fn field(tag: u8, bytes: &[u8]) -> Vec<u8> {
        [&[tag, bytes.len() as u8], bytes].concat()
    }
    let floats = |n: usize| field(0x12, &field(0x0a, &[1, 2, 3, 4].repeat(n)));
    let entry = |key: &[u8], feature: &[u8]| field(0x0a, &[field(0x0a, key), field(0x12, feature)].concat());
    let keys = ["a", "b"].map(|name| steps_key(name, DType::Float32, 1));
    for (entries, steps) in [
        (vec![entry(b"a", &floats(3)), entry(b"a", b""), entry(b"b", &floats(2))], 2),
        (vec![entry(b"a", b""), entry(b"b", &floats(2)), entry(b"a", &floats(2))], 2),
        (
            vec![entry(b"a", &floats(3)), entry(b"b", &floats(4)), entry(b"a", b""), entry(b"a", &floats(4))],
            4,
        ),
    ] {
        let payload = field(0x0a, &entries.concat());
        assert_eq!(decode(&payload, &keys).unwrap().steps, steps);
        let ds = in_memory().open_regions([Region::from(framed(&[payload]))]).unwrap().dataset().clone();
        let robot = find(&ds, &episodes::checked(&keys));
        assert_eq!(robot.steps(), steps as u64);
    }
}

#[test]
fn features_that_are_no_steps_are_refused() {
    let key = |name: &str, values| EpisodeKey { name: name.into(), kind: DType::Int64, values };
    let levels = |n: usize| EpisodeValues::Divided { lengths: vec!["a".into(); n], width: 1 };
    let keys = |n| EpisodeKeys::new([key("a", EpisodeValues::Steps { width: 1 }), key("b", levels(n))]);
    keys(255).unwrap();
    assert!(keys(256).unwrap_err().to_string().contains("expected at most 255"));
}
