"""Adapters for PyTorch: a map-style dataset, an iterable dataset over :class:`tfseek.Loader`, and a sampler in the loader's order.

Only ``import tfseek.torch`` imports torch. Tensors share the memory of their batch without a copy, and are writable. They never share
the memory of a file.
"""

from __future__ import annotations

import functools
import json
import operator
import os
import random
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Optional, Union, cast

import numpy as np
import torch
import torch.distributed
import torch.utils.data

from ._choices import BytesAs, LastBatch, Shuffle
from ._columns import Bytes, Column, Ragged, Sparse, _unflattened
from ._features import Features
from ._ids import seeds_of
from ._loader import Loader, last_batch_name, shuffle_name, state_of, warn_of_seed
from ._mix import Mix
from ._report import Report
from ._tfds import Dataset as TfdsDataset
from ._tfds import records_of, source_of
from ._tfseek import ArrayMemory, SamplerCore, SamplerIterator, Schema, StepInfo, TfdsDecoder
from ._tfseek import Dataset as Records
from ._transform import noted, with_info
from ._workers import WorkerEpochs, check_undivided

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ._loader import EpochOptions

__all__ = ["Dataset", "IterableDataset", "Sampler", "as_tensors", "per_row"]

Transform = Optional[Callable[..., Any]]

_COLUMNS = (Ragged, Sparse, Column, Bytes)


def as_tensors(batch: Any) -> Any:
    """Converts the arrays of a batch to tensors over the same memory.

    ``batch`` comes from :class:`tfseek.Loader` or from the functions ``parse_...``. Dicts, tuples, :class:`tfseek.Sparse`,
    :class:`tfseek.Ragged`, :class:`tfseek.Column` and :class:`tfseek.Bytes` keep their types, with tensors as parts. Arrays of objects and of strings are not converted,
    because torch has no such type. Arrays without memory of a batch, and memory shared by two columns, are copied. So writing to a tensor changes no
    other data.
    """
    return _tensors(batch, set())


def _tensors(value: Any, seen: set[int]) -> Any:
    if isinstance(value, (np.ndarray, np.generic)):
        # torch has no type for objects and strings.
        return value if value.dtype.kind in "OS" else _tensor(np.asarray(value), seen)
    if isinstance(value, dict):
        return {name: _tensors(column, seen) for name, column in value.items()}
    if isinstance(value, tuple):
        return tuple(_tensors(part, seen) for part in value)
    if isinstance(value, list):
        return [_tensors(part, seen) for part in value]
    if isinstance(value, _COLUMNS):
        return value._map(lambda part: _tensors(part, seen))
    return value


def _tensor(array: Any, seen: set[int]) -> torch.Tensor:
    # torch has no read-only tensors, and warns about read-only arrays. Memory of a batch has a writable array. Memory of a file, or
    # shared with another column, has none and is copied.
    writable = array.base.writable if isinstance(array.base, ArrayMemory) else None
    if writable is None:
        return _of_array(array.copy())
    tensor = _of_array(writable)
    address = tensor.data_ptr()
    if address in seen:
        return tensor.clone()
    if address:
        seen.add(address)
    return tensor


def _of_array(array: Any) -> torch.Tensor:
    """Returns a tensor over the memory of an array, also of ``bfloat16``, which torch knows and NumPy does not."""
    if array.dtype.name == "bfloat16":
        return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(array)


