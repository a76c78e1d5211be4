//! Processes that open data sets, read and filter them, and open them again. Each knows which bytes it opened.

use crate::disk::{Disk, NAMES};
use crate::{attempt, seen};
use std::cell::Cell;
use std::rc::Rc;
use tfseek::column::ColumnOptions;
use tfseek::{Damage, Dataset, DatasetOptions, IndexMode, Record, Result, Tail, Warning};
use tfseek_testkit::mirror::{ScannedFile, Written};
use tfseek_testkit::rng::Rng;
use tfseek_testkit::shards;
use tfseek_testkit::worlds::{Class, class};

/// A shard of a data set as it was opened.
#[derive(Clone)]
struct Shard {
    name: usize,
    inode: usize,
    changes: u32,
    stamp: Option<String>,
    bytes: Rc<[u8]>,
    scan: ScannedFile,
    /// The file that is read, once the shard was accessed.
    bound: Cell<Option<usize>>,
}

impl Shard {
    /// Returns true if the shard was not touched since it was opened.
    fn is_current(&self, disk: &Disk) -> bool {
        disk.names[self.name] == Some(self.inode) && disk.inodes[self.inode].changes == self.changes
    }

    /// Returns true if the file under the name begins with the records that were opened.
    fn begins_alike(&self, disk: &Disk) -> bool {
        let bytes = disk.names[self.name].and_then(|k| disk.inodes[k].bytes.get(..self.scan.end));
        bytes == Some(&self.bytes[..self.scan.end])
    }
}

/// The records of a data set as it was opened.
#[derive(Clone)]
pub(crate) struct View(Vec<Shard>);

impl View {
    /// Returns what a data set has that is opened now, or why there is none.
    fn expected(disk: &Disk, options: &SetOptions) -> std::result::Result<View, Class> {
        let names = (0..NAMES.len()).filter(|&name| NAMES[name].starts_with(options.letter));
        let present: Vec<(usize, usize)> = names.filter_map(|name| Some((name, disk.names[name]?))).collect();
        if present.is_empty() {
            return Err(Class::Missing);
        }
        let shard = |(name, inode): (usize, usize)| {
            let file = &disk.inodes[inode];
            let scan = ScannedFile::of(file, options.damage, options.tail)?;
            let bytes = file.bytes.as_slice().into();
            let stamp = disk.stamp(name);
            Some(Shard { name, inode, changes: file.changes, stamp, bytes, scan, bound: Cell::default() })
        };
        present.into_iter().map(shard).collect::<Option<_>>().map(View).ok_or(Class::Damage)
    }

    /// Returns the records of several views as one.
    pub(crate) fn joined<'a>(views: impl Iterator<Item = &'a View>) -> View {
        View(views.flat_map(|view| view.0.iter().cloned()).collect())
    }

    pub(crate) fn len(&self) -> u64 {
        self.0.iter().map(|shard| shard.scan.records.len() as u64).sum()
    }

    /// Returns the number of a record's shard, and the record.
    fn record(&self, i: u64) -> (usize, &Written) {
        let records =
            self.0.iter().enumerate().flat_map(|(s, shard)| shard.scan.records.iter().map(move |r| (s, r)));
        records.into_iter().nth(i as usize).expect("a record")
    }

    /// Returns the sound record that is now where a record was when it was opened. The shard was accessed.
    pub(crate) fn sound(&self, disk: &Disk, i: u64) -> Option<Written> {
        let (s, was) = self.record(i);
        disk.inodes[self.0[s].bound.get().expect("a shard that was accessed")].sound_at(was).cloned()
    }

    /// Returns true if a record has the bytes that it had when it was opened.
    pub(crate) fn is_unchanged(&self, disk: &Disk, i: u64) -> bool {
        let (s, was) = self.record(i);
        let range = was.start..was.end();
        let bytes = |k: usize| disk.inodes[k].bytes.get(range.clone());
        self.0[s].bound.get().and_then(bytes) == Some(&self.0[s].bytes[range.clone()])
    }

    pub(crate) fn is_current(&self, disk: &Disk) -> bool {
        self.0.iter().all(|shard| shard.is_current(disk))
    }

    pub(crate) fn has_large(&self) -> bool {
        self.0.iter().any(|shard| shard.scan.records.iter().any(Written::is_large))
    }

    /// The number of records and the indexed bytes of each shard, which a fingerprint identifies.
    pub(crate) fn identity(&self) -> Vec<(usize, &[u8])> {
        self.0.iter().map(|shard| (shard.scan.records.len(), &shard.bytes[..shard.scan.end])).collect()
    }

    /// Returns true if the records have the same numbers and bytes in `new`.
    fn keeps_numbers(&self, new: &View) -> bool {
        let some = |view: &View| view.0.iter().filter(|s| !s.scan.records.is_empty()).cloned().collect();
        let before: Vec<Shard> = some(self);
        let now: Vec<Shard> = some(new);
        let keeps = |(k, was): (usize, &Shard)| {
            let Some(is) = now.get(k).filter(|is| is.name == was.name) else { return false };
            let starts = |shard: &Shard| shard.scan.records.iter().map(|r| r.start).collect::<Vec<_>>();
            let is_last = k + 1 == before.len();
            let same = is.bytes.get(..was.scan.end) == Some(&was.bytes[..was.scan.end]);
            same && starts(is).starts_with(&starts(was)) && (is_last || starts(is) == starts(was))
        };
        before.iter().enumerate().all(keeps)
    }
}

