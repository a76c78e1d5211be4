"""Lists of record numbers, as they come."""

from __future__ import annotations

from typing import Any

import numpy as np

from ._arrays import unmasked


def positions(key: Any, length: int) -> bytes:
    """A list, an array or a mask of ``length`` as little-endian int64: what is negative counts from the end."""
    if isinstance(key, (str, bytes)):
        raise TypeError(f"records are numbered: no record {key!r}")
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
            raise IndexError(f"a mask of {len(array)} for {length} records")
        array = np.flatnonzero(array)
    if array.dtype.kind not in "iu":
        raise TypeError(f"records are numbered by integers, found {array.dtype}")
    if array.dtype.kind == "u" and int(array.max()) >= 2**63:
        raise IndexError(f"no record {array.max()}: there are {length}")
    return array.astype("<i8").tobytes()
