"""Adapters for Grain and JAX: records by number, and batches of the :class:`tfseek.Loader`.

``import tfseek`` does not import this module. It requires the package ``grain``.
"""

from __future__ import annotations

import json
import operator
import zlib
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Optional, Union, cast

import grain
import numpy as np

from ._choices import BytesAs
from ._errors import OrderError
from ._features import Features
from ._ids import seeds_of
from ._loader import Loader
from ._mix import Mix
from ._tfds import Dataset as TfdsDataset
from ._tfds import source_of
from ._tfseek import Dataset, Schema

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ._loader import LoaderOptions

__all__ = ["BatchMapDataset", "DataSource", "IterDataset", "source"]


class DataSource:
    """Records by number: a ``grain.sources.RandomAccessDataSource``, for ``grain.MapDataset.source`` and ``grain.DataLoader``.

    ds: a :class:`tfseek.Dataset` or a view of one, or a :class:`tfseek.tfds.Dataset`, whose items are its nested values.
    spec: a dict of feature specs or a :class:`tfseek.Schema`, or a list of features of a :class:`tfseek.tfds.Dataset`. Items are the results of :func:`tfseek.parse_single_example` or
        :func:`tfseek.parse_single_sequence_example`. Without a spec they are ``bytes``, which can be sent between processes.
    bytes_as: byte strings in one of the forms of :func:`tfseek.parse_example`, by default ``bytes``, and lists of them in arrays of objects.
    seed, epoch: random crops and colours of a :class:`tfseek.Image` are drawn from them and the number of the record in the whole data set. Grain's ``repeat``
        repeats them.

    A source can be used by several threads, and it can be pickled. An unpickled copy opens the files again, and raises an error if
    their content has changed. ``repr`` identifies the records by fingerprint, not by path, because grain compares it when it loads a
    state. So a state remains valid after the files are moved.
    """

    def __init__(
        self, ds: Union[Dataset, TfdsDataset], spec: Union[Features, Iterable[str], None] = None, *, bytes_as: BytesAs = "objects", seed: int = 0, epoch: int = 0
    ) -> None:
        ds, self._schema = source_of(ds, spec)
        self._ds = _dataset(ds)
        # Grain asks for it twice per element.
        self._length = len(self._ds)
        self._bytes_as = bytes_as
        self._seeds = seeds_of(seed, epoch)

    def __len__(self) -> int:
        return self._length

    def __getitem__(self, index: int) -> Any:
        if isinstance(self._schema, Schema):
            return self._ds._record(index, self._schema, self._bytes_as, self._seeds)
        if self._schema is None:
            return bytes(self._ds[operator.index(index)])
        return self._schema._record(self._ds, index, self._bytes_as, self._seeds)

    def __getitems__(self, indices: Sequence[int]) -> list[Any]:
        """Returns several items. Their records are prefetched."""
        return list(self._getitems(indices))

    def _getitems(self, indices: Sequence[int]) -> _Rows:
        return _Rows(self, indices)

    def __repr__(self) -> str:
        # The pickled form: (start, step, length), or the record numbers as bytes.
        pickled: Any = self._ds.__reduce__()
        _, (_, fingerprint, ids, *_) = pickled
        view = "{1}x{2}+{0}".format(*ids) if isinstance(ids, tuple) else f"crc32:{zlib.crc32(ids):08x}"
        seeds = "" if self._seeds == (0, 0) else f", seeds={self._seeds}"
        return f"tfseek.grain.DataSource(fingerprint={fingerprint}, records={len(self)}, view={view}{seeds})"


#: Alias for use in ``grain.MapDataset.source(tfseek.grain.source(ds, spec))``.
source = DataSource


class _Rows(Sequence[Any]):
    """The records of a batch, read together, which Grain passes through its steps. They are parsed one by one, or by :class:`BatchMapDataset` together."""

    def __init__(self, source: DataSource, ids: Sequence[int]) -> None:
        self._records = source._ds.get_many(ids)
        self._source, self._numbers = source, source._ds._numbers(ids)

    def __len__(self) -> int:
        return len(self._records)

    def __getitem__(self, k: Any) -> Any:
        return self._parsed(self._records[k], True, [self._numbers[k]])

    def columns(self) -> Any:
        return self._parsed(self._records, False, self._numbers)

    def _parsed(self, records: Any, single: bool, numbers: list[int]) -> Any:
        schema: Any = self._source._schema
        if schema is None:
            return bytes(records) if single else [bytes(record) for record in records]
        return schema._parse(records, schema.is_sequence, single, self._source._bytes_as, numbers, self._source._seeds)


class BatchMapDataset(grain.MapDataset):
    """The batches of ``parent.batch(batch_size)``, whose records are read and parsed together: ``parent.pipe(tfseek.grain.BatchMapDataset, 256)``.

    Grain's own ``batch`` takes one element after the other. This one takes those of a batch in one call, through ``shuffle``, ``repeat`` and slices.
    Directly above a :class:`DataSource` a batch has the columns of :class:`tfseek.Loader`: byte strings are objects, and lists of different lengths
    :class:`tfseek.Ragged`. Records without a spec are a list of ``bytes``. After ``map``, ``zip`` or ``mix`` Grain stacks the elements.
    """

    def __init__(self, parent: grain.MapDataset, batch_size: int, drop_remainder: bool = False) -> None:
        super().__init__(parent)
        # Grain checks the arguments, and the steps before.
        parent.batch(batch_size, drop_remainder=drop_remainder)
        self._batch_size, self._drop_remainder = batch_size, drop_remainder

    def __len__(self) -> int:
        rest = 0 if self._drop_remainder else self._batch_size - 1
        return (len(self._parent) + rest) // self._batch_size

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return self.slice(index)
        elements = len(self._parent)
        # Each epoch is batched separately.
        epoch, k = divmod(index, len(self))
        numbers = range(k * self._batch_size, min((k + 1) * self._batch_size, elements))
        found = self._parent._getitems([epoch * elements + i for i in numbers])
        if isinstance(found, _Rows):
            return found.columns()
        return grain.experimental.batch_and_pad(found, batch_size=len(found))


