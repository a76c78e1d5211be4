//! `tfseek demo`: makes a small dataset and demonstrates tfseek on it.
//!
//! The observations come from TensorFlow's TFRecord tutorial: a boolean, an integer from 0 to 4, a word for
//! each integer, and a float from the normal distribution. Besides these they have a picture, which shows the
//! four values.

mod pictures;

use crate::args::{
    self, AccessArgs, HeadCount, IoMode, PathsArgs, PayloadArgs, PayloadKind, PrintArgs, ReadArgs,
    RecordFormat, StepsArgs, ThreadsArgs, WhereArgs,
};
use crate::console::{BOLD, Console};
use crate::dataset::{self, Numbered};
use crate::exit::{Failure, Outcome};
use crate::output::Printer;
use crate::outputs;
use crate::progress;
use crate::split::InputFile;
use crate::text::duration;
use crate::value_sum;
use clap::Args;
use pictures::Pictures;
use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tempfile::TempDir;
use tfseek::column::ColumnOptions;
use tfseek::index::{self, IndexOptions};
use tfseek::loader::{Loader, Shuffle};
use tfseek::order::{Spec, State};
use tfseek::stream::Stream;
use tfseek::{DType, ExampleBuilder, FeatureSpec, Order, Schema, Writer};
use tfseek_tools::sample::Random;
use tfseek_tools::stats::{StatsOptions, TableStyle};
use tfseek_tools::thousands;

#[derive(Debug, Args)]
pub(crate) struct DemoArgs {
    /// Folder for the dataset, which must be new or empty. Without it the dataset is removed
    #[arg(short, long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Random seed; the same seed gives the same records in the same order
    #[arg(long, value_name = "S", default_value_t = 0, allow_negative_numbers = true, value_parser = args::seed)]
    pub(crate) seed: u64,
}

const RECORDS: u64 = 10_000;
const SHARDS: u64 = 4;
const WORDS: [&str; 5] = ["cat", "dog", "chicken", "horse", "goat"];

/// Runs the verb. `program` is the first argument of the command.
pub(crate) fn run(args: &DemoArgs, program: &Path, console: &mut Console) -> Outcome {
    let temporary;
    let folder: &Path = match &args.out {
        Some(folder) => {
            create_empty(folder)?;
            folder
        }
        None => {
            temporary = temporary_folder()?;
            temporary.path()
        }
    };
    let paths = write(folder, args.seed)?;
    if console.global.quiet {
        // The dataset and its indexes are made, and nothing is printed.
        index::build_beside(&paths, &IndexOptions::new())?.into_iter().collect::<tfseek::Result<Vec<_>>>()?;
        return Ok(());
    }
    let size = console.size(progress::total_size(&paths));
    let pattern = folder.join("observations-*.tfrecord");
    let pattern = pattern.display();
    title(console, format_args!("{} observations in {SHARDS} shards, {size}", thousands(RECORDS)))?;
    console.print(format_args!("  {pattern}\n"))?;
    show_index(&paths, &pattern, console)?;
    if let Some(first) = paths.first() {
        show_head(first, console)?;
    }

    let start = Instant::now();
    let paths_args = PathsArgs { paths: paths.clone(), allow_missing: false };
    let access = AccessArgs { io: IoMode::Map, index_dir: None, threads: ThreadsArgs::default() };
    let dataset = dataset::open(&paths_args, &access, ReadArgs::default(), console)?;
    let mut numbered = Numbered::new(dataset, PayloadKind::Auto);
    let opened = start.elapsed();
    show_random(&mut numbered, args.seed, &pattern, console)?;
    show_condition(&numbered, &pattern, console)?;
    show_values(&paths, &pattern, console)?;
    show_order(args.seed, &pattern, console)?;
    show_resume(&numbered, args.seed, console)?;
    show_timings(&numbered, &paths, opened, args.seed, console)?;
    show_next(args.out.as_deref(), program, console)
}

