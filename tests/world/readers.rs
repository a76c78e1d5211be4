//! Streams and followers: each reads the file that it opened, whatever is under its name later.

use crate::disk::{Disk, NAMES};
use crate::{attempt, seen};
use std::fs::File;
use std::ops::ControlFlow::Continue;
use tfseek::follow::{Follow, FollowOptions};
use tfseek::stream::{Stream, StreamOptions};
use tfseek::{Damage, Record, Tail, Warning};
use tfseek_testkit::mirror::{RecordState, ScannedFile};
use tfseek_testkit::rng::Rng;
use tfseek_testkit::worlds::{Class, class};

enum Source {
    /// A file that was opened and not read.
    Opened(File),
    Stream(Box<Stream>),
    Follow(Box<Follow>),
}

pub(crate) struct Reader {
    source: Source,
    name: usize,
    inode: usize,
    damage: Damage,
    tail: Tail,
    /// The edits of the file when the first byte was read.
    edits: u32,
    /// The records of a stream that leaves out damage.
    scan: Option<ScannedFile>,
    next: usize,
}

impl Reader {
    pub(crate) fn open(disk: &Disk, rng: &mut Rng) -> Option<Reader> {
        let name = rng.below(NAMES.len());
        let path = disk.path(name);
        let inode = disk.names[name]?;
        let edits = disk.inodes[inode].edits;
        let reader =
            |source, damage, tail| Reader { source, name, inode, damage, tail, edits, scan: None, next: 0 };
        if rng.chance(96) {
            let follow = Follow::open(path, &FollowOptions::default()).unwrap();
            return Some(reader(Source::Follow(Box::new(follow)), Damage::Raise, Tail::Tolerate));
        }
        let damage = rng.pick(&[Damage::Raise, Damage::Skip]);
        let tail = rng.pick(&[Tail::Strict, Tail::Tolerate]);
        Some(reader(Source::Opened(File::open(path).unwrap()), damage, tail))
    }

    /// Returns whether there is a next record, or the class of its error.
    fn expected(&self, disk: &Disk) -> Result<bool, Class> {
        if self.damage == Damage::Skip {
            let scan = self.scan.as_ref().ok_or(Class::Damage)?;
            return Ok(self.next < scan.records.len());
        }
        let is_replaced = disk.names[self.name] != Some(self.inode);
        match disk.inodes[self.inode].found(self.next) {
            RecordState::Sound => Ok(true),
            RecordState::Damaged => Err(Class::Damage),
            RecordState::Torn if self.tail == Tail::Strict => Err(Class::Damage),
            _ if matches!(self.source, Source::Follow(_)) && is_replaced => Err(Class::Refused),
            RecordState::Torn | RecordState::Nothing => Ok(false),
        }
    }

    /// Reads some records. Returns false at the end.
    pub(crate) fn step(&mut self, disk: &Disk, rng: &mut Rng, scarce: bool) -> (String, bool) {
        let inode = &disk.inodes[self.inode];
        if let Source::Opened(file) = &self.source {
            let options = StreamOptions { damage: self.damage, tail: self.tail, ..Default::default() };
            let file = file.try_clone().unwrap();
            let stream = options.read_file(file, disk.path(self.name), |_| Continue(())).unwrap();
            self.scan = ScannedFile::of(inode, Damage::Skip, self.tail);
            self.edits = inode.edits;
            self.source = Source::Stream(Box::new(stream));
        }
        let mut text = format!("file {} from record {}", self.inode, self.next);
        let is_follow = matches!(self.source, Source::Follow(_));
        let is_edited = inode.edits != self.edits;
        for _ in 0..1 + rng.below(12) {
            let found = match &mut self.source {
                Source::Follow(follow) => owned(attempt(scarce, move || follow.next())),
                Source::Stream(stream) => owned(attempt(scarce, move || stream.next())),
                Source::Opened(_) => Ok(None),
            };
            let expected = self.expected(disk);
            match found {
                Err(Class::Memory) if scarce && inode.has_large() => return (text + ": no memory", false),
                // Bytes that were read before an edit are others than those that are there now.
                Ok(Some(payload)) if is_edited => {
                    assert!(inode.has_written(&payload), "a record of another file")
                }
                Ok(None) | Err(Class::Damage | Class::Refused) if is_edited => {
                    return (text + ": edited", false);
                }
                Ok(Some(payload)) => {
                    assert_eq!(expected, Ok(true), "record {}", self.next);
                    let scan = self.scan.as_ref().filter(|_| self.damage == Damage::Skip);
                    let records = scan.map_or(&*inode.written, |scan| &scan.records);
                    assert!(payload == records[self.next].payload(), "record {} has other bytes", self.next);
                    seen(if is_follow { "followed" } else { "streamed" });
                }
                Ok(None) => {
                    assert_eq!(expected, Ok(false), "record {}", self.next);
                    self.check_end();
                    return (text + ": end", is_follow);
                }
                Err(found) => {
                    assert_eq!(expected, Err(found), "record {}", self.next);
                    seen(if found == Class::Damage { "stream damaged" } else { "follower refused" });
                    return (text + ": an error", false);
                }
            }
            self.next += 1;
        }
        text += &format!(" to {}", self.next);
        (text, true)
    }

    /// Compares what a stream left out with what is damaged.
    fn check_end(&self) {
        let (Source::Stream(stream), Some(scan)) = (&self.source, &self.scan) else { return };
        let gaps = stream.warnings().iter().find_map(|warning| match warning {
            Warning::DamageSkipped { gaps, .. } => Some(gaps.iter().map(|gap| gap.start..gap.end).collect()),
            _ => None,
        });
        let warns = scan.warns(self.damage, self.tail);
        assert_eq!(gaps, warns.then(|| scan.left.clone()), "what was left out as damage");
        seen("stream ended");
    }
}

fn owned(found: tfseek::Result<Option<Record<'_>>>) -> Result<Option<Vec<u8>>, Class> {
    found.map(|found| found.map(|record| record.payload().to_vec())).map_err(|e| class(&e))
}
