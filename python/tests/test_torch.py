"""`tfseek.torch`: batches of a DataLoader, order, states."""

from __future__ import annotations

import copy
import importlib.util
import itertools
import json
import os
import pathlib
import pickle
import signal
import subprocess
import sys
import tracemalloc
import warnings
from typing import Any

import numpy as np
import pytest
from conftest import RECORDS, SPEC, run_python, write_records, written

import tfseek

torch = pytest.importorskip("torch")

from torch.utils.data import BatchSampler, DataLoader, DistributedSampler  # noqa: E402

import tfseek.torch as tft  # noqa: E402

DENSE = {name: spec for name, spec in SPEC.items() if name != "tokens"}
STARTS = [pytest.param(0, None, id="0")] + [
    pytest.param(2, method, id=f"2-{method}") for method in torch.multiprocessing.get_all_start_methods()
]
needs_torchdata = pytest.mark.skipif(importlib.util.find_spec("torchdata") is None, reason="torchdata is not installed")


def stateful(*arguments: Any, **options: Any) -> Any:
    from torchdata.stateful_dataloader import StatefulDataLoader

    return StatefulDataLoader(*arguments, **options)


def ids(batches: Any) -> list[int]:
    return [i for batch in batches for i in batch["id"].tolist()]


# Tensors


def test_tfseek_alone_does_not_import_torch() -> None:
    run_python("import sys, tfseek; assert 'torch' not in sys.modules")


def test_tensors_are_the_arrays(ds: tfseek.Dataset) -> None:
    for bytes_as in ("objects", "offsets", "views", "S"):
        arrays = tfseek.parse_example(ds[:50], SPEC, bytes_as=bytes_as)
        tensors = tft.as_tensors(arrays)
        assert list(tensors) == list(arrays) and tensors["label"].dtype == torch.int64
        for name in ("label", "emb"):
            assert tensors[name].data_ptr() == arrays[name].__array_interface__["data"][0]
            assert np.array_equal(tensors[name].numpy(), arrays[name])
        assert isinstance(tensors["tokens"], tfseek.Sparse)
        assert tensors["tokens"].indices.tolist() == arrays["tokens"].indices.tolist()
        if bytes_as != "offsets":
            assert tensors["name"] is arrays["name"]
        else:
            assert bytes(tensors["name"].data.tolist()) == arrays["name"].data.tobytes()
    spec = {"tokens": tfseek.RaggedFeature("int64", partitions=[tfseek.UniformRowLength(1)]), "emb": SPEC["emb"]}
    ragged = tft.as_tensors(tfseek.parse_example(ds[:9], spec))["tokens"]
    assert isinstance(ragged, tfseek.Ragged) and [splits.dtype for splits in ragged.row_splits] == [torch.int32]
    assert tft.as_tensors(np.arange(3)[::-1]).tolist() == [2, 1, 0]
    assert tft.as_tensors([b"x", 1]) == [b"x", 1]


def lengths(record: dict[str, Any]) -> dict[str, Any]:
    assert record["name"].dtype == np.uint8
    return {"label": record["label"], "size": len(record["name"])}


def test_views_for_a_transform(ds: tfseek.Dataset) -> None:
    records = tft.Dataset(ds, SPEC, transform=lengths, bytes_as="views")
    want = [len(record["name"][0]) for record in ds]
    for workers in (0, 2):
        loader = torch.utils.data.DataLoader(records, batch_size=100, num_workers=workers)
        assert [size for batch in loader for size in batch["size"].tolist()] == want


