"""Schemas, specs and the functions that parse."""

from __future__ import annotations

import gc
import io
import pathlib
import pickle
import threading
import types
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
from conftest import SPEC, features

import tfseek

PAYLOADS = [tfseek.Example(features(i)).to_bytes() for i in range(20)]


def test_arrays() -> None:
    found = tfseek.parse_example(PAYLOADS, SPEC)
    assert list(found) == sorted(SPEC)
    assert found["label"].tolist() == list(range(20)) and found["label"].dtype == np.int64
    assert found["emb"].shape == (20, 8) and found["emb"].dtype == np.float32
    assert found["name"].dtype == object and found["name"][3] == b"record 3"
    assert isinstance(found["tokens"], tfseek.Sparse) and found["tokens"].dense_shape.tolist() == [20, 4]
    for array in (found["label"], found["emb"], found["name"], *found["tokens"].parts()):
        assert not array.flags.writeable
        with pytest.raises(ValueError):
            array[...] = array[0] if array.ndim else 0


def test_types_of_payloads(ds: tfseek.Dataset) -> None:
    want = tfseek.parse_example(PAYLOADS, SPEC)
    array = np.empty(20, dtype=object)
    array[:] = PAYLOADS
    for payloads in (tuple(PAYLOADS), iter(PAYLOADS), map(bytearray, PAYLOADS), array):
        assert tfseek.parse_example(payloads, SPEC)["emb"].tolist() == want["emb"].tolist()
    whole = tfseek.parse_example(ds, SPEC)
    assert sorted(whole["label"].tolist()) == list(range(len(ds)))
    assert len(tfseek.parse_example([], SPEC)["label"]) == 0
    for payload in ("text", 3, None):
        with pytest.raises(TypeError):
            tfseek.parse_example([payload], SPEC)  # type: ignore[list-item]
    with pytest.raises(TypeError):
        # A single payload is not a list of payloads: its items are ints.
        tfseek.parse_example(PAYLOADS[0], SPEC)


def test_bytes_as_offsets(ds: tfseek.Dataset) -> None:
    for payloads in (PAYLOADS, ds):
        objects = tfseek.parse_example(payloads, SPEC)["name"]
        found = tfseek.parse_example(payloads, SPEC, bytes_as="offsets")["name"]
        assert isinstance(found, tfseek.Bytes)
        assert found.data.dtype.name == "uint8" and found.offsets.dtype.name == "int64"
        ends = found.offsets.tolist()
        assert [bytes(found.data[a:b]) for a, b in zip(ends, ends[1:])] == objects.tolist()
    with pytest.raises(ValueError, match="bytes_as"):
        tfseek.parse_example(PAYLOADS, SPEC, bytes_as="x")


def test_single() -> None:
    found = tfseek.parse_single_example(PAYLOADS[3], SPEC)
    assert found["label"].shape == () and found["label"] == 3
    assert found["name"] == b"record 3"
    assert found["tokens"].indices.tolist() == [[0], [1], [2]]


@pytest.mark.parametrize(
    ("dtypes", "name"),
    [
        (["int64", "int", int, np.int64, np.dtype("int64"), types.SimpleNamespace(name="int64")], "int64"),
        (["float32", "float", float, np.float32, np.dtype("float32"), types.SimpleNamespace(name="float32")], "float32"),
        (["string", "bytes", "byte", bytes, str, object, np.bytes_, types.SimpleNamespace(name="string")], "string"),
    ],
)
def test_dtypes(dtypes: list[Any], name: str) -> None:
    want = tfseek.Schema({"x": tfseek.VarLenFeature(name)})
    for dtype in dtypes:
        assert tfseek.Schema({"x": tfseek.VarLenFeature(dtype)}) == want
        assert tfseek.Schema({"x": dtype}) == tfseek.Schema({"x": tfseek.RaggedFeature(name)})
    assert f'"dtype": "{name}"' in want.to_json()


