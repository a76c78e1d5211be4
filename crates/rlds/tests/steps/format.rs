//! The bytes of a file of tables, read after the page that defines them.

use super::*;
use tfseek::crc::crc32c;
use tfseek::tables::TableFormat;
use tfseek_rlds::EpisodeTable;
use tfseek_testkit::episodes::section;

fn u32_at(bytes: &[u8], at: usize) -> usize {
    u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap()) as usize
}

/// Returns the encoded values of a list: packed numbers, or byte strings with their tags and lengths.
fn encoded(list: &List) -> Vec<u8> {
    fn varint(mut value: u64) -> Vec<u8> {
        let mut out = Vec::new();
        while value >= 0x80 {
            out.push(value as u8 | 0x80);
            value >>= 7;
        }
        out.push(value as u8);
        out
    }
    match list {
        List::Floats(values) => values.iter().flat_map(|bits| bits.to_le_bytes()).collect(),
        List::Ints(values) => values.iter().flat_map(|value| varint(*value as u64)).collect(),
        List::Strings(values) => {
            values.iter().flat_map(|v| [vec![0x0a], varint(v.len() as u64), v.clone()].concat()).collect()
        }
    }
}

/// Returns the form and the part of a list.
fn part(key: &EpisodeKey, rows: &[Vec<u8>]) -> (u8, Vec<u8>) {
    let list = rows.concat();
    let word = |value: usize| (value as u32).to_le_bytes().to_vec();
    let crc = |bytes: &[u8]| crc32c(bytes).to_le_bytes().to_vec();
    let first = rows.first().map_or(&[][..], |row| row);
    let width = match key.values {
        EpisodeValues::Steps { width } if width > 0 => width as usize,
        _ => return (4, crc(&list)),
    };
    let values = width * rows.len();
    let row = match key.kind {
        DType::Float32 => 4 * width,
        DType::Int64 if list.len() == values => width,
        DType::Int64 => return (4, crc(&list)),
        DType::Bytes if rows.iter().all(|row| row == first) => {
            return (3, [word(first.len()), crc(first)].concat());
        }
        DType::Bytes if rows.iter().all(|row| row.len() == first.len()) => first.len(),
        DType::Bytes => {
            let mut end = 0;
            let entry = |row: &Vec<u8>| {
                end += row.len();
                [word(end), crc(row)].concat()
            };
            return (2, rows.iter().flat_map(entry).collect());
        }
    };
    let unit = 256usize.div_ceil(row).max(1);
    let crcs = rows.chunks(unit).flat_map(|rows| crc(&rows.concat()));
    (1, word(row).into_iter().chain(crcs).collect())
}

