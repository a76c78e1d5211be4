//! `tfseek sample`: prints records drawn at random, without replacement.
//!
//! Plain files are read by number, with an index, and the records are printed in the order in which they are
//! drawn. Compressed files, pipes and standard input are read in order: a sample is drawn in one pass and
//! printed in file order, as `tfseek.stream(..).sample` of the Python package does. With `--rest` every file
//! is read by number, because an index writes the damaged bytes.

use crate::args::{self, AccessArgs, GlobalArgs, PathsArgs, PrintArgs, StepsArgs, WhereArgs};
use crate::condition::Condition;
use crate::console::Console;
use crate::damage::{self, Reading, SkippedErrors};
use crate::dataset::Numbered;
use crate::exit::{Failure, Outcome};
use crate::features;
use crate::output::Printer;
use crate::progress;
use crate::random::Random;
use crate::records::{self, KeptRecord, RecordNumbers, Records};
use crate::split::{InputFile, SplitPath};
use crate::steps::StepSplitter;
use clap::Args;
use tfseek::Compression;
use tfseek_tfds::Features;
use tfseek_tools::sample::Reservoir;

#[derive(Debug, Args)]
pub(crate) struct SampleArgs {
    #[command(flatten)]
    pub(crate) paths: PathsArgs,
    /// Number of records to draw, over all files
    #[arg(short, value_name = "N", default_value_t = 10)]
    pub(crate) n: u64,
    /// Random seed; the same seed gives the same records in the same order
    #[arg(long, value_name = "S", default_value_t = 0, allow_negative_numbers = true, value_parser = args::seed)]
    pub(crate) seed: u64,
    #[command(flatten)]
    pub(crate) print: PrintArgs,
    #[command(flatten)]
    pub(crate) select: WhereArgs,
    #[command(flatten)]
    pub(crate) steps: StepsArgs,
    #[command(flatten)]
    pub(crate) access: AccessArgs,
}

pub(crate) fn run(args: &SampleArgs, global: &GlobalArgs, console: &mut Console) -> Outcome {
    let printer = Printer::new(&args.print, global)?;
    let paths = records::resolve(&args.paths, args.print.payload.read, console)?;
    let of_records = features::find(paths.iter().map(InputFile::path), console);
    let (splitter, features) = features::splitter(&args.steps, of_records.clone(), &paths)?;
    let condition = Condition::new(&args.select, paths.len(), &features)?;
    let printer = printer.many_files(paths.len() > 1).labels(&features);
    for path in &paths {
        if is_stream(path, args)? {
            return in_one_pass(&paths, args, splitter.as_ref(), (condition, &printer), global, console);
        }
    }
    // Warnings about the paths have been printed.
    let split = SplitPath::among(&args.paths.paths)?.is_some();
    let files = paths.iter().map(|path| path.path().to_path_buf());
    let paths = if split { args.paths.paths.clone() } else { files.collect() };
    let paths = PathsArgs { paths, allow_missing: true };
    by_number(&paths, args, of_records.features.as_deref(), (condition, &printer), global, console)
        .map_err(|e| damage::explain(e, Reading::ByNumber))
}

/// Returns true for a file that can only be read in order. Damage and other formats are found later.
///
/// # Errors
/// I/O errors. A file whose type is not known is neither, because the two ways draw other records.
fn is_stream(path: &InputFile, args: &SampleArgs) -> Outcome<bool> {
    Ok(!records::type_is_regular(path).map_err(|e| Failure::io(path, e))?
        || records::stream(path, args.print.payload.read)
            .is_ok_and(|stream| stream.compression() != Compression::None))
}

fn by_number(
    paths: &PathsArgs,
    args: &SampleArgs,
    features: Option<&Features>,
    (mut condition, printer): (Condition, &Printer),
    global: &GlobalArgs,
    console: &mut Console,
) -> Outcome {
    let payload = args.print.payload_of(&args.select);
    let mut records = Numbered::open(paths, &args.access, payload, global, console)?;
    if let (true, Some(features)) = (args.steps.is_set(), features) {
        (records, _) = records.into_steps(features, args.steps.feature(), global, console)?;
    }
    let mut random = Random::new(args.seed);
    let read = args.print.payload.read;
    let mut skipped = SkippedErrors::default();
    let len = records.dataset.len();
    if condition.is_all() {
        for i in random.draw(args.n, len) {
            skipped.catch(read, printer.record(console, records.get(i)?))?;
        }
    } else {
        condition.compare_numbered(&mut records)?;
        let mut matching = Vec::new();
        for i in 0..len {
            let accepted = condition.accepts(&records.get(i)?);
            skipped.catch(read, accepted.map(|accepted| matching.extend(accepted.then_some(i))))?;
        }
        for k in random.draw(args.n, matching.len() as u64) {
            let Some(i) = matching.get(k as usize) else { continue };
            skipped.catch(read, printer.record(console, records.get(*i)?))?;
        }
    }
    condition.finish(console);
    printer.finish(console);
    skipped.report(console)
}

/// A record of the sample, and the number of its file.
#[derive(Default)]
struct Drawn {
    file: usize,
    record: KeptRecord,
}

fn in_one_pass(
    paths: &[InputFile],
    args: &SampleArgs,
    splitter: Option<&StepSplitter>,
    (mut condition, printer): (Condition, &Printer),
    global: &GlobalArgs,
    console: &mut Console,
) -> Outcome {
    let n = usize::try_from(args.n).unwrap_or(usize::MAX);
    let mut sample = Reservoir::<Drawn>::new(n, args.seed);
    let mut numbers = RecordNumbers::new(args.print.payload.read);
    let read = args.print.payload.read;
    let mut skipped = SkippedErrors::default();
    let bar = progress::bytes(global, "reading", progress::total_size(paths));
    for (file, path) in paths.iter().enumerate() {
        if n == 0 {
            break;
        }
        let in_order = |e: tfseek::Error| {
            bar.finish_and_clear();
            damage::explain(Failure::from(e), Reading::InOrder)
        };
        let before = numbers.begin(path);
        let mut records =
            Records::open_steps(path, args.print.payload, splitter).map_err(in_order)?.numbered(before);
        condition.compare_names(&mut records)?;
        while let Some(item) = records.next().map_err(in_order)? {
            let offered = condition.accepts(&item).and_then(|accepted| {
                let set = |drawn: &mut Drawn| {
                    drawn.file = file;
                    drawn.record.set(item)
                };
                let kept = if accepted { sample.offer(set) } else { None };
                kept.transpose()?;
                Ok(())
            });
            skipped.catch(read, offered).map_err(|e| {
                bar.finish_and_clear();
                damage::explain(e, Reading::InOrder)
            })?;
        }
        numbers.end(records.total());
        bar.inc(progress::total_size(std::slice::from_ref(path)));
    }
    bar.finish_and_clear();
    for drawn in sample.into_items() {
        let Some(path) = paths.get(drawn.file) else { continue };
        let name = records::name(path);
        skipped.catch(read, printer.record(console, drawn.record.numbered(&name)))?;
    }
    condition.finish(console);
    printer.finish(console);
    skipped.report(console)
}
