//! Paths and patterns.

use super::script::Scratch;
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Component, Path, PathBuf};
use tfseek::paths::{EXTENSIONS, resolve, resolve_in_store};

/// Files of the folder in which patterns are resolved: sets with and without gaps, names that resemble
/// patterns, and other names.
const FILES: &[&str] = &[
    "train-00000-of-00003.tfrecord",
    "train-00001-of-00003.tfrecord",
    "train-00002-of-00003.tfrecord",
    "val-0-of-4.tfrecord",
    "val-1-of-4.tfrecord",
    "val-3-of-4.tfrecord",
    "mix-00000-of-00002",
    "mix-00001-of-00002",
    "mix-0-of-1",
    "dup-0-of-2.tfr",
    "dup-00-of-2.tfr",
    "dup-1-of-2.tfr",
    "z.tfrecord-00000-of-00002.gz",
    "z.tfrecord-00001-of-00002.gz",
    "a.tfrecord",
    "a1.tfrecord",
    "a01.tfrecord",
    "a2.tfrecord",
    "a10.tfrecord",
    "{x}.tfrecord",
    "[y].tfr",
    "s p.record",
    ".hidden.tfrecord",
    "\u{e9}.tfrec",
    "x@2.bin",
    "sub/c.tfrecord",
    "sub/d.bin",
    "sub/deep/train-1-of-2.tfrecord",
    "sub/deep/train-0-of-2.tfrecord",
    "[w]/w.tfr",
    "other/part-00000-of-00001",
    ".tfseek/a.tfrecord.tfri",
];

/// Tests patterns in a folder with these files. The first byte has the option, and the rest is the pattern.
///
/// The shards and their order are those that a naive resolution finds, and one gives an error exactly if the
/// other does.
pub fn paths(data: &[u8]) {
    thread_local! {
        static FOLDER: (Scratch, PathBuf) = folder();
    }
    let Some((&mode, rest)) = data.split_first() else { return };
    let Ok(text) = std::str::from_utf8(rest) else { return };
    FOLDER.with(|(_, root)| {
        let (path, allow_missing) = (root.join(text), mode & 1 == 1);
        let mut search = Search { root, allow_missing, unknown: false };
        let wanted = search.resolve(&path);
        // Patterns that leave the folder, or expand to very many names.
        if search.unknown && wanted.is_none() {
            return;
        }
        let found = resolve(&path, allow_missing);
        let with_warnings = resolve_in_store(None, &path, allow_missing).map(|(paths, _)| paths);
        assert_eq!(found.as_ref().ok(), with_warnings.as_ref().ok());
        if let Ok(found) = &found {
            assert!(!found.is_empty() && found.iter().all(|path| path.is_file()), "{text:?}: {found:?}");
            assert!(found.windows(2).all(|pair| natural(&pair[0], &pair[1]).is_lt()), "{text:?}: {found:?}");
            // Shards that are given by name are found again, in the same order.
            assert_eq!(resolve(found, true).unwrap(), *found);
        }
        if !search.unknown {
            assert_eq!(found.as_ref().ok(), wanted.as_ref(), "{text:?}: {found:?}");
        }
    });
}

fn folder() -> (Scratch, PathBuf) {
    let scratch = Scratch::new();
    let root = scratch.write("mark", b"").with_file_name("data");
    for file in FILES {
        let path = root.join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, b"").unwrap();
    }
    fs::create_dir(root.join("empty")).unwrap();
    (scratch, root)
}

/// A naive resolution. `unknown` is set if it does not implement a pattern.
struct Search<'a> {
    root: &'a Path,
    allow_missing: bool,
    unknown: bool,
}

/// Shards, with true for those that were searched for.
type Found = BTreeMap<PathBuf, bool>;

