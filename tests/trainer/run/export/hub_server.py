"""A server on this machine that speaks the Hub's routes which an upload of small files takes, and remembers."""

import base64
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class Hub:
    """What it was told, and what it says of the one repository that it may already hold."""

    def __init__(self, existing: dict[str, Any] | None = None) -> None:
        self.existing = existing
        self.created: list[dict[str, Any]] = []
        self.files: dict[str, bytes] = {}
        self.url = ""

    def answer(self, method: str, path: str, body: bytes) -> tuple[int, Any]:
        """Status and JSON of one request."""
        if path == "/api/repos/create":
            self.created.append(json.loads(body))
            if self.existing is not None:
                return 409, {}
            name = f"someone/{self.created[-1]['name']}"
            self.existing = {"id": name, "private": self.created[-1].get("visibility") == "private", "siblings": []}
            return 200, {"url": f"{self.url}/{name}"}
        if path == "/api/validate-yaml":
            return 200, {"errors": [], "warnings": []}
        if path.endswith("/preupload/main"):
            names = [file["path"] for file in json.loads(body)["files"]]
            plan = [{"path": name, "uploadMode": "regular", "shouldIgnore": False} for name in names]
            return 200, {"files": plan}
        if "/commit/" in path:
            for line in map(json.loads, body.splitlines()):
                if line["key"] == "file":
                    self.files[line["value"]["path"]] = base64.b64decode(line["value"]["content"])
            return 200, {"commitUrl": f"{self.url}/someone/model/commit/1", "commitOid": "1", "success": True}
        if method == "GET" and path.startswith("/api/models/") and self.existing is not None:
            return 200, self.existing
        return 404, {"error": "Repository not found"}


@contextmanager
def hub_server(existing: dict[str, Any] | None = None) -> Iterator[Hub]:
    """The Hub at ``hub.url`` for as long as the block runs."""
    hub = Hub(existing)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._respond()

        def do_POST(self) -> None:
            self._respond()

        def do_HEAD(self) -> None:
            self._respond()

        def _respond(self) -> None:
            body = self._body()
            status, answer = hub.answer(self.command, self.path.partition("?")[0], body)
            sent = json.dumps(answer).encode()
            self.send_response(status)
            if status == 404:
                self.send_header("X-Error-Code", "RepoNotFound")
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(sent)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(sent)

        def _body(self) -> bytes:
            if self.headers.get("Transfer-Encoding") == "chunked":
                parts = []
                while size := int(self.rfile.readline(), 16):
                    parts.append(self.rfile.read(size))
                    self.rfile.readline()
                self.rfile.readline()
                return b"".join(parts)
            return self.rfile.read(int(self.headers.get("Content-Length", "0")))

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    hub.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield hub
    finally:
        server.shutdown()
        server.server_close()
