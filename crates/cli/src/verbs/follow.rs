//! `tfseek tail --follow`: prints the records of a file that is still being written, and continues in the
//! next file of a pattern.

mod state;

use crate::args::{PrintArgs, TailCount};
use crate::console::Console;
use crate::damage::{self, Reading};
use crate::exit::{DATA, Failure, Outcome, TOLERATE};
use crate::features;
use crate::output::{NumberedRecord, Printer};
use crate::records::{self, KeptRecord, RecordNumbers, STDIN};
use state::{Position, StateFile};
use std::collections::VecDeque;
use std::io;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};
use tfseek::ErrorKind;
use tfseek::error::PathsError;
use tfseek::example::{KindGuess, MessageKind};
use tfseek::follow::Follow;
use tfseek_tools::hints::is_below;

/// The time between two reads at the end of a file, and the longest time until a printed record is flushed.
const POLL: Duration = Duration::from_millis(200);
/// The time between two searches for later files.
const SEARCH: Duration = Duration::from_millis(500);
/// The time without a new byte after which a record in parts is final, if a later file exists.
const GRACE: Duration = Duration::from_secs(1);

/// What is followed, and where printing begins.
pub(super) struct FollowArgs<'a> {
    pub(super) paths: &'a [PathBuf],
    pub(super) n: TailCount,
    pub(super) state: Option<&'a Path>,
    pub(super) print: &'a PrintArgs,
}

pub(super) fn run(args: &FollowArgs<'_>, console: &mut Console) -> Outcome {
    if args.paths.iter().any(|path| path == Path::new(STDIN)) {
        return Err(Failure::usage("--follow: expected files, found standard input"));
    }
    let mut files = Files::resolve(args.paths, console)?;
    let mut state = args.state.map(|path| StateFile::open(path, &files.list)).transpose()?;
    let saved = state.as_ref().and_then(|state| state.saved.clone());
    let (start, resumed) = match (saved, args.n) {
        (Some(saved), _) => (saved, true),
        (None, TailCount::After(_)) => (Position::first(files.list.first()), false),
        (None, TailCount::Last(_)) => (Position::first(files.list.last()), false),
    };
    let mut numbers = RecordNumbers::new(args.print.payload.read);
    for path in files.list.iter().take_while(|path| **path != start.path) {
        numbers.begin(&path.clone().into());
    }
    let features = features::find(files.list.iter().map(PathBuf::as_path), console);
    let mut reader = Reader {
        args,
        printer: Printer::new(args.print)?.for_files(files.many, &features),
        records: FollowedRecords {
            follow: open(args, &start)?,
            before: numbers.begin(&start.path.clone().into()),
            guess: KindGuess::default(),
            specified: args.print.payload.kind.specified(),
        },
        skip: 0,
        printed: true,
        flushed: Instant::now(),
    };
    let outcome = reader.printer.file(console, &start.path, true).and_then(|()| {
        if !resumed {
            reader.begin(console)?;
        }
        reader.run(&mut files, &mut numbers, state.as_mut(), console)
    });
    // The records before damage were printed, so the state moves past them. After an error of standard output
    // it must not.
    let complete = reader.printed && reader.skip == 0 && !matches!(outcome, Err(Failure::Stdout(_)));
    if let (Some(state), true) = (&mut state, complete) {
        console.flush()?;
        state.save(reader.records.position())?;
    }
    outcome
}

fn open(args: &FollowArgs<'_>, at: &Position) -> tfseek::Result<Follow> {
    let mut options = args.print.payload.read.follow();
    options.start = (at.record, at.offset);
    Follow::open(&at.path, &options)
}

/// The files that the paths match, in order. The last search is kept.
struct Files<'a> {
    paths: &'a [PathBuf],
    list: Vec<PathBuf>,
    searched: Instant,
    /// The paths are a pattern or a folder, so files can be added.
    grows: bool,
    /// Records are printed with their file.
    many: bool,
}

impl Files<'_> {
    fn resolve<'a>(paths: &'a [PathBuf], console: &mut Console) -> Outcome<Files<'a>> {
        let list = records::resolve_files(paths, true, console)?;
        let grows = paths.iter().any(|path| !path.is_file());
        Ok(Files { paths, many: grows || list.len() > 1, list, searched: Instant::now(), grows })
    }

    /// Returns the file after this one, if there is one now.
    fn after(&mut self, path: &Path) -> tfseek::Result<Option<PathBuf>> {
        let next = |list: &[PathBuf]| {
            let last = list.iter().rposition(|listed| listed == path)?;
            list.get(last + 1).cloned()
        };
        if let Some(next) = next(&self.list) {
            return Ok(Some(next));
        }
        if !self.grows || self.searched.elapsed() < SEARCH {
            return Ok(None);
        }
        self.searched = Instant::now();
        self.list = match tfseek::paths::resolve(self.paths, true) {
            Ok(list) => list,
            // The file was removed, which reading it reports.
            Err(e) if matches!(e.kind(), ErrorKind::Paths(PathsError::NoMatch { .. })) => return Ok(None),
            Err(e) if matches!(e.kind(), ErrorKind::Paths(PathsError::OtherSets { found, .. }) if is_below(found)) =>
            {
                return Ok(None);
            }
            Err(e) if matches!(e.kind(), ErrorKind::Io(e) if e.kind() == io::ErrorKind::NotFound) => {
                return Ok(None);
            }
            Err(e) => return Err(e),
        };
        Ok(next(&self.list))
    }
}

