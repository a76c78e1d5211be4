"""Examples are lazy, read-only mappings, and are made of what Python has."""

from __future__ import annotations

import collections.abc
import gc
import pathlib
import pickle
from typing import Any

import numpy as np
import pytest
from conftest import features, write_records, written

import tfseek


def test_mapping(ds: tfseek.Dataset) -> None:
    assert issubclass(tfseek.Example, collections.abc.Mapping)
    ex: tfseek.Example = ds[0]
    assert ex.keys() == ["emb", "label", "name", "tokens"] == list(ex)
    assert len(ex) == 4 and "emb" in ex and "x" not in ex and 3 not in ex
    assert ex["label"].dtype == np.int64 and ex["emb"].dtype == np.float32 and ex["name"].dtype == object
    assert ex["name"].tolist() == [b"record 0"] and ex["tokens"].shape == (0,)
    assert [ex.kind(key) for key in ("label", "emb", "name", "x")] == ["int64", "float", "bytes", None]
    assert ex.get("x") is None and ex.get("x", 5) == 5
    assert {key: value.tolist() for key, value in ex.items()} == {k: v.tolist() for k, v in ex.to_dict().items()}
    assert dict(ex).keys() == ex.to_dict().keys() and len(list(ex.values())) == 4
    assert bytes(ex) == ex.to_bytes() == memoryview(ex.raw.data).tobytes() == tfseek.Example(features(0)).to_bytes()
    assert pickle.loads(pickle.dumps(ex)) == ex and hash(pickle.loads(pickle.dumps(ex))) == hash(ex)
    assert (ex.path, ex.record) == (ds.shards[0], 0) and tfseek.Example().path is None is pickle.loads(pickle.dumps(ex)).record
    with pytest.raises(KeyError, match="x"):
        ex["x"]


def test_arrays_are_read_only_and_copies_are_not(ds: tfseek.Dataset) -> None:
    ex = ds[5]
    for key in ex:
        for array in (ex[key], ex.get(key), ex.to_dict()[key]):
            assert not array.flags.writeable
            with pytest.raises(ValueError):
                array.flags.writeable = True if array.dtype != object else array[...].fill(0)
        own = ex.get(key, copy=True)
        own[:] = own
        assert ex.to_dict(copy=True)[key].flags.writeable


