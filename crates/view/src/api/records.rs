//! Records: cards, pages, and their byte strings and numbers.

use super::refusal::{Outcome, Refusal, number, record_number};
use super::sets::kind_name;
use crate::http::{Request, Response};
use crate::media::{OCTET_STREAM, decoded, is_one_array, payload_type};
use crate::set::{ViewSet, file_name};
use crate::values::{RECORD, STEP_VALUES, SUMMARY, ValueLimits, ValueWriter, insert, object};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use tfseek::example::MessageKind;
use tfseek::{Error, Feature, Record};
use tfseek_tools::Content;
use tfseek_tools::fields;
use tfseek_tools::record_json::RecordJson;
use tfseek_tools::wildcards::matches;

/// Number of records in an answer.
const MAX_RECORDS: u64 = 500;

/// Returns summaries of a run of records, or of records by number.
pub(super) fn summaries(set: &ViewSet, request: &Request) -> Outcome {
    let dataset = &set.dataset;
    let patterns: Option<Vec<&str>> = request.query("features").map(|names| names.split(',').collect());
    let too_many = |n: u64| Refusal::bad(format!("expected at most {MAX_RECORDS} records, found {n}"));
    let ids: Vec<u64> = match request.query("ids") {
        Some(ids) => {
            let n = ids.split(',').count() as u64;
            if n > MAX_RECORDS {
                return Err(too_many(n));
            }
            let ids = ids.split(',').filter(|id| !id.is_empty());
            ids.map(|id| record_number(set, id)).collect::<Result<_, _>>()?
        }
        None => {
            let from: u64 = number(request, "from")?.unwrap_or(0);
            let n: u64 = number(request, "n")?.unwrap_or(60);
            if n > MAX_RECORDS {
                return Err(too_many(n));
            }
            (from..from.saturating_add(n).min(dataset.len())).collect()
        }
    };
    let records: Vec<_> = ids.into_iter().map(|i| described(set, i, SUMMARY, patterns.as_deref())).collect();
    Ok(Response::json(&json!({ "records": records })))
}

/// Returns a record with all of its features, or a later part of one feature: its values or steps from `from`
/// on.
pub(super) fn record(set: &ViewSet, request: &Request, i: u64) -> Outcome {
    let Some(address) = FeatureAddress::of(request)? else {
        return Ok(Response::json(&described(set, i, RECORD, None)));
    };
    let from: usize = number(request, "from")?.unwrap_or(0);
    set.with_record(i, |record, kind| -> Outcome {
        let features = address.features(record.payload(), kind)?;
        let mut writer = ValueWriter::new(RECORD);
        let part = match features.as_slice() {
            [feature] if !address.is_list(record.payload(), kind)? => writer.feature(*feature, from),
            steps => writer.steps(steps.iter().copied().skip(from)).into(),
        };
        Ok(Response::json(&part))
    })?
}

/// Returns a record as JSON, with its error if it cannot be read or decoded.
fn described(set: &ViewSet, i: u64, limits: ValueLimits, patterns: Option<&[&str]>) -> Value {
    let described = set.with_record(i, |record, kind| {
        let at = record.at();
        let mut json = json!({
            "id": i,
            "shard": at.path.map(file_name),
            "record": at.record,
            "offset": at.offset,
            "bytes": record.payload().len(),
            "kind": kind_name(kind),
        });
        match set.content(record, kind) {
            Ok(mut content) => {
                select(&mut content, patterns);
                add_content(&mut json, &content, record, limits);
            }
            Err(e) => insert(&mut json, "error", e.to_string()),
        }
        json
    });
    described.unwrap_or_else(|e| {
        let shard = e.location().path.as_deref().map(file_name);
        json!({ "id": i, "shard": shard, "error": e.to_string() })
    })
}

