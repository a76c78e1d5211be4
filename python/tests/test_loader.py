"""The Loader: batches, order, states."""

from __future__ import annotations

import copy
import gc
import json
import os
import pathlib
import pickle
import re
import sys
import threading
import warnings
from collections.abc import Callable
from typing import Any, Optional

import numpy as np
import pytest
from conftest import RECORDS, SPEC, features, in_threads, run_python, write_records, written

import tfseek


def epoch(loader: Any) -> list[int]:
    return [label for batch in loader for label in batch["label"].tolist()]


def test_an_epoch_is_every_record(ds: tfseek.Dataset, labels: list[int]) -> None:
    loader = tfseek.Loader(ds, SPEC, batch_size=64)
    assert len(loader) == 16
    assert epoch(loader) == labels
    assert epoch(loader) == labels and loader.epoch == 2
    loader = tfseek.Loader(ds, SPEC, batch_size=64, seed=1)
    first, second = epoch(loader), epoch(loader)
    assert sorted(first) == sorted(second) == list(range(RECORDS))
    assert first != second and first != labels
    assert epoch(tfseek.Loader(ds, SPEC, batch_size=64, shuffle=True, seed=1)) == first
    assert epoch(tfseek.Loader(ds, SPEC, batch_size=64, seed=1, epoch=1, threads=1)) == second
    assert epoch(tfseek.Loader(ds, SPEC, batch_size=10, seed=1, threads=0)) == first
    assert epoch(tfseek.Loader(ds, SPEC, batch_size=64, seed=1, shuffle=False)) == labels
    assert sorted(epoch(tfseek.Loader(ds, SPEC, batch_size=64, shuffle="block"))) == list(range(RECORDS))


def test_the_size_of_blocks(ds: tfseek.Dataset) -> None:
    def order(**options: Any) -> Any:
        return tfseek.Loader(ds, SPEC, batch_size=64, shuffle="block", seed=1, **options).state_dict()["order"]

    default, small, large = order(), order(block_bytes=4 << 10), order(block_bytes=8 << 10)
    assert 1 < small["b"] < large["b"] <= 2 * small["b"] + 1 < default["b"] and small["W"] == large["W"] == default["W"]
    assert order(block_bytes=1 << 20) == default
    for options in ({"block_bytes": 0}, {"block_bytes": 100, "shuffle": True}, {"block_bytes": 100, "shuffle": False}):
        with pytest.raises(ValueError, match="block_bytes: expected"):
            tfseek.Loader(ds, SPEC, batch_size=64, **{"shuffle": "block", **options})


def test_batches_are_those_of_parse_example(ds: tfseek.Dataset) -> None:
    for bytes_as in ("objects", "offsets"):
        loader = tfseek.Loader(ds, SPEC, batch_size=100, seed=3, bytes_as=bytes_as, ids="id", mask="mask")
        for batch in loader:
            want = tfseek.parse_example(ds[batch["id"]], SPEC, bytes_as=bytes_as)
            assert batch["id"].tolist() == loader.ids.tolist() and batch["mask"].all() and batch["mask"].dtype == bool
            assert list(batch) == [*want, "id", "mask"]
            assert batch["emb"].tobytes() == want["emb"].tobytes()
            for found, wanted in zip((*batch["tokens"], *batch["name"]), (*want["tokens"], *want["name"])):
                assert np.array_equal(found, wanted)
            assert not batch["emb"].flags.writeable and not batch["id"].flags.writeable


def test_arrays_outlive_the_loader(shards: str) -> None:
    loader: Optional[tfseek.Loader] = tfseek.Loader(tfseek.open(shards), SPEC, batch_size=50, seed=3, ids="id")
    kept = list(loader or [])
    del loader
    gc.collect()
    ds = tfseek.open(shards)
    for batch in kept:
        assert [ex["emb"].tolist() for ex in ds[batch["id"]]] == batch["emb"].tolist()


def test_records_without_a_spec(ds: tfseek.Dataset) -> None:
    loader = tfseek.Loader(ds, batch_size=300, seed=0)
    records = [record for batch in loader for record in batch]
    assert sorted(records) == sorted(bytes(ex) for ex in ds)
    with pytest.raises(ValueError, match="loader.ids"):
        tfseek.Loader(ds, batch_size=1, ids="id")
    with pytest.raises(ValueError, match="already"):
        tfseek.Loader(ds, SPEC, batch_size=1, ids="label")


def test_sequence_examples(tmp_path: Any) -> None:
    path = tmp_path / "a.tfrecord"
    write_records(path, (tfseek.SequenceExample({"id": i}, {"x": [[k] for k in range(i)]}) for i in range(10)))
    schema = tfseek.Schema(
        context_features={"id": tfseek.FixedLenFeature([], "int64")},
        sequence_features={"x": tfseek.FixedLenSequenceFeature([1], "int64")},
    )
    for context, sequence, lengths in tfseek.Loader(tfseek.open(path), schema, batch_size=4):
        assert lengths["x"].tolist() == context["id"].tolist()
        assert sequence["x"].shape == (len(context["id"]), max(lengths["x"]), 1)


def test_views(ds: tfseek.Dataset, labels: list[int]) -> None:
    for shuffle in (False, True, "block"):
        assert sorted(epoch(tfseek.Loader(ds[10:200:3], SPEC, batch_size=7, shuffle=shuffle))) == sorted(labels[10:200:3])
        few = ds.filter("label < 10")
        assert sorted(epoch(tfseek.Loader(few, SPEC, batch_size=7, shuffle=shuffle))) == list(range(10))
    assert epoch(tfseek.Loader(ds[10:200:3], SPEC, batch_size=7)) == labels[10:200:3]
    for bad in (ds[::-1], ds[[3, 2]], ds[[2, 2]]):
        with pytest.raises(tfseek.OrderError, match="ascend"):
            tfseek.Loader(bad, SPEC, batch_size=7)


