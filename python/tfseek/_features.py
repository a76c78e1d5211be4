"""Feature specs with the names and signatures of ``tf.io``, and :class:`Optional`. Specs of TensorFlow itself are accepted as well."""

from __future__ import annotations

import dataclasses
import functools
import json
import math
import numbers
import operator
import os
import reprlib
import sys
import typing
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Union

import numpy as np

from ._arrays import unmasked
from ._errors import SpecError
from ._choices import ArrayDType, Crop, DType, Layout, Resize, SplitsDType
from ._encode import name_of
from ._tfseek import Schema, TfdsDecoder

#: ``"int64"``, ``np.int64``, ``tf.int64``; ``"float32"``; ``"string"`` or ``"bytes"``; ``int``, ``float``, ``bytes``.
DTypeLike = DType


class Shaped:
    """A spec whose shape may be a number, a list or a TensorShape."""

    shape: Any

    def __post_init__(self) -> None:
        object.__setattr__(self, "shape", _frozen(self.shape))


@dataclass(frozen=True)
class FixedLenFeature(Shaped):
    """A fixed number of values per record: an array ``[rows] + shape``.

    ``default_value`` replaces an absent feature and has the number of values of ``shape``. Without it, an absent feature is an error.
    """

    shape: Any
    dtype: DTypeLike
    default_value: Any = None

@dataclass(frozen=True)
class Optional:
    """At most one value per record. TensorFlow has no such spec.

    A feature that is absent or has no values is missing, and several values are an error. With ``default`` the result is an array
    ``[rows]``. Without it, it is a :class:`tfseek.Column` of ``values`` and ``present``.
    """

    dtype: DTypeLike
    default: Any = None


@dataclass(frozen=True)
class VarLenFeature:
    """Any number of values per record: a :class:`tfseek.Sparse` of shape ``[rows, longest]``."""

    dtype: DTypeLike


@dataclass(frozen=True)
class FixedLenSequenceFeature(Shaped):
    """Any number of blocks of ``shape`` per record: an array ``[rows, longest] + shape``.

    Shorter records are padded with 0, ``b""`` or ``default_value``. ``allow_missing`` must be true, except in feature lists.
    """

    shape: Any
    dtype: DTypeLike
    allow_missing: bool = False
    default_value: Any = None

@dataclass(frozen=True)
class Partition:
    """A partition of a :class:`RaggedFeature`, from the feature ``key``."""

    key: str


class RowSplits(Partition):
    """A partition of a :class:`RaggedFeature`: the start of each row, followed by the number of values."""


class RowLengths(Partition):
    """A partition of a :class:`RaggedFeature`: the length of each row."""


class RowStarts(Partition):
    """A partition of a :class:`RaggedFeature`: the start of each row."""


class RowLimits(Partition):
    """A partition of a :class:`RaggedFeature`: the end of each row."""


class ValueRowIds(Partition):
    """A partition of a :class:`RaggedFeature`: the row of each value."""


@dataclass(frozen=True)
class UniformRowLength:
    """A partition of a :class:`RaggedFeature`: one length for all rows."""

    length: int


@dataclass(frozen=True)
class RaggedFeature:
    """Any number of values per record: a :class:`tfseek.Ragged`. Each of ``partitions`` adds a dimension, outermost first.

    dtype: also the spec of each byte string: a :class:`Raw` or :class:`Tensor` of fixed shape, a :class:`Label`, or an :class:`Image` with a ``size``,
        which has one crop and mirror a record.
    """

    RowSplits = RowSplits
    RowLengths = RowLengths
    RowStarts = RowStarts
    RowLimits = RowLimits
    ValueRowIds = ValueRowIds
    UniformRowLength = UniformRowLength

    dtype: Union[DTypeLike, Raw, Tensor, Image, Label]
    value_key: typing.Optional[str] = None
    partitions: Any = ()
    row_splits_dtype: SplitsDType = "int32"
    validate: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "partitions", _listed(self.partitions))