@pytest.mark.parametrize("dtype", ["int32", np.float64, np.int32, "x", 3, None])
def test_invalid_dtypes(dtype: Any) -> None:
    with pytest.raises(TypeError, match="'x'"):
        tfseek.Schema({"x": tfseek.VarLenFeature(dtype)})


@pytest.mark.parametrize(
    ("shape", "dtype", "default"),
    [
        ([], "int64", 5),
        ([2], "int64", [1, 2]),
        ([2, 1], "int64", np.array([[1], [2]])),
        (3, "float32", [0.1, float("nan"), float("-inf")]),
        ((), np.float32, 1),
        ([], "string", "grüß"),
        ([2], "string", [b"\xff", ""]),
    ],
)
def test_defaults_keep_their_bits(shape: Any, dtype: Any, default: Any) -> None:
    spec = {"x": tfseek.FixedLenFeature(shape, dtype, default)}
    found = tfseek.parse_single_example(b"", spec)["x"]
    kind = object if isinstance(found, bytes) else found.dtype
    want = np.asarray(default, dtype=kind)
    if kind == object:
        want = np.vectorize(lambda v: v.encode() if isinstance(v, str) else v, otypes=[object])(want)
        assert np.asarray(found, object).tolist() == want.tolist()
    else:
        assert found.tobytes() == want.tobytes()


def test_equal_specs_with_different_bits() -> None:
    for default in (0.0, -0.0):
        found = tfseek.parse_single_example(b"", {"x": tfseek.FixedLenFeature([], "float32", default)})["x"]
        assert found.tobytes() == np.float32(default).tobytes()


def test_invalid_specs_are_refused() -> None:
    for spec, field in [
        (tfseek.FixedLenFeature([2], "int64", [1]), "2 values"),
        (tfseek.FixedLenSequenceFeature([], "int64"), "allow_missing"),
        (tfseek.RaggedFeature("int64", row_splits_dtype="int16"), "int16"),
        ({"type": "fixed", "dtype": "int64", "shpae": []}, "shpae"),
    ]:
        with pytest.raises(tfseek.SpecError, match=field) as e:
            tfseek.parse_example([], {"x": spec})
        assert e.value.feature == "x" and e.value.category == "bad_spec"
    for default in ("x", 1.5):
        with pytest.raises(TypeError, match="'x'"):
            tfseek.Schema({"x": tfseek.FixedLenFeature([], "int64", default)})
    with pytest.raises(tfseek.SpecError):
        tfseek.Schema({"x": tfseek.FixedLenFeature([], "int64", 2**63)})
    with pytest.raises(TypeError):
        tfseek.Schema()
    with pytest.raises(TypeError):
        tfseek.Schema({}, context_features={})
    with pytest.raises(TypeError):
        tfseek.Schema({3: "int64"})


def test_empty_specs_are_refused(ds: tfseek.Dataset) -> None:
    """TensorFlow refuses them as well. A forgotten spec must not yield empty batches."""
    empty = tfseek.Schema({})
    steps = tfseek.Schema(context_features={}, sequence_features={})
    for call in (
        lambda: tfseek.parse_example(PAYLOADS, {}),
        lambda: tfseek.parse_single_example(PAYLOADS[0], {}),
        lambda: tfseek.parse_example(PAYLOADS, empty),
        lambda: tfseek.parse_sequence_example([b""], {}, {}),
        lambda: tfseek.parse_sequence_example([b""]),
        lambda: tfseek.parse_single_sequence_example(b"", {}, {}),
        lambda: tfseek.parse_single_sequence_example(b"", steps),
        lambda: tfseek.Loader(ds, {}, batch_size=3),
    ):
        with pytest.raises(tfseek.SpecError, match="at least one feature") as e:
            call()
        assert isinstance(e.value, ValueError) and e.value.category == "bad_spec"
    # One of the two parts is enough.
    found = tfseek.parse_sequence_example([b""], {"a": tfseek.VarLenFeature("int64")}, {})
    assert list(found[0]) == ["a"] and found[1:] == ({}, {})
    # A schema may be inferred from records without features.
    assert tfseek.infer_schema([b"\x0a\x00"]) == empty


