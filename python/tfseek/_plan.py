"""Plans: parts of a dataset for the workers of an engine."""

from __future__ import annotations

import builtins
from collections.abc import Iterable, Sequence
from typing import Optional, Union

from ._open import Paths, open
from ._tfseek import Dataset, Part

#: What an engine reads: paths as of :func:`tfseek.open`, or an open dataset.
Source = Union[Paths, Dataset]

#: Pieces of a dataset that is read by claims are about this large, or larger if there would be more than ``MAX_PIECES``.
PIECE_BYTES = 8 << 20
MAX_PIECES = 10_000


def dataset(source: Source) -> Dataset:
    """Returns an open dataset. Its index is built if it does not exist."""
    return source if isinstance(source, Dataset) else open(source)


def part_bytes(part: Part) -> int:
    """Returns the number of bytes of a part in its file."""
    start, end = part.bytes
    return end - start


def share_bytes(share: Iterable[Part]) -> int:
    """Returns the number of bytes of several parts in their files."""
    return builtins.sum(map(part_bytes, share))


def share_records(share: Iterable[Part]) -> Optional[int]:
    """Returns the number of records of several parts, or ``None`` if it is not known."""
    found = 0
    for part in share:
        if part.records is None:
            return None
        found += part.records
    return found


def pieces(ds: Dataset) -> list[Part]:
    """Divides a dataset into small parts, in order. Shards are at least one part each, unless they have no records."""
    whole = ds.shares(1)
    size = share_bytes(part for share in whole for part in share)
    shares: Sequence[Sequence[Part]] = ds.shares_of(max(PIECE_BYTES, size // MAX_PIECES)) if size else whole
    return [part for share in shares for part in share]
