//! Selections: the records that meet a filter.

use super::dataset::DatasetColumn;
use super::obtain::ColumnOptions;
use crate::dataset::Dataset;
use crate::error::{Error, OptionsError, Result};
use crate::filter::{Filter, Node, Test};
use crate::io::zeroed;
use std::fmt;

/// A set of records of a dataset, stored as one bit per record.
#[derive(Clone, PartialEq, Eq)]
pub struct Selection {
    len: u64,
    words: Vec<u64>,
}

impl Dataset {
    /// Returns the records that meet `filter`. The columns of its features are found or built like those of
    /// [`columns`](Dataset::columns), all missing ones in one scan.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let path = dir.path().join("train.tfrecord");
    /// # let mut writer = tfseek::Writer::create(&path)?;
    /// # for i in 0..10 { writer.write(&tfseek::ExampleBuilder::new().int64("label", [i]).encode()?)?; }
    /// # writer.close()?;
    /// # let options = tfseek::DatasetOptions::new().index(tfseek::IndexMode::Memory);
    /// use tfseek::column::ColumnOptions;
    /// let ds = options.open(&path)?;
    /// let some = ds.select(&"label in 2..5 or label == 9".parse()?, &ColumnOptions::new())?;
    /// assert_eq!(some.iter().collect::<Vec<_>>(), [2, 3, 4, 9]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`columns`](Dataset::columns). [`ErrorKind::Filter`](crate::ErrorKind::Filter) if the filter compares a feature
    /// with a value of another kind.
    pub fn select(&self, filter: &Filter, columns: &ColumnOptions) -> Result<Selection> {
        filter.0.select(&self.columns(&filter.features(), columns)?, self.len())
    }

    /// Returns the records that meet `filter`, from the given columns of its [`features`](Filter::features). Searches for, reads and
    /// builds no files.
    ///
    /// # Errors
    /// [`ErrorKind::Filter`](crate::ErrorKind::Filter) if the filter compares a feature with a value of another kind.
    /// [`OptionsError::ColumnNotGiven`] if `columns` lacks a feature, or its column has another number of records.
    pub fn select_from(&self, filter: &Filter, columns: &[DatasetColumn]) -> Result<Selection> {
        let lacks = |feature: &&str| {
            !columns.iter().any(|column| column.feature() == *feature && column.len() == self.len())
        };
        if let Some(feature) = filter.features().into_iter().find(lacks) {
            return Err(Error::from(OptionsError::ColumnNotGiven).feature(feature.as_bytes()));
        }
        filter.0.select(columns, self.len())
    }
}

impl Selection {
    fn none(len: u64) -> Result<Selection> {
        Ok(Selection { len, words: zeroed(len.div_ceil(64))? })
    }

    /// Returns the number of selected records.
    pub fn count(&self) -> u64 {
        self.words.iter().map(|word| u64::from(word.count_ones())).sum()
    }

    /// Returns true if record `i` is selected.
    pub fn contains(&self, i: u64) -> bool {
        self.words.get((i / 64) as usize).is_some_and(|word| word >> (i % 64) & 1 == 1)
    }

    /// Returns the selected records, ascending.
    pub fn iter(&self) -> impl Iterator<Item = u64> {
        self.words.iter().zip(0u64..).flat_map(|(&word, k)| {
            let next = |left: &u64| Some(left & (left - 1)).filter(|left| *left != 0);
            let ones = std::iter::successors(Some(word).filter(|word| *word != 0), next);
            ones.map(move |left| k * 64 + u64::from(left.trailing_zeros()))
        })
    }

    /// Returns the bits: bit k of word w is record 64 w + k.
    pub(crate) fn words(&self) -> &[u64] {
        &self.words
    }

    fn insert(&mut self, i: u64) {
        if let Some(word) = self.words.get_mut((i / 64) as usize) {
            *word |= 1 << (i % 64);
        }
    }

    fn zip(mut self, other: &Selection, f: impl Fn(u64, u64) -> u64) -> Selection {
        self.words.iter_mut().zip(&other.words).for_each(|(a, b)| *a = f(*a, *b));
        self
    }

    fn invert(mut self) -> Selection {
        self.words.iter_mut().for_each(|word| *word = !*word);
        if let Some(last) = self.words.last_mut().filter(|_| !self.len.is_multiple_of(64)) {
            *last &= (1 << (self.len % 64)) - 1;
        }
        self
    }
}

impl Node {
    /// Returns the records below `len` that meet this condition. `columns` contains the columns of its features.
    fn select(&self, columns: &[DatasetColumn], len: u64) -> Result<Selection> {
        Ok(match self {
            Node::And(nodes) => {
                fold(nodes, Selection::none(len)?.invert(), |node| node.select(columns, len), |a, b| a & b)?
            }
            Node::Or(nodes) => {
                fold(nodes, Selection::none(len)?, |node| node.select(columns, len), |a, b| a | b)?
            }
            Node::Not(node) => node.select(columns, len)?.invert(),
            Node::Test(feature, test) => {
                let mut found = Selection::none(len)?;
                let column = columns.iter().find(|column| column.feature() == &**feature);
                if let Some(column) = column {
                    column.kind().map_or(Ok(()), |kind| test.check(feature, kind))?;
                    for (start, data) in column.loaded() {
                        data.matching(|value| test.meets(value), |i| found.insert(start + i));
                    }
                }
                if matches!(test, Test::Absent) { found.invert() } else { found }
            }
        })
    }
}

fn fold(
    nodes: &[Node],
    start: Selection,
    select: impl Fn(&Node) -> Result<Selection>,
    f: impl Fn(u64, u64) -> u64,
) -> Result<Selection> {
    nodes.iter().try_fold(start, |all, node| Ok(all.zip(&select(node)?, &f)))
}

impl fmt::Debug for Selection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Selection({} of {} records)", self.count(), self.len)
    }
}
