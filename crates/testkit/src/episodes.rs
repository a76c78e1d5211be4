//! Random episodes, and windows over their steps that are made of whole records by views.

use crate::rng::Rng;
use std::collections::BTreeMap;
use std::ops::Range;
use tfseek::crc::crc32c;
use tfseek::example::Feature;
use tfseek::frame::put_record;
use tfseek::{DType, Example};
use tfseek_rlds::{EpisodeKey, EpisodeKeys, EpisodeValues, Episodes, Pad, PadRow, WindowsBuilder};

/// The values of a feature. Floats are their bits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum List {
    Floats(Vec<u32>),
    Ints(Vec<i64>),
    Strings(Vec<Vec<u8>>),
}

impl List {
    pub fn zeros(kind: DType, n: usize) -> List {
        match kind {
            DType::Float32 => List::Floats(vec![0; n]),
            DType::Int64 => List::Ints(vec![0; n]),
            DType::Bytes => List::Strings(vec![Vec::new(); n]),
        }
    }

    fn of(feature: Feature<'_>) -> Option<List> {
        Some(match feature {
            Feature::Float(list) => List::Floats(list.iter().map(f32::to_bits).collect()),
            Feature::Int64(list) => List::Ints(list.iter().collect()),
            Feature::Bytes(list) => List::Strings(list.iter().map(<[u8]>::to_vec).collect()),
            _ => return None,
        })
    }

    pub fn kind(&self) -> DType {
        match self {
            List::Floats(_) => DType::Float32,
            List::Ints(_) => DType::Int64,
            List::Strings(_) => DType::Bytes,
        }
    }

    pub fn len(&self) -> usize {
        match self {
            List::Floats(values) => values.len(),
            List::Ints(values) => values.len(),
            List::Strings(values) => values.len(),
        }
    }

    fn part(&self, range: Range<usize>) -> List {
        match self {
            List::Floats(values) => List::Floats(values[range].to_vec()),
            List::Ints(values) => List::Ints(values[range].to_vec()),
            List::Strings(values) => List::Strings(values[range].to_vec()),
        }
    }

    fn append(&mut self, other: &List) {
        match (self, other) {
            (List::Floats(all), List::Floats(more)) => all.extend(more),
            (List::Ints(all), List::Ints(more)) => all.extend(more),
            (List::Strings(all), List::Strings(more)) => all.extend_from_slice(more),
            other => panic!("{other:?}"),
        }
    }
}

/// Returns the lists of an Example.
pub fn lists(payload: &[u8]) -> BTreeMap<String, List> {
    let all = Example::new(payload).features().unwrap();
    all.iter().filter_map(|(name, feature)| Some(((*name).to_owned(), List::of(*feature)?))).collect()
}

/// A list as rows, one for each step. One row for a feature of the episode.
type Rows = Vec<List>;

/// The steps of a payload.
#[derive(Clone, Debug)]
pub struct Decoded {
    pub steps: usize,
    /// `None` for a feature that the record does not have, and the reason if it cannot be divided among the
    /// steps.
    pub rows: BTreeMap<String, Result<Option<Rows>, String>>,
}

