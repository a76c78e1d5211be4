//! Windows over the steps of episodes, and files of tables.

use super::script::{Scratch, Script};
use crate::episodes::{self, Decoded, WindowSpec, decode, framed, lists};
use crate::rng::Rng;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::Path;
use std::sync::OnceLock;
use std::time::{Duration, SystemTime};
use tfseek::index::IndexOptions;
use tfseek::io::Region;
use tfseek::{DatasetOptions, Example, IndexMode};
use tfseek_rlds::{EpisodeKey, EpisodeKeys, EpisodeOptions, EpisodeTable, EpisodeValues, Episodes};

/// Tests payloads of episodes with some bytes changed, and files of tables.
///
/// With an even first byte, the rest is a seed of features, payloads and windows, and edits of the payloads.
/// With an odd one it is a file of tables, or edits of one, sometimes with repaired checksums, as an attacker
/// could write it.
pub fn steps(data: &[u8]) {
    let Some((&mode, rest)) = data.split_first() else { return };
    let mut script = Script(rest);
    if mode & 1 == 0 { edited_payloads(mode, &mut script) } else { tables(mode, &mut script) }
}

fn edited_payloads(mode: u8, script: &mut Script<'_>) {
    let rng = &mut Rng::new(script.u16() as u64);
    let keys = episodes::keys(rng);
    let checked = episodes::checked(&keys);
    let (mut payloads, mut decoded) = (Vec::new(), Vec::new());
    for mut payload in episodes::payloads(rng, &keys, 1 + usize::from(mode >> 1) % 4) {
        let edits = usize::from(script.u8() % 8);
        Script(script.take(5 * edits)).edit(&mut payload);
        match (EpisodeTable::of(&payload, &checked), decode(&payload, &keys)) {
            (Ok(table), Ok(episode)) => {
                assert_eq!(table.steps() as usize, episode.steps);
                // Unless its steps are counted by the heads of its lists alone, an episode whose values are not
                // divided as their lengths say is refused when it is opened, and not when it is read.
                let is_uneven = |key: &EpisodeKey| {
                    matches!(key.values, EpisodeValues::Divided { .. }) && episode.rows[&*key.name].is_err()
                };
                if let Err(e) = opened(&[payload.clone()], &checked) {
                    assert!(keys.iter().any(is_uneven), "{e}: {payload:02x?}");
                    continue;
                }
                payloads.push(payload);
                decoded.push(episode);
            }
            (Ok(table), Err(reason)) => panic!("{table:?}, but {reason}: {payload:02x?}"),
            // A table needs a payload that is a message, views only the entries before those that are looked
            // for.
            (Err(e), Ok(_)) => assert!(Example::new(&payload).validate().is_err(), "{e}: {payload:02x?}"),
            (Err(_), Err(_)) => {}
        }
    }
    let robot = opened(&payloads, &checked).unwrap();
    for _ in 0..2 {
        episodes::check(&WindowSpec::random(rng, &keys, decoded.len() as u64), &keys, &robot, &decoded);
    }
}

fn opened(payloads: &[Vec<u8>], keys: &EpisodeKeys) -> tfseek::Result<Episodes> {
    let options = DatasetOptions::new().index(IndexMode::Memory);
    let set = options.open_regions([Region::from(framed(payloads))])?;
    Episodes::open(set.dataset(), keys, &EpisodeOptions::default())
}

/// A shard with its index and its tables.
struct Shard {
    keys: Vec<EpisodeKey>,
    decoded: Vec<Decoded>,
    bytes: Vec<u8>,
    index: Vec<u8>,
    tables: Vec<u8>,
}

const SHARDS: u64 = 8;

fn shards() -> &'static [Shard] {
    static SHARDS_WITH_FILES: OnceLock<Vec<Shard>> = OnceLock::new();
    SHARDS_WITH_FILES.get_or_init(|| (0..SHARDS).map(Shard::new).collect())
}

fn options(folder: &Path) -> IndexOptions {
    IndexOptions::new().default_dirs(None, None).index_dir(folder)
}

impl Shard {
    fn new(seed: u64) -> Shard {
        let rng = &mut Rng::new(seed);
        let keys = episodes::keys(rng);
        let payloads = episodes::payloads(rng, &keys, 4);
        let decoded = payloads.iter().map(|payload| decode(payload, &keys).unwrap()).collect();
        let mut shard =
            Shard { keys, decoded, bytes: framed(&payloads), index: Vec::new(), tables: Vec::new() };
        let folder = Scratch::new();
        let path = shard.write(&folder);
        let folder = path.parent().unwrap();
        shard.open(&path, IndexMode::Auto).unwrap();
        shard.index = fs::read(folder.join("x.tfri")).unwrap();
        shard.tables = fs::read(folder.join("x.tfrs")).unwrap();
        shard
    }

    fn write(&self, folder: &Scratch) -> std::path::PathBuf {
        let path = folder.write("x", &self.bytes);
        let time = SystemTime::UNIX_EPOCH + Duration::from_secs(1_600_000_000);
        File::options().write(true).open(&path).unwrap().set_modified(time).unwrap();
        path
    }

    fn open(&self, path: &Path, mode: IndexMode) -> tfseek::Result<Episodes> {
        let ds = DatasetOptions::new().index(options(path.parent().unwrap()).mode(mode)).open(path)?;
        Episodes::open(&ds, &episodes::checked(&self.keys), &EpisodeOptions::default())
    }
}

/// A window has its right values, or reading it is an error.
fn tables(mode: u8, script: &mut Script<'_>) {
    let shard = &shards()[usize::from(mode >> 3) % SHARDS as usize];
    let seed = script.u8();
    let (mut file, mut is_one_byte, mut repaired) = (shard.tables.clone(), None, false);
    if mode & 6 == 6 {
        file = script.take(usize::MAX).to_vec();
    } else {
        is_one_byte = Some(script.edit(&mut file).unwrap_or(true));
        repaired = mode & 2 != 0;
        if repaired {
            // Of a file without all sections only some are repaired.
            let _ = episodes::repair(&mut file);
        }
    }
    let folder = Scratch::new();
    let path = shard.write(&folder);
    folder.write("x.tfri", &shard.index);
    folder.write("x.tfrs", &file);
    let robot = match shard.open(&path, IndexMode::Require) {
        Ok(robot) => robot,
        Err(e) => {
            assert!(
                repaired && e.location().path.as_deref() == Some(&path.with_file_name("x.tfrs")),
                "{e:?}"
            );
            return;
        }
    };
    let spec = WindowSpec::random(&mut Rng::new(seed.into()), &shard.keys, shard.decoded.len() as u64);
    let windows = spec.builder(&robot).build().unwrap();
    let want: BTreeMap<_, _> =
        spec.windows(&shard.keys, &shard.decoded).into_iter().map(|(e, t, lists)| ((e, t), lists)).collect();
    let mut buf = Vec::new();
    // A file can claim any number of steps.
    for i in 0..windows.dataset().len().min(200) {
        let at = windows.locate(i).unwrap();
        match windows.dataset().read(i, &mut buf) {
            // Several changes with repaired checksums can make the file of a longer or shorter list.
            Ok(found) if is_one_byte != Some(false) || !repaired => {
                assert_eq!(
                    Some(&lists(found.payload())),
                    want.get(&at).and_then(|lists| lists.as_ref().ok())
                );
            }
            Ok(_) => {}
            Err(e) => assert!(repaired && e.location().path.is_some(), "{e:?}"),
        }
    }
}
