"""Frameworks that divide batches among ranks: their own division is refused, and the set-up of the page loses and repeats nothing."""

from __future__ import annotations

import json
import os
import pathlib
import socket
import subprocess
import sys
from typing import Any

import pytest
from conftest import write_records

import tfseek

pytest.importorskip("torch")

RECORDS = 200

JOB = """
import json, os, sys
import torch
from torch.utils.data import DataLoader
import tfseek, tfseek.torch

SPEC = {"label": tfseek.FixedLenFeature([], "int64")}
ds = tfseek.open(sys.argv[1])

def labels(batches):
    return [label for batch in batches for label in batch["label"].tolist()]

def refused(batches):
    try:
        labels(batches)
    except ValueError as error:
        return str(error)
    return ""
"""

ACCELERATE = (
    JOB
    + """
from accelerate import Accelerator

accelerator = Accelerator(cpu=True)
made = lambda **more: tfseek.torch.IterableDataset(ds, SPEC, batch_size=10, seed=1, **more)
found = {"plain": labels(DataLoader(made(), batch_size=None))}
found["refused"] = [refused(accelerator.prepare(DataLoader(made(), batch_size=None, num_workers=workers))) for workers in (0, 2)]
found["divided"] = labels(accelerator.prepare(DataLoader(made(rank=0, world_size=1), batch_size=None)))
records = tfseek.torch.Dataset(ds, SPEC)
sampled = DataLoader(records, batch_size=10, sampler=tfseek.torch.Sampler(ds, seed=1, batch_size=10))
found["refused"].append(refused(accelerator.prepare(sampled)))
print(json.dumps(found))
torch.distributed.destroy_process_group()
"""
)

LIGHTNING = (
    JOB
    + """
import lightning

class Module(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer, self.seen = torch.nn.Linear(1, 1), []

    def training_step(self, batch, index):
        self.seen += batch["label"].tolist()
        return self.layer(batch["label"].float()[:, None]).sum()

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.0)

    def train_dataloader(self):
        return DataLoader(tfseek.torch.IterableDataset(ds, SPEC, batch_size=10, seed=1), batch_size=None)

options = dict(accelerator="cpu", devices=2, strategy="ddp", max_epochs=1, logger=False, enable_checkpointing=False,
               enable_progress_bar=False, enable_model_summary=False, use_distributed_sampler=False)
module = Module()
lightning.Trainer(**options).fit(module)

class Sampled(Module):
    def train_dataloader(self):
        sampler = tfseek.torch.Sampler(ds, seed=1, batch_size=10)
        return DataLoader(tfseek.torch.Dataset(ds, SPEC), batch_size=10, sampler=sampler)

try:
    lightning.Trainer(**{**options, "use_distributed_sampler": True}).fit(Sampled())
    error = ""
except ValueError as e:
    error = str(e)
print(json.dumps({"plain": module.seen, "error": error}))
"""
)

TRAINER = (
    JOB
    + """
import transformers

class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer, self.seen = torch.nn.Linear(1, 1), []

    def forward(self, label):
        self.seen += label.tolist()
        return {"loss": self.layer(label.float()[:, None]).sum()}

class Trainer(transformers.Trainer):
    def get_train_dataloader(self):
        return DataLoader(self.train_dataset, batch_size=None)

model = Model()
train = tfseek.torch.IterableDataset(ds, SPEC, batch_size=10, seed=1)
arguments = transformers.TrainingArguments(sys.argv[2], max_steps=len(train), use_cpu=True, report_to=[], save_strategy="no", learning_rate=0.0)
Trainer(model=model, args=arguments, train_dataset=train).train()
print(json.dumps({"plain": model.seen}))
"""
)


def on_two_ranks(job: str, tmp_path: pathlib.Path) -> list[dict[str, Any]]:
    """Runs a job on two ranks, and returns the last line of each."""
    write_records(tmp_path / "a.tfrecord", (tfseek.Example({"label": i}) for i in range(RECORDS)))
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = str(probe.getsockname()[1])
    ranks = []
    for rank in range(2):
        own = {"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": "2", "NODE_RANK": "0", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
        command = [sys.executable, "-c", job, str(tmp_path / "a.tfrecord"), str(tmp_path / f"out-{rank}")]
        pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        ranks.append(subprocess.Popen(command, env={**os.environ, **own}, **pipes))
    outputs = [rank.communicate(timeout=600) for rank in ranks]
    assert [rank.returncode for rank in ranks] == [0, 0], outputs
    return [json.loads(out.splitlines()[-1]) for out, _ in outputs]


def is_all_once(ranks: list[dict[str, Any]], key: str) -> bool:
    return sorted(ranks[0][key] + ranks[1][key]) == list(range(RECORDS)) and len(ranks[0][key]) == RECORDS // 2


def test_accelerate(tmp_path: pathlib.Path) -> None:
    pytest.importorskip("accelerate")
    ranks = on_two_ranks(ACCELERATE, tmp_path)
    assert is_all_once(ranks, "plain") and is_all_once(ranks, "divided")
    for found in ranks:
        for message in found["refused"]:
            # With worker processes the message is that of the worker.
            assert "accelerate divides batches among ranks" in message and "rank=0, world_size=1" in message, found


def test_lightning(tmp_path: pathlib.Path) -> None:
    pytest.importorskip("lightning")
    ranks = on_two_ranks(LIGHTNING, tmp_path)
    assert is_all_once(ranks, "plain")
    assert all("lightning divides batches among ranks" in found["error"] for found in ranks), ranks


def test_trainer(tmp_path: pathlib.Path) -> None:
    pytest.importorskip("transformers")
    pytest.importorskip("accelerate")
    assert is_all_once(on_two_ranks(TRAINER, tmp_path), "plain")