class Dataset(torch.utils.data.Dataset[Any]):
    """A map-style dataset: records by number.

    With a spec, ``d[i]`` is a dict of tensors, parsed as by :func:`tfseek.parse_single_example`, or ``(context, sequence)`` for a schema
    of SequenceExamples. Byte strings are ``bytes`` or lists of them. Without a spec, ``d[i]`` is ``ds[i]``. A ``DataLoader`` requests all
    records of a batch together. They are parsed together if all columns are arrays of all rows.

    ``d[[4, 2, 10]]`` is one batch, parsed as by :func:`tfseek.parse_example`. ``DataLoader(d, batch_size=None,
    sampler=BatchSampler(...))`` uses it, so batches are not split and collated, and ragged features need no collate function.

    ds: a :class:`tfseek.Dataset`, any view of one, or a :class:`tfseek.tfds.Dataset`. The latter has nested dicts of tensors; steps stay
        :class:`tfseek.tfds.Steps`, and ``None`` stays ``None``.
    spec: a dict of feature specs, a :class:`tfseek.Schema`, or ``None``; of a :class:`tfseek.tfds.Dataset` a list of features, or ``None``.
    transform: called with each record, or with each batch of ``d[[..]]``. Its result replaces the record or the batch.
    bytes_as: byte strings as ``"objects"``, ``"str"``, ``"offsets"``, ``"views"`` or ``"S"``, as in :func:`tfseek.parse_example`. Views
        need a ``transform`` that decodes them, because they differ in length.
    seed: random crops and colours of a :class:`tfseek.Image` are drawn from it, the epoch, and the number of the record in the whole data set. They are the
        same in every epoch without :meth:`set_epoch`, also those of a :class:`tfseek.tfds.Dataset`.

    Fork and pickle work as for :class:`tfseek.Dataset`.
    """

    def __init__(
        self,
        ds: Union[Records, TfdsDataset],
        spec: Union[Features, Iterable[str], None] = None,
        *,
        transform: Transform = None,
        bytes_as: BytesAs = "objects",
        seed: int = 0,
    ) -> None:
        if bytes_as not in ("objects", "str", "offsets", "views", "S"):
            raise ValueError(f'bytes_as: expected "objects", "str", "offsets", "views" or "S", found {bytes_as!r}')
        self.ds, self._schema = source_of(_no_mix(ds), spec)
        self._transform = transform
        self._bytes_as = bytes_as
        self._seeds = seeds_of(seed, 0)
        self._is_dense = False
        if isinstance(self._schema, Schema) and not self._schema.is_sequence and bytes_as != "offsets":
            specs = json.loads(self._schema.to_json())["features"].values()
            self._is_dense = bool(specs) and all(_has_dense_column(spec) for spec in specs)

    def set_epoch(self, epoch: int) -> None:
        """Sets the epoch of random crops and colours, by default 0. Workers that a ``DataLoader`` keeps (``persistent_workers``) do not learn of it."""
        self._seeds = seeds_of(self._seeds[0], epoch)

    def __len__(self) -> int:
        return len(self.ds)

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, torch.Tensor):
            key = key.numpy()
        if isinstance(key, slice):
            key = range(*key.indices(len(self)))
        try:
            i = operator.index(key)
        except TypeError:
            return self._transformed(self._batch(key))
        return self._transformed(self._single(self.ds[i], i))

    def __getitems__(self, ids: Sequence[int]) -> list[Any]:
        """Returns a list of records. A ``DataLoader`` calls it for a batch that it collates."""
        if self._is_dense:
            records = _rows(self._batch(ids), len(ids))
        elif isinstance(self._schema, TfdsDecoder):
            records = [_collatable(as_tensors(record)) for record in self._schema.records(self.ds, ids, self._seeds)]
        else:
            records = [self._single(record, i) for record, i in zip(self.ds.get_many(ids), ids)]
        return [self._transformed(record) for record in records]

    def _batch(self, ids: Any) -> Any:
        ids = ids if isinstance(ids, (np.ndarray, range)) else list(ids)
        records = self.ds.get_many(ids)
        if self._schema is None:
            return records
        return as_tensors(self._schema._parse(records, self._schema.is_sequence, False, self._bytes_as, self.ds._numbers(ids), self._seeds))

    def _single(self, record: Any, i: int) -> Any:
        if self._schema is None:
            return record
        parsed = as_tensors(self._schema._parse(record, self._schema.is_sequence, True, self._bytes_as, self.ds._numbers([i]), self._seeds))
        return tuple(_collatable(part) for part in parsed) if self._schema.is_sequence else _collatable(parsed)

    def _transformed(self, value: Any) -> Any:
        return value if self._transform is None else self._transform(value)

    def __repr__(self) -> str:
        return f"tfseek.torch.Dataset({self.ds!r})"


