"""Columns: rows, lists, padded and dense arrays, and their use by pandas, torch and JAX."""

from __future__ import annotations

import copy
import gc
import pathlib
import pickle
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from conftest import written

import tfseek

ROWS = [[1, 2, 3], [], [4]]
NESTED = [[[1, 2], [3]], [], [[], [4, 5, 6]]]


def examples() -> list[tfseek.Example]:
    return [
        tfseek.Example(
            {
                "i": np.array(row, np.int64),
                "f": np.array(row, np.float32) / 2,
                "s": [str(value) for value in row] or None,
                "lengths": np.array([len(inner) for inner in nested], np.int64),
                "flat": np.array([value for inner in nested for value in inner], np.int64),
            }
        )
        for row, nested in zip(ROWS, NESTED)
    ]


def batch(bytes_as: str = "objects") -> dict[str, Any]:
    spec = {
        "ragged": tfseek.RaggedFeature("int64", "i"),
        "floats": tfseek.RaggedFeature("float32", "f", row_splits_dtype="int64"),
        "strings": tfseek.RaggedFeature("string", "s"),
        "nested": tfseek.RaggedFeature("int64", "flat", [tfseek.RowLengths("lengths")]),
    }
    # A feature has one form in a schema.
    sparse = {"i": tfseek.VarLenFeature("int64"), "f": tfseek.VarLenFeature("float32"), "s": tfseek.VarLenFeature("string")}
    rows = examples()
    return {**tfseek.parse_example(rows, spec, bytes_as=bytes_as), **tfseek.parse_example(rows, sparse, bytes_as=bytes_as)}


def strings(rows: Any) -> Any:
    return [[str(value).encode() for value in row] for row in rows]


def test_rows() -> None:
    found = batch()
    ragged, nested, sparse = found["ragged"], found["nested"], found["i"]
    for column in (ragged, sparse):
        assert len(column) == 3
        assert [row.tolist() for row in column] == ROWS == column.to_list()
        assert [column[i].tolist() for i in range(-3, 3)] == ROWS * 2
        assert all(column[a:b].to_list() == ROWS[a:b] for a in range(-4, 5) for b in range(-4, 5))
        assert [row.tolist() for row in column[1:]] == ROWS[1:]
        for wrong in (3, -4):
            with pytest.raises(IndexError, match=f"row {wrong}: expected a row number below 3, or from -3 to -1"):
                column[wrong]
        with pytest.raises(IndexError, match="expected a slice of adjacent rows, found step 2"):
            column[::2]
        with pytest.raises(TypeError):
            column["a"]
    assert nested.to_list() == NESTED and [row.to_list() for row in nested] == NESTED
    assert isinstance(nested[0], tfseek.Ragged) and nested[2].to_list() == NESTED[2]
    assert nested[1:].to_list() == NESTED[1:] and nested[2][1].tolist() == [4, 5, 6]
    assert ragged.row_lengths().tolist() == [3, 0, 1]
    assert found["strings"].to_list() == strings(ROWS) == found["s"].to_list()
    # Rows share the memory of the column.
    assert np.shares_memory(ragged[0], ragged.values) and np.shares_memory(sparse[2], sparse.values)


def test_parts() -> None:
    found = batch()
    values, row_splits = found["ragged"].parts()
    assert values is found["ragged"].values and row_splits is found["ragged"].row_splits
    assert isinstance(row_splits, tuple) and row_splits[0].dtype == np.int32
    indices, values, dense_shape = found["i"].parts()
    assert indices.shape == (4, 2) and values.tolist() == [1, 2, 3, 4] and dense_shape.tolist() == [3, 3]
    data, offsets = batch("offsets")["s"].values.parts()
    assert data.tobytes() == b"1234" and offsets.tolist() == [0, 1, 2, 3, 4]


