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
from typing import Any, Callable

import numpy as np
import pytest
from test_tfds import features, image, prepare, sequence, tensor

import tfseek

#: Number of kills of each run. With TFSEEK_SLOW=1 there are 50.
KILLS = 50 if os.environ.get("TFSEEK_SLOW") else 3

#: The pictures of the tests of the crate `tfseek-image`.
DATA = pathlib.Path(__file__).parents[2] / "crates" / "image" / "tests" / "data"

PICTURES = [(DATA / name).read_bytes() for name in ("yuv420.jpg", "optimized.jpg", "rgb8.png")]

#: Number of ranks, and of steps of the run.
RANKS, STEPS = 2, 40 * KILLS


def noisy(batch: dict[str, Any]) -> dict[str, Any]:
    """An augmentation by the seeds of the rows."""
    draws = [np.random.default_rng(int(seed)).random() for seed in batch["seed"]]
    return {**batch, "x": batch["x"] + np.array(draws)}


#: All that is random in a picture.
IMAGE = tfseek.Image(
    size=(8, 8), crop="random_resized", flip=0.5, jitter=dict.fromkeys(("brightness", "contrast", "saturation", "hue"), 0.3),
    mean=[0.5] * 3, std=[0.2] * 3, dtype="float32", layout="chw", geometry="part",
)


def loader_of(folder: str, rank: int, threads: int) -> Any:
    """A loader of one rank with random pictures, and augmentations in threads: of windows of episodes, or of a mix."""
    if os.path.exists(f"{folder}/episodes"):
        data: Any = tfseek.rlds.open(f"{folder}/episodes/1.0.0").windows({"x": 0, "image": [-1, 0, 1]}, decode={"image": IMAGE})
    else:
        spec = {"x": tfseek.FixedLenFeature([], "float32"), "tokens": tfseek.RaggedFeature("int64"), "image": IMAGE}
        few, many = (tfseek.open(f"{folder}/{name}", index="memory") for name in ("few", "many"))
        data = tfseek.Mix([((few, spec), 3), ((many, spec), 7)], source="source")
    return tfseek.Loader(
        data,
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


def write_records(folder: pathlib.Path) -> None:
    for name, records in (("few", 40), ("many", 150)):
        (folder / name).mkdir()
        with tfseek.Writer(folder / name / "train", shards=3) as writer:
            for i in range(records):
                writer.write({"x": float(i), "tokens": np.arange(i % 7), "image": PICTURES[i % 3]})


def write_episodes(folder: pathlib.Path) -> None:
    step = features(image=image(None, None, 3), x=tensor("float32"))
    episodes = [
        {"steps/image": np.array([PICTURES[(k + t) % 3] for t in range(k % 6)], dtype=object), "steps/x": np.arange(k % 6, dtype=np.float32)}
        for k in range(40)
    ]
    root = features(steps=sequence(step, "dataset_feature.Dataset"))
    prepare(folder / "episodes" / "1.0.0", root, {"train": [episodes]})


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="there is no SIGKILL here")
@pytest.mark.parametrize("write", [write_records, write_episodes])
def test_killed_runs_train_on_what_an_unbroken_run_does(write: Callable[[pathlib.Path], None], tmp_path: pathlib.Path) -> None:
    write(tmp_path)
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
