//! A data set that is viewed.

use std::path::Path;
use std::sync::OnceLock;
use tfseek::example::MessageKind;
use tfseek::index::Index;
use tfseek::stream::StreamOptions;
use tfseek::{Dataset, Record, Result};
use tfseek_tfds::FoundFeatures;
use tfseek_tools::{Content, damage, guess_kind};

/// The arguments of the `tfseek` command that open a set, as words of a shell. The page shows commands with
/// them.
#[derive(Clone, Debug, Default)]
pub struct CommandWords {
    /// The paths, and options that every verb has.
    pub paths: String,
    /// The treatment of damage: `--damage skip`, or empty.
    pub damage: String,
    /// Options of the verbs that access records by number, such as `--io pread`.
    pub by_number: String,
    /// The kind of the records, such as `--kind bytes`.
    pub kind: String,
}

impl CommandWords {
    /// Returns the words of a verb before and after an argument of the caller.
    pub(crate) fn around(&self, verb: &str) -> [String; 2] {
        let CommandWords { paths, damage, by_number, kind } = self;
        let words = |words: &[&str]| {
            words.iter().copied().filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
        };
        match verb {
            "grep" => ["tfseek grep".to_owned(), words(&[paths, damage, kind])],
            "stats" => [words(&["tfseek stats", paths]), words(&[damage, kind])],
            "order" => [words(&["tfseek order", paths]), words(&[damage, by_number])],
            "verify" => [words(&["tfseek verify", paths]), String::new()],
            "schema" => [words(&["tfseek schema", paths]), damage.clone()],
            verb => [words(&["tfseek", verb, paths]), words(&[damage, by_number, kind])],
        }
    }
}

/// A dataset, and its name and options as the user gave them.
#[derive(Debug)]
pub struct ViewSet {
    pub(crate) dataset: Dataset,
    pub(crate) name: String,
    words: CommandWords,
    pub(crate) fingerprint: String,
    /// The kind that the user specified.
    pub(crate) kind: Option<MessageKind>,
    /// The kinds of the shards whose records were read.
    kinds: Box<[OnceLock<MessageKind>]>,
    /// The features by the `features.json` of the files.
    pub(crate) features: FoundFeatures,
}

impl ViewSet {
    /// Creates a set. `name` is shown as its title.
    ///
    /// # Errors
    /// Errors of [`Dataset::fingerprint`].
    pub fn new(dataset: Dataset, name: impl Into<String>) -> Result<ViewSet> {
        let fingerprint = dataset.fingerprint()?;
        let kinds = dataset.shards().map(|_| OnceLock::new()).collect();
        let words = CommandWords { paths: "PATHS".into(), ..CommandWords::default() };
        let features = FoundFeatures::of_files(dataset.shards().map(|shard| shard.path), dataset.store());
        Ok(ViewSet { dataset, name: name.into(), words, fingerprint, kind: None, kinds, features })
    }

    /// Sets the arguments of the commands that the page shows. By default they have `PATHS` for the paths.
    #[must_use]
    pub fn words(mut self, words: CommandWords) -> ViewSet {
        self.words = words;
        self
    }

    /// Sets the kind of the records. By default it is guessed for each shard.
    #[must_use]
    pub fn kind(mut self, kind: Option<MessageKind>) -> ViewSet {
        self.kind = kind;
        self
    }

    pub(crate) fn command(&self, verb: &str) -> [String; 2] {
        self.words.around(verb)
    }

    /// Returns the kind of the records of shard `s`, which is guessed once.
    pub(crate) fn kind_of(&self, s: usize) -> MessageKind {
        if let Some(kind) = self.kind {
            return kind;
        }
        let guess = || {
            let range =
                self.dataset.shards().nth(s).map_or(0..0, |shard| shard.start..shard.start + shard.len);
            guess_kind(&self.dataset, range)
        };
        self.kinds.get(s).map_or(MessageKind::Other, |kind| *kind.get_or_init(guess))
    }

    /// Calls `f` with record `i` and its kind.
    pub(crate) fn with_record<T>(&self, i: u64, f: impl FnOnce(Record<'_>, MessageKind) -> T) -> Result<T> {
        let (s, _) = self.dataset.shard_of(i)?;
        let kind = self.kind_of(s);
        let mut buf = Vec::new();
        let record = self.dataset.read(i, &mut buf)?;
        Ok(f(record, kind))
    }

    /// Calls `f` with the content of record `i`, and its payload.
    pub(crate) fn with_content<T>(&self, i: u64, f: impl FnOnce(&Content<'_>, &[u8]) -> T) -> Result<T> {
        self.with_record(i, |record, kind| {
            self.content(record, kind).map(|content| f(&content, record.payload()))
        })?
    }

    /// Decodes a record. One that is not of the guessed kind of its shard is shown as bytes.
    pub(crate) fn content<'a>(&self, record: Record<'a>, kind: MessageKind) -> Result<Content<'a>> {
        Content::of_record(record, kind, self.kind.is_some())
    }

    /// Returns `n` record numbers, spread evenly over the set.
    pub(crate) fn spread(&self, n: u64) -> impl Iterator<Item = u64> + use<> {
        let len = self.dataset.len();
        let n = n.min(len);
        (0..n).map(move |k| (u128::from(k) * u128::from(len) / u128::from(n.max(1))) as u64)
    }

    /// Returns the options of streams of the shards.
    pub(crate) fn streams(&self) -> StreamOptions {
        StreamOptions { store: self.dataset.store().cloned(), ..StreamOptions::default() }
    }

    /// Returns the number of damaged ranges that are left out, and of the bytes in them.
    pub(crate) fn damage(&self) -> (u64, u64) {
        damage::left_out(self.dataset.warnings())
    }
}

/// Returns the number of bytes of shard `s` at `path`: of the file now, or of the object when it was indexed.
pub(crate) fn bytes_of(dataset: &Dataset, s: usize, path: &Path) -> u64 {
    match std::fs::metadata(path) {
        Ok(found) => found.len(),
        Err(_) if dataset.store().is_some() => dataset.index(s).map_or(0, Index::data_size),
        Err(_) => 0,
    }
}

/// Returns the last part of a path.
pub(crate) fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_have_the_options_of_their_verb() {
        let words = CommandWords {
            paths: "'a b' --allow-missing".into(),
            damage: "--damage skip".into(),
            by_number: "--io pread".into(),
            kind: String::new(),
        };
        let command = |verb, argument| {
            let [before, after] = words.around(verb);
            format!("{before} {argument} {after}")
        };
        assert_eq!(command("get", "7"), "tfseek get 'a b' --allow-missing 7 --damage skip --io pread");
        assert_eq!(command("grep", "'x == 3'"), "tfseek grep 'x == 3' 'a b' --allow-missing --damage skip");
        assert_eq!(
            command("order", "--step 3"),
            "tfseek order 'a b' --allow-missing --step 3 --damage skip --io pread"
        );
        assert_eq!(command("schema", "--tf"), "tfseek schema 'a b' --allow-missing --tf --damage skip");
    }
}
