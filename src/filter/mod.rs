//! The filter language: conditions on features, and their text form. This module reads no records.
//!
//! [`Dataset::select`](crate::Dataset::select) applies a [`Filter`] to columns.

#![cfg_attr(not(test), deny(clippy::indexing_slicing, clippy::string_slice))]

use crate::error::{Error, ErrorKind, Result};
use crate::example::FeatureKind;
use std::cmp::Ordering;
use std::str::FromStr;

mod lex;
pub(crate) mod value;

pub(crate) use lex::Op;
use lex::{Lexer, Token};
use value::Value;

/// A condition on the features of a record, for [`Dataset::select`](crate::Dataset::select). It is parsed from text:
///
/// | | |
/// | --- | --- |
/// | `label == 3`, `!=`, `<`, `<=`, `>`, `>=` | comparison of a value with a number or a string |
/// | `label in 1, 2, 5..9` | value in a list; a range excludes its end, `5..=9` includes it, `5..` and `..9` are open |
/// | `name == "cat"`, `name == 'cat'` | strings, with `\n`, `\t`, `\\`, `\"`, `\'` and `\x41`; they compare as bytes |
/// | `present(label)`, `absent(label)` | test for a value; a feature that no record has is an error here too |
/// | `not`, `and`, `or`, `( )` | in order of precedence, `not` binds tightest |
///
/// A feature name needs no quotes if it begins with a letter or `_` and continues with those, digits and `/ . - :`. Other names, and
/// the words `and`, `or`, `not` and `in`, must be quoted. A record without a value fails every comparison, including `!=`, and
/// therefore meets the `not` of a comparison. Floats compare as `f32`. Numbers are rounded to `f32` first, so `x == 0.1` finds 0.1.
#[derive(Clone, Debug, PartialEq)]
pub struct Filter(pub(crate) Node);

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Node {
    /// Conjunction. The operands are a list, not a pair, so a long chain does not become a deep tree.
    And(Vec<Node>),
    /// Disjunction, likewise a list.
    Or(Vec<Node>),
    Not(Box<Node>),
    Test(Box<str>, Test),
}

/// A condition on one feature.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Test {
    Present,
    Absent,
    Compare(Op, Literal),
    In(Vec<ListItem>),
}

/// An element of the list after `in`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum ListItem {
    One(Literal),
    Range { from: Option<Literal>, to: Option<(Op, Literal)> },
}

/// A number or a string with which values are compared.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Literal {
    /// A number as an integer, if it is one that fits into int64, and as a float.
    Number {
        text: Box<str>,
        int: Option<i64>,
        float: f32,
    },
    Str(Box<[u8]>),
}

impl Filter {
    fn parse(text: &str) -> Result<Filter> {
        let mut parser = FilterParser { lexer: Lexer::new(text), depth: 0 };
        let node = parser.or_chain()?;
        match parser.lexer.next()? {
            Token::End => Ok(Filter(node)),
            _ => Err(parser.lexer.expected("`and`, `or` or the end of the filter")),
        }
    }

    /// Returns the names of the features in the condition, sorted and without duplicates.
    pub fn features(&self) -> Vec<&str> {
        let mut all = Vec::new();
        self.0.features(&mut all);
        all.sort_unstable();
        all.dedup();
        all
    }
}

/// Parses the text form. The error is [`ErrorKind::Filter`], with the byte offset and the expected token.
impl FromStr for Filter {
    type Err = Error;

    fn from_str(text: &str) -> Result<Filter> {
        Filter::parse(text)
    }
}

impl Node {
    fn features<'a>(&'a self, all: &mut Vec<&'a str>) {
        match self {
            Node::And(nodes) | Node::Or(nodes) => nodes.iter().for_each(|node| node.features(all)),
            Node::Not(node) => node.features(all),
            Node::Test(feature, _) => all.push(feature),
        }
    }
}

impl Test {
    /// Checks that values of this kind can be compared with the literals of the condition.
    pub(crate) fn check(&self, feature: &str, kind: FeatureKind) -> Result<()> {
        let literals: Vec<&Literal> = match self {
            Test::Present | Test::Absent => return Ok(()),
            Test::Compare(_, literal) => vec![literal],
            Test::In(items) => items.iter().flat_map(ListItem::literals).collect(),
        };
        for literal in literals {
            let (fits, expected) = match kind {
                FeatureKind::Int64 => {
                    (matches!(literal, Literal::Number { int: Some(_), .. }), "a 64-bit integer")
                }
                FeatureKind::Float => (matches!(literal, Literal::Number { .. }), "a number"),
                FeatureKind::Bytes => (matches!(literal, Literal::Str(_)), "a string in quotes"),
            };
            if !fits {
                let found = match literal {
                    Literal::Number { text, .. } => text.to_string(),
                    Literal::Str(bytes) => format!("\"{}\"", bytes.escape_ascii()),
                };
                let feature = feature.escape_default();
                let message =
                    format!("feature \"{feature}\" has values of {kind}: expected {expected}, found {found}");
                return Err(ErrorKind::Filter(message.into()).into());
            }
        }
        Ok(())
    }

    /// Returns true if a value meets the condition. The kind of the value must have passed [`check`](Test::check).
    pub(crate) fn meets(&self, value: Value<'_>) -> bool {
        match self {
            // The caller handles records without a value.
            Test::Present | Test::Absent => true,
            Test::Compare(op, literal) => op.holds(literal.cmp(value)),
            Test::In(items) => items.iter().any(|item| item.holds(value)),
        }
    }
}

