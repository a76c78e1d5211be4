"""Comparison with TensorFlow, where it is installed: its specs, random records, and files that it wrote."""

from __future__ import annotations

import json
import os
import pathlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import tfseek

tf: Any = pytest.importorskip("tensorflow", reason="TensorFlow is not installed")


def values(rng: np.random.Generator) -> dict[str, Any]:
    row: dict[str, Any] = {
        "fixed": rng.integers(-5, 5, 2),
        "name": rng.bytes(int(rng.integers(0, 5))),
        "words": [rng.bytes(2) for _ in range(int(rng.integers(1, 4)))],
        "tags": [rng.bytes(2) for _ in range(int(rng.integers(1, 4)))],
        "blocks": rng.normal(size=2 * int(rng.integers(0, 4))).astype(np.float32),
        "lengths": np.array([1, 2], dtype=np.int64),
        "parts": rng.integers(0, 2**62, 3),
        "index": rng.permutation(10)[:3],
        "at": rng.normal(size=3).astype(np.float32),
    }
    for key in ("name", "words", "tags", "blocks"):
        if rng.random() < 0.2:
            del row[key]
    return row


def specs() -> dict[str, Any]:
    io = tf.io
    return {
        "fixed": io.FixedLenFeature([2], tf.int64),
        "name": io.FixedLenFeature([], tf.string, default_value="none"),
        "words": io.VarLenFeature(tf.string),
        "blocks": io.FixedLenSequenceFeature([2], tf.float32, allow_missing=True, default_value=0.5),
        "ragged": io.RaggedFeature(tf.int64, "parts", [io.RaggedFeature.RowLengths("lengths")]),
        "plain": io.RaggedFeature(tf.string, "tags", row_splits_dtype=tf.int64),
        "sparse": io.SparseFeature("index", "at", tf.float32, 10),
    }


def same(found: Any, theirs: Any) -> None:
    if isinstance(found, tfseek.Sparse):
        for name in ("indices", "values", "dense_shape"):
            same(getattr(found, name), getattr(theirs, name))
    elif isinstance(found, tfseek.Ragged):
        same(found.values, theirs.flat_values)
        assert len(found.row_splits) == len(theirs.nested_row_splits)
        for ours, part in zip(found.row_splits, theirs.nested_row_splits):
            same(ours, part)
    else:
        # A string is bytes in both. An array created from them without a dtype would drop trailing zeros.
        found = np.asarray(found, object) if isinstance(found, bytes) else found
        theirs = np.asarray(theirs.numpy(), object if theirs.dtype == tf.string else None)
        assert found.shape == theirs.shape
        if found.dtype == object:
            assert found.tolist() == theirs.tolist()
        else:
            assert found.dtype == theirs.dtype and found.tobytes() == theirs.tobytes()


def test_examples() -> None:
    rng = np.random.default_rng(5)
    for count in (0, 1, 2, 50):
        payloads = [tfseek.Example(values(rng)).to_bytes() for _ in range(count)]
        found = tfseek.parse_example(payloads, specs())
        theirs = tf.io.parse_example(tf.constant(payloads, tf.string, [count]), specs())
        assert list(found) == sorted(theirs)
        for name, column in found.items():
            same(column, theirs[name])
        for payload in payloads[:10]:
            single = tf.io.parse_single_example(payload, specs())
            for name, column in tfseek.parse_single_example(payload, specs()).items():
                if not isinstance(single[name], tf.RaggedTensor) or isinstance(column, tfseek.Ragged):
                    same(column, single[name])


