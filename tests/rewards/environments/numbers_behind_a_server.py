"""An environment that lives behind a server, of the shape of an OpenEnv client's; run, it is the server."""

import json
import sys
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar
from urllib.parse import urlsplit


class Remote:
    """Connects when it is first reset, and never again, as an OpenEnv client does; paid by an attribute."""

    reward: float | None = None

    def __init__(self, *, url: str) -> None:
        self.url, self.connection = url, None

    def reset(self, *, reference: int, **_: Any) -> None:
        if self.connection is None:
            self.connection = HTTPConnection(urlsplit(self.url).netloc)
            self.connection.connect()
            self.connection.auto_open = 0
        self.reward = None
        self._asked({"wanted": reference})

    def guess(self, number: int) -> str:
        """Guess.

        Args:
            number: What.
        """
        answer = self._asked({"number": number})
        self.reward = answer["reward"]
        return answer["text"]

    def _asked(self, action: dict[str, Any]) -> Any:
        self.connection.request("POST", "/", json.dumps(action))
        return json.loads(self.connection.getresponse().read())


class Handler(BaseHTTPRequestHandler):
    """Each connection is a session."""

    protocol_version = "HTTP/1.1"
    wanted: ClassVar[int] = 0

    def do_POST(self) -> None:
        action = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.wanted = action.get("wanted", self.wanted)
        is_right = action.get("number") == self.wanted
        answer = json.dumps({"text": "right" if is_right else "wrong", "reward": float(is_right)}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_: Any) -> None: ...


if __name__ == "__main__":
    server = ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler)
    print(server.server_port, flush=True)  # noqa: T201
    server.serve_forever()
