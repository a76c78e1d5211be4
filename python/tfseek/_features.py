"""Feature specs, with the names and signatures of ``tf.io``. TensorFlow's own are taken as well."""

from __future__ import annotations

import functools
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Optional, Union

import numpy as np

from ._tfseek import Schema

#: ``"int64"``, ``np.int64``, ``tf.int64``; ``"float32"``; ``"string"`` or ``"bytes"``; ``int``, ``float``, ``bytes``.
DTypeLike = Any


@dataclass(frozen=True)
class FixedLenFeature:
    """A fixed number of values in each record: an array ``[rows] + shape``.

    ``default_value`` is what an absent feature gives, as many values as ``shape`` has; without it, absent is an error.
    """

    shape: Any
    dtype: DTypeLike
    default_value: Any = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "shape", _shape(self.shape))


@dataclass(frozen=True)
class VarLenFeature:
    """Any number of values: a :class:`tfseek.Sparse` of shape ``[rows, longest]``."""

    dtype: DTypeLike


@dataclass(frozen=True)
class FixedLenSequenceFeature:
    """Any number of blocks of ``shape``: an array ``[rows, longest] + shape``, shorter records padded with 0, ``b""`` or
    ``default_value``. ``allow_missing`` must be true, except in feature lists.
    """

    shape: Any
    dtype: DTypeLike
    allow_missing: bool = False
    default_value: Any = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "shape", _shape(self.shape))


@dataclass(frozen=True)
class RowSplits:
    """A partition of a :class:`RaggedFeature`: where each row starts, and behind them the number of values."""

    key: str


@dataclass(frozen=True)
class RowLengths:
    """A partition of a :class:`RaggedFeature`: how long each row is."""

    key: str


@dataclass(frozen=True)
class RowStarts:
    """A partition of a :class:`RaggedFeature`: where each row starts."""

    key: str


@dataclass(frozen=True)
class RowLimits:
    """A partition of a :class:`RaggedFeature`: where each row ends."""

    key: str


@dataclass(frozen=True)
class ValueRowIds:
    """A partition of a :class:`RaggedFeature`: the row of each value."""

    key: str


@dataclass(frozen=True)
class UniformRowLength:
    """A partition of a :class:`RaggedFeature`: rows that are all of this length."""

    length: int


@dataclass(frozen=True)
class RaggedFeature:
    """Any number of values: a :class:`tfseek.Ragged`, of one more dimension for each of ``partitions``, outermost first."""

    RowSplits = RowSplits
    RowLengths = RowLengths
    RowStarts = RowStarts
    RowLimits = RowLimits
    ValueRowIds = ValueRowIds
    UniformRowLength = UniformRowLength

    dtype: DTypeLike
    value_key: Optional[str] = None
    partitions: Any = ()
    row_splits_dtype: DTypeLike = "int32"
    validate: bool = False

    def __post_init__(self) -> None:
        partitions = self.partitions
        one = hasattr(partitions, "key") or hasattr(partitions, "length") or isinstance(partitions, int)
        object.__setattr__(self, "partitions", (partitions,) if one else tuple(partitions))


@dataclass(frozen=True)
class SparseFeature:
    """Values of one feature at the indices of others: a :class:`tfseek.Sparse` of shape ``[rows] + size``."""

    index_key: Any
    value_key: str
    dtype: DTypeLike
    size: Any
    already_sorted: bool = False

    def __post_init__(self) -> None:
        for name in ("index_key", "size"):
            value = getattr(self, name)
            if not isinstance(value, (str, int, np.integer)):
                object.__setattr__(self, name, tuple(value))


Features = Union[Schema, Mapping[str, Any]]


def schema_of(features: Features) -> Schema:
    """The schema of some features; the same one for the same features, as it keeps what it learned."""
    if isinstance(features, Schema):
        return features
    return _kept(to_json(features, None, None))


def sequence_schema_of(context: Optional[Features], sequence: Optional[Features]) -> Schema:
    """The schema of a context and feature lists; one Schema may hold both."""
    if isinstance(context, Schema) or isinstance(sequence, Schema):
        given = {id(part): part for part in (context, sequence) if part is not None}
        (one, *others) = given.values()
        if others or not isinstance(one, Schema):
            raise TypeError("a Schema holds context and sequence: give it alone")
        return one
    return _kept(to_json(None, context or {}, sequence or {}))


@functools.lru_cache(maxsize=64)
def _kept(text: str) -> Schema:
    # By its text: specs that are equal for Python need not be the same to the bit, 0.0 and -0.0 say.
    return Schema.from_json(text)


def to_json(
    features: Optional[Mapping[str, Any]],
    context: Optional[Mapping[str, Any]],
    sequence: Optional[Mapping[str, Any]],
) -> str:
    """The JSON form of a schema, which Rust reads and checks."""
    if features is not None and (context is not None or sequence is not None):
        raise TypeError("features of Examples beside parts of SequenceExamples")
    if features is None and context is None and sequence is None:
        raise TypeError("a schema needs features, or context_features and sequence_features")
    parts = {"features": features, "context": context, "sequence": sequence}
    return _object((name, _columns(part)) for name, part in parts.items() if part is not None)


def _object(members: Iterable[tuple[str, str]]) -> str:
    return "{" + ",".join(f"{json.dumps(name)}:{text}" for name, text in members) + "}"


def _columns(features: Mapping[str, Any]) -> str:
    return _object((name, _text(name, spec)) for name, spec in features.items())


