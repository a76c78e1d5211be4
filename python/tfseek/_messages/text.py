"""Protobuf's text format, as ``str(message)`` prints it."""

from __future__ import annotations

from array import array
from typing import Any, Union

_ESCAPES = {ord("\n"): "\\n", ord("\r"): "\\r", ord("\t"): "\\t", ord('"'): '\\"', ord("'"): "\\'", ord("\\"): "\\\\"}
_BYTES = [_ESCAPES.get(byte) or (chr(byte) if 0x20 <= byte < 0x7F else f"\\{byte:03o}") for byte in range(256)]


def quoted(value: Union[str, bytes]) -> str:
    """Returns a string or byte string in quotes. In strings, characters beyond ASCII stay as they are."""
    if isinstance(value, str):
        return '"' + "".join(_BYTES[ord(char)] if ord(char) < 0x80 else char for char in value) + '"'
    return '"' + "".join([_BYTES[byte] for byte in value]) + '"'


def scalar(value: Any) -> str:
    """Returns a value of a list. A float32 has 6 digits if they are exact, otherwise 9."""
    if isinstance(value, bytes):
        return quoted(value)
    if isinstance(value, int):
        return str(value)
    if value != value:
        return "nan"
    short = f"{value:.6g}"
    return short if array("f", (float(short),))[0] == value else f"{value:.9g}"
