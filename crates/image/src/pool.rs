//! `DecoderPool`: the decoder of columns of pictures.

use crate::decoder::{Decoder, picture_size};
use crate::error::ImageError;
use crate::memory;
use crate::sample::PixelsMut;
use crate::spec::{Draws, Geometry};
use std::fmt;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use tfseek::batch::{
    ArrayBits, ArrayValues, Batch, Buf, BytesColumn, Column, ColumnDecoder, DecodeContext, Dense, Ragged,
    RowSplits, SharedPool, Values,
};
use tfseek::schema::ImageSpec;
use tfseek::{Error, ErrorKind, Result, TensorDType};

/// The decoder of pictures for parsers and the threads of a loader: decoders, and memory for one batch after the other.
///
/// Pictures of one size are a dense column. Others are a ragged one, with the lines of each picture and the
/// pixels of each line as rows. Several pictures of a record have one place of the crop and one mirror.
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
/// use tfseek::{BatchParser, DatasetOptions, FeatureSpec, IndexMode, Schema};
/// use tfseek_image::{DecoderPool, ImageSpec};
///
/// let spec = ImageSpec { size: Some([8, 8]), ..ImageSpec::default() };
/// let schema = Schema::example().feature("image", FeatureSpec::Image(spec)).build()?;
/// let ds = DatasetOptions::new().index(IndexMode::Memory).open(&path)?;
/// let parser = BatchParser::new(&schema).decoder(Arc::new(DecoderPool::default()));
/// let mut loader = ds.loader(&schema).parser(parser).batch_size(1).build()?;
/// let step = loader.next().unwrap()?;
/// let Some(Values::Array(pixels)) = step.batch().unwrap().get("image").map(|column| column.values()) else { panic!() };
/// assert_eq!(pixels.as_slice::<u8>()?.len(), 8 * 8 * 3);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Default)]
pub struct DecoderPool {
    free: Mutex<Vec<Decoder>>,
    bits8: SharedPool<u8>,
    bits16: SharedPool<u16>,
    bits32: SharedPool<u32>,
    geometries: SharedPool<u32>,
}

impl fmt::Debug for DecoderPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("DecoderPool")
    }
}

impl ColumnDecoder for DecoderPool {
    fn decode(&self, batch: &mut Batch, context: &DecodeContext<'_>) -> Result<Vec<(usize, Error)>> {
        if context.pictures.is_empty() {
            return Ok(Vec::new());
        }
        let free = || self.free.lock().unwrap_or_else(PoisonError::into_inner);
        let mut decoder = free().pop().unwrap_or_default();
        decoder.cancelled = Some(Arc::clone(context.cancelled));
        let decoded = self.columns(&mut decoder, batch, context);
        free().push(decoder);
        decoded
    }

    /// The schema has all that decides about the pixels.
    fn signature(&self) -> &str {
        ""
    }
}

