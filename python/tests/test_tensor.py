"""Tensors there and back, and the bytes of TensorFlow."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tfseek

DTYPES = "float32 float64 int32 uint8 int16 int8 complex64 int64 bool uint16 complex128 float16 uint32 uint64".split()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(), (3,), (2, 0), (2, 3, 4)])
def test_there_and_back(dtype: str, shape: tuple[int, ...]) -> None:
    array = np.random.default_rng(1).integers(0, 2, shape).astype(dtype)
    for given in (array, array.astype(array.dtype.newbyteorder(">")), np.array(array, order="F")):
        data = tfseek.serialize_tensor(given)
        for out_type in (dtype, np.dtype(dtype)):
            found = tfseek.parse_tensor(data, out_type)
            assert found.dtype == array.dtype and found.shape == shape and not found.flags.writeable
            assert found.tobytes() == array.tobytes()


def test_strings() -> None:
    array = np.array([["a", b"\xff"], ["", "grüß"]], dtype=object)
    found = tfseek.parse_tensor(tfseek.serialize_tensor(array), "string")
    assert found.tolist() == [[b"a", b"\xff"], [b"", "grüß".encode()]] and not found.flags.writeable
    assert tfseek.parse_tensor(tfseek.serialize_tensor("x"), str)[()] == b"x"


def test_bytes_of_tensorflow() -> None:
    # tf.io.serialize_tensor(tf.constant([1.0, -2.0], tf.float16))
    data = b"\x08\x13\x12\x04\x12\x02\x08\x02\x22\x04\x00\x3c\x00\xc0"
    assert tfseek.serialize_tensor(np.array([1, -2], dtype=np.float16)) == data
    assert tfseek.parse_tensor(bytearray(data), np.float16).tolist() == [1, -2]


@pytest.mark.parametrize("data", [b"", b"\x08", b"\x08\x01\x12\x04\x12\x02\x08\x02\x22\x04\x00\x3c\x00\xc0"])
def test_what_is_no_tensor(data: bytes) -> None:
    with pytest.raises(tfseek.DataError):
        tfseek.parse_tensor(data, "float32")


def test_dtypes_that_are_none() -> None:
    for bad in (np.datetime64("2020-01-01"), np.array([1, None], dtype=object)):
        with pytest.raises(TypeError):
            tfseek.serialize_tensor(bad)
    wrong: Any
    for wrong in ("x", np.dtype("datetime64[s]")):
        with pytest.raises(TypeError):
            tfseek.parse_tensor(b"", wrong)
    with pytest.raises(tfseek.DataError, match="expected a tensor of int64, found float32"):
        tfseek.parse_tensor(tfseek.serialize_tensor(np.float32(1)), "int64")