class Dimension:
    """An integer with only ``__index__``, like TensorFlow's."""

    def __index__(self) -> int:
        return 2


@pytest.mark.parametrize("wrong", [3.7, 3.0, "3", b"3", True, np.True_, np.float64(2), None, [2]])
def test_numbers_in_specs_are_never_truncated(wrong: Any) -> None:
    sequence: Any = tfseek.FixedLenSequenceFeature
    specs: list[tuple[str, Any]] = [
        ("shape", tfseek.FixedLenFeature([2, wrong], "int64")),
        ("shape", sequence([wrong], "int64", allow_missing=True)),
        ("size", tfseek.SparseFeature("i", "v", "int64", [wrong])),
        ("uniform_row_length", tfseek.RaggedFeature("int64", partitions=[tfseek.UniformRowLength(wrong)])),
    ]
    if wrong != [2]:
        specs.append(("shape", tfseek.FixedLenFeature(wrong, "int64")))
        specs.append(("size", tfseek.SparseFeature("i", "v", "int64", wrong)))
    for argument, spec in specs:
        with pytest.raises(TypeError, match=f"feature 'x': {argument}: expected .*integer") as e:
            tfseek.Schema({"x": spec})
        assert repr(wrong) in str(e.value)


def test_integers_of_specs_have_index_methods() -> None:
    def of(number: Any) -> tfseek.Schema:
        return tfseek.Schema(
            {
                "a": tfseek.FixedLenFeature([number, number], "int64"),
                "b": tfseek.SparseFeature(["i", "j"], "v", "int64", (number, number)),
                "c": tfseek.RaggedFeature("int64", partitions=[tfseek.UniformRowLength(number)]),
                "d": tfseek.RaggedFeature("int64", partitions=number),
                "e": tfseek.FixedLenFeature(number, "int64"),
            }
        )

    assert of(2) == of(np.int64(2)) == of(np.uint8(2))
    assert tfseek.Schema({"a": tfseek.FixedLenFeature([Dimension()], "int64")}) == tfseek.Schema(
        {"a": tfseek.FixedLenFeature(np.array([2]), "int64")}
    )


def test_a_shape_of_none_names_the_specs_of_any_number() -> None:
    record = bytes(tfseek.Example({"x": 1}))
    words = r"feature 'x': shape: expected integers \(\[\] for one value; VarLenFeature or RaggedFeature for any number\), found None"
    with pytest.raises(TypeError, match=words):
        tfseek.parse_example([record], {"x": tfseek.FixedLenFeature(None, "int64")})


def test_shapes_and_row_lengths_are_below_2_to_62() -> None:
    for number, word in ((2**62, "2.62"), (2**63, "2.62"), (2**64, "out of range"), (-1, "out of range"), (-(2**70), "out")):
        for argument, spec in (
            ("shape", tfseek.FixedLenFeature([number], "int64")),
            ("shape", tfseek.FixedLenFeature([number, 0], "int64")),
            ("shape", tfseek.FixedLenSequenceFeature([number], "int64", allow_missing=True)),
            ("length", tfseek.RaggedFeature("int64", partitions=[tfseek.UniformRowLength(number)])),
        ):
            with pytest.raises(tfseek.SpecError, match=f"{argument}: .*{word}") as e:
                tfseek.Schema({"x": spec})
            assert e.value.feature == "x" and str(number) in str(e.value)
    tfseek.Schema({"x": tfseek.FixedLenFeature([2**62 - 1], "int64")})
    assert str(2**63 - 1) in tfseek.Schema({"x": tfseek.SparseFeature("i", "v", "int64", 2**63 - 1)}).to_json()
    with pytest.raises(tfseek.SpecError, match="int64"):
        tfseek.Schema({"x": tfseek.SparseFeature("i", "v", "int64", 2**63)})


