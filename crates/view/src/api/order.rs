//! Random samples, and the records of a step of an epoch.

use super::refusal::{Outcome, Refusal, number};
use crate::fed::FedPictures;
use crate::http::{Request, Response};
use crate::set::ViewSet;
use serde_json::json;
use tfseek::loader::Shuffle;
use tfseek::order::{LastBatch, augmentation_seed};
use tfseek_tools::sample::Random;

/// Number of records in an answer.
const MAX_IDS: u64 = 100_000;

/// Returns the numbers of records drawn at random without replacement, as `tfseek sample` draws them from
/// plain files.
pub(super) fn sample(set: &ViewSet, request: &Request) -> Outcome {
    let n = number(request, "n")?.unwrap_or(60).min(MAX_IDS);
    let seed = seed(request)?;
    let ids: Vec<_> = Random::new(seed).draw(n, set.dataset.len()).collect();
    Ok(Response::json(&json!({ "ids": ids })))
}

fn seed(request: &Request) -> Result<u64, Refusal> {
    let outside = |_| Refusal::bad("seed: expected a number from -2^63 to 2^64 - 1");
    tfseek::order::seed_of(number::<i128>(request, "seed")?.unwrap_or(0)).map_err(outside)
}

/// Returns the records that a rank reads in a step of an epoch.
pub(super) fn step(set: &ViewSet, request: &Request) -> Outcome {
    let batch: u64 = number(request, "batch")?.unwrap_or(32);
    let epoch = number(request, "epoch")?.unwrap_or(0);
    let step = number(request, "step")?.unwrap_or(0);
    let rank = number(request, "rank")?.unwrap_or(0);
    let ranks = number(request, "world")?.unwrap_or(1);
    let choice = |name: &str, default: &'static str| request.query(name).unwrap_or(default).to_owned();
    let (shuffle, last) =
        (choice("shuffle", "global"), choice("last", if ranks == 1 { "short" } else { "pad" }));
    let order = match shuffle.as_str() {
        "global" => Shuffle::Global,
        "block" => Shuffle::Block,
        "none" => Shuffle::None,
        other => {
            return Err(Refusal::bad(format!("shuffle: expected global, block or none, found {other:?}")));
        }
    };
    let last_batch = match last.as_str() {
        "short" => LastBatch::Short,
        "pad" => LastBatch::Pad,
        "drop" => LastBatch::Drop,
        "continuous" => LastBatch::Continuous,
        other => {
            return Err(Refusal::bad(format!(
                "last: expected short, pad, drop or continuous, found {other:?}"
            )));
        }
    };
    let seed = seed(request)?;
    let options = set.dataset.record_loader();
    let options = options.global_batch_size(batch).shuffle(order).seed(seed).epoch(epoch);
    let cursor = options.rank(rank, ranks).last_batch(last_batch).to_cursor()?;
    let share = cursor.share()?;
    let Some(runs) = share.step(step) else {
        return Err(Refusal::not_found(format!(
            "there is no step {step}: the epoch has {} steps",
            share.steps()
        )));
    };
    let n = runs.clone().fold(0u64, |sum, run| sum.saturating_add(run.len));
    if n > MAX_IDS {
        return Err(Refusal::bad(format!("expected at most {MAX_IDS} records in a step, found {n}")));
    }
    let samples = cursor.order().samples(runs)?;
    let [before, after] = set.command("order");
    let command = format!(
        "{before} --step {step} --global-batch-size {batch} --seed {seed} --epoch {epoch} --rank {rank} --world-size {ranks} \
         --shuffle {shuffle} --last-batch {last} {after}"
    );
    Ok(Response::json(&json!({
        "ids": samples.iter().map(|sample| sample.record).collect::<Vec<_>>(),
        // Numbers of 64 bits, which JavaScript does not have.
        "draws": samples.iter().map(|sample| augmentation_seed(seed, sample.epoch, sample.position).to_string()).collect::<Vec<_>>(),
        "padding": samples.iter().map(|sample| sample.padding).collect::<Vec<_>>(),
        "steps": share.steps(),
        "command": command.trim_end(),
    })))
}

/// Returns a picture of a record as a step is fed with it.
pub(super) fn fed(set: &ViewSet, fed: Option<&FedPictures>, request: &Request, i: u64) -> Outcome {
    let Some(fed) = fed else {
        return Err(Refusal::not_found("there is no schema with pictures: `tfseek view --schema FILE`"));
    };
    let draw = number(request, "draw")?.unwrap_or(0);
    let name = request.query("name").unwrap_or_default();
    let picture = set.with_record(i, |record, _| fed.picture(record, name, draw))??;
    Ok(Response::new(200, "image/bmp", picture))
}
