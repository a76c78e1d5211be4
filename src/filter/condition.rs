//! The parts of a condition, and what a value needs to meet them.

use super::lex::Op;
use super::value::Value;
use crate::example::DType;
use crate::order::Split;
use memchr::memmem::Finder;
use regex::bytes::Regex;
use std::cmp::Ordering;
use std::fmt;

/// A condition, or several that are joined.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Node {
    /// Conjunction. The operands are a list, not a pair, so a long chain does not become a deep tree.
    And(Vec<Node>),
    /// Disjunction, likewise a list.
    Or(Vec<Node>),
    Not(Box<Node>),
    /// A test of a feature, by its number in the list of the filter.
    Feature(usize),
    /// A test of the record number.
    Number(Test),
    Split(SplitTest),
}

/// A byte offset in the text of a filter. It serves errors only, so all offsets are equal.
#[derive(Clone, Copy, Default)]
pub(crate) struct Place(pub(crate) usize);

/// A test of one feature.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct FeatureTest {
    pub(super) operand: Operand,
    pub(super) quantifier: Quantifier,
    /// The condition on a value.
    pub(crate) test: Test,
}

/// A feature, or a function of one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Operand {
    /// Number of the feature in the list of the filter. Feature lists follow the features.
    pub(super) feature: usize,
    /// The feature is a feature list, whose steps are tested.
    pub(super) in_steps: bool,
    pub(super) at: Place,
    pub(super) quantity: Quantity,
}

/// The values of a feature that must meet a test.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Quantifier {
    /// The only value.
    Only,
    Any,
    /// At least one value, and each of them. Otherwise a record without values would meet every test.
    All,
}

/// A property of a feature or of its values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Quantity {
    /// The value itself.
    Value,
    /// Number of values.
    Len,
    /// Length of a byte string.
    Bytes,
    /// Width of an image, from its header.
    Width,
    Height,
    Format,
}

/// A condition on a value.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Test {
    Present,
    Absent,
    Compare(Op, Literal),
    /// A comparison with the value of another feature. No column decides it.
    With(Op, Operand),
    In(Vec<ListItem>),
    Contains(Needle),
    Matches(Pattern),
    IsNan {
        at: Place,
        not: bool,
    },
}

/// An element of the list after `in`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum ListItem {
    One(Literal),
    Range { from: Option<Literal>, to: Option<(Op, Literal)> },
}

/// A number or a string with which values are compared, and its offset in the text.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Literal {
    pub(super) at: Place,
    pub(super) value: LiteralValue,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum LiteralValue {
    /// A number as an integer, if it is one that fits into int64, and as a float.
    Number {
        text: Box<str>,
        int: Option<i64>,
        float: f32,
    },
    Str(Box<[u8]>),
}

/// A string that is searched for in values.
#[derive(Clone)]
pub(crate) struct Needle {
    pub(super) at: Place,
    finder: Box<Finder<'static>>,
}

/// A compiled regular expression.
#[derive(Clone)]
pub(crate) struct Pattern {
    pub(super) at: Place,
    pub(super) regex: Regex,
}

/// A share of the records, drawn by the hashes of their payloads.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct SplitTest {
    /// The share is the first part.
    splits: Split,
    pub(super) seed: u64,
}

/// A literal that does not fit the values it is compared with.
#[derive(Debug)]
pub(super) struct Mismatch {
    pub(super) at: Place,
    pub(super) expected: &'static str,
    pub(super) found: String,
}

impl FeatureTest {
    /// Returns true if a column of the feature decides the test.
    pub(crate) fn has_column(&self) -> bool {
        self.quantifier == Quantifier::Only
            && self.operand.quantity == Quantity::Value
            && !self.operand.in_steps
            && !matches!(self.test, Test::With(..))
    }

    /// Returns true if a column is built for the test. Strings that are searched may be long, so they are not
    /// collected in a column.
    pub(crate) fn wants_column(&self) -> bool {
        self.has_column() && !matches!(self.test, Test::Contains(_) | Test::Matches(_))
    }

    /// Returns the number of the feature in the list of the filter.
    pub(crate) fn feature(&self) -> usize {
        self.operand.feature
    }

    /// Returns the tested feature, and the one that it is compared with.
    pub(super) fn operands(&self) -> impl Iterator<Item = &Operand> {
        let other = match &self.test {
            Test::With(_, other) => Some(other),
            _ => None,
        };
        [&self.operand].into_iter().chain(other)
    }
}

impl Operand {
    /// Returns the text of the operand of a feature with this name, which is `steps(..)` of a feature list.
    pub(super) fn text(&self, feature: &str) -> String {
        match self.quantity {
            Quantity::Value => format!("\"{}\"", feature.escape_debug()),
            function => format!("{}({})", function.name(), feature.escape_debug()),
        }
    }
}

impl Quantity {
    /// Returns the name of the function, e.g. `len`.
    pub(super) fn name(self) -> &'static str {
        match self {
            Quantity::Value => "value",
            Quantity::Len => "len",
            Quantity::Bytes => "bytes",
            Quantity::Width => "width",
            Quantity::Height => "height",
            Quantity::Format => "format",
        }
    }

    /// Returns the kind of the quantity, if it does not depend on the feature.
    pub(super) fn kind(self) -> Option<DType> {
        match self {
            Quantity::Value => None,
            Quantity::Format => Some(DType::Bytes),
            _ => Some(DType::Int64),
        }
    }
}

