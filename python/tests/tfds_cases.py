"""Recorded data sets of TensorFlow Datasets with their values: the folder that ``TFSEEK_TFDS_CASES`` names."""

from __future__ import annotations

import json
import math
import os
import pathlib
from typing import Any, Optional

import numpy as np

import tfseek

FOLDER = os.environ.get("TFSEEK_TFDS_CASES")


class Golden:
    """A recorded data set: its folder, and the nodes of its records."""

    def __init__(self, path: pathlib.Path) -> None:
        self.name = path.stem
        fields = json.loads(path.read_text())
        self.truth: str = fields["truth"]
        self.spec: Optional[dict[str, Any]] = fields.get("spec")
        self.folder = path.parents[1] / fields["dir"]
        self.splits: dict[str, list[dict[str, Any]]] = fields.get("splits") or {}
        npz = path.with_suffix(".npz")
        self.arrays = dict(np.load(npz)) if npz.exists() else {}

    def leaf(self, leaf: list[Any]) -> tuple[str, Any]:
        """Returns the dtype and the array of a leaf. Strings are objects."""
        dtype, shape, at = leaf
        n = math.prod(shape)
        if dtype != "string":
            found = self.arrays[dtype][at : at + n] if n else np.empty(0, "uint16" if dtype == "bfloat16" else dtype)
            return dtype, found.reshape(shape)
        array = np.empty(n, dtype=object)
        for k in range(n):
            start, end = self.arrays["string_offsets"][at + k : at + k + 2]
            array[k] = self.arrays["string"][start:end].tobytes()
        return dtype, array.reshape(shape)


def goldens() -> list[Golden]:
    assert FOLDER is not None
    return [Golden(path) for path in sorted(pathlib.Path(FOLDER, "golden").glob("*.json"))]


def difference(found: Any, node: dict[str, Any], golden: Golden, at: str = "") -> Optional[str]:
    """Returns the first difference between a value and a recorded node, or ``None``. Types and dtypes must be equal as well."""
    ((kind, expected),) = node.items()
    if kind == "d":
        if type(found) is not dict or set(found) != set(expected):
            return f"{at}: found {found!r}, expected the names {list(expected)}"
        return _first(difference(found[name], expected[name], golden, f"{at}/{name}") for name in expected)
    if kind in "sl":
        if not isinstance(found, tfseek.tfds.Steps if kind == "s" else list) or len(found) != len(expected):
            return f"{at}: found {found!r}, expected {len(expected)} values"
        return _first(difference(value, part, golden, f"{at}[{k}]") for k, (value, part) in enumerate(zip(found, expected)))
    if kind == "r":
        if not isinstance(found, tfseek.Ragged) or len(found.row_splits) != len(expected[1]):
            return f"{at}: found {found!r}, expected {len(expected[1])} row splits"
        parts = [(found.values, expected[0]), *zip(found.row_splits, expected[1])]
        return _first(different_arrays(value, golden.leaf(leaf), at) for value, leaf in parts)
    return different_arrays(found, golden.leaf(expected), at)


def different_arrays(found: Any, leaf: tuple[str, Any], at: str) -> Optional[str]:
    dtype, expected = leaf
    if dtype == "string" and expected.shape == ():
        return None if type(found) is bytes and found == expected[()] else f"{at}: found {found!r}, expected {expected[()]!r}"
    is_scalar = expected.shape == ()
    if not isinstance(found, np.generic if is_scalar else np.ndarray):
        return f"{at}: found {type(found).__name__}, expected {dtype} {expected.shape}"
    if not is_scalar and found.flags.writeable:
        return f"{at}: found a writable array"
    name = "string" if found.dtype == object else found.dtype.name
    if (name, found.shape) != (dtype, expected.shape):
        return f"{at}: found {name} {found.shape}, expected {dtype} {expected.shape}"
    if dtype == "string":
        same = bool((found == expected).all()) and all(type(item) is bytes for item in found.flat)
    else:
        view = np.asarray(found).view(np.uint16) if dtype == "bfloat16" else np.asarray(found)
        is_float = view.dtype.kind == "f"
        same = bool(np.array_equal(view, expected, equal_nan=is_float))
        same = same and (not is_float or bool((np.signbit(view) == np.signbit(expected))[~np.isnan(expected)].all()))
    return None if same else f"{at}: found {found!r}, expected {expected!r}"


def _first(differences: Any) -> Optional[str]:
    return next((text for text in differences if text is not None), None)


def touch(value: Any) -> None:
    """Decodes all steps in a value."""
    if isinstance(value, tfseek.tfds.Steps):
        for step in value:
            touch(step)
    elif isinstance(value, dict):
        for inner in value.values():
            touch(inner)


def without_rows(batch: Any, row: int) -> Any:
    """Returns a row of a batch, in the form of a single record."""
    if isinstance(batch, dict):
        return {name: without_rows(column, row) for name, column in batch.items()}
    return batch[row]


def same_row(row: Any, value: Any, at: str = "") -> Optional[str]:
    """Returns the first difference between a row of a batch and the value of the record, or ``None``.

    Columns of a batch say less than a value: arrays of one shape are a list of arrays there if their sizes are open, rows of different lengths are
    ragged, and missing values of a column are ``None``.
    """
    if isinstance(value, dict):
        if set(row) != set(value):
            return f"{at}: {list(row)} and {list(value)}"
        return _first(same_row(row[name], value[name], f"{at}/{name}") for name in value)
    a, b = plain(row), plain(value)
    if a != b:
        return f"{at}: {row!r} and {value!r}"
    da, db = dtype_of(row), dtype_of(value)
    return None if da is None or db is None or da == db else f"{at}: {da} and {db}"


def dtype_of(value: Any) -> Any:
    if isinstance(value, tfseek.Ragged):
        return value.values.dtype
    if isinstance(value, list):
        return dtype_of(value[0]) if value else None
    return getattr(value, "dtype", None)


def plain(value: Any) -> Any:
    """Returns a value as nested lists of bits."""
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, tfseek.Ragged):
        return [plain(item) for item in value]
    if isinstance(value, (np.ndarray, np.generic)) and value.dtype != object:
        array = np.asarray(value)
        if array.dtype.kind in "fV":
            return array.view(f"u{array.dtype.itemsize}").tolist()
        return array.tolist()
    if isinstance(value, np.ndarray):
        return value.tolist()
    return value
