"""Arrays in byte strings: ``tfseek.Raw`` and ``tfseek.Tensor``, compared with NumPy."""

from __future__ import annotations

import pathlib
from typing import Any

import numpy as np
import pytest

import tfseek

#: Dtypes of NumPy that both specs read.
DTYPES = ["?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", "c8", "c16"]


def example(**features: Any) -> bytes:
    """Returns an Example of byte strings and integers."""
    return tfseek.train.Example(
        features=tfseek.train.Features(
            feature={
                name: tfseek.train.Feature(bytes_list=tfseek.train.BytesList(value=[value]))
                if isinstance(value, bytes)
                else tfseek.train.Feature(int64_list=tfseek.train.Int64List(value=[value]))
                for name, value in features.items()
            }
        )
    ).SerializeToString()


def random(dtype: Any, shape: Any) -> Any:
    """Returns an array of random bits, which of bools are 0 or 1."""
    generator = np.random.default_rng(7)
    dtype = np.dtype(dtype)
    if dtype.kind == "b":
        return generator.integers(0, 2, shape).astype(dtype)
    bits = generator.integers(0, 256, int(np.prod(shape)) * dtype.itemsize, dtype=np.uint8)
    return bits.view(dtype).reshape(shape)


def write(path: pathlib.Path, payloads: list[bytes]) -> tfseek.Dataset:
    with tfseek.Writer(path) as writer:
        for payload in payloads:
            writer.write(payload)
    return tfseek.open(path)


@pytest.mark.parametrize("order", "<>")
@pytest.mark.parametrize("dtype", DTYPES)
def test_raw_arrays_equal_numpy(dtype: str, order: Any) -> None:
    stored = random(np.dtype(dtype).newbyteorder(order), (5, 2, 3))
    rows = [example(x=row.tobytes()) for row in stored]
    for given in (order + dtype, np.dtype(order + dtype)):
        found = tfseek.parse_example(rows, {"x": tfseek.Raw(given, [2, 3])})["x"]
        assert found.dtype == np.dtype(dtype) and found.dtype.isnative and found.shape == (5, 2, 3)
        assert found.tobytes() == stored.astype(np.dtype(dtype)).tobytes()
        assert found.flags.aligned and found.flags.c_contiguous and not found.flags.writeable
        if given == np.dtype(dtype):
            # Through the slower, safe interface as well.
            assert np.asarray(found.base).tobytes() == found.tobytes() and np.asarray(found.base).dtype == found.dtype
        single = tfseek.parse_single_example(rows[3], {"x": tfseek.Raw(given, [2, 3])})["x"]
        assert single.shape == (2, 3) and single.tobytes() == found[3].tobytes()
        # An array without dimensions owns its value.
        one = tfseek.parse_single_example(example(x=stored[3, 1, 2:].tobytes()), {"x": tfseek.Raw(given, [])})["x"]
        assert (one.shape, one.dtype, one.tobytes()) == ((), found.dtype, found[3, 1, 2].tobytes())
        assert one.base is None and one.flags.owndata and one.flags.aligned and not one.flags.writeable


@pytest.mark.parametrize("dtype", DTYPES)
def test_tensors_equal_numpy(dtype: str) -> None:
    stored = random(dtype, (5, 2, 3))
    rows = [example(x=tfseek.serialize_tensor(row)) for row in stored]
    for given in (dtype, np.dtype(dtype), np.dtype(dtype).type, np.dtype(dtype).name):
        found = tfseek.parse_example(rows, {"x": tfseek.Tensor(given, (2, 3))})["x"]
        assert found.dtype == stored.dtype and found.tobytes() == stored.tobytes()
    parsed = tfseek.parse_tensor(tfseek.serialize_tensor(stored[0]), np.dtype(dtype))
    assert parsed.tobytes() == found[0].tobytes()


