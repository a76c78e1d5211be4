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