def _has_dense_column(spec: dict[str, Any]) -> bool:
    """Returns true if the column of a spec, in its JSON form, is an array of all rows."""
    kind = spec["type"]
    if kind == "image":
        return spec.get("size") is not None
    if kind in ("raw", "tensor"):
        return bool(spec["shape"][:1] != [None])
    return kind == "fixed" or (kind == "optional" and "default" in spec)


def _no_mix(ds: Any) -> Any:
    """Returns the dataset. A mix has no records by number."""
    if isinstance(ds, Mix):
        raise TypeError("expected a tfseek.Dataset: tfseek.torch.IterableDataset takes a tfseek.Mix")
    return ds


def _rows(batch: Any, count: int) -> list[Any]:
    """Returns the rows of a batch of tensors: its dicts and tuples, with the values of one row."""
    if isinstance(batch, (dict, tuple)):
        parts = [_rows(part, count) for part in (batch.values() if isinstance(batch, dict) else batch)]
        rows = list(zip(*parts)) or [()] * count
        return [dict(zip(batch, row)) for row in rows] if isinstance(batch, dict) else rows
    return batch.tolist() if isinstance(batch, np.ndarray) else list(batch)


def _collatable(record: Any) -> Any:
    """Returns a record with byte strings in the form that torch's collate functions accept."""
    if isinstance(record, dict):
        return {name: _collatable(value) for name, value in record.items()}
    return record.tolist() if isinstance(record, np.ndarray) else record


def _collate_ragged(columns: Sequence[Ragged], *, collate_fn_map: Any = None) -> Ragged:
    """Stacks ragged columns: their rows become the rows of a new outermost dimension."""
    counts = [len(column) for column in columns]
    first = columns[0].row_splits[0]
    outermost = np.cumsum([0, *counts])
    outer = first.new_tensor(outermost) if isinstance(first, torch.Tensor) else outermost.astype(first.dtype)
    inner = (_joined([column.row_splits[d] for column in columns]) for d in range(len(columns[0].row_splits)))
    return Ragged(_concatenated([column.values for column in columns]), (outer, *inner))


def _collate_sparse(columns: Sequence[Sparse], *, collate_fn_map: Any = None) -> Sparse:
    """Stacks sparse columns along a new first dimension. The others get the maximum of their sizes."""
    indices = [torch.nn.functional.pad(torch.as_tensor(c.indices), (1, 0), value=i) for i, c in enumerate(columns)]
    shapes = torch.stack([torch.as_tensor(column.dense_shape) for column in columns])
    shape = torch.cat([shapes.new_tensor([len(columns)]), shapes.amax(0)])
    return Sparse(torch.cat(indices), _concatenated([column.values for column in columns]), shape)


def _collate_column(columns: Sequence[Column], *, collate_fn_map: Any = None) -> Column:
    """Stacks columns with missing values."""
    return Column(_stacked([column.values for column in columns]), _stacked([column.present for column in columns]))


def _collate_bytes(columns: Sequence[Bytes], *, collate_fn_map: Any = None) -> Bytes:
    """Stacks columns of byte strings, which must have one shape."""
    shapes = {column.shape for column in columns}
    if len(shapes) > 1:
        raise ValueError(f"expected byte strings of one shape in all records of a batch, found {sorted(shapes)}")
    data = _concatenated([column.data for column in columns])
    return Bytes(data, _joined([column.offsets for column in columns]), (len(columns), *columns[0].shape))


def _joined(splits: Sequence[Any]) -> Any:
    """Returns the row splits of all rows of several arrays."""
    parts, end = [splits[0][:1]], 0
    for part in splits:
        parts.append(part[1:] + end)
        end += int(part[-1])
    return _concatenated(parts)


