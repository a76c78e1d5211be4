"""Parts of a dataset in plain processes, which are started again if they die."""

from __future__ import annotations

import json
import multiprocessing
import os
import pathlib
import pickle
import tempfile
from typing import Any, Callable, Optional

from harness import Pair, Suite, copy, die_once, digest_of, paths, urls, want

import tfseek

__all__ = ["copy", "paths", "urls", "want"]


def work(share: list[str], out: str, die: Optional[str]) -> None:
    """Reads a share, and writes its pairs, or the error, to the file ``out`` at once."""
    try:
        found: Any = []
        for part in map(tfseek.Part, share):
            for number, record in enumerate(tfseek.stream(part=part, kind="example"), part.first):
                found.append((number, digest_of(record)))
                if len(found) == 700:
                    die_once(die)
    except tfseek.Error as error:
        found = error
    with open(out + ".tmp", "wb") as file:
        pickle.dump(found, file)
    os.replace(out + ".tmp", out)


def read(
    paths: list[str], shares: int, die: Optional[str] = None, planned: Optional[Callable[[], None]] = None
) -> list[Pair]:
    plan = tfseek.open(paths, index="memory").shares(shares)
    texts = [[part.to_json() for part in share] for share in plan]
    assert len(texts) <= shares and json.loads(texts[0][0])["first"] == 0
    if planned:
        planned()
    context, found = multiprocessing.get_context("spawn"), []
    with tempfile.TemporaryDirectory() as folder:
        outs = [os.path.join(folder, str(k)) for k in range(len(texts))]
        for _ in range(2):
            missing = [k for k, out in enumerate(outs) if not os.path.exists(out)]
            workers = [context.Process(target=work, args=(texts[k], outs[k], die)) for k in missing]
            for worker in workers:
                worker.start()
            for worker in workers:
                worker.join()
        for out in outs:
            result = pickle.loads(pathlib.Path(out).read_bytes())
            if isinstance(result, Exception):
                raise result
            found += result
    return found


class TestProcesses(Suite):
    read = staticmethod(read)
