"""The size of an image from its header."""

from __future__ import annotations

from typing import Union

from . import _tfseek


def image_shape(image: Union[bytes, bytearray, memoryview]) -> tuple[int, int, int]:
    """Returns height, width and channels of a JPEG or PNG image, as the shape of ``tf.image.decode_jpeg(image)``.

    Only the header is read, so damaged pixels are not found. Colours of a palette are 3 channels, or 4 if some are transparent;
    those of a JPEG are 1 or 3. Raises :class:`ValueError` if the file is neither JPEG nor PNG, if a loader reads no such file, and
    if it is too short for its pixels.
    """
    if not isinstance(image, (bytes, bytearray, memoryview)):
        raise TypeError(f"image: expected bytes, found {type(image).__name__}")
    return _tfseek.image_shape(bytes(image))