def test_every_tensor_is_writable(shards: str) -> None:
    """Repeated writes cause no warning, and change neither the records nor other tensors."""
    run_python("""
import sys, warnings
import numpy as np, torch
import tfseek, tfseek.torch as tft
warnings.simplefilter("error")
spec = {
    "label": tfseek.FixedLenFeature([], "int64"), "emb": tfseek.FixedLenFeature([8], "float32"),
    "name": tfseek.FixedLenFeature([], "string"), "tokens": tfseek.RaggedFeature("int64"),
    "again": tfseek.RaggedFeature("int64", value_key="tokens"),
    "rows": tfseek.RaggedFeature("int64", value_key="tokens", partitions=[tfseek.UniformRowLength(1)]),
}
others = {
    "tokens": tfseek.VarLenFeature("int64"), "emb": tfseek.FixedLenSequenceFeature([2], "float32", allow_missing=True),
    "sparse": tfseek.SparseFeature("label", "label", "int64", 1000),
}
dense = {name: spec[name] for name in ("label", "emb", "name")}

def parts(value, path=""):
    if isinstance(value, (torch.Tensor, np.ndarray)):
        yield path, value
    elif isinstance(value, dict):
        for name, part in value.items(): yield from parts(part, f"{path}.{name}")
    elif hasattr(value, "parts"):
        yield from parts(value.parts(), path)
    elif isinstance(value, (tuple, list)):
        for k, part in enumerate(value): yield from parts(part, f"{path}.{k}")

def spoil(made, want):
    '''Compares with arrays, then writes to each tensor, before the next one is compared.'''
    made, want = dict(parts(made)), dict(parts(want))
    for path, tensor in made.items():
        if isinstance(tensor, torch.Tensor):
            assert tensor.numpy().tobytes() == np.ascontiguousarray(want[path]).tobytes(), path
            tensor.fill_(77)
            tensor.mul_(2 if tensor.dtype != torch.bool else False)
    return len(made)

for io in ("map", "pread"):
    ds = tfseek.open(sys.argv[1], io=io)
    before = [bytes(ex) for ex in ds]
    for s in (spec, others, dense):
        for bytes_as in ("objects", "offsets", "views", "S"):
            def batch(ids): return tfseek.parse_example(ds[ids], s, bytes_as=bytes_as)
            loader = tft.IterableDataset(ds, s, batch_size=50, seed=1, ids="id", mask="mask", bytes_as=bytes_as)
            for _ in range(2):
                for made in loader:
                    numbers = made["id"].numpy().copy()
                    want = batch(numbers)
                    assert spoil(made, {**want, "id": numbers, "mask": np.ones(len(numbers), bool)}) > 3
                    assert spoil(want, want) > 1  # arrays stay as they are
            d = tft.Dataset(ds, s, bytes_as=bytes_as)
            for k in range(0, 1000, 37):
                numbers = [k, k // 2, k]
                spoil(d[numbers], batch(numbers))
                rows = d.__getitems__(numbers)
                for i, row in zip(numbers, rows):
                    spoil(row, tfseek.parse_single_example(ds[i], s, bytes_as=bytes_as))
                    spoil(d[i], tfseek.parse_single_example(ds[i], s, bytes_as=bytes_as))
    # Floats in the file, and payloads.
    shared = 0
    for ex in ds:
        for array in (ex["emb"], ex.raw):
            shared += array.base.writable is None
            tensor = tft.as_tensors(array)
            assert tensor.numpy().tobytes() == array.tobytes()
            tensor.fill_(0)
    assert shared >= 1000
    assert [bytes(ex) for ex in ds] == before
""", shards)


# Map style


@pytest.mark.parametrize("workers, method", STARTS)
def test_records_in_a_dataloader(shards: str, labels: list[int], workers: int, method: Any) -> None:
    ds = tfseek.open(shards)
    loader = DataLoader(tft.Dataset(ds, DENSE), batch_size=64, num_workers=workers, multiprocessing_context=method)
    seen = []
    for batch in loader:
        seen += batch["label"].tolist()
        assert batch["name"] == [b"record %d" % label for label in batch["label"]]
        assert torch.equal(batch["emb"], batch["label"][:, None] + torch.arange(8.0))
    assert seen == labels


@pytest.mark.parametrize("workers", [0, 2])
def test_batches_in_a_dataloader(ds: tfseek.Dataset, workers: int) -> None:
    """Whole batches may be ragged, and equal those of the Loader."""
    chosen = BatchSampler(tft.Sampler(ds, seed=6), 48, drop_last=False)
    loader = DataLoader(tft.Dataset(ds, SPEC), batch_size=None, sampler=chosen, num_workers=workers)
    assert len(loader) == 21
    for batch, want in zip(loader, tfseek.Loader(ds, SPEC, batch_size=48, seed=6)):
        assert batch["label"].tolist() == want["label"].tolist()
        assert batch["tokens"].indices.tolist() == want["tokens"].indices.tolist()
        assert batch["name"].tolist() == want["name"].tolist()


def test_records_by_number(ds: tfseek.Dataset, labels: list[int]) -> None:
    d = tft.Dataset(ds, SPEC)
    assert len(d) == RECORDS
    one = d[7]
    assert one["label"].shape == () and one["label"] == labels[7] and one["name"] == b"record %d" % labels[7]
    assert one["tokens"].values.tolist() == list(range(labels[7] % 5)) and one["tokens"].indices.shape[1] == 1
    assert d[-1]["label"] == labels[-1] and d[np.int64(3)]["label"] == labels[3] and d[torch.tensor(3)]["label"] == labels[3]
    for key in ([4, 2, -1, 4], np.array([4, 2, -1, 4]), torch.tensor([4, 2, -1, 4])):
        assert d[key]["label"].tolist() == [labels[4], labels[2], labels[-1], labels[4]]
    assert d[10:20:3]["label"].tolist() == labels[10:20:3] and d[[3]]["label"].shape == (1,)
    assert [record["label"].item() for record in d.__getitems__([4, 2])] == [labels[4], labels[2]]
    rows = tft.Dataset(ds, DENSE).__getitems__([4, 2])
    assert [(row["label"].item(), row["name"]) for row in rows] == [(labels[i], b"record %d" % labels[i]) for i in (4, 2)]
    for bad in (RECORDS, [RECORDS]):
        with pytest.raises(IndexError):
            d[bad]
    with pytest.raises(TypeError):
        d["label"]
    with pytest.raises(ValueError, match="bytes_as"):
        tft.Dataset(ds, SPEC, bytes_as="x")