/// Creates a folder, unless it exists and is empty.
fn create_empty(folder: &Path) -> Outcome {
    outputs::check_name(folder)?;
    std::fs::create_dir_all(folder).map_err(|e| Failure::io(folder, e))?;
    let mut entries = std::fs::read_dir(folder).map_err(|e| Failure::io(folder, e))?;
    if entries.next().is_none() {
        return Ok(());
    }
    let folder = folder.display();
    let message = "already exists and is not empty: --out expects a new or empty folder";
    Err(Failure::usage(format!("{folder}: {message}")))
}

fn temporary_folder() -> Outcome<TempDir> {
    let tmp = std::env::temp_dir();
    let folder = tempfile::Builder::new().prefix("tfseek-demo-").tempdir_in(&tmp);
    folder.map_err(|e| Failure::Message(crate::exit::IO, format!("{}: {e}", tmp.display())))
}

/// Builds the indexes, and shows their size.
fn show_index(paths: &[PathBuf], pattern: &impl Display, console: &mut Console) -> Outcome {
    let start = Instant::now();
    let opened = index::build_beside(paths, &IndexOptions::new())?;
    let opened = opened.into_iter().collect::<tfseek::Result<index::Indexes>>()?;
    let took = duration(start.elapsed());
    let records = thousands(opened.indexes.iter().map(index::Index::len).sum::<u64>());
    let files = opened.indexes.iter().filter_map(|i| std::fs::metadata(i.file()?).ok());
    let size = console.size(files.map(|file| file.len()).sum());
    title(console, format_args!("$ tfseek index '{pattern}'"))?;
    console.print(format_args!("  {records} records in {took}, {size} of index\n"))
}

/// Shows the first records of a file.
fn show_head(file: &Path, console: &mut Console) -> Outcome {
    title(console, format_args!("$ tfseek head -n 2 {}", file.display()))?;
    super::head::print(
        std::slice::from_ref(&InputFile::from(file.to_path_buf())),
        (0, HeadCount::First(2)),
        (&print_args(), &WhereArgs::default(), &StepsArgs::default()),
        console,
    )
}

/// Shows three records by their numbers.
fn show_random(numbered: &mut Numbered, seed: u64, pattern: &impl Display, console: &mut Console) -> Outcome {
    let picks: Vec<u64> = Random::new(seed).draw(3, RECORDS).collect();
    let words = picks.iter().map(u64::to_string).collect::<Vec<_>>().join(" ");
    title(console, format_args!("$ tfseek get '{pattern}' {words}"))?;
    let printer = Printer::new(&print_args())?;
    for &i in &picks {
        printer.record(console, numbered.get(i)?)?;
    }
    Ok(())
}

/// Shows the records that meet a condition.
fn show_condition(numbered: &Numbered, pattern: &impl Display, console: &mut Console) -> Outcome {
    let condition = "feature2 == \"goat\" and feature3 > 3";
    title(console, format_args!("$ tfseek grep -c '{condition}' '{pattern}'"))?;
    let start = Instant::now();
    let (found, _) = numbered.dataset.select(&condition.parse()?, &ColumnOptions::default())?;
    let ids: Vec<_> = found.iter().take(6).map(|i| i.to_string()).collect();
    let count = found.len();
    let first = ids.join(" ");
    let took = duration(start.elapsed());
    let more = if count > 6 { " .." } else { "" };
    console.print(format_args!("  {count} of {} records in {took}: {first}{more}\n", thousands(RECORDS)))
}

/// Shows the values of the features, with histograms.
fn show_values(paths: &[PathBuf], pattern: &impl Display, console: &mut Console) -> Outcome {
    title(console, format_args!("$ tfseek stats '{pattern}'"))?;
    let stats = StatsOptions::default().run(paths, &|path| Stream::open(path));
    let stats = stats.map_err(|e| Failure::Message(crate::exit::DATA, e.to_string()))?;
    console.print(stats.table(&TableStyle::default()))
}

