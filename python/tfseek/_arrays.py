"""What columns are, other than arrays."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt


def unmasked(value: Any, what: str) -> None:
    """Refuses masked values, whose mask ``numpy.asarray`` drops without a word, in an array or in lists of them."""
    if isinstance(value, np.ma.MaskedArray) and np.ma.is_masked(value):
        raise ValueError(f"{what}: masked values are not taken, found {int(np.ma.getmaskarray(value).sum())}: fill them or leave them out")
    if isinstance(value, (list, tuple)):
        for item in value:
            if isinstance(item, (list, tuple, np.ma.MaskedArray)):
                unmasked(item, what)


class Sparse(NamedTuple):
    """Values and where they stand, as ``tf.SparseTensor``: value ``k`` is at ``indices[k]``."""

    #: int64, of shape ``[n, rank]``
    indices: npt.NDArray[np.int64]
    #: of shape ``[n]``
    values: Any
    #: int64, of shape ``[rank]``
    dense_shape: npt.NDArray[np.int64]


class Ragged(NamedTuple):
    """Rows of different lengths, as ``tf.RaggedTensor``: row ``r`` of the outermost dimension is
    ``row_splits[0][r]:row_splits[0][r + 1]`` of the next one, or of ``values``.
    """

    values: Any
    #: one array for each ragged dimension, outermost first; int32 or int64 as the spec says
    row_splits: tuple[npt.NDArray[Any], ...]


class Column(NamedTuple):
    """One feature's value for each record: :meth:`Dataset.column`."""

    #: int64, float32 or, of byte strings, objects; where there is no value 0, or ``None`` among objects
    values: npt.NDArray[Any]
    #: bool: whether the record has a value
    present: npt.NDArray[np.bool_]


class Bytes(NamedTuple):
    """Byte strings one behind the other, row-major: string ``k`` is ``data[offsets[k]:offsets[k + 1]]``."""

    data: npt.NDArray[np.uint8]
    offsets: npt.NDArray[np.int64]