@dataclass(frozen=True)
class SparseFeature:
    """Values of one feature at indices from other features: a :class:`tfseek.Sparse` of shape ``[rows] + size``."""

    index_key: Any
    value_key: str
    dtype: DTypeLike
    size: Any
    already_sorted: bool = False

    def __post_init__(self) -> None:
        for name in ("index_key", "size"):
            value = getattr(self, name)
            if isinstance(value, Iterable) and not isinstance(value, (str, bytes)):
                object.__setattr__(self, name, tuple(value))


@dataclass(frozen=True)
class Raw(Shaped):
    """An array per record, as the bytes of one byte string, which ``tf.io.decode_raw`` reads: an array ``[rows] + shape``.

    With ``None`` as the first dimension of ``shape`` it is a :class:`tfseek.Ragged`, whose rows have any number of items.

    dtype: ``bool``, integers, ``float16`` to ``float64``, ``bfloat16``, ``complex64`` or ``complex128``: of NumPy or TensorFlow, or a name.
        A dtype with a byte order, such as ``">i2"``, states that of the records. The array has the machine's order. A byte of a bool
        that is not 0 becomes true.
    fixed_length: longer byte strings are cut, and shorter ones get zeros at their end, as with TensorFlow's ``fixed_length``.
    """

    dtype: ArrayDType
    shape: Any
    fixed_length: bool = False

@dataclass(frozen=True)
class Tensor(Shaped):
    """An array per record, as one byte string that ``tf.io.serialize_tensor`` wrote. The column is that of :class:`Raw`.

    Each tensor must have this dtype and this shape, of which the first dimension may be ``None``.
    """

    dtype: ArrayDType
    shape: Any

@dataclass(frozen=True)
class Label:
    """The number of a byte string per record, an int64 array ``[rows]``: its position in a vocabulary.

    vocabulary: strings, each once, or the path of a file with one a line, which is read now.
    unknown: the number of all other strings, such as -1. ``None``: they raise ``DataError``. An absent feature raises it always.
    """

    vocabulary: Any
    unknown: typing.Optional[int] = None

    def __post_init__(self) -> None:
        words = self.vocabulary
        if isinstance(words, (str, os.PathLike)):
            with open(words, "rb") as file:
                words = [line.rstrip(b"\n").rstrip(b"\r") for line in file]
        if not isinstance(words, (Sequence, np.ndarray)) or isinstance(words, bytes):
            raise _spec_error(None, f"Label: vocabulary: expected a list of strings or a path, found {type(words).__name__}")
        for word in words:
            if not isinstance(word, (str, bytes)):
                raise _spec_error(None, f"Label: vocabulary: expected strings, found {_shown(word)}")
        object.__setattr__(self, "vocabulary", tuple(word.encode() if isinstance(word, str) else bytes(word) for word in words))
        if isinstance(self.unknown, (bool, np.bool_)) or not isinstance(self.unknown, (int, np.integer, type(None))):
            raise _spec_error(None, f"Label: unknown: expected an integer, found {_shown(self.unknown)}")
        object.__setattr__(self, "unknown", None if self.unknown is None else int(self.unknown))

    def __repr__(self) -> str:
        return f"Label({reprlib.repr(self.vocabulary)}, unknown={self.unknown})"


@dataclass(frozen=True)
class Stack:
    """One number of each of several features per record: an array ``[rows, len(keys)]``, in the order of ``keys``.

    ``default_value``, one number, replaces each absent feature. Without it, an absent feature is an error.
    """

    keys: Any
    dtype: DTypeLike
    default_value: Any = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "keys", _listed(self.keys))