def test_padded() -> None:
    found = batch()
    expected = [[1, 2, 3], [0, 0, 0], [4, 0, 0]]
    mask = [[True, True, True], [False] * 3, [True, False, False]]
    for name in ("ragged", "i"):
        padded, there = found[name].to_padded()
        assert padded.tolist() == expected and there.tolist() == mask
        assert padded.dtype == np.int64 and there.dtype == bool and padded.flags.writeable
        padded, there = found[name].to_padded(length=2, value=-1)
        assert padded.tolist() == [[1, 2], [-1, -1], [4, -1]] and there.sum() == 3
        padded, there = found[name].to_padded(5)
        assert padded.shape == (3, 5) == there.shape and padded[:, 3:].sum() == 0
        assert found[name].to_padded(0)[0].shape == (3, 0)
        assert found[name].to_dense(7).tolist() == [[1, 2, 3], [7, 7, 7], [4, 7, 7]]
        assert found[name].to_dense().tolist() == expected
        with pytest.raises(ValueError, match="length: expected 0 or more, found -1"):
            found[name].to_padded(-1)
        with pytest.raises(TypeError):
            found[name].to_padded(1.5)
        with pytest.raises(TypeError, match="expected an int64 for missing values, found float"):
            found[name].to_dense(0.5)
        with pytest.raises((MemoryError, OSError)):
            found[name].to_padded(2**62)
    for name in ("floats", "f"):
        padded, there = found[name].to_padded(value=float("nan"))
        assert padded.dtype == np.float32 and np.isnan(padded[1]).all() and padded[0].tolist() == [0.5, 1, 1.5]
        assert found[name].to_dense(3).tolist()[2] == [2, 3, 3]
    for name in ("strings", "s"):
        padded, there = found[name].to_padded()
        assert padded.tolist() == [[b"1", b"2", b"3"], [b""] * 3, [b"4", b"", b""]] and there.tolist() == mask
        assert found[name].to_dense(None).dtype == object
        assert found[name].to_padded(value=None)[0][1, 0] == b""
        assert batch("str")[name].to_padded(length=1)[0].tolist() == [["1"], [""], ["4"]]
        assert batch("offsets")[name].to_padded(length=1)[0].tolist() == [[b"1"], [b""], [b"4"]]


def test_padding_of_nested_rows() -> None:
    nested = batch()["nested"]
    padded, mask = nested.to_padded()
    assert padded.shape == mask.shape == (3, 2, 3)
    assert padded[0].tolist() == [[1, 2, 0], [3, 0, 0]] and padded[2].tolist() == [[0, 0, 0], [4, 5, 6]]
    assert mask.sum() == 6
    assert nested.to_padded(1)[0].shape == (3, 1, 3)
    assert nested.to_padded([None, 1])[0].tolist() == [[[1], [3]], [[0], [0]], [[0], [4]]]
    with pytest.raises(ValueError, match="length: expected at most 2 lengths, one per ragged dimension, found 3"):
        nested.to_padded([1, 1, 1])
    rows = [tfseek.Example({"pairs": [1, 2, 3, 4]}), tfseek.Example({"pairs": [5, 6]})]
    pairs = tfseek.parse_example(rows, {"pairs": tfseek.RaggedFeature("int64", partitions=[tfseek.UniformRowLength(2)])})["pairs"]
    padded, mask = pairs.to_padded(value=-1)
    assert padded.tolist() == [[[1, 2], [3, 4]], [[5, 6], [-1, -1]]] and mask.tolist() == [[True, True], [True, False]]


@pytest.mark.parametrize("dtype", [np.float64, np.int32, np.uint8, np.float32, np.int64, bool, object])
def test_padding_of_any_dtype(dtype: Any) -> None:
    rng = np.random.default_rng(0)
    for inner in ((), (3,)):
        lengths = rng.integers(0, 5, 40)
        splits = np.concatenate([[0], np.cumsum(lengths)])
        values = rng.integers(0, 2, (splits[-1], *inner)).astype(dtype)
        column = tfseek.Ragged(values, (splits,))
        for length in (None, 0, 2, 9):
            width = lengths.max() if length is None else length
            expected = np.zeros((40, width, *inner), dtype=dtype)
            mask = np.zeros((40, width), dtype=bool)
            for r, row in enumerate(column):
                expected[r, : len(row)], mask[r, : len(row)] = row[:width], True
            padded, there = column.to_padded(length, 0)
            assert padded.dtype == dtype and np.array_equal(padded, expected) and np.array_equal(there, mask)


def test_invalid_parts() -> None:
    values = np.arange(3)
    for splits in ([], [1, 3], [0, 2], [0, 5], [0, 2, 1, 3], [0, -1, 3]):
        with pytest.raises(tfseek.SpecError, match="row splits"):
            tfseek.Ragged(values, (np.array(splits, dtype=np.int64),)).to_padded()
    with pytest.raises(tfseek.SpecError, match="indices"):
        tfseek.Sparse(np.zeros((2, 2), np.int64), values, np.array([3, 3])).to_dense()
    # Entries beyond the shape are left out.
    dense = tfseek.Sparse(np.array([[0, 9], [-1, 0], [1, 1]]), values, np.array([2, 2])).to_dense()
    assert dense.tolist() == [[0, 0], [0, 2]]


