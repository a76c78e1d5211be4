//! The value of each row in a form without types of Arrow and tfseek, and two naive ways to it.

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Float16Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type,
    UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrayRef};
use arrow_schema::DataType;
use tfseek::TensorDType;
use tfseek::schema::FeatureSpec;
use tfseek_testkit::arrays::{Array as Flat, Data, Neutral};

/// A value. Floats are stored as bits, and elements of arrays of other types than int64 and float32 as
/// little-endian bytes.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Cell {
    Null,
    Int64(i64),
    Float32(u32),
    Bytes(Vec<u8>),
    List(Vec<Cell>),
    Sparse(Vec<(Vec<i64>, Cell)>),
}

/// Returns value `row` of an Arrow array.
pub(crate) fn of_arrow(array: &dyn Array, row: usize) -> Cell {
    if array.is_null(row) {
        return Cell::Null;
    }
    let list = |items: ArrayRef| Cell::List((0..items.len()).map(|k| of_arrow(&items, k)).collect());
    match array.data_type() {
        DataType::Boolean => Cell::Bytes(vec![u8::from(array.as_boolean().value(row))]),
        DataType::Int8 => Cell::Bytes(array.as_primitive::<Int8Type>().value(row).to_le_bytes().into()),
        DataType::Int16 => Cell::Bytes(array.as_primitive::<Int16Type>().value(row).to_le_bytes().into()),
        DataType::Int32 => Cell::Bytes(array.as_primitive::<Int32Type>().value(row).to_le_bytes().into()),
        DataType::UInt8 => Cell::Bytes(array.as_primitive::<UInt8Type>().value(row).to_le_bytes().into()),
        DataType::UInt16 => Cell::Bytes(array.as_primitive::<UInt16Type>().value(row).to_le_bytes().into()),
        DataType::UInt32 => Cell::Bytes(array.as_primitive::<UInt32Type>().value(row).to_le_bytes().into()),
        DataType::UInt64 => Cell::Bytes(array.as_primitive::<UInt64Type>().value(row).to_le_bytes().into()),
        DataType::Float16 => Cell::Bytes(array.as_primitive::<Float16Type>().value(row).to_le_bytes().into()),
        DataType::Float64 => Cell::Bytes(array.as_primitive::<Float64Type>().value(row).to_le_bytes().into()),
        DataType::Int64 => Cell::Int64(array.as_primitive::<Int64Type>().value(row)),
        DataType::Float32 => Cell::Float32(array.as_primitive::<Float32Type>().value(row).to_bits()),
        DataType::Binary => Cell::Bytes(array.as_binary::<i32>().value(row).to_vec()),
        DataType::BinaryView => Cell::Bytes(array.as_binary_view().value(row).to_vec()),
        DataType::Utf8 => Cell::Bytes(array.as_string::<i32>().value(row).into()),
        DataType::Utf8View => Cell::Bytes(array.as_string_view().value(row).into()),
        DataType::List(_) => list(array.as_list::<i32>().value(row)),
        DataType::LargeList(_) => list(array.as_list::<i64>().value(row)),
        DataType::FixedSizeList(..) => list(array.as_fixed_size_list().value(row)),
        DataType::Struct(_) => {
            let (indices, values) = (array.as_struct().column(0), array.as_struct().column(1));
            let (Cell::List(indices), Cell::List(values)) = (of_arrow(indices, row), of_arrow(values, row))
            else {
                panic!("{array:?}")
            };
            assert_eq!(indices.len(), values.len());
            let index = |cell| match cell {
                Cell::List(index) => index.into_iter().map(int).collect(),
                other => panic!("{other:?}"),
            };
            Cell::Sparse(indices.into_iter().map(index).zip(values).collect())
        }
        other => panic!("{other}"),
    }
}

fn int(cell: Cell) -> i64 {
    match cell {
        Cell::Int64(value) => value,
        other => panic!("{other:?}"),
    }
}

fn values(data: &Data) -> Vec<Cell> {
    match data {
        Data::Int64(values) => values.iter().map(|&value| Cell::Int64(value)).collect(),
        Data::Float32(values) => values.iter().map(|&bits| Cell::Float32(bits)).collect(),
        Data::Bytes(values) => values.iter().map(|value| Cell::Bytes(value.clone())).collect(),
        Data::Array(TensorDType::Int64, elements) => elements
            .iter()
            .map(|element| Cell::Int64(i64::from_le_bytes(element[..].try_into().unwrap())))
            .collect(),
        Data::Array(TensorDType::Float32, elements) => elements
            .iter()
            .map(|element| Cell::Float32(u32::from_le_bytes(element[..].try_into().unwrap())))
            .collect(),
        Data::Array(_, elements) => elements.iter().map(|element| Cell::Bytes(element.clone())).collect(),
        Data::Int32(values) => panic!("{values:?}"),
    }
}

