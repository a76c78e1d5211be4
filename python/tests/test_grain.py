"""``tfseek.grain`` in Grain pipelines: records by number, batches, workers, ranks and states."""

from __future__ import annotations

import json
import os
import pathlib
import pickle
import signal
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from conftest import RECORDS, SPEC, features, flip, import_keras, in_threads, write_records, written
from prepared import write_mnist
from tiny_images import png

import tfseek

grain = pytest.importorskip("grain")
import tfseek.grain  # noqa: E402

#: Features that grain can stack.
FIXED = {name: SPEC[name] for name in ("label", "emb", "name")}


@pytest.fixture(autouse=True, scope="module")
def _flags() -> None:
    """Parses the absl flags that Grain's worker processes require. A program uses ``absl.app.run``."""
    from absl import flags

    flags.FLAGS.mark_as_parsed()


@pytest.fixture
def whole(shards: str) -> tfseek.Dataset:
    return tfseek.open(shards)


def workers(n: int) -> Any:
    return grain.MultiprocessingOptions(num_workers=n)


def label(record: bytes) -> int:
    return int(tfseek.Example.from_bytes(record)["label"][0])


def labels_of(batch: Any) -> list[int]:
    found: list[int] = batch["label"].tolist()
    return found


def drained(iterator: Any) -> list[list[int]]:
    try:
        return [labels_of(batch) for batch in iterator]
    finally:
        iterator.close()


def flat(batches: list[list[int]]) -> list[int]:
    return [label for batch in batches for label in batch]


def test_tfseek_does_not_import_grain() -> None:
    code = "import sys, tfseek; sys.exit(any(name in sys.modules for name in ('grain', 'jax', 'torch', 'tfseek.grain')))"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


# Records by number.


def test_a_source_returns_records(ds: tfseek.Dataset, labels: list[int]) -> None:
    source = tfseek.grain.source(ds)
    assert isinstance(source, tfseek.grain.DataSource) and isinstance(source, grain.sources.RandomAccessDataSource)
    assert len(source) == RECORDS and source[7] == bytes(ds[7]) and source[np.int64(-1)] == bytes(ds[-1])
    assert source.__getitems__([900, 3, 640]) == [bytes(ds[i]) for i in (900, 3, 640)]
    with pytest.raises(IndexError):
        source[RECORDS]
    for bad in (slice(3), [1, 2], "1"):
        with pytest.raises(TypeError):
            source[bad]
    with pytest.raises(TypeError, match="expected a tfseek.Dataset, found list"):
        tfseek.grain.source([])


def test_a_source_parses(ds: tfseek.Dataset, labels: list[int]) -> None:
    source = tfseek.grain.source(ds, SPEC)
    for k, item in zip((5, 640), source.__getitems__([5, 640])):
        want = features(labels[k])
        assert item.keys() == source[k].keys() == SPEC.keys()
        assert item["label"] == labels[k] and item["name"] == want["name"].encode()
        assert np.array_equal(item["emb"], want["emb"]) and np.array_equal(item["tokens"].values, want["tokens"])
    offsets = tfseek.grain.source(ds, SPEC, bytes_as="offsets")[5]["name"]
    assert bytes(offsets.data) == features(labels[5])["name"].encode()
    view = pickle.loads(pickle.dumps(tfseek.grain.source(ds, SPEC, bytes_as="views")))[5]["name"][()]
    assert view.dtype == np.uint8 and bytes(view) == features(labels[5])["name"].encode()


def test_a_source_of_sequences(tmp_path: pathlib.Path) -> None:
    ds = written(tmp_path / "a.tfrecord", (tfseek.SequenceExample({"id": i}, {"x": [[k] for k in range(i)]}) for i in range(4)))
    schema = tfseek.Schema(
        context_features={"id": tfseek.FixedLenFeature([], "int64")},
        sequence_features={"x": tfseek.FixedLenSequenceFeature([1], "int64")},
    )
    context, sequence = tfseek.grain.source(ds, schema)[3]
    assert context["id"] == 3 and sequence["x"].tolist() == [[0], [1], [2]]
    assert tfseek.grain.source(ds)[3] == ds[3].to_bytes()


