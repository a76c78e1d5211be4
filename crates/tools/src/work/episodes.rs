//! Faults in the steps of episodes: what checksums do not tell.

use std::collections::BTreeMap;
use tfseek::TensorDType;
use tfseek::error::FeatureError;
use tfseek::steps::EpisodeTable;
use tfseek::{At, Error, ErrorKind, Example, Feature, Record, Result};
use tfseek_image::{Decoder, ImageError, PictureForm, PixelsMut};
use tfseek_tfds::{EpisodeWindows, Episodes, Features, LeafClass, LeafFeature, TfdsError};

/// Number of faults of a kind and a feature that are kept of each file. Others are counted.
const MAX_KEPT: usize = 10;

/// A kind of fault in an episode.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum EpisodeFaultKind {
    /// Its features have other numbers of steps.
    Steps,
    /// `is_first` is set for another step than the first, or `is_last` for another one than the last.
    Flag,
    /// `is_first` is not set for the first step, or `is_last` not for the last one. The episode may have been cut.
    MissingFlag,
    /// A picture cannot be decoded.
    Picture,
    /// A picture has another size than `features.json` states.
    PictureSize,
    /// A value is not a number. Some data sets mark missing values so.
    NotANumber,
    /// All steps have the same action. The robot may have rested.
    ConstantAction,
}

impl EpisodeFaultKind {
    /// Returns true if data that is as it should be may have it.
    pub fn is_note(self) -> bool {
        use EpisodeFaultKind::{ConstantAction, MissingFlag, NotANumber};
        matches!(self, MissingFlag | NotANumber | ConstantAction)
    }

    /// Returns the name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            EpisodeFaultKind::Steps => "steps",
            EpisodeFaultKind::Flag => "flag",
            EpisodeFaultKind::MissingFlag => "missing_flag",
            EpisodeFaultKind::Picture => "picture",
            EpisodeFaultKind::PictureSize => "picture_size",
            EpisodeFaultKind::NotANumber => "not_a_number",
            EpisodeFaultKind::ConstantAction => "constant_action",
        }
    }
}

/// A fault, with the path of the file, the record and the feature in the error.
#[derive(Debug)]
#[non_exhaustive]
pub struct EpisodeFault {
    /// The kind.
    pub kind: EpisodeFaultKind,
    /// The number of the step in its episode. `None` if it concerns all steps.
    pub step: Option<u64>,
    /// The message, with the place.
    pub error: Error,
}

/// The faults of the episodes of a file.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct EpisodeFaults {
    /// Number of steps that were checked.
    pub steps: u64,
    /// The first faults of each kind and feature, in the order of the file.
    pub faults: Vec<EpisodeFault>,
    /// Number of all faults of each kind and feature.
    pub counts: BTreeMap<(EpisodeFaultKind, String), u64>,
}

impl EpisodeFaults {
    /// Returns the number of faults. `notes`: of those that sound data may have, or else of the others.
    pub fn count(&self, notes: bool) -> u64 {
        self.counts.iter().filter(|((kind, _), _)| kind.is_note() == notes).map(|(_, count)| count).sum()
    }

    fn add(&mut self, kind: EpisodeFaultKind, step: Option<u64>, at: At<'_>, error: Error) {
        let key = error.location().feature.as_deref().unwrap_or_default().to_owned();
        let count = self.counts.entry((kind, key)).or_default();
        *count += 1;
        if *count <= MAX_KEPT as u64 {
            self.faults.push(EpisodeFault { kind, step, error: error.at(at) });
        }
    }
}

/// The checks of the episodes of a data set, made of its features. Threads share it.
#[derive(Debug)]
pub struct EpisodeChecks {
    sets: Vec<StepChecks>,
    decode: bool,
}

