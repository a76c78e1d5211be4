//! `/api/episode`: the values of the steps of an episode, by the features of its set.

use super::refusal::{Outcome, Refusal};
use crate::http::Response;
use crate::media::payload_type;
use crate::set::{ViewSet, file_name};
use crate::values::{SUMMARY, ValueLimits, ValueWriter, insert, object};
use serde_json::{Map, Value, json};
use tfseek::filter::image_size;
use tfseek::{DType, Feature, TensorDType};
use tfseek_tfds::{Encoding, LeafClass, StoredFeature};
use tfseek_tools::Content;

/// Number of values of steps in an answer.
const MAX_VALUES: usize = 500;
/// Number of runs of equal texts, and of runs of steps with a flag.
const MAX_RUNS: usize = 1000;

/// Limits for the texts of an episode.
const TEXTS: ValueLimits = ValueLimits { text: 4000, total_text: 200_000, ..SUMMARY };

/// Returns the path of the steps if the records of a set are episodes.
pub(super) fn steps_path(set: &ViewSet) -> Option<String> {
    let features = set.features.features.as_ref()?;
    features.paths_of_steps().into_iter().next()
}

/// A value of steps, and what a record has of it.
struct StepValue<'a> {
    stored: StoredFeature<'a>,
    feature: Feature<'a>,
    /// Number of stored values of a step. `None` if it is not the same for all steps.
    width: Option<usize>,
}

impl<'a> StepValue<'a> {
    fn new(stored: StoredFeature<'a>, feature: Feature<'a>) -> StepValue<'a> {
        let leaf = stored.leaf;
        let sides = || leaf.shape.iter().try_fold(1usize, |all, side| all.checked_mul((*side)?));
        // The sequence of the steps is one. Values of others differ in number.
        let width = match (&leaf.class, leaf.encoding, stored.sequences.len()) {
            (LeafClass::Image(_) | LeafClass::Text, _, 1) => Some(1),
            (LeafClass::Video | LeafClass::Audio { lazy: true, .. } | LeafClass::Unknown(_), _, _) => None,
            (_, Encoding::None, 1) => sides(),
            (_, _, 1) => sides().map(|_| 1),
            _ => None,
        };
        StepValue { stored, feature, width: width.filter(|width| *width > 0) }
    }

    /// Returns the number of steps that the record has values of.
    fn steps(&self) -> Option<usize> {
        let width = self.width?;
        let n = self.feature.len();
        n.is_multiple_of(width).then_some(n / width)
    }

    /// Returns how the page shows the value.
    fn role(&self) -> &'static str {
        let leaf = self.stored.leaf;
        match (self.feature.kind(), self.width, &leaf.class) {
            (Some(DType::Bytes), Some(1), LeafClass::Image(_)) => "picture",
            (Some(DType::Bytes), Some(1), _) if leaf.dtype == TensorDType::String => "text",
            (Some(DType::Int64), Some(1), _) if leaf.dtype == TensorDType::Bool => "flag",
            (Some(DType::Int64 | DType::Float32), Some(_), _) => "numbers",
            _ => "other",
        }
    }

    /// Returns the value as the page takes it, in an episode of `steps` steps.
    fn describe(&self, path: &str, steps: usize, texts: &mut ValueWriter) -> Value {
        let stored = &self.stored;
        let name = stored.path.strip_prefix(path).and_then(|rest| rest.strip_prefix('/'));
        let mut value = json!({
            "name": name.unwrap_or(&stored.path),
            "feature": stored.name,
            "type": if stored.sequences.len() > 1 { stored.to_string() } else { stored.leaf.to_string() },
            "kind": self.feature.kind().map(|kind| kind.list_name()),
            "n": self.feature.len(),
            "width": self.width,
            "role": self.role(),
        });
        if !stored.leaf.description.is_empty() {
            insert(&mut value, "about", texts.bytes(stored.leaf.description.as_bytes()));
        }
        if let Some(problem) = self.problem(steps) {
            insert(&mut value, "role", "other");
            insert(&mut value, "problem", problem);
            return value;
        }
        match (self.role(), self.feature) {
            ("picture", Feature::Bytes(list)) => {
                let first = list.iter().find(|file| !file.is_empty()).unwrap_or_default();
                let (width, height) = image_size(first).unzip();
                insert(&mut value, "picture", json!([width, height]));
                insert(&mut value, "media", json!(payload_type(first)));
            }
            ("text", Feature::Bytes(list)) => {
                let (runs, until) = text_runs(list.iter(), steps, texts);
                insert(&mut value, "runs", runs);
                insert(&mut value, "until", until);
            }
            ("flag", Feature::Int64(list)) => {
                let (runs, until) = flag_runs(list.iter(), steps);
                insert(&mut value, "runs", json!(runs));
                insert(&mut value, "until", until);
            }
            _ => {}
        }
        value
    }

    /// Returns why the value is not one of each of `steps` steps.
    fn problem(&self, steps: usize) -> Option<String> {
        match (self.feature.kind(), self.width) {
            (None, _) => Some("the record does not have it".to_owned()),
            (_, Some(width)) if self.steps() != Some(steps) => Some(format!(
                "expected {} values for {steps} steps, found {}",
                steps.saturating_mul(width),
                self.feature.len()
            )),
            _ => None,
        }
    }
}

