//! Text indexes of `tfrecord2idx`.

use super::script::{Scratch, Script};
use std::path::PathBuf;
use tfseek::error::IndexError;
use tfseek::frame::{OVERHEAD, put_record};
use tfseek::index::{Span, export_text, import_text};
use tfseek::{ErrorKind, Mapped};

/// Tests text indexes. The first byte selects a shard, and the meaning of the rest: the text, or edits of the shard's text index.
///
/// A text is accepted exactly if a naive reader accepts it, and is then exported again.
pub fn text_index(data: &[u8]) {
    thread_local! {
        static SHARDS: Vec<ValidShard> = [0, 1, 5, 40].map(ValidShard::new).into();
    }
    let Some((&mode, rest)) = data.split_first() else { return };
    SHARDS.with(|shards| {
        let shard = &shards[usize::from(mode >> 1 & 3)];
        if mode & 1 == 0 {
            return shard.check(rest);
        }
        let mut text = shard.text.clone();
        if Script(rest).edit(&mut text).is_none() {
            assert!(shard.spans(&text).is_some());
        }
        shard.check(&text);
    });
}

struct ValidShard {
    _folder: Scratch,
    path: PathBuf,
    len: u64,
    text: Vec<u8>,
}

impl ValidShard {
    fn new(records: usize) -> ValidShard {
        let mut file = Vec::new();
        (0..records).for_each(|i| put_record(&mut file, &vec![0; i * 37 % 101]).unwrap());
        let (folder, len) = (Scratch::new(), file.len() as u64);
        let path = folder.write("shard", &file);
        let (set, mut text) = (Mapped::from_bytes(file).unwrap(), Vec::new());
        export_text(set.dataset().index(0).unwrap(), 0..set.len(), &mut text).unwrap();
        ValidShard { _folder: folder, path, len, text }
    }

    fn check(&self, text: &[u8]) {
        let wanted = self.spans(text);
        let index = match import_text(&mut &*text, &self.path) {
            Ok(index) => index,
            Err(e) => {
                assert!(matches!(e.kind(), ErrorKind::Index(IndexError::Text { .. })), "{e}");
                return assert!(wanted.is_none(), "{e}");
            }
        };
        let spans: Vec<_> = (0..index.len()).map(|i| index.locate(i).unwrap()).collect();
        assert_eq!(Some(&spans), wanted.as_ref());
        let mut exported = Vec::new();
        export_text(&index, 0..index.len(), &mut exported).unwrap();
        let line = |span: &Span| format!("{} {}\n", span.offset, span.payload_len + OVERHEAD as u64);
        assert_eq!(exported, spans.iter().map(line).collect::<String>().into_bytes());
        let again = import_text(&mut &*exported, &self.path).unwrap();
        assert_eq!(again.len(), index.len());
    }

    /// Reads a text index naively. `None` if it is not one of this shard.
    fn spans(&self, text: &[u8]) -> Option<Vec<Span>> {
        /// Two numbers of 20 digits, a space and CR LF.
        const LONGEST: usize = 43;
        let (mut spans, mut end) = (Vec::new(), 0);
        for line in text.split_inclusive(|&byte| byte == b'\n') {
            if line.len() > LONGEST || line.len() == LONGEST && !line.ends_with(b"\n") {
                return None;
            }
            let line = std::str::from_utf8(line).ok()?;
            let line = line.strip_suffix('\n').unwrap_or(line);
            let (offset, size) = line.strip_suffix('\r').unwrap_or(line).split_once(' ')?;
            if ![offset, size].into_iter().all(|number| number.bytes().all(|byte| byte.is_ascii_digit())) {
                return None;
            }
            let (offset, size): (u64, u64) = (offset.parse().ok()?, size.parse().ok()?);
            if offset != end {
                return None;
            }
            end = offset.checked_add(size)?;
            spans.push(Span { offset, payload_len: size.checked_sub(OVERHEAD as u64)? });
        }
        (end == self.len).then_some(spans)
    }
}
