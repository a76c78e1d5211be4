//! `tfseek unpack`: from a compressed file, which can only be read in order, to a plain one.
//!
//! Records are checked on the way, and the new file appears when it is whole: damage leaves nothing behind.

use crate::args::{self, Global, KindChoice};
use crate::bytes::Size;
use crate::console::Console;
use crate::exit::{Failure, Outcome};
use crate::progress;
use crate::records::{self, Records, STDIN};
use std::path::{Path, PathBuf};
use tfseek::Writer;

pub(crate) fn run(args: &args::Unpack, global: &Global, console: &mut Console) -> Outcome {
    let paths = records::resolve(&args.paths)?;
    let into = match &args.output {
        Some(dir) if paths.len() > 1 => {
            std::fs::create_dir_all(dir).map_err(|e| Failure::io(dir, e))?;
            Some(dir)
        }
        other => other.as_ref(),
    };
    for path in &paths {
        let outcome = file(path, into.map(PathBuf::as_path), args.force, global, console);
        console.go_on(outcome)?;
    }
    Ok(())
}

fn file(path: &Path, into: Option<&Path>, force: bool, global: &Global, console: &mut Console) -> Outcome {
    let mut records = Records::open(path, KindChoice::Raw)?;
    if records.compression() == "none" {
        // A file of another format fails here, and does not pass as an uncompressed TFRecord file.
        records.next()?;
        console
            .note(format_args!("{}: is not compressed, and stays as it is", records::name(path).display()));
        return Ok(());
    }
    let target = target(path, into)?;
    if target.exists() && !force {
        return Err(Failure::usage(format!("{}: is there already (--force replaces it)", target.display())));
    }
    let bar = progress::counting(global, "unpacking");
    let mut writer = Writer::create(&target)?;
    let mut count = 0u64;
    while let Some(item) = records.next()? {
        writer.write(item.record.payload())?;
        count += 1;
        bar.inc(item.record.payload().len() as u64);
    }
    writer.close()?;
    bar.finish_and_clear();
    let size = Size { bytes: records.position(), exact: global.bytes };
    console.note(format_args!("{}: {count} records, {size}", target.display()));
    Ok(())
}

/// Where the plain file goes: `OUT`, or a name without the suffix of compression.
fn target(path: &Path, into: Option<&Path>) -> Outcome<PathBuf> {
    if let Some(out) = into
        && !out.is_dir()
    {
        return Ok(out.to_path_buf());
    }
    let name = path.file_name().and_then(|name| name.to_str()).filter(|_| path != Path::new(STDIN));
    let plain = name
        .and_then(|name| [".gz", ".gzip", ".zz", ".zlib", ".z"].iter().find_map(|s| name.strip_suffix(s)));
    match (into, plain, name) {
        (None, Some(plain), _) if !plain.is_empty() => Ok(path.with_file_name(plain)),
        (Some(dir), Some(plain), _) if !plain.is_empty() => Ok(dir.join(plain)),
        // Another folder, so the name can stay.
        (Some(dir), _, Some(name)) => Ok(dir.join(name)),
        _ => {
            let name = records::name(path);
            Err(Failure::usage(format!(
                "{}: has no suffix to take off, so name the new file: -o FILE",
                name.display()
            )))
        }
    }
}
