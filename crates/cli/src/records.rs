//! Records of one file in file order, with their kind.

use crate::args::{PathsArgs, PayloadArgs, PayloadKind, ReadArgs};
use crate::console::Console;
use crate::exit::{Failure, Outcome};
use crate::output::{NumberedRecord, StepNumber};
use crate::split::{InputFile, SplitPath};
use crate::steps::EpisodeReader;
use crate::store;
use crate::warnings;
use std::collections::{BTreeSet, HashMap, VecDeque};
use std::io;
use std::path::{Path, PathBuf};
use tfseek::error::PathsError;
use tfseek::example::MessageKind;
use tfseek::index;
use tfseek::paths::{IntoPaths, is_pack, set_of};
use tfseek::stream::Stream;
use tfseek::{At, ErrorKind, IndexMode, Record, Tail};
use tfseek_tfds::EpisodeWindows;
use tfseek_tools::KindedStream;

/// The path that means standard input.
pub(crate) const STDIN: &str = "-";

/// The name of standard input in messages.
pub(crate) const STDIN_NAME: &str = "<stdin>";

/// The records of a stream, with their numbers over all files.
pub(crate) struct Records {
    pub(crate) reader: KindedStream,
    /// Number of records in the preceding files, if it is known.
    before: Option<u64>,
    /// The ordinal of the first record of a part of a file.
    first: u64,
    pub(crate) kind: MessageKind,
    pub(crate) strict: bool,
    /// Set if the records are the steps of episodes.
    steps: Option<EpisodeReader>,
    /// `next` returned the error of an episode that has no steps, and the next episode can be read.
    pub(crate) goes_on: bool,
    /// Records that were read ahead, and the error after them.
    ahead: VecDeque<KeptRecord>,
    failed: Option<tfseek::Error>,
    current: KeptRecord,
}

/// Number of records that are read ahead, and of payload bytes after which no further one is.
const AHEAD: (usize, usize) = (16, 1 << 20);

impl Records {
    /// Opens a file or standard input. The first records are read if the kind is to be guessed.
    pub(crate) fn open(input: &InputFile, payloads: PayloadArgs) -> tfseek::Result<Records> {
        let kind = payloads.kind.specified();
        let first = input.first();
        let reader = kinded(stream(input, payloads.read)?, payloads.kind);
        let (kind, strict) = (reader.kind(), kind.is_some());
        let ahead = VecDeque::new();
        let current = KeptRecord::default();
        let before = None;
        let steps = None;
        let goes_on = false;
        let failed = None;
        Ok(Records { before, first, kind, strict, reader, steps, goes_on, ahead, failed, current })
    }

    /// Opens a file, as the steps of its episodes if there is a splitter. Their payloads are Examples.
    pub(crate) fn open_steps(
        input: &InputFile,
        payloads: PayloadArgs,
        splitter: Option<&EpisodeWindows>,
    ) -> tfseek::Result<Records> {
        let Some(splitter) = splitter else { return Records::open(input, payloads) };
        // The kind is not guessed, which would read more episodes than are printed.
        let payloads = PayloadArgs { kind: PayloadKind::Example, ..payloads };
        let records = Records::open(input, payloads)?;
        Ok(Records { steps: Some(EpisodeReader::new(splitter.clone())), ..records })
    }

    /// Sets the number of records in the preceding files.
    pub(crate) fn numbered(self, before: Option<u64>) -> Records {
        Records { before, ..self }
    }

    /// Reads the first records, which [`next`](Records::next) then returns.
    pub(crate) fn read_ahead(&mut self) {
        let mut bytes = 0;
        while self.failed.is_none() && self.ahead.len() < AHEAD.0 && bytes < AHEAD.1 {
            let mut kept = KeptRecord::default();
            match self.read_next().and_then(|item| item.map(|item| kept.set(item)).transpose()) {
                Ok(Some(())) => {
                    bytes += kept.payload.len();
                    self.ahead.push_back(kept);
                }
                Ok(None) => break,
                Err(e) => self.failed = Some(e),
            }
        }
    }

