//! Filters.

use super::script::Script;
use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::sync::OnceLock;
use tfseek::column::{ColumnOptions, DatasetColumn};
use tfseek::frame::put_record;
use tfseek::{Dataset, ErrorKind, ExampleBuilder, Filter, Mapped};

/// Tests filters. After an even first byte the rest is the text. Otherwise the rest describes a condition, its text, and edits.
///
/// A condition selects the records that a naive evaluation selects. A text that is accepted selects the complement after `not`, and the
/// same records in parentheses.
pub fn filter(data: &[u8]) {
    let Some((&mode, rest)) = data.split_first() else { return };
    if mode & 1 == 0 {
        return check_text(rest);
    }
    let mut script = Script(rest);
    let condition = Condition::new(&mut script, 0);
    let mut text = String::new();
    condition.write(&mut text, &mut script);
    let parsed: Filter = text.parse().unwrap_or_else(|e| panic!("{text}: {e}"));
    let mut features = BTreeSet::new();
    condition.features(&mut features);
    assert_eq!(parsed.features(), features.into_iter().collect::<Vec<_>>());
    let records = records();
    let wanted = condition.fits().then(|| records.rows.iter().map(|row| condition.holds(row)).collect());
    assert_eq!(records.select(&parsed), wanted, "{text}");
    let mut text = text.into_bytes();
    script.edit(&mut text);
    check_text(&text);
}

/// Checks any text: an error has an offset in the text, and a filter has its complement.
fn check_text(text: &[u8]) {
    let Ok(text) = std::str::from_utf8(text) else { return };
    let filter: Filter = match text.parse() {
        Ok(filter) => filter,
        Err(e) => {
            let ErrorKind::Filter(message) = tfseek::Error::kind(&e) else { panic!("{e:?}") };
            let offset = message.strip_prefix("at byte ").and_then(|rest| rest.split_once(':'));
            let offset: usize = offset.unwrap().0.parse().unwrap();
            return assert!(text.is_char_boundary(offset), "{message}");
        }
    };
    let features = filter.features();
    assert!(features.is_sorted_by(|a, b| a < b));
    let records = records();
    // In parentheses a filter is nested one level deeper, which may be too deep.
    let (Ok(same), Ok(not)) =
        (format!("({text})").parse::<Filter>(), format!("not({text})").parse::<Filter>())
    else {
        return;
    };
    // Filters with NaN are not equal.
    assert_eq!(format!("{same:?}"), format!("{filter:?}"));
    if features.iter().any(|feature| !NAMES.contains(feature)) {
        assert!(records.dataset.select_from(&filter, &records.columns).is_err());
        return;
    }
    let selected = records.select(&filter);
    let inverted = selected.clone().map(|all| all.into_iter().map(|one| !one).collect());
    assert_eq!(records.select(&not), inverted, "{text}");
    let twice: Filter = format!("({text}) and ({text}) or ({text})").parse().unwrap();
    assert_eq!(records.select(&twice), selected, "{text}");
}

/// The features of the records. The last two need quotes.
const NAMES: [&str; 5] = ["i", "f", "s", "a b", "in"];

#[derive(Clone, Debug, PartialEq)]
enum Literal {
    Int(i64),
    Float(f32),
    Bytes(Vec<u8>),
}

/// The value of each feature.
type Row = [Option<Literal>; 5];

const INTS: [i64; 8] = [0, 1, 2, -1, 9, 10, i64::MAX, i64::MIN];
const FLOATS: [f32; 9] = [0.0, -0.0, 0.1, 1.0, -2.5, f32::INFINITY, f32::NEG_INFINITY, f32::NAN, 1e30];
const STRINGS: [&[u8]; 7] = [b"", b"cat", b"dog", b"it's", b"\"\\\n", b"\xff", "\u{e9}".as_bytes()];

/// SampleRecords with values of all kinds, and their columns.
struct SampleRecords {
    dataset: Dataset,
    columns: Vec<DatasetColumn>,
    rows: Vec<Row>,
}

