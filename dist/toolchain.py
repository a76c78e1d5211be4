"""Tools and targets of a release: maturin and zig in an environment of their own, and standard libraries of Rust for other targets.

A target that rustup has installed is built by the machine's own compiler. For another one, Debian packages a compiler with standard libraries for its
architectures (`rustc-web`, the newest of its compilers), and C compilers that link for them; they are unpacked, not installed.
"""

from __future__ import annotations

import os
import pathlib
import platform
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable

GNU_TARGETS = ["x86_64-unknown-linux-gnu", "aarch64-unknown-linux-gnu"]
MUSL_TARGETS = ["x86_64-unknown-linux-musl", "aarch64-unknown-linux-musl"]
HOST_TARGET = f"{platform.machine()}-unknown-linux-gnu"
# The targets of the wheels that a system builds, with the tags of Linux's C libraries.
WHEEL_TARGETS: dict[str, str | None] = {
    "linux": {**dict.fromkeys(GNU_TARGETS, "manylinux2014"), **dict.fromkeys(MUSL_TARGETS, "musllinux_1_2")},
    "darwin": dict.fromkeys(["aarch64-apple-darwin", "x86_64-apple-darwin"]),
    "win32": dict.fromkeys(["x86_64-pc-windows-msvc"]),
}.get(sys.platform, {})
FREE_THREADED = "python3.14t"
DEBIAN_ARCHITECTURES = {"aarch64-unknown-linux-gnu": "arm64", "x86_64-unknown-linux-gnu": "amd64"}
RUST, RUST_PARTS = "rustc-web", ("libstd-rust-", "libllvm")
# A C compiler for another architecture, and the libraries that a machine with a compiler of its own may lack.
C_PARTS = ("binutils-", "cpp-", "gcc-", "libc6-", "libgcc-1", "libgmp", "libisl", "libjansson", "libmpc", "libmpfr", "linux-libc-dev-")
# The libraries that Debian's Python and NumPy load.
PYTHON_LIBRARIES = ["libc6", "libexpat1", "zlib1g", "libgcc-s1", "libstdc++6", "libffi8", "libbz2-1.0", "liblzma5", "libssl3", "libuuid1"]


