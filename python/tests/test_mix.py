"""``tfseek.Mix``: mixtures of data sets, compared with a twin in NumPy."""

from __future__ import annotations

import copy
import json
import pathlib
import pickle
from typing import Any, Optional

import numpy as np
import pytest
from conftest import write_records, written
from order_twin import permutation

import tfseek

SIZES = [60, 100, 37]
SPEC = {"i": tfseek.FixedLenFeature([], "int64"), "text": tfseek.FixedLenFeature([], "string")}

class Twin:
    """The turns of a mix of globally shuffled sources, one after the other."""

    def __init__(self, sizes: list[int], weights: list[int], seed: int) -> None:
        self.sizes, self.seed, self.given = sizes, seed, [0] * len(sizes)
        self.change(weights)

    def change(self, weights: list[int]) -> None:
        self.weights, self.cycle = weights, 0
        self.ahead: list[int] = []

    def turn(self) -> tuple[int, int]:
        if not self.ahead:
            components = np.repeat(np.arange(len(self.weights)), self.weights)
            self.ahead = components[permutation(len(components), self.seed, self.cycle, 3 << 32)].tolist()
            self.cycle += 1
        c = self.ahead.pop(0)
        self.given[c] += 1
        return c, self.given[c] - 1

    def record(self, c: int, i: int) -> int:
        epoch, position = divmod(i, self.sizes[c])
        return sum(self.sizes[:c]) + int(permutation(self.sizes[c], self.seed, epoch, (c + 1) << 40)[position])

    def rows(self, count: int) -> list[int]:
        return [self.record(*self.turn()) for _ in range(count)]

    def batch(self, size: int) -> list[int]:
        c, i = self.turn()
        return [self.record(c, i * size + row) for row in range(size)]


@pytest.fixture(scope="module")
def sets(tmp_path_factory: pytest.TempPathFactory) -> list[tfseek.Dataset]:
    folder = tmp_path_factory.mktemp("mix")
    return [written(folder / f"{c}.tfrecord", [{"i": i, "text": f"{c}:{i}"} for i in range(size)]) for c, size in enumerate(SIZES)]


def mixed(sets: list[tfseek.Dataset], weights: list[Any], **options: Any) -> tfseek.Mix:
    return tfseek.Mix([((ds, SPEC), weight) for ds, weight in zip(sets, weights)], **options)


def check(batch: Any, ids: Any) -> None:
    """Checks that rows are those of the records ``ids`` of the first test sets."""
    starts = np.cumsum([0, *SIZES])
    source = np.searchsorted(starts, ids, "right") - 1
    assert batch["source"].tolist() == source.tolist()
    assert batch["source"].dtype == np.int64
    assert batch["i"].tolist() == (ids - starts[source]).tolist()
    assert batch["text"].tolist() == [f"{c}:{i}".encode() for c, i in zip(source, batch["i"])]


@pytest.mark.parametrize("unit", ["row", "batch"])
@pytest.mark.parametrize("threads", [0, 2])
def test_resumes_after_every_batch_also_with_other_weights(sets: list[tfseek.Dataset], unit: str, threads: int) -> None:
    def loader(weights: list[int]) -> tfseek.Loader[Any]:
        mix = mixed(sets, weights, unit=unit, source="source")
        return tfseek.Loader(mix, batch_size=10, seed=7, ids="ids", threads=threads, repeat=True)

    twin = Twin(SIZES, [5, 3, 2], 7)
    weights, changes = [5, 3, 2], {12: [1, 1, 8], 20: [1, 1, 8], 25: [5, 3, 2]}
    running = loader(weights)
    for step in range(40):
        batch = next(running)
        want = twin.batch(10) if unit == "batch" else twin.rows(10)
        assert batch["ids"].tolist() == want, step
        check(batch, batch["ids"])
        state = json.loads(json.dumps(running.state_dict()))
        assert state["order"]["kind"] == "mix" and state["n"] == sum(SIZES) and len(json.dumps(state)) < 4096
        if step in changes and changes[step] != weights:
            weights = changes[step]
            twin.change(weights)
        running.close()
        running = loader(weights)
        running.load_state_dict(state)
        # Equal weights change nothing.
        if step not in changes:
            assert running.state_dict() == state


