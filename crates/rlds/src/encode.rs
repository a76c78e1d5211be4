//! The encoding of lists: the heads of map entries around bytes that are copied, and byte strings with their
//! tags.

use tfseek::error::{ErrorKind, Result};
use tfseek::example::DType;
use tfseek_wire::{MAX_LEN, WireReader, field_len, put_field, put_head};

/// The head of an entry whose list has a number of bytes: packed numbers, or encoded byte strings.
pub(crate) struct EntryHead<'a> {
    name: &'a str,
    pub(crate) kind: DType,
    content: u64,
    list: u64,
    feature: u64,
    entry: u64,
}

/// Appends a byte string of a list.
pub(crate) fn put_string(value: &[u8], out: &mut Vec<u8>) {
    put_field(0x0a, value, out);
}

/// Counts encoded byte strings.
pub(crate) fn count_strings(row: &[u8]) -> usize {
    let mut reader = WireReader::new(row);
    std::iter::from_fn(|| reader.take_field(0x0a)).count()
}

impl<'a> EntryHead<'a> {
    /// Creates the head of an entry whose list has `content` bytes.
    pub(crate) fn new(name: &'a str, kind: DType, content: u64) -> EntryHead<'a> {
        let list = match kind {
            DType::Bytes => content,
            _ if content == 0 => 0,
            _ => field_len(content),
        };
        let feature = field_len(list);
        let entry = field_len(name.len() as u64).saturating_add(field_len(feature));
        EntryHead { name, kind, content, list, feature, entry }
    }

    /// Appends the head. The bytes of the list follow.
    pub(crate) fn put(&self, out: &mut Vec<u8>) {
        put_head(0x0a, self.entry, out);
        put_field(0x0a, self.name.as_bytes(), out);
        put_head(0x12, self.feature, out);
        let tag = match self.kind {
            DType::Bytes => 0x0a,
            DType::Float32 => 0x12,
            DType::Int64 => 0x1a,
        };
        put_head(tag, self.list, out);
        if self.kind != DType::Bytes && self.content > 0 {
            put_head(0x0a, self.content, out);
        }
    }
}

/// Returns the bytes of all entries.
pub(crate) fn features_len<'a, 'n: 'a>(heads: impl Iterator<Item = &'a EntryHead<'n>>) -> u64 {
    heads.fold(0, |sum, head| sum.saturating_add(field_len(head.entry)))
}

/// Appends the head of an Example with `len` bytes of entries.
///
/// # Errors
/// [`ErrorKind::TooLarge`], or there is not enough memory.
pub(crate) fn put_features_head(len: u64, out: &mut Vec<u8>) -> Result<()> {
    let all = field_len(len);
    if all > MAX_LEN {
        return Err(ErrorKind::TooLarge { len: all.into(), limit: MAX_LEN }.into());
    }
    out.try_reserve(all as usize)?;
    put_head(0x0a, len, out);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use tfseek::example::ExampleBuilder;

    #[test]
    fn entries_are_those_of_the_builder() {
        for n in [0usize, 1, 30, 31, 126, 127, 128, 16_383, 16_384, 70_000] {
            let floats: Vec<f32> = (0..n).map(|k| k as f32).collect();
            let text = vec![7u8; n];
            let content: Vec<u8> = floats.iter().flat_map(|value| value.to_le_bytes()).collect();
            let mut strings = Vec::new();
            put_string(&text, &mut strings);
            assert_eq!(count_strings(&strings), 1);
            let heads = [
                (EntryHead::new("a", DType::Float32, content.len() as u64), &content),
                (EntryHead::new("b/c", DType::Bytes, strings.len() as u64), &strings),
            ];
            let mut out = Vec::new();
            put_features_head(features_len(heads.iter().map(|(head, _)| head)), &mut out).unwrap();
            for (head, bytes) in &heads {
                head.put(&mut out);
                out.extend(*bytes);
            }
            let want = ExampleBuilder::new().float("a", floats).bytes("b/c", [text]).encode().unwrap();
            assert_eq!(out, want, "{n}");
        }
    }
}
