"""Arguments of other types: mappings in writers, and messages that name the argument and its value."""

from __future__ import annotations

import pathlib
import types
from typing import Any

import numpy as np
import pytest
from conftest import SPEC, written

import tfseek


def test_a_writer_accepts_mappings(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "a.tfrecord"
    with tfseek.Writer(path) as writer:
        writer.write({"label": 3, "name": "x"})
        writer.write(types.MappingProxyType({"label": 4}))
        writer.write(tfseek.Example({"label": 5}))
        with pytest.raises(TypeError, match="feature 'label': .*found dict"):
            writer.write({"label": {"a": 1}})
        with pytest.raises(TypeError, match="record: expected bytes, an Example, a SequenceExample or a dict, found str"):
            writer.write("x")  # type: ignore[arg-type]
    ds = tfseek.open(path)
    assert list(ds) == [tfseek.Example({"label": 3, "name": "x"}), tfseek.Example({"label": 4}), tfseek.Example({"label": 5})]


def test_messages_name_argument_and_value(ds: tfseek.Dataset) -> None:
    anything: Any = tfseek
    paths: Any
    state: Any
    with pytest.raises(TypeError, match=r"payloads: expected an iterable.*one record \(Example\); use parse_single_example"):
        tfseek.parse_example(ds[0], SPEC)
    with pytest.raises(TypeError, match=r"one record \(bytes\); use parse_single_example"):
        tfseek.parse_example(bytes(ds[0]), SPEC)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"one record \(SequenceExample\); use parse_single_sequence_example"):
        anything.parse_sequence_example(tfseek.SequenceExample({"id": 7}), {"id": tfseek.VarLenFeature("int64")})
    with pytest.raises(TypeError, match=r"payload: expected one record .*, found list; parse_example parses several"):
        anything.parse_single_example([ds[0]], SPEC)
    with pytest.raises(TypeError, match=r"expected a record .*, found int"):
        anything.parse_example([3], SPEC)
    with pytest.raises(TypeError, match=r"one record \(Example\); pass a list"):
        anything.infer_schema(ds[0])
    for paths in (b"a.tfrecord", [b"a.tfrecord"]):
        with pytest.raises(TypeError, match=r"paths: expected str, os.PathLike .*, found b'a.tfrecord'; os.fsdecode"):
            anything.open(paths)
        with pytest.raises(TypeError, match="paths: "):
            anything.build_index(paths)
    for paths in (3, None, [None]):
        with pytest.raises(TypeError, match="paths: .*, found (3|None)$"):
            anything.open(paths)
    with pytest.raises(TypeError, match='shuffle: expected True, False, "global" or "block", found 10000; .* no buffer size'):
        anything.Loader(ds, SPEC, batch_size=1, shuffle=10000)
    with pytest.raises(TypeError, match="shuffle: .*, found 0.5$"):
        anything.Loader(ds, SPEC, batch_size=1, shuffle=0.5)
    loader = tfseek.Loader(ds, SPEC, batch_size=1, shuffle=np.True_)  # type: ignore[call-overload]
    assert "global" in loader.describe()
    for state in ({}, None, "{}", 3):
        with pytest.raises(tfseek.OrderError, match=r"state: expected a dict from state_dict\(\), found"):
            anything.Loader(ds, SPEC, batch_size=1).load_state_dict(state)
    with pytest.raises(tfseek.OrderError):
        loader.load_state_dict({"x": 1})
    with pytest.raises(IndexError, match="no record -1001: there are 1000"):
        ds[-1001]


def test_arguments_of_another_type_say_what_is_expected(tmp_path: pathlib.Path) -> None:
    path = str(tmp_path / "x.tfrecord")
    ds: Any = written(path, [{"label": 1}])
    with pytest.raises(TypeError, match=r'condition such as "label == 3", found function; ds\[mask\] selects'):
        ds.filter(lambda record: True)
    writers: Any = tfseek.Writer
    for shards, error, message in (
        (0, ValueError, "shards: expected at least 1, found 0"),
        (-1, OverflowError, "shards: expected an integer of at least 0, found -1"),
        ("2", TypeError, "shards: expected an integer, found '2'"),
    ):
        with pytest.raises(error, match=f"^{message}$"):
            writers(str(tmp_path / "y"), shards=shards)
