//! The naive twin of filters: conditions, their text and their evaluation.

use super::script::Script;
use std::cmp::Ordering;
use std::collections::BTreeSet;
use tfseek::order::Split;
use tfseek::{FeatureBuf, SequenceExampleBuilder};

/// The features of the records. Two of them need quotes.
pub(super) const NAMES: [&str; 9] = ["i", "f", "s", "a b", "in", "li", "lf", "lb", "img"];

/// The feature lists, which follow the features. A step of the last may have values of another kind, and its
/// name is a feature's.
const LISTS: [&str; 3] = ["ti", "tb", "i"];

const ALL: usize = NAMES.len() + LISTS.len();

/// The features with at most one value.
pub(super) const SCALARS: [&str; 6] = ["i", "f", "s", "a b", "in", "img"];

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Literal {
    Int(i64),
    Float(f32),
    Bytes(Vec<u8>),
}

/// The values of each feature and of all steps of each feature list, the numbers of steps, and the payload.
pub(super) struct Row {
    values: Vec<Vec<Literal>>,
    steps: [usize; LISTS.len()],
    pub(super) payload: Vec<u8>,
}

impl Row {
    /// Returns what `len` returns.
    fn count(&self, feature: usize) -> usize {
        feature.checked_sub(NAMES.len()).map_or(self.values[feature].len(), |list| self.steps[list])
    }
}

/// Returns a feature with values as those of a feature list.
fn alike(feature: usize) -> usize {
    [5, 7, 0].get(feature.wrapping_sub(NAMES.len())).copied().unwrap_or(feature)
}

/// A feature whose literals are always integers.
const INTS_ONLY: usize = 3;

const INTS: [i64; 8] = [0, 1, 2, -1, 9, 10, i64::MAX, i64::MIN];
const FLOATS: [f32; 9] = [0.0, -0.0, 0.1, 1.0, -2.5, f32::INFINITY, f32::NEG_INFINITY, f32::NAN, 1e30];
const STRINGS: [&[u8]; 7] = [b"", b"cat", b"dog", b"it's", b"\"\\\n", b"\xff", "\u{e9}".as_bytes()];

/// An encoded image, and its width, height and format.
type ImageTwin = (&'static [u8], Option<(i64, i64, &'static str)>);