impl DecoderPool {
    /// Decodes all columns of pictures. Returns the refused rows.
    fn columns(
        &self,
        decoder: &mut Decoder,
        batch: &mut Batch,
        context: &DecodeContext<'_>,
    ) -> Result<Vec<(usize, Error)>> {
        let mut refused = Vec::new();
        for (name, spec) in context.pictures {
            let Some(column) = batch.get(name).or_else(|| batch.feature_list(name)) else { continue };
            let Values::Bytes(files) = column.values() else { continue };
            let several = Several::of(column, context.single);
            let mut pictures = Pictures::new(files, several.as_ref(), spec);
            let len = u128::from(pictures.values()) * spec.dtype.size().unwrap_or(1) as u128;
            if (spec.size.is_none() || several.is_some()) && len > u128::from(context.limit) {
                let limit = context.limit;
                return Err(Error::from(ErrorKind::TooLarge { len, limit }).feature(name.as_bytes()));
            }
            if spec.geometry.is_some() {
                pictures.geometry = self.geometries.take();
                pictures.geometry.clear();
                pictures.geometry.try_reserve_exact(5 * pictures.sizes.len())?;
            }
            let work = PictureWork { name, decoder, context };
            let bits = match spec.dtype {
                TensorDType::UInt8 => {
                    ArrayBits::Bits8(pictures.decode(work, &self.bits8, |pixels| PixelsMut::U8(pixels))?)
                }
                TensorDType::Float32 => {
                    ArrayBits::Bits32(pictures.decode(work, &self.bits32, |pixels| PixelsMut::F32(pixels))?)
                }
                _ => ArrayBits::Bits16(pictures.decode(work, &self.bits16, |pixels| PixelsMut::U16(pixels))?),
            };
            let Pictures { sizes, refused: bad, geometry, .. } = pictures;
            refused.extend(bad.into_iter().map(|(picture, e)| {
                let error = Error::from(e).feature(name.as_bytes());
                match several.as_ref().and_then(|several| several.places.get(picture)) {
                    Some(&(row, step)) => (row, error.step(step)),
                    None => (picture, error),
                }
            }));
            let values = Values::Array(ArrayValues::new(spec.dtype, bits));
            let channels = usize::from(spec.channels);
            let rows = if context.single && several.is_none() { None } else { Some(sizes.len()) };
            let shape_of = |[h, w]: [usize; 2]| {
                let shape = if spec.channels_first { [channels, h, w] } else { [h, w, channels] };
                rows.into_iter().chain(shape).collect()
            };
            let splits = several.and_then(|several| several.row_splits);
            match (spec.size.map(|size| shape_of(size.map(|side| side as usize))), &*sizes) {
                (Some(shape), _) => match splits {
                    Some(splits) => batch.set(name, Ragged::new(values, shape, vec![splits])),
                    None => batch.set(name, Dense::new(values, shape)),
                },
                (None, &[size]) if context.single => batch.set(name, Dense::new(values, shape_of(size))),
                (None, _) => batch.set(name, ragged(values, &sizes, channels)),
            }
            if let Some(name) = &spec.geometry {
                let bits = ArrayBits::Bits32(self.geometries.freeze(geometry));
                let values = Values::Array(ArrayValues::new(TensorDType::Int32, bits));
                batch.set(name, Dense::new(values, rows.into_iter().chain([5]).collect()));
            }
        }
        Ok(refused)
    }
}

/// A decoder and the column that it decodes.
struct PictureWork<'a> {
    name: &'a str,
    decoder: &'a mut Decoder,
    context: &'a DecodeContext<'a>,
}

/// The rows of the pictures of a column whose records have any number of them.
struct Several {
    /// The row of each picture, and its number in the row.
    places: Vec<(usize, usize)>,
    /// `None` for a single record.
    row_splits: Option<RowSplits>,
}

impl Several {
    /// Returns `None` for a column of one picture a record.
    fn of(column: &Column, single: bool) -> Option<Several> {
        match column {
            Column::Ragged(ragged) => {
                let splits = ragged.row_splits.first()?;
                let RowSplits::Int64(ends) = splits else { return None };
                let rows = ends.windows(2).enumerate();
                let places =
                    rows.flat_map(|(row, ends)| (0..(ends[1] - ends[0]) as usize).map(move |k| (row, k)));
                Some(Several { places: places.collect(), row_splits: Some(splits.clone()) })
            }
            Column::Dense(Dense { shape, .. }) if single && shape.len() == 1 => {
                let places = (0..shape[0]).map(|k| (0, k)).collect();
                Some(Several { places, row_splits: None })
            }
            _ => None,
        }
    }
}

/// The pictures of a column.
struct Pictures<'a> {
    files: &'a BytesColumn,
    several: Option<&'a Several>,
    spec: &'a ImageSpec,
    /// Height and width. A refused picture has none.
    sizes: Vec<[usize; 2]>,
    refused: Vec<(usize, ImageError)>,
    /// The geometry of each picture, if the spec asks for it.
    geometry: Vec<u32>,
}