def test_single_records() -> None:
    spec = {
        "i": tfseek.VarLenFeature("int64"),
        "name": tfseek.FixedLenFeature([], "string"),
        "names": tfseek.FixedLenFeature([2], "string"),
        "at": tfseek.SparseFeature("at", "value", "int64", 4),
    }
    record = tfseek.Example({"i": [5, 6], "name": "n", "names": ["a", "b"], "at": [3], "value": [9]})
    found = tfseek.parse_single_example(record, spec, bytes_as="offsets")
    assert len(found["i"]) == 2 and found["i"].to_list() == [5, 6] == list(found["i"]) and found["i"][1] == 6
    assert len(found["at"]) == 4 and found["at"].to_list() == [0, 0, 0, 9] and found["at"].to_padded(2)[0].tolist() == [0, 0]
    assert found["name"].to_list() == b"n" and found["name"].shape == ()
    assert repr(found["name"]) == "Bytes(b'n')"
    with pytest.raises(TypeError, match="has no rows"):
        len(found["name"])
    assert found["names"].to_list() == [b"a", b"b"]


def test_byte_strings() -> None:
    names = [["a", "bc"], ["", "d"], ["efg", "h"]]
    rows = [tfseek.Example({"x": pair, "y": pair[0]}) for pair in names]
    spec = {"x": tfseek.FixedLenFeature([2], "string"), "y": tfseek.FixedLenFeature([], "string")}
    objects, found = tfseek.parse_example(rows, spec), tfseek.parse_example(rows, spec, bytes_as="offsets")
    x, y = found["x"], found["y"]
    assert (x.shape, len(x), y.shape, len(y)) == ((3, 2), 3, (3,), 3)
    assert x.to_list() == objects["x"].tolist() and y.to_list() == objects["y"].tolist() == list(y)
    assert np.array_equal(x.to_numpy(), objects["x"]) and np.asarray(y).tolist() == [b"a", b"", b"efg"]
    assert y[-1] == b"efg" and y[1:].to_list() == [b"", b"efg"] and y[3:].to_list() == []
    assert x[1].to_list() == [b"", b"d"] and x[1:2].to_list() == [[b"", b"d"]] and [row.to_list() for row in x] == x.to_list()
    texts = tfseek.parse_example(rows, spec, bytes_as="str")
    assert texts["x"].tolist() == names and texts["y"].dtype == object
    with pytest.raises(ValueError, match='bytes_as: expected one of .*"objects", "str", "offsets".*, found "text"'):
        tfseek.parse_example(rows, spec, bytes_as="text")


def test_text_that_is_not_utf8() -> None:
    rows = [tfseek.Example({"x": ["ü", "b"]}), tfseek.Example({"x": ["c", b"d\xff"]})]
    for spec in (tfseek.FixedLenFeature([2], "string"), tfseek.VarLenFeature("string"), tfseek.RaggedFeature("string")):
        assert tfseek.parse_example(rows[:1], {"x": spec}, bytes_as="str")
        with pytest.raises(tfseek.DataError, match='row 1: feature "x": expected UTF-8 .* at 1 of a value') as e:
            tfseek.parse_example(rows, {"x": spec}, bytes_as="str")
        assert (e.value.row, e.value.feature) == (1, "x")
        with pytest.raises(tfseek.DataError) as e:
            tfseek.parse_single_example(rows[1], {"x": spec}, bytes_as="str")
        assert (e.value.row, e.value.feature) == (None, "x")


def test_columns_of_a_dataset(shards: str) -> None:
    ds = tfseek.open(shards)
    labels = ds.column("label")
    assert isinstance(labels, tfseek.Column) and len(labels) == len(ds)
    values, present = labels.parts()
    assert present.all() and np.asarray(labels) is values and labels[3] == values[3] and list(labels[:2]) == values[:2].tolist()


