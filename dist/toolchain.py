"""Tools and targets of a release: maturin and zig in an environment of their own, and standard libraries of Rust for other targets.

A target that rustup has installed is built by the machine's own compiler. For another one, Debian packages a compiler with standard libraries for its
architectures (`rustc-web`, the newest of its compilers); they are unpacked, not installed.
"""

from __future__ import annotations

import os
import pathlib
import platform
import shutil
import subprocess
import sys

GNU_TARGETS = ["x86_64-unknown-linux-gnu", "aarch64-unknown-linux-gnu"]
MUSL_TARGETS = ["x86_64-unknown-linux-musl", "aarch64-unknown-linux-musl"]
HOST_TARGET = f"{platform.machine()}-unknown-linux-gnu"
FREE_THREADED = "python3.14t"
DEBIAN_ARCHITECTURES = {"aarch64-unknown-linux-gnu": "arm64", "x86_64-unknown-linux-gnu": "amd64"}


class Tools:
    """The tools of a build. Missing ones are made when an object is made."""

    def __init__(self, root: pathlib.Path, folder: pathlib.Path) -> None:
        self.root, self.folder = root, folder
        self.cargo = os.environ.get("CARGO", "cargo")
        self.python = folder / "venv" / "bin" / "python"
        if not self.python.exists():
            subprocess.run([sys.executable, "-m", "venv", folder / "venv"], check=True)
        packages = ["maturin>=1.9,<2", "ziglang", "cargo-zigbuild"]
        subprocess.run([self.python, "-m", "pip", "install", "-q", *packages], check=True)
        self.maturin = str(folder / "venv" / "bin" / "maturin")

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

    def _debian_compiler(self, target: str) -> pathlib.Path | None:
        """Returns the folder of Debian's compiler with the standard library of a target, or None if it cannot be had."""
        architecture = DEBIAN_ARCHITECTURES.get(target)
        usr = self.folder / "debian" / "usr"
        if architecture is None or shutil.which("apt-get") is None or shutil.which("dpkg") is None:
            return None
        if any((usr / "lib" / "rustlib" / target / "lib").glob("libstd-*")):
            return usr
        try:
            self._apt("apt-get", "update")
            wanted, packages = ["rustc-web:amd64"], []
            # The libraries of the compiler are unpacked beside it.
            while wanted:
                package = wanted.pop()
                packages.append(package)
                for line in self._apt("apt-cache", "depends", "--no-recommends", "--no-suggests", package).splitlines():
                    name = line.partition("Depends: ")[2].strip().removesuffix(":amd64")
                    if line.startswith("  Depends: ") and name.startswith(("libstd-rust-", "libllvm")):
                        if f"{name}:amd64" not in packages + wanted:
                            wanted.append(f"{name}:amd64")
            packages += [name.replace(":amd64", f":{architecture}") for name in packages if "-dev:" in name]
            self._apt("apt-get", "download", *packages)
            for package in sorted((self.folder / "apt").glob("*.deb")):
                subprocess.run(["dpkg", "-x", package, usr.parent], check=True)
            self._compiler(usr)
        except (subprocess.CalledProcessError, OSError) as error:
            print(f"skipped: Debian's compiler for {target}: {getattr(error, 'stderr', None) or error}")
            return None
        return usr

    @staticmethod
    def _compiler(usr: pathlib.Path) -> dict[str, str]:
        """Returns the variables with which cargo uses a compiler that is unpacked here, after trying it."""
        library = usr / "lib" / f"{platform.machine()}-linux-gnu"
        env = {"RUSTC": str(usr / "bin" / "rustc"), "LD_LIBRARY_PATH": str(library)}
        subprocess.run([env["RUSTC"], "--version"], check=True, capture_output=True, text=True, env={**os.environ, **env})
        return env

    def cross(self, target: str) -> dict[str, str] | None:
        """Returns the variables with which cargo builds for a target, or None if its standard library cannot be had."""
        if self._has_target(target):
            return self._path()
        usr = self._debian_compiler(target)
        if usr is None:
            return None
        # Artefacts of two compilers would replace each other.
        return {**self._path(), **self._compiler(usr), "CARGO_TARGET_DIR": str(self.root / "target" / "dist-cross")}

    def static_targets(self) -> list[tuple[str, dict[str, str]]]:
        """Returns the targets of the static commands with their variables: musl where it can be had, else glibc of this machine."""
        found = []
        for musl, gnu in zip(MUSL_TARGETS, GNU_TARGETS):
            static = {"RUSTFLAGS": "-C target-feature=+crt-static", "CARGO_TARGET_DIR": str(self.root / "target" / "dist-static")}
            if self._has_target(musl):
                linker = f"CARGO_TARGET_{musl.upper().replace('-', '_')}_LINKER"
                found.append((musl, {linker: "rust-lld", **static}))
            elif gnu == HOST_TARGET:
                found.append((gnu, static))
            elif shutil.which(f"{gnu.replace('-unknown', '')}-gcc") and (env := self.cross(gnu)) is not None:
                linker = f"CARGO_TARGET_{gnu.upper().replace('-', '_')}_LINKER"
                found.append((gnu, {**env, **static, linker: f"{gnu.replace('-unknown', '')}-gcc"}))
            else:
                print(f"skipped: the command for {gnu.split('-')[0]}: no standard library of Rust for musl, and no C compiler for it")
        return found
