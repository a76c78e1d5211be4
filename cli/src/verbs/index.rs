//! `tfseek index`: the small files that make shards random-access.

use crate::args::{self, Global, IndexForm};
use crate::bytes::Size;
use crate::console::Console;
use crate::exit::{Failure, Outcome};
use crate::{progress, threads};
use indicatif::ProgressBar;
use std::ffi::OsString;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::Instant;
use tfseek::index::{self, Index, IndexMode, IndexOptions, Opened};
use tfseek::io::AtomicFile;

pub(crate) fn run(args: &args::Index, global: &Global, console: &mut Console) -> Outcome {
    let paths = tfseek::paths::resolve(&args.paths.paths, args.paths.allow_missing)?;
    let bytes = progress::bytes_of(&paths);
    let bar = progress::over(global, "indexing", bytes);
    let mut options = IndexOptions::new().check_payloads(args.check).jobs(args.jobs.jobs);
    if args.rebuild {
        options = options.mode(IndexMode::Rebuild);
    }
    if let (Some(dir), IndexForm::Tfri) = (&args.index_dir, args.format) {
        options = options.index_dir(dir);
    }
    let start = Instant::now();
    let done = match (&args.pack, args.format) {
        (Some(name), _) => index::write_pack(name, &paths, &options, &progress_to(&bar))
            .map(|(path, opened)| (Some(path), vec![Ok(opened)])),
        (None, IndexForm::Tfri) => {
            index::build_each(&paths, &options, &progress_to(&bar)).map(|each| (None, each))
        }
        (None, IndexForm::Dali) => return dali(&paths, args, &options, &bar, console),
    };
    bar.finish_and_clear();
    let (pack, built) = done?;
    let (mut records, mut failed) = (0, 0);
    for shard in built {
        match shard {
            Ok(opened) => {
                said(&opened, console);
                records += opened.indexes.iter().map(Index::len).sum::<u64>();
            }
            // The sound ones were indexed all the same.
            Err(e) => {
                failed += 1;
                console.go_on(Err(e.into()))?;
            }
        }
    }
    let shards = match (paths.len(), failed) {
        (1, 0) => "1 shard".to_owned(),
        (n, 0) => format!("{n} shards"),
        (n, failed) => format!("{} of {n} shards", n - failed),
    };
    let size = Size { bytes, exact: global.bytes };
    let into = pack.map_or(String::new(), |path| format!(" -> {}", path.display()));
    console.note(format_args!("{shards}, {records} records, {size} in {:.2?}{into}", start.elapsed()));
    Ok(())
}

fn progress_to(bar: &ProgressBar) -> impl Fn(u64) + Sync {
    |bytes| bar.inc(bytes)
}

fn said(opened: &Opened, console: &mut Console) {
    for warning in &opened.warnings {
        console.note(format_args!("tfseek: {warning}"));
    }
}

/// The text form: `SHARD.idx`, one line a record.
fn dali(
    paths: &[PathBuf],
    args: &args::Index,
    options: &IndexOptions,
    bar: &ProgressBar,
    console: &mut Console,
) -> Outcome {
    // Asked for, so without the limit of what is scanned unasked.
    let options = options.clone().jobs(1).auto_limit(u64::MAX);
    let options = if args.rebuild { options.mode(IndexMode::Memory) } else { options };
    let done = threads::in_order(
        paths.len(),
        args.jobs.jobs,
        |k| {
            let path = &paths[k];
            let opened = index::open_shards(&paths[k..=k], &options, &progress_to(bar))?;
            let target = target(path, args.index_dir.as_deref())?;
            opened.indexes.iter().try_for_each(|index| write(index, &target))?;
            Ok(target)
        },
        |_, outcome: Outcome<PathBuf>| match outcome {
            Ok(target) => console.print(format_args!("{}\n", target.display())),
            Err(failure) => console.go_on(Err(failure)),
        },
    );
    bar.finish_and_clear();
    done
}

fn target(shard: &Path, dir: Option<&Path>) -> Outcome<PathBuf> {
    let mut name = OsString::from(shard.file_name().unwrap_or_default());
    name.push(".idx");
    match dir {
        None => Ok(shard.with_file_name(name)),
        Some(dir) => {
            std::fs::create_dir_all(dir).map_err(|e| Failure::io(dir, e))?;
            Ok(dir.join(name))
        }
    }
}

fn write(index: &Index, target: &Path) -> Outcome {
    let io = |e| Failure::io(target, e);
    let mut file = BufWriter::new(AtomicFile::create(target).map_err(io)?);
    index::export_text(index, &mut file)?;
    file.flush().map_err(io)?;
    file.into_inner().map_err(|e| io(e.into_error()))?.commit().map_err(io)
}