impl<'a> Pictures<'a> {
    /// Reads the sizes of pictures, unless the spec has one for all.
    fn new(files: &'a BytesColumn, several: Option<&'a Several>, spec: &'a ImageSpec) -> Pictures<'a> {
        let mut refused = Vec::new();
        let size_of = |(row, file)| {
            let of_all = spec.size.map(|size| size.map(|side| side as usize));
            of_all.map_or_else(|| picture_size(file, spec), Ok).unwrap_or_else(|e| {
                refused.push((row, e));
                [0, 0]
            })
        };
        let sizes = files.iter().enumerate().map(size_of).collect();
        Pictures { files, several, spec, sizes, refused, geometry: Vec::new() }
    }

    /// Returns the number of values of all pictures. Each has at most 100 million pixels.
    fn values(&self) -> u64 {
        let channels = u64::from(self.spec.channels);
        self.sizes.iter().map(|[h, w]| (h * w) as u64 * channels).sum()
    }

    /// Decodes the pictures one after the other, to memory of a pool. `pixels` returns values by their type.
    fn decode<T: Copy + Default + Send + Sync + 'static>(
        &mut self,
        work: PictureWork<'_>,
        pool: &SharedPool<T>,
        pixels: impl Fn(&mut [T]) -> PixelsMut<'_>,
    ) -> Result<Buf<T>> {
        let PictureWork { name, decoder, context } = work;
        let drawn = self.spec.crop_with.as_deref().unwrap_or(name);
        let channels = usize::from(self.spec.channels);
        let has_geometry = self.spec.geometry.is_some();
        let values = usize::try_from(self.values()).map_err(|_| ImageError::Memory)?;
        // Old values stay: all are written, or cleared where a picture is refused.
        let mut all = pool.take();
        memory::resize(&mut all, values).map_err(|fault| fault.of(""))?;
        let mut rest = &mut all[..];
        let mut of_file = self.spec.size.is_none().then(|| ImageSpec { resize: None, ..self.spec.clone() });
        for (row, (file, &[h, w])) in self.files.iter().zip(&self.sizes).enumerate() {
            let out = rest.split_off_mut(..h * w * channels).unwrap_or_default();
            if out.is_empty() {
                // Refused before.
                self.geometry.extend(Geometry::default().iter().filter(|_| has_geometry));
                continue;
            }
            let spec = match &mut of_file {
                Some(spec) => {
                    spec.size = Some([h as u32, w as u32]);
                    &*spec
                }
                None => self.spec,
            };
            let of_row =
                self.several.and_then(|several| several.places.get(row)).map_or(row, |&(row, _)| row);
            let draw = |name| (context.draw)(of_row, name);
            let draws = Draws { place: draw(drawn), colours: draw(name) };
            let decoded = if context.cancelled.load(Ordering::Relaxed) {
                Err(ImageError::Cancelled)
            } else {
                decoder.decode_drawn(file, spec, draws, pixels(out))
            };
            let geometry = decoded.unwrap_or_else(|e| {
                out.fill(T::default());
                self.refused.push((row, e));
                Geometry::default()
            });
            self.geometry.extend(geometry.iter().filter(|_| has_geometry));
        }
        Ok(pool.freeze(all))
    }
}

/// Returns pictures of these sizes, with the lines of each picture and the pixels of each line as rows.
fn ragged(values: Values, sizes: &[[usize; 2]], channels: usize) -> Ragged {
    let pixels = values.len() / channels;
    let lines = splits(sizes.iter().map(|[h, _]| *h));
    let widths = sizes.iter().flat_map(|&[h, w]| std::iter::repeat_n(w, h));
    Ragged::new(values, vec![pixels, channels], vec![lines, splits(widths)])
}

/// Returns the row splits of rows of these lengths.
fn splits(lens: impl Iterator<Item = usize>) -> RowSplits {
    let mut end = 0;
    let ends = lens.map(|len| {
        end += len as i64;
        end
    });
    RowSplits::Int64(std::iter::once(0).chain(ends).collect::<Vec<_>>().into())
}
