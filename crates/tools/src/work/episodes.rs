//! Faults in the steps of episodes.

use super::faults::{FaultKind, RecordFaults, wrong};
use super::pictures::{PixelMemory, form_of};
use tfseek::TensorDType;
use tfseek::error::FeatureError;
use tfseek::{Error, Example, Feature, Record, Result};
use tfseek_image::PictureForm;
use tfseek_rlds::EpisodeTable;
use tfseek_tfds::{EpisodeWindows, Episodes, Features, LeafClass, TfdsError};

/// The checks of a feature with steps.
#[derive(Debug)]
pub(super) struct StepChecks {
    steps: EpisodeWindows,
    /// Sorted by name.
    leaves: Vec<CheckedLeaf>,
    /// The paths of the parts of a step that are actions. An action is constant if all features below its
    /// name are: a gripper alone often stays as it is.
    actions: Vec<String>,
}

#[derive(Debug)]
struct CheckedLeaf {
    /// The path in the record, and the name of its values in the record of a step.
    key: String,
    name: String,
    check: LeafCheck,
    /// The number of the action that it is a part of.
    action: Option<usize>,
    /// All steps have values.
    has_values: bool,
}

#[derive(Debug)]
enum LeafCheck {
    Picture(PictureForm),
    /// Set for the first step, or for the last one.
    Flag {
        of_last: bool,
    },
    Numbers,
    Other,
}

impl StepChecks {
    pub(super) fn new(features: &Features, path: &str) -> Result<StepChecks, TfdsError> {
        let steps = Episodes::without_records(features, Some(path))?.step_records()?;
        let mut leaves = Vec::new();
        let mut actions = Vec::<String>::new();
        for stored in steps.features().stored() {
            let leaf = stored.leaf;
            let key = match &*stored.path {
                "" => path.to_owned(),
                inside => format!("{path}/{inside}"),
            };
            let check = match (&*stored.path, form_of(leaf), &leaf.class) {
                ("is_first", ..) => LeafCheck::Flag { of_last: false },
                ("is_last", ..) => LeafCheck::Flag { of_last: true },
                (_, Some(form), _) => LeafCheck::Picture(form),
                (_, None, LeafClass::Image(_) | LeafClass::Video | LeafClass::Unknown(_)) => LeafCheck::Other,
                _ => LeafCheck::Numbers,
            };
            let part = stored.path.split_once('/').map_or(&*stored.path, |(part, _)| part);
            let action = (part.starts_with("action") && leaf.dtype != TensorDType::String).then(|| {
                let name = format!("{path}/{part}");
                actions.iter().position(|known| *known == name).unwrap_or_else(|| {
                    actions.push(name);
                    actions.len() - 1
                })
            });
            let is_known = !matches!(leaf.class, LeafClass::Unknown(_) | LeafClass::Video);
            let has_values =
                is_known && stored.sequences.is_empty() && leaf.shape.iter().all(|size| *size != Some(0));
            leaves.push(CheckedLeaf { key, name: stored.name, check, action, has_values });
        }
        leaves.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(StepChecks { steps, leaves, actions })
    }
}

/// An action's values in the first step and in this one, and whether all steps so far have the same values.
struct SameValues<'n> {
    name: &'n str,
    first: Vec<u64>,
    now: Vec<u64>,
    same: bool,
}

impl SameValues<'_> {
    fn end_step(&mut self, step: u64) {
        match step {
            0 => {
                std::mem::swap(&mut self.first, &mut self.now);
                self.same &= !self.first.is_empty();
            }
            _ => self.same &= self.now == self.first,
        }
        self.now.clear();
    }
}

