"""``tfseek._sink``: sets that many processes write."""

from __future__ import annotations

import json
import os
import pathlib
import signal
import subprocess
import sys
from typing import Any

import pytest

import tfseek
from tfseek import _sink

pa = pytest.importorskip("pyarrow")

TASK = """
import json, os, sys
import pyarrow as pa
from tfseek import _sink

folder, job, task, dies = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4] == "dies"
schema = pa.schema([("id", pa.int64())])

def batches():
    for k in range(10):
        if dies and k == 5:
            os._exit(9)
        yield pa.record_batch([[task * 100 + k * 10 + n for n in range(10)]], schema=schema)

file = _sink.write_task(pa.RecordBatchReader.from_batches(schema, batches()), folder, job=job, task=task)
print(json.dumps(file))
"""


def run(folder: pathlib.Path, job: str, task: int, how: str = "lives") -> Any:
    """Runs an attempt of a task in a process of its own. Returns its result, or ``None`` if it died."""
    arguments = [sys.executable, "-c", TASK, str(folder), job, str(task), how]
    done = subprocess.run(arguments, capture_output=True, text=True)
    assert (done.returncode == 0) == (how == "lives"), done.stderr
    return json.loads(done.stdout) if done.stdout else None


def ids(path: str) -> list[int]:
    return [record["id"][0] for record in tfseek.open(path, index="require")]


def hidden(folder: pathlib.Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob(".tmp-*"))


def test_a_task_that_runs_twice_counts_once(tmp_path: pathlib.Path) -> None:
    job, other = _sink.new_job(), _sink.new_job()
    assert run(tmp_path, job, 1, "dies") is None
    first, again, second = run(tmp_path, job, 1), run(tmp_path, job, 1), run(tmp_path, job, 0)
    other_file = run(tmp_path, other, 0)
    assert first["name"] != again["name"] and first["name"].startswith(f".tmp-{job}-00001-")
    assert first["digest"] == again["digest"] != second["digest"]
    # Before the commit there is no set.
    with pytest.raises(tfseek.NotFoundError):
        tfseek.open(tmp_path)
    with pytest.raises(tfseek.NotFoundError):
        tfseek.open(tmp_path / "*")
    out = tmp_path / "train.tfrecord"
    with pytest.raises(ValueError, match="expected one file of task 1, found "):
        _sink.commit(out, job, [second, first, again])
    written = _sink.commit(out, job, [again, second])
    assert (written.path, written.records) == (str(tmp_path / "train@2.tfrecord"), 200)
    assert ids(written.path) == list(range(200))
    assert hidden(tmp_path) == sorted([f".tfseek/{other_file['name']}.tfri", other_file["name"]])
    # Repeated, as after an interruption.
    assert _sink.commit(out, job, [again, second]) == written
    with pytest.raises(ValueError, match="belongs to another set of shards"):
        _sink.commit(out, other, [other_file])
    _sink.abort(tmp_path, other)
    assert hidden(tmp_path) == [] and ids(written.path) == list(range(200))


def test_a_killed_job_leaves_no_visible_set(tmp_path: pathlib.Path) -> None:
    code = (
        "import sys, os, pyarrow as pa\nfrom tfseek import _sink\nt = pa.table({'id': [1, 2]})\n"
        "files = [_sink.write_task(t, sys.argv[1], job='j', task=k) for k in range(3)]\n"
        "os.kill(os.getpid(), 9)"
    )
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path)], capture_output=True)
    assert done.returncode == -signal.SIGKILL and len(hidden(tmp_path)) == 6
    assert all(name.startswith(".") for name in os.listdir(tmp_path))
    with pytest.raises(tfseek.NotFoundError):
        tfseek.open(tmp_path)
    _sink.abort(tmp_path, "j")
    assert hidden(tmp_path) == []


def test_options(tmp_path: pathlib.Path) -> None:
    table = pa.table({"id": [7, 8], "l": [[1], [2, 3]]})
    files = [
        _sink.write_task(
            table, tmp_path, job="j", task=k, attempt=k, compression="gzip", members="1KB", rename={"id": "x"}, feature_lists=["l"]
        )
        for k in (11, 2)
    ]
    assert [file["name"] for file in files] == [".tmp-j-00011-11", ".tmp-j-00002-2"]
    written = _sink.commit(str(tmp_path / "a@2.tfrecord.gz"), "j", files)
    assert [r.context["x"][0] for r in tfseek.open(written.path, kind="sequence_example", index="require")] == [7, 8, 7, 8]
    (tmp_path / "a-00001-of-00002.tfrecord.gz").write_bytes(b"old")
    files = [_sink.write_task(table, tmp_path, job="j", task=k, index=False) for k in range(2)]
    with pytest.raises(tfseek.Error, match=r"already exists \(force=True replaces it\)"):
        _sink.commit(tmp_path / "a@2.tfrecord.gz", "j", files)
    assert _sink.commit(tmp_path / "a@2.tfrecord.gz", "j", files, force=True).records == 4
    for bad, words in [({"job": "a-b"}, "job: expected letters"), ({"attempt": "/"}, "attempt: expected letters")]:
        with pytest.raises(ValueError, match=words):
            _sink.write_task(table, tmp_path, **{"job": "j", "task": 0, **bad})  # type: ignore[arg-type]
    with pytest.raises(tfseek.NotFoundError):
        _sink.write_task(table, tmp_path / "none", job="j", task=0)
    with pytest.raises(ValueError, match="expected at least one file"):
        _sink.commit(tmp_path / "b", "j", [])
