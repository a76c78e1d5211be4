"""Batches of records of like length: the arguments of a loader, and padding."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Optional, Union

import numpy as np

from ._columns import Ragged
from ._errors import OrderError
from ._tfseek import Dataset, Schema, StepInfo, TfdsDecoder

_SIZES = ("batch_size", "global_batch_size", "tokens_per_batch")


def check_buckets(options: dict[str, Any], ds: Dataset[Any]) -> bool:
    """Checks the arguments of buckets, and replaces lists and arrays of any kind by those of the native loader. Returns true for buckets."""
    by = options["bucket_by"]
    if by is None:
        del options["bucket_by"]
        for name in ("boundaries", "tokens_per_batch"):
            if options.pop(name) is not None:
                raise ValueError(f"{name} requires bucket_by")
        for name in _SIZES[:2]:
            if np.ndim(options[name]) > 0:
                raise ValueError(f"{name}: a size for each bucket requires bucket_by, found {options[name]!r}")
            if isinstance(options[name], (int, np.integer)) and options[name] < 1:
                raise OrderError(f"{name}: expected at least 1, found {options[name]}")
        return False
    if options["balance"] is not None:
        raise OrderError("bucket_by and balance exclude each other: buckets do not balance classes")
    if sum(options[name] is not None for name in _SIZES) != 1:
        raise ValueError(f"bucket_by requires exactly one of {', '.join(_SIZES)}")
    if options["boundaries"] is None:
        raise ValueError("bucket_by requires boundaries: the largest length of each bucket but the last")
    boundaries = _integers("boundaries", options["boundaries"])
    options["boundaries"] = boundaries.tolist()
    for name in _SIZES[:2]:
        if options[name] is not None:
            sizes = _integers(name, options[name])
            if len(sizes) != len(boundaries) + 1:
                message = f"{name}: expected {len(boundaries) + 1} sizes, one for each bucket, found {len(sizes)}"
                raise ValueError(message)
            options[name] = sizes.tolist()
    if not isinstance(by, (str, bytes)):
        lengths = _integers("bucket_by", by)
        if len(lengths) != len(ds):
            message = f"bucket_by: expected {len(ds)} lengths, one for each record of the dataset or view, found {len(lengths)}"
            raise ValueError(message)
        options["bucket_by"] = np.ascontiguousarray(lengths, dtype=np.uint64)
    return True


def check_weights(options: dict[str, Any], ds: Any) -> None:
    """Checks the argument ``weights``, and replaces lists and arrays of any kind by those of the native loader."""
    weights = options["weights"]
    for name in ("balance", "bucket_by"):
        if options.get(name) is not None:
            raise OrderError(f"weights and {name} exclude each other")
    if options["shuffle"] not in (None, True, "global"):
        raise OrderError(f"weights: records are drawn: expected no shuffle or a global one, found {options['shuffle']!r}")
    if isinstance(weights, (str, bytes)) or not isinstance(ds, Dataset):
        return
    array = np.asarray(weights)
    if array.ndim != 1 or array.dtype.kind not in "biuf" or np.ma.is_masked(weights):
        raise TypeError(f"weights: expected a feature or a list of numbers, found {type(weights).__name__}")
    if len(array) != len(ds):
        raise ValueError(f"weights: expected {len(ds)} numbers, one for each record of the dataset or view, found {len(array)}")
    options["weights"] = np.ascontiguousarray(array, dtype=np.float64)


def _integers(name: str, values: Any) -> Any:
    """Returns an array of one dimension, with integers that are not negative."""
    array = np.asarray(values)
    if array.ndim != 1 or (len(array) > 0 and array.dtype.kind not in "iu"):
        raise TypeError(f"{name}: expected a list of integers, found {type(values).__name__}")
    if len(array) > 0 and array.min() < 0:
        raise ValueError(f"{name}: expected integers of at least 0, found {array.min()}")
    return array if len(array) > 0 else array.astype(np.uint64)


class Padding:
    """The padding of the ragged columns of batches. ``by`` is the feature whose number of values is the length of a record, if there is one."""

    def __init__(self, schema: Union[Schema, TfdsDecoder], by: Any) -> None:
        name = by.decode() if isinstance(by, bytes) else by
        form = json.loads(schema.to_json())
        features = form.get("context", {}) if schema.is_sequence else form.get("features", {})
        #: Columns of the feature.
        self._columns = {
            column
            for column, spec in features.items()
            if isinstance(name, str) and spec["type"] == "ragged" and (spec["value_key"] or column) == name
        }

    def before(self, function: Callable[[Any, StepInfo], Any]) -> Callable[[Any, StepInfo], Any]:
        """Returns a function of a batch and its info that pads the batch before it calls ``function``."""

        def padded(batch: Any, info: StepInfo) -> Any:
            self.pad(batch, info)
            return function(batch, info)

        return padded

    def pad(self, batch: Any, info: StepInfo) -> None:
        """Replaces each ragged column of a batch by ``(values, mask)``."""
        context, *lists = batch if isinstance(batch, tuple) else (batch,)
        for columns, longest in ((context, info.longest), *((part, None) for part in lists)):
            self._pad(columns, "", longest)

    def _pad(self, columns: dict[str, Any], path: str, longest: Optional[int]) -> None:
        for name, column in columns.items():
            if isinstance(column, Ragged):
                columns[name] = self._padded(path + name, column, longest)
            elif isinstance(column, dict):
                self._pad(column, f"{path}{name}/", longest)

    def _padded(self, name: str, column: Ragged, longest: Optional[int]) -> Any:
        # The values of a row are in items of a fixed shape. A column with several ragged dimensions has no length of its own.
        if name in self._columns and longest is not None and len(column.row_splits) == 1:
            inner = int(np.prod(column.values.shape[1:], dtype=np.int64))
            return column.to_padded(longest // max(inner, 1))
        return column.to_padded()
