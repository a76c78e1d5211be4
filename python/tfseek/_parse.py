"""Serialized records to arrays: the functions of ``tf.io`` under their names."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Optional, Union

from ._features import Features, schema_of, sequence_schema_of
from ._tfseek import Example, SequenceExample

Payload = Union[bytes, bytearray, Example, SequenceExample]


def parse_example(payloads: Iterable[Payload], features: Features, *, bytes_as: str = "objects") -> dict[str, Any]:
    """Serialized Examples to a dict of columns, as ``tf.io.parse_example`` makes them.

    ``payloads`` are ``bytes`` or records of a dataset, ``features`` a dict of specs or a :class:`tfseek.Schema`.

    A column is a read-only array (``[rows] + shape``) for ``FixedLenFeature`` and ``FixedLenSequenceFeature``, a
    :class:`tfseek.Sparse` for ``VarLenFeature`` and ``SparseFeature``, a :class:`tfseek.Ragged` for ``RaggedFeature``. dtypes are int64
    and float32; byte strings are object arrays of ``bytes``, or with ``bytes_as="offsets"`` a :class:`tfseek.Bytes`.

    Raises :class:`tfseek.DataError` for the lowest row that is bad, with ``.row``, ``.feature`` and ``.category``, and
    :class:`tfseek.SpecError`. ``docs/parsing.md`` says what is different from TensorFlow, and why.
    """
    found: dict[str, Any] = schema_of(features)._parse(payloads, False, False, bytes_as)
    return found


def parse_single_example(payload: Payload, features: Features, *, bytes_as: str = "objects") -> dict[str, Any]:
    """One serialized Example to a dict of columns without the dimension of the rows, as ``tf.io.parse_single_example``.

    The rest is as in :func:`parse_example`.
    """
    found: dict[str, Any] = schema_of(features)._parse(payload, False, True, bytes_as)
    return found


def parse_sequence_example(
    payloads: Iterable[Payload],
    context_features: Optional[Features] = None,
    sequence_features: Optional[Features] = None,
    *,
    bytes_as: str = "objects",
) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    """Serialized SequenceExamples to ``(context, sequence, lengths)``, as ``tf.io.parse_sequence_example``: dicts of columns, and of
    how many steps each record has in the dense ones (int64, ``[rows]``). A :class:`tfseek.Schema` may stand for both features.

    The rest is as in :func:`parse_example`; errors in a feature list have ``.step`` too.
    """
    schema = sequence_schema_of(context_features, sequence_features)
    found: tuple[dict[str, Any], dict[str, Any], dict[str, Any]] = schema._parse(payloads, True, False, bytes_as)
    return found


def parse_single_sequence_example(
    payload: Payload,
    context_features: Optional[Features] = None,
    sequence_features: Optional[Features] = None,
    *,
    bytes_as: str = "objects",
) -> tuple[dict[str, Any], dict[str, Any]]:
    """One serialized SequenceExample to ``(context, sequence)``, as ``tf.io.parse_single_sequence_example``."""
    schema = sequence_schema_of(context_features, sequence_features)
    found: tuple[dict[str, Any], dict[str, Any]] = schema._parse(payload, True, True, bytes_as)
    return found