/// Shows the first records of a shuffled epoch.
fn show_order(seed: u64, pattern: &impl Display, console: &mut Console) -> Outcome {
    let order = Order::new(&Spec::Global, RECORDS, seed, 0)?;
    let shuffled = (0..8).map(|t| Ok(order.get(t)?.to_string())).collect::<tfseek::Result<Vec<_>>>()?;
    title(console, format_args!("$ tfseek order '{pattern}' -b 8 --seed {seed} --step 0 --ids"))?;
    console.print(format_args!("  {}\n", shuffled.join(" ")))
}

/// Stops an epoch after ten steps, and resumes it in a new loader from its saved state.
fn show_resume(numbered: &Numbered, seed: u64, console: &mut Console) -> Outcome {
    title(console, "Resume of a shuffled epoch after ten steps of 256 records")?;
    let mut first = loader(numbered, seed)?;
    first.by_ref().take(10).try_for_each(|step| step.map(drop))?;
    let state = first.state()?.to_json();
    let mut resumed = loader(numbered, seed)?;
    resumed.seek(&State::from_json(&state)?)?;
    for (name, steps) in [("without a stop", &mut first), ("resumed", &mut resumed)] {
        let Some(step) = steps.next().transpose()? else { continue };
        let ids: Vec<_> = step.ids.iter().take(6).map(u64::to_string).collect();
        console.print(format_args!("  the next records, {name:<15} {} ..\n", ids.join(" ")))?;
    }
    console.print(format_args!("  the saved state has {} bytes\n", state.len()))
}

/// Measures the ways to read the dataset, and shows the time in which it was opened.
fn show_timings(
    numbered: &Numbered,
    paths: &[PathBuf],
    opened: Duration,
    seed: u64,
    console: &mut Console,
) -> Outcome {
    title(console, "Timings on this machine (payloads verified, one feature per record decoded)")?;
    let in_order = grouped(best_rate(|| sequential(paths))?);
    let at_random = grouped(best_rate(|| by_number(numbered, seed))?);
    let epoch = grouped(best_rate(|| shuffled_epoch(numbered, seed))?);
    let opened = duration(opened);
    console.print(format_args!(
        "  open with its index   {opened}\n  in order, streamed    {in_order} records/s\n  \
         at random, mapped     {at_random} records/s\n  \
         a shuffled epoch      {epoch} records/s, all features in batches of 256\n"
    ))
}

/// Shows commands for the dataset in the folder `out`, as the user called this program, so that the lines can
/// be copied.
fn show_next(out: Option<&Path>, program: &Path, console: &mut Console) -> Outcome {
    title(console, "Next")?;
    let program = match program.components().count() {
        0 | 1 => Path::new("tfseek").display(),
        _ => program.display(),
    };
    if out.is_none() {
        console.print(format_args!("  {program} demo --out demo            # keeps this dataset\n"))?;
    }
    let at = out.unwrap_or(Path::new("demo")).display();
    console.print(format_args!(
        "  {program} info {at}\n  {program} sample -n 3 --format json {at}\n  {program} verify {at}\n  \
         {program} epoch {at} -b 256 --seed 42   # reads an epoch like a training loop\n"
    ))?;
    #[cfg(feature = "view")]
    console.print(format_args!(
        "  {program} view {at} --html report.html   # a page with records and statistics\n"
    ))?;
    Ok(())
}

/// Returns a loader of a shuffled epoch in batches of 256 records.
fn loader(numbered: &Numbered, seed: u64) -> tfseek::Result<Loader> {
    let scalar = |dtype| FeatureSpec::fixed_len(&[], dtype);
    let schema = Schema::example()
        .feature("feature0", scalar(DType::Int64))
        .feature("feature1", scalar(DType::Int64))
        .feature("feature2", scalar(DType::Bytes))
        .feature("feature3", scalar(DType::Float32))
        .feature("image", scalar(DType::Bytes))
        .build()?;
    numbered.dataset.loader(&schema).batch_size(256).seed(seed).shuffle(Shuffle::Global).build()
}

fn print_args() -> PrintArgs {
    let payload = PayloadArgs { kind: PayloadKind::Auto, read: ReadArgs::default() };
    PrintArgs { format: RecordFormat::Human, payload, features: Vec::new(), full: false }
}