const IMAGES: [ImageTwin; 4] = [
    (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x02\0\0\0\x0a\x08\x02\0\0\0", Some((2, 10, "png"))),
    (b"GIF89a\x0a\0\x01\0\0\0\0;", Some((10, 1, "gif"))),
    (b"\x89PNG\r\n\x1a\n", None),
    (b"", None),
];

const FORMATS: [&str; 3] = ["png", "gif", "jpeg"];

/// A regular expression, and a function that does the same.
type PatternTwin = (&'static str, fn(&[u8]) -> bool);

const PATTERNS: [PatternTwin; 4] = [
    ("^c", |bytes| bytes.starts_with(b"c")),
    (r"[g\xff]$", |bytes| matches!(bytes.last(), Some(b'g' | 0xff))),
    (r#"\"|'"#, |bytes| bytes.contains(&b'"') || bytes.contains(&b'\'')),
    ("", |_| true),
];

/// Returns records with values of all kinds.
pub(super) fn rows() -> Vec<Row> {
    (0..100)
        .map(|i| {
            let int = |k: usize| Literal::Int(INTS[(i + k) % 8]);
            let float = |k: usize| Literal::Float(FLOATS[(i + k) % 9]);
            let bytes = |k: usize| Literal::Bytes(STRINGS[(i + k) % 7].to_vec());
            let some = |k: usize, value: Literal| if i % k > 0 { vec![value] } else { Vec::new() };
            let image = Literal::Bytes(IMAGES[i % IMAGES.len()].0.to_vec());
            let values = [
                some(5, int(0)),
                some(7, float(0)),
                some(4, bytes(0)),
                some(90, int(0)),
                vec![Literal::Int(i as i64)],
                (0..i % 4).map(int).collect(),
                (0..i / 4 % 3).map(float).collect(),
                (0..i / 2 % 4).map(bytes).collect(),
                some(3, image),
            ];
            // Every third record has no lists, and some steps have no values.
            let steps = |n: usize, make: &dyn Fn(usize, usize) -> Literal| -> Vec<Vec<Literal>> {
                let step = |k: usize| (0..(i + 5 * k) % 7 % 3).map(|j| make(k, j + k)).collect();
                (0..n * (i % 3).min(1)).map(step).collect()
            };
            let mixed = |k: usize, j: usize| if i == 53 && k == 1 { bytes(j) } else { int(j) };
            let (ints, strings) = (|_, j| int(j), |_, j| bytes(j));
            let lists = [steps(i % 4, &ints), steps(i % 5, &strings), steps(1 + i % 2, &mixed)];
            let mut builder = SequenceExampleBuilder::new();
            for (name, steps) in LISTS.iter().zip(&lists).filter(|(_, all)| !all.is_empty() || i % 2 == 0) {
                builder = builder.feature_list(*name, steps.iter().map(|step| feature_of(step)));
            }
            for (k, (name, list)) in NAMES.iter().zip(&values).enumerate() {
                builder = match list.first() {
                    None if i % 2 == 0 => builder,
                    // A list without values.
                    None => match k {
                        1 | 6 => builder.float(*name, [0f32; 0]),
                        2 | 7 | 8 => builder.bytes(*name, [[0; 0]; 0]),
                        _ => builder.int64(*name, [0; 0]),
                    },
                    Some(_) => builder.feature(*name, feature_of(list)),
                };
            }
            let steps = lists.each_ref().map(Vec::len);
            let values = values.into_iter().chain(lists.map(|steps| steps.concat())).collect();
            Row { values, steps, payload: builder.encode().unwrap() }
        })
        .collect()
}

/// Returns a feature or a step with values of one kind.
fn feature_of(values: &[Literal]) -> FeatureBuf {
    let values = values.iter();
    match values.as_slice().first() {
        Some(Literal::Bytes(_)) => {
            FeatureBuf::Bytes(values.filter_map(Literal::bytes).map(<[u8]>::to_vec).collect())
        }
        Some(Literal::Float(_)) => FeatureBuf::Float(values.filter_map(Literal::float).collect()),
        Some(Literal::Int(_)) => FeatureBuf::Int64(values.filter_map(Literal::int).collect()),
        None => FeatureBuf::None,
    }
}

impl Literal {
    fn int(&self) -> Option<i64> {
        if let Literal::Int(v) = self { Some(*v) } else { None }
    }

    fn float(&self) -> Option<f32> {
        if let Literal::Float(v) = self { Some(*v) } else { None }
    }

    fn bytes(&self) -> Option<&[u8]> {
        if let Literal::Bytes(v) = self { Some(v) } else { None }
    }
}

pub(super) enum Condition {
    All(Vec<Condition>),
    Any(Vec<Condition>),
    Not(Box<Condition>),
    Feature {
        feature: usize,
        quantifier: Quantifier,
        quantity: &'static str,
        test: Test,
    },
    Record(Test),
    /// A number of quarters, and a seed.
    Split(u64, u64),
}

#[derive(Clone, Copy, PartialEq)]
pub(super) enum Quantifier {
    Only,
    Any,
    All,
}

pub(super) enum Test {
    Present,
    Absent,
    Compare(&'static str, Literal),
    /// A comparison with a quantity of another feature.
    With(&'static str, usize, &'static str),
    In(Vec<Item>),
    Contains(Vec<u8>),
    Matches(usize),
    IsNan(bool),
}

pub(super) enum Item {
    One(Literal),
    /// The last value is true if the range includes its end.
    Range(Option<Literal>, Option<Literal>, bool),
}

impl Condition {
    pub(super) fn new(script: &mut Script<'_>, depth: usize) -> Condition {
        let op = script.u8();
        let feature = usize::from(op / 8) % ALL;
        let inner = |script: &mut Script<'_>| {
            (0..1 + script.u8() % 3).map(|_| Condition::new(script, depth + 1)).collect::<Vec<_>>()
        };
        match op % 8 {
            0 if depth < 5 => Condition::All(inner(script)),
            1 if depth < 5 => Condition::Any(inner(script)),
            2 if depth < 20 => Condition::Not(Box::new(Condition::new(script, depth + 1))),
            3 => {
                let (quantifier, quantity) = (Quantifier::Only, "value");
                let test = if script.u8().is_multiple_of(2) { Test::Present } else { Test::Absent };
                Condition::Feature { feature, quantifier, quantity, test }
            }
            4 if feature == 0 => Condition::Split(u64::from(script.u8() % 5), script.u64() % 3),
            4 if feature == 1 => Condition::Record(Test::comparison(INTS_ONLY, script)),
            _ => {
                let pick = script.u8();
                let list = (5..8).contains(&feature) || feature >= NAMES.len();
                let quantifier = match pick % 4 {
                    // A list is mostly tested with a quantifier.
                    0 if list => Quantifier::Only,
                    0 | 1 => Quantifier::Any,
                    2 => Quantifier::All,
                    _ if list => Quantifier::Any,
                    _ => Quantifier::Only,
                };
                let quantity = match (alike(feature), pick / 4 % 8) {
                    (_, 0) => "len",
                    (2 | 7 | 8, 1) => "bytes",
                    (2 | 7 | 8, 2) | (8, 3) => "width",
                    (8, 4) => "height",
                    (8, 5) => "format",
                    _ => "value",
                };
                let quantifier = if quantity == "len" { Quantifier::Only } else { quantifier };
                let test = match quantity {
                    _ if script.u8() % 6 == 1 => Test::with(quantity, script),
                    "value" => Test::new(feature, script),
                    "format" => {
                        let format = FORMATS[usize::from(script.u8()) % FORMATS.len()];
                        Test::Compare(["==", "!="][usize::from(pick / 128)], Literal::Bytes(format.into()))
                    }
                    _ => Test::comparison(INTS_ONLY, script),
                };
                Condition::Feature { feature, quantifier, quantity, test }
            }
        }
    }

    /// Appends the text. The script selects quotes and spaces.
    pub(super) fn write(&self, text: &mut String, script: &mut Script<'_>) {
        if script.u8() % 4 == 1 {
            text.push_str(" \t\n");
        }
        match self {
            Condition::All(all) => join(all, "and", text, script),
            Condition::Any(any) => join(any, "or", text, script),
            Condition::Not(one) => {
                text.push_str("not (");
                one.write(text, script);
                text.push(')');
            }
            Condition::Feature { feature, test: test @ (Test::Present | Test::Absent), .. } => {
                text.push_str(if matches!(test, Test::Present) { "present(" } else { "absent (" });
                write_name(*feature, text, script);
                text.push(')');
            }
            Condition::Feature { feature, quantifier, quantity, test } => {
                let quantifier = match quantifier {
                    Quantifier::Only => "",
                    Quantifier::Any => "any(",
                    Quantifier::All => "all(",
                };
                let quantity = if *quantity == "value" { String::new() } else { format!("{quantity} (") };
                text.push_str(quantifier);
                text.push_str(&quantity);
                write_name(*feature, text, script);
                for opened in [quantifier, &quantity] {
                    text.push_str(if opened.is_empty() { "" } else { ")" });
                }
                test.write(text, script);
            }
            Condition::Record(test) => {
                text.push_str("record ");
                test.write(text, script);
            }
            Condition::Split(quarters, 0) => text.push_str(&format!("split({})", *quarters as f64 / 4.0)),
            Condition::Split(quarters, seed) => {
                text.push_str(&format!("split( {:e} ,seed = {seed})", *quarters as f64 / 4.0));
            }
        }
    }

    pub(super) fn features(&self, all: &mut BTreeSet<&str>) {
        match self {
            Condition::All(inner) | Condition::Any(inner) => inner.iter().for_each(|one| one.features(all)),
            Condition::Not(inner) => inner.features(all),
            Condition::Feature { feature, test, .. } => {
                let other = if let Test::With(_, other, _) = test { Some(other) } else { None };
                all.extend([feature].into_iter().chain(other).filter_map(|feature| NAMES.get(*feature)));
            }
            Condition::Record(_) | Condition::Split(..) => {}
        }
    }

    /// Returns true if a record meets the condition. `None` if its values do not fit.
    pub(super) fn outcome(&self, row: &Row, number: i64) -> Option<bool> {
        let decided = |inner: &[Condition], decisive: bool| {
            let outcomes: Vec<_> = inner.iter().map(|one| one.outcome(row, number)).collect();
            if outcomes.contains(&Some(decisive)) {
                Some(decisive)
            } else {
                (!outcomes.contains(&None)).then_some(!decisive)
            }
        };
        match self {
            Condition::All(all) => decided(all, false),
            Condition::Any(any) => decided(any, true),
            Condition::Not(one) => one.outcome(row, number).map(|one| !one),
            leaf => leaf.fits(row).then(|| leaf.holds(row, number)),
        }
    }

    /// Returns true if the values of a record fit all literals, and no list is compared as a value.
    fn fits(&self, row: &Row) -> bool {
        match self {
            Condition::All(inner) | Condition::Any(inner) => inner.iter().all(|one| one.fits(row)),
            Condition::Not(inner) => inner.fits(row),
            Condition::Feature { feature, quantifier, quantity, test: Test::With(_, other, right) } => {
                let (values, others) = (&row.values[*feature], &row.values[*other]);
                let is_string = |value: &Literal| value.bytes().is_some();
                let strings: Vec<bool> = match *quantity {
                    "len" => vec![false],
                    _ if values.is_empty() => return true,
                    _ if *quantifier == Quantifier::Only && values.len() > 1 => return false,
                    "value" => values.iter().map(is_string).collect(),
                    _ if !values.iter().all(is_string) => return false,
                    quantity => vec![quantity == "format"],
                };
                match (*right, others.as_slice()) {
                    ("len", _) => !strings.contains(&true),
                    (_, []) => true,
                    (right, [value]) if right != "value" && !is_string(value) => false,
                    (right, [value]) => property(value, right)
                        .is_none_or(|value| strings.iter().all(|string| *string == is_string(&value))),
                    _ => false,
                }
            }
            Condition::Feature { quantity: "len", .. }
            | Condition::Feature { test: Test::Present | Test::Absent, .. }
            | Condition::Record(_)
            | Condition::Split(..) => true,
            Condition::Feature { feature, quantifier, quantity, test } => {
                let values = &row.values[*feature];
                (*quantifier != Quantifier::Only || values.len() < 2)
                    && values.iter().all(|value| {
                        if *quantity == "value" {
                            test.fits(value)
                        } else {
                            matches!(value, Literal::Bytes(_))
                        }
                    })
            }
        }
    }

    fn holds(&self, row: &Row, number: i64) -> bool {
        match self {
            Condition::All(all) => all.iter().all(|one| one.holds(row, number)),
            Condition::Any(any) => any.iter().any(|one| one.holds(row, number)),
            Condition::Not(one) => !one.holds(row, number),
            Condition::Record(test) => test.meets(&Literal::Int(number)),
            Condition::Split(4, _) => true,
            Condition::Split(quarters, seed) => Split::hash(&row.payload, *seed) >> 62 < *quarters,
            Condition::Feature { feature, quantifier, quantity, test } => {
                let values = &row.values[*feature];
                let tested = |value: &Literal| match test {
                    Test::With(op, other, right) => {
                        let others = &row.values[*other];
                        let other = match *right {
                            "len" => Some(Literal::Int(row.count(*other) as i64)),
                            right => others.first().and_then(|value| property(value, right)),
                        };
                        other.is_some_and(|other| holds(exact(value, &other), op))
                    }
                    test => test.meets(value),
                };
                let meets = |value: &Literal| property(value, quantity).is_some_and(|value| tested(&value));
                match (test, *quantity, quantifier) {
                    (Test::Present, ..) => row.count(*feature) > 0,
                    (Test::Absent, ..) => row.count(*feature) == 0,
                    (_, "len", _) => tested(&Literal::Int(row.count(*feature) as i64)),
                    (.., Quantifier::All) => !values.is_empty() && values.iter().all(meets),
                    _ => values.iter().any(meets),
                }
            }
        }
    }
}

fn property(value: &Literal, quantity: &str) -> Option<Literal> {
    if quantity == "value" {
        return Some(value.clone());
    }
    let bytes = value.bytes()?;
    let image = || IMAGES.iter().find(|(image, _)| *image == bytes)?.1;
    Some(match quantity {
        "bytes" => Literal::Int(bytes.len() as i64),
        "width" => Literal::Int(image()?.0),
        "height" => Literal::Int(image()?.1),
        _ => Literal::Bytes(image()?.2.into()),
    })
}

impl Test {
    fn new(feature: usize, script: &mut Script<'_>) -> Test {
        match (alike(feature), script.u8() % 4) {
            (1 | 6, 0) => Test::IsNan(script.u8().is_multiple_of(2)),
            (2 | 7 | 8, 0) => Test::Contains(STRINGS[usize::from(script.u8()) % STRINGS.len()].to_vec()),
            (2 | 7 | 8, 1) => Test::Matches(usize::from(script.u8()) % PATTERNS.len()),
            _ => Test::comparison(feature, script),
        }
    }

    /// Returns a comparison with another feature. A name that needs quotes is only in a function.
    fn with(quantity: &str, script: &mut Script<'_>) -> Test {
        let op = ["==", "!=", "<", "<=", ">", ">="][usize::from(script.u8() % 6)];
        let (other, pick) = (usize::from(script.u8()) % ALL, script.u8());
        let right = match (quantity, pick % 8) {
            ("format", 0..3) => "format",
            ("len" | "bytes" | "width" | "height" | "value", 0) => "len",
            ("len" | "bytes" | "width" | "height" | "value", 1) => "bytes",
            ("len" | "bytes" | "width" | "height" | "value", 2) => "width",
            ("len" | "bytes" | "width" | "height" | "value", 3) => "height",
            ("value", 4) => "format",
            _ if matches!(other, 3 | 4) => return Test::With(op, 8, "value"),
            _ => "value",
        };
        Test::With(op, other, right)
    }

    fn comparison(feature: usize, script: &mut Script<'_>) -> Test {
        let pick = script.u8();
        if pick.is_multiple_of(3) {
            let items = 1 + script.u8() % 4;
            return Test::In((0..items).map(|_| Item::new(feature, script)).collect());
        }
        let op = ["==", "!=", "<", "<=", ">", ">="][usize::from(script.u8() % 6)];
        Test::Compare(op, literal(feature, script))
    }

    fn write(&self, text: &mut String, script: &mut Script<'_>) {
        match self {
            Test::Present | Test::Absent => {}
            Test::Compare(op, value) => {
                text.push_str(op);
                write_value(value, text, script);
            }
            Test::With(op, other, quantity) => {
                text.push_str(op);
                if *quantity == "value" && *other < NAMES.len() {
                    text.push_str(NAMES[*other]);
                } else if *quantity == "value" {
                    write_name(*other, text, script);
                } else {
                    text.push_str(&format!(" {quantity} ( "));
                    write_name(*other, text, script);
                    text.push(')');
                }
            }
            Test::In(items) => {
                text.push_str(" in ");
                for (k, item) in items.iter().enumerate() {
                    text.push_str(if k > 0 { ", " } else { "" });
                    item.write(text, script);
                }
            }
            Test::Contains(bytes) => {
                text.push_str(" contains ");
                write_bytes(bytes, text, script);
            }
            Test::Matches(pattern) => text.push_str(&format!(" matches \"{}\"", PATTERNS[*pattern].0)),
            Test::IsNan(not) => text.push_str(if *not { " is  not nan" } else { " is nan" }),
        }
    }

    fn fits(&self, value: &Literal) -> bool {
        let fit = |literal: &Literal| match value {
            Literal::Float(_) => !matches!(literal, Literal::Bytes(_)),
            Literal::Bytes(_) => matches!(literal, Literal::Bytes(_)),
            Literal::Int(_) => matches!(literal, Literal::Int(_)),
        };
        match self {
            Test::Present | Test::Absent => true,
            Test::Compare(_, literal) => fit(literal),
            Test::In(items) => items.iter().all(|item| match item {
                Item::One(value) => fit(value),
                Item::Range(from, to, _) => from.iter().chain(to).all(fit),
            }),
            Test::With(..) => true,
            Test::Contains(_) | Test::Matches(_) => matches!(value, Literal::Bytes(_)),
            Test::IsNan(_) => matches!(value, Literal::Float(_)),
        }
    }

    fn meets(&self, value: &Literal) -> bool {
        match (self, value) {
            (Test::Compare(op, literal), _) => compare(value, op, literal),
            (Test::In(items), _) => items.iter().any(|item| match item {
                Item::One(literal) => compare(value, "==", literal),
                Item::Range(from, to, ends) => {
                    from.as_ref().is_none_or(|from| compare(value, ">=", from))
                        && to.as_ref().is_none_or(|to| compare(value, if *ends { "<=" } else { "<" }, to))
                }
            }),
            (Test::Contains(part), Literal::Bytes(value)) => {
                part.is_empty() || value.windows(part.len()).any(|window| window == part)
            }
            (Test::Matches(pattern), Literal::Bytes(value)) => PATTERNS[*pattern].1(value),
            (Test::IsNan(not), Literal::Float(value)) => value.is_nan() != *not,
            _ => false,
        }
    }
}

impl Item {
    fn new(feature: usize, script: &mut Script<'_>) -> Item {
        let op = script.u8();
        if op.is_multiple_of(2) {
            return Item::One(literal(feature, script));
        }
        let from = (op & 2 == 0).then(|| literal(feature, script));
        let to = (op & 4 == 0 || from.is_none()).then(|| literal(feature, script));
        let ends = op & 8 != 0 && to.is_some();
        Item::Range(from, to, ends)
    }

    fn write(&self, text: &mut String, script: &mut Script<'_>) {
        match self {
            Item::One(value) => write_value(value, text, script),
            Item::Range(from, to, ends) => {
                if let Some(from) = from {
                    write_value(from, text, script);
                }
                text.push_str(if *ends { "..=" } else { ".." });
                if let Some(to) = to {
                    write_value(to, text, script);
                }
            }
        }
    }
}

fn join(inner: &[Condition], word: &str, text: &mut String, script: &mut Script<'_>) {
    for (k, one) in inner.iter().enumerate() {
        if k > 0 {
            text.push_str(&format!(" {word} "));
        }
        text.push('(');
        one.write(text, script);
        text.push(')');
    }
}

/// Returns a literal that mostly fits the feature.
fn literal(feature: usize, script: &mut Script<'_>) -> Literal {
    let pick = usize::from(script.u8());
    // Some features and quantities are only compared with numbers that fit.
    let kind = if pick < 250 || feature == INTS_ONLY { feature } else { pick % 3 };
    match (NAMES[alike(kind)], pick % 2) {
        ("f" | "lf", 0) | ("i" | "a b" | "in" | "li", _) => Literal::Int(INTS[pick / 2 % INTS.len()]),
        ("f" | "lf", _) => Literal::Float(FLOATS[pick / 2 % FLOATS.len()]),
        _ => Literal::Bytes(STRINGS[pick / 2 % STRINGS.len()].to_vec()),
    }
}

fn compare(value: &Literal, op: &str, literal: &Literal) -> bool {
    holds(ordering(value, literal), op)
}

fn ordering(value: &Literal, literal: &Literal) -> Option<Ordering> {
    match (value, literal) {
        (Literal::Int(a), Literal::Int(b)) => Some(a.cmp(b)),
        (Literal::Float(a), Literal::Float(b)) => a.partial_cmp(b),
        (Literal::Float(a), Literal::Int(b)) => a.partial_cmp(&(*b as f32)),
        (Literal::Bytes(a), Literal::Bytes(b)) => Some(a.cmp(b)),
        _ => None,
    }
}

/// Compares the values of two features. An integer is below a float if it is below the next integer that the
/// float is not above.
fn exact(a: &Literal, b: &Literal) -> Option<Ordering> {
    match (a, b) {
        (Literal::Int(a), Literal::Float(b)) => match i128::from(*a) {
            _ if b.is_nan() => None,
            a if a < b.ceil() as i128 => Some(Ordering::Less),
            a if a > b.floor() as i128 => Some(Ordering::Greater),
            _ => Some(Ordering::Equal),
        },
        (Literal::Float(_), Literal::Int(_)) => exact(b, a).map(Ordering::reverse),
        _ => ordering(a, b),
    }
}

fn holds(found: Option<Ordering>, op: &str) -> bool {
    match op {
        "==" => found == Some(Ordering::Equal),
        "!=" => found != Some(Ordering::Equal),
        "<" => found == Some(Ordering::Less),
        "<=" => matches!(found, Some(Ordering::Less | Ordering::Equal)),
        ">" => found == Some(Ordering::Greater),
        _ => matches!(found, Some(Ordering::Greater | Ordering::Equal)),
    }
}

fn write_name(feature: usize, text: &mut String, script: &mut Script<'_>) {
    let list = feature.checked_sub(NAMES.len());
    let name = list.map_or_else(|| NAMES[feature], |list| LISTS[list]);
    text.push_str(if list.is_some() { "steps (" } else { "" });
    if matches!(feature, 3 | 4) || script.u8() % 3 == 1 {
        write_bytes(name.as_bytes(), text, script);
    } else {
        text.push_str(name);
    }
    text.push_str(if list.is_some() { ")" } else { "" });
}

fn write_value(value: &Literal, text: &mut String, script: &mut Script<'_>) {
    match value {
        Literal::Int(v) => text.push_str(&v.to_string()),
        Literal::Float(v) if v.is_nan() => text.push_str("+nan"),
        Literal::Float(v) if v.is_infinite() => {
            text.push_str(if *v > 0.0 { "+Infinity" } else { "-Infinity" })
        }
        Literal::Float(v) => text.push_str(&format!("{v:?}")),
        Literal::Bytes(bytes) => write_bytes(bytes, text, script),
    }
}

/// Appends a string in quotes, with bytes as characters or as escapes.
fn write_bytes(bytes: &[u8], text: &mut String, script: &mut Script<'_>) {
    let (quote, escapes) = (if script.u8().is_multiple_of(2) { '"' } else { '\'' }, script.u8());
    text.push(quote);
    for &byte in bytes {
        match byte {
            b'\n' => text.push_str("\\n"),
            b'\\' | b'"' | b'\'' => text.extend(['\\', byte.into()]),
            _ if byte.is_ascii_alphanumeric() && escapes % 3 > 0 => text.push(byte.into()),
            _ => text.push_str(&format!("\\x{byte:02x}")),
        }
    }
    text.push(quote);
}
