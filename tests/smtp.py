"""What the tests of both SMTP ends share: certificates, event loops, and a client that says exactly what it is told."""

import asyncio
import functools
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import trustme
import uvloop

from gateway.sink import Sink

FIXTURES = Path(__file__).parent.parent / "fixtures" / "smarthost"

LOOPS: dict[str, Callable[[], asyncio.AbstractEventLoop]] = {
    "asyncio": asyncio.new_event_loop,
    "uvloop": uvloop.new_event_loop,
}
"""For the hook `pytest_asyncio_loop_factories`: each asynchronous test runs once on each."""


@functools.cache
def authority(name: str) -> trustme.CA:
    """A certificate authority of this test run; another name, another authority."""
    return trustme.CA(organization_name=name)


def server_tls(*names: str, by: str = "ours") -> ssl.SSLContext:
    """The server's side of TLS with a certificate for these names."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority(by).issue_cert(*(names or ("127.0.0.1", "localhost"))).configure_cert(context)
    return context


def server_files(folder: Path) -> str:
    """A file with a certificate for the loopback and its key."""
    path = folder / "server.pem"
    if not path.exists():
        authority("ours").issue_cert("127.0.0.1", "localhost").private_key_and_cert_chain_pem.write_to_path(str(path))
    return str(path)


def ca_file(folder: Path, name: str = "ours") -> Path:
    """A file with the authority's certificate."""
    path = folder / f"{name}.pem"
    authority(name).cert_pem.write_to_path(str(path))
    return path


class Talk:
    """A client that writes what it is told and reads lines; it waits `patience` seconds for a reply."""

    patience = 5.0

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    async def reply(self) -> str:
        """Returns the next whole reply, its lines joined by " / "; "" at the end of the connection."""
        lines = []
        async with asyncio.timeout(self.patience):
            while line := (await self.reader.readline()).decode():
                lines.append(line.rstrip("\r\n"))
                if line[3:4] != "-":
                    break
        return " / ".join(lines)

    async def say(self, text: str | bytes) -> str:
        """Writes a line (bytes as they are) and returns the reply."""
        self.writer.write(text if isinstance(text, bytes) else f"{text}\r\n".encode())
        return await self.reply()


@asynccontextmanager
async def talk(sink: Sink, tls: ssl.SSLContext | None = None) -> AsyncIterator[Talk]:
    """Connects and reads nothing yet."""
    name = "localhost" if tls else None
    reader, writer = await asyncio.open_connection("127.0.0.1", sink.port, ssl=tls, server_hostname=name)
    try:
        yield Talk(reader, writer)
    finally:
        writer.close()
        with suppress(OSError):
            await writer.wait_closed()