fn add_content(json: &mut Value, content: &Content<'_>, record: Record<'_>, limits: ValueLimits) {
    let mut writer = ValueWriter::new(limits);
    let entries = |map: &BTreeMap<&str, Feature<'_>>, writer: &mut ValueWriter| {
        let map = map.iter().map(|(name, feature)| (*name, *feature));
        object(map, limits.features, |feature| writer.feature(feature, 0))
    };
    match content {
        Content::Example(features) => {
            let (features, left_out) = entries(features, &mut writer);
            insert(json, "features", features);
            insert(json, "left_out", left_out);
        }
        Content::Sequence(context, lists) => {
            let (features, left_out) = entries(context, &mut writer);
            let lists = lists.iter().map(|(name, list)| (*name, *list));
            let (lists, more) = object(lists, limits.features, |list| writer.list(list));
            insert(json, "features", features);
            insert(json, "lists", lists);
            insert(json, "left_out", left_out + more);
        }
        Content::Raw => {
            insert(json, "kind", "bytes");
            insert(json, "payload", writer.bytes(record.payload()));
            if let Some(all) = fields::examples(record.payload()) {
                insert(json, "total", all.iter().filter(|(name, _)| *name == "examples").count());
                insert(json, "examples", examples(&all, limits));
            } else if let Some(fields) = fields::decode(record.payload()) {
                insert(json, "fields", writer.fields(&fields));
            }
        }
    }
}

/// Returns the context and the first Examples of an `ExampleListWithContext`, each with its place in the
/// message.
fn examples(all: &[(&str, &[u8])], limits: ValueLimits) -> Vec<Value> {
    let mut writer = ValueWriter::new(ValueLimits { values: STEP_VALUES, ..limits });
    let mut list = Vec::new();
    let mut entries = limits.total;
    let mut steps = limits.steps;
    // The context is after the Examples in most files.
    let (context, rest): (Vec<_>, Vec<_>) =
        all.iter().enumerate().partition(|(_, (name, _))| *name == "context");
    for (place, (name, example)) in context.into_iter().chain(rest) {
        let Ok(Content::Example(features)) = Content::decode(example, MessageKind::Example) else { continue };
        if entries == 0 || (*name == "examples" && steps == 0) {
            break;
        }
        steps -= usize::from(*name == "examples");
        // An Example without values counts too, so that many of them do not make a long answer.
        entries = entries.saturating_sub(features.len().max(1));
        let features = features.into_iter();
        let (features, _) = object(features, limits.features, |feature| writer.feature(feature, 0));
        list.push(json!({ "name": name, "place": place, "features": features }));
    }
    list
}

/// Removes the features that no pattern matches.
fn select(content: &mut Content<'_>, patterns: Option<&[&str]>) {
    let Some(patterns) = patterns else { return };
    let is_wanted = |name: &str| patterns.iter().any(|pattern| matches(pattern, name));
    match content {
        Content::Example(features) => features.retain(|name, _| is_wanted(name)),
        Content::Sequence(context, lists) => {
            context.retain(|name, _| is_wanted(name));
            lists.retain(|name, _| is_wanted(name));
        }
        Content::Raw => {}
    }
}

/// Returns a record as `tfseek get -f json` prints it.
pub(super) fn json(set: &ViewSet, i: u64) -> Outcome {
    let many_files = set.dataset.shards().len() > 1;
    let line = set.with_record(i, |record, kind| -> Result<_, Refusal> {
        let at = record.at();
        let content = set.content(record, kind)?;
        let file = at.path.filter(|_| many_files);
        let line = RecordJson {
            file,
            index: Some(i),
            record: at.record,
            step: None,
            payload: record.payload(),
            content: &content,
        };
        serde_json::to_vec(&line).map_err(|e| Refusal(500, e.to_string()))
    })??;
    Ok(Response::new(200, "application/json", line))
}

/// The feature, and the step of a feature list, that a request names.
struct FeatureAddress<'r> {
    name: &'r str,
    step: Option<usize>,
}