    /// Returns the records that were read ahead.
    pub(crate) fn ahead(&self) -> impl Iterator<Item = NumberedRecord<'_>> {
        self.ahead.iter().map(|kept| kept.numbered(self.reader.stream().name()))
    }

    /// Returns the next record. Damage is returned as an error after the records that precede it.
    pub(crate) fn next(&mut self) -> tfseek::Result<Option<NumberedRecord<'_>>> {
        if let Some(kept) = self.ahead.pop_front() {
            self.current = kept;
            return Ok(Some(self.current.numbered(self.reader.stream().name())));
        }
        match self.failed.take() {
            Some(e) => Err(e),
            None => self.read_next(),
        }
    }

    fn read_next(&mut self) -> tfseek::Result<Option<NumberedRecord<'_>>> {
        if self.steps.is_some() {
            return self.next_step();
        }
        let Records { before, first, kind, strict, .. } = *self;
        let Some(record) = self.reader.next()? else { return Ok(None) };
        let inside = record.at().record.and_then(|i| i.checked_sub(first));
        let index = inside.and_then(|i| before.and_then(|before| before.checked_add(i)));
        Ok(Some(NumberedRecord { record, index, kind, strict, step: None }))
    }

    fn next_step(&mut self) -> tfseek::Result<Option<NumberedRecord<'_>>> {
        let Records { reader, before, first, kind, strict, steps: Some(steps), goes_on, .. } = self else {
            return Ok(None);
        };
        *goes_on = false;
        while steps.is_at_end() {
            let Some(record) = reader.next()? else { return Ok(None) };
            steps.begin(record).inspect_err(|_| *goes_on = true)?;
        }
        let (record, offset) = steps.place;
        let at = At::new(reader.stream().name(), record, offset);
        let made = steps.next().inspect_err(|_| *goes_on = true).map_err(|e| e.at(at))?;
        let Some(made) = made else { return Ok(None) };
        let episode = record.checked_sub(*first).zip(*before).and_then(|(i, before)| before.checked_add(i));
        let step = Some(StepNumber { episode, step: made.step });
        // The steps of the files before are not counted.
        let index = (*before == Some(0)).then_some(made.number);
        let record = Record::new(made.payload, at);
        Ok(Some(NumberedRecord { record, index, kind: *kind, strict: *strict, step }))
    }
}

/// A copy of a record that is printed later.
pub(crate) struct KeptRecord {
    payload: Vec<u8>,
    record: u64,
    offset: u64,
    index: Option<u64>,
    kind: MessageKind,
    strict: bool,
    step: Option<StepNumber>,
}

impl Default for KeptRecord {
    fn default() -> KeptRecord {
        let payload = Vec::new();
        let kind = MessageKind::Other;
        KeptRecord { payload, record: 0, offset: 0, index: None, kind, strict: false, step: None }
    }
}

impl KeptRecord {
    /// Copies a record into the memory of this one.
    ///
    /// # Errors
    /// There is not enough memory.
    pub(crate) fn set(&mut self, item: NumberedRecord<'_>) -> tfseek::Result<()> {
        let at = item.record.at();
        self.payload.clear();
        self.payload.try_reserve(item.record.payload().len()).map_err(|e| tfseek::Error::from(e).at(at))?;
        self.payload.extend_from_slice(item.record.payload());
        (self.record, self.offset) = (at.record.unwrap_or(0), at.offset.unwrap_or(0));
        (self.index, self.kind, self.strict) = (item.index, item.kind, item.strict);
        self.step = item.step;
        Ok(())
    }

    /// Returns the record, in the file of this name.
    pub(crate) fn numbered<'a>(&'a self, name: &'a Path) -> NumberedRecord<'a> {
        let record = Record::new(&self.payload, At::new(name, self.record, self.offset));
        NumberedRecord { record, index: self.index, kind: self.kind, strict: self.strict, step: self.step }
    }
}

/// Returns a stream of the kind that the user specified, or of the guessed kind.
pub(crate) fn kinded(stream: Stream, kind: PayloadKind) -> KindedStream {
    KindedStream::new(stream, kind.specified())
}

/// The number of records in the files before the current one, for verbs that read file by file.
///
/// The number is known if each of these files was read to its end or has a fresh index; no file is scanned to
/// count its records. It is unknown for standard input, which `get` does not take.
#[derive(Debug)]
pub(crate) struct RecordNumbers {
    before: Option<u64>,
    /// The current file, until its records are counted.
    uncounted: Option<InputFile>,
    read: ReadArgs,
}

impl RecordNumbers {
    pub(crate) fn new(read: ReadArgs) -> RecordNumbers {
        RecordNumbers { before: Some(0), uncounted: None, read }
    }

