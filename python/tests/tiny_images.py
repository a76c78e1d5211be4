"""Two kinds of valid images of a few bytes."""

from __future__ import annotations

import struct
import zlib

#: A grey JPEG of 8 x 8 pixels: quantization, frame, the two Huffman tables of one value each, and one block of zeros.
JPEG = bytes.fromhex(
    "ffd8ffe000104a46494600010100000100010000"
    "ffdb004300" + "10" * 64 + "ffc0000b080008000801011100"
    "ffc4001400" + "01" + "00" * 16 + "ffc4001410" + "01" + "00" * 16 + "ffda0008010100003f003fffd9"
)


def chunk(name: bytes, content: bytes) -> bytes:
    """Returns a chunk of a PNG."""
    return struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))


def png(width: int, height: int, colour: int, transparent: bool = False) -> bytes:
    """Returns a black PNG of 8 bits per channel."""
    channels = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}[colour]
    pixels = (b"\0" + bytes(width * channels)) * height
    palette = chunk(b"PLTE", bytes(3)) if colour == 3 else b""
    palette += chunk(b"tRNS", b"\0") if transparent else b""
    header = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, colour, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + header + palette + chunk(b"IDAT", zlib.compress(pixels)) + chunk(b"IEND", b"")