def _concatenated(arrays: Sequence[Any]) -> Any:
    return torch.cat(list(arrays)) if isinstance(arrays[0], torch.Tensor) else np.concatenate(arrays)


def _stacked(arrays: Sequence[Any]) -> Any:
    return torch.stack(list(arrays)) if isinstance(arrays[0], torch.Tensor) else np.stack(arrays)


def _register(kind: Any, collate: Any) -> None:
    """Makes torch's collate functions and trees accept a class of columns."""
    torch.utils.data._utils.collate.default_collate_fn_map[kind] = collate
    torch.utils._pytree.register_pytree_node(
        kind,
        lambda column: (list(column.parts()), getattr(column, "shape", None)),
        lambda parts, shape: _unflattened(kind, parts, shape),
        serialized_type_name=f"tfseek.{kind.__name__}",
    )


for _kind, _collate in zip(_COLUMNS, (_collate_ragged, _collate_sparse, _collate_column, _collate_bytes)):
    _register(_kind, _collate)

#: Held while rows are transformed, because their generators are global. A process forks before or after.
_GENERATORS = threading.RLock()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_GENERATORS.acquire, after_in_parent=_GENERATORS.release, after_in_child=_GENERATORS.release)


def per_row(transform: Callable[[Any], Any]) -> Callable[[Any, StepInfo], Any]:
    """Returns a ``transform`` of batches that calls ``transform`` with each row, under random generators that are seeded for this row.

    It is for transforms of one sample. Called with a batch, as ``transform=v2.Compose(..)`` is, torchvision's draw once for all rows. It is the ``transform`` of
    a :class:`tfseek.Loader`, an :class:`IterableDataset` or a :class:`tfseek.grain.IterDataset`.

    transform: called with a dict of tensors, of ``bytes`` and lists of them, and of ``None`` for missing values, also for padding. A picture is
        ``[C, H, W]`` with ``layout="chw"``, as in torchvision, otherwise ``[H, W, C]``. Of a whole dict, torchvision changes only the first tensor, and
        columns are sorted by name: pass it ``row["image"]``. The results are stacked by key. If keys, types or shapes differ, :class:`ValueError` names
        row, record and key. Rows of ragged columns may differ in length. A column that no row changes stays as it is.

    The row's augmentation seed seeds torch's CPU generator and ``random``, and its low 32 bits ``numpy.random``. They are restored after the batch;
    generators of other devices are not touched. So results are the same on any number of ranks, workers and threads, and after a resume. A process
    transforms one batch at a time. If other threads draw meanwhile, such as a training loop on the CPU, use ``transform_threads=0`` or workers.
    """
    if not callable(transform):
        raise TypeError(f"per_row: expected a function of a row, found {transform!r}")
    return functools.partial(_by_rows, transform)


def _by_rows(transform: Callable[[Any], Any], batch: Any, info: StepInfo) -> Any:
    batch, ids = as_tensors(batch), info.ids.tolist()
    rows, found = _rows(batch, len(ids)), []
    with _GENERATORS, torch.random.fork_rng(devices=[]):
        states = random.getstate(), np.random.get_state()
        try:
            for row, seed in zip(rows, info.augmentation_seeds.tolist()):
                # torch.manual_seed would also seed the generators of other devices.
                torch.default_generator.manual_seed(seed)
                random.seed(seed)
                np.random.seed(seed % 2**32)
                # The function may change its copy of the dicts.
                found.append(transform(torch.utils._pytree.tree_map(lambda value: value, row)))
        except Exception as error:
            noted(error, f"in row {len(found)}, record {ids[len(found)]}")
            raise
        finally:
            random.setstate(states[0])
            np.random.set_state(states[1])
    return _column_of(found, rows, batch, ids, "")