/// Divides the lists of a payload among its steps, by views. An error if it is no episode of these features.
pub fn decode(payload: &[u8], keys: &[EpisodeKey]) -> Result<Decoded, String> {
    let example = Example::new(payload);
    let mut found = BTreeMap::new();
    for key in keys {
        let feature = example.get(&key.name).map_err(|e| e.to_string())?;
        found.insert(&*key.name, feature.and_then(List::of));
    }
    let mut steps = None;
    for key in keys {
        let (EpisodeValues::Steps { width }, Some(list)) = (&key.values, &found[&*key.name]) else {
            continue;
        };
        let width = *width as usize;
        if width == 0 {
            continue;
        }
        if list.len() % width != 0 || steps.is_some_and(|steps| steps != list.len() / width) {
            return Err(format!("{}: {} values", key.name, list.len()));
        }
        steps = Some(list.len() / width);
    }
    let steps = steps.unwrap_or(0);
    let rows = |key: &EpisodeKey| {
        let Some(list) = &found[&*key.name] else { return Ok(None) };
        if list.kind() != key.kind {
            return Err(format!("{}: wrong kind", key.name));
        }
        let counts: Vec<u128> = match &key.values {
            EpisodeValues::Episode => vec![list.len() as u128],
            EpisodeValues::Steps { width } => vec![u128::from(*width); steps],
            EpisodeValues::Divided { lengths, width } => {
                let mut counts = vec![1; steps];
                for length in lengths {
                    let numbers = match &found[&**length] {
                        Some(List::Ints(numbers)) => numbers.clone(),
                        Some(_) => return Err(format!("{length}: wrong kind")),
                        None => Vec::new(),
                    };
                    let mut numbers = numbers.iter();
                    for count in &mut counts {
                        let mut items = 0;
                        for _ in 0..*count {
                            let number = numbers.next().ok_or("too few lengths")?;
                            items += u128::try_from(*number).map_err(|_| "a negative length")?;
                        }
                        *count = items;
                    }
                    if numbers.next().is_some() {
                        return Err("too many lengths".to_owned());
                    }
                }
                counts.iter().map(|count| count * u128::from(*width)).collect()
            }
        };
        if counts.iter().sum::<u128>() != list.len() as u128 {
            return Err(format!("{}: {} values for {counts:?}", key.name, list.len()));
        }
        let mut at = 0;
        let row = |count: &u128| {
            let from = at;
            at += *count as usize;
            list.part(from..at)
        };
        Ok(Some(counts.iter().map(row).collect()))
    };
    Ok(Decoded { steps, rows: keys.iter().map(|key| (key.name.to_string(), rows(key))).collect() })
}

/// A feature of a window.
#[derive(Clone, Debug)]
pub enum WindowPart {
    Rows { key: String, offsets: Vec<i64>, pad: PadRow },
    Flags { offsets: Vec<i64> },
    Episode { key: String },
}

/// The features, the padding and the anchors of windows.
#[derive(Clone, Debug)]
pub struct WindowSpec {
    pub parts: BTreeMap<String, WindowPart>,
    pub pad: Pad,
    pub anchors: Option<Vec<(u64, Range<u64>)>>,
}

/// The lists of a window. An error if a list cannot be divided among the steps.
pub type WindowLists = Result<BTreeMap<String, List>, String>;

impl WindowSpec {
    pub fn random(rng: &mut Rng, keys: &[EpisodeKey], episodes: u64) -> WindowSpec {
        let mut parts = BTreeMap::new();
        for key in keys {
            if rng.chance(90) {
                continue;
            }
            let (name, to) = (key.name.to_string(), format!("w{}", key.name));
            if key.values == EpisodeValues::Episode {
                parts.insert(to, WindowPart::Episode { key: name });
                continue;
            }
            let far = rng.chance(30);
            let offset = |rng: &mut Rng| {
                if far && rng.chance(60) {
                    rng.pick(&[i64::MIN, i64::MAX, -1 << 40, 1 << 33])
                } else {
                    rng.below(13) as i64 - 6
                }
            };
            let offsets: Vec<i64> = (0..1 + rng.below(5)).map(|_| offset(rng)).collect();
            let pad = match rng.below(4) {
                0 => PadRow::Zeros,
                1 => PadRow::First,
                2 => PadRow::ZerosOfFirst,
                _ => PadRow::String([7; 200][..rng.below(200)].into()),
            };
            if rng.chance(128) {
                parts.insert(format!("{to}_is_pad"), WindowPart::Flags { offsets: offsets.clone() });
            }
            parts.insert(to, WindowPart::Rows { key: name, offsets, pad });
        }
        let range = |rng: &mut Rng| {
            let from = rng.below(9) as u64;
            let to = if rng.chance(60) { u64::MAX } else { from + rng.below(9) as u64 };
            (rng.below_u64(episodes.max(1)), from..to)
        };
        let anchors =
            (episodes > 0 && rng.chance(100)).then(|| (0..rng.below(8)).map(|_| range(rng)).collect());
        WindowSpec { parts, pad: rng.pick(&[Pad::Repeat, Pad::Zero, Pad::None]), anchors }
    }

