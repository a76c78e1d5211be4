"""Checks of arrays that callers pass."""

from __future__ import annotations

from typing import Any

import numpy as np


def unmasked(value: Any, what: str) -> None:
    """Raises ``ValueError`` for masked values in an array or in nested lists, because ``numpy.asarray`` drops masks silently."""
    if isinstance(value, np.ma.MaskedArray) and np.ma.is_masked(value):
        raise ValueError(f"{what}: masked values are not accepted, found {int(np.ma.getmaskarray(value).sum())}: fill or remove them")
    if isinstance(value, (list, tuple)):
        for item in value:
            if isinstance(item, (list, tuple, np.ma.MaskedArray)):
                unmasked(item, what)


def byte_buffer(out: Any) -> Any:
    """Returns a writable buffer of bytes as a uint8 array of one dimension, without a copy."""
    array = out
    if not isinstance(out, np.ndarray):
        try:
            array = np.frombuffer(out, dtype=np.uint8)
        except (TypeError, ValueError, BufferError):
            array = None
    expected = "out: expected a writable buffer of bytes, such as a uint8 array or a bytearray, found"
    if array is None:
        raise TypeError(f"{expected} {type(out).__name__}")
    if array.dtype != np.uint8 or array.ndim != 1 or not array.flags.c_contiguous:
        kind = "contiguous" if array.flags.c_contiguous else "strided"
        raise TypeError(f"{expected} a {kind} array of {array.dtype} and shape {list(array.shape)}")
    if not array.flags.writeable:
        raise ValueError(f"{expected} a read-only {type(out).__name__}")
    return array
