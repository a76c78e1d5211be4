//! Expansion of patterns: braces first, then `@` or wildcards.

use super::folder::{existing, exists, shards_in};
use super::set::{AtPattern, FoundShard, ShardName, padded_to};
use super::walk::{NamePattern, has_wildcard, is_of_folders, matches};
use super::{replaced, walk};
use crate::error::{Error, ErrorKind, PathsError, Result};
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// Maximum number of names in the expansion of braces.
pub const MAX_NAMES: usize = 1_000_000;

/// Maximum length of all expanded names in bytes: enough for a million names of a few hundred bytes.
const MAX_TEXT: u64 = 256 << 20;
/// Maximum nesting depth of braces.
const MAX_DEPTH: usize = 16;
/// Maximum number of missing names in an error, which contains the number of all.
const MAX_LISTED: usize = 1000;

pub(super) fn at_pattern(path: &Path) -> Option<AtPattern<'_>> {
    AtPattern::parse(path.file_name()?.to_str()?)
}

/// Returns true if a path that does not exist may be a pattern.
pub(super) fn is_pattern(path: &Path) -> bool {
    path.to_str().is_some_and(|s| s.contains('{') || has_wildcard(s)) || at_pattern(path).is_some()
}

pub(super) fn resolve(
    path: &Path,
    allow_missing: bool,
    folders: &mut Vec<PathBuf>,
) -> Result<Vec<FoundShard>> {
    let pattern = || path.display().to_string().into_boxed_str();
    let bad = |reason: Box<str>| Error::from(PathsError::BadPattern { pattern: pattern(), reason });
    // Existing folders are taken literally, like files. The empty path is an ancestor of every relative path.
    let mut base = Path::new("");
    for ancestor in path.ancestors().skip(1).take_while(|ancestor| !ancestor.as_os_str().is_empty()) {
        if exists(ancestor)? {
            base = ancestor;
            break;
        }
    }
    let rest = path.strip_prefix(base).ok().and_then(Path::to_str);
    let rest = rest.ok_or_else(|| bad("expected UTF-8".into()))?;

    let words = expand(rest, 0).map_err(|reason| bad(reason.into()))?;
    let mut all = Vec::new();
    let mut missing = MissingWords::default();
    for word in &words {
        let path = base.join(word);
        let is_pattern = has_wildcard(word) || at_pattern(&path).is_some();
        if let Some(mut found) = existing(&path, is_pattern, folders)? {
            all.append(&mut found);
        } else if let Some(at) = at_pattern(&path) {
            let dir = Path::new(word).parent().and_then(Path::to_str);
            if dir.is_some_and(has_wildcard) {
                return Err(bad("wildcards cannot be combined with `@`".into()));
            }
            let folder = path.parent().unwrap_or(base);
            replaced::check(folder, |name| {
                name.to_str().and_then(ShardName::parse).is_some_and(|member| at.names(&member))
            })?;
            all.append(&mut at.resolve(folder, allow_missing)?);
        } else if is_of_folders(word) {
            match shards_in(&walk::folders(base, word)?, folders) {
                Err(e) if matches!(e.kind(), ErrorKind::Paths(PathsError::NoMatch { .. })) => {
                    searched(&path, Vec::new(), allow_missing)?;
                }
                found => all.append(&mut found?),
            }
        } else if has_wildcard(word) {
            let found = matches(base, word)?;
            check_replaced(base, word, &found)?;
            let found = found.into_iter().map(|path| FoundShard { path, searched: true });
            all.append(&mut searched(&path, found.collect(), allow_missing)?);
        } else {
            if missing.count == 0 {
                replaced::check_file(&path)?;
            }
            missing.add(path);
        }
    }
    missing.check(&all, &pattern(), words.len(), allow_missing)?;
    Ok(all)
}

/// The words of a pattern that name no shard.
#[derive(Default)]
pub(super) struct MissingWords {
    /// The first of them.
    listed: Vec<PathBuf>,
    count: u64,
}

impl MissingWords {
    pub(super) fn add(&mut self, path: PathBuf) {
        self.count += 1;
        if self.listed.len() < MAX_LISTED {
            self.listed.push(path);
        }
    }

    /// Returns an error if none of the `words` words of a pattern found a shard, or if some did not and may
    /// not be missing.
    pub(super) fn check(
        self,
        found: &[FoundShard],
        pattern: &str,
        words: usize,
        allow_missing: bool,
    ) -> Result<()> {
        if found.is_empty() {
            return Err(PathsError::NoMatch { pattern: pattern.into() }.into());
        }
        if self.count > 0 && !allow_missing {
            let set = pattern.into();
            let total = words as u64;
            let MissingWords { listed: missing, count: missing_count } = self;
            return Err(PathsError::MissingShards { set, total, missing, missing_count }.into());
        }
        Ok(())
    }
}

