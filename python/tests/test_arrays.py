"""Arrays in byte strings: ``tfseek.Raw`` and ``tfseek.Tensor``, compared with NumPy."""

from __future__ import annotations

import pathlib
from typing import Any

import numpy as np
import pytest
from conftest import written

import tfseek

#: Dtypes of NumPy that both specs read.
DTYPES = ["?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", "c8", "c16"]


def example(**features: Any) -> bytes:
    return bytes(tfseek.Example(features))


def random(dtype: Any, shape: Any) -> Any:
    """Returns an array of random bits, which of bools are 0 or 1."""
    generator = np.random.default_rng(7)
    dtype = np.dtype(dtype)
    if dtype.kind == "b":
        return generator.integers(0, 2, shape).astype(dtype)
    bits = generator.integers(0, 256, int(np.prod(shape)) * dtype.itemsize, dtype=np.uint8)
    return bits.view(dtype).reshape(shape)


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
    ds = written(
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
    ds = written(tmp_path / "a.tfrecord", rows)
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
    ds = written(tmp_path / "a.tfrecord", payloads)
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


def test_labels(tmp_path: pathlib.Path) -> None:
    """Positions in a list and in a file; unknown, absent and several strings."""
    words = ["cat", b"dog", "café", b"\xff"]
    file = tmp_path / "words.txt"
    file.write_bytes(b"cat\ndog\r\ncaf\xc3\xa9\n\xff")
    rows = [{"x": ["dog", b"\xff"]}, {"x": ["café"]}, {"x": ["fox"]}, {}]
    encoded = [tfseek.Example(row) for row in rows]
    for vocabulary in (words, file, str(file)):
        label = tfseek.Label(vocabulary, unknown=-1)
        assert tfseek.parse_example(encoded[1:3], {"x": label})["x"].tolist() == [2, -1]
        several = tfseek.parse_example(encoded, {"x": tfseek.RaggedFeature(label)})["x"]
        assert several.to_list() == [[1, 3], [2], [-1], []] and several.values.dtype == np.int64
    with pytest.raises(tfseek.DataError, match="row 2 .*step 0.*expected a string of the vocabulary, found \"fox\""):
        tfseek.parse_example(encoded, {"x": tfseek.RaggedFeature(tfseek.Label(words))})
    with pytest.raises(tfseek.DataError, match="expected string, found no such feature"):
        tfseek.parse_example(encoded[3:], {"x": tfseek.Label(words, unknown=0)})
    for bad, reason in ((["a", "a"], '"a" as 0 and as 1'), ([], "at least one"), (7, "a list of strings or a path, found int"),
                        ({"a"}, "found set"), (iter("a"), "found str_.*iterator"), (["a", 7], "expected strings, found 7")):
        with pytest.raises(tfseek.SpecError, match=reason):
            tfseek.Schema({"x": tfseek.Label(bad)})
    for unknown in (True, -1.0, "x"):
        with pytest.raises(tfseek.SpecError, match="unknown: expected an integer"):
            tfseek.Label(words, unknown)
    with pytest.raises(tfseek.SpecError, match="fixed_length: expected True or False, found 4"):
        tfseek.Schema({"x": tfseek.Raw("<i2", [4], fixed_length=4)})
    code = tfseek.Schema(sequence_features={"x": tfseek.Label(words)}).to_tensorflow()
    assert "'x': tf.io.FixedLenSequenceFeature([], tf.string, allow_missing=True)," in code
    with pytest.raises(tfseek.SpecError, match="expected no other argument"):
        tfseek.Schema({"x": tfseek.RaggedFeature(tfseek.Label(words), partitions=[tfseek.UniformRowLength(2)])})


def test_videos_and_frames_of_youtube_8m(tmp_path: pathlib.Path) -> None:
    """Arrays and labels of feature lists, one a step, as in YouTube-8M; and by a loader that resumes."""
    frames = [random("u1", (n, 4)) for n in (3, 0, 2)]
    rows = [
        tfseek.SequenceExample({"id": f"v{k}", "labels": [k, 7]}, {"rgb": [frame.tobytes() for frame in video]})
        for k, video in enumerate(frames)
    ]
    context = {"id": tfseek.FixedLenFeature([], "string"), "labels": "int64"}
    sequence = {"rgb": tfseek.Raw("uint8", [4])}
    found, lists, lengths = tfseek.parse_sequence_example(rows, context, sequence)
    rgb = lists["rgb"]
    assert found["id"].tolist() == [b"v0", b"v1", b"v2"] and not lengths
    assert all((rgb[k] == video).all() for k, video in enumerate(frames)) and rgb.values.shape == (5, 4)
    padded, mask = rgb.to_padded(length=2)
    assert padded.shape == (3, 2, 4) and (padded[2] == frames[2]).all() and mask.tolist() == [[True] * 2, [False] * 2, [True] * 2]
    _, one = tfseek.parse_single_sequence_example(rows[0], None, sequence)
    assert (one["rgb"] == frames[0]).all()
    ds = written(tmp_path / "a.tfrecord", rows)
    schema = tfseek.Schema(context_features=context, sequence_features=sequence)
    loader = tfseek.Loader(ds, schema, batch_size=1, shuffle=True, seed=3)
    want = [batch[1]["rgb"].to_list() for batch in loader]
    assert sorted(want) == sorted([video.tolist()] for video in frames)
    again = tfseek.Loader(ds, schema, batch_size=1, shuffle=True, seed=3)
    next(iter(again))
    state = again.state_dict()
    resumed = tfseek.Loader(ds, schema, batch_size=1, shuffle=True, seed=3)
    resumed.load_state_dict(state)
    assert [batch[1]["rgb"].to_list() for batch in resumed] == want[1:]
    with pytest.raises(tfseek.DataError, match="step 1.*expected 4 bytes") as raised:
        wrong = tfseek.SequenceExample({}, {"rgb": [b"1234", b"123"]})
        tfseek.parse_sequence_example([wrong], None, sequence)
    assert (raised.value.row, raised.value.step) == (0, 1)


def test_stacked_features() -> None:
    rows = [tfseek.Example({f"f_{k}": float(10 * row + k) for k in range(3) if (row, k) != (1, 2)}) for row in range(2)]
    keys = [f"f_{k}" for k in range(3)]
    assert tfseek.parse_example(rows, {"x": tfseek.Stack(keys, np.float32, -1)})["x"].tolist() == [[0, 1, 2], [10, 11, -1]]
    with pytest.raises(tfseek.DataError, match="row 1 .*\"f_2\": expected float32, found no such feature"):
        tfseek.parse_example(rows, {"x": tfseek.Stack(keys, "float32")})
    with pytest.raises(tfseek.SpecError, match="expected int64 or float32 for a stack"):
        tfseek.Schema({"x": tfseek.Stack(keys, "string")})
