"""PyTorch: a map-style dataset, an iterable one over the :class:`tfseek.Loader`, a sampler in its order; tensors without a copy.

Only ``import tfseek.torch`` imports torch. All tensors may be written to: they lie in memory that belongs to their batch, never in
the files.
"""

from __future__ import annotations

import json
import operator
import os
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Optional, Union

import numpy as np
import torch
import torch.distributed
import torch.utils.data

from ._features import Features, schema_of
from ._loader import Loader, shuffle_word, tail_word
from ._tfseek import Dataset as Records
from ._tfseek import Memory, SamplerCore, SamplerIterator

__all__ = ["Dataset", "IterableDataset", "Sampler", "as_tensors"]

Transform = Optional[Callable[[Any], Any]]


def as_tensors(batch: Any) -> Any:
    """A batch of :class:`tfseek.Loader` or of the functions ``parse_...``, its arrays as tensors over the same memory.

    Dicts and tuples stay what they are, :class:`tfseek.Sparse`, :class:`tfseek.Ragged` and :class:`tfseek.Bytes` among them; so do
    object arrays of ``bytes``, for which torch has no type. Other arrays, and memory that two columns share, are copied, so that
    writing to a tensor changes nothing else.
    """
    return _tensors(batch, set())


def _tensors(value: Any, seen: set[int]) -> Any:
    if isinstance(value, np.ndarray):
        return value if value.dtype.hasobject else _tensor(value, seen)
    if isinstance(value, dict):
        return {name: _tensors(column, seen) for name, column in value.items()}
    if isinstance(value, tuple):
        parts = [_tensors(part, seen) for part in value]
        return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
    return value


def _tensor(array: Any, seen: set[int]) -> torch.Tensor:
    # torch has no read-only tensors, and warns of arrays that are. Of a batch's memory there is a writable array; where
    # there is none, it is a file's, or another column's as well.
    own = array.base.writable if isinstance(array.base, Memory) else None
    if own is None:
        return torch.from_numpy(array.copy())
    tensor = torch.from_numpy(own)
    address = tensor.data_ptr()
    if address in seen:
        return tensor.clone()
    if address:
        seen.add(address)
    return tensor


class Dataset(torch.utils.data.Dataset[Any]):
    """Records by number: a map-style dataset.

    ``d[i]`` is one record, by a spec parsed to a dict of tensors as :func:`tfseek.parse_single_example` does it (for a schema of
    SequenceExamples, ``(context, sequence)``), with byte strings as ``bytes`` or lists of them; without a spec it is what ``ds[i]``
    is. A ``DataLoader`` asks for a batch of them at once, which is parsed in one go where all features are ``FixedLenFeature``.

    ``d[[4, 2, 10]]`` is one batch, as :func:`tfseek.parse_example` makes it: with ``DataLoader(d, batch_size=None,
    sampler=BatchSampler(...))`` nothing is taken apart and put together again, and ragged features need no collate function.

    ds: a :class:`tfseek.Dataset`, or any view of one.
    spec: a dict of feature specs, a :class:`tfseek.Schema`, or ``None``.
    transform: called with each record, or with each batch where ``d`` is asked for one; what it returns takes its place.
    bytes_as: byte strings as ``"objects"`` or ``"offsets"``, as in :func:`tfseek.parse_example`.

    Goes through fork and pickle as the :class:`tfseek.Dataset` does.
    """

    def __init__(
        self, ds: Records, spec: Optional[Features] = None, *, transform: Transform = None, bytes_as: str = "objects"
    ) -> None:
        if bytes_as not in ("objects", "offsets"):
            raise ValueError(f'bytes_as: expected "objects" or "offsets", found {bytes_as!r}')
        self.ds = ds
        self._schema = None if spec is None else schema_of(spec)
        self._transform = transform
        self._bytes_as = bytes_as
        self._falls_apart = False
        if self._schema is not None and not self._schema.is_sequence and bytes_as == "objects":
            specs = json.loads(self._schema.to_json())["features"].values()
            self._falls_apart = bool(specs) and all(spec["type"] == "fixed" for spec in specs)

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
        return self._transformed(self._single(self.ds[i]))

    def __getitems__(self, ids: Sequence[int]) -> list[Any]:
        """A list of records: what a ``DataLoader`` calls for a batch that it collates."""
        if self._falls_apart:
            records = _rows(self._batch(ids))
        else:
            records = [self._single(record) for record in self.ds.get_many(ids)]
        return [self._transformed(record) for record in records]

    def _batch(self, ids: Any) -> Any:
        records = self.ds.get_many(ids)
        if self._schema is None:
            return records
        return as_tensors(self._schema._parse(records, self._schema.is_sequence, False, self._bytes_as))

    def _single(self, record: Any) -> Any:
        if self._schema is None:
            return record
        parsed = as_tensors(self._schema._parse(record, self._schema.is_sequence, True, self._bytes_as))
        if self._schema.is_sequence:
            return tuple(_plain(part) for part in parsed)
        return _plain(parsed)

    def _transformed(self, value: Any) -> Any:
        return value if self._transform is None else self._transform(value)

    def __repr__(self) -> str:
        return f"tfseek.torch.Dataset({self.ds!r})"


