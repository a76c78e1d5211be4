//! `tfseek sample`: prints records drawn at random, without replacement.

use crate::args::{self, GlobalArgs};
use crate::console::Console;
use crate::damage::{self, Reading};
use crate::dataset::Numbered;
use crate::exit::Outcome;
use crate::output::Printer;
use crate::random::Random;

pub(crate) fn run(args: &args::SampleArgs, global: &GlobalArgs, console: &mut Console) -> Outcome {
    print(args, global, console).map_err(|e| damage::explain(e, Reading::ByNumber))
}

fn print(args: &args::SampleArgs, global: &GlobalArgs, console: &mut Console) -> Outcome {
    let printer = Printer::new(&args.print, global)?;
    let mut records = Numbered::open(&args.paths, &args.access, args.print.payload, global, console)?;
    let many_files = records.dataset.shards().len() > 1;
    let printer = printer.many_files(many_files);
    let mut random = Random::new(args.seed);
    for i in random.draw(args.n, records.dataset.len()) {
        printer.record(console, records.get(i)?)?;
    }
    printer.finish(console);
    Ok(())
}
