"""Datasets with damaged shards."""

import gzip
import pathlib
import pickle
import struct
import subprocess
import sys
import zlib
from typing import Any, Callable

import pytest
from conftest import write_records

import tfseek


@pytest.fixture
def damaged(tmp_path: pathlib.Path) -> tuple[pathlib.Path, bytes]:
    """A shard of 10 records, of which 3 is damaged, and its bytes."""
    path = tmp_path / "a.tfrecord"
    write_records(path, (tfseek.Example({"label": i}) for i in range(10)))
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
    with pytest.warns(tfseek.Warning, match="1 damaged range is left out"):
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


@pytest.fixture
def mixed(tmp_path: pathlib.Path) -> tuple[pathlib.Path, tfseek.Dataset[Any]]:
    """A shard of the labels 0..9. The payload of 3 is damaged, and that of 5, which becomes record 4, is no message. And its sound records."""
    path = tmp_path / "mixed.tfrecord"
    payloads = [bytes(tfseek.Example({"label": i, "ids": [i, i]})) for i in range(10)]
    payloads[5] = b"\x0a\x10\x0a\x0e123456789abcde"
    write_records(path, payloads)
    data = bytearray(path.read_bytes())
    data[sum(len(payload) + 16 for payload in payloads[:3]) + 14] ^= 1
    path.write_bytes(data)
    with pytest.warns(tfseek.Warning, match="1 damaged range is left out"):
        ds = tfseek.open(path, damage="skip", index_dir=tmp_path / "i", kind="example")
    return path, ds


def labels(ds: tfseek.Dataset[Any]) -> list[int]:
    return [ex["label"].item() for ex in ds]


def left_out(raised: "pytest.WarningsRecorder", path: pathlib.Path) -> tfseek.Warning:
    """Returns the only warning, which is about payloads."""
    (warning,) = [each.message for each in raised]
    assert isinstance(warning, tfseek.Warning) and warning.kind == "payloads_skipped", warning
    assert warning.path == str(path) and (warning.skipped, warning.records) == (1, None)
    assert warning.first is not None and warning.first.startswith(f"{path}: record 4 at byte "), warning.first
    assert str(warning) == f"1 record was left out: {warning.first}"
    return warning


CONDITIONS = [
    ("label >= 1", [1, 2, 4, 6, 7, 8, 9]),
    ("not label >= 4", [0, 1, 2]),
    ("not absent(label)", [0, 1, 2, 4, 6, 7, 8, 9]),
    ("absent(label)", []),
    ("not any(ids) in 4..9", [0, 1, 2, 9]),
    ("len(ids) == 2 and label < 7", [0, 1, 2, 4, 6]),
    ("not (record < 6 and any(ids) >= 0)", [7, 8, 9]),
]


@pytest.mark.parametrize("condition, expected", CONDITIONS)
def test_conditions_leave_out_what_does_not_decode(
    mixed: tuple[pathlib.Path, tfseek.Dataset[Any]], condition: str, expected: list[int], tmp_path: pathlib.Path
) -> None:
    path, ds = mixed
    with pytest.warns(tfseek.Warning) as raised:
        found = ds.filter(condition)
    left_out(raised, path)
    assert labels(found) == expected
    with pytest.warns(tfseek.Warning) as raised:
        assert labels(ds[::-1].filter(condition)) == expected[::-1]
    left_out(raised, path)
    assert labels(ds[:2].filter(condition)) == [label for label in expected if label < 2]
    with pytest.warns(tfseek.Warning) as raised:
        tfseek.reshard(ds, tmp_path / "out.tfrecord", where=condition)
    left_out(raised, path)
    assert labels(tfseek.open(tmp_path / "out.tfrecord", index="memory", kind="example")) == expected
    pa = pytest.importorskip("pyarrow")
    spec = {"label": tfseek.FixedLenFeature([], "int64")}
    for view, want in ((ds, expected), (ds[::-1], expected[::-1])):
        with pytest.warns(tfseek.Warning) as raised:
            table = pa.table(view.scan(spec=spec, where=condition))
        left_out(raised, path)
        assert table["label"].to_pylist() == want


