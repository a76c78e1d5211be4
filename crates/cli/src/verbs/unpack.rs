//! `tfseek unpack`: decompresses files, which can only be read in order, to plain files.
//!
//! The checksums of the records are verified. A new file gets its name only when it is complete, so a damaged input produces no file.

use crate::args::{self, GlobalArgs, PayloadArgs, PayloadKind};
use crate::bytes::Size;
use crate::console::Console;
use crate::exit::{Failure, Outcome};
use crate::records::{self, Records, STDIN};
use crate::{outputs, progress, text};
use std::path::{Path, PathBuf};
use tfseek::{Compression, Stream, Writer};

pub(crate) fn run(args: &args::UnpackArgs, global: &GlobalArgs, console: &mut Console) -> Outcome {
    let paths = records::resolve(&args.paths)?;
    let destination = match &args.output {
        None => Destination::NextToInput,
        Some(dir) if paths.len() > 1 || dir.is_dir() => Destination::Folder(dir),
        Some(file) => Destination::File(file),
    };
    let compressed = paths.iter().filter(|path| is_compressed(path));
    let targets: Vec<_> =
        compressed.filter_map(|path| Some((destination.target(path).ok()?, path.as_path()))).collect();
    let inputs = paths.iter().map(PathBuf::as_path).filter(|&path| path != Path::new(STDIN));
    outputs::check_distinct(targets.iter().map(|(target, path)| (target.as_path(), *path)), inputs)?;
    if let Destination::Folder(dir) = destination {
        std::fs::create_dir_all(dir).map_err(|e| Failure::io(dir, e))?;
    }
    for path in &paths {
        let outcome = file(path, destination, args, global, console);
        console.report_and_continue(outcome)?;
    }
    Ok(())
}

/// Returns true for a file that will be unpacked. A pipe counts as compressed, because its bytes can be read only once.
fn is_compressed(path: &Path) -> bool {
    let plain = || Stream::open(path).is_ok_and(|stream| stream.compression() == Compression::None);
    !(path.is_file() && plain())
}

fn file(
    path: &Path,
    destination: Destination<'_>,
    args: &args::UnpackArgs,
    global: &GlobalArgs,
    console: &mut Console,
) -> Outcome {
    let mut records = Records::open(path, PayloadArgs { kind: PayloadKind::Raw, limit: args.limit })?;
    if records.compression() == "none" {
        // A file of another format is an error here. Otherwise it would count as an uncompressed TFRecord file.
        records.next()?;
        console.note(format_args!("{}: not compressed, skipped", records::name(path).display()));
        return Ok(());
    }
    let target = destination.target(path)?;
    outputs::check_replace(&target, args.force)?;
    let bar = progress::byte_count(global, "unpacking");
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
    console.note(format_args!("{}: {}, {size}", target.display(), text::count(count, "record")));
    Ok(())
}

/// Destination of the plain files.
#[derive(Clone, Copy)]
enum Destination<'a> {
    NextToInput,
    Folder(&'a Path),
    File(&'a Path),
}

impl Destination<'_> {
    /// Returns the path of the plain file: the given path, or the input's name without the suffix of its compression.
    fn target(self, path: &Path) -> Outcome<PathBuf> {
        if let Destination::File(out) = self {
            return Ok(out.to_path_buf());
        }
        let name = path.file_name().and_then(|name| name.to_str()).filter(|_| path != Path::new(STDIN));
        let plain = name.and_then(|name| {
            let plain = [".gz", ".gzip", ".zz", ".zlib", ".z"].iter().find_map(|s| name.strip_suffix(s));
            plain.filter(|plain| !plain.is_empty())
        });
        match (self, plain, name) {
            (Destination::NextToInput, Some(plain), _) => Ok(path.with_file_name(plain)),
            (Destination::Folder(dir), Some(plain), _) => Ok(dir.join(plain)),
            // In another folder the file can keep its name.
            (Destination::Folder(dir), None, Some(name)) => Ok(dir.join(name)),
            _ => {
                let name = records::name(path);
                Err(Failure::usage(format!(
                    "{}: no suffix to remove, so the output needs a name: -o FILE",
                    name.display()
                )))
            }
        }
    }
}