@pytest.mark.parametrize("threads", [0, 2])
def test_resume_is_exact(ds: tfseek.Dataset, threads: int) -> None:
    loader = tfseek.Loader(ds, SPEC, batch_size=48, seed=9, threads=threads)
    whole = epoch(loader) + epoch(loader)
    for stop in (0, 1, 7, 20, 21, 30):
        loader = tfseek.Loader(ds, SPEC, batch_size=48, seed=9, threads=threads)
        seen: list[int] = []
        for _ in range(stop):
            batch = next(loader, None) or next(loader)
            seen += batch["label"].tolist()
        state = json.loads(json.dumps(loader.state_dict()))
        assert state["n"] == RECORDS and state["fp"] == ds.fingerprint
        other = tfseek.Loader(ds, SPEC, batch_size=32, seed=0, shuffle=True, threads=1)
        other.load_state_dict(state)
        while len(seen) < 2 * RECORDS:
            seen += epoch(other)
        assert seen == whole


def test_states_of_others_are_refused(ds: tfseek.Dataset) -> None:
    loader = tfseek.Loader(ds, SPEC, batch_size=48, seed=9)
    state = loader.state_dict()
    for field, value in [("fp", "0" * 32), ("n", 3), ("v", 99), ("pos", 10**9)]:
        with pytest.raises(tfseek.OrderError):
            loader.load_state_dict({**state, field: value})
    with pytest.raises(tfseek.OrderError):
        tfseek.Loader(ds, SPEC, batch_size=48).load_state_dict(state)
    loader.load_state_dict(state)


def test_set_epoch(ds: tfseek.Dataset) -> None:
    loader = tfseek.Loader(ds, SPEC, batch_size=48, seed=9)
    first, second = epoch(loader), epoch(loader)
    loader.set_epoch(0)
    next(loader)
    # Also the current epoch.
    loader.set_epoch(0)
    assert loader.steps_left == 21 and epoch(loader) == first
    loader.set_epoch(1)
    assert epoch(loader) == second and len(loader) == 21
    loader.set_epoch(1)
    next(loader)
    loader.reset()
    assert loader.epoch == 1 and epoch(loader) == second


@pytest.mark.parametrize("threads", [0, 2])
def test_reading_the_first_batch_does_not_consume_an_epoch(ds: tfseek.Dataset, threads: int) -> None:
    def made(**options: Any) -> tfseek.Loader:
        return tfseek.Loader(ds, SPEC, batch_size=48, seed=9, threads=threads, **options)

    loader = made()
    epochs = [epoch(loader) for _ in range(3)]
    loader = made()
    for k, want in enumerate(epochs):
        for _ in range(2):
            assert next(iter(loader))["label"].tolist() == want[:48] and loader.epoch == k
        assert epoch(loader) == want
    # Left early, and left after the last batch.
    loader = made()
    for batch, _ in zip(loader, range(5)):
        pass
    assert epoch(loader) == epochs[0]
    for _ in range(2):
        loader.set_epoch(1)
        assert [label for _, batch in zip(range(21), loader) for label in batch["label"].tolist()] == epochs[1]
        assert epoch(loader) == epochs[2]
    # With repeat, a new iteration restarts the current epoch, and next continues.
    loader = made(repeat=True)
    assert next(iter(loader))["label"].tolist() == epochs[0][:48]
    assert sum((batch["label"].tolist() for batch, _ in zip(loader, range(21))), []) == epochs[0]
    assert next(loader)["label"].tolist() == epochs[1][48:96], "zip asked for one more"
    assert next(iter(loader))["label"].tolist() == epochs[1][:48]


def test_only_the_first_iteration_resumes_at_a_state(ds: tfseek.Dataset) -> None:
    loader = tfseek.Loader(ds, SPEC, batch_size=50, seed=9)
    assert loader.state_dict()["pos"] == 0
    first, second = epoch(loader), epoch(loader)
    loader.set_epoch(0)
    for _ in range(3):
        next(loader)
    state = loader.state_dict()
    assert (state["epoch"], state["pos"]) == (0, 150)
    other = tfseek.Loader(ds, SPEC, batch_size=50, shuffle=True)
    other.load_state_dict(state)
    assert other.state_dict() == state
    iter(other)
    # A loop that calls set_epoch resumes as well.
    other.set_epoch(0)
    assert other.state_dict() == state
    assert epoch(other) == first[150:] and epoch(other) == second
    other.load_state_dict(state)
    assert next(iter(other))["label"].tolist() == first[150:200]
    assert epoch(other) == first
    other.load_state_dict(state)
    other.reset()
    assert epoch(other) == first
    # All batches were returned: before and after the end of the iteration.
    loader.set_epoch(0)
    batches = iter(loader)
    for _ in range(20):
        next(batches)
    end = loader.state_dict()
    assert (end["epoch"], end["pos"], loader.epoch, loader.steps_left) == (1, 0, 0, 0)
    assert next(batches, None) is None and loader.state_dict() == end and loader.epoch == 1
    other.load_state_dict(end)
    assert epoch(other) == second