    pub fn builder(&self, episodes: &Episodes) -> WindowsBuilder {
        let mut builder = episodes.windows().pad(self.pad).numbers("_episode", "_step");
        for (to, part) in &self.parts {
            builder = match part {
                WindowPart::Rows { key, offsets, pad } => builder.rows(key, to, offsets, pad.clone()),
                WindowPart::Flags { offsets } => builder.flags(to, offsets),
                WindowPart::Episode { key } => builder.episode(key, to),
            };
        }
        match &self.anchors {
            Some(anchors) => builder.anchors(anchors.clone()),
            None => builder,
        }
    }

    /// Returns the anchors and the lists of all windows.
    pub fn windows(&self, keys: &[EpisodeKey], episodes: &[Decoded]) -> Vec<(u64, u64, WindowLists)> {
        let mut all = Vec::new();
        for (e, episode) in episodes.iter().enumerate() {
            let e = e as u64;
            for t in 0..episode.steps {
                let named = |anchors: &Vec<(u64, Range<u64>)>| {
                    anchors.iter().any(|(of, range)| *of == e && range.contains(&(t as u64)))
                };
                let inside = |part: &WindowPart| match part {
                    WindowPart::Rows { offsets, .. } => offsets.iter().all(|o| at(episode, t, *o).is_ok()),
                    _ => true,
                };
                if !self.anchors.as_ref().is_none_or(named)
                    || self.pad == Pad::None && !self.parts.values().all(inside)
                {
                    continue;
                }
                all.push((e, t as u64, self.window(keys, episode, e, t)));
            }
        }
        all
    }

    fn window(&self, keys: &[EpisodeKey], episode: &Decoded, e: u64, t: usize) -> WindowLists {
        let mut window = BTreeMap::from([
            ("_episode".to_owned(), List::Ints(vec![e as i64])),
            ("_step".to_owned(), List::Ints(vec![t as i64])),
        ]);
        for (to, part) in &self.parts {
            let list = match part {
                WindowPart::Flags { offsets } => {
                    List::Ints(offsets.iter().map(|o| at(episode, t, *o).is_err().into()).collect())
                }
                WindowPart::Episode { key } => match episode.rows[key].clone()? {
                    Some(rows) => rows[0].clone(),
                    None => continue,
                },
                WindowPart::Rows { key, offsets, pad } => {
                    let of = keys.iter().find(|known| *known.name == **key).unwrap();
                    let divided =
                        matches!(of.values, EpisodeValues::Divided { .. }) && of.kind == DType::Bytes;
                    let own_zeros = match pad {
                        PadRow::String(_) => !divided,
                        pad => *pad == PadRow::Zeros,
                    };
                    let rows = match &episode.rows[key] {
                        Ok(None) => continue,
                        Ok(Some(rows)) => rows.clone(),
                        // Rows that are not needed are not looked for.
                        Err(_)
                            if self.pad == Pad::Zero
                                && own_zeros
                                && offsets.iter().all(|o| at(episode, t, *o).is_err()) =>
                        {
                            vec![List::zeros(of.kind, 0); episode.steps]
                        }
                        Err(reason) => return Err(reason.clone()),
                    };
                    let mut list = List::zeros(of.kind, 0);
                    for offset in offsets {
                        list.append(&match at(episode, t, *offset) {
                            Ok(s) => rows[s].clone(),
                            Err(s) if self.pad != Pad::Zero => rows[s].clone(),
                            Err(_) => padding(of, pad, &rows[0]),
                        });
                    }
                    list
                }
            };
            window.insert(to.clone(), list);
        }
        Ok(window)
    }
}

/// Returns the step at an offset from `t`. An error has the nearest step.
fn at(episode: &Decoded, t: usize, offset: i64) -> Result<usize, usize> {
    let (s, last) = (t as i128 + i128::from(offset), episode.steps as i128 - 1);
    if (0..=last).contains(&s) { Ok(s as usize) } else { Err(s.clamp(0, last) as usize) }
}

