//! Verification of streams and files.

use super::checks::RecordChecks;
use super::damage::{Gap, MAX_RECORD, is_damage, scan};
use super::faults::RecordFaults;
use super::stream::KindedStream;
use super::threads::in_order;
use std::fs::File;
use std::io::Seek;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use tfseek::error::Remedy;
use tfseek::example::MessageKind;
use tfseek::frame::OVERHEAD;
use tfseek::stream::StreamOptions;
use tfseek::{Error, ErrorKind, Result, Stream, Verify, Warning};

/// The result of [`verify`], and [`VerifyOptions::run`]'s result for each file.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Verification {
    /// Number of records with correct checksums. In a damaged file also those after the damage, which are not
    /// decoded.
    pub records: u64,
    /// Payload bytes of these records.
    pub payload_bytes: u64,
    /// Number of these records that do not decode as the stream's kind.
    pub malformed: u64,
    /// Error of the first record that does not decode.
    pub first_malformed: Option<Error>,
    /// What the stream left out: a torn tail, with [`Tail::Tolerate`](tfseek::Tail::Tolerate).
    pub warnings: Vec<Warning>,
    /// Error that ended the stream.
    pub damage: Option<Error>,
    /// The damaged ranges of a file.
    pub gaps: Vec<Gap>,
    /// Number of all records of a file by their lengths alone, if its writer computed checksums in another
    /// way and the lengths end with the file.
    pub unverified: Option<u64>,
    /// The faults of its records, if they were checked. Those after damage are not.
    pub faults: Option<RecordFaults>,
}

impl Verification {
    /// Returns true if the stream was read to its end, all records decode, and they have no faults but notes.
    pub fn is_sound(&self) -> bool {
        let faults = self.faults.as_ref().map_or(0, |faults| faults.count(false));
        self.damage.is_none() && self.malformed == 0 && faults == 0
    }

    /// If the file that was verified is damaged, counts the sound records after the damage too, and finds the
    /// damaged ranges.
    fn count_after_damage(&mut self, file: &File, name: &Path, max_record: u64) {
        if !self.damage.as_ref().is_some_and(is_damage) {
            return;
        }
        // The file could be read before, so the damage found then is the result if this fails.
        let Ok(report) = scan(file, name, max_record) else { return };
        self.records = report.records;
        self.payload_bytes = report.bytes - report.records * OVERHEAD as u64;
        self.gaps = report.gaps;
    }
}

impl From<Error> for Verification {
    /// Returns the result for a stream that cannot be opened.
    fn from(damage: Error) -> Verification {
        Verification { damage: Some(damage), ..Verification::default() }
    }
}

/// Options of the verification of files.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct VerifyOptions {
    /// Number of [`threads`](tfseek::threads). Default: one per processor. 0: the calling thread.
    pub threads: Option<usize>,
    /// Kind of the records. Default: [`MessageKind::Other`], with which nothing is decoded. Without a kind it
    /// is guessed for each file.
    pub kind: Option<MessageKind>,
    /// Options of the streams.
    pub stream: StreamOptions,
    /// Checks of records. Default: none.
    pub checks: Option<Arc<RecordChecks>>,
    /// Maximum payload length of the records after damage. Default: [`MAX_RECORD`].
    pub max_record: u64,
}

impl Default for VerifyOptions {
    fn default() -> VerifyOptions {
        let kind = Some(MessageKind::Other);
        let stream = StreamOptions::default();
        VerifyOptions { threads: None, kind, stream, checks: None, max_record: MAX_RECORD }
    }
}