def test_one_iterator_at_a_time(ds: tfseek.Dataset) -> None:
    loader = tfseek.Loader(ds, SPEC, batch_size=500, seed=9)
    first = next(loader)["label"].tolist()
    moves: list[Any] = [
        lambda: iter(loader),
        lambda: loader.set_epoch(0),
        loader.reset,
        lambda: loader.load_state_dict(loader.state_dict()),
    ]
    for move in moves:
        loader.reset()
        older = iter(loader)
        assert next(older)["label"].tolist() == first
        move()
        with pytest.raises(RuntimeError, match="this iterator has ended"):
            next(older)
    loader.reset()
    batches = iter(loader)
    next(batches)
    second = next(loader)["label"].tolist()
    assert sorted(first + second) == list(range(RECORDS)), "next(loader) continues it"
    assert next(batches, None) is None and next(batches, None) is None
    assert next(loader)["label"].tolist() != first, "the next epoch"
    assert next(batches, None) is None


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_forked_child_begins_the_same_epoch_as_its_parent(shards: str) -> None:
    code = """
import os, signal, sys, tfseek, warnings
warnings.simplefilter("ignore")
loader = tfseek.Loader(tfseek.open(sys.argv[1]), {"label": tfseek.FixedLenFeature([], "int64")}, batch_size=100, seed=3)
def epoch(batches): return [label for batch in batches for label in batch["label"].tolist()]
first, second = epoch(loader), epoch(loader)
for taken in (3, 10):
    loader.set_epoch(0)
    running = iter(loader)
    for _ in range(taken): next(running)
    for goes_on in (True, False):
        pid = os.fork()
        if not pid:
            signal.alarm(20)
            found = epoch(running) if goes_on else epoch(loader)
            want = first[taken * 100:] if goes_on else first if taken < 10 else second
            os._exit(found != want)
        assert os.waitpid(pid, 0)[1] == 0, (taken, goes_on)
"""
    run_python(code, shards)


def test_no_epoch_follows_the_last(ds: tfseek.Dataset) -> None:
    for repeat in (False, True):
        loader = tfseek.Loader(ds, SPEC, batch_size=500, seed=1, epoch=2**64 - 1, repeat=repeat)
        batches = iter(loader)
        assert len([next(batches), next(batches)]) == 2
        if repeat:
            with pytest.raises(tfseek.OrderError, match="2\\^64"):
                next(batches)
        assert next(batches, None) is None
        with pytest.raises(tfseek.OrderError, match="2\\^64"):
            iter(loader)


def test_seeds_are_integers_of_64_bits(ds: tfseek.Dataset) -> None:
    def first(seed: Any) -> list[int]:
        batch: list[int] = next(tfseek.Loader(ds, SPEC, batch_size=50, seed=seed))["label"].tolist()
        return batch

    assert first(-1) == first(2**64 - 1) == first(np.int8(-1)) == first(np.int64(-1)) == first(np.uint64(2**64 - 1))
    assert first(-(2**63)) == first(2**63) and first(-1) != first(1) == first(np.uint16(1)) == first(np.int32(1))
    assert tfseek.Loader(ds, SPEC, batch_size=50, seed=-1).state_dict()["seed"] == 2**64 - 1
    seed: Any
    for seed in (-(2**63) - 1, 2**64, 2**200):
        with pytest.raises(tfseek.OrderError, match="seed: expected a number from -2\\^63 to 2\\^64 - 1, found"):
            first(seed)
    for seed in (1.5, "1"):
        with pytest.raises(TypeError):
            first(seed)


def test_an_unknown_feature_suggests_a_name(ds: tfseek.Dataset) -> None:
    calls: list[Any] = [
        lambda: ds.column("lable"),
        lambda: ds.filter("lable in 3"),
        lambda: ds.filter("absent(lable)"),
        lambda: tfseek.Loader(ds, SPEC, batch_size=1, balance="lable"),
    ]
    for call in calls:
        with pytest.raises(tfseek.SpecError, match='nearest name is "label"') as raised:
            call()
        assert raised.value.feature == "lable"
    with pytest.raises(tfseek.OrderError, match="no classes to balance"):
        tfseek.Loader(ds.filter("label < 0"), SPEC, batch_size=1, balance="label")


def test_ranks_share_a_batch(ds: tfseek.Dataset) -> None:
    whole = [batch["label"].tolist() for batch in tfseek.Loader(ds, SPEC, batch_size=96, seed=2)]
    for size in ({"batch_size": 32}, {"global_batch_size": 96}):
        ranks = [tfseek.Loader(ds, SPEC, **size, seed=2, rank=rank, world_size=3, mask="mask") for rank in range(3)]
        assert {len(rank) for rank in ranks} == {11}
        for step, parts in enumerate(zip(*ranks)):
            assert {len(part["label"]) for part in parts} == {32}
            counted = [part["label"][part["mask"]].tolist() for part in parts]
            assert sum(counted, []) == whole[step]
        assert {json.dumps(rank.state_dict()) for rank in ranks} == {json.dumps(ranks[0].state_dict())}


