//! The fuzz target of the reader of `schema.pbtxt`. `fuzz/` runs it under libFuzzer, and the test next to it
//! over its corpus.

use std::fmt::Write;
use tfseek::ExampleBuilder;
use tfseek::example::{DType, MessageKind};
use tfseek_tools::ToolsError;
use tfseek_tools::tfx::{FeatureRule, TfxSchema, ValueDomain, read_columns};
use tfseek_tools::validate::Validator;

/// Tests the reader of schemas. After an even first byte the rest is the text. After an odd one it is a
/// script: a schema, the spelling of its text, and edits.
///
/// A spelled schema is read as it was meant, whatever its spelling. Comments do not change the result. An
/// error has a place in the text. Records can be checked against every schema that is read.
#[allow(unreachable_pub, reason = "the crate of the fuzz targets exports it")]
pub fn tfx(data: &[u8]) {
    let Some((&mode, rest)) = data.split_first() else { return };
    if mode.is_multiple_of(2) {
        return check(rest);
    }
    let mut script = Choices(rest);
    let mut text = Text { out: Vec::new(), choices: &mut script };
    let mut expected = TfxSchema::default();
    for k in 0..1 + text.choices.below(4) {
        text.feature(k, &mut expected);
    }
    let mut out = std::mem::take(&mut text.out);
    let found = TfxSchema::parse(&out);
    let shown = || String::from_utf8_lossy(&out).into_owned();
    let found = found.unwrap_or_else(|e| panic!("{e}: {}", shown()));
    assert_eq!(found, expected, "{}", shown());
    script.edit(&mut out);
    check(&out);
}

/// Checks any text.
fn check(text: &[u8]) {
    let commented = |comment: &[u8]| {
        let lines: Vec<&[u8]> = text.split(|&c| c == b'\n').collect();
        TfxSchema::parse(&lines.join(comment))
    };
    match TfxSchema::parse(text) {
        Err(e) => {
            let ToolsError::Schema { at, reason } = &e else { panic!("{e}") };
            let line = text.split(|&c| c == b'\n').nth(at.line as usize - 1).expect("a line of the text");
            assert!((1..=line.len() + 1).contains(&(at.column as usize)), "{e}");
            assert!(reason.contains("expected"), "{e}");
            assert!(TfxSchema::parse(&[text, b"\n# end"].concat()).is_err());
        }
        Ok(schema) => {
            // Schemas with NaN are not equal.
            let same = |other: TfxSchema| assert_eq!(format!("{other:?}"), format!("{schema:?}"));
            same(TfxSchema::parse(&[text, b"\n# end"].concat()).expect("a comment at the end"));
            same(commented(b"\n# a 'comment' {\n").expect("comments between lines"));
            // It has columns, or an error.
            let _ = str::from_utf8(text).map(read_columns);
            let mut checks = Validator::new(&schema);
            for i in 0..3 {
                let record = ExampleBuilder::new().int64("a0", [i]).float("b0", [0.5]).bytes("c0", ["x"]);
                checks.add(&record.encode().expect("an Example"), MessageKind::Example).expect("a record");
            }
            let report = checks.report(None, None);
            assert!(
                report.records == 3 && report.anomalies.iter().all(|anomaly| !anomaly.kind.name().is_empty())
            );
        }
    }
}

/// Bytes that are read as choices. After their end all choices are 0.
struct Choices<'a>(&'a [u8]);

impl Choices<'_> {
    fn u8(&mut self) -> u8 {
        let (first, rest) = self.0.split_first().map_or((0, self.0), |(first, rest)| (*first, rest));
        self.0 = rest;
        first
    }

    fn below(&mut self, n: u8) -> u8 {
        self.u8() % n
    }

    fn i64(&mut self) -> i64 {
        match self.below(8) {
            0 => i64::MIN,
            1 => i64::MAX,
            k => i64::from(i16::from_le_bytes([self.u8(), self.u8()])) << (8 * (k % 4)),
        }
    }

    /// Changes, inserts and removes bytes until the end of the script.
    fn edit(&mut self, text: &mut Vec<u8>) {
        while !self.0.is_empty() && !text.is_empty() {
            let (op, at) = (self.u8(), u16::from_le_bytes([self.u8(), self.u8()]));
            let at = usize::from(at) % text.len();
            match op % 4 {
                0 => text[at] = self.u8(),
                1 => text.insert(at, self.u8()),
                2 => drop(text.remove(at)),
                _ => text.truncate(at),
            }
        }
    }
}