/// How a process opens its data set.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SetOptions {
    /// The first letter of the names, or nothing for all.
    letter: &'static str,
    damage: Damage,
    tail: Tail,
    mode: IndexMode,
}

impl SetOptions {
    pub(crate) fn draw(rng: &mut Rng) -> SetOptions {
        use IndexMode::{Auto, Memory, Rebuild, Require};
        SetOptions {
            letter: rng.pick(&["", "a", "b"]),
            damage: rng.pick(&[Damage::Raise, Damage::Skip]),
            tail: rng.pick(&[Tail::Strict, Tail::Tolerate, Tail::Tolerate]),
            mode: rng.pick(&[Auto, Auto, Auto, Auto, Memory, Rebuild, Require]),
        }
    }
}

pub(crate) struct OpenSet {
    pub(crate) ds: Dataset,
    pub(crate) view: Rc<View>,
    pub(crate) options: SetOptions,
}

impl OpenSet {
    pub(crate) fn open(
        disk: &Disk,
        options: SetOptions,
        scarce: bool,
    ) -> std::result::Result<OpenSet, Class> {
        let SetOptions { letter, damage, tail, mode } = options;
        let index = shards::options().index_dir(disk.index_dir()).threads(1);
        let index = index.damage(damage).tail(tail).mode(mode);
        let pattern = disk.dir.path().join(format!("{letter}*.tfrecord"));
        let opened = attempt(scarce, || DatasetOptions::new().index(index).open(&pattern));
        OpenSet::checked(disk, opened, options, scarce)
    }

    /// Compares a data set that was opened with the files.
    fn checked(
        disk: &Disk,
        opened: Result<Dataset>,
        options: SetOptions,
        scarce: bool,
    ) -> std::result::Result<OpenSet, Class> {
        let view = match (opened.as_ref().map_err(class), View::expected(disk, &options)) {
            (Ok(_), Ok(view)) => view,
            (Err(found), Err(expected)) if found == expected => return Err(found),
            // The index of this content may be missing.
            (Err(Class::Refused), _) if options.mode == IndexMode::Require => return Err(Class::Refused),
            (Err(Class::Memory), _) if scarce && disk.large => {
                seen("no memory");
                return Err(Class::Memory);
            }
            (found, expected) => {
                panic!("{found:?}, expected {:?}: {opened:?}", expected.map(|view| view.len()))
            }
        };
        let ds = opened.unwrap();
        let found = ds.shards().map(|shard| (shard.path.to_path_buf(), shard.len));
        let expected = view.0.iter().map(|shard| (disk.path(shard.name), shard.scan.records.len() as u64));
        assert_eq!(found.collect::<Vec<_>>(), expected.collect::<Vec<_>>(), "shards and numbers of records");
        let skipped = ds.warnings().iter().filter_map(|warning| match warning {
            Warning::DamageSkipped { path, gaps, .. } => {
                Some((path.clone(), gaps.iter().map(|gap| gap.start..gap.end).collect::<Vec<_>>()))
            }
            _ => None,
        });
        let left = view.0.iter().filter(|shard| shard.scan.warns(options.damage, options.tail));
        let left = left.map(|shard| (disk.path(shard.name), shard.scan.left.clone()));
        assert_eq!(skipped.collect::<Vec<_>>(), left.collect::<Vec<_>>(), "what was skipped as damage");
        seen("opened");
        Ok(OpenSet { ds, view: Rc::new(view), options })
    }

    /// Accesses all shards. Returns false if one of them is refused.
    pub(crate) fn bind(&self, disk: &Disk) -> bool {
        (0..self.view.0.len()).filter(|&s| !self.bind_shard(disk, s)).count() == 0
    }

    /// Accesses a shard, which must then be the one that was opened, or one that begins with its records.
    fn bind_shard(&self, disk: &Disk, s: usize) -> bool {
        let shard = &self.view.0[s];
        let found = self.ds.index(s);
        if shard.bound.get().is_none() {
            // An index with gaps may be refused for a file that was touched only.
            let may_refuse = shard.scan.has_gaps && !shard.is_current(disk);
            let may_accept = shard.begins_alike(disk) || shard.stamp == disk.stamp(shard.name);
            assert!(found.is_err() || may_accept, "{} has other records", NAMES[shard.name]);
            assert!(found.is_ok() || may_refuse || !shard.begins_alike(disk), "{found:?}");
            shard.bound.set(disk.names[shard.name].filter(|_| found.is_ok()));
            seen(if found.is_ok() { "accessed" } else { "access refused" });
        }
        assert_eq!(found.is_ok(), shard.bound.get().is_some(), "{found:?}");
        found.is_ok()
    }