def _rows(columns: dict[str, Any]) -> list[dict[str, Any]]:
    """The records of a batch of dense columns."""
    parts = [column.unbind() if isinstance(column, torch.Tensor) else column.tolist() for column in columns.values()]
    return [dict(zip(columns, row)) for row in zip(*parts)]


def _plain(record: dict[str, Any]) -> dict[str, Any]:
    """A record whose byte strings are what a collate function knows."""
    return {name: value.tolist() if isinstance(value, np.ndarray) else value for name, value in record.items()}


class IterableDataset(torch.utils.data.IterableDataset[Any]):
    """Batches of the :class:`tfseek.Loader` as tensors: give it to ``DataLoader(..., batch_size=None)``, or iterate over it.

    With ``num_workers=0``, which is recommended, threads of Rust make the batches without the GIL. Processes pay off for a slow
    ``transform`` in Python: worker ``w`` of ``W`` then makes the steps ``w``, ``w + W``, .., so that the batches and their sequence
    stay the same.

    Iterations begin as those of the :class:`tfseek.Loader` do (``docs/shuffling.md``, "Epochs and iterators"): with the next epoch, or
    with the same one again if it was left early; with workers that stay (``persistent_workers=True``) always with the next one. A
    ``DataLoader`` that starts workers anew for each epoch (the default) starts them from this object in the parent, which has not
    moved: call :meth:`set_epoch` before each epoch, as with torch's ``DistributedSampler``.

    ds, spec: as for :class:`tfseek.Loader`, and so are the ``options``: ``batch_size`` or ``global_batch_size``, ``shuffle``, ``seed``,
        ``drop_last``, ``tail``, ``errors``, ``ids``, ``mask`` and the others.
    transform: called with each batch, where it is made; what it returns takes its place.
    rank, world_size: by default those of ``torch.distributed`` if it is initialized, else the environment's ``RANK`` and
        ``WORLD_SIZE``, which ``torchrun`` sets, else 0 of 1.
    threads: the loader's; in a worker process of a ``DataLoader`` 1 by default.

    :meth:`state_dict` counts what was handed out; with workers that is known to torchdata's ``StatefulDataLoader``, and to nobody
    else. Goes through fork and pickle.
    """

    def __init__(
        self,
        ds: Records,
        spec: Optional[Features] = None,
        *,
        transform: Transform = None,
        rank: Optional[int] = None,
        world_size: Optional[int] = None,
        threads: Optional[int] = None,
        **options: Any,
    ) -> None:
        rank, world_size = _rank_of(rank, world_size)
        self._ds = ds
        self._schema = None if spec is None else schema_of(spec)
        self._transform = transform
        self._threads = threads
        self._options = {**options, "rank": rank, "world_size": world_size}
        # How often set_epoch was called, and with what: workers that outlive an epoch look here.
        self._told = torch.zeros(2, dtype=torch.int64).share_memory_()
        self._heard = 0
        self._enter(None, None)

    def _enter(self, turn: Optional[tuple[int, int]], state: Optional[dict[str, Any]]) -> None:
        """Makes the loader of this process: of worker ``turn[0]`` of ``turn[1]``, if it is one."""
        worker, workers = turn or (0, 1)
        threads = 1 if turn is not None and self._threads is None else self._threads
        self._loader = Loader(
            self._ds, self._schema, threads=threads, worker=worker, workers=workers, **self._options
        )
        self._turn = turn
        #: The epoch of a worker's iteration.
        self._epoch: Optional[int] = None
        #: Where the next iteration begins, in a copy of what was iterated over.
        self._begins: Optional[dict[str, Any]] = None
        if state is not None:
            self._loader.load_state_dict(state)

    def __iter__(self) -> Iterator[Any]:
        info = torch.utils.data.get_worker_info()
        turn = None if info is None else (info.id, info.num_workers)
        self._land()
        if turn != self._turn:
            # A copy begins what the original would.
            self._enter(turn, self._loader._upcoming())
        count, told = self._told.tolist()
        told %= 2**64
        if turn is not None and self._epoch is not None:
            # All workers begin the same epoch, however far each of them came in the last one.
            if count != self._heard:
                self._loader.set_epoch(told)
            elif not self._loader._core.fresh:
                self._loader.set_epoch(self._epoch + 1)
        self._heard = count
        batches = iter(self._loader)
        self._epoch = self._loader.epoch
        return map(self._made, batches)

    def _land(self) -> None:
        """In a copy, goes to where the next iteration begins."""
        if self._begins is not None:
            self._loader.load_state_dict(self._begins)
            self._begins = None

    def _made(self, batch: Any) -> Any:
        batch = as_tensors(batch)
        return batch if self._transform is None else self._transform(batch)

    def __len__(self) -> int:
        """Steps of an epoch, the same on all ranks."""
        return len(self._loader)

    @property
    def epoch(self) -> int:
        """The epoch that is iterated over, or that the next iteration begins."""
        return self._loader.epoch

    def set_epoch(self, epoch: int) -> None:
        """The next iteration begins this epoch at its start, in workers too, also if it is the epoch that is iterated over. Where it is
        about to begin already, nothing changes: a state of it that was loaded stays (:meth:`reset` drops it)."""
        self._land()
        self._loader.set_epoch(epoch)
        self._tell(epoch)

    def reset(self) -> None:
        """The next iteration begins the epoch that this process is in, at its start."""
        self._begins = None
        self._loader.reset()
        self._tell(self._loader.epoch)

    def _tell(self, epoch: int) -> None:
        self._heard += 1
        # A tensor's integers have a sign.
        self._told.copy_(torch.tensor([self._heard, epoch - 2**64 if epoch >= 2**63 else epoch]))

    def state_dict(self) -> dict[str, Any]:
        """What a checkpoint keeps: small, JSON-safe, and the same on all ranks. It counts the batches that were handed out.

        It is the state of a :class:`tfseek.Loader`. After the last batch of an epoch it stands at that epoch's end, until the
        iteration has ended.
        """
        state: dict[str, Any] = json.loads(self._loader._core.state_in_epoch())
        return state

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """The next iteration goes on where :meth:`state_dict` was taken, also with other ranks, threads and batch sizes.

        Raises :class:`tfseek.OrderError` for the state of another dataset or another kind of order.
        """
        self._loader.load_state_dict(state)
        self._begins = None

    def __getstate__(self) -> dict[str, Any]:
        # A copy has no iterator: its first one begins where the original's next one would.
        begins = self._begins if self._loader._core.fresh else self._loader._upcoming()
        return {**self.__dict__, "_loader": None, "_begins": None, "_kept": (self.state_dict(), begins)}

    def __setstate__(self, kept: dict[str, Any]) -> None:
        state, begins = kept.pop("_kept")
        self.__dict__.update(kept)
        self._told.share_memory_()
        self._enter(None, state)
        self._begins = begins

    def __repr__(self) -> str:
        return f"tfseek.torch.IterableDataset({self._loader.describe()})"