def test_records_without_a_spec_and_transforms(ds: tfseek.Dataset, labels: list[int]) -> None:
    d = tft.Dataset(ds)
    assert bytes(d[3]) == bytes(ds[3]) and [bytes(ex) for ex in d[[5, 3]]] == [bytes(ds[5]), bytes(ds[3])]
    d = tft.Dataset(ds, transform=lambda ex: int(ex["label"][0]))
    assert next(iter(DataLoader(d, batch_size=30))).tolist() == labels[:30]
    d = tft.Dataset(ds[10:20], DENSE, transform=lambda columns: columns["label"] + 1)
    assert d[0] == labels[10] + 1 and d[[1, 0]].tolist() == [labels[11] + 1, labels[10] + 1]
    assert next(iter(DataLoader(d, batch_size=10))).tolist() == [label + 1 for label in labels[10:20]]


def test_sequence_examples(tmp_path: pathlib.Path) -> None:
    write_records(tmp_path / "a.tfrecord", (tfseek.SequenceExample({"id": i}, {"x": [[k] for k in range(i)]}) for i in range(10)))
    schema = tfseek.Schema(
        context_features={"id": tfseek.FixedLenFeature([], "int64")},
        sequence_features={"x": tfseek.FixedLenSequenceFeature([1], "int64")},
    )
    ds = tfseek.open(tmp_path / "a.tfrecord")
    d = tft.Dataset(ds, schema)
    context, sequence = d[3]
    assert context["id"] == 3 and sequence["x"].tolist() == [[0], [1], [2]]
    assert [len(sequence["x"]) for _, sequence in d.__getitems__([2, 4])] == [2, 4]
    context, sequence, lengths = d[[2, 4]]
    assert lengths["x"].tolist() == [2, 4] and sequence["x"].shape == (2, 4, 1)
    batches = DataLoader(tft.IterableDataset(ds, schema, batch_size=4), batch_size=None)
    assert [lengths["x"].tolist() for _, _, lengths in batches] == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]


def test_distributed_sampler_of_torch(ds: tfseek.Dataset) -> None:
    d = tft.Dataset(ds, DENSE)
    seen: list[int] = []
    for rank in range(4):
        sampler: Any = DistributedSampler(d, num_replicas=4, rank=rank, seed=3)
        seen += [label for batch in DataLoader(d, 50, sampler=sampler) for label in batch["label"].tolist()]
    assert sorted(seen) == list(range(RECORDS))


# The Loader


@pytest.mark.parametrize("workers, method", STARTS)
def test_an_epoch_is_the_loaders(shards: str, workers: int, method: Any) -> None:
    ds = tfseek.open(shards)
    options: Any = {"batch_size": 48, "seed": 9, "ids": "id"}
    want = [batch["id"].tolist() for batch in tfseek.Loader(ds, SPEC, **options)]
    d = tft.IterableDataset(ds, SPEC, **options)
    loader = DataLoader(d, batch_size=None, num_workers=workers, multiprocessing_context=method)
    assert len(loader) == len(d) == 21
    for batch, numbers in itertools.zip_longest(loader, want):
        assert batch["id"].tolist() == numbers and batch["tokens"].indices.dtype == torch.int64
        assert batch["name"].tolist() == [bytes(ds[i]["name"][0]) for i in numbers]
    if method in (None, "fork"):
        d.set_epoch(1)
        assert ids(loader) == ids(tfseek.Loader(ds, SPEC, epoch=1, **options))


