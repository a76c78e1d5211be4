"""Makes the files of a release in target/dist: wheels, an sdist, archives of the command, crates, SHA256SUMS.

    python build.py [wheels]

`make dist` runs it on Linux, and `make wheels` makes only the wheels, on any system. Everything is built by tools in target/dist-tools, and nothing is installed outside that folder. A target whose standard library or
linker cannot be had is skipped with a message.
"""

from __future__ import annotations

import gzip
import hashlib
import os
import pathlib
import platform
import shutil
import subprocess
import sys
import tarfile
import time

import licenses
import toolchain
from smoke import WHEEL_LIMIT

ROOT = pathlib.Path(__file__).resolve().parent.parent
OUT = ROOT / "target" / "dist"
WORK = ROOT / "target" / "dist-work"
COMMAND_LIMIT = 30_000_000
CRATES = ["tfseek-wire", "tfseek", "tfseek-image", "tfseek-rlds", "tfseek-tfds", "tfseek-arrow", "tfseek-tools", "tfseek-convert", "tfseek-view", "tfseek-remote", "tfseek-cli"]


def run(*command: object, env: dict[str, str] | None = None) -> None:
    """Runs a command in the root of the project; its output is shown if it fails."""
    words = [str(word) for word in command]
    start = time.monotonic()
    done = subprocess.run(words, cwd=ROOT, env={**os.environ, **(env or {})}, capture_output=True, text=True)
    print(f"{time.monotonic() - start:6.1f} s  {' '.join(words)[:160]}", flush=True)
    if done.returncode:
        sys.exit(f"{done.stdout}{done.stderr}\nfailed: {' '.join(words)}")


def version() -> str:
    """Returns the version of the workspace."""
    lines = (ROOT / "Cargo.toml").read_text().splitlines()
    return next(line.split('"')[1] for line in lines if line.startswith("version = "))


def wheels(tools: toolchain.Tools) -> None:
    """Builds the wheels of this system: abi3 for each target, and on Linux one for the free-threaded interpreter."""
    for target, tag in toolchain.WHEEL_TARGETS.items():
        env = tools.cross(target)
        if env is None:
            print(f"skipped: the wheel for {target}: no standard library of Rust for it")
            continue
        common = [tools.maturin, "build", "--release", "--locked", "-q", "-m", "python/Cargo.toml", "-o", OUT,
                  "--features", "remote", "--target", target, *(["--zig", "--compatibility", tag] if tag else [])]
        run(*common, env=env)
        if target == toolchain.HOST_TARGET:
            free = toolchain.FREE_THREADED
            run(*common, "--no-default-features", "-i", free, env={**env, "PYO3_CROSS_PYTHON_VERSION": free[6:]})


def archive(target: str, command: pathlib.Path, pages: pathlib.Path, texts: list[pathlib.Path]) -> None:
    """Writes the archive of the command for a target."""
    name = f"tfseek-{version()}-{target}"
    files = {f"{name}/tfseek": command}
    files |= {f"{name}/{text.name}": text for text in texts}
    for page in sorted(pages.rglob("*")):
        if page.is_file():
            files[f"{name}/{page.relative_to(pages)}"] = page

    def plain(entry: tarfile.TarInfo) -> tarfile.TarInfo:
        entry.uid = entry.gid = entry.mtime = 0
        entry.uname = entry.gname = ""
        entry.mode = 0o755 if entry.name.endswith("/tfseek") else 0o644
        return entry

    with open(OUT / f"{name}.tar.gz", "wb") as out, gzip.GzipFile("", "wb", mtime=0, fileobj=out) as packed:
        with tarfile.open(fileobj=packed, mode="w") as to:
            for inside, path in files.items():
                to.add(path, inside, filter=plain)


def commands(tools: toolchain.Tools, third_party: pathlib.Path) -> None:
    """Builds the static commands, and packs each with its manual pages, completions and licences."""
    pages = WORK / "pages"
    shutil.rmtree(pages, ignore_errors=True)
    built = {}
    for target, env in tools.static_targets():
        flags = ["--release", "--locked", "-q", "-p", "tfseek-cli", "--features", "remote", "--target", target, "--config", 'profile.release.strip="symbols"']
        run(tools.cargo, "build", *flags, "--bin", "tfseek", env=env)
        built[target] = pathlib.Path(env["CARGO_TARGET_DIR"]) / target / "release" / "tfseek"
        if target.startswith(platform.machine()):
            run(tools.cargo, "run", *flags, "--example", "pages", "--", pages, env=env)
    for target, command in built.items():
        size = command.stat().st_size
        print(f"          {target}: command of {size:,} bytes")
        if size > COMMAND_LIMIT:
            sys.exit(f"{command}: {size:,} bytes: expected at most {COMMAND_LIMIT:,}")
        archive(target, command, pages, [ROOT / "LICENSE-APACHE", ROOT / "LICENSE-MIT", third_party])


def crates(tools: toolchain.Tools) -> None:
    """Packs the published crates. Each is compiled from its package."""
    target = ROOT / "target" / "package"
    shutil.rmtree(target, ignore_errors=True)
    packages = [word for name in CRATES for word in ("-p", name)]
    run(tools.cargo, "package", "--locked", "--allow-dirty", *packages)
    for name in CRATES:
        shutil.copy(target / f"{name}-{version()}.crate", OUT)


def main(only_wheels: bool) -> None:
    """Builds everything, or the wheels, and prints names, sizes and the time."""
    start = time.monotonic()
    shutil.rmtree(OUT, ignore_errors=True)
    OUT.mkdir(parents=True)
    WORK.mkdir(parents=True, exist_ok=True)
    tools = toolchain.Tools(ROOT, WORK.parent / "dist-tools")
    third_party = WORK / "THIRD-PARTY"
    third_party.write_text(licenses.text(ROOT, tools.cargo))
    packed = ROOT / "python" / "THIRD-PARTY"
    shutil.copy(third_party, packed)
    try:
        if not only_wheels:
            run(tools.maturin, "sdist", "-m", "python/Cargo.toml", "-o", OUT)
        wheels(tools)
    finally:
        packed.unlink()
    if not only_wheels:
        commands(tools, third_party)
        crates(tools)
    sums = []
    for path in sorted(OUT.iterdir()):
        size = path.stat().st_size
        sums.append(f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n")
        print(f"{size:>12,}  {path.name}")
        if path.suffix == ".whl" and size > WHEEL_LIMIT:
            sys.exit(f"{path}: {size:,} bytes: expected at most {WHEEL_LIMIT:,}")
    (OUT / "SHA256SUMS").write_text("".join(sums))
    print(f"target/dist: {len(sums)} files in {time.monotonic() - start:.0f} s on {platform.machine()}")


if __name__ == "__main__":
    if sys.argv[1:] not in ([], ["wheels"]):
        sys.exit(__doc__)
    main(sys.argv[1:] == ["wheels"])