fn padding(key: &EpisodeKey, pad: &PadRow, first: &List) -> List {
    let width = match key.values {
        EpisodeValues::Steps { width } => width as usize,
        _ => 0,
    };
    match pad {
        PadRow::First => first.clone(),
        PadRow::ZerosOfFirst => List::zeros(key.kind, first.len()),
        PadRow::String(value) if key.kind == DType::Bytes => {
            let divided = matches!(key.values, EpisodeValues::Divided { .. });
            List::Strings(vec![value.to_vec(); if divided { first.len() } else { width }])
        }
        _ => List::zeros(key.kind, width),
    }
}

/// Returns a feature with `width` values for each step.
pub fn steps_key(name: &str, kind: DType, width: u32) -> EpisodeKey {
    EpisodeKey { name: name.into(), kind, values: EpisodeValues::Steps { width } }
}

/// Returns features of each kind and division, some of them lengths of others. The first has a known number
/// of values.
pub fn keys(rng: &mut Rng) -> Vec<EpisodeKey> {
    let key = |name: &str, kind, values| EpisodeKey { name: name.into(), kind, values };
    let kind = |rng: &mut Rng| rng.pick(&[DType::Float32, DType::Int64, DType::Bytes]);
    let mut keys = vec![key("a", kind(rng), EpisodeValues::Steps { width: 1 + rng.below(3) as u32 })];
    for name in ["b", "c", "d", "e", "metadata/f"].iter().take(rng.below(6)) {
        let values = match rng.below(4) {
            0 => EpisodeValues::Episode,
            _ => EpisodeValues::Steps { width: rng.below(4) as u32 },
        };
        keys.push(key(name, kind(rng), values));
    }
    let divided = |lengths: &[&str], width| EpisodeValues::Divided {
        lengths: lengths.iter().map(|name| (*name).into()).collect(),
        width,
    };
    if rng.chance(100) {
        keys.push(key("n/len", DType::Int64, EpisodeValues::Steps { width: 1 }));
        keys.push(key("n/inner", kind(rng), divided(&["n/len"], rng.below(3) as u32)));
    }
    if rng.chance(100) {
        keys.push(key("o/0", DType::Int64, EpisodeValues::Steps { width: 1 }));
        keys.push(key("o/1", DType::Int64, divided(&["o/0"], 1)));
        keys.push(key("o/inner", kind(rng), divided(&["o/0", "o/1"], 1 + rng.below(2) as u32)));
    }
    keys
}

/// Returns the checked features.
pub fn checked(keys: &[EpisodeKey]) -> EpisodeKeys {
    EpisodeKeys::new(keys.iter().cloned()).unwrap()
}

fn random_list(rng: &mut Rng, kind: DType, n: usize) -> List {
    let form = rng.below(4);
    let (len, fill) = (rng.below(40), rng.u64() as u8);
    match kind {
        DType::Float32 => List::Floats((0..n).map(|_| rng.u64() as u32).collect()),
        DType::Int64 => List::Ints(
            (0..n)
                .map(|_| match form {
                    0 | 1 => rng.below(128) as i64,
                    2 => rng.below(3000) as i64,
                    _ => (rng.u64() >> rng.below(64)) as i64,
                })
                .collect(),
        ),
        DType::Bytes => List::Strings(
            (0..n)
                .map(|_| match form {
                    0 => vec![fill; len],
                    1 => rng.bytes(len),
                    2 => Vec::new(),
                    _ => {
                        let len = rng.below(400);
                        rng.bytes(len)
                    }
                })
                .collect(),
        ),
    }
}

