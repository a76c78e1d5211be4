"""Optional features: at most one value per record."""

from __future__ import annotations

import pathlib
import pickle
from typing import Any

import numpy as np
import pytest
from conftest import SPEC, features, written

import tfseek

#: A value, no feature, an empty list, a feature without a kind, and a value.
ROWS = [
    tfseek.Example({"i": 7, "f": 0.5, "s": b"seven"}).to_bytes(),
    b"",
    tfseek.Example({"i": np.zeros(0, np.int64), "f": np.zeros(0, np.float32), "s": np.zeros(0, dtype=bytes)}).to_bytes(),
    tfseek.Example({"i": None, "f": None, "s": None}).to_bytes(),
    tfseek.Example({"i": -1, "f": -1.5, "s": b""}).to_bytes(),
]
OPTIONAL = {"i": tfseek.Optional("int64"), "f": tfseek.Optional("float32"), "s": tfseek.Optional("string")}
PRESENT = [True, False, False, False, True]


def test_columns_of_all_dtypes() -> None:
    found = tfseek.parse_example(ROWS, OPTIONAL)
    for column in found.values():
        assert isinstance(column, tfseek.Column)
        assert column.present.dtype == np.bool_ and column.present.tolist() == PRESENT
        assert not column.present.flags.writeable and not column.values.flags.writeable
    assert found["i"].values.dtype == np.int64 and found["i"].values.tolist() == [7, 0, 0, 0, -1]
    assert found["f"].values.dtype == np.float32 and found["f"].values.tolist() == [0.5, 0, 0, 0, -1.5]
    # An empty byte string is present, and a missing one is None.
    assert found["s"].values.dtype == object and found["s"].values.tolist() == [b"seven", None, None, None, b""]


def test_columns_equal_those_of_a_dataset(tmp_path: pathlib.Path) -> None:
    ds = written(tmp_path / "a.tfrecord", ROWS)
    batch = tfseek.parse_example(ds, OPTIONAL)
    for name in OPTIONAL:
        values, present = ds.column(name).parts()
        assert batch[name].values.tolist() == values.tolist() and batch[name].present.tolist() == present.tolist()


def test_text() -> None:
    found = tfseek.parse_example(ROWS, OPTIONAL, bytes_as="str")["s"]
    assert found.values.tolist() == ["seven", None, None, None, ""] == list(found) and found.to_dense()[1] == ""
    assert repr(found) == "Column(['seven', None, None, None, ..] str, 5 rows, 2 present)"
    with pytest.raises(tfseek.DataError, match="row 1: .*UTF-8") as e:
        tfseek.parse_example([ROWS[1], tfseek.Example({"s": b"\xff"})], OPTIONAL, bytes_as="str")
    assert (e.value.row, e.value.feature) == (1, "s")


def test_data_frames() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(tfseek.parse_example(ROWS, OPTIONAL))
    assert all((~frame[name].isna()).tolist() == PRESENT for name in OPTIONAL)
    assert frame["s"].tolist()[::4] == [b"seven", b""] and frame["f"].sum() == -1 and frame["i"].max() == 7


BIG = 2**62 + 1


def test_arrays_never_round_integers() -> None:
    rows = [tfseek.Example({"i": BIG}), tfseek.Example({"i": -7}), b""]
    big = tfseek.parse_example(rows, {"i": tfseek.Optional("int64")})["i"]
    assert np.asarray(big).dtype == object and np.asarray(big).tolist() == [BIG, -7, None]
    small = big[1:]
    assert np.asarray(small).dtype == np.float64 and np.isnan(np.asarray(small)).tolist() == [False, True]
    assert np.asarray(big[:2]).dtype == np.int64 and np.asarray(small, dtype=object).tolist() == [-7, None]
    for dtype in ("int64", "uint8", "bool"):
        with pytest.raises(ValueError, match=f"expected no missing values for an array of {dtype}, found 1: to_dense"):
            np.asarray(small, dtype=dtype)
    for limit in (2**53, -(2**53)):
        for value, expected in ((limit, np.float64), (limit + (1 if limit > 0 else -1), object)):
            column = tfseek.Column(np.array([value, 0]), np.array([True, False]))
            assert np.asarray(column).dtype == expected and np.asarray(column)[0] == value
    # Also of other dtypes, of rows of several values, and of no value.
    column = tfseek.Column(np.array([[2**64 - 1, 1], [0, 0]], dtype=np.uint64), np.array([True, False]))
    assert np.asarray(column).tolist() == [[2**64 - 1, 1], [None, None]]
    assert np.isnan(np.asarray(big[2:])).all()