def _text(name: str, spec: Any) -> str:
    """The JSON form of a spec, which a spec that cannot change keeps: a schema is looked up for every batch."""
    kept: Optional[str] = getattr(spec, "_text", None)
    if kept is not None and isinstance(name, str):
        return kept
    text = json.dumps(_column(name, spec))
    default = getattr(spec, "default_value", None)
    if isinstance(spec, _OWN) and (default is None or isinstance(default, (int, float, str, bytes))):
        object.__setattr__(spec, "_text", text)
    return text


_OWN = (FixedLenFeature, VarLenFeature, FixedLenSequenceFeature, RaggedFeature, SparseFeature)


def _column(name: str, spec: Any) -> dict[str, Any]:
    if not isinstance(name, str):
        raise TypeError(f"features are named by str, found {type(name).__name__}")
    # By name, so that TensorFlow's own specs, which have the same fields, are taken without importing it.
    kind = type(spec).__name__
    if kind == "FixedLenFeature":
        return {"type": "fixed", **_typed(name, spec), "shape": _shape(spec.shape), "default": _default(name, spec)}
    if kind == "VarLenFeature":
        return {"type": "varlen", **_typed(name, spec)}
    if kind == "FixedLenSequenceFeature":
        return {
            "type": "fixed_sequence",
            **_typed(name, spec),
            "shape": _shape(spec.shape),
            "allow_missing": bool(spec.allow_missing),
            "default": _default(name, spec),
        }
    if kind == "RaggedFeature":
        return {
            "type": "ragged",
            **_typed(name, spec),
            "value_key": spec.value_key,
            "partitions": [_partition(name, partition) for partition in spec.partitions],
            "row_splits_dtype": _splits_dtype(spec.row_splits_dtype),
            "validate": bool(spec.validate),
        }
    if kind == "SparseFeature":
        return {
            "type": "sparse",
            **_typed(name, spec),
            "index_key": _listed(spec.index_key),
            "value_key": spec.value_key,
            "size": _listed(spec.size),
            "already_sorted": bool(spec.already_sorted),
        }
    if isinstance(spec, Mapping):
        # The JSON form itself.
        return dict(spec)
    # The package `tfrecord` names a dtype alone, and gives the values that there are.
    return {"type": "ragged", "dtype": _dtype(name, spec)}


def _typed(name: str, spec: Any) -> dict[str, Any]:
    return {"dtype": _dtype(name, spec.dtype)}


_DTYPES = {
    "int64": "int64",
    "int": "int64",
    "float32": "float32",
    "float": "float32",
    "string": "string",
    "bytes": "string",
    "byte": "string",
    "str": "string",
    "object": "string",
}


def _dtype(name: str, dtype: DTypeLike) -> str:
    found = dtype if isinstance(dtype, str) else getattr(dtype, "name", None) or getattr(dtype, "__name__", None)
    if isinstance(found, str):
        # NumPy's `bytes_` and `str_`.
        known = _DTYPES.get(found.rstrip("_"))
        if known is not None:
            return known
    raise TypeError(f"feature {name!r}: dtype: expected int64, float32 or string, found {dtype!r}")


def _splits_dtype(dtype: DTypeLike) -> str:
    found = dtype if isinstance(dtype, str) else getattr(dtype, "name", None) or getattr(dtype, "__name__", None)
    return str(found)


def _shape(shape: Any) -> tuple[int, ...]:
    """A number, a list, or a TensorShape."""
    if isinstance(shape, (int, np.integer)):
        return (int(shape),)
    return tuple(int(dimension) for dimension in getattr(shape, "as_list", lambda: shape)())


def _listed(value: Any) -> Any:
    if isinstance(value, (str, int, np.integer)):
        return value if isinstance(value, str) else int(value)
    return [item if isinstance(item, str) else int(item) for item in value]


_PARTITIONS = {
    "RowSplits": "row_splits",
    "RowLengths": "row_lengths",
    "RowStarts": "row_starts",
    "RowLimits": "row_limits",
    "ValueRowIds": "value_rowids",
    "UniformRowLength": "uniform_row_length",
}


def _partition(name: str, partition: Any) -> dict[str, Any]:
    if isinstance(partition, int):
        return {"kind": "uniform_row_length", "length": partition}
    kind = _PARTITIONS.get(type(partition).__name__)
    if kind is None:
        raise TypeError(f"feature {name!r}: partitions: found {partition!r}")
    if kind == "uniform_row_length":
        return {"kind": kind, "length": int(partition.length)}
    return {"kind": kind, "key": partition.key}


def _default(name: str, spec: Any) -> Optional[list[Any]]:
    """A flat list: floats by their bits, byte strings as hex. How many there have to be is checked in Rust."""
    value = spec.default_value
    if value is None:
        return None
    dtype = _dtype(name, spec.dtype)
    if dtype == "string":
        array = np.asarray(value, dtype=object).ravel()
        return [{"hex": _encoded(name, item).hex()} for item in array.tolist()]
    array = np.asarray(value)
    if dtype == "int64":
        if array.size and array.dtype.kind not in "iub":
            raise TypeError(f"feature {name!r}: default_value: expected integers, found {value!r}")
        return array.ravel().astype(object).tolist()
    if array.size and array.dtype.kind not in "iubf":
        raise TypeError(f"feature {name!r}: default_value: expected numbers, found {value!r}")
    with np.errstate(over="ignore"):
        bits = array.astype(np.float32).ravel().view(np.uint32)
    return [{"f32": f"{int(word):08x}"} for word in bits]


def _encoded(name: str, value: Any) -> bytes:
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, bytes):
        return value
    raise TypeError(f"feature {name!r}: default_value: expected str or bytes, found {value!r}")
