//! The number of steps of an episode, from the heads of its entries alone: neither pictures nor numbers are
//! read.

#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects))]

use crate::keys::{EpisodeKeys, ResolvedKey};
use tfseek::error::Result;
use tfseek::example::DType;
use tfseek_wire::WireReader;

/// Bytes that are read of an entry: its key, and the lengths after it.
const HEAD: usize = 320;

/// Returns the number of steps that all lists of floats agree about. `None` if there are none, if they
/// differ, or if one is not in the usual encoding. `read` copies bytes of the payload from an offset on, and
/// returns their number. Only floats count: their bytes are proportional to their values.
///
/// # Errors
/// Errors of `read`.
pub(crate) fn steps_by_heads(
    keys: &EpisodeKeys,
    payload_len: u64,
    mut read: impl FnMut(u64, &mut [u8]) -> Result<usize>,
) -> Result<Option<u32>> {
    let mut buf = [0; HEAD];
    let len = read(0, &mut buf)?;
    let Some((mut at, features)) = buf.get(..len).and_then(|head| field(head, 0x0a)) else { return Ok(None) };
    if (at as u64).checked_add(features) != Some(payload_len) {
        return Ok(None);
    }
    // The keys that were found. A list counts only if no later entry replaces it.
    let mut steps = None;
    let mut seen = Vec::new();
    while (at as u64) < payload_len {
        let len = read(at as u64, &mut buf)?;
        let Some(head) = buf.get(..len) else { return Ok(None) };
        let Some((before, entry)) = field(head, 0x0a) else { return Ok(None) };
        let Some(inside) = head.get(before..) else { return Ok(None) };
        let Some((key, after_key)) = key_of_entry(inside) else { return Ok(None) };
        if let Some(k) = keys.find(key) {
            let key = keys.all().get(k).filter(|key| key.kind == DType::Float32);
            if let Some(width) = key.and_then(ResolvedKey::counts) {
                let found = steps_of_entry(width, inside, after_key, entry);
                if found.is_none() || seen.contains(&k) || steps.is_some_and(|steps| Some(steps) != found) {
                    return Ok(None);
                }
                steps = found;
                seen.push(k);
            }
        }
        let next = (at as u64).saturating_add(before as u64).saturating_add(entry);
        let Ok(next) = usize::try_from(next) else { return Ok(None) };
        at = next;
    }
    Ok(steps)
}

/// Returns the key of an entry that begins with `bytes`, and the offset after it.
fn key_of_entry(bytes: &[u8]) -> Option<(&[u8], usize)> {
    let (before, key_len) = field(bytes, 0x0a)?;
    let after = before.checked_add(usize::try_from(key_len).ok()?)?;
    Some((bytes.get(before..after)?, after))
}

/// Returns the number of steps of an entry of `len` bytes that is a packed list with `width` floats for each
/// step.
fn steps_of_entry(width: u32, bytes: &[u8], after_key: usize, len: u64) -> Option<u32> {
    let mut at = after_key;
    // The value, its list, and the chunk of the list, each to the end of the one around it.
    for tag in [0x12, 0x12, 0x0a] {
        let rest = bytes.get(at..)?;
        if len.checked_sub(at as u64)? == 0 {
            return (tag == 0x0a).then_some(0);
        }
        let (head, inner) = field(rest, tag)?;
        at = at.checked_add(head)?;
        if (at as u64).checked_add(inner)? != len {
            return None;
        }
    }
    let row = u64::from(width).checked_mul(4)?;
    let chunk = len.checked_sub(at as u64)?;
    if chunk.checked_rem(row)? != 0 {
        return None;
    }
    u32::try_from(chunk.checked_div(row)?).ok()
}

/// Returns the bytes of a field's tag and length, and the length.
fn field(bytes: &[u8], tag: u8) -> Option<(usize, u64)> {
    let mut reader = WireReader::new(bytes);
    if !reader.take_tag(tag) {
        return None;
    }
    let len = reader.varint().ok()?;
    Some((bytes.len().checked_sub(reader.rest().len())?, len))
}
