"""``transform`` in threads of the loader, the seeds of augmentations, and reports."""

from __future__ import annotations

import contextlib
import gc
import json
import os
import pathlib
import threading
import time
import weakref
from typing import Any

import numpy as np
import pytest
from conftest import RECORDS, SPEC, in_threads, run_python, written
from order_twin import absorb, tag

import tfseek

#: Batches arrive in an order that depends on the time that each takes, unless they are sorted.
DELAYS = [0.004, 0.0, 0.002, 0.0, 0.001]


def slow(batch: Any, info: tfseek.StepInfo) -> Any:
    time.sleep(DELAYS[info.step % len(DELAYS)])
    return batch["id"].tolist()


def loader_of(ds: tfseek.Dataset, transform_threads: int, transform: Any = slow, **options: Any) -> Any:
    options = {"batch_size": 50, "seed": 1, "ids": "id", **options}
    return tfseek.Loader(ds, SPEC, transform=transform, transform_threads=transform_threads, **options)


def test_threads_keep_the_order_and_the_states(ds: tfseek.Dataset) -> None:
    plain, loaders = loader_of(ds, 0), [loader_of(ds, n) for n in (1, 2, 5)]
    for _ in range(2):
        wanted = []
        for batch in plain:
            wanted.append((batch, plain.state_dict(), plain.steps_left, plain.epoch, plain.ids.tolist()))
        assert len(wanted) == RECORDS // 50
        for loader in loaders:
            found = []
            for batch in loader:
                found.append((batch, loader.state_dict(), loader.steps_left, loader.epoch, loader.ids.tolist()))
            assert found == wanted
            assert (loader.state_dict(), loader.epoch) == (plain.state_dict(), plain.epoch)


def test_an_iteration_that_is_left_begins_again(ds: tfseek.Dataset) -> None:
    plain, loader = loader_of(ds, 0), loader_of(ds, 3)
    for steps in (1, 19, 20, 3):  # Of 20 steps, so the threads reach the end of the epoch before the consumer does.
        found = []
        for each in (plain, loader):
            batches = iter(each)
            found.append([next(batches) for _ in range(steps)] + [each.state_dict()])
        assert found[0] == found[1]
    # `next(loader)` continues the newest iterator.
    assert [next(loader) for _ in range(3)] == [next(plain) for _ in range(3)]
    old = iter(loader)
    new = iter(loader)
    assert next(new) == next(iter(plain))
    with pytest.raises(RuntimeError, match="this iterator has ended"):
        next(old)
    for each in (plain, loader):
        each.set_epoch(5)
    with pytest.raises(RuntimeError, match="this iterator has ended"):
        next(new)
    assert list(loader) == list(plain) and loader.epoch == 6
    for each in (plain, loader):
        next(each)
        each.reset()
    assert next(loader) == next(plain)


@pytest.mark.parametrize("threads", [1, 3])
def test_a_state_after_each_step_resumes_there(ds: tfseek.Dataset, threads: int) -> None:
    wanted = list(loader_of(ds, 0))
    loader = loader_of(ds, threads)
    for k, _ in enumerate(loader, 1):
        again = loader_of(ds, threads)
        again.load_state_dict(json.loads(json.dumps(loader.state_dict())))
        assert list(again) == (wanted[k:] or list(again))
        if k % 7 == 0:
            # The same object, which is ahead.
            loader.load_state_dict(loader.state_dict())
            rest = list(loader)
            assert rest == wanted[k:]
            loader.set_epoch(0)
            resumed = iter(loader)
            assert [next(resumed) for _ in range(k)] == wanted[:k]
            assert list(resumed) == wanted[k:]
            break


def test_a_repeating_loader(ds: tfseek.Dataset) -> None:
    plain, loader = loader_of(ds, 0, repeat=True), loader_of(ds, 2, repeat=True)
    for each in (plain, loader):
        batches = iter(each)
        for _ in range(19):
            next(batches)
    # The threads are in the next epoch already. The consumer is not.
    assert loader.epoch == plain.epoch == 0
    assert next(iter(loader)) == next(iter(plain))


def test_threads_run_at_the_same_time_and_not_too_far_ahead(ds: tfseek.Dataset) -> None:
    together = threading.Barrier(3)
    called: list[int] = []

    def transform(batch: Any, info: Any) -> int:
        called.append(info.step)
        if info.step < 3:
            together.wait(60)  # raises unless three threads are here
        return int(info.step)

    loader = loader_of(ds, 3, transform)
    batches = iter(loader)
    delivered = 0
    for _ in range(12):
        assert next(batches) == delivered
        delivered += 1
        time.sleep(0.005)
        assert max(called) < delivered + 3 + 2
    assert loader.state_dict()["pos"] == delivered * 50


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, StopIteration, SystemExit])
def test_an_exception_comes_in_its_place(ds: tfseek.Dataset, error: Any) -> None:
    def transform(batch: Any, *, info: Any) -> Any:
        if info.step == 2:
            raise error("mine")
        return batch["id"].tolist()

    plain, loader = loader_of(ds, 0, transform), loader_of(ds, 2, transform)
    notes = []
    for each in (plain, loader):
        batches = iter(each)
        found = [next(batches), next(batches)]
        with pytest.raises(RuntimeError if error is StopIteration else error) as raised:
            next(batches)
        notes.append((vars(raised.value)["__notes__"], each.ids.tolist(), each.state_dict(), found, list(batches)))
    assert notes[0] == notes[1]
    assert notes[1][0][0].startswith("in transform of epoch 0, step 2, records ") and len(notes[1][4]) == 17


