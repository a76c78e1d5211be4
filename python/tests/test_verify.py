"""``tfseek.verify``, and packs of ``tfseek.build_index``."""

from __future__ import annotations

import os
import pathlib
import pickle

import pytest
from conftest import features, flip, write_records
from tiny_images import png

import tfseek


def write(path: pathlib.Path, count: int, compression: str = "none") -> str:
    write_records(path, (features(i) for i in range(count)), compression=compression)
    return str(path)


def test_intact_files(shards: str, tmp_path: pathlib.Path) -> None:
    found = tfseek.verify(shards)
    assert found and found.ok and found.errors == []
    payload_bytes = sum(len(bytes(record)) for record in tfseek.stream(shards))
    assert (found.files, found.sound_files, found.records, found.payload_bytes) == (3, 3, 1000, payload_bytes)
    assert repr(found) == "tfseek.Verification(3 of 3 files sound, 1000 records)"
    for threads in (0, 1, 2, 100):
        assert tfseek.verify(shards, threads=threads, decode=True) == found
    assert tfseek.verify(write(tmp_path / "a.tfrecord.gz", 7, "gzip")).records == 7
    assert tfseek.verify([write(tmp_path / "empty", 0)]).ok
    assert pickle.loads(pickle.dumps(found)) == found


def test_damage_is_in_the_result(tmp_path: pathlib.Path) -> None:
    paths = [write(tmp_path / name, 20) for name in ("a", "b", "c")]
    flip(paths[0], b"record 3")
    os.truncate(paths[2], os.path.getsize(paths[2]) - 1)
    found = tfseek.verify(tmp_path / "*")
    assert not found and not found.ok and (found.files, found.sound_files, found.records) == (3, 1, 19 + 20 + 19)
    first, second = found.errors
    assert isinstance(first, tfseek.DataError) and (first.path, first.record) == (paths[0], 3) and "payload crc32c" in str(first)
    assert isinstance(second, tfseek.DataError) and (second.path, second.record) == (paths[2], 19)
    assert repr(found).startswith(f"tfseek.Verification(1 of 3 files sound, 58 records, first error: {paths[0]}: record 3 at byte ")
    assert [str(error) for error in pickle.loads(pickle.dumps(found)).errors] == [str(first), str(second)]


def test_malformed_payloads_are_found_by_decoding(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "a"
    write_records(path, [features(0), b"\x0a\x7f", features(1), b"\x0a\x7f"])
    assert tfseek.verify(path).ok
    found = tfseek.verify(path, decode=True, kind="example")
    assert (found.records, found.malformed, found.sound_files, len(found.errors)) == (4, 2, 0, 1)
    assert found.errors[0].record == 1
    assert tfseek.verify(path, decode=True, kind="bytes").ok


def test_files_that_cannot_be_read(tmp_path: pathlib.Path) -> None:
    with pytest.raises(tfseek.NotFoundError, match="absent"):
        tfseek.verify(tmp_path / "absent")
    text = tmp_path / "text"
    text.write_text("no records, but text\n" * 10)
    found = tfseek.verify([write(tmp_path / "a", 5), str(text)])
    assert (found.sound_files, found.records) == (1, 5) and found.errors[0].path == str(text)
    with pytest.raises(ValueError, match="kind: "):
        tfseek.verify(text, kind="json")
    with pytest.raises(tfseek.Error, match="at most 1024"):
        tfseek.verify(text, threads=10**6)


def test_a_pack_is_built(tmp_path: pathlib.Path) -> None:
    for name in ("a", "b"):
        write(tmp_path / f"{name}.tfrecord", 20)
    calls = []
    assert tfseek.build_index(tmp_path, pack="all", progress=lambda done, total: calls.append((done, total))) == 40
    assert calls[-1][0] == calls[-1][1] == sum(path.stat().st_size for path in tmp_path.glob("*.tfrecord"))
    pack = tmp_path / ".tfseek" / "all.tfrp"
    assert os.listdir(tmp_path / ".tfseek") == ["all.tfrp"]
    assert len(tfseek.open(pack)) == 40 and tfseek.open(pack).shards == tfseek.open(tmp_path).shards
    # A pack of changed shards is refused, and built again.
    write(tmp_path / "b.tfrecord", 21)
    with pytest.raises(tfseek.SidecarError, match=r'tfseek.build_index\(shards, pack="all"\) writes it again'):
        tfseek.open(pack)[-1]
    assert tfseek.build_index(tmp_path, pack="all", rebuild=True) == 41 == len(tfseek.open(pack))


def test_a_pack_of_damaged_shards_is_not_written(tmp_path: pathlib.Path) -> None:
    path = write(tmp_path / "a.tfrecord", 20)
    os.truncate(path, 100)
    with pytest.raises(tfseek.DataError, match="a.tfrecord"):
        tfseek.build_index(path, pack="all")
    assert not (tmp_path / ".tfseek" / "all.tfrp").exists()
    with pytest.raises(tfseek.Error, match="pack"):
        tfseek.build_index(path, pack="a/b")
    with pytest.raises(ValueError, match="pack: expected no index_dir"):
        tfseek.build_index(path, pack="all", index_dir=tmp_path)


def test_pictures_that_are_not_whole_are_errors(tmp_path: pathlib.Path) -> None:
    picture = png(8, 8, 2)
    files = [picture, picture[:-20], b"", b"<html>404</html>", picture]
    write_records(tmp_path / "a", ({"image": file, "text": "words"} for file in files))
    assert tfseek.verify(tmp_path / "a").ok
    found = tfseek.verify(tmp_path / "a", decode=True)
    assert (found.sound_files, found.records) == (0, 5)
    assert [(e.record, e.feature) for e in found.errors] == [(k, "image") for k in (1, 2, 3)]
    texts = ("the data end before all pixels", "found no bytes", "found an HTML page")
    assert all(text in str(e) for text, e in zip(texts, found.errors))
