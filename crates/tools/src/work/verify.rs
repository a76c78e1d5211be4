//! Verification of whole streams.

use super::damage::{self, Gap, is_damage};
use super::stream::KindedStream;
use std::fs::File;
use std::path::Path;
use tfseek::example::MessageKind;
use tfseek::frame::OVERHEAD;
use tfseek::{Error, Warning};

/// The result of [`verify`].
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Verification {
    /// Number of records with correct checksums.
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
}

impl Verification {
    /// Returns true if the stream was read to its end and all records decode.
    pub fn is_sound(&self) -> bool {
        self.damage.is_none() && self.malformed == 0
    }

    /// If the file that was verified is damaged, counts the sound records behind the damage too, and returns the damaged ranges. They are not
    /// decoded. The file is read at offsets; its errors have the path `name`.
    pub fn count_behind_damage(&mut self, file: &File, name: &Path, max_record: u64) -> Vec<Gap> {
        if !self.damage.as_ref().is_some_and(is_damage) {
            return Vec::new();
        }
        // The file could be read before, so the damage found then is the result if this fails.
        let Ok(report) = damage::scan_file(file, name, max_record, &mut |_| ()) else { return Vec::new() };
        self.records = report.records;
        self.payload_bytes = report.bytes.saturating_sub(report.records.saturating_mul(OVERHEAD as u64));
        report.gaps
    }
}

impl From<Error> for Verification {
    /// Returns the result for a stream that cannot be opened.
    fn from(damage: Error) -> Verification {
        Verification { damage: Some(damage), ..Verification::default() }
    }
}

/// Reads a stream to its end, verifies the checksums that its options select, and decodes the records as the stream's kind. With
/// [`MessageKind::Other`] nothing is decoded.
///
/// `progress` is called after each record with the number of bytes of the record stream that were read.
pub fn verify(mut stream: KindedStream, mut progress: impl FnMut(u64)) -> Verification {
    let mut found = Verification::default();
    let kind = stream.kind();
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
                if let Err(e) = decoded {
                    found.malformed += 1;
                    found.first_malformed.get_or_insert(e);
                }
            }
            Ok(None) => {
                found.warnings = stream.stream().warnings().to_vec();
                return found;
            }
            Err(e) => {
                found.damage = Some(e);
                return found;
            }
        }
        progress(stream.stream().offset());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Cursor;
    use tfseek::ExampleBuilder;
    use tfseek::frame::put_record;
    use tfseek::stream::StreamOptions;

    fn file(payloads: &[&[u8]]) -> Vec<u8> {
        let mut file = Vec::new();
        payloads.iter().for_each(|payload| put_record(&mut file, payload).unwrap());
        file
    }

    fn guessed(file: Vec<u8>) -> KindedStream {
        KindedStream::guess(StreamOptions::new().read(Cursor::new(file), "x").unwrap())
    }

    #[test]
    fn malformed_records_and_damage_are_distinct() {
        let good = ExampleBuilder::new().int64("label", [3]).encode().unwrap();
        // A field whose length exceeds the payload.
        let bad = [0x0a, 0x7f];
        let mut payloads = vec![good.as_slice(); 20];
        let sound = verify(guessed(file(&payloads)), |_| ());
        assert!(sound.is_sound(), "{sound:?}");
        assert_eq!((sound.records, sound.payload_bytes), (20, 20 * good.len() as u64));

        payloads.insert(17, &bad);
        payloads.insert(19, &bad);
        let mut read = 0;
        let found = verify(guessed(file(&payloads)), |bytes| read = bytes);
        assert_eq!((found.records, found.malformed, read), (22, 2, file(&payloads).len() as u64));
        assert_eq!(found.first_malformed.as_ref().unwrap().location().record, Some(17));
        assert!(found.damage.is_none() && !found.is_sound());

        // Damage within the records that are read for the guess, and after them.
        for at in [3u64, 18] {
            let mut damaged = file(&vec![good.as_slice(); 20]);
            let record = damaged.len() / 20;
            damaged[at as usize * record + 12] ^= 1;
            let found = verify(guessed(damaged), |_| ());
            assert_eq!((found.records, found.malformed), (at, 0));
            assert_eq!(found.damage.unwrap().location().record, Some(at));
        }
    }

    #[test]
    fn records_of_other_kinds_are_not_decoded() {
        let stream = StreamOptions::new().read(Cursor::new(file(&[b"\x0a\x7f"])), "x").unwrap();
        assert!(verify(KindedStream::new(stream, MessageKind::Other), |_| ()).is_sound());
    }
}
