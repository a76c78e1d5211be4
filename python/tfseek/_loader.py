"""``tfseek.Loader``: epochs in batches."""

from __future__ import annotations

import functools
import json
import operator
import threading
import time
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Callable, Generic, Optional, Union, cast, overload

import numpy as np
import numpy.typing as npt

from ._buckets import Padding, check_buckets, check_weights
from ._choices import BytesAs, Damage, LastBatch, LoaderVerify, Shuffle
from ._errors import OrderError
from ._features import Features, columns_of
from ._mix import Mix
from ._open import short
from ._progress import Progress
from ._report import LoaderClock, Report, Traffic
from ._tfds import Dataset as TfdsDataset
from ._tfds import source_of
from ._tfseek import Dataset, LoaderCore, StepInfo
from ._transform import Guarded, TransformThreads, add_columns, transformed, with_info
from ._warnings import Warning, raise_all

if TYPE_CHECKING:
    from typing_extensions import TypedDict, TypeVar, Unpack

    Batch = TypeVar("Batch", covariant=True, default=Any)
    Result = TypeVar("Result")

    class EpochOptions(TypedDict, total=False):
        """Those of them that ``tfseek.torch.IterableDataset`` passes on."""

        batch_size: Union[int, Sequence[int], None]
        global_batch_size: Union[int, Sequence[int], None]
        tokens_per_batch: Optional[int]
        bucket_by: Union[str, npt.ArrayLike, None]
        boundaries: Optional[Sequence[int]]
        padded: bool
        shuffle: Optional[Shuffle]
        block_bytes: Optional[int]
        balance: Optional[str]
        weights: Union[str, npt.ArrayLike, None]
        seed: Optional[int]
        epoch: int
        drop_last: bool
        last_batch: Optional[LastBatch]
        batches_ahead: Optional[int]
        memory: Optional[int]
        look_ahead: Optional[int]
        verify: Optional[LoaderVerify]
        damage: Optional[Damage]
        repeat: bool
        bytes_as: BytesAs
        ids: Optional[str]
        mask: Optional[str]
        augmentation_seed: Optional[str]
        transform_threads: int
        progress: Progress

    class LoaderOptions(EpochOptions, total=False):
        """Arguments of a :class:`Loader` that do not determine the type of its batches."""

        rank: int
        world_size: int
        worker: int
        workers: int
        threads: Optional[int]

else:
    from typing import TypeVar

    Batch = TypeVar("Batch", covariant=True)


#: Arguments of a loader that are not options of the native loader, or are passed separately.
_NOT_OPTIONS = {
    "self", "ds", "spec", "drop_last", "bytes_as", "ids", "mask", "augmentation_seed", "padded", "transform", "transform_threads",
    "progress",
}

#: Most threads of ``transform``.
_MAX_TRANSFORM_THREADS = 1024


