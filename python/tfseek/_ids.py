"""Conversion of lists, arrays and masks to record numbers."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from ._arrays import unmasked


def seeds_of(seed: int, epoch: int) -> tuple[int, int]:
    """Returns what random pictures of single records are drawn from."""
    if (epoch := operator.index(epoch)) < 0:
        raise ValueError(f"epoch: expected at least 0, found {epoch}")
    return operator.index(seed), epoch


def positions(key: Any, length: int) -> bytes:
    """Returns the positions that a list, an array or a mask of ``length`` selects, as little-endian int64.

    Negative numbers count from the end.
    """
    if isinstance(key, (str, bytes)):
        raise TypeError(f"expected record numbers, found {key!r}")
    unmasked(key, "record numbers")
    try:
        array = np.asarray(key)
    except ValueError:
        array = np.asarray(key, dtype=object)
    if array.ndim != 1:
        raise TypeError(f"expected a number, a slice or a list of numbers, found {type(key).__name__}")
    if array.size == 0:
        return b""
    if array.dtype == np.bool_:
        if len(array) != length:
            raise IndexError(f"expected a mask of {length} records, found {len(array)}")
        array = np.flatnonzero(array)
    if array.dtype.kind not in "iu":
        raise TypeError(f"expected integers as record numbers, found {array.dtype}")
    if array.dtype.kind == "u" and int(array.max()) >= 2**63:
        raise IndexError(f"no record {array.max()}: there are {length}")
    return array.astype("<i8").tobytes()
