"""Values of lists: their checks, storage and encoding, for each of the three kinds."""

from __future__ import annotations

import operator
import sys
from array import array
from collections.abc import Iterable
from typing import Any, Generic, TypeVar

import numpy as np

from .._arrays import unmasked
from . import wire

T = TypeVar("T")


class Kind(Generic[T]):
    """A kind of values. The storage is a list or an ``array``, which have the same methods."""

    def storage(self, values: Iterable[Any]) -> Any:
        """Returns checked values in a new storage."""
        raise NotImplementedError

    def checked(self, value: Any) -> T:
        """Returns a value as it is stored."""
        raise NotImplementedError

    def accepts(self, wire_type: int) -> bool:
        """Returns true if fields of this wire type contain values."""
        raise NotImplementedError

    def decode(self, storage: Any, data: bytes, pos: int, end: int, wire_type: int) -> int:
        """Appends the values of one field and returns the position after it."""
        raise NotImplementedError

    def encode(self, storage: Any, number: int) -> bytes:
        """Returns the fields of a storage that is not empty."""
        raise NotImplementedError


class Bytes(Kind[bytes]):
    """Byte strings, one per field."""

    def storage(self, values: Iterable[Any]) -> list[bytes]:
        return [self.checked(value) for value in values]

    def checked(self, value: Any) -> bytes:
        if not isinstance(value, bytes):
            raise TypeError(f"expected bytes, found {type(value).__name__}")
        return value if type(value) is bytes else bytes(value)

    def accepts(self, wire_type: int) -> bool:
        return wire_type == wire.BYTES

    def decode(self, storage: Any, data: bytes, pos: int, end: int, wire_type: int) -> int:
        start, after = wire.read_length(data, pos, end)
        storage.append(data[start:after])
        return after

    def encode(self, storage: Any, number: int) -> bytes:
        return b"".join(wire.delimited(number, value) for value in storage)


class Floats(Kind[float]):
    """Numbers of 32 bits. An ``array`` keeps the bits of each NaN."""

    def storage(self, values: Iterable[Any]) -> array[float]:
        unmasked(values, "value")
        if isinstance(values, np.ndarray) and values.ndim == 1 and values.dtype.kind in "fiub":
            # In two steps, as protobuf converts single numbers.
            with np.errstate(over="ignore"):
                numbers = values.astype(np.float64).astype(np.float32)
            return array("f", numbers.tobytes())
        found = list(values)
        arrays = [i for i, value in enumerate(found) if isinstance(value, np.ndarray)]
        if arrays:
            # An invalid value before it raises its own error.
            array("f", found[: arrays[0]])
            raise TypeError(f"expected a float, found the array {found[arrays[0]]!r}")
        return array("f", found)

    def checked(self, value: Any) -> float:
        return self.storage((value,))[0]

    def accepts(self, wire_type: int) -> bool:
        return wire_type in (wire.BYTES, wire.FIXED32)

    def decode(self, storage: Any, data: bytes, pos: int, end: int, wire_type: int) -> int:
        if wire_type == wire.BYTES:
            start, after = wire.read_length(data, pos, end)
            if (after - start) % 4:
                raise wire.WireError(pos, f"expected packed floats of 4 bytes each, found {after - start} bytes")
        else:
            start, after = pos, pos + 4
            if after > end:
                raise wire.WireError(pos, f"expected 4 bytes, found {end - pos}")
        values = array("f", data[start:after])
        if sys.byteorder == "big":
            values.byteswap()
        storage.extend(values)
        return after

    def encode(self, storage: Any, number: int) -> bytes:
        values = array("f", storage)
        if sys.byteorder == "big":
            values.byteswap()
        return wire.delimited(number, values.tobytes())


class Int64s(Kind[int]):
    """Numbers of 64 bits. Bools are ints."""

    def storage(self, values: Iterable[Any]) -> array[int]:
        unmasked(values, "value")
        if isinstance(values, np.ndarray) and values.ndim == 1 and values.dtype.kind in "ib":
            return array("q", values.astype(np.int64).tobytes())
        return array("q", [self.checked(value) for value in values])

    def checked(self, value: Any) -> int:
        number = int(value) if isinstance(value, np.bool_) else operator.index(value)
        if not -(2**63) <= number < 2**63:
            raise ValueError(f"expected an integer of 64 bits, found {number}")
        return number

    def accepts(self, wire_type: int) -> bool:
        return wire_type in (wire.BYTES, wire.VARINT)

    def decode(self, storage: Any, data: bytes, pos: int, end: int, wire_type: int) -> int:
        if wire_type == wire.BYTES:
            start, after = wire.read_length(data, pos, end)
            wire.read_packed(data, start, after, storage)
        else:
            value, after = wire.read_varint(data, pos, end)
            storage.append(wire.signed(value))
        return after

    def encode(self, storage: Any, number: int) -> bytes:
        return wire.delimited(number, wire.packed(storage))


BYTES, FLOATS, INT64S = Bytes(), Floats(), Int64s()
