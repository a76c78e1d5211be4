"""Columns that are not plain arrays: rows of different lengths, values with indices, byte strings, values that may be missing.

Their parts are arrays of NumPy, or tensors and arrays made from these. ``len`` is the number of rows, and iteration yields rows.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence
from sys import modules
from typing import Any, Optional, Union

import numpy as np

from . import _tfseek

#: Number of rows, and of values of a row, in a ``repr``.
_ROWS, _VALUES = 4, 6

_jax_pending = True


class _Parts:
    """The parts of a column. Subclasses name them in ``_names``, in the order of the constructor's arguments."""

    __slots__ = ()
    _names: tuple[str, ...] = ()

    def to_list(self) -> Any:
        raise NotImplementedError

    def parts(self) -> tuple[Any, ...]:
        """Returns the parts as a tuple, in the order of the constructor's arguments."""
        return tuple(getattr(self, name) for name in self._names)

    def _map(self, function: Callable[[Any], Any]) -> Any:
        """Returns a column of the same class, with the results of ``function`` for each array."""
        return type(self)(*(_mapped(function, part) for part in self.parts()))

    def to(self, *args: Any, **kwargs: Any) -> Any:
        """Returns a column with ``part.to(*args, **kwargs)`` for each tensor, for example on another device."""
        return self._map(lambda part: part.to(*args, **kwargs) if hasattr(part, "to") else part)

    def pin_memory(self, *args: Any) -> Any:
        """Returns a column with each tensor in pinned memory. A ``DataLoader`` with ``pin_memory=True`` calls it."""
        return self._map(lambda part: part.pin_memory(*args) if hasattr(part, "pin_memory") else part)

    def _row(self, i: Any) -> int:
        """Returns a row number from 0."""
        n, row = len(self), operator.index(i)  # type: ignore[arg-type]
        if not -n <= row < n:
            raise IndexError(f"row {row}: expected a row number below {n}, or from {-n} to -1")
        return row + n if row < 0 else row

    def _span(self, rows: slice) -> tuple[int, int]:
        """Returns start and end of a slice of adjacent rows."""
        start, stop, step = rows.indices(len(self))  # type: ignore[arg-type]
        if step != 1:
            raise IndexError(f"expected a slice of adjacent rows, found step {step}")
        return start, max(start, stop)


