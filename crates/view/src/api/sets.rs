//! `/api/dataset` and `/api/shards`.

use super::refusal::{Outcome, number};
use crate::http::{Request, Response};
use crate::roles::{SeenFeature, SeenFeatures};
use crate::set::{ViewSet, bytes_of, file_name};
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use tfseek::Warning;
use tfseek::example::MessageKind;
use tfseek_tfds::SplitCheck;

/// The verbs of the commands that the page shows.
const COMMANDS: [&str; 8] = ["get", "sample", "order", "grep", "stats", "schema", "verify", "view"];
/// Number of shards in an answer.
const MAX_SHARDS: usize = 10_000;
/// Number of classes of a label in an answer.
const MAX_NAMES: usize = 50_000;
/// Number of shards whose kind is guessed for the kind of the set.
const KIND_SHARDS: usize = 16;

/// Returns the properties of a set, from its index and the first look at 16 records. Steps show the
/// pictures `fed`. The page begins with `condition`, and `against` is the name of the other set of two.
pub(super) fn dataset(
    set: &ViewSet,
    seen: &SeenFeatures,
    roles: &Map<String, Value>,
    fed: &[String],
    [condition, against]: [Option<&str>; 2],
) -> Response {
    let dataset = &set.dataset;
    let shards = dataset.shards().len();
    let feature = |(name, seen): (&String, &SeenFeature)| {
        let kind = seen.kind.map(|kind| kind.list_name());
        json!({
            "name": name, "kind": kind, "list": seen.is_list, "records": seen.records, "value": seen.example, "n": seen.most,
        })
    };
    let features: Vec<_> = seen.features.iter().chain(&seen.lists).map(feature).collect();
    let kinds: BTreeSet<_> = (0..shards.min(KIND_SHARDS))
        .map(|k| kind_name(set.kind_of(k * shards / shards.min(KIND_SHARDS))))
        .collect();
    let kind = match kinds.first() {
        None => "bytes",
        Some(kind) if kinds.len() == 1 => *kind,
        Some(_) => "mixed",
    };
    let (ranges, bytes) = set.damage();
    // The words of each command before and after the argument that the page adds.
    let commands: serde_json::Map<_, _> =
        COMMANDS.into_iter().map(|verb| (verb.to_owned(), set.command(verb).to_vec().into())).collect();
    // Damage has its own numbers.
    let is_other = |warning: &&Warning| !matches!(warning, Warning::DamageSkipped { .. });
    let warnings: Vec<_> = dataset.warnings().iter().filter(is_other).map(ToString::to_string).collect();
    let splits = splits(set);
    let list = if seen.has_cards(roles) { "grid" } else { "table" };
    let declared = set.features.features.iter().flat_map(|features| features.stored());
    let declared: Map<_, _> = declared.map(|one| (one.name.clone(), one.to_string().into())).collect();
    Response::json(&json!({
        "name": set.name,
        "records": dataset.len(),
        "shards": shards,
        "bytes": dataset.shards().enumerate().map(|(s, shard)| bytes_of(dataset, s, shard.path)).sum::<u64>(),
        "kind": kind,
        "fingerprint": set.fingerprint,
        "version": env!("CARGO_PKG_VERSION"),
        "features": features,
        "roles": roles,
        "declared": declared,
        "splits": splits,
        // The view for its records, and the one that the page begins with.
        "list": list,
        "home": if splits.is_empty() { list } else { "data" },
        "labels": labels(set),
        // The path of the steps if records are episodes.
        "episodes": super::episode::steps_path(set),
        // Pictures that steps show as they are fed.
        "fed": fed,
        "damage": { "ranges": ranges, "bytes": bytes },
        "warnings": warnings,
        "commands": commands,
        "where": condition,
        "against": against,
    }))
}

/// Returns the splits of a prepared data set: runs of shards that `dataset_info.json` has.
fn splits(set: &ViewSet) -> Vec<Value> {
    let dataset = &set.dataset;
    let mut check = SplitCheck::new(dataset.store().cloned());
    let mut found: Vec<(String, u64, u64, u64)> = Vec::new();
    let is_prepared = set.features.features.is_some();
    for shard in dataset.shards().filter(|_| is_prepared).take(MAX_SHARDS) {
        let Some(split) = check.add(shard.path, Some(shard.len)) else { continue };
        match found.last_mut().filter(|last| last.0 == split.split) {
            Some((_, _, records, shards)) => (*records, *shards) = (*records + shard.len, *shards + 1),
            None => found.push((split.split, shard.start, shard.len, 1)),
        }
    }
    let json = |(name, start, records, shards)| json!({ "name": name, "start": start, "records": records, "shards": shards });
    found.into_iter().map(json).collect()
}

/// Returns the names of the classes of labels, by feature. Labels with very many classes are left out.
fn labels(set: &ViewSet) -> Value {
    let mut labels = set.features.label_names();
    labels.retain(|_, names| names.len() <= MAX_NAMES);
    let lists = labels.into_iter().map(|(name, names)| (name, names.iter().map(|name| &**name).collect()));
    Value::Object(lists.collect())
}

/// Returns a run of shards.
pub(super) fn shards(set: &ViewSet, request: &Request) -> Outcome {
    let from: usize = number(request, "from")?.unwrap_or(0);
    let n: usize = number(request, "n")?.unwrap_or(MAX_SHARDS).min(MAX_SHARDS);
    let dataset = &set.dataset;
    let mut list = Vec::new();
    for (s, shard) in dataset.shards().enumerate().skip(from).take(n) {
        let damaged = dataset.index(s).map_or(0, |index| index.gaps().take(MAX_SHARDS).count());
        list.push(json!({
            "name": file_name(shard.path),
            "start": shard.start,
            "records": shard.len,
            "bytes": bytes_of(dataset, s, shard.path),
            "damaged": damaged,
        }));
    }
    Ok(Response::json(&json!({ "total": dataset.shards().len(), "shards": Value::from(list) })))
}

/// Returns the name of a kind in the answers.
pub(super) fn kind_name(kind: MessageKind) -> &'static str {
    match kind {
        MessageKind::Example => "example",
        MessageKind::SequenceExample => "sequence_example",
        MessageKind::Other => "bytes",
    }
}