def _column_of(found: list[Any], given: list[Any], column: Any, ids: list[int], key: str) -> Any:
    """Returns the column of new values of all rows. They were ``given`` in ``column``, or are new."""
    if len(given) == len(found) and all(map(_is_same, found, given)):
        return column
    is_ragged = isinstance(column, Ragged) and all(isinstance(value, torch.Tensor) and value.ndim for value in found)
    forms = [_form(value[:0] if is_ragged else value) for value in found]
    for i, form in enumerate(forms):
        if form != forms[0]:
            raise ValueError(f"per_row: row {i}, record {ids[i]}, key {key!r}: expected {forms[0]} as in row 0, found {form}")
    if isinstance(found[0], dict):
        columns = column if isinstance(column, dict) else {}
        parts = {k: ([row[k] for row in found], [row[k] for row in given if k in columns], columns.get(k)) for k in found[0]}
        return {k: _column_of(*part, ids, f"{key}/{k}" if key else str(k)) for k, part in parts.items()}
    if is_ragged:
        return Ragged(torch.cat(found), [column.row_splits[0].new_tensor(np.cumsum([0, *map(len, found)]))])
    if isinstance(found[0], (str, bytes)):
        return np.array(found, dtype=object)
    try:
        return torch.utils.data.default_collate(found)
    except Exception as error:
        raise ValueError(f"per_row: row 0, record {ids[0]}, key {key!r}: {error}") from error


def _is_same(found: Any, given: Any) -> bool:
    """Returns true for the objects that a function was given, also in new lists."""
    (values, tree), (others, other) = map(torch.utils._pytree.tree_flatten, (found, given))
    return tree == other and all(map(operator.is_, values, others))


def _form(value: Any) -> str:
    """Describes what the values of all rows must have in common."""
    if isinstance(value, (torch.Tensor, np.ndarray)):
        return f"{value.dtype} {list(value.shape)}"
    parts = sorted(map(str, value)) if isinstance(value, dict) else [_form(part) for part in value] if isinstance(value, (tuple, list)) else ""
    return f"{type(value).__name__} {parts}".strip()


