"""The class ``Warning``, and how warnings are raised."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from typing import Any, NamedTuple, Optional


class Gap(NamedTuple):
    """A range of bytes without a sound record."""

    start: int
    """Offset of the first byte: in the record stream, or in the file if the bytes are ``compressed``."""
    end: int
    """Offset after the last byte."""
    records: int
    """Number of sound records before it."""
    compressed: bool
    """True if these are bytes of a compressed file that cannot be decompressed."""


class Warning(UserWarning):
    """An observation that is not an error. ``str()`` returns the message.

    Warnings are raised once per dataset, stream or loader through :func:`warnings.warn`, so that Python's filters apply, and are listed in the
    attribute ``warnings`` of that object.

    Attributes, each ``None`` if a kind does not have it: ``path`` (of the file or folder); ``gaps`` (all ranges without a sound record, a
    list of :class:`Gap`); ``bytes`` (that are left out, or the length of the longest block of ``"long_blocks"``); ``records`` (sound
    records that are kept); ``skipped`` (records that are left out because they do not decode) and ``first`` (the error of the first) of
    ``"payloads_skipped"``; ``offset`` and ``inflated_bytes`` of ``"torn_tail"``: the first byte that is left out, and the decompressed bytes of an incomplete record; ``reason``, ``shards``,
    ``found``, ``record_bytes``, ``dataset_bytes`` and ``memory_bytes`` of the other kinds; ``block_bytes``, ``start_bytes`` (that are
    decompressed before a block) and ``enough_bytes`` (for ``block_bytes`` of the loader) of ``"block_starts"``; ``feature`` and ``nearest`` (the
    nearest name that a record has) of ``"unknown_feature"``, which a name of a spec raises that none of the first records has. ``found`` has the
    names of the features of ``"features_left_out"``, which :func:`tfseek.infer_schema` raises.
    """

    #: ``"file_refused"``, ``"not_saved"``, ``"shard_changed"``, ``"damage_skipped"``, ``"payloads_skipped"``, ``"torn_tail"``,
    #: ``"other_names"``, ``"long_blocks"``, ``"scattered_reads"``, ``"scattered_inflation"``, ``"block_starts"``, ``"scattered_requests"``,
    #: ``"rare_class"``, ``"unknown_feature"``, ``"steps_not_indexed"``, ``"compressed_steps"``, ``"scattered_episodes"`` or
    #: ``"features_left_out"``. Later versions may add others.
    kind: str = ""
    #: Message, which contains the path.
    message: str = ""
    path: Optional[str] = None
    gaps: Optional[list[Gap]] = None
    bytes: Optional[int] = None
    records: Optional[int] = None
    skipped: Optional[int] = None
    first: Optional[str] = None
    offset: Optional[int] = None
    inflated_bytes: Optional[int] = None
    reason: Optional[str] = None
    shards: Optional[int] = None
    found: Optional[list[str]] = None
    record_bytes: Optional[int] = None
    dataset_bytes: Optional[int] = None
    memory_bytes: Optional[int] = None
    block_bytes: Optional[int] = None
    start_bytes: Optional[int] = None
    enough_bytes: Optional[int] = None
    feature: Optional[str] = None
    nearest: Optional[str] = None

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Warning):
            return NotImplemented
        return self.__dict__ == other.__dict__

    def __hash__(self) -> int:
        return hash((self.kind, self.message))

    def __repr__(self) -> str:
        return f"tfseek.Warning(kind={self.kind!r}, message={self.message!r})"


def warning_of(fields: dict[str, Any]) -> Warning:
    """Returns the warning with these fields."""
    found = Warning(fields["message"])
    found.__dict__.update(fields)
    if "gaps" in fields:
        found.gaps = [Gap(**gap) for gap in fields["gaps"]]
    return found


def raise_all(found: Iterable[Warning], stacklevel: int = 1) -> None:
    """Raises warnings through :func:`warnings.warn`. ``stacklevel`` is 1 for the caller of the function that calls this one."""
    for each in found:
        warnings.warn(each, stacklevel=stacklevel + 2)
