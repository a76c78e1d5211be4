//! Rows with nested columns as records of a data set of TensorFlow Datasets.

use super::values::strings;
use crate::error::{Error, ErrorKind, Result};
use crate::memory::collected;
use arrow_array::cast::AsArray;
use arrow_array::types::{
    Float16Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type,
    UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrayRef, ArrowPrimitiveType, RecordBatch};
use arrow_buffer::NullBuffer;
use arrow_schema::{DataType, Field, Schema as ArrowSchema};
use std::collections::HashSet;
use std::ops::Range;
use std::sync::Arc;
use tfseek_tfds::{Encoder as RecordEncoder, FeatureTree, Features, LeafClass, Scalars};

/// The encoder of the rows of a schema.
#[derive(Clone, Debug)]
pub(super) struct NestedRows {
    encoder: RecordEncoder,
    leaves: Vec<NestedLeaf>,
}

/// The way from a column to the scalars of a leaf.
#[derive(Clone, Debug)]
struct NestedLeaf {
    /// Number of the leaf in the encoder.
    number: usize,
    path: Box<str>,
    column: usize,
    steps: Vec<Descent>,
    /// True for a class label, where a null is the number -1.
    is_label: bool,
}

/// A step from an array to one in it.
#[derive(Clone, Copy, Debug)]
enum Descent {
    /// A field of structs.
    Field(usize),
    /// The items of lists.
    Items,
}

impl NestedRows {
    /// Matches columns with features: structs with dicts, and lists with sequences and shapes.
    pub(super) fn new(features: &Features, schema: &ArrowSchema) -> Result<NestedRows> {
        let encoder = RecordEncoder::new(features).map_err(Error::no_schema)?;
        let FeatureTree::Dict(names) = &features.root else {
            return Err(Error::no_schema("expected features by name"));
        };
        let mut rows = NestedRows { encoder, leaves: Vec::new() };
        for (column, field) in schema.fields().iter().enumerate() {
            let path = field.name();
            let at = At { column, steps: &[], pending: 0 };
            rows.add(feature_of(names, field, path)?, path, at, field.data_type())?;
        }
        let mut seen = HashSet::new();
        if let Some(leaf) = rows.leaves.iter().find(|leaf| !seen.insert(leaf.number)) {
            return Err(Error::schema(&leaf.path, "expected one column of the name, found two columns"));
        }
        Ok(rows)
    }

    /// Adds the leaves of a feature, which are at a place of a column.
    fn add(&mut self, feature: &FeatureTree, path: &str, at: At<'_>, found: &DataType) -> Result<()> {
        let At { column, steps, pending } = at;
        if let (1.., Some(items)) = (pending, items_of(found)) {
            let steps = [steps, &[Descent::Items]].concat();
            return self.add(feature, path, At { column, steps: &steps, pending: pending - 1 }, items);
        }
        match feature {
            FeatureTree::Dict(features) => {
                let DataType::Struct(fields) = found else {
                    return Err(Error::schema(path, format!("expected a struct, found {found}")));
                };
                for (k, field) in fields.iter().enumerate() {
                    let path = format!("{path}/{}", field.name());
                    let steps = [steps, &[Descent::Field(k)]].concat();
                    let at = At { steps: &steps, ..at };
                    self.add(feature_of(features, field, &path)?, &path, at, field.data_type())?;
                }
                Ok(())
            }
            FeatureTree::Sequence(sequence) => {
                self.add(&sequence.feature, path, At { pending: pending + 1, ..at }, found)
            }
            FeatureTree::Leaf(leaf) => {
                let number = self.encoder.number(path).ok_or_else(other_schema)?;
                let mut steps = steps.to_vec();
                let mut inner = found;
                while let Some(items) = items_of(inner) {
                    steps.push(Descent::Items);
                    inner = items;
                }
                if matches!(inner, DataType::Struct(_)) {
                    return Err(Error::schema(path, format!("expected values, found {inner}")));
                }
                // Tensors may have the items of sequences of stated lengths too.
                let is_list = steps.iter().any(|step| matches!(step, Descent::Items));
                if pending > 0 && !is_list {
                    return Err(Error::schema(path, format!("expected a list, found {found}")));
                }
                let is_label = matches!(leaf.class, LeafClass::Label(_));
                self.leaves.push(NestedLeaf { number, path: path.into(), column, steps, is_label });
                Ok(())
            }
            _ => Err(Error::schema(path, "expected a known feature")),
        }
    }