def test_data_frames_never_round_integers() -> None:
    pandas = pytest.importorskip("pandas")
    rows = [tfseek.Example({"i": BIG}), b""]
    column = tfseek.parse_example(rows, {"i": tfseek.Optional("int64")})["i"]
    assert pandas.DataFrame({"i": column})["i"].tolist() == [BIG, None]
    assert pandas.Series(column, dtype="Int64")[0] == BIG


def test_bytes_as_offsets() -> None:
    values, present = tfseek.parse_example(ROWS, OPTIONAL, bytes_as="offsets")["s"].parts()
    assert isinstance(values, tfseek.Bytes)
    column = tfseek.Column(values, present)
    assert column.to_list() == [b"seven", None, None, None, b""] == np.asarray(column).tolist() and column[1] is None
    assert bytes(values.data) == b"seven" and values.offsets.tolist() == [0, 5, 5, 5, 5, 5] and present.tolist() == PRESENT


@pytest.mark.parametrize(
    ("dtype", "default", "want"),
    [
        ("int64", 5, [7, 5, 5, 5, -1]),
        (int, True, [7, 1, 1, 1, -1]),
        ("float32", 0.25, [0.5, 0.25, 0.25, 0.25, -1.5]),
        (np.float32, np.float64(2), [0.5, 2, 2, 2, -1.5]),
        ("string", "grüß", [b"seven", *["grüß".encode()] * 3, b""]),
        (bytes, [b"\xff"], [b"seven", b"\xff", b"\xff", b"\xff", b""]),
    ],
)
def test_a_default_makes_an_array(dtype: Any, default: Any, want: Any) -> None:
    name = {"int64": "i", "float32": "f", "string": "s"}[tfseek.Schema({"x": dtype}).to_json().split('"dtype": "')[1].split('"')[0]]
    found = tfseek.parse_example(ROWS, {name: tfseek.Optional(dtype, default)})[name]
    assert isinstance(found, np.ndarray) and found.shape == (5,) and found.tolist() == want
    single = tfseek.parse_single_example(b"", {name: tfseek.Optional(dtype, default=default)})[name]
    assert np.shape(single) == () and single == want[1]


def test_a_single_record() -> None:
    found = tfseek.parse_single_example(ROWS[0], OPTIONAL)
    assert found["i"].values.shape == found["i"].present.shape == () and found["i"].values == 7 and found["i"].present
    assert found["s"].values[()] == b"seven"
    found = tfseek.parse_single_example(ROWS[2], OPTIONAL)
    assert found["f"].values == 0 and not found["f"].present
    assert found["s"].values.shape == () and found["s"].values[()] is None


def test_several_values_and_other_kinds_are_errors() -> None:
    for spec in (tfseek.Optional("int64"), tfseek.Optional("int64", 0)):
        for value, message, category in [
            ([1, 2], "expected at most 1 value, found 2", "count_mismatch"),
            ([0.5], "expected int64, found float", "kind_mismatch"),
            (np.zeros(0, dtype=np.float32), "expected int64, found float", "kind_mismatch"),
        ]:
            with pytest.raises(tfseek.DataError, match=message) as e:
                tfseek.parse_example([*ROWS, tfseek.Example({"i": value}).to_bytes()], {"i": spec})
            assert (e.value.row, e.value.feature, e.value.category) == (5, "i", category)


