"""The viewer in a thread of the process."""

from __future__ import annotations

import contextlib
import http.cookiejar
import json
import pathlib
import subprocess
import sys
import urllib.error
import urllib.request
from typing import Any

import pytest
from conftest import write_records

import tfseek


@pytest.fixture
def shard(tmp_path: pathlib.Path) -> pathlib.Path:
    path = tmp_path / "a b.tfrecord"
    write_records(path, ({"label": i % 10} for i in range(100)))
    return path


def ask(viewer: tfseek.View, target: str) -> Any:
    """Returns the answer to a browser that opened the link."""
    browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(http.cookiejar.CookieJar()))
    assert b"<html" in browser.open(viewer.url).read()
    return json.load(browser.open(f"http://127.0.0.1:{viewer.port}/api/{target}"))


def threads(port: int) -> list[str]:
    """The names of the threads of the viewer at a port. Threads of earlier tests may end at any time."""
    names = []
    for task in pathlib.Path("/proc/self/task").glob("*/comm"):
        with contextlib.suppress(OSError):
            names.append(task.read_text().strip())
    return [name for name in names if name.startswith(("tfseek-view", f"tfseek-{port}"))]


def test_a_viewer_serves_until_it_is_closed(shard: pathlib.Path) -> None:
    with tfseek.view(tfseek.open(shard), where="label == 3", roles={"label": "label"}) as viewer:
        dataset = ask(viewer, "dataset")
        assert dataset["records"] == 100
        assert dataset["where"] == "label == 3"
        assert dataset["commands"]["get"] == [f"tfseek get '{shard}'", ""]
        assert viewer.url in viewer._repr_html_() and viewer.url in repr(viewer)
        with pytest.raises(urllib.error.HTTPError, match="403"):
            urllib.request.urlopen(f"http://127.0.0.1:{viewer.port}/api/dataset")
        assert threads(viewer.port) or sys.platform != "linux"
    assert repr(viewer) == "<View closed>" and "http" not in viewer._repr_html_()
    with pytest.raises(urllib.error.URLError):
        urllib.request.urlopen(f"http://127.0.0.1:{viewer.port}/")
    assert not threads(viewer.port)
    viewer.close()


def test_paths_and_two_sets(shard: pathlib.Path, tmp_path: pathlib.Path) -> None:
    other = tmp_path / "b.tfrecord"
    other.write_bytes(shard.read_bytes())
    with tfseek.view([shard], baseline=other) as viewer, tfseek.view(shard) as second:
        assert ask(viewer, "dataset")["against"] == str(other)
        assert ask(second, "dataset?set=0")["against"] is None
        assert viewer.port != second.port


def test_training_steps_show_pictures_as_they_are_fed(shard: pathlib.Path) -> None:
    spec: dict[str, Any] = {"picture": tfseek.Image((8, 8), mean=[0.5] * 3, std=[0.5] * 3, dtype="float32"), "label": tfseek.FixedLenFeature([], "int64")}
    with tfseek.view(shard, spec=spec) as viewer:
        assert ask(viewer, "dataset")["fed"] == ["picture"]
    with tfseek.view(shard) as viewer:
        assert ask(viewer, "dataset")["fed"] == []
    with pytest.raises(tfseek.Error, match="expected a schema with pictures, found none"):
        tfseek.view(shard, spec={"label": spec["label"]})


def test_errors_name_the_argument(shard: pathlib.Path) -> None:
    ds = tfseek.open(shard)
    with pytest.raises(tfseek.Error, match="expected `==`"):
        tfseek.view(ds, where="label = 3")
    with pytest.raises(tfseek.Error, match='roles: expected a role .*, found "lable"'):
        tfseek.view(ds, roles={"lable": "label"})
    with pytest.raises(tfseek.Error, match="found 5 of them: use where="):
        tfseek.view(ds[:5])


def test_a_process_ends_with_an_open_viewer(shard: pathlib.Path) -> None:
    code = "import sys, tfseek; print(tfseek.view(sys.argv[1], port=0).url)"
    run = subprocess.run([sys.executable, "-c", code, str(shard)], capture_output=True, text=True, timeout=60, check=True)
    assert run.stdout.startswith("http://127.0.0.1:") and run.stderr == ""
