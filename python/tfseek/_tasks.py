"""Output of several tasks that becomes visible at once.

A task writes a hidden file, with its index next to it, and returns a :class:`Written`. :func:`commit` gives the returned files the names
of a set, in the order of the tasks, and removes all others. So a task that ran twice counts once, and a job that ends early leaves no
visible file.
"""

from __future__ import annotations

import hashlib
import os
import re
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Optional, Union

from ._errors import Error
from ._tfseek import Example, SequenceExample, Writer

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
    def stem(self) -> str:
        """File name of the set without numbers and suffix."""
        return os.path.basename(self.path)

    @property
    def hidden(self) -> str:
        """Beginning of the names of the files of tasks."""
        return f".{self.stem}.tmp-{self.id}-"


@dataclass(frozen=True)
class Written:
    """The file of one task: its task, name, number of records, and the BLAKE2b-128 of all payloads in their order."""

    task: Union[int, str]
    name: str
    records: int
    digest: str


def job(path: Union[str, "os.PathLike[str]"], compression: str = "none", force: bool = False) -> Job:
    """Begins a set. Raises :class:`tfseek.Error` if a set of that name exists, unless ``force`` is true."""
    suffixes = {"none": ".tfrecord", "gzip": ".tfrecord.gz", "zlib": ".tfrecord.zz"}
    if compression not in suffixes:
        raise ValueError(f"compression: expected 'none', 'gzip' or 'zlib', found {compression!r}")
    new = Job(os.path.abspath(os.fspath(path)), compression, suffixes[compression], force, uuid.uuid4().hex[:12])
    if not new.stem:
        raise ValueError(f"path: expected a folder and a name such as 'out/train', found {os.fspath(path)!r}")
    old = [] if force else _visible(new)
    if old:
        raise Error(f"{os.path.join(new.folder, old[0])}: expected no such set, found one; force=True replaces it")
    os.makedirs(new.folder, exist_ok=True)
    return new


class TaskWriter:
    """The writer of one attempt of a task. Its file appears when it is closed, and is hidden."""

    def __init__(self, of: Job, task: Union[int, str], attempt: Optional[str] = None) -> None:
        self._task = task
        self._name = f"{of.hidden}{task}-{attempt or uuid.uuid4().hex[:12]}"
        # An index that a writer makes of a compressed shard has no checkpoints, so a reader would make another one.
        self._writer = Writer(
            os.path.join(of.folder, self._name), compression=of.compression, index=of.compression == "none"
        )
        self._digest = hashlib.blake2b(digest_size=16)

    def write(self, record: Record) -> None:
        """Writes a record."""
        if isinstance(record, Mapping) and not isinstance(record, Example):
            record = Example(record)
        payload = record if isinstance(record, (bytes, bytearray)) else bytes(record)
        self._digest.update(payload)
        self._writer.write(payload)

    def close(self) -> Written:
        """Completes the file and returns its description."""
        records = self._writer.records_written
        self._writer.close()
        return Written(self._task, self._name, records, self._digest.hexdigest())

    def abort(self) -> None:
        """Ends without a file."""
        self._writer.__exit__(RuntimeError)


def commit(of: Job, written: Iterable[Written]) -> list[str]:
    """Gives the files their names and returns the paths. A second call does nothing.

    Files are in the order of their tasks, and files without records are left out. The last shard gets its name last: a set without it is
    refused by all readers.
    """
    one_per_task = {each.task: each for each in written}
    ordered = [one_per_task[task] for task in sorted(one_per_task, key=lambda task: (isinstance(task, str), task))]
    files = [each for each in ordered if each.records] or ordered[:1]
    if not files:
        writer = TaskWriter(of, 0)
        files = [writer.close()]
    names = [f"{of.stem}-{k:05}-of-{len(files):05}{of.suffix}" for k in range(len(files))]
    if _exists(of, files[-1].name):
        for name in sorted(_visible(of), reverse=True) if of.force else []:
            if name not in names or _exists(of, files[names.index(name)].name):
                _remove(of, name)
        taken = [name for name, each in zip(names, files) if _exists(of, each.name) and _exists(of, name)]
        if taken:
            raise Error(f"{os.path.join(of.folder, taken[0])}: expected no such file, found one that another process has made")
        for name, each in zip(names, files):
            if _exists(of, each.name):
                _rename(of, each.name, name)
    abort(of)
    return [os.path.join(of.folder, name) for name in names]


def abort(of: Job) -> None:
    """Removes the files of all tasks that have no names yet."""
    for folder in (of.folder, os.path.join(of.folder, ".tfseek")):
        names = os.listdir(folder) if os.path.isdir(folder) else []
        for name in names:
            if name.startswith(of.hidden):
                _unlink(os.path.join(folder, name))


def _visible(of: Job) -> list[str]:
    """Returns the names of the shards of all sets with this stem and suffix."""
    pattern = re.compile(re.escape(of.stem) + r"-\d+-of-\d+" + re.escape(of.suffix))
    return sorted(filter(pattern.fullmatch, os.listdir(of.folder))) if os.path.isdir(of.folder) else []


def _sidecar(of: Job, name: str) -> str:
    return os.path.join(of.folder, ".tfseek", name + ".tfri")


def _exists(of: Job, name: str) -> bool:
    return os.path.exists(os.path.join(of.folder, name))


def _rename(of: Job, old: str, new: str) -> None:
    # The index first: one without its shard is not used.
    if os.path.exists(_sidecar(of, old)):
        os.replace(_sidecar(of, old), _sidecar(of, new))
    os.rename(os.path.join(of.folder, old), os.path.join(of.folder, new))


def _remove(of: Job, name: str) -> None:
    _unlink(os.path.join(of.folder, name))
    _unlink(_sidecar(of, name))


def _unlink(path: str) -> None:
    try:
        os.unlink(path)
    except FileNotFoundError:
        pass
