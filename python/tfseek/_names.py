"""Names of features."""

from __future__ import annotations

from typing import Any


def name_of(name: Any) -> str:
    """A feature's name: ``str``, or ``bytes`` in UTF-8, which TensorFlow takes as well."""
    if isinstance(name, bytes):
        try:
            return name.decode()
        except UnicodeDecodeError:
            raise ValueError(f"features are named in UTF-8, found {name!r}") from None
    if not isinstance(name, str):
        raise TypeError(f"features are named by str or bytes, found {type(name).__name__}")
    return name
