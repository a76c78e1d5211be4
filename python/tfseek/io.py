"""Functions and classes of ``tf.io`` for records, with TensorFlow's names and the sequence of its arguments.

>>> with tfseek.io.TFRecordWriter("out.tfrecord") as writer:
...     writer.write(example.SerializeToString())

:mod:`tfseek` itself has more options: :class:`tfseek.Writer`, :func:`tfseek.stream`, :func:`tfseek.parse_example`.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Optional, Union

import numpy.typing as npt

from . import _parse, _tensor
from ._choices import Compression, StreamCompression
from ._errors import Error
from ._features import (
    Features, FixedLenFeature, FixedLenSequenceFeature, RaggedFeature, SparseFeature, VarLenFeature,
)
from ._parse import Payload
from ._stream import stream
from ._tfseek import Example, SequenceExample, Writer

__all__ = [
    "FixedLenFeature",
    "FixedLenSequenceFeature",
    "RaggedFeature",
    "SparseFeature",
    "TFRecordCompressionType",
    "TFRecordOptions",
    "TFRecordWriter",
    "VarLenFeature",
    "parse_example",
    "parse_sequence_example",
    "parse_single_example",
    "parse_single_sequence_example",
    "parse_tensor",
    "serialize_tensor",
    "tf_record_iterator",
]


class TFRecordCompressionType:
    """The kinds of compression."""

    NONE = 0
    ZLIB = 1
    GZIP = 2


_COMPRESSION: dict[Any, Optional[Compression]] = {
    None: None,
    "": None,
    "ZLIB": "zlib",
    "GZIP": "gzip",
    TFRecordCompressionType.NONE: None,
    TFRecordCompressionType.ZLIB: "zlib",
    TFRecordCompressionType.GZIP: "gzip",
}


class TFRecordOptions:
    """Options of a file: ``compression_type`` is ``"GZIP"``, ``"ZLIB"``, ``""`` or ``None``, and ``compression_level`` 0 to 9.

    Sizes of buffers have no effect. The other options of zlib are refused.
    """

    def __init__(
        self,
        compression_type: Union[str, int, TFRecordOptions, None] = None,
        flush_mode: None = None,
        input_buffer_size: Optional[int] = None,
        output_buffer_size: Optional[int] = None,
        window_bits: None = None,
        compression_level: Optional[int] = None,
        compression_method: None = None,
        mem_level: None = None,
        compression_strategy: None = None,
    ) -> None:
        if isinstance(compression_type, TFRecordOptions):
            compression_type = compression_type.compression_type
        if compression_type not in _COMPRESSION:
            raise ValueError(f"compression_type: expected 'GZIP', 'ZLIB' or '', found {compression_type!r}")
        options = (
            ("flush_mode", flush_mode),
            ("window_bits", window_bits),
            ("compression_method", compression_method),
            ("mem_level", mem_level),
            ("compression_strategy", compression_strategy),
        )
        for name, value in options:
            if value is not None:
                raise ValueError(f"{name}: expected None, found {value!r}")
        self.compression_type: Union[str, int, None] = compression_type
        self.compression_level = compression_level

    @classmethod
    def get_compression_type_string(cls, options: Union[TFRecordOptions, str, int, None]) -> str:
        """Returns ``"GZIP"``, ``"ZLIB"`` or ``""``."""
        found = _COMPRESSION[cls(options).compression_type]
        return "" if found is None else found.upper()


Options = Union[TFRecordOptions, str, None]


def _options(options: Options) -> TFRecordOptions:
    return options if isinstance(options, TFRecordOptions) else TFRecordOptions(options)


class TFRecordWriter:
    """Writes records to a file, which appears when the writer is closed. A file is not written if a ``with`` block ends with an exception.

    ``options`` is a :class:`TFRecordOptions` or a kind of compression. :class:`tfseek.Writer` has more options.
    """

    def __init__(self, path: Union[str, os.PathLike[str]], options: Options = None) -> None:
        self._open = False
        found = _options(options)
        compression = _COMPRESSION[found.compression_type]
        level = found.compression_level if compression else None
        self._path = os.fspath(path)
        self._writer = Writer(self._path, compression=compression, level=level)
        self._pid = os.getpid()
        self._open = True

    def write(self, record: Union[bytes, bytearray, Example, SequenceExample, Mapping[Any, Any]]) -> None:
        """Writes the bytes of a record."""
        self._writer.write(record)

    def flush(self) -> None:
        """Does nothing while the writer is open: the records are in the file when it is closed."""
        if not self._open:
            raise Error("the writer is closed")

    def close(self) -> None:
        """Completes the file. Closing again does nothing."""
        self._open = False
        self._writer.close()

    def __enter__(self) -> TFRecordWriter:
        return self

    def __exit__(self, *raised: object) -> None:
        self._open = False
        self._writer.__exit__(*raised)

    def __del__(self) -> None:
        # As in TensorFlow, records of a writer that was never closed are not lost. A forked child does not own the file.
        if self._open and self._pid == os.getpid():
            warnings.warn(f"unclosed writer of {self._path}", ResourceWarning, stacklevel=2, source=self)
            self.close()


def tf_record_iterator(path: Union[str, os.PathLike[str]], options: Options = None) -> Iterator[bytes]:
    """Returns an iterator over the records of a file. Without ``options`` the compression is detected. It repeats its error."""
    compression: StreamCompression = "auto" if options is None else _COMPRESSION[_options(options).compression_type] or "none"
    return _RecordIterator(stream(path, kind="bytes", compression=compression))


class _RecordIterator:
    """The records of a file. A loop that goes on after an error would take the end for that of the file, so the error is raised again."""

    def __init__(self, records: Iterable[bytes]) -> None:
        self._records = iter(records)
        self._error: Optional[Exception] = None

    def __iter__(self) -> _RecordIterator:
        return self

    def __next__(self) -> bytes:
        if self._error is not None:
            raise self._error
        try:
            return next(self._records)
        except StopIteration:
            raise
        except Exception as e:
            self._error = e
            raise


def parse_example(serialized: Iterable[Payload], features: Features, example_names: Any = None, name: Any = None) -> dict[str, Any]:
    """Parses serialized Examples; see :func:`tfseek.parse_example`. ``example_names`` and ``name`` have no effect."""
    return _parse.parse_example(serialized, features)


def parse_single_example(serialized: Payload, features: Features, example_names: Any = None, name: Any = None) -> dict[str, Any]:
    """Parses a serialized Example; see :func:`tfseek.parse_single_example`. ``example_names`` and ``name`` have no effect."""
    return _parse.parse_single_example(serialized, features)


def parse_sequence_example(
    serialized: Iterable[Payload],
    context_features: Optional[Features] = None,
    sequence_features: Optional[Features] = None,
    example_names: Any = None,
    name: Any = None,
) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    """Parses serialized SequenceExamples; see :func:`tfseek.parse_sequence_example`. ``example_names`` and ``name`` have no effect."""
    return _parse.parse_sequence_example(serialized, context_features, sequence_features)


def parse_single_sequence_example(
    serialized: Payload,
    context_features: Optional[Features] = None,
    sequence_features: Optional[Features] = None,
    example_name: Any = None,
    name: Any = None,
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Parses a serialized SequenceExample; see :func:`tfseek.parse_single_sequence_example`. The names have no effect."""
    return _parse.parse_single_sequence_example(serialized, context_features, sequence_features)


def serialize_tensor(tensor: npt.ArrayLike, name: Any = None) -> bytes:
    """Serializes a tensor; see :func:`tfseek.serialize_tensor`. ``name`` has no effect."""
    return _tensor.serialize_tensor(tensor)


def parse_tensor(serialized: Union[bytes, bytearray], out_type: Any, name: Any = None) -> npt.NDArray[Any]:
    """Parses the bytes of a tensor; see :func:`tfseek.parse_tensor`. ``name`` has no effect."""
    return _tensor.parse_tensor(serialized, out_type)