impl Search<'_> {
    /// Returns the shards in order. `None` is an error, or unknown.
    fn resolve(&mut self, path: &Path) -> Option<Vec<PathBuf>> {
        let inside = path.strip_prefix(self.root).is_ok_and(|below| {
            below.components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir))
        });
        let text = path.to_str().unwrap();
        // A name with a slash behind it is that of a folder.
        let inside = inside && (path.exists() || !text.ends_with('/'));
        if !inside || text.contains('\0') || path.iter().any(|part| part.len() > 100) {
            self.unknown = true;
            return None;
        }
        let mut found = Found::new();
        if !self.existing(path, &mut found)? {
            self.pattern(path, &mut found)?;
        }
        if found.is_empty() || !self.allow_missing && !is_complete(&found) || !is_once(&found) {
            return None;
        }
        let mut paths: Vec<_> = found.into_keys().collect();
        paths.sort_by(|a, b| natural(a, b));
        Some(paths)
    }

    /// Adds an existing file, or the shards of a folder. False if the path does not exist.
    fn existing(&self, path: &Path, found: &mut Found) -> Option<bool> {
        if !path.exists() {
            return Some(false);
        }
        if path.is_file() {
            found.entry(path.to_path_buf()).or_insert(false);
            return Some(true);
        }
        let names = names(path).into_iter().filter(|name| is_shard_name(name) && path.join(name).is_file());
        let shards: Vec<_> = names.map(|name| path.join(name)).collect();
        if shards.is_empty() {
            return None;
        }
        found.extend(shards.into_iter().map(|shard| (shard, true)));
        Some(true)
    }

    fn pattern(&mut self, path: &Path, found: &mut Found) -> Option<()> {
        let base = path.ancestors().skip(1).find(|folder| folder.exists())?;
        let rest = path.strip_prefix(base).unwrap().to_str().unwrap();
        let words = self.expand(rest, 0)?;
        if words.iter().any(|word| word.starts_with('/') || word.split('/').any(|part| part == "..")) {
            self.unknown = true;
            return None;
        }
        let mut missing = false;
        for word in &words {
            let path = base.join(word);
            let name = path.file_name().and_then(|name| name.to_str());
            let wild = |text: &str| text.contains(['*', '?', '[']);
            if self.existing(&path, found)? {
            } else if let Some((stem, total, suffix)) = name.and_then(set_pattern) {
                let folder = Path::new(word).parent().and_then(Path::to_str).unwrap_or_default();
                if [folder, stem, suffix].into_iter().any(wild) {
                    return None;
                }
                let shards = shards_of_set(path.parent().unwrap(), stem, total, suffix)?;
                if shards.is_empty() && !self.allow_missing {
                    return None;
                }
                found.extend(shards.into_iter().map(|shard| (shard, true)));
            } else if wild(word) {
                let plain =
                    word.split('/').all(|part| !["", ".", "**"].contains(&part) && !part.contains("**"));
                if word.contains('[') || !plain {
                    self.unknown = true;
                    // Matches are not known, and neither are gaps.
                    return Some(());
                }
                let mut matched = vec![base.to_path_buf()];
                for part in word.split('/') {
                    matched = matched.iter().flat_map(|folder| matching(folder, part)).collect();
                }
                matched.retain(|path| path.is_file());
                if matched.is_empty() && !self.allow_missing {
                    return None;
                }
                found.extend(matched.into_iter().map(|path| (path, true)));
            } else {
                missing = true;
            }
        }
        (!missing || self.allow_missing).then_some(())
    }

    /// Expands braces.
    fn expand(&mut self, text: &str, depth: usize) -> Option<Vec<String>> {
        const MAX_NAMES: usize = 500;
        if depth > 16 {
            return None;
        }
        let pair = text.char_indices().filter(|at| at.1 == '{').find_map(|(start, _)| {
            let mut open = 0;
            let end = text[start..].find(|c| {
                open += i32::from(c == '{') - i32::from(c == '}');
                open == 0
            });
            Some((start, start + end?))
        });
        let Some((start, end)) = pair else { return Some(vec![text.to_owned()]) };
        let body = &text[start + 1..end];
        let choices = match (self.numbers(body)?, parts(body)) {
            (Some(numbers), _) => numbers,
            (None, parts) if parts.len() > 1 => {
                let mut all = Vec::new();
                for part in parts {
                    all.extend(self.expand(part, depth + 1)?);
                }
                all
            }
            _ => self.expand(body, depth + 1)?.into_iter().map(|word| format!("{{{word}}}")).collect(),
        };
        let tails = self.expand(&text[end + 1..], depth)?;
        if choices.len() * tails.len() > MAX_NAMES {
            self.unknown = true;
            return None;
        }
        let join = |choice: &String| {
            tails.iter().map(|tail| text[..start].to_owned() + choice + tail).collect::<Vec<_>>()
        };
        Some(choices.iter().flat_map(join).collect())
    }

    /// Returns the numbers of a range. The inner `None` is another form.
    fn numbers(&mut self, body: &str) -> Option<Option<Vec<String>>> {
        let fields: Vec<&str> = body.split("..").collect();
        let digits = |field: &&str| !field.is_empty() && field.bytes().all(|byte| byte.is_ascii_digit());
        if !(2..=3).contains(&fields.len()) || !fields.iter().all(digits) {
            return Some(None);
        }
        let mut ends = Vec::new();
        for field in &fields {
            ends.push(i128::from(field.parse::<u64>().ok()?));
        }
        let step = ends.get(2).copied().unwrap_or(1).max(1);
        let count = (ends[0] - ends[1]).abs() / step + 1;
        if count > 500 {
            self.unknown = true;
            return None;
        }
        let padded = fields[..2].iter().any(|field| field.len() > 1 && field.starts_with('0'));
        let width = if padded { fields[0].len().max(fields[1].len()) } else { 0 };
        let sign = if ends[0] <= ends[1] { 1 } else { -1 };
        let number = |k: i128| format!("{:0>width$}", (ends[0] + sign * k * step).to_string());
        Some(Some((0..count).map(number).collect()))
    }
}

