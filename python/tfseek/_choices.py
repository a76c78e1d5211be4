"""The values of options, for type checkers. The native module refuses other values."""

from __future__ import annotations

from typing import Any, Literal, Protocol, Union

IndexMode = Literal["auto", "require", "memory", "rebuild"]
Verify = Literal["payload", "header", "none"]
LoaderVerify = Literal["payload", "header", "first_epoch", "none"]
Io = Literal["auto", "map", "pread"]
Kind = Literal["auto", "example", "sequence_example", "bytes"]
Tail = Literal["strict", "tolerate"]
Damage = Literal["raise", "skip"]
Compression = Literal["none", "gzip", "zlib", "", "NONE", "GZIP", "ZLIB"]
StreamCompression = Literal["auto", "none", "gzip", "zlib", "", "NONE", "GZIP", "ZLIB"]
#: The form of byte strings in batches.
BytesAs = Literal["objects", "str", "offsets", "views", "S"]
#: The form of byte strings in Arrow's columns.
ArrowBytes = Literal["auto", "view", "copy"]
Tensors = Literal["lists", "extension"]
Labels = Literal["names", "numbers"]
Shuffle = Union[bool, Literal["global", "block"]]
LastBatch = Literal["short", "pad", "drop", "continuous"]
MissingValue = Literal["default", "none"]
Resize = Literal["bilinear", "area"]
Crop = Literal["center", "random_resized"]
Layout = Literal["hwc", "chw"]
Float64 = Literal["exact", "round"]
Rounding = Literal["closest", "pct1_dropremainder"]
Pad = Literal["repeat", "zero", "none"]
Nan = Literal["raise", "skip"]
StatisticsStyle = Literal["openvla", "octo"]
MixBy = Literal["weight", "size"]
MixUnit = Literal["row", "batch"]
MixStop = Literal["never", "first", "all"]


class NamedDType(Protocol):
    """A dtype of NumPy or TensorFlow."""

    @property
    def name(self) -> str: ...


#: The dtype of a feature.
DType = Union[Literal["int64", "int", "float32", "float", "string", "bytes", "byte", "str", "object"], type[Any], NamedDType]
#: The dtype of stored values.
StoredDType = Literal["int64", "float32", "string"]
#: The dtype of row splits.
SplitsDType = Union[Literal["int32", "int64"], type[Any], NamedDType]
#: The dtype of an array in a byte string, by its name or its code.
ArrayDType = Union[
    Literal[
        "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float", "float16", "float32", "float64", "bfloat16",
        "complex64", "complex128", "?", "b1", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", "c8", "c16", "|b1", "|i1", "|u1",
        "<i2", "<i4", "<i8", "<u2", "<u4", "<u8", "<f2", "<f4", "<f8", "<c8", "<c16", ">i2", ">i4", ">i8", ">u2", ">u4", ">u8", ">f2", ">f4",
        ">f8", ">c8", ">c16",
    ],
    type[Any],
    NamedDType,
]
