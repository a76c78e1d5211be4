"""Types of columns that are not plain arrays."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt


def unmasked(value: Any, what: str) -> None:
    """Raises ``ValueError`` for masked values in an array or in nested lists, because ``numpy.asarray`` drops masks silently."""
    if isinstance(value, np.ma.MaskedArray) and np.ma.is_masked(value):
        raise ValueError(f"{what}: masked values are not accepted, found {int(np.ma.getmaskarray(value).sum())}: fill or remove them")
    if isinstance(value, (list, tuple)):
        for item in value:
            if isinstance(item, (list, tuple, np.ma.MaskedArray)):
                unmasked(item, what)


class Sparse(NamedTuple):
    """Values with their indices, like ``tf.SparseTensor``: value ``k`` is at ``indices[k]``."""

    #: int64, of shape ``[n, rank]``
    indices: npt.NDArray[np.int64]
    #: of shape ``[n]``
    values: Any
    #: int64, of shape ``[rank]``
    dense_shape: npt.NDArray[np.int64]


class Ragged(NamedTuple):
    """Rows of different lengths, like ``tf.RaggedTensor``: row ``r`` of the outermost dimension is
    ``row_splits[0][r]:row_splits[0][r + 1]`` of the next one, or of ``values``.
    """

    values: Any
    #: one array per ragged dimension, outermost first; int32 or int64, as in the spec
    row_splits: tuple[npt.NDArray[Any], ...]


class Column(NamedTuple):
    """One feature's value for each record, as :meth:`Dataset.column` returns it."""

    #: int64, float32, or an object array of ``bytes``; a missing value is 0, or ``None`` in an object array
    values: npt.NDArray[Any]
    #: bool: true if the record has a value
    present: npt.NDArray[np.bool_]


class Bytes(NamedTuple):
    """Byte strings, concatenated in row-major order: string ``k`` is ``data[offsets[k]:offsets[k + 1]]``."""

    data: npt.NDArray[np.uint8]
    offsets: npt.NDArray[np.int64]