def test_epochs_follow_each_other(ds: tfseek.Dataset) -> None:
    options: Any = {"batch_size": 48, "seed": 9, "ids": "id"}
    loader = tfseek.Loader(ds, SPEC, **options)
    epochs = [ids(loader) for _ in range(4)]
    d = tft.IterableDataset(ds, SPEC, **options)
    batches = DataLoader(d, batch_size=None)
    assert ids(batches) == epochs[0] and d.epoch == 1
    # All batches were read, but not the end: nothing is left of that epoch.
    assert ids(itertools.islice(batches, 21)) == epochs[1] and d.epoch == 1
    assert ids(batches) == epochs[2]
    # Left early: the epoch restarts, with and without set_epoch. Reading the first batch does not consume an epoch.
    assert ids([next(iter(batches))]) == epochs[3][:48] and ids(batches) == epochs[3]
    d.set_epoch(0)
    assert ids(itertools.islice(batches, 2)) == epochs[0][:96]
    d.set_epoch(0)
    assert ids(batches) == epochs[0]
    d.set_epoch(0)
    d.reset()
    assert ids(batches) == epochs[0]
    d.set_epoch(3)
    assert d.epoch == 3 and ids(itertools.islice(batches, 21)) == epochs[3]
    end = d.state_dict()
    assert (end["epoch"], end["pos"]) == (3, RECORDS)
    d.load_state_dict(end)
    d.set_epoch(3)
    assert ids(batches) == []
    d.set_epoch(2)
    assert ids(itertools.islice(batches, 21)) == epochs[2]
    d.set_epoch(3)
    assert ids(batches) == epochs[3]

    # Workers begin at the position of this process, and continue with the next epoch.
    d.set_epoch(0)
    fresh = DataLoader(d, batch_size=None, num_workers=2)
    assert [ids(fresh), ids(fresh)] == epochs[:2]
    ids(itertools.islice(fresh, 2))
    assert ids(DataLoader(d, batch_size=None, num_workers=3)) == epochs[3]
    d.set_epoch(2)
    assert ids(fresh) == epochs[2]
    d.set_epoch(0)
    stay = DataLoader(d, batch_size=None, num_workers=2, persistent_workers=True)
    assert [ids(stay), ids(stay)] == epochs[:2]
    ids(itertools.islice(stay, 20))
    assert ids(stay) == epochs[3]
    d.set_epoch(1)
    assert ids(stay) == epochs[1]
    d.set_epoch(1)
    assert [ids(stay), ids(stay)] == epochs[1:3]


def test_repeat_and_continuous(ds: tfseek.Dataset) -> None:
    options: Any = {"batch_size": 300, "seed": 0, "ids": "id"}
    loader = tfseek.Loader(ds, SPEC, last_batch="continuous", **options)
    want = [ids(loader) for _ in range(3)]
    d = tft.IterableDataset(ds, SPEC, last_batch="continuous", **options)
    assert ids(d) == want[0]
    d.set_epoch(1)
    assert ids(itertools.islice(d, 2)) == want[1][:600]
    other = tft.IterableDataset(ds, SPEC, last_batch="continuous", **options)
    other.load_state_dict(d.state_dict())
    # After the samples that the last batch of the previous epoch took.
    assert ids(other) == want[1][600:] and ids(d) == want[1] and ids(other) == want[2]
    assert ids(itertools.islice(d, 3)) == want[2][:900]
    d = tft.IterableDataset(ds, SPEC, repeat=True, **options)
    assert len(ids(itertools.islice(d, 9))) == 2 * RECORDS + 300 and d.epoch == 2
    other = tft.IterableDataset(ds, SPEC, repeat=True, **options)
    other.load_state_dict(d.state_dict())
    assert other.epoch == d.epoch == 2
    d.load_state_dict(other.state_dict())
    assert ids(itertools.islice(other, 9)) == ids(itertools.islice(d, 9))


@pytest.mark.filterwarnings("ignore:This DataLoader will create")
def test_transforms_run_in_the_worker(ds: tfseek.Dataset) -> None:
    def transform(batch: Any) -> Any:
        info = torch.utils.data.get_worker_info()
        return batch["id"], None if info is None else info.id

    d = tft.IterableDataset(ds, SPEC, batch_size=100, ids="id", transform=transform)
    for workers, made_by in ((0, [None] * 10), (2, [0, 1] * 5), (3, [0, 1, 2] * 3 + [0])):
        d.set_epoch(0)
        found = list(DataLoader(d, batch_size=None, num_workers=workers))
        assert [worker for _, worker in found] == made_by
        assert [i for numbers, _ in found for i in numbers.tolist()] == list(range(RECORDS))


def test_transform_threads_get_tensors(ds: tfseek.Dataset) -> None:
    def transform(batch: Any, info: tfseek.StepInfo) -> Any:
        assert isinstance(batch["label"], torch.Tensor) and batch["seed"].tolist() == info.augmentation_seeds.tolist()
        return info.step, batch["id"].tolist(), batch["emb"].sum().item()

    options: Any = {"batch_size": 100, "ids": "id", "seed": 1, "augmentation_seed": "seed", "transform": transform}
    plain, threaded = (tft.IterableDataset(ds, SPEC, transform_threads=n, **options) for n in (0, 2))
    for _ in range(2):
        assert list(threaded) == list(plain)
    assert [tuple(result) for result in DataLoader(threaded, batch_size=None)] == list(plain)
    assert threaded.report().steps == 30 and threaded.report().transform_s > 0
    with pytest.raises(ValueError, match="transform_threads"):
        tft.IterableDataset(ds, SPEC, transform_threads=-1, **options)
    copy = pickle.loads(pickle.dumps(tft.IterableDataset(ds, SPEC, batch_size=100, transform_threads=2)))
    assert [len(batch["label"]) for batch in copy] == [100] * 10