def test_invalid_defaults() -> None:
    for default, message in [
        ([1, 2], "default: expected one value for an optional, found 2"),
        ([], "default: expected one value for an optional, found 0"),
        (2**63, "default: 9223372036854775808 does not fit into an int64"),
    ]:
        with pytest.raises(tfseek.SpecError, match=message) as e:
            tfseek.Schema({"x": tfseek.Optional("int64", default)})
        assert e.value.feature == "x"
    for dtype, default, message in [
        ("int64", 1.5, "feature 'x': default: expected integers, found 1.5"),
        ("float32", "a", "feature 'x': default: expected numbers, found 'a'"),
        ("string", 3, "feature 'x': default: expected str or bytes, found 3"),
    ]:
        with pytest.raises(TypeError, match=message):
            tfseek.Schema({"x": tfseek.Optional(dtype, default)})
    with pytest.raises(ValueError, match="'x': default: masked"):
        tfseek.Schema({"x": tfseek.Optional("int64", np.ma.masked_array([1], mask=[True]))})
    with pytest.raises(TypeError, match="dtype"):
        tfseek.Schema({"x": tfseek.Optional("int32")})


def test_schema() -> None:
    schema = tfseek.Schema({**OPTIONAL, "d": tfseek.Optional("int64", 7)})
    assert tfseek.Schema.from_json(schema.to_json()) == schema == pickle.loads(pickle.dumps(schema))
    assert '"d": {"default": 7, "dtype": "int64", "type": "optional"}' in schema.to_json()
    assert "'i': tf.io.VarLenFeature(tf.int64),  # optional" in schema.to_tensorflow()
    # The JSON form of one feature is accepted as its spec, and specs are values.
    assert tfseek.Schema({"i": {"type": "optional", "dtype": "int64"}}) == tfseek.Schema({"i": OPTIONAL["i"]})
    assert tfseek.Optional("int64", 7) == pickle.loads(pickle.dumps(tfseek.Optional("int64", 7))) != tfseek.Optional("int64")
    for default in (0.0, -0.0):
        found = tfseek.parse_single_example(b"", {"x": tfseek.Optional("float32", default)})["x"]
        assert found.tobytes() == np.float32(default).tobytes()


def test_context_of_sequence_examples() -> None:
    rows = [tfseek.SequenceExample({"i": 7}, {"t": [[1], [2]]}).to_bytes(), b""]
    spec = {"i": tfseek.Optional("int64"), "s": tfseek.Optional("string", "-")}
    context, _, _ = tfseek.parse_sequence_example(rows, spec, {"t": tfseek.VarLenFeature("int64")})
    assert context["i"].values.tolist() == [7, 0] and context["i"].present.tolist() == [True, False]
    assert context["s"].tolist() == [b"-", b"-"]
    with pytest.raises(tfseek.SpecError, match="expected fixed_sequence, found optional") as e:
        tfseek.parse_sequence_example(rows, {}, {"t": tfseek.Optional("int64")})
    assert e.value.feature == "t"


def test_inferred_and_loaded(tmp_path: pathlib.Path) -> None:
    with tfseek.Writer(tmp_path / "a.tfrecord") as writer:
        for i in range(100):
            example = dict(features(i))
            if i % 3 == 0:
                del example["name"]
            if i % 4 == 0:
                example["label"] = np.zeros(0, np.int64)
            writer.write(tfseek.Example(example))
    ds = tfseek.open(tmp_path / "a.tfrecord")
    want = {**SPEC, "name": tfseek.Optional("string"), "label": tfseek.Optional("int64")}
    assert tfseek.infer_schema(ds) == tfseek.Schema(want) == ds.schema
    loader = tfseek.Loader(ds, want, batch_size=32, shuffle=True, seed=1, ids="id")
    seen = 0
    for batch in loader:
        for i, label, name in zip(batch["id"].tolist(), batch["label"], batch["name"]):
            assert label == (None if i % 4 == 0 else i)
            assert name == (None if i % 3 == 0 else f"record {i}".encode())
            seen += 1
    assert seen == 100


def test_html() -> None:
    table = str(tfseek.show(tfseek.parse_example(ROWS, OPTIONAL)))
    assert "Optional int64 [5], 2 present" in table and "Optional bytes [5], 2 present" in table