    /// Calls `f` with the payload of each row, in order.
    pub(super) fn encode(
        &mut self,
        batch: &RecordBatch,
        round: bool,
        mut f: impl FnMut(&[u8]) -> tfseek::Result<()>,
    ) -> Result<()> {
        let named = |leaf: &NestedLeaf, e: Error| e.column_named(&leaf.path);
        let mut columns = Vec::with_capacity(self.leaves.len());
        for leaf in &self.leaves {
            let Some(array) = batch.columns().get(leaf.column) else { continue };
            columns.push((leaf, NestedColumn::new(array, leaf).map_err(|e| named(leaf, e))?));
        }
        let mut scalars = Vec::with_capacity(columns.len());
        for (leaf, column) in &columns {
            scalars.push(LeafScalars::new(&column.leaves, leaf.is_label).map_err(|e| named(leaf, e))?);
        }
        let encoder = &mut self.encoder;
        for row in 0..batch.num_rows() {
            for ((leaf, column), scalars) in columns.iter().zip(&scalars) {
                let Some((lengths, range)) = column.row(row).map_err(|e| named(leaf, e).in_row(row))? else {
                    continue;
                };
                let part = || scalars.part(range.clone(), row).map_err(|e| named(leaf, e));
                set(encoder, leaf, &lengths, part, round).map_err(|e| e.in_row(row))?;
            }
            let payload = encoder.finish().map_err(|e| refused(e, row))?;
            f(&payload).map_err(ErrorKind::Record)?;
        }
        Ok(())
    }
}

/// Sets the value of a leaf. Floats that are refused only because they are not exact have an error of their
/// own.
fn set<'s, 'a: 's>(
    encoder: &mut RecordEncoder,
    leaf: &NestedLeaf,
    lengths: &[Vec<usize>],
    part: impl Fn() -> Result<ScalarsPart<'s, 'a>>,
    round: bool,
) -> Result<()> {
    let mut given = part()?;
    let Err(e) = encoder.set(leaf.number, lengths, given.scalars(round)) else {
        return Ok(());
    };
    let is_inexact = !round
        && matches!(given, ScalarsPart::Floats(_))
        && encoder.set(leaf.number, lengths, part()?.scalars(true)).is_ok();
    if is_inexact {
        let kind = ErrorKind::Inexact(e.into_kind().to_string().into());
        return Err(Error::from(kind).column_named(&leaf.path));
    }
    Err(refused(e, 0))
}

/// Returns the error of a value of a row.
fn refused(e: tfseek::Error, row: usize) -> Error {
    // Lack of memory is no fault of the value.
    if matches!(e.kind(), tfseek::ErrorKind::Io(_)) {
        return e.into();
    }
    let column = e.location().feature.clone();
    let error = Error::value(row, e.into_kind().to_string());
    match column {
        Some(column) => error.column_named(&column),
        None => error,
    }
}

/// A place in a column.
#[derive(Clone, Copy)]
struct At<'a> {
    column: usize,
    steps: &'a [Descent],
    /// The number of sequences whose lists are inside of structs.
    pending: usize,
}

/// Returns the feature of a field, whose path is `path`.
fn feature_of<'f>(
    features: &'f [(Box<str>, FeatureTree)],
    field: &Field,
    path: &str,
) -> Result<&'f FeatureTree> {
    let found = features.iter().find(|(name, _)| **name == **field.name());
    let other = || Error::schema(path, "expected a feature of the data set, found another name");
    found.map(|(_, feature)| feature).ok_or_else(other)
}

/// Returns the type of the items of lists.
fn items_of(found: &DataType) -> Option<&DataType> {
    let item: &Arc<Field> = match found {
        DataType::List(item) | DataType::LargeList(item) | DataType::FixedSizeList(item, _) => item,
        _ => return None,
    };
    Some(item.data_type())
}

/// The lengths of the lists of a row, and the range of its scalars.
type RowLists = (Vec<Vec<usize>>, Range<usize>);

/// A column without its structs and lists.
struct NestedColumn {
    /// Rows without a value.
    absent: Vec<bool>,
    /// For each list, outermost first: the ends of the lists, in items of the next, or for the innermost in
    /// scalars.
    ends: Vec<Vec<usize>>,
    leaves: ArrayRef,
}

impl NestedColumn {
    fn new(array: &ArrayRef, leaf: &NestedLeaf) -> Result<NestedColumn> {
        let mut array = ArrayRef::clone(array);
        let mut absent = collected(array.len(), std::iter::repeat_n(false, array.len()))?;
        let mut ends: Vec<Vec<usize>> = Vec::new();
        for step in &leaf.steps {
            check_nulls(&array, &ends, &mut absent)?;
            match step {
                Descent::Field(k) => {
                    let fields = array.as_struct();
                    let field = fields.columns().get(*k).ok_or_else(other_schema)?;
                    array = ArrayRef::clone(field);
                }
                Descent::Items => {
                    let (own, items) = lists(&array)?;
                    ends.push(own);
                    array = items;
                }
            }
        }
        // A null of a label is a number.
        if !leaf.is_label {
            check_nulls(&array, &ends, &mut absent)?;
        }
        Ok(NestedColumn { absent, ends, leaves: array })
    }

