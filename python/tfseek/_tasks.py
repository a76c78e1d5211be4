"""Sets that the tasks of an engine write.

:func:`begin` checks the arguments in the driver, a task writes a file with :func:`write_rows` or a :class:`RecordWriter`, and :func:`finish`
makes a set of the files that the driver received. ``_sink`` has the files themselves.
"""

from __future__ import annotations

import hashlib
import os
import re
import uuid
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Optional, Union

from . import _sink
from ._errors import Error
from ._sink import TaskFile
from ._tfseek import Example, SequenceExample, Writer

#: A record as :meth:`tfseek.Writer.write` takes it.
Record = Union[bytes, bytearray, Example, SequenceExample, Mapping[Any, Any]]

_ENDINGS = {"none": ".tfrecord", "gzip": ".tfrecord.gz", "zlib": ".tfrecord.zz"}


@dataclass(frozen=True)
class Job:
    """A set that is being written. It can be pickled."""

    folder: str
    #: file name of the set without numbers and ending
    stem: str
    compression: str
    force: bool
    #: options of the encoder: ``feature_lists`` and ``rename``
    encoding: Mapping[str, Any] = field(default_factory=dict)
    name: str = field(default_factory=_sink.new_job)

    @property
    def ending(self) -> str:
        """Ending of the files."""
        return _ENDINGS[self.compression]


def begin(path: Union[str, "os.PathLike[str]"], compression: str = "none", force: bool = False, **encoding: Any) -> Job:
    """Begins a set ``PATH-00000-of-N``. Raises :class:`tfseek.Error` if a set of that name exists, unless ``force`` is true."""
    if compression not in _ENDINGS:
        raise ValueError(f"compression: expected 'none', 'gzip' or 'zlib', found {compression!r}")
    folder, stem = os.path.split(os.path.abspath(os.fspath(path)))
    if not stem or str(path).endswith(os.sep):
        raise ValueError(f"path: expected a folder and a name such as 'out/train', found {os.fspath(path)!r}")
    job = Job(folder, stem, compression, force, encoding)
    old = [] if force else _visible(job)
    if old:
        raise Error(f"{os.path.join(folder, old[0])}: expected no set of this name, found one; force=True replaces it")
    os.makedirs(folder, exist_ok=True)
    return job


def write_rows(job: Job, task: int, batches: Iterable[Any]) -> TaskFile:
    """Writes ``pyarrow.RecordBatch`` objects as the file of a task."""
    import pyarrow

    rest = iter(batches)
    first = next(rest, None)
    if first is None:
        return RecordWriter(job, task).close()

    def all_batches() -> Iterator[Any]:
        yield first
        yield from rest

    stream = pyarrow.RecordBatchReader.from_batches(first.schema, all_batches())
    return _sink.write_task(stream, job.folder, job=job.name, task=task, compression=job.compression, **job.encoding)


class RecordWriter:
    """The writer of the file of a task, record by record. The file appears when it is closed."""

    def __init__(self, job: Job, task: int) -> None:
        self._job = job
        self._name = f".tmp-{job.name}-{task:05}-{uuid.uuid4().hex}"
        self._digest = hashlib.sha256()
        # An index that a writer makes of a compressed shard has no checkpoints, so a reader would make another one.
        self._writer = Writer(
            os.path.join(job.folder, self._name), compression=job.compression, index=job.compression == "none"
        )

    def write(self, record: Record) -> None:
        """Writes a record."""
        if isinstance(record, Mapping) and not isinstance(record, Example):
            record = Example(record)
        payload = record if isinstance(record, (bytes, bytearray)) else bytes(record)
        self._digest.update(len(payload).to_bytes(8, "little"))
        self._digest.update(payload)
        self._writer.write(payload)

    def close(self) -> TaskFile:
        """Completes the file and returns its description."""
        records = self._writer.records_written
        self._writer.close()
        size = os.path.getsize(os.path.join(self._job.folder, self._name))
        return {"name": self._name, "records": records, "bytes": size, "digest": self._digest.hexdigest()}


def finish(job: Job, files: Iterable[TaskFile]) -> list[str]:
    """Makes a set of the files, in the order of their tasks, and returns the paths. It can be repeated.

    Files without records are left out. A job without files makes one shard without records.
    """
    listed = sorted(files, key=lambda file: file["name"])
    listed = [file for file in listed if file["records"]] or listed[:1] or [RecordWriter(job, 0).close()]
    if job.force and all(os.path.exists(os.path.join(job.folder, file["name"])) for file in listed):
        # The last shard first: without it readers refuse the set.
        for name in reversed(_visible(job)):
            for path in (os.path.join(job.folder, name), os.path.join(job.folder, ".tfseek", name + ".tfri")):
                if os.path.exists(path):
                    os.unlink(path)
    return _sink.commit(os.path.join(job.folder, job.stem + job.ending), job.name, listed, force=job.force).shards


def cancel(job: Job) -> None:
    """Removes all files of the job."""
    _sink.abort(job.folder, job.name)


def _visible(job: Job) -> list[str]:
    """Returns the names of the shards of all sets of this name."""
    pattern = re.compile(re.escape(job.stem) + r"-\d+-of-\d+" + re.escape(job.ending))
    return sorted(filter(pattern.fullmatch, os.listdir(job.folder))) if os.path.isdir(job.folder) else []
