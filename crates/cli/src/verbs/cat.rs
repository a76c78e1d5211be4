//! `tfseek cat`: all records in order.

use crate::args::{self, Global};
use crate::console::Console;
use crate::exit::Outcome;
use crate::records;

pub(crate) fn run(args: &args::Cat, global: &Global, console: &mut Console) -> Outcome {
    let paths = records::resolve(&args.paths)?;
    super::head::print(&paths, args.skip, u64::MAX, &args.print, global, console)
}