def test_a_source_is_pickled_and_identified_by_content(whole: tfseek.Dataset, tmp_path: pathlib.Path) -> None:
    source = tfseek.grain.source(whole, FIXED)
    copy = pickle.loads(pickle.dumps(source))
    assert repr(copy) == repr(source) and copy[3]["label"] == source[3]["label"]
    for shard in whole.shards:
        (tmp_path / pathlib.Path(shard).name).write_bytes(pathlib.Path(shard).read_bytes())
    moved = tfseek.open(tmp_path)
    assert repr(tfseek.grain.source(moved)) == repr(source)
    views = [whole[:10], whole[10:20], whole[::2], whole[[4, 2]], whole[[2, 4]], whole.filter("label < 10")]
    assert len({repr(tfseek.grain.source(view)) for view in [whole, *views]}) == 1 + len(views)


def test_a_source_in_threads(ds: tfseek.Dataset, labels: list[int]) -> None:
    source, found = tfseek.grain.source(ds, FIXED), {}

    def read(part: int) -> None:
        found[part] = [int(source[i]["label"]) for i in range(part, RECORDS, 4)]

    in_threads(read, range(4))
    assert found == {part: labels[part::4] for part in range(4)}


def kind_of(value: Any) -> Any:
    """Returns a value with its types, as what ``==`` compares."""
    if isinstance(value, dict):
        return {name: kind_of(part) for name, part in value.items()}
    if isinstance(value, (tfseek.Ragged, tfseek.Sparse, tfseek.Column)):
        return type(value), [kind_of(getattr(value, name)) for name in value.__slots__]
    if isinstance(value, (list, tuple)):
        return type(value), [kind_of(part) for part in value]
    if isinstance(value, (np.ndarray, np.generic)):
        return type(value), value.dtype, value.shape, value.tolist()
    return type(value), value


def examples(folder: pathlib.Path) -> dict[str, Any]:
    """Returns sources of 40 records of every kind, by its name."""
    with tfseek.Writer(folder / "e.tfrecord") as writer:
        for i in range(40):
            pixels = {"image": png(9, 8, 2), "tokens": np.arange(i % 4), "name": b"%d" % i * (i % 3), "names": [b"a" * i, b"b"]}
            writer.write({"label": i, "emb": np.arange(3, dtype=np.float32) + i, **pixels, **({"some": i} if i % 2 else {})})
    write_records(folder / "s.tfrecord", (tfseek.SequenceExample({"id": i}, {"x": [[k] for k in range(i % 5)]}) for i in range(40)))
    write_mnist(folder / "mnist")
    specs: dict[str, Any] = {
        "numbers": {"label": tfseek.FixedLenFeature([], "int64"), "emb": tfseek.FixedLenFeature([3], "float32")},
        "ragged": {"tokens": tfseek.RaggedFeature("int64"), "some": tfseek.VarLenFeature("int64")},
        "optional": {"some": tfseek.Optional("int64"), "other": tfseek.Optional("string", default=b"none")},
        "strings": {"name": tfseek.FixedLenFeature([], "string"), "names": tfseek.FixedLenFeature([2], "string")},
        "pictures": {"image": tfseek.Image((6, 5), crop="random_resized", geometry="part")},
    }
    context = {"id": tfseek.FixedLenFeature([], "int64")}
    steps = tfseek.Schema(context_features=context, sequence_features={"x": tfseek.RaggedFeature("int64")})
    ds, mnist = tfseek.open(folder / "e.tfrecord"), tfseek.tfds.open(folder / "mnist")["train[:40]"]
    found: dict[str, Any] = {name: (ds, spec) for name, spec in specs.items()}
    return {**found, "bytes": (ds, None), "steps": (tfseek.open(folder / "s.tfrecord"), steps), "tfds": (mnist, None)}


