//! Faults in pictures that are features of records.

use super::faults::{FaultKind, MAX_KEPT, RecordFault, RecordFaults, wrong};
use std::collections::{BTreeMap, BTreeSet};
use tfseek::example::MessageKind;
use tfseek::filter::image_format;
use tfseek::{At, Error, Feature, Record, Result, TensorDType};
use tfseek_image::{Decoder, ImageError, PictureForm, PixelsMut};
use tfseek_tfds::{Features, LeafClass, LeafFeature};

/// Number of features of a file that are watched for pictures.
const MAX_FEATURES: usize = 4096;

/// The pictures of records, without the pictures of steps.
#[derive(Debug, Default)]
pub(super) struct PictureChecks {
    /// The declared pictures, by the names of their values.
    declared: BTreeMap<String, PictureForm>,
    /// Names of other values that are declared, which are no pictures, or pictures of steps.
    others: BTreeSet<String>,
}

impl PictureChecks {
    /// Makes the checks of features, if they are known.
    pub(super) fn new(features: Option<&Features>) -> PictureChecks {
        let mut checks = PictureChecks::default();
        let steps = features.map(Features::paths_of_steps).unwrap_or_default();
        for stored in features.iter().flat_map(|features| features.stored()) {
            let is_inside = |path: &String| {
                let rest = stored.path.strip_prefix(path.as_str());
                rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
            };
            match form_of(stored.leaf).filter(|_| !steps.iter().any(is_inside)) {
                Some(form) => drop(checks.declared.insert(stored.name, form)),
                None => drop(checks.others.insert(stored.name)),
            }
        }
        checks
    }
}

/// Returns the form of the pictures of a leaf. `None` if it has none.
pub(super) fn form_of(leaf: &LeafFeature) -> Option<PictureForm> {
    let side = |size: Option<usize>| size.and_then(|size| u32::try_from(size).ok());
    match (&leaf.class, &*leaf.shape) {
        (LeafClass::Image(_), &[height, width, channels])
        | (LeafClass::Video, &[_, height, width, channels]) => Some(PictureForm {
            frames: None,
            height: side(height),
            width: side(width),
            channels: channels.and_then(|n| u8::try_from(n).ok()),
            dtype: leaf.dtype,
        }),
        _ => None,
    }
}

/// The values of a feature that is not declared.
#[derive(Debug, Default)]
struct WatchedFeature {
    pictures: u64,
    /// Number of other values, and the first ones as faults.
    others: u64,
    faults: Vec<RecordFault>,
}

/// The pictures of one file.
#[derive(Debug)]
pub(super) struct PictureChecker<'c> {
    checks: &'c PictureChecks,
    watched: BTreeMap<String, WatchedFeature>,
}