/// The checks of a feature with steps.
#[derive(Debug)]
struct StepChecks {
    steps: EpisodeWindows,
    /// Sorted by name.
    leaves: Vec<CheckedLeaf>,
    /// The paths of the parts of a step that are actions.
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

impl EpisodeChecks {
    /// Makes the checks of features. `None` for features without steps. With `decode` the pixels of pictures are decoded, and not their headers alone.
    ///
    /// # Errors
    /// Features that are not read.
    pub fn new(features: &Features, decode: bool) -> Result<Option<EpisodeChecks>, TfdsError> {
        let paths = features.paths_of_steps();
        let sets: Vec<_> =
            paths.iter().map(|path| StepChecks::new(features, path)).collect::<Result<_, _>>()?;
        Ok((!sets.is_empty()).then_some(EpisodeChecks { sets, decode }))
    }

    /// Begins the checks of a file.
    pub fn begin(&self) -> EpisodeChecker<'_> {
        EpisodeChecker {
            checks: self,
            step: Vec::new(),
            pixels: PixelMemory::default(),
            faults: EpisodeFaults::default(),
        }
    }
}

impl StepChecks {
    fn new(features: &Features, path: &str) -> Result<StepChecks, TfdsError> {
        let steps = Episodes::without_records(features, Some(path))?.step_records()?;
        let (mut leaves, mut actions) = (Vec::new(), Vec::<String>::new());
        for stored in steps.features().stored() {
            let leaf = stored.leaf;
            let key = match &*stored.path {
                "" => path.to_owned(),
                inside => format!("{path}/{inside}"),
            };
            let check = match &*stored.path {
                "is_first" => LeafCheck::Flag { of_last: false },
                "is_last" => LeafCheck::Flag { of_last: true },
                _ => LeafCheck::of(leaf),
            };
            let part = stored.path.split('/').next().unwrap_or_default();
            let action = (part.starts_with("action") && leaf.dtype != TensorDType::String).then(|| {
                let name = format!("{path}/{part}");
                actions.iter().position(|known| *known == name).unwrap_or_else(|| {
                    actions.push(name);
                    actions.len().saturating_sub(1)
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

impl LeafCheck {
    fn of(leaf: &LeafFeature) -> LeafCheck {
        let side = |size: Option<usize>| size.and_then(|size| u32::try_from(size).ok());
        match (&leaf.class, &*leaf.shape) {
            (LeafClass::Image(_), &[height, width, channels])
            | (LeafClass::Video, &[_, height, width, channels]) => LeafCheck::Picture(PictureForm {
                frames: None,
                height: side(height),
                width: side(width),
                channels: channels.and_then(|n| u8::try_from(n).ok()),
                dtype: leaf.dtype,
            }),
            (LeafClass::Image(_) | LeafClass::Video | LeafClass::Unknown(_), _) => LeafCheck::Other,
            _ => LeafCheck::Numbers,
        }
    }
}

/// The checks of the episodes of one file.
#[derive(Debug)]
pub struct EpisodeChecker<'c> {
    checks: &'c EpisodeChecks,
    step: Vec<u8>,
    pixels: PixelMemory,
    faults: EpisodeFaults,
}

impl EpisodeChecker<'_> {
    /// Checks a record.
    pub fn check(&mut self, record: Record<'_>) {
        let EpisodeChecker { checks, step, pixels, faults } = self;
        for set in &checks.sets {
            if let Err(e) = set.check(record, checks.decode, step, pixels, faults) {
                faults.add(EpisodeFaultKind::Steps, None, record.at(), e);
            }
        }
    }

    /// Returns what was found.
    pub fn finish(self) -> EpisodeFaults {
        self.faults
    }
}

/// The values of an action in the first step and in this one, and whether those of all steps so far are the same.
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
    /// Checks an episode. The error is that of one whose values are not divided into steps.
    fn check(
        &self,
        record: Record<'_>,
        decode: bool,
        buf: &mut Vec<u8>,
        pixels: &mut PixelMemory,
        faults: &mut EpisodeFaults,
    ) -> Result<()> {
        let (payload, at) = (record.payload(), record.at());
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
                if let Some((kind, reason)) = leaf.fault(value, (t, all), decode, pixels) {
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
            faults.add(EpisodeFaultKind::Steps, None, at, e);
        }
        for action in actions.iter().filter(|action| action.same) {
            let e = wrong(format!("all {all} steps have the same action"), action.name);
            faults.add(EpisodeFaultKind::ConstantAction, None, at, e);
        }
        faults.steps += all;
        Ok(())
    }
}

fn wrong(reason: String, key: &str) -> Error {
    Error::from(ErrorKind::Value { reason: reason.into() }).feature(key.as_bytes())
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
    /// Returns the fault of the values of a step: the number of the step, and that of all steps.
    fn fault(
        &self,
        value: Feature<'_>,
        (step, all): (u64, u64),
        decode: bool,
        pixels: &mut PixelMemory,
    ) -> Option<(EpisodeFaultKind, String)> {
        match (&self.check, value) {
            (LeafCheck::Picture(form), Feature::Bytes(files)) => files.iter().find_map(|file| {
                let e = pixels.check(file, form, decode).err()?;
                let kind = match &e {
                    ImageError::Shape { .. } | ImageError::Size { .. } => EpisodeFaultKind::PictureSize,
                    _ => EpisodeFaultKind::Picture,
                };
                Some((kind, e.to_string()))
            }),
            (LeafCheck::Flag { of_last }, Feature::Int64(values)) => {
                let expected = if *of_last { step.checked_add(1) == Some(all) } else { step == 0 };
                let found = values.iter().next()? != 0;
                match (expected, found) {
                    (false, true) => Some((EpisodeFaultKind::Flag, "expected 0, found 1".to_owned())),
                    (true, false) => Some((EpisodeFaultKind::MissingFlag, "expected 1, found 0".to_owned())),
                    _ => None,
                }
            }
            (LeafCheck::Numbers, Feature::Float(values)) => {
                let k = values.iter().position(f32::is_nan)?;
                Some((EpisodeFaultKind::NotANumber, format!("expected numbers, found NaN as value {k}")))
            }
            (LeafCheck::Picture(_), found) => {
                let expected = tfseek::DType::Bytes.list_name();
                let found = found.kind().map_or("no kind", tfseek::DType::list_name);
                let e = FeatureError::WrongKind { expected, found };
                Some((EpisodeFaultKind::Picture, Error::from(e).to_string()))
            }
            _ => None,
        }
    }
}

/// Memory for pixels, which are decoded and forgotten.
#[derive(Default)]
struct PixelMemory {
    decoder: Decoder,
    narrow: Vec<u8>,
    wide: Vec<u16>,
    floats: Vec<u32>,
}

impl std::fmt::Debug for PixelMemory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PixelMemory").finish_non_exhaustive()
    }
}

impl PixelMemory {
    /// Checks the header of a picture, or decodes it.
    fn check(
        &mut self,
        file: &[u8],
        form: &PictureForm,
        decode: bool,
    ) -> std::result::Result<(), ImageError> {
        let values = form.shape(file)?.values();
        if !decode {
            return Ok(());
        }
        let out = match form.dtype {
            TensorDType::UInt8 => PixelsMut::U8(room(&mut self.narrow, values)?),
            TensorDType::UInt16 => PixelsMut::U16(room(&mut self.wide, values)?),
            _ => PixelsMut::F32(room(&mut self.floats, values)?),
        };
        self.decoder.decode_to(file, form, out)
    }
}

/// Returns memory for this number of values.
fn room<T: Copy + Default>(memory: &mut Vec<T>, values: usize) -> std::result::Result<&mut [T], ImageError> {
    memory.try_reserve(values.saturating_sub(memory.len())).map_err(|_| ImageError::Memory)?;
    memory.resize(values, T::default());
    Ok(memory)
}
