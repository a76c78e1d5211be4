"""Runs that are killed at any step and resumed: what they trained on is what an unbroken run trains on."""

from __future__ import annotations

import hashlib
import json
import os
import pathlib
import random
import signal
import subprocess
import sys
import time
from typing import Any

import numpy as np
import pytest

import tfseek

#: Number of kills. With TFSEEK_SLOW=1 there are 100.
KILLS = 100 if os.environ.get("TFSEEK_SLOW") else 6

#: The pictures of the tests of the crate `tfseek-image`.
DATA = pathlib.Path(__file__).parents[2] / "crates" / "image" / "tests" / "data"

#: Number of ranks, and of steps of the run.
RANKS, STEPS = 2, 40 * KILLS


def noisy(batch: dict[str, Any]) -> dict[str, Any]:
    """An augmentation by the seeds of the rows."""
    draws = [np.random.default_rng(int(seed)).random() for seed in batch["seed"]]
    return {**batch, "x": batch["x"] + np.array(draws)}


def loader_of(folder: str, rank: int, threads: int) -> Any:
    """A loader of one rank, of a mix with pictures, random crops and augmentations in threads."""
    spec = {
        "x": tfseek.FixedLenFeature([], "float32"),
        "tokens": tfseek.RaggedFeature("int64"),
        "image": tfseek.Image(size=(8, 8), crop="random_resized"),
    }
    few, many = (tfseek.open(f"{folder}/{name}", index="memory") for name in ("few", "many"))
    return tfseek.Loader(
        tfseek.Mix([((few, spec), 3), ((many, spec), 7)], source="source"),
        global_batch_size=8,
        seed=1,
        rank=rank,
        world_size=RANKS,
        repeat=True,
        ids="id",
        augmentation_seed="seed",
        transform=noisy,
        transform_threads=threads,
    )


def digest(batch: Any) -> list[Any]:
    """The record numbers of a batch, and a digest of all of its arrays."""
    digest = hashlib.sha256()
    for name, column in sorted(batch.items()):
        for part in column.parts() if hasattr(column, "parts") else (column,):
            for array in part if isinstance(part, tuple) else (part,):
                digest.update(name.encode() + np.ascontiguousarray(array).tobytes())
    return [batch["id"].tolist(), digest.hexdigest()]


def train(folder: str, rank: int, threads: int) -> None:
    """Trains and saves a checkpoint after each step, until it is killed or all steps are done."""
    checkpoint = pathlib.Path(folder, f"checkpoint-{rank}.json")
    loader, trained = loader_of(folder, rank, threads), []
    if checkpoint.exists():
        saved = json.loads(checkpoint.read_text())
        loader.load_state_dict(saved["state"])
        trained = saved["trained"]
    for batch in loader:
        if len(trained) >= STEPS:
            break
        trained.append(digest(batch))
        temporary = checkpoint.with_suffix(f".{os.getpid()}")
        temporary.write_text(json.dumps({"state": loader.state_dict(), "trained": trained}))
        temporary.replace(checkpoint)
        time.sleep(0.002)


def steps_of(folder: pathlib.Path, rank: int) -> int:
    checkpoint = folder / f"checkpoint-{rank}.json"
    return len(json.loads(checkpoint.read_text())["trained"]) if checkpoint.exists() else 0


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="there is no SIGKILL here")
def test_killed_runs_train_on_what_an_unbroken_run_does(tmp_path: pathlib.Path) -> None:
    pictures = [(DATA / name).read_bytes() for name in ("yuv420.jpg", "optimized.jpg", "rgb8.png")]
    for name, records in (("few", 40), ("many", 150)):
        (tmp_path / name).mkdir()
        with tfseek.Writer(tmp_path / name / "train", shards=3) as writer:
            for i in range(records):
                writer.write({"x": float(i), "tokens": np.arange(i % 7), "image": pictures[i % 3]})
    draws, kills = random.Random(1), 0
    while True:
        jobs = [
            subprocess.Popen([sys.executable, __file__, str(tmp_path), str(rank), str(draws.randrange(4))])
            for rank in range(RANKS)
        ]
        if kills < KILLS:
            # Somewhere in the next steps, at any instruction.
            goal = steps_of(tmp_path, 0) + draws.randrange(1, 9)
            deadline = time.monotonic() + 120
            while steps_of(tmp_path, 0) < goal and jobs[0].poll() is None:
                assert time.monotonic() < deadline
                time.sleep(0.001)
            time.sleep(draws.random() * 0.005)
            for job in jobs:
                job.kill()
        codes = [job.wait() for job in jobs]
        assert all(code in (0, -signal.SIGKILL) for code in codes), codes
        kills += codes != [0] * RANKS
        if codes == [0] * RANKS:
            break
    assert kills == KILLS
    for rank in range(RANKS):
        loader = loader_of(str(tmp_path), rank, 0)
        wanted = [digest(next(loader)) for _ in range(STEPS)]
        found = json.loads((tmp_path / f"checkpoint-{rank}.json").read_text())["trained"]
        assert found == wanted


if __name__ == "__main__":
    train(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
