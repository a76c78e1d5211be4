"""Sets that several tasks write: tasks that run twice, tasks that die, and jobs that end early."""

from __future__ import annotations

import json
import os
import pathlib
import pickle
import signal
import subprocess
import sys
from dataclasses import asdict
from typing import Any

import pytest

import tfseek
from tfseek import _tasks


def write(job: _tasks.Job, task: int, numbers: range) -> _tasks.Written:
    writer = _tasks.TaskWriter(job, task)
    for i in numbers:
        writer.write({"id": i})
    return writer.close()


def names(folder: pathlib.Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def hidden(folder: pathlib.Path) -> list[str]:
    return [name for name in names(folder) if os.path.basename(name).startswith(".tmp-")]


def test_a_task_that_ran_twice_counts_once(tmp_path: pathlib.Path) -> None:
    job = pickle.loads(pickle.dumps(_tasks.job(tmp_path / "out" / "train")))
    lost = write(job, 1, range(10, 20))
    written = [write(job, 2, range(20, 25)), write(job, 0, range(10)), write(job, 1, range(10, 20)), write(job, 3, range(0))]
    # Nothing can be seen before the commit.
    assert names(tmp_path / "out") == hidden(tmp_path / "out") and len(hidden(tmp_path)) == 10
    assert (lost.records, lost.digest) == (10, written[2].digest) and lost.name != written[2].name
    assert len({each.digest for each in written}) == 4
    with pytest.raises(ValueError, match="expected one file of the task 00001, found "):
        _tasks.commit(job, [*written, lost])
    paths = _tasks.commit(job, written)
    assert [os.path.basename(path) for path in paths] == [f"train-0000{k}-of-00003.tfrecord" for k in range(3)]
    assert names(tmp_path / "out") == [f".tfseek/train-0000{k}-of-00003.tfrecord.tfri" for k in range(3)] + [
        f"train-0000{k}-of-00003.tfrecord" for k in range(3)
    ]
    # The indexes have moved with their shards.
    ds = tfseek.open(tmp_path / "out", index="require")
    assert [int(ex["id"][0]) for ex in ds] == list(range(25))
    before = names(tmp_path)
    assert _tasks.commit(job, written) == paths and names(tmp_path) == before


def test_an_interrupted_commit_is_continued(tmp_path: pathlib.Path) -> None:
    job = _tasks.job(tmp_path / "train", compression="gzip")
    written = [write(job, k, range(k, k + 3)) for k in range(4)]
    # The state after two of four files have their names.
    for k in range(2):
        os.rename(tmp_path / written[k].name, tmp_path / f"train-0000{k}-of-00004.tfrecord.gz")
    with pytest.raises(tfseek.Error, match="missing"):
        tfseek.open(tmp_path)
    _tasks.commit(job, written)
    assert [int(ex["id"][0]) for ex in tfseek.open(tmp_path)] == [0, 1, 2, 1, 2, 3, 2, 3, 4, 3, 4, 5]


def test_a_job_without_a_commit_leaves_nothing_visible(tmp_path: pathlib.Path) -> None:
    code = (
        "import os, sys\nfrom tfseek import _tasks\njob = _tasks.job(sys.argv[1] + '/train')\n"
        "done = _tasks.TaskWriter(job, 0)\ndone.write({'id': 1})\ndone.close()\n"
        "half = _tasks.TaskWriter(job, 1)\nhalf.write({'id': 2})\nos.kill(os.getpid(), 9)\n"
    )
    assert subprocess.run([sys.executable, "-c", code, str(tmp_path)]).returncode == -signal.SIGKILL
    assert all(name.split("/")[-1].startswith(".") for name in names(tmp_path))
    for path in (tmp_path, tmp_path / "*"):
        with pytest.raises(tfseek.NotFoundError):
            tfseek.open(path)
    job = _tasks.job(tmp_path / "other")
    write(job, 0, range(3))
    before = hidden(tmp_path)
    _tasks.TaskWriter(job, 1).abort()
    _tasks.abort(job)
    # The files of other jobs stay.
    assert len(hidden(tmp_path)) == len(before) - 2 and not any(job.id in name for name in hidden(tmp_path))


def test_a_set_that_exists(tmp_path: pathlib.Path) -> None:
    first = _tasks.job(tmp_path / "train")
    _tasks.commit(first, [write(first, k, range(3)) for k in range(3)])
    with pytest.raises(tfseek.Error, match="train-00000-of-00003.tfrecord: already exists .force=True"):
        _tasks.job(tmp_path / "train")
    second = _tasks.job(tmp_path / "train", force=True)
    _tasks.commit(second, [write(second, 0, range(7))])
    assert names(tmp_path) == [".tfseek/train-00000-of-00001.tfrecord.tfri", "train-00000-of-00001.tfrecord"]
    third = _tasks.job(tmp_path / "train", force=True)
    _tasks.commit(third, [])
    assert len(tfseek.open(tmp_path)) == 0
    with pytest.raises(ValueError, match="compression: expected 'none', 'gzip' or 'zlib', found 'bz2'"):
        _tasks.job(tmp_path / "x", compression="bz2")


def test_writers(tmp_path: pathlib.Path) -> None:
    job = _tasks.job(tmp_path / "x")
    writer = _tasks.TaskWriter(job, "a_b", attempt=7)
    example = tfseek.Example({"id": 1})
    for record in (example, example.to_bytes(), {"id": 1}, tfseek.SequenceExample({}, {})):
        writer.write(record)
    with pytest.raises(TypeError, match="record: expected bytes, an Example"):
        writer.write(3)  # type: ignore[arg-type]
    written = writer.close()
    assert (written.task, written.name, written.records) == ("a_b", f".tmp-{job.id}-a_b-7", 4)
    assert written.bytes == os.path.getsize(tmp_path / written.name)
    for call in (writer.close, lambda: writer.write(b"")):
        with pytest.raises(tfseek.Error, match="closed"):
            call()
    bad: list[tuple[Any, str, str]] = [("a-b", "0", "task: expected letters"), (0, "/", "attempt: expected letters")]
    for task, attempt, words in bad:
        with pytest.raises(ValueError, match=words):
            _tasks.TaskWriter(job, task, attempt)
    elsewhere = _tasks.Job(str(tmp_path / "none" / "x"), "none", ".tfrecord", False, "j")
    with pytest.raises(tfseek.NotFoundError):
        _tasks.TaskWriter(elsewhere, 0)


TASK = """
import json, os, pickle, sys
from dataclasses import asdict
import pyarrow as pa
from tfseek import _tasks

job, task, dies = pickle.loads(bytes.fromhex(sys.argv[1])), int(sys.argv[2]), sys.argv[3] == "dies"
schema = pa.schema([("id", pa.int64())])

def batches():
    for k in range(10):
        if dies and k == 5:
            os._exit(9)
        yield pa.record_batch([[task * 100 + k * 10 + n for n in range(10)]], schema=schema)

file = _tasks.write(job, task, pa.RecordBatchReader.from_batches(schema, batches()))
print(json.dumps(asdict(file)))
"""


def run(job: _tasks.Job, task: int, how: str = "lives") -> Any:
    """Runs an attempt of a task in a process of its own. Returns its result, or ``None`` if it died."""
    arguments = [sys.executable, "-c", TASK, pickle.dumps(job).hex(), str(task), how]
    done = subprocess.run(arguments, capture_output=True, text=True)
    assert (done.returncode == 0) == (how == "lives"), done.stderr
    return _tasks.Written(**json.loads(done.stdout)) if done.stdout else None


def test_streams_of_processes(tmp_path: pathlib.Path) -> None:
    pytest.importorskip("pyarrow")
    job, other = _tasks.job(tmp_path / "train"), _tasks.job(tmp_path / "train")
    assert run(job, 1, "dies") is None
    lost, first, second = run(job, 1), run(job, 1), run(job, 0)
    assert lost.name != first.name and lost.digest == first.digest != second.digest
    run(other, 0)
    paths = _tasks.commit(job, [first, second])
    assert [record["id"][0] for record in tfseek.open(paths, index="require")] == list(range(200))
    # Only the other job still has files: it ends with an error, because there is a set of its name now.
    assert len(hidden(tmp_path)) == 2
    with pytest.raises(ValueError, match="belongs to another set of shards"):
        _tasks.commit(other, [run(other, 0)])
    _tasks.abort(other)
    assert hidden(tmp_path) == [] and asdict(first)["records"] == 100


def test_feature_lists(tmp_path: pathlib.Path) -> None:
    pa = pytest.importorskip("pyarrow")
    job = _tasks.job(tmp_path / "a", "gzip")
    table = pa.table({"id": [7, 8], "l": [[1], [2, 3]]})
    written = [_tasks.write(job, task, table, rename={"id": "x"}, feature_lists="l") for task in (11, 2)]
    paths = _tasks.commit(job, written)
    assert [path.endswith("-of-00002.tfrecord.gz") for path in paths] == [True, True]
    ds = tfseek.open(paths, kind="sequence_example", index="require")
    assert [record.context["x"][0] for record in ds] == [7, 8, 7, 8]
