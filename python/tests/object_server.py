"""A server of this machine for tests: a bucket with the listings and reads of S3, which is a plain web server too."""

from __future__ import annotations

import hashlib
import http.server
import threading
import urllib.parse
from typing import Any, Optional
from xml.sax.saxutils import escape


class ObjectServer(http.server.ThreadingHTTPServer):
    """Objects by ``bucket/key``. ``requests`` has the method and path of each request, and ``sent`` counts the bytes of objects that were sent."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.objects: dict[str, bytes] = {}
        self.requests: list[str] = []
        self.sent = 0
        #: Reads of objects wait for it.
        self.open = threading.Event()
        self.open.set()
        #: The status of all answers, if they are errors.
        self.refusal: Optional[int] = None
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def __exit__(self, *error: Any) -> None:
        """Answers the requests that wait, and ends."""
        self.open.set()
        self.shutdown()
        super().__exit__(*error)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Prints nothing: clients drop connections."""


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: ObjectServer

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def do_PUT(self) -> None:
        self.server.requests.append(f"PUT {self.path}")
        name = urllib.parse.unquote(self.path.partition("?")[0]).strip("/")
        content = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.objects[name] = content
        self._answer(200, b"", {"ETag": _tag(content)})

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        self.server.requests.append(f"{self.command} {self.path}")
        path, _, query = self.path.partition("?")
        options = dict(urllib.parse.parse_qsl(query))
        if self.server.refusal:
            return self._answer(self.server.refusal, b"<Error><Code>AccessDenied</Code></Error>")
        if "list-type" in options:
            return self._answer(200, self._listing(path.strip("/"), options.get("prefix", ""), options.get("delimiter", "")))
        self.server.open.wait(30)
        content = self.server.objects.get(urllib.parse.unquote(path).strip("/"))
        if content is None:
            return self._answer(404, b"<Error><Code>NoSuchKey</Code></Error>")
        tag = _tag(content)
        if self.headers.get("If-Match", tag) != tag:
            return self._answer(412, b"<Error><Code>PreconditionFailed</Code></Error>")
        headers = {"ETag": tag, "Last-Modified": "Thu, 01 Jan 2026 00:00:00 GMT", "Accept-Ranges": "bytes"}
        wanted = self.headers.get("Range")
        if wanted is None or self.command == "HEAD":
            return self._answer(200, content, headers)
        start, _, last = wanted[len("bytes=") :].partition("-")
        part = content[int(start) : int(last) + 1 if last else None]
        self.server.sent += len(part)
        headers["Content-Range"] = f"bytes {start}-{int(start) + len(part) - 1}/{len(content)}"
        return self._answer(206, part, headers)

    def _listing(self, bucket: str, prefix: str, delimiter: str) -> bytes:
        found, folders = "", set()
        for name, content in sorted(self.server.objects.items()):
            key = name[len(bucket) + 1 :] if name.startswith(f"{bucket}/") else name
            if key == name or not key.startswith(prefix):
                continue
            below = key[len(prefix) :]
            if delimiter and delimiter in below:
                folders.add(prefix + below.split(delimiter)[0] + delimiter)
                continue
            found += f"<Contents><Key>{escape(key)}</Key><Size>{len(content)}</Size><ETag>{escape(_tag(content))}</ETag>"
            found += "<LastModified>2026-01-01T00:00:00.000Z</LastModified></Contents>"
        found += "".join(f"<CommonPrefixes><Prefix>{escape(folder)}</Prefix></CommonPrefixes>" for folder in sorted(folders))
        head = f"<Name>{bucket}</Name><Prefix>{escape(prefix)}</Prefix><KeyCount>1</KeyCount><IsTruncated>false</IsTruncated>"
        return f"<ListBucketResult>{head}{found}</ListBucketResult>".encode()

    def _answer(self, status: int, body: bytes, headers: Optional[dict[str, str]] = None) -> None:
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)


def _tag(content: bytes) -> str:
    return f'"{hashlib.md5(content).hexdigest()}"'