@pytest.mark.parametrize(
    ("default", "want"),
    [
        (True, 1.0),
        (np.True_, 1.0),
        (2**64, 2.0**64),
        (np.array([2**64], dtype=object), 2.0**64),
        (2**200, float("inf")),
        (-(2**200), float("-inf")),
        (1e300, float("inf")),
        (np.float16(0.1), float(np.float16(0.1))),
        (np.uint64(2**64 - 1), 2.0**64),
        ([[True]], 1.0),
    ],
)
def test_float_defaults_match_tensorflow(default: Any, want: float) -> None:
    """Observed on TensorFlow 2.21: ``tf.io.parse_example`` of an empty Example."""
    found = tfseek.parse_single_example(b"", {"x": tfseek.FixedLenFeature([], "float32", default)})["x"]
    assert found.tobytes() == np.float32(want).tobytes()


def test_defaults_that_do_not_fit_name_their_feature() -> None:
    value: Any
    for value in (2**63, -(2**63) - 1, 2**64, 2**200, np.uint64(2**64 - 1), [2**63], np.array([2**64], dtype=object)):
        with pytest.raises(tfseek.SpecError, match='feature "x".*does not fit into an int64') as e:
            tfseek.Schema({"x": tfseek.FixedLenFeature([], "int64", value)})
        assert e.value.feature == "x"
    for value in (10**400, 10**5000):
        with pytest.raises(tfseek.SpecError, match='feature "x".*does not fit into a float'):
            tfseek.Schema({"x": tfseek.FixedLenFeature([], "float32", value)})
    for value in ("1", b"1", 1j, [1, "2"], None.__class__):
        with pytest.raises(TypeError, match="'x'"):
            tfseek.Schema({"x": tfseek.FixedLenFeature([], "float32", value)})
    assert tfseek.parse_single_example(b"", {"x": tfseek.FixedLenFeature([], "int64", True)})["x"] == 1


def test_names_of_features_may_be_bytes() -> None:
    ours = {
        "label": tfseek.FixedLenFeature([], "int64"),
        "grüße": tfseek.RaggedFeature("int64", "v", [tfseek.RowSplits("k")]),
        "s": tfseek.SparseFeature(["i"], "w", "int64", [3]),
    }
    theirs = {
        b"label": tfseek.FixedLenFeature([], "int64"),
        "grüße".encode(): tfseek.RaggedFeature("int64", b"v", [tfseek.RowSplits(b"k")]),
        b"s": tfseek.SparseFeature([b"i"], b"w", "int64", [3]),
    }
    assert tfseek.Schema(theirs) == tfseek.Schema(ours)
    assert tfseek.parse_example(PAYLOADS, {b"label": ours["label"]})["label"].tolist() == list(range(20))
    with pytest.raises(ValueError, match="UTF-8"):
        tfseek.Schema({b"\xff": ours["label"]})
    with pytest.raises(tfseek.SpecError, match="twice") as e:
        tfseek.Schema({b"label": ours["label"], "label": ours["label"]})
    assert e.value.feature == "label"


@pytest.mark.parametrize("dtype", ["half", "float16", "double", "float64", "bfloat16", types.SimpleNamespace(name="bfloat16")])
def test_records_hold_no_floats_of_other_sizes(dtype: Any) -> None:
    with pytest.raises(TypeError, match="feature 'x': dtype: expected int64, float32 or string, found"):
        tfseek.Schema({"x": tfseek.VarLenFeature(dtype)})


def test_masked_defaults_are_refused() -> None:
    masked = np.ma.masked_array([1, 2], mask=[False, True])
    for dtype, value in (("int64", masked), ("float32", masked), ("string", np.ma.masked_array(["a", "b"], mask=[False, True]))):
        with pytest.raises(ValueError, match="'x'.*masked"):
            tfseek.Schema({"x": tfseek.FixedLenFeature([2], dtype, value)})
        with pytest.raises(ValueError, match="'x'.*masked"):
            tfseek.Schema({"x": tfseek.FixedLenFeature([1, 2], dtype, [value])})
    whole = np.ma.masked_array([1, 2], mask=[False, False])
    tfseek.Schema({"x": tfseek.FixedLenFeature([2], "int64", whole)})


