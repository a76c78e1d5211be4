//! Batches as a NumPy archive, with the arrays of all batches joined.

use crate::archive::{Archive, BOOL};
use crate::growing::{GrowingIndices, GrowingSplits, GrowingValues, PaddedRows, dimension, other_schema};
use crate::spill::{SequenceId, Spill};
use std::collections::HashMap;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use tfseek::batch::{Batch, Column, Values};
use tfseek::io::Existing;
use tfseek::schema::FeatureSpec;
use tfseek::{Error, FeatureBuf, Schema};

/// A writer of batches to a NumPy archive (`.npz`), with one array per column over all batches. The archive gets its name only when it
/// is complete. It equals the archive of one batch of all records.
///
/// ```text
/// NAME                                          a dense column
/// NAME::values, ::present (bool)                an optional column
/// NAME::indices, ::values, ::dense_shape        a sparse column
/// NAME::values, ::row_splits0, ::row_splits1 .. a ragged column, row splits from outermost to innermost
/// context::NAME, sequence::NAME, lengths::NAME  columns of SequenceExamples
/// X::data (uint8), X::offsets (int64), X::shape an array X of byte strings: string j, in row-major order, is
///                                               data[offsets[j]:offsets[j + 1]]
/// ```
///
/// The rows of a padded column are as long as the longest row of all batches. Memory is bounded: values beyond 32 MiB wait in a temporary
/// file in the folder of the archive, which needs as much space again as the archive. The file has no name, so nothing remains of it.
pub struct JoinedNpzWriter {
    archive: Archive,
    spill: Spill,
    /// The columns with the names of their arrays, in the order of the first batch.
    columns: Vec<(String, JoinedColumn)>,
    /// Padding of columns, by the names of their arrays. Other columns are padded with 0 or empty strings.
    padding: HashMap<String, FeatureBuf>,
    is_sequence: bool,
    /// Number of rows of the batches.
    rows: u64,
}

/// The reason why a batch was not joined with the batches before it.
#[derive(Debug)]
#[non_exhaustive]
pub enum JoinError {
    /// The archive cannot be written.
    Write(Error),
    /// The 32-bit row splits of a column cannot hold the number of values of all batches.
    RowSplits {
        /// Name of the column.
        column: String,
        /// Number of values, or of rows of the next dimension.
        found: u64,
    },
}

impl fmt::Display for JoinError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            JoinError::Write(e) => e.fmt(f),
            JoinError::RowSplits { column, found } => write!(
                f,
                "column {column:?}: int32 row splits: expected at most {} values over all batches, found {found}",
                i32::MAX
            ),
        }
    }
}

impl std::error::Error for JoinError {}

impl From<Error> for JoinError {
    fn from(e: Error) -> JoinError {
        JoinError::Write(e)
    }
}

/// A column over all batches.
enum JoinedColumn {
    Dense {
        values: GrowingValues,
        /// Number of rows.
        rows: u64,
        /// The rows, if they have a dimension that may differ between batches.
        padded: Option<PaddedRows>,
        /// The dimension after the rows, the longest of all batches. 1 if there is none.
        blocks: usize,
        /// The dimensions after `blocks`.
        inner: Vec<usize>,
    },
    Optional {
        values: GrowingValues,
        /// One byte per row.
        present: SequenceId,
    },
    Sparse {
        indices: GrowingIndices,
        values: GrowingValues,
        dense_shape: Vec<u64>,
    },
    Ragged {
        values: GrowingValues,
        shape: Vec<usize>,
        splits: Vec<GrowingSplits>,
    },
}

impl JoinedNpzWriter {
    /// Creates an archive for batches of `schema`. Until [`finish`](JoinedNpzWriter::finish), `path` does not exist or keeps its old
    /// content.
    ///
    /// # Errors
    /// I/O errors, with the path.
    pub fn create(path: &Path, schema: &Schema, existing: Existing) -> tfseek::Result<JoinedNpzWriter> {
        JoinedNpzWriter::with_budget(path, schema, existing, Spill::BUDGET)
    }