@dataclass(frozen=True)
class Image:
    """A picture per record, as the bytes of a JPEG, PNG, BMP, GIF (its first frame) or WebP file: an array ``[rows, height, width, channels]``, of a
    single record ``[height, width, channels]``.

    The order of the steps: orientation, crop, resize, mirror, colours, mean and std, dtype, layout. What is random is drawn from seed, epoch
    and position.

    size: height and width. ``None``: those of each file, and a list of arrays ``[height, width, channels]``. channels: 1 (brightness), 3 (RGB) or
        4 (RGB and alpha, which a JPEG does not have).
    resize: ``"bilinear"`` (antialiased, as Pillow and torchvision), ``"area"`` (means), or ``None``: pictures must have the size.
    crop: ``"center"``: the largest centred rectangle of the same ratio, both sides times ``fraction``; without ``resize`` the centre of exactly this
        size. ``"random_resized"``: as torchvision's ``RandomResizedCrop``, with its ``scale`` (parts of the area) and ``ratio`` (width to height).
        ``None``: all of the picture.
    crop_with: a name that random crops and mirrors are drawn with, by default the feature's. A mask with its picture's name shares them, and needs
        the same ``crop``, ``fraction``, ``scale``, ``ratio`` and ``flip``.
    dtype: ``"uint8"``, ``"uint16"``, ``"float32"``, ``"float16"`` or ``"bfloat16"``. Floats are 0 to 1: the file's 8 bits divided by 255, its 16
        bits by 65535.
    flip: the probability that a picture is mirrored left to right.
    jitter: changes of ``brightness``, ``contrast``, ``saturation`` and ``hue``, a dict. They are applied in its order; torchvision draws an order for
        each picture. A number a means a factor of ``max(0, 1 - a)`` to ``1 + a``, or a turn of the hue of ``-a`` to ``a``, where 0.5 is half of the
        circle. ``(low, high)`` means this range.
    mean, std: a number per channel, in units of 0 to 1. Floats become ``(value - mean) / std``.
    layout: ``"hwc"``, or ``"chw"`` for ``[rows, channels, height, width]``.
    exif: applies the orientation in the EXIF data of a JPEG. Height and width are then the turned picture's.
    missing: a value of 0 to 255 for all pixels and channels where a record has no picture: no feature, no value or an empty byte string. ``mean``, ``std``
        and ``dtype`` apply to it. It requires a size. By default it is an error.
    geometry: the name of one more column beside the picture, int32 ``[rows, 5]``, of windows ``[rows, steps, 5]``: top, left, height and width of the
        part that is used, in the turned picture, and 1 if it is mirrored. All are 0 where the picture is missing. Not in items of LeRobot.
    scaled: decodes a JPEG to a half, a quarter or an eighth of its height and width where that leaves at least ``size``, before the resize. Large
        pictures take 0.5 to 0.6 of the time, and their pixels differ a little (docs/parsing.md).

    Pixels of a JPEG are libjpeg-turbo's, and of a WebP libwebp's. A picture that is damaged or does not fit raises ``DataError``, or is left out with ``damage="skip"``.
    """

    size: Any = None
    channels: int = 3
    resize: typing.Optional[Resize] = "bilinear"
    crop: typing.Optional[Crop] = None
    crop_with: typing.Optional[str] = None
    dtype: ArrayDType = "uint8"
    if sys.version_info >= (3, 10):
        # Python 3.9 accepts the fields below by position, too.
        _: dataclasses.KW_ONLY
    fraction: float = 1.0
    scale: Any = (0.08, 1.0)
    ratio: Any = (3 / 4, 4 / 3)
    flip: float = 0.0
    jitter: Any = None
    mean: Any = None
    std: Any = None
    layout: Layout = "hwc"
    exif: bool = False
    missing: typing.Optional[int] = None
    geometry: typing.Optional[str] = None
    scaled: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "size", None if self.size is None else _frozen(self.size))
        if self.size is not None and (not isinstance(self.size, tuple) or len(self.size) != 2):
            found = self.size[0] if isinstance(self.size, tuple) and len(self.size) == 1 else self.size
            raise _spec_error(None, f"Image: size: expected height and width such as (224, 224), found {found!r}")
        for option in ("fraction", "flip"):
            object.__setattr__(self, option, _finite(option, getattr(self, option)))
        for option, expected in (("scale", "two numbers such as (0.08, 1.0)"), ("ratio", "two numbers such as (0.75, 1.33)")):
            object.__setattr__(self, option, _finite_tuple(option, getattr(self, option), expected))
        for option in ("mean", "std"):
            if getattr(self, option) is not None:
                expected = "a number for each channel, such as (0.5, 0.5, 0.5)"
                object.__setattr__(self, option, _finite_tuple(option, getattr(self, option), expected))
        object.__setattr__(self, "jitter", _jitter(self.jitter))
        for option in ("exif", "scaled", "missing"):
            if isinstance(getattr(self, option), np.generic):
                object.__setattr__(self, option, getattr(self, option).item())
        if self.geometry is not None:
            object.__setattr__(self, "geometry", name_of(self.geometry))
        # Contradictions between the arguments, too, are errors where the spec is made, and not where it is used.
        try:
            Schema.from_json(to_json({"": self}, None, None))
        except SpecError as e:
            _, _, reason = str(e).rpartition("invalid schema: ")
            raise _spec_error(None, f"Image: {reason}") from None