#[test]
fn files_have_the_bytes_that_the_page_defines() {
    let mut seen = [0; 6];
    for seed in 0..40 {
        let rng = &mut Rng::new(seed);
        let mut keys = episodes::keys(rng);
        let odd = if seed % 8 == 7 { 60 } else { 0 };
        let payloads: Vec<Vec<u8>> = (0..4)
            .map(|k| {
                let lists = episodes::episode(rng, &keys, [5, 0, 1, 90][k]);
                episodes::encode(rng, &lists, odd)
            })
            .collect();
        let dir = tempfile::tempdir().unwrap();
        let path = write(dir.path(), "x", &framed(&payloads));
        find(&files(dir.path()).open(&path).unwrap(), &episodes::checked(&keys));
        let file = fs::read(dir.path().join("i/x.tfrs")).unwrap();
        assert_eq!(file[..8], *b"\x89TFRS\r\n\x1a");
        let part_of = |kind| {
            let (start, len) = section(&file, kind).unwrap();
            &file[start..start + len]
        };
        // KEYS.
        keys.sort_by(|a, b| a.name.cmp(&b.name));
        let number = |name: &str| keys.iter().position(|key| *key.name == *name).unwrap() as u16;
        let mut want = (keys.len() as u32).to_le_bytes().to_vec();
        for key in &keys {
            let kind = match key.kind {
                DType::Bytes => 1,
                DType::Float32 => 2,
                DType::Int64 => 3,
            };
            let (role, width, lengths) = match &key.values {
                EpisodeValues::Episode => (0, 0, &[][..]),
                EpisodeValues::Steps { width } => (1, *width, &[][..]),
                EpisodeValues::Divided { lengths, width } => (2, *width, &**lengths),
            };
            want.extend([kind, role, lengths.len() as u8, 0]);
            want.extend(width.to_le_bytes());
            want.extend((key.name.len() as u32).to_le_bytes());
            lengths.iter().for_each(|name| want.extend(number(name).to_le_bytes()));
            want.extend(key.name.bytes());
        }
        assert_eq!(part_of(32), want);
        // NUMBERS and PLACES: one block of five values.
        let values = |kind| (0..5).map(|i| u32_at(part_of(kind), 16 + 4 * i)).collect::<Vec<_>>();
        let decoded = decoded(&payloads, &keys);
        let mut before = 0;
        let steps: Vec<usize> = decoded
            .iter()
            .map(|episode| {
                before += episode.steps;
                before
            })
            .collect();
        assert_eq!(values(33), [&[0], &*steps].concat());
        let (places, tables) = (values(34), part_of(35));
        assert_eq!((places[0], places[4]), (0, tables.len()));
        for ((place, episode), payload) in places.windows(2).zip(&decoded).zip(&payloads) {
            let table = &tables[place[0]..place[1]];
            assert_eq!(u32_at(table, 0), crc32c(&table[4..]) as usize);
            assert_eq!(u32_at(table, 4), episode.steps);
            let mut at = 8 + 12 * keys.len();
            for (k, key) in keys.iter().enumerate() {
                let place = &table[8 + 12 * k..20 + 12 * k];
                let (form, start, len) = (place[0], u32_at(place, 4), u32_at(place, 8));
                seen[usize::from(form)] += 1;
                assert_eq!(place[1..4], [0; 3]);
                let rows = episode.rows[&*key.name].as_ref().unwrap();
                let want = match rows {
                    None => (0, Vec::new()),
                    Some(_) if form == 5 && odd > 0 => (5, Vec::new()),
                    Some(rows) => part(key, &rows.iter().map(encoded).collect::<Vec<_>>()),
                };
                assert_eq!((form, &table[at..at + want.1.len()]), (want.0, &*want.1), "{key:?}");
                at += want.1.len();
                match rows {
                    Some(rows) if form != 5 => {
                        let list: Vec<u8> = rows.iter().flat_map(encoded).collect();
                        assert_eq!(payload[start..start + len], list);
                    }
                    _ => assert_eq!((start, len), (0, 0)),
                }
            }
            assert_eq!(at, table.len());
        }
    }
    assert!(seen.iter().all(|seen| *seen > 4), "{seen:?}");
}

/// Places are u32, and a record may be longer than they reach.
#[test]
fn lists_that_end_after_their_payload_or_after_four_gib_are_refused() {
    let payload = ExampleBuilder::new().float("a", [1f32, 2., 3.]).encode().unwrap();
    let keys = episodes::checked(&[steps_key("a", DType::Float32, 1)]);
    let table = EpisodeTable::of(&payload, &keys).unwrap();
    let is_read = |start: u32, payload_len: u64| {
        let mut bytes = table.as_ref().to_vec();
        bytes[12..16].copy_from_slice(&start.to_le_bytes());
        let crc = crc32c(&bytes[4..]);
        bytes[..4].copy_from_slice(&crc.to_le_bytes());
        keys.read(Region::from(bytes), payload_len).is_some()
    };
    assert_eq!(u32_at(table.as_ref(), 16), 12);
    assert!(is_read(0, 12));
    assert!(!is_read(1, 12));
    assert!(is_read(u32::MAX - 12, 1 << 33));
    assert!(!is_read(u32::MAX - 11, 1 << 33));
    assert!(!is_read(u32::MAX, 1 << 33));
}