    /// Creates an archive that keeps at most `budget` bytes of values in memory.
    fn with_budget(
        path: &Path,
        schema: &Schema,
        existing: Existing,
        budget: usize,
    ) -> tfseek::Result<JoinedNpzWriter> {
        let archive = Archive::create(path, existing)?;
        let folder = match path.parent() {
            // A FIFO or a device. Its folder may be read-only.
            _ if !archive.is_whole() => None,
            Some(folder) if folder != Path::new("") => Some(folder.to_path_buf()),
            _ => Some(PathBuf::from(".")),
        };
        let is_sequence = schema.is_sequence();
        // The padding of feature lists cannot be chosen.
        let padding = schema.features().iter().filter_map(|(name, spec)| match spec {
            FeatureSpec::FixedLenSequence { default: Some(value), .. } => {
                Some((feature(name, is_sequence), value.clone()))
            }
            _ => None,
        });
        let (padding, spill) = (padding.collect(), Spill::new(folder, budget));
        Ok(JoinedNpzWriter { archive, spill, columns: Vec::new(), padding, is_sequence, rows: 0 })
    }

    /// Adds a batch. Its rows follow those of the batches before it. After an error the archive cannot be finished.
    ///
    /// # Errors
    /// [`JoinError::RowSplits`]; I/O errors, with the path; batches of another schema than the first.
    pub fn batch(&mut self, batch: &Batch) -> Result<(), JoinError> {
        self.check_splits(batch)?;
        self.add(batch).map_err(|e| Error::from(e).in_file(self.archive.path()))?;
        Ok(())
    }

    /// Checks that the row splits of a batch can continue those of the batches before it.
    fn check_splits(&self, batch: &Batch) -> Result<(), JoinError> {
        let mut joined =
            self.columns.iter().filter(|(name, _)| !name.starts_with(LENGTHS) || !self.is_sequence);
        for (name, column) in batch.columns().chain(batch.feature_lists()) {
            let Some((_, JoinedColumn::Ragged { splits: joined, .. })) = joined.next() else { continue };
            let Column::Ragged(ragged) = column else { continue };
            let overflow =
                joined.iter().zip(&ragged.row_splits).find_map(|(joined, splits)| joined.overflow(splits));
            if let Some(found) = overflow {
                return Err(JoinError::RowSplits { column: name.into(), found });
            }
        }
        Ok(())
    }

    fn add(&mut self, batch: &Batch) -> io::Result<()> {
        let is_first = self.columns.is_empty();
        let mut k = 0;
        let mut add = |writer: &mut JoinedNpzWriter, name: String, part: JoinedInput<'_>| {
            if is_first {
                let column = JoinedColumn::new(&mut writer.spill, part);
                writer.columns.push((name, column));
            }
            let Some((_, column)) = writer.columns.get_mut(k) else { return Err(other_schema()) };
            k += 1;
            column.append(&mut writer.spill, part, writer.rows)
        };
        for (name, column) in batch.columns() {
            add(self, feature(name, self.is_sequence), JoinedInput::Column(column))?;
        }
        for (name, column) in batch.feature_lists() {
            add(self, format!("sequence::{name}"), JoinedInput::Column(column))?;
            if let Some(lengths) = batch.lengths(name) {
                add(self, format!("{LENGTHS}{name}"), JoinedInput::Lengths(&Values::Int64(lengths.clone())))?;
            }
        }
        self.rows += batch.rows() as u64;
        Ok(())
    }

    /// Returns the number of bytes of the values so far. The archive also has headers and padding.
    pub fn bytes(&self) -> u64 {
        self.spill.total()
    }

    /// Writes the arrays, syncs the archive to disk, gives it its name, and returns its path.
    ///
    /// `progress` is called with the number of bytes of each write.
    ///
    /// # Errors
    /// I/O errors, with the path.
    pub fn finish(self, progress: impl FnMut(u64) + 'static) -> tfseek::Result<PathBuf> {
        let JoinedNpzWriter { mut archive, spill, columns, padding, .. } = self;
        archive.set_progress(progress);
        for (name, mut column) in columns {
            let written = column.write(&mut archive, &spill, &name, padding.get(&name));
            written.map_err(|e| Error::from(e).in_file(archive.path()))?;
        }
        archive.finish()
    }
}

/// Prefix of the arrays of the lengths of feature lists.
const LENGTHS: &str = "lengths::";

/// Returns the name of the array of a feature.
fn feature(name: &str, is_sequence: bool) -> String {
    if is_sequence { format!("context::{name}") } else { name.to_owned() }
}