def test_sequence_examples() -> None:
    context = {"id": tf.io.FixedLenFeature([], tf.int64)}
    sequence = {"a": tf.io.FixedLenSequenceFeature([2], tf.int64), "b": tf.io.VarLenFeature(tf.string)}
    payloads = [
        tfseek.SequenceExample(
            {"id": i}, {"a": [[k, k + 1] for k in range(i)], "b": [["x"] * (k + 1) for k in range(i)]}
        ).to_bytes()
        for i in range(5)
    ]
    ours = tfseek.parse_sequence_example(payloads, context, sequence)
    theirs = tf.io.parse_sequence_example(payloads, context, sequence)
    for found, group in zip(ours, theirs):
        for name, column in found.items():
            same(column, group[name])
    one, other = tfseek.parse_single_sequence_example(payloads[3], context, sequence), tf.io.parse_single_sequence_example(
        payloads[3], context, sequence
    )
    for found, group in zip(one, other):
        for name, column in found.items():
            same(column, group[name])


def of_json(spec: dict[str, Any]) -> Any:
    """Returns TensorFlow's spec for a spec in the JSON form, read without tfseek."""
    dtype = {"int64": tf.int64, "float32": tf.float32, "string": tf.string}[spec["dtype"]]
    ragged = tf.io.RaggedFeature
    if spec["type"] == "fixed":
        return tf.io.FixedLenFeature(spec["shape"], dtype, plain(spec.get("default")))
    if spec["type"] == "fixed_sequence":
        missing = spec.get("allow_missing", False)
        return tf.io.FixedLenSequenceFeature(spec["shape"], dtype, missing, plain(spec.get("default")))
    if spec["type"] == "varlen":
        return tf.io.VarLenFeature(dtype)
    if spec["type"] == "sparse":
        sorted_already = spec.get("already_sorted", False)
        return tf.io.SparseFeature(spec["index_key"], spec["value_key"], dtype, spec["size"], sorted_already)
    kinds = {
        "row_splits": ragged.RowSplits,
        "row_lengths": ragged.RowLengths,
        "row_starts": ragged.RowStarts,
        "row_limits": ragged.RowLimits,
        "value_rowids": ragged.ValueRowIds,
        "uniform_row_length": ragged.UniformRowLength,
    }
    partitions = [kinds[p["kind"]](p.get("key", p.get("length"))) for p in spec.get("partitions", ())]
    width = tf.as_dtype(spec.get("row_splits_dtype", "int32"))
    return ragged(dtype, spec.get("value_key"), partitions, width, spec.get("validate", False))


def plain(default: Any) -> Any:
    if isinstance(default, list):
        return [plain(value) for value in default]
    if isinstance(default, dict):
        bits = default.get("f32")
        return bytes.fromhex(default["hex"]) if bits is None else np.uint32(int(bits, 16)).view(np.float32)
    return default


def corpora() -> Iterator[Any]:
    for folder in filter(None, os.environ.get("TFSEEK_TF_CORPORA", "").split(":")):
        for spec in sorted(pathlib.Path(folder).glob("*.spec.json")):
            yield pytest.param(spec, id=spec.name.removesuffix(".spec.json"))


