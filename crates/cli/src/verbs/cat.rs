//! `tfseek cat`: prints all records in file order.

use crate::args::{HeadCount, PathsArgs, PrintArgs, RecordFormat, StepsArgs, WhereArgs};
use crate::console::Console;
use crate::exit::Outcome;
use crate::records;
use clap::Args;

#[derive(Debug, Args)]
pub(crate) struct CatArgs {
    #[command(flatten)]
    pub(crate) paths: PathsArgs,
    /// Number of records to skip first, per file
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) skip: u64,
    /// Print payloads that each follow their length as a varint, without framing and checksums, as protobuf's
    /// streams of messages
    #[arg(long, conflicts_with_all = ["format", "features"])]
    pub(crate) bare: bool,
    #[command(flatten)]
    pub(crate) print: PrintArgs,
    #[command(flatten)]
    pub(crate) select: WhereArgs,
}

pub(crate) fn run(args: &CatArgs, console: &mut Console) -> Outcome {
    #[cfg(feature = "tables")]
    if args.print.format == RecordFormat::Arrow {
        return super::convert::cat(&args.paths, (&args.print, &args.select), args.skip, console);
    }
    let paths = records::resolve(&args.paths, args.print.payload.read, console)?;
    let all = HeadCount::First(u64::MAX);
    let format = if args.bare { RecordFormat::Bare } else { args.print.format };
    let print = PrintArgs { format, ..args.print.clone() };
    super::head::print(&paths, (args.skip, all), (&print, &args.select, &StepsArgs::default()), console)
}
