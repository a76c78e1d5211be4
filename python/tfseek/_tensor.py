"""Serialized tensors: ``tf.io.serialize_tensor`` and ``tf.io.parse_tensor``."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any, Union

import numpy as np
import numpy.typing as npt

from . import _tfseek
from ._arrays import unmasked


def serialize_tensor(tensor: npt.ArrayLike) -> bytes:
    """Serializes a tensor to the bytes that ``tf.io.serialize_tensor`` returns.

    ``tensor`` is an array, a number, a bool, ``str`` (as UTF-8) or ``bytes``, or nested lists of them. An array keeps its dtype. Python
    numbers get TensorFlow's dtypes: floats float32, ints int32, or int64 if one does not fit. The first value of a list determines
    the dtype.

    Raises :class:`ValueError` for numbers that do not fit the dtype, lists of different lengths or kinds, and masked values.
    """
    unmasked(tensor, "tensor")
    array = _of_python(tensor) if _is_python(tensor) else np.asarray(tensor)
    if array.dtype.kind in "SUO":
        values = [value.encode() if isinstance(value, str) else value for value in array.ravel().tolist()]
        for value in values:
            if not isinstance(value, bytes):
                raise TypeError(f"expected str or bytes, found {type(value).__name__}")
        return _tfseek.serialize_strings(list(array.shape), values)
    name = array.dtype.name
    little = array.astype(array.dtype.newbyteorder("<"), copy=False)
    return _tfseek.serialize_numbers(name, list(array.shape), little.tobytes())


def _is_python(value: Any) -> bool:
    """Returns true for values of Python types, which have no dtype."""
    if isinstance(value, np.generic) or hasattr(value, "__array__"):
        return False
    if isinstance(value, (bool, int, float, complex, str, bytes, list, tuple, range)):
        return True
    # Other sequences have a dtype if they are buffers, for example `array.array`.
    return isinstance(value, Sequence) and not isinstance(value, (bytearray, memoryview)) and not _is_buffer(value)


def _is_buffer(value: Any) -> bool:
    try:
        memoryview(value).release()
        return True
    except TypeError:
        return False


def _of_python(value: Any) -> npt.NDArray[Any]:
    shape: list[int] = []
    leaves: list[Any] = []
    _gather(value, 0, shape, leaves)
    if not leaves:
        return np.zeros(shape, dtype=np.int32 if isinstance(value, range) else np.float32)
    first, kinds = _kind(leaves[0]), {_kind(leaf) for leaf in leaves}
    if first == "int":
        # TensorFlow converts the values before the first float as ints.
        for leaf in itertools.takewhile(lambda leaf: _kind(leaf) != "float", leaves):
            if _kind(leaf) == "int" and not -(2**63) <= leaf < 2**63:
                raise ValueError("an integer does not fit into an int64")
        first = "float" if "float" in kinds else "int"
    if not kinds <= _ACCEPTED[first]:
        others = ", ".join(sorted(kinds - {first}))
        raise ValueError(f"expected a list of {first}, as its first value, found also {others}")
    dtype: Any
    if first == "int":
        leaves = [int(leaf) for leaf in leaves]
        dtype = np.int32 if -(2**31) <= min(leaves) and max(leaves) < 2**31 else np.int64
    elif first == "float":
        dtype = type(leaves[0]) if isinstance(leaves[0], np.floating) else np.float32
        leaves = [_checked(leaf, dtype) for leaf in leaves]
    else:
        dtype = {"str or bytes": object, "complex": np.complex128}.get(first, np.bool_)
    array = np.empty(len(leaves), dtype=dtype)
    array[:] = leaves
    return array.reshape(shape)


#: Kinds accepted in a list after a first value of each kind, as in TensorFlow.
_ACCEPTED = {
    "bool": {"bool", "numpy bool"},
    "numpy bool": {"bool", "numpy bool"},
    "int": {"int", "bool"},
    "float": {"float", "int", "bool"},
    "complex": {"complex", "float", "int", "bool"},
    "str or bytes": {"str or bytes"},
}


def _kind(leaf: Any) -> str:
    for types, name in (
        (np.bool_, "numpy bool"),
        (bool, "bool"),
        ((int, np.integer), "int"),
        ((float, np.floating), "float"),
        ((complex, np.complexfloating), "complex"),
        ((str, bytes), "str or bytes"),
    ):
        if isinstance(leaf, types):
            return name
    raise TypeError(f"expected numbers, bools, str or bytes, found {type(leaf).__name__}")


def _checked(leaf: Any, dtype: Any) -> float:
    try:
        value = float(leaf)
    except OverflowError:
        raise ValueError("an integer does not fit into a float") from None
    with np.errstate(over="ignore"):
        if np.isinf(dtype(value)) and not np.isinf(value):
            raise ValueError(f"{value!r} does not fit into a {np.dtype(dtype).name}")
    return value


def _gather(value: Any, depth: int, shape: list[int], leaves: list[Any]) -> None:
    """Appends the values of nested lists to ``leaves``, row-major. The path to the first value determines the shape of all lists."""
    if not isinstance(value, np.generic) and hasattr(value, "__array__"):
        value = np.asarray(value)
        value = value[()] if value.ndim == 0 else value
    if isinstance(value, (str, bytes)) or not isinstance(value, (Sequence, np.ndarray)):
        if depth != len(shape):
            raise ValueError("a list contains both values and lists")
        leaves.append(value)
        return
    if depth == len(shape):
        if leaves:
            raise ValueError("a list contains both values and lists")
        shape.append(len(value))
    if shape[depth] != len(value):
        raise ValueError(f"lists of different lengths: expected {shape[depth]} values, found {len(value)}")
    for item in value:
        _gather(item, depth + 1, shape, leaves)


#: TensorFlow's alternative names of dtypes.
_NAMES = {"half": "float16", "float": "float32", "double": "float64"}


def parse_tensor(serialized: Union[bytes, bytearray], out_type: Any) -> npt.NDArray[Any]:
    """Parses the bytes of ``tf.io.serialize_tensor`` to a read-only array.

    ``out_type`` is a dtype of NumPy or TensorFlow, or its name. ``"string"`` returns an object array of ``bytes``. ``"bfloat16"`` needs
    the package ``ml_dtypes``. Raises :class:`tfseek.DataError` for a tensor of another dtype, and for invalid bytes.
    """
    name = _name(out_type)
    if name in ("string", "bytes", "object", "str"):
        shape, strings = _tfseek.parse_tensor(serialized, "string")
        array = np.empty(len(strings), dtype=object)
        array[...] = strings
        array = array.reshape(shape)
    else:
        shape, data = _tfseek.parse_tensor(serialized, name)
        array = np.frombuffer(data, dtype=_dtype(name)).reshape(shape)
    array.setflags(write=False)
    return array


def _name(dtype: Any) -> str:
    if isinstance(dtype, str):
        return _NAMES.get(dtype, dtype)
    # Python's float means float32 in TensorFlow and float64 in NumPy.
    return "float32" if dtype is float else getattr(dtype, "name", None) or np.dtype(dtype).name


def bfloat16() -> Any:
    """Returns the dtype ``bfloat16``, which NumPy does not have."""
    import ml_dtypes

    return np.dtype(ml_dtypes.bfloat16)


def _dtype(name: str) -> Any:
    if name == "bfloat16":
        return bfloat16()
    return np.dtype(name).newbyteorder("<")