/// A text, and choices of its spelling.
struct Text<'s, 'a> {
    out: Vec<u8>,
    choices: &'s mut Choices<'a>,
}

const KINDS: [(&str, DType); 3] = [("BYTES", DType::Bytes), ("INT", DType::Int64), ("FLOAT", DType::Float32)];

impl Text<'_, '_> {
    fn put(&mut self, text: &str) {
        self.out.extend_from_slice(text.as_bytes());
    }

    /// Writes a space, a line end or a comment.
    fn space(&mut self) {
        let spaces = [" ", "\n", "\t", " # { \"\n", "  "];
        let k = self.choices.below(spaces.len() as u8);
        self.put(spaces[usize::from(k)]);
    }

    /// Writes a field with a value that `value` writes.
    fn field(&mut self, name: &str, value: impl FnOnce(&mut Self)) {
        self.put(name);
        if self.choices.below(2) == 1 {
            self.space();
        }
        self.put(":");
        self.space();
        value(self);
        self.separator();
    }

    fn separator(&mut self) {
        let k = self.choices.below(3);
        self.put(["", ",", ";"][usize::from(k)]);
        self.space();
    }

    /// Writes a field with a message, whose colon may be left out.
    fn message(&mut self, name: &str, fields: impl FnOnce(&mut Self)) {
        self.put(name);
        let style = self.choices.below(4);
        self.put(if style & 1 == 0 { " " } else { ": " });
        self.put(if style & 2 == 0 { "{" } else { "<" });
        self.space();
        fields(self);
        self.put(if style & 2 == 0 { "}" } else { ">" });
        self.separator();
    }