def test_missing_values() -> None:
    present = np.array([True, False, True])
    ints = tfseek.Column(np.array([1, 0, 3]), present)
    floats = tfseek.Column(np.array([1, 0, 3], np.float32), present)
    texts = tfseek.Column(np.array([b"a", None, b"c"], dtype=object), present)
    assert ints.to_list() == [1, None, 3] == list(ints) and ints[1] is None and ints[-1] == 3 and ints[:2].to_list() == [1, None]
    assert ints.to_dense().tolist() == [1, 0, 3] and ints.to_dense(9).tolist() == [1, 9, 3] and ints.to_dense().dtype == np.int64
    assert texts.to_list() == [b"a", None, b"c"] and texts.to_dense().tolist() == [b"a", b"", b"c"]
    assert np.asarray(ints).dtype == np.float64 and np.isnan(np.asarray(ints)[1])
    assert np.asarray(ints[::2]).dtype == np.int64
    assert np.asarray(floats).dtype == np.float32 and np.isnan(np.asarray(floats)[1])
    assert np.asarray(texts).tolist() == [b"a", None, b"c"] and np.asarray(ints, dtype=np.float32).dtype == np.float32
    with pytest.raises(IndexError):
        ints[3]


def test_texts() -> None:
    found = batch()
    assert repr(found["ragged"]) == "Ragged([[1, 2, 3], [], [4]] int64, 3 rows)"
    assert repr(found["i"]) == "Sparse([[1, 2, 3], [], [4]] int64, dense shape [3, 3])"
    assert repr(found["strings"]) == "Ragged([[b'1', b'2', b'3'], [], [b'4']] bytes, 3 rows)"
    assert repr(batch("str")["s"]) == "Sparse([['1', '2', '3'], [], ['4']] str, dense shape [3, 3])"
    assert repr(batch("offsets")["strings"]) == "Ragged([[b'1', b'2', b'3'], [], [b'4']] bytes, 3 rows)"
    assert repr(found["nested"][:1]) == "Ragged([[[1, 2], [3]]] int64, 1 row)"
    long = tfseek.Ragged(np.arange(1000), (np.array([0, 990, *range(991, 1001)]),))
    assert repr(long) == "Ragged([[0, 1, 2, 3, 4, 5, ..], [990], [991], [992], ..] int64, 11 rows)"
    column = tfseek.Column(np.array([1, 0]), np.array([True, False]))
    assert repr(column) == "Column([1, None] int64, 2 rows, 1 present)"
    assert "x" * 41 not in repr(tfseek.Bytes(np.full(100, ord("x"), np.uint8), np.array([0, 100])))


def test_copies() -> None:
    for bytes_as in ("objects", "offsets"):
        for column in batch(bytes_as).values():
            for copied in (pickle.loads(pickle.dumps(column)), copy.copy(column), copy.deepcopy(column)):
                assert type(copied) is type(column) and copied.to_list() == column.to_list()


def test_data_frames() -> None:
    pandas = pytest.importorskip("pandas")
    present = np.array([True, False, True])
    frame = pandas.DataFrame(
        {
            "label": np.arange(3),
            "int": tfseek.Column(np.array([1, 0, 3]), present),
            "text": tfseek.Column(np.array([b"a", None, b"c"], dtype=object), present),
            "rows": batch()["ragged"],
            "sparse": batch()["i"],
            "bytes": tfseek.Bytes(np.frombuffer(b"abc", np.uint8), np.array([0, 1, 1, 3])),
        }
    )
    assert frame["int"].isna().tolist() == frame["text"].isna().tolist() == [False, True, False]
    assert [row.tolist() for row in frame["rows"]] == ROWS == [row.tolist() for row in frame["sparse"]]
    assert frame["bytes"].tolist() == [b"a", b"", b"bc"] and frame["int"].sum() == 4


JAX = """
import sys
import numpy as np
import tfseek
if sys.argv[1] == "after":
    column = tfseek.Ragged(np.arange(3), (np.array([0, 1, 3], np.int32),))
import jax
present = np.array([True, False])
batch = {
    "ragged": tfseek.Ragged(np.arange(3), (np.array([0, 1, 3], np.int32),)),
    "sparse": tfseek.Sparse(np.array([[0, 0], [1, 0]]), np.array([1., 2.], np.float32), np.array([2, 1])),
    "column": tfseek.Column(np.array([1, 0]), present),
    "bytes": tfseek.Bytes(np.frombuffer(b"abcd", np.uint8), np.array([0, 1, 2, 3, 4]), (2, 2)),
}
leaves, tree = jax.tree.flatten(batch)
assert len(leaves) == 9, leaves
again = jax.tree.unflatten(tree, leaves)
assert {name: type(column) for name, column in again.items()} == {name: type(column) for name, column in batch.items()}
double = jax.tree.map(lambda array: array * 2, batch)
assert double["ragged"].values.tolist() == [0, 2, 4] and double["column"].values.tolist() == [2, 0]
device = jax.device_put(batch)
assert isinstance(device["ragged"].values, jax.Array) and device["bytes"].shape == (2, 2)
assert device["ragged"].to_list() == [[0], [1, 2]] and [row.tolist() for row in device["ragged"]] == [[0], [1, 2]]
padded, mask = device["ragged"].to_padded()
assert isinstance(padded, jax.Array) and padded.tolist() == [[0, 0], [1, 2]] and mask.tolist() == [[True, False], [True, True]]
assert device["bytes"].to_list() == [[b"a", b"b"], [b"c", b"d"]] and device["column"].to_list() == [1, None]
assert device["sparse"].to_dense().tolist() == [[1], [2]]
total = jax.jit(lambda batch: batch["ragged"].values.sum() + batch["sparse"].values.sum())(
    {name: batch[name] for name in ("ragged", "sparse")})
assert float(total) == 6
keys = [jax.tree_util.keystr(path) for path, _ in jax.tree_util.tree_flatten_with_path(batch["ragged"])[0]]
assert keys == [".values", ".row_splits[0]"], keys
jax.tree.structure(batch) == jax.tree.structure(double)
"""