impl<'r> FeatureAddress<'r> {
    fn of(request: &'r Request) -> Result<Option<FeatureAddress<'r>>, Refusal> {
        let Some(name) = request.query("feature") else { return Ok(None) };
        Ok(Some(FeatureAddress { name, step: number(request, "step")? }))
    }

    /// Returns whether the address names all steps of a feature list.
    fn is_list(&self, payload: &[u8], kind: MessageKind) -> Result<bool, Refusal> {
        let is_sequence = kind == MessageKind::SequenceExample && self.step.is_none();
        Ok(is_sequence && tfseek::SequenceExample::new(payload).feature_list(self.name)?.is_some())
    }

    /// Returns the features that the address names: one, or all steps of a list.
    fn features<'p>(&self, payload: &'p [u8], kind: MessageKind) -> Result<Vec<Feature<'p>>, Refusal> {
        let missing = |what: &str| {
            Refusal::not_found(format!("the record has no {what} \"{}\"", self.name.escape_debug()))
        };
        let feature = match kind {
            // The step is the place of an Example in a list of them.
            MessageKind::Other => match fields::examples(payload).zip(self.step) {
                Some((all, step)) => {
                    let example = all.get(step).map(|(_, example)| tfseek::Example::new(example));
                    example.and_then(|example| example.get(self.name).transpose()).transpose()?
                }
                None => None,
            },
            MessageKind::Example => tfseek::Example::new(payload).get(self.name)?,
            MessageKind::SequenceExample => {
                let record = tfseek::SequenceExample::new(payload);
                match record.feature_list(self.name)? {
                    Some(list) => {
                        let Some(step) = self.step else {
                            let mut steps = Vec::new();
                            steps.try_reserve_exact(list.len()).map_err(Error::from)?;
                            steps.extend(list.iter());
                            return Ok(steps);
                        };
                        let one = list.get(step).ok_or_else(|| missing(&format!("step {step} of")))?;
                        return Ok(vec![one]);
                    }
                    None => record.context().get(self.name)?,
                }
            }
        };
        feature.map(|feature| vec![feature]).ok_or_else(|| missing("feature"))
    }
}

/// Returns one byte string of a record, or its payload.
pub(super) fn bytes(set: &ViewSet, request: &Request, i: u64) -> Outcome {
    let address = FeatureAddress::of(request)?;
    let k: usize = number(request, "value")?.unwrap_or(0);
    let etag = etag(set, request, i);
    set.with_record(i, |record, kind| -> Outcome {
        let payload = record.payload();
        let Some(address) = address else {
            let response = Response::bytes(request, OCTET_STREAM, &etag, payload);
            return Ok(
                response.with("Content-Disposition", format!("attachment; filename=\"record-{i}.bin\""))
            );
        };
        let features = address.features(payload, kind)?;
        let value = match features.first() {
            Some(Feature::Bytes(list)) if request.query("value").is_none() && is_one_array(*list) => {
                Some(list.iter().flatten().copied().collect())
            }
            Some(Feature::Bytes(list)) => list.get(k).map(decoded),
            _ => None,
        };
        let Some(value) = value else {
            let name = address.name.escape_debug();
            return Err(Refusal::not_found(format!("the record has no byte string {k} in \"{name}\"")));
        };
        let content_type = payload_type(&value).unwrap_or(OCTET_STREAM);
        Ok(Response::bytes(request, content_type, &etag, &value))
    })?
}

/// Returns the numbers of a feature as an array: floats in 32 bits, integers as floats of 64 bits.
pub(super) fn values(set: &ViewSet, request: &Request, i: u64) -> Outcome {
    let Some(address) = FeatureAddress::of(request)? else {
        return Err(Refusal::bad("expected the parameter `feature`"));
    };
    let etag = etag(set, request, i);
    set.with_record(i, |record, kind| -> Outcome {
        let mut array = Vec::new();
        for feature in address.features(record.payload(), kind)? {
            array.try_reserve(feature.len() * 8).map_err(Error::from)?;
            match feature {
                Feature::Float(list) => list.iter().for_each(|v| array.extend_from_slice(&v.to_le_bytes())),
                Feature::Int64(list) => {
                    list.iter().for_each(|v| array.extend_from_slice(&(v as f64).to_le_bytes()));
                }
                Feature::Bytes(_) => {
                    let name = address.name.escape_debug();
                    return Err(Refusal::bad(format!("expected numbers, found byte strings in \"{name}\"")));
                }
                Feature::None => {}
            }
        }
        Ok(Response::bytes(request, OCTET_STREAM, &etag, &array))
    })?
}

/// Returns the tag of a byte string, which changes when the files change.
fn etag(set: &ViewSet, request: &Request, i: u64) -> String {
    let part = |name| request.query(name).unwrap_or("0").parse().unwrap_or(0u64);
    let feature = request.query("feature").unwrap_or_default();
    let hash = tfseek::order::Split::hash(feature.as_bytes(), 0);
    format!("{}-{i}-{}-{}-{hash:016x}", set.fingerprint, part("step"), part("value"))
}
