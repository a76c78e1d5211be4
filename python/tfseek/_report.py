"""``Loader.report()``: where the time went."""

from __future__ import annotations

import dataclasses
import json
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Optional


@dataclass(frozen=True)
class Traffic:
    """The requests for bytes of objects since a :class:`tfseek.Loader` was made, in this process. Other readers of the same data set count too."""

    #: Number of answered requests, bytes of their answers, and number of those that repeated a slow one.
    requests: int
    bytes: int
    repeated: int
    #: Number of pieces from the cache on disk, and their bytes.
    cached: int
    cached_bytes: int
    #: Largest number of bytes in memory that were requested ahead and not read.
    held: int
    #: Number of reads that waited for bytes, and their seconds, added up over the threads.
    waits: int
    wait_s: float
    #: Seconds that half, 90 % and 99 % of the last thousand requests did not exceed.
    latency_p50_s: float
    latency_p90_s: float
    latency_p99_s: float

    def __str__(self) -> str:
        cached = f", {self.cached} pieces of {self.cached_bytes} bytes from the cache" if self.cached else ""
        return (
            f"{self.requests} requests of {self.bytes} bytes{cached}, waited {self.wait_s:.3g} s, "
            f"latency p50 {self.latency_p50_s:.3g} s, p99 {self.latency_p99_s:.3g} s"
        )


@dataclass(frozen=True)
class Report:
    """The batches that a :class:`tfseek.Loader` has delivered in this process, and where the time went.

    ``str(report)`` is one line, and :meth:`to_json` has all fields.
    """

    #: Number of delivered batches, of their rows and of their payload bytes.
    steps: int
    rows: int
    bytes: int
    #: Seconds from the request of the first batch to the return of the last one, without the time between epochs.
    seconds: float
    #: Seconds in which the consumer waited for batches.
    wait_s: float
    #: Seconds between the return of a batch and the request of the next one.
    consumer_s: float
    #: Seconds of reading and of parsing, added up over the threads. Records that are mapped and in memory are not read, and are verified while
    #: they are parsed.
    disk_s: float
    parse_s: float
    #: Seconds of decoding pictures and features of TensorFlow Datasets, added up over the threads.
    decode_s: float
    #: Seconds in ``transform``, added up over the threads.
    transform_s: float
    #: Number of threads that produce batches: the ``threads`` of the loader, or the number that it has chosen so far.
    threads: int
    #: Share of padding in the batches if each is padded to the longest row of its global batch. ``None`` without ``bucket_by``, and before the
    #: first batch.
    padding: Optional[float]
    #: Number of skipped records.
    skipped: int
    #: What was requested of a store. ``None`` for files, and of a closed loader.
    traffic: Optional[Traffic] = None

    def to_json(self) -> str:
        """Returns all fields as JSON."""
        return json.dumps(dataclasses.asdict(self))

    def __str__(self) -> str:
        share = f" ({100 * self.wait_s / self.seconds:.0f} %)" if self.seconds else ""
        skipped = f", {self.skipped} skipped" if self.skipped else ""
        padding = "" if self.padding is None else f", {100 * self.padding:.0f} % padding"
        decode = f", decode {self.decode_s:.3g} s" if self.decode_s else ""
        return (
            f"{self.steps} steps, {self.rows} rows{skipped}{padding}, {self.bytes} bytes in {self.seconds:.3g} s: "
            f"waited {self.wait_s:.3g} s{share}, consumer {self.consumer_s:.3g} s; "
            f"{self.threads} threads: disk {self.disk_s:.3g} s, parse {self.parse_s:.3g} s{decode}; transform {self.transform_s:.3g} s"
            + (f"; {self.traffic}" if self.traffic else "")
        )


class LoaderClock:
    """The time of the thread that asks for batches, and of the threads that transform them."""

    def __init__(self) -> None:
        self.steps = self.rows = self.bytes = 0
        self._cells: Optional[tuple[int, int]] = None
        self.seconds = self.wait = self.consumer = self.transform = 0.0
        #: When the last batch was returned. ``None`` before the first one and between epochs.
        self._returned: Optional[float] = None
        self._lock = threading.Lock()

    def requested(self) -> float:
        """Begins the wait for a batch. Returns the time."""
        now = time.perf_counter()
        if self._returned is not None:
            self.consumer += now - self._returned
            self.seconds += now - self._returned
            self._returned = now
        return now

    def returned(self, requested: float, arrived: float) -> None:
        """Ends the wait for a batch that arrived, and returns it now."""
        self.wait += arrived - requested
        self._returned = time.perf_counter()
        self.seconds += self._returned - requested

    def count(self, rows: int, payload_bytes: int, cells: Optional[tuple[int, int]]) -> None:
        """Counts a batch. ``cells``: of the padded batch, and those with values."""
        self.steps += 1
        self.rows += rows
        self.bytes += payload_bytes
        if cells is not None:
            total, values = self._cells or (0, 0)
            self._cells = (total + cells[0], values + cells[1])

    def padding(self) -> Optional[float]:
        """Returns the share of cells without values."""
        if self._cells is None:
            return None
        total, values = self._cells
        return 1 - values / total if total else 0.0

    def ended(self, requested: float) -> None:
        """Ends the wait for a batch with the end of an epoch."""
        now = time.perf_counter()
        self.wait += now - requested
        self.seconds += now - requested
        self._returned = None

    def timed(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Calls a function and adds its time to that of ``transform``."""
        start = time.perf_counter()
        try:
            return function(*arguments)
        finally:
            seconds = time.perf_counter() - start
            with self._lock:
                self.transform += seconds
