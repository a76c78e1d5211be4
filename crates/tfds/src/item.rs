//! Items that are made of one byte string: packed numbers and pictures.

use crate::array::Numbers;
use crate::compile::{Item, Leaf};
use crate::error::wrong;
use crate::pixels::PictureWork;
use std::borrow::Cow;
use std::io::{ErrorKind, Read};
use tfseek::Result;

/// Maximum bytes of the numbers of one item.
const MAX_ITEM: u64 = 4 << 30;

/// Decodes one item to the end of `out`, and returns its shape. `stored` is the shape that the record has,
/// for items that have one.
pub(crate) fn decode(
    leaf: &Leaf,
    string: &[u8],
    stored: Option<&[i64]>,
    pictures: PictureWork<'_>,
    out: &mut Numbers,
) -> Result<Vec<usize>> {
    match &leaf.item {
        Item::Picture => pictures.decode(leaf, string, out),
        Item::Geometry { of, image } => pictures.geometry(image, of, string, out),
        Item::Packed { zlib } | Item::Shaped { zlib, .. } => {
            let bytes: Cow<'_, [u8]> =
                if *zlib { inflated(leaf, string, stored)?.into() } else { string.into() };
            let shape = shape_of(leaf, bytes.len(), stored)?;
            out.push_bytes(&bytes)?;
            Ok(shape)
        }
        Item::List | Item::Unknown => Ok(Vec::new()),
    }
}

/// Returns the shape of an item with this number of bytes.
fn shape_of(leaf: &Leaf, bytes: usize, stored: Option<&[i64]>) -> Result<Vec<usize>> {
    let size = leaf.feature.dtype.size().unwrap_or(1);
    let shape = sizes(leaf, stored)?;
    let values = if bytes.is_multiple_of(size) { Some(bytes / size) } else { None };
    let known: usize =
        shape.iter().flatten().try_fold(1usize, |all, n| all.checked_mul(*n)).unwrap_or(usize::MAX);
    let open = shape.iter().any(Option::is_none);
    let rest = match values {
        Some(values) if open && known > 0 && values.is_multiple_of(known) => values / known,
        Some(0) if open && known == 0 => 0,
        Some(values) if !open && values == known => 0,
        _ => {
            let all = known.saturating_mul(size);
            let expected = if open { format!("a multiple of {all}") } else { all.to_string() };
            return Err(wrong(format!("expected {expected} bytes of {}, found {bytes}", leaf.feature.dtype)));
        }
    };
    Ok(shape.iter().map(|size| size.unwrap_or(rest)).collect())
}

/// Returns the sizes of an item. `None` for a size that follows from the number of values.
fn sizes(leaf: &Leaf, stored: Option<&[i64]>) -> Result<Vec<Option<usize>>> {
    let Some(stored) = stored else { return Ok(leaf.shape().to_vec()) };
    let found = || format!("expected the shape of {}, found {stored:?}", leaf.feature);
    if stored.len() != leaf.shape().len() {
        return Err(wrong(found()));
    }
    // Other sizes are the schema's, whatever the record states.
    let size = |(size, stored): (&Option<usize>, &i64)| match size {
        Some(size) => Ok(Some(*size)),
        None => usize::try_from(*stored).map(Some).map_err(|_| wrong(found())),
    };
    leaf.shape().iter().zip(stored).map(size).collect()
}

/// Returns the bytes of a zlib stream, which must be complete.
fn inflated(leaf: &Leaf, string: &[u8], stored: Option<&[i64]>) -> Result<Vec<u8>> {
    let size = leaf.feature.dtype.size().unwrap_or(1) as u64;
    let sizes = sizes(leaf, stored)?;
    // One byte more than a known number tells that there are too many.
    let known = sizes.iter().copied().try_fold(size, |all, n| all.checked_mul(n? as u64));
    let limit = known.unwrap_or(MAX_ITEM).min(MAX_ITEM);
    let mut reader = flate2::read::ZlibDecoder::new(string).take(limit + 1);
    let mut bytes = Vec::new();
    reader.read_to_end(&mut bytes).map_err(|e| match e.kind() {
        ErrorKind::OutOfMemory => e.into(),
        _ => wrong(format!("expected a zlib stream, found: {e}")),
    })?;
    if bytes.len() as u64 > limit {
        return Err(wrong(format!("expected at most {limit} bytes in a zlib stream, found more")));
    }
    Ok(bytes)
}
