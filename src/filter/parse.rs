//! The parser of the filter language.

use super::condition::{
    FeatureTest, ListItem, Literal, LiteralValue, Needle, Node, Operand, Pattern, Place, Quantifier,
    Quantity, SplitTest, Test,
};
use super::expression::{Filter, list_name};
use super::lex::{Lexer, Op, Token};
use crate::error::{Error, Result};
use crate::example::DType;
use crate::order::FRACTION;
use regex::bytes::RegexBuilder;
use std::collections::HashMap;
use std::str::FromStr;

/// Maximum nesting depth. Each level is a recursive call of the parser.
const MAX_DEPTH: usize = 64;

/// Maximum number of patterns, and of bytes that each of them compiles to. They bound the time and the memory
/// of compilation.
const MAX_PATTERNS: usize = 32;
const MAX_PATTERN_BYTES: usize = 1 << 20;

const COMPARISONS: &str = "one of == != < <= > >= in";

/// The words that are names of features in quotes only.
const RESERVED: [&str; 5] = ["and", "or", "not", "in", "record"];

struct FilterParser<'t> {
    lexer: Lexer<'t>,
    depth: usize,
    patterns: usize,
    tests: Vec<FeatureTest>,
    /// Numbers of the features, in the order of their first occurrence. True for feature lists.
    features: HashMap<(bool, Box<str>), usize>,
}

/// Parses the text form. The error is [`ErrorKind::Filter`](crate::ErrorKind::Filter), with the byte offset
/// and the expected token.
impl FromStr for Filter {
    type Err = Error;

    fn from_str(text: &str) -> Result<Filter> {
        let mut parser = FilterParser {
            lexer: Lexer::new(text),
            depth: 0,
            patterns: 0,
            tests: Vec::new(),
            features: HashMap::new(),
        };
        let root = parser.or_chain()?;
        match parser.lexer.next()? {
            Token::End => Ok(parser.finish(text, root)),
            _ => Err(parser.lexer.expected("`and`, `or` or the end of the filter")),
        }
    }
}

