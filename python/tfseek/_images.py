"""The size of an image from its header."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Union

#: Markers of the JPEG segments that contain the size: all frames but the definitions of tables.
_FRAMES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
#: Markers without a length: restarts, the start of the image, and one that is reserved.
_SINGLE = frozenset((*range(0xD0, 0xD9), 0x01))


def image_shape(image: Union[bytes, bytearray, memoryview]) -> tuple[int, int, int]:
    """Returns height, width and channels of a JPEG or PNG image, as the shape of ``tf.image.decode_jpeg(image)``.

    Only the header is read, so damaged pixels are not found. Colours of a palette are 3 channels, or 4 if some are transparent;
    those of a JPEG are at most 3. Raises :class:`ValueError` if the header is neither JPEG nor PNG, or incomplete.
    """
    if not isinstance(image, (bytes, bytearray, memoryview)):
        raise TypeError(f"image: expected bytes, found {type(image).__name__}")
    # Byte strings share their memory with the slice.
    data = memoryview(image).cast("B")
    if bytes(data[:2]) == b"\xff\xd8":
        return _jpeg(data)
    if bytes(data[:8]) == b"\x89PNG\r\n\x1a\n":
        return _png(data)
    raise ValueError(f"image: expected JPEG or PNG, found {bytes(data[:8])!r}")


def _jpeg(data: memoryview) -> tuple[int, int, int]:
    for marker, segment in _segments(data):
        if marker in _FRAMES and len(segment) >= 6:
            height, width, components = struct.unpack(">HHB", segment[1:6])
            if not height or not width:
                raise ValueError(f"image: expected a JPEG with a size in its header, found {width} x {height}")
            return height, width, min(components, 3)
    raise ValueError("image: expected a JPEG with a size in its header, found none")


def _segments(data: memoryview) -> Iterator[tuple[int, memoryview]]:
    """Returns the segments of a JPEG up to its pixels: marker and content."""
    at = 2
    while at + 4 <= len(data):
        if data[at] != 0xFF:
            raise ValueError(f"image: expected a JPEG marker at byte {at}, found {data[at]:#04x}")
        marker = data[at + 1]
        if marker == 0xFF:
            at += 1
            continue
        if marker in _SINGLE:
            at += 2
            continue
        length = data[at + 2] << 8 | data[at + 3]
        if marker in (0xD9, 0xDA) or length < 2:
            return
        yield marker, data[at + 4 : at + 2 + length]
        at += 2 + length


def _png(data: memoryview) -> tuple[int, int, int]:
    if len(data) < 33 or bytes(data[8:16]) != b"\x00\x00\x00\rIHDR":
        raise ValueError("image: expected a PNG with a whole header, found another one")
    width, height, _, colour = struct.unpack(">IIBB", data[16:26])
    channels = {0: 1, 2: 3, 3: 4 if colour == 3 and _is_transparent(data) else 3, 4: 2, 6: 4}.get(colour)
    if channels is None or not 0 < width < 2**31 or not 0 < height < 2**31:
        raise ValueError(f"image: expected a valid PNG header, found {width} x {height} with colour type {colour}")
    return height, width, channels


def _is_transparent(data: memoryview) -> bool:
    """Returns true if a PNG has a chunk ``tRNS`` before its pixels."""
    at = 33
    while at + 8 <= len(data):
        length, name = struct.unpack(">I4s", data[at : at + 8])
        if name in (b"tRNS", b"IDAT"):
            return bool(name == b"tRNS")
        at += 12 + length
    return False