/// Returns the runs of equal texts, each with its first step, and the step before which they end.
fn text_runs<'a>(
    list: impl Iterator<Item = &'a [u8]>,
    steps: usize,
    texts: &mut ValueWriter,
) -> (Vec<Value>, usize) {
    let mut runs = Vec::new();
    let mut last = None;
    for (step, text) in list.enumerate().filter(|(_, text)| last.replace(*text) != Some(*text)) {
        if runs.len() == MAX_RUNS {
            return (runs, step);
        }
        runs.push(json!({ "from": step, "text": texts.bytes(text) }));
    }
    (runs, steps)
}

/// Returns the ranges of steps whose flag is set, and the step before which they end.
fn flag_runs(list: impl Iterator<Item = i64>, steps: usize) -> (Vec<[usize; 2]>, usize) {
    let mut runs = Vec::<[usize; 2]>::new();
    for (step, _) in list.enumerate().filter(|(_, flag)| *flag != 0) {
        let full = runs.len() == MAX_RUNS;
        match runs.last_mut() {
            Some([_, end]) if *end == step => *end = step + 1,
            _ if full => return (runs, step),
            _ => runs.push([step, step + 1]),
        }
    }
    (runs, steps)
}

/// Returns the number of steps of an episode, what its steps have, and the values of the episode itself. One
/// record is read. Tables of a whole shard would have to be found or built for it. With maps a picture of an
/// episode of 20 MB takes 3 ms.
pub(super) fn episode(set: &ViewSet, i: u64) -> Outcome {
    let found = set.features.features.as_deref();
    let Some((features, path)) = found.zip(steps_path(set)) else {
        let reason =
            "the records are no episodes: expected files with a features.json that has a Dataset feature";
        return Err(Refusal::not_found(reason));
    };
    set.with_record(i, |record, kind| -> Outcome {
        let at = record.at();
        let Content::Example(content) = set.content(record, kind)? else {
            return Err(Refusal(
                422,
                format!("record {i}: expected an Example with steps, found another message"),
            ));
        };
        // In the order of the features.
        let values: Vec<_> = features
            .stored()
            .into_iter()
            .filter(|one| one.sequences.first().is_some_and(|outer| outer.steps))
            .map(|one| {
                let feature = content.get(&*one.name).copied().unwrap_or(Feature::None);
                StepValue::new(one, feature)
            })
            .collect();
        let steps = values.iter().filter_map(StepValue::steps).max().unwrap_or(0);
        let mut texts = ValueWriter::new(TEXTS);
        let listed: Vec<_> =
            values.iter().take(MAX_VALUES).map(|value| value.describe(&path, steps, &mut texts)).collect();
        let is_of_steps = |name: &str| {
            name.strip_prefix(&*path).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        let own: Vec<_> = content.iter().filter(|(name, _)| !is_of_steps(name)).collect();
        let own = own.into_iter().map(|(name, feature)| (*name, *feature));
        let mut writer = ValueWriter::new(SUMMARY);
        let (own, left_out): (Map<_, _>, _) =
            object(own, SUMMARY.features, |feature| writer.feature(feature, 0));
        Ok(Response::json(&json!({
            "id": i,
            "shard": at.path.map(file_name),
            "record": at.record,
            "bytes": record.payload().len(),
            "path": path,
            "steps": steps,
            "values": listed,
            "features": own,
            "left_out": left_out + values.len().saturating_sub(MAX_VALUES),
        })))
    })?
}