def test_errors_of_workers(tmp_path: pathlib.Path) -> None:
    ds = written(tmp_path / "a.tfrecord", (tfseek.Example({"label": "text"} if i == 5 else {"label": i}) for i in range(10)))
    spec = {"label": tfseek.FixedLenFeature([], "int64")}
    for workers in (0, 1):
        d = tft.IterableDataset(ds, spec, batch_size=2)
        seen = []
        with pytest.raises(tfseek.DataError, match="record 5 at byte .*label"):
            for batch in DataLoader(d, batch_size=None, num_workers=workers):
                seen.append(batch["label"].tolist())
        assert seen == [[0, 1], [2, 3]]
        with pytest.raises(tfseek.DataError, match="record 5 at byte .*label"):
            list(DataLoader(tft.Dataset(ds, spec), batch_size=2))
    d = tft.IterableDataset(ds, spec, batch_size=2)
    seen = []
    batches = iter(d)
    for _ in range(2):
        try:
            seen += [batch["label"].tolist() for batch in batches]
        except tfseek.DataError:
            pass
    assert seen == [[6, 7], [8, 9]]
    d = tft.IterableDataset(ds, spec, batch_size=2, damage="skip")
    assert [batch["label"].tolist() for batch in d] == [[0, 1], [2, 3], [4, 6], [7, 8], [9]]


# The Sampler


@pytest.mark.parametrize("shuffle", [True, False, "block"])
def test_a_sampler_has_the_loaders_order(ds: tfseek.Dataset, shuffle: Any) -> None:
    for view in (ds, ds[100:500:3], ds.filter("label in 3, 5..99")):
        sampler = tft.Sampler(view, shuffle=shuffle, seed=4, batch_size=32)
        loader = tfseek.Loader(view, batch_size=32, shuffle=shuffle, seed=4)
        for _ in range(2):
            want = [i for _ in loader for i in loader.ids.tolist()]
            numbers = list(sampler)
            assert view.ids[numbers].tolist() == want and len(sampler) == len(numbers) == len(view)
    with pytest.raises(tfseek.OrderError, match="ascend"):
        tft.Sampler(ds[::-1])