# The type hints of Python 3.10 refuse the mark of keywords, which only the decorator needs.
Image.__annotations__.pop("_", None)


#: Names are ``str`` or ``bytes``.
Features = Union[Schema, Mapping[Any, Any]]


def schema_of(features: Features) -> Schema:
    """Returns the schema of at least one feature. Equal specs get the same cached schema, which keeps its parser."""
    if isinstance(features, Schema):
        return _not_empty(features)
    return _not_empty(_cached(to_json(features, None, None)))


def sequence_schema_of(context: typing.Optional[Features], sequence: typing.Optional[Features]) -> Schema:
    """Returns the schema of a context and feature lists. One Schema may contain both."""
    if isinstance(context, Schema) or isinstance(sequence, Schema):
        given = {id(part): part for part in (context, sequence) if part is not None}
        (one, *others) = given.values()
        if others or not isinstance(one, Schema):
            raise TypeError("a Schema describes context and sequence: expected it as the only argument")
        return _not_empty(one)
    return _not_empty(_cached(to_json(None, context or {}, sequence or {})))


def columns_of(schema: Union[Schema, TfdsDecoder]) -> set[str]:
    """Returns the names of the columns of features: the features, and the geometries of pictures."""
    form = json.loads(schema.to_json())
    specs = form.get("features") or form.get("context") or {}
    return {*schema.features, *(spec["geometry"] for spec in specs.values() if "geometry" in spec)}


def _not_empty(schema: Schema) -> Schema:
    """Returns the schema, or raises ``SpecError`` if it has no features: an empty spec is a mistake of the caller."""
    if schema._is_empty:
        arguments = "context_features and sequence_features" if schema.is_sequence else "features"
        raise _spec_error(None, f"{arguments}: expected at least one feature, found none")
    return schema


@functools.lru_cache(maxsize=64)
def _cached(text: str) -> Schema:
    # The key is the text, because specs that Python compares as equal may have different bits, for example 0.0 and -0.0.
    return Schema.from_json(text)


def to_json(
    features: typing.Optional[Mapping[Any, Any]],
    context: typing.Optional[Mapping[Any, Any]],
    sequence: typing.Optional[Mapping[Any, Any]],
) -> str:
    """Returns the JSON form of a schema, which Rust reads and validates."""
    if features is not None and (context is not None or sequence is not None):
        raise TypeError("expected features, or context_features and sequence_features, found both")
    if features is None and context is None and sequence is None:
        raise TypeError("expected features, or context_features and sequence_features, found neither")
    parts = {"features": features, "context": context, "sequence": sequence}
    return _object((name, _columns(part)) for name, part in parts.items() if part is not None)