fn ints(array: &Flat) -> Vec<i64> {
    match &array.data {
        Data::Int64(values) => values.clone(),
        Data::Int32(values) => values.iter().map(|&value| value.into()).collect(),
        other => panic!("{other:?}"),
    }
}

/// Groups cells by the inner dimensions of their shape.
fn grouped(mut cells: Vec<Cell>, shape: &[u64]) -> Vec<Cell> {
    for dim in (1..shape.len()).rev() {
        let count: u64 = shape[..dim].iter().product();
        let mut cells_left = cells.into_iter();
        cells =
            (0..count).map(|_| Cell::List(cells_left.by_ref().take(shape[dim] as usize).collect())).collect();
    }
    cells
}

fn per_row(items: Vec<(i64, Cell)>, rows: usize) -> Vec<Cell> {
    let mut lists = vec![Vec::new(); rows];
    items.into_iter().for_each(|(row, cell)| lists[row as usize].push(cell));
    lists.into_iter().map(Cell::List).collect()
}

/// Returns the value of each row of a column of a batch. `None` if the column does not determine them: the
/// number of steps is unknown.
pub(crate) fn of_column(
    column: &Neutral,
    spec: &FeatureSpec,
    lengths: Option<&Vec<i64>>,
    is_list: bool,
    rows: usize,
) -> Option<Vec<Cell>> {
    Some(match (column, spec) {
        (Neutral::Dense(array), FeatureSpec::FixedLenSequence { .. }) => {
            let cells = grouped(values(&array.data), &array.shape);
            let cells = cells.into_iter().zip(lengths?).map(|(row, &len)| match row {
                Cell::List(mut steps) => {
                    steps.truncate(len as usize);
                    Cell::List(steps)
                }
                other => panic!("{other:?}"),
            });
            cells.collect()
        }
        (Neutral::Dense(array), _) => grouped(values(&array.data), &array.shape),
        (Neutral::Optional { values: array, present }, _) => {
            let cells = values(&array.data).into_iter().zip(present);
            cells.map(|(cell, &present)| if present { cell } else { Cell::Null }).collect()
        }
        (Neutral::Sparse { .. }, FeatureSpec::VarLen { .. }) if is_list => return None,
        (Neutral::Sparse { indices, values: array, .. }, FeatureSpec::VarLen { .. }) => {
            let rows_of = ints(indices).chunks(2).map(|index| index[0]).collect::<Vec<_>>();
            per_row(rows_of.into_iter().zip(values(&array.data)).collect(), rows)
        }
        (Neutral::Sparse { indices, values: array, .. }, _) => {
            let rank = indices.shape[1] as usize;
            let mut found = vec![Vec::new(); rows];
            for (index, cell) in ints(indices).chunks(rank).zip(values(&array.data)) {
                found[index[0] as usize].push((index[1..].to_vec(), cell));
            }
            found.into_iter().map(Cell::Sparse).collect()
        }
        (Neutral::Ragged { values: array, row_splits }, _) => {
            let mut cells = grouped(values(&array.data), &array.shape);
            for splits in row_splits.iter().rev() {
                let lists = ints(splits);
                let lists = lists.windows(2).map(|ends| cells[ends[0] as usize..ends[1] as usize].to_vec());
                cells = lists.map(Cell::List).collect();
            }
            cells
        }
    })
}

/// Checks that the rows of a padded column begin with the blocks of these cells, and continue with the
/// padding.
pub(crate) fn check_padded(column: &Neutral, spec: &FeatureSpec, cells: &[Cell]) {
    let (Neutral::Dense(array), FeatureSpec::FixedLenSequence { .. }) = (column, spec) else {
        panic!("{column:?} {spec:?}")
    };
    let padded = grouped(values(&array.data), &array.shape);
    assert_eq!(padded.len(), cells.len());
    let mut longest = 0;
    for (padded, cell) in padded.iter().zip(cells) {
        let (Cell::List(padded), Cell::List(blocks)) = (padded, cell) else { panic!("{padded:?} {cell:?}") };
        assert_eq!(padded[..blocks.len()], *blocks);
        assert!(padded[blocks.len()..].windows(2).all(|two| two[0] == two[1]));
        longest = longest.max(blocks.len());
    }
    assert_eq!(array.shape[1], longest as u64);
}
