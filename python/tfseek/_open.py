"""``tfseek.open`` and ``tfseek.build_index``."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any, Optional, Union

from . import _tfseek
from ._progress import Progress
from ._tfseek import Dataset

Paths = Union[str, "os.PathLike[str]", Iterable[Union[str, "os.PathLike[str]"]]]


def open(
    paths: Paths,
    *,
    index: str = "auto",
    index_dir: Optional[Union[str, "os.PathLike[str]"]] = None,
    verify: str = "payload",
    io: str = "auto",
    columns: Union[str, Iterable[str]] = (),
    kind: str = "auto",
    tail: str = "strict",
    allow_missing: bool = False,
    max_record: Optional[int] = None,
    jobs: int = 0,
    progress: Progress = None,
) -> Dataset:
    """Opens shards as one sequence of records.

    ``paths`` is a file, a folder, a pattern (``train-*.tfrecord``), a set (``train@10.tfrecord``) or a list of them.

    **The files must not be written to or truncated while the dataset, or an array made from it, lives**: they are mapped into
    memory, and the process would be killed or see bytes change. Replacing a file by rename is fine. ``io="pread"`` reads them
    instead, and needs no such promise.

    index: ``"auto"`` finds indexes and builds what is missing; ``"require"`` builds none; ``"memory"`` neither reads nor writes
        index files; ``"rebuild"`` scans anew.
    index_dir: a folder for index files that is searched and written first.
    verify: what is checked at each access: ``"payload"`` (as TensorFlow) or ``"header"``.
    io: ``"auto"`` maps, or reads where the process may not have so many maps; ``"map"``; ``"pread"``.
    columns: features whose columns are found, or built in one scan, as indexes are, and kept at hand for ``ds.column(feature)`` and
        ``ds.filter(condition)``. Both do that at their first use otherwise.
    kind: what ``ds[i]`` is: ``"example"``, ``"sequence_example"``, ``"bytes"``, or ``"auto"`` for what the first records are.
    tail: whether bytes after the last whole record are an error (``"strict"``) or the end (``"tolerate"``).
    allow_missing: whether a set may have gaps. Record numbers are then those of what is there.
    max_record: payload bytes of a record, at most; 2**31 - 1 by default, the longest message that protobuf parses. A longer record is a
        :class:`tfseek.DataError` when it is asked for, before memory is allocated for it; the others stay readable.
    jobs: threads that scan shards without an index; 0 is one for each processor.
    progress: shows how far indexes and columns are. ``True`` is a bar of ``tqdm``, or a line on standard error where that is not
        installed; or a bar or class like those of ``tqdm``; or a callable ``f(done, total)``. The callable is called by the thread that
        called ``open``, when it begins, about every 50 ms and at the end, with the bytes that were scanned and those of all shards, or
        ``None`` where that is not known; shards that need no scan are not counted as done. An exception that it raises ends the
        work. A pickled copy has no progress.

    Raises :class:`tfseek.NotFoundError`, :class:`tfseek.IoError`, :class:`tfseek.DataError` at the first damage of a shard that
    had to be scanned, and :class:`tfseek.SidecarError`.
    """
    return _tfseek.open(
        {
            "paths": _paths(paths),
            "index": index,
            "index_dir": None if index_dir is None else os.fspath(index_dir),
            "verify": verify,
            "io": io,
            "columns": [columns] if isinstance(columns, str) else list(columns),
            "kind": kind,
            "tail": tail,
            "allow_missing": allow_missing,
            "max_record": max_record,
            "jobs": jobs,
        },
        progress,
    )


def reopen(how: dict[str, Any], fingerprint: str, ids: Any) -> Dataset:
    """A pickled Dataset."""
    return _tfseek.open(how)._restore(fingerprint, ids)


def build_index(
    paths: Paths,
    *,
    jobs: int = 0,
    progress: Progress = None,
    index_dir: Optional[Union[str, "os.PathLike[str]"]] = None,
    rebuild: bool = False,
    allow_missing: bool = False,
) -> int:
    """Builds the indexes of shards that have none, to ``.tfseek/`` beside them (or to ``index_dir``), and gives the number of
    records.

    ``progress`` shows how far it is, in bytes, as :func:`tfseek.open` says.

    Raises :class:`tfseek.DataError` at damage; the sound shards are indexed all the same. Where it is interrupted, the indexes that
    were complete stay, and the next call goes on with the others.
    """
    return _tfseek.build_index(
        _paths(paths),
        jobs,
        None if index_dir is None else os.fspath(index_dir),
        rebuild,
        allow_missing,
        progress,
    )


def _paths(paths: Paths) -> list[str]:
    if isinstance(paths, (str, os.PathLike)):
        return [os.fspath(paths)]
    return [os.fspath(path) for path in paths]
