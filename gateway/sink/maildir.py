"""Puts a mail into a Maildir: written whole under `tmp`, then renamed into `new`, so that no reader sees half a file.

Lines end in LF there, as every delivery agent writes them; the envelope stands on top as Return-Path and Delivered-To.
"""

import itertools
import os
import socket
import time
from collections.abc import Iterable
from pathlib import Path

_numbers = itertools.count(1)


def deliver(folder: Path, envelope_from: str | None, recipients: Iterable[str], content: bytes) -> Path:
    """Writes the mail below `folder`, which is made if it is not there, and returns the path of the new file.

    Raises OSError where that cannot be done; then no file is left in `new`.
    """
    for name in ("tmp", "new", "cur"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    now = time.time_ns() // 1000
    host = socket.gethostname().replace("/", "\\057").replace(":", "\\072")
    name = f"{now // 1_000_000}.M{now % 1_000_000:06}P{os.getpid()}Q{next(_numbers)}.{host}"
    envelope = [f"Return-Path: <{envelope_from or ''}>", *(f"Delivered-To: {address}" for address in recipients)]
    half = folder / "tmp" / name
    with half.open("xb") as file:
        file.write("".join(f"{line}\n" for line in envelope).encode())
        file.write(content.replace(b"\r\n", b"\n"))
        file.flush()
        os.fsync(file.fileno())
    return half.rename(folder / "new" / name)
