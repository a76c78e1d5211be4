"""``Dataset.shares`` and ``tfseek.stream(part=..)``: datasets that are divided among processes."""

from __future__ import annotations

import json
import pathlib
import pickle
import subprocess
import sys

import numpy as np
import pytest
from conftest import features, write_records

import tfseek


def write(path: pathlib.Path, numbers: range, compression: str = "none") -> str:
    write_records(path, (tfseek.Example(features(i)) for i in numbers), compression=compression)
    return str(path)


@pytest.fixture
def paths(tmp_path: pathlib.Path) -> list[str]:
    """A hundred records in a plain, an empty, a gzip and a plain file."""
    return [
        write(tmp_path / "a.tfrecord", range(60)),
        write(tmp_path / "b.tfrecord", range(0)),
        write(tmp_path / "c.tfrecord.gz", range(60, 75), "gzip"),
        write(tmp_path / "d.tfrecord", range(75, 100)),
    ]


@pytest.fixture
def ds(paths: list[str]) -> tfseek.Dataset[tfseek.Example]:
    return tfseek.open(paths, index="memory")


def test_shares_have_each_record_once(ds: tfseek.Dataset[tfseek.Example]) -> None:
    want = [bytes(record) for record in ds]
    for n in range(1, 10):
        shares = ds.shares(n)
        assert 1 <= len(shares) <= n and all(shares)
        assert [bytes(record) for share in shares for record in tfseek.stream(part=share)] == want
        for part in (part for share in shares for part in share):
            assert part.records is not None
            assert [bytes(record) for record in tfseek.stream(part=part)] == want[part.first : part.first + part.records]
    assert ds.shares_of(1 << 40) == ds.shares(1) and len(ds.shares_of(1)) > 50


def test_part(ds: tfseek.Dataset[tfseek.Example], paths: list[str]) -> None:
    part = ds.shares(4)[1][0]
    assert part.shard == paths[0] and part.compression == "none" and part.bytes[0] < part.bytes[1] <= part.size
    assert part.ordinal == part.first > 0 and part.mtime_ns > 0 and len(part.fingerprints) == 2
    text = part.to_json()
    assert len(text) < 400 and json.loads(text)["first"] == part.first
    for copy in (tfseek.Part.from_json(text), tfseek.Part(text), pickle.loads(pickle.dumps(part))):
        assert copy == part and hash(copy) == hash(part)
    assert part != ds.shares(5)[1][0]
    assert repr(part).startswith("tfseek.Part(") and f"first={part.first}, records={part.records})" in repr(part)
    stream = tfseek.stream(part=part)
    assert stream.paths == [part.shard] and "tfseek.Part(" in repr(stream)
    assert [bytes(r) for r in pickle.loads(pickle.dumps(stream))] == [bytes(r) for r in stream]
    batch = next(stream.batches({"label": tfseek.FixedLenFeature([], "int64")}, 3))
    assert np.array_equal(batch["label"], [ds[part.first + k]["label"][0] for k in range(3)])
    whole = tfseek.Part.of_shard(paths[2], first=60)
    assert (whole.records, whole.first, whole.compression) == (None, 60, "gzip")
    assert len(list(tfseek.stream(part=whole))) == 15


def test_another_process_reads_a_part(ds: tfseek.Dataset[tfseek.Example]) -> None:
    part = ds.shares(3)[1][0]
    code = "import sys, tfseek; print(len(list(tfseek.stream(part=tfseek.Part(sys.argv[1])))))"
    found = subprocess.run([sys.executable, "-c", code, part.to_json()], capture_output=True, text=True, check=True)
    assert int(found.stdout) == part.records


def test_errors(ds: tfseek.Dataset[tfseek.Example], paths: list[str]) -> None:
    part = ds.shares(4)[1][0]
    for n in (0, -1):
        with pytest.raises(ValueError, match=f"n: expected at least 1, found {n}"):
            ds.shares(n)
        with pytest.raises(ValueError, match=f"bytes: expected at least 1, found {n}"):
            ds.shares_of(n)
    with pytest.raises(ValueError, match="expected a whole dataset, found some of its records"):
        ds[:10].shares(2)
    with pytest.raises(TypeError, match="either paths or part, found both"):
        tfseek.stream(paths[0], part=part)
    with pytest.raises(TypeError, match="either paths or part, found none of them"):
        tfseek.stream()
    for bad in ([paths[0]], [[part]], part.to_json()):
        with pytest.raises(TypeError, match="part: expected a tfseek.Part or a list of them, found (str|list)"):
            tfseek.stream(part=bad)
    with pytest.raises(tfseek.Error, match="invalid part: json: expected a part"):
        tfseek.Part.from_json("{")
    fields = json.loads(part.to_json())
    wrong = tfseek.Part(json.dumps({**fields, "records": fields["records"] - 1}))
    with pytest.raises(tfseek.DataError, match="in the part, found at least") as raised:
        list(tfseek.stream(part=wrong))
    assert raised.value.path == paths[0] and raised.value.record == part.ordinal + fields["records"] - 1
    write(pathlib.Path(paths[0]), range(1, 61))
    with pytest.raises(tfseek.SidecarError, match="the content of the shard has changed") as stale:
        list(tfseek.stream(part=part))
    assert stale.value.path == paths[0]