/// Splits the body of braces at its own commas.
fn parts(body: &str) -> Vec<&str> {
    let mut depth = 0_i32;
    let comma = |c| {
        depth = (depth + i32::from(c == '{') - i32::from(c == '}')).max(0);
        c == ',' && depth == 0
    };
    body.split(comma).collect()
}

fn names(folder: &Path) -> Vec<String> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

/// Returns the paths in a folder whose names match `*` and `?`. These match no name that begins with a dot,
/// not even after a dot.
fn matching(folder: &Path, pattern: &str) -> Vec<PathBuf> {
    fn matches(pattern: &[char], name: &[char]) -> bool {
        match (pattern.split_first(), name.split_first()) {
            (None, None) => true,
            (Some(('*', rest)), _) => (0..=name.len()).any(|skip| matches(rest, &name[skip..])),
            (Some(('?', rest)), Some((_, name))) => matches(rest, name),
            (Some((c, rest)), Some((first, name))) => c == first && matches(rest, name),
            _ => false,
        }
    }
    let chars = |text: &str| text.chars().collect::<Vec<_>>();
    if !pattern.contains(['*', '?']) {
        return [folder.join(pattern)].into_iter().filter(|path| path.exists()).collect();
    }
    let mut names = names(folder);
    names.retain(|name| !name.starts_with('.') && matches(&chars(pattern), &chars(name)));
    names.into_iter().map(|name| folder.join(name)).collect()
}

/// Splits `stem-INDEX-of-TOTALsuffix`.
fn shard_name(name: &str) -> Option<(&str, &str, &str, &str)> {
    let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
    name.rmatch_indices("-of-").find_map(|(at, _)| {
        let (left, right) = (&name[..at], &name[at + 4..]);
        let index = left.bytes().rev().take_while(u8::is_ascii_digit).count();
        let (stem, index) = left.split_at(left.len() - index);
        let (total, suffix) = right.split_at(digits(right));
        let stem = stem.strip_suffix('-')?;
        (!index.is_empty() && !total.is_empty()).then_some((stem, index, total, suffix))
    })
}

/// Splits `stem@TOTALsuffix`. The total is digits or `*`.
fn set_pattern(name: &str) -> Option<(&str, &str, &str)> {
    let (stem, rest) = name.rsplit_once('@')?;
    let len = if rest.starts_with('*') { 1 } else { rest.bytes().take_while(u8::is_ascii_digit).count() };
    let (total, suffix) = rest.split_at(len);
    let valid = !stem.is_empty() && !total.is_empty() && (suffix.is_empty() || suffix.starts_with('.'));
    valid.then_some((stem, total, suffix))
}

/// Returns the shards of a set in a folder. `None` if there are several sets, or two shards of one number, or
/// none is possible.
fn shards_of_set(folder: &Path, stem: &str, total: &str, suffix: &str) -> Option<Vec<PathBuf>> {
    let wanted = match total {
        "*" => None,
        total => Some(total.parse::<u64>().ok().filter(|&total| total > 0)?),
    };
    let (mut found, mut totals, mut indices) = (Vec::new(), BTreeSet::new(), BTreeSet::new());
    for name in names(folder) {
        let Some((its_stem, index, its_total, its_suffix)) = shard_name(&name) else { continue };
        let (index, number): (u64, u64) = (index.parse().unwrap(), its_total.parse().unwrap());
        if (its_stem, its_suffix) != (stem, suffix) || wanted.is_some_and(|wanted| wanted != number) {
            continue;
        }
        found.push(folder.join(&name));
        totals.insert(its_total.to_owned());
        indices.insert(index);
    }
    (totals.len() < 2 && indices.len() == found.len()).then_some(found)
}

