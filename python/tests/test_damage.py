"""Datasets with damaged shards."""

import pathlib
from typing import Any, Callable

import pytest

import tfseek


@pytest.fixture
def damaged(tmp_path: pathlib.Path) -> tuple[pathlib.Path, bytes]:
    """A shard of 10 records, of which 3 is damaged, and its bytes."""
    path = tmp_path / "a.tfrecord"
    with tfseek.Writer(path) as writer:
        for i in range(10):
            writer.write(tfseek.Example({"label": i}))
    data = bytearray(path.read_bytes())
    size = len(data) // 10
    data[3 * size + 14] ^= 1
    path.write_bytes(data)
    return path, bytes(data[3 * size : 4 * size])


def test_damage_is_skipped_on_request(damaged: tuple[pathlib.Path, bytes], tmp_path: pathlib.Path) -> None:
    path, lost = damaged
    with pytest.raises(tfseek.DataError):
        tfseek.open(path, index="memory")[3]
    for index in ["auto", "auto", "memory"]:
        rest = tmp_path / "rest"
        ds = tfseek.open(path, index=index, index_dir=tmp_path / "i", damage="skip", rest=rest)
        assert [ex["label"].item() for ex in ds] == [0, 1, 2, 4, 5, 6, 7, 8, 9]
        (warning,) = ds.warnings
        assert warning.kind == "damage_skipped" and warning.path == str(path)
        assert f"1 damaged range is left out, {len(lost)} bytes" in str(warning)
        assert (rest / "a.tfrecord.rest").read_bytes() == lost
        (rest / "a.tfrecord.rest").unlink()
    assert list(ds.column("label")) == [0, 1, 2, 4, 5, 6, 7, 8, 9]


def test_indexes_of_damaged_shards(damaged: tuple[pathlib.Path, bytes], tmp_path: pathlib.Path) -> None:
    path, _ = damaged
    assert tfseek.build_index(path, damage="skip", rest=tmp_path / "rest") == 9
    assert (tmp_path / "rest" / "a.tfrecord.rest").exists()
    assert len(tfseek.open(path, index="require", damage="skip")) == 9
    with pytest.raises(tfseek.SidecarError, match="damaged records were skipped"):
        tfseek.open(path, index="require")


def test_arguments(damaged: tuple[pathlib.Path, bytes], tmp_path: pathlib.Path) -> None:
    path, _ = damaged
    with pytest.raises(ValueError, match="damage: expected"):
        tfseek.open(path, damage="ignore")
    with pytest.raises(ValueError, match="damage: expected"):
        tfseek.build_index(path, damage="ignore")
    calls: list[Callable[..., Any]] = [tfseek.open, tfseek.build_index]
    for call in calls:
        with pytest.raises(ValueError, match="rest: expected damage='skip', found damage='raise'"):
            call(path, rest=tmp_path)
