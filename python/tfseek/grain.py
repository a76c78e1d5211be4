"""Grain's faces of a dataset, for JAX: records by number, and batches that Rust makes.

``import tfseek`` leaves this module alone; it needs the package ``grain``.
"""

from __future__ import annotations

import operator
import zlib
from collections.abc import Sequence
from typing import Any, Optional

import grain

from ._errors import OrderError
from ._features import Features, schema_of
from ._loader import Loader
from ._parse import parse_single_example, parse_single_sequence_example
from ._tfseek import Dataset

__all__ = ["DataSource", "IterDataset", "source"]


class DataSource:
    """Records by number: a ``grain.sources.RandomAccessDataSource``, for ``grain.MapDataset.source`` and ``grain.DataLoader``.

    ds: a :class:`tfseek.Dataset` or a view of one.
    spec: a dict of feature specs or a :class:`tfseek.Schema`. Items are what :func:`tfseek.parse_single_example` makes of records, or
        :func:`tfseek.parse_single_sequence_example`. Without it they are ``bytes``, which is what goes between processes.
    bytes_as: byte strings as ``bytes`` in arrays of objects (``"objects"``) or as :class:`tfseek.Bytes` (``"offsets"``).

    Safe to use from several threads, and pickled: a copy opens the files again, and refuses other content. ``repr`` names the
    records by their content and not by paths, so that a state that grain checks by it is good for files that were moved.
    """

    def __init__(self, ds: Dataset, spec: Optional[Features] = None, *, bytes_as: str = "objects") -> None:
        self._ds = _dataset(ds)
        self._schema = None if spec is None else schema_of(spec)
        self._bytes_as = bytes_as

    def __len__(self) -> int:
        return len(self._ds)

    def __getitem__(self, index: int) -> Any:
        return self._item(self._ds[operator.index(index)])

    def __getitems__(self, indices: Sequence[int]) -> list[Any]:
        """Several items, looking ahead for those that are not in memory yet."""
        return [self._item(record) for record in self._ds.get_many(indices)]

    # What grain calls for the records of a batch.
    _getitems = __getitems__

    def _item(self, record: Any) -> Any:
        if self._schema is None:
            return bytes(record)
        if self._schema.is_sequence:
            return parse_single_sequence_example(record, self._schema, bytes_as=self._bytes_as)
        return parse_single_example(record, self._schema, bytes_as=self._bytes_as)

    def __repr__(self) -> str:
        # As they are pickled: (start, step, length), or numbers as bytes.
        pickled: Any = self._ds.__reduce__()
        _, (_, fingerprint, ids) = pickled
        view = "{1}x{2}+{0}".format(*ids) if isinstance(ids, tuple) else f"crc32:{zlib.crc32(ids):08x}"
        return f"tfseek.grain.DataSource(fingerprint={fingerprint}, records={len(self)}, view={view})"


#: Reads well in ``grain.MapDataset.source(tfseek.grain.source(ds, spec))``.
source = DataSource


class IterDataset(grain.IterDataset):
    """The batches of a :class:`tfseek.Loader` as a ``grain.IterDataset``: read, shuffled and parsed by threads of Rust.

    The arguments are the loader's: ``batch_size`` or ``global_batch_size``, ``shuffle``, ``seed``, ``rank`` (``jax.process_index()``),
    ``world_size`` (``jax.process_count()``), .. An iterator gives the one epoch ``epoch``, or with ``repeat=True`` one after the other
    without an end. Its state is JSON-safe, less than 1 KiB, and counts the batches that were handed out.

    ``mp_prefetch`` and its like deal the batches out to processes: together they give those of one process, in the same sequence. They are
    of use where Python transforms batches; the loader has threads of its own, ``threads=``.
    """

    def __init__(self, ds: Dataset, spec: Optional[Features] = None, **options: Any) -> None:
        super().__init__()
        self._ds = _dataset(ds)
        self._schema = None if spec is None else schema_of(spec)
        self._options = options
        # What is wrong is said here, and not first in another process.
        self._loader().close()

    def __iter__(self) -> Any:
        return _Iterator(self._loader(), self._options.get("repeat", False))

    def set_slice(self, sl: slice, sequential_slice: bool = False) -> None:
        """Leaves the steps of one worker: grain calls this on the copy that the worker has."""
        if sequential_slice:
            raise ValueError("batches are dealt out to workers in turn: sequential_slice=True is not to be had")
        worker, workers = self._options.get("worker", 0), self._options.get("workers", 1)
        self._options = {**self._options, "worker": worker + workers * sl.start, "workers": workers * sl.step}

    def _loader(self) -> Loader:
        return Loader(self._ds, self._schema, **self._options)

    def __repr__(self) -> str:
        options = "".join(f", {name}={value!r}" for name, value in self._options.items())
        return f"tfseek.grain.IterDataset({self._ds!r}{options})"


class _Iterator(grain.DatasetIterator):
    """An epoch, or all of them."""

    def __init__(self, loader: Loader, endless: bool) -> None:
        super().__init__()
        self._loader = loader
        self._endless = endless
        self._epoch = loader.epoch

    def __next__(self) -> Any:
        # At its end the loader is at the start of the next epoch already.
        if self._loader.epoch != self._epoch and not self._endless:
            raise StopIteration
        return next(self._loader)

    def get_state(self) -> dict[str, Any]:
        return {"epoch": self._epoch, "loader": self._loader.state_dict()}

    def set_state(self, state: dict[str, Any]) -> None:
        try:
            epoch, loader = state["epoch"], state["loader"]
        except (KeyError, TypeError):
            raise OrderError("this is no state of a tfseek.grain.IterDataset: expected an epoch and a loader's state") from None
        self._loader.load_state_dict(loader)
        self._epoch = epoch

    def close(self) -> None:
        super().close()
        self._loader.close()


def _dataset(ds: Any) -> Dataset:
    if not isinstance(ds, Dataset):
        raise TypeError(f"expected a tfseek.Dataset, found {type(ds).__name__}")
    return ds
