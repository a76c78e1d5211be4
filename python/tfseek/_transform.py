"""Functions of batches, called by several threads, with their results in the order of the batches."""

from __future__ import annotations

import atexit
import inspect
import os
import sys
import threading
import weakref
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Optional

from ._tfseek import LoaderCore, StepInfo, TakenStep

#: Record numbers in the note of an exception.
_IDS = 32

#: Seconds between two checks for signals while a thread waits. Windows does not interrupt a wait.
_SIGNALS = 0.5


def with_info(transform: Callable[..., Any]) -> Callable[[Any, StepInfo], Any]:
    """Returns a function of a batch and its :class:`StepInfo` that calls ``transform`` with the arguments it wants.

    It wants the info if its second positional parameter has no default, or if a parameter is called ``info``.
    """
    try:
        parameters = inspect.signature(transform).parameters
    except (TypeError, ValueError):
        # Some functions in C have no signature.
        return lambda batch, info: transform(batch)
    info = parameters.get("info")
    positional = [p for p in parameters.values() if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    if info is not None and info.kind in (info.KEYWORD_ONLY, info.POSITIONAL_OR_KEYWORD):
        return lambda batch, info: transform(batch, info=info)
    if len(positional) > 1 and (positional[1].default is inspect.Parameter.empty or positional[1] is info):
        return transform
    return lambda batch, info: transform(batch)


class Guarded:
    """A function of a batch and its info, which a loader's iterator must not be used in: it would wait for its own result."""

    def __init__(self, function: Callable[[Any, StepInfo], Any]) -> None:
        self._function, self._calls = function, threading.local()

    def __call__(self, batch: Any, info: StepInfo) -> Any:
        self._calls.inside = True
        try:
            return self._function(batch, info)
        finally:
            self._calls.inside = False

    def check(self) -> None:
        """Raises :class:`RuntimeError` in a call of the function."""
        if getattr(self._calls, "inside", False):
            raise RuntimeError("transform asks its own loader for a batch, which waits for this transform: use a second loader")


def transformed(transform: Callable[[Any, StepInfo], Any], added: Iterable[tuple[str, str]], batch: Any, info: StepInfo) -> Any:
    """Adds columns to a batch and returns the result of ``transform``. An exception gets a note with epoch, step and record numbers.

    ``added`` has the name of each column and the attribute of ``info`` with its values.
    """
    add_columns(batch, added, info)
    try:
        return transform(batch, info)
    except StopIteration as error:
        # In an iterator it would end the epoch silently.
        raise noted(RuntimeError("transform raised StopIteration"), _place(info)) from error
    except BaseException as error:
        noted(error, _place(info))
        raise


def add_columns(batch: Any, added: Iterable[tuple[str, str]], info: StepInfo) -> None:
    """Adds columns of attributes of ``info``."""
    for name, attribute in added:
        batch[name] = getattr(info, attribute)


def _place(info: StepInfo) -> str:
    ids = ", ".join(str(i) for i in info.ids[:_IDS].tolist())
    more = f", .. ({len(info)} records)" if len(info) > _IDS else ""
    return f"in transform of epoch {info.epoch}, step {info.step}, records {ids}{more}"


def noted(error: BaseException, note: str) -> BaseException:
    """Adds a note to an exception. Before Python 3.11 tracebacks display no notes, so it is the message of its cause as well."""
    if sys.version_info >= (3, 11):
        error.add_note(note)
    else:
        error.__notes__ = [*getattr(error, "__notes__", []), note]  # type: ignore[attr-defined]
        if error.__cause__ is None:
            error.__cause__ = RuntimeError(note)
    return error


@dataclass(frozen=True)
class TransformedStep:
    """A step that was taken, and the result of its batch or the exception in its place.

    ``step`` is ``None`` if none could be taken because of ``error``.
    """

    step: Optional[TakenStep]
    result: Any
    error: Optional[BaseException]


class TransformThreads:
    """Threads that take the steps of a loader from its position on, and call ``function`` with each batch and its info.

    At most ``threads + 2`` steps are taken and not yet delivered. Results are delivered in the order of the steps. ``iteration`` is the iteration
    that the steps are for, by default the newest one.
    """

    def __init__(self, core: LoaderCore, iteration: Optional[int], threads: int, function: Callable[[Any, StepInfo], Any]) -> None:
        self._core, self._function = core, function
        self._generation = core.begin_ahead(iteration)
        self._pid = os.getpid()
        self._changed = threading.Condition()
        self._taking, self._delivering = threading.Lock(), threading.Lock()
        self._limit = threads + 2
        #: Number of steps that were taken, and of those that were delivered.
        self._taken = self._delivered = 0
        #: The results that were not delivered, by the number of their step.
        self._done: dict[int, TransformedStep] = {}
        self._stopped = self._retired = False
        self._threads = [
            threading.Thread(target=self._run, name=f"tfseek-transform-{k}", daemon=True) for k in range(threads)
        ]
        _RUNNING.add(self)
        for thread in self._threads:
            thread.start()

    @property
    def usable(self) -> bool:
        """False if no more steps can be delivered, and in a forked child, which has no threads."""
        return not self._retired and self._pid == os.getpid()

    def next(self, iteration: Optional[int]) -> Optional[TransformedStep]:
        """Waits for the next step and delivers it. ``None``: these threads can deliver no more."""
        with self._delivering:
            if self._retired:
                return None
            done = self._wait()
            if done.step is None:
                self.retire()
                # The error may be that the loader was moved.
                if done.error is not None and self._core.is_current(self._generation):
                    raise done.error
                return None
            if not self._core.deliver(done.step, iteration):
                self.retire()
                return None
            with self._changed:
                del self._done[self._delivered]
                self._delivered += 1
                self._changed.notify_all()
            if done.step.is_end:
                self.retire()
            return done

    def retire(self) -> None:
        """Makes the threads end after their current batches. Nothing more is delivered."""
        self._retired = True
        self._stop()

    def join(self) -> None:
        """Ends the threads and waits for them."""
        self.retire()
        for thread in self._threads if self._pid == os.getpid() else []:
            if thread is not threading.current_thread():
                thread.join()

    def _stop(self) -> None:
        """Makes the threads take no more steps."""
        if self._pid == os.getpid():
            with self._changed:
                self._stopped = True
                self._changed.notify_all()

    def _wait(self) -> TransformedStep:
        """Waits for the next step to deliver."""
        with self._changed:
            while self._delivered not in self._done:
                self._changed.wait(_SIGNALS)
            return self._done[self._delivered]

    def _run(self) -> None:
        while True:
            with self._taking:
                number = self._number()
                if number is None:
                    return
                step = batch = error = None
                try:
                    step, batch, error = self._core.take(self._generation)
                except BaseException as raised:
                    error = raised
                if step is None or step.is_end:
                    self._stop()
            result = None
            if step is not None and step.info is not None:
                try:
                    result = self._function(batch, step.info)
                except BaseException as raised:
                    error = raised
            with self._changed:
                self._done[number] = TransformedStep(step, result, error)
                self._changed.notify_all()
            # Not kept while this thread waits.
            del step, batch, result, error

    def _number(self) -> Optional[int]:
        """Waits until another step may be taken, and returns its number. ``None``: no more steps."""
        with self._changed:
            while not self._stopped and self._taken - self._delivered >= self._limit:
                self._changed.wait()
            if self._stopped:
                return None
            self._taken += 1
            return self._taken - 1


#: Threads must end before the interpreter does: they call native code.
_RUNNING: weakref.WeakSet[TransformThreads] = weakref.WeakSet()


@atexit.register
def _join_all() -> None:
    running = list(_RUNNING)
    for threads in running:
        threads.retire()
    for threads in running:
        threads.join()
