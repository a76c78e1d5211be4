"""Trains a small policy on robot episodes by behaviour cloning, on the CPU. It goes on where it was killed.

    python examples/train_policy.py bridge_dataset/1.0.0 --steps 300 --checkpoint policy.pt
    torchrun --nproc-per-node 2 examples/train_policy.py bridge_dataset/1.0.0 --steps 300 --checkpoint policy.pt

The policy sees two pictures and the state, and predicts the next four actions. Each line is the mean loss of the steps since the last one. A run that is killed and
started again, also on another number of ranks, sees each window once in an epoch, as if nothing had happened.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib

import numpy as np
import torch
import torch.distributed

import tfseek
import tfseek.torch

#: Steps of the observations and of the actions, relative to the present one.
SEEN, CHUNK = [-1, 0], range(4)


class Policy(torch.nn.Module):
    """Pictures and a state to a chunk of actions."""

    def __init__(self, state: int, action: int) -> None:
        super().__init__()
        self.action = action
        self.eyes = torch.nn.Sequential(
            torch.nn.Conv2d(3 * len(SEEN), 16, 5, stride=2, padding=2),
            torch.nn.ReLU(),
            torch.nn.Conv2d(16, 32, 5, stride=2, padding=2),
            torch.nn.ReLU(),
            torch.nn.AdaptiveAvgPool2d(4),
            torch.nn.Flatten(),
        )
        self.head = torch.nn.Sequential(
            torch.nn.Linear(32 * 16 + state * len(SEEN), 128), torch.nn.ReLU(), torch.nn.Linear(128, action * len(CHUNK))
        )

    def forward(self, pictures: torch.Tensor, states: torch.Tensor) -> torch.Tensor:
        # [rows, 2, height, width, 3] to [rows, 6, height, width]
        seen = pictures.permute(0, 1, 4, 2, 3).flatten(1, 2).float() / 255 - 0.5
        found = self.head(torch.cat([self.eyes(seen), states.flatten(1)], dim=1))
        return found.unflatten(1, (len(CHUNK), self.action))


def main() -> None:
    parser = argparse.ArgumentParser(description="Trains a policy on robot episodes.")
    parser.add_argument("folder", help="folder of a data set of episodes")
    parser.add_argument("--picture", default="observation/image_0")
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--batch", type=int, default=32, help="windows of a step, over all ranks")
    parser.add_argument("--every", type=int, default=20, help="steps between two checkpoints")
    parser.add_argument("--checkpoint", type=pathlib.Path, default=pathlib.Path("policy.pt"))
    args = parser.parse_args()

    rank, world = int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))
    if world > 1:
        torch.distributed.init_process_group("gloo")
    torch.manual_seed(0)
    torch.set_num_threads(1)

    robot = tfseek.rlds.open(args.folder)
    statistics = robot.statistics(["action", "observation/state"])
    norm = {key: (torch.tensor(statistics[key]["mean"]).float(), torch.tensor(statistics[key]["std"]).float() + 1e-6) for key in statistics.keys()}
    windows = robot.windows({args.picture: SEEN, "observation/state": SEEN, "action": CHUNK})
    loader = tfseek.Loader(
        windows,
        global_batch_size=args.batch,
        shuffle=True,
        seed=7,
        rank=rank,
        world_size=world,
        last_batch="continuous",
        repeat=True,
        transform=tfseek.torch.as_tensors,
    )

    policy = Policy(len(statistics["observation/state"]["mean"]), len(statistics["action"]["mean"]))
    optimizer = torch.optim.Adam(policy.parameters(), lr=1e-3)
    step = 0
    if args.checkpoint.exists():
        saved = torch.load(args.checkpoint, weights_only=True)
        policy.load_state_dict(saved["policy"])
        optimizer.load_state_dict(saved["optimizer"])
        loader.load_state_dict(json.loads(saved["loader"]))
        step = saved["step"]
        print(f"goes on after step {step}", flush=True)

    losses = []
    for batch in loader:
        if step >= args.steps:
            break
        (mean, std), (state_mean, state_std) = norm["action"], norm["observation/state"]
        wanted = (batch["action"] - mean) / std
        found = policy(batch[args.picture], (batch["observation/state"] - state_mean) / state_std)
        # Actions after the end of an episode are repeated. They do not count.
        real = ~batch["action_is_pad"].unsqueeze(-1)
        loss = ((found - wanted) ** 2 * real).sum() / (real.sum() * wanted.shape[-1])
        optimizer.zero_grad()
        loss.backward()
        if world > 1:
            for parameter in policy.parameters():
                torch.distributed.all_reduce(parameter.grad)
                parameter.grad /= world
        optimizer.step()
        losses.append(loss.item())
        step += 1
        if step % args.every == 0 or step == args.steps:
            if rank == 0:
                state = {"policy": policy.state_dict(), "optimizer": optimizer.state_dict(), "loader": json.dumps(loader.state_dict()), "step": step}
                new = args.checkpoint.with_suffix(".new")
                torch.save(state, new)
                new.replace(args.checkpoint)
                print(f"step {step}: loss {np.mean(losses):.4f}", flush=True)
            losses = []
            if world > 1:
                torch.distributed.barrier()
    loader.close()
    if world > 1:
        torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main()