class Tools:
    """The tools of a build. Missing ones are made when an object is made."""

    def __init__(self, root: pathlib.Path, folder: pathlib.Path) -> None:
        self.root, self.folder = root, folder
        self.debian = folder / "debian" / "usr"
        self.libraries = self.debian / "lib" / f"{platform.machine()}-linux-gnu"
        self.cargo = os.environ.get("CARGO", "cargo")
        programs = folder / "venv" / ("Scripts" if sys.platform == "win32" else "bin")
        self.python = programs / "python"
        if not programs.exists():
            subprocess.run([sys.executable, "-m", "venv", folder / "venv"], check=True)
        packages = ["maturin>=1.9,<2", "ziglang"]
        subprocess.run([self.python, "-m", "pip", "install", "-q", *packages], check=True)
        self.maturin = str(programs / "maturin")

    def _path(self) -> dict[str, str]:
        return {"PATH": f"{self.python.parent}{os.pathsep}{os.environ['PATH']}"}

    def _has_target(self, target: str) -> bool:
        """Returns true if the machine's compiler has the standard library of this target."""
        command = ["rustc", "--print", "target-libdir", "--target", target]
        done = subprocess.run(command, cwd=self.root, capture_output=True, text=True)
        return done.returncode == 0 and any(pathlib.Path(done.stdout.strip()).glob("libstd-*"))

    def _apt(self, program: str, *arguments: str) -> str:
        """Runs a program of apt that knows both architectures and writes to `folder` only."""
        state = self.folder / "apt"
        (state / "lists" / "partial").mkdir(parents=True, exist_ok=True)
        (state / "cache" / "archives" / "partial").mkdir(parents=True, exist_ok=True)
        options = ["APT::Architectures=amd64,arm64", f"Dir::State::lists={state}/lists", f"Dir::Cache={state}/cache",
                   "APT::Sandbox::User=root", "APT::Get::List-Cleanup=false"]
        command = [program, "-q", *(word for option in options for word in ("-o", option)), *arguments]
        return subprocess.run(command, cwd=state, check=True, capture_output=True, text=True).stdout

    def _packages(self, roots: list[str], parts: tuple[str, ...]) -> list[str]:
        """Returns packages and those that they depend on whose names begin with one of `parts`."""
        architecture = DEBIAN_ARCHITECTURES[HOST_TARGET]
        wanted, found = [*roots], []
        while wanted:
            name = wanted.pop()
            found.append(name)
            options = ("--no-recommends", "--no-suggests", f"{name}:{architecture}")
            for line in self._apt("apt-cache", "depends", *options).splitlines():
                name = line.partition("  Depends: ")[2].strip().removesuffix(f":{architecture}")
                if name.startswith(parts) and name not in found + wanted:
                    wanted.append(name)
        return [f"{name}:{architecture}" for name in found]

    def _unpack(self, packages: Iterable[str], to: pathlib.Path | None = None) -> None:
        """Downloads packages and unpacks them."""
        self._apt("apt-get", "download", *packages)
        for package in sorted((self.folder / "apt").glob("*.deb")):
            subprocess.run(["dpkg", "-x", package, to or self.debian.parent], check=True)
            package.unlink()

    def _debian(self, what: str, made: pathlib.Path, make: Callable[[], None]) -> bool:
        """Makes something from packages of Debian unless it exists. Returns false, with a message, if it cannot be had."""
        if made.exists():
            return True
        if HOST_TARGET not in DEBIAN_ARCHITECTURES or shutil.which("apt-get") is None or shutil.which("dpkg") is None:
            return False
        try:
            self._apt("apt-get", "update")
            make()
        except (subprocess.CalledProcessError, OSError) as error:
            print(f"skipped: Debian's {what}: {getattr(error, 'stderr', None) or error}")
            return False
        return made.exists()

    def _debian_rust(self, target: str) -> dict[str, str] | None:
        """Returns the variables with which cargo uses Debian's compiler for a target, or None if it cannot be had."""
        architecture = DEBIAN_ARCHITECTURES.get(target)
        env = {"RUSTC": str(self.debian / "bin" / "rustc"), "LD_LIBRARY_PATH": str(self.libraries)}

        def make() -> None:
            packages = self._packages([RUST], RUST_PARTS)
            foreign = [f"{name.rpartition(':')[0]}:{architecture}" for name in packages if "-dev:" in name]
            self._unpack(packages + foreign)
            # A compiler that does not run here is no compiler.
            subprocess.run([env["RUSTC"], "--version"], check=True, capture_output=True, text=True, env={**os.environ, **env})

        if architecture is None or not self._debian(f"Rust for {target}", self.debian / "lib" / "rustlib" / target / "lib", make):
            return None
        return env

    def _debian_c(self, target: str) -> str | None:
        """Returns a C compiler for a target, of the machine or of Debian, or None if it cannot be had."""
        name = f"{target.replace('-unknown', '')}-gcc"
        if shutil.which(name):
            return name
        roots = [f"gcc-{target.replace('-unknown', '').replace('_', '-')}", f"libc6-dev-{DEBIAN_ARCHITECTURES[target]}-cross"]
        made = self.debian / "bin" / name
        has = self._debian(f"C for {target}", made, lambda: self._unpack(self._packages(roots, C_PARTS)))
        return str(made) if has else None

    def debian_python(self, target: str) -> pathlib.Path | None:
        """Returns a folder with Debian's Python for a target, for an emulator, or None if it cannot be had."""
        root = self.folder / f"python-{target}"

        def make() -> None:
            default = self._apt("apt-cache", "depends", "--important", f"python3:{DEBIAN_ARCHITECTURES[target]}")
            version = next(word for word in default.replace(":", " ").split() if word.startswith("python3.") and "-" not in word)
            names = [f"{version}-minimal", f"lib{version}-minimal", f"lib{version}-stdlib", *PYTHON_LIBRARIES]
            self._unpack([f"{name}:{DEBIAN_ARCHITECTURES[target]}" for name in names], root)

        return root if self._debian(f"Python for {target}", root / "usr" / "bin", make) else None

    def cross(self, target: str) -> dict[str, str] | None:
        """Returns the variables with which cargo builds for a target, or None if its standard library cannot be had."""
        if self._has_target(target):
            return self._path()
        compiler = self._debian_rust(target)
        if compiler is None:
            return None
        # Artefacts of two compilers would replace each other.
        return {**self._path(), **compiler, "CARGO_TARGET_DIR": str(self.root / "target" / "dist-cross")}

    def _zig_c(self, musl: str) -> dict[str, str]:
        """Returns the variables with which zig compiles the C code of crates. The crate `cc` adds Rust's name of the target, which zig does not know."""
        variables = {}
        target = musl.replace("-unknown", "")
        for variable, words in ("CC", f"cc -target {target}"), ("AR", "ar"):
            path = self.folder / f"zig-{variable.lower()}-{target}"
            path.write_text(
                '#!/bin/sh\nfor word do shift; case $word in --target=*) ;; *) set -- "$@" "$word" ;; esac; done\n'
                f'exec "{self.python}" -m ziglang {words} "$@"\n'
            )
            path.chmod(0o755)
            variables[f"{variable}_{musl.replace('-', '_')}"] = str(path)
        return variables

    def static_targets(self) -> list[tuple[str, dict[str, str]]]:
        """Returns the targets of the static commands with their variables: musl where it can be had, else glibc of this machine."""
        found = []
        for musl, gnu in zip(MUSL_TARGETS, GNU_TARGETS):
            static = {"RUSTFLAGS": "-C target-feature=+crt-static", "CARGO_TARGET_DIR": str(self.root / "target" / "dist-static")}
            if self._has_target(musl):
                linker = f"CARGO_TARGET_{musl.upper().replace('-', '_')}_LINKER"
                found.append((musl, {linker: "rust-lld", **self._zig_c(musl), **static}))
            elif gnu == HOST_TARGET:
                found.append((gnu, static))
            elif (env := self.cross(gnu)) is not None and (compiler := self._debian_c(gnu)) is not None:
                linker = f"CARGO_TARGET_{gnu.upper().replace('-', '_')}_LINKER"
                libraries = {"LD_LIBRARY_PATH": str(self.libraries)}
                found.append((gnu, {**env, **libraries, **static, linker: compiler}))
            else:
                print(f"skipped: the command for {gnu.split('-')[0]}: no standard library of Rust for it, or no C compiler")
        return found
