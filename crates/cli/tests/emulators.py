"""Runs the command over servers of object stores that others wrote: `make emulators`.

The output has to be that of the same verbs over files. Requests go through a proxy, which counts them and can replace an object before one of them. Servers
that are not installed are skipped with a message. Their programs are looked for on the path, or named by the variables in `SERVERS`.
"""

from __future__ import annotations

import base64
import datetime
import hashlib
import hmac
import http.client
import http.server
import json
import os
import pathlib
import re
import shlex
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
import traceback
import urllib.parse
from typing import Callable, Optional

KEY, SECRET = "AKIAEMULATOR", "the/secret+of+the/emulators"
# The public account of Azurite.
ACCOUNT = "devstoreaccount1"
ACCOUNT_KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
WRONG = base64.b64encode(b"not the secret").decode()
BUCKET = "bucket"
START_LIMIT = 60
RUN_LIMIT = 120
PIECE = 8 << 20


class Proxy(http.server.ThreadingHTTPServer):
    """Sends requests on to a server of this machine. ``log`` has the method, path and selected headers of each."""

    daemon_threads = True

    def __init__(self, port: int) -> None:
        super().__init__(("127.0.0.1", 0), _Forwarder)
        self.target = port
        self.log: list[str] = []
        self.before: Optional[Callable[[str], bool]] = None
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def take_log(self) -> list[str]:
        log, self.log = self.log, []
        return log

    def handle_error(self, request: object, client_address: object) -> None:
        """Prints nothing: clients drop connections."""