/// A part of a batch that becomes a column of the archive.
#[derive(Clone, Copy)]
enum JoinedInput<'a> {
    Column(&'a Column),
    /// Number of steps of each row of a feature list.
    Lengths(&'a Values),
}

impl JoinedColumn {
    /// Creates an empty column of the type of `part`.
    fn new(spill: &mut Spill, part: JoinedInput<'_>) -> JoinedColumn {
        let mut dense = |values, shape: &[usize]| JoinedColumn::Dense {
            values: GrowingValues::new(spill, values),
            rows: 0,
            padded: (shape.len() > 1).then(|| PaddedRows::new(spill)),
            blocks: usize::from(shape.len() < 2),
            inner: shape.iter().skip(2).copied().collect(),
        };
        match part {
            JoinedInput::Lengths(values) => dense(values, &[0]),
            JoinedInput::Column(Column::Dense(column)) => dense(&column.values, &column.shape),
            JoinedInput::Column(Column::Optional(column)) => JoinedColumn::Optional {
                values: GrowingValues::new(spill, &column.values),
                present: spill.add(),
            },
            JoinedInput::Column(Column::Sparse(column)) => JoinedColumn::Sparse {
                indices: GrowingIndices::new(spill, column.dense_shape.len()),
                values: GrowingValues::new(spill, &column.values),
                dense_shape: vec![0; column.dense_shape.len()],
            },
            JoinedInput::Column(Column::Ragged(column)) => JoinedColumn::Ragged {
                values: GrowingValues::new(spill, &column.values),
                shape: column
                    .shape
                    .iter()
                    .enumerate()
                    .map(|(k, &dim)| if k == 0 { 0 } else { dim })
                    .collect(),
                splits: column.row_splits.iter().map(|splits| GrowingSplits::new(spill, splits)).collect(),
            },
        }
    }

    /// Appends a part of a batch after the first `before` rows.
    fn append(&mut self, spill: &mut Spill, part: JoinedInput<'_>, before: u64) -> io::Result<()> {
        match (self, part) {
            (column @ JoinedColumn::Dense { .. }, JoinedInput::Lengths(values)) => {
                column.append_dense(spill, &[values.len()], values)
            }
            (column @ JoinedColumn::Dense { .. }, JoinedInput::Column(Column::Dense(dense))) => {
                column.append_dense(spill, &dense.shape, &dense.values)
            }
            (JoinedColumn::Optional { values, present }, JoinedInput::Column(Column::Optional(optional))) => {
                values.append(spill, &optional.values)?;
                spill.append(*present, &optional.present)
            }
            (
                JoinedColumn::Sparse { indices, values, dense_shape },
                JoinedInput::Column(Column::Sparse(sparse)),
            ) if dense_shape.len() == sparse.dense_shape.len() => {
                indices.append(spill, &sparse.indices, before)?;
                values.append(spill, &sparse.values)?;
                for (k, (all, &dim)) in dense_shape.iter_mut().zip(&sparse.dense_shape).enumerate() {
                    *all = if k == 0 { all.saturating_add(dim) } else { dim.max(*all) };
                }
                Ok(())
            }
            (JoinedColumn::Ragged { values, shape, splits }, JoinedInput::Column(Column::Ragged(ragged)))
                if splits.len() == ragged.row_splits.len() && shape.get(1..) == ragged.shape.get(1..) =>
            {
                values.append(spill, &ragged.values)?;
                if let ([all, ..], [n, ..]) = (shape.as_mut_slice(), ragged.shape.as_slice()) {
                    *all = dimension(*all as u128 + *n as u128)?;
                }
                let mut pairs = splits.iter_mut().zip(&ragged.row_splits);
                pairs.try_for_each(|(all, splits)| all.append(spill, splits))
            }
            _ => Err(other_schema()),
        }
    }

    fn append_dense(&mut self, spill: &mut Spill, shape: &[usize], values: &Values) -> io::Result<()> {
        let JoinedColumn::Dense { values: all, rows, padded, blocks, inner } = self else {
            return Err(other_schema());
        };
        match (shape, padded) {
            (&[n], None) => *rows += n as u64,
            (&[n, len, ref dims @ ..], Some(padded)) if dims == inner => {
                *rows += n as u64;
                *blocks = len.max(*blocks);
                let values = dims.iter().try_fold(len, |values, &dim| values.checked_mul(dim));
                padded.append(spill, n, values.ok_or_else(other_schema)?)?;
            }
            _ => return Err(other_schema()),
        }
        all.append(spill, values)
    }

    fn write(
        &mut self,
        archive: &mut Archive,
        spill: &Spill,
        name: &str,
        padding: Option<&FeatureBuf>,
    ) -> io::Result<()> {
        match self {
            JoinedColumn::Dense { values, rows, padded, blocks, inner } => {
                let mut shape = vec![dimension((*rows).into())?];
                if let Some(padded) = padded {
                    padded.end()?;
                    shape.push(*blocks);
                    shape.extend_from_slice(inner);
                }
                values.write(archive, spill, name, &shape, padded.as_ref(), padding)
            }
            JoinedColumn::Optional { values, present } => {
                let rows = [dimension(values.len.into())?];
                values.write(archive, spill, &format!("{name}::values"), &rows, None, None)?;
                archive.start(&format!("{name}::present"), BOOL, &rows)?;
                io::copy(&mut spill.reader(*present), archive).map(drop)
            }
            JoinedColumn::Sparse { indices, values, dense_shape } => {
                indices.write(archive, spill, &format!("{name}::indices"), values.len)?;
                let len = [dimension(values.len.into())?];
                values.write(archive, spill, &format!("{name}::values"), &len, None, None)?;
                // The dtype is int64, as in TensorFlow. A dimension fits into it.
                let shape: Vec<_> = dense_shape.iter().map(|&dim| dim as i64).collect();
                archive.integers(&format!("{name}::dense_shape"), &[shape.len()], &shape)
            }
            JoinedColumn::Ragged { values, shape, splits } => {
                values.write(archive, spill, &format!("{name}::values"), shape, None, None)?;
                splits.iter().enumerate().try_for_each(|(k, splits)| {
                    splits.write(archive, spill, &format!("{name}::row_splits{k}"))
                })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::NpzWriter;
    use std::cell::Cell;
    use std::fs::File;
    use std::io::Read;
    use std::rc::Rc;
    use tfseek::batch::BatchParser;
    use tfseek::schema::DType;
    use tfseek::{ErrorKind, ExampleBuilder};
    use tfseek_testkit::rng::Rng;
    use tfseek_testkit::shaped::{self, Style};

    /// Returns the names and bytes of the members of an archive.
    fn members(path: &Path) -> Vec<(String, Vec<u8>)> {
        let mut zip = zip::ZipArchive::new(File::open(path).unwrap()).unwrap();
        (0..zip.len())
            .map(|k| {
                let mut member = zip.by_index(k).unwrap();
                let mut bytes = Vec::new();
                member.read_to_end(&mut bytes).unwrap();
                (member.name().unwrap().into_owned(), bytes)
            })
            .collect()
    }

    /// Returns the archive of batches of these sizes, which is refused if the batches are.
    fn joined(
        path: &Path,
        schema: &Schema,
        rows: &[Vec<u8>],
        sizes: &mut dyn FnMut() -> usize,
        budget: usize,
    ) -> Vec<(String, Vec<u8>)> {
        let parser = BatchParser::new(schema);
        let mut npz = JoinedNpzWriter::with_budget(path, schema, Existing::Replace, budget).unwrap();
        let mut rest = rows;
        loop {
            let (batch, after) = rest.split_at(sizes().min(rest.len()));
            npz.batch(&parser.parse(batch).unwrap()).unwrap();
            rest = after;
            if rest.is_empty() {
                break;
            }
        }
        let written = Rc::new(Cell::new(0));
        let (bytes, count) = (npz.bytes(), Rc::clone(&written));
        npz.finish(move |n| count.set(count.get() + n)).unwrap();
        assert!(written.get() >= bytes.min(1));
        members(path)
    }

    /// Returns the archive of one batch.
    fn one_batch(path: &Path, schema: &Schema, rows: &[Vec<u8>]) -> Option<Vec<(String, Vec<u8>)>> {
        let batch = BatchParser::new(schema).parse(rows).ok()?;
        let mut npz = NpzWriter::create(path, Existing::Replace).unwrap();
        npz.batch(0, &batch, schema.is_sequence()).unwrap();
        npz.finish().unwrap();
        let named = members(path).into_iter();
        Some(named.map(|(name, bytes)| (name.strip_prefix("b0::").unwrap().to_owned(), bytes)).collect())
    }

    #[test]
    fn any_batches_give_the_archive_of_one_batch() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.npz");
        let (mut specs, mut padded) = (HashMap::new(), 0);
        for seed in 0..200u64 {
            let rng = &mut Rng::new(seed);
            let schema = shaped::schema(rng, seed % 2 == 1);
            let parser = BatchParser::new(&schema);
            let mut rows: Vec<_> =
                (0..rng.below(40)).map(|_| shaped::payload(rng, &schema, Style::default())).collect();
            rows.retain(|row| parser.parse(&[row]).is_ok());
            if rng.chance(32) {
                rows.clear();
            }
            let Some(want) = one_batch(&path, &schema, &rows) else { continue };
            for spec in schema.features().values().chain(schema.feature_lists().values()) {
                *specs.entry((spec.name(), rows.is_empty())).or_insert(0) += 1;
                padded += i32::from(matches!(spec, FeatureSpec::FixedLenSequence { default: Some(_), .. }));
            }
            let most = 1 + rng.below(8);
            let budget = rng.pick(&[0, 50, 1000, 1 << 20]);
            let found = joined(
                &path,
                &schema,
                &rows,
                &mut || rng.below(1 + most).max(usize::from(most == 1)),
                budget,
            );
            let names =
                |of: &[(String, Vec<u8>)]| of.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>();
            assert_eq!(names(&found), names(&want), "seed {seed}");
            for ((name, found), (_, want)) in found.iter().zip(&want) {
                assert_eq!(found, want, "seed {seed}, {name}, {} rows, {schema:?}", rows.len());
            }
        }
        assert!(specs.len() == 12 && specs.values().all(|&n| n > 1) && padded > 10, "{specs:?} {padded}");
    }

    /// Rows of different lengths in each batch, with padding of each type.
    #[test]
    fn padding_reaches_the_longest_row_of_all_batches() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.npz");
        let mut schema = Schema::example();
        for (name, dtype, value) in [
            ("i", DType::Int64, FeatureBuf::Int64(vec![-7])),
            ("f", DType::Float32, FeatureBuf::Float(vec![f32::NAN])),
            ("b", DType::Bytes, FeatureBuf::Bytes(vec![b"none".to_vec()])),
        ] {
            for (suffix, shape) in [("", &[][..]), ("2", &[2])] {
                let spec = FeatureSpec::fixed_len_sequence(shape, dtype);
                schema = schema.feature(format!("{name}{suffix}"), spec.clone());
                schema = schema.feature(format!("{name}{suffix} padded"), spec.with_default(value.clone()));
            }
        }
        let schema = schema.build().unwrap();
        let row = |k: usize| {
            let n = [2, 0, 6, 4, 0, 0, 2][k % 7];
            let mut row = ExampleBuilder::new();
            for suffix in ["", "2", " padded", "2 padded"] {
                row = row.int64(format!("i{suffix}"), (0..n).map(|k| k as i64));
                row = row.float(format!("f{suffix}"), (0..n).map(|k| k as f32));
                row = row.bytes(format!("b{suffix}"), (0..n).map(|k| "x".repeat(k)));
            }
            row.encode().unwrap()
        };
        let rows: Vec<_> = (0..14).map(row).collect();
        for n in [0, 1, 2, 5, 14] {
            let want = one_batch(&path, &schema, &rows[..n]).unwrap();
            for (size, budget) in [(1, 0), (1, 1 << 20), (2, 0), (3, 100), (20, 0)] {
                let found = joined(&path, &schema, &rows[..n], &mut || size, budget);
                assert!(found == want, "{n} rows in batches of {size}");
            }
        }
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn refused_batches() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.npz");
        let schema = |spec: FeatureSpec| Schema::example().feature("a", spec).build().unwrap();
        let (ragged, dense) =
            (schema(FeatureSpec::ragged(DType::Int64)), schema(FeatureSpec::fixed_len(&[], DType::Int64)));
        let row = ExampleBuilder::new().int64("a", [7]).encode().unwrap();
        let mut npz = JoinedNpzWriter::create(&path, &ragged, Existing::Replace).unwrap();
        npz.batch(&BatchParser::new(&ragged).parse(&[&row]).unwrap()).unwrap();
        let Err(JoinError::Write(e)) = npz.batch(&BatchParser::new(&dense).parse(&[&row]).unwrap()) else {
            panic!("batches of two schemas were joined")
        };
        assert!(matches!(e.kind(), ErrorKind::Io(_)) && e.location().path.as_deref() == Some(&path), "{e}");
        drop(npz);
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
        let e = JoinError::RowSplits { column: "a".into(), found: 1 << 31 };
        assert_eq!(
            e.to_string(),
            "column \"a\": int32 row splits: expected at most 2147483647 values over all batches, found 2147483648"
        );
    }
}