@pytest.mark.skipif(not os.environ.get("TFSEEK_TF_CORPORA"), reason="TFSEEK_TF_CORPORA does not name corpora")
@pytest.mark.parametrize("path", list(corpora()))
def test_corpora(path: pathlib.Path) -> None:
    """Compares every record alone, and batches of 1, 3, 64 and 256.

    TensorFlow's parser gets the payload as protobuf rewrites it, because its fast paths read some encodings differently
    (docs/format.md, R3).
    """
    text = path.read_text()
    groups = {group: {key: of_json(spec) for key, spec in specs.items()} for group, specs in json.loads(text).items()}
    schema = tfseek.Schema.from_json(text)
    shard = str(path).replace(".spec.json", ".tfrecord")
    compression = {b"\x1f\x8b": "GZIP", b"\x78\x9c": "ZLIB"}.get(pathlib.Path(shard).read_bytes()[:2], "")
    payloads = list(tf.data.TFRecordDataset(shard, compression).as_numpy_iterator())
    assert payloads
    if not compression:
        assert [bytes(ex) for ex in tfseek.open(shard, index="memory")] == payloads
    message = tf.train.Example if "features" in groups else tf.train.SequenceExample
    canonical = [message.FromString(payload).SerializeToString(deterministic=True) for payload in payloads]
    compared = 0
    for size in (1, 3, 64, 256):
        for start in range(0, len(payloads), size):
            batch, theirs = payloads[start : start + size], canonical[start : start + size]
            if "features" in groups:
                pairs = [(tfseek.parse_example(batch, schema), tf.io.parse_example(theirs, groups["features"]))]
            else:
                ours = tfseek.parse_sequence_example(batch, schema)
                pairs = list(zip(ours, tf.io.parse_sequence_example(theirs, groups["context"], groups["sequence"])))
            for found, group in pairs:
                assert sorted(found) == sorted(group)
                for name, column in found.items():
                    same(column, group[name])
                    compared += 1
    for payload, other in zip(payloads, canonical):
        if "features" in groups:
            alone = tfseek.parse_single_example(payload, schema)
            for name, column in tf.io.parse_single_example(other, groups["features"]).items():
                if not isinstance(column, tf.RaggedTensor) or isinstance(alone[name], tfseek.Ragged):
                    same(alone[name], column)
                    compared += 1
    print(f"{path.name}: {compared} columns")


def answer(call: Any) -> Any:
    """Returns the bytes, or a marker for an error."""
    try:
        return call()
    except (ValueError, TypeError, tf.errors.InvalidArgumentError):
        return "refused"


NUMBERS: list[Any] = [
    *(0, 1, -1, 2**31 - 1, 2**31, -(2**31), -(2**31) - 1, 2**63 - 1, 2**63, -(2**63), -(2**63) - 1, 2**64, True, False),
    *(1.5, -0.0, float("nan"), float("inf"), 1e300, 3.4028235e38, 3.5e38, 1 + 2j),
    *(np.int64(1), np.int8(1), np.uint64(2**64 - 1), np.float64(1.5), np.float16(1.5), np.bool_(True)),
]


def test_tensors_of_python() -> None:
    """Numbers and lists of two numbers have TensorFlow's dtypes, or both libraries refuse them."""
    lists = [[a, b] for a in NUMBERS for b in NUMBERS]
    nested = [[], [[], []], [[1], [2]], [[1], [2.5]], [[1, 2], [3]], [1, [2]], ["a", b"b"], ["a", 1], range(3), range(0)]
    others = [
        value
        for value in [*NUMBERS, *lists, *nested]
        if answer(lambda: tfseek.serialize_tensor(value)) != answer(lambda: tf.io.serialize_tensor(value).numpy())
    ]
    # Ints beyond float16, which are infinity in TensorFlow.
    assert all(isinstance(value[0], np.float16) and abs(value[1]) > 65504 for value in others), others


def test_specs_of_python() -> None:
    """Sizes and defaults are accepted and refused as by TensorFlow, with the exceptions in docs/python.md."""
    payload = tf.train.Example().SerializeToString()
    for package in (tf.io, tfseek):
        for parse, arguments in (
            (package.parse_example, ([payload], {})),
            (package.parse_single_example, (payload, {})),
            (package.parse_sequence_example, ([payload], {}, {})),
            (package.parse_single_sequence_example, (payload, {}, {})),
        ):
            with pytest.raises(ValueError):
                parse(*arguments)
    defaults = {
        tf.float32: [*NUMBERS, 2**200, -(2**200), 10**400, "1", b"1", [True], [[1]], [1, 2]],
        tf.int64: [*(n for n in NUMBERS if not isinstance(n, np.generic)), 2**200, 1.0, "1", [True], [[1]], [1, 2]],
        tf.string: ["x", b"x", 1, True, 1.5, np.array("x"), bytearray(b"x")],
    }
    for dtype, values in defaults.items():
        for value in values:
            spec = {"a": tf.io.FixedLenFeature([], dtype, value)}
            theirs = answer(lambda spec=spec: tf.io.parse_single_example(payload, spec)["a"].numpy())
            ours = answer(lambda spec=spec: tfseek.parse_single_example(payload, spec)["a"])
            ours = ours[()] if isinstance(ours, np.ndarray) else ours
            assert type(theirs) is type(ours) and np.array_equal([theirs], [ours], equal_nan=not isinstance(ours, (str, bytes))), value
    for number in (3.7, 3.0, "3", b"3", True, np.float64(2), np.int64(2), 2, 0, -1, None):
        for spec in (tf.io.FixedLenFeature([number], tf.int64, [1, 2]), tf.io.FixedLenFeature([number], tf.int64)):
            if number in (2, 0) and spec.default_value is None:
                continue  # both report a missing feature
            theirs = answer(lambda spec=spec: tf.io.parse_single_example(payload, {"a": spec})["a"].numpy().tolist())
            ours = answer(lambda spec=spec: tfseek.parse_single_example(payload, {"a": spec})["a"].tolist())
            assert ours == theirs, (number, spec)