@pytest.mark.parametrize("imported", ["before", "after"])
def test_jax_trees(imported: str) -> None:
    pytest.importorskip("jax")
    script = "import jax\n" + JAX if imported == "before" else JAX
    subprocess.run([sys.executable, "-c", script, imported], check=True)


def test_a_view_tests_its_own_records_only(tmp_path: pathlib.Path) -> None:
    """A record of another kind, or with several values, is no error of a view without it."""
    path = str(tmp_path / "a.tfrecord")
    values: list[Any] = [0, 1, 2, 3, 4, "x", [1, 2]]
    ds = written(path, (tfseek.Example({"m": value}) for value in values), index="memory")
    assert list(ds[:5].filter("m > 2").ids) == [3, 4]
    assert list(ds[[4, 0, 4]].filter("m > 2").ids) == [4, 4]
    assert list(ds[5:6].filter("m == 'x'").ids) == [5]
    assert list(ds.filter("present(m)").ids) == list(range(7))
    with pytest.raises(tfseek.Error, match="has values of bytes"):
        ds.filter("m > 2")


def test_batches_share_their_keys() -> None:
    """A schema has the strings of its keys once, and each batch is a dict of its own."""
    # Python shares keys of one character by itself.
    schema = tfseek.Schema({"label": tfseek.FixedLenFeature([], "int64"), "tokens": tfseek.VarLenFeature("string")})
    rows = [tfseek.Example({"label": [k], "tokens": [b"x"] * k}) for k in (1, 2, 3)]
    first, second = tfseek.parse_example(rows, schema), tfseek.parse_example(rows[1:], schema)
    assert list(first) == list(second) == ["label", "tokens"]
    assert all(one is other for one, other in zip(first, second))
    first.clear()
    first["c"] = 1
    assert second["label"].tolist() == [2, 3] and list(tfseek.parse_example(rows, schema)) == ["label", "tokens"]


def test_arrays_of_many_dimensions() -> None:
    """The object that owns the memory has up to four sizes, and longer shapes beside it."""
    values = np.arange(48)
    for shape in ([], [48], [2, 24], [2, 3, 8], [2, 3, 4, 2], [2, 3, 2, 2, 2], [1] * 20 + [48]):
        size = int(np.prod(shape))
        found = tfseek.parse_example([tfseek.Example({"x": values[:size]})] * 2, {"x": tfseek.FixedLenFeature(shape, "int64")})["x"]
        assert found.shape == (2, *shape) and np.array_equal(found[1].ravel(), values[:size])
        twin = np.asarray(found.base)
        assert twin.shape == found.shape and twin.strides == found.strides


def test_the_garbage_collector_does_not_visit_the_memory_of_arrays() -> None:
    """Thousands of arrays per batch would make it slow. The objects refer to nothing."""
    rows = [tfseek.Example({"label": [k], "name": [b"%d" % k]}) for k in range(2000)]
    schema = tfseek.Schema({"label": tfseek.FixedLenFeature([], "int64"), "name": tfseek.FixedLenFeature([], "string")})
    for _ in range(2):
        batch = tfseek.parse_example(rows, schema, bytes_as="views")
        arrays = [batch["label"], *batch["name"].tolist(), *(row["label"] for row in rows)]
        assert len(arrays) == 4001 and not any(gc.is_tracked(array.base) for array in arrays)
        gc.collect()
        assert batch["name"][1999].tobytes() == b"1999"
        del batch, arrays
