//! `tfseek sample`: prints records drawn at random, without replacement.
//!
//! Plain files are read by number, with an index, and the records are printed in the order in which they are
//! drawn. Compressed files, pipes and standard input are read in order: a sample is drawn in one pass and
//! printed in file order, as `tfseek.stream(..).sample` of the Python package does. With `--rest` every file
//! is read by number, because an index writes the damaged bytes.

use crate::args::{self, AccessArgs, PathsArgs, PrintArgs, StepsArgs, WhereArgs};
use crate::condition::{Condition, RecordOutput};
use crate::console::Console;
use crate::damage::{self, Reading};
use crate::dataset::{self, Numbered};
use crate::exit::{Failure, Outcome};
use crate::features;
use crate::output::Printer;
use crate::progress;
use crate::records::{self, KeptRecord, RecordNumbers, Records};
use crate::split::InputFile;
use clap::Args;
use tfseek::Compression;
use tfseek_tfds::{EpisodeWindows, Features};
use tfseek_tools::sample::{Random, Reservoir};

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

pub(crate) fn run(args: &SampleArgs, console: &mut Console) -> Outcome {
    let printer = Printer::new(&args.print)?;
    let paths = records::resolve(&args.paths, args.print.payload.read, console)?;
    let of_records = features::find(paths.iter().map(InputFile::path), console);
    let (splitter, features) = features::splitter(&args.steps, of_records.clone(), &paths)?;
    let condition = Condition::new(&args.select, paths.len(), &features)?;
    let printer = printer.for_files(paths.len() > 1, &features);
    let output = RecordOutput::new(condition, printer, args.print.payload.read, console);
    for path in &paths {
        if is_stream(path, args)? {
            return in_one_pass(&paths, args, splitter.as_ref(), output);
        }
    }
    let paths = records::resolved(&args.paths, &paths)?;
    by_number(&paths, args, of_records.features.as_deref(), output)
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
    mut output: RecordOutput<'_>,
) -> Outcome {
    let payload = args.print.payload_of(&args.select);
    let dataset = dataset::open(paths, &args.access, payload.read, output.console)?;
    let mut records = Numbered::new(dataset, payload.kind);
    if let (true, Some(features)) = (args.steps.is_set(), features) {
        (records, _) = records.into_steps(features, args.steps.feature(), output.console)?;
    }
    let mut random = Random::new(args.seed);
    let len = records.dataset.len();
    if output.condition.is_all() {
        for i in random.draw(args.n, len) {
            output.print(records.get(i)?)?;
        }
    } else {
        output.condition.compare_numbered(&mut records)?;
        let mut matching = Vec::new();
        for i in 0..len {
            if output.accepts(&records.get(i)?)? {
                matching.push(i);
            }
        }
        for k in random.draw(args.n, matching.len() as u64) {
            let Some(i) = matching.get(k as usize) else { continue };
            output.print(records.get(*i)?)?;
        }
    }
    output.finish()
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
    splitter: Option<&EpisodeWindows>,
    mut output: RecordOutput<'_>,
) -> Outcome {
    let n = usize::try_from(args.n).unwrap_or(usize::MAX);
    let mut sample = Reservoir::<Drawn>::new(n, args.seed);
    let mut numbers = RecordNumbers::new(args.print.payload.read);
    let bar = progress::bytes(output.console, "reading", progress::total_size(paths));
    for (file, path) in paths.iter().enumerate() {
        if n == 0 {
            break;
        }
        let in_order = |e: Failure| {
            progress::end(&bar, true);
            damage::explain(e, Reading::InOrder)
        };
        let before = numbers.begin(path);
        let records = Records::open_steps(path, args.print.payload, splitter);
        let mut records = records.map_err(|e| in_order(e.into()))?.numbered(before);
        output.condition.compare_names(&mut records)?;
        while let Some(item) = records.next().map_err(|e| in_order(e.into()))? {
            let offered = output.condition.accepts(&item).and_then(|accepted| {
                let set = |drawn: &mut Drawn| {
                    drawn.file = file;
                    drawn.record.set(item)
                };
                let kept = if accepted { sample.offer(set) } else { None };
                kept.transpose()?;
                Ok(())
            });
            output.skipped.catch(output.read, offered).map_err(in_order)?;
        }
        numbers.end(records.reader.total());
        bar.inc(progress::total_size(std::slice::from_ref(path)));
    }
    progress::end(&bar, true);
    for drawn in sample.into_items() {
        let Some(path) = paths.get(drawn.file) else { continue };
        let name = records::name(path);
        output.print(drawn.record.numbered(&name))?;
    }
    output.finish()
}

#[cfg(test)]
mod tests {
    use super::Random;

    #[test]
    fn draws_are_distinct() {
        for (k, n) in [(0, 0), (5, 0), (1, 1), (3, 10), (10, 10), (99, 10)] {
            let mut drawn: Vec<u64> = Random::new(7).draw(k, n).collect();
            assert_eq!(drawn.len() as u64, k.min(n));
            drawn.sort_unstable();
            drawn.dedup();
            assert_eq!(drawn.len() as u64, k.min(n));
            assert!(drawn.iter().all(|&i| i < n));
        }
    }
}
