//! `tfseek unpack`: from a compressed file, which can only be read in order, to a plain one.
//!
//! Records are checked on the way, and the new file appears when it is whole: damage leaves nothing behind.

use crate::args::{self, Global, KindArg, KindChoice};
use crate::bytes::Size;
use crate::console::Console;
use crate::exit::{Failure, Outcome};
use crate::records::{self, Records, STDIN};
use crate::{outputs, progress};
use std::path::{Path, PathBuf};
use tfseek::{Compression, Stream, Writer};

pub(crate) fn run(args: &args::Unpack, global: &Global, console: &mut Console) -> Outcome {
    let paths = records::resolve(&args.paths)?;
    let into = match &args.output {
        None => Into::Beside,
        Some(dir) if paths.len() > 1 || dir.is_dir() => Into::Folder(dir),
        Some(file) => Into::File(file),
    };
    let compressed = paths.iter().filter(|path| is_compressed(path));
    let targets: Vec<_> =
        compressed.filter_map(|path| Some((into.target(path).ok()?, path.as_path()))).collect();
    let inputs = paths.iter().map(PathBuf::as_path).filter(|&path| path != Path::new(STDIN));
    outputs::keep_apart(targets.iter().map(|(target, path)| (target.as_path(), *path)), inputs)?;
    if let Into::Folder(dir) = into {
        std::fs::create_dir_all(dir).map_err(|e| Failure::io(dir, e))?;
    }
    for path in &paths {
        let outcome = file(path, into, args, global, console);
        console.go_on(outcome)?;
    }
    Ok(())
}

/// Returns true for a file that will be unpacked. A pipe counts as one: its bytes can be read only once.
fn is_compressed(path: &Path) -> bool {
    let plain = || Stream::open(path).is_ok_and(|stream| stream.compression() == Compression::None);
    !(path.is_file() && plain())
}

fn file(path: &Path, into: Into<'_>, args: &args::Unpack, global: &Global, console: &mut Console) -> Outcome {
    let mut records = Records::open(path, KindArg { kind: KindChoice::Raw, limit: args.limit })?;
    if records.compression() == "none" {
        // A file of another format fails here, and does not pass as an uncompressed TFRecord file.
        records.next()?;
        console
            .note(format_args!("{}: is not compressed, and stays as it is", records::name(path).display()));
        return Ok(());
    }
    let target = into.target(path)?;
    outputs::may_replace(&target, args.force)?;
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

/// Destination of plain files.
#[derive(Clone, Copy)]
enum Into<'a> {
    Beside,
    Folder(&'a Path),
    File(&'a Path),
}

impl Into<'_> {
    /// The path of the plain file: as given, or a name without the suffix of compression.
    fn target(self, path: &Path) -> Outcome<PathBuf> {
        if let Into::File(out) = self {
            return Ok(out.to_path_buf());
        }
        let name = path.file_name().and_then(|name| name.to_str()).filter(|_| path != Path::new(STDIN));
        let plain = name.and_then(|name| {
            let plain = [".gz", ".gzip", ".zz", ".zlib", ".z"].iter().find_map(|s| name.strip_suffix(s));
            plain.filter(|plain| !plain.is_empty())
        });
        match (self, plain, name) {
            (Into::Beside, Some(plain), _) => Ok(path.with_file_name(plain)),
            (Into::Folder(dir), Some(plain), _) => Ok(dir.join(plain)),
            // Another folder, so the name can stay.
            (Into::Folder(dir), None, Some(name)) => Ok(dir.join(name)),
            _ => {
                let name = records::name(path);
                Err(Failure::usage(format!(
                    "{}: has no suffix to take off, so name the new file: -o FILE",
                    name.display()
                )))
            }
        }
    }
}
