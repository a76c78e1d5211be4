"""Protobuf's wire format: varints, tags and the length of unknown fields."""

from __future__ import annotations

from array import array

VARINT, FIXED64, BYTES, GROUP, END_GROUP, FIXED32 = range(6)

#: Nesting of messages and groups that upb accepts.
MAX_DEPTH = 100

#: Longest message that protobuf parses and serializes.
MAX_SIZE = 2**31 - 1


class WireError(Exception):
    """Malformed bytes, with the offset in the message that is parsed."""

    def __init__(self, offset: int, reason: str) -> None:
        super().__init__(offset, reason)
        self.offset = offset
        self.reason = reason


def read_varint(data: bytes, pos: int, end: int) -> tuple[int, int]:
    """Returns an unsigned number of 64 bits and the position after it. Bits beyond 64 are dropped, as in protobuf."""
    if pos < end and data[pos] < 0x80:
        return data[pos], pos + 1
    value = shift = 0
    for at in range(pos, min(end, pos + 10)):
        byte = data[at]
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & 0xFFFF_FFFF_FFFF_FFFF, at + 1
        shift += 7
    found = "the end of the message" if end - pos < 10 else "a longer one"
    raise WireError(pos, f"expected a varint of at most 10 bytes, found {found}")


def read_tag(data: bytes, pos: int, end: int) -> tuple[int, int, int]:
    """Returns the number of a field, its wire type and the position after the tag."""
    tag, after = read_varint(data, pos, end)
    if tag >> 32 or after - pos > 5:
        raise WireError(pos, "expected a tag of 32 bits, found a longer one")
    return tag >> 3, tag & 7, after


def check_number(number: int, pos: int) -> None:
    """Raises for the field number 0, which protobuf accepts inside unknown groups only."""
    if number == 0:
        raise WireError(pos, "expected a field number, found 0")


def read_length(data: bytes, pos: int, end: int) -> tuple[int, int]:
    """Returns the start and the end of a value with a length before it."""
    length, start = read_varint(data, pos, end)
    if length > end - start:
        raise WireError(pos, f"expected at most {end - start} bytes, found the length {length}")
    return start, start + length


def skip(data: bytes, pos: int, end: int, number: int, wire_type: int, depth: int) -> int:
    """Returns the position after a field whose tag ends at ``pos``. ``depth`` is the nesting of its message."""
    groups: list[int] = []
    while True:
        if wire_type == VARINT:
            _, pos = read_varint(data, pos, end)
        elif wire_type in (FIXED32, FIXED64):
            size = 4 if wire_type == FIXED32 else 8
            if size > end - pos:
                raise WireError(pos, f"expected {size} bytes, found {end - pos}")
            pos += size
        elif wire_type == BYTES:
            _, pos = read_length(data, pos, end)
        elif wire_type == GROUP:
            groups.append(number)
            if depth + len(groups) > MAX_DEPTH:
                raise WireError(pos, f"expected at most {MAX_DEPTH} nested messages and groups")
        elif wire_type == END_GROUP:
            if not groups or groups.pop() != number:
                raise WireError(pos, f"expected no end of a group, found that of field {number}")
        else:
            raise WireError(pos, f"expected a wire type up to 5, found {wire_type}")
        if not groups:
            return pos
        number, wire_type, pos = read_tag(data, pos, end)


def varint(value: int) -> bytes:
    """Returns the encoding of an unsigned number."""
    if value < 0x80:
        return bytes((value,))
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def delimited(number: int, value: bytes) -> bytes:
    """Returns a field of the wire type ``BYTES``."""
    return b"".join((varint(number << 3 | BYTES), varint(len(value)), value))


def read_packed(data: bytes, start: int, end: int, values: array[int]) -> None:
    """Appends packed varints, as signed numbers of 64 bits."""
    chunk = data[start:end]
    if chunk.isascii():
        values.extend(array("q", list(chunk)))
        return
    pos = start
    while pos < end:
        value, pos = read_varint(data, pos, end)
        values.append(signed(value))


def packed(values: array[int]) -> bytes:
    """Returns numbers of 64 bits as varints, one after another."""
    if values and min(values) >= 0 and max(values) < 0x80:
        # `bytes(values)` would be the memory of the array.
        return bytes(list(values))
    return b"".join(varint(value & 0xFFFF_FFFF_FFFF_FFFF) for value in values)


def signed(value: int) -> int:
    """Returns the signed number with the same 64 bits."""
    return value - (1 << 64) if value >> 63 else value


def same_unknown(a: bytes, b: bytes) -> bool:
    """Returns true if unknown fields are equal. Fields with different numbers may be in another sequence."""
    return a == b or _fields(a, 0, len(a))[0] == _fields(b, 0, len(b))[0]


def _fields(data: bytes, pos: int, end: int) -> tuple[list[tuple[int, int, object]], int]:
    """Returns the fields up to the end of their group, ordered by tag, and the position after it. The bytes have been parsed before."""
    found: list[tuple[int, int, object]] = []
    while pos < end:
        number, wire_type, pos = read_tag(data, pos, end)
        if wire_type == END_GROUP:
            break
        value: object
        if wire_type == GROUP:
            value, pos = _fields(data, pos, end)
        elif wire_type == VARINT:
            value, pos = read_varint(data, pos, end)
        elif wire_type == BYTES:
            start, pos = read_length(data, pos, end)
            value = data[start:pos]
        else:
            after = skip(data, pos, end, number, wire_type, 0)
            value, pos = data[pos:after], after
        found.append((number, wire_type, value))
    found.sort(key=lambda field: field[:2])
    return found, pos