def test_items_are_the_same_one_by_one_and_in_batches(tmp_path: pathlib.Path) -> None:
    """Batches read together are those of the loader. Random pictures are drawn by the number of the record in the whole data set."""
    for name, (ds, spec) in examples(tmp_path).items():
        view = ds[3:]
        source = tfseek.grain.source(view, spec, seed=7, epoch=2)
        single, ids = [source[k] for k in range(37)], [5, 36, 0, 5, 17]
        assert kind_of(source.__getitems__(ids)) == kind_of([single[k] for k in ids]), name
        loader: Any = tfseek.Loader(ds, spec, batch_size=40, shuffle=False, seed=7, epoch=2)
        whole = grain.MapDataset.source(tfseek.grain.source(ds, spec, seed=7, epoch=2)).pipe(tfseek.grain.BatchMapDataset, 40)
        assert kind_of(whole[0]) == kind_of(next(loader)) and kind_of(whole[1]) == kind_of(whole[0]), name
        steps = grain.MapDataset.source(source).repeat(2)[1:70]
        batches, order = steps.pipe(tfseek.grain.BatchMapDataset, 8), [k % 37 for k in range(1, 70)]
        assert len(batches) == 9 and len(batches[2:5]) == 3
        assert len(steps.pipe(tfseek.grain.BatchMapDataset, 8, drop_remainder=True)) == 8
        if name == "numbers":
            assert [labels_of(batch) for batch in batches] == [[k + 3 for k in order[at : at + 8]] for at in range(0, 69, 8)]
            # Another epoch has another order. Other elements are stacked by Grain.
            shuffled = grain.MapDataset.source(source).shuffle(seed=5)
            own, grains = shuffled.pipe(tfseek.grain.BatchMapDataset, 8), shuffled.batch(8)
            assert [labels_of(own[k]) for k in range(10)] == [labels_of(grains[k]) for k in range(10)]
            mapped = steps.map(lambda item: {"twice": item["label"] * 2})
            assert kind_of(mapped.pipe(tfseek.grain.BatchMapDataset, 8)[8]) == kind_of(mapped.batch(8)[8])
        if name == "pictures":
            parts = np.concatenate([batch["part"] for batch in batches])
            assert parts.tolist() == [single[k]["part"].tolist() for k in order] and len({*map(bytes, parts)}) > 9
            assert parts[0].tolist() != tfseek.grain.source(view, spec, seed=8, epoch=2)[1]["part"].tolist()
    with pytest.raises(ValueError, match="batch_size must be positive"):
        batches.pipe(tfseek.grain.BatchMapDataset, 0)
    with pytest.raises(ValueError, match="can not follow"):
        steps.filter(bool).pipe(tfseek.grain.BatchMapDataset, 2)