impl VerifyOptions {
    /// Verifies files, several at the same time, and calls `done` with the results in the order of the files.
    /// If a regular file is damaged, its sound records after the damage are counted and its damaged ranges
    /// are found.
    ///
    /// `progress` is called before each file and whenever bytes were read, with their number. It may cancel
    /// the work. After a file it has received the size of the file.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let path = dir.path().join("data.tfrecord");
    /// # let mut writer = tfseek::Writer::create(&path)?;
    /// # for i in 0..10 { writer.write(&[i])?; }
    /// # writer.close()?;
    /// use std::ops::ControlFlow;
    /// use tfseek_tools::VerifyOptions;
    /// let mut records = 0;
    /// VerifyOptions::default().run(&[path], |_| ControlFlow::Continue(()), |_, found| {
    ///     records += found.records;
    ///     Ok::<_, tfseek::Error>(())
    /// })?;
    /// assert_eq!(records, 10);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// The first error of `done`; [`ErrorKind::Cancelled`] if `progress` cancels the work before a file; the
    /// error of a thread that cannot be started. Errors of files are in their results.
    pub fn run<'p, E: Send + From<Error>>(
        &self,
        paths: &'p [PathBuf],
        progress: impl Fn(u64) -> ControlFlow<()> + Clone + Send + Sync + 'static,
        mut done: impl FnMut(&Path, Verification) -> Result<(), E>,
    ) -> Result<(), E> {
        let verify = |path: &'p PathBuf| match progress(0) {
            ControlFlow::Break(()) => Err(E::from(ErrorKind::Cancelled.into())),
            ControlFlow::Continue(()) => Ok((path, self.file(path, &progress))),
        };
        in_order(self.threads, usize::MAX, paths, verify, |(path, found): (&PathBuf, _)| done(path, found))
    }

    fn file(
        &self,
        path: &Path,
        progress: &(impl Fn(u64) -> ControlFlow<()> + Clone + Send + Sync + 'static),
    ) -> Verification {
        // The size of an object is not looked up. It is known when it was read.
        let size = std::fs::metadata(path).map_or(0, |meta| meta.len());
        let read = Arc::new(AtomicU64::new(0));
        let count = {
            let read = Arc::clone(&read);
            let progress = progress.clone();
            move |bytes| {
                read.fetch_add(bytes, Relaxed);
                progress(bytes)
            }
        };
        let found = self.opened(path, count).unwrap_or_else(Verification::from);
        // What was not read, because it is after damage or the file cannot be opened.
        let _ = progress(size.saturating_sub(read.load(Relaxed)));
        found
    }

    fn opened(
        &self,
        path: &Path,
        progress: impl Fn(u64) -> ControlFlow<()> + Send + Sync + 'static,
    ) -> Result<Verification> {
        let Ok(file) = File::open(path) else {
            // An object, whose damaged ranges are not looked for, or a path that cannot be opened, whose
            // error is the stream's.
            return Ok(self.verified(self.stream.open_with(path, progress)?));
        };
        // A pipe cannot be read again.
        let again = match file.metadata() {
            Ok(found) if found.is_file() => file.try_clone().ok(),
            _ => None,
        };
        let mut found = self.verified(self.stream.read_file(file, path, progress)?);
        if let Some(file) = again {
            if found.damage.as_ref().is_some_and(|e| e.kind().remedy() == Some(Remedy::Unverified)) {
                found.unverified = self.count_unverified(&file, path).ok();
            }
            found.count_after_damage(&file, path, self.max_record);
        }
        Ok(found)
    }

    /// Counts the records of a file by their lengths.
    fn count_unverified(&self, file: &File, path: &Path) -> Result<u64> {
        let mut file = file.try_clone()?;
        file.rewind()?;
        let options = StreamOptions { verify: Verify::None, ..self.stream.clone() };
        let mut stream = options.read_file(file, path, |_| ControlFlow::Continue(()))?;
        while stream.next()?.is_some() {}
        Ok(stream.records_read())
    }

    fn verified(&self, stream: Stream) -> Verification {
        verify(KindedStream::new(stream, self.kind), self.checks.as_deref(), |_| ())
    }
}