/// The records of the current file, with their kind and their numbers over all files.
struct FollowedRecords {
    follow: Follow,
    /// Number of records in the preceding files, if it is known.
    before: Option<u64>,
    /// The kind that the user specified. Otherwise it is guessed.
    specified: Option<MessageKind>,
    guess: KindGuess,
}

impl FollowedRecords {
    /// Returns the position of the next record.
    fn position(&self) -> Position {
        let record = self.follow.records_read();
        let offset = self.follow.offset();
        Position { path: self.follow.path().into(), record, offset }
    }

    /// Returns the next record, if it is whole.
    fn next(&mut self) -> Outcome<Option<NumberedRecord<'_>>> {
        let record = match self.follow.next() {
            Ok(None) => return Ok(None),
            Ok(Some(record)) => record,
            Err(e) => return Err(damage::explain(e.into(), Reading::InOrder)),
        };
        if self.specified.is_none() && !self.guess.is_complete() {
            self.guess.add(record.payload());
        }
        let index = record.at().record.and_then(|i| self.before?.checked_add(i));
        let kind = self.specified.unwrap_or(self.guess.kind());
        Ok(Some(NumberedRecord { record, index, kind, strict: self.specified.is_some(), step: None }))
    }
}

/// Prints the records of the current file, and then the next file's.
struct Reader<'a> {
    args: &'a FollowArgs<'a>,
    printer: Printer,
    records: FollowedRecords,
    /// Number of records of the current file that are skipped before the first one that is printed.
    skip: u64,
    /// All records that were read, and not skipped, are printed.
    printed: bool,
    /// The last time at which standard output was flushed.
    flushed: Instant,
}

impl Reader<'_> {
    /// Prints the last records of the file that are whole now, or determines how many are skipped.
    fn begin(&mut self, console: &mut Console) -> Outcome {
        let n = match self.args.n {
            TailCount::After(n) => {
                self.skip = n;
                return Ok(());
            }
            TailCount::Last(n) => n,
        };
        let name = self.records.follow.path().to_path_buf();
        let mut last = VecDeque::<KeptRecord>::new();
        let mut spare = KeptRecord::default();
        let end = loop {
            match self.records.next() {
                Ok(Some(item)) => spare.set(item)?,
                Ok(None) => break Ok(()),
                // The last records before the damage are printed.
                Err(e) => break Err(e),
            }
            last.push_back(std::mem::take(&mut spare));
            if last.len() as u64 > n {
                spare = last.pop_front().unwrap_or_default();
            }
        };
        self.printed = false;
        for record in &last {
            self.printer.record(console, record.numbered(&name))?;
        }
        self.printed = true;
        end
    }

    /// Prints records until an error.
    fn run(
        &mut self,
        files: &mut Files<'_>,
        numbers: &mut RecordNumbers,
        mut state: Option<&mut StateFile>,
        console: &mut Console,
    ) -> Outcome {
        // The file after the current one, and the number of bytes of its last record with the time since
        // which it is the same.
        let mut later: Option<PathBuf> = None;
        let mut partial = (0, Instant::now());
        loop {
            if let Some(item) = self.records.next()? {
                if self.skip > 0 {
                    self.skip -= 1;
                    continue;
                }
                self.printed = false;
                self.printer.record(console, item)?;
                self.printed = true;
                if self.flushed.elapsed() >= POLL {
                    self.flush(state.as_deref_mut(), console)?;
                }
                continue;
            }
            self.flush(state.as_deref_mut(), console)?;
            let Some(next) = &later else {
                // The rest of the current file is read after the later one was found: its writer closes a
                // file before it opens the next one.
                later = files.after(self.records.follow.path())?;
                partial = (self.records.follow.partial_bytes(), Instant::now());
                if later.is_none() {
                    sleep(POLL);
                }
                continue;
            };
            let bytes = self.records.follow.partial_bytes();
            if bytes > 0 {
                if bytes != partial.0 {
                    partial = (bytes, Instant::now());
                }
                if partial.1.elapsed() < GRACE {
                    sleep(POLL);
                    continue;
                }
                self.torn(bytes, next, console)?;
            }
            numbers.end(Some(self.records.follow.records_read()));
            self.records.before = numbers.begin(&next.clone().into());
            self.records.follow = open(self.args, &Position { path: next.clone(), record: 0, offset: 0 })?;
            self.printer.file(console, next, false)?;
            self.skip = 0;
            later = None;
        }
    }

    /// Reports a record whose end will not be written, because a later file exists. Otherwise a writer that
    /// crashed and began a new file would stop the reader forever.
    fn torn(&self, bytes: u64, next: &Path, console: &mut Console) -> Outcome {
        let Position { path, record, offset } = self.records.position();
        let path = path.display();
        let next = next.display();
        let message = format!(
            "{path}: record {record} at byte {offset}: the file ends inside the record, after {bytes} bytes, and {next} follows it"
        );
        if self.args.print.payload.read.limit.tolerates() {
            console.note(format_args!("tfseek: {message}"));
            return Ok(());
        }
        Err(Failure::Message(DATA, format!("{message} ({TOLERATE})")))
    }

    /// Flushes standard output, then saves the position if that is due.
    fn flush(&mut self, state: Option<&mut StateFile>, console: &mut Console) -> Outcome {
        console.flush()?;
        self.flushed = Instant::now();
        match state {
            // A state inside the skipped records would print the rest of them.
            Some(state) if self.skip == 0 && state.is_due() => state.save(self.records.position()),
            _ => Ok(()),
        }
    }
}
