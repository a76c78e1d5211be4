//! The bytes that are read for windows.

#![cfg(target_os = "linux")]

use super::*;
use tfseek_testkit::episodes::lists;

/// Returns the bytes that this thread has read.
fn read_bytes() -> u64 {
    let text = fs::read_to_string("/proc/thread-self/io").unwrap();
    text.lines().find_map(|line| line.strip_prefix("rchar: ")?.parse().ok()).unwrap()
}

/// Three cameras, the state, a text, and 16 actions.
#[test]
fn windows_read_little_more_than_their_values() {
    let rng = &mut Rng::new(8);
    let dir = tempfile::tempdir().unwrap();
    let cameras = ["camera/0", "camera/1", "camera/2"];
    let mut keys: Vec<_> = cameras.iter().map(|name| steps_key(name, DType::Bytes, 1)).collect();
    keys.extend([
        steps_key("action", DType::Float32, 7),
        steps_key("state", DType::Float32, 8),
        steps_key("text", DType::Bytes, 1),
    ]);
    let payloads: Vec<Vec<u8>> = (0..4)
        .map(|_| {
            let steps = 100 + rng.below(60);
            let mut example = ExampleBuilder::new();
            for name in cameras {
                let pictures: Vec<_> =
                    (0..steps).map(|_| vec![rng.u64() as u8; 8000 + rng.below(6000)]).collect();
                example = example.bytes(name, pictures);
            }
            let mut floats = |n: usize| (0..n).map(|_| rng.u64() as f32).collect::<Vec<_>>();
            let example = example.float("action", floats(7 * steps)).float("state", floats(8 * steps));
            example.bytes("text", vec!["put the cup on the table"; steps]).encode().unwrap()
        })
        .collect();
    let path = write(dir.path(), "x", &framed(&payloads));
    let checked = episodes::checked(&keys);
    find(&files(dir.path()).open(&path).unwrap(), &checked);
    let robot = find(&files(dir.path()).open(&path).unwrap(), &checked);
    let mut builder = robot.windows();
    for name in cameras {
        builder = builder.rows(name, name, &[-1, 0], Default::default());
    }
    let actions: Vec<i64> = (0..16).collect();
    let builder = builder.rows("action", "action", &actions, Default::default());
    let builder = builder.rows("state", "state", &[0], Default::default());
    let windows = builder.rows("text", "text", &[0], Default::default()).build().unwrap();
    // Opens the files.
    let mut buf = Vec::new();
    windows.dataset().read(0, &mut buf).unwrap();
    let (mut values, before) = (0, read_bytes());
    for _ in 0..150 {
        let i = rng.below_u64(windows.dataset().len());
        let record = windows.dataset().read(i, &mut buf).unwrap();
        values += record.payload().len() as u64;
        assert_eq!(lists(record.payload()).len(), 6);
    }
    let read = read_bytes() - before;
    assert!(values > 150 * 40_000 && read as f64 <= 1.2 * values as f64, "{read} bytes read for {values}");
}