class Sampler(torch.utils.data.Sampler[int]):
    """Record numbers of a rank, in the order of the :class:`tfseek.Loader` (and of ``tfseek order``): for a map-style :class:`Dataset`.

    An order is computed, not kept: memory does not grow with the dataset. Iterations begin as those of the :class:`tfseek.Loader` do
    (``docs/shuffling.md``, "Epochs and iterators"): with the next epoch, or with the same one again if it was left early. An iteration
    begins with its first number; one that began before goes on by itself, and the state is that of the newest.

    ds: the :class:`tfseek.Dataset` that is sampled from (numbers are ``ds``'s), or a view of one whose record numbers ascend.
    shuffle: ``True`` or ``"global"``, ``"block"`` for blocks of neighbours, ``False``.
    rank, world_size: as for :class:`IterableDataset`.
    batch_size: samples of a rank's batch: with the ``DataLoader``'s, its batches are those of a loader. On one rank nothing depends on it
        but ``drop_last``.
    drop_last, tail: how an epoch ends that ranks cannot share evenly: ``"pad"`` gives some ranks samples from the epoch's start
        (the default on several ranks, as in torch's ``DistributedSampler``), ``"drop"``, or ``drop_last=True``, leaves the last batch
        out, ``"short"`` (the default on one rank) gives each sample once, and ranks may differ by one.

    :meth:`state_dict` counts the samples that were given. A ``DataLoader`` with workers is ahead of what it has handed out by
    ``num_workers * prefetch_factor`` batches; torchdata's ``StatefulDataLoader`` keeps the state that belongs to each batch.
    """

    def __init__(
        self,
        ds: Records,
        *,
        shuffle: Union[bool, str] = True,
        seed: int = 0,
        rank: Optional[int] = None,
        world_size: Optional[int] = None,
        batch_size: int = 1,
        drop_last: bool = False,
        tail: Optional[str] = None,
    ) -> None:
        if tail == "continuous":
            raise ValueError("tail='continuous' crosses epochs, which a sampler cannot: take an IterableDataset")
        rank, world_size = _rank_of(rank, world_size)
        options = {
            "batch_size": batch_size,
            "shuffle": shuffle_word(shuffle),
            "seed": seed,
            "rank": rank,
            "world_size": world_size,
            "tail": tail_word(drop_last, tail),
        }
        self._arguments = (ds, options, batch_size)
        self._core = SamplerCore(*self._arguments)

    def __iter__(self) -> _Numbers:
        return _Numbers(self._core)

    def __len__(self) -> int:
        """Samples of an epoch, for this rank."""
        return len(self._core)

    @property
    def epoch(self) -> int:
        """The epoch of the last number, or of the next one."""
        return self._core.epoch

    def set_epoch(self, epoch: int) -> None:
        """The next iteration begins at the start of this epoch, or where :meth:`load_state_dict` said if that is in it."""
        self._core.set_epoch(epoch)

    def reset(self) -> None:
        """The next iteration begins the epoch that the sampler is in, at its start."""
        self._core.reset()

    def state_dict(self) -> dict[str, Any]:
        """What a checkpoint keeps: the state of a :class:`tfseek.Loader`, which takes it as well; the same on all ranks.

        Raises :class:`ValueError` in the middle of a batch, where ranks have no common position.
        """
        state: dict[str, Any] = json.loads(self._core.state())
        return state

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """The next iteration goes on where :meth:`state_dict` was taken, also with other ranks and batch sizes. At the end of
        an epoch it is the next one, unless :meth:`set_epoch` says that it is still that one, of which nothing is left.

        Raises :class:`tfseek.OrderError` for the state of another dataset or another kind of order.
        """
        self._core.load(json.dumps(state))

    def __getstate__(self) -> dict[str, Any]:
        # A copy has no iterator: it stands where the next one would begin.
        return {**self.__dict__, "_core": None, "_saved": (self._core.upcoming(), self._core.chosen)}

    def __setstate__(self, kept: dict[str, Any]) -> None:
        state, chosen = kept.pop("_saved")
        self.__dict__.update(kept)
        self._core = SamplerCore(*self._arguments)
        self._core.load(state)
        if chosen:
            self._core.set_epoch(self._core.epoch)


class _Numbers(Iterator[int]):
    """One iteration over a sampler, with a state of its own: ``StatefulDataLoader`` saves and loads it."""

    def __init__(self, sampler: SamplerCore) -> None:
        self._core = SamplerIterator(sampler)

    def __next__(self) -> int:
        return next(self._core)

    def state_dict(self) -> dict[str, Any]:
        state: dict[str, Any] = json.loads(self._core.state())
        return state

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self._core.load(json.dumps(state))


def _rank_of(rank: Optional[int], world_size: Optional[int]) -> tuple[int, int]:
    if rank is not None and world_size is not None:
        return rank, world_size
    if rank is not None or world_size is not None:
        raise ValueError("rank and world_size go together")
    if torch.distributed.is_available() and torch.distributed.is_initialized():
        return torch.distributed.get_rank(), torch.distributed.get_world_size()
    return int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))