class _Forwarder(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Proxy

    def log_message(self, format: str, *args: object) -> None:
        pass

    def _forward(self) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        body = self.rfile.read(length) if length else None
        seen = [f"{name}={self.headers[name]}" for name in ("If-Match", "Range", "x-ms-range") if name in self.headers]
        if "Authorization" in self.headers:
            seen.append("signed")
        line = " ".join([self.command, urllib.parse.unquote(self.path), *seen])
        self.server.log.append(line)
        if self.server.before and not self.server.before(line):
            self.close_connection = True
            return
        connection = http.client.HTTPConnection("127.0.0.1", self.server.target, timeout=30)
        # The host stays that of the proxy, because signatures cover it.
        connection.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
        for name, value in self.headers.items():
            if name.lower() not in ("connection", "expect"):
                connection.putheader(name, value)
        connection.endheaders(body)
        answer = connection.getresponse()
        content = answer.read()
        self.send_response_only(answer.status, answer.reason)
        for name, value in answer.getheaders():
            if name.lower() not in ("connection", "transfer-encoding", "content-length", "keep-alive"):
                self.send_header(name, value)
        length = answer.getheader("Content-Length") if self.command == "HEAD" else str(len(content))
        if length is not None and answer.status not in (204, 304):
            self.send_header("Content-Length", length)
        self.end_headers()
        self.wfile.write(content)
        connection.close()

    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = _forward


def send(port: int, method: str, path: str, headers: dict[str, str], body: bytes = b"") -> bytes:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    connection.request(method, path, body, headers)
    answer = connection.getresponse()
    content = answer.read()
    connection.close()
    if answer.status >= 300:
        raise RuntimeError(f"{method} {path}: {answer.status} {content[:300]!r}")
    return content


class Emulator:
    """A server with a bucket. ``login`` are the variables that the command needs to read it."""

    scheme: str
    #: Variables of a login with a wrong secret. None if the server checks no signature.
    wrong: Optional[dict[str, str]] = None
    #: Variables without a login. None if the bucket is not public.
    anonymous: Optional[dict[str, str]] = None
    #: The object that is refused without a login, and the variable that the message has to name.
    refused = ""
    variable = ""
    #: Variables without a login.
    bare: dict[str, str] = {}
    #: Steps that the server cannot do, and why.
    gaps: dict[str, str] = {}
    #: The version goes with reads: the server lists versions.
    versions = True

    def __init__(self, folder: pathlib.Path, port: int, proxy: Proxy) -> None:
        self.folder, self.port, self.proxy = folder, port, proxy
        self.endpoint = f"http://127.0.0.1:{proxy.server_port}"

    def command(self, program: list[str]) -> list[str]:
        raise NotImplementedError

    def environment(self) -> dict[str, str]:
        return {}

    @property
    def login(self) -> dict[str, str]:
        raise NotImplementedError

    def make(self) -> None:
        raise NotImplementedError

    def put(self, key: str, content: bytes) -> None:
        raise NotImplementedError

    def get(self, key: str) -> bytes:
        raise NotImplementedError

    @property
    def root(self) -> str:
        return f"{self.scheme}://{BUCKET}/"


class S3(Emulator):
    scheme = "s3"
    variable = "AWS_ACCESS_KEY_ID"
    keys = (KEY, SECRET)

    @property
    def bare(self) -> dict[str, str]:  # type: ignore[override]
        return {"AWS_ENDPOINT_URL": self.endpoint, "AWS_ALLOW_HTTP": "true", "AWS_METADATA_ENDPOINT": "http://127.0.0.1:1"}

    @property
    def login(self) -> dict[str, str]:
        return {**self.bare, "AWS_ACCESS_KEY_ID": self.keys[0], "AWS_SECRET_ACCESS_KEY": self.keys[1]}

    def signed(self, method: str, path: str, body: bytes = b"", **more: str) -> bytes:
        now = datetime.datetime.now(datetime.timezone.utc).strftime("%Y%m%dT%H%M%SZ")
        host, digest = f"127.0.0.1:{self.port}", hashlib.sha256(body).hexdigest()
        scope = f"{now[:8]}/us-east-1/s3/aws4_request"
        names = "host;x-amz-content-sha256;x-amz-date"
        request = f"{method}\n{path}\n\nhost:{host}\nx-amz-content-sha256:{digest}\nx-amz-date:{now}\n\n{names}\n{digest}"
        text = f"AWS4-HMAC-SHA256\n{now}\n{scope}\n{hashlib.sha256(request.encode()).hexdigest()}"
        key = f"AWS4{self.keys[1]}".encode()
        for part in scope.split("/"):
            key = hmac.new(key, part.encode(), hashlib.sha256).digest()
        signature = hmac.new(key, text.encode(), hashlib.sha256).hexdigest()
        login = f"AWS4-HMAC-SHA256 Credential={self.keys[0]}/{scope}, SignedHeaders={names}, Signature={signature}"
        headers = {"Host": host, "x-amz-content-sha256": digest, "x-amz-date": now, "Authorization": login, **more}
        return send(self.port, method, path, headers, body)

    def make(self) -> None:
        self.signed("PUT", f"/{BUCKET}")

    def put(self, key: str, content: bytes) -> None:
        self.signed("PUT", f"/{BUCKET}/{urllib.parse.quote(key)}", content)

    def get(self, key: str) -> bytes:
        return self.signed("GET", f"/{BUCKET}/{urllib.parse.quote(key)}")


class Moto(S3):
    """It accepts any signature. Objects are public one by one."""

    refused = f"s3://{BUCKET}/private/private.tfrecord"
    gaps = {"wrong_secret": "it accepts any signature"}

    def put(self, key: str, content: bytes) -> None:
        access = {} if key.startswith("private/") else {"x-amz-acl": "public-read"}
        self.signed("PUT", f"/{BUCKET}/{urllib.parse.quote(key)}", content, **access)

    def command(self, program: list[str]) -> list[str]:
        return [*program, "-H", "127.0.0.1", "-p", str(self.port)]

    @property
    def anonymous(self) -> dict[str, str]:  # type: ignore[override]
        return self.bare


class S3s(S3):
    """It refuses requests without a right signature. Its listings have no versions."""

    versions = False

    refused = f"s3://{BUCKET}/demo/observations-00000-of-00004.tfrecord"

    def command(self, program: list[str]) -> list[str]:
        login = ["--access-key", KEY, "--secret-key", SECRET]
        return [*program, *login, "--host", "127.0.0.1", "--port", str(self.port), str(self.folder)]

    @property
    def wrong(self) -> dict[str, str]:  # type: ignore[override]
        return {**self.login, "AWS_SECRET_ACCESS_KEY": WRONG}


class S3rver(S3):
    """It ignores `If-Match`, and accepts any signature."""

    gaps = {"wrong_secret": "it accepts any signature"}

    keys = ("S3RVER", "S3RVER")

    def command(self, program: list[str]) -> list[str]:
        return [*program, "-d", str(self.folder), "-a", "127.0.0.1", "-p", str(self.port), "--silent"]

    @property
    def anonymous(self) -> dict[str, str]:  # type: ignore[override]
        return self.bare


class Azurite(Emulator):
    scheme = "az"
    refused = "az://private/private.tfrecord"
    variable = "AZURE_STORAGE_ACCOUNT_KEY"

    def command(self, program: list[str]) -> list[str]:
        place = ["--blobHost", "127.0.0.1", "--blobPort", str(self.port), "--location", str(self.folder)]
        return [*program, *place, "--silent", "--skipApiVersionCheck", "--disableTelemetry"]

    @property
    def bare(self) -> dict[str, str]:  # type: ignore[override]
        endpoint = f"{self.endpoint}/{ACCOUNT}"
        return {"AZURE_STORAGE_ENDPOINT": endpoint, "AZURE_STORAGE_ACCOUNT_NAME": ACCOUNT, "AZURE_ALLOW_HTTP": "true"}

    @property
    def login(self) -> dict[str, str]:
        return {"AZURE_STORAGE_USE_EMULATOR": "true", "AZURITE_BLOB_STORAGE_URL": self.endpoint, "AZURE_ALLOW_HTTP": "true"}

    @property
    def wrong(self) -> dict[str, str]:  # type: ignore[override]
        return {**self.bare, "AZURE_STORAGE_ACCOUNT_KEY": WRONG}

    @property
    def anonymous(self) -> dict[str, str]:  # type: ignore[override]
        return self.bare

    def signed(self, method: str, path: str, query: str = "", body: bytes = b"", **more: str) -> bytes:
        now = datetime.datetime.now(datetime.timezone.utc).strftime("%a, %d %b %Y %H:%M:%S GMT")
        headers = {"x-ms-date": now, "x-ms-version": "2021-08-06"}
        headers.update({f"x-ms-{name.replace('_', '-')}": value for name, value in more.items()})
        kind = "application/octet-stream" if body else ""
        canonical = "".join(f"{name}:{headers[name]}\n" for name in sorted(headers))
        options = "".join(f"\n{pair.replace('=', ':')}" for pair in sorted(query.split("&")) if pair)
        length = str(len(body)) if body else ""
        text = f"{method}\n\n\n{length}\n\n{kind}\n\n\n\n\n\n\n{canonical}/{ACCOUNT}/{ACCOUNT}{path}{options}"
        signature = base64.b64encode(hmac.new(base64.b64decode(ACCOUNT_KEY), text.encode(), hashlib.sha256).digest()).decode()
        headers["Authorization"] = f"SharedKey {ACCOUNT}:{signature}"
        if kind:
            headers["Content-Type"] = kind
        return send(self.port, method, f"/{ACCOUNT}{path}{'?' if query else ''}{query}", headers, body)

    def make(self) -> None:
        self.signed("PUT", f"/{BUCKET}", "restype=container", blob_public_access="container")
        self.signed("PUT", "/private", "restype=container")

    def put(self, key: str, content: bytes) -> None:
        path = f"/{key}" if key.startswith("private/") else f"/{BUCKET}/{key}"
        self.signed("PUT", urllib.parse.quote(path), body=content, blob_type="BlockBlob")

    def get(self, key: str) -> bytes:
        return self.signed("GET", f"/{BUCKET}/{urllib.parse.quote(key)}")


class Google(Emulator):
    """Its emulators have no logins."""

    scheme = "gs"

    @property
    def login(self) -> dict[str, str]:
        return {"STORAGE_EMULATOR_HOST": self.endpoint.removeprefix("http://")}

    @property
    def anonymous(self) -> dict[str, str]:  # type: ignore[override]
        return {"GOOGLE_BASE_URL": self.endpoint}

    def make(self) -> None:
        body = json.dumps({"name": BUCKET}).encode()
        send(self.port, "POST", "/storage/v1/b?project=test", {"Content-Type": "application/json"}, body)

    def put(self, key: str, content: bytes) -> None:
        path = f"/upload/storage/v1/b/{BUCKET}/o?uploadType=media&name={urllib.parse.quote(key, safe='')}"
        send(self.port, "POST", path, {"Content-Type": "application/octet-stream"}, content)

    def get(self, key: str) -> bytes:
        return send(self.port, "GET", f"/storage/v1/b/{BUCKET}/o/{urllib.parse.quote(key, safe='')}?alt=media", {})


class FakeGcsServer(Google):
    gaps = {"pack": "it has no uploads by PUT", "signed": "it has no logins", "wrong_secret": "it has no logins"}

    def command(self, program: list[str]) -> list[str]:
        host = self.endpoint.removeprefix("http://")
        place = ["-scheme", "http", "-host", "127.0.0.1", "-port", str(self.port), "-public-host", host]
        return [*program, *place, "-backend", "memory", "-log-level", "error"]


#: The variable that names the program, the default, and how it is tested.
SERVERS: list[tuple[str, str, type[Emulator]]] = [
    ("MOTO_SERVER", "moto_server", Moto),
    ("S3S_FS", "s3s-fs", S3s),
    ("S3RVER", "s3rver", S3rver),
    ("AZURITE_BLOB", "azurite-blob", Azurite),
    ("FAKE_GCS_SERVER", "fake-gcs-server", FakeGcsServer),
]


class Ran:
    def __init__(self, done: subprocess.CompletedProcess[str]) -> None:
        self.code, self.out, self.err = done.returncode, done.stdout, done.stderr

    def __repr__(self) -> str:
        return f"exit status {self.code}\n{self.out[-1500:]}{self.err[-1500:]}"


def equal(found: object, expected: object, about: object = "") -> None:
    if found != expected:
        raise AssertionError(f"expected {expected!r}\nfound {found!r}\n{about!r}")


def true(condition: object, about: object) -> None:
    if not condition:
        raise AssertionError(repr(about))


def crc32c(content: bytes) -> int:
    crc = 0xFFFFFFFF
    for byte in content:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def record(payload: bytes) -> bytes:
    def masked(content: bytes) -> bytes:
        crc = crc32c(content)
        return struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)

    length = struct.pack("<Q", len(payload))
    return length + masked(length) + payload + masked(payload)


