//! The filter language: conditions on features, and the text in which they are written. It reads no records.
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

/// A condition on the features of a record, for [`Dataset::select`](crate::Dataset::select). Read from text:
///
/// | | |
/// | --- | --- |
/// | `label == 3`, `!=`, `<`, `<=`, `>`, `>=` | a value compared with a number or a string |
/// | `label in 1, 2, 5..9` | one of several; a range leaves out its end, `5..=9` takes it in, `5..` and `..9` are open |
/// | `name == "cat"`, `name == 'cat'` | strings, with `\n`, `\t`, `\\`, `\"`, `\'` and `\x41`; they compare as bytes |
/// | `present(label)`, `absent(label)` | whether there is a value; a feature that no record has is an error here, too |
/// | `not`, `and`, `or`, `( )` | the tighter first |
///
/// A feature's name stands bare if it begins with a letter or `_` and goes on with those, digits and `/ . - :`; any other name,
/// and the words `and or not in`, in quotes. A record without a value meets no comparison, `!=` included, but it does meet the
/// `not` of one. Floats compare as `f32`, so a number is rounded to one first: `x == 0.1` finds 0.1.
#[derive(Clone, Debug, PartialEq)]
pub struct Filter(pub(crate) Node);

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Node {
    /// All, any: lists and not pairs, so that a long chain is no deep tree.
    And(Vec<Node>),
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
    In(Vec<Item>),
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Item {
    One(Literal),
    Range { from: Option<Literal>, to: Option<(Op, Literal)> },
}

/// A number or a string that values are compared with.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Literal {
    /// As an integer, if it is one that an int64 holds, and as a float.
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
        let node = parser.any()?;
        match parser.lexer.next()? {
            Token::End => Ok(Filter(node)),
            _ => Err(parser.lexer.expected("`and`, `or` or the end")),
        }
    }

    /// Returns the features that it asks about, sorted, each once.
    pub fn features(&self) -> Vec<&str> {
        let mut all = Vec::new();
        self.0.features(&mut all);
        all.sort_unstable();
        all.dedup();
        all
    }
}

/// Reads the text form. The error is [`ErrorKind::Filter`], with what was expected and the byte where it was.
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
    /// Returns an error if values of this kind cannot be compared as the condition says.
    pub(crate) fn check(&self, feature: &str, kind: FeatureKind) -> Result<()> {
        let literals: Vec<&Literal> = match self {
            Test::Present | Test::Absent => return Ok(()),
            Test::Compare(_, literal) => vec![literal],
            Test::In(items) => items.iter().flat_map(Item::literals).collect(),
        };
        for literal in literals {
            let (fits, wants) = match kind {
                FeatureKind::Int64 => {
                    (matches!(literal, Literal::Number { int: Some(_), .. }), "an integer of 64 bits")
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
                let what =
                    format!("feature \"{feature}\" has values of {kind}: expected {wants}, found {found}");
                return Err(ErrorKind::Filter(what.into()).into());
            }
        }
        Ok(())
    }

    /// Returns true if a value meets the condition.
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
    /// Returns true if a comparison with this result meets the operator; `None` is that with a NaN.
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

impl Item {
    fn literals(&self) -> impl Iterator<Item = &Literal> {
        let (first, last) = match self {
            Item::One(literal) => (Some(literal), None),
            Item::Range { from, to } => (from.as_ref(), to.as_ref().map(|(_, to)| to)),
        };
        first.into_iter().chain(last)
    }

    fn holds(&self, value: Value<'_>) -> bool {
        match self {
            Item::One(literal) => Op::Eq.holds(literal.cmp(value)),
            Item::Range { from, to } => {
                from.as_ref().is_none_or(|from| Op::Ge.holds(from.cmp(value)))
                    && to.as_ref().is_none_or(|(op, to)| op.holds(to.cmp(value)))
            }
        }
    }
}

impl Literal {
    /// Compares a value of a kind that was checked with this.
    fn cmp(&self, value: Value<'_>) -> Option<Ordering> {
        match (value, self) {
            (Value::Int(value), Literal::Number { int, .. }) => Some(value.cmp(int.as_ref()?)),
            (Value::Float(value), Literal::Number { float, .. }) => value.partial_cmp(float),
            (Value::Bytes(value), Literal::Str(bytes)) => Some(value.cmp(bytes)),
            _ => None,
        }
    }
}

/// The deepest nesting that is read: each level is a call.
const MAX_DEPTH: usize = 64;

struct FilterParser<'t> {
    lexer: Lexer<'t>,
    depth: usize,
}

impl FilterParser<'_> {
    fn any(&mut self) -> Result<Node> {
        let nodes = self.chain("or", FilterParser::all)?;
        Ok(one_or(nodes, Node::Or))
    }

    fn all(&mut self) -> Result<Node> {
        let nodes = self.chain("and", FilterParser::one)?;
        Ok(one_or(nodes, Node::And))
    }

    fn chain(&mut self, word: &str, mut part: impl FnMut(&mut Self) -> Result<Node>) -> Result<Vec<Node>> {
        let mut nodes = vec![part(self)?];
        while self.lexer.peek()?.is_word(word) {
            self.lexer.next()?;
            nodes.push(part(self)?);
        }
        Ok(nodes)
    }

    fn one(&mut self) -> Result<Node> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(self.lexer.wrong("nested too deeply"));
        }
        let node = match self.lexer.next()? {
            Token::Word("not") => Node::Not(Box::new(self.one()?)),
            Token::Open => {
                let node = self.any()?;
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
                Err(self.lexer.expected("a feature (in quotes, if that is its name)"))
            }
            Token::Word(name) => Ok(name.into()),
            Token::Str(name) => match String::from_utf8(name) {
                Ok(name) => Ok(name.into()),
                Err(_) => Err(self.lexer.wrong("a feature's name is UTF-8")),
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

    fn item(&mut self) -> Result<Item> {
        let from = match self.lexer.peek()? {
            Token::Range(_) => None,
            _ => {
                let token = self.lexer.next()?;
                Some(self.literal(token)?)
            }
        };
        let Token::Range(op) = self.lexer.peek()? else {
            return from.map(Item::One).ok_or_else(|| self.lexer.expected("a value"));
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
        Ok(Item::Range { from, to })
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

fn one_or(mut nodes: Vec<Node>, many: impl Fn(Vec<Node>) -> Node) -> Node {
    match (nodes.len(), nodes.pop()) {
        (1, Some(node)) => node,
        (_, last) => {
            nodes.extend(last);
            many(nodes)
        }
    }
}
