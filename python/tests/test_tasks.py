"""Output of several tasks: tasks that run twice, and jobs that end early."""

from __future__ import annotations

import os
import pathlib
import pickle
import subprocess
import sys

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


def test_a_task_that_ran_twice_counts_once(tmp_path: pathlib.Path) -> None:
    job = pickle.loads(pickle.dumps(_tasks.job(tmp_path / "out" / "train")))
    lost = write(job, 1, range(10, 20))
    written = [write(job, 2, range(20, 25)), write(job, 0, range(10)), write(job, 1, range(10, 20)), write(job, 3, range(0))]
    # Nothing can be seen before the commit.
    assert all(name.split("/")[-1].startswith(".train.tmp-") for name in names(tmp_path / "out"))
    assert (lost.records, lost.digest) == (10, written[2].digest) and lost.name != written[2].name
    assert len({each.digest for each in written}) == 4
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


def test_an_interrupted_commit_is_continued(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    job = _tasks.job(tmp_path / "train", compression="gzip")
    written = [write(job, k, range(k, k + 3)) for k in range(4)]
    rename, calls = os.rename, []

    def fail(old: str, new: str) -> None:
        calls.append(new)
        if len(calls) == 3:
            raise OSError("interrupted")
        rename(old, new)

    with monkeypatch.context() as patch:
        patch.setattr(os, "rename", fail)
        with pytest.raises(OSError, match="interrupted"):
            _tasks.commit(job, written)
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
    assert subprocess.run([sys.executable, "-c", code, str(tmp_path)]).returncode != 0
    assert all(name.split("/")[-1].startswith(".") for name in names(tmp_path))
    with pytest.raises(tfseek.NotFoundError):
        tfseek.open(tmp_path)
    job = _tasks.job(tmp_path / "other")
    write(job, 0, range(3))
    _tasks.TaskWriter(job, 1).abort()
    _tasks.abort(job)
    assert not any("other" in name for name in names(tmp_path))


def test_a_set_that_exists(tmp_path: pathlib.Path) -> None:
    first = _tasks.job(tmp_path / "train")
    _tasks.commit(first, [write(first, k, range(3)) for k in range(3)])
    with pytest.raises(tfseek.Error, match="train-00000-of-00003.tfrecord: expected no such set, found one; force=True"):
        _tasks.job(tmp_path / "train")
    second = _tasks.job(tmp_path / "train", force=True)
    _tasks.commit(second, [write(second, 0, range(7))])
    assert names(tmp_path) == [".tfseek/train-00000-of-00001.tfrecord.tfri", "train-00000-of-00001.tfrecord"]
    third = _tasks.job(tmp_path / "train", force=True)
    _tasks.commit(third, [])
    assert len(tfseek.open(tmp_path)) == 0
    with pytest.raises(ValueError, match="compression: expected 'none', 'gzip' or 'zlib', found 'bz2'"):
        _tasks.job(tmp_path / "x", compression="bz2")
