//! `tfseek cat`: prints all records in file order.

use crate::args::{self, GlobalArgs, HeadCount};
use crate::console::Console;
use crate::exit::Outcome;
use crate::records;

pub(crate) fn run(args: &args::CatArgs, global: &GlobalArgs, console: &mut Console) -> Outcome {
    let paths = records::resolve(&args.paths)?;
    super::head::print(&paths, args.skip, HeadCount::First(u64::MAX), &args.print, global, console)
}