class IterDataset(grain.IterDataset):
    """The batches of a :class:`tfseek.Loader` as a ``grain.IterDataset``: read, shuffled and parsed by Rust threads.

    The arguments are those of the loader: ``batch_size`` or ``global_batch_size``, ``shuffle``, ``seed``, ``rank``
    (``jax.process_index()``), ``world_size`` (``jax.process_count()``) and the others. An iterator yields the epoch ``epoch``, or with
    ``repeat=True`` all epochs without end. Its state is JSON-safe, below 1 KiB, and counts the batches that were returned.

    ``mp_prefetch`` and similar methods distribute the batches over processes, which together yield the batches of one process in the
    same sequence. They help if Python transforms batches. The loader has its own threads (``threads=``).
    """

    def __init__(
        self,
        ds: Union[Dataset, Mix, TfdsDataset],
        spec: Union[Features, Iterable[str], None] = None,
        *,
        transform: Optional[Callable[..., Any]] = None,
        **options: Unpack[LoaderOptions],
    ) -> None:
        super().__init__()
        ds, self._schema = source_of(ds, spec)
        self._ds = ds if isinstance(ds, Mix) else _dataset(ds)
        self._options: dict[str, Any] = {**options} if transform is None else {**options, "transform": transform}
        # Raises errors of the arguments here, and not later in another process.
        self._loader().close()

    def __iter__(self) -> Any:
        return _Iterator(self._loader(), self._options.get("repeat", False))

    @property
    def _element_spec(self) -> dict[str, Any]:
        """The columns of a whole batch, for ``grain.experimental.get_element_spec``. It knows no ``transform``, and only columns of fixed shape."""
        if not isinstance(self._schema, Schema) or self._schema.is_sequence or "transform" in self._options:
            raise NotImplementedError("element_spec: expected a spec of Examples and no transform")
        rows = self._options.get("batch_size") or self._options["global_batch_size"] // (self._options.get("world_size") or 1)
        features = json.loads(self._schema.to_json())["features"]
        geometries = [spec["geometry"] for spec in features.values() if "geometry" in spec]
        features.update(dict.fromkeys(geometries, {"type": "fixed", "dtype": "int32", "shape": [5]}))
        columns = {name: _column_spec(name, spec, rows) for name, spec in features.items()}
        if "ids" in self._options:
            columns[self._options["ids"]] = _column_spec("", {"type": "fixed", "dtype": "int64"}, rows)
        return columns

    def set_slice(self, sl: slice, sequential_slice: bool = False) -> None:
        """Restricts this copy to the steps of one worker. grain calls it in each worker."""
        if sequential_slice:
            raise ValueError("workers take batches in rotation: sequential_slice=True is not supported")
        worker, workers = self._options.get("worker", 0), self._options.get("workers", 1)
        self._options = {**self._options, "worker": worker + workers * sl.start, "workers": workers * sl.step}

    def _loader(self) -> Loader:
        return Loader(self._ds, cast(Any, self._schema), **self._options)

    def __repr__(self) -> str:
        options = "".join(f", {name}={value!r}" for name, value in self._options.items())
        return f"tfseek.grain.IterDataset({self._ds!r}{options})"


def _column_spec(name: str, spec: dict[str, Any], rows: int) -> Any:
    kind = spec["type"]
    shape: Any = spec.get("shape", [])
    if kind == "image" and spec.get("size") is not None:
        shape = [spec["channels"], *spec["size"]] if spec.get("layout") == "chw" else [*spec["size"], spec["channels"]]
    elif kind == "image" or None in shape or not (kind in ("fixed", "raw", "tensor") or (kind == "optional" and spec.get("default") is not None)):
        raise NotImplementedError(f"element_spec: feature {name!r}: expected a column of fixed shape, found {kind}")
    dtype = spec["dtype"]
    return grain.experimental.ShapeDtypeStruct(shape=(rows, *shape), dtype=np.dtype(object if dtype == "string" else dtype))


class _Iterator(grain.DatasetIterator):
    """An iterator over one epoch, or over all epochs."""

    def __init__(self, loader: Loader, endless: bool) -> None:
        super().__init__()
        self._loader = loader
        self._endless = endless
        self._epoch = loader.epoch

    def __next__(self) -> Any:
        # At the end of an epoch the loader is already at the start of the next one.
        if self._loader.epoch != self._epoch and not self._endless:
            raise StopIteration
        return next(self._loader)

    def get_state(self) -> dict[str, Any]:
        return {"epoch": self._epoch, "loader": self._loader.state_dict()}

    def set_state(self, state: dict[str, Any]) -> None:
        try:
            epoch, loader = state["epoch"], state["loader"]
        except (KeyError, TypeError):
            raise OrderError("expected the state of a tfseek.grain.IterDataset, with an epoch and a loader's state") from None
        self._loader.load_state_dict(loader)
        self._epoch = epoch

    def close(self) -> None:
        super().close()
        self._loader.close()


def _dataset(ds: Any) -> Dataset:
    if not isinstance(ds, Dataset):
        raise TypeError(f"expected a tfseek.Dataset, found {type(ds).__name__}")
    return ds