    /// Returns the lengths of the lists of a row and the range of its scalars. `None` for a row without a
    /// value.
    fn row(&self, row: usize) -> Result<Option<RowLists>> {
        if self.absent.get(row).copied().unwrap_or(true) {
            return Ok(None);
        }
        let mut range = row..row + 1;
        let mut lengths = Vec::with_capacity(self.ends.len());
        for ends in &self.ends {
            let own = ends.get(range.start..=range.end).ok_or_else(other_schema)?;
            let (Some(from), Some(to)) = (own.first(), own.last()) else { return Err(other_schema()) };
            let pairs = own.iter().zip(own.iter().skip(1));
            lengths.push(collected(own.len(), pairs.map(|(from, to)| to.saturating_sub(*from)))?);
            range = *from..*to;
        }
        Ok(Some((lengths, range)))
    }
}

fn other_schema() -> Error {
    Error::batch("expected a batch with the columns of the schema, found other ones")
}

/// Notes rows that are null. Refuses nulls in the lists of other rows, whose items have these `ends`.
fn check_nulls(array: &ArrayRef, ends: &[Vec<usize>], absent: &mut [bool]) -> Result<()> {
    let Some(nulls) = array.logical_nulls().filter(|nulls| nulls.null_count() > 0) else { return Ok(()) };
    for (row, absent) in absent.iter_mut().enumerate().filter(|(_, absent)| !**absent) {
        let inside = ends
            .iter()
            .try_fold(row..row + 1, |items, ends| Some(*ends.get(items.start)?..*ends.get(items.end)?));
        let has_null = inside.ok_or_else(other_schema)?.any(|item| nulls.is_null(item));
        match ends {
            [] => *absent = has_null,
            _ if has_null => {
                return Err(ErrorKind::Value("expected a value, found a null inside a list".into()).into());
            }
            _ => {}
        }
    }
    Ok(())
}

/// Returns the ends of lists, after a 0, and their items.
fn lists(array: &ArrayRef) -> Result<(Vec<usize>, ArrayRef)> {
    let of = |end: i64| usize::try_from(end).unwrap_or_default();
    let count = array.len() + 1;
    let (ends, items): (Vec<usize>, &ArrayRef) = match array.data_type() {
        DataType::List(_) => {
            let lists = array.as_list::<i32>();
            (collected(count, lists.value_offsets().iter().map(|end| of((*end).into())))?, lists.values())
        }
        DataType::LargeList(_) => {
            let lists = array.as_list::<i64>();
            (collected(count, lists.value_offsets().iter().map(|end| of(*end)))?, lists.values())
        }
        DataType::FixedSizeList(_, size) => {
            let lists = array.as_fixed_size_list();
            let size = usize::try_from(*size).unwrap_or_default();
            let first = of(lists.value_offset(0).into());
            let end = |k: usize| first + k * size;
            (collected(count, (0..=lists.len()).map(end))?, lists.values())
        }
        _ => return Err(other_schema()),
    };
    Ok((ends, ArrayRef::clone(items)))
}

