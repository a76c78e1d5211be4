"""What goes wrong: one class for all, and one below it for each thing that callers tell apart."""

from __future__ import annotations

import builtins
from typing import Optional


class Error(ValueError):
    """What went wrong and where. The message reads ``path: record i at byte o: feature "key": expected .., found ..``.

    Attributes, each ``None`` where it is not known: ``path`` (the file, as it was named), ``record`` (number of the record in
    that file), ``offset`` (byte of the record's header in that file), ``feature``, ``row`` (of the batch that was parsed),
    ``step`` (of a feature list), and ``category``, for faults that a parse by a schema can meet: ``"malformed_proto"``,
    ``"kind_mismatch"``, ``"count_mismatch"``, ``"missing_feature"``, ``"bad_partition"``, ``"bad_sparse_index"``,
    ``"bad_spec"`` or ``"too_large"``.
    """

    path: Optional[str] = None
    record: Optional[int] = None
    offset: Optional[int] = None
    feature: Optional[str] = None
    row: Optional[int] = None
    step: Optional[int] = None
    category: Optional[str] = None

    def __reduce__(self) -> tuple[object, ...]:
        # OSError's own way forgets attributes.
        return (type(self), self.args, self._state())

    def _state(self) -> dict[str, object]:
        return dict(self.__dict__)


class DataError(Error):
    """The data are damaged, malformed, or not what was asked for."""


class IoError(Error, OSError):
    """The operating system said no, or would have: ``errno`` is ``None`` where it was not asked. ``filename`` is the file, or the
    pattern that matched none, and ``strerror`` the text without it.
    """

    def __str__(self) -> str:
        # OSError's own text is made of number and name, and leaves out the place.
        return Exception.__str__(self)

    def _state(self) -> dict[str, object]:
        return {**super()._state(), "errno": self.errno, "strerror": self.strerror, "filename": self.filename}


class NotFoundError(IoError, FileNotFoundError):
    """There is no such file, or a set of shards has gaps: ``errno`` is ``errno.ENOENT``."""


class SpecError(Error):
    """A feature spec, a schema or a filter is refused."""


class OrderError(Error):
    """An order, a share of it, or a saved state is refused."""


class SidecarError(Error):
    """An index is missing, stale or refused, and may not be built."""


class OutOfRangeError(Error, builtins.IndexError):
    """There is no such record."""