/// Returns the lists of an episode with this number of steps. Some records lack a feature.
pub fn episode(rng: &mut Rng, keys: &[EpisodeKey], steps: usize) -> Vec<(String, List)> {
    let mut all: Vec<(String, List)> = Vec::new();
    for (k, key) in keys.iter().enumerate() {
        let sum = |name: &str| match all.iter().find(|(known, _)| known == name) {
            Some((_, List::Ints(numbers))) => numbers.iter().sum::<i64>() as usize,
            _ => 0,
        };
        let list = match &key.values {
            _ if key.name.ends_with("/len")
                || key.name.starts_with("o/") && key.kind == DType::Int64 && !key.name.ends_with("inner") =>
            {
                let n = if &*key.name == "o/1" { sum("o/0") } else { steps };
                let most = rng.pick(&[1, 2, 5]);
                List::Ints((0..n).map(|_| rng.below(most) as i64).collect())
            }
            EpisodeValues::Episode => {
                let n = rng.below(4);
                random_list(rng, key.kind, n)
            }
            EpisodeValues::Steps { width } => random_list(rng, key.kind, steps * *width as usize),
            EpisodeValues::Divided { lengths, width } => {
                let items = sum(lengths.last().unwrap());
                random_list(rng, key.kind, items * *width as usize)
            }
        };
        let is_length = key.name.ends_with("/len") || key.name.starts_with("o/");
        if k > 0 && !is_length && rng.chance(20) {
            continue;
        }
        all.push((key.name.to_string(), list));
    }
    all
}

fn varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn field(out: &mut Vec<u8>, tag: u8, bytes: &[u8]) {
    out.push(tag);
    varint(out, bytes.len() as u64);
    out.extend(bytes);
}

/// Returns a Feature, with `odd` / 256 in one of the encodings that protobuf allows besides the usual one.
fn feature(rng: &mut Rng, list: &List, odd: u8) -> Vec<u8> {
    let mut out = Vec::new();
    let form = if rng.chance(odd) { 1 + rng.below(4) } else { 0 };
    let halves = match form {
        1 => {
            let half = rng.below(list.len() + 1);
            vec![list.part(0..half), list.part(half..list.len())]
        }
        _ => vec![list.clone()],
    };
    for list in halves {
        let mut values = Vec::new();
        let mut number = |tag: u8, bytes: Vec<Vec<u8>>| match form {
            2 => bytes.iter().for_each(|bytes| {
                values.push(tag);
                values.extend(bytes);
            }),
            3 => bytes.chunks(3).for_each(|chunk| field(&mut values, 0x0a, &chunk.concat())),
            _ if bytes.is_empty() && rng.chance(128) => {}
            _ => field(&mut values, 0x0a, &bytes.concat()),
        };
        let tag = match &list {
            List::Floats(list) => {
                number(0x0d, list.iter().map(|bits| bits.to_le_bytes().to_vec()).collect());
                0x12
            }
            List::Ints(list) => {
                let encoded = |value: &i64| {
                    let mut out = Vec::new();
                    varint(&mut out, *value as u64);
                    out
                };
                number(0x08, list.iter().map(encoded).collect());
                0x1a
            }
            List::Strings(list) => {
                list.iter().for_each(|value| field(&mut values, 0x0a, value));
                0x0a
            }
        };
        field(&mut out, tag, &values);
        if form == 4 {
            // An unknown field.
            field(&mut out, 0x7a, b"unknown");
        }
    }
    out
}

/// Encodes an episode, with `odd` / 256 of the features in other encodings, with earlier entries of their
/// key, and among several `features`.
pub fn encode(rng: &mut Rng, lists: &[(String, List)], odd: u8) -> Vec<u8> {
    let (mut out, mut features) = (Vec::new(), Vec::new());
    let mut lists: Vec<_> = lists.iter().collect();
    while !lists.is_empty() {
        let (name, list) = lists.swap_remove(rng.below(lists.len()));
        let mut entry = |list: &List, rng: &mut Rng| {
            let mut entry = Vec::new();
            field(&mut entry, 0x0a, name.as_bytes());
            field(&mut entry, 0x12, &feature(rng, list, odd));
            field(&mut features, 0x0a, &entry);
        };
        if rng.chance(odd / 2) {
            let n = rng.below(5);
            let kind = rng.pick(&[list.kind(), DType::Int64]);
            let other = random_list(rng, kind, n);
            entry(&other, rng);
        }
        entry(list, rng);
        if rng.chance(odd / 4) {
            field(&mut out, 0x0a, &std::mem::take(&mut features));
        }
    }
    field(&mut out, 0x0a, &features);
    out
}