def test_columns_have_no_value_of_what_does_not_decode(mixed: tuple[pathlib.Path, tfseek.Dataset[Any]], tmp_path: pathlib.Path) -> None:
    path, ds = mixed
    for _ in range(2):
        with pytest.warns(tfseek.Warning) as raised:
            column = ds.column("label")
        left_out(raised, path)
        assert list(column.present) == [True] * 4 + [False] + [True] * 4
        assert list(column.values[column.present]) == [0, 1, 2, 4, 6, 7, 8, 9]
    assert not list((tmp_path / "i").glob("*.tfrc"))
    with pytest.warns(tfseek.Warning) as raised:
        ds = tfseek.open(path, damage="skip", index_dir=tmp_path / "i", columns="label")
    assert [each.message for each in raised] == ds.warnings
    assert [warning.kind for warning in ds.warnings] == ["damage_skipped", "payloads_skipped"]
    assert list(ds.column("label").present) == list(column.present)
    with pytest.warns(tfseek.Warning) as raised:
        assert labels(ds.filter("not label > 3")) == [0, 1, 2]
    left_out(raised, path)


@pytest.mark.parametrize("options", [{"features": "label"}, {"sort_by": "label", "reverse": True}, {"split": {"a": 0.5, "b": 0.5}, "split_by": "label"}])
def test_reshard_leaves_out_what_does_not_decode(
    mixed: tuple[pathlib.Path, tfseek.Dataset[Any]], options: dict[str, Any], tmp_path: pathlib.Path
) -> None:
    path, ds = mixed
    for view, expected in ((ds, [0, 1, 2, 4, 6, 7, 8, 9]), (ds[3:6], [4, 6])):
        out = "{split}.tfrecord" if "split" in options else "out.tfrecord"
        with pytest.warns(tfseek.Warning) as raised:
            tfseek.reshard(view, tmp_path / "out" / out, force=True, kind="example", **options)
        left_out(raised, path)
        written = labels(tfseek.open(tmp_path / "out", index="memory", kind="example"))
        assert written == expected[::-1] if "sort_by" in options else sorted(written) == expected
    # Payloads that are copied as they are need not decode.
    tfseek.reshard(ds, tmp_path / "copy.tfrecord")
    assert len(tfseek.open(tmp_path / "copy.tfrecord", index="memory")) == 9


def test_loaders_leave_out_what_does_not_decode(mixed: tuple[pathlib.Path, tfseek.Dataset[Any]]) -> None:
    path, ds = mixed
    spec = {"label": tfseek.FixedLenFeature([], "int64")}
    with pytest.warns(tfseek.Warning) as raised:
        loader = tfseek.Loader(ds, spec, batch_size=50, balance="label", epoch=0)
    left_out(raised, path)
    assert [warning.kind for warning in loader.warnings] == ["payloads_skipped"]
    batch = next(iter(loader))
    assert set(batch["label"].tolist()) <= {0, 1, 2, 4, 6, 7, 8, 9}
    with pytest.warns(tfseek.Warning):
        chosen = ds.filter("label >= 0")
    loader = tfseek.Loader(chosen, spec, batch_size=50, shuffle=False)
    assert [label for batch in loader for label in batch["label"].tolist()] == [0, 1, 2, 4, 6, 7, 8, 9]