    /// Compares a record that was read, or its error, with the file.
    fn check(&self, disk: &Disk, i: u64, found: Result<Record<'_>>, scarce: bool) -> &'static str {
        let unchanged = self.view.is_unchanged(disk, i);
        match (self.view.sound(disk, i), found.map_err(|e| class(&e))) {
            (_, Err(Class::Memory)) if scarce && self.view.record(i).1.is_large() => "no memory",
            (None, Err(Class::Damage)) if unchanged => "damaged",
            (None, Err(Class::Damage | Class::Refused)) if !unchanged => "changed",
            (Some(now), Ok(record)) if record.payload() == now.payload() => "read",
            (sound, found) => panic!("record {i}, sound {}: {found:?}", sound.is_some()),
        }
    }

    /// Reads some records, one by one and together.
    pub(crate) fn read(&self, disk: &Disk, rng: &mut Rng, scarce: bool) -> String {
        let n = self.view.len();
        let ids: Vec<u64> = (0..n.min(9)).map(|_| rng.below_u64(n)).collect();
        if !ids.iter().all(|&i| self.bind_shard(disk, self.view.record(i).0)) {
            return "refused".to_owned();
        }
        let mut buf = Vec::new();
        let one = |&i: &u64| self.check(disk, i, attempt(scarce, || self.ds.read(i, &mut buf)), scarce);
        let words: Vec<&str> = ids.iter().map(one).inspect(|word| seen(word)).collect();
        let mut done = 0;
        let together = |record: Record<'_>| {
            assert_eq!(self.check(disk, ids[done], Ok(record), scarce), "read");
            done += 1;
            Ok(())
        };
        match attempt(scarce, || self.ds.read_many(&ids, together)) {
            Ok(()) => assert_eq!(done, ids.len()),
            Err(e) => assert_ne!(self.check(disk, ids[done], Err(e), scarce), "read"),
        }
        format!("{ids:?}: {words:?}")
    }

    /// Selects records by columns, which are found in files or built.
    pub(crate) fn select(&self, disk: &Disk, rng: &mut Rng, scarce: bool) -> String {
        let most = rng.below(20) as i64;
        let file = rng.below(disk.inodes.len()) as i64;
        let text = format!("n < {most} and (file >= {file} or version > 1)");
        let meets = |[of, version, n]: [i64; 3]| n < most && (of >= file || version > 1);
        let is_bound = self.bind(disk);
        let found = attempt(scarce, || self.ds.select(&text.parse().unwrap(), &ColumnOptions::default()));
        let found = found.as_ref().map_err(class);
        let ids = 0..self.view.len();
        let is_same = is_bound && ids.clone().all(|i| self.view.is_unchanged(disk, i));
        match &found {
            Err(Class::Memory) if scarce && self.view.has_large() => seen("no memory"),
            Err(Class::Damage | Class::Refused | Class::Missing) if !is_same => seen("select refused"),
            Err(Class::Refused) if self.options.mode == IndexMode::Require => seen("no column"),
            // A scan for a column verifies all payloads.
            Err(Class::Damage) if ids.clone().any(|i| self.view.sound(disk, i).is_none()) => {}
            Err(found) => panic!("{found:?}"),
            Ok((selected, _)) => {
                assert!(is_bound, "a shard was replaced");
                for i in ids {
                    let then = meets(self.view.record(i).1.tag);
                    let now = self.view.sound(disk, i).is_some_and(|now| meets(now.tag));
                    let is_selected = selected.rank(i).is_some();
                    let may_be_old = is_selected == then && !self.view.is_unchanged(disk, i);
                    assert!(is_selected == now || may_be_old, "record {i}");
                }
                seen("selected");
            }
        }
        format!("{text}: {:?}", found.map(|(selected, _)| selected.len()))
    }

    /// Opens the data set again.
    pub(crate) fn refresh(&self, disk: &Disk, scarce: bool) -> std::result::Result<OpenSet, Class> {
        // It compares offsets where damage was skipped, in both data sets.
        self.bind(disk);
        let opened = attempt(scarce, || self.ds.refresh());
        let expected = View::expected(disk, &self.options);
        if expected.is_ok_and(|new| !self.view.keeps_numbers(&new)) {
            let e = class(&opened.expect_err("records have other numbers or bytes"));
            assert!(e != Class::Memory || (scarce && disk.large));
            seen("refresh refused");
            return Err(e);
        }
        let new = OpenSet::checked(disk, opened, self.options, scarce)?;
        new.bind(disk);
        seen(if new.view.len() > self.view.len() { "grown" } else { "refreshed" });
        Ok(new)
    }
}
