"""Sets that the tasks of an engine write.

:func:`begin` checks the arguments in the driver. A task writes a hidden file, with its index next to it, by :func:`write_stream`,
:func:`write_rows` or a :class:`RecordWriter`, and returns its :class:`TaskFile` to the driver. :func:`finish` gives these files the names of a set, in
the order of the tasks, and removes all others. So a task that ran twice counts once, and a job that ends early leaves no visible
file. All processes see the folder under the same path.
"""

from __future__ import annotations

import itertools
import os
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypedDict, Union

from . import _tfseek
from ._choices import Compression, Float64
from ._tfseek import Example, SequenceExample
from ._write_arrow import encoding, fields_as_columns

if TYPE_CHECKING:
    from typing_extensions import Unpack

#: A record as :meth:`tfseek.Writer.write` takes it.
Record = Union[bytes, bytearray, Example, SequenceExample, Mapping[Any, Any]]


class Encoding(TypedDict, total=False):
    """Options of the encoder, as of :func:`tfseek.write`."""

    feature_lists: list[str]
    rename: dict[str, str]
    float64: Float64


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


@dataclass(frozen=True)
class Job:
    """A set that is being written. It can be pickled."""

    #: path of the set without numbers
    out: str
    compression: Compression
    force: bool
    #: options of the encoder: ``feature_lists``, ``rename`` and ``float64``
    encoding: Mapping[str, Any] = field(default_factory=dict)
    name: str = field(default_factory=lambda: uuid.uuid4().hex)

    @property
    def folder(self) -> str:
        """Folder of the set and of the files of tasks."""
        return os.path.dirname(self.out)


def begin(path: Union[str, "os.PathLike[str]"], compression: Compression = "none", force: bool = False, **options: Unpack[Encoding]) -> Job:
    """Begins a set ``PATH-00000-of-N``. Raises :class:`tfseek.Error` if a set of that name exists, unless ``force`` is true."""
    _tfseek.check_output(os.fspath(path))
    ending = _tfseek.file_ending(compression)
    if not os.path.basename(os.fspath(path)):
        raise ValueError(f"path: expected a folder and a name such as 'out/train', found {os.fspath(path)!r}")
    job = Job(os.path.abspath(os.fspath(path)) + ending, compression, force, options)
    if not force:
        _tfseek.check_job(job.out)
    os.makedirs(job.folder, exist_ok=True)
    return job


def write_stream(job: Job, task: Union[int, str], stream: Any) -> TaskFile:
    """Writes the rows of a table or a stream as the file of a task, as :func:`tfseek.write` does."""
    arguments = {**encoding(**job.encoding), **_attempt(job, task)}
    return _file(_tfseek.write_task(fields_as_columns(stream), arguments))


def write_rows(job: Job, task: Union[int, str], batches: Iterable[Any]) -> TaskFile:
    """Writes ``pyarrow.RecordBatch`` objects as the file of a task."""
    import pyarrow

    rest = iter(batches)
    first = next(rest, None)
    if first is None:
        return RecordWriter(job, task).close()
    return write_stream(job, task, pyarrow.RecordBatchReader.from_batches(first.schema, itertools.chain([first], rest)))


class RecordWriter:
    """The writer of the file of a task, record by record. The file appears when it is closed.

    ``task`` is a number, or a name of letters, digits, ``_`` and ``.``. Numbers come first in the order of the shards.
    """

    def __init__(self, job: Job, task: Union[int, str]) -> None:
        self._core = _tfseek.TaskWriterCore(_attempt(job, task))

    def write(self, record: Record) -> None:
        """Writes a record."""
        self._core.write(record)

    def close(self) -> TaskFile:
        """Completes the file and its index. Returns its description."""
        return _file(self._core.close())

    def abort(self) -> None:
        """Ends without a file."""
        self._core.abort()


def finish(job: Job, files: Iterable[TaskFile]) -> list[str]:
    """Makes a set of the files, in the order of their tasks, and returns the paths. It can be repeated after an interruption.

    Files without records are left out. A job without files makes one shard without records. The last shard gets its name last: a set
    without it is refused by all readers. Raises :class:`ValueError` for two files of one task, and for a file that is missing or has another
    size.
    """
    listed = [(file["name"], file["records"], file["bytes"], file["digest"]) for file in files]
    return _tfseek.commit_tasks(job.out, job.name, listed, job.compression, job.force)[1]


def cancel(job: Job) -> None:
    """Removes all files of the job."""
    _tfseek.abort_tasks(job.folder, job.name)


def _attempt(job: Job, task: Union[int, str]) -> dict[str, Any]:
    """Returns the arguments of a new attempt of a task."""
    return {
        "folder": job.folder,
        "job": job.name,
        "task": str(task),
        "attempt": uuid.uuid4().hex,
        "compression": job.compression,
    }


def _file(written: tuple[str, int, int, str]) -> TaskFile:
    name, records, size, digest = written
    return {"name": name, "records": records, "bytes": size, "digest": digest}
