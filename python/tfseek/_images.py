"""The size of an image from its header."""

from __future__ import annotations

from typing import Union

from . import _tfseek


def image_shape(image: Union[bytes, bytearray, memoryview], *, exif: bool = False) -> tuple[int, int, int]:
    """Returns height, width and channels of a JPEG, PNG, BMP, GIF or WebP, as the shape of ``tf.io.decode_image(image)``. With ``exif`` a JPEG is
    turned as its EXIF says, as by ``tfseek.Image(exif=True)``.

    Only the header is read, of a GIF the headers of its frames, so damaged pixels are not found. Colours of a palette are 3 channels, or 4 if some
    are transparent; those of a BMP are 1. A JPEG has 1 or 3. Raises :class:`ValueError` for another file, one that no loader reads, and one that is
    too short for its pixels.
    """
    if not isinstance(image, (bytes, bytearray, memoryview)):
        raise TypeError(f"image: expected bytes, found {type(image).__name__}")
    return _tfseek.image_shape(bytes(image), exif)
