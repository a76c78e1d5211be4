//! `tfseek view`: shows a dataset in the browser.

use super::parse;
use crate::args::{AccessArgs, IoMode, PathsArgs, PayloadArgs, PayloadKind, WhereArgs};
use crate::console::Console;
use crate::exit::{DATA, Failure, IO, Outcome, USAGE};
use crate::text::{self, count};
use crate::{dataset, features, outputs, progress, store};
use clap::Args;
use std::io::IsTerminal;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tfseek::Dataset;
use tfseek::io::{Existing, bare_url};
use tfseek_image::DecoderPool;
use tfseek_tools::damage::is_damage;
use tfseek_tools::hints::word;
use tfseek_tools::thousands;
use tfseek_view::{CommandWords, ViewError, ViewOptions, ViewSet, Viewer};

/// Help after the options of `tfseek view`.
pub(crate) const AFTER_VIEW: &str = "\
The page is served to this machine only, and the link contains a token. From elsewhere: ssh -L 7717:127.0.0.1:7717 HOST, then open the \
link. Closing the page or Ctrl-C ends the command.";

#[derive(Debug, Args)]
pub(crate) struct ViewArgs {
    #[command(flatten)]
    pub(crate) paths: PathsArgs,
    /// Port to listen on; 0: any free one [default: the first free one from 7717 on]
    #[arg(long, value_name = "N")]
    pub(crate) port: Option<u16>,
    /// Do not open a browser. None is opened without a terminal or a display, and over ssh
    #[arg(long)]
    pub(crate) no_open: bool,
    /// Go on after the last tab with the page is closed. By default the command ends then
    #[arg(long)]
    pub(crate) stay: bool,
    /// Second set of files, compared with the first; may be repeated
    #[arg(long, value_name = "PATHS")]
    pub(crate) baseline: Vec<PathBuf>,
    /// Roles of features as JSON, such as {"image": "picture", "label": "y"}; other roles are guessed
    #[arg(long, value_name = "FILE")]
    pub(crate) roles: Option<PathBuf>,
    /// Schema file, as `tfseek schema --json` prints it: training steps also show its pictures as they are fed
    #[arg(short, long, value_name = "SCHEMA", conflicts_with = "html")]
    pub(crate) schema: Option<PathBuf>,
    /// Write a report to this file instead: statistics, schema and 60 records, in one page without scripts
    #[arg(long, value_name = "REPORT", conflicts_with_all = ["port", "baseline", "host", "allow_host"])]
    pub(crate) html: Option<PathBuf>,
    /// With --html: replace an existing file
    #[arg(long, requires = "html")]
    pub(crate) force: bool,
    /// Address to listen on. One that other machines can reach requires --allow-host
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1")]
    pub(crate) host: IpAddr,
    /// Name of this machine by which others may reach the page; may be repeated
    #[arg(long, value_name = "NAME")]
    pub(crate) allow_host: Vec<String>,
    #[command(flatten)]
    pub(crate) select: WhereArgs,
    #[command(flatten)]
    pub(crate) payload: PayloadArgs,
    #[command(flatten)]
    pub(crate) access: AccessArgs,
}

pub(crate) fn run(args: &ViewArgs, console: &mut Console) -> Outcome {
    let (dataset, view) = open((&args.paths, &args.baseline), args, console)?;
    // A name of no class is an error before the page is opened.
    let features = features::find(dataset.shards().map(|shard| shard.path), console);
    args.select.condition.as_ref().map(|condition| features.filter(condition)).transpose()?;
    let mut options = ViewOptions::default();
    options.host = Some(args.host);
    options.port = args.port;
    options.allow_host.clone_from(&args.allow_host);
    options.condition.clone_from(&args.select.condition);
    options.threads = args.access.threads.threads;
    options.end_times = (!args.stay).then_some(ViewOptions::END_TIMES);
    if let Some(path) = &args.roles {
        let text = text::read_file(path, "roles")?;
        let in_file = |e: ViewError| Failure::Message(USAGE, format!("{}: {e}", path.display()));
        options = options.roles(&text).map_err(in_file)?;
    }
    if let Some(path) = &args.schema {
        options.fed = Some((parse::schema(path)?, Arc::new(DecoderPool::default())));
    }
    let summary = summary(&dataset);
    if let Some(path) = &args.html {
        let size = console.size(write_report(path, (dataset, view), &options, args, console)?);
        return console
            .summary(format_args!("{summary}: {size} written to {}\n", tfseek::error::printable(path)));
    }
    let mut sets = vec![view];
    if !args.baseline.is_empty() {
        let paths = PathsArgs { paths: args.baseline.clone(), allow_missing: args.paths.allow_missing };
        sets.push(open((&paths, &args.paths.paths), args, console)?.1);
    }
    let viewer = Viewer::bind(sets, &options).map_err(failure)?;
    let port = viewer.address().port();
    console.print(format_args!("{summary}: open {}\n", viewer.url()))?;
    if args.host.is_loopback() {
        console.print(format_args!(
            "from elsewhere: ssh -L {port}:127.0.0.1:{port} HOST, then open the link\n"
        ))?;
    } else {
        console.note(format_args!(
            "tfseek: {} can be reached from other machines. The token of the link travels without encryption",
            viewer.address()
        ));
    }
    console.flush()?;
    if !args.no_open && has_display() {
        // A browser that does not start leaves the printed link.
        let _ = viewer.one_time_url().and_then(open::that_detached);
    }
    viewer.serve();
    Ok(())
}

