"""Parsing of serialized records to arrays, with the function names of ``tf.io``."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Optional, Union

from ._choices import BytesAs
from ._features import Features, schema_of, sequence_schema_of
from ._tfseek import Example, SequenceExample

Payload = Union[bytes, bytearray, Example, SequenceExample]


def parse_example(payloads: Iterable[Payload], features: Features, *, bytes_as: BytesAs = "objects", seed: int = 0) -> dict[str, Any]:
    """Parses serialized Examples to a dict of columns, as ``tf.io.parse_example`` does.

    ``payloads`` are ``bytes`` or records of a dataset. ``features`` is a dict of specs or a :class:`tfseek.Schema`.

    A column is a read-only array (``[rows] + shape``) for ``FixedLenFeature`` and ``FixedLenSequenceFeature``, a
    :class:`tfseek.Sparse` for ``VarLenFeature`` and ``SparseFeature``, a :class:`tfseek.Ragged` for ``RaggedFeature``. For
    :class:`tfseek.Optional` it is a :class:`tfseek.Column`, or an array if there is a default. Dtypes are int64 and float32, and those of
    :class:`tfseek.Raw` and :class:`tfseek.Tensor`.

    bytes_as: form of byte strings. ``"objects"``: an object array of ``bytes``; values that repeat may be the same object. ``"str"``: an
        object array of ``str``, from UTF-8. ``"offsets"``: :class:`tfseek.Bytes`. ``"views"``: an object array of read-only uint8 arrays
        over the memory of the records, without a copy; each keeps that memory alive. ``"S"``: NumPy's strings of fixed width, as long as
        the longest value of the column; a value that ends with a NUL is a :class:`tfseek.DataError`.
    seed: what is random in a :class:`tfseek.Image` is drawn from it and the place of the record among ``payloads``.

    Raises :class:`tfseek.DataError` for the first invalid row, with ``.row``, ``.feature`` and ``.category``, and
    :class:`tfseek.SpecError`. The page "parsing" of the documentation lists the differences from TensorFlow and their reasons.
    """
    columns: dict[str, Any] = schema_of(features)._parse(payloads, False, False, bytes_as, None, (seed, 0))
    return columns


def parse_single_example(payload: Payload, features: Features, *, bytes_as: BytesAs = "objects", seed: int = 0) -> dict[str, Any]:
    """Parses one serialized Example to a dict of columns without the row dimension, as ``tf.io.parse_single_example`` does.

    See :func:`parse_example` for columns and errors. A column of one byte string is that string: ``bytes``, or ``str`` with ``bytes_as="str"``.
    """
    columns: dict[str, Any] = schema_of(features)._parse(payload, False, True, bytes_as, None, (seed, 0))
    return columns


def parse_sequence_example(
    payloads: Iterable[Payload],
    context_features: Optional[Features] = None,
    sequence_features: Optional[Features] = None,
    *,
    bytes_as: BytesAs = "objects",
    seed: int = 0,
) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    """Parses serialized SequenceExamples to ``(context, sequence, lengths)``, as ``tf.io.parse_sequence_example`` does.

    ``context`` and ``sequence`` are dicts of columns. ``lengths`` has the number of steps of each record for each dense column of
    ``sequence`` (int64, ``[rows]``). One :class:`tfseek.Schema` can replace both arguments.

    See :func:`parse_example` for columns and errors. Errors in a feature list also have ``.step``.
    """
    schema = sequence_schema_of(context_features, sequence_features)
    parsed: tuple[dict[str, Any], dict[str, Any], dict[str, Any]] = schema._parse(payloads, True, False, bytes_as, None, (seed, 0))
    return parsed


def parse_single_sequence_example(
    payload: Payload,
    context_features: Optional[Features] = None,
    sequence_features: Optional[Features] = None,
    *,
    bytes_as: BytesAs = "objects",
    seed: int = 0,
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Parses one serialized SequenceExample to ``(context, sequence)``, as ``tf.io.parse_single_sequence_example`` does."""
    schema = sequence_schema_of(context_features, sequence_features)
    parsed: tuple[dict[str, Any], dict[str, Any]] = schema._parse(payload, True, True, bytes_as, None, (seed, 0))
    return parsed