def test_errors_name_the_record(tmp_path: pathlib.Path) -> None:
    """Of one record, of several and of a batch: damaged, without a feature, and of another kind. Other batches are read."""
    spec = {"label": tfseek.FixedLenFeature([], "int64")}
    write_records(tmp_path / "a.tfrecord", ({"x" if i == 21 else "label": 0.5 if i == 33 else i} for i in range(40)))
    flip(tmp_path / "a.tfrecord", os.path.getsize(tmp_path / "a.tfrecord") // 40 * 11 - 8)
    source = tfseek.grain.source(tfseek.open(tmp_path / "a.tfrecord", index="memory"), spec)
    batches = grain.MapDataset.source(source).pipe(tfseek.grain.BatchMapDataset, 8)
    for bad in (10, 21, 33):
        ids = range(bad // 8 * 8, bad // 8 * 8 + 8)
        for read in (lambda: source[bad], lambda: source.__getitems__(ids), lambda: batches[bad // 8]):
            with pytest.raises(tfseek.DataError, match="a.tfrecord") as raised:
                read()
            assert raised.value.record == bad
    assert [labels_of(batches[k]) for k in (0, 3)] == [list(range(8)), list(range(24, 32))]


def test_map_dataset(ds: tfseek.Dataset) -> None:
    pipeline = grain.MapDataset.source(tfseek.grain.source(ds, FIXED)).shuffle(seed=3).batch(64)
    batches = [pipeline[i] for i in range(len(pipeline))]
    assert sorted(flat([labels_of(batch) for batch in batches])) == list(range(RECORDS))
    assert batches[0]["emb"].shape == (64, 8)
    # Grain stacks byte strings by NumPy's rules.
    assert batches[0]["name"].tolist() == [b"record %d" % label for label in batches[0]["label"].tolist()]
    assert [name.decode() for name in batches[0]["name"]] == [f"record {i}" for i in batches[0]["label"]]
    # Grain's method for several records.
    source = grain.MapDataset.source(tfseek.grain.source(ds))
    assert list(source._getitems([3, RECORDS + 1])) == [bytes(ds[3]), bytes(ds[1])]


@pytest.mark.parametrize(("n", "own"), [(0, False), (2, False), (0, True), (2, True)])
def test_map_dataset_resumes(whole: tfseek.Dataset, n: int, own: bool) -> None:
    def made() -> Any:
        steps = grain.MapDataset.source(tfseek.grain.source(whole, FIXED)).shuffle(seed=3)
        batches = steps.pipe(tfseek.grain.BatchMapDataset, 100) if own else steps.batch(100)
        return iter(batches.to_iter_dataset().mp_prefetch(workers(n)))

    iterator, seen, states = made(), [], []
    for batch in iterator:
        seen.append(labels_of(batch))
        states.append(json.dumps(iterator.get_state()))
    iterator.close()
    assert sorted(flat(seen)) == list(range(RECORDS)) and len(seen) == 10
    for step in range(len(seen)) if n == 0 else (6,):
        iterator = made()
        iterator.set_state(json.loads(states[step]))
        assert drained(iterator) == seen[step + 1 :]


@pytest.mark.parametrize("n", [0, 2])
def test_data_loader(whole: tfseek.Dataset, n: int) -> None:
    """Ranks are disjoint. A state resumes exactly, and is refused for other records."""

    def made(ds: tfseek.Dataset, rank: int) -> Any:
        sampler = grain.samplers.IndexSampler(
            len(ds),
            shuffle=True,
            seed=5,
            num_epochs=1,
            shard_options=grain.sharding.ShardOptions(shard_index=rank, shard_count=2, drop_remainder=False),
        )
        source = tfseek.grain.source(ds, FIXED)
        return grain.DataLoader(data_source=source, sampler=sampler, operations=[grain.transforms.Batch(50)], worker_count=n)

    ranks = []
    for rank in range(2):
        iterator, seen, state = iter(made(whole, rank)), [], b""
        for step, batch in enumerate(iterator):
            seen.append(labels_of(batch))
            state = iterator.get_state() if step == 6 else state
        again = iter(made(whole, rank))
        again.set_state(state)
        assert [labels_of(batch) for batch in again] == seen[7:]
        ranks.append(flat(seen))
        with pytest.raises(ValueError, match="DataSource in checkpoint"):
            iter(made(whole[::-1], rank)).set_state(state)
    assert len(ranks[0]) == len(ranks[1]) and sorted(ranks[0] + ranks[1]) == list(range(RECORDS))


# Batches produced by Rust.


def test_batches_are_the_loaders(ds: tfseek.Dataset) -> None:
    options: dict[str, Any] = {"batch_size": 48, "seed": 1, "ids": "id"}
    batches = tfseek.grain.IterDataset(ds, SPEC, **options)
    for _ in range(2):
        for batch, want in zip(batches, tfseek.Loader(ds, SPEC, **options), strict=True):
            assert batch["id"].tolist() == want["id"].tolist() and np.array_equal(batch["emb"], want["emb"])
            assert all(map(np.array_equal, batch["tokens"], want["tokens"])) and not batch["emb"].flags.writeable
    raw = tfseek.grain.IterDataset(ds, batch_size=300).map(lambda batch: [label(record) for record in batch])
    assert sorted(flat(list(raw))) == list(range(RECORDS))
    assert "batch_size=48" in repr(batches)


def test_the_specs_of_elements(ds: tfseek.Dataset) -> None:
    spec = {
        "label": tfseek.FixedLenFeature([], "int64"),
        "emb": SPEC["emb"],
        "name": tfseek.Optional("string", default=b""),
        "no": tfseek.Optional("int64", default=0),
    }
    for options in ({"batch_size": 4}, {"global_batch_size": 8, "world_size": 2, "rank": 1, "ids": "id"}):
        batches = tfseek.grain.IterDataset(ds, spec, **options)
        found = grain.experimental.get_element_spec(batches)
        first = next(iter(batches))
        assert {name: (column.shape, column.dtype) for name, column in found.items()} == {
            name: (column.shape, column.dtype) for name, column in first.items()
        }
    ragged = tfseek.grain.IterDataset(ds, {"x": tfseek.RaggedFeature("int64")}, batch_size=4)
    with pytest.raises(NotImplementedError, match="feature 'x': expected a column of fixed shape, found ragged"):
        grain.experimental.get_element_spec(ragged)


def test_an_iterator_ends_with_its_epoch(whole: tfseek.Dataset) -> None:
    want = [labels_of(batch) for batch in tfseek.Loader(whole, FIXED, batch_size=300, seed=1, epoch=3)]
    iterator = iter(tfseek.grain.IterDataset(whole, FIXED, batch_size=300, seed=1, epoch=3))
    assert [labels_of(batch) for batch in iterator] == want
    end = iterator.get_state()
    assert next(iterator, None) is None and iterator.get_state() == end
    # A state contains its epoch.
    other = iter(tfseek.grain.IterDataset(whole, FIXED, batch_size=300, seed=1))
    other.set_state(end)
    assert next(other, None) is None
    endless = iter(tfseek.grain.IterDataset(whole, FIXED, batch_size=500, seed=1, repeat=True))
    epochs = [sorted(labels_of(next(endless)) + labels_of(next(endless))) for _ in range(3)]
    assert epochs == [list(range(RECORDS))] * 3
    other = iter(tfseek.grain.IterDataset(whole, FIXED, batch_size=500, seed=1, repeat=True))
    other.set_state(json.loads(json.dumps(endless.get_state())))
    assert labels_of(next(other)) == labels_of(next(endless))
    endless.close()
    with pytest.raises(RuntimeError, match="closed"):
        next(endless)


def test_invalid_arguments_are_refused(whole: tfseek.Dataset) -> None:
    for options, error in [({}, ValueError), ({"batch_size": 0}, tfseek.OrderError), ({"batch_sise": 1}, TypeError)]:
        with pytest.raises(error):
            tfseek.grain.IterDataset(whole, FIXED, **options)
    batches = tfseek.grain.IterDataset(whole, FIXED, batch_size=10, seed=1)
    state = iter(batches).get_state()
    for bad in ({}, {"next_index": 3}, None):
        with pytest.raises(tfseek.OrderError, match="expected the state of a tfseek.grain.IterDataset"):
            iter(batches).set_state(bad)
    with pytest.raises(tfseek.OrderError):
        iter(tfseek.grain.IterDataset(whole[:10], FIXED, batch_size=10, seed=1)).set_state(state)
    with pytest.raises(ValueError, match="sequential_slice"):
        tfseek.grain.IterDataset(whole, FIXED, batch_size=10).set_slice(slice(0, None, 2), sequential_slice=True)


def through(name: str, batches: Any) -> Any:
    """Prefetching does not change the batches."""
    prefetch = grain.experimental
    if name == "plain":
        return batches
    if name == "one thread":
        return prefetch.ThreadPrefetchIterDataset(batches, prefetch_buffer_size=3)
    if name == "threads":
        return prefetch.multithread_prefetch(batches, num_threads=3, buffer_size=2)
    return batches.mp_prefetch(workers(int(name.split()[0])))


@pytest.mark.parametrize("name", ["plain", "one thread", "threads", "1 process", "2 processes"])
def test_prefetched_batches_resume(whole: tfseek.Dataset, name: str) -> None:
    """With every kind of prefetching the batches are those of the loader, and each state resumes exactly."""

    def made() -> Any:
        batches = tfseek.grain.IterDataset(whole, SPEC, batch_size=96, seed=7, epoch=1, threads=1)
        return iter(through(name, batches.map(lambda batch: {**batch, "twice": batch["label"] * 2})))

    want = [labels_of(batch) for batch in tfseek.Loader(whole, SPEC, batch_size=96, seed=7, epoch=1)]
    iterator = made()
    seen, states = [], [json.dumps(iterator.get_state())]
    for batch in iterator:
        assert (batch["twice"] == batch["label"] * 2).all()
        assert len(batch["tokens"].values) == sum(label % 5 for label in batch["label"])
        seen.append(labels_of(batch))
        states.append(json.dumps(iterator.get_state()))
    iterator.close()
    assert seen == want
    for step in range(len(states)) if "process" not in name else (0, 3, len(want)):
        iterator = made()
        iterator.set_state(json.loads(states[step]))
        assert drained(iterator) == want[step:], step


def test_buckets_resume_in_processes(whole: tfseek.Dataset) -> None:
    spec = {"label": SPEC["label"], "tokens": tfseek.RaggedFeature("int64")}
    options: dict[str, Any] = {"bucket_by": "tokens", "boundaries": [1, 3], "batch_size": [64, 32, 16], "seed": 3, "padded": True}
    want = [labels_of(batch) for batch in tfseek.Loader(whole, spec, **options)]
    batches = tfseek.grain.IterDataset(whole, spec, threads=1, **options)
    iterator = iter(batches)
    states = [iterator.get_state()]
    for step, batch in enumerate(iterator):
        assert labels_of(batch) == want[step]
        assert batch["tokens"][1].sum(1).tolist() == [label % 5 for label in want[step]]
        states.append(json.loads(json.dumps(iterator.get_state())))
    for step in (0, 7, len(want)):
        iterator = iter(batches)
        iterator.set_state(states[step])
        assert drained(iterator) == want[step:]
    assert drained(iter(batches.mp_prefetch(workers(2)))) == want


def test_workers_of_workers(whole: tfseek.Dataset) -> None:
    want = [labels_of(batch) for batch in tfseek.Loader(whole, FIXED, batch_size=96, seed=7)]
    batches = tfseek.grain.IterDataset(whole, FIXED, batch_size=96, seed=7)
    batches.set_slice(slice(1, None, 2))
    batches.set_slice(slice(1, None, 3))
    assert drained(iter(batches)) == want[1::2][1::3]


def test_ranks(whole: tfseek.Dataset) -> None:
    def rank_of(rank: int, world_size: int) -> Any:
        options = {"global_batch_size": 96, "seed": 2, "rank": rank, "world_size": world_size, "mask": "mask"}
        return iter(tfseek.grain.IterDataset(whole, FIXED, **options))

    want = [labels_of(batch) for batch in tfseek.Loader(whole, FIXED, batch_size=96, seed=2)]
    ranks = [rank_of(rank, 3) for rank in range(3)]
    for step in range(5):
        parts = [next(rank) for rank in ranks]
        assert flat([part["label"][part["mask"]].tolist() for part in parts]) == want[step]
    # The state of one rank is valid for all ranks, also with another number of ranks.
    (state,) = {json.dumps(rank.get_state()) for rank in ranks}
    ranks = [rank_of(rank, 2) for rank in range(2)]
    for rank in ranks:
        rank.set_state(json.loads(state))
    parts = [[part["label"][part["mask"]].tolist() for part in parts] for parts in zip(*ranks, strict=True)]
    assert [flat(part) for part in parts] == want[5:]


START = """
import grain, json, os, signal, sys, tfseek, tfseek.grain
ds = tfseek.open(sys.argv[1])
spec = {"label": tfseek.FixedLenFeature([], "int64")}
def loader():
    return iter(tfseek.grain.IterDataset(ds, spec, batch_size=10, seed=3))
def records():
    source = grain.MapDataset.source(tfseek.grain.source(ds, spec))
    return iter(source.shuffle(seed=3).batch(10).to_iter_dataset())
def log(iterator, killed_at=None):
    for step, batch in enumerate(iterator, 1):
        print(json.dumps([batch["label"].tolist(), iterator.get_state()]), flush=True)
        if step == killed_at:
            os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="there is no SIGKILL here")
@pytest.mark.parametrize("pipeline", ["loader", "records"])
def test_a_killed_process_resumes(shards: str, pipeline: str) -> None:
    """The process is killed in the middle of an epoch. Batches before and after the last saved state are the whole epoch."""

    def run(code: str) -> list[Any]:
        done = subprocess.run([sys.executable, "-c", START + code, shards], capture_output=True, text=True, timeout=100)
        assert done.returncode in (0, -signal.SIGKILL), done.stderr
        return [json.loads(line) for line in done.stdout.splitlines()]

    whole = run(f"log({pipeline}())")
    seen = run(f"log({pipeline}(), 18)")
    assert len(seen) == 18
    rest = run(f"iterator = {pipeline}(); iterator.set_state({seen[-1][1]!r}); log(iterator)")
    assert seen + rest == whole and len(whole) == 100


def test_arrays_go_to_jax(whole: tfseek.Dataset) -> None:
    jax = pytest.importorskip("jax")
    spec = {"label": SPEC["label"], "emb": SPEC["emb"]}
    held = []
    for batch in tfseek.grain.IterDataset(whole, spec, batch_size=128, seed=1):
        on_device = jax.device_put(batch)
        assert jax.numpy.asarray(batch["emb"]).dtype == np.float32
        held.append((on_device, batch["label"].tolist()))
        del batch
    # The loader reuses memory only after all users, including JAX, have released it.
    for on_device, labels in held:
        assert on_device["label"].tolist() == labels
        assert np.array_equal(on_device["emb"], np.stack([features(i)["emb"] for i in labels]))


@pytest.mark.parametrize("of_grain", [True, False])
def test_keras_trains_on_shuffled_epochs(whole: tfseek.Dataset, of_grain: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """With ``repeat=True`` an epoch of ``fit`` is an epoch of the loader, as a Grain dataset and as a generator."""
    keras = import_keras(monkeypatch)
    spec = {"emb": SPEC["emb"], "label": SPEC["label"]}
    options: dict[str, Any] = {"batch_size": RECORDS // 10, "shuffle": True, "seed": 5, "ids": "id", "repeat": True}
    expected = tfseek.Loader(whole, spec, **options)
    epochs = [next(expected)["id"].tolist() for _ in range(20)]
    assert sorted(sum(epochs[:10], [])) == list(range(RECORDS)) and epochs[:10] != epochs[10:]

    seen: list[list[int]] = []

    def pair(batch: Any) -> Any:
        seen.append(batch["id"].tolist())
        return batch["emb"], batch["label"].astype(np.float32)

    pairs: Any
    if of_grain:
        pairs = tfseek.grain.IterDataset(whole, spec, **options).map(pair)
    else:
        pairs = (pair(batch) for batch in tfseek.Loader(whole, spec, **options))
    model = keras.Sequential([keras.layers.Dense(1)])
    model.compile("sgd", loss="mse")
    history = model.fit(pairs, epochs=2, steps_per_epoch=10, verbose=0, shuffle=False)
    assert len(history.history["loss"]) == 2
    # Keras reads the first batches of a Grain dataset once more, for their shapes.
    assert any(seen[k : k + 20] == epochs for k in range(len(seen)))