/// Checks that no run was interrupted while it replaced a set that a pattern with wildcards matches, in the
/// folders of the files that were found, and in the folder that the pattern names.
fn check_replaced(base: &Path, word: &str, found: &BTreeSet<PathBuf>) -> Result<()> {
    let pattern = base.join(word);
    let (Some(folder), Some(last)) = (pattern.parent(), pattern.file_name().and_then(OsStr::to_str)) else {
        return Ok(());
    };
    let Ok(last) = NamePattern::new(last) else { return Ok(()) };
    let folders: BTreeSet<&Path> = found.iter().filter_map(|path| path.parent()).chain([folder]).collect();
    folders.into_iter().try_for_each(|folder| {
        replaced::check(folder, |name| name.to_str().is_some_and(|name| last.matches(name)))
    })
}

/// Returns `found`. If it is empty, returns an error unless gaps are allowed.
pub(super) fn searched(path: &Path, found: Vec<FoundShard>, allow_missing: bool) -> Result<Vec<FoundShard>> {
    if found.is_empty() && !allow_missing {
        return Err(PathsError::NoMatch { pattern: path.display().to_string().into() }.into());
    }
    Ok(found)
}

/// Expands braces: `{a,b}`, `{00..10}`, `{0..10..2}`, several in a row and nested. Braces of another form and
/// unmatched braces are text.
pub(super) fn expand(pattern: &str, depth: usize) -> Result<Vec<String>, String> {
    if depth > MAX_DEPTH {
        return Err(format!("expected braces nested at most {MAX_DEPTH} deep, found more"));
    }
    let bytes = pattern.as_bytes();
    let partner = matching_braces(bytes);
    let mut words = vec![String::new()];
    let mut text = 0; // start of the text that is not copied yet
    let mut at = 0;
    while let Some(end) = partner.get(at) {
        let &Some(end) = end else {
            at += 1;
            continue;
        };
        let body = part(pattern, at + 1..end);
        let choices = match (commas(body), range(body)?) {
            (parts, None) if parts.len() == 1 => {
                expand(body, depth + 1)?.into_iter().map(|w| format!("{{{w}}}")).collect()
            }
            (_, Some(numbers)) => numbers,
            (parts, None) => {
                let mut choices = Vec::new();
                let mut bytes = 0;
                for part in parts {
                    let mut part = expand(part, depth + 1)?;
                    bytes += total_len(&part);
                    check_limits((choices.len() + part.len()) as u64, bytes)?;
                    choices.append(&mut part);
                }
                choices
            }
        };
        words = product(&words, &[part(pattern, text..at).to_owned()])?;
        words = product(&words, &choices)?;
        at = end + 1;
        text = at;
    }
    product(&words, &[part(pattern, text..pattern.len()).to_owned()])
}

/// Returns a part of a pattern whose ends are next to braces, i.e. at character boundaries.
fn part(pattern: &str, range: Range<usize>) -> &str {
    pattern.get(range).unwrap_or_default()
}

/// Returns a table with the offset of the matching `}` for the offset of each matched `{`.
fn matching_braces(bytes: &[u8]) -> Vec<Option<usize>> {
    let mut partner = vec![None; bytes.len()];
    let mut open = Vec::new();
    for (i, c) in bytes.iter().enumerate() {
        match c {
            b'{' => open.push(i),
            b'}' => {
                if let Some(partner) = open.pop().and_then(|start: usize| partner.get_mut(start)) {
                    *partner = Some(i);
                }
            }
            _ => {}
        }
    }
    partner
}