def test_a_damaged_record_comes_in_its_place(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "train.tfrecord"
    ds = written(path, ({"id": i if i != 21 else "not a number"} for i in range(40)), index="memory")
    spec = {"id": tfseek.FixedLenFeature([], "int64")}
    outcomes = []
    for threads in (0, 2):
        loader = tfseek.Loader(ds, spec, batch_size=10, transform=lambda batch: batch["id"].tolist(), transform_threads=threads)
        batches, found = iter(loader), []
        for _ in range(4):
            try:
                found.append(next(batches))
            except tfseek.DataError as e:
                found.append(str(e))
            found.append(loader.state_dict())
        assert next(batches, None) is None
        outcomes.append(found)
        skipping = tfseek.Loader(
            ds, spec, batch_size=10, damage="skip", transform=lambda batch: batch["id"].tolist(), transform_threads=threads
        )
        totals = [skipping.skipped_total for _ in skipping]
        assert totals == [0, 0, 1, 1] and sum(skipping.skipped_by_file.values()) == 1
    assert outcomes[0] == outcomes[1] and "record 21" in outcomes[0][4]


def test_what_a_transform_is_called_with(ds: tfseek.Dataset) -> None:
    def both(batch: Any, info: Any) -> Any:
        return info

    def second(batch: Any, about: Any) -> Any:
        return about

    def keyword(batch: Any, *, info: Any = None) -> Any:
        return info

    def default(batch: Any, scale: float = 2.0) -> Any:
        return scale

    def named_first(batch: Any, info: Any = None) -> Any:
        return info

    def variadic(*arguments: Any) -> Any:
        return len(arguments)

    class Callable:
        def __call__(self, batch: Any, info: Any) -> Any:
            return info

    for threads in (0, 2):
        for transform in (both, second, keyword, named_first, Callable(), lambda batch, about: about):
            info = next(loader_of(ds, threads, transform))
            assert isinstance(info, tfseek.StepInfo) and (info.epoch, info.step, len(info)) == (0, 0, 50)
            assert info.mask.all() and len(info.ids) == 50 and info.skipped == [] and info.payload_bytes > 0
            assert repr(info) == "tfseek.StepInfo(epoch=0, step=0, 50 records)"
        assert next(loader_of(ds, threads, default)) == 2.0
        assert next(loader_of(ds, threads, variadic)) == 1
        assert next(loader_of(ds, threads, len)) == len(SPEC) + 1
        assert isinstance(next(loader_of(ds, threads, dict)), dict)


def test_refused_arguments(ds: tfseek.Dataset) -> None:
    with pytest.raises(ValueError, match="transform_threads requires a transform"):
        tfseek.Loader(ds, SPEC, batch_size=1, transform_threads=1)
    for threads in (-1, 1025):
        with pytest.raises(ValueError, match=f"transform_threads: expected 0 to 1024, found {threads}"):
            loader_of(ds, threads)
    with pytest.raises(TypeError):
        loader_of(ds, 1.5)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="found 'id' twice"):
        tfseek.Loader(ds, SPEC, batch_size=1, ids="id", augmentation_seed="id")
    with pytest.raises(TypeError, match="names of columns, found 3"):
        loader_of(ds, 0, ids=3)
    with pytest.raises(ValueError, match="use loader.augmentation_seeds"):
        tfseek.Loader(ds, batch_size=1, augmentation_seed="seed")


def test_threads_end_with_the_loader(ds: tfseek.Dataset) -> None:
    # Threads of earlier tests may end at any time.
    earlier = set(threading.enumerate())

    def alive() -> list[threading.Thread]:
        own = set(threading.enumerate()) - earlier
        return [thread for thread in own if thread.name.startswith("tfseek-transform")]

    loader = loader_of(ds, 4)
    next(loader)
    assert alive()
    loader.close()
    assert not alive()
    with pytest.raises(RuntimeError, match="the loader is closed"):
        next(loader)
    assert loader.report().steps == 1

    dropped = loader_of(ds, 4)
    next(dropped)
    gone = weakref.ref(dropped)
    del dropped
    gc.collect()
    assert gone() is None
    deadline = time.monotonic() + 60
    while alive():
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this platform")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_forked_child_resumes_at_the_delivered_step(ds: tfseek.Dataset) -> None:
    wanted = list(loader_of(ds, 0))
    loader = loader_of(ds, 2)
    batches = iter(loader)
    assert [next(batches) for _ in range(5)] == wanted[:5]
    deadline = time.monotonic() + 60
    # The threads wait for the consumer, and hold no lock.
    while len(loader._ahead._done) < 4:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    time.sleep(0.1)
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.write(write, json.dumps(list(batches)).encode())
        finally:
            os._exit(0)
    os.close(write)
    with open(read, "rb") as pipe:
        found = json.loads(pipe.read())
    os.waitpid(child, 0)
    assert found == wanted[5:] == list(batches)


