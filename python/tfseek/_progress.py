"""Progress displays: the argument ``progress=`` of long calls."""

from __future__ import annotations

import importlib
import multiprocessing
import sys
import time
from collections.abc import Mapping
from typing import Any, Callable, Optional, Union

Report = Callable[[int, Optional[int]], object]
Progress = Union[None, bool, Report, Any]

REDRAW_SECONDS = 0.1
#: Seconds after which work without the argument ``progress`` is shown on a terminal.
SLOW_SECONDS = 1.0


def progress_of(progress: Progress, what: str, in_bytes: bool) -> tuple[Report, Callable[[], object]]:
    """Returns ``(report, close)`` for the argument ``progress``: ``report(done, total)`` is called during the work, ``close()`` at its
    end.
    """
    if progress is True and sys.stderr is None:
        # A process without a console.
        return (lambda done, total: None), lambda: None
    if progress is True:
        try:
            progress = importlib.import_module("tqdm.auto").tqdm
        except ImportError:
            line = Line(what, in_bytes)
            return line.report, line.close
    if isinstance(progress, type) and hasattr(progress, "update"):
        unit = {"unit": "B", "unit_scale": True, "unit_divisor": 1024} if in_bytes else {"unit": " records"}
        bar: Any = progress(desc=what, **unit)
        return Bar(bar).report, bar.close
    if callable(getattr(progress, "update", None)) and not isinstance(progress, Mapping):
        # The caller created the bar, and closes it.
        return Bar(progress).report, lambda: None
    if isinstance(progress, Line):
        return progress.report, progress.close
    if callable(progress):
        return progress, lambda: None
    raise TypeError(f"progress: expected a bool, a callable or a tqdm bar, found {type(progress).__name__}")


def when_slow(progress: Progress, what: str) -> Progress:
    """Returns ``progress``, or if it is ``None`` a line on the terminal that appears when the work takes long, and goes at its end."""
    if progress is not None or not on_terminal() or multiprocessing.parent_process() is not None:
        return progress
    return Line(what, True, SLOW_SECONDS)


def on_terminal() -> bool:
    """Returns true if standard error is a terminal."""
    return sys.stderr is not None and sys.stderr.isatty()


class Bar:
    """Updates a progress bar that has the methods of ``tqdm``."""

    def __init__(self, bar: Any) -> None:
        self.bar = bar
        self.done = 0
        # A total that the caller has set is kept.
        self.sets_total = getattr(bar, "total", None) is None

    def report(self, done: int, total: Optional[int]) -> None:
        if self.sets_total and total is not None:
            self.bar.total = total
        self.bar.update(done - self.done)
        self.done = done


class Line:
    """A line on standard error: redrawn on a terminal, otherwise written once at the end. One that appears only after some seconds is
    removed at the end."""

    def __init__(self, what: str, in_bytes: bool, after: float = 0.0) -> None:
        self.what, self.in_bytes, self.after = what, in_bytes, after
        self.text = ""
        self.next = time.monotonic() + after if after else 0.0
        self.shown = False

    def report(self, done: int, total: Optional[int]) -> None:
        share = "" if not total else f" of {self.amount(total)}"
        self.text = f"{self.what}: {self.amount(done)}{share}"
        now = time.monotonic()
        if now >= self.next and on_terminal():
            self.next, self.shown = now + REDRAW_SECONDS, True
            print(f"\r{self.text}\x1b[K", end="", file=sys.stderr, flush=True)

    def close(self) -> None:
        if self.after:
            if self.shown:
                print("\r\x1b[K", end="", file=sys.stderr, flush=True)
            return
        start = "\r" if on_terminal() else ""
        print(f"{start}{self.text}", file=sys.stderr)

    def amount(self, count: int) -> str:
        return f"{count / 2**20:.0f} MiB" if self.in_bytes else f"{count} records"
