"""A record of 60 GiB in a sparse file raises an error and allocates no memory."""

from __future__ import annotations

import pathlib
import subprocess
import sys

import pytest
from conftest import write_records
from test_damage import crc32c, masked

import tfseek

GIB = 1 << 30


def header(length: int) -> bytes:
    data = length.to_bytes(8, "little")
    return data + masked(crc32c(data)).to_bytes(4, "little")


@pytest.fixture
def sparse(tmp_path: pathlib.Path) -> str:
    path = tmp_path / "sparse"
    write_records(path, [tfseek.Example({"label": 0})])
    with open(path, "r+b") as file:
        first = file.read()
        file.write(header(60 * GIB))
        file.truncate(file.tell() + 60 * GIB + 4)
        file.seek(0, 2)
        file.write(first)
    return str(path)


CALLS = """
import resource, sys
import tfseek
ds = tfseek.open(sys.argv[1], io=sys.argv[2])
if sys.platform == "linux" and sys.argv[2] == "pread":
    used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + (1 << 30), -1))
SPEC = {"label": tfseek.FixedLenFeature([], "int64")}
calls = {
    "ds[1]": lambda: ds[1],
    "get_many": lambda: ds.get_many([0, 2, 1]),
    "__getitems__": lambda: ds.__getitems__([1]),
    "iter": lambda: list(ds),
    "column": lambda: ds.column("label"),
    "filter": lambda: ds.filter("label == 0"),
    "parse": lambda: tfseek.parse_example(ds, SPEC),
    "infer": lambda: tfseek.infer_schema(ds),
    "loader": lambda: list(tfseek.Loader(ds, SPEC, batch_size=3)),
    "records": lambda: list(tfseek.Loader(ds, batch_size=1)),
    "balance": lambda: tfseek.Loader(ds, SPEC, batch_size=1, balance="label"),
}
for name, call in calls.items():
    try:
        call()
    except tfseek.DataError as e:
        assert e.record == 1 and e.category == "too_large", (name, e)
        assert "found 64424509440" in str(e) and "max_record=64424509440" in str(e), (name, e)
    else:
        raise AssertionError(name)
assert ds[0]["label"] == ds[2]["label"] == 0
loader = tfseek.Loader(ds, SPEC, batch_size=3, damage="skip")
assert [batch["label"].tolist() for batch in loader] == [[0, 0]] and [record for record, _ in loader.skipped] == [1]
if sys.argv[2] == "pread":
    everything = tfseek.open(sys.argv[1], io="pread", max_record=1 << 63)
    for call in (lambda: everything[1], lambda: everything.get_many([1]), lambda: next(tfseek.Loader(everything, SPEC, batch_size=3))):
        try:
            call()
        except tfseek.IoError as e:
            assert "memory" in str(e).lower(), e
        else:
            raise AssertionError("allocated more memory than exists")
"""


@pytest.mark.parametrize("io", ["pread", "map"])
def test_a_record_of_60_gib_is_an_error(sparse: str, io: str) -> None:
    done = subprocess.run([sys.executable, "-c", CALLS, sparse, io], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, (done.returncode, done.stderr)


def test_max_record_is_an_option(shards: str) -> None:
    ds = tfseek.open(shards, max_record=3)
    with pytest.raises(tfseek.DataError, match="expected a payload of at most 3 bytes"):
        ds[0]
    assert tfseek.open(shards, max_record=3000)[0]["label"] == 0
    with pytest.raises((OverflowError, ValueError, TypeError)):
        tfseek.open(shards, max_record=-1)
