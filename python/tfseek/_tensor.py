"""Tensors in a bytes feature: ``tf.io.serialize_tensor`` and ``tf.io.parse_tensor``."""

from __future__ import annotations

from typing import Any, Union

import numpy as np
import numpy.typing as npt

from . import _tfseek


def serialize_tensor(tensor: npt.ArrayLike) -> bytes:
    """The bytes that ``tf.io.serialize_tensor`` makes of an array: numbers, bools, or byte strings (``str`` as UTF-8)."""
    array = np.asarray(tensor)
    if array.dtype.kind in "SUO":
        values = [value.encode() if isinstance(value, str) else value for value in array.ravel().tolist()]
        for value in values:
            if not isinstance(value, bytes):
                raise TypeError(f"expected str or bytes, found {type(value).__name__}")
        return _tfseek.serialize_strings(list(array.shape), values)
    name = array.dtype.name
    little = array.astype(array.dtype.newbyteorder("<"), copy=False)
    return _tfseek.serialize_numbers(name, list(array.shape), little.tobytes())


def parse_tensor(serialized: Union[bytes, bytearray], out_type: Any) -> npt.NDArray[Any]:
    """A read-only array of the bytes that ``tf.io.serialize_tensor`` made.

    ``out_type`` is a dtype of NumPy or TensorFlow or its name; ``"string"`` gives an object array of ``bytes``, ``"bfloat16"`` needs the
    package ``ml_dtypes``. Raises :class:`tfseek.DataError` for another dtype, and for what is no tensor.
    """
    name = out_type if isinstance(out_type, str) else getattr(out_type, "name", None) or np.dtype(out_type).name
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


def _dtype(name: str) -> Any:
    if name == "bfloat16":
        import ml_dtypes

        return np.dtype(ml_dtypes.bfloat16)
    return np.dtype(name).newbyteorder("<")
