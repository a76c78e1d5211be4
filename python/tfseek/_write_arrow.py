"""``tfseek.write``: tables, data frames and streams of record batches written as records."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Optional, Union, overload

import numpy as np

from . import _tfds, _tfseek
from ._choices import Compression, Float64
from ._progress import Progress

#: What states the features of a data set of TensorFlow Datasets: its folder, or the opened data set.
FeaturesOf = Union[str, "os.PathLike[str]", _tfds.Builder, _tfds.Dataset]


@dataclass(frozen=True)
class WrittenSet:
    """A file or a set of shards that :func:`tfseek.write` wrote."""

    #: path as :func:`tfseek.open` takes it: ``out/train@8.tfrecord``, or the path of the file
    path: str
    #: paths of the files
    shards: list[str]
    #: number of records
    records: int
    #: size of the files in bytes
    bytes: int


@overload
def write(
    stream: Any,
    out: Union[str, "os.PathLike[str]"],
    *,
    shards: Optional[Union[int, str]] = None,
    feature_lists: Union[str, Iterable[str]] = (),
    rename: Optional[Mapping[str, str]] = None,
    float64: Float64 = "exact",
    compression: Optional[Compression] = None,
    members: Optional[Union[int, str]] = None,
    index: bool = False,
    rows: Optional[int] = None,
    force: bool = False,
    features: None = None,
    progress: Progress = None,
) -> WrittenSet: ...
@overload
def write(
    stream: Mapping[str, Any],
    out: Union[str, "os.PathLike[str]"],
    *,
    shards: Optional[Union[int, str]] = None,
    float64: Float64 = "exact",
    index: bool = False,
    features: FeaturesOf,
    progress: Progress = None,
) -> dict[str, WrittenSet]: ...
def write(
    stream: Any,
    out: Union[str, "os.PathLike[str]"],
    *,
    shards: Optional[Union[int, str]] = None,
    feature_lists: Union[str, Iterable[str]] = (),
    rename: Optional[Mapping[str, str]] = None,
    float64: Float64 = "exact",
    compression: Optional[Compression] = None,
    members: Optional[Union[int, str]] = None,
    index: bool = False,
    rows: Optional[int] = None,
    force: bool = False,
    features: Optional[FeaturesOf] = None,
    progress: Progress = None,
) -> Union[WrittenSet, dict[str, WrittenSet]]:
    """Writes the rows of a table, a data frame or a stream as Examples, in their order.

    ``stream`` is any object with the method ``__arrow_c_stream__``: a table or a reader of PyArrow, a data frame of Polars or pandas, a
    relation of DuckDB, a :class:`tfseek.Scan`. ``out`` is a file (``small.tfrecord``) or a set (``out/train@8.tfrecord``). All files get
    their names when all are complete; after an exception or an interrupt there is none.

    Each column is a feature with its name. A null is an absent feature, and an empty list a feature without values. Integers and booleans
    become int64, floats float, text and byte strings bytes. Lists and tensors of fixed shape are flattened, dictionaries are looked up. Of a struct,
    or a list of structs, in a table or a reader of PyArrow each field is a feature ``column/field``, of a list with a value for each item. A value that
    would change is an error: an integer above 2^63 - 1, and a float64 that float32 does not have exactly (``float64``). So are a null inside
    a list, and columns of other types, for example times.

    With ``features``, ``stream`` is a dict of streams, the splits, and ``out`` becomes the folder of a data set that TensorFlow Datasets and :func:`tfseek.tfds.open` read. Its
    features and its description are those of another data set: an opened one, or its folder. Columns are those of :meth:`tfseek.tfds.Dataset.scan`: structs for dicts, lists for
    sequences and shapes, names or numbers for labels, and the bytes of files for pictures. ``out`` is new or empty, and may end in a number of shards of each
    split (``new/mnist/3.0.1@8``). The result is a dict of the splits. The options ``shards``, ``float64``, ``index`` and ``progress`` have their meaning; others are refused.

    shards: the number of shards, or their size as text (``"200MB"``), for ``out`` without a number. Shards have equal numbers of records, or
        about equal sizes.
    feature_lists: columns of lists that become feature lists, with a step for each item. The records are then SequenceExamples.
    rename: other names for the features of columns.
    float64: ``"round"`` stores the nearest float32 of each number of float64 columns. One that would become infinite stays an error.
    compression, members, index, force: as for :func:`tfseek.reshard`.
    rows: the number of rows, if you know it. Tables and data frames state it. Otherwise records of several shards are first copied to a temporary
        file in the same folder, which needs the space of the data a second time.
    progress: display of the records written; :func:`tfseek.open` describes it.

    Raises :class:`TypeError` for an object without a stream, :class:`tfseek.SpecError` for a column that cannot be written,
    :class:`tfseek.DataError` for a value, with ``row`` and ``feature``, :class:`tfseek.Error` for an existing output and for an error of the
    stream, and :class:`ValueError` for invalid arguments.
    """
    # The first statement: the local variables are the arguments.
    arguments = dict(locals())
    arguments.update(out=os.fspath(out), index=bool(index), force=bool(force))
    if features is not None:
        for name, given in (("feature_lists", feature_lists), ("rename", rename), ("rows", rows is not None)):
            if given:
                raise ValueError(f"{name}: expected no such option with features=, found one")
        return _write_splits(stream, features, arguments, progress)
    if isinstance(stream, Mapping):
        found = type(stream).__name__
        raise TypeError(f"stream: expected an object with the method __arrow_c_stream__, or features= with a dict of splits, found {found}")
    arguments.update(encoding(feature_lists, rename, float64), rows=known_rows(stream) if rows is None else rows)
    return WrittenSet(*_tfseek.write_stream(fields_as_columns(stream), arguments, progress))


def _write_splits(splits: Any, features: FeaturesOf, arguments: dict[str, Any], progress: Progress) -> dict[str, WrittenSet]:
    """Writes a data set of TensorFlow Datasets."""
    if not isinstance(splits, Mapping) or not all(isinstance(name, str) for name in splits):
        raise TypeError(f"stream: expected a dict of streams such as {{'train': table}} with features=, found {type(splits).__name__}")
    folder = features.folder if isinstance(features, (_tfds.Builder, _tfds.Dataset)) else os.fspath(features)
    streams = [(name, stream, known_rows(stream)) for name, stream in splits.items()]
    written = _tfseek.write_data_set(streams, os.path.expanduser(folder), arguments, progress)
    return {name: WrittenSet(*part) for name, part in zip(splits, written)}


def encoding(feature_lists: Union[str, Iterable[str]] = (), rename: Optional[Mapping[str, str]] = None, float64: Float64 = "exact") -> dict[str, Any]:
    """Returns the arguments of an encoder."""
    return {
        "feature_lists": [feature_lists] if isinstance(feature_lists, str) else list(feature_lists),
        "rename": list((rename or {}).items()),
        "float64": float64,
    }


def fields_as_columns(stream: Any) -> Any:
    """Returns a reader of PyArrow with a column for each field of structs and lists of structs. Anything without them is returned as it is."""
    pa: Any = sys.modules.get("pyarrow")
    if pa is None or not isinstance(stream, (pa.Table, pa.RecordBatch, pa.RecordBatchReader)):
        return stream

    def flat(batch: Any) -> Any:
        names, arrays = zip(*(part for name, values in zip(batch.schema.names, batch.columns) for part in _fields(name, values)))
        return pa.RecordBatch.from_arrays(list(arrays), names, metadata=batch.schema.metadata)

    schema = stream.schema
    if not any(pa.types.is_struct(getattr(kind, "value_type", kind)) for kind in schema.types):
        return stream
    batches = [stream] if isinstance(stream, pa.RecordBatch) else stream.to_batches() if isinstance(stream, pa.Table) else stream
    return pa.RecordBatchReader.from_batches(flat(pa.RecordBatch.from_pylist([], schema)).schema, map(flat, batches))


def _fields(name: str, values: Any) -> Iterator[tuple[str, Any]]:
    """Yields an array with its name, or those of its fields."""
    import pyarrow as pa
    import pyarrow.compute as pc

    kind = getattr(values.type, "value_type", values.type)
    if not pa.types.is_struct(kind) or kind.num_fields == 0:
        yield name, values
        return
    parts = values.flatten()
    if not pa.types.is_struct(values.type):
        lengths = pc.list_value_length(values)  # pyright: ignore[reportAttributeAccessIssue]
        ends = np.cumsum(pc.fill_null(lengths, 0), dtype=np.int64)
        # A list without an offset is null.
        offsets = pa.array(np.append(0, ends), mask=np.append(values.is_null(), False))
        parts = [pa.LargeListArray.from_arrays(offsets, part) for part in parts.flatten()]
    for field, part in zip(kind, parts):
        yield from _fields(f"{name}/{field.name}", part)


def known_rows(stream: Any) -> Optional[int]:
    """Returns the number of rows of a table or a data frame. A relation would have to be executed for it.

    The attributes are looked up in the type, because a relation has attributes with the names of its columns.
    """
    if hasattr(type(stream), "iloc"):
        return len(stream)
    for name in ("num_rows", "height"):
        if hasattr(type(stream), name):
            count = getattr(stream, name)
            return count if isinstance(count, int) else None
    return None