/// Splits the body of a pair of braces at the commas that are not in inner braces.
fn commas(body: &str) -> Vec<&str> {
    let mut depth = 0usize;
    body.split(|c| {
        match c {
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        c == ',' && depth == 0
    })
    .collect()
}

/// Returns the numbers of `a..b` or `a..b..step`, padded as in a shell. `None` if the body has another form.
fn range(body: &str) -> Result<Option<Vec<String>>, String> {
    let parts = body.split("..").collect::<Vec<_>>();
    let (from, to, step) = match *parts.as_slice() {
        [from, to] => (from, to, "1"),
        [from, to, step] => (from, to, step),
        _ => return Ok(None),
    };
    let is_number = |s: &str| !s.is_empty() && s.bytes().all(|c| c.is_ascii_digit());
    if ![from, to, step].into_iter().all(is_number) {
        return Ok(None);
    }
    let number = |s: &str| s.parse::<u64>().map_err(|_| format!("{s} does not fit into 64 bits"));
    let a = number(from)?;
    let b = number(to)?;
    let step = number(step)?.max(1);
    let padded = [from, to].iter().any(|s| s.len() > 1 && s.starts_with('0'));
    let width = if padded { from.len().max(to.len()) } else { 0 };
    let steps = a.abs_diff(b) / step;
    let count = steps.saturating_add(1);
    check_limits(count, count.saturating_mul(width as u64))?;
    let nth = |i: u64| if a <= b { a + i * step } else { a - i * step };
    Ok(Some((0..=steps).map(|i| padded_to(width, nth(i))).collect()))
}

/// Returns each of `heads` concatenated with each of `tails`.
fn product(heads: &[String], tails: &[String]) -> Result<Vec<String>, String> {
    let count = heads.len() as u64 * tails.len() as u64;
    let bytes = total_len(heads) * tails.len() as u64 + total_len(tails) * heads.len() as u64;
    check_limits(count, bytes)?;
    Ok(heads.iter().flat_map(|head| tails.iter().map(move |tail| format!("{head}{tail}"))).collect())
}

fn total_len(words: &[String]) -> u64 {
    words.iter().map(|word| word.len() as u64).sum()
}

fn check_limits(names: u64, bytes: u64) -> Result<(), String> {
    if names > MAX_NAMES as u64 {
        return Err(format!("expected at most {MAX_NAMES} names from braces, found {names}"));
    }
    if bytes > MAX_TEXT {
        return Err(format!("expected at most {MAX_TEXT} bytes of names from braces, found {bytes}"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn braces() {
        for (pattern, expected) in [
            ("plain", "plain"),
            ("{a,b}", "a b"),
            ("x{a,b}y{1..3}", "xay1 xay2 xay3 xby1 xby2 xby3"),
            ("{08..11}", "08 09 10 11"),
            ("{8..011}", "008 009 010 011"),
            ("{8..11}", "8 9 10 11"),
            ("{3..1}", "3 2 1"),
            ("{0..10..4}", "0 4 8"),
            ("{10..0..4}", "10 6 2"),
            ("{0..1..0}", "0 1"),
            ("{0..0}", "0"),
            ("{a,{b,c{1,2}}}", "a b c1 c2"),
            ("{,x}", " x"),
            // Text that is not an expansion.
            ("{a}", "{a}"),
            ("{}", "{}"),
            ("{{a,b}", "{a {b"),
            ("a{b", "a{b"),
            ("a}b{c,d}", "a}bc a}bd"),
            ("{-1..1}", "{-1..1}"),
            ("{1..2..3..4}", "{1..2..3..4}"),
            ("{1..}", "{1..}"),
            ("é{ö,ü}", "éö éü"),
        ] {
            assert_eq!(expand(pattern, 0).unwrap().join(" "), expected, "{pattern}");
        }
    }

    /// The width of `format!` has 16 bits, and a larger width panics.
    #[test]
    fn numbers_of_any_width() {
        for zeros in [65_534, 65_535, 65_536, 100_000] {
            let zeros = "0".repeat(zeros);
            let names = expand(&format!("a-{{{zeros}8..10}}"), 0).unwrap();
            assert_eq!(names, [format!("a-{zeros}8"), format!("a-{zeros}9"), format!("a-{}10", &zeros[1..])]);
        }
        let long = "0".repeat(70_000);
        for name in [format!("a@{long}"), format!("a@{long}1"), format!("a-{long}-of-{long}1")] {
            assert!(crate::paths::resolve(name, false).is_err());
        }
    }

    #[test]
    fn expansions_above_the_limits_are_errors() {
        let deep = "{a,".repeat(40) + &"}".repeat(40);
        let long = format!("{{{}0..999999}}", "0".repeat(1000));
        let many = "{0..9}".repeat(100);
        for pattern in [
            "{0..1000000000000}",
            "{0..18446744073709551615}",
            "{0..18446744073709551616}",
            &deep,
            &long,
            &many,
        ] {
            expand(pattern, 0).unwrap_err();
        }
        assert_eq!(expand("{1..1000000}", 0).unwrap().len(), MAX_NAMES);
        // Unmatched braces take linear time.
        assert_eq!(expand(&"{".repeat(100_000), 0).unwrap().len(), 1);
    }
}
