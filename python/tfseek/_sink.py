"""Sets that many processes write: a file of each attempt of a task, and a commit that counts each task once.

A task of an engine calls :func:`write_task` and returns its result to the driver, which calls :func:`commit` with the results of all tasks. A
task that runs twice, or twice at the same time, has two attempts, of which the driver has one result. Until the commit no set is
visible. All processes see the folder under the same path.

>>> files = [write_task(table, "out", job=job, task=number) for number, table in enumerate(tables)]  # in workers
>>> commit("out/train.tfrecord", job, files).path
'out/train@3.tfrecord'
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterable, Mapping
from typing import Any, Optional, TypedDict, Union

from . import _tfseek
from ._write_arrow import WrittenSet, encoding


class TaskFile(TypedDict):
    """A file that an attempt of a task wrote. It can be sent to other processes as JSON."""

    #: name of the file in its folder
    name: str
    #: number of records
    records: int
    #: size of the file in bytes
    bytes: int
    #: SHA-256 of all payloads in hex; each is hashed as 8 bytes of length, little-endian, followed by its bytes
    digest: str


def new_job() -> str:
    """Returns the name of a new job."""
    return uuid.uuid4().hex


def write_task(
    stream: Any,
    folder: Union[str, "os.PathLike[str]"],
    *,
    job: str,
    task: int,
    attempt: Optional[Union[int, str]] = None,
    feature_lists: Union[str, Iterable[str]] = (),
    rename: Optional[Mapping[str, str]] = None,
    compression: Optional[str] = None,
    members: Optional[Union[int, str]] = None,
    index: bool = True,
) -> TaskFile:
    """Writes the rows of a stream to the file ``.tmp-JOB-TASK-ATTEMPT`` in an existing folder, with its index.

    job: a name that no other job in the folder has, such as that of :func:`new_job`.
    task: number of the task, which decides about the order of the shards.
    attempt: a name that no other attempt of the task has. By default a random one.

    Names of jobs and attempts consist of letters, digits, ``_`` and ``.``. The other arguments are those of :func:`tfseek.write`.
    """
    arguments = {
        "folder": os.fspath(folder),
        "job": job,
        "task": task,
        "attempt": uuid.uuid4().hex if attempt is None else str(attempt),
        **encoding(feature_lists, rename, compression, members, index),
    }
    name, records, size, digest = _tfseek.write_task(stream, arguments)
    return {"name": name, "records": records, "bytes": size, "digest": digest}


def commit(
    out: Union[str, "os.PathLike[str]"], job: str, files: Iterable[TaskFile], *, force: bool = False
) -> WrittenSet:
    """Makes the files of tasks a set of shards ``NAME-00000-of-N`` in the order of the tasks, and removes all other files of the job.

    ``out`` is the path of the set without a number: ``out/train.tfrecord``. Its folder is that of the files. ``force`` replaces existing
    files. The last shard gets its name last, and a set without it is refused. A commit that was interrupted can be repeated. Raises
    :class:`ValueError` for two files of one task, and for a file that is missing or has another size.
    """
    listed = [(file["name"], file["records"], file["bytes"], file["digest"]) for file in files]
    return WrittenSet(*_tfseek.commit_tasks(os.fspath(out), job, listed, bool(force)))


def abort(folder: Union[str, "os.PathLike[str]"], job: str) -> None:
    """Removes all files of a job."""
    _tfseek.abort_tasks(os.fspath(folder), job)
