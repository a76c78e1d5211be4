//! Narrower scans: some of the columns, some of the records, and column files in place of records.

use super::columns::{SavedColumn, SavedColumns};
use super::options::{Scan, ScanSource};
use super::pandas;
use crate::error::Result;
use std::ops::Range;
use std::sync::Arc;
use tfseek::column::DatasetColumn;
use tfseek::order::Subset;

/// The numbers of records, in the order of a scan.
pub(super) type RecordNumbers = Box<dyn Iterator<Item = u64> + Send + Sync>;

/// Returns the numbers of a subset's records.
pub(super) fn numbers_of(subset: Subset) -> RecordNumbers {
    Box::new((0..subset.len()).map_while(move |k| subset.select(k)))
}

impl Scan {
    /// Returns a scan of the columns with these names only, in the order of the names. The column of record
    /// numbers stays.
    ///
    /// # Errors
    /// [`ErrorKind::Schema`](crate::ErrorKind::Schema) for a name that no column has.
    pub fn project(&self, columns: &[impl AsRef<str>]) -> Result<Scan> {
        let mut scan = self.clone();
        scan.converter = self.converter.project(columns)?;
        scan.schema = pandas::schema(scan.converter.schema().fields().to_vec());
        match self.schema.fields().first() {
            Some(number) if self.has_record => {
                scan.has_record = false;
                scan.record(number.name())
            }
            _ => Ok(scan),
        }
    }

    /// Returns the number of records, before a condition is evaluated. `None` for parts that do not know
    /// theirs.
    pub fn rows(&self) -> Option<u64> {
        match (&self.source, &self.listed, &self.subset) {
            (_, Some(numbers), _) => u64::try_from(numbers.len()).ok(),
            (_, None, Some(subset)) => Some(subset.len()),
            (ScanSource::Parts(parts), ..) => {
                parts.iter().map(|part| part.records).try_fold(0u64, |sum, part| sum.checked_add(part?))
            }
            _ => self.range.as_ref().map(|range| range.end - range.start),
        }
    }

    /// Returns a scan of the records at these positions of this one, before a condition is evaluated.
    /// Positions after the last record are left out.
    ///
    /// # Errors
    /// [`OrderError::Refused`](tfseek::error::OrderError::Refused) for records that cannot be numbered.
    pub fn slice(&self, positions: Range<u64>) -> Result<Scan> {
        let mut scan = self.clone();
        if let Some(numbers) = &self.listed {
            let at = |position: u64| position.min(numbers.len() as u64) as usize;
            let start = at(positions.start);
            if let Some(chosen) = numbers.get(start..at(positions.end).max(start)) {
                scan.listed = Some(chosen.into());
            }
        } else if let Some(subset) = &self.subset {
            let chosen: Vec<u64> = positions.map_while(|position| subset.select(position)).collect();
            scan.subset = Some(Subset::from_ids(chosen)?);
        } else if let Some(range) = &self.range {
            let at = |position: u64| range.start + position.min(range.end - range.start);
            scan.range = Some(at(positions.start)..at(positions.end).max(at(positions.start)));
        }
        Ok(scan)
    }

    /// Returns the numbers of the records, before a condition is evaluated.
    pub(super) fn numbers(&self) -> RecordNumbers {
        match (&self.listed, &self.subset, &self.range) {
            (Some(numbers), ..) => {
                let numbers = Arc::clone(numbers);
                Box::new((0..numbers.len()).map_while(move |k| numbers.get(k).copied()))
            }
            (None, Some(subset), _) => numbers_of(subset.clone()),
            (None, None, range) => Box::new(range.clone().unwrap_or(0..0)),
        }
    }
}

impl Scan {
    /// Adds columns of the dataset that are in memory, so that no files are searched for theirs.
    #[must_use]
    pub fn loaded_columns(self, columns: &[DatasetColumn]) -> Scan {
        if let (ScanSource::Dataset(dataset), Ok(mut found)) = (&self.source, self.found.lock()) {
            for column in columns.iter().filter(|column| column.len() == dataset.len()) {
                found.insert(column.feature.as_ref().into(), column.clone());
            }
        }
        self
    }

    /// Returns a scan of the same columns and records that reads column files in place of records. `None` if
    /// the scan has a condition, is one of a data set's features or denies unknown ones, or one of its
    /// columns is not in a column file. Only columns of scalar specs are, if the saved column has the type of
    /// the spec and a value wherever the spec needs one. Builds no column file.
    ///
    /// The scan has the values of the specs. A damaged record is no error, and neither is an empty list where
    /// the spec has a default: column files do not have them.
    ///
    /// # Errors
    /// Errors of [`Dataset::find_columns`](tfseek::Dataset::find_columns).
    pub fn over_columns(&self) -> Result<Option<Scan>> {
        let (ScanSource::Dataset(dataset), None) = (&self.source, &self.filter) else { return Ok(None) };
        let Some(planned) = self.converter.columns() else { return Ok(None) };
        let features = self.converter.parser_schema().features();
        let mut columns = Vec::new();
        for column in planned {
            let spec = features.get(&column.from).filter(|_| !column.is_list);
            let Some(saved) = SavedColumn::find(dataset, column, spec, &self.found)? else { return Ok(None) };
            columns.push(saved);
        }
        let saved = SavedColumns::new(dataset, columns);
        Ok(Some(Scan { source: ScanSource::Columns(Arc::new(saved)), ..self.clone() }))
    }
}
