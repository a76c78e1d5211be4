"""Sets that several tasks write: tasks that run twice, and jobs that end early."""

from __future__ import annotations

import os
import pathlib
import pickle
import subprocess
import sys

import pytest

import tfseek
from tfseek import _tasks
from tfseek._sink import TaskFile


def write(job: _tasks.Job, task: int, numbers: range) -> TaskFile:
    writer = _tasks.RecordWriter(job, task)
    for i in numbers:
        writer.write({"id": i})
    return writer.close()


def names(folder: pathlib.Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def ids(folder: pathlib.Path, index: str = "require") -> list[int]:
    return [int(ex["id"][0]) for ex in tfseek.open(folder, index=index)]


def test_a_task_that_ran_twice_counts_once(tmp_path: pathlib.Path) -> None:
    job = pickle.loads(pickle.dumps(_tasks.begin(tmp_path / "out" / "train")))
    lost = write(job, 1, range(10, 20))
    files = [write(job, 2, range(20, 25)), write(job, 0, range(10)), write(job, 1, range(10, 20)), write(job, 3, range(0))]
    # Nothing can be seen before the end.
    assert all(name.split("/")[-1].startswith(".tmp-") for name in names(tmp_path / "out"))
    assert (lost["records"], lost["digest"]) == (10, files[2]["digest"]) and lost["name"] != files[2]["name"]
    assert len({file["digest"] for file in files}) == 4
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
    assert ids(tmp_path, "memory") == [0, 1, 2, 1, 2, 3]


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
    assert subprocess.run([sys.executable, "-c", code, str(tmp_path)]).returncode != 0
    assert all(name.split("/")[-1].startswith(".") for name in names(tmp_path))
    with pytest.raises(tfseek.NotFoundError):
        tfseek.open(tmp_path)
    job = _tasks.begin(tmp_path / "other")
    write(job, 0, range(3))
    assert any(job.name in name for name in names(tmp_path))
    _tasks.cancel(job)
    assert not any(job.name in name for name in names(tmp_path))


def test_a_set_that_exists(tmp_path: pathlib.Path) -> None:
    first = _tasks.begin(tmp_path / "train")
    _tasks.finish(first, [write(first, k, range(3)) for k in range(3)])
    with pytest.raises(tfseek.Error, match="train-00000-of-00003.tfrecord: expected no set of this name, found one; force=True"):
        _tasks.begin(tmp_path / "train")
    second = _tasks.begin(tmp_path / "train", force=True)
    _tasks.finish(second, [write(second, 0, range(7))])
    assert names(tmp_path) == [".tfseek/train-00000-of-00001.tfrecord.tfri", "train-00000-of-00001.tfrecord"]
    third = _tasks.begin(tmp_path / "train", force=True)
    _tasks.finish(third, [])
    assert ids(tmp_path) == []
    with pytest.raises(ValueError, match="compression: expected 'none', 'gzip' or 'zlib', found 'bz2'"):
        _tasks.begin(tmp_path / "x", compression="bz2")
    with pytest.raises(ValueError, match="path: expected a folder and a name such as 'out/train', found "):
        _tasks.begin(str(tmp_path) + os.sep)