fn records() -> &'static SampleRecords {
    static RECORDS: OnceLock<SampleRecords> = OnceLock::new();
    RECORDS.get_or_init(|| {
        let rows: Vec<Row> = (0..100)
            .map(|i| {
                let (int, float) = (Literal::Int(INTS[i % 8]), Literal::Float(FLOATS[i % 9]));
                let bytes = Literal::Bytes(STRINGS[i % 7].to_vec());
                let some = |k: usize, value: Literal| (i % k > 0).then_some(value);
                [
                    some(5, int.clone()),
                    some(7, float),
                    some(4, bytes),
                    some(90, int),
                    Some(Literal::Int(i as i64)),
                ]
            })
            .collect();
        let mut file = Vec::new();
        for row in &rows {
            let mut builder = ExampleBuilder::new();
            for (name, value) in NAMES.iter().zip(row) {
                builder = match value {
                    None => builder,
                    Some(Literal::Int(v)) => builder.int64(*name, [*v]),
                    Some(Literal::Float(v)) => builder.float(*name, [*v]),
                    Some(Literal::Bytes(v)) => builder.bytes(*name, [v]),
                };
            }
            put_record(&mut file, &builder.encode().unwrap()).unwrap();
        }
        let dataset = Mapped::from_bytes(file).unwrap().dataset().clone();
        let columns = dataset.columns(&NAMES, &ColumnOptions::new()).unwrap();
        SampleRecords { dataset, columns, rows }
    })
}

impl SampleRecords {
    /// Returns the selected records. `None` if the filter compares a value with one of another kind.
    fn select(&self, filter: &Filter) -> Option<Vec<bool>> {
        match self.dataset.select_from(filter, &self.columns) {
            Ok(found) => Some((0..self.rows.len() as u64).map(|i| found.contains(i)).collect()),
            Err(e) => {
                assert!(matches!(e.kind(), ErrorKind::Filter(_)), "{e:?}");
                None
            }
        }
    }
}

enum Condition {
    All(Vec<Condition>),
    Any(Vec<Condition>),
    Not(Box<Condition>),
    Present(usize),
    Absent(usize),
    Compare(usize, &'static str, Literal),
    In(usize, Vec<Item>),
}

enum Item {
    One(Literal),
    /// The last value is true if the range includes its end.
    Range(Option<Literal>, Option<Literal>, bool),
}

impl Condition {
    fn new(script: &mut Script<'_>, depth: usize) -> Condition {
        let op = script.u8();
        let feature = usize::from(op / 16) % NAMES.len();
        let inner = |script: &mut Script<'_>| {
            (0..1 + script.u8() % 3).map(|_| Condition::new(script, depth + 1)).collect::<Vec<_>>()
        };
        match op % 8 {
            0 if depth < 5 => Condition::All(inner(script)),
            1 if depth < 5 => Condition::Any(inner(script)),
            2 if depth < 20 => Condition::Not(Box::new(Condition::new(script, depth + 1))),
            3 => Condition::Present(feature),
            4 => Condition::Absent(feature),
            5 => {
                let items = 1 + script.u8() % 4;
                Condition::In(feature, (0..items).map(|_| Item::new(feature, script)).collect())
            }
            _ => {
                let op = ["==", "!=", "<", "<=", ">", ">="][usize::from(script.u8() % 6)];
                Condition::Compare(feature, op, literal(feature, script))
            }
        }
    }

