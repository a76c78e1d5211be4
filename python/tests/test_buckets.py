"""Batches of records of like length, compared with a second implementation of the order in NumPy."""

from __future__ import annotations

import json
import pathlib
import pickle
from typing import Any, Optional

import numpy as np
import pytest
from order_twin import absorb, permutation, tag

import tfseek

BOUNDARIES = [0, 4, 9]
SIZES = [4, 16, 8, 4]
N = 203


def batches(
    lengths: Any, boundaries: list[int], sizes: list[int], seed: Optional[int], epoch: int, last: str
) -> list[list[tuple[int, bool]]]:
    """Returns the global batches of an epoch: the row and whether it is real, for each row."""
    bucket = np.searchsorted(boundaries, lengths, side="left")
    found = []
    for k, size in enumerate(sizes):
        rows = np.flatnonzero(bucket == k).tolist()
        n = len(rows)
        order = range(n) if seed is None else permutation(n, seed, epoch, 4 * 2**32 + k)
        for start in range(0, n, size):
            if last == "drop" and start + size > n:
                break
            end = min(start + size, n) if last == "short" else start + size
            found.append([(rows[order[p % n]], p < n) for p in range(start, end)])
    steps = range(len(found)) if seed is None else permutation(len(found), seed, epoch, 5 * 2**32)
    return [found[b] for b in steps]


def count(i: int) -> int:
    """Returns the number of tokens of record ``i``."""
    return i * i % 23 % 17


LENGTHS = [count(i) for i in range(N)]
SPEC = {"tokens": tfseek.RaggedFeature("int64"), "other": tfseek.RaggedFeature("float32"), "i": tfseek.FixedLenFeature([], "int64")}


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("buckets")
    for shard in range(2):
        with tfseek.Writer(folder / f"{shard}.tfrecord") as writer:
            for i in range(shard * 100, N if shard else 100):
                tokens = np.arange(count(i)) + i
                other = np.full(i % 3, i, np.float32)
                writer.write(tfseek.Example({"tokens": tokens, "other": other, "i": i}))
    return str(folder / "*.tfrecord")


@pytest.fixture()
def ds(path: str) -> tfseek.Dataset:
    return tfseek.open(path)


def loader(ds: tfseek.Dataset, **options: Any) -> tfseek.Loader:
    defaults: dict[str, Any] = {
        "bucket_by": LENGTHS, "boundaries": BOUNDARIES, "global_batch_size": SIZES, "seed": 7, "mask": "mask", "threads": 1
    }
    return tfseek.Loader(ds, SPEC, **{**defaults, **options})


def rows(batch: Any) -> list[tuple[int, bool]]:
    return list(zip(batch["i"].tolist(), batch["mask"].tolist()))


def test_batches_are_those_of_the_page(ds: tfseek.Dataset) -> None:
    assert permutation(10, 42, 0, 0)[:6] == [9, 3, 0, 8, 1, 4]
    for last in ("short", "pad", "drop"):
        for seed in (7, 2**64 - 1):
            found = loader(ds, last_batch=last, seed=seed, threads=2)
            for epoch in range(2):
                want = batches(LENGTHS, BOUNDARIES, SIZES, seed, epoch, last)
                assert [rows(batch) for batch in found] == want
                assert len(found) == len(want)
        want = batches(LENGTHS, BOUNDARIES, SIZES, None, 0, last)
        assert [rows(batch) for batch in loader(ds, last_batch=last, shuffle=False)] == want