def test_the_interpreter_ends_while_threads_transform(shards: str) -> None:
    code = f"""
import time, tfseek
ds = tfseek.open({shards!r})
spec = {{"label": tfseek.FixedLenFeature([], "int64")}}
loader = tfseek.Loader(ds, spec, batch_size=10, transform=lambda b: time.sleep(0.01), transform_threads=4)
next(loader)
print("ends")
"""
    assert run_python(code) == "ends\n"


def test_several_consumers_get_each_batch_once(ds: tfseek.Dataset) -> None:
    loader = loader_of(ds, 3)
    batches, found, lock = iter(loader), [], threading.Lock()

    def consume() -> None:
        # The other consumers of an iterator that has ended get an error, as without threads.
        with contextlib.suppress(RuntimeError):
            for batch in batches:
                with lock:
                    found.append(batch)

    in_threads(lambda _: consume(), range(4))
    assert sorted(found) == sorted(loader_of(ds, 0))


def test_augmentation_seeds(ds: tfseek.Dataset) -> None:
    def seeds_of(**options: Any) -> dict[int, int]:
        """The seed of each record of epoch 1."""
        loader = tfseek.Loader(ds, SPEC, ids="id", mask="mask", augmentation_seed="seed", epoch=1, **options)
        found: dict[int, int] = {}
        for batch in loader:
            assert batch["seed"].dtype == np.uint64 and batch["seed"].tolist() == loader.augmentation_seeds.tolist()
            for record, seed in zip(batch["id"].tolist(), batch["seed"].tolist()):
                # A padding row has the seed of the row that it repeats.
                assert found.setdefault(record, seed) == seed
        return found

    one = seeds_of(seed=42, global_batch_size=96)
    assert len(set(one.values())) == RECORDS == len(one)
    assert seeds_of(seed=43, global_batch_size=96) != one
    for ranks in (2, 3):
        ranked: dict[int, int] = {}
        for rank in range(ranks):
            options = {"seed": 42, "global_batch_size": 96, "rank": rank, "world_size": ranks, "last_batch": "pad"}
            ranked.update(seeds_of(**options, threads=rank))
        assert ranked == one
    assert seeds_of(seed=42, batch_size=7) == one


def test_the_seed_of_a_position_is_the_documented_one(ds: tfseek.Dataset) -> None:
    # `docs/order.md` has this value for seed 42, epoch 7, position 1000 and the same function for all positions.
    loader = tfseek.Loader(ds, SPEC, batch_size=4, seed=42, epoch=7, augmentation_seed="seed")
    first = next(loader)["seed"].tolist()
    assert len(set(first)) == 4
    assert absorb(tag(b"TFRDAUG1"), 42, 7, 1000) == 0xC6F940876 * 2**28 + 0x7B7785B
    assert first == [absorb(tag(b"TFRDAUG1"), 42, 7, position) for position in range(4)]


def test_report(ds: tfseek.Dataset) -> None:
    for threads in (0, 2):
        loader = loader_of(ds, threads, threads=2)
        empty = loader.report()
        assert (empty.steps, empty.rows, empty.seconds, empty.threads) == (0, 0, 0.0, 2)
        for _ in loader:
            time.sleep(0.001)
        report = loader.report()
        assert (report.steps, report.rows, report.skipped) == (20, RECORDS, 0)
        assert report.bytes == sum(len(record.to_bytes()) for record in ds)
        # Sleeps are at least as long as asked for.
        assert report.consumer_s >= 0.020 and report.transform_s >= 4 * sum(DELAYS)
        assert report.parse_s > 0 and report.wait_s >= 0
        own = report.wait_s + report.consumer_s + (0 if threads else report.transform_s)
        assert report.seconds >= own * 0.99
        assert json.loads(report.to_json())["steps"] == 20 and "\n" not in str(report) and "20 steps" in str(report)
        loader.close()
        assert loader.report().parse_s >= report.parse_s


@pytest.mark.parametrize("threads", [0, 1, 3])
def test_a_transform_that_asks_its_own_loader_is_an_error(ds: tfseek.Dataset, threads: int) -> None:
    batches: Any = None
    loader: tfseek.Loader[Any] = tfseek.Loader(
        ds, SPEC, batch_size=100, transform=lambda batch: next(batches), transform_threads=threads
    )
    batches = iter(loader)
    with pytest.raises(RuntimeError, match="transform asks its own loader for a batch"):
        next(batches)
    loader.close()