def _object(members: Iterable[tuple[str, str]]) -> str:
    return "{" + ",".join(f"{json.dumps(name)}:{text}" for name, text in members) + "}"


def _columns(features: Mapping[Any, Any]) -> str:
    if not isinstance(features, Mapping):
        found = type(features).__name__
        raise TypeError(f'features: expected a dict such as {{"label": "int64"}} or a Schema such as ds.schema, found {found}')
    named = [(name_of(name), spec) for name, spec in features.items()]
    if len(dict(named)) < len(named):
        # Once as str and once as bytes.
        names = [name for name, _ in named]
        raise _spec_error(next(name for name in names if names.count(name) > 1), "the name is given twice")
    return _object((name, _text(name, spec)) for name, spec in named)


def _spec_error(name: typing.Optional[str], reason: str) -> SpecError:
    """Returns the error that Rust raises for an invalid schema."""
    location = "" if name is None else f'feature "{name}": '
    error = SpecError(f"{location}invalid schema: {reason}")
    error.feature, error.category = name, "bad_spec"
    return error


def _text(name: str, spec: Any) -> str:
    """Returns the JSON form of a spec. Immutable specs cache it, because the schema is looked up for every batch."""
    cached: typing.Optional[str] = getattr(spec, "_text", None)
    if cached is not None:
        return cached
    text = json.dumps(_column(name, spec))
    default = getattr(spec, _default_field(spec), None)
    if isinstance(spec, _SPECS) and (default is None or isinstance(default, (int, float, str, bytes))):
        object.__setattr__(spec, "_text", text)
    return text


_SPECS = (
    FixedLenFeature, Optional, VarLenFeature, FixedLenSequenceFeature, RaggedFeature, SparseFeature, Raw, Tensor, Label, Stack, Image,
)


def _column(name: str, spec: Any) -> dict[str, Any]:
    # Compared by name, so that TensorFlow's specs, which have the same fields, are accepted without importing TensorFlow.
    kind = type(spec).__name__
    if kind == "FixedLenFeature":
        return {"type": "fixed", "dtype": _dtype(name, spec.dtype), "shape": _shape(name, spec.shape), "default": _default(name, spec)}
    if isinstance(spec, Optional):
        return {"type": "optional", "dtype": _dtype(name, spec.dtype), "default": _default(name, spec)}
    if kind == "VarLenFeature":
        return {"type": "varlen", "dtype": _dtype(name, spec.dtype)}
    if kind == "FixedLenSequenceFeature":
        return {
            "type": "fixed_sequence",
            "dtype": _dtype(name, spec.dtype),
            "shape": _shape(name, spec.shape),
            "allow_missing": bool(spec.allow_missing),
            "default": _default(name, spec),
        }
    if kind == "RaggedFeature" and isinstance(spec.dtype, (Raw, Tensor, Label, Image)):
        if spec != RaggedFeature(spec.dtype):
            raise _spec_error(name, f"RaggedFeature of {type(spec.dtype).__name__}: expected no other argument")
        return {"type": "several", "of": _column(name, spec.dtype)}
    if kind == "RaggedFeature":
        return {
            "type": "ragged",
            "dtype": _dtype(name, spec.dtype),
            "value_key": None if spec.value_key is None else name_of(spec.value_key),
            "partitions": [_partition(name, partition) for partition in _listed(spec.partitions)],
            "row_splits_dtype": _splits_dtype(spec.row_splits_dtype),
            "validate": bool(spec.validate),
        }
    if kind == "SparseFeature":
        return {
            "type": "sparse",
            "dtype": _dtype(name, spec.dtype),
            "index_key": [name_of(key) for key in _listed(spec.index_key)],
            "value_key": name_of(spec.value_key),
            "size": [_integer(name, "size", size) for size in _listed(spec.size)],
            "already_sorted": bool(spec.already_sorted),
        }
    if isinstance(spec, Raw):
        if not isinstance(spec.fixed_length, (bool, np.bool_)):
            raise _spec_error(name, f"fixed_length: expected True or False, found {_shown(spec.fixed_length)}")
        dtype, order = _array_dtype(name, spec.dtype)
        raw = {"type": "raw", "dtype": dtype, "shape": _array_shape(name, spec.shape), "byte_order": order or "little"}
        return {**raw, "fixed_length": True} if spec.fixed_length else raw
    if isinstance(spec, Tensor):
        dtype, order = _array_dtype(name, spec.dtype)
        if order not in (None, sys.byteorder):
            raise _spec_error(name, f"dtype: expected no byte order for a tensor, found {order}")
        return {"type": "tensor", "dtype": dtype, "shape": _array_shape(name, spec.shape)}
    if isinstance(spec, Stack):
        keys = [name_of(key) for key in spec.keys]
        return {"type": "stack", "keys": keys, "dtype": _dtype(name, spec.dtype), "default": _default(name, spec)}
    if isinstance(spec, Label):
        return {"type": "label", "vocabulary": [_word(word) for word in spec.vocabulary], "unknown": spec.unknown}
    if isinstance(spec, Image):
        dtype, _ = _array_dtype(name, spec.dtype)
        return {
            "type": "image",
            "size": None if spec.size is None else _shape(name, spec.size),
            "channels": _integer(name, "channels", spec.channels),
            "resize": spec.resize,
            "crop": spec.crop,
            "crop_with": None if spec.crop_with is None else name_of(spec.crop_with),
            "dtype": dtype,
            # Only what differs from the defaults, so that the texts of earlier versions stay.
            **{option: value for option in _IMAGE_OPTIONS if (value := getattr(spec, option)) != getattr(Image, option)},
        }
    if isinstance(spec, Mapping):
        # The JSON form.
        return dict(spec)
    # A dtype alone, as in the package `tfrecord`, returns all values of the feature.
    return {"type": "ragged", "dtype": _dtype(name, spec)}