/// Returns payloads of episodes, some of them empty, of one step, or longer than a unit of checksums.
pub fn payloads(rng: &mut Rng, keys: &[EpisodeKey], n: usize) -> Vec<Vec<u8>> {
    let one = |_| {
        let steps = match rng.below(8) {
            0 => 0,
            1 => 1,
            2 => 100 + rng.below(100),
            _ => 2 + rng.below(20),
        };
        let lists = episode(rng, keys, steps);
        let odd = rng.pick(&[0, 0, 40]);
        encode(rng, &lists, odd)
    };
    (0..n).map(one).collect()
}

fn u32_at(bytes: &[u8], at: usize) -> Option<usize> {
    Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?) as usize)
}

/// Returns offset and length of a section of a file of tables.
pub fn section(file: &[u8], kind: usize) -> Option<(usize, usize)> {
    let entry = (128..).step_by(32).take(4).find(|at| u32_at(file, *at) == Some(kind))?;
    Some((u32_at(file, entry + 8)?, u32_at(file, entry + 16)?))
}

/// Recomputes the checksums of a file of tables of fewer than 1024 records, as far as its parts are inside of
/// it.
pub fn repair(file: &mut [u8]) -> Option<()> {
    for k in 0..4 {
        let entry = 128 + 32 * k;
        let kind = u32_at(file, entry)?;
        let (start, len) = (u32_at(file, entry + 8)?, u32_at(file, entry + 16)?);
        let bytes = file.get(start..start.checked_add(len)?)?.to_vec();
        let (at, crc) = match kind {
            32 => (entry + 24, crc32c(&bytes)),
            33 | 34 if len >= 16 => (start + 8, crc32c(&[&bytes[..8], &bytes[16..]].concat())),
            _ => continue,
        };
        file.get_mut(at..at + 4)?.copy_from_slice(&crc.to_le_bytes());
    }
    let (places, len) = section(file, 34)?;
    let (tables, _) = section(file, 35)?;
    let places = file.get(places..places.checked_add(len)?)?.get(16..)?;
    let ends: Vec<usize> = places.chunks_exact(4).filter_map(|end| u32_at(end, 0)).collect();
    for pair in ends.windows(2) {
        let table = file.get_mut(tables.checked_add(pair[0])?..tables.checked_add(pair[1])?);
        if let Some((crc, rest)) = table.and_then(|table| table.split_first_chunk_mut()) {
            *crc = crc32c(rest).to_le_bytes();
        }
    }
    let crc = crc32c(file.get(128..256)?);
    file[120..124].copy_from_slice(&crc.to_le_bytes());
    let crc = crc32c(&file[..124]);
    file[124..128].copy_from_slice(&crc.to_le_bytes());
    Some(())
}

/// Returns a record stream.
pub fn framed(payloads: &[Vec<u8>]) -> Vec<u8> {
    let mut out = Vec::new();
    payloads.iter().for_each(|payload| put_record(&mut out, payload).unwrap());
    out
}

/// Compares all windows of episodes with those of whole records, and their numbers.
pub fn check(spec: &WindowSpec, keys: &[EpisodeKey], episodes: &Episodes, decoded: &[Decoded]) {
    let windows = spec.builder(episodes).build().unwrap();
    let want = spec.windows(keys, decoded);
    assert_eq!(windows.dataset().len(), want.len() as u64, "{spec:?}");
    let mut buf = Vec::new();
    for (i, (episode, step, want)) in want.iter().enumerate() {
        assert_eq!(windows.locate(i as u64).unwrap(), (*episode, *step));
        match (windows.dataset().read(i as u64, &mut buf), want) {
            (Ok(found), Ok(want)) => assert_eq!(lists(found.payload()), *want, "{i} {spec:?}"),
            (Err(_), Err(_)) => {}
            (found, want) => panic!("window {i}: found {found:?}, want {want:?} {spec:?} {keys:?}"),
        }
    }
    assert!(windows.locate(want.len() as u64).is_err());
}
