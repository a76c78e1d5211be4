"""Sets that several tasks write, each its own file. They become visible at once.

A driver begins a :class:`Job`. A task writes a hidden file, with its index next to it, and returns a :class:`Written` to the driver.
:func:`commit` gives the returned files the names of a set, in the order of the tasks, and removes all others. So a task that ran twice
counts once, and a job that ends early leaves no visible file. All processes see the folder under the same path.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Optional, Union

from . import _tfseek
from ._tfseek import Example, SequenceExample
from ._write_arrow import encoding

#: A record as :meth:`tfseek.Writer.write` takes it.
Record = Union[bytes, bytearray, Example, SequenceExample, Mapping[Any, Any]]


@dataclass(frozen=True)
class Job:
    """A set of shards that is being written: ``path`` without numbers and suffix, and options. It can be pickled."""

    path: str
    compression: str
    suffix: str
    force: bool
    id: str

    @property
    def folder(self) -> str:
        """Folder of the set."""
        return os.path.dirname(self.path) or "."

    @property
    def out(self) -> str:
        """Path of the set without numbers."""
        return self.path + self.suffix


@dataclass(frozen=True)
class Written:
    """The file of one task: its task, name, numbers of records and bytes, and the SHA-256 of all payloads. A payload is hashed as 8 bytes of length,
    little-endian, followed by its bytes.
    """

    task: Union[int, str]
    name: str
    records: int
    bytes: int
    digest: str


def job(path: Union[str, "os.PathLike[str]"], compression: str = "none", force: bool = False) -> Job:
    """Begins a set ``path``, such as ``"out/train"``. Raises :class:`tfseek.Error` if a set of that name exists, unless ``force`` is true."""
    suffixes = {"none": ".tfrecord", "gzip": ".tfrecord.gz", "zlib": ".tfrecord.zz"}
    if compression not in suffixes:
        raise ValueError(f"compression: expected 'none', 'gzip' or 'zlib', found {compression!r}")
    new = Job(os.path.abspath(os.fspath(path)), compression, suffixes[compression], force, uuid.uuid4().hex[:12])
    if not os.path.basename(os.fspath(path)):
        raise ValueError(f"path: expected a folder and a name such as 'out/train', found {os.fspath(path)!r}")
    if not force:
        _tfseek.check_job(new.out)
    os.makedirs(new.folder, exist_ok=True)
    return new


class TaskWriter:
    """The writer of one attempt of a task, record by record. Its file appears when it is closed, and is hidden.

    ``task`` is a number, or a name of letters, digits, ``_`` and ``.``. Numbers come first in the order of the shards. ``attempt`` is a name that no
    other attempt of the task has, by default a random one.
    """

    def __init__(self, of: Job, task: Union[int, str], attempt: Optional[Union[int, str]] = None) -> None:
        self._task = task
        self._core = _tfseek.TaskWriterCore(_arguments(of, task, attempt))

    def write(self, record: Record) -> None:
        """Writes a record."""
        self._core.write(record)

    def close(self) -> Written:
        """Completes the file and its index. Returns its description."""
        return Written(self._task, *self._core.close())

    def abort(self) -> None:
        """Ends without a file."""
        self._core.abort()


def write(
    of: Job,
    task: Union[int, str],
    stream: Any,
    attempt: Optional[Union[int, str]] = None,
    *,
    feature_lists: Union[str, Iterable[str]] = (),
    rename: Optional[Mapping[str, str]] = None,
) -> Written:
    """Writes the rows of a table or a stream as the file of one attempt of a task, as :func:`tfseek.write` does."""
    encoded = encoding(feature_lists, rename)
    return Written(task, *_tfseek.write_task(stream, {**encoded, **_arguments(of, task, attempt)}))


def commit(of: Job, written: Iterable[Written]) -> list[str]:
    """Gives the files their names and returns the paths. It can be repeated after an interruption.

    Files are in the order of their tasks. Those without records are left out, but a set has at least one shard. The last shard gets its name
    last: a set without it is refused by all readers. Raises :class:`ValueError` for two files of one task, and for a file that is missing or
    has another size.
    """
    files = [(file.name, file.records, file.bytes, file.digest) for file in written]
    return _tfseek.commit_tasks(of.out, of.id, files, of.compression, of.force)[1]


def abort(of: Job) -> None:
    """Removes the files of all tasks that have no names yet."""
    _tfseek.abort_tasks(of.folder, of.id)


def _arguments(of: Job, task: Union[int, str], attempt: Optional[Union[int, str]]) -> dict[str, Any]:
    return {
        "folder": of.folder,
        "job": of.id,
        "task": str(task),
        "attempt": uuid.uuid4().hex[:12] if attempt is None else str(attempt),
        "compression": of.compression,
    }