def _word(word: bytes) -> Any:
    try:
        return word.decode()
    except UnicodeDecodeError:
        return {"hex": word.hex()}


#: Fields of an :class:`Image` that its JSON form has only where they are not the defaults.
_IMAGE_OPTIONS = ("fraction", "scale", "ratio", "flip", "jitter", "mean", "std", "layout", "exif", "missing", "geometry", "scaled")

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


def _dtype(name: str, dtype: Any) -> str:
    found = dtype if isinstance(dtype, str) else getattr(dtype, "name", None) or getattr(dtype, "__name__", None)
    if isinstance(found, str):
        # NumPy's `bytes_` and `str_`.
        known = _DTYPES.get(found.rstrip("_"))
        if known is not None:
            return known
    raise TypeError(f"feature {name!r}: dtype: expected int64, float32 or string, found {dtype!r}")


#: Names of dtypes of arrays that NumPy does not have, or that mean another dtype there.
_ARRAY_NAMES = {"bfloat16": "bfloat16", "float": "float32"}


def _array_dtype(name: str, dtype: Any) -> tuple[str, typing.Optional[str]]:
    """Returns the name of a dtype of arrays, and its byte order if it states one. Rust checks the name."""
    found = getattr(dtype, "as_numpy_dtype", dtype)
    # Python's float means float32 in TensorFlow and float64 in NumPy.
    found = "float" if found is float else found
    if isinstance(found, str) and found in _ARRAY_NAMES:
        return _ARRAY_NAMES[found], None
    try:
        array = np.dtype(found)
    except TypeError:
        raise _spec_error(name, f"dtype: expected bool or a type of numbers, such as uint8 or float32, found {dtype!r}") from None
    stated = found[:1] if isinstance(found, str) else array.str[:1] if isinstance(found, np.dtype) else ""
    order = {"<": "little", ">": "big"}.get(stated)
    return array.name, order