def test_memory_with_one_owner_is_writable(ds: tfseek.Dataset) -> None:
    """Arrays for torch: memory of a batch that only the array owns."""
    spec = {"label": tfseek.FixedLenFeature([], "int64"), "emb": tfseek.FixedLenFeature([8], "float32")}
    label = tfseek.parse_example(PAYLOADS, spec)["label"]
    own = label.base.writable
    assert own.flags.writeable and own.ctypes.data == label.ctypes.data and own.shape == label.shape
    own += 1
    assert label.tolist() == list(range(1, 21)) and not label.flags.writeable
    # Memory is not reused while an array over it exists.
    del label
    gc.collect()
    again = tfseek.parse_example(PAYLOADS, spec)["label"]
    assert own.tolist() == list(range(1, 21)) and again.tolist() == list(range(20))
    # Two columns of one feature share its values.
    shared = {name: tfseek.RaggedFeature("int64", "label") for name in ("a", "b")}
    found = tfseek.parse_example(PAYLOADS, shared)
    assert found["a"].values.base.writable is None and found["b"].values.base.writable is None
    kept = found["a"].values
    del found
    gc.collect()
    assert kept.base.writable is not None
    # Record numbers in a batch are not those of the loader.
    loader = tfseek.Loader(ds, spec, batch_size=7, ids="id")
    batch = next(loader)
    batch["id"].base.writable[:] = -1
    assert batch["id"].tolist() == [-1] * 7 and loader.ids.tolist() == list(range(7))
    assert batch["emb"].base.writable.flags.writeable
    # Bytes of a file.
    assert ds[3].raw.base.writable is None and ds[3]["label"].base.writable is not None


def test_specs_of_tensorflow_are_recognized_by_name() -> None:
    class FixedLenFeature(NamedTuple):
        shape: Any
        dtype: Any
        default_value: Any = None

    class RaggedFeature(NamedTuple):
        dtype: Any
        value_key: Any = None
        partitions: Any = ()
        row_splits_dtype: Any = types.SimpleNamespace(name="int32")
        validate: bool = False

    class RowLengths(NamedTuple):
        key: str

    int64 = types.SimpleNamespace(name="int64")
    shape = types.SimpleNamespace(as_list=lambda: [1])
    theirs = {"a": FixedLenFeature(shape, int64), "b": RaggedFeature(int64, "c", [RowLengths("d")])}
    ours = {
        "a": tfseek.FixedLenFeature([1], "int64"),
        "b": tfseek.RaggedFeature("int64", "c", [tfseek.RaggedFeature.RowLengths("d")]),
    }
    assert tfseek.Schema(theirs) == tfseek.Schema(ours)


def test_every_spec() -> None:
    spec = {
        "fixed": tfseek.FixedLenFeature([1], "int64"),
        "sequence": tfseek.FixedLenSequenceFeature([], "float32", allow_missing=True, default_value=-1.0),
        "ragged": tfseek.RaggedFeature("int64", "values", tfseek.RowLengths("lengths"), row_splits_dtype="int64"),
        "sparse": tfseek.SparseFeature("index", "value", "float32", 10),
    }
    rows = [
        {"fixed": 1, "values": [1, 2, 3], "lengths": [2, 1], "index": [3, 1], "value": [0.5, 1.5]},
        {"fixed": 2, "sequence": [1.5, 2.5]},
    ]
    found = tfseek.parse_example([tfseek.Example(row).to_bytes() for row in rows], spec)
    assert found["fixed"].tolist() == [[1], [2]]
    assert found["sequence"].tolist() == [[-1, -1], [1.5, 2.5]]
    assert found["ragged"].values.tolist() == [1, 2, 3]
    assert [splits.tolist() for splits in found["ragged"].row_splits] == [[0, 2, 2], [0, 2, 3]]
    assert {splits.dtype for splits in found["ragged"].row_splits} == {np.dtype(np.int64)}
    assert found["sparse"].indices.tolist() == [[0, 1], [0, 3]] and found["sparse"].values.tolist() == [1.5, 0.5]
    assert found["sparse"].dense_shape.tolist() == [2, 10]