class IterableDataset(torch.utils.data.IterableDataset[Any]):
    """An iterable dataset: the batches of :class:`tfseek.Loader` as tensors.

    Use it with ``DataLoader(..., batch_size=None)``, or iterate over it. ``num_workers=0`` is recommended: Rust threads produce the
    batches without the GIL. Worker processes help with a slow ``transform`` in Python. Worker ``w`` of ``W`` then produces the steps
    ``w``, ``w + W``, .., so the batches and their sequence stay the same.

    An iteration begins as that of a :class:`tfseek.Loader` (page "shuffling" of the documentation, "Epochs and iterators"): with the next epoch, or with
    the same one if it was left early. Workers always begin the next one, unless :meth:`set_epoch` selects it.

    ds, spec: as for :class:`tfseek.Loader`. The ``options`` are also those of the loader: ``batch_size`` or ``global_batch_size``,
        ``shuffle``, ``seed``, ``drop_last``, ``last_batch``, ``damage``, ``ids``, ``mask``, ``transform_threads`` and the others.
    transform: called with each batch of tensors, in the process that produces it, as that of a loader. Its result replaces the batch.
    rank, world_size: default: those of ``torch.distributed`` if it is initialized, otherwise the environment variables ``RANK`` and
        ``WORLD_SIZE``, which ``torchrun`` sets, otherwise 0 and 1.
        Frameworks that divide batches among ranks a second time (``accelerator.prepare``) raise :class:`ValueError`.
    threads: number of threads of the loader. Default in a worker process of a ``DataLoader``: 1.

    :meth:`state_dict` counts the batches that were returned. With workers, only torchdata's ``StatefulDataLoader`` has this count. Fork
    and pickle are supported.
    """

    def __init__(
        self,
        ds: Union[Records, Mix, TfdsDataset],
        spec: Union[Features, Iterable[str], None] = None,
        *,
        transform: Transform = None,
        rank: Optional[int] = None,
        world_size: Optional[int] = None,
        threads: Optional[int] = None,
        **options: Unpack[EpochOptions],
    ) -> None:
        rank, world_size = _rank_of(rank, world_size)
        self._ds, self._schema = source_of(ds, spec)
        self._transform = transform
        self._threads = threads
        self._options: dict[str, Any] = {**options, "rank": rank, "world_size": world_size}
        # Shared with persistent workers: the number of calls of set_epoch, and the last epoch that was set.
        self._epoch_requests = torch.zeros(2, dtype=torch.int64).share_memory_()
        # Set by a worker that begins an iteration: the position is then in the workers.
        self._in_workers = torch.zeros(1, dtype=torch.bool).share_memory_()
        self._requests_seen = 0
        self._worker_epochs = WorkerEpochs()
        #: A state was loaded in this worker.
        self._loaded = False
        self._build(None, None)

    def _build(self, worker_of: Optional[tuple[int, int]], state: Optional[dict[str, Any]]) -> None:
        """Creates the loader of this process. ``worker_of`` is the worker and the number of workers, if the process is a worker."""
        worker, workers = worker_of or (0, 1)
        threads = 1 if worker_of is not None and self._threads is None else self._threads
        call = with_info((lambda batch: batch) if self._transform is None else self._transform)
        options: dict[str, Any] = {"threads": threads, "worker": worker, "workers": workers, **self._options}
        self._loader = Loader(self._ds, cast(Any, self._schema), transform=lambda batch, info: call(as_tensors(batch), info), **options)
        self._worker_of = worker_of
        #: Epoch of the current iteration of a worker.
        self._epoch: Optional[int] = None
        #: State at which the next iteration begins, in a copy of a dataset that was iterated over.
        self._next_start: Optional[dict[str, Any]] = None
        if state is not None:
            self._loader._seek(state)

    def __iter__(self) -> Iterator[Any]:
        check_undivided(self._options["world_size"])
        info = torch.utils.data.get_worker_info()
        worker_of = None if info is None else (info.id, info.num_workers)
        self._seek_start()
        if worker_of != self._worker_of:
            # A copy in a worker begins the iteration that the original would begin, or the one after that of the workers before it.
            upcoming = self._loader._upcoming()
            self._build(worker_of, upcoming)
            if info is not None:
                chosen = self._loaded or not self._in_workers.item()
                following = self._worker_epochs.next(info.seed - info.id, upcoming["epoch"], chosen)
                if following is not None and not self._loaded:
                    self._loader.set_epoch(following)
        count, epoch = self._epoch_requests.tolist()
        epoch %= 2**64
        if worker_of is not None and self._epoch is not None:
            # All workers begin the same epoch, even if they stopped at different positions of the previous one.
            if count != self._requests_seen:
                self._loader.set_epoch(epoch)
            elif not self._loader._core.fresh:
                self._loader.set_epoch(self._epoch + 1)
        self._requests_seen = count
        self._in_workers.fill_(worker_of is not None)
        batches: Iterator[Any] = iter(self._loader)
        self._epoch = self._loader.epoch
        return batches

    def _seek_start(self) -> None:
        """Moves the loader of a copy to the state at which the next iteration begins."""
        if self._next_start is not None:
            self._loader._seek(self._next_start)
            self._next_start = None

    def __len__(self) -> int:
        """Number of steps per epoch, the same on all ranks."""
        return len(self._loader)

    def report(self) -> Report:
        """Returns the :class:`tfseek.Report` of the loader of this process."""
        return self._loader.report()

    @property
    def epoch(self) -> int:
        """Epoch of the current iteration, or of the next one."""
        return self._loader.epoch

    def set_epoch(self, epoch: int) -> None:
        """Selects the epoch of the next iteration, also in workers, as :meth:`tfseek.Loader.set_epoch` does."""
        # A framework that hands out the first rank's batches iterates only there, and calls this on all ranks.
        check_undivided(self._options["world_size"])
        self._seek_start()
        self._loader.set_epoch(epoch)
        self._request_epoch(epoch)

    def reset(self) -> None:
        """Restarts the current epoch of this process with the next iteration."""
        self._next_start = None
        self._loader.reset()
        self._request_epoch(self._loader.epoch)

    def _request_epoch(self, epoch: int) -> None:
        self._in_workers.fill_(False)
        self._requests_seen += 1
        # The tensor has signed integers.
        self._epoch_requests.copy_(torch.tensor([self._requests_seen, epoch - 2**64 if epoch >= 2**63 else epoch]))

    def state_dict(self) -> dict[str, Any]:
        """Returns a state for a checkpoint. It is JSON-safe, below 1 KiB, and the same on all ranks.

        It is the state of a :class:`tfseek.Loader`, and counts the batches that were returned. After the last batch of an epoch it is
        that epoch's end, until the iteration has ended.

        Raises :class:`RuntimeError` if worker processes of a ``DataLoader`` iterate over copies of this object. They have the position,
        until :meth:`set_epoch`, :meth:`reset` or :meth:`load_state_dict` is called.
        """
        if self._worker_of is None and self._in_workers.item():
            raise RuntimeError(
                "expected to be asked for the state of this iteration, which is in the workers of a DataLoader: use "
                "torchdata's StatefulDataLoader and its state_dict(), or num_workers=0"
            )
        return self._state()

    def _state(self) -> dict[str, Any]:
        """Returns the state of this process."""
        return state_of(self._loader._core.state_in_epoch())

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Resumes the next iteration at a state, as :meth:`tfseek.Loader.load_state_dict` does."""
        self._loader._seek(state)
        self._next_start = None
        self._loaded = torch.utils.data.get_worker_info() is not None
        if self._worker_of is None and torch.utils.data.get_worker_info() is None:
            self._in_workers.fill_(False)
            warn_of_seed(state, self._options.get("seed"))

    def __getstate__(self) -> dict[str, Any]:
        check_undivided(self._options["world_size"])
        # A copy has no iterator. Its first iteration begins where the original's next one would.
        start = self._next_start if self._loader._core.fresh else self._loader._upcoming()
        return {**self.__dict__, "_loader": None, "_next_start": None, "_saved": (self._state(), start)}

    def __setstate__(self, fields: dict[str, Any]) -> None:
        state, start = fields.pop("_saved")
        self.__dict__.update(fields)
        self._epoch_requests.share_memory_()
        self._in_workers.share_memory_()
        self._build(None, state)
        self._next_start = start

    def __repr__(self) -> str:
        return f"tfseek.torch.IterableDataset({self._loader.describe()})"


class Sampler(torch.utils.data.Sampler[int]):
    """A sampler: the record numbers of a rank, in the order of :class:`tfseek.Loader` and ``tfseek order``.

    It is for a map-style :class:`Dataset`. The order is computed, not stored, so memory does not grow with the dataset. An iteration is that of an
    :class:`IterableDataset`, and begins with its first record number. Earlier iterations stay valid, and the state is that of the newest.

    ds: a :class:`tfseek.Dataset`, or a view of one with ascending record numbers. The sampled numbers are indexes of ``ds``.
    shuffle, block_bytes: as for :class:`tfseek.Loader`.
    seed: default: 0.
    rank, world_size: as for :class:`IterableDataset`.
    batch_size: number of samples per batch of one rank. With the batch size of the ``DataLoader``, its batches are those of a loader.
        On one rank it affects only ``drop_last``.
    drop_last, last_batch: treatment of a last batch that the ranks cannot share evenly. ``"pad"`` (the default on several ranks, as in
        torch's ``DistributedSampler``) repeats samples from the epoch's start. ``"drop"``, or ``drop_last=True``, omits the last batch.
        ``"short"`` (the default on one rank) yields each sample once, and the lengths of the ranks may differ by one.

    :meth:`state_dict` counts the samples that were yielded. A ``DataLoader`` with workers requests samples
    ``num_workers * prefetch_factor`` batches in advance. torchdata's ``StatefulDataLoader`` keeps the state of each batch.
    """

    def __init__(
        self,
        ds: Union[Records, TfdsDataset],
        *,
        shuffle: Shuffle = True,
        block_bytes: Optional[int] = None,
        seed: Optional[int] = None,
        rank: Optional[int] = None,
        world_size: Optional[int] = None,
        batch_size: int = 1,
        drop_last: bool = False,
        last_batch: Optional[LastBatch] = None,
    ) -> None:
        if last_batch == "continuous":
            raise ValueError("last_batch='continuous' joins epochs, which a sampler cannot: use an IterableDataset")
        rank, world_size = _rank_of(rank, world_size)
        options = {
            "batch_size": batch_size,
            "shuffle": shuffle_name(shuffle),
            "block_bytes": block_bytes,
            "seed": 0 if seed is None else seed,
            "rank": rank,
            "world_size": world_size,
            "last_batch": last_batch_name(drop_last, last_batch),
        }
        self._seed = seed
        self._world_size = world_size
        self._arguments = (records_of(_no_mix(ds)), options, batch_size)
        self._core = SamplerCore(*self._arguments)

    def __iter__(self) -> _SamplerIterator:
        check_undivided(self._world_size)
        return _SamplerIterator(self._core)

    def __len__(self) -> int:
        """Number of samples per epoch of this rank."""
        return len(self._core)

    @property
    def epoch(self) -> int:
        """Epoch of the last record number, or of the next one."""
        return self._core.epoch

    def set_epoch(self, epoch: int) -> None:
        """Selects the epoch of the next iteration. It begins at its start, or at a loaded state in that epoch."""
        check_undivided(self._world_size)
        self._core.set_epoch(epoch)

    def reset(self) -> None:
        """Restarts the current epoch with the next iteration."""
        self._core.reset()

    def state_dict(self) -> dict[str, Any]:
        """Returns a state for a checkpoint, the same on all ranks. A :class:`tfseek.Loader` can load it as well.

        Raises :class:`ValueError` in the middle of a batch, because the ranks have no common position there.
        """
        return state_of(self._core.state())

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Resumes the next iteration at a state, as :meth:`tfseek.Loader.load_state_dict` does.

        A state at the end of an epoch begins the next epoch. If :meth:`set_epoch` then selects the finished epoch, the iteration is
        empty.
        """
        self._core.load(json.dumps(state))
        warn_of_seed(state, self._seed)

    def __getstate__(self) -> dict[str, Any]:
        # A copy has no iterator. Its position is the start of the next iteration.
        return {**self.__dict__, "_core": None, "_saved": (self._core.upcoming(), self._core.chosen)}

    def __setstate__(self, fields: dict[str, Any]) -> None:
        state, chosen = fields.pop("_saved")
        self.__dict__.update(fields)
        self._core = SamplerCore(*self._arguments)
        self._core.load(state)
        if chosen:
            self._core.set_epoch(self._core.epoch)


class _SamplerIterator(Iterator[int]):
    """One iteration over a sampler, with the state that ``StatefulDataLoader`` saves and loads."""

    def __init__(self, sampler: SamplerCore) -> None:
        self._core = SamplerIterator(sampler)

    def __next__(self) -> int:
        return next(self._core)

    def state_dict(self) -> dict[str, Any]:
        return state_of(self._core.state())

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self._core.load(json.dumps(state))


def _rank_of(rank: Optional[int], world_size: Optional[int]) -> tuple[int, int]:
    if rank is not None and world_size is not None:
        return rank, world_size
    if rank is not None or world_size is not None:
        raise ValueError("expected both rank and world_size, found one of them")
    if torch.distributed.is_available() and torch.distributed.is_initialized():
        return torch.distributed.get_rank(), torch.distributed.get_world_size()
    return int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))
