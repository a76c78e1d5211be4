"""Scalars in the event files of TensorBoard: TFRecords of ``Event`` messages."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Union

from ._errors import DataError
from ._messages.wire import BYTES, FIXED32, FIXED64, VARINT, WireError, check_number, read_length, read_tag, read_varint, signed, skip
from ._tensor import parse_tensor

#: dtypes of the tensors of scalars, by their numbers in a ``TensorProto``
_DTYPES = {1: "float32", 2: "float64"}


def scalars(event: bytes, plugins: dict[str, bytes]) -> Iterator[tuple[float, int, str, float]]:
    """Yields wall time, step, tag and value of each scalar of an event.

    ``plugins`` has the plugin of each tag in the events of a file so far: only the first value of a tag has to name it. Raises ``WireError`` for
    malformed bytes, ``UnicodeDecodeError`` for a tag, and :class:`tfseek.DataError` without a place for a tensor of the plugin ``scalars`` that
    is no scalar.
    """
    wall_time, step, values = 0.0, 0, list[bytes]()
    for number, wire_type, data in _fields(event):
        if (number, wire_type) == (1, FIXED64):
            (wall_time,) = struct.unpack("<d", data)
        elif (number, wire_type) == (2, VARINT):
            step = signed(read_varint(data, 0, len(data))[0])
        elif (number, wire_type) == (5, BYTES):
            values += [value for at, kind, value in _fields(data) if (at, kind) == (1, BYTES)]
        elif number in (1, 2, 5):
            raise WireError(0, f"expected the fields of an event, found the wire type {wire_type} of field {number}")
    for value in values:
        tag, plugin = _last(value, 1).decode(), _last(_last(_last(value, 9), 1), 1)
        plugin = plugins.setdefault(tag, plugin) if plugin else plugins.get(tag, b"")
        found: Union[float, bytes, None] = None
        for number, wire_type, data in _fields(value):
            if (number, wire_type) == (2, FIXED32):
                (found,) = struct.unpack("<f", data)
            elif number in (4, 5, 6, 8) and wire_type == BYTES:
                # A picture, a histogram, sound or a tensor, of which the last one counts.
                found = data if number == 8 and plugin == b"scalars" else None
        if found is not None:
            yield wall_time, step, tag, _number(tag, found) if isinstance(found, bytes) else found


def _number(tag: str, tensor: bytes) -> float:
    """Returns the number of a tensor without dimensions."""
    data = _last(tensor, 1, VARINT)
    dtype = read_varint(data, 0, len(data))[0] if data else 0
    if dtype not in _DTYPES:
        raise DataError(f"scalar {tag!r}: expected a tensor of float32 or float64, found the dtype {dtype}")
    array = parse_tensor(tensor, _DTYPES[dtype])
    if array.ndim:
        raise DataError(f"scalar {tag!r}: expected a tensor without dimensions, found the shape {list(array.shape)}")
    return float(array)


def _last(message: bytes, number: int, wire_type: int = BYTES) -> bytes:
    """Returns the last one of the fields with a number, or no bytes."""
    found = [data for at, kind, data in _fields(message) if (at, kind) == (number, wire_type)]
    return found[-1] if found else b""


def _fields(message: bytes) -> Iterator[tuple[int, int, bytes]]:
    """Yields the number, the wire type and the bytes of each field: of ``BYTES`` those after the length."""
    pos, end = 0, len(message)
    while pos < end:
        number, wire_type, start = read_tag(message, pos, end)
        check_number(number, pos)
        pos = skip(message, start, end, number, wire_type, 0)
        yield number, wire_type, message[read_length(message, start, end)[0] if wire_type == BYTES else start : pos]
