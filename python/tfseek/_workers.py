"""Worker processes of a ``DataLoader`` and frameworks around it: which epoch workers begin, and who divides the batches among ranks."""

from __future__ import annotations

import contextlib
import multiprocessing
import multiprocessing.context
import sys
from typing import Any, Optional

import torch

#: Number of iterations whose epoch is known, and seconds to wait for another worker that looks one up.
_ITERATIONS, _PATIENCE = 64, 5.0

#: Classes that divide batches or record numbers among ranks, with the first word of their module.
_DIVIDERS = {
    "DataLoaderDispatcher": "accelerate",
    "IterableDatasetShard": "accelerate",
    "BatchSamplerShard": "accelerate",
    "DistributedSamplerWrapper": "lightning",
    "_DatasetSamplerWrapper": "lightning",
}

_REMEDIES = {
    "accelerate": (
        "do not pass its DataLoader to accelerator.prepare, and move each batch with .to(accelerator.device); of a transformers.Trainer override "
        "get_train_dataloader with `return DataLoader(self.train_dataset, batch_size=None)`"
    ),
    "lightning": "use Trainer(use_distributed_sampler=False)",
}


class WorkerEpochs:
    """The epochs that workers began, in memory that all processes share.

    A worker begins with a copy of the dataset as it is in the parent, which does not advance. So the first worker of an iteration notes the
    epoch that follows the iteration before, and the others follow it.
    """

    def __init__(self) -> None:
        #: The number of iterations, and of the last ones the seed of the workers, the epoch, and 1 if it is the parent's position.
        self._begun = torch.zeros(1 + 3 * _ITERATIONS, dtype=torch.int64).share_memory_()
        self._lock: Any = _lock()

    def next(self, seed: int, epoch: int, chosen: bool) -> Optional[int]:
        """Returns the epoch that the workers with a common ``seed`` begin. ``None``: where the parent would begin, in ``epoch``.

        ``chosen``: the parent was moved since the last iteration, or this worker loaded a state.
        """
        # A worker that was killed while it held the lock keeps it.
        held = self._lock.acquire(timeout=_PATIENCE)
        try:
            count, *known = self._begun.tolist()
            for k in range(min(count, _ITERATIONS)):
                if known[3 * k] == seed:
                    return None if known[3 * k + 2] else known[3 * k + 1] % 2**64
            if not chosen and count:
                epoch = (known[3 * ((count - 1) % _ITERATIONS) + 1] + 1) % 2**64
            # The tensor has signed integers.
            entry = [seed, epoch - 2**64 if epoch >= 2**63 else epoch, int(chosen or not count)]
            at = 1 + 3 * (count % _ITERATIONS)
            self._begun[at : at + 3] = torch.tensor(entry)
            self._begun[0] = count + 1
            return None if entry[2] else epoch
        finally:
            if held:
                self._lock.release()

    def __getstate__(self) -> dict[str, Any]:
        # Only a process that is being started can get the lock. Other copies have their own.
        spawning = multiprocessing.context.get_spawning_popen() is not None
        return {"_begun": self._begun, "_lock": self._lock if spawning else None}

    def __setstate__(self, fields: dict[str, Any]) -> None:
        self._begun, lock = fields["_begun"].share_memory_(), fields["_lock"]
        self._lock = _lock() if lock is None else lock


def _lock() -> Any:
    # One of this context can also be used by processes that are forked.
    return multiprocessing.get_context("spawn").Lock()


def check_undivided(world_size: int) -> None:
    """Raises :class:`ValueError` if the caller of this iteration divides batches among ranks, which a share of one rank is already.

    It would drop all but its part of each rank's share. Frameworks tell a dataset nothing, so the callers are looked through. Workers that
    are forked have the frames of their parent, and a dataset for others is pickled among these.
    """
    if world_size < 2:
        return
    frame: Any = sys._getframe(1)
    while frame is not None:
        owner = frame.f_locals.get("self") if "self" in frame.f_code.co_varnames[:1] else None
        framework = _divider(owner)
        if framework is not None:
            raise ValueError(
                f"{framework} divides batches among ranks, and this is the share of one of {world_size} ranks already, so records would be "
                f"lost: {_REMEDIES[framework]}; or let {framework} divide all of them: rank=0, world_size=1"
            )
        frame = frame.f_back


def _divider(owner: Any) -> Optional[str]:
    with contextlib.suppress(Exception):
        for kind in type(owner).__mro__:
            word = _DIVIDERS.get(kind.__name__)
            if word is not None and word in kind.__module__.split(".")[0]:
                return word
    return None
