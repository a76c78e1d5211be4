"""``tfseek.Loader``: epochs in batches."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Optional, Union

import numpy as np
import numpy.typing as npt

from ._features import Features, schema_of
from ._progress import Progress
from ._tfseek import Dataset, LoaderCore, StepInfo, Warning


#: Arguments of a loader that are not options of the native loader, or are passed separately.
_NOT_OPTIONS = {"self", "ds", "spec", "drop_last", "bytes_as", "ids", "mask", "progress"}


class Loader:
    """Batches of an epoch, in an order determined by seed and epoch, produced by threads that do not need the GIL.

    Each iteration is an epoch. ``iter(loader)`` begins the next epoch if the previous one is complete. If it was left early, the same
    epoch begins again, so ``next(iter(loader))`` does not consume an epoch. The first iteration after :meth:`load_state_dict` resumes
    at the state. ``next(loader)`` continues the newest iterator. ``docs/shuffling.md``, "Epochs and iterators", has all rules.

    A batch is a dict of columns, as returned by :func:`tfseek.parse_example`. It is ``(context, sequence, lengths)`` for a schema of
    SequenceExamples, and a list of ``bytes`` without a spec. Arrays are read-only. Their memory is reused after the last of them is
    released.

    ds: a :class:`tfseek.Dataset`, or a view of one with ascending record numbers: ``ds[:1000]``, ``ds.filter("label == 3")``.
    spec: a dict of feature specs, a :class:`tfseek.Schema`, or ``None`` for unparsed records.
    batch_size, global_batch_size: number of samples per batch of one rank, or of all ranks together. Exactly one is required. With
        ``global_batch_size`` the samples of a step do not depend on the number of ranks.
    shuffle: ``True`` or ``"global"``: a permutation of all records. ``"block"``: blocks of adjacent records, for slow disks and
        networks. ``False``: file order. Default: ``True`` if a seed is given.
    balance: a feature of ints or byte strings. Each of its values gets the same number of samples, shuffled separately. Replaces
        ``shuffle``. The first use builds a column of the feature.
    rank, world_size: the rank of this process in a distributed job, and the number of ranks.
    worker, workers: restricts the loader to the steps ``worker``, ``worker + workers``, .. of this rank. For processes whose batches
        are used in rotation, like the workers of torch's ``DataLoader``. A worker's state is the end of its round of one step per
        worker.
    drop_last, tail: treatment of the last batch. ``drop_last=False`` loses no record: the batch is short on one rank, and padded on
        several (see ``mask``). ``True`` omits it. ``tail`` selects ``"short"``, ``"pad"``, ``"drop"`` or ``"continuous"``.
    threads: number of threads that produce batches. Default: one per processor. 0: none. Batches do not depend on it.
    batches_ahead, memory, look_ahead: limits of prepared batches, of payload bytes in flight, and of bytes requested in advance.
    verify: ``"payload"``, ``"header"`` or ``"first_epoch"``. Default: as the dataset.
    errors: ``"raise"``: an invalid record raises. ``"skip"``: it is left out and listed in ``skipped``.
    repeat: if true, an iterator continues with the next epoch and never ends. Keep the iterator or call ``next(loader)``.
    bytes_as: byte strings as object arrays of ``bytes`` (``"objects"``) or as :class:`tfseek.Bytes` (``"offsets"``).
    ids, mask: names of columns to add: the record numbers (int64), and a bool per row that is false for padding.
    progress: display of the scan for the column of ``balance``; :func:`tfseek.open` describes it.

    Raises :class:`tfseek.OrderError` and :class:`tfseek.SpecError`. An iteration raises :class:`tfseek.DataError` at the position of
    an invalid record, and the same iterator can continue after it.

    A forked child resumes at the position of its parent, with new threads.
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
                raise TypeError(f"expected ids and mask to be names of columns, found {name!r}")
            if name is not None and (schema is None or schema.is_sequence):
                raise ValueError(f"the column {name!r} requires batches of Examples: use loader.ids and loader.mask")
            if name is not None and schema is not None and name in schema.features:
                raise ValueError(f"the column {name!r} exists already")
        if ids is not None and ids == mask:
            raise ValueError(f"expected different names for ids and mask, found {ids!r} for both")
        self._names = (ids, mask)
        options["shuffle"] = shuffle_name(seed is not None if shuffle is None else shuffle)
        options["tail"] = tail_name(drop_last, tail)
        self._core = LoaderCore(ds, schema, bytes_as, options, progress)
        self._last = StepInfo()

    def __iter__(self) -> Iterator[Any]:
        """Begins an iteration: over the next epoch, or over the same one if it was left early. Ends all earlier iterators."""
        return _Iteration(self, self._core.begin())

    def __next__(self) -> Any:
        """Returns the next batch of the newest iterator. Begins an iteration if there is none or it has ended."""
        return self._step(None)

    def _step(self, iteration: Optional[int]) -> Any:
        step = self._core.step(iteration)
        if step is None:
            raise StopIteration
        # Another thread may replace `_last` before this batch is complete.
        batch, info = step
        self._last = info
        ids, mask = self._names
        if ids is not None:
            batch[ids] = info.ids
        if mask is not None:
            batch[mask] = info.mask
        return batch

    def __len__(self) -> int:
        """Number of steps per epoch, the same on all ranks. With ``workers`` the steps of this worker."""
        return self._core.steps

    @property
    def steps_left(self) -> int:
        """Number of remaining steps in the current epoch."""
        return self._core.steps_left

    @property
    def epoch(self) -> int:
        """Epoch of the current iteration, or of the next one."""
        return self._core.epoch

    @property
    def ids(self) -> npt.NDArray[np.int64]:
        """Record numbers of the last batch."""
        return self._last.ids

    @property
    def mask(self) -> npt.NDArray[np.bool_]:
        """Mask of the last batch: false for rows that are padding, which metrics must ignore."""
        return self._last.mask

    @property
    def skipped(self) -> list[tuple[int, str]]:
        """Record numbers and errors of the records skipped in the last batch, with ``errors="skip"``."""
        return self._last.skipped

    @property
    def warnings(self) -> list[Warning]:
        """Warnings about the order, for example that it is slow for this dataset."""
        return self._core.warnings

    def describe(self) -> str:
        """Returns a description of the order and its cost."""
        return self._core.describe()

    def set_epoch(self, epoch: int) -> None:
        """Selects the epoch of the next iteration, which begins at its start, even if it is the current epoch.

        If that epoch is about to begin already, nothing changes. A loaded state in that epoch is kept; :meth:`reset` drops it.
        """
        self._core.set_epoch(epoch)

    def reset(self) -> None:
        """Restarts the current epoch with the next iteration."""
        self._core.reset()

    def state_dict(self) -> dict[str, Any]:
        """Returns a state for a checkpoint. It is JSON-safe, below 1 KiB, and the same on all ranks.

        It is the position after the last batch that the newest iterator returned. After the last batch of an epoch it is the start of
        the next epoch.
        """
        state: dict[str, Any] = json.loads(self._core.state())
        return state

    def _upcoming(self) -> dict[str, Any]:
        """Returns the state at which the next iteration begins."""
        state: dict[str, Any] = json.loads(self._core.upcoming())
        return state

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Resumes the next iteration at a state. The number of ranks, threads and the batch size may differ.

        Raises :class:`tfseek.OrderError` for the state of another dataset or another kind of order.
        """
        self._core.seek(json.dumps(state))

    def close(self) -> None:
        """Stops the threads."""
        self._core.close()

    def __enter__(self) -> Loader:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"tfseek.Loader({self.describe()})"


class _Iteration(Iterator[Any]):
    """One iteration over a loader."""

    def __init__(self, loader: Loader, number: int) -> None:
        self._loader, self._number, self._ended = loader, number, False

    def __next__(self) -> Any:
        if self._ended:
            raise StopIteration
        try:
            return self._loader._step(self._number)
        except StopIteration:
            self._ended = True
            raise


def shuffle_name(shuffle: Union[bool, str]) -> Optional[str]:
    """Returns the native name of an order, or ``None`` for file order."""
    if isinstance(shuffle, bool):
        return "global" if shuffle else None
    return shuffle


def tail_name(drop_last: bool, tail: Optional[str]) -> Optional[str]:
    """Returns the native name of a treatment of the last batch. ``None``: it depends on the number of ranks."""
    if drop_last and tail not in (None, "drop"):
        raise ValueError(f"drop_last=True is tail='drop', found tail={tail!r}")
    return "drop" if drop_last else tail
