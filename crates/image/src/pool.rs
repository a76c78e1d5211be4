//! `DecoderPool`: decoders for the threads of a loader.

use crate::decoder::Decoder;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};
use tfseek::Result;
use tfseek::batch::{PictureDecoder, PictureMemory};
use tfseek::schema::ImageSpec;

/// Decoders for the threads of a loader. Each call takes one that is free, or makes one.
///
/// ```
/// # use std::sync::Arc;
/// # let dir = tempfile::tempdir()?;
/// # let path = dir.path().join("train.tfrecord");
/// # let jpeg = std::fs::read(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/yuv420.jpg"))?;
/// # let mut writer = tfseek::Writer::create(&path)?;
/// # writer.write(&tfseek::ExampleBuilder::new().bytes("image", [&jpeg]).encode()?)?;
/// # writer.close()?;
/// use tfseek::batch::Values;
/// use tfseek::{DatasetOptions, FeatureSpec, IndexMode, Schema};
/// use tfseek_image::{DecoderPool, ImageSpec};
///
/// let spec = ImageSpec { size: Some([8, 8]), ..ImageSpec::default() };
/// let schema = Schema::example().feature("image", FeatureSpec::Image(spec)).build()?;
/// let ds = DatasetOptions::new().index(IndexMode::Memory).open(&path)?;
/// let mut loader = ds.loader(&schema).batch_size(1).pictures(Arc::new(DecoderPool::default())).build()?;
/// let step = loader.next().unwrap()?;
/// let Some(Values::Array(pixels)) = step.batch().unwrap().get("image").map(|column| column.values()) else { panic!() };
/// assert_eq!(pixels.as_slice::<u8>()?.len(), 8 * 8 * 3);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Default)]
pub struct DecoderPool(Mutex<Vec<Decoder>>);

impl PictureDecoder for DecoderPool {
    fn size(&self, file: &[u8], spec: &ImageSpec) -> Result<[u32; 2]> {
        let size = crate::decoder::size(file, spec)?;
        // At most 100 million.
        Ok(size.map(|side| side as u32))
    }

    fn decode(
        &self,
        file: &[u8],
        spec: &ImageSpec,
        draw: u64,
        pixels: PictureMemory<'_>,
        cancelled: &Arc<AtomicBool>,
    ) -> Result<()> {
        let free = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut decoder = free().pop().unwrap_or_default();
        decoder.cancelled = Some(Arc::clone(cancelled));
        let decoded = match pixels {
            PictureMemory::Bits8(pixels) => decoder.decode_into(file, spec, draw, pixels),
            PictureMemory::Bits16(pixels) => decoder.decode_into(file, spec, draw, pixels),
        };
        free().push(decoder);
        Ok(decoded?)
    }
}