def _finite(option: str, value: Any) -> float:
    """Returns a number of an :class:`Image` as a float. JSON has finite ones only, and a bool is an error."""
    if isinstance(value, numbers.Real) and not isinstance(value, bool):
        try:
            found = float(value)
        except OverflowError:
            found = math.inf
        if math.isfinite(found):
            return found
    raise _spec_error(None, f"Image: {option}: expected a finite number, found {_shown(value)}")


def _finite_tuple(option: str, value: Any, expected: str) -> tuple[float, ...]:
    """Returns the numbers of a list, a tuple or an array. Rust checks how many there are."""
    values = getattr(value, "tolist", lambda: value)()
    if not isinstance(values, Sequence) or isinstance(values, (str, bytes)):
        raise _spec_error(None, f"Image: {option}: expected {expected}, found {_shown(value)}")
    return tuple(_finite(option, each) for each in values)


def _jitter(jitter: Any) -> typing.Optional[tuple[tuple[str, Any], ...]]:
    """Returns operations on colours as pairs, because their order counts, and does not in comparisons of dicts."""
    if jitter is None:
        return None
    try:
        pairs = [(name, factors) for name, factors in (jitter.items() if isinstance(jitter, Mapping) else jitter)]
    except (TypeError, ValueError):
        raise _spec_error(None, f'Image: jitter: expected a dict such as {{"brightness": 0.4}}, found {_shown(jitter)}') from None
    found: list[tuple[str, Any]] = []
    for name, factors in pairs:
        if not isinstance(name, str):
            raise _spec_error(None, f"Image: jitter: expected names, found {_shown(name)}")
        option = f"jitter: {name}"
        is_number = isinstance(factors, numbers.Real)
        found.append((name, _finite(option, factors) if is_number else _finite_tuple(option, factors, "a number or two")))
    return tuple(found) or None


def _splits_dtype(dtype: Any) -> str:
    found = dtype if isinstance(dtype, str) else getattr(dtype, "name", None) or getattr(dtype, "__name__", None)
    return str(found)


def _frozen(shape: Any) -> Any:
    """Returns a shape given as a number, a list or a TensorShape as a tuple. Other values are returned unchanged.

    They are an error later, where the name of the feature is known.
    """
    shape = getattr(shape, "as_list", lambda: shape)()
    try:
        shape = (operator.index(shape),) if not isinstance(shape, (bool, str, bytes)) else shape
    except TypeError:
        if isinstance(shape, Iterable):
            shape = tuple(shape)
    return shape


def _shape(name: str, shape: Any) -> list[int]:
    shape = _frozen(shape)
    if shape is None or (isinstance(shape, tuple) and None in shape):
        raise TypeError(f"feature {name!r}: shape: expected integers ([] for one value; VarLenFeature or RaggedFeature for any number), found {shape!r}")
    if not isinstance(shape, tuple):
        raise TypeError(f"feature {name!r}: shape: expected a list of integers, found {shape!r}")
    return [_integer(name, "shape", dimension) for dimension in shape]


def _array_shape(name: str, shape: Any) -> list[typing.Optional[int]]:
    shape = _frozen(shape)
    if not isinstance(shape, tuple):
        raise TypeError(f"feature {name!r}: shape: expected a list of integers, found {shape!r}")
    return [None if dimension is None else _integer(name, "shape", dimension) for dimension in shape]


def _integer(name: str, argument: str, value: Any) -> int:
    """Returns an integer. Nothing is rounded, and a bool is an error."""
    try:
        if isinstance(value, bool):
            raise TypeError
        found = operator.index(value)
    except TypeError:
        raise TypeError(f"feature {name!r}: {argument}: expected an integer, found {value!r}") from None
    if not -(2**63) <= found < 2**64:
        raise _spec_error(name, f"{argument}: {_shown(found)} is out of range")
    return found