def test_aligned_floats_are_not_copied(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "a.tfrecord"
    with tfseek.Writer(path) as writer:
        # One of these lengths of the name puts the floats at a multiple of four.
        for pad in range(8):
            writer.write(tfseek.Example({"a": "x" * pad, "emb": np.arange(1000, dtype=np.float32)}))
    shared = 0
    for ex in tfseek.open(path, io="map"):
        shared += np.shares_memory(ex["emb"], ex.raw)
        assert ex["emb"].tolist() == list(range(1000))
    assert shared >= 1


def test_arrays_outlive_everything(shards: str, labels: list[int]) -> None:
    for io in ("map", "pread"):
        ds = tfseek.open(shards, io=io)
        arrays = [ds[i]["emb"] for i in range(300)]
        raws = [ds[i].raw for i in range(300)]
        del ds
        gc.collect()
        for i, (array, raw) in enumerate(zip(arrays, raws)):
            assert array.tolist() == features(labels[i])["emb"].tolist()
            assert bytes(raw) == tfseek.Example(features(labels[i])).to_bytes()


@pytest.mark.parametrize(
    ("value", "kind", "found"),
    [
        (3, "int64", [3]),
        (True, "int64", [1]),
        (-(2**63), "int64", [-(2**63)]),
        ([1, 2], "int64", [1, 2]),
        ((True, 5), "int64", [1, 5]),
        (np.uint64(2**63 - 1), "int64", [2**63 - 1]),
        (np.array([[1, 2], [3, 4]], dtype=np.int8), "int64", [1, 2, 3, 4]),
        (np.empty(0, dtype=np.int32), "int64", []),
        (0.1, "float", [float(np.float32(0.1))]),
        ([1, 2.5], "float", [1.0, 2.5]),
        (float("inf"), "float", [float("inf")]),
        (np.float16(1.5), "float", [1.5]),
        ("grüß", "bytes", ["grüß".encode()]),
        (b"\xff\x00", "bytes", [b"\xff\x00"]),
        (["a", b"b"], "bytes", [b"a", b"b"]),
        (np.array(["a", "bc"]), "bytes", [b"a", b"bc"]),
        (np.array([b"a", "b"], dtype=object), "bytes", [b"a", b"b"]),
        (None, None, None),
    ],
)
def test_coercions(value: Any, kind: Any, found: Any) -> None:
    ex = tfseek.Example({"x": value})
    assert ex.kind("x") == kind and "x" in ex
    assert (ex["x"] if found is None else ex["x"].tolist()) == found
    assert tfseek.Example(ex.to_dict()) == ex


@pytest.mark.parametrize(
    ("value", "error"),
    [
        ([], ValueError),
        (2**63, OverflowError),
        ([2**70], OverflowError),
        (1e39, OverflowError),
        (np.array([[0.5, -1e300]]), OverflowError),
        (1j, TypeError),
        ({"a": 1}, TypeError),
        (["a", 1.5], TypeError),
        (np.datetime64("2020-01-01"), TypeError),
    ],
)
def test_unsupported_feature_values(value: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match="'x'"):
        tfseek.Example({"x": value})


def test_a_picture_is_no_numbers() -> None:
    image = pytest.importorskip("PIL.Image").new("RGB", (2, 2))
    for value in (image, [image]):
        with pytest.raises(TypeError, match="feature 'x': expected the bytes of a file, .* found a PIL image"):
            tfseek.Example({"x": value})


def test_malformed(tmp_path: pathlib.Path) -> None:
    for payload in (b"\x0a", b"\x0a\x05\x0a\x03\x0a\x01"):
        ex = tfseek.Example.from_bytes(payload)
        with pytest.raises(tfseek.DataError) as e:
            ex.to_dict()
        assert e.value.category == "malformed_proto"
        assert "malformed" in repr(ex)
    path = tmp_path / "a.tfrecord"
    write_records(path, [b"", b"\x0a"])
    ex = tfseek.open(path, kind="example")[1]
    with pytest.raises(tfseek.DataError) as e:
        ex["x"]
    assert (e.value.path, e.value.record, e.value.offset, e.value.feature) == (str(path), 1, 16, "x")


def test_sequence_example(tmp_path: pathlib.Path) -> None:
    record = tfseek.SequenceExample({"id": 7}, {"tokens": [[1, 2], [3], None], "words": [["a"], "b"], "none": []})
    path = tmp_path / "a.tfrecord"
    ds: tfseek.Dataset[Any] = written(path, [record])
    assert ds.kind == "sequence_example"
    found = ds[0]
    assert found == record == pickle.loads(pickle.dumps(found))
    assert found.context["id"].tolist() == [7]
    assert issubclass(tfseek.FeatureLists, collections.abc.Mapping)
    lists: tfseek.FeatureLists = found.feature_lists
    assert lists.keys() == ["none", "tokens", "words"]
    tokens = [None if step is None else step.tolist() for step in lists["tokens"]]
    assert tokens == [[1, 2], [3], None]
    assert lists["none"] == [] and lists.get("x") is None and len(lists) == 3
    with pytest.raises(KeyError):
        lists["x"]
    context, sequence, lengths = tfseek.parse_sequence_example(
        ds, {"id": tfseek.FixedLenFeature([], "int64")}, {"words": tfseek.FixedLenSequenceFeature([], "string")}
    )
    assert context["id"].tolist() == [7] and sequence["words"].tolist() == [[b"a", b"b"]] and lengths["words"].tolist() == [2]


def test_writer(tmp_path: pathlib.Path) -> None:
    for compression in (None, "none", "gzip", "zlib"):
        with tfseek.Writer(tmp_path / f"{compression}.tfrecord", compression=compression) as writer:
            writer.write(b"payload")
            assert writer.records_written == 1
    assert (tmp_path / "None.tfrecord").read_bytes() == (tmp_path / "none.tfrecord").read_bytes()
    with pytest.raises(KeyError), tfseek.Writer(tmp_path / "given-up.tfrecord") as writer:
        writer.write(b"x")
        raise KeyError
    assert not (tmp_path / "given-up.tfrecord").exists()
    writer = tfseek.Writer(tmp_path / "x.tfrecord", index=True)
    writer.close()
    writer.close()
    with pytest.raises(tfseek.Error, match="closed"):
        writer.write(b"x")
    with pytest.raises(TypeError):
        tfseek.Writer(tmp_path / "y.tfrecord").write("str")  # type: ignore[arg-type]
    with pytest.raises(FileNotFoundError) as e:
        tfseek.Writer(tmp_path / "no folder" / "x.tfrecord")
    assert isinstance(e.value, tfseek.IoError) and e.value.errno == 2 and e.value.path is not None


def test_lists_of_integers_stay_integers() -> None:
    value: Any
    for value in ([np.int64(3), np.uint64(4)], [np.uint64(5), -1], [3, np.int8(4)], np.array([1, 2], dtype=object), [[1], [np.uint64(2)]]):
        ex = tfseek.Example({"x": value})
        assert ex.kind("x") == "int64" and ex["x"].tolist() == [int(item) for item in np.asarray(value, dtype=object).ravel()]
    assert tfseek.Example({"x": [1, 0.5]}).kind("x") == "float"
    for value in ([2**63, -1], [1, 2**64]):
        with pytest.raises(OverflowError, match=str(max(value))):
            tfseek.Example({"x": value})
    for value in ([1, "a"], [b"a", 1]):
        with pytest.raises(TypeError, match="found int"):
            tfseek.Example({"x": value})
