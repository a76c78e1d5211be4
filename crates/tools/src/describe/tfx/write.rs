//! Inferred schemas in protobuf's text format, as TFX and TensorFlow Data Validation read them.

use super::SEQUENCE;
use crate::infer::{Finding, Inference};
use std::fmt::Write;
use tfseek::example::DType;

/// Writes the schema of inferred features, as TensorFlow Data Validation infers it: type, presence, a shape
/// where all records have one, and otherwise that there are values. The largest numbers of values of these
/// records would be wrong for the next ones.
///
/// A feature whose records have several kinds is written without a type, so TFX asks for one. One without a
/// kind is left out.
pub fn write(seen: &Inference) -> String {
    let mut out = String::new();
    let (lists, features): (Vec<_>, Vec<_>) =
        seen.findings().filter(|found| !found.kinds.is_empty()).partition(|found| found.list);
    features.iter().for_each(|found| feature(found, 0, &mut out));
    if !lists.is_empty() {
        let _ = write!(out, "feature {{\n  name: \"{SEQUENCE}\"\n  type: STRUCT\n  struct_domain {{\n");
        lists.iter().for_each(|found| feature(found, 4, &mut out));
        out.push_str("  }\n}\n");
    }
    out
}

fn feature(found: &Finding<'_>, indent: usize, out: &mut String) {
    let pad = " ".repeat(indent);
    let mut kinds = found.kinds.keys();
    let kind = match (kinds.next(), kinds.next()) {
        (Some(DType::Int64), None) => Some("INT"),
        (Some(DType::Float32), None) => Some("FLOAT"),
        (Some(DType::Bytes), None) => Some("BYTES"),
        _ => None,
    };
    let _ = writeln!(out, "{pad}feature {{\n{pad}  name: {}", quoted(found.name));
    if let Some(kind) = kind {
        let _ = writeln!(out, "{pad}  type: {kind}");
        let everywhere = found.present == found.records;
        let presence = if everywhere { "min_fraction: 1.0 min_count: 1" } else { "min_count: 1" };
        let _ = writeln!(out, "{pad}  presence {{ {presence} }}");
        match (found.steps, found.counts) {
            (None, Some((n, same))) if n == same && n > 0 && everywhere => {
                let _ = writeln!(out, "{pad}  shape {{ dim {{ size: {n} }} }}");
            }
            (None, Some((1, 1))) => {
                let _ = writeln!(out, "{pad}  value_count {{ min: 1 max: 1 }}");
            }
            (None, Some((1.., _))) => {
                let _ = writeln!(out, "{pad}  value_count {{ min: 1 }}");
            }
            _ => {}
        }
    }
    let _ = writeln!(out, "{pad}}}");
}

/// Returns a string in quotes. Control characters are octal escapes.
fn quoted(text: &str) -> String {
    let mut out = String::from('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            '\n' => out.push_str("\\n"),
            c if (c as u32) < 32 || c as u32 == 127 => {
                let _ = write!(out, "\\{:03o}", c as u32);
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}