    fn string(&mut self, bytes: &[u8]) {
        let quote = if self.choices.below(2) == 0 { b'"' } else { b'\'' };
        self.out.push(quote);
        for &c in bytes {
            let mut escaped = String::new();
            let digit = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_hexdigit);
            match self.choices.below(5) {
                1 => write!(escaped, "\\{c:03o}").expect("a string"),
                // A hex escape takes the digits after it.
                2 if !(0..bytes.len()).any(digit) => write!(escaped, "\\x{c:02x}").expect("a string"),
                3 => {
                    self.out.extend([quote, b' ', quote]);
                    write!(escaped, "\\{c:03o}").expect("a string");
                }
                _ if c.is_ascii_graphic() && !b"\"'\\".contains(&c) || c >= 0x80 => {
                    self.out.push(c);
                    continue;
                }
                _ => write!(escaped, "\\{c:03o}").expect("a string"),
            }
            self.put(&escaped);
        }
        self.out.push(quote);
    }

    fn int(&mut self, value: i64) {
        let (sign, digits) = (if value < 0 { "-" } else { "" }, value.unsigned_abs());
        let text = match self.choices.below(3) {
            0 => format!("{sign}{digits}"),
            1 => format!("{sign}0x{digits:x}"),
            _ => format!("{sign}0{digits:o}"),
        };
        self.put(&text);
    }

    fn bool(&mut self, value: bool) {
        let k = self.choices.below(2);
        self.put(if value { ["true", "1"] } else { ["false", "0"] }[usize::from(k)]);
    }

    fn value_bytes(&mut self) -> Vec<u8> {
        let len = self.choices.below(5);
        (0..len).map(|_| self.choices.u8()).collect()
    }

    /// Writes a feature, and adds its rule.
    fn feature(&mut self, k: u8, schema: &mut TfxSchema) {
        let first = ["a", "b", "c", "\u{e9} \"", "x\\y\n"][usize::from(self.choices.below(5))];
        let name = format!("{first}{k}");
        let mut rule = FeatureRule { min_domain_mass: 1.0, ..FeatureRule::default() };
        let kind = self.choices.below(4);
        self.message("feature", |text| {
            text.field("name", |text| text.string(name.as_bytes()));
            if let Some((word, kind)) = KINDS.get(usize::from(kind)) {
                text.field("type", |text| text.put(word));
                rule.kind = Some(*kind);
            }
            text.presence(&mut rule);
            text.domain(&mut rule);
            if text.choices.below(4) == 1 {
                rule.ignored = text.choices.below(2) == 1;
                text.field("deprecated", |text| text.bool(rule.ignored));
            }
            for _ in 0..text.choices.below(3) {
                let environment = format!("e{}", text.choices.u8());
                text.field("in_environment", |text| text.string(environment.as_bytes()));
                rule.in_environments.push(environment);
            }
        });
        if rule.kind.is_none() {
            schema.unchecked.insert(("type".to_owned(), Some(name.clone())));
        }
        schema.features.insert(name, rule);
    }

    fn presence(&mut self, rule: &mut FeatureRule) {
        if self.choices.below(2) == 1 {
            let (count, eighths) = (self.choices.u8(), self.choices.below(9));
            (rule.min_count, rule.min_fraction) = (u64::from(count), f64::from(eighths) / 8.0);
            self.message("presence", |text| {
                text.field("min_count", |text| text.int(i64::from(count)));
                text.field("min_fraction", |text| text.put(&format!("{}", f64::from(eighths) / 8.0)));
            });
        }
        if self.choices.below(2) == 1 {
            let (min, more) = (self.choices.u8(), self.choices.u8());
            let max = i64::from(min) + i64::from(more);
            rule.counts = Some((u64::from(min), u64::try_from(max).ok().filter(|&max| max > 0)));
            self.message("value_count", |text| {
                text.field("min", |text| text.int(i64::from(min)));
                text.field("max", |text| text.int(max));
            });
        }
        if self.choices.below(4) == 1 {
            let sizes = [self.choices.u8(), self.choices.u8()];
            rule.fixed = Some(u64::from(sizes[0]) * u64::from(sizes[1]));
            self.message("shape", |text| {
                sizes.iter().for_each(|&size| {
                    text.message("dim", |text| text.field("size", |text| text.int(i64::from(size))));
                });
            });
        }
    }

    fn domain(&mut self, rule: &mut FeatureRule) {
        match (self.choices.below(4), rule.kind) {
            (1, Some(DType::Int64) | None) => {
                let (min, max) = (self.choices.i64(), self.choices.i64());
                rule.domain = ValueDomain::Ints(min, max);
                self.message("int_domain", |text| {
                    text.field("min", |text| text.int(min));
                    text.field("max", |text| text.int(max));
                });
            }
            (1, Some(DType::Float32)) => {
                let (min, no_nan) =
                    (f32::from(i16::from(self.choices.u8()) - 99) / 8.0, self.choices.below(2) == 1);
                rule.domain = ValueDomain::Floats { min, max: f32::INFINITY, no_nan, no_inf: false };
                self.message("float_domain", |text| {
                    text.field("min", |text| text.put(&format!("{min:?}")));
                    text.field("disallow_nan", |text| text.bool(no_nan));
                });
            }
            (1 | 2, Some(DType::Bytes)) => {
                let values: Vec<Vec<u8>> = (0..self.choices.below(4)).map(|_| self.value_bytes()).collect();
                self.message("string_domain", |text| {
                    if text.choices.below(2) == 0 {
                        values.iter().for_each(|value| text.field("value", |text| text.string(value)));
                        return;
                    }
                    text.field("value", |text| {
                        text.put("[");
                        for (k, value) in values.iter().enumerate() {
                            text.put(if k > 0 { ", " } else { "" });
                            text.string(value);
                        }
                        text.put("]");
                    });
                });
                rule.domain = ValueDomain::Strings(values.into_iter().collect());
            }
            _ => {}
        }
    }
}