class Ragged(_Parts):
    """Rows of different lengths, like ``tf.RaggedTensor``.

    ``len`` is the number of rows. ``column[i]`` is row ``i``: an array, or a ``Ragged`` if its rows are ragged too. ``column[a:b]`` is a
    ``Ragged`` of adjacent rows. Rows share the memory of ``values``.

    values: the values of all rows, of shape ``[n, ..]``.
    row_splits: one array per ragged dimension, outermost first; int32 or int64, as in the spec. Row ``r`` of the outermost dimension is
        ``row_splits[0][r]:row_splits[0][r + 1]`` of the next one, or of ``values``.
    """

    __slots__ = ("row_splits", "values")
    _names = ("values", "row_splits")
    values: Any
    row_splits: tuple[Any, ...]

    def __init__(self, values: Any, row_splits: Sequence[Any]) -> None:
        self.values = values
        self.row_splits = row_splits if type(row_splits) is tuple else tuple(row_splits)
        if _jax_pending and "jax" in modules:
            _register_with_jax()

    def __len__(self) -> int:
        return len(self.row_splits[0]) - 1

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, slice):
            start, end = self._span(key)
            return self._cut(self.row_splits, start, end)
        row = self._row(key)
        start, end = (int(split) for split in self.row_splits[0][row : row + 2])
        return self._cut(self.row_splits[1:], start, end)

    def _cut(self, row_splits: tuple[Any, ...], start: int, end: int) -> Any:
        """Returns the rows ``start:end`` of the outermost of these dimensions."""
        parts = []
        for splits in row_splits:
            part = splits[start : end + 1]
            start, end = int(part[0]), int(part[-1])
            parts.append(part - part[0])
        values = self.values[start:end]
        return Ragged(values, tuple(parts)) if parts else values

    def __iter__(self) -> Iterator[Any]:
        ends = _list(self.row_splits[0])
        return (self._cut(self.row_splits[1:], start, end) for start, end in zip(ends, ends[1:]))

    def row_lengths(self) -> Any:
        """Returns the length of each row of the outermost dimension."""
        return self.row_splits[0][1:] - self.row_splits[0][:-1]

    def to_list(self) -> list[Any]:
        """Returns the rows as nested lists."""
        rows: list[Any] = _list(self.values)
        for splits in reversed(self.row_splits):
            ends = _list(splits)
            rows = [rows[start:end] for start, end in zip(ends, ends[1:])]
        return rows

    def to_padded(self, length: Union[int, Sequence[Optional[int]], None] = None, value: Any = None) -> tuple[Any, Any]:
        """Returns ``(values, mask)``: a new array of equally long rows, and an array that is true for values and false for padding.

        length: length of the rows, or one length per ragged dimension. Shorter rows are padded, longer rows are cut. ``None``: that of the
            longest row.
        value: the padding. Default: 0, or an empty string.
        """
        values = _array(self.values)
        splits = [np.ascontiguousarray(_array(part)) for part in self.row_splits]
        lengths = [length] if length is None or isinstance(length, (int, np.integer)) else list(length)
        lengths = [None if each is None else _length(each) for each in lengths]
        if len(lengths) > len(splits):
            raise ValueError(f"length: expected at most {len(splits)} lengths, one per ragged dimension, found {len(lengths)}")
        value = _empty(values) if value is None else value
        if values.ndim >= 1 and values.dtype in (np.int64, np.float32):
            inner = int(np.prod(values.shape[1:], dtype=np.int64))
            flat = np.ascontiguousarray(values).reshape(-1)
            padded, mask = _tfseek.pad_rows(flat, inner, splits, lengths, value)
            padded = padded.reshape(mask.shape + values.shape[1:])
        else:
            places, mask = _tfseek.pad_rows(np.arange(len(values)), 1, splits, lengths, -1)
            padded = _with_default(values, value)[places.reshape(mask.shape)]
        return _like(self.values, padded), _like(self.values, mask)

    def to_dense(self, default: Any = None) -> Any:
        """Returns the array of :meth:`to_padded`, with ``default`` as the padding. Default: 0, or an empty string."""
        return self.to_padded(None, default)[0]

    def __repr__(self) -> str:
        return f"Ragged({_rows(self)} {_kind(self.values)}, {_counted(len(self), 'row')})"