def test_without_the_option_what_does_not_decode_is_an_error(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "a.tfrecord"
    write_records(path, [tfseek.Example({"label": 0}), b"\x0a\x10\x0a\x0e123456789abcde"])
    skipping = tfseek.open(path, damage="skip", index_dir=tmp_path / "i", kind="example")
    with pytest.warns(tfseek.Warning):
        assert len(skipping.filter("label == 0")) == 1
    ds = tfseek.open(path, index_dir=tmp_path / "i", kind="example")
    calls: list[Callable[[], Any]] = [
        lambda: ds.filter("label == 0"),
        lambda: ds.filter("any(label) == 0"),
        lambda: ds.column("label"),
        lambda: tfseek.Loader(ds, batch_size=1, balance="label"),
    ]
    for call in calls:
        with pytest.raises(tfseek.DataError, match="record 1 at byte "):
            call()


PAYLOADS = [bytes(tfseek.Example({"label": i, "name": "x" * (i % 7)})) for i in range(40)]
CRC32C = [0] * 256
for _byte in range(256):
    _crc = _byte
    for _ in range(8):
        _crc = _crc >> 1 ^ (0x82F63B78 if _crc & 1 else 0)
    CRC32C[_byte] = _crc


def crc32c(data: bytes) -> int:
    crc = 0xFFFFFFFF
    for byte in data:
        crc = CRC32C[(crc ^ byte) & 255] ^ crc >> 8
    return crc ^ 0xFFFFFFFF


def masked(crc: int) -> int:
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def signed(data: bytes) -> int:
    crc = crc32c(data)
    number = crc - (1 << 32) if crc >> 31 else crc
    return ((number >> 15 | number << 17) + 0xA282EAD8) & 0xFFFFFFFF


def framed(checksum: Callable[[bytes], int]) -> bytes:
    def record(payload: bytes) -> bytes:
        length = struct.pack("<Q", len(payload))
        return length + struct.pack("<I", checksum(length)) + payload + struct.pack("<I", checksum(payload))

    return b"".join(map(record, PAYLOADS))


def command(*arguments: Any) -> Any:
    done = subprocess.run([sys.executable, "-m", "tfseek", *map(str, arguments)], capture_output=True, text=True)
    return done


@pytest.mark.parametrize(
    ("checksum", "words"),
    [
        (lambda data: 0, "checksums that are zero"),
        (lambda data: masked(zlib.crc32(data)), "checksums of CRC-32 in place of CRC32C"),
        (zlib.crc32, "checksums of CRC-32 in place of CRC32C"),
        (crc32c, "because the writer does not mask checksums"),
        (signed, "because the writer masks checksums with a signed shift"),
    ],
)
def test_writers_with_other_checksums(checksum: Callable[[bytes], int], words: str, tmp_path: pathlib.Path) -> None:
    path, index = tmp_path / "a.tfrecord", tmp_path / "i"
    path.write_bytes(framed(checksum))
    with pytest.raises(tfseek.DataError, match=words) as raised:
        tfseek.open(path, index_dir=index)[:].scan(["label"]).to_arrow()
    assert 'verify="none" reads it without checksums' in str(raised.value) and "damage" not in str(raised.value)
    ds = tfseek.open(path, verify="none", index_dir=index)
    assert [bytes(record) for record in ds] == PAYLOADS == [bytes(record) for record in tfseek.stream(path, verify="none")]
    spec = {"label": tfseek.FixedLenFeature([], "int64")}
    for options in ({}, {"verify": "payload"}, {"verify": "header"}, {"threads": 0}):
        loader = tfseek.Loader(ds, spec, batch_size=8, seed=1, **options)
        assert sorted(label for batch in loader for label in batch["label"]) == list(range(40)), options
    assert len(ds.filter("label >= 10")) == 30 and ds.scan(["label"], where="label < 3").to_arrow()["label"].to_pylist() == [0, 1, 2]
    (share,) = ds.shares(1)
    copies = [tfseek.Part.from_json(part.to_json()) for part in share]
    assert [bytes(record) for record in tfseek.stream(part=copies)] == PAYLOADS
    # No index is left that a later open takes for a verified one.
    assert list(tmp_path.rglob("*.tfr?")) == []
    with pytest.raises(tfseek.DataError, match=words):
        list(tfseek.open(path, index_dir=index))
    refused = {"index": ("require", "rebuild"), "damage": ("skip",)}
    for name, values in refused.items():
        for value in values:
            with pytest.raises(ValueError, match="expected only what needs no checksums"):
                tfseek.open(path, verify="none", **{name: value})

    found = tfseek.verify(path)
    assert not found and found.unverified == 40
    done = command("verify", path)
    assert done.returncode != 0 and "40 records by their lengths alone" in done.stderr and "--verify none" in done.stderr
    assert "salvage" not in done.stderr
    written = tmp_path / "b.tfrecord"
    for arguments in (["head", path], ["reshard", path, "-o", written]):
        assert command(*arguments, "--verify", "none").returncode == 0
    assert [bytes(record) for record in tfseek.open(written, index="memory")] == PAYLOADS
    assert tfseek.verify(written)


def test_without_verification_a_wrong_length_is_still_an_error(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "a.tfrecord"
    data = bytearray(framed(lambda data: 0))
    data[0] += 1
    path.write_bytes(data)
    with pytest.raises(tfseek.DataError, match="truncated|at most"):
        tfseek.open(path, verify="none", tail="strict")
    path.write_bytes(framed(lambda data: 0)[:-1])
    with pytest.raises(tfseek.DataError, match="record 39 at byte .*truncated"):
        tfseek.open(path, verify="none")
    assert len(tfseek.open(path, verify="none", tail="tolerate")) == 39
    path.write_bytes(gzip.compress(framed(lambda data: 0)))
    assert [bytes(record) for record in tfseek.open(path, verify="none")] == PAYLOADS


def test_files_without_a_sound_record(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "a.tfrecord"
    raw = framed(lambda data: masked(crc32c(data)))
    deflate = zlib.compressobj(6, zlib.DEFLATED, -15)
    block = struct.pack("<BB", 0x80 | len(raw) & 127, len(raw) >> 7) + b"".join(
        bytes([len(part) - 1 << 2]) + part for part in (raw[i : i + 20] for i in range(0, len(raw), 20))
    )
    assert 128 <= len(raw) < 1 << 14
    noise = bytes((i * i * 31 + i * 7 + 129) % 251 for i in range(4000))
    files = {
        "a message without": PAYLOADS[5],
        "messages that follow their lengths": b"".join(bytes([len(payload)]) + payload for payload in PAYLOADS),
        "raw deflate": deflate.compress(raw) + deflate.flush(),
        "compressed with Snappy": struct.pack(">I", len(block)) + block,
        "a pickle": pickle.dumps(list(range(500))),
        "MXNet RecordIO": struct.pack("<II", 0xCED7230A, 36) + bytes(36),
        "an LMDB database": bytes(16) + b"\xde\xc0\xef\xbe" + bytes(500),
        "an MP4 video": b"\0\0\0\x20ftypisom" + bytes(500),
        "bytes replaced": raw.decode("utf8", "replace").encode(),
        "encoded as UTF-8": raw.decode("latin1").encode(),
        "from LF to CRLF": raw.replace(b"\n", b"\r\n"),
        "no sound record": noise,
    }
    for words, data in files.items():
        path.write_bytes(data)
        damages: list[Any] = ["raise", "skip"]
        for damage in damages:
            readers: list[Callable[[], Any]] = [
                lambda: tfseek.open(path, damage=damage, index="memory"),
                lambda: list(tfseek.stream(path, damage=damage)),
            ]
            for reader in readers[: 1 if words == "no sound record" and damage == "raise" else 2]:
                with pytest.raises(tfseek.DataError, match=words) as raised:
                    reader()
                assert 'damage="skip"' not in str(raised.value), (words, damage)

    lines = raw[: 16 + len(PAYLOADS[0])] + b"\n" + raw[16 + len(PAYLOADS[0]) :]
    path.write_bytes(lines)
    with pytest.raises(tfseek.DataError, match='with a line end after each record .*damage="skip" leaves them out'):
        tfseek.open(path, index="memory")
    assert len(tfseek.open(path, index="memory", damage="skip")) == 40 and "40 records" in command("verify", path).stdout