impl StepChecks {
    /// Checks an episode. The error is for an episode whose values are not divided into steps.
    pub(super) fn check(
        &self,
        record: Record<'_>,
        decode: bool,
        buf: &mut Vec<u8>,
        pixels: &mut PixelMemory,
        faults: &mut RecordFaults,
    ) -> Result<()> {
        let payload = record.payload();
        let at = record.at();
        let windows = self.steps.windows();
        let table = EpisodeTable::of(payload, windows.episodes().keys())?;
        let all = u64::from(table.steps());
        let mut actions: Vec<_> = self
            .actions
            .iter()
            .map(|name| SameValues { name, first: Vec::new(), now: Vec::new(), same: all > 1 })
            .collect();
        let mut present = vec![false; self.leaves.len()];
        for t in 0..all {
            buf.clear();
            windows.append_of(payload, &table, (0, t), buf)?;
            for entry in Example::new(buf).entries() {
                let (name, value) = entry?;
                let Ok(k) = self.leaves.binary_search_by(|leaf| (*leaf.name).cmp(name)) else { continue };
                let Some(leaf) = self.leaves.get(k) else { continue };
                if let Some(present) = present.get_mut(k) {
                    *present = true;
                }
                if let Some((kind, reason)) = leaf.fault(value, (t, all), decode, pixels)? {
                    let e = wrong(format!("step {t}: {reason}"), &leaf.key);
                    faults.add(kind, Some(t), at, e);
                }
                if let Some(action) =
                    leaf.action.and_then(|k| actions.get_mut(k)).filter(|action| action.same)
                {
                    bits(value, &mut action.now);
                }
            }
            actions.iter_mut().for_each(|action| action.end_step(t));
        }
        let absent = self.leaves.iter().zip(&present).filter(|(leaf, present)| leaf.has_values && !**present);
        for (leaf, _) in absent.filter(|_| all > 0) {
            let e = wrong(format!("expected {all} steps, found no value"), &leaf.key);
            faults.add(FaultKind::Steps, None, at, e);
        }
        for action in actions.iter().filter(|action| action.same) {
            let e = wrong(format!("all {all} steps have the same action"), action.name);
            faults.add(FaultKind::ConstantAction, None, at, e);
        }
        faults.steps += all;
        Ok(())
    }
}

/// Appends the bits of numbers.
fn bits(value: Feature<'_>, out: &mut Vec<u64>) {
    match value {
        Feature::Float(list) => out.extend(list.iter().map(|value| u64::from(value.to_bits()))),
        Feature::Int64(list) => out.extend(list.iter().map(|value| value as u64)),
        _ => {}
    }
}

impl CheckedLeaf {
    /// Returns the fault of the values of a step: the step's number, and the number of all steps.
    fn fault(
        &self,
        value: Feature<'_>,
        (step, all): (u64, u64),
        decode: bool,
        pixels: &mut PixelMemory,
    ) -> Result<Option<(FaultKind, String)>> {
        Ok(match (&self.check, value) {
            (LeafCheck::Picture(form), Feature::Bytes(files)) => {
                files.iter().find_map(|file| pixels.fault(file, form, decode).transpose()).transpose()?
            }
            (LeafCheck::Flag { of_last }, Feature::Int64(values)) => {
                let expected = if *of_last { step.checked_add(1) == Some(all) } else { step == 0 };
                let Some(found) = values.iter().next() else { return Ok(None) };
                match (expected, found != 0) {
                    (false, true) => Some((FaultKind::Flag, "expected 0, found 1".to_owned())),
                    (true, false) => Some((FaultKind::MissingFlag, "expected 1, found 0".to_owned())),
                    _ => None,
                }
            }
            (LeafCheck::Numbers, Feature::Float(values)) => {
                let nan = values.iter().position(f32::is_nan);
                nan.map(|k| (FaultKind::NotANumber, format!("expected numbers, found NaN as value {k}")))
            }
            (LeafCheck::Picture(_), found) => {
                let expected = tfseek::DType::Bytes.list_name();
                let found = found.kind().map_or("no kind", tfseek::DType::list_name);
                let e = FeatureError::WrongKind { expected, found };
                Some((FaultKind::Picture, Error::from(e).to_string()))
            }
            _ => None,
        })
    }
}