    /// Begins a file, and returns the number of records in the preceding files.
    pub(crate) fn begin(&mut self, input: &InputFile) -> Option<u64> {
        if let (Some(before), Some(last)) = (self.before, self.uncounted.take()) {
            let records = last.records().or_else(|| indexed(&last, self.read));
            self.before = records.and_then(|n| before.checked_add(n));
        }
        if input.path() == Path::new(STDIN) {
            self.before = None;
        }
        self.uncounted = Some(input.clone());
        self.before
    }

    /// Ends the current file. `total` is its number of records, if they were counted.
    pub(crate) fn end(&mut self, total: Option<u64>) {
        if let Some(n) = total {
            self.before = self.before.and_then(|before| before.checked_add(n));
            self.uncounted = None;
        }
    }
}

/// Returns the number of records in a fresh index of the file, if it has one.
fn indexed(path: &Path, read: ReadArgs) -> Option<u64> {
    let options = read.index().mode(IndexMode::Require).tail(Tail::Tolerate).threads(1);
    let opened = index::open_shards(&[path.into()], &options).ok()?;
    opened.indexes.first().map(index::Index::len)
}

/// Returns true for a regular file or an object, which can be opened again and read by number; false for a
/// pipe or a device.
pub(crate) fn is_regular(path: &Path) -> bool {
    type_is_regular(path).unwrap_or(false)
}

/// Returns true for a regular file or an object.
///
/// # Errors
/// I/O errors, e.g. for a missing file.
pub(crate) fn type_is_regular(path: &Path) -> io::Result<bool> {
    Ok(path != Path::new(STDIN) && (store::is_object(path) || std::fs::metadata(path)?.is_file()))
}

/// Opens a file, a part of one, or standard input.
pub(crate) fn stream(input: &InputFile, read: ReadArgs) -> tfseek::Result<Stream> {
    match &input.part {
        Some(part) => read.stream().part(part),
        None if input.path() == Path::new(STDIN) => read.stream().read(std::io::stdin(), STDIN_NAME),
        None => read.stream().open(input.path()),
    }
}

/// Returns the name of a path in messages.
pub(crate) fn name(path: &Path) -> PathBuf {
    if path == Path::new(STDIN) { STDIN_NAME.into() } else { path.into() }
}

/// Resolves the paths of a verb that reads in file order, and prints warnings. A single `-` is standard
/// input.
pub(crate) fn resolve(paths: &PathsArgs, read: ReadArgs, console: &mut Console) -> Outcome<Vec<InputFile>> {
    if let Some(split) = SplitPath::among(&paths.paths)? {
        return split.inputs(read.dataset(read.index()));
    }
    let is_stdin = |p: &&PathBuf| p.as_path() == Path::new(STDIN);
    match paths.paths.iter().filter(is_stdin).count() {
        0 => {
            let mut files = Vec::new();
            for paths_or_pack in paths.paths.chunk_by(|a, b| !is_pack(a) && !is_pack(b)) {
                match paths_or_pack {
                    [pack] if is_pack(pack) => {
                        files.extend(InputFile::of_pack(pack, &read.dataset(read.index()))?);
                    }
                    some => {
                        let found = resolve_files(some, paths.allow_missing, console)?;
                        files.extend(found.into_iter().map(InputFile::from));
                    }
                }
            }
            Ok(files)
        }
        1 if paths.paths.len() == 1 => Ok(paths.paths.iter().cloned().map(InputFile::from).collect()),
        _ => Err(Failure::usage("`-` (standard input) cannot be combined with other paths")),
    }
}

/// Returns the paths of files that were resolved, for opening them by number. Warnings about them have been
/// printed.
pub(crate) fn resolved(paths: &PathsArgs, files: &[InputFile]) -> Outcome<PathsArgs> {
    let paths = match SplitPath::among(&paths.paths)? {
        Some(_) => paths.paths.clone(),
        None => files.iter().map(|file| file.path().to_path_buf()).collect(),
    };
    Ok(PathsArgs { paths, allow_missing: true })
}

/// Resolves paths and prints warnings.
pub(crate) fn resolve_files(
    paths: impl IntoPaths,
    allow_missing: bool,
    console: &mut Console,
) -> tfseek::Result<Vec<PathBuf>> {
    let (paths, warnings) = tfseek::paths::resolve_in_store(store::store(), paths, allow_missing)?;
    warnings::print(&warnings, console);
    Ok(paths)
}