class Loader(Generic[Batch]):
    """Batches of an epoch, in an order determined by seed and epoch, produced by threads that do not need the GIL.

    Each iteration is an epoch. ``iter(loader)`` begins the next epoch if the previous one is complete. If it was left early, the same
    epoch begins again, so ``next(iter(loader))`` does not consume an epoch. The first iteration after :meth:`load_state_dict` resumes
    at the state. ``next(loader)`` continues the newest iterator. The page "shuffling" of the documentation, "Epochs and iterators", has all rules.

    A batch is a dict of columns, as returned by :func:`tfseek.parse_example`. It is ``(context, sequence, lengths)`` for a schema of
    SequenceExamples, and a list of ``bytes`` without a spec. Arrays are read-only. Their memory is reused after the last of them is
    released.

    ds: a :class:`tfseek.Dataset`, or a view of one with ascending record numbers: ``ds[:1000]``, ``ds.filter("label == 3")``. Or a
        :class:`tfseek.Mix` of several, without a ``spec``. Or a :class:`tfseek.tfds.Dataset`, whose batches are nested dicts, with a list of its
        features as ``spec``, such as ``["image", "objects"]``, or ``None`` for all of them.
    spec: a dict of feature specs, a :class:`tfseek.Schema` (the file of ``--schema`` in the command), or ``None`` for unparsed records.
    batch_size, global_batch_size: number of samples per batch of one rank, or of all ranks together. Exactly one is required. With
        ``global_batch_size`` the samples of a step do not depend on the number of ranks.
    bucket_by, boundaries: batches of records of like length. ``bucket_by`` is a feature, whose number of values is the length, or an array with a
        length for each record of ``ds``. Bucket ``k`` has the records with ``boundaries[k - 1] < length <= boundaries[k]``, and one bucket more
        has those that are longer. Each batch has records of one bucket, in a step the same on all ranks. ``batch_size`` or
        ``global_batch_size`` is then a list with a size for each bucket. The first use of a feature builds a column.
    tokens_per_batch: in place of sizes: the number of values of a global batch. Each bucket has the largest batch that stays within it if all
        rows are as long as the bucket allows, and at least one row per rank.
    padded: replaces each ragged column by ``(values, mask)``, as :meth:`Ragged.to_padded` returns them. The column of ``bucket_by``
        has the length of the longest row of the global batch, other columns that of this rank's batch.
    shuffle: ``True`` or ``"global"``: a permutation of all records. ``"block"``: blocks of adjacent records, for slow disks and
        networks. ``False``: file order. Default: ``True`` if a seed is given.
    block_bytes: the size of the blocks of ``shuffle="block"``, of compressed shards decompressed. Default: 1 MiB. The same on all ranks; a
        resumed run has the blocks of its state.
    balance: a feature of ints or byte strings. Each of its values gets the same number of samples, shuffled separately, with ``shuffle="block"``
        within the blocks of a window. The first use builds a column of the feature.
    weights: a feature of numbers, or a number for each record of ``ds``. An epoch has as many samples as ``ds`` has records, drawn with replacement, each
        record with a probability proportional to its weight. The first use of a feature builds a column.
    rank, world_size: the rank of this process in a distributed job, and the number of ranks.
    worker, workers: restricts the loader to the steps ``worker``, ``worker + workers``, .. of this rank. For processes whose batches
        are used in rotation, like the workers of torch's ``DataLoader``. A worker's state is the end of its round of one step per
        worker.
    drop_last, last_batch: treatment of the last batch. ``drop_last=False`` loses no record: the batch is short on one rank, and padded on
        several (see ``mask``). ``True`` omits it. ``last_batch`` selects ``"short"``, ``"pad"``, ``"drop"`` or ``"continuous"``.
    threads: number of threads that produce batches. 0: none. Default: one, and more, up to one per processor, while the consumer waits for
        batches and more threads bring more of them. Batches do not depend on it.
    batches_ahead, memory, look_ahead: limits of prepared batches, of payload bytes in flight, and of bytes requested in advance.
    verify: ``"payload"``, ``"header"``, ``"first_epoch"`` or ``"none"``. Default: as the dataset.
    damage: ``"raise"``: a record that is damaged or does not fit the spec raises. ``"skip"``: it is left out, listed in ``skipped``, and counted in ``skipped_total``.
        On one rank the records that follow take its place. On several ranks and workers, with ``bucket_by`` and in a mix the rank's nearest sound
        row is repeated as padding (see ``mask``).
    repeat: if true, an iterator continues with the next epoch and never ends. Keep the iterator or call ``next(loader)``.
    bytes_as: form of byte strings, as for :func:`tfseek.parse_example`.
    ids, mask, augmentation_seed: names of columns to add: the record numbers (int64), a bool per row that is false for padding, and a
        seed per row (uint64). A seed depends only on the loader's seed, the epoch and the position, so augmentations that are drawn from it are
        the same on any number of ranks and threads and after a resume.
    transform: a function that is called with each batch, after these columns are added. The loader returns its result. A function whose second
        parameter has no default, or that has a parameter ``info``, also gets the :class:`tfseek.StepInfo` of the batch. States
        do not depend on it. After an exception of it, the batch counts as returned. A note of the exception has epoch, step and record
        numbers.
    transform_threads: number of threads that call ``transform``, at most 1024. The results have the order of the batches, and at most
        ``transform_threads + 2`` batches are ahead of the consumer. It helps if the function releases the GIL, as NumPy, PIL, OpenCV and torch do, and with
        an interpreter without a GIL. Default: 0, the thread that asks for the batch.
    progress: display of the scan for the column of ``balance``, ``bucket_by`` or ``weights``; :func:`tfseek.open` describes it.

    Raises :class:`tfseek.OrderError` and :class:`tfseek.SpecError`. An iteration raises :class:`tfseek.DataError` at the position of
    an invalid record, and the same iterator can continue after it.

    A forked child resumes at the position of its parent, with new threads.
    """

    @overload
    def __init__(self: Loader[list[bytes]], ds: Dataset[Any], spec: None = None, *, transform: None = None, **options: Unpack[LoaderOptions]) -> None: ...
    @overload
    def __init__(self: Loader[Any], ds: Mix, spec: None = None, *, transform: None = None, **options: Unpack[LoaderOptions]) -> None: ...
    @overload
    def __init__(self: Loader[dict[str, Any]], ds: TfdsDataset, spec: Optional[Iterable[str]] = None, *, transform: None = None, **options: Unpack[LoaderOptions]) -> None: ...
    @overload
    def __init__(self: Loader[dict[str, Any]], ds: Dataset[Any], spec: Mapping[Any, Any], *, transform: None = None, **options: Unpack[LoaderOptions]) -> None: ...
    @overload
    def __init__(
        self: Loader[Result],
        ds: Union[Dataset[Any], Mix, TfdsDataset],
        spec: Union[Features, Iterable[str], None] = None,
        *,
        transform: Callable[..., Result],
        **options: Unpack[LoaderOptions],
    ) -> None: ...
    # A schema: batches are dicts, or tuples for SequenceExamples.
    @overload
    def __init__(self: Loader[Any], ds: Dataset[Any], spec: Optional[Features] = None, *, transform: None = None, **options: Unpack[LoaderOptions]) -> None: ...
    def __init__(
        self,
        ds: Union[Dataset[Any], Mix, TfdsDataset],
        spec: Union[Features, Iterable[str], None] = None,
        *,
        batch_size: Union[int, Sequence[int], None] = None,
        global_batch_size: Union[int, Sequence[int], None] = None,
        tokens_per_batch: Optional[int] = None,
        bucket_by: Union[str, npt.ArrayLike, None] = None,
        boundaries: Optional[Sequence[int]] = None,
        padded: bool = False,
        shuffle: Optional[Shuffle] = None,
        block_bytes: Optional[int] = None,
        balance: Optional[str] = None,
        weights: Union[str, npt.ArrayLike, None] = None,
        seed: Optional[int] = None,
        epoch: int = 0,
        rank: int = 0,
        world_size: int = 1,
        worker: int = 0,
        workers: int = 1,
        drop_last: bool = False,
        last_batch: Optional[LastBatch] = None,
        threads: Optional[int] = None,
        batches_ahead: Optional[int] = None,
        memory: Optional[int] = None,
        look_ahead: Optional[int] = None,
        verify: Optional[LoaderVerify] = None,
        damage: Optional[Damage] = None,
        repeat: bool = False,
        bytes_as: BytesAs = "objects",
        ids: Optional[str] = None,
        mask: Optional[str] = None,
        augmentation_seed: Optional[str] = None,
        transform: Optional[Callable[..., Any]] = None,
        transform_threads: int = 0,
        progress: Progress = None,
    ) -> None:
        # The first statement: the local variables are the arguments.
        options = {name: value for name, value in locals().items() if name not in _NOT_OPTIONS}
        source, schema = source_of(ds, spec)
        ds = cast(Union[Dataset[Any], Mix], source)
        if isinstance(ds, Mix) and schema is not None:
            raise TypeError("expected the specs of a mix in its sources, found one in the loader")
        schemas = ds._schemas if isinstance(ds, Mix) else [schema]
        columns = ds._columns() if isinstance(ds, Mix) else set() if schema is None else columns_of(schema)
        added = {"ids": ids, "mask": mask, "augmentation_seeds": augmentation_seed}
        if isinstance(ds, Mix):
            added["sources"] = ds._source
        self._added = [(name, attribute) for attribute, name in added.items() if name is not None]
        for k, (name, attribute) in enumerate(self._added):
            if not isinstance(name, str):
                raise TypeError(f"expected ids, mask and augmentation_seed to be names of columns, found {name!r}")
            if any(schema is None or schema.is_sequence for schema in schemas):
                raise ValueError(f"the column {name!r} requires batches of Examples: use loader.{attribute}")
            if name in columns:
                raise ValueError(f"the column {name!r} exists already")
            if any(name == other for other, _ in self._added[:k]):
                raise ValueError(f"expected different names for ids, mask, augmentation_seed and source, found {name!r} twice")
        if transform is not None and not callable(transform):
            raise TypeError(f"transform: expected a function of a batch, found {transform!r}")
        if isinstance(ds, Mix) and bucket_by is not None:
            raise ValueError("bucket_by: expected a dataset, found a mix")
        if weights is not None:
            check_weights(options, ds)
        self._buckets = check_buckets(options, cast(Any, ds))
        if padded and not self._buckets:
            raise ValueError("padded=True requires bucket_by")
        if padded and schema is None:
            raise ValueError("padded=True requires a spec")
        self._padding = Padding(schema, bucket_by) if padded and schema is not None else None
        threads_of_transform = operator.index(transform_threads)
        if not 0 <= threads_of_transform <= _MAX_TRANSFORM_THREADS:
            message = f"transform_threads: expected 0 to {_MAX_TRANSFORM_THREADS}, found {transform_threads}"
            raise ValueError(message)
        if threads_of_transform and transform is None:
            raise ValueError("transform_threads requires a transform")
        self._clock = LoaderClock()
        #: Adds columns to a batch and transforms it. It does not refer to the loader.
        self._function: Optional[Guarded] = None
        if transform is not None:
            call = with_info(transform)
            call = call if self._padding is None else self._padding.before(call)
            self._function = Guarded(functools.partial(self._clock.timed, transformed, call, self._added))
        self._transform_threads = threads_of_transform
        self._ahead: Optional[TransformThreads] = None
        self._starting = threading.Lock()
        self._seed = seed
        if balance is not None and isinstance(shuffle, (bool, np.bool_)) and not shuffle:
            raise OrderError('balance: classes are shuffled: expected shuffle=True or "block", found False')
        options["shuffle"] = shuffle_name(seed is not None if shuffle is None else shuffle)
        options["last_batch"] = last_batch_name(drop_last, last_batch)
        self._core = LoaderCore(ds._native() if isinstance(ds, Mix) else ds, schema, bytes_as, options, progress)
        raise_all(self._core.warnings)
        self._last: Optional[StepInfo] = None

    def __iter__(self) -> Iterator[Batch]:
        """Begins an iteration: over the next epoch, or over the same one if it was left early. Ends all earlier iterators."""
        return _Iteration(self, self._core.begin())

    def __next__(self) -> Batch:
        """Returns the next batch of the newest iterator. Begins an iteration if there is none or it has ended."""
        batch: Batch = self._step(None)
        return batch

    def _step(self, iteration: Optional[int]) -> Any:
        if self._function is not None:
            self._function.check()
        requested = self._clock.requested()
        if self._transform_threads:
            return self._step_ahead(iteration, requested)
        step = self._core.step(iteration)
        if step is None:
            self._clock.ended(requested)
            raise StopIteration
        # Another thread may replace `_last` before this batch is complete.
        batch, info = step
        self._last = info
        self._clock.count(len(info), info.payload_bytes, info.cells)
        arrived = time.perf_counter()
        try:
            if self._function is not None:
                return self._function(batch, info)
            add_columns(batch, self._added, info)
            if self._padding is not None:
                self._padding.pad(batch, info)
            return batch
        finally:
            self._clock.returned(requested, arrived)

    def _step_ahead(self, iteration: Optional[int], requested: float) -> Any:
        """Returns the next result of the threads of ``transform``."""
        done = None
        while done is None:
            with self._starting:
                if self._core.is_exhausted(iteration):
                    raise StopIteration
                if self._ahead is None or not self._ahead.usable:
                    assert self._function is not None
                    self._ahead = TransformThreads(self._core, iteration, self._transform_threads, self._function)
                ahead = self._ahead
            done = ahead.next(iteration)
        if done.step is not None and done.step.is_end:
            self._clock.ended(requested)
            raise StopIteration
        info = None if done.step is None else done.step.info
        if info is not None:
            self._last = info
            self._clock.count(len(info), info.payload_bytes, info.cells)
        self._clock.returned(requested, time.perf_counter())
        if done.error is not None:
            raise done.error
        return done.result

    def __reduce__(self) -> Any:
        # Also of copies. It raises the error.
        return self._core.__reduce__()

    def __del__(self) -> None:
        # The threads do not refer to the loader.
        ahead = getattr(self, "_ahead", None)
        if ahead is not None:
            ahead.retire()

    def __len__(self) -> int:
        """Number of steps per epoch, the same on all ranks. With ``workers`` the steps of this worker.

        Of a mix it is the number of steps to the next end of an epoch.
        """
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
        return np.empty(0, np.int64) if self._last is None else self._last.ids

    @property
    def sources(self) -> npt.NDArray[np.int64]:
        """Numbers of the sources of the last batch's rows, in a mix."""
        return np.empty(0, np.int64) if self._last is None else self._last.sources

    @property
    def mask(self) -> npt.NDArray[np.bool_]:
        """Mask of the last batch: false for rows that are padding, which metrics must ignore."""
        return np.empty(0, np.bool_) if self._last is None else self._last.mask

    @property
    def augmentation_seeds(self) -> npt.NDArray[np.uint64]:
        """Augmentation seeds of the rows of the last batch."""
        return np.empty(0, np.uint64) if self._last is None else self._last.augmentation_seeds

    @property
    def skipped(self) -> list[tuple[int, str]]:
        """Record numbers and errors of the records skipped in the last batch, with ``damage="skip"``.

        :attr:`skipped_total` and :attr:`skipped_by_file` count those of all batches, and those after the last batch of an epoch.
        """
        return [] if self._last is None else self._last.skipped

    @property
    def skipped_total(self) -> int:
        """Number of records skipped in all batches that this loader returned, over all epochs."""
        return sum(self.skipped_by_file.values())

    @property
    def skipped_by_file(self) -> dict[str, int]:
        """The same number for each file that has such records, by its path."""
        return self._core.skipped_by_file

    @property
    def warnings(self) -> list[Warning]:
        """Warnings about the order, for example that it is slow for this dataset."""
        return self._core.warnings

    def report(self) -> Report:
        """Returns what was delivered and where the time went, since the loader was created, in this process.

        A long wait with little time in ``disk``, ``parse`` and ``transform`` per thread means that more threads help. A long wait for the disk means
        that ``look_ahead`` or another disk helps. A short wait means that the consumer is the limit.
        """
        disk, parse, decode, threads = self._core.times()
        clock, traffic = self._clock, self._core.traffic()
        return Report(
            steps=clock.steps,
            rows=clock.rows,
            bytes=clock.bytes,
            seconds=clock.seconds,
            wait_s=clock.wait,
            consumer_s=clock.consumer,
            disk_s=disk,
            parse_s=parse,
            decode_s=decode,
            transform_s=clock.transform,
            threads=threads,
            padding=clock.padding(),
            skipped=self.skipped_total,
            traffic=None if traffic is None else Traffic(*traffic),
        )

    def describe(self) -> str:
        """Returns a description of the order and its cost."""
        return self._core.describe()

    def rows_of(self, record: Union[int, np.integer[Any]], epoch: Optional[int] = None) -> list[tuple[int, int, int]]:
        """Returns where a record is in an epoch: a list of ``(step, rank, row)``, without padding. It is computed, and nothing is read.

        Steps count from the start of the epoch, by default the current one, and over all workers. ``row`` is the row in the batch of
        ``rank`` if no record is skipped. The list is empty if the epoch omits the record. ``record`` is
        its number in the whole dataset, as in :attr:`ids`. With ``last_batch="continuous"`` the steps are those of a run that begins with this
        epoch. The command is ``tfseek order --record``.

        Raises :class:`tfseek.OutOfRangeError` for a number that is not a record.
        """
        return self._core.rows_of(record, epoch)

    def set_epoch(self, epoch: int) -> None:
        """Selects the epoch of the next iteration, which begins at its start, even if it is the current epoch.

        If that epoch is about to begin already, nothing changes. A loaded state in that epoch is kept; :meth:`reset` drops it.
        """
        self._core.set_epoch(epoch)

    def reset(self) -> None:
        """Restarts the current epoch with the next iteration."""
        self._core.reset()

    def state_dict(self) -> dict[str, Any]:
        """Returns a state for a checkpoint. It is JSON-safe, below 1 KiB (4 KiB with ``bucket_by`` or a mix), and the same on all ranks.

        It is the position after the last batch that the newest iterator returned. After the last batch of an epoch it is the start of
        the next epoch.
        """
        return state_of(self._core.state())

    def _upcoming(self) -> dict[str, Any]:
        """Returns the state at which the next iteration begins."""
        return state_of(self._core.upcoming())

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Resumes the next iteration at a state. The number of ranks, threads and the batch size may differ. Buckets keep the
        batch sizes of the state.

        The seed is that of the state. A :class:`UserWarning` tells if it is not the ``seed`` of this loader. Raises
        :class:`tfseek.OrderError` for the state of another dataset or another kind of order, which says what differs.
        """
        self._seek(state)
        warn_of_seed(state, self._seed)

    def _seek(self, state: dict[str, Any]) -> None:
        """Does the same without the warning."""
        self._core.seek(state_text(state))

    def close(self) -> None:
        """Stops the threads."""
        self._core.close()
        if self._ahead is not None:
            self._ahead.join()

    def __enter__(self) -> Loader[Batch]:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        progress = self._core.progress()
        if progress is None:
            return "tfseek.Loader(closed)"
        samples, position = progress
        at = f"step {position}" if self._buckets else f"position {position} of {samples}"
        return (
            f"tfseek.Loader({len(self)} batches, {samples} samples, {self.describe()}, "
            f"epoch {self.epoch}, {at})"
        )


class _Iteration(Iterator[Any]):
    """One iteration over a loader."""

    def __init__(self, loader: Loader[Any], number: int) -> None:
        self._loader, self._number, self._ended = loader, number, False

    def __next__(self) -> Any:
        if self._ended:
            raise StopIteration
        try:
            return self._loader._step(self._number)
        except StopIteration:
            self._ended = True
            raise


def state_of(text: str) -> dict[str, Any]:
    """Returns the state in the JSON form of Rust."""
    state: dict[str, Any] = json.loads(text)
    return state


def state_text(state: Any) -> str:
    """Returns the JSON form of a state. Rust reads and validates it."""
    if not isinstance(state, dict) or not state:
        raise OrderError(f"state: expected a dict from state_dict(), found {short(state)}")
    return json.dumps(state)


def warn_of_seed(state: dict[str, Any], seed: Optional[int]) -> None:
    """Warns the caller of the caller if a loaded state has another seed than the one that was chosen."""
    found = state.get("seed")
    # A negative seed is the unsigned number with the same bits.
    if seed is not None and found != int(seed) % 2**64:
        message = f"the state has seed={found}, which is used in place of seed={seed}: create a new loader for another order"
        warnings.warn(message, UserWarning, stacklevel=3)


def shuffle_name(shuffle: Union[bool, str]) -> Optional[str]:
    """Returns the native name of an order, or ``None`` for file order."""
    if isinstance(shuffle, (bool, np.bool_)):
        return "global" if shuffle else None
    if not isinstance(shuffle, str):
        buffer = "; it shuffles the whole epoch and has no buffer size" if isinstance(shuffle, (int, np.integer)) else ""
        raise TypeError(f'shuffle: expected True, False, "global" or "block", found {shuffle!r}{buffer}')
    return shuffle


def last_batch_name(drop_last: bool, last_batch: Optional[LastBatch]) -> Optional[str]:
    """Returns the native name of a treatment of the last batch. ``None``: it depends on the number of ranks."""
    if drop_last and last_batch not in (None, "drop"):
        raise ValueError(f"drop_last=True is last_batch='drop', found last_batch={last_batch!r}")
    return "drop" if drop_last else last_batch
