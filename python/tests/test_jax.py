"""``tfseek.jax``: arrays of JAX, on one device and divided over eight."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from conftest import RECORDS, SPEC

import tfseek

jax = pytest.importorskip("jax")
tfj = pytest.importorskip("tfseek.jax")

DENSE = {"label": SPEC["label"], "emb": SPEC["emb"]}

#: A training loop over a mesh of eight devices. Two ranks take turns in one process, as two processes would.
SHARDED = """
import json, sys
import jax, numpy as np
from functools import partial
from jax.sharding import NamedSharding, PartitionSpec
import tfseek, tfseek.jax

assert len(jax.devices()) == 8
mesh = jax.make_mesh((8,), ("batch",))
sharding = NamedSharding(mesh, PartitionSpec("batch"))
spec = {"label": tfseek.FixedLenFeature([], "int64"), "emb": tfseek.FixedLenFeature([EMB], "float32")}
loader = tfseek.Loader(
    tfseek.open(sys.argv[1]), spec, global_batch_size=80, seed=1, drop_last=True, ids="id",
    rank=jax.process_index(), world_size=jax.process_count(),
    transform=partial(tfseek.jax.as_arrays, sharding=sharding), transform_threads=1,
)
@jax.jit
def step(batch):
    return batch["emb"].sum(), batch["label"].sum()
found = []
for batch in loader:
    assert all(isinstance(column, jax.Array) and column.sharding == sharding for column in batch.values())
    assert [len(shard.data) for shard in batch["emb"].addressable_shards] == [10] * 8
    emb, label = step(batch)
    assert np.isclose(float(emb), float(np.asarray(batch["emb"]).sum()), rtol=1e-3, atol=1e-2)
    found.append((batch["id"].tolist(), int(label)))
print(json.dumps(found))
"""


def test_a_batch_is_divided_over_eight_devices(shards: str, ds: tfseek.Dataset) -> None:
    emb = len(ds[0]["emb"])
    environment = {**os.environ, "XLA_FLAGS": "--xla_force_host_platform_device_count=8", "JAX_PLATFORMS": "cpu"}
    code = SHARDED.replace("EMB", str(emb))
    done = subprocess.run(
        [sys.executable, "-c", code, shards], capture_output=True, text=True, timeout=300, env=environment, check=False
    )
    assert done.returncode == 0, done.stderr
    plain = tfseek.Loader(ds, DENSE, global_batch_size=80, seed=1, drop_last=True, ids="id")
    wanted = [[batch["id"].tolist(), int(batch["label"].sum())] for batch in plain]
    assert json.loads(done.stdout) == wanted and len(wanted) == RECORDS // 80


def test_the_columns_of_a_batch(ds: tfseek.Dataset) -> None:
    batch = next(tfseek.Loader(ds, SPEC, batch_size=10, seed=1, ids="id"))
    arrays = tfj.as_arrays(batch)
    assert list(arrays) == list(batch)
    for name, column in batch.items():
        found = arrays[name]
        if isinstance(column, np.ndarray) and column.dtype.kind != "O":
            assert isinstance(found, jax.Array) and np.array_equal(found, column.astype(found.dtype))
        elif isinstance(column, (tfseek.Ragged, tfseek.Sparse, tfseek.Column)):
            assert type(found) is type(column)
            for part, wanted in zip(jax.tree.leaves(found.parts()), jax.tree.leaves(column.parts())):
                assert part is wanted or isinstance(part, jax.Array) or wanted.dtype.kind == "O"
        else:
            assert found is column
    assert tfj.as_arrays((batch["label"], b"x"))[1] == b"x"


def test_numbers_that_do_not_fit_are_not_cut(tmp_path: Any) -> None:
    for value in (2**31, -(2**31) - 1):
        with pytest.raises(OverflowError, match=f"column 'big': expected numbers of int32, found {value}: set jax_enable_x64"):
            tfj.as_arrays({"big": np.array([1, value])})
    with pytest.raises(OverflowError, match="expected numbers of uint32"):
        tfj.as_arrays({"seed": np.array([2**32], np.uint64)})
    fits = tfj.as_arrays({"small": np.array([-(2**31), 2**31 - 1]), "none": np.empty(0, np.int64)})
    assert fits["small"].dtype == np.int32 and fits["small"].tolist() == [-(2**31), 2**31 - 1]
    assert fits["none"].shape == (0,)


def test_columns_without_rows_of_one_size_are_not_divided(ds: tfseek.Dataset) -> None:
    sharding = jax.sharding.SingleDeviceSharding(jax.devices()[0])
    ragged = {"tokens": tfseek.RaggedFeature("int64")}
    batch = next(tfseek.Loader(ds, ragged, batch_size=4))
    with pytest.raises(TypeError, match="column 'tokens': expected a dense column for a sharding, found tfseek.Ragged"):
        tfj.as_arrays(batch, sharding)
    values, mask = batch["tokens"].to_padded()
    arrays = tfj.as_arrays({"tokens": values, "mask": mask}, sharding)
    assert arrays["tokens"].tolist() == values.tolist() and arrays["mask"].tolist() == mask.tolist()


def test_seeds_are_keys(ds: tfseek.Dataset) -> None:
    """The recipe for augmentations in JAX: the 64 bits of a seed are the two words of a key."""
    loader = tfseek.Loader(ds, DENSE, batch_size=8, seed=1, augmentation_seed="seed")
    seeds = next(loader)["seed"]
    keys = jax.random.wrap_key_data(tfj.as_arrays(seeds.view(np.uint32).reshape(-1, 2)))
    draws = jax.vmap(jax.random.uniform)(keys)
    assert draws.shape == (8,) and len(set(draws.tolist())) == 8