class Sparse(_Parts):
    """Values with their indices, like ``tf.SparseTensor``: value ``k`` is at ``indices[k]``.

    ``len`` is the number of rows. ``column[i]`` is the array of the values of row ``i``, in the order of their indices, and ``column[a:b]``
    a ``Sparse`` of adjacent rows. The column of a single record has no rows: its items are those of :meth:`to_dense`.

    indices: int64, of shape ``[n, rank]``. Rows ascend.
    values: of shape ``[n]``.
    dense_shape: int64, of shape ``[rank]``.
    """

    __slots__ = ("dense_shape", "indices", "values")
    _names = ("indices", "values", "dense_shape")
    indices: Any
    values: Any
    dense_shape: Any

    def __init__(self, indices: Any, values: Any, dense_shape: Any) -> None:
        self.indices = indices
        self.values = values
        self.dense_shape = dense_shape
        if _jax_pending and "jax" in modules:
            _register_with_jax()

    def __len__(self) -> int:
        return int(self.dense_shape[0])

    def _ends(self, start: int, end: int) -> list[int]:
        """Returns the first value of each row from ``start`` to ``end``."""
        ends: list[int] = np.searchsorted(_array(self.indices)[:, 0], np.arange(start, end + 1)).tolist()
        return ends

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, slice):
            start, end = self._span(key)
            ends = self._ends(start, end)
            first, last = ends[0], ends[-1]
            indices = _array(self.indices)[first:last].copy()
            indices[:, 0] -= start
            shape = _array(self.dense_shape).copy()
            shape[0] = end - start
            return Sparse(_like(self.indices, indices), self.values[first:last], _like(self.dense_shape, shape))
        row = self._row(key)
        if len(self.dense_shape) == 1:
            return self.to_dense()[row]
        first, last = self._ends(row, row + 1)
        return self.values[first:last]

    def __iter__(self) -> Iterator[Any]:
        if len(self.dense_shape) == 1:
            return iter(self.to_dense())
        ends = self._ends(0, len(self))
        return (self.values[start:end] for start, end in zip(ends, ends[1:]))

    def to_list(self) -> list[Any]:
        """Returns the values of each row as lists. The column of a single record gives one list."""
        if len(self.dense_shape) == 1:
            dense: list[Any] = _list(self.to_dense())
            return dense
        values, ends = _list(self.values), self._ends(0, len(self))
        return [values[start:end] for start, end in zip(ends, ends[1:])]

    def to_dense(self, default: Any = None) -> Any:
        """Returns a new array of the shape ``dense_shape``, with ``default`` at the other indices. Default: 0, or an empty string."""
        values, indices, shape = self._arrays()
        default = _empty(values) if default is None else default
        if values.dtype in (np.int64, np.float32):
            dense = _tfseek.dense_from_sparse(indices, np.ascontiguousarray(values), shape, default)
        else:
            dense = _with_default(values, default)[_tfseek.dense_from_sparse(indices, np.arange(len(values)), shape, -1)]
        return _like(self.values, dense)

    def to_padded(self, length: Optional[int] = None, value: Any = None) -> tuple[Any, Any]:
        """Returns ``(values, mask)``: the array of :meth:`to_dense`, and an array that is true for values and false for padding.

        length: length of the last dimension. Values beyond it are left out. ``None``: as in ``dense_shape``.
        value: the padding. Default: 0, or an empty string.
        """
        values, indices, shape = self._arrays()
        if length is not None:
            shape[-1] = _length(length)
        places = _tfseek.dense_from_sparse(indices, np.arange(len(values)), shape, -1)
        padded = _with_default(values, _empty(values) if value is None else value)[places]
        return _like(self.values, padded), _like(self.values, places >= 0)

    def _arrays(self) -> tuple[Any, Any, list[int]]:
        """Returns values, flat indices and the dense shape."""
        indices = np.ascontiguousarray(_array(self.indices), dtype=np.int64).reshape(-1)
        return _array(self.values), indices, [int(size) for size in self.dense_shape]

    def __repr__(self) -> str:
        shape = [int(size) for size in self.dense_shape]
        return f"Sparse({_rows(self)} {_kind(self.values)}, dense shape {shape})"


