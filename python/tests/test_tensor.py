"""Serialized tensors: round trips, and the bytes of TensorFlow."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tfseek

DTYPES = "float32 float64 int32 uint8 int16 int8 complex64 int64 bool uint16 complex128 float16 uint32 uint64".split()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(), (3,), (2, 0), (2, 3, 4)])
def test_round_trip(dtype: str, shape: tuple[int, ...]) -> None:
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


I32, I64, F32 = "int32", "int64", "float32"


@pytest.mark.parametrize(
    ("tensor", "dtype", "shape"),
    [
        (1, I32, ()),
        (2**31 - 1, I32, ()),
        (2**31, I64, ()),
        (-(2**31), I32, ()),
        (-(2**31) - 1, I64, ()),
        (2**63 - 1, I64, ()),
        (1.5, F32, ()),
        (float("nan"), F32, ()),
        (True, "bool", ()),
        ([1, 2], I32, (2,)),
        ((1, 2), I32, (2,)),
        (range(3), I32, (3,)),
        (range(0), I32, (0,)),
        ([1, 2**40], I64, (2,)),
        ([[1], [2]], I32, (2, 1)),
        ([1, 2.5], F32, (2,)),
        ([1.5, True, 2], F32, (3,)),
        ([1, True], I32, (2,)),
        ([True, False], "bool", (2,)),
        ([], F32, (0,)),
        ([[], []], F32, (2, 0)),
        ([()], F32, (1, 0)),
        ([1 + 2j], "complex128", (1,)),
        ([1 + 2j, 1], "complex128", (2,)),
        ([3.40282356e38], F32, (1,)),
        # Values with a dtype keep it.
        (np.int64(1), I64, ()),
        (np.float64(1), "float64", ()),
        (np.arange(3), I64, (3,)),
        (np.zeros(2), "float64", (2,)),
        (np.uint64(2**64 - 1), "uint64", ()),
        # A NumPy float at the start of a list determines the dtype.
        ([np.int64(1)], I32, (1,)),
        ([np.float64(1.5)], "float64", (1,)),
        ([1.5, np.float64(2)], F32, (2,)),
        ([1, np.float64(2)], F32, (2,)),
        ([np.float16(1), 1.5], "float16", (2,)),
        ([np.float32(1.5), 1.5], F32, (2,)),
        ([np.bool_(True), False], "bool", (2,)),
        ([np.arange(2), np.arange(2)], I32, (2, 2)),
        ([np.arange(2.0)], "float64", (1, 2)),
        ([np.arange(2), [1, 2]], I32, (2, 2)),
        ([np.array(1.5)], "float64", (1,)),
    ],
    ids=lambda value: repr(value)[:24].replace("\n", " "),
)
def test_python_numbers_get_tensorflow_dtypes(tensor: Any, dtype: str, shape: tuple[int, ...]) -> None:
    """Observed with TensorFlow 2.21. test_tensorflow.py compares with the installed version."""
    data = tfseek.serialize_tensor(tensor)
    found = tfseek.parse_tensor(data, dtype)
    assert found.shape == shape
    want = np.array(list(tensor) if isinstance(tensor, range) else tensor).astype(dtype)
    assert found.tobytes() == want.tobytes()


@pytest.mark.parametrize(
    "tensor",
    [
        2**63,
        2**64,
        -(2**63) - 1,
        [2**63],
        [np.uint64(2**63)],
        1e300,
        [1e39],
        [1, 1e39],
        [np.float16(1), 1e300],
        [1.5, 2**200],
        [1.5, 10**400],
        [True, 1],
        [True, 1.5],
        [1, 1j],
        ["a", 1],
        [b"a", 1.5],
        [[1, 2], [3]],
        [1, [2]],
        [[1], 2],
        [[], [1]],
        np.ma.masked_array([1, 2], mask=[False, True]),
        [np.ma.masked_array([1, 2], mask=[False, True])],
        [1, np.ma.masked],
        np.ma.masked,
    ],
    ids=lambda value: repr(value)[:24].replace("\n", " "),
)
def test_values_that_are_not_tensors(tensor: Any) -> None:
    with pytest.raises(ValueError):
        tfseek.serialize_tensor(tensor)


def test_masked_arrays_without_masked_values_are_arrays() -> None:
    whole = np.ma.masked_array([1, 2], mask=[False, False])
    assert tfseek.serialize_tensor(whole) == tfseek.serialize_tensor(np.array([1, 2]))


def test_strings_of_lists_keep_their_zeros() -> None:
    strings: list[Any] = [b"a\0", "b"]
    found = tfseek.parse_tensor(tfseek.serialize_tensor(strings), "string")
    assert found.tolist() == [b"a\0", b"b"]


def test_dtype_names() -> None:
    for dtype, names in (
        (np.float16, ["half", "float16"]),
        (np.float32, ["float", "float32", float]),
        (np.float64, ["double", "float64"]),
        (np.bool_, ["bool", bool]),
    ):
        data = tfseek.serialize_tensor(np.ones(2, dtype))
        for name in names:
            assert tfseek.parse_tensor(data, name).dtype == dtype
    with pytest.raises(tfseek.DataError):
        tfseek.parse_tensor(tfseek.serialize_tensor(1.5), "double")


def test_bfloat16() -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes")
    array = np.array([1.5, -2, 0.1], dtype=ml_dtypes.bfloat16)
    data = tfseek.serialize_tensor(array)
    for name in ("bfloat16", ml_dtypes.bfloat16, array.dtype):
        found = tfseek.parse_tensor(data, name)
        assert found.dtype == array.dtype and found.tobytes() == array.tobytes()


@pytest.mark.parametrize("data", [b"", b"\x08", b"\x08\x01\x12\x04\x12\x02\x08\x02\x22\x04\x00\x3c\x00\xc0"])
def test_bytes_that_are_not_tensors(data: bytes) -> None:
    with pytest.raises(tfseek.DataError):
        tfseek.parse_tensor(data, "float32")


def test_invalid_dtypes() -> None:
    for bad in (np.datetime64("2020-01-01"), np.array([1, None], dtype=object)):
        with pytest.raises(TypeError):
            tfseek.serialize_tensor(bad)
    wrong: Any
    for wrong in ("x", np.dtype("datetime64[s]")):
        with pytest.raises(TypeError):
            tfseek.parse_tensor(b"", wrong)
    with pytest.raises(tfseek.DataError, match="expected a tensor of int64, found float32"):
        tfseek.parse_tensor(tfseek.serialize_tensor(np.float32(1)), "int64")
