"""Installs the wheel or the source distribution of a folder in a new environment and tries it: import, write, read, shuffle, the command, the licences.

    python smoke.py wheel|sdist FOLDER
"""

from __future__ import annotations

import pathlib
import subprocess
import sys
import tempfile
import venv

WHEEL_LIMIT = 15_000_000

PACKAGE = '''
import importlib.metadata
import sys

import tfseek

licenses = [file for file in importlib.metadata.files("tfseek") or [] if file.name.startswith("LICENSE-")]
assert len(licenses) == 2 and all(len(file.read_text()) > 1000 for file in licenses), licenses

with tfseek.Writer("train.tfrecord") as writer:
    for i in range(1000):
        writer.write({"label": [i], "score": [i / 2], "name": [f"record {i}"]})
# Positional reads, because Windows cannot delete a mapped file.
ds = tfseek.open("train.tfrecord", index="memory", io="pread")
assert len(ds) == 1000 and ds[7]["label"] == [7] and ds[-1]["name"] == [b"record 999"]
spec = {"label": tfseek.FixedLenFeature([], "int64"), "score": tfseek.FixedLenFeature([], "float32")}
with tfseek.Loader(ds, spec, batch_size=64, shuffle=True, seed=1) as loader:
    labels = [label for batch in loader for label in batch["label"].tolist()]
assert sorted(labels) == list(range(1000)) and labels != list(range(1000))
locked = ", GIL" if getattr(sys, "_is_gil_enabled", lambda: True)() else ", no GIL"
print(f"tfseek {tfseek.__version__} on {sys.platform}, Python {sys.version.split()[0]}{locked}: works")
'''

COMMAND = '''
import pathlib
import subprocess
import sysconfig

command = pathlib.Path(sysconfig.get_path("scripts"), "tfseek")
version = subprocess.run([command, "--version"], capture_output=True, text=True, check=True).stdout
assert version.split() == ["tfseek", tfseek.__version__], version
head = subprocess.run([command, "head", "-n", "1", "train.tfrecord"], capture_output=True, text=True, check=True).stdout
assert "record 0" in head, head
'''


def sdist(files: pathlib.Path) -> pathlib.Path:
    """Returns the source distribution in a folder, which may have the archives of the command beside it."""
    found = [path for path in files.glob("tfseek-*.tar.gz") if "-linux-" not in path.name]
    if len(found) != 1:
        sys.exit(f"{files}: expected one source distribution, found {len(found)}")
    return found[0].resolve()


def main(kind: str, files: pathlib.Path) -> None:
    for wheel in files.glob("*.whl"):
        size = wheel.stat().st_size
        print(f"{wheel.name}: {size:,} bytes")
        if size > WHEEL_LIMIT:
            sys.exit(f"{wheel}: expected at most {WHEEL_LIMIT:,} bytes")
    with tempfile.TemporaryDirectory(prefix="tfseek-smoke-") as name:
        folder = pathlib.Path(name)
        venv.create(folder / "venv", with_pip=True)
        python = next(path for path in (folder / "venv").glob("*/python*") if path.stem == "python")
        pip = [python, "-m", "pip", "install", "-q", "--disable-pip-version-check"]
        subprocess.run([*pip, "numpy"], check=True)
        if kind == "sdist":
            subprocess.run([*pip, sdist(files)], check=True)
        else:
            subprocess.run([*pip, "--no-index", "--only-binary", ":all:", "--find-links", files.resolve(), "tfseek"], check=True)
        (folder / "work").mkdir()
        subprocess.run([python, "-c", PACKAGE + COMMAND], cwd=folder / "work", check=True)


if __name__ == "__main__":
    if len(sys.argv) != 3 or sys.argv[1] not in ("wheel", "sdist"):
        sys.exit(__doc__)
    main(sys.argv[1], pathlib.Path(sys.argv[2]))