impl FilterParser<'_> {
    /// Sorts the features, and numbers them by their order.
    fn finish(mut self, text: &str, root: Node) -> Filter {
        let mut features: Vec<((bool, Box<str>), usize)> = self.features.into_iter().collect();
        features.sort_unstable();
        let mut sorted = vec![0; features.len()];
        for (k, (_, number)) in features.iter().enumerate() {
            if let Some(to) = sorted.get_mut(*number) {
                *to = k;
            }
        }
        let number = |operand: &mut Operand| {
            if let Some(k) = sorted.get(operand.feature) {
                operand.feature = *k;
            }
        };
        for test in &mut self.tests {
            number(&mut test.operand);
            if let Test::With(_, other) = &mut test.test {
                number(other);
            }
        }
        let (lists, features): (Vec<_>, Vec<_>) =
            features.into_iter().partition(|((in_steps, _), _)| *in_steps);
        let names =
            |all: Vec<((bool, Box<str>), usize)>| all.into_iter().map(|((_, name), _)| name).collect();
        Filter { text: text.into(), root, tests: self.tests, features: names(features), lists: names(lists) }
    }

    fn or_chain(&mut self) -> Result<Node> {
        self.chain("or", FilterParser::and_chain, Node::Or)
    }

    fn and_chain(&mut self) -> Result<Node> {
        self.chain("and", FilterParser::operand, Node::And)
    }

    /// Parses parts between which is this word. Several are joined with `many`.
    fn chain(
        &mut self,
        word: &str,
        part: fn(&mut Self) -> Result<Node>,
        many: fn(Vec<Node>) -> Node,
    ) -> Result<Node> {
        let mut nodes = vec![part(self)?];
        while self.lexer.peek()?.is_word(word) {
            self.lexer.next()?;
            nodes.push(part(self)?);
        }
        Ok(if nodes.len() == 1 { nodes.remove(0) } else { many(nodes) })
    }

    fn operand(&mut self) -> Result<Node> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(self.lexer.error("nested too deeply"));
        }
        let token = self.lexer.next()?;
        let called = self.lexer.peek()? == Token::Open;
        let node = match token {
            Token::Word("not") => {
                if matches!(self.lexer.peek()?, Token::Op(_) | Token::Word("in")) {
                    return Err(self.reserved("not"));
                }
                Node::Not(Box::new(self.operand()?))
            }
            Token::Open => {
                let node = self.or_chain()?;
                self.close()?;
                node
            }
            Token::Word("split") if called => self.split()?,
            Token::Word(word @ ("present" | "absent")) if called => {
                self.lexer.next()?;
                let operand = self.next_feature(Quantity::Value)?;
                self.close()?;
                let test = if word == "present" { Test::Present } else { Test::Absent };
                self.add(FeatureTest { operand, quantifier: Quantifier::Only, test })
            }
            Token::Word("record") if !called => self.number()?,
            token => self.feature_test(token, called)?,
        };
        self.depth -= 1;
        Ok(node)
    }

    /// Parses a test of a feature, from its first token. `called` is true if a parenthesis follows.
    fn feature_test(&mut self, token: Token<'_>, called: bool) -> Result<Node> {
        let quantifier = match token {
            Token::Word("any") if called => Quantifier::Any,
            Token::Word("all") if called => Quantifier::All,
            _ => Quantifier::Only,
        };
        let operand = if quantifier == Quantifier::Only {
            self.quantity(token, called)?
        } else {
            self.lexer.next()?;
            let token = self.lexer.next()?;
            let called = self.lexer.peek()? == Token::Open && !token.is_word("len");
            let operand = self.quantity(token, called)?;
            self.close()?;
            operand
        };
        let test = self.test("one of == != < <= > >= in contains matches is", true)?;
        if let Some(kind) = operand.quantity.kind() {
            let what = |kind| if kind == DType::Bytes { "a string" } else { "a number" };
            let subject = format!("{} is {}", self.text(&operand), what(kind));
            self.check(&test, kind, &subject)?;
            if let Test::With(_, other) = &test
                && let Some(found) = other.quantity.kind()
                && found != kind
            {
                let reason = format!("{subject}, and {} {}", self.text(other), what(found));
                return Err(self.lexer.error_at(other.at.0, &reason));
            }
        }
        Ok(self.add(FeatureTest { operand, quantifier, test }))
    }

    /// Returns the text of an operand.
    fn text(&self, operand: &Operand) -> String {
        let mut names = self.features.iter();
        operand.text(names.find(|(_, number)| **number == operand.feature).map_or("", |((_, name), _)| name))
    }

    /// Parses a feature, or a function of one.
    fn quantity(&mut self, token: Token<'_>, called: bool) -> Result<Operand> {
        let quantity = match token {
            Token::Word("len") if called => Quantity::Len,
            Token::Word("bytes") if called => Quantity::Bytes,
            Token::Word("width") if called => Quantity::Width,
            Token::Word("height") if called => Quantity::Height,
            Token::Word("format") if called => Quantity::Format,
            token => return self.feature(token, Quantity::Value),
        };
        self.lexer.next()?;
        let operand = self.next_feature(quantity)?;
        self.close()?;
        Ok(operand)
    }

    /// Parses a test of the record number, after the word `record`.
    fn number(&mut self) -> Result<Node> {
        let test = match self.lexer.peek()? {
            Token::Op(_) | Token::Word("in") => self.test(COMPARISONS, false)?,
            _ => {
                self.lexer.next()?;
                return Err(self.lexer.expected(&format!(
                    "{COMPARISONS} after the record number (as the name of a feature it is `\"record\"`)"
                )));
            }
        };
        self.check(&test, DType::Int64, "the record number")?;
        Ok(Node::Number(test))
    }

    /// Parses the arguments of `split`.
    fn split(&mut self) -> Result<Node> {
        self.lexer.next()?;
        let fraction: Option<f64> = match self.lexer.next()? {
            Token::Number(text) => text.parse().ok(),
            _ => None,
        };
        let split = fraction.and_then(SplitTest::new);
        let mut split = split.ok_or_else(|| {
            let is_fraction = fraction.is_some_and(|fraction| (0.0..=1.0).contains(&fraction));
            self.lexer.expected(if is_fraction { FRACTION } else { "a fraction from 0 to 1" })
        })?;
        if self.lexer.peek()? == Token::Comma {
            self.lexer.next()?;
            if !self.lexer.next()?.is_word("seed") {
                return Err(self.lexer.expected("`seed`"));
            }
            self.lexer.assign()?;
            split.seed = match self.lexer.next()? {
                Token::Number(text) => text.parse().ok(),
                _ => None,
            }
            .ok_or_else(|| self.lexer.expected("a seed from 0 to 2^64 - 1"))?;
        }
        self.close()?;
        Ok(Node::Split(split))
    }

    fn add(&mut self, test: FeatureTest) -> Node {
        self.tests.push(test);
        Node::Feature(self.tests.len() - 1)
    }

    /// Checks that the literals of a test fit a quantity that is always of one kind.
    fn check(&self, test: &Test, kind: DType, subject: &str) -> Result<()> {
        test.check(kind).map_err(|e| {
            let reason = format!("{subject}: expected {}, found {}", e.expected, e.found);
            self.lexer.error_at(e.at.0, &reason)
        })
    }

    fn close(&mut self) -> Result<()> {
        match self.lexer.next()? {
            Token::Close => Ok(()),
            _ => Err(self.lexer.expected("`)`")),
        }
    }

    fn next_feature(&mut self, quantity: Quantity) -> Result<Operand> {
        let token = self.lexer.next()?;
        self.feature(token, quantity)
    }

    /// Returns a quantity of the feature, or of the feature list, that the last token begins.
    fn feature(&mut self, token: Token<'_>, quantity: Quantity) -> Result<Operand> {
        if !token.is_word("steps") || self.lexer.peek()? != Token::Open {
            let name = self.feature_name(token)?;
            return Ok(self.operand_of(name, false, self.lexer.last(), quantity));
        }
        self.lexer.next()?;
        let token = self.lexer.next()?;
        let name = list_name(&self.feature_name(token)?).into();
        let at = self.lexer.last();
        self.close()?;
        Ok(self.operand_of(name, true, at, quantity))
    }

    fn operand_of(&mut self, name: Box<str>, in_steps: bool, at: usize, quantity: Quantity) -> Operand {
        let next = self.features.len();
        let feature = *self.features.entry((in_steps, name)).or_insert(next);
        Operand { feature, in_steps, at: Place(at), quantity }
    }

    /// Returns the name of a feature, which is the last token.
    fn feature_name(&self, token: Token<'_>) -> Result<Box<str>> {
        match token {
            Token::Word(word) if RESERVED.contains(&word) => Err(self.reserved(word)),
            Token::Word(name) => Ok(name.into()),
            Token::Str(name) => match String::from_utf8(name) {
                Ok(name) => Ok(name.into()),
                Err(_) => Err(self.lexer.error("expected a feature name in UTF-8")),
            },
            _ => Err(self.lexer.expected("a feature")),
        }
    }

    /// Returns the error of a reserved word in the place of a feature, at the last token.
    #[cold]
    fn reserved(&self, word: &str) -> Error {
        self.lexer.error(&format!(
            "expected a feature, and the word `{word}` is reserved; as the name of a feature it is `\"{word}\"`"
        ))
    }

    /// Parses a test. `features` is true if it may compare with another feature.
    fn test(&mut self, expected: &str, features: bool) -> Result<Test> {
        match self.lexer.next()? {
            Token::Op(op) => match self.lexer.next()? {
                token @ Token::Word(_) if features => Ok(Test::With(op, self.other(token)?)),
                token => Ok(Test::Compare(op, self.literal(token)?)),
            },
            Token::Word("in") => {
                let mut items = vec![self.item()?];
                while self.lexer.peek()? == Token::Comma {
                    self.lexer.next()?;
                    items.push(self.item()?);
                }
                Ok(Test::In(items))
            }
            Token::Word("contains") => match self.lexer.next()? {
                Token::Str(needle) => Ok(Test::Contains(Needle::new(Place(self.lexer.last()), &needle))),
                _ => Err(self.lexer.expected("a string in quotes")),
            },
            Token::Word("matches") => self.pattern(),
            Token::Word("is") => self.is_nan(),
            _ => Err(self.lexer.expected(expected)),
        }
    }

    /// Parses the feature on the right of a comparison, from its first token.
    fn other(&mut self, token: Token<'_>) -> Result<Operand> {
        if let Token::Word(word) = token
            && RESERVED.contains(&word)
        {
            let reason = format!(
                "expected a value, and the word `{word}` is reserved; a feature of this name is `\"{word}\"` \
                 on the left, and a string is in quotes"
            );
            return Err(self.lexer.error(&reason));
        }
        let called = self.lexer.peek()? == Token::Open;
        let operand = self.quantity(token, called)?;
        if self.lexer.peek()? == Token::Open {
            self.lexer.next()?;
            return Err(self.lexer.expected("a feature, or a function of one value, before it"));
        }
        Ok(operand)
    }

    fn is_nan(&mut self) -> Result<Test> {
        let not = self.lexer.peek()?.is_word("not");
        if not {
            self.lexer.next()?;
        }
        match self.lexer.next()? {
            Token::Word("nan") => Ok(Test::IsNan { at: Place(self.lexer.last()), not }),
            _ => Err(self.lexer.expected(if not { "`nan`" } else { "`nan` or `not nan`" })),
        }
    }

    fn pattern(&mut self) -> Result<Test> {
        let pattern = self.lexer.raw_string()?;
        self.patterns += 1;
        if self.patterns > MAX_PATTERNS {
            return Err(self.lexer.error(&format!("expected at most {MAX_PATTERNS} patterns")));
        }
        let built = RegexBuilder::new(pattern)
            .unicode(false)
            .size_limit(MAX_PATTERN_BYTES)
            .dfa_size_limit(MAX_PATTERN_BYTES)
            .build();
        match built {
            Ok(regex) => Ok(Test::Matches(Pattern { at: Place(self.lexer.last()), regex })),
            Err(e) => Err(self.refused_pattern(&e)),
        }
    }

    #[cold]
    fn refused_pattern(&self, e: &regex::Error) -> Error {
        match e {
            regex::Error::CompiledTooBig(_) => self.lexer.error("the pattern is too large"),
            // The message has several lines. The last one is the reason.
            e => {
                let message = e.to_string();
                let last = message.lines().last().unwrap_or(&message);
                self.lexer
                    .error(&format!("invalid pattern: {}", last.strip_prefix("error: ").unwrap_or(last)))
            }
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
        let value = match token {
            Token::Number(text) => match text.parse::<f32>() {
                Ok(float) => LiteralValue::Number { text: text.into(), int: text.parse().ok(), float },
                Err(_) => return Err(self.lexer.expected("a number")),
            },
            Token::Str(bytes) => LiteralValue::Str(bytes.into()),
            Token::Word(_) => return Err(self.lexer.expected("a number, or a string in quotes")),
            _ => return Err(self.lexer.expected("a value")),
        };
        Ok(Literal { at: Place(self.lexer.last()), value })
    }
}