/// Reads a stream to its end, verifies the checksums that its options select, and decodes the records as the
/// stream's kind. With [`MessageKind::Other`] nothing is decoded. With `checks` the records are checked, too.
///
/// `progress` is called after each record with the number of bytes of the record stream that were read.
pub fn verify(
    mut stream: KindedStream,
    checks: Option<&RecordChecks>,
    mut progress: impl FnMut(u64),
) -> Verification {
    let mut found = Verification::default();
    let kind = stream.kind();
    let mut checker = checks.map(RecordChecks::begin);
    loop {
        match stream.next() {
            Ok(Some(record)) => {
                found.records += 1;
                found.payload_bytes += record.payload().len() as u64;
                let decoded = match kind {
                    MessageKind::Example => record.example().validate(),
                    MessageKind::SequenceExample => record.sequence_example().validate(),
                    MessageKind::Other => Ok(()),
                };
                let whole = || kind.check(record.payload()).map_err(|e| e.at(record.at()));
                match (decoded.and_then(|()| whole()), &mut checker) {
                    (Err(e), _) => {
                        found.malformed += 1;
                        found.first_malformed.get_or_insert(e);
                    }
                    (Ok(()), Some(checker)) => {
                        if let Err(e) = checker.check(record, kind) {
                            found.damage = Some(e);
                            break;
                        }
                    }
                    (Ok(()), None) => {}
                }
            }
            Ok(None) => {
                found.warnings = stream.stream().warnings().to_vec();
                break;
            }
            Err(e) => {
                found.damage = Some(e);
                break;
            }
        }
        progress(stream.stream().offset());
    }
    found.faults = checker.map(|checker| checker.finish());
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Cursor;
    use tfseek::ExampleBuilder;
    use tfseek::frame::put_record;

    fn file(payloads: &[&[u8]]) -> Vec<u8> {
        let mut file = Vec::new();
        payloads.iter().for_each(|payload| put_record(&mut file, payload).unwrap());
        file
    }

    fn guessed(file: Vec<u8>) -> KindedStream {
        KindedStream::new(StreamOptions::default().read(Cursor::new(file), "x").unwrap(), None)
    }

    #[test]
    fn malformed_records_and_damage_are_distinct() {
        let good = ExampleBuilder::new().int64("label", [3]).encode().unwrap();
        // A field whose length exceeds the payload.
        let bad = [0x0a, 0x7f];
        let mut payloads = vec![good.as_slice(); 20];
        let sound = verify(guessed(file(&payloads)), None, |_| ());
        assert!(sound.is_sound(), "{sound:?}");
        assert_eq!((sound.records, sound.payload_bytes), (20, 20 * good.len() as u64));

        payloads.insert(17, &bad);
        payloads.insert(19, &bad);
        let mut read = 0;
        let found = verify(guessed(file(&payloads)), None, |bytes| read = bytes);
        assert_eq!((found.records, found.malformed, read), (22, 2, file(&payloads).len() as u64));
        assert_eq!(found.first_malformed.as_ref().unwrap().location().record, Some(17));
        assert!(found.damage.is_none() && !found.is_sound());

        // Damage within the records that are read for the guess, and after them.
        for at in [3u64, 18] {
            let mut damaged = file(&vec![good.as_slice(); 20]);
            let record = damaged.len() / 20;
            damaged[at as usize * record + 12] ^= 1;
            let found = verify(guessed(damaged), None, |_| ());
            assert_eq!((found.records, found.malformed), (at, 0));
            assert_eq!(found.damage.unwrap().location().record, Some(at));
        }
    }

    #[test]
    fn files_are_verified_in_order_and_counted_after_damage() {
        let dir = tempfile::tempdir().unwrap();
        let write = |name: &str, bytes: &[u8]| {
            let path = dir.path().join(name);
            std::fs::write(&path, bytes).unwrap();
            path
        };
        let sound = file(&[&b"abc"[..]; 10]);
        let mut damaged = sound.clone();
        damaged[4 * 19 + 12] ^= 1;
        let paths =
            [write("a", &damaged), dir.path().join("none"), dir.path().to_path_buf(), write("b", &sound)];
        for threads in [Some(1), Some(3)] {
            let options = VerifyOptions { threads, ..VerifyOptions::default() };
            let read = Arc::new(AtomicU64::new(0));
            let progress = {
                let read = Arc::clone(&read);
                move |bytes| {
                    read.fetch_add(bytes, Relaxed);
                    ControlFlow::Continue(())
                }
            };
            let mut all = Vec::new();
            let done = |path: &Path, found: Verification| {
                assert_eq!(path, paths[all.len()]);
                all.push((found.records, found.gaps.len(), found.is_sound()));
                Ok::<_, Error>(())
            };
            options.run(&paths, progress, done).unwrap();
            assert_eq!(all, [(9, 1, false), (0, 0, false), (0, 0, false), (10, 0, true)]);
            let sizes = paths.iter().filter_map(|path| Some(std::fs::metadata(path).ok()?.len()));
            assert_eq!(read.load(Relaxed), sizes.sum::<u64>());

            let cancel = |_| ControlFlow::Break(());
            let e = options.run(&paths, cancel, |_, _| Ok::<_, Error>(())).unwrap_err();
            assert!(matches!(e.kind(), ErrorKind::Cancelled), "{e}");
        }
    }

    #[test]
    fn records_of_other_kinds_are_not_decoded() {
        let stream = StreamOptions::default().read(Cursor::new(file(&[b"\x0a\x7f"])), "x").unwrap();
        assert!(verify(KindedStream::new(stream, Some(MessageKind::Other)), None, |_| ()).is_sound());
    }
}
