//! A parsed condition.

use super::condition::{FeatureTest, Node, Operand, Place, Quantity};
use crate::error::{Error, FilterError, Result};
use crate::example::DType;
use std::fmt;

/// A condition on records, for [`Dataset::select`](crate::Dataset::select) and
/// [`RecordFilter`](super::RecordFilter). It is parsed from text:
///
/// | | |
/// | --- | --- |
/// | `label == 3`, `!=`, `<`, `<=`, `>`, `>=` | comparison of a value with a number or a string |
/// | `label in 1, 2, 5..9` | value in a list; a range excludes its end, `5..=9` includes it, `5..` and `..9` are open |
/// | `width > height`, `len(a) == len(b)` | comparison with the value of another feature |
/// | `name == "cat"`, `name == 'cat'` | strings, with `\n`, `\t`, `\\`, `\"`, `\'` and `\x41`; they compare as bytes |
/// | `name contains "at"` | a string that is part of the value |
/// | `name matches "^c.t$"` | a regular expression that matches a part of the value, of the syntax of the crate `regex`, on bytes. Backslashes in it need no escape |
/// | `x is nan`, `x is not nan` | test of a float |
/// | `any(x) > 3`, `all(x) in 0..10` | comparisons and tests of the values of a list: one of them meets the test, or each of at least one |
/// | `len(x) > 20` | number of values, 0 without the feature |
/// | `bytes(x) > 1000` | length of a byte string |
/// | `width(x)`, `height(x)`, `format(x) == "jpeg"` | dimensions and format of an encoded image, from its header ([`image_format`](super::image_format)) |
/// | `any(steps(x)) > 3`, `len(steps(x)) > 20` | tests of the values in the steps of a feature list, and of its number of steps |
/// | `present(label)`, `absent(label)` | test for a value; a feature that no record has is an error here too |
/// | `record in 10..20`, `record < 100` | the record number |
/// | `split(0.1, seed=7)` | a share of the records, drawn by the hash of the payload ([`Split`](crate::order::Split)); without a seed it is 0 |
/// | `not`, `and`, `or`, `( )` | in order of precedence, `not` binds tightest |
///
/// A feature name needs no quotes if it begins with a letter or `_` and continues with those, digits and
/// `/ . - :`. Other names, and the words `and`, `or`, `not`, `in` and `record`, must be quoted, and stand on
/// the left of a comparison. In a SequenceExample a name is a feature of the context, and `steps(NAME)` a
/// feature list, with the values of all steps; `len`, `present` and `absent` count its steps.
///
/// A record without a value fails every comparison, including `!=` and `is not nan`, and therefore meets the
/// `not` of a comparison. Only `len` is different. Bytes that are no image have no width, height and format.
/// A record with several values is an error where one is compared; `any`, `all` and `len` accept lists.
/// Functions can be combined: `any(bytes(x)) > 1000`. A value whose kind differs from the comparison's is an
/// error.
///
/// Floats compare as `f32`. Numbers are rounded to `f32` first, so `x == 0.1` finds 0.1. The values of two
/// features compare exactly.
#[derive(Clone)]
pub struct Filter {
    pub(super) text: Box<str>,
    /// The outermost node.
    pub(crate) root: Node,
    /// All tests of features.
    pub(super) tests: Vec<FeatureTest>,
    /// Names of the features, sorted.
    pub(super) features: Vec<Box<str>>,
    /// Names of the feature lists, sorted, as `steps(NAME)`.
    pub(super) lists: Vec<Box<str>>,
}

impl Filter {
    /// Returns the names of the features in the condition, sorted and without duplicates. Feature lists are
    /// not among them.
    pub fn features(&self) -> Vec<&str> {
        self.features.iter().map(|name| &**name).collect()
    }

    /// Returns the features that [`Dataset::select`](crate::Dataset::select) reads from columns: those with a
    /// test of one value that is not a search in strings. Sorted and without duplicates.
    pub fn column_features(&self) -> Vec<&str> {
        let mut wanted: Vec<usize> =
            self.tests.iter().filter(|test| test.wants_column()).map(FeatureTest::feature).collect();
        wanted.sort_unstable();
        wanted.dedup();
        wanted.into_iter().map(|k| self.name(k)).collect()
    }

    /// Returns true if the condition depends on record numbers.
    pub fn uses_numbers(&self) -> bool {
        self.root.any(&|node| matches!(node, Node::Number(_)))
    }

    /// Returns the test of a [`Node::Feature`].
    pub(crate) fn test(&self, k: usize) -> Option<&FeatureTest> {
        self.tests.get(k)
    }

    /// Returns the name of a feature by its number, and `steps(NAME)` of a feature list.
    pub(crate) fn name(&self, feature: usize) -> &str {
        self.features.iter().chain(&self.lists).nth(feature).map_or("", |name| &**name)
    }

