//! `tfseek epoch`: what an epoch takes, without the training.

use super::parse;
use crate::args::{self, Global};
use crate::console::Console;
use crate::dataset;
use crate::epoch::Ran;
use crate::exit::{Failure, Outcome};
use crate::output::epoch::{self, Report};
use crate::{outputs, progress, warnings};
use std::io::Write;
use std::num::NonZeroU64;
use std::path::Path;
use tfseek::io::Output;
use tfseek::loader::{ErrorPolicy, Loader};

pub(crate) fn run(args: &args::Epoch, global: &Global, console: &mut Console) -> Outcome {
    let schema = args.schema.as_deref().map(parse::schema).transpose()?;
    let dataset = dataset::open(&args.paths, &args.access, args.share.limit, global, console)?;
    if let Some(out) = args.state_out.as_deref() {
        // The state that the run goes on from may be replaced: it has been read when the new one is written.
        let shards = dataset.shards().map(|shard| shard.path);
        outputs::keep_apart([(out, out)], shards.chain(args.schema.as_deref()))?;
    }
    let mut options = match &schema {
        Some(schema) => dataset.loader(schema),
        None => dataset.record_loader(),
    };
    options = options.verify(args.verify.into());
    if let Some(threads) = args.threads {
        options = options.threads(threads);
    }
    if args.skip_errors {
        options = options.errors(ErrorPolicy::Skip);
    }
    let mut loader = args.share.loader(&dataset, options, global)?;
    warnings::print(loader.warnings(), console);
    let start = loader.cursor().clone();
    let steps = start.steps_left()?;
    let most = args.steps.map(NonZeroU64::get);
    let bar = progress::steps(global, "epoch", steps.min(most.unwrap_or(u64::MAX)));
    let mut ran = Ran::new();
    let outcome = ran.through(&mut loader, most, &bar);
    bar.finish_and_clear();
    ran.skipped.tell(console);
    // Where it came to an error, it goes on behind the batches before it.
    let saved = args.state_out.as_deref().map_or(Ok(()), |path| save(&loader, path));
    if let Err(failure) = saved {
        console.report(&failure);
    }
    outcome?;
    let report = Report {
        describe: loader.describe(),
        epoch: start.epoch(),
        rank: args.share.rank,
        ranks: args.share.world_size.get(),
        verify: args.verify.name(),
        steps_of: steps,
        warnings: warnings::as_json(dataset.warnings().iter().chain(loader.warnings())),
        ran: &ran,
    };
    match args.json {
        true => console.print(format_args!("{}\n", report.json())),
        false => epoch::print(&report, global, console),
    }
}

fn save(loader: &Loader, path: &Path) -> Outcome {
    let state = loader.state()?.to_json();
    let io = |e| Failure::io(path, e);
    let mut file = Output::create(path).map_err(io)?;
    file.write_all(state.as_bytes()).and_then(|()| file.write_all(b"\n")).map_err(io)?;
    file.commit().map_err(io)
}
