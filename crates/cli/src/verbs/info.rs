//! `tfseek info`: what a file is, at a glance.
//!
//! A plain file is counted from its index, or by hopping from header to header; a compressed one, or standard input, by reading it.

use crate::args::{self, Global, KindArg};
use crate::bytes::{Key, Size};
use crate::console::{BOLD, Console, DIM};
use crate::exit::{Failure, Outcome};
use crate::progress;
use crate::records::{self, Records};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use tfseek::index::{self, IndexOptions};
use tfseek::{ErrorKind, Feature, FeatureList, IndexMode};
use tfseek_tools::{Content, Map};

/// Facts about a file; `None` where unknown.
struct Found {
    path: PathBuf,
    /// Bytes on disk; standard input and pipes have none.
    size: Option<u64>,
    compression: Option<&'static str>,
    /// `unknown` if no record could be read.
    kind: &'static str,
    /// The format it looks like, if it is not a TFRecord file.
    looks_like: Option<&'static str>,
    /// What the index files say, for a plain file.
    index: Option<String>,
    /// Number of records; in a damaged file, of those before the damage.
    records: Option<u64>,
    first: Option<Keys>,
    error: Option<String>,
}

/// Keys of the first record and what is behind them.
struct Keys {
    context: Vec<(String, String)>,
    lists: Vec<(String, String)>,
}

pub(crate) fn run(args: &args::Info, global: &Global, console: &mut Console) -> Outcome {
    let paths = records::resolve_each(&args.paths)?;
    let bytes = |path: &Result<PathBuf, _>| {
        path.as_ref().map_or(0, |path| progress::bytes_of(std::slice::from_ref(path)))
    };
    let bar = progress::over(global, "reading", paths.iter().map(bytes).sum());
    let (one, mut all) = (paths.len() == 1, Vec::new());
    for path in paths {
        let read = bytes(&path);
        let (found, outcome) = match path {
            Ok(path) => {
                let (found, outcome) = look(&path, args.kind);
                (Some(found), outcome)
            }
            // A single path that resolves to no file has only its error.
            Err((_, failure)) if one && !args.json => (None, Err(failure)),
            Err((path, failure)) => (Some(Found::failed(&path, &failure)), Err(failure)),
        };
        if let Some(found) = found {
            match args.json {
                true => console.print(format_args!("{}\n", as_json(&found)))?,
                false if one => block(&found, global, console)?,
                false => all.push(found),
            }
        }
        bar.suspend(|| console.go_on(outcome))?;
        bar.inc(read);
    }
    bar.finish_and_clear();
    if all.is_empty() { Ok(()) } else { table(&all, global, console) }
}

impl Found {
    fn of(path: &Path) -> Found {
        Found {
            path: records::name(path),
            size: std::fs::metadata(path).ok().filter(|_| records::is_regular(path)).map(|m| m.len()),
            compression: None,
            kind: "unknown",
            looks_like: None,
            index: None,
            records: None,
            first: None,
            error: None,
        }
    }

    fn failed(path: &Path, failure: &Failure) -> Found {
        let error = match failure {
            Failure::Error(e) => Some(e),
            _ => None,
        };
        let looks_like = error.and_then(|e| match e.kind() {
            ErrorKind::NotTfRecord { looks_like, .. } => Some(*looks_like),
            _ => None,
        });
        Found { looks_like, error: Some(failure.to_string()), ..Found::of(path) }
    }
}

/// Reads a file as far as possible; returns the error that ended the reading beside the facts.
fn look(path: &Path, payloads: KindArg) -> (Found, Outcome) {
    let mut found = Found::of(path);
    let read = Records::open(path, payloads).and_then(|mut records| {
        found.compression = Some(records.compression());
        found.records = Some(0);
        count(path, &mut records, &mut found)
    });
    let Err(e) = read else { return (found, Ok(())) };
    let failure = Failure::Error(e);
    let failed = Found::failed(path, &failure);
    // A file of another format has an unknown number of records, and not 0.
    let found = match failed.looks_like {
        Some(_) => failed,
        None => Found { error: failed.error, ..found },
    };
    (found, Err(failure))
}