fn title(console: &mut Console, text: impl Display) -> Outcome {
    let bold = console.style(BOLD);
    console.print(format_args!("\n{bold}{text}{bold:#}\n"))
}

fn write(folder: &Path, seed: u64) -> Outcome<Vec<PathBuf>> {
    let pictures = Pictures::draw().map_err(|e| Failure::io(folder, e.into()))?;
    let mut random = Random::new(seed);
    let mut paths = Vec::new();
    for shard in 0..SHARDS {
        let path = folder.join(format!("observations-{shard:05}-of-{SHARDS:05}.tfrecord"));
        let mut writer = Writer::create(&path)?;
        for _ in 0..RECORDS / SHARDS {
            writer.write(&observation(&mut random, &pictures)?)?;
        }
        writer.close()?;
        paths.push(path);
    }
    Ok(paths)
}

fn observation(random: &mut Random, pictures: &Pictures) -> tfseek::Result<Vec<u8>> {
    let boolean = random.below(2) == 1;
    let integer = random.below(WORDS.len() as u64);
    let float = normal(random) as f32;
    ExampleBuilder::new()
        .int64("feature0", [i64::from(boolean)])
        .int64("feature1", [integer as i64])
        .bytes("feature2", WORDS.iter().skip(integer as usize).take(1))
        .float("feature3", [float])
        .bytes("image", pictures.get(boolean, integer as usize, float))
        .encode()
}

/// Returns a number from the standard normal distribution, by the Box-Muller transform.
fn normal(random: &mut Random) -> f64 {
    // A number in [0, 1).
    let mut unit = || (random.next() >> 11) as f64 / (1u64 << 53) as f64;
    let radius = (-2.0 * (1.0 - unit()).ln()).sqrt();
    radius * (std::f64::consts::TAU * unit()).cos()
}

/// Runs `pass`, which returns the number of records that it read, for 250 ms. Returns the records per second
/// of the fastest pass.
fn best_rate(mut pass: impl FnMut() -> Outcome<u64>) -> Outcome<f64> {
    let begin = Instant::now();
    let mut best = 0f64;
    while best == 0.0 || begin.elapsed() < Duration::from_millis(250) {
        let start = Instant::now();
        let records = pass()?;
        best = best.max(records as f64 / start.elapsed().as_secs_f64().max(1e-9));
    }
    Ok(best)
}

fn sequential(paths: &[PathBuf]) -> Outcome<u64> {
    let mut records = 0;
    let mut sum = 0;
    for path in paths {
        let mut stream = Stream::open(path)?;
        while let Some(record) = stream.next()? {
            sum += record.example().int64("feature1")?.first().unwrap_or(0);
            records += 1;
        }
    }
    std::hint::black_box(sum);
    Ok(records)
}

fn by_number(numbered: &Numbered, seed: u64) -> Outcome<u64> {
    let mut random = Random::new(seed);
    let mut buf = Vec::new();
    let mut sum = 0;
    for _ in 0..RECORDS {
        let record = numbered.dataset.read(random.below(RECORDS), &mut buf)?;
        sum += record.example().int64("feature1")?.first().unwrap_or(0);
    }
    std::hint::black_box(sum);
    Ok(RECORDS)
}

fn shuffled_epoch(numbered: &Numbered, seed: u64) -> Outcome<u64> {
    let mut records = 0;
    let mut sum = 0;
    for step in loader(numbered, seed)? {
        let step = step?;
        records += step.ids.len() as u64;
        sum = step.batch().map_or(0, value_sum::batch).wrapping_add(sum);
    }
    std::hint::black_box(sum);
    Ok(records)
}

/// Formats a number rounded to three significant digits, with commas between groups of three digits:
/// `1,230,000`.
fn grouped(value: f64) -> String {
    let scale = 10f64.powf((value.max(1.0)).log10().floor() - 2.0).max(1.0);
    thousands(((value / scale).round() * scale) as u64)
}
