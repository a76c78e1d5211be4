"""A training job for `torchrun`, in which rank 1 is killed once in the middle of an epoch.

Each rank writes the samples that it consumes to a file. A checkpoint stores the lengths of the files, and a restart truncates them to it.
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
                # All ranks finish a step before the next one, as with shared gradients.
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
