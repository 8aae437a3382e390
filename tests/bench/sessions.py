"""What idle SMTP sessions cost, and whether they hold up others: `python -m tests.bench.sessions [--sessions 1000]`.

Prints by how many MiB the memory of a gateway grows with so many sessions, in plain and under TLS, and the median time of a
mail's acceptance beside them and beside a client that drips its body, as a ratio to the time alone. The marks are 20 MiB and
60 MiB for 1000 sessions.
"""

import argparse
import asyncio
import contextlib
import smtplib
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from email.message import EmailMessage
from pathlib import Path
from typing import Any

from tests import servers
from tests.bench.judge import databases
from tests.doors.smtp.test_served import MAILBOX, certify, port_of, trusting

MARKS = {"plain": 20.0, "TLS": 60.0}
"""MiB for 1000 sessions."""
AT_ONCE = 50
MAILS = 60
DRIP_SECONDS = 0.05


def memory(pid: int) -> float:
    """MiB that a process has in memory for itself and its share of what is shared."""
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) / 1024
    raise SystemExit("this system does not say how much memory a process has")


async def connect(served: servers.Served, *, secure: bool) -> asyncio.StreamWriter:
    """One session after EHLO."""
    tls: dict[str, Any] = {"ssl": trusting(), "server_hostname": "localhost"} if secure else {}
    port = port_of(served, "implicit" if secure else "starttls")
    reader, writer = await asyncio.open_connection("127.0.0.1", port, **tls)
    await reader.readline()
    writer.write(b"EHLO client.example.com\r\n")
    while (await reader.readline())[3:4] == b"-":
        pass
    return writer


async def open_sessions(served: servers.Served, count: int, *, secure: bool) -> list[asyncio.StreamWriter]:
    """So many sessions that say no more."""
    found: list[asyncio.StreamWriter] = []
    while len(found) < count:
        some = min(AT_ONCE, count - len(found))
        found += await asyncio.gather(*(connect(served, secure=secure) for _ in range(some)))
    return found


async def close(writers: list[asyncio.StreamWriter]) -> None:
    """Break them off."""
    for writer in writers:
        writer.transport.abort()
    await asyncio.sleep(1)


def accept(served: servers.Served, key: str, run: str) -> float:
    """The median time of a mail's acceptance on one connection, in milliseconds."""
    times: list[float] = []
    with smtplib.SMTP("localhost", port_of(served), timeout=30) as client:
        client.starttls(context=trusting())
        client.login(key[:16], key)
        for number in range(MAILS):
            mail = EmailMessage()
            mail["From"], mail["To"], mail["Subject"] = MAILBOX, f"{run}-{number}@example.net", "hello"
            mail["Message-ID"] = f"<{run}.{number}@gw.example.com>"
            mail.set_content("hi")
            begin = time.perf_counter()
            client.send_message(mail)
            times.append(time.perf_counter() - begin)
    return statistics.median(times) * 1000


@contextlib.asynccontextmanager
async def dripping(served: servers.Served, key: str) -> AsyncIterator[None]:
    """A client that gives its body line by line, and slowly."""
    client = await asyncio.to_thread(smtplib.SMTP, "localhost", port_of(served), timeout=30)
    await asyncio.to_thread(client.starttls, context=trusting())
    await asyncio.to_thread(client.login, key[:16], key)
    for order in (f"MAIL FROM:<{MAILBOX}>", "RCPT TO:<slow@example.net>", "DATA"):
        await asyncio.to_thread(client.docmd, order)

    async def drip() -> None:
        while True:
            await asyncio.to_thread(client.send, "a line\r\n")
            await asyncio.sleep(DRIP_SECONDS)

    task = asyncio.create_task(drip())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait({task})
        client.close()


async def measure(served: servers.Served, key: str, count: int) -> bool:
    """Print a line for each kind; whether the marks are met."""
    good = True
    await close(await open_sessions(served, AT_ONCE, secure=True))
    await asyncio.to_thread(accept, served, key, "warm")
    alone = await asyncio.to_thread(accept, served, key, "alone")
    for name, mark in MARKS.items():
        before = memory(served.process.pid)
        writers = await open_sessions(served, count, secure=name == "TLS")
        await asyncio.sleep(1)
        more = (memory(served.process.pid) - before) * 1000 / count
        async with dripping(served, key):
            beside = await asyncio.to_thread(accept, served, key, name)
        await close(writers)
        print(f"{name}: {more:.1f} MiB for 1000 idle sessions (mark {mark:g}); a mail beside {count} of them and a slow "
              f"client takes {beside:.1f} ms, alone {alone:.1f} ms = {beside / alone:.2f}", flush=True)  # fmt: skip
        good = good and more <= mark
    print("as asked:", "yes" if good else "no")
    return good


def main() -> int:
    """Run and print; exit 1 where a mark is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sessions", type=int, default=1000)
    options = parser.parse_args()
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        url = stack.enter_context(databases("sqlite"))()
        key = servers.init(url, folder / "profile.toml", MAILBOX)["rawKey"]
        binds = {"smtp_bind": "127.0.0.1:0", "smtps_bind": "127.0.0.1:0"}
        served = stack.enter_context(
            servers.serving(url, roles="http,smtp", hostname="gw.example.com", **binds, **certify(folder))
        )
        return 0 if asyncio.run(measure(served, key, options.sessions)) else 1


if __name__ == "__main__":
    sys.exit(main())
