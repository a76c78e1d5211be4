//! `tfseek sample`: records drawn at random, none twice.

use crate::args::{self, Global};
use crate::console::Console;
use crate::dataset::Numbered;
use crate::exit::Outcome;
use crate::output::Printer;
use crate::random::Random;

pub(crate) fn run(args: &args::Sample, global: &Global, console: &mut Console) -> Outcome {
    let mut records = Numbered::open(&args.paths, &args.access, args.print.kind, global, console)?;
    let many = records.dataset.shards().len() > 1;
    let printer = Printer::new(args.print.format, args.print.full, global, many);
    let mut random = Random::new(args.seed);
    for i in random.draw(args.n, records.dataset.len()) {
        printer.record(console, records.get(i)?)?;
    }
    Ok(())
}