    /// Returns the key of a feature or of a feature list by its number.
    pub(super) fn key(&self, feature: usize) -> &str {
        let name = self.name(feature);
        if feature < self.features.len() { name } else { list_key(name) }
    }

    /// Returns the feature lists in the condition as `steps(NAME)`, sorted and without duplicates.
    pub(crate) fn lists(&self) -> impl Iterator<Item = &str> + Clone {
        self.lists.iter().map(|name| &**name)
    }

    /// Checks that values of this kind can be tested as the condition says.
    pub(crate) fn check(&self, test: &FeatureTest, kind: DType) -> Result<()> {
        match test.operand.quantity.kind() {
            Some(_) => self.check_function(&test.operand, kind),
            None => test
                .test
                .check(kind)
                .map_err(|e| self.mismatch(e.at, (test.feature(), kind), e.expected, &e.found)),
        }
    }

    /// Checks that values of this kind have the property that an operand is.
    pub(super) fn check_function(&self, operand: &Operand, kind: DType) -> Result<()> {
        if operand.quantity == Quantity::Value || kind == DType::Bytes {
            return Ok(());
        }
        let found = format!("{}(..)", operand.quantity.name());
        Err(self.mismatch(operand.at, (operand.feature, kind), "values of bytes", &found))
    }

    /// Returns the error of a feature of a kind that does not fit the condition.
    #[cold]
    fn mismatch(&self, at: Place, feature: (usize, DType), expected: &str, found: &str) -> Error {
        let name = self.name(feature.0).escape_debug();
        let kind = feature.1.list_name();
        self.error(
            at.0,
            format!("feature \"{name}\" has values of {kind}: expected {expected}, found {found}"),
        )
    }

    /// Returns the error of a number that is compared with a string.
    #[cold]
    pub(super) fn unlike(&self, one: (&Operand, DType), other: (&Operand, DType)) -> Error {
        let describe = |(operand, kind): (&Operand, DType)| {
            let what = if kind == DType::Bytes { "a string" } else { "a number" };
            format!("{} is {what}", operand.text(self.name(operand.feature)))
        };
        self.error(other.0.at.0, format!("{}, and {}", describe(one), describe(other)))
    }

    /// Returns the error of a feature on the right of a comparison that these records lack. It is probably a
    /// string.
    #[cold]
    pub(crate) fn unknown_other(&self, feature: &str, records: &str) -> Option<Error> {
        let mut others = self.tests.iter().flat_map(|test| test.operands().skip(1));
        let operand = others.find(|operand| !operand.in_steps && self.name(operand.feature) == feature)?;
        let name = feature.escape_debug();
        let reason = format!(
            "{records} has a feature \"{name}\"; a string needs quotes: \"{name}\", and a rare feature stands on the left"
        );
        Some(self.error(operand.at.0, reason))
    }

    /// Returns the error for a record with several values where one is tested.
    #[cold]
    pub(super) fn several(&self, operand: &Operand, len: usize) -> Error {
        let name = self.name(operand.feature).escape_debug();
        let reason = format!(
            "feature \"{name}\" has {len} values: expected one; `any(..)`, `all(..)` and `len(..)` test lists"
        );
        self.error(operand.at.0, reason)
    }

    #[cold]
    pub(super) fn error(&self, offset: usize, reason: String) -> Error {
        FilterError { text: self.text.clone(), offset, reason: reason.into() }.into()
    }
}

/// Returns the name of a feature list that a condition tests.
pub(super) fn list_name(key: &str) -> String {
    format!("steps({key})")
}

/// Returns the key of a feature list from its name in a condition.
pub(crate) fn list_key(name: &str) -> &str {
    name.strip_prefix("steps(").and_then(|rest| rest.strip_suffix(')')).unwrap_or(name)
}

impl fmt::Debug for Filter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Filter { text: _, root, tests, features, lists } = self;
        f.debug_struct("Filter")
            .field("root", root)
            .field("tests", tests)
            .field("features", features)
            .field("lists", lists)
            .finish()
    }
}

/// Compares conditions. Spaces, quotes and parentheses that change nothing do not count.
impl PartialEq for Filter {
    fn eq(&self, other: &Filter) -> bool {
        let Filter { text: _, root, tests, features, lists } = self;
        *root == other.root && *tests == other.tests && *features == other.features && *lists == other.lists
    }
}

/// Writes the text that was parsed.
impl fmt::Display for Filter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Node {
    /// Returns true if `f` returns true for a node of the tree.
    fn any(&self, f: &impl Fn(&Node) -> bool) -> bool {
        f(self)
            || match self {
                Node::And(nodes) | Node::Or(nodes) => nodes.iter().any(|node| node.any(f)),
                Node::Not(node) => node.any(f),
                _ => false,
            }
    }
}