def test_ranks_share_the_loaders_batches(ds: tfseek.Dataset) -> None:
    d = tft.Dataset(ds, DENSE)
    for options in ({}, {"last_batch": "pad"}, {"last_batch": "short"}, {"drop_last": True}):
        whole: list[list[int]] = []
        for rank in range(3):
            share: Any = {"batch_size": 32, "seed": 2, "rank": rank, "world_size": 3, **options}
            loader = tfseek.Loader(ds, DENSE, **share)
            want = [batch["label"].tolist() for batch in loader]
            sampler = tft.Sampler(ds, **share)
            found = [batch["label"].tolist() for batch in DataLoader(d, 32, sampler=sampler)]
            assert found == want and len(sampler) == sum(map(len, want))
            whole.append(sum(found, []))
        if options == {"last_batch": "short"}:
            assert sorted(sum(whole, [])) == list(range(RECORDS))
        elif options == {"drop_last": True}:
            assert len(set(sum(whole, []))) == len(sum(whole, [])) == 96 * (RECORDS // 96)
        else:
            assert set(sum(whole, [])) == set(range(RECORDS)) and {len(part) for part in whole} == {352}


def test_a_sampler_stores_no_order(tmp_path: pathlib.Path) -> None:
    n = 50_000
    write_records(tmp_path / "a.tfrecord", (b"" for _ in range(n)))
    sampler = tft.Sampler(tfseek.open(tmp_path / "a.tfrecord"))
    seen = bytearray(n)
    numbers = iter(sampler)
    next(numbers)
    tracemalloc.start()
    for i in numbers:
        seen[i] = 1
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert sum(seen) == n - 1 and most < 200_000


def test_a_samplers_epochs(ds: tfseek.Dataset) -> None:
    sampler = tft.Sampler(ds, seed=7)
    epochs = [list(sampler) for _ in range(3)]
    assert len({tuple(numbers) for numbers in epochs}) == 3 and sampler.epoch == 2
    sampler.set_epoch(1)
    assert list(sampler) == epochs[1] and list(sampler) == epochs[2]
    sampler.set_epoch(2)
    assert sampler.epoch == 2 and list(sampler) == epochs[2]
    # Left early: the same epoch again. An iteration that never began does not count.
    sampler.set_epoch(0)
    assert list(itertools.islice(sampler, 5)) == epochs[0][:5]
    iter(sampler)
    assert list(sampler) == epochs[0] and list(itertools.islice(sampler, RECORDS)) == epochs[1]
    assert list(itertools.islice(sampler, 5)) == epochs[2][:5]
    sampler.reset()
    assert sampler.state_dict()["pos"] == 0 and list(sampler) == epochs[2]
    assert list(tft.Sampler(ds, seed=-1)) == list(tft.Sampler(ds, seed=2**64 - 1)) != epochs[0]
    with pytest.raises(tfseek.OrderError, match="seed: expected a number"):
        tft.Sampler(ds, seed=2**64)


def test_a_samplers_state(ds: tfseek.Dataset) -> None:
    whole = tft.Sampler(ds, seed=7)
    epochs = [list(whole), list(whole)]
    for stop in (0, 1, 500, 999, 1000):
        sampler = tft.Sampler(ds, seed=7)
        seen = list(itertools.islice(sampler, stop))
        state = json.loads(json.dumps(sampler.state_dict()))
        other = tft.Sampler(ds, seed=1)
        other.load_state_dict(state)
        assert other.state_dict() == state
        other.set_epoch(0)
        assert seen + list(other) == epochs[0] and list(other) == epochs[1]
        # Without set_epoch, an epoch of which nothing is left is over.
        other.load_state_dict(state)
        assert seen + list(other) == (epochs[0] if stop < RECORDS else epochs[0] + epochs[1])
        # A loader accepts it as well.
        loader = tfseek.Loader(ds, batch_size=10, shuffle=True)
        loader.load_state_dict(state)
        assert seen + [i for _ in loader for i in loader.ids.tolist()] == epochs[0]
    # Other numbers of ranks resume.
    ranks = [tft.Sampler(ds, seed=7, rank=rank, world_size=2, batch_size=5) for rank in range(2)]
    seen = sum((list(itertools.islice(rank, 100)) for rank in ranks), [])
    assert ranks[0].state_dict() == ranks[1].state_dict()
    others = [tft.Sampler(ds, rank=rank, world_size=4) for rank in range(4)]
    for other in others:
        other.load_state_dict(ranks[0].state_dict())
        seen += list(other)
    assert sorted(seen) == list(range(RECORDS))
    # In the middle of a batch the ranks have no common position.
    list(itertools.islice(ranks[0], 3))
    with pytest.raises(ValueError, match="3 of 5 samples"):
        ranks[0].state_dict()
    for bad in ({"fp": "0" * 32}, {"n": 3}, {"v": 9}):
        with pytest.raises(tfseek.OrderError):
            others[0].load_state_dict({**state, **bad})
    with pytest.raises(tfseek.OrderError):
        tft.Sampler(ds, shuffle=False).load_state_dict(state)


def test_resume_with_a_plain_dataloader(ds: tfseek.Dataset) -> None:
    """Without workers, the states of sampler and iterable dataset match the returned batches."""
    d = tft.Dataset(ds, DENSE)
    for stop in range(0, 17):
        sampler = tft.Sampler(ds, seed=3)
        loader = DataLoader(d, 64, sampler=sampler)
        seen = [batch["label"].tolist() for batch in itertools.islice(loader, stop)]
        other = tft.Sampler(ds, seed=0)
        other.load_state_dict(sampler.state_dict())
        other.set_epoch(0)
        seen += [batch["label"].tolist() for batch in DataLoader(d, 64, sampler=other)]
        assert seen == [batch["label"].tolist() for batch in tfseek.Loader(ds, DENSE, batch_size=64, seed=3)]
    options: Any = {"batch_size": 64, "ids": "id"}
    loader = tfseek.Loader(ds, SPEC, seed=3, **options)
    epochs = [ids(loader), ids(loader)]
    for stop in range(0, 17):
        first = tft.IterableDataset(ds, SPEC, seed=3, **options)
        found = ids(itertools.islice(DataLoader(first, batch_size=None), stop))
        second = tft.IterableDataset(ds, SPEC, shuffle=True, **options)
        second.load_state_dict(json.loads(json.dumps(first.state_dict())))
        for epoch, want in enumerate(epochs):
            second.set_epoch(epoch)
            # Workers also begin at the state.
            found += ids(DataLoader(second, batch_size=None, num_workers=2 if stop == 5 else 0))
            assert found == want
            found = []


# StatefulDataLoader


@needs_torchdata
@pytest.mark.filterwarnings("ignore:.*set_vital.*")
@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("kind", ["iterable", "sampler", "batches"])
def test_resume_at_every_step(shards: str, kind: str, workers: int) -> None:
    from torchdata.stateful_dataloader.sampler import BatchSampler as StatefulBatchSampler

    ds = tfseek.open(shards)[:250]
    schema = tfseek.Schema(DENSE)

    def made() -> tuple[Any, Any]:
        """Returns a loader, and the object whose epoch is set."""
        if kind == "iterable":
            d = tft.IterableDataset(ds, schema, batch_size=48, seed=8)
            return d, stateful(d, batch_size=None, num_workers=workers)
        sampler = tft.Sampler(ds, seed=8)
        if kind == "sampler":
            return sampler, stateful(tft.Dataset(ds, schema), 48, sampler=sampler, num_workers=workers)
        batches = StatefulBatchSampler(sampler, 48, False)
        return sampler, stateful(tft.Dataset(ds, schema), batch_size=None, sampler=batches, num_workers=workers)

    def labels(batches: Any) -> list[list[int]]:
        return [batch["label"].tolist() for batch in batches]

    loader = tfseek.Loader(ds, schema, batch_size=48, seed=8)
    epochs = [labels(loader) for _ in range(3)]
    for stop in range(8):
        told, batches = made()
        told.set_epoch(1)
        running = iter(batches)
        seen = labels(itertools.islice(running, min(stop, 6)))
        if stop == 7:
            assert next(running, None) is None
        state = json.loads(json.dumps(batches.state_dict()))
        told, batches = made()
        batches.load_state_dict(state)
        if stop < 7:
            told.set_epoch(1)
            assert seen + labels(batches) == epochs[1]
        told.set_epoch(2)
        assert labels(batches) == epochs[2], stop


# Processes


def test_pickles(ds: tfseek.Dataset) -> None:
    d = tft.Dataset(ds, SPEC)
    assert pickle.loads(pickle.dumps(d))[[3]]["label"] == d[[3]]["label"]
    copies: list[Any] = [lambda value: pickle.loads(pickle.dumps(value)), copy.deepcopy]
    for copied in copies:
        batches = tft.IterableDataset(ds, SPEC, batch_size=48, seed=1, ids="id")
        next(iter(batches))
        other = copied(batches)
        assert other.state_dict() == batches.state_dict()
        if copied is not copies[0]:
            other.set_epoch(0)
        assert len(ids(other)) == len(ids(batches)) == RECORDS and ids(other) == ids(batches)
        sampler = tft.Sampler(ds, seed=1)
        list(itertools.islice(sampler, 10))
        other = copied(sampler)
        # A copy has no iterator. It begins the iteration that the original would begin.
        assert list(other) == list(sampler) and list(other) == list(sampler)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_forked_child_and_its_parent_continue(shards: str) -> None:
    run_python("""
import os, signal, sys, warnings
import tfseek, tfseek.torch as tft
from torch.utils.data import DataLoader
warnings.simplefilter("ignore")
ds = tfseek.open(sys.argv[1])
spec = tfseek.Schema({"label": tfseek.FixedLenFeature([], "int64")})
tfseek.parse_example(ds[:10], spec)
tfseek.build_index(ds.shards, rebuild=True, index_dir=os.environ["TFSEEK_INDEX_DIR"])
d, batches = tft.Dataset(ds, spec), tft.IterableDataset(ds, spec, batch_size=50, seed=4)
sampler = tft.Sampler(ds, seed=4)
running, numbers = iter(DataLoader(batches, batch_size=None)), iter(sampler)
seen = [label for _ in range(3) for label in next(running)["label"].tolist()]
first = [next(numbers) for _ in range(150)]
items = iter(ds); next(items)
pid = os.fork()
signal.alarm(20)
rest = [label for batch in running for label in batch["label"].tolist()]
assert d[first]["label"].tolist() == seen and d[list(numbers)]["label"].tolist() == rest
assert sorted(seen + rest) == list(range(1000)) and len(list(items)) == 999
assert tfseek.build_index(ds.shards, rebuild=True, index_dir=os.environ["TFSEEK_INDEX_DIR"]) == 1000
assert len(tfseek.parse_example(ds, spec)["label"]) == 1000
assert sum(len(batch["label"]) for batch in DataLoader(batches, batch_size=None, num_workers=2)) == 1000
if pid:
    assert os.waitpid(pid, 0)[1] == 0
""", shards)


def test_ranks_of_the_environment(ds: tfseek.Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "4")
    assert len(tft.Sampler(ds)) == 250 and len(tft.IterableDataset(ds, batch_size=10)) == 25
    assert list(tft.Sampler(ds)) == list(tft.Sampler(ds, rank=1, world_size=4))
    assert len(tft.Sampler(ds, rank=0, world_size=1)) == RECORDS
    with pytest.raises(ValueError, match="both rank and world_size"):
        tft.Sampler(ds, rank=1)
    for bad in ({"last_batch": "continuous"}, {"last_batch": "pad", "drop_last": True}, {"shuffle": "x"}, {"last_batch": "x"}):
        with pytest.raises(ValueError):
            tft.Sampler(ds, **bad)
    with pytest.raises(tfseek.OrderError):
        tft.Sampler(ds, rank=4, world_size=4)


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
@pytest.mark.skipif(not torch.distributed.is_available(), reason="torch is built without torch.distributed")
def test_torchrun_resumes_after_a_kill(shards: str, tmp_path: pathlib.Path) -> None:
    """One of two ranks is killed in the middle of the first epoch. A new job resumes at the last checkpoint."""
    job = pathlib.Path(__file__).with_name("torch_job.py")
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    for life in range(2):
        done = subprocess.run([*command, str(job), shards, str(tmp_path), "17"], capture_output=True, text=True, timeout=120)
        assert (done.returncode == 0) == (life == 1), done.stderr
        assert (tmp_path / "died").read_text() == "17"
    ranks = []
    for rank in range(2):
        lines = (tmp_path / f"consumed-{rank}").read_text().splitlines()
        ranks.append([tuple(map(int, line.split())) for line in lines])
    assert not set(ranks[0]) & set(ranks[1])
    assert sorted(ranks[0] + ranks[1]) == [(epoch, label) for epoch in range(2) for label in range(RECORDS)]


@needs_torchdata
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="signals of POSIX")
def test_a_killed_process_resumes(shards: str, tmp_path: pathlib.Path) -> None:
    """With workers: samples before the checkpoint and after it are the whole epoch."""
    code = """
import json, os, pathlib, sys, warnings
import tfseek, tfseek.torch as tft
from torchdata.stateful_dataloader import StatefulDataLoader
warnings.simplefilter("ignore")
out = pathlib.Path(sys.argv[2])
d = tft.IterableDataset(tfseek.open(sys.argv[1]), {"label": tfseek.FixedLenFeature([], "int64")}, batch_size=20, seed=5)
loader = StatefulDataLoader(d, batch_size=None, num_workers=2)
seen = []
if out.exists():
    kept = json.loads(out.read_text())
    seen = kept["seen"]
    loader.load_state_dict(kept["state"])
for step, batch in enumerate(loader):
    seen += batch["label"].tolist()
    if step % 4 == 2:
        out.with_suffix(".new").write_text(json.dumps({"seen": seen, "state": loader.state_dict()}))
        out.with_suffix(".new").replace(out)
    if len(sys.argv) == 4:
        print(step, flush=True)
        sys.stdin.readline()
print(json.dumps(seen))
"""
    child = subprocess.Popen(
        [sys.executable, "-c", code, shards, str(tmp_path / "kept"), "wait"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert child.stdin is not None and child.stdout is not None
    for step in range(9):
        assert child.stdout.readline() == f"{step}\n"
        if step < 8:
            child.stdin.write("\n")
            child.stdin.flush()
    child.kill()
    child.wait(20)
    child.stdin.close()
    child.stdout.close()
    assert len(json.loads((tmp_path / "kept").read_text())["seen"]) == 7 * 20
    seen = json.loads(run_python(code, shards, str(tmp_path / "kept")))
    loader = tfseek.Loader(tfseek.open(shards), {"label": SPEC["label"]}, batch_size=20, seed=5)
    assert seen == [label for batch in loader for label in batch["label"].tolist()]


def test_the_last_possible_epochs(shards: str) -> None:
    ds = tfseek.open(shards)
    train = tft.IterableDataset(ds, DENSE, batch_size=500)
    for epoch in (2**63, 2**64 - 1):
        train.set_epoch(epoch)
        assert train.epoch == epoch and len(list(train)) == 2
        train.set_epoch(epoch)
        train.reset()
        assert train.epoch == epoch
    sampler = tft.Sampler(ds)
    sampler.set_epoch(2**64 - 1)
    assert len(list(sampler)) == len(ds)
    assert sampler.state_dict()["epoch"] == 2**64 - 1 and pickle.loads(pickle.dumps(sampler)).epoch == 2**64 - 1
    with pytest.raises(tfseek.OrderError, match="expected an epoch below"):
        list(sampler)


def test_a_copy_is_reset(shards: str) -> None:
    train = tft.IterableDataset(tfseek.open(shards), DENSE, batch_size=100, seed=1)
    batches = iter(train)
    for _ in range(10):
        next(batches)
    copy = pickle.loads(pickle.dumps(train))
    for dataset in (train, copy):
        dataset.reset()
        next(iter(dataset))
        assert dataset.epoch == 0


@pytest.mark.parametrize("persistent", [False, True])
def test_the_state_of_workers_is_not_the_parents(ds: tfseek.Dataset, persistent: bool) -> None:
    train = tft.IterableDataset(ds, DENSE, batch_size=20, seed=5)
    start = train.state_dict()
    batches = DataLoader(train, batch_size=None, num_workers=2, persistent_workers=persistent)
    iterator = iter(batches)
    for _ in range(5):
        next(iterator)
    with pytest.raises(RuntimeError, match="StatefulDataLoader"):
        train.state_dict()
    # The epoch of the next iteration is known, and so is the position of an iteration in this process.
    train.set_epoch(1)
    assert (train.state_dict()["epoch"], train.state_dict()["pos"]) == (1, 0)
    del iterator, batches
    train.load_state_dict(start)
    assert train.state_dict() == start
    next(iter(train))
    assert train.state_dict()["pos"] == 20
    assert pickle.loads(pickle.dumps(train)).state_dict()["pos"] == 20


def test_another_seed_than_the_states_is_told(ds: tfseek.Dataset) -> None:
    one, other = (tft.IterableDataset(ds, DENSE, batch_size=20, seed=seed) for seed in (5, 6))
    with pytest.warns(UserWarning, match="seed=5, which is used in place of seed=6"):
        other.load_state_dict(one.state_dict())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        pickle.loads(pickle.dumps(other))
    with pytest.warns(UserWarning, match="seed=7, which is used in place of seed=8"):
        tft.Sampler(ds, seed=8).load_state_dict(tft.Sampler(ds, seed=7).state_dict())
