"""A bounded load of POSTs over kept-alive connections, run as a process of its own so that it shares no loop with a server."""

import argparse
import asyncio
import json
import sys
import time
from collections.abc import Callable


class Client(asyncio.Protocol):
    """One connection: asks, waits for the whole answer, asks again until the job has no more."""

    def __init__(self, job: "Job", done: "asyncio.Future[None]") -> None:
        self.job = job
        self.done = done
        self.buffer = b""
        self.started = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport
        self.ask()

    def ask(self) -> None:
        """Send the next request, or close."""
        request = self.job.next()
        if request is None:
            self.transport.close()
            return
        self.started = time.perf_counter()
        self.transport.write(request)  # type: ignore[attr-defined]

    def data_received(self, data: bytes) -> None:
        self.buffer += data
        head = self.buffer.find(b"\r\n\r\n")
        if head < 0:
            return
        lower = self.buffer[:head].lower()
        length = int(lower.split(b"content-length:", 1)[1].split(b"\r\n", 1)[0])
        if len(self.buffer) < head + 4 + length:
            return
        body, status = self.buffer[head + 4 : head + 4 + length], self.buffer[9:12]
        self.buffer = self.buffer[head + 4 + length :]
        self.job.took(time.perf_counter() - self.started, status, body)
        self.ask()

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.done.done():
            self.done.set_result(None)


class Job:
    """How many requests are left, and what the answers were."""

    def __init__(self, count: int, make: Callable[[int], bytes], expect: bytes) -> None:
        self.left = count
        self.number = 0
        self.make = make
        self.expect = expect
        self.times: list[float] = []
        self.bad: list[str] = []

    def next(self) -> bytes | None:
        """The next request."""
        if self.left == 0:
            return None
        self.left -= 1
        self.number += 1
        return self.make(self.number)

    def took(self, seconds: float, status: bytes, body: bytes) -> None:
        """Note an answer."""
        self.times.append(seconds)
        if status != b"200" or self.expect not in body:
            self.bad.append(f"{status.decode()} {body[:300].decode(errors='replace')}")


TEXT = "".join(f"line {n:03} of a plain text mail that nobody reads but the benchmark.\n" for n in range(30))


def requests(options: argparse.Namespace) -> Callable[[int], bytes]:
    """Makes request number n: a mail of 2 KB to somebody new under a new key."""
    head = f"POST {options.path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {options.key}\r\n"
    head += "Content-Type: application/json\r\nContent-Length: "

    def make(n: int) -> bytes:
        mail = {
            "to": [f"{options.run}-{n}@example.net"],
            "subject": f"Hello {n}",
            "text": TEXT,
            "idempotencyKey": f"{options.run}-{n}",
            "sendReason": "bench",
        }
        body = json.dumps(mail).encode()
        return f"{head}{len(body)}\r\n\r\n".encode() + body

    return make


async def run(options: argparse.Namespace) -> Job:
    """Do all requests over `clients` connections."""
    loop = asyncio.get_running_loop()
    job = Job(options.count, requests(options), options.expect.encode())
    ends = [loop.create_future() for _ in range(options.clients)]
    for end in ends:
        await loop.create_connection(lambda e=end: Client(job, e), "127.0.0.1", options.port)  # type: ignore[misc]
    async with asyncio.timeout(options.seconds):
        await asyncio.gather(*ends)
    return job


def main() -> int:
    """Print one JSON line: rate, median and 99th percentile in milliseconds, answers that were not as expected."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--path", default="/v1/agent/request-send")
    parser.add_argument("--key", default="none")
    parser.add_argument("--run", default="r")
    parser.add_argument("--expect", default="")
    parser.add_argument("--clients", type=int, default=16)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seconds", type=float, default=60)
    options = parser.parse_args()
    begin = time.perf_counter()
    job = asyncio.run(run(options))
    took = time.perf_counter() - begin
    times = sorted(job.times)
    result = {
        "rate": options.count / took,
        "p50": times[len(times) // 2] * 1000,
        "p99": times[int(len(times) * 0.99)] * 1000,
        "bad": len(job.bad),
        "example": job.bad[:1],
    }
    print(json.dumps(result))
    return 1 if job.bad else 0


if __name__ == "__main__":
    sys.exit(main())