class Column(_Parts):
    """One value per row, or none: the column of an :class:`Optional` feature without a default, and of :meth:`Dataset.column`.

    ``len`` is the number of rows. ``column[i]`` is the value of row ``i``, or ``None``. ``column[a:b]`` is a ``Column``. NumPy and pandas
    convert it to an array of its dtype if no value is missing. Otherwise numbers become floats with NaN, and byte strings, as well as integers that
    float64 may not have (beyond 2**53), objects with ``None``.

    values: int64, float32, objects, or strings of fixed width; a missing value is 0, ``None`` in an array of objects, or ``b""``. Of a
        :class:`tfseek.tfds.Dataset` they have any dtype, and may have a shape; a missing value is the one that TFDS uses.
    present: bool; true if the row has a value.
    """

    __slots__ = ("present", "values")
    _names = ("values", "present")
    values: Any
    present: Any

    def __init__(self, values: Any, present: Any) -> None:
        self.values = values
        self.present = present
        if _jax_pending and "jax" in modules:
            _register_with_jax()

    def __len__(self) -> int:
        return len(self.present)

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, slice):
            return Column(self.values[key], self.present[key])
        row = self._row(key)
        return self.values[row] if self.present[row] else None

    def __iter__(self) -> Iterator[Any]:
        return (value if present else None for value, present in zip(self.values, self.present))

    def to_list(self) -> Any:
        """Returns a list with ``None`` for missing values. The column of a single record gives its value."""
        values, present = _list(self.values), _list(self.present)
        if not isinstance(present, list):
            return values if present else None
        return [value if there else None for value, there in zip(values, present)]

    def to_dense(self, default: Any = None) -> Any:
        """Returns a new array with ``default`` for missing values. Default: 0, or an empty string."""
        values, present = _array(self.values), _array(self.present)
        dense = np.array(values)
        dense[~present] = _empty(values[present]) if default is None else default
        return _like(self.values, dense)

    def __array__(self, dtype: Any = None, copy: Optional[bool] = None) -> Any:
        values, present = _array(self.values), _array(self.present)
        if not present.all():
            wanted = None if dtype is None else np.dtype(dtype)
            if wanted is not None and wanted.kind in "biu":
                missing = present.size - int(present.sum())
                raise ValueError(f"expected no missing values for an array of {wanted}, found {missing}: to_dense(default) replaces them")
            is_rounded = values.dtype.kind in "iu" and not _is_exact(values[present])
            if values.dtype.kind in "biufV" and wanted != object and not (is_rounded and wanted is None):
                nan = values.dtype.type("nan") if values.dtype.kind in "fV" else np.nan
                values = np.where(present.reshape(present.shape + (1,) * (values.ndim - present.ndim)), values, nan)
            elif values.dtype.kind in "biufVO":
                values = np.array(values, dtype=object)
                values[~present] = None
        return values.astype(dtype, copy=bool(copy)) if dtype is not None or copy else values

    def __repr__(self) -> str:
        there = int(_array(self.present).sum())
        if np.ndim(self.present) == 0:
            return f"Column({_short(self.to_list())} {_kind(self.values)})"
        return f"Column({_rows(self)} {_kind(self.values)}, {_counted(len(self), 'row')}, {there} present)"


class Bytes(_Parts):
    """Byte strings in one array, concatenated in row-major order: string ``k`` is ``data[offsets[k]:offsets[k + 1]]``.

    ``len`` is the number of rows. ``column[i]`` is row ``i``: ``bytes``, or a ``Bytes`` if a row has several strings. ``column[a:b]`` is a
    ``Bytes`` of adjacent rows.

    data: uint8.
    offsets: int64.
    shape: number of rows, followed by the shape of a row. Default: one string per row.
    """

    __slots__ = ("data", "offsets", "shape")
    _names = ("data", "offsets")
    data: Any
    offsets: Any
    shape: tuple[int, ...]

    def __init__(self, data: Any, offsets: Any, shape: Optional[Sequence[int]] = None) -> None:
        self.data = data
        self.offsets = offsets
        self.shape = (len(offsets) - 1,) if shape is None else tuple(shape)
        if _jax_pending and "jax" in modules:
            _register_with_jax()

    def _map(self, function: Callable[[Any], Any]) -> Any:
        return Bytes(function(self.data), function(self.offsets), self.shape)

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("the column of a single record has no rows")
        return self.shape[0]

    def __getitem__(self, key: Any) -> Any:
        inner = self.shape[1:]
        size = int(np.prod(inner, dtype=np.int64))
        if isinstance(key, slice):
            start, end = self._span(key)
            return Bytes(self.data, self.offsets[start * size : end * size + 1], (end - start, *inner))
        row = self._row(key)
        if inner:
            return Bytes(self.data, self.offsets[row * size : (row + 1) * size + 1], inner)
        start, end = (int(offset) for offset in self.offsets[row : row + 2])
        return _array(self.data[start:end]).tobytes()

    def __iter__(self) -> Iterator[Any]:
        if len(self.shape) == 1:
            return iter(self._strings())
        return (self[row] for row in range(len(self)))

    def _strings(self) -> list[bytes]:
        ends = _list(self.offsets)
        first = ends[0] if ends else 0
        data = _array(self.data[first : ends[-1] if ends else 0]).tobytes()
        return [data[start - first : end - first] for start, end in zip(ends, ends[1:])]

    def to_numpy(self) -> Any:
        """Returns an array of ``bytes`` objects, of the shape ``shape``."""
        array = np.empty(len(self.offsets) - 1, dtype=object)
        array[:] = self._strings()
        return array.reshape(self.shape)

    def to_list(self) -> Any:
        """Returns the rows as lists of ``bytes``, nested as ``shape`` is. The column of a single string gives ``bytes``."""
        return self.to_numpy().tolist()

    def __array__(self, dtype: Any = None, copy: Optional[bool] = None) -> Any:
        array = self.to_numpy()
        return array if dtype is None else array.astype(dtype)

    def __repr__(self) -> str:
        if not self.shape:
            return f"Bytes({_short(self.to_list())})"
        return f"Bytes({_rows(self)}, {_counted(len(self), 'row')})"


