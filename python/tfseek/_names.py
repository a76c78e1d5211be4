"""Names of features."""

from __future__ import annotations

from typing import Any


def name_of(name: Any) -> str:
    """Returns a feature's name, given as ``str`` or as ``bytes`` in UTF-8, which TensorFlow accepts as well."""
    if isinstance(name, bytes):
        try:
            return name.decode()
        except UnicodeDecodeError:
            raise ValueError(f"expected the name of a feature in UTF-8, found {name!r}") from None
    if not isinstance(name, str):
        raise TypeError(f"expected str or bytes as the name of a feature, found {type(name).__name__}")
    return name