def test_bytes(tmp_path: Any) -> None:
    rng = np.random.default_rng(6)
    for _ in range(50):
        ours = tfseek.Example(values(rng)).to_bytes()
        assert tf.train.Example.FromString(ours).SerializeToString(deterministic=True) == ours
    for array in (np.arange(6, dtype=np.float32).reshape(2, 3), np.float16(1), np.array([b"a", b""], dtype=object)):
        data = tf.io.serialize_tensor(tf.constant(array)).numpy()
        assert tfseek.serialize_tensor(array) == data
        dtype = tf.constant(array).dtype
        assert tfseek.parse_tensor(data, dtype).tolist() == tf.io.parse_tensor(data, dtype).numpy().tolist()
    with tf.io.TFRecordWriter(str(tmp_path / "a")) as theirs, tfseek.Writer(tmp_path / "b") as writer:
        for k in range(20):
            theirs.write(b"x" * k)
            writer.write(b"x" * k)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_specs_of_byte_strings_equal_tensorflows_functions(tmp_path: pathlib.Path) -> None:
    """Labels, fixed lengths, stacks and arrays of steps, as `tf.lookup`, `tf.io.decode_raw` and `tf.stack` make them."""
    words, steps = [b"cat", b"dog\r", "café".encode(), b"fox"], [[b"\1\2\3"], [], [b"\4\5\6\7\x08", b"\x09"]]
    file = tmp_path / "words.txt"
    file.write_bytes(b"cat\ndog\r\ncaf\xc3\xa9\n")
    rows = [tfseek.Example({"w": word, "f_0": k, "f_1": 10 * k}) for k, word in enumerate(words)]
    initializer = tf.lookup.TextFileInitializer(str(file), tf.string, tf.lookup.TextFileIndex.WHOLE_LINE, tf.int64, tf.lookup.TextFileIndex.LINE_NUMBER)
    table = tf.lookup.StaticHashTable(initializer, -1)
    found = tfseek.parse_example(rows, {"w": tfseek.Label(file, unknown=-1), "x": tfseek.Stack(["f_1", "f_0"], "int64")})
    theirs = tf.io.parse_example([bytes(row) for row in rows], {name: tf.io.FixedLenFeature([], tf.int64) for name in ("f_0", "f_1")})
    same(found["w"], table.lookup(tf.constant(words)))
    same(found["x"], tf.stack([theirs["f_1"], theirs["f_0"]], axis=-1))
    videos = [tfseek.SequenceExample({}, {"v": strings}) for strings in steps]
    _, lists, _ = tfseek.parse_sequence_example(videos, None, {"v": tfseek.Raw(">u2", [2], fixed_length=True)})
    decoded = [tf.io.decode_raw(strings, tf.uint16, little_endian=False, fixed_length=4) for strings in steps if strings]
    same(lists["v"].values, tf.concat(decoded, 0))