def test_states_have_the_change_of_weights(sets: list[tfseek.Dataset]) -> None:
    loader = tfseek.Loader(mixed(sets, [5, 3, 2]), batch_size=10, seed=7)
    next(loader)
    next(loader)
    state = loader.state_dict()
    assert state["mix"] == {"from": 0, "given": [0, 0, 0], "E": 197}
    order = {key: state["order"][key] for key in ("algo", "kind", "weights", "unit", "stop")}
    assert order == {"algo": "prp1", "kind": "mix", "weights": [5, 3, 2], "unit": "row", "stop": "never"}
    other = tfseek.Loader(mixed(sets, [1, 1, 1]), batch_size=10, seed=7)
    other.load_state_dict(state)
    assert other.state_dict()["mix"] == {"from": 20, "given": [10, 6, 4], "E": 197}
    assert (other.state_dict()["pos"], other.state_dict()["epoch"]) == (20, 0)
    for options, word in [({"unit": "batch"}, "unit"), ({"stop": "first"}, "stop")]:
        refused = tfseek.Loader(mixed(sets, [5, 3, 2], **options), batch_size=10)
        with pytest.raises(tfseek.OrderError, match=word):
            refused.load_state_dict(state)
    with pytest.raises(tfseek.OrderError, match="another dataset"):
        tfseek.Loader(mixed(sets[::-1], [5, 3, 2]), batch_size=10).load_state_dict(state)
    with pytest.raises(tfseek.OrderError, match="a mix"):
        tfseek.Loader(sets[0], SPEC, batch_size=10).load_state_dict({**state, "n": 60, "fp": sets[0].fingerprint})
    old = {key: value for key, value in state.items() if key != "mix"}
    old["order"] = {"algo": "prp1", "kind": "mixture", "weights": [5, 3, 2], "parts": state["order"]["parts"]}
    with pytest.raises(tfseek.OrderError, match="expected a mix, found a mixture"):
        loader.load_state_dict(old)
    # With whole batches, pos and given count batches, and the batch size is fixed.
    batches = tfseek.Loader(mixed(sets, [5, 3, 2], unit="batch"), batch_size=10, seed=7)
    next(batches)
    state = batches.state_dict()
    assert (state["pos"], state["mix"]) == (1, {"from": 0, "given": [0, 0, 0], "E": 197})
    with pytest.raises(tfseek.OrderError, match="batch: expected 20, found 10"):
        tfseek.Loader(mixed(sets, [5, 3, 2], unit="batch"), batch_size=20, seed=7).load_state_dict(state)


