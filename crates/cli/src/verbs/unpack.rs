//! `tfseek unpack`: decompresses files, which can only be read in order, to plain files.
//!
//! The checksums of the records are verified. A new file gets its name only when it is complete, so a damaged
//! input produces no file.

use crate::args::{PathsArgs, ReadArgs};
use crate::console::Console;
use crate::exit::{Failure, Outcome};
use crate::records::{self, STDIN};
use crate::split::SplitPath;
use crate::{outputs, progress, text};
use clap::Args;
use std::path::{Path, PathBuf};
use tfseek::io::Existing;
use tfseek::{Compression, Stream};
use tfseek_tools::unpack::{self, Destination, UnpackInput};

#[derive(Debug, Args)]
pub(crate) struct UnpackArgs {
    #[command(flatten)]
    pub(crate) paths: PathsArgs,
    #[command(flatten)]
    pub(crate) read: ReadArgs,
    /// Output file, or output folder for several files, where names without a TFRecord extension get
    /// `.tfrecord` [default: next to each input, without .gz or .zz]
    #[arg(short, long, value_name = "OUT")]
    pub(crate) out: Option<PathBuf>,
    /// Replace existing files
    #[arg(long)]
    pub(crate) force: bool,
}

pub(crate) fn run(args: &UnpackArgs, console: &mut Console) -> Outcome {
    SplitPath::refuse(&args.paths.paths)?;
    let paths = records::resolve(&args.paths, args.read, console)?;
    let paths: Vec<PathBuf> = paths.iter().map(|path| path.path().to_path_buf()).collect();
    let destination = match &args.out {
        None => Destination::NextToInput,
        Some(dir) if paths.len() > 1 || dir.is_dir() => Destination::Folder(dir),
        Some(file) => Destination::File(file),
    };
    let open = |path: &Path| records::stream(&path.to_path_buf().into(), args.read);
    let inputs = UnpackInput::open_all(&paths, open);
    let compressed = inputs.iter().filter(|input| input.is_compressed()).map(|input| input.path);
    let targets: Vec<_> =
        compressed.filter_map(|path| Some((target(destination, path).ok()?, path))).collect();
    let files = paths.iter().map(PathBuf::as_path).filter(|&path| path != Path::new(STDIN));
    outputs::check_distinct(targets.iter().map(|(target, path)| (target.as_path(), *path)), files)?;
    if let Destination::Folder(dir) = destination {
        outputs::check_name(dir)?;
        std::fs::create_dir_all(dir).map_err(|e| Failure::io(dir, e))?;
    }
    for input in inputs {
        let path = input.path;
        let outcome = input
            .stream(open)
            .map_err(Failure::from)
            .and_then(|stream| file(path, stream, destination, args, console));
        console.report_and_continue(outcome)?;
    }
    Ok(())
}

fn file(
    path: &Path,
    mut stream: Stream,
    destination: Destination<'_>,
    args: &UnpackArgs,
    console: &mut Console,
) -> Outcome {
    if stream.compression() == Compression::None {
        // A file of another format is an error here. Otherwise it would count as an uncompressed TFRecord
        // file.
        stream.next()?;
        console.note(format_args!("{}: not compressed, skipped", records::name(path).display()));
        return Ok(());
    }
    let target = target(destination, path)?;
    outputs::check_replace(&target, args.force)?;
    let bar = progress::bytes(console, "unpacking", None);
    let unpacked =
        unpack::unpack(&mut stream, &target, Existing::replace_if(args.force), |bytes| bar.inc(bytes));
    progress::end(&bar, unpacked.is_ok());
    let count = unpacked?;
    let size = console.size(stream.offset());
    console.note(format_args!("{}: {}, {size}", target.display(), text::count(count, "record")));
    Ok(())
}

/// Returns the path of the plain file. Standard input has no name to derive it from.
fn target(destination: Destination<'_>, path: &Path) -> Outcome<PathBuf> {
    let is_unnamed = path == Path::new(STDIN) && !matches!(destination, Destination::File(_));
    let target = if is_unnamed { None } else { destination.target(path) };
    target.ok_or_else(|| {
        let name = records::name(path);
        Failure::usage(format!(
            "{}: no suffix to remove, so the output needs a name: -o FILE",
            name.display()
        ))
    })
}
