"""The peers: their tasks, requirements and settings."""
from __future__ import annotations

import importlib
import os
from typing import Any, Callable, NamedTuple, Optional

from corpora import CORPORA, FORMATS

BATCH = 256
CORES = len(os.sched_getaffinity(0))
MAIN = CORPORA[:-1]


class Peer(NamedTuple):
    """A way to do a task. Peers of a family are settings of the same library, of which the best counts."""

    task: str
    family: str
    setting: str
    make: Callable[..., Any]
    corpora: list[str]
    form: str
    imports: tuple[str, ...]
    #: True if an epoch contains each record exactly once.
    whole: bool

    @property
    def name(self) -> str:
        return f"{self.family}, {self.setting}" if self.setting else self.family

    def missing(self) -> Optional[str]:
        """Imports the required modules. Returns the error if that fails."""
        try:
            for module in self.imports:
                importlib.import_module(module)
        except ImportError as e:
            return str(e)
        return None


PEERS: dict[tuple[str, str], Peer] = {}


def peer(tasks, family, setting="", *, corpora=MAIN, form="tfrecord", imports=(), whole=True, **arguments):
    """Registers a function of a corpus, with these arguments, for one or more tasks."""

    def add(make):
        for task in [tasks] if isinstance(tasks, str) else tasks:
            # The corpus with many shards is for the first-batch task only.
            where = [c for c in corpora if c in FORMATS[form] and (c in MAIN or task == "first_batch")]
            found = Peer(task, family, setting, lambda corpus, **more: make(corpus, **arguments, **more), where, form,
                         tuple(imports), whole)
            PEERS[task, found.name] = found
        return make

    return add
