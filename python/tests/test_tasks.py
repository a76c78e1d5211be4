"""Sets that several tasks write: tasks that run twice, and jobs that end early."""

from __future__ import annotations

import json
import os
import pathlib
import pickle
import signal
import subprocess
import sys
from typing import Any

import pytest

import tfseek
from tfseek import _tasks


def write(job: _tasks.Job, task: int, numbers: range) -> _tasks.TaskFile:
    writer = _tasks.RecordWriter(job, task)
    for i in numbers:
        writer.write({"id": i})
    return writer.close()


def names(folder: pathlib.Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def ids(folder: Any, index: str = "require") -> list[int]:
    return [int(ex["id"][0]) for ex in tfseek.open(folder, index=index)]


def test_a_task_that_ran_twice_counts_once(tmp_path: pathlib.Path) -> None:
    job = pickle.loads(pickle.dumps(_tasks.begin(tmp_path / "out" / "train")))
    lost = write(job, 1, range(10, 20))
    files = [write(job, 2, range(20, 25)), write(job, 0, range(10)), write(job, 1, range(10, 20)), write(job, 3, range(0))]
    # Nothing can be seen before the end.
    assert all(name.split("/")[-1].startswith(".tmp-") for name in names(tmp_path / "out"))
    assert (lost["records"], lost["digest"]) == (10, files[2]["digest"]) and lost["name"] != files[2]["name"]
    assert len({file["digest"] for file in files}) == 4
    with pytest.raises(ValueError, match="expected one file of the task 00001, found "):
        _tasks.finish(job, [*files, lost])
    paths = _tasks.finish(job, files)
    shards = [f"train-0000{k}-of-00003.tfrecord" for k in range(3)]
    assert [os.path.basename(path) for path in paths] == shards
    assert names(tmp_path / "out") == [f".tfseek/{name}.tfri" for name in shards] + shards
    assert ids(tmp_path / "out") == list(range(25))
    before = names(tmp_path)
    assert _tasks.finish(job, files) == paths and names(tmp_path) == before


@pytest.mark.parametrize("compression", ["gzip", "zlib"])
def test_compressed_sets(tmp_path: pathlib.Path, compression: str) -> None:
    job = _tasks.begin(tmp_path / "train", compression=compression)
    paths = _tasks.finish(job, [write(job, k, range(k, k + 3)) for k in range(2)])
    assert paths[0].endswith("train-00000-of-00002.tfrecord" + {"gzip": ".gz", "zlib": ".zz"}[compression])
    assert ids(tmp_path) == [0, 1, 2, 1, 2, 3]


def test_tables(tmp_path: pathlib.Path) -> None:
    pa = pytest.importorskip("pyarrow")
    job = _tasks.begin(tmp_path / "train", feature_lists=["steps"])
    batch = pa.record_batch({"id": [1, 2, None], "steps": [[[1], [2, 3]], [], [[4]]]})
    # The order of the tasks decides, and a task without batches makes no shard.
    files = [_tasks.write_rows(job, task, batches) for task, batches in ((7, [batch]), (3, []), (1, [batch, batch[:1]]))]
    assert [file["records"] for file in files] == [3, 0, 4]
    assert len(_tasks.finish(job, files)) == 2
    ds = tfseek.open(tmp_path, index="require", kind="sequence_example")
    assert [int(ex.context["id"][0]) if "id" in ex.context else None for ex in ds] == [1, 2, None, 1, 1, 2, None]
    assert [len(ex.feature_lists["steps"]) for ex in ds] == [2, 0, 1, 2, 2, 0, 1]


def test_a_job_without_an_end_leaves_nothing_visible(tmp_path: pathlib.Path) -> None:
    code = (
        "import os, sys\nfrom tfseek import _tasks\njob = _tasks.begin(sys.argv[1] + '/train')\n"
        "done = _tasks.RecordWriter(job, 0)\ndone.write({'id': 1})\ndone.close()\n"
        "half = _tasks.RecordWriter(job, 1)\nhalf.write({'id': 2})\nos.kill(os.getpid(), 9)\n"
    )
    assert subprocess.run([sys.executable, "-c", code, str(tmp_path)]).returncode == -signal.SIGKILL
    assert all(name.split("/")[-1].startswith(".") for name in names(tmp_path))
    with pytest.raises(tfseek.NotFoundError):
        tfseek.open(tmp_path)
    job = _tasks.begin(tmp_path / "other")
    before = names(tmp_path)
    write(job, 0, range(3))
    _tasks.RecordWriter(job, 1).abort()
    assert len(names(tmp_path)) == len(before) + 2
    # The files of other jobs stay.
    _tasks.cancel(job)
    assert names(tmp_path) == before


def test_a_set_that_exists(tmp_path: pathlib.Path) -> None:
    first = _tasks.begin(tmp_path / "train")
    _tasks.finish(first, [write(first, k, range(3)) for k in range(3)])
    with pytest.raises(tfseek.Error, match="train-00000-of-00003.tfrecord: already exists .force=True"):
        _tasks.begin(tmp_path / "train")
    second = _tasks.begin(tmp_path / "train", force=True)
    _tasks.finish(second, [write(second, 0, range(7))])
    assert names(tmp_path) == [".tfseek/train-00000-of-00001.tfrecord.tfri", "train-00000-of-00001.tfrecord"]
    third = _tasks.begin(tmp_path / "train", force=True)
    _tasks.finish(third, [])
    assert ids(tmp_path) == []
    with pytest.raises(ValueError, match="invalid name .bz2. of a compression: expected none, gzip or zlib"):
        _tasks.begin(tmp_path / "x", compression="bz2")
    with pytest.raises(ValueError, match="path: expected a folder and a name such as 'out/train', found "):
        _tasks.begin(str(tmp_path) + os.sep)


def test_an_interrupted_end_is_continued(tmp_path: pathlib.Path) -> None:
    job = _tasks.begin(tmp_path / "train")
    files = [write(job, k, range(k, k + 3)) for k in range(4)]
    # The state after two of four files have their names.
    for k in range(2):
        os.rename(tmp_path / files[k]["name"], tmp_path / f"train-0000{k}-of-00004.tfrecord")
    with pytest.raises(tfseek.Error, match="missing"):
        tfseek.open(tmp_path)
    _tasks.finish(job, files)
    assert ids(tmp_path, "memory") == [0, 1, 2, 1, 2, 3, 2, 3, 4, 3, 4, 5]


def test_writers(tmp_path: pathlib.Path) -> None:
    job = _tasks.begin(tmp_path / "x")
    writer = _tasks.RecordWriter(job, "a_b")
    example = tfseek.Example({"id": 1})
    for record in (example, example.to_bytes(), {"id": 1}, tfseek.SequenceExample({}, {})):
        writer.write(record)
    with pytest.raises(TypeError, match="record: expected bytes, an Example"):
        writer.write(3)
    file = writer.close()
    assert file["name"].startswith(f".tmp-{job.name}-a_b-") and file["records"] == 4
    assert file["bytes"] == os.path.getsize(tmp_path / file["name"])
    for call in (writer.close, lambda: writer.write(b"")):
        with pytest.raises(tfseek.Error, match="closed"):
            call()
    with pytest.raises(ValueError, match="task: expected letters"):
        _tasks.RecordWriter(job, "a-b")
    with pytest.raises(tfseek.NotFoundError):
        _tasks.RecordWriter(_tasks.Job(str(tmp_path / "none" / "x"), "none", False), 0)


TASK = """
import json, os, pickle, sys
import pyarrow as pa
from tfseek import _tasks

job, task, dies = pickle.loads(bytes.fromhex(sys.argv[1])), int(sys.argv[2]), sys.argv[3] == "dies"
schema = pa.schema([("id", pa.int64())])

def batches():
    for k in range(10):
        if dies and k == 5:
            os._exit(9)
        yield pa.record_batch([[task * 100 + k * 10 + n for n in range(10)]], schema=schema)

print(json.dumps(_tasks.write_rows(job, task, batches())))
"""


def run(job: _tasks.Job, task: int, how: str = "lives") -> Any:
    """Runs an attempt of a task in a process of its own. Returns its result, or ``None`` if it died."""
    arguments = [sys.executable, "-c", TASK, pickle.dumps(job).hex(), str(task), how]
    done = subprocess.run(arguments, capture_output=True, text=True)
    assert (done.returncode == 0) == (how == "lives"), done.stderr
    return json.loads(done.stdout) if done.stdout else None


def test_processes_that_die(tmp_path: pathlib.Path) -> None:
    pytest.importorskip("pyarrow")
    job, other = _tasks.begin(tmp_path / "train"), _tasks.begin(tmp_path / "train")
    assert run(job, 1, "dies") is None
    lost, first, second = run(job, 1), run(job, 1), run(job, 0)
    assert lost["name"] != first["name"] and lost["digest"] == first["digest"] != second["digest"]
    late = run(other, 0)
    paths = _tasks.finish(job, [first, second])
    assert ids(paths) == list(range(200))
    # The other job still has its files. It ends with an error, because there is a set of its name now.
    assert os.path.exists(tmp_path / late["name"])
    with pytest.raises(ValueError, match="belongs to another set of shards"):
        _tasks.finish(other, [late])
    _tasks.cancel(other)
    assert ids(tmp_path) == list(range(200)) and len(names(tmp_path)) == 4
