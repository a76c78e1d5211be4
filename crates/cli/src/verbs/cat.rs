//! `tfseek cat`: prints all records in file order.

use crate::args::{self, GlobalArgs, HeadCount, PrintArgs, RecordFormat};
use crate::condition::Condition;
use crate::console::Console;
use crate::exit::Outcome;
use crate::records;

pub(crate) fn run(args: &args::CatArgs, global: &GlobalArgs, console: &mut Console) -> Outcome {
    #[cfg(feature = "tables")]
    if args.print.format == RecordFormat::Arrow {
        return super::convert::cat(args, global, console);
    }
    let paths = records::resolve(&args.paths, console)?;
    let condition = Condition::new(&args.select, paths.len());
    let all = HeadCount::First(u64::MAX);
    let format = if args.bare { RecordFormat::Bare } else { args.print.format };
    let print = PrintArgs { format, ..args.print.clone() };
    super::head::print(&paths, (args.skip, all), condition, &print, global, console)
}