def test_schema() -> None:
    schema = tfseek.Schema(SPEC)
    assert tfseek.Schema.from_json(schema.to_json()) == schema == pickle.loads(pickle.dumps(schema))
    assert schema.features == sorted(SPEC) and schema.feature_lists == [] and not schema.is_sequence
    assert "tf.io.VarLenFeature(tf.int64)" in schema.to_tensorflow()
    assert repr(schema).startswith("tfseek.Schema.from_json('{")
    assert tfseek.parse_example(PAYLOADS, schema)["label"].tolist() == list(range(20))
    with pytest.raises(TypeError, match="parse_example"):
        tfseek.parse_sequence_example(PAYLOADS, schema)
    both = tfseek.Schema(context_features={"id": "int"}, sequence_features={"x": tfseek.VarLenFeature("int64")})
    assert both.is_sequence and both.feature_lists == ["x"]
    assert tfseek.parse_single_sequence_example(b"", both)[1]["x"].dense_shape.tolist() == [0, 0]
    for parse, args in ((tfseek.parse_example, (PAYLOADS, both)), (tfseek.parse_sequence_example, ([], both, {}))):
        with pytest.raises(TypeError):
            parse(*args)
    with pytest.raises(tfseek.SpecError, match="not JSON"):
        tfseek.Schema.from_json("{")


def test_a_schema_in_a_file(tmp_path: pathlib.Path, ds: tfseek.Dataset, shards: str) -> None:
    """TFX's text or JSON, wherever features are accepted."""
    path = tmp_path / "schema.pbtxt"
    path.write_text("feature { name: 'label' type: INT presence { min_fraction: 1 } shape { dim { size: 1 } } }\nfeature { name: 'name' type: BYTES }")
    schema = tfseek.Schema.from_file(path)
    assert schema == tfseek.Schema({"label": tfseek.FixedLenFeature([1], "int64"), "name": tfseek.VarLenFeature("string")})
    assert next(iter(tfseek.Loader(ds, schema, batch_size=4, shuffle=False)))["label"].tolist() == [[0], [3], [6], [9]]
    assert tfseek.parse_example(ds[:4], schema)["label"].tolist() == [[0], [3], [6], [9]]
    assert next(iter(tfseek.stream(shards).batches(schema, 2)))["label"].tolist() == [[0], [3]]
    for text in (schema.to_json(), path.read_text()):
        assert tfseek.Schema.from_file(io.StringIO(text)) == tfseek.Schema.from_file(io.BytesIO(text.encode())) == schema
    for text, message in (("feature { name: 'x' }", "line 1, column 1: \"x\": expected a type"), ('{"features": 1}', "features"), ("\xff", "UTF-8")):
        path.write_text(text, "latin-1")
        with pytest.raises(tfseek.SpecError, match=message) as raised:
            tfseek.Schema.from_file(str(path))
        assert raised.value.path == str(path) and str(path) in str(raised.value)
    with pytest.raises(tfseek.NotFoundError, match="nowhere"):
        tfseek.Schema.from_file("nowhere")


def test_infer_schema(ds: tfseek.Dataset) -> None:
    schema = tfseek.infer_schema(ds)
    assert schema == tfseek.Schema(SPEC) == tfseek.infer_schema(bytes(ex) for ex in ds)
    with pytest.raises(tfseek.SpecError):
        tfseek.infer_schema([b"no message at all"])


def test_features_without_a_kind_are_named(tmp_path: pathlib.Path) -> None:
    """A schema leaves them out."""
    path = tmp_path / "x.tfrecord"
    with tfseek.Writer(path) as writer:
        for i in range(3):
            writer.write(tfseek.Example({"label": i, "unset": None, "b c": None}))
    ds = tfseek.open(path)
    calls: list[Callable[[], object]] = [lambda: tfseek.infer_schema(ds), lambda: ds.schema, lambda: ds[:3].scan().columns]
    for infer in calls:
        with pytest.warns(tfseek.Warning) as found:
            infer()
        assert [(str(each.message), each.filename) for each in found] == [('left out: 2 features without a kind in 3 records: "b c", unset', __file__)]
        warning: Any = found[0].message
        assert (warning.kind, warning.found, warning.path) == ("features_left_out", ["b c", "unset"], None)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert ds.schema.features == ["label"] and tfseek.infer_schema([tfseek.Example({"label": 1})]).features == ["label"]