impl Test {
    /// Checks that values of this kind can be compared with the literals of the condition.
    pub(super) fn check(&self, kind: DType) -> Result<(), Mismatch> {
        let refused = |at, found| Err(Mismatch { at, expected: expected(kind), found });
        match self {
            // The kind of another feature is known once its value is.
            Test::Present | Test::Absent | Test::With(..) => Ok(()),
            Test::Compare(_, literal) => literal.check(kind),
            Test::In(items) => items.iter().flat_map(ListItem::literals).try_for_each(|one| one.check(kind)),
            Test::Contains(needle) if kind != DType::Bytes => {
                refused(needle.at, quoted(needle.finder.needle()))
            }
            Test::Matches(Pattern { at, regex }) if kind != DType::Bytes => {
                refused(*at, quoted(regex.as_str().as_bytes()))
            }
            Test::IsNan { at, .. } if kind != DType::Float32 => refused(*at, "nan".into()),
            Test::Contains(_) | Test::Matches(_) | Test::IsNan { .. } => Ok(()),
        }
    }

    /// Returns true if a value meets the condition. The kind of the value must have passed
    /// [`check`](Test::check).
    pub(crate) fn meets(&self, value: Value<'_>) -> bool {
        match self {
            // The caller handles records without a value.
            Test::Present | Test::Absent => true,
            // Only a record has the other value.
            Test::With(..) => false,
            Test::Compare(op, literal) => op.holds(literal.cmp(value)),
            Test::In(items) => items.iter().any(|item| item.holds(value)),
            Test::Contains(needle) => {
                matches!(value, Value::Bytes(bytes) if needle.finder.find(bytes).is_some())
            }
            Test::Matches(pattern) => matches!(value, Value::Bytes(bytes) if pattern.regex.is_match(bytes)),
            Test::IsNan { not, .. } => matches!(value, Value::Float(value) if value.is_nan() != *not),
        }
    }
}

fn expected(kind: DType) -> &'static str {
    match kind {
        DType::Int64 => "a 64-bit integer",
        DType::Float32 => "a number",
        DType::Bytes => "a string in quotes",
    }
}

fn quoted(bytes: &[u8]) -> String {
    format!("\"{}\"", bytes.escape_ascii())
}

impl Op {
    /// Returns true if a comparison with this result meets the operator. `None` is the result of a comparison
    /// with NaN.
    pub(super) fn holds(self, found: Option<Ordering>) -> bool {
        match self {
            Op::Eq => found == Some(Ordering::Equal),
            Op::Ne => found != Some(Ordering::Equal),
            Op::Lt => found == Some(Ordering::Less),
            Op::Le => found.is_some_and(Ordering::is_le),
            Op::Gt => found == Some(Ordering::Greater),
            Op::Ge => found.is_some_and(Ordering::is_ge),
        }
    }
}

impl ListItem {
    fn literals(&self) -> impl Iterator<Item = &Literal> {
        let (first, last) = match self {
            ListItem::One(literal) => (Some(literal), None),
            ListItem::Range { from, to } => (from.as_ref(), to.as_ref().map(|(_, to)| to)),
        };
        first.into_iter().chain(last)
    }

    fn holds(&self, value: Value<'_>) -> bool {
        match self {
            ListItem::One(literal) => Op::Eq.holds(literal.cmp(value)),
            ListItem::Range { from, to } => {
                from.as_ref().is_none_or(|from| Op::Ge.holds(from.cmp(value)))
                    && to.as_ref().is_none_or(|(op, to)| op.holds(to.cmp(value)))
            }
        }
    }
}

impl Literal {
    fn check(&self, kind: DType) -> Result<(), Mismatch> {
        let fits = match kind {
            DType::Int64 => matches!(self.value, LiteralValue::Number { int: Some(_), .. }),
            DType::Float32 => matches!(self.value, LiteralValue::Number { .. }),
            DType::Bytes => matches!(self.value, LiteralValue::Str(_)),
        };
        if fits {
            return Ok(());
        }
        let found = match &self.value {
            LiteralValue::Number { text, .. } => text.to_string(),
            LiteralValue::Str(bytes) => quoted(bytes),
        };
        Err(Mismatch { at: self.at, expected: expected(kind), found })
    }

    /// Compares a value with this literal. It returns `None` for NaN and for a kind that does not match the
    /// literal.
    fn cmp(&self, value: Value<'_>) -> Option<Ordering> {
        match (value, &self.value) {
            (Value::Int(value), LiteralValue::Number { int, .. }) => Some(value.cmp(int.as_ref()?)),
            (Value::Float(value), LiteralValue::Number { float, .. }) => value.partial_cmp(float),
            (Value::Bytes(value), LiteralValue::Str(bytes)) => Some(value.cmp(bytes)),
            _ => None,
        }
    }
}

impl Needle {
    pub(super) fn new(at: Place, needle: &[u8]) -> Needle {
        Needle { at, finder: Box::new(Finder::new(needle).into_owned()) }
    }
}

impl SplitTest {
    /// Creates a test for a fraction of the records, with the seed 0. `None` if the fraction is not from 0 to
    /// 1.
    pub(super) fn new(fraction: f64) -> Option<SplitTest> {
        Some(SplitTest { splits: Split::new(&[fraction]).ok()?, seed: 0 })
    }

    pub(super) fn holds(&self, payload: &[u8]) -> bool {
        self.splits.number(Split::hash(payload, self.seed)) == Some(0)
    }
}

impl PartialEq for Place {
    fn eq(&self, _: &Place) -> bool {
        true
    }
}

impl fmt::Debug for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("_")
    }
}

impl PartialEq for Needle {
    fn eq(&self, other: &Needle) -> bool {
        self.finder.needle() == other.finder.needle()
    }
}

impl fmt::Debug for Needle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&quoted(self.finder.needle()))
    }
}

impl PartialEq for Pattern {
    fn eq(&self, other: &Pattern) -> bool {
        self.regex.as_str() == other.regex.as_str()
    }
}

impl fmt::Debug for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.regex.as_str().fmt(f)
    }
}
