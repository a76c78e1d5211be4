//! Hints after the messages of errors, which the command and the Python package share.

use std::path::{Path, PathBuf};
use tfseek::error::{Build, PathsError, Remedy};
use tfseek::{Error, ErrorKind};
use tfseek_tfds::is_prepared;

/// Returns the hint for a remedy that is the same in the command and in the Python package. `None` for the
/// other remedies.
pub fn common_hint(remedy: &Remedy<'_>) -> Option<String> {
    Some(match remedy {
        Remedy::Delete(_) => "delete the file; it is then built again".into(),
        Remedy::UnpackOnce("gzip") => "`gzip -dc` decompresses it once".into(),
        Remedy::UnpackOnce(_) => "decompress it once".into(),
        Remedy::Extract => "unpack it first".into(),
        Remedy::ExtractOr(tool) => format!("unpack it first, or read it with {tool}"),
        Remedy::ReadWith(tool) => format!("read it with {tool}"),
        Remedy::FetchAgain => "the download or the copy failed; fetch the file again".into(),
        Remedy::FetchLfs => "fetch the file itself with `git lfs pull`".into(),
        Remedy::OpenShard => "open the shard it belongs to".into(),
        Remedy::OpenPack => "open it under a name that ends in .tfrp".into(),
        Remedy::PutBack(_) => "repeat the run, or move the old files back to their folder".into(),
        Remedy::Delimited => "the command `tfseek convert --bare` writes them as records".into(),
        Remedy::WriteRecords => "write each message as a record, for example with tfseek.Writer".into(),
        Remedy::NoRecords => "none of it can be read: find out how it was written and copied".into(),
        Remedy::Compression => "it is compressed; specify its compression, or none".into(),
        _ => return None,
    })
}

/// Returns the hint for an address that is refused. `readers` tells what reads objects, and `is_object` is
/// true for their addresses; `None` in a build without them.
pub fn address_hint(e: &Error, readers: &str, is_object: Option<fn(&str) -> bool>) -> Option<String> {
    let ErrorKind::Paths(PathsError::NotLocal { address, scheme }) = e.kind() else { return None };
    match is_object {
        _ if scheme.eq_ignore_ascii_case("file") => None,
        None => Some("this tfseek was built without the feature `remote`".into()),
        Some(is_object) => is_object(address).then(|| format!("{readers} such addresses")),
    }
}

/// Returns the folder of an error that no file is in it, if it has versions of a data set. Folders of a store
/// are not listed.
pub fn folder_of_versions(e: &Error) -> Option<&Path> {
    let pattern = match e.kind() {
        ErrorKind::Paths(PathsError::NoMatch { pattern }) => pattern,
        ErrorKind::Paths(PathsError::OtherSets { pattern, found }) if is_below(found) => pattern,
        _ => return None,
    };
    let folder = Path::new(&**pattern).parent()?;
    (!folder.join("dataset_info.json").exists() && is_prepared(folder, None)).then_some(folder)
}

/// Returns true if these are not other sets, but the shards in the folders below.
pub fn is_below(found: &[PathBuf]) -> bool {
    found.iter().all(|path| path.ends_with("**"))
}

/// Returns the lines that show where a condition is wrong, to follow the message. Empty for other errors.
pub fn excerpt(e: &Error) -> String {
    match e.kind() {
        ErrorKind::Filter(e) => e.excerpt().lines().map(|line| format!("\n  {line}")).collect(),
        _ => String::new(),
    }
}

/// Returns the shell command that builds index or column files:
/// `tfseek index 'data/train-*.tfrecord' --column 'label'`.
pub fn index_command(build: &Build) -> String {
    let mut command = String::from("tfseek index");
    for path in &build.paths {
        command = command + " " + &quote(path);
    }
    if build.more > 0 {
        command += &format!(" .. (all {} files)", build.paths.len() + build.more);
    }
    for feature in &build.features {
        command += " --column ";
        command += &word(feature);
    }
    command
}

/// Returns a word of a shell, in quotes if it needs them.
pub fn word(text: &str) -> String {
    let is_plain =
        !text.is_empty() && text.bytes().all(|c| c.is_ascii_alphanumeric() || b"_-./:".contains(&c));
    if is_plain { text.to_owned() } else { quote(text) }
}

/// Quotes a word for a shell.
fn quote(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_quoted_for_a_shell() {
        let mut build = Build::default();
        build.paths = vec!["it's/train-*.tfrecord".into()];
        assert_eq!(index_command(&build), r"tfseek index 'it'\''s/train-*.tfrecord'");
        build.features = vec!["label".into(), "a b".into()];
        build.more = 3;
        assert_eq!(
            index_command(&build),
            r"tfseek index 'it'\''s/train-*.tfrecord' .. (all 4 files) --column label --column 'a b'"
        );
    }
}
