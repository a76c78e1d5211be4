//! Evaluation of filters on columns.

use super::dataset::DatasetColumn;
use super::obtain::ColumnOptions;
use super::selection::Selection;
use super::undecided::UndecidedScan;
use crate::dataset::Dataset;
use crate::error::{Error, ErrorKind, FeatureError, OptionsError, Result};
use crate::filter::{Filter, Node, Test, number_meets};

impl Dataset {
    /// Returns the records that meet `filter`. Comparisons of one value are decided by columns, which are found or built like those of
    /// [`columns`](Dataset::columns), all missing ones in one scan. Then the records are read that these leave undecided, for tests of
    /// lists, of parts of strings, of images and of payloads ([`Filter::reads_records`]).
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
    /// The errors of [`columns`](Dataset::columns), and of reading records. [`ErrorKind::Filter`](crate::ErrorKind::Filter) if a record
    /// has values of another kind than the filter compares with, or several values where one is compared. A kind is checked in
    /// columns and in the records that are read.
    pub fn select(&self, filter: &Filter, columns: &ColumnOptions) -> Result<Selection> {
        match self.columns(&filter.column_features(), columns) {
            Ok(found) => self.select_from(filter, &found, columns),
            // There is no column of lists, or of strings without bound. The records decide, or the error names the test.
            Err(e)
                if matches!(
                    e.kind(),
                    ErrorKind::Feature(FeatureError::Count { .. }) | ErrorKind::TooLarge { .. }
                ) =>
            {
                self.select_with(filter, &[], columns)
            }
            Err(e) => Err(e),
        }
    }

    /// Returns the records that meet `filter`, from the given columns of its [`column_features`](Filter::column_features). Searches for
    /// and builds no files. Reads records as [`select`](Dataset::select) does. From `options` it takes
    /// [`progress`](ColumnOptions::progress) and [`unknown`](ColumnOptions::unknown).
    ///
    /// # Errors
    /// [`OptionsError::ColumnNotGiven`] if `columns` lacks a feature, or its column has another number of records. The errors of
    /// [`select`](Dataset::select).
    pub fn select_from(
        &self,
        filter: &Filter,
        columns: &[DatasetColumn],
        options: &ColumnOptions,
    ) -> Result<Selection> {
        let lacks = |feature: &&str| {
            !columns.iter().any(|column| column.feature() == *feature && column.len() == self.len())
        };
        if let Some(feature) = filter.column_features().into_iter().find(lacks) {
            return Err(Error::from(OptionsError::ColumnNotGiven).feature(feature.as_bytes()));
        }
        self.select_with(filter, columns, options)
    }

    fn select_with(
        &self,
        filter: &Filter,
        columns: &[DatasetColumn],
        options: &ColumnOptions,
    ) -> Result<Selection> {
        let columns: Vec<&DatasetColumn> =
            columns.iter().filter(|column| column.len() == self.len()).collect();
        let bounds = Evaluation { filter, columns: &columns, len: self.len() }.of(filter.root())?;
        let SelectionBounds { lower: mut selected, upper } = bounds;
        let undecided = upper.zip(&selected, |upper, lower| upper & !lower);
        let known: Vec<&str> = columns.iter().map(|column| column.feature()).collect();
        if undecided.count() > 0 || filter.features().iter().any(|feature| !known.contains(feature)) {
            let work = options.work(self);
            let scan = UndecidedScan { dataset: self, filter, undecided: &undecided, known, work: &work };
            work.end(scan.add_to(&mut selected, options))?;
        }
        // Columns that were requested together share their warnings.
        columns.iter().for_each(|column| selected.add_warnings(column.warnings()));
        Ok(selected)
    }
}

/// The records that certainly meet a condition, and those that may meet it. They are equal where columns decide.
struct SelectionBounds {
    lower: Selection,
    upper: Selection,
}

/// The evaluation of a filter on columns of `len` records.
struct Evaluation<'a> {
    filter: &'a Filter,
    columns: &'a [&'a DatasetColumn],
    len: u64,
}

impl Evaluation<'_> {
    fn of(&self, node: &Node) -> Result<SelectionBounds> {
        Ok(match node {
            Node::And(nodes) => self.fold(nodes, Selection::none(self.len)?.invert(), |a, b| a & b)?,
            Node::Or(nodes) => self.fold(nodes, Selection::none(self.len)?, |a, b| a | b)?,
            Node::Not(node) => {
                let SelectionBounds { lower, upper } = self.of(node)?;
                SelectionBounds { lower: upper.invert(), upper: lower.invert() }
            }
            Node::Number(test) => {
                let mut found = Selection::none(self.len)?;
                (0..self.len).filter(|&i| number_meets(test, i)).for_each(|i| found.insert(i));
                SelectionBounds::exact(found)
            }
            Node::Split(_) => SelectionBounds::unknown(self.len)?,
            Node::Feature(k) => {
                let Some(test) = self.filter.test(*k) else { return SelectionBounds::unknown(self.len) };
                let name = self.filter.name(test.feature());
                let column = self.columns.iter().find(|column| column.feature() == name);
                let Some(column) = column.filter(|_| test.has_column()) else {
                    return SelectionBounds::unknown(self.len);
                };
                if let Some(kind) = column.kind() {
                    self.filter.check(test, kind)?;
                }
                let mut found = Selection::none(self.len)?;
                for (start, data) in column.loaded() {
                    data.matching(|value| test.test().meets(value), |i| found.insert(start + i));
                }
                let absent = matches!(test.test(), Test::Absent);
                SelectionBounds::exact(if absent { found.invert() } else { found })
            }
        })
    }

    fn fold(&self, nodes: &[Node], start: Selection, f: impl Fn(u64, u64) -> u64) -> Result<SelectionBounds> {
        nodes.iter().try_fold(SelectionBounds::exact(start), |all, node| {
            let SelectionBounds { lower, upper } = self.of(node)?;
            Ok(SelectionBounds { lower: all.lower.zip(&lower, &f), upper: all.upper.zip(&upper, &f) })
        })
    }
}

impl SelectionBounds {
    fn exact(selection: Selection) -> SelectionBounds {
        SelectionBounds { lower: selection.clone(), upper: selection }
    }

    fn unknown(len: u64) -> Result<SelectionBounds> {
        Ok(SelectionBounds { lower: Selection::none(len)?, upper: Selection::none(len)?.invert() })
    }
}