fn count(path: &Path, records: &mut Records, found: &mut Found) -> tfseek::Result<()> {
    let plain = found.compression == Some("none") && records::is_regular(path);
    let kind = records.kind.name();
    let Some(first) = records.next()? else {
        if plain {
            found.index = Some(indexed(path)?.0);
        }
        return Ok(());
    };
    (found.kind, found.records) = (kind, Some(1));
    found.first = Some(Keys::of(&first.content()?));
    if plain {
        let (state, index) = indexed(path)?;
        found.index = Some(state);
        let index = match index {
            Some(index) => index,
            None => {
                let scan = IndexOptions::new().mode(IndexMode::Memory).jobs(1);
                // What was counted before damage is not told by an index; the stream tells.
                match index::open_shards(&[path.to_path_buf()], &scan) {
                    Ok(mut opened) if opened.indexes.len() == 1 => opened.indexes.remove(0),
                    _ => return read_all(records, found),
                }
            }
        };
        found.records = Some(index.len());
        return Ok(());
    }
    read_all(records, found)
}

fn read_all(records: &mut Records, found: &mut Found) -> tfseek::Result<()> {
    let mut count = 1;
    while records.next()?.is_some() {
        count += 1;
        found.records = Some(count);
    }
    Ok(())
}

/// The index there is, in words, and to use if it is fresh.
fn indexed(path: &Path) -> tfseek::Result<(String, Option<index::Index>)> {
    let options = IndexOptions::new().mode(IndexMode::Require).jobs(1);
    match index::open_shards(&[path.to_path_buf()], &options) {
        Ok(mut opened) if opened.indexes.len() == 1 => {
            let index = opened.indexes.remove(0);
            let file = index.file().map_or(String::new(), |file| format!(" {}", file.display()));
            Ok((format!("fresh{file}"), Some(index)))
        }
        Err(e) => match e.kind() {
            ErrorKind::Index(tfseek::error::IndexError::Missing) => Ok(("none".to_owned(), None)),
            ErrorKind::Index(why) => Ok((why.to_string(), None)),
            _ => Err(e),
        },
        Ok(_) => Ok(("none".to_owned(), None)),
    }
}

impl Keys {
    fn of(content: &Content<'_>) -> Keys {
        let (context, lists) = match content {
            Content::Example(features) => (shapes(features), Vec::new()),
            Content::Sequence(context, lists) => (shapes(context), list_shapes(lists)),
            Content::Raw => (Vec::new(), Vec::new()),
        };
        Keys { context, lists }
    }
}

fn shapes(map: &Map<'_, Feature<'_>>) -> Vec<(String, String)> {
    map.iter().map(|(key, f)| ((*key).to_owned(), shape(*f))).collect()
}

fn list_shapes(map: &Map<'_, FeatureList<'_>>) -> Vec<(String, String)> {
    let of = |list: &FeatureList<'_>| match list.iter().next() {
        Some(step) => format!("{} x {}", list.iter().len(), shape(step)),
        None => "0 steps".to_owned(),
    };
    map.iter().map(|(key, list)| ((*key).to_owned(), of(list))).collect()
}

fn shape(feature: Feature<'_>) -> String {
    match (feature.kind(), feature.len()) {
        (None, _) => "no kind".to_owned(),
        (Some(kind), 1) => kind.to_string(),
        (Some(kind), n) => format!("{kind}[{n}]"),
    }
}

