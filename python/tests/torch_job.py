"""A training job as `torchrun` starts it, and one process of it: rank 1 is killed once, in the middle of an epoch.

What a rank consumes goes to a file of its own, of which a checkpoint keeps the length: what was consumed after it never happened.
"""

from __future__ import annotations

import json
import os
import pathlib
import signal
import sys
from typing import Any, Optional

import torch.distributed as dist
from torch.utils.data import DataLoader

import tfseek
import tfseek.torch

EPOCHS, EVERY = 2, 3
SPEC = {"label": tfseek.FixedLenFeature([], "int64")}


def main(shards: str, folder: str, dies_at: str) -> None:
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    out = pathlib.Path(folder)
    dataset = tfseek.torch.IterableDataset(tfseek.open(shards), SPEC, batch_size=16, seed=5, mask="mask")
    loader: DataLoader[Any] = DataLoader(dataset, batch_size=None)

    saved: Optional[dict[str, Any]] = None
    if (out / "checkpoint").exists():
        saved = json.loads((out / "checkpoint").read_text())
        dataset.load_state_dict(saved["state"])
    with open(out / f"consumed-{rank}", "a") as consumed:
        consumed.truncate(saved["lengths"][rank] if saved else 0)
        step = saved["step"] if saved else 0
        for epoch in range(saved["epoch"] if saved else 0, EPOCHS):
            dataset.set_epoch(epoch)
            for batch in loader:
                for label in batch["label"][batch["mask"]].tolist():
                    print(epoch, label, file=consumed)
                consumed.flush()
                step += 1
                # Ranks take their steps together, as they do where gradients are shared.
                lengths: list[Any] = [None] * dist.get_world_size()
                dist.all_gather_object(lengths, os.fstat(consumed.fileno()).st_size)
                if step % EVERY == 0 and rank == 0:
                    kept = {"state": dataset.state_dict(), "epoch": epoch, "step": step, "lengths": lengths}
                    (out / "new").write_text(json.dumps(kept))
                    (out / "new").replace(out / "checkpoint")
                if step == int(dies_at) and rank == 1 and not (out / "died").exists():
                    (out / "died").write_text(str(step))
                    os.kill(os.getpid(), signal.SIGKILL)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main(*sys.argv[1:])
