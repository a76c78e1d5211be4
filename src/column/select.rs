//! Evaluation of filters on columns.

use super::dataset::DatasetColumn;
use super::obtain::ColumnOptions;
use super::selection::Selection;
use super::undecided::UndecidedScan;
use crate::dataset::Dataset;
use crate::error::{Error, ErrorKind, OptionsError, Result, escaped};
use crate::filter::value::Value;
use crate::filter::{Filter, Node, Test, number_meets};
use crate::order::Subset;
use crate::warning::Warning;

impl Dataset {
    /// Returns the records that meet `filter`, and the warnings from finding and building the columns and
    /// from reading records.
    ///
    /// Comparisons of one value are decided by columns, which are found or built as by
    /// [`columns`](Dataset::columns), all missing ones in one scan. Then the records are read that these
    /// leave undecided, for tests of lists, of parts of strings, of images and of payloads.
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
    /// let (some, _) = ds.select(&"label in 2..5 or label == 9".parse()?, &ColumnOptions::default())?;
    /// assert_eq!(some.iter().collect::<Vec<_>>(), [2, 3, 4, 9]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`columns`](Dataset::columns), and of reading records. A feature that has no column,
    /// because a record has several values or two records have values of different kinds, is read from the
    /// records. The errors of [`RecordFilter::accepts`](crate::filter::RecordFilter::accepts): a condition
    /// has the same result for a record here as there.
    ///
    /// In a dataset of [`Damage::Skip`](crate::Damage::Skip) a record that cannot be read or does not decode
    /// is left out if the condition depends on it, which the warnings tell ([`Warning::PayloadsSkipped`]).
    pub fn select(&self, filter: &Filter, options: &ColumnOptions) -> Result<(Subset, Vec<Warning>)> {
        let mut features = filter.column_features();
        loop {
            match self.columns(&features, options) {
                Ok(found) => return self.select_with(filter, &found, options),
                // A feature of lists, of two kinds, or of strings without bound has no column. The records
                // decide, or the error names the test.
                Err(e) if features.is_empty() => return Err(e),
                Err(e) if matches!(e.kind(), ErrorKind::Feature(_) | ErrorKind::TooLarge { .. }) => {
                    let known = features.len();
                    features
                        .retain(|name| e.location().feature.as_deref() != Some(&*escaped(name.as_bytes())));
                    if features.len() == known {
                        features.clear();
                    }
                }
                // Damage may be in a record that is not tested. A damaged column file is an error.
                Err(e) if e.is_data() && options.among.is_some() => {
                    features.clear();
                }
                Err(e) => return Err(e),
            }
        }
    }

    /// Returns the records that meet `filter`, from the given columns of its
    /// [`column_features`](Filter::column_features). Searches for and builds no files. Reads records as
    /// [`select`](Dataset::select) does. From `options` it takes [`progress`](ColumnOptions::progress),
    /// [`unknown`](ColumnOptions::unknown) and [`among`](ColumnOptions::among).
    ///
    /// # Errors
    /// [`OptionsError::ColumnNotGiven`] if `columns` lacks a feature, or its column has another number of
    /// records. The errors of [`select`](Dataset::select).
    pub fn select_from(
        &self,
        filter: &Filter,
        columns: &[DatasetColumn],
        options: &ColumnOptions,
    ) -> Result<(Subset, Vec<Warning>)> {
        let lacks = |feature: &&str| {
            !columns.iter().any(|column| *column.feature == **feature && column.len() == self.len())
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
    ) -> Result<(Subset, Vec<Warning>)> {
        let columns: Vec<&DatasetColumn> =
            columns.iter().filter(|column| column.len() == self.len()).collect();
        let bounds = Evaluation { filter, columns: &columns, len: self.len() }.of(&filter.root)?;
        let SelectionBounds { lower: mut selected, mut upper } = bounds;
        if let Some(records) = &options.among {
            let mut tested = Selection::none(self.len())?;
            records.iter().take_while(|&i| i < self.len()).for_each(|i| tested.insert(i));
            selected = selected.zip(&tested, |selected, tested| selected & tested);
            upper = upper.zip(&tested, |upper, tested| upper & tested);
        }
        let undecided = upper.zip(&selected, |upper, lower| upper & !lower);
        let mut warnings: Vec<Warning> = Vec::new();
        let known: Vec<&str> = columns.iter().map(|column| column.feature.as_ref()).collect();
        let has_unknown =
            filter.lists().next().is_some() || filter.features().iter().any(|name| !known.contains(name));
        if undecided.count() > 0 || has_unknown {
            let work = options.work(self);
            let scan = UndecidedScan { dataset: self, filter, undecided: &undecided, known, work: &work };
            let left_out = work.end(scan.add_to(&mut selected, options))?;
            warnings.extend(left_out.warning());
        }
        // Columns that were requested together share their warnings. Records that do not decode were read for
        // the selection.
        for warning in columns.iter().flat_map(|column| &column.warnings) {
            if !matches!(warning, Warning::PayloadsSkipped { .. }) && !warnings.contains(warning) {
                warnings.push(warning.clone());
            }
        }
        Ok((selected.into_subset(), warnings))
    }
}

/// The records that certainly meet a condition, and those that may meet it. They are equal where columns
/// decide.
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
                let column = self.columns.iter().find(|column| column.feature.as_ref() == name);
                let Some(column) = column.filter(|_| test.has_column()) else {
                    return SelectionBounds::unknown(self.len);
                };
                let mut found = Selection::none(self.len)?;
                // The test fails for each record with a value. The records tell whether the other tests
                // decide.
                let fails = column.kind.is_some_and(|kind| self.filter.check(test, kind).is_err());
                for (start, records, data) in column.loaded() {
                    let first = records.start;
                    let meets = |value: Value<'_>| fails || test.test.meets(value);
                    data.matching(records, meets, |i| found.insert(start + (i - first)));
                }
                let bounds = if fails {
                    SelectionBounds { lower: Selection::none(self.len)?, upper: found }
                } else {
                    let absent = matches!(test.test, Test::Absent);
                    SelectionBounds::exact(if absent { found.invert() } else { found })
                };
                match column.undecoded() {
                    Some(records) => bounds.unknown_for(records),
                    None => bounds,
                }
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

    /// Returns the same bounds, except that these records may meet the condition or not.
    fn unknown_for(self, records: &Selection) -> SelectionBounds {
        let lower = self.lower.zip(records, |lower, unknown| lower & !unknown);
        SelectionBounds { lower, upper: self.upper.zip(records, |upper, unknown| upper | unknown) }
    }
}