impl Op {
    /// Returns true if a comparison with this result meets the operator. `None` is the result of a comparison with NaN.
    fn holds(self, found: Option<Ordering>) -> bool {
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
    /// Compares a value with this literal. It returns `None` for NaN and for a kind that does not match the literal.
    fn cmp(&self, value: Value<'_>) -> Option<Ordering> {
        match (value, self) {
            (Value::Int(value), Literal::Number { int, .. }) => Some(value.cmp(int.as_ref()?)),
            (Value::Float(value), Literal::Number { float, .. }) => value.partial_cmp(float),
            (Value::Bytes(value), Literal::Str(bytes)) => Some(value.cmp(bytes)),
            _ => None,
        }
    }
}

/// Maximum nesting depth. Each level is a recursive call of the parser.
const MAX_DEPTH: usize = 64;

struct FilterParser<'t> {
    lexer: Lexer<'t>,
    depth: usize,
}

impl FilterParser<'_> {
    fn or_chain(&mut self) -> Result<Node> {
        let nodes = self.chain("or", FilterParser::and_chain)?;
        Ok(join(nodes, Node::Or))
    }

    fn and_chain(&mut self) -> Result<Node> {
        let nodes = self.chain("and", FilterParser::operand)?;
        Ok(join(nodes, Node::And))
    }

    fn chain(&mut self, word: &str, mut part: impl FnMut(&mut Self) -> Result<Node>) -> Result<Vec<Node>> {
        let mut nodes = vec![part(self)?];
        while self.lexer.peek()?.is_word(word) {
            self.lexer.next()?;
            nodes.push(part(self)?);
        }
        Ok(nodes)
    }

    fn operand(&mut self) -> Result<Node> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(self.lexer.error("nested too deeply"));
        }
        let node = match self.lexer.next()? {
            Token::Word("not") => Node::Not(Box::new(self.operand()?)),
            Token::Open => {
                let node = self.or_chain()?;
                self.close()?;
                node
            }
            Token::Word(word @ ("present" | "absent")) if self.lexer.peek()? == Token::Open => {
                self.lexer.next()?;
                let token = self.lexer.next()?;
                let feature = self.feature(token)?;
                self.close()?;
                Node::Test(feature, if word == "present" { Test::Present } else { Test::Absent })
            }
            token => {
                let feature = self.feature(token)?;
                Node::Test(feature, self.test()?)
            }
        };
        self.depth -= 1;
        Ok(node)
    }

    fn close(&mut self) -> Result<()> {
        match self.lexer.next()? {
            Token::Close => Ok(()),
            _ => Err(self.lexer.expected("`)`")),
        }
    }

    fn feature(&mut self, token: Token<'_>) -> Result<Box<str>> {
        match token {
            Token::Word("and" | "or" | "in") => {
                Err(self.lexer.expected("a feature (in quotes, if its name is a keyword)"))
            }
            Token::Word(name) => Ok(name.into()),
            Token::Str(name) => match String::from_utf8(name) {
                Ok(name) => Ok(name.into()),
                Err(_) => Err(self.lexer.error("expected a feature name in UTF-8")),
            },
            _ => Err(self.lexer.expected("a feature")),
        }
    }

    fn test(&mut self) -> Result<Test> {
        match self.lexer.next()? {
            Token::Op(op) => {
                let token = self.lexer.next()?;
                Ok(Test::Compare(op, self.literal(token)?))
            }
            Token::Word("in") => {
                let mut items = vec![self.item()?];
                while self.lexer.peek()? == Token::Comma {
                    self.lexer.next()?;
                    items.push(self.item()?);
                }
                Ok(Test::In(items))
            }
            _ => Err(self.lexer.expected("one of == != < <= > >= in")),
        }
    }

    fn item(&mut self) -> Result<ListItem> {
        let from = match self.lexer.peek()? {
            Token::Range(_) => None,
            _ => {
                let token = self.lexer.next()?;
                Some(self.literal(token)?)
            }
        };
        let Token::Range(op) = self.lexer.peek()? else {
            return from.map(ListItem::One).ok_or_else(|| self.lexer.expected("a value"));
        };
        self.lexer.next()?;
        let to = match self.lexer.peek()? {
            token @ (Token::Number(_) | Token::Str(_)) => {
                self.lexer.next()?;
                Some((op, self.literal(token)?))
            }
            _ if from.is_none() || op == Op::Le => {
                self.lexer.next()?;
                return Err(self.lexer.expected("the end of the range"));
            }
            _ => None,
        };
        Ok(ListItem::Range { from, to })
    }

    fn literal(&mut self, token: Token<'_>) -> Result<Literal> {
        match token {
            Token::Number(text) => match text.parse::<f32>() {
                Ok(float) => Ok(Literal::Number { text: text.into(), int: text.parse().ok(), float }),
                Err(_) => Err(self.lexer.expected("a number")),
            },
            Token::Str(bytes) => Ok(Literal::Str(bytes.into())),
            Token::Word(_) => Err(self.lexer.expected("a number, or a string in quotes")),
            _ => Err(self.lexer.expected("a value")),
        }
    }
}

/// Returns the only node of the list, or joins several nodes with `many`.
fn join(mut nodes: Vec<Node>, many: impl Fn(Vec<Node>) -> Node) -> Node {
    match (nodes.len(), nodes.pop()) {
        (1, Some(node)) => node,
        (_, last) => {
            nodes.extend(last);
            many(nodes)
        }
    }
}