    /// Appends the text. The script selects quotes and spaces.
    fn write(&self, text: &mut String, script: &mut Script<'_>) {
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
            Condition::Present(feature) => {
                text.push_str("present(");
                write_name(*feature, text, script);
                text.push(')');
            }
            Condition::Absent(feature) => {
                text.push_str("absent (");
                write_name(*feature, text, script);
                text.push(')');
            }
            Condition::Compare(feature, op, value) => {
                write_name(*feature, text, script);
                text.push_str(op);
                write_value(value, text, script);
            }
            Condition::In(feature, items) => {
                write_name(*feature, text, script);
                text.push_str(" in ");
                for (k, item) in items.iter().enumerate() {
                    text.push_str(if k > 0 { ", " } else { "" });
                    item.write(text, script);
                }
            }
        }
    }

    fn features(&self, all: &mut BTreeSet<&str>) {
        match self {
            Condition::All(inner) | Condition::Any(inner) => inner.iter().for_each(|one| one.features(all)),
            Condition::Not(inner) => inner.features(all),
            Condition::Present(feature)
            | Condition::Absent(feature)
            | Condition::Compare(feature, ..)
            | Condition::In(feature, _) => drop(all.insert(NAMES[*feature])),
        }
    }

    /// Returns true if all literals can be compared with the values of their features.
    fn fits(&self) -> bool {
        let fit = |feature: usize, value: &Literal| match NAMES[feature] {
            "f" => !matches!(value, Literal::Bytes(_)),
            "s" => matches!(value, Literal::Bytes(_)),
            _ => matches!(value, Literal::Int(_)),
        };
        match self {
            Condition::All(inner) | Condition::Any(inner) => inner.iter().all(Condition::fits),
            Condition::Not(inner) => inner.fits(),
            Condition::Present(_) | Condition::Absent(_) => true,
            Condition::Compare(feature, _, value) => fit(*feature, value),
            Condition::In(feature, items) => items.iter().all(|item| match item {
                Item::One(value) => fit(*feature, value),
                Item::Range(from, to, _) => from.iter().chain(to).all(|value| fit(*feature, value)),
            }),
        }
    }

    fn holds(&self, row: &Row) -> bool {
        match self {
            Condition::All(all) => all.iter().all(|one| one.holds(row)),
            Condition::Any(any) => any.iter().any(|one| one.holds(row)),
            Condition::Not(one) => !one.holds(row),
            Condition::Present(feature) => row[*feature].is_some(),
            Condition::Absent(feature) => row[*feature].is_none(),
            Condition::Compare(feature, op, literal) => {
                row[*feature].as_ref().is_some_and(|value| compare(value, op, literal))
            }
            Condition::In(feature, items) => row[*feature].as_ref().is_some_and(|value| {
                items.iter().any(|item| match item {
                    Item::One(literal) => compare(value, "==", literal),
                    Item::Range(from, to, ends) => {
                        from.as_ref().is_none_or(|from| compare(value, ">=", from))
                            && to.as_ref().is_none_or(|to| compare(value, if *ends { "<=" } else { "<" }, to))
                    }
                })
            }),
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
    let kind = if pick < 250 { feature } else { pick % 3 };
    match (NAMES[kind], pick % 2) {
        ("f", 0) | ("i" | "a b" | "in", _) => Literal::Int(INTS[pick / 2 % INTS.len()]),
        ("f", _) => Literal::Float(FLOATS[pick / 2 % FLOATS.len()]),
        _ => Literal::Bytes(STRINGS[pick / 2 % STRINGS.len()].to_vec()),
    }
}

fn compare(value: &Literal, op: &str, literal: &Literal) -> bool {
    let found = match (value, literal) {
        (Literal::Int(a), Literal::Int(b)) => Some(a.cmp(b)),
        (Literal::Float(a), Literal::Float(b)) => a.partial_cmp(b),
        (Literal::Float(a), Literal::Int(b)) => a.partial_cmp(&(*b as f32)),
        (Literal::Bytes(a), Literal::Bytes(b)) => Some(a.cmp(b)),
        _ => None,
    };
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
    let name = NAMES[feature];
    if feature > 2 || script.u8() % 3 == 1 {
        write_bytes(name.as_bytes(), text, script);
    } else {
        text.push_str(name);
    }
}

fn write_value(value: &Literal, text: &mut String, script: &mut Script<'_>) {
    match value {
        Literal::Int(v) => text.push_str(&v.to_string()),
        Literal::Float(v) if v.is_nan() => text.push_str("+nan"),
        Literal::Float(v) => text.push_str(&format!("{v:?}").replace("inf", "Infinity").replacen(
            "Inf",
            if *v > 0.0 { "+Inf" } else { "Inf" },
            1,
        )),
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