fn block(found: &Found, global: &Global, console: &mut Console) -> Outcome {
    let (bold, dim) = (console.style(BOLD), console.style(DIM));
    console.print(format_args!("{bold}{}{bold:#}\n", found.path.display()))?;
    let size = found.size.map(|bytes| Size { bytes, exact: global.bytes }.to_string());
    let rows = [
        ("looks like", found.looks_like.map(|what| format!("{what}, not a TFRecord file"))),
        ("records", found.records.map(|n| n.to_string())),
        ("size", size),
        ("compression", found.compression.map(str::to_owned)),
        ("index", found.index.clone()),
        ("kind", found.records.map(|_| found.kind.to_owned())),
    ];
    for (name, value) in rows {
        if let Some(value) = value {
            console.print(format_args!("  {dim}{name:11}{dim:#}  {value}\n"))?;
        }
    }
    keys(found, "  ", console)
}

/// The first record's keys: of the next ones they may differ.
fn keys(found: &Found, indent: &str, console: &mut Console) -> Outcome {
    let Some(first) = &found.first else { return Ok(()) };
    let dim = console.style(DIM);
    for (title, rows) in [("first record", &first.context), ("its feature lists", &first.lists)] {
        if rows.is_empty() {
            continue;
        }
        let width = rows.iter().map(|(key, _)| Key(key).width().min(40)).max().unwrap_or(0);
        console.print(format_args!("{indent}{dim}{title}{dim:#}\n"))?;
        for (key, shape) in rows {
            let pad = width.saturating_sub(Key(key).width());
            console.print(format_args!("{indent}  {}{:pad$}  {dim}{shape}{dim:#}\n", Key(key), ""))?;
        }
    }
    Ok(())
}

fn table(all: &[Found], global: &Global, console: &mut Console) -> Outcome {
    let size = |bytes: Option<u64>| {
        bytes.map_or(String::new(), |bytes| Size { bytes, exact: global.bytes }.to_string())
    };
    // The state of an index, without where it is.
    let state = |f: &Found| match f.index.as_deref() {
        Some(state) => state.split([' ', ':']).next().unwrap_or_default().to_owned(),
        None => "-".to_owned(),
    };
    let mut rows = vec![["records", "size", "compression", "index", "kind", "file"].map(str::to_owned)];
    for f in all {
        let file = f.path.display().to_string();
        let records = f.records.map_or("-".to_owned(), |n| n.to_string());
        let compression = f.compression.unwrap_or("-").to_owned();
        let kind = match f.looks_like {
            Some(what) => format!("{what}, not TFRecord"),
            None => f.kind.to_owned(),
        };
        rows.push([records, size(f.size), compression, state(f), kind, file]);
    }
    let records: u64 = all.iter().filter_map(|f| f.records).sum();
    let bytes = all.iter().map(|f| f.size.unwrap_or(0)).sum();
    let files = format!("{} files", all.len());
    rows.push([records.to_string(), size(Some(bytes)), String::new(), String::new(), String::new(), files]);
    let mut widths = [0; 5];
    for row in &rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.len());
        }
    }
    let [a, b, c, d, e] = widths;
    let last = rows.len() - 1;
    for (k, [records, size, compression, index, kind, file]) in rows.iter().enumerate() {
        let style = console.style(if k == 0 {
            DIM
        } else if k == last {
            BOLD
        } else {
            anstyle::Style::new()
        });
        let row = format!("{records:>a$}  {size:>b$}  {compression:c$}  {index:d$}  {kind:e$}  {file}");
        console.print(format_args!("{style}{row}{style:#}\n"))?;
    }
    Ok(())
}

fn as_json(found: &Found) -> Value {
    let object = |rows: &[(String, String)]| -> Value {
        rows.iter()
            .map(|(key, shape)| (key.clone(), Value::from(shape.as_str())))
            .collect::<serde_json::Map<_, _>>()
            .into()
    };
    json!({
        "file": found.path.to_string_lossy(),
        "records": found.records,
        "size": found.size,
        "compression": found.compression,
        // `index` is a record's number in the JSON of other verbs.
        "index_file": found.index,
        "kind": found.kind,
        "looks_like": found.looks_like,
        "first": found.first.as_ref().map(|keys| object(&keys.context)),
        "first_lists": found.first.as_ref().filter(|keys| !keys.lists.is_empty()).map(|keys| object(&keys.lists)),
        "error": found.error,
    })
}