/// The scalars of a column.
enum LeafScalars<'a> {
    /// Numbers, which are converted row by row. A null is [`NO_LABEL`].
    Numbers(&'a ArrayRef, Option<NullBuffer>),
    Strings(Vec<&'a [u8]>),
    /// Strings of a label, some of which are null.
    Labels(Vec<Option<&'a [u8]>>),
}

/// A part of the scalars of a column.
enum ScalarsPart<'s, 'a> {
    Integers(Box<dyn ExactSizeIterator<Item = i128> + 's>),
    Floats(Box<dyn ExactSizeIterator<Item = f64> + 's>),
    Strings(&'s [&'a [u8]]),
    Named(Vec<&'a [u8]>),
}

impl ScalarsPart<'_, '_> {
    fn scalars(&mut self, round: bool) -> Scalars<'_> {
        match self {
            ScalarsPart::Integers(values) => Scalars::Integers(&mut **values),
            ScalarsPart::Floats(values) => {
                if round {
                    Scalars::Rounded(&mut **values)
                } else {
                    Scalars::Floats(&mut **values)
                }
            }
            ScalarsPart::Strings(values) => Scalars::Strings(values),
            ScalarsPart::Named(values) => Scalars::Strings(values),
        }
    }
}

/// The number of a label that has none.
const NO_LABEL: i128 = -1;

/// Returns the numbers of a range, converted one by one.
fn numbers<'s, T: ArrowPrimitiveType<Native: Into<U>>, U>(
    array: &'s ArrayRef,
    range: Range<usize>,
) -> Box<dyn ExactSizeIterator<Item = U> + 's> {
    let values: &'s [T::Native] = array.as_primitive::<T>().values();
    Box::new(values.get(range).unwrap_or_default().iter().map(|value| (*value).into()))
}

impl<'a> LeafScalars<'a> {
    fn new(array: &'a ArrayRef, is_label: bool) -> Result<LeafScalars<'a>> {
        let nulls = array.logical_nulls();
        let found = array.data_type();
        if found.is_integer() || found.is_floating() || *found == DataType::Boolean {
            return Ok(LeafScalars::Numbers(array, nulls.filter(|_| is_label)));
        }
        if *found == DataType::Null {
            return Ok(LeafScalars::Labels(collected(array.len(), std::iter::repeat_n(None, array.len()))?));
        }
        if !has_strings(found) {
            let reason = format!("expected numbers or byte strings, found {found}");
            return Err(ErrorKind::Value(reason.into()).into());
        }
        let strings = strings(array)?;
        let Some(nulls) = nulls.filter(|nulls| nulls.null_count() > 0) else {
            return Ok(LeafScalars::Strings(strings));
        };
        let some = |(k, string): (usize, &&'a [u8])| nulls.is_valid(k).then_some(*string);
        Ok(LeafScalars::Labels(collected(strings.len(), strings.iter().enumerate().map(some))?))
    }

    /// Returns the scalars in a range.
    fn part(&self, range: Range<usize>, row: usize) -> Result<ScalarsPart<'_, 'a>> {
        Ok(match self {
            LeafScalars::Numbers(array, nulls) => part_of_numbers(array, nulls.as_ref(), range)?,
            LeafScalars::Strings(values) => ScalarsPart::Strings(values.get(range).unwrap_or_default()),
            LeafScalars::Labels(values) => {
                let values = values.get(range).unwrap_or_default();
                let named = collected(values.len(), values.iter().flatten().copied())?;
                if named.is_empty() {
                    ScalarsPart::Integers(Box::new(values.iter().map(|_| NO_LABEL)))
                } else if named.len() == values.len() {
                    ScalarsPart::Named(named)
                } else {
                    let reason = "expected names for all labels of a row or for none, found nulls among them";
                    return Err(Error::value(row, reason));
                }
            }
        })
    }
}

/// Returns the numbers in a range.
fn part_of_numbers<'s, 'a>(
    array: &'s ArrayRef,
    nulls: Option<&'s NullBuffer>,
    range: Range<usize>,
) -> Result<ScalarsPart<'s, 'a>> {
    let of = range.clone();
    let integers = match array.data_type() {
        DataType::Boolean => {
            let values = array.as_boolean().values();
            Box::new(of.map(|k| i128::from(k < values.len() && values.value(k))))
        }
        DataType::Int8 => numbers::<Int8Type, _>(array, of),
        DataType::Int16 => numbers::<Int16Type, _>(array, of),
        DataType::Int32 => numbers::<Int32Type, _>(array, of),
        DataType::Int64 => numbers::<Int64Type, _>(array, of),
        DataType::UInt8 => numbers::<UInt8Type, _>(array, of),
        DataType::UInt16 => numbers::<UInt16Type, _>(array, of),
        DataType::UInt32 => numbers::<UInt32Type, _>(array, of),
        DataType::UInt64 => numbers::<UInt64Type, _>(array, of),
        DataType::Float16 => return Ok(ScalarsPart::Floats(numbers::<Float16Type, _>(array, of))),
        DataType::Float32 => return Ok(ScalarsPart::Floats(numbers::<Float32Type, _>(array, of))),
        DataType::Float64 => return Ok(ScalarsPart::Floats(numbers::<Float64Type, _>(array, of))),
        _ => return Err(other_schema()),
    };
    Ok(ScalarsPart::Integers(match nulls {
        None => integers,
        Some(nulls) => {
            let number = |(value, k)| if nulls.is_null(k) { NO_LABEL } else { value };
            Box::new(integers.zip(range).map(number))
        }
    }))
}

/// Returns true for the type of byte strings or texts, or of a dictionary of them.
fn has_strings(found: &DataType) -> bool {
    match found {
        DataType::Dictionary(_, values) => has_strings(values),
        other => other.is_string() || other.is_binary(),
    }
}