impl<'c> PictureChecker<'c> {
    pub(super) fn new(checks: &'c PictureChecks) -> PictureChecker<'c> {
        PictureChecker { checks, watched: BTreeMap::new() }
    }

    /// Checks the pictures of a record that was validated.
    ///
    /// # Errors
    /// There is not enough memory.
    pub(super) fn check(
        &mut self,
        record: Record<'_>,
        kind: MessageKind,
        pixels: &mut PixelMemory,
        faults: &mut RecordFaults,
    ) -> Result<()> {
        let sequence = record.sequence_example();
        let (features, lists) = match kind {
            MessageKind::Example => (Some(record.example()), None),
            MessageKind::SequenceExample => (Some(sequence.context()), Some(sequence.feature_lists())),
            MessageKind::Other => (None, None),
        };
        for entry in features.iter().flat_map(|features| features.entries()) {
            let (name, value) = entry?;
            self.values(name, value, None, record.at(), pixels, faults)?;
        }
        for entry in lists.into_iter().flatten() {
            let (name, list) = entry?;
            for (value, step) in list.iter().zip(0..) {
                self.values(name, value, Some(step), record.at(), pixels, faults)?;
            }
        }
        Ok(())
    }

    fn values(
        &mut self,
        name: &str,
        value: Feature<'_>,
        step: Option<u64>,
        at: At<'_>,
        pixels: &mut PixelMemory,
        faults: &mut RecordFaults,
    ) -> Result<()> {
        let Feature::Bytes(files) = value else { return Ok(()) };
        let several = files.len() > 1;
        for (file, k) in files.iter().zip(0u64..) {
            let error = |reason: String| {
                let place = match (step, several) {
                    (Some(step), _) => format!("step {step}: "),
                    (None, true) => format!("value {k}: "),
                    (None, false) => String::new(),
                };
                wrong(format!("{place}{reason}"), name)
            };
            if let Some(form) = self.checks.declared.get(name) {
                if let Some((kind, reason)) = pixels.fault(file, form, true)? {
                    faults.add(kind, step, at, error(reason));
                }
                continue;
            }
            let Some(watched) = self.watched(name) else { return Ok(()) };
            if image_format(file).is_none() {
                watched.others += 1;
                if watched.faults.len() < MAX_KEPT {
                    watched.faults.push(RecordFault {
                        kind: FaultKind::Picture,
                        step,
                        error: no_picture(file, error).at(at),
                    });
                }
                continue;
            }
            watched.pictures += 1;
            if let Some(reason) = pixels.damage(file)? {
                faults.add(FaultKind::Picture, step, at, error(reason));
            }
        }
        Ok(())
    }

    /// Returns the state of a feature that may hold pictures. `None` for declared ones, and beyond the limit.
    fn watched(&mut self, name: &str) -> Option<&mut WatchedFeature> {
        if self.checks.others.contains(name) {
            return None;
        }
        if !self.watched.contains_key(name) {
            if self.watched.len() == MAX_FEATURES {
                return None;
            }
            self.watched.insert(name.to_owned(), WatchedFeature::default());
        }
        self.watched.get_mut(name)
    }

    /// Adds the values that are no pictures, of features that hold at least as many pictures.
    pub(super) fn finish(self, faults: &mut RecordFaults) {
        for (name, watched) in self.watched {
            if watched.others == 0 || watched.pictures < watched.others {
                continue;
            }
            *faults.counts.entry((FaultKind::Picture, name)).or_default() += watched.others;
            faults.faults.extend(watched.faults);
        }
        faults.faults.sort_by_key(|fault| fault.error.location().record);
    }
}

/// Returns the error of bytes that are no picture.
fn no_picture(file: &[u8], error: impl Fn(String) -> Error) -> Error {
    let found = PictureForm::default().shape(file);
    error(found.map_or_else(|e| e.to_string(), |_| "expected a picture, found other bytes".to_owned()))
}

/// Memory for pixels, which are decoded and forgotten.
#[derive(Default)]
pub(super) struct PixelMemory {
    decoder: Decoder,
    narrow: Vec<u8>,
    wide: Vec<u16>,
    floats: Vec<u32>,
}

impl PixelMemory {
    /// Returns what is wrong with the bytes of a picture whose form is not declared. `None` also for a
    /// picture that is not decoded: of another format, of too many pixels, or of a kind that is not
    /// supported.
    ///
    /// # Errors
    /// There is not enough memory.
    fn damage(&mut self, file: &[u8]) -> Result<Option<String>> {
        let single = PictureForm::default();
        let mut checked = self.check(file, &single, true);
        if let Err(ImageError::Shape { .. }) = checked {
            // The form allows all shapes but frames.
            checked = self.check(file, &PictureForm { frames: Some(None), ..single }, true);
        }
        match checked {
            Err(ImageError::Memory) => Err(ImageError::Memory.into()),
            Ok(())
            | Err(ImageError::Format { .. } | ImageError::TooLarge { .. } | ImageError::Unsupported { .. }) => {
                Ok(None)
            }
            Err(e) => Ok(Some(e.to_string())),
        }
    }

    /// Returns the fault of a picture of a declared form.
    ///
    /// # Errors
    /// There is not enough memory.
    pub(super) fn fault(
        &mut self,
        file: &[u8],
        form: &PictureForm,
        decode: bool,
    ) -> Result<Option<(FaultKind, String)>> {
        let Err(e) = self.check(file, form, decode) else { return Ok(None) };
        let kind = match &e {
            ImageError::Memory => return Err(e.into()),
            ImageError::Shape { .. } | ImageError::Size { .. } => FaultKind::PictureSize,
            _ => FaultKind::Picture,
        };
        Ok(Some((kind, e.to_string())))
    }

    /// Checks the header of a picture, or decodes it. A file that is decoded must be whole.
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
        self.decoder.strict = true;
        self.decoder.decode_to(file, form, out)
    }
}

/// Returns memory for this number of values.
fn room<T: Copy + Default>(memory: &mut Vec<T>, values: usize) -> std::result::Result<&mut [T], ImageError> {
    memory.truncate(values);
    memory.try_reserve(values - memory.len()).map_err(|_| ImageError::Memory)?;
    memory.resize(values, T::default());
    Ok(memory)
}