def test_workers_take_steps_in_rotation(ds: tfseek.Dataset) -> None:
    def made(worker: int = 0, workers: int = 1) -> Any:
        return tfseek.Loader(ds, SPEC, batch_size=30, seed=2, worker=worker, workers=workers)

    want = [batch["label"].tolist() for batch in made()]
    three = [made(worker, 3) for worker in range(3)]
    assert [len(worker) for worker in three] == [12, 11, 11]
    found = [[batch["label"].tolist() for batch in worker] for worker in three]
    assert [found[step % 3][step // 3] for step in range(len(want))] == want
    with pytest.raises(tfseek.OrderError, match="no worker 3: there are 3"):
        made(3, 3)


def test_balanced_classes(tmp_path: Any) -> None:
    ds = written(tmp_path / "a", (tfseek.Example({"label": 0 if i < 90 else 1 + i % 2, "i": i}) for i in range(100)))
    spec = {name: tfseek.FixedLenFeature([], "int64") for name in ("label", "i")}
    for view, classes in ((ds, 3), (ds[:95], 3), (ds[:90], 1)):
        loader = tfseek.Loader(view, spec, batch_size=6, balance="label", seed=1, drop_last=True)
        seen = set()
        for batch in loader:
            assert np.bincount(batch["label"]).tolist() == [6 // classes] * classes
            seen.update(batch["i"].tolist())
        assert set(range(90, len(view))) <= seen <= set(range(len(view))), "the rare come again, and all of them"
    with pytest.raises(tfseek.Error, match="found float"):
        write_records(tmp_path / "b", [tfseek.Example({"label": 0.5})])
        tfseek.Loader(tfseek.open(tmp_path / "b"), batch_size=1, balance="label")


def test_weights_draw_records(ds: tfseek.Dataset, labels: list[int]) -> None:
    def drawn(source: Any = ds, weights: Any = "label", size: int = 40, **options: Any) -> list[list[int]]:
        loader = tfseek.Loader(source, SPEC, global_batch_size=size, weights=weights, seed=1, ids="id", **options)
        return [batch["id"].tolist() for batch in loader]

    # The example of order.md, section 6.
    assert drawn(ds[:5], [5, 2, 1, 0, 8], 5) == [[0, 4, 0, 4, 0]] == drawn(ds[:5], np.float32([5, 2, 1, 0, 8]) / 8, 5, shuffle=True)
    whole = drawn()
    assert whole == drawn(weights=labels, threads=0) != drawn(epoch=1)
    values = np.array(labels)[sum(whole, [])]
    assert len(values) == RECORDS and values.min() > 0 and abs(values.mean() - RECORDS * 2 / 3) < RECORDS / 30
    ranks = [drawn(rank=rank, world_size=4) for rank in range(4)]
    assert [sum(parts, []) for parts in zip(*ranks)] == whole
    some = ds.filter("label < 100")
    assert drawn(some) == drawn(some, [labels[i] for i in some.ids]) and set(sum(drawn(some), [])) <= set(some.ids.tolist())

    loader = tfseek.Loader(ds, SPEC, batch_size=40, weights=labels, seed=1, ids="id")
    assert [next(loader)["id"].tolist() for _ in range(7)] == whole[:7]
    state = loader.state_dict()
    resumed = tfseek.Loader(ds, SPEC, batch_size=40, weights="label", seed=9, ids="id")
    resumed.load_state_dict(state)
    assert [batch["id"].tolist() for batch in resumed] == whole[7:]
    for weights in (labels[1:] + labels[:1], None):
        with pytest.raises(tfseek.OrderError):
            tfseek.Loader(ds, SPEC, batch_size=40, weights=weights, seed=1).load_state_dict(json.loads(json.dumps(state)))


def test_weights_that_are_refused(ds: tfseek.Dataset, tmp_path: Any) -> None:
    write_records(tmp_path / "a", (tfseek.Example(features) for features in ({"w": 1.0}, {}, {"w": 2.0})))
    for options, message in (
        ({"weights": "name"}, "weight of record 0, found a string"),
        ({"weights": [1.0]}, "expected 1000 numbers, one for each record of the dataset or view, found 1"),
        ({"weights": [-1.0] * RECORDS}, "weight 0 is negative"),
        ({"weights": [0] * RECORDS}, "a weight above 0, found none"),
        ({"weights": ["x"] * RECORDS}, "a feature or a list of numbers"),
        ({"weights": "label", "balance": "label"}, "weights and balance exclude each other"),
        ({"weights": "label", "shuffle": "block"}, "expected no shuffle or a global one, found 'block'"),
        ({"weights": "label", "shuffle": False}, "found False"),
    ):
        with pytest.raises((ValueError, TypeError), match=message):
            tfseek.Loader(ds, SPEC, batch_size=1, **options)
    with pytest.raises(tfseek.OrderError, match="weight of record 1, found no value") as raised:
        tfseek.Loader(tfseek.open(tmp_path / "a"), batch_size=1, weights="w")
    assert raised.value.feature == "w"


def test_tails(ds: tfseek.Dataset) -> None:
    def lengths(**options: Any) -> list[int]:
        return [len(batch["label"]) for batch in tfseek.Loader(ds, SPEC, batch_size=300, seed=0, **options)]

    assert lengths() == lengths(last_batch="short") == [300, 300, 300, 100]
    assert lengths(drop_last=True) == lengths(last_batch="drop") == [300] * 3
    assert lengths(last_batch="pad") == lengths(last_batch="continuous") == [300] * 4
    with pytest.raises(ValueError, match="drop_last"):
        lengths(drop_last=True, last_batch="pad")


def test_invalid_options_are_refused(ds: tfseek.Dataset) -> None:
    for options, error in [
        ({}, ValueError),
        ({"batch_size": 1, "global_batch_size": 1}, ValueError),
        ({"batch_size": 1, "shuffle": "x"}, ValueError),
        ({"batch_size": 1, "verify": "x"}, ValueError),
        ({"batch_size": 1, "damage": "x"}, ValueError),
        ({"batch_size": 1, "last_batch": "x"}, ValueError),
        ({"batch_size": 1, "rank": 2, "world_size": 2}, tfseek.OrderError),
        ({"global_batch_size": 3, "world_size": 2}, tfseek.OrderError),
        ({"batch_size": 0}, tfseek.OrderError),
        ({"batch_size": -1}, tfseek.OrderError),
    ]:
        with pytest.raises(error):
            tfseek.Loader(ds, SPEC, **options)
    with pytest.raises(TypeError):
        tfseek.Loader([], SPEC, batch_size=1)


def test_invalid_records_raise_at_their_position_or_are_skipped(tmp_path: Any) -> None:
    path = tmp_path / "a.tfrecord"
    ds = written(path, (tfseek.Example({"label": "text"} if i == 5 else {"label": i}) for i in range(10)))
    spec = {"label": tfseek.FixedLenFeature([], "int64")}
    loader = tfseek.Loader(ds, spec, batch_size=2)
    seen, raised = [], 0
    while True:
        try:
            seen.append(next(loader)["label"].tolist())
        except tfseek.DataError as e:
            assert (e.path, e.record, e.feature, e.category) == (str(path), 5, "label", "kind_mismatch")
            raised += 1
        except StopIteration:
            break
    assert seen == [[0, 1], [2, 3], [6, 7], [8, 9]] and raised == 1

    loader = tfseek.Loader(ds, spec, batch_size=2, damage="skip")
    seen = []
    for batch in loader:
        seen.append(batch["label"].tolist())
        assert [record for record, _ in loader.skipped] == ([5] if seen[-1] == [4, 6] else [])
    assert seen == [[0, 1], [2, 3], [4, 6], [7, 8], [9]]


def test_batches_are_filled_on_one_rank_and_padded_on_several(tmp_path: pathlib.Path) -> None:
    path, bad = tmp_path / "a.tfrecord", {1, 2, 9, 10, 11}
    write_records(path, (tfseek.Example({"label": "text"} if i in bad else {"label": i}) for i in range(12)))
    ds, spec = tfseek.open(path), {"label": tfseek.FixedLenFeature([], "int64")}
    options: dict[str, Any] = {"batch_size": 2, "damage": "skip", "ids": "id", "mask": "mask"}
    for threads in (0, 3):
        for transform_threads in (0, 2):
            more = {"transform": dict, "transform_threads": transform_threads}
            loader: tfseek.Loader[Any] = tfseek.Loader(ds, spec, threads=threads, **more, **options)
            for total in (5, 10):
                batches = list(loader)
                assert [batch["label"].tolist() for batch in batches] == [[0, 3], [4, 5], [6, 7], [8]]
                assert all(batch["mask"].all() for batch in batches) and loader.skipped_total == total
    ranks = [list(tfseek.Loader(ds, spec, rank=rank, world_size=2, **options)) for rank in range(2)]
    assert [[batch["id"].tolist() for batch in batches] for batches in ranks] == [
        [[0, 0], [4, 5], [8, 8]],
        [[3, 3], [6, 7], [7, 7]],
    ]
    assert [batch["mask"].tolist() for batch in ranks[1]] == [[False, True], [True, True], [False, False]]
    with pytest.raises(tfseek.DataError, match="no batch has a sound row: 3 records"):
        next(tfseek.Loader(ds[9:], spec, batch_size=2, damage="skip"))


def test_an_iterator_may_end_in_any_thread(ds: tfseek.Dataset) -> None:
    for threads in (0, 2):
        loader: tfseek.Loader[Any] = tfseek.Loader(
            ds, SPEC, batch_size=50, seed=1, transform=lambda batch: batch["label"].tolist(), transform_threads=threads
        )
        for _ in range(3):
            batches = iter(loader)
            found: list[Any] = []
            errors: list[Any] = []

            def take(batches: Any = batches, found: Any = found, errors: Any = errors) -> None:
                try:
                    for batch in batches:
                        found.extend(batch)
                except BaseException as error:
                    errors.append(error)

            in_threads(lambda _: take(), range(8))
            assert errors == [] and sorted(found) == list(range(RECORDS))
            assert next(batches, None) is None


def test_an_order_that_balance_cannot_have_is_refused(ds: tfseek.Dataset) -> None:
    with pytest.raises(tfseek.OrderError, match='expected shuffle=True or "block", found False'):
        tfseek.Loader(ds, SPEC, batch_size=8, balance="label", shuffle=False)
    loader = tfseek.Loader(ds, SPEC, batch_size=8, balance="label", shuffle="block", seed=1)
    assert loader.state_dict()["order"]["kind"] == "balanced" and "of balanced classes in block order" in loader.describe()
    assert tfseek.Loader(ds, SPEC, batch_size=8, balance="label").state_dict()["order"]["kind"] == "mixture"


def test_skipped_records_are_counted_by_file(tmp_path: pathlib.Path) -> None:
    for name, bad in (("a", {1}), ("b", set()), ("c", {0, 4})):
        write_records(tmp_path / f"{name}.tfrecord", (tfseek.Example({"label": "word" if i in bad else i}) for i in range(6)))
    ds = tfseek.open(tmp_path, index="memory")
    loader = tfseek.Loader(ds, {"label": tfseek.FixedLenFeature([], "int64")}, batch_size=4, seed=1, damage="skip", threads=2)
    assert (loader.skipped_total, loader.skipped_by_file) == (0, {})
    counted = 0
    for epoch in range(1, 4):
        for _ in loader:
            counted += len(loader.skipped)
            assert loader.skipped_total == counted
        assert loader.skipped_by_file == {str(tmp_path / "a.tfrecord"): epoch, str(tmp_path / "c.tfrecord"): 2 * epoch}


def test_a_state_of_another_run_says_what_differs(ds: tfseek.Dataset, tmp_path: pathlib.Path) -> None:
    paths = [tmp_path / f"{k}.tfrecord" for k in range(3)]
    for path, size in zip(paths, (10, 10, 11)):
        write_records(path, (tfseek.Example({"i": i, "name": path.name * size}) for i in range(size)))
    one, same_size, longer = (tfseek.open(path, index="memory") for path in paths)
    saved = tfseek.Loader(one, batch_size=4, seed=1).state_dict()
    cases: list[tuple[tfseek.Dataset, dict[str, Any], str]] = [
        (longer, {"seed": 1}, "of another dataset: expected 11 records, found 10"),
        (same_size, {"seed": 1}, "of another dataset, with as many records in other shards: expected fingerprint"),
        (one, {"shuffle": False}, "of another order: expected file order (no shuffling), found a global shuffle"),
        (one, {"shuffle": "block", "seed": 1}, "of another order: expected a block shuffle, found a global shuffle"),
        (one[2:], {"seed": 1}, "of another order: expected the records that a filter selects, found all"),
    ]
    for other, options, text in cases:
        loader = tfseek.Loader(other, batch_size=4, **options)
        with pytest.raises(tfseek.OrderError, match=re.escape(text)):
            loader.load_state_dict(saved)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tfseek.Loader(one, batch_size=4, seed=1).load_state_dict(saved)
        tfseek.Loader(one, batch_size=4, shuffle=True).load_state_dict(saved)
    loader = tfseek.Loader(one, batch_size=4, seed=2)
    with pytest.warns(UserWarning, match="the state has seed=1, which is used in place of seed=2") as raised:
        loader.load_state_dict(saved)
    assert raised[0].filename == __file__ and loader.state_dict() == saved


def test_close(ds: tfseek.Dataset) -> None:
    with tfseek.Loader(ds, SPEC, batch_size=10) as loader:
        next(loader)
    loader.close()
    with pytest.raises(RuntimeError, match="closed"):
        next(loader)
    assert "1000 records" in repr(tfseek.Loader(ds, SPEC, batch_size=10))


def test_memory_is_reused(ds: tfseek.Dataset) -> None:
    """Buffers of released batches are reused. Buffers in use are not."""
    loader = tfseek.Loader(ds, SPEC, batch_size=100, seed=0, threads=1, repeat=True)
    held = next(loader)
    before = held["emb"].copy()
    places = set()
    for _ in range(200):
        batch = next(loader)
        places.add(batch["emb"].__array_interface__["data"][0])
        assert not np.shares_memory(batch["emb"], held["emb"])
    assert len(places) < 20
    assert np.array_equal(held["emb"], before)
    assert features(0)["emb"].dtype == held["emb"].dtype


def test_workers_with_repeat_restart_an_epoch_at_its_start(ds: tfseek.Dataset) -> None:
    for worker, want in ((0, 0), (1, 100)):
        loader = tfseek.Loader(ds, SPEC, batch_size=100, ids="id", repeat=True, worker=worker, workers=2)
        batches = iter(loader)
        # Five of the ten batches of an epoch, and one of the next.
        first = [int(next(batches)["id"][0]) for _ in range(6)]
        assert first == [want + 200 * k for k in range(5)] + [want]
        for _ in range(3):
            assert int(next(iter(loader))["id"][0]) == want and loader.epoch == 1


def test_concurrent_iterators_have_different_numbers(ds: tfseek.Dataset) -> None:
    loader = tfseek.Loader(ds, SPEC, batch_size=100)
    for _ in range(100):
        barrier = threading.Barrier(2)
        numbers: list[int] = []

        def begin(barrier: threading.Barrier = barrier, numbers: list[int] = numbers) -> None:
            barrier.wait()
            numbers.append(iter(loader)._number)  # type: ignore[attr-defined]

        in_threads(lambda _: begin(), range(2))
        assert len(set(numbers)) == 2


def test_transform(ds: tfseek.Dataset) -> None:
    options: Any = {"batch_size": 100, "seed": 1, "ids": "id", "mask": "mask"}
    plain = tfseek.Loader(ds, SPEC, **options)
    loader = tfseek.Loader(ds, SPEC, transform=lambda batch: (batch["id"].tolist(), bool(batch["mask"].all())), **options)
    for want, found in zip(plain, loader):
        assert found == (want["id"].tolist(), True)
        assert loader.state_dict() == plain.state_dict()
    other: Any = 3
    with pytest.raises(TypeError, match="transform: expected a function of a batch, found 3"):
        tfseek.Loader(ds, SPEC, transform=other, **options)


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, StopIteration])
def test_exceptions_of_a_transform_name_the_batch(ds: tfseek.Dataset, error: Any) -> None:
    calls: list[Any] = []

    def transform(batch: Any) -> Any:
        calls.append(batch["id"].tolist())
        if len(calls) == 3:
            raise error("mine")
        return batch

    loader = tfseek.Loader(ds, SPEC, batch_size=50, seed=1, ids="id", transform=transform)
    batches = iter(loader)
    next(batches), next(batches)
    # A StopIteration would end the epoch silently.
    with pytest.raises(RuntimeError if error is StopIteration else error) as found:
        next(batches)
    (note,) = vars(found.value)["__notes__"]
    ids = ", ".join(str(i) for i in calls[2][:32])
    assert note == f"in transform of epoch 0, step 2, records {ids}, .. (50 records)"
    if sys.version_info < (3, 11):
        assert str(found.value.__cause__) == note or error is StopIteration
    assert loader.ids.tolist() == calls[2]
    # The same iterator continues after it.
    assert len(list(batches)) == 17 and len(calls) == 20
    plain = tfseek.Loader(ds, SPEC, batch_size=50, seed=1, ids="id")
    assert [batch["id"].tolist() for batch in plain] == calls


@pytest.mark.parametrize("tail", ["short", "drop", "pad"])
def test_rows_of_a_record(shards: str, tail: str) -> None:
    """Each record is at the row of the batch that ``rows_of`` computes."""
    ds = tfseek.open(shards)
    loader = tfseek.Loader(ds, batch_size=64, shuffle=True, seed=5, last_batch=tail)
    for epoch in range(3):
        found: dict[int, list[tuple[int, int, int]]] = {}
        for step, _ in enumerate(loader):
            for row, i in enumerate(loader.ids[loader.mask].tolist()):
                found.setdefault(i, []).append((step, 0, row))
        assert [loader.rows_of(i, epoch) for i in range(len(ds))] == [found.get(i, []) for i in range(len(ds))]


def test_rows_of_views_ranks_and_classes(shards: str) -> None:
    ds = tfseek.open(shards)
    view = ds[100:300:2]
    loader = tfseek.Loader(view, batch_size=10, seed=5)
    batch = next(iter(loader))
    assert len(batch) == 10
    for row, i in enumerate(loader.ids.tolist()):
        # The epoch in progress, from its start.
        assert loader.rows_of(i) == [(0, 0, row)] and loader.rows_of(np.int64(i), loader.epoch) == [(0, 0, row)]
    assert loader.rows_of(101) == [] and loader.rows_of(999) == []
    for number in (-1, len(ds), 10**12):
        with pytest.raises(IndexError, match="record"):
            loader.rows_of(number)
    ranks = [tfseek.Loader(ds, global_batch_size=50, rank=rank, world_size=2, seed=1, threads=0) for rank in range(2)]
    next(ranks[1])
    i = int(ranks[1].ids[7])
    assert ranks[0].rows_of(i, 0) == ranks[1].rows_of(i, 0) == [(0, 1, 7)]
    balanced = tfseek.Loader(ds.filter("label < 3"), batch_size=3, balance="label", seed=1)
    next(balanced)
    assert [balanced.rows_of(i)[0] for i in balanced.ids.tolist()] == [(0, 0, row) for row in range(3)]
    balanced.close()
    with pytest.raises(RuntimeError, match="closed"):
        balanced.rows_of(0)


def test_a_misspelt_name_of_a_spec_is_named(tmp_path: pathlib.Path) -> None:
    """An optional feature may be absent from all records, so it is no error."""
    path = str(tmp_path / "x.tfrecord")
    ds = written(path, ({"label": i, "tokens": [i]} for i in range(10)))
    spec = {"label": tfseek.FixedLenFeature([], "int64"), "tokns": tfseek.VarLenFeature("int64"), "far": tfseek.Optional("int64")}
    # Functions warn once of a spec, whose parser they keep.
    other = {**spec, "other": tfseek.Optional("int64")}
    expected = 'none of the first records has a feature "tokns"; the nearest name is "tokens"'
    loader = tfseek.Loader(ds, spec, batch_size=4)
    reads: dict[str, Callable[[], object]] = {
        "parse_example": lambda: tfseek.parse_example(ds[:3], spec),
        "stream": lambda: next(tfseek.stream(path).batches(other, 3)),
        "scan": lambda: ds.scan(spec=spec).__arrow_c_stream__(),
        "scan of parts": lambda: tfseek.scan(parts=ds.shares(1)[0], spec=spec).__arrow_c_stream__(),
        "two epochs": lambda: [len(batch["label"]) for _ in range(2) for batch in loader],
    }
    for name, read in reads.items():
        with pytest.warns(tfseek.Warning) as found:
            read()
        assert [(str(each.message), each.filename) for each in found] == [(expected, __file__)], name
    (warning,) = loader.warnings
    assert (warning.kind, warning.feature, warning.nearest, warning.path) == ("unknown_feature", "tokns", "tokens", None)
    known = {"label": tfseek.Optional("int64"), "far": tfseek.Optional("int64")}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(list(tfseek.Loader(ds, known, batch_size=4))) == 3
        tfseek.parse_example(ds[:3], known)


@pytest.mark.parametrize("threads", [0, 2])
@pytest.mark.parametrize("transform_threads", [0, 2])
def test_a_warning_that_is_an_error_loses_no_batch(tmp_path: pathlib.Path, threads: int, transform_threads: int) -> None:
    path = str(tmp_path / "x.tfrecord")
    ds = written(path, ({"label": i, "tokens": [i]} for i in range(10)))
    spec = {"label": tfseek.FixedLenFeature([], "int64"), "tokns": tfseek.VarLenFeature("int64")}

    def loader() -> tfseek.Loader[Any]:
        transform = (lambda batch: batch) if transform_threads else None
        return tfseek.Loader(ds, spec, batch_size=4, threads=threads, transform=transform, transform_threads=transform_threads)

    def raised(first: Callable[[], object]) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with pytest.raises(tfseek.Warning, match="tokns"):
                first()

    found = loader()
    batches = iter(found)
    raised(lambda: next(batches))
    assert (found.state_dict()["pos"], found.steps_left) == (0, 3)
    assert epoch(batches) == list(range(10)) and epoch(found) == list(range(10)) and found.epoch == 2
    # Without an iterator, with another one, and from the state.
    found = loader()
    raised(lambda: next(found))
    assert next(found)["label"].tolist() == [0, 1, 2, 3]
    found = loader()
    raised(lambda: next(found))
    assert epoch(found) == list(range(10))
    found, resumed = loader(), loader()
    raised(lambda: next(found))
    resumed.load_state_dict(found.state_dict())
    with pytest.warns(tfseek.Warning):
        assert epoch(resumed) == list(range(10))
    # Batches of a stream.
    stream = tfseek.stream(path).batches(tfseek.Schema(spec), 4)
    raised(lambda: next(stream))
    assert epoch(stream) == list(range(10))


def test_a_loader_is_not_copied(ds: tfseek.Dataset) -> None:
    text = r"^a loader cannot be pickled or copied: pickle its dataset and its state_dict\(\)$"
    makes: list[Callable[[], tfseek.Loader[Any]]] = [
        lambda: tfseek.Loader(ds, SPEC, batch_size=4),
        lambda: tfseek.Loader(tfseek.Mix([((ds, SPEC), 1)]), batch_size=4),
        lambda: tfseek.Loader(ds, SPEC, batch_size=4, transform=len, transform_threads=2),
    ]
    for make in makes:
        for copied in (pickle.dumps, copy.copy, copy.deepcopy, lambda loader: pickle.dumps(iter(loader))):
            with pytest.raises(TypeError, match=text):
                copied(make())
    loader = makes[0]()
    loader.close()
    with pytest.raises(TypeError, match=text):
        pickle.dumps(loader)


def test_a_misspelt_name_of_statistics_is_named(tmp_path: pathlib.Path) -> None:
    path = str(tmp_path / "x.tfrecord")
    write_records(path, [{"label": 1}])
    with pytest.warns(tfseek.Warning, match='^no record has the feature "lable"; the nearest name is "label"$') as found:
        tfseek.stats(path, features=["lable", "t*"])
    assert [(each.message.feature, each.message.nearest) for each in found] == [("lable", "label")]  # type: ignore[union-attr]
    with pytest.warns(tfseek.Warning, match='^no record has the feature "word"$'):
        tfseek.stats(path, features=["word"])
    with pytest.raises(tfseek.Error, match='by: no record has the feature "Label"; the nearest name is "label"'):
        tfseek.stats(path, by="Label")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tfseek.stats(path, features="label")


def _varint(number: int) -> bytes:
    return bytes([number]) if number < 128 else bytes([number % 128 + 128]) + _varint(number // 128)


def _field(number: int, body: bytes) -> bytes:
    return _varint(number << 3 | 2) + _varint(len(body)) + body


@pytest.mark.parametrize("other", ["variants", "scenarios"])
def test_a_spec_for_other_messages_is_refused(tmp_path: pathlib.Path, other: str) -> None:
    """Protobuf decodes them as Examples without features, or finds fault with their bytes."""
    variant = _field(1, _field(14, b"chr20") + _varint(16 << 3) + _varint(9999)) + _field(2, bytes(24))
    scenario = _field(5, b"abc123") + _field(1, np.arange(9.0).tobytes())
    path = tmp_path / "other.tfrecord"
    ds = written(path, (variant if other == "variants" else scenario for _ in range(4)))
    fixed, ragged = tfseek.FixedLenFeature([3], "float32"), tfseek.RaggedFeature("int64")
    for spec in ({"x": tfseek.VarLenFeature("int64")}, {"x": ragged}, {"x": fixed}, {"x": tfseek.Optional("int64", 1)}):
        reads: list[Callable[[], object]] = [
            lambda: next(iter(tfseek.Loader(ds, spec, batch_size=2))),
            lambda: next(iter(tfseek.Loader(ds, spec, batch_size=2, damage="skip"))),
            lambda: next(tfseek.stream(path).batches(spec, 2)),
            lambda: ds.schema,
        ]
        for read in reads:
            with pytest.raises(tfseek.SpecError, match="neither Examples nor SequenceExamples"):
                read()


def test_a_name_on_another_side_is_told(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "s.tfrecord"
    ds = written(path, (tfseek.SequenceExample({"A": 1, "B": "b"}, {"C": [[1], [2]]}) for _ in range(3)))
    number = tfseek.FixedLenFeature([], "int64")
    spec = {"A": number, "C": tfseek.VarLenFeature("int64")}
    with pytest.warns(tfseek.Warning, match='feature "C" there: it is a feature list$') as found:
        next(iter(tfseek.Loader(ds, spec, batch_size=2)))
    assert [(each.message.kind, each.message.feature) for each in found] == [("unknown_feature", "C")]  # type: ignore[union-attr]
    with pytest.raises(tfseek.DataError, match='feature "C": expected int64, found no such feature; it is a feature list$'):
        tfseek.parse_example(list(ds), {"C": number})
    lists = {"A": tfseek.FixedLenSequenceFeature([], "int64")}
    with pytest.raises(tfseek.DataError, match='feature "A": .*; it is a feature of the context$'):
        tfseek.parse_sequence_example(list(ds), {}, lists)
    with pytest.raises(tfseek.SpecError, match="it is a feature list"):
        ds.filter("len(C) > 0")


def test_a_value_that_some_records_lack(tmp_path: pathlib.Path) -> None:
    """The name of a neighbour is no hint where other records have the feature."""
    path = tmp_path / "x.tfrecord"
    ds = written(path, [{"f_000": 1.0, "f_001": 2.0}, {"f_001": 2.0}, {"f_000": None, "f_001": 2.0}])
    spec = {"f_000": tfseek.FixedLenFeature([], "float32")}
    reads: list[Callable[[], object]] = [
        lambda: tfseek.parse_example(ds[:2], spec),
        lambda: list(tfseek.Loader(ds, spec, batch_size=1, shuffle=False)),
    ]
    for read in reads:
        with pytest.raises(tfseek.DataError, match="record 1 .*other records have it: a default, or an optional feature, lets it be absent$"):
            read()
    with pytest.raises(tfseek.DataError, match="record 2 .*it is there without a kind, and so without values$"):
        tfseek.parse_example(ds[2:], spec)


def test_a_name_that_no_record_has_is_told_once(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "k.tfrecord"
    ds = written(path, ({"image/class/label": i, "image/encoded": "x"} for i in range(40)))
    absent = {
        "class": tfseek.FixedLenFeature([], "int64", default_value=0),
        "tokens": tfseek.RaggedFeature("int64"),
        "boxes": tfseek.VarLenFeature("float32"),
        "maybe": tfseek.Optional("int64"),
    }
    with pytest.warns(tfseek.Warning) as found:
        loader = tfseek.Loader(ds, absent, batch_size=4)
        assert sum(len(batch["class"]) for _ in range(2) for batch in loader) == 80
    expected = [f'none of the first records has a feature "{name}": its values are the default, or none' for name in ("boxes", "class", "tokens")]
    assert [str(each.message) for each in found] == expected
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tfseek.parse_example(ds[:2], absent)