def test_ranks_have_parts_of_the_same_batches(ds: tfseek.Dataset) -> None:
    for last in ("pad", "drop", "short"):
        want = batches(LENGTHS, BOUNDARIES, SIZES, 7, 0, last)
        for ranks in (1, 2, 4):
            per_rank = [size // ranks for size in SIZES]
            sizes: list[dict[str, Any]] = [{}, {"global_batch_size": None, "batch_size": per_rank}]
            for size in sizes:
                loaders = [loader(ds, rank=r, world_size=ranks, last_batch=last, **size) for r in range(ranks)]
                assert {len(found) for found in loaders} == {len(want)}
                steps = [sum((rows(batch) for batch in parts), []) for parts in zip(*loaders)]
                assert steps == want
    defaults = [rows(batch) for batch in loader(ds, rank=1, world_size=2)]
    assert defaults == [batch[len(batch) // 2 :] for batch in batches(LENGTHS, BOUNDARIES, SIZES, 7, 0, "pad")]


def test_a_run_resumes_after_every_batch(ds: tfseek.Dataset) -> None:
    want = [batches(LENGTHS, BOUNDARIES, SIZES, 7, epoch, "pad") for epoch in range(2)]
    running = loader(ds, last_batch="pad")
    for k, batch in enumerate(running):
        assert rows(batch) == want[0][k]
        state = json.loads(json.dumps(running.state_dict()))
        end = k + 1 == len(want[0])
        assert (state["epoch"], state["pos"]) == ((1, 0) if end else (0, k + 1))
        assert len(json.dumps(state)) < 4096 and state["order"]["sizes"] == SIZES
        # Other sizes, and other ranks.
        sizes = [size * 2 for size in SIZES]
        resumed = [loader(ds, last_batch="pad", rank=r, world_size=2, global_batch_size=sizes) for r in range(2)]
        for part in resumed:
            part.load_state_dict(state)
            assert len(part) == len(want[0])
        steps = [sum((rows(batch) for batch in parts), []) for parts in zip(*resumed)]
        assert steps == (want[1] if end else want[0][k + 1 :])


def test_rows_of_is_the_inverse(ds: tfseek.Dataset) -> None:
    one = loader(ds, last_batch="pad", rank=1, world_size=2)
    want = batches(LENGTHS, BOUNDARIES, SIZES, 7, 3, "pad")
    for record in range(0, N, 7):
        found = one.rows_of(record, epoch=3)
        assert len(found) == 1
        step, rank, row = found[0]
        assert want[step][rank * len(want[step]) // 2 + row] == (record, True)
    dropped = loader(ds, last_batch="drop")
    assert sum(len(dropped.rows_of(record)) for record in range(N)) == sum(map(len, batches(LENGTHS, BOUNDARIES, SIZES, 7, 0, "drop")))


def test_views_have_lengths_of_their_own(ds: tfseek.Dataset) -> None:
    view = ds.filter("i >= 50")[::3]
    ids = list(range(50, N, 3))
    lengths = [LENGTHS[i] for i in ids]
    want = [[(ids[row], real) for row, real in batch] for batch in batches(lengths, BOUNDARIES, SIZES, 7, 0, "short")]
    for by in (lengths, np.array(lengths, np.int16), tuple(lengths), "tokens"):
        found = loader(view, bucket_by=by)
        assert [rows(batch) for batch in found] == want
    assert "ids" in found.state_dict()["order"]
    with pytest.raises(ValueError, match=rf"expected {len(ids)} lengths, one for each record of the dataset or view, found {N}"):
        loader(view)


def test_a_feature_has_the_number_of_its_values(path: str, ds: tfseek.Dataset) -> None:
    shown: list[Any] = []
    first = loader(ds, bucket_by="tokens", progress=lambda *args: shown.append(args))
    want = batches(LENGTHS, BOUNDARIES, SIZES, 7, 0, "short")
    assert [rows(batch) for batch in first] == want
    assert first.state_dict() == loader(ds, epoch=1).state_dict()
    # The counts were saved: an index that must exist is enough, and a copy in another process finds them.
    again = tfseek.open(path, index="require")
    assert [rows(batch) for batch in loader(again, bucket_by=b"tokens")] == want
    assert [rows(batch) for batch in loader(pickle.loads(pickle.dumps(again)), bucket_by="tokens")] == want
    with pytest.raises(tfseek.Error, match="tokens"):
        loader(ds, bucket_by="tokns")


def test_seeds_of_rows_have_positions_of_the_bucket(ds: tfseek.Dataset) -> None:
    bucket = np.searchsorted(BOUNDARIES, LENGTHS, side="left")
    one = loader(ds, last_batch="pad", augmentation_seed="seed", epoch=1)
    order: list[int] = []
    for k in range(len(SIZES)):
        rows_of_bucket = np.flatnonzero(bucket == k)
        order += rows_of_bucket[permutation(len(rows_of_bucket), 7, 1, 4 * 2**32 + k)].tolist()
    for batch in one:
        want = [absorb(tag(b"TFRDAUG1"), 7, 1, order.index(i)) for i in batch["i"].tolist()]
        assert batch["seed"].tolist() == want


def test_padding_in_threads_and_in_the_report(ds: tfseek.Dataset) -> None:
    def step(batch: Any, info: tfseek.StepInfo) -> Any:
        return info.step, batch["tokens"][1], info.longest

    one = loader(ds, bucket_by="tokens", padded=True, transform=step, transform_threads=2)
    assert one.report().padding is None
    found = list(one)
    assert [number for number, _, _ in found] == list(range(len(one)))
    assert all(mask.shape[1] == longest for _, mask, longest in found)
    cells, values = sum(mask.size for _, mask, _ in found), sum(int(mask.sum()) for _, mask, _ in found)
    assert values == sum(LENGTHS)
    assert one.report().padding == pytest.approx(1 - values / cells)
    assert f"{100 * (1 - values / cells):.0f} % padding" in str(one.report())
    plain = tfseek.Loader(ds, SPEC, batch_size=50)
    assert len(list(plain)) == 5 and plain.report().padding is None and json.loads(plain.report().to_json())["padding"] is None
    # Without buckets of like length more is padding.
    wide = loader(ds, boundaries=[], global_batch_size=[8])
    assert len(list(wide)) == 26
    less, more = one.report().padding, wide.report().padding
    assert less is not None and more is not None and less < more


def test_padded_sequence_examples(tmp_path: pathlib.Path) -> None:
    with tfseek.Writer(tmp_path / "x.tfrecord") as writer:
        for i in range(20):
            writer.write(tfseek.SequenceExample({"words": np.arange(i % 7)}, {"frames": [[1, 2][: 1 + k % 2] for k in range(1 + i % 3)]}))
    clips = tfseek.open(tmp_path / "x.tfrecord")
    schema = tfseek.Schema(
        context_features={"words": tfseek.RaggedFeature("int64")}, sequence_features={"frames": tfseek.RaggedFeature("int64")}
    )
    ranks = [
        tfseek.Loader(clips, schema, bucket_by="words", boundaries=[3], batch_size=[2, 4], padded=True, seed=3, rank=r, world_size=2)
        for r in range(2)
    ]
    for parts in zip(*ranks):
        for (context, sequence, _), one in zip(parts, ranks):
            longest = max(int(i) % 7 for other in ranks for i in other.ids)
            assert context["words"][1].sum(1).tolist() == [i % 7 for i in one.ids.tolist()]
            assert context["words"][0].shape == (len(one.ids), longest)
            values = [sum(1 + k % 2 for k in range(1 + i % 3)) for i in one.ids.tolist()]
            assert sequence["frames"][1].sum((1, 2)).tolist() == values


def test_tokens_per_batch(ds: tfseek.Dataset) -> None:
    longest = max(LENGTHS)
    for tokens, ranks in ((100, 1), (100, 4), (1, 4), (64, 2)):
        one = loader(ds, global_batch_size=None, tokens_per_batch=tokens, world_size=ranks)
        want = [max(tokens // max(most, 1) // ranks * ranks, ranks) for most in (*BOUNDARIES, longest)]
        assert one.state_dict()["order"]["sizes"] == want
        for batch in one if ranks == 1 else ():
            assert len(batch["i"]) * int(batch["tokens"].row_lengths().max()) <= tokens
    few = loader(ds, global_batch_size=None, tokens_per_batch=100, boundaries=[longest], world_size=4)
    assert few.state_dict()["order"]["sizes"] == [100 // longest // 4 * 4 or 4, 4]


def test_padded_columns_are_those_of_to_padded(ds: tfseek.Dataset) -> None:
    plain = [loader(ds, bucket_by="tokens", rank=r, world_size=2) for r in range(2)]
    padded = [loader(ds, bucket_by="tokens", rank=r, world_size=2, padded=True, ids="id") for r in range(2)]
    cells = values = 0
    for wanted, found in zip(zip(*plain), zip(*padded)):
        longest = max(int(batch["tokens"].row_lengths().max()) for batch in wanted)
        for batch, want in zip(found, wanted):
            tokens, mask = batch["tokens"]
            expected = want["tokens"].to_padded(longest)
            assert tokens.shape == mask.shape == (len(want["i"]), longest)
            assert np.array_equal(tokens, expected[0]) and np.array_equal(mask, expected[1])
            assert all(np.array_equal(a, b) for a, b in zip(batch["other"], want["other"].to_padded()))
            assert batch["i"].tolist() == want["i"].tolist() == batch["id"].tolist()
            cells, values = cells + mask.size, values + int(mask.sum())
    assert 0 < values < cells

    # Lengths of the caller may be no lengths of a column, so nothing is cut.
    for batch in loader(ds, bucket_by=[1] * N, boundaries=[4], global_batch_size=[50, 50], padded=True):
        assert batch["tokens"][0].shape[1] == max(count(i) for i in batch["i"].tolist())
    seen: list[Any] = []

    def total(batch: Any) -> int:
        seen.append(batch["t"])
        return int(batch["t"][1].sum())

    one = tfseek.Loader(
        ds, {"t": tfseek.RaggedFeature("int64", value_key="tokens")}, bucket_by="tokens", boundaries=[4], batch_size=[9, 9],
        padded=True, transform=total,
    )
    assert sum(one) == sum(LENGTHS) and isinstance(seen[0], tuple)


def test_padded_columns_with_items(tmp_path: pathlib.Path) -> None:
    with tfseek.Writer(tmp_path / "x.tfrecord") as writer:
        for i in range(20):
            writer.write(tfseek.Example({"points": np.arange(3 * i), "words": np.array([b"w"] * (i % 4), "S1")}))
    ds = tfseek.open(tmp_path / "x.tfrecord")
    uniform = tfseek.RaggedFeature.UniformRowLength(3)
    spec = {"points": tfseek.RaggedFeature("int64", partitions=[uniform]), "words": tfseek.RaggedFeature("string")}
    for by, bytes_as in (("points", "objects"), ("words", "offsets")):
        one = tfseek.Loader(
            ds, spec, bucket_by=by, boundaries=[2, 21], batch_size=[2, 4, 8], padded=True, seed=1, ids="id", bytes_as=bytes_as
        )
        for batch in one:
            ids = batch["id"].tolist()
            points, mask = batch["points"]
            assert points.shape == (len(ids), max(ids), 3) and mask.shape == points.shape[:2]
            assert all(points[r, : ids[r]].ravel().tolist() == list(range(3 * ids[r])) for r in range(len(ids)))
            assert batch["words"][1].sum(1).tolist() == [i % 4 for i in ids]


def test_states_of_other_buckets_are_refused(ds: tfseek.Dataset) -> None:
    state = loader(ds).state_dict()
    for options, field in (
        ({"boundaries": [0, 4, 8]}, "boundaries"),
        ({"bucket_by": [0] * N}, "records have lengths of other buckets"),
        ({"drop_last": True}, "expected one that drops incomplete batches, found one that keeps them"),
        ({"shuffle": False}, "shuffle"),
    ):
        with pytest.raises(tfseek.OrderError, match=field):
            loader(ds, **options).load_state_dict(state)
    with pytest.raises(tfseek.OrderError, match="expected a global shuffle, found buckets of like length"):
        tfseek.Loader(ds, SPEC, batch_size=4, seed=7).load_state_dict(state)
    with pytest.raises(tfseek.OrderError, match="3 ranks"):
        loader(ds, global_batch_size=[3, 3, 3, 3], world_size=3).load_state_dict(state)


def test_arguments_are_checked(ds: tfseek.Dataset) -> None:
    for options, error, message in (
        ({"boundaries": None}, ValueError, "bucket_by requires boundaries"),
        ({"boundaries": [1, 4, 4]}, tfseek.OrderError, "expected ascending boundaries, found 4 after 4"),
        ({"boundaries": [-1, 4, 9]}, ValueError, "boundaries: expected integers of at least 0, found -1"),
        ({"boundaries": [0.5, 4, 9]}, TypeError, "boundaries: expected a list of integers, found list"),
        ({"boundaries": 4}, TypeError, "boundaries: expected a list of integers, found int"),
        ({"global_batch_size": 8}, TypeError, "global_batch_size: expected a list of integers, found int"),
        ({"global_batch_size": [8, 8]}, ValueError, "expected 4 sizes, one for each bucket, found 2"),
        ({"global_batch_size": [8, 8, 0, 8]}, tfseek.OrderError, "batch sizes above 0"),
        ({"batch_size": [1, 1, 1, 1]}, ValueError, "exactly one of batch_size, global_batch_size, tokens_per_batch"),
        ({"global_batch_size": None}, ValueError, "exactly one of batch_size, global_batch_size, tokens_per_batch"),
        ({"bucket_by": [[1]] * N}, TypeError, "bucket_by: expected a list of integers"),
        ({"bucket_by": [-1] * N}, ValueError, "bucket_by: expected integers of at least 0"),
        ({"bucket_by": [2**32] * N}, tfseek.OrderError, "lengths below 2"),
        ({"bucket_by": [1] * 5}, ValueError, f"expected {N} lengths, one for each record"),
        ({"shuffle": "block"}, tfseek.OrderError, "buckets have no block order"),
        ({"balance": "i"}, tfseek.OrderError, "buckets do not balance classes"),
        ({"last_batch": "continuous"}, tfseek.OrderError, "not continuous"),
        ({"world_size": 3}, tfseek.OrderError, "multiple of 3 ranks"),
        ({"global_batch_size": [500] * 4, "last_batch": "drop"}, tfseek.OrderError, "there is no batch"),
        ({"bucket_by": None}, ValueError, "boundaries requires bucket_by"),
        ({"bucket_by": None, "boundaries": None}, ValueError, "global_batch_size: a size for each bucket requires bucket_by"),
        ({"bucket_by": None, "boundaries": None, "global_batch_size": 8, "padded": True}, ValueError, "padded=True requires bucket_by"),
    ):
        with pytest.raises(error, match=message):
            loader(ds, **options)
    with pytest.raises(ValueError, match="padded=True requires a spec"):
        tfseek.Loader(ds, bucket_by=LENGTHS, boundaries=[4], batch_size=[1, 1], padded=True)
    with pytest.raises(ValueError, match="tokens_per_batch requires bucket_by"):
        tfseek.Loader(ds, SPEC, batch_size=8, tokens_per_batch=8)
    empty = tfseek.Loader(ds, bucket_by=LENGTHS, boundaries=[], batch_size=[200])
    assert [len(batch) for batch in empty] == [200, 3]


def test_descriptions_and_notes(ds: tfseek.Dataset) -> None:
    def failing(batch: Any) -> Any:
        if 77 in batch["i"]:
            raise KeyError("77")
        return batch

    one = loader(ds, transform=failing)
    want = [k for k, batch in enumerate(batches(LENGTHS, BOUNDARIES, SIZES, 7, 0, "short")) if (77, True) in batch]
    with pytest.raises(KeyError) as caught:
        list(one)
    assert f"epoch 0, step {want[0]}, records" in caught.value.__notes__[0]
    assert "4 buckets, shuffled" in one.describe() and f"step {want[0] + 1}" in repr(one)