def test_names_of_dtypes() -> None:
    row = [example(x=bytes(8))]
    for given, expected in ((float, "float32"), ("float", "float32"), (bool, "bool"), (int, "int64"), ("double", "float64")):
        spec = tfseek.Raw(given, [8 // np.dtype(expected).itemsize])
        assert tfseek.parse_example(row, {"x": spec})["x"].dtype == expected


def test_bfloat16() -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes")
    stored = np.array([[1.5, -2.0], [0.25, np.inf]], dtype=ml_dtypes.bfloat16)
    for given in ("bfloat16", ml_dtypes.bfloat16, stored.dtype):
        for spec, rows in (
            (tfseek.Raw(given, [2]), [example(x=row.tobytes()) for row in stored]),
            (tfseek.Tensor(given, [2]), [example(x=tfseek.serialize_tensor(row)) for row in stored]),
        ):
            found = tfseek.parse_example(rows, {"x": spec})["x"]
            assert found.dtype == stored.dtype and found.tobytes() == stored.tobytes()
    big = tfseek.Schema.from_json('{"features": {"x": {"type": "raw", "dtype": "bfloat16", "shape": [2], "byte_order": "big"}}}')
    rows = [example(x=row.view(np.uint16).byteswap().tobytes()) for row in stored]
    assert tfseek.parse_example(rows, big)["x"].tobytes() == stored.tobytes()


def test_a_byte_of_a_bool_that_is_not_zero_is_true() -> None:
    found = tfseek.parse_example([example(x=bytes([0, 1, 2, 255]))], {"x": tfseek.Raw("bool", [4])})["x"]
    assert found.tolist() == [[False, True, True, True]]
    assert found.view(np.uint8).tolist() == [[0, 1, 1, 1]] and int(found.sum()) == 3


@pytest.mark.parametrize("dtype", ["u1", "i8", "f4", "f2", "c8"])
def test_an_open_first_dimension_makes_a_ragged(dtype: str) -> None:
    stored = [random(dtype, (n, 2)) for n in (3, 0, 1)]
    for spec, rows in (
        (tfseek.Raw(dtype, [None, 2]), [example(x=row.tobytes()) for row in stored]),
        (tfseek.Tensor(dtype, [None, 2]), [example(x=tfseek.serialize_tensor(row)) for row in stored]),
    ):
        found = tfseek.parse_example(rows, {"x": spec})["x"]
        assert isinstance(found, tfseek.Ragged) and found.values.shape == (4, 2)
        assert found.row_splits[0].tolist() == [0, 3, 3, 4] and found.row_splits[0].dtype == np.int64
        for row, expected in zip(found, stored):
            assert row.tobytes() == expected.tobytes() and row.shape == expected.shape
        padded, mask = found.to_padded(2)
        assert padded.dtype == np.dtype(dtype) and padded.shape == (3, 2, 2)
        assert mask.tolist() == [[True, True], [False, False], [True, False]]
        assert padded[0].tobytes() == stored[0][:2].tobytes() and not padded[1].any()
        single = tfseek.parse_single_example(rows[0], {"x": spec})["x"]
        assert single.tobytes() == stored[0].tobytes() and single.shape == (3, 2)


def test_the_loader_reads_arrays(tmp_path: pathlib.Path) -> None:
    images, masks = random("u1", (100, 4, 4, 3)), random(">u2", (100, 4, 4))
    ds = write(
        tmp_path / "a.tfrecord",
        [example(id=i, image=images[i].tobytes(), mask=tfseek.serialize_tensor(masks[i])) for i in range(100)],
    )
    spec = {
        "id": tfseek.FixedLenFeature([], "int64"),
        "image": tfseek.Raw("uint8", [4, 4, 3]),
        "mask": tfseek.Tensor("uint16", [4, 4]),
    }
    loader = tfseek.Loader(ds, spec, batch_size=8, seed=3)
    for epoch in range(2):
        seen = []
        for batch in loader:
            seen.extend(batch["id"].tolist())
            assert np.array_equal(batch["image"], images[batch["id"]])
            assert np.array_equal(batch["mask"], masks[batch["id"]])
        assert sorted(seen) == list(range(100)), epoch
    schema = tfseek.Schema(spec)
    assert tfseek.Schema.from_json(schema.to_json()) == schema
    assert "tf.io.decode_raw(.., tf.uint8)" in schema.to_tensorflow()


def test_errors_name_the_record(tmp_path: pathlib.Path) -> None:
    rows = [example(x=bytes(6)), example(x=bytes(5)), example(x=bytes(6))]
    with pytest.raises(tfseek.DataError, match="expected 6 bytes of an array, found 5") as caught:
        tfseek.parse_example(rows, {"x": tfseek.Raw("uint8", [2, 3])})
    assert (caught.value.row, caught.value.feature, caught.value.category) == (1, "x", "count_mismatch")
    with pytest.raises(tfseek.DataError, match="expected a multiple of 4 bytes of an array, found 6"):
        tfseek.parse_example(rows, {"x": tfseek.Raw("f4", [None])})
    with pytest.raises(tfseek.DataError, match="found no such feature"):
        tfseek.parse_example(rows, {"y": tfseek.Raw("u1", [6])})
    ds = write(tmp_path / "a.tfrecord", rows)
    with pytest.raises(tfseek.DataError) as caught:
        list(tfseek.Loader(ds, {"x": tfseek.Raw("uint8", [6])}, batch_size=2, shuffle=False))
    assert (caught.value.record, caught.value.path) == (1, str(tmp_path / "a.tfrecord"))
    skipping = tfseek.Loader(ds, {"x": tfseek.Raw("uint8", [6])}, batch_size=3, shuffle=False, damage="skip")
    assert [len(batch["x"]) for batch in skipping] == [2]
    [(record, error)] = skipping.skipped
    assert record == 1 and "expected 6 bytes of an array, found 5" in error and skipping.skipped_total == 1

    stored = np.arange(6, dtype=np.int32).reshape(2, 3)
    rows = [example(x=tfseek.serialize_tensor(stored))]
    for spec, message in (
        (tfseek.Tensor("int64", [2, 3]), "expected a tensor of int64, found int32"),
        (tfseek.Tensor("int32", [3, 3]), "expected a tensor of size 3 in dimension 0, found 2"),
        (tfseek.Tensor("int32", [None, 2]), "expected a tensor of size 2 in dimension 1, found 3"),
        (tfseek.Tensor("int32", [6]), "expected a tensor of 1 dimension, found 2"),
    ):
        with pytest.raises(tfseek.DataError, match=message):
            tfseek.parse_example(rows, {"x": spec})
    with pytest.raises(tfseek.DataError, match="malformed message"):
        tfseek.parse_example([example(x=tfseek.serialize_tensor(stored)[:-1])], {"x": tfseek.Tensor("int32", [2, 3])})


def test_specs_that_are_refused() -> None:
    for dtype in ("string", object, "datetime64[s]", "longdouble" if np.dtype("longdouble").itemsize > 8 else "U1", "int4", "M8", [("a", "i4")]):
        for spec in (tfseek.Raw(dtype, [1]), tfseek.Tensor(dtype, [1])):
            with pytest.raises(tfseek.SpecError) as caught:
                tfseek.Schema({"x": spec})
            assert caught.value.feature == "x" and "dtype: expected bool or a type of numbers" in str(caught.value)
    with pytest.raises(tfseek.SpecError, match="no byte order for a tensor"):
        tfseek.Schema({"x": tfseek.Tensor(">i2", [1])})
    for shape in ([1, None], [None, None], [None, 0]):
        with pytest.raises(tfseek.SpecError):
            tfseek.Schema({"x": tfseek.Raw("u1", shape)})
    with pytest.raises(tfseek.SpecError, match="-1 is out of range"):
        tfseek.Schema({"x": tfseek.Raw("u1", [-1])})
    with pytest.raises(TypeError, match="shape: expected a list of integers"):
        tfseek.Schema({"x": tfseek.Raw("u1", None)})
    with pytest.raises(tfseek.SpecError, match="feature list"):
        tfseek.Schema(context_features={}, sequence_features={"x": tfseek.Raw("u1", [1])})


def test_contexts_have_arrays() -> None:
    sequence = tfseek.train.SequenceExample(
        context=tfseek.train.Features(feature={"x": tfseek.train.Feature(bytes_list=tfseek.train.BytesList(value=[b"\1\2"]))})
    ).SerializeToString()
    context, _ = tfseek.parse_single_sequence_example(sequence, {"x": tfseek.Raw("u1", [2])})
    assert context["x"].tolist() == [1, 2]


def test_specs_are_values() -> None:
    assert tfseek.Raw("u1", [2]) == tfseek.Raw("u1", (2,)) and tfseek.Raw("u1", 2) == tfseek.Raw("u1", [2])
    specs: list[Any] = [tfseek.Raw("u1", [2]), tfseek.Tensor("u1", [2])]
    assert specs[0] != specs[1]
    assert repr(tfseek.Tensor("u1", [None, 2])) == "Tensor(dtype='u1', shape=(None, 2))"
    assert len({tfseek.Raw("u1", [2]), tfseek.Raw("u1", (2,))}) == 1


def test_scans_have_arrays(tmp_path: pathlib.Path) -> None:
    pa = pytest.importorskip("pyarrow")
    stored = random("f4", (10, 2, 3))
    ragged = [random("i2", (n % 3, 2)) for n in range(10)]
    payloads = [example(a=stored[i].tobytes(), b=tfseek.serialize_tensor(ragged[i]), c=bytes([i % 2, 7])) for i in range(10)]
    ds = write(tmp_path / "a.tfrecord", payloads)
    spec = {"a": tfseek.Raw("f4", [2, 3]), "b": tfseek.Tensor("i2", [None, 2]), "c": tfseek.Raw("bool", [2])}
    table = pa.table(ds.scan(spec=spec))
    assert table.schema.field("a").type == pa.list_(pa.field("item", pa.list_(pa.field("item", pa.float32(), False), 3), False), 2)
    assert np.array_equal(np.array(table["a"].to_pylist(), np.float32).view(np.uint32), stored.view(np.uint32), equal_nan=False)
    assert table["b"].to_pylist() == [row.tolist() for row in ragged]
    assert table["c"].to_pylist() == [[bool(i % 2), True] for i in range(10)]
    tensors = pa.table(ds.scan(["a"], spec, tensors="extension"))["a"].combine_chunks()
    assert np.array_equal(tensors.to_numpy_ndarray().view(np.uint32), stored.view(np.uint32))
    for dtype in ("c8", "bfloat16"):
        with pytest.raises(tfseek.SpecError, match="expected a type that Arrow has, found arrays of"):
            pa.table(ds.scan(spec={"a": tfseek.Raw(dtype, [None])}))
