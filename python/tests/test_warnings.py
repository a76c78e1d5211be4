"""Warnings: classes, fields, and how they are raised."""

from __future__ import annotations

import gzip
import pathlib
import pickle
import warnings
from typing import Any

import pytest
from conftest import write_records

import tfseek


def shard(path: pathlib.Path, n: int) -> bytes:
    write_records(path, (b"%040d" % i for i in range(n)))
    return path.read_bytes()


def test_a_torn_tail_is_raised_once_and_listed(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "a.tfrecord"
    whole = shard(path, 100)
    path.write_bytes(whole[:-7])
    with pytest.warns(tfseek.Warning) as raised:
        ds = tfseek.open(path, tail="tolerate", index="memory")
    (warning,) = ds.warnings
    assert [each.message for each in raised] == [warning] and raised[0].filename == __file__
    assert isinstance(warning, UserWarning) and warning.kind == "torn_tail" and warning.path == str(path)
    assert (warning.records, warning.offset, warning.bytes, warning.inflated_bytes) == (99, 99 * 56, 49, 0)
    assert warning.gaps is None and len(ds) == 99
    assert pickle.loads(pickle.dumps(warning)) == warning and "torn" in repr(warning)

    stream = tfseek.stream(path, tail="tolerate", kind="bytes")
    assert stream.warnings == []
    with pytest.warns(tfseek.Warning) as raised:
        assert len(list(stream)) == 99
    assert [each.message for each in raised] == [warning] and stream.warnings == [warning]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(list(stream)) == 99


def test_filters_of_python_apply(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "a.tfrecord"
    path.write_bytes(shard(path, 9)[:-1])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(tfseek.Warning, match="the end is torn"):
            tfseek.open(path, tail="tolerate", index="memory")
        with pytest.raises(tfseek.Warning, match="the end is torn"):
            list(tfseek.stream(path, tail="tolerate", kind="bytes"))
        warnings.simplefilter("ignore", tfseek.Warning)
        assert len(tfseek.open(path, tail="tolerate", index="memory")) == 8
        assert len(list(tfseek.stream(path, tail="tolerate", kind="bytes"))) == 8


def test_all_gaps_have_offsets(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "a.tfrecord"
    data = bytearray(shard(path, 500))
    for record in (123, 400):
        data[record * 56 + 20] ^= 1
    path.write_bytes(data)
    for _ in range(2):
        with pytest.warns(tfseek.Warning):
            ds = tfseek.open(path, damage="skip", index_dir=tmp_path / "i")
        (warning,) = ds.warnings
        assert warning.gaps == [(123 * 56, 124 * 56, 123, False), (400 * 56, 401 * 56, 399, False)]
        assert (warning.kind, warning.bytes, warning.records) == ("damage_skipped", 112, 498)
    assert tfseek.verify(path).records == 498


def test_bytes_that_cannot_be_decompressed_count(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "a.tfrecord.gz"
    whole = shard(tmp_path / "a", 400)
    members = [bytearray(gzip.compress(whole[at : at + 5600], compresslevel=0)) for at in range(0, len(whole), 5600)]
    members[1][10] = 0xFF
    path.write_bytes(b"".join(members))
    found: list[Any] = []
    for _ in range(2):
        with pytest.warns(tfseek.Warning):
            ds = tfseek.open(path, damage="skip", index_dir=tmp_path / "i")
        found.append(ds.warnings[0])
    assert found[0] == found[1] and len(ds) == 300
    assert any(gap.compressed and gap.end - gap.start > 5000 for gap in found[0].gaps)


def test_parts_have_the_tail_policy(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "a.tfrecord.gz"
    path.write_bytes(gzip.compress(shard(tmp_path / "a", 50))[:-3])
    with pytest.warns(tfseek.Warning):
        ds = tfseek.open(path, tail="tolerate", index="memory")
    ((part,),) = ds.shares(1)
    assert part.tail == "tolerate" and tfseek.Part(part.to_json()) == part
    with pytest.warns(tfseek.Warning):
        assert len(list(tfseek.stream(part=part, kind="bytes"))) == 50