/// Resolves paths as [`resolve`] does, for a verb that reads what is there. Returns the errors of the sets
/// that lack shards as well.
pub(crate) fn resolve_there(
    paths: &PathsArgs,
    read: ReadArgs,
    console: &mut Console,
) -> Outcome<(Vec<InputFile>, Vec<tfseek::Error>)> {
    let lacks = |e: &tfseek::Error| matches!(e.kind(), ErrorKind::Paths(PathsError::MissingShards { .. }));
    let missing = match resolve(paths, read, console) {
        Err(Failure::Error(e)) if lacks(&e) => e,
        found => return Ok((found?, Vec::new())),
    };
    let there = PathsArgs { paths: paths.paths.clone(), allow_missing: true };
    let found = resolve(&there, read, console)?;
    let sets: BTreeSet<PathBuf> = found.iter().filter_map(|file| set_of(file)).collect();
    let lacking = |set| tfseek::paths::resolve_in_store(store::store(), set, false).err();
    let mut all: Vec<_> = sets.into_iter().filter_map(lacking).collect();
    // Names in braces are no set.
    if all.is_empty() {
        all.push(missing);
    }
    Ok((found, all))
}

/// Returns the files of the sets without missing shards that a path matches, and the errors of its other
/// sets.
fn whole_sets(path: &Path, console: &mut Console) -> Outcome<Vec<Result<InputFile, (PathBuf, Failure)>>> {
    let mut checked = HashMap::new();
    let mut each = Vec::new();
    for file in resolve_files(path, true, console)? {
        let whole = set_of(&file).is_none_or(|set| {
            *checked.entry(set).or_insert_with_key(|set| {
                let found = tfseek::paths::resolve_in_store(store::store(), set, false);
                found.map_err(|e| each.push(Err((set.clone(), e.into())))).is_ok()
            })
        });
        if whole {
            each.push(Ok(file.into()));
        }
    }
    Ok(each)
}

/// Resolves the paths of a verb that reports on each file, and prints warnings. If they do not resolve
/// together, each path is resolved separately, to its files or an error.
pub(crate) fn resolve_each(
    paths: &PathsArgs,
    read: ReadArgs,
    console: &mut Console,
) -> Outcome<Vec<Result<InputFile, (PathBuf, Failure)>>> {
    let failure = match resolve(paths, read, console) {
        Ok(all) => return Ok(all.into_iter().map(Ok).collect()),
        Err(failure @ Failure::Error(_)) if SplitPath::among(&paths.paths)?.is_none() => failure,
        Err(failure) => return Err(failure),
    };
    let mut each = Vec::new();
    let mut empty = Vec::new();
    for path in &paths.paths {
        if is_pack(path) {
            match InputFile::of_pack(path, &read.dataset(read.index())) {
                Ok(found) => each.extend(found.into_iter().map(Ok)),
                Err(e) => each.push(Err((path.clone(), e.into()))),
            }
            continue;
        }
        match resolve_files(path, paths.allow_missing, console) {
            Ok(found) => each.extend(found.into_iter().map(InputFile::from).map(Ok)),
            Err(e)
                if path.is_dir()
                    && matches!(
                        e.kind(),
                        ErrorKind::Paths(PathsError::NoMatch { .. } | PathsError::OtherSets { .. })
                    ) =>
            {
                empty.push((path.clone(), e.into()));
            }
            Err(e) if matches!(e.kind(), ErrorKind::Paths(PathsError::MissingShards { .. })) => {
                each.extend(whole_sets(path, console)?);
            }
            Err(e) => each.push(Err((path.clone(), e.into()))),
        }
    }
    // A shell expands `data/*` to the folders in `data` as well.
    if each.iter().any(Result::is_ok) {
        for (folder, _) in &empty {
            console.note(format_args!(
                "tfseek: {}: a folder without TFRecord files, left out",
                folder.display()
            ));
        }
        if empty.len() + each.len() > 1 && !empty.is_empty() {
            return Ok(each);
        }
    }
    each.extend(empty.into_iter().map(Err));
    // If every path resolves separately, the error concerns all of them together: a set that lacks shards.
    if each.iter().all(Result::is_ok) { Err(failure) } else { Ok(each) }
}
