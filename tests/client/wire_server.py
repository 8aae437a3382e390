"""An HTTP server that does as it is told: one step for each request, answers as bytes, a connection for each."""

import contextlib
import json
import socket
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

Step = Callable[[bytes], bytes]
"""Takes the request's bytes, returns the answer's: as many as it wants; then the connection is closed."""


def said(status: int, body: object, *, short: int = 0, **headers: str) -> Step:
    """An answer in JSON; `short` leaves out so many bytes at its end."""
    content = json.dumps(body).encode()
    head = {"Content-Type": "application/json", "Content-Length": str(len(content)), **headers}
    lines = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in head.items())
    raw = f"HTTP/1.1 {status} As it is\r\n{lines}Connection: close\r\n\r\n".encode() + content
    return lambda _: raw[: len(raw) - short]


def dropped(_: bytes) -> bytes:
    """No answer at all, after the request was read."""
    return b""


def streamed(*frames: str) -> Step:
    """A stream of events that ends."""
    head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\nConnection: close\r\n\r\n"
    return lambda _: (head + "".join(frames)).encode()


def passed(port: int, *, lost: bool = False) -> Step:
    """The answer of the server at that port; `lost`: it has done what it was asked, and nobody hears of it."""

    def act(request: bytes) -> bytes:
        with socket.create_connection(("127.0.0.1", port), timeout=30) as there:
            there.sendall(request.replace(b"Connection: keep-alive", b"Connection: close"))
            answer = b"".join(iter(lambda: there.recv(65536), b""))
        return b"" if lost else answer

    return act


@dataclass(slots=True)
class Scripted:
    """The server, and what it was asked: method and path, headers in lower case, body."""

    port: int
    steps: list[Step]
    asked: list[tuple[str, dict[str, str], Any]] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"


@contextlib.contextmanager
def scripted(*steps: Step) -> Iterator[Scripted]:
    """Serve these steps in turn while the block runs; whoever comes after the last finds the connection closed."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = Scripted(listener.getsockname()[1], list(steps))
        thread = threading.Thread(target=_serve, args=(listener, server), daemon=True)
        thread.start()
        try:
            yield server
        finally:
            with contextlib.suppress(OSError):
                listener.shutdown(socket.SHUT_RDWR)
            thread.join(30)


def _serve(listener: socket.socket, server: Scripted) -> None:
    while True:
        try:
            connection, _ = listener.accept()
        except OSError:
            return
        with connection:
            connection.settimeout(30)
            request = _read(connection)
            head, _, body = request.partition(b"\r\n\r\n")
            first, *lines = head.decode("ascii").split("\r\n")
            headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
            server.asked.append((first.removesuffix(" HTTP/1.1"), headers, json.loads(body) if body else None))
            step = server.steps.pop(0) if server.steps else dropped
            connection.sendall(step(request))


def _read(connection: socket.socket) -> bytes:
    data = b""
    while b"\r\n\r\n" not in data:
        data += connection.recv(65536)
    head, _, body = data.partition(b"\r\n\r\n")
    length = next((int(line.split(b":")[1]) for line in head.lower().split(b"\r\n") if b"content-length" in line), 0)
    while len(body) < length:
        body += connection.recv(65536)
    return head + b"\r\n\r\n" + body