def pictures(column: Any, sizes: Sequence[Optional[int]] = (None, None), stored: Any = None) -> Any:
    """Returns the pictures of a column as a list of arrays, which share its memory.

    Its innermost row splits are the dimensions of each array, which ``sizes`` has up to the last open one: by default the lines of a picture, and the pixels
    of a line. The splits around them make lists of lists. Other columns are returned as they are. ``stored`` is a column with the shape of each array,
    which row splits do not have of an array without values.
    """
    if not isinstance(column, Ragged):
        return column
    outer = len(column.row_splits) - len(sizes)
    inner = column.row_splits[outer:]
    ends: Any = np.arange(len(inner[0]))
    known = None
    if stored is not None:
        rank = len(sizes) + column.values.ndim - 1
        known = _array(stored.values if isinstance(stored, Ragged) else stored).reshape(-1, rank)
    shapes = []
    for k, (size, splits) in enumerate(zip(sizes, inner)):
        # The size of the first row is that of all rows. An array without rows has none of it.
        starts = ends[:-1]
        lengths = np.append(np.diff(splits), 0)[starts] * (ends[1:] > starts)
        if size is None and known is not None:
            lengths = known[:, k]
        shapes.append(lengths if size is None else np.full(len(starts), size))
        ends = splits[ends]
    ends = ends.tolist()
    shape = zip(*(lengths.tolist() for lengths in shapes))
    spans = zip(ends, ends[1:], shape)
    rest = column.values.shape[1:]
    arrays = [column.values[start:end].reshape(*own, *rest) for start, end, own in spans]
    for splits in reversed(column.row_splits[:outer]):
        rows = splits.tolist()
        arrays = [arrays[start:end] for start, end in zip(rows, rows[1:])]
    return arrays


def _mapped(function: Callable[[Any], Any], part: Any) -> Any:
    if isinstance(part, tuple):
        return tuple(_mapped(function, item) for item in part)
    return part._map(function) if isinstance(part, _Parts) else function(part)


def _array(part: Any) -> Any:
    """Returns a NumPy array with the values of a part, without a copy if possible."""
    if isinstance(part, np.ndarray):
        return part
    if isinstance(part, Bytes):
        return part.to_numpy()
    if hasattr(part, "detach"):
        part = part.detach().cpu()
    return np.asarray(part)


def _like(part: Any, array: Any) -> Any:
    """Returns an array in the library and on the device of ``part``. Arrays of objects remain in NumPy."""
    if isinstance(part, (np.ndarray, Bytes)) or array.dtype == object:
        return array
    if hasattr(part, "detach"):
        return modules["torch"].from_numpy(array).to(part.device)
    namespace = getattr(part, "__array_namespace__", None)
    return array if namespace is None else namespace().asarray(array)


def _list(part: Any) -> Any:
    """Returns the values of a part as Python objects."""
    return part.to_list() if isinstance(part, _Parts) else part.tolist()


def _length(length: Any) -> int:
    found = operator.index(length)
    if found < 0:
        raise ValueError(f"length: expected 0 or more, found {found}")
    return found


