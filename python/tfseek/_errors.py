"""Exceptions: the base class ``Error``, and subclasses by cause."""

from __future__ import annotations

import builtins
from typing import Optional


class Error(ValueError):
    """An error with its location. The message has the form ``path: record i at byte o: feature "key": expected .., found ..``.

    Attributes, each ``None`` if unknown: ``path`` (of the file, as it was given), ``record`` (ordinal of the record in that file),
    ``offset`` (of the record's header in bytes), ``feature``, ``row`` (of the parsed batch), ``step`` (of a feature list), and
    ``category``. The category of damage is ``"checksum_mismatch"`` or ``"truncated"``. That of an error in parsing is
    ``"malformed_proto"``, ``"kind_mismatch"``, ``"count_mismatch"``, ``"missing_feature"``, ``"bad_partition"``,
    ``"bad_sparse_index"``, ``"bad_spec"`` or ``"too_large"``.
    """

    path: Optional[str] = None
    record: Optional[int] = None
    offset: Optional[int] = None
    feature: Optional[str] = None
    row: Optional[int] = None
    step: Optional[int] = None
    category: Optional[str] = None

    def __reduce__(self) -> tuple[object, ...]:
        # OSError's own method drops the attributes.
        return (type(self), self.args, self._state())

    def _state(self) -> dict[str, object]:
        return dict(self.__dict__)


class DataError(Error):
    """The data are damaged, malformed, or do not match the request."""


class IoError(Error, OSError):
    """An I/O error. ``errno`` is ``None`` if no system call failed. ``filename`` is the file, or the pattern that matched no file.
    ``strerror`` is the text without the file name.
    """

    def __str__(self) -> str:
        # OSError's own text consists of number and name, without the location.
        return Exception.__str__(self)

    def _state(self) -> dict[str, object]:
        return {**super()._state(), "errno": self.errno, "strerror": self.strerror, "filename": self.filename}


class NotFoundError(IoError, FileNotFoundError):
    """A file does not exist, or shards of a set are missing. ``errno`` is ``errno.ENOENT``."""


class SpecError(Error):
    """A feature spec, a schema or a filter is invalid."""


class OrderError(Error):
    """An order, a rank's share or a saved state is invalid."""


class SidecarError(Error):
    """An index is damaged, missing, stale or not usable, and may not be built."""


class OutOfRangeError(Error, builtins.IndexError):
    """A record number is out of range."""
