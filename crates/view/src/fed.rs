//! `FedPictures`: the pictures of a training step, as a loader feeds them.

use std::sync::Arc;
use tfseek::batch::{BatchParser, Column, ColumnDecoder, Dense, Row, Values};
use tfseek::error::At;
use tfseek::schema::{ImageSpec, Schema};
use tfseek::{ErrorKind, FeatureSpec, Record, Result, TensorDType};

/// Maximum number of values of a picture that is shown.
const MOST: usize = 64 << 20;

/// The pictures of a schema, made for the eye: bytes from 0 to 255, before mean and deviation.
#[derive(Debug)]
pub(crate) struct FedPictures {
    pub(crate) names: Vec<String>,
    parser: BatchParser,
}

impl FedPictures {
    /// # Errors
    /// A schema without pictures.
    pub(crate) fn new(schema: &Schema, decoder: Arc<dyn ColumnDecoder>) -> Result<FedPictures> {
        let begin = if schema.is_sequence() { Schema::sequence_example() } else { Schema::example() };
        let pictures = schema.features().iter().filter_map(|(name, spec)| match spec {
            FeatureSpec::Image(image) => Some((name.clone(), shown(image))),
            _ => None,
        });
        let pictures: Vec<_> = pictures.collect();
        let names: Vec<_> = pictures.iter().map(|(name, _)| name.clone()).collect();
        if names.is_empty() {
            return Err(ErrorKind::Spec("expected a schema with pictures, found none".into()).into());
        }
        let schema = pictures
            .into_iter()
            .fold(begin, |schema, (name, image)| schema.feature(name, FeatureSpec::Image(image)));
        Ok(FedPictures { names, parser: BatchParser::new(&schema.build()?).decoder(decoder) })
    }

    /// Returns the picture `name` of a record as a BMP, with all that is drawn from `seed`.
    pub(crate) fn picture(&self, record: Record<'_>, name: &str, seed: u64) -> Result<Vec<u8>> {
        let batch = self.parser.parse_single(&DrawnRecord { record, seed })?;
        let Some(Column::Dense(Dense { values: Values::Array(pixels), shape, .. })) = batch.get(name) else {
            let reason = format!("expected the name of a picture, found {name:?}");
            return Err(ErrorKind::Spec(reason.into()).into());
        };
        let pixels = pixels.as_slice::<u8>()?;
        if pixels.len() > MOST {
            return Err(ErrorKind::TooLarge { len: pixels.len() as u128, limit: MOST as u64 }.into());
        }
        match shape[..] {
            [height, width, channels] => Ok(bmp(pixels, [height, width], channels)),
            _ => Ok(Vec::new()),
        }
    }
}

/// Returns the file of a picture of at most [`MOST`] values, without its alpha.
fn bmp(pixels: &[u8], [height, width]: [usize; 2], channels: usize) -> Vec<u8> {
    let stride = (3 * width).next_multiple_of(4);
    let bytes = (stride * height) as u32;
    let mut file = b"BM".to_vec();
    // Rows from above: a height below 0.
    for number in [54 + bytes, 0, 54, 40, width as u32, (height as u32).wrapping_neg()] {
        file.extend(number.to_le_bytes());
    }
    file.extend([1, 0, 24, 0, 0, 0, 0, 0]);
    file.extend(bytes.to_le_bytes());
    file.extend([0; 16]);
    for (k, row) in pixels.chunks(width * channels).enumerate() {
        let colours = row.chunks_exact(channels).flat_map(|pixel| match pixel {
            [r, g, b, ..] => [*b, *g, *r],
            [grey, ..] => [*grey; 3],
            [] => [0; 3],
        });
        file.extend(colours);
        file.resize(54 + (k + 1) * stride, 0);
    }
    file
}

/// Returns a spec of the same pixels before they become the numbers of a tensor.
fn shown(image: &ImageSpec) -> ImageSpec {
    ImageSpec {
        dtype: TensorDType::UInt8,
        normalize: None,
        channels_first: false,
        geometry: None,
        ..image.clone()
    }
}

/// A record with the seed that it has in a step.
struct DrawnRecord<'a> {
    record: Record<'a>,
    seed: u64,
}

impl Row for DrawnRecord<'_> {
    fn payload(&self) -> &[u8] {
        self.record.payload()
    }

    fn at(&self) -> At<'_> {
        Row::at(&self.record)
    }

    fn augmentation_seed(&self) -> Option<u64> {
        Some(self.seed)
    }
}
