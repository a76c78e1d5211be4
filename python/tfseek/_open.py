"""``tfseek.open`` and ``tfseek.build_index``."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from typing import Any, Callable, Optional, Union

from . import _tfseek
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
    jobs: int = 0,
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
    io: ``"auto"`` maps, or reads where the process may not have so many maps; ``"mmap"``; ``"pread"``.
    columns: features whose columns are found, or built in one scan, as indexes are, and kept at hand for ``ds.column(feature)`` and
        ``ds.filter(condition)``. Both do that at their first use otherwise.
    kind: what ``ds[i]`` is: ``"example"``, ``"sequence_example"``, ``"bytes"``, or ``"auto"`` for what the first records are.
    tail: whether bytes after the last whole record are an error (``"strict"``) or the end (``"tolerate"``).
    allow_missing: whether a set may have gaps. Record numbers are then those of what is there.
    jobs: threads that scan shards without an index; 0 is one for each processor.

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
            "jobs": jobs,
        }
    )


def reopen(how: dict[str, Any], fingerprint: str, ids: Any) -> Dataset:
    """A pickled Dataset."""
    return _tfseek.open(how)._restore(fingerprint, ids)


def build_index(
    paths: Paths,
    *,
    jobs: int = 0,
    progress: Union[bool, Callable[[int], object]] = False,
    index_dir: Optional[Union[str, "os.PathLike[str]"]] = None,
    rebuild: bool = False,
    allow_missing: bool = False,
) -> int:
    """Builds the indexes of shards that have none, to ``.tfseek/`` beside them (or to ``index_dir``), and gives the number of
    records.

    ``progress=True`` writes to standard error how far it is; a callable is called with the number of bytes that were scanned so
    far, from any thread.

    Raises :class:`tfseek.DataError` at damage; the sound shards are indexed all the same.
    """
    done = 0
    tell: Optional[Callable[[int], object]] = _print if progress is True else (progress or None)

    def add(count: int) -> None:
        nonlocal done
        done += count
        if tell is not None:
            tell(done)

    records = _tfseek.build_index(
        _paths(paths),
        jobs,
        None if index_dir is None else os.fspath(index_dir),
        rebuild,
        allow_missing,
        None if tell is None else add,
    )
    if progress is True:
        print(f"\r{done} bytes scanned, {records} records", file=sys.stderr)
    return records


def _print(done: int) -> None:
    print(f"\r{done / 2**20:.0f} MiB scanned", end="", file=sys.stderr, flush=True)


def _paths(paths: Paths) -> list[str]:
    if isinstance(paths, (str, os.PathLike)):
        return [os.fspath(paths)]
    return [os.fspath(path) for path in paths]