class Suite:
    """The steps over one server, in their order."""

    def __init__(self, tfseek: str, emulator: Emulator, data: pathlib.Path, folder: pathlib.Path) -> None:
        self.tfseek, self.emulator, self.data, self.folder = tfseek, emulator, data, folder
        self.root = emulator.root + "demo/"
        self.shards = sorted(path.name for path in data.glob("*.tfrecord"))

    def run(self, *args: str, env: Optional[dict[str, str]] = None, cache: str = "cache") -> Ran:
        variables = {name: value for name, value in os.environ.items() if name in ("PATH", "LANG", "SYSTEMROOT", "TMPDIR")}
        variables.update(HOME=str(self.folder / "home"), XDG_CACHE_HOME=str(self.folder / cache))
        variables.update(self.emulator.login if env is None else env)
        done = subprocess.run(
            [self.tfseek, *args], cwd=self.data, env=variables, text=True, capture_output=True, timeout=RUN_LIMIT, stdin=subprocess.DEVNULL
        )
        ran = Ran(done)
        for secret in (SECRET, WRONG, ACCOUNT_KEY, KEY, "Signature="):
            true(secret not in ran.out + ran.err, f"a secret is printed: {ran}")
        return ran

    def same(self, verb: str, paths: list[str], *rest: str, env: Optional[dict[str, str]] = None) -> None:
        """Checks that the output over URLs is that over files."""
        objects = self.run(verb, *(self.root + path for path in paths), *rest, env=env)
        files = self.run(verb, *paths, *rest)
        here = f"{self.data}/"
        equal((objects.code, objects.out.replace(self.root, "")), (files.code, files.out.replace(here, "")), objects)
        equal(objects.err.replace(self.root, ""), files.err.replace(here, ""))
        equal(files.code, 0, files)

    def fetch(self, url: str, name: str, *rest: str, code: int = 0) -> tuple[pathlib.Path, dict[str, object], Ran]:
        folder = self.folder / name
        ran = self.run("fetch", "--json", self.emulator.root + url, str(folder), *rest)
        equal(ran.code, code, ran)
        return folder, json.loads(ran.out) if ran.out else {}, ran

    def upload(self) -> None:
        self.emulator.make()
        for path in sorted(self.data.rglob("*")):
            if path.is_file():
                self.emulator.put(f"demo/{path.relative_to(self.data).as_posix()}", path.read_bytes())
        self.emulator.put("private/private.tfrecord", (self.data / self.shards[0]).read_bytes())

    def step_get_by_names(self) -> None:
        self.same("get", self.shards, "2", "-1", "3:5", "9000")

    def step_get_by_pattern(self) -> None:
        self.same("get", ["observations-*.tfrecord"], "7777")

    def step_head(self) -> None:
        self.same("head", self.shards, "-n", "3")
        self.same("head", ["observations-*.tfrecord"], "-f", "json", "-n", "4", "--where", "feature1 > 3")

    def step_sample(self) -> None:
        self.same("sample", self.shards, "-n", "5")

    def step_schema(self) -> None:
        self.same("schema", self.shards)

    def step_verify(self) -> None:
        self.same("verify", self.shards)
        self.same("verify", self.shards, "--json", "--decode")

    def step_info(self) -> None:
        def lines(ran: Ran) -> list[str]:
            return [line for line in ran.out.splitlines()[1:] if "index " not in line]

        objects, files = self.run("info", self.root + self.shards[0]), self.run("info", self.shards[0])
        equal((objects.code, objects.err), (0, ""))
        equal(lines(objects), lines(files))
        folder = self.run("info", self.root)
        true(folder.code == 0 and "observations@4.tfrecord (4 files)" in folder.out, folder)

    def step_epochs(self) -> None:
        """Epochs of a loader have the records of files, and the second one of a block order comes from the cache on disk."""

        def epoch(paths: list[str], *rest: str, **more: str) -> dict[str, object]:
            ran = self.run("epoch", *paths, "-b", "64", "--json", *rest, env={**self.emulator.login, **more})
            equal(ran.code, 0, ran)
            report: dict[str, object] = json.loads(ran.out)
            return report

        urls = [self.root + name for name in self.shards]
        equal(self.run("index", *urls).code, 0)
        for shuffle in ("none", "global", "block"):
            objects, files = (epoch(paths, "--shuffle", shuffle) for paths in (urls, self.shards))
            equal((objects["examples"], objects["sum"]), (files["examples"], files["sum"]))
            parts = [epoch(urls, "--shuffle", shuffle, "--rank", rank, "--world-size", "2")["examples"] for rank in ("0", "1")]
            true(sum(int(str(part)) for part in parts) >= int(str(files["examples"])), parts)
        cache = {"TFSEEK_CACHE_DIR": str(self.folder / "pieces"), "TFSEEK_CACHE_BYTES": "1000000000"}
        first, second = (epoch(urls, "--shuffle", "block", **cache) for _ in range(2))
        equal(first["sum"], second["sum"])
        traffic = [report["traffic"] for report in (first, second)]
        print(f"    {traffic}")
        true(all(isinstance(each, dict) for each in traffic), traffic)

    def step_names_with_other_characters(self) -> None:
        name = "odd/a b+c%20ü=1&x.tfrecord"
        for url in (name, "odd/*.tfrecord"):
            ran = self.run("get", self.root + url, "-1")
            equal((ran.code, ran.out.replace(self.root, "")), (0, self.run("get", name, "-1").out), ran)

    def step_missing_objects(self) -> None:
        for url, code in (("none.tfrecord", 3), ("none-*.tfrecord", 3)):
            ran = self.run("get", self.root + url, "0")
            true(ran.code == code and "none" in ran.err and len(ran.err.splitlines()) == 1, ran)

    def step_index_in_the_cache(self) -> None:
        urls = [self.root + name for name in self.shards]
        ran = self.run("index", *urls, cache="index")
        true(ran.code == 0 and f"{len(urls)} indexes built, 0 fresh" in ran.err, ran)
        self.emulator.proxy.take_log()
        ran = self.run("index", *urls, cache="index")
        true(ran.code == 0 and f"0 indexes built, {len(urls)} fresh" in ran.err, ran)
        equal(self.run("get", *urls, "5000", cache="index").code, 0)
        log = self.emulator.proxy.take_log()
        equal([line for line in log if line.startswith(("PUT", "POST"))], [])

    def step_pack(self) -> None:
        urls = [self.root + name for name in self.shards]
        self.emulator.proxy.take_log()
        ran = self.run("index", *urls, "--pack", "demo", cache="pack")
        log = self.emulator.proxy.take_log()
        true(ran.code == 0 and f"-> {self.root}.tfseek/demo.tfrp" in ran.err, ran)
        equal(len([line for line in log if line.startswith(("PUT", "POST"))]), 1, log)
        true(len(self.emulator.get("demo/.tfseek/demo.tfrp")) > 1000, "the pack is short")
        local = self.run("get", *self.shards, "5000")
        self.emulator.proxy.take_log()
        ran = self.run("get", f"{self.root}.tfseek/demo.tfrp", "5000", cache="other")
        equal((ran.code, ran.out.replace(self.root, "")), (0, local.out), ran)
        log = self.emulator.proxy.take_log()
        ranges = [re.search(r"/observations-(\d+)\S+ .*=bytes=(\d+)-(\d+)", line) for line in log]
        reads = [[int(number) for number in match.groups()] for match in ranges if match]
        # The beginning of the shard and the record: no shard is indexed.
        true(reads and {shard for shard, _, _ in reads} == {2}, log)
        true(sum(last + 1 - first for _, first, last in reads) < 30_000, log)

    def step_large_pack(self) -> None:
        """A pack of more than half a megabyte is read in parts, each of the version that was listed."""
        folder, root = self.folder / "many", self.emulator.root + "many/"
        folder.mkdir()
        paths = [folder / f"many-{k:05}.tfrecord" for k in range(2100)]
        for k, path in enumerate(paths):
            path.write_bytes(record(b"%d" % k))
        ran = self.run("index", *map(str, paths), "--pack", "many")
        equal(ran.code, 0, ran)
        pack = (folder / ".tfseek/many.tfrp").read_bytes()
        for path in (paths[0], paths[1234]):
            self.emulator.put(f"many/{path.name}", path.read_bytes())
        self.emulator.put("many/.tfseek/many.tfrp", pack)
        self.emulator.proxy.take_log()
        ran = self.run("get", f"{root}.tfseek/many.tfrp", "0", "1234", "--format", "raw", cache="other")
        equal((ran.code, ran.out), (0, "01234"), ran)
        log = self.emulator.proxy.take_log()
        ranges = [re.search(r"many\.tfrp\S* .*=bytes=(\d+)-(\d+)", line) for line in log]
        parts = sorted((int(match[1]), int(match[2])) for match in ranges if match)
        equal(parts, [(start, min(start + (256 << 10), len(pack)) - 1) for start in range(0, len(pack), 256 << 10)], log)
        true(len(parts) > 2, "the pack is short")
        if self.emulator.versions:
            true(all("If-Match" in line for line in log if "many.tfrp" in line and "bytes=" in line), log)

    def step_fetch(self) -> None:
        folder, report, _ = self.fetch("demo/observations-*.tfrecord", "whole")
        equal(report["files"], len(self.shards))
        for name in self.shards:
            equal((folder / name).read_bytes(), (self.data / name).read_bytes(), name)
        self.emulator.proxy.take_log()
        _, report, _ = self.fetch("demo/observations-*.tfrecord", "whole")
        equal(report["fetched_bytes"], 0, report)
        ran = self.run("fetch", "--dry-run", self.root + "observations-*.tfrecord", str(self.folder / "dry"))
        true(ran.code == 0 and f"{len(self.shards)} files" in ran.out, ran)

    def step_fetch_where(self) -> None:
        where = "feature1 == 4 and feature0 == 1"
        folder, report, _ = self.fetch("demo/observations-*.tfrecord", "where", "--where", where)
        local = self.run("head", "-f", "json", "-n", "100000", "--where", where, *self.shards)
        copies = [str(path) for path in sorted(folder.glob("*.tfrecord"))]
        found = self.run("head", "-f", "json", "-n", "100000", *copies)

        def bare(text: str) -> list[object]:
            return [json.loads(line).get("features") for line in text.splitlines()]

        true(bare(local.out) and None not in bare(local.out), local)
        equal(bare(found.out), bare(local.out))
        equal(report["records"], len(bare(local.out)))

    def step_data_set(self) -> None:
        for verb, split, rest in (
            ("get", "[train[:3]]", ("-1", "0")),
            ("head", "[test+train[:2]]", ()),
            ("verify", "[train[1:]+test]", ("--json",)),
        ):
            self.same(verb, [f"tiny/1.0.0{split}"], *rest)
        self.same("get", ["tiny[train]"], "2500")
        folder, report, _ = self.fetch("demo/tiny/1.0.0[train[:3]]", "tiny/1.0.0")
        equal(report["records"], 3)
        copy = self.run("get", f"{folder}[train]", "0:3", "-f", "json")
        local = self.run("get", "tiny/1.0.0[train[:3]]", "0:3", "-f", "json")
        equal((copy.code, len(copy.out.splitlines())), (0, 3), copy)
        features = [[json.loads(line)["features"] for line in ran.out.splitlines()] for ran in (copy, local)]
        equal(*features)

    def step_version_goes_with_reads(self) -> None:
        """An object that is replaced between the listing and a read is an error."""
        name = "replaced.tfrecord"
        old, new = (record(content * 100) * 50 for content in (b"old", b"new"))
        self.emulator.put(f"demo/{name}", old)
        done: list[str] = []

        def replace(line: str) -> bool:
            if line.startswith("GET") and f"demo/{name}" in line.split("?")[0] and not done:
                done.append(line)
                # Times of answers have seconds. They tell where versions do not.
                time.sleep(1.1)
                self.emulator.put(f"demo/{name}", new)
            return True

        self.emulator.proxy.before = replace
        try:
            ran = self.run("get", self.root + "replaced*", "0", "--kind", "bytes", cache="replaced")
        finally:
            self.emulator.proxy.before = None
        true(done and ("If-Match=" in done[0]) == self.emulator.versions, done)
        true(ran.code == 1 and "the object was replaced" in ran.err and "old" not in ran.out + ran.err, ran)

    def step_fetch_after_a_break(self) -> None:
        """A fetch that was cut off goes on, and requests no piece twice."""
        self.broken(False)

    def step_fetch_of_a_replaced_object(self) -> None:
        """A fetch that was cut off begins again if its object was replaced since."""
        self.broken(True)

    def broken(self, replaced: bool) -> None:
        name = f"large-{'new' if replaced else 'old'}.tfrecord"
        content, other = (record(content * 16_000) * 900 for content in (b"old.", b"new."))
        true(len(content) > 3 * PIECE, len(content))
        self.emulator.put(f"demo/{name}", content)

        def pieces(log: list[str]) -> list[int]:
            found = (re.search(r"[Rr]ange=bytes=(\d+)-", line) for line in log if name in line)
            return [int(match[1]) for match in found if match]

        # The third piece never arrives.
        refused = []

        def cut(line: str) -> bool:
            if any(start >= 2 * PIECE for start in pieces([line])):
                refused.append(line)
                while not running.is_set():
                    time.sleep(0.01)
                return False
            return True

        running = threading.Event()
        self.emulator.proxy.before = cut
        self.emulator.proxy.take_log()
        folder = self.folder / name
        args = [self.tfseek, "fetch", self.root + name, str(folder)]
        variables = {"PATH": os.environ["PATH"], "HOME": str(self.folder), **self.emulator.login}
        child = subprocess.Popen(args, env=variables, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            journal = folder / ".tfseek-fetch"
            deadline = time.monotonic() + RUN_LIMIT
            # Two pieces are in the journal, or the process ended.
            while time.monotonic() < deadline and child.poll() is None:
                part = list(journal.glob("*.part")) if journal.is_dir() else []
                if refused and part and sum(path.stat().st_blocks * 512 for path in part) >= 2 * PIECE:
                    break
                time.sleep(0.05)
            time.sleep(0.3)
        finally:
            child.kill()
            child.wait()
            self.emulator.proxy.before = None
            running.set()
        before = pieces(self.emulator.proxy.take_log())
        true(refused and not (folder / name).exists(), (before, refused))
        if replaced:
            self.emulator.put(f"demo/{name}", other)
        ran = self.run("fetch", "--json", self.root + name, str(folder))
        equal(ran.code, 0, ran)
        report, after = json.loads(ran.out), pieces(self.emulator.proxy.take_log())
        equal((folder / name).read_bytes() == (other if replaced else content), True, ran)
        equal(report["begun_again"], [name] if replaced else [], ran)
        if not replaced:
            true(0 not in after and report["found_bytes"] >= PIECE, (before, after, report))

    def step_wrong_secret(self) -> None:
        ran = self.run("head", self.emulator.refused, env=self.emulator.wrong)
        true(ran.code == 3 and "logged in by variables" in ran.err, ran)
        print(f"    {ran.err.strip()}")

    def step_no_login(self) -> None:
        if self.emulator.refused:
            equal(self.run("head", self.emulator.refused).code, 0)
            ran = self.run("head", self.emulator.refused, env=self.emulator.bare)
            true(ran.code == 3 and "no login" in ran.err and self.emulator.variable in ran.err, ran)
            print(f"    {ran.err.strip()}")
        if self.emulator.anonymous is None:
            return
        self.emulator.proxy.take_log()
        self.same("get", self.shards, "2", env=self.emulator.anonymous)
        self.same("head", ["observations-*.tfrecord"], "-n", "2", env=self.emulator.anonymous)
        log = self.emulator.proxy.take_log()
        equal([line for line in log if line.endswith("signed")], [])

    def step_signed(self) -> None:
        self.emulator.proxy.take_log()
        self.same("head", self.shards, "-n", "1")
        log = self.emulator.proxy.take_log()
        equal([line for line in log if not line.endswith("signed")], [])


def make_data(tfseek: str, data: pathlib.Path) -> None:
    """Makes the demo's shards, a data set of TensorFlow Datasets of them, and a shard with a name of odd characters."""
    subprocess.run([tfseek, "demo", "--out", str(data)], check=True, capture_output=True, timeout=RUN_LIMIT)
    shutil.rmtree(data / ".tfseek", ignore_errors=True)
    shards = sorted(data.glob("*.tfrecord"))
    folder = data / "tiny" / "1.0.0"
    folder.mkdir(parents=True)
    names = ["tiny-train.tfrecord-00000-of-00002", "tiny-train.tfrecord-00001-of-00002", "tiny-test.tfrecord-00000-of-00001"]
    for shard, name in zip(shards, names):
        shutil.copy(shard, folder / name)
    splits = [{"name": "train", "shardLengths": ["2500", "2500"]}, {"name": "test", "shardLengths": ["2500"]}]
    (folder / "dataset_info.json").write_text(json.dumps({"name": "tiny", "version": "1.0.0", "splits": splits}))
    kind = "tensorflow_datasets.core.features"

    def tensor(dtype: str) -> dict[str, object]:
        return {"type": f"{kind}.tensor_feature.Tensor", "content": {"shape": {}, "dtype": dtype, "encoding": "none"}}

    content = {"feature0": tensor("int64"), "feature1": tensor("int64"), "feature2": tensor("string"), "feature3": tensor("float32")}
    image = {"shape": [24, 24, 3], "dtype": "uint8", "encoding_format": "png"}
    content["image"] = {"type": f"{kind}.image_feature.Image", "content": image}
    features = {"type": f"{kind}.features_dict.FeaturesDict", "content": content}
    (folder / "features.json").write_text(json.dumps(features))
    (data / "odd").mkdir()
    shutil.copy(shards[0], data / "odd" / "a b+c%20ü=1&x.tfrecord")


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def answers(port: int) -> bool:
    with socket.socket() as tried:
        tried.settimeout(1)
        return tried.connect_ex(("127.0.0.1", port)) == 0


def run_server(tfseek: str, program: list[str], kind: type[Emulator], data: pathlib.Path, folder: pathlib.Path) -> list[str]:
    """Runs all steps over a server. Returns the names of those that failed."""
    (folder / "server").mkdir(parents=True)
    port = free_port()
    proxy = Proxy(port)
    emulator = kind(folder / "server", port, proxy)
    variables = {**os.environ, **emulator.environment()}
    with open(folder / "server.log", "wb") as log:
        child = subprocess.Popen(emulator.command(program), cwd=folder, env=variables, stdout=log, stderr=log, stdin=subprocess.DEVNULL)
    failed = []
    try:
        start = time.monotonic()
        while not answers(port):
            if child.poll() is not None or time.monotonic() - start > START_LIMIT:
                print((folder / "server.log").read_text()[-2000:])
                return ["start"]
            time.sleep(0.1)
        suite = Suite(tfseek, emulator, data, folder)
        suite.upload()
        for name in [name[5:] for name in dir(Suite) if name.startswith("step_")]:
            about = f"{kind.__name__}: {name.replace('_', ' ')}"
            if name in emulator.gaps:
                print(f"skipped: {about}: {emulator.gaps[name]}", flush=True)
                continue
            try:
                getattr(suite, f"step_{name}")()
                print(f"ok: {about}", flush=True)
            except Exception:
                failed.append(name)
                print(f"FAILED: {about}\n{traceback.format_exc(limit=-2)}", flush=True)
    finally:
        child.terminate()
        child.wait()
        proxy.shutdown()
    return failed


def main() -> int:
    tfseek = str(pathlib.Path(sys.argv[1]).resolve())
    wanted = sys.argv[2:]
    failed = []
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        data = folder / "data"
        make_data(tfseek, data)
        for variable, default, kind in SERVERS:
            program = shlex.split(os.environ.get(variable) or default)
            if wanted and default not in wanted:
                continue
            if shutil.which(program[0]) is None:
                print(f"skipped: {program[0]} is not installed (${variable} names it)")
                continue
            failed += [f"{default}: {name}" for name in run_server(tfseek, program, kind, data, folder / default)]
    print("\n".join(failed))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