def test_errors_name_the_lowest_row(ds: tfseek.Dataset) -> None:
    spec = {"label": tfseek.FixedLenFeature([], "float32")}
    with pytest.raises(tfseek.DataError) as e:
        tfseek.parse_example(PAYLOADS, spec)
    assert (e.value.row, e.value.feature, e.value.category) == (0, "label", "kind_mismatch")
    assert "expected float, found int64" in str(e.value)
    with pytest.raises(tfseek.DataError) as e:
        tfseek.parse_example([*PAYLOADS[:5], b"\x0a", *PAYLOADS], SPEC)
    assert (e.value.row, e.value.category) == (5, "malformed_proto")
    with pytest.raises(tfseek.DataError) as e:
        tfseek.parse_example(ds[700:], spec)
    assert (e.value.row, e.value.path, e.value.record) == (0, ds.shards[2], 700 - 334 - 333)
    with pytest.raises(tfseek.DataError) as e:
        tfseek.parse_single_example(ds[700], spec)
    assert (e.value.path, e.value.record) == (ds.shards[2], 700 - 334 - 333)


def test_columns_outlive_the_schema() -> None:
    schema = tfseek.Schema(SPEC)
    kept = [tfseek.parse_example(PAYLOADS, schema) for _ in range(10)]
    del schema
    gc.collect()
    for found in kept:
        assert found["label"].tolist() == list(range(20))


def test_threads_share_a_schema() -> None:
    schema = tfseek.Schema(SPEC)
    wrong: list[Any] = []

    def work(start: int) -> None:
        for k in range(200):
            part = PAYLOADS[(start + k) % 15 :]
            found = tfseek.parse_example(part, schema)["label"].tolist()
            if found != list(range((start + k) % 15, 20)):
                wrong.append(found)

    threads = [threading.Thread(target=work, args=(start,)) for start in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_arrays_equal_those_of_the_array_interface(ds: tfseek.Dataset) -> None:
    """Arrays from NumPy's C interface equal those from ``__array_interface__``."""
    sequence = tfseek.SequenceExample({}, {"steps": [[1.5, 2.5]] * 3}).to_bytes()
    steps = {"steps": tfseek.RaggedFeature("float32")}
    parsed = tfseek.parse_example(ds[:10], {**SPEC, "tokens": tfseek.RaggedFeature("int64")}, bytes_as="offsets")
    loader = tfseek.Loader(ds, SPEC, batch_size=7)
    next(loader)
    arrays = [
        *(parsed["label"], parsed["emb"], *parsed["name"].parts(), parsed["tokens"].values, *parsed["tokens"].row_splits),
        *tfseek.parse_sequence_example([sequence], {}, steps)[1]["steps"].row_splits,
        *(loader.ids, loader.mask, ds[3]["emb"], ds[3]["label"], ds[3].raw),
        *tfseek.parse_example([], SPEC)["tokens"].parts(),
    ]
    assert {str(array.dtype) for array in arrays} == {"int64", "int32", "float32", "uint8", "bool"}
    for array in arrays:
        twin = np.asarray(array.base)
        assert twin.base is array.base and type(array.base).__name__ == "ArrayMemory"
        assert twin.dtype == array.dtype and twin.shape == array.shape and twin.strides == array.strides
        assert twin.ctypes.data == array.ctypes.data or array.size == 0
        assert str(twin.flags) == str(array.flags) and not array.flags.writeable
        with pytest.raises(ValueError):
            array.setflags(write=True)
        assert np.array_equal(twin, array)
    objects = tfseek.parse_example(ds[:10], SPEC)["name"]
    with pytest.raises(ValueError):
        objects.setflags(write=True)