@pytest.mark.parametrize("stop", ["never", "first", "all"])
@pytest.mark.parametrize("unit", ["row", "batch"])
def test_ends_of_epochs(sets: list[tfseek.Dataset], stop: str, unit: str) -> None:
    twin, left, end = Twin(SIZES, [5, 3, 2], 7), list(SIZES), 0
    size = 10 if unit == "batch" else 1
    while stop != "never":
        c, i = twin.turn()
        done = min(size, max(0, SIZES[c] - i * size))
        left[c] -= done
        if done and left[c] == 0 and (stop == "first" or not any(left)):
            end += done
            break
        end += size
    samples = end or sum(SIZES)
    steps = -(-samples // 10)
    loader = tfseek.Loader(mixed(sets, [5, 3, 2], unit=unit, stop=stop), batch_size=10, seed=7)
    assert loader.state_dict()["mix"]["E"] == samples
    assert len(loader) == steps
    twin, ids = Twin(SIZES, [5, 3, 2], 7), []
    for _ in range(3):
        left_over = len(loader)
        batches = 0
        for batch in loader:
            ids += loader.ids.tolist()
            batches += 1
            assert len(batch["i"]) == 10 or stop != "never"
        assert batches == left_over
    want = twin.rows(len(ids)) if unit == "row" else sum((twin.batch(10) for _ in range(len(ids) // 10)), [])
    assert ids == want


def test_ranks_divide_the_global_batch(sets: list[tfseek.Dataset]) -> None:
    for unit in ("row", "batch"):
        mix = mixed(sets, [5, 3, 2], unit=unit)
        one = tfseek.Loader(mix, global_batch_size=64, seed=7, repeat=True)
        whole = [next(one) and one.ids.tolist() for _ in range(5)]
        for world_size in (2, 16, 64):
            ranks = [
                tfseek.Loader(mix, global_batch_size=64, seed=7, rank=rank, world_size=world_size, threads=0, repeat=True)
                for rank in range(world_size)
            ]
            for ids in whole:
                assert sum((next(rank) and rank.ids.tolist() for rank in ranks), []) == ids
            assert len({json.dumps(rank.state_dict()) for rank in ranks}) == 1


def test_weights_become_integers(sets: list[tfseek.Dataset]) -> None:
    def weights(*given: Any, **options: Any) -> list[int]:
        return mixed(sets, list(given), **options).weights

    assert weights(7, 2, 1) == [7, 2, 1]
    assert weights(np.int64(7), 2, 2**20 - 9) == [7, 2, 2**20 - 9]
    assert weights(0.7, 0.2999, 0.0001) == [2867, 1228, 1]
    assert weights(7.0, 2, 1) == [2867, 819, 410]
    assert weights(1, 1, 1, by="size") == SIZES
    assert weights(1, 2, 3, by="size") == [60, 200, 111]
    assert sum(weights(10**6, 1, 1, by="size")) == 4096
    assert weights(0.5, 0.5, 0.5, by="size") == tfseek.Mix([((ds, SPEC), float(len(ds))) for ds in sets]).weights
    view = tfseek.Mix([((sets[1][:10], SPEC), 1), ((sets[0], SPEC), 1)], by="size")
    assert view.weights == [10, 60]
    for bad in (0, -1, float("nan"), float("inf"), True, "1", None):
        with pytest.raises(tfseek.SpecError, match="source 1: expected a"):
            weights(1, bad, 1)
    with pytest.raises(tfseek.SpecError, match=r"at most 2\^20, found 1048577"):
        weights(2**20 - 1, 1, 1)


def test_a_mix_in_a_mix_is_flattened(sets: list[tfseek.Dataset]) -> None:
    inner = mixed(sets[1:], [3, 1])
    outer = tfseek.Mix([((sets[0], SPEC), 1), (inner, 1)], source="source")
    assert outer.weights == [2048, 1536, 512]
    loader = tfseek.Loader(outer, batch_size=4096, seed=1, ids="ids")
    batch = next(loader)
    assert np.bincount(batch["source"]).tolist() == [2048, 1536, 512]
    check(batch, batch["ids"])
    sizes = tfseek.Mix([((sets[0], SPEC), 1), (inner, 1)], by="size").weights
    assert sizes == tfseek.Mix([((sets[0], SPEC), 60.0), ((sets[1], SPEC), 102.75), ((sets[2], SPEC), 34.25)]).weights
    for options in ({"unit": "batch"}, {"stop": "all"}, {"source": "x"}):
        with pytest.raises(tfseek.SpecError, match="source 1: expected a mix without unit, stop and source"):
            tfseek.Mix([((sets[0], SPEC), 1), (mixed(sets[1:], [1, 1], **options), 1)])


def test_views_and_unparsed_records(sets: list[tfseek.Dataset]) -> None:
    odd = sets[0].filter("record in 1, 3, 5, 7")
    loader = tfseek.Loader(tfseek.Mix([((odd, SPEC), 1), ((sets[1][50:], SPEC), 1)]), batch_size=8, seed=3)
    assert len(loader) == -(-54 // 8)
    seen = set()
    for batch in loader:
        seen |= set(loader.ids.tolist())
    assert {i for i in seen if i < 60} == {1, 3, 5, 7} and min(i for i in seen if i >= 60) >= 110
    raw = tfseek.Loader(tfseek.Mix([((sets[0], None), 1), (sets[1], 1)]), batch_size=8, seed=3)
    batch = next(raw)
    assert isinstance(batch, list)
    for payload, i, source in zip(batch, raw.ids, raw.sources):
        assert tfseek.Example.from_bytes(payload)["text"][0] == f"{source}:{i - 60 * source}".encode()
    with pytest.raises(ValueError, match="requires batches of Examples"):
        tfseek.Loader(tfseek.Mix([(sets[0], 1)], source="source"), batch_size=8)


def test_columns_that_differ(tmp_path: pathlib.Path) -> None:
    a = written(tmp_path / "a", [{"x": [i, 2], "name": f"a{i}", "tokens": np.arange(i % 3)} for i in range(20)])
    b = written(tmp_path / "b", [{"y": [i, 3], "title": f"b{i}", "tokens": np.arange(i % 4)} for i in range(20)])
    spec: dict[str, Any] = {"x": tfseek.FixedLenFeature([2], "int64"), "name": tfseek.FixedLenFeature([], "string")}
    other: dict[str, Any] = {"y": spec["x"], "title": tfseek.FixedLenFeature([], "string", "?")}
    for name, tokens in [("ragged", tfseek.RaggedFeature("int64")), ("sparse", tfseek.VarLenFeature("int64"))]:
        both = [{**spec, "tokens": tokens}, {**other, "tokens": tokens}]
        mix = tfseek.Mix([((a, both[0]), 1), ((b, both[1]), 1)], rename={1: {"y": "x", "title": "name"}}, source="from")
        for batch in tfseek.Loader(mix, batch_size=6, seed=1):
            assert sorted(batch) == ["from", "name", "tokens", "x"]
            for row, source in enumerate(batch["from"]):
                i, kind = batch["x"][row]
                assert kind == 2 + source and batch["name"][row] == f"{'ab'[source]}{i}".encode()
                expected = list(range(i % (3 + source)))
                if name == "ragged":
                    assert batch["tokens"][row].tolist() == expected
                else:
                    entries = batch["tokens"].indices[:, 0] == row
                    assert batch["tokens"].values[entries].tolist() == expected
    with pytest.raises(tfseek.SpecError, match="name.* is not in all sources"):
        tfseek.Loader(tfseek.Mix([((a, spec), 1), ((b, other), 1)]), batch_size=6)
    wide = {**spec, "x": tfseek.FixedLenFeature([2], "float32")}
    with pytest.raises(tfseek.SpecError, match='"x".*source 1 of the mix: has the type float32, and int64 in the first'):
        tfseek.Loader(tfseek.Mix([((a, spec), 1), ((a, wide), 1)]), batch_size=6)
    with pytest.raises(tfseek.SpecError, match='"z".*not in the schema'):
        tfseek.Loader(tfseek.Mix([((a, spec), 1)], rename={0: {"z": "x"}}), batch_size=6)
    with pytest.raises(tfseek.SpecError, match="rename: expected the number of one of 1 sources, found 1"):
        tfseek.Mix([((a, spec), 1)], rename={1: {"x": "y"}})
    # Whole batches may have other columns.
    kinds = {0: {"x", "name", "from"}, 1: {"y", "title", "from"}}
    loader = tfseek.Loader(tfseek.Mix([((a, spec), 1), ((b, other), 1)], unit="batch", source="from"), batch_size=5, seed=2)
    for batch in loader:
        (source,) = set(batch["from"].tolist())
        assert set(batch) == kinds[source]


def test_damage_is_skipped(tmp_path: pathlib.Path) -> None:
    a = written(tmp_path / "a", [{"i": i} for i in range(20)])
    b = written(tmp_path / "b", [{"i": i} if i != 7 else {"j": i} for i in range(20)])
    spec = {"i": tfseek.FixedLenFeature([], "int64")}
    mix = tfseek.Mix([((a, spec), 1), ((b, spec), 1)])
    loader = tfseek.Loader(mix, batch_size=40, seed=1, damage="skip")
    # The nearest sound row takes the place of the damaged one.
    assert len(next(loader)["i"]) == 40
    assert [number for number, _ in loader.skipped] == [27]
    assert loader.skipped_by_file == {str(tmp_path / "b"): 1}
    with pytest.raises(tfseek.DataError, match="record 7"):
        next(tfseek.Loader(mix, batch_size=40, seed=1))


def test_options_that_make_no_sense_are_refused(sets: list[tfseek.Dataset]) -> None:
    mix = mixed(sets, [5, 3, 2], source="i2")
    for options, error, words in [
        ({"last_batch": "pad"}, tfseek.OrderError, "continuous"),
        ({"drop_last": True}, tfseek.OrderError, "continuous"),
        ({"balance": "i"}, ValueError, "balance"),
        ({"bucket_by": "i", "boundaries": [3]}, ValueError, "bucket_by: expected a dataset, found a mix"),
        ({"workers": 2}, tfseek.OrderError, "one worker"),
        ({"ids": "i2"}, ValueError, "different names"),
        ({"ids": "text"}, ValueError, "exists already"),
    ]:
        with pytest.raises(error, match=words):
            tfseek.Loader(mix, batch_size=10, **options)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="specs of a mix"):
        tfseek.Loader(mix, SPEC, batch_size=10)  # type: ignore[call-overload]
    for bad in [{"by": "rows"}, {"unit": "step"}, {"stop": "last"}]:
        with pytest.raises(ValueError, match="expected one of"):
            mixed(sets, [5, 3, 2], **bad)
    with pytest.raises(TypeError, match="name of a column"):
        mixed(sets, [5, 3, 2], source=3)
    with pytest.raises(tfseek.SpecError, match="found none"):
        tfseek.Mix([])
    with pytest.raises(TypeError, match="a pair of a source and its weight"):
        tfseek.Mix([sets[0]])  # type: ignore[list-item]
    with pytest.raises(TypeError, match="expected .ds, spec. or a tfseek.Mix"):
        tfseek.Mix([(("data", SPEC), 1)])  # type: ignore[list-item]
    with pytest.raises(tfseek.OrderError, match="no records"):
        tfseek.Loader(mixed([sets[0][:0], sets[1]], [1, 1]), batch_size=10)


def test_a_mix_is_pickled_and_described(sets: list[tfseek.Dataset]) -> None:
    mix = mixed(sets, [5, 3, 2], source="source", unit="batch", stop="all")
    copies = [pickle.loads(pickle.dumps(mix)), copy.deepcopy(mix)]
    first = next(tfseek.Loader(mix, batch_size=10, seed=1))
    for other in copies:
        assert other.weights == mix.weights and repr(other) == repr(mix)
        assert next(tfseek.Loader(other, batch_size=10, seed=1))["text"].tolist() == first["text"].tolist()
    loader = tfseek.Loader(mix, batch_size=10, seed=1)
    assert "3 components, cycles of 10 batches of 10" in loader.describe() and "Loader(" in repr(loader)


def test_records_are_found(sets: list[tfseek.Dataset]) -> None:
    for unit in ("row", "batch"):
        loader = tfseek.Loader(mixed(sets, [5, 3, 2], unit=unit), batch_size=10, seed=7)
        found: Optional[Any] = None
        for step, _ in enumerate(loader):
            for row, record in enumerate(loader.ids):
                if step < len(loader.rows_of(0, 0)) + 5:
                    assert (step, 0, row) in loader.rows_of(record, 0)
                    found = record
        assert found is not None
    with pytest.raises(tfseek.OutOfRangeError):
        loader.rows_of(sum(SIZES))


def test_augmentation_seeds_follow_the_position(sets: list[tfseek.Dataset]) -> None:
    for unit in ("row", "batch"):
        mix = mixed(sets, [5, 3, 2], unit=unit)
        loader = tfseek.Loader(mix, batch_size=10, seed=7, augmentation_seed="seed")
        plain = tfseek.Loader(sets[1], SPEC, batch_size=10, seed=7, augmentation_seed="seed")
        for _ in range(5):
            assert next(loader)["seed"].tolist() == next(plain)["seed"].tolist()


def test_torch_takes_a_mix(sets: list[tfseek.Dataset]) -> None:
    pytest.importorskip("torch")
    import tfseek.torch

    mix = mixed(sets, [5, 3, 2], source="source")
    loaded = tfseek.torch.IterableDataset(mix, batch_size=10, seed=7)
    plain = tfseek.Loader(mix, batch_size=10, seed=7)
    for tensors, arrays in zip(loaded, plain):
        assert tensors["i"].tolist() == arrays["i"].tolist() and tensors["source"].tolist() == arrays["source"].tolist()
    for refused in (tfseek.torch.Dataset, tfseek.torch.Sampler):
        with pytest.raises(TypeError, match="IterableDataset takes a tfseek.Mix"):
            refused(mix)  # type: ignore[arg-type]


def test_grain_takes_a_mix(sets: list[tfseek.Dataset]) -> None:
    pytest.importorskip("grain")
    import tfseek.grain

    mix = mixed(sets, [5, 3, 2], source="source")
    iterator = iter(tfseek.grain.IterDataset(mix, batch_size=10, seed=7))
    plain = iter(tfseek.Loader(mix, batch_size=10, seed=7))
    for _ in range(3):
        assert next(iterator)["i"].tolist() == next(plain)["i"].tolist()
    with pytest.raises(TypeError, match="found Mix"):
        tfseek.grain.DataSource(mix)  # type: ignore[arg-type]


def test_sources_with_many_sets_of_columns(tmp_path: pathlib.Path) -> None:
    """A loader keeps the keys of some sets of columns. Batches of all others are the same."""
    sources, rename = [], {}
    for k in range(20):
        write_records(tmp_path / f"{k}.tfrecord", ({"i": [i], "text": [b"%d-%d" % (k, i)]} for i in range(8)))
        sources.append(((tfseek.open(tmp_path / f"{k}.tfrecord"), SPEC), 1))
        rename[k] = {"i": f"i{k}", "text": f"text{k}"}
    seen = []
    with tfseek.Loader(tfseek.Mix(sources, unit="batch", source="from", rename=rename), batch_size=2, shuffle=False) as loader:
        for _ in range(80):
            batch = next(loader)
            k = int(batch["from"][0])
            assert list(batch) == [f"i{k}", f"text{k}", "from"]
            assert batch[f"text{k}"].tolist() == [b"%d-%d" % (k, i) for i in batch[f"i{k}"]]
            seen.append(k)
    assert sorted(set(seen)) == list(range(20)) and len(seen) == 80
