"""``tfseek.Loader``: epochs in batches."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Optional, Union

import numpy as np
import numpy.typing as npt

from ._features import Features, schema_of
from ._progress import Progress
from ._tfseek import Dataset, Delivered, LoaderCore, Warning


#: Arguments of a loader that are no options of the native loader, or are passed on by themselves.
_NOT_OPTIONS = {"self", "ds", "spec", "drop_last", "bytes_as", "ids", "mask", "progress"}


class Loader:
    """Batches of an epoch, in an order that seed and epoch decide, made by threads that never need the GIL.

    Each iteration is an epoch. ``iter(loader)`` begins the next epoch if the last one was gone through, and the same one again, from its
    start, if it was left early (``next(iter(loader))`` costs nothing); after :meth:`load_state_dict` it goes on at the state, once.
    ``next(loader)`` continues the newest iterator. ``docs/shuffling.md``, "Epochs and iterators", has all the rules.

    A batch is a dict of columns, as :func:`tfseek.parse_example` makes it; for a schema of SequenceExamples
    ``(context, sequence, lengths)``; without a spec a list of ``bytes``. Arrays are read-only, and their memory is used again when the
    last of them is gone.

    ds: a :class:`tfseek.Dataset`, or a view of one whose record numbers ascend: ``ds[:1000]``, ``ds.filter("label == 3")``.
    spec: a dict of feature specs, a :class:`tfseek.Schema`, or ``None`` for the records as they are.
    batch_size, global_batch_size: samples of one rank's batch, or of all ranks' together: one of the two. With the latter, what is
        trained on does not depend on the number of ranks.
    shuffle: ``True`` or ``"global"`` for a permutation of all records, ``"block"`` for blocks of neighbours (disks that seek, networks),
        ``False`` for none. By default a seed asks for a shuffle.
    balance: a feature of ints or byte strings: as many samples of each of its values, each in a shuffle of its own, in place of
        ``shuffle``. Builds a column of that feature when it is first used.
    rank, world_size: this process of a distributed job, and how many there are.
    worker, workers: only the steps ``worker``, ``worker + workers``, .. of this rank: for processes that hand out their batches in
        turn, as the workers of torch's ``DataLoader`` do. A worker's state is where its round ends, one step of each worker.
    drop_last, tail: what becomes of the last batch: ``drop_last=False`` loses nothing (a short batch on one rank, padding on
        several, see ``mask``), ``True`` leaves it out; ``tail`` names all four: ``"short"``, ``"pad"``, ``"drop"``, ``"continuous"``.
    threads: that make batches; one for each processor by default, 0 for none. Batches do not depend on it.
    batches_ahead, memory, look_ahead: bounds of batches, of payload bytes under way, and of bytes that are asked for early.
    verify: ``"payload"``, ``"header"``, ``"first_epoch"``; by default what the dataset says.
    errors: ``"raise"`` at a record that is bad, or ``"skip"`` it: see ``skipped``.
    repeat: whether one epoch follows the other without an end: then to go on, keep the iterator or call ``next(loader)``.
    bytes_as: byte strings as object arrays of ``bytes`` (``"objects"``) or as :class:`tfseek.Bytes` (``"offsets"``).
    ids, mask: names of columns to add: the numbers of the records (int64), and whether a row counts (bool; false for padding).
    progress: shows how far the column for ``balance`` is, as :func:`tfseek.open` says.

    Raises :class:`tfseek.OrderError` and :class:`tfseek.SpecError`; while iterating, :class:`tfseek.DataError` at the place of the
    record in the order, after which the same iterator may go on.

    A forked child goes on where its parent was, with threads of its own.
    """

    def __init__(
        self,
        ds: Dataset,
        spec: Optional[Features] = None,
        *,
        batch_size: Optional[int] = None,
        global_batch_size: Optional[int] = None,
        shuffle: Union[bool, str, None] = None,
        balance: Optional[str] = None,
        seed: Optional[int] = None,
        epoch: int = 0,
        rank: int = 0,
        world_size: int = 1,
        worker: int = 0,
        workers: int = 1,
        drop_last: bool = False,
        tail: Optional[str] = None,
        threads: Optional[int] = None,
        batches_ahead: Optional[int] = None,
        memory: Optional[int] = None,
        look_ahead: Optional[int] = None,
        verify: Optional[str] = None,
        errors: str = "raise",
        repeat: bool = False,
        bytes_as: str = "objects",
        ids: Optional[str] = None,
        mask: Optional[str] = None,
        progress: Progress = None,
    ) -> None:
        # The first statement: the local variables are the arguments.
        options = {name: value for name, value in locals().items() if name not in _NOT_OPTIONS}
        schema = None if spec is None else schema_of(spec)
        for name in (ids, mask):
            if name is not None and not isinstance(name, str):
                raise TypeError(f"ids and mask are names of columns, found {name!r}")
            if name is not None and (schema is None or schema.is_sequence):
                raise ValueError(f"the column {name!r} goes with batches of Examples: take loader.ids and loader.mask")
            if name is not None and schema is not None and name in schema.features:
                raise ValueError(f"the column {name!r} is there already")
        if ids is not None and ids == mask:
            raise ValueError(f"ids and mask are columns of their own, and both are named {ids!r}")
        self._names = (ids, mask)
        options["shuffle"] = shuffle_word(seed is not None if shuffle is None else shuffle)
        options["tail"] = tail_word(drop_last, tail)
        self._core = LoaderCore(ds, schema, bytes_as, options, progress)
        self._last = Delivered()

    def __iter__(self) -> Iterator[Any]:
        """Begins an iteration: of the next epoch, or of the same one again if that was left early. Ends the iterators before it."""
        return _Iteration(self, self._core.begin())

    def __next__(self) -> Any:
        """The next batch of the newest iterator; of a new one if there is none, or it has ended."""
        return self._step(None)

    def _step(self, turn: Optional[int]) -> Any:
        step = self._core.step(turn)
        if step is None:
            raise StopIteration
        # Another thread may be at its own batch.
        batch, last = step
        self._last = last
        ids, mask = self._names
        if ids is not None:
            batch[ids] = last.ids
        if mask is not None:
            batch[mask] = last.mask
        return batch

    def __len__(self) -> int:
        """Steps of an epoch, the same on all ranks; of one worker, if this is one of several."""
        return self._core.steps

    @property
    def steps_left(self) -> int:
        """Steps that are left of the current epoch."""
        return self._core.steps_left

    @property
    def epoch(self) -> int:
        """The epoch that is iterated over, or that the next iteration begins."""
        return self._core.epoch

    @property
    def ids(self) -> npt.NDArray[np.int64]:
        """The numbers of the records in the last batch."""
        return self._last.ids

    @property
    def mask(self) -> npt.NDArray[np.bool_]:
        """Whether each row of the last batch counts: false for padding, which metrics must leave out."""
        return self._last.mask

    @property
    def skipped(self) -> list[tuple[int, str]]:
        """Numbers and faults of the records that the last batch lacks, with ``errors="skip"``."""
        return self._last.skipped

    @property
    def warnings(self) -> list[Warning]:
        """Warnings about the order: that it will be slow here, say."""
        return self._core.warnings

    def describe(self) -> str:
        """What the order is and what it costs, for people."""
        return self._core.describe()

    def set_epoch(self, epoch: int) -> None:
        """The next iteration begins this epoch at its start, also if it is the epoch that the loader is in. Where that epoch is about
        to begin already, nothing changes: a state of it that was loaded stays (:meth:`reset` drops it)."""
        self._core.set_epoch(epoch)

    def reset(self) -> None:
        """The next iteration begins the epoch that the loader is in, at its start."""
        self._core.reset()

    def state_dict(self) -> dict[str, Any]:
        """State for a checkpoint: small, JSON-safe, and the same on all ranks. The place of the newest iterator: it counts the batches
        that were handed out. After the last one of an epoch it is where the next epoch begins."""
        state: dict[str, Any] = json.loads(self._core.state())
        return state

    def _upcoming(self) -> dict[str, Any]:
        """The state at which the next iteration begins."""
        state: dict[str, Any] = json.loads(self._core.upcoming())
        return state

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """The next iteration goes on where :meth:`state_dict` was taken, also with other ranks, threads and batch sizes.

        Raises :class:`tfseek.OrderError` for the state of another dataset or another kind of order.
        """
        self._core.seek(json.dumps(state))

    def close(self) -> None:
        """Ends the threads."""
        self._core.close()

    def __enter__(self) -> Loader:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"tfseek.Loader({self.describe()})"


class _Iteration(Iterator[Any]):
    """One iteration over a loader."""

    def __init__(self, loader: Loader, turn: int) -> None:
        self._loader, self._turn, self._ended = loader, turn, False

    def __next__(self) -> Any:
        if self._ended:
            raise StopIteration
        try:
            return self._loader._step(self._turn)
        except StopIteration:
            self._ended = True
            raise


def shuffle_word(shuffle: Union[bool, str]) -> Optional[str]:
    """The name of an order."""
    if isinstance(shuffle, bool):
        return "global" if shuffle else None
    return shuffle


def tail_word(drop_last: bool, tail: Optional[str]) -> Optional[str]:
    """The name of what becomes of the last batch; ``None`` for what the number of ranks says."""
    if drop_last and tail not in (None, "drop"):
        raise ValueError(f"drop_last=True is tail='drop', found tail={tail!r}")
    return "drop" if drop_last else tail