def _shown(value: Any) -> str:
    # Python refuses to print integers of thousands of digits.
    if isinstance(value, int) and value.bit_length() > 1000:
        return f"an integer of {value.bit_length()} bits"
    return repr(value)


def _listed(value: Any) -> tuple[Any, ...]:
    """Returns one value or several as a tuple. TensorFlow's partitions are tuples, but count as one value."""
    single = isinstance(value, (str, bytes)) or hasattr(value, "key") or hasattr(value, "length")
    return (value,) if single or not isinstance(value, Iterable) else tuple(value)


_PARTITIONS = {
    "RowSplits": "row_splits",
    "RowLengths": "row_lengths",
    "RowStarts": "row_starts",
    "RowLimits": "row_limits",
    "ValueRowIds": "value_rowids",
    "UniformRowLength": "uniform_row_length",
}


def _partition(name: str, partition: Any) -> dict[str, Any]:
    kind = _PARTITIONS.get(type(partition).__name__)
    if kind is None:
        if not isinstance(partition, (int, np.integer)):
            raise TypeError(f"feature {name!r}: partitions: expected RowSplits, RowLengths, .., found {partition!r}")
        kind, length = "uniform_row_length", partition
    elif kind == "uniform_row_length":
        length = partition.length
    else:
        return {"kind": kind, "key": name_of(partition.key)}
    return {"kind": kind, "length": _integer(name, "uniform_row_length", length)}


def _default_field(spec: Any) -> str:
    """Returns the name of the attribute with the default. Only TensorFlow's specs have its longer name."""
    return "default" if isinstance(spec, Optional) else "default_value"


def _default(name: str, spec: Any) -> typing.Optional[list[Any]]:
    """Returns a flat list: floats by their bits, byte strings as hex. Rust checks the number of values."""
    field = _default_field(spec)
    value = getattr(spec, field)
    if value is None:
        return None
    unmasked(value, f"feature {name!r}: {field}")
    dtype = _dtype(name, spec.dtype)
    if dtype == "string":
        array = np.asarray(value, dtype=object).ravel()
        return [{"hex": _encoded(name, field, item).hex()} for item in array.tolist()]
    if dtype == "int64":
        # As objects, because NumPy converts integers beyond 64 bits to floats.
        integers = value if isinstance(value, (np.ndarray, np.generic)) else np.asarray(value, dtype=object)
        return [_int64(name, field, item) for item in integers.ravel().tolist()]
    array = np.asarray(value)
    if array.dtype == object:
        array = np.array([_float(name, field, item) for item in array.ravel().tolist()], dtype=np.float64)
    if array.size and array.dtype.kind not in "iubf":
        raise TypeError(f"feature {name!r}: {field}: expected numbers, found {value!r}")
    # Values beyond the range of float32 become infinity, as in TensorFlow.
    with np.errstate(over="ignore"):
        bits = array.astype(np.float32).ravel().view(np.uint32)
    return [{"f32": f"{int(word):08x}"} for word in bits]


def _int64(name: str, field: str, value: Any) -> int:
    # TensorFlow converts a bool to 0 or 1 as well.
    if not isinstance(value, (int, np.integer, np.bool_)):
        raise TypeError(f"feature {name!r}: {field}: expected integers, found {value!r}")
    found = int(value)
    if not -(2**63) <= found < 2**63:
        raise _spec_error(name, f"{field}: {_shown(found)} does not fit into an int64")
    return found


def _float(name: str, field: str, value: Any) -> float:
    if not isinstance(value, (int, float, np.number, np.bool_)) or isinstance(value, np.complexfloating):
        raise TypeError(f"feature {name!r}: {field}: expected numbers, found {value!r}")
    try:
        return float(value)
    except OverflowError:
        raise _spec_error(name, f"{field}: {_shown(value)} does not fit into a float32") from None


def _encoded(name: str, field: str, value: Any) -> bytes:
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, bytes):
        return value
    raise TypeError(f"feature {name!r}: {field}: expected str or bytes, found {value!r}")