def _is_exact(integers: Any) -> bool:
    """Returns true if float64 has all of these integers."""
    return integers.size == 0 or (int(integers.min()) >= -(2**53) and int(integers.max()) <= 2**53)


def _empty(values: Any) -> Any:
    """Returns 0, or the empty string of the type of ``values``. That of views is in an array, because an array is not one value."""
    if values.dtype != object:
        return b"" if values.dtype.kind == "S" else 0
    if not isinstance(_first(values), np.ndarray):
        return "" if _is_text(values) else b""
    empty = np.empty((), dtype=object)
    empty[()] = np.empty(0, dtype=np.uint8)
    empty[()].setflags(write=False)
    return empty


def _is_text(values: Any) -> bool:
    """Returns true if the first object of an array, other than ``None``, is a ``str``."""
    return isinstance(_first(values), str)


def _first(values: Any) -> Any:
    """Returns the first object of an array, other than ``None``."""
    return next((value for value in values.flat if value is not None), None)


def _with_default(values: Any, default: Any) -> Any:
    """Returns the values followed by ``default``, which is then at index -1."""
    table = np.empty((len(values) + 1, *values.shape[1:]), dtype=values.dtype)
    table[:-1] = values
    table[-1:] = default
    return table


def _kind(values: Any) -> str:
    if isinstance(values, Bytes):
        return "bytes"
    dtype = str(getattr(values, "dtype", type(values).__name__))
    if dtype != "object":
        return dtype.removeprefix("torch.")
    return "str" if _is_text(values) else "bytes"


def _rows(column: Any) -> str:
    """Returns the first rows as text."""
    n = len(column)
    rows = [_short(row if row is None or isinstance(row, (bytes, str)) or _is_view(row) else _list(row)) for row in column[:_ROWS]]
    return "[" + ", ".join(rows) + (", ..]" if n > _ROWS else "]")


def _is_view(value: Any) -> bool:
    """Returns true for a byte string of ``bytes_as="views"``."""
    return isinstance(value, np.ndarray) and value.dtype == np.uint8


def _short(value: Any) -> str:
    if _is_view(value):
        value = value[:41].tobytes()
    if isinstance(value, list):
        return "[" + ", ".join(_short(item) for item in value[:_VALUES]) + (", ..]" if len(value) > _VALUES else "]")
    return f"{value[:40]!r}.." if isinstance(value, (bytes, str)) and len(value) > 40 else repr(value)


def _counted(n: int, unit: str) -> str:
    return f"{n} {unit}" if n == 1 else f"{n} {unit}s"


def _register_with_jax() -> None:
    """Registers the classes as nodes of JAX's trees, once JAX is imported. Then ``jax.tree.map`` maps their parts."""
    global _jax_pending
    tree_util = getattr(modules["jax"], "tree_util", None)
    # JAX may be in the middle of its import.
    if not hasattr(tree_util, "register_pytree_with_keys"):
        return
    _jax_pending = False
    for kind in (Ragged, Sparse, Column, Bytes):
        _register_class(tree_util, kind)


def _register_class(tree_util: Any, kind: Any) -> None:
    def flatten(column: Any) -> tuple[Any, Any]:
        return column.parts(), getattr(column, "shape", None)

    def flatten_with_keys(column: Any) -> tuple[Any, Any]:
        keys = [tree_util.GetAttrKey(name) for name in kind._names]
        return list(zip(keys, column.parts())), getattr(column, "shape", None)

    def unflatten(shape: Any, parts: Any) -> Any:
        return _unflattened(kind, parts, shape)

    tree_util.register_pytree_with_keys(kind, flatten_with_keys, unflatten, flatten)


def _unflattened(kind: Any, parts: Any, shape: Any) -> Any:
    """Returns a column with these parts, of any types: trees may have placeholders for arrays."""
    column = object.__new__(kind)
    for name, part in zip(kind._names, parts):
        setattr(column, name, part)
    if shape is not None:
        column.shape = shape
    return column
