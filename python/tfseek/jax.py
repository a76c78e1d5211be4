"""Batches as arrays of JAX, also divided over the devices of several processes.

Only ``import tfseek.jax`` imports jax.
"""

from __future__ import annotations

from typing import Any, Optional

import jax
import numpy as np

from ._columns import Bytes, Column, Ragged, Sparse

__all__ = ["as_arrays"]


def as_arrays(batch: Any, sharding: Optional[jax.sharding.Sharding] = None) -> Any:
    """Converts the arrays of a batch to arrays of JAX.

    ``batch`` comes from :class:`tfseek.Loader` or from the functions ``parse_...``. Dicts, tuples, :class:`tfseek.Sparse`,
    :class:`tfseek.Ragged` and :class:`tfseek.Column` keep their types, with JAX arrays as parts. Byte strings are not converted, because JAX has no
    such type.

    sharding: how the rows of all processes together are divided over devices, for example ``NamedSharding(mesh, PartitionSpec("batch"))``. Each process
        passes its own rows (``rank=jax.process_index()``, ``world_size=jax.process_count()``), and the arrays have the rows of all processes. Ragged and
        sparse columns are not divided into rows of equal size, so they raise :class:`TypeError`: :meth:`tfseek.Ragged.to_padded` and
        :meth:`tfseek.Sparse.to_dense` make them dense.

    Without ``jax_enable_x64`` JAX has no types of 64 bits. Integers become those of 32 bits, and :class:`OverflowError` tells if one does not fit. Call it
    as ``transform`` of a loader with ``transform_threads=1``: the transfer to a device then overlaps with the step before.
    """
    return _arrays(batch, sharding, "")


def _arrays(value: Any, sharding: Any, name: str) -> Any:
    if isinstance(value, np.ndarray):
        return value if value.dtype.kind in "OSU" else _array(value, sharding, name)
    if isinstance(value, dict):
        return {key: _arrays(column, sharding, key) for key, column in value.items()}
    if isinstance(value, tuple) and not isinstance(value, (Ragged, Sparse, Column, Bytes)):
        return tuple(_arrays(part, sharding, name) for part in value)
    if isinstance(value, list):
        if sharding is not None:
            raise TypeError(f"column {name!r}: expected a dense column for a sharding, found a list: give the pictures a size")
        return [_arrays(part, sharding, name) for part in value]
    if isinstance(value, Bytes):
        return value
    if isinstance(value, (Ragged, Sparse)) and sharding is not None:
        method = "to_padded" if isinstance(value, Ragged) else "to_dense"
        kind = type(value).__name__
        raise TypeError(f"column {name!r}: expected a dense column for a sharding, found tfseek.{kind}: use its {method}()")
    if isinstance(value, (Ragged, Sparse, Column)):
        return value._map(lambda part: _arrays(part, sharding, name))
    return value


def _array(array: np.ndarray[Any, Any], sharding: Any, name: str) -> jax.Array:
    dtype = jax.dtypes.canonicalize_dtype(array.dtype)
    if array.dtype.kind in "iu" and dtype != array.dtype and array.size:
        limits = np.iinfo(dtype)
        low, high = array.min(), array.max()
        if low < limits.min or high > limits.max:
            found = low if low < limits.min else high
            raise OverflowError(
                f"column {name!r}: expected numbers of {dtype.name}, found {found}: set jax_enable_x64, or convert the column before"
            )
    if sharding is None:
        return jax.device_put(array)
    return jax.make_array_from_process_local_data(sharding, array)