/// Writes a report, and returns its size in bytes.
fn write_report(
    path: &Path,
    (dataset, view): (Dataset, ViewSet),
    options: &ViewOptions,
    args: &ViewArgs,
    console: &Console,
) -> Outcome<u64> {
    outputs::check_distinct([(path, path)], dataset.shards().map(|shard| shard.path))?;
    outputs::check_replace(path, args.force)?;
    // A folder that does not exist is an error before all records are read.
    let output = outputs::create(path, Existing::replace_if(args.force))?;
    let bar = progress::records(console, "reading", dataset.len());
    let report = |records| {
        bar.inc(records);
        Ok(())
    };
    let page = tfseek_view::report(view, args.select.condition.as_ref(), options, &report);
    progress::end(&bar, page.is_ok());
    let page = page.map_err(failure)?;
    outputs::write(path, output, page.as_bytes())?;
    Ok(page.len() as u64)
}

/// Returns true if a browser of this user can show a page.
fn has_display() -> bool {
    let is_set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let has_screen =
        cfg!(not(unix)) || cfg!(target_os = "macos") || is_set("DISPLAY") || is_set("WAYLAND_DISPLAY");
    has_screen && !is_set("SSH_CONNECTION") && std::io::stdout().is_terminal()
}

fn failure(e: ViewError) -> Failure {
    match e {
        ViewError::Io(e) if e.kind() == std::io::ErrorKind::InvalidInput => {
            Failure::usage(format!("--host: {e} (`--allow-host NAME`)"))
        }
        ViewError::Io(e) => Failure::Message(IO, e.to_string()),
        ViewError::Data(message) => Failure::Message(DATA, message),
        e => Failure::usage(e.to_string()),
    }
}

/// Opens a dataset as a set of the viewer. `other` are the paths of the set that it is compared with.
fn open(
    (paths, other): (&PathsArgs, &[PathBuf]),
    args: &ViewArgs,
    console: &mut Console,
) -> Outcome<(Dataset, ViewSet)> {
    let read = args.payload.read;
    // Damaged files are scanned again to leave the damage out, unless `--damage raise` forbids it: an index
    // for that takes the checksums of all payloads, and sound files need none.
    let dataset = match dataset::open(paths, &args.access, read.limit.into(), console) {
        Err(Failure::Error(e)) if read.skips() && is_damage(&e) => {
            dataset::open(paths, &args.access, read, console)?
        }
        opened => opened?,
    };
    let view = ViewSet::new(dataset.clone(), title(&paths.paths, other))?.kind(args.payload.kind.specified());
    let view = view.words(words(paths, &args.access, args.payload, &dataset));
    Ok((dataset, view))
}

/// Returns the last part of each path, or the whole paths if the other set's paths end equally.
fn title(paths: &[PathBuf], other: &[PathBuf]) -> String {
    let joined = |paths: &[PathBuf], name: fn(&Path) -> String| {
        paths.iter().map(|path| name(path)).collect::<Vec<_>>().join(" ")
    };
    let short = joined(paths, file_name);
    if short == joined(other, file_name) { joined(paths, shown) } else { short }
}

fn file_name(path: &Path) -> String {
    let shown = shown(path);
    Path::new(&shown).file_name().map_or_else(|| shown.clone(), |name| name.to_string_lossy().into_owned())
}

/// Returns a path, or a URL without its secrets.
fn shown(path: &Path) -> String {
    let text = path.to_string_lossy();
    if store::is_object(path) { bare_url(&text) } else { text.into_owned() }
}

/// Returns the words of a command that reads the same records.
fn words(paths: &PathsArgs, access: &AccessArgs, payload: PayloadArgs, dataset: &Dataset) -> CommandWords {
    // Sound files need no option.
    let is_damaged = dataset.warnings().iter().any(|warning| warning.kind() == "damage_skipped");
    let mut words: Vec<String> = paths.paths.iter().map(|path| word(&shown(path))).collect();
    if paths.allow_missing {
        words.push("--allow-missing".into());
    }
    if payload.read.limit.tolerates() {
        words.push("--tail tolerate".into());
    }
    if let Some(bytes) = payload.read.limit.max_record {
        words.push(format!("--max-record {bytes}"));
    }
    let damage = if is_damaged && payload.read.skips() { "--damage skip" } else { "" };
    let mut by_number = Vec::new();
    if access.io == IoMode::Pread {
        by_number.push("--io pread".into());
    }
    if let Some(dir) = &access.index_dir {
        by_number.push(format!("--index-dir {}", word(&dir.to_string_lossy())));
    }
    let kind = payload.kind.specified();
    let kind = kind.map_or_else(String::new, |kind| format!("--kind {}", PayloadKind::word(kind)));
    CommandWords { paths: words.join(" "), by_number: by_number.join(" "), damage: damage.into(), kind }
}

/// Returns the numbers of records and of shards.
fn summary(dataset: &Dataset) -> String {
    let shards = dataset.shards().len() as u64;
    let records = dataset.len();
    let things = if records == 1 { "record" } else { "records" };
    format!("{} {things}, {}", thousands(records), count(shards, "shard"))
}