/// Returns true if no set with a shard that was searched for has a gap.
fn is_complete(found: &Found) -> bool {
    let set = |path: &Path| {
        let (stem, index, total, suffix) = shard_name(path.file_name()?.to_str()?)?;
        let index: u64 = index.parse().unwrap();
        Some(((path.parent()?.to_owned(), stem.to_owned(), total.to_owned(), suffix.to_owned()), index))
    };
    found.iter().filter(|(_, searched)| **searched).filter_map(|(path, _)| set(path)).all(|(key, _)| {
        let total: u64 = key.2.parse().unwrap();
        let indices: BTreeSet<u64> = found
            .keys()
            .filter_map(|path| set(path))
            .filter(|(other, _)| *other == key)
            .map(|(_, i)| i)
            .collect();
        indices.len() as u64 == total
    })
}

/// Returns true if no two files that were searched for are one data set twice: two compressions, two numbers
/// of shards, or one shard twice.
fn is_once(found: &Found) -> bool {
    let form = |path: &Path| {
        let name = path.file_name().unwrap().to_str().unwrap();
        let numbers =
            |index: &str, total: &str| Some((index.parse::<u64>().ok()?, total.parse::<u64>().ok()?));
        let shard = shard_name(name).and_then(|(stem, index, total, suffix)| {
            let (index, total) = numbers(index, total).filter(|(index, total)| index < total)?;
            Some((stem, suffix, Some(index), Some(total)))
        });
        let (stem, suffix, index, total) = shard.unwrap_or((name, "", None, None));
        let parts = [stem, suffix].map(|part| {
            let ends = [".gz", ".gzip", ".zz", ".zlib", ".z"].into_iter().find(|end| part.ends_with(end));
            let end = ends.unwrap_or("");
            (part.strip_suffix(end).unwrap().to_owned(), end)
        });
        let [(stem, a), (suffix, b)] = parts;
        ((path.parent().unwrap().to_owned(), stem, suffix, total.is_some()), (total, a, b), index)
    };
    let forms: Vec<_> = found.iter().filter(|(_, searched)| **searched).map(|(path, _)| form(path)).collect();
    forms
        .iter()
        .enumerate()
        .all(|(k, a)| forms[..k].iter().all(|b| a.0 != b.0 || a.1 == b.1 && (a.2 != b.2 || a.2.is_none())))
}

fn is_shard_name(name: &str) -> bool {
    let ends = |name: &str| EXTENSIONS.iter().any(|extension| name.ends_with(extension));
    let without =
        |name: &str| name.strip_suffix(".gz").or(name.strip_suffix(".zz")).unwrap_or(name).to_owned();
    let before = shard_name(name).is_some_and(|(stem, _, _, suffix)| match suffix {
        "" => ends(&without(stem)),
        ".gz" | ".zz" => ends(&without(stem)),
        _ => false,
    });
    !name.starts_with('.') && (ends(&without(name)) || before)
}

/// Compares paths in natural order: runs of digits as numbers, and equal ones as bytes.
fn natural(a: &Path, b: &Path) -> Ordering {
    /// A byte, or a number as its length without zeros and its digits.
    fn tokens(path: &str) -> Vec<(u8, usize, String)> {
        let (mut tokens, mut rest) = (Vec::new(), path);
        while let Some(&first) = rest.as_bytes().first() {
            let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
            if digits == 0 {
                tokens.push((first, 0, String::new()));
                let next = (1..=rest.len()).find(|&at| rest.is_char_boundary(at)).unwrap();
                tokens.extend(rest.as_bytes()[1..next].iter().map(|&byte| (byte, 0, String::new())));
                rest = &rest[next..];
            } else {
                let number = rest[..digits].trim_start_matches('0').to_owned();
                tokens.push((b'0', number.len(), number));
                rest = &rest[digits..];
            }
        }
        tokens
    }
    let (a, b) = (a.to_str().unwrap(), b.to_str().unwrap());
    tokens(a).cmp(&tokens(b)).then_with(|| a.cmp(b))
}
