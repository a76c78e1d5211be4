"""Conversion of Python values to features, for ``Example``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Optional

import numpy as np
import numpy.typing as npt

from ._arrays import unmasked
_INT64_MAX = 2**63 - 1

#: ``(kind, values)``, with numbers as little-endian bytes and byte strings as a list. ``(None, None)``: a feature without a kind.
Part = tuple[Optional[str], Any]


def features(mapping: Mapping[Any, Any]) -> list[tuple[str, Part]]:
    """Returns each feature with its name."""
    return [(name, _part(name, value)) for name, value in _named(mapping)]


def feature_lists(mapping: Mapping[Any, Iterable[Any]]) -> list[tuple[str, list[Part]]]:
    """Returns each feature list with its name, one part per step."""
    return [(name, [_part(name, step) for step in steps]) for name, steps in _named(mapping)]


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


def _named(mapping: Mapping[Any, Any]) -> list[tuple[str, Any]]:
    named = [(name_of(name), value) for name, value in mapping.items()]
    if len(dict(named)) < len(named):
        raise ValueError("a feature is given twice, as str and as bytes")
    return named


def _part(name: str, value: Any) -> Part:
    if value is None:
        return (None, None)
    unmasked(value, f"feature {name!r}")
    if isinstance(value, (str, bytes, bytearray, memoryview)):
        return ("bytes", [_bytes(name, value)])
    if isinstance(value, (list, tuple)):
        if not value:
            raise ValueError(f"feature {name!r}: an empty list has no kind; give an empty array with a dtype, or None")
        if any(isinstance(item, (str, bytes, bytearray, memoryview)) for item in value):
            return ("bytes", [_bytes(name, item) for item in value])
    first = value[0] if isinstance(value, (list, tuple)) else value
    # NumPy would make numbers of its pixels.
    if type(first).__module__.partition(".")[0] == "PIL":
        raise TypeError(f"feature {name!r}: expected the bytes of a file, such as image.save(buffer, 'PNG') writes, found a PIL image")
    array = np.asarray(value)
    if array.dtype == object or (array.dtype.kind == "f" and isinstance(_first_leaf(value), (int, np.integer))):
        array = _integers(name, value, array)
    if array.dtype.kind in "SU" or array.dtype == object:
        return ("bytes", [_bytes(name, item) for item in array.ravel().tolist()])
    if array.dtype.kind == "f":
        with np.errstate(over="ignore"):
            floats = array.astype("<f4")
        lost = np.isinf(floats) & np.isfinite(array)
        if lost.any():
            raise OverflowError(f"feature {name!r}: {array[lost].flat[0]} does not fit into a float32")
        return ("float", floats.tobytes())
    if array.dtype.kind in "iub":
        if array.dtype.kind == "u" and array.size and int(array.max()) > _INT64_MAX:
            raise OverflowError(f"feature {name!r}: {array.max()} does not fit into an int64")
        return ("int64", array.astype("<i8").tobytes())
    raise TypeError(f"feature {name!r}: expected numbers, bools, str or bytes, found an array of {array.dtype}")


def _first_leaf(value: Any) -> Any:
    while isinstance(value, (list, tuple)) and value:
        value = value[0]
    return value


def _integers(name: str, value: Any, array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Returns integers without a common NumPy type as int64. If there are other values among them, returns ``array``."""
    leaves = np.asarray(value, dtype=object).ravel().tolist()
    if not leaves or not all(isinstance(leaf, (int, np.integer, np.bool_)) for leaf in leaves):
        return array
    for leaf in leaves:
        if not -_INT64_MAX - 1 <= int(leaf) <= _INT64_MAX:
            raise OverflowError(f"feature {name!r}: {leaf} does not fit into an int64")
    return np.array([int(leaf) for leaf in leaves], dtype=np.int64)


def _bytes(name: str, value: Any) -> bytes:
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, (bytes, bytearray, memoryview)):
        return bytes(value)
    raise TypeError(f"feature {name!r}: expected str or bytes, found {type(value).__name__}")
